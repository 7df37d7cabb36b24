"""Evenness under rules: squared loads as priced rules of the program.

The square of a whole load l is ``l + sum over k >= 1 of 2 max(0, l - k)``, so "at most k reviews" for each k, at a
price of 2 for each review above it, charges exactly the squares less the number of reviews.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.constraints.problem import AssignmentProblem
from matching.solvers.milp import ArcAnswer, ArcProgram, Weighted
from matching.solvers.stages import Constraints, Plan, plan_of
from matching.solvers.workbench import Workbench
from matching.types import FloatArray

__all__ = ["RuledEvenness", "even_under_rules"]

STEEPEST = 64  # loads above this are charged as if each review more cost the same


class RuledEvenness:
    """A plan and what bounds the squares of its loads.

    Attributes
    ----------
    plan : Plan
    answer : ArcAnswer
        Its bound, less the number of reviews, is minus the least sum of squares.
    terms : ndarray of shape (n_reviewers,), float64
        What one more review by each person costs at its prices.
    """

    def __init__(self, plan: Plan, answer: ArcAnswer, terms: FloatArray) -> None:
        self.plan, self.answer, self.terms = plan, answer, terms


def even_under_rules(bench: Workbench, plan: Plan, constraints: Constraints) -> RuledEvenness | None:
    """The evenest plan that keeps hard rules and constraints; None at the limit.

    The total breaks ties where there are no constraints.
    """
    problem = bench.problem
    load = np.bincount(plan.pairs[:, 1], minlength=problem.shape[1])
    squared = _with_squares(problem, int(load.max(initial=1)))
    program = ArcProgram(squared, candidates=bench.candidates, rng=bench.rng, clock=bench.clock)
    nothing = Weighted(np.zeros(problem.shape[0]))
    bench.solves["programs"] += 1
    answer = program.solve(nothing, constraints, integral=True, start=plan.pairs, gap=0.0 if bench.exact else None)
    if answer is None or not np.isfinite(answer.bound):
        return None
    if answer.found and answer.kept and answer.feasible:
        plan = _evener(bench, plan, answer, constraints)
    if not constraints:
        # a total that counts below the 2 by which squares differ only breaks ties
        state = bench.oracle.state
        reach = max(abs(state.low_plain), abs(state.high_plain), 1e-12) * max(1, int(problem.demand.sum()))
        tied = program.solve(
            Weighted(np.full(problem.shape[0], 0.5 / reach)), (), integral=True, start=plan.pairs,
            gap=0.0 if bench.exact else None,
        )  # fmt: skip
        if tied is not None and tied.found and tied.feasible:
            other = _evener(bench, plan, tied, constraints)
            if other is plan and _squares(tied.pairs, problem) == _squares(plan.pairs, problem):
                other = plan_of(problem, tied.pairs, 0.0, tied.rule_shortfall[: len(problem.rules)])
            plan = other
    terms = np.ones(problem.shape[1])
    for price in answer.rule_prices[len(problem.rules) :]:
        terms += sparse.csr_array(price).toarray().ravel()
    return RuledEvenness(plan, answer, terms)


def _with_squares(problem: AssignmentProblem, most: int) -> AssignmentProblem:
    everything = sparse.csr_array(np.ones((1, problem.shape[0])))
    each = sparse.eye_array(problem.shape[1], format="csr")
    steps = tuple(
        GroupBound.of(f"load above {k}", everything, each, upper=float(k), price=2.0)
        for k in range(1, min(most + 1, STEEPEST))
    )
    return replace(problem, rules=(*problem.rules, *steps))


def _evener(bench: Workbench, plan: Plan, answer: ArcAnswer, constraints: Constraints) -> Plan:
    other = plan_of(bench.problem, answer.pairs, 0.0, answer.rule_shortfall[: len(bench.problem.rules)])
    better = _squares(other.pairs, bench.problem) < _squares(plan.pairs, bench.problem)
    return other if better and other.keeps(constraints) else plan


def _squares(pairs: np.ndarray[tuple[int, ...], np.dtype[np.int64]], problem: AssignmentProblem) -> float:
    return float((np.bincount(pairs[:, 1], minlength=problem.shape[1]).astype(np.float64) ** 2).sum())
