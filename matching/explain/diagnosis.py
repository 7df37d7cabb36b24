"""Why no full plan exists: which submissions, which people, which numbers, which setting.

The prices of an infeasible problem name a cut: submissions priced at minus the penalty want more than the
people open to them can give (Hall, 1935, in the form of Ford and Fulkerson, 1956). The arithmetic is counted
here from the problem itself, not read off the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.solvers.base import Solution
from matching.types import IntArray

__all__ = ["Names", "capacity_of", "diagnose", "shortages"]

REVIEWERS_LISTED = 50  # people named for one submission or bottleneck; the counts are always complete

Reasons = Callable[[int, int], Sequence[str]]
"""(submission row, reviewer column) -> why the pair is barred, in words."""


@dataclass(frozen=True, slots=True)
class Names:
    """Outside ids in row and column order, and the words for what bars a pair."""

    submissions: Sequence[str]
    reviewers: Sequence[str]
    reasons: Reasons


def capacity_of(problem: AssignmentProblem) -> dict[str, Any]:
    """Reviews needed and available by plain counting, and which setting would close a shortfall.

    Returns
    -------
    dict
        ``needed``, ``available``, ``shortfall`` (reviews, int), ``sentence``, and ``load_max_that_suffices``:
        the smallest limit which, given to everyone who takes reviews at all, covers the need by count; None
        without a shortfall or where no limit does. Nobody can give more than one review to a submission.
    """
    wanting = int((problem.demand > 0).sum())
    limits = np.minimum(problem.load_max, wanting)
    needed, available = int(problem.demand.sum()), int(limits.sum())
    shortfall = max(0, needed - available)
    able = limits[limits > 0]
    each = problem.demand[problem.demand > 0]
    if wanting and (each == each[0]).all():
        what = f"{_some(wanting, 'submission')} x {_some(int(each[0]), 'review')} = {_some(needed, 'review')} needed"
    else:
        what = f"{_some(wanting, 'submission')} need {_some(needed, 'review')} in all"
    sentence = f"{what}; {_some(able.size, 'reviewer')} can give {available}"
    enough = None
    if shortfall:
        sentence += f"; short by {shortfall}."
        if able.size * wanting >= needed:
            low, high = 1, wanting
            while low < high:
                middle = (low + high) // 2
                if np.maximum(able, middle).sum() >= needed:
                    high = middle
                else:
                    low = middle + 1
            enough = low
            sentence += f" A load_max of {enough} for these reviewers would close it by count."
        elif able.size:
            sentence += " No load_max closes it: a person gives a submission at most one review. Invite more people."
        else:
            sentence += " Every reviewer has a load_max of 0; raise it for some, or invite more people."
    else:
        sentence += "."
    return {
        "needed": needed,
        "available": available,
        "shortfall": shortfall,
        "load_max_that_suffices": enough,
        "sentence": sentence,
    }


def shortages(problem: AssignmentProblem, names: Names) -> list[dict[str, Any]]:
    """Submissions whose eligible reviewers are fewer than their demand, with both counts and the exclusions.

    Eligible is who is not barred, has a load_max above 0 and a known affinity; locked reviewers count.
    """
    eligible = _eligible_counts(problem)
    out = []
    for row in np.flatnonzero(eligible < problem.demand).tolist():
        out.append(
            {
                "submission": names.submissions[row],
                "demand": int(problem.demand[row]),
                "eligible": int(eligible[row]),
                "excluded": _excluded(problem, names, int(row)),
            }
        )
    return out


def diagnose(problem: AssignmentProblem, solution: Solution, names: Names) -> dict[str, Any]:
    """The facts about a problem without a full plan; empty for a full plan.

    Returns
    -------
    dict
        ``sentences`` : list of str, the whole diagnosis in words.
        ``capacity`` : see `capacity_of`.
        ``unfilled`` : list of {submission, demand, missing, switched_off}; the last counts people whom only the
        switches allow_unknown and allow_zero keep out.
        ``too_few_eligible`` : see `shortages`.
        ``bottleneck`` : {submissions, reviewers, needed, capacity, sentence} or None: a set of submissions that
        together need more than the reviewers open to them can give.
        ``load_min`` : list of {reviewer, load_min, load, missing}.
    """
    if not solution.unfilled.any() and not solution.below_min.any():
        return {}
    capacity = capacity_of(problem)
    few = shortages(problem, names)
    unfilled: list[dict[str, Any]] = [
        {
            "submission": names.submissions[row],
            "demand": int(problem.demand[row]),
            "missing": int(solution.unfilled[row]),
            "switched_off": _switched_off(problem, int(row)),
        }
        for row in np.flatnonzero(solution.unfilled).tolist()
    ]
    loads = np.bincount(solution.pairs[:, 1], minlength=problem.shape[1])
    below = [
        {
            "reviewer": names.reviewers[col],
            "load_min": int(problem.load_min[col]),
            "load": int(loads[col]),
            "missing": int(solution.below_min[col]),
        }
        for col in np.flatnonzero(solution.below_min).tolist()
    ]
    bottleneck = _bottleneck(problem, solution, names)
    sentences = []
    if solution.unfilled.any():
        where = ", ".join(f"{entry['submission']} ({entry['missing']})" for entry in unfilled[:20])
        more = f" and {len(unfilled) - 20} more" if len(unfilled) > 20 else ""
        sentences.append(f"{_some(int(solution.unfilled.sum()), 'review')} cannot be filled: {where}{more}.")
    if capacity["shortfall"]:
        sentences.append(capacity["sentence"])
    for entry in few[:20]:
        excluded = "; ".join(f"{item['reviewer']}: {', '.join(item['reasons'])}" for item in entry["excluded"][:8])
        sentences.append(
            f"{entry['submission']} needs {entry['demand']}, has {entry['eligible']} eligible"
            + (f" ({excluded})." if excluded else ".")
        )
    if bottleneck is not None and not (capacity["shortfall"] and len(bottleneck["submissions"]) == problem.shape[0]):
        sentences.append(bottleneck["sentence"])
    switched = [entry for entry in unfilled if entry["switched_off"]]
    if switched:
        who = ", ".join(
            f"{entry['submission']} ({_some(entry['switched_off'], 'person', 'people')})" for entry in switched[:20]
        )
        sentences.append(
            "Some people are left out since their affinity is unknown or 0 and allow_unknown or allow_zero is off: "
            f"{who}. Switching it on lets them be assigned."
        )
    if below:
        must, slots = int(problem.load_min.sum()), int(problem.demand.sum())
        short = int(solution.below_min.sum())
        who = ", ".join(f"{entry['reviewer']} ({entry['load']} of {entry['load_min']})" for entry in below[:20])
        sentences.append(
            f"load_min asks for {must} reviews, the submissions offer {slots}; "
            f"at least {short} stay missing, here for {who}. Lower load_min for these people."
        )
    return {
        "sentences": sentences,
        "capacity": capacity,
        "unfilled": unfilled,
        "too_few_eligible": few,
        "bottleneck": bottleneck,
        "load_min": below,
    }


def _some(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _switched_off(problem: AssignmentProblem, row: int) -> int:
    """People who could take a submission but for an unknown or zero affinity that the run does not allow."""
    everyone = np.arange(problem.shape[1])
    line = np.full(everyone.size, row)
    unusable = np.isnan(problem.scores.values(line, everyone)) & ~problem.barred.contains(line, everyone)
    return int((unusable & (problem.load_max > 0)).sum())


def _eligible_counts(problem: AssignmentProblem) -> IntArray:
    """People each submission may get: not barred, able to carry load, known; locked ones included."""
    n_submissions, n_reviewers = problem.shape
    able = problem.load_max > 0
    if not _may_be_unknown(problem):
        barred = problem.barred
        lost = np.bincount(barred.rows(), weights=able[barred.indices], minlength=n_submissions)
        return int(able.sum()) - lost.astype(np.int64)
    locked = PairSet(problem.locked, problem.shape)
    eligible = np.zeros(n_submissions, dtype=np.int64)
    step = max(1, (1 << 22) // max(1, n_reviewers))
    for top in range(0, n_submissions, step):
        rows, everyone = slice(top, min(top + step, n_submissions)), slice(0, n_reviewers)
        usable = ~np.isnan(problem.scores.block(rows, everyone))
        usable[locked.within(rows, everyone)] = True
        usable[problem.barred.within(rows, everyone)] = False
        eligible[rows] = (usable & able[None, :]).sum(axis=1)
    return eligible


def _may_be_unknown(problem: AssignmentProblem) -> bool:
    return bool(getattr(problem.scores, "may_be_unknown", True))


def _excluded(problem: AssignmentProblem, names: Names, row: int) -> list[dict[str, Any]]:
    everyone = np.arange(problem.shape[1])
    barred = problem.barred.contains(np.full(everyone.size, row), everyone)
    unknown = np.isnan(problem.scores.values(np.full(everyone.size, row), everyone))
    unknown &= ~PairSet(problem.locked, problem.shape).contains(np.full(everyone.size, row), everyone)
    out = []
    for col in np.flatnonzero(barred | unknown | (problem.load_max == 0))[:REVIEWERS_LISTED].tolist():
        reasons = list(names.reasons(row, col)) if barred[col] else []
        if problem.load_max[col] == 0:
            reasons.append("load_max is 0")
        if unknown[col] and not barred[col]:
            reasons.append("no known affinity, or affinity 0, and allow_unknown or allow_zero is off")
        out.append({"reviewer": names.reviewers[col], "reasons": reasons or ["barred"]})
    return out


def _bottleneck(problem: AssignmentProblem, solution: Solution, names: Names) -> dict[str, Any] | None:
    """The submissions of the cut and the people left to them, counted afresh."""
    if solution.penalty <= 0 or not solution.unfilled.any():
        return None
    rows = np.flatnonzero((solution.submission_prices < -solution.penalty / 2) & (problem.demand > 0))
    if not rows.size:
        return None
    locked = PairSet(problem.locked, problem.shape)
    everyone = np.arange(problem.shape[1])
    open_to = np.zeros((rows.size, problem.shape[1]), dtype=bool)
    for place, row in enumerate(rows):
        line = np.full(everyone.size, row)
        open_to[place] = ~np.isnan(problem.scores.values(line, everyone))
        open_to[place] &= ~problem.barred.contains(line, everyone) & ~locked.contains(line, everyone)
    # What is locked is settled; of the rest each person gives at most their load and one review a submission.
    room = problem.load_max - np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    gives = np.minimum(open_to.sum(axis=0), room)
    people = np.flatnonzero(gives > 0)
    held = np.bincount(problem.locked[:, 0], minlength=problem.shape[0])
    needed, capacity = int((problem.demand - held)[rows].sum()), int(gives.sum())
    if capacity >= needed:
        return None  # load_min elsewhere holds reviews back; the load_min entries say so
    listed = [names.submissions[row] for row in rows.tolist()]
    many = len(listed) > 1
    sentence = (
        f"{'These' if many else 'This'} {_some(len(listed), 'submission')} "
        f"({', '.join(listed[:20])}{', ...' if len(listed) > 20 else ''}) need{'' if many else 's'} "
        f"{_some(needed, 'review')}; the {_some(len(people), 'person', 'people')} open to them can give {capacity}."
    )
    return {
        "submissions": listed,
        "reviewers": [names.reviewers[col] for col in people[:REVIEWERS_LISTED].tolist()],
        "needed": needed,
        "capacity": capacity,
        "sentence": sentence,
    }
