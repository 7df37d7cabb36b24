"""All doors of the engine, and `recommend`: the one place that knows the order of a run over a venue."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from matching.explain.explanation import Reasoner
from matching.explain.names import Names
from matching.explain.oddities import oddities
from matching.explain.readiness import Readings
from matching.foreseen import need_of_run
from matching.matrices import assign, tradeoff
from matching.memory import require
from matching.notices import Notice
from matching.params import Params
from matching.plan.moves import changes_notice, checked_start, moves_of, start_hash, start_of
from matching.plan.plan import AssignmentPlan
from matching.plan.provenance import input_hash
from matching.planned import make_plan
from matching.prepared import checked, prepare, problem_of, wishes_by_id, wishes_with_evidence
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.venue import Venue
from matching.questions import exclusions, explanation, readiness, reasoner
from matching.resources import Resources
from matching.scores.affinity import affinity_of, unscored_affinity
from matching.scores.text import known_scorer, named_scorer
from matching.solved import SCORES_SHARE, nothing_solved, resolves_of, solve_audited
from matching.solvers.base import Progress, ProgressCallback, Solution
from matching.solvers.start import START

__all__ = [
    "assign",
    "exclusions",
    "explanation",
    "input_hash",
    "readiness",
    "reasoner",
    "recommend",
    "tradeoff",
    "unsolved",
]

log = logging.getLogger(__name__)

LEAST_SECONDS = 1e-9  # handed to a solver when a run's time is up; it takes no 0


def recommend(
    venue: Venue,
    params: Params | None = None,
    *,
    progress: ProgressCallback | None = None,
    resources: Resources | None = None,
    explain: Callable[[Reasoner], None] | None = None,
    start: AssignmentPlan | None = None,
) -> AssignmentPlan:
    """From profiles and texts to an audited plan with reasons.

    Parameters
    ----------
    venue : Venue
        Reviewers, submissions, bids, conflicts, imported scores, locks. The order of its records changes
        nothing.
    params : Params, optional
        What is wanted; the defaults if None.
    progress : callable, optional
        Called with a Progress between steps; what it raises stops the run and passes through.
    resources : Resources, optional
        What the run may use: folders, which say where a sentence encoder and its cache lie, and an executor; never
        what is wanted.
    explain : callable, optional
        Called at the end with what explains the pairs of the plan, by the affinities of this very run: nothing has to
        be scored again. Whoever keeps it keeps all vectors and affinities. Not called where the time limit came before
        there were any.
    start : AssignmentPlan, optional
        An earlier plan to begin from, of this venue before people left, submissions came or bids changed; ids tell who
        is who. The new plan is as good as one made without it, and its proof is new. For "total" without rules it is
        found faster, and of the full plans that tie the one that keeps most pairs is chosen; otherwise the start only
        serves for comparison, and a notice says so. ``report["changes"]`` counts what was kept, moved, added and
        removed; the start's hash stands in the provenance.

    Returns
    -------
    AssignmentPlan
        Also where no full plan exists: then ``status`` is "infeasible", the assignments are the fullest plan
        and ``diagnosis`` says why.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        Every fault in the input, listed in ``issues``.
    MissingExtraError, InvalidFileError
        The text scorer that `params` name has no usable weights.
    MemoryLimitError
        ``memory-limit``: the run may need more memory than there is, or than `resources` allows; nothing is begun.
    StorageError
        ``storage-error``: no room in the temporary folder for the affinities of a large venue.
    SolverError, AuditError
        See `assign`.
    """
    params, start = checked(venue, params), checked_start(start)
    tell = progress or (lambda report: None)
    begin = perf_counter()
    tell(Progress("scores", 0.0))
    resolved, conflicts, bounds = prepare(venue, params)

    def left() -> float | None:
        return None if params.time_limit is None else params.time_limit - (perf_counter() - begin)

    def scoring(share: float) -> None:
        if (rest := left()) is not None and rest <= 0:
            raise _OutOfTime
        tell(Progress("scores", SCORES_SHARE * share))

    need = need_of_run(resolved, conflicts, bounds, params, known_scorer(params.scorer, resources))
    require(need, None if resources is None else resources.memory_limit)
    scorer = named_scorer(params.scorer, resources, lambda share: scoring(0.5 * share))
    in_time = True
    try:
        affinity = affinity_of(resolved, params, vectorizer=scorer, progress=scoring)
    except _OutOfTime:
        in_time, affinity = False, unscored_affinity(resolved, params)
    scored = perf_counter()
    problem = problem_of(resolved, conflicts, bounds, affinity)
    if in_time:
        rest = left()  # the limit is one for the whole run; a solver that has none left still says so in its own way
        hurried = replace(params, time_limit=None if rest is None else max(rest, LEAST_SECONDS))
        names = Names.of(resolved, conflicts)
        begun = None if start is None else start_of(start, names.submissions, names.reviewers)
        wishes = wishes_with_evidence(wishes_by_id(params.wishes, resolved), resolved, affinity)
        executor = None if resources is None else resources.executor
        solution, audit = solve_audited(problem, wishes, hurried, progress, begun, executor)
    else:
        solution, audit = nothing_solved(problem)
    tell(Progress("report", 0.97, solution.value, solution.bound, solution.gap))
    if in_time:
        notices = oddities(resolved, conflicts, affinity.summary(), Readings.of(resolved, affinity))
    else:  # no text is read after the limit
        notices = [*resolved.notices, *conflicts.notices, _limit_notice(params)]
    plan = make_plan(
        resolved, conflicts, affinity, problem, solution, audit, params, notices, resolves_of(params, left())
    )
    has_text = any(signal["name"] == "text" and signal["weight"] > 0 for signal in affinity.summary())
    if start is not None:
        plan = _compared(plan, start, resolved, solution)
    provenance = {**plan.provenance, "text": dict(scorer.describe()) if has_text else None}
    seconds = {"scores": scored - begin, **solution.stages, "whole": perf_counter() - begin}
    log.info("plan made: %s, %d pairs, gap %g", solution.status, len(solution.pairs), solution.gap)
    tell(Progress("report", 1.0, solution.value, solution.bound, solution.gap))
    plan = replace(plan, provenance={**provenance, "seconds": seconds})
    if explain is not None and in_time:
        explain(Reasoner(resolved, conflicts, affinity, problem, plan))
    return plan


def _compared(
    plan: AssignmentPlan, start: AssignmentPlan, resolved: ResolvedVenue, solution: Solution
) -> AssignmentPlan:
    """The plan with what it keeps of the one it was started from."""
    changes = moves_of(
        start,
        plan,
        [submission.id for submission in resolved.submissions],
        [reviewer.id for reviewer in resolved.reviewers],
    )
    facts = solution.meta.get(START, {})
    used, reason = bool(facts.get("used")), facts.get("reason") or "the time limit came before it was looked at"
    return replace(
        plan,
        report={**plan.report, "changes": changes},
        notices=(*plan.notices, changes_notice(changes, used, reason)),
        provenance={**plan.provenance, "start": {"hash": start_hash(start), "used": used}},
    )


def unsolved(venue: Venue, params: Params | None, why: Notice) -> AssignmentPlan:
    """The plan of a run that was stopped before it had one: no assignments, nothing proven, nothing scored.

    Parameters
    ----------
    why : Notice
        What stopped it; stands among the plan's notices.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        As `recommend` would.
    """
    params = checked(venue, params)
    resolved, conflicts, bounds = prepare(venue, params)
    affinity = unscored_affinity(resolved, params)
    problem = problem_of(resolved, conflicts, bounds, affinity)
    solution, audit = nothing_solved(problem)
    notices = [*resolved.notices, *conflicts.notices, why]
    return make_plan(resolved, conflicts, affinity, problem, solution, audit, params, notices, resolves_of(params, 0.0))


class _OutOfTime(Exception):
    """Raised through the progress of the scorers; never leaves this module."""


def _limit_notice(params: Params) -> Notice:
    return Notice(
        "limit-while-scoring",
        f"the time limit of {params.time_limit:g} seconds came while texts were being scored, so nothing was solved. "
        "Vectors that were made are kept where there is a cache, and the next run goes on from them.",
        data={"time_limit": params.time_limit},
    )
