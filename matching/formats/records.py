"""JSON-like dicts to Publication, Reviewer and Submission values, and back.

Types are judged strictly: a load of 2.5, true or "three" is a fault, null is the same as absent, and
every fault of a record is noted before the record is given up. Keys nobody knows are kept in `extra`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from matching.errors import InvalidVenueError
from matching.formats.faults import Faults
from matching.formats.fields import Fields
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.roles import ROLES

__all__ = [
    "publication_from_dict",
    "publication_to_dict",
    "reviewer_from_dict",
    "reviewer_to_dict",
    "reviewers_from_dicts",
    "submission_from_dict",
    "submission_to_dict",
    "submissions_from_dicts",
]

Value = TypeVar("Value", Reviewer, Submission)


def publication_from_dict(
    record: object, faults: Faults, *, row: int | None = None, where: str = "", default_id: str | None = None
) -> Publication | None:
    """One publication: id, title, abstract, year, weight; None where it has faults.

    Parameters
    ----------
    record : object
        Meant to be a mapping.
    faults : Faults
        Receives every fault and every key that is not kept.
    row : int or None
        Line number or position, for the faults.
    where : str
        Prefix of field names, for example ``"publications[2]."``.
    default_id : str or None
        Id of a record that has none; None makes the id a must.
    """
    fields = Fields.of(record, faults, row, where)
    if fields is None:
        return None
    value = Publication(
        id=fields.identifier("id", required=default_id is None) or default_id or "",
        title=fields.text("title"),
        abstract=fields.text("abstract"),
        year=fields.integer("year"),
        weight=fields.number("weight", default=1.0),
    )
    fields.not_kept()
    return value if fields.sound else None


def reviewer_from_dict(record: object, faults: Faults, *, row: int | None = None) -> Reviewer | None:
    """One reviewer; keys as the attributes of Reviewer. None where it has faults, which are then in `faults`."""
    fields = Fields.of(record, faults, row)
    if fields is None:
        return None
    name = fields.identifier("id", required=True)
    value = Reviewer(
        id=name or "",
        name=fields.text("name"),
        emails=fields.texts("emails", trim=True),
        aliases=fields.texts("aliases", trim=True),
        role=fields.choice("role", ROLES, "reviewer"),
        publications=_publications(fields, name or ""),
        keywords=fields.texts("keywords"),
        areas=fields.texts("areas"),
        seniority=fields.optional_text("seniority"),
        country=fields.optional_text("country"),
        affiliations=fields.texts("affiliations"),
        load_min=fields.count("load_min"),
        load_max=fields.count("load_max"),
        same_person_as=fields.identifier("same_person_as"),
        conflict_domains=fields.texts("conflict_domains", trim=True),
        active=fields.flag("active", True),
        extra=fields.rest(),
    )
    if value.load_min is not None and value.load_max is not None and value.load_min > value.load_max:
        fields.fault("load_min", f"is above load_max {value.load_max}", "contradiction", value.load_min)
    return value if fields.sound else None


def _publications(fields: Fields, reviewer: str) -> tuple[Publication, ...]:
    found: dict[str, Publication] = {}
    for place, record in enumerate(fields.items("publications")):
        value = publication_from_dict(
            record,
            fields.faults,
            row=fields.row,
            where=f"publications[{place}].",
            # Made unlike any other id, since equal ids mean co-authors.
            default_id=f"{reviewer}#{place + 1}",
        )
        if value is None:
            fields.sound = False
        elif found.setdefault(value.id, value) != value:
            fields.fault(
                f"publications[{place}].id", "is the id of another publication of this person", "duplicate-id", value.id
            )
    return tuple(found.values())


def submission_from_dict(record: object, faults: Faults, *, row: int | None = None) -> Submission | None:
    """One submission; keys as the attributes of Submission. None where it has faults, which are then in `faults`."""
    fields = Fields.of(record, faults, row)
    if fields is None:
        return None
    value = Submission(
        id=fields.identifier("id", required=True) or "",
        title=fields.text("title"),
        abstract=fields.text("abstract"),
        authors=_authors(fields),
        areas=fields.texts("areas"),
        keywords=fields.texts("keywords"),
        track=fields.optional_text("track"),
        demand=fields.count("demand"),
        active=fields.flag("active", True),
        extra=fields.rest(),
    )
    return value if fields.sound else None


def _authors(fields: Fields) -> tuple[Author, ...]:
    authors = []
    for place, record in enumerate(fields.items("authors")):
        inner = Fields.of(record, fields.faults, fields.row, f"authors[{place}].")
        if inner is None:
            fields.sound = False
            continue
        author = Author(
            name=inner.text("name"),
            email=inner.text("email").strip(),
            affiliation=inner.text("affiliation"),
            id=inner.identifier("id"),
        )
        inner.not_kept()
        if inner.sound and not (author.id or author.email or author.name.strip()):
            inner.fault("", "needs an id, an email or a name", "nameless-author")
        fields.sound &= inner.sound
        authors.append(author)
    return tuple(authors)


def reviewers_from_dicts(records: Iterable[object], *, source: str = "reviewers") -> tuple[Reviewer, ...]:
    """Reviewers from a list of dicts.

    Raises
    ------
    InvalidVenueError (``invalid-venue``)
        With every fault of every record (row counted from 0), and ids that occur twice, naming both rows.
    """
    faults = Faults(source)
    found = list(collect(enumerate(records), reviewer_from_dict, faults, "row"))
    faults.raise_if_any(InvalidVenueError)
    return tuple(value for _, value in found)


def submissions_from_dicts(records: Iterable[object], *, source: str = "submissions") -> tuple[Submission, ...]:
    """Submissions from a list of dicts. Raises as `reviewers_from_dicts`."""
    faults = Faults(source)
    found = list(collect(enumerate(records), submission_from_dict, faults, "row"))
    faults.raise_if_any(InvalidVenueError)
    return tuple(value for _, value in found)


def collect(
    records: Iterable[tuple[int, object]], read: Callable[..., Value | None], faults: Faults, unit: str
) -> Iterator[tuple[int, Value]]:
    """Row and value of every sound record; an id that occurs twice is a fault that names both rows."""
    rows: dict[str, int] = {}
    for row, record in records:
        value = read(record, faults, row=row)
        if isinstance(record, Mapping) and isinstance(record.get("id"), str) and record["id"].strip():
            name = record["id"].strip()
            first = rows.setdefault(name, row)
            if first != row:
                faults.add(
                    f"id {name!r} is also on {unit} {first}; an id names one record", "duplicate-id", "id", row, name
                )
        if value is not None:
            yield row, value


def publication_to_dict(publication: Publication) -> dict[str, Any]:
    """All attributes as plain JSON values; the twin of `publication_from_dict`."""
    return {
        "id": publication.id,
        "title": publication.title,
        "abstract": publication.abstract,
        "year": publication.year,
        "weight": publication.weight,
    }


def reviewer_to_dict(reviewer: Reviewer) -> dict[str, Any]:
    """All attributes as plain JSON values, those of `extra` beside them; the twin of `reviewer_from_dict`."""
    record = {
        "id": reviewer.id,
        "name": reviewer.name,
        "emails": list(reviewer.emails),
        "aliases": list(reviewer.aliases),
        "role": reviewer.role,
        "publications": [publication_to_dict(publication) for publication in reviewer.publications],
        "keywords": list(reviewer.keywords),
        "areas": list(reviewer.areas),
        "seniority": reviewer.seniority,
        "country": reviewer.country,
        "affiliations": list(reviewer.affiliations),
        "load_min": reviewer.load_min,
        "load_max": reviewer.load_max,
        "same_person_as": reviewer.same_person_as,
        "conflict_domains": list(reviewer.conflict_domains),
        "active": reviewer.active,
    }
    return _with_extra(record, reviewer.extra)


def submission_to_dict(submission: Submission) -> dict[str, Any]:
    """All attributes as plain JSON values, those of `extra` beside them; the twin of `submission_from_dict`."""
    record = {
        "id": submission.id,
        "title": submission.title,
        "abstract": submission.abstract,
        "authors": [
            {"name": author.name, "email": author.email, "affiliation": author.affiliation, "id": author.id}
            for author in submission.authors
        ],
        "areas": list(submission.areas),
        "keywords": list(submission.keywords),
        "track": submission.track,
        "demand": submission.demand,
        "active": submission.active,
    }
    return _with_extra(record, submission.extra)


def _with_extra(record: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    clash = sorted(record.keys() & extra.keys())
    if clash:
        raise InvalidVenueError(f"record {record['id']!r}: extra may not use the field names {', '.join(clash)}")
    return record | {key: extra[key] for key in sorted(extra)}
