"""A plan's JSON object -> the plan, every field looked at: a plan file is anybody's until it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from matching.formats.faults import Faults
from matching.notices import Notice
from matching.plan.plan import Alternate, Assignment, AssignmentPlan, Certificate, ScorePart
from matching.roles import REVIEWER, ROLES
from matching.solvers.base import Status

__all__ = ["plan_of"]

Kind = tuple[Callable[[Any], bool], str]
"""What a value has to be: a test, and the same in words."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_chance(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_chances(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, list)
        and len(entry) == 3
        and all(isinstance(name, str) for name in entry[:2])
        and _is_chance(entry[2])
        for entry in value
    )


TEXT: Kind = (lambda value: isinstance(value, str), "text")
NUMBER: Kind = (_is_number, "a number")
NUMBER_OR_NULL: Kind = (lambda value: value is None or _is_number(value), "a number or null")
COUNT: Kind = (_is_count, "a whole number of at least 0")
FLAG: Kind = (lambda value: isinstance(value, bool), "true or false")
TEXTS: Kind = (_is_texts, "a list of texts")
OBJECTS: Kind = (lambda value: isinstance(value, list) and all(map(_is_object, value)), "a list of objects")
OBJECT: Kind = (_is_object, "an object")
OBJECT_OR_NULL: Kind = (lambda value: value is None or _is_object(value), "an object or null")
COUNTS: Kind = (lambda value: _is_object(value) and all(map(_is_count, value.values())), "an object of whole numbers")
PRICES: Kind = (
    lambda value: _is_object(value) and all(entry is None or _is_number(entry) for entry in value.values()),
    "an object of numbers or null",
)
CHANCE_OR_NULL: Kind = (lambda value: value is None or _is_chance(value), "a number between 0 and 1, or null")
CHANCES: Kind = (_is_chances, "a list of [submission, reviewer, number between 0 and 1]")
ROLE: Kind = (lambda value: value in ROLES, f"one of {', '.join(ROLES)}")
STATUS: Kind = (
    lambda value: isinstance(value, str) and value in {status.value for status in Status},
    f"one of {', '.join(status.value for status in Status)}",
)

PLAN: Mapping[str, Kind] = {
    "status": STATUS, "assignments": OBJECTS, "alternates": OBJECTS, "value": NUMBER_OR_NULL, "bound": NUMBER_OR_NULL,
    "gap": NUMBER_OR_NULL, "unfilled": COUNTS, "certificate": OBJECT, "report": OBJECT, "diagnosis": OBJECT,
    "notices": OBJECTS, "provenance": OBJECT, "objectives": OBJECTS, "probabilities": CHANCES,
    "rule_shortfalls": OBJECTS,
}  # fmt: skip
LATER: Mapping[str, Any] = {"objectives": [], "probabilities": [], "rule_shortfalls": []}
"""Fields that plans written before there were objectives and rules lack, with what that means."""
ABSENT: Mapping[str, Mapping[str, Any]] = {
    "assignments": {"probability": None, "role": REVIEWER}, "alternates": {"role": REVIEWER},
}  # fmt: skip
"""Fields of pairs that older plans, and roles that plans of reviewers alone, lack, with what that means."""
ASSIGNMENT: Mapping[str, Kind] = {
    "submission": TEXT, "reviewer": TEXT, "affinity": NUMBER, "parts": OBJECTS, "locked": FLAG, "reasons": TEXTS,
    "probability": CHANCE_OR_NULL, "role": ROLE,
}  # fmt: skip
PART: Mapping[str, Kind] = {
    "signal": TEXT, "value": NUMBER_OR_NULL, "used": NUMBER_OR_NULL, "weight": NUMBER, "contribution": NUMBER_OR_NULL,
}  # fmt: skip
ALTERNATE: Mapping[str, Kind] = {
    "submission": TEXT, "reviewer": TEXT, "rank": COUNT, "affinity": NUMBER_OR_NULL, "spare_load": COUNT, "full": FLAG,
    "role": ROLE,
}  # fmt: skip
CERTIFICATE: Mapping[str, Kind] = {
    "submission_prices": PRICES, "reviewer_prices": PRICES, "penalty": NUMBER, "missing": COUNT, "audited": FLAG,
    "proofs": OBJECTS,
}  # fmt: skip
NOTICE: Mapping[str, Kind] = {
    "code": TEXT, "message": TEXT, "submissions": TEXTS, "reviewers": TEXTS, "data": OBJECT,
}  # fmt: skip
PROVENANCE: Mapping[str, Kind] = {"params": OBJECT, "text": OBJECT_OR_NULL}  # what is read again; the rest is kept


def plan_of(record: Mapping[str, Any], faults: Faults) -> AssignmentPlan | None:
    """The plan in a JSON object without its schema; None where it has faults, which are then in `faults`.

    A value, bound or gap of null is what was not finite when the plan was written.
    """
    record = {**LATER, **record}
    if not _fits(record, PLAN, "", faults):
        return None
    certificate = {"proofs": [], **record["certificate"]}
    _fits(certificate, CERTIFICATE, "certificate.", faults)
    provenance = record["provenance"]
    _fits({name: provenance[name] for name in PROVENANCE if name in provenance}, PROVENANCE, "provenance.", faults, ())
    for name, kinds in (("assignments", ASSIGNMENT), ("alternates", ALTERNATE), ("notices", NOTICE)):
        for at, entry in enumerate(record[name]):
            entry = {**ABSENT.get(name, {}), **entry}
            if _fits(entry, kinds, f"{name}.{at}.", faults) and name == "assignments":
                for place, part in enumerate(entry["parts"]):
                    _fits(part, PART, f"{name}.{at}.parts.{place}.", faults)
    if faults:
        return None
    return AssignmentPlan(
        status=Status(record["status"]),
        assignments=tuple(map(_assignment, record["assignments"])),
        alternates=tuple(Alternate(**entry) for entry in record["alternates"]),
        value=math.nan if record["value"] is None else record["value"],
        bound=math.inf if record["bound"] is None else record["bound"],
        gap=math.inf if record["gap"] is None else record["gap"],
        unfilled=record["unfilled"],
        certificate=Certificate(**{**certificate, "proofs": tuple(certificate["proofs"])}),
        report=record["report"],
        diagnosis=record["diagnosis"],
        notices=tuple(map(_notice, record["notices"])),
        provenance=provenance,
        objectives=tuple(record["objectives"]),
        probabilities=tuple((paper, person, chance) for paper, person, chance in record["probabilities"]),
        rule_shortfalls=tuple(record["rule_shortfalls"]),
    )


def _fits(
    record: Mapping[str, Any],
    kinds: Mapping[str, Kind],
    place: str,
    faults: Faults,
    needed: tuple[str, ...] | None = None,
) -> bool:
    """Whether a record has the fields of its kind and no others; whatever is wrong goes to `faults`."""
    before = len(faults.issues) + faults.dropped
    for name in kinds if needed is None else needed:
        if name not in record:
            faults.add("is missing", "missing-field", f"{place}{name}")
    for name, value in record.items():
        if name not in kinds:
            faults.add("is no field of a plan", "unknown-field", f"{place}{name}")
        elif not kinds[name][0](value):
            faults.add(f"must be {kinds[name][1]}", "not-a-plan", f"{place}{name}")
    return len(faults.issues) + faults.dropped == before


def _assignment(record: Mapping[str, Any]) -> Assignment:
    parts = tuple(ScorePart(**part) for part in record["parts"])
    return Assignment(**{**record, "parts": parts, "reasons": tuple(record["reasons"])})


def _notice(record: Mapping[str, Any]) -> Notice:
    ids = {name: tuple(record[name]) for name in ("submissions", "reviewers")}
    return Notice(**{**record, **ids})
