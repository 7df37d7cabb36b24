"""What may be asked of a venue or a plan without making a plan: `readiness`, `exclusions`, `explanation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows
from matching.explain.capacity import capacities, in_all
from matching.explain.diagnosis import named, shortages
from matching.explain.exclusions import Exclusions
from matching.explain.explanation import Explanation, Reasoner
from matching.explain.names import Names
from matching.explain.oddities import oddities, without_evidence, without_text
from matching.explain.readiness import Readings
from matching.foreseen import need_of_run
from matching.notices import Notice
from matching.params import Params
from matching.plan.plan import AssignmentPlan
from matching.plan.provenance import input_hash
from matching.prepared import checked, prepare, problem_of
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.roles import in_words
from matching.scores.affinity import affinity_of, signals_of
from matching.scores.base import ScoreOperator
from matching.scores.text import AUTO, known_scorer, named_scorer
from matching.types import FloatArray, IntArray

__all__ = ["exclusions", "explanation", "readiness", "reasoner"]


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
    params = checked(venue, Params.from_mapping(plan.provenance.get("params", {})) if params is None else params)
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
    params = checked(venue, params)
    resolved, conflicts, bounds = prepare(venue, params)
    readings = Readings.of(resolved)
    signals = signals_of(resolved, params, readings.readable_pairs)
    need = need_of_run(resolved, conflicts, bounds, params, known_scorer(params.scorer))
    problem = problem_of(resolved, conflicts, (), _Blank(resolved.shape))
    names = Names.of(resolved, conflicts)
    by_role = capacities(problem, names)
    capacity = in_all(by_role)
    impossible = _impossible(problem, names, RoleRows.of(resolved), by_role)
    return {
        "ready": not impossible,
        "counts": {
            "submissions": resolved.shape[0],
            "reviewers": resolved.shape[1],
            "reviews_needed": capacity["needed"],
            "reviews_available": capacity["available"],
            "conflicts": len(conflicts.pairs),
            "bids": len(resolved.venue.bids),
            "locks": len(resolved.locks),
            "reviewers_without_evidence": len(without_evidence(resolved, readings)),
            "submissions_without_text": len(without_text(resolved, readings)),
            "memory_mb": ceil(need.total / 1e6),
        },
        "items": [*impossible, *oddities(resolved, conflicts, signals, readings)],
    }


def _impossible(
    problem: AssignmentProblem, names: Names, places: RoleRows, by_role: Sequence[tuple[str | None, dict[str, Any]]]
) -> list[Notice]:
    """What by counting alone leaves no full plan, single submissions first."""
    out = []
    for at, (role, part) in enumerate(by_role):
        told = {} if role is None else {"role": role}
        if part["shortfall"]:
            out.append(Notice("too-little-load", part["sentence"], data={**part, **told}))
        least = int(problem.load_min[places.columns(at)].sum())
        if least > part["needed"]:
            what = "load_min" if role is None else f"load_min of {in_words(role)}"
            out.append(
                Notice(
                    "load-min-too-high",
                    f"{what} asks for {least} reviews in all, the submissions need {part['needed']}.",
                    data={"load_min": least, "needed": part["needed"], **told},
                )
            )
    for entry in shortages(problem, names):
        excluded = "; ".join(f"{who['reviewer']}: {', '.join(who['reasons'])}" for who in entry["excluded"][:8])
        out.append(
            Notice(
                "too-few-eligible",
                f"{named(entry)} needs {entry['demand']}, has {entry['eligible']} eligible"
                + (f" ({excluded})." if excluded else "."),
                (entry["submission"],),
                tuple(who["reviewer"] for who in entry["excluded"]),
                entry,
            )
        )
    return out[::-1]


def exclusions(venue: Venue, params: Params | None = None) -> Exclusions:
    """Who cannot be assigned where, and why, without scoring a text.

    Raises
    ------
    InvalidVenueError, InvalidParamsError
        As `recommend` would.
    """
    params = checked(venue, params)
    resolved, conflicts, _bounds = prepare(venue, params)
    return Exclusions(resolved, conflicts, params)


class _Blank(ScoreOperator):
    """Scores of 0 for every pair: counting needs no scores."""

    may_be_unknown = False

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def block(self, rows: slice, cols: slice) -> NDArray[np.float32]:
        return np.zeros((rows.stop - rows.start, cols.stop - cols.start), dtype=np.float32)

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return np.zeros(len(rows))
