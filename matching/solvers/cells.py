"""Which classes of which lines get a node of their own: those whose bounds a flow has broken on the way.

At most one per institution for ten thousand submissions speaks of millions of cells (a line and a class each); the
best plan without the rule breaks some of them, and only those are laid out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import NO_UPPER
from matching.constraints.families import Family, lower_cells
from matching.constraints.problem import AssignmentProblem
from matching.types import FloatArray, IntArray

__all__ = ["Cells", "Parts"]


Parts = list[tuple[int, IntArray, IntArray]]
"""Bounds: which rule of the family, and their a and b."""


class Cells:
    """The nodes of one family.

    Parameters
    ----------
    family : Family
    problem : AssignmentProblem

    Attributes
    ----------
    line, kind : ndarray of shape (n,), int64
        Line and class of each cell, in order.
    lower, upper : ndarray of shape (n,), int64
        Bounds, locked pairs taken out; an upper one is below 0 where locked pairs exceed it, at a price.
    low_from, high_from : ndarray of shape (n, 3), int64
        The bound each comes from: which rule of the family, and its a and b.
    forced : bool
        Whether locked pairs alone exceed the upper bound of some hard rule.
    """

    def __init__(self, family: Family, problem: AssignmentProblem) -> None:
        self.family, self.problem = family, problem
        locked = problem.locked
        taken = sparse.csr_array((np.ones(len(locked)), (locked[:, 0], locked[:, 1])), shape=problem.shape)
        self._held = [rule.counts(taken) for rule in family.rules]
        self._least = [lower_cells(rule) for rule in family.rules]
        self.forced = any(
            bool((coo.data > rule.upper[coo.coords]).any())
            for rule, coo in zip(family.rules, map(sparse.coo_array, self._held), strict=True)
            if rule.price is None
        )
        self.key = self.lower = self.upper = np.empty(0, dtype=np.int64)
        self.low_from = self.high_from = np.empty((0, 3), dtype=np.int64)
        self._prices = np.array([np.inf if rule.price is None else rule.price for rule in family.rules])
        self._of_other = sparse.csr_array(family.members.T)
        self._of_other.sort_indices()

    @property
    def size(self) -> int:
        return int(self.key.size)

    @property
    def line(self) -> IntArray:
        return self.key // max(1, self.family.n_classes)

    @property
    def kind(self) -> IntArray:
        return self.key % max(1, self.family.n_classes)

    @property
    def price(self) -> FloatArray:
        """What a unit beyond a bound of each cell costs; inf where the bounds are hard."""
        return self._prices[self.low_from[:, 0]]

    @property
    def lower_bounds(self) -> int:
        """How many bounds are lower ones above 0."""
        return sum(a.size for a, _, _ in self._least)

    def with_lower(self) -> Parts:
        """Every bound that asks for something locked pairs do not give already."""
        parts = []
        for which, (a, b, least) in enumerate(self._least):
            open_ = _at(self._held[which], a, b) < least
            parts.append((which, a[open_], b[open_]))
        return parts

    def broken(self, taken: sparse.csr_array) -> Parts:
        """The bounds that a plan, locked pairs included, breaks and that no node stands for yet."""
        parts = []
        for which, rule in enumerate(self.family.rules):
            count = rule.counts(taken)
            a, b, least = self._least[which]
            short = _at(count, a, b) < least
            parts.append((which, *self._new(which, a[short], b[short], low=True)))
            where = sparse.coo_array(count)
            above = where.data > rule.upper[where.coords]
            over = np.stack(where.coords)[:, above].astype(np.int64)
            parts.append((which, *self._new(which, over[0], over[1], low=False)))
        return parts

    def asks(self, parts: Parts) -> bool:
        """Whether there are lower bounds of hard rules among these."""
        rules = self.family.rules
        return any(bool((rules[at].lower[a, b] > 0).any()) for at, a, b in parts if rules[at].price is None)

    def _new(self, which: int, a: IntArray, b: IntArray, low: bool) -> tuple[IntArray, IntArray]:
        """Those of some bounds that are tighter than those of their nodes."""
        if not self.size:
            return a, b
        line, kind = self.family.cell(which, a, b)
        key = line * self.family.n_classes + kind
        place = np.minimum(np.searchsorted(self.key, key), self.size - 1)
        lower, upper = self._bounds(which, a, b)
        loose = lower > self.lower[place] if low else upper < self.upper[place]
        new = (self.key[place] != key) | loose
        return a[new], b[new]

    def _bounds(self, which: int, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
        """Lower and upper bounds with locked pairs taken out."""
        rule, held = self.family.rules[which], _at(self._held[which], a, b)
        return np.maximum(rule.lower[a, b] - held, 0.0).astype(np.int64), (rule.upper[a, b] - held).astype(np.int64)

    def add(self, parts: Parts) -> None:
        """Lay out the nodes of some bounds."""
        key, lower, upper, source = [self.key], [self.lower], [self.upper], []
        for which, a, b in parts:
            line, kind = self.family.cell(which, a, b)
            key.append(line * self.family.n_classes + kind)
            low, high = self._bounds(which, a, b)
            lower.append(low)
            upper.append(high)
            source.append(np.column_stack([np.full(a.size, which, dtype=np.int64), a, b]))
        keys, lows, highs = np.concatenate(key), np.concatenate(lower), np.concatenate(upper)
        self.key, at_low = _firsts(keys, -lows)
        _, at_high = _firsts(keys, highs)
        self.lower, self.upper = lows[at_low], highs[at_high]
        self.low_from = np.concatenate([self.low_from, *source])[at_low]
        self.high_from = np.concatenate([self.high_from, *source])[at_high]

    def attached(self, lines: IntArray, others: IntArray) -> IntArray:
        """The smallest cell each pair of a line and a member of the other side lies in, -1 for none."""
        return self._smallest(lines, self._of_other, others)

    @property
    def parents(self) -> IntArray:
        """The smallest cell around each cell, -1 for none."""
        return self._smallest(self.line, self.family.within, self.kind)

    def _smallest(self, lines: IntArray, table: sparse.csr_array, rows: IntArray) -> IntArray:
        out = np.full(rows.size, -1, dtype=np.int64)
        if not self.size:
            return out
        first = table.indptr[rows].astype(np.int64)
        count = table.indptr[rows + 1] - first
        asked = np.repeat(np.arange(rows.size, dtype=np.int64), count)
        nth = np.arange(asked.size) - np.repeat(np.cumsum(count) - count, count)
        kind = table.indices[np.repeat(first, count) + nth]
        key = lines[asked] * self.family.n_classes + kind
        place = np.minimum(np.searchsorted(self.key, key), self.size - 1)
        found = np.flatnonzero(self.key[place] == key)
        of_pair, start = np.unique(asked[found], return_index=True)  # classes come by size, so the first is smallest
        out[of_pair] = place[found[start]]
        return out

    def tables(self, price: FloatArray) -> list[sparse.csr_array]:
        """Signed prices of the cells as price tables of the family's rules.

        Rounding leaves some that prove nothing and cost a lot: above 0 where there is no upper bound, or beyond what
        missing a unit costs. They are cut off; what that changes is counted with the pairs.
        """
        source = np.where((price > 0)[:, None], self.high_from, self.low_from)
        out = []
        for which, rule in enumerate(self.family.rules):
            at = np.flatnonzero((source[:, 0] == which) & (price != 0.0))
            where = source[at, 1], source[at, 2]
            most = np.inf if rule.price is None else rule.price
            mine = np.clip(price[at], -most, np.where(rule.upper[where] < NO_UPPER, most, 0.0))
            table = sparse.csr_array((mine, where), shape=rule.shape)
            table.eliminate_zeros()
            out.append(table)
        return out


def _firsts(keys: IntArray, rank: IntArray) -> tuple[IntArray, IntArray]:
    """Each key once, in order, and where it stands with the least rank."""
    order = np.lexsort((rank, keys))
    ordered = keys[order]
    first: NDArray[np.bool_] = np.ones(ordered.size, dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first], order[first]


def _at(table: sparse.csr_array, a: IntArray, b: IntArray) -> FloatArray:
    """Entries of a sparse array; scipy answers no places with a sparse array."""
    return np.asarray(table[a, b], dtype=np.float64).ravel() if a.size else np.empty(0)
