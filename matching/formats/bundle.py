"""Our own bundle: a folder or zip file that holds a whole venue. Read and write are twins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from matching.errors import InvalidVenueError
from matching.formats import table_out
from matching.formats.bundle_join import KnownPeople, join_publications
from matching.formats.bundle_reader import SAFE, SCHEMA, BundleReader
from matching.formats.container import Container, open_container, write_folder, zip_files
from matching.formats.json_text import dump_json, dump_jsonl
from matching.formats.layout import BUNDLE
from matching.formats.records import (
    publication_to_dict,
    reviewer_from_dict,
    reviewer_to_dict,
    submission_from_dict,
    submission_to_dict,
)
from matching.formats.side_files import read_side_files
from matching.notices import Notice
from matching.plan.plan import plain
from matching.profiles.reviewer import Publication
from matching.profiles.venue import Venue

__all__ = ["SCHEMA", "bundle_files", "read_bundle", "write_bundle", "write_bundle_zip"]


def read_bundle(source: str | Path | bytes | Container) -> tuple[Venue, tuple[Notice, ...]]:
    """Read a venue from a bundle.

    Parameters
    ----------
    source : str, Path, bytes or Container
        A folder, a zip file, or the bytes of a zip file. papers.jsonl and reviewers.jsonl must be there.

    Returns
    -------
    venue : Venue
    notices : tuple of Notice
        Files, columns and fields that were left out.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Every fault of every file, each with file, line and field: forms and types, ids that occur twice,
        references of publications, conflicts, loads, demands and locks to nobody, contradictions between
        files, sums that do not match the manifest, rules of a wrong form, and files whose names nearly fit or that
        cannot be read (see `judge_names`).
    """
    files = open_container(source)
    reader = BundleReader(files, BUNDLE)
    manifest = reader.manifest()
    rules = reader.rules()
    for name in ("papers.jsonl", "reviewers.jsonl"):
        if reader.lacks(name):
            reader.of(name).add("is missing; a bundle needs it", "missing-file")
    papers = reader.records("papers.jsonl", submission_from_dict)
    people = reader.records("reviewers.jsonl", reviewer_from_dict)
    known = KnownPeople((value for _, value in people), reader.broken["reviewers.jsonl"])
    publications = reader.lines("publications.jsonl")
    if people or not reader.faulty:
        people = join_publications(people, known, publications, reader.of("publications.jsonl"))
    side = read_side_files(reader, people, papers, known, manifest["score_defaults"], {"conflicts.csv": None})
    reader.check_counts(manifest["files"])
    reader.note_unlisted(manifest["files"])
    reader.raise_if_any()
    venue = Venue(
        reviewers=side.reviewers,
        submissions=side.submissions,
        bids=side.bids.records if side.bids else (),
        conflicts=side.conflicts,
        scores=side.scores,
        locks=side.locks,
        rules=rules,
        **manifest["venue"],
    )
    return venue, reader.all_notices()


def bundle_files(venue: Venue, *, generator: str = "revmatch") -> dict[str, bytes]:
    """A venue as the files of a bundle, by name; equal venues give equal bytes in whatever order they list things.

    Raises
    ------
    InvalidVenueError (``invalid-venue``)
        An `extra` that is no JSON or uses a field's name, halves of characters, a signal without a name, or
        two signals whose file names are equal.
    """
    people, publications = [], []
    for reviewer in sorted(venue.reviewers, key=lambda reviewer: reviewer.id):
        record = reviewer_to_dict(reviewer)
        del record["publications"]
        people.append(_compact(record, {"role": "reviewer", "active": True}, reviewer.extra))
        publications += [{"reviewer": reviewer.id} | _publication(item) for item in reviewer.publications]
    papers = [
        _compact(submission_to_dict(submission), {"active": True}, submission.extra)
        for submission in sorted(venue.submissions, key=lambda submission: submission.id)
    ]
    for paper in papers:
        paper["authors"] = [
            {key: value for key, value in author.items() if value} for author in paper.get("authors", ())
        ]
    records = {"papers.jsonl": papers, "reviewers.jsonl": people, "publications.jsonl": publications}
    counts = {name: len(rows) for name, rows in records.items()}
    try:
        files = {name: dump_jsonl(rows) for name, rows in records.items()}
        for name, data, count in _tables(venue):
            if name.casefold() in (other.casefold() for other in files):
                raise InvalidVenueError(f"two signals would both be written to {name}")
            files[name], counts[name] = data, count
    except UnicodeEncodeError as error:
        raise InvalidVenueError(f"a text holds half of a surrogate pair, which is no character: {error}") from error
    except (TypeError, ValueError) as error:
        raise InvalidVenueError(f"extra holds something that is no JSON: {error}") from error
    files["manifest.json"] = _manifest(venue, generator, files, counts)
    return files


def _tables(venue: Venue) -> Iterable[tuple[str, bytes, int]]:
    # Empty tables are written too: "no conflicts" is then a statement and not a forgotten file.
    yield "bids.csv", table_out.write_bids(venue.bids), len(venue.bids)
    yield "conflicts.csv", table_out.write_conflicts(venue.conflicts), len(venue.conflicts)
    if venue.rules:
        yield "rules.json", dump_json(plain(venue.rules)), len(venue.rules)
    if venue.locks:
        yield "locks.csv", table_out.write_locks(venue.locks), len(venue.locks)
    for scores in venue.scores:
        yield _scores_file(scores.name), table_out.write_scores(scores), len(scores.values)


def _scores_file(signal: str) -> str:
    """File of a signal; a name that starts with a dot would be taken for a dropping of some program."""
    if not signal.strip():
        raise InvalidVenueError("a table of scores needs a name; it is the name of its file")
    name = quote(signal, safe=SAFE)
    return f"scores/{'%2E' + name[1:] if name.startswith('.') else name}.csv"


def _manifest(venue: Venue, generator: str, files: Mapping[str, bytes], counts: Mapping[str, int]) -> bytes:
    defaults = {scores.name: scores.default for scores in venue.scores if scores.default is not None}
    manifest: dict[str, Any] = {
        "schema": SCHEMA,
        "name": venue.name,
        "generator": generator,
        "settings": {
            "demand": venue.demand,
            "load_max": venue.load_max,
            "load_min": venue.load_min,
            "domain_aliases": dict(venue.domain_aliases),
            "free_mail": list(venue.free_mail),
        },
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "records": counts[name]} for name, data in files.items()
        },
    }
    if defaults:
        manifest["settings"]["score_defaults"] = defaults
    if venue.extra:
        manifest["extra"] = dict(venue.extra)
    try:
        return dump_json(manifest)
    except (TypeError, ValueError) as error:
        raise InvalidVenueError(f"extra holds something that is no JSON: {error}") from error


def _publication(publication: Publication) -> dict[str, Any]:
    return _compact(publication_to_dict(publication), {"weight": 1.0})


def _compact(record: dict[str, Any], defaults: Mapping[str, Any], extra: Iterable[str] = ()) -> dict[str, Any]:
    """Without what absent means anyway; title and abstract stay, so that a gap is seen, and so does all of `extra`."""
    kept = {"title", "abstract", *extra}
    return {
        key: value
        for key, value in record.items()
        if key in kept or not (value is None or value in ("", []) or defaults.get(key) == value)
    }


def write_bundle(venue: Venue, path: str | Path, *, generator: str = "revmatch") -> None:
    """Write a venue as a folder. Raises as `bundle_files`."""
    write_folder(bundle_files(venue, generator=generator), path)


def write_bundle_zip(venue: Venue, *, generator: str = "revmatch") -> bytes:
    """A venue as the bytes of a zip file. Raises as `bundle_files`."""
    return zip_files(bundle_files(venue, generator=generator))
