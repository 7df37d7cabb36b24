"""Records as they came, checked for form and with missing values in their one agreed form.

Null text becomes "", null lists become empty, blank entries of address and id lists go; everything else of the
wrong type is an issue. What is returned can be read without further checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, TypeVar

from matching.errors import Issue
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.roles import ROLES

__all__ = ["MOST_REVIEWS", "check_count", "check_reviewers", "check_submissions", "check_type"]

MOST_REVIEWS = (1 << 31) - 1  # as in the assignment problem: keeps every sum inside int64

Record = TypeVar("Record")


class _Faults:
    """Issues of one list of records."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.issues: list[Issue] = []

    def add(self, row: int, field: str | None, value: Any, reason: str, code: str = "wrong-type") -> None:
        self.issues.append(Issue(reason, code, field, row, _shown(value), self.source))


def _shown(value: Any) -> Any:
    """Plain values as they are, anything else as short text, so that every issue can be sent as JSON."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def check_type(records: Iterable[Any], kind: type[Record], source: str) -> tuple[list[tuple[int, Record]], list[Issue]]:
    """The records of one kind with their rows, and an issue for each that is something else."""
    good, issues = [], []
    for row, record in enumerate(records):
        if isinstance(record, kind):
            good.append((row, record))
        else:
            issues.append(Issue(f"must be a {kind.__name__}", "wrong-type", None, row, _shown(record), source))
    return good, issues


def check_count(value: Any, field: str, row: int | None, source: str) -> tuple[int | None, Issue | None]:
    """A whole number of reviews in [0, MOST_REVIEWS] or None, or else the issue. 2.0 and True are no whole numbers."""
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None, Issue(
            f"must be a whole number of reviews, got {_shown(value)!r}",
            "not-integer",
            field,
            row,
            _shown(value),
            source,
        )
    number = int(value)
    if not 0 <= number <= MOST_REVIEWS:
        return None, Issue(
            f"must be between 0 and {MOST_REVIEWS}, got {number}", "out-of-range", field, row, number, source
        )
    return number, None


def check_reviewers(records: Iterable[Any]) -> tuple[list[tuple[int, Reviewer]], list[Issue]]:
    """Reviewers that have an id, cleaned, with their rows; and every fault of form."""
    return _check(records, Reviewer, "reviewers", _clean_reviewer)


def check_submissions(records: Iterable[Any]) -> tuple[list[tuple[int, Submission]], list[Issue]]:
    """Submissions that have an id, cleaned, with their rows; and every fault of form."""
    return _check(records, Submission, "submissions", _clean_submission)


def _check(
    records: Iterable[Any], kind: type[Record], source: str, clean: Callable[[int, Any, _Faults], Record]
) -> tuple[list[tuple[int, Record]], list[Issue]]:
    typed, issues = check_type(records, kind, source)
    faults = _Faults(source)
    faults.issues += issues
    good: list[tuple[int, Record]] = []
    for row, record in typed:
        name = getattr(record, "id")  # noqa: B009 - both kinds have one; the type variable does not say so
        if name is not None and not isinstance(name, str):
            faults.add(row, "id", name, "id must be text")
        elif name is None or not name.strip():
            faults.add(row, "id", name, "id is missing or blank", "blank-id")
        else:
            good.append((row, clean(row, record, faults)))
            continue
        clean(row, record, faults)  # the other faults of the record are told in the same answer
    return good, faults.issues


def _clean_reviewer(row: int, record: Reviewer, faults: _Faults) -> Reviewer:
    new: dict[str, Any] = {}
    for field in ("name",):
        _text(row, record, field, faults, new)
    for field in ("seniority", "country", "same_person_as"):
        _optional(row, record, field, faults, new)
    for field in ("emails", "aliases", "keywords", "areas", "affiliations", "conflict_domains"):
        _texts(row, record, field, faults, new)
    for field in ("load_min", "load_max"):
        _count(row, record, field, faults, new)
    _other(row, record, faults, new)
    if record.role not in ROLES:
        faults.add(row, "role", record.role, f"role must be one of {', '.join(ROLES)}", "unknown-role")
    if (
        (low := new.get("load_min", record.load_min)) is not None
        and (high := new.get("load_max", record.load_max)) is not None
        and low > high
    ):
        faults.add(row, "load_min", low, f"load_min {low} is above load_max {high}", "contradiction")
    _children(row, record, "publications", Publication, _clean_publication, faults, new)
    return replace(record, **new) if new else record


def _clean_submission(row: int, record: Submission, faults: _Faults) -> Submission:
    new: dict[str, Any] = {}
    for field in ("title", "abstract"):
        _text(row, record, field, faults, new)
    _optional(row, record, "track", faults, new)
    for field in ("areas", "keywords"):
        _texts(row, record, field, faults, new)
    _count(row, record, "demand", faults, new)
    _other(row, record, faults, new)
    _children(row, record, "authors", Author, _clean_author, faults, new)
    return replace(record, **new) if new else record


def _clean_publication(row: int, record: Publication, field: str, faults: _Faults) -> Publication:
    new: dict[str, Any] = {}
    for name in ("id", "title", "abstract"):
        _text(row, record, name, faults, new, field)
    year = record.year
    if year is not None and type(year) is not int:
        # a bad year is neutral for recency, as a missing one; tables hand good ones out as numbers of their own kind
        whole = isinstance(year, Real) and not isinstance(year, bool) and math.isfinite(year) and year == int(year)
        new["year"] = int(year) if whole else None
    weight = record.weight
    if weight is None:
        new["weight"] = 1.0
    elif isinstance(weight, (bool, str)) or not _is_number(weight):
        faults.add(row, f"{field}.weight", weight, "weight must be a number")
    elif not (math.isfinite(weight) and weight >= 0):
        reason = f"weight must be a finite number of at least 0, got {weight}"
        faults.add(row, f"{field}.weight", weight, reason, "out-of-range")
    return replace(record, **new) if new else record


def _clean_author(row: int, record: Author, field: str, faults: _Faults) -> Author:
    new: dict[str, Any] = {}
    for name in ("name", "email", "affiliation"):
        _text(row, record, name, faults, new, field)
    _optional(row, record, "id", faults, new, field)
    return replace(record, **new) if new else record


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _path(within: str, field: str) -> str:
    return f"{within}.{field}" if within else field


def _text(row: int, record: Any, field: str, faults: _Faults, new: dict[str, Any], within: str = "") -> None:
    value = getattr(record, field)
    if type(value) is str:
        return
    if value is None:
        new[field] = ""
    elif not isinstance(value, str):
        faults.add(row, _path(within, field), value, f"{field} must be text")
        new[field] = ""


def _optional(row: int, record: Any, field: str, faults: _Faults, new: dict[str, Any], within: str = "") -> None:
    value = getattr(record, field)
    if value is None:
        return
    if not isinstance(value, str):
        faults.add(row, _path(within, field), value, f"{field} must be text")
        new[field] = None
    elif not value.strip():
        new[field] = None


def _texts(row: int, record: Any, field: str, faults: _Faults, new: dict[str, Any]) -> None:
    value = getattr(record, field)
    if type(value) is tuple and all(type(entry) is str and entry.strip() for entry in value):
        return
    if not isinstance(value, (tuple, list)):
        faults.add(row, field, value, f"{field} must be a list of texts")
        new[field] = ()
        return
    kept = []
    for at, entry in enumerate(value):
        if entry is None or (isinstance(entry, str) and not entry.strip()):
            continue
        if isinstance(entry, str):
            kept.append(entry)
        else:
            faults.add(row, f"{field}.{at}", entry, f"{field} must be a list of texts")
    new[field] = tuple(kept)


def _count(row: int, record: Any, field: str, faults: _Faults, new: dict[str, Any]) -> None:
    value = getattr(record, field)
    number, issue = check_count(value, field, row, faults.source)
    if issue is not None:
        faults.issues.append(issue)
    if number is not value:
        new[field] = number


def _other(row: int, record: Any, faults: _Faults, new: dict[str, Any]) -> None:
    if not isinstance(record.active, bool):
        faults.add(row, "active", record.active, "active must be true or false")
        new["active"] = True
    if not isinstance(record.extra, Mapping):
        faults.add(row, "extra", record.extra, "extra must be an object")
        new["extra"] = {}


def _children(
    row: int,
    record: Any,
    field: str,
    kind: type[Any],
    clean: Callable[[int, Any, str, _Faults], Any],
    faults: _Faults,
    new: dict[str, Any],
) -> None:
    value = getattr(record, field)
    if not isinstance(value, (tuple, list)):
        faults.add(row, field, value, f"{field} must be a list of {kind.__name__}")
        new[field] = ()
        return
    cleaned = []
    for at, entry in enumerate(value):
        if isinstance(entry, kind):
            cleaned.append(clean(row, entry, f"{field}.{at}", faults))
        else:
            faults.add(row, f"{field}.{at}", entry, f"must be a {kind.__name__}")
    if len(cleaned) != len(value) or any(ours is not theirs for ours, theirs in zip(cleaned, value)):
        new[field] = tuple(cleaned)
