"""Plans and bounds from whole sets of people: a master program over sets, priced by the best set of each submission.

A plan chooses one set for each submission. Shares of sets, with the loads kept, are the convex hull of what the
submissions can have one by one; their best value is at least that of every plan and often a good deal below that of
shares of people. The duals of the loads price further sets (column generation, Dantzig and Wolfe, 1960), and
`matching.constraints.whole` turns them into the bound. Choosing whole sets among those met gives plans that exchanges
of one review at a time do not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import TotalAbove, WholeSets, whole_sets
from matching.objectives import Welfare
from matching.solvers.oracle import Clock
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Priced", "SetMaster"]

ROUNDS = 25
IDLE = 8  # rounds without a better bound after which the pricing ends
CLOSE = 0.03  # of the distance between plan and bound: below it another round is not worth its time
REACH = 4.0  # sets that lose up to this many times that distance take part in the master program
NODES = 300  # of the search for whole sets: a count, not a time, so that the answer does not depend on the machine
MOST_SETS = 20_000  # in the search for whole sets, the ones that promise most


@dataclass(frozen=True, eq=False)
class Priced:
    """A bound over whole sets with the numbers that prove it."""

    bound: float
    weights: FloatArray
    u: FloatArray
    w: FloatArray


class SetMaster:
    """The sets met so far and the best prices for them.

    Parameters
    ----------
    problem : AssignmentProblem
        Without rules.
    welfare : Welfare or TotalAbove
    clock : Clock
    """

    def __init__(self, problem: AssignmentProblem, welfare: Welfare | TotalAbove, clock: Clock) -> None:
        self.problem, self.welfare, self.clock = problem, welfare, clock
        self.held = np.bincount(problem.locked[:, 1], minlength=problem.shape[1])
        score = np.nan_to_num(problem.scores.values(problem.locked[:, 0], problem.locked[:, 1]))
        self.base = np.bincount(problem.locked[:, 0], weights=score, minlength=problem.shape[0]).astype(np.float64)
        self.known: dict[tuple[int, bytes], int] = {}
        self.rows: list[int] = []
        self.people: list[IntArray] = []
        self.sums: list[float] = []

    def add(self, sets: Sequence[tuple[int, IntArray]]) -> int:
        """Take in sets, each once; how many were new."""
        fresh = []
        for row, people in sets:
            ordered = np.sort(people)
            key = (row, ordered.tobytes())
            if key not in self.known:
                self.known[key] = len(self.known)
                fresh.append((row, ordered))
        if fresh:
            length = [people.size for _, people in fresh]
            rows = np.repeat([row for row, _ in fresh], length)
            score = self.problem.scores.values(rows, np.concatenate([people for _, people in fresh]))
            ends = np.concatenate([[0], np.cumsum(length)])
            total = np.concatenate([[0.0], np.cumsum(score)])
            for at, (row, people) in enumerate(fresh):
                self.rows.append(row)
                self.people.append(people)
                self.sums.append(float(self.base[row] + total[ends[at + 1]] - total[ends[at]]))
        return len(fresh)

    def add_plan(self, pairs: PairArray) -> int:
        """Take in the sets of a plan, locked pairs left out."""
        order = np.argsort(pairs[:, 0], kind="stable")
        lines, first = np.unique(pairs[order, 0], return_index=True)
        return self.add(list(zip(lines.tolist(), np.split(pairs[order, 1], first[1:]), strict=True)))

    def price(
        self,
        start: Priced,
        value: float,
        enough: float,
        tell: Callable[[float], None],
        rounds: int = ROUNDS,
        patience: int = IDLE,
    ) -> Priced:
        """A better bound than `start`, where there is one.

        Parameters
        ----------
        start : Priced
        value : float
            Of the best plan known.
        enough : float
            Distance of value and bound at which nobody looks further.
        tell : callable
            Called with the bound after each round.
        rounds : int
            At most.
        patience : int
            Rounds without a better bound after which it ends.
        """
        best = start
        found = whole_sets(self.problem, self.welfare, start.weights, start.w)
        if found.bound < best.bound:
            best = Priced(found.bound, start.weights, start.u, start.w)
        self.add([(row, people) for row, people in enumerate(found.sets) if people.size])
        idle = 0
        for _ in range(rounds):
            gap = best.bound - value
            if self.clock.over or gap <= enough:
                break
            answer = self._shares(found, best.w, gap)
            if answer is None:
                break
            inside, weights, w = answer
            # between the best prices and the master's, which jump about at first (Wentges, 1997)
            reached = best.bound
            for step in (0.5, 1.0):
                mid = best.w + step * (w - best.w)
                found = whole_sets(self.problem, self.welfare, weights, mid)
                fresh = self.add([(row, people) for row, people in enumerate(found.sets) if people.size])
                if found.bound < best.bound:
                    best = Priced(found.bound, weights, found.last, mid)
                if fresh:
                    break
            tell(best.bound)
            idle = 0 if best.bound < reached else idle + 1
            stuck = idle >= patience or (not fresh and best.bound >= reached)
            if stuck or best.bound - max(inside, value) <= CLOSE * gap:
                break
        return best

    def plan(self, prices: Priced, value: float) -> PairArray | None:
        """The best choice of one known set a submission, if it may be better than `value`; locked pairs left out."""
        found = whole_sets(self.problem, self.welfare, prices.weights, prices.w)
        gap = prices.bound - value
        program = self._program(found, prices.w, gap)
        if program is None:
            return None
        keep, cost, loads, low, high, choice, rows = program
        limits = {"node_limit": NODES, **({} if self.clock.left is None else {"time_limit": self.clock.left})}
        constraints = [optimize.LinearConstraint(loads, low, high), optimize.LinearConstraint(choice, 1.0, 1.0)]
        answer = optimize.milp(
            -cost, constraints=constraints, integrality=np.ones(keep.size), bounds=optimize.Bounds(0.0, 1.0),
            options={**limits, "mip_rel_gap": 1e-6},
        )  # fmt: skip
        if answer.x is None:
            return None
        chosen = keep[answer.x > 0.5]
        if chosen.size != rows:
            return None
        return np.concatenate(
            [np.column_stack([np.full(self.people[at].size, self.rows[at]), self.people[at]]) for at in chosen.tolist()]
        ).astype(np.int64)

    def _shares(self, found: WholeSets, w: FloatArray, gap: float) -> tuple[float, FloatArray, FloatArray] | None:
        """Best shares of the known sets: a value no bound of theirs is below, tangents there, prices of the loads."""
        program = self._program(found, w, REACH * gap)
        if program is None:
            return None
        keep, cost, loads, low, high, choice, rows = program
        scale = max(float(np.abs(cost).max(initial=0.0)), 1e-300)
        room = np.concatenate([high, -low])
        answer = optimize.linprog(
            -cost / scale, A_ub=sparse.vstack([loads, -loads]), b_ub=room, A_eq=choice, b_eq=np.ones(rows),
            bounds=(0.0, None), method="highs-ds",
        )  # fmt: skip
        if answer.status != 0:
            return None
        price = -np.asarray(answer.ineqlin.marginals) * scale
        half = price.size // 2
        of_set = np.asarray(self.rows)[keep]
        sums = np.bincount(of_set, weights=answer.x * np.asarray(self.sums)[keep], minlength=self.problem.shape[0])
        whole = np.bincount(of_set, weights=answer.x, minlength=self.problem.shape[0])
        sums = np.where(whole > 0.5, sums, self.base).astype(np.float64)
        value = float(answer.x @ self._worth(keep))
        alone = self.welfare.among & (whole <= 0.5)
        value += float(self.welfare.parts(self.base[alone]).sum())
        return value, self.welfare.weights(sums.astype(np.float64)), price[:half] - price[half:]

    def _worth(self, keep: IntArray) -> FloatArray:
        """phi of each of these sets; 0 for submissions set aside."""
        sums, rows = np.asarray(self.sums)[keep], np.asarray(self.rows)[keep]
        out = np.zeros(keep.size)
        inside = self.welfare.among[rows]
        out[inside] = self.welfare.parts(sums[inside])
        return out

    def _program(
        self, found: WholeSets, w: FloatArray, gap: float
    ) -> tuple[IntArray, FloatArray, sparse.csr_array, FloatArray, FloatArray, sparse.csr_array, int] | None:
        """Known sets within `gap` of the best one at prices w: positions, worth, loads, their limits, one a row."""
        everything = np.arange(len(self.rows))
        rows = np.asarray(self.rows)
        members = sparse.csr_array(
            (
                np.ones(sum(people.size for people in self.people)),
                np.concatenate(self.people),
                np.concatenate([[0], np.cumsum([people.size for people in self.people])]),
            ),
            shape=(everything.size, self.problem.shape[1]),
        )
        worth = self._worth(everything)
        lost = found.each[rows] - (worth - members @ w)
        keep = np.flatnonzero(lost <= gap + 1e-9 * np.abs(found.each[rows]))
        if keep.size > MOST_SETS:
            keep = np.sort(keep[np.argsort(lost[keep], kind="stable")[:MOST_SETS]])
        lines = np.unique(rows[keep])
        if lines.size < np.unique(rows).size:
            return None
        places = (np.searchsorted(lines, rows[keep]), np.arange(keep.size))
        of_line = sparse.csr_array((np.ones(keep.size), places), shape=(lines.size, keep.size))
        low = np.maximum(self.problem.load_min - self.held, 0).astype(np.float64)
        high = (self.problem.load_max - self.held).astype(np.float64)
        return keep, worth[keep], sparse.csr_array(members[keep].T), low, high, of_line, lines.size
