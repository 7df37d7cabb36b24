"""Of all plans with the same total under rules of network form, the one with the evenest loads, then by a seeded hash.

Potentials say what all best flows share: arcs of reduced cost above 0 are empty, those below 0 full. On the others a
second flow spreads the loads, each review of a person dearer than the one before, and before that what people do not
want (as `matching.solvers.ties` does without rules; where classes of a person's submissions are counted, class by
class).
"""

from __future__ import annotations

import numpy as np

from matching.solvers.flow import Detours, cheapest
from matching.solvers.layered import Laid, Layered
from matching.solvers.ties import HASH_LEVELS, UNWANTED, detours_of, each_unit, hash_of, unwanted_among
from matching.types import IntArray

__all__ = ["evened"]


def evened(network: Layered, cost: IntArray, at: IntArray, rng: int) -> Laid | None:
    """The evenest of the cheapest flows; None where numbers leave no room.

    Parameters
    ----------
    cost, at : ndarray of shape (n_arcs,) and (n_nodes,), int64
        Costs for which some flow lacks nothing, and potentials of the best of them.
    rng : int
        Seed of the hash.

    Raises
    ------
    SolverError
        These are no such potentials.
    """
    state, n_submissions, loads = network.state, network.state.supply.size, network.loads
    reduced = cost + at[network.tail] - at[network.head]
    # what is paid for with the penalty is all there, and stays
    free = (reduced == 0) & (network.due == 0)
    fixed = np.where((reduced < 0) | (network.due < 0), network.room, 0)
    fixed[free | (network.due > 0)] = 0
    pairs = np.flatnonzero(free[network.pairs])
    supplies = network.supplies.copy()
    np.subtract.at(supplies, network.tail, fixed)
    np.add.at(supplies, network.head, fixed)
    open_ = free[loads]
    some = np.bincount(state.cols[pairs], minlength=open_.size)
    surely = np.bincount(state.cols[fixed[network.pairs] > 0], minlength=open_.size)
    room = np.where(open_, np.minimum(network.room[loads], some + surely), 0)
    # reviews below the open ones: locked, up to load_min, and those that every cheapest flow has
    before = np.bincount(state.problem.locked[:, 1], minlength=open_.size) + fixed[network.least] + fixed[loads]
    person, nth = each_unit(room)
    step = network.total * HASH_LEVELS + 1
    dear = (2 * (nth + before[person]) + 1) * step
    if float(dear.max(initial=0)) * 4.0 * (network.nodes + 1) > float(1 << 61):
        return None
    free[loads] = False
    others = np.flatnonzero(free)
    light = np.zeros(others.size, dtype=np.int64)
    light[: pairs.size] = hash_of(state.rows[pairs], state.cols[pairs], rng)
    head, extra = network.head[others], (np.empty(0, dtype=np.int64),) * 3
    detours = _unwanted(network, pairs, fixed, step, dear)
    if detours is not None:
        head[: pairs.size] = np.where(detours.node >= 0, network.nodes + detours.node, head[: pairs.size])
        supplies = np.concatenate([supplies, np.zeros(detours.reviewer.size, dtype=np.int64)])
        arcs = detours.arcs
        extra = (network.nodes + arcs.reviewer, detours.reviewer[arcs.reviewer], arcs.cost)
    flow = cheapest(
        np.concatenate([network.tail[others], n_submissions + person, extra[0]]),
        np.concatenate([head, np.full(person.size, network.sink, dtype=np.int64), extra[1]]),
        np.concatenate([network.room[others], np.ones(person.size + extra[0].size, dtype=np.int64)]),
        np.concatenate([light, dear, extra[2]]), supplies,
    )  # fmt: skip
    out = fixed.copy()
    out[others] = flow[: others.size]
    taken = flow[others.size : others.size + person.size]
    out[loads] += np.bincount(person, weights=taken, minlength=open_.size).astype(np.int64)
    return network.laid(out)


def _unwanted(network: Layered, pairs: IntArray, fixed: IntArray, step: int, dear: IntArray) -> Detours | None:
    """A node for each end of open pairs that their reviewers do not want; None where there are none or no room.

    One more of them costs more than any change of loads, and the next one more than that.
    """
    state, problem = network.state, network.state.problem
    every = unwanted_among(problem, state.rows, state.cols, state.plain)
    if not every[pairs].any():
        return None
    locked = problem.locked[problem.unwanted.contains(problem.locked[:, 0], problem.locked[:, 1])][:, 1]
    held = state.cols[every & (fixed[network.pairs] > 0)]
    ends = network.head[pairs]
    before = np.zeros(network.nodes, dtype=np.int64)  # by where pairs end, which is a reviewer or a class of one
    before[ends] = np.bincount(np.concatenate([locked, held]), minlength=problem.shape[1])[state.cols[pairs]]
    found = detours_of(ends, every[pairs], before, step)
    most = (1 << 61) // (4 * (network.nodes + found.reviewer.size + 1))
    dearest = int(found.arcs.cost.max())
    above = (int(dear.max(initial=step)) // step + 1) * (network.total + 1)
    if above * dearest > most:
        above = UNWANTED
    if above * dearest > most:
        return None
    return detours_of(ends, every[pairs], before, above * step)
