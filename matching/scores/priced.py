"""Scores minus prices, block by block, and what of them lies above a threshold."""

from __future__ import annotations

from threading import local
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from matching.pairs import PairSet
from matching.types import FloatArray, IntArray

__all__ = ["SINGLE_PRICES", "SINGLE_TOLERANCE", "Augmented", "Priced", "Strip", "Subtracted", "among_largest", "tamed"]

SINGLE_PRICES = 64.0  # prices above it, in units of score, are not taken off in single precision
SINGLE_TOLERANCE = 4e-6  # relative; float32 sums over a few hundred terms stay well inside it


class Blocks(Protocol):
    """What is needed of scores to take prices off them: see ScoreOperator."""

    tolerance: float

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        """Scores of a block."""
        ...


class Priced(Protocol):
    """Scores minus the prices of their lines, block by block.

    Attributes
    ----------
    tolerance : float
        Largest absolute error of `block` for pairs whose true difference lies near 0.
    """

    tolerance: float

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        """A C-contiguous array, NaN where the score is unknown. The thread's next call may overwrite it."""
        ...


class Subtracted:
    """Any operator: the block, and two subtractions."""

    def __init__(
        self, scores: Blocks, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None
    ) -> None:
        self._scores, self._rows, self._cols, self._weights = scores, row_prices, col_prices, weights
        largest = max(np.abs(row_prices).max(initial=0.0), np.abs(col_prices).max(initial=0.0), 1.0)
        # In single precision prices and differences are rounded too; with prices far above the scores, as closed
        # lines and missing reviews have them, that would drown the scores.
        self._double = bool(largest > SINGLE_PRICES) or weights is not None
        steepest = 1.0 if weights is None else float(weights.max(initial=0.0))
        self.tolerance = steepest * scores.tolerance + (0.0 if self._double else float(largest) * 2.0**-22)

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        part = self._scores.block(rows, cols)
        kind = np.float64 if self._double else part.dtype
        if self._weights is not None:
            part = part * self._weights[rows, None]
        over = np.ascontiguousarray(part - self._rows[rows, None].astype(kind))
        over -= self._cols[None, cols].astype(kind)
        return over


class Augmented:
    """Inner products with the prices as two more coordinates, so that one product yields the difference."""

    def __init__(
        self,
        left: NDArray[np.float32],
        right: NDArray[np.float32],
        offset: float,
        tolerance: float,
        row_prices: FloatArray,
        col_prices: FloatArray,
        weights: FloatArray | None,
    ) -> None:
        (height, dim), width = left.shape, len(right)
        self._left = np.empty((height, dim + 2), dtype=np.float32)
        self._left[:, :dim] = left
        of_rows: float | FloatArray = offset
        steepest = 1.0
        if weights is not None:
            self._left[:, :dim] *= weights[:, None].astype(np.float32)
            of_rows = offset * weights
            steepest = float(weights.max(initial=0.0))
        self._left[:, dim] = of_rows - row_prices
        self._left[:, dim + 1] = -1.0
        self._right = np.empty((dim + 2, width), dtype=np.float32)
        self._right[:dim] = right.T
        self._right[dim] = 1.0
        self._right[dim + 1] = col_prices
        largest = float(np.abs(row_prices).max(initial=0.0) + np.abs(col_prices).max(initial=0.0))
        self.tolerance = steepest * tolerance + SINGLE_TOLERANCE * largest
        self._own = local()

    def block(self, rows: slice, cols: slice) -> NDArray[np.float32]:
        size = (rows.stop - rows.start, cols.stop - cols.start)
        room = getattr(self._own, "room", None)
        if room is None or room.size < size[0] * size[1]:
            room = self._own.room = np.empty(size[0] * size[1], dtype=np.float32)
        out = room[: size[0] * size[1]].reshape(size)
        np.matmul(self._left[rows], self._right[:, cols], out=out)
        return out


def tamed(mine: FloatArray, other: FloatArray, reach: float) -> FloatArray | None:
    """Prices cut where they exclude every pair of their line anyway; None where large ones are left.

    Lines without room have a price above any score; cut to what excludes their pairs by a margin, they do no harm
    to single precision.
    """
    roof = 2.0 * reach + float(np.maximum(-other, 0.0).max(initial=0.0)) + 1.0
    cut = np.minimum(mine, roof)
    return cut if np.abs(cut).max(initial=0.0) <= SINGLE_PRICES else None


class Strip:
    """What exceeds a threshold in some rows, block after block; no more than the `limit` largest of each row."""

    def __init__(self, lines: slice, threshold: float, limit: int | None) -> None:
        self._first, self._limit = lines.start, limit
        self._threshold = np.full(lines.stop - lines.start, threshold)
        self.rows, self.cols = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._size = np.empty(0, dtype=np.float32)
        self.complete = True

    def offer(self, over: NDArray[np.floating], cols: slice, skip: PairSet | None) -> None:
        with np.errstate(invalid="ignore"):
            # on the flat array: a search over two dimensions costs as much as the product itself
            flat = np.flatnonzero(over > self._threshold.astype(over.dtype)[:, None])
        if not flat.size:
            return
        rows, columns = np.divmod(flat, over.shape[1])
        rows += self._first
        columns += cols.start
        size = over.ravel()[flat]
        if skip is not None:
            lawful = ~skip.contains(rows, columns)
            rows, columns, size = rows[lawful], columns[lawful], size[lawful]
        self.rows = np.concatenate([self.rows, rows])
        self.cols = np.concatenate([self.cols, columns])
        self._size = np.concatenate([self._size, size])
        if self._limit is not None:
            self._trim(self._limit)

    def _trim(self, limit: int) -> None:
        """Rows that hold too many keep the largest, and want as much of those to come."""
        line = self.rows - self._first
        counts = np.bincount(line, minlength=self._threshold.size)
        if counts.max(initial=0) <= limit:
            return
        self.complete = False
        keep = among_largest(line, self._size, limit)
        tight = np.flatnonzero(keep & (counts[line] > limit))
        lowest = np.full(self._threshold.size, np.inf)
        np.minimum.at(lowest, line[tight], self._size[tight])
        self._threshold = np.where(counts > limit, lowest, self._threshold)
        self.rows, self.cols, self._size = self.rows[keep], self.cols[keep], self._size[keep]


def among_largest(lines: IntArray, size: NDArray[np.floating], limit: int) -> NDArray[np.bool_]:
    """Whether each entry is one of the `limit` largest of its line; of equal ones the earlier."""
    crowded = np.bincount(lines)[lines] > limit if lines.size else np.zeros(0, dtype=bool)
    keep = ~crowded
    at = np.flatnonzero(crowded)  # only lines that hold too many are ordered
    order = at[np.lexsort((-size[at], lines[at]))]
    if order.size:
        starts = np.flatnonzero(np.concatenate([[True], lines[order][1:] != lines[order][:-1]]))
        nth = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
        keep[order[nth < limit]] = True
    return keep
