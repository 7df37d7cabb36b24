"""What a solver takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from matching.constraints.problem import AssignmentProblem
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Progress", "Solution", "Solver", "Status"]


class Status(StrEnum):
    """How a solve ended. Each is a different fact; none stands in for another."""

    OPTIMAL = "optimal"
    """A full plan, proven best within `Solution.gap`."""
    FEASIBLE_AT_LIMIT = "feasible_at_limit"
    """The time limit came first; a full plan with the gap stated."""
    LIMIT_WITHOUT_PLAN = "limit_without_plan"
    """The time limit came before any plan; there are no pairs."""
    INFEASIBLE = "infeasible"
    """No full plan exists, proven; `pairs` is the fullest and among those the best."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One report from a running solve.

    Attributes
    ----------
    phase : str
        "scores", "candidates", "flow", "prices", "sweep", "ties", "audit" or "report".
    fraction : float
        Rough share of the whole done, [0, 1].
    value, bound, gap : float or None
        Best so far, where known.
    """

    phase: str
    fraction: float
    value: float | None = None
    bound: float | None = None
    gap: float | None = None


ProgressCallback = Callable[[Progress], None]
"""Called between steps. It may raise to stop the run; the exception passes through unchanged."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Pairs with their proof.

    Attributes
    ----------
    status : Status
        A string; see Status.
    pairs : ndarray of shape (n, 2), int64
        (submission row, reviewer column), in row order.
    value : float
        Sum of the original float scores over `pairs`, no unit.
    bound : float
        No lawful plan that fills as many reviews has a value above it.
    gap : float
        ``max(0, bound - value)``, set to 0 where it is below the rounding of float64 sums,
        1e-9 * max(1, |value|).
    submission_prices : ndarray of shape (n_submissions,), float64
        u: what one more review for a submission is worth, in units of score; any sign.
    reviewer_prices : ndarray of shape (n_reviewers,), float64
        w: what one more review by a reviewer is worth; below 0 only where load_min binds.
    unfilled : ndarray of shape (n_submissions,), int64
        Reviews missing per submission; all 0 for a full plan.
    below_min : ndarray of shape (n_reviewers,), int64
        Reviews missing to load_min per reviewer; all 0 unless infeasible.
    penalty : float
        Price of one missing review in the certificate of an infeasible problem, in units of score; 0 if full.
    rounds : int
        Flow solves until no pair of the whole matrix could improve the plan.
    build_seconds, solve_seconds : float
        Wall time before the first flow, and from there on.
    stages : dict of str to float
        Seconds a stage: candidates, flow, prices, sweeps, ties, audit.
    meta : dict
        Facts for the record: solver, version, resolution of scores, arcs.
    """

    status: Status
    pairs: PairArray
    value: float
    bound: float
    gap: float
    submission_prices: FloatArray
    reviewer_prices: FloatArray
    unfilled: IntArray
    below_min: IntArray
    penalty: float = 0.0
    rounds: int = 0
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)


class Solver(Protocol):
    """A way to solve an AssignmentProblem for one objective."""

    def solve(
        self,
        problem: AssignmentProblem,
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution:
        """Solve it. `rng` seeds every choice among equals; `time_limit` is in seconds of wall time."""
        ...
