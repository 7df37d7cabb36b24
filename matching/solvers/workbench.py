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
from matching.constraints.whole import total_above
from matching.objectives import Floors, Level, Measure, Shortfall, Total
from matching.pairs import PairSet
from matching.solvers.base import Solution
from matching.solvers.flowbench import CLOSE, FlowBench, Lift, Tell
from matching.solvers.milp import ArcAnswer, ArcProgram
from matching.solvers.oracle import Clock, slack_of
from matching.solvers.sets import Priced, SetMaster
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

ENOUGH = 5e-3  # relative gap at which no integer search follows the one over whole sets
SET_ROUNDS = (120, 40)  # of pricing whole sets, and those without a better bound: floors start with few sets that fit
SEARCHED = 1e-3  # relative gap to the integer solver's own bound at which it stops on problems that are not tiny
NODES = 500  # of an integer search on problems that are not tiny and have no rules
HALVINGS = 4  # levels tried between the plan's and the bound
PROGRAM_PAIRS = 1_000_000  # active pairs above which the programs are left alone, unless there are rules


class Workbench(FlowBench):
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
        self, measure: Measure, constraints: Constraints, present: Plan, *, programs: bool = True
    ) -> tuple[Plan, Bound]:
        """The best plan found, at least as good as `present`, which keeps the constraints; and the best bound.

        Parameters
        ----------
        programs : bool
            Whether linear and integer programs may be asked.
        """
        plan, bound = present, self.ideal_bound(measure, constraints)
        if self.done(plan, bound) or self.clock.over:
            return plan, bound
        if not self.problem.rules:
            plan, bound = self._by_multipliers(measure, constraints, plan, bound)
            if programs and isinstance(measure, Level) and not self.exact and not self.done(plan, bound):
                plan, bound = self._by_bound(measure, constraints, plan, bound)
            if programs and isinstance(measure, Total) and not self.exact and not self.done(plan, bound):
                plan, bound = self._by_sets(constraints, plan, bound)
                programs = bound.gap(plan) > ENOUGH * abs(bound.bound)
        programs &= bool(self.problem.rules) or self.oracle.state.rows.size <= PROGRAM_PAIRS
        best = False
        if programs and not self.done(plan, bound) and not self.clock.over:
            plan, bound, best = self._by_program(measure, constraints, plan, bound)
        if isinstance(measure, Level) and not best and not self.exact and not self.problem.rules:
            plan = self._by_halving(measure, constraints, plan, bound)
        return plan, bound

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
        self, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound
    ) -> tuple[Plan, Bound]:
        floors = self.floors_of(constraints)
        if isinstance(measure, Level):
            least = float(self.ideal[measure.among].min())
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

    def _by_bound(self, measure: Level, constraints: Constraints, plan: Plan, bound: Bound) -> tuple[Plan, Bound]:
        """The level that shares of people reach, where whole people reach it as well."""
        answer = self.ask(measure, constraints, plan, integral=False)
        if answer is not None and np.isfinite(answer.bound):
            bound = min(bound, bound_of(answer), key=lambda one: one.bound)
        return self._at_level(measure, constraints, plan, bound.bound), bound

    def _by_halving(self, measure: Level, constraints: Constraints, plan: Plan, bound: Bound) -> Plan:
        """Levels between the plan's and the bound."""
        high = bound.bound
        for _ in range(HALVINGS):
            low = plan.value(measure)
            if bound.gap(plan) <= ENOUGH * abs(bound.bound) or self.clock.over:
                break
            high = 0.5 * (low + high)
            better = self._at_level(measure, constraints, plan, high)
            high = bound.bound if better is not plan else high
            plan = better
        return plan

    def _at_level(self, measure: Level, constraints: Constraints, plan: Plan, level: float) -> Plan:
        kept = self.floors_of(constraints)
        floors = np.where(measure.among, np.maximum(kept, level), kept)
        return self.better(plan, self.lift(floors).plan, measure, constraints)

    def better(self, plan: Plan, other: Plan | None, measure: Measure, constraints: Constraints) -> Plan:
        """`other` where it keeps the constraints and has the larger value."""
        if other is None or not other.keeps(constraints) or other.value(measure) <= plan.value(measure):
            return plan
        return other

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

    def _by_sets(self, constraints: Constraints, plan: Plan, bound: Bound) -> tuple[Plan, Bound]:
        """The total above one floor for all, as a choice of one whole set of people for each submission."""
        n_submissions, wide = self.problem.shape[0], self.oracle.state.rows.size > PROGRAM_PAIRS
        if len(constraints) != 1 or not isinstance(constraints[0][0], Floors) or wide:
            return plan, bound
        answer = self.ask(Total(), constraints, plan, integral=False)
        if answer is None or not np.isfinite(answer.bound):
            return plan, bound
        bound = min(bound, bound_of(answer), key=lambda one: one.bound)
        floors = constraints[0][0].floor + constraints[0][1]
        above = total_above(self.problem, floors, np.maximum(bound.pull, 1.0))
        if above is None or bound.rule_prices:
            return plan, bound
        with self.clock.stage("sets"):
            master = SetMaster(self.problem, above, self.clock)
            locked = PairSet(self.problem.locked, self.problem.shape)
            master.add_plan(plan.pairs[~locked.contains(plan.pairs[:, 0], plan.pairs[:, 1])])
            start = Priced(bound.bound, bound.pull, bound.u, bound.w)
            total = float(plan.sums.sum())
            best = master.price(
                start, total, CLOSE * abs(bound.bound), lambda most: self.tell("fairness", total, most), *SET_ROUNDS
            )
            found = master.plan(best, total)
        if found is not None:
            other = plan_of(self.problem, np.concatenate([self.problem.locked, found]))
            plan = self.better(plan, other, Total(), constraints)
        if best.bound < bound.bound:
            ones = np.ones(n_submissions)
            pull = np.where(self.wanting, np.maximum(best.weights - 1.0, 0.0), 0.0)
            bound = Bound(Total(), constraints, ones, ((1.0, pull),), best.u, best.w, best.bound, whole=True)
        return plan, bound

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
