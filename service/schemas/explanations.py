"""Why a pair is in a plan, or is not: codes, parts, place, who stands better, and what it all rests on."""

from __future__ import annotations

from marshmallow import Schema, fields

from matching.roles import ROLES
from service.schemas.common import PageQuery, page_of
from service.schemas.fields import ListOf, Map, NestedRecord, OneOf, Real, Text, Whole
from service.schemas.plans import AlternateSchema, ScorePartSchema

__all__ = ["ExplanationPage", "ExplanationsQuery"]

EXPLANATIONS = (
    "assigned", "alternate", "conflict", "no-load", "inactive", "role", "unknown-affinity", "inactive-submission",
    "no-demand", "other-role", "full", "lower", "not-assigned", "no-plan",
)  # fmt: skip
STANDINGS = (
    "assigned", "no-demand", "no-load", "conflict", "unknown-affinity", "other-role", "full", "held", "rule",
    "elsewhere", "tie", "lower",
)  # fmt: skip
EVIDENCE_STATES = ("given", "on-request", "waiting", "failed", "none")


class ExplanationsQuery(PageQuery):
    """Whose reasons; at least one of the two."""

    submission = Text(
        most=1000,
        least=1,
        metadata={
            "description": "Alone: its reviewers, then its alternates, then everybody who cannot review it, with the "
            "reason."
        },
    )
    reviewer = Text(
        most=1000,
        least=1,
        metadata={
            "description": "Id, alias, address, or another account of the person. Alone: the person's submissions, "
            "alternates, and what they cannot review. With `submission`: the one pair, assigned or not."
        },
    )


class ConflictReasonSchema(Schema):
    """One conflict of a pair."""

    rule = Text(required=True, metadata={"example": "affiliation"})
    evidence = Text(required=True, metadata={"description": "One sentence with the id, address or institution."})
    source = Text(required=True, metadata={"description": "Who declared it; empty for what was found."})


class RulePriceSchema(Schema):
    """What one bound of a rule takes from a pair."""

    rule = Text(required=True, metadata={"description": "As the chair knows it."})
    where = Text(required=True, metadata={"description": "What the bound is about, and its limit."})
    price = Real(required=True, metadata={"description": "In units of affinity; below 0 where it adds to the pair."})


class PriceSchema(Schema):
    """Why a pair outside the plan cannot improve it: its affinity less what rules take is at most the two prices."""

    affinity = Real(required=True)
    submission_price = Real(required=True, metadata={"description": "What one more review is worth to the submission."})
    reviewer_price = Real(required=True, metadata={"description": "What one more review by them is worth elsewhere."})
    holds = fields.Boolean(
        required=True,
        metadata={"description": "affinity - the prices of rules <= the sum of the other two, up to 1e-6."},
    )
    rules = ListOf(
        NestedRecord(RulePriceSchema),
        metadata={"description": "Prices of rules, of plans for the total; empty where none takes or adds anything."},
    )


class StandingSchema(Schema):
    """Where somebody stands on a submission."""

    reviewer = Text(required=True)
    name = Text(required=True)
    affinity = Real(required=True, allow_none=True)
    rank = Whole(
        required=True,
        least=1,
        allow_none=True,
        metadata={"description": "Among the eligible, by affinity; equal ones share it. null for those who are not."},
    )
    reason = Text(
        required=True,
        validate=OneOf(STANDINGS),
        metadata={
            "description": "Why they are, or are not, there, beside those who are; the first that holds. `held`: the "
            "place is locked. `other-role`: on the submission in another role. `rule`: the rules in `rules` keep them "
            "off. `elsewhere`: the plan as a whole is better with them elsewhere. `tie`: equal to somebody "
            "chosen. `lower`: below everybody chosen."
        },
    )
    words = Text(required=True, metadata={"description": "The reason in one sentence."})
    # a field named load would hide the schema's own method
    carried = Whole(
        required=True, data_key="load", attribute="load", metadata={"description": "Reviews under the plan."}
    )
    load_max = Whole(required=True)
    locked = fields.Boolean(required=True)
    conflicts = ListOf(NestedRecord(ConflictReasonSchema), required=True)
    price = NestedRecord(PriceSchema, required=True, allow_none=True)
    rules = ListOf(Text(), metadata={"description": "Names of the rules that `words` speak of."})
    role = Text(
        validate=OneOf(ROLES),
        metadata={
            "description": "In which the person takes part; ranks count within it. Only in plans that name `roles`."
        },
    )


class BetterPlacedSchema(Schema):
    """Those with a higher affinity who are not on the submission."""

    count = Whole(required=True)
    by_reason = Map(values=Whole(), required=True, metadata={"description": "The same people by `reason`."})
    people = ListOf(
        NestedRecord(StandingSchema),
        required=True,
        metadata={"description": "By falling affinity, each with the reason; the first fifty places at most."},
    )


class PublicationEvidenceSchema(Schema):
    """One publication's part in the text affinity."""

    id = Text(required=True, metadata={"description": "Empty for keywords, which speak where there are none."})
    title = Text(required=True)
    year = Whole(required=True, least=None, most=None, allow_none=True)
    share = Real(required=True, metadata={"description": "Of the text affinity, 0 to 1; the shares add up to 1."})
    fit = Real(required=True, allow_none=True, metadata={"description": "Text affinity if it were the only one."})
    without = Real(required=True, allow_none=True, metadata={"description": "Text affinity without it."})
    terms = ListOf(
        Text(), required=True, metadata={"description": "Words that stand in it and in the submission, rarest first."}
    )
    passages = ListOf(Text(), required=True, metadata={"description": "Longer sequences that stand in both."})


class EvidenceSchema(Schema):
    """What the affinity of a pair rests on."""

    publications = ListOf(NestedRecord(PublicationEvidenceSchema), required=True)
    terms = ListOf(Text(), required=True, metadata={"description": "Shared words, of all publications."})
    documents = Whole(required=True, metadata={"description": "Publications used."})
    words = Whole(required=True, most=None, metadata={"description": "Meaningful words in them."})
    standard_error = Real(
        required=True,
        allow_none=True,
        metadata={"description": "Of the text affinity, leaving out one publication at a time; null for one."},
    )
    confidence = Text(required=True, validate=OneOf(("thin", "fair", "good")))
    confidence_words = Text(required=True, metadata={"description": "Why, in one sentence."})


class ExplanationSchema(Schema):
    """Why a pair is in the plan, or why it is not."""

    submission = Text(
        required=True, allow_none=True, metadata={"description": "null where the reason is the person's alone."}
    )
    reviewer = Text(
        required=True, allow_none=True, metadata={"description": "null where the reason is the submission's alone."}
    )
    assigned = fields.Boolean(required=True)
    role = Text(
        validate=OneOf(ROLES),
        metadata={"description": "What the person is on the submission. Only in plans that name `roles`."},
    )
    code = Text(
        required=True,
        validate=OneOf(EXPLANATIONS),
        metadata={
            "description": "`conflict`, `no-load` (load_max 0), `inactive`, `role`, `unknown-affinity` "
            "(allow_unknown is off), `inactive-submission` and `no-demand` rule a pair out. `full`, `lower` and "
            "`not-assigned` are lawful pairs: no load left, ranked below the alternates listed, no alternates listed."
        },
    )
    affinity = Real(
        required=True,
        allow_none=True,
        metadata={"description": "null where it is unknown, or was not looked up (see `evidence_state`)."},
    )
    locked = fields.Boolean(required=True)
    probability = Real(
        required=True,
        allow_none=True,
        metadata={"description": "With which a randomised plan drew the pair; null for others and other plans."},
    )
    parts = ListOf(
        NestedRecord(ScorePartSchema),
        required=True,
        metadata={"description": "They add up to the affinity; empty where they were not looked up."},
    )
    reasons = ListOf(Text(), required=True, metadata={"description": "Sentences a chair can read: the facts."})
    conflicts = ListOf(NestedRecord(ConflictReasonSchema), required=True)
    alternate = NestedRecord(AlternateSchema, required=True, allow_none=True)
    summary = ListOf(
        Text(),
        required=True,
        metadata={"description": "The evidence in sentences: sum, place, who stands better, what carries the text."},
    )
    eligible = Whole(
        required=True, allow_none=True, metadata={"description": "People who could be assigned to the submission."}
    )
    standing = NestedRecord(StandingSchema, required=True, allow_none=True)
    better_placed = NestedRecord(BetterPlacedSchema, required=True, allow_none=True)
    evidence = NestedRecord(EvidenceSchema, required=True, allow_none=True)
    evidence_state = Text(
        required=True,
        validate=OneOf(EVIDENCE_STATES),
        metadata={
            "description": "`given`: it is here. `on-request`: ask for the one pair. `waiting`: a worker is at it, or "
            "will be when it is free; ask again, Retry-After says when. `failed`: it could not be had, `notes` say "
            "why. `none`: one side takes no part in the plan."
        },
    )
    notes = ListOf(
        Text(), required=True, metadata={"description": "What else to know, such as why there is no evidence."}
    )


ExplanationPage = page_of(
    "ExplanationPage", ExplanationSchema, "Assigned pairs, alternates, then pairs that are ruled out."
)
