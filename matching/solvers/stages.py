"""What the stages of a stack hand on: plans with their sums, and bounds with the numbers that prove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matching.constraints.linearised import Linearised
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Measure, Shortfall, Total, Welfare
from matching.pairs import in_row_order
from matching.solvers.base import Proof, frozen
from matching.solvers.clock import slack_of
from matching.solvers.oracle import Extreme
from matching.solvers.state import State
from matching.solvers.stated import bound_and_gap
from matching.types import FloatArray, PairArray

__all__ = [
    "Bound", "Constraints", "Plan", "ideal_prices", "ideal_weights", "idle", "kept_value", "natural", "of_extreme",
    "plan_of", "priced", "restated", "shared_out",
]  # fmt: skip

ENTRIES = 1 << 21  # pairs looked at together

Constraints = tuple[tuple[Measure, float], ...]
"""g and c of earlier wishes: ``g(U) >= c``."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Pairs with what later stages ask of them.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
        In row order.
    sums : ndarray of shape (n_submissions,), float64
    cost : float
        What missed priced rules cost.
    rule_shortfall : tuple
        As in Solution.
    """

    pairs: PairArray
    sums: FloatArray
    cost: float = 0.0
    rule_shortfall: tuple[Any, ...] = ()

    def value(self, measure: Measure) -> float:
        """Of the plan, in the unit of the measure; what is counted in scores pays for missed priced rules."""
        paid = self.cost if isinstance(measure, Total | Level | Shortfall | Floors) else 0.0
        return measure.value(self.sums) - paid

    def keeps(self, constraints: Sequence[tuple[Measure, float]]) -> bool:
        """Whether every earlier wish holds, to the rounding of sums, also after paying for missed priced rules."""
        return all(self.value(measure) >= least - slack_of(least) for measure, least in constraints)


def plan_of(problem: AssignmentProblem, pairs: PairArray, cost: float = 0.0, shortfall: tuple[Any, ...] = ()) -> Plan:
    """Sums from the scores of the pairs; unknown ones, which only locked pairs may have, count 0."""
    pairs = in_row_order(pairs)
    score = np.nan_to_num(problem.scores.values(pairs[:, 0], pairs[:, 1]))
    sums = np.bincount(pairs[:, 0], weights=score, minlength=problem.shape[0]).astype(np.float64)
    return Plan(frozen(pairs), frozen(sums), cost, shortfall)


@dataclass(frozen=True, eq=False)
class Bound:
    """No lawful plan that keeps the constraints has a larger value; the fields are those of a Proof.

    Attributes
    ----------
    bound : float
        In the unit of the measure.
    """

    measure: Measure
    constraints: Constraints
    weights: FloatArray
    multipliers: tuple[tuple[float, FloatArray], ...]
    u: FloatArray
    w: FloatArray
    bound: float
    rule_prices: tuple[Any, ...] = ()
    whole: bool = False
    height: float | None = None

    @property
    def pull(self) -> FloatArray:
        """Weight of each submission's sum in the bounded total."""
        out = np.array(self.weights, dtype=np.float64)
        for k, z in self.multipliers:
            out += k * z
        return out

    def gap(self, plan: Plan) -> float:
        """What the plan may lack, in the unit of the measure; 0 below the rounding of sums."""
        return bound_and_gap(plan.value(self.measure), self.bound)[1]

    def proof(self, wish: Mapping[str, Any], plan: Plan) -> Proof:
        """Of this plan, in the natural unit of the objective."""
        value = natural(self.measure, plan.value(self.measure))
        bound, gap = bound_and_gap(value, natural(self.measure, self.bound))
        return Proof(
            wish=wish, value=value, bound=bound, gap=gap, measure=self.measure,
            constraints=self.constraints, weights=frozen(self.weights),
            multipliers=tuple((k, frozen(z)) for k, z in self.multipliers),
            submission_prices=frozen(self.u), reviewer_prices=frozen(self.w), rule_prices=self.rule_prices,
            whole=self.whole, height=self.height,
        )  # fmt: skip


def natural(measure: Measure, value: float) -> float:
    """A value in the unit the objective is stated in."""
    return measure.equivalent(value) if isinstance(measure, Welfare) else value


def kept_value(measure: Measure, value: float, loss: float) -> float:
    """What later wishes must leave of a value: all but the share `loss`, taken in the natural unit."""
    if loss == 0.0:
        return value
    stated = natural(measure, value)
    least = stated - loss * abs(stated)
    return measure.of_equivalent(least) if isinstance(measure, Welfare) else least


def ideal_prices(state: State, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u and w that bound ``weights . U`` by giving each submission its best reviewers, competing with nobody.

    u of a submission is its weight times the score of the last reviewer it would have; only the rows with a weight
    are looked at.
    """
    problem = state.problem
    u = np.zeros(problem.shape[0])
    everyone, step = slice(0, problem.shape[1]), max(1, ENTRIES // max(1, problem.shape[1]))
    asked = np.flatnonzero((weights > 0) & (state.supply > 0))
    for top in range(0, problem.shape[0], step):
        inside = asked[(asked >= top) & (asked < top + step)]
        if not inside.size:
            continue
        rows = slice(int(inside[0]), int(inside[-1]) + 1)
        part = np.array(problem.scores.block(rows, everyone), dtype=np.float64)
        part[np.isnan(part) | (state.load_max <= 0)[None, :]] = -np.inf
        part[state.closed.within(rows, everyone)] = -np.inf
        for row in inside.tolist():
            line, wanted = part[row - rows.start], int(state.supply[row])
            if wanted <= line.size:
                last = int(np.argpartition(-line, wanted - 1)[wanted - 1])
                if np.isfinite(line[last]):
                    u[row] = weights[row] * float(problem.scores.values(np.array([row]), np.array([last]))[0])
    return u, np.zeros(problem.shape[1])


def priced(
    state: State,
    measure: Measure,
    constraints: Constraints,
    weights: FloatArray,
    multipliers: tuple[tuple[float, FloatArray], ...],
    u: FloatArray,
    w: FloatArray,
) -> Bound:
    """The bound that prices prove, without rules, by one sweep over all pairs."""
    pull = np.array(weights, dtype=np.float64)
    for k, z in multipliers:
        pull += k * z
    scores = Linearised(state.problem.scores, pull)
    roof = scores.reach(max(abs(state.low_plain), abs(state.high_plain))) + np.abs(u).max(initial=0.0)
    roof += np.abs(w).max(initial=0.0) + 1.0
    open_u = np.where(state.supply > 0, u, roof)
    open_w = np.where(state.load_max > 0, w, roof)
    _, excess, _ = scores.exceeding(open_u, open_w, 0.0, None, state.closed)
    locked = state.problem.locked
    most = (
        scores.linear(locked[:, 0], locked[:, 1], state.held).sum()
        + np.where(state.supply > 0, (state.supply + state.beyond) * u, 0.0).sum()
        + np.where(state.load_max > 0, state.load_max * np.maximum(w, 0.0), 0.0).sum()
        - (state.load_min * np.maximum(-w, 0.0)).sum()
        + excess.sum()
    )
    return Bound(measure, constraints, weights, multipliers, u, w, _level(measure, constraints, weights, multipliers)
                 + float(most))  # fmt: skip


def of_extreme(
    extreme: Extreme,
    measure: Measure,
    constraints: Constraints,
    weights: FloatArray,
    multipliers: tuple[tuple[float, FloatArray], ...],
    scale: float = 1.0,
) -> Bound:
    """The bound that the oracle's answer for the row weights of a proof stands for; they are `scale` times its own."""
    most = _level(measure, constraints, weights, multipliers) + scale * extreme.bound
    return Bound(measure, constraints, weights, multipliers, scale * extreme.u, scale * extreme.w, most)


def _level(
    measure: Measure, constraints: Constraints, weights: FloatArray, multipliers: tuple[tuple[float, FloatArray], ...]
) -> float:
    level = measure.conjugate(weights)
    for (k, z), (earlier, least) in zip(multipliers, constraints, strict=True):
        if k > 0:
            level += k * (earlier.conjugate(z) - least)
    return level


def idle(constraints: Constraints, n_submissions: int) -> tuple[tuple[float, FloatArray], ...]:
    """Multipliers of constraints that do not bind."""
    return tuple((0.0, np.zeros(n_submissions)) for _ in constraints)


def ideal_weights(measure: Measure, ideal: FloatArray) -> FloatArray:
    """Weights that prove most where every submission could have its ideal sum."""
    if isinstance(measure, Shortfall):
        return np.where(measure.among & (ideal < measure.t), 1.0, 0.0)
    return measure.weights(ideal)


def restated(proof: Proof, plan: Plan) -> Proof:
    """A proof with the value of another plan; what the plan gives away is part of the gap."""
    measure = proof.measure
    value = plan.value(measure)
    if isinstance(measure, Welfare):
        value = measure.equivalent(value) if measure.among.any() else 0.0
    bound, gap = bound_and_gap(value, proof.bound)
    return replace(proof, value=value, bound=bound, gap=gap)


def shared_out(weights: FloatArray, constraints: Constraints) -> tuple[tuple[float, FloatArray], ...]:
    """Row weights dealt out to the constraints, each in the form its conjugate is finite for."""
    left = np.array(weights, dtype=np.float64)
    out: list[tuple[float, FloatArray] | None] = [None] * len(constraints)
    nothing = np.zeros(left.size)
    order = sorted(range(len(constraints)), key=lambda at: _rank(constraints[at][0]))
    for at in order:
        measure = constraints[at][0]
        k, z = 0.0, nothing
        if isinstance(measure, Total):
            k, z = float(left.min(initial=np.inf)), np.ones(left.size)
        elif isinstance(measure, Floors):
            k, z = 1.0, np.where(np.isfinite(measure.floor), left, 0.0)
        elif isinstance(measure, Level):
            part = np.where(measure.among, left, 0.0)
            k = float(part.sum())
            z = part / k if k > 0 else nothing
        elif isinstance(measure, Shortfall):
            part = np.where(measure.among, left, 0.0)
            k = float(part.max(initial=0.0))
            z = part / k if k > 0 else nothing
        elif isinstance(measure, Welfare):
            part = np.where(measure.among, left, 0.0)
            k = float(part.max(initial=0.0)) * measure.floor**measure.alpha
            k = max(k, 1.0) if k > 0 else 0.0
            z = part / k if k > 0 else nothing
        if not np.isfinite(k):
            k, z = 0.0, nothing
        if k > 0 and not np.isfinite(measure.conjugate(z)):
            k, z = 0.0, nothing
        out[at] = (k, z)
        left = left - k * z
    return tuple(entry if entry is not None else (0.0, nothing) for entry in out)


def _rank(measure: Measure) -> int:
    """Those that need the same weight everywhere take theirs first."""
    return 0 if isinstance(measure, Total) else 2 if isinstance(measure, Floors) else 1
