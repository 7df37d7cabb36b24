"""An upload of many rows: what came, where each row stood, and how it is handed to a handler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from matching.errors import InputError, InvalidFileError, Issue
from matching.notices import Notice
from service.edge.errors import InvalidRequestError, place, summary
from service.errors import StateConflictError

__all__ = ["Batch", "write_batch"]

ROWS = re.compile(r"^rows (\d+) and (\d+)\b| at row (\d+)(?=[;,.]|$)")
"""How an issue names other rows in its words; anywhere else the same words belong to somebody's id."""


@dataclass(frozen=True)
class Batch:
    """What an upload brought: the rows in good form, the faults of the others, and where each row came from."""

    name: str
    rows: list[dict[str, Any]]
    origin: Sequence[int]  # position in the list, or line number
    faults: list[Issue] = field(default_factory=list)
    single: bool = False
    csv: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    notices: Sequence[Notice] = ()

    def locate(self, issue: Issue) -> Issue:
        """An issue of the handlers, which speak of positions in `rows`, at its place in the body."""
        if issue.row is None or not 0 <= issue.row < len(self.origin):
            return place(issue, ()) if issue.field else place(replace(issue, row=None), (), ())
        row = self.origin[issue.row]
        issue = replace(issue, reason=ROWS.sub(self._renumber, issue.reason))
        if self.csv:
            return replace(issue, row=row, source=f"{self.name}.csv")
        if self.single:
            return place(replace(issue, row=None, source=None), ())
        return place(replace(issue, row=row, source=self.name), (self.name, row))

    def _renumber(self, match: re.Match[str]) -> str:
        """Rows named in the words of an issue, as the sender counts them."""
        word = "line" if self.csv else "row"
        rows = [self.origin[int(text)] if int(text) < len(self.origin) else text for text in match.groups() if text]
        numbers = " and ".join(str(row) for row in rows)
        return f"{match[0][: match[0].index('row')]}{word}{'s' if len(rows) > 1 else ''} {numbers}"


Write = Callable[[list[dict[str, Any]], bool], dict[str, Any]]
"""(rows, dry_run) -> the handler's answer."""


def write_batch(batch: Batch, write: Write, *, dry_run: bool, lenient: bool = False) -> dict[str, Any]:
    """Hand the rows to a handler; report faults of form and of meaning together.

    Parameters
    ----------
    batch : Batch
    write : Write
    dry_run : bool
    lenient : bool
        Store the good rows and return the others in "rejected".

    Raises
    ------
    InputError, StateConflictError
        Every issue at its place in the body; nothing is stored.
    """
    if batch.faults and not lenient:
        issues = list(batch.faults)
        if batch.rows:
            try:
                write(batch.rows, True)
            except (InputError, StateConflictError) as error:
                issues += _located(batch, error, write)
        issues.sort(key=_by_row)
        raise (InvalidFileError if batch.csv else InvalidRequestError)(issues=issues)
    if lenient and batch.csv and batch.rows:
        # with swapped columns the few rows that happen to fit both ways must not be stored either
        failed = {entry["row"] for entry in write(batch.rows, True).get("rejected", ())}
        swapped = _swapped(batch, failed, write)
        if swapped is not None:
            raise InvalidFileError(issues=[swapped])
    try:
        answer = write(batch.rows, dry_run)
    except (InputError, StateConflictError) as error:
        if error.issues:
            error.issues = _located(batch, error, write)
            error.detail = summary(error.issues)
        raise
    rejected = [_rejected(issue) for issue in batch.faults]
    for entry in answer.get("rejected") or ():
        row = entry.get("row")
        rejected.append({**entry, "row": None if row is None else batch.origin[row]})
    if "rejected" in answer:
        answer["rejected"] = sorted(rejected, key=lambda entry: -1 if entry["row"] is None else entry["row"])
    ignored = [{"code": notice.code, "message": notice.message} for notice in batch.notices]
    answer["warnings"] = [*answer.get("warnings", ()), *ignored]
    return answer


def _by_row(issue: Issue) -> int:
    return -1 if issue.row is None else issue.row


def _located(batch: Batch, error: InputError | StateConflictError, write: Write) -> tuple[Issue, ...]:
    """The issues at their places in the body; one about swapped columns before them where that explains most."""
    issues = tuple(batch.locate(issue) for issue in error.issues)
    swapped = _swapped(batch, {issue.row for issue in error.issues}, write)
    return issues if swapped is None else (swapped, *issues)


def _swapped(batch: Batch, failed: set[int | None], write: Write) -> Issue | None:
    """An issue where most rows of a CSV body failed and fewer would fail with the two id columns exchanged."""
    failed = failed - {None}
    if not batch.csv or 2 * len(failed) <= len(batch.rows):
        return None
    turned = [{**row, "submission": row["reviewer"], "reviewer": row["submission"]} for row in batch.rows]
    left: set[int | None] = set()
    try:
        left = {entry["row"] for entry in write(turned, True).get("rejected", ())}
    except (InputError, StateConflictError) as error:
        left = {issue.row for issue in error.issues}
    if len(left - {None}) >= len(failed):
        return None
    words = "the columns look swapped: submission and reviewer stand in each other's place"
    return Issue(words, "columns-swapped", row=batch.origin[0], source=f"{batch.name}.csv")


def _rejected(issue: Issue) -> dict[str, Any]:
    value = issue.value if isinstance(issue.value, (str, int, float, bool)) else None
    return {"row": issue.row, "field": issue.field, "value": value, "reason": issue.reason, "code": issue.code}
