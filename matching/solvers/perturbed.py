"""Perturbed plans: the total less beta times the squared probabilities, under caps.

Where a cap spreads only the pairs it binds on, squares spread all of them: they take probability where it costs little
(Xu, Chen, Baheti, Procaccia and Fang, 2023. A one-size-fits-all approach to improving randomness in paper assignment.
NeurIPS). The prices come from Newton steps on the dual (`matching.solvers.quadratic`), and a flow turns the shares they
name into ones that add up to the last unit. Where those steps stall, as they may for a beta close to 0, flows do all
of it: a concave gain is many parallel arcs, each worse than the one before; only those near the present shares are
offered, and their width is quartered until the squares are met closely enough (scaling for separable convex flows:
Hochbaum and Shanthikumar, 1990. Journal of the ACM 37(4)).

For any prices u and w the dual function ``sum d u + l_max w + sum of max over x of (s - u - w) x - beta x^2`` bounds
the value, and it equals the proof's linear form at the anchor where that inner maximum is taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError
from matching.objectives import parse_objective
from matching.solvers.base import Progress, ProgressCallback, Solution
from matching.solvers.clock import Clock, slack_of
from matching.solvers.flow import Scale, Segments, transport
from matching.solvers.oracle import DENSE_PAIRS, Extreme
from matching.solvers.prices import Prices, Residual
from matching.solvers.quadratic import QuadraticDual
from matching.solvers.randomised import Lottery, capped, lottery_solution
from matching.solvers.ruled_lottery import ruled_lottery
from matching.solvers.sampling import nearest_units
from matching.solvers.state import State, open_prices
from matching.types import FloatArray, IntArray

__all__ = ["PerturbedSolver"]

REACH = 6  # steps up and down that are offered around the present share; the wider ones of before are 4 of these
COARSEST, CHECKED, FINEST = 2, 8, 16  # steps are 2**-2 of a review at first, 2**-16 at the last
CLOSE = 1e-5  # relative gap that ends the search
NEAR = 1e-3  # reviews a line may lack after the Newton steps for their shares to be worth repairing
RELAX_SWEEPS = 20_000
NEW_PAIRS = 24  # most new pairs of a submission in a round and block, as in the oracle


class PerturbedSolver:
    """Largest expected total less ``beta * sum of squared probabilities`` with no pair likelier than its cap.

    Parameters
    ----------
    beta : float
        At least 0, in units of score: 0 is the randomised plan; the larger, the more evenly the chances are spread.
    cap : float, array_like, scipy.sparse array or PairNumbers
        As in `matching.solvers.randomised.RandomisedSolver`.
    candidates, dense_pairs : int
        As there.
    """

    def __init__(self, beta: float = 0.5, cap: Any = 1.0, candidates: int = 16, dense_pairs: int = DENSE_PAIRS) -> None:
        self.beta = beta
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
        """The probabilities and one plan drawn with them; everything else as for the randomised plan.

        Returns
        -------
        Solution
            ``value`` is the expected total less the squares, locked pairs included with their probability of 1;
            ``meta["expected"]`` is the expected total.

        Raises
        ------
        InvalidParamsError
            beta or cap out of range or of another shape, or caps short by a slip of rounding.
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        wish = parse_objective({"name": "perturbed", "beta": self.beta, "cap": self.cap})[0]
        clock = Clock(time_limit)
        if problem.rules:
            return ruled_lottery(problem, wish, self.candidates, self.dense_pairs, rng, clock, progress)
        spread = parse_objective({"name": "randomised", "cap": self.cap})[0]
        lottery = capped(problem, spread, self.candidates, self.dense_pairs, rng, clock, progress)
        if isinstance(lottery, Solution):
            return lottery
        found = _Search(lottery, float(self.beta))
        with clock.stage("fairness"):
            found.run()
        solution = lottery_solution(
            replace(lottery, best=found.best), found.amount, found.value, found.bound,
            *open_prices(found.state, *found.best_prices), wish, rng, anchor=found.anchor,
        )  # fmt: skip
        return solution


class _Search:
    """The best shares and the best bound so far, and the prices that the next step starts from."""

    def __init__(self, lottery: Lottery, beta: float) -> None:
        self.lottery, self.beta = lottery, beta
        self.state: State = lottery.oracle.state
        self.unit = 1 << lottery.bits
        self.step = self.unit
        self.done = False
        self.rounds = lottery.best.rounds
        self.amount = lottery.amount
        self.value = self._value(self.amount)
        self.bound = np.inf
        self._take(*lottery.oracle.raw_prices)
        self._keep_bound()
        self.done = self._closed()

    def run(self) -> None:
        """Newton steps, then flows where those leave a gap."""
        if self.done:
            return
        if self._newton():
            self._repair()
            self._keep_bound()
        self.done = self._closed()
        if not self.done and not self.lottery.clock.over:
            self._refine()

    def _closed(self) -> bool:
        gap = self.bound - self.value
        self.lottery.report(Progress("fairness", 0.9, self.value, self.bound, gap))
        return bool(gap <= CLOSE * max(1.0, abs(self.value)))

    def _newton(self) -> bool:
        """Prices near the best over all pairs; False where the steps stall far from them or the time is up."""
        state, clock = self.state, self.lottery.clock
        while not clock.over:
            self.rounds += 1
            dual = QuadraticDual(
                state.rows, state.cols, state.plain, state.most, state.supply / self.unit,
                state.load_min / self.unit, state.load_max / self.unit, self.beta,
            )  # fmt: skip
            u, w, self.share, lacking = dual.solve(self.u, self.w, lambda: clock.over)
            self._take(u, w)
            added = self._price_in(slack_of(state.high_plain))
            self.amount = np.concatenate([self.amount, np.zeros(added, dtype=np.int64)])
            if not added:
                return lacking <= NEAR
        return False

    def _repair(self) -> None:
        """The shares of the Newton steps in units, moved as little as it takes for every line to add up."""
        state = self.state
        limit = state.limits
        assert limit is not None
        at = np.flatnonzero(self.share > 0.0)
        near = np.minimum(np.rint(self.share[at] * self.unit).astype(np.int64), limit[at])
        moved = nearest_units(
            state.problem.shape, state.rows[at], state.cols[at], near, limit[at] - near, state.supply, state.load_min,
            state.load_max,
        )  # fmt: skip
        if moved is not None:
            amount = np.zeros(state.rows.size, dtype=np.int64)
            amount[at] = moved
            self._keep_amount(amount)

    def _refine(self) -> None:
        """Flows over arcs that get finer until the gap is closed, the steps are as fine as they get, or time is up."""
        state, beta = self.state, self.beta
        steepest = 2.0 * beta  # gains fall by at most this from a probability of 0 to 1
        self.scale = Scale.fit(
            state.low_plain - steepest, state.high_plain, state.problem.shape, int(state.supply.sum()) // self.unit
        )
        over = state.plain - self.u[state.rows] - self.w[state.cols]
        self.now = self.amount
        self.offered: NDArray[np.bool_] = (self.now > 0) | (over > -steepest)
        self.prices = Prices(self._integers(self.u), self._integers(self.w))
        for bits in range(COARSEST, FINEST + 1, 2):
            self.step = max(1, self.unit >> bits)
            if not self._settle():
                return
            self._keep_amount(self.now)
            width = 4.0 * beta * self.step / self.unit
            over = state.plain - self.u[state.rows] - self.w[state.cols]
            self.offered = (self.now > 0) | (over > -width)
            if bits >= CHECKED:
                self._keep_bound()
                if self._closed():
                    break
        self.done = True

    @property
    def best(self) -> Extreme:
        """The starting point's record with what has been proven since."""
        return replace(self.lottery.best, proven=self.done, rounds=self.rounds)

    def _value(self, amount: IntArray) -> float:
        """Expected total less the squares."""
        state, share = self.state, amount / self.unit
        squares = float(share @ share) + len(state.problem.locked)
        return float(state.held.sum() + state.plain[: share.size] @ share) - self.beta * squares

    def _keep_amount(self, amount: IntArray) -> None:
        value = self._value(amount)
        if value >= self.value:
            self.amount, self.value = amount, value

    def _settle(self) -> bool:
        """Flows at the present step until no pair moves beyond what it was offered; False once the time is up."""
        while not self.lottery.clock.over:
            self.rounds += 1
            at_edge = self._flow()
            joined = self._join()
            if not at_edge and not joined:
                return True
        return False

    def _flow(self) -> bool:
        """One flow over the arcs around the present shares; whether some share ended where its arcs do."""
        state, step = self.state, self.step
        at = np.flatnonzero(self.offered)
        limit = state.limits
        assert limit is not None
        most, now = limit[at], self.now[at]
        low = np.maximum(now // step - REACH, 0)
        high = np.minimum(-(-most // step), now // step + REACH + 1)
        count = high - low
        which = np.repeat(np.arange(at.size), count)
        start = (np.arange(which.size) - np.repeat(np.cumsum(count) - count, count) + low[which]) * step
        end = np.minimum(start + step, most[which])
        rows, cols = state.rows[at][which], state.cols[at][which]
        gain = self.scale.integers(state.plain[at][which] - self.beta * (start + end) / self.unit)
        base = low * step
        fixed_row, fixed_col = self._line_sums(at, base)
        supply = state.supply - fixed_row
        least = np.maximum(state.load_min - fixed_col, 0)
        most_load = state.load_max - fixed_col
        everyone = np.arange(state.problem.shape[1], dtype=np.int64)
        total = int(supply.sum())
        flow = transport(
            state.problem.shape, rows, cols, -gain, supply,
            Segments(
                np.concatenate([everyone, everyone]),
                np.minimum(np.concatenate([least, most_load - least]), total),
                np.repeat(np.array([-self.scale.penalty, 0], dtype=np.int64), everyone.size),
            ),
            self.scale.penalty, end - start,
        )  # fmt: skip
        load = np.zeros(everyone.size, dtype=np.int64)
        np.add.at(load, cols, flow.amount)
        residual = Residual(
            state.problem.shape, rows, cols, flow.amount, flow.unfilled, supply, load, least, most_load, end - start
        )
        prices = residual.relax(gain, self.scale.penalty, self.prices, RELAX_SWEEPS)
        if prices is None:
            raise SolverError("the flow solver's answer has no dual prices; it is not optimal")
        self.prices = prices
        self._take(prices.u / self.scale.factor, prices.w / self.scale.factor)
        moved = base.copy()
        np.add.at(moved, which, flow.amount)
        self.now = self.now.copy()
        self.now[at] = moved
        top = np.minimum(high * step, most)
        return bool((((moved == base) & (low > 0)) | ((moved == top) & (top < most))).any())

    def _line_sums(self, at: IntArray, units: IntArray) -> tuple[IntArray, IntArray]:
        rows = np.zeros(self.state.problem.shape[0], dtype=np.int64)
        cols = np.zeros(self.state.problem.shape[1], dtype=np.int64)
        np.add.at(rows, self.state.rows[at], units)
        np.add.at(cols, self.state.cols[at], units)
        return rows, cols

    def _join(self) -> bool:
        """Offer every pair whose first step would pay; whether there was one."""
        state = self.state
        margin = self.beta * min(1.0, self.step / self.unit) + 1.0 / self.scale.factor
        over = state.plain - self.u[state.rows] - self.w[state.cols]
        late = ~self.offered & (over > margin)
        self.offered |= late
        added = self._price_in(margin)
        if added:
            self.amount = np.concatenate([self.amount, np.zeros(added, dtype=np.int64)])
            self.now = np.concatenate([self.now, np.zeros(added, dtype=np.int64)])
            self.offered = np.concatenate([self.offered, np.ones(added, dtype=bool)])
        return bool(added or late.any())

    def _price_in(self, margin: float) -> int:
        """Make pairs active that exceed their prices; 0 only after a sweep that left none out."""
        for limit in (NEW_PAIRS, None):
            pairs, _, complete = self.state.scores.exceeding(self.u, self.w, margin, limit, self.state.closed)
            added = self.state.add(pairs)
            if added or complete:
                return added
        return 0

    def _take(self, u: FloatArray, w: FloatArray) -> None:
        """Prices in units of score, lines without room closed by one that no pair exceeds, however large the others."""
        state = self.state
        shut_u, shut_w = state.supply == 0, state.load_max == 0
        reach = np.abs(u[~shut_u]).max(initial=0.0) + np.abs(w[~shut_w]).max(initial=0.0)
        roof = float(reach) + abs(state.high_plain) + 1.0
        self.u = np.where(shut_u, roof, u)
        self.w = np.where(shut_w, roof, w)

    def _integers(self, prices: FloatArray) -> IntArray:
        return np.rint(prices * self.scale.factor).astype(np.int64)

    def _keep_bound(self) -> None:
        """The dual function at the present prices, kept with what proves it if it is the lowest yet."""
        state, beta = self.state, self.beta
        problem = state.problem
        pairs, excess, _ = state.scores.exceeding(self.u, self.w, 0.0, None, state.closed)
        most = self.lottery.caps(pairs[:, 0], pairs[:, 1])
        point = np.minimum(excess / (2.0 * beta), most) if beta > 0.0 else np.zeros(excess.size)
        worth = np.maximum(excess - 2.0 * beta * point, 0.0) * most + beta * point**2
        locked = problem.locked
        bound = float(
            state.held.sum()
            - beta * len(locked)
            + state.supply / self.unit @ np.where(state.supply > 0, self.u, 0.0)
            + state.load_max / self.unit @ np.where(state.load_max > 0, np.maximum(self.w, 0.0), 0.0)
            - state.load_min / self.unit @ np.maximum(-self.w, 0.0)
            + worth.sum()
        )
        if bound < self.bound:
            where = (np.concatenate([locked[:, 0], pairs[:, 0]]), np.concatenate([locked[:, 1], pairs[:, 1]]))
            self.bound, self.best_prices = bound, (self.u, self.w)
            self.anchor = sparse.csr_array((np.concatenate([np.ones(len(locked)), point]), where), shape=problem.shape)
