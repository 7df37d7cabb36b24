"""How far the text affinity of every pair would move with another publication: the jackknife, for all pairs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matching.errors import InvalidParamsError, Issue
from matching.scores.operator import AffinityOperator
from matching.scores.pooling import pool_lse, pool_mean, pool_top
from matching.scores.textscores import TextScores
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison

__all__ = ["affinity_errors", "standard_errors"]

MOST_COMPARED = 20_000_000  # submissions times documents: a microsecond or two each
MOST_POOLED = 200_000_000  # submissions times squared documents of each reviewer
AT_ONCE = 1 << 20  # submissions times documents looked at together
UNSURE = 0.9  # a pair without an error of its own counts as unsure as this share of those that have one, at most


def affinity_errors(affinity: AffinityOperator) -> FloatArray:
    """Standard errors of all affinities, as far as they come from texts.

    Pairs of people with fewer than two publications have none: they count as unsure as the least sure tenth of the
    others, since little evidence is no certainty.

    Returns
    -------
    ndarray of shape (n_submissions, n_reviewers), float64
        Not negative, in units of affinity: the text's weight is in it.

    Raises
    ------
    InvalidParamsError
        ``missing``: texts are not used, or nobody has two publications; ``out-of-range``: the venue is too large for
        it. `standard_error` has to be given then.
    """
    found = [signal for signal in affinity.signals if signal.name == "text" and signal.weight > 0]
    text = found[0].operator if found else None
    if not isinstance(text, TextScores):
        raise _refused("texts are not used in the affinity, so there are no standard errors", "missing")
    sizes = np.diff(text.texts.indptr).astype(np.float64)
    if text.shape[0] * sizes.sum() > MOST_COMPARED or text.shape[0] * (sizes**2).sum() > MOST_POOLED:
        raise _refused("the venue has too many texts for standard errors of all pairs", "out-of-range")
    errors = standard_errors(text)
    known = errors[~np.isnan(errors)]
    if not known.size:
        raise _refused("nobody has two publications, so there are no standard errors", "missing")
    errors[np.isnan(errors)] = np.quantile(known, UNSURE)
    return errors * found[0].weight


def _refused(why: str, code: str) -> InvalidParamsError:
    reason = f"{why}; give standard_error as a number, or by id"
    return InvalidParamsError(issues=[Issue(reason, code, "standard_error", source="params")])


def standard_errors(text: TextScores) -> FloatArray:
    """Standard errors of the text affinity by leaving out one publication at a time.

    ``sqrt((n - 1) / n * sum of squared differences from the mean)`` of the n affinities with one publication left out
    (Efron and Stein, 1981. The jackknife estimate of variance. Annals of Statistics 9(3)).

    Returns
    -------
    ndarray of shape (n_submissions, n_reviewers), float64
        NaN for pairs with fewer than two publications that say something.

    Notes
    -----
    Time: every submission with every document once, and its pools with one left out.
    """
    n_submissions, n_reviewers = text.shape
    out = np.full(text.shape, np.nan)
    indptr = text.texts.indptr
    most = max(1, AT_ONCE // max(1, n_submissions))
    start = 0
    while start < n_reviewers:
        stop = start + 1
        while stop < n_reviewers and indptr[stop + 1] - indptr[start] <= most:
            stop += 1
        similar = text.document_similarities(slice(start, stop))
        for col in range(start, stop):
            part = slice(int(indptr[col] - indptr[start]), int(indptr[col + 1] - indptr[start]))
            if part.stop - part.start > 1:
                out[:, col] = _of_reviewer(text, col, similar[:, :, part])
        start = stop
    return out


def _of_reviewer(text: TextScores, col: int, similar: FloatArray) -> FloatArray:
    """Of all submissions with one reviewer; `similar` has shape (n_comparisons, n_submissions, n_documents)."""
    known = ~np.isnan(similar)
    used = known.any(axis=0)
    weights = text.texts.weights[text.texts.indptr[col] : text.texts.indptr[col + 1]]
    pooled = np.full(similar.shape, np.nan)
    for at, comparison in enumerate(text.model.comparisons):
        rows = np.flatnonzero(known[at].any(axis=1))
        if rows.size:  # a group knows submissions and documents each by themselves
            members = np.flatnonzero(known[at][rows[0]])
            pooled[at, rows] = _left_out(comparison, similar[at][rows], members, weights)
    without = text.affinities_of_pooled(pooled)
    without[~used] = np.nan
    count = (~np.isnan(without)).sum(axis=1)
    enough = count >= 2
    out = np.full(len(without), np.nan)
    values = without[enough]
    apart = values - np.nanmean(values, axis=1, keepdims=True)
    out[enough] = np.sqrt((count[enough] - 1) / count[enough] * np.nansum(apart**2, axis=1))
    return out


def _left_out(comparison: Comparison, similar: FloatArray, members: IntArray, weights: FloatArray) -> FloatArray:
    """Pools without each document in turn, shape as `similar`; NaN where none is left."""
    n_documents = similar.shape[1]
    kept = [members[members != at] for at in range(n_documents)]
    sizes = [part.size for part in kept]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    chosen = np.concatenate(kept).astype(np.int64)
    return _pool(comparison, similar[:, chosen], ends, _positive(weights[chosen], sizes))


def _positive(weights: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Equal weights where recency has left nothing of any, as in the scores."""
    parts = np.split(weights, np.cumsum(sizes)[:-1])
    return np.concatenate([part if part.max(initial=0.0) > 0 else np.ones(part.size) for part in parts])


def _pool(comparison: Comparison, similar: FloatArray, indptr: IntArray, weights: FloatArray) -> FloatArray:
    if comparison.pooling == "mean":
        return pool_mean(similar, indptr, weights)
    if comparison.pooling == "lse":
        return pool_lse(similar, indptr, weights, comparison.amount)
    return pool_top(similar, indptr, weights, comparison.amount)
