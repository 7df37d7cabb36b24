"""A problem with one thing changed: more load, fewer bars, new people. The problem given stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound
from matching.constraints.counting import LOAD
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleScores
from matching.pairs import PairSet
from matching.scores.base import ScoreOperator
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Filled", "filled", "more_load", "more_people", "without_bars"]


class Filled(ScoreOperator):
    """Scores in which unknown pairs have the score 0."""

    may_be_unknown = False

    def __init__(self, scores: ScoreOperator) -> None:
        self.scores = scores
        self.shape = scores.shape
        self.tolerance = scores.tolerance

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part: NDArray[np.floating] = np.nan_to_num(self.scores.block(rows, cols))
        return part

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return np.nan_to_num(self.scores.values(rows, cols))


def filled(scores: ScoreOperator) -> ScoreOperator:
    """Unknown pairs as 0; those of another role stay out of the question."""
    if isinstance(scores, RoleScores):
        return RoleScores(Filled(scores.scores), scores.rows)
    return Filled(scores)


class _Wider(ScoreOperator):
    """Scores with columns put on at the right, float64 of shape (n_submissions, k), NaN where not to be used."""

    may_be_unknown = True

    def __init__(self, scores: ScoreOperator, more: FloatArray) -> None:
        self.scores = scores
        self.more = more
        self.shape = (scores.shape[0], scores.shape[1] + more.shape[1])
        self.tolerance = scores.tolerance

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        stored = self.scores.stored
        if stored is None:
            return None
        at = np.argwhere(~np.isnan(self.more))
        rows = np.concatenate([stored[0], at[:, 0]])
        cols = np.concatenate([stored[1], at[:, 1] + self.scores.shape[1]])
        order = np.lexsort((cols, rows))
        return rows[order], cols[order], np.concatenate([stored[2], self.more[at[:, 0], at[:, 1]]])[order]

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        width = self.scores.shape[1]
        old, new = slice(cols.start, min(cols.stop, width)), slice(max(cols.start - width, 0), cols.stop - width)
        if new.stop <= 0:
            return self.scores.block(rows, old)
        if old.stop <= old.start:
            return self.more[rows, new]
        return np.concatenate([self.scores.block(rows, old), self.more[rows, new]], axis=1)

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        new = cols >= self.scores.shape[1]
        out = np.empty(len(rows))
        out[~new] = self.scores.values(rows[~new], cols[~new])
        out[new] = self.more[rows[new], cols[new] - self.scores.shape[1]]
        return out


def more_load(problem: AssignmentProblem, cols: Sequence[int] | IntArray, by: int = 1) -> AssignmentProblem:
    """Each of these people takes `by` more reviews; where submissions weigh differently, `by` more of weight 1."""
    at = np.asarray(cols, dtype=np.int64)
    load_max = problem.load_max.copy()
    rules: list[Bound] = []
    weighted = False
    for rule in problem.rules:
        if rule.name == LOAD and isinstance(rule, GroupBound) and rule.price is None:
            weighted = True
            raised = np.zeros(problem.shape[1])
            raised[at] = by
            rule = replace(rule, upper=rule.upper + rule.reviewers @ raised)
        rules.append(rule)
    # by weight, light submissions may be more than `by`; the bound "load" holds them, so this limit need not
    load_max[at] = np.minimum(load_max[at] + by, problem.shape[0]) if not weighted else problem.shape[0]
    load_max = np.maximum(load_max, problem.load_max)
    load_max.setflags(write=False)
    return replace(problem, load_max=load_max, rules=tuple(rules))


def without_bars(problem: AssignmentProblem, pairs: PairArray) -> AssignmentProblem:
    """These pairs are no longer barred."""
    barred = problem.barred.pairs()
    lifted = PairSet(pairs, problem.shape)
    return replace(problem, barred=PairSet(barred[~lifted.contains(barred[:, 0], barred[:, 1])], problem.shape))


def more_people(
    problem: AssignmentProblem,
    scores: FloatArray,
    load: int = 1,
    classes: Mapping[int, Sequence[int]] = MappingProxyType({}),
) -> AssignmentProblem:
    """New people with `load` reviews each.

    Parameters
    ----------
    scores : ndarray of shape (n_submissions, k), float64
        NaN where a new person may not be assigned.
    classes : mapping of int to sequence of int
        Rule -> the classes of reviewers all of them belong to; of every other class they are no members.
    """
    more = scores.shape[1]
    shape = (problem.shape[0], problem.shape[1] + more)
    rules = tuple(
        _widened(rule, more, classes.get(at, ())) if isinstance(rule, GroupBound) else rule
        for at, rule in enumerate(problem.rules)
    )
    return replace(
        problem,
        scores=_Wider(problem.scores, scores),
        load_max=_joined(problem.load_max, np.full(more, load)),
        load_min=_joined(problem.load_min, np.zeros(more, dtype=np.int64)),
        barred=PairSet(problem.barred.pairs(), shape),
        unwanted=PairSet(problem.unwanted.pairs(), shape),
        rules=rules,
    )


def _widened(rule: GroupBound, more: int, classes: Sequence[int]) -> GroupBound:
    member = np.zeros((rule.shape[1], more))
    member[list(classes)] = 1.0
    return replace(rule, reviewers=sparse.csr_array(sparse.hstack([rule.reviewers, sparse.csr_array(member)])))


def _joined(first: IntArray, second: IntArray) -> IntArray:
    out = np.concatenate([first, second.astype(np.int64)])
    out.setflags(write=False)
    return out
