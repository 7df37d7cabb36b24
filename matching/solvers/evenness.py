"""Evenness for reviewers: the smallest sum of squared loads among the plans that earlier wishes allow.

One more review of a person who has l costs 2 l + 1, so squares are parallel arcs of a flow. Earlier wishes enter with
their prices: the flow maximises

    Y . U - unit * (sum of squared loads)

where Y are the weights that prove those wishes. The larger the unit the evener the loads and the more is given away;
the largest unit whose plan still keeps every wish is found by halving. Each of those flows proves a bound: for any
numbers q the square of a whole load l is at least ``q l - max over whole k >= 0 of (q k - k**2)``, and weak duality
bounds ``sum q l`` over all plans that keep the wishes.

Unwanted pairs (`AssignmentProblem.unwanted`) are spread first: the squares of their numbers by person are charged
UNWANTED times as dear as those of loads. The stated value and its bound are those of loads, so the gap holds what the
spreading of unwanted pairs costs there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.constraints.linearised import Linearised
from matching.solvers.base import Proof, frozen
from matching.solvers.clock import slack_of
from matching.solvers.flow import Flow, Scale, Segments, transport
from matching.solvers.prices import Prices, Residual
from matching.solvers.pricing import evenest
from matching.solvers.ruled_evenness import even_under_rules
from matching.solvers.stages import Bound, Constraints, Plan, plan_of, shared_out
from matching.solvers.state import State
from matching.solvers.ties import UNWANTED, detours_of
from matching.solvers.workbench import Workbench
from matching.types import FloatArray, IntArray

__all__ = ["Evenness", "EvennessBound", "evenest_of", "spread"]

HALVINGS = 14  # units tried between one that keeps the wishes and one that does not
RAISES = 8  # times the weights of submissions below their floor are raised
ROUNDS = 20  # of pricing for one unit
RELAX_SWEEPS = 20_000


@dataclass(frozen=True, eq=False)
class Evenness:
    """Minus the sum of squared loads. It is no function of the submissions' sums, so its weights are 0."""

    def value(self, sums: FloatArray) -> float:
        raise TypeError("loads are no function of the submissions' sums")

    def weights(self, sums: FloatArray) -> FloatArray:
        return np.zeros(sums.size)

    def conjugate(self, weights: FloatArray) -> float:
        return math.inf if weights.any() else 0.0


@dataclass(frozen=True, eq=False)
class EvennessBound(Bound):
    """No plan that keeps the constraints has a smaller sum of squared loads than ``-bound``.

    Attributes
    ----------
    terms : ndarray of shape (n_reviewers,), float64
        q, what one more review by each person costs.
    """

    terms: FloatArray | None = None

    def gap(self, plan: Plan) -> float:
        gap = max(0.0, _squares(plan, self.w.size) + self.bound)
        return 0.0 if gap <= slack_of(self.bound) else gap

    def proof(self, wish: Mapping[str, Any], plan: Plan) -> Proof:
        value = _squares(plan, self.w.size)
        gap = self.gap(plan)
        return Proof(
            wish=wish, value=value, bound=value if gap == 0.0 else -self.bound, gap=gap, measure=self.measure,
            constraints=self.constraints, weights=frozen(self.weights), multipliers=self.multipliers,
            submission_prices=frozen(self.u), reviewer_prices=frozen(self.w), rule_prices=self.rule_prices,
            reviewer_terms=self.terms,
        )  # fmt: skip


def _squares(plan: Plan, n_reviewers: int) -> float:
    return float((np.bincount(plan.pairs[:, 1], minlength=n_reviewers).astype(np.float64) ** 2).sum())


def spread(bench: Workbench, weights: FloatArray, rng: int) -> Plan | None:
    """The evenest of the plans that are best under these row weights; None at the limit."""
    best = bench.flow(weights)
    if best is None:
        return None
    return plan_of(bench.problem, evenest(bench.oracle, best, rng).pairs)


def evenest_of(
    bench: Workbench, plan: Plan, constraints: Constraints, weights: FloatArray | None, rng: int
) -> tuple[Plan, EvennessBound]:
    """The evenest plan found that keeps the constraints, and a bound.

    Parameters
    ----------
    plan : Plan
        Keeps the constraints.
    weights : ndarray of shape (n_submissions,), float64, or None
        Y, under which the constraints' plans are nearly best; None where there are none, and then the total decides
        among the evenest plans.

    Notes
    -----
    Under rules by the programs (`matching.solvers.ruled_evenness`). Under priced rules the present plan stays, since
    what missing them costs must not grow, and the bound is that of the number of reviews.
    """
    even = _Even(bench, constraints)
    if bench.problem.rules:
        return _by_program(bench, even, plan, constraints)
    if weights is None:
        # squares are whole numbers and differ by at least 2, so a total that counts below that only breaks ties
        state = bench.oracle.state
        span = ((state.high_plain - state.low_plain) or 1.0) * max(1, int(state.supply.sum()))
        found = even.solve(np.full(bench.problem.shape[0], 1.0), span)
        return (plan, even.least()) if found is None else found
    if not bench.clock.over:
        tied = spread(bench, weights, rng)
        if tied is not None and tied.keeps(constraints) and even.rank(tied) <= even.rank(plan):
            plan = tied
    best = even.least()
    low, high = None, None
    weights, raised = np.array(weights), 0
    unit = 1e-3 * ((bench.oracle.state.high_plain - bench.oracle.state.low_plain) or 1.0)
    for _ in range(HALVINGS + RAISES):
        if bench.clock.over or (best.gap(plan) == 0.0 and not even.unwanted):
            break
        found = even.solve(weights, unit)
        if found is None:
            break
        other, bound = found
        best = max(best, bound, key=lambda one: -one.bound)
        if other.keeps(constraints):
            low = unit
            plan = min(plan, other, key=even.rank)
        elif raised < RAISES and (fallen := other.sums < bench.floors_of(constraints) - 1e-9).any():
            # the least multipliers that prove a floor leave the flow the choice to miss it
            weights[fallen] += np.maximum(0.25, 0.5 * weights[fallen])
            raised += 1
            continue
        else:
            high = unit
        if low is not None and high is not None:
            if high <= 1.05 * low:
                break
            unit = math.sqrt(low * high)
        else:
            unit = unit * 8.0 if high is None else unit / 8.0
    if bench.exact and not even.unwanted and best.gap(plan) > 0.0 and not bench.clock.over:
        # one unit for all squares meets only the corners of what totals and squares can be had together
        plan, other_bound = _by_program(bench, even, plan, constraints)
        best = max(best, other_bound, key=lambda one: -one.bound)
    return plan, best


def _by_program(bench: Workbench, even: _Even, plan: Plan, constraints: Constraints) -> tuple[Plan, EvennessBound]:
    bound = even.least()
    if bench.clock.over or any(rule.price is not None for rule in bench.problem.rules):
        return plan, bound
    found = even_under_rules(bench, plan, constraints)
    if found is None:
        return plan, bound
    answer, n_rules = found.answer, len(bench.problem.rules)
    mine = EvennessBound(
        Evenness(), constraints, np.zeros(bench.problem.shape[0]), answer.multipliers, answer.u - 1.0, answer.w,
        answer.bound - float(bench.problem.demand.sum()), answer.rule_prices[:n_rules], terms=found.terms,
    )  # fmt: skip
    return found.plan, min(bound, mine, key=lambda one: one.bound)


class _Even:
    """Flows with squared loads on the oracle's pairs."""

    def __init__(self, bench: Workbench, constraints: Constraints) -> None:
        self.bench, self.constraints = bench, constraints
        self.state: State = bench.oracle.state
        self.n = bench.problem.shape[1]
        self.held = np.bincount(bench.problem.locked[:, 1], minlength=self.n)
        self.unwanted = len(bench.problem.unwanted) > 0

    def rank(self, plan: Plan) -> tuple[float, float]:
        """The smaller the better: squares of unwanted pairs by person, then of loads."""
        away = plan.pairs[self.bench.problem.unwanted.contains(plan.pairs[:, 0], plan.pairs[:, 1])]
        return float((np.bincount(away[:, 1], minlength=self.n) ** 2).sum()), _squares(plan, self.n)

    def least(self) -> EvennessBound:
        """What the number of reviews alone says: nobody needs more than the mean, rounded up."""
        problem = self.bench.problem
        mean = int(problem.demand.sum()) // max(1, self.n)
        q = np.full(self.n, 2.0 * mean + 1.0)
        idle = tuple((0.0, np.zeros(problem.shape[0])) for _ in self.constraints)
        u = np.full(problem.shape[0], -q[0] if self.n else 0.0)
        return self._bound(idle, u, np.zeros(self.n), q)

    def solve(self, weights: FloatArray, unit: float) -> tuple[Plan, EvennessBound] | None:
        """The best flow for one unit with all pairs priced in; None at the limit."""
        state, bench = self.state, self.bench
        multipliers = shared_out(weights, self.constraints)
        pull = np.zeros(weights.size)
        for k, z in multipliers:
            pull += k * z
        pull = weights if not self.constraints else pull
        scores = Linearised(state.problem.scores, pull)
        for _ in range(ROUNDS):
            if bench.clock.over:
                return None
            bench.tell("flow", None, None)
            score = scores.linear(state.rows, state.cols, state.plain)
            with bench.clock.stage("evenness"):
                flow, prices, scale = self._flow(score, unit)
                u, w = prices.u / scale.factor, prices.w / scale.factor
                roof = scores.reach(max(abs(state.low_plain), abs(state.high_plain))) + np.abs(u).max(initial=0.0)
                roof += np.abs(w).max(initial=0.0) + 1.0
                u_open, w_open = np.where(state.supply > 0, u, roof), np.where(state.load_max > 0, w, roof)
                pairs, excess, _ = scores.exceeding(u_open, w_open, 0.0, 24, state.closed)
                added = state.add(pairs[excess > 1.0 / scale.factor])
            if not added:
                break
        priced_flow = flow
        if self.unwanted:
            with bench.clock.stage("evenness"):
                flow = self._apart(score, unit)
        taken = flow.taken
        chosen = np.column_stack([state.rows[: taken.size], state.cols[: taken.size]])[taken]
        plan = plan_of(state.problem, np.concatenate([state.problem.locked, chosen]))
        load = np.bincount(state.cols[: priced_flow.amount.size], weights=priced_flow.amount, minlength=self.n)
        load = load + self.held
        q = np.where(load > 0, np.maximum(w / unit, 2.0 * load - 1.0), w / unit)
        q = np.minimum(q, 2.0 * load + 1.0)
        bound = self._bound(
            tuple((k / unit, z) for k, z in multipliers), u / unit, w / unit - q, q
        ) if self.constraints else self._alone(load)  # fmt: skip
        return plan, bound

    def _alone(self, load: IntArray) -> EvennessBound:
        """Without constraints the total must not enter the proof, so the flow is priced for squares alone."""
        state = self.state
        for _ in range(ROUNDS):
            with self.bench.clock.stage("evenness"):
                flow, prices, scale = self._flow(np.zeros(state.rows.size), 1.0)
                u, w = prices.u / scale.factor, prices.w / scale.factor
                scores = Linearised(state.problem.scores, np.zeros(state.problem.shape[0]))
                roof = float(np.abs(u).max(initial=0.0) + np.abs(w).max(initial=0.0)) + 1.0
                u_open, w_open = np.where(state.supply > 0, u, roof), np.where(state.load_max > 0, w, roof)
                pairs, excess, _ = scores.exceeding(u_open, w_open, 0.0, 24, state.closed)
                if not state.add(pairs[excess > 1.0 / scale.factor]):
                    break
        at = np.bincount(state.cols[: flow.amount.size], weights=flow.amount, minlength=self.n) + self.held
        q = np.minimum(np.where(at > 0, np.maximum(w, 2.0 * at - 1.0), w), 2.0 * at + 1.0)
        return self._bound((), u, w - q, q)

    def _apart(self, score: FloatArray, unit: float) -> Flow:
        """The flow in which unwanted pairs of a person are charged too, for their squared number; it has no prices."""
        state, problem = self.state, self.bench.problem
        away = problem.unwanted.contains(state.rows, state.cols)
        locked = problem.locked[problem.unwanted.contains(problem.locked[:, 0], problem.locked[:, 1])]
        before = np.bincount(locked[:, 1], minlength=self.n)
        return self._flow(score, unit, (away, before))[0]

    def _flow(
        self, score: FloatArray, unit: float, unwanted: tuple[NDArray[np.bool_], IntArray] | None = None
    ) -> tuple[Flow, Prices, Scale]:
        state, shape = self.state, self.bench.problem.shape
        total = int(state.supply.sum())
        offered = np.bincount(state.cols, minlength=self.n)
        room = np.minimum(np.minimum(state.load_max, offered), total)
        top = unit * (2.0 * float((room + self.held).max(initial=0)) + 1.0)
        if unwanted is not None:
            top += UNWANTED * unit * (2.0 * float(np.bincount(state.cols[unwanted[0]], minlength=1).max()) + 1.0)
        scale = Scale.fit(float(score.min(initial=0.0)) - top, float(score.max(initial=0.0)), shape, total)
        gain = scale.integers(score)
        step = max(1, round(unit * scale.factor))
        reviewer = np.repeat(np.arange(self.n, dtype=np.int64), room)
        nth = np.arange(reviewer.size) - np.repeat(np.cumsum(room) - room, room)
        cost = (2 * (nth + self.held[reviewer]) + 1) * step
        cost = cost - np.where(nth < state.load_min[reviewer], scale.penalty, 0)
        detours = None if unwanted is None else detours_of(state.cols, *unwanted, UNWANTED * step)
        flow = transport(
            shape, state.rows, state.cols, -gain, state.supply,
            Segments(reviewer, np.ones(reviewer.size, dtype=np.int64), cost), scale.penalty, detours=detours,
        )  # fmt: skip
        if detours is not None:
            return flow, Prices(np.zeros(shape[0], dtype=np.int64), np.zeros(shape[1], dtype=np.int64)), scale
        load = np.bincount(state.cols, weights=flow.amount, minlength=self.n).astype(np.int64)
        residual = Residual(
            shape, state.rows, state.cols, flow.amount, flow.unfilled, state.supply, load, state.load_min,
            np.maximum(room, load),
        )  # fmt: skip
        carried = load + self.held
        prices = residual.relax(
            gain, scale.penalty, None, RELAX_SWEEPS, load_cost=((2 * carried + 1) * step, (2 * carried - 1) * step)
        )
        if prices is None:  # the flow would not be optimal; a bound of nothing is still a bound
            nothing = np.zeros(0, dtype=np.int64)
            prices = Prices(np.zeros(shape[0], dtype=np.int64) if shape[0] else nothing, (2 * carried + 1) * step)
        return flow, prices, scale

    def _bound(
        self, multipliers: tuple[tuple[float, FloatArray], ...], u: FloatArray, w: FloatArray, q: FloatArray
    ) -> EvennessBound:
        """The bound these numbers prove, by one sweep over all pairs."""
        state, problem = self.state, self.bench.problem
        pull = np.zeros(problem.shape[0])
        level = 0.0
        for (k, z), (earlier, least) in zip(multipliers, self.constraints, strict=True):
            pull += k * z
            if k > 0:
                level += k * (earlier.conjugate(z) - least)
        scores = Linearised(problem.scores, pull)
        roof = scores.reach(max(abs(state.low_plain), abs(state.high_plain))) + np.abs(u).max(initial=0.0)
        roof += float(np.abs(w).max(initial=0.0) + np.abs(q).max(initial=0.0)) + 1.0
        u_open = np.where(state.supply > 0, u, roof)
        w_open = np.where(state.load_max > 0, w + q, roof)
        _, excess, _ = scores.exceeding(u_open, w_open, 0.0, None, state.closed)
        locked = problem.locked
        whole = np.maximum(np.rint(q / 2.0), 0.0)
        most = (
            (scores.linear(locked[:, 0], locked[:, 1], state.held) - q[locked[:, 1]]).sum()
            + np.where(state.supply > 0, (state.supply + state.beyond) * u, 0.0).sum()
            + np.where(state.load_max > 0, state.load_max * np.maximum(w, 0.0), 0.0).sum()
            - (state.load_min * np.maximum(-w, 0.0)).sum()
            + excess.sum()
            + (q * whole - whole**2).sum()
        )
        return EvennessBound(
            Evenness(), self.constraints, np.zeros(problem.shape[0]), multipliers, u, w, float(most) + level, terms=q
        )
