"""Declared conflicts and locks: two statements about a pair that no score moves."""

from __future__ import annotations

from service.schemas.bids import ShownPairSchema
from service.schemas.common import MOST_PAIRS, Record, page_of
from service.schemas.fields import Length, ListOf, NestedRecord, Reference, Text

__all__ = ["ConflictPage", "ConflictSchema", "ConflictsSchema", "LockPage", "LockSchema", "LocksSchema"]

EXAMPLE = {
    "conflicts": [{"submission": "p1", "reviewer": "~Ada_Quell1", "rule": "personal", "evidence": "former student"}]
}
CSV_EXAMPLE = "submission,reviewer,rule,evidence\np1,~Ada_Quell1,personal,former student\n"
LOCK_EXAMPLE = {"locks": [{"submission": "p2", "reviewer": "~Ada_Quell1"}]}
LOCK_CSV_EXAMPLE = "submission,reviewer\np2,~Ada_Quell1\n"


class ConflictSchema(Record):
    """A pair that must never be assigned."""

    submission = Reference(required=True)
    reviewer = Reference(required=True, metadata={"description": "Id, alias or address."})
    rule = Text(
        most=200, metadata={"description": 'The kind: "declared", "personal", "barred", ... Default "declared".'}
    )
    evidence = Text(most=10_000, null_is_empty=True, metadata={"description": "The words shown with it."})
    source = Text(most=1000, null_is_empty=True, metadata={"description": "Who said so."})


class ConflictsSchema(Record):
    """Several conflicts."""

    conflicts = ListOf(NestedRecord(ConflictSchema), required=True, validate=Length(1, MOST_PAIRS))


class ShownConflictSchema(ShownPairSchema):
    """A stored conflict."""

    rule = Text(required=True)
    evidence = Text(required=True)
    source = Text(required=True)


ConflictPage = page_of("ConflictPage", ShownConflictSchema, "Declared conflicts with resolved ids.")


class LockSchema(Record):
    """A pair that is already held: it counts toward demand and load and never moves."""

    submission = Reference(required=True)
    reviewer = Reference(required=True, metadata={"description": "Id, alias or address."})


class LocksSchema(Record):
    """Several locks."""

    locks = ListOf(NestedRecord(LockSchema), required=True, validate=Length(1, MOST_PAIRS))


class ShownLockSchema(ShownPairSchema):
    """A stored lock."""


LockPage = page_of("LockPage", ShownLockSchema, "Locks with resolved ids.")
