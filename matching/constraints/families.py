"""Group bounds that keep the structure of a network: classes of people for each submission, of submissions for each
person.

A node between a line and its pairs counts those of one class. Nodes of a line can stand side by side or one behind
the other, so any two classes counted on the same line must be disjoint or nested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from matching.constraints.bounds import Bound, GroupBound
from matching.types import FloatArray, IntArray

__all__ = ["Family", "families_of", "lower_cells"]

CELLS = 1 << 21  # bounds looked at together
LOWER_CELLS = 32  # times as many lower bounds above 0 as there are lines are no matter of a network any more
OVERLAPS = 1 << 26  # products for telling which classes meet; beyond that there is no telling them apart in time


@dataclass(frozen=True, eq=False)
class Family:
    """The rules that count the pairs of single lines of one side, by classes of the other side.

    Attributes
    ----------
    axis : int
        0: lines are submissions and classes hold reviewers; 1: the other way round.
    members : scipy.sparse.csr_array of shape (n_classes, n_others)
        1 for each member. Smaller classes come first. Classes of hard rules differ; each priced rule has its own.
    within : scipy.sparse.csr_array of shape (n_classes, n_classes)
        1 where the class of the row lies within that of the column, or is the same set and comes first.
    places : tuple of int
        Which of the problem's rules these are.
    rules : tuple of GroupBound
    lines, classes : tuple of ndarray, int64
        For each rule the line and the class that its classes of this side and of the other side stand for.
    """

    axis: int
    members: sparse.csr_array
    within: sparse.csr_array
    places: tuple[int, ...]
    rules: tuple[GroupBound, ...]
    lines: tuple[IntArray, ...]
    classes: tuple[IntArray, ...]

    @property
    def n_classes(self) -> int:
        return int(self.members.shape[0])

    def cell(self, which: int, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
        """Line and class of the bounds (a[i], b[i]) of a rule."""
        mine, other = (a, b) if self.axis == 0 else (b, a)
        return self.lines[which][mine], self.classes[which][other]


def families_of(rules: Sequence[Bound]) -> tuple[Family, Family] | None:
    """All rules of a problem as families of submissions and of reviewers; None where some rule is none.

    Weights, bounds that are no whole numbers, classes of both sides that hold several lines and classes
    that overlap on a line are none.
    """
    sides: tuple[list[int], list[int]] = ([], [])
    for place, rule in enumerate(rules):
        axis = _axis(rule)
        if axis is None:
            return None
        sides[axis].append(place)
    first, second = (_family(rules, axis, places) for axis, places in enumerate(sides))
    return None if first is None or second is None else (first, second)


def lower_cells(rule: GroupBound) -> tuple[IntArray, IntArray, FloatArray]:
    """(a, b, lower) of the lower bounds above 0, each of shape (n,)."""
    found = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))]
    if _entries(rule.lower).max(initial=0.0) > 0:
        step = max(1, CELLS // max(1, rule.shape[1]))
        for top in range(0, rule.shape[0], step):
            part = rule.lower[top : top + step]
            a, b = np.nonzero(part)
            found.append((a.astype(np.int64) + top, b.astype(np.int64), np.asarray(part[a, b], dtype=np.float64)))
    a, b, lower = (np.concatenate([part[at] for part in found]) for at in range(3))
    return a, b, lower


def _axis(rule: Bound) -> int | None:
    """The side whose single lines a rule counts."""
    if not isinstance(rule, GroupBound):
        return None
    if (rule.submissions.data != 1.0).any() or (rule.reviewers.data != 1.0).any():
        return None
    lower, upper = _entries(rule.lower), _entries(rule.upper)
    if (lower != np.floor(lower)).any() or (upper != np.floor(upper)).any():
        return None
    if np.count_nonzero(lower) * (rule.lower.size // max(1, lower.size)) > LOWER_CELLS * sum(rule.shape):
        return None
    for axis, side in enumerate((rule.submissions, rule.reviewers)):
        if (np.diff(side.indptr) == 1).all():
            return axis
    return None


def _entries(view: FloatArray) -> FloatArray:
    """The different entries of a broadcast view."""
    return view[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in view.strides)]


def _family(every: Sequence[Bound], axis: int, places: Sequence[int]) -> Family | None:
    rules = [rule for place in places if isinstance(rule := every[place], GroupBound)]
    lines, classes, n_others = [], [], 0
    known: dict[tuple[bytes, int], int] = {}
    sets: list[IntArray] = []
    for place, rule in zip(places, rules, strict=True):
        mine, other = (rule.submissions, rule.reviewers) if axis == 0 else (rule.reviewers, rule.submissions)
        lines.append(mine.indices.astype(np.int64))
        n_others = other.shape[1]
        number = np.empty(other.shape[0], dtype=np.int64)
        for at in range(other.shape[0]):
            held = np.sort(other.indices[other.indptr[at] : other.indptr[at + 1]]).astype(np.int64)
            # each priced rule counts and pays for itself, so it has nodes of its own
            number[at] = known.setdefault((held.tobytes(), -1 if rule.price is None else place), len(sets))
            if number[at] == len(sets):
                sets.append(held)
        if rule.price is not None and (_repeats(lines[-1]) or _repeats(number)):
            return None
        classes.append(number)
    order = np.argsort([held.size for held in sets], kind="stable")
    rank = np.empty(len(sets), dtype=np.int64)
    rank[order] = np.arange(len(sets))
    size = np.array([sets[at].size for at in order], dtype=np.int64)
    indices = np.concatenate([sets[at] for at in order]) if len(sets) else np.empty(0, dtype=np.int64)
    members = sparse.csr_array(
        (np.ones(indices.size), indices, np.concatenate([[0], np.cumsum(size)])),
        shape=(len(sets), n_others),
    )
    classes = [rank[number] for number in classes]
    within = _within(members, size, lines, classes)
    if within is None:
        return None
    return Family(axis, members, within, tuple(places), tuple(rules), tuple(lines), tuple(classes))


def _repeats(numbers: IntArray) -> bool:
    return np.unique(numbers).size < numbers.size


def _within(
    members: sparse.csr_array, size: IntArray, lines: Sequence[IntArray], classes: Sequence[IntArray]
) -> sparse.csr_array | None:
    """`Family.within`; None where classes overlap that some line counts both."""
    each = np.bincount(members.indices, minlength=members.shape[1]).astype(np.float64)
    if float((each**2).sum()) > OVERLAPS:
        return None
    both = sparse.coo_array(members @ members.T)
    (i, j), common = both.coords, both.data
    crossing = (common < size[i]) & (common < size[j]) & (i < j)
    user: list[list[int]] = [[] for _ in range(size.size)]
    for which, number in enumerate(classes):
        for at in np.unique(number).tolist():
            user[at].append(which)
    met = {
        (first, second)
        for one, other in zip(i[crossing].tolist(), j[crossing].tolist(), strict=True)
        for first in user[one]
        for second in user[other]
    }
    if any(first == second or np.intersect1d(lines[first], lines[second]).size for first, second in met):
        return None
    inside = (common == size[i]) & (i < j)
    within = sparse.csr_array((np.ones(int(inside.sum())), (i[inside], j[inside])), shape=both.shape)
    within.sort_indices()
    return within
