"""Rules as rows of a program: which of them a plan breaks, their entries for given pairs, prices from their duals.

A rule may stand for millions of rows (every submission times every institution); only those that some solution on
the way broke become rows of the program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import NO_UPPER, Bound, GroupBound, PairLimit
from matching.types import FloatArray, IntArray

__all__ = ["BROKEN", "GroupRows", "LimitRows", "RuleRows"]

BROKEN = 1e-9  # counts this far beyond a bound break it


class RuleRows(ABC):
    """The rows of one rule that a program has so far.

    Attributes
    ----------
    rule : Bound
    keys : ndarray of int64
        Numbers of the constraints that are rows, in the order they came.
    row_ids : ndarray of int64
        The program's row of each.
    """

    rule: Bound

    def __init__(self, held: sparse.csr_array) -> None:
        self.held = held
        self.keys: IntArray = np.empty(0, dtype=np.int64)
        self.row_ids: IntArray = np.empty(0, dtype=np.int64)

    @abstractmethod
    def broken(self, taken: sparse.csr_array) -> IntArray:
        """Constraints that shares of pairs (locked ones included) break and that are no rows yet."""

    @abstractmethod
    def breakable(self, active: sparse.csr_array) -> IntArray:
        """Constraints that some plan within the pairs `active` (1 each, locked ones included) could break."""

    @abstractmethod
    def limits(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds after locked pairs, -inf and inf for none; hard ones locks break are widened."""

    @abstractmethod
    def entries(self, keys: IntArray, rows: IntArray, cols: IntArray) -> sparse.coo_array:
        """Coefficients of the pairs in these constraints, shape (n_keys, n_pairs)."""

    @abstractmethod
    def shortfall(self, taken: sparse.csr_array) -> Any:
        """Units beyond each bound, positive above and negative below, as in `Solution.rule_shortfall`."""

    @abstractmethod
    def prices(self, duals: FloatArray, most: float) -> Any:
        """What `rule_terms` takes, from the duals of this rule's rows; no unit of a lower bound above `most`."""

    def above(self, taken: sparse.csr_array) -> bool:
        """Whether an upper bound is passed by more than locked pairs alone do."""
        mine, forced = (
            part.maximum(0.0) if sparse.issparse(part) else np.maximum(part, 0.0)
            for part in (self.shortfall(taken), self.shortfall(self.held))
        )
        return bool((mine - forced).max() > BROKEN) if 0 not in mine.shape else False

    @property
    def hard(self) -> bool:
        """Whether it has no price."""
        return self.rule.price is None

    def ceiling(self, most: float) -> float:
        """Highest price a unit can have: its own, or that of a missing review."""
        return most if self.rule.price is None else self.rule.price


class GroupRows(RuleRows):
    """Rows of a GroupBound, numbered a * n_b + b."""

    def __init__(self, rule: GroupBound, held: sparse.csr_array) -> None:
        super().__init__(held)
        self.rule: GroupBound = rule
        self._left = rule.submissions
        self._right = rule.reviewers
        low = np.broadcast_to(rule.lower, rule.shape)
        # a sum over a broadcast view costs one entry an axis only where numpy is told so
        uniform = not any(low.strides)
        self._needed = (
            np.empty(0, dtype=np.int64)
            if not low.size or (uniform and low.flat[0] <= 0)
            else np.flatnonzero((low > 0).ravel())
        )
        self._low = low[np.divmod(self._needed, rule.shape[1])]
        self._locked = rule.counts(held)

    def broken(self, taken: sparse.csr_array) -> IntArray:
        count = sparse.coo_array(self.rule.counts(taken))
        high = count.data > self.rule.upper[count.coords] + BROKEN * np.maximum(1.0, self.rule.upper[count.coords])
        above = count.coords[0][high].astype(np.int64) * self.rule.shape[1] + count.coords[1][high]
        below = np.empty(0, dtype=np.int64)
        if self._needed.size:
            below = self._needed[_at(count, self._needed) < self._low - BROKEN * np.maximum(1.0, self._low)]
        return np.setdiff1d(np.concatenate([above, below]), self.keys)

    def breakable(self, active: sparse.csr_array) -> IntArray:
        return np.union1d(self.broken(active), np.setdiff1d(self._needed, self.keys))

    def limits(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        at = np.divmod(keys, self.rule.shape[1])
        locked = _at(sparse.coo_array(self._locked), keys)
        low, high = self.rule.lower[at], self.rule.upper[at]
        if self.hard:
            high = np.maximum(high, locked)
        return np.where(low > 0, low - locked, -np.inf), np.where(high < NO_UPPER, high - locked, np.inf)

    def entries(self, keys: IntArray, rows: IntArray, cols: IntArray) -> sparse.coo_array:
        a, b = np.divmod(keys, self.rule.shape[1])
        if not keys.size or not rows.size:
            return sparse.coo_array((keys.size, rows.size))
        left = sparse.csc_array(self._left[a])[:, rows]
        right = sparse.csc_array(self._right[b])[:, cols]
        return sparse.coo_array(left.multiply(right))

    def shortfall(self, taken: sparse.csr_array) -> sparse.csr_array:
        count = sparse.coo_array(self.rule.counts(taken))
        high = self.rule.upper[count.coords]
        over = np.where(high < NO_UPPER, count.data - high, 0.0)
        over[over <= BROKEN * np.maximum(1.0, high)] = 0.0
        out = sparse.coo_array((over, count.coords), shape=self.rule.shape)
        if self._needed.size:
            short = _at(count, self._needed) - self._low
            short[short >= -BROKEN * np.maximum(1.0, self._low)] = 0.0
            out = out + sparse.coo_array((short, np.divmod(self._needed, self.rule.shape[1])), shape=self.rule.shape)
        table = sparse.csr_array(out)
        table.eliminate_zeros()
        return table

    def prices(self, duals: FloatArray, most: float) -> sparse.coo_array:
        at = np.divmod(self.keys, self.rule.shape[1])
        price = -duals[self.row_ids]
        price = np.where(price > 0, np.minimum(price, np.inf if self.hard else self.ceiling(most)), price)
        price = np.maximum(price, -self.ceiling(most))
        price[(price > 0) & (self.rule.upper[at] >= NO_UPPER) | (price < 0) & (self.rule.lower[at] <= 0)] = 0.0
        on = price != 0
        return sparse.coo_array((price[on], (at[0][on], at[1][on])), shape=self.rule.shape)


class LimitRows(RuleRows):
    """Rows of a PairLimit."""

    def __init__(self, rule: PairLimit, held: sparse.csr_array) -> None:
        super().__init__(held)
        self.rule: PairLimit = rule
        width = held.shape[1]
        key = rule.pairs[:, 0] * width + rule.pairs[:, 1]
        order = np.argsort(key, kind="stable")
        self._key, self._which, self._width = key[order], rule.which[order], width
        self._locked = self._counts(held)

    def _counts(self, taken: sparse.csr_array) -> FloatArray:
        pairs = self.rule.pairs
        share = np.asarray(taken[pairs[:, 0], pairs[:, 1]]).ravel() if len(pairs) else np.empty(0)
        return np.bincount(self.rule.which, weights=share, minlength=len(self.rule.upper)).astype(np.float64)

    def broken(self, taken: sparse.csr_array) -> IntArray:
        return np.setdiff1d(np.flatnonzero(self._counts(taken) > self.rule.upper + BROKEN), self.keys)

    def breakable(self, active: sparse.csr_array) -> IntArray:
        return self.broken(active)

    def limits(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        high = self.rule.upper[keys].astype(np.float64)
        if self.hard:
            high = np.maximum(high, self._locked[keys])
        return np.full(keys.size, -np.inf), high - self._locked[keys]

    def entries(self, keys: IntArray, rows: IntArray, cols: IntArray) -> sparse.coo_array:
        place = np.full(len(self.rule.upper), -1, dtype=np.int64)
        place[keys] = np.arange(keys.size)
        asked = rows * self._width + cols
        first, last = np.searchsorted(self._key, asked), np.searchsorted(self._key, asked, side="right")
        count = last - first
        pair = np.repeat(np.arange(rows.size), count)
        at = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count) + np.arange(count.sum())
        row = place[self._which[at]]
        on = row >= 0
        return sparse.coo_array((np.ones(int(on.sum())), (row[on], pair[on])), shape=(keys.size, rows.size))

    def shortfall(self, taken: sparse.csr_array) -> FloatArray:
        over = self._counts(taken) - self.rule.upper
        return np.where(over > BROKEN, over, 0.0)

    def prices(self, duals: FloatArray, most: float) -> FloatArray:
        out = np.zeros(len(self.rule.upper))
        out[self.keys] = np.maximum(-duals[self.row_ids], 0.0)
        return out if self.hard else np.minimum(out, self.ceiling(most))


def _at(table: sparse.coo_array, keys: IntArray) -> FloatArray:
    """Entries of a table at row-major numbers; 0 where nothing is stored. Repeats must have been summed."""
    width = table.shape[1]
    mine = table.coords[0].astype(np.int64) * width + table.coords[1]
    order = np.argsort(mine, kind="stable")
    mine, data = mine[order], table.data[order]
    if not mine.size:
        return np.zeros(keys.size)
    at = np.minimum(np.searchsorted(mine, keys), mine.size - 1)
    found: NDArray[np.bool_] = mine[at] == keys
    return np.where(found, data[at], 0.0)
