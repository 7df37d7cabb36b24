"""One wish at a time: the best plan that keeps the wishes before it, and a bound that prices prove.

Three ways, the cheap ones first. Each submission's best possible sum bounds every wish for the worst-off, and on real
venues it is mostly reached. Flows with multipliers then give the best total above floors
(`matching.solvers.flowbench`). What is left, and everything under rules, goes to the linear and integer programs on
the active pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Measure, Shortfall, Total
from matching.solvers.base import Solution
from matching.solvers.clock import Clock, slack_of
from matching.solvers.descent import certified, descend, first_weights
from matching.solvers.flowbench import CLOSE, Lift, Tell
from matching.solvers.milp import ArcAnswer, ArcProgram
from matching.solvers.setbench import ENOUGH, PROGRAM_PAIRS, SetBench
from matching.solvers.stages import (
    Bound,
    Constraints,
    Plan,
    ideal_prices,
    ideal_weights,
    idle,
    of_extreme,
    plan_of,
    priced,
)  # fmt: skip
from matching.types import FloatArray

__all__ = ["CLOSE", "Lift", "Workbench", "bound_of"]

SEARCHED = 1e-3  # relative gap to the integer solver's own bound at which it stops on problems that are not tiny
NODES = 500  # of an integer search on problems that are not tiny and have no rules
MANY_LOW = 8  # submissions below their floors in the best total, above which sets come before multipliers
DESCENT = 24  # flows on the way down the dual
HALVINGS = 4  # levels tried between the plan's and the bound


class Workbench(SetBench):
    """A problem with everything solved for it so far; see FlowBench for the parameters."""

    def __init__(self, problem: AssignmentProblem, candidates: int, rng: int, clock: Clock, tell: Tell) -> None:
        super().__init__(problem, candidates, rng, clock, tell)
        self.known: dict[tuple[str, float], Solution] = {}  # answers of other solvers for a wish alone

    @cached_property
    def program(self) -> ArcProgram:
        """Linear and integer programs, which keep their pairs and rows."""
        return ArcProgram(
            self.problem, candidates=self.candidates, rng=self.rng, clock=self.clock,
            tell=lambda phase, value, most: self.tell(phase, value, most),
        )  # fmt: skip

    def cost(self, shortfall: Sequence[Any]) -> float:
        """What missed priced rules cost."""
        missed = zip(self.problem.rules, shortfall, strict=True)
        return float(
            sum(
                rule.price * np.abs(part.data if sparse.issparse(part) else part).sum()
                for rule, part in missed
                if rule.price is not None
            )
        )

    def maximise(
        self, measure: Measure, constraints: Constraints, present: Plan, *, programs: bool = True, sets: bool = True
    ) -> tuple[Plan, Bound]:
        """The best plan found, at least as good as `present`, which keeps the constraints; and the best bound.

        Parameters
        ----------
        programs : bool
            Whether linear and integer programs may be asked.
        sets : bool
            Whether bounds over whole sets of people serve too.
        """
        programs &= not self.at_size
        sets &= programs
        plan, bound = present, self.ideal_bound(measure, constraints)
        if self.done(plan, bound) or self.clock.over:
            return plan, bound
        if not self.problem.rules:
            plan, bound, near = self._without_rules(measure, constraints, plan, bound, programs, sets)
            programs &= not near
        programs &= bool(self.problem.rules) or self.oracle.state.rows.size <= PROGRAM_PAIRS
        best = False
        late = self.clock.over or self.clock.seconds > self.sets_until
        if programs and not self.done(plan, bound) and not late:
            plan, bound, best = self._by_program(measure, constraints, plan, bound)
        if isinstance(measure, Level) and not best and not self.exact and not self.problem.rules:
            plan = self._by_halving(measure, constraints, plan, bound)
        if self.at_size and isinstance(measure, Level) and not self.done(plan, bound):
            bound = self._by_descent(measure, constraints, plan, bound)
        if sets and self.exact and bound.gap(plan) > 0.0:  # the plan is the best; shares of people say too much
            if isinstance(measure, Level):
                plan, bound, _ = self.within_reach(measure, constraints, plan, bound, search=False)
            elif isinstance(measure, Total | Shortfall) and not self.problem.rules:
                plan, bound = self._by_sets(measure, constraints, plan, bound)
        return plan, bound

    def _without_rules(
        self, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound, programs: bool, sets: bool
    ) -> tuple[Plan, Bound, bool]:
        """By flows and sets; whether the two are near enough for no integer search to follow."""
        sets &= not self.exact and self.fits_sets and self.oracle.state.rows.size <= PROGRAM_PAIRS
        height, near = np.inf, False
        if sets and isinstance(measure, Level):
            bound = self._linear(measure, constraints, plan, bound)
            plan, bound, height = self.within_reach(measure, constraints, plan, bound, search=False)
        elif sets and (isinstance(measure, Shortfall) or (isinstance(measure, Total) and self._many_low(constraints))):
            plan, bound = self._by_sets(measure, constraints, plan, bound)
            sets = not isinstance(measure, Total)
            near = bound.gap(plan) <= ENOUGH * abs(bound.bound)
        if not self.done(plan, bound) and not near:
            plan, bound = self._by_multipliers(measure, constraints, plan, bound, height)
        if programs and isinstance(measure, Level) and not self.exact and not self.done(plan, bound):
            bound = self._linear(measure, constraints, plan, bound)
            plan = self._at_level(measure, constraints, plan, min(bound.bound, height))
            if sets and not self.done(plan, bound):
                plan = self._by_halving(measure, constraints, plan, bound)
                plan, bound, _ = self.within_reach(measure, constraints, plan, bound)
        if sets and isinstance(measure, Total) and not self.done(plan, bound):
            plan, bound = self._by_sets(measure, constraints, plan, bound)
        return plan, bound, near or (sets and bound.gap(plan) <= ENOUGH * abs(bound.bound))

    def _many_low(self, constraints: Constraints) -> bool:
        """Whether the best total leaves so many below their floors that multipliers seldom serve them all."""
        assert self.total is not None
        return int((self.total.sums < self.floors_of(constraints)).sum()) > MANY_LOW

    def ideal_bound(self, measure: Measure, constraints: Constraints) -> Bound:
        """What no plan exceeds since no submission gets more than its best possible sum; for the total, by the flow."""
        idle_ones = idle(constraints, self.problem.shape[0])
        if isinstance(measure, Total) and self.total is not None:
            return of_extreme(self.total, measure, constraints, np.ones(self.problem.shape[0]), idle_ones)
        weights = ideal_weights(measure, self.ideal)
        u, w = ideal_prices(self.oracle.state, weights)
        with self.clock.stage("sweeps"):
            return priced(self.oracle.state, measure, constraints, weights, idle_ones, u, w)

    def nothing(self, measure: Measure, constraints: Constraints) -> Bound:
        """Of a measure that says the same of every plan: its value is 0."""
        n_submissions, n_reviewers = self.problem.shape
        none = np.zeros(n_submissions)
        return Bound(measure, constraints, none, idle(constraints, n_submissions), none, np.zeros(n_reviewers), 0.0)

    # ---- multipliers ------------------------------------------------------------------------------------------

    def _by_multipliers(
        self, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound, height: float
    ) -> tuple[Plan, Bound]:
        floors = self.floors_of(constraints)
        if isinstance(measure, Level):
            least = min(float(self.ideal[measure.among].min()), height)
            floors = np.where(measure.among, np.maximum(floors, least), floors)
        elif isinstance(measure, Shortfall):
            floors = np.where(measure.among, np.maximum(floors, np.minimum(self.ideal, measure.t)), floors)
        elif not isinstance(measure, Total):
            return plan, bound
        found = self.lift(floors)
        plan = self.better(plan, found.plan, measure, constraints)
        if isinstance(measure, Total):
            mine = self._for_constraints(found, constraints)
            bound = min(bound, mine, key=lambda one: one.bound)
        return plan, bound

    def _linear(self, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound) -> Bound:
        """The better of this bound and what shares of people reach."""
        answer = self.ask(measure, constraints, plan, integral=False)
        if answer is None or not np.isfinite(answer.bound):
            return bound
        return min(bound, bound_of(answer), key=lambda one: one.bound)

    def _by_halving(self, measure: Level, constraints: Constraints, plan: Plan, bound: Bound) -> Plan:
        """Levels between the plan's and the bound."""
        high = bound.bound
        for _ in range(HALVINGS):
            low = plan.value(measure)
            late = self.clock.over or self.clock.seconds > self.sets_until
            if bound.gap(plan) <= ENOUGH * abs(bound.bound) or late:
                break
            high = 0.5 * (low + high)
            better = self._at_level(measure, constraints, plan, high)
            high = bound.bound if better is not plan else high
            plan = better
        return plan

    def _by_descent(self, measure: Level, constraints: Constraints, plan: Plan, bound: Bound) -> Bound:
        """The better of this bound and what steps down the dual prove, where a level stays below the ideal sums."""
        kept = tuple(1.0 if isinstance(other, Floors) else 0.0 for other, _ in constraints)
        start = first_weights(measure, constraints, kept, plan.sums)
        found = descend(self, measure, constraints, start, plan.value(measure), DESCENT)
        proven = certified(self, measure, constraints, found)
        return bound if proven is None else min(bound, proven, key=lambda one: one.bound)

    def _at_level(self, measure: Level, constraints: Constraints, plan: Plan, level: float) -> Plan:
        kept = self.floors_of(constraints)
        floors = np.where(measure.among, np.maximum(kept, level), kept)
        return self.better(plan, self.lift(floors).plan, measure, constraints)

    def floors_of(self, constraints: Constraints) -> FloatArray:
        """What the constraints ask of single sums; a shortfall does where it leaves no choice."""
        floors = np.full(self.problem.shape[0], -np.inf)
        for measure, least in constraints:
            if isinstance(measure, Floors):
                floors = np.maximum(floors, measure.floor + least)
            elif isinstance(measure, Level):
                floors = np.where(measure.among, np.maximum(floors, least), floors)
            elif isinstance(measure, Shortfall):
                most = np.minimum(self.ideal, measure.t)
                if least >= float(most[measure.among].sum()) - slack_of(least):
                    floors = np.where(measure.among, np.maximum(floors, most), floors)
        return floors

    def _for_constraints(self, found: Lift, constraints: Constraints) -> Bound:
        """The bound of a lift with its multipliers shared out to the constraints they stand for."""
        n_submissions = self.problem.shape[0]
        left = found.pull.copy()
        shared: list[tuple[float, FloatArray]] = []
        again = False
        for measure, _ in constraints:
            part = np.zeros(n_submissions)
            if isinstance(measure, Floors):
                part = np.where(np.isfinite(measure.floor), left, 0.0)
                shared.append((1.0, part))
            elif isinstance(measure, Level | Shortfall):
                part = np.where(measure.among, left, 0.0)
                k = float(part.sum() if isinstance(measure, Level) else part.max(initial=0.0))
                z = part / k if k > 0 else part
                if isinstance(measure, Shortfall) and k > 0:
                    # below t whatever the plan: each review there counts fully
                    short = measure.among & (self.ideal < measure.t)
                    again |= bool((z[short] < 1.0).any())
                    z = np.where(short, 1.0, z)
                shared.append((k, z))
            else:
                shared.append((0.0, part))
            left = left - part
        ones = np.ones(n_submissions)
        if not again and not left.any():
            state, bound = self.oracle.state, found.bound
            if len(constraints) == 1 and isinstance(constraints[0][0], Floors):
                same = Bound(bound.measure, constraints, ones, tuple(shared), bound.u, bound.w, bound.bound)
                return (
                    same
                    if np.array_equal(constraints[0][0].floor, found.floors)
                    else priced(state, Total(), constraints, ones, tuple(shared), bound.u, bound.w)
                )
            return priced(state, Total(), constraints, ones, tuple(shared), bound.u, bound.w)
        pull = ones.copy()
        for k, z in shared:
            pull += k * z
        extreme = self.flow(pull)
        if extreme is None:
            return self.ideal_bound(Total(), constraints)
        return of_extreme(extreme, Total(), constraints, ones, tuple(shared))

    def _by_sets(
        self, measure: Total | Shortfall, constraints: Constraints, plan: Plan, bound: Bound
    ) -> tuple[Plan, Bound]:
        """A choice of one whole set of people for each submission, from the prices of the linear program."""
        answer = self.ask(measure, constraints, plan, integral=False)
        if answer is None or not np.isfinite(answer.bound):
            return plan, bound
        linear = bound_of(answer)
        plan, found = self.over_sets(measure, constraints, plan, linear)
        return plan, min(bound, linear, found, key=lambda one: one.bound)

    # ---- programs ---------------------------------------------------------------------------------------------

    def _by_program(
        self, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound
    ) -> tuple[Plan, Bound, bool]:
        """The plan of the integer search, the bound of the linear program, whether no better plan is to be had."""
        answer = self.ask(measure, constraints, plan, integral=True)
        if answer is None:
            return plan, bound, False
        if np.isfinite(answer.bound):
            bound = min(bound, bound_of(answer), key=lambda one: one.bound)
        return self.better(plan, self.plan_of(answer), measure, constraints), bound, answer.proven

    def plan_of(self, answer: ArcAnswer) -> Plan | None:
        """The plan of a program's answer; None where it has none that is full and lawful."""
        if not (answer.found and answer.kept and answer.feasible):
            return None
        return plan_of(self.problem, answer.pairs, answer.cost, answer.rule_shortfall)

    def ask(self, measure: Measure, constraints: Constraints, plan: Plan | None, *, integral: bool) -> ArcAnswer | None:
        """What the programs answer; None at the limit."""
        self.solves["programs"] += 1
        return self.program.solve(
            measure, constraints, integral=integral, start=None if plan is None else plan.pairs,
            gap=0.0 if self.exact else SEARCHED, nodes=None if self.exact or self.problem.rules else NODES,
        )  # fmt: skip


def bound_of(answer: ArcAnswer) -> Bound:
    """The bound of a program."""
    return Bound(
        answer.measure, answer.constraints, answer.weights, answer.multipliers, answer.u, answer.w, answer.bound,
        answer.rule_prices,
    )  # fmt: skip
