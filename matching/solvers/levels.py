"""Worst-off first, level by level: the least sum, then the least of the others, and so on (leximin).

The sums no plan exceeds come first: as long as every submission can have the smaller of its best possible sum and a
common level, those whose best is reached are settled and proven at once. From there each level is a program of its
own, after which as many as can be are lifted off it, and those left are settled there.

In small problems only those are settled whose price is above 0 in a level that is reached: they have that sum in every
plan that reaches it (Ogryczak, Pioro and Tomaszewski, 2005). Where whole people do not reach what shares of people
would, and no more than CHAIN are left, the sums of the k lowest for k = 1, 2, ... are maximised instead, whose best
plans in that order are exactly the leximin ones. Elsewhere who stays behind is the plan's choice among equals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matching.objectives import Floors, Level, Shortfall
from matching.solvers.clock import slack_of
from matching.solvers.flowbench import SIZE_PAIRS
from matching.solvers.milp import Lowest
from matching.solvers.setbench import ENOUGH
from matching.solvers.stages import Bound, Constraints, Plan
from matching.solvers.workbench import Workbench, bound_of
from matching.types import FloatArray

__all__ = ["LEVELS", "Levels", "keeps_behind", "leximin", "lowered", "with_floors", "with_loss"]

LEVELS = 32  # levels settled one by one; a tenth of the submissions is below the last one at most venues
LEAST_LEVELS = 4  # of them at any size; above SIZE_PAIRS they fall as flows grow, so that they end by themselves
SHARE = 0.7  # of the time limit up to which levels are begun
DEEP = 0.65  # of the time limit up to which whole sets are searched for them
REWINDS = 4 * LEVELS  # after which the levels settled by then are all that is claimed
CHAIN = 8  # submissions left up to which the sums of the k lowest are maximised one after the other


@dataclass(frozen=True, eq=False)
class Levels:
    """What leximin settled.

    Attributes
    ----------
    plan : Plan
    bounds : tuple of Bound
        One for each level, in order: on the least sum of those not settled yet.
    floors : ndarray of shape (n_submissions,), float64
        What every submission keeps in every plan as good; -inf for those that need no review.
    reached : ndarray of shape (n_submissions,), float64
        What every submission keeps in this plan, up to the last level; above `floors` where others could have had
        their place.
    chain : Constraints
        Sums of the k lowest that later wishes must keep besides; empty where floors say it all.
    complete : bool
        Whether every submission is settled.
    """

    plan: Plan
    bounds: tuple[Bound, ...]
    floors: FloatArray
    reached: FloatArray
    chain: Constraints = ()
    complete: bool = True


def leximin(bench: Workbench, constraints: Constraints, plan: Plan, *, sets: bool = True) -> Levels:
    """The leximin plan among those that keep the constraints, up to LEVELS levels, fewer in very large problems.

    `sets` says whether levels may be proven by whole sets of people: a loss would lower floors that such a proof takes
    as they are.
    """
    search = _Levels(bench, constraints, plan, sets)
    if not bench.problem.rules:
        search.jump()
    found = search.climb()
    if found.bounds:
        return found
    first = bench.ideal_bound(Level(np.array(bench.wanting)), constraints)  # the limit came before the first level
    return replace(found, bounds=(first,))


class _Levels:
    def __init__(self, bench: Workbench, constraints: Constraints, plan: Plan, sets: bool) -> None:
        self.bench, self.constraints, self.plan, self.sets = bench, constraints, plan, sets
        self.bounds: list[Bound] = []
        self.before: list[tuple[int, FloatArray, NDArray[np.bool_]]] = []  # each level of `climb`: what there was
        self.rewinds = 0
        self.most = LEVELS
        if bench.at_size:  # a level costs a few flows, whose time grows with the lines rather than the pairs
            pairs = math.prod(bench.problem.shape)
            self.most = max(LEAST_LEVELS, round(LEVELS * math.sqrt(SIZE_PAIRS / pairs)))
        self.floors = np.full(bench.problem.shape[0], -np.inf)
        self.among: NDArray[np.bool_] = np.array(bench.wanting)

    @property
    def over(self) -> bool:
        """Whether the wishes after this one need what is left of the time."""
        clock = self.bench.clock
        return clock.over or (clock.limit is not None and clock.seconds > SHARE * clock.limit)

    def jump(self) -> None:
        """The highest level up to which the best possible sums can be had by all together."""
        ideal = self.bench.ideal
        steps = np.unique(ideal[self.among])[: self.most]
        good, bad, reach = 0, steps.size + 1, 1
        while bad - good > 1 and not self.over:
            at = min(reach, steps.size) if bad > steps.size else (good + bad) // 2
            if self._try(np.where(self.among, np.minimum(ideal, steps[at - 1]), -np.inf), exchange=at == 1):
                good, reach = at, 2 * at
            else:
                bad = at
        for at in range(good):
            measure = Level(self.among & (ideal >= steps[at]))
            self.bounds.append(self.bench.ideal_bound(measure, self.constraints))
        if good:
            self.floors = np.where(self.among, np.minimum(ideal, steps[good - 1]), -np.inf)
            self.among = self.among & (ideal > steps[good - 1])

    def _try(self, floors: FloatArray, exchange: bool) -> bool:
        kept = (*self.constraints, (Floors(floors), 0.0))
        if self.plan.keeps(kept):
            return True
        floors = np.maximum(floors, self.bench.floors_of(self.constraints))
        if not exchange and self.sets and self.bench.out_of_reach(floors, self.constraints, self.plan):
            return False
        found = self.bench.lift(floors, exchange=exchange).plan
        if found is None or not found.keeps(kept):
            return False
        self.plan = found
        return True

    @property
    def kept(self) -> Constraints:
        """The earlier wishes and what is settled."""
        return with_floors(self.constraints, self.floors)

    def climb(self) -> Levels:
        """Levels by programs and sets."""
        bench = self.bench
        bench.sets_until = np.inf if bench.clock.limit is None else DEEP * bench.clock.limit
        try:
            return self._climb()
        finally:
            bench.sets_until = np.inf

    def _climb(self) -> Levels:
        bench = self.bench
        while self.among.any() and len(self.bounds) < self.most and self.rewinds <= REWINDS and not self.over:
            measure = Level(self.among)
            # tiny problems are settled by the prices of shares of people, so these come first there
            self.plan, bound = bench.maximise(measure, self.kept, self.plan, sets=self.sets and not bench.exact)
            if self._rewound():
                continue
            level = measure.value(self.plan.sums)
            at_level = self.among & (self.plan.sums <= level + slack_of(level))
            if not bench.exact and 1 < at_level.sum() < self.among.sum():
                self._raise(float(self.plan.sums[self.among & ~at_level].min()))
                at_level = self.among & (self.plan.sums <= level + slack_of(level))
            if bound.gap(self.plan) == 0.0:
                settled = at_level
                if bench.exact:  # only those that have this sum in every plan that reaches the level
                    priced = at_level & ((bound.weights > 1e-9) | (bench.ideal <= level + slack_of(level)))
                    settled = priced if priced.any() else at_level
            elif bench.exact and self.among.sum() <= CHAIN:
                found = self._chain()
                if self._rewound():
                    continue
                return found
            else:
                settled = at_level
                bound = self._sharper(measure, bound)
            late = bench.clock.seconds > bench.sets_until and not bench.done(self.plan, bound)
            if late and self.bounds and bound.gap(self.plan) > ENOUGH * abs(bound.bound):
                break  # the limit left it open, so it is not claimed
            self.before.append((len(self.bounds), self.floors, self.among))
            self.bounds.append(bound)
            self._settle(settled, level - self.plan.cost)
            if late:
                break  # without time for sets the next levels would stay as open as this one
        return Levels(self.plan, tuple(self.bounds), self.floors, self.floors, complete=not self.among.any())

    def _rewound(self) -> bool:
        """Whether the plan lifts one that was left behind: then its level is settled anew, with fewer left there."""
        for place, floors, among in self.before:
            if not keeps_behind(self.plan, self.bounds[place:], self.among, only_first=True):
                self.floors, self.among, self.bounds = floors, among, self.bounds[:place]
                self.before = [entry for entry in self.before if entry[0] < place]
                self.rewinds += 1
                return True
        return False

    def _sharper(self, measure: Level, bound: Bound) -> Bound:
        """The bound, or the one that whole sets of people prove for a tiny problem."""
        if not (self.sets and self.bench.exact) or bound.gap(self.plan) == 0.0:
            return bound
        return self.bench.within_reach(measure, self.kept, self.plan, bound, search=False)[1]

    def _raise(self, height: float) -> None:
        """As many as can be off the present level, up to the next one there is: fewest stay behind."""
        floors = np.where(self.among, float(self.plan.sums[self.among].min()) - self.plan.cost, -np.inf)
        kept = with_floors(self.kept, floors)
        if not self.bench.at_size:  # there it would cost a minute a level; who stays is the plan's choice
            self.plan, _ = self.bench.maximise(Shortfall(height, self.among), kept, self.plan)

    def _settle(self, settled: NDArray[np.bool_], level: float) -> None:
        self.floors = np.where(self.among, np.maximum(self.floors, level), self.floors)
        self.among = self.among & ~settled

    def _chain(self) -> Levels:
        """The sum of the k lowest of those left, for one k after the other, each with all before it kept."""
        bench, among = self.bench, self.among
        chain: list[tuple[Lowest, float]] = []
        for count in range(1, int(among.sum()) + 1):
            if bench.clock.over:
                break
            measure = Lowest(count, among)
            answer = bench.ask(measure, (*self.kept, *chain), self.plan, integral=True)
            if answer is not None:
                self.plan = bench.better(self.plan, bench.plan_of(answer), measure, (*self.kept, *chain))
            chain.append((measure, measure.value(self.plan.sums)))
        before = self.floors
        complete = len(chain) == int(among.sum())
        while self.among.any() and len(self.bounds) < self.most and not self.over:
            level = float(self.plan.sums[self.among].min())
            measure_of_rest = Level(self.among)
            answer = bench.ask(measure_of_rest, self.kept, self.plan, integral=False)
            bound = bench.ideal_bound(measure_of_rest, self.kept)
            # without a bound where the programs, to their rounding, find no plan that keeps the chain's first floors
            if answer is not None and np.isfinite(answer.bound) and answer.bound < bound.bound:
                bound = bound_of(answer)
            self.bounds.append(bound)
            self._settle(self.among & (self.plan.sums <= level + slack_of(level)), level - self.plan.cost)
        return Levels(
            self.plan, tuple(self.bounds), before, self.floors, tuple(chain), complete and not self.among.any()
        )


def keeps_behind(plan: Plan, bounds: Sequence[Bound], left: NDArray[np.bool_], *, only_first: bool = False) -> bool:
    """Whether all that left proven levels are still there; more than its level for one would be a better plan.

    Parameters
    ----------
    bounds : sequence of Bound
        Levels in order.
    left : ndarray of shape (n_submissions,), bool
        Those that are in no later level yet.
    only_first : bool
        Whether only those that left the first of these levels count.
    """
    for at, bound in enumerate(bounds[:1] if only_first else bounds):
        assert isinstance(bound.measure, Level)
        after = bounds[at + 1].measure if at + 1 < len(bounds) else None
        gone = bound.measure.among & ~(after.among if isinstance(after, Level) else left)
        high = float(plan.sums[gone].max(initial=-np.inf)) - plan.cost  # as levels are stated
        if bound.gap(plan) == 0.0 and high > bound.bound + slack_of(bound.bound):
            return False
    return True


def with_floors(constraints: Constraints, floors: FloatArray) -> Constraints:
    """The constraints with these floors taken together with those that are there."""
    if not np.isfinite(floors).any():
        return constraints
    rest = tuple((measure, least) for measure, least in constraints if not isinstance(measure, Floors))
    for measure, least in constraints:
        if isinstance(measure, Floors):
            floors = np.maximum(floors, measure.floor + least)
    return (*rest, (Floors(floors), 0.0))


def lowered(floors: FloatArray, loss: float) -> FloatArray:
    """Floors less a share of their size; those that are none stay none."""
    out = np.array(floors)
    some = np.isfinite(out)
    out[some] -= loss * np.abs(out[some])
    return out


def with_loss(bound: Bound, before: Constraints, loss: float) -> Bound:
    """A level's bound where the levels before it keep all but a share of theirs, as the final plan may leave them."""
    if loss == 0.0 or len(bound.constraints) == 0:
        return bound
    constraints, most = list(bound.constraints), bound.bound
    for at, ((measure, least), (k, z)) in enumerate(zip(bound.constraints, bound.multipliers, strict=True)):
        if not isinstance(measure, Floors):
            continue
        own = np.full(measure.floor.size, -np.inf)
        for other, mark in before:
            if isinstance(other, Floors):
                own = np.maximum(own, other.floor + mark)
        floors = np.maximum(own, lowered(measure.floor + least, loss))
        on = z > 0
        most += k * float(z[on] @ (measure.floor[on] + least - floors[on]))
        constraints[at] = (Floors(floors), 0.0)
    return replace(bound, constraints=tuple(constraints), bound=most)
