"""Welfare: the fractional optimum by fully corrective Frank-Wolfe steps, then the best plan near it.

A concave function of the submissions' sums is maximised over the lawful plans by asking the oracle for the best plan
under the function's present slopes, and then for the best mixture of all plans known so far (simplicial
decomposition; Frank and Wolfe, 1956; von Hohenbalken, 1977). The slopes with the oracle's prices prove a bound
(`matching.objectives`). Plans come from the oracle's own answers and are made better by re-placing one review of every
submission at once (`matching.solvers.exchange`). Where the best mixture is out of reach of every plan, bound and plan
are sharpened over whole sets of people (`matching.solvers.sets`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matching.constraints.ideal import welfare_of
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Welfare
from matching.solvers.base import Progress, ProgressCallback, Solution, Status
from matching.solvers.clock import Clock
from matching.solvers.mixing import Search, proof_of
from matching.solvers.oracle import Oracle
from matching.solvers.pricing import PricingSolver, without_plan
from matching.solvers.ruled_welfare import RuledSearch

__all__ = ["WelfareSolver"]

DENSE_PAIRS = 20_000  # up to here every pair is active from the start; flows with odd slopes take longer than the total


class WelfareSolver:
    """The plan of the largest welfare, with a bound over all pairs.

    Parameters
    ----------
    alpha : float
        [0, 64]; 0 is the total, 1 Nash welfare, larger ones turn to the worst-off.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the bound.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(self, alpha: float = 1.0, candidates: int = 16, dense_pairs: int = DENSE_PAIRS) -> None:
        self.alpha = float(alpha)
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
        """The best plan found with its bound, or the fullest where no full plan exists; see Solution.

        `Solution.value` is the equally distributed equivalent. ``meta["set_aside"]`` lists the submissions that can
        have no positive sum and are left out of it; among plans alike for the others they get what they can.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        if problem.rules:
            clock, measure = Clock(time_limit), welfare_of(problem, self.alpha)
            return RuledSearch(problem, measure, self.candidates, rng, clock, progress or (lambda entry: None)).solve()
        total = PricingSolver(self.candidates)
        if self.alpha == 0.0:
            return _of_total(problem, total.solve(problem, rng=rng, time_limit=time_limit, progress=progress))
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        oracle = Oracle(problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock)
        welfare = welfare_of(problem, self.alpha)
        build_seconds = clock.seconds
        if not welfare.among.any():
            return self._without_anyone(problem, welfare, total, rng, clock, progress)
        search = Search(problem, welfare, oracle, rng, report)
        first = search.begin()
        if first is None or (first.missing and not first.proven):
            return without_plan(problem, clock, build_seconds)
        if first.missing:
            return total.solve(problem, rng=rng, time_limit=clock.left, progress=progress)
        search.mix()
        search.exchange()
        search.tighten()
        search.settle()
        return search.solution(build_seconds)

    def _without_anyone(
        self,
        problem: AssignmentProblem,
        welfare: Welfare,
        total: PricingSolver,
        rng: int,
        clock: Clock,
        progress: ProgressCallback | None,
    ) -> Solution:
        """Nobody can have a positive sum: welfare says nothing, and the total decides."""
        found = total.solve(problem, rng=rng, time_limit=clock.left, progress=progress)
        if found.status not in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT):
            return found
        proof = proof_of(
            self.alpha, welfare, 0.0, 0.0, np.zeros(problem.shape[0]), found.submission_prices * 0.0,
            found.reviewer_prices * 0.0,
        )  # fmt: skip
        meta = {**found.meta, "set_aside": np.flatnonzero(problem.demand > 0).tolist()}
        return replace(
            found, value=0.0, bound=0.0, gap=0.0, proofs=(proof,), meta=meta,
            submission_prices=proof.submission_prices, reviewer_prices=proof.reviewer_prices,
        )  # fmt: skip


def _of_total(problem: AssignmentProblem, found: Solution) -> Solution:
    """At alpha 0 the total, stated as the mean over the submissions."""
    if found.status not in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT):
        return found
    measure = welfare_of(problem, 0.0)
    value, bound = measure.equivalent(found.value), measure.equivalent(found.bound)
    weights = measure.weights(np.zeros(problem.shape[0]))
    proof = proof_of(0.0, measure, value, bound, weights, found.submission_prices, found.reviewer_prices)
    meta = {**found.meta, "set_aside": [], "total": found.value}
    return replace(found, value=proof.value, bound=proof.bound, gap=proof.gap, proofs=(proof,), meta=meta)
