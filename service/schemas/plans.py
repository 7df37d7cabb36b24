"""Plans: what is wanted, the state of the run, and what it found."""

from __future__ import annotations

from marshmallow import Schema, fields

from matching.roles import ROLES
from service.schemas.common import MOST_PAIRS, PageQuery, Record, page_of
from service.schemas.conflicts import LockSchema
from service.schemas.fields import Flag, Length, ListOf, Map, NestedRecord, OneOf, Real, Text, Whole
from service.schemas.wishes import OBJECTIVE_EXAMPLE, RULES_EXAMPLE, Objective, Roles, Rules

__all__ = [
    "AlternatePage",
    "AlternateSchema",
    "AlternatesQuery",
    "AssignmentPage",
    "AssignmentsQuery",
    "CertificateSchema",
    "DiagnosisSchema",
    "ParamsSchema",
    "PlanPage",
    "PlanRequestSchema",
    "PlanSchema",
    "ProbabilityPage",
    "ScorePartSchema",
]

EXAMPLE = {
    "demand": 2, "load_max": 4, "weights": {"text": 1.0, "bids": 0.25}, "objective": OBJECTIVE_EXAMPLE,
    "rules": RULES_EXAMPLE, "rng": 7,
}  # fmt: skip
STATES = ("queued", "running", "succeeded", "infeasible", "failed", "interrupted", "cancelled", "timed_out")
SEED_MOST = 2**63 - 1


class ParamsSchema(Record):
    """Options of a run; each one left out keeps its default."""

    demand = Whole(allow_none=True, metadata={"description": "Reviews a submission; replaces the venue's default."})
    load_max = Whole(
        allow_none=True, metadata={"description": "Most reviews a reviewer; replaces the venue's default."}
    )
    load_min = Whole(
        allow_none=True, metadata={"description": "Fewest reviews a reviewer; replaces the venue's default."}
    )
    objective = Objective(
        metadata={
            "description": "What is maximised: a name, an object with `name` and options, or a list of those in order "
            "of importance. alpha belongs to welfare, t to threshold, cap to randomised and perturbed, beta to "
            'perturbed, standard_error and radius to robust. Default "total".'
        }
    )
    rules = Rules(
        metadata={"description": "Rules by attributes; they hold beside the venue's own. README describes each kind."}
    )
    roles = Roles(
        metadata={
            "description": "Roles that are assigned together, each with any of `demand` (people a submission needs; a "
            "submission's own `extra.demand_<role>` goes before it), `load_max`, `load_min` and `weight`. People of "
            "other roles take no part. Left out: reviewers alone."
        }
    )
    weights = Map(
        values=Real(least=0), metadata={"description": "Signal -> weight; signals not named keep their default."}
    )
    defaults = Map(
        values=Real(allow_none=True),
        metadata={"description": "Signal -> value of pairs it says nothing about; null leaves them unknown."},
    )
    allow_unknown = Flag(metadata={"description": "Whether pairs without any evidence may be assigned. Default true."})
    allow_zero = Flag(metadata={"description": "Whether pairs of affinity 0 may be assigned. Default true."})
    affiliation_conflicts = Flag(
        metadata={"description": "Whether a shared e-mail domain or institution bars a pair. Default true."}
    )
    scorer = Text(
        most=100,
        least=1,
        metadata={
            "description": 'Name of the text scorer: "lexical", "encoder", "hybrid", or "auto", which is hybrid where '
            'a sentence encoder is to be had and lexical elsewhere. Default "auto".'
        },
    )
    recency_half_life = Real(
        above=0,
        allow_none=True,
        metadata={"description": "Years after which a publication counts half; null: all alike."},
    )
    candidates = Whole(
        least=1, metadata={"description": "First candidates a side; changes speed, never the value. Default 16."}
    )
    n_alternates = Whole(metadata={"description": "Alternates listed per submission. Default 3."})
    rng = Whole(most=SEED_MOST, metadata={"description": "Seed of every choice among equals. Default 0."})
    time_limit = Real(
        above=0, allow_none=True, metadata={"description": "Seconds of wall time; null: the server's own limit."}
    )


class PlanRequestSchema(ParamsSchema):
    """What is wanted of a plan. An empty object asks for the defaults."""

    locks = ListOf(
        NestedRecord(LockSchema),
        validate=Length(None, MOST_PAIRS),
        metadata={"description": "Pairs held in this plan besides the venue's own locks."},
    )
    start = Text(
        most=100,
        least=1,
        allow_none=True,
        metadata={
            "description": "Id of an earlier plan of this venue, succeeded or infeasible, to begin from. After a small "
            "change as good a plan is found faster and few pairs move. For the total without rules; other plans are "
            "made as without it, and a notice says so."
        },
    )


class ReachedSchema(Schema):
    """One objective of a plan, with its options beside these fields."""

    name = Text(required=True)
    value = Real(required=True, allow_none=True, metadata={"description": "In the objective's own unit."})
    bound = Real(required=True, allow_none=True, metadata={"description": "No plan is better."})
    gap = Real(required=True, allow_none=True, metadata={"description": "Distance of the two."})


class PlanSchema(Schema):
    """One run and its state."""

    id = Text(required=True)
    venue = Text(required=True)
    state = Text(
        required=True,
        validate=OneOf(STATES),
        metadata={
            "description": "queued and running go on; the others are final. `infeasible` means proven: no full "
            "plan exists; "
            "the fullest one and the reasons are kept."
        },
    )
    phase = Text(allow_none=True, metadata={"description": "What the run is doing."})
    progress = Real(allow_none=True, metadata={"description": "Fraction done, 0 to 1."})
    value = Real(allow_none=True, metadata={"description": "Of the best plan so far, by the first objective."})
    bound = Real(allow_none=True, metadata={"description": "No plan is better by the first objective."})
    gap = Real(allow_none=True, metadata={"description": "Distance of value and bound."})
    objectives = ListOf(
        NestedRecord(ReachedSchema),
        allow_none=True,
        metadata={"description": "Every objective in order of importance; null before there is a result."},
    )
    created_at = Text(allow_none=True, metadata={"description": "UTC, RFC 3339."})
    started_at = Text(allow_none=True)
    ended_at = Text(allow_none=True)
    heartbeat_at = Text(allow_none=True, metadata={"description": "When the worker was last heard of."})
    params = Map(metadata={"description": "The options in full, defaults included."})
    start = Text(allow_none=True, metadata={"description": "Id of the plan this one began from; null for none."})
    status = Text(
        allow_none=True, metadata={"description": "The solver's word: optimal, feasible_at_limit, infeasible, ..."}
    )
    summary = Map(
        allow_none=True,
        metadata={
            "description": "Totals of the report; null while there is none. Of a plan with a start also `changes`: "
            "pairs `kept`, `added` and `removed`, of these `gone` with their submission or reviewer, reviews `moved` "
            "to somebody else, and `submissions` that have other reviewers than before."
        },
    )
    problem = Map(allow_none=True, metadata={"description": "Why it failed or is infeasible; null otherwise."})
    input_hash = Text(
        allow_none=True,
        metadata={
            "description": "SHA-256 over everything the plan was made from, venue and options without time_limit, in "
            "any order of records; equal input, equal hash, also in Python. null before there is a result."
        },
    )
    venue_hash = Text(metadata={"description": "SHA-256 of the stored venue the plan was, or will be, made from."})
    versions = Map(allow_none=True, metadata={"description": "Library versions of the run."})


PlanPage = page_of("PlanPage", PlanSchema, "Plans in the order of their creation.")


class AlternatesQuery(PageQuery):
    """Which alternates."""

    submission = Text(most=1000, least=1, metadata={"description": "Only those of this submission."})


class AssignmentsQuery(AlternatesQuery):
    """Which assignments, and how written."""

    reviewer = Text(most=1000, least=1, metadata={"description": "Only those of this reviewer."})
    format = Text(
        validate=OneOf(("json", "csv", "csv-spreadsheet")),
        metadata={
            "description": "`csv` is the whole list as text/csv, also chosen by `Accept: text/csv`; "
            "`csv-spreadsheet` adds a "
            "byte order mark and keeps cells from being taken for formulas."
        },
    )


class ScorePartSchema(Schema):
    """One signal's share; the contributions of a pair sum to its affinity."""

    signal = Text(required=True)
    value = Real(required=True, allow_none=True, metadata={"description": "null where the signal says nothing."})
    used = Real(required=True)
    weight = Real(required=True)
    contribution = Real(required=True)


class AssignmentSchema(Schema):
    """One reviewer on one submission."""

    submission = Text(required=True)
    reviewer = Text(required=True)
    role = Text(
        validate=OneOf(ROLES),
        metadata={"description": "What the person is on the submission. Only in plans that name `roles`."},
    )
    affinity = Real(required=True)
    locked = fields.Boolean(required=True)
    parts = ListOf(NestedRecord(ScorePartSchema), required=True)
    reasons = ListOf(Text(), required=True, metadata={"description": "Sentences a chair can read."})
    probability = Real(
        required=True,
        allow_none=True,
        metadata={"description": "With which a randomised plan draws the pair; null for other plans."},
    )


AssignmentPage = page_of("AssignmentPage", AssignmentSchema, "By submission, then role, then falling affinity.")


class ProbabilitiesQuery(AlternatesQuery):
    """Which pairs."""

    reviewer = Text(most=1000, least=1, metadata={"description": "Only those of this reviewer."})


class ProbabilitySchema(Schema):
    """A pair a randomised plan might have drawn."""

    submission = Text(required=True)
    reviewer = Text(required=True)
    probability = Real(required=True, metadata={"description": "Above 0, at most 1."})


ProbabilityPage = page_of("ProbabilityPage", ProbabilitySchema, "By submission, then reviewer.")


class AlternateSchema(Schema):
    """A ranked stand-in: lawful for the submission, not assigned to it."""

    submission = Text(required=True)
    reviewer = Text(required=True)
    rank = Whole(required=True, least=1)
    affinity = Real(required=True)
    spare_load = Whole(required=True, metadata={"description": "Reviews this person could still take."})
    full = fields.Boolean(required=True, metadata={"description": "No spare load."})
    role = Text(
        validate=OneOf(ROLES),
        metadata={
            "description": "In which the person could stand in; ranks count within it. Only in plans that name `roles`."
        },
    )


AlternatePage = page_of("AlternatePage", AlternateSchema, "By submission, then role, then rank.")


class DiagnosisSchema(Schema):
    """Why no full plan exists, empty for a full one; and where rules are missed."""

    plan = Text(required=True)
    state = Text(required=True)
    status = Text(allow_none=True)
    diagnosis = Map(
        required=True,
        allow_none=True,
        metadata={
            "description": "`sentences`: all of it in words. `capacity`: reviews needed and available by count, in "
            "plans of several roles with `roles` for each of them. "
            "`unfilled`, `load_min`: what the fullest plan misses. `too_few_eligible`: submissions with fewer eligible "
            "people than they need. `unserved`: minimal sets of submissions that need more than the people open to "
            "them can give; `unmet_minima`: the same for load minima. `rules_clash`: bounds of which no plan keeps "
            "all. `repairs`: changes with what each closes (`filled`) and leaves (`missing`), found by solving again."
        },
    )
    unfilled = Map(values=Whole(), metadata={"description": "Submission -> reviews it misses."})
    rule_shortfalls = ListOf(
        Map(),
        required=True,
        metadata={
            "description": "Where a rule with a price, or of an infeasible plan any rule, is missed: `rule`, where, "
            "`above` or `below` with the units, and their `cost`."
        },
    )
    notices = ListOf(Map())


class SubmissionPriceSchema(Schema):
    """A submission in the proof, in plans of several roles each role of it."""

    id = Text(required=True, metadata={"description": "For other roles than reviewers `<id>/<role>`."})
    demand = Whole(required=True, metadata={"description": "Reviews beside the locked ones."})
    price = Real(required=True, allow_none=True)


class ReviewerPriceSchema(Schema):
    """A reviewer in the proof."""

    id = Text(required=True)
    load_max = Whole(required=True, metadata={"description": "Most reviews beside the locked ones."})
    load_min = Whole(required=True, metadata={"description": "Fewest reviews beside the locked ones."})
    price = Real(required=True, allow_none=True)


class ProofSchema(Schema):
    """What the bound is recomputed from, together with the affinities and conflicts of the pairs."""

    submissions = ListOf(NestedRecord(SubmissionPriceSchema), required=True)
    reviewers = ListOf(NestedRecord(ReviewerPriceSchema), required=True)
    penalty = Real(required=True, metadata={"description": "What a missing review costs in the bound."})
    missing = Whole(required=True, most=None, metadata={"description": "Reviews that no plan can fill."})
    locked_affinity = Real(required=True, metadata={"description": "Affinity of the locked pairs, summed."})
    audited = fields.Boolean(
        required=True, metadata={"description": "Code without a solver recomputed value and bound, and agreed."}
    )
    formula = Text(required=True, metadata={"description": "How to get the bound from these numbers, in words."})
    proofs = ListOf(
        Map(),
        required=True,
        metadata={
            "description": "One for each objective, where there are rules or other objectives than the total: weights "
            "by submission, earlier objectives with their multipliers, prices of submissions, reviewers and rules."
        },
    )
    submission_prices = Map(values=Real(), metadata={"description": "The same prices by id."})
    reviewer_prices = Map(values=Real(), metadata={"description": "The same prices by id."})


class CertificateSchema(Schema):
    """Numbers from which anybody recomputes the bound without a solver."""

    plan = Text(required=True)
    status = Text(allow_none=True)
    value = Real(allow_none=True)
    bound = Real(allow_none=True)
    gap = Real(allow_none=True)
    certificate = NestedRecord(ProofSchema, required=True)
    input_hash = Text(allow_none=True, metadata={"description": "As of the plan."})
    venue_hash = Text(metadata={"description": "As of the plan."})
    provenance = Map(
        allow_none=True,
        metadata={
            "description": "Seed, options as asked for, versions, solver, seconds; `server_time_limit` is what the "
            "server allowed besides."
        },
    )
