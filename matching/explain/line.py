"""Everybody of one role on one submission, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.types import FloatArray, IntArray

__all__ = ["Line", "ranks_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Everybody of one role on one submission, as numbers.

    Attributes
    ----------
    row : int
        Of the submission.
    place : int
        The problem's row: of the submission in the role.
    scores : ndarray of shape (n_reviewers,), float64
        Affinities; NaN where unknown.
    ranks : ndarray of shape (n_reviewers,), int64
        From 1 among the eligible, equal affinities alike; 0 for the others.
    order : ndarray of int64
        Columns of the role by falling affinity, unknown ones last, then by id.
    chosen : tuple of int
        Columns of those the plan has on it.
    barred : frozenset of int
        Columns of those in conflict.
    """

    row: int
    place: int
    scores: FloatArray
    ranks: IntArray
    order: IntArray
    chosen: tuple[int, ...]
    barred: frozenset[int]

    @property
    def eligible(self) -> int:
        """People who could be assigned."""
        return int(np.count_nonzero(self.ranks))


def ranks_of(scores: FloatArray, eligible: NDArray[np.bool_]) -> IntArray:
    """Rank of each eligible column from 1, equal scores alike; 0 for the others."""
    ranks = np.zeros(scores.size, dtype=np.int64)
    ordered = np.sort(-scores[eligible])
    ranks[eligible] = np.searchsorted(ordered, -scores[eligible], side="left") + 1
    return ranks
