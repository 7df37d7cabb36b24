"""Affinities of all pairs as they are kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from matching.scores.codes import CodeFile, decoded, encoded
from matching.types import FloatArray

__all__ = ["StoredAffinity"]


class StoredAffinity:
    """Affinities of all pairs: a float32 matrix, or codes in a file with later rows and columns in memory.

    Parameters
    ----------
    shape : tuple of int
    exact : bool
        Whether they are a matrix. It holds NaN at first; every row of a file has to be `put`.
    folder : Path or None
        See `CodeFile`.

    Attributes
    ----------
    known, total, low, high
        Number, sum, smallest and largest of the entries that `count` was shown.
    """

    def __init__(self, shape: tuple[int, int], exact: bool, folder: Path | None) -> None:
        self.shape, self.exact = shape, exact
        self.matrix: NDArray[np.float32] = np.full(shape if exact else (0, 0), np.nan, dtype=np.float32)
        self.file = None if exact else CodeFile(shape, folder)
        self.right: NDArray[np.uint16] = np.empty((shape[0], 0), dtype=np.uint16)
        self.below: NDArray[np.uint16] = np.empty((0, shape[1]), dtype=np.uint16)
        self.known, self.total, self.low, self.high = 0, 0.0, np.inf, -np.inf

    def count(self, affinity: NDArray[np.floating]) -> None:
        """Take known entries into count, sum and range."""
        known = affinity[~np.isnan(affinity)]
        if known.size:
            self.known += known.size
            self.total += float(known.sum(dtype=np.float64))
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))

    def put(self, row: int, affinity: NDArray[np.floating]) -> None:
        """One row; threads may put different rows at the same time."""
        if self.file is None:
            self.matrix[row] = affinity
        else:
            self.file.write(row, encoded(affinity))

    def discard(self) -> None:
        """Give up: a file is removed now, whoever may still hold on to this."""
        if self.file is not None:
            self.file.discard()

    def block(self, rows: slice, cols: slice) -> NDArray[np.float32]:
        """Read-only or fresh."""
        if self.file is None:
            view = self.matrix[rows, cols]
            view.setflags(write=False)
            return view
        height, width = self.file.shape
        if rows.stop <= height and cols.stop <= width:
            return decoded(self.file.codes[rows, cols])
        codes = np.empty((rows.stop - rows.start, cols.stop - cols.start), dtype=np.uint16)
        inner_rows, inner_cols = max(0, min(rows.stop, height) - rows.start), max(0, min(cols.stop, width) - cols.start)
        codes[:inner_rows, :inner_cols] = self.file.codes[rows, cols]
        codes[:inner_rows, inner_cols:] = self.right[rows, max(0, cols.start - width) : max(0, cols.stop - width)]
        codes[inner_rows:] = self.below[max(0, rows.start - height) : max(0, rows.stop - height), cols]
        return decoded(codes)

    def with_column(self, affinity: FloatArray) -> StoredAffinity:
        """Another of these with one column more; they share their file."""
        out = self._copy()
        out.count(affinity)
        if self.file is None:
            out.matrix = np.column_stack([self.matrix, affinity.astype(np.float32)])
            return out
        codes, height = encoded(affinity)[:, None], self.file.shape[0]
        out.right = np.concatenate([self.right, codes[:height]], axis=1)
        out.below = np.concatenate([self.below, codes[height:]], axis=1)
        return out

    def with_row(self, affinity: FloatArray) -> StoredAffinity:
        """Another of these with one row more; they share their file."""
        out = self._copy()
        out.count(affinity)
        if self.file is None:
            out.matrix = np.vstack([self.matrix, affinity.astype(np.float32)])
        else:
            out.below = np.concatenate([self.below, encoded(affinity)[None, :]])
        return out

    def _copy(self) -> StoredAffinity:
        out = object.__new__(StoredAffinity)
        out.__dict__.update(self.__dict__)
        return out
