"""How much of a submission's subject areas a reviewer covers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from matching.errors import InvalidScoresError
from matching.scores.base import ScoreOperator
from matching.types import FloatArray, IntArray

__all__ = ["AreaScores"]

PRIMARY = 2.0  # weight of a submission's first area
OTHER = 1.0  # weight of every further one


class AreaScores(ScoreOperator):
    """Share of a submission's areas that a reviewer knows, the first area counting double.

    ``similarity = sum of w_a over the areas a shared with the reviewer / sum of w_a over all areas of the
    submission``, with w = 2 for the submission's first area and 1 for the others. Range [0, 1], no unit: 1
    if the reviewer knows all of them, 0 if none. NaN where the submission or the reviewer states none. The
    order of a reviewer's areas does not matter.

    Parameters
    ----------
    submissions, reviewers : sequence of sequences of str
        Areas, best first. Compared trimmed, inner blanks as one, and case-folded; blank ones and repeats
        are ignored.

    Notes
    -----
    Two sparse matrices of (submissions or reviewers) x areas are held; a block is their product. The
    weights are whole numbers, so every order of summing gives the same value.
    """

    def __init__(self, submissions: Sequence[Sequence[str]], reviewers: Sequence[Sequence[str]]) -> None:
        self.shape = (len(submissions), len(reviewers))
        wanted = [_names(areas) for areas in submissions]
        offered = [_names(areas) for areas in reviewers]
        column = {name: at for at, name in enumerate(sorted({name for areas in (*wanted, *offered) for name in areas}))}
        self._wanted = _matrix(wanted, column, PRIMARY, OTHER)
        self._offered = _matrix(offered, column, 1.0, 1.0)
        self._offered_transposed = sparse.csc_array(self._offered.T)
        totals = np.asarray(self._wanted.sum(axis=1), dtype=np.float64).ravel()
        self.known_submissions = totals > 0
        self.known_reviewers = np.diff(self._offered.indptr) > 0
        self._totals = np.where(self.known_submissions, totals, np.nan)  # NaN carries "unknown" through the division

    @property
    def known(self) -> int:
        """Pairs about which the areas say something."""
        return int(self.known_submissions.sum()) * int(self.known_reviewers.sum())

    def block(self, rows: slice, cols: slice) -> FloatArray:
        out: FloatArray = (self._wanted[rows] @ self._offered_transposed[:, cols]).toarray()
        out /= self._totals[rows, None]
        out[:, ~self.known_reviewers[cols]] = np.nan
        return out

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        rows, cols = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        if not rows.size:
            return np.empty(0)
        shared = self._wanted[rows].multiply(self._offered[cols])
        out = np.asarray(shared.sum(axis=1), dtype=np.float64).ravel() / self._totals[rows]
        out[~self.known_reviewers[cols]] = np.nan
        return out


def _names(areas: Sequence[str]) -> list[str]:
    """Areas in comparable form, in order, each once."""
    if isinstance(areas, str):
        raise InvalidScoresError(f"areas must be a list of names, got the text {areas!r}")
    return list(dict.fromkeys(name for area in areas if (name := " ".join(area.split()).casefold())))


def _matrix(areas: Sequence[Sequence[str]], column: dict[str, int], first: float, other: float) -> sparse.csr_array:
    lengths = np.fromiter((len(names) for names in areas), np.int64, len(areas))
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.fromiter((column[name] for names in areas for name in names), np.int64, int(indptr[-1]))
    data = np.full(indices.size, other)
    data[indptr[:-1][lengths > 0]] = first
    matrix = sparse.csr_array((data, indices, indptr), shape=(len(areas), max(1, len(column))))
    matrix.sort_indices()
    return matrix
