"""From a venue and its options to the problem a solver sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matching.constraints.bounds import Bound
from matching.constraints.conflicts import Conflicts, find_conflicts
from matching.constraints.held import RoleDemand, lock_faults
from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows, RoleScores
from matching.constraints.rules import compile_rules
from matching.constraints.venue_attributes import attributes_of_venue
from matching.errors import InvalidParamsError, InvalidVenueError, Issue
from matching.objectives import EVIDENCE, Wish
from matching.params import Params
from matching.profiles.resolve import ResolvedVenue, resolve_venue
from matching.profiles.venue import Venue
from matching.roles import in_words
from matching.rules.language import parse_rules
from matching.rules.values import Rule
from matching.scores.base import ScoreOperator
from matching.scores.jackknife import affinity_errors
from matching.scores.operator import AffinityOperator

__all__ = ["checked", "prepare", "problem_of", "wishes_by_id", "wishes_of_shape", "wishes_with_evidence"]


def checked(venue: Venue, params: Params | None) -> Params:
    """`params` or the defaults; other types are refused by name before they fail somewhere deep."""
    if not isinstance(venue, Venue):
        raise InvalidVenueError(f"the venue must be a matching.Venue, not {type(venue).__name__}")
    if params is not None and not isinstance(params, Params):
        raise InvalidParamsError(f"params must be matching.Params, not {type(params).__name__}")
    return params or Params()


def prepare(venue: Venue, params: Params) -> tuple[ResolvedVenue, Conflicts, tuple[Bound, ...]]:
    """A venue with every reference resolved, who is barred where, and the rules as bounds.

    What rules lock, bar and make of the loads is in the first two. Bounds speak of the rows of the problem.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        Every fault in the input, listed in ``issues``.
    """
    resolved = resolve_venue(venue, params)
    conflicts = find_conflicts(resolved, params)
    rules = (*parse_rules(venue.rules, source="venue", error=InvalidVenueError), *parse_rules(params.rules))
    bounds: tuple[Bound, ...] = ()
    before, made = conflicts, None
    if rules:
        made = compile_rules(rules, attributes_of_venue(resolved), barred=conflicts.pairs)
        conflicts = conflicts.joined(made.bars)
        # solvers break ties by the order of rules, which says no more than that of records
        bounds = tuple(sorted(made.bounds, key=lambda bound: _content(made.rules.get(bound.name))))
        if len(resolved.roles) > 1:
            bounds = RoleRows.of(resolved).bounds(bounds)
        locks = np.unique(np.concatenate([resolved.locks, made.locks]), axis=0)
        resolved = replace(
            resolved, locks=locks, load_max=made.load_max, load_min=made.load_min,
            notices=(*resolved.notices, *made.notices),
        )  # fmt: skip
    ids = [entry.id for entry in resolved.submissions], [entry.id for entry in resolved.reviewers]
    issues = lock_faults(
        resolved.locks, conflicts.pairs, _demands(resolved), resolved.load_max, ids,
        lambda row, col: (reason.evidence for reason in before.reasons(row, col)), made,
    )  # fmt: skip
    issues += [*_two_roles_locked(resolved), *_unclear_rows(resolved)]
    if issues:
        of_run = all(issue.source == "params" for issue in issues)
        raise (InvalidParamsError if of_run else InvalidVenueError)(issues=issues)
    if resolved.in_two_roles:
        bounds = (*bounds, *RoleRows.of(resolved).one_role_each(resolved.in_two_roles, *ids))
    return resolved, conflicts, bounds


def _content(rule: Rule | None) -> tuple[str, ...]:
    """What a rule says, in a form that sorts; its place in the list is no part of it."""
    if rule is None:
        return ()
    options = sorted((name, repr(value)) for name, value in rule.options.items())
    return rule.kind, repr(rule.submissions), repr(rule.reviewers), repr(options), repr(rule.price), rule.name


def _demands(resolved: ResolvedVenue) -> list[RoleDemand]:
    """What each role's people may be held for."""
    rows = RoleRows.of(resolved)
    return [
        RoleDemand(rows.columns(at), resolved.role_demand[at], "" if len(rows.roles) == 1 else f" of {in_words(role)}")
        for at, role in enumerate(rows.roles)
    ]


def _two_roles_locked(resolved: ResolvedVenue) -> list[Issue]:
    """People held in two roles on one submission."""
    columns_of = {col: columns for columns in resolved.in_two_roles for col in columns}
    held = Counter((row, columns_of[col]) for row, col in resolved.locks.tolist() if col in columns_of)
    return [
        Issue(
            f"{' and '.join(resolved.reviewers[col].id for col in columns)} are one person and both locked on "
            f"{resolved.submissions[row].id}; nobody has two roles on one submission",
            "contradiction",
            value=[resolved.submissions[row].id, resolved.reviewers[columns[0]].id],
            source="locks",
        )
        for (row, columns), count in held.items()
        if count > 1
    ]


def _unclear_rows(resolved: ResolvedVenue) -> list[Issue]:
    """Submissions whose id is how a certificate names another submission in another role."""
    ids = [entry.id for entry in resolved.submissions]
    names = Counter(RoleRows.of(resolved).names(ids)) if len(resolved.roles) > 1 else Counter()
    reason = "in a plan of several roles this id stands for the role of another submission; rename one of them"
    return [
        Issue(f"{name}: {reason}", "duplicate-id", "id", value=name, source="submissions")
        for name in ids
        if names[name] > 1
    ]


def problem_of(
    resolved: ResolvedVenue, conflicts: Conflicts, bounds: Sequence[Bound], affinity: ScoreOperator
) -> AssignmentProblem:
    """The problem a solver sees: a row for each submission, or for each role and submission where there are several.

    People's negative bids are the pairs they would rather not have.
    """
    unwanted = np.column_stack([resolved.bids.rows, resolved.bids.cols])[resolved.bids.values < 0]
    rows = RoleRows.of(resolved)
    return AssignmentProblem.of(
        affinity if rows.plain else RoleScores(affinity, rows),
        demand=resolved.role_demand.ravel(),
        load_max=resolved.load_max,
        load_min=resolved.load_min,
        conflicts=rows.pair_set(conflicts.pairs),
        locks=rows.pairs(resolved.locks),
        rules=bounds,
        unwanted=rows.pairs(unwanted),
    )


ERROR = "standard_error"  # of an affinity: where a role's affinities count more, so do their errors
NUMBERS_OF_PAIRS = {"cap": 1.0, ERROR: 0.0}
"""Options that may differ from pair to pair -> what holds where nothing is said."""


def wishes_of_shape(wishes: Sequence[Wish], shape: tuple[int, int]) -> tuple[Wish, ...]:
    """Wishes whose pair numbers fit the matrix."""
    return _with_numbers(
        wishes, lambda value, missing, name: PairNumbers.of(_no_ids(value, name), shape, missing, name)
    )


def wishes_by_id(wishes: Sequence[Wish], resolved: ResolvedVenue) -> tuple[Wish, ...]:
    """Wishes whose pair numbers are looked up by id and speak of the rows of the problem."""
    rows = RoleRows.of(resolved)

    def numbers(value: Any, missing: float, name: str) -> Any:
        if isinstance(value, str) and value == EVIDENCE:
            return value
        if isinstance(value, Mapping):
            given = PairNumbers.by_id(value, resolved.submission_index, resolved.reviewer_index, missing, name)
            given = replace(given, shape=rows.shape, single=rows.table(given.single))
        elif np.ndim(value):
            reason = f"{name} of a venue is one number, or numbers by id: default, reviewers, pairs"
            raise InvalidParamsError(issues=[Issue(reason, "wrong-type", name, source="params")])
        else:
            given = PairNumbers.of(value, rows.shape, missing, name)
        return given if name != ERROR else given.times(rows.weight_of_columns)

    weighted = any(weight != 1.0 for weight in rows.weights)
    return _with_numbers(wishes, numbers, (ERROR,) if weighted else ())


def wishes_with_evidence(
    wishes: Sequence[Wish], resolved: ResolvedVenue, affinity: AffinityOperator
) -> tuple[Wish, ...]:
    """Wishes whose standard errors are those of the evidence, where they ask for it.

    Raises
    ------
    InvalidParamsError
        See `matching.scores.jackknife.affinity_errors`.
    """

    def numbers(value: Any, missing: float, name: str) -> Any:
        if not (isinstance(value, str) and value == EVIDENCE):
            return value
        rows = RoleRows.of(resolved)
        errors = np.tile(affinity_errors(affinity), (len(rows.roles), 1))
        given = PairNumbers.of(errors, rows.shape, missing, name)
        return given.times(rows.weight_of_columns)

    return _with_numbers(wishes, numbers)


def _with_numbers(
    wishes: Sequence[Wish], numbers: Callable[[Any, float, str], Any], always: Sequence[str] = ()
) -> tuple[Wish, ...]:
    """The wishes with numbers of pairs; one number for all is left as it is, but for the options in `always`."""
    out = []
    for wish in wishes:
        found = {
            name: numbers(wish.options[name], missing, name)
            for name, missing in NUMBERS_OF_PAIRS.items()
            if name in wish.options and (name in always or not isinstance(wish.options[name], int | float))
        }
        out.append(replace(wish, options={**wish.options, **found}) if found else wish)
    return tuple(out)


def _no_ids(value: Any, name: str) -> Any:
    if isinstance(value, str) and value == EVIDENCE:
        reason = f"robust needs {name}: the scores of a matrix come without evidence"
        raise InvalidParamsError(issues=[Issue(reason, "missing", f"objective.{name}", source="params")])
    if isinstance(value, Mapping):
        reason = f"{name} by id needs a venue; for a matrix give one number or an array"
        raise InvalidParamsError(issues=[Issue(reason, "wrong-type", name, source="params")])
    return value
