"""The values a rule is made of once its form is sound."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, NamedTuple

__all__ = ["Condition", "Rule", "Scalar", "Selection", "Sharing", "freeze_rules", "is_scalar", "moment"]

Scalar = str | bool | int | float | None
"""A value in a selection; None stands for "has no value"."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What one attribute of the chosen must satisfy.

    Attributes
    ----------
    attribute : str
    values : tuple of Scalar or None
        One of them; None asks for none in particular.
    excluded : tuple of Scalar
        None of them.
    at_least, at_most : float, datetime or None
    """

    attribute: str
    values: tuple[Scalar, ...] | None = None
    excluded: tuple[Scalar, ...] = ()
    at_least: float | datetime | None = None
    at_most: float | datetime | None = None


Selection = tuple[Condition, ...]
"""Conditions that all must hold; empty for everybody."""


class Sharing(NamedTuple):
    """The attribute of each side that a submission and a reviewer have a value of in common."""

    submissions: str
    reviewers: str


@dataclass(frozen=True)
class Rule:
    """One rule whose form is sound.

    Attributes
    ----------
    kind : str
        A key of KINDS.
    name : str
        As given, else made from the rule; unique within a list.
    submissions, reviewers : Selection
    options : mapping
        ``at_least``, ``at_most`` (int), ``each`` (str), ``groups`` (mapping of str to tuple of Scalar), ``sharing``
        (Sharing), ``missing``, ``among``, ``length``, ``weight``, ``from``, ``until``, ``away``: those that were given,
        and those with a default.
    price : float or None
        None: hard.
    place : str
        Where it stands in its list, for example ``"rules[2]"``.
    source : str
        The list it came from: "params", "venue" or a file.
    """

    kind: str
    name: str
    submissions: Selection = ()
    reviewers: Selection = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    price: float | None = None
    place: str = "rules"
    source: str = "params"


def freeze_rules(value: Any) -> Any:
    """The same JSON with read-only mappings and tuples for lists."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze_rules(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze_rules(item) for item in value)
    return value


def is_scalar(value: Any) -> bool:
    """Whether something is a text, a truth or a number that float64 can hold: what attributes compare by."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= sys.float_info.max  # compared, not converted: a whole number of 400 digits has no float
    return isinstance(value, str)


def moment(value: Any) -> datetime | None:
    """A date or time in ISO form, midnight UTC where no time is said; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found
