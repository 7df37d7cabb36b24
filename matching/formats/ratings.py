"""People's ratings of their own expertise beside a dataset, and predictions of other systems to judge by them.

The layout is that of the public gold standard (Stelmakh et al., arXiv 2303.16750): ``evaluations.tsv`` or
``evaluations.csv`` beside one folder for each version of the dataset.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from matching.errors import InvalidFileError
from matching.formats.container import Container, open_container
from matching.formats.decode import decode
from matching.formats.delimited import DELIMITERS
from matching.formats.faults import Faults
from matching.formats.json_text import parse_json
from matching.formats.openreview import has_part, looks_like_dataset
from matching.formats.table import read_scores
from matching.notices import Notice, in_words

__all__ = ["RatedDataset", "Scores", "open_predictions", "open_rated", "read_predictions", "read_ratings"]

RATING_FILES = ("evaluations.tsv", "evaluations.csv")
PREDICTION_ENDINGS = (".json", ".csv", ".tsv")
LOWEST, HIGHEST = 1.0, 5.0  # the scale participants were asked to use
PLACE = re.compile(r"(paper|expertise)([1-9][0-9]{0,5})")

Scores = dict[str, dict[str, float]]
"""Person -> submission -> number: a rating, or a predicted score."""


@dataclass(frozen=True, eq=False)
class RatedDataset:
    """Ratings and the versions of the dataset they speak of.

    Attributes
    ----------
    label : str
        Path, for messages.
    ratings : mapping of str to mapping of str to float
        Participant -> paper -> rating, [1, 5], higher is more expert.
    versions : mapping of str to Container
        Name -> files, for `read_dataset`; ``d_20_2`` comes before ``d_20_10``.
    notices : tuple of Notice
    """

    label: str
    ratings: Mapping[str, Mapping[str, float]]
    versions: Mapping[str, Container]
    notices: tuple[Notice, ...] = ()


def open_rated(source: str | Path) -> RatedDataset:
    """Open a folder of dataset versions with ratings, or one version with the ratings in or beside it.

    Parameters
    ----------
    source : str or Path
        A folder, or a zip file of one.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        No ratings, no version, or ratings at fault; see `read_ratings`.
    """
    files = open_container(source)
    place = Path(source).resolve()
    partly: list[str] = []
    if looks_like_dataset(files):
        versions = {place.name: files}
        around = {name: place.parent / name for name in RATING_FILES if (place.parent / name).is_file()}
        beside = Container(str(place.parent), {name: path.read_bytes for name, path in around.items()})
    else:
        inside = {folder.rstrip("/"): files.within(folder) for folder in files.folders()}
        versions = {name: inside[name] for name in sorted(inside, key=_natural) if looks_like_dataset(inside[name])}
        partly = [name for name in sorted(inside, key=_natural) if name not in versions and has_part(inside[name])]
        beside = files
    holder = files if any(name in files for name in RATING_FILES) else beside
    there = [name for name in RATING_FILES if name in holder]
    if not there:
        raise InvalidFileError(f"{files.label} has no ratings: looked for {' and '.join(RATING_FILES)}")
    if not versions:
        raise InvalidFileError(
            f"{files.label} holds no version of a dataset: looked for folders with archives/<person>.jsonl and "
            "submissions.json, submissions.jsonl or submissions/"
        )
    ratings, notices = read_ratings(holder.read(there[0]), name=there[0])
    if len(there) > 1:
        text = f"{there[0]} was read, {there[1]} beside it not"
        notices = (Notice("ignored-file", text, data={"files": there[1:]}), *notices)
    if partly:
        text = f"not read, archives or submissions are missing: {in_words(partly)}"
        notices = (Notice("incomplete-version", text, data={"versions": partly}), *notices)
    return RatedDataset(files.label, ratings, versions, notices)


def read_ratings(data: bytes, *, name: str = "evaluations.tsv") -> tuple[Scores, tuple[Notice, ...]]:
    """Ratings of papers by participants.

    Parameters
    ----------
    data : bytes
        A header with ParticipantID, Paper1, Paper2, ..., Expertise1, Expertise2, ... in any order, separated
        by tabs, commas or semicolons; one participant a row, blank cells where fewer papers were rated.
    name : str
        For messages.

    Returns
    -------
    ratings : dict of str to dict of str to float
        Participant -> paper -> rating, [1, 5].
    notices : tuple of Notice
        Papers without a rating.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Every faulty row: ``missing-column``, ``missing-id``, ``repeated-id``, ``not-a-number``,
        ``out-of-range``, ``wrong-width``; ``empty-file`` without any rating.
    """
    faults = Faults(name)
    rows = _rows(decode(data, name), faults)
    header = [cell.strip().casefold() for cell in rows[0][1]] if rows else []
    places = {cell: at for at, cell in enumerate(header)}
    numbers = {kind: {int(found[2]) for cell in header if (found := PLACE.fullmatch(cell)) and found[1] == kind}
               for kind in ("paper", "expertise")}  # fmt: skip
    if not rows:
        faults.add("the file is empty", "empty-file")
    elif "participantid" not in places:
        faults.add("there is no column ParticipantID", "missing-column", "ParticipantID", 1, header[:5])
    for kind, other in (("Paper", "Expertise"), ("Expertise", "Paper")) if rows else ():
        lacking = numbers[other.casefold()] - numbers[kind.casefold()] or (set() if numbers["paper"] else {1})
        for number in sorted(lacking):
            faults.add(f"there is no column {kind}{number}", "missing-column", f"{kind}{number}", 1)
    if len(places) < len(header):
        faults.add("a column is there twice", "ambiguous-column", row=1)
    faults.raise_if_any()
    ratings: Scores = {}
    unrated = 0
    for line, cells in rows[1:]:
        if len(cells) > len(header) and any(cell.strip() for cell in cells[len(header) :]):
            faults.add(f"has {len(cells)} cells, the header has {len(header)}", "wrong-width", row=line)
            continue
        cells = [cell.strip() for cell in cells] + [""] * (len(header) - len(cells))
        person = cells[places["participantid"]]
        if not person:
            faults.add("the participant is missing", "missing-id", "ParticipantID", line)
        elif person in ratings:
            faults.add(f"participant {person} is there twice", "repeated-id", "ParticipantID", line, person)
        own = ratings.setdefault(person, {})
        for number in sorted(numbers["paper"]):
            paper, cell = cells[places[f"paper{number}"]], cells[places[f"expertise{number}"]]
            rating = _rating(cell, f"Expertise{number}", faults, line)
            if paper and paper in own:
                faults.add(f"paper {paper} is rated twice", "repeated-id", f"Paper{number}", line, paper)
            elif cell and not paper:
                faults.add("rates no paper", "missing-id", f"Paper{number}", line)
            elif paper and not cell:
                unrated += 1
            elif paper:
                own[paper] = rating
    if not faults and not any(ratings.values()):
        faults.add("holds no ratings", "empty-file")
    faults.raise_if_any()
    text = f"{name}: {unrated} papers carry no rating and were left out"
    return ratings, (Notice("unrated-papers", text, data={"count": unrated}),) if unrated else ()


def _rows(text: str, faults: Faults) -> list[tuple[int, list[str]]]:
    """Line number and cells of every row that is not blank, under the delimiter that splits the header most."""
    head = next((line for line in io.StringIO(text) if line.strip()), "")
    delimiter = max(DELIMITERS, key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, line = [], 1
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                rows.append((line, cells))
            line = reader.line_num + 1
    except csv.Error as error:
        faults.add(f"the quotes of the row that starts here do not match ({error})", "quoting", row=line)
    faults.raise_if_any()
    return rows


def _rating(cell: str, column: str, faults: Faults, line: int) -> float:
    """A cell as a rating; NaN where it is blank or at fault."""
    if not cell:
        return math.nan
    try:
        value = float(cell if "_" not in cell else "")
    except ValueError:
        faults.add(f"{cell!r} is not a number", "not-a-number", column, line, cell)
        return math.nan
    if not LOWEST <= value <= HIGHEST:
        faults.add(f"must be between {LOWEST:g} and {HIGHEST:g}, got {cell}", "out-of-range", column, line, cell)
    return value


def open_predictions(source: str | Path, versions: Iterable[str]) -> dict[str, tuple[str, bytes]]:
    """The file of predictions of each version: its name and its bytes.

    Parameters
    ----------
    source : str or Path
        A file, which then speaks for every version, or a folder with one file a version. A file belongs to
        the version that its name contains: ``specter_d_20_1_ta.json`` to ``d_20_1``, not to ``d_20_10``.
    versions : iterable of str

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Nothing there; no file, or several, for a version.
    """
    path = Path(source)
    versions = list(versions)
    try:
        if path.is_file():
            return dict.fromkeys(versions, (path.name, path.read_bytes()))
        if not path.is_dir():
            raise InvalidFileError(f"there is no folder or file at {path}")
        names = sorted(file.name for file in path.iterdir() if file.name.endswith(PREDICTION_ENDINGS))
        faults = Faults(str(path))
        found = {}
        for version in versions:
            mark = re.compile(rf"(?<![^\W_]){re.escape(version)}(?![^\W_])")
            fitting = [name for name in names if mark.search(name)]
            if len(fitting) == 1:
                found[version] = (fitting[0], (path / fitting[0]).read_bytes())
            elif fitting:
                faults.add(f"several files are for {version}: {', '.join(fitting)}", "ambiguous-file", value=fitting)
            else:
                faults.add(f"no file ({', '.join(PREDICTION_ENDINGS)}) has {version} in its name", "missing-file")
        faults.raise_if_any()
        return found
    except OSError as error:
        raise InvalidFileError(f"{path} cannot be read: {error.strerror or error}") from error


def read_predictions(data: bytes, *, name: str) -> Scores:
    """Scores that another system gave to pairs.

    Parameters
    ----------
    data : bytes
        JSON ``{reviewer: {submission: score}}`` where the name ends in ``.json`` or the first character is
        ``{``; else rows of submission, reviewer and score, or a header that names these columns.
    name : str

    Returns
    -------
    dict of str to dict of str to float
        Reviewer -> submission -> score, any finite number, higher is better.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        As `parse_json` and `read_scores`; ``not-an-object``, ``not-a-number``, ``empty-file``.
    """
    faults = Faults(name)
    scores: Scores = {}
    if PurePosixPath(name).suffix.casefold() == ".json" or data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        value = parse_json(data, faults)
        if not faults and not isinstance(value, Mapping):
            faults.add("must be one object of scores by reviewer", "not-an-object")
        for person, own in (value if isinstance(value, Mapping) else {}).items():
            if not isinstance(own, Mapping):
                faults.add(f"{person}: must be an object of scores by submission", "not-an-object", person)
                continue
            scores[person] = {paper: _score(cell, f"{person}.{paper}", faults) for paper, cell in own.items()}
        faults.raise_if_any()
    else:
        columns = ("submission", "reviewer", "score") if _starts_with_scores(data, name) else None
        table = read_scores(data, name=name, columns=columns).records
        for paper, person, number in zip(table.submissions, table.reviewers, table.values.tolist()):
            scores.setdefault(person, {})[paper] = number
    if not any(scores.values()):
        faults.add("holds no scores", "empty-file")
    faults.raise_if_any()
    return scores


def _score(value: Any, field: str, faults: Faults) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.add("must be a number", "not-a-number", field, value=value)
        return math.nan
    try:
        return float(value)
    except OverflowError:
        faults.add("is too large for a number", "not-a-number", field)
        return math.nan


def _starts_with_scores(data: bytes, name: str) -> bool:
    """Whether the first row is already a pair with its score, as systems write without a header."""
    rows = (re.split(r"[,;\t]", line) for line in io.StringIO(decode(data, name)) if line.strip())
    try:
        float(next(rows, [""])[-1].strip().strip('"'))  # "nan", too: the row is then refused by its number
    except ValueError:
        return False
    return True


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorting key under which d_20_2 comes before d_20_10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
