"""The assignment problem as the solvers and the audit see it: rows, columns, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from matching.constraints.bounds import Bound, GroupBound, PairLimit
from matching.errors import InvalidProblemError, Issue
from matching.pairs import PairSet
from matching.scores.base import ScoreOperator, as_operator
from matching.types import IntArray, PairArray

__all__ = ["AssignmentProblem"]

MOST = 1 << 31  # no load or demand in the field comes near; keeps every sum inside int64


def _counts(value: ArrayLike, length: int, name: str) -> IntArray:
    """A whole number or one for each record, as int64 of shape (length,), not negative."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidProblemError(f"{name} is a masked array; fill it", [Issue("must not be masked", "masked", name)])
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        array = np.asarray(None)
    if isinstance(value, list | tuple) and any(isinstance(entry, bool | np.bool_) for entry in value):
        array = np.asarray(value, dtype=bool)  # true is not 1: refused below by its type
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = array.astype(np.int64) if np.abs(array).max(initial=0) < MOST else array
    if array.dtype.kind not in "iu":
        raise InvalidProblemError(
            f"{name} must hold whole numbers, got {array.dtype}",
            [Issue("must hold whole numbers", "not-integer", name)],
        )
    if array.ndim == 0:
        array = np.full(length, array[()])
    if array.shape != (length,):
        raise InvalidProblemError(
            f"{name} must be one number or have shape ({length},), got {array.shape}",
            [Issue(f"must have shape ({length},), got {array.shape}", "wrong-shape", name)],
        )
    bad = np.flatnonzero((array < 0) | (array >= MOST))
    if bad.size:
        raise InvalidProblemError(
            issues=[
                Issue(
                    f"must be between 0 and {MOST - 1}, got {array[row]}",
                    "out-of-range",
                    name,
                    int(row),
                    int(array[row]),
                )
                for row in bad
            ]
        )
    out = array.astype(np.int64)
    out.setflags(write=False)
    return out


@dataclass(frozen=True, eq=False)
class AssignmentProblem:
    """Choose pairs of maximal total score under demand, loads, bars and locks. Build it with `AssignmentProblem.of`.

    Attributes
    ----------
    scores : ScoreOperator
        Shape ``(n_submissions, n_reviewers)``; a pair whose score is NaN is not used.
    demand : ndarray of shape (n_submissions,), int64
        Reviews each submission needs, exactly.
    load_max, load_min : ndarray of shape (n_reviewers,), int64
        Most and fewest reviews each reviewer carries; hard bounds.
    barred : PairSet
        Pairs that must not be assigned.
    locked : ndarray of shape (n, 2), int64
        Pairs that must be assigned; they count toward demand and load.
    rules : tuple of Bound
        Constraints beyond demand and loads (`matching.constraints.bounds`); they count locked pairs too.
    unwanted : PairSet
        Pairs the reviewer has said no to, empty for none; among equal plans they are spread over people.
    """

    scores: ScoreOperator
    demand: IntArray
    load_max: IntArray
    load_min: IntArray
    barred: PairSet
    locked: PairArray
    rules: tuple[Bound, ...]
    unwanted: PairSet

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_submissions, n_reviewers)``."""
        return self.scores.shape

    @classmethod
    def of(
        cls,
        scores: ArrayLike | ScoreOperator,
        *,
        demand: ArrayLike,
        load_max: ArrayLike,
        load_min: ArrayLike | None = None,
        conflicts: ArrayLike | PairSet | None = None,
        locks: ArrayLike | None = None,
        rules: Sequence[Bound] = (),
        unwanted: ArrayLike | PairSet | None = None,
    ) -> AssignmentProblem:
        """Check, convert and copy everything; `matching.assign` documents the arguments.

        Raises
        ------
        InvalidScoresError, InvalidProblemError
            Every contradiction found is listed: a lock on a conflict, more locks than demand or load,
            load_min above load_max, shapes, ranges.
        """
        operator = as_operator(scores)
        n_submissions, n_reviewers = operator.shape
        wanted = _counts(demand, n_submissions, "demand")
        most = _counts(load_max, n_reviewers, "load_max")
        least = _counts(0 if load_min is None else load_min, n_reviewers, "load_min")
        barred = conflicts if isinstance(conflicts, PairSet) else PairSet(conflicts, operator.shape, "conflicts")
        if barred.shape != operator.shape:
            raise InvalidProblemError(f"conflicts have shape {barred.shape}, scores {operator.shape}")
        locked = PairSet(locks, operator.shape, "locks").pairs()
        locked.setflags(write=False)
        issues = [
            Issue(
                f"load_min {least[row]} is above load_max {most[row]}",
                "contradiction",
                "load_min",
                int(row),
                int(least[row]),
            )
            for row in np.flatnonzero(least > most)
        ]
        clash = barred.contains(locked[:, 0], locked[:, 1])
        issues += [
            Issue(
                f"submission {row}, reviewer {col} is locked and in conflict; a conflict is never lifted by a lock",
                "locked-conflict",
                source="locks",
                value=[row, col],
            )
            for row, col in locked[clash].tolist()
        ]
        for axis, limit, what, name in ((0, wanted, "submission", "demand"), (1, most, "reviewer", "load_max")):
            held = np.bincount(locked[:, axis], minlength=operator.shape[axis])
            issues += [
                Issue(
                    f"{what} {row} holds {held[row]} locked reviews, its {name} is {limit[row]}",
                    "too-many-locks",
                    name,
                    int(row),
                    int(held[row]),
                    "locks",
                )
                for row in np.flatnonzero(held > limit)
            ]
        for rule in rules:
            inner = (
                (rule.submissions.shape[1], rule.reviewers.shape[1]) if isinstance(rule, GroupBound) else operator.shape
            )
            limit = np.array(operator.shape if isinstance(rule, PairLimit) else operator.shape[:1])
            outside = not isinstance(rule, GroupBound) and bool(((rule.pairs < 0) | (rule.pairs >= limit)).any())
            if inner != operator.shape or outside:
                issues.append(
                    Issue(f"rule {rule.name} speaks of other submissions or reviewers than the scores have",
                          "wrong-shape", "rules")
                )  # fmt: skip
        if issues:
            raise InvalidProblemError(issues=issues)
        tired = unwanted if isinstance(unwanted, PairSet) else PairSet(unwanted, operator.shape, "unwanted")
        return cls(operator, wanted, most, least, barred, locked, tuple(rules), tired)
