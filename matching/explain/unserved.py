"""Minimal sets that cannot be served: submissions that want more than the people open to them can give.

A set of submissions is short where the reviews it needs exceed ``sum over people of min(load left, submissions of the
set open to them)`` (Hall, 1935, for whole loads). Here such sets are shrunk until no submission can be left out: take
one out, move the reviews of a fullest plan along alternating paths, and see whether the rest is served. A set that
is short while each of its proper subsets is served is inclusion-minimal. The same on the other side finds people
whose load minima the submissions open to them cannot fill; where neither side is short a full plan exists without
further rules (Mendelsohn and Dulmage, 1958).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.problem import AssignmentProblem
from matching.pairs import PairSet
from matching.types import IntArray, PairArray

__all__ = ["Shortage", "open_pairs", "short_minima", "short_sets"]

MOST_CELLS = 1 << 24  # entries of the tables held, 1 byte each
MOST_WORK = 1 << 29  # entries looked at before sets are handed out as they are
MOST_SETS = 10

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shortage:
    """Lines that need more than the lines across can give.

    Attributes
    ----------
    lines : ndarray of int64
        Rows (or columns, for load minima), ascending.
    others : ndarray of int64
        Lines across that can give anything, ascending.
    gives : ndarray of int64
        What each of `others` can give to `lines` together.
    needed, capacity : int
        ``needed > capacity``; what is locked is settled and counts in neither.
    minimal : bool
        Whether no proper subset of `lines` is short; False only where the work for it had no end in sight.
    """

    lines: IntArray
    others: IntArray
    gives: IntArray
    needed: int
    capacity: int
    minimal: bool


def open_pairs(problem: AssignmentProblem, rows: IntArray) -> BoolArray:
    """Who may be assigned to these submissions, beyond what is locked: bool of shape (len(rows), n_reviewers)."""
    n_reviewers = problem.shape[1]
    locked = PairSet(problem.locked, problem.shape)
    out = np.zeros((rows.size, n_reviewers), dtype=bool)
    everyone = slice(0, n_reviewers)
    for at, row in enumerate(rows.tolist()):
        line = slice(row, row + 1)
        out[at] = ~np.isnan(problem.scores.block(line, everyone)[0])
        out[at, problem.barred.row(row)] = False
        out[at, locked.row(row)] = False
    return out


def short_sets(problem: AssignmentProblem, pairs: PairArray, rows: IntArray | None = None) -> tuple[Shortage, ...]:
    """Disjoint minimal sets of submissions that cannot be served, whatever the scores, minima and rules.

    Parameters
    ----------
    pairs : ndarray of shape (n, 2), int64
        A lawful plan to start from, the fuller the quicker.
    rows : ndarray of int64, optional
        Where to look; None for all submissions.

    Returns
    -------
    tuple of Shortage
        At most 10; empty where all `rows` can be served, or where the table of them would be too large to hold.
    """
    needs = problem.demand - np.bincount(problem.locked[:, 0], minlength=problem.shape[0])
    room = problem.load_max - np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    rows = np.arange(problem.shape[0], dtype=np.int64) if rows is None else rows
    rows = rows[needs[rows] > 0]
    if not rows.size or rows.size * problem.shape[1] > MOST_CELLS:
        return ()
    return _short(open_pairs(problem, rows), needs[rows], room, rows, pairs)


def short_minima(problem: AssignmentProblem, pairs: PairArray) -> tuple[Shortage, ...]:
    """Disjoint minimal sets of people whose load_min the submissions open to them cannot fill; as `short_sets`."""
    held = np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
    needs = np.maximum(problem.load_min - held, 0)
    cols = np.flatnonzero(needs > 0)
    if not cols.size or problem.shape[0] * problem.shape[1] > MOST_CELLS:
        return ()
    room = problem.demand - np.bincount(problem.locked[:, 0], minlength=problem.shape[0])
    table = open_pairs(problem, np.arange(problem.shape[0], dtype=np.int64))
    return _short(np.ascontiguousarray(table[:, cols].T), needs[cols], room, cols, pairs[:, ::-1])


def _short(
    table: BoolArray, needs: IntArray, room: IntArray, lines: IntArray, pairs: PairArray
) -> tuple[Shortage, ...]:
    flow = _Flow(table, needs, room)
    place = np.full(int(max(lines.max(), pairs[:, 0].max(initial=0))) + 1, -1, dtype=np.int64)
    place[lines] = np.arange(lines.size)
    flow.start(place[pairs[:, 0]], pairs[:, 1])
    out: list[Shortage] = []
    while len(out) < MOST_SETS:
        flow.fill()
        lacking = np.flatnonzero(flow.lacks * flow.alive)
        if not lacking.size:
            break
        part, minimal = _shrunk(flow.part(flow.reach(int(lacking[0]))))
        mine = part.names
        gives = np.minimum(table[mine].sum(axis=0), room)
        across = np.flatnonzero(gives > 0)
        out.append(Shortage(lines[mine], across, gives[across], int(needs[mine].sum()), int(gives.sum()), minimal))
        flow.work += part.work
        flow.drop(mine)
        if not minimal:
            break
    return tuple(out)


class _Flow:
    """Reviews given to lines, moved along alternating paths. Lines are numbered from 0, `names` says what they are."""

    def __init__(self, table: BoolArray, needs: IntArray, room: IntArray, names: IntArray | None = None) -> None:
        self.table = table
        self.room = room
        self.names = np.arange(len(needs), dtype=np.int64) if names is None else names
        self.lacks = needs.astype(np.int64)
        self.left = room.astype(np.int64)
        self.holds = np.zeros_like(table)
        self.alive = np.ones(len(needs), dtype=bool)
        self.work = 0

    def start(self, lines: IntArray, across: IntArray) -> None:
        """Take over pairs as far as they lie within the table and are needed."""
        keep = lines >= 0
        lines, across = lines[keep], across[keep]
        keep = self.table[lines, across]
        lines, across = lines[keep], across[keep]
        order = np.argsort(lines, kind="stable")
        lines, across = lines[order], across[order]
        keep = np.arange(lines.size) - np.searchsorted(lines, lines) < self.lacks[lines]
        lines, across = lines[keep], across[keep]
        self.holds[lines, across] = True
        self.lacks -= np.bincount(lines, minlength=len(self.lacks))
        self.left -= np.bincount(across, minlength=len(self.left))

    def fill(self) -> None:
        """Give all that can be given; what a line then lacks nobody can give beside the others."""
        for line in np.flatnonzero((self.lacks > 0) & self.alive).tolist():
            while self.lacks[line] > 0 and self._give(line):
                pass

    def reach(self, line: int) -> IntArray:
        """Lines from which a review could be taken for `line`, with itself; ascending."""
        return np.flatnonzero(self._search(line)[0])

    def drop(self, lines: IntArray) -> None:
        """Leave lines out and free what they hold."""
        self.left += self.holds[lines].sum(axis=0)
        self.holds[lines] = False
        self.alive[lines] = False

    def needs_of(self, names: IntArray) -> IntArray:
        """What lines need, 0 for those that are not here."""
        need = self.lacks + self.holds.sum(axis=1)
        at = np.minimum(np.searchsorted(self.names, names), len(self.names) - 1)
        return np.where(self.names[at] == names, need[at], 0)

    def part(self, lines: IntArray) -> _Flow:
        """These lines alone, with what they hold."""
        out = _Flow(self.table[lines], self.lacks[lines], self.room, self.names[lines])
        out.holds = self.holds[lines].copy()
        out.left = self.room - out.holds.sum(axis=0)
        out.work = self.work
        return out

    def _give(self, line: int) -> bool:
        """One more review for `line`, if any path has it."""
        _, reached_by, came_for, end = self._search(line)
        if end < 0:
            return False
        self.left[end] -= 1
        self.lacks[line] -= 1
        while True:
            taker = int(reached_by[end])
            self.holds[taker, end] = True
            if taker == line:
                return True
            end = int(came_for[taker])  # the taker gives this one up for the line before it
            self.holds[taker, end] = False

    def _search(self, line: int) -> tuple[BoolArray, IntArray, IntArray, int]:
        """Breadth first from a line: lines seen, who wants each line across, what each line would give up, and an end.

        The end is a line across with room left, -1 where none is reached.
        """
        seen = ~self.alive
        known = np.zeros(len(self.left), dtype=bool)
        reached_by = np.full(len(self.left), -1, dtype=np.int64)
        came_for = np.full(len(self.lacks), -1, dtype=np.int64)
        queue = [line]
        seen[line] = True
        for at in queue:
            if known.all():
                break  # whoever could give anything up has been found
            fresh = np.flatnonzero(self.table[at] & ~self.holds[at] & ~known)
            self.work += len(self.left) + fresh.size * len(self.lacks)
            if not fresh.size:
                continue
            known[fresh] = True
            reached_by[fresh] = at
            free = fresh[self.left[fresh] > 0]
            if free.size:
                return seen & self.alive, reached_by, came_for, int(free[0])
            givers = self.holds[:, fresh]
            found = np.flatnonzero(givers.any(axis=1) & ~seen)
            came_for[found] = fresh[givers[found].argmax(axis=1)]
            seen[found] = True
            queue += found.tolist()
        return seen & self.alive, reached_by, came_for, -1


def _shrunk(flow: _Flow) -> tuple[_Flow, bool]:
    """The lines of a short set without those that can be left out; whether that came to an end."""
    # those with the widest choice are tried first: what is left is then the tightest set, which explains most
    order = flow.names[np.lexsort((flow.names, -flow.table.sum(axis=1)))]
    tried = 0
    while tried < len(order) and flow.lacks.sum() > 1:
        if flow.work > MOST_WORK:
            return flow, False
        # without some of them at most what these need stops lacking: as many as that leaves one review go at once
        spare = int(flow.lacks.sum()) - 1
        stop = tried + max(1, int(np.searchsorted(np.cumsum(flow.needs_of(order[tried:])), spare, side="right")))
        rest = flow.part(np.flatnonzero(~np.isin(flow.names, order[tried:stop])))
        tried = stop
        rest.fill()
        flow.work = rest.work
        lacking = np.flatnonzero(rest.lacks)
        if lacking.size:
            flow = rest.part(rest.reach(int(lacking[0])))
    # where all short sets lack one review, the one reached from a line that lacks it is within each of them
    return flow, True
