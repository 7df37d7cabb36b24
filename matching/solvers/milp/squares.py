"""Shares with a price on their squares, by tangents: columns t_pr with rows ``t >= 2 a x - a^2``.

A tangent joins where the present share lies above all those of its pair (Kelley, 1960). The duals of a pair's tangents
sum to at most beta; their mean slope, the anchor, gives a bound that needs no tangents: with a for the anchor,
``beta x^2 >= 2 beta a x - beta a^2`` whatever x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.linearised import Linearised, rule_terms
from matching.solvers.milp.linear import ArcLinear, Raw
from matching.solvers.milp.model import FREE, Model
from matching.types import FloatArray, IntArray

__all__ = ["SquaredLinear", "Tangents"]

CLOSE = 1e-6  # relative to the value: what all squares together may lie above their tangents


class Tangents:
    """Columns and rows for the squares of some numbers.

    Parameters
    ----------
    model : Model
    beta : float
        Price of a square, > 0.
    """

    def __init__(self, model: Model, beta: float) -> None:
        self.model, self.beta = model, beta
        self.columns: IntArray = np.empty(0, dtype=np.int64)
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        self.which: IntArray = np.empty(0, dtype=np.int64)  # of each column the number it belongs to
        self.of_row: IntArray = np.empty(0, dtype=np.int64)  # of each row its number
        self.slope: FloatArray = np.empty(0)

    def broken(self, numbers: FloatArray, size: float) -> IntArray:
        """Whose squares lie too far above their tangents; none where all together do not, relative to `size`."""
        below = np.zeros(numbers.size)
        below[self.which] = self.model.values[self.columns]
        above = np.maximum(numbers**2 - below, 0.0)
        allowed = CLOSE * max(1.0, abs(size)) / self.beta
        if above.sum() <= allowed:
            return np.empty(0, dtype=np.int64)
        return np.flatnonzero(above > 0.5 * allowed / max(1, int((above > 0.0).sum())))

    def add(self, which: IntArray, at: FloatArray, parts: sparse.csr_array) -> None:
        """A tangent at `at` for each of the numbers, which are ``parts @ columns`` of the model."""
        fresh = np.setdiff1d(which, self.which)
        if fresh.size:
            new = self.model.add_cols(np.full(fresh.size, self.beta), np.zeros(fresh.size), np.full(fresh.size, FREE))
            self.columns = np.concatenate([self.columns, new])
            self.which = np.concatenate([self.which, fresh])
        order = np.argsort(self.which)
        column = self.columns[order][np.searchsorted(self.which[order], which)]
        here = np.arange(which.size)
        tall = sparse.coo_array((np.ones(which.size), (here, column)), shape=(which.size, self.model.n_cols))
        wide = sparse.coo_array(sparse.csr_array(sparse.diags_array(-2.0 * at)) @ parts)
        wide = sparse.coo_array((wide.data, wide.coords), shape=(which.size, self.model.n_cols))
        ids = self.model.add_rows(-(at**2), np.full(which.size, FREE), sparse.csr_array(tall + wide))
        self.rows = np.concatenate([self.rows, ids])
        self.of_row = np.concatenate([self.of_row, which])
        self.slope = np.concatenate([self.slope, at])

    def anchor(self, size: int) -> FloatArray:
        """The mean slope of each of `size` numbers by the duals of the last solve, float64."""
        weight = np.maximum(self.model.duals[self.rows], 0.0)
        summed = np.bincount(self.of_row, weights=weight, minlength=size)
        mean = np.bincount(self.of_row, weights=weight * self.slope, minlength=size)
        return np.asarray(mean / np.maximum(summed, self.beta), dtype=np.float64)


class SquaredLinear(ArcLinear):
    """The program for shares with `beta` times their squares taken off; parameters as of `ArcRows`, with beta > 0.

    Locked pairs have a square of 1.
    """

    def __init__(self, *args: Any, beta: float) -> None:
        self.beta = beta
        self._tangents: Tangents | None = None
        super().__init__(*args)

    @property
    def tangents(self) -> Tangents:
        """Of the active pairs."""
        if self._tangents is None:
            self._tangents = Tangents(self.model, self.beta)
        return self._tangents

    @property
    def aside(self) -> tuple[IntArray, IntArray]:
        return self.tangents.columns, self.tangents.rows

    def add_broken(self, share: FloatArray, with_wishes: bool = True, levels: Sequence[float] | None = None) -> bool:
        if super().add_broken(share, with_wishes, levels):
            return True
        if self.phase != "value" or levels is not None or not with_wishes:
            return False
        which = self.tangents.broken(share, self.model.value)
        if which.size:
            each = np.arange(which.size)
            parts = sparse.coo_array((np.ones(which.size), (each, self.x[which])), (which.size, self.model.n_cols))
            self.tangents.add(which, share[which], sparse.csr_array(parts))
        return bool(which.size)

    def anchor(self) -> sparse.csr_array:
        """The anchor by pair, of the problem's shape, locked pairs with 1."""
        state, locked = self.state, self.state.problem.locked
        mean = self.tangents.anchor(self.x.size)
        on = np.flatnonzero(mean)
        at = (np.concatenate([locked[:, 0], state.rows[on]]), np.concatenate([locked[:, 1], state.cols[on]]))
        data = np.concatenate([np.ones(len(locked)), mean[on]])
        return sparse.csr_array(sparse.coo_array((data, at), shape=state.problem.shape))

    @property
    def constant(self) -> float:
        return self.beta * float((self.anchor().data ** 2).sum())

    def linearised(self, raw: Raw) -> Linearised:
        if self.phase != "value":
            return super().linearised(raw)
        problem = self.state.problem
        groups, terms, _ = rule_terms(problem.rules, raw.rule_prices, problem.shape)
        return Linearised(problem.scores, raw.pull, sparse.csr_array(terms - 2.0 * self.beta * self.anchor()), groups)

    def _also_cost(self, cost: FloatArray) -> None:
        if self.phase == "value":
            cost[self.tangents.columns] = self.beta
