"""What shares of pairs give and miss, counted from the shares alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.objectives import Measure
from matching.solvers.milp.linear import ArcLinear
from matching.types import FloatArray

__all__ = ["COUNT", "Reading", "whole"]

WHOLE = 1e-6  # shares this near to 0 or 1 are
COUNT = 1e-6  # units missing below this are none


class Reading:
    """Counts of shares of the active pairs, locked pairs included.

    Parameters
    ----------
    linear : ArcLinear
    share : ndarray of shape (n,), float64
        Of the program's pairs, [0, 1].

    Attributes
    ----------
    sums : ndarray of shape (n_submissions,), float64
    unfilled, below_min : ndarray, float64
        Missing reviews.
    missed : tuple
        For each rule as in `matching.solvers.base.Solution.rule_shortfall`.
    cost : float
        What missed priced rules cost.
    lacking : float
        Missing reviews and units below hard lower bounds.
    forced : bool
        Whether the locked pairs alone pass the upper bound of a hard rule.
    """

    def __init__(self, linear: ArcLinear, share: FloatArray) -> None:
        self.linear, self.share = linear, share
        state, (n_submissions, n_reviewers) = linear.state, linear.state.problem.shape
        rows, cols = state.rows[: share.size], state.cols[: share.size]
        self.sums = linear.sums(share)
        received: FloatArray = np.bincount(rows, weights=share, minlength=n_submissions).astype(np.float64)
        self.load: FloatArray = np.bincount(cols, weights=share, minlength=n_reviewers).astype(np.float64)
        self.unfilled = _above(linear.demand - received)
        self.below_min = _above(state.load_min - self.load)
        self._taken = linear.taken(share) if linear.rules else None
        self.missed: tuple[Any, ...] = tuple(rule.shortfall(self._taken) for rule in linear.rules)
        self.cost, short, self.forced = 0.0, 0.0, False
        for rule, missed in zip(linear.rules, self.missed, strict=True):
            units = _units(missed)
            if rule.rule.price is not None:
                self.cost += rule.rule.price * float(np.abs(units).sum())
            else:
                short += float(np.maximum(-units, 0.0).sum())
                self.forced |= bool(_units(rule.shortfall(rule.held)).max(initial=0.0) > 0.0)
        self.lacking = float(self.unfilled.sum() + self.below_min.sum() + short)

    def value(self, measure: Measure) -> float:
        """The measure less the cost."""
        return measure.value(self.sums) - self.cost

    @property
    def kept(self) -> bool:
        """Whether every earlier wish holds."""
        return all(wish.reached(self.sums) for wish in self.linear.wishes)

    @property
    def lawful(self) -> bool:
        """Whether loads and hard upper bounds hold, as far as locked pairs let them, and no more than allowed lacks."""
        state = self.linear.state
        if (self.load > np.maximum(state.load_max, state.load_min) + COUNT).any():
            return False
        if self.lacking > self.linear.missing + COUNT:
            return False
        return not any(rule.hard and rule.above(self._taken) for rule in self.linear.rules if self._taken is not None)


def whole(share: FloatArray) -> NDArray[np.bool_] | None:
    """Shares that are a plan, as one; None if they are none."""
    taken: NDArray[np.bool_] = share > 0.5
    return taken if (np.abs(share - taken) <= WHOLE).all() else None


def _above(lack: FloatArray) -> FloatArray:
    return np.where(lack > COUNT, lack, 0.0)


def _units(missed: Any) -> FloatArray:
    return np.asarray(missed.data if sparse.issparse(missed) else missed, dtype=np.float64)
