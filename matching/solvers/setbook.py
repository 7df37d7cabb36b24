"""The sets of people met so far, each once, with their sums: the columns of programs over whole sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["SetBook"]


class SetBook:
    """Sets of people for single submissions, locked people left out.

    Parameters
    ----------
    problem : AssignmentProblem
        Without rules.
    """

    def __init__(self, problem: AssignmentProblem) -> None:
        self.problem = problem
        held = np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
        self.low = np.maximum(problem.load_min - held, 0).astype(np.float64)
        self.high = (problem.load_max - held).astype(np.float64)
        score = np.nan_to_num(problem.scores.values(problem.locked[:, 0], problem.locked[:, 1]))
        self.base = np.bincount(problem.locked[:, 0], weights=score, minlength=problem.shape[0]).astype(np.float64)
        self._known: set[tuple[int, bytes]] = set()
        self._rows: list[int] = []
        self._people: list[IntArray] = []
        self._sums: list[float] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, sets: Sequence[tuple[int, IntArray]]) -> int:
        """Take in sets, each once; how many were new."""
        fresh = []
        for row, people in sets:
            ordered = np.sort(people)
            key = (row, ordered.tobytes())
            if key not in self._known:
                self._known.add(key)
                fresh.append((row, ordered))
        if fresh:
            length = [people.size for _, people in fresh]
            rows = np.repeat([row for row, _ in fresh], length)
            score = self.problem.scores.values(rows, np.concatenate([people for _, people in fresh]))
            ends = np.concatenate([[0], np.cumsum(length)])
            total = np.concatenate([[0.0], np.cumsum(score)])
            for at, (row, people) in enumerate(fresh):
                self._rows.append(row)
                self._people.append(people)
                self._sums.append(float(self.base[row] + total[ends[at + 1]] - total[ends[at]]))
        return len(fresh)

    def add_plan(self, pairs: PairArray) -> int:
        """Take in the sets of a plan, locked pairs left out."""
        order = np.argsort(pairs[:, 0], kind="stable")
        lines, first = np.unique(pairs[order, 0], return_index=True)
        return self.add(list(zip(lines.tolist(), np.split(pairs[order, 1], first[1:]), strict=True)))

    @property
    def rows(self) -> IntArray:
        """The submission of each set."""
        return np.asarray(self._rows, dtype=np.int64)

    @property
    def sums(self) -> FloatArray:
        """The sum each set gives its submission, locked people included."""
        return np.asarray(self._sums, dtype=np.float64)

    def members(self) -> sparse.csr_array:
        """Shape (n_sets, n_reviewers): 1 where the person belongs to the set."""
        sizes = [people.size for people in self._people]
        people = np.concatenate(self._people) if self._people else np.empty(0, dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return sparse.csr_array((np.ones(people.size), people, ends), shape=(len(sizes), self.problem.shape[1]))

    def pairs(self, chosen: IntArray) -> PairArray:
        """The pairs of these sets."""
        return np.concatenate(
            [np.column_stack([np.full(self._people[at].size, self._rows[at]), self._people[at]]) for at in chosen]
        ).astype(np.int64)
