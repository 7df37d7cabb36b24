"""Objectives and earlier wishes as rows over the submissions' sums.

Each is a concave function g and gets one column T with rows ``T <= q . U + const``, which together say
``T <= g(U)``: the measure maximises its T, an earlier wish ``g(U) >= c`` keeps its T at c or above. The rows come
when the present sums break them. Level and floors need one row a submission, welfare a tangent at every point met
(Kelley, 1960), the total one row. Shortfall is the sum of columns m_p <= min(t, U_p), one row a submission.

The duals of the rows, summed with their q, are the weights that the proof needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.objectives import TIGHT, Floors, Level, Measure, Shortfall, Total, Welfare
from matching.solvers.clock import slack_of
from matching.types import FloatArray, IntArray

__all__ = ["Lowest", "SumRows", "Weighted", "WishRows"]

ROW_TOLERANCE = 1e-9  # by how much the linear solver may break a row
ALL_ROWS = 2048  # wishes over at most this many submissions have all their rows before an integer search
FIRST_ROWS = 64  # rows a level or floor starts with, the lowest sums first; the others come when they are broken


@dataclass(frozen=True, eq=False)
class Weighted:
    """``factors . U``: a linear measure, for steps that linearise another one.

    Attributes
    ----------
    factors : ndarray of shape (n_submissions,), float64
        Not negative.
    """

    factors: FloatArray

    def value(self, sums: FloatArray) -> float:
        return float(self.factors @ sums)

    def weights(self, sums: FloatArray) -> FloatArray:
        return self.factors.copy()

    def conjugate(self, weights: FloatArray) -> float:
        return 0.0 if (weights == self.factors).all() else math.inf


@dataclass(frozen=True, eq=False)
class Lowest:
    """Sum of the `count` lowest U among `among`: concave, and linear wherever the order stays the same.

    Attributes
    ----------
    count : int
        From 1 to the number of submissions in `among`.
    among : ndarray of shape (n_submissions,), bool
    """

    count: int
    among: NDArray[np.bool_]

    def value(self, sums: FloatArray) -> float:
        return float(np.sort(sums[self.among])[: self.count].sum())

    def weights(self, sums: FloatArray) -> FloatArray:
        out = np.zeros(sums.size)
        inside = np.flatnonzero(self.among)
        out[inside[np.argsort(sums[inside], kind="stable")[: self.count]]] = 1.0
        return out

    def conjugate(self, weights: FloatArray) -> float:
        """Finite (0) for weights between 0 and 1, on `among`, that sum to `count`."""
        good = (weights >= 0).all() and (weights <= 1 + TIGHT).all() and not weights[~self.among].any()
        return 0.0 if good and abs(weights.sum() - self.count) <= TIGHT * self.count else math.inf


@dataclass(frozen=True, eq=False)
class SumRows:
    """Rows ``T <= matrix @ U + const``; for a shortfall ``m_p <= U_p`` with the m's own columns.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (n_rows, n_submissions)
    const : ndarray of shape (n_rows,), float64
    """

    matrix: sparse.csr_array
    const: FloatArray


class WishRows:
    """One measure or earlier wish and the rows it has so far.

    Parameters
    ----------
    measure : Measure
        Total, Weighted, Level, Lowest, Floors, Shortfall or Welfare.
    least : float or None
        c of an earlier wish; None for the measure that is maximised.
    n_submissions : int
    """

    def __init__(self, measure: Measure, least: float | None, n_submissions: int) -> None:
        if not isinstance(measure, Total | Weighted | Level | Lowest | Floors | Shortfall | Welfare):
            raise TypeError(f"{type(measure).__name__} cannot be written in rows")
        self.measure = measure
        self.least = least
        self.n = n_submissions
        self.scale = 1.0  # T is counted in this unit; slopes of welfare may be far from 1
        self.watched = np.zeros(n_submissions, dtype=bool)
        self.matrix = sparse.csr_array((0, n_submissions))
        self.row_ids: IntArray = np.empty(0, dtype=np.int64)
        self.column = -1  # of T
        self.parts: IntArray = np.full(n_submissions, -1, dtype=np.int64)  # columns m_p of a shortfall
        self.whole_row = -1  # the row T <= sum of m_p of a shortfall

    @property
    def direct(self) -> FloatArray | None:
        """Weights that go on the pairs' own costs, for a linear measure; None for all that need T."""
        if self.least is None and isinstance(self.measure, Total):
            return np.ones(self.n)
        if self.least is None and isinstance(self.measure, Weighted):
            return self.measure.factors
        return None

    def start(self, sums: FloatArray) -> SumRows:
        """The first rows, so that T is bounded."""
        measure = self.measure
        if isinstance(measure, Level | Floors):
            height = self._heights(sums)
            some = np.argsort(height, kind="stable")[: min(FIRST_ROWS, int(np.isfinite(height).sum()))]
            return self._single(some)
        if isinstance(measure, Shortfall):
            return self._single(np.flatnonzero(measure.among & (sums < measure.t)))
        if isinstance(measure, Welfare):
            self.scale = max(float(measure.weights(sums).max(initial=0.0)), 1e-300)
        return self._tangent(sums)

    def broken(self, sums: FloatArray, level: float) -> SumRows:
        """Rows that sums and T in its own unit (m's for a shortfall are taken at their best) do not respect yet."""
        measure = self.measure
        if isinstance(measure, Level | Floors):
            low = (self._heights(sums) < level - slack_of(level)) & ~self.watched
            return self._single(np.flatnonzero(low))
        if isinstance(measure, Shortfall):
            low = measure.among & ~self.watched & (sums < measure.t - slack_of(measure.t))
            return self._single(np.flatnonzero(low))
        # the solver holds a row to its own tolerance, in the row's unit: a tangent that is there must not come again
        near = slack_of(level) + 8 * ROW_TOLERANCE * self.scale
        if isinstance(measure, Welfare | Lowest) and measure.value(sums) < level - near:
            return self._tangent(sums)
        return self._single(np.empty(0, dtype=np.int64))

    def rest(self) -> SumRows:
        """The rows a level or a floor lacks: an integer search that meets them late starts anew each time."""
        if not isinstance(self.measure, Level | Floors):
            return self._single(np.empty(0, dtype=np.int64))
        lacking = np.isfinite(self._heights(np.zeros(self.n))) & ~self.watched
        return self._single(np.flatnonzero(lacking) if lacking.sum() <= ALL_ROWS else np.empty(0, dtype=np.int64))

    def multiplier(self, duals: FloatArray, sums: FloatArray) -> tuple[float, FloatArray]:
        """k and z from the duals of this wish's rows, cleaned so that the conjugate at z is finite."""
        each = np.maximum(duals[self.row_ids], 0.0) / self.scale
        pull = np.asarray(self.matrix.T @ each).ravel()
        k = float(each.sum())
        if isinstance(self.measure, Shortfall):
            k = float(np.maximum(-duals[self.whole_row], 0.0)) if self.whole_row >= 0 else 0.0
        elif isinstance(self.measure, Total | Weighted):
            return k, self.measure.weights(sums)
        if k <= 1e-13 or (not pull.any() and not isinstance(self.measure, Shortfall)):
            idle = self.measure.weights(sums)
            return 0.0, idle if math.isfinite(self.measure.conjugate(idle)) else np.zeros(self.n)
        z = pull / k
        if isinstance(self.measure, Shortfall):
            z = np.clip(z, 0.0, 1.0)
        elif isinstance(self.measure, Level | Floors):
            z = z / z.sum()
        return k, z

    def reached(self, sums: FloatArray) -> bool:
        """Whether an earlier wish holds, to the rounding of sums."""
        return self.least is None or self.measure.value(sums) >= self.least - slack_of(self.least)

    def _heights(self, sums: FloatArray) -> FloatArray:
        if isinstance(self.measure, Floors):
            return sums - self.measure.floor
        assert isinstance(self.measure, Level)
        return np.where(self.measure.among, sums, np.inf)

    def _single(self, which: IntArray) -> SumRows:
        self.watched[which] = True
        ones = np.ones(which.size)
        matrix = sparse.csr_array((ones, (np.arange(which.size), which)), shape=(which.size, self.n))
        const = -self.measure.floor[which] if isinstance(self.measure, Floors) else np.zeros(which.size)
        return self._keep(matrix, const)

    def _tangent(self, sums: FloatArray) -> SumRows:
        slope = self.measure.weights(sums)
        const = self.measure.value(sums) - float(slope @ sums)
        return self._keep(sparse.csr_array(slope[None, :]), np.array([const]))

    def _keep(self, matrix: sparse.csr_array, const: FloatArray) -> SumRows:
        if matrix.shape[0]:
            self.matrix = sparse.csr_array(sparse.vstack([self.matrix, matrix]))
        return SumRows(matrix, const)


def total_pull(wishes: Sequence[WishRows], duals: FloatArray, n_submissions: int) -> FloatArray:
    """Weights of the submissions' sums as the duals have them, uncleaned: what prices new pairs."""
    out = np.zeros(n_submissions)
    for wish in wishes:
        if wish.row_ids.size:
            out += np.asarray(wish.matrix.T @ (duals[wish.row_ids] / wish.scale)).ravel()
    return out
