"""The curve between two wishes: from the best for the first to the best for the second, with a plan at every point.

Each point gives the second wish as much as it can have while the first keeps a stated share of its best value. All
points share one workbench, so flows, prices, active pairs and programs of one are the start of the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError, Issue
from matching.objectives import Wish
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution
from matching.solvers.clock import Clock, slack_of
from matching.solvers.lexicographic import Run, first_plan
from matching.solvers.units import in_unit, restored, restored_proof, unit_of
from matching.solvers.workbench import Workbench

__all__ = ["FIRST_WISHES", "SECOND_WISHES", "TradeoffPoint", "tradeoff"]

FIRST_WISHES = ("total", "welfare", "maximin", "threshold")
"""What the first wish may be: a function of the submissions' sums with one number to hold on to."""

SECOND_WISHES = (*FIRST_WISHES, "evenness")
MOST_POINTS = 1000


@dataclass(frozen=True, eq=False)
class TradeoffPoint:
    """One point of the curve.

    Attributes
    ----------
    loss : float
        Share of the first wish's best value that it may give away here; at the far end what it does give away.
    first, second : Proof
        Of the two wishes for this plan: value, bound, gap in natural units.
    solution : Solution
    wishes : tuple of Wish
        The stack that the solution answers, in order of importance: at the far end the second wish comes first.
    """

    loss: float
    first: Proof
    second: Proof
    solution: Solution
    wishes: tuple[Wish, ...]


def tradeoff(
    problem: AssignmentProblem,
    first: Wish,
    second: Wish,
    *,
    points: int = 9,
    losses: Sequence[float] | None = None,
    candidates: int = 16,
    rng: int = 0,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> list[TradeoffPoint]:
    """Plans between the best for `first` and the best for `second`, in that order.

    Parameters
    ----------
    problem : AssignmentProblem
    first : Wish
        One of FIRST_WISHES.
    second : Wish
        One of SECOND_WISHES. The losses of both are not looked at.
    points : int
        2 to MOST_POINTS: the two ends, and the losses of the first wish between them evenly spaced.
    losses : sequence of float or None
        Instead of `points`: shares of the first wish's best value it may give away, each in [0, 1).
    candidates, rng, time_limit, progress
        As for every solver; the limit is for the whole curve.

    Returns
    -------
    list of TradeoffPoint
        Fewer than asked for where the limit came first or where the two ends are one; empty where there is no full
        plan, of which a solve for "total" tells more.

    Raises
    ------
    InvalidParamsError
        Wishes the curve cannot be drawn for, points or losses out of range; all of them.
    """
    _check(first, second, points, losses)
    first, second = Wish(first.name, first.options), Wish(second.name, second.options)
    asked = {wish.name: wish for wish in (first, second)}
    unit = unit_of(problem)
    if unit != 1.0:
        problem, (first, second) = in_unit(problem, (first, second), unit)
    found = _curve(problem, first, second, points, losses, candidates, rng, time_limit, progress)
    if unit == 1.0:
        return found
    return [_restored(point, asked, unit) for point in found]


def _restored(point: TradeoffPoint, asked: Mapping[str, Wish], unit: float) -> TradeoffPoint:
    """A point found in this unit as one of the problem itself: each wish as it was asked, with the loss it has here."""
    wishes = tuple(replace(asked[wish.name], loss=wish.loss) for wish in point.wishes)
    words = {wish.name: wish.to_dict() for wish in wishes}
    return TradeoffPoint(
        point.loss, restored_proof(point.first, words, unit), restored_proof(point.second, words, unit),
        restored(point.solution, wishes, unit), wishes,
    )  # fmt: skip


def _curve(
    problem: AssignmentProblem,
    first: Wish,
    second: Wish,
    points: int,
    losses: Sequence[float] | None,
    candidates: int,
    rng: int,
    time_limit: float | None,
    progress: ProgressCallback | None,
) -> list[TradeoffPoint]:
    clock = Clock(time_limit)
    report = progress or (lambda entry: None)
    done = [0]
    count = points if losses is None else len(losses)

    def tell(phase: str, value: float | None, bound: float | None) -> None:
        del value, bound
        report(Progress(phase, min(0.99, (done[0] + 0.5) / (count + 1))))

    bench = Workbench(problem, candidates, rng, clock, tell)
    start = first_plan(bench, clock, clock.seconds, rng)
    if isinstance(start, Solution):
        return []
    near = Run(bench, start, rng)
    near.settle(first)
    found: list[TradeoffPoint] = []

    def point(loss: float) -> None:
        run = near.relaxed(loss)
        run.settle(second)
        run.even_ties()
        solution = run.solution(0.0)
        wishes = (replace(first, loss=loss), second)
        found.append(TradeoffPoint(loss, solution.proofs[0], solution.proofs[-1], solution, wishes))
        done[0] += 1

    if losses is not None:
        for loss in losses:
            if not (clock.over and found):
                point(float(loss))
        return found
    point(0.0)
    if clock.over:
        return found
    far = Run(bench, start, rng)
    far.settle(second)
    far.settle(first)
    far.even_ties()
    end = far.solution(0.0)
    done[0] += 1
    best, least = found[0].first.value, end.proofs[-1].value
    lost = best - least
    if lost <= slack_of(best) or best == 0.0:
        return found
    whole = lost / abs(best)
    for share in np.linspace(0.0, 1.0, points)[1:-1]:
        if clock.over:
            break
        if share * whole < 1.0:
            point(float(share * whole))
    found.append(TradeoffPoint(whole, end.proofs[-1], end.proofs[0], end, (second, first)))
    return found


def _check(first: Wish, second: Wish, points: int, losses: Sequence[float] | None) -> None:
    issues = []
    for name, wish, known in (("first", first, FIRST_WISHES), ("second", second, SECOND_WISHES)):
        if wish.name not in known:
            reason = f"must be one of {', '.join(known)}"
            issues.append(Issue(reason, "out-of-range", name, value=wish.name, source="params"))
    if first.name == second.name:
        issues.append(Issue("the two wishes are the same", "duplicate", "second", value=second.name, source="params"))
    whole = isinstance(points, Integral) and not isinstance(points, bool)
    if losses is None and not (whole and 2 <= points <= MOST_POINTS):
        reason = f"must be a whole number from 2 to {MOST_POINTS}"
        issues.append(Issue(reason, "out-of-range", "points", value=points, source="params"))
    listed = isinstance(losses, Sequence | np.ndarray) and not isinstance(losses, str)
    if losses is not None and not (listed and all(isinstance(loss, Real) and 0 <= loss < 1 for loss in losses)):
        reason = "must be a list of numbers, each at least 0 and below 1"
        issues.append(Issue(reason, "out-of-range", "losses", source="params"))
    if issues:
        raise InvalidParamsError(issues=issues)
