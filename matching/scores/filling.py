"""Constants of a venue, then the affinity of every pair, block by block and on several threads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future
from contextlib import closing
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from matching.scores.documents import ReviewerTexts
from matching.scores.sides import ReviewerSide, SubmissionSide, pooled_pairs
from matching.scores.standard import GRID, Constants, Moments, combined, on_grid, to_affinity
from matching.scores.stored import StoredAffinity
from matching.scores.sweep import Sweep
from matching.types import FloatArray, IntArray
from matching.vectors.base import TextModel
from matching.vectors.threads import cores

__all__ = ["Filling", "fits_a_matrix"]

ROWS = 64  # submissions swept at once
MATRIX_PAIRS = 25_000_000  # up to here affinities are a float32 matrix, 100 MB
KEPT_PAIRS = 1 << 23  # up to here pooled similarities of all pairs are kept until the constants are known, 67 MB each
SAMPLED_ROWS = 1024  # submissions that the constants of a larger venue come from, at least
CHECKED_ROWS, CHECKED_COLUMNS = 16, 256  # pairs from which the rounding of a sweep in single precision is measured
SAFETY = 4.0  # times the largest rounding error seen

Result = TypeVar("Result")


def fits_a_matrix(shape: tuple[int, int]) -> bool:
    """Whether affinities of so many pairs are kept in memory."""
    return shape[0] * shape[1] <= MATRIX_PAIRS


class Filling:
    """The work of `TextScores.fit` after the vectoriser's: constants, then every pair."""

    def __init__(
        self,
        model: TextModel,
        left: SubmissionSide,
        right: ReviewerSide,
        wanted: Sequence[str],
        texts: ReviewerTexts,
        stored: StoredAffinity,
        runner: Executor,
        tell: Callable[[float], None],
    ) -> None:
        self._model, self._left, self._runner, self._tell = model, left, runner, tell
        self._right = right
        self._shape = (len(wanted), texts.indptr.size - 1)
        known = np.logical_or.reduce([np.zeros(len(wanted), dtype=np.bool_), *left.known])
        self._rows = np.asarray([row for row in sorted(range(len(wanted)), key=wanted.__getitem__) if known[row]], int)
        self._columns = np.asarray(sorted(range(self._shape[1]), key=lambda col: _key(texts, col)), int)
        self._place = np.empty_like(self._columns)
        self._place[self._columns] = np.arange(self._columns.size)
        self._stored, self._exact = stored, stored.exact
        self._sweep = Sweep(model.groups, left, right, self._columns, np.float64 if self._exact else np.float32)
        self._some = np.zeros(self._shape[1], dtype=np.bool_)  # columns that some group knows, as they are swept
        for group, columns in zip(model.groups, self._sweep.columns):
            self._some[columns] |= bool(group.comparisons)

    def run(self) -> tuple[Constants, float]:
        """Fill the affinities; the constants, and the rounding errors of a sweep in single precision."""
        keep = self._rows.size * self._shape[1] <= KEPT_PAIRS
        count = self._rows.size if keep else min(self._rows.size, max(SAMPLED_ROWS, KEPT_PAIRS // self._shape[1]))
        sample = np.linspace(0, max(0, self._rows.size - 1), count).astype(np.int64)
        chosen = self._rows if keep else self._rows[sample]
        moments = Moments(self._model.groups)
        kept: list[list[list[NDArray[np.floating]]]] = []
        whole = chosen.size if keep else chosen.size + self._rows.size
        done = 0
        with closing(self._each(self._centred, _cut(chosen))) as results:
            for rows, pooled in results:
                self._learn(moments, rows, pooled)
                done += rows.size
                self._tell(done / whole)
                if keep:
                    kept.append(pooled)
        constants = moments.constants()
        factors = constants.factors(self._model.groups)
        self._fill(constants, factors, zip(_cut(chosen), kept) if keep else None, done / max(whole, 1))
        return constants, 0.0 if self._exact else self._rounding(constants, factors)

    def _fill(
        self,
        constants: Constants,
        factors: FloatArray,
        kept: Iterable[tuple[IntArray, list[list[NDArray[np.floating]]]]] | None,
        done: float,
    ) -> None:
        """Every row, from the pooled similarities that were kept or from new ones; `done` is the share done before."""
        stored = self._stored

        def finish(rows: IntArray, pooled: list[list[NDArray[np.floating]]]) -> NDArray[np.floating]:
            affinity = self._affinity(constants, factors, rows, pooled)
            for row, line in zip(rows.tolist(), affinity):
                stored.put(row, line)
            return affinity

        if kept is not None:
            for rows, pooled in kept:
                stored.count(finish(rows, pooled))
                self._tell(1.0)
        else:
            left = 1.0 - done
            filled = 0
            with closing(self._each(lambda rows: finish(rows, self._centred(rows)), _cut(self._rows))) as lines:
                for rows, affinity in lines:
                    stored.count(affinity)
                    filled += rows.size
                    self._tell(done + left * filled / self._rows.size)
        self._unscored()

    def _unscored(self) -> None:
        """Rows of which nothing is known. A matrix holds NaN from the start."""
        if not self._exact:
            nothing = np.full(self._shape[1], np.nan, dtype=np.float32)
            for row in np.setdiff1d(np.arange(self._shape[0]), self._rows).tolist():
                self._stored.put(row, nothing)

    def _each(
        self, work: Callable[[IntArray], Result], blocks: Sequence[IntArray]
    ) -> Generator[tuple[IntArray, Result], None, None]:
        """Results in order; a few blocks ahead are under way, and none is left running when the caller stops."""
        ahead: list[tuple[IntArray, Future[Result]]] = []
        waiting = iter(blocks)
        try:
            for _ in range(cores() + 1):
                if (rows := next(waiting, None)) is not None:
                    ahead.append((rows, self._runner.submit(work, rows)))
            while ahead:
                rows, future = ahead.pop(0)
                result = future.result()
                if (more := next(waiting, None)) is not None:
                    ahead.append((more, self._runner.submit(work, more)))
                yield rows, result
        finally:
            for _, future in ahead:
                future.cancel()
            for _, future in ahead:
                if not future.cancelled():
                    future.exception()

    def _centred(self, rows: IntArray) -> list[list[NDArray[np.floating]]]:
        """Pooled similarities less their share of the submission's mean; the share is noted."""
        pooled = self._sweep.pooled(rows)
        at = 0
        for group, parts in zip(self._model.groups, pooled):
            for comparison, part in zip(group.comparisons, parts):
                if comparison.centre and part.shape[1]:
                    shift = comparison.centre * part.mean(axis=1, dtype=np.float64)
                    self._left.shifts[at, rows] = shift
                    part -= shift[:, None].astype(part.dtype)
                at += 1
        return pooled

    def _learn(self, moments: Moments, rows: IntArray, pooled: list[list[NDArray[np.floating]]]) -> None:
        values, known = [], []
        for number, (columns, parts) in enumerate(zip(self._sweep.columns, pooled)):
            flags = np.zeros((rows.size, self._shape[1]), dtype=np.bool_)
            flags[:, columns] = self._left.known[number][rows][:, None] & bool(parts)
            known.append(flags.ravel())
            for part in parts:
                if columns.size == self._shape[1]:
                    values.append(part.ravel())
                else:
                    spread = np.zeros(flags.shape, dtype=part.dtype)
                    spread[:, columns] = part
                    values.append(spread.ravel())
        moments.add(values, known)

    def _affinity(
        self, constants: Constants, factors: FloatArray, rows: IntArray, pooled: list[list[NDArray[np.floating]]]
    ) -> NDArray[np.floating]:
        """Affinities of whole rows in the order of the reviewers; `pooled` is used up."""
        dtype = np.dtype(np.float64 if self._exact else np.float32).type
        total = np.zeros((rows.size, self._shape[1]), dtype=dtype)
        known = np.zeros((rows.size, self._shape[1]), dtype=np.bool_)
        at = 0
        for number, (columns, parts) in enumerate(zip(self._sweep.columns, pooled)):
            some = self._left.known[number][rows]
            whole = columns.size == self._shape[1] and bool(some.all())
            for part in parts:
                part -= dtype(constants.means[at])
                part *= dtype(factors[at])
                if whole:
                    total += part
                else:
                    total[:, columns] += np.where(some[:, None], part, dtype(0.0))
                at += 1
            if parts:
                known[:, columns] |= some[:, None]
        to_affinity(total, flat=not factors.any())
        if self._exact:
            on_grid(total)
        if not known.all():
            total[~known] = np.nan
        return total[:, self._place]

    def _rounding(self, constants: Constants, factors: FloatArray) -> float:
        """How far the sweep may be from exact scores: several times the largest difference over some pairs."""
        if not self._rows.size or not self._some.any():
            return 0.0
        rows = self._rows[np.linspace(0, self._rows.size - 1, CHECKED_ROWS).astype(np.int64)]
        rough = self._affinity(constants, factors, rows, self._centred(rows))
        known = self._columns[self._some]
        cols = known[np.linspace(0, known.size - 1, CHECKED_COLUMNS).astype(np.int64)]
        pair_rows, pair_cols = np.repeat(rows, cols.size), np.tile(cols, rows.size)
        pooled = pooled_pairs(self._model.groups, self._left, self._right, pair_rows, pair_cols)
        exact = combined(constants, factors, pooled, self._left.shifts[:, pair_rows])
        difference = np.abs(rough[:, cols].ravel() - exact)
        return max(SAFETY * float(np.nanmax(difference, initial=0.0)), 4.0 / GRID)


def _cut(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + ROWS] for start in range(0, rows.size, ROWS)]


def _key(texts: ReviewerTexts, col: int) -> tuple[list[str], list[float]]:
    part = slice(texts.indptr[col], texts.indptr[col + 1])
    return [document.text for document in texts.documents[part]], texts.weights[part].tolist()
