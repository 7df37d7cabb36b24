"""HiGHS behind a few words: rows and columns as arrays, one linear solve, one integer solve.

Everything is minimised. Tolerances are set far below the solver's defaults, since floors and bounds are compared
with sums of floats to 1e-9. One thread and a fixed seed: equal input gives the equal answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.errors import SolverError
from matching.types import FloatArray, IntArray

__all__ = ["FREE", "Ask", "IntegerAnswer", "Model", "Program"]

FREE = float(highspy.kHighsInf)
"""A bound that is none."""

FEASIBILITY = 1e-9  # primal, dual and integer tolerance of the solver
ASKED = 100  # steps of the simplex method between two questions whether to go on
STATED = 1e-6  # how far, relatively, a stated value may lie from that of the values
USUAL: dict[str, Any] = {"presolve": "choose", "simplex_strategy": 1}
RETRIES: tuple[dict[str, Any], ...] = ({}, {"presolve": "off"}, {"simplex_strategy": 4})
"""Options that are changed, one set after the other, where the simplex method gives up: 4 is the primal one."""
MIP_GAP = 1e-10  # the least gap at which the integer search stops, relative and absolute

Ask = Callable[[float, float], None]
"""Called with (best value, bound) from time to time; an exception stops the search and passes through."""


@dataclass(frozen=True, eq=False)
class IntegerAnswer:
    """What the integer search found.

    Attributes
    ----------
    values : ndarray of shape (n_columns,), float64, or None
        None where none was found.
    bound : float
        The solver's own bound, in the minimised unit; -inf where it has none.
    proven : bool
        Whether the search ended by itself: values are best to the gap, or without values there are none.
    """

    values: FloatArray | None
    bound: float
    proven: bool


@dataclass(frozen=True, eq=False)
class Program:
    """Bounds and entries of a program; its costs aside.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_columns,), float64
        Between which each column lies.
    row_lower, row_upper : ndarray of shape (n_rows,), float64
        Between which each row's sum lies; -inf and inf for none.
    entries : scipy.sparse.csr_array of shape (n_rows, n_columns)
    """

    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    entries: sparse.csr_array


class Model:
    """A linear program that grows; the basis is kept between solves.

    Parameters
    ----------
    rng : int
        Seed of the solver.
    """

    def __init__(self, rng: int = 0) -> None:
        self._highs = _solver(rng)
        self.nodes: int | None = None  # of an integer search, at most
        self._rng = rng
        self.n_rows = 0
        self.n_cols = 0
        self.values: FloatArray = np.empty(0)
        self.duals: FloatArray = np.empty(0)
        self.value = 0.0

    def add_rows(self, lower: FloatArray, upper: FloatArray, entries: sparse.sparray | None = None) -> IntArray:
        """Rows ``lower <= entries @ columns <= upper``; returns their numbers."""
        count = len(lower)
        table = sparse.csr_array((count, self.n_cols) if entries is None else entries)
        if count:
            self._check(
                self._highs.addRows(
                    count, _floats(lower), _floats(upper), table.nnz, table.indptr[:-1].astype(np.int32),
                    table.indices.astype(np.int32), table.data.astype(np.float64),
                )
            )  # fmt: skip
        self.n_rows += count
        if self.duals.size:  # what came after the last solve binds nothing there
            self.duals = np.concatenate([self.duals, np.zeros(count)])
        return np.arange(self.n_rows - count, self.n_rows, dtype=np.int64)

    def add_cols(
        self, cost: FloatArray, lower: FloatArray, upper: FloatArray, entries: sparse.sparray | None = None
    ) -> IntArray:
        """Columns with their entries in the present rows; returns their numbers."""
        count = len(cost)
        table = sparse.csc_array((self.n_rows, count) if entries is None else entries)
        if count:
            self._check(
                self._highs.addCols(
                    count, _floats(cost), _floats(lower), _floats(upper), table.nnz,
                    table.indptr[:-1].astype(np.int32), table.indices.astype(np.int32), table.data.astype(np.float64),
                )
            )  # fmt: skip
        self.n_cols += count
        if self.values.size:
            self.values = np.concatenate([self.values, np.zeros(count)])
        return np.arange(self.n_cols - count, self.n_cols, dtype=np.int64)

    def set_costs(self, cost: FloatArray) -> None:
        """Costs of all columns."""
        self._check(self._highs.changeColsCost(self.n_cols, np.arange(self.n_cols, dtype=np.int32), _floats(cost)))

    def set_col_bounds(self, cols: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        """New bounds of some columns."""
        if len(cols):
            self._check(self._highs.changeColsBounds(len(cols), cols.astype(np.int32), _floats(lower), _floats(upper)))

    def set_row_bounds(self, row: int, lower: float, upper: float) -> None:
        """New bounds of one row."""
        self._check(self._highs.changeRowBounds(int(row), lower, upper))

    def solve(self, time_left: float | None, ask: Callable[[], None] | None = None) -> str:
        """ "optimal", "infeasible" or "limit"; after "optimal" `values` and `duals` hold the answer.

        `duals` are what one more unit of a row's bound changes in the minimum.

        Parameters
        ----------
        ask : callable, optional
            Called every `ASKED` steps of the simplex method; an exception stops it and passes through.

        Raises
        ------
        SolverError
            Any other end.
        """
        highs, kinds = self._highs, highspy.HighsModelStatus
        _limit(highs, time_left)
        for again in (*RETRIES, None):
            ended = self._run(ask)
            status = highs.getModelStatus()
            if ended == highspy.HighsStatus.kError and status != kinds.kSolveError:
                self._check(ended)
            if status not in (kinds.kUnknown, kinds.kSolveError) or again is None:
                break
            highs.clearSolver()  # numbers it gave up on: once more from nothing, and in other ways
            for name, value in again.items():
                highs.setOptionValue(name, value)
        for name, value in USUAL.items():
            highs.setOptionValue(name, value)
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return "infeasible"
        if status in (kinds.kTimeLimit, kinds.kInterrupt):
            return "limit"
        if status != kinds.kOptimal:
            raise SolverError(f"the linear solver ended with status {status!s}", status=str(status))
        answer = highs.getSolution()
        self.values, self.duals = np.array(answer.col_value), np.array(answer.row_dual)
        self.value = float(highs.getObjectiveValue())
        return "optimal"

    def solve_integral(
        self,
        whole: IntArray,
        start: tuple[IntArray, FloatArray] | None,
        gap: float,
        time_left: float | None,
        ask: Ask | None = None,
    ) -> IntegerAnswer:
        """The same rows and columns with the columns `whole` integral; the linear program stays as it is.

        Parameters
        ----------
        whole : ndarray of int64
        start : (columns, values) or None
            A plan to start from; the solver fills in the rest.
        gap : float
            Relative gap at which to stop, [0, 1).
        ask : callable, optional
            See Ask.
        """
        highs = _solver(self._rng)
        highs.passModel(self._highs.getLp())
        answer, stated = self._search(highs, whole, start, gap, time_left, ask)
        if answer.values is not None and start is not None:
            # where presolve alone solves it, HiGHS 1.16 gives the start back in place of the better plan it reports
            mine = float(np.array(highs.getLp().col_cost_) @ answer.values)
            if abs(mine - stated) > STATED * max(1.0, abs(stated)):
                return self.solve_integral(whole, None, gap, time_left, ask)
        return answer

    def program(self) -> Program:
        """The rows and columns as they are now."""
        lp = self._highs.getLp()
        starts, at, data = (np.array(getattr(lp.a_matrix_, name)) for name in ("start_", "index_", "value_"))
        size = self.n_rows, self.n_cols
        by_column = lp.a_matrix_.format_ == highspy.MatrixFormat.kColwise
        table = (sparse.csc_array if by_column else sparse.csr_array)((data, at, starts), shape=size)
        return Program(
            np.array(lp.col_lower_), np.array(lp.col_upper_), np.array(lp.row_lower_), np.array(lp.row_upper_),
            sparse.csr_array(table),
        )  # fmt: skip

    def solve_within(
        self,
        cost: FloatArray,
        bounds: Program,
        whole: IntArray,
        gap: float,
        time_left: float | None,
        ask: Ask | None = None,
    ) -> IntegerAnswer:
        """The integer search with other costs and other bounds of rows and columns, which are not kept.

        Only what these leave open is given to the solver: columns that can have one value only are put in.
        """
        open_cols = np.flatnonzero(bounds.upper > bounds.lower)
        values = np.array(bounds.lower)
        values[open_cols] = 0.0
        fixed = bounds.entries @ values
        part = sparse.csr_array(sparse.csc_array(bounds.entries)[:, open_cols])
        limited = np.isfinite(bounds.row_lower) | np.isfinite(bounds.row_upper)
        rows = np.flatnonzero(limited & (np.diff(part.indptr) > 0))
        settled = np.diff(part.indptr) == 0
        beyond = np.maximum(bounds.row_lower - fixed, fixed - bounds.row_upper)
        if (beyond[settled] > STATED).any():
            return IntegerAnswer(None, -np.inf, True)
        if not open_cols.size:
            return IntegerAnswer(values, float(cost @ values), True)
        own = Model(self._rng)
        own.add_rows(bounds.row_lower[rows] - fixed[rows], bounds.row_upper[rows] - fixed[rows])
        own.add_cols(cost[open_cols], bounds.lower[open_cols], bounds.upper[open_cols], sparse.csc_array(part[rows]))
        inside = np.flatnonzero(np.isin(open_cols, whole))
        answer = own._search(own._highs, inside, None, gap, time_left, ask)[0]
        bound = answer.bound + float(cost @ values)
        if answer.values is None:
            return replace(answer, bound=bound)
        values[open_cols] = answer.values
        return IntegerAnswer(values, bound, answer.proven)

    def _search(
        self,
        highs: highspy.Highs,
        whole: IntArray,
        start: tuple[IntArray, FloatArray] | None,
        gap: float,
        time_left: float | None,
        ask: Ask | None,
    ) -> tuple[IntegerAnswer, float]:
        """What the integer search finds, and the value it states."""
        kind = np.full(whole.size, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        self._check(highs.changeColsIntegrality(whole.size, whole.astype(np.int32), kind))
        highs.setOptionValue("mip_rel_gap", max(gap, MIP_GAP))
        highs.setOptionValue("mip_abs_gap", MIP_GAP)
        if self.nodes is not None:
            highs.setOptionValue("mip_max_nodes", self.nodes)
        _limit(highs, time_left)
        if start is not None and len(start[0]):
            highs.setSolution(len(start[0]), start[0].astype(np.int32), _floats(start[1]))
        raised: list[BaseException] = []
        if ask is not None:
            highs.cbMipInterrupt.subscribe(lambda event: _relay(event, ask, raised))
        ended = highs.run()
        if raised:
            raise raised[0]
        self._check(ended)
        kinds, status, info = highspy.HighsModelStatus, highs.getModelStatus(), highs.getInfo()
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return IntegerAnswer(None, -np.inf, True), np.inf
        if status not in (kinds.kOptimal, kinds.kTimeLimit, kinds.kInterrupt, kinds.kSolutionLimit):
            raise SolverError(f"the integer solver ended with status {status!s}", status=str(status))
        found = info.primal_solution_status == 2  # kSolutionStatusFeasible
        values = np.array(highs.getSolution().col_value) if found else None
        bound = info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else -np.inf
        return IntegerAnswer(values, bound, status == kinds.kOptimal), float(info.objective_function_value)

    def _run(self, ask: Callable[[], None] | None) -> highspy.HighsStatus:
        """The linear solve; what `ask` raises comes out of it unchanged."""
        raised: list[BaseException] = []
        steps = itertools.count(1)

        def relay(event: object) -> None:
            if ask is not None and next(steps) % ASKED == 0:
                _relay(event, lambda *_: ask(), raised)

        if ask is not None:
            self._highs.cbSimplexInterrupt.subscribe(relay)
        try:
            status = self._highs.run()
        finally:
            if ask is not None:
                self._highs.cbSimplexInterrupt.unsubscribe(relay)
        if raised:
            raise raised[0]
        return status

    def _check(self, status: highspy.HighsStatus) -> None:
        if status == highspy.HighsStatus.kError:
            raise SolverError("the linear solver refuses its input", status=str(status))


class _Quiet(highspy.Highs):
    """A solver that is silent before its constructor would print a banner, which it does on turning callbacks on."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def enableCallbacks(self) -> None:
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def _solver(rng: int) -> highspy.Highs:
    highs = _Quiet()
    options: dict[str, Any] = {
        "threads": 1, "parallel": "off", "random_seed": int(rng) % (1 << 31), "small_matrix_value": 1e-12,
        "primal_feasibility_tolerance": FEASIBILITY, "dual_feasibility_tolerance": FEASIBILITY,
        "mip_feasibility_tolerance": FEASIBILITY,
    }  # fmt: skip
    for name, value in options.items():
        highs.setOptionValue(name, value)
    return highs


def _relay(event: object, ask: Ask, raised: list[BaseException]) -> None:
    """Runs inside the solver: an exception must not leave it, so it is kept and the search told to stop."""
    if raised:
        return
    try:
        out = event.data_out  # type: ignore[attr-defined]
        ask(float(out.mip_primal_bound), float(out.mip_dual_bound))
    except BaseException as error:
        raised.append(error)
        event.interrupt()  # type: ignore[attr-defined]


def _limit(highs: highspy.Highs, time_left: float | None) -> None:
    # the solver's own clock runs on over several solves of one object
    highs.setOptionValue("time_limit", FREE if time_left is None else highs.getRunTime() + max(time_left, 1e-3))


def _floats(array: NDArray[np.floating]) -> FloatArray:
    return np.ascontiguousarray(array, dtype=np.float64)
