"""The operator protocol: scores of all pairs without holding the matrix.

A solver asks an operator four things: a block, the exact values of given pairs, the best candidates of
every row and column, and which pairs exceed given row and column prices. The first two are each
operator's own; the other two are sweeps over blocks and come with the base class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from matching.errors import InvalidScoresError, Issue
from matching.pairs import PairSet, in_row_order
from matching.scores.exceeding import Exceeding
from matching.scores.fan import strips, swept
from matching.scores.priced import SINGLE_TOLERANCE, Augmented, Priced, Subtracted, among_largest, tamed
from matching.types import FloatArray, IntArray, PairArray
from matching.vectors.threads import one_blas_thread

__all__ = ["DenseScores", "ScoreOperator", "SparseScores", "VectorScores", "as_operator", "blocks"]

BLOCK_ENTRIES = 1 << 21  # pairs a block: 8 MB in float32, small enough for the last-level cache of a laptop
ISSUES_LISTED = 20  # faulty entries of a matrix that are spelled out


def blocks(shape: tuple[int, int], entries: int = BLOCK_ENTRIES) -> Iterator[tuple[slice, slice]]:
    """Row-major tiling of a pair matrix into blocks of at most about `entries` pairs."""
    n_rows, n_cols = shape
    if not n_rows or not n_cols:
        return
    width = min(n_cols, max(1024, entries // 1024))
    height = max(1, entries // width)
    for top in range(0, n_rows, height):
        rows = slice(top, min(top + height, n_rows))
        for left in range(0, n_cols, width):
            yield rows, slice(left, min(left + width, n_cols))


class ScoreOperator(ABC):
    """Scores of ``shape[0]`` submissions x ``shape[1]`` reviewers; higher is better, NaN is unknown.

    A pair whose score is NaN is never assigned. Whether unknown pairs get a stand-in value instead is
    decided where the operator is built, not here.

    Attributes
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    tolerance : float
        Largest absolute error of `block` against `values`; 0 where they agree exactly.
    """

    shape: tuple[int, int]
    tolerance: float = 0.0

    @property
    def graded(self) -> bool:
        """Whether scores seldom tie, so that a threshold tells the best of a line from the others."""
        return False

    @abstractmethod
    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        """Scores of a block, float32 or float64; a fresh or read-only array that the caller must not change.

        Within `tolerance` of `values`.
        """

    @abstractmethod
    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Exact scores of the pairs (rows[i], cols[i]), float64 of shape (n,). Cost grows with n alone."""

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        """Rows, columns and exact scores of every known pair, where these are few and at hand; None elsewhere.

        With it nothing needs to sweep the whole matrix.
        """
        return None

    def bounds(self) -> tuple[float, float]:
        """Smallest and largest known score, (0.0, 0.0) if none is known. One sweep."""
        if (stored := self.stored) is not None:
            known = stored[2][~np.isnan(stored[2])]
            return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
        low, high = np.inf, -np.inf
        for rows, cols in blocks(self.shape):
            part = self.block(rows, cols)
            low, high = np.fmin(low, np.fmin.reduce(part, axis=None)), np.fmax(high, np.fmax.reduce(part, axis=None))
        if not low <= high:
            return 0.0, 0.0
        return float(low) - self.tolerance, float(high) + self.tolerance

    def top_pairs(self, k: int, barred: PairSet, rng: np.random.Generator) -> PairArray:
        """The k best lawful reviewers of every submission and the k best submissions of every reviewer.

        One sweep serves both directions. Ties are broken by a random order of rows and columns drawn from
        `rng`, since a fixed order would send every tied submission to the same few reviewers.

        Returns
        -------
        ndarray of shape (n, 2), int64
            Sorted, each pair once; n <= k * (n_submissions + n_reviewers).
        """
        n_rows, n_cols = self.shape
        if not n_rows or not n_cols or k < 1:
            return np.empty((0, 2), dtype=np.int64)
        low, high = self.bounds_hint()
        # Near ties are ordered by a jitter, large enough to be told apart in float32; candidates are only where
        # the search starts, so it costs no optimality. Its value is the fractional part of a row's plus a
        # column's place on a circle: every tied row sees the columns from another starting point, so tied
        # candidates spread evenly over both sides.
        jitter = np.float32(max((high - low) * 1e-3, max(abs(low), abs(high)) * 2.0**-10))
        row_place = (rng.permutation(n_rows) / n_rows).astype(np.float32)
        col_place = (rng.permutation(n_cols) / n_cols).astype(np.float32)
        if (stored := self.stored) is not None:
            lines, at, score = stored
            keep = ~(barred.contains(lines, at) | np.isnan(score))
            lines, at = lines[keep], at[keep]
            noise = row_place[lines] + col_place[at]
            noise -= noise >= 1.0
            noisy = score[keep].astype(np.float32) + noise * jitter
            chosen = among_largest(lines, noisy, k) | among_largest(at, noisy, k)
            return in_row_order(np.column_stack([lines[chosen], at[chosen]]))
        row_best = _RunningTop(n_rows, k)
        col_best = _RunningTop(n_cols, k)
        with one_blas_thread():  # or the last digits, and with them the choice, would depend on the number of cores
            for rows, cols in blocks(self.shape):
                part = np.array(self.block(rows, cols), dtype=np.float32)
                noise = row_place[rows, None] + col_place[None, cols]
                noise -= noise >= 1.0
                noise *= jitter
                part += noise
                part[np.isnan(part)] = -np.inf
                part[barred.within(rows, cols)] = -np.inf
                row_best.offer(part, rows, cols.start)
                col_best.offer(np.ascontiguousarray(part.T), cols, rows.start)
        of_row, of_col = row_best.pairs(), col_best.pairs()[:, ::-1]
        keys = np.unique(np.concatenate([of_row, of_col]) @ np.array([n_cols, 1], dtype=np.int64))
        return np.column_stack(np.divmod(keys, n_cols))

    def bounds_hint(self) -> tuple[float, float]:
        """Rough range of the scores, for scaling only; by default from one block."""
        for rows, cols in blocks(self.shape):
            part = self.block(rows, cols)
            low, high = np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)
            return (float(low), float(high)) if low <= high else (0.0, 0.0)
        return 0.0, 0.0

    def exceeding(
        self,
        row_prices: FloatArray,
        col_prices: FloatArray,
        margin: float,
        limit: int | None = None,
        skip: PairSet | None = None,
    ) -> tuple[PairArray, FloatArray, bool]:
        """Pairs whose exact score is above ``row_prices[i] + col_prices[j] + margin``.

        Parameters
        ----------
        row_prices, col_prices : ndarray of shape (n_submissions,) and (n_reviewers,), float64
        margin : float
            Not negative; differences up to it are ties.
        limit : int or None
            At most this many pairs of each submission, the largest excesses first; None for all.
        skip : PairSet or None
            Pairs that are not looked at; they take no place under `limit`.

        Returns
        -------
        pairs : ndarray of shape (n, 2), int64
            In the order of the strips of rows; `stored` pairs in theirs.
        excess : ndarray of shape (n,), float64
            Exact score minus prices, > margin.
        complete : bool
            False if `limit` left some pair out: then an empty answer elsewhere proves nothing.
        """
        if (stored := self.stored) is not None:
            pair_rows, pair_cols, score = stored
            exact = score - row_prices[pair_rows] - col_prices[pair_cols]
            over_prices = np.flatnonzero(exact > margin)
            if skip is not None:
                over_prices = over_prices[~skip.contains(pair_rows[over_prices], pair_cols[over_prices])]
            some = over_prices
            if limit is not None:
                some = over_prices[among_largest(pair_rows[over_prices], exact[over_prices], limit)]
            return np.column_stack([pair_rows[some], pair_cols[some]]), exact[some], some.size == over_prices.size
        found = list(
            swept(
                Exceeding(self, row_prices, col_prices, margin, limit, skip),
                strips(self.shape[0] if self.shape[1] else 0),
            )
        )
        if not found:
            return np.empty((0, 2), dtype=np.int64), np.empty(0), True
        rows, cols, excess = (np.concatenate([part[at] for part in found]) for at in range(3))
        return np.column_stack([rows, cols]), excess, all(part[3] for part in found)

    @property
    def large(self) -> tuple[Any, ...]:
        """Its large parts, which stay the same when weights and prices change: what other processes are sent once."""
        return (self,)

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        """Blocks of ``weight of the row * score - row price - column price``; weights are not negative."""
        return Subtracted(self, row_prices, col_prices, weights)


class _RunningTop:
    """The k largest entries of each line seen so far, over blocks offered one after the other."""

    def __init__(self, n_lines: int, k: int) -> None:
        self.k = k
        self.value = np.full((n_lines, k), -np.inf, dtype=np.float32)
        self.where = np.full((n_lines, k), -1, dtype=np.int64)

    def offer(self, part: NDArray[np.float32], lines: slice, first: int) -> None:
        k = min(self.k, part.shape[1])
        if k < part.shape[1]:
            at = np.argpartition(part, part.shape[1] - k, axis=1)[:, part.shape[1] - k :]
        else:
            at = np.broadcast_to(np.arange(part.shape[1]), part.shape)
        value = np.concatenate([self.value[lines], np.take_along_axis(part, at, axis=1)], axis=1)
        where = np.concatenate([self.where[lines], at + first], axis=1)
        keep = np.argpartition(value, value.shape[1] - self.k, axis=1)[:, value.shape[1] - self.k :]
        self.value[lines] = np.take_along_axis(value, keep, axis=1)
        self.where[lines] = np.take_along_axis(where, keep, axis=1)

    def pairs(self) -> PairArray:
        known = np.isfinite(self.value)
        return np.column_stack([np.nonzero(known)[0], self.where[known]])


class DenseScores(ScoreOperator):
    """A matrix that is already there.

    Parameters
    ----------
    matrix : ndarray of shape (n_submissions, n_reviewers), float32 or float64
        NaN where unknown. Not copied; made read-only in this object's view.
    """

    def __init__(self, matrix: NDArray[np.floating]) -> None:
        matrix = np.asarray(matrix)
        if matrix.ndim != 2 or matrix.dtype not in (np.float32, np.float64):
            raise InvalidScoresError(
                f"a score matrix must be float32 or float64 of shape (n_submissions, n_reviewers), "
                f"got {matrix.dtype} of shape {matrix.shape}"
            )
        view = matrix.view()
        view.setflags(write=False)
        self.matrix = view
        self.shape = matrix.shape

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        return self.matrix[rows, cols]

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.matrix[rows, cols].astype(np.float64)


class SparseScores(ScoreOperator):
    """A sparse matrix; entries that are not stored have the score `default`.

    Parameters
    ----------
    matrix : scipy.sparse array or matrix of shape (n_submissions, n_reviewers)
        A stored zero is the score 0. Repeated entries must have been summed.
    default : float
        Score of the entries that are not stored; NaN makes them unknown.
    """

    def __init__(self, matrix: sparse.sparray | sparse.spmatrix, default: float = 0.0) -> None:
        csr = sparse.csr_array(matrix).astype(np.float64)
        csr.sort_indices()
        self.matrix = csr
        self.shape = csr.shape
        self.default = float(default)
        self._where = PairSet(np.column_stack([_csr_rows(csr), csr.indices]), self.shape)
        self._stored: tuple[IntArray, IntArray, FloatArray] | None = None

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        if self._stored is None and np.isnan(self.default):
            self._stored = _csr_rows(self.matrix), self.matrix.indices.astype(np.int64), self.matrix.data
        return self._stored

    def block(self, rows: slice, cols: slice) -> FloatArray:
        out = np.full((rows.stop - rows.start, cols.stop - cols.start), self.default)
        part = self.matrix[rows, cols].tocoo()
        out[part.coords[0], part.coords[1]] = part.data
        return out

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        out = np.full(len(rows), self.default)
        stored = self._where.contains(rows, cols)
        if stored.any():
            out[stored] = np.asarray(self.matrix[rows[stored], cols[stored]]).ravel()
        return out


def _csr_rows(csr: sparse.csr_array) -> IntArray:
    return np.repeat(np.arange(csr.shape[0], dtype=np.int64), np.diff(csr.indptr))


class VectorScores(ScoreOperator):
    """Inner products of two sets of vectors, mapped affinely: ``offset + scale * (x . y)``.

    Parameters
    ----------
    submissions, reviewers : ndarray of shape (n, dim), float32 or float64
        Finite. Held as float32 for blocks and evaluated in float64 for single pairs.
    offset, scale : float
    """

    def __init__(
        self,
        submissions: NDArray[np.floating],
        reviewers: NDArray[np.floating],
        offset: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        submissions, reviewers = _vectors(submissions, "submissions"), _vectors(reviewers, "reviewers")
        for name, number in (("offset", offset), ("scale", scale)):
            if not np.isfinite(number):
                raise InvalidScoresError(f"{name} must be a finite number, got {number}")
        for name, vectors in (("submissions", submissions), ("reviewers", reviewers)):
            if vectors.ndim != 2 or not np.isfinite(vectors).all():
                raise InvalidScoresError(f"{name} must be finite vectors of shape (n, dim)")
        if submissions.shape[1] != reviewers.shape[1]:
            raise InvalidScoresError(
                f"submissions have {submissions.shape[1]} dimensions, reviewers {reviewers.shape[1]}; they must agree"
            )
        self.shape = (len(submissions), len(reviewers))
        self._left = np.ascontiguousarray(submissions, dtype=np.float32)
        self._right = np.ascontiguousarray(reviewers, dtype=np.float32)
        self._left_scaled: NDArray[np.float32] = (self._left * np.float32(scale)).astype(np.float32, copy=False)
        self.offset, self.scale = float(offset), float(scale)
        reach = float(
            np.linalg.norm(self._left, axis=1).max(initial=0.0) * np.linalg.norm(self._right, axis=1).max(initial=0.0)
        )
        self.reach = abs(self.offset) + abs(self.scale) * reach
        self.tolerance = SINGLE_TOLERANCE * self.reach

    def times(self, factor: float) -> VectorScores:
        """The same scores multiplied by a number; the vectors are shared."""
        if factor == 1.0:
            return self
        out = copy(self)
        out.offset, out.scale = self.offset * factor, self.scale * factor
        out._left_scaled = (self._left_scaled * np.float32(factor)).astype(np.float32, copy=False)
        out.reach = abs(factor) * self.reach
        out.tolerance = abs(factor) * self.tolerance
        return out

    @property
    def graded(self) -> bool:
        return True

    def bounds(self) -> tuple[float, float]:
        """Limits of the scores by the lengths of the vectors; no sweep."""
        return -self.reach, self.reach

    def priced(
        self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None, to_come: float = 0.0
    ) -> Priced:
        """As for every operator; `to_come` is the most that the caller will add to the score of any pair."""
        reach = (self.reach + to_come) * (1.0 if weights is None else float(weights.max(initial=0.0)))
        rows = tamed(row_prices, col_prices, reach)
        cols = tamed(col_prices, row_prices, reach)
        if rows is None or cols is None:
            return Subtracted(self, row_prices, col_prices, weights)
        return Augmented(self._left_scaled, self._right, self.offset, self.tolerance, rows, cols, weights)

    def block(self, rows: slice, cols: slice) -> NDArray[np.float32]:
        out = np.asarray(self._left_scaled[rows] @ self._right[cols].T, dtype=np.float32)
        if self.offset:
            out += np.float32(self.offset)
        return out

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        out = np.empty(len(rows))
        step = max(1, (1 << 22) // max(1, self._left.shape[1]))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            np.einsum(
                "ij,ij->i",
                self._left[rows[part]].astype(np.float64),
                self._right[cols[part]].astype(np.float64),
                out=out[part],
            )
        out *= self.scale
        out += self.offset
        return out


def _vectors(vectors: ArrayLike, name: str) -> NDArray[np.floating]:
    try:
        return np.asarray(vectors, dtype=getattr(vectors, "dtype", np.float64))
    except (TypeError, ValueError) as error:
        raise InvalidScoresError(f"{name} are not vectors: {error}") from error


def as_operator(scores: ArrayLike | sparse.sparray | sparse.spmatrix | ScoreOperator) -> ScoreOperator:
    """A dense array, a scipy.sparse array or an operator, checked and as an operator.

    Raises
    ------
    InvalidScoresError
        Not two-dimensional, not numbers, or not finite; the first faulty pairs are named.
    """
    if isinstance(scores, ScoreOperator):
        return scores
    if isinstance(scores, np.ma.MaskedArray):
        raise InvalidScoresError("scores are a masked array; fill it, and bar what must not be assigned by conflicts")
    if sparse.issparse(scores):
        given: Any = scores
        if given.dtype.kind not in "biuf":
            raise InvalidScoresError(f"scores must be real numbers, got {given.dtype}")
        if given.ndim != 2:
            raise InvalidScoresError(f"scores must have shape (n_submissions, n_reviewers), got {given.shape}")
        csr = sparse.csr_array(given, copy=True)
        csr.sum_duplicates()
        _refuse_unknown(csr.data, _csr_rows(csr), csr.indices)
        return SparseScores(csr)
    try:
        matrix: NDArray[Any] = np.asarray(scores)
    except ValueError as error:
        raise InvalidScoresError(f"scores are not a matrix: {error}") from error
    if matrix.dtype.kind not in "biuf":
        raise InvalidScoresError(f"scores must be real numbers, got {matrix.dtype}")
    if matrix.ndim != 2:
        raise InvalidScoresError(f"scores must have shape (n_submissions, n_reviewers), got {matrix.shape}")
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not np.isfinite(matrix).all():
        rows, cols = np.nonzero(~np.isfinite(matrix))
        _refuse_unknown(matrix[rows, cols], rows, cols)
    return DenseScores(matrix)


def _refuse_unknown(values: NDArray[np.floating], rows: IntArray, cols: IntArray) -> None:
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InvalidScoresError(
            f"{bad.size} scores are not finite, first at submission {rows[bad[0]]}, reviewer {cols[bad[0]]}; "
            "give unknown pairs a value, or bar them through conflicts",
            issues=[
                Issue(
                    f"score of submission {rows[at]}, reviewer {cols[at]} is {values[at]}",
                    "not-finite",
                    "score",
                    int(rows[at]),
                    str(values[at]),
                    "scores",
                )
                for at in bad[:ISSUES_LISTED]
            ],
        )
