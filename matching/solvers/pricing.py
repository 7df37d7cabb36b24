"""Exact over all pairs: solve on a few candidates, price the rest in, repeat until none is left.

The flow sees only the active pairs. Its dual prices say which of all the other pairs would improve the plan;
those join and the flow is solved again. When a sweep over every pair finds none, the plan is optimal over the
whole matrix and the prices prove it (column generation, Dantzig and Wolfe, 1960; for assignment see Ahuja,
Magnanti and Orlin, 1993, section 17). Cost: a handful of flows over k * (n_submissions + n_reviewers) pairs
and as many sweeps; memory: the active pairs and one block.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError
from matching.pairs import PairSet
from matching.scores.base import blocks
from matching.solvers.base import Progress, ProgressCallback, Solution, Status
from matching.solvers.flow import Flow, Scale, Segments, transport
from matching.solvers.prices import Prices, Residual
from matching.solvers.ties import even_out
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["PricingSolver"]

Number = TypeVar("Number", np.int64, np.float64)

DENSE_PAIRS = 400_000  # up to here every pair is active from the start; the flow itself takes a fraction of a second
PAIRS_A_ROUND = 24  # most new pairs of a submission in a round and block: more grow the flow, fewer add rounds
RELAX_SWEEPS = 20_000  # far above the longest shortest path met; a guard, not a limit
REFINE_SWEEPS = 400  # refining float prices is a courtesy, so it may give up
ROUNDING = 1e-9  # relative rounding of sums over a plan; gaps below it are 0


@dataclass
class _State:
    """The reduced problem (locked pairs and closed lines taken out) and what is known so far."""

    problem: AssignmentProblem
    supply: IntArray
    beyond: IntArray  # demand above the number of reviewers: unfilled whatever the plan, kept out of the network
    load_max: IntArray
    load_min: IntArray
    closed: PairSet
    scale: Scale
    low: float
    high: float
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    cols: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    score: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def penalty(self) -> float:
        return self.scale.penalty / self.scale.factor

    def add(self, pairs: PairArray) -> int:
        """Make pairs active; unknown, barred and locked ones and those of lines without room stay out."""
        rows, cols = pairs[:, 0], pairs[:, 1]
        keep = (self.supply[rows] > 0) & (self.load_max[cols] > 0) & ~self.closed.contains(rows, cols)
        rows, cols = rows[keep], cols[keep]
        width = self.problem.shape[1]
        keys, first = np.unique(rows * width + cols, return_index=True)
        rows, cols = rows[first], cols[first]
        if self.rows.size:
            known = np.sort(self.rows * width + self.cols)
            at = np.minimum(np.searchsorted(known, keys), known.size - 1)
            fresh = known[at] != keys
            rows, cols = rows[fresh], cols[fresh]
        score = self.problem.scores.values(rows, cols)
        known_score = ~np.isnan(score)
        self.rows = np.concatenate([self.rows, rows[known_score]])
        self.cols = np.concatenate([self.cols, cols[known_score]])
        self.score = np.concatenate([self.score, score[known_score]])
        return int(known_score.sum())

    def cut(self, size: int) -> None:
        """Forget all but the first `size` active pairs, those the last flow saw."""
        self.rows, self.cols, self.score = self.rows[:size], self.cols[:size], self.score[:size]


class _Clock:
    """Seconds a stage and what is left of the limit."""

    def __init__(self, time_limit: float | None) -> None:
        self.start = time.perf_counter()
        self.limit = time_limit
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        return self.limit is not None and self.seconds > self.limit


class PricingSolver:
    """Maximal total score, certified over all pairs.

    Parameters
    ----------
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    """

    def __init__(self, candidates: int = 16, dense_pairs: int = DENSE_PAIRS) -> None:
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
        """The best plan of all, or the fullest where no full plan exists; see Solution.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        clock = _Clock(time_limit)
        tell = progress or (lambda report: None)
        n_submissions, n_reviewers = problem.shape
        random = np.random.default_rng(rng)
        with clock.stage("candidates"):
            tell(Progress("candidates", 0.0))
            state = _reduce(problem)
            if n_submissions * n_reviewers <= self.dense_pairs:
                whole = np.indices(problem.shape).reshape(2, -1).T
                state.add(whole)
            else:
                state.add(problem.scores.top_pairs(self.candidates, state.closed, random))
        build_seconds = clock.seconds
        rounds, prices, flow = 0, None, None
        proven = False
        bound = np.inf
        while not (clock.over or proven):
            rounds += 1
            tell(Progress("flow", _fraction(rounds, 0.2)))
            with clock.stage("flow"):
                flow = _flow(state)
            with clock.stage("prices"):
                tell(Progress("prices", _fraction(rounds, 0.5)))
                prices = _prices(state, flow, prices)
            value = _value(state, flow)
            with clock.stage("sweeps"):
                tell(Progress("sweep", _fraction(rounds, 0.7), value, None if np.isinf(bound) else bound))
                u, w = _as_scores(state, prices)
                proven = _price_in(state, u, w) == 0
                if proven:
                    # Prices in original floats, as far as they can be refined, make the proof tight.
                    bound, u, w = _certify(state, flow, prices)
            tell(Progress("sweep", _fraction(rounds, 0.9), value, bound if proven else None))
        if flow is None or prices is None:
            return _without_plan(state, clock, build_seconds)
        if not proven:
            state.cut(flow.taken.size)
            bound, u, w = _certify(state, flow, prices)
        if proven:
            with clock.stage("ties"):
                tell(Progress("ties", 0.92))
                taken = even_out(
                    problem, state.rows, state.cols, state.scale.integers(state.score), flow.taken, prices,
                    state.supply - flow.unfilled, state.load_min, state.load_max, rng,
                )  # fmt: skip
                if taken is not None and state.score[taken].sum() >= state.score[flow.taken].sum() - _slack(value):
                    flow = Flow(taken, flow.unfilled)
        solution = _solution(state, flow, u, w, bound, proven, rounds, clock, build_seconds)
        tell(Progress("sweep", 1.0, solution.value, solution.bound, solution.gap))
        return solution


def _price_in(state: _State, u: FloatArray, w: FloatArray) -> int:
    """Add pairs that would improve the plan; 0 only after a sweep that left none out."""
    resolution = 1.0 / state.scale.factor
    for limit in (PAIRS_A_ROUND, None):
        pairs, excess, complete = state.problem.scores.exceeding(u, w, 0.0, limit, state.closed)
        added = state.add(pairs[excess > resolution])
        if added or complete:
            return added
    return 0


def _fraction(rounds: int, within: float) -> float:
    """Progress that rises with each round and stays below 0.9: how many rounds there will be is not known."""
    return 0.9 * (1.0 - math.pow(0.6, rounds - 1 + within))


def _slack(value: float) -> float:
    return ROUNDING * max(1.0, abs(value))


def _reduce(problem: AssignmentProblem) -> _State:
    held_rows, held_cols = problem.locked[:, 0], problem.locked[:, 1]
    supply = problem.demand - np.bincount(held_rows, minlength=problem.shape[0])
    held = np.bincount(held_cols, minlength=problem.shape[1])
    closed = (
        PairSet(np.concatenate([problem.barred.pairs(), problem.locked]), problem.shape)
        if problem.locked.size
        else problem.barred
    )
    low, high = problem.scores.bounds()
    within = np.minimum(supply, problem.shape[1])
    scale = Scale.fit(low, high, problem.shape, int(within.sum()))
    return _State(
        problem,
        within.astype(np.int64),
        (supply - within).astype(np.int64),
        (problem.load_max - held).astype(np.int64),
        np.maximum(problem.load_min - held, 0).astype(np.int64),
        closed,
        scale,
        low,
        high,
    )


def _flow(state: _State) -> Flow:
    """One call of the oracle on the active pairs; reviews up to load_min are paid for, which makes it a must."""
    everyone = np.arange(state.problem.shape[1], dtype=np.int64)
    total = int(state.supply.sum())
    segments = Segments(
        np.concatenate([everyone, everyone]),
        np.minimum(np.concatenate([state.load_min, state.load_max - state.load_min]), total),
        np.concatenate([np.full(everyone.size, -state.scale.penalty), np.zeros(everyone.size, dtype=np.int64)]),
    )
    gain = state.scale.integers(state.score)
    return transport(state.problem.shape, state.rows, state.cols, -gain, state.supply, segments, state.scale.penalty)


def _residual(state: _State, flow: Flow) -> Residual:
    load = np.bincount(state.cols[flow.taken], minlength=state.problem.shape[1])
    return Residual(
        state.problem.shape, state.rows, state.cols, flow.taken, flow.unfilled, state.supply, load,
        state.load_min, state.load_max,
    )  # fmt: skip


def _prices(state: _State, flow: Flow, start: Prices | None) -> Prices:
    """Exact integer prices of the active problem; lines without room get a price no pair exceeds."""
    found = _residual(state, flow).relax(state.scale.integers(state.score), state.scale.penalty, start, RELAX_SWEEPS)
    if found is None:
        # relaxation converges for every optimal flow; not converging means that it was none
        raise SolverError("the flow solver's answer has no dual prices; it is not optimal")
    return found


def _as_scores(state: _State, prices: Prices) -> tuple[FloatArray, FloatArray]:
    """Prices in units of score, float64, with lines that have no room left closed by a price above any score."""
    u = prices.u / state.scale.factor
    w = prices.w / state.scale.factor
    roof = state.high - state.low + abs(state.high) + 2 * state.penalty + 1.0
    u[state.beyond > 0] = -state.penalty  # all their pairs are assigned, and reviews are missing all the same
    u[state.supply == 0] = roof
    w[state.load_max == 0] = roof
    return u, w


def _certify(state: _State, flow: Flow, prices: Prices) -> tuple[float, FloatArray, FloatArray]:
    """The best proof at hand: prices refined in floats if that converges and proves more, else the exact ones."""
    u, w = _as_scores(state, prices)
    choices = [(_bound(state, flow, u, w), u, w)]
    if choices[0][0] - _value(state, flow) > 1e-13 * max(1.0, abs(choices[0][0])):
        refined = _residual(state, flow).relax(
            state.score, state.penalty, Prices(u, w), REFINE_SWEEPS, tolerance=1e-13 * max(1.0, abs(state.high))
        )
        if refined is not None:
            u, w = refined.u.copy(), refined.w.copy()
            closed = _as_scores(state, prices)
            for mine, theirs, shut in (
                (u, closed[0], (state.supply == 0) | (state.beyond > 0)),
                (w, closed[1], state.load_max == 0),
            ):
                mine[shut] = theirs[shut]
            choices.append((_bound(state, flow, u, w), u, w))
    return min(choices, key=lambda choice: choice[0])


def _bound(state: _State, flow: Flow, u: FloatArray, w: FloatArray) -> float:
    """Upper bound on the value of every plan that misses as few reviews, from prices alone."""
    problem = state.problem
    _, excess, _ = problem.scores.exceeding(u, w, 0.0, None, state.closed)
    locked = problem.scores.values(problem.locked[:, 0], problem.locked[:, 1])
    load = np.bincount(state.cols[flow.taken], minlength=problem.shape[1])
    below = np.maximum(state.load_min - load, 0)
    unfilled = flow.unfilled + state.beyond
    open_u = np.where(state.supply > 0, u, 0.0)
    # missing reviews are paid for line by line: apart, the price and the penalty are huge and cancel
    return float(
        np.nansum(locked)
        + (state.supply - flow.unfilled) @ open_u
        + unfilled @ np.where(unfilled > 0, u + state.penalty, 0.0)
        + state.load_max @ np.where(state.load_max > 0, np.maximum(w, 0.0), 0.0)
        - (state.load_min - below) @ np.maximum(-w, 0.0)
        + below @ (state.penalty - np.maximum(-w, 0.0))
        + excess.sum()
    )


def _value(state: _State, flow: Flow) -> float:
    locked = state.problem.locked
    held = state.problem.scores.values(locked[:, 0], locked[:, 1])
    return float(np.nansum(held) + state.score[flow.taken].sum())


def _open_prices(state: _State, u: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lines without room get the smallest price that keeps the proof: what one more review there would bring."""
    no_supply, no_room = state.supply == 0, state.load_max == 0
    if not (no_supply.any() or no_room.any()):
        return u, w
    u_open = np.where(no_supply, -state.penalty, u)
    w_open = np.where(no_room, 0.0, w)
    for rows, cols in blocks(state.problem.shape):
        need_rows, need_cols = no_supply[rows].any(), no_room[cols].any()
        if not (need_rows or need_cols):
            continue
        part = np.array(state.problem.scores.block(rows, cols), dtype=np.float64)
        part += state.problem.scores.tolerance
        part[state.closed.within(rows, cols)] = np.nan
        if need_rows:
            best = np.fmax.reduce(part - np.where(no_room[cols], np.inf, w[cols])[None, :], axis=1)
            chosen = no_supply[rows]
            u_open[rows] = np.where(chosen, np.fmax(u_open[rows], best), u_open[rows])
    for rows, cols in blocks(state.problem.shape):
        if not no_room[cols].any():
            continue
        part = np.array(state.problem.scores.block(rows, cols), dtype=np.float64)
        part += state.problem.scores.tolerance
        part[state.closed.within(rows, cols)] = np.nan
        best = np.fmax.reduce(part - u_open[rows][:, None], axis=0)
        w_open[cols] = np.where(no_room[cols], np.fmax(w_open[cols], best), w_open[cols])
    return u_open, w_open


def _solution(
    state: _State,
    flow: Flow,
    u: FloatArray,
    w: FloatArray,
    bound: float,
    proven: bool,
    rounds: int,
    clock: _Clock,
    build_seconds: float,
) -> Solution:
    problem = state.problem
    chosen = np.column_stack([state.rows[flow.taken], state.cols[flow.taken]])
    pairs = np.concatenate([problem.locked, chosen])
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    load = np.bincount(chosen[:, 1], minlength=problem.shape[1])
    below = np.maximum(state.load_min - load, 0).astype(np.int64)
    unfilled = flow.unfilled + state.beyond
    missing = bool(unfilled.any() or below.any())
    value = float(np.nansum(problem.scores.values(pairs[:, 0], pairs[:, 1])))
    gap = max(0.0, bound - value)
    if proven:
        status = Status.INFEASIBLE if missing else Status.OPTIMAL
    else:
        status = Status.LIMIT_WITHOUT_PLAN if missing else Status.FEASIBLE_AT_LIMIT
    if status == Status.LIMIT_WITHOUT_PLAN:
        return _without_plan(state, clock, build_seconds, rounds)
    if gap <= _slack(value):
        gap = 0.0
    with clock.stage("prices"):
        u, w = _open_prices(state, u, w)
    return Solution(
        status=status,
        pairs=_frozen(pairs),
        value=value,
        bound=value if gap == 0.0 else bound,
        gap=gap,
        submission_prices=_frozen(u),
        reviewer_prices=_frozen(w),
        unfilled=_frozen(unfilled),
        below_min=_frozen(below),
        penalty=state.penalty if missing else 0.0,
        rounds=rounds,
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta=_meta(state),
    )


def _without_plan(state: _State, clock: _Clock, build_seconds: float, rounds: int = 0) -> Solution:
    """The limit came before any plan: no pairs, no proof, and not "infeasible"."""
    n_submissions, n_reviewers = state.problem.shape
    return Solution(
        status=Status.LIMIT_WITHOUT_PLAN,
        pairs=_frozen(np.empty((0, 2), dtype=np.int64)),
        value=0.0,
        bound=np.inf,
        gap=np.inf,
        submission_prices=_frozen(np.zeros(n_submissions)),
        reviewer_prices=_frozen(np.zeros(n_reviewers)),
        unfilled=_frozen(state.problem.demand.copy()),
        below_min=_frozen(state.problem.load_min.copy()),
        rounds=rounds,
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta=_meta(state),
    )


def _meta(state: _State) -> dict[str, object]:
    return {
        "solver": "flow+pricing",
        "ortools": version("ortools"),
        "resolution": 1.0 / state.scale.factor,
        "active_pairs": int(state.rows.size),
    }


def _frozen(array: NDArray[Number]) -> NDArray[Number]:
    array.setflags(write=False)
    return array
