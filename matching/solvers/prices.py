"""Dual prices of an optimal flow: shortest-path potentials of its residual network.

With u for submissions and w for reviewers, every lawful pair that is offered satisfies ``s <= u + w`` where
it is not assigned to its limit and ``s >= u + w`` where it is assigned; w > 0 only where the reviewer is full,
w < 0 only where load_min holds a review there. These are the optimality conditions, so they exist for an optimal
flow and for no other. Method: Bellman-Ford over all arcs at once (Ahuja, Magnanti and Orlin, 1993, section 5.4),
which needs as many sweeps as the longest shortest path has arcs, tens in practice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.types import IntArray

__all__ = ["Prices", "Residual"]

Number = Any  # int64 for exact prices, float64 for refined ones


@dataclass(frozen=True, slots=True)
class Prices:
    """u of shape (n_submissions,) and w of shape (n_reviewers,), both int64 or both float64."""

    u: NDArray[Number]
    w: NDArray[Number]

    def shifted(self, bits: int) -> Prices:
        """Integer prices in a scale with so many binary digits more; rounded where they are fewer."""
        if bits >= 0:
            return Prices(self.u << bits, self.w << bits)
        half = 1 << (-bits - 1)
        return Prices((self.u + half) >> -bits, (self.w + half) >> -bits)


class Residual:
    """The residual network of a flow, ready for repeated relaxation.

    Parameters
    ----------
    shape : tuple of int
    rows, cols : ndarray of shape (n_pairs,), int64
        Offered pairs.
    amount : ndarray of shape (n_pairs,), int64
        Units each carries.
    unfilled, supply : ndarray of shape (n_submissions,), int64
    load, load_min, load_max : ndarray of shape (n_reviewers,), int64
        After locked pairs were taken out, in the same units.
    capacity : ndarray of shape (n_pairs,), int64, or None
        Most units of each pair; None for one.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        rows: IntArray,
        cols: IntArray,
        amount: IntArray,
        unfilled: IntArray,
        supply: IntArray,
        load: IntArray,
        load_min: IntArray,
        load_max: IntArray,
        capacity: IntArray | None = None,
    ) -> None:
        self.shape = shape
        free = np.flatnonzero(amount < (1 if capacity is None else capacity))
        self._free = free[np.argsort(cols[free], kind="stable")]
        self._free_rows = rows[self._free]
        free_cols = cols[self._free]
        self._free_starts, self._free_heads = _segments(free_cols)
        held = np.flatnonzero(amount > 0)
        self._held = held[np.argsort(rows[held], kind="stable")]
        self._held_cols = cols[self._held]
        self._held_starts, self._held_heads = _segments(rows[self._held])
        self.missing = unfilled > 0
        self.fillable = unfilled < supply
        self.spare = load < load_max  # the arc to the sink has room beyond load_min
        self.short = load < load_min
        self.above_min = load > load_min
        self.some_min = np.minimum(load, load_min) > 0

    def relax(
        self,
        score: NDArray[Number],
        penalty: Number,
        start: Prices | None,
        sweeps: int,
        tolerance: Number = 0,
        load_cost: tuple[NDArray[Number], NDArray[Number]] | None = None,
    ) -> Prices | None:
        """Prices by relaxation until nothing falls by more than `tolerance`; None if `sweeps` did not suffice.

        Parameters
        ----------
        score : ndarray of shape (n_pairs,), int64 or float64
            In the order of the offered pairs.
        penalty : int or float
            Price of a missing review, in the unit of `score`.
        start : Prices or None
            Any numbers; good ones save sweeps.
        load_cost : tuple of two ndarray of shape (n_reviewers,), or None
            What one more review by each person costs and what the last one did, in the unit of `score`; w then holds
            that cost too. None for nothing.
        """
        kind = score.dtype.type
        n_submissions, n_reviewers = self.shape
        to_sub = np.zeros(n_submissions, dtype=score.dtype) if start is None else start.u.astype(score.dtype)
        to_rev = np.zeros(n_reviewers, dtype=score.dtype) if start is None else -start.w.astype(score.dtype)
        sink = kind(0)
        more, last = (kind(0), kind(0)) if load_cost is None else load_cost
        forward, back_cost = np.broadcast_to(more, self.spare.shape), np.broadcast_to(last, self.spare.shape)
        open_ = self.spare & ~self.short
        free_score = score[self._free]
        held_score = score[self._held]
        for _ in range(sweeps):
            old_sub, old_rev, old_sink = to_sub.copy(), to_rev.copy(), sink
            if self._free_starts.size:
                through = np.minimum.reduceat(to_sub[self._free_rows] - free_score, self._free_starts)
                to_rev[self._free_heads] = np.minimum(to_rev[self._free_heads], through)
            sink = min(
                sink,
                (to_rev[open_] + forward[open_]).min(initial=sink),
                (to_rev[self.short] + forward[self.short] - penalty).min(initial=sink),
                (to_sub[self.fillable] + penalty).min(initial=sink),
            )
            to_rev[self.above_min] = np.minimum(to_rev[self.above_min], sink - back_cost[self.above_min])
            to_rev[self.some_min] = np.minimum(to_rev[self.some_min], sink + penalty - back_cost[self.some_min])
            to_sub[self.missing] = np.minimum(to_sub[self.missing], sink - penalty)
            if self._held_starts.size:
                back = np.minimum.reduceat(to_rev[self._held_cols] + held_score, self._held_starts)
                to_sub[self._held_heads] = np.minimum(to_sub[self._held_heads], back)
            fall = max(
                (old_sub - to_sub).max(initial=kind(0)), (old_rev - to_rev).max(initial=kind(0)), old_sink - sink
            )
            if fall <= tolerance:
                # An entry at its full penalty carries no flow below it; a price beyond the penalty is cut to it.
                u = np.maximum(to_sub - sink, -penalty)
                w = np.maximum(sink - to_rev, -penalty)
                return Prices(u, w)
        return None


def _segments(heads: IntArray) -> tuple[IntArray, IntArray]:
    """Start of each run of equal heads, and the heads, for ``reduceat``."""
    if not heads.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], heads[1:] != heads[:-1]]))
    return starts, heads[starts]
