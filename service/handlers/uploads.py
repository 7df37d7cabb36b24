"""What uploads about pairs share: names to keys, repeated pairs, all rows or none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from matching.errors import Issue
from service.handlers.common import Record
from service.handlers.people import ReviewerNames, SubmissionNames
from service.translate import dumps

__all__ = ["Upload", "read_upload"]


@dataclass(frozen=True)
class Upload:
    """An upload after resolving.

    Attributes
    ----------
    rows : list of tuple
        (submission_key, reviewer_key, the columns, given), each pair once; only of items without an issue.
    issues : list of Issue
        Every fault, in row order.
    repeated : int
        Items that say what an earlier one of the same upload said, and were left out.
    origins : sequence of int
        The item each of `rows` was read from, the first where several say the same.
    """

    rows: list[tuple[Any, ...]]
    issues: list[Issue]
    repeated: int
    origins: Sequence[int] = ()

    @property
    def rejected(self) -> list[Record]:
        """The faults as a lenient upload returns them."""
        return [
            {"row": issue.row, "field": issue.field, "value": issue.value, "reason": issue.reason, "code": issue.code}
            for issue in self.issues
        ]

    @property
    def warnings(self) -> list[Record]:
        """A notice about repeated rows, if there are any."""
        if not self.repeated:
            return []
        message = f"{self.repeated} rows repeat an earlier row of the upload word for word and were counted once"
        return [
            {
                "code": "repeated-rows", "message": message, "submissions": [], "reviewers": [], "severity": "warning",
                "data": {"count": self.repeated},
            }
        ]  # fmt: skip


def read_upload(
    connection: Connection,
    venue_key: int,
    items: Sequence[Mapping[str, Any]],
    source: str,
    columns: Sequence[str],
    faults: Iterable[Issue] = (),
    shared: bool = False,
) -> Upload:
    """Resolve every name of an upload and put its rows in the form of their table.

    Parameters
    ----------
    items : sequence of mapping
        Each with submission, reviewer and the keys in `columns`.
    source : str
        Name of the list, for issues.
    columns : sequence of str
        What is stored beside the pair; two items of one pair that differ in any of them contradict each other.
    faults : iterable of Issue
        Found before; their rows are left out.
    shared : bool
        For conflicts: an address that several people share means all of them, and several reasons for one pair
        are all kept. Else both are faults.
    """
    submissions = SubmissionNames(connection, venue_key, (item["submission"] for item in items))
    reviewers = ReviewerNames(connection, venue_key, (item["reviewer"] for item in items))
    issues = list(faults)
    bad = {issue.row for issue in issues}
    found: dict[tuple[int, int], tuple[int, tuple[Any, ...]]] = {}
    contradictory: dict[tuple[int, int], list[int]] = defaultdict(list)
    repeated = 0
    for row, item in enumerate(items):
        submission, people = submissions.get(item["submission"]), reviewers.get(item["reviewer"])
        if submission is None or not people or (len(people) > 1 and not shared):
            issues += _unresolved(row, item, submission, people, reviewers, source)
            continue
        if row in bad:
            continue
        values = tuple([item[name] for name in columns])
        for reviewer in people:
            first = found.setdefault((submission, reviewer), (row, values))
            if first[0] == row:
                continue
            if first[1] == values:
                repeated += 1
            elif shared:  # two reasons for one conflict do not contradict each other
                found[submission, reviewer] = (first[0], tuple(map(_both, first[1], values)))
            else:
                contradictory[submission, reviewer].append(row)
    for pair, others in contradictory.items():
        row, _ = found.pop(pair)  # nobody can say which of them is meant
        issues += [_contradiction(items[other], row, other, columns, source) for other in others]
        issues.append(_contradiction(items[row], others[0], row, columns, source))
    issues.sort(key=lambda issue: (-1 if issue.row is None else issue.row, issue.field or ""))
    aliased = not (submissions.all_ids and reviewers.all_ids)
    rows = [
        (*pair, *values, _given(items[row], submissions, reviewers) if aliased else None)
        for pair, (row, values) in found.items()
    ]
    return Upload(rows, issues, repeated, [row for row, _ in found.values()])


def _unresolved(
    row: int,
    item: Mapping[str, Any],
    submission: int | None,
    people: Sequence[int],
    reviewers: ReviewerNames,
    source: str,
) -> list[Issue]:
    issues = [] if submission is not None else [_unknown("submission", row, item["submission"], source)]
    if not people:
        issues.append(_unknown("reviewer", row, item["reviewer"], source))
    elif len(people) > 1:
        several = reviewers.describe(people)
        reason = f"{item['reviewer']!r} is the address of several people ({several}); name one by id"
        issues.append(Issue(reason, "ambiguous-reference", "reviewer", row, item["reviewer"], source))
    return issues


def _both(one: str, other: str) -> str:
    """Two texts as one, "; " between them, neither twice nor empty."""
    parts = [part for part in one.split("; ") if part]
    return "; ".join(parts if not other or other in parts else [*parts, other])


def _given(item: Mapping[str, Any], submissions: SubmissionNames, reviewers: ReviewerNames) -> str | None:
    """The names of an upload that are not the ids of what they mean, as JSON; None where both are."""
    is_submission_id, is_reviewer_id = submissions.is_id(item["submission"]), reviewers.is_id(item["reviewer"])
    if is_submission_id and is_reviewer_id:
        return None
    other = {} if is_submission_id else {"submission": item["submission"]}
    return dumps(other if is_reviewer_id else {**other, "reviewer": item["reviewer"]})


def _unknown(field: str, row: int, name: str, source: str) -> Issue:
    return Issue(f"{field} {name!r} is unknown in this venue", "unknown-reference", field, row, name, source)


def _contradiction(item: Mapping[str, Any], one: int, other: int, columns: Sequence[str], source: str) -> Issue:
    field = columns[0] if columns else None
    reason = (
        f"rows {min(one, other)} and {max(one, other)} say different things about submission {item['submission']!r} "
        f"and reviewer {item['reviewer']!r}"
    )
    return Issue(reason, "contradiction", field, other, item[field] if field else None, source)
