"""Venues and what is checked before a plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from matching.profiles.identity import fold_domain
from service.schemas.common import Record, page_of
from service.schemas.fields import Coded, Key, ListOf, Map, NestedRecord, Text, Whole, fault
from service.schemas.wishes import RULES_EXAMPLE, Rules

__all__ = ["ReadinessSchema", "RulesSchema", "VenueChangeSchema", "VenuePage", "VenueSchema", "VenueShownSchema"]

LONGEST_DOMAIN = 253  # characters (RFC 1035)

EXAMPLE = {
    "id": "workshop-2026",
    "name": "Workshop on Careful Matching 2026",
    "demand": 3,
    "load_max": 6,
    "load_min": 0,
    "domain_aliases": {"oldco.example": "newco.example"},
    "free_mail": ["post.example"],
}


RULES = {"rules": RULES_EXAMPLE}


class Domain(Text):
    """An e-mail domain."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(most=LONGEST_DOMAIN, least=1, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if text and not fold_domain(text):
            raise fault("must name a domain", "no-domain")
        return text


class Aliases(Map):
    """Domain -> domain; following it from any domain must come to an end."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        loaded = super()._deserialize(value, attr, data, **kwargs)
        faults: dict[str, Any] = {}
        name = Domain()
        for domain in loaded:
            try:
                name.deserialize(domain)
            except ValidationError as error:
                faults[domain] = error.messages
        ways: dict[str, set[str]] = {}
        for domain, other in loaded.items():
            ways.setdefault(fold_domain(domain), set()).add(fold_domain(other))
        for domain in loaded:
            if domain not in faults and _comes_back(ways, fold_domain(domain)):
                words = "this domain counts as itself in the end; the table must not go in a circle"
                faults[domain] = [Coded(words, "circle")]
        if faults:
            raise ValidationError(faults)
        return loaded


def _comes_back(ways: Mapping[str, set[str]], start: str) -> bool:
    seen: set[str] = set()
    waiting = list(ways.get(start, ()))
    while waiting:
        if (domain := waiting.pop()) == start:
            return True
        if domain not in seen:
            seen.add(domain)
            waiting += ways.get(domain, ())
    return False


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
    domain_aliases = Aliases(
        values=Domain(),
        metadata={"description": "E-mail domain -> the domain it counts as, 1 to 253 characters each; no circles."},
    )
    free_mail = ListOf(
        Domain(),
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


class RulesSchema(Record):
    """The rules of a venue as one list."""

    rules = Rules(
        required=True,
        metadata={
            "description": "They hold in every plan of the venue. Their form is checked here; attributes, values and "
            "ids are looked up when a plan is made, and by readiness."
        },
    )


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
    counts = Map(
        required=True,
        values=Whole(most=None, allow_none=True),
        metadata={
            "description": "submissions, reviewers, reviews_needed, reviews_available, conflicts, bids, locks, "
            "reviewers_without_evidence, submissions_without_text, "
            "memory_mb (most a run may take, in MB of 10**6 bytes); null where faults of the records prevent counting."
        },
    )
    items = ListOf(NestedRecord(ReadinessItemSchema), required=True)
