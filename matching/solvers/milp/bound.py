"""Weak duality over all pairs: what any numbers prove, whoever found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.linearised import rule_terms
from matching.solvers.milp.linear import ArcLinear, Raw
from matching.types import FloatArray

__all__ = ["Certificate", "certificate"]


@dataclass(frozen=True, eq=False)
class Certificate:
    """Cleaned prices and the bound they prove; see `matching.solvers.base.Proof`."""

    weights: FloatArray
    multipliers: tuple[tuple[float, FloatArray], ...]
    raw: Raw
    """Its pull is weights + sum of k * z."""
    level: float
    """conjugate(weights) + sum of k * (g.conjugate(z) - c)."""

    def bound(
        self, linear: ArcLinear, unfilled: FloatArray, below_min: FloatArray, rule_shortfall: Sequence[Any]
    ) -> float:
        """No lawful shares that miss as much in all, and as much of each hard upper bound by locks, are worth more.

        Formula: level + locked part + sum over rows of (d - e) u + e (u + penalty), over columns the same with
        load_max, load_min, plus what rule prices pay in, each missed unit at its price, plus all excesses, each times
        the cap of its pair.
        """
        state = linear.state
        problem = state.problem
        u, w, penalty = self.raw.u, self.raw.w, self.raw.penalty
        _, _, paid = rule_terms(problem.rules, self.raw.rule_prices, problem.shape)
        scores = linear.linearised(self.raw)
        locked = problem.locked
        left, right = linear.closing(u, w, scores)
        pairs, excess, _ = scores.exceeding(left, right, 0.0, None, state.closed)
        if linear.cap is not None:
            excess = excess * linear.cap(pairs[:, 0], pairs[:, 1])
        demand = linear.demand
        u = np.where(demand > 0, u, 0.0)
        w = np.where(state.load_max > 0, w, 0.0)
        below = np.maximum(-w, 0.0)
        owed = sum(
            _owed(rule, price, missed, penalty)
            for rule, price, missed in zip(problem.rules, self.raw.rule_prices, rule_shortfall, strict=True)
        )
        return float(
            self.level
            + linear.constant
            + scores.linear(locked[:, 0], locked[:, 1], state.held).sum()
            + ((demand - unfilled) * u + unfilled * (u + penalty)).sum()
            + state.load_max @ np.maximum(w, 0.0)
            + (below_min * (penalty - below) - (state.load_min - below_min) * below).sum()
            + (paid + owed)
            + excess.sum()
        )


def _owed(rule: Any, price: Any, missed: Any, penalty: float) -> float:
    """What missing a hard rule may gain: the penalty for a unit below, the price for one above that locks force."""
    if rule.price is not None:
        return 0.0
    if sparse.issparse(missed):
        units = sparse.csr_array(missed)
        above = units.maximum(0.0).multiply(sparse.csr_array(price))
        return float(above.sum()) - penalty * float(units.minimum(0.0).sum())
    each = np.asarray(missed, dtype=np.float64)
    above_each = np.maximum(each, 0.0)
    gained = float(np.asarray(price) @ above_each) if above_each.any() else 0.0
    return gained - penalty * float(np.minimum(each, 0.0).sum())


def certificate(
    linear: ArcLinear, raw: Raw, sums: FloatArray, infeasible: Raw | None = None, factor: float = 0.0
) -> Certificate:
    """Numbers of the last linear solve, cleaned so that every conjugate is finite and every price lawful.

    Parameters
    ----------
    raw : Raw
        Of the phase "value", the model's last solve.
    sums : ndarray of shape (n_submissions,), float64
        Where a wish without a price takes its weights from.
    infeasible : Raw or None
        Prices of the fewest missing reviews; `factor` times them are added, so that the prices also prove what is
        missing.
    """
    duals = linear.model.duals
    measure = linear.measure
    if measure.direct is not None:
        weights = measure.direct.copy()
    else:
        k, z = measure.multiplier(duals, sums)
        # the duals of the measure's rows sum to one, up to the solver's tolerance; a shortfall's may sum to less
        weights = z if k > 0.0 else measure.measure.weights(sums)
    multipliers = tuple(wish.multiplier(duals, sums) for wish in linear.wishes)
    pull = weights.copy()
    level = measure.measure.conjugate(weights)
    for wish, (k, z) in zip(linear.wishes, multipliers, strict=True):
        pull += k * z
        level += k * (wish.measure.conjugate(z) - (wish.least or 0.0)) if k > 0.0 else 0.0
    u, w, prices, penalty = raw.u, raw.w, raw.rule_prices, raw.penalty
    if infeasible is not None and factor > 0.0:
        u, w = u + factor * infeasible.u, w + factor * infeasible.w
        prices = tuple(mine + factor * theirs for mine, theirs in zip(prices, infeasible.rule_prices, strict=True))
        penalty = penalty + factor
    return Certificate(weights, multipliers, Raw(pull, u, w, prices, penalty), level)
