"""Pairs that rules bar, kept as classes of submissions against lists of reviewers, with the reason for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy import sparse

from matching.constraints.bounds import NO_UPPER, GroupBound
from matching.constraints.conflicts import ConflictReason
from matching.pairs import PairSet
from matching.types import FloatArray, IntArray

__all__ = ["MOST_BARRED", "Bars", "ClassBar", "own_class_bounds", "singles"]

MOST_BARRED = 1 << 27  # pairs a rule lists one by one (half a gigabyte); beyond it bars by classes
CHUNK = 128  # classes in one bound: its limits are a table of lines x classes
SOURCE = "rules"


@dataclass(frozen=True, eq=False)
class ClassBar:
    """One rule's bars: for every class of submissions the reviewers it is barred from.

    Attributes
    ----------
    name : str
        Of the rule.
    of_row : ndarray of shape (n_submissions,), int64
        Class of each submission, -1 for none.
    barred : scipy.sparse.csr_array of shape (n_classes, n_reviewers), bool
    words : callable
        Row and column of a barred pair -> one sentence.
    """

    name: str
    of_row: IntArray
    barred: sparse.csr_array
    words: Callable[[int, int], str]

    @property
    def count(self) -> int:
        """Pairs barred."""
        sizes = np.bincount(self.of_row[self.of_row >= 0], minlength=self.barred.shape[0])
        return int(sizes @ np.diff(self.barred.indptr))

    def table(self) -> sparse.csr_array:
        """All pairs, bool of shape (n_submissions, n_reviewers)."""
        shape = (self.of_row.size, self.barred.shape[1])
        rows = np.flatnonzero(self.of_row >= 0)
        held = sparse.csr_array(self.barred[self.of_row[rows]])
        indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        indptr[rows + 1] = np.diff(held.indptr)
        return sparse.csr_array((held.data, held.indices, np.cumsum(indptr)), shape=shape)

    def has(self, row: int, col: int) -> bool:
        """Whether a pair is barred."""
        kind = int(self.of_row[row])
        return kind >= 0 and bool(self.barred[kind, col])

    def by_class(self) -> GroupBound:
        """The same as one bound over classes, for bars too many to list: no pair of a class and a reviewer of it."""
        rows = np.flatnonzero(self.of_row >= 0)
        n_classes = self.barred.shape[0]
        classes = sparse.coo_array((np.ones(rows.size), (self.of_row[rows], rows)), (n_classes, self.of_row.size))
        upper = np.where(np.eye(n_classes, dtype=bool), 0.0, float(NO_UPPER))
        return GroupBound.of(self.name, sparse.csr_array(classes), self.barred.astype(np.float64), upper=upper)

    def priced(self, price: float, ids: Sequence[str]) -> list[GroupBound]:
        """The same as soft bounds, one count for each submission."""
        rows = np.flatnonzero(self.of_row >= 0)
        words = [f"barred by {self.name}"] * self.barred.shape[0]
        return own_class_bounds(
            self.name, rows, self.of_row[rows], self.barred, np.zeros(rows.size), np.zeros(rows.size), price, ids, words
        )


class Bars:
    """All bars of a list of rules.

    Parameters
    ----------
    shape : tuple of int
    bars : sequence of ClassBar

    Attributes
    ----------
    pairs : PairSet
    counts : mapping of str to int
        Rule -> pairs it bars.
    """

    def __init__(self, shape: tuple[int, int], bars: Sequence[ClassBar] = ()) -> None:
        self._bars = tuple(bars)
        self.counts: Mapping[str, int] = MappingProxyType({bar.name: bar.count for bar in bars})
        whole: sparse.csr_array | None = None
        for bar in self._bars:
            whole = bar.table() if whole is None else sparse.csr_array(whole + bar.table())
        self.pairs = PairSet(None, shape) if whole is None else PairSet.of_table(whole)

    def reasons(self, row: int, col: int) -> Iterator[ConflictReason]:
        """Why a pair is barred; nothing where it is not."""
        for bar in self._bars:
            if bar.has(row, col):
                yield ConflictReason(bar.name, bar.words(row, col), SOURCE)


def singles(lines: IntArray, n: int) -> sparse.csr_array:
    """One class for each line, of shape (lines.size, n)."""
    ones = np.ones(lines.size)
    return sparse.csr_array((ones, lines.astype(np.int32), np.arange(lines.size + 1)), shape=(lines.size, n))


def own_class_bounds(
    name: str,
    lines: IntArray,
    of_line: IntArray,
    classes: sparse.sparray,
    lower: FloatArray,
    upper: FloatArray,
    price: float | None,
    line_labels: Sequence[str],
    class_labels: Sequence[str],
    *,
    by_reviewer: bool = False,
) -> list[GroupBound]:
    """Bounds on what each line has of its own class: a submission of the reviewers who know its area, say.

    Parameters
    ----------
    lines : ndarray of shape (k,), int64
        Rows, or columns if `by_reviewer`.
    of_line : ndarray of shape (k,), int64
        The class of each.
    classes : scipy.sparse array of shape (n_classes, n_others)
        Members on the other side, stored where they are.
    lower, upper : ndarray of shape (k,), float64
    line_labels : sequence of str
        Of every row (column); class_labels of every class.
    """
    others = sparse.csr_array(classes)
    n_lines = len(line_labels)
    out = []
    for start in range(0, others.shape[0], CHUNK):
        mine = np.flatnonzero((of_line >= start) & (of_line < start + CHUNK))
        if not mine.size:
            continue
        stop = min(start + CHUNK, others.shape[0])
        low = np.zeros((mine.size, stop - start))
        high = np.full((mine.size, stop - start), float(NO_UPPER))
        at = (np.arange(mine.size), of_line[mine] - start)
        low[at], high[at] = lower[mine], upper[mine]
        one, many = singles(lines[mine], n_lines), others[start:stop]  # made float64 a chunk at a time
        one_labels = [line_labels[line] for line in lines[mine].tolist()]
        many_labels = class_labels[start:stop]
        if by_reviewer:
            out.append(GroupBound.of(name, many, one, lower=low.T, upper=high.T, price=price,
                                     submission_labels=many_labels, reviewer_labels=one_labels))  # fmt: skip
        else:
            out.append(GroupBound.of(name, one, many, lower=low, upper=high, price=price,
                                     submission_labels=one_labels, reviewer_labels=many_labels))  # fmt: skip
    return out
