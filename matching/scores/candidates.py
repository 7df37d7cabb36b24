"""Where a search starts: about the k best of every line, in one pass, without ordering any line.

Best by score alone, or by score minus what the other side costs. Such prices come from a sample: solved by itself, its
prices say what anybody else would find there, and so what they cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.pairs import PairSet
from matching.scores.base import ScoreOperator
from matching.scores.fan import Sweep, strips, swept, tiles
from matching.scores.priced import among_largest
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Opening", "Sample", "large", "sampled", "top_by_threshold"]

SAMPLE = 4096  # lines of the other side from which a line's threshold is read
RUN = 64  # neighbours taken together: blocks as they are, and a fair sample even where neighbours are alike
ORDERED = 512  # entries a line that are put in order: the largest of a few sampled ones each
ABOVE = 2.5  # times k: pairs a threshold is set for, since a line may have far fewer; the best k of them are kept
FIRST = 3  # place in the sample below which a threshold says too little

Kept = tuple[IntArray, IntArray, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Sample:
    """Random runs of submissions and of reviewers.

    Attributes
    ----------
    rows, cols : list of slice
        In order, without overlap.
    """

    rows: list[slice]
    cols: list[slice]

    @classmethod
    def of(cls, shape: tuple[int, int], rng: np.random.Generator) -> Sample:
        """SAMPLE of each side, each line as likely but for the last few."""
        run = min(RUN, SAMPLE)
        starts = [np.sort(rng.choice(size // run, size=SAMPLE // run, replace=False)) * run for size in shape]
        rows, cols = ([slice(start, start + run) for start in some.tolist()] for some in starts)
        return cls(rows, cols)


@dataclass(frozen=True, eq=False)
class Opening:
    """Prices of a sample's lines, and how many pairs a line wants.

    Attributes
    ----------
    u, w : ndarray of shape (n_submissions,) and (n_reviewers,), float64
        What the sample's lines cost; 0 elsewhere.
    demand, load : ndarray of shape (n_submissions,) and (n_reviewers,), int64
    """

    u: FloatArray
    w: FloatArray
    demand: IntArray
    load: IntArray

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Opening:
        """Nobody costs anything or wants to know."""
        n_rows, n_cols = shape
        return cls(np.zeros(n_rows), np.zeros(n_cols), np.zeros(n_rows, np.int64), np.zeros(n_cols, np.int64))


def large(shape: tuple[int, int]) -> bool:
    """Whether a sample is a small part of both sides."""
    return min(shape) > 2 * SAMPLE


def sampled(scores: ScoreOperator, sample: Sample, barred: PairSet) -> NDArray[np.float32]:
    """Scores between the lines of a sample, NaN where a pair is barred."""
    return np.concatenate(list(swept(_Inside(scores, sample.cols, barred), sample.rows)))


def top_by_threshold(
    scores: ScoreOperator,
    k: int,
    barred: PairSet,
    rng: np.random.Generator,
    sample: Sample | None = None,
    opening: Opening | None = None,
) -> PairArray:
    """About the k best lawful pairs of every submission and of every reviewer.

    A line's threshold is read off a random sample of the other side, as a value that more than k of the whole line
    should exceed; one sweep then finds what exceeds either threshold of its lines, and the best k of each are kept.
    Comparing with a threshold costs a tenth of the product, ordering costs several times the product. A line left with
    too little, as where all of its pairs tie, is served by the first sweep.

    Parameters
    ----------
    sample : Sample or None
        None for one drawn from `rng`.
    opening : Opening or None
        With prices of the sample, the best are those by score minus the other side's price, which lines outside the
        sample are given by what they find in it.

    Returns
    -------
    ndarray of shape (n, 2), int64
        Sorted, each pair once.
    """
    height, width = scores.shape
    if not large(scores.shape):
        return ScoreOperator.top_pairs(scores, k, barred, rng)
    sample = sample or Sample.of(scores.shape, rng)
    opening = opening or Opening.none(scores.shape)
    of_rows = swept(_Thresholds(scores, sample.cols, opening.w, opening.demand, k, True), strips(height))
    least_row, u = (np.concatenate(some) for some in zip(*of_rows, strict=True))
    of_cols = swept(_Thresholds(scores, sample.rows, opening.u, opening.load, k, False), strips(width))
    least_col, w = (np.concatenate(some) for some in zip(*of_cols, strict=True))
    found = swept(_Above(scores, u, w, least_row - u, least_col - w, barred), strips(height))
    row, col, size = (np.concatenate(some) for some in zip(*found, strict=True))
    keep = among_largest(row, size, k) | among_largest(col, size, k)
    keys = np.unique(row[keep] * width + col[keep])
    return np.column_stack(np.divmod(keys, width))


@dataclass(frozen=True, eq=False)
class _Inside(Sweep[NDArray[np.float32]]):
    """Scores of some rows with the columns of a sample."""

    scores: ScoreOperator
    cols: list[slice]
    barred: PairSet

    @property
    def large(self) -> tuple[Any, ...]:
        return (*self.scores.large, self.barred)

    def begin(self) -> Callable[[slice], NDArray[np.float32]]:
        height, width = self.scores.shape
        priced = self.scores.priced(np.zeros(height), np.zeros(width))

        def inside(rows: slice) -> NDArray[np.float32]:
            line = np.empty((rows.stop - rows.start, width), dtype=np.float32)
            for cols in tiles(width):
                line[:, cols] = priced.block(rows, cols)
            line[self.barred.within(rows, slice(0, width))] = np.nan
            return np.concatenate([line[:, cols] for cols in self.cols], axis=1)

        return inside


@dataclass(frozen=True, eq=False)
class _Thresholds(Sweep[tuple[FloatArray, FloatArray]]):
    """For each line of a strip a value which about k of its pairs exceed, and what it costs itself.

    A line costs what its last wanted pair with the sample is worth there, if that is anything.
    """

    scores: ScoreOperator
    sample: list[slice]
    prices: FloatArray
    wanted: IntArray
    k: int
    by_row: bool

    @property
    def large(self) -> tuple[Any, ...]:
        return self.scores.large

    def begin(self) -> Callable[[slice], tuple[FloatArray, FloatArray]]:
        own = np.zeros(self.wanted.size)
        priced = self.scores.priced(*((own, self.prices) if self.by_row else (self.prices, own)))
        run = self.sample[0].stop - self.sample[0].start
        beside = max(1, min(ORDERED // run, len(self.sample)))
        width = run * beside
        count = run * len(self.sample)
        place = min(width, max(FIRST, round(ABOVE * self.k * count / self.prices.size)))

        def least(lines: slice) -> tuple[FloatArray, FloatArray]:
            # The largest of every few sampled entries first, then the one at `place` of those: the few largest of a
            # sample seldom stand together, and an eighth is left to be ordered.
            best = np.full((lines.stop - lines.start, width), -np.inf, dtype=np.float32)
            for number, sample in enumerate(self.sample):
                part = priced.block(lines, sample) if self.by_row else priced.block(sample, lines).T
                at = number % beside * run
                np.fmax(best[:, at : at + run], part, out=best[:, at : at + run])
            wanted = np.minimum(self.wanted[lines], width)
            places = np.unique(width - np.append(wanted[wanted > 0], place))
            ordered = np.partition(best, places, axis=1)
            last = np.take_along_axis(ordered, (width - np.maximum(wanted, 1))[:, None], axis=1)[:, 0]
            price = np.where((wanted > 0) & np.isfinite(last), last, 0.0).astype(np.float64)
            return ordered[:, width - place].astype(np.float64), price if self.by_row else np.maximum(price, 0.0)

        return least


@dataclass(frozen=True, eq=False)
class _Above(Sweep[Kept]):
    """Lawful pairs above the threshold of their row or of their column, both by score minus both prices."""

    scores: ScoreOperator
    row_prices: FloatArray
    col_prices: FloatArray
    of_row: FloatArray
    of_col: FloatArray
    barred: PairSet

    @property
    def large(self) -> tuple[Any, ...]:
        return (*self.scores.large, self.barred)

    def begin(self) -> Callable[[slice], Kept]:
        priced, columns = self.scores.priced(self.row_prices, self.col_prices), tiles(self.scores.shape[1])

        def above(rows: slice) -> Kept:
            found: list[Kept] = []
            for cols in columns:
                part = priced.block(rows, cols)
                mask = part > self.of_row[rows, None].astype(part.dtype)
                mask |= part > self.of_col[None, cols].astype(part.dtype)
                flat = np.flatnonzero(mask)
                row, col = np.divmod(flat, part.shape[1])
                found.append((row + rows.start, col + cols.start, part.ravel()[flat].astype(np.float32)))
            row, col, size = (np.concatenate(some) for some in zip(*found, strict=True))
            lawful = ~self.barred.contains(row, col)
            return row[lawful], col[lawful], size[lawful]

        return above
