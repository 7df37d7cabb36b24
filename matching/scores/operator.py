"""The affinity of every pair as a weighted sum of signals, with the parts kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from threading import RLock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.errors import InvalidScoresError
from matching.pairs import PairSet
from matching.scores.base import ScoreOperator, SparseScores, VectorScores, blocks
from matching.scores.candidates import top_by_threshold
from matching.scores.priced import Priced
from matching.types import FloatArray, IntArray, PairArray
from matching.vectors.threads import one_blas_thread

__all__ = ["AffinityOperator", "Signal"]

CACHED_PAIRS = 1 << 24  # 64 MB in float32: up to here the sum is kept, since every sweep asks for all of it
_SUMMING = RLock()  # of all operators, since one that is sent to other processes can hold none itself
UNIT = 2.0**-24  # rounding of one float32 operation, relative


@dataclass(frozen=True, eq=False)
class Signal:
    """One source of affinity.

    Attributes
    ----------
    name : str
        "text", "areas", "bids" or the name of an imported table.
    weight : float
        [0, inf), no unit. 0 keeps the signal in the record and out of the affinity.
    operator : ScoreOperator or None
        NaN where the signal says nothing. None for a signal that was not computed: its weight is 0, or only
        the record is wanted.
    default : float or None
        Value used where it says nothing; None adds 0.
    default_is_known : bool
        Whether the default counts as a value: true for imported tables, whose owner set it for pairs the
        table leaves out; false where it merely stands in for what nobody knows.
    known : int
        Pairs about which the signal says something.
    """

    name: str
    weight: float
    operator: ScoreOperator | None
    default: float | None = None
    default_is_known: bool = False
    known: int = 0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weight) and self.weight >= 0):
            raise InvalidScoresError(f"the weight of signal {self.name!r} must be a finite number of at least 0")
        if self.default is not None and not np.isfinite(self.default):
            raise InvalidScoresError(f"the default of signal {self.name!r} must be a finite number or None")

    @property
    def stand_in(self) -> float:
        """What enters the sum where the signal says nothing."""
        return 0.0 if self.default is None else self.default

    def summary(self) -> dict[str, Any]:
        """Name, weight, pairs it says something about, default, and what the pairs are called."""
        unit = "bids" if self.name == "bids" else "pairs"
        return {"name": self.name, "weight": self.weight, "pairs": self.known, "default": self.default, "unit": unit}


class AffinityOperator(ScoreOperator):
    """``affinity = sum over signals of weight * (value, or the signal's default where it has none)``.

    A pair is *unknown* if no signal of positive weight measured it. A default does not make it known, unless
    it is the default of an imported table. With no signal of positive weight at all there is nothing to
    know: every pair has the affinity 0 and both switches are moot, so that a venue without scores can still
    be assigned.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    signals : iterable of Signal
        In the order in which they are summed and shown.
    allow_unknown : bool
        True lets unknown pairs carry the sum of the defaults; False makes them NaN.
    allow_zero : bool
        False makes pairs NaN whose affinity is exactly 0.

    Notes
    -----
    `values` sums in float64, in the order of the signals. Blocks are float32 and within `tolerance` of it
    (float64 if `allow_zero` is False, since there "exactly 0" has to be decided). Memory: what the signals hold (4
    bytes a pair for text; in a large venue 2, in a file), and up to 16.7 million pairs 4 bytes (8 if `allow_zero` is
    False) a pair for the sum.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        signals: Iterable[Signal],
        *,
        allow_unknown: bool = True,
        allow_zero: bool = True,
    ) -> None:
        self.shape = shape
        self.signals = tuple(signals)
        for signal in self.signals:
            if signal.operator is not None and signal.operator.shape != shape:
                raise InvalidScoresError(f"signal {signal.name!r} has shape {signal.operator.shape}, expected {shape}")
            if signal.operator is None and signal.weight > 0:
                raise InvalidScoresError(f"signal {signal.name!r} has a weight and no values")
        self.allow_unknown, self.allow_zero = allow_unknown, allow_zero
        self._counted = tuple(
            (signal, signal.operator) for signal in self.signals if signal.weight > 0 and signal.operator is not None
        )
        strict = bool(self._counted)
        self._bar_zero = strict and not allow_zero
        self._bar_unknown = (
            strict
            and not allow_unknown
            and not any(signal.default_is_known and signal.default is not None for signal, _ in self._counted)
        )
        self._dtype: type[np.floating] = np.float64 if self._bar_zero else np.float32
        self.tolerance = self._tolerance()
        self._sum: NDArray[np.floating] | None = None
        self._split: tuple[VectorScores, sparse.csr_array, float] | None = None

    def _tolerance(self) -> float:
        """Rounding of values, weights, products and the running sum, and what the signals themselves allow."""
        inherited = sum(signal.weight * operator.tolerance for signal, operator in self._counted)
        if self._dtype is np.float64:
            return float(inherited)
        reach = 0.0
        for signal, operator in self._counted:
            low, high = operator.bounds()
            reach += signal.weight * max(abs(low), abs(high), abs(signal.stand_in))
        return float(inherited + (len(self._counted) + 4) * UNIT * reach)

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        if self.shape[0] * self.shape[1] > CACHED_PAIRS:
            return self._block(rows, cols)
        if self._sum is None:
            with _SUMMING:  # threads that ask at the same time wait for the first
                if self._sum is None:
                    total = np.empty(self.shape, dtype=self._dtype)
                    with one_blas_thread():
                        for some_rows, some_cols in blocks(self.shape):
                            total[some_rows, some_cols] = self._block(some_rows, some_cols)
                    total.setflags(write=False)
                    self._sum = total
        return self._sum[rows, cols]

    def bounds(self) -> tuple[float, float]:
        """Limits from those of the signals; no sweep of the sum."""
        least, most = 0.0, 0.0
        for signal, operator in self._counted:
            low, high = operator.bounds()
            least += signal.weight * min(low, signal.stand_in)
            most += signal.weight * max(high, signal.stand_in)
        return least - self.tolerance, most + self.tolerance

    def _block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        found = self._vectors_and_lists()
        if found is not None:
            vectors, listed, extra = found
            return _WithLists(_Plain(vectors, extra), listed, 0.0, None).block(rows, cols)
        size = (rows.stop - rows.start, cols.stop - cols.start)
        total = np.zeros(size, dtype=self._dtype)
        known = np.zeros(size, dtype=bool) if self._bar_unknown else None
        for signal, operator in self._counted:
            weight, stand_in = self._dtype(signal.weight), self._dtype(signal.stand_in)
            if isinstance(operator, SparseScores) and np.isnan(operator.default):
                # few entries: everything gets the stand-in, and the listed pairs their own value instead
                stored = operator.matrix[rows, cols].tocoo()
                local = stored.coords
                listed = total[local] + weight * stored.data.astype(self._dtype)
                if signal.stand_in:
                    total += weight * stand_in
                total[local] = listed
                if known is not None:
                    known[local] = True
                continue
            used = np.array(operator.block(rows, cols), dtype=self._dtype)
            missing = np.isnan(used)
            used[missing] = stand_in
            used *= weight
            total += used
            if known is not None:
                known |= ~missing
        if known is not None:
            total[~known] = np.nan
        if self._bar_zero:
            near = np.nonzero(np.abs(total) <= self.tolerance)
            if self.tolerance and near[0].size:
                total[near] = self.values(near[0] + rows.start, near[1] + cols.start)
            else:
                total[near] = np.nan
        return total

    def priced(self, row_prices: FloatArray, col_prices: FloatArray, weights: FloatArray | None = None) -> Priced:
        """One product for the vectors, with prices and stand-ins in it; the listed pairs are put right afterwards."""
        found = self._vectors_and_lists()
        if found is None:
            return super().priced(row_prices, col_prices, weights)
        vectors, listed, extra = found
        shifted = row_prices - (extra if weights is None else extra * weights)
        most = float(np.abs(listed.data).max(initial=0.0))
        inner = vectors.priced(shifted, col_prices, weights, to_come=most)
        steepest = 1.0 if weights is None else float(weights.max(initial=0.0))
        return _WithLists(inner, listed, steepest * self.tolerance + inner.tolerance, weights)

    @property
    def graded(self) -> bool:
        return not self._bar_unknown and any(operator.graded for _, operator in self._counted)

    def top_pairs(self, k: int, barred: PairSet, rng: np.random.Generator) -> PairArray:
        found = self._vectors_and_lists()
        if found is None:
            return super().top_pairs(k, barred, rng)
        return top_by_threshold(self, k, barred, rng)

    def _vectors_and_lists(self) -> tuple[VectorScores, sparse.csr_array, float] | None:
        """Vectors with their weight, what listed pairs add, and the stand-ins, if that is all there is."""
        if self._bar_unknown or self._bar_zero:
            return None
        if self._split is None:
            vectors = [
                operator.times(signal.weight)
                for signal, operator in self._counted
                if isinstance(operator, VectorScores)
            ]
            lists = [
                (signal, operator)
                for signal, operator in self._counted
                if isinstance(operator, SparseScores) and np.isnan(operator.default)
            ]
            if len(vectors) != 1 or len(lists) + 1 != len(self._counted):
                return None
            added = sparse.csr_array(self.shape, dtype=np.float32)
            extra = 0.0
            for signal, operator in lists:
                own = operator.matrix.copy()
                own.data = (signal.weight * (own.data - signal.stand_in)).astype(np.float32)
                added = added + own
                extra += signal.weight * signal.stand_in
            self._split = vectors[0], sparse.csr_array(added), extra
        return self._split

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        total = np.zeros(len(rows))
        known = np.zeros(len(rows), dtype=bool)
        for signal, operator in self._counted:
            value = operator.values(rows, cols)
            measured = ~np.isnan(value)
            total += signal.weight * np.where(measured, value, signal.stand_in)
            known |= measured
        if self._bar_unknown:
            total[~known] = np.nan
        if self._bar_zero:
            total[total == 0.0] = np.nan
        return total

    def parts(self, rows: IntArray, cols: IntArray) -> list[tuple[Signal, FloatArray, FloatArray]]:
        """What each signal contributes to the pairs (rows[i], cols[i]).

        Returns
        -------
        list of (Signal, value, used)
            In the order of the signals, those of weight 0 included. `value` is float64 of shape (n,), NaN
            where the signal says nothing; `used` is what entered the sum: the value, or the default. Adding
            up ``weight * used`` in this order gives `values` exactly, wherever that is not NaN.
        """
        out = []
        for signal in self.signals:
            value = np.full(len(rows), np.nan) if signal.operator is None else signal.operator.values(rows, cols)
            out.append((signal, value, np.where(np.isnan(value), signal.stand_in, value)))
        return out

    def unknown(self, rows: IntArray, cols: IntArray) -> NDArray[np.bool_]:
        """Whether each pair (rows[i], cols[i]) is unknown in the sense above, whatever `allow_unknown` says."""
        known = np.zeros(len(rows), dtype=bool)
        for signal, operator in self._counted:
            if signal.default_is_known and signal.default is not None:
                return np.zeros(len(rows), dtype=bool)
            known |= ~np.isnan(operator.values(rows, cols))
        return ~known

    def summary(self) -> list[dict[str, Any]]:
        """One record a signal, those of weight 0 included: name, weight, pairs, default, unit."""
        return [signal.summary() for signal in self.signals]

    def known_counts(self) -> dict[str, int]:
        """Signal -> pairs it says something about, those of weight 0 included. No sweep."""
        return {signal.name: signal.known for signal in self.signals}


class _Plain:
    """Blocks of vectors and a constant, in a form that `_WithLists` may write to."""

    tolerance = 0.0

    def __init__(self, vectors: VectorScores, extra: float) -> None:
        self._vectors, self._extra = vectors, np.float32(extra)

    def block(self, rows: slice, cols: slice) -> NDArray[np.float32]:
        out = self._vectors.block(rows, cols)
        if self._extra:
            out += self._extra
        return out


class _WithLists:
    """Priced blocks of vectors, plus what listed pairs add."""

    def __init__(self, inner: Priced, listed: sparse.csr_array, tolerance: float, weights: FloatArray | None) -> None:
        self._inner, self.tolerance = inner, tolerance
        self._weights = None if weights is None else weights.astype(np.float32)
        self._indptr, self._indices, self._data = listed.indptr, listed.indices, listed.data
        self._width = listed.shape[1]
        self._own = local()

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        out = self._inner.block(rows, cols)
        if getattr(self._own, "rows", None) != rows:  # a thread asks for one strip block after block
            start, stop = self._indptr[rows.start], self._indptr[rows.stop]
            line = np.repeat(np.arange(out.shape[0]), np.diff(self._indptr[rows.start : rows.stop + 1]))
            self._own.rows, self._own.listed = rows, (self._indices[start:stop], self._data[start:stop], line)
        at, data, line = self._own.listed
        if out.shape[1] < self._width:
            inside = (at >= cols.start) & (at < cols.stop)
            at, data, line = at[inside] - cols.start, data[inside], line[inside]
        out[line, at] += data if self._weights is None else data * self._weights[rows][line]
        return out
