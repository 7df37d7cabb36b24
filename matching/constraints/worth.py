"""What whole sets of people are valued by where earlier wishes hold: the total, what is missing to t, or just a height.

Each submission's sum U is worth ``slope * U + extra * min(U, t)`` where it is at its floor, and nothing lawful below
it. The total, the shortfall to a threshold, and whether everybody can reach a height at all have this form, with the
floors that earlier wishes ask, and with multipliers on earlier totals and shortfalls. It is concave, so it has tangents
and a conjugate like every other measure; `matching.constraints.whole` takes either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.grid import Grid
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Measure, Shortfall, Total, Welfare
from matching.scores.size import usual_size
from matching.types import FloatArray, IntArray

__all__ = ["Worth", "worth_of"]

SUMS = 1e-9  # relative rounding of sums that are held against a floor, which may come from a bound
HEIGHT = 1e-12  # against a height nobody has reached: only the order of adding differs


@dataclass(frozen=True, eq=False)
class Worth:
    """``slope * U + extra * min(U, t)`` for each submission of `among` whose sum is at its floor, -inf below it.

    Attributes
    ----------
    among : ndarray of shape (n_submissions,), bool
    slope : float
        At least 0.
    extra : ndarray of shape (n_submissions,), float64
        At least 0.
    t : float
    floor : ndarray of shape (n_submissions,), float64
        -inf where there is none.
    slack : ndarray of shape (n_submissions,), float64
        How far below its floor a sum still counts as being there.
    """

    among: NDArray[np.bool_]
    slope: float
    extra: FloatArray
    t: float
    floor: FloatArray
    slack: FloatArray

    def parts(self, sums: FloatArray, rows: IntArray) -> FloatArray:
        """What these sums of these submissions are worth."""
        worth = self.slope * sums + self.extra[rows] * np.minimum(sums, self.t)
        return np.where(sums >= self.floor[rows] - self.slack[rows], worth, -np.inf)

    def of(self, row: int) -> Callable[[FloatArray], FloatArray]:
        """What sums of one submission are worth."""
        slope, extra, t, least = self.slope, float(self.extra[row]), self.t, float(self.floor[row] - self.slack[row])
        if extra == 0.0:
            return lambda sums: np.where(sums >= least, slope * sums, -np.inf)
        return lambda sums: np.where(sums >= least, slope * sums + extra * np.minimum(sums, t), -np.inf)

    def fitting(self, weights: FloatArray) -> FloatArray:
        """The slopes of tangents nearest to these weights; 0 outside `among`."""
        most = np.where(np.isfinite(self.floor), np.inf, self.slope + self.extra)
        return np.where(self.among, np.minimum(np.maximum(weights, self.slope), most), 0.0)

    def conjugate_parts(self, weights: FloatArray) -> FloatArray:
        """What each of `among` adds to the conjugate, for the weights of `among` alone; inf where there is no bound."""
        floor, extra = self.floor[self.among], self.extra[self.among]
        some = np.isfinite(floor)
        low = np.where(some, floor - self.slack[self.among], 0.0)  # a sum there is worth something, too
        flat = self.slope + extra - weights
        below = np.where(flat >= 0.0, flat * self.t, np.where(some, flat * low, np.inf))
        above = (self.slope - weights) * low + extra * self.t
        return np.where(weights < self.slope, np.inf, np.where(some & (low >= self.t), above, below))


def worth_of(
    problem: AssignmentProblem,
    measure: Measure,
    constraints: Sequence[tuple[Measure, float]],
    multipliers: Sequence[float],
    height: float | None = None,
    *,
    grid: Grid | None = None,
) -> tuple[Worth | Welfare, float] | None:
    """What sets are valued by for a measure under earlier wishes, and what their limits add to the bound.

    Parameters
    ----------
    problem : AssignmentProblem
    measure : Measure
    constraints : sequence of (Measure, float)
        ``g(U) >= c``. Floors and levels hold for each set by itself; totals and one shortfall enter by multipliers.
    multipliers : sequence of float
        At least 0, one for each constraint.
    height : float, optional
        For a level: the worth is 0 where all of it reaches this height, so a bound below 0 says that no plan does.
    grid : Grid, optional
        On which the sums of this problem lie: `matching.constraints.grid.grid_of`.

    Returns
    -------
    tuple or None
        None where the measure and its constraints do not have this form.
    """
    if isinstance(measure, Welfare):
        return None if constraints else (measure, 0.0)
    n_submissions = problem.shape[0]
    among = problem.demand > 0
    slope, charge = 1.0 if isinstance(measure, Total) else 0.0, 0.0
    extra, bends = np.zeros(n_submissions), set()
    floor, slack = np.full(n_submissions, -np.inf), np.zeros(n_submissions)
    if problem.rules or not among.any() or isinstance(measure, Level) != (height is not None):
        return None
    if isinstance(measure, Shortfall):
        extra[measure.among] += 1.0
        bends.add(measure.t)
    for (earlier, least), k in zip(constraints, multipliers, strict=True):
        if isinstance(earlier, Floors):
            floor = np.maximum(floor, earlier.floor + least)
        elif isinstance(earlier, Level):
            floor = np.where(earlier.among, np.maximum(floor, least), floor)
        elif k > 0.0 and isinstance(earlier, Total):
            slope += k
            charge -= k * least
        elif k > 0.0 and isinstance(earlier, Shortfall):
            extra[earlier.among] += k
            charge -= k * least
            bends.add(earlier.t)
        elif k > 0.0:
            return None
    some = np.isfinite(floor)
    slack[some] = SUMS * np.maximum(usual_size(problem.scores), np.abs(floor[some]))
    if isinstance(measure, Level) and height is not None:
        higher = measure.among & (floor < height)
        floor[higher], slack[higher] = height, HEIGHT * abs(height)
    if len(bends) > 1 or (np.isfinite(floor) & ~among).any() or extra[~among].any():
        return None
    if not math.isfinite(charge) or not all(map(math.isfinite, bends)) or (floor == np.inf).any():
        return None
    if grid is not None:
        floor, slack = grid.lifted(floor, slack)
    return Worth(among, slope, extra, bends.pop() if bends else 0.0, floor, slack), charge
