"""The reduced problem with its active pairs, and what is done to all of it: flows, prices, sweeps, bounds.

Locked pairs and lines without room are taken out. The flow sees the active pairs alone; `price_in` makes active what
would improve it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from matching.constraints.linearised import Linearised
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError
from matching.pairs import PairSet
from matching.scores.base import blocks
from matching.solvers.flow import Flow, Scale
from matching.solvers.prices import Prices, Residual
from matching.solvers.reduced import best_flow
from matching.types import FloatArray, IntArray, PairArray

__all__ = [
    "Capacity", "Over", "State", "above", "band_below", "best_of_active", "bound_of", "drop_far", "exact_prices",
    "is_missing", "most_above", "open_prices", "price_in", "quick_flow", "range_of", "refined_prices", "state_of",
    "value_of",
]  # fmt: skip

DROP_FROM = 12  # old pairs kept a line when the next flow is laid out; those far below their prices only cost time
NEAR = 1  # pairs a line that come along with better ones because prices are about to move; they save a round
PAIRS_A_ROUND = 48  # most new pairs of a submission in a round: more grow the flow, fewer add rounds
RELAX_SWEEPS = 20_000  # far above the longest shortest path met; a guard, not a limit
REFINE_SWEEPS = 400  # refining float prices is a courtesy, so it may give up

Capacity = Callable[[IntArray, IntArray], FloatArray]
"""(rows, cols) -> most each of these pairs may carry, float64 in [0, 1]."""

Over = tuple[PairArray, FloatArray]
"""Pairs above their prices and by how much."""


@dataclass
class State:
    """The reduced problem (locked pairs and closed lines taken out), the active pairs and the present scores."""

    problem: AssignmentProblem
    units: int
    capacity: Capacity | None
    supply: IntArray
    beyond: IntArray  # demand above the number of reviewers: unfilled whatever the plan, kept out of the network
    load_max: IntArray
    load_min: IntArray
    closed: PairSet
    held: FloatArray  # plain scores of the locked pairs, 0 where unknown
    scores: Linearised
    scale: Scale
    low: float
    high: float
    low_plain: float
    high_plain: float
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    cols: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    plain: FloatArray = field(default_factory=lambda: np.empty(0))
    score: FloatArray = field(default_factory=lambda: np.empty(0))
    most: FloatArray = field(default_factory=lambda: np.empty(0))  # capacity of the active pairs, [0, 1]

    @property
    def penalty(self) -> float:
        return self.scale.penalty / self.scale.factor

    @property
    def gain(self) -> IntArray:
        """Linearised scores of the active pairs as the flow's integers."""
        return self.scale.integers(self.score)

    @property
    def limits(self) -> IntArray | None:
        """Most units of each active pair; None where each may be taken whole."""
        if self.capacity is None:
            return None
        return _whole_units(self.most, self.units)

    def add(self, pairs: PairArray) -> int:
        """Make pairs active; unknown, barred and locked ones and those of lines without room stay out."""
        rows, cols = pairs[:, 0], pairs[:, 1]
        keep = (self.supply[rows] > 0) & (self.load_max[cols] > 0) & ~self.closed.contains(rows, cols)
        rows, cols = rows[keep], cols[keep]
        width = self.problem.shape[1]
        keys, first = np.unique(rows * width + cols, return_index=True)
        rows, cols = rows[first], cols[first]
        if self.rows.size:
            known = np.sort(self.rows * width + self.cols)
            at = np.minimum(np.searchsorted(known, keys), known.size - 1)
            fresh = known[at] != keys
            rows, cols = rows[fresh], cols[fresh]
        plain = self.problem.scores.values(rows, cols)
        use = ~np.isnan(plain)
        most = np.ones(rows.size) if self.capacity is None else self.capacity(rows, cols)
        use &= _whole_units(most, self.units) >= 1
        self.rows = np.concatenate([self.rows, rows[use]])
        self.cols = np.concatenate([self.cols, cols[use]])
        self.plain = np.concatenate([self.plain, plain[use]])
        self.most = np.concatenate([self.most, most[use]])
        self.score = np.concatenate([self.score, self.scores.linear(rows[use], cols[use], plain[use])])
        return int(use.sum())

    def cut(self, size: int) -> None:
        """Forget all but the first `size` active pairs, those the last flow saw."""
        for name in ("rows", "cols", "plain", "most", "score"):
            setattr(self, name, getattr(self, name)[:size])

    @property
    def locked_value(self) -> float:
        """Linearised total of the locked pairs."""
        locked = self.problem.locked
        return float(self.scores.linear(locked[:, 0], locked[:, 1], self.held).sum())


def _whole_units(most: FloatArray, units: int) -> IntArray:
    """Capacities as whole units, rounded down but for 1e-12 of a review, since 0.3 * 10 is below 3 in floats."""
    return np.floor(most * units + min(max(1e-12 * units, 1e-9), 1.0 - 2.0**-10)).astype(np.int64)


def range_of(state: State) -> tuple[float, float]:
    """Smallest and largest linearised score, by a sweep where there are terms and from the weights otherwise."""
    scores = state.scores
    if scores.only_weights and scores.weights is not None:
        least, most = float(scores.weights.min(initial=0.0)), float(scores.weights.max(initial=0.0))
        corners = [factor * end for factor in (least, most) for end in (state.low_plain, state.high_plain)]
        return min(corners), max(corners)
    return scores.bounds()


def state_of(problem: AssignmentProblem, units: int, capacity: Capacity | None) -> State:
    held_rows, held_cols = problem.locked[:, 0], problem.locked[:, 1]
    supply = problem.demand - np.bincount(held_rows, minlength=problem.shape[0])
    held = np.bincount(held_cols, minlength=problem.shape[1])
    closed = problem.barred.union(problem.locked)
    low, high = problem.scores.bounds()
    within = np.minimum(supply, problem.shape[1]).astype(np.int64)
    # nobody reviews more than there is, so loads beyond that never bind; counted in fine units they would overflow
    room = problem.load_max - held if units == 1 else np.minimum(problem.load_max - held, problem.shape[0] + 1)
    return State(
        problem,
        units,
        capacity,
        within * units,
        (supply - within).astype(np.int64),
        (room * units).astype(np.int64),
        np.minimum(np.maximum(problem.load_min - held, 0), room).astype(np.int64) * units,
        closed,
        np.nan_to_num(problem.scores.values(held_rows, held_cols)),
        Linearised(problem.scores),
        Scale.fit(low, high, problem.shape, int(within.sum())),  # in reviews: only costs are bounded, not amounts
        low,
        high,
        low,
        high,
    )


def price_in(state: State, u: FloatArray, w: FloatArray, near: float = 0.0) -> tuple[int, Over]:
    """Add pairs that would improve the plan; 0 only after a sweep that left none out, whose finds are handed back.

    With those pairs come others up to `near` below their prices, which are about to move.
    """
    resolution, added = 1.0 / state.scale.factor, 0
    for limit in (PAIRS_A_ROUND, None):
        pairs, excess, complete = state.scores.exceeding(u, w, -near, limit, state.closed)
        above = excess > resolution
        added = state.add(pairs[above])
        if added and near > 0.0:
            added += state.add(pairs[~above])
        if added or complete:
            break
    over = excess > 0.0
    return added, (pairs[over], excess[over])


def band_below(state: State, flow: Flow, u: FloatArray, w: FloatArray) -> float:
    """How far below their prices the nearest active pairs lie, NEAR of them a line."""
    below = (u[state.rows] + w[state.cols] - state.score)[flow.amount == 0]
    below = below[below > 0.0]
    most = NEAR * sum(state.problem.shape)
    return float(np.partition(below, most)[most]) if below.size > most else 0.0


def above(state: State, u: FloatArray, w: FloatArray) -> Over:
    pairs, excess, _ = state.scores.exceeding(u, w, 0.0, None, state.closed)
    return pairs, excess


def drop_far(state: State, flow: Flow, u: FloatArray, w: FloatArray) -> None:
    """Forget old pairs far below their prices; the sweep would find them again if they came to matter."""
    size = flow.amount.size
    most = DROP_FROM * sum(state.problem.shape)
    if size <= most:
        return
    below = u[state.rows[:size]] + w[state.cols[:size]] - state.score[:size]
    near = below <= np.partition(below, most - 1)[most - 1]
    keep = np.ones(state.rows.size, dtype=bool)
    keep[:size] = near | flow.taken
    for name in ("rows", "cols", "plain", "most", "score"):
        setattr(state, name, getattr(state, name)[keep])


def best_of_active(state: State, start: tuple[Prices, int] | None = None) -> Flow:
    """One call of the solver on the active pairs."""
    return best_flow(
        state.problem.shape, state.rows, state.cols, state.gain, state.supply, state.load_min, state.load_max,
        state.scale.penalty, state.limits, start,
    )  # fmt: skip


def quick_flow(state: State) -> Flow:
    """The same flow, with small numbers where nothing is missing."""
    whole = state.scale
    state.scale = whole.eased()
    try:
        flow = best_of_active(state)
    finally:
        state.scale = whole
    return best_of_active(state) if is_missing(state, flow) else flow


def most_above(state: State, added: int, u: FloatArray, w: FloatArray) -> float:
    """How far the best of the pairs added last lies above its prices."""
    last = slice(state.rows.size - added, None)
    return float((state.score[last] - u[state.rows[last]] - w[state.cols[last]]).max(initial=0.0))


def is_missing(state: State, flow: Flow) -> bool:
    """Whether a flow leaves demand or load_min open."""
    load = np.bincount(state.cols, weights=flow.amount, minlength=state.problem.shape[1])
    return bool(flow.unfilled.any() or state.beyond.any() or (load < state.load_min).any())


def _residual(state: State, flow: Flow) -> Residual:
    load = np.bincount(state.cols, weights=flow.amount, minlength=state.problem.shape[1]).astype(np.int64)
    return Residual(
        state.problem.shape, state.rows, state.cols, flow.amount, flow.unfilled, state.supply, load,
        state.load_min, state.load_max, state.limits,
    )  # fmt: skip


def exact_prices(state: State, flow: Flow, start: Prices | None) -> Prices:
    """Exact integer prices of the active problem; lines without room get a price no pair exceeds."""
    found = _residual(state, flow).relax(state.gain, state.scale.penalty, start, RELAX_SWEEPS)
    if found is None:
        # relaxation converges for every optimal flow; not converging means that it was none
        raise SolverError("the flow solver's answer has no dual prices; it is not optimal")
    return found


def _as_scores(state: State, prices: Prices) -> tuple[FloatArray, FloatArray]:
    """Prices in units of score, float64, with lines that have no room left closed by a price above any score."""
    u = prices.u / state.scale.factor
    w = prices.w / state.scale.factor
    roof = state.high - state.low + abs(state.high) + 2 * state.penalty + 1.0
    u[state.supply == 0] = roof
    u[state.beyond > 0] = -state.penalty  # all their pairs are assigned, and reviews are missing all the same
    w[state.load_max == 0] = roof
    return u, w


def refined_prices(state: State, flow: Flow, prices: Prices) -> tuple[FloatArray, FloatArray]:
    """Prices in original floats where they converge, which makes a tight proof; else the exact integer ones."""
    u, w = _as_scores(state, prices)
    refined = _residual(state, flow).relax(
        state.score, state.penalty, Prices(u, w), REFINE_SWEEPS, tolerance=1e-13 * max(1.0, abs(state.high))
    )
    if refined is None:
        return u, w
    finer_u, finer_w = refined.u.copy(), refined.w.copy()
    shut = (state.supply == 0) | (state.beyond > 0)
    finer_u[shut] = u[shut]
    shut = state.load_max == 0
    finer_w[shut] = w[shut]
    return finer_u, finer_w


def bound_of(state: State, flow: Flow, u: FloatArray, w: FloatArray, found: Over) -> float:
    """Upper bound on the linearised total of every plan that misses as few reviews, from prices alone."""
    problem, units = state.problem, state.units
    over, excess = found
    if state.capacity is not None:
        excess = excess * state.capacity(over[:, 0], over[:, 1])
    load = np.bincount(state.cols, weights=flow.amount, minlength=problem.shape[1])
    below = np.maximum(state.load_min - load, 0) / units
    unfilled = flow.unfilled / units + state.beyond
    open_u = np.where(state.supply > 0, u, 0.0)
    # missing reviews are paid for line by line: apart, the price and the penalty are huge and cancel
    return float(
        state.locked_value
        + (state.supply - flow.unfilled) / units @ open_u
        + unfilled @ np.where(unfilled > 0, u + state.penalty, 0.0)
        + state.load_max / units @ np.where(state.load_max > 0, np.maximum(w, 0.0), 0.0)
        - (state.load_min / units - below) @ np.maximum(-w, 0.0)
        + below @ (state.penalty - np.maximum(-w, 0.0))
        + excess.sum()
    )


def value_of(state: State, flow: Flow) -> float:
    taken = np.flatnonzero(flow.amount)
    return state.locked_value + float((state.score[taken] * flow.amount[taken]).sum() / state.units)


def open_prices(state: State, u: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lines without room get the smallest price that keeps the proof: what one more review there would bring."""
    # what nobody can give is no room: its price is what the proof has for it
    no_supply, no_room = (state.supply == 0) & (state.beyond == 0), state.load_max == 0
    if not (no_supply.any() or no_room.any()):
        return u, w
    u_open = np.where(no_supply, -state.penalty, u)
    w_open = np.where(no_room, 0.0, w)
    for rows, cols in blocks(state.problem.shape):
        need_rows, need_cols = no_supply[rows].any(), no_room[cols].any()
        if not (need_rows or need_cols):
            continue
        part = _open_block(state, rows, cols)
        if need_rows:
            best = np.fmax.reduce(part - np.where(no_room[cols], np.inf, w[cols])[None, :], axis=1)
            chosen = no_supply[rows]
            u_open[rows] = np.where(chosen, np.fmax(u_open[rows], best), u_open[rows])
    for rows, cols in blocks(state.problem.shape):
        if not no_room[cols].any():
            continue
        best = np.fmax.reduce(_open_block(state, rows, cols) - u_open[rows][:, None], axis=0)
        w_open[cols] = np.where(no_room[cols], np.fmax(w_open[cols], best), w_open[cols])
    return u_open, w_open


def _open_block(state: State, rows: slice, cols: slice) -> FloatArray:
    """Upper ends of the scores of a block, NaN where a pair is closed."""
    part = np.array(state.scores.block(rows, cols), dtype=np.float64)
    part += state.scores.tolerance
    part[state.closed.within(rows, cols)] = np.nan
    return part
