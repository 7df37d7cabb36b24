"""From one plan to the next, in outside ids: what a plan was started from, and which of its pairs moved."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from matching.errors import InvalidParamsError, Issue
from matching.notices import Notice
from matching.plan.plan import AssignmentPlan, plain
from matching.roles import REVIEWER
from matching.solvers.start import Start

__all__ = ["changes_notice", "checked_start", "moves_of", "start_hash", "start_of"]

LISTED = 1000  # pairs a list of the report holds; counts are always complete


def checked_start(start: Any) -> AssignmentPlan | None:
    """An earlier plan or None.

    Raises
    ------
    InvalidParamsError
        It is neither.
    """
    if start is None or isinstance(start, AssignmentPlan):
        return start
    reason = f"must be a matching.AssignmentPlan, not {type(start).__name__}"
    raise InvalidParamsError(issues=[Issue(reason, "wrong-type", "start", source="params")])


def start_of(plan: AssignmentPlan, submissions: Sequence[str], reviewers: Sequence[str]) -> Start:
    """The pairs and prices of a plan in rows and columns of the venue of now.

    Parameters
    ----------
    submissions, reviewers : sequence of str
        Names of the rows and columns. Those of a role other than reviewer may be ``<id>/<role>``.
    """
    certificate, rows = plan.certificate, frozenset(submissions)
    pairs = []
    for pair in plan.assignments:
        in_role = f"{pair.submission}/{pair.role}"
        own = pair.role != REVIEWER and in_role in rows
        pairs.append((in_role if own else pair.submission, pair.reviewer))
    return Start.by_id(pairs, certificate.submission_prices, certificate.reviewer_prices, submissions, reviewers)


def start_hash(plan: AssignmentPlan) -> str:
    """SHA-256 over all that a run takes from a plan it starts from, as 64 hexadecimal digits."""
    certificate = plan.certificate
    taken = [sorted(set(_pairs(plan))), dict(certificate.submission_prices), dict(certificate.reviewer_prices)]
    text = json.dumps(plain(taken), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def moves_of(
    start: AssignmentPlan, plan: AssignmentPlan, submissions: Iterable[str], reviewers: Iterable[str]
) -> dict[str, Any]:
    """What a plan keeps of the one before it.

    Parameters
    ----------
    start, plan : AssignmentPlan
        The earlier one and the new one.
    submissions, reviewers : iterable of str
        Ids of everybody who took part in the new one.

    Returns
    -------
    dict
        ``kept``, ``added`` and ``removed``: pairs in both plans, in the new one only, in the old one only.
        ``gone``: removed ones whose submission or reviewer is no longer there. ``moved``: reviews that changed hands,
        which is for each submission, and each role on it, the smaller number of its added and removed pairs.
        ``submissions``: how many have other people than before, or the same in other roles. ``added_pairs``,
        ``removed_pairs``: lists of [submission, reviewer] in order, at most 1,000 each; who is there in another role
        than that of a reviewer has it as a third entry, and somebody who changes roles is removed and added.
    """
    before, after = set(_pairs(start)), set(_pairs(plan))
    here, people = set(submissions), set(reviewers)
    added, removed = sorted(after - before), sorted(before - after)
    came, went = (Counter((paper, *role) for paper, _, *role in some) for some in (added, removed))
    return {
        "kept": len(before & after),
        "added": len(added),
        "removed": len(removed),
        "gone": sum(paper not in here or person not in people for paper, person, *_ in removed),
        "moved": sum(min(count, went[place]) for place, count in came.items()),
        "submissions": len({paper for paper, *_ in (*added, *removed)} & here),
        "added_pairs": [list(pair) for pair in added[:LISTED]],
        "removed_pairs": [list(pair) for pair in removed[:LISTED]],
    }


def changes_notice(changes: dict[str, Any], used: bool, reason: str) -> Notice:
    """What became of the start, in one sentence."""
    data = {name: count for name, count in changes.items() if isinstance(count, int)}
    counts = (
        f"{changes['kept']} pairs of the earlier plan are kept, {changes['removed']} are gone "
        f"({changes['gone']} with their submission or reviewer), {changes['added']} are new"
    )
    if used:
        return Notice("started-from-plan", f"{counts}.", data=data)
    return Notice("start-not-used", f"the earlier plan was no help: {reason}; {counts}.", data={**data, "why": reason})


def _pairs(plan: AssignmentPlan) -> list[tuple[str, ...]]:
    """Submission and person, and the role where it is not that of a reviewer."""
    return [
        (pair.submission, pair.reviewer, *(() if pair.role == REVIEWER else (str(pair.role),)))
        for pair in plan.assignments
    ]
