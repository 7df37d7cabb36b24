"""A lottery over whole plans, checked plan by plan: chances, rules, and the probabilities they come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.plan.facts import facts_of
from matching.solvers.base import Solution, Status
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Mixture", "check_mixture"]

ROUNDING = 1e-12  # of chances and of what they add up to
LISTED = 5  # unlawful plans that are spelled out


@dataclass(frozen=True, slots=True)
class Mixture:
    """What a lottery over plans comes to on average.

    Attributes
    ----------
    cost : float
        What missed priced rules cost, in units of score.
    lacking : float
        Missing reviews and units of hard rules.
    """

    cost: float
    lacking: float


def check_mixture(
    problem: AssignmentProblem, solution: Solution, shares: sparse.csr_array
) -> tuple[list[str], Mixture | None]:
    """Faults of the plans that the probabilities `shares` are said to be a lottery over, and their means.

    Every plan must keep what `solution.pairs` must keep; only where the solution is infeasible may it miss reviews and
    lower bounds. Cost: the pairs of all plans, and each rule once a plan.

    Returns
    -------
    list of str
    Mixture or None
        None where there are no plans that could be looked at.
    """
    form = _form_faults(problem, solution.mixture)
    if form:
        return form, None
    if not solution.mixture:
        return [], None
    rows: list[IntArray] = []
    cols: list[IntArray] = []
    weights: list[FloatArray] = []
    faults: list[str] = []
    costs, lacks = [], []
    shown = PairSet(solution.pairs, problem.shape)
    found = False
    infeasible = solution.status == Status.INFEASIBLE
    for place, (chance, pairs) in enumerate(solution.mixture):
        unlawful, cost, lacking = _look_at(problem, pairs)
        if lacking and not infeasible:
            unlawful.append(f"lacks {lacking:g} reviews or units of rules")
        if unlawful and len(faults) < LISTED:
            faults.append(f"plan {place} of the lottery {'; '.join(unlawful)}")
        costs.append(chance * cost)
        lacks.append(chance * lacking)
        rows.append(pairs[:, 0])
        cols.append(pairs[:, 1])
        weights.append(np.full(len(pairs), chance))
        found = found or (len(pairs) == len(solution.pairs) and bool(shown.contains(pairs[:, 0], pairs[:, 1]).all()))
    if not found:
        faults.append("the plan is none of those its lottery is over")
    at = (np.concatenate(rows), np.concatenate(cols))
    come_to = sparse.csr_array(sparse.coo_array((np.concatenate(weights), at), shape=problem.shape))
    apart = abs(come_to - shares)
    if apart.nnz and float(apart.data.max()) > ROUNDING * max(1.0, math.sqrt(len(solution.mixture))):
        faults.append("the probabilities are not those of the lottery over plans")
    return faults, Mixture(math.fsum(costs), math.fsum(lacks))


def _form_faults(problem: AssignmentProblem, mixture: Any) -> list[str]:
    if not isinstance(mixture, tuple) or not all(isinstance(entry, tuple) and len(entry) == 2 for entry in mixture):
        return ["the lottery is no sequence of chances and plans"]
    if not mixture:
        return ["there is a lottery under rules without the plans it is over"] if problem.rules else []
    chances = [float(chance) for chance, _ in mixture]
    if not all(math.isfinite(chance) and chance > 0.0 for chance in chances):
        return ["a plan of the lottery has a chance that is not above 0"]
    if abs(math.fsum(chances) - 1.0) > ROUNDING:
        return [f"the chances of the lottery's plans add up to {math.fsum(chances)}"]
    for _, pairs in mixture:
        if not isinstance(pairs, np.ndarray) or pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind != "i":
            return ["a plan of the lottery is no list of pairs"]
        if pairs.size and ((pairs < 0).any() or (pairs >= np.array(problem.shape)).any()):
            return ["a plan of the lottery has a pair outside the problem"]
    return []


def _look_at(problem: AssignmentProblem, pairs: PairArray) -> tuple[list[str], float, float]:
    """What a plan breaks, what its missed priced rules cost, and what it lacks."""
    facts = facts_of(problem, pairs)
    broken = []
    if len(facts.chosen) != len(pairs):
        broken.append("assigns somebody twice")
    if problem.barred.contains(pairs[:, 0], pairs[:, 1]).any():
        broken.append("assigns a barred pair")
    if not facts.chosen.contains(problem.locked[:, 0], problem.locked[:, 1]).all():
        broken.append("leaves out a locked pair")
    locked = PairSet(problem.locked, problem.shape).contains(pairs[:, 0], pairs[:, 1])
    if np.isnan(facts.score[~locked]).any():
        broken.append("assigns a pair of unknown affinity")
    if (facts.received > problem.demand).any():
        broken.append("gives a submission more than its demand")
    if (facts.carried > problem.load_max).any():
        broken.append("gives a reviewer more than load_max")
    broken += [
        f"exceeds rule {rule.name}"
        for rule, miss in zip(problem.rules, facts.missed, strict=True)
        if rule.price is None and miss.chosen
    ]
    unfilled = float(np.maximum(problem.demand - facts.received, 0).sum())
    return broken, facts.cost(problem.rules), unfilled + float(facts.short.sum()) + facts.rule_missing(problem.rules)
