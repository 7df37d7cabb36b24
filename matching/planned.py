"""From a solution to the plan of a venue: outside ids, reasons, alternates, what was proven, diagnosis and record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from matching.constraints.conflicts import Conflicts
from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows
from matching.explain.diagnosis import diagnose
from matching.explain.evidence import parts_of_pairs
from matching.explain.names import Names
from matching.explain.pair import Explainer
from matching.explain.readiness import fit_notices
from matching.explain.resolves import Resolves
from matching.explain.shadow import shadow_prices
from matching.notices import Notice
from matching.pairs import PairSet
from matching.params import Params
from matching.plan.alternates import rank_alternates
from matching.plan.audit import AuditReport
from matching.plan.mutual import mutual_notices, mutual_reviews
from matching.plan.plan import Alternate, Assignment, AssignmentPlan, Certificate
from matching.plan.provenance import input_hash, versions
from matching.plan.record import proofs_of, shortfalls_of, wish_in_words
from matching.plan.report import report_of
from matching.profiles.resolve import ResolvedVenue
from matching.scores.operator import AffinityOperator
from matching.solvers.base import Solution, Status

__all__ = ["make_plan"]

REASONS_LIMIT = 50_000  # plans above this many pairs carry parts but no sentences, and say so


def make_plan(
    resolved: ResolvedVenue,
    conflicts: Conflicts,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    audit: AuditReport,
    params: Params,
    notices: Sequence[Notice],
    resolves: Resolves,
) -> AssignmentPlan:
    """Everything a plan holds but what the run adds to its record: texts, start and seconds.

    Parameters
    ----------
    solution, audit
        Of `problem`, for which the affinity was scored.
    notices : sequence of Notice
        What is known before; the plan has further ones.
    resolves : Resolves
        Solves again for diagnosis and shadow prices.
    """
    notices = list(notices)
    names = Names.of(resolved, conflicts)
    signals = affinity.summary()
    with_words = len(solution.pairs) <= REASONS_LIMIT
    if not with_words:
        notices.append(
            Notice(
                "reasons-on-request", f"{len(solution.pairs)} pairs are too many to write reasons for; parts are kept."
            )
        )
    has_plan = solution.status != Status.LIMIT_WITHOUT_PLAN
    missing = int(solution.unfilled.sum() + solution.below_min.sum()) if has_plan else 0
    certificate = Certificate(
        dict(zip(names.submissions, solution.submission_prices.tolist())),
        dict(zip(names.reviewers, solution.reviewer_prices.tolist())),
        solution.penalty,
        missing,
        audit.clean and has_plan,
        tuple(proofs_of(problem, solution, names.submissions, names.reviewers)),
    )
    assignments = _assignments(resolved, affinity, problem, solution, with_words)
    if has_plan:
        notices += fit_notices(resolved, affinity, problem, _best_texts(assignments))
    mutual = mutual_reviews(resolved, solution.pairs)
    notices += mutual_notices(mutual)
    unfilled: Counter[str] = Counter()
    for row in np.flatnonzero(solution.unfilled).tolist():
        unfilled[resolved.submissions[row % len(resolved.submissions)].id] += int(solution.unfilled[row])
    return AssignmentPlan(
        status=solution.status,
        assignments=assignments,
        alternates=_alternates(resolved, affinity, problem, solution, params) if has_plan else (),
        value=solution.value,
        bound=solution.bound,
        gap=solution.gap,
        unfilled=dict(unfilled),
        certificate=certificate,
        report={
            **report_of(
                problem, solution, names.submissions, names.reviewers, signals, conflicts.counts, RoleRows.of(resolved)
            ),
            "mutual_reviews": mutual,
            "shadow_prices": shadow_prices(problem, solution, params.wishes[0], names, resolves),
        },
        diagnosis=diagnose(problem, solution, names, resolves) if solution.status == Status.INFEASIBLE else {},
        notices=tuple(notices),
        provenance={
            "seed": params.rng,
            "params": params.to_dict(),
            "input_hash": input_hash(resolved.venue, params),
            "versions": versions(),
            "solver": dict(solution.meta),
            "rounds": solution.rounds,
        },
        objectives=_objectives(params, solution),
        probabilities=_probabilities(solution, resolved),
        rule_shortfalls=tuple(shortfalls_of(problem, solution)),
    )


def _objectives(params: Params, solution: Solution) -> tuple[dict[str, Any], ...]:
    """Each objective with what was reached and proven; a plan without proofs of its own is of one, the total."""
    if not solution.proofs:
        facts = {"value": solution.value, "bound": solution.bound, "gap": solution.gap}
        return ({**wish_in_words(params.wishes[0].to_dict()), **facts},)
    return tuple(
        {**wish_in_words(proof.wish), "value": proof.value, "bound": proof.bound, "gap": proof.gap}
        for proof in solution.proofs
    )


def _probabilities(solution: Solution, resolved: ResolvedVenue) -> tuple[tuple[str, str, float], ...]:
    if solution.probabilities is None:
        return ()
    table, count = solution.probabilities.tocoo(), len(resolved.submissions)
    found = zip(table.coords[0].tolist(), table.coords[1].tolist(), table.data.tolist(), strict=True)
    return tuple(
        sorted((resolved.submissions[row % count].id, resolved.reviewers[col].id, share) for row, col, share in found)
    )


def _assignments(
    resolved: ResolvedVenue,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    with_words: bool,
) -> tuple[Assignment, ...]:
    places = RoleRows.of(resolved)
    cols = solution.pairs[:, 1]
    rows = solution.pairs[:, 0] - places.role_of(cols) * places.n_submissions
    value = np.nan_to_num(affinity.values(rows, cols))
    told = parts_of_pairs(affinity, rows, cols)
    locked = set(map(tuple, problem.locked.tolist()))
    explainer = Explainer(resolved)
    chance: Sequence[float | None] = [None] * len(rows)
    if solution.probabilities is not None:
        chance = np.asarray(solution.probabilities[solution.pairs[:, 0], cols]).ravel().tolist()
    out = []
    for at, (line, col) in enumerate(solution.pairs.tolist()):
        parts, row = told[at], int(rows[at])
        held = (line, col) in locked
        reasons = explainer.reasons(row, col, parts, held) if with_words else ()
        pair = Assignment(
            resolved.submissions[row].id, resolved.reviewers[col].id, float(value[at]), parts, held, reasons,
            chance[at], resolved.reviewers[col].role,
        )  # fmt: skip
        role = line // max(1, places.n_submissions)
        out.append(((pair.submission, role, -pair.affinity, pair.reviewer), pair))
    return tuple(pair for _, pair in sorted(out, key=lambda entry: entry[0]))


def _alternates(
    resolved: ResolvedVenue,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    solution: Solution,
    params: Params,
) -> tuple[Alternate, ...]:
    places = RoleRows.of(resolved)
    # nobody stands in on a submission they are on in another role
    beside = [
        ((row % max(1, places.n_submissions)) + places.n_submissions * resolved.role_of(other), other)
        for row, col in solution.pairs.tolist()
        for other in resolved.other_columns.get(col, ())
    ]
    closed = PairSet(beside, problem.shape) if beside else None
    pairs, score, spare = rank_alternates(problem, solution.pairs, params.n_alternates, closed)
    if not places.plain:
        score = affinity.values(pairs[:, 0] - places.role_of(pairs[:, 1]) * places.n_submissions, pairs[:, 1])
    out, last, rank = [], -1, 0
    for (row, col), value, room in zip(pairs.tolist(), score.tolist(), spare.tolist()):
        rank = rank + 1 if row == last else 1
        last = row
        room = max(0, room)
        role, at = places.place(row)
        found = Alternate(
            resolved.submissions[at].id, resolved.reviewers[col].id, rank, value, room, room == 0, places.roles[role]
        )
        out.append(((at, role), found))
    return tuple(found for _, found in sorted(out, key=lambda entry: entry[0]))


def _best_texts(assignments: Sequence[Assignment]) -> dict[tuple[str, str], float]:
    """Best text affinity among those assigned to a submission in a role, where it is known."""
    best: dict[tuple[str, str], float] = {}
    for pair in assignments:
        for part in pair.parts:
            if part.signal == "text" and part.value is not None:
                key = (pair.submission, pair.role)
                best[key] = max(part.value, best.get(key, part.value))
    return best
