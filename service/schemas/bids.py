"""Bids, and what every upload of pairs answers."""

from __future__ import annotations

from marshmallow import Schema, fields

from matching.profiles.venue import BID_VALUES
from service.schemas.common import MOST_PAIRS, Record, WarningSchema, WriteQuery, page_of
from service.schemas.fields import Length, ListOf, NestedRecord, OneOf, Reference, Text, Whole

__all__ = [
    "BidPage",
    "BidSchema",
    "BidsSchema",
    "DeletedSchema",
    "LenientQuery",
    "PairsQuery",
    "PairsStoredSchema",
    "ShownPairSchema",
]

EXAMPLE = {
    "bids": [
        {"submission": "p1", "reviewer": "~Ada_Quell1", "bid": "high"},
        {"submission": "p2", "reviewer": "ada@uni.example", "bid": "low"},
    ]
}
CSV_EXAMPLE = "submission,reviewer,bid\np1,~Ada_Quell1,high\np2,ada@uni.example,low\n"


class PairsQuery(WriteQuery):
    """How an upload of pairs is meant."""

    columns = Text(
        most=200,
        least=1,
        metadata={
            "description": "With a CSV body that has no header only: its columns in order, for example "
            "`submission,reviewer,score`. Otherwise columns are found by their names, accepted synonyms included."
        },
    )


class LenientQuery(PairsQuery):
    """How an upload is meant that may be stored in part."""

    on_error = Text(
        validate=OneOf(("reject", "skip")),
        metadata={
            "description": "`reject`: one faulty row refuses the whole upload. `skip`: store the good rows, return "
            "the others.",
            "default": "reject",
        },
    )


class BidSchema(Record):
    """A reviewer's wish about one submission."""

    submission = Reference(required=True)
    reviewer = Reference(required=True, metadata={"description": "Id, alias or address."})
    bid = Text(required=True, validate=OneOf(tuple(BID_VALUES)))


class BidsSchema(Record):
    """Several bids."""

    bids = ListOf(NestedRecord(BidSchema), required=True, validate=Length(1, MOST_PAIRS))


class ShownPairSchema(Schema):
    """A stored pair."""

    submission = Text(required=True)
    reviewer = Text(required=True)
    given = fields.Raw(metadata={"description": "The words of the upload where they named a record otherwise."})


class ShownBidSchema(ShownPairSchema):
    """A stored bid."""

    bid = Text(required=True, validate=OneOf(tuple(BID_VALUES)))


BidPage = page_of("BidPage", ShownBidSchema, "Bids with resolved ids.")


class RejectedSchema(Schema):
    """A row that was not stored."""

    row = Whole(
        allow_none=True, metadata={"description": "Position from 0 in a JSON list; line number from 1 in a CSV body."}
    )
    field = Text(allow_none=True)
    value = fields.Raw(allow_none=True)
    reason = Text(required=True)
    code = Text()


class PairsStoredSchema(Schema):
    """What an upload of pairs did."""

    created = Whole(required=True)
    updated = Whole(
        required=True, metadata={"description": "Pairs that were stored already and now say what was sent."}
    )
    rejected = ListOf(NestedRecord(RejectedSchema), required=True, metadata={"description": "Only with on_error=skip."})
    warnings = ListOf(NestedRecord(WarningSchema), required=True)
    signal = Text()


class DeletedSchema(Schema):
    """How many entries went."""

    deleted = Whole(required=True, metadata={"description": "Entries removed."})
