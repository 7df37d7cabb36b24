"""A wish under welfare, total or shortfall kept at a mark: both on one scale, whose weight is searched for.

What is maximised, ``f(U) + k g(U)``, is a sum over submissions, so exchanges (`matching.solvers.exchange`) raise it as
it is, and its slopes, given to the oracle, price a bound for every k. A small k gives the wish away for the mark, a
large one the mark for the wish; the best k is found by halving. This is for problems too large to be put to the integer
solver with welfare by tangents.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from matching.objectives import Measure, Shortfall, Total, Welfare
from matching.solvers.exchange import Arcs
from matching.solvers.floors import climb
from matching.solvers.oracle import Extreme
from matching.solvers.stages import Bound, Constraints, Plan, of_extreme, plan_of
from matching.solvers.workbench import Workbench
from matching.types import FloatArray, IntArray

__all__ = ["by_slopes", "climbed"]

STEPS = 8  # weights k tried
FACTOR = 8.0  # between them until the mark is kept by one and not by another
FLOWS = 40  # exchanges for each


def by_slopes(
    bench: Workbench, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound
) -> tuple[Plan, Bound]:
    """The best plan found that keeps the constraints, at least as good as `plan`, and the best bound.

    Parameters
    ----------
    measure : Measure
        Total, Shortfall or Welfare.
    """
    marks = [at for at, (other, _) in enumerate(constraints) if isinstance(other, Total | Shortfall | Welfare)]
    floors = bench.floors_of(constraints)
    bench.oracle.state.add(plan.pairs)
    if not marks:
        found = climbed(bench, [(1.0, measure)], floors, plan, None)
        return bench.better(plan, found, measure, constraints), bound
    slope = float(measure.weights(plan.sums).sum())
    scales = [slope / max(float(constraints[at][0].weights(plan.sums).sum()), 1e-300) for at in marks]
    weight, low, high = 1.0, None, None
    for _ in range(STEPS):
        if bench.clock.over or bench.done(plan, bound):
            break
        mixed = [(1.0, measure)] + [(weight * s, constraints[at][0]) for s, at in zip(scales, marks, strict=True)]
        start = plan
        y = sum((k * one.weights(plan.sums) for k, one in mixed), np.zeros(plan.sums.size))
        extreme = bench.flow(y / y.max()) if y.max() > 0 else None
        if extreme is None:
            break
        multipliers = [(0.0, np.zeros(plan.sums.size))] * len(constraints)
        for (k, one), at in zip(mixed[1:], marks, strict=True):
            multipliers[at] = (k, one.weights(plan.sums))
        weights = measure.weights(plan.sums)
        scaled = of_extreme(extreme, measure, constraints, weights, tuple(multipliers), float(y.max()))
        bound = min(bound, scaled, key=lambda one: one.bound)
        # from the flow's own plan as well: it lies far from the present one where the slopes do
        kept = False
        for begin in (start, plan_of(bench.problem, extreme.pairs)):
            found = climbed(bench, mixed, floors, begin, _worth(bench, mixed, begin, y, extreme))
            kept |= found.keeps(constraints)
            plan = bench.better(plan, found, measure, constraints)
        if kept:
            high = weight
        else:
            low = weight
        if low is not None and high is not None:
            weight = math.sqrt(low * high)
        else:
            weight = weight / FACTOR if low is None else weight * FACTOR
    return plan, bound


def _worth(
    bench: Workbench, mixed: list[tuple[float, Measure]], plan: Plan, y: FloatArray, extreme: Extreme
) -> NDArray[np.bool_]:
    """Which active pairs a better plan for the mixture may use, by their reduced costs under its slopes."""
    state, top = bench.oracle.state, float(y.max())
    most = sum(k * one.conjugate(one.weights(plan.sums)) for k, one in mixed) + top * extreme.bound
    margin = most - sum(k * one.value(plan.sums) for k, one in mixed)
    reduced = y[state.rows] * state.plain - top * (extreme.u[state.rows] + extreme.w[state.cols])
    return np.asarray(reduced >= -max(0.0, float(margin)))


def climbed(
    bench: Workbench,
    mixed: list[tuple[float, Measure]],
    floors: FloatArray,
    plan: Plan,
    use: NDArray[np.bool_] | None,
    flows: int = FLOWS,
) -> Plan:
    """Exchanges that raise the mixture and keep the floors that are kept.

    Parameters
    ----------
    mixed : list of (float, Measure)
        Weights, and sums over submissions: Total, Shortfall or Welfare.
    floors : ndarray of shape (n_submissions,), float64
        -inf where there is none.
    use : ndarray of shape (n_active,), bool, or None
        Active pairs that may be used besides those of the plan; None for all.
    flows : int
        Most exchanges.
    """
    state, problem = bench.oracle.state, bench.problem
    arcs = Arcs(problem.shape, state.rows, state.cols, state.plain, state.load_min, state.load_max)
    width = problem.shape[1]
    taken = np.isin(state.rows * width + state.cols, plan.pairs[:, 0] * width + plan.pairs[:, 1])
    if use is not None:
        at = np.flatnonzero(use | taken)
        arcs, taken = arcs.only(at), taken[at]
    base = np.bincount(problem.locked[:, 0], weights=state.held, minlength=problem.shape[0]).astype(np.float64)
    slack = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(floors), floors, 0.0)))

    def gain(rows: IntArray, before: FloatArray, after: FloatArray) -> FloatArray:
        worth = np.zeros(rows.size)
        for k, one in mixed:
            worth += k * (_parts(one, rows, after) - _parts(one, rows, before))
        lost = (after < floors[rows] - slack[rows]) & (after < before)
        return np.where(lost, -np.inf, worth)

    def over() -> bool:
        bench.tell("rounding", None, None)
        return bench.clock.over

    with bench.clock.stage("exchange"):
        rng = np.random.default_rng(bench.rng)
        taken, _ = climb(arcs, taken, base, gain, rng, flows, over)
    pairs = np.concatenate([problem.locked, np.column_stack([arcs.rows, arcs.cols])[taken]])
    return plan_of(problem, pairs)


def _parts(measure: Measure, rows: IntArray, sums: FloatArray) -> FloatArray:
    """What each pair's submission adds to the measure at the sum given for it."""
    if isinstance(measure, Total):
        return sums
    among: NDArray[np.bool_] = measure.among[rows]  # type: ignore[attr-defined]
    out = np.zeros(rows.size)
    if isinstance(measure, Shortfall):
        out[among] = np.minimum(sums[among], measure.t)
    elif isinstance(measure, Welfare):
        out[among] = measure.parts(sums[among])
    else:
        raise TypeError(f"{type(measure).__name__} is no sum over submissions")
    return out
