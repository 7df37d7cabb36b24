"""Each proof of a solution, recomputed: the value from the plan, the bound from the prices, the gap between them.

Every objective is a concave function f of the submissions' sums, or is reduced to one. For weights y that make its
conjugate finite, ``f(U) <= f*(y) + y . U``, and weak duality (`matching.plan.duality`) bounds ``y . U`` over all plans;
constraints ``g(U) >= c`` add ``k (g*(z) - c)`` and the weights ``k z`` (Rockafellar, 1970, section 12).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from matching.constraints.grid import grid_of
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import ruled_out, whole_bound
from matching.constraints.worth import Worth, worth_of
from matching.errors import InvalidParamsError
from matching.objectives import OPTIONS, Floors, Level, Measure, Welfare, Wish
from matching.plan.claims import (
    LOWER_IS_BETTER,
    RELATIVE,
    Given,
    Stage,
    claimed,
    constraint_faults,
    costs_count,
    measure_faults,
    natural,
    option,
    pair_numbers,
    size_of,
    slack_of,
    wish_faults,
)  # fmt: skip
from matching.plan.duality import Duality, Prices
from matching.plan.rule_prices import no_rule_prices, rule_price_faults
from matching.solvers.base import Proof
from matching.types import FloatArray

__all__ = ["Checked", "check_proofs", "gap_of"]

EPSILON = 2.0**-50  # relative rounding of a multiplier times its constraint
MOST_ROUNDING = 1e-6  # relative; with multipliers beyond that a bound is as good as none


@dataclass(frozen=True, slots=True)
class Checked:
    """What the audit found about one proof.

    Attributes
    ----------
    name : str
        Of the objective.
    value, bound, gap : float
        Recomputed, natural unit.
    """

    name: str
    value: float
    bound: float
    gap: float


def gap_of(value: float, bound: float, lower_is_better: bool = False, size: float = 1.0) -> float:
    """Distance of a value from its bound; below 0 where the bound is broken, 0 below the rounding of sums."""
    gap = value - bound if lower_is_better else bound - value
    return 0.0 if abs(gap) <= slack_of(value, size) else gap


def check_proofs(
    proofs: Sequence[Proof], given: Given, duality: Duality, missing: float, wishes: Sequence[Wish] | None
) -> tuple[list[Checked], list[str]]:
    """Recompute every proof in order.

    Parameters
    ----------
    missing : float
        What the plan lacks; above 0 the bounds speak of plans that lack as little.
    wishes : sequence of Wish or None
        What was asked for; None to take each proof's own word for it.
    """
    checked: list[Checked] = []
    stages: list[Stage] = []
    faults = [] if missing else _order_faults(proofs, wishes)
    for place, proof in enumerate(proofs):
        wanted = None if wishes is None or missing else _wanted(proof, wishes)
        found = wish_faults(proof.wish, wanted) or _form_faults(proof, given.problem, missing)
        found = found or measure_faults(proof, given.problem, stages)
        if found:
            return checked, faults + [f"proof {place}: {fault}" for fault in found]
        found = constraint_faults(proof.constraints, given, stages)
        try:
            result, numbers = _check(proof, given, duality, missing)
        except (InvalidParamsError, ValueError, FloatingPointError) as error:
            return checked, [*faults, *found, f"proof {place} cannot be computed: {error}"]
        faults += [f"proof {place}: {fault}" for fault in found + numbers]
        if proof.wish["name"] == "leximin" and stages and stages[-1].name == "leximin":
            faults += _dropped_faults(proof, stages[-1], given)
        checked.append(result)
        loss = float(proof.wish.get("loss", 0.0))
        stages.append(Stage(result.name, loss, _measure_of(proof), result.value, result.bound, result.gap))
    return checked, faults


def _measure_of(proof: Proof) -> Measure | None:
    return None if proof.wish["name"] in LOWER_IS_BETTER else proof.measure


def _order_faults(proofs: Sequence[Proof], wishes: Sequence[Wish] | None) -> list[str]:
    """Proofs follow the wishes; a wish may need several, and a total may follow to settle what is left open."""
    if wishes is None:
        return []
    names: list[str] = []
    for proof in proofs:
        name = str(proof.wish.get("name"))
        if not names or names[-1] != name:
            names.append(name)
    wanted = [wish.name for wish in wishes]
    if names == wanted or names == [*wanted, "total"]:
        return []
    return [f"proofs of {', '.join(names) or 'nothing'} where {', '.join(wanted)} was asked for"]


def _wanted(proof: Proof, wishes: Sequence[Wish]) -> Wish | None:
    return next((wish for wish in wishes if wish.name == proof.wish.get("name")), None)


def _form_faults(proof: Proof, problem: AssignmentProblem, missing: float) -> list[str]:
    """Shapes, finiteness and signs: whatever would let a comparison pass or a formula not hold."""
    n_submissions, n_reviewers = problem.shape
    faults: list[str] = []

    def array(name: str, values: object, size: int, signed: bool = True) -> None:
        given = np.asarray(values)
        if given.shape != (size,) or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
            faults.append(f"{name} are not {size} finite numbers")
        elif not signed and (given < 0).any():
            faults.append(f"{name} are negative somewhere")

    for name in ("value", "bound", "gap", "penalty"):
        if not math.isfinite(getattr(proof, name)):
            faults.append(f"{name} is not finite")
    if proof.gap < 0 or proof.penalty < 0:
        faults.append("a gap or a penalty is negative")
    array("weights", proof.weights, n_submissions, signed=False)
    array("submission prices", proof.submission_prices, n_submissions)
    array("reviewer prices", proof.reviewer_prices, n_reviewers)
    if proof.reviewer_terms is not None:
        array("reviewer terms", proof.reviewer_terms, n_reviewers)
    if len(proof.multipliers) != len(proof.constraints):
        faults.append("constraints and multipliers do not match")
    for k, z in proof.multipliers:
        if not (math.isfinite(k) and k >= 0):
            faults.append(f"a multiplier is {k}")
        array("weights of a constraint", z, n_submissions, signed=False)
    name = proof.wish["name"]
    if (proof.reviewer_terms is not None) != (name == "evenness"):
        faults.append("reviewer terms belong to evenness and to nothing else")
    if (proof.anchor is not None) != (name in ("perturbed", "robust")):
        faults.append("an anchor belongs to perturbed and robust and to nothing else")
    if proof.anchor is not None and not faults:
        anchor = proof.anchor
        if not sparse.issparse(anchor) or anchor.shape != problem.shape or not np.isfinite(anchor.data).all():
            faults.append("the anchor is no finite matrix of the problem's shape")
        elif name == "robust" and np.linalg.norm(_summed(anchor).data) > 1 + RELATIVE:
            faults.append("the anchor is longer than 1")
    if proof.height is not None and not (proof.whole and math.isfinite(proof.height)):
        faults.append("a height is a finite number that goes with whole sets")
    if proof.whole and not faults and (missing or _set_worth(proof, problem) is None):
        faults.append("this measure with these constraints has no bound by whole sets of people")
    if proof.rule_prices and not faults:
        dearest = 1.0 if costs_count(proof) else 0.0
        faults += rule_price_faults(
            problem.rules, proof.rule_prices, n_reviewers, dearest, proof.penalty if missing else None
        )
    return faults


def _summed(table: sparse.sparray) -> sparse.csr_array:
    out = sparse.csr_array(table, dtype=np.float64, copy=True)
    out.sum_duplicates()
    return out


def prices_of(proof: Proof, problem: AssignmentProblem) -> tuple[Prices, float]:
    """The numbers of the proof for `Duality.bound`, and what the objective adds to the bound besides."""
    name = proof.wish["name"]
    terms, extra, cap = None, 0.0, None
    if "cap" in OPTIONS[name]:
        cap = pair_numbers(option(proof, "cap"), problem.shape, "cap")
    if proof.anchor is not None:
        anchor = _summed(proof.anchor)
        if name == "perturbed":  # x squared is at least 2 a x - a squared
            beta = float(option(proof, "beta"))
            terms, extra = -2.0 * beta * anchor, beta * float((anchor.data**2).sum())
        else:  # the norm of sigma x is at least h . sigma x for every h of norm at most 1
            errors = pair_numbers(option(proof, "standard_error"), problem.shape, "standard_error")
            table = sparse.coo_array(anchor)
            pull = -float(option(proof, "radius")) * errors(*table.coords) * table.data
            terms = sparse.csr_array((pull, table.coords), shape=problem.shape)
    if proof.reviewer_terms is not None:
        # the square of a whole load l is at least a l - max over whole k of (a k - k squared)
        a = np.asarray(proof.reviewer_terms, dtype=np.float64)
        whole = np.maximum(np.rint(a / 2), 0.0)
        extra = float((a * whole - whole**2).sum())
    weights = row_weights(proof)
    rules = proof.rule_prices or no_rule_prices(problem.rules, problem.shape[1])
    prices = Prices(
        np.asarray(proof.submission_prices, dtype=np.float64), np.asarray(proof.reviewer_prices, dtype=np.float64),
        proof.penalty, None if (weights == 1.0).all() else weights, tuple(rules), terms, proof.reviewer_terms, cap,
    )  # fmt: skip
    return prices, extra


def row_weights(proof: Proof) -> FloatArray:
    """Weight of each submission's sum in the bounded total."""
    return proof.row_weights


def _check(proof: Proof, given: Given, duality: Duality, missing: float) -> tuple[Checked, list[str]]:
    name = proof.wish["name"]
    low = name in LOWER_IS_BETTER
    value = claimed(proof, given)
    prices, extra = prices_of(proof, given.problem)
    faults: list[str] = []
    if missing and duality.too_low(prices):
        faults.append("a price lies below minus the penalty, so the bound does not hold for plans that miss reviews")
    leeway, rounding = _limits(proof, given.size)
    bound, furthest = (0.0, 0.0) if name == "envy" else _bound(proof, duality, prices, extra, leeway)
    size = 1.0 if name == "evenness" else given.size
    slack = slack_of(value, size)
    if not abs(value - proof.value) <= slack:
        faults.append(f"{name} recomputed from the plan is {value}, stated {proof.value}")
    if not math.isfinite(bound):
        return Checked(name, value, bound, math.inf), [*faults, f"the weights prove nothing: the bound is {bound}"]
    gap = gap_of(value, bound, low, size)
    if gap_of(value, furthest, low, size) < 0:
        faults.append(f"{name} is {value}, beyond the recomputed bound {bound}: the numbers prove nothing")
    gap = max(0.0, gap)
    if abs(proof.gap - max(0.0, gap_of(proof.value, proof.bound, low, size))) > slack:
        faults.append(f"the stated gap {proof.gap} is not what bound and value leave")
    slack += min(rounding, MOST_ROUNDING * max(size, abs(value)))
    if (proof.bound - bound if low else bound - proof.bound) > slack:
        faults.append(f"the recomputed bound {bound} is weaker than the stated one {proof.bound}")
    if gap > proof.gap + slack:
        faults.append(f"the recomputed gap {gap} is above the stated one {proof.gap}")
    return Checked(name, value, bound, gap), faults


def _limits(proof: Proof, size: float) -> tuple[float, float]:
    """How far plans may lie beyond a bound as they keep earlier wishes to rounding, and how much of it is rounding.

    Both grow with the multipliers; in units of the measure.
    """
    leeway, rounding = 0.0, 0.0
    for (k, z), (measure, least) in zip(proof.multipliers, proof.constraints, strict=True):
        if k > 0:
            z = np.asarray(z, dtype=np.float64)
            whole = k * float(z.sum()) if isinstance(measure, Floors) else k
            leeway += whole * slack_of(least, size_of(measure, size))
            rounding += k * (abs(measure.conjugate(z)) + abs(least))
    return leeway, EPSILON * rounding


def _bound(proof: Proof, duality: Duality, prices: Prices, extra: float, leeway: float) -> tuple[float, float]:
    """The bound, and what plans may reach that keep earlier wishes to the rounding of sums; natural unit."""
    low = proof.wish["name"] == "evenness"
    parts = [extra, 0.0 if low else proof.measure.conjugate(np.asarray(proof.weights, dtype=np.float64))]
    if low and proof.weights.any():
        return -math.inf, -math.inf  # loads have no weights on sums
    for (k, z), (measure, least) in zip(proof.multipliers, proof.constraints, strict=True):
        if k > 0:
            parts.append(k * (measure.conjugate(np.asarray(z, dtype=np.float64)) - least))
    if not all(map(math.isfinite, parts)):
        return math.inf, math.inf
    total = math.fsum([*parts, duality.bound(prices)[0]])
    if proof.whole:
        total = min(total, _whole(proof, duality.problem))
    if low:
        return -total, -total - leeway
    return natural(proof.measure, total), natural(proof.measure, total + leeway)


def _whole(proof: Proof, problem: AssignmentProblem) -> float:
    """The bound by whole sets of people; of a level the height that no plan reaches, inf where the numbers do not
    rule it out."""
    found = _set_worth(proof, problem)
    if found is None:
        return math.inf
    worth, charge = found
    w = np.asarray(proof.reviewer_prices, dtype=np.float64)
    if isinstance(worth, Welfare):
        weights = np.where(worth.among, row_weights(proof), 0.0)
        return whole_bound(problem, worth, weights, w, proof.rule_prices)
    if proof.height is not None:
        return proof.height if ruled_out(problem, worth, row_weights(proof), w) else math.inf
    return whole_bound(problem, worth, worth.fitting(row_weights(proof)), w) + charge


def _set_worth(proof: Proof, problem: AssignmentProblem) -> tuple[Worth | Welfare, float] | None:
    """What the sets of people are valued by."""
    if proof.wish["name"] in LOWER_IS_BETTER or proof.wish["name"] in ("randomised", "perturbed", "robust"):
        return None
    return worth_of(
        problem, proof.measure, proof.constraints, [k for k, _ in proof.multipliers], proof.height,
        grid=grid_of(problem),
    )  # fmt: skip


def _dropped_faults(proof: Proof, last: Stage, given: Given) -> list[str]:
    """A submission leaves the levels of leximin only at its level: none that could have had more is given up.

    Where the level is not proven to be the highest, its gap says so, and ties may leave either way; where a loss is
    allowed, later wishes may raise those that left.
    """
    assert isinstance(last.measure, Level) and isinstance(proof.measure, Level)  # `measure_faults` has seen to it
    dropped = last.measure.among & ~proof.measure.among
    high = given.sums[dropped].max(initial=-np.inf) - given.cost  # as levels are stated
    if last.gap == 0.0 and last.loss == 0.0 and high > last.bound + slack_of(last.bound, given.size):
        return [f"a submission with {high} left leximin at the level {last.bound}"]
    return []
