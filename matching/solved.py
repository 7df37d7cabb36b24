"""The solve stage that all doors share: solver, then audit; nothing unaudited leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from matching.constraints.problem import AssignmentProblem
from matching.explain.resolves import Resolves
from matching.objectives import Wish
from matching.params import Params
from matching.plan.audit import AuditReport, require_clean
from matching.scores.fan import sweeping
from matching.solvers.base import Progress, ProgressCallback, Solution
from matching.solvers.choose import solve
from matching.solvers.clock import Clock
from matching.solvers.pricing import without_plan
from matching.solvers.start import Start

__all__ = ["SCORES_SHARE", "nothing_solved", "resolves_of", "solve_audited"]

SCORES_SHARE = 0.1  # of a run's progress; the solve stage goes on from there


def solve_audited(
    problem: AssignmentProblem,
    wishes: Sequence[Wish],
    params: Params,
    progress: ProgressCallback | None,
    start: Start | None = None,
    executor: Executor | None = None,
) -> tuple[Solution, AuditReport]:
    """What the solver of choice finds within the limits of `params`, with the audit of it.

    Raises
    ------
    SolverRangeError, SolverError
        No usable answer.
    AuditError
        The answer contradicts the problem.
    """
    with sweeping(executor):
        solution = solve(
            problem, wishes, candidates=params.candidates, rng=params.rng, time_limit=params.time_limit,
            progress=_scaled(progress, SCORES_SHARE, 0.9), start=start,
        )  # fmt: skip
        if progress is not None:
            progress(Progress("audit", 0.92, solution.value, solution.bound, solution.gap))
        report = require_clean(problem, solution, wishes)
    return replace(solution, stages={**solution.stages, "audit": report.seconds}), report


def nothing_solved(problem: AssignmentProblem) -> tuple[Solution, AuditReport]:
    """What is to be said of a problem that no solver has seen: no plan, nothing proven."""
    solution = without_plan(problem, Clock(None), 0.0)
    return solution, require_clean(problem, solution)


def resolves_of(params: Params, seconds: float | None) -> Resolves:
    """Solving again for diagnosis and shadow prices, within what is left of the time limit."""

    def again(problem: AssignmentProblem, wish: Wish, limit: float) -> Solution:
        return solve(problem, (wish,), candidates=params.candidates, rng=params.rng, time_limit=limit)

    return Resolves(again, seconds)


def _scaled(progress: ProgressCallback | None, low: float, high: float) -> ProgressCallback | None:
    """The solver's own 0..1 as a share of the whole run."""
    if progress is None:
        return None
    return lambda report: progress(replace(report, fraction=low + (high - low) * report.fraction))
