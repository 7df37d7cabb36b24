"""Proofs in outside ids: what a plan stores so that a reader without a solver recomputes every bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound
from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Measure, Shortfall, Welfare
from matching.solvers.base import Proof, Solution
from matching.types import FloatArray

__all__ = ["proofs_of", "shortfalls_of", "wish_in_words"]


def wish_in_words(wish: Mapping[str, Any]) -> dict[str, Any]:
    """The objective with its options as plain values; numbers of pairs as the word "by pair"."""
    plain = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, plain) else "by pair" for name, value in wish.items()}


def proofs_of(
    problem: AssignmentProblem, solution: Solution, submissions: Sequence[str], reviewers: Sequence[str]
) -> list[dict[str, Any]]:
    """Each proof of a solution as a dict.

    Returns
    -------
    list of dict
        ``objective``, ``value``, ``bound``, ``gap``; ``weights`` (y) by submission id, those that are 0 left out;
        ``measure``, the function that is bounded, with the ``numbers`` its conjugate needs; ``whole``, whether the
        bound takes whole sets of people; ``height``, of a level that no plan reaches by such sets; ``constraints``, a
        list of {measure, numbers, at_least, multiplier, weights}, with whole sets also those of multiplier 0;
        ``submission_prices``, ``reviewer_prices`` by id; ``reviewer_terms`` by id, for evenness; ``rule_prices``, a
        list of {rule, submissions, reviewers, price, at_least or at_most, at}, see `_rule_prices`; ``penalty``;
        ``anchor``, for perturbed and robust, a list of [submission, reviewer, number], with ``standard_errors`` of
        these pairs likewise where they differ; ``lottery``, for lotteries under rules, see `_lottery`.
    """
    found = [_proof(problem, proof, submissions, reviewers) for proof in solution.proofs]
    if solution.mixture:
        found[0]["lottery"] = _lottery(solution, submissions, reviewers)
    return found


def _lottery(solution: Solution, submissions: Sequence[str], reviewers: Sequence[str]) -> dict[str, Any]:
    """The plans a lottery is over: ``pairs``, a list of [submission, reviewer], and ``plans``, each with its
    ``chance`` and its ``pairs`` as places in that list, from 0.
    """
    width = len(reviewers)
    keys = [pairs[:, 0] * width + pairs[:, 1] for _, pairs in solution.mixture]
    every = np.unique(np.concatenate(keys))
    return {
        "pairs": [[submissions[key // width], reviewers[key % width]] for key in every.tolist()],
        "plans": [
            {"chance": chance, "pairs": np.searchsorted(every, key).tolist()}
            for (chance, _), key in zip(solution.mixture, keys, strict=True)
        ],
    }


def _proof(
    problem: AssignmentProblem, proof: Proof, submissions: Sequence[str], reviewers: Sequence[str]
) -> dict[str, Any]:
    return {
        "objective": wish_in_words(proof.wish),
        "value": proof.value,
        "bound": proof.bound,
        "gap": proof.gap,
        "measure": type(proof.measure).__name__.lower(),
        "numbers": _numbers(proof.measure, proof.weights, problem, submissions),
        "whole": proof.whole,
        **({} if proof.height is None else {"height": proof.height}),
        "weights": _by_id(proof.weights, submissions),
        "constraints": [
            {
                "measure": type(measure).__name__.lower(),
                "numbers": _numbers(measure, _at(measure) if proof.whole else z, problem, submissions),
                "at_least": least,
                "multiplier": k,
                "weights": _by_id(z, submissions),
            }
            for (measure, least), (k, z) in zip(proof.constraints, proof.multipliers, strict=True)
            if k or proof.whole
        ],
        "submission_prices": dict(zip(submissions, proof.submission_prices.tolist(), strict=True)),
        "reviewer_prices": dict(zip(reviewers, proof.reviewer_prices.tolist(), strict=True)),
        "rule_prices": [
            entry
            for place, (rule, price) in enumerate(zip(problem.rules, proof.rule_prices, strict=False))
            for entry in _rule_prices(place, rule, price, reviewers)
        ],
        "penalty": proof.penalty,
        **({} if proof.reviewer_terms is None else {"reviewer_terms": _by_id(proof.reviewer_terms, reviewers)}),
        **({} if proof.anchor is None else {"anchor": _by_pair(proof.anchor, submissions, reviewers)}),
        **_errors_in_words(problem, proof, submissions, reviewers),
    }


def _errors_in_words(
    problem: AssignmentProblem, proof: Proof, submissions: Sequence[str], reviewers: Sequence[str]
) -> dict[str, Any]:
    """Standard errors of the pairs of the anchor, where they are not one number."""
    given = proof.wish.get("standard_error")
    if proof.anchor is None or proof.wish["name"] != "robust" or given is None or isinstance(given, int | float):
        return {}
    table = sparse.coo_array(proof.anchor)
    errors = PairNumbers.of(given, problem.shape, 0.0, "standard_error")(*table.coords)
    return {
        "standard_errors": _by_pair(sparse.coo_array((errors, table.coords), problem.shape), submissions, reviewers)
    }


def _by_pair(
    table: sparse.sparray, submissions: Sequence[str], reviewers: Sequence[str]
) -> list[tuple[str, str, float]]:
    summed = sparse.csr_array(table, copy=True)
    summed.sum_duplicates()
    entries = sparse.coo_array(summed)
    return [
        (submissions[row], reviewers[col], value)
        for row, col, value in zip(*(line.tolist() for line in entries.coords), entries.data.tolist(), strict=True)
        if value
    ]


def _at(measure: Measure) -> FloatArray:
    """Where every floor counts, not only those with a weight: sets of people below one are left out."""
    return np.isfinite(measure.floor).astype(np.float64) if isinstance(measure, Floors) else np.empty(0)


def _numbers(
    measure: Measure, weights: FloatArray, problem: AssignmentProblem, submissions: Sequence[str]
) -> dict[str, Any]:
    """What the conjugate of the measure needs besides the weights; ``without`` are submissions it leaves out."""
    if isinstance(measure, Floors):
        return {"floors": {submissions[at]: float(measure.floor[at]) for at in np.flatnonzero(weights).tolist()}}
    if not isinstance(measure, Level | Shortfall | Welfare):
        return {}
    outside = {"without": [submissions[at] for at in np.flatnonzero((problem.demand > 0) & ~measure.among).tolist()]}
    if isinstance(measure, Level):
        return outside
    if isinstance(measure, Shortfall):
        return {"t": measure.t, **outside}
    return {"alpha": measure.alpha, "floor": measure.floor, "unit": measure.unit, **outside}


def _by_id(values: FloatArray, ids: Sequence[str]) -> dict[str, float]:
    return {ids[at]: float(values[at]) for at in np.flatnonzero(values).tolist()}


def _rule_prices(place: int, rule: Bound, price: Any, reviewers: Sequence[str]) -> list[dict[str, Any]]:
    """The prices of a rule that are not 0.

    ``at`` is where the bound stands: the rule's place among the problem's, then the classes' or the bound's place in
    it, since words may stand for several. Shared reviewers have ``where`` in place of classes, and ``shares`` by id:
    what of the price belongs to the first of the two submissions; the rest belongs to the second.
    """
    if isinstance(rule, GroupBound):
        entries = sparse.coo_array(price)
        out = []
        for a, b, value in zip(*(line.tolist() for line in entries.coords), entries.data.tolist(), strict=True):
            side = ("at_most", rule.upper) if value > 0 else ("at_least", rule.lower)
            out.append(
                {
                    "rule": rule.name,
                    "submissions": rule.submission_labels[a],
                    "reviewers": rule.reviewer_labels[b],
                    "price": value,
                    side[0]: float(side[1][a, b]),
                    "at": [place, a, b],
                }
            )
        return out
    table = np.asarray(price.toarray() if sparse.issparse(price) else price)
    each = table[:, -1] if table.ndim == 2 else table
    return [
        {
            "rule": rule.name,
            "where": rule.labels[k] if rule.labels else str(k),
            "price": float(each[k]),
            "at": [place, k],
            **({"shares": _by_id(table[k, :-1], reviewers)} if table.ndim == 2 else {}),
        }
        for k in np.flatnonzero(each).tolist()
    ]


def shortfalls_of(problem: AssignmentProblem, solution: Solution) -> list[dict[str, Any]]:
    """Where a priced rule, or in an infeasible problem any rule, is missed.

    Returns
    -------
    list of dict
        ``rule``; ``submissions`` and ``reviewers`` (labels of the classes) or ``where``; ``above`` or ``below`` with
        the units; ``cost``, the price of it, None for hard rules.
    """
    out = []
    for rule, missed in zip(problem.rules, solution.rule_shortfall, strict=False):
        if isinstance(rule, GroupBound):
            entries = sparse.coo_array(missed)
            found = [
                (
                    {"submissions": rule.submission_labels[a], "reviewers": rule.reviewer_labels[b]},
                    float(value),
                )
                for a, b, value in zip(*entries.coords, entries.data, strict=True)
                if value
            ]
        else:
            found = [
                ({"where": rule.labels[k] if rule.labels else str(k)}, float(missed[k])) for k in np.flatnonzero(missed)
            ]
        for where, value in found:
            side = {"above": value} if value > 0 else {"below": -value}
            cost = None if rule.price is None else rule.price * abs(value)
            out.append({"rule": rule.name, **where, **side, "cost": cost})
    return out
