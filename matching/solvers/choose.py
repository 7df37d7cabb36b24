"""What is wanted -> who solves it. A chair never chooses a solver."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Wish
from matching.scores.fan import sweeping
from matching.solvers.base import ProgressCallback, Solution
from matching.solvers.clock import Clock
from matching.solvers.concave import WelfareSolver
from matching.solvers.envy import EnvySolver
from matching.solvers.lexicographic import StackSolver
from matching.solvers.milp import RuleSolver
from matching.solvers.networked import NetworkSolver
from matching.solvers.perturbed import PerturbedSolver
from matching.solvers.pricing import PricingSolver
from matching.solvers.randomised import RandomisedSolver
from matching.solvers.robust import RobustSolver
from matching.solvers.start import START, Start, changes_of
from matching.solvers.units import in_unit, in_words, restored, unit_of

__all__ = ["solve"]


def solve(
    problem: AssignmentProblem,
    wishes: Sequence[Wish],
    *,
    candidates: int = 16,
    rng: int = 0,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    start: Start | None = None,
    executor: Executor | None = None,
) -> Solution:
    """The best plan for a stack of wishes, each within the allowed loss of those before it.

    Parameters
    ----------
    wishes : sequence of Wish
        As `matching.objectives.parse_objective` gives them, at least one.
    candidates : int
        First candidates per submission and per reviewer. Changes the time, not the value.
    rng, time_limit, progress
        As for every Solver.
    start : Start or None
        An earlier plan of the problem's shape. The total without rules begins from it, and of the plans that tie keeps
        most of it; everything else is solved as without it. `meta` says under "start" whether and why, and how many
        pairs the two plans share.
    executor : Executor or None
        Computes the sweeps over all pairs; see `matching.scores.fan.sweeping`.

    Raises
    ------
    SolverRangeError, SolverError
        The solver cannot represent the numbers or gave no answer.
    """
    with sweeping(executor):
        unit = unit_of(problem, wishes)
        if unit == 1.0:
            found = _as_asked(_chosen(problem, wishes, candidates, rng, time_limit, progress, start), wishes)
        else:
            theirs, begun = in_unit(problem, wishes, unit), None if start is None else start.times(1.0 / unit)
            found = _chosen(*theirs, candidates, rng, time_limit, in_words(progress, unit), begun)
            found = restored(found, wishes, unit)
    return found if start is None else _told(found, problem, start)


def _told(solution: Solution, problem: AssignmentProblem, start: Start) -> Solution:
    """The solution with what became of its start."""
    changes = changes_of(start, solution.pairs, problem.shape)
    reason = "only the total without rules is solved from an earlier plan"
    facts = {
        **solution.meta.get(START, {"used": False, "reason": reason}),
        "hash": start.digest(),
        "kept": changes.kept,
        "added": len(changes.added),
        "removed": len(changes.removed),
    }
    return replace(solution, meta={**solution.meta, START: facts})


def _as_asked(solution: Solution, wishes: Sequence[Wish]) -> Solution:
    """Proofs that name the wish as it was asked: solvers of one wish know nothing of a loss allowed to it."""
    losses = {wish.name: wish.loss for wish in wishes if wish.loss}
    if not losses:
        return solution
    proofs = tuple(
        replace(proof, wish={**proof.wish, "loss": losses[str(proof.wish["name"])]})
        if str(proof.wish["name"]) in losses
        else proof
        for proof in solution.proofs
    )
    return replace(solution, proofs=proofs)


def _chosen(
    problem: AssignmentProblem,
    wishes: Sequence[Wish],
    candidates: int,
    rng: int,
    time_limit: float | None,
    progress: ProgressCallback | None,
    start: Start | None,
) -> Solution:
    first, options = wishes[0].name, wishes[0].options
    if len(wishes) > 1 or first in ("maximin", "leximin", "threshold", "evenness"):
        return StackSolver(candidates).solve(problem, wishes, rng=rng, time_limit=time_limit, progress=progress)
    if first == "welfare":
        return WelfareSolver(options["alpha"], candidates).solve(
            problem, rng=rng, time_limit=time_limit, progress=progress
        )
    if first == "randomised":
        return RandomisedSolver(options["cap"], candidates).solve(
            problem, rng=rng, time_limit=time_limit, progress=progress
        )
    if first == "perturbed":
        return PerturbedSolver(options["beta"], options["cap"], candidates).solve(
            problem, rng=rng, time_limit=time_limit, progress=progress
        )
    if first == "robust":
        return RobustSolver(options["standard_error"], options["radius"], candidates).solve(
            problem, rng=rng, time_limit=time_limit, progress=progress
        )
    if first == "envy":
        return EnvySolver(candidates).solve(problem, rng=rng, time_limit=time_limit, progress=progress)
    if problem.rules:
        clock = Clock(time_limit)
        found = NetworkSolver(candidates).solve(problem, rng=rng, time_limit=time_limit, progress=progress)
        if found is not None:
            return found
        return RuleSolver(candidates).solve(problem, rng=rng, time_limit=clock.left, progress=progress)
    return PricingSolver(candidates).solve(problem, rng=rng, time_limit=time_limit, progress=progress, start=start)
