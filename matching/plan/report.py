"""The report: a plan in numbers a chair reads, all computed from the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows
from matching.solvers.base import Solution
from matching.types import FloatArray, IntArray

__all__ = ["report_of"]

WORST_LISTED = 10  # submissions named as worst served


def report_of(
    problem: AssignmentProblem,
    solution: Solution,
    submission_ids: Sequence[str],
    reviewer_ids: Sequence[str],
    signals: Sequence[Mapping[str, Any]],
    conflict_counts: Mapping[str, int],
    rows: RoleRows | None = None,
) -> dict[str, Any]:
    """Totals, distributions, loads and the worst-served submissions of a solution.

    Parameters
    ----------
    signals : sequence of mapping
        One for each signal of the venue, with name, weight, pairs, default.
    conflict_counts : mapping of rule to int
        Pairs barred by each rule; a pair barred by two rules counts in both.
    rows : RoleRows, optional
        What rows and columns of the problem are; None where each row is a submission.

    Returns
    -------
    dict
        ``totals``, ``per_submission``, ``per_pair``, ``loads``, ``worst_served``, ``signals``, ``conflicts``; of a
        plan of several roles also ``roles``: for each role its weight and the first five for it alone. Then
        ``per_submission`` and ``worst_served`` count each role of a submission by itself, named ``<id>/<role>`` but for
        reviewers. Affinities are those of pairs, without the weights of roles. Only plain numbers, strings, lists and
        dicts.
    """
    whole = _Part(problem, solution, rows, slice(0, problem.shape[0]), slice(0, problem.shape[1]))
    out = {
        **whole.told(submission_ids, reviewer_ids),
        "signals": [dict(signal) for signal in signals],
        "conflicts": dict(conflict_counts),
    }
    if rows is None or len(rows.roles) == 1:
        return out
    out["totals"]["submissions"] = rows.n_submissions
    out["roles"] = {}
    for at, role in enumerate(rows.roles):
        lines = slice(at * rows.n_submissions, (at + 1) * rows.n_submissions)
        part = _Part(problem, solution, rows, lines, rows.columns(at)).told(submission_ids, reviewer_ids)
        for name in ("bound", "gap"):
            del part["totals"][name]  # proven of the plan as a whole
        out["roles"][role] = {"weight": rows.weights[at], **part}
    return out


class _Part:
    """Some rows and columns of a solution, in numbers."""

    def __init__(
        self, problem: AssignmentProblem, solution: Solution, rows: RoleRows | None, lines: slice, people: slice
    ) -> None:
        self.problem, self.solution, self.lines, self.people = problem, solution, lines, people
        pairs = solution.pairs
        self.pairs = pairs[(pairs[:, 0] >= lines.start) & (pairs[:, 0] < lines.stop)]
        score = problem.scores.values(self.pairs[:, 0], self.pairs[:, 1])
        if rows is not None and not rows.plain:
            score = score / np.array(rows.weights)[rows.role_of(self.pairs[:, 1])]
        self.affinity = np.nan_to_num(score)

    def told(self, submission_ids: Sequence[str], reviewer_ids: Sequence[str]) -> dict[str, Any]:
        """``totals``, ``per_submission``, ``per_pair``, ``loads``, ``worst_served``."""
        problem, solution, pairs, affinity = self.problem, self.solution, self.pairs, self.affinity
        lines, people = self.lines, self.people
        n_submissions, n_reviewers = lines.stop - lines.start, people.stop - people.start
        demand, load_max = problem.demand[lines], problem.load_max[people]
        sums = np.bincount(pairs[:, 0] - lines.start, weights=affinity, minlength=n_submissions)
        received = np.bincount(pairs[:, 0] - lines.start, minlength=n_submissions)
        loads = np.bincount(pairs[:, 1] - people.start, minlength=n_reviewers).astype(np.int64)
        wanted = demand > 0
        able = load_max > 0
        rank = np.lexsort((np.arange(n_submissions), sums))
        rank = rank[wanted[rank]][:WORST_LISTED]
        return {
            "totals": {
                "submissions": n_submissions,
                "reviewers": n_reviewers,
                "reviews_needed": int(demand.sum()),
                "reviews_assigned": len(pairs),
                "reviews_unfilled": int(solution.unfilled[lines].sum()),
                "reviews_available": int(load_max.sum()),
                "locked": int(((problem.locked[:, 0] >= lines.start) & (problem.locked[:, 0] < lines.stop)).sum()),
                "conflicts": int(problem.barred.indptr[lines.stop] - problem.barred.indptr[lines.start]),
                "affinity": float(affinity.sum()),
                "mean_affinity": float(affinity.mean()) if affinity.size else None,
                "bound": solution.bound if np.isfinite(solution.bound) else None,
                "gap": solution.gap if np.isfinite(solution.gap) else None,
            },
            "per_submission": _distribution(sums[wanted]),
            "per_pair": _distribution(affinity),
            "loads": {
                "distribution": {str(load): int(count) for load, count in enumerate(np.bincount(loads)) if count},
                "reviewers_without_reviews": int((loads[able] == 0).sum()),
                "reviewers_at_their_limit": int((loads[able] == load_max[able]).sum()),
                "reviewers_with_limit_0": int((~able).sum()),
                **{name: value for name, value in _distribution(loads[able]).items() if name in ("min", "mean", "max")},
            },
            "worst_served": [
                {
                    "submission": submission_ids[row + lines.start],
                    "affinity": float(sums[row]),
                    "reviews": int(received[row]),
                    "demand": int(demand[row]),
                    "reviewers": [reviewer_ids[col] for col in pairs[pairs[:, 0] == row + lines.start, 1]],
                }
                for row in rank
            ],
        }


def _distribution(values: FloatArray | IntArray) -> dict[str, float | None]:
    if not values.size:
        return dict.fromkeys(("min", "p10", "median", "mean", "max"))
    low, tenth, middle, high = np.quantile(values, [0.0, 0.1, 0.5, 1.0])
    return {
        "min": float(low),
        "p10": float(tenth),
        "median": float(middle),
        "mean": float(np.mean(values)),
        "max": float(high),
    }
