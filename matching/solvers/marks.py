"""Thresholds in problems too large for programs: plans by exchanges, bounds by steps down the dual.

What is there up to a threshold is a sum over submissions, so exchanges (`matching.solvers.exchange`) raise it as it is.
They do so with a small part of the total beside it, which costs next to nothing of it, leaves the second wish with
nearly all it can have, and leads past plans where the threshold alone sees no difference. For the total under a
threshold kept the parts change places: the weight of the threshold falls until the mark is missed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matching.objectives import Measure, Shortfall, Total
from matching.solvers.descent import Priced, certified, descend, first_weights
from matching.solvers.slopes import climbed
from matching.solvers.stages import Bound, Constraints, Plan
from matching.solvers.workbench import Workbench

__all__ = ["by_marks"]

ASIDE = 1.0 / 32.0  # weight of the total beside a threshold
FLOWS = 20  # exchanges from one plan; they have nearly all there is
FLOWS_EACH = 8  # of those for one weight of a mark
DESCENTS = ((8, 2), (16, 4))  # flows down the dual and rounds of proof after them, which bring in the pairs that matter
STEPS_EACH = 10  # flows down the dual for one weight of a mark
ROUNDS = 3  # of proof for the best of them
PROVING = (2.0, 1.0)  # of a threshold beside the total in a bound: a plan short of its best leaves the total more room
WEIGHTS = (16.0, 8.0, 4.0, 2.0)  # of a mark beside the total, from what keeps it to what may not


def by_marks(
    bench: Workbench, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound
) -> tuple[Plan, Bound]:
    """The best plan found that keeps the constraints, at least as good as `plan`, and the best bound.

    Parameters
    ----------
    measure : Measure
        Shortfall or Total.
    constraints : tuple of (Measure, float)
        Of Shortfall, Total and Floors.
    """
    marks = [at for at, (other, _) in enumerate(constraints) if isinstance(other, Shortfall | Total)]
    bench.oracle.state.add(plan.pairs)
    if not marks:
        return _alone(bench, measure, constraints, plan, bound)
    return _beside(bench, measure, constraints, plan, bound, marks)


def _alone(
    bench: Workbench, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound
) -> tuple[Plan, Bound]:
    """The wish with floors at most."""
    plan = _raised(bench, [(1.0, measure), (ASIDE, Total())], measure, constraints, plan, FLOWS)
    best = first_weights(measure, constraints, (1.0,) * len(constraints), plan.sums)
    for steps, rounds in DESCENTS:
        if bench.done(plan, bound) or bench.clock.over:
            break
        best = descend(bench, measure, constraints, best, plan.value(measure), steps)
        proven = certified(bench, measure, constraints, best, rounds)
        if proven is not None:
            bound = min(bound, proven, key=lambda one: one.bound)
        best = replace(best, guess=np.inf)  # pairs that joined may show it to be too low
    bench.slopes[measure] = best.weights
    return plan, bound


def _beside(
    bench: Workbench, measure: Measure, constraints: Constraints, plan: Plan, bound: Bound, marks: list[int]
) -> tuple[Plan, Bound]:
    """The wish with earlier ones that are kept at a mark."""
    for weight in WEIGHTS:
        if bench.clock.over or bench.done(plan, bound):
            return plan, bound
        mixed = [(1.0, measure)] + [(weight, constraints[at][0]) for at in marks]
        raised = _raised(bench, mixed, measure, constraints, plan, FLOWS_EACH)
        if raised is plan:
            break
        plan = raised
    lowest: Priced | None = None
    for weight in WEIGHTS if any(isinstance(constraints[at][0], Total) for at in marks) else PROVING:
        scales = tuple(weight if at in marks else 1.0 for at in range(len(constraints)))
        start = first_weights(measure, constraints, scales, plan.sums) if lowest is None else lowest
        start = _scaled(bench, start, constraints, scales, marks)
        found = descend(bench, measure, constraints, start, plan.value(measure), STEPS_EACH)
        if lowest is not None and found.guess >= lowest.guess:
            break  # convex in the weight, so smaller ones prove less
        lowest = found
    proven = None if lowest is None else certified(bench, measure, constraints, lowest, ROUNDS)
    return plan, bound if proven is None else min(bound, proven, key=lambda one: one.bound)


def _scaled(
    bench: Workbench, found: Priced, constraints: Constraints, scales: tuple[float, ...], marks: list[int]
) -> Priced:
    """The same shape of weights for the marks at another scale; a threshold's as its own bound had it."""
    pulls = list(found.pulls)
    for at in marks:
        own = constraints[at][0]
        before = found.scales[at]
        if own in bench.slopes and before == scales[at]:
            pulls[at] = scales[at] * bench.slopes[own]
        elif before > 0.0:
            pulls[at] = pulls[at] * (scales[at] / before)
    return Priced(found.weights, tuple(pulls), scales)


def _raised(
    bench: Workbench,
    mixed: list[tuple[float, Measure]],
    measure: Measure,
    constraints: Constraints,
    plan: Plan,
    flows: int,
) -> Plan:
    found = climbed(bench, mixed, bench.floors_of(constraints), plan, None, flows)
    return bench.better(plan, found, measure, constraints)
