"""A set of (submission, reviewer) pairs with fast membership, kept as compressed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from matching.errors import InvalidProblemError, Issue
from matching.types import IntArray, PairArray

__all__ = ["PairSet", "check_pairs", "in_row_order"]


def in_row_order(pairs: PairArray) -> PairArray:
    """The pairs sorted by submission, then by reviewer; a copy."""
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def check_pairs(pairs: ArrayLike | None, shape: tuple[int, int], name: str) -> PairArray:
    """Pairs as int64 of shape (n, 2), every entry inside `shape`.

    Raises
    ------
    InvalidProblemError
        Not of shape (n, 2), not integers, or out of range; every bad row is listed.
    """
    if pairs is None:
        return np.empty((0, 2), dtype=np.int64)
    if isinstance(pairs, set | frozenset):
        pairs = sorted(pairs)
    try:
        array = np.asarray(pairs)
    except ValueError as error:
        raise InvalidProblemError(f"{name} must have shape (n, 2): {error}") from error
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if isinstance(pairs, list | tuple) and any(
        isinstance(at, bool) for pair in pairs if isinstance(pair, list | tuple) for at in pair
    ):
        raise InvalidProblemError(f"{name} must hold integers; true and false are none")
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidProblemError(
            f"{name} must have shape (n, 2), one (submission, reviewer) pair a row; got {array.shape}"
        )
    if array.dtype.kind not in "iu":
        raise InvalidProblemError(f"{name} must hold integers, got {array.dtype}")
    array = array.astype(np.int64)
    bad = np.flatnonzero(((array < 0) | (array >= np.array(shape))).any(axis=1))
    if bad.size:
        raise InvalidProblemError(
            issues=[
                Issue(
                    f"pair {tuple(array[row].tolist())} is outside {shape[0]} submissions x {shape[1]} reviewers",
                    "out-of-range",
                    row=int(row),
                    value=array[row].tolist(),
                    source=name,
                )
                for row in bad
            ]
        )
    return array


class PairSet:
    """An immutable set of pairs, 4 bytes a pair plus 8 bytes a submission.

    Parameters
    ----------
    pairs : array_like of int, shape (n, 2)
        Repeats count once.
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    """

    __slots__ = ("indices", "indptr", "shape")

    def __init__(self, pairs: ArrayLike | None, shape: tuple[int, int], name: str = "pairs") -> None:
        rows, cols = in_row_order(check_pairs(pairs, shape, name)).T
        self.shape = shape
        if rows.size:
            fresh = np.ones(rows.size, dtype=bool)
            fresh[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
            rows, cols = rows[fresh], cols[fresh]
        self.indices = cols.astype(np.int32)
        self.indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=self.indptr[1:])
        self.indices.setflags(write=False)
        self.indptr.setflags(write=False)

    @classmethod
    def of_rows(cls, cols: Sequence[IntArray], shape: tuple[int, int]) -> PairSet:
        """From the reviewers of each submission, ascending and each once; they are trusted."""
        out = cls(None, shape)
        out.indices = np.concatenate([*cols, np.empty(0, dtype=np.int64)]).astype(np.int32)
        out.indptr = np.concatenate([[0], np.cumsum([len(line) for line in cols])]).astype(np.int64)
        out.indices.setflags(write=False)
        out.indptr.setflags(write=False)
        return out

    @classmethod
    def of_table(cls, table: sparse.sparray) -> PairSet:
        """The places stored in a sparse array; costs no more than the array itself."""
        held = sparse.csr_array(table)
        if not held.has_canonical_format:
            held = held.copy()
            held.sum_duplicates()
        out = cls(None, held.shape)
        out.indices = held.indices.astype(np.int32)
        out.indptr = held.indptr.astype(np.int64)
        out.indices.setflags(write=False)
        out.indptr.setflags(write=False)
        return out

    def table(self) -> sparse.csr_array:
        """The set as a sparse array, bool of shape `shape`."""
        return sparse.csr_array((np.ones(len(self), dtype=bool), self.indices, self.indptr), shape=self.shape)

    def __len__(self) -> int:
        return int(self.indptr[-1])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(map(tuple, self.pairs().tolist()))

    def row(self, submission: int) -> NDArray[np.int32]:
        """Reviewers paired with one submission, ascending."""
        line: NDArray[np.int32] = self.indices[self.indptr[submission] : self.indptr[submission + 1]]
        return line

    def rows(self) -> IntArray:
        """The submission of every pair, int64 of shape (n,)."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int64), np.diff(self.indptr))

    def pairs(self) -> PairArray:
        """All pairs in order, int64 of shape (n, 2)."""
        return np.column_stack([self.rows(), self.indices.astype(np.int64)])

    def contains(self, rows: IntArray, cols: IntArray) -> NDArray[np.bool_]:
        """For each pair (rows[i], cols[i]) whether it is in the set."""
        rows, cols = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        if not len(self) or not rows.size:
            return np.zeros(rows.shape, dtype=bool)
        # A binary search in each pair's own row, all at once: a few pairs cost little against a large set.
        first, end = self.indptr[rows], self.indptr[rows + 1]
        stop = end
        while True:
            open_ = first < stop
            if not open_.any():
                break
            middle = (first + stop) >> 1
            below = open_ & (self.indices[np.minimum(middle, len(self) - 1)] < cols)
            first = np.where(below, middle + 1, first)
            stop = np.where(open_ & ~below, middle, stop)
        found: NDArray[np.bool_] = (first < end) & (self.indices[np.minimum(first, len(self) - 1)] == cols)
        return found

    def union(self, pairs: PairArray) -> PairSet:
        """The set with further pairs; itself where there are none."""
        if not len(pairs):
            return self
        return PairSet(np.concatenate([self.pairs(), pairs]), self.shape)

    def within(self, rows: slice, cols: slice) -> tuple[IntArray, IntArray]:
        """Pairs inside a block, as positions relative to the block's first row and column."""
        start, stop = self.indptr[rows.start], self.indptr[rows.stop]
        inside = self.indices[start:stop].astype(np.int64)
        local = np.repeat(
            np.arange(rows.stop - rows.start, dtype=np.int64), np.diff(self.indptr[rows.start : rows.stop + 1])
        )
        keep = (inside >= cols.start) & (inside < cols.stop)
        return local[keep], inside[keep] - cols.start

    def count_by_submission(self) -> IntArray:
        """Pairs of each submission, int64 of shape (n_submissions,)."""
        return np.diff(self.indptr)

    def count_by_reviewer(self) -> IntArray:
        """Pairs of each reviewer, int64 of shape (n_reviewers,)."""
        return np.bincount(self.indices, minlength=self.shape[1]).astype(np.int64)
