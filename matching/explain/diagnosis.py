"""Why no full plan exists: which submissions, which people, which numbers, which rules, and what would help.

The arithmetic is counted from the problem itself (`matching.explain.unserved`), not read off the solver; clashing
rules and repairs are found by solving again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.explain.capacity import capacities, in_all
from matching.explain.clash import clashing_rules
from matching.explain.names import PEOPLE_LISTED, Names, listed, some
from matching.explain.repairs import cheapest_repairs
from matching.explain.resolves import Resolves, missing_in
from matching.explain.unserved import MOST_CELLS, Shortage, short_minima, short_sets
from matching.pairs import PairSet
from matching.roles import REVIEWER, in_words
from matching.solvers.base import Solution
from matching.types import IntArray

__all__ = ["diagnose", "named", "shortages"]

SENTENCES = 5  # repairs told in words; the list is complete


def named(entry: Mapping[str, Any]) -> str:
    """The submission of an entry, with the role where there are several."""
    return f"{entry['submission']} ({in_words(entry['role'])})" if "role" in entry else str(entry["submission"])


def _short(entry: Mapping[str, Any]) -> str:
    """An entry's row as a certificate names it."""
    other = entry.get("role", REVIEWER) != REVIEWER
    return f"{entry['submission']}/{entry['role']}" if other else str(entry["submission"])


def _place(names: Names, row: int) -> dict[str, Any]:
    """Submission of a row, and its role where there are several."""
    if names.rows is None:
        return {"submission": names.submissions[row]}
    name, role = names.submissions[row], str(names.role(row))
    return {"submission": name if role == REVIEWER else name.removesuffix(f"/{role}"), "role": role}


def _role(names: Names, group: Shortage) -> int:
    """Place of the role of a set of rows; a minimal one has a single role."""
    return 0 if names.rows is None else names.rows.place(int(group.lines[0]))[0]


def _is_whole_role(problem: AssignmentProblem, names: Names, group: Shortage) -> bool:
    """Whether a set of rows is all that need anybody of their role."""
    count = problem.shape[0] if names.rows is None else names.rows.n_submissions
    first = _role(names, group) * count
    return group.lines.size == int((problem.demand[first : first + count] > 0).sum())


def shortages(problem: AssignmentProblem, names: Names) -> list[dict[str, Any]]:
    """Submissions whose eligible reviewers are fewer than their demand, with both counts and the exclusions.

    Eligible is who is not barred, has a load_max above 0 and a known affinity; locked reviewers count.
    """
    eligible = _eligible_counts(problem)
    out = []
    for row in np.flatnonzero(eligible < problem.demand).tolist():
        out.append(
            {
                **_place(names, row),
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
        ``capacity`` : see `matching.explain.capacity.in_all`.
        ``unfilled`` : list of {submission, demand, missing, switched_off}; the last counts people whom only the
        switches allow_unknown and allow_zero keep out. Here and in ``too_few_eligible`` with ``role``, where there are
        several; elsewhere a role of a submission but for reviewers is named ``<id>/<role>``.
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
    by_role = capacities(problem, names)
    capacity = in_all(by_role)
    few = shortages(problem, names)
    unfilled: list[dict[str, Any]] = [
        {
            **_place(names, row),
            "demand": int(problem.demand[row]),
            "missing": int(solution.unfilled[row]),
            "switched_off": _switched_off(problem, names, int(row)),
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
        where = ", ".join(f"{_short(entry)} ({entry['missing']})" for entry in unfilled[:20])
        more = f" and {len(unfilled) - 20} more" if len(unfilled) > 20 else ""
        sentences.append(f"{some(int(solution.unfilled.sum()), 'review')} cannot be filled: {where}{more}.")
    sentences += [part["sentence"] for _, part in by_role if part["shortfall"]]
    for entry in few[:20]:
        excluded = "; ".join(f"{item['reviewer']}: {', '.join(item['reasons'])}" for item in entry["excluded"][:8])
        sentences.append(
            f"{named(entry)} needs {entry['demand']}, has {entry['eligible']} eligible"
            + (f" ({excluded})." if excluded else ".")
        )
    counted = {_short(entry) for entry in few}
    for group, entry in zip(short, unserved, strict=True):
        whole = _is_whole_role(problem, names, group) and by_role[_role(names, group)][1]["shortfall"]
        if not whole and not (group.lines.size == 1 and entry["submissions"][0] in counted):
            sentences.append(entry["sentence"])
    switched = [entry for entry in unfilled if entry["switched_off"]]
    if switched:
        who = ", ".join(
            f"{_short(entry)} ({some(entry['switched_off'], 'person', 'people')})" for entry in switched[:20]
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


def _switched_off(problem: AssignmentProblem, names: Names, row: int) -> int:
    """People who could take a submission but for an unknown or zero affinity that the run does not allow."""
    everyone = np.arange(problem.shape[1])
    line = np.full(everyone.size, row)
    unusable = np.isnan(problem.scores.values(line, everyone)) & ~problem.barred.contains(line, everyone)
    return int((unusable & (problem.load_max > 0) & names.people(row)).sum())


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
    out_of_it = (barred | unknown | (problem.load_max == 0)) & names.people(row)
    for col in np.flatnonzero(out_of_it)[:PEOPLE_LISTED].tolist():
        reasons = list(names.reasons(row, col)) if barred[col] else []
        if problem.load_max[col] == 0:
            reasons.append("load_max is 0")
        if unknown[col] and not barred[col]:
            reasons.append("no known affinity, or affinity 0, and allow_unknown or allow_zero is off")
        out.append({"reviewer": names.reviewers[col], "reasons": reasons or ["barred"]})
    return out
