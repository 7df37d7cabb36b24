"""What the delimited files have in common: ids that must be there, numbers, repeated rows, swapped columns."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from matching.formats.delimited import Table
from matching.formats.faults import Faults
from matching.notices import Notice
from matching.params import MOST_DEFAULT
from matching.profiles.identity import fold_address, fold_id
from matching.types import IntArray

__all__ = ["MOST_SCORE", "columns_swapped", "counts", "numbers", "once", "repeated_rows", "require_ids"]

MOST = 1 << 31  # as in AssignmentProblem: no count of reviews comes near
MOST_SCORE = int(
    MOST_DEFAULT
)  # in size; single precision and the solver's whole numbers lose more than they hold beyond
VALUE_FIELDS: Mapping[str, str] = {"scores": "score", "bids": "bid", "loads": "load_max", "demands": "demand"}


def columns_swapped(
    first: Sequence[str], second: Sequence[str], submissions: Collection[str], reviewers: Collection[str]
) -> int | None:
    """Whether reviewers stand in the column of submissions and the other way round.

    Parameters
    ----------
    first, second : sequence of str
        Cells of the submission and of the reviewer column.
    submissions, reviewers : collection of str
        Known ids; addresses may be among the reviewers.

    Returns
    -------
    int or None
        First swapped row where more rows make sense swapped than as they stand, else None.
    """
    # Folding is slow beside a look-up, and a long file repeats few names.
    folded = {name: fold_id(name) for name in {*first, *second}}
    papers, people = set(submissions), {fold_id(name) for name in reviewers}
    straight, swapped, row = 0, 0, None
    for place, (left, right) in enumerate(zip(first, second)):
        if left in papers and folded[right] in people:
            straight += 1
        elif right in papers and folded[left] in people:
            swapped += 1
            row = place if row is None else row
    return row if swapped > straight else None


def require_ids(table: Table, columns: Sequence[str], faults: Faults) -> None:
    for column in columns:
        if "" in table.columns[column]:
            for line, cell in zip(table.lines, table.columns[column]):
                if not cell:
                    faults.add(f"the {column} is missing", "missing-id", column, line)


def numbers(table: Table, column: str, faults: Faults, most: float = math.inf) -> list[float]:
    """Cells as floats of at most `most` in size, NaN where at fault."""
    values = []
    for line, cell in zip(table.lines, table.columns[column]):
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
            faults.add(_why_no_number(cell, column), "not-a-number", column, line, cell)
        else:
            if not math.isfinite(value):
                faults.add(f"{cell} is not a finite number", "not-finite", column, line, cell)
                value = math.nan
            elif "_" in cell:
                faults.add(f"{cell!r} is not a number", "not-a-number", column, line, cell)
            elif abs(value) > most:
                reason = f"{cell} does not lie between {-most:,.0f} and {most:,.0f}; rescale the column"
                faults.add(reason, "out-of-range", column, line, cell)
                value = math.nan
        values.append(value)
    return values


def _why_no_number(cell: str, column: str) -> str:
    if not cell:
        return f"the {column} is missing; leave the row out where it is unknown"
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return f"{cell!r} is not a number"
    return f"{cell!r} is not a number; write {cell.replace(',', '.')} with a point"


def counts(table: Table, column: str, faults: Faults) -> list[int | None]:
    """Cells as whole numbers of at least 0, None where blank or at fault."""
    values: list[int | None] = []
    for line, cell in zip(table.lines, table.cells(column)):
        fits = cell.isascii() and cell.isdigit() and len(cell) <= 10 and int(cell) < MOST
        if cell and not fits:
            faults.add(
                f"{column} must be a whole number of at least 0, got {cell!r}", "not-a-count", column, line, cell
            )
        values.append(int(cell) if fits else None)
    return values


def once(
    table: Table, columns: Sequence[str], values: Sequence[Any], what: str, faults: Faults
) -> tuple[IntArray, list[Notice]]:
    """Rows to keep: the first of every key. Later ones that agree are left out with a notice, others are faults."""
    n_rows = len(table)
    keys = np.zeros(n_rows, dtype=np.int64)
    for column in columns:
        codes: dict[str, int] = {}
        folded: dict[str, int] = {}
        for cell in set(table.columns[column]):
            # Ids may differ in capitals alone, addresses never do.
            key = fold_address(cell) if column == "reviewer" and "@" in cell else cell
            codes[cell] = folded.setdefault(key, len(folded))
        column_codes = np.fromiter((codes[cell] for cell in table.columns[column]), dtype=np.int64, count=n_rows)
        keys = keys * max(len(folded), 1) + column_codes
    order = np.argsort(keys, kind="stable")
    repeated = np.zeros(n_rows, dtype=bool)
    repeated[1:] = keys[order][1:] == keys[order][:-1]
    head = -1
    for row, again in zip(order.tolist() if repeated.any() else (), repeated.tolist()):
        if not again:
            head = row
        elif values[row] != values[head] and values[row] == values[row] and values[head] == values[head]:
            key = ", ".join(table.columns[column][row] for column in columns)
            faults.add(
                f"{key}: {_shown(values[row])} contradicts {_shown(values[head])} on line {table.lines[head]}",
                "contradiction",
                VALUE_FIELDS.get(what, what),
                table.lines[row],
                _shown(values[row]),
            )
    kept = np.sort(order[~repeated])
    n_repeats = n_rows - len(kept)
    return kept, [repeated_rows(table.name, n_repeats)] if n_repeats else []


def _shown(value: Any) -> Any:
    """A value as a chair wrote it: the limits of a load as "load_max 3"."""
    if isinstance(value, tuple):
        named = [f"{name} {limit}" for name, limit in zip(("load_max", "load_min"), value) if limit is not None]
        return ", ".join(named) or "no limit"
    return value


def repeated_rows(name: str, count: int) -> Notice:
    """The notice that some rows say what an earlier one said."""
    text = f"{name}: {count} rows repeat an earlier one and count once"
    return Notice("repeated-rows", text, data={"file": name, "rows": count})
