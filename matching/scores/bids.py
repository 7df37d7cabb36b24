"""Values known for single pairs only: bids and imported score tables, kept sparse.

A pair that is not listed is NaN here, which is "says nothing" and not 0. A conflict is no low score: barred
pairs are taken out elsewhere, whatever their bid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from matching.errors import InvalidScoresError, Issue
from matching.scores.base import SparseScores
from matching.types import FloatArray, IntArray

__all__ = ["bid_scores", "table_scores"]

ISSUES_LISTED = 20  # faulty rows of a table that are spelled out


def bid_scores(rows: ArrayLike, cols: ArrayLike, values: ArrayLike, shape: tuple[int, int]) -> SparseScores:
    """Bids as scores, NaN where nobody bid.

    Parameters
    ----------
    rows, cols : array_like of int, shape (n,)
        Submission rows and reviewer columns. Of several bids on one pair (two accounts of one person)
        the less willing one counts, whatever their order; so a better bid never lowers a pair.
    values : array_like of float, shape (n,)
        Finite, usually `matching.profiles.venue.BID_VALUES` of the label: [-1, 1], neutral 0.
    shape : tuple of int

    Raises
    ------
    InvalidScoresError
        ``invalid-scores``: every row out of range or not finite is counted, the first are listed.
    """
    at, to, value = _checked(rows, cols, values, shape, "bids")
    order = np.lexsort((value, to, at))  # the least willing of a pair comes first
    at, to, value = at[order], to[order], value[order]
    first = np.ones(at.size, dtype=bool)
    first[1:] = (at[1:] != at[:-1]) | (to[1:] != to[:-1])
    return _sparse(at[first], to[first], value[first], shape)


def table_scores(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike, shape: tuple[int, int], name: str = "scores"
) -> SparseScores:
    """An imported table as scores, NaN for pairs it does not list.

    Parameters as for `bid_scores`, in any unit; `name` is the table's, for messages.

    Raises
    ------
    InvalidScoresError
        ``invalid-scores``: as for `bid_scores`, and pairs listed more than once.
    """
    at, to, value = _checked(rows, cols, values, shape, name)
    keys = at * shape[1] + to
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    if (counts > 1).any():
        repeated = first[counts > 1]
        raise InvalidScoresError(
            f"table {name!r} lists {repeated.size} pairs more than once; a pair has one score",
            [
                Issue("this pair is listed more than once", "duplicate-pair", row=int(row), source=name)
                for row in repeated[:ISSUES_LISTED]
            ],
        )
    return _sparse(at, to, value, shape)


def _sparse(rows: IntArray, cols: IntArray, values: FloatArray, shape: tuple[int, int]) -> SparseScores:
    return SparseScores(sparse.coo_array((values, (rows, cols)), shape=shape), default=np.nan)


def _checked(
    rows: ArrayLike, cols: ArrayLike, values: ArrayLike, shape: tuple[int, int], name: str
) -> tuple[IntArray, IntArray, FloatArray]:
    at, to = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
    value = np.asarray(values, dtype=np.float64)
    if not at.shape == to.shape == value.shape or at.ndim != 1:
        raise InvalidScoresError(f"{name}: rows, columns and values must be equally long lists")
    outside = (at < 0) | (at >= shape[0]) | (to < 0) | (to >= shape[1])
    bad = np.flatnonzero(outside | ~np.isfinite(value))
    if bad.size:
        raise InvalidScoresError(
            f"{bad.size} rows of {name} are not valid",
            [
                Issue(
                    f"pair ({at[row]}, {to[row]}) is outside {shape[0]} submissions x {shape[1]} reviewers"
                    if outside[row]
                    else f"the score {value[row]} is not a finite number",
                    "out-of-range" if outside[row] else "not-finite",
                    row=int(row),
                    source=name,
                )
                for row in bad[:ISSUES_LISTED]
            ],
        )
    return at, to, value
