"""Where a search starts: about the k best of every line, in one pass, without ordering any line."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matching.pairs import PairSet
from matching.scores.base import ScoreOperator, blocks
from matching.scores.priced import Priced, among_largest
from matching.types import IntArray, PairArray

__all__ = ["top_by_threshold"]

SAMPLE = 4096  # lines of the other side from which a line's threshold is read
RUNS = 8  # places the sample is taken from
LINES = 512  # lines looked at together
MOST = 3  # times k: lines that keep more are cut to this, so that ties do not flood the search


def top_by_threshold(scores: ScoreOperator, k: int, barred: PairSet, rng: np.random.Generator) -> PairArray:
    """About the k best lawful pairs of every submission and of every reviewer.

    A line's threshold is read off a random sample of the other side, as the value that k of the whole line should
    exceed; one sweep then keeps what exceeds either threshold of its lines. Comparing with a threshold costs a tenth of
    the product, ordering costs several times the product. Counts vary around k, which a search that prices the
    rest in does not mind; a line left with too little, as where all of its pairs tie, is served by the first sweep.

    Returns
    -------
    ndarray of shape (n, 2), int64
        Sorted, each pair once.
    """
    height, width = scores.shape
    if min(height, width) <= 2 * SAMPLE:
        return ScoreOperator.top_pairs(scores, k, barred, rng)
    priced = scores.priced(np.zeros(height), np.zeros(width))
    least_row = _thresholds(priced, scores.shape, k, rng, by_row=True)
    least_col = _thresholds(priced, scores.shape, k, rng, by_row=False)
    rows: list[IntArray] = []
    cols: list[IntArray] = []
    sizes: list[NDArray[np.float32]] = []
    for some, others in blocks(scores.shape):
        part = priced.block(some, others)
        mask = part > least_row[some, None]
        mask |= part > least_col[None, others]
        flat = np.flatnonzero(mask)
        row, col = np.divmod(flat, part.shape[1])
        row += some.start
        col += others.start
        lawful = ~barred.contains(row, col)
        rows.append(row[lawful])
        cols.append(col[lawful])
        sizes.append(part.ravel()[flat[lawful]])
    row, col, size = np.concatenate(rows), np.concatenate(cols), np.concatenate(sizes)
    # a pair stays if it is among the MOST * k best of its row or of its column
    keep = among_largest(row, size, MOST * k) | among_largest(col, size, MOST * k)
    keys = np.unique(row[keep] * width + col[keep])
    return np.column_stack(np.divmod(keys, width))


def _thresholds(
    priced: Priced, shape: tuple[int, int], k: int, rng: np.random.Generator, by_row: bool
) -> NDArray[np.float32]:
    """For each line a value which about k of its pairs exceed."""
    length, other = shape if by_row else shape[::-1]
    # Short runs of neighbours at random places: blocks as they are, and a fair sample even where neighbours are alike.
    run = max(1, SAMPLE // RUNS)
    starts = np.sort(rng.choice(other // run, size=RUNS, replace=False)) * run
    place = max(1, round(k * run * RUNS / other))
    out = np.empty(length, dtype=np.float32)
    part = np.empty((LINES, run * RUNS), dtype=np.float32)
    for first in range(0, length, LINES):
        lines = slice(first, min(first + LINES, length))
        some = part[: lines.stop - first]
        for at, start in enumerate(starts.tolist()):
            sample = slice(start, start + run)
            block = priced.block(lines, sample) if by_row else priced.block(sample, lines).T
            some[:, at * run : (at + 1) * run] = block
        out[lines] = np.partition(some, run * RUNS - place, axis=1)[:, run * RUNS - place]
    return out
