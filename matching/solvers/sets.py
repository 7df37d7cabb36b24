"""Plans and bounds from whole sets of people: a master program over sets, priced by the best set of each submission.

A plan chooses one set for each submission. Shares of sets, with the loads kept, are the convex hull of what the
submissions can have one by one; their best value is at least that of every plan and often a good deal below that of
shares of people. The duals of the loads price further sets (column generation, Dantzig and Wolfe, 1960), and
`matching.constraints.whole` turns them into the bound. An earlier total or shortfall to a threshold is a row of the
program, whose dual is its multiplier; earlier floors leave sets out. Choosing whole sets among those met gives plans
that exchanges of one review at a time do not reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import optimize, sparse

from matching.constraints.grid import grid_of
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import WholeSets, whole_sets
from matching.constraints.worth import Worth, worth_of
from matching.objectives import Measure, Shortfall, Total, Welfare
from matching.solvers.clock import Clock, slack_of
from matching.solvers.setbook import SetBook
from matching.solvers.stages import Constraints
from matching.solvers.tangents import Tangents
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
    """A bound over whole sets with the numbers that prove it; `k` is the multiplier of the earlier wish, if any."""

    bound: float
    weights: FloatArray
    u: FloatArray
    w: FloatArray
    k: float = 0.0


@dataclass(frozen=True, eq=False)
class _Program:
    """Known sets near the best: their places, worth, loads, one a row, and how many rows; what the row earns."""

    keep: IntArray
    cost: FloatArray
    loads: sparse.csr_array
    of_line: sparse.csr_array
    lines: int
    earned: FloatArray | None


class SetMaster:
    """The sets met so far and the best prices for them.

    Parameters
    ----------
    problem : AssignmentProblem
        Without rules.
    measure : Measure
        Welfare, or what `matching.constraints.worth.worth_of` takes.
    clock : Clock
    constraints : Constraints
        Of those one total or shortfall may bind; further ones are left out.
    """

    def __init__(
        self, problem: AssignmentProblem, measure: Measure, clock: Clock, constraints: Constraints = ()
    ) -> None:
        self.problem, self.measure, self.clock, self.constraints = problem, measure, clock, constraints
        self.book = SetBook(problem)
        rows = [at for at, (earlier, _) in enumerate(constraints) if isinstance(earlier, Total | Shortfall)]
        self.row = rows[0] if rows else -1  # the constraint that is a row of the program
        self.grid = grid_of(problem)
        found = worth_of(problem, measure, constraints, self.multipliers(0.0), grid=self.grid)
        if found is None:
            raise ValueError("the measure with these constraints has no worth of sets")
        self.plain = found[0]  # what sets are worth by themselves

    @cached_property
    def tangents(self) -> Tangents:
        return Tangents(self.problem)

    def multipliers(self, k: float) -> list[float]:
        """One for each constraint."""
        return [k if at == self.row else 0.0 for at in range(len(self.constraints))]

    def look(self, weights: FloatArray, w: FloatArray, k: float) -> tuple[WholeSets, Priced]:
        """The best set for each at these prices, and the bound that makes."""
        found = worth_of(self.problem, self.measure, self.constraints, self.multipliers(k), grid=self.grid)
        assert found is not None
        worth, charge = found
        if isinstance(worth, Worth):
            weights = self.tangents.best(worth, w)
        sets = whole_sets(self.problem, worth, weights, w)
        self.book.add([(row, people) for row, people in enumerate(sets.sets) if people.size])
        return sets, Priced(sets.bound + charge, weights, sets.last, w, k)

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
        found, priced = self.look(start.weights, start.w, start.k)
        at = priced
        if priced.bound < best.bound:
            best = priced if isinstance(self.plain, Worth) else replace(priced, u=start.u)
        idle = 0
        for _ in range(rounds):
            gap = best.bound - value
            if self.clock.over or gap <= enough:
                break
            # floors and multipliers make prices jump further: then the plan's own sets lose more than the gap
            wide = gap if isinstance(self.plain, Welfare) else max(gap, at.bound - value)
            answer = self._shares(found, at, wide)
            if answer is None:
                break
            inside, weights, w, k = answer
            # between the best prices and the master's, which jump about at first (Wentges, 1997)
            reached = best.bound
            for step in (0.5, 1.0):
                known = len(self.book)
                found, at = self.look(weights, best.w + step * (w - best.w), best.k + step * (k - best.k))
                fresh = len(self.book) > known
                if at.bound < best.bound:
                    best = at
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
        found, at = self.look(prices.weights, prices.w, prices.k)
        program = self._program(found, at, prices.bound - value)
        if program is None:
            return None
        limits = {"node_limit": NODES, **({} if self.clock.left is None else {"time_limit": self.clock.left})}
        constraints = [
            optimize.LinearConstraint(program.loads, self.book.low, self.book.high),
            optimize.LinearConstraint(program.of_line, 1.0, 1.0),
        ]
        if program.earned is not None:
            constraints.append(optimize.LinearConstraint(program.earned[None, :], self._least, np.inf))
        answer = optimize.milp(
            -program.cost, constraints=constraints, integrality=np.ones(program.keep.size),
            bounds=optimize.Bounds(0.0, 1.0), options={**limits, "mip_rel_gap": 1e-6},
        )  # fmt: skip
        if answer.x is None:
            return None
        chosen = program.keep[answer.x > 0.5]
        return self.book.pairs(chosen) if chosen.size == program.lines else None

    @property
    def _least(self) -> float:
        """What the row of the program asks of the submissions with sets."""
        least = self.constraints[self.row][1]
        alone = np.ones(self.problem.shape[0], dtype=bool)
        alone[self.book.rows] = False
        return least - slack_of(least) - float(self._earned(self.book.base[alone], np.flatnonzero(alone)).sum())

    def _earned(self, sums: FloatArray, rows: IntArray) -> FloatArray:
        """What sums of these submissions add to the earlier wish."""
        measure = self.constraints[self.row][0]
        if isinstance(measure, Shortfall):
            return np.where(measure.among[rows], np.minimum(sums, measure.t), 0.0)
        return sums

    def _shares(self, found: WholeSets, at: Priced, gap: float) -> tuple[float, FloatArray, FloatArray, float] | None:
        """Best shares of the known sets: a value no bound of theirs is below, tangents there, prices of the loads and
        of the earlier wish."""
        program = self._program(found, at, REACH * gap)
        if program is None:
            return None
        cost, loads, keep = program.cost, program.loads, program.keep
        scale = max(float(np.abs(cost).max(initial=0.0)), 1e-300)
        lines, room = [loads, -loads], [self.book.high, -self.book.low]
        if program.earned is not None:
            lines.append(sparse.csr_array(-program.earned[None, :]))
            room.append(np.array([-self._least]))
        answer = optimize.linprog(
            -cost / scale, A_ub=sparse.vstack(lines), b_ub=np.concatenate(room), A_eq=program.of_line,
            b_eq=np.ones(program.lines), bounds=(0.0, None), method="highs-ds",
        )  # fmt: skip
        if answer.status != 0:
            return None
        price = -np.asarray(answer.ineqlin.marginals) * scale
        half = self.problem.shape[1]
        k = max(0.0, float(price[2 * half])) if program.earned is not None else 0.0
        of_set = self.book.rows[keep]
        whole = np.bincount(of_set, weights=answer.x, minlength=self.problem.shape[0])
        alone = np.flatnonzero(self.plain.among & (whole <= 0.5))
        value = float(answer.x @ cost) + float(self._worth(self.book.base[alone], alone).sum())
        weights = at.weights
        if isinstance(self.plain, Welfare):
            sums = np.bincount(of_set, weights=answer.x * self.book.sums[keep], minlength=self.problem.shape[0])
            weights = self.plain.weights(np.where(whole > 0.5, sums, self.book.base).astype(np.float64))
        return value, weights, price[:half] - price[half : 2 * half], k

    def _worth(self, sums: FloatArray, rows: IntArray) -> FloatArray:
        """phi of these sums of these submissions; 0 for submissions set aside."""
        out = np.zeros(sums.size)
        inside = self.plain.among[rows]
        if isinstance(self.plain, Worth):
            out[inside] = self.plain.parts(sums[inside], rows[inside])
        else:
            out[inside] = self.plain.parts(sums[inside])
        return out

    def _program(self, found: WholeSets, at: Priced, gap: float) -> _Program | None:
        """Known sets within `gap` of the best one at these prices."""
        rows, sums, members = self.book.rows, self.book.sums, self.book.members()
        worth = self._worth(sums, rows)
        earned = None if self.row < 0 else self._earned(sums, rows)
        priced = worth if earned is None else worth + at.k * earned
        lost = np.where(np.isfinite(worth), found.each[rows] - (priced - members @ at.w), np.inf)
        keep = np.flatnonzero(lost <= gap + 1e-9 * np.abs(found.each[rows]))
        if keep.size > MOST_SETS:
            keep = np.sort(keep[np.argsort(lost[keep], kind="stable")[:MOST_SETS]])
        lines = np.unique(rows[keep])
        if lines.size < np.unique(rows).size:
            return None
        places = (np.searchsorted(lines, rows[keep]), np.arange(keep.size))
        of_line = sparse.csr_array((np.ones(keep.size), places), shape=(lines.size, keep.size))
        return _Program(
            keep, worth[keep], sparse.csr_array(members[keep].T), of_line, int(lines.size),
            None if earned is None else earned[keep],
        )  # fmt: skip
