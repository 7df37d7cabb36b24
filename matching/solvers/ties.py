"""Ties on the optimal face: even loads first, then a seeded hash.

All optimal plans share the pairs with ``s > u + w`` and choose freely among those with ``s == u + w``. On that
face a second flow spreads the load with convex costs and orders what is still equal by a hash of row, column
and seed, so that equal scores do not fill the first people in the list and equal input gives the equal plan.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.solvers.flow import Segments, transport
from matching.solvers.prices import Prices
from matching.types import IntArray

__all__ = ["even_out"]

HASH_LEVELS = 1 << 10  # distinct tie-breaking costs of a pair; small, since the evenness cost must outweigh their sum


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
    """
    reduced = gain - prices.u[rows] - prices.w[cols]
    free = reduced == 0
    fixed = reduced > 0
    if not free[~taken].any():
        return None
    n_reviewers = problem.shape[1]
    fixed_load = np.bincount(cols[fixed], minlength=n_reviewers)
    present = np.bincount(cols[taken], minlength=n_reviewers)
    supply = filled - np.bincount(rows[fixed], minlength=problem.shape[0])
    # Complementary slackness: a priced reviewer keeps the load the price speaks of, any other is free in between.
    lowest = np.minimum(load_min, present)
    least = np.where(prices.w > 0, present, lowest)
    most = np.where(prices.w < 0, present, load_max)
    least = np.maximum(least - fixed_load, 0)
    most = np.minimum(most - fixed_load, np.bincount(cols[free], minlength=n_reviewers))
    held = np.bincount(problem.locked[:, 1], minlength=n_reviewers)
    pairs = np.flatnonzero(free)
    total = int(supply.sum())
    step = total * HASH_LEVELS + 1
    must = 4 * step * int((held + fixed_load + most).max(initial=0) + 1) * (total + 1)
    if must > (1 << 61) // (sum(problem.shape) + 2):
        return None
    # One arc for each review a person may carry, each dearer than the one before: sum of squared loads.
    reviewer = np.repeat(np.arange(n_reviewers, dtype=np.int64), most)
    if reviewer.size:
        nth = np.arange(reviewer.size) - np.repeat(np.cumsum(most) - most, most)
    else:
        nth = np.empty(0, dtype=np.int64)
    cost = (2 * (nth + (held + fixed_load)[reviewer]) + 1) * step
    cost = cost - np.where(nth < least[reviewer], must, 0)
    flow = transport(
        problem.shape,
        rows[pairs],
        cols[pairs],
        _hash(rows[pairs], cols[pairs], rng),
        supply,
        Segments(reviewer, np.ones(reviewer.size, dtype=np.int64), cost),
        2 * must,
    )
    load = np.bincount(cols[pairs][flow.taken], minlength=n_reviewers)
    if flow.unfilled.any() or (load < least).any():
        return None
    chosen = fixed.copy()
    chosen[pairs] = flow.taken
    return chosen


def _hash(rows: IntArray, cols: IntArray, seed: int) -> IntArray:
    """A number in [0, HASH_LEVELS) for each pair, the same on every machine (SplitMix64, Steele et al. 2014)."""
    state = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + cols.astype(np.uint64)
    state += np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state ^= state >> np.uint64(shift)
        state *= np.uint64(factor)
    state ^= state >> np.uint64(31)
    return (state >> np.uint64(54)).astype(np.int64) % HASH_LEVELS
