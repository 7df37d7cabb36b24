"""Why no full plan exists: which submissions, which people, which numbers, which rules, and what would help.

The arithmetic is counted from the problem itself (`matching.explain.unserved`), not read off the solver; clashing
rules and repairs are found by solving again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.explain.clash import clashing_rules
from matching.explain.names import PEOPLE_LISTED, Names, listed, some
from matching.explain.repairs import cheapest_repairs
from matching.explain.resolves import Resolves, missing_in
from matching.explain.unserved import MOST_CELLS, Shortage, short_minima, short_sets
from matching.pairs import PairSet
from matching.solvers.base import Solution
from matching.types import IntArray

__all__ = ["capacity_of", "diagnose", "shortages"]

SENTENCES = 5  # repairs told in words; the list is complete


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
        what = f"{some(wanting, 'submission')} x {some(int(each[0]), 'review')} = {some(needed, 'review')} needed"
    else:
        what = f"{some(wanting, 'submission')} need {some(needed, 'review')} in all"
    sentence = f"{what}; {some(able.size, 'reviewer')} can give {available}"
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


def diagnose(
    problem: AssignmentProblem, solution: Solution, names: Names, resolves: Resolves | None = None
) -> dict[str, Any]:
    """The facts about a problem without a full plan; empty for a full plan.

    Parameters
    ----------
    resolves : Resolves, optional
        How to solve again. Without it nothing is said of clashing rules and repairs.

    Returns
    -------
    dict
        ``sentences`` : list of str, the whole diagnosis in words.
        ``capacity`` : see `capacity_of`.
        ``unfilled`` : list of {submission, demand, missing, switched_off}; the last counts people whom only the
        switches allow_unknown and allow_zero keep out.
        ``too_few_eligible`` : see `shortages`.
        ``unserved`` : list of {submissions, reviewers, gives, needed, capacity, minimal, sentence}: disjoint sets of
        submissions that together need more than the reviewers open to them can give, while the rest of each would be
        served without any one of its submissions (``minimal``). ``gives`` is what each of ``reviewers`` can give.
        ``bottleneck`` : the first of them, or None.
        ``load_min`` : list of {reviewer, load_min, load, missing}.
        ``unmet_minima`` : the same as ``unserved`` for load minima: {reviewers, submissions, needed, capacity,
        minimal, sentence}.
        ``rules_clash`` : {rules, load_min, irreducible, sentence} or None: bounds that cannot hold together, see
        `matching.explain.clash`.
        ``repairs`` : see `matching.explain.repairs`. ``repairs_note`` : what was not tried, or None.
    """
    missing = missing_in(problem, solution)
    if not missing:
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
    short = short_sets(problem, solution.pairs, _where_short(problem, solution))
    minima = short_minima(problem, solution.pairs) if below else ()
    unserved = [_unserved(problem, group, names) for group in short]
    unmet = [_unmet(group, names) for group in minima]
    clash = None
    repairs: list[dict[str, Any]] = []
    note = None
    if resolves is not None:
        clash = None if short or minima else clashing_rules(problem, resolves)
        repairs, note = cheapest_repairs(problem, missing, short, minima, clash, solution.below_min, names, resolves)
    rules_clash = None if clash is None else clash.told(problem, names)
    sentences = []
    if solution.unfilled.any():
        where = ", ".join(f"{entry['submission']} ({entry['missing']})" for entry in unfilled[:20])
        more = f" and {len(unfilled) - 20} more" if len(unfilled) > 20 else ""
        sentences.append(f"{some(int(solution.unfilled.sum()), 'review')} cannot be filled: {where}{more}.")
    if capacity["shortfall"]:
        sentences.append(capacity["sentence"])
    for entry in few[:20]:
        excluded = "; ".join(f"{item['reviewer']}: {', '.join(item['reasons'])}" for item in entry["excluded"][:8])
        sentences.append(
            f"{entry['submission']} needs {entry['demand']}, has {entry['eligible']} eligible"
            + (f" ({excluded})." if excluded else ".")
        )
    counted = {entry["submission"] for entry in few}
    for group, entry in zip(short, unserved, strict=True):
        whole = capacity["shortfall"] and group.lines.size == int((problem.demand > 0).sum())
        if not whole and not (group.lines.size == 1 and entry["submissions"][0] in counted):
            sentences.append(entry["sentence"])
    switched = [entry for entry in unfilled if entry["switched_off"]]
    if switched:
        who = ", ".join(
            f"{entry['submission']} ({some(entry['switched_off'], 'person', 'people')})" for entry in switched[:20]
        )
        sentences.append(
            "Some people are left out since their affinity is unknown or 0 and allow_unknown or allow_zero is off: "
            f"{who}. Switching it on lets them be assigned."
        )
    if below:
        must, slots = int(problem.load_min.sum()), int(problem.demand.sum())
        short_of = int(solution.below_min.sum())
        who = ", ".join(f"{entry['reviewer']} ({entry['load']} of {entry['load_min']})" for entry in below[:20])
        sentences.append(
            f"load_min asks for {must} reviews, the submissions offer {slots}; "
            f"at least {short_of} stay missing, here for {who}. Lower load_min for these people."
        )
        sentences += [entry["sentence"] for entry in unmet]
    if rules_clash is not None:
        sentences.append(rules_clash["sentence"])
    sentences += [repair["sentence"] for repair in repairs[:SENTENCES]]
    return {
        "sentences": sentences,
        "capacity": capacity,
        "unfilled": unfilled,
        "too_few_eligible": few,
        "unserved": unserved,
        "bottleneck": unserved[0] if unserved else None,
        "load_min": below,
        "unmet_minima": unmet,
        "rules_clash": rules_clash,
        "repairs": repairs,
        "repairs_note": note,
    }


def _where_short(problem: AssignmentProblem, solution: Solution) -> IntArray | None:
    """All rows, or where their table would be too large those of the cut that the prices of a solution name."""
    if problem.shape[0] * problem.shape[1] <= MOST_CELLS or solution.penalty <= 0:
        return None
    return np.flatnonzero((solution.submission_prices < -solution.penalty / 2) & (problem.demand > 0))


def _unserved(problem: AssignmentProblem, group: Shortage, names: Names) -> dict[str, Any]:
    """A short set of submissions in words."""
    ids = [names.submissions[row] for row in group.lines.tolist()]
    people = some(len(group.others), "person", "people")
    beside = " beside the locked ones" if np.isin(problem.locked[:, 0], group.lines).any() else ""
    if len(ids) == 1:
        head = f"This submission ({ids[0]}) needs {some(group.needed, 'review')}{beside}"
        them, rest = "it", ""
    else:
        head = f"These {len(ids)} submissions ({listed(ids)}) need {some(group.needed, 'review')}{beside}"
        them, rest = "them", " Without any one of these submissions the others of them could be served."
    return {
        "submissions": ids,
        "reviewers": [names.reviewers[col] for col in group.others[:PEOPLE_LISTED].tolist()],
        "gives": group.gives[:PEOPLE_LISTED].tolist(),
        "needed": group.needed,
        "capacity": group.capacity,
        "minimal": group.minimal,
        "sentence": f"{head}; the {people} open to {them} can give {them} {group.capacity}."
        + (rest if group.minimal else ""),
    }


def _unmet(group: Shortage, names: Names) -> dict[str, Any]:
    """A short set of load minima in words."""
    ids = [names.reviewers[col] for col in group.lines.tolist()]
    head = f"{listed(ids)} must have {some(group.needed, 'review')} by load_min" + (" together" if len(ids) > 1 else "")
    return {
        "reviewers": ids,
        "submissions": [names.submissions[row] for row in group.others[:PEOPLE_LISTED].tolist()],
        "needed": group.needed,
        "capacity": group.capacity,
        "minimal": group.minimal,
        "sentence": f"{head}; the {some(len(group.others), 'submission')} open to them can take {group.capacity}.",
    }


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
    for col in np.flatnonzero(barred | unknown | (problem.load_max == 0))[:PEOPLE_LISTED].tolist():
        reasons = list(names.reasons(row, col)) if barred[col] else []
        if problem.load_max[col] == 0:
            reasons.append("load_max is 0")
        if unknown[col] and not barred[col]:
            reasons.append("no known affinity, or affinity 0, and allow_unknown or allow_zero is off")
        out.append({"reviewer": names.reviewers[col], "reasons": reasons or ["barred"]})
    return out
