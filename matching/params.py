"""What a chair may ask for, each with range, unit, effect and default."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from matching.errors import InvalidParamsError, Issue
from matching.objectives import OBJECTIVES, Wish, parse_objective
from matching.roles import REVIEWER, RoleWish, parse_roles
from matching.rules import freeze_rules, parse_rules

__all__ = ["OBJECTIVES", "Params"]

MOST_WEIGHT = 1e6
MOST_DEFAULT = 1e9  # also of an imported score; sums stay far inside single precision

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType({"text": 1.0, "areas": 0.1, "bids": 0.25})
"""Weights of the built-in signals; an imported table that is not named weighs 1."""


@dataclass(frozen=True)
class Params:
    """Options of one run.

    Attributes
    ----------
    demand : int or None
        Reviews a submission, [0, inf). Replaces the venue's default, not a submission's own number. Default None.
    load_max, load_min : int or None
        Reviews a reviewer, [0, inf). Replace the venue's defaults; a personal load_max above it is cut to it.
    objective : str, mapping, or list of those
        What is maximised: a name of OBJECTIVES, or a mapping with ``name``, the options of `matching.objectives.Wish`
        and ``loss``, or a list in order of importance. Per reviewer or pair, cap and standard_error are a mapping
        ``{"default": x, "reviewers": {id: x}, "pairs": [[submission, reviewer, x], ...]}``. Default "total".
    weights : mapping of str to float
        Signal -> weight, [0, 1e6], no unit. Signals not named keep their default (DEFAULT_WEIGHTS; imported
        tables 1). A name that is no signal of the venue is an error.
    defaults : mapping of str to float or None
        Signal -> value used for pairs it says nothing about, [-1e9, 1e9]; None leaves them unknown. Unset:
        text the mean of the known pairs, areas and bids 0, imported tables their own default.
    allow_unknown : bool
        Whether pairs no signal says anything about may be assigned. Default True.
    allow_zero : bool
        Whether pairs whose affinity is exactly 0 may be assigned. Default True.
    affiliation_conflicts : bool
        Whether a shared e-mail domain or institution bars a pair. Default True.
    scorer : str
        Name of the text scorer: "lexical", "encoder", "hybrid", or "auto", which is hybrid where a sentence encoder is
        to be had and lexical elsewhere; the plan says which it was. Default "auto".
    recency_half_life : float or None
        Years after which a publication counts half, (0, inf). Default None: all count alike.
    candidates : int
        First candidates per submission and per reviewer, [1, inf). Changes speed, never the result's value.
        Default 16.
    n_alternates : int
        Alternates listed per submission, [0, inf). Default 3.
    rng : int
        Seed of every choice among equals, [0, 2**63). Default 0.
    time_limit : float or None
        Seconds of wall time, (0, inf), one limit for scoring and solving; when it comes while texts are scored, there
        is no plan. Default None.
    rules : sequence of mapping
        Rules by attributes, as `matching.rules.language` describes them; they hold beside the venue's own. Default
        none.
    roles : mapping of str to mapping
        Roles that are assigned together ("reviewer", "area_chair", "emergency"), each with any of ``demand`` (people a
        submission needs, default 1, of reviewers as above), ``load_max``, ``load_min`` (default 0, of reviewers as
        above) and ``weight`` (of its affinities in the objective, (0, 1e6], default 1). People of other roles take no
        part. Default none: reviewers alone.
    """

    demand: int | None = None
    load_max: int | None = None
    load_min: int | None = None
    objective: Any = "total"
    weights: Mapping[str, float] = field(default_factory=dict)
    defaults: Mapping[str, float | None] = field(default_factory=dict)
    allow_unknown: bool = True
    allow_zero: bool = True
    affiliation_conflicts: bool = True
    scorer: str = "auto"
    recency_half_life: float | None = None
    candidates: int = 16
    n_alternates: int = 3
    rng: int = 0
    time_limit: float | None = None
    rules: Sequence[Mapping[str, Any]] = ()
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        issues: list[Issue] = []
        for entry in fields(self):
            value = getattr(self, entry.name)
            if hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
                object.__setattr__(self, entry.name, value.item())  # a number out of an array is a number

        def fault(name: str, reason: str, value: Any) -> None:
            issues.append(Issue(reason, "out-of-range", name, value=value, source="params"))

        for name, low in (
            ("demand", 0), ("load_max", 0), ("load_min", 0), ("candidates", 1), ("n_alternates", 0), ("rng", 0),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is None and name in ("demand", "load_max", "load_min"):
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value < 2**63:
                fault(name, f"must be a whole number of at least {low}", value)
        for name in ("recency_half_life", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (_is_number(value) and value > 0):
                fault(name, "must be a finite number above 0", value)
        for name in ("allow_unknown", "allow_zero", "affiliation_conflicts"):
            if not isinstance(getattr(self, name), bool):
                fault(name, "must be true or false", getattr(self, name))
        if not issues and None not in (self.load_min, self.load_max) and self.load_min > self.load_max:  # type: ignore[operator]
            reason = f"load_min {self.load_min} is above load_max {self.load_max}"
            issues.append(Issue(reason, "contradiction", "load_min", value=self.load_min, source="params"))
        try:
            parse_objective(self.objective)
        except InvalidParamsError as error:
            issues += error.issues
        else:
            object.__setattr__(self, "objective", _kept(self.objective))
        try:
            parse_rules(self.rules)
        except InvalidParamsError as error:
            issues += error.issues
        else:
            object.__setattr__(self, "rules", freeze_rules(self.rules or ()))
        try:
            wishes = parse_roles(_kept(self.roles))
        except InvalidParamsError as error:
            issues += error.issues
        else:
            object.__setattr__(self, "roles", _kept(self.roles or {}))
            issues += self._stated_twice(wishes)
        if not isinstance(self.scorer, str):
            fault("scorer", "must be the name of a text scorer", self.scorer)
        for name, lowest, most in (("weights", 0.0, MOST_WEIGHT), ("defaults", -MOST_DEFAULT, MOST_DEFAULT)):
            table = getattr(self, name)
            if not isinstance(table, Mapping):
                fault(name, "must map signal names to numbers", table)
                continue
            for signal, value in table.items():
                if not (value is None and name == "defaults") and not (_is_number(value) and lowest <= value <= most):
                    fault(f"{name}.{signal}", f"must be a number between {lowest:g} and {most:g}", value)
            object.__setattr__(self, name, MappingProxyType(dict(table)))
        if issues:
            raise InvalidParamsError(issues=issues)

    def _stated_twice(self, wishes: tuple[RoleWish, ...]) -> list[Issue]:
        """Numbers of reviewers that ``roles`` and an option of their own state differently."""
        return [
            Issue(
                f"roles.{wish.name} says {getattr(wish, name)}, the option {name} says {getattr(self, name)}",
                "contradiction",
                f"roles.{wish.name}.{name}",
                value=getattr(wish, name),
                source="params",
            )
            for wish in wishes
            for name in ("demand", "load_max", "load_min")
            if wish.name == REVIEWER and None not in (getattr(wish, name), getattr(self, name))
            if getattr(wish, name) != getattr(self, name)
        ]

    @property
    def role_wishes(self) -> tuple[RoleWish, ...]:
        """The roles of the plan in order, at least one; reviewers alone where none is named."""
        return parse_roles(self.roles)

    @property
    def wishes(self) -> tuple[Wish, ...]:
        """The objective as a stack of wishes, defaults filled in."""
        return parse_objective(self.objective)

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> Params:
        """Params from names and values; an unknown name is an error that lists the known ones."""
        if not isinstance(options, Mapping):
            raise InvalidParamsError(f"options must be names and values, not {type(options).__name__}")
        known = {entry.name for entry in fields(cls)}
        strange = sorted(set(options) - known, key=str)
        if strange:
            raise InvalidParamsError(
                issues=[
                    Issue(
                        f"there is no such option; known: {', '.join(sorted(known))}",
                        "unknown-option",
                        name,
                        source="params",
                    )
                    for name in strange
                ]
            )
        return cls(**options)

    @classmethod
    def from_toml(cls, text: str) -> Params:
        """Params from TOML; no keys gives the defaults."""
        try:
            return cls.from_mapping(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise InvalidParamsError(f"not TOML: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Names and values, as `from_mapping` takes them; ``roles`` only where there are any."""
        named = {entry.name: _plain(getattr(self, entry.name)) for entry in fields(self)}
        if not named["roles"]:
            del named["roles"]  # plans of reviewers alone, and their hashes, are what they were before there were roles
        return named


def _kept(value: Any) -> Any:
    """A copy that nobody changes from outside: mappings read-only, lists as tuples, arrays as lists."""
    if isinstance(value, Wish):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return MappingProxyType({str(key): _kept(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_kept(item) for item in value)
    return value.tolist() if hasattr(value, "tolist") else value


def _plain(value: Any) -> Any:
    """What JSON can write."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
