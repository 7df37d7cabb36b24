"""Faults of one file gathered until all of it has been read, then raised together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from matching.errors import InputError, InvalidFileError, Issue
from matching.notices import Notice

__all__ = ["Faults"]

ISSUES_KEPT = 10_000  # a million-row file with one bad column must not cost a million objects
VALUE_SHOWN = 200  # characters of an offending text that are repeated back


class Faults:
    """Issues found in one source.

    Parameters
    ----------
    source : str
        File or list the faults are in; becomes `Issue.source`.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.issues: list[Issue] = []
        self.dropped = 0
        self.unused: Counter[tuple[str, bool, str]] = Counter()

    def __bool__(self) -> bool:
        return bool(self.issues)

    def add(
        self, reason: str, code: str = "invalid", field: str | None = None, row: int | None = None, value: Any = None
    ) -> None:
        """Note one fault; `row` is a line number for files and a position for lists."""
        if len(self.issues) >= ISSUES_KEPT:
            self.dropped += 1
            return
        if isinstance(value, str) and len(value) > VALUE_SHOWN:
            value = value[:VALUE_SHOWN] + "…"
        self.issues.append(Issue(reason, code, field, row, value, self.source))

    def extend(self, issues: Iterable[Issue]) -> None:
        """Take over issues that already say where they are."""
        for issue in issues:
            if len(self.issues) >= ISSUES_KEPT:
                self.dropped += 1
            else:
                self.issues.append(issue)

    def note_unused(self, field: str, kept: bool, near: str = "") -> None:
        """Count a field nobody reads: kept beside the record or lost, and the known field it resembles."""
        self.unused[field, kept, near] += 1

    def notices(self) -> tuple[Notice, ...]:
        """One notice for each field nobody reads."""
        found = []
        for (field, kept, near), count in sorted(self.unused.items()):
            fate = "is kept but not used" if kept else "is not kept"
            hint = f"; did you mean {near!r}?" if near else ""
            message = f"{self.source}: field {field!r} ({count} records) {fate}{hint}"
            data = {"file": self.source, "field": field, "records": count}
            found.append(Notice("unused-field", message, data=data))
        return tuple(found)

    def raise_if_any(self, error: type[InputError] = InvalidFileError) -> None:
        """Raise `error` with every fault, by source and row; do nothing where there is none."""
        if not self.issues:
            return
        issues = sorted(self.issues, key=lambda issue: (issue.source or "", issue.row is not None, issue.row or 0))
        if self.dropped:
            issues.append(Issue(f"{self.dropped} further faults are not listed", "more-faults", source=self.source))
        raise error(issues=issues)
