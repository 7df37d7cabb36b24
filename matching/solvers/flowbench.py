"""What flows alone say: the best total, the best of each submission by itself, and totals above floors.

Floors are met by weighing the few submissions below them higher until the flow serves them (Lagrangian multipliers;
Geoffrion, 1974); the flow's prices under those weights bound the total above the floors. Where multipliers do not meet
them, exchanges from the flow that came nearest do (`matching.solvers.floors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matching.constraints.ideal import ideal_sums
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Measure, Total
from matching.solvers.clock import Clock
from matching.solvers.exchange import Arcs
from matching.solvers.floors import meet
from matching.solvers.near import NearOracle
from matching.solvers.oracle import Extreme, Oracle
from matching.solvers.stages import Bound, Plan, of_extreme, plan_of
from matching.types import FloatArray

__all__ = ["CLOSE", "EXACT_PAIRS", "EXCHANGE_PAIRS", "SIZE_PAIRS", "FlowBench", "Lift", "Tell"]

EXACT_PAIRS = 4_000  # problems of at most this many pairs are searched to the end
CLOSE = 1e-4  # relative gap at which larger ones stop
EXCHANGED = 6_000_000  # active pairs offered to exchanges in all
MOST_EXCHANGES = 400
EXCHANGES_AT_SIZE = 24  # each takes a good part of a second there, and few submissions are below their floors
EXCHANGE_PAIRS = 50_000  # active pairs above which exchanges are left out, unless there are too many for programs
EXCHANGEABLE = 3  # exchanges are tried where at most one in this many submissions is below its floor
LIFTS = 14  # doublings of a multiplier from FIRST_PULL: up to 2048 times the weight of the others
FIRST_PULL = 0.25
REFINES = 4  # flows with smaller multipliers once the floors are met
FEW = 16  # submissions below their floor that multipliers can serve, or a twentieth of all
SIZE_PAIRS = 4_000_000  # pairs of the whole matrix above which linear programs take minutes and flows seconds
MANY_PAIRS = 1_000_000  # active pairs above which multipliers are tried however many are below

Tell = Callable[[str, float | None, float | None], None]
"""Called with (phase, value, bound) between steps; an exception it raises ends the run and passes through."""


@dataclass(frozen=True, eq=False)
class Lift:
    """The best total with every sum at its floor, by multipliers.

    Attributes
    ----------
    floors : ndarray of shape (n_submissions,), float64
    plan : Plan or None
        None where no weights tried gave one; that proves nothing.
    pull : ndarray of shape (n_submissions,), float64
        Multipliers of `bound`.
    bound : Bound
        On the total of all plans above the floors.
    exchanged : bool
        Whether nothing was left untried.
    """

    floors: FloatArray
    plan: Plan | None
    pull: FloatArray
    bound: Bound
    exchanged: bool


class FlowBench:
    """A problem with the flows solved for it so far.

    Parameters
    ----------
    problem : AssignmentProblem
    candidates : int
        First candidates per submission and per reviewer.
    rng : int
    clock : Clock
    tell : callable
    """

    def __init__(self, problem: AssignmentProblem, candidates: int, rng: int, clock: Clock, tell: Tell) -> None:
        self.problem, self.candidates, self.rng, self.clock, self.tell = problem, candidates, rng, clock, tell
        self.oracle = Oracle(problem, candidates=candidates, rng=rng, clock=clock)
        self.total: Extreme | None = self.oracle.best(tell=lambda phase, rounds, value: tell(phase, value, None))
        """The best total without rules; None where the limit came first."""
        self._lifts: list[Lift] = []
        self.slopes: dict[Measure, FloatArray] = {}  # weights that bound a wish well, where a later one starts with it
        self.solves: dict[str, int] = {"flows": 1, "programs": 0}

    @cached_property
    def ideal(self) -> FloatArray:
        """Each submission's best possible sum."""
        with self.clock.stage("sweeps"):
            return ideal_sums(self.problem)

    @cached_property
    def wanting(self) -> Any:
        """Submissions that need reviews, bool of shape (n_submissions,)."""
        return self.problem.demand > 0

    @cached_property
    def near(self) -> NearOracle:
        """An oracle on the active pairs of now and on those offered to it later."""
        state = self.oracle.state
        return NearOracle(self.problem, clock=self.clock, active=np.column_stack([state.rows, state.cols]))

    @property
    def exact(self) -> bool:
        """Whether the problem is small enough to be searched to the end."""
        return self.problem.shape[0] * self.problem.shape[1] <= EXACT_PAIRS

    @property
    def at_size(self) -> bool:
        """Whether there are no rules and too many pairs for linear programs, so that flows must do."""
        return not self.problem.rules and not self.exact and math.prod(self.problem.shape) > SIZE_PAIRS

    def done(self, plan: Plan, bound: Bound) -> bool:
        """Whether a gap is no reason to go on."""
        gap = bound.gap(plan)
        return gap == 0.0 or (not self.exact and gap <= CLOSE * abs(bound.bound))

    def flow(self, weights: FloatArray) -> Extreme | None:
        """The best flow under row weights; None where the limit came before the end of it."""
        self.tell("fairness", None, None)
        plain = bool((weights == 1.0).all())
        state = self.oracle.state
        if plain and state.scores.plain and self.total is not None and self.oracle.flow.amount.size == state.rows.size:
            return self.total if self.total.proven else None  # it is still the oracle's last answer
        extreme = self.oracle.best(None if plain else weights)
        self.solves["flows"] += 1
        return extreme if extreme is not None and extreme.proven else None

    def lift(self, floors: FloatArray, *, exchange: bool = True) -> Lift:
        """The best total with every sum at its floor, by multipliers on the submissions that are below it.

        Parameters
        ----------
        floors : ndarray of shape (n_submissions,), float64
            -inf where there is none.
        exchange : bool
            Whether exchanges may follow where multipliers do not meet the floors.
        """
        for known in self._lifts:
            # floors from a bound and from a sum may differ in the last bit
            if np.allclose(known.floors, floors, rtol=1e-12, atol=1e-12) and (known.exchanged or not exchange):
                return known
        found = self._lift(floors, exchange)
        self._lifts.append(found)
        return found

    def _lift(self, floors: FloatArray, exchange: bool) -> Lift:
        assert self.total is not None
        n_submissions = self.problem.shape[0]
        measure, ones, constraints = Total(), np.ones(n_submissions), ((Floors(floors), 0.0),)
        slack = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(floors), floors, 0.0)))
        best = of_extreme(self.total, measure, constraints, ones, ((1.0, np.zeros(n_submissions)),))
        pull_of_best = np.zeros(n_submissions)
        plan: Plan | None = None
        most = max(FEW, n_submissions // 20)
        if self.at_size or self.oracle.state.rows.size > MANY_PAIRS:
            most = n_submissions
        low_pull, pull, extreme = np.zeros(n_submissions), np.zeros(n_submissions), self.total
        steps = LIFTS
        while not self.clock.over:
            low = extreme.sums < floors - slack
            if low.any():
                if plan is None and int(low.sum()) > most:
                    break
                low_pull = np.where(low, pull, low_pull)
            else:
                mine = plan_of(self.problem, extreme.pairs)
                if plan is None:
                    steps = 0 if self.exact else REFINES
                    # multipliers of submissions that never were low stay 0
                if plan is None or mine.sums.sum() > plan.sums.sum():
                    plan = mine
                high_pull = pull
            if plan is not None and self.done(plan, best):
                break
            if steps == 0:
                break
            steps -= 1
            if plan is None:
                pull = np.where(low, np.maximum(FIRST_PULL, 2.0 * pull), pull)
            else:
                pull = 0.5 * (low_pull + high_pull)
            new = self.flow(1.0 + pull)
            if new is None:
                break
            extreme = new
            bound = of_extreme(extreme, measure, constraints, ones, ((1.0, pull),))
            if bound.bound < best.bound:
                best, pull_of_best = bound, pull
        near = int((extreme.sums < floors - slack).sum()) * EXCHANGEABLE <= n_submissions
        if EXCHANGE_PAIRS < self.oracle.state.rows.size <= MANY_PAIRS and not self.at_size:
            near = False  # there the programs are quicker
        if exchange and plan is None and near and not self.exact and not self.clock.over:
            plan = self._by_exchanges(extreme, floors)
        return Lift(floors, plan, pull_of_best, best, exchange or plan is not None)

    def _by_exchanges(self, start: Extreme, floors: FloatArray) -> Plan | None:
        """Exchanges from the flow that came nearest, where multipliers alone do not meet the floors."""
        state, problem = self.oracle.state, self.problem
        arcs = Arcs(problem.shape, state.rows, state.cols, state.plain, state.load_min, state.load_max)
        width = problem.shape[1]
        taken = np.isin(state.rows * width + state.cols, start.rows * width + start.cols)
        base = np.bincount(problem.locked[:, 0], weights=state.held, minlength=problem.shape[0]).astype(np.float64)
        flows = EXCHANGES_AT_SIZE if self.at_size else min(MOST_EXCHANGES, EXCHANGED // max(1, state.rows.size) + 10)

        def over() -> bool:
            self.tell("rounding", None, None)
            return self.clock.over

        with self.clock.stage("exchange"):
            found = meet(arcs, taken, base, floors, np.random.default_rng(self.rng), flows, over)
        if found is None:
            return None
        return plan_of(problem, np.concatenate([problem.locked, np.column_stack([arcs.rows, arcs.cols])[found]]))
