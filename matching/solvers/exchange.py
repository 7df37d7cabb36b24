"""Plans made better by letting go of one reviewer of every submission and placing all of them again at once.

With one review open at each submission, what a reviewer adds there depends on that pair alone, whatever curve the
objective draws over the submission's sum. So the best way to fill all open reviews is one flow, exact and never worse
than what was let go (a very large neighbourhood; Ahuja, Ergun, Orlin and Punnen, 2002). Which review is let go is
drawn anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.solvers.flow import Scale, Segments, transport
from matching.types import FloatArray, IntArray

__all__ = ["Arcs", "Gain", "gentle_gain", "reassign"]

Gain = Callable[[IntArray, FloatArray, FloatArray], FloatArray]
"""(rows, sums before, sums after) -> what the change is worth, float64; -inf where it must not be."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """Pairs a plan may use and the room they have, locked pairs and their loads taken out.

    Attributes
    ----------
    shape : tuple of int
    rows, cols : ndarray of shape (n,), int64
        Lawful pairs, each once.
    score : ndarray of shape (n,), float64
    load_min, load_max : ndarray of shape (n_reviewers,), int64
    """

    shape: tuple[int, int]
    rows: IntArray
    cols: IntArray
    score: FloatArray
    load_min: IntArray
    load_max: IntArray

    def only(self, keep: IntArray) -> Arcs:
        """The pairs at these positions, the same room."""
        return Arcs(self.shape, self.rows[keep], self.cols[keep], self.score[keep], self.load_min, self.load_max)


def gentle_gain(rows: IntArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """The rise of the sum, where no submission may lose: what is better here is better for every fair objective."""
    rise = after - before
    return np.where(rise >= 0, rise, -np.inf)


def reassign(
    arcs: Arcs, taken: NDArray[np.bool_], sums: FloatArray, gain: Gain, rng: np.random.Generator
) -> tuple[NDArray[np.bool_], float] | None:
    """One review of each submission is let go and placed again where that is worth most; None where nothing is.

    Parameters
    ----------
    arcs : Arcs
    taken : ndarray of shape (n,), bool
        A full plan.
    sums : ndarray of shape (n_submissions,), float64
        Of the plan, locked pairs included.
    gain : Gain
        0 where nothing changes.

    Returns
    -------
    tuple of (ndarray of shape (n,), bool; float) or None
        Another full plan and what it gains over this one, > 0 and exact but for the flow's resolution.
    """
    held = rng.permutation(np.flatnonzero(taken))
    lines, first = np.unique(arcs.rows[held], return_index=True)
    freed = held[first]
    before = np.zeros(arcs.shape[0])
    before[lines] = sums[lines]
    left = before.copy()
    left[lines] -= arcs.score[freed]
    kept = taken.copy()
    kept[freed] = False
    load = np.bincount(arcs.cols[kept], minlength=arcs.shape[1])
    open_line = np.zeros(arcs.shape[0], dtype=bool)
    open_line[lines] = True
    offered = np.flatnonzero(~kept & (load < arcs.load_max)[arcs.cols] & open_line[arcs.rows])
    rows = arcs.rows[offered]
    worth = gain(rows, before[rows], left[rows] + arcs.score[offered])
    worth[taken[offered]] = 0.0  # what was let go may come back, exactly
    most = np.zeros(arcs.shape[0])
    np.maximum.at(most, rows, worth)
    total = float(most.sum())
    if not total > 0.0:
        return None
    # whoever loses more than all others together can gain is in no plan that gains
    use = worth >= -total
    offered, rows, worth = offered[use], rows[use], worth[use]
    scale = Scale.fit(float(worth.min()), float(worth.max()), arcs.shape, lines.size)
    need = np.maximum(arcs.load_min - load, 0)
    everyone = np.arange(arcs.shape[1], dtype=np.int64)
    supply = np.zeros(arcs.shape[0], dtype=np.int64)
    supply[lines] = 1
    flow = transport(
        arcs.shape, rows, arcs.cols[offered], -scale.integers(worth), supply,
        Segments(
            np.tile(everyone, 2), np.concatenate([need, arcs.load_max - load - need]),
            np.repeat(np.array([-scale.penalty, 0], dtype=np.int64), arcs.shape[1]),
        ),
        scale.penalty,
    )  # fmt: skip
    chosen = flow.taken
    gained = float(worth[chosen].sum())
    if not gained > 0.0:
        return None
    kept[offered[chosen]] = True
    return kept, gained
