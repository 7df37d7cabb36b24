"""Scores as a solver or the audit sees them once weights and rule prices are put on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit
from matching.constraints.class_prices import ClassPrices, WithClasses
from matching.pairs import PairSet
from matching.scores.base import ScoreOperator
from matching.scores.priced import SINGLE_PRICES, Priced
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Linearised", "rule_terms"]

CLEAR = 8.0  # times the rounding of scores less prices: a row this far below its prices is not looked at pair by pair
SINGLE = 2.0**-16  # relative rounding of prices in single precision, with room to spare


class Linearised(ScoreOperator):
    """``weights[i] * s[i, j] + terms[i, j] - sum over rules of the price of the classes the pair lies in``.

    Pairs unknown to the scores stay unknown.

    Parameters
    ----------
    scores : ScoreOperator
    weights : ndarray of shape (n_submissions,), float64, or None
        Not negative; None for ones.
    terms : scipy.sparse array of shape (n_submissions, n_reviewers), or None
        Added to single pairs.
    groups : sequence of (GroupBound, scipy.sparse array of shape (n_a, n_b))
        Signed prices of the classes; positive ones make their pairs dearer.
    """

    def __init__(
        self,
        scores: ScoreOperator,
        weights: FloatArray | None = None,
        terms: sparse.sparray | None = None,
        groups: Sequence[tuple[GroupBound, sparse.sparray]] = (),
    ) -> None:
        self.scores = scores
        self.shape = scores.shape
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        self.terms = None if terms is None or not terms.nnz else sparse.csr_array(terms, dtype=np.float64)
        self._classes = ClassPrices(groups)
        self._stored: tuple[IntArray, IntArray, FloatArray] | None = None
        steepest = 1.0 if self.weights is None else float(np.abs(self.weights).max(initial=0.0))
        self.tolerance = scores.tolerance * steepest
        if hasattr(scores, "may_be_unknown"):
            self.may_be_unknown = scores.may_be_unknown

    @property
    def plain(self) -> bool:
        """Whether it is the scores themselves."""
        return self.weights is None and self.terms is None and not self._classes

    @property
    def only_weights(self) -> bool:
        """Whether weights are all that is put on the scores."""
        return self.weights is not None and self.terms is None and not self._classes

    @property
    def _lowering(self) -> bool:
        """Whether what is added to pairs makes them worth less."""
        return self.terms is not None and float(self.terms.data.max(initial=0.0)) <= 0.0

    def reach(self, plain: float) -> float:
        """No linearised score is larger than this in size, where no plain one is larger than `plain`."""
        top = plain * (1.0 if self.weights is None else float(np.abs(self.weights).max(initial=0.0)))
        if self.terms is not None:
            top += float(np.abs(self.terms.data).max(initial=0.0))
        return top + self._classes.reach

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        if self._stored is None and (plain := self.scores.stored) is not None:
            self._stored = *plain[:2], self.linear(*plain)
        return self._stored

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part = self.scores.block(rows, cols)
        if self.plain:
            return part
        out = np.array(part, dtype=np.float64)  # float64: what is added must not widen `tolerance`
        if self.weights is not None:
            out *= self.weights[rows, None]
        if self.terms is not None:
            inside = sparse.coo_array(self.terms[rows][:, cols])
            out[inside.coords] += inside.data
        self._classes.take_off(out, rows, cols)
        return out

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.linear(rows, cols, self.scores.values(rows, cols))

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        if weights is None and (self.plain or self.only_weights):
            return self.scores.priced(row_prices, col_prices, self.weights)
        if weights is None and self.weights is None and not self._classes and self._lowering:
            return self.scores.priced(row_prices, col_prices)  # a little too high for some pairs; `values` decides
        if weights is None and self.weights is None and self.terms is None and self._classes.reach <= SINGLE_PRICES:
            return WithClasses(self.scores.priced(row_prices, col_prices), self._classes)
        return super().priced(row_prices, col_prices, weights)

    def exceeding(
        self,
        row_prices: FloatArray,
        col_prices: FloatArray,
        margin: float,
        limit: int | None = None,
        skip: PairSet | None = None,
    ) -> tuple[PairArray, FloatArray, bool]:
        """As for every operator. Rows of weight 0 are settled by their prices alone.

        All their scores are 0, so none exceeds a price that with the lowest of the others is not negative. Blocks would
        leave every one of these pairs to be looked at exactly, since it lies at its price.
        """
        if self.only_weights and self.weights is not None and not self.weights.all():
            lowest = float(col_prices.min(initial=np.inf))
            settled = (self.weights == 0.0) & (row_prices + lowest + margin >= 0.0)
            if settled.any():
                rounding = self.tolerance + SINGLE * (np.abs(row_prices).max() + np.abs(col_prices).max() + 1.0)
                row_prices = np.where(settled, np.maximum(row_prices, -lowest) + CLEAR * rounding, row_prices)
        return super().exceeding(row_prices, col_prices, margin, limit, skip)

    def linear(self, rows: IntArray, cols: IntArray, score: FloatArray) -> FloatArray:
        """What `values` makes of scores that are at hand; for locked pairs an unknown score may be given as 0."""
        out = score
        if self.weights is not None:
            out = out * self.weights[rows]
        if self.terms is not None and len(rows):  # scipy answers no places with a sparse array
            out = out + np.asarray(self.terms[rows, cols]).ravel()
        if self._classes:
            out = out - self._classes.paid(rows, cols)
        return out


def rule_terms(
    rules: Sequence[Bound], prices: Sequence[sparse.sparray | FloatArray], shape: tuple[int, int]
) -> tuple[list[tuple[GroupBound, sparse.sparray]], sparse.csr_array, float]:
    """What rule prices do to pairs, and what they pay in.

    Parameters
    ----------
    rules : sequence of Bound
    prices : sequence, one for each rule
        GroupBound: scipy.sparse of shape (n_a, n_b), positive on binding upper bounds, negative on lower ones.
        PairLimit: ndarray of shape (n_k,), not negative.
        SharedReviewers: scipy.sparse of shape (n_k, n_reviewers + 1), not negative, see Notes.
    shape : tuple of int

    Returns
    -------
    groups : list of (GroupBound, scipy.sparse array)
    terms : scipy.sparse.csr_array of shape `shape`
        For `Linearised`: what PairLimit and SharedReviewers add to single pairs.
    paid : float
        What belongs on the bound's other side: ``sum of price * bound``. For every lawful plan the weighted sum of
        scores is at most the linearised sum plus `paid`.

    Notes
    -----
    "p and q have at least m reviewers in common" with a price a_r in [0, c] for p and c - a_r for q, for every
    reviewer r: ``sum over r of min(x_pr, x_qr) >= m`` gives ``sum over r of a_r x_pr + (c - a_r) x_qr >= c m``, since
    the smaller is at most any average of the two. SharedReviewers prices hold a_r in column r and c in column
    n_reviewers, so their shape is (n_k, n_reviewers + 1).
    """
    groups: list[tuple[GroupBound, sparse.sparray]] = []
    rows: list[IntArray] = []
    cols: list[IntArray] = []
    data: list[FloatArray] = []
    paid = 0.0
    for rule, given in zip(rules, prices, strict=True):
        if isinstance(rule, GroupBound):
            price = sparse.coo_array(given)
            at = price.coords
            limit = np.where(price.data > 0, rule.upper[at], rule.lower[at])
            paid += float((price.data * limit).sum())
            groups.append((rule, price))
        elif isinstance(rule, PairLimit):
            each = np.asarray(given, dtype=np.float64)
            rows.append(rule.pairs[:, 0])
            cols.append(rule.pairs[:, 1])
            data.append(-each[rule.which])
            paid += float(each @ rule.upper)
        else:
            table = sparse.csr_array(given).toarray()
            whole, first = table[:, -1], table[:, :-1]
            paid -= float(whole @ rule.least)
            for k in np.flatnonzero(whole):
                everyone = np.arange(shape[1], dtype=np.int64)
                for line, gift in ((rule.pairs[k, 0], first[k]), (rule.pairs[k, 1], whole[k] - first[k])):
                    rows.append(np.full(shape[1], line))
                    cols.append(everyone)
                    data.append(gift)
    if rows:
        where = (np.concatenate(rows), np.concatenate(cols))
        terms = sparse.csr_array(sparse.coo_array((np.concatenate(data), where), shape=shape))
    else:
        terms = sparse.csr_array(shape)
    return groups, terms, paid
