"""Scores far from 1 are counted in another unit while they are solved for.

Programs, exchanges and rounding work to absolute tolerances that suit scores around 1. With scores of 1e-9 every plan
would be as good as every other to them, with scores of 1e9 none would be good enough. The unit is a power of two, so
the change and the way back are exact: a proof made in one unit is one in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.pair_numbers import PairNumbers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Measure, Shortfall, Welfare, Wish
from matching.scores.base import DenseScores, ScoreOperator, SparseScores
from matching.scores.size import usual_size
from matching.solvers.base import Progress, ProgressCallback, Proof, Solution, frozen
from matching.solvers.evenness import Evenness
from matching.types import FloatArray, IntArray

__all__ = ["in_unit", "in_words", "restored", "restored_proof", "unit_of"]

IN_SCORES = ("t", "beta", "standard_error")  # options counted in units of score
META_IN_SCORES = (
    "resolution", "total", "total_bound", "best_total", "expected", "realised", "least", "integer_bound",
    "lottery_bound",
)  # fmt: skip


def unit_of(problem: AssignmentProblem, wishes: Sequence[Wish] = ()) -> float:
    """The unit a problem is solved in: `usual_size` of its scores, large enough for the options of the wishes."""
    return usual_size(problem.scores, [float(wish.options.get("beta", 0.0)) for wish in wishes])


def in_unit(
    problem: AssignmentProblem, wishes: Sequence[Wish], unit: float
) -> tuple[AssignmentProblem, tuple[Wish, ...]]:
    """The problem and the wishes with every score, price of a rule and option counted in this unit."""
    rules = tuple(rule if rule.price is None else replace(rule, price=rule.price / unit) for rule in problem.rules)
    scores = _scaled(problem.scores, 1.0 / unit)
    return replace(problem, scores=scores, rules=rules), tuple(_wish(wish, 1.0 / unit) for wish in wishes)


def in_words(progress: ProgressCallback | None, unit: float) -> ProgressCallback | None:
    """Reports on a problem in this unit as reports on the problem itself."""
    if progress is None:
        return None

    def told(number: float | None) -> float | None:
        return None if number is None else number * unit

    return lambda report: progress(
        Progress(report.phase, report.fraction, told(report.value), told(report.bound), told(report.gap))
    )


def restored(solution: Solution, wishes: Sequence[Wish], unit: float) -> Solution:
    """A solution found in this unit as one of the problem itself; `wishes` are the ones that were asked."""
    asked = {wish.name: wish.to_dict() for wish in wishes}
    proofs = tuple(restored_proof(proof, asked, unit) for proof in solution.proofs)
    first = 1.0 if solution.proofs and isinstance(solution.proofs[0].measure, Evenness) else unit
    priced = _size(solution.proofs[-1].measure, unit) if solution.proofs else unit
    meta: dict[str, Any] = {
        key: value * unit if key in META_IN_SCORES and value is not None else value
        for key, value in solution.meta.items()
    }
    if "levels" in meta:
        meta["levels"] = [{key: value * unit for key, value in level.items()} for level in meta["levels"]]
    return replace(
        solution,
        value=solution.value * first,
        bound=solution.bound * first,
        gap=solution.gap * first,
        submission_prices=frozen(solution.submission_prices * priced),
        reviewer_prices=frozen(solution.reviewer_prices * priced),
        penalty=solution.penalty * priced,
        meta={**meta, "unit": unit},
        proofs=proofs,
    )


def restored_proof(proof: Proof, asked: dict[str, dict[str, Any]], unit: float) -> Proof:
    """The same inequality with every number in units of the problem itself.

    Both sides of an inequality on a measure are multiplied by what the measure grows by: the unit, or 1 for welfare,
    which counts sums in a unit of their own, and for squared loads.
    """
    size = _size(proof.measure, unit)
    stated = 1.0 if isinstance(proof.measure, Evenness) else unit
    multipliers = tuple(
        (k * size / _size(measure, unit), z * (_size(measure, unit) / unit))
        for (measure, _), (k, z) in zip(proof.constraints, proof.multipliers, strict=True)
    )
    return replace(
        proof,
        wish=asked.get(str(proof.wish["name"]), proof.wish),
        value=proof.value * stated,
        bound=proof.bound * stated,
        gap=proof.gap * stated,
        measure=_measure(proof.measure, unit),
        constraints=tuple(
            (_measure(measure, unit), least * _size(measure, unit)) for measure, least in proof.constraints
        ),
        weights=frozen(proof.weights * (size / unit)),
        multipliers=multipliers,
        submission_prices=frozen(proof.submission_prices * size),
        reviewer_prices=frozen(proof.reviewer_prices * size),
        rule_prices=tuple(_times(prices, size) for prices in proof.rule_prices),
        penalty=proof.penalty * size,
        height=None if proof.height is None else proof.height * unit,
    )


def _size(measure: Measure, unit: float) -> float:
    """What the measure grows by when sums grow by the unit."""
    if isinstance(measure, Evenness):
        return 1.0
    return 1.0 if isinstance(measure, Welfare) and measure.alpha != 0.0 else unit


def _measure(measure: Measure, unit: float) -> Measure:
    if isinstance(measure, Floors):
        return replace(measure, floor=measure.floor * unit)
    if isinstance(measure, Shortfall):
        return replace(measure, t=measure.t * unit)
    if isinstance(measure, Welfare) and measure.alpha != 0.0 and measure.among.any():
        return replace(measure, floor=measure.floor * unit, unit=measure.unit * unit)
    return measure


def _wish(wish: Wish, factor: float) -> Wish:
    options = {key: _times(value, factor) if key in IN_SCORES else value for key, value in wish.options.items()}
    return Wish(wish.name, MappingProxyType(options), wish.loss)


def _times(value: Any, factor: float) -> Any:
    """Numbers in whatever form they come, multiplied."""
    if isinstance(value, PairNumbers):
        dense = None if value.dense is None else value.dense * factor
        return PairNumbers(value.shape, value.by_reviewer * factor, value.single * factor, dense)
    if isinstance(value, tuple | list):
        return type(value)(_times(part, factor) for part in value)
    return value * factor


def _scaled(scores: ScoreOperator, factor: float) -> ScoreOperator:
    if isinstance(scores, DenseScores):
        return DenseScores(_product(scores.matrix, factor))
    if isinstance(scores, SparseScores):
        return SparseScores(sparse.csr_array(scores.matrix * factor), scores.default * factor)
    return _Times(scores, factor)


def _product(part: NDArray[np.floating], factor: float) -> NDArray[np.floating]:
    """Exact: scores near 1 fit single precision if they did so before."""
    return part * part.dtype.type(factor) if 2.0**-120 < factor < 2.0**120 else part.astype(np.float64) * factor


class _Times(ScoreOperator):
    """Another operator's scores multiplied by a power of two."""

    def __init__(self, scores: ScoreOperator, factor: float) -> None:
        self.scores, self.factor, self.shape = scores, factor, scores.shape
        self.tolerance = scores.tolerance * factor

    @property
    def stored(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        if (stored := self.scores.stored) is None:
            return None
        return stored[0], stored[1], stored[2] * self.factor

    def bounds(self) -> tuple[float, float]:
        low, high = self.scores.bounds()
        return low * self.factor, high * self.factor

    def bounds_hint(self) -> tuple[float, float]:
        low, high = self.scores.bounds_hint()
        return low * self.factor, high * self.factor

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        return _product(self.scores.block(rows, cols), self.factor)

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return self.scores.values(rows, cols) * self.factor
