"""A reviewer and the publications that speak for the reviewer's expertise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from matching.types import Role

__all__ = ["Publication", "Reviewer"]

MAPPINGS = frozenset({"extra", "domain_aliases"})  # fields of any record that hold a mapping, not a list


def _freeze(instance: Any, *names: str) -> None:
    """Lists become tuples and mappings read-only, so that a value never changes under its reader.

    None becomes empty. What is no list at all (a text, a number) stays as it is: `resolve_venue` reports it with
    its row, and a text is never taken apart into its letters.
    """
    for name in names:
        value = getattr(instance, name)
        if value is None:
            value = {} if name in MAPPINGS else ()
        if isinstance(value, Mapping):
            object.__setattr__(instance, name, MappingProxyType(dict(value)))
        elif isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
            object.__setattr__(instance, name, tuple(value))


@dataclass(frozen=True, slots=True)
class Publication:
    """One past publication.

    Attributes
    ----------
    id : str
        Shared by co-authors where the source says so; unique within one reviewer.
    title, abstract : str
        Plain or marked-up text; "" where missing.
    year : int or None
        Year of publication; None, or a year outside 1900 to this one, is neutral for recency.
    weight : float
        0 excludes the publication, 1 is normal. Range [0, inf), no unit.
    """

    id: str
    title: str = ""
    abstract: str = ""
    year: int | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Reviewer:
    """One account in the reviewer pool.

    Attributes
    ----------
    id : str
        Outside id, unique in the venue.
    name : str
        As shown to chairs.
    emails : tuple of str
        All known addresses, any capitals; compared trimmed and case-folded.
    aliases : tuple of str
        Other ids of the same account (before a merge, in another system).
    role : {"reviewer", "area_chair", "emergency"}
        Only "reviewer" takes part in a plan of reviewers.
    publications : tuple of Publication
    keywords : tuple of str
        Free-text expertise; counts as evidence when there are no publications.
    areas : tuple of str
        Subject areas, best first.
    seniority, country : str or None
    affiliations : tuple of str
        Institution names, blank ones ignored.
    load_min, load_max : int or None
        Reviews. 0 for load_max means none at all; None means the venue's default.
    same_person_as : str or None
        Id of another account of the same human being: the two share one load limit and never both
        serve on one submission.
    conflict_domains : tuple of str
        E-mail domains of institutions this person is in conflict with, besides those of `emails`.
    active : bool
        False keeps the account on record and out of every run.
    extra : mapping
        Anything else that came with the record, returned unchanged on export.
    """

    id: str
    name: str = ""
    emails: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    role: Role = "reviewer"
    publications: tuple[Publication, ...] = ()
    keywords: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    seniority: str | None = None
    country: str | None = None
    affiliations: tuple[str, ...] = ()
    load_min: int | None = None
    load_max: int | None = None
    same_person_as: str | None = None
    conflict_domains: tuple[str, ...] = ()
    active: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(
            self, "emails", "aliases", "publications", "keywords", "areas", "affiliations", "conflict_domains", "extra"
        )
