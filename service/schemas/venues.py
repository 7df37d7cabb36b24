"""Venues and what is checked before a plan."""

from __future__ import annotations

from marshmallow import Schema, fields

from service.schemas.common import Record, page_of
from service.schemas.fields import Key, ListOf, Map, NestedRecord, Text, Whole

__all__ = ["ReadinessSchema", "VenueChangeSchema", "VenuePage", "VenueSchema", "VenueShownSchema"]

EXAMPLE = {
    "id": "workshop-2026",
    "name": "Workshop on Careful Matching 2026",
    "demand": 3,
    "load_max": 6,
    "load_min": 0,
    "domain_aliases": {"oldco.example": "newco.example"},
    "free_mail": ["post.example"],
}


class VenueChangeSchema(Record):
    """Fields of a venue; those left out keep their value (or take the default on creation)."""

    id = Key(metadata={"description": "Outside id; names the venue in addresses."})
    name = Text(most=1000, metadata={"description": "As shown to people."})
    demand = Whole(metadata={"description": "Reviews a submission needs where it states none. Default 3."})
    load_max = Whole(
        metadata={
            "description": "Most reviews a reviewer takes; a personal limit above it is cut to it. 0 means "
            "none. Default 6."
        }
    )
    load_min = Whole(metadata={"description": "Fewest reviews a reviewer takes, a hard bound. Default 0."})
    domain_aliases = Map(
        values=Text(most=253, least=1), metadata={"description": "E-mail domain -> the domain it counts as."}
    )
    free_mail = ListOf(
        Text(most=253, least=1),
        metadata={"description": "Further mail providers whose domains say nothing about an employer."},
    )


class VenueSchema(VenueChangeSchema):
    """A new venue."""

    id = Key(required=True, metadata={"description": "Outside id; names the venue in addresses."})


class VenueShownSchema(Schema):
    """A stored venue."""

    id = Text(required=True)
    name = Text(required=True)
    demand = Whole(required=True)
    load_max = Whole(required=True)
    load_min = Whole(required=True)
    domain_aliases = Map(required=True, values=Text())
    free_mail = ListOf(Text(), required=True)
    created_at = fields.DateTime(metadata={"description": "When it was created, UTC."})
    counts = Map(values=Whole(most=None), metadata={"description": "Stored records by kind; on single venues only."})


VenuePage = page_of("VenuePage", VenueShownSchema, "Venues in the order of their creation.")


class ReadinessItemSchema(Schema):
    """One thing that is missing or odd."""

    code = Text(required=True, metadata={"example": "too-few-eligible"})
    message = Text(required=True, metadata={"description": "One sentence with names and numbers."})
    severity = Text(
        required=True, metadata={"description": "`error` stops a full plan, `warning` does not, `info` is a note."}
    )
    submissions = ListOf(Text(), required=True)
    reviewers = ListOf(Text(), required=True)
    data = Map()


class ReadinessSchema(Schema):
    """What a run would find."""

    ready = fields.Boolean(required=True, metadata={"description": "No item stands in the way of a full plan."})
    counts = Map(required=True, metadata={"description": "Records, slots, demand and evidence in numbers."})
    items = ListOf(NestedRecord(ReadinessItemSchema), required=True)
