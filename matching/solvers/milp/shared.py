"""Submissions that share reviewers, as rows: columns z_kr <= x_pr, z_kr <= x_qr with ``sum over r of z_kr >= least``.

Only reviewers who might be shared have a z. For the others the price c of constraint k is split between their two
pairs, a to p and c - a to q, as their own prices leave room for; where the room is less than c, sharing that reviewer
could pay, and they get their z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit, SharedReviewers
from matching.constraints.linearised import Linearised
from matching.solvers.milp.rows import BROKEN, GroupRows, LimitRows, RuleRows
from matching.solvers.state import State
from matching.types import FloatArray, IntArray

__all__ = ["Links", "SharedRows", "rows_of", "settle"]

FIRST_LINKS = 32  # reviewers of each constraint who may be shared from the start, those both fit best


@dataclass(frozen=True, eq=False)
class Links:
    """Reviewers (`reviewers[i]`, column) who may be shared in constraint `keys[i]` of `rule`."""

    rule: SharedRows
    keys: IntArray
    reviewers: IntArray


class SharedRows(RuleRows):
    """Rows of a SharedReviewers.

    Attributes
    ----------
    link_key, link_reviewer : ndarray of int64
        Constraint and reviewer of each z.
    first_link, second_link : ndarray of int64
        The program's rows ``z - x <= 0`` of each z, -1 where the pair is locked.
    """

    def __init__(self, rule: SharedReviewers, held: sparse.csr_array) -> None:
        super().__init__(held)
        self.rule: SharedReviewers = rule
        none: IntArray = np.empty(0, dtype=np.int64)
        self.link_key, self.link_reviewer, self.first_link, self.second_link = none, none, none, none
        self._both = self._counts(held)

    def _counts(self, taken: sparse.csr_array) -> FloatArray:
        pairs = self.rule.pairs
        both = taken[pairs[:, 0]].minimum(taken[pairs[:, 1]])
        return np.asarray(both.sum(axis=1)).ravel().astype(np.float64)

    def broken(self, taken: sparse.csr_array) -> IntArray:
        return np.setdiff1d(np.flatnonzero(self._counts(taken) < self.rule.least - BROKEN), self.keys)

    def breakable(self, active: sparse.csr_array) -> IntArray:
        return np.setdiff1d(np.flatnonzero(self.rule.least > 0), self.keys)

    def limits(self, keys: IntArray) -> tuple[FloatArray, FloatArray]:
        return (self.rule.least - self._both)[keys], np.full(keys.size, np.inf)

    def entries(self, keys: IntArray, rows: IntArray, cols: IntArray) -> sparse.coo_array:
        return sparse.coo_array((keys.size, rows.size))

    def shortfall(self, taken: sparse.csr_array) -> FloatArray:
        short = self._counts(taken) - self.rule.least
        return np.where(short < -BROKEN, short, 0.0)

    def prices(self, duals: FloatArray, most: float) -> sparse.csr_array:
        """Prices of the constraints and their split for reviewers with a z; `settle` splits those of the others."""
        table = np.zeros((len(self.rule.least), self.held.shape[1] + 1))
        table[self.keys, -1] = np.minimum(np.maximum(duals[self.row_ids], 0.0), self.ceiling(most))
        key, reviewer = self.link_key, self.link_reviewer
        # rows z - x <= 0 have duals at most 0; without such a row (a locked pair) the other side takes what it can
        first = np.where(self.first_link >= 0, -duals[self.first_link], np.inf)
        second = np.where(self.second_link >= 0, -duals[self.second_link], 0.0)
        limit = table[key, -1]
        split = np.where(np.isinf(first), limit - np.clip(second, 0.0, limit), np.clip(first, 0.0, limit))
        table[key, reviewer] = split
        return sparse.csr_array(table)

    def unlinked(self, key: int) -> NDArray[np.bool_]:
        """Reviewers without a z in constraint `key`, shape (n_reviewers,)."""
        out = np.ones(self.held.shape[1], dtype=bool)
        out[self.link_reviewer[self.link_key == key]] = False
        return out

    def possible(self, key: int, state: State) -> NDArray[np.bool_]:
        """Reviewers who could be shared and are not anyway: lawful or locked for both, not locked for both."""
        p, q = map(int, self.rule.pairs[key])
        mine, theirs = _locked(self.held, p), _locked(self.held, q)
        may: NDArray[np.bool_] = (lawful(state, p) | mine) & (lawful(state, q) | theirs) & ~(mine & theirs)
        return may

    def first_links(self, keys: IntArray, state: State) -> Links:
        """Who may be shared from the start: people locked for one of the two, and those both fit best."""
        found: list[IntArray] = [np.empty(0, dtype=np.int64)]
        for key in keys:
            may = np.flatnonzero(self.possible(int(key), state))
            p, q = self.rule.pairs[key]
            fit = np.nan_to_num(state.problem.scores.values(np.full(may.size, p), may))
            fit += np.nan_to_num(state.problem.scores.values(np.full(may.size, q), may))
            fit[(_locked(self.held, int(p)) | _locked(self.held, int(q)))[may]] = np.inf
            found.append(may[np.argsort(-fit, kind="stable")[: FIRST_LINKS + int(np.isinf(fit).sum())]])
        sizes = [part.size for part in found[1:]]
        return Links(self, np.repeat(keys, sizes), np.concatenate(found))

    def all_links(self, state: State) -> Links:
        """Everyone who could be shared and has no z yet."""
        found = [np.flatnonzero(self.possible(int(key), state) & self.unlinked(int(key))) for key in self.keys]
        reviewers = np.concatenate([np.empty(0, dtype=np.int64), *found])
        return Links(self, np.repeat(self.keys, [part.size for part in found]), reviewers)


def _locked(held: sparse.csr_array, line: int) -> NDArray[np.bool_]:
    out = np.zeros(held.shape[1], dtype=bool)
    out[held.indices[held.indptr[line] : held.indptr[line + 1]]] = True
    return out


def lawful(state: State, line: int) -> NDArray[np.bool_]:
    """Reviewers a submission may get beyond its locked ones, shape (n_reviewers,)."""
    n_reviewers = state.problem.shape[1]
    row, everyone = np.full(n_reviewers, line), np.arange(n_reviewers, dtype=np.int64)
    if not state.supply[line]:
        return np.zeros(n_reviewers, dtype=bool)
    known: NDArray[np.bool_] = ~np.isnan(state.problem.scores.values(row, everyone))
    return known & (state.load_max > 0) & ~state.closed.contains(row, everyone)


def settle(
    rules: Sequence[RuleRows], prices: Sequence[Any], u: FloatArray, w: FloatArray, scores: Linearised, state: State,
    margin: float,
) -> tuple[tuple[Any, ...], list[Links]]:  # fmt: skip
    """Split the prices of sharing for reviewers without a z; who should get one.

    Parameters
    ----------
    rules : sequence of RuleRows
    prices : sequence
        Of all rules, as `RuleRows.prices` gives them.
    u, w : ndarray, float64
    scores : Linearised
        With these prices.
    margin : float
        Who is returned: reviewers where the room exceeds the price by less than this. 0 means those whose sharing
        would pay; a negative number leaves out what is rounding.
    """
    shared = [(place, rule) for place, rule in enumerate(rules) if isinstance(rule, SharedRows) and rule.keys.size]
    if not shared:
        return tuple(prices), []
    n_reviewers = state.problem.shape[1]
    everyone = np.arange(n_reviewers, dtype=np.int64)
    tables = {place: sparse.csr_array(prices[place]).toarray() for place, _ in shared}
    room: dict[int, FloatArray] = {}
    for _, rule in shared:
        for line in map(int, np.unique(rule.rule.pairs[rule.keys])):
            value = scores.values(np.full(n_reviewers, line), everyone)
            room[line] = np.where(lawful(state, line), u[line] + w - np.nan_to_num(value), np.inf)
            room[line][_locked(rule.held, line)] = 0.0  # a locked pair is taken: what lies on it is paid
    for place, rule in shared:  # undo the present split
        for key in map(int, rule.keys):
            first, second = (room[int(line)] for line in rule.rule.pairs[key])
            share = np.where(rule.unlinked(key), tables[place][key, :-1], 0.0)
            first += share
            second += np.where(rule.unlinked(key), tables[place][key, -1] - share, 0.0)
    links: list[Links] = []
    for place, rule in shared:
        keys, reviewers = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for key in map(int, rule.keys):
            first, second = (room[int(line)] for line in rule.rule.pairs[key])
            loose, price = rule.unlinked(key), tables[place][key, -1]
            # where the second submission cannot have the reviewer it takes the whole price at no cost
            mine = np.where(loose & np.isfinite(second), np.clip(first, 0.0, price), 0.0)
            theirs = np.where(loose, np.clip(second, 0.0, price - mine), 0.0)
            spare = np.maximum(first, 0.0) + np.maximum(second, 0.0) - price
            p, q = map(int, rule.rule.pairs[key])
            spare[~loose | (_locked(rule.held, p) & _locked(rule.held, q))] = np.inf
            tables[place][key, :-1] = np.where(loose, mine, tables[place][key, :-1])
            first -= mine
            second -= theirs
            wanted = np.flatnonzero(spare < margin)
            wanted = wanted[np.argsort(spare[wanted], kind="stable")]
            keys.append(np.full(wanted.size, key))
            reviewers.append(wanted)
        links.append(Links(rule, np.concatenate(keys).astype(np.int64), np.concatenate(reviewers)))
    out = tuple(sparse.csr_array(tables[place]) if place in tables else price for place, price in enumerate(prices))
    return out, [link for link in links if link.keys.size]


def rows_of(rules: Sequence[Bound], held: sparse.csr_array) -> list[RuleRows]:
    """Empty rows for each rule; `held` are the locked pairs, 1 each."""
    out: list[RuleRows] = []
    for rule in rules:
        if isinstance(rule, GroupBound):
            out.append(GroupRows(rule, held))
        elif isinstance(rule, PairLimit):
            out.append(LimitRows(rule, held))
        else:
            out.append(SharedRows(rule, held))
    return out
