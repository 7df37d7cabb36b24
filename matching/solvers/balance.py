"""A flow made optimal again from prices: whatever contradicts them is put right, and shortest paths do the rest.

Given prices and any old plan, a pair above its prices is taken, a pair below them is dropped and the others stay as
they are. What then is missing in one place and too much in another is moved along shortest paths of the residual
network, measured by reduced costs, and the prices follow (successive shortest paths; Ahuja, Magnanti and Orlin, 1993,
section 9.7). Each path changes as few pairs as it has steps, so that a small change of the problem moves few pairs.
Cost: one Dijkstra over the active pairs for every few units moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from matching.solvers.prices import Prices, Residual
from matching.types import FloatArray, IntArray

__all__ = ["Balanced", "Network", "balance", "polished"]

EXACT = 1 << 53  # whole numbers below it are exact in float64, in which the paths are measured
MOST_UNITS = 2_000  # out of place from which a flow from scratch is faster
MOST_SEARCHES = 1_000  # likewise
FIRST_REACH, FURTHER = 2.0**16, 64.0  # steps of the scale a search looks first, and the factor when that finds nothing
NEAR = 1 << 10  # steps of the scale: prices rounded from floats, and sums of them along paths, are closer than this
POLISH_SWEEPS = 200  # far above the longest path of tight pairs met; polishing is a courtesy


@dataclass(frozen=True, eq=False)
class Network:
    """Offered pairs and what lines may carry, whole reviews, locked pairs taken out.

    Attributes
    ----------
    shape : tuple of int
    rows, cols, gain : ndarray of shape (n_pairs,), int64
    supply : ndarray of shape (n_submissions,), int64
    load_min, load_max : ndarray of shape (n_reviewers,), int64
    penalty : int
        Price of a missing review.
    """

    shape: tuple[int, int]
    rows: IntArray
    cols: IntArray
    gain: IntArray
    supply: IntArray
    load_min: IntArray
    load_max: IntArray
    penalty: int


@dataclass(frozen=True, eq=False)
class Balanced:
    """An optimal flow and its prices.

    Attributes
    ----------
    amount : ndarray of shape (n_pairs,), int64
        0 or 1.
    unfilled : ndarray of shape (n_submissions,), int64
    prices : Prices
        int64.
    """

    amount: IntArray
    unfilled: IntArray
    prices: Prices


def polished(net: Network, held: NDArray[np.bool_], prices: Prices) -> Prices:
    """Rounded prices moved by a few steps so that pairs tight before rounding are tight again.

    Only pairs, loads and lines that fit the prices up to rounding are looked at: real contradictions are for
    `balance`. The prices themselves where no such prices exist.
    """
    over = net.gain - prices.u[net.rows] - prices.w[net.cols]
    near = np.abs(over) <= NEAR
    load = np.bincount(net.cols[held], minlength=net.shape[1]).astype(np.int64)
    # where a load is priced, or was, it is no business of rounding: neither spare nor above its minimum
    priced = np.abs(prices.w) > NEAR
    nothing = np.zeros(net.shape[0], dtype=np.int64)
    residual = Residual(
        net.shape, net.rows[near], net.cols[near], held[near].astype(np.int64), nothing, net.supply, load,
        np.where(priced, load, np.minimum(net.load_min, load)), np.where(priced, load, np.maximum(net.load_max, load)),
    )  # fmt: skip
    found = residual.relax(net.gain[near], net.penalty, prices, POLISH_SWEEPS)
    return prices if found is None else found


def balance(net: Network, held: NDArray[np.bool_], prices: Prices) -> Balanced | None:
    """The best flow over the offered pairs, from an old plan and prices; None where starting afresh is cheaper.

    Parameters
    ----------
    held : ndarray of shape (n_pairs,), bool
        Pairs of the old plan; any.
    prices : Prices
        int64, any; those at the root of the old plan make the work small.
    """
    if 4 * net.penalty >= EXACT:  # no path is longer, nor a difference of prices
        return None
    work = _Balance(net, held, prices)
    for _ in range(MOST_SEARCHES):
        if work.out_of_place > MOST_UNITS:
            return None
        if not work.out_of_place:
            return Balanced(work.taken.astype(np.int64), work.unfilled, Prices(work.u, work.w))
        work.advance()
    return None


class _Balance:
    """The state of the search: a flow in keeping with its prices, and what is out of place at each node.

    Nodes are the submissions, the reviewers and the sink. `excess` is what comes into a node beyond what leaves it.
    """

    def __init__(self, net: Network, held: NDArray[np.bool_], prices: Prices) -> None:
        self.net = net
        n_submissions, n_reviewers = net.shape
        self.sink = n_submissions + n_reviewers
        keys = net.rows * n_reviewers + net.cols
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._reach = FIRST_REACH
        self._lay_out()
        most = int(np.abs(net.gain).max(initial=0)) + net.penalty
        self.u = np.clip(prices.u, -net.penalty, most)
        self.w = np.clip(prices.w, -net.penalty, most)
        self.u[net.supply == 0] = 0
        self.w[net.load_max == 0] = 0
        below = self.u[net.rows] + self.w[net.cols] - net.gain
        self.taken = np.where(below < 0, True, np.where(below > 0, False, held))
        given = np.bincount(net.rows[self.taken], minlength=n_submissions).astype(np.int64)
        self.unfilled = np.where(self.u == -net.penalty, np.clip(net.supply - given, 0, net.supply), 0)
        load = np.bincount(net.cols[self.taken], minlength=n_reviewers).astype(np.int64)
        # what each reviewer hands on: priced loads are full, loads that cost are at their minimum, others are free
        least = np.where(self.w > 0, net.load_max, np.where(self.w > -net.penalty, net.load_min, 0))
        most_load = np.where(self.w >= 0, net.load_max, net.load_min)
        self.out = np.clip(load, least, most_load)
        self.excess = np.zeros(self.sink + 1, dtype=np.int64)
        self.excess[:n_submissions] = net.supply - given - self.unfilled
        self.excess[n_submissions : self.sink] = load - self.out
        self.excess[self.sink] = self.out.sum() + self.unfilled.sum() - net.supply.sum()

    @property
    def out_of_place(self) -> int:
        return int(np.maximum(self.excess, 0).sum())

    def advance(self) -> None:
        """One search from every node with too much; one unit moves from each to the nearest place that lacks one."""
        n_submissions = self.net.shape[0]
        far, before, root, lacking = self._search()
        # trees of different sources have no node in common, so a path in each of them can be used at once
        _, first = np.unique(root[lacking], return_index=True)
        chosen = lacking[first]
        farthest = far[chosen].max()
        self._reach = 2.0 * farthest + 1.0
        moved = np.minimum(far, farthest).astype(np.int64)
        self.u += moved[:n_submissions] - moved[self.sink]
        self.w -= moved[n_submissions : self.sink] - moved[self.sink]
        steps = np.array(
            [(before[at], at) for end in chosen.tolist() for at in _path(before, end)], dtype=np.int64
        ).reshape(-1, 2)
        self._push(steps[:, 0], steps[:, 1])
        self.excess[root[chosen]] -= 1
        self.excess[chosen] += 1

    def _search(self) -> tuple[FloatArray, NDArray[np.int32], NDArray[np.int32], IntArray]:
        """Distances, the node before each and the source of each, and the nodes that lack something, nearest first.

        Distances are exact up to the farthest node that is returned. Most paths are short, so the search looks only as
        far as the last one did, and further where that finds nothing.
        """
        graph = sparse.csr_array(
            (self._costs()[self._arc_order], self._heads, self._starts), shape=(self.sink + 1,) * 2
        )
        sources = np.flatnonzero(self.excess > 0)
        lacking = np.flatnonzero(self.excess < 0)
        while True:
            far, before, root = dijkstra(
                graph, indices=sources, min_only=True, return_predecessors=True, limit=self._reach
            )
            found = lacking[np.isfinite(far[lacking])]
            if found.size:
                return far, before, root, found[np.lexsort((found, far[found]))]
            self._reach *= FURTHER

    def _lay_out(self) -> None:
        """Places of all arcs in a sparse matrix; only their costs change from one search to the next."""
        net, (n_submissions, n_reviewers) = self.net, self.net.shape
        into = n_submissions + net.cols
        submissions = np.arange(n_submissions, dtype=np.int64)
        reviewers = n_submissions + np.arange(n_reviewers, dtype=np.int64)
        sink = np.full(self.sink, self.sink)
        lines = np.concatenate([submissions, reviewers])
        tail = np.concatenate([net.rows, into, lines, sink])
        head = np.concatenate([into, net.rows, sink, lines])
        self._arc_order = np.lexsort((head, tail))
        self._heads = head[self._arc_order].astype(np.int32)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(tail, minlength=self.sink + 1))]).astype(np.int32)

    def _costs(self) -> FloatArray:
        """Reduced costs of all arcs, float64 holding whole numbers; inf where no unit can go."""
        net = self.net
        below = (self.u[net.rows] + self.w[net.cols] - net.gain).astype(np.float64)
        fill = (net.penalty + self.u).astype(np.float64)
        more = np.where(self.out < net.load_min, -net.penalty, 0) - self.w
        less = np.where(self.out > net.load_min, 0, net.penalty) + self.w
        return np.concatenate([
            np.where(self.taken, np.inf, below),
            np.where(self.taken, -below, np.inf),
            np.where(self.unfilled < net.supply, fill, np.inf),
            np.where(self.out < net.load_max, more, np.inf),
            np.where(self.unfilled > 0, -fill, np.inf),
            np.where(self.out > 0, less, np.inf),
        ])  # fmt: skip

    def _push(self, tail: IntArray, head: IntArray) -> None:
        """One unit along each of these steps; no step is there twice."""
        n_submissions, n_reviewers = self.net.shape
        forward = (tail < n_submissions) & (head != self.sink)
        back = (head < n_submissions) & (tail != self.sink)
        keys = np.concatenate([
            tail[forward] * n_reviewers + head[forward] - n_submissions,
            head[back] * n_reviewers + tail[back] - n_submissions,
        ])  # fmt: skip
        pair = self._pairs_at(keys)
        self.taken[pair] = ~self.taken[pair]
        np.add.at(self.unfilled, tail[(tail < n_submissions) & (head == self.sink)], 1)
        np.subtract.at(self.unfilled, head[(head < n_submissions) & (tail == self.sink)], 1)
        hands = (tail >= n_submissions) & (head == self.sink)
        np.add.at(self.out, tail[hands] - n_submissions, 1)
        takes = (tail == self.sink) & (head >= n_submissions)
        np.subtract.at(self.out, head[takes] - n_submissions, 1)

    def _pairs_at(self, keys: IntArray) -> IntArray:
        """Places of pairs by row * n_reviewers + column."""
        return self._order[np.searchsorted(self._keys, keys)]


def _path(before: NDArray[np.int32], end: int) -> list[int]:
    """Nodes of the path to `end`, last first, without the source."""
    found = []
    while before[end] >= 0:
        found.append(end)
        end = int(before[end])
    return found
