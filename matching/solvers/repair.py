"""The total again after a change, from the plan and the prices of before: certified over all pairs, few pairs moved.

The prices of before tell nearly all pairs apart from the few that may matter. One sweep at these prices lists those
(`matching.solvers.listed`), the flow is made optimal on them from the old plan (`matching.solvers.balance`), and what
became cheap is looked at again until no pair of the whole matrix improves the plan. That is a proof in itself; nothing
of it rests on the start being right. A start whose prices say nothing about these scores is given up for a solve
without one.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.solvers.balance import Network, balance, polished
from matching.solvers.clock import Clock
from matching.solvers.flow import Flow
from matching.solvers.kept import keep_most
from matching.solvers.listed import MOST_LINES, Listed, best_of, margin_for
from matching.solvers.oracle import DENSE_PAIRS, Extreme, Oracle
from matching.solvers.prices import Prices
from matching.solvers.start import Start
from matching.solvers.state import Over
from matching.types import FloatArray, IntArray

__all__ = ["RepairOracle", "closest"]

FIRST_A_LINE = 64  # pairs of a line that is new or lacks reviews which are active from the start


class RepairOracle(Oracle):
    """An oracle for the plain scores that begins where an earlier plan ended.

    Parameters
    ----------
    problem : AssignmentProblem
    start : Start
        Of the problem's shape; anything else in it may be wrong.
    candidates, dense_pairs, rng, clock, executor
        As for Oracle.

    Attributes
    ----------
    refused : str
        Why the start was of no use, in words; empty where it was.
    sweeps : int
        Over all pairs, while the start was in use.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        start: Start,
        *,
        candidates: int = 16,
        dense_pairs: int = DENSE_PAIRS,
        rng: int = 0,
        clock: Clock | None = None,
        executor: Executor | None = None,
    ) -> None:
        super().__init__(problem, candidates=candidates, rng=rng, clock=clock, active=start.pairs, executor=executor)
        self.lacking = True  # the prices of before are held against the whole penalty
        self.refused = ""
        self._rng = rng
        self._old = PairSet(start.pairs, problem.shape)
        self._listed: Listed | None = None
        self._held: NDArray[np.bool_] | None = None
        with self.clock.stage("candidates"):
            dense = problem.shape[0] * problem.shape[1] <= dense_pairs
            if dense:
                self.state.add(np.indices(problem.shape).reshape(2, -1).T)
            self._begin(start, dense)

    @property
    def sweeps(self) -> int:
        """Sweeps over all pairs."""
        return 0 if self._listed is None else self._listed.sweeps

    def old_pairs(self) -> NDArray[np.bool_]:
        """Which of the active pairs are of the earlier plan."""
        return self._old.contains(self.state.rows, self.state.cols)

    def add_tied(self) -> int:
        """Make listed pairs active that lie exactly at the present prices: how many."""
        if self._listed is None or not self._listed.complete or self.prices is None:
            return 0
        pairs = self._listed.pairs
        gain = self.state.scale.integers(self.state.scores.values(pairs[:, 0], pairs[:, 1]))
        return self.state.add(pairs[gain == self.prices.u[pairs[:, 0]] + self.prices.w[pairs[:, 1]]])

    def flowing(self, last: tuple[Prices, int] | None) -> Flow:
        """The best flow on the active pairs, by the shortest way from the last one."""
        if not self.refused and self.prices is not None:
            state = self.state
            net = Network(
                state.problem.shape, state.rows, state.cols, state.gain, state.supply, state.load_min, state.load_max,
                state.scale.penalty,
            )  # fmt: skip
            if self._held is None:
                held = self.old_pairs()
                self.prices = polished(net, held, self.prices)
            else:
                held = np.zeros(state.rows.size, dtype=bool)
                held[: self._held.size] = self._held
            found = balance(net, held, self.prices)
            if found is not None:
                self.prices, self._held = found.prices, found.amount > 0
                return Flow(found.amount, found.unfilled)
            self._give_up("too much has changed since, so the plan was solved from scratch")
        return super().flowing(last)

    def pricing_in(self, u: FloatArray, w: FloatArray, near: float) -> tuple[int, Over]:
        """As for every oracle, from the list of pairs near the old prices where it can say."""
        if self._listed is not None and (found := self._listed.above(u, w)) is not None:
            pairs, excess = found
            return self.state.add(pairs[excess > 1.0 / self.state.scale.factor]), found
        return super().pricing_in(u, w, near)

    def _begin(self, start: Start, dense: bool) -> None:
        """Prices for every line, and the pairs that lie near them."""
        state = self.state
        u, w = start.submission_prices.copy(), start.reviewer_prices.copy()
        rows, cols = np.flatnonzero(np.isnan(u)), np.flatnonzero(np.isnan(w))
        if rows.size > self._few(0) or cols.size > self._few(1):
            self._give_up("it has no prices for too many of the lines", dense)
            return
        most = state.high - state.low + abs(state.high) + 2 * state.penalty
        u, w = np.clip(u, -state.penalty, most), np.clip(w, -state.penalty, most)
        self._price_new(u, w, rows, cols)
        roof = most + 1.0
        u[state.supply == 0], w[state.load_max == 0] = roof, roof
        if not dense:
            self._add_wanting(u, w, rows, cols)
            margin = margin_for(state.scores, u, w, state.supply > 0)
            listed = Listed(state.scores, state.closed, u, w, margin)
            if not listed.complete:
                self._give_up("its prices do not fit these scores")
                return
            state.add(listed.pairs)
            self._listed = listed
        # lines without room take no part in the flow; their price, above all scores, may not fit whole numbers
        u[state.supply == 0], w[state.load_max == 0] = 0.0, 0.0
        factor = state.scale.factor
        self.prices = Prices(np.rint(u * factor).astype(np.int64), np.rint(w * factor).astype(np.int64))

    def _price_new(self, u: FloatArray, w: FloatArray, rows: IntArray, cols: IntArray) -> None:
        """Who has no price yet gets the least at which no pair of the line would improve the plan."""
        state = self.state
        never = np.where(np.isnan(w), np.inf, w)
        _, best = best_of(state.scores, state.closed, rows, never, 0, 1)
        u[rows] = np.maximum(best, -state.penalty)
        _, best = best_of(state.scores, state.closed, cols, u, 1, 1)
        w[cols] = np.maximum(best, 0.0)

    def _add_wanting(self, u: FloatArray, w: FloatArray, rows: IntArray, cols: IntArray) -> None:
        """Lines that are new or lack reviews get more active pairs: they are sure to want some."""
        state = self.state
        held = self.old_pairs()
        given = np.bincount(state.rows[held], minlength=state.supply.size)
        load = np.bincount(state.cols[held], minlength=state.load_max.size)
        lacks = np.flatnonzero((given < state.supply) & (u > -state.penalty))
        idle = np.flatnonzero((load < state.load_max) & (w > 0) & (state.load_max > 0))
        for axis, lines, more, prices in ((0, rows, lacks, w), (1, cols, idle, u)):
            wanting = np.union1d(lines, more)
            if wanting.size <= self._few(axis):
                state.add(best_of(state.scores, state.closed, wanting, prices, axis, FIRST_A_LINE)[0])

    def _few(self, axis: int) -> float:
        return max(16.0, MOST_LINES * self.problem.shape[axis])

    def _give_up(self, why: str, dense: bool = False) -> None:
        """Go on as an oracle without a start; its pairs stay active."""
        self.refused, self.prices, self._listed, self.drop, self.lacking = why, None, None, True, False
        if not dense:
            rng = np.random.default_rng(self._rng)
            self.state.add(self.problem.scores.top_pairs(self.candidates, self.state.closed, rng))


def closest(oracle: RepairOracle, best: Extreme, rng: int) -> Extreme:
    """Of all flows as good as the oracle's last one, the one that keeps most old pairs; `best` where none is free."""
    state, flow = oracle.state, oracle.flow
    if oracle.prices is None:
        return best
    flow = Flow(np.concatenate([flow.amount, np.zeros(oracle.add_tied(), dtype=np.int64)]), flow.unfilled)
    taken = keep_most(
        state.problem, state.rows, state.cols, state.gain, flow.taken, oracle.prices,
        state.supply - flow.unfilled, state.load_min, state.load_max, rng, oracle.old_pairs(),
    )  # fmt: skip
    if taken is None or not best.spares(float(state.score[flow.taken].sum() - state.score[taken].sum())):
        return best
    u, w = oracle.raw_prices
    return oracle.extreme(Flow(taken.astype(np.int64), flow.unfilled), best.bound, u, w, best.proven, best.rounds)
