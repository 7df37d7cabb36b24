"""Outside ids and words for what is explained in rows and columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.conflicts import AFFILIATION, Conflicts
from matching.constraints.role_rows import RoleRows
from matching.profiles.resolve import ResolvedVenue

__all__ = ["PEOPLE_LISTED", "Names", "listed", "some"]

PEOPLE_LISTED = 50  # people named in one entry; the counts are always complete
IN_A_SENTENCE = 20

Reasons = Callable[[int, int], Sequence[str]]
"""(submission row, reviewer column) -> why the pair is barred, in words."""


def _never(row: int, col: int) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Names:
    """Outside ids in row and column order, and the words for what bars a pair.

    Attributes
    ----------
    submissions, reviewers : sequence of str
    reasons : callable
        (submission row, reviewer column) -> why the pair is barred, in words.
    may_be_lifted : callable
        (submission row, reviewer column) -> whether everything that bars the pair is a guess worth a second look, a
        shared affiliation for one; never authorship and never what somebody declared.
    submission_areas, reviewer_areas : sequence of sequence of str
        Subject areas in row and column order; empty where areas are not known.
    rows : RoleRows or None
        Of a problem of several roles; a row is then a role of a submission.
    """

    submissions: Sequence[str]
    reviewers: Sequence[str]
    reasons: Reasons
    may_be_lifted: Callable[[int, int], bool] = _never
    submission_areas: Sequence[Sequence[str]] = ()
    reviewer_areas: Sequence[Sequence[str]] = ()
    rows: RoleRows | None = None

    @classmethod
    def of(cls, resolved: ResolvedVenue, conflicts: Conflicts) -> Names:
        """The names of a venue and the words of its conflicts."""
        rows = RoleRows.of(resolved)
        of_role = resolved.submissions * len(rows.roles)  # rows are role by role
        count = max(1, rows.n_submissions)
        return cls(
            rows.names([submission.id for submission in resolved.submissions]),
            [reviewer.id for reviewer in resolved.reviewers],
            lambda row, col: [reason.evidence or reason.rule for reason in conflicts.reasons(row % count, col)],
            lambda row, col: all(reason.rule == AFFILIATION for reason in conflicts.reasons(row % count, col)),
            [submission.areas for submission in of_role],
            [reviewer.areas for reviewer in resolved.reviewers],
            None if len(rows.roles) == 1 else rows,
        )

    def people(self, row: int) -> NDArray[np.bool_]:
        """Whether each column is of the role of a row, bool of shape (n_reviewers,)."""
        if self.rows is None:
            return np.ones(len(self.reviewers), dtype=bool)
        out = np.zeros(len(self.reviewers), dtype=bool)
        out[self.rows.columns(self.rows.place(row)[0])] = True
        return out

    def role(self, row: int) -> str | None:
        """Role of a row in a problem of several, else None."""
        return None if self.rows is None else self.rows.roles[self.rows.place(row)[0]]


def some(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def listed(ids: Sequence[str], most: int = IN_A_SENTENCE) -> str:
    """Ids for a sentence: the first few, and how many more there are."""
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
