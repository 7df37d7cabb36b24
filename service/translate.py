"""Loaded dicts to matching values and back; keys in JSON are the attributes of the dataclasses."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from matching.errors import ISSUES_IN_MESSAGE, InputError, Issue, MatchingError
from matching.notices import Notice
from matching.plan.plan import Assignment, AssignmentPlan, Certificate, plain
from matching.profiles.identity import fold_address, is_address
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, DeclaredConflict, ImportedScores, Lock, Venue
from matching.roles import REVIEWER
from matching.solvers.base import Status

__all__ = [
    "PLAN_DOCUMENTS",
    "VENUE_DEFAULTS",
    "dumps",
    "issues_with_names",
    "notice_to_dict",
    "plan_from_rows",
    "plan_to_rows",
    "problem_of",
    "reviewer_from",
    "reviewer_from_names",
    "reviewer_names",
    "reviewer_record",
    "submission_from",
    "submission_record",
    "venue_from_snapshot",
]

VENUE_DEFAULTS: Mapping[str, Any] = {
    "name": "", "demand": 3, "load_max": 6, "load_min": 0, "domain_aliases": {}, "free_mail": [],
}  # fmt: skip
REVIEWER_DEFAULTS: Mapping[str, Any] = {
    "name": "", "emails": [], "aliases": [], "role": "reviewer", "publications": [], "keywords": [], "areas": [],
    "seniority": None, "country": None, "affiliations": [], "load_min": None, "load_max": None, "same_person_as": None,
    "conflict_domains": [], "active": True, "extra": {},
}  # fmt: skip
SUBMISSION_DEFAULTS: Mapping[str, Any] = {
    "title": "", "abstract": "", "authors": [], "areas": [], "keywords": [], "track": None, "demand": None,
    "active": True, "extra": {},
}  # fmt: skip

PlanRows: TypeAlias = tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]

NO_NAMES = "[[],[],null]"  # most reviewers of some venues; spares parsing it

STOPPING = frozenset({"too-few-eligible", "too-little-load", "load-min-too-high"})
"""Codes of notices with which no full plan exists."""

REMARKS = frozenset({
    "role-left-out", "merged-accounts", "several-roles", "load-max-cut", "load-min-cut", "unused-signal",
    "started-from-plan",
})  # fmt: skip
"""Codes of notices about what was done as it was asked for."""

ROWS = re.compile(r"(?<=['\"]) \(row -?\d+\)|(?<=twice), at rows -?\d+ and -?\d+(?=;)")
"""Places of stored records in the words of an issue: an order nobody outside knows."""

PLAN_DOCUMENTS = (
    "report", "certificate", "diagnosis", "provenance", "notices", "unfilled", "probabilities", "rule_shortfalls",
)  # fmt: skip
"""Parts of a plan that are stored as one JSON text each."""


def dumps(value: Any) -> str:
    """Canonical JSON: no blanks, strict numbers; the same value gives the same text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, legal in JSON and in no database
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text


def reviewer_record(data: Mapping[str, Any]) -> dict[str, Any]:
    """A loaded reviewer with every key present. 0 and None stay what they are."""
    return {"id": data["id"], **REVIEWER_DEFAULTS, **data}


def submission_record(data: Mapping[str, Any]) -> dict[str, Any]:
    """A loaded submission with every key present."""
    return {"id": data["id"], **SUBMISSION_DEFAULTS, **data}


def reviewer_from(record: Mapping[str, Any]) -> Reviewer:
    """A reviewer from a stored or loaded record."""
    publications = tuple(Publication(**publication) for publication in record.get("publications") or ())
    return Reviewer(**{**record, "publications": publications})


def submission_from(record: Mapping[str, Any]) -> Submission:
    """A submission from a stored or loaded record."""
    return Submission(**{**record, "authors": tuple(Author(**author) for author in record.get("authors") or ())})


def reviewer_names(record: Mapping[str, Any]) -> str:
    """What else a reviewer is known by, as JSON: ``[aliases, folded addresses, same_person_as]``."""
    addresses = dict.fromkeys(fold_address(address) for address in record["emails"] or ())
    return dumps([list(record["aliases"] or ()), list(filter(is_address, addresses)), record["same_person_as"]])


def reviewer_from_names(name: str, names: str) -> Reviewer:
    """A reviewer of which only the names are known, for finding out who a reference means."""
    if names == NO_NAMES:
        return Reviewer(name)
    aliases, emails, same_person_as = json.loads(names)
    return Reviewer(name, aliases=aliases, emails=emails, same_person_as=same_person_as)


def venue_from_snapshot(snapshot: Mapping[str, Any]) -> Venue:
    """The venue of a plan from its stored snapshot (see `service.store.snapshot`)."""
    facts = snapshot["venue"]
    scores = []
    for table in snapshot["scores"]:
        submissions, reviewers, values = zip(*table["rows"], strict=True) if table["rows"] else ((), (), ())
        scores.append(
            ImportedScores(table["name"], submissions, reviewers, np.array(values, dtype=np.float64), table["default"])
        )
    return Venue(
        reviewers=tuple(map(reviewer_from, snapshot["reviewers"])),
        submissions=tuple(map(submission_from, snapshot["submissions"])),
        bids=tuple(Bid(*row) for row in snapshot["bids"]),
        conflicts=tuple(DeclaredConflict(*row) for row in snapshot["conflicts"]),
        scores=tuple(scores),
        locks=tuple(Lock(*row) for row in snapshot["locks"]),
        rules=tuple(snapshot.get("rules", ())),  # a venue without any has no such part
        **{name: facts[name] for name in VENUE_DEFAULTS},
    )


def notice_to_dict(notice: Notice) -> dict[str, Any]:
    """A notice as JSON, with a severity."""
    entry: dict[str, Any] = plain(
        {
            "code": notice.code,
            "message": notice.message,
            "submissions": notice.submissions,
            "reviewers": notice.reviewers,
            "data": notice.data,
        }
    )
    severity = "error" if notice.code in STOPPING else "info" if notice.code in REMARKS else "warning"
    return {**entry, "severity": severity}


def issues_with_names(issues: Iterable[Issue], snapshot: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Issues as dicts with "submissions" and "reviewers": the ids of the rows they speak of.

    A row counts records inside the snapshot, an order nobody outside knows, so "row" is None here, and a reason that
    does not name its record begins with it.
    """
    entries = []
    for issue in issues:
        papers, people = _records_of(issue, snapshot)
        reason = ROWS.sub("", issue.reason)
        if issue.row is not None and (names := [name for name in (*papers, *people) if name not in reason]):
            reason = f"{', '.join(names)}: {reason}"
        entry = {**plain(asdict(issue)), "reason": reason, "row": None}
        entries.append({**entry, "submissions": papers, "reviewers": people})
    return entries


def _records_of(issue: Issue, snapshot: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Ids of the submissions and of the reviewers an issue speaks of."""
    if issue.code == "locked-conflict" and isinstance(issue.value, (list, tuple)) and len(issue.value) == 2:
        return [str(issue.value[0])], [str(issue.value[1])]
    if issue.code == "too-many-locks" and isinstance(issue.value, str):
        of_paper = (issue.field or "").endswith(("demand", ".submissions"))  # a rule that locks is named by its place
        return ([issue.value], []) if of_paper else ([], [issue.value])
    records = snapshot.get(issue.source or "", ())
    if issue.row is None or not 0 <= issue.row < len(records) or issue.source == "scores":
        return [], []
    record = records[issue.row]
    if issue.source == "reviewers":
        return [], [record["id"]]
    if issue.source == "submissions":
        return [record["id"]], []
    return [record[0]], [record[1]]


def problem_of(error: Exception, snapshot: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a plan keeps of an error: ``{"code", "title", "detail", "errors"}``.

    An error that is not ours is named by its class alone: its text may hold names or addresses.
    """
    if not isinstance(error, MatchingError):
        return {
            "code": "internal-error",
            "title": "The engine failed",
            "detail": f"the computation stopped with {type(error).__name__}; the log has the details",
            "errors": [],
        }
    issues: Sequence[Issue] = error.issues if isinstance(error, InputError) else ()
    errors = issues_with_names(issues, snapshot or {})
    return {"code": error.code, "title": error.title, "detail": _detail(errors) or error.detail, "errors": errors}


def _detail(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first few faults as one sentence."""
    shown = [entry["reason"] for entry in errors[:ISSUES_IN_MESSAGE]]
    more = len(errors) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def plan_to_rows(
    plan: AssignmentPlan,
) -> PlanRows:
    """A plan as columns of its row, assignment rows, alternate rows, and documents in JSON text."""
    body = plan.to_dict()
    assignments = [
        {
            "position": position,
            "submission": entry["submission"],
            "reviewer": entry["reviewer"],
            "affinity": entry["affinity"],
            "locked": entry["locked"],
            "detail": dumps({name: entry[name] for name in ("parts", "reasons", "probability")}),
            "role": entry.get("role"),
        }
        for position, entry in enumerate(body["assignments"])
    ]
    alternates = [{"position": position, "role": None, **entry} for position, entry in enumerate(body["alternates"])]
    columns = {
        "status": body["status"],
        "value": body["value"],
        "bound": body["bound"],
        "gap": body["gap"],
        "summary": dumps(_totals(body["report"], len(assignments), body["unfilled"])),
        "versions": dumps(body["provenance"].get("versions", {})),
        "input_hash": body["provenance"].get("input_hash"),
        "objectives": dumps(body["objectives"]),
    }
    return columns, assignments, alternates, {name: dumps(body[name]) for name in PLAN_DOCUMENTS}


def plan_from_rows(columns: Any, pairs: Iterable[Any], documents: Mapping[str, Any]) -> AssignmentPlan:
    """A stored plan as far as explaining its pairs needs it: without alternates, report and reasons.

    Parameters
    ----------
    columns
        With status, value, bound and gap; numbers that are None stand for not finite ones.
    pairs
        With submission, reviewer, affinity, locked and role.
    documents
        certificate, unfilled and provenance, parsed.
    """
    value, bound, gap = (
        math.nan if number is None else number for number in (columns.value, columns.bound, columns.gap)
    )
    certificate = documents["certificate"]
    return AssignmentPlan(
        status=Status(columns.status),
        assignments=tuple(
            Assignment(row.submission, row.reviewer, row.affinity, (), row.locked, role=row.role or REVIEWER)
            for row in pairs
        ),
        alternates=(),
        value=value,
        bound=bound,
        gap=gap,
        unfilled=documents["unfilled"],
        certificate=Certificate(**{**certificate, "proofs": tuple(certificate.get("proofs", ()))}),
        report={},
        diagnosis={},
        notices=(),
        provenance=documents["provenance"],
    )


def _totals(report: Mapping[str, Any], n_assignments: int, unfilled: Mapping[str, int]) -> dict[str, Any]:
    """The short part of a report that a list of plans shows."""
    totals = report.get("totals", report)
    short = {name: value for name, value in totals.items() if not isinstance(value, (dict, list))}
    if (changes := report.get("changes")) is not None:
        short["changes"] = {name: count for name, count in changes.items() if not isinstance(count, list)}
    return {**short, "assignments": n_assignments, "unfilled": sum(unfilled.values())}
