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
from matching.explain.line import Line, ranks_of
from matching.explain.outside import TOLERANCE, Outside, PriceProof, difference
from matching.notices import in_words
from matching.plan.plan import AssignmentPlan
from matching.profiles.resolve import ResolvedVenue
from matching.roles import REVIEWER, one_of
from matching.roles import in_words as in_words_of

__all__ = ["REASONS", "Standing", "Standings"]

REASONS = (
    "assigned", "no-demand", "no-load", "conflict", "unknown-affinity", "other-role", "full", "held", "rule",
    "elsewhere", "tie", "lower",
)  # fmt: skip
"""Why somebody is, or is not, on a submission; of several that hold the first is given."""

BESIDE = 5  # other submissions of a full reviewer that are named


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
    rules : tuple of str
        Names of the rules in the reason: those that keep somebody off, and those whose prices stand in `words`.
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
    rules: tuple[str, ...] = ()


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
        self._outside = Outside(resolved, problem, plan, self._rows)

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
        ranks = ranks_of(scores, eligible)
        return Line(row, place, scores, ranks, order, tuple(chosen), frozenset(barred.tolist()))

    def of_person(self, line: Line, col: int) -> Standing:
        """One person's standing on the submission of a line."""
        row, reviewer = line.row, self._resolved.reviewers[col]
        score = float(line.scores[col])
        why = self._why(line, col, score)
        barred = self._conflicts.reasons(row, col) if col in line.barred else ()
        return Standing(
            reviewer.id,
            reviewer.name,
            None if math.isnan(score) else score,
            int(line.ranks[col]) or None,
            why.reason,
            why.words,
            self._loads[reviewer.id],
            int(self._problem.load_max[col]),
            (row, col) in self._held,
            barred,
            why.price,
            reviewer.role,
            why.rules,
        )

    def _why(self, line: Line, col: int, score: float) -> _Why:
        row, scores, chosen = line.row, line.scores, line.chosen
        problem, name = self._problem, self._resolved.reviewers[col].id
        load, most = self._loads[name], int(problem.load_max[col])
        if col in chosen:
            held = (row, col) in self._held
            return _Why("assigned", "assigned" + (": held before the run and kept" if held else ""))
        if not problem.demand[line.place]:
            what = "reviews" if len(self._rows.roles) == 1 else in_words_of(self._resolved.reviewers[col].role)
            return _Why("no-demand", f"the submission needs no {what}: its demand is 0")
        if not most:
            return _Why("no-load", "takes no reviews: load_max is 0")
        if col in line.barred:
            stated = "; ".join(
                f"{reason.rule}: {reason.evidence or reason.rule}" for reason in self._conflicts.reasons(row, col)
            )
            return _Why("conflict", f"conflict ({stated})")
        if math.isnan(score):
            return _Why("unknown-affinity", "affinity unknown, or 0, and allow_unknown or allow_zero is off")
        on = self._on.get(self._resolved.submissions[row].id, ())
        for other in self._resolved.other_columns.get(col, ()):
            if (same := self._resolved.reviewers[other]).id in on:
                words = f"already on it as {one_of(same.role)} ({same.id}); nobody has two roles on one submission"
                return _Why("other-role", words)
        price = self._outside.price(line, col, score)
        lower = [other for other in chosen if scores[other] < score - TOLERANCE]
        level = [other for other in chosen if abs(scores[other] - score) <= TOLERANCE]
        rivals = [other for other in lower or level if (row, other) not in self._held]
        broken, broken_rules, shut = self._outside.broken(line, col, rivals, load >= most)
        gifts = self._outside.gifts(line, col, rivals) if price is not None else {}
        proof, proof_rules = self._outside.proof(price, gifts)
        rules = tuple(dict.fromkeys((*broken_rules, *proof_rules)))
        too = f"; {broken}" if broken else ""
        if not lower:
            if shut:
                return _Why("rule", f"{broken}{proof}", price, rules)
            if level:
                cost, cost_rules = self._outside.costlier(line, col, rivals)
                if cost:
                    return _Why("rule", f"{cost}{proof}", price, tuple(dict.fromkeys((*cost_rules, *rules))))
                return _Why("tie", "equal to somebody chosen; evenness of loads and the seed decided", price)
            if chosen:
                return _Why("lower", "lower affinity than everybody chosen", price)
            full = f"; full, too: {load} of {most} reviews" if load >= most else ""
            return _Why("lower", f"not chosen{full}{proof}", price, rules)
        if load >= most:
            places = self._beside[name]
            where = f"on {', '.join(places[:BESIDE])}" + (", ..." if len(places) > BESIDE else "")
            return _Why("full", f"full: {load} of {most} reviews, {where}{too}{proof}", price, rules)
        if not rivals:
            who = in_words([self._resolved.reviewers[other].id for other in lower])
            return _Why("held", f"the place is held by {who}, locked before the run", price)
        if shut:
            return _Why("rule", f"{broken}{proof}", price, rules)
        if price is not None and proof_rules and self._outside.decided(line, price, rivals):
            return _Why("rule", f"{difference(proof_rules)}{too}{proof}", price, rules)
        if price is None and (told := self._outside.costlier(line, col, rivals))[0]:
            return _Why("rule", f"{told[0]}{too}", None, tuple(dict.fromkeys((*told[1], *rules))))
        return _Why("elsewhere", f"the plan as a whole is better with them elsewhere{too}{proof}", price, rules)


@dataclass(frozen=True, slots=True)
class _Why:
    """A reason with its sentence, the numbers behind it and the rules it names."""

    reason: str
    words: str
    price: PriceProof | None = None
    rules: tuple[str, ...] = ()
