"""Lawful ranked alternates: who could step in, without counting them as demand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["rank_alternates"]

ROW_ENTRIES = 1 << 22  # pairs looked at together


def rank_alternates(
    problem: AssignmentProblem, pairs: PairArray, n_alternates: int, closed: PairSet | None = None
) -> tuple[PairArray, FloatArray, IntArray]:
    """The best stand-ins of every submission that needs reviews: not assigned, not barred, known.

    People with spare load come first, by falling affinity; then the full ones, by falling affinity. Nobody
    with a load_max of 0 is offered. Equal affinities are ordered by column.

    Parameters
    ----------
    problem : AssignmentProblem
    pairs : ndarray of shape (n, 2), int64
        The plan.
    n_alternates : int
        At most this many for each submission.
    closed : PairSet or None
        Pairs that are not offered besides.

    Returns
    -------
    alternates : ndarray of shape (m, 2), int64
        By submission, best first.
    affinity : ndarray of shape (m,), float64
    spare : ndarray of shape (m,), int64
        Reviews this person could still take under the plan.
    """
    n_submissions, n_reviewers = problem.shape
    spare = problem.load_max - np.bincount(pairs[:, 1], minlength=n_reviewers)
    taken = problem.barred.union(pairs)
    taken = taken if closed is None else taken.union(closed.pairs())
    offered = problem.load_max > 0
    found: list[PairArray] = []
    scores: list[FloatArray] = []
    count = min(n_alternates, n_reviewers)
    step = max(1, ROW_ENTRIES // max(1, n_reviewers))
    for top in range(0, n_submissions if count else 0, step):
        rows = slice(top, min(top + step, n_submissions))
        everyone = slice(0, n_reviewers)
        score = np.array(problem.scores.block(rows, everyone), dtype=np.float64)
        lawful = ~np.isnan(score)
        lawful[taken.within(rows, everyone)] = False
        lawful &= offered[None, :] & (problem.demand[rows] > 0)[:, None]
        score[~lawful] = -np.inf
        best = _best(score, spare > 0, count)
        for local, columns in enumerate(best):
            row = top + local
            columns = columns[np.isfinite(score[local, columns])]
            exact = problem.scores.values(np.full(columns.size, row), columns)
            order = np.lexsort((columns, -exact, spare[columns] <= 0))
            found.append(np.column_stack([np.full(columns.size, row), columns[order]]))
            scores.append(exact[order])
    if not found:
        return np.empty((0, 2), dtype=np.int64), np.empty(0), np.empty(0, dtype=np.int64)
    alternates = np.concatenate(found).astype(np.int64)
    return alternates, np.concatenate(scores), spare[alternates[:, 1]]


def _best(score: FloatArray, has_room: NDArray[np.bool_], count: int) -> list[IntArray]:
    """For each row the columns of its best `count` scores, columns with room before the others."""
    span = np.ptp(score[np.isfinite(score)]) if np.isfinite(score).any() else 0.0
    lifted = score + np.where(has_room, 2.0 * span + 1.0, 0.0)[None, :]
    if count < score.shape[1]:
        # a few more than asked, so that ties at the edge are cut by column order and not by the partition
        at = np.argpartition(-lifted, count - 1, axis=1)[:, :count]
        edge = np.take_along_axis(lifted, at, axis=1).min(axis=1)
    else:
        edge = np.full(score.shape[0], -np.inf)
    out = []
    for row, low in zip(lifted, edge):
        columns = np.flatnonzero(row >= low)
        out.append(columns[np.lexsort((columns, -row[columns]))][:count])
    return out
