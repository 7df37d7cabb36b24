"""Typed readers of the delimited files a venue is made of.

Each takes the bytes of one file and returns values with the line each came from. `read_table` underneath
serves any other set of columns; the twins that write are in `matching.formats.table_out`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Generic, TypeVar

import numpy as np

from matching.formats.bid_labels import ACCEPTED_BIDS, bid_label
from matching.formats.checks import (
    MOST_SCORE,
    columns_swapped,
    counts,
    numbers,
    once,
    repeated_rows,
    require_ids,
)
from matching.formats.delimited import Table, read_table
from matching.formats.faults import Faults
from matching.notices import Notice
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock
from matching.types import IntArray

__all__ = [
    "Demand",
    "Load",
    "Parsed",
    "Table",
    "columns_swapped",
    "read_bids",
    "read_conflicts",
    "read_demands",
    "read_loads",
    "read_locks",
    "read_scores",
    "read_table",
]

Records = TypeVar("Records")
ACCEPTED_TEXT = "; ".join(
    f"{label} ({', '.join(word for word in words if word)})" for label, words in ACCEPTED_BIDS.items()
)


@dataclass(frozen=True, eq=False)
class Parsed(Generic[Records]):
    """What a file held.

    Attributes
    ----------
    records : tuple or ImportedScores
        In file order, repeated rows once.
    lines : ndarray of shape (n,), int64
        Line number in the file of each record, from 1.
    notices : tuple of Notice
        What was left out: columns nobody asked for, repeated rows.
    n_rows : int
        Rows in the file, repeated ones included.
    """

    records: Records
    lines: IntArray
    notices: tuple[Notice, ...] = ()
    n_rows: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """A reviewer's own limits, in reviews; None means the venue's default, 0 for `load_max` none at all."""

    reviewer: str
    load_max: int | None = None
    load_min: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """Reviews a submission wants; None means the venue's default."""

    submission: str
    demand: int | None = None


def read_scores(
    data: bytes,
    *,
    name: str = "scores.csv",
    signal: str | None = None,
    default: float | None = None,
    columns: Sequence[str] | None = None,
    submissions: Collection[str] | None = None,
    reviewers: Collection[str] | None = None,
) -> Parsed[ImportedScores]:
    """Scores of pairs, one signal.

    Parameters
    ----------
    data, name, columns
        See `read_table`; the columns are submission, reviewer and score.
    signal : str or None
        Name of the signal; None takes the file's name without its ending.
    default : float or None
        Value of pairs not listed, see ImportedScores; at most 1,000,000,000 in size, like every score.
    submissions, reviewers : collection of str or None
        Known ids (aliases and addresses may be among them), to notice swapped columns.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Every faulty row is listed: ``missing-id``, ``not-a-number``, ``not-finite``, ``out-of-range``,
        ``contradiction`` (one pair, two values). ``columns-swapped`` where the ids stand in each other's columns.
    """
    table, faults = _pairs(data, name, ("score",), (), columns, submissions, reviewers)
    if default is not None and not abs(default) <= MOST_SCORE:
        reason = f"{default} does not lie between {-MOST_SCORE:,} and {MOST_SCORE:,}"
        faults.add(reason, "out-of-range", "default", value=default)
    values = numbers(table, "score", faults, MOST_SCORE)
    kept, notices = once(table, ("submission", "reviewer"), values, "scores", faults)
    faults.raise_if_any()
    first, second = table.cells("submission"), table.cells("reviewer")
    scores = ImportedScores(
        signal if signal is not None else PurePosixPath(name).stem,
        tuple(first[row] for row in kept),
        tuple(second[row] for row in kept),
        np.array(values, dtype=np.float64)[kept],
        default,
    )
    return _parsed(scores, table, kept, notices)


def read_bids(
    data: bytes,
    *,
    name: str = "bids.csv",
    columns: Sequence[str] | None = None,
    submissions: Collection[str] | None = None,
    reviewers: Collection[str] | None = None,
) -> Parsed[tuple[Bid, ...]]:
    """Bids; labels and numbers of other systems are read as in ACCEPTED_BIDS. Otherwise as `read_scores`.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        As `read_scores`, and ``unknown-bid``.
    """
    table, faults = _pairs(data, name, ("bid",), (), columns, submissions, reviewers)
    labels = [bid_label(cell) for cell in table.cells("bid")]
    for line, label, cell in zip(table.lines, labels, table.cells("bid")):
        if label is None:
            faults.add(f"bid {cell!r} is not known; accepted: {ACCEPTED_TEXT}", "unknown-bid", "bid", line, cell)
    kept, notices = once(table, ("submission", "reviewer"), labels, "bids", faults)
    faults.raise_if_any()
    first, second = table.cells("submission"), table.cells("reviewer")
    return _parsed(tuple(Bid(first[row], second[row], labels[row] or "") for row in kept), table, kept, notices)


def read_conflicts(
    data: bytes,
    *,
    name: str = "conflicts.csv",
    columns: Sequence[str] | None = None,
    submissions: Collection[str] | None = None,
    reviewers: Collection[str] | None = None,
) -> Parsed[tuple[DeclaredConflict, ...]]:
    """Declared conflicts. A pair may have several reasons; each is kept. Otherwise as `read_scores`.

    A column ``value`` or ``weight`` is read as in OpenReview's constraints: -1 a conflict, 0 nothing.
    Dates in ``since`` and ``until`` bar the pair all the same, which a notice says.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        As `read_scores`, and ``not-a-conflict`` for any other value.
    """
    optional = ("rule", "evidence", "source", "since", "until", "value")
    table, faults = _pairs(data, name, (), optional, columns, submissions, reviewers)
    notices: list[Notice] = []
    nothing = set()
    if "value" in table.columns:
        for row, value in enumerate(numbers(table, "value", faults)):
            if value == 0:
                nothing.add(row)
            elif value != -1 and not math.isnan(value):
                reason = "is neither -1 (conflict) nor 0 (nothing)"
                if value == 1:
                    reason = (
                        "1 (a wanted pair) is not supported by this version; take the row out, "
                        "and put the pair into the locks if it must be, into the bids if it should be"
                    )
                faults.add(reason, "not-a-conflict", "value", table.lines[row], value)
    faults.raise_if_any()
    seen: dict[DeclaredConflict, int] = {}
    cells = zip(*(table.cells(column) for column in ("submission", "reviewer", "rule", "evidence", "source")))
    for row, (submission, reviewer, rule, evidence, source) in enumerate(cells):
        if row not in nothing:
            seen.setdefault(DeclaredConflict(submission, reviewer, rule or "declared", evidence, source), row)
    if nothing:
        notices.append(Notice("no-conflict", f"{name}: {len(nothing)} rows have the value 0 and bar nothing"))
    repeats = len(table) - len(nothing) - len(seen)
    if repeats:
        notices.append(repeated_rows(name, repeats))
    dated = sum(bool(since or until) for since, until in zip(table.cells("since"), table.cells("until")))
    if dated:
        text = f"{name}: {dated} conflicts carry dates; dates are not used, the pairs are barred"
        notices.append(Notice("conflict-dates", text, data={"file": name, "rows": dated}))
    return _parsed(tuple(seen), table, np.array(list(seen.values()), dtype=np.int64), notices)


def read_locks(
    data: bytes,
    *,
    name: str = "locks.csv",
    columns: Sequence[str] | None = None,
    submissions: Collection[str] | None = None,
    reviewers: Collection[str] | None = None,
) -> Parsed[tuple[Lock, ...]]:
    """Pairs that are held already. Otherwise as `read_scores`."""
    table, faults = _pairs(data, name, (), (), columns, submissions, reviewers)
    kept, notices = once(table, ("submission", "reviewer"), [None] * len(table), "locks", faults)
    faults.raise_if_any()
    first, second = table.cells("submission"), table.cells("reviewer")
    return _parsed(tuple(Lock(first[row], second[row]) for row in kept), table, kept, notices)


def read_loads(
    data: bytes, *, name: str = "loads.csv", columns: Sequence[str] | None = None
) -> Parsed[tuple[Load, ...]]:
    """Personal limits, in reviews; a blank cell means the venue's default.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Every faulty row: ``missing-id``, ``not-a-count``, ``contradiction`` (two rows of one person that
        differ, or load_min above load_max).
    """
    table = read_table(data, name=name, required=("reviewer",), optional=("load_max", "load_min"), columns=columns)
    faults = Faults(name)
    if "load_max" not in table.columns and "load_min" not in table.columns:
        shown = ", ".join(repr(column) for notice in table.notices for column in notice.data.get("columns", ()))
        faults.add(
            f"there is no column load_max or load_min; found besides: {shown or 'nothing'}", "missing-column", row=1
        )
    faults.raise_if_any()
    require_ids(table, ("reviewer",), faults)
    limits = list(zip(counts(table, "load_max", faults), counts(table, "load_min", faults)))
    for line, (most, least) in zip(table.lines, limits):
        if most is not None and least is not None and least > most:
            faults.add(f"load_min {least} is above load_max {most}", "contradiction", "load_min", line, least)
    kept, notices = once(table, ("reviewer",), limits, "loads", faults)
    faults.raise_if_any()
    people = table.cells("reviewer")
    return _parsed(tuple(Load(people[row], *limits[row]) for row in kept), table, kept, notices)


def read_demands(
    data: bytes, *, name: str = "demands.csv", columns: Sequence[str] | None = None
) -> Parsed[tuple[Demand, ...]]:
    """Reviews wanted by each submission; a blank cell means the venue's default. Raises as `read_loads`."""
    table = read_table(data, name=name, required=("submission", "demand"), columns=columns)
    faults = Faults(name)
    require_ids(table, ("submission",), faults)
    wanted = counts(table, "demand", faults)
    kept, notices = once(table, ("submission",), wanted, "demands", faults)
    faults.raise_if_any()
    papers = table.cells("submission")
    return _parsed(tuple(Demand(papers[row], wanted[row]) for row in kept), table, kept, notices)


def _pairs(
    data: bytes,
    name: str,
    required: Sequence[str],
    optional: Sequence[str],
    columns: Sequence[str] | None,
    submissions: Collection[str] | None,
    reviewers: Collection[str] | None,
) -> tuple[Table, Faults]:
    """A table with the two id columns judged; swapped columns are raised alone, since they explain the rest."""
    table = read_table(
        data, name=name, required=("submission", "reviewer", *required), optional=optional, columns=columns
    )
    faults = Faults(name)
    if submissions is not None and reviewers is not None:
        first, second = table.cells("submission"), table.cells("reviewer")
        row = columns_swapped(first, second, submissions, reviewers)
        if row is not None:
            reason = (
                "the columns look swapped: the submission column holds reviewers and the reviewer column submissions"
            )
            faults.add(reason, "columns-swapped", "submission", table.lines[row], first[row])
            faults.raise_if_any()
    require_ids(table, ("submission", "reviewer"), faults)
    return table, faults


def _parsed(records: Records, table: Table, kept: IntArray, notices: Sequence[Notice]) -> Parsed[Records]:
    lines = np.array(table.lines, dtype=np.int64)[kept]
    lines.setflags(write=False)
    return Parsed(records, lines, (*table.notices, *notices), len(table))
