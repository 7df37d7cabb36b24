"""Randomised plans under rules: a lottery over whole lawful plans, no pair likelier than its cap.

Drawing pair by pair would break rules, so the lottery is one over plans, each of which keeps them. Shares of pairs
under caps and rules bound what any lottery can reach. Where the rules leave no face of those shares without a plan, as
for laminar rules (Budish, Che, Kojima and Milgrom, 2013. Designing random allocation mechanisms. American Economic
Review 103(2)), the shares themselves are taken apart into plans, one after the other. What is left over then is found
by column generation (Dantzig and Wolfe, 1960): a small linear program mixes the plans at hand under the caps, its
prices ask the integer program for the plan that would improve the mixture most, until none does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np
from scipy import sparse

from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total, Wish
from matching.pairs import in_row_order
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, Status, frozen
from matching.solvers.caps import TINY, cap_sums, rounded_down
from matching.solvers.clock import Clock
from matching.solvers.milp import ArcAnswer, ArcProgram
from matching.solvers.milp.plans import BestPlan, Plans, WholePlan
from matching.solvers.milp.program import DENSE_PAIRS
from matching.solvers.milp.reading import COUNT
from matching.solvers.milp.ruled import solution_of
from matching.solvers.milp.search import Search
from matching.solvers.milp.shares import Mixed, Mixing
from matching.solvers.milp.squares import SquaredLinear
from matching.solvers.pricing import without_plan
from matching.solvers.sampling import facts_of_draw, one_of
from matching.solvers.stated import bound_and_gap, stated
from matching.types import FloatArray, PairArray

__all__ = ["ruled_lottery"]

STEPS = 400  # plans asked for at prices, at most: an effort that is the same on every machine
CLOSE = 1e-9  # relative distance to the bound, or what a plan must improve a mixture by
SMOOTH = 0.5  # share of the best prices so far in those that are asked at: prices of a young mixture jump about
CLOSE_SQUARES = 3e-6  # the same where squares are met by tangents
NOTHING = 1e-9  # reviews lacking below this are none
HEAVY = 1e3  # how much dearer a missing review is than any plan, where the caps force some


def ruled_lottery(
    problem: AssignmentProblem,
    wish: Wish,
    candidates: int,
    dense_pairs: int,
    rng: int,
    clock: Clock,
    progress: ProgressCallback | None,
) -> Solution:
    """The largest expected total, less the expected cost of missed priced rules, under the caps of the wish.

    For perturbed less the squares as well.

    Returns
    -------
    Solution
        As of `matching.solvers.randomised.RandomisedSolver`, with `mixture`. ``bound`` is that of the shares; ``meta``
        holds "lottery_bound", that of the integer program, and "exact": whether no lottery is better.
    """
    caps = PairNumbers.of(wish.options["cap"], problem.shape, 1.0, "cap")
    beta = float(wish.options.get("beta", 0.0))
    report = progress or (lambda entry: None)
    report(Progress("candidates", 0.0))

    def tell(phase: str, value: float, bound: float) -> None:
        report(Progress(phase, {"rules": 0.2, "rounding": 0.3}.get(phase, 0.1)))

    def none_yet() -> Solution:
        return without_plan(problem, clock, build_seconds, meta={"solver": "highs", "highspy": version("highspy")})

    dense_pairs = min(dense_pairs, DENSE_PAIRS)
    program = ArcProgram(problem, candidates=candidates, dense_pairs=dense_pairs, rng=rng, clock=clock, tell=tell)
    build_seconds = clock.seconds
    certain = program.solve(Total(), integral=True)
    if certain is None or not certain.found:
        return none_yet()
    if not certain.feasible:
        found = solution_of(certain, {"name": "total"}, clock, build_seconds)
        found = replace(found, meta={**found.meta, "without": wish.name})
        return none_yet() if found.status == Status.LIMIT_WITHOUT_PLAN else found
    relaxed = program.relaxed(caps, beta)
    if relaxed is None:
        return none_yet()
    answer, search = relaxed
    capped_only = Wish("randomised", {"cap": wish.options["cap"]})
    if answer.lacking > 0.0 and beta > 0.0:  # squares are of no interest where reviews must be missing
        return ruled_lottery(problem, capped_only, candidates, dense_pairs, rng, clock, progress)
    if 0.0 < answer.lacking < TINY:
        raise rounded_down(answer.lacking)
    lottery = _Lottery(problem, caps, beta, answer, search, rng, clock, report)
    lottery.everything = problem.shape[0] * problem.shape[1] <= dense_pairs
    weights = lottery.run(certain)
    if weights is not None and NOTHING < weights.lacking < TINY:
        raise rounded_down(weights.lacking)
    if weights is not None and weights.lacking > NOTHING and beta > 0.0:
        return ruled_lottery(problem, capped_only, candidates, dense_pairs, rng, clock, progress)
    answered = None if weights is None else lottery.solution(wish, weights, certain.value, build_seconds)
    return answered or none_yet()


@dataclass(frozen=True, eq=False)
class _Weights:
    """The lottery found: weights of the known plans, and what is proven of it."""

    weights: FloatArray
    bound: float  # of the integer program, inf for none
    lacking: float
    settled: bool  # no plan of the active pairs improves it


class _Lottery:
    """The search; see `ruled_lottery`."""

    def __init__(
        self,
        problem: AssignmentProblem,
        caps: PairNumbers,
        beta: float,
        answer: ArcAnswer,
        search: Search,
        rng: int,
        clock: Clock,
        report: ProgressCallback,
    ) -> None:
        self.problem, self.caps, self.answer, self.search = problem, caps, answer, search
        self.rng, self.clock, self.report = rng, clock, report
        self.steps = 0
        self.plans = Plans(search.linear, caps)
        self.mixing = Mixing(np.minimum(self.plans.cap, 1.0), rng, beta)
        self.fixed = beta * len(problem.locked)  # what the squares of locked pairs cost
        self.close = CLOSE if beta == 0.0 else CLOSE_SQUARES
        self.everything = False  # whether all pairs are active, so that a search over them speaks of all

    # ---- the search -------------------------------------------------------------------------------------------

    def run(self, certain: ArcAnswer) -> _Weights | None:
        """The best lottery found; None at the limit, or where whether there is one was not settled."""
        self.mixing.add(self.plans.of(certain.pairs))
        if self.answer.lacking <= NOTHING:
            with self.clock.stage("rounding"):
                apart = self.plans.within(self._ask("rounding", 0.4))
            found = self._largest(self.mixing.of(apart))
            if found is not None:
                return found
        return self._fullest()

    def _largest(self, start: Mixed | None) -> _Weights | None:
        """The largest value over lotteries of full plans, from one to start with; None where none was found."""
        if start is not None and self._gap(start) <= self.close * max(1.0, abs(start.value)):
            return _Weights(start.weights, math.inf, 0.0, True)
        mixed = self._mixed_full()
        if mixed is None and start is None and self._is_full():
            mixed = self._mixed_full()
        if mixed is None:
            return None if start is None else _Weights(start.weights, math.inf, 0.0, False)
        bound, settled = math.inf, False
        best: tuple[FloatArray, float] | None = None
        while self.steps < STEPS and not (settled or self.clock.over):
            value = mixed.value - self.fixed
            self.report(Progress("rounding", 0.6, value, self.answer.bound))
            near = self.close * max(1.0, abs(value))
            if min(bound - value, self._gap(mixed)) <= near:
                settled = True
                break
            for smooth in (0.0,) if best is None else (SMOOTH, 0.0):
                prices, paid = mixed.prices, mixed.paid
                if best is not None:
                    prices, paid = prices + smooth * (best[0] - prices), paid + smooth * (best[1] - paid)
                found = self._ask_for(self.plans.plain - prices, 1.0, None)
                if found is None:
                    return _Weights(mixed.weights, bound, 0.0, False)
                proven = found.top + self.search.linear.held_value - self.fixed + paid
                if proven < bound:
                    bound, best = proven, (prices, paid)
                if self._joins(found.plan, found.plan.value, mixed, near):
                    break
            else:
                settled = found is not None and found.proven
                break
            again = self._mixed_full()
            if again is None:
                break
            mixed = again
        return _Weights(mixed.weights, bound, 0.0, settled)

    def _joins(self, plan: WholePlan, worth: float, mixed: Mixed, near: float) -> bool:
        """Whether a plan improves the mixture, and is a new one."""
        return worth - float(mixed.prices[plan.taken].sum()) > mixed.base + near and self.mixing.add(plan)

    def _is_full(self) -> bool:
        """Whether some lottery misses nothing; its plans are then known."""
        least = self._least_lacking()
        return least is not None and least.lacking <= NOTHING

    def _least_lacking(self) -> _Weights | None:
        """The fewest missing reviews over lotteries of plans that may miss some; None at the limit."""
        self.mixing.add(self.plans.nothing())
        settled = False
        while True:
            worth = [-plan.lacking for plan in self.mixing.plans]
            mixed = self.mixing.best(worth, [True] * len(worth), self.clock, False)
            if mixed is None:
                return None
            if -mixed.value <= self.answer.lacking + NOTHING:
                settled = True
                break
            if self.steps >= STEPS:
                break
            found = self._ask_for(-mixed.prices, 0.0, 1.0)
            if found is None:
                return None
            if not self._joins(found.plan, -found.plan.lacking, mixed, NOTHING):
                settled = found.proven
                break
        return _Weights(mixed.weights, math.inf, -mixed.value, settled)

    def _fullest(self) -> _Weights | None:
        """Where no lottery of full plans keeps the caps: as full a one as there is, and the best among the known."""
        least = self._least_lacking()
        if least is None or least.lacking <= NOTHING:
            return None
        by_prices = self.answer.lacking > NOTHING and self.answer.proven
        if not by_prices and not (least.settled and self.everything):
            return None
        dear = HEAVY * max(1.0, max(abs(plan.value) for plan in self.mixing.plans))
        worth = [plan.value - dear * plan.lacking for plan in self.mixing.plans]
        mixed = self.mixing.best(worth, [True] * len(worth), self.clock, False)
        if mixed is None:
            return None
        lacking = float(np.dot(mixed.weights, [plan.lacking for plan in self.mixing.plans]))
        return _Weights(mixed.weights, math.inf, lacking, least.settled)

    def _gap(self, mixed: Mixed) -> float:
        return self.answer.bound - (mixed.value - self.fixed)

    def _mixed_full(self) -> Mixed | None:
        plans = self.mixing.plans
        full = [plan.lacking <= COUNT for plan in plans]
        return self.mixing.best([plan.value for plan in plans], full, self.clock)

    def _ask_for(self, worth: FloatArray, of_rules: float, of_lacking: float | None) -> BestPlan | None:
        self.steps += 1
        return self.plans.best(worth, of_rules, of_lacking, self._ask("rounding", 0.6))

    def _ask(self, phase: str, fraction: float) -> Callable[[], None]:
        return lambda: self.report(Progress(phase, fraction))

    # ---- the answer -------------------------------------------------------------------------------------------

    def solution(self, wish: Wish, found: _Weights, total: float, build_seconds: float) -> Solution | None:
        """A plan drawn from the lottery and everything that goes with it."""
        problem, plans = self.problem, self.mixing.plans
        on = np.flatnonzero(found.weights > 0.0).tolist()
        chance = found.weights[on]
        mixture = tuple((float(weight), frozen(self._pairs(plans[at]))) for weight, at in zip(chance, on, strict=True))
        shares = self._shares(found.weights)
        infeasible = found.lacking > NOTHING
        able = [place for place, at in enumerate(on) if not infeasible or plans[at].lacking > COUNT]
        drawn = able[one_of(chance[able], np.random.default_rng(self.rng))]
        plan = plans[on[drawn]]
        worth = math.fsum(weight * plans[at].value for weight, at in zip(chance.tolist(), on, strict=True))
        value = worth - self.mixing.squares(found.weights) - self.fixed
        answer: ArcAnswer | None = self.answer
        if infeasible and self.answer.lacking <= NOTHING:
            answer = self.search.lacking_more(found.lacking)
        if answer is None:
            return None
        bound = self._bound(shares) if infeasible else answer.bound
        bound, gap = bound_and_gap(value, bound)
        linear = self.search.linear
        anchor = linear.anchor() if isinstance(linear, SquaredLinear) else None
        proof = Proof(
            wish.to_dict(), value, bound, gap, Total(), (), np.ones(problem.shape[0]), (), frozen(answer.u),
            frozen(answer.w), answer.rule_prices, answer.penalty, wish.options["cap"],
            anchor,
        )  # fmt: skip
        pairs = mixture[drawn][1]
        known = np.nan_to_num(problem.scores.values(pairs[:, 0], pairs[:, 1]))
        expected = worth + math.fsum(weight * plans[at].cost for weight, at in zip(chance.tolist(), on, strict=True))
        realised = float(known.sum())
        at_limit = gap > 0.0 and (self.clock.over or not answer.proven)
        self.report(Progress("rounding", 1.0, value, bound, gap))
        full = Status.FEASIBLE_AT_LIMIT if at_limit else Status.OPTIMAL
        solution = stated(
            problem, Status.INFEASIBLE if infeasible else full, pairs, (proof,), self.clock, build_seconds,
            rounds=int(answer.meta["rounds"]),
            meta={
                "solver": "highs",
                "highspy": version("highspy"),
                "active_pairs": int(answer.meta["active_pairs"]),
                "plans": len(mixture),
                "steps": self.steps,
                "lottery_bound": found.bound,
                "exact": gap == 0.0 or (found.settled and self.everything),
                "proven_by": answer.meta["proven_by"],
                **facts_of_draw(total, expected, realised, shares),
            },
            unfilled=np.rint(plan.unfilled).astype(np.int64),
            below_min=np.rint(plan.below_min).astype(np.int64),
            probabilities=shares,
            mixture=mixture,
            rule_shortfall=plan.missed,
        )  # fmt: skip
        if infeasible:
            lacks = np.flatnonzero(problem.demand - np.asarray(shares.sum(axis=1)).ravel() > NOTHING)
            solution.meta["short_caps"] = cap_sums(problem, self.search.linear.state, self.caps, lacks)
        return solution

    def _pairs(self, plan: WholePlan) -> PairArray:
        state = self.search.linear.state
        free = np.column_stack([state.rows[plan.taken], state.cols[plan.taken]])
        return in_row_order(np.concatenate([self.problem.locked, free]))

    def _shares(self, weights: FloatArray) -> sparse.csr_array:
        state, locked = self.search.linear.state, self.problem.locked
        chance = np.minimum(self.mixing.chances(weights), 1.0)
        some = np.flatnonzero(chance)
        rows = np.concatenate([locked[:, 0], state.rows[some]])
        cols = np.concatenate([locked[:, 1], state.cols[some]])
        shares = sparse.csr_array(
            (np.concatenate([np.ones(len(locked)), chance[some]]), (rows, cols)), shape=self.problem.shape
        )
        shares.sort_indices()
        return shares

    def _bound(self, shares: sparse.csr_array) -> float:
        """Of lotteries that miss as much as this one."""
        problem, linear = self.problem, self.search.linear
        unfilled = problem.demand - np.asarray(shares.sum(axis=1)).ravel()
        below = np.maximum(problem.load_min - np.asarray(shares.sum(axis=0)).ravel(), 0.0)
        missed = [rule.shortfall(shares) for rule in linear.rules]
        return self.search.certificate().bound(linear, np.maximum(unfilled, 0.0), below, missed)
