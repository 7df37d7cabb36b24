"""Solving again to check a claim, within stated limits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError
from matching.objectives import Wish
from matching.solvers.base import Solution, Status

__all__ = ["MOST_PAIRS", "Resolves", "missing_in"]

log = logging.getLogger(__name__)

MOST_PAIRS = 2_000_000  # pairs of a problem up to which it is solved again
PAIRS_IN_ALL = 8_000_000  # pairs of all problems solved again for one question, where there are no rules
SECONDS = 30.0  # for everything that is solved again for one plan

Solve = Callable[[AssignmentProblem, Wish, float], Solution]
"""(problem, objective, seconds) -> solution."""

TOTAL = Wish("total", {})


class Resolves:
    """Re-solves for one plan.

    Parameters
    ----------
    solve : callable
        (problem, objective, seconds) -> Solution.
    seconds : float or None
        What is left of the time limit of the run; None for none. Never more than `SECONDS`.
    """

    def __init__(self, solve: Solve, seconds: float | None = None) -> None:
        self._solve = solve
        self._end = perf_counter() + max(0.0, SECONDS if seconds is None else min(seconds, SECONDS))
        self.ran_out = False

    @staticmethod
    def count(problem: AssignmentProblem, most: int, pairs_in_all: int = PAIRS_IN_ALL) -> int:
        """How often a problem of this size is solved again for one question, at most `most`."""
        pairs = max(1, problem.shape[0] * problem.shape[1])
        if pairs > MOST_PAIRS:
            return 0
        budget = pairs_in_all // 8 if problem.rules else pairs_in_all  # integer programs take longer than flows
        return min(most, budget // pairs)

    def solved(self, problem: AssignmentProblem, wish: Wish = TOTAL) -> Solution | None:
        """The solution, None where time ran out or the solver had no answer."""
        left = self._end - perf_counter()
        if left <= 0:
            self.ran_out = True
            return None
        try:
            solution = self._solve(problem, wish, left)
        except SolverError as error:
            log.warning("a check by solving again gave no answer: %s", error)
            return None
        if solution.status in (Status.LIMIT_WITHOUT_PLAN, Status.FEASIBLE_AT_LIMIT):
            self.ran_out = True
        return None if solution.status == Status.LIMIT_WITHOUT_PLAN else solution

    def missing(self, problem: AssignmentProblem) -> float | None:
        """Reviews, load minima and units of hard rules that the fullest plan misses; None where that stays open."""
        solution = self.solved(problem)
        return None if solution is None else missing_in(problem, solution)


def missing_in(problem: AssignmentProblem, solution: Solution) -> float:
    """Reviews, load minima and units of hard rules that a solution misses, in all."""
    out = float(solution.unfilled.sum() + solution.below_min.sum())
    for rule, missed in zip(problem.rules, solution.rule_shortfall, strict=False):
        if rule.price is None:
            out += float(np.abs(missed.data if sparse.issparse(missed) else missed).sum())
    return round(out, 9)
