"""The oracle: a transport problem as a minimum-cost flow, exact on integers.

    submission --(pair, capacity 1)--> reviewer --(load segments)--> sink
         \\--(unfilled, at a high price)-------------------------------^

The unfilled arcs make every network feasible, so the solver always answers with the fullest plan; what is
missing is read off those arcs. Scores become integers at a stated resolution (`Scale`), and everything the
caller reports is recomputed from the original floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from matching.errors import SolverError, SolverRangeError
from matching.types import FloatArray, IntArray

__all__ = ["Flow", "Scale", "Segments", "transport"]

COST_LIMIT = 1 << 60  # the solver multiplies costs by the number of nodes inside a signed 64-bit integer
FINEST_BITS = 40  # no finer than 2**-40 of the range: below that the sums of a plan are float64 noise
COARSEST_STEP = 1e-6  # promised resolution, as a share of the range of scores


@dataclass(frozen=True, slots=True)
class Scale:
    """How scores become integers: ``rint(score * factor)``.

    Attributes
    ----------
    factor : float
        A power of two, so that scaling itself is exact.
    penalty : int
        Price of one missing review in scaled units. Filling one more review re-routes along a path that
        visits each node once, so a price above (nodes of the smaller side) x (range of scores) makes the
        fullest plan win whatever the scores; four times that lets a reader tell the levels apart.
    """

    factor: float
    penalty: int

    @classmethod
    def fit(cls, low: float, high: float, shape: tuple[int, int], total: int) -> Scale:
        """The finest scale the solver is exact for, given the range of scores and the reviews to place.

        Raises
        ------
        SolverRangeError
            When even a resolution of 1e-6 of the range does not fit.
        """
        n_submissions, n_reviewers = shape
        nodes = n_submissions + n_reviewers + 2
        span = max(high - low, abs(low), abs(high))
        if not math.isfinite(span):
            raise SolverRangeError(f"scores between {low} and {high} are too far apart", low=low, high=high)
        if span == 0.0:
            span = 1.0
        path = 4 * (min(shape) + 2)
        most = COST_LIMIT / (path * max(nodes, total, 1))
        exponent = min(math.floor(math.log2(most)), FINEST_BITS) - math.ceil(math.log2(span))
        factor = 2.0**exponent if abs(exponent) < 1000 else 0.0
        if factor * span < 1.0 / COARSEST_STEP:
            raise SolverRangeError(
                f"{n_submissions} x {n_reviewers} with {total} reviews and scores between {low} and {high} "
                f"cannot be held to {COARSEST_STEP} of their range in the solver's 64-bit integers",
                low=low,
                high=high,
            )
        return cls(factor, path * (math.ceil(span * factor) + 1))

    def integers(self, scores: FloatArray) -> IntArray:
        """Scores as integers, int64 of the same shape."""
        return np.rint(scores * self.factor).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Segments:
    """Parallel arcs from reviewers to the sink: capacity `capacity[i]` at unit cost `cost[i]` for `reviewer[i]`."""

    reviewer: IntArray
    capacity: IntArray
    cost: IntArray


@dataclass(frozen=True, slots=True)
class Flow:
    """What the oracle answers.

    Attributes
    ----------
    taken : ndarray of shape (n_pairs,), bool
        Which of the offered pairs are assigned.
    unfilled : ndarray of shape (n_submissions,), int64
    """

    taken: NDArray[np.bool_]
    unfilled: IntArray


def transport(
    shape: tuple[int, int],
    rows: IntArray,
    cols: IntArray,
    cost: IntArray,
    supply: IntArray,
    segments: Segments,
    penalty: int,
) -> Flow:
    """The cheapest way to send `supply` reviews of each submission over the offered pairs.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    rows, cols, cost : ndarray of shape (n_pairs,), int64
        Offered pairs, each once, and their integer costs.
    supply : ndarray of shape (n_submissions,), int64
        Reviews each submission still needs.
    segments : Segments
        What reviewers can take, at which cost.
    penalty : int
        Cost of one review left unfilled.

    Raises
    ------
    SolverRangeError
        Costs outside the range in which the solver is exact.
    SolverError
        Any status but optimal; flows are never read then, since that ends the process.
    """
    n_submissions, n_reviewers = shape
    sink = n_submissions + n_reviewers
    nodes = sink + 1
    largest = max(int(np.abs(cost).max(initial=0)), int(np.abs(segments.cost).max(initial=0)), abs(penalty))
    if largest > (1 << 62) // (nodes + 1):
        raise SolverRangeError(f"cost {largest} with {nodes} nodes leaves the solver's exact range")
    network = min_cost_flow.SimpleMinCostFlow()
    submissions = np.arange(n_submissions, dtype=np.int64)
    tail = np.concatenate([rows, n_submissions + segments.reviewer, submissions])
    head = np.concatenate([n_submissions + cols, np.full(segments.reviewer.size + n_submissions, sink)])
    capacity = np.concatenate([np.ones(rows.size, dtype=np.int64), segments.capacity, supply])
    unit_cost = np.concatenate([cost, segments.cost, np.full(n_submissions, penalty)])
    arcs = network.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, unit_cost)
    supplies = np.zeros(nodes, dtype=np.int64)
    supplies[:n_submissions] = supply
    supplies[sink] = -supply.sum()
    network.set_nodes_supplies(np.arange(nodes, dtype=np.int64), supplies)
    status = network.solve()
    if status != network.OPTIMAL:
        if status == network.BAD_COST_RANGE:
            raise SolverRangeError(f"the flow solver refuses the range of costs (largest {largest}, {nodes} nodes)")
        raise SolverError(f"the flow solver ended with status {status!s}", status=str(status))
    flow = network.flows(arcs)
    return Flow(flow[: rows.size] > 0, flow[rows.size + segments.reviewer.size :].astype(np.int64))
