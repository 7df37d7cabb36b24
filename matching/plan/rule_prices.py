"""Prices of rules: what they pay, how far they may go, and what they say about what is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit
from matching.plan.facts import Missed, compact, entries
from matching.types import FloatArray

__all__ = [
    "PRICE_ROUNDING", "counts_whole", "level_of", "no_rule_prices", "paid_by", "rule_levels", "rule_price_faults",
]  # fmt: skip

PRICE_ROUNDING = 1e-9  # relative; prices at a limit may pass it by the rounding of floats


def paid_by(rule: Bound, given: Any, miss: Missed, penalty: float) -> float:
    """``sum of price * bound`` of a rule, with units missed below a hard bound paid at the penalty.

    Locks may exceed a hard upper bound; it is then what they need. The cost of a priced rule counts from its own bound.
    """
    hard = rule.price is None
    elastic = penalty * miss.below if hard else 0.0
    if isinstance(rule, GroupBound):
        price = sparse.coo_array(given)
        if not price.nnz:
            return elastic
        forced = entries(miss.forced, *price.coords) if hard and miss.forced.nnz else 0.0
        limit = np.where(price.data > 0, rule.upper[price.coords] + forced, rule.lower[price.coords])
        return elastic + float((price.data * limit).sum())
    if isinstance(rule, PairLimit):
        upper = rule.upper + miss.forced if hard else rule.upper
        return elastic + float(np.asarray(given, dtype=np.float64) @ upper)
    whole = sparse.csr_array(given)[:, [-1]].toarray().ravel()
    return elastic - float(whole @ rule.least)


def counts_whole(rule: Bound) -> bool:
    if not isinstance(rule, GroupBound) or rule.price is not None:
        return True
    weights, lower = rule.submissions.data, compact(rule.lower)
    return bool((weights == np.floor(weights)).all() and (lower == np.floor(lower)).all())


def rule_levels(rules: Sequence[Bound], given: Sequence[Any], penalty: float, parts: int | None) -> tuple[Any, ...]:
    """Prices over the penalty, as prices of "lack as little as possible"; priced rules have none there.

    Parameters
    ----------
    parts : int or None
        Rounds to multiples of ``1 / parts``; None for no rounding.
    """
    kept: list[Any] = []
    for rule, price in zip(rules, given, strict=True):
        free = rule.price is not None
        if isinstance(rule, PairLimit):
            kept.append(np.zeros(rule.shape) if free else level_of(price, penalty, parts, 0.0))
            continue
        table = sparse.csr_array(price, dtype=np.float64, copy=True)
        table.data = np.zeros(table.nnz) if free else level_of(table.data, penalty, parts, -1.0)
        if not isinstance(rule, GroupBound) and not free:
            wide = table.toarray()
            wide[:, -1] = np.minimum(wide[:, -1], 1.0)
            wide[:, :-1] = np.clip(wide[:, :-1], 0.0, wide[:, [-1]])
            table = sparse.csr_array(wide)
        kept.append(table)
    return tuple(kept)


def level_of(values: FloatArray, penalty: float, parts: int | None, least: float) -> FloatArray:
    """Values over the penalty, rounded to parts, none below `least`."""
    share = np.asarray(values, dtype=np.float64) / penalty
    share = np.rint(share * parts) / parts if parts else share
    return np.maximum(share, least)


def no_rule_prices(rules: Sequence[Bound], n_reviewers: int) -> tuple[Any, ...]:
    """Prices of 0 for every rule, in the shapes `rule_terms` takes."""
    return tuple(
        np.zeros(rule.shape)
        if isinstance(rule, PairLimit)
        else sparse.csr_array(rule.shape if isinstance(rule, GroupBound) else (rule.shape[0], n_reviewers + 1))
        for rule in rules
    )


def rule_price_faults(
    rules: Sequence[Bound], given: Sequence[Any], n_reviewers: int, dearest: float, penalty: float | None
) -> list[str]:
    """What keeps rule prices from proving anything: shapes, signs, and prices above what missing a rule costs.

    Parameters
    ----------
    n_reviewers : int
    dearest : float
        How often the bounded total counts the cost of priced rules: 1 for the total itself.
    penalty : float or None
        What a unit missing to a hard lower bound costs; None for plans that miss nothing.
    """
    if len(given) != len(rules):
        return [f"{len(given)} rules have prices, the problem has {len(rules)}"]
    faults = []
    for rule, price in zip(rules, given, strict=True):
        wanted = rule.shape if isinstance(rule, GroupBound | PairLimit) else (rule.shape[0], n_reviewers + 1)
        if getattr(price, "shape", None) != wanted or sparse.issparse(price) != (len(wanted) == 2):
            faults.append(f"prices of rule {rule.name} have another shape than its classes")
            continue
        values = np.asarray(price.data if sparse.issparse(price) else price, dtype=np.float64)
        if not np.isfinite(values).all():
            faults.append(f"a price of rule {rule.name} is not finite")
            continue
        if rule.price is not None:
            most_above = most_below = dearest * rule.price
        else:
            most_above, most_below = math.inf, (math.inf if penalty is None else penalty)
        slack = 1.0 + PRICE_ROUNDING
        if isinstance(rule, GroupBound):
            faults += _beyond(rule, values, most_below * slack, most_above * slack)
        elif isinstance(rule, PairLimit):
            faults += _beyond(rule, values, 0.0, most_above * slack)
        else:
            table = sparse.csr_array(price).toarray()
            whole, first = table[:, -1], table[:, :-1]
            if (table < 0).any() or (first > whole[:, None]).any():
                faults.append(f"shares of the price of rule {rule.name} do not lie between 0 and the price")
            faults += _beyond(rule, whole, 0.0, most_below * slack)
    return faults


def _beyond(rule: Bound, values: FloatArray, below: float, above: float) -> list[str]:
    if values.min(initial=0.0) < -below or values.max(initial=0.0) > above:
        return [f"a price of rule {rule.name} lies outside what missing it costs"]
    return []
