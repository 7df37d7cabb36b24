"""Caps that leave no full lottery: whose they are, and when they are no more than rounded down."""

from __future__ import annotations

import numpy as np

from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError, Issue
from matching.solvers.state import State
from matching.types import IntArray

__all__ = ["TINY", "cap_sums", "rounded_down"]

TINY = 1e-5  # caps short by less than this many reviews in all are a slip of rounding, not a wish
LISTED = 20  # submissions spelled out whose caps do not suffice


def rounded_down(lacking: float) -> InvalidParamsError:
    """The error for caps that are short by a slip of rounding."""
    reason = f"the caps allow {lacking:.1g} reviews too few in all; they seem rounded down: round them up"
    return InvalidParamsError(issues=[Issue(reason, "out-of-range", "cap", source="params")])


def cap_sums(problem: AssignmentProblem, state: State, cap: PairNumbers, rows: IntArray) -> list[dict[str, float]]:
    """For submissions (at most LISTED): what the caps of their lawful reviewers add up to, and what they need."""
    shut = problem.barred.union(problem.locked)
    held = np.bincount(problem.locked[:, 0], minlength=problem.shape[0])
    out = []
    for row in rows[:LISTED].tolist():
        everyone = np.arange(problem.shape[1], dtype=np.int64)
        line = np.full(everyone.size, row, dtype=np.int64)
        lawful = ~shut.contains(line, everyone) & (state.load_max > 0)
        lawful &= ~np.isnan(problem.scores.values(line, everyone))
        caps = float(cap(line[lawful], everyone[lawful]).sum())
        out.append({"submission": row, "caps": caps + float(held[row]), "demand": int(problem.demand[row])})
    return out
