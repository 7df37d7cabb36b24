"""Envy between submissions, beyond what one reviewer explains: the definition that solver and audit share."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.types import FloatArray, PairArray

__all__ = ["envy_by_submission", "envy_excess"]

ENTRIES = 1 << 21  # pairs of submissions compared at a time


def envy_excess(problem: AssignmentProblem, pairs: PairArray) -> float:
    """The largest envy of one submission toward another after the best of the other's reviewers is taken away.

    Submission p envies q by ``v_p(R_q without its best for p) / d_q - v_p(R_p) / d_p``, where R are the assigned
    reviewers, d the demands and v_p sums p's own scores of those it may have (barred, unknown and negative ones count
    0). No envy above 0 means: weighted envy-free up to one reviewer (Chakraborty, Igarashi, Suksompong and Zick,
    2021; for reviewers Payan and Zick, 2022).

    Parameters
    ----------
    problem : AssignmentProblem
    pairs : ndarray of shape (n, 2), int64

    Returns
    -------
    float
        At least 0, in units of score a review.

    Notes
    -----
    Time grows with the squared number of submissions times their demand; memory is a block. Submissions that no set
    of reviewers could make envious, by their best score alone, are not compared.
    """
    return float(envy_by_submission(problem, pairs).max(initial=0.0))


def envy_by_submission(problem: AssignmentProblem, pairs: PairArray) -> FloatArray:
    """The largest envy of each submission beyond one reviewer, as in `envy_excess`.

    Returns
    -------
    ndarray of shape (n_submissions,), float64
        At least 0; 0 for submissions without demand.
    """
    n_submissions, n_reviewers = problem.shape
    out = np.zeros(n_submissions)
    wanting = np.flatnonzero(problem.demand > 0)
    if len(wanting) < 2 or not len(pairs):
        return out
    demand = problem.demand[wanting].astype(np.float64)
    taken = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=problem.shape)[wanting]
    taken.sort_indices()
    size = np.diff(taken.indptr)
    reach = float((np.maximum(size - 1, 0) / demand).max())  # reviewers a review that envy can count at most
    step = max(1, ENTRIES // max(n_reviewers, len(wanting)))
    for top in range(0, n_submissions, step):
        rows = slice(top, min(top + step, n_submissions))
        mine = np.flatnonzero((wanting >= rows.start) & (wanting < rows.stop))
        if not mine.size:
            continue
        worth = np.array(problem.scores.block(rows, slice(0, n_reviewers)), dtype=np.float64)
        worth[problem.barred.within(rows, slice(0, n_reviewers))] = 0.0
        worth = np.maximum(np.nan_to_num(worth[wanting[mine] - rows.start]), 0.0)
        table = sparse.csr_array(taken[mine])
        own = np.asarray(table.multiply(worth).sum(axis=1)).ravel() / demand[mine]
        open_to_envy = np.flatnonzero(own < reach * worth.max(axis=1, initial=0.0))
        mine, worth, own = mine[open_to_envy], worth[open_to_envy], own[open_to_envy]
        if not mine.size:
            continue
        theirs = worth @ taken.T
        best: FloatArray = np.zeros_like(theirs)
        for nth in range(int(size.max(initial=0))):
            has = size > nth
            best[:, has] = np.maximum(best[:, has], worth[:, taken.indices[taken.indptr[:-1][has] + nth]])
        envy = (theirs - best) / demand[None, :] - own[:, None]
        out[wanting[mine]] = np.maximum(envy.max(axis=1), 0.0)
    return out
