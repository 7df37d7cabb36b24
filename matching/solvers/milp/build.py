"""The linear program on the active pairs: its columns, its rows, and what each phase makes of them.

submission p:  sum of x_pr + lacking_p = demand        reviewer r:  load_min <= sum of x_pr + lacking_r <= load_max
missing:       sum of everything lacking               rule:        lower <= count + below - above <= upper
wish:          T <= q . U + const                      pairs:       0 <= x_pr <= 1 or its cap
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from scipy import sparse

from matching.solvers.clock import Clock
from matching.solvers.milp.model import FREE, Model
from matching.solvers.milp.rows import RuleRows
from matching.solvers.milp.shared import Links, SharedRows
from matching.solvers.milp.wishes import SumRows, WishRows
from matching.solvers.state import Capacity, State
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["ArcRows", "Phase"]

Phase: TypeAlias = str
"""What is optimised: "missing" (fewest missing reviews and units of hard lower bounds), "wishes" (bring every earlier
wish to its mark), "value" (the measure itself)."""


class ArcRows:
    """Demand, loads, rules and wishes over the active pairs.

    Parameters
    ----------
    state : State
        The oracle's reduced problem; pairs found here join its active ones.
    rules : sequence of RuleRows
        Without rows yet.
    measure : WishRows
    wishes : sequence of WishRows
        Earlier ones.
    sums : ndarray of shape (n_submissions,), float64
        Of some plan; where the rows start.
    rng : int
    clock : Clock
    cap : Capacity or None
        Highest share of a pair, for shares; None for 1. Locked pairs have 1 whatever it says.
    """

    def __init__(
        self,
        state: State,
        rules: Sequence[RuleRows],
        measure: WishRows,
        wishes: Sequence[WishRows],
        sums: FloatArray,
        rng: int,
        clock: Clock,
        cap: Capacity | None = None,
    ) -> None:
        self.state, self.rules, self.measure, self.wishes, self.clock = state, rules, measure, wishes, clock
        self.cap = cap
        self.model = Model(rng)
        self.rounds = 0
        self.missing = 0.0
        self.demand = (state.supply + state.beyond).astype(np.float64)
        model = self.model
        self._demand_rows = model.add_rows(self.demand, self.demand)
        self._load_rows = model.add_rows(
            state.load_min.astype(np.float64), np.maximum(state.load_max, state.load_min).astype(np.float64)
        )
        self._missing_row = int(model.add_rows(np.array([-FREE]), np.array([FREE]))[0])
        # columns: what a submission or a reviewer lacks, each counted in the row of what is missing
        lines = np.concatenate([self._demand_rows, self._load_rows])
        most = np.concatenate([self.demand, state.load_min.astype(np.float64)])
        self._lacking = model.add_cols(np.zeros(most.size), np.zeros(most.size), most, self._slack(lines, 1.0))
        self._lack_most = most
        self._soft: IntArray = np.empty(0, dtype=np.int64)
        self._soft_price: FloatArray = np.empty(0)
        self.x: IntArray = np.empty(0, dtype=np.int64)
        for wish in (measure, *wishes):
            if wish.direct is None:
                self._add_wish(wish, sums)
        self.phase: Phase = "value"
        self.add_pairs()

    def _slack(self, lines: IntArray, sign: float) -> sparse.csc_array:
        """Columns with one entry in a line each and one in the row of what is missing."""
        count = lines.size
        at = np.concatenate([lines, np.full(count, self._missing_row)])
        each = np.tile(np.arange(count), 2)
        data = np.concatenate([np.full(count, sign), np.ones(count)])
        return sparse.csc_array(sparse.coo_array((data, (at, each)), shape=(self.model.n_rows, count)))

    def add_pairs(self) -> None:
        """Columns for the active pairs that have none yet."""
        state = self.state
        new = slice(self.x.size, None)
        rows, cols, plain = state.rows[new], state.cols[new], state.plain[new]
        count = rows.size
        if not count:
            return
        each = np.arange(count)
        at = [self._demand_rows[rows], self._load_rows[cols]]
        where, data = [each, each], [np.ones(count), np.ones(count)]
        for line, column, value in self._pair_entries(rows, cols, plain):
            at.append(line)
            where.append(column)
            data.append(value)
        table = sparse.coo_array(
            (np.concatenate(data), (np.concatenate(at), np.concatenate(where))), shape=(self.model.n_rows, count)
        )
        most = np.ones(count) if self.cap is None else self.cap(rows, cols)
        columns = self.model.add_cols(np.zeros(count), np.zeros(count), most, sparse.csc_array(table))
        self.x = np.concatenate([self.x, columns])
        self.set_phase(self.phase)

    def _pair_entries(
        self, rows: IntArray, cols: IntArray, plain: FloatArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """(row, pair, coefficient) of pairs in the rows of wishes and rules."""
        out = []
        for wish in (self.measure, *self.wishes):
            if wish.row_ids.size:
                part = sparse.coo_array(sparse.csc_array(wish.matrix)[:, rows])
                value = part.data * plain[part.coords[1]] / wish.scale
                out.append((wish.row_ids[part.coords[0]], part.coords[1], value))
        for rule in self.rules:
            if rule.keys.size:
                part = rule.entries(rule.keys, rows, cols)
                out.append((rule.row_ids[part.coords[0]], part.coords[1], part.data))
        return out

    def _add_wish(self, wish: WishRows, sums: FloatArray) -> None:
        """T, and for a shortfall the row that adds up its m's, then the first rows."""
        first = wish.start(sums)
        wish.column = int(self.model.add_cols(np.zeros(1), np.array([-FREE]), np.array([FREE]))[0])
        among = getattr(wish.measure, "among", None)
        if hasattr(wish.measure, "t") and among is not None:
            whole = sparse.csr_array(
                (np.ones(1), (np.zeros(1, dtype=int), [wish.column])), shape=(1, self.model.n_cols)
            )
            bound = np.array([wish.measure.t * int(among.sum())])
            wish.whole_row = int(self.model.add_rows(np.array([-FREE]), bound, whole)[0])
        self.add_sum_rows(wish, first)

    def add_sum_rows(self, wish: WishRows, new: SumRows) -> None:
        """Rows ``new.matrix @ U - T >= -new.const`` with the pairs that are there."""
        count = new.matrix.shape[0]
        if not count:
            return
        state, model = self.state, self.model
        locked = state.problem.locked[:, 0]
        fixed = new.matrix @ np.bincount(locked, weights=state.held, minlength=state.problem.shape[0])
        part = sparse.coo_array(sparse.csc_array(new.matrix)[:, state.rows[: self.x.size]])
        value = part.data * state.plain[part.coords[1]] / wish.scale
        if wish.whole_row >= 0:
            which = new.matrix.indices
            # each m_p was counted as t so far
            t = float(wish.measure.t)  # type: ignore[union-attr]
            entry = sparse.coo_array(
                (np.full(count, -1.0), (np.full(count, wish.whole_row), np.arange(count))), shape=(model.n_rows, count)
            )
            wish.parts[which] = model.add_cols(
                np.zeros(count), np.full(count, -FREE), np.full(count, t), sparse.csc_array(entry)
            )
            left = int(wish.measure.among.sum()) - int(wish.watched.sum())  # type: ignore[union-attr]
            model.set_row_bounds(wish.whole_row, -FREE, t * left)
            aside = wish.parts[which]
        else:
            aside = np.full(count, wish.column, dtype=np.int64)
        at = np.concatenate([part.coords[0], np.arange(count)])
        where = np.concatenate([self.x[part.coords[1]], aside])
        table = sparse.coo_array((np.concatenate([value, np.full(count, -1.0)]), (at, where)), (count, model.n_cols))
        ids = model.add_rows(-(new.const + fixed) / wish.scale, np.full(count, FREE), sparse.csr_array(table))
        wish.row_ids = np.concatenate([wish.row_ids, ids])

    def add_rule_rows(self, rule: RuleRows, keys: IntArray) -> None:
        """Constraints of a rule as rows, with columns for what they may be missed by."""
        state, model = self.state, self.model
        low, high = rule.limits(keys)
        part = rule.entries(keys, state.rows[: self.x.size], state.cols[: self.x.size])
        table = sparse.coo_array((part.data, (part.coords[0], self.x[part.coords[1]])), (keys.size, model.n_cols))
        ids = model.add_rows(low, high, sparse.csr_array(table))
        rule.keys = np.concatenate([rule.keys, keys])
        rule.row_ids = np.concatenate([rule.row_ids, ids])
        below, above = ids[np.isfinite(low)], ids[np.isfinite(high)]
        if rule.hard:
            most = np.maximum(low[np.isfinite(low)], 0.0)
            new = model.add_cols(np.zeros(below.size), np.zeros(below.size), most, self._slack(below, 1.0))
            self._lacking = np.concatenate([self._lacking, new])
            self._lack_most = np.concatenate([self._lack_most, most])
        else:
            lines = np.concatenate([below, above])
            sign = np.concatenate([np.ones(below.size), -np.ones(above.size)])
            entry = sparse.coo_array((sign, (lines, np.arange(lines.size))), shape=(model.n_rows, lines.size))
            new = model.add_cols(
                np.zeros(lines.size), np.zeros(lines.size), np.full(lines.size, FREE), sparse.csc_array(entry)
            )
            self._soft = np.concatenate([self._soft, new])
            self._soft_price = np.concatenate([self._soft_price, np.full(lines.size, float(rule.rule.price or 0.0))])
        if isinstance(rule, SharedRows):
            self.add_links(rule.first_links(keys, state))
        self.set_phase(self.phase)

    def add_links(self, links: Links) -> None:
        """Reviewers who may be shared: their pairs with both submissions, a column z, and rows ``z <= x``."""
        state, model, rule = self.state, self.model, links.rule
        count = links.keys.size
        sides = [np.column_stack([rule.rule.pairs[links.keys, side], links.reviewers]) for side in (0, 1)]
        state.add(np.concatenate(sides))
        self.add_pairs()
        order = np.argsort(rule.keys)
        line = rule.row_ids[order][np.searchsorted(rule.keys[order], links.keys)]
        entry = sparse.coo_array((np.ones(count), (line, np.arange(count))), shape=(model.n_rows, count))
        z = model.add_cols(np.zeros(count), np.zeros(count), np.ones(count), sparse.csc_array(entry))
        rule.link_key = np.concatenate([rule.link_key, links.keys])
        rule.link_reviewer = np.concatenate([rule.link_reviewer, links.reviewers])
        made = []
        for pairs in sides:
            column = self.columns_of(pairs)
            free = np.flatnonzero(column >= 0)  # a locked pair has none and limits nothing
            at = np.tile(np.arange(free.size), 2)
            data = np.concatenate([np.ones(free.size), -np.ones(free.size)])
            table = sparse.coo_array(
                (data, (at, np.concatenate([z[free], column[free]]))), shape=(free.size, model.n_cols)
            )
            row = np.full(count, -1, dtype=np.int64)
            row[free] = model.add_rows(np.full(free.size, -FREE), np.zeros(free.size), sparse.csr_array(table))
            made.append(row)
        rule.first_link = np.concatenate([rule.first_link, made[0]])
        rule.second_link = np.concatenate([rule.second_link, made[1]])

    def columns_of(self, pairs: PairArray) -> IntArray:
        """The program's column of each pair, -1 for one that has none."""
        width = self.state.problem.shape[1]
        mine = self.state.rows[: self.x.size] * width + self.state.cols[: self.x.size]
        order = np.argsort(mine)
        asked = pairs[:, 0] * width + pairs[:, 1]
        if not mine.size:
            return np.full(asked.size, -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(mine[order], asked), mine.size - 1)
        return np.where(mine[order][at] == asked, self.x[order[at]], -1)

    @property
    def lacking_columns(self) -> IntArray:
        """Columns of missing reviews and units of hard lower bounds."""
        return self._lacking

    @property
    def most_lacking(self) -> FloatArray:
        """The most that each of `lacking_columns` can lack, float64."""
        return self._lack_most

    @property
    def missing_row(self) -> int:
        """The row that limits what is missing in all."""
        return self._missing_row

    @property
    def aside(self) -> tuple[IntArray, IntArray]:
        """Columns and rows that speak of shares only and not of plans."""
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    @property
    def constant(self) -> float:
        """What belongs to the bound besides what prices say."""
        return 0.0

    @property
    def priced_columns(self) -> IntArray:
        """Columns of missed units of priced rules."""
        return self._soft

    @property
    def unit_prices(self) -> FloatArray:
        """What a unit of each of `priced_columns` costs, float64."""
        return self._soft_price

    def set_phase(self, phase: Phase) -> None:
        """Costs and bounds of what is optimised now; `missing` is what may be missing outside "missing"."""
        self.phase = phase
        model = self.model
        cost = np.zeros(model.n_cols)
        allowed = FREE if phase == "missing" else self.missing
        some = np.where(self.missing > 0 or phase == "missing", self._lack_most, 0.0)
        model.set_col_bounds(self._lacking, np.zeros(some.size), some)
        model.set_row_bounds(self._missing_row, -FREE, allowed if allowed > 0 else FREE)
        for wish in self.wishes:
            mark = (wish.least or 0.0) / wish.scale
            low, high = {"missing": (-FREE, FREE), "wishes": (-FREE, mark), "value": (mark, FREE)}[phase]
            model.set_col_bounds(np.array([wish.column]), np.array([low]), np.array([high]))
            if phase == "wishes":
                cost[wish.column] = -1.0
        if phase == "missing":
            cost[self._lacking] = 1.0
        elif phase == "value":
            direct = self.measure.direct
            if direct is None:
                cost[self.measure.column] = -self.measure.scale
            else:
                cost[self.x] = -direct[self.state.rows[: self.x.size]] * self.state.plain[: self.x.size]
            cost[self._soft] = self._soft_price
        self._also_cost(cost)
        model.set_costs(cost)

    def _also_cost(self, cost: FloatArray) -> None:
        """Costs of columns that a subclass has, in place."""
