"""The doors for score matrices: `assign` for one plan, `tradeoff` for all plans between two objectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from matching.constraints.attributes import Attributes
from matching.constraints.held import RoleDemand, lock_faults
from matching.constraints.problem import AssignmentProblem
from matching.constraints.rules import compile_rules
from matching.errors import InvalidParamsError, InvalidProblemError, Issue
from matching.objectives import Wish, parse_objective
from matching.pairs import PairSet
from matching.params import Params
from matching.plan.audit import require_clean
from matching.prepared import wishes_of_shape
from matching.rules.language import parse_rules
from matching.scores.base import ScoreOperator
from matching.solved import solve_audited
from matching.solvers.base import Solution
from matching.solvers.start import Start
from matching.solvers.tradeoff import TradeoffPoint
from matching.solvers.tradeoff import tradeoff as trade

__all__ = ["assign", "tradeoff"]


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
    problem = _problem(
        scores, rules, submission_attributes, reviewer_attributes, demand=demand, load_max=load_max, load_min=load_min,
        conflicts=conflicts, locks=locks, unwanted=unwanted,
    )  # fmt: skip
    begun = None if start is None else Start.of(start, problem.shape)
    return solve_audited(problem, wishes_of_shape(wishes, problem.shape), params, None, begun, executor)[0]


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
    problem = _problem(
        scores, rules, submission_attributes, reviewer_attributes, demand=demand, load_max=load_max, load_min=load_min,
        conflicts=conflicts, locks=locks, unwanted=unwanted,
    )  # fmt: skip
    curve = trade(problem, near[0], far[0], points=points, losses=losses, rng=seed, time_limit=time_limit)
    for point in curve:
        require_clean(problem, point.solution, point.wishes)
    return curve


def _seed(rng: int | np.random.Generator) -> int:
    seed = rng.integers(2**63) if isinstance(rng, np.random.Generator) else rng
    return int(seed) if isinstance(seed, np.integer) else seed


def _problem(
    scores: ArrayLike | ScoreOperator,
    rules: Sequence[Mapping[str, Any]],
    submissions: Mapping[str, Sequence[Any]] | None,
    reviewers: Mapping[str, Sequence[Any]] | None,
    **limits: Any,
) -> AssignmentProblem:
    """The problem with rules compiled into it; `limits` are those of `AssignmentProblem.of`."""
    problem = AssignmentProblem.of(scores, **limits)
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
