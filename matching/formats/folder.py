"""Whatever folder or zip file a user points at: find out what it is and read it."""

from __future__ import annotations

from pathlib import Path

from matching.errors import InvalidFileError
from matching.formats.bundle import read_bundle
from matching.formats.container import Container, open_container
from matching.formats.openreview import looks_like_dataset, read_dataset
from matching.notices import Notice, in_words
from matching.profiles.venue import Venue

__all__ = ["read_folder"]

SOUGHT = (
    "a bundle (papers.jsonl and reviewers.jsonl) or an OpenReview dataset "
    "(archives/<person>.jsonl and submissions.json, submissions.jsonl or submissions/)"
)
BUNDLE_MARKS = ("papers.jsonl", "reviewers.jsonl", "manifest.json")


def read_folder(source: str | Path | bytes) -> tuple[Venue, tuple[Notice, ...]]:
    """Read a venue from a bundle or a dataset, a folder or a zip file.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Neither or both; the message says what was looked for, and names folders inside that could be read instead.
        Otherwise as `read_bundle` and `read_dataset`.
    """
    files = open_container(source)
    bundle, dataset = any(mark in files for mark in BUNDLE_MARKS), looks_like_dataset(files)
    if bundle and dataset:
        marks = " and ".join(mark for mark in BUNDLE_MARKS if mark in files)
        raise InvalidFileError(f"{files.label} is both a dataset (archives/) and a bundle ({marks}); take one out")
    if bundle:
        return read_bundle(files)
    if dataset:
        return read_dataset(files)
    inside = [folder.rstrip("/") for folder in files.folders() if _readable(files.within(folder))]
    if inside:
        raise InvalidFileError(
            f"{files.label} holds several venues or versions, in {', '.join(inside)}; name one of these folders"
            if len(inside) > 1
            else f"{files.label} holds a venue in the folder {inside[0]}; name that folder",
            folders=inside,
        )
    found = in_words(sorted({name.split("/", 1)[0] for name in files.readers})) or "nothing"
    if odd := [f"{name} {reason}" for name, reason in (*files.odd.items(), *files.closed.items())]:
        found += f"; not read: {in_words(odd)}"
    raise InvalidFileError(f"{files.label} is no venue: looked for {SOUGHT}; found {found}")


def _readable(files: Container) -> bool:
    return looks_like_dataset(files) or all(mark in files for mark in BUNDLE_MARKS[:2])
