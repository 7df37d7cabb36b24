"""The tangents that bound whole sets best at given prices, all submissions at once."""

from __future__ import annotations

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.constraints.worth import Worth
from matching.types import FloatArray

__all__ = ["Tangents"]

HALVINGS = 24  # of the range a slope lies in
DOUBLINGS = 60  # of that range until the best people by scores alone are the best ones


class Tangents:
    """Slopes y that make ``conjugate(y) + best people at y * score - prices`` least, submission by submission.

    It is convex in y, and its derivative is the sum of the best people less the sum at which the conjugate is taken:
    the floor, or t below the slope where min(U, t) bends.

    Parameters
    ----------
    problem : AssignmentProblem
        Small enough for a matrix of its scores.
    """

    def __init__(self, problem: AssignmentProblem) -> None:
        n_submissions, n_reviewers = problem.shape
        held = problem.locked
        self.wanted = problem.demand - np.bincount(held[:, 0], minlength=n_submissions)
        open_ = problem.load_max > np.bincount(held[:, 1], minlength=n_reviewers)
        score = np.array(problem.scores.block(slice(0, n_submissions), slice(0, n_reviewers)), dtype=np.float64)
        score[:, ~open_] = np.nan
        closed = problem.barred.union(held).pairs()
        score[closed[:, 0], closed[:, 1]] = np.nan
        self.score = score
        own = np.nan_to_num(problem.scores.values(held[:, 0], held[:, 1]))
        self.base = np.bincount(held[:, 0], weights=own, minlength=n_submissions).astype(np.float64)

    def best(self, worth: Worth, w: FloatArray) -> FloatArray:
        """Slopes for a worth at reviewer prices w, as `whole_sets` takes them."""
        floored = np.isfinite(worth.floor)
        bend = worth.slope + worth.extra
        low = np.full(bend.size, worth.slope)
        step = 1.0 + bend + np.abs(w).max(initial=0.0)
        high = np.where(floored, bend + step, bend)
        reachable = floored & (self._sums(np.ones(bend.size), np.zeros(w.size)) >= worth.floor)  # else no slope helps
        for _ in range(DOUBLINGS):
            short = reachable & (self._sums(high, w) < worth.floor)
            if not short.any():
                break
            step = 2.0 * step
            high = np.where(short, bend + step, high)
        for _ in range(HALVINGS):
            mid = 0.5 * (low + high)
            wanted = np.where((mid < bend) & (worth.floor < worth.t), worth.t, worth.floor)
            below = self._sums(mid, w) < wanted
            low, high = np.where(below, mid, low), np.where(below, high, mid)
        return worth.fitting(high)

    def _sums(self, slopes: FloatArray, w: FloatArray) -> FloatArray:
        """The sums of the best people at these slopes."""
        value = slopes[:, None] * self.score - w
        value[np.isnan(value)] = -np.inf
        out = self.base.copy()
        for count in np.unique(self.wanted[self.wanted > 0]).tolist():
            rows = np.flatnonzero(self.wanted == count)
            if count >= value.shape[1]:
                out[rows] += np.nansum(self.score[rows], axis=1)
                continue
            best = np.argpartition(-value[rows], count - 1, axis=1)[:, :count]
            out[rows] += np.nansum(np.take_along_axis(self.score[rows], best, axis=1), axis=1)
        return out
