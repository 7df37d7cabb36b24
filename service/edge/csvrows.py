"""CSV bodies as the rows of the JSON form; `matching.formats` reads the files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matching.errors import InvalidFileError, Issue
from matching.formats.bid_labels import ACCEPTED_BIDS, bid_label
from matching.formats.table import read_conflicts, read_locks, read_table
from matching.notices import Notice
from service.edge.errors import InvalidRequestError, PlacedIssue

__all__ = ["CsvReader", "CsvRows", "bid_rows", "conflict_rows", "lock_rows", "score_rows"]

NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
ACCEPTED = ", ".join(ACCEPTED_BIDS)


@dataclass(frozen=True)
class CsvRows:
    """A CSV body as rows.

    Attributes
    ----------
    rows : list of dict
        Fields as in the JSON form.
    lines : sequence of int
        Line number of each row, from 1.
    faults : sequence of Issue
        Rows that could not be read; their `row` is a line number.
    notices : sequence of Notice
        What was left out, for example columns nobody asked for.
    """

    rows: list[dict[str, Any]]
    lines: Sequence[int]
    faults: Sequence[Issue] = ()
    notices: Sequence[Notice] = ()


CsvReader = Callable[[bytes, "Sequence[str] | None"], CsvRows]
"""(body, columns of a body without header) -> rows; raises InvalidFileError for what no row survives."""


def bid_rows(data: bytes, columns: Sequence[str] | None = None) -> CsvRows:
    """submission, reviewer, bid; labels and numbers of other systems become ours."""

    def judge(cell: str) -> tuple[Any, str, str]:
        return (
            bid_label(cell),
            f"bid {cell[:80]!r} is not known; accepted: {ACCEPTED}, and the words of other systems",
            "unknown-bid",
        )

    return _rows(data, "bids", "bid", judge, columns)


def score_rows(data: bytes, columns: Sequence[str] | None = None) -> CsvRows:
    """submission, reviewer, score; finite numbers with a decimal point."""

    def judge(cell: str) -> tuple[Any, str, str]:
        if NUMBER.fullmatch(cell) and math.isfinite(value := float(cell)):
            return value, "", ""
        if cell.lower().lstrip("+-") in ("nan", "inf", "infinity") or NUMBER.fullmatch(cell):
            return (
                None,
                f"score {cell[:80]!r} is not a finite number; leave the row out where it is unknown",
                "not-finite",
            )
        words = (
            f"score {cell[:80]!r} is not a number" if cell else "score is blank; leave the row out where it is unknown"
        )
        return None, words, "not-a-number"

    return _rows(data, "scores", "score", judge, columns)


def conflict_rows(data: bytes, columns: Sequence[str] | None = None) -> CsvRows:
    """submission, reviewer, and where present rule, evidence, source."""
    _check(data, "conflicts", ("submission", "reviewer"), columns)
    parsed = read_conflicts(data, name="conflicts.csv", columns=columns)
    fields = ("submission", "reviewer", "rule", "evidence", "source")
    rows = [{name: getattr(record, name) for name in fields} for record in parsed.records]
    return CsvRows(rows, parsed.lines.tolist(), (), parsed.notices)


def lock_rows(data: bytes, columns: Sequence[str] | None = None) -> CsvRows:
    """submission, reviewer."""
    _check(data, "locks", ("submission", "reviewer"), columns)
    parsed = read_locks(data, name="locks.csv", columns=columns)
    rows = [{"submission": record.submission, "reviewer": record.reviewer} for record in parsed.records]
    return CsvRows(rows, parsed.lines.tolist(), (), parsed.notices)


def _rows(
    data: bytes, name: str, field: str, judge: Callable[[str], tuple[Any, str, str]], columns: Sequence[str] | None
) -> CsvRows:
    """Rows of two ids and one judged cell; a bad cell spoils its row only, so that a lenient upload can go on."""
    source = f"{name}.csv"
    required = ("submission", "reviewer", field)
    _check(data, name, required, columns)
    table = read_table(data, name=source, required=required, columns=columns)
    rows, lines, faults = [], [], []
    for line, submission, reviewer, cell in zip(table.lines, *(table.cells(column) for column in required)):
        value, reason, code = judge(cell)
        if value is None:
            faults.append(Issue(reason, code, field, line, cell, source))
        else:
            rows.append({"submission": submission, "reviewer": reviewer, field: value})
            lines.append(line)
    return CsvRows(rows, lines, faults, table.notices)


def _check(data: bytes, name: str, required: Sequence[str], columns: Sequence[str] | None) -> None:
    """Refuse a body without rows, one with a NUL (no text in a database holds it), and useless declared columns."""
    source = f"{name}.csv"
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise InvalidFileError(issues=[Issue("the body is empty", "empty-file", row=1, source=source)])
    at = data.find(b"\x00")
    if at >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise InvalidFileError(issues=[Issue("holds a NUL character", "unfit-text", row=line, source=source)])
    if columns is None:
        return
    missing = [column for column in required if columns.count(column) != 1]
    if missing:
        words = f"must name {', '.join(required)} once each, in the order of the file"
        shown = ",".join(columns)
        raise InvalidRequestError(
            issues=[PlacedIssue(words, "missing-column", "columns", None, shown, "query", path=None)]
        )
