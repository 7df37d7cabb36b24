"""The two sides of text affinity, submissions and reviewers, and exact similarities of chosen pairs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.scores.documents import ReviewerTexts
from matching.scores.pooling import pool_lse, pool_mean, pool_top
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, Encoded, Group
from matching.vectors.threads import cores

__all__ = ["ReviewerSide", "SubmissionSide", "pooled_pairs", "similarities"]

ROWS_AT_ONCE = 64  # submissions whose words are laid out for fast look-up, a few megabytes
ENTRIES_AT_ONCE = 1 << 20  # numbers gathered at once, 8 MB
DOCUMENTS_AT_ONCE = 1 << 13  # documents compared at once


@dataclass(frozen=True, eq=False)
class SubmissionSide:
    """Submissions as the comparisons see them.

    Attributes
    ----------
    vectors : tuple of ndarray or csr_array of shape (n, dim), one for each comparison of all groups
    known : tuple of ndarray of bool, shape (n,), one for each group
    shifts : ndarray of shape (n_comparisons, n), float64
        The share of the submission's mean over all reviewers that is subtracted.
    """

    vectors: tuple[Any, ...]
    known: tuple[NDArray[np.bool_], ...]
    shifts: FloatArray

    def joined(self, other: SubmissionSide) -> SubmissionSide:
        """These, then those."""
        return SubmissionSide(
            tuple(map(_stacked, self.vectors, other.vectors)),
            tuple(np.concatenate(both) for both in zip(self.known, other.known)),
            np.concatenate([self.shifts, other.shifts], axis=1),
        )


@dataclass(frozen=True, eq=False)
class ReviewerSide:
    """Reviewers' documents as the comparisons see them.

    Attributes
    ----------
    vectors : tuple of ndarray or csr_array of shape (n_documents, dim), one for each comparison of all groups
    offsets : tuple of ndarray of shape (n_documents,), or None, one for each comparison
    members : tuple of ndarray of int64, one for each group
        Documents in which the group finds something, reviewer by reviewer.
    indptr : tuple of ndarray of shape (n_reviewers + 1,), int64, one for each group
        Members of reviewer j: ``indptr[j]:indptr[j + 1]``.
    weights : tuple of ndarray of float64, one for each group
        Of the members.
    """

    vectors: tuple[Any, ...]
    offsets: tuple[FloatArray | None, ...]
    members: tuple[IntArray, ...]
    indptr: tuple[IntArray, ...]
    weights: tuple[FloatArray, ...]

    @classmethod
    def of(cls, texts: ReviewerTexts, encoded: Sequence[Encoded]) -> ReviewerSide:
        """Documents as each group encodes them."""
        members = [np.flatnonzero(entry.known) for entry in encoded]
        ends = [np.concatenate([[0], np.cumsum(entry.known)]).astype(np.int64)[texts.indptr] for entry in encoded]
        return cls(
            tuple(vectors for entry in encoded for vectors in entry.vectors),
            tuple(offset for entry in encoded for offset in entry.offsets),
            tuple(members),
            tuple(ends),
            tuple(_positive(texts.weights[own], indptr) for own, indptr in zip(members, ends)),
        )

    def known(self, group: int) -> NDArray[np.bool_]:
        """Whether the group finds something in any document of a reviewer, bool of shape (n_reviewers,)."""
        return np.diff(self.indptr[group]) > 0

    def alone(self, documents: slice) -> ReviewerSide:
        """Some documents, each as if it were a reviewer's only one."""
        members, ends = [], []
        for own in self.members:
            inside = own[(own >= documents.start) & (own < documents.stop)]
            here = np.zeros(documents.stop - documents.start, dtype=np.int64)
            here[inside - documents.start] = 1
            members.append(inside)
            ends.append(np.concatenate([[0], np.cumsum(here)]).astype(np.int64))
        weights = tuple(np.ones(inside.size) for inside in members)
        return ReviewerSide(self.vectors, self.offsets, tuple(members), tuple(ends), weights)

    def joined(self, other: ReviewerSide) -> ReviewerSide:
        """These, then those."""
        count = self.vectors[0].shape[0] if self.vectors else 0
        return ReviewerSide(
            tuple(map(_stacked, self.vectors, other.vectors)),
            tuple(
                None if own is None or more is None else np.concatenate([own, more])
                for own, more in zip(self.offsets, other.offsets)
            ),
            tuple(np.concatenate([own, more + count]) for own, more in zip(self.members, other.members)),
            tuple(np.concatenate([own, more[1:] + own[-1]]) for own, more in zip(self.indptr, other.indptr)),
            tuple(np.concatenate(both) for both in zip(self.weights, other.weights)),
        )


def _positive(weights: FloatArray, indptr: IntArray) -> FloatArray:
    """The weights, or equal ones for a reviewer whose only weighty documents are unknown to the group."""
    filled = np.flatnonzero(np.diff(indptr))
    nothing = filled[np.maximum.reduceat(weights, indptr[filled]) <= 0] if filled.size else filled
    for at in nothing.tolist():
        weights[indptr[at] : indptr[at + 1]] = 1.0
    return weights


def _stacked(first: Any, second: Any) -> Any:
    if sparse.issparse(first):
        return sparse.csr_array(sparse.vstack([first, second], format="csr"))
    return np.concatenate([first, second])


def _pool(comparison: Comparison, similarities: FloatArray, indptr: IntArray, weights: FloatArray) -> FloatArray:
    line = similarities[None, :]
    if comparison.pooling == "lse":
        pooled = pool_lse(line, indptr, weights, comparison.amount)
    elif comparison.pooling == "top":
        pooled = pool_top(line, indptr, weights, comparison.amount)
    else:
        pooled = pool_mean(line, indptr, weights)
    out: FloatArray = pooled[0]
    return out


def similarities(
    groups: Sequence[Group], left: SubmissionSide, right: ReviewerSide, row: int, documents: slice
) -> list[tuple[Group, Comparison, FloatArray]]:
    """Similarities of one submission with some documents, NaN where a group knows nothing of one of the two."""
    out = []
    chosen = np.arange(documents.start, documents.stop)
    rows = np.full(chosen.size, row)
    at = 0
    for number, group in enumerate(groups):
        known = np.isin(chosen, right.members[number]) & left.known[number][row]
        for comparison in group.comparisons:
            found = np.full(chosen.size, np.nan)
            if known.any():
                found[known] = _products(left.vectors[at], right.vectors[at], rows[known], chosen[known])
                offset = right.offsets[at]
                if offset is not None:
                    found[known] += offset[chosen[known]]
            out.append((group, comparison, found))
            at += 1
    return out


def pooled_pairs(
    groups: Sequence[Group], left: SubmissionSide, right: ReviewerSide, rows: IntArray, cols: IntArray
) -> FloatArray:
    """Pooled similarities of the pairs (rows[i], cols[i]), not centred, in double precision.

    Returns
    -------
    ndarray of shape (n_comparisons, n_pairs), float64
        NaN where a comparison's group does not know the pair.

    Notes
    -----
    Time grows with the pairs' documents: one to two microseconds each, spread over the cores there are.
    """
    out = np.full((len(left.vectors), len(rows)), np.nan)
    order = np.argsort(rows, kind="stable")
    tasks = []
    for number in range(len(groups)):
        wanted = order[left.known[number][rows[order]] & right.known(number)[cols[order]]]
        sizes = np.diff(right.indptr[number])[cols[wanted]]
        tasks += [(number, wanted[part]) for part in _portions(rows[wanted], sizes)]

    def pool(task: tuple[int, IntArray]) -> None:
        number, pairs = task
        first = sum(len(group.comparisons) for group in groups[:number])
        places = slice(first, first + len(groups[number].comparisons))
        out[places, pairs] = _pooled_portion(groups[number], number, left, right, rows[pairs], cols[pairs], places)

    if len(tasks) <= 1:
        for task in tasks:
            pool(task)
        return out
    with ThreadPoolExecutor(cores()) as executor:
        for _ in executor.map(pool, tasks):
            pass
    return out


def _pooled_portion(
    group: Group,
    number: int,
    left: SubmissionSide,
    right: ReviewerSide,
    rows: IntArray,
    cols: IntArray,
    places: slice,
) -> FloatArray:
    """Pooled similarities of pairs that the group knows, one line for each of its comparisons."""
    starts, stops = right.indptr[number][cols], right.indptr[number][cols + 1]
    ends = np.concatenate([[0], np.cumsum(stops - starts)])
    chosen = _runs(starts, stops - starts)
    documents, weights = right.members[number][chosen], right.weights[number][chosen]
    own_rows = np.repeat(rows, stops - starts)
    table: _Table | None = None
    out = np.empty((len(group.comparisons), rows.size))
    for line, (at, comparison) in enumerate(zip(range(places.start, places.stop), group.comparisons)):
        vectors, others, offset = left.vectors[at], right.vectors[at], right.offsets[at]
        if sparse.issparse(others):
            if table is None or not table.fits(vectors, others):
                table = _Table(vectors, others, own_rows, documents)
            found = table.products(vectors, others)
        else:
            found = _products(vectors, others, own_rows, documents)
        if offset is not None:
            found += offset[documents]
        out[line] = _pool(comparison, found, ends, weights)
    return out


def _portions(rows: IntArray, sizes: IntArray) -> Iterator[slice]:
    """Runs of sorted pairs with few submissions and few documents each."""
    if not rows.size:
        return
    # a pair starts a portion where its submission or its documents do not fit into the one before
    nth = np.concatenate([[0], np.cumsum(rows[1:] != rows[:-1])]) // ROWS_AT_ONCE
    load = np.cumsum(sizes) // DOCUMENTS_AT_ONCE
    starts = np.flatnonzero(np.concatenate([[True], (nth[1:] != nth[:-1]) | (load[1:] != load[:-1])]))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), rows.size]):
        yield slice(start, stop)


def _runs(starts: IntArray, lengths: IntArray) -> IntArray:
    """Concatenation of ``arange(start, start + length)``."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - ends + lengths, lengths)


def _products(left: Any, right: Any, rows: IntArray, documents: IntArray) -> FloatArray:
    """Inner products of pairs of vectors, in double precision."""
    if sparse.issparse(right):
        return _Table(left, right, rows, documents).products(left, right)
    out = np.empty(rows.size)
    step = max(1, ENTRIES_AT_ONCE // max(1, right.shape[1]))
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        own = np.asarray(left[rows[part]], dtype=np.float64)
        np.einsum("ij,ij->i", own, right[documents[part]].astype(np.float64, copy=False), out=out[part])
    return out


class _Table:
    """Where in a table of submissions x words each word of some documents is looked up.

    Comparisons that count the same words differently have their numbers in the same places, so the places are
    worked out once.
    """

    def __init__(self, left: Any, right: Any, rows: IntArray, documents: IntArray) -> None:
        self._made_from = left.indices, right.indices
        self._documents = documents
        self._used, place = np.unique(rows, return_inverse=True)
        some = left[self._used]
        words, self._column = np.unique(some.indices, return_inverse=True)
        self._width = words.size + 1  # one column more, of zeros, for the words that no submission here has
        self._line = np.repeat(np.arange(self._used.size), np.diff(some.indptr))
        lookup = np.full(right.shape[1], words.size, dtype=np.int64)
        lookup[words] = np.arange(words.size)
        self._lengths = np.diff(right.indptr)[documents]
        self._entries = lookup.take(right[documents].indices)
        self._entries += np.repeat(place * self._width, self._lengths)

    def fits(self, left: Any, right: Any) -> bool:
        """Whether these have their numbers in the places of those it was made from."""
        return left.indices is self._made_from[0] and right.indices is self._made_from[1]

    def products(self, left: Any, right: Any) -> FloatArray:
        """Inner products of the pairs."""
        table = np.zeros((self._used.size, self._width))
        table[self._line, self._column] = left[self._used].data
        terms = table.ravel().take(self._entries)
        terms *= right[self._documents].data
        if self._lengths.size and self._lengths.all():
            sums: FloatArray = np.add.reduceat(terms, np.cumsum(self._lengths) - self._lengths)
            return sums
        owners = np.repeat(np.arange(self._lengths.size), self._lengths)
        return np.bincount(owners, weights=terms, minlength=self._lengths.size).astype(np.float64, copy=False)
