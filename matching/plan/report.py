"""The report: a plan in numbers a chair reads, all computed from the same pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
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
) -> dict[str, Any]:
    """Totals, distributions, loads and the worst-served submissions of a solution.

    Parameters
    ----------
    signals : sequence of mapping
        One for each signal of the venue, with name, weight, pairs, default.
    conflict_counts : mapping of rule to int
        Pairs barred by each rule; a pair barred by two rules counts in both.

    Returns
    -------
    dict
        ``totals``, ``per_submission``, ``per_pair``, ``loads``, ``worst_served``, ``signals``, ``conflicts``.
        Only plain numbers, strings, lists and dicts.
    """
    pairs = solution.pairs
    n_submissions, n_reviewers = problem.shape
    affinity = np.nan_to_num(problem.scores.values(pairs[:, 0], pairs[:, 1]))
    sums = np.bincount(pairs[:, 0], weights=affinity, minlength=n_submissions)
    received = np.bincount(pairs[:, 0], minlength=n_submissions)
    loads = np.bincount(pairs[:, 1], minlength=n_reviewers).astype(np.int64)
    wanted = problem.demand > 0
    able = problem.load_max > 0
    rank = np.lexsort((np.arange(n_submissions), sums))
    rank = rank[wanted[rank]][:WORST_LISTED]
    return {
        "totals": {
            "submissions": n_submissions,
            "reviewers": n_reviewers,
            "reviews_needed": int(problem.demand.sum()),
            "reviews_assigned": len(pairs),
            "reviews_unfilled": int(solution.unfilled.sum()),
            "reviews_available": int(problem.load_max.sum()),
            "locked": len(problem.locked),
            "conflicts": len(problem.barred),
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
            "reviewers_at_their_limit": int((loads[able] == problem.load_max[able]).sum()),
            "reviewers_with_limit_0": int((~able).sum()),
            **{name: value for name, value in _distribution(loads[able]).items() if name in ("min", "mean", "max")},
        },
        "worst_served": [
            {
                "submission": submission_ids[row],
                "affinity": float(sums[row]),
                "reviews": int(received[row]),
                "demand": int(problem.demand[row]),
                "reviewers": [reviewer_ids[col] for col in pairs[pairs[:, 0] == row, 1]],
            }
            for row in rank
        ],
        "signals": [dict(signal) for signal in signals],
        "conflicts": dict(conflict_counts),
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
