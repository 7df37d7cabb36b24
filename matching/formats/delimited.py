"""Delimited files: bytes to named columns and back, in every dialect a spreadsheet program writes.

Columns are found by the name in the header, never by position; a file without a header is read only
where the caller declares its columns.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matching.errors import InvalidFileError, Issue
from matching.formats.decode import decode
from matching.formats.faults import Faults
from matching.notices import Notice

__all__ = ["SYNONYMS", "Table", "read_table", "write_table"]

DELIMITERS = (",", ";", "\t")
STATED = re.compile(r'"?sep=([,;\t])"?[,;\t ]*(?=\r|\n|$)', re.IGNORECASE)
TEXT_COLUMNS = frozenset({"evidence"})  # cells whose outer blanks are part of the text

SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "submission": (
        "submission", "submissionid", "submissionnumber", "paper", "paperid", "papernumber", "pid",
        "article", "articleid", "manuscript", "manuscriptid", "noteid", "forum", "entityb", "head",
    ),
    "reviewer": (
        "reviewer", "reviewerid", "revieweremail", "rid", "user", "userid", "username", "email", "emailaddress",
        "person", "personid", "member", "memberid", "profile", "profileid", "signature", "entitya", "tail",
    ),
    "score": ("score", "affinity", "similarity", "weight", "value", "aggregatescore"),
    "bid": ("bid", "bidvalue", "preference", "pref", "label", "tag", "interest"),
    "rule": ("rule", "reason", "kind", "type", "conflictrule", "conflictreason", "conflicttype"),
    "evidence": ("evidence", "details", "comment", "explanation"),
    "source": ("source", "declaredby"),
    "since": ("since", "from", "start"),
    "until": ("until", "to", "end"),
    "value": ("value", "weight"),
    "load_max": (
        "loadmax", "maxload", "load", "max", "quota", "quotaforreview", "maxpapers", "custommaxpapers",
        "maxreviews", "capacity",
    ),
    "load_min": ("loadmin", "minload", "min", "minpapers", "minreviews"),
    "demand": ("demand", "reviews", "reviewsneeded", "numreviews", "numreviewers", "userdemand", "customuserdemands"),
    "deleted": ("ddate",),
}  # fmt: skip
"""Column -> header names that mean it, compared without capitals, blanks, ``_``, ``-``, ``#``, ``.`` and ``:``."""


@dataclass(frozen=True, eq=False)
class Table:
    """A delimited file as columns.

    Attributes
    ----------
    name : str
        File name, for messages.
    columns : mapping of str to list of str
        Column -> its cells, all of one length; cells are trimmed except in text columns. An optional column
        that the file lacks is absent.
    lines : list of int
        Line number of each row in the file, from 1; the first line where a row spans several.
    notices : tuple of Notice
        Columns and rows that were left out, and why.
    """

    name: str
    columns: Mapping[str, list[str]]
    lines: list[int]
    notices: tuple[Notice, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def cells(self, column: str) -> list[str]:
        """Cells of a column; blanks where the file lacks it."""
        return self.columns[column] if column in self.columns else [""] * len(self.lines)


def read_table(
    data: bytes,
    *,
    name: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    columns: Sequence[str] | None = None,
) -> Table:
    """Read a comma-, semicolon- or tab-separated file.

    Parameters
    ----------
    data : bytes
        UTF-8 with or without a byte order mark; LF, CRLF or CR; quoted delimiters and line breaks; blank
        lines are skipped, and a first line ``sep=;`` states the delimiter.
    name : str
        File name for messages.
    required, optional : sequence of str
        Columns, keys of SYNONYMS.
    columns : sequence of str or None
        Columns of a file without a header, in order; None where the first row is a header.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        ``not-utf8``, ``quoting``, ``too-long``, ``empty-file``, ``missing-column``, ``ambiguous-column``,
        ``header-row``, ``wrong-width``; `Issue.row` is a line number, every faulty row is listed.

    Notes
    -----
    Time and memory grow with the file: about 1.5 s for a million rows of three columns.
    """
    text, stated = _without_stated_delimiter(decode(data, name))
    faults = Faults(name)
    wanted = [*required, *optional]
    if columns is not None:
        _check_declared(columns, required, [*wanted, "deleted"], faults)
    first = next((_first_row(text, mark) for mark in DELIMITERS if _first_row(text, mark)), None)
    if first is None:
        if columns is None:
            faults.add(
                f"the file is empty; expected a header with the columns {', '.join(required)}", "empty-file", row=1
            )
            faults.raise_if_any()
        return Table(name, {column: [] for column in wanted if column in (columns or ())}, [])
    delimiter = stated or _delimiter(text, [*wanted, "deleted"], columns)
    rows = _rows(text, delimiter, name)
    notices: list[Notice] = []
    if columns is None:
        line, header = next(rows)
        places = _header_places(header, required, [*optional, "deleted"], line, faults, notices)
    else:
        places = {column: place for place, column in enumerate(columns) if column in wanted or column == "deleted"}
        header = list(columns)
        line, cells = _first_row(text, delimiter) or (1, [])
        if _is_header(cells, columns):
            faults.add("this row is a header, but the file was declared to have none", "header-row", row=line)
    faults.raise_if_any()
    table = _collect(name, rows, places, len(header), frozenset(required), faults, notices)
    faults.raise_if_any()
    return table


def _without_stated_delimiter(text: str) -> tuple[str, str | None]:
    """The text without a first line ``sep=;``, by which Excel is told the delimiter, and what that line says.

    The line stays as a blank one, so that all others keep their numbers.
    """
    found = STATED.match(text)
    return (text[found.end() :], found[1]) if found else (text, None)


def _check_declared(columns: Sequence[str], required: Sequence[str], wanted: Sequence[str], faults: Faults) -> None:
    """Raise where declared columns lack a name or give one twice; an empty file is no excuse."""
    for column in wanted:
        if column in required and column not in columns:
            faults.add(f"the declared columns lack {column!r}", "missing-column", column, 1)
        elif columns.count(column) > 1:
            faults.add(f"{column!r} is declared more than once", "ambiguous-column", column, 1)
    faults.raise_if_any()


def _collect(
    name: str,
    rows: Iterator[tuple[int, list[str]]],
    places: Mapping[str, int],
    width: int,
    required: frozenset[str],
    faults: Faults,
    notices: list[Notice],
) -> Table:
    """The rows as columns; trusts `places`."""
    deleted = places.get("deleted")
    kept = {column: place for column, place in places.items() if column != "deleted"}
    out: dict[str, list[str]] = {column: [] for column in kept}
    takers = [(place, out[column].append, column in TEXT_COLUMNS) for column, place in kept.items()]
    needed = max((kept[column] for column in required), default=-1) + 1
    lines: list[int] = []
    names: dict[str, str] = {}  # one object for each distinct cell: a million rows hold few distinct ids
    share = names.setdefault
    n_deleted = 0
    for line, cells in rows:
        found = len(cells)
        if found != width:
            if found < needed or (found > width and any(cell.strip() for cell in cells[width:])):
                hint = "; a comma inside a cell needs quotes" if found > width else ""
                faults.add(f"has {found} cells, the header has {width}{hint}", "wrong-width", row=line, value=found)
                continue
            cells += [""] * (width - found)
        if deleted is not None and cells[deleted].strip():
            n_deleted += 1
            continue
        lines.append(line)
        for place, take, verbatim in takers:
            cell = cells[place]
            if not verbatim:
                cell = cell.strip()
            take(share(cell, cell))
    if n_deleted:
        notices.append(Notice("deleted-rows", f"{name}: {n_deleted} rows are marked as deleted and were left out"))
    return Table(name, out, lines, tuple(notices))


def _rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row that is not blank."""
    # newline="" keeps line breaks inside quoted cells as they are and still splits rows at LF, CRLF and CR.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    line = 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        if "field larger than field limit" in str(error):
            most = csv.field_size_limit()
            reason, code = f"a cell of the row that starts here has more than {most} characters", "too-long"
        else:
            reason, code = f"the quotes of the row that starts here do not match ({error})", "quoting"
        raise InvalidFileError(issues=[Issue(reason, code, row=line, source=name)]) from error


def _first_row(text: str, delimiter: str) -> tuple[int, list[str]] | None:
    try:
        return next(_rows(text, delimiter, ""), None)
    except InvalidFileError:
        # Matching quotes are judged when the file is read; here the row only shows which delimiter fits.
        line = next((number for number, row in enumerate(io.StringIO(text), start=1) if row.strip()), 1)
        return line, [text]


def _delimiter(text: str, wanted: Sequence[str], columns: Sequence[str] | None) -> str:
    """The delimiter under which the first row shows most known columns, then most cells, then the comma."""
    known = {name for column in wanted for name in SYNONYMS[column]}

    def fit(delimiter: str) -> tuple[int, int]:
        cells = (_first_row(text, delimiter) or (1, []))[1]
        if columns is not None:
            return int(len(cells) >= len(columns)), len(cells)
        return sum(_plain(cell) in known for cell in cells), len(cells)

    return max(DELIMITERS, key=fit)


def _plain(header: str) -> str:
    return re.sub(r"[\s_\-#.:]+", "", header.casefold())


def _is_header(cells: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether a row only holds names of the declared columns."""
    names = {name for column in columns for name in SYNONYMS.get(column, ())}
    return bool(cells) and all(_plain(cell) in names for cell in cells)


def _header_places(
    header: Sequence[str],
    required: Sequence[str],
    optional: Sequence[str],
    line: int,
    faults: Faults,
    notices: list[Notice],
) -> dict[str, int]:
    """Column -> position in the header; what is missing, ambiguous or unused is reported."""
    plain = [_plain(cell) for cell in header]
    places: dict[str, int] = {}
    missing = []
    for column in (*required, *optional):
        found = [place for place, cell in enumerate(plain) if cell in SYNONYMS[column] and place not in places.values()]
        # The column's own name wins over a synonym beside it ("reviewer" beside "email").
        own = [place for place in found if plain[place] == _plain(column)]
        if len(own) == 1:
            found = own
        if len(found) > 1:
            names = ", ".join(repr(header[place].strip()) for place in found)
            faults.add(
                f"columns {names} all mean {column}; keep one or name it {column!r}", "ambiguous-column", column, line
            )
        elif found:
            places[column] = found[0]
        elif column in required:
            missing.append(column)
    shown = ", ".join(repr(cell.strip()) for cell in header)
    for column in missing:
        faults.add(
            f"there is no column {column!r} (also read: {', '.join(SYNONYMS[column])}); found {shown}. "
            "A file without a header is read only where its columns are declared",
            "missing-column",
            column,
            line,
            [cell.strip() for cell in header],
        )
    unused = [cell.strip() for place, cell in enumerate(header) if cell.strip() and place not in places.values()]
    if unused and not missing:
        notices.append(
            Notice(
                "ignored-columns",
                f"{faults.source}: not used: the columns {', '.join(map(repr, unused))}",
                data={"file": faults.source, "columns": unused},
            )
        )
    return places


def write_table(
    header: Sequence[str], rows: Iterable[Sequence[str | int | float | None]], *, for_spreadsheets: bool = False
) -> bytes:
    """Write a comma-separated file; the twin of `read_table`.

    Parameters
    ----------
    header : sequence of str
    rows : iterable of sequences
        Text is quoted where it must be, floats are written so that they read back equal, None is a blank,
        truth values are ``true`` and ``false``.
    for_spreadsheets : bool
        Adds a byte order mark and CRLF, and puts an apostrophe before text that a spreadsheet program
        would run as a formula. Such a file is for reading by people, not for reading back.
    """
    end = "\r\n" if for_spreadsheets else "\n"
    lines = [",".join(_cell(cell, for_spreadsheets) for cell in row) for row in (header, *rows)]
    text = end.join(lines) + end
    return text.encode("utf-8-sig" if for_spreadsheets else "utf-8")


def _cell(value: str | int | float | None, guard: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value))  # float() also turns a numpy number into one whose repr is a plain number
    if guard and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        value = "'" + value
    if value != value.strip() or any(mark in value for mark in ',;"\r\n\t'):
        return '"' + value.replace('"', '""') + '"'
    return value
