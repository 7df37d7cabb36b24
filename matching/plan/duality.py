"""Bounds from prices alone: weak duality over all pairs, recomputed from the problem without any solver.

For any numbers u, w and any lawful rule prices, no lawful plan and no lottery over plans has a larger weighted total

    sum over pairs of (weight * score + term) x   than

    locked part + sum d u + sum l_max max(w, 0) - sum l_min max(-w, 0) + sum of rule price * bound
    + sum over lawful pairs of cap * max(0, weight * score + term - rule prices - u - w)

with locked pairs taken out of demand d and loads l (Gale, Kuhn and Tucker, 1951; for assignment Ahuja, Magnanti and
Orlin, 1993, section 12). It needs a sweep over all pairs and no trust in whoever found the prices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.constraints.linearised import Linearised, rule_terms
from matching.constraints.problem import AssignmentProblem
from matching.plan.facts import Facts
from matching.plan.rule_prices import PRICE_ROUNDING, counts_whole, level_of, paid_by, rule_levels
from matching.scores.base import ScoreOperator, blocks
from matching.scores.fan import Sweep, strips, swept, tiles
from matching.types import FloatArray, IntArray

__all__ = ["Duality", "Prices"]

IMPROVING = 1e-7  # a pair this far above its prices, relative to the largest score, would improve a plan
CHUNK = 1 << 22  # candidate pairs re-evaluated exactly at a time
LEVEL_PARTS = (1, 2, 60)  # prices of a fewest-missing problem are fractions with small denominators, if not whole

Cap = Callable[[IntArray, IntArray], FloatArray]
"""(rows, cols) -> the highest share of each of these pairs, float64 in [0, 1]."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Numbers from which a bound follows.

    Attributes
    ----------
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,), float64
    penalty : float
        Price of a missing review; above 0 only where the plan is not full.
    weights : ndarray of shape (n_submissions,), float64, or None
        None for ones.
    rules : tuple
        As `matching.constraints.linearised.rule_terms` takes them; empty for no rules.
    terms : scipy.sparse array of shape (n_submissions, n_reviewers) or None
    reviewer_terms : ndarray of shape (n_reviewers,) or None
        What each pair of a reviewer costs.
    cap : Cap or None
        None for 1. Locked pairs have share 1 whatever it is.
    """

    u: FloatArray
    w: FloatArray
    penalty: float = 0.0
    weights: FloatArray | None = None
    rules: tuple[Any, ...] = ()
    terms: sparse.csr_array | None = None
    reviewer_terms: FloatArray | None = None
    cap: Cap | None = None


class Duality:
    """The reduced problem: locked pairs taken out, lines without room closed.

    Parameters
    ----------
    problem : AssignmentProblem
    facts : Facts
        Of the plan.
    unfilled, short : ndarray of shape (n_submissions,) and (n_reviewers,)
        What the plan, or the lottery it was drawn from, misses of demand and load_min: the bounded plans may miss as
        much.
    size : float
        > 0: `usual_size` of the scores.
    """

    def __init__(
        self, problem: AssignmentProblem, facts: Facts, unfilled: IntArray | FloatArray, short: IntArray | FloatArray,
        size: float = 1.0,
    ) -> None:  # fmt: skip
        self.problem, self.facts, self.unfilled, self.short, self.size = problem, facts, unfilled, short, size
        held = problem.locked
        self.demand = problem.demand - np.bincount(held[:, 0], minlength=problem.shape[0])
        self.load_max = problem.load_max - np.bincount(held[:, 1], minlength=problem.shape[1])
        self.load_min = np.maximum(problem.load_min - np.bincount(held[:, 1], minlength=problem.shape[1]), 0)
        self.closed = problem.barred.union(held)
        self.open_rows, self.open_cols = self.demand > 0, self.load_max > 0
        self.held_score = np.nan_to_num(problem.scores.values(held[:, 0], held[:, 1]))

    def too_low(self, prices: Prices) -> bool:
        """Whether a price lies below minus the penalty: then plans that miss reviews may beat the bound."""
        least = -prices.penalty * (1 + PRICE_ROUNDING)
        return bool((prices.u[self.open_rows] < least).any() or (prices.w[self.open_cols] < least).any())

    def bound(self, prices: Prices) -> tuple[float, int]:
        """The bound for plans that miss as many reviews as this one, and how many pairs outside it exceed prices."""
        scores, paid = self._priced(prices)
        w = prices.w if prices.reviewer_terms is None else prices.w + prices.reviewer_terms
        over, improving = self._sweep(scores, prices.u, w, prices.cap)
        held = self.problem.locked
        locked = self.held_score
        if isinstance(scores, Linearised):
            locked = scores.linear(held[:, 0], held[:, 1], self.held_score)
        if prices.reviewer_terms is not None:
            locked = locked - prices.reviewer_terms[held[:, 1]]
        below = np.maximum(-prices.w, 0.0)
        unfilled, penalty, short = self.unfilled, prices.penalty, self.short
        # demand * u + penalty * unfilled, with the two huge and opposite numbers taken together first
        parts = (
            locked,
            np.where(self.open_rows, (self.demand - unfilled) * prices.u + unfilled * (prices.u + penalty), 0.0),
            np.where(self.open_cols, self.load_max * np.maximum(prices.w, 0.0), 0.0),
            short * (penalty - below) - (self.load_min - short) * below,
        )
        return float(sum(part.sum() for part in parts) + over + paid), improving

    def missing_bound(self, prices: Prices, missing: float) -> float:
        """Reviews, and units of hard rules, that every plan lacks, by the cut that the prices name.

        `missing` is what the plan lacks: no cut proves more, so the search for a sharper one stops there.

        Prices of an infeasible problem lie near multiples of the penalty. Those levels are prices of the problem
        "lack as little as possible", and weak duality there needs only counting.
        """
        if prices.penalty <= 0.0:
            return 0
        if not self.problem.rules and prices.cap is None:
            return self._missing_reviews(prices)
        most = 0.0
        for parts in (*LEVEL_PARTS, None):
            most = max(most, self._missing_units(self._levels(prices, parts)))
            if most >= missing - PRICE_ROUNDING * max(1.0, missing):
                break
        return most

    def _levels(self, prices: Prices, parts: int | None) -> Prices:
        """Prices of "lack as little as possible" that these name."""
        return Prices(
            level_of(prices.u, prices.penalty, parts, -1.0), level_of(prices.w, prices.penalty, parts, -1.0), 1.0,
            rules=rule_levels(self.problem.rules, prices.rules, prices.penalty, parts), cap=prices.cap,
        )  # fmt: skip

    def _priced(self, prices: Prices) -> tuple[ScoreOperator, float]:
        """The scores with weights, terms and rule prices put on them, and what the rule prices pay."""
        problem = self.problem
        groups: list[tuple[GroupBound, sparse.sparray]] = []
        terms, paid = prices.terms, 0.0
        if prices.rules:
            groups, extra, _ = rule_terms(problem.rules, prices.rules, problem.shape)
            terms = extra if terms is None else sparse.csr_array(terms + extra)
            paid = math.fsum(
                paid_by(rule, price, miss, prices.penalty)
                for rule, price, miss in zip(problem.rules, prices.rules, self.facts.missed, strict=True)
            )
        scores = Linearised(problem.scores, prices.weights, terms, groups)
        return (problem.scores if scores.plain else scores), paid

    def _sweep(self, scores: ScoreOperator, u: FloatArray, w: FloatArray, cap: Cap | None) -> tuple[float, int]:
        """Sum over lawful pairs of what they are worth above their prices, and how many outside the plan are."""
        largest, total, improving = self.size, 0.0, 0
        for rows, cols in self._near(scores, u, w):
            for start in range(0, rows.size, CHUNK):
                pair_rows, pair_cols = rows[start : start + CHUNK], cols[start : start + CHUNK]
                score = scores.values(pair_rows, pair_cols)
                excess = score - u[pair_rows] - w[pair_cols]
                excess[~(excess > 0.0) | self.closed.contains(pair_rows, pair_cols)] = 0.0
                worth = excess if cap is None else excess * cap(pair_rows, pair_cols)
                total += float(worth.sum())
                largest = max(largest, float(np.nanmax(np.abs(score), initial=0.0)))
                above = excess > IMPROVING * largest
                improving += int((~self.facts.chosen.contains(pair_rows[above], pair_cols[above])).sum())
        return total, improving

    def _near(self, scores: ScoreOperator, u: FloatArray, w: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
        """Every pair that is worth more than its prices, and some that nearly are, a strip of rows at a time."""
        # lines without room take part in no plan: their pairs are no threat whatever their prices
        u_open = np.where(self.open_rows, u, np.inf)
        w_open = np.where(self.open_cols, w, np.inf)
        if isinstance(scores, Linearised) and scores.only_weights and scores.weights is not None:
            # of weight 0 every score is 0 (or unknown), and none exceeds prices that together are not negative; within
            # the rounding of blocks all these pairs would have to be looked at one by one
            settled = (scores.weights == 0.0) & (u_open + w_open.min(initial=np.inf) >= 0.0)
            u_open = np.where(settled, np.inf, u_open)
        if (stored := scores.stored) is not None:
            rows, cols, score = stored
            near = score - u_open[rows] - w_open[cols] > 0.0
            yield rows[near], cols[near]
            return
        if scores.shape[1]:
            yield from swept(_Near(scores, u_open, w_open), strips(scores.shape[0]))

    def _missing_reviews(self, prices: Prices) -> int:
        """The cut in whole numbers, which a problem without rules and caps always has."""
        u = _whole_levels(prices.u, prices.penalty, self.open_rows)
        w = _whole_levels(prices.w, prices.penalty, self.open_cols)
        crossing = 0
        for rows, cols in blocks(self.problem.shape):
            over = np.maximum(-u[rows, None] - w[None, cols], 0)
            if not over.any():
                continue
            usable = ~np.isnan(self.problem.scores.block(rows, cols))
            usable[self.closed.within(rows, cols)] = False
            crossing += int(over[usable].sum())
        lacking = (
            -(self.demand @ np.where(self.open_rows, u, 0))
            - self.load_max @ np.where(self.open_cols, np.maximum(w, 0), 0)
            + self.load_min @ np.maximum(-w, 0)
            - crossing
        )
        return max(0, int(lacking))

    def _missing_units(self, level: Prices) -> float:
        """Weak duality for minus the missing units: every score 0, every missing review and rule unit 1."""
        problem = self.problem
        groups, terms, _ = rule_terms(problem.rules, level.rules, problem.shape)
        scores = Linearised(problem.scores, np.zeros(problem.shape[0]), terms, groups)
        u_open = np.where(self.open_rows, level.u, np.inf)
        w_open = np.where(self.open_cols, level.w, np.inf)
        crossing = 0.0
        for rows, cols in blocks(problem.shape):
            over = scores.block(rows, cols) - u_open[rows, None] - w_open[None, cols]
            over[self.closed.within(rows, cols)] = 0.0
            local_rows, local_cols = np.nonzero(over > 0.0)
            worth = over[local_rows, local_cols]
            if level.cap is not None:
                worth = worth * level.cap(local_rows + rows.start, local_cols + cols.start)
            crossing += float(worth.sum())
        held = problem.locked
        below = np.maximum(-level.w, 0.0)
        most = (
            scores.linear(held[:, 0], held[:, 1], np.zeros(len(held))).sum()
            + (self.demand * np.where(self.open_rows, level.u, 0.0)).sum()
            + (self.load_max * np.where(self.open_cols, np.maximum(level.w, 0.0), 0.0)).sum()
            - (self.load_min * below).sum()
            + sum(
                paid_by(rule, price, miss, 0.0)
                for rule, price, miss in zip(problem.rules, level.rules, self.facts.missed, strict=True)
            )
            + crossing
        )
        forced = sum(
            float(miss.forced.sum())
            for rule, miss in zip(problem.rules, self.facts.missed, strict=True)
            if rule.price is None
        )
        lacking = -float(most)
        # plans lack whole reviews; where every rule counts in whole units, so does what they lack beside what the
        # locks force, which no plan changes. Lotteries under caps lack shares.
        if level.cap is None and all(map(counts_whole, problem.rules)):
            lacking = float(math.ceil(lacking - 1e-6))
        return forced + lacking


@dataclass(frozen=True, eq=False)
class _Near(Sweep[tuple[IntArray, IntArray]]):
    """Pairs of a strip worth more than their prices, and some that nearly are; infinite prices close a line."""

    scores: ScoreOperator
    u: FloatArray
    w: FloatArray

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large

    def begin(self) -> Callable[[slice], tuple[IntArray, IntArray]]:
        return self._near

    def _near(self, lines: slice) -> tuple[IntArray, IntArray]:
        u, found = self.u[lines, None], [np.empty((2, 0), dtype=np.int64)]
        for people in tiles(self.scores.shape[1]):
            over, slack = _block(self.scores, lines, people)
            w = self.w[None, people]
            # casting both prices and taking one off rounds, each relative to the larger price
            reach = max(np.abs(side, where=np.isfinite(side), out=np.ones_like(side)).max() for side in (u, w))
            slack += max(1.0, float(reach)) * (2.0**-21 if over.dtype == np.float32 else 2.0**-50)
            with np.errstate(invalid="ignore"):
                over = over - w.astype(over.dtype)
                above = np.flatnonzero(over > (u - slack).astype(over.dtype))
            if above.size:
                found.append(np.stack(np.divmod(above, over.shape[1])) + np.array([[lines.start], [people.start]]))
        rows, cols = np.concatenate(found, axis=1)
        return rows, cols


def _block(scores: ScoreOperator, rows: slice, cols: slice) -> tuple[NDArray[np.floating], float]:
    """A block that may be written over or not, and how far it may lie from the exact scores."""
    if isinstance(scores, Linearised) and scores.only_weights and scores.weights is not None:
        plain = scores.scores.block(rows, cols)
        if plain.dtype == np.float32 and scores.tolerance > 0.0:
            part = plain * scores.weights[rows, None].astype(np.float32)
            size = max(-float(np.fmin.reduce(part, axis=None)), float(np.fmax.reduce(part, axis=None)), 0.0)
            return part, scores.tolerance + size * 2.0**-22  # single precision of the weight and of the product
    part = scores.block(rows, cols)
    return (part.astype(np.float64) if scores.tolerance == 0.0 else part), scores.tolerance


def _whole_levels(prices: FloatArray, penalty: float, room: NDArray[np.bool_]) -> IntArray:
    level = np.clip(np.rint(np.where(room, prices, penalty) / penalty), -1, 1).astype(np.int64)
    return np.where(room, level, 1)
