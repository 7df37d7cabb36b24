"""Envy-free up to one reviewer, at the best total that can be found with it.

The best total comes first: mostly nobody envies anybody in it, and then it is the answer, with the proof of the total.
Otherwise the scores of the envious weigh a little more in each further flow until nobody envies; reviewers change
places to take away what envy is left and to win back what the total lost (`matching.solvers.swaps`). Picking in turns
(`matching.solvers.picking`) is the other start, and in small problems so are plans for weights drawn at random. Under
rules, and where all of that leaves envy in a small problem, the integer program is asked for the best total in which
each envious submission reaches what it envied.

Of two plans the better one is that with the smaller largest excess of envy, then the larger total.
That there is envy in the plan found does not prove that every plan has some; the gap says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matching.constraints.envy import envy_by_submission
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Total
from matching.pairs import in_row_order
from matching.scores.base import blocks
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.clock import Clock, slack_of
from matching.solvers.milp import ArcProgram
from matching.solvers.milp.ruled import solution_of
from matching.solvers.oracle import DENSE_PAIRS, Oracle
from matching.solvers.picking import picked_plan
from matching.solvers.pricing import evenest, plan_from, without_plan
from matching.solvers.swaps import Desk
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["EnvySolver"]

HEAVIER = 1.05  # what one round of envy adds to a submission's weight: larger steps lose more of the total
FLOWS = 40  # most rounds of weights
IDLE = 15  # rounds without a better plan after which weights are given up
MOST_TABLE = 30_000_000  # pairs for which scores are laid out to exchange reviewers: 240 MB
PASSES = 20  # over all submissions to win back total; fewer where there are more than MANY
MANY = 1_500
SMALL = 50_000  # pairs up to which other starts and the integer program are tried without rules
STARTS = 30  # plans for weights drawn at random
SPREAD = 1.0  # standard deviation of the logarithm of such weights
FLOORS = 12  # most integer programs
FLOOR_GAP = 1e-3  # relative gap of their total that is good enough


@dataclass(frozen=True, eq=False)
class _Found:
    """A full plan, its excesses of envy by submission, and its total less what missed priced rules cost."""

    pairs: PairArray
    excess: FloatArray
    total: float
    rule_shortfall: tuple[Any, ...] = ()

    @property
    def worst(self) -> float:
        return float(self.excess.max(initial=0.0))

    @property
    def calm(self) -> bool:
        """Whether nobody envies, to the rounding of sums."""
        return self.worst <= slack_of(self.worst)

    def better(self, other: _Found) -> bool:
        """Less envy, or as little and more total."""
        if not (self.calm and other.calm):
            apart = self.worst - other.worst
            if abs(apart) > slack_of(self.worst):
                return apart < 0
        return self.total > other.total


class EnvySolver:
    """A plan without envy beyond one reviewer where one is found, else with little; see `envy_excess` for the measure.

    Parameters
    ----------
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the total it starts from.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(self, candidates: int = 16, dense_pairs: int = DENSE_PAIRS) -> None:
        self.candidates = candidates
        self.dense_pairs = dense_pairs

    def solve(
        self,
        problem: AssignmentProblem,
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution:
        """A full plan of little envy and a large total, or the fullest where no full plan exists; see Solution.

        `Solution.value` is the largest excess of envy and the bound is 0. ``meta`` holds ``total`` (less what missed
        priced rules cost), ``total_bound`` (no plan has a larger total), ``share_of_total`` (None where the bound is
        not above 0) and ``method``: what the plan came from ("total", "weights", "turns", "starts" or "floors").

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        if problem.rules:
            return self._under_rules(problem, rng, clock, report)
        oracle = Oracle(problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock)
        build_seconds = clock.seconds
        best = oracle.best(tell=lambda phase, rounds, value: report(Progress(phase, 0.3 * (1 - 0.6**rounds))))
        if best is None:
            return without_plan(problem, clock, build_seconds)
        if best.proven:
            with clock.stage("ties"):
                best = evenest(oracle, best, rng)
        total = plan_from(problem, best, clock, build_seconds, {})
        if total.status in (Status.INFEASIBLE, Status.LIMIT_WITHOUT_PLAN):
            return total
        search = _Search(problem, clock, report, total)
        search.by_weights(oracle)
        search.by_exchange("total")
        if not search.best.calm and not clock.over:
            with clock.stage("turns"):
                picked = picked_plan(oracle, rng)
            if picked is not None:
                search.exchange_from(picked, "turns")
        if problem.shape[0] * problem.shape[1] <= SMALL:
            search.by_starts(oracle, rng)
            if not search.best.calm and not clock.over:
                search.by_floors(ArcProgram(problem, candidates=self.candidates, rng=rng, clock=clock))
        return search.solution(build_seconds)

    def _under_rules(
        self, problem: AssignmentProblem, rng: int, clock: Clock, report: Callable[[Progress], None]
    ) -> Solution:
        program = ArcProgram(
            problem, candidates=self.candidates, rng=rng, clock=clock,
            tell=lambda phase, *_: report(Progress(phase, 0.3)),
        )  # fmt: skip
        build_seconds = clock.seconds
        answer = program.solve(Total(), integral=True)
        if answer is None or not answer.found:
            return without_plan(problem, clock, build_seconds)
        total = solution_of(answer, {"name": "total"}, clock, build_seconds)
        if total.status == Status.LIMIT_WITHOUT_PLAN:
            return without_plan(problem, clock, build_seconds)
        if total.status == Status.INFEASIBLE:
            return total
        search = _Search(problem, clock, report, total)
        search.by_floors(program)
        return search.solution(build_seconds)


class _Search:
    """The best plan so far and the ways to a better one."""

    def __init__(
        self, problem: AssignmentProblem, clock: Clock, report: Callable[[Progress], None], total: Solution
    ) -> None:
        self.problem, self.clock, self.report, self.total = problem, clock, report, total
        plain = self._judge(total.pairs, total.rule_shortfall)
        self.best = self.first = replace(plain, total=total.value)
        self.method = "total"
        self.rounds = total.rounds

    def _judge(self, pairs: PairArray, rule_shortfall: tuple[Any, ...] = ()) -> _Found:
        with self.clock.stage("envy"):
            score = np.nan_to_num(self.problem.scores.values(pairs[:, 0], pairs[:, 1]))
            return _Found(pairs, envy_by_submission(self.problem, pairs), float(score.sum()), rule_shortfall)

    def _offer(self, found: _Found, method: str) -> bool:
        """Keep a plan if it is better; whether it is."""
        if not found.better(self.best):
            return False
        self.best, self.method = found, method
        self._tell()
        return True

    def _tell(self) -> None:
        worst = self.best.worst
        self.report(Progress("fairness", 0.6, worst, 0.0, worst))

    def by_weights(self, oracle: Oracle) -> None:
        """Flows in which the envious weigh more from round to round."""
        present, weights, idle = self.first, np.ones(self.problem.shape[0]), 0
        for _ in range(FLOWS):
            if present.calm or idle >= IDLE or self.clock.over:
                return
            weights[present.excess > slack_of(present.worst)] *= HEAVIER
            taken, _sums = oracle.corner(weights / weights.max())
            self.rounds += 1
            present = self._judge(self._with_locked(oracle, taken))
            idle = 0 if self._offer(present, "weights") else idle + 1

    def _with_locked(self, oracle: Oracle, taken: IntArray) -> PairArray:
        free = np.column_stack([oracle.state.rows[taken], oracle.state.cols[taken]])
        return in_row_order(np.concatenate([self.problem.locked, free]))

    def by_exchange(self, method: str) -> None:
        """Reviewers change places in the best plan, and where that leaves envy, in the plan of the best total."""
        if self.best is self.first and self.first.calm:
            return
        self.exchange_from(self.best.pairs, self.method)
        if not self.best.calm:
            self.exchange_from(self.first.pairs, method)

    def by_starts(self, oracle: Oracle, rng: int) -> None:
        """Exchanges from plans that are best for weights drawn at random."""
        generator = np.random.default_rng(rng)
        for _ in range(STARTS):
            if self.best.calm or self.clock.over:
                return
            weights = np.exp(SPREAD * generator.standard_normal(self.problem.shape[0]))
            taken, _sums = oracle.corner(weights / weights.max())
            self.rounds += 1
            self.exchange_from(self._with_locked(oracle, taken), "starts")

    def exchange_from(self, pairs: PairArray, method: str) -> None:
        """Take envy away from a plan, then win back total."""
        if self.problem.shape[0] * self.problem.shape[1] > MOST_TABLE:
            self._offer(self._judge(pairs), method)
            return
        with self.clock.stage("exchange"):
            desk = Desk(self.problem, self._table(), pairs)
            desk.calm(self.clock)
            self._tell()
            desk.raise_total(self.clock, PASSES if self.problem.shape[0] <= MANY else 2)
        self._offer(self._judge(desk.pairs), method)

    def _table(self) -> FloatArray:
        """Scores of lawful pairs, -inf elsewhere and in one more column."""
        n_submissions, n_reviewers = self.problem.shape
        table = np.full((n_submissions, n_reviewers + 1), -np.inf)
        for rows, cols in blocks(self.problem.shape):
            part = np.array(self.problem.scores.block(rows, cols), dtype=np.float64)
            part[np.isnan(part)] = -np.inf
            part[self.problem.barred.within(rows, cols)] = -np.inf
            table[rows, cols] = part
        return table

    def by_floors(self, program: ArcProgram) -> None:
        """Integer programs in which the envious reach what they envied; floors only rise."""
        present, floor = self.first, np.full(self.problem.shape[0], -np.inf)
        for _ in range(FLOORS):
            if present.calm or self.clock.over:
                return
            sums = self._positive_sums(present.pairs)
            ill = present.excess > slack_of(present.worst)
            floor[ill] = np.maximum(floor[ill], sums[ill] + present.excess[ill] * self.problem.demand[ill])
            self.rounds += 1
            with self.clock.stage("floors"):
                answer = program.solve(
                    Total(), ((Floors(floor.copy()), 0.0),), integral=True, gap=FLOOR_GAP,
                    tell=lambda phase, *_: self._tell(),
                )  # fmt: skip
            if answer is None or not answer.found or not answer.feasible or not answer.kept:
                return
            found = self._judge(answer.pairs, answer.rule_shortfall)
            present = replace(found, total=found.total - answer.cost)
            self._offer(present, "floors")

    def _positive_sums(self, pairs: PairArray) -> FloatArray:
        score = np.maximum(np.nan_to_num(self.problem.scores.values(pairs[:, 0], pairs[:, 1])), 0.0)
        return np.bincount(pairs[:, 0], weights=score, minlength=self.problem.shape[0]).astype(np.float64)

    def solution(self, build_seconds: float) -> Solution:
        """The best plan found, with the proof of the best total beside it."""
        found, total = self.best, self.total
        value = found.worst
        gap = 0.0 if found.calm else value
        proof = Proof(
            wish={"name": "envy"}, value=value, bound=0.0, gap=gap, measure=Total(), constraints=(),
            weights=frozen(np.ones(self.problem.shape[0])), multipliers=(),
            submission_prices=total.submission_prices, reviewer_prices=total.reviewer_prices,
        )  # fmt: skip
        at_limit = self.clock.over and not found.calm
        self.report(Progress("fairness", 1.0, value, 0.0, gap))
        return replace(
            total,
            status=Status.FEASIBLE_AT_LIMIT if at_limit else Status.OPTIMAL,
            pairs=frozen(found.pairs),
            value=value,
            bound=0.0,
            gap=gap,
            rounds=self.rounds,
            build_seconds=build_seconds,
            solve_seconds=self.clock.seconds - build_seconds,
            stages=dict(self.clock.stages),
            meta={
                "solver": "envy",
                "method": self.method,
                "total": found.total,
                "total_bound": total.bound,
                "share_of_total": found.total / total.bound if total.bound > 0 else None,
            },
            proofs=(proof,),
            rule_shortfall=found.rule_shortfall,
        )
