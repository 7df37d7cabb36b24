"""The total under rules that a network holds, exact over all pairs: flows, prices, sweeps, and cells where needed.

The same column generation as without rules (`matching.solvers.oracle`), with a second kind of growth: a bound that a
flow breaks gets a node. When a sweep over all pairs finds none above its prices, and no bound is broken, the plan is
the best of all. The optimum of a network is a plan, so nothing is rounded and no gap is left.
"""

from __future__ import annotations

import logging
from concurrent.futures import Executor
from importlib.metadata import version

import numpy as np
from scipy import sparse

from matching.constraints.families import families_of
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError, SolverRangeError
from matching.scores.fan import sweeping
from matching.solvers.base import Progress, ProgressCallback, Solution
from matching.solvers.cells import Cells, Parts
from matching.solvers.clock import Clock, slack_of
from matching.solvers.flow import Scale
from matching.solvers.layered import Laid, Layered, Marks
from matching.solvers.milp.shared import rows_of
from matching.solvers.networked_proof import Priced, RulePrices, answer_of, rule_prices
from matching.solvers.networked_ties import evened
from matching.solvers.oracle import DENSE_PAIRS, PRICES_MOVE, Oracle
from matching.types import IntArray, PairArray

__all__ = ["NetworkSolver"]

log = logging.getLogger(__name__)

FREE_ROUNDS = 2  # flows without rules, for prices and pairs to begin with
EASED_ROUNDS = 2  # with sweeps; after so many, what is still missing is no matter of a few better candidates
PAIRS_A_ROUND = 48  # most new pairs of a submission in a round
ALL_LOWER = 2  # times the number of lines: up to so many cells with lower bounds are laid out together
BROKEN = 0.01  # times the number of lines: with more broken bounds than that the next flow comes before a sweep
NEAR = 0.5  # times the number of lines, and again each time: pairs near their prices for which nodes are laid out too
CELLS_MOVE = 0.25  # of the range of scores: further no price is expected to move when cells are added
DEAREST = 256.0  # times the range of scores: higher prices would leave scores too few of the flow's digits
TIES_TRIES = 8  # plans that tie are tried so often before the one at hand is kept
RELAX_SWEEPS = 20_000  # a guard, not a limit
REFINE_SWEEPS = 400  # refining float prices is a courtesy, so it may give up


Broken = tuple[Parts, Parts]
"""Bounds of both sides."""


class NetworkSolver:
    """Maximal total under rules of network form, certified over all pairs.

    Parameters
    ----------
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    executor : Executor or None
        Computes the sweeps over all pairs; see `matching.scores.fan.sweeping`.
    """

    def __init__(self, candidates: int = 16, dense_pairs: int = DENSE_PAIRS, executor: Executor | None = None) -> None:
        self.candidates = candidates
        self.dense_pairs = dense_pairs
        self.executor = executor

    def solve(
        self,
        problem: AssignmentProblem,
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution | None:
        """The best plan, or among the fullest the best; None where rules are of another form or time was too short.

        Raises
        ------
        SolverRangeError, SolverError
            As for the flow without rules.
        """
        families = families_of(problem.rules)
        if families is None:
            return None
        cells = (Cells(families[0], problem), Cells(families[1], problem))
        if cells[0].forced or cells[1].forced:
            return None
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        oracle = Oracle(
            problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock, drop=True,
            executor=self.executor,
        )  # fmt: skip
        if oracle.state.beyond.any() or _dearest(problem) > DEAREST * max(oracle.state.high - oracle.state.low, 1e-300):
            return None
        build_seconds = clock.seconds
        run = _Run(oracle, cells, report, self.executor, rng)
        try:
            best = run.solve()
        except (SolverError, SolverRangeError) as error:
            log.info("rules as a network: %s", error)
            return None
        if best is None:
            return None
        meta = {
            "solver": "flow+pricing",
            "ortools": version("ortools"),
            "resolution": 1.0 / run.scale.factor,
            "active_pairs": int(run.state.rows.size),
            "rule_nodes": cells[0].size + cells[1].size,
        }
        solution = answer_of(run.state, best, run.rounds, clock, build_seconds, meta)
        report(Progress("sweep", 1.0, solution.value, solution.bound, solution.gap))
        return solution


class _Run:
    """One solve."""

    def __init__(
        self, oracle: Oracle, cells: tuple[Cells, Cells], report: ProgressCallback, executor: Executor | None, rng: int
    ) -> None:
        self.rng, self.ties = rng, True
        self.oracle, self.cells, self.report, self.executor = oracle, cells, report, executor
        self.state, self.clock = oracle.state, oracle.clock
        self.scale: Scale = oracle.state.scale
        self.rounds = self.sweeps = 0
        self.anew = False  # whether prices begin from nothing
        self.whole = False  # whether the price of a missing review is the one that nothing outweighs

    def solve(self) -> Priced | None:
        """The optimal flow with its prices; None at the limit, or where nodes do not count all that is missing."""
        state, clock = self.state, self.clock
        self._tell("flow")
        first = self.oracle.best(rounds=FREE_ROUNDS)
        if first is None:
            return None
        self.rounds = first.rounds
        broken = self._broken(first.rows, first.cols)
        u, w = self.oracle.raw_prices
        reach = max(abs(state.low), abs(state.high), state.high - state.low)
        u, w = np.clip(u, -2 * reach, 2 * reach), np.clip(w, -2 * reach, 2 * reach)
        at: IntArray = np.rint(np.concatenate([u, -w, [0.0]]) * self.scale.factor).astype(np.int64)
        older: Layered | None = None
        few = not any(cell.asks(parts) for cell, parts in zip(self.cells, broken, strict=True))
        far: int | None = self.scale.steps(CELLS_MOVE * reach) if few else None
        most_broken = BROKEN * sum(state.problem.shape)
        layouts = 0
        last: tuple[Laid, Marks, RulePrices] | None = None
        while not clock.over:
            self.rounds += 1
            self._tell("flow")
            with clock.stage("flow"):
                layouts += _size(broken) > 0
                if older is not None and layouts > 1 and _size(broken):
                    broken = self._with_near(broken, older, at, (layouts - 1) * NEAR)
                self._lay_out(broken)
                network = Layered(state, self.cells)
                at, older = self._rescaled(network, network.carried_over(at, older)), network
                laid = self._flow(network, None if far is None else (at, far))
                pairs = np.concatenate([state.problem.locked, self._places(laid)])
                broken = self._broken(pairs[:, 0], pairs[:, 1])
            count = _size(broken)
            # where something is missing, or no longer is, prices move by the penalty
            far = self.scale.steps(CELLS_MOVE * reach) if count and not laid.missing else None
            if count > most_broken:
                continue
            self._tell("prices")
            with clock.stage("prices"):
                cost = self._cost(network)
                found = network.potentials(laid, cost, np.zeros_like(at) if self.anew else at, RELAX_SWEEPS)
                self.anew = False
                if found is None:
                    raise SolverError("the flow solver's answer has no dual prices; it is not optimal")
                at = found
                marks, rules = self._in_scores(network.marks(at, self._penalty, self.scale))
            if not count and not laid.missing:
                last = (laid, marks, rules)
            self._tell("sweep")
            self.sweeps += 1
            with clock.stage("sweeps"), sweeping(self.executor):
                added = self._price_in(marks, rules)
            if added:
                if far is not None or not count:
                    far = max(far or 1, self.scale.steps(PRICES_MOVE * self._most_above(marks, rules, added)))
            elif not count:
                if self.ties and not laid.missing:
                    even = self._evened(network, laid, cost, at)
                    if even is None:  # with the nodes that were laid out, and without another try
                        self.ties, far = False, self.scale.steps(CELLS_MOVE * reach)
                        continue
                    if even[0] is not network:
                        network, laid, cost, at = even
                        marks, rules = self._in_scores(network.marks(at, self._penalty, self.scale))
                    laid = even[1]
                if self.whole or not laid.missing:
                    return self._settled(network, laid, cost, at, marks, rules)
                self._count_whole()
        return None if last is None else self._proved(*last, 0.0, proven=False)

    @property
    def _penalty(self) -> int:
        return self.scale.penalty if self.whole else self.scale.eased().penalty

    def _cost(self, network: Layered) -> IntArray:
        """What a unit costs on each arc."""
        return network.cost(self.scale.integers(self.state.score), self._penalty, self.scale)

    def _flow(self, network: Layered, start: tuple[IntArray, int] | None) -> Laid:
        laid = network.flow(self._cost(network), start)
        if laid.missing and not self.whole and (self.sweeps >= EASED_ROUNDS or self.oracle.everything):
            self._count_whole()
            laid = network.flow(self._cost(network), None)
        return laid

    def _count_whole(self) -> None:
        """From here on nothing outweighs a missing review; prices of before would end between those that say so."""
        self.whole = self.anew = True

    def _rescaled(self, network: Layered, at: IntArray) -> IntArray:
        """More nodes may want a coarser scale; potentials follow."""
        before, self.scale = self.scale, network.scale(self.state.low, self.state.high)
        if before.factor == self.scale.factor:
            return at
        moved: IntArray = np.rint(at * (self.scale.factor / before.factor)).astype(np.int64)
        return moved

    def _broken(self, rows: IntArray, cols: IntArray) -> Broken:
        """The bounds that a plan breaks and that no node stands for yet."""
        taken = sparse.csr_array((np.ones(rows.size), (rows, cols)), shape=self.state.problem.shape)
        return self.cells[0].broken(taken), self.cells[1].broken(taken)

    def _with_near(self, broken: Broken, network: Layered, at: IntArray, share: float) -> Broken:
        """Broken bounds and those that would be if pairs near their prices, or at them, were all taken.

        Where many plans are equally good each flow breaks other bounds than the one before, and would for long.
        """
        state, pairs = self.state, network.pairs
        below = at[network.tail[pairs]] - at[network.head[pairs]] - self.scale.integers(state.score[pairs])
        off, most = below[below > 0], int(share * sum(state.problem.shape))
        near = np.flatnonzero(below <= (np.partition(off, most)[most] if off.size > most else off.max(initial=0)))
        rows = np.concatenate([state.problem.locked[:, 0], state.rows[near]])
        others = self._broken(rows, np.concatenate([state.problem.locked[:, 1], state.cols[near]]))
        return broken[0] + others[0], broken[1] + others[1]

    def _lay_out(self, broken: Broken) -> None:
        """Nodes for some bounds; where a lower one is among them, for all lower ones unless they are too many."""
        for cell, parts in zip(self.cells, broken, strict=True):
            cell.add(parts)
            if cell.lower.any() and cell.lower_bounds <= ALL_LOWER * sum(self.state.problem.shape):
                cell.add(cell.with_lower())

    def _in_scores(self, marks: Marks) -> tuple[Marks, RulePrices]:
        """Prices in units of score, lines without room closed by a price above any score, and those of rules."""
        state, factor = self.state, self.scale.factor
        u, w = marks.u / factor, marks.w / factor
        found = Marks(u, w, (marks.cells[0] / factor, marks.cells[1] / factor))
        rules = rule_prices(state.problem, self.cells, found)
        roof = rules.scores.reach(max(abs(state.low), abs(state.high))) + 1.0
        roof += float(np.abs(u).max(initial=0.0)) + float(np.abs(w).max(initial=0.0))
        u[state.supply == 0] = roof
        w[state.load_max == 0] = roof
        return found, rules

    def _most_above(self, marks: Marks, rules: RulePrices, added: int) -> float:
        """How far the best of the pairs added last lies above its prices."""
        state, last = self.state, slice(self.state.rows.size - added, None)
        rows, cols = state.rows[last], state.cols[last]
        worth = rules.scores.linear(rows, cols, state.plain[last])
        return float((worth - marks.u[rows] - marks.w[cols]).max(initial=0.0))

    def _price_in(self, marks: Marks, rules: RulePrices) -> int:
        """Add pairs that would improve the plan; 0 only after a sweep that left none out."""
        state, resolution = self.state, 1.0 / self.scale.factor
        for limit in (PAIRS_A_ROUND, None):
            pairs, excess, complete = rules.scores.exceeding(marks.u, marks.w, 0.0, limit, state.closed)
            added = state.add(pairs[excess > resolution])
            if added or complete:
                return added
        return 0

    def _evened(
        self, network: Layered, laid: Laid, cost: IntArray, at: IntArray
    ) -> tuple[Layered, Laid, IntArray, IntArray] | None:
        """Network, flow, costs and potentials with ties resolved; None where bounds without nodes were in the way."""
        self._tell("ties")
        state, before, least = self.state, network, network.worth(laid)
        for _ in range(TIES_TRIES):
            with self.clock.stage("ties"):
                even = evened(network, cost, at, self.rng)
                if even is None:
                    break
                if even.missing or network.worth(even) < least - slack_of(least):
                    break
                pairs = np.concatenate([state.problem.locked, self._places(even)])
                broken = self._broken(pairs[:, 0], pairs[:, 1])
                if not _size(broken):
                    return network, even, cost, at
                # a new node has the potential of what it stands before: it is open what goes through it
                self._lay_out(broken)
                older, network = network, Layered(state, self.cells)
                at, cost = network.carried_over(at, older), self._cost(network)
        return (network, laid, cost, at) if network is before else None

    def _settled(
        self, network: Layered, laid: Laid, cost: IntArray, at: IntArray, marks: Marks, rules: RulePrices
    ) -> Priced | None:
        """The flow with prices in original floats where they settle, which makes a tight proof; else the exact ones.

        None where units are missing that rules count and nodes do not.
        """
        state, factor = self.state, self.scale.factor
        penalty = self._penalty / factor
        with self.clock.stage("prices"):
            finer = network.potentials(
                laid, network.cost(state.score, penalty), at / factor, REFINE_SWEEPS,
                tolerance=1e-13 * max(1.0, abs(state.high)),
            )  # fmt: skip
            if finer is not None:
                exact, marks = marks, network.marks(finer, penalty)
                marks.u[state.supply == 0] = exact.u[state.supply == 0]
                marks.w[state.load_max == 0] = exact.w[state.load_max == 0]
                rules = rule_prices(state.problem, self.cells, marks)
        found = self._proved(laid, marks, rules, penalty if laid.missing else 0.0, proven=True)
        rules_short = zip(state.problem.rules, found.short, strict=True)
        units = sum(float(abs(table).sum()) for rule, table in rules_short if rule.price is None)
        if laid.missing and (network.contrary or units != sum(int(part.sum()) for part in laid.short)):
            return None
        return found

    def _proved(self, laid: Laid, marks: Marks, rules: RulePrices, penalty: float, proven: bool) -> Priced:
        """A flow with prices and what they leave over."""
        state, locked = self.state, self.state.problem.locked
        taken, held = (
            sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=state.problem.shape)
            for pairs in (np.concatenate([locked, self._places(laid)]), locked)
        )
        short = tuple(rule.shortfall(taken) for rule in rows_of(state.problem.rules, held))
        with self.clock.stage("sweeps"), sweeping(self.executor):
            _, excess, _ = rules.scores.exceeding(marks.u, marks.w, 0.0, None, state.closed)
        return Priced(laid, marks, rules, excess, short, penalty, proven)

    def _places(self, laid: Laid) -> PairArray:
        """The pairs a flow takes, locked ones not among them."""
        taken = np.flatnonzero(laid.amount)
        return np.column_stack([self.state.rows[taken], self.state.cols[taken]])

    def _tell(self, phase: str) -> None:
        within = {"flow": 0.2, "prices": 0.5, "sweep": 0.7, "ties": 0.9}[phase]
        self.report(Progress(phase, 0.9 * (1.0 - 0.75 ** (self.rounds + within))))


def _dearest(problem: AssignmentProblem) -> float:
    """The highest price of a rule."""
    return max((rule.price for rule in problem.rules if rule.price is not None), default=0.0)


def _size(broken: Broken) -> int:
    """How many bounds."""
    return sum(a.size for parts in broken for _, a, _ in parts)
