"""One key of a rule at a time: what it may hold, and a fault with its place for what it may not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from matching.errors import Issue
from matching.rules.values import Condition, Scalar, Selection, Sharing, is_scalar, moment

__all__ = ["READERS", "Faults", "read_selection"]

MOST_COUNT = (1 << 31) - 1
MOST_PRICE = 1e9
MOST_WEIGHT = 100.0
LENGTHS = (2, 3, 4)

Read = Callable[[Any, str, "Faults"], Any]


class Faults:
    """Faults of one list of rules.

    Parameters
    ----------
    source : str
        Becomes `Issue.source`.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.issues: list[Issue] = []

    def add(self, where: str, reason: str, code: str, value: Any = None) -> None:
        """Note one fault; `where` is the place, such as ``rules[2].at_least``."""
        shown = value if value is None or is_scalar(value) else _repr(value)
        self.issues.append(Issue(reason, code, where, value=shown, source=self.source))


def _repr(value: Any) -> str:
    try:
        return repr(value)[:80]
    except ValueError:  # somewhere in it is a whole number of more digits than Python writes
        return f"something of type {type(value).__name__}"


def read_selection(value: Any, where: str, faults: Faults) -> Selection:
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        faults.add(where, 'must be an object of attributes, such as {"seniority": "senior"}', "wrong-type", value)
        return ()
    if not value:
        faults.add(where, "names no attribute; leave it out to mean all", "missing")
    found = []
    for attribute, wanted in value.items():
        at = f"{where}.{attribute}"
        if not isinstance(wanted, Mapping):
            found.append(Condition(str(attribute), values=_values(wanted, at, faults)))
            continue
        if not wanted:
            faults.add(at, "says nothing; use not, at_least or at_most", "missing")
        for key in wanted:
            if key not in ("not", "at_least", "at_most"):
                faults.add(f"{at}.{key}", f"there is no {key}; use not, at_least or at_most", "unknown-option")
        excluded = _values(wanted["not"], f"{at}.not", faults) if "not" in wanted else ()
        limits = [
            _limit(wanted[key], f"{at}.{key}", faults) if key in wanted else None for key in ("at_least", "at_most")
        ]
        if None not in limits:
            if isinstance(limits[0], datetime) != isinstance(limits[1], datetime):
                faults.add(at, "at_least and at_most must both be numbers or both be dates", "wrong-type")
            elif limits[0] > limits[1]:  # type: ignore[operator]
                faults.add(at, "at_least is above at_most", "contradiction")
        found.append(Condition(str(attribute), None, excluded, limits[0], limits[1]))
    return tuple(found)


def _values(value: Any, where: str, faults: Faults) -> tuple[Scalar, ...]:
    several = isinstance(value, list | tuple)
    entries = list(value) if several else [value]
    if several and not entries:
        faults.add(where, "the list is empty; name at least one value", "missing")
    out: list[Scalar] = []
    for at, entry in enumerate(entries):
        place = f"{where}[{at}]" if several else where
        if entry is not None and not is_scalar(entry):
            faults.add(place, "must be a text, a number that float64 holds, true, false or null", "wrong-type", entry)
        elif isinstance(entry, str) and not entry.strip():
            faults.add(place, "is blank; null stands for no value", "wrong-type", entry)
        else:
            out.append(entry)
    return tuple(out)


def _limit(value: Any, where: str, faults: Faults) -> float | datetime | None:
    if _is_number(value):
        return float(value)
    found = moment(value)
    if found is None:
        faults.add(where, 'must be a number or a date such as "2025-06-30"', "wrong-type", value)
    return found


def _is_number(value: Any) -> bool:
    # compared, not converted: a whole number of 400 digits has no float
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _count(value: Any, where: str, faults: Faults) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT:
        return value
    faults.add(where, "must be a whole number of at least 0", "out-of-range", value)
    return None


def _name(value: Any, where: str, faults: Faults) -> str | None:
    if isinstance(value, str) and value.strip():
        return value.strip()
    faults.add(where, "must be the name of an attribute", "wrong-type", value)
    return None


def _one_of(*known: Any) -> Read:
    def read(value: Any, where: str, faults: Faults) -> Any:
        if type(value) is not type(known[0]) or value not in known:
            faults.add(where, f"must be {' or '.join(map(str, known))}", "out-of-range", value)
            return None
        return value

    return read


def _number(most: float) -> Read:
    def read(value: Any, where: str, faults: Faults) -> float | None:
        if _is_number(value) and 0 < value <= most:
            return float(value)
        faults.add(where, f"must be a number above 0 and at most {most:g}", "out-of-range", value)
        return None

    return read


def _sharing(value: Any, where: str, faults: Faults) -> Sharing | None:
    if isinstance(value, Mapping):
        for key in value:
            if key not in ("submissions", "reviewers"):
                faults.add(f"{where}.{key}", f"there is no {key}; it has: submissions, reviewers", "unknown-option")
        names = [_name(value.get(side), f"{where}.{side}", faults) for side in ("submissions", "reviewers")]
    else:
        names = [_name(value, where, faults)] * 2
    return None if None in names else Sharing(*names)  # type: ignore[arg-type]


def _groups(value: Any, where: str, faults: Faults) -> Mapping[str, tuple[Scalar, ...]]:
    if not isinstance(value, Mapping) or not value:
        faults.add(where, 'must map names to lists of values, such as {"Europe": ["DE", "FR"]}', "wrong-type", value)
        return {}
    found: dict[str, tuple[Scalar, ...]] = {}
    for name, members in value.items():
        at = f"{where}.{name}"
        if not isinstance(members, list | tuple) or not members or None in members:
            faults.add(at, "must be a list of values, none of them null", "wrong-type", members)
            continue
        found[str(name)] = _values(members, at, faults)
    return MappingProxyType(found)


READERS: Mapping[str, Read] = {
    "at_least": _count,
    "at_most": _count,
    "each": _name,
    "attribute": _sharing,
    "sharing": _sharing,
    "groups": _groups,
    "missing": _one_of("allowed", "barred"),
    "among": _one_of("all", "bids"),
    "length": _one_of(*LENGTHS),
    "weight": _number(MOST_WEIGHT),
    "price": _number(MOST_PRICE),
    "from": _name,
    "until": _name,
    "away": _name,
}
