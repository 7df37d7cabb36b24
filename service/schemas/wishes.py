"""Objectives and rules in a request: judged by the engine's own readers, each fault at its place in the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError

from matching.errors import InputError, Issue
from matching.objectives import EVIDENCE, OBJECTIVES, OPTIONS, parse_objective
from matching.roles import ROLES, parse_roles
from matching.rules import KINDS, parse_rules
from service.schemas.fields import Coded, Spoken

__all__ = ["OBJECTIVE_EXAMPLE", "RULES_EXAMPLE", "Objective", "Roles", "Rules"]

OBJECTIVE_EXAMPLE: list[Any] = [{"name": "maximin", "loss": 0.05}, "total"]

RULES_EXAMPLE: list[Any] = [
    {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1},
    {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1, "price": 0.2},
    {"rule": "same", "attribute": "track"},
]

OWN = "_schema"  # where marshmallow keeps the messages about an object itself

_NUMBER = {"type": "number"}
_NUMBERS = {"anyOf": [_NUMBER, {"type": "object", "properties": {
    "default": _NUMBER,
    "reviewers": {"type": "object", "additionalProperties": _NUMBER},
    "pairs": {"type": "array", "items": {"type": "array"}, "description": "[submission, reviewer, number] each."},
}}]}  # fmt: skip
_ERRORS = {"anyOf": [*_NUMBERS["anyOf"], {"type": "string", "enum": [EVIDENCE]}]}
_FORMS = {"cap": _NUMBERS, "standard_error": _ERRORS}
_ONE = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "enum": list(OBJECTIVES)},
        **{option: _FORMS.get(option, _NUMBER) for options in OPTIONS.values() for option in options},
        "loss": {**_NUMBER, "description": "Share of the best value that later objectives may give away, [0, 1)."},
    },
}
_NAME = {"type": "string", "enum": list(OBJECTIVES)}


class Objective(Spoken):
    """A name, an object with ``name`` and options, or a list of those in order of importance."""

    def __init__(self, **kwargs: Any) -> None:
        forms = [_NAME, _ONE, {"type": "array", "minItems": 1, "items": {"anyOf": [_NAME, _ONE]}}]
        super().__init__(**{**kwargs, "metadata": {"anyOf": forms, **kwargs.get("metadata", {})}})

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        try:
            parse_objective(value)
        except InputError as error:
            raise ValidationError(_placed(error.issues, "objective", value)) from None
        return value


class Rules(Spoken):
    """A list of rules by attributes."""

    def __init__(self, **kwargs: Any) -> None:
        one = {
            "type": "object",
            "required": ["rule"],
            "properties": {"rule": {"type": "string", "enum": list(KINDS)}, "name": {"type": "string"}},
        }
        super().__init__(**{**kwargs, "metadata": {"type": "array", "items": one, **kwargs.get("metadata", {})}})

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        try:
            parse_rules(value)
        except InputError as error:
            raise ValidationError(_placed(error.issues, "rules", value)) from None
        return value


class Roles(Spoken):
    """Roles that are assigned together, each with what is wanted of it."""

    def __init__(self, **kwargs: Any) -> None:
        count = {"type": "integer", "minimum": 0}
        one = {
            "type": "object",
            "properties": {
                "demand": count, "load_max": count, "load_min": count,
                "weight": {"type": "number", "exclusiveMinimum": 0,
                           "description": "What affinities of the role count in the objective. Default 1."},
            },
            "additionalProperties": False,
        }  # fmt: skip
        form = {"type": "object", "properties": dict.fromkeys(ROLES, one), "additionalProperties": False}
        super().__init__(**{**kwargs, "metadata": {**form, **kwargs.get("metadata", {})}})

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> Any:
        try:
            parse_roles(value)
        except InputError as error:
            raise ValidationError(_placed(error.issues, "roles", value)) from None
        return value


def _placed(issues: tuple[Issue, ...] | list[Issue], name: str, value: Any) -> dict[Any, Any]:
    """Issues as the nested messages marshmallow knows, so that they join the other faults of the body."""
    tree: dict[Any, Any] = {}
    for issue in issues:
        node = tree
        for step in _steps((issue.field or "").removeprefix(name), value):
            if step == OWN:
                break  # a member of the request that is called so: its fault is told one level above
            node = node.setdefault(step, {})
        node.setdefault(OWN, []).append(Coded(issue.reason, issue.code))
    return tree


def _steps(place: str, value: Any) -> list[str | int]:
    """``"[2].reviewers.extra.joined"`` as steps into `value`, whose own keys tell which dots part them."""
    steps: list[str | int] = []
    while place:
        if place.startswith("["):
            number, _, place = place[1:].partition("]")
            steps.append(int(number))
        else:
            place = place.removeprefix(".")
            keys = value if isinstance(value, Mapping) else ()
            fits = [key for key in keys if place == key or place.startswith((f"{key}.", f"{key}["))]
            step = max(fits, key=len) if fits else place.partition(".")[0].partition("[")[0]
            steps.append(step)
            place = place[len(step) :]
            if not step:
                break
        value = _inside(value, steps[-1])
    return steps


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None
