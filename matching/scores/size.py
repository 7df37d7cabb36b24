"""How large scores usually are, as a power of two: what rounding and the tolerances of solvers are measured in."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matching.scores.base import ScoreOperator, blocks
from matching.types import FloatArray

__all__ = ["usual_size"]

SMALLEST, LARGEST = 2.0**-10, 2.0**20  # scores between these count as being near 1
FURTHEST = 900  # exponents: numbers of up to 1e9 that go with the scores stay inside float64 too
MOST_BETA = 1e9  # above it a beta is refused, in whatever unit it is counted


def usual_size(scores: ScoreOperator, betas: Sequence[float] = ()) -> float:
    """The power of two in which the best scores of most submissions are near 1; 1.0 where they are already, or all 0.

    Parameters
    ----------
    betas : sequence of float
        Of `perturbed`: the size is not below what keeps them in their range.

    Notes
    -----
    One sweep where a first block of scores is far from 1, else none.
    """
    if SMALLEST <= _reach(scores.bounds_hint()) <= LARGEST:
        return 1.0
    of_row = _row_reach(scores)
    of_row = of_row[of_row > 0]
    typical = float(np.median(of_row)) if of_row.size else 1.0
    beyond = float(of_row.max(initial=0.0)) > 2.0**FURTHEST  # sums of these leave float64; the solvers refuse them
    if beyond or not math.isfinite(typical) or SMALLEST <= typical <= LARGEST:
        return 1.0
    exponent = math.floor(math.log2(typical))
    for beta in betas:
        if 0.0 < beta < math.inf:
            exponent = max(exponent, math.ceil(math.log2(beta / MOST_BETA)))
    return float(2.0 ** max(-FURTHEST, min(FURTHEST, exponent)))


def _row_reach(scores: ScoreOperator) -> FloatArray:
    """The largest score of each submission in size, float64 of shape (n_submissions,)."""
    out = np.zeros(scores.shape[0])
    if (stored := scores.stored) is not None:
        np.fmax.at(out, stored[0], np.abs(stored[2]))
        return out
    for rows, cols in blocks(scores.shape):
        out[rows] = np.fmax(out[rows], np.fmax.reduce(np.abs(scores.block(rows, cols)), axis=1))
    return out


def _reach(bounds: tuple[float, float]) -> float:
    return max(abs(bounds[0]), abs(bounds[1]))
