"""The total, exact over all pairs: one call of the oracle, then the evenest of the plans that tie."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from importlib.metadata import version

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.solvers.base import Progress, ProgressCallback, Solution, Status, frozen
from matching.solvers.clock import Clock
from matching.solvers.flow import Flow
from matching.solvers.oracle import DENSE_PAIRS, Extreme, Oracle
from matching.solvers.repair import RepairOracle, closest
from matching.solvers.start import START, Start
from matching.solvers.stated import bound_and_gap
from matching.solvers.ties import even_out, unwanted_among

__all__ = ["PricingSolver", "plan_from", "without_plan"]


class PricingSolver:
    """Maximal total score, certified over all pairs.

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
        start: Start | None = None,
    ) -> Solution:
        """The best plan of all, or the fullest where no full plan exists; see Solution.

        Parameters
        ----------
        start : Start or None
            An earlier plan to begin from. Of the plans that tie, the one that keeps most of it is chosen; nothing else
            about the answer depends on it.

        Raises
        ------
        SolverRangeError, SolverError
            The solver cannot represent the numbers or gave no answer.
        """
        clock = Clock(time_limit)
        report = progress or (lambda entry: None)
        report(Progress("candidates", 0.0))
        oracle: Oracle
        if start is None:
            oracle = Oracle(
                problem, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock, drop=True,
                executor=self.executor,
            )  # fmt: skip
        else:
            oracle = RepairOracle(
                problem, start, candidates=self.candidates, dense_pairs=self.dense_pairs, rng=rng, clock=clock,
                executor=self.executor,
            )  # fmt: skip
        build_seconds = clock.seconds

        def tell(phase: str, rounds: int, value: float | None) -> None:
            within = {"flow": 0.2, "prices": 0.5, "sweep": 0.7}[phase]
            report(Progress(phase, _fraction(rounds, within), value))

        best = oracle.best(tell=tell)
        if best is None:
            return without_plan(problem, clock, build_seconds, meta=_meta(oracle))
        if best.proven:
            with clock.stage("ties"):
                report(Progress("ties", 0.92, best.value, best.bound))
                best = closest(oracle, best, rng) if isinstance(oracle, RepairOracle) else evenest(oracle, best, rng)
        solution = plan_from(problem, best, clock, build_seconds, _meta(oracle))
        report(Progress("sweep", 1.0, solution.value, solution.bound, solution.gap))
        return solution


def evenest(oracle: Oracle, best: Extreme, rng: int) -> Extreme:
    """Of all flows as good as the oracle's last one, the evenest; `best` itself where nothing is free."""
    state, flow = oracle.state, oracle.flow
    if oracle.prices is None or state.units != 1:
        return best
    taken = even_out(
        state.problem, state.rows, state.cols, state.gain, flow.taken, oracle.prices,
        state.supply - flow.unfilled, state.load_min, state.load_max, rng,
        unwanted_among(state.problem, state.rows, state.cols, state.plain),
    )  # fmt: skip
    if taken is None or not best.spares(float(state.score[flow.taken].sum() - state.score[taken].sum())):
        return best
    u, w = oracle.raw_prices
    return oracle.extreme(Flow(taken.astype(np.int64), flow.unfilled), best.bound, u, w, best.proven, best.rounds)


def plan_from(
    problem: AssignmentProblem, best: Extreme, clock: Clock, build_seconds: float, meta: dict[str, object]
) -> Solution:
    """The oracle's answer for the plain scores as a Solution of the objective "total"."""
    if best.proven:
        status = Status.INFEASIBLE if best.missing else Status.OPTIMAL
    else:
        status = Status.LIMIT_WITHOUT_PLAN if best.missing else Status.FEASIBLE_AT_LIMIT
    if status == Status.LIMIT_WITHOUT_PLAN:
        return without_plan(problem, clock, build_seconds, best.rounds, meta)
    value = float(best.score.sum())
    bound, gap = bound_and_gap(value, best.bound)
    return Solution(
        status=status,
        pairs=frozen(best.pairs),
        value=value,
        bound=bound,
        gap=gap,
        submission_prices=frozen(best.u),
        reviewer_prices=frozen(best.w),
        unfilled=frozen(best.unfilled),
        below_min=frozen(best.below_min),
        penalty=best.penalty if best.missing else 0.0,
        rounds=best.rounds,
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta=meta,
    )


def without_plan(
    problem: AssignmentProblem,
    clock: Clock,
    build_seconds: float,
    rounds: int = 0,
    meta: dict[str, object] | None = None,
) -> Solution:
    """The limit came before any plan: no pairs, no proof, and not "infeasible"."""
    n_submissions, n_reviewers = problem.shape
    return Solution(
        status=Status.LIMIT_WITHOUT_PLAN,
        pairs=frozen(np.empty((0, 2), dtype=np.int64)),
        value=0.0,
        bound=np.inf,
        gap=np.inf,
        submission_prices=frozen(np.zeros(n_submissions)),
        reviewer_prices=frozen(np.zeros(n_reviewers)),
        unfilled=frozen(problem.demand.copy()),
        below_min=frozen(problem.load_min.copy()),
        rounds=rounds,
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta=meta or {},
    )


def _fraction(rounds: int, within: float) -> float:
    """Progress that rises with each round and stays below 0.9: how many rounds there will be is not known."""
    return 0.9 * (1.0 - math.pow(0.6, rounds - 1 + within))


def _meta(oracle: Oracle) -> dict[str, object]:
    meta: dict[str, object] = {
        "solver": "flow+pricing",
        "ortools": version("ortools"),
        "resolution": 1.0 / oracle.state.scale.factor,
        "active_pairs": int(oracle.state.rows.size),
    }
    if isinstance(oracle, RepairOracle):
        meta[START] = {"used": not oracle.refused, "reason": oracle.refused}
    return meta
