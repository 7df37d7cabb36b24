"""How solvers state what they found: the gap that is left, and a plan with what proves it as a Solution."""

from __future__ import annotations

from typing import Any

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.pairs import in_row_order
from matching.solvers.base import Proof, Solution, Status, frozen
from matching.solvers.clock import Clock, slack_of
from matching.types import IntArray, PairArray

__all__ = ["bound_and_gap", "stated"]


def bound_and_gap(value: float, bound: float) -> tuple[float, float]:
    """Bound and gap of a value that is to be large: below the rounding of sums the gap is 0 and the bound the value."""
    gap = max(0.0, bound - value)
    return (value, 0.0) if gap <= slack_of(value) else (bound, gap)


def stated(
    problem: AssignmentProblem,
    status: Status,
    pairs: PairArray,
    proofs: tuple[Proof, ...],
    clock: Clock,
    build_seconds: float,
    *,
    rounds: int,
    meta: dict[str, Any],
    unfilled: IntArray | None = None,
    below_min: IntArray | None = None,
    **further: Any,
) -> Solution:
    """A plan with its proofs as a Solution: value, bound and gap are those of the first, prices those of the last.

    Parameters
    ----------
    pairs : ndarray of shape (n, 2), int64
        In any order.
    build_seconds : float
        What the clock showed before the first flow or program.
    unfilled, below_min : ndarray, int64
        None where nothing is missing.
    further
        What else a Solution holds: ``probabilities``, ``mixture``, ``rule_shortfall``.
    """
    first, last = proofs[0], proofs[-1]
    nothing, nobody = (np.zeros(length, dtype=np.int64) for length in problem.shape)
    return Solution(
        status=status,
        pairs=frozen(in_row_order(pairs)),
        value=first.value,
        bound=first.bound,
        gap=first.gap,
        submission_prices=last.submission_prices,
        reviewer_prices=last.reviewer_prices,
        unfilled=frozen(nothing if unfilled is None else unfilled),
        below_min=frozen(nobody if below_min is None else below_min),
        penalty=first.penalty,
        rounds=rounds,
        build_seconds=build_seconds,
        solve_seconds=clock.seconds - build_seconds,
        stages=dict(clock.stages),
        meta=meta,
        proofs=proofs,
        **further,
    )
