"""The audit: recompute everything a solution claims from the inputs, without any solver.

Demand, loads, conflicts, locks, value, bound and, where no full plan exists, the proof of that. The bound is
weak duality: for any numbers u and w, no lawful plan is worth more than

    sum d u + sum l_max max(w, 0) - sum l_min max(-w, 0) + sum over lawful pairs of max(0, s - u - w)

plus what is locked, with locked pairs taken out of demand d and loads l. It needs a sweep over all pairs and
no trust in whoever found u and w (Gale, Kuhn and Tucker, 1951; for assignment Ahuja, Magnanti and Orlin, 1993,
section 12). This module imports nothing of `matching.solvers` but the record it checks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.errors import AuditError
from matching.pairs import PairSet
from matching.scores.base import blocks
from matching.solvers.base import Solution, Status
from matching.types import FloatArray, IntArray

__all__ = ["AuditReport", "audit", "require_clean"]

RELATIVE = 1e-9  # agreement asked of recomputed sums, relative to their size
IMPROVING = 1e-7  # a pair this far above its prices, relative to the largest score, would improve a plan
CHUNK = 1 << 22  # candidate pairs re-evaluated exactly at a time


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What the audit found.

    Attributes
    ----------
    clean : bool
        No fault.
    faults : tuple of str
        One sentence each.
    value, bound, gap : float
        Recomputed; gap is ``max(0, bound - value)``, 0 below the rounding of sums.
    missing : int
        Reviews the plan lacks: unfilled demand plus shortfalls of load_min.
    missing_bound : int
        No plan lacks fewer, by a cut the audit counted itself.
    improving_pairs : int
        Lawful pairs outside the plan whose score exceeds their prices; 0 for a proven plan.
    seconds : float
    """

    clean: bool
    faults: tuple[str, ...]
    value: float
    bound: float
    gap: float
    missing: int
    missing_bound: int
    improving_pairs: int
    seconds: float


def audit(problem: AssignmentProblem, solution: Solution) -> AuditReport:
    """Check a solution against the problem it answers.

    Cost: one sweep over all pairs in blocks; memory one block and the pairs near or above their prices.
    """
    begin = time.perf_counter()
    faults: list[str] = []
    pairs = np.asarray(solution.pairs)
    n_submissions, n_reviewers = problem.shape
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind != "i":
        raise AuditError(f"pairs must be integers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    if pairs.size and ((pairs < 0).any() or (pairs >= np.array(problem.shape)).any()):
        raise AuditError("a pair lies outside the problem")
    if solution.status == Status.LIMIT_WITHOUT_PLAN:
        if len(pairs):
            faults.append("the limit was reached without a plan, yet there are pairs")
        return AuditReport(
            not faults, tuple(faults), 0.0, np.inf, np.inf, int(problem.demand.sum()), 0, 0, time.perf_counter() - begin
        )
    keys = pairs[:, 0] * n_reviewers + pairs[:, 1]
    if np.unique(keys).size != keys.size:
        faults.append("a reviewer is assigned twice to one submission")
    barred = problem.barred.contains(pairs[:, 0], pairs[:, 1])
    if barred.any():
        faults.append(f"{int(barred.sum())} barred pairs are assigned, first {pairs[barred][0].tolist()}")
    chosen = PairSet(pairs, problem.shape)
    if not chosen.contains(problem.locked[:, 0], problem.locked[:, 1]).all():
        faults.append("a locked pair is missing")

    if not _finite(faults, solution):
        return AuditReport(False, tuple(faults), np.nan, np.nan, np.nan, 0, 0, 0, time.perf_counter() - begin)
    received = np.bincount(pairs[:, 0], minlength=n_submissions)
    carried = np.bincount(pairs[:, 1], minlength=n_reviewers)
    _expect(
        faults,
        received + solution.unfilled == problem.demand,
        "submission",
        "reviews and unfilled do not add up to demand",
    )
    _expect(faults, solution.unfilled >= 0, "submission", "unfilled is negative")
    _expect(faults, carried <= problem.load_max, "reviewer", "load above load_max")
    short = np.maximum(problem.load_min - carried, 0)
    _expect(faults, short == solution.below_min, "reviewer", "shortfall of load_min is misstated")
    missing = int(solution.unfilled.sum() + short.sum())
    full = solution.status in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT)
    if full and missing:
        faults.append(f"the plan claims to be full and lacks {missing} reviews")
    if solution.status == Status.INFEASIBLE and not missing:
        faults.append("the plan claims to be infeasible and lacks nothing")

    score = problem.scores.values(pairs[:, 0], pairs[:, 1])
    locked = PairSet(problem.locked, problem.shape).contains(pairs[:, 0], pairs[:, 1])
    if np.isnan(score[~locked]).any():
        faults.append("a pair of unknown affinity is assigned")
    value = float(np.nansum(score))
    _agree(faults, "value", value, solution.value)

    if missing and min(solution.submission_prices.min(initial=0), solution.reviewer_prices.min(initial=0)) < (
        -solution.penalty * (1 + RELATIVE)
    ):
        faults.append("a price lies below minus the penalty, so the bound does not hold for plans that miss reviews")
    proof = _Proof(problem, solution, chosen)
    bound = proof.bound(short)
    gap = bound - value
    slack = RELATIVE * max(1.0, abs(value))
    if gap < -slack:
        faults.append(f"the value {value} is above the recomputed bound {bound}: the prices prove nothing")
    gap = 0.0 if gap <= slack else gap
    if abs(solution.gap - max(0.0, solution.bound - solution.value)) > slack:
        faults.append(f"the stated gap {solution.gap} is not what bound and value leave")
    if bound > solution.bound + slack:
        faults.append(f"the recomputed bound {bound} is above the stated one {solution.bound}")
    if gap > solution.gap + slack:
        faults.append(f"the recomputed gap {gap} is above the stated one {solution.gap}")
    if solution.status in (Status.OPTIMAL, Status.INFEASIBLE) and proof.improving:
        faults.append(f"{proof.improving} pairs outside the plan exceed their prices")
    missing_bound = proof.missing_bound() if missing else 0
    if solution.status == Status.INFEASIBLE and missing_bound < missing:
        faults.append(f"the plan lacks {missing} reviews, the prices prove only {missing_bound}")
    return AuditReport(
        not faults, tuple(faults), value, bound, gap, missing, missing_bound, proof.improving,
        time.perf_counter() - begin,
    )  # fmt: skip


def require_clean(problem: AssignmentProblem, solution: Solution) -> AuditReport:
    """`audit`, raising AuditError (``audit-failed``) with every fault if there is one."""
    report = audit(problem, solution)
    if not report.clean:
        raise AuditError("; ".join(report.faults), faults=list(report.faults))
    return report


class _Proof:
    """The sums over all pairs that the bound and the cut need, taken in one sweep each."""

    def __init__(self, problem: AssignmentProblem, solution: Solution, chosen: PairSet) -> None:
        self.problem, self.solution, self.chosen = problem, solution, chosen
        self.u = np.asarray(solution.submission_prices, dtype=np.float64)
        self.w = np.asarray(solution.reviewer_prices, dtype=np.float64)
        held = problem.locked
        self.demand = problem.demand - np.bincount(held[:, 0], minlength=problem.shape[0])
        self.load_max = problem.load_max - np.bincount(held[:, 1], minlength=problem.shape[1])
        self.load_min = np.maximum(problem.load_min - np.bincount(held[:, 1], minlength=problem.shape[1]), 0)
        self.closed = PairSet(np.concatenate([problem.barred.pairs(), held]), problem.shape)
        self.open_rows, self.open_cols = self.demand > 0, self.load_max > 0
        self.improving = 0

    def bound(self, short: IntArray) -> float:
        """The bound for plans that miss as many reviews as this one; `short` counts those below load_min."""
        scores = self.problem.scores
        largest = 1.0
        total = 0.0
        # lines without room take part in no plan: their pairs are no threat whatever their prices
        u = np.where(self.open_rows, self.u, np.inf)
        w = np.where(self.open_cols, self.w, np.inf)
        for rows, cols in blocks(scores.shape):
            part = scores.block(rows, cols)
            over = part.astype(np.float64) if scores.tolerance == 0.0 else part
            with np.errstate(invalid="ignore"):
                over = over - u[rows, None].astype(over.dtype)
                over -= w[None, cols].astype(over.dtype)
            slack = scores.tolerance
            if over.dtype == np.float32:
                reach = max(
                    np.abs(self.u[rows], where=self.open_rows[rows], out=np.zeros(len(self.u[rows]))).max(initial=1.0),
                    np.abs(self.w[cols], where=self.open_cols[cols], out=np.zeros(len(self.w[cols]))).max(initial=1.0),
                )
                slack += float(reach) * 2.0**-21
            if not np.fmax.reduce(over, axis=None) > -slack:
                continue
            local_rows, local_cols = np.nonzero(over > -slack)
            for start in range(0, local_rows.size, CHUNK):
                pair_rows = local_rows[start : start + CHUNK] + rows.start
                pair_cols = local_cols[start : start + CHUNK] + cols.start
                score = scores.values(pair_rows, pair_cols)
                excess = score - self.u[pair_rows] - self.w[pair_cols]
                excess[~(excess > 0.0) | self.closed.contains(pair_rows, pair_cols)] = 0.0
                total += float(excess.sum())
                largest = max(largest, float(np.nanmax(np.abs(score), initial=0.0)))
                above = excess > IMPROVING * largest
                outside = ~self.chosen.contains(pair_rows[above], pair_cols[above])
                self.improving += int(outside.sum())
        held = self.problem.locked
        below = np.maximum(-self.w, 0.0)
        unfilled, penalty = self.solution.unfilled, self.solution.penalty
        # demand * u + penalty * unfilled, with the two huge and opposite numbers taken together first
        return float(
            np.nansum(scores.values(held[:, 0], held[:, 1]))
            + np.where(self.open_rows, (self.demand - unfilled) * self.u + unfilled * (self.u + penalty), 0.0).sum()
            + np.where(self.open_cols, self.load_max * np.maximum(self.w, 0.0), 0.0).sum()
            + (short * (penalty - below) - (self.load_min - short) * below).sum()
            + total
        )

    def missing_bound(self) -> int:
        """Fewest reviews any plan lacks, by the cut that the prices name, counted pair by pair.

        Prices of an infeasible problem lie near -1, 0 or 1 times the penalty. Those levels are prices of the
        problem "lack as little as possible", and weak duality there needs only counting.
        """
        if self.solution.penalty <= 0.0:
            return 0
        u = _levels(self.u, self.solution.penalty, self.open_rows)
        w = _levels(self.w, self.solution.penalty, self.open_cols)
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


def _levels(prices: FloatArray, penalty: float, room: NDArray[np.bool_]) -> IntArray:
    level = np.clip(np.rint(np.where(room, prices, penalty) / penalty), -1, 1).astype(np.int64)
    return np.where(room, level, 1)


def _finite(faults: list[str], solution: Solution) -> bool:
    """Whether every number of a solution is one; a comparison with NaN would let anything pass."""
    numbers = {name: getattr(solution, name) for name in ("value", "bound", "gap", "penalty")}
    arrays = {name: getattr(solution, name) for name in ("submission_prices", "reviewer_prices")}
    found = [f"{name} is not finite" for name, value in {**numbers, **arrays}.items() if not np.isfinite(value).all()]
    if solution.penalty < 0 or solution.gap < 0:
        found.append("a penalty or a gap is negative")
    faults += found
    return not found


def _expect(faults: list[str], good: NDArray[np.bool_], line: str, what: str) -> None:
    if not good.all():
        faults.append(f"{what} for {int((~good).sum())} {line}s, first {int(np.flatnonzero(~good)[0])}")


def _agree(faults: list[str], name: str, mine: float, theirs: float) -> None:
    if not abs(mine - theirs) <= RELATIVE * max(1.0, abs(mine)):
        faults.append(f"{name} recomputed from the inputs is {mine}, stated {theirs}")
