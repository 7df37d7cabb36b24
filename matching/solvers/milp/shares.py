"""The best mixture of known plans under caps: the small linear program inside a column generation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from matching.solvers.clock import Clock
from matching.solvers.milp.model import FREE, Model
from matching.solvers.milp.plans import WholePlan
from matching.solvers.milp.squares import Tangents
from matching.types import FloatArray, IntArray

__all__ = ["Mixed", "Mixing"]

LEAST = 1e-12  # weights below it are none
CLOSE = 1e-7  # a cap this near to its limit, in the answer of the solver, is met
NEARLY = 1e-5  # weights that add up to 1 but for less are those of a mixture
EXACT = 2e-13  # how far a cap may be passed once the weights are solved for anew


@dataclass(frozen=True, eq=False)
class Mixed:
    """Weights of the plans and what they are worth.

    Attributes
    ----------
    weights : ndarray of shape (n_plans,), float64
        Not negative, sum 1.
    value : float
        Mean worth, less what the squares cost.
    prices : ndarray of shape (n_active,), float64
        What each pair costs a plan that would join: of its cap and of its square. Not negative.
    paid : float
        No mixture is worth more than the best plan at these prices, and this.
    base : float
        What a plan must be worth, less the prices of its pairs, to improve the mixture.
    """

    weights: FloatArray
    value: float
    prices: FloatArray
    paid: float
    base: float


class Mixing:
    """Weights of plans, no pair above its cap.

    Parameters
    ----------
    cap : ndarray of shape (n_active,), float64
    rng : int
    beta : float
        Price of the square of each pair's chance, 0 for none.
    """

    def __init__(self, cap: FloatArray, rng: int, beta: float = 0.0) -> None:
        self.cap, self.beta, self.plans = cap, beta, list[WholePlan]()
        self._columns: IntArray = np.empty(0, dtype=np.int64)
        self._known: set[bytes] = set()
        self._bound = np.flatnonzero(cap < 1.0)
        self._row = np.full(cap.size, -1, dtype=np.int64)
        self._row[self._bound] = np.arange(self._bound.size)
        self._model = Model(rng)
        self._model.add_rows(np.full(self._bound.size, -FREE), cap[self._bound])
        self._one = int(self._model.add_rows(np.ones(1), np.ones(1))[0])
        self._tangents = Tangents(self._model, beta) if beta > 0.0 else None

    def add(self, plan: WholePlan) -> bool:
        """Whether the plan is a new one."""
        key = plan.taken.tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        self.plans.append(plan)
        rows = np.append(self._limited(plan), self._one)
        data = np.ones(rows.size)
        if self._tangents is not None:
            mine = np.isin(self._tangents.of_row, plan.taken)
            rows = np.concatenate([rows, self._tangents.rows[mine]])
            data = np.concatenate([data, -2.0 * self._tangents.slope[mine]])
        column = sparse.coo_array((data, (rows, np.zeros(rows.size, dtype=np.int64))), shape=(self._model.n_rows, 1))
        new = self._model.add_cols(np.zeros(1), np.zeros(1), np.full(1, FREE), sparse.csc_array(column))
        self._columns = np.concatenate([self._columns, new])
        return True

    def of(self, parts: Sequence[tuple[float, WholePlan]]) -> Mixed | None:
        """A mixture that is known, its plans added; None where its weights do not add up, or caps are passed."""
        for _, plan in parts:
            self.add(plan)
        place = {plan.taken.tobytes(): at for at, plan in enumerate(self.plans)}
        weights = np.zeros(len(self.plans))
        for weight, plan in parts:
            weights[place[plan.taken.tobytes()]] += weight
        if abs(weights.sum() - 1.0) > NEARLY:
            return None
        weights = self._exact(weights / weights.sum())
        if self._beyond(weights) > EXACT:
            return None
        value = float(np.dot([plan.value for plan in self.plans], weights)) - self.squares(weights)
        return Mixed(weights, value, np.zeros(self.cap.size), math.inf, -math.inf)

    def best(self, worth: Sequence[float], use: Sequence[bool], clock: Clock, squared: bool = True) -> Mixed | None:
        """The mixture of the largest mean worth among the plans in `use`; None where there is none, or at the limit.

        `squared` says whether the squares, if they have a price, are taken off.
        """
        tangents = self._tangents if squared else None
        model, count = self._model, len(self.plans)
        worths = np.asarray(worth, dtype=np.float64)
        model.set_col_bounds(self._columns, np.zeros(count), np.where(np.asarray(use, dtype=bool), FREE, 0.0))
        while True:
            cost = np.zeros(model.n_cols)
            cost[self._columns] = -worths
            if tangents is not None:
                cost[tangents.columns] = self.beta
            model.set_costs(cost)
            if model.solve(clock.left) != "optimal":
                return None
            if tangents is None or not self._bend(tangents):
                break
        prices = np.zeros(self.cap.size)
        prices[self._bound] = np.maximum(-model.duals[: self._one], 0.0)
        paid = float(prices @ self.cap)
        if tangents is not None:
            anchor = tangents.anchor(self.cap.size)
            prices += 2.0 * self.beta * anchor
            paid += self.beta * float(anchor @ anchor)
        base = -float(model.duals[self._one])
        weights = self._exact(np.maximum(model.values[self._columns], 0.0))
        squares = self.squares(weights) if squared else 0.0
        return Mixed(weights, float(worths @ weights) - squares, prices, paid, base)

    def squares(self, weights: FloatArray) -> float:
        """What the squares of the pairs' chances cost."""
        chance = self.chances(weights) if self.beta > 0.0 else np.zeros(0)
        return self.beta * float(chance @ chance)

    def _bend(self, tangents: Tangents) -> bool:
        """Add the tangents that the present weights lie above; whether there were any."""
        weights = np.maximum(self._model.values[self._columns], 0.0)
        chance = self.chances(weights)
        which = tangents.broken(chance, self._model.value)
        if not which.size:
            return False
        place = np.full(self.cap.size, -1, dtype=np.int64)
        place[which] = np.arange(which.size)
        rows, cols = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for plan, column in zip(self.plans, self._columns.tolist(), strict=True):
            at = place[plan.taken]
            at = at[at >= 0]
            rows.append(at)
            cols.append(np.full(at.size, column))
        where = (np.concatenate(rows), np.concatenate(cols))
        parts = sparse.coo_array((np.ones(where[0].size), where), shape=(which.size, self._model.n_cols))
        tangents.add(which, chance[which], sparse.csr_array(parts))
        return True

    def chances(self, weights: FloatArray) -> FloatArray:
        """How likely each active pair is, float64 of shape (n_active,)."""
        out = np.zeros(self.cap.size)
        for plan, weight in zip(self.plans, weights.tolist(), strict=True):
            if weight > 0.0:
                out[plan.taken] += weight
        return out

    def _exact(self, weights: FloatArray) -> FloatArray:
        """The weights solved for anew from the caps they meet: a solver meets caps to its tolerance only."""
        weights = np.where(weights > LEAST, weights, 0.0)
        on = np.flatnonzero(weights)
        chance = self.chances(weights)
        near = self._row[(chance > self.cap - CLOSE) & (self._row >= 0)]
        place = np.full(self._one, -1, dtype=np.int64)
        place[near] = np.arange(near.size)
        table = np.zeros((near.size + 1, on.size))
        for column, plan in enumerate(on.tolist()):
            rows = place[self._limited(self.plans[plan])]
            table[rows[rows >= 0], column] = 1.0
        table[-1] = 1.0
        right = np.append(self.cap[self._bound[near]], 1.0)
        now = weights[on]
        for _ in range(3):  # the second and third time correct the rounding of the first
            now = now + np.linalg.lstsq(table, right - table @ now, rcond=None)[0]
        out = np.zeros(weights.size)
        out[on] = np.maximum(now, 0.0)
        out /= out.sum()
        return out if self._beyond(out) <= max(EXACT, self._beyond(weights)) else weights / weights.sum()

    def _beyond(self, weights: FloatArray) -> float:
        return float((self.chances(weights) - self.cap).max(initial=0.0))

    def _limited(self, plan: WholePlan) -> IntArray:
        rows = self._row[plan.taken]
        return rows[rows >= 0]
