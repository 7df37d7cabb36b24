"""The sweep that looks for pairs above their prices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from matching.pairs import PairSet
from matching.scores.fan import Sweep, tiles
from matching.scores.priced import Priced, Strip
from matching.types import FloatArray, IntArray

__all__ = ["Exceeding", "FoundAbove"]

FoundAbove = tuple[IntArray, IntArray, FloatArray, bool]
"""Rows, columns and excess of the pairs found, and whether they are all there are."""


class Swept(Protocol):
    """What is needed of scores: see ScoreOperator."""

    shape: tuple[int, int]

    @property
    def large(self) -> tuple[Any, ...]:
        """Parts that outlive a change of weights."""
        ...

    def priced(self, row_prices: FloatArray, col_prices: FloatArray) -> Priced:
        """Scores minus prices."""
        ...

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """Exact scores of pairs."""
        ...


@dataclass(frozen=True, eq=False)
class Exceeding(Sweep[FoundAbove]):
    """What lies above prices and a margin in some rows; see `ScoreOperator.exceeding`."""

    scores: Swept
    row_prices: FloatArray
    col_prices: FloatArray
    margin: float
    limit: int | None
    skip: PairSet | None

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large if self.skip is None else (*self.scores.large, self.skip)

    def begin(self) -> Callable[[slice], FoundAbove]:
        priced, columns = self.scores.priced(self.row_prices, self.col_prices), tiles(self.scores.shape[1])

        def found(rows: slice) -> FoundAbove:
            strip = Strip(rows, self.margin - priced.tolerance, self.limit)
            for cols in columns:
                strip.offer(priced.block(rows, cols), cols, self.skip)
            excess = self.scores.values(strip.rows, strip.cols)
            excess = excess - self.row_prices[strip.rows] - self.col_prices[strip.cols]
            keep = excess > self.margin
            if keep.all():
                return strip.rows, strip.cols, excess, strip.complete
            return strip.rows[keep], strip.cols[keep], excess[keep], strip.complete

        return found
