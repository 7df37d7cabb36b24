"""Prices of the classes that pairs lie in, as two thin factors for each rule: what blocks and single pairs pay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import GroupBound
from matching.scores.priced import SINGLE_TOLERANCE, Priced
from matching.types import FloatArray, IntArray

__all__ = ["ClassPrices", "WithClasses"]

DENSE_CLASSES = 32  # up to so many priced classes a dense product is faster than looking up what is priced
CHUNK = 1 << 18  # single pairs looked up together


class ClassPrices:
    """The sum over rules of the price of the classes a pair lies in.

    Parameters
    ----------
    groups : sequence of (GroupBound, scipy.sparse array of shape (n_a, n_b))
        Signed prices of the classes; positive ones make their pairs dearer.
    """

    def __init__(self, groups: Sequence[tuple[GroupBound, sparse.sparray]]) -> None:
        self._factors = [_factors(bound, sparse.csr_array(price)) for bound, price in groups if price.nnz]
        few, self._many = [], []
        for left, right in self._factors:
            used = np.flatnonzero(np.bincount(left.indices, minlength=left.shape[1]))
            if used.size <= DENSE_CLASSES:
                few.append((left.tocsc()[:, used].toarray(), right.tocsr()[used].toarray()))
            else:
                self._many.append((left, right))
        self._few = _stacked(few)
        self.reach = 0.0
        for left, right in self._factors:
            member = float(np.abs(right.data).max(initial=0.0))
            self.reach += member * float(np.asarray(abs(left).sum(axis=1)).max(initial=0.0))

    def __bool__(self) -> bool:
        return bool(self._factors)

    def take_off(self, out: NDArray[np.floating], rows: slice, cols: slice) -> None:
        """Subtract the prices of a block, in place."""
        if self._few is not None:
            left, right = self._few
            out -= left[rows].astype(out.dtype, copy=False) @ right[:, cols].astype(out.dtype, copy=False)
        for of_rows, of_cols in self._many:
            price = sparse.coo_array(of_rows[rows] @ of_cols[:, cols])
            out[price.coords] -= price.data.astype(out.dtype, copy=False)

    def paid(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """The price of single pairs, float64 of shape (n,)."""
        out = np.zeros(len(rows))
        for left, right in self._factors:
            for start in range(0, len(rows), CHUNK):
                part = slice(start, start + CHUNK)
                price = left[rows[part]].multiply(right[:, cols[part]].T.tocsr())
                out[part] += np.asarray(price.sum(axis=1)).ravel()
        return out


class WithClasses:
    """Scores less the prices of lines, less the prices of classes too."""

    def __init__(self, inner: Priced, classes: ClassPrices) -> None:
        self._inner, self._classes = inner, classes
        self.tolerance = inner.tolerance + SINGLE_TOLERANCE * classes.reach

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        out = self._inner.block(rows, cols)
        self._classes.take_off(out, rows, cols)
        return out


def _factors(bound: GroupBound, price: sparse.csr_array) -> tuple[sparse.csr_array, sparse.csc_array]:
    """(n_submissions, k) and (k, n_reviewers), with the prices on the side that has more classes."""
    if bound.shape[0] < bound.shape[1]:
        return sparse.csr_array(bound.submissions.T), sparse.csc_array(price @ bound.reviewers)
    return sparse.csr_array(bound.submissions.T @ price), sparse.csc_array(bound.reviewers)


def _stacked(few: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray] | None:
    """All dense factors as one pair; None for none."""
    if not few:
        return None
    return np.hstack([left for left, _ in few]), np.vstack([right for _, right in few])
