"""Reviewer profiles."""

from __future__ import annotations

from typing import get_args

from marshmallow import Schema

from matching.types import Role
from service.schemas.common import MOST_RECORDS, Record, WarningSchema, page_of
from service.schemas.fields import Flag, Key, Length, ListOf, Loose, NestedRecord, OneOf, Real, Text, Whole

__all__ = [
    "AddedSchema",
    "PublicationSchema",
    "RemovedSchema",
    "ReviewerChangeSchema",
    "ReviewerPage",
    "ReviewerSchema",
    "ReviewersSchema",
]

EXAMPLE = {
    "id": "~Ada_Quell1",
    "name": "Ada Quell",
    "emails": ["ada@uni.example"],
    "publications": [
        {"id": "pub-1", "title": "Matching under pressure", "abstract": "We assign reviewers to papers.", "year": 2024}
    ],
    "areas": ["assignment"],
    "affiliations": ["University of Example"],
    "load_max": 4,
}


class PublicationSchema(Record):
    """One past publication; it speaks for the reviewer's expertise."""

    id = Text(required=True, most=500, least=1, metadata={"description": "Unique within the reviewer."})
    title = Text(most=20_000, null_is_empty=True, metadata={"description": "null or blank where missing."})
    abstract = Text(most=200_000, null_is_empty=True, metadata={"description": "null or blank where missing."})
    year = Whole(
        least=-9999,
        most=99_999,
        allow_none=True,
        metadata={"description": "null, or a year in the future, is neutral."},
    )
    weight = Real(least=0, metadata={"description": "0 excludes the publication, 1 is normal."})


class ReviewerSchema(Record):
    """One account in the reviewer pool."""

    id = Key(required=True, metadata={"description": "Outside id, unique in the venue."})
    name = Text(most=1000, null_is_empty=True)
    emails = ListOf(Text(most=320, least=1), metadata={"description": "All known addresses; capitals do not matter."})
    aliases = ListOf(
        Text(most=1000, least=1), metadata={"description": "Other ids of the same account, for example before a merge."}
    )
    role = Text(
        validate=OneOf(get_args(Role)),
        metadata={"description": 'Only "reviewer" takes part in a plan. Default "reviewer".'},
    )
    publications = ListOf(NestedRecord(PublicationSchema))
    keywords = ListOf(
        Text(most=1000), metadata={"description": "Free-text expertise; counts where publications are missing."}
    )
    areas = ListOf(Text(most=1000), metadata={"description": "Subject areas, best first."})
    seniority = Text(most=200, allow_none=True)
    country = Text(most=200, allow_none=True)
    affiliations = ListOf(
        Text(most=1000, null_is_empty=True),
        metadata={"description": "Institutions; blank ones never create a conflict."},
    )
    load_min = Whole(allow_none=True, metadata={"description": "Fewest reviews; null means the venue's default."})
    load_max = Whole(
        allow_none=True, metadata={"description": "Most reviews; 0 means none at all, null means the venue's default."}
    )
    same_person_as = Text(
        most=1000, least=1, allow_none=True, metadata={"description": "Another account of the same human being."}
    )
    conflict_domains = ListOf(
        Text(most=253), metadata={"description": "Further e-mail domains this person conflicts with."}
    )
    active = Flag(metadata={"description": "false keeps the account on record and out of every run. Default true."})
    extra = Loose(metadata={"description": "Anything else; returned unchanged."})


class ReviewerChangeSchema(ReviewerSchema):
    """A full replacement of one account; the id is the one in the address."""

    id = Key(metadata={"description": "May be left out; otherwise the id in the address."})


class ReviewersSchema(Record):
    """Several reviewers, stored all or not at all."""

    reviewers = ListOf(NestedRecord(ReviewerSchema), required=True, validate=Length(1, MOST_RECORDS))


ReviewerPage = page_of("ReviewerPage", ReviewerSchema, "Reviewers in the order of their creation.")


class AddedSchema(Schema):
    """What an upload of records did."""

    created = Whole(required=True, metadata={"description": "Records stored (or, in a dry run, that would be)."})
    warnings = ListOf(NestedRecord(WarningSchema), required=True)


class RemovedSchema(Schema):
    """What went with a deleted record."""

    bids = Whole()
    conflicts = Whole()
    scores = Whole()
