"""Pooled similarities of all reviewers, some submissions at a time: the fast way, for filling whole matrices.

A product of sparse vectors is split by words: those that many texts have go into a dense product, which a
processor does thirty times as fast a number, and the rest is added submission by submission from lists of the
documents that have a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.scores.pooling import pool_top
from matching.scores.sides import ReviewerSide, SubmissionSide
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, Group

__all__ = ["Sweep"]

Block = NDArray[np.floating]

DOCUMENTS = 4096  # pooled at once: with a block of 64 submissions 1 to 2 MB, about a core's share of fast memory
DENSE_FROM = 0.01  # share of pairs that have a word in common from which a dense product is cheaper, single precision
DENSE_ENTRIES = 1 << 27  # most numbers in a dense part, 512 MB in single precision
SAFE = {np.dtype(np.float32): 60.0, np.dtype(np.float64): 500.0}  # exponents whose sums stay far inside the range


class Sweep:
    """What a sweep needs, laid out once.

    Parameters
    ----------
    groups : sequence of Group
    left : SubmissionSide
    right : ReviewerSide
    order : ndarray of shape (n_reviewers,), int64
        Reviewers in the order in which they are computed.
    dtype : dtype
        float32 or float64.

    Attributes
    ----------
    columns : list of ndarray of int64, one for each group
        Reviewers the group knows, as places in `order`, ascending.
    """

    def __init__(
        self, groups: Sequence[Group], left: SubmissionSide, right: ReviewerSide, order: IntArray, dtype: Any
    ) -> None:
        self.columns: list[IntArray] = []
        self._parts: list[list[_Part]] = []
        at = 0
        for number, group in enumerate(groups):
            lengths = np.diff(right.indptr[number])[order]
            columns = np.flatnonzero(lengths)
            starts = right.indptr[number][order[columns]]
            lengths = lengths[columns]
            ends = np.cumsum(lengths)
            places = np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - ends + lengths, lengths)
            profile = _Profiles(
                right.members[number][places],
                _shares(right.weights[number][places], lengths),
                np.concatenate([[0], ends]).astype(np.int64),
            )
            self.columns.append(columns)
            parts = []
            for comparison in group.comparisons:
                vectors, offset = right.vectors[at], right.offsets[at]
                parts.append(_Part(comparison, left.vectors[at], vectors, offset, profile, np.dtype(dtype)))
                at += 1
            self._parts.append(parts)

    def pooled(self, rows: IntArray) -> list[list[Block]]:
        """Pooled similarities of some submissions, not centred.

        Returns
        -------
        list, one entry for each group, of lists of ndarray of shape (n_rows, n_known_reviewers)
            One for each comparison; columns as `columns` says.
        """
        return [[part.pooled(rows) for part in parts] for parts in self._parts]


class _Profiles:
    """Documents reviewer by reviewer, with shares that sum to 1."""

    def __init__(self, members: IntArray, shares: FloatArray, indptr: IntArray) -> None:
        self.members, self.shares, self.indptr = members, shares, indptr


def _shares(weights: FloatArray, lengths: IntArray) -> FloatArray:
    if not lengths.size:
        return weights
    starts = np.cumsum(lengths) - lengths
    # by the largest first, so that tiny weights (very old publications) do not vanish in the division
    scaled = weights / np.repeat(np.maximum.reduceat(weights, starts), lengths)
    shares: FloatArray = scaled / np.repeat(np.add.reduceat(scaled, starts), lengths)
    return shares


class _Part:
    """One comparison, laid out."""

    def __init__(
        self,
        comparison: Comparison,
        left: Any,
        right: Any,
        offset: FloatArray | None,
        profiles: _Profiles,
        dtype: np.dtype[Any],
    ) -> None:
        self._comparison, self._dtype, self._profiles = comparison, dtype, profiles
        members, indptr = profiles.members, profiles.indptr
        addend = np.zeros(members.size) if offset is None else offset[members].astype(np.float64)
        scale = 1.0
        if comparison.pooling == "mean":
            # the mean of inner products is the inner product with the mean: one vector a reviewer is enough
            mean = sparse.csr_array((profiles.shares, members, indptr), shape=(indptr.size - 1, right.shape[0]))
            right = mean @ right
            addend = np.add.reduceat(profiles.shares * addend, indptr[:-1]) if members.size else addend
        else:
            right = right[members]
            if comparison.pooling == "lse":
                scale = 1.0 / comparison.amount
                with np.errstate(divide="ignore"):
                    addend = scale * addend + np.log(profiles.shares)
        self._addend: Block | None = addend.astype(dtype) if addend.any() else None
        self._product: _Dense | _Split = (
            _Split(left, right, scale, dtype) if sparse.issparse(right) else _Dense(left, right, scale, dtype)
        )
        ends = np.arange(indptr.size) if comparison.pooling == "mean" else indptr
        # cut between reviewers, so that each is pooled whole
        cuts = np.searchsorted(ends, np.arange(DOCUMENTS, ends[-1], DOCUMENTS), side="left")
        bounds = np.unique(np.concatenate([[0], cuts, [ends.size - 1]]))
        self._pieces = [
            (slice(first, last), slice(int(ends[first]), int(ends[last])))
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist())
        ]

    def pooled(self, rows: IntArray) -> Block:
        out = np.empty((rows.size, self._profiles.indptr.size - 1), dtype=self._dtype)
        block = self._product.of(rows)
        for reviewers, documents in self._pieces:
            piece = block(documents)
            if self._addend is not None:
                piece += self._addend[documents]
            out[:, reviewers] = self._pool(piece, reviewers, documents)
        return out

    def _pool(self, piece: Block, reviewers: slice, documents: slice) -> Block:
        if self._comparison.pooling == "mean":
            return piece
        indptr = self._profiles.indptr[reviewers.start : reviewers.stop + 1] - documents.start
        if self._comparison.pooling == "top":
            shares = self._profiles.shares[documents]
            return pool_top(piece.astype(np.float64), indptr, shares, self._comparison.amount)
        starts, safe = indptr[:-1], SAFE[self._dtype]
        best: Block | None = None
        if not (-safe < piece.min() and piece.max() < safe):
            # relative to each reviewer's best, so exp neither overflows nor leaves only zeros
            best = np.maximum.reduceat(piece, starts, axis=1)
            piece -= np.repeat(best, np.diff(indptr), axis=1)
        np.exp(piece, out=piece)
        sums = np.add.reduceat(piece, starts, axis=1)
        np.log(sums, out=sums)
        if best is not None:
            sums += best
        sums *= self._dtype.type(self._comparison.amount)
        return sums


class _Dense:
    """Products of dense vectors."""

    def __init__(self, left: Any, right: Any, scale: float, dtype: np.dtype[Any]) -> None:
        self._left = np.asarray(left * scale, dtype=dtype)
        self._right = np.ascontiguousarray(right, dtype=dtype)

    def of(self, rows: IntArray) -> Any:
        """Products of these rows, as a function of a slice of documents."""
        left = self._left[rows]
        return lambda documents: left @ self._right[documents].T


class _Split:
    """Products of sparse vectors: common words densely, the others through lists of who has them."""

    def __init__(self, left: Any, right: Any, scale: float, dtype: np.dtype[Any]) -> None:
        right = sparse.csr_array(right)
        n_words, n_documents = right.shape[1], right.shape[0]
        met = np.bincount(left.indices, minlength=n_words) / max(1, left.shape[0])
        met *= np.bincount(right.indices, minlength=n_words) / max(1, n_documents)
        most = max(1, DENSE_ENTRIES // max(1, n_documents))
        common = np.argsort(-met, kind="stable")[:most]
        common = np.sort(common[met[common] > DENSE_FROM * dtype.itemsize / 4])
        place = np.full(n_words, -1, dtype=np.int64)
        place[common] = np.arange(common.size)
        self._left, of_rare = _parted(left, place, common.size, scale, dtype)
        self._right, rare = _parted(right, place, common.size, 1.0, dtype)
        self._of_rare, self._rare = of_rare, rare.tocsc()

    def of(self, rows: IntArray) -> Any:
        """Products of these rows, as a function of a slice of documents."""
        left = self._left[rows]
        rare = np.empty((rows.size, self._rare.shape[0]), dtype=left.dtype)
        for line, row in enumerate(rows.tolist()):
            stored = slice(self._of_rare.indptr[row], self._of_rare.indptr[row + 1])
            rare[line] = self._rare[:, self._of_rare.indices[stored]] @ self._of_rare.data[stored]

        def block(documents: slice) -> Block:
            out = left @ self._right[documents].T
            out += rare[:, documents]
            return out

        return block


def _parted(
    matrix: sparse.csr_array, place: IntArray, n_common: int, scale: float, dtype: np.dtype[Any]
) -> tuple[Block, sparse.csr_array]:
    """Columns that have a place, dense and in that order, and a sparse matrix of the others."""
    at = place[matrix.indices]
    inside = at >= 0
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    data = (matrix.data * scale).astype(dtype)
    dense = np.zeros((matrix.shape[0], n_common), dtype=dtype)
    dense[rows[inside], at[inside]] = data[inside]
    outside = ~inside
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[outside], minlength=matrix.shape[0]))])
    rest = sparse.csr_array(
        (data[outside], matrix.indices[outside].astype(np.int32), ends.astype(np.int32)), shape=matrix.shape
    )
    return dense, rest
