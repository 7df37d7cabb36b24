"""Outside names to rows and columns, for lists of pairs; what resolves to nobody is told, never lost in silence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import Issue
from matching.notices import Notice
from matching.profiles.identity import fold_id
from matching.profiles.people import People
from matching.profiles.records import check_type
from matching.profiles.submission import Submission
from matching.profiles.venue import DeclaredConflict, Lock
from matching.types import IntArray, PairArray

__all__ = ["SEVERAL", "References"]

UNKNOWN, SHARED = -1, -2
SEVERAL = -2  # in `References.own`: an account that does not tell which of its person's roles is meant
NAMES_LISTED = 50  # unknown names that get a notice each; the rest of a list share one
IDLE = ("takes no part in this run", "inactive-reference")


@dataclass
class References:
    """Turns names into rows and columns, collecting issues and notices on the way.

    Parameters
    ----------
    submissions : sequence of (Submission, int)
        Every known submission with its row, -1 for those out of the run.
    people : People
    columns : IntArray
        Column of each person, -1 for those out of the run.
    own : IntArray
        Column of each account that a lock on it means, SEVERAL where it may be one of two; like `columns` where
        everybody has one role.
    """

    submissions: Sequence[tuple[Submission, int]]
    people: People
    columns: IntArray
    own: IntArray
    issues: list[Issue] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._row = np.array([row for _, row in self.submissions], dtype=np.int64)
        self._exact = {submission.id: at for at, (submission, _) in enumerate(self.submissions)}
        folded: dict[str, list[int]] = defaultdict(list)
        for name, at in list(self._exact.items()):
            folded[fold_id(name)].append(at)
        self._folded = {name: held[0] for name, held in folded.items() if len(held) == 1}
        self._column = self.columns[np.array(self.people.person, dtype=np.int64)]

        self._ids = {row: submission.id for submission, row in self.submissions}
        self.width = int(self.columns.max(initial=-1)) + 1

    @property
    def submission_names(self) -> dict[str, int]:
        """Other spellings of submission ids -> position in `submissions`."""
        return {name: at for name, at in self._folded.items() if name not in self._exact}

    def submission_id(self, row: int) -> str:
        """Id of the submission in a row."""
        return self._ids[row]

    def _submission(self, name: object) -> int:
        if not isinstance(name, str):
            return UNKNOWN
        at = self._exact.get(name)
        return self._folded.get(fold_id(name), UNKNOWN) if at is None else at

    def _account(self, name: object) -> int:
        found = self._meant(name)
        return UNKNOWN if not found else found[0] if len(found) == 1 else SHARED

    def _meant(self, name: object) -> tuple[int, ...]:
        """Accounts a reference means; of several that share an address those in the run, if any."""
        found = self.people.find(name)
        if len(found) > 1:
            found = tuple(at for at in found if self._column[at] >= 0) or found[:1]
        return found

    def pairs(
        self, source: str, submissions: Sequence[Any], reviewers: Sequence[Any], index: IntArray
    ) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
        """Turn two columns of names into pairs; a notice tells each name that takes no part.

        Parameters
        ----------
        source : str
            The list the names come from.
        submissions, reviewers : sequence of length n
        index : ndarray of shape (n,), int64
            Row of each entry in `source`.

        Returns
        -------
        keys : ndarray of shape (m,), int64
            ``row * n_columns + column`` of the entries in the run.
        accounts : ndarray of shape (m,), int64
            The account each of them names.
        keep : ndarray of shape (n,), bool
            Which entries those are.
        """
        papers = _numbers(submissions, self._exact, self._submission)
        accounts = _numbers(reviewers, self.people.exact, self._account)
        keep = np.ones(len(papers), dtype=bool)
        for what, names, numbers, places in (
            ("submission", submissions, papers, self._row),
            ("reviewer", reviewers, accounts, self._column),
        ):
            place = np.full(len(numbers), UNKNOWN)
            place[numbers >= 0] = places[numbers[numbers >= 0]]
            for bad, phrase, code in (
                (numbers == UNKNOWN, "is unknown", "unresolved-reference"),
                (numbers == SHARED, "is the address of several people", "unresolved-reference"),
                ((numbers >= 0) & (place < 0), *IDLE),
            ):
                self._tell(source, what, names, np.flatnonzero(bad), index, phrase, code)
            keep &= place >= 0
        papers, accounts = papers[keep], accounts[keep]
        return self._row[papers] * self.width + self._column[accounts], accounts, keep

    def _tell(
        self, source: str, what: str, names: Sequence[Any], at: IntArray, index: IntArray, phrase: str, code: str
    ) -> None:
        by_name: dict[str, list[int]] = defaultdict(list)
        for position in at.tolist():
            name = names[position]
            by_name[name if isinstance(name, str) else repr(name)].append(int(index[position]))
        listed = sorted(by_name)
        for name in listed[:NAMES_LISTED]:
            rows = by_name[name]
            self.notices.append(
                Notice(
                    code,
                    f"{source}: {what} {name!r} {phrase}; not used: {_rows_in_words(rows)}",
                    (name,) if what == "submission" else (),
                    (name,) if what == "reviewer" else (),
                    {"source": source, "field": what, "value": name, "rows": tuple(rows), "count": len(rows)},
                )
            )
        if rest := listed[NAMES_LISTED:]:
            rows = sorted(row for name in rest for row in by_name[name])
            self.notices.append(
                Notice(
                    code,
                    f"{source}: {len(rest)} further names of a {what}: each {phrase}; not used: {_rows_in_words(rows)}",
                    tuple(rest) if what == "submission" else (),
                    tuple(rest) if what == "reviewer" else (),
                    {"source": source, "field": what, "value": None, "rows": tuple(rows), "count": len(rows)},
                )
            )

    def declared(self, records: Sequence[Any]) -> tuple[tuple[int, int, DeclaredConflict], ...]:
        """Declared conflicts by row and column, sorted; one that names nobody is an issue, never dropped.

        An address that several people share bars all of them.
        """
        typed, issues = check_type(records, DeclaredConflict, "conflicts")
        self.issues += issues
        idle = _Idle()
        found = []
        for row, record in typed:
            for name in ("rule", "evidence", "source"):
                value = getattr(record, name)
                if not isinstance(value, str):
                    self.issues.append(Issue(f"{name} must be text", "wrong-type", name, row, repr(value), "conflicts"))
            paper, accounts = self._both("conflicts", row, record.submission, record.reviewer, idle)
            if paper is None or not accounts:
                continue
            for account in accounts:
                place, column = int(self._row[paper]), int(self._column[account])
                if place >= 0 and column >= 0:
                    found.append((place, column, record))
        self._tell_idle("conflicts", idle)
        return tuple(sorted(found, key=_declared_order))

    def locks(self, records: Sequence[Any]) -> PairArray:
        """Locked pairs, sorted, each once; one that names nobody, several people or one in two roles is an issue."""
        typed, issues = check_type(records, Lock, "locks")
        self.issues += issues
        idle = _Idle()
        found: set[tuple[int, int]] = set()
        for row, record in typed:
            paper, accounts = self._both("locks", row, record.submission, record.reviewer, idle)
            if len(accounts) > 1:
                several = ", ".join(self.people.accounts[at].id for at in accounts)
                self.issues.append(
                    Issue(
                        f"reviewer {record.reviewer!r} is the address of several people ({several}); name one by id",
                        "ambiguous-reference",
                        "reviewer",
                        row,
                        record.reviewer,
                        "locks",
                    )
                )
            elif paper is not None and accounts:
                place, column = int(self._row[paper]), self._locked_column(record.reviewer, accounts[0])
                if column == SEVERAL:
                    self.issues.append(
                        Issue(
                            f"reviewer {record.reviewer!r} takes part in several roles; name the account of one",
                            "ambiguous-reference",
                            "reviewer",
                            row,
                            record.reviewer,
                            "locks",
                        )
                    )
                if place >= 0 and column >= 0:
                    found.add((place, column))
        self._tell_idle("locks", idle)
        locked = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
        locked.setflags(write=False)
        return locked

    def _locked_column(self, name: str, account: int) -> int:
        """Column of an account named by id or alias; an address says nothing of the role of its person."""
        columns = {int(self.own[at]) for at in self.people.members[self.people.person[account]]} - {-1}
        return int(self.own[account]) if name in self.people.exact or len(columns) == 1 else SEVERAL

    def _both(
        self, source: str, row: int, submission: Any, reviewer: Any, idle: _Idle
    ) -> tuple[int | None, tuple[int, ...]]:
        """Position of the submission and accounts of the reviewer; an issue for a name that is unknown."""
        paper = self._submission(submission)
        accounts = self._meant(reviewer)
        for what, name, known in (("submission", submission, paper >= 0), ("reviewer", reviewer, bool(accounts))):
            if not known:
                shown = name if name is None or isinstance(name, str) else repr(name)
                self.issues.append(Issue(f"{what} {shown!r} is unknown", "unknown-id", what, row, shown, source))
        if paper >= 0 and self._row[paper] < 0:
            idle.submissions.append((submission, row))
        if accounts and all(self._column[at] < 0 for at in accounts):
            idle.reviewers.append((reviewer, row))
        return (paper if paper >= 0 else None), accounts

    def _tell_idle(self, source: str, idle: _Idle) -> None:
        for what, entries in (("submission", idle.submissions), ("reviewer", idle.reviewers)):
            names, rows = [name for name, _ in entries], np.array([row for _, row in entries], dtype=np.int64)
            self._tell(source, what, names, np.arange(rows.size), rows, *IDLE)


@dataclass
class _Idle:
    """References to records out of the run, each with its row."""

    submissions: list[tuple[str, int]] = field(default_factory=list)
    reviewers: list[tuple[str, int]] = field(default_factory=list)


def _declared_order(entry: tuple[int, int, DeclaredConflict]) -> tuple[int, int, list[str]]:
    row, col, conflict = entry
    texts = (conflict.rule, conflict.evidence, conflict.source, conflict.submission, conflict.reviewer)
    return row, col, list(map(str, texts))


def _numbers(names: Sequence[Any], exact: dict[str, int], find: Callable[[object], int]) -> IntArray:
    """A number for each name: from `exact` where it is there, else from `find`, asked once for each name."""
    get = exact.get
    try:
        numbers = np.fromiter((get(name, UNKNOWN) for name in names), np.int64, len(names))
    except TypeError:  # something that cannot be a key is nobody's name
        numbers = np.fromiter(
            (get(name, UNKNOWN) if isinstance(name, str) else UNKNOWN for name in names), np.int64, len(names)
        )
    asked: dict[str, int] = {}
    for at in np.flatnonzero(numbers == UNKNOWN).tolist():
        name = names[at]
        if isinstance(name, str):
            if name not in asked:
                asked[name] = find(name)
            numbers[at] = asked[name]
    return numbers


def _rows_in_words(rows: list[int]) -> str:
    shown = ", ".join(map(str, rows[:10])) + (", ..." if len(rows) > 10 else "")
    return f"row {shown}" if len(rows) == 1 else f"{len(rows)} rows ({shown})"
