"""Submissions and their authors."""

from __future__ import annotations

from typing import Any

from marshmallow import validates_schema

from service.schemas.common import MOST_RECORDS, Record, page_of
from service.schemas.fields import Flag, Key, Length, ListOf, Loose, NestedRecord, Text, Whole, fault

__all__ = ["AuthorSchema", "SubmissionChangeSchema", "SubmissionPage", "SubmissionSchema", "SubmissionsSchema"]

EXAMPLE = {
    "id": "p1",
    "title": "Fair assignment of reviewers",
    "abstract": "We study how to assign reviewers so that no submission is served badly.",
    "authors": [{"name": "Bo Lind", "email": "bo@other.example"}],
    "areas": ["assignment"],
    "demand": 2,
}


class AuthorSchema(Record):
    """One author. At least one of id, email and name is set."""

    name = Text(most=1000, null_is_empty=True)
    email = Text(most=320, null_is_empty=True)
    affiliation = Text(most=2000, null_is_empty=True)
    id = Text(most=1000, allow_none=True, metadata={"description": "Id or alias of this person in the reviewer pool."})

    @validates_schema
    def names_somebody(self, data: dict[str, Any], **kwargs: Any) -> None:
        """An author without id, address and name could never be recognised as a reviewer."""
        if not any((data.get(name) or "").strip() for name in ("id", "email", "name")):
            raise fault("an author needs an id, an email or a name", "no-author")


class SubmissionSchema(Record):
    """One submission to be reviewed."""

    id = Key(required=True, metadata={"description": "Outside id, unique in the venue."})
    title = Text(most=20_000, null_is_empty=True, metadata={"description": "null or blank where missing."})
    abstract = Text(
        most=200_000,
        null_is_empty=True,
        metadata={"description": "null or blank where missing; such a submission is listed as unscored."},
    )
    authors = ListOf(
        NestedRecord(AuthorSchema), metadata={"description": "Authorship bars a pair, whatever the score."}
    )
    areas = ListOf(Text(most=1000), metadata={"description": "Subject areas, best first."})
    keywords = ListOf(Text(most=1000))
    track = Text(most=1000, allow_none=True)
    demand = Whole(
        allow_none=True,
        metadata={"description": "Reviews wanted; 0 means none at all, null means the venue's default."},
    )
    active = Flag(metadata={"description": "false (withdrawn) keeps it on record and out of every run. Default true."})
    extra = Loose(metadata={"description": "Anything else; returned unchanged."})


class SubmissionChangeSchema(SubmissionSchema):
    """A full replacement of one submission; the id is the one in the address."""

    id = Key(metadata={"description": "May be left out; otherwise the id in the address."})


class SubmissionsSchema(Record):
    """Several submissions, stored all or not at all."""

    submissions = ListOf(NestedRecord(SubmissionSchema), required=True, validate=Length(1, MOST_RECORDS))


SubmissionPage = page_of("SubmissionPage", SubmissionSchema, "Submissions in the order of their creation.")
