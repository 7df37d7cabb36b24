"""Several documents -> one reviewer: the mean, a soft maximum, the mean of the best few.

Every function takes similarities of shape (n_rows, n_documents) whose columns are sorted by reviewer, and
`indptr` of shape (n_reviewers + 1,): the documents of reviewer j are ``indptr[j]:indptr[j + 1]``. Weights
say how much a document counts; only their ratios within a reviewer matter. A reviewer without documents
gets NaN: nothing is known, which is not 0.
"""

from __future__ import annotations

import numpy as np

from matching.types import FloatArray, IntArray

__all__ = ["pool_lse", "pool_mean", "pool_top"]


def _segments(indptr: IntArray, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Reviewers with documents, their first documents, and weights that sum to 1 for each of them."""
    filled = np.flatnonzero(np.diff(indptr) > 0)
    starts = indptr[filled]  # of filled segments only: reduceat gives an element, not 0, for an empty one
    if not filled.size:
        return filled, starts, np.empty(0)
    # by the largest first, so that tiny weights (very old publications) do not vanish in the division
    largest = np.maximum.reduceat(weights, starts)
    scaled = weights / np.repeat(largest, np.diff(indptr)[filled])
    totals = np.add.reduceat(scaled, starts)
    return filled, starts, scaled / np.repeat(totals, np.diff(indptr)[filled])


def _empty(similarities: FloatArray, indptr: IntArray) -> FloatArray:
    return np.full((similarities.shape[0], indptr.size - 1), np.nan)


def pool_mean(similarities: FloatArray, indptr: IntArray, weights: FloatArray) -> FloatArray:
    """Weighted mean over each reviewer's documents.

    Parameters
    ----------
    similarities : ndarray of shape (n_rows, n_documents), float64
    indptr : ndarray of shape (n_reviewers + 1,), int64
    weights : ndarray of shape (n_documents,), float64
        (0, inf).

    Returns
    -------
    ndarray of shape (n_rows, n_reviewers), float64
        NaN for a reviewer without documents.
    """
    out = _empty(similarities, indptr)
    filled, starts, shares = _segments(indptr, weights)
    if filled.size and similarities.shape[0]:
        out[:, filled] = np.add.reduceat(similarities * shares, starts, axis=1)
    return out


def pool_lse(similarities: FloatArray, indptr: IntArray, weights: FloatArray, temperature: float) -> FloatArray:
    """Soft maximum ``t * ln(weighted mean of exp(s / t))``: the mean for a large t, the maximum for a small one.

    Parameters and result as for `pool_mean`; `temperature` is above 0, in units of the similarities.
    """
    out = _empty(similarities, indptr)
    filled, starts, shares = _segments(indptr, weights)
    if filled.size and similarities.shape[0]:
        best = np.maximum.reduceat(similarities, starts, axis=1)
        lengths = np.diff(indptr)[filled]
        # relative to the segment's best, so exp neither overflows nor leaves only zeros
        work = similarities - np.repeat(best, lengths, axis=1)
        work /= temperature
        np.exp(work, out=work)
        work *= shares
        out[:, filled] = best + temperature * np.log(np.add.reduceat(work, starts, axis=1))
    return out


def pool_top(similarities: FloatArray, indptr: IntArray, weights: FloatArray, best: float) -> FloatArray:
    """Weighted mean of the best few documents of each reviewer.

    Documents are taken from the best down until `best` times the reviewer's mean weight is used up, the
    last one in part. With equal weights this is the mean of the `best` highest similarities (of all where
    there are fewer); with unequal ones it stays continuous and does not depend on how ties are ordered.

    Parameters and result as for `pool_mean`; `best` is a number of documents of at least 1.
    """
    out = _empty(similarities, indptr)
    filled, starts, shares = _segments(indptr, weights)
    if not filled.size or not similarities.shape[0]:
        return out
    lengths = np.diff(indptr)[filled]
    even = np.maximum.reduceat(shares, starts) - np.minimum.reduceat(shares, starts) <= 1e-12
    count = int(best)
    # reviewers with equally many documents share one sort
    for length in np.unique(lengths).tolist():
        for equal in (True, False):
            chosen = np.flatnonzero((lengths == length) & (even == equal))
            if not chosen.size:
                continue
            members = starts[chosen][:, None] + np.arange(length)
            part = similarities[:, members]  # (n_rows, n_chosen, length)
            if length <= best:
                out[:, filled[chosen]] = (part * shares[members]).sum(axis=2)
            elif equal and count == best:
                top = np.partition(part, length - count, axis=2)[:, :, length - count :]
                top.sort(axis=2)  # sums in one order whatever the order of the documents
                out[:, filled[chosen]] = top.mean(axis=2)
            else:
                order = np.argsort(-part, axis=2, kind="stable")
                ranked = np.take_along_axis(part, order, axis=2)
                taken = np.take_along_axis(np.broadcast_to(shares[members], part.shape), order, axis=2)
                budget = best / length  # mean share of a document is 1 / length
                before = np.cumsum(taken, axis=2) - taken
                taken = np.clip(budget - before, 0.0, taken)
                out[:, filled[chosen]] = (ranked * taken).sum(axis=2) / taken.sum(axis=2)
    return out
