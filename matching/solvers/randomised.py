"""Randomised plans: the largest expected total under a highest probability for every pair.

The probabilities of a lottery over plans are shares of pairs, and every set of shares that meets demands and loads
is such a lottery (Birkhoff, 1946; drawn in `matching.solvers.sampling`). So a cap on probabilities is a capacity in
the flow, counted in units of 2**-40 of a review, and the flow's prices prove the expected total as they prove any
other (Jecmen, Zhang, Liu, Shah, Conitzer and Fang, 2020. Mitigating manipulation in peer review via randomized
reviewer assignments. NeurIPS). Under rules the lottery is one over whole plans (`matching.solvers.ruled_lottery`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total, Wish, parse_objective
from matching.pairs import in_row_order
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.caps import TINY, cap_sums, rounded_down
from matching.solvers.clock import Clock
from matching.solvers.oracle import DENSE_PAIRS, Extreme, Oracle
from matching.solvers.pricing import evenest, plan_from, without_plan
from matching.solvers.ruled_lottery import ruled_lottery
from matching.solvers.sampling import facts_of_draw, round_units, unit_bits
from matching.solvers.stated import bound_and_gap, stated
from matching.types import FloatArray, IntArray

__all__ = ["Lottery", "RandomisedSolver", "capped", "lottery_solution"]

DRAWS = 64  # draws looked at for one that misses little but not nothing, where load_min cannot be met

Tell = Callable[[str, int, float | None], None]


class RandomisedSolver:
    """Largest expected total with no pair likelier than its cap.

    Parameters
    ----------
    cap : float, array_like of shape (n_reviewers,), array_like or scipy.sparse of the problem's shape, or PairNumbers
        Range (0, 1], no unit: the highest probability of a pair. Entries a sparse array does not store are 1.
        Locked pairs have probability 1 whatever their cap.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(self, cap: Any = 0.5, candidates: int = 16, dense_pairs: int = DENSE_PAIRS) -> None:
        self.cap = cap
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
        """The probabilities and one plan drawn with them.

        Returns
        -------
        Solution
            ``value`` is the expected total, ``probabilities`` belong to it. ``meta`` holds "total" (of the best plan
            without chance), "realised" (total of the plan drawn), "share_of_total" and "realised_share" (None where
            that total is not above 0), "max_probability" and "entropy" (nats). Where no full plan exists at all, the
            answer is that of the objective "total". Where only the caps are in the way, it is INFEASIBLE too: the
            lottery fills as many reviews as the caps allow, and "short_caps" says whose caps do not suffice.

        Raises
        ------
        InvalidParamsError
            The cap: another shape, out of range, or short by a slip of rounding.
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        wish = parse_objective({"name": "randomised", "cap": self.cap})[0]
        if problem.rules:
            clock = Clock(time_limit)
            return ruled_lottery(problem, wish, self.candidates, self.dense_pairs, rng, clock, progress)
        lottery = capped(problem, wish, self.candidates, self.dense_pairs, rng, Clock(time_limit), progress)
        if isinstance(lottery, Solution):
            return lottery
        best = lottery.best
        return lottery_solution(lottery, lottery.amount, best.value, best.bound, best.u, best.w, wish, rng)


@dataclass(frozen=True, eq=False)
class Lottery:
    """The best shares under caps, and what an answer needs besides.

    Attributes
    ----------
    problem : AssignmentProblem
    wish : Wish
    caps : PairNumbers
    oracle : Oracle
        Counts in units of ``2**-bits`` of a review.
    best : Extreme
    bits : int
    total : float
        Of the best plan without chance.
    clock : Clock
    build_seconds : float
    report : callable
    """

    problem: AssignmentProblem
    wish: Wish
    caps: PairNumbers
    oracle: Oracle
    best: Extreme
    bits: int
    total: float
    clock: Clock
    build_seconds: float
    report: ProgressCallback

    @property
    def amount(self) -> IntArray:
        """Units of the oracle's active pairs, int64."""
        return self.oracle.flow.amount


def capped(
    problem: AssignmentProblem,
    wish: Wish,
    candidates: int,
    dense_pairs: int,
    rng: int,
    clock: Clock,
    progress: ProgressCallback | None,
) -> Lottery | Solution:
    """The largest expected total under the caps of the wish; a Solution where there is nothing to go on with.

    That is: no plan before the limit, no full plan at all, or none under the caps.
    """
    caps = PairNumbers.of(wish.options["cap"], problem.shape, 1.0, "cap")
    report = progress or (lambda entry: None)
    report(Progress("candidates", 0.0))
    plain = Oracle(problem, candidates=candidates, dense_pairs=dense_pairs, rng=rng, clock=clock)
    build_seconds = clock.seconds
    first = plain.best(tell=_tell(report, 0.0))
    if first is None:
        return without_plan(problem, clock, build_seconds)
    if first.missing and first.proven:
        first = evenest(plain, first, rng)
        return plan_from(problem, first, clock, build_seconds, {"solver": "flow+pricing", "without": wish.name})
    bits = unit_bits(int(problem.demand.sum()) + problem.shape[0] + 1)
    active = np.column_stack([plain.state.rows, plain.state.cols])
    oracle = Oracle(problem, units=1 << bits, capacity=caps, rng=rng, clock=clock, active=active)
    best = oracle.best(tell=_tell(report, 0.45))
    if best is None or (best.missing and not best.proven):
        return without_plan(problem, clock, build_seconds)
    found = Lottery(problem, wish, caps, oracle, best, bits, first.value, clock, build_seconds, report)
    return _short_of_caps(found, rng) if best.missing else found


def _tell(report: ProgressCallback, start: float) -> Tell:
    def tell(phase: str, rounds: int, value: float | None) -> None:
        report(Progress(phase, start + 0.45 * (1.0 - math.pow(0.6, rounds)), value))

    return tell


def lottery_solution(
    lottery: Lottery,
    amount: IntArray,
    value: float,
    bound: float,
    u: FloatArray,
    w: FloatArray,
    wish: Wish,
    rng: int,
    anchor: sparse.csr_array | None = None,
    penalty: float = 0.0,
) -> Solution:
    """A plan drawn from `amount` (units of the active pairs) and everything that goes with it.

    Parameters
    ----------
    value, bound : float
        Of the wish, natural unit.
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,), float64
    anchor : scipy.sparse.csr_array, optional
        As in Proof.
    penalty : float
        Above 0 where reviews are missing.
    """
    problem, clock = lottery.problem, lottery.clock
    lottery.report(Progress("rounding", 0.95, value, bound))
    with clock.stage("rounding"):
        rows, cols, units = _with_locked(lottery, amount)
        chosen, unfilled, below = _drawn(lottery, rows, cols, units, rng)
        shares = sparse.csr_array((units / 2.0**lottery.bits, (rows, cols)), shape=problem.shape)
        shares.sort_indices()
    pairs = in_row_order(np.column_stack([rows, cols])[chosen])
    bound, gap = bound_and_gap(value, bound)
    realised = float(np.nan_to_num(problem.scores.values(pairs[:, 0], pairs[:, 1])).sum())
    expected = float(np.nan_to_num(problem.scores.values(rows, cols)) @ (units / 2.0**lottery.bits))
    total = lottery.total
    proof = Proof(
        wish.to_dict(), value, bound, gap, Total(), (), np.ones(problem.shape[0]), (), frozen(u), frozen(w),
        penalty=penalty, cap=wish.options["cap"], anchor=anchor,
    )  # fmt: skip
    full = Status.OPTIMAL if lottery.best.proven else Status.FEASIBLE_AT_LIMIT
    solution = stated(
        problem, Status.INFEASIBLE if penalty else full, pairs, (proof,), clock, lottery.build_seconds,
        rounds=lottery.best.rounds,
        meta={
            "solver": "flow+pricing",
            "active_pairs": int(lottery.oracle.state.rows.size),
            "bits": lottery.bits,
            **facts_of_draw(total, expected, realised, shares),
        },
        unfilled=unfilled,
        below_min=below,
        probabilities=shares,
    )  # fmt: skip
    lottery.report(Progress("rounding", 1.0, value, bound, gap))
    return solution


def _with_locked(lottery: Lottery, amount: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Pairs that may be drawn, locked ones first, and their units."""
    locked, state = lottery.problem.locked, lottery.oracle.state
    some = np.flatnonzero(amount)
    return (
        np.concatenate([locked[:, 0], state.rows[some]]),
        np.concatenate([locked[:, 1], state.cols[some]]),
        np.concatenate([np.full(len(locked), 1 << lottery.bits, dtype=np.int64), amount[some]]),
    )


def _drawn(
    lottery: Lottery, rows: IntArray, cols: IntArray, units: IntArray, rng: int
) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], IntArray, IntArray]:
    """Which pairs a draw takes, and what it misses by submission and by reviewer.

    Shares of a review below load_min may turn out well in a draw; the plan shown is then one of those that they do not.
    """
    problem = lottery.problem
    source = np.random.default_rng(rng)
    short = lottery.best.below_min.any()
    found = []
    for _ in range(DRAWS if short else 1):
        chosen = round_units(problem.shape, rows, cols, units, lottery.bits, source)
        unfilled = problem.demand - np.bincount(rows[chosen], minlength=problem.shape[0])
        below = np.maximum(problem.load_min - np.bincount(cols[chosen], minlength=problem.shape[1]), 0)
        found.append((chosen, unfilled, below))
    missing = [int(unfilled.sum() + below.sum()) for _, unfilled, below in found]
    return found[min(range(len(found)), key=lambda at: (short and missing[at] == 0, missing[at]))]


def _short_of_caps(lottery: Lottery, rng: int) -> Solution:
    """The answer where a full plan exists but not under the caps: as full a lottery as there is.

    Reviews are missing in shares; the shares are cut down to miss a whole number of them in all, since only then does
    every draw miss equally many, which is what the prices prove of every plan.
    """
    problem, best, state = lottery.problem, lottery.best, lottery.oracle.state
    unit = 1 << lottery.bits
    amount = lottery.amount.copy()
    received = np.zeros(problem.shape[0], dtype=np.int64)
    carried = np.zeros(problem.shape[1], dtype=np.int64)
    np.add.at(received, state.rows, amount)
    np.add.at(carried, state.cols, amount)
    missing = state.supply - received
    lacking = float(missing.sum() + np.maximum(state.load_min - carried, 0).sum()) / unit
    if lacking < TINY:
        raise rounded_down(lacking)
    cut = int(-missing.sum() % unit)
    spare = np.maximum(carried - state.load_min, 0)
    for at in np.lexsort((state.plain, missing[state.rows] == 0, spare[state.cols] == 0)):
        if cut == 0:
            break
        less = min(cut, int(amount[at]))
        amount[at] -= less
        cut -= less
    taken = amount / unit
    expected = float(state.held.sum() + state.plain @ taken)
    below = np.maximum(state.load_min - np.bincount(state.cols, taken, problem.shape[1]) * unit, 0) / unit
    before = np.maximum(state.load_min - carried, 0) / unit
    added = float(-missing.sum() % unit) / unit + float(below.sum() - before.sum())
    solution = lottery_solution(
        lottery, amount, expected, best.bound + best.penalty * added, best.u, best.w, lottery.wish, rng,
        penalty=best.penalty,
    )  # fmt: skip
    solution.meta["short_caps"] = cap_sums(problem, state, lottery.caps, np.flatnonzero(missing))
    return solution
