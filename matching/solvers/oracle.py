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
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.constraints.linearised import Linearised
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverRangeError
from matching.pairs import in_row_order
from matching.scores.base import DenseScores
from matching.scores.candidates import Opening, Sample, large, sampled, top_by_threshold
from matching.scores.fan import sweeping
from matching.solvers.clock import Clock, slack_of
from matching.solvers.flow import Flow, Scale
from matching.solvers.prices import Prices
from matching.solvers.state import (
    Capacity,
    Over,
    above,
    band_below,
    best_of_active,
    bound_of,
    drop_far,
    exact_prices,
    is_missing,
    most_above,
    open_prices,
    price_in,
    quick_flow,
    range_of,
    refined_prices,
    state_of,
    value_of,
)
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["DENSE_PAIRS", "Extreme", "Oracle"]

DENSE_PAIRS = 400_000  # up to here every pair is active from the start; the flow itself takes a fraction of a second
LAST_DROP = 2  # round after which nothing is dropped any more, so that no pair comes and goes for ever
PRICES_MOVE = 4.0  # times the largest excess of a new pair: further no price is expected to move
COARSE_STEPS = 4096  # steps of coarse integers that prices may move when these get finer
EASED_ROUNDS = 2  # after so many, reviews that are still missing are no matter of a few better candidates
SAMPLE_ROUNDS = 2  # on a sample, whose prices are guesses for all others anyway
PRICED_CANDIDATES = 0.5  # times `candidates`: as many as are needed when they are chosen by prices


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

    def spares(self, loss: float) -> bool:
        """Whether a flow worth so much less ties with it; what rounding has taken is not taken twice."""
        slack, gap = slack_of(self.value), max(0.0, self.bound - self.value)
        return loss <= (slack - gap if gap <= slack else slack)

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
            self.state = state_of(problem, units, capacity)
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
            self.lacking = is_missing(state, found.flow)
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
        self.lacking = is_missing(state, found.flow)
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
                    drop_far(state, flow, u, w)
                flow = self.flowing(None if far is None or anew or self.prices is None else (self.prices, far))
                if (rounds >= EASED_ROUNDS or self.everything) and state.scale is not whole and is_missing(state, flow):
                    state.scale, anew = whole, True
                    flow = self.flowing(None)
            tell("prices", rounds, value)
            with clock.stage("prices"):
                # from those of the small penalty they would end between the whole ones, which tell what is missing
                self.prices, anew = exact_prices(state, flow, None if anew else self.prices), False
            value = value_of(state, flow)
            with clock.stage("prices"):
                u, w = refined_prices(state, flow, self.prices)
            tell("sweep", rounds, value)
            with clock.stage("sweeps"), sweeping(self.executor):
                near = band_below(state, flow, u, w) if self.drop and rounds <= LAST_DROP else 0.0
                added, over = self.pricing_in(u, w, near)
                proven = added == 0
                far = None if proven else state.scale.steps(PRICES_MOVE * most_above(state, added, u, w))
                if proven and state.scale is not whole and is_missing(state, flow):
                    proven, state.scale, anew = False, whole, True
                if proven:
                    bound = bound_of(state, flow, u, w, over)
        if flow is None or value is None:
            return None
        if not proven:
            state.cut(flow.amount.size)
            with clock.stage("sweeps"), sweeping(self.executor):
                bound = bound_of(state, flow, u, w, above(state, u, w))
        return _Found(flow, (u, w), value, bound, proven, rounds, state.scale)

    def flowing(self, last: tuple[Prices, int] | None) -> Flow:
        """The best flow on the active pairs; `last` are prices near those to come and how far they may move."""
        return best_of_active(self.state, last)

    def pricing_in(self, u: FloatArray, w: FloatArray, near: float) -> tuple[int, Over]:
        """Add pairs above these prices: how many, 0 only where none is left out, and those found with their excess.

        With them come others up to `near` below their prices.
        """
        return price_in(self.state, u, w, near)

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
            flow = quick_flow(self.state)
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
            value_of(state, flow), bound, u, w,
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
        low, high = (state.low_plain, state.high_plain) if scores.plain else range_of(state)
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
