"""Where everybody stands on one submission, and why people with a higher affinity are not on it.

Every reason is read off the problem, the plan and its prices; nothing is solved again.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from matching.constraints.conflicts import ConflictReason, Conflicts
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows, RoleScores
from matching.notices import in_words
from matching.plan.plan import AssignmentPlan
from matching.profiles.resolve import ResolvedVenue
from matching.roles import REVIEWER, one_of
from matching.roles import in_words as in_words_of
from matching.types import FloatArray, IntArray

__all__ = ["REASONS", "Line", "PriceProof", "Standing", "Standings"]

REASONS = (
    "assigned", "no-demand", "no-load", "conflict", "unknown-affinity", "other-role", "full", "held", "elsewhere",
    "tie", "lower",
)  # fmt: skip
"""Why somebody is, or is not, on a submission; of several that hold the first is given."""

TOLERANCE = 1e-6  # difference below which two affinities are equal to a reader and to the solver's resolution
BESIDE = 5  # other submissions of a full reviewer that are named


@dataclass(frozen=True, slots=True)
class PriceProof:
    """The certificate's numbers for a pair outside the plan: it cannot improve the plan if affinity <= sum.

    Attributes
    ----------
    affinity : float
        Multiplied by the weight of the role, where it has one.
    submission_price : float
        What one more review is worth to the submission under the plan, in units of affinity.
    reviewer_price : float
        What one more review by the reviewer is worth elsewhere in the plan.
    holds : bool
        ``affinity <= submission_price + reviewer_price``, up to 1e-6.
    """

    affinity: float
    submission_price: float
    reviewer_price: float
    holds: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """One person's standing on one submission.

    Attributes
    ----------
    reviewer, name : str
    affinity : float or None
        None where nothing is known of the pair and it may not be used.
    rank : int or None
        From 1 among the eligible, by affinity, equal ones sharing a rank; None for those who are not eligible.
    reason : str
        One of REASONS.
    words : str
        The reason in one sentence.
    load, load_max : int
        Reviews under the plan, and their limit.
    locked : bool
        Held on this submission before the run.
    conflicts : tuple of ConflictReason
    price : PriceProof or None
    role : str
        In which the person takes part; ranks count within it.
    """

    reviewer: str
    name: str
    affinity: float | None
    rank: int | None
    reason: str
    words: str
    load: int
    load_max: int
    locked: bool = False
    conflicts: tuple[ConflictReason, ...] = ()
    price: PriceProof | None = None
    role: str = REVIEWER


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Everybody of one role on one submission, as numbers.

    Attributes
    ----------
    row : int
        Of the submission.
    place : int
        The problem's row: of the submission in the role.
    scores : ndarray of shape (n_reviewers,), float64
        Affinities; NaN where unknown.
    ranks : ndarray of shape (n_reviewers,), int64
        From 1 among the eligible, equal affinities alike; 0 for the others.
    order : ndarray of int64
        Columns of the role by falling affinity, unknown ones last, then by id.
    chosen : tuple of int
        Columns of those the plan has on it.
    barred : frozenset of int
        Columns of those in conflict.
    """

    row: int
    place: int
    scores: FloatArray
    ranks: IntArray
    order: IntArray
    chosen: tuple[int, ...]
    barred: frozenset[int]

    @property
    def eligible(self) -> int:
        """People who could be assigned."""
        return int(np.count_nonzero(self.ranks))


class Standings:
    """Standings on the submissions of one plan.

    Parameters
    ----------
    resolved, conflicts, problem
        Of the venue and the options the plan was made from.
    plan : AssignmentPlan
    """

    def __init__(
        self, resolved: ResolvedVenue, conflicts: Conflicts, problem: AssignmentProblem, plan: AssignmentPlan
    ) -> None:
        self._resolved, self._conflicts, self._problem, self._plan = resolved, conflicts, problem, plan
        self._rows = RoleRows.of(resolved)
        self._names = self._rows.names([entry.id for entry in resolved.submissions])
        self._loads = Counter(pair.reviewer for pair in plan.assignments)
        self._beside: dict[str, list[str]] = defaultdict(list)
        self._on: dict[str, set[str]] = defaultdict(set)
        for pair in plan.assignments:
            self._beside[pair.reviewer].append(pair.submission)
            self._on[pair.submission].add(pair.reviewer)
        self._held = set(map(tuple, resolved.locks.tolist()))

    def line(self, row: int, role: int = 0) -> Line:
        """The order of everybody of a role on one submission; nobody's reason is worked out yet."""
        place = role * self._rows.n_submissions + row
        everyone = np.arange(self._problem.shape[1])
        people = self._rows.columns(role)
        # of a problem of several roles the affinities without weights, and nobody of another role
        plain = self._problem.scores
        plain = plain.scores if isinstance(plain, RoleScores) else plain
        scores = np.full(everyone.size, np.nan)
        scores[people] = plain.values(np.full(people.stop - people.start, row), everyone[people])
        eligible = ~np.isnan(scores) & (self._problem.load_max > 0)
        barred = self._problem.barred.row(place)
        eligible[barred] = False
        index, on = self._resolved.reviewer_index, self._on.get(self._resolved.submissions[row].id, ())
        found = [col for col in map(index.get, on) if col is not None]
        chosen = sorted(col for col in found if people.start <= col < people.stop)
        order = np.lexsort((everyone, -np.nan_to_num(scores, nan=-np.inf)))
        order = order[(order >= people.start) & (order < people.stop)]
        ranks = _ranks(scores, eligible)
        return Line(row, place, scores, ranks, order, tuple(chosen), frozenset(barred.tolist()))

    def of_person(self, line: Line, col: int) -> Standing:
        """One person's standing on the submission of a line."""
        row, reviewer = line.row, self._resolved.reviewers[col]
        score = float(line.scores[col])
        reason, words, price = self._why(line, col, score)
        barred = self._conflicts.reasons(row, col) if col in line.barred else ()
        return Standing(
            reviewer.id,
            reviewer.name,
            None if math.isnan(score) else score,
            int(line.ranks[col]) or None,
            reason,
            words,
            self._loads[reviewer.id],
            int(self._problem.load_max[col]),
            (row, col) in self._held,
            barred,
            price,
            reviewer.role,
        )

    def _why(self, line: Line, col: int, score: float) -> tuple[str, str, PriceProof | None]:
        row, scores, chosen = line.row, line.scores, line.chosen
        problem, name = self._problem, self._resolved.reviewers[col].id
        load, most = self._loads[name], int(problem.load_max[col])
        if col in chosen:
            held = (row, col) in self._held
            return "assigned", "assigned" + (": held before the run and kept" if held else ""), None
        if not problem.demand[line.place]:
            what = "reviews" if len(self._rows.roles) == 1 else in_words_of(self._resolved.reviewers[col].role)
            return "no-demand", f"the submission needs no {what}: its demand is 0", None
        if not most:
            return "no-load", "takes no reviews: load_max is 0", None
        if col in line.barred:
            stated = "; ".join(
                f"{reason.rule}: {reason.evidence or reason.rule}" for reason in self._conflicts.reasons(row, col)
            )
            return "conflict", f"conflict ({stated})", None
        if math.isnan(score):
            return "unknown-affinity", "affinity unknown, or 0, and allow_unknown or allow_zero is off", None
        on = self._on.get(self._resolved.submissions[row].id, ())
        for other in self._resolved.other_columns.get(col, ()):
            if (same := self._resolved.reviewers[other]).id in on:
                words = f"already on it as {one_of(same.role)} ({same.id}); nobody has two roles on one submission"
                return "other-role", words, None
        price = self._price(line, col, score)
        proof = self._proof(price)
        lower = [other for other in chosen if scores[other] < score - TOLERANCE]
        level = [other for other in chosen if abs(scores[other] - score) <= TOLERANCE]
        if not lower:
            if level:
                return "tie", "equal to somebody chosen; evenness of loads and the seed decided", price
            full = f"; full, too: {load} of {most} reviews" if load >= most else ""
            return "lower", ("lower affinity than everybody chosen" if chosen else f"not chosen{full}{proof}"), price
        if load >= most:
            places = self._beside[name]
            where = f"on {', '.join(places[:BESIDE])}" + (", ..." if len(places) > BESIDE else "")
            return "full", f"full: {load} of {most} reviews, {where}{proof}", price
        if all((row, other) in self._held for other in lower):
            who = in_words([self._resolved.reviewers[other].id for other in lower])
            return "held", f"the place is held by {who}, locked before the run", price
        return "elsewhere", f"the plan as a whole is better with them elsewhere{proof}", price

    def _price(self, line: Line, col: int, score: float) -> PriceProof | None:
        certificate = self._plan.certificate
        submission = certificate.submission_prices.get(self._names[line.place])
        reviewer = certificate.reviewer_prices.get(self._resolved.reviewers[col].id)
        # with rules, or for another objective, prices belong to weighted affinities and say nothing about this one
        if submission is None or reviewer is None or certificate.proofs:
            return None
        score *= self._rows.weights[self._rows.place(line.place)[0]]
        return PriceProof(score, submission, reviewer, score <= submission + reviewer + TOLERANCE)

    def _proof(self, price: PriceProof | None) -> str:
        """What the prices say, as the end of a sentence."""
        if price is None:
            return ""
        penalty = self._plan.certificate.penalty
        if penalty and max(abs(price.submission_price), abs(price.reviewer_price)) > penalty / 2:
            return "; a review moved here would leave another submission with fewer"
        if not price.holds:
            return "; the prices of this plan do not show that this is best" + (
                "" if self._plan.gap == 0 else f" (its gap is {self._plan.gap:.3g})"
            )
        return (
            f"; affinity {price.affinity:.3f} is not above {price.submission_price:.3f} (one more review here) "
            f"+ {price.reviewer_price:.3f} (one of theirs elsewhere)"
        )


def _ranks(scores: FloatArray, eligible: np.ndarray) -> IntArray:
    """Rank of each eligible column from 1, equal scores alike; 0 for the others."""
    ranks = np.zeros(scores.size, dtype=np.int64)
    ordered = np.sort(-scores[eligible])
    ranks[eligible] = np.searchsorted(ordered, -scores[eligible], side="left") + 1
    return ranks
