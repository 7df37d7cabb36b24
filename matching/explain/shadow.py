"""What one more review is worth: shadow prices of people and areas, each beside what solving again gains.

By weak duality no plan gains more from one more review by a person than their price, since the proof of the plan
proves the changed problem too; nor from one more person than their best affinity less what it costs elsewhere. The
exact gain is often smaller, as a price speaks of the first step in a direction that others may block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.bounds import GroupBound, SharedReviewers
from matching.constraints.counting import LOAD
from matching.constraints.problem import AssignmentProblem
from matching.explain.changes import more_load, more_people
from matching.explain.names import Names
from matching.explain.resolves import MOST_PAIRS, TOTAL, Resolves
from matching.objectives import Wish
from matching.scores.base import blocks
from matching.solvers.base import Solution, Status
from matching.types import FloatArray

__all__ = ["shadow_prices"]

MOST = 10  # people and areas each
OWN_UNIT = ("total", "maximin", "threshold")  # objectives whose prices are in the unit of their value
PAIRS_IN_ALL = 2_000_000  # pairs of all problems solved again; a plan is made more often than it is lacking
LEAST = 1e-9  # prices up to here are none


@dataclass(frozen=True, eq=False)
class _Prices:
    """One proof: y, u, w and what rules put on people."""

    wish: Wish
    value: float
    gap: float
    weights: FloatArray
    submissions: FloatArray
    reviewers: FloatArray
    rules: tuple[Any, ...]


def shadow_prices(
    problem: AssignmentProblem, solution: Solution, wish: Wish, names: Names, resolves: Resolves
) -> dict[str, Any]:
    """Whom and which areas it would pay to have more of; empty without a full plan or prices in a unit of affinity.

    Parameters
    ----------
    wish : Wish
        The first objective. Prices are those of the total for objectives other than total, maximin and threshold,
        whose prices are in no unit of affinity.

    Returns
    -------
    dict
        ``objective`` : its name.
        ``people`` : list of {reviewer, load_max, price, gain}, at most ten: one more review by each.
        ``areas`` : list of {area, reviewers, price, gain}, at most ten: one more reviewer who takes one review and
        fits each submission as well as the people of the area do on average, free of conflicts and in no class of
        any rule.
        ``gap`` : distance of the plan to its bound; a gain is at most price + gap.
        ``note`` : what was not checked and why, or None.
        The price is an upper bound, ``gain`` that of a new best plan, None where it was not solved for.
    """
    if solution.status not in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT):
        return {}
    most = resolves.count(problem, MOST, PAIRS_IN_ALL)
    prices = _of(solution, wish) if wish.name in OWN_UNIT else None
    if prices is None:
        again = resolves.solved(problem) if most else None
        prices = None if again is None or again.status != Status.OPTIMAL else _of(again, TOTAL)
    if prices is None:
        return {}
    people = _people(problem, prices, names)
    # mean affinities take a sweep over all pairs, which costs as much as a whole solve where there are very many
    sized = problem.shape[0] * problem.shape[1] <= MOST_PAIRS
    areas, profiles = _areas(problem, prices, names) if sized else ([], np.empty((problem.shape[0], 0)))
    for _, entry in (*people, *areas):
        entry["gain"] = None
    for at, entry in people[:most]:
        entry["gain"] = _gain(more_load(problem, [at]), prices, resolves)
    for at, entry in areas[:most]:
        entry["gain"] = _gain(more_people(problem, profiles[:, [at]]), prices, resolves)
    told = [entry for _, entry in (*people, *areas)]
    note = None
    checked = sum(entry["gain"] is not None for entry in told)
    if checked < len(told):
        why = "the time for it was over" if resolves.ran_out else "the venue is too large to be solved again for each"
        note = f"{checked} of {len(told)} prices were checked by solving again; {why}."
    if not sized:
        note = f"{note or ''} Areas were not looked at in a venue of this size.".strip()
    return {
        "objective": prices.wish.name,
        "people": [entry for _, entry in people],
        "areas": [entry for _, entry in areas],
        "gap": prices.gap,
        "note": note,
    }


def _gain(changed: AssignmentProblem, prices: _Prices, resolves: Resolves) -> float | None:
    """How much better the best plan of a changed problem is; None where no best plan was found."""
    again = resolves.solved(changed, prices.wish)
    if again is None or again.status != Status.OPTIMAL:
        return None
    return max(0.0, again.value - prices.value)  # the plan at hand stays lawful: a worse one is a matter of its gap


def _of(solution: Solution, wish: Wish) -> _Prices | None:
    """The proof of the first objective, where there is one."""
    if not solution.proofs:
        ones = np.ones(len(solution.submission_prices))
        return _Prices(
            wish, solution.value, solution.gap, ones, solution.submission_prices, solution.reviewer_prices, ()
        )
    proof = solution.proofs[0]
    if not np.isfinite(proof.bound):
        return None
    return _Prices(
        wish, proof.value, proof.gap, proof.row_weights, proof.submission_prices, proof.reviewer_prices,
        proof.rule_prices,
    )  # fmt: skip


def _people(problem: AssignmentProblem, prices: _Prices, names: Names) -> list[tuple[int, dict[str, Any]]]:
    price = np.maximum(prices.reviewers, 0.0)
    for rule, of_rule in zip(problem.rules, prices.rules, strict=False):
        if rule.name == LOAD and isinstance(rule, GroupBound):
            each = np.maximum(sparse.csr_array(of_rule).toarray(), 0.0).sum(axis=0)
            price = price + rule.reviewers.T @ each
    order = np.lexsort((np.arange(price.size), -price))[:MOST]
    return [
        (at, {"reviewer": names.reviewers[at], "load_max": int(problem.load_max[at]), "price": float(price[at])})
        for at in order.tolist()
        if price[at] > LEAST
    ]


def _areas(
    problem: AssignmentProblem, prices: _Prices, names: Names
) -> tuple[list[tuple[int, dict[str, Any]]], FloatArray]:
    """Areas by price, with the column of each in the table of mean affinities, which comes second."""
    member, spelled = _members(names.reviewer_areas, problem.shape[1])
    if not spelled:
        return [], np.empty((problem.shape[0], 0))
    profiles = _means(problem, member)
    worth = prices.weights[:, None] * profiles - prices.submissions[:, None]
    if problem.rules and prices.rules:
        worth += _shared_terms(problem, prices)[:, None]
    wanting = problem.demand > np.bincount(problem.locked[:, 0], minlength=problem.shape[0])
    best = np.fmax.reduce(np.where(wanting[:, None], worth, -np.inf), axis=0, initial=0.0)
    order = np.lexsort((np.arange(best.size), -best))[:MOST]
    count = np.diff(member.tocsc().indptr)
    return [
        (at, {"area": spelled[at], "reviewers": int(count[at]), "price": float(best[at])})
        for at in order.tolist()
        if best[at] > LEAST
    ], profiles


def _members(areas: Sequence[Sequence[str]], n_reviewers: int) -> tuple[sparse.csr_array, list[str]]:
    """Who names which area, float64 of shape (n_reviewers, n_areas), spelling and case aside."""
    at: dict[str, int] = {}
    spelled: list[str] = []
    rows, cols = [], []
    for row, own in enumerate(areas):
        for key, text in {" ".join(text.split()).casefold(): text for text in own}.items():
            if key not in at:
                at[key] = len(spelled)
                spelled.append(" ".join(text.split()))
            rows.append(row)
            cols.append(at[key])
    table = sparse.coo_array((np.ones(len(rows)), (rows, cols)), shape=(n_reviewers, len(spelled)))
    return sparse.csr_array(table), spelled


def _means(problem: AssignmentProblem, member: sparse.csr_array) -> FloatArray:
    """Mean known affinity of each area's people with each submission, NaN where none is known. One sweep."""
    total = np.zeros((problem.shape[0], member.shape[1]))
    known = np.zeros_like(total)
    for rows, cols in blocks(problem.shape):
        part = problem.scores.block(rows, cols)
        there = ~np.isnan(part)
        total[rows] += (member[cols].T @ np.where(there, part, 0.0).T).T
        known[rows] += (member[cols].T @ there.astype(np.float64).T).T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(known > 0, total / known, np.nan)


def _shared_terms(problem: AssignmentProblem, prices: _Prices) -> FloatArray:
    """What rules about shared reviewers add to a new person on each submission: half of each price on either side."""
    out = np.zeros(problem.shape[0])
    for rule, given in zip(problem.rules, prices.rules, strict=False):
        if isinstance(rule, SharedReviewers):
            whole = sparse.csr_array(given).toarray()[:, -1]
            np.add.at(out, rule.pairs.ravel(), np.repeat(whole / 2, 2))
    return out
