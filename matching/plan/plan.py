"""The plan in outside ids: what is stored, served and printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from matching.notices import Notice
from matching.roles import REVIEWER
from matching.solvers.base import Status

__all__ = ["Alternate", "Assignment", "AssignmentPlan", "Certificate", "ScorePart"]


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One signal's share of a pair's affinity. Over the parts of a pair, `contribution` sums to the affinity.

    Attributes
    ----------
    signal : str
        "text", "areas", "bids" or the name of an imported table.
    value : float or None
        As measured; None where the signal says nothing about this pair.
    used : float
        The value that entered the sum: `value`, or the signal's default where it is None.
    weight : float
    contribution : float
        ``weight * used``.
    """

    signal: str
    value: float | None
    used: float
    weight: float
    contribution: float


@dataclass(frozen=True, slots=True)
class Assignment:
    """One reviewer on one submission.

    Attributes
    ----------
    submission, reviewer : str
        Outside ids.
    affinity : float
        Sum of the parts' contributions, exactly as the solver saw it before the weight of a role.
    parts : tuple of ScorePart
    locked : bool
        Held before the run and kept.
    reasons : tuple of str
        Sentences a chair can read.
    probability : float or None
        Probability with which a randomised plan draws the pair, (0, 1]; None for other plans.
    role : str
        What the person is on the submission: "reviewer", "area_chair" or "emergency".
    """

    submission: str
    reviewer: str
    affinity: float
    parts: tuple[ScorePart, ...] = ()
    locked: bool = False
    reasons: tuple[str, ...] = ()
    probability: float | None = None
    role: str = REVIEWER


@dataclass(frozen=True, slots=True)
class Alternate:
    """A ranked stand-in: lawful for the submission, not assigned to it.

    Attributes
    ----------
    submission, reviewer : str
    rank : int
        From 1, by falling affinity among those with spare load, then among those without.
    affinity : float
    spare_load : int
        Reviews this person could still take under the plan.
    full : bool
        ``spare_load == 0``.
    role : str
        The role in which the person could stand in; ranks count within it.
    """

    submission: str
    reviewer: str
    rank: int
    affinity: float
    spare_load: int
    full: bool
    role: str = REVIEWER


@dataclass(frozen=True, slots=True)
class Certificate:
    """Numbers from which a reader without a solver recomputes the bound.

    ``bound = sum(demand * u) + sum(load_max * max(w, 0)) - sum(load_min * max(-w, 0))
    + sum over lawful pairs of max(0, affinity - u - w) + penalty * missing + affinity of the locked pairs``,

    where locked pairs are taken out of demand, load_max, load_min (down to 0) and the lawful pairs first, and
    lines with no demand or no load left take no part. In a plan of several roles "submission" here means each role of
    a submission, named ``<id>/<role>`` but for reviewers; only people of the role are lawful for it, and an affinity
    is multiplied by the weight of the role. Weak duality makes this a bound for any numbers u and w;
    with missing reviews none may lie below -penalty. `matching.plan.audit` is this formula as code.

    Attributes
    ----------
    submission_prices : mapping of id to u
    reviewer_prices : mapping of id to w
    penalty : float
    missing : int
        Reviews no plan can fill (0 for a full plan), shortfalls of load_min included.
    audited : bool
        An audit that imports no solver recomputed everything and agreed.
    proofs : tuple of mapping
        For objectives other than "total", and for rules: one for each objective of the stack, see
        `matching.plan.record.proofs_of`. The bound is then ``f*(y) + sum of k (g*(z) - c) + B``, where B is the
        formula above for scores ``(y + sum of k z) affinity`` minus the prices of the rules a pair counts in, plus
        what those rules pay (price times bound).
    """

    submission_prices: Mapping[str, float]
    reviewer_prices: Mapping[str, float]
    penalty: float = 0.0
    missing: int = 0
    audited: bool = False
    proofs: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class AssignmentPlan:
    """An audited plan.

    Attributes
    ----------
    status : Status
    assignments : tuple of Assignment
        By submission id, then role, then falling affinity, then reviewer id.
    alternates : tuple of Alternate
        By submission id, then role, then rank.
    value, bound, gap : float
        See Solution.
    unfilled : mapping of submission id to int
        Only submissions that miss reviews, of all roles together.
    certificate : Certificate
    objectives : tuple of mapping
        For each objective of the stack: its name and options, value, bound and gap.
    probabilities : tuple of (str, str, float)
        Submission id, reviewer id and probability of every pair a randomised plan might have drawn; empty otherwise.
    rule_shortfalls : tuple of mapping
        Where rules are missed, see `matching.plan.record.shortfalls_of`.
    report : mapping
        Plain numbers and lists (see `matching.plan.report`): totals, per-submission distribution, loads,
        worst-served submissions, signals used and unused; ``mutual_reviews``, people who review each other's
        submissions (see `matching.plan.mutual`); ``shadow_prices`` as in `matching.explain.shadow`.
    diagnosis : mapping
        Empty for a full plan; else see `matching.explain.diagnosis`.
    notices : tuple of Notice
    provenance : mapping
        seed, params, input hash, library versions, seconds a stage.
    """

    status: Status
    assignments: tuple[Assignment, ...]
    alternates: tuple[Alternate, ...]
    value: float
    bound: float
    gap: float
    unfilled: Mapping[str, int]
    certificate: Certificate
    report: Mapping[str, Any]
    diagnosis: Mapping[str, Any]
    notices: tuple[Notice, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    objectives: tuple[Mapping[str, Any], ...] = ()
    probabilities: tuple[tuple[str, str, float], ...] = ()
    rule_shortfalls: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain dicts, lists, strings and numbers: strict JSON, no NaN, no numpy.

        Assignments and alternates say their ``role`` where the options of the plan name roles.
        """
        record = cast(dict[str, Any], plain(asdict(self)))
        if not self.names_roles:
            for entry in (*record["assignments"], *record["alternates"]):
                del entry["role"]  # a plan of reviewers alone is written as it always was
        return record

    @property
    def names_roles(self) -> bool:
        """Whether roles were asked for, so that those of pairs are worth saying."""
        params = self.provenance.get("params")
        if isinstance(params, Mapping) and params.get("roles"):
            return True
        roles = {pair.role for pair in self.assignments} | {entry.role for entry in self.alternates}
        return bool(roles - {REVIEWER})


def plain(value: Any) -> Any:
    """Mappings, sequences, numpy values and enums as what `json` can write strictly; not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, Status):
        return value.value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value
