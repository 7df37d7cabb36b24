"""Whether every submission can reach its floor with whole people: a plan that does, or prices that rule it out.

Each submission takes shares of the sets that reach its floor, and loads may be exceeded at a price of 1 a review. The
duals of the loads price further sets (column generation, as in `matching.solvers.sets`). As soon as the cheapest sets
cost more than all loads pay, nobody can have them together; where the loads are kept by shares of sets, a choice of
one set each is looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import whole_sets
from matching.constraints.worth import Worth
from matching.solvers.clock import Clock
from matching.solvers.setbook import SetBook
from matching.solvers.tangents import Tangents
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Reach", "SetReach"]

ROUNDS = 60
NODES = 50  # of the choice of one set each
NOTHING = 1e-7  # excess, in reviews, that counts as none
RULED_OUT = 1e-6  # excess, in reviews, that counts as proven


@dataclass(frozen=True, eq=False)
class Reach:
    """What was found about floors for all.

    Attributes
    ----------
    weights, w : ndarray or None
        Slopes and reviewer prices that rule it out.
    pairs : ndarray of shape (n, 2) or None
        A plan that reaches it, locked pairs left out.
    shares : bool
        Whether shares of sets reach it.
    """

    weights: FloatArray | None = None
    w: FloatArray | None = None
    pairs: PairArray | None = None
    shares: bool = False


class SetReach:
    """Sets kept from one question to the next.

    Parameters
    ----------
    problem : AssignmentProblem
        Without rules, small enough for a matrix of its scores.
    clock : Clock
    """

    def __init__(self, problem: AssignmentProblem, clock: Clock) -> None:
        self.problem, self.clock = problem, clock
        self.book, self.tangents = SetBook(problem), Tangents(problem)
        self.until = math.inf  # seconds of the clock at which a question stays open

    def ask(
        self, worth: Worth, w: FloatArray, tell: Callable[[], None], choose: bool = True, rounds: int = ROUNDS
    ) -> Reach:
        """Whether all floors of a worth of 0 can be reached.

        Parameters
        ----------
        worth : Worth
            With slope and extra 0.
        w : ndarray of shape (n_reviewers,), float64
            First prices; any.
        tell : callable
            Called after each round.
        choose : bool
            Whether a plan is looked for where shares of sets reach the floors.
        rounds : int
            At most.
        """
        best, best_w = -np.inf, w / max(1.0, float(np.abs(w).max(initial=0.0)))
        point, fresh = best_w, 1
        for _ in range(rounds):
            if self.clock.over or self.clock.seconds > self.until:
                return Reach()
            weights = self.tangents.best(worth, point)
            found = whole_sets(self.problem, worth, weights, point)
            if found.bound < -RULED_OUT:
                return Reach(weights, point)
            if -found.bound > best:
                best, best_w = -found.bound, point
            fresh = self.book.add([(row, people) for row, people in enumerate(found.sets) if people.size])
            tell()
            answer = self._shares(worth)
            if answer is None:
                return Reach()
            excess, prices = answer
            if excess <= NOTHING:
                return Reach(pairs=self._choice(worth) if choose else None, shares=True)
            middle = 0.5 * (best_w + prices)
            if not fresh and np.array_equal(point, prices):
                break  # the searches end before the best sets
            point = prices if not fresh else middle
        return Reach()

    def _program(self, worth: Worth) -> tuple[sparse.csr_array, sparse.csr_array, IntArray, int] | None:
        rows, sums = self.book.rows, self.book.sums
        keep = np.flatnonzero(np.isfinite(worth.parts(sums, rows)))
        lines = np.unique(rows[keep])
        if lines.size < np.unique(rows).size:
            return None
        loads = sparse.csr_array(self.book.members()[keep].T)
        places = (np.searchsorted(lines, rows[keep]), np.arange(keep.size))
        of_line = sparse.csr_array((np.ones(keep.size), places), shape=(lines.size, keep.size))
        return loads, of_line, keep, lines.size

    def _shares(self, worth: Worth) -> tuple[float, FloatArray] | None:
        """Least excess of loads over shares of known sets, and the prices of loads."""
        program = self._program(worth)
        if program is None:
            return None
        loads, of_line, keep, lines = program
        n_reviewers, low = self.problem.shape[1], self.book.low
        some = np.flatnonzero(low > 0)
        over = sparse.eye_array(n_reviewers, format="csr")
        under = over[some]
        nothing = sparse.csr_array((n_reviewers, some.size))
        matrix = sparse.block_array(
            [[loads, -over, nothing], [-loads[some], sparse.csr_array((some.size, n_reviewers)), -under[:, some]]],
            format="csr",
        ) if some.size else sparse.hstack([loads, -over], format="csr")  # fmt: skip
        room = np.concatenate([self.book.high, -low[some]])
        more = matrix.shape[1] - keep.size
        answer = optimize.linprog(
            np.concatenate([np.zeros(keep.size), np.ones(more)]), A_ub=matrix, b_ub=room,
            A_eq=sparse.hstack([of_line, sparse.csr_array((lines, more))], format="csr"), b_eq=np.ones(lines),
            bounds=(0.0, None), method="highs",
        )  # fmt: skip
        if answer.status != 0:
            return None
        price = np.clip(-np.asarray(answer.ineqlin.marginals), 0.0, 1.0)
        w = price[:n_reviewers].copy()
        w[some] -= price[n_reviewers:]
        return float(answer.fun), w

    def _choice(self, worth: Worth) -> PairArray | None:
        """One known set each with the loads kept."""
        program = self._program(worth)
        if program is None:
            return None
        loads, of_line, keep, _ = program
        left = self.until - self.clock.seconds if self.clock.left is None else min(
            self.clock.left, self.until - self.clock.seconds
        )  # fmt: skip
        limits = {"node_limit": NODES, **({"time_limit": max(left, 0.1)} if math.isfinite(left) else {})}
        answer = optimize.milp(
            np.zeros(keep.size),
            constraints=[
                optimize.LinearConstraint(loads, self.book.low, self.book.high),
                optimize.LinearConstraint(of_line, 1.0, 1.0),
            ],
            integrality=np.ones(keep.size), bounds=optimize.Bounds(0.0, 1.0), options={**limits, "mip_rel_gap": 1e-2},
        )  # fmt: skip
        return None if answer.x is None else self.book.pairs(keep[answer.x > 0.5])
