"""The network of an assignment problem with cells: nodes between a line and those of its pairs that are counted.

    submission --> (submission, class) --(pair)--> (reviewer, class) --> reviewer --> sink
             \\--(unfilled, at a high price)----------------------------------------^

Every node is optional but the lines and the sink: a pair leaves from the smallest cell of its submission it lies in
and arrives at the smallest of its reviewer. What a cell, or a person, must have is paid for with the price of a missing
review. A flow has potentials; differences between them along an arc are the prices of demand, loads and bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.solvers.cells import Cells
from matching.solvers.flow import Scale, cheapest
from matching.solvers.potentials import Group, Number, relaxed
from matching.solvers.state import State
from matching.types import IntArray

__all__ = ["Laid", "Layered", "Marks"]


@dataclass(frozen=True, eq=False)
class Marks:
    """Prices read off potentials.

    Attributes
    ----------
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,)
    cells : tuple of two ndarray
        For each side the price of each cell: above 0 where the upper bound binds, below 0 where the lower one does.
    """

    u: NDArray[Number]
    w: NDArray[Number]
    cells: tuple[NDArray[Number], NDArray[Number]]


@dataclass(frozen=True, eq=False)
class Laid:
    """A flow of a layered network.

    Attributes
    ----------
    amount : ndarray of shape (n_pairs,), int64
    unfilled, below : ndarray of shape (n_submissions,) and (n_reviewers,), int64
        Missing reviews of demand and of load_min.
    short : tuple of two ndarray of int64
        Units missing to the lower bounds of the cells of each side.
    all : ndarray of shape (n_arcs,), int64
        Flow on every arc.
    """

    amount: IntArray
    unfilled: IntArray
    below: IntArray
    short: tuple[IntArray, IntArray]
    all: IntArray

    @property
    def missing(self) -> bool:
        """Whether anything is missing."""
        return any(part.any() for part in (self.unfilled, self.below, *self.short))


class Layered:
    """The active pairs of a state and the cells of both sides as one network.

    Parameters
    ----------
    state : State
        In whole reviews.
    cells : tuple of two Cells
        Of submissions and of reviewers.

    Attributes
    ----------
    tail, head, room, due : ndarray of shape (n_arcs,), int64
        Arcs, their capacity, and how often a unit pays the penalty: -1, 0 or 1.
    pairs, least, loads : slice
        Which arcs are the active pairs, and which the reviews of each person up to load_min and above it.
    supplies : ndarray of shape (n_nodes,), int64
    """

    def __init__(self, state: State, cells: tuple[Cells, Cells]) -> None:
        n_submissions, n_reviewers = state.problem.shape
        self.state = state
        # as they are now: cells laid out later belong to the next network
        self.keys, self.lines = (cells[0].key, cells[1].key), (cells[0].line, cells[1].line)
        self._lower = (cells[0].lower, cells[1].lower)
        self._price = (cells[0].price, cells[1].price)
        self._beyond = (cells[0].upper < 0, cells[1].upper < 0)
        # two rules may ask for more of a class than they allow
        self.contrary = any(bool((cell.lower > np.maximum(cell.upper, 0)).any()) for cell in cells)
        self.first = (n_submissions + n_reviewers + 1, n_submissions + n_reviewers + 1 + cells[0].size)
        self.sink = n_submissions + n_reviewers
        self.nodes = self.first[1] + cells[1].size
        self.total = int(state.supply.sum())
        most = self.total + 1  # one more than there is, so that what cannot be had still has room in vain
        own = (cells[0].attached(state.rows, state.cols), cells[1].attached(state.cols, state.rows))
        bases = (0, n_submissions)
        ends = [
            np.where(at >= 0, first + at, base + line)
            for at, first, base, line in zip(own, self.first, bases, (state.rows, state.cols), strict=True)
        ]
        tails, heads = [ends[0]], [ends[1]]
        rooms, dues = [np.ones(state.rows.size, dtype=np.int64)], [np.zeros(state.rows.size, dtype=np.int64)]
        extras = [np.zeros(state.rows.size)]
        self._outer: list[IntArray] = []
        for side, (cell, first, base) in enumerate(zip(cells, self.first, bases, strict=True)):
            inner, parents = first + np.arange(cell.size, dtype=np.int64), cell.parents
            outer = np.where(parents >= 0, first + parents, base + cell.line)
            self._outer.append(outer)
            upper = np.clip(cell.upper, 0, most)
            lower = np.minimum(cell.lower, upper)
            hard = np.isinf(cell.price)
            soft = np.where(hard, 0.0, cell.price)
            for room, due, extra in (
                (lower, -hard.astype(np.int64), -soft),
                (upper - lower, np.zeros(cell.size, dtype=np.int64), 0.0 * soft),
                (np.where(hard, 0, most - upper), np.zeros(cell.size, dtype=np.int64), soft),
            ):
                tails.append(outer if side == 0 else inner)
                heads.append(inner if side == 0 else outer)
                rooms.append(room)
                dues.append(due)
                extras.append(extra)
        people = n_submissions + np.arange(n_reviewers, dtype=np.int64)
        papers = np.arange(n_submissions, dtype=np.int64)
        load_min = np.minimum(state.load_min, most)
        for tail, room, times in (
            (people, load_min, -1),
            (people, np.minimum(state.load_max, most) - load_min, 0),
            (papers, state.supply, 1),
        ):
            tails.append(tail)
            heads.append(np.full(tail.size, self.sink, dtype=np.int64))
            rooms.append(room)
            dues.append(np.full(tail.size, times, dtype=np.int64))
            extras.append(np.zeros(tail.size))
        ends_at = np.cumsum([part.size for part in tails])
        self._parts = [slice(int(end) - part.size, int(end)) for part, end in zip(tails, ends_at, strict=True)]
        self.tail, self.head = np.concatenate(tails), np.concatenate(heads)
        self.room, self.due = np.concatenate(rooms), np.concatenate(dues)
        self._extra = np.concatenate(extras)
        self.pairs, self.least, self.loads = self._parts[0], self._parts[7], self._parts[8]
        self.supplies: IntArray = np.zeros(self.nodes, dtype=np.int64)
        self.supplies[:n_submissions] = state.supply
        self.supplies[self.sink] = -self.total

    def scale(self, low: float, high: float) -> Scale:
        """The finest scale the solver is exact for; cells count as nodes of their side, and what priced ones cost."""
        n_submissions, n_reviewers = self.state.problem.shape
        shape = (n_submissions + self.keys[0].size, n_reviewers + self.keys[1].size)
        # a pair passes at most one cell of each price on either side for each class it is nested in; one more for room
        dearest = 4.0 * float(np.unique(np.abs(self._extra)).sum())
        return Scale.fit(low - dearest, high + dearest, shape, self.total)

    def cost(self, gain: NDArray[Number], penalty: Number, scale: Scale | None = None) -> NDArray[Number]:
        """What a unit costs on each arc, in integers of the scale; None for units of score."""
        extra = self._extra if scale is None else scale.integers(self._extra)
        out = self.due * penalty + extra
        out[self.pairs] = -gain
        return np.asarray(out)

    def flow(self, cost: IntArray, start: tuple[IntArray, int] | None) -> Laid:
        """The cheapest flow; with gains and a penalty as costs the best of those that lack the least.

        Parameters
        ----------
        cost : ndarray of shape (n_arcs,), int64
        start : (ndarray of shape (n_nodes,), int) or None
            Potentials near those to come, and the largest cost, above 0, that is told from larger ones.

        Raises
        ------
        SolverRangeError, SolverError
            As for `cheapest`.
        """
        if start is not None:
            at, most = start
            dear = cost + at[self.tail] - at[self.head]
            found = cheapest(self.tail, self.head, self.room, np.clip(dear, -most, most), self.supplies)
            # a cut changes nothing as long as dear arcs stay empty and cheap ones are full
            if not ((found > 0) & (dear > most)).any() and not ((found < self.room) & (dear < -most)).any():
                return self.laid(found)
        return self.laid(cheapest(self.tail, self.head, self.room, cost, self.supplies))

    def laid(self, flow: IntArray) -> Laid:
        """What a flow on all arcs gives and lacks."""
        pairs, low0, rest0, _, low1, rest1, _, least, more, open_ = (flow[part] for part in self._parts)
        short = tuple(
            np.where(np.isinf(price), np.maximum(lower - low - rest, 0), 0)
            for price, lower, low, rest in zip(self._price, self._lower, (low0, low1), (rest0, rest1), strict=True)
        )
        below = np.maximum(self.state.load_min - least - more, 0)
        return Laid(pairs, open_, below, (short[0], short[1]), flow)

    def worth(self, laid: Laid) -> float:
        """Scores of a flow less what it pays for bounds at a price."""
        _, low0, _, over0, low1, _, over1, *_ = self._parts
        cost = 0.0
        for lower, price, low, over in zip(self._lower, self._price, (low0, low1), (over0, over1), strict=True):
            cost += float((np.where(np.isinf(price), 0.0, price) * (lower - laid.all[low] + laid.all[over])).sum())
        return float(self.state.score[: laid.amount.size] @ laid.amount) - cost

    def potentials(
        self, laid: Laid, cost: NDArray[Number], start: NDArray[Number], sweeps: int, tolerance: Number = 0
    ) -> NDArray[Number] | None:
        """Potentials of all nodes, int64 or float64 as the costs; None where they do not settle in so many sweeps."""
        pairs, low0, rest0, over0, low1, rest1, over1, least, more, open_ = self._parts
        forward, back = laid.all < self.room, laid.all > 0
        # there and back through the layers
        order: list[tuple[tuple[slice, ...], bool]] = [
            ((low0, rest0, over0), True), ((pairs,), True), ((low1, rest1, over1), True), ((least, more, open_), True),
            ((least, more, open_), False), ((low1, rest1, over1), False), ((pairs,), False),
            ((low0, rest0, over0), False),
        ]  # fmt: skip
        groups = []
        for parts, ahead in order:
            at = np.concatenate([part.start + np.flatnonzero((forward if ahead else back)[part]) for part in parts])
            ends = (self.tail[at], self.head[at]) if ahead else (self.head[at], self.tail[at])
            groups.append(Group(*ends, cost[at] if ahead else -cost[at]))
        return relaxed(groups, start.astype(cost.dtype), sweeps, tolerance)

    def marks(self, at: NDArray[Number], penalty: Number, scale: Scale | None = None) -> Marks:
        """Prices; what has no lower bound has none below 0, and one beyond the penalty is cut to it.

        Neither changes the proof: such an entry carries no flow at a lower price.
        """
        n_submissions = self.state.supply.size
        u = np.maximum(at[:n_submissions] - at[self.sink], -penalty)
        w = np.maximum(
            at[self.sink] - at[n_submissions : self.sink], np.where(self.state.load_min > 0, -penalty, penalty * 0)
        )
        inner = (at[self.first[0] : self.first[1]], at[self.first[1] :])
        cells = [
            np.maximum(sign * (mine - at[outer]), floor)
            for sign, mine, outer, floor in zip((1, -1), inner, self._outer, self._floors(penalty, scale), strict=True)
        ]
        return Marks(u, w, (cells[0], cells[1]))

    def _floors(self, penalty: Number, scale: Scale | None) -> list[NDArray[Number]]:
        """The lowest price of each cell: what a missing unit costs, or a unit more where locked pairs are too many."""
        out = []
        for lower, price, beyond in zip(self._lower, self._price, self._beyond, strict=True):
            soft = np.where(np.isinf(price), 0.0, price)
            cost = soft if scale is None else scale.integers(soft)
            out.append(np.where(lower > 0, -np.where(np.isinf(price), penalty, cost), np.where(beyond, cost, 0 * cost)))
        return out

    def carried_over(self, at: NDArray[Number], older: Layered | None) -> NDArray[Number]:
        """Potentials of an older network of the same lines, or of one without cells, for the nodes of this one."""
        out = np.zeros(self.nodes, dtype=at.dtype)
        out[: self.sink + 1] = at[: self.sink + 1]
        for side, (base, first) in enumerate(zip((0, self.state.supply.size), self.first, strict=True)):
            keys = self.keys[side]
            mine = out[base + self.lines[side]]
            if older is not None and (before := older.keys[side]).size:
                place = np.minimum(np.searchsorted(before, keys), before.size - 1)
                mine = np.where(before[place] == keys, at[older.first[side] + place], mine)
            out[first : first + keys.size] = mine
        return out
