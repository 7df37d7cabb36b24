"""Shortest-path potentials of the residual network of any flow, by relaxation over groups of arcs.

Bellman-Ford over all arcs of a group at once, group after group in the order in which paths run through the layers
of a network, so that one sweep carries a price through all of them (Ahuja, Magnanti and Orlin, 1993, section 5.4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.types import IntArray

__all__ = ["Group", "relaxed"]

Number = Any  # int64 for exact potentials, float64 for refined ones


class Group:
    """Arcs that are relaxed together: nowhere does the answer of one wait for another of the same sweep.

    Parameters
    ----------
    tail, head : ndarray of shape (n,), int64
    cost : ndarray of shape (n,), int64 or float64
    """

    def __init__(self, tail: IntArray, head: IntArray, cost: NDArray[Number]) -> None:
        order = np.argsort(head, kind="stable")
        self._tail, self._cost = tail[order], cost[order]
        heads = head[order]
        self._starts = np.flatnonzero(np.concatenate([[True], heads[1:] != heads[:-1]])) if heads.size else order
        self._heads = heads[self._starts]

    def relax(self, at: NDArray[Number]) -> None:
        """Lower potentials, in place, to what the arcs offer."""
        if self._starts.size:
            through = np.minimum.reduceat(at[self._tail] + self._cost, self._starts)
            at[self._heads] = np.minimum(at[self._heads], through)


def relaxed(
    groups: Sequence[Group], start: NDArray[Number], sweeps: int, tolerance: Number = 0
) -> NDArray[Number] | None:
    """Potentials no residual arc offers less than, but for `tolerance`; None if `sweeps` did not suffice.

    Parameters
    ----------
    groups : sequence of Group
        All residual arcs, in the order of the layers.
    start : ndarray of shape (n_nodes,)
        Any numbers; good ones save sweeps.
    """
    at = start.copy()
    for _ in range(sweeps):
        before = at.copy()
        for group in groups:
            group.relax(at)
        if (before - at).max(initial=at.dtype.type(0)) <= tolerance:
            return at
    return None
