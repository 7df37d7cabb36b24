"""Submissions pick reviewers in turns.

Whoever has the smallest share of its demand picks next (weighted picking sequences; Chakraborty, Schmidt-Kraepelin and
Suksompong, 2021), and among those the one that gains most (Payan and Zick, 2022, order submissions for reviewers).
Where nobody is barred and reviewers are many, the picks leave no envy beyond one reviewer. Turns can end in a corner:
the last ones find nobody left although a full plan exists. So what was picked is only wished for, strongly, in one
exact flow over all pairs, which moves the picks that have to move.
"""

from __future__ import annotations

import heapq

import numpy as np
from scipy import sparse

from matching.solvers.oracle import Oracle
from matching.solvers.state import State
from matching.types import IntArray, PairArray

__all__ = ["picked_plan"]


def picked_plan(oracle: Oracle, rng: int) -> PairArray | None:
    """A full plan near to what picking in turns gives, int64 of shape (n, 2); None where the clock ran out first.

    The oracle ends with the weights of the picks on its pairs.
    """
    state = oracle.state
    picks = _picks(state, np.random.default_rng(rng))
    wish = np.zeros(state.rows.size)
    wish[picks] = 4.0 * max(state.high_plain - state.low_plain, 1.0)
    shape = state.problem.shape
    terms = sparse.csr_array((wish[picks], (state.rows[picks], state.cols[picks])), shape=shape)
    found = oracle.best(terms=terms)
    return None if found is None or found.missing else found.pairs


def _picks(state: State, rng: np.random.Generator) -> IntArray:
    """Positions of the picked pairs among the active ones."""
    n_submissions = state.problem.shape[0]
    tie = rng.permutation(state.rows.size)
    order = np.lexsort((tie, -state.plain, state.rows))
    ends = np.cumsum(np.bincount(state.rows, minlength=n_submissions))
    at = ends - np.bincount(state.rows, minlength=n_submissions)
    demand = np.maximum(state.problem.demand, 1)
    had = state.problem.demand - state.supply - state.beyond
    left, room = state.supply.copy(), state.load_max.copy()
    turns: list[tuple[float, float, int, int]] = []

    def queue(one: int) -> None:
        while at[one] < ends[one] and room[state.cols[order[at[one]]]] <= 0:
            at[one] += 1
        if left[one] > 0 and at[one] < ends[one]:
            pair = int(order[at[one]])
            heapq.heappush(turns, (had[one] / demand[one], -float(state.plain[pair]), int(tie[pair]), one))

    for one in range(n_submissions):
        queue(one)
    taken: list[int] = []
    while turns:
        *_, one = heapq.heappop(turns)
        pair = int(order[at[one]])
        if room[state.cols[pair]] > 0:  # else somebody else was quicker, and the turn comes again with the next best
            taken.append(pair)
            room[state.cols[pair]] -= 1
            left[one] -= 1
            had[one] += 1
            at[one] += 1
        queue(one)
    return np.array(taken, dtype=np.int64)
