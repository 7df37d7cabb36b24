"""What a plan gives, counted from its pairs alone: loads, sums, and by how much each rule is missed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit, SharedReviewers
from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Facts", "Missed", "compact", "entries", "facts_of", "lower_cells", "missed_by"]

COUNTING = 1e-9  # relative rounding of weighted counts: three times a weight of 0.1 is not 0.3 in floats
CELLS = 1 << 21  # classes of a group bound looked at together


@dataclass(frozen=True, eq=False)
class Missed:
    """By how much one rule is missed.

    Attributes
    ----------
    units : scipy.sparse.csr_array of shape (n_a, n_b) for a GroupBound, else ndarray of shape (n_k,), float64
        Positive above an upper bound, negative below a lower one.
    forced : like `units`
        Units above upper bounds that the locked pairs alone exceed; every plan has at least these.
    chosen : float
        Units above upper bounds beyond those; nothing forces them.
    """

    units: Any
    forced: Any
    chosen: float

    @property
    def values(self) -> FloatArray:
        """The units that are not 0, in no particular order."""
        data = self.units.data if sparse.issparse(self.units) else self.units
        return np.asarray(data, dtype=np.float64)

    @property
    def total(self) -> float:
        """Units above and below."""
        return float(np.abs(self.values).sum())

    @property
    def below(self) -> float:
        """Units below lower bounds."""
        return float(np.maximum(-self.values, 0.0).sum())


@dataclass(frozen=True, eq=False)
class Facts:
    """The plan in numbers.

    Attributes
    ----------
    chosen : PairSet
    score : ndarray of shape (n,), float64
        Of each pair, NaN where unknown.
    sums : ndarray of shape (n_submissions,), float64
        Scores by submission; unknown ones, which only a locked pair may have, count 0.
    received, carried : ndarray of shape (n_submissions,) and (n_reviewers,), int64
    short : ndarray of shape (n_reviewers,), int64
        Reviews missing to load_min.
    missed : tuple of Missed
        One for each rule of the problem.
    """

    chosen: PairSet
    score: FloatArray
    sums: FloatArray
    received: IntArray
    carried: IntArray
    short: IntArray
    missed: tuple[Missed, ...]

    def rule_missing(self, rules: tuple[Bound, ...]) -> float:
        """Units by which hard rules are missed."""
        return sum((miss.total for rule, miss in zip(rules, self.missed, strict=True) if rule.price is None), 0.0)

    def cost(self, rules: tuple[Bound, ...]) -> float:
        """What the priced rules that are missed cost, in units of score."""
        return sum(
            (rule.price * miss.total for rule, miss in zip(rules, self.missed, strict=True) if rule.price is not None),
            0.0,
        )


def facts_of(problem: AssignmentProblem, pairs: PairArray) -> Facts:
    """Count everything. `pairs` lie inside the problem."""
    n_submissions, n_reviewers = problem.shape
    score = problem.scores.values(pairs[:, 0], pairs[:, 1])
    carried = np.bincount(pairs[:, 1], minlength=n_reviewers).astype(np.int64)
    taken = _matrix(pairs, problem.shape) if problem.rules else None
    held = _matrix(problem.locked, problem.shape) if problem.rules else None
    return Facts(
        PairSet(pairs, problem.shape),
        score,
        np.asarray(np.bincount(pairs[:, 0], weights=np.nan_to_num(score), minlength=n_submissions), dtype=np.float64),
        np.bincount(pairs[:, 0], minlength=n_submissions).astype(np.int64),
        carried,
        np.maximum(problem.load_min - carried, 0),
        tuple(missed_by(rule, taken, held) for rule in problem.rules),
    )


def _matrix(pairs: PairArray, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=shape)


def missed_by(rule: Bound, taken: sparse.csr_array, held: sparse.csr_array) -> Missed:
    """By how much a rule is missed by the pairs `taken`, of which `held` are locked; both of the problem's shape.

    `taken` may hold shares of pairs. What they miss is then what weak duality counts: less than the plans of a lottery
    with these shares may miss on average.
    """
    if isinstance(rule, GroupBound):
        return _group_missed(rule, taken, held)
    if isinstance(rule, PairLimit):
        above, forced = _over(_listed(rule, taken), rule.upper), _over(_listed(rule, held), rule.upper)
        return Missed(above, forced, float(np.maximum(above - forced, 0.0).sum()))
    if isinstance(rule, SharedReviewers):
        both = taken[rule.pairs[:, 0]].minimum(taken[rule.pairs[:, 1]])
        common = np.asarray(both.sum(axis=1), dtype=np.float64).ravel()
        return Missed(-_over(rule.least, common), np.zeros(rule.shape), 0.0)
    raise TypeError(f"{type(rule).__name__} is no kind of rule")


def _listed(rule: PairLimit, taken: sparse.csr_array) -> FloatArray:
    """Assigned pairs, or shares, of each constraint."""
    share = entries(taken, rule.pairs[:, 0], rule.pairs[:, 1])
    return np.bincount(rule.which, weights=share, minlength=len(rule.upper)).astype(np.float64)


def _group_missed(rule: GroupBound, taken: sparse.csr_array, held: sparse.csr_array) -> Missed:
    count = rule.counts(taken)
    count.sum_duplicates()
    where = sparse.coo_array(count)
    a, b = where.coords
    above = _over(where.data, rule.upper[a, b])
    rows, cols, units = [a[above > 0]], [b[above > 0]], [above[above > 0]]
    for below_a, below_b, lower in lower_cells(rule):
        short = _over(lower, entries(count, below_a, below_b))
        found = short > 0
        rows.append(below_a[found])
        cols.append(below_b[found])
        units.append(-short[found])
    shape = rule.shape
    table = sparse.csr_array((np.concatenate(units), (np.concatenate(rows), np.concatenate(cols))), shape=shape)
    locked = sparse.coo_array(rule.counts(held))
    forced = sparse.csr_array((_over(locked.data, rule.upper[locked.coords]), locked.coords), shape=shape)
    beyond = above - entries(forced, a, b)
    return Missed(table, forced, float(_over(beyond, np.zeros(beyond.size)).sum()))


def entries(table: sparse.csr_array, rows: IntArray, cols: IntArray) -> FloatArray:
    """The entries at (rows[i], cols[i]), float64 of shape (n,); scipy answers no places with a sparse array."""
    if not len(rows):
        return np.empty(0)
    return np.asarray(table[rows, cols], dtype=np.float64).ravel()


def _over(count: NDArray[Any], limit: NDArray[Any]) -> FloatArray:
    """``count - limit`` where that is above the rounding of weights, else 0."""
    excess = np.asarray(count - limit, dtype=np.float64)
    excess[excess <= COUNTING * np.maximum(1.0, np.abs(limit))] = 0.0
    return excess


def lower_cells(rule: GroupBound) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """(a, b, lower) of the classes with a lower bound above 0, a block at a time; bounds may be broadcast views."""
    n_a, n_b = rule.shape
    if not n_a or not n_b or not compact(rule.lower).max() > 0:
        return
    step = max(1, CELLS // n_b)
    for top in range(0, n_a, step):
        part = rule.lower[top : top + step]
        a, b = np.nonzero(part > 0)
        yield a.astype(np.int64) + top, b.astype(np.int64), np.asarray(part[a, b], dtype=np.float64)


def compact(view: FloatArray) -> FloatArray:
    """The different entries of a broadcast view."""
    return view[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.strides)]
