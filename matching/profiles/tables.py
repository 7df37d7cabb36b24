"""Bids and imported scores as arrays: checked, resolved, sorted, one value for each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matching.errors import Issue
from matching.notices import Notice
from matching.params import MOST_DEFAULT
from matching.profiles.records import check_type
from matching.profiles.references import References
from matching.profiles.venue import BID_VALUES, Bid, ImportedScores
from matching.types import FloatArray, IntArray

__all__ = ["ResolvedBids", "ResolvedScores", "resolve_bids", "resolve_scores"]

RESERVED_SIGNALS = frozenset({"text", "areas", "bids"})
LISTED = 100  # faulty entries of one list that get an issue each; the rest share one
LABELS = {value: label for label, value in BID_VALUES.items()}


@dataclass(frozen=True, eq=False)
class ResolvedBids:
    """Bids by row and column, sorted, at most one for each pair.

    Attributes
    ----------
    rows, cols : ndarray of shape (n,), int64
    values : ndarray of shape (n,), float64
        BID_VALUES of the labels, range [-1, 1], no unit.
    labels : tuple of str, length n
    """

    rows: IntArray
    cols: IntArray
    values: FloatArray
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class ResolvedScores:
    """One imported signal by row and column, sorted, at most one value for each pair.

    Attributes
    ----------
    name : str
    rows, cols : ndarray of shape (n,), int64
    values : ndarray of shape (n,), float64
        Finite. Pairs not listed are unknown, which is not 0.
    default : float or None
        Value for pairs not listed; None leaves them unknown.
    """

    name: str
    rows: IntArray
    cols: IntArray
    values: FloatArray
    default: float | None

    def __len__(self) -> int:
        return self.values.size


def resolve_bids(records: Sequence[Any], references: References) -> ResolvedBids:
    """Each pair's bid; of two accounts of one person the less willing one counts.

    Faults go to ``references.issues``, names that take no part to ``references.notices``.
    """
    typed, issues = check_type(records, Bid, "bids")
    labels = [bid.bid if isinstance(bid.bid, str) else repr(bid.bid) for _, bid in typed]
    values = np.fromiter((BID_VALUES.get(label, math.nan) for label in labels), np.float64, len(labels))
    index = np.fromiter((row for row, _ in typed), np.int64, len(typed))
    strange = np.flatnonzero(np.isnan(values))
    reason = f"bid must be one of {', '.join(BID_VALUES)}"
    issues += _capped(
        [Issue(reason, "unknown-bid", "bid", int(index[at]), labels[at], "bids") for at in strange[:LISTED].tolist()],
        strange.size,
    )
    references.issues += issues
    submissions, reviewers = [bid.submission for _, bid in typed], [bid.reviewer for _, bid in typed]
    rows, cols, values = _resolve("bids", "bid", submissions, reviewers, values, index, references, lowest=True)
    return ResolvedBids(rows, cols, values, tuple(LABELS[value] for value in values.tolist()))


def resolve_scores(tables: Sequence[Any], references: References) -> tuple[ResolvedScores, ...]:
    """Each imported table, sorted by name; of two accounts of one person the higher score counts.

    Faults go to ``references.issues``, names that take no part to ``references.notices``.
    """
    typed, issues = check_type(tables, ImportedScores, "scores")
    seen: dict[str, int] = {}
    resolved = []
    for number, table in typed:
        faults = list(_table_issues(table, number, seen))
        issues += faults
        if faults:
            continue
        source = f"scores:{table.name}"
        bad = np.flatnonzero(~(np.abs(table.values) <= MOST_DEFAULT))
        references.issues += _capped(
            [
                Issue(
                    f"score of submission {table.submissions[at]!r}, reviewer {table.reviewers[at]!r} is "
                    f"{table.values[at]}; a score is a number of at most {MOST_DEFAULT:g}, and a pair without one is "
                    "left out",
                    "not-finite" if not np.isfinite(table.values[at]) else "out-of-range",
                    "value",
                    at,
                    str(table.values[at]),
                    source,
                )
                for at in bad[:LISTED].tolist()
            ],
            bad.size,
        )
        index = np.arange(table.values.size)
        rows, cols, values = _resolve(
            source, "value", table.submissions, table.reviewers, table.values, index, references, lowest=False
        )
        default = None if table.default is None else float(table.default)
        resolved.append(ResolvedScores(table.name, rows, cols, values, default))
    references.issues += issues
    return tuple(sorted(resolved, key=lambda table: table.name))


def _table_issues(table: ImportedScores, number: int, seen: dict[str, int]) -> list[Issue]:
    """What is wrong with a table as a whole; `seen` holds the names before it."""
    found: list[tuple[str, Any, str, str]] = []
    name, default = table.name, table.default
    if not isinstance(name, str) or not name.strip() or name in RESERVED_SIGNALS:
        reserved = ", ".join(sorted(RESERVED_SIGNALS))
        found.append(("name", name, f"name must be text, not blank and none of {reserved}", "invalid-name"))
    elif seen.setdefault(name, number) != number:
        reason = f"name {name!r} is given twice, at tables {seen[name]} and {number}"
        found.append(("name", name, reason, "duplicate-id"))
    if default is not None and not _is_finite(default):
        found.append(
            ("default", default, f"default must be null or a number of at most {MOST_DEFAULT:g}", "not-finite")
        )
    lists = table.submissions, table.reviewers
    if (
        not all(isinstance(names, tuple) and len(names) == table.values.size for names in lists)
        or table.values.ndim != 1
    ):
        reason = (
            f"submissions, reviewers and values must be lists of one length; values have shape {table.values.shape}"
        )
        found.append(("values", None, reason, "wrong-shape"))
    return [
        Issue(reason, code, field, number, value if value is None or isinstance(value, str) else repr(value), "scores")
        for field, value, reason, code in found
    ]


def _resolve(
    source: str,
    field: str,
    submissions: Sequence[Any],
    reviewers: Sequence[Any],
    values: FloatArray,
    index: IntArray,
    references: References,
    *,
    lowest: bool,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, columns and values of the entries that are in the run and finite, one for each pair, in pair order."""
    keys, accounts, keep = references.pairs(source, submissions, reviewers, index)
    index, values = index[keep], values[keep]
    finite = np.isfinite(values)
    if not finite.all():
        keys, accounts, index, values = keys[finite], accounts[finite], index[finite], values[finite]
    if keys.size:
        contradictions = _contradictions(source, field, keys, accounts, values, index, references)
        references.issues += contradictions
        chosen, joined = _one_each(keys, values, index, lowest)
        if joined and not contradictions:
            references.notices.append(
                Notice(
                    "merged-values",
                    f"{source}: accounts of one person differ on {joined} pairs; "
                    f"the {'lowest' if lowest else 'highest'} {field} counts",
                    data={"source": source, "count": joined},
                )
            )
        keys, values = keys[chosen], values[chosen]
    rows, cols = np.divmod(keys, max(references.width, 1))
    for array in (rows, cols, values):
        array.setflags(write=False)
    return rows, cols, values


def _contradictions(
    source: str,
    field: str,
    keys: IntArray,
    accounts: IntArray,
    values: FloatArray,
    index: IntArray,
    references: References,
) -> list[Issue]:
    """Entries that give a pair another value than an earlier entry of the same account; both rows are named."""
    order = np.lexsort((index, accounts, keys))
    key, account, value = keys[order], accounts[order], values[order]
    fresh = np.ones(key.size, dtype=bool)
    fresh[1:] = (key[1:] != key[:-1]) | (account[1:] != account[:-1])
    first = np.maximum.accumulate(np.where(fresh, np.arange(key.size), 0))
    clash = np.flatnonzero(value != value[first])
    issues = []
    for at in clash[:LISTED].tolist():
        submission = references.submission_id(int(key[at]) // references.width)
        reviewer = references.people.accounts[int(account[at])].id
        one, other = int(index[order[first[at]]]), int(index[order[at]])
        shown, before = (LABELS[v] if field == "bid" else v for v in (float(value[at]), float(value[first[at]])))
        issues.append(
            Issue(
                f"rows {one} and {other} contradict each other: submission {submission!r} and reviewer {reviewer!r} "
                f"have the {field} {before} and the {field} {shown}",
                "contradiction",
                field,
                other,
                shown,
                source,
            )
        )
    return _capped(issues, clash.size)


def _one_each(keys: IntArray, values: FloatArray, index: IntArray, lowest: bool) -> tuple[IntArray, int]:
    """Positions of the lowest or highest entry of each pair, in pair order, and how many pairs had several values."""
    best = np.lexsort((index, values if lowest else -values, keys))
    start = np.ones(best.size, dtype=bool)
    start[1:] = keys[best[1:]] != keys[best[:-1]]
    first = np.flatnonzero(start)
    last = np.append(first[1:] - 1, best.size - 1)  # the pair's other extreme
    return best[first], int(np.count_nonzero(values[best[first]] != values[best[last]]))


def _capped(issues: list[Issue], count: int) -> list[Issue]:
    """The issues, and one that counts those not listed."""
    more = count - len(issues)
    if more > 0:
        last = issues[-1]
        reason = f"{more} further entries have the same fault"
        issues.append(Issue(reason, last.code, last.field, value=more, source=last.source))
    return issues


def _is_finite(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and bool(abs(value) <= MOST_DEFAULT)
