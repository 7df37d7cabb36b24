"""Ties after a change: of all plans with the same total the one that keeps most of an earlier plan.

As `matching.solvers.ties`, whose evenness decides only among plans that keep as much: nobody is moved for the sake of
even loads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.solvers.flow import Segments, transport
from matching.solvers.prices import Prices
from matching.solvers.ties import HASH_LEVELS, Face, each_unit, hash_of
from matching.types import IntArray

__all__ = ["keep_most"]

LEVELS = (HASH_LEVELS, 16, 1)  # of the hash; fewer where costs leave no room for more


def keep_most(
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
    old: NDArray[np.bool_],
) -> NDArray[np.bool_] | None:
    """Of all plans with the same integer total the one with most old pairs, then the evenest; None for the present one.

    Parameters
    ----------
    old : ndarray of shape (n_pairs,), bool
        Pairs of the earlier plan.
    rows, cols, gain, taken, prices, filled, load_min, load_max, rng
        As for `matching.solvers.ties.even_out`.
    """
    face = Face.of(problem, rows, cols, gain, taken, prices, filled, load_min, load_max)
    if face is None:
        return None
    pairs, total, most_load = face.pairs, face.total, face.most_load
    for levels in LEVELS:
        step = total * levels + 1
        moved = 2 * most_load * step * (total + 1)  # one more pair moved outweighs all evenness
        must = 4 * moved * (total + 1)
        if must <= face.limit:
            break
    else:
        return None
    reviewer, nth = each_unit(face.most)
    cost = (2 * (nth + face.load[reviewer]) + 1) * step - np.where(nth < face.least[reviewer], must, 0)
    flow = transport(
        problem.shape, rows[pairs], cols[pairs],
        np.where(old[pairs], 0, moved) + hash_of(rows[pairs], cols[pairs], rng) % levels,
        face.supply, Segments(reviewer, np.ones(reviewer.size, dtype=np.int64), cost), 2 * must,
    )  # fmt: skip
    return face.plan(flow, cols)
