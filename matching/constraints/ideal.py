"""The best each submission could have if it were alone, and what welfare makes of it."""

from __future__ import annotations

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Welfare
from matching.types import FloatArray

__all__ = ["FLOOR_SHARE", "ideal_sums", "welfare_of"]

FLOOR_SHARE = 0.01
"""Welfare goes on as its tangent below this share of the median ideal sum."""

ENTRIES = 1 << 21  # pairs looked at together


def ideal_sums(problem: AssignmentProblem) -> FloatArray:
    """For each submission the sum of its locked scores and of its best others up to its demand, competing with nobody.

    Barred and unknown pairs and people without room count for nothing; so do locked pairs of unknown score.

    Returns
    -------
    ndarray of shape (n_submissions,), float64
        No lawful plan gives a submission more, unless it leaves out reviews of negative score. One sweep.
    """
    n_submissions, n_reviewers = problem.shape
    held = problem.locked
    closed = problem.barred.union(held)
    has_room = problem.load_max > np.bincount(held[:, 1], minlength=n_reviewers)
    wanted = np.minimum(problem.demand - np.bincount(held[:, 0], minlength=n_submissions), n_reviewers)
    scores = np.nan_to_num(problem.scores.values(held[:, 0], held[:, 1]))
    sums = np.bincount(held[:, 0], weights=scores, minlength=n_submissions).astype(np.float64)  # int64 if empty
    step = max(1, ENTRIES // max(1, n_reviewers))
    everyone = slice(0, n_reviewers)
    for top in range(0, n_submissions if n_reviewers else 0, step):
        rows = slice(top, min(top + step, n_submissions))
        most = int(wanted[rows].max(initial=0))
        if not most:
            continue
        part = np.array(problem.scores.block(rows, everyone), dtype=np.float64)
        part[np.isnan(part)] = -np.inf
        part[closed.within(rows, everyone)] = -np.inf
        part[:, ~has_room] = -np.inf
        best = np.argpartition(-part, most - 1, axis=1)[:, :most] if most < n_reviewers else np.argsort(-part, axis=1)
        order = np.argsort(-np.take_along_axis(part, best, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        use = (np.arange(most)[None, :] < wanted[rows, None]) & np.isfinite(np.take_along_axis(part, best, axis=1))
        at, nth = np.nonzero(use)
        exact = problem.scores.values(at + top, best[at, nth])
        sums[rows] += np.bincount(at, weights=exact, minlength=rows.stop - rows.start)
    return sums


def welfare_of(problem: AssignmentProblem, alpha: float) -> Welfare:
    """Welfare over the submissions that can have a positive sum.

    Those that cannot, because every person they may have scores 0 or less, would say the same of every plan and are
    left out. Below a hundredth of the median ideal sum the function goes on as its tangent, so a plan that leaves a
    submission with nothing still has a value. At alpha 0, where welfare is the total, none is left out.

    Parameters
    ----------
    alpha : float
        [0, 64].
    """
    wanting = problem.demand > 0
    if alpha == 0.0:
        return Welfare(0.0, 1.0, wanting)
    ideal = ideal_sums(problem)
    among = wanting & (ideal > 0)
    unit = float(np.median(ideal[among])) if among.any() else 1.0
    return Welfare(alpha, FLOOR_SHARE * unit, among, unit)
