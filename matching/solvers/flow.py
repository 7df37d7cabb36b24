"""The oracle: a transport problem as a minimum-cost flow, exact on integers.

    submission --(pair, capacity 1)--> reviewer --(load segments)--> sink
         \\--(unfilled, at a high price)-------------------------------^

The unfilled arcs make every network feasible, so the solver always answers with the fullest plan; what is
missing is read off those arcs. Scores become integers at a stated resolution (`Scale`), and everything the
caller reports is recomputed from the original floats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from matching.errors import SolverError, SolverRangeError
from matching.types import FloatArray, IntArray

__all__ = ["Detours", "Flow", "Scale", "Segments", "cheapest", "transport"]

COST_LIMIT = 1 << 60  # the solver multiplies costs by the number of nodes inside a signed 64-bit integer
PRICE_BITS = 58  # of a price at most: sums and differences of a few of them fit 64 bits
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
    path : int
        How many ranges of scores the penalty holds.
    bits : int
        Binary digits that `finer` has added to the factor.
    """

    factor: float
    penalty: int
    path: int = 1
    bits: int = 0

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
        return cls(factor, path * (math.ceil(span * factor) + 1), path)

    def eased(self) -> Scale:
        """The same with a price of a missing review that is just above any two scores.

        It is paid wherever filling a review would cost more than that. A flow that pays it nowhere is the best at any
        higher price too, and the smaller numbers take the solver half the time.
        """
        return replace(self, penalty=min(self.penalty, 4 * (self.penalty // self.path + 1)), path=4)

    @property
    def spare(self) -> int:
        """Binary digits the factor may have more, so that prices still are integers of 64 bits."""
        span = max(1, self.penalty // self.path)
        return max(0, min(FINEST_BITS - span.bit_length(), PRICE_BITS - self.penalty.bit_length()))

    def finer(self, bits: int) -> Scale:
        """The same with so many more digits, negative ones to undo that.

        Whole costs of it may be too large for the solver; differences from good prices are small (`best_flow`).
        """
        penalty = self.penalty << bits if bits >= 0 else self.penalty >> -bits
        return replace(self, factor=math.ldexp(self.factor, bits), penalty=penalty, bits=self.bits + bits)

    def steps(self, size: float) -> int:
        """A difference of scores as an integer, rounded up, at least 1."""
        return math.ceil(size * self.factor) + 1

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
class Detours:
    """Nodes between some pairs and their reviewers, where those pairs are counted and charged together.

    Attributes
    ----------
    node : ndarray of shape (n_pairs,), int64
        The node each offered pair goes through, -1 for none; a node serves pairs of one reviewer.
    arcs : Segments
        Parallel arcs from a node to its reviewer; `reviewer` holds the node.
    reviewer : ndarray of shape (n_nodes,), int64
    """

    node: IntArray
    arcs: Segments
    reviewer: IntArray


@dataclass(frozen=True, slots=True)
class Flow:
    """What the oracle answers.

    Attributes
    ----------
    amount : ndarray of shape (n_pairs,), int64
        Units each offered pair carries, at most its capacity; a whole review is one unit unless the caller
        counts in finer ones.
    unfilled : ndarray of shape (n_submissions,), int64
        Units.
    """

    amount: IntArray
    unfilled: IntArray

    @property
    def taken(self) -> NDArray[np.bool_]:
        """Which of the offered pairs carry anything."""
        return self.amount > 0


def transport(
    shape: tuple[int, int],
    rows: IntArray,
    cols: IntArray,
    cost: IntArray,
    supply: IntArray,
    segments: Segments,
    penalty: int | IntArray,
    capacity: IntArray | None = None,
    detours: Detours | None = None,
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
    penalty : int or ndarray of shape (n_submissions,), int64
        Cost of one review left unfilled.
    capacity : ndarray of shape (n_pairs,), int64, or None
        Most units of each offered pair; None for one.
    detours : Detours or None
        Pairs of a reviewer that are charged for their number.

    Raises
    ------
    SolverRangeError
        Costs outside the range in which the solver is exact.
    SolverError
        Any status but optimal; flows are never read then, since that ends the process.
    """
    n_submissions, n_reviewers = shape
    sink = n_submissions + n_reviewers
    nodes = sink + 1 + (0 if detours is None else detours.reviewer.size)
    missing = np.broadcast_to(np.asarray(penalty, dtype=np.int64), n_submissions)
    submissions = np.arange(n_submissions, dtype=np.int64)
    tail = np.concatenate([rows, n_submissions + segments.reviewer, submissions])
    into = n_submissions + cols
    if detours is not None:
        into = np.where(detours.node >= 0, sink + 1 + detours.node, into)
    head = np.concatenate([into, np.full(segments.reviewer.size + n_submissions, sink)])
    of_pairs = np.ones(rows.size, dtype=np.int64) if capacity is None else capacity
    room = np.concatenate([of_pairs, segments.capacity, supply])
    unit_cost = np.concatenate([cost, segments.cost, missing])
    if detours is not None:
        at = detours.arcs
        tail = np.concatenate([tail, sink + 1 + at.reviewer])
        head = np.concatenate([head, n_submissions + detours.reviewer[at.reviewer]])
        room, unit_cost = np.concatenate([room, at.capacity]), np.concatenate([unit_cost, at.cost])
    supplies = np.zeros(nodes, dtype=np.int64)
    supplies[:n_submissions] = supply
    supplies[sink] = -supply.sum()
    flow = cheapest(tail, head, room, unit_cost, supplies)
    first = rows.size + segments.reviewer.size
    return Flow(flow[: rows.size], flow[first : first + n_submissions])


def cheapest(tail: IntArray, head: IntArray, capacity: IntArray, cost: IntArray, supplies: IntArray) -> IntArray:
    """The cheapest flow of any network, exact.

    Parameters
    ----------
    tail, head, capacity, cost : ndarray of shape (n_arcs,), int64
        Arcs between nodes in [0, n_nodes), their room, not negative, and what a unit costs.
    supplies : ndarray of shape (n_nodes,), int64
        What each node sends out, below 0 where it takes in; 0 in all.

    Returns
    -------
    ndarray of shape (n_arcs,), int64

    Raises
    ------
    SolverRangeError
        Costs outside the range in which the solver is exact.
    SolverError
        Any status but optimal; flows are never read then, since that ends the process.
    """
    largest, nodes = int(np.abs(cost).max(initial=0)), supplies.size
    if largest > (1 << 62) // (nodes + 1):
        raise SolverRangeError(f"cost {largest} with {nodes} nodes leaves the solver's exact range")
    network = min_cost_flow.SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(tail, head, capacity, cost)
    network.set_nodes_supplies(np.arange(nodes, dtype=np.int64), supplies)
    status = network.solve()
    if status != network.OPTIMAL:
        if status == network.BAD_COST_RANGE:
            raise SolverRangeError(f"the flow solver refuses the range of costs (largest {largest}, {nodes} nodes)")
        raise SolverError(f"the flow solver ended with status {status!s}", status=str(status))
    return np.asarray(network.flows(arcs), dtype=np.int64)
