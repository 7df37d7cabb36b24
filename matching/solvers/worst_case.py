"""The plan with the best worst case, and a bound on all lotteries: the search, whoever finds plans for given scores.

A plan takes pairs whole, so ``||sigma x||`` is the root of a sum V over its pairs, and ``S - radius sqrt(V)`` is a
convex function of the two sums S and V: its maximum lies at a corner of the plane figure that all plans' (S, V) fill,
and every corner that may matter is the best plan for scores ``s - lambda sigma^2`` with some lambda. A search over
lambda that drops every stretch whose triangle cannot beat the best corner found therefore ends with the best plan of
all. Very large problems are content with the corners that slopes lead to. What missed priced rules cost is taken off
S, and is scaled with it.

The proof bounds lotteries too: for any h with ||h|| <= 1 the worst case is at most ``sum of (s - radius h sigma) x``.
The best h is that of the best lottery, found by fully corrective Frank-Wolfe steps (Holloway, 1974, Mathematical
Programming 6). What it leaves as gap is what a lottery could gain by spreading its errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.pair_numbers import PairNumbers
from matching.scores.base import ScoreOperator
from matching.scores.priced import Priced
from matching.solvers.base import Progress, ProgressCallback
from matching.solvers.clock import Clock, slack_of
from matching.types import FloatArray, IntArray

__all__ = ["Bounded", "Cautious", "Corner", "CornerSearch", "Source", "Taken", "WorstCase", "lowest_bound"]

CORNERS = 24  # most plans in the search over lambda; a handful is the rule
SEARCHED_PAIRS = 4_000_000  # above, a plan takes too long to look at every corner
NEARBY = 3  # plans beside the first there
STEPS = 30  # most Frank-Wolfe steps for the bound
CLOSE = 1e-6  # relative gap at which the bound is good enough
CLOSE_AT_SIZE = 1e-5  # above SEARCHED_PAIRS
WORTH = 0.05  # nor is it sought further once it could fall by no more than this share of the gap that remains


@dataclass(frozen=True, eq=False)
class Taken:
    """A plan, or shares of pairs.

    Attributes
    ----------
    rows, cols : ndarray of shape (n,), int64
        Locked pairs included.
    share : ndarray of shape (n,), float64
    total : float
        By the scores as they are, less what missed priced rules cost.
    rule_shortfall : tuple
        As in Solution.
    exact : bool
        Whether no plan is better for the scores asked for.
    """

    rows: IntArray
    cols: IntArray
    share: FloatArray
    total: float
    rule_shortfall: tuple[Any, ...] = ()
    exact: bool = True


@dataclass(frozen=True, eq=False)
class Bounded:
    """Prices for some scores, what they prove, and shares or a plan that come near.

    Attributes
    ----------
    bound : float
    u, w : ndarray, float64
    rule_prices : tuple
    taken : Taken
    """

    bound: float
    u: FloatArray
    w: FloatArray
    rule_prices: tuple[Any, ...]
    taken: Taken


class Source(Protocol):
    """Who finds plans and prices."""

    def plan(self, of_total: float, of_square: float) -> Taken | None:
        """The best full plan for ``of_total * s - of_square * sigma^2``; None at the limit."""
        ...

    def bounded(self, terms: sparse.csr_array) -> Bounded | None:
        """A bound on all lotteries for the scores plus `terms`; None at the limit."""
        ...


@dataclass(frozen=True, eq=False)
class Corner:
    """A plan in the plane of totals and squared errors."""

    taken: Taken
    total: float
    square: float  # sum of squared standard errors
    value: float


class WorstCase:
    """The objective, for plans and for lotteries."""

    def __init__(self, errors: PairNumbers, radius: float) -> None:
        self.errors, self.radius = errors, radius

    def of(self, total: float, square: float) -> float:
        """What is left of a total in the worst case."""
        return total - self.radius * math.sqrt(max(0.0, square))

    def corner(self, taken: Taken) -> Corner:
        """A plan with its two sums."""
        square = float((self.errors(taken.rows, taken.cols) ** 2).sum())
        return Corner(taken, taken.total, square, self.of(taken.total, square))


class CornerSearch:
    """The search over lambda."""

    def __init__(self, worst: WorstCase, source: Source, clock: Clock, report: ProgressCallback) -> None:
        self.worst, self.source, self.clock, self.report = worst, source, clock, report
        self.found: list[Corner] = []
        self.complete = False

    def best_plan(self, start: Corner) -> Corner:
        """From the best plan without errors along ever larger lambda, leaving out what cannot be better."""
        self.found = [start]
        self.best = start
        # where all errors are alike so are the squares of all full plans
        if self.worst.radius == 0.0 or start.square == 0.0 or self.worst.errors.alike:
            self.complete = True
            return start
        if math.prod(self.worst.errors.shape) > SEARCHED_PAIRS:
            return self._nearby()
        steady = self._solve(0.0, 1.0)  # the plan of the smallest errors; with it the figure has two ends
        if steady is None:
            return self.best
        self.complete = True
        # an entry: two corners with the lines (weight of total, weight of squares) on which each is best
        open_ends = [(start, (1.0, 0.0), steady, (0.0, 1.0))]
        while open_ends:
            left, left_line, right, right_line = open_ends.pop(0)
            if left.square - right.square <= slack_of(left.square) or self._apex(
                left, left_line, right, right_line
            ) <= self.best.value + slack_of(self.best.value):
                continue
            line = (left.square - right.square, left.total - right.total)
            between = self._solve(*line)
            if between is None:
                self.complete = False
                break
            height = line[0] * between.total - line[1] * between.square
            if height <= line[0] * left.total - line[1] * left.square + slack_of(height):
                continue  # nothing lies beyond the straight line, and the convex function is largest at its ends
            open_ends += [(left, left_line, between, line), (between, line, right, right_line)]
        return self.best

    def _nearby(self) -> Corner:
        """From the best plan without errors to the best by the slope there, and so on: a few plans instead of all."""
        for _ in range(NEARBY):
            before = self.best
            root = math.sqrt(before.square)
            found = self._solve(1.0, self.worst.radius / (2.0 * root)) if root > 0.0 else None
            if found is None or self.best is before:
                break
        return self.best

    def _solve(self, of_total: float, of_square: float) -> Corner | None:
        """The best plan for ``of_total * s - of_square * sigma^2``; None once plans or time are used up."""
        if len(self.found) > CORNERS or self.clock.over:
            return None
        size = max(of_total, of_square)
        taken = self.source.plan(of_total / size, of_square / size)
        if taken is None:
            return None
        corner = self.worst.corner(taken)
        self.found.append(corner)
        if corner.value > self.best.value + slack_of(corner.value):
            self.best = corner
        self.report(Progress("fairness", 0.1 + 0.4 * len(self.found) / CORNERS, self.best.value))
        return corner

    def _apex(
        self, left: Corner, left_line: tuple[float, float], right: Corner, right_line: tuple[float, float]
    ) -> float:
        """The objective where the lines through the two corners meet: no plan between them is better."""
        matrix = np.array([[left_line[0], -left_line[1]], [right_line[0], -right_line[1]]])
        heights = matrix @ np.array([[left.total, right.total], [left.square, right.square]])
        determinant = float(np.linalg.det(matrix))
        if determinant == 0.0:
            return max(left.value, right.value)
        total, square = np.linalg.solve(matrix, np.array([heights[0, 0], heights[1, 1]]))
        return self.worst.of(float(total), float(square))


class Cautious(ScoreOperator):
    """``a s - b sigma^2``; unknown where s is."""

    def __init__(self, scores: ScoreOperator, errors: PairNumbers, a: float, b: float) -> None:
        self.scores, self.errors, self.a, self.b = scores, errors, a, b
        self.shape = scores.shape
        self.tolerance = scores.tolerance * a

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part = np.array(self.scores.block(rows, cols), dtype=np.float64)
        part *= self.a
        part -= self.b * self.errors.block(rows, cols) ** 2
        return part

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        if weights is not None or not self.errors.by_column or self.a == 0.0:
            return super().priced(row_prices, col_prices, weights)
        dearer = col_prices + self.b * self.errors.by_reviewer**2
        return self.scores.priced(row_prices, dearer, np.full(self.shape[0], self.a))

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.a * self.scores.values(rows, cols) - self.b * self.errors(rows, cols) ** 2


@dataclass(frozen=True, eq=False)
class Lowest:
    """The lowest bound found with what proves it."""

    bounded: Bounded
    direction: sparse.csr_array


def lowest_bound(
    worst: WorstCase, source: Source, start: Bounded, found: list[Corner], shape: tuple[int, int], clock: Clock,
    report: ProgressCallback,
) -> Lowest:  # fmt: skip
    """The direction h for which no lottery's linear worst case is large, from the plans the search has met.

    Parameters
    ----------
    start : Bounded
        Of the total, which is the worst case for h = 0.
    """
    value = max(corner.value for corner in found)
    close = CLOSE if math.prod(shape) <= SEARCHED_PAIRS else CLOSE_AT_SIZE
    best = Lowest(start, sparse.csr_array(shape))
    points = [_spread(worst, corner.taken, shape) for corner in found]
    totals = [corner.total for corner in found]
    weight = np.zeros(len(points))
    weight[int(np.argmax([corner.value for corner in found]))] = 1.0
    for step in range(STEPS if worst.radius > 0.0 else 0):
        lowest = best.bounded.bound
        if clock.over or lowest - value <= close * max(1.0, abs(value)):
            break
        weight, lottery = _mixture(points, np.array(totals), weight, worst.radius)
        if lowest - lottery <= WORTH * (lowest - value):
            break
        mixed = sparse.csr_array(sum(share * point for share, point in zip(weight, points) if share > 0.0))
        length = float(np.linalg.norm(mixed.data))
        if length == 0.0:
            break
        direction = mixed / length
        table = sparse.coo_array(direction)
        pull = -worst.radius * worst.errors(*table.coords) * table.data
        bounded = source.bounded(sparse.csr_array((pull, table.coords), shape=shape))
        if bounded is None:
            break
        if bounded.bound < lowest:
            best = Lowest(bounded, direction)
        points.append(_spread(worst, bounded.taken, shape))
        totals.append(bounded.taken.total)
        weight = np.append(weight, 0.0)
        lowest = best.bounded.bound
        report(Progress("fairness", 0.5 + 0.5 * step / STEPS, value, lowest, lowest - value))
    return best


def _spread(worst: WorstCase, taken: Taken, shape: tuple[int, int]) -> sparse.csr_array:
    """sigma x."""
    errors = worst.errors(taken.rows, taken.cols) * taken.share
    return sparse.csr_array((errors, (taken.rows, taken.cols)), shape=shape)


def _mixture(
    points: list[sparse.csr_array], totals: FloatArray, weight: FloatArray, radius: float
) -> tuple[FloatArray, float]:
    """The best lottery over the given plans, by pairwise steps with exact line search, and its worst case."""
    flat = sparse.vstack([point.reshape((1, -1)) for point in points], format="csr")
    products = np.asarray((flat @ flat.T).todense())
    weight = weight.copy()
    for _ in range(400):
        pull = products @ weight
        norm = math.sqrt(max(float(weight @ pull), 0.0))
        slope = totals - radius * pull / max(norm, 1e-300)
        up = int(np.argmax(slope))
        held = np.flatnonzero(weight > 0.0)
        down = int(held[np.argmin(slope[held])])
        if slope[up] - slope[down] <= 1e-10 * max(1.0, abs(float(slope[up]))):
            break
        gain = float(totals[up] - totals[down])
        # the squared norm along the step is a + 2 b t + c t^2
        a, b = norm**2, float(pull[up] - pull[down])
        c = float(products[up, up] - 2.0 * products[up, down] + products[down, down])
        low, high = 0.0, float(weight[down])
        for _ in range(50):
            middle = (low + high) / 2.0
            length = math.sqrt(max(a + 2.0 * b * middle + c * middle**2, 1e-300))
            low, high = (middle, high) if gain - radius * (b + c * middle) / length > 0.0 else (low, middle)
        # a step of full length leaves nothing behind, so that plans do drop out
        move = float(weight[down]) if high == weight[down] else low
        weight[up] += move
        weight[down] -= move
    norm = math.sqrt(max(float(weight @ products @ weight), 0.0))
    return weight, float(totals @ weight) - radius * norm
