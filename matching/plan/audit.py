"""The audit: recompute everything a solution claims from the inputs, without any solver.

Demand, loads, conflicts, locks and rules, probabilities, the value and bound of every objective and, where no full
plan exists, the proof of that. Counting is in `matching.plan.facts`, weak duality in `matching.plan.duality`, what
each objective adds to it in `matching.plan.proofs`. None of them imports anything of `matching.solvers` but the
record they check.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.errors import AuditError
from matching.objectives import Wish
from matching.pairs import PairSet
from matching.plan.claims import Given, slack_of
from matching.plan.duality import Duality, Prices
from matching.plan.facts import Facts, facts_of
from matching.plan.lottery import Lottery, check_lottery
from matching.plan.proofs import Checked, check_proofs, gap_of, prices_of
from matching.plan.rule_prices import no_rule_prices
from matching.scores.size import usual_size
from matching.solvers.base import Solution, Status
from matching.types import PairArray

__all__ = ["AuditReport", "audit", "require_clean"]

UNITS = 1e-9  # relative agreement asked of stated units of missed rules
NEARLY = 1e-3  # weighted units are proven missing up to this share: prices are not exact multiples of the penalty
BY_SEARCH = "enumeration by the integer solver"  # how a solution says that prices alone do not prove it infeasible


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What the audit found.

    Attributes
    ----------
    clean : bool
        No fault.
    faults : tuple of str
        One sentence each.
    value, bound, gap : float
        Of the first objective, recomputed; gap is ``max(0, bound - value)``, 0 below the rounding of sums.
    missing : float
        What the plan, or the lottery it was drawn from, lacks: unfilled demand, shortfalls of load_min and units of
        hard rules.
    missing_bound : float
        No plan lacks less, by a cut the audit counted itself.
    improving_pairs : int
        Lawful pairs outside the plan whose score exceeds their prices; 0 for a proven plan, and for plans whose
        proofs are of other objectives.
    seconds : float
    proofs : tuple of Checked
        One for each proof of the solution.
    notes : tuple of str
        What the prices leave open and the solution says is known by other means, one sentence each: that no plan
        lacks less, where a search found it or a lottery lacks shares of reviews.
    """

    clean: bool
    faults: tuple[str, ...]
    value: float
    bound: float
    gap: float
    missing: float
    missing_bound: float
    improving_pairs: int
    seconds: float
    proofs: tuple[Checked, ...] = ()
    notes: tuple[str, ...] = ()


def audit(problem: AssignmentProblem, solution: Solution, wishes: Sequence[Wish] | None = None) -> AuditReport:
    """Check a solution against the problem it answers.

    Parameters
    ----------
    problem : AssignmentProblem
    solution : Solution
    wishes : sequence of Wish, optional
        What was asked for, so that a proof of something else is refused.

    Notes
    -----
    Cost: one sweep over all pairs in blocks for each proof; memory one block and the pairs near or above their prices.
    """
    begin = time.perf_counter()
    faults: list[str] = []
    if not problem.demand.any():
        wishes = None  # where nobody needs a review there is nothing to wish for
    pairs = np.asarray(solution.pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind != "i":
        raise AuditError(f"pairs must be integers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    if pairs.size and ((pairs < 0).any() or (pairs >= np.array(problem.shape)).any()):
        raise AuditError("a pair lies outside the problem")
    if solution.status == Status.LIMIT_WITHOUT_PLAN:
        if len(pairs):
            faults.append("the limit was reached without a plan, yet there are pairs")
        return AuditReport(
            not faults, tuple(faults), 0.0, np.inf, np.inf, int(problem.demand.sum()), 0, 0, time.perf_counter() - begin
        )
    if not _finite(faults, problem, solution):
        return AuditReport(False, tuple(faults), np.nan, np.nan, np.nan, 0, 0, 0, time.perf_counter() - begin)
    facts = facts_of(problem, pairs)
    missing = _lawful(faults, problem, solution, facts)
    lottery = None
    if solution.probabilities is not None:
        found, lottery = check_lottery(problem, solution)
        faults += found
        if lottery is not None and solution.status == Status.INFEASIBLE:
            missing = lottery.lacking  # a draw of a lottery that lacks shares of reviews may happen to be full
    elif solution.mixture:
        faults.append("a plan that is no lottery has one over plans")
    if solution.status == Status.INFEASIBLE and not missing:
        faults.append("the plan claims to be infeasible and lacks nothing")
    size = usual_size(problem.scores, [float(proof.wish.get("beta", 0.0)) for proof in solution.proofs])
    duality = Duality(problem, facts, solution.unfilled, facts.short, size)
    if lottery is not None:
        duality = Duality(problem, replace(facts, missed=lottery.missed), lottery.unfilled, lottery.short, size)
    proofs: list[Checked] = []
    if solution.proofs:
        given = _given(problem, pairs, facts, lottery, size)
        proofs, found = check_proofs(solution.proofs, given, duality, missing, wishes)
        faults += found + _same_as_proofs(solution)
        if not proofs:
            return AuditReport(False, tuple(faults), np.nan, np.nan, np.nan, missing, 0, 0, time.perf_counter() - begin)
        value, bound, gap, improving = proofs[0].value, proofs[0].bound, proofs[0].gap, 0
        prices = prices_of(solution.proofs[0], problem)[0]
    else:
        if wishes is not None and not missing and [wish.name for wish in wishes] != ["total"]:
            faults.append(f"there is no proof of {', '.join(wish.name for wish in wishes)}")
        prices = Prices(
            np.asarray(solution.submission_prices, dtype=np.float64),
            np.asarray(solution.reviewer_prices, dtype=np.float64), solution.penalty,
            rules=no_rule_prices(problem.rules, problem.shape[1]),
        )  # fmt: skip
        value, bound, gap, improving = _total(faults, problem, solution, facts, duality, prices, missing, size)
    missing_bound = duality.missing_bound(prices, missing) if missing else 0
    notes: list[str] = []
    if solution.status == Status.INFEASIBLE and missing_bound < missing - UNITS * max(1.0, missing):
        said = f"the plan lacks {missing} reviews, the prices prove only {missing_bound}"
        nearly = missing != int(missing) and missing_bound >= missing * (1 - NEARLY)
        # a lottery may lack more than it must: what it says is that none is full
        shared = solution.probabilities is not None and missing_bound > UNITS
        searched = bool(problem.rules) and solution.meta.get("proven_by") == BY_SEARCH
        (notes if nearly or shared or searched else faults).append(said)
    return AuditReport(
        not faults, tuple(faults), value, bound, gap, missing, missing_bound, improving,
        time.perf_counter() - begin, tuple(proofs), tuple(notes),
    )  # fmt: skip


def require_clean(problem: AssignmentProblem, solution: Solution, wishes: Sequence[Wish] | None = None) -> AuditReport:
    """`audit`, raising AuditError (``audit-failed``) with every fault if there is one."""
    report = audit(problem, solution, wishes)
    if not report.clean:
        raise AuditError("; ".join(report.faults), faults=list(report.faults))
    return report


def _lawful(faults: list[str], problem: AssignmentProblem, solution: Solution, facts: Facts) -> float:
    """Every rule that pairs can break; returns what the plan lacks."""
    pairs = solution.pairs
    if len(facts.chosen) != len(pairs):
        faults.append("a reviewer is assigned twice to one submission")
    barred = problem.barred.contains(pairs[:, 0], pairs[:, 1])
    if barred.any():
        faults.append(f"{int(barred.sum())} barred pairs are assigned, first {pairs[barred][0].tolist()}")
    if not facts.chosen.contains(problem.locked[:, 0], problem.locked[:, 1]).all():
        faults.append("a locked pair is missing")
    _expect(
        faults,
        facts.received + solution.unfilled == problem.demand,
        "submission",
        "reviews and unfilled do not add up to demand",
    )
    _expect(faults, solution.unfilled >= 0, "submission", "unfilled is negative")
    _expect(faults, facts.carried <= problem.load_max, "reviewer", "load above load_max")
    _expect(faults, facts.short == solution.below_min, "reviewer", "shortfall of load_min is misstated")
    locked = PairSet(problem.locked, problem.shape).contains(pairs[:, 0], pairs[:, 1])
    if np.isnan(facts.score[~locked]).any():
        faults.append("a pair of unknown affinity is assigned")
    _rules(faults, problem, solution, facts)
    missing = int(solution.unfilled.sum() + facts.short.sum()) + facts.rule_missing(problem.rules)
    full = solution.status in (Status.OPTIMAL, Status.FEASIBLE_AT_LIMIT)
    if full and missing:
        faults.append(f"the plan claims to be full and lacks {missing} reviews")
    return missing


def _rules(faults: list[str], problem: AssignmentProblem, solution: Solution, facts: Facts) -> None:
    stated = solution.rule_shortfall
    if len(stated) not in (0, len(problem.rules)):
        faults.append(f"shortfalls of {len(stated)} rules are stated, the problem has {len(problem.rules)}")
        return
    for place, (rule, miss) in enumerate(zip(problem.rules, facts.missed, strict=True)):
        if rule.price is None and miss.chosen:
            faults.append(f"rule {rule.name} is exceeded by {miss.chosen} that no lock forces")
        if not _units_agree(stated[place] if stated else None, miss.units):
            faults.append(f"the shortfall of rule {rule.name} is misstated")


def _units_agree(stated: Any, units: Any) -> bool:
    """Whether stated units of a missed rule are those counted; saying nothing says that none is missed."""
    if stated is None:
        return not np.any(units.data if sparse.issparse(units) else units)
    if getattr(stated, "shape", None) != units.shape or sparse.issparse(stated) != sparse.issparse(units):
        return False
    apart = stated - units
    difference = np.asarray(apart.data if sparse.issparse(apart) else apart, dtype=np.float64)
    size = np.abs(units.data if sparse.issparse(units) else units).max(initial=1.0)
    return bool((np.abs(difference) <= UNITS * size).all())


def _given(problem: AssignmentProblem, pairs: PairArray, facts: Facts, lottery: Lottery | None, size: float) -> Given:
    """The plan, or the lottery it was drawn from."""
    if lottery is not None:
        cost = facts.cost(problem.rules) if lottery.mixture is None else lottery.mixture.cost
        return Given(problem, pairs, facts, cost, lottery.sums, lottery.shares, size)
    shares = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=problem.shape)
    return Given(problem, pairs, facts, facts.cost(problem.rules), facts.sums, shares, size)


def _same_as_proofs(solution: Solution) -> list[str]:
    """A solution repeats numbers of its proofs, so that readers of one objective need not look further."""
    first, last = solution.proofs[0], solution.proofs[-1]
    faults = [
        f"{name} of the solution is {getattr(solution, name)}, of its first proof {getattr(first, name)}"
        for name in ("value", "bound", "gap")
        if getattr(solution, name) != getattr(first, name)
    ]
    for name in ("submission_prices", "reviewer_prices", "penalty"):
        if not np.array_equal(getattr(solution, name), getattr(last, name)):
            faults.append(f"{name.replace('_', ' ')} of the solution are not those of its last proof")
    lottery = any(proof.wish.get("name") in ("randomised", "perturbed") for proof in solution.proofs)
    if lottery != (solution.probabilities is not None):
        faults.append("probabilities belong to randomised and perturbed plans and to nothing else")
    return faults


def _total(
    faults: list[str], problem: AssignmentProblem, solution: Solution, facts: Facts, duality: Duality, prices: Prices,
    missing: float, size: float,
) -> tuple[float, float, float, int]:  # fmt: skip
    """Value and bound of a plan of the objective "total", whose prices are its proof."""
    value = float(np.nansum(facts.score)) - facts.cost(problem.rules)
    slack = slack_of(value, size)
    if not abs(value - solution.value) <= slack:
        faults.append(f"value recomputed from the inputs is {value}, stated {solution.value}")
    if missing and duality.too_low(prices):
        faults.append("a price lies below minus the penalty, so the bound does not hold for plans that miss reviews")
    bound, improving = duality.bound(prices)
    gap = gap_of(value, bound, size=size)
    if gap < 0:
        faults.append(f"the value {value} is above the recomputed bound {bound}: the prices prove nothing")
    gap = max(0.0, gap)
    if abs(solution.gap - max(0.0, solution.bound - solution.value)) > slack:
        faults.append(f"the stated gap {solution.gap} is not what bound and value leave")
    if bound > solution.bound + slack:
        faults.append(f"the recomputed bound {bound} is above the stated one {solution.bound}")
    if gap > solution.gap + slack:
        faults.append(f"the recomputed gap {gap} is above the stated one {solution.gap}")
    if solution.status in (Status.OPTIMAL, Status.INFEASIBLE) and improving:
        faults.append(f"{improving} pairs outside the plan exceed their prices")
    return value, bound, gap, improving


def _finite(faults: list[str], problem: AssignmentProblem, solution: Solution) -> bool:
    """Whether every number of a solution is one; a comparison with NaN would let anything pass."""
    found = [
        f"{name} is not finite"
        for name in ("value", "bound", "gap", "penalty")
        if not math.isfinite(getattr(solution, name))
    ]
    n_submissions, n_reviewers = problem.shape
    for name, size, kinds in (
        ("submission_prices", n_submissions, "fiu"),
        ("reviewer_prices", n_reviewers, "fiu"),
        ("unfilled", n_submissions, "iu"),
        ("below_min", n_reviewers, "iu"),
    ):
        array = np.asarray(getattr(solution, name))
        if array.shape != (size,) or array.dtype.kind not in kinds:
            found.append(f"{name} is not {size} numbers")
        elif not np.isfinite(array).all():
            found.append(f"{name} is not finite")
    if not found and (solution.penalty < 0 or solution.gap < 0):
        found.append("a penalty or a gap is negative")
    faults += found
    return not found


def _expect(faults: list[str], good: NDArray[np.bool_], line: str, what: str) -> None:
    if not good.all():
        faults.append(f"{what} for {int((~good).sum())} {line}s, first {int(np.flatnonzero(~good)[0])}")
