"""The oracle that every objective rests on: the best flow for given weights, exact over all pairs.

The flow sees only the active pairs. Its dual prices say which of all the other pairs would improve the plan;
those join and the flow is solved again. When a sweep over every pair finds none, the flow is optimal over the
whole matrix and the prices prove it (column generation, Dantzig and Wolfe, 1960; for assignment see Ahuja,
Magnanti and Orlin, 1993, section 17). An `Oracle` keeps its active pairs between calls, so a second call with
other weights mostly finds what it needs. Cost: a handful of flows over k * (n_submissions + n_reviewers) pairs
and as many sweeps; memory: the active pairs and one block.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.constraints.linearised import Linearised
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError, SolverRangeError
from matching.pairs import PairSet, in_row_order
from matching.scores.base import DenseScores, blocks
from matching.scores.candidates import Opening, Sample, large, sampled, top_by_threshold
from matching.scores.fan import sweeping
from matching.solvers.flow import Flow, Scale
from matching.solvers.prices import Prices, Residual
from matching.solvers.reduced import best_flow
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["ROUNDING", "Capacity", "Clock", "Extreme", "Oracle", "Over", "State", "open_prices", "slack_of"]

DENSE_PAIRS = 400_000  # up to here every pair is active from the start; the flow itself takes a fraction of a second
DROP_FROM = 12  # old pairs kept a line when the next flow is laid out; those far below their prices only cost time
LAST_DROP = 2  # round after which nothing is dropped any more, so that no pair comes and goes for ever
PRICES_MOVE = 4.0  # times the largest excess of a new pair: further no price is expected to move
COARSE_STEPS = 4096  # steps of coarse integers that prices may move when these get finer
EASED_ROUNDS = 2  # after so many, reviews that are still missing are no matter of a few better candidates
SAMPLE_ROUNDS = 2  # on a sample, whose prices are guesses for all others anyway
PRICED_CANDIDATES = 0.5  # times `candidates`: as many as are needed when they are chosen by prices
NEAR = 1  # pairs a line that come along with better ones because prices are about to move; they save a round
PAIRS_A_ROUND = 48  # most new pairs of a submission in a round: more grow the flow, fewer add rounds
RELAX_SWEEPS = 20_000  # far above the longest shortest path met; a guard, not a limit
REFINE_SWEEPS = 400  # refining float prices is a courtesy, so it may give up
ROUNDING = 1e-9  # relative rounding of sums over a plan; gaps below it are 0

Capacity = Callable[[IntArray, IntArray], FloatArray]
"""(rows, cols) -> most each of these pairs may carry, float64 in [0, 1]."""

Over = tuple[PairArray, FloatArray]
"""Pairs above their prices and by how much."""


def slack_of(value: float) -> float:
    """Differences up to this are the rounding of float64 sums."""
    return ROUNDING * max(1.0, abs(value))


class Clock:
    """Seconds a stage and what is left of the limit."""

    def __init__(self, time_limit: float | None) -> None:
        self.start = time.perf_counter()
        self.limit = time_limit
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the seconds spent inside to the stage `name`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        """Since the clock was made."""
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.limit is not None and self.seconds > self.limit

    @property
    def left(self) -> float | None:
        """Seconds to the limit, at least 0; None without one."""
        return None if self.limit is None else max(0.0, self.limit - self.seconds)


@dataclass(frozen=True, eq=False)
class Extreme:
    """The best flow for one set of weights.

    Attributes
    ----------
    rows, cols : ndarray of shape (n,), int64
        Pairs that carry something, locked ones first.
    share : ndarray of shape (n,), float64
        What each carries, (0, 1]; 1 throughout unless a capacity was given.
    score : ndarray of shape (n,), float64
        The plain score of each, 0 for a locked pair of unknown score.
    sums : ndarray of shape (n_submissions,), float64
        Plain scores summed by submission, each times its share.
    value, bound : float
        Linearised total and what no lawful plan that misses as few reviews can exceed.
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,), float64
        Prices in units of the linearised score, lines without room included.
    unfilled, below_min : ndarray, int64
        Missing reviews, counted in whole reviews, rounded up.
    penalty : float
        Price of a missing review, in units of the linearised score.
    proven : bool
        Whether no pair outside the active ones could improve it; False after a time limit.
    rounds : int
    """

    rows: IntArray
    cols: IntArray
    share: FloatArray
    score: FloatArray
    sums: FloatArray
    value: float
    bound: float
    u: FloatArray
    w: FloatArray
    unfilled: IntArray
    below_min: IntArray
    penalty: float
    proven: bool
    rounds: int

    @property
    def missing(self) -> bool:
        """Whether some review is missing."""
        return bool(self.unfilled.any() or self.below_min.any())

    @property
    def pairs(self) -> PairArray:
        """The pairs, int64 of shape (n, 2), in row order."""
        return in_row_order(np.column_stack([self.rows, self.cols]))


@dataclass(frozen=True, eq=False)
class _Found:
    """What rounds ended with: `flow` on the active pairs, in `scale`; float prices; value and bound."""

    flow: Flow
    prices: tuple[FloatArray, FloatArray]
    value: float
    bound: float
    proven: bool
    rounds: int
    scale: Scale


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


class Oracle:
    """Best lawful flows for one problem under changing weights.

    Parameters
    ----------
    problem : AssignmentProblem
        Its `rules` are not looked at; they reach the oracle as prices.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    units : int
        Units a whole review is counted in, [1, 2**40]; above 1 for shares of pairs. All reviews together must stay
        below 2**62 units (`matching.solvers.sampling.unit_bits`).
    capacity : Capacity or None
        Most each pair may carry; None for 1. Locked pairs carry 1 whatever it says. Rounded down to whole units, but
        for 1e-12 of a review.
    rng : int
        Orders candidates that tie.
    clock : Clock or None
        Where the time goes and when it ends.
    drop : bool
        Whether old pairs far below their prices are forgotten between two flows. That saves time in a single call; who
        keeps places of active pairs from one call to the next must not ask for it.
    active : ndarray of shape (n, 2), int64, or None
        Pairs to start with instead of candidates, for example those another oracle ended with.
    executor : Executor or None
        Computes the sweeps over all pairs; see `matching.scores.fan.sweeping`.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        *,
        candidates: int = 16,
        dense_pairs: int = DENSE_PAIRS,
        units: int = 1,
        capacity: Capacity | None = None,
        rng: int = 0,
        clock: Clock | None = None,
        drop: bool = False,
        active: PairArray | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.problem = problem
        self.drop = drop
        self.clock = clock or Clock(None)
        self.candidates = candidates
        self.prices: Prices | None = None
        self.lacking = False  # whether the last flow left reviews missing
        self.everything = active is None and problem.shape[0] * problem.shape[1] <= dense_pairs
        self.executor = executor
        with self.clock.stage("candidates"), sweeping(executor):
            self.state = _reduce(problem, units, capacity)
            if active is not None:
                self.state.add(active)
            elif self.everything:
                self.state.add(np.indices(problem.shape).reshape(2, -1).T)
            elif large(problem.shape) and problem.scores.graded:
                self.state.add(self._opened(np.random.default_rng(rng)))
            else:
                self.state.add(problem.scores.top_pairs(candidates, self.state.closed, np.random.default_rng(rng)))

    def _opened(self, rng: np.random.Generator) -> PairArray:
        """First candidates of a large problem, chosen by the prices of a sample of it.

        By score alone everybody chooses the same few; by score minus prices fewer candidates are enough.
        """
        state, scores = self.state, self.problem.scores
        sample = Sample.of(self.problem.shape, rng)
        inside = sampled(scores, sample, state.closed)
        rows, cols = (np.concatenate([np.r_[part] for part in some]) for some in (sample.rows, sample.cols))
        supply, room = state.supply // state.units, state.load_max // state.units
        part = AssignmentProblem.of(DenseScores(inside), demand=supply[rows], load_max=room[cols])
        oracle = Oracle(part, candidates=max(1, self.candidates // 2), drop=True)
        found = oracle.best(rounds=SAMPLE_ROUNDS)
        assert found is not None  # there is no limit to come before the first flow
        u, w = np.zeros(self.problem.shape[0]), np.zeros(self.problem.shape[1])
        reach = max(abs(state.low), abs(state.high))  # nobody is worth more; a missing review has the price of many
        u[rows], w[cols] = (np.clip(price, -reach, reach) for price in oracle.raw_prices)
        fewer = max(1, round(self.candidates * PRICED_CANDIDATES))
        return top_by_threshold(scores, fewer, state.closed, rng, sample, Opening(u, w, supply, room))

    def best(
        self,
        weights: FloatArray | None = None,
        terms: sparse.sparray | None = None,
        groups: Sequence[tuple[GroupBound, sparse.sparray]] = (),
        tell: Callable[[str, int, float | None], None] | None = None,
        rounds: int | None = None,
    ) -> Extreme | None:
        """The lawful flow of the largest linearised total; see `Linearised` for the arguments.

        Parameters
        ----------
        tell : callable, optional
            Called with (phase, round, value) before each step.
        rounds : int or None
            After so many it ends without proof; None for no end.

        Returns
        -------
        Extreme or None
            None where the time limit came before the first flow.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        state = self.state
        tell = tell or (lambda phase, rounds, value: None)
        self._use(Linearised(self.problem.scores, weights, terms, groups))
        self._rescale(-state.scale.bits)
        whole = state.scale
        try:
            found = self._rounds(tell, rounds or sys.maxsize, None)
            if found is not None and found.proven and self._too_coarse(found):
                found = self._finer(found, whole.spare, tell)
            if found is None:
                return None
            self.flow, self.raw_prices = found.flow, found.prices
            self.lacking = _missing(state, found.flow)
            if not self.lacking:
                state.scale = whole.finer(found.scale.bits)  # the prices hold for it as well
            return self.extreme(found.flow, found.bound, *found.prices, found.proven, found.rounds)
        finally:
            state.scale = whole.finer(state.scale.bits)

    def _too_coarse(self, found: _Found) -> bool:
        """Whether the best of these integers leaves a gap: in very large problems their steps are above 1e-7."""
        state = self.state
        return state.scores.plain and state.units == 1 and found.bound - found.value > slack_of(found.value)

    def _finer(self, found: _Found, bits: int, tell: Callable[[str, int, float | None], None]) -> _Found:
        """The best to finer steps, begun from these prices, which are a few of the old steps off.

        Where that does not come to an end, `found` as what it is: near the best, but not proven to be.
        """
        state = self.state
        self.lacking = _missing(state, found.flow)
        before, active = self.prices, (state.rows, state.cols, state.plain, state.most, state.score)
        self._rescale(bits)
        try:
            finer = self._rounds(tell, sys.maxsize, COARSE_STEPS << bits)
        except SolverRangeError:  # prices moved further: whole costs are too large for these steps
            finer = None
        if finer is not None and finer.proven:
            return replace(finer, rounds=found.rounds + finer.rounds)
        self._rescale(-bits)
        state.rows, state.cols, state.plain, state.most, state.score = active
        state.scale, self.prices = found.scale, before
        return replace(found, proven=False)

    def _rescale(self, bits: int) -> None:
        """So many binary digits more in costs and prices."""
        if bits:
            self.state.scale = self.state.scale.finer(bits)
            self.prices = None if self.prices is None else self.prices.shifted(bits)

    def _rounds(self, tell: Callable[[str, int, float | None], None], most: int, far: int | None) -> _Found | None:
        """Flows, prices and sweeps until no pair improves the flow, or `most` rounds; None where there was no time.

        `far` is how much prices may move from those of before; None where they are none to begin from. The scale is
        left as the last flow was solved in.
        """
        state, clock = self.state, self.clock
        rounds, flow, proven, anew, bound = 0, None, False, False, math.inf
        u, w = np.empty(0), np.empty(0)
        value: float | None = None
        whole = state.scale
        state.scale = whole if self.lacking else whole.eased()
        while not (clock.over or proven or rounds >= most):
            rounds += 1
            tell("flow", rounds, value)
            with clock.stage("flow"):
                if self.drop and flow is not None and rounds <= LAST_DROP:
                    _drop(state, flow, u, w)
                flow = self.flowing(None if far is None or anew or self.prices is None else (self.prices, far))
                if (rounds >= EASED_ROUNDS or self.everything) and state.scale is not whole and _missing(state, flow):
                    state.scale, anew = whole, True
                    flow = self.flowing(None)
            tell("prices", rounds, value)
            with clock.stage("prices"):
                # from those of the small penalty they would end between the whole ones, which tell what is missing
                self.prices, anew = _prices(state, flow, None if anew else self.prices), False
            value = _value(state, flow)
            with clock.stage("prices"):
                u, w = _refined(state, flow, self.prices)
            tell("sweep", rounds, value)
            with clock.stage("sweeps"), sweeping(self.executor):
                near = _band(state, flow, u, w) if self.drop and rounds <= LAST_DROP else 0.0
                added, over = self.pricing_in(u, w, near)
                proven = added == 0
                far = None if proven else state.scale.steps(PRICES_MOVE * _most_above(state, added, u, w))
                if proven and state.scale is not whole and _missing(state, flow):
                    proven, state.scale, anew = False, whole, True
                if proven:
                    bound = _bound(state, flow, u, w, over)
        if flow is None or value is None:
            return None
        if not proven:
            state.cut(flow.amount.size)
            with clock.stage("sweeps"), sweeping(self.executor):
                bound = _bound(state, flow, u, w, _over(state, u, w))
        return _Found(flow, (u, w), value, bound, proven, rounds, state.scale)

    def flowing(self, last: tuple[Prices, int] | None) -> Flow:
        """The best flow on the active pairs; `last` are prices near those to come and how far they may move."""
        return _flow(self.state, last)

    def pricing_in(self, u: FloatArray, w: FloatArray, near: float) -> tuple[int, Over]:
        """Add pairs above these prices: how many, 0 only where none is left out, and those found with their excess.

        With them come others up to `near` below their prices.
        """
        return _price_in(self.state, u, w, near)

    def corner(self, weights: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """The best flow for these weights on the active pairs alone: one flow, no prices and no proof.

        Returns
        -------
        taken : ndarray of shape (n,), int64
            Positions of its pairs among the active ones.
        sums : ndarray of shape (n_submissions,), float64
            Plain scores summed by submission, locked pairs included.
        """
        self._use(Linearised(self.problem.scores, weights))
        self._rescale(-self.state.scale.bits)
        with self.clock.stage("flow"):
            flow = _quick_flow(self.state)
        state, locked = self.state, self.problem.locked[:, 0]
        taken = np.flatnonzero(flow.amount)
        sums = np.bincount(
            state.rows[taken], state.plain[taken] * flow.amount[taken] / state.units, self.problem.shape[0]
        )
        held = np.bincount(locked, state.held, self.problem.shape[0])
        return taken.astype(np.int64), (sums + held).astype(np.float64)

    def extreme(self, flow: Flow, bound: float, u: FloatArray, w: FloatArray, proven: bool, rounds: int) -> Extreme:
        """A flow on the active pairs as an `Extreme`."""
        state, problem = self.state, self.problem
        with self.clock.stage("prices"):
            u, w = open_prices(state, u, w)
        taken = np.flatnonzero(flow.amount)
        locked = problem.locked
        rows = np.concatenate([locked[:, 0], state.rows[taken]])
        cols = np.concatenate([locked[:, 1], state.cols[taken]])
        share = np.concatenate([np.ones(len(locked)), flow.amount[taken] / state.units])
        score = np.concatenate([state.held, state.plain[taken]])
        load = np.bincount(state.cols[taken], weights=flow.amount[taken], minlength=problem.shape[1])
        below = np.maximum(state.load_min - load, 0).astype(np.int64)
        return Extreme(
            rows, cols, share, score,
            np.bincount(rows, weights=score * share, minlength=problem.shape[0]).astype(np.float64),
            _value(state, flow), bound, u, w,
            -(-flow.unfilled // state.units) + state.beyond, -(-below // state.units),
            state.penalty, proven, rounds,
        )  # fmt: skip

    def _use(self, scores: Linearised) -> None:
        """Put other weights on the active pairs; prices of before are carried over as a start."""
        state = self.state
        if scores.plain and state.scores.plain:
            return
        state.scores = scores
        state.score = scores.linear(state.rows, state.cols, state.plain)
        low, high = (state.low_plain, state.high_plain) if scores.plain else _range(state)
        before = state.scale
        reviews = int(state.supply.sum()) // state.units
        state.scale, state.low, state.high = Scale.fit(low, high, state.problem.shape, reviews), low, high
        if self.prices is not None and before.factor != state.scale.factor:
            ratio, most = state.scale.factor / before.factor, 2.0 * state.scale.penalty
            # no price of a start helps beyond the penalty, and scales apart by more than 2**63 have no integers
            self.prices = Prices(
                np.rint(np.clip(self.prices.u * ratio, -most, most)).astype(np.int64),
                np.rint(np.clip(self.prices.w * ratio, -most, most)).astype(np.int64),
            )


def _whole_units(most: FloatArray, units: int) -> IntArray:
    """Capacities as whole units, rounded down but for 1e-12 of a review, since 0.3 * 10 is below 3 in floats."""
    return np.floor(most * units + min(max(1e-12 * units, 1e-9), 1.0 - 2.0**-10)).astype(np.int64)


def _range(state: State) -> tuple[float, float]:
    """Smallest and largest linearised score, by a sweep where there are terms and from the weights otherwise."""
    scores = state.scores
    if scores.only_weights and scores.weights is not None:
        least, most = float(scores.weights.min(initial=0.0)), float(scores.weights.max(initial=0.0))
        corners = [factor * end for factor in (least, most) for end in (state.low_plain, state.high_plain)]
        return min(corners), max(corners)
    return scores.bounds()


def _reduce(problem: AssignmentProblem, units: int, capacity: Capacity | None) -> State:
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


def _price_in(state: State, u: FloatArray, w: FloatArray, near: float = 0.0) -> tuple[int, Over]:
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


def _band(state: State, flow: Flow, u: FloatArray, w: FloatArray) -> float:
    """How far below their prices the nearest active pairs lie, NEAR of them a line."""
    below = (u[state.rows] + w[state.cols] - state.score)[flow.amount == 0]
    below = below[below > 0.0]
    most = NEAR * sum(state.problem.shape)
    return float(np.partition(below, most)[most]) if below.size > most else 0.0


def _over(state: State, u: FloatArray, w: FloatArray) -> Over:
    pairs, excess, _ = state.scores.exceeding(u, w, 0.0, None, state.closed)
    return pairs, excess


def _drop(state: State, flow: Flow, u: FloatArray, w: FloatArray) -> None:
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


def _flow(state: State, start: tuple[Prices, int] | None = None) -> Flow:
    """One call of the solver on the active pairs."""
    return best_flow(
        state.problem.shape, state.rows, state.cols, state.gain, state.supply, state.load_min, state.load_max,
        state.scale.penalty, state.limits, start,
    )  # fmt: skip


def _quick_flow(state: State) -> Flow:
    """The same flow, with small numbers where nothing is missing."""
    whole = state.scale
    state.scale = whole.eased()
    try:
        flow = _flow(state)
    finally:
        state.scale = whole
    return _flow(state) if _missing(state, flow) else flow


def _most_above(state: State, added: int, u: FloatArray, w: FloatArray) -> float:
    """How far the best of the pairs added last lies above its prices."""
    last = slice(state.rows.size - added, None)
    return float((state.score[last] - u[state.rows[last]] - w[state.cols[last]]).max(initial=0.0))


def _missing(state: State, flow: Flow) -> bool:
    """Whether a flow leaves demand or load_min open."""
    load = np.bincount(state.cols, weights=flow.amount, minlength=state.problem.shape[1])
    return bool(flow.unfilled.any() or state.beyond.any() or (load < state.load_min).any())


def _residual(state: State, flow: Flow) -> Residual:
    load = np.bincount(state.cols, weights=flow.amount, minlength=state.problem.shape[1]).astype(np.int64)
    return Residual(
        state.problem.shape, state.rows, state.cols, flow.amount, flow.unfilled, state.supply, load,
        state.load_min, state.load_max, state.limits,
    )  # fmt: skip


def _prices(state: State, flow: Flow, start: Prices | None) -> Prices:
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


def _refined(state: State, flow: Flow, prices: Prices) -> tuple[FloatArray, FloatArray]:
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


def _bound(state: State, flow: Flow, u: FloatArray, w: FloatArray, found: Over) -> float:
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


def _value(state: State, flow: Flow) -> float:
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
