"""The total under rules, exact over all pairs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total
from matching.solvers.base import Progress, ProgressCallback, Solution, Status, frozen
from matching.solvers.clock import Clock
from matching.solvers.milp.answer import ArcAnswer
from matching.solvers.milp.program import DENSE_PAIRS, ArcProgram
from matching.solvers.pricing import without_plan

__all__ = ["RuleSolver", "solution_of"]


class RuleSolver:
    """Maximal total score less the cost of missed priced rules, under all rules, certified over all pairs.

    Parameters
    ----------
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
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
        """The best plan, or among the fullest the best where no lawful full plan exists; see Solution.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))

        def tell(phase: str, value: float, bound: float) -> None:
            report(Progress(phase, {"rules": 0.3, "rounding": 0.7}.get(phase, 0.1)))

        program = ArcProgram(
            problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock, tell=tell
        )
        build_seconds = clock.seconds
        answer = program.solve(Total(), integral=True)
        if answer is None or not answer.found:
            return without_plan(problem, clock, build_seconds, meta={"solver": "highs", "highspy": version("highspy")})
        solution = solution_of(answer, {"name": "total"}, clock, build_seconds)
        if solution.status == Status.LIMIT_WITHOUT_PLAN:
            return without_plan(problem, clock, build_seconds, meta=dict(solution.meta))
        report(Progress("rounding", 1.0, solution.value, solution.bound, solution.gap))
        return solution


def solution_of(answer: ArcAnswer, wish: dict[str, Any], clock: Clock, build_seconds: float) -> Solution:
    """A plan of `ArcProgram` with its one proof as a Solution."""
    # where there are prices they prove the bound whatever came first; without them only the limit explains the end
    priced = bool(np.isfinite(answer.bound))
    if answer.feasible:
        status = Status.OPTIMAL if answer.proven and priced else Status.FEASIBLE_AT_LIMIT
    else:
        status = Status.INFEASIBLE if answer.proven and priced else Status.LIMIT_WITHOUT_PLAN
    proof = answer.proof(wish)
    return Solution(
        status=status,
        pairs=frozen(answer.pairs),
        value=proof.value,
        bound=proof.bound,
        gap=proof.gap,
        submission_prices=proof.submission_prices,
        reviewer_prices=proof.reviewer_prices,
        unfilled=frozen(answer.unfilled),
        below_min=frozen(answer.below_min),
        penalty=proof.penalty,
        rounds=int(answer.meta["rounds"]),
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta={"solver": "highs", "highspy": version("highspy"), **answer.meta},
        proofs=(proof,),
        rule_shortfall=answer.rule_shortfall,
    )
