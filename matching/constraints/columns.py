"""One attribute of one side as a sparse table of records x values, with the form in which values compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.profiles.identity import fold_id
from matching.rules.values import Scalar, is_scalar, moment

__all__ = ["Column", "canonical", "entries_of", "key_of"]

SINGULAR = {
    "ids": "id", "areas": "area", "keywords": "keyword", "affiliations": "affiliation", "tracks": "track",
    "authors": "author", "publications": "publication",
}  # fmt: skip
"""Names of the records' lists -> the attribute that holds their entries."""


def canonical(attribute: str) -> str:
    """The one name of an attribute that may be written in two ways."""
    return SINGULAR.get(attribute.strip(), attribute.strip())


def key_of(value: Scalar) -> str:
    """The form in which values compare: 3, 3.0 and "3" are one, texts are folded, blanks within them are one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    return " ".join(fold_id(value).split())


class Column:
    """One attribute of one side.

    Parameters
    ----------
    records : sequence
        For each record a value, a list of values, or None. Anything that is no text, number or truth is noted in
        `odd`.
    key : callable
        Value -> what it is compared by; "" for a value that counts as none.
    exact : bool
        Whether values are told apart as written and folded only where nothing is written so (ids).

    Attributes
    ----------
    member : scipy.sparse.csr_array of shape (n_records, n_values), float64
        1 where the record has the value.
    keys, labels : tuple of str, length n_values
        What values compare by, and as first written.
    values : tuple of Scalar
        As first given.
    odd : tuple of int
        Records with something that is no value.
    """

    __slots__ = ("_code", "_loose", "key", "keys", "labels", "member", "odd", "values")

    def __init__(self, records: Sequence[Any], key: Callable[[Scalar], str] = key_of, *, exact: bool = False) -> None:
        self.key = str if exact else key
        self._code: dict[str, int] = {}
        values: list[Scalar] = []
        odd: list[int] = []
        indptr, indices = [0], []
        for at, record in enumerate(records):
            mine: dict[int, None] = {}
            for value in entries_of(record):
                if not is_scalar(value):
                    odd.append(at)
                    continue
                name = str(value).strip() if exact else key(value)
                if not name:
                    continue
                code = self._code.setdefault(name, len(values))
                if code == len(values):
                    values.append(value)
                mine[code] = None
            indices += sorted(mine)
            indptr.append(len(indices))
        self.values = tuple(values)
        self.keys = tuple(self._code)
        self.labels = tuple(" ".join(value.split()) if isinstance(value, str) else key_of(value) for value in values)
        self.odd = tuple(dict.fromkeys(odd))
        self._loose: dict[str, list[int]] = {}
        for name, code in self._code.items() if exact else ():
            self._loose.setdefault(key_of(name), []).append(code)
        data = np.ones(len(indices))
        shape = (len(records), max(1, len(values)))
        self.member = sparse.csr_array((data, np.array(indices, dtype=np.int32), np.array(indptr)), shape=shape)

    def find(self, value: Scalar) -> list[int]:
        """Numbers of the values that a value in a rule means; none where no record has it."""
        code = self._code.get(str(value).strip() if self._loose else self.key(value))
        if code is not None:
            return [code]
        return self._loose.get(key_of(value), [])

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each record has a value, bool of shape (n_records,)."""
        known: NDArray[np.bool_] = np.diff(self.member.indptr) > 0
        return known

    def having(self, codes: Iterable[int]) -> NDArray[np.bool_]:
        """Whether each record has one of the values, bool of shape (n_records,)."""
        wanted = np.zeros(self.member.shape[1])
        wanted[list(codes)] = 1.0
        return np.asarray(self.member @ wanted) > 0

    def within(self, low: float | datetime | None, high: float | datetime | None) -> NDArray[np.bool_]:
        """Whether each record has a value between two numbers or two dates, ends included."""
        as_dates = isinstance(low if low is not None else high, datetime)
        codes = []
        for code, value in enumerate(self.values):
            number: Any = moment(value) if as_dates else _number(value)
            if number is not None and (low is None or number >= low) and (high is None or number <= high):
                codes.append(code)
        return self.having(codes)


def entries_of(record: Any) -> Iterable[Any]:
    """The single values of an entry: none for None and NaN, each of a list, else the entry itself."""
    if record is None:
        return ()
    if isinstance(record, list | tuple | set | frozenset):
        return [entry for entry in record if not (entry is None or (isinstance(entry, float) and math.isnan(entry)))]
    if hasattr(record, "item") and hasattr(record, "dtype") and not getattr(record, "ndim", 1):
        record = record.item()
    return () if isinstance(record, float) and math.isnan(record) else (record,)


def _number(value: Scalar) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
