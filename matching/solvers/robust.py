"""Robust plans: scores known up to their standard error, the worst case over an ellipsoid of errors.

    minimise over errors e with ||e / sigma|| <= radius:  sum of (s + e) x  =  sum of s x - radius * ||sigma x||

(ellipsoidal uncertainty: Ben-Tal and Nemirovski, 1999, Operations Research Letters 25; for paper assignment Cousins,
Payan and Zick, 2023. Into the unknown: assigning reviewers to papers with uncertain affinities. SAGT). How the best
plan and the bound are found is in `matching.solvers.worst_case`; here are the flows it asks for them, and under rules
the integer and linear programs.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.linearised import Linearised
from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total, parse_objective
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.clock import Clock
from matching.solvers.milp import ArcAnswer, ArcProgram
from matching.solvers.milp.program import DENSE_PAIRS as FEW_PAIRS
from matching.solvers.milp.ruled import solution_of
from matching.solvers.milp.search import EXACT_PAIRS
from matching.solvers.oracle import DENSE_PAIRS, Extreme, Oracle
from matching.solvers.pricing import evenest, plan_from, without_plan
from matching.solvers.stated import bound_and_gap, stated
from matching.solvers.worst_case import Bounded, Cautious, CornerSearch, Taken, WorstCase, lowest_bound

__all__ = ["RobustSolver"]


class RobustSolver:
    """Largest worst case of the total when scores are off by errors of the size of their standard errors.

    Parameters
    ----------
    standard_error : float, array_like or scipy.sparse of the problem's shape, or PairNumbers
        At least 0, in units of score. Entries a sparse array does not store are 0.
    radius : float
        At least 0, no unit: how many standard errors the errors of all pairs together may be away from 0.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(
        self, standard_error: Any, radius: float = 1.0, candidates: int = 16, dense_pairs: int = DENSE_PAIRS
    ) -> None:
        self.standard_error = standard_error
        self.radius = radius
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
        """The plan with the best worst case.

        Returns
        -------
        Solution
            ``value`` is the worst case of the total over all errors allowed, ``bound`` holds for lotteries too.
            ``meta`` has "total" (the plan's with the scores as they are), "best_total" (of the best plan without
            errors), and "best_plan": whether the search has shown that no other plan has a better worst case.

        Raises
        ------
        InvalidParamsError
            Standard errors or radius out of range or of another shape.
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        wish = parse_objective({"name": "robust", "standard_error": self.standard_error, "radius": self.radius})[0]
        worst = WorstCase(PairNumbers.of(self.standard_error, problem.shape, 0.0, "standard_error"), float(self.radius))
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        make = _Programs if problem.rules else _Flows
        source = make(problem, worst.errors, self.candidates, self.dense_pairs, rng, clock)
        build_seconds = clock.seconds
        report(Progress("flow", 0.1))
        first = source.first(build_seconds)
        if isinstance(first, Solution):
            return first
        search = CornerSearch(worst, source, clock, report)
        with clock.stage("fairness"):
            best = search.best_plan(worst.corner(source.start))
            lowest = lowest_bound(worst, source, first, search.found, problem.shape, clock, report)
        value, proven = best.value, lowest.bounded
        bound, gap = bound_and_gap(value, proven.bound)
        proof = Proof(
            wish.to_dict(), value, bound, gap, Total(), (), np.ones(problem.shape[0]), (), frozen(proven.u),
            frozen(proven.w), proven.rule_prices, anchor=lowest.direction,
        )  # fmt: skip
        report(Progress("fairness", 1.0, value, bound, gap))
        status = Status.FEASIBLE_AT_LIMIT if (clock.over and gap > 0.0) or not source.proven else Status.OPTIMAL
        return stated(
            problem, status, np.column_stack([best.taken.rows, best.taken.cols]), (proof,), clock, build_seconds,
            rounds=source.rounds,
            meta={
                **source.meta,
                "total": best.total,
                "best_total": source.start.total,
                "best_plan": search.complete and all(corner.taken.exact for corner in search.found),
            },
            rule_shortfall=best.taken.rule_shortfall,
        )  # fmt: skip


class _Flows:
    """Plans and prices by flows, for problems without rules."""

    def __init__(
        self, problem: AssignmentProblem, errors: PairNumbers, candidates: int, dense_pairs: int, rng: int, clock: Clock
    ) -> None:
        self.problem, self.errors, self.rng, self.clock = problem, errors, rng, clock
        self.candidates, self.dense_pairs = candidates, dense_pairs
        self.oracle = self._oracle(problem)
        self.proven, self.rounds = True, 0
        self.start: Taken

    def first(self, build_seconds: float) -> Bounded | Solution:
        """The total, whose plan is then `start`; a Solution where there is nothing to go on with."""
        found = self.oracle.best()
        if found is None or (found.missing and not found.proven):
            return without_plan(self.problem, self.clock, build_seconds)
        if found.proven:
            with self.clock.stage("ties"):
                found = evenest(self.oracle, found, self.rng)
        self.proven, self.rounds = found.proven, found.rounds
        if found.missing:
            meta: dict[str, object] = {"solver": "flow+pricing", "without": "robust"}
            return plan_from(self.problem, found, self.clock, build_seconds, meta)
        self.start = self._taken(found)
        return self._bounded(found)

    @property
    def meta(self) -> dict[str, Any]:
        """Facts for the record."""
        return {"solver": "flow+pricing", "active_pairs": int(self.oracle.state.rows.size)}

    def plan(self, of_total: float, of_square: float) -> Taken | None:
        scores = Cautious(self.problem.scores, self.errors, of_total, of_square)
        oracle = self._oracle(replace(self.problem, scores=scores))
        found = oracle.best()
        if found is None or found.missing or not found.proven:
            return None
        return self._taken(evenest(oracle, found, self.rng))

    def bounded(self, terms: sparse.csr_array) -> Bounded | None:
        found = self.oracle.best(terms=terms)
        return None if found is None else self._bounded(found)

    def _oracle(self, problem: AssignmentProblem) -> Oracle:
        return Oracle(problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=self.rng, clock=self.clock)

    def _bounded(self, found: Extreme) -> Bounded:
        return Bounded(found.bound, found.u, found.w, (), self._taken(found))

    def _taken(self, found: Extreme) -> Taken:
        total = float(np.nan_to_num(self.problem.scores.values(found.rows, found.cols)).sum())
        return Taken(found.rows, found.cols, np.ones(found.rows.size), total)


class _Programs:
    """Plans by integer programs and prices by linear ones, for problems with rules."""

    def __init__(
        self, problem: AssignmentProblem, errors: PairNumbers, candidates: int, dense_pairs: int, rng: int, clock: Clock
    ) -> None:
        self.problem, self.errors, self.candidates, self.rng, self.clock = problem, errors, candidates, rng, clock
        self.dense_pairs = min(dense_pairs, FEW_PAIRS)
        self.proven, self.rounds = True, 0
        self.start: Taken
        self.meta: dict[str, Any] = {"solver": "highs", "highspy": version("highspy")}

    def first(self, build_seconds: float) -> Bounded | Solution:
        """The total, whose plan is then `start`; a Solution where there is nothing to go on with."""
        found = self._solve(self.problem, True)
        if found is None or not found.found:
            return without_plan(self.problem, self.clock, build_seconds, meta=self.meta)
        if not found.feasible or not np.isfinite(found.bound):
            solution = solution_of(found, {"name": "total"}, self.clock, build_seconds)
            if solution.status != Status.INFEASIBLE:
                return without_plan(self.problem, self.clock, build_seconds, meta=self.meta)
            return replace(solution, meta={**solution.meta, "without": "robust"})
        self.proven, self.rounds = found.proven, int(found.meta["rounds"])
        self.meta["active_pairs"] = int(found.meta["active_pairs"])
        self.start = self._taken(found)
        return self._bounded(found)

    def plan(self, of_total: float, of_square: float) -> Taken | None:
        scores = Cautious(self.problem.scores, self.errors, of_total, of_square)
        rules = tuple(
            rule if rule.price is None else replace(rule, price=rule.price * of_total) for rule in self.problem.rules
        )
        found = self._solve(replace(self.problem, scores=scores, rules=rules), True)
        if found is None or not found.found or not found.feasible or not found.proven:
            return None
        return self._taken(found)

    def bounded(self, terms: sparse.csr_array) -> Bounded | None:
        scores = Linearised(self.problem.scores, None, terms)
        found = self._solve(replace(self.problem, scores=scores), False)
        if found is None or not found.found or not np.isfinite(found.bound):
            return None
        return self._bounded(found)

    def _solve(self, problem: AssignmentProblem, integral: bool) -> ArcAnswer | None:
        program = ArcProgram(
            problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=self.rng, clock=self.clock
        )
        return program.solve(Total(), integral=integral)

    def _bounded(self, found: ArcAnswer) -> Bounded:
        return Bounded(found.bound, found.u, found.w, found.rule_prices, self._taken(found))

    def _taken(self, found: ArcAnswer) -> Taken:
        plain = np.nan_to_num(self.problem.scores.values(found.rows, found.cols))
        cost = sum(
            rule.price * float(np.abs(missed.data if sparse.issparse(missed) else missed).sum())
            for rule, missed in zip(self.problem.rules, found.rule_shortfall, strict=True)
            if rule.price is not None
        )
        small = found.meta["active_pairs"] <= EXACT_PAIRS
        exact = found.gap == 0.0 or (found.proven and found.meta["exact"] and small)
        return Taken(
            found.rows, found.cols, found.share, float(plain @ found.share) - cost, found.rule_shortfall, bool(exact)
        )
