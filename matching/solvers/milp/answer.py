"""What a program on the active pairs answers: shares of pairs and the numbers that prove them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matching.objectives import Measure
from matching.pairs import in_row_order
from matching.solvers.base import Proof, frozen
from matching.solvers.stated import bound_and_gap
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["ArcAnswer"]


@dataclass(frozen=True, eq=False)
class ArcAnswer:
    """The best shares found and a bound on all lawful ones.

    Attributes
    ----------
    measure : Measure
    constraints : tuple of (Measure, float)
        As asked.
    rows, cols : ndarray of shape (n,), int64
        Pairs that carry something, locked ones first; empty where no plan was found.
    share : ndarray of shape (n,), float64
        (0, 1]; 1 throughout for a plan.
    score : ndarray of shape (n,), float64
        Plain scores, 0 for a locked pair of unknown score.
    sums : ndarray of shape (n_submissions,), float64
    value : float
        f(U) less what missed priced rules cost; -inf where there is no plan.
    cost : float
        What missed priced rules cost.
    bound : float
        No lawful plan that keeps the constraints and misses as little has a larger value: recomputed over all pairs
        from the prices below, whatever the solver's tolerances did. inf where the limit came before any.
    weights, multipliers, u, w, rule_prices, penalty
        As in `matching.solvers.base.Proof`.
    unfilled, below_min : ndarray, int64
        Missing reviews; of fractional shares rounded up.
    rule_shortfall : tuple
        As in `matching.solvers.base.Solution`.
    feasible : bool
        Whether every demand, load_min and hard rule is met.
    kept : bool
        Whether the constraints hold. Where False no plan holds them if `proven`, and there are no pairs.
    proven : bool
        No limit cut the search short. For shares: optimal over all pairs. For a plan: the integer search ended, see
        `meta`. Where something is missing: no plan misses less.
    lacking : float
        Reviews and units of hard lower bounds missed, together.
    meta : dict
        rounds, active_pairs, rows; integer_bound (the integer solver's own, on the pairs it saw); exact (whether no
        pair was left out that a better plan could use); proven_by ("prices", or "enumeration by the integer solver"
        where shares could do what plans cannot).
    """

    measure: Measure
    constraints: tuple[tuple[Measure, float], ...]
    rows: IntArray
    cols: IntArray
    share: FloatArray
    score: FloatArray
    sums: FloatArray
    value: float
    cost: float
    bound: float
    weights: FloatArray
    multipliers: tuple[tuple[float, FloatArray], ...]
    u: FloatArray
    w: FloatArray
    rule_prices: tuple[Any, ...]
    penalty: float
    unfilled: IntArray
    below_min: IntArray
    rule_shortfall: tuple[Any, ...]
    feasible: bool
    kept: bool
    proven: bool
    lacking: float
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        """Whether there are shares at all."""
        return bool(np.isfinite(self.value))

    @property
    def pairs(self) -> PairArray:
        """The pairs, int64 of shape (n, 2), in row order."""
        return in_row_order(np.column_stack([self.rows, self.cols]))

    @property
    def gap(self) -> float:
        """``max(0, bound - value)``, 0 below the rounding of sums."""
        return bound_and_gap(self.value, self.bound)[1]

    def proof(self, wish: Mapping[str, Any], value: float | None = None) -> Proof:
        """The numbers as a Proof, of the value of another plan where one is given."""
        mine = self.value if value is None else value
        bound, gap = bound_and_gap(mine, self.bound)
        return Proof(
            wish=wish, value=mine, bound=bound, gap=gap, measure=self.measure,
            constraints=self.constraints, weights=frozen(self.weights), multipliers=self.multipliers,
            submission_prices=frozen(self.u), reviewer_prices=frozen(self.w), rule_prices=self.rule_prices,
            penalty=self.penalty,
        )  # fmt: skip
