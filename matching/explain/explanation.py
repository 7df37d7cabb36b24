"""Why a submission got these reviewers: evidence for each, their rank, and who stands better and is not on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np

from matching.constraints.conflicts import Conflicts
from matching.constraints.problem import AssignmentProblem
from matching.errors import UnknownIdError
from matching.explain.evidence import Evidence, EvidenceFinder
from matching.explain.line import Line
from matching.explain.outside import TOLERANCE
from matching.explain.standing import Standing, Standings
from matching.plan.plan import AssignmentPlan, plain
from matching.profiles.identity import fold_id
from matching.profiles.resolve import ResolvedVenue
from matching.scores.operator import AffinityOperator

__all__ = ["Explanation", "PairExplanation", "Reasoner", "RoleExplanation"]

LISTED = 50  # candidates listed; the counts are always complete
NEXT = 5  # people listed below the last one chosen or asked about


@dataclass(frozen=True, slots=True)
class PairExplanation:
    """One reviewer of a submission, chosen or asked about.

    Attributes
    ----------
    standing : Standing
    evidence : Evidence
    better : int
        People with a higher affinity who are not on the submission; `Explanation.candidates` says why, one by one. 0
        for somebody of unknown affinity.
    better_reasons : mapping of str to int
        The same people by reason.
    """

    standing: Standing
    evidence: Evidence
    better: int
    better_reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RoleExplanation:
    """One role of a submission: people wanted, assigned, and who could be assigned."""

    role: str
    demand: int
    received: int
    eligible: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the plan serves one submission as it does.

    Attributes
    ----------
    submission, title : str
    demand, received : int
        Reviews wanted, and assigned.
    eligible : int
        People who could be assigned: not in conflict, with a load_max above 0, of known affinity.
    pairs : tuple of PairExplanation
        Those assigned, by falling affinity, then those asked about.
    candidates : tuple of Standing
        Everybody down to the last one chosen or asked about and five more, by falling affinity; at most 50.
    not_listed : int
        People above the last one chosen or asked about who did not fit into `candidates`.
    notes : tuple of str
        What else a reader should know, such as a venue that has changed since the plan was made.
    roles : tuple of RoleExplanation
        Of a plan of several roles: demand, received and eligible of each. Then the numbers above count all roles
        together, and pairs and candidates come role by role.
    """

    submission: str
    title: str
    demand: int
    received: int
    eligible: int
    pairs: tuple[PairExplanation, ...]
    candidates: tuple[Standing, ...]
    not_listed: int = 0
    notes: tuple[str, ...] = field(default=())
    roles: tuple[RoleExplanation, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers: strict JSON. Roles are said where there are several."""
        record = cast(dict[str, Any], plain(asdict(self)))
        if not self.roles:
            del record["roles"]
            for standing in (*(pair["standing"] for pair in record["pairs"]), *record["candidates"]):
                del standing["role"]
        return record


class Reasoner:
    """Explanations of one plan; what they share is worked out once.

    Parameters
    ----------
    resolved, conflicts, affinity, problem
        Of the venue and the options the plan was made from.
    plan : AssignmentPlan
    notes : tuple of str
        Shown with every explanation.
    """

    def __init__(
        self,
        resolved: ResolvedVenue,
        conflicts: Conflicts,
        affinity: AffinityOperator,
        problem: AssignmentProblem,
        plan: AssignmentPlan,
        notes: tuple[str, ...] = (),
    ) -> None:
        self._resolved, self._problem, self._plan, self._notes = resolved, problem, plan, notes
        self._evidence = EvidenceFinder(resolved, affinity)
        self._standings = Standings(resolved, conflicts, problem, plan)
        self._affinities = {(pair.submission, pair.reviewer): pair.affinity for pair in plan.assignments}

    @property
    def submissions(self) -> tuple[str, ...]:
        """Ids of the submissions that can be explained."""
        return tuple(entry.id for entry in self._resolved.submissions)

    def explain(self, submission: str, reviewer: str | None = None) -> Explanation:
        """Why a submission got its reviewers and, if one is named, why that one is or is not among them.

        Raises
        ------
        UnknownIdError
            ``unknown-id``: no submission, or nobody in the run, has the name.
        """
        row = self._row(submission)
        asked = () if reviewer is None else self._columns(reviewer)
        lines = [self._standings.line(row, role) for role in range(len(self._resolved.roles))]
        whole = [self._line(line, asked) for line in lines]
        record = self._resolved.submissions[row]
        roles = tuple(
            RoleExplanation(
                wish.name, int(self._problem.demand[line.place]), len(line.chosen), line.eligible
            )
            for wish, line in zip(self._resolved.roles, lines, strict=True)
        )  # fmt: skip
        return Explanation(
            record.id,
            record.title,
            sum(entry.demand for entry in roles),
            sum(entry.received for entry in roles),
            sum(entry.eligible for entry in roles),
            tuple(pair for pairs, _, _ in whole for pair in pairs),
            tuple(standing for _, standings, _ in whole for standing in standings),
            sum(more for _, _, more in whole),
            (*self._notes, *self._remarks(lines)),
            roles if len(roles) > 1 else (),
        )

    def _line(self, line: Line, asked: tuple[int, ...]) -> tuple[list[PairExplanation], list[Standing], int]:
        """Of one role: those assigned or asked about, the candidates, and how many did not fit among those."""
        standing = cache(lambda col: self._standings.of_person(line, col))  # of thousands, few are ever looked at
        place = np.full(line.scores.size, -1)
        place[line.order] = np.arange(line.order.size)
        shown = sorted(line.chosen, key=lambda col: int(place[col]))
        of_role = [col for col in asked if place[col] >= 0 and col not in line.chosen]
        shown += sorted(of_role, key=lambda col: int(place[col]))
        last = max((int(place[col]) for col in shown), default=-1) + 1
        candidates = [standing(col) for col in line.order[: min(LISTED, last + NEXT)].tolist()]
        return [self._pair(line, col, standing) for col in shown], candidates, max(0, last - LISTED)

    def _pair(self, line: Line, col: int, standing: Callable[[int], Standing]) -> PairExplanation:
        above = np.flatnonzero(line.scores > line.scores[col]).tolist()  # nobody, where it is unknown
        better = Counter(standing(other).reason for other in above if other not in line.chosen)
        return PairExplanation(
            standing(col), self._evidence.of_pair(line.row, col), better.total(), dict(sorted(better.items()))
        )

    def _remarks(self, lines: Sequence[Line]) -> list[str]:
        missing = self._plan.unfilled.get(self._resolved.submissions[lines[0].row].id, 0)
        out = []
        if missing:
            out.append(f"{missing} review{'s' if missing > 1 else ''} of this submission cannot be filled by any plan")
        if not self._plan.certificate.audited:
            out.append("this plan is not proven best, so prices are no proof")
        if not self._notes and any(self._differs(line, col) for line in lines for col in line.chosen):
            out.append(
                "affinities worked out now differ from the plan's own, by another version of a library or of a model"
            )
        return out

    def _differs(self, line: Line, col: int) -> bool:
        """Whether the affinity of an assigned pair is not what the plan was made with."""
        pair = self._resolved.submissions[line.row].id, self._resolved.reviewers[col].id
        return abs(float(np.nan_to_num(line.scores[col])) - self._affinities[pair]) > TOLERANCE

    def _row(self, name: str) -> int:
        index = self._resolved.submission_index
        row = index.get(name)
        row = index.get(fold_id(name)) if row is None else row
        if row is None:
            raise UnknownIdError(f"no submission of this run has the id {name!r}", kind="submission", id=name)
        return row

    def _columns(self, name: str) -> tuple[int, ...]:
        columns = self._resolved.columns_of(name)
        if columns:
            return columns
        accounts = [self._resolved.people.accounts[at] for at in self._resolved.people.everyone(name)]
        if not accounts:
            raise UnknownIdError(f"no reviewer has the id, alias or address {name!r}", kind="reviewer", id=name)
        why = "; ".join(
            f"{entry.id} is not active" if not entry.active else f"{entry.id} has the role {entry.role}"
            for entry in accounts
        )
        raise UnknownIdError(f"{name!r} takes no part in this run: {why}", kind="reviewer", id=name)
