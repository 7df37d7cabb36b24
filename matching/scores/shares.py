"""How much each document carries of a pooled similarity, and the pool of a part of the documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.scores.pooling import pool_lse, pool_mean, pool_top
from matching.types import FloatArray
from matching.vectors.base import Comparison

__all__ = ["document_shares", "pooled_similarity"]


def pooled_similarity(
    comparison: Comparison, similarities: FloatArray, weights: FloatArray, keep: NDArray[np.bool_] | None = None
) -> float:
    """One reviewer's documents pooled as the comparison says.

    Parameters
    ----------
    comparison : Comparison
    similarities, weights : ndarray of shape (n_documents,), float64
        NaN for a document in which the comparison finds nothing; it is left out.
    keep : ndarray of shape (n_documents,), bool, optional
        Documents that take part; default all.

    Returns
    -------
    float
        Not centred; NaN where no document is left.
    """
    part = ~np.isnan(similarities) if keep is None else keep & ~np.isnan(similarities)
    if not part.any():
        return float("nan")
    line, counts = similarities[part][None, :], _positive(weights[part])
    indptr = np.array([0, counts.size], dtype=np.int64)
    if comparison.pooling == "mean":
        pooled = pool_mean(line, indptr, counts)
    elif comparison.pooling == "lse":
        pooled = pool_lse(line, indptr, counts, comparison.amount)
    else:
        pooled = pool_top(line, indptr, counts, comparison.amount)
    return float(pooled[0, 0])


def document_shares(comparison: Comparison, similarities: FloatArray, weights: FloatArray) -> FloatArray:
    """Share of each document in the pooled similarity: its derivative by the document's own similarity.

    Parameters as for `pooled_similarity`.

    Returns
    -------
    ndarray of shape (n_documents,), float64
        [0, 1], sums to 1; all 0 where no document is known. For a mean the document's weight, for a soft maximum
        its softmax weight, for the mean of the best its part of the budget; equal similarities divide theirs by
        weight.
    """
    shares = np.zeros(similarities.size)
    known = np.flatnonzero(~np.isnan(similarities))
    if not known.size:
        return shares
    values, counts = similarities[known], _positive(weights[known])
    counts = counts / counts.max()
    counts /= counts.sum()
    if comparison.pooling == "lse":
        counts = counts * np.exp((values - values.max()) / comparison.amount)
    elif comparison.pooling == "top" and known.size > comparison.amount:
        counts = _within_budget(values, counts, comparison.amount / known.size)
    shares[known] = counts / counts.sum()
    return shares


def _within_budget(values: FloatArray, counts: FloatArray, budget: float) -> FloatArray:
    """What is taken of each weight, from the highest value down, until the budget is used up."""
    distinct, level = np.unique(-values, return_inverse=True)
    of_level = np.bincount(level, weights=counts, minlength=distinct.size)
    taken = np.clip(budget - (np.cumsum(of_level) - of_level), 0.0, of_level)
    part: FloatArray = counts * np.divide(taken, of_level, out=np.zeros_like(taken), where=of_level > 0)[level]
    return part


def _positive(weights: FloatArray) -> FloatArray:
    """The weights, or equal ones where recency has left nothing of any."""
    return weights if weights.max() > 0 else np.ones(weights.size)
