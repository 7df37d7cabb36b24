"""Which pairs lie above changing prices: one sweep over all pairs, afterwards only over lines that became cheap.

The sweep lists every pair down to a margin below the prices it was given. As long as the two prices of a pair have
together fallen by no more than the margin, a pair that is not listed cannot lie above them, so the list answers.
Lines that fell further are looked at again, each alone, and are then known at their new price.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.pairs import PairSet
from matching.scores.base import ScoreOperator
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Listed", "best_of", "margin_for"]

SAMPLE, SAMPLES = 8, 6  # submissions next to each other, and how many such groups, from which the margin is estimated
A_LINE = 6  # pairs of a submission within the margin, on average
MOST_A_LINE = 128  # pairs of a submission beyond which prices say too little to be worth a list
SHARE = 0.49  # of the margin a price may fall by before its line is looked at again; two of them stay within it
MOST_LINES = 0.04  # of the lines may be looked at singly; a sweep over all is cheaper beyond


class Listed:
    """Every lawful pair whose score is above ``u + w - margin``, for prices that may fall.

    Parameters
    ----------
    scores : ScoreOperator
    skip : PairSet
        Pairs that never count.
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,), float64
        Prices to begin with.
    margin : float
        Not negative.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
    complete : bool
        False where some submission has more than MOST_A_LINE such pairs: then the list proves nothing.
    sweeps : int
        Over all pairs, so far.
    """

    def __init__(self, scores: ScoreOperator, skip: PairSet, u: FloatArray, w: FloatArray, margin: float) -> None:
        self._scores, self._skip, self._margin = scores, skip, margin
        self.sweeps = 0
        self._sweep(u, w)

    def _sweep(self, u: FloatArray, w: FloatArray) -> None:
        self._u, self._w = u.copy(), w.copy()
        self.sweeps += 1
        self.pairs, _, self.complete = self._scores.exceeding(u - self._margin, w, 0.0, MOST_A_LINE, self._skip)

    def above(self, u: FloatArray, w: FloatArray) -> tuple[PairArray, FloatArray] | None:
        """All pairs above these prices and by how much; None where the list cannot say."""
        if not self.complete:
            return None
        rows = np.flatnonzero(self._u - u > SHARE * self._margin)
        cols = np.flatnonzero(self._w - w > SHARE * self._margin)
        if rows.size > MOST_LINES * u.size or cols.size > MOST_LINES * w.size:
            self._sweep(u, w)
            if not self.complete:
                return None
        else:
            self._look_again(u, w, rows, cols)
        at_rows, at_cols = self.pairs[:, 0], self.pairs[:, 1]
        excess = self._scores.values(at_rows, at_cols) - u[at_rows] - w[at_cols]
        over = excess > 0.0
        return self.pairs[over], excess[over]

    def _look_again(self, u: FloatArray, w: FloatArray, rows: IntArray, cols: IntArray) -> None:
        """Bring these lines to their new prices, rows first: a column is then looked at with the new rows."""
        self._u[rows] = u[rows]
        found = [self.pairs]
        n_submissions, n_reviewers = self._scores.shape
        for run in _runs(rows):
            found.append(self._block(run, slice(0, n_reviewers)))
        self._w[cols] = w[cols]
        for run in _runs(cols):
            found.append(self._block(slice(0, n_submissions), run))
        if len(found) > 1:
            self.pairs = PairSet(np.concatenate(found), self._scores.shape).pairs()

    def _block(self, rows: slice, cols: slice) -> PairArray:
        scores = self._scores
        price = (self._u[rows] - self._margin)[:, None] + self._w[None, cols]
        with np.errstate(invalid="ignore"):
            at = np.argwhere(scores.block(rows, cols).astype(np.float64) - price > -scores.tolerance)
        at += np.array([rows.start, cols.start])
        near_rows, near_cols = at[:, 0], at[:, 1]
        keep = ~self._skip.contains(near_rows, near_cols)
        near_rows, near_cols = near_rows[keep], near_cols[keep]
        above = scores.values(near_rows, near_cols) > self._u[near_rows] - self._margin + self._w[near_cols]
        return np.column_stack([near_rows[above], near_cols[above]])


def margin_for(scores: ScoreOperator, u: FloatArray, w: FloatArray, wanted: NDArray[np.bool_]) -> float:
    """How far below their prices about A_LINE pairs of a submission lie, judged by a few submissions; >= 0.

    Parameters
    ----------
    wanted : ndarray of shape (n_submissions,), bool
        Submissions that count.
    """
    height = scores.shape[0]
    below: list[float] = []
    for first in np.unique(np.linspace(0, max(height - SAMPLE, 0), SAMPLES).astype(np.int64)).tolist():
        rows = slice(first, min(first + SAMPLE, height))
        part = scores.block(rows, slice(0, scores.shape[1])).astype(np.float64)
        slack = u[rows, None] + w - part
        slack[np.isnan(slack)] = np.inf
        nth = min(A_LINE, slack.shape[1] - 1)
        if nth >= 0:
            found = np.partition(slack, nth, axis=1)[:, nth]
            below += found[wanted[rows] & np.isfinite(found)].tolist()
    return max(0.0, float(np.median(below))) if below else 0.0


def best_of(
    scores: ScoreOperator, skip: PairSet, lines: IntArray, prices: FloatArray, axis: int, count: int
) -> tuple[PairArray, FloatArray]:
    """The `count` pairs of each of these lines that lie highest above the prices of the other side.

    Parameters
    ----------
    lines : ndarray of shape (n,), int64
        Rows for axis 0, columns for axis 1.
    prices : ndarray, float64
        Of the other side.

    Returns
    -------
    pairs : ndarray of shape (m, 2), int64
    best : ndarray of shape (n,), float64
        Largest score minus price of each line, up to rounding; -inf where it has no pair.
    """
    found: list[NDArray[np.int64]] = []
    best = np.full(lines.size, -np.inf)
    whole = slice(0, scores.shape[1 - axis])
    for at, line in enumerate(lines.tolist()):
        one = slice(line, line + 1)
        part = scores.block(one, whole) if axis == 0 else scores.block(whole, one)
        over = part.astype(np.float64).ravel() - prices
        here = np.full(over.size, line, dtype=np.int64)
        other = np.arange(over.size, dtype=np.int64)
        pairs = np.column_stack([here, other] if axis == 0 else [other, here])
        over[np.isnan(over) | skip.contains(pairs[:, 0], pairs[:, 1])] = -np.inf
        k = min(count, over.size)
        top = np.argpartition(-over, k - 1)[:k] if k else np.empty(0, dtype=np.int64)
        top = top[np.isfinite(over[top])]
        if top.size:
            best[at] = over[top].max()
            found.append(pairs[top])
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64), best


def _runs(lines: IntArray) -> list[slice]:
    """Neighbouring lines as slices."""
    if not lines.size:
        return []
    cut = np.flatnonzero(np.diff(lines) > 1) + 1
    return [slice(int(part[0]), int(part[-1]) + 1) for part in np.split(lines, cut)]
