"""Plans as files: JSON to read back, CSV for people, and the two files OpenReview's matcher writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matching.formats.delimited import write_table
from matching.formats.faults import Faults
from matching.formats.json_text import dump_json, parse_json
from matching.formats.plan_record import plan_of
from matching.plan.plan import Alternate, Assignment, AssignmentPlan
from matching.profiles.venue import Venue
from matching.roles import REVIEWER, ROLES

__all__ = [
    "PLAN_SCHEMA",
    "read_plan_json",
    "write_openreview_alternates",
    "write_openreview_assignments",
    "write_openreview_manifest",
    "write_plan_csv",
    "write_plan_json",
    "write_probabilities_csv",
]

PLAN_SCHEMA = "revmatch-plan/1"


def write_plan_json(plan: AssignmentPlan) -> bytes:
    """A plan as strict JSON with sorted keys; equal plans give equal bytes. Not finite numbers become null."""
    return dump_json({"schema": PLAN_SCHEMA} | plan.to_dict())


def read_plan_json(data: bytes, *, name: str = "plan.json") -> AssignmentPlan:
    """Twin of `write_plan_json`.

    Raises
    ------
    InvalidFileError (``invalid-file``)
        Not strict JSON, another schema, or fields that are missing, unknown or of another kind; every one is named.
    """
    faults = Faults(name)
    record = parse_json(data, faults)
    if not faults and not isinstance(record, Mapping):
        faults.add("must be one JSON object", "not-an-object")
    elif not faults and record.get("schema") != PLAN_SCHEMA:
        faults.add(f"must be {PLAN_SCHEMA!r}", "unknown-schema", "schema", value=record.get("schema"))
    faults.raise_if_any()
    plan = plan_of({key: value for key, value in record.items() if key != "schema"}, faults)
    faults.raise_if_any()
    assert plan is not None, "without faults there is a plan"
    return plan


def write_plan_csv(plan: AssignmentPlan, *, venue: Venue | None = None, for_spreadsheets: bool = False) -> bytes:
    """A plan as a table, one row an assignment, by submission, role, falling affinity and reviewer.

    Parameters
    ----------
    plan : AssignmentPlan
    venue : Venue or None
        Adds the columns submission_title and reviewer_name.
    for_spreadsheets : bool
        Byte order mark, CRLF, and an apostrophe before text that would run as a formula; see `write_table`.

    Returns
    -------
    bytes
        Columns submission, reviewer, role (of plans that name roles only), affinity, locked, probability (of randomised
        plans only),
        ``contribution_<signal>`` for each signal, reasons.
    """
    signals = sorted({part.signal for item in plan.assignments for part in item.parts})
    titles = {item.id: item.title for item in venue.submissions} if venue else {}
    names = {item.id: item.name for item in venue.reviewers} if venue else {}
    extra = ["submission_title", "reviewer_name"] if venue else []
    drawn = any(item.probability is not None for item in plan.assignments)
    chance = ["probability"] if drawn else []
    shares_of = [f"contribution_{name}" for name in signals]
    role = ["role"] if plan.names_roles else []
    header = ["submission", "reviewer", *role, "affinity", "locked", *chance, *extra, *shares_of]
    rows: list[list[str | int | float | None]] = []
    for item in sorted(
        plan.assignments,
        key=lambda item: (item.submission, ROLES.index(item.role), -item.affinity, item.reviewer),
    ):  # fmt: skip
        shares = {part.signal: part.contribution for part in item.parts}
        known = [titles.get(item.submission, ""), names.get(item.reviewer, "")] if venue else []
        rows.append(
            [
                item.submission,
                item.reviewer,
                *([item.role] if role else []),
                float(item.affinity),
                item.locked,
                *([item.probability] if drawn else []),
                *known,
                *(shares.get(name) for name in signals),
                "; ".join(item.reasons),
            ]
        )
    return write_table([*header, "reasons"], rows, for_spreadsheets=for_spreadsheets)


def write_probabilities_csv(plan: AssignmentPlan, *, for_spreadsheets: bool = False) -> bytes:
    """Every pair a randomised plan might have drawn, one row each: submission, reviewer, probability, drawn.

    Only the header for a plan that is not randomised.
    """
    chosen = {(item.submission, item.reviewer) for item in plan.assignments}
    rows: list[list[str | int | float | None]] = [
        [paper, person, float(chance), (paper, person) in chosen] for paper, person, chance in plan.probabilities
    ]
    return write_table(["submission", "reviewer", "probability", "drawn"], rows, for_spreadsheets=for_spreadsheets)


def write_openreview_assignments(plan: AssignmentPlan, role: str = REVIEWER) -> bytes:
    """OpenReview's assignments.json: for each submission with reviewers a list of user and score, by reviewer.

    Parameters
    ----------
    role : str
        OpenReview keeps a file for each role; people of other roles are left out.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for item in sorted(plan.assignments, key=lambda item: (item.submission, item.reviewer)):
        if item.role != role:
            continue
        found.setdefault(item.submission, []).append(_entry(item))
    return dump_json(found)


def write_openreview_alternates(plan: AssignmentPlan, role: str = REVIEWER) -> bytes:
    """OpenReview's alternates.json: for every submission a list of user and score, by falling score.

    Parameters
    ----------
    role : str
        As for `write_openreview_assignments`.
    """
    params = plan.provenance.get("params")
    several = isinstance(params, Mapping) and len(params.get("roles") or ()) > 1
    ends = tuple(f"/{name}" for name in ROLES if several and name != REVIEWER)
    rows = {next((name.removesuffix(end) for end in ends if name.endswith(end)), name): None
            for name in plan.certificate.submission_prices}  # fmt: skip
    found: dict[str, list[dict[str, Any]]] = {
        name: [] for name in (*rows, *(item.submission for item in plan.assignments))
    }
    for item in sorted(plan.alternates, key=lambda item: (item.submission, -item.affinity, item.reviewer)):
        if item.role != role:
            continue
        found.setdefault(item.submission, []).append(_entry(item))
    return dump_json(found)


def write_openreview_manifest(plan: AssignmentPlan) -> bytes:
    """What the two files cannot say, for a file beside them: status, totals and what the plan was made from."""
    record = plan.to_dict()
    kept = ("status", "value", "bound", "gap", "objectives", "rule_shortfalls", "unfilled", "provenance")
    return dump_json({"schema": PLAN_SCHEMA} | {name: record[name] for name in kept})


def _entry(item: Assignment | Alternate) -> dict[str, Any]:
    return {"aggregate_score": float(item.affinity), "user": item.reviewer}
