"""Which roles one plan assigns, with the demand, loads and weight of each: ``Params.roles`` read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from matching.errors import InvalidParamsError, Issue
from matching.types import Role

__all__ = ["REVIEWER", "ROLES", "RoleWish", "demand_field", "in_words", "one_of", "parse_roles"]

ROLES: tuple[Role, ...] = get_args(Role)
"""Every role there is, in the order in which a plan has them."""

REVIEWER: Role = "reviewer"

COUNTS = ("demand", "load_max", "load_min")
MOST_REVIEWS = (1 << 31) - 1  # as in the assignment problem: keeps every sum inside int64
MOST_WEIGHT = 1e6
WORDS: Mapping[str, str] = {"reviewer": "reviewer", "area_chair": "area chair", "emergency": "emergency reviewer"}


@dataclass(frozen=True, slots=True)
class RoleWish:
    """One role of a plan.

    Attributes
    ----------
    name : str
        One of ROLES.
    demand : int or None
        People of the role each submission needs, unless the submission says otherwise. None: for reviewers what
        options and venue say, for other roles 1.
    load_max : int or None
        Most submissions of a person of the role; None: what options and venue say.
    load_min : int or None
        Fewest; None: for reviewers what options and venue say, for other roles 0.
    weight : float
        What an affinity of this role counts in the objective, (0, 1e6]. 1: as much as it is.
    """

    name: Role
    demand: int | None = None
    load_max: int | None = None
    load_min: int | None = None
    weight: float = 1.0


def parse_roles(value: Any) -> tuple[RoleWish, ...]:
    """Check the option ``roles``.

    Parameters
    ----------
    value : mapping of str to mapping, or None
        Role -> ``demand``, ``load_max``, ``load_min``, ``weight``, each of which may be left out. None and {} mean a
        plan of reviewers alone.

    Returns
    -------
    tuple of RoleWish
        At least one, in the order of ROLES, whatever the order they were given in.

    Raises
    ------
    InvalidParamsError
        Every fault at its place, such as ``roles.area_chair.demand``.
    """
    issues: list[Issue] = []

    def fault(where: str, reason: str, code: str, given: Any = None) -> None:
        plain = given is None or isinstance(given, str | bool | int) or (isinstance(given, float) and given == given)
        issues.append(Issue(reason, code, where, value=given if plain else repr(given)[:80], source="params"))

    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        fault("roles", 'must map roles to what is wanted, such as {"area_chair": {"demand": 1}}', "wrong-type", value)
        raise InvalidParamsError(issues=issues)
    found: dict[str, RoleWish] = {}
    for name, options in value.items():
        where = f"roles.{name}"
        if name not in ROLES:
            fault(where, f"there is no such role; known: {', '.join(ROLES)}", "unknown-role", str(name))
            continue
        if options is not None and not isinstance(options, Mapping):
            fault(where, f"must be an object with any of {', '.join(COUNTS)} and weight", "wrong-type", options)
            continue
        given = {str(key): number for key, number in (options or {}).items() if number is not None}
        for key in sorted(set(given) - {*COUNTS, "weight"}):
            fault(f"{where}.{key}", f"there is no {key}; a role has {', '.join(COUNTS)} and weight", "unknown-option")
        counts = {}
        for key in COUNTS:
            number = counts[key] = given.get(key)
            whole = isinstance(number, int) and not isinstance(number, bool)
            if number is not None and not (whole and 0 <= number <= MOST_REVIEWS):
                fault(f"{where}.{key}", "must be a whole number of at least 0", "out-of-range", number)
                counts[key] = None
        weight = given.get("weight", 1.0)
        real = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not (real and 0 < weight <= MOST_WEIGHT):
            fault(f"{where}.weight", f"must be a number above 0 and at most {MOST_WEIGHT:g}", "out-of-range", weight)
            weight = 1.0
        least, most = counts["load_min"], counts["load_max"]
        if least is not None and most is not None and least > most:
            fault(f"{where}.load_min", f"load_min {least} is above load_max {most}", "contradiction", least)
        found[name] = RoleWish(name, weight=float(weight), **counts)
    if issues:
        raise InvalidParamsError(issues=issues)
    return tuple(found[name] for name in ROLES if name in found) or (RoleWish(REVIEWER),)


def demand_field(role: str) -> str:
    """Where a submission says how many people of a role it needs: ``demand``, or a name among its ``extra``."""
    return "demand" if role == REVIEWER else f"demand_{role}"


def in_words(role: str) -> str:
    """A role for a sentence, in the plural."""
    return f"{one_of(role)}s"


def one_of(role: str) -> str:
    """A role for a sentence, in the singular."""
    return WORDS[role]
