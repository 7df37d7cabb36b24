"""A venue: everything a plan is made from, as values.

Records name people and submissions by outside ids. `resolve_venue` turns every reference into a row
number, joins accounts of one person, and lists what resolves to nobody; nothing is dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matching.errors import InvalidVenueError, Issue
from matching.profiles.reviewer import Reviewer, _freeze
from matching.profiles.submission import Submission
from matching.rules import freeze_rules
from matching.types import FloatArray

__all__ = ["Bid", "DeclaredConflict", "ImportedScores", "Lock", "Venue"]

BID_VALUES: Mapping[str, float] = {"very_high": 1.0, "high": 0.5, "neutral": 0.0, "low": -0.5, "very_low": -1.0}
"""Bid label -> value in [-1, 1], no unit. No bid equals "neutral"."""


@dataclass(frozen=True, slots=True)
class Bid:
    """A reviewer's stated wish. `reviewer` may be an id, an alias or an address. `bid` is a key of BID_VALUES."""

    submission: str
    reviewer: str
    bid: str


@dataclass(frozen=True, slots=True)
class DeclaredConflict:
    """A pair somebody declared to be barred.

    `rule` says the kind ("declared", "personal", "barred", ...), `evidence` the words shown with it,
    `source` who said so.
    """

    submission: str
    reviewer: str
    rule: str = "declared"
    evidence: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """A pair that is already held: it counts toward demand and load and never moves."""

    submission: str
    reviewer: str


@dataclass(frozen=True, eq=False)
class ImportedScores:
    """Scores from outside, one signal.

    Attributes
    ----------
    name : str
        Name of the signal; may not be "text", "areas" or "bids".
    submissions, reviewers : tuple of str, length n
    values : ndarray of shape (n,), float64
        Finite. A pair not listed is unknown, which is not 0.
    default : float or None
        Value for pairs not listed; None leaves them unknown.
    """

    name: str
    submissions: tuple[str, ...]
    reviewers: tuple[str, ...]
    values: FloatArray
    default: float | None = None

    def __post_init__(self) -> None:
        _freeze(self, "submissions", "reviewers")
        try:
            values = np.array(self.values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            reason = f"values must be numbers: {error}"
            issue = Issue(reason, "wrong-type", "values", source=f"scores:{self.name}")
            raise InvalidVenueError(issues=[issue]) from error
        values.setflags(write=False)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Venue:
    """Reviewers, submissions and what is known about pairs of them.

    Attributes
    ----------
    reviewers : tuple of Reviewer
    submissions : tuple of Submission
    bids : tuple of Bid
    conflicts : tuple of DeclaredConflict
        Declared ones only; authorship and shared institutions are found by `matching.constraints`.
    scores : tuple of ImportedScores
    locks : tuple of Lock
    demand, load_max, load_min : int
        Defaults, in reviews, for records that state none. A personal load_max above the venue's is cut to it.
    domain_aliases : mapping of str to str
        E-mail domain -> the domain it counts as, for institutions with several.
    free_mail : tuple of str
        Further mail providers whose domains say nothing about an employer.
    rules : tuple of mapping
        Rules by attributes, as `matching.rules.language` describes them; read-only, lists as tuples.
    name : str
    extra : mapping
    """

    reviewers: tuple[Reviewer, ...] = ()
    submissions: tuple[Submission, ...] = ()
    bids: tuple[Bid, ...] = ()
    conflicts: tuple[DeclaredConflict, ...] = ()
    scores: tuple[ImportedScores, ...] = ()
    locks: tuple[Lock, ...] = ()
    demand: int = 3
    load_max: int = 6
    load_min: int = 0
    domain_aliases: Mapping[str, str] = field(default_factory=dict)
    free_mail: tuple[str, ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()
    name: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(
            self,
            "reviewers",
            "submissions",
            "bids",
            "conflicts",
            "scores",
            "locks",
            "domain_aliases",
            "free_mail",
            "rules",
            "extra",
        )
        object.__setattr__(self, "rules", freeze_rules(self.rules))
