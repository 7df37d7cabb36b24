"""Solving the program: rows that a solution breaks and pairs that would improve it join until there are none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.linearised import Linearised, rule_terms
from matching.pairs import PairSet
from matching.solvers.milp.build import ArcRows, Phase
from matching.solvers.milp.model import Ask, IntegerAnswer
from matching.solvers.milp.shared import Links, SharedRows, settle
from matching.solvers.milp.wishes import total_pull
from matching.types import FloatArray

__all__ = ["ArcLinear", "Raw"]

PAIRS_A_ROUND = 24  # most new pairs of a submission in a round and block
IMPROVING = 1e-9  # a pair this far above its prices, relative to the largest score, joins

ALL_ROWS = 30_000  # rows of a rule that an integer search gets whether they bind or not

Tell = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class Raw:
    """Prices as the last linear solve has them, uncleaned.

    Attributes
    ----------
    pull : ndarray of shape (n_submissions,), float64
        Weight of each submission's sum.
    u, w : ndarray, float64
    rule_prices : tuple
        As `rule_terms` takes them.
    penalty : float
        Price of a missing review; 0 where none may be missing.
    """

    pull: FloatArray
    u: FloatArray
    w: FloatArray
    rule_prices: tuple[Any, ...]
    penalty: float


class ArcLinear(ArcRows):
    """The program with its solutions and prices; see `ArcRows` for the parameters."""

    ask: Callable[[], None] | None = None
    """Called now and then within linear solves; an exception stops them and passes through."""

    def optimise(self, phase: Phase, tell: Tell | None = None) -> str:
        """ "optimal" over all pairs and all rows, "infeasible" on the active ones, or "limit"."""
        self.set_phase(phase)
        while not self.clock.over:
            self.rounds += 1
            with self.clock.stage("linear"):
                status = self.model.solve(self.clock.left, self.ask)
            if status != "optimal":
                return status
            if tell is not None:
                tell(-self.model.value)
            if self.add_broken(self.shares, phase != "missing"):
                continue
            with self.clock.stage("sweeps"):
                added = self.price_in()
            if not added:
                return "optimal"
            self.add_pairs()
        return "limit"

    @property
    def shares(self) -> FloatArray:
        """Share of each active pair in the last linear solution, [0, 1]."""
        return np.clip(self.model.values[self.x], 0.0, 1.0)

    @property
    def lacking(self) -> float:
        """Missing units of the last linear solution."""
        return float(self.model.values[self._lacking].sum())

    def taken(self, share: FloatArray) -> sparse.csr_array:
        """Shares of pairs as a matrix, locked ones with 1."""
        state = self.state
        on = np.flatnonzero(share)
        locked = state.problem.locked
        data = np.concatenate([np.ones(len(locked)), share[on]])
        at = (np.concatenate([locked[:, 0], state.rows[on]]), np.concatenate([locked[:, 1], state.cols[on]]))
        return sparse.csr_array(sparse.coo_array((data, at), shape=state.problem.shape))

    def sums(self, share: FloatArray) -> FloatArray:
        """The submissions' sums, locked pairs included."""
        state = self.state
        rows = np.concatenate([state.problem.locked[:, 0], state.rows[: share.size]])
        weight = np.concatenate([state.held, state.plain[: share.size] * share])
        return np.bincount(rows, weights=weight, minlength=state.problem.shape[0]).astype(np.float64)

    @property
    def held_value(self) -> float:
        """What locked pairs add to a linear measure, which the program leaves out."""
        direct = self.measure.direct
        return 0.0 if direct is None else float(direct[self.state.problem.locked[:, 0]] @ self.state.held)

    def add_broken(self, share: FloatArray, with_wishes: bool = True, levels: Sequence[float] | None = None) -> bool:
        """Add the rows these shares break; whether there were any.

        `levels` are the T's to hold the wishes to, the measure's first; None for those of the last linear solution.
        """
        found = False
        if self.rules:
            taken = self.taken(share)
            for rule in self.rules:
                keys = rule.broken(taken)
                if keys.size:
                    found = True
                    self.add_rule_rows(rule, keys)
        if with_wishes:
            sums = self.sums(share)
            for place, wish in enumerate((self.measure, *self.wishes)):
                if wish.column < 0:
                    continue
                level = self.model.values[wish.column] * wish.scale if levels is None else levels[place]
                new = wish.broken(sums, float(level))
                if new.matrix.shape[0]:
                    found = True
                    self.add_sum_rows(wish, new)
        return found

    def add_rest(self) -> None:
        """Rows that no linear solution has broken and a plan could: an integer search that met them late starts anew.

        Rules and wishes that would need more than ALL_ROWS of them are left to be met.
        """
        active = self.taken(np.ones(self.x.size)) if self.rules else None
        for rule in self.rules:
            keys = rule.breakable(active)
            if 0 < keys.size <= ALL_ROWS:
                self.add_rule_rows(rule, keys)
        for wish in (self.measure, *self.wishes):
            if wish.column >= 0:
                self.add_sum_rows(wish, wish.rest())

    def raw(self) -> Raw:
        """Prices of the last linear solution."""
        duals = self.model.duals
        pull = total_pull((self.measure, *self.wishes), duals, self.state.problem.shape[0])
        if self.phase == "value" and self.measure.direct is not None:
            pull = pull + self.measure.direct
        free = self.phase == "missing" or self.missing > 0
        penalty = 1.0 if self.phase == "missing" else max(0.0, -float(duals[self._missing_row])) if free else 0.0
        u, w = -duals[self._demand_rows], -duals[self._load_rows]
        most = np.inf
        if free:
            u, w, most = np.maximum(u, -penalty), np.maximum(w, -penalty), penalty
        w = np.where((w < 0) & (self.state.load_min == 0), 0.0, w)
        prices = []
        for rule in self.rules:
            soft_free = not rule.hard and self.phase != "value"
            prices.append(rule.prices(np.zeros_like(duals) if soft_free else duals, most))
        raw = Raw(pull, u, w, tuple(prices), penalty)
        return replace(raw, rule_prices=self._settled(raw, -np.inf)[0])

    def _settled(self, raw: Raw, margin: float) -> tuple[tuple[Any, ...], list[Links]]:
        """Prices of sharing split for people without a z, and who should get one; see `settle`."""
        if not any(isinstance(rule, SharedRows) for rule in self.rules):
            return raw.rule_prices, []
        scores = self.linearised(raw)
        return settle(self.rules, raw.rule_prices, raw.u, raw.w, scores, self.state, margin)

    def nothing(self) -> Raw:
        """Prices of 0 with a penalty of 1."""
        shape, idle = self.state.problem.shape, np.zeros(self.model.n_rows)
        return Raw(
            np.zeros(shape[0]), np.zeros(shape[0]), np.zeros(shape[1]),
            tuple(rule.prices(idle, 0.0) for rule in self.rules), 1.0,
        )  # fmt: skip

    def price_in(self) -> int:
        """Make active the pairs, and sharings, that would improve the present phase; 0 only where none would."""
        raw = self.raw()
        scores = self.linearised(raw)
        u, w = self.closing(raw.u, raw.w, scores)
        margin = IMPROVING * max(1e-3, float(np.abs(raw.pull).max(initial=0.0)) * self.reach, float(raw.penalty))
        links = self._settled(raw, -margin)[1]
        added = sum(link.keys.size for link in links)
        for link in links:
            self.add_links(link)
        for limit in (PAIRS_A_ROUND, None):
            pairs, _, complete = scores.exceeding(u, w, margin, limit, self.state.closed)
            added += self.state.add(pairs)
            if added or complete:
                break
        return added

    def widen(self, raw: Raw, margin: float, most: int) -> tuple[int, bool]:
        """Make active every pair within `margin` of its prices; (how many joined, whether all could).

        Where that would make more than `most` active pairs, the nearest join.
        """
        scores = self.linearised(raw)
        left, right = self.closing(raw.u, raw.w, scores)
        pairs, excess, _ = scores.exceeding(left - margin, right, 0.0, None, self.state.closed)
        have = PairSet(np.column_stack([self.state.rows, self.state.cols]), self.state.problem.shape)
        fresh = ~have.contains(pairs[:, 0], pairs[:, 1])
        pairs, excess = pairs[fresh], excess[fresh]
        room = max(0, most - self.state.rows.size)
        whole = pairs.shape[0] <= room
        if not whole:
            pairs = pairs[np.argsort(-excess, kind="stable")[:room]]
        added = self.state.add(pairs)
        self.add_pairs()
        for link in self._settled(raw, margin)[1]:
            added += link.keys.size
            self.add_links(link)
        return added, whole

    def link_all(self) -> None:
        """Let everyone be shared who could be."""
        for rule in self.rules:
            if isinstance(rule, SharedRows):
                self.add_links(rule.all_links(self.state))

    def linearised(self, raw: Raw) -> Linearised:
        """The scores under these weights and rule prices."""
        problem = self.state.problem
        groups, terms, _ = rule_terms(problem.rules, raw.rule_prices, problem.shape)
        return Linearised(problem.scores, raw.pull, terms, groups)

    def closing(self, u: FloatArray, w: FloatArray, scores: Linearised) -> tuple[FloatArray, FloatArray]:
        """Prices with lines without room closed by one no pair exceeds."""
        roof = scores.reach(self.reach) + float(np.abs(u).max(initial=0.0) + np.abs(w).max(initial=0.0)) + 1.0
        return np.where(self.state.supply > 0, u, roof), np.where(self.state.load_max > 0, w, roof)

    @property
    def reach(self) -> float:
        """No plain score is larger in size."""
        return max(abs(self.state.low_plain), abs(self.state.high_plain))

    def integral(self, start: NDArray[np.bool_] | None, gap: float, ask: Ask | None = None) -> IntegerAnswer:
        """The integer search over the present rows and pairs; `start` says which active pairs a known plan takes."""
        known = None if start is None else (self.x, start.astype(np.float64))
        with self.clock.stage("integer"):
            return self.model.solve_integral(self.x, known, gap, self.clock.left, ask)
