"""Scores from outside, one signal a table."""

from __future__ import annotations

from marshmallow import Schema

from service.schemas.bids import LenientQuery, ShownPairSchema
from service.schemas.common import MOST_PAIRS, Record, page_of
from service.schemas.fields import Length, ListOf, NestedRecord, QueryReal, Real, Reference, Text, Whole

__all__ = ["ScorePage", "ScoreSchema", "ScoresQuery", "ScoresSchema", "SignalsSchema"]

EXAMPLE = {
    "scores": [
        {"submission": "p1", "reviewer": "~Ada_Quell1", "score": 0.71},
        {"submission": "p2", "reviewer": "~Ada_Quell1", "score": 0.2},
    ],
    "default": None,
}
CSV_EXAMPLE = "submission,reviewer,score\np1,~Ada_Quell1,0.71\np2,~Ada_Quell1,0.2\n"
DEFAULT_WORDS = "Value of pairs no row speaks of; null leaves them unknown, which is not 0."


class ScoreSchema(Record):
    """The score of one pair."""

    submission = Reference(required=True)
    reviewer = Reference(required=True, metadata={"description": "Id, alias or address."})
    score = Real(required=True, metadata={"description": "Finite; higher is better."})


class ScoresSchema(Record):
    """Several scores of one signal."""

    scores = ListOf(NestedRecord(ScoreSchema), required=True, validate=Length(1, MOST_PAIRS))
    default = Real(allow_none=True, metadata={"description": DEFAULT_WORDS})


class ScoresQuery(LenientQuery):
    """How an upload of scores is meant."""

    default = QueryReal(metadata={"description": f"With a CSV body only. {DEFAULT_WORDS}"})


class ShownScoreSchema(ShownPairSchema):
    """A stored score."""

    score = Real(required=True)


ScorePage = page_of("ScorePage", ShownScoreSchema, "Scores with resolved ids.")


class SignalSchema(Schema):
    """One table of scores."""

    signal = Text(required=True)
    default = Real(required=True, allow_none=True, metadata={"description": DEFAULT_WORDS})
    scores = Whole(required=True, most=None, metadata={"description": "Pairs it speaks of."})


class SignalsSchema(Schema):
    """All tables of a venue."""

    items = ListOf(NestedRecord(SignalSchema), required=True)
