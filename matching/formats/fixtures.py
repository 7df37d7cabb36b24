"""The small venues that come with the package."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from matching.errors import UnknownIdError
from matching.formats.bundle import read_bundle
from matching.profiles.venue import Venue

__all__ = ["FIXTURES", "FIXTURE_LICENCE", "fixture_path", "load_fixture"]

FIXTURES = ("icml2026", "tiny")
FIXTURE_LICENCE = "CC0-1.0"
"""Licence of the fixtures, as an SPDX identifier; people and publications in them are invented."""


def fixture_path(name: str) -> Path:
    """Folder of a fixture, a bundle: inside the installed package, else beside the sources.

    Raises
    ------
    UnknownIdError (``unknown-id``)
        There is no fixture of this name; the message lists those there are.
    """
    if name not in FIXTURES:
        raise UnknownIdError(f"there is no fixture {name!r}; there are {', '.join(FIXTURES)}", id=name)
    package = Path(str(files("matching")))
    for folder in (package / "fixtures", package.parent / "fixtures"):
        if (folder / name).is_dir():
            return folder / name
    raise UnknownIdError(f"the fixture {name!r} was not installed with this package", id=name)


def load_fixture(name: str) -> Venue:
    """A venue that comes with the package: "tiny", to be checked on paper, or "icml2026". Raises as `fixture_path`."""
    return read_bundle(fixture_path(name))[0]
