"""The two front doors, `recommend` and `assign`: the one place that knows the order of things."""

from __future__ import annotations

import hashlib
import json
import logging
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from matching.constraints.attributes import Attributes
from matching.constraints.conflicts import AFFILIATION, Conflicts
from matching.constraints.held import RoleDemand, lock_faults
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows, RoleScores
from matching.constraints.rules import compile_rules
from matching.errors import InvalidParamsError, InvalidProblemError, InvalidVenueError, Issue
from matching.explain.capacity import capacities, in_all
from matching.explain.diagnosis import diagnose, named, shortages
from matching.explain.evidence import parts_of_pairs
from matching.explain.exclusions import Exclusions
from matching.explain.explanation import Explanation, Reasoner
from matching.explain.names import Names
from matching.explain.pair import Explainer
from matching.explain.readiness import Readings, address_notices, fit_notices, profile_notices, text_notices
from matching.explain.resolves import Resolves
from matching.explain.shadow import shadow_prices
from matching.foreseen import need_of_run
from matching.memory import require
from matching.notices import Notice
from matching.objectives import Wish, parse_objective
from matching.pairs import PairSet
from matching.params import Params
from matching.plan.alternates import rank_alternates
from matching.plan.audit import AuditReport, require_clean
from matching.plan.moves import changes_notice, checked_start, moves_of, start_hash, start_of
from matching.plan.plan import Alternate, Assignment, AssignmentPlan, Certificate, plain
from matching.plan.record import proofs_of, shortfalls_of, wish_in_words
from matching.plan.report import report_of
from matching.prepared import prepare, problem_of, wishes_by_id, wishes_of_shape, wishes_with_evidence
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.roles import in_words
from matching.rules.language import parse_rules
from matching.scores.affinity import affinity_of, signals_of, unscored_affinity
from matching.scores.base import ScoreOperator
from matching.scores.fan import sweeping
from matching.scores.operator import AffinityOperator
from matching.scores.text import AUTO, known_scorer, named_scorer
from matching.solvers.base import Progress, ProgressCallback, Solution, Status
from matching.solvers.choose import solve
from matching.solvers.oracle import Clock
from matching.solvers.pricing import without_plan
from matching.solvers.start import START, Start
from matching.solvers.tradeoff import TradeoffPoint
from matching.solvers.tradeoff import tradeoff as trade
from matching.types import IntArray

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

SCORES_SHARE = 0.1  # of a run's progress
LEAST_SECONDS = 1e-9  # handed to a solver when a run's time is up; it takes no 0
REASONS_LIMIT = 50_000  # plans above this many pairs carry parts but no sentences, and say so
LISTED = 50  # ids named in one notice; counts are always complete


def assign(
    scores: ArrayLike | sparse.sparray | sparse.spmatrix | ScoreOperator,
    *,
    demand: ArrayLike,
    load_max: ArrayLike,
    load_min: ArrayLike | None = None,
    conflicts: ArrayLike | None = None,
    locks: ArrayLike | None = None,
    objective: str | Mapping[str, Any] | Sequence[Any] | Wish = "total",
    rules: Sequence[Mapping[str, Any]] = (),
    submission_attributes: Mapping[str, Sequence[Any]] | None = None,
    reviewer_attributes: Mapping[str, Sequence[Any]] | None = None,
    unwanted: ArrayLike | None = None,
    rng: int | np.random.Generator = 0,
    time_limit: float | None = None,
    start: Solution | Start | None = None,
    executor: Executor | None = None,
) -> Solution:
    """The best assignment for a score matrix, proven and audited.

    Parameters
    ----------
    scores : array_like, scipy.sparse array or ScoreOperator, shape (n_submissions, n_reviewers)
        Affinities, any real unit, higher is better; negative ones are allowed. A row is a submission. Arrays
        must be finite; entries a sparse array does not store are 0; an operator may give NaN for pairs that
        must not be used. Not modified.
    demand : int or array_like of shape (n_submissions,)
        Reviews each submission needs, exactly; 0 for none.
    load_max : int or array_like of shape (n_reviewers,)
        Most reviews each reviewer takes; 0 for none.
    load_min : int or array_like of shape (n_reviewers,), optional
        Fewest reviews each reviewer takes; a hard bound. Default 0.
    conflicts : array_like of int, shape (n, 2), optional
        (submission, reviewer) pairs that are never assigned, whatever the scores.
    locks : array_like of int, shape (n, 2), optional
        Pairs that are kept; they count toward demand and load.
    objective : str, mapping or list of those
        What is maximised: "total" (the sum of the scores), "welfare", "maximin", "leximin", "threshold", "envy",
        "randomised", "perturbed", "robust", "evenness"; with options ``{"name": "welfare", "alpha": 1.0}``; a list
        stacks them in order of importance, each within the ``loss`` allowed to it. See `matching.objectives.Wish`.
    rules : sequence of mapping
        Rules in the language of `matching.rules.language`, such as
        ``{"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1}``.
    submission_attributes, reviewer_attributes : mapping of str to sequence, optional
        What rules speak of: attribute -> one entry a row or column, a value, a list of values or None.
    unwanted : array_like of int, shape (n, 2), optional
        Pairs the reviewer has said no to; lawful, and among equally good plans spread over people.
    rng : int or numpy.random.Generator
        Seed of every choice among equals; equal input and seed give the equal plan.
    time_limit : float, optional
        Seconds, checked between steps.
    start : Solution or Start, optional
        An earlier plan to begin from, in the rows and columns of now (`matching.Start.by_id` carries one over). The
        result is as good as without it and its proof is new, whatever the start holds: barred pairs and prices that
        fit nothing only cost time. For "total" without rules a small change is found in a fraction of the time, and
        of the full plans that tie the one that keeps most pairs is chosen. Everything else is solved as without it.
        ``.meta["start"]`` says whether it was used or why not, its hash, and how many pairs were kept.
    executor : concurrent.futures.Executor, optional
        Computes what is computed for all pairs: threads, processes or a cluster; see `matching.scores.fan.sweeping`.
        None for a thread a core. The plan is the same to the last bit.

    Returns
    -------
    Solution
        ``.status`` "optimal", "infeasible" (the fullest plan, with `unfilled` and `below_min`),
        "feasible_at_limit" or "limit_without_plan"; ``.pairs`` int64 of shape (n, 2); ``.value``, ``.bound``,
        ``.gap`` in the unit of the first objective; ``.submission_prices``, ``.reviewer_prices`` float64;
        ``.unfilled`` int64; ``.proofs`` one for each objective; ``.probabilities`` scipy.sparse of shape
        (n_submissions, n_reviewers) for the randomised ones, of which ``.pairs`` is a draw; under rules ``.mixture``,
        the lawful plans that are drawn from, each with its chance.

    Raises
    ------
    InvalidScoresError, InvalidProblemError, InvalidParamsError
        Every fault in the input, listed in ``issues``.
    SolverError
        No usable answer; never raised for "infeasible".
    AuditError
        The solver's answer contradicts the input; it is not handed out.

    Notes
    -----
    Exact over all pairs by min-cost flow and pricing (`matching.solvers.pricing`), then checked by
    `matching.plan.audit`, which uses no solver. Time grows with the pairs swept, memory with the pairs near
    the optimum; a dense matrix is used where it lies.

    Several roles are stacked by hand: a row for each role and submission, a column for each person, ``demand`` by row,
    and people on rows of a role they do not have among the ``conflicts``. ``{"rule": "no_shared_reviewers", "each":
    "paper"}``, with the submission of each row as the attribute "paper", keeps people from having two roles on one;
    load limits then are of all roles of a person together. `recommend` does all of it for ``Params.roles``.

    Examples
    --------
    >>> import matching
    >>> solution = matching.assign([[0.9, 0.2], [0.5, 0.4]], demand=1, load_max=1)
    >>> solution.pairs.tolist(), solution.value, solution.gap
    ([[0, 0], [1, 1]], 1.3, 0.0)
    """
    wishes = parse_objective(objective)
    params = Params(rng=_seed(rng), time_limit=time_limit)
    problem = AssignmentProblem.of(
        scores, demand=demand, load_max=load_max, load_min=load_min, conflicts=conflicts, locks=locks,
        unwanted=unwanted,
    )  # fmt: skip
    problem = _ruled(problem, rules, submission_attributes, reviewer_attributes)
    begun = None if start is None else Start.of(start, problem.shape)
    return _solve(problem, wishes_of_shape(wishes, problem.shape), params, None, begun, executor)[0]


def tradeoff(
    scores: ArrayLike | sparse.sparray | sparse.spmatrix | ScoreOperator,
    first: str | Mapping[str, Any] | Wish = "total",
    second: str | Mapping[str, Any] | Wish = "maximin",
    *,
    demand: ArrayLike,
    load_max: ArrayLike,
    load_min: ArrayLike | None = None,
    conflicts: ArrayLike | None = None,
    locks: ArrayLike | None = None,
    rules: Sequence[Mapping[str, Any]] = (),
    submission_attributes: Mapping[str, Sequence[Any]] | None = None,
    reviewer_attributes: Mapping[str, Sequence[Any]] | None = None,
    unwanted: ArrayLike | None = None,
    points: int = 9,
    losses: Sequence[float] | None = None,
    rng: int | np.random.Generator = 0,
    time_limit: float | None = None,
) -> list[TradeoffPoint]:
    """The whole curve between two objectives: from the best for `first` to the best for `second`, a plan at each point.

    Parameters
    ----------
    first : str, mapping or Wish
        "total", "welfare", "maximin" or "threshold".
    second : str, mapping or Wish
        One of those, or "evenness".
    points : int
        2 to 1000: the two ends, and losses of `first` between them evenly spaced.
    losses : sequence of float, optional
        Instead of `points`: shares of the best value of `first` that may be given away, each in [0, 1).
    scores, demand, load_max, load_min, conflicts, locks, rules, submission_attributes, reviewer_attributes
        As for `assign`.
    unwanted, rng
        As for `assign`.
    time_limit : float, optional
        Seconds for the whole curve.

    Returns
    -------
    list of TradeoffPoint
        ``.loss``, ``.first`` and ``.second`` with value, bound and gap, ``.solution``, and ``.wishes``, the stack it
        answers and was audited for. Fewer than asked
        for where the limit came first or the two ends are one plan; empty where there is no full plan.

    Raises
    ------
    InvalidScoresError, InvalidProblemError, InvalidParamsError, SolverError, AuditError
        As for `assign`.

    Examples
    --------
    >>> import matching
    >>> scores = [[0.9, 0.8], [0.8, 0.1]]
    >>> curve = matching.tradeoff(scores, "total", "maximin", demand=1, load_max=1, points=2)
    >>> [(point.first.value, point.second.value) for point in curve]
    [(1.6, 0.8)]
    """
    near, far = parse_objective(first), parse_objective(second)
    if len(near) > 1 or len(far) > 1:
        reason = "is one objective, not a list"
        raise InvalidParamsError(issues=[Issue(reason, "wrong-type", "first" if len(near) > 1 else "second")])
    seed = Params(rng=_seed(rng), time_limit=time_limit).rng
    problem = AssignmentProblem.of(
        scores, demand=demand, load_max=load_max, load_min=load_min, conflicts=conflicts, locks=locks,
        unwanted=unwanted,
    )  # fmt: skip
    problem = _ruled(problem, rules, submission_attributes, reviewer_attributes)
    curve = trade(problem, near[0], far[0], points=points, losses=losses, rng=seed, time_limit=time_limit)
    for point in curve:
        require_clean(problem, point.solution, point.wishes)
    return curve


def _seed(rng: int | np.random.Generator) -> int:
    seed = rng.integers(2**63) if isinstance(rng, np.random.Generator) else rng
    return int(seed) if isinstance(seed, np.integer) else seed


def _ruled(
    problem: AssignmentProblem,
    rules: Sequence[Mapping[str, Any]],
    submissions: Mapping[str, Sequence[Any]] | None,
    reviewers: Mapping[str, Sequence[Any]] | None,
) -> AssignmentProblem:
    """The problem with rules compiled into it; itself where there is nothing to compile or to check."""
    if not rules and submissions is None and reviewers is None:
        return problem
    attributes = Attributes.of_columns(
        demand=problem.demand, load_max=problem.load_max, load_min=problem.load_min,
        submissions=submissions, reviewers=reviewers,
    )  # fmt: skip
    made = compile_rules(parse_rules(rules), attributes, barred=problem.barred)
    barred = PairSet.of_table(problem.barred.table() + made.barred.table())
    locks = PairSet(np.concatenate([problem.locked, made.locks]), problem.shape, "locks").pairs()
    issues = lock_faults(
        locks, barred, [RoleDemand(slice(0, problem.shape[1]), problem.demand)], made.load_max,
        (attributes.submissions.ids, attributes.reviewers.ids),
        lambda row, col: ["conflicts"] * int(problem.barred.contains(np.array([row]), np.array([col]))[0]), made,
    )  # fmt: skip
    if issues:
        raise InvalidProblemError(issues=issues)
    return AssignmentProblem.of(
        problem.scores,
        demand=problem.demand,
        load_max=made.load_max,
        load_min=made.load_min,
        conflicts=barred,
        locks=locks,
        rules=made.bounds,
        unwanted=problem.unwanted,
    )


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
    params, start = _checked(venue, params), checked_start(start)
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
        names = _names(resolved, conflicts)
        begun = None if start is None else start_of(start, names.submissions, names.reviewers)
        wishes = wishes_with_evidence(wishes_by_id(params.wishes, resolved), resolved, affinity)
        executor = None if resources is None else resources.executor
        solution, audit = _solve(problem, wishes, hurried, progress, begun, executor)
    else:
        solution = without_plan(problem, Clock(None), 0.0)
        audit = require_clean(problem, solution)
    tell(Progress("report", 0.97, solution.value, solution.bound, solution.gap))
    if in_time:
        notices = _notices(resolved, conflicts, affinity.summary(), Readings.of(resolved, affinity))
    else:  # no text is read after the limit
        notices = [*resolved.notices, *conflicts.notices, _limit_notice(params)]
    plan = _plan(resolved, conflicts, affinity, problem, solution, audit, params, notices, _resolves(params, left()))
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
        [(pair.submission, pair.reviewer) for pair in plan.assignments],
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
    params = _checked(venue, params)
    resolved, conflicts, bounds = prepare(venue, params)
    affinity = unscored_affinity(resolved, params)
    problem = problem_of(resolved, conflicts, bounds, affinity)
    solution, notices = without_plan(problem, Clock(None), 0.0), [*resolved.notices, *conflicts.notices, why]
    audit = require_clean(problem, solution)
    return _plan(resolved, conflicts, affinity, problem, solution, audit, params, notices, _resolves(params, 0.0))


def explanation(
    venue: Venue,
    params: Params | None,
    plan: AssignmentPlan,
    submission: str,
    reviewer: str | None = None,
    *,
    resources: Resources | None = None,
) -> Explanation:
    """Why a plan gives a submission its reviewers: evidence, ranks, and why better-placed people are not on it.

    Parameters
    ----------
    venue : Venue
        What the plan was made from; where it has changed since, the explanation says so.
    params : Params or None
        None takes those that stand in the plan.
    plan : AssignmentPlan
    submission : str
        Id.
    reviewer : str, optional
        Id, alias or address of somebody to explain as well, assigned or not.
    resources : Resources, optional
        As for `recommend`.

    Returns
    -------
    Explanation
        Affinities, ranks and evidence are computed anew from `venue`; loads and prices are the plan's.

    Raises
    ------
    UnknownIdError
        ``unknown-id``: no submission or nobody in the run has the name.
    InvalidVenueError, InvalidParamsError, MissingExtraError, InvalidFileError
        As `recommend` would.
    """
    return reasoner(venue, params, plan, resources=resources).explain(submission, reviewer)


def reasoner(
    venue: Venue, params: Params | None, plan: AssignmentPlan, *, resources: Resources | None = None
) -> Reasoner:
    """What `explanation` asks, for many questions about one plan: the venue is scored once.

    Raises
    ------
    InvalidVenueError, InvalidParamsError, MissingExtraError, InvalidFileError
        As `recommend` would.
    """
    params = _checked(venue, Params.from_mapping(plan.provenance.get("params", {})) if params is None else params)
    notes = []
    made_from = plan.provenance.get("input_hash")
    if made_from is not None and made_from != input_hash(venue, params):
        notes.append("the venue or the options have changed since this plan was made; affinities are those of now")
    made_by = (plan.provenance.get("text") or {}).get("scorer")
    if params.scorer == AUTO and made_by is not None:
        params = replace(params, scorer=made_by)  # what "auto" was on the machine that made the plan
    resolved, conflicts, bounds = prepare(venue, params)
    affinity = affinity_of(resolved, params, vectorizer=named_scorer(params.scorer, resources))
    problem = problem_of(resolved, conflicts, bounds, affinity)
    return Reasoner(resolved, conflicts, affinity, problem, plan, tuple(notes))


def readiness(venue: Venue, params: Params | None = None) -> dict[str, Any]:
    """What is missing or odd before a run, without scoring a text.

    Returns
    -------
    dict
        ``ready`` : bool, False where counting alone shows that no full plan exists.
        ``counts`` : dict of str to int.
        ``items`` : list of Notice.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        As `recommend` would.
    """
    params = _checked(venue, params)
    resolved, conflicts, bounds = prepare(venue, params)
    readings = Readings.of(resolved)
    signals = signals_of(resolved, params, readings.readable_pairs)
    need = need_of_run(resolved, conflicts, bounds, params, known_scorer(params.scorer))
    places, blank = RoleRows.of(resolved), _Blank(resolved.shape)
    problem = AssignmentProblem.of(
        blank if places.plain else RoleScores(blank, places), demand=resolved.role_demand.ravel(),
        load_max=resolved.load_max, load_min=resolved.load_min, conflicts=places.pair_set(conflicts.pairs),
        locks=places.pairs(resolved.locks),
    )  # fmt: skip
    names = _names(resolved, conflicts)
    items = _notices(resolved, conflicts, signals, readings)
    by_role = capacities(problem, names)
    capacity = in_all(by_role)
    ready = True
    for at, (role, part) in enumerate(by_role):
        told = {} if role is None else {"role": role}
        if part["shortfall"]:
            ready = False
            items.insert(0, Notice("too-little-load", part["sentence"], data={**part, **told}))
        least = int(resolved.load_min[places.columns(at)].sum())
        if least > part["needed"]:
            ready = False
            what = "load_min" if role is None else f"load_min of {in_words(role)}"
            items.insert(
                0,
                Notice(
                    "load-min-too-high",
                    f"{what} asks for {least} reviews in all, the submissions need {part['needed']}.",
                    data={"load_min": least, "needed": part["needed"], **told},
                ),
            )
    for entry in shortages(problem, names):
        ready = False
        excluded = "; ".join(f"{who['reviewer']}: {', '.join(who['reasons'])}" for who in entry["excluded"][:8])
        items.insert(
            0,
            Notice(
                "too-few-eligible",
                f"{named(entry)} needs {entry['demand']}, has {entry['eligible']} eligible"
                + (f" ({excluded})." if excluded else "."),
                (entry["submission"],),
                tuple(who["reviewer"] for who in entry["excluded"]),
                entry,
            ),
        )
    return {
        "ready": ready,
        "counts": {
            "submissions": resolved.shape[0],
            "reviewers": resolved.shape[1],
            "reviews_needed": capacity["needed"],
            "reviews_available": capacity["available"],
            "conflicts": len(conflicts.pairs),
            "bids": len(resolved.venue.bids),
            "locks": len(resolved.locks),
            "reviewers_without_evidence": len(_without_evidence(resolved, readings)),
            "submissions_without_text": len(_without_text(resolved, readings)),
            "memory_mb": ceil(need.total / 1e6),
        },
        "items": items,
    }


def exclusions(venue: Venue, params: Params | None = None) -> Exclusions:
    """Who cannot be assigned where, and why, without scoring a text.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        As `recommend` would.
    """
    params = _checked(venue, params)
    resolved, conflicts, _bounds = prepare(venue, params)
    return Exclusions(resolved, conflicts, params)


def _checked(venue: Venue, params: Params | None) -> Params:
    """`params` or the defaults; other types are refused by name before they fail somewhere deep."""
    if not isinstance(venue, Venue):
        raise InvalidVenueError(f"the venue must be a matching.Venue, not {type(venue).__name__}")
    if params is not None and not isinstance(params, Params):
        raise InvalidParamsError(f"params must be matching.Params, not {type(params).__name__}")
    return params or Params()


def input_hash(venue: Venue, params: Params) -> str:
    """SHA-256 over what a plan is made from, as 64 hexadecimal digits; the order of records changes nothing.

    The time limit is left out: it says how long a run may take, not which plan is wanted, and servers add their own.
    """

    def canonical(value: Any) -> Any:
        return json.dumps(plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=repr)

    digest = hashlib.sha256()
    for records in (venue.reviewers, venue.submissions, venue.bids, venue.conflicts, venue.locks):
        for line in sorted(canonical(_unordered(_fields(record))) for record in records):
            digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
        digest.update(b"\x1d")
    for table in sorted(venue.scores, key=lambda entry: entry.name):
        rows = sorted(zip(table.submissions, table.reviewers, table.values.tolist()))
        digest.update(canonical([table.name, table.default, rows]).encode("utf-8", "surrogatepass") + b"\x1d")
    for line in sorted(map(canonical, venue.rules)):
        digest.update(line.encode("utf-8", "surrogatepass") + b"\n")
    rest = [venue.demand, venue.load_max, venue.load_min, dict(venue.domain_aliases), sorted(venue.free_mail)]
    wanted = {name: value for name, value in params.to_dict().items() if name != "time_limit"}
    digest.update(canonical([rest, wanted]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _unordered(record: Any) -> Any:
    """A record's fields with those lists sorted whose order says nothing; areas and authors keep theirs."""
    for name in ("publications", "emails", "aliases", "keywords", "affiliations", "conflict_domains"):
        if isinstance(record.get(name), list):
            record[name] = sorted(
                record[name], key=lambda entry: json.dumps(plain(entry), sort_keys=True, default=repr)
            )
    return record


def _fields(record: Any) -> Any:
    """A record as plain dicts; read-only mappings inside it cannot be deep-copied, so fields are walked by hand."""
    if hasattr(record, "__dataclass_fields__"):
        return {name: _fields(getattr(record, name)) for name in record.__dataclass_fields__}
    if isinstance(record, Mapping):
        return {str(key): _fields(value) for key, value in record.items()}
    if isinstance(record, tuple | list):
        return [_fields(value) for value in record]
    return record


class _OutOfTime(Exception):
    """Raised through the progress of the scorers; never leaves this module."""


def _limit_notice(params: Params) -> Notice:
    return Notice(
        "limit-while-scoring",
        f"the time limit of {params.time_limit:g} seconds came while texts were being scored, so nothing was solved. "
        "Vectors that were made are kept where there is a cache, and the next run goes on from them.",
        data={"time_limit": params.time_limit},
    )


class _Blank(ScoreOperator):
    """Scores of 0 for every pair: counting needs no scores."""

    may_be_unknown = False

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def block(self, rows: slice, cols: slice) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.zeros((rows.stop - rows.start, cols.stop - cols.start), dtype=np.float32)

    def values(self, rows: IntArray, cols: IntArray) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.zeros(len(rows))


def _solve(
    problem: AssignmentProblem,
    wishes: Sequence[Wish],
    params: Params,
    progress: ProgressCallback | None,
    start: Start | None = None,
    executor: Executor | None = None,
) -> tuple[Solution, AuditReport]:
    """The solve stage both doors share: solver, then audit; nothing unaudited leaves it."""
    with sweeping(executor):
        solution = solve(
            problem, wishes, candidates=params.candidates, rng=params.rng, time_limit=params.time_limit,
            progress=_scaled(progress, SCORES_SHARE, 0.9), start=start,
        )  # fmt: skip
        if progress is not None:
            progress(Progress("audit", 0.92, solution.value, solution.bound, solution.gap))
        report = require_clean(problem, solution, wishes)
    return replace(solution, stages={**solution.stages, "audit": report.seconds}), report


def _resolves(params: Params, seconds: float | None) -> Resolves:
    """Solving again for diagnosis and shadow prices, within what is left of the time limit."""

    def again(problem: AssignmentProblem, wish: Wish, limit: float) -> Solution:
        return solve(problem, (wish,), candidates=params.candidates, rng=params.rng, time_limit=limit)

    return Resolves(again, seconds)


def _scaled(progress: ProgressCallback | None, low: float, high: float) -> ProgressCallback | None:
    """The solver's own 0..1 as a share of the whole run."""
    if progress is None:
        return None
    return lambda report: progress(replace(report, fraction=low + (high - low) * report.fraction))


def _names(resolved: ResolvedVenue, conflicts: Conflicts) -> Names:
    rows = RoleRows.of(resolved)
    of_role = resolved.submissions * len(rows.roles)  # rows are role by role
    count = max(1, rows.n_submissions)
    return Names(
        rows.names([submission.id for submission in resolved.submissions]),
        [reviewer.id for reviewer in resolved.reviewers],
        lambda row, col: [reason.evidence or reason.rule for reason in conflicts.reasons(row % count, col)],
        lambda row, col: all(reason.rule == AFFILIATION for reason in conflicts.reasons(row % count, col)),
        [submission.areas for submission in of_role],
        [reviewer.areas for reviewer in resolved.reviewers],
        None if len(rows.roles) == 1 else rows,
    )


def _plan(
    resolved: ResolvedVenue,
    conflicts: Conflicts,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    audit: AuditReport,
    params: Params,
    notices: list[Notice],
    resolves: Resolves,
) -> AssignmentPlan:
    names = _names(resolved, conflicts)
    signals = affinity.summary()
    with_words = len(solution.pairs) <= REASONS_LIMIT
    if not with_words:
        notices.append(
            Notice(
                "reasons-on-request", f"{len(solution.pairs)} pairs are too many to write reasons for; parts are kept."
            )
        )
    has_plan = solution.status != Status.LIMIT_WITHOUT_PLAN
    missing = int(solution.unfilled.sum() + solution.below_min.sum()) if has_plan else 0
    certificate = Certificate(
        dict(zip(names.submissions, solution.submission_prices.tolist())),
        dict(zip(names.reviewers, solution.reviewer_prices.tolist())),
        solution.penalty,
        missing,
        audit.clean and has_plan,
        tuple(proofs_of(problem, solution, names.submissions, names.reviewers)),
    )
    assignments = _assignments(resolved, affinity, problem, solution, with_words)
    if has_plan:
        notices += fit_notices(resolved, affinity, problem, _best_texts(assignments))
    unfilled: Counter[str] = Counter()
    for row in np.flatnonzero(solution.unfilled).tolist():
        unfilled[resolved.submissions[row % len(resolved.submissions)].id] += int(solution.unfilled[row])
    return AssignmentPlan(
        status=solution.status,
        assignments=assignments,
        alternates=_alternates(resolved, affinity, problem, solution, params) if has_plan else (),
        value=solution.value,
        bound=solution.bound,
        gap=solution.gap,
        unfilled=dict(unfilled),
        certificate=certificate,
        report={
            **report_of(
                problem, solution, names.submissions, names.reviewers, signals, conflicts.counts, RoleRows.of(resolved)
            ),
            "shadow_prices": shadow_prices(problem, solution, params.wishes[0], names, resolves),
        },
        diagnosis=diagnose(problem, solution, names, resolves) if solution.status == Status.INFEASIBLE else {},
        notices=tuple(notices),
        provenance={
            "seed": params.rng,
            "params": params.to_dict(),
            "input_hash": input_hash(resolved.venue, params),
            "versions": _versions(),
            "solver": dict(solution.meta),
            "rounds": solution.rounds,
        },
        objectives=_objectives(params, solution),
        probabilities=_probabilities(solution, resolved),
        rule_shortfalls=tuple(shortfalls_of(problem, solution)),
    )


def _objectives(params: Params, solution: Solution) -> tuple[dict[str, Any], ...]:
    """Each objective with what was reached and proven; a plan without proofs of its own is of one, the total."""
    if not solution.proofs:
        facts = {"value": solution.value, "bound": solution.bound, "gap": solution.gap}
        return ({**wish_in_words(params.wishes[0].to_dict()), **facts},)
    return tuple(
        {**wish_in_words(proof.wish), "value": proof.value, "bound": proof.bound, "gap": proof.gap}
        for proof in solution.proofs
    )


def _probabilities(solution: Solution, resolved: ResolvedVenue) -> tuple[tuple[str, str, float], ...]:
    if solution.probabilities is None:
        return ()
    table, count = solution.probabilities.tocoo(), len(resolved.submissions)
    found = zip(table.coords[0].tolist(), table.coords[1].tolist(), table.data.tolist(), strict=True)
    return tuple(
        sorted((resolved.submissions[row % count].id, resolved.reviewers[col].id, share) for row, col, share in found)
    )


def _assignments(
    resolved: ResolvedVenue,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    with_words: bool,
) -> tuple[Assignment, ...]:
    places = RoleRows.of(resolved)
    cols = solution.pairs[:, 1]
    rows = solution.pairs[:, 0] - places.role_of(cols) * places.n_submissions
    value = np.nan_to_num(affinity.values(rows, cols))
    told = parts_of_pairs(affinity, rows, cols)
    locked = set(map(tuple, problem.locked.tolist()))
    explainer = Explainer(resolved)
    chance: Sequence[float | None] = [None] * len(rows)
    if solution.probabilities is not None:
        chance = np.asarray(solution.probabilities[solution.pairs[:, 0], cols]).ravel().tolist()
    out = []
    for at, (line, col) in enumerate(solution.pairs.tolist()):
        parts, row = told[at], int(rows[at])
        held = (line, col) in locked
        reasons = explainer.reasons(row, col, parts, held) if with_words else ()
        pair = Assignment(
            resolved.submissions[row].id, resolved.reviewers[col].id, float(value[at]), parts, held, reasons,
            chance[at], resolved.reviewers[col].role,
        )  # fmt: skip
        role = line // max(1, places.n_submissions)
        out.append(((pair.submission, role, -pair.affinity, pair.reviewer), pair))
    return tuple(pair for _, pair in sorted(out, key=lambda entry: entry[0]))


def _alternates(
    resolved: ResolvedVenue,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    params: Params,
) -> tuple[Alternate, ...]:
    places = RoleRows.of(resolved)
    # nobody stands in on a submission they are on in another role
    beside = [
        ((row % max(1, places.n_submissions)) + places.n_submissions * resolved.role_of(other), other)
        for row, col in solution.pairs.tolist()
        for other in resolved.other_columns.get(col, ())
    ]
    closed = PairSet(beside, problem.shape) if beside else None
    pairs, score, spare = rank_alternates(problem, solution.pairs, params.n_alternates, closed)
    if not places.plain:
        score = affinity.values(pairs[:, 0] - places.role_of(pairs[:, 1]) * places.n_submissions, pairs[:, 1])
    out, last, rank = [], -1, 0
    for (row, col), value, room in zip(pairs.tolist(), score.tolist(), spare.tolist()):
        rank = rank + 1 if row == last else 1
        last = row
        room = max(0, room)
        role, at = places.place(row)
        found = Alternate(
            resolved.submissions[at].id, resolved.reviewers[col].id, rank, value, room, room == 0, places.roles[role]
        )
        out.append(((at, role), found))
    return tuple(found for _, found in sorted(out, key=lambda entry: entry[0]))


def _best_texts(assignments: Sequence[Assignment]) -> dict[tuple[str, str], float]:
    """Best text affinity among those assigned to a submission in a role, where it is known."""
    best: dict[tuple[str, str], float] = {}
    for pair in assignments:
        for part in pair.parts:
            if part.signal == "text" and part.value is not None:
                key = (pair.submission, pair.role)
                best[key] = max(part.value, best.get(key, part.value))
    return best


def _without_evidence(resolved: ResolvedVenue, readings: Readings) -> list[str]:
    """Ids of people about whom nothing is known: no text, no areas, no imported score."""
    scored = {int(col) for table in resolved.scores for col in np.unique(table.cols)}
    return [
        reviewer.id
        for col, reviewer in enumerate(resolved.reviewers)
        if col not in scored and not reviewer.areas and not readings.documents[col]
    ]


def _without_text(resolved: ResolvedVenue, readings: Readings) -> list[str]:
    return [entry.id for entry, text in zip(resolved.submissions, readings.texts) if not text]


def _notices(
    resolved: ResolvedVenue, conflicts: Conflicts, signals: Sequence[Mapping[str, Any]], readings: Readings
) -> list[Notice]:
    """Everything odd about the input that does not stop a run."""
    out = list(resolved.notices) + list(conflicts.notices)
    has_text = any(signal["name"] == "text" for signal in signals)
    if blank := _without_text(resolved, readings) if has_text else []:
        out.append(
            Notice(
                "unscored-submission",
                f"no usable text in {_count(blank, 'submission')}, which stay unscored: {_list(blank)}.",
                tuple(blank),
            )
        )
    mute = _without_evidence(resolved, readings)
    if mute:
        whole = resolved.shape[1]
        out.append(
            Notice(
                "no-evidence",
                f"evidence for {whole - len(mute)} of {whole} reviewers; none for {_list(mute)}.",
                reviewers=tuple(mute),
                data={"covered": whole - len(mute), "reviewers": whole},
            )
        )
    elif has_text:
        silent = [entry.id for entry, documents in zip(resolved.reviewers, readings.documents) if not documents]
        if silent:
            out.append(
                Notice(
                    "no-text",
                    f"no text speaks for {_count(silent, 'reviewer')}: {_list(silent)}.",
                    reviewers=tuple(silent),
                )
            )
    if has_text:
        out += [*profile_notices(resolved, readings), *text_notices(resolved, readings)]
    out += address_notices(resolved)
    bids = resolved.bids
    ignored = conflicts.pairs.contains(bids.rows, bids.cols)
    for row, col in zip(bids.rows[ignored].tolist(), bids.cols[ignored].tolist()):
        who, what = resolved.reviewers[col].id, resolved.submissions[row].id
        out.append(
            Notice("ignored-bid", f"the bid of {who} on {what} is ignored: the pair is in conflict.", (what,), (who,))
        )
    for signal in signals:
        if signal["pairs"] and not signal["weight"]:
            count, unit = signal["pairs"], signal.get("unit", "pairs")
            out.append(
                Notice(
                    "unused-signal",
                    f"{count} {unit if signal['name'] != 'bids' else 'bids'} present, weight 0: "
                    f"the signal {signal['name']} is not used.",
                    data={"signal": signal["name"], "pairs": count},
                )
            )
    return out


def _list(ids: Sequence[str]) -> str:
    return ", ".join(ids[:LISTED]) + (f" and {len(ids) - LISTED} more" if len(ids) > LISTED else "")


def _count(ids: Sequence[str], one: str) -> str:
    return f"{len(ids)} {one}{'' if len(ids) == 1 else 's'}"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("revmatch", "numpy", "scipy", "scikit-learn", "ortools", "snowballstemmer"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
