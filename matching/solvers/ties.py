"""Ties on the optimal face: unwanted pairs spread first, then even loads, then a seeded hash.

All optimal plans share the pairs with ``s > u + w`` and choose freely among those with ``s == u + w``. On that
face a second flow spreads what people did not want, and then the load, with convex costs, and orders what is still
equal by a hash of row, column and seed, so that equal scores do not fill the first people in the list and equal input
gives the equal plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.solvers.flow import Detours, Flow, Segments, transport
from matching.solvers.prices import Prices
from matching.types import FloatArray, IntArray

__all__ = ["HASH_LEVELS", "UNWANTED", "Face", "detours_of", "each_unit", "even_out", "hash_of", "unwanted_among"]

HASH_LEVELS = 1 << 10  # distinct tie-breaking costs of a pair; small, since the evenness cost must outweigh their sum


LEVELS = 8  # scores of a venue with at most this many different values are levels, such as bids
UNWANTED = 64  # how far one more unwanted pair stands above one more review where costs leave no more room


def unwanted_among(problem: AssignmentProblem, rows: IntArray, cols: IntArray, score: FloatArray) -> NDArray[np.bool_]:
    """Which of the pairs their reviewers do not want, bool of shape (n_pairs,).

    Those of `AssignmentProblem.unwanted`. Where it is empty and the scores take at most LEVELS different values, as
    bids do, those of the lower half of their range; other scores do not say what anybody wants.
    """
    if len(problem.unwanted):
        return problem.unwanted.contains(rows, cols)
    levels = np.unique(score[: 1 << 12])
    if not 1 < levels.size <= LEVELS:
        return np.zeros(rows.size, dtype=bool)
    levels = np.unique(score)
    if levels.size > LEVELS:
        return np.zeros(rows.size, dtype=bool)
    return np.asarray(score <= 0.5 * (levels[0] + levels[-1]))


@dataclass(frozen=True, eq=False)
class Face:
    """What all plans with the same integer total have in common, and what they choose freely.

    Attributes
    ----------
    fixed : ndarray of shape (n_pairs,), bool
        Active pairs that every such plan has.
    pairs : ndarray of shape (n_free,), int64
        Positions of the active pairs that may be taken or left.
    supply : ndarray of shape (n_submissions,), int64
        Reviews that are taken from the free pairs.
    least, most : ndarray of shape (n_reviewers,), int64
        Fewest and most free pairs of each reviewer.
    load : ndarray of shape (n_reviewers,), int64
        Reviews each has in any case, locked ones among them.
    limit : int
        Costs up to it are exact in the flow solver, with room for their sums.
    """

    fixed: NDArray[np.bool_]
    pairs: IntArray
    supply: IntArray
    least: IntArray
    most: IntArray
    load: IntArray
    limit: int

    @classmethod
    def of(
        cls,
        problem: AssignmentProblem,
        rows: IntArray,
        cols: IntArray,
        gain: IntArray,
        taken: NDArray[np.bool_],
        prices: Prices,
        filled: IntArray,
        load_min: IntArray,
        load_max: IntArray,
    ) -> Face | None:
        """From the arguments of `even_out`; None where the present plan is the only one."""
        reduced = gain - prices.u[rows] - prices.w[cols]
        free, fixed = reduced == 0, reduced > 0
        if not free[~taken].any():
            return None
        n_submissions, n_reviewers = problem.shape
        fixed_load = np.bincount(cols[fixed], minlength=n_reviewers)
        present = np.bincount(cols[taken], minlength=n_reviewers)
        # Complementary slackness: a priced reviewer keeps the load the price speaks of, any other is free in between.
        least = np.where(prices.w > 0, present, np.minimum(load_min, present))
        most = np.where(prices.w < 0, present, load_max)
        return cls(
            fixed,
            np.flatnonzero(free),
            filled - np.bincount(rows[fixed], minlength=n_submissions),
            np.maximum(least - fixed_load, 0),
            np.minimum(most - fixed_load, np.bincount(cols[free], minlength=n_reviewers)),
            np.bincount(problem.locked[:, 1], minlength=n_reviewers) + fixed_load,
            (1 << 61) // (2 * sum(problem.shape) + 2),
        )

    @property
    def total(self) -> int:
        """Reviews that are taken from the free pairs."""
        return int(self.supply.sum())

    @property
    def most_load(self) -> int:
        """Above every load there can be."""
        return int((self.load + self.most).max(initial=0)) + 1

    def plan(self, flow: Flow, cols: IntArray) -> NDArray[np.bool_] | None:
        """A flow on the free pairs as a plan, bool of shape (n_pairs,); None where it leaves the face."""
        load = np.bincount(cols[self.pairs][flow.taken], minlength=self.least.size)
        if flow.unfilled.any() or (load < self.least).any():
            return None
        chosen = self.fixed.copy()
        chosen[self.pairs] = flow.taken
        return chosen


def even_out(
    problem: AssignmentProblem,
    rows: IntArray,
    cols: IntArray,
    gain: IntArray,
    taken: NDArray[np.bool_],
    prices: Prices,
    filled: IntArray,
    load_min: IntArray,
    load_max: IntArray,
    rng: int,
    unwanted: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_] | None:
    """The evenest of all plans with the same integer total; None where the optimum is unique or nothing is free.

    Parameters
    ----------
    rows, cols, gain, taken : ndarray of shape (n_pairs,)
        Active pairs, their integer scores and the present plan.
    prices : Prices
        Exact integer prices of the present plan.
    filled : ndarray of shape (n_submissions,), int64
        Reviews the present plan gives each submission, locked ones not counted.
    load_min, load_max : ndarray of shape (n_reviewers,), int64
        After locked pairs were taken out.
    unwanted : ndarray of shape (n_pairs,), bool, or None
        Pairs whose number by person is evened out before the loads are.
    """
    face = Face.of(problem, rows, cols, gain, taken, prices, filled, load_min, load_max)
    if face is None:
        return None
    pairs, total, most_load, limit = face.pairs, face.total, face.most_load, face.limit
    step = total * HASH_LEVELS + 1
    if 8 * step * most_load * (total + 1) > limit:
        return None
    # One arc for each review a person may carry, each dearer than the one before: sum of squared loads.
    reviewer, nth = each_unit(face.most)
    cost = (2 * (nth + face.load[reviewer]) + 1) * step
    detours, dearest = None, 2 * step * most_load
    if unwanted is not None and unwanted[pairs].any():
        above = 2 * most_load * total + 1
        if 4 * step * above * most_load * (total + 1) > limit:
            above = UNWANTED
        locked = problem.locked[problem.unwanted.contains(problem.locked[:, 0], problem.locked[:, 1])]
        before = np.bincount(np.concatenate([locked[:, 1], cols[face.fixed & unwanted]]), minlength=problem.shape[1])
        detours = detours_of(cols[pairs], unwanted[pairs], before, above * step)
        dearest += int(detours.arcs.cost.max(initial=0))
    must = 2 * dearest * (total + 1)
    if must > limit:
        return None
    cost = cost - np.where(nth < face.least[reviewer], must, 0)
    flow = transport(
        problem.shape,
        rows[pairs],
        cols[pairs],
        hash_of(rows[pairs], cols[pairs], rng),
        face.supply,
        Segments(reviewer, np.ones(reviewer.size, dtype=np.int64), cost),
        2 * must,
        detours=detours,
    )
    return face.plan(flow, cols)


def each_unit(count: IntArray) -> tuple[IntArray, IntArray]:
    """Line and running number of every unit: count [2, 0, 1] gives lines [0, 0, 2] and numbers [0, 1, 0]."""
    line = np.repeat(np.arange(count.size, dtype=np.int64), count)
    return line, np.arange(line.size, dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)


def detours_of(cols: IntArray, unwanted: NDArray[np.bool_], before: IntArray, step: int) -> Detours:
    """A node for each person with unwanted pairs, whose arcs cost more from one unwanted pair to the next."""
    people, place = np.unique(cols[unwanted], return_inverse=True)
    node = np.full(cols.size, -1, dtype=np.int64)
    node[unwanted] = place
    at, nth = each_unit(np.bincount(place, minlength=people.size).astype(np.int64))
    cost = (2 * (nth + before[people][at]) + 1) * step
    return Detours(node, Segments(at, np.ones(at.size, dtype=np.int64), cost), people.astype(np.int64))


def hash_of(rows: IntArray, cols: IntArray, seed: int) -> IntArray:
    """A number in [0, HASH_LEVELS) for each pair, the same on every machine (SplitMix64, Steele et al. 2014)."""
    state = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + cols.astype(np.uint64)
    state += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state ^= state >> np.uint64(shift)
        state *= np.uint64(factor)
    state ^= state >> np.uint64(31)
    return (state >> np.uint64(54)).astype(np.int64) % HASH_LEVELS
