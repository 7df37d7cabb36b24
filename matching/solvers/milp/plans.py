"""Whole lawful plans one at a time: the best at given prices, and those of the face that given shares lie in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.objectives import Total
from matching.solvers.milp.linear import ArcLinear
from matching.solvers.milp.model import FREE, Program
from matching.solvers.milp.reading import COUNT, Reading
from matching.solvers.state import Capacity
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["BestPlan", "Plans", "WholePlan"]

TIGHT = 1e-9  # of the whole weight: bounds that shares lie this near to are met
ROUNDS = 100  # times the integer search is asked again because its plan broke rows that were not there


@dataclass(frozen=True, eq=False)
class WholePlan:
    """A plan that keeps loads and hard upper bounds.

    Attributes
    ----------
    taken : ndarray of int64
        Places of its pairs among the active ones; locked pairs aside.
    value : float
        Its total, locked pairs included, less what missed priced rules cost.
    cost : float
        What those cost.
    unfilled, below_min : ndarray, float64
        Missing reviews.
    missed : tuple
        As in `matching.solvers.base.Solution.rule_shortfall`.
    lacking : float
        Missing reviews and units of hard lower bounds.
    """

    taken: IntArray
    value: float
    cost: float
    unfilled: FloatArray
    below_min: FloatArray
    missed: tuple[Any, ...]
    lacking: float


@dataclass(frozen=True, eq=False)
class BestPlan:
    """The best plan at some prices.

    Attributes
    ----------
    plan : WholePlan
    top : float
        No plan within the active pairs is worth more.
    proven : bool
        Whether the search ended by itself.
    """

    plan: WholePlan
    top: float
    proven: bool


class Plans:
    """Plans within the active pairs of a program that has been solved for shares.

    Parameters
    ----------
    linear : ArcLinear
        In its phase "value"; it gets the rows that plans break.
    cap : Capacity
        Pairs whose cap is 0 are in no plan.

    Attributes
    ----------
    cap : ndarray of shape (n_active,), float64
    plain : ndarray of shape (n_active,), float64
        Scores.
    """

    def __init__(self, linear: ArcLinear, cap: Capacity) -> None:
        self.linear, state = linear, linear.state
        size = linear.x.size
        self.cap = np.asarray(cap(state.rows[:size], state.cols[:size]), dtype=np.float64)
        self.plain = state.plain[:size]

    def nothing(self) -> WholePlan:
        """The locked pairs alone."""
        return self._read(np.zeros(self.linear.x.size, dtype=bool))

    def of(self, pairs: PairArray) -> WholePlan:
        """A plan of which all but the locked pairs are active."""
        column = self.linear.columns_of(pairs)
        taken = np.zeros(self.linear.x.size, dtype=bool)
        taken[np.searchsorted(self.linear.x, column[column >= 0])] = True
        return self._read(taken)

    def best(
        self, worth: FloatArray, of_rules: float, of_lacking: float | None, ask: Callable[[], None] | None = None
    ) -> BestPlan | None:
        """The plan of the largest sum of `worth`, and a bound on that of all plans within the active pairs.

        Parameters
        ----------
        worth : ndarray of shape (n_active,), float64
        of_rules : float
            How often the price of a missed priced rule is taken off.
        of_lacking : float or None
            What a missing review or unit of a hard lower bound takes off; None where none may be missing.
        ask : callable, optional
            Called now and then; an exception stops the search and passes through.

        Returns
        -------
        BestPlan or None
            None at the limit, or where there is no plan.
        """
        linear = self.linear
        for _ in range(ROUNDS):
            if linear.clock.over:
                return None
            bounds = self._bounds(of_lacking is not None)
            cost = np.zeros(linear.model.n_cols)
            cost[linear.x[: worth.size]] = -worth
            cost[linear.priced_columns] = of_rules * linear.unit_prices
            cost[linear.lacking_columns] = of_lacking or 0.0
            with linear.clock.stage("integer"):
                answer = linear.model.solve_within(
                    cost, bounds, linear.x, 0.0, linear.clock.left, None if ask is None else lambda value, bound: ask()
                )
            if answer.values is None:
                return None
            taken = answer.values[linear.x] > 0.5
            if not linear.add_broken(taken.astype(np.float64), False):
                return BestPlan(self._read(taken), -answer.bound, answer.proven)
        return None

    def within(self, ask: Callable[[], None] | None = None) -> list[tuple[float, WholePlan]]:
        """Plans whose mixture are the program's shares, or part of them, with their weights.

        A plan of the least face that the shares lie in is taken off with as much weight as leaves shares that are
        lawful still; what is left lies in a smaller face (Caratheodory's theorem; for shares of plans Birkhoff, 1946).
        Where rules leave a face without a plan, that much weight is left over.
        """
        linear = self.linear
        whole = self._bounds(False)
        values = np.clip(linear.model.values, whole.lower, whole.upper)
        sums = whole.entries @ values
        out: list[tuple[float, WholePlan]] = []
        weight = 1.0
        while weight > 1e3 * TIGHT and not linear.clock.over:
            face = self._face(whole, values, sums, TIGHT / weight)
            cost = np.zeros(values.size)
            cost[linear.x] = -values[linear.x]
            with linear.clock.stage("integer"):
                answer = linear.model.solve_within(
                    cost, face, linear.x, 0.0, linear.clock.left, None if ask is None else lambda value, bound: ask()
                )
            if answer.values is None:
                break
            point = np.clip(answer.values, whole.lower, whole.upper)
            point[linear.x] = np.rint(point[linear.x])
            there = whole.entries @ point
            share = min(1.0, _reach(values, point, whole.lower, whole.upper),
                        _reach(sums, there, whole.row_lower, whole.row_upper))  # fmt: skip
            plan = self._read(point[linear.x] > 0.5)
            if share <= TIGHT or plan.lacking > COUNT:
                break
            if share >= 1.0 - TIGHT:
                out.append((weight, plan))
                break
            out.append((weight * share, plan))
            weight *= 1.0 - share
            values = np.clip((values - share * point) / (1.0 - share), whole.lower, whole.upper)
            sums = whole.entries @ values
        return out

    def _bounds(self, lacking: bool) -> Program:
        """Bounds of plans instead of shares under caps."""
        linear = self.linear
        found = linear.model.program()
        upper, row_upper = found.upper.copy(), found.row_upper.copy()
        columns, rows = linear.aside
        lower, row_lower = found.lower.copy(), found.row_lower.copy()
        lower[columns], upper[columns], row_lower[rows] = 0.0, 0.0, -FREE
        upper[linear.x] = 0.0  # pairs that came after the others are in no plan
        upper[linear.x[: self.cap.size]] = self.cap > 0.0
        upper[linear.lacking_columns] = linear.most_lacking if lacking else 0.0
        row_upper[linear.missing_row] = FREE
        return replace(found, lower=lower, upper=upper, row_lower=row_lower, row_upper=row_upper)

    def _face(self, whole: Program, values: FloatArray, sums: FloatArray, tight: float) -> Program:
        """The bounds that values and sums meet, as equations."""
        low, high = values - whole.lower <= tight, whole.upper - values <= tight
        row_low, row_high = sums - whole.row_lower <= tight, whole.row_upper - sums <= tight
        return Program(
            np.where(high & ~low, whole.upper, whole.lower), np.where(low, whole.lower, whole.upper),
            np.where(row_high & ~row_low, whole.row_upper, whole.row_lower),
            np.where(row_low, whole.row_lower, whole.row_upper), whole.entries,
        )  # fmt: skip

    def _read(self, taken: NDArray[np.bool_]) -> WholePlan:
        reading = Reading(self.linear, taken.astype(np.float64))
        return WholePlan(
            np.flatnonzero(taken), reading.value(Total()), reading.cost, reading.unfilled, reading.below_min,
            reading.missed, reading.lacking,
        )  # fmt: skip


def _reach(values: FloatArray, point: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """The largest t for which ``(values - t point) / (1 - t)`` lies between the bounds."""
    most = 1.0
    for room, against in ((values - lower, point - lower), (upper - values, upper - point)):
        on = np.isfinite(room) & np.isfinite(against) & (against > TIGHT)
        most = min(most, float((np.maximum(room[on], 0.0) / against[on]).min(initial=1.0)))
    return most
