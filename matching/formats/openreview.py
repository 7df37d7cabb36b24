"""Datasets in the layout of OpenReview's expertise service: archives of publications, submissions, bids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from matching.errors import InputError
from matching.formats.bid_labels import bid_label
from matching.formats.bundle_join import KnownPeople
from matching.formats.bundle_reader import BundleReader
from matching.formats.container import Container, open_container
from matching.formats.faults import Faults
from matching.formats.fields import Fields
from matching.formats.json_text import parse_json, read_jsonl
from matching.formats.layout import DATASET
from matching.formats.side_files import read_side_files
from matching.formats.table import Parsed
from matching.notices import Notice
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, Venue

__all__ = ["has_part", "looks_like_dataset", "read_dataset"]

NOT_A_PERSON = "archives/match_submissions.jsonl"  # written for comparisons of papers with papers
SUBMISSION_FILES = ("submissions.json", "submissions.jsonl", "submissions/")
WITHOUT_ARCHIVE = ("no_publications", "no_profile")  # lists in metadata.json of people who have no archive
CONFLICT_FILES = {"conflicts.csv": None, "constraints.csv": ("submission", "reviewer", "value")}  # file -> columns
START = datetime(1970, 1, 1, tzinfo=UTC)


def looks_like_dataset(files: Container) -> bool:
    """Whether the files are a dataset: archives and one of the three forms of submissions."""
    return bool(DATASET.inside(files, "archives/")) and bool(_submission_forms(files))


def has_part(files: Container) -> bool:
    """Whether the files hold archives or submissions, perhaps not both: a dataset that lost something."""
    return bool(DATASET.inside(files, "archives/")) or bool(_submission_forms(files))


def _submission_forms(files: Container) -> list[str]:
    return [form for form in SUBMISSION_FILES if (DATASET.inside(files, form) if form[-1] == "/" else form in files)]


def read_dataset(source: str | Path | bytes | Container) -> tuple[Venue, tuple[Notice, ...]]:
    """Read a venue from a dataset.

    Parameters
    ----------
    source : str, Path, bytes or Container
        A folder, a zip file, or the bytes of a zip file.

    Returns
    -------
    venue : Venue
        Reviewer ids are file names without their last ``.jsonl``; people whom metadata.json lists without
        an archive are in the pool with no publications.
    notices : tuple of Notice
        Publications without any text that were left out, people without evidence, files not read.

    Notes
    -----
    Beside the archives stand constraints.csv (submission, reviewer, value without a header: -1 a conflict, 0
    nothing) and the side files of a bundle: conflicts.csv, bids.csv, loads.csv, demands.csv, locks.csv, rules.json,
    scores/.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Every fault of every file, each with file, line and field; wanted pairs (1) in constraints.csv, which this
        version does not support; rules of a wrong form; files whose names nearly fit or that cannot be read (see
        `judge_names`).
    """
    files = BundleReader(open_container(source), DATASET)
    rules = files.rules()
    reader = _Reader(files)
    reviewers = reader.reviewers()
    submissions = reader.submissions()
    people = list(enumerate(reviewers, start=1))
    papers = list(enumerate(submissions, start=1))
    known = KnownPeople(reviewers)
    side = read_side_files(files, people, papers, known, {}, CONFLICT_FILES)
    bids = reader.bids(side.bids)
    files.raise_if_any()
    venue = Venue(
        reviewers=side.reviewers,
        submissions=side.submissions,
        bids=bids,
        conflicts=side.conflicts,
        locks=side.locks,
        scores=side.scores,
        rules=rules,
    )
    return venue, (*reader.notices, *files.all_notices())


class _Reader:
    """The files of one dataset, with the faults and notices found so far."""

    def __init__(self, reader: BundleReader) -> None:
        self.files = reader.files
        self.reader = reader
        self.faults = reader.faults
        self.notices: list[Notice] = []

    def inside(self, folder: str) -> list[str]:
        """Names directly in a folder that are read."""
        return DATASET.inside(self.files, folder)

    def lines(self, name: str, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
        """Objects of a file of JSON lines; an unreadable file is a fault."""
        try:
            yield from read_jsonl(self.files.read(name), faults)
        except InputError as error:
            faults.extend(error.issues)

    def reviewers(self) -> tuple[Reviewer, ...]:
        empty: Counter[str] = Counter()
        repeated = 0
        found: dict[str, Reviewer] = {}
        for name in self.inside("archives/"):
            if name == NOT_A_PERSON:
                continue
            person = name.removeprefix("archives/").removesuffix(".jsonl")
            faults = Faults(name)
            publications: dict[str, Publication] = {}
            for line, record in self.lines(name, faults):
                value = _publication(record, faults, line, f"{person}#{line}")
                if value is None:
                    continue
                if not value.title.strip() and not value.abstract.strip():
                    empty[person] += 1
                elif publications.setdefault(value.id, value) is not value:
                    repeated += 1
            self.faults.extend(faults.issues)
            found[person] = _reviewer(person, tuple(publications.values()))
        if not found and DATASET.meant["archives"] not in self.reader.meant:
            self.faults.add("holds no archives/<person>.jsonl", "missing-file")
        if empty:
            self.notices.append(
                Notice(
                    "publications-without-text",
                    f"{empty.total()} publications of {len(empty)} people have neither title nor abstract "
                    "and were left out",
                    reviewers=tuple(sorted(empty)),
                    data={"count": empty.total(), "by_reviewer": dict(sorted(empty.items()))},
                )
            )
        if repeated:
            text = f"{repeated} publications repeat the id of another one of the same person; the first counts"
            self.notices.append(Notice("repeated-publications", text, data={"count": repeated}))
        missing = [person for person in self._without_archive() if person not in found]
        if missing:
            text = f"{len(missing)} people have no archive; they are in the pool without evidence"
            self.notices.append(Notice("people-without-archive", text, reviewers=tuple(missing)))
        return (*found.values(), *(_reviewer(person, ()) for person in missing))

    def _without_archive(self) -> list[str]:
        if "metadata.json" not in self.files:
            return []
        record = self._document("metadata.json")
        lists = [record.get(key) for key in WITHOUT_ARCHIVE] if isinstance(record, Mapping) else []
        people = {person for entry in lists if isinstance(entry, list) for person in entry if isinstance(person, str)}
        return sorted(people)

    def _document(self, name: str) -> Any:
        """Value of a file of JSON, None where it has faults."""
        faults = self.reader.of(name)
        return self.reader.trying(lambda: parse_json(self.files.read(name), faults))

    def submissions(self) -> tuple[Submission, ...]:
        forms = _submission_forms(self.files)
        if not forms:
            if DATASET.meant["submissions"] not in self.reader.meant:
                self.faults.add("holds none of submissions.json, submissions.jsonl, submissions/", "missing-file")
            return ()
        if len(forms) > 1:
            text = f"submissions come in several forms; {forms[0]} was read, {' and '.join(forms[1:])} not"
            self.notices.append(Notice("ignored-file", text, data={"files": forms[1:]}))
        found: dict[str, Submission] = {}
        for name, line, record, stem in self._submission_records(forms[0]):
            faults = Faults(name)
            value = _submission(record, faults, line, stem)
            if value is not None and found.setdefault(value.id, value) is not value:
                faults.add(f"submission {value.id!r} is there twice", "duplicate-id", "id", line, value.id)
            self.faults.extend(faults.issues)
            if value is None and stem:
                self.reader.broken["papers.jsonl"].add(stem)
        return tuple(found.values())

    def _submission_records(self, form: str) -> Iterator[tuple[str, int | None, object, str | None]]:
        """File, line, record and the id the place implies."""
        if form == "submissions.json":
            record = self._document(form)
            faults = self.reader.of(form)
            if not faults and not isinstance(record, Mapping):
                faults.add("must be one object of submissions by id", "not-an-object")
            if not faults:
                yield from ((form, None, value, key) for key, value in record.items())
            return
        names = self.inside(form) if form.endswith("/") else [form]
        for name in names:
            faults = Faults(name)
            stem = name.removeprefix(form).removesuffix(".jsonl") if form.endswith("/") else None
            yield from ((name, line, record, stem) for line, record in self.lines(name, faults))
            self.faults.extend(faults.issues)

    def bids(self, table: Parsed[tuple[Bid, ...]] | None) -> tuple[Bid, ...]:
        """Bids of bids/ and those of bids.csv."""
        found: dict[tuple[str, str], tuple[Bid, str, int]] = {}
        for name in self.inside("bids/"):
            faults = Faults(name)
            stem = name.removeprefix("bids/").removesuffix(".jsonl")
            for line, record in self.lines(name, faults):
                bid = _bid(record, faults, line, stem)
                if bid is not None:
                    _add_bid(found, bid, name, line, "label", faults)
            self.faults.extend(faults.issues)
        for bid, line in zip(table.records, table.lines.tolist()) if table else ():
            _add_bid(found, bid, "bids.csv", line, "bid", self.reader.of("bids.csv"))
        return tuple(bid for bid, _, _ in found.values())


def _add_bid(
    found: dict[tuple[str, str], tuple[Bid, str, int]], bid: Bid, name: str, line: int, field: str, faults: Faults
) -> None:
    """Add a bid; another one of the same pair must agree."""
    other, place, at = found.setdefault((bid.submission, bid.reviewer), (bid, name, line))
    if other.bid != bid.bid:
        faults.add(f"{bid.bid} contradicts {other.bid} in {place}, line {at}", "contradiction", field, line, bid.bid)


def _content(fields: Fields) -> Fields:
    """The content of a record with wrapped values (``{"value": x}``) unwrapped."""
    content = {
        key: value["value"] if isinstance(value, Mapping) and "value" in value else value
        for key, value in fields.mapping("content").items()
    }
    return Fields(content, fields.faults, fields.row, "content.")


def _publication(record: object, faults: Faults, line: int, default_id: str) -> Publication | None:
    fields = Fields.of(record, faults, line)
    if fields is None:
        return None
    content = _content(fields)
    value = Publication(
        id=fields.identifier("id") or default_id,
        title=content.text("title"),
        abstract=content.text("abstract"),
        year=_first_year(fields.record, content.record),
        weight=content.number("weight", default=1.0),
    )
    return value if fields.sound and content.sound else None


def _first_year(record: Mapping[str, Any], content: Mapping[str, Any]) -> int | None:
    """Year of the first date that is one, else the year some datasets give in words of their own."""
    for key in ("cdate", "pdate", "odate"):
        if year := _year(record.get(key)):
            return year
    year = content.get("year")
    return year if isinstance(year, int) and not isinstance(year, bool) and 1000 <= year <= 9999 else None


def _year(milliseconds: Any) -> int | None:
    """Year of a date in milliseconds since 1970; None for 0, which means unknown, and for what is no date."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)) or not milliseconds:
        return None
    try:
        return (START + timedelta(milliseconds=milliseconds)).year
    except (OverflowError, ValueError):
        return None


def _reviewer(person: str, publications: tuple[Publication, ...]) -> Reviewer:
    # A tilde id is made of the name and a number: ~First_Last1.
    name = person[1:].rstrip("0123456789").replace("_", " ") if person.startswith("~") else ""
    return Reviewer(person, name, (person,) if "@" in person else (), publications=publications)


def _submission(record: object, faults: Faults, line: int | None, stem: str | None) -> Submission | None:
    fields = Fields.of(record, faults, line, "" if line else f"{stem}.")
    if fields is None:
        return None
    name = fields.identifier("id") or (stem.strip() if stem else None)
    if name is None:
        fields.fault("id", "is missing; a record needs an id", "missing-id")
    elif stem is not None and name != stem:
        fields.fault("id", f"{name!r} is not {stem!r}, under which it is filed", "contradiction", name)
    content = _content(fields)
    value = Submission(
        id=name or "",
        title=content.text("title"),
        abstract=content.text("abstract"),
        authors=_authors(content),
        keywords=content.texts("keywords") if isinstance(content.record.get("keywords"), list) else (),
        extra=_extra(fields, content),
    )
    return value if fields.sound and content.sound else None


def _extra(fields: Fields, content: Fields) -> dict[str, Any]:
    """Keys nobody read, those of the content together under ``content``."""
    extra = {key: item for key, item in fields.record.items() if key not in ("id", "content")}
    rest = {key: item for key, item in content.record.items() if key not in content.asked}
    return extra | {"content": rest} if rest else extra


def _authors(content: Fields) -> tuple[Author, ...]:
    """Authors by id where the dataset says so; names stand beside ids in the same order."""
    ids = content.texts("authorids", trim=True)
    names = content.texts("authors") if isinstance(content.record.get("authors"), list) else ()
    if len(names) != len(ids):
        names = ("",) * len(ids) if ids else names
    if not ids:
        return tuple(Author(name=name) for name in names if name.strip())
    pairs = [(name, person) for name, person in zip(names, ids) if person or name.strip()]
    return tuple(Author(name, person if "@" in person else "", "", person or None) for name, person in pairs)


def _bid(record: object, faults: Faults, line: int, stem: str) -> Bid | None:
    """A bid of the old kind (tag, signatures, forum) or of the edge kind (label, tail, head); None if deleted."""
    fields = Fields.of(record, faults, line)
    if fields is None or fields.record.get("ddate"):
        return None
    signatures = [name for name in fields.texts("signatures", trim=True) if name]
    reviewer = fields.identifier("tail") or (signatures[0] if signatures else None)
    submission = fields.identifier("head") or fields.identifier("forum") or stem
    given = fields.record.get("label", fields.record.get("tag"))
    label = bid_label(given)
    if reviewer is None:
        fields.fault("signatures", "names nobody; a bid needs signatures or tail", "missing-id")
    if given is None or label is None:
        fields.fault("label", "is no bid that is known, for example Very High or Low", "unknown-bid", given)
    if not fields.sound or reviewer is None or label is None:
        return None
    return Bid(submission, reviewer, label)
