"""One record's fields, each judged strictly and each fault named."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from matching.formats.decode import printable
from matching.formats.faults import Faults

__all__ = ["Fields"]

MOST = 1 << 31  # as in AssignmentProblem
MOST_YEAR = 9999
BRACKETS = re.compile(r"\[\d+\]")


class Fields:
    """Typed access to a mapping; null is the same as absent.

    Attributes
    ----------
    sound : bool
        False once a fault was found.
    """

    def __init__(self, record: Mapping[str, Any], faults: Faults, row: int | None, where: str = "") -> None:
        self.record = record
        self.faults = faults
        self.row = row
        self.where = where
        self.sound = True
        self.asked: list[str] = []

    @classmethod
    def of(cls, record: object, faults: Faults, row: int | None, where: str = "") -> Fields | None:
        """Fields of a mapping; None, with a fault, for anything else."""
        if isinstance(record, Mapping):
            return cls(record, faults, row, where)
        reason = f"must be an object, got {kind(record)}"
        faults.add(reason, "not-an-object", where.rstrip(".") or None, row, record)
        return None

    def fault(self, field: str, reason: str, code: str, value: Any = None) -> None:
        """Note a fault of this record."""
        self.sound = False
        self.faults.add(reason, code, (self.where + field).rstrip(".") or None, self.row, value)

    def _get(self, key: str) -> Any:
        self.asked.append(key)
        return self.record.get(key)

    def text(self, key: str) -> str:
        """A text, "" where missing."""
        return self.optional_text(key) or ""

    def optional_text(self, key: str) -> str | None:
        """A text, None where missing."""
        value = self._get(key)
        if value is None or (isinstance(value, str) and self._whole(key, value)):
            return value
        if not isinstance(value, str):
            self.fault(key, f"must be a text, got {kind(value)}", "not-text", value)
        return None

    def _whole(self, key: str, text: str) -> bool:
        """Whether a text has whole characters only; one with half a surrogate pair fits into no file."""
        if text.isascii():
            return True
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            reason = "holds half of a surrogate pair, which is no character"
            self.fault(key, reason, "not-unicode", printable(text))
            return False
        return True

    def identifier(self, key: str, *, required: bool = False) -> str | None:
        """A trimmed id, None where missing or blank."""
        value = self.optional_text(key)
        value = value.strip() if value is not None else None
        if not value:
            given = self.record.get(key)
            if required and (given is None or (isinstance(given, str) and not given.strip())):
                self.fault(key, "is missing; a record needs an id", "missing-id")
            return None
        return value

    def texts(self, key: str, *, trim: bool = False) -> tuple[str, ...]:
        """A list of texts, empty where missing; null entries are left out."""
        found = []
        for place, value in enumerate(self.items(key)):
            if isinstance(value, str):
                if self._whole(f"{key}[{place}]", value):
                    found.append(value.strip() if trim else value)
            elif value is not None:
                self.fault(f"{key}[{place}]", f"must be a text, got {kind(value)}", "not-text", value)
        return tuple(found)

    def items(self, key: str) -> Sequence[Any]:
        """A list of anything, empty where missing."""
        value = self._get(key)
        if value is None:
            return ()
        if isinstance(value, (list, tuple)):
            return value
        self.fault(key, f"must be a list, got {kind(value)}", "not-a-list", value)
        return ()

    def mapping(self, key: str) -> Mapping[str, Any]:
        """A mapping, empty where missing."""
        value = self._get(key)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value
        self.fault(key, f"must be an object, got {kind(value)}", "not-an-object", value)
        return {}

    def count(self, key: str) -> int | None:
        """A whole number of at least 0, None where missing."""
        value = self._get(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST:
            return value
        self.fault(key, f"must be a whole number of at least 0, got {kind(value)} {value!r:.40}", "not-a-count", value)
        return None

    def integer(self, key: str) -> int | None:
        """A year or the like: a whole number between -9999 and 9999, None where missing."""
        value = self._get(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_YEAR:
            return value
        self.fault(key, f"must be a whole number, got {kind(value)} {value!r:.40}", "not-a-year", value)
        return None

    def number(self, key: str, *, default: float) -> float:
        """A finite number of at least 0."""
        value = self._get(key)
        if value is None:
            return default
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and 0 <= value < MOST
            and math.isfinite(value)
        ):
            return float(value)
        self.fault(
            key, f"must be a finite number of at least 0, got {kind(value)} {value!r:.40}", "not-a-weight", value
        )
        return default

    def within(self, key: str, most: float) -> float:
        """A finite number of any sign that is at most `most` in size, a must; 0 where it is none."""
        value = self._get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value != value:
            self.fault(key, f"must be a finite number, got {kind(value)} {value!r:.40}", "not-a-number", value)
        elif abs(value) > most:
            self.fault(key, f"must lie between {-most:,.0f} and {most:,.0f}, got {value!r:.40}", "out-of-range", value)
        else:
            return float(value)
        return 0.0

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._get(key)
        if value is None:
            return default
        if isinstance(value, bool):
            return value
        self.fault(key, f"must be true or false, got {kind(value)} {value!r:.40}", "not-a-flag", value)
        return default

    def choice(self, key: str, choices: Sequence[str], default: Any) -> Any:
        """One of the given texts."""
        value = self._get(key)
        if value is None:
            return default
        if value in choices:
            return value
        self.fault(key, f"must be one of {', '.join(choices)}, got {value!r:.40}", "unknown-choice", value)
        return default

    def rest(self) -> dict[str, Any]:
        """Every key nobody asked for, noted as kept but not used."""
        found = {key: value for key, value in self.record.items() if key not in self.asked}
        for key in found:
            self.faults.note_unused(BRACKETS.sub("", self.where) + str(key), True, self._near(key))
        return found

    def not_kept(self) -> None:
        """Note every key nobody asked for as lost; one that looks misspelt is a fault, since its content counts."""
        for key in self.record:
            if key in self.asked:
                continue
            near = self._near(key)
            if near and near not in self.record:
                self.fault(str(key), f"is no field here; did you mean {near!r}?", "unknown-field", self.record[key])
            else:
                self.faults.note_unused(BRACKETS.sub("", self.where) + str(key), False)

    def _near(self, key: Any) -> str:
        """The known field a key seems to mean, "" if none."""
        words = sorted(str(key).casefold().replace("-", "_").split("_"))
        for known in self.asked:
            if sorted(known.split("_")) == words or known.replace("_", "") == "".join(words):
                return known
        return next(iter(difflib.get_close_matches(str(key).casefold(), self.asked, 1, 0.8)), "")


def kind(value: Any) -> str:
    """What a JSON value is, in a word."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    return (
        "list" if isinstance(value, (list, tuple)) else "object" if isinstance(value, Mapping) else type(value).__name__
    )
