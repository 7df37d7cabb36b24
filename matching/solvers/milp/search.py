"""One question to the program: what must be missing, whether the wishes can hold, the best shares, the best plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound
from matching.errors import SolverError
from matching.objectives import Measure
from matching.solvers.clock import Clock, slack_of
from matching.solvers.milp.answer import ArcAnswer
from matching.solvers.milp.bound import Certificate, certificate
from matching.solvers.milp.linear import ArcLinear, Raw
from matching.solvers.milp.reading import COUNT, Reading, whole
from matching.solvers.milp.rows import RuleRows
from matching.solvers.milp.squares import SquaredLinear
from matching.solvers.milp.wishes import WishRows
from matching.solvers.oracle import Extreme
from matching.solvers.state import Capacity, State, open_prices
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["GOOD_GAP", "Search", "Tell"]

EXACT_PAIRS = 3_000  # active pairs up to which the integer search goes on until no better plan can exist
GOOD_GAP = 1e-3  # relative gap at which it stops on larger ones, unless the caller says otherwise
MORE_PAIRS = 0.5  # share of the active pairs that may join a larger program for the sake of a better plan
MOST_PAIRS = 400_000  # pairs an integer search is given to settle whether a lawful plan exists at all
LEVEL_OF_PRICES = 32.0  # times the prices of rules: more would drown the scores where these prices are huge
LEVEL = 1e3  # how far the penalty stands above the prices of scores in a proof that reviews must be missing
BY_PRICES = "prices"
BY_SEARCH = "enumeration by the integer solver"

Tell = Callable[[str, float, float], None]
"""Called with (phase, value, bound)."""

Taken = NDArray[np.bool_]


class Search:
    """One call of `ArcProgram.solve`, which documents the parameters.

    Parameters
    ----------
    state : State
        The active pairs, which grow.
    best : Extreme
        The best flow without rules.
    rules : sequence of RuleRows
    plain : callable
        Answers the same problem for the total without wishes.
    cap : Capacity or None
        As in `ArcRows`; for shares only.
    beta : float
        As in `SquaredLinear`; for shares only, 0 for none.
    """

    def __init__(
        self,
        state: State,
        best: Extreme,
        rules: Sequence[RuleRows],
        measure: Measure,
        constraints: Sequence[tuple[Measure, float]],
        integral: bool,
        start: PairArray | None,
        gap: float | None,
        tell: Tell | None,
        rng: int,
        clock: Clock,
        plain: Callable[[], ArcAnswer | None],
        cap: Capacity | None = None,
        beta: float = 0.0,
    ) -> None:
        self.state, self.best, self.rules, self.clock, self.plain = state, best, rules, clock, plain
        self.measure, self.constraints, self.integral = measure, tuple(constraints), integral
        self.start, self.gap, self.tell = start, gap, tell
        n_submissions = state.problem.shape[0]
        sums = best.sums
        if start is not None:
            state.add(start)
            scores = np.nan_to_num(state.problem.scores.values(start[:, 0], start[:, 1]))
            sums = np.bincount(start[:, 0], weights=scores, minlength=n_submissions).astype(np.float64)
        wishes = [WishRows(g, c, n_submissions) for g, c in constraints]
        own = WishRows(measure, None, n_submissions)
        parts = (state, rules, own, wishes, sums, rng, clock, cap)
        self.linear = SquaredLinear(*parts, beta=beta) if beta else ArcLinear(*parts)
        self.linear.ask = None if tell is None else lambda: tell("rules", -np.inf, np.inf)
        self.fewest: Raw | None = None  # prices that prove that units are missing, where prices do
        self.proven_by = BY_PRICES
        self.integer_bound = np.inf
        self.exact = True  # whether no pair was left out that a better or fuller plan could use
        self.complete = False  # whether all pairs and all sharings have been let in
        self.ended_empty = False  # whether the last integer search proved that the active pairs hold no plan

    def run(self) -> ArcAnswer | None:
        # where the flow without rules misses reviews, so does every plan
        return self._from("infeasible" if self.best.missing else self.linear.optimise("value", self._say))

    def completed(self, link_all: bool) -> ArcAnswer | None:
        """The answer of `run` once more, with the rows that plans could break; `link_all` lets everyone be shared."""
        self.linear.add_rest()
        if link_all:
            self.linear.link_all()
        return self._from(self.linear.optimise("value", self._say))

    def lacking_more(self, lacking: float) -> ArcAnswer | None:
        """The answer with prices for plans that miss this much, where shares would not have to; None at the limit."""
        self.fewest, self.proven_by, self.linear.missing = None, BY_SEARCH, lacking
        if self.linear.optimise("value", self._say) != "optimal":
            return None
        return self._answer(Reading(self.linear, self.linear.shares), self.certificate(), True)

    def certificate(self) -> Certificate:
        """What the last linear solve, of the phase "value", proves."""
        return self._certificate(self.linear.shares)

    def _from(self, status: str, settled: bool = False) -> ArcAnswer | None:
        """The answer after the phase "value" ended with `status`; `settled` where it is known what must be missing.

        "infeasible" speaks of the active pairs and the rows so far. The phases "missing" and "wishes" let in pairs
        that help; when they let in no more and change nothing, it is said of all.
        """
        linear, seen = self.linear, (-1, -1.0)
        while status == "infeasible" and seen != (linear.model.n_cols, linear.missing):
            seen = linear.model.n_cols, linear.missing
            if not (linear.optimise("missing") == "optimal" if settled else self._fewest()):
                return None
            reached = self._reached()
            if reached is None:
                return None
            if not reached:
                return self._nothing(BY_PRICES)
            status = linear.optimise("value", self._say)
        if status == "infeasible":
            if self.constraints:
                return self._nothing(BY_PRICES)
            raise SolverError("the linear solver contradicts itself about what must be missing")
        return self._after(status == "optimal") if linear.model.values.size else None

    def _after(self, optimal: bool) -> ArcAnswer | None:
        """From the linear solution to the answer; `optimal` says whether it is that over all pairs and rows."""
        share = self.linear.shares
        if not self.integral:
            return self._answer(Reading(self.linear, share), self._certificate(share), optimal)
        taken = whole(share)
        if taken is not None:
            reading = Reading(self.linear, taken.astype(np.float64))
            if reading.lawful and reading.kept:
                return self._answer(reading, self._certificate(share), optimal)
        return self._plan(share, optimal)

    def _say(self, value: float) -> None:
        if self.tell is not None:
            self.tell("rules", value, np.inf)

    # ---- what must be missing ---------------------------------------------------------------------------------

    def _fewest(self) -> bool:
        """Fewest missing units: over shares, and where a plan is asked for and they are none, over plans."""
        linear = self.linear
        self.fewest = None
        if linear.optimise("missing") != "optimal":
            return False
        units = linear.lacking
        if units <= COUNT:
            linear.missing = 0.0
            return True
        self.fewest = linear.raw()
        linear.missing = round(units, 9)  # to the solver's tolerance, so that halves and thirds are met exactly
        return not self.integral or whole(linear.shares) is not None or self._fewest_whole(units)

    def _fewest_whole(self, units: float) -> bool:
        """Fewest missing units over plans, after the linear program said `units`; False at the limit."""
        linear, raw = self.linear, self.linear.raw()
        while True:
            found = self._integer_rounds(None, 0.0)
            if found is None:
                return False
            taken, proven = found
            missing = Reading(linear, taken.astype(np.float64)).lacking
            margin = missing - units - (1.0 - COUNT if all(map(_whole_units, self.state.problem.rules)) else COUNT)
            if margin < 0.0:
                break
            added, complete = linear.widen(raw, margin, MOST_PAIRS)
            self.exact &= complete and proven
            if not added:
                break
        if missing > units + COUNT:
            self.fewest, self.proven_by = None, BY_SEARCH
        linear.missing = missing
        return True

    def _reached(self) -> bool | None:
        """Whether shares can keep every earlier wish, with pairs priced in for it; None at the limit."""
        linear = self.linear
        if not self.constraints:
            return True
        status = linear.optimise("wishes")
        if status == "limit":
            return None
        marks = [wish.least or 0.0 for wish in linear.wishes]
        return status == "optimal" and all(
            linear.model.values[wish.column] * wish.scale >= mark - 10 * slack_of(mark)
            for wish, mark in zip(linear.wishes, marks, strict=True)
        )

    # ---- plans ------------------------------------------------------------------------------------------------

    def _plan(self, share: FloatArray, optimal: bool) -> ArcAnswer | None:
        """The best plan by the integer search; `share` is the linear solution."""
        linear = self.linear
        proof = self._certificate(share)
        bound = self._bound(proof, Reading(linear, share))
        small = self.state.rows.size <= EXACT_PAIRS
        gap = (0.0 if small else GOOD_GAP) if self.gap is None else self.gap
        known = self._known()
        linear.add_rest()
        found = self._integer_rounds(known, gap)
        if found is None:
            if self.ended_empty:
                return self._no_plan()
            return None if known is None else self._read(known, proof, False)
        taken, proven = found
        most = MOST_PAIRS if small else int(self.state.rows.size * (1.0 + MORE_PAIRS))
        while proven and optimal and not self.clock.over:
            value = self._value(taken)
            added = 0
            if bound - value > max(slack_of(value), gap * abs(bound)):
                added, complete = linear.widen(proof.raw, bound - value, most)
                self.exact &= complete
            if not added:
                break
            taken = self._padded(taken)
            again = self._integer_rounds(taken, gap)
            taken = self._padded(taken)
            proven = again is not None and again[1]
            if again is not None and self._value(again[0]) > value + slack_of(value):
                taken = again[0]
            if not small:
                self.exact = False
                break
        return self._read(taken, proof, proven and optimal)

    def _integer_rounds(self, start: Taken | None, gap: float) -> tuple[Taken, bool] | None:
        """The integer search, again for as long as its plan breaks rows that were not there; None without a plan."""
        linear = self.linear
        marks = [wish.least or 0.0 for wish in linear.wishes]
        while not self.clock.over:
            answer = linear.integral(start, gap, self._ask)
            if answer.values is None:
                self.ended_empty = answer.proven and not self.clock.over
                return None
            if linear.phase == "value":
                self.integer_bound = min(self.integer_bound, linear.held_value - answer.bound)
            taken = answer.values[linear.x] > 0.5
            wish = linear.measure
            level = float(answer.values[wish.column] * wish.scale) if wish.column >= 0 else -np.inf
            if not linear.add_broken(taken.astype(np.float64), linear.phase != "missing", [level, *marks]):
                return taken, answer.proven
            start = None
        self.ended_empty = False
        return None

    def _ask(self, value: float, bound: float) -> None:
        if self.tell is not None:
            self.tell("rounding", -value, -bound)

    def _no_plan(self) -> ArcAnswer | None:
        """No plan on the active pairs will do, though shares would: all pairs, then the wishes, then the demand."""
        linear, problem = self.linear, self.state.problem
        if problem.shape[0] * problem.shape[1] <= MOST_PAIRS:
            if self.state.add(np.indices(problem.shape).reshape(2, -1).T) or not self.complete:
                self.complete = True
                linear.add_pairs()
                linear.link_all()
                return self._from(linear.optimise("value", self._say), settled=True)
        else:
            self.exact = False
        before = linear.missing
        if self.constraints:
            plain = self.plain()
            if plain is None or not plain.found:
                return None
            linear.add_pairs()
            if plain.lacking <= before + COUNT:
                return self._nothing(BY_SEARCH)
            linear.missing = plain.lacking
        elif linear.optimise("missing") != "optimal" or not self._fewest_whole(linear.lacking):
            return None
        elif linear.missing <= before + COUNT:
            raise SolverError("the integer solver contradicts itself about what must be missing")
        self.fewest, self.proven_by = None, BY_SEARCH
        return self._from(linear.optimise("value", self._say), settled=True)

    def _known(self) -> Taken | None:
        """A plan to start from: the caller's, or the flow's without rules, if lawful."""
        for pairs in (self.start, self.best.pairs):
            if pairs is None:
                continue
            column = self.linear.columns_of(pairs)
            taken = np.zeros(self.linear.x.size, dtype=bool)
            taken[np.searchsorted(self.linear.x, column[column >= 0])] = True
            reading = Reading(self.linear, taken.astype(np.float64))
            if reading.lawful and reading.kept:
                return taken
        return None

    def _padded(self, taken: Taken) -> Taken:
        return np.concatenate([taken, np.zeros(self.linear.x.size - taken.size, dtype=bool)])

    def _value(self, taken: Taken) -> float:
        return Reading(self.linear, taken.astype(np.float64)).value(self.measure)

    # ---- answers ----------------------------------------------------------------------------------------------

    def _certificate(self, share: FloatArray) -> Certificate:
        """Prices of the last linear solve, which was of the phase "value"."""
        raw, fewest, reading = self.linear.raw(), self.fewest, Reading(self.linear, share)
        if fewest is None and reading.forced and not self.linear.missing:
            # locked pairs break a rule by themselves: no price proves it, but a penalty tells the audit to look
            fewest = self.linear.nothing()
        factor = 0.0
        if fewest is not None:
            sizes = [np.abs(raw.pull).max(initial=0.0) * self.linear.reach, raw.penalty, 1.0]
            factor = LEVEL * float(max(*sizes, np.abs(raw.u).max(initial=0.0), np.abs(raw.w).max(initial=0.0)))
            factor = max(factor, LEVEL_OF_PRICES * _dearest(raw))
        return certificate(self.linear, raw, reading.sums, fewest, factor)

    def _bound(self, proof: Certificate, reading: Reading) -> float:
        return proof.bound(self.linear, reading.unfilled, reading.below_min, reading.missed)

    def _read(self, taken: Taken, proof: Certificate, proven: bool) -> ArcAnswer:
        return self._answer(Reading(self.linear, taken.astype(np.float64)), proof, proven)

    def _answer(self, reading: Reading, proof: Certificate, proven: bool) -> ArcAnswer:
        state, share = self.state, reading.share
        on, locked = np.flatnonzero(share > 0), self.state.problem.locked
        missing = reading.lacking > COUNT or reading.forced
        if missing and self.proven_by == BY_SEARCH:
            proven = proven and self.exact
        return ArcAnswer(
            measure=self.measure, constraints=self.constraints,
            rows=np.concatenate([locked[:, 0], state.rows[on]]), cols=np.concatenate([locked[:, 1], state.cols[on]]),
            share=np.concatenate([np.ones(len(locked)), share[on]]),
            score=np.concatenate([state.held, state.plain[on]]), sums=reading.sums,
            value=reading.value(self.measure), cost=reading.cost, bound=self._bound(proof, reading),
            unfilled=_rounded_up(reading.unfilled), below_min=_rounded_up(reading.below_min),
            rule_shortfall=reading.missed, feasible=not missing, kept=reading.kept, proven=proven,
            lacking=reading.lacking, **self._prices(proof, missing), meta=self._meta(),
        )  # fmt: skip

    def _prices(self, proof: Certificate, missing: bool) -> dict[str, Any]:
        """The certificate's numbers, with lines without room at what one more review there would bring."""
        state, u, w = self.state, proof.raw.u, proof.raw.w
        if (state.supply == 0).any() or (state.load_max == 0).any():
            scores, state.scores = state.scores, self.linear.linearised(proof.raw)
            u, w = open_prices(state, u, w)
            state.scores = scores
            if missing:
                u, w = np.maximum(u, -proof.raw.penalty), np.maximum(w, -proof.raw.penalty)
        return {
            "weights": proof.weights, "multipliers": proof.multipliers, "u": u, "w": w,
            "rule_prices": proof.raw.rule_prices, "penalty": proof.raw.penalty,
        }  # fmt: skip

    def _nothing(self, proven_by: str) -> ArcAnswer:
        """No plan keeps the constraints."""
        problem = self.state.problem
        none: IntArray = np.empty(0, dtype=np.int64)
        self.proven_by = proven_by
        return ArcAnswer(
            measure=self.measure, constraints=self.constraints, rows=none, cols=none, share=np.empty(0),
            score=np.empty(0), sums=np.zeros(problem.shape[0]), value=-np.inf, cost=0.0, bound=-np.inf,
            weights=np.zeros(problem.shape[0]), multipliers=(), u=np.zeros(problem.shape[0]),
            w=np.zeros(problem.shape[1]), rule_prices=(), penalty=0.0, unfilled=problem.demand.copy(),
            below_min=problem.load_min.copy(), rule_shortfall=(), feasible=False, kept=False, proven=self.exact,
            lacking=np.inf, meta=self._meta(),
        )  # fmt: skip

    def _meta(self) -> dict[str, Any]:
        return {
            "rounds": self.linear.rounds,
            "active_pairs": int(self.linear.x.size),
            "rows": self.linear.model.n_rows,
            "integer_bound": self.integer_bound,
            "exact": self.exact,
            "proven_by": self.proven_by,
        }


def _dearest(raw: Raw) -> float:
    """The largest price of a rule."""
    tables = (part.data if sparse.issparse(part) else part for part in raw.rule_prices)
    return max((float(np.abs(table).max(initial=0.0)) for table in tables), default=0.0)


def _rounded_up(units: FloatArray) -> IntArray:
    return np.ceil(units - COUNT).astype(np.int64)


def _whole_units(rule: Bound) -> bool:
    """Whether plans can miss a rule's lower bounds in whole units only."""
    if rule.price is not None or not isinstance(rule, GroupBound):
        return True
    lower = rule.lower[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in rule.lower.strides)]
    weights = rule.submissions.data
    return bool((weights == np.floor(weights)).all() and (lower == np.floor(lower)).all())
