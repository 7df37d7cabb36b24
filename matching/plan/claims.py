"""What each objective claims: the function it maximises, its value for a plan, and what earlier wishes allow to ask.

A proof names its own measure and constraints. A false one would prove something else than what was asked, so each is
compared here with what the objective and the problem demand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.envy import envy_excess
from matching.constraints.ideal import welfare_of
from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError
from matching.objectives import OPTIONS, Floors, Level, Measure, Shortfall, Total, Welfare, Wish
from matching.plan.facts import Facts
from matching.solvers.base import Proof
from matching.types import FloatArray, PairArray

__all__ = [
    "LOWER_IS_BETTER", "RELATIVE", "Given", "Stage", "claimed", "constraint_faults", "costs_count", "measure_faults",
    "natural", "option", "pair_numbers", "size_of", "slack_of", "wish_faults",
]  # fmt: skip

RELATIVE = 1e-9  # agreement asked of recomputed sums, relative to their size
LOWER_IS_BETTER = ("envy", "evenness")
NO_MEASURE = LOWER_IS_BETTER  # their values are no functions of the submissions' sums
OF_SUMS = (Total, Level, Floors, Shortfall, Welfare)
COSTED = (Total, Level, Shortfall)  # in units of score, so what priced rules cost is taken off
PAYING = (*COSTED, Floors)  # constraints likewise


@dataclass(frozen=True, eq=False)
class Given:
    """A plan, or the lottery it was drawn from, as the objectives see it.

    Attributes
    ----------
    problem : AssignmentProblem
    pairs : ndarray of shape (n, 2), int64
    facts : Facts
    cost : float
        What missed priced rules cost; on average, for a lottery.
    sums : ndarray of shape (n_submissions,), float64
        Expected ones for a lottery.
    shares : scipy.sparse.csr_array of shape (n_submissions, n_reviewers)
        Probabilities, 1 for every pair of a plan that is no lottery.
    size : float
        > 0: `usual_size` of the scores, below which a sum is not compared more closely.
    """

    problem: AssignmentProblem
    pairs: PairArray
    facts: Facts
    cost: float
    sums: FloatArray
    shares: sparse.csr_array
    size: float = 1.0


@dataclass(frozen=True, eq=False)
class Stage:
    """A wish that has been checked: what later ones may hold on to."""

    name: str
    loss: float
    measure: Measure | None
    value: float
    bound: float
    gap: float

    @property
    def most(self) -> float:
        """The highest value later wishes may ask of this one, natural unit."""
        return self.bound - self.loss * abs(self.bound)


def slack_of(value: float, size: float) -> float:
    """How far two floats of this value, made of scores of this size, may lie apart by rounding."""
    return RELATIVE * max(size, abs(value))


def size_of(measure: Measure, size: float) -> float:
    """The size of the measure's own values where scores have this one; welfare counts sums in its own unit."""
    if not isinstance(measure, Welfare):
        return size
    return size / measure.unit if measure.alpha == 0.0 else 1.0


def option(proof: Proof, name: str) -> Any:
    """An option of the proven wish, its default where the wish does not say."""
    return proof.wish.get(name, OPTIONS[proof.wish["name"]][name])


def pair_numbers(value: Any, shape: tuple[int, int], name: str) -> PairNumbers:
    """Cap or standard error as a function of pairs, with what holds for pairs a sparse array does not store."""
    return PairNumbers.of(value, shape, 1.0 if name == "cap" else 0.0, name)


def natural(measure: Measure, value: float) -> float:
    """A value of the measure in the unit the objective is stated in."""
    return measure.equivalent(value) if isinstance(measure, Welfare) else value


def wish_faults(wish: Mapping[str, Any], wanted: Wish | None) -> list[str]:
    """Whether a proof names an objective there is, and the one that was asked for."""
    name = wish.get("name")
    if name not in OPTIONS:
        return [f"a proof of {name!r}, which is no objective"]
    loss = wish.get("loss", 0.0)
    if not 0.0 <= loss < 1.0:
        return [f"the proof of {name} allows a loss of {loss}"]
    if wanted is None:
        return []
    asked = wanted.to_dict()
    same = asked.keys() >= wish.keys() - {"loss"} and all(
        _same(wish.get(key, value), value) for key, value in asked.items()
    )
    if not same or loss != wanted.loss:
        return [f"the proof is of {name} with other options than were asked for"]
    return []


def claimed(proof: Proof, given: Given) -> float:
    """Value of the plan for the proof's objective, natural unit."""
    name = proof.wish["name"]
    if name == "evenness":
        return float((given.facts.carried.astype(np.float64) ** 2).sum())
    if name == "envy":
        return envy_excess(given.problem, given.pairs)
    sums = given.sums
    if name in ("perturbed", "robust"):
        shares = given.shares.data
        total = float(sums.sum()) - given.cost
        if name == "perturbed":
            return total - float(option(proof, "beta")) * float((shares**2).sum())
        errors = pair_numbers(option(proof, "standard_error"), given.problem.shape, "standard_error")
        table = sparse.coo_array(given.shares)
        spread = errors(*table.coords) * table.data
        return total - float(option(proof, "radius")) * float(np.linalg.norm(spread))
    cost = given.cost if costs_count(proof) else 0.0
    return natural(proof.measure, proof.measure.value(sums)) - cost


def costs_count(proof: Proof) -> bool:
    """Whether the objective pays for priced rules that are missed: it does where it is counted in score."""
    return proof.wish["name"] not in NO_MEASURE and isinstance(proof.measure, COSTED)


def measure_faults(proof: Proof, problem: AssignmentProblem, before: Sequence[Stage]) -> list[str]:
    """Whether the measure is the function that the objective and its options demand."""
    name, measure = proof.wish["name"], proof.measure
    if name in NO_MEASURE:
        return []
    wanting = problem.demand > 0
    wanted: Measure
    if name == "welfare":
        wanted = welfare_of(problem, float(option(proof, "alpha")))
    elif name in ("maximin", "leximin"):
        wanted = Level(wanting)
        earlier = [stage for stage in before if stage.name == "leximin"]
        if name == "leximin" and earlier:
            return _next_level_faults(measure, earlier[-1], wanting)
    elif name == "threshold":
        wanted = Shortfall(float(option(proof, "t")), wanting)
    else:
        wanted = Total()
    return [] if same_measure(measure, wanted) else [f"the measure is not the one {name} demands"]


def _next_level_faults(measure: Measure, last: Stage, wanting: NDArray[np.bool_]) -> list[str]:
    if type(measure) is not Level or not isinstance(last.measure, Level) or not _is_mask(measure.among, wanting.size):
        return ["a level of leximin is no level"]
    among = measure.among
    if not among.any() or (among & ~last.measure.among).any() or (among == last.measure.among).all():
        return ["a level of leximin is not among fewer submissions than the one before it"]
    return []


def _is_mask(value: Any, size: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.shape == (size,)


def same_measure(one: Any, other: Any) -> bool:
    """Whether two measures are the same function; only the known kinds are any."""
    if type(one) is not type(other) or type(one) not in OF_SUMS:
        return False
    return all(_same(value, getattr(other, key)) for key, value in vars(one).items())


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    if isinstance(one, PairNumbers) or isinstance(other, PairNumbers):
        return _same_numbers(one, other)
    if sparse.issparse(one) or sparse.issparse(other):
        if not (sparse.issparse(one) and sparse.issparse(other)) or one.shape != other.shape:
            return False
        return bool(abs(sparse.csr_array(one) - sparse.csr_array(other)).nnz == 0)
    try:
        return bool(np.array_equal(np.asarray(one), np.asarray(other)))
    except (TypeError, ValueError):
        return False


def _same_numbers(one: Any, other: Any) -> bool:
    shape = one.shape if isinstance(one, PairNumbers) else other.shape
    missing = 1.0  # both sides are read the same way, so what is not stored cannot make them differ
    try:
        left, right = PairNumbers.of(one, shape, missing, "cap"), PairNumbers.of(other, shape, missing, "cap")
    except InvalidParamsError:
        return False
    if (left.dense is None) != (right.dense is None):
        return False
    if left.dense is not None and right.dense is not None:
        return bool(np.array_equal(left.dense, right.dense))
    return bool(np.array_equal(left.by_reviewer, right.by_reviewer)) and _same(left.single, right.single)


def constraint_faults(constraints: Sequence[tuple[Measure, float]], given: Given, before: Sequence[Stage]) -> list[str]:
    """Whether the plan meets what a proof assumes, and whether earlier wishes justify assuming it.

    A constraint shrinks the set of plans a bound speaks of, so a solver must not make one up: each stands for an
    earlier wish and asks no more than that wish's proven bound, less the loss allowed. The plan must keep what they ask
    after paying for the priced rules it misses; the bound speaks of all plans whose sums alone keep it.
    """
    faults = []
    cost = given.cost
    for measure, least in constraints:
        if type(measure) not in OF_SUMS or not math.isfinite(least):
            faults.append("a constraint is no function of the sums, or its limit is not finite")
            continue
        reached = measure.value(given.sums) - (cost if isinstance(measure, PAYING) else 0.0)
        if not reached >= least - slack_of(least, size_of(measure, given.size)):
            faults.append(f"the plan reaches {reached} where its proof assumes {least}")
        if isinstance(measure, Floors):
            faults += _floor_faults(measure, least, given, before)
            continue
        asked = natural(measure, least)
        stages = [stage for stage in before if stage.measure is not None and same_measure(measure, stage.measure)]
        if not stages:
            faults.append("a constraint stands for no earlier wish")
        elif not any(asked <= stage.most + slack_of(stage.most, given.size) for stage in stages):
            faults.append(
                f"a constraint asks {asked} of {stages[-1].name}, whose proof allows at most {stages[-1].most}"
            )
    return faults


def _floor_faults(measure: Floors, least: float, given: Given, before: Sequence[Stage]) -> list[str]:
    allowed = np.full(given.sums.size, -np.inf)
    for stage in before:
        if isinstance(stage.measure, Level):
            among = stage.measure.among
            allowed[among] = np.maximum(allowed[among], stage.most)
        elif isinstance(stage.measure, Shortfall):
            among, t = stage.measure.among, stage.measure.t
            # floors of t follow only from a shortfall of nothing
            if stage.loss == 0.0 and stage.value >= among.sum() * t - slack_of(t, given.size):
                allowed[among] = np.maximum(allowed[among], t)
    asked = measure.floor + least
    high = asked > allowed + RELATIVE * np.maximum(given.size, np.where(np.isfinite(allowed), np.abs(allowed), 0.0))
    if high.any():
        return [f"a floor of submission {int(np.flatnonzero(high)[0])} is above what earlier wishes prove"]
    return []
