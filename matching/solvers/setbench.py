"""Whole sets of people in the service of one wish: better plans and bounds where shares of people promise too much."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from matching.constraints.grid import Grid, grid_of
from matching.constraints.whole import ruled_out, whole_bound
from matching.constraints.worth import Worth, worth_of
from matching.objectives import Floors, Level, Measure, Shortfall, Total
from matching.pairs import PairSet
from matching.solvers.flowbench import CLOSE, EXCHANGE_PAIRS, FlowBench
from matching.solvers.reach import SetReach
from matching.solvers.sets import Priced, SetMaster
from matching.solvers.stages import Bound, Constraints, Plan, plan_of
from matching.types import FloatArray, PairArray

__all__ = ["ENOUGH", "PROGRAM_PAIRS", "SetBench"]

ENOUGH = 5e-3  # relative gap at which no integer search follows the one over whole sets
PROGRAM_PAIRS = 1_000_000  # active pairs above which the programs are left alone, unless there are rules
SET_ROUNDS = (120, 40)  # of pricing whole sets, and those without a better bound: floors start with few sets that fit
CHOICES = 3  # plans chosen among the sets met, each followed by more pricing
GLANCE = 15  # rounds of pricing where ruling floors out would only save time
RISES = 12  # heights asked for above the plan's
ABOVE = 5e-10  # relative: a height this far above a level is the same number to the rounding of sums
NEAR_ZERO = 1e-6  # levels smaller than this share of the ideal sums are told apart by it


class SetBench(FlowBench):
    """A problem with the flows and the sets known so far; see FlowBench for the parameters."""

    sets_until: float = math.inf
    """Seconds of the clock at which levels by sets end, so that later wishes have what is left."""

    @cached_property
    def _reach(self) -> SetReach:
        return SetReach(self.problem, self.clock)

    @cached_property
    def _grid(self) -> Grid | None:
        return grid_of(self.problem)

    @property
    def fits_sets(self) -> bool:
        """Whether programs over sets are small enough, and speak of this problem."""
        return not self.problem.rules and self.problem.shape[0] * self.problem.shape[1] <= PROGRAM_PAIRS

    def better(self, plan: Plan, other: Plan | None, measure: Measure, constraints: Constraints) -> Plan:
        """`other` where it keeps the constraints and has the larger value."""
        if other is None or not other.keeps(constraints) or other.value(measure) <= plan.value(measure):
            return plan
        return other

    def over_sets(
        self, measure: Total | Shortfall, constraints: Constraints, plan: Plan, bound: Bound
    ) -> tuple[Plan, Bound]:
        """The total, or what is there up to a threshold, as a choice of one whole set for each submission.

        Parameters
        ----------
        bound : Bound
            Of the linear program: its prices and its multiplier of an earlier wish are where the pricing starts.
        """
        if not self.fits_sets or worth_of(self.problem, measure, constraints, [0.0] * len(constraints)) is None:
            return plan, bound

        def tell(value: float, most: float) -> None:
            self.tell("fairness", value, most)

        with self.clock.stage("sets"):
            master = SetMaster(self.problem, measure, self.clock, constraints)
            k = bound.multipliers[master.row][0] if master.row >= 0 else 0.0
            master.book.add_plan(self._free(plan))
            prices = Priced(bound.bound, bound.pull, bound.u, bound.w, k)
            for _ in range(CHOICES):
                value = plan.value(measure)
                prices = master.price(prices, value, CLOSE * abs(prices.bound), partial(tell, value), *SET_ROUNDS)
                if self.clock.over or prices.bound - value <= CLOSE * abs(prices.bound):
                    break
                other = self._with_locked(master.plan(prices, value))
                chosen = self.better(plan, other, measure, constraints)
                if chosen is plan:
                    break
                plan = chosen
                master.book.add_plan(self._free(plan))
            if prices.bound < bound.bound:
                bound = min(bound, self._bound(measure, constraints, prices, master), key=lambda one: one.bound)
        return plan, bound

    def within_reach(
        self, measure: Level, constraints: Constraints, plan: Plan, bound: Bound, *, search: bool = True
    ) -> tuple[Plan, Bound, float]:
        """The level that whole sets reach, and prices that rule out more.

        Parameters
        ----------
        search : bool
            Whether better plans are looked for.

        Returns
        -------
        tuple
            Plan, bound, and the greatest height that is known to be within reach of shares of sets or not looked at.
        """
        if not self.fits_sets or worth_of(self.problem, measure, constraints, [0.0] * len(constraints), 0.0) is None:
            return plan, bound, bound.bound
        apart = 0.0 if self._grid is None else 2.0 * self._grid.error
        scale = float(np.median(np.abs(self.ideal[measure.among])))
        within = -np.inf  # heights up to here are within reach of shares of sets
        failed = np.inf  # at this height no plan was found among the sets met
        first, near = True, False
        with self.clock.stage("sets"):
            for _ in range(RISES):
                value, narrow = plan.value(measure), 0.5 * ENOUGH * abs(bound.bound)
                if bound.gap(plan) == 0.0 or self.clock.over or self.clock.seconds > self.sets_until:
                    break
                step = ABOVE * abs(value) if abs(value) > NEAR_ZERO * scale else NEAR_ZERO * max(scale, 1e-300)
                height = value + max(step, apart)
                if first:
                    height = max(height, bound.bound - ABOVE * abs(bound.bound))
                elif within >= height:
                    if bound.bound - within > narrow and not near:
                        height, near = bound.bound - 0.75 * narrow, True  # most often shares of sets reach this
                    elif bound.bound - within > narrow:
                        height = 0.5 * (within + bound.bound)
                    elif search and min(failed, bound.bound) - value > narrow:
                        height = 0.5 * (value + min(failed, bound.bound))
                    else:
                        break
                first = False
                other, ruled, shares = self._at_height(measure, constraints, height, plan, bound, search)
                if ruled is not None:
                    bound = min(bound, ruled, key=lambda one: one.bound)
                    continue
                within = max(within, height) if shares else within
                better = self.better(plan, other, measure, constraints)
                if better is plan:
                    failed = min(failed, height)
                    if not shares:
                        break
                plan = better
        return plan, bound, within if within > -np.inf else bound.bound

    def out_of_reach(self, floors: FloatArray, constraints: Constraints, plan: Plan) -> bool:
        """Whether sets of people prove that no plan has these floors; False where they do not say."""
        if not self.fits_sets or self.oracle.state.rows.size <= EXCHANGE_PAIRS:
            return False  # there the flows that would find out are quick
        kept = (*constraints, (Floors(floors), 0.0))
        found = worth_of(self.problem, Total(), kept, [0.0] * len(kept), grid=self._grid)
        if found is None or not isinstance(found[0], Worth):
            return False
        with self.clock.stage("sets"):
            self._reach.book.add_plan(self._free(plan))
            worth, none = replace(found[0], slope=0.0), np.zeros(self.problem.shape[1])
            self._reach.until = self.sets_until
            answer = self._reach.ask(worth, none, self._tell_nothing, choose=False, rounds=GLANCE)
        return answer.w is not None

    def _at_height(
        self, measure: Level, constraints: Constraints, height: float, plan: Plan, bound: Bound, search: bool
    ) -> tuple[Plan | None, Bound | None, bool]:
        nothing = [0.0] * len(constraints)
        found = worth_of(self.problem, measure, constraints, nothing, height, grid=self._grid)
        assert found is not None and isinstance(found[0], Worth)
        self._reach.book.add_plan(self._free(plan))  # most of it reaches the height as it is
        self._reach.until = self.sets_until
        answer = self._reach.ask(found[0], bound.w, self._tell_nothing, search)
        if answer.weights is None or answer.w is None:
            return self._with_locked(answer.pairs), None, answer.shares
        size = float(answer.weights[measure.among].sum())
        among = measure.among
        if size <= 0.0:
            weights, rest, size = among / among.sum(), np.zeros(among.size), 1.0
        else:
            weights, rest = np.where(among, answer.weights / size, 0.0), np.where(among, 0.0, answer.weights / size)
        ruled = Bound(
            measure, constraints, weights, _shared(rest, constraints, -1, 0.0), np.zeros(among.size), answer.w / size,
            height, whole=True, height=height,
        )  # fmt: skip
        return None, ruled if ruled_out(self.problem, found[0], ruled.pull, ruled.w) else None, False

    def _bound(self, measure: Total | Shortfall, constraints: Constraints, prices: Priced, master: SetMaster) -> Bound:
        """The bound as the numbers of a proof give it."""
        own = np.ones(prices.weights.size) if isinstance(measure, Total) else np.where(
            measure.among, np.minimum(prices.weights, 1.0), 0.0
        )  # fmt: skip
        multipliers = _shared(np.maximum(prices.weights - own, 0.0), constraints, master.row, prices.k)
        bound = Bound(measure, constraints, own, multipliers, prices.u, prices.w, prices.bound, whole=True)
        found = worth_of(self.problem, measure, constraints, [k for k, _ in multipliers], grid=master.grid)
        assert found is not None
        worth, charge = found
        assert isinstance(worth, Worth)
        most = whole_bound(self.problem, worth, worth.fitting(bound.pull), bound.w) + charge
        return Bound(measure, constraints, own, multipliers, prices.u, prices.w, most, whole=True)

    def _tell_nothing(self) -> None:
        self.tell("fairness", None, None)

    def _free(self, plan: Plan) -> PairArray:
        """The pairs that are not locked."""
        locked = PairSet(self.problem.locked, self.problem.shape)
        return plan.pairs[~locked.contains(plan.pairs[:, 0], plan.pairs[:, 1])]

    def _with_locked(self, pairs: PairArray | None) -> Plan | None:
        return None if pairs is None else plan_of(self.problem, np.concatenate([self.problem.locked, pairs]))


def _shared(weights: FloatArray, constraints: Constraints, row: int, k: float) -> tuple[tuple[float, FloatArray], ...]:
    """Weights dealt out to the constraint with multiplier k first, then to the floors."""
    left, nothing = weights, np.zeros(weights.size)
    out = [(0.0, nothing)] * len(constraints)
    if row >= 0 and k > 0.0:
        measure = constraints[row][0]
        if isinstance(measure, Shortfall):
            z = np.where(measure.among, np.minimum(left / k, 1.0), 0.0)
        else:
            z = np.ones(left.size)
        out[row] = (k, z)
        left = np.maximum(left - k * z, 0.0)
    for at, (measure, _) in enumerate(constraints):
        if isinstance(measure, Floors):
            z = np.where(np.isfinite(measure.floor), left, 0.0)
            out[at] = (1.0, z)
            left = left - z
    return tuple(out)
