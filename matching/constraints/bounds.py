"""Rules as linear constraints over pairs, in rows and columns. Solvers, audit and diagnosis read these.

Three kinds cover every rule a chair can write (`matching.constraints.rules` compiles them): counts over a class
of submissions times a class of reviewers, counts over listed pairs, and submissions that share reviewers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from matching.errors import InvalidProblemError
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["NO_UPPER", "Bound", "GroupBound", "PairLimit", "SharedReviewers"]

NO_UPPER = 1 << 31
"""An upper bound that never binds."""


@dataclass(frozen=True, eq=False)
class GroupBound:
    """For every class a of submissions and b of reviewers: ``lower <= sum of weights of pairs in a x b <= upper``.

    "At most one per institution on each submission" has one submission a class and one institution a class;
    "at most two submissions of a track for each reviewer" has tracks on the one side and one reviewer a class on
    the other; load weights (a short paper counts half) are one class of all submissions, weighted, against single
    reviewers.

    Attributes
    ----------
    name : str
        As the chair knows the rule.
    submissions : scipy.sparse.csr_array of shape (n_a, n_submissions), float64
        Row a holds the weight of each of its submissions, > 0 where stored.
    reviewers : scipy.sparse.csr_array of shape (n_b, n_reviewers), float64
        Row b holds 1 for each of its reviewers.
    lower, upper : ndarray of shape (n_a, n_b), float64
        Read-only broadcast views where all are alike; `NO_UPPER` for none, 0 for no lower one.
    price : float or None
        None: hard. Else what one unit of excess or shortfall costs, in units of score, > 0.
    submission_labels, reviewer_labels : tuple of str
        Words for the classes, of length n_a and n_b.
    """

    name: str
    submissions: sparse.csr_array
    reviewers: sparse.csr_array
    lower: FloatArray
    upper: FloatArray
    price: float | None = None
    submission_labels: tuple[str, ...] = ()
    reviewer_labels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        submissions: sparse.sparray | ArrayLike,
        reviewers: sparse.sparray | ArrayLike,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = NO_UPPER,
        price: float | None = None,
        submission_labels: Sequence[str] = (),
        reviewer_labels: Sequence[str] = (),
    ) -> GroupBound:
        """Converts, broadcasts and labels.

        Raises
        ------
        InvalidProblemError
            lower above upper, negative or not finite numbers, a price not above 0.
        """
        left = _classes(submissions, name)
        right = _classes(reviewers, name)
        shape = (left.shape[0], right.shape[0])
        # judged as given: thirty thousand submissions times as many classes are views, never arrays
        low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if not (np.isfinite(low).all() and np.isfinite(high).all()) or low.min(initial=0.0) < 0:
            raise InvalidProblemError(f"rule {name}: bounds must be finite and not negative")
        if low.max(initial=0.0) > high.min(initial=np.inf) and (low > high).any():
            raise InvalidProblemError(f"rule {name}: a lower bound is above its upper bound")
        low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
        if price is not None and not (np.isfinite(price) and price > 0):
            raise InvalidProblemError(f"rule {name}: a price must be a finite number above 0, got {price}")
        return cls(
            name, left, right, low, high, price,
            tuple(submission_labels) or tuple(map(str, range(shape[0]))),
            tuple(reviewer_labels) or tuple(map(str, range(shape[1]))),
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_a, n_b)``: constraints are numbered a * n_b + b."""
        return self.submissions.shape[0], self.reviewers.shape[0]

    def counts(self, taken: sparse.sparray) -> sparse.csr_array:
        """Weighted pairs in each class pair, shape (n_a, n_b), for `taken` of shape (n_submissions, n_reviewers)."""
        return sparse.csr_array(self.submissions @ sparse.csr_array(taken) @ self.reviewers.T)


@dataclass(frozen=True, eq=False)
class PairLimit:
    """For every k: at most ``upper[k]`` of the listed pairs are assigned (review cycles, pairs that exclude others).

    Attributes
    ----------
    name : str
    which : ndarray of shape (m,), int64
        The constraint each entry of `pairs` belongs to, in [0, n_k).
    pairs : ndarray of shape (m, 2), int64
    upper : ndarray of shape (n_k,), int64
    price : float or None
        As in GroupBound.
    labels : tuple of str, length n_k
    """

    name: str
    which: IntArray
    pairs: PairArray
    upper: IntArray
    price: float | None = None
    labels: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int]:
        """``(n_k,)``."""
        return (len(self.upper),)

    def counts(self, taken: sparse.sparray) -> IntArray:
        """Assigned pairs of each constraint, int64 of shape (n_k,)."""
        held = sparse.csr_array(taken)
        value = np.asarray(held[self.pairs[:, 0], self.pairs[:, 1]]).ravel() if len(self.pairs) else np.empty(0)
        return np.bincount(self.which, weights=value, minlength=len(self.upper)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SharedReviewers:
    """For every k: submissions ``pairs[k]`` have at least ``least[k]`` reviewers in common.

    Attributes
    ----------
    name : str
    pairs : ndarray of shape (n_k, 2), int64
        Two submission rows each.
    least : ndarray of shape (n_k,), int64
    price : float or None
        As in GroupBound.
    labels : tuple of str, length n_k
    """

    name: str
    pairs: IntArray
    least: IntArray
    price: float | None = None
    labels: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int]:
        """``(n_k,)``."""
        return (len(self.least),)

    def counts(self, taken: sparse.sparray) -> IntArray:
        """Reviewers in common, int64 of shape (n_k,)."""
        held = sparse.csr_array(taken)
        both = held[self.pairs[:, 0]].multiply(held[self.pairs[:, 1]])
        return np.asarray(both.sum(axis=1)).ravel().astype(np.int64)


Bound: TypeAlias = GroupBound | PairLimit | SharedReviewers
"""Any compiled rule."""


def _classes(table: sparse.sparray | ArrayLike, name: str) -> sparse.csr_array:
    classes = sparse.csr_array(table, dtype=np.float64, copy=True)
    classes.sum_duplicates()
    classes.eliminate_zeros()
    if classes.ndim != 2 or not np.isfinite(classes.data).all() or classes.data.min(initial=1.0) <= 0:
        raise InvalidProblemError(f"rule {name}: classes must be a matrix of weights above 0")
    return classes
