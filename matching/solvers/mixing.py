"""The search for the plan of the largest welfare, step by step; `matching.solvers.concave` says in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.constraints.ideal import ideal_sums
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import whole_bound
from matching.objectives import Welfare
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.clock import slack_of
from matching.solvers.exchange import Arcs, gentle_gain, reassign
from matching.solvers.master import best_mixture
from matching.solvers.oracle import Extreme, Oracle
from matching.solvers.sets import Priced, SetMaster
from matching.solvers.stated import bound_and_gap, stated
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["ENOUGH", "MIXED", "Search", "proof_of", "tangents"]

ENOUGH = 1e-4  # relative distance of the plan's equivalent to its bound at which nobody looks further
MIXED = 2e-5  # relative distance of the best mixture to the bound at which it is taken for the optimum
CORNERS = 150  # most plans asked of the oracle
IDLE = 12  # steps without a better bound or mixture after which the loop ends
KEPT = 60  # plans mixed at a time
DROPPED = 1e-6  # shares below it are dropped when there are more
LEAST_WEIGHT = 1e-12  # of a submission, relative to the largest: far below the oracle's resolution, yet above 0
STARTS = 3  # plans from which the exchange starts, while the gap is wide
SMALL = 100_000  # pairs; above it the exchange starts once
ROUNDS = 400  # most exchanges from one start
MOST_ALPHA = 16.0  # beyond it the values of sets lie too far apart for a linear program in floats
MOST_ROWS = 2000  # submissions; above it the bound over whole sets is taken at the prices at hand
SET_ROUNDS = 3  # times that sets are priced and then chosen from


@dataclass(frozen=True, eq=False)
class Certificate:
    """A bound in the unit of the measure and what proves it; u and w in units of the weighted score."""

    bound: float
    weights: FloatArray
    u: FloatArray
    w: FloatArray
    whole: bool = False


@dataclass(eq=False)
class Corner:
    """A plan the oracle gave."""

    taken: IntArray  # positions among the oracle's active pairs
    sums: FloatArray
    value: float


class Search:
    """What is known so far: plans, the best mixture of them, the best plan and the best bound."""

    def __init__(
        self, problem: AssignmentProblem, welfare: Welfare, oracle: Oracle, rng: int, report: ProgressCallback
    ) -> None:
        self.problem, self.welfare, self.oracle, self.report = problem, welfare, oracle, report
        self.clock = oracle.clock
        self.rng = np.random.default_rng(rng)
        self.corners: list[Corner] = []
        self.best = Corner(np.empty(0, dtype=np.int64), np.zeros(problem.shape[0]), -np.inf)
        self.mixed: list[Corner] = []
        self.shares = np.empty(0)
        self.asked = 0
        self.told = 0.0
        self.proven = True

    # the fractional optimum

    def begin(self) -> Extreme | None:
        """The first plan and the first bound, from the slopes where every submission has its ideal sum."""
        ideal = ideal_sums(self.problem)
        weights = tangents(self.welfare, ideal)
        self.certificate = self._ideal_certificate(weights)
        return self._certify(weights)

    def mix(self) -> None:
        """Ask for plans and mix them until the mixture is as good as the bound, or nothing gets better."""
        welfare = self.welfare
        best_guess, best_mixed, idle = np.inf, -np.inf, 0
        guess_weights = self.certificate.weights
        while self.asked < CORNERS and not self.clock.over:
            sums = self._best_mixture()
            value = welfare.value(sums)
            weights = tangents(self.welfare, sums)
            corner = self._ask(weights)
            guess = welfare.conjugate(weights) + float(weights @ corner.sums)
            better = guess < best_guess - 1e-3 * abs(best_guess - value) if np.isfinite(best_guess) else True
            if guess < best_guess:
                best_guess, guess_weights = guess, weights
            idle = 0 if better or value > best_mixed + 0.05 * abs(best_guess - value) else idle + 1
            best_mixed = max(best_mixed, value)
            known = min(best_guess, self.certificate.bound) if self.asked > 1 else best_guess
            self._tell("fairness", 0.1 + 0.6 * (1.0 - 0.9**self.asked))
            done = self._apart(known, best_mixed) <= MIXED or self._apart(known, self.best.value) <= ENOUGH / 10
            if not (done or idle >= IDLE):
                continue
            self._certify(guess_weights)
            if self._apart(self.certificate.bound, best_mixed) <= 2 * MIXED or idle >= IDLE:
                return
            best_guess = self.certificate.bound  # pairs that joined showed the guess to be too low
        if not self.clock.over:
            self._certify(guess_weights)

    def _best_mixture(self) -> FloatArray:
        with self.clock.stage("mixture"):
            fresh = self.corners[-1]
            if not self.mixed or self.mixed[-1] is not fresh:
                self.mixed.append(fresh)
            if len(self.mixed) > KEPT:
                keep = np.append(self.shares > DROPPED, np.ones(len(self.mixed) - self.shares.size, dtype=bool))
                if keep.sum() > KEPT:
                    keep[np.argsort(self.shares, kind="stable")[: len(self.mixed) - KEPT]] = False
                self.mixed = [corner for corner, kept in zip(self.mixed, keep, strict=True) if kept]
                self.shares = self.shares[keep[: self.shares.size]]
                self.shares /= self.shares.sum()
            points = np.array([corner.sums for corner in self.mixed])
            self.shares = best_mixture(self.welfare, points, self.shares, MIXED * 1e-2)
            mixture: FloatArray = self.shares @ points
            return mixture

    def _ask(self, weights: FloatArray) -> Corner:
        """The best plan on the active pairs for these slopes."""
        self.asked += 1
        taken, sums = self.oracle.corner(weights / weights.max())
        return self._add(taken, sums)

    def _add(self, taken: IntArray, sums: FloatArray) -> Corner:
        corner = Corner(taken, sums, self.welfare.value(sums))
        self.corners.append(corner)
        if corner.value > self.best.value:
            self.best = corner
        return corner

    def _certify(self, weights: FloatArray) -> Extreme | None:
        """The best plan over all pairs for these slopes and the bound it proves."""
        scale = float(weights.max())
        found = self.oracle.best(weights / scale)
        if found is None:
            self.proven = False
            return None
        self.asked += 1
        if not found.missing:
            self._add(np.flatnonzero(self.oracle.flow.amount), found.sums)
        bound = self.welfare.conjugate(weights) + scale * found.bound
        self.proven = self.proven and found.proven
        if bound < self.certificate.bound:
            self.certificate = Certificate(bound, weights, scale * found.u, scale * found.w)
        return found

    def _ideal_certificate(self, weights: FloatArray) -> Certificate:
        """What holds before anything is solved: nobody has more than the ideal sum. Prices come with the first flow."""
        return Certificate(np.inf, weights, np.zeros(self.problem.shape[0]), np.zeros(self.problem.shape[1]))

    # plans

    def exchange(self) -> None:
        """Better plans from the best ones known, by re-placing a review of each submission at a time."""
        if self._gap() <= slack_of(1.0):
            return
        with self.clock.stage("exchange"):
            size = self.oracle.state.rows.size
            ranked = sorted(self.corners, key=lambda corner: -corner.value)
            distinct = [one for at, one in enumerate(ranked) if at == 0 or one.value != ranked[at - 1].value]
            for start in distinct[: STARTS if size <= SMALL else 1]:
                if self.clock.over or self._gap() <= ENOUGH / 10:
                    return
                self._exchange_from(start, self.certificate)

    def _exchange_from(self, start: Corner, proof: Certificate) -> None:
        arcs, at = self._arcs(start, proof)
        taken, sums, value = np.isin(at, start.taken), start.sums, start.value
        most = int(self.oracle.state.supply.max(initial=1))
        idle = 0
        for _ in range(ROUNDS):
            if self.clock.over or idle > 3 * most + 2:
                break
            found = reassign(arcs, taken, sums, self._gain, self.rng)
            if found is None or found[1] <= 1e-12 * abs(value):
                idle += 1
                continue
            before, taken = value, found[0]
            sums = self._sums(arcs, taken)
            value = self.welfare.value(sums)
            if value > self.best.value:
                self.best = Corner(at[taken], sums, value)
            self._tell("rounding", 0.8)
            left = self._apart(self.certificate.bound, value)
            idle = 0 if self._apart(value, before) > 1e-2 * left else idle + 1
            if left <= ENOUGH / 10:
                break

    def _arcs(self, start: Corner, proof: Certificate) -> tuple[Arcs, IntArray]:
        """Pairs that some better plan may use, by their reduced costs, and those of the plan to start from."""
        state = self.oracle.state
        worth = proof.weights[state.rows] * state.plain - proof.u[state.rows] - proof.w[state.cols]
        use = worth >= -(proof.bound - self.best.value)
        use[start.taken] = True
        at = np.flatnonzero(use)
        arcs = Arcs(self.problem.shape, state.rows, state.cols, state.plain, state.load_min, state.load_max).only(at)
        return arcs, at

    def _gain(self, rows: IntArray, before: FloatArray, after: FloatArray) -> FloatArray:
        out = np.zeros(rows.size)
        inside = self.welfare.among[rows]
        out[inside] = self.welfare.parts(after[inside]) - self.welfare.parts(before[inside])
        return out

    def _sums(self, arcs: Arcs, taken: NDArray[np.bool_]) -> FloatArray:
        return np.bincount(arcs.rows[taken], weights=arcs.score[taken], minlength=self.problem.shape[0]) + self._held()

    def _held(self) -> FloatArray:
        """Scores of the locked pairs by submission."""
        locked = self.problem.locked[:, 0]
        return np.bincount(locked, weights=self.oracle.state.held, minlength=self.problem.shape[0]).astype(np.float64)

    def settle(self) -> None:
        """Rises that cost nobody anything: those set aside, and those so well off that welfare hardly counts them."""
        with self.clock.stage("exchange"):
            state = self.oracle.state
            arcs = Arcs(self.problem.shape, state.rows, state.cols, state.plain, state.load_min, state.load_max)
            taken = np.zeros(state.rows.size, dtype=bool)
            taken[self.best.taken] = True
            for _ in range(2 * int(state.supply.max(initial=1)) if state.rows.size <= SMALL else 1):
                if self.clock.over:
                    return
                found = reassign(arcs, taken, self.best.sums, gentle_gain, self.rng)
                if found is None:
                    continue
                taken, sums = found[0], self._sums(arcs, found[0])
                value = self.welfare.value(sums)
                if value >= self.best.value - 1e-12 * abs(self.best.value):
                    self.best = Corner(np.flatnonzero(taken), sums, max(value, self.best.value))

    # bounds

    def tighten(self) -> None:
        """Bound and plan over whole sets of people, where the mixture leaves more than plans can reach."""
        self.linear = proof = self.certificate
        if self._gap() <= ENOUGH or self.clock.over:
            return
        with self.clock.stage("sets"):
            if self.problem.shape[0] > MOST_ROWS or self.welfare.alpha > MOST_ALPHA:
                bound = whole_bound(self.problem, self.welfare, proof.weights, proof.w)
                if bound < proof.bound:
                    self.certificate = replace(proof, bound=bound, whole=True)
                return
            master = SetMaster(self.problem, self.welfare, self.clock)
            for corner in [*self.mixed, self.best]:
                master.book.add_plan(self._pairs(corner))
            prices = Priced(proof.bound, proof.weights, proof.u, proof.w)
            for _ in range(SET_ROUNDS):
                value = self.best.value
                aim = (1.0 + ENOUGH / 2) * self.welfare.equivalent(value)
                enough = self.welfare.of_equivalent(aim) - value
                prices = master.price(prices, value, enough, lambda bound: self._tell("fairness", 0.9))
                if prices.bound < self.certificate.bound:
                    self.certificate = Certificate(prices.bound, prices.weights, prices.u, prices.w, True)
                if self._gap() <= ENOUGH or self.clock.over or not self._choose(master, prices):
                    return

    def _choose(self, master: SetMaster, prices: Priced) -> bool:
        """Whether whole sets make a better plan, which is then made better still by exchanges."""
        pairs = master.plan(prices, self.best.value)
        if pairs is None:
            return False
        state = self.oracle.state
        state.add(pairs)
        width = self.problem.shape[1]
        taken = np.flatnonzero(np.isin(state.rows * width + state.cols, pairs @ np.array([width, 1])))
        size = self.problem.shape[0]
        sums = np.bincount(state.rows[taken], weights=state.plain[taken], minlength=size) + self._held()
        corner = Corner(taken, sums, self.welfare.value(sums))
        if corner.value <= self.best.value + 1e-12 * abs(self.best.value):
            return False
        self.best = corner
        self._exchange_from(corner, self.linear)
        master.book.add_plan(self._pairs(self.best))
        return True

    def _pairs(self, corner: Corner) -> PairArray:
        state = self.oracle.state
        return np.column_stack([state.rows[corner.taken], state.cols[corner.taken]])

    def _apart(self, high: float, low: float) -> float:
        """Relative distance of two values of the measure, as equally distributed equivalents."""
        above, below = self.welfare.equivalent(high), self.welfare.equivalent(low)
        return (above - below) / max(abs(below), 1e-300)

    def _gap(self) -> float:
        return self._apart(self.certificate.bound, self.best.value)

    def _tell(self, phase: str, fraction: float) -> None:
        value, bound = (self.welfare.equivalent(each) for each in (self.best.value, self.certificate.bound))
        self.told = max(self.told, fraction)  # it never goes back, though exchanges may follow the pricing of sets
        self.report(Progress(phase, self.told, value, bound, max(0.0, bound - value)))

    def solution(self, build_seconds: float) -> Solution:
        """Everything found, in the natural unit."""
        problem, welfare, found, state = self.problem, self.welfare, self.certificate, self.oracle.state
        value = welfare.equivalent(welfare.value(self.best.sums))
        proof = proof_of(
            welfare.alpha, welfare, value, welfare.equivalent(found.bound), found.weights, found.u, found.w, found.whole
        )
        free = np.column_stack([state.rows[self.best.taken], state.cols[self.best.taken]])
        at_limit = self.clock.over and proof.gap > ENOUGH * abs(value)
        status = Status.FEASIBLE_AT_LIMIT if at_limit or not self.proven else Status.OPTIMAL
        self.report(Progress("sweep", 1.0, proof.value, proof.bound, proof.gap))
        return stated(
            problem, status, np.concatenate([problem.locked, free]), (proof,), self.clock, build_seconds,
            rounds=self.asked,
            meta={
                "solver": "frank-wolfe",
                "active_pairs": int(state.rows.size),
                "set_aside": np.flatnonzero((problem.demand > 0) & ~welfare.among).tolist(),
                "total": float(self.best.sums.sum()),
                "least": float(self.best.sums[problem.demand > 0].min(initial=np.inf)),
            },
        )  # fmt: skip


def proof_of(
    alpha: float,
    measure: Welfare,
    value: float,
    bound: float,
    weights: FloatArray,
    u: FloatArray,
    w: FloatArray,
    whole: bool = False,
    rule_prices: tuple[Any, ...] = (),
) -> Proof:
    """Of the wish for welfare; value and bound are equally distributed equivalents."""
    bound, gap = bound_and_gap(value, bound)
    return Proof(
        wish={"name": "welfare", "alpha": alpha}, value=value, bound=bound, gap=gap,
        measure=measure, constraints=(), weights=frozen(weights), multipliers=(), submission_prices=frozen(u),
        reviewer_prices=frozen(w), rule_prices=rule_prices, whole=whole,
    )  # fmt: skip


def tangents(welfare: Welfare, sums: FloatArray) -> FloatArray:
    """Slopes of the welfare there, none so small that the conjugate is lost."""
    weights = welfare.weights(sums)
    weights[welfare.among] = np.maximum(weights[welfare.among], LEAST_WEIGHT * weights.max())
    return weights
