"""A plan of several roles as one problem: a row for each role and submission, a column for each person and role.

Row ``role * n_submissions + submission`` is served by the columns of its role alone, so a pair of a submission and a
column lies in one row and everything that is known of pairs keeps its meaning. Rules are counted over all rows of a
submission together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit
from matching.pairs import PairSet, in_row_order
from matching.profiles.resolve import ResolvedVenue
from matching.roles import REVIEWER
from matching.scores.base import ScoreOperator
from matching.scores.priced import Priced
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["ONE_ROLE", "RoleRows", "RoleScores"]

ONE_ROLE = "one role on a submission"
"""Name of the bound that keeps somebody with two roles from having both on one submission."""


@dataclass(frozen=True, eq=False)
class RoleRows:
    """Where the pairs of submissions and columns stand in a problem of several roles.

    Attributes
    ----------
    roles : tuple of str
    n_submissions : int
    edges : ndarray of shape (n_roles + 1,), int64
        Columns of role k are those from ``edges[k]`` up to ``edges[k + 1]``.
    weights : tuple of float, length n_roles
        What a score of each role counts.
    """

    roles: tuple[str, ...]
    n_submissions: int
    edges: IntArray
    weights: tuple[float, ...]

    @classmethod
    def of(cls, resolved: ResolvedVenue) -> RoleRows:
        """The rows and columns of a venue."""
        names, weights = zip(*((wish.name, wish.weight) for wish in resolved.roles), strict=True)
        return cls(names, len(resolved.submissions), resolved.role_columns, weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the problem: ``(n_roles * n_submissions, n_columns)``."""
        return len(self.roles) * self.n_submissions, int(self.edges[-1])

    @property
    def plain(self) -> bool:
        """Whether rows are submissions and scores count as they are: one role, of weight 1."""
        return len(self.roles) == 1 and self.weights[0] == 1.0

    @property
    def weight_of_columns(self) -> FloatArray:
        """Weight of the role of each column, float64 of shape (n_columns,)."""
        return np.repeat(np.asarray(self.weights, dtype=np.float64), np.diff(self.edges))

    def role_of(self, cols: IntArray) -> IntArray:
        """Role of each column, int64 of shape (n,)."""
        return np.searchsorted(self.edges, cols, side="right").astype(np.int64) - 1

    def rows_of(self, submissions: IntArray, cols: IntArray) -> IntArray:
        """The row in which each pair of a submission and a column stands, int64 of shape (n,)."""
        return self.role_of(cols) * self.n_submissions + submissions

    def pairs(self, pairs: PairArray) -> PairArray:
        """(submission, column) pairs as pairs of the problem, sorted."""
        if len(self.roles) == 1 or not len(pairs):
            return pairs
        return in_row_order(np.column_stack([self.rows_of(pairs[:, 0], pairs[:, 1]), pairs[:, 1]]))

    def names(self, submissions: Sequence[str]) -> list[str]:
        """A name for each row: the submission's id for reviewers or a single role, else ``<id>/<role>``."""
        return [
            name if role == REVIEWER or len(self.roles) == 1 else f"{name}/{role}"
            for role in self.roles
            for name in submissions
        ]

    def place(self, row: int) -> tuple[int, int]:
        """Role and submission of a row."""
        return divmod(row, self.n_submissions)

    def columns(self, role: int) -> slice:
        """Columns of a role."""
        return slice(int(self.edges[role]), int(self.edges[role + 1]))

    def table(self, table: sparse.csr_array) -> sparse.csr_array:
        """A table of submissions x columns as one of the problem's shape, each column in the rows of its role."""
        if len(self.roles) == 1:
            return table
        width = self.shape[1]
        parts = []
        for role in range(len(self.roles)):
            mine = self.columns(role)
            part = sparse.csr_array(table[:, mine])
            indices = part.indices + mine.start
            parts.append(sparse.csr_array((part.data, indices, part.indptr), shape=(self.n_submissions, width)))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def pair_set(self, pairs: PairSet) -> PairSet:
        """A set of (submission, column) pairs as a set of the problem's."""
        return pairs if len(self.roles) == 1 else PairSet.of_table(self.table(pairs.table()))

    def bounds(self, bounds: Sequence[Bound]) -> tuple[Bound, ...]:
        """Rules over submissions as rules over rows: what they count is counted over all roles they speak of.

        SharedReviewers are left as they are: they name the rows of the one role they are about.
        """
        return tuple(bounds) if len(self.roles) == 1 else tuple(map(self._bound, bounds))

    def _bound(self, bound: Bound) -> Bound:
        if isinstance(bound, PairLimit):
            rows = self.rows_of(bound.pairs[:, 0], bound.pairs[:, 1])
            return replace(bound, pairs=np.column_stack([rows, bound.pairs[:, 1]]))
        if not isinstance(bound, GroupBound):
            return bound
        named = set(self.role_of(np.unique(bound.reviewers.indices).astype(np.int64)).tolist())
        nothing = sparse.csr_array(bound.submissions.shape)
        # rows of roles that the rule does not speak of stay out, so that a rule within one role is as simple as before
        parts = [bound.submissions if role in named else nothing for role in range(len(self.roles))]
        return replace(bound, submissions=sparse.csr_array(sparse.hstack(parts, format="csr")))

    def one_role_each(
        self, people: Sequence[Sequence[int]], submissions: Sequence[str], reviewers: Sequence[str]
    ) -> tuple[Bound, ...]:
        """A bound by which nobody has two roles on one submission; none where nobody has two roles.

        Parameters
        ----------
        people : sequence of sequence of int
            Columns of each person who has several.
        submissions, reviewers : sequence of str
            Ids of submissions and columns.
        """
        if not people:
            return ()
        whose = np.repeat(np.arange(len(people)), [len(columns) for columns in people])
        cols = np.array([col for columns in people for col in columns], dtype=np.int64)
        member = sparse.coo_array((np.ones(cols.size), (whose, cols)), shape=(len(people), self.shape[1]))
        each = sparse.eye_array(self.n_submissions, format="csr")
        together = sparse.hstack([each] * len(self.roles), format="csr")
        names = [" and ".join(reviewers[col] for col in columns) for columns in people]
        return (
            GroupBound.of(
                ONE_ROLE, together, sparse.csr_array(member), upper=1, submission_labels=submissions,
                reviewer_labels=names,
            ),
        )  # fmt: skip


class RoleScores(ScoreOperator):
    """Scores of submissions x columns as those of a problem of several roles; unknown where the role is another.

    Parameters
    ----------
    scores : ScoreOperator of shape (n_submissions, n_columns)
    rows : RoleRows

    Notes
    -----
    Sweeps look at each role's own rows and columns, so they cost what they would cost if each role were a problem of
    its own; with one role and another, no pair that could not be used is looked at.
    """

    may_be_unknown = True

    def __init__(self, scores: ScoreOperator, rows: RoleRows) -> None:
        self.scores, self.rows = scores, rows
        self.shape = rows.shape
        self.tolerance = scores.tolerance * max(rows.weights)
        self._parts = tuple(_Part(scores, rows, role) for role in range(len(rows.roles)))
        self._cut: tuple[PairSet, list[PairSet]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cut": None}

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        if (stored := self.scores.stored) is None:
            return None
        rows, cols = self.rows.rows_of(stored[0], stored[1]), stored[1]
        order = np.lexsort((cols, rows))
        weights = np.array(self.rows.weights)[self.rows.role_of(cols)]
        return rows[order], cols[order], (stored[2] * weights)[order]

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        found = list(self._inside(rows, cols))
        if len(found) == 1 and found[0][1:] == (rows, cols):
            part, _, _ = found[0]
            return part.block(*part.own(rows, cols))
        kind = np.result_type(*(part.kind for part, _, _ in found)) if found else np.float32
        out = np.full((rows.stop - rows.start, cols.stop - cols.start), np.nan, dtype=kind)
        for part, lines, people in found:
            at = (
                slice(lines.start - rows.start, lines.stop - rows.start),
                slice(people.start - cols.start, people.stop - cols.start),
            )
            out[at] = part.block(*part.own(lines, people))
        return out

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        rows, cols = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        role = self.rows.role_of(cols)
        submission = rows - role * self.rows.n_submissions
        known = (submission >= 0) & (submission < self.rows.n_submissions)
        out = np.full(len(rows), np.nan)
        out[known] = self.scores.values(submission[known], cols[known]) * np.array(self.rows.weights)[role[known]]
        return out

    def bounds(self) -> tuple[float, float]:
        found = [part.bounds() for part in self._parts if all(part.shape)]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else (0.0, 0.0)

    def bounds_hint(self) -> tuple[float, float]:
        found = [part.bounds_hint() for part in self._parts if all(part.shape)]
        return (min(low for low, _ in found), max(high for _, high in found)) if found else (0.0, 0.0)

    def top_pairs(self, k: int, barred: PairSet, rng: np.random.Generator) -> PairArray:
        found = [np.empty((0, 2), dtype=np.int64)]
        for part, mine in zip(self._parts, self._split(barred), strict=True):
            pairs = part.top_pairs(k, mine, rng)
            found.append(pairs + np.array([part.first_row, part.first_col]))
        return np.concatenate(found)

    def exceeding(
        self,
        row_prices: FloatArray,
        col_prices: FloatArray,
        margin: float,
        limit: int | None = None,
        skip: PairSet | None = None,
    ) -> tuple[PairArray, FloatArray, bool]:
        pairs, excesses, complete = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)], True
        skipped = [None] * len(self._parts) if skip is None else self._split(skip)
        for part, mine in zip(self._parts, skipped, strict=True):
            lines, people = part.lines, part.people
            found, excess, all_found = part.exceeding(row_prices[lines], col_prices[people], margin, limit, mine)
            pairs.append(found + np.array([part.first_row, part.first_col]))
            excesses.append(excess)
            complete &= all_found
        return np.concatenate(pairs), np.concatenate(excesses), complete

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        return _PricedParts(self, row_prices, col_prices, weights)

    def _inside(self, rows: slice, cols: slice) -> Iterator[tuple[_Part, slice, slice]]:
        """Each role's part of a block."""
        for part in self._parts:
            lines = slice(max(rows.start, part.lines.start), min(rows.stop, part.lines.stop))
            people = slice(max(cols.start, part.people.start), min(cols.stop, part.people.stop))
            if lines.start < lines.stop and people.start < people.stop:
                yield part, lines, people

    def _split(self, pairs: PairSet) -> list[PairSet]:
        """A set of pairs for each role; the last one asked for is kept, since sweeps ask for the same again."""
        if self._cut is None or self._cut[0] is not pairs:
            table = pairs.table()
            cut = [PairSet.of_table(sparse.csr_array(table[part.lines][:, part.people])) for part in self._parts]
            self._cut = (pairs, cut)
        return self._cut[1]


class _Part(ScoreOperator):
    """One role's rows and columns, weighted."""

    def __init__(self, scores: ScoreOperator, rows: RoleRows, role: int) -> None:
        self.scores, self.weight = scores, rows.weights[role]
        self.people = rows.columns(role)
        self.first_row, self.first_col = role * rows.n_submissions, self.people.start
        self.lines = slice(self.first_row, self.first_row + rows.n_submissions)
        self.shape = (rows.n_submissions, self.people.stop - self.people.start)
        self.tolerance = scores.tolerance * self.weight

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large

    @cached_property
    def kind(self) -> np.dtype[np.floating]:
        """Of its blocks."""
        return self.block(slice(0, min(1, self.shape[0])), slice(0, min(1, self.shape[1]))).dtype

    def own(self, lines: slice, people: slice) -> tuple[slice, slice]:
        """Rows and columns of the whole as its own."""
        return (
            slice(lines.start - self.first_row, lines.stop - self.first_row),
            slice(people.start - self.first_col, people.stop - self.first_col),
        )

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part = self.scores.block(rows, slice(cols.start + self.first_col, cols.stop + self.first_col))
        # in double precision a product is what `values` has
        return part if self.weight == 1.0 else part.astype(np.float64) * self.weight

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.scores.values(rows, cols + self.first_col) * self.weight

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        everyone = np.zeros(self.scores.shape[1])
        everyone[self.people] = col_prices
        if self.weight != 1.0:
            weights = self.weight * (np.ones(self.shape[0]) if weights is None else weights)
        return _Shifted(self.scores.priced(row_prices, everyone, weights), self.first_col)


class _Shifted:
    """Priced blocks of some columns, counted from the first of them."""

    def __init__(self, priced: Priced, first: int) -> None:
        self._priced, self._first, self.tolerance = priced, first, priced.tolerance

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        return self._priced.block(rows, slice(cols.start + self._first, cols.stop + self._first))


class _PricedParts:
    """Priced blocks of all roles; unknown between them."""

    def __init__(
        self, scores: RoleScores, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None
    ) -> None:
        self._scores = scores
        self._priced = {
            part.first_row: part.priced(
                row_prices[part.lines], col_prices[part.people], None if weights is None else weights[part.lines]
            )
            for part in scores._parts
        }
        self.tolerance = max(priced.tolerance for priced in self._priced.values())

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        found = list(self._scores._inside(rows, cols))
        if len(found) == 1 and found[0][1:] == (rows, cols):
            part = found[0][0]
            return self._priced[part.first_row].block(*part.own(rows, cols))
        over = np.full((rows.stop - rows.start, cols.stop - cols.start), np.nan)
        for part, lines, people in found:
            over[
                lines.start - rows.start : lines.stop - rows.start, people.start - cols.start : people.stop - cols.start
            ] = self._priced[part.first_row].block(*part.own(lines, people))
        return over
