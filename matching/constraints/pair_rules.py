"""Rules about single pairs: ``same``, ``bar`` and ``available`` as classes of submissions and whom they bar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date

import numpy as np
from scipy import sparse

from matching.constraints.bars import ClassBar
from matching.constraints.choice import Choice
from matching.constraints.columns import Column
from matching.rules.values import moment
from matching.types import IntArray

__all__ = ["PAIR_RULES"]


def _same(choice: Choice) -> ClassBar | None:
    """``same``: everybody who shares no value with the submission, those without one as the rule says."""
    sharing = choice.rule.options["attribute"]
    sets = choice.value_sets("submissions", sharing, "attribute")
    column = None if sets is None else choice.column("reviewers", sharing.reviewers, "attribute")
    if sets is None or column is None:
        return None
    attributes = choice.attributes
    if choice.rule.options["missing"] == "allowed":
        without = choice.cols[~column.known[choice.cols]]
        if without.size:
            text = f"reviewers without {sharing.reviewers} may review any submission"
            choice.tell("rule-without-value", text, attributes.reviewers, without)
        bound = choice.cols[column.known[choice.cols]]
    else:
        bound = choice.cols
    # complements row by row: never more than one line of all reviewers beside what is kept
    rows = [np.setdiff1d(bound, _row(sets.shared, at), assume_unique=True) for at in range(sets.shared.shape[0])]
    mine = choice.column("submissions", sharing.submissions, "attribute")

    def words(row: int, col: int) -> str:
        wanted = _values_of(mine, row)
        has = _values_of(column, col)
        who, what = attributes.reviewers.ids[col], attributes.submissions.ids[row]
        told = f"has {sharing.reviewers} {has}" if has else f"has no {sharing.reviewers}"
        return f"submission {what} has {sharing.submissions} {wanted}, reviewer {who} {told}"

    return ClassBar(choice.rule.name, _spread(choice, sets.lines, sets.of_line), _table(choice, rows), words)


def _bar(choice: Choice) -> ClassBar | None:
    """``bar``: chosen reviewers on chosen submissions, with ``sharing`` where they share a value."""
    attributes, sharing = choice.attributes, choice.rule.options.get("sharing")
    ids = attributes.submissions.ids, attributes.reviewers.ids
    if sharing is None:
        of_row = _spread(choice, choice.rows, np.zeros(choice.rows.size, dtype=np.int64))
        return ClassBar(
            choice.rule.name, of_row, _table(choice, [choice.cols]),
            lambda row, col: f"the rule bars reviewer {ids[1][col]} from submission {ids[0][row]}",
        )  # fmt: skip
    sets = choice.value_sets("submissions", sharing, "sharing")
    if sets is None:
        return None
    column = choice.column("submissions", sharing.submissions, "sharing")
    theirs = choice.column("reviewers", sharing.reviewers, "sharing")

    def words(row: int, col: int) -> str:
        told = f"{sharing.submissions} {_values_of(column, row)}", f"{sharing.reviewers} {_values_of(theirs, col)}"
        return f"submission {ids[0][row]} has {told[0]}, reviewer {ids[1][col]} has {told[1]}"

    return ClassBar(choice.rule.name, _spread(choice, sets.lines, sets.of_line), sets.shared, words)


def _available(choice: Choice) -> ClassBar | None:
    """``available``: reviewers away on more days of a submission's review window than the rule tolerates."""
    attributes, options = choice.attributes, choice.rule.options
    away = choice.column("reviewers", options["away"], "away")
    starts, stops = (_dates(choice, key) for key in ("from", "until"))
    if away is None or starts is None or stops is None:
        return None
    absences = _absences(choice, away)
    windows: dict[tuple[date, date], int] = {}
    lines, of_line = [], []
    for row in choice.rows.tolist():
        first, last = starts[row], stops[row]
        if first is None or last is None:
            continue
        if first > last:
            name = attributes.submissions.ids[row]
            choice.fault("until", f"the window of {name} ends before it begins", "contradiction", name)
            continue
        lines.append(row)
        of_line.append(windows.setdefault((first, last), len(windows)))
    if not choice.sound:
        return None
    without = np.setdiff1d(choice.rows, lines)
    if without.size:
        text = "it does not bind submissions without a window"
        choice.tell("rule-without-value", text, attributes.submissions, without)
    shut = []
    for first, last in windows:
        gone = [col for col, spans in absences.items() if _days(spans, first, last) > options["at_most"]]
        shut.append(np.array(gone, dtype=np.int64))
    at = dict(zip(lines, of_line))
    known = list(windows)

    def words(row: int, col: int) -> str:
        first, last = known[at[row]]
        who, what = attributes.reviewers.ids[col], attributes.submissions.ids[row]
        return f"reviewer {who} is away on {_days(absences[col], first, last)} days of the window of {what}, " + (
            f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
        )

    of_row = _spread(choice, np.array(lines, dtype=np.int64), np.array(of_line, dtype=np.int64))
    return ClassBar(choice.rule.name, of_row, _table(choice, shut), words)


def _dates(choice: Choice, key: str) -> list[date | None] | None:
    """A date for each submission: one for all, or each one's own; None after a fault."""
    text = choice.rule.options[key]
    n = choice.attributes.shape[0]
    if (fixed := moment(text)) is not None:
        return [fixed.date()] * n
    column = choice.column("submissions", text, key)
    if column is None:
        return None
    out: list[date | None] = [None] * n
    for row in choice.rows.tolist():
        for code in _row(column.member, row):
            found = moment(column.values[code])
            out[row] = None if found is None else found.date()
            if found is None:
                name = choice.attributes.submissions.ids[row]
                choice.fault(key, f"{text} of {name} is no date", "not-a-date", str(column.values[code]))
    return out


def _absences(choice: Choice, away: Column) -> dict[int, list[tuple[date, date]]]:
    """Column -> first and last day of each absence, in order, none overlapping."""
    found: dict[int, list[tuple[date, date]]] = {}
    for col in choice.cols.tolist():
        spans = []
        for code in _row(away.member, col):
            value = away.values[code]
            first, slash, last = str(value).partition("/")
            ends = moment(first), moment(last if slash else first)
            if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
                who = choice.attributes.reviewers.ids[col]
                reason = f'an absence of {who} must be a day or "first/last", such as "2025-07-01/2025-07-14"'
                choice.fault("away", reason, "not-a-date", str(value))
            else:
                spans.append((ends[0].date(), ends[1].date()))
        joined: list[tuple[date, date]] = []
        for first_day, last_day in sorted(spans):
            if joined and first_day <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(last_day, joined[-1][1]))
            else:
                joined.append((first_day, last_day))
        if joined:
            found[col] = joined
    return found


def _days(spans: Sequence[tuple[date, date]], first: date, last: date) -> int:
    """Days of absence within a window, both ends of each counted."""
    overlaps = [(max(start, first), min(stop, last)) for start, stop in spans]
    return sum((stop - start).days + 1 for start, stop in overlaps if start <= stop)


def _spread(choice: Choice, lines: IntArray, of_line: IntArray) -> IntArray:
    of_row = np.full(choice.attributes.shape[0], -1, dtype=np.int64)
    of_row[lines] = of_line
    return of_row


def _table(choice: Choice, rows: Sequence[IntArray]) -> sparse.csr_array:
    """Sorted lists of reviewers as a table of shape (n_classes, n_reviewers), bool."""
    indptr = np.concatenate([[0], np.cumsum([line.size for line in rows])]).astype(np.int64)
    indices = np.concatenate(rows).astype(np.int32) if rows else np.empty(0, dtype=np.int32)
    shape = (len(rows), choice.attributes.shape[1])
    return sparse.csr_array((np.ones(indices.size, dtype=bool), indices, indptr), shape=shape)


def _row(table: sparse.csr_array, at: int) -> IntArray:
    line: IntArray = table.indices[table.indptr[at] : table.indptr[at + 1]].astype(np.int64)
    return line


def _values_of(column: Column | None, at: int) -> str:
    return "" if column is None else " and ".join(column.labels[code] for code in _row(column.member, at))


PAIR_RULES: Mapping[str, Callable[[Choice], ClassBar | None]] = {"same": _same, "bar": _bar, "available": _available}
"""Kind -> what makes its bars; None after a fault, or where nothing is barred."""
