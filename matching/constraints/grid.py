"""The steps scores come in, where they do: ratings and levels make sums that lie on a grid.

No sum lies between two points of the grid, so a floor between them asks for the higher one, which a bound may use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.scores.base import blocks
from matching.types import FloatArray

__all__ = ["Grid", "grid_of"]

MOST_VALUES = 64  # different scores; more of them have no step worth knowing
FINEST = 1e-3  # of the largest score: smallest step looked for
NEARLY = 1e-6  # of the step: how far scores may lie from a multiple of it


@dataclass(frozen=True, slots=True)
class Grid:
    """Every sum of a submission lies within `error` of a multiple of `step`; both in units of score, step > 0."""

    step: float
    error: float

    def lifted(self, floors: FloatArray, slack: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Floors and their slack, lifted to the next multiple where there is one further up; the same sums reach them.

        Parameters
        ----------
        floors, slack : ndarray of shape (n_submissions,), float64
            A sum at its floor may stay `slack` below it; -inf for no floor.
        """
        some = np.isfinite(floors)
        up = np.array(floors)
        up[some] = np.ceil((floors[some] - slack[some] - self.error) / self.step) * self.step
        higher = some & (up > floors)
        return np.where(higher, up, floors), np.where(higher, self.error, slack)


def grid_of(problem: AssignmentProblem) -> Grid | None:
    """The largest step found for all scores; None where they are too many, or approximate. One sweep at most."""
    if problem.scores.tolerance > 0.0:
        return None
    if (stored := problem.scores.stored) is not None:
        return _step(np.unique(stored[2][np.isfinite(stored[2])]), problem)
    values = np.empty(0)
    for rows, cols in blocks(problem.shape):
        part = np.asarray(problem.scores.block(rows, cols), dtype=np.float64)
        for line in (part[:1], part):  # most matrices show in one line that they have no step
            values = np.unique(np.concatenate([values, line[np.isfinite(line)]]))
            if values.size > MOST_VALUES:
                return None
    return _step(values, problem)


def _step(values: FloatArray, problem: AssignmentProblem) -> Grid | None:
    size = np.abs(values)
    largest = float(size.max(initial=0.0))
    if largest == 0.0 or values.size > MOST_VALUES:
        return None
    step = largest
    for value in size[size > 0].tolist():
        rest = float(np.fmod(value, step))
        while min(rest, step - rest) > NEARLY * largest:
            step, rest = rest, float(np.fmod(step, rest))
            if step < FINEST * largest:
                return None
    step = largest / round(largest / step)
    away = float(np.abs(values - np.rint(values / step) * step).max())
    if step < FINEST * largest or away > NEARLY * step:
        return None
    return Grid(step, away * int(problem.demand.max(initial=0)) + 1e-12 * largest)
