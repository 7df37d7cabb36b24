"""A submission and its authors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from matching.profiles.reviewer import _freeze

__all__ = ["Author", "Submission"]


@dataclass(frozen=True, slots=True)
class Author:
    """One author of a submission. At least one of id, email and name is set.

    Attributes
    ----------
    name, email, affiliation : str
        "" where missing.
    id : str or None
        Id or alias of this person in the reviewer pool or another system.
    """

    name: str = ""
    email: str = ""
    affiliation: str = ""
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission to be reviewed.

    Attributes
    ----------
    id : str
        Outside id, unique in the venue.
    title, abstract : str
        Plain or marked-up text; "" where missing.
    authors : tuple of Author
    areas, keywords : tuple of str
        Areas best first.
    track : str or None
    demand : int or None
        Reviews wanted, 0 for none; None means the venue's default.
    active : bool
        False (withdrawn, desk-rejected) keeps it on record and out of every run.
    extra : mapping
        Anything else that came with the record, returned unchanged on export.
    """

    id: str
    title: str = ""
    abstract: str = ""
    authors: tuple[Author, ...] = ()
    areas: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    track: str | None = None
    demand: int | None = None
    active: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, "authors", "areas", "keywords", "extra")
