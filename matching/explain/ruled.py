"""What rules do to single pairs of a plan: the prices that its proof puts on them, and bounds a swap would break."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound, PairLimit, SharedReviewers
from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.types import PairArray

__all__ = ["Broken", "RulePrice", "Rules"]

UNITS = 1e-6  # difference up to which a count of weights is at its bound

Key = tuple[int, ...]
"""A constraint: the rule's place among the problem's, then class a and b, or k."""


@dataclass(frozen=True, slots=True)
class RulePrice:
    """What one bound of a rule takes from the worth of a pair.

    Attributes
    ----------
    rule : str
        As the chair knows it.
    where : str
        The bound in words: what it is about and its limit.
    price : float
        In units of affinity, times the pair's weight in it; below 0 where the rule adds to the pair.
    """

    rule: str
    where: str
    price: float


@dataclass(frozen=True, slots=True)
class Broken:
    """A hard bound that a swap would not keep.

    Attributes
    ----------
    rule, where : str
        As in RulePrice.
    already : bool
        Whether the plan misses it as it is, and the swap would by more.
    """

    rule: str
    where: str
    already: bool


class Rules:
    """The rules of one plan, pair by pair.

    Parameters
    ----------
    problem : AssignmentProblem
        As built now, from the venue and the options the plan was made from.
    pairs : ndarray of shape (n, 2), int64
        Of the plan.
    proof : mapping, optional
        Of the total, as `matching.plan.record.proofs_of` writes it.
    reviewers : sequence of str
        Ids of the problem's columns.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        pairs: PairArray,
        proof: Mapping[str, Any] | None,
        reviewers: Sequence[str],
    ) -> None:
        self._problem = problem
        self._taken = sparse.csr_array(PairSet(pairs, problem.shape).table(), dtype=np.float64)
        self._reads = [_reader(rule, problem.shape[1]) for rule in problem.rules]
        self._counts: dict[int, Any] = {}
        self._on: dict[int, list[int]] = {}
        for row, col in pairs.tolist():
            self._on.setdefault(col, []).append(row)
        self._shares: dict[Key, Mapping[str, float]] = {}
        self._reviewers = reviewers
        self._prices = None if proof is None else self._read_prices(proof.get("rule_prices", ()))

    @property
    def priced(self) -> bool:
        """Whether there is a proof whose rule prices are all of rules known here."""
        return self._prices is not None

    def prices(self, row: int, col: int) -> tuple[RulePrice, ...]:
        """What each bound takes from a pair, in the order of the rules; those of price 0 are left out."""
        return tuple(price for _, price in self._priced(row, col))

    def gifts(self, row: int, col: int, besides: int) -> tuple[RulePrice, ...]:
        """Bounds that add to a pair but not to that of column `besides`."""
        theirs = {key for key, _ in self._priced(row, besides)}
        return tuple(price for key, price in self._priced(row, col) if price.price < 0 and key not in theirs)

    def broken(self, row: int, col: int, instead: int | None, full: bool) -> Broken | None:
        """A hard bound that would not hold with `col` on `row` instead of somebody there, or beside all of them.

        Parameters
        ----------
        full : bool
            Whether `col` would have to give up a review for it; no bound which that could keep is then named.

        Returns
        -------
        Broken or None
            The first one found.
        """
        for at, rule in enumerate(self._problem.rules):
            if rule.price is None and (found := next(self._broken(at, rule, row, col, instead, full), None)):
                return found
        return None

    def cost(self, row: int, col: int, instead: int) -> tuple[float, tuple[Broken, ...]]:
        """What priced rules cost more, or less, with `col` on `row` instead of `instead`; the bounds they miss by more.

        Returns
        -------
        (float, tuple of Broken)
            The cost in units of affinity.
        """
        total, missed = 0.0, []
        for at, rule in enumerate(self._problem.rules):
            if rule.price is None:
                continue
            for key, before, more in self._changes(at, rule, row, col, instead):
                was, is_now = _missed(rule, key, before), _missed(rule, key, before + more)
                total += rule.price * (is_now - was)
                if is_now > was + UNITS:
                    missed.append(Broken(rule.name, _in_words(rule, key, more < 0), was > UNITS))
        return total, tuple(missed)

    def _broken(self, at: int, rule: Bound, row: int, col: int, instead: int | None, full: bool) -> Iterator[Broken]:
        freed: dict[Key, float] = {}
        for place in self._on.get(col, ()) if full and not isinstance(rule, SharedReviewers) else ():
            for key, weight in self._reads[at].of(place, col):
                freed[key] = freed.get(key, 0.0) + weight
        for key, before, more in self._changes(at, rule, row, col, instead):
            after = before + more - (freed.get(key, 0.0) if more > 0 else 0.0)
            was = _missed(rule, key, before)
            if _missed(rule, key, after) > was + UNITS and (after - before) * more > 0:
                yield Broken(rule.name, _in_words(rule, key, more < 0), was > UNITS)

    def _changes(
        self, at: int, rule: Bound, row: int, col: int, instead: int | None
    ) -> Iterator[tuple[Key, float, float]]:
        """Constraints whose count a swap changes: the count as it is, and by how much."""
        read = self._reads[at]
        if at not in self._counts:
            self._counts[at] = rule.counts(self._taken)
        counts = self._counts[at]
        if isinstance(rule, SharedReviewers):
            for k, other, _ in read.of(row):
                more = int(self._has(other, col)) - int(instead is not None and self._has(other, instead))
                if more:
                    yield (k,), float(counts[k]), float(more)
            return
        change = dict(read.of(row, col))
        for key, weight in () if instead is None else read.of(row, instead):
            change[key] = change.get(key, 0.0) - weight
        for key, more in change.items():
            if more:
                yield key, float(counts[key[0] if len(key) == 1 else key]), more

    def _has(self, row: int, col: int) -> bool:
        return row in self._on.get(col, ())

    def _priced(self, row: int, col: int) -> Iterator[tuple[Key, RulePrice]]:
        for at, rule in enumerate(self._problem.rules):
            if not (prices := (self._prices or {}).get(at)):
                continue
            if isinstance(rule, SharedReviewers):
                for k, _, first in self._reads[at].of(row):
                    if (k,) in prices:
                        share = float(self._shares[at, k].get(self._reviewers[col], 0.0))
                        gift = share if first else prices[k,] - share
                        if gift:
                            yield (at, k), RulePrice(rule.name, _in_words(rule, (k,), True), -gift)
                continue
            for key, weight in self._reads[at].of(row, col):
                if price := prices.get(key, 0.0):
                    yield (at, *key), RulePrice(rule.name, _in_words(rule, key, price < 0), price * weight)

    def _read_prices(self, entries: Sequence[Mapping[str, Any]]) -> dict[int, dict[Key, float]] | None:
        """Rule -> constraint -> price; None where one is of a rule that is not known here, or not clearly."""
        by_name: dict[str, list[int]] = {}
        for at, rule in enumerate(self._problem.rules):
            by_name.setdefault(rule.name, []).append(at)
        labels = {}
        out: dict[int, dict[Key, float]] = {}
        for entry in entries:
            found: list[Key] = []
            for at in by_name.get(entry["rule"], ()):
                if at not in labels:
                    labels[at] = _labels(self._problem.rules[at])
                told = [entry[name] for name in ("submissions", "reviewers", "where") if name in entry]
                if len(told) == len(labels[at]):
                    places = [index.get(word, []) for index, word in zip(labels[at], told, strict=True)]
                    if len(places) == 1:
                        found += [(at, k) for k in places[0]]
                    else:
                        found += [(at, a, b) for a in places[0] for b in places[1]]
            # words that stand for several bounds leave it to the place at which the plan had the bound
            place = tuple(entry.get("at", ()))
            key = found[0] if len(found) == 1 else place
            if key not in found:
                return None
            if isinstance(self._problem.rules[key[0]], SharedReviewers):
                if "shares" not in entry:
                    return None
                self._shares[key] = entry["shares"]
            out.setdefault(key[0], {})[key[1:]] = float(entry["price"])
        return out


class _OfGroups:
    """Constraints of a GroupBound a pair counts in, with its weight."""

    def __init__(self, rule: GroupBound) -> None:
        self._rows = sparse.csc_array(rule.submissions)
        self._cols = sparse.csc_array(rule.reviewers)

    def of(self, row: int, col: int) -> list[tuple[Key, float]]:
        left, right = self._rows, self._cols
        lines = slice(left.indptr[row], left.indptr[row + 1])
        across = right.indices[right.indptr[col] : right.indptr[col + 1]].tolist()
        return [
            ((a, b), weight)
            for a, weight in zip(left.indices[lines].tolist(), left.data[lines].tolist(), strict=True)
            for b in across
        ]


class _OfPairs:
    """Constraints of a PairLimit a pair is listed in, with how often."""

    def __init__(self, rule: PairLimit, width: int) -> None:
        keys = rule.pairs[:, 0] * width + rule.pairs[:, 1]
        order = np.argsort(keys, kind="stable")
        self._keys, self._which, self._width = keys[order], rule.which[order], width

    def of(self, row: int, col: int) -> list[tuple[Key, float]]:
        key = row * self._width + col
        start, stop = np.searchsorted(self._keys, [key, key + 1])
        each, count = np.unique(self._which[start:stop], return_counts=True)
        return [((k,), float(times)) for k, times in zip(each.tolist(), count.tolist(), strict=True)]


class _OfShared:
    """Constraints of SharedReviewers a submission is in: k, the other submission, whether it is the first of them."""

    def __init__(self, rule: SharedReviewers) -> None:
        self._of: dict[int, list[tuple[int, int, bool]]] = {}
        for k, (first, second) in enumerate(rule.pairs.tolist()):
            self._of.setdefault(first, []).append((k, second, True))
            self._of.setdefault(second, []).append((k, first, False))

    def of(self, row: int) -> list[tuple[int, int, bool]]:
        return self._of.get(row, [])


def _reader(rule: Bound, width: int) -> Any:
    if isinstance(rule, GroupBound):
        return _OfGroups(rule)
    return _OfPairs(rule, width) if isinstance(rule, PairLimit) else _OfShared(rule)


def _labels(rule: Bound) -> list[dict[str, list[int]]]:
    """Places of each label, for each side of the rule's constraints."""
    if isinstance(rule, GroupBound):
        sides: list[Sequence[str]] = [rule.submission_labels, rule.reviewer_labels]
    else:
        sides = [rule.labels or [str(k) for k in range(rule.shape[0])]]
    out = []
    for side in sides:
        index: dict[str, list[int]] = {}
        for at, label in enumerate(side):
            index.setdefault(label, []).append(at)
        out.append(index)
    return out


def _missed(rule: Bound, key: Key, count: float) -> float:
    """Units by which a count is outside its bounds."""
    if isinstance(rule, GroupBound):
        return max(0.0, count - float(rule.upper[key]), float(rule.lower[key]) - count)
    if isinstance(rule, PairLimit):
        return max(0.0, count - float(rule.upper[key[0]]))
    return max(0.0, float(rule.least[key[0]]) - count)


def _in_words(rule: Bound, key: Key, low: bool) -> str:
    """What a bound is about, and its limit: ``p1 and senior: at least 1``."""
    limits: Any
    if isinstance(rule, GroupBound):
        where = f"{rule.submission_labels[key[0]]} and {rule.reviewer_labels[key[1]]}"
        limit = float((rule.lower if low else rule.upper)[key])
    else:
        where = rule.labels[key[0]] if rule.labels else str(key[0])
        limits = rule.upper if isinstance(rule, PairLimit) else rule.least
        limit = float(limits[key[0]])
    return f"{where}: {'at least' if low else 'at most'} {limit:g}"
