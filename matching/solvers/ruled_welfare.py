"""Welfare under rules: the same mixture of plans, with linear and integer programs in the place of the flow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit
from matching.constraints.ideal import ideal_sums
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import whole_bound
from matching.objectives import Total, Welfare
from matching.pairs import PairSet
from matching.scores.base import SparseScores
from matching.solvers.base import Progress, ProgressCallback, Solution, Status
from matching.solvers.clock import Clock
from matching.solvers.master import best_mixture
from matching.solvers.milp import ArcAnswer, ArcProgram, RuleSolver, Weighted
from matching.solvers.milp.shared import rows_of
from matching.solvers.mixing import ENOUGH, MIXED, proof_of, tangents
from matching.solvers.pricing import without_plan
from matching.solvers.stated import stated
from matching.types import FloatArray, PairArray

__all__ = ["RuledSearch"]

CORNERS = 60  # most linear programs
KEPT = 40  # mixed at a time
PLANS = 4  # integer programs with slopes between the mixture's and the last plan's
EXCHANGES = 30  # integer programs over one review of each submission


@dataclass(frozen=True, eq=False)
class _Priced:
    bound: float
    weights: FloatArray
    u: FloatArray
    w: FloatArray
    rule_prices: tuple[Any, ...]
    whole: bool = False


class RuledSearch:
    """Welfare of a problem with rules.

    Priced rules do not count: welfare has no unit in which a score could be set against it. Their misses are stated.

    Parameters
    ----------
    problem : AssignmentProblem
    welfare : Welfare
    candidates : int
    rng : int
    clock : Clock
    report : ProgressCallback
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        welfare: Welfare,
        candidates: int,
        rng: int,
        clock: Clock,
        report: ProgressCallback,
    ) -> None:
        self.problem, self.welfare, self.candidates, self.rng = problem, welfare, candidates, rng
        self.clock, self.report = clock, report
        self.hard = replace(problem, rules=tuple(rule for rule in problem.rules if rule.price is None))
        self.pairs: PairArray | None = None
        self.sums = np.zeros(problem.shape[0])
        self.value = -np.inf
        self.rounds = 0
        self.done = 0.05  # share of the run

    def _tell(self, phase: str) -> None:
        value = self.welfare.equivalent(self.value) if np.isfinite(self.value) else None
        self.report(Progress(phase, self.done, value))

    def solve(self) -> Solution:
        """The best plan found and its bound; where no plan keeps all hard rules, the fullest of the largest total."""
        welfare, among = self.welfare, self.welfare.among
        self._tell("rules")
        self.program = ArcProgram(
            self.hard,
            candidates=self.candidates,
            rng=self.rng,
            clock=self.clock,
            tell=lambda phase, *_: self._tell(phase),
        )
        build_seconds = self.clock.seconds
        weights = tangents(welfare, ideal_sums(self.problem)) if among.any() else np.ones(self.problem.shape[0])
        first = self._plan(weights)
        if first is None or not first.found:
            return without_plan(self.problem, self.clock, build_seconds)
        if not first.feasible:
            total = RuleSolver(self.candidates)
            return total.solve(self.problem, rng=self.rng, time_limit=self.clock.left, progress=self.report)
        if among.any():
            proof = self._mix(weights)
            self._round(proof)
            self._exchange(proof)
            proof = self._tighten(proof)
        else:
            shape = self.problem.shape
            none = no_prices(self.hard.rules, shape[1])
            proof = _Priced(0.0, np.zeros(shape[0]), np.zeros(shape[0]), np.zeros(shape[1]), none)
        return self._solution(proof, build_seconds)

    def _plan(self, weights: FloatArray) -> ArcAnswer | None:
        """The best plan for these slopes; kept where it is the best so far."""
        scale = float(weights.max(initial=0.0)) or 1.0
        found = self.program.solve(Weighted(weights / scale), integral=True, start=self.pairs, gap=ENOUGH)
        self._keep(found)
        return found

    def _keep(self, found: ArcAnswer | None) -> bool:
        if found is None or not (found.found and found.feasible):
            return False
        score = np.nan_to_num(self.problem.scores.values(found.rows, found.cols))
        sums = np.bincount(found.rows, weights=score, minlength=self.problem.shape[0]).astype(np.float64)
        value = self.welfare.value(sums)
        if value <= self.value + 1e-12 * abs(self.value) and self.pairs is not None:
            return False
        self.pairs, self.sums, self.value = found.pairs, sums, value
        return True

    def _mix(self, weights: FloatArray) -> _Priced | None:
        """The best mixture of shares and the bound its slopes prove."""
        proof, points, shares = None, np.empty((0, self.problem.shape[0])), np.empty(0)
        for asked in range(CORNERS):
            if self.clock.over:
                break
            scale = float(weights.max())
            found = self.program.solve(Weighted(weights / scale), integral=False)
            self.rounds += 1
            if found is None or not found.found:
                break
            bound = self.welfare.conjugate(weights) + scale * found.bound
            if np.isfinite(bound) and (proof is None or bound < proof.bound):
                prices = tuple(price * scale for price in found.rule_prices)
                proof = _Priced(bound, weights, scale * found.u, scale * found.w, prices)
            if points.shape[0] >= KEPT:
                keep = np.sort(np.argsort(-shares, kind="stable")[: KEPT // 2])
                points, shares = points[keep], shares[keep] / shares[keep].sum()
            points = np.vstack([points, found.sums])
            shares = best_mixture(self.welfare, points, shares, MIXED * 1e-2)
            self.mixed = shares @ points
            weights = tangents(self.welfare, self.mixed)
            self.done = 0.1 + 0.5 * (1.0 - 0.9**asked)
            self._tell("fairness")
            if proof is not None and self._apart(proof.bound, self.welfare.value(self.mixed)) <= MIXED:
                break
        return proof

    def _round(self, proof: _Priced | None) -> None:
        """Plans near the mixture: slopes at it, then half way between it and the best plan."""
        if proof is None:
            return
        between = self.mixed
        for _ in range(PLANS):
            if self.clock.over or self._apart(proof.bound, self.value) <= ENOUGH:
                return
            if self._plan(tangents(self.welfare, between)) is None:
                return
            self.done = 0.8
            self._tell("rounding")
            between = 0.5 * (between + self.sums)

    def _exchange(self, proof: _Priced | None) -> None:
        """One review of each submission let go and placed again under all rules, as in `matching.solvers.exchange`.

        The others are locked for the while, so what a pair adds is exact, and the total of those gains is maximised.
        """
        idle, most = 0, int(self.problem.demand.max(initial=1))
        rng = np.random.default_rng(self.rng)
        for _ in range(EXCHANGES):
            assert self.pairs is not None
            done = proof is None or self._apart(proof.bound, self.value) <= ENOUGH
            if done or idle > 2 * most or self.clock.over:
                return
            idle = 0 if self._replace_one_each(rng) else idle + 1
            self._tell("rounding")

    def _replace_one_each(self, rng: np.random.Generator) -> bool:
        assert self.pairs is not None
        problem, pairs, state = self.hard, self.pairs, self.program.oracle.state
        locked = PairSet(problem.locked, problem.shape).contains(pairs[:, 0], pairs[:, 1])
        free = rng.permutation(np.flatnonzero(~locked))
        lines, first = np.unique(pairs[free, 0], return_index=True)
        freed = free[first]
        kept = np.delete(pairs, freed, axis=0)
        before, left = self.sums, self.sums.copy()
        left[lines] -= problem.scores.values(pairs[freed, 0], pairs[freed, 1])
        rows, cols = (np.concatenate(both) for both in ((state.rows, pairs[freed, 0]), (state.cols, pairs[freed, 1])))
        rows, cols = np.divmod(np.unique(rows * problem.shape[1] + cols), problem.shape[1])
        use = ~PairSet(kept, problem.shape).contains(rows, cols) & np.isin(rows, lines)
        rows, cols = rows[use], cols[use]
        gain = np.zeros(rows.size)
        inside = self.welfare.among[rows]
        after = left[rows[inside]] + problem.scores.values(rows[inside], cols[inside])
        gain[inside] = self.welfare.parts(after) - self.welfare.parts(before[rows[inside]])
        gain[PairSet(pairs, problem.shape).contains(rows, cols)] = 0.0  # what was let go may come back, exactly
        top = np.zeros(problem.shape[0])
        np.maximum.at(top, rows, gain)
        total = float(top.sum())
        if not total > 0.0:
            return False
        likely = gain >= -total
        table = sparse.csr_array((gain[likely] / total, (rows[likely], cols[likely])), shape=problem.shape)
        part = AssignmentProblem.of(
            SparseScores(table, default=np.nan), demand=problem.demand, load_max=problem.load_max,
            load_min=problem.load_min, conflicts=problem.barred, locks=kept, rules=problem.rules,
        )  # fmt: skip
        program = ArcProgram(part, candidates=self.candidates, rng=self.rng, clock=self.clock)
        return self._keep(program.solve(Total(), integral=True, start=pairs, gap=ENOUGH))

    def _tighten(self, proof: _Priced | None) -> _Priced | None:
        if proof is None or self.clock.over or self._apart(proof.bound, self.value) <= ENOUGH:
            return proof
        bound = whole_bound(self.hard, self.welfare, proof.weights, proof.w, proof.rule_prices)
        return replace(proof, bound=bound, whole=True) if bound < proof.bound else proof

    def _apart(self, high: float, low: float) -> float:
        above, below = self.welfare.equivalent(high), self.welfare.equivalent(low)
        return (above - below) / max(abs(below), 1e-300)

    def _solution(self, found: _Priced | None, build_seconds: float) -> Solution:
        pairs, problem, welfare = self.pairs, self.problem, self.welfare
        if pairs is None or found is None:
            return without_plan(problem, self.clock, build_seconds, self.rounds)
        given = iter(found.rule_prices)
        none = no_prices(problem.rules, problem.shape[1])
        prices = tuple(
            next(given) if rule.price is None else nothing for rule, nothing in zip(problem.rules, none, strict=True)
        )
        proof = proof_of(
            welfare.alpha, welfare, welfare.equivalent(welfare.value(self.sums)), welfare.equivalent(found.bound),
            found.weights, found.u, found.w, found.whole, prices,
        )  # fmt: skip
        locked = problem.locked
        held = sparse.csr_array((np.ones(len(locked)), (locked[:, 0], locked[:, 1])), shape=problem.shape)
        taken = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=problem.shape)
        over = self.clock.over and proof.gap > ENOUGH * abs(proof.value)
        status = Status.FEASIBLE_AT_LIMIT if over else Status.OPTIMAL
        return stated(
            problem, status, pairs, (proof,), self.clock, build_seconds,
            rounds=self.rounds,
            meta={
                "solver": "frank-wolfe+highs",
                "set_aside": np.flatnonzero((problem.demand > 0) & ~welfare.among).tolist(),
                "total": float(self.sums.sum()),
                "least": float(self.sums[problem.demand > 0].min(initial=np.inf)),
            },
            rule_shortfall=tuple(rule.shortfall(taken) for rule in rows_of(problem.rules, held)),
        )  # fmt: skip


def no_prices(rules: Sequence[Bound], n_reviewers: int) -> tuple[Any, ...]:
    """Prices of 0 for every rule, in the shapes `matching.constraints.linearised.rule_terms` takes."""
    return tuple(
        np.zeros(rule.shape)
        if isinstance(rule, PairLimit)
        else sparse.csr_array(rule.shape if isinstance(rule, GroupBound) else (rule.shape[0], n_reviewers + 1))
        for rule in rules
    )
