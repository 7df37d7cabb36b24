"""Robust plans: scores known up to their standard error, the worst case over an ellipsoid of errors.

    minimise over errors e with ||e / sigma|| <= radius:  sum of (s + e) x  =  sum of s x - radius * ||sigma x||

(ellipsoidal uncertainty: Ben-Tal and Nemirovski, 1999, Operations Research Letters 25; for paper assignment Cousins,
Payan and Zick, 2023. Into the unknown: assigning reviewers to papers with uncertain affinities. SAGT). A plan takes
pairs whole, so ``||sigma x||`` is the root of a sum V over its pairs, and ``S - radius sqrt(V)`` is a convex function
of the two sums S and V: its maximum lies at a corner of the plane figure that all plans' (S, V) fill, and every corner
that may matter is the best plan for scores ``s - lambda sigma^2`` with some lambda. A search over lambda that drops
every stretch whose triangle cannot beat the best corner found therefore ends with the best plan of all.

The proof bounds lotteries too: for any h with ||h|| <= 1 the worst case is at most ``sum of (s - radius h sigma) x``.
The best h is that of the best lottery, found by fully corrective Frank-Wolfe steps (Holloway, 1974, Mathematical
Programming 6). What it leaves as gap is what a lottery could gain by spreading its errors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError, Issue
from matching.objectives import Total, parse_objective
from matching.scores.base import ScoreOperator
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.oracle import DENSE_PAIRS, Clock, Extreme, Oracle, slack_of
from matching.solvers.pricing import evenest, plan_from, without_plan
from matching.types import FloatArray, IntArray

__all__ = ["RobustSolver"]

CORNERS = 24  # most flows in the search over lambda; a handful is the rule
STEPS = 30  # most Frank-Wolfe steps for the bound
CLOSE = 1e-6  # relative gap at which the bound is good enough
WORTH = 0.05  # nor is it sought further once it could fall by no more than this share of the gap that remains


class RobustSolver:
    """Largest worst case of the total when scores are off by errors of the size of their standard errors.

    Parameters
    ----------
    standard_error : float, array_like or scipy.sparse of the problem's shape, or PairNumbers
        At least 0, in units of score. Entries a sparse array does not store are 0.
    radius : float
        At least 0, no unit: how many standard errors the errors of all pairs together may be away from 0.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(
        self, standard_error: Any, radius: float = 1.0, candidates: int = 16, dense_pairs: int = DENSE_PAIRS
    ) -> None:
        self.standard_error = standard_error
        self.radius = radius
        self.candidates = candidates
        self.dense_pairs = dense_pairs

    def solve(
        self,
        problem: AssignmentProblem,
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution:
        """The plan with the best worst case.

        Returns
        -------
        Solution
            ``value`` is the worst case of the total over all errors allowed, ``bound`` holds for lotteries too.
            ``meta`` has "total" (the plan's with the scores as they are), "best_total" (of the best plan without
            errors), and "best_plan": whether the search has shown that no other plan has a better worst case.

        Raises
        ------
        InvalidParamsError
            Standard errors or radius out of range or of another shape; or the problem has rules.
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        wish = parse_objective({"name": "robust", "standard_error": self.standard_error, "radius": self.radius})[0]
        errors = PairNumbers.of(self.standard_error, problem.shape, 0.0, "standard_error")
        if problem.rules:
            reason = (
                "robust knows no rules yet beyond demand, loads, locks and conflicts; leave out the one or the other"
            )
            raise InvalidParamsError(
                issues=[Issue(reason, "contradiction", "objective", value="robust", source="params")]
            )
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        oracle = Oracle(problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock)
        build_seconds = clock.seconds
        report(Progress("flow", 0.1))
        first = oracle.best()
        if first is None or (first.missing and not first.proven):
            return without_plan(problem, clock, build_seconds)
        if first.proven:
            with clock.stage("ties"):
                first = evenest(oracle, first, rng)
        if first.missing:
            return plan_from(problem, first, clock, build_seconds, {"solver": "flow+pricing", "without": "robust"})
        worst = _WorstCase(problem, errors, float(self.radius))
        search = _Corners(worst, self.candidates, self.dense_pairs, rng, clock, report)
        with clock.stage("fairness"):
            best = search.best_plan(worst.corner(first))
            cut = _Cut(worst, oracle, clock, report).lowest(first, search.found, best.value)
        value = best.value
        gap = max(0.0, cut.bound - value)
        gap = 0.0 if gap <= slack_of(value) else gap
        bound = value if gap == 0.0 else cut.bound
        proof = Proof(
            wish.to_dict(), value, bound, gap, Total(), (), np.ones(problem.shape[0]), (), frozen(cut.u), frozen(cut.w),
            anchor=cut.direction,
        )  # fmt: skip
        report(Progress("fairness", 1.0, value, bound, gap))
        return Solution(
            status=Status.FEASIBLE_AT_LIMIT if clock.over or not first.proven else Status.OPTIMAL,
            pairs=frozen(best.extreme.pairs),
            value=value,
            bound=bound,
            gap=gap,
            submission_prices=cut.u,
            reviewer_prices=cut.w,
            unfilled=frozen(np.zeros(problem.shape[0], dtype=np.int64)),
            below_min=frozen(np.zeros(problem.shape[1], dtype=np.int64)),
            rounds=first.rounds,
            build_seconds=build_seconds,
            solve_seconds=clock.seconds - build_seconds,
            stages=dict(clock.stages),
            meta={
                "solver": "flow+pricing",
                "active_pairs": int(oracle.state.rows.size),
                "total": best.total,
                "best_total": float(first.score.sum()),
                "best_plan": search.complete,
            },
            proofs=(proof,),
        )


@dataclass(frozen=True, eq=False)
class _Corner:
    """A plan in the plane of totals and squared errors."""

    extreme: Extreme
    total: float
    square: float  # sum of squared standard errors
    value: float


class _WorstCase:
    """The objective, for plans and for lotteries."""

    def __init__(self, problem: AssignmentProblem, errors: PairNumbers, radius: float) -> None:
        self.problem, self.errors, self.radius = problem, errors, radius

    def of(self, total: float, square: float) -> float:
        return total - self.radius * math.sqrt(max(0.0, square))

    def corner(self, extreme: Extreme) -> _Corner:
        rows, cols = extreme.rows, extreme.cols
        total = float(np.nan_to_num(self.problem.scores.values(rows, cols)).sum())
        square = float((self.errors(rows, cols) ** 2).sum())
        return _Corner(extreme, total, square, self.of(total, square))


class _Corners:
    """The search over lambda."""

    def __init__(
        self, worst: _WorstCase, candidates: int, dense_pairs: int, rng: int, clock: Clock, report: ProgressCallback
    ) -> None:
        self.worst, self.candidates, self.dense_pairs, self.rng = worst, candidates, dense_pairs, rng
        self.clock, self.report = clock, report
        self.found: list[_Corner] = []
        self.complete = False

    def best_plan(self, start: _Corner) -> _Corner:
        """From the best plan without errors along ever larger lambda, leaving out what cannot be better."""
        self.found = [start]
        self.best = start
        if self.worst.radius == 0.0 or start.square == 0.0:
            self.complete = True
            return start
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

    def _solve(self, of_total: float, of_square: float) -> _Corner | None:
        """The best plan for ``of_total * s - of_square * sigma^2``; None once flows or time are used up."""
        if len(self.found) > CORNERS or self.clock.over:
            return None
        size = max(of_total, of_square)
        scores = _Cautious(self.worst.problem.scores, self.worst.errors, of_total / size, of_square / size)
        oracle = Oracle(
            replace(self.worst.problem, scores=scores), candidates=self.candidates, dense_pairs=self.dense_pairs,
            rng=self.rng, clock=self.clock,
        )  # fmt: skip
        extreme = oracle.best()
        if extreme is None or extreme.missing or not extreme.proven:
            return None
        corner = self.worst.corner(evenest(oracle, extreme, self.rng))
        self.found.append(corner)
        if corner.value > self.best.value + slack_of(corner.value):
            self.best = corner
        self.report(Progress("fairness", 0.1 + 0.4 * len(self.found) / CORNERS, self.best.value))
        return corner

    def _apex(
        self, left: _Corner, left_line: tuple[float, float], right: _Corner, right_line: tuple[float, float]
    ) -> float:
        """The objective where the lines through the two corners meet: no plan between them is better."""
        matrix = np.array([[left_line[0], -left_line[1]], [right_line[0], -right_line[1]]])
        heights = matrix @ np.array([[left.total, right.total], [left.square, right.square]])
        determinant = float(np.linalg.det(matrix))
        if determinant == 0.0:
            return max(left.value, right.value)
        total, square = np.linalg.solve(matrix, np.array([heights[0, 0], heights[1, 1]]))
        return self.worst.of(float(total), float(square))


class _Cautious(ScoreOperator):
    """``a s - b sigma^2``; unknown where s is."""

    def __init__(self, scores: ScoreOperator, errors: PairNumbers, a: float, b: float) -> None:
        self.scores, self.errors, self.a, self.b = scores, errors, a, b
        self.shape = scores.shape
        self.tolerance = scores.tolerance * a

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part = np.array(self.scores.block(rows, cols), dtype=np.float64)
        height, width = part.shape
        left = np.repeat(np.arange(rows.start, rows.stop, dtype=np.int64), width)
        right = np.tile(np.arange(cols.start, cols.stop, dtype=np.int64), height)
        part *= self.a
        part -= self.b * self.errors(left, right).reshape(part.shape) ** 2
        return part

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.a * self.scores.values(rows, cols) - self.b * self.errors(rows, cols) ** 2


@dataclass(frozen=True, eq=False)
class _Bound:
    bound: float
    u: FloatArray
    w: FloatArray
    direction: sparse.csr_array


class _Cut:
    """The bound: the direction h for which no lottery's linear worst case is large."""

    def __init__(self, worst: _WorstCase, oracle: Oracle, clock: Clock, report: ProgressCallback) -> None:
        self.worst, self.oracle, self.clock, self.report = worst, oracle, clock, report
        self.shape = worst.problem.shape

    def lowest(self, first: Extreme, found: list[_Corner], value: float) -> _Bound:
        """The lowest bound found, starting from the plans the search has met."""
        nothing = sparse.csr_array(self.shape)
        best = _Bound(first.bound, first.u, first.w, nothing)
        points = [self._spread(corner.extreme) for corner in found]
        totals = [corner.total for corner in found]
        weight = np.zeros(len(points))
        weight[int(np.argmax([corner.value for corner in found]))] = 1.0
        for step in range(STEPS if self.worst.radius > 0.0 else 0):
            if self.clock.over or best.bound - value <= CLOSE * max(1.0, abs(value)):
                break
            weight, lottery = _mixture(points, np.array(totals), weight, self.worst.radius)
            if best.bound - lottery <= WORTH * (best.bound - value):
                break
            mixed = sparse.csr_array(sum(share * point for share, point in zip(weight, points) if share > 0.0))
            length = float(np.linalg.norm(mixed.data))
            if length == 0.0:
                break
            direction = mixed / length
            table = sparse.coo_array(direction)
            pull = -self.worst.radius * self.worst.errors(*table.coords) * table.data
            extreme = self.oracle.best(terms=sparse.csr_array((pull, table.coords), shape=self.shape))
            if extreme is None:
                break
            if extreme.bound < best.bound:
                best = _Bound(extreme.bound, extreme.u, extreme.w, direction)
            points.append(self._spread(extreme))
            totals.append(float(extreme.score.sum()))
            weight = np.append(weight, 0.0)
            self.report(Progress("fairness", 0.5 + 0.5 * step / STEPS, value, best.bound, best.bound - value))
        return best

    def _spread(self, extreme: Extreme) -> sparse.csr_array:
        """sigma x of a plan."""
        errors = self.worst.errors(extreme.rows, extreme.cols)
        return sparse.csr_array((errors, (extreme.rows, extreme.cols)), shape=self.shape)


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
