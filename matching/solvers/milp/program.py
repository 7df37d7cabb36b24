"""Objectives and rules that no network holds, exact over all pairs: linear programs with pricing, integer plans.

A linear program sees the active pairs and the rows that some solution on the way broke. Its duals price all other
pairs (column generation, Dantzig and Wolfe, 1960), so its optimum is that over all pairs and all rows, and the duals,
cleaned, prove it by weak duality recomputed in floats. For a plan the integer search runs on the active pairs; pairs
whose reduced cost is larger than the distance between the plan found and the bound can be in no better plan
(reduced-cost fixing), so once all others have joined, the best plan on the active pairs is the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Measure, Total
from matching.solvers.clock import Clock
from matching.solvers.milp.answer import ArcAnswer
from matching.solvers.milp.search import Search, Tell
from matching.solvers.milp.shared import rows_of
from matching.solvers.oracle import Oracle
from matching.solvers.state import Capacity
from matching.types import IntArray, PairArray

__all__ = ["DENSE_PAIRS", "ArcProgram"]

DENSE_PAIRS = 20_000  # up to here every pair is active from the start


class ArcProgram:
    """Linear and integer programs for one problem; active pairs and broken rules are kept between calls.

    Parameters
    ----------
    problem : AssignmentProblem
        With its rules.
    candidates : int
        First candidates per submission and per reviewer, at least 1. Changes the time, not the value.
    dense_pairs : int
        Problems of at most this many pairs start with all of them.
    rng : int
    clock : Clock or None
        Where the time goes and when it ends.
    tell : callable, optional
        That of `solve` where it is given none; called also while the total without rules is found.

    Attributes
    ----------
    best : Extreme or None
        The best total without rules; None where the limit came first.
    """

    def __init__(
        self,
        problem: AssignmentProblem,
        *,
        candidates: int = 16,
        dense_pairs: int = DENSE_PAIRS,
        rng: int = 0,
        clock: Clock | None = None,
        tell: Tell | None = None,
    ) -> None:
        self.problem = problem
        self.clock = clock or Clock(None)
        self.rng = rng
        self.oracle = Oracle(problem, candidates=candidates, dense_pairs=dense_pairs, rng=rng, clock=self.clock)
        self.tell = tell
        self.best = self.oracle.best(
            tell=None
            if tell is None
            else lambda phase, _, value: tell(phase, -np.inf if value is None else value, np.inf)
        )
        locked = problem.locked
        self._held = sparse.csr_array((np.ones(len(locked)), (locked[:, 0], locked[:, 1])), shape=problem.shape)
        self._known_rows: list[IntArray] = [np.empty(0, dtype=np.int64) for _ in problem.rules]

    def solve(
        self,
        measure: Measure,
        constraints: Sequence[tuple[Measure, float]] = (),
        *,
        integral: bool,
        start: PairArray | None = None,
        gap: float | None = None,
        nodes: int | None = None,
        tell: Tell | None = None,
    ) -> ArcAnswer | None:
        """The largest ``measure(U)`` less the cost of missed priced rules, over shares or over plans.

        Parameters
        ----------
        measure : Measure
            Total, Weighted, Level, Floors, Shortfall or Welfare; the last by tangents, which is for mid sizes.
        constraints : sequence of (Measure, float)
            Earlier wishes g and c: ``g(U) >= c``.
        integral : bool
            Whether a plan is asked for; otherwise shares in [0, 1], of which each lottery over plans is one.
        start : ndarray of shape (n, 2), int64, or None
            A good plan, if one is known.
        gap : float or None
            Relative gap between plan and bound at which the integer search may stop. None: none at all on small
            programs, else `matching.solvers.milp.search.GOOD_GAP`.
        nodes : int or None
            Nodes after which an integer search stops with the best it has: an effort that is the same on every
            machine. None for no limit.
        tell : callable, optional
            Called with (phase, value, bound) between steps, phases "rules" and "rounding"; an exception it raises
            ends the search and passes through.

        Returns
        -------
        ArcAnswer or None
            None where the time limit came before any answer. Where the problem misses reviews whatever the plan,
            the best of the fullest. Where no plan keeps the constraints: an answer without pairs, `kept` False.

        Raises
        ------
        SolverError
            The solver gave no answer.
        """
        if self.best is None:
            return None
        tell = tell or self.tell
        rules = rows_of(self.problem.rules, self._held)
        search = Search(
            self.oracle.state, self.best, rules, measure, constraints, integral, start, gap, tell, self.rng, self.clock,
            lambda: self.solve(Total(), integral=True, gap=gap, nodes=nodes, tell=tell),
        )  # fmt: skip
        search.linear.model.nodes = nodes
        for rule, keys in zip(rules, self._known_rows, strict=True):
            if keys.size:
                search.linear.add_rule_rows(rule, keys)
        try:
            return search.run()
        finally:
            self._known_rows = [rule.keys for rule in rules]

    def relaxed(self, cap: Capacity, beta: float = 0.0, *, tell: Tell | None = None) -> tuple[ArcAnswer, Search] | None:
        """The largest total over shares of which none is above its cap, less the cost of missed priced rules.

        Parameters
        ----------
        cap : Capacity
            Locked pairs have share 1 whatever it says.
        beta : float
            Price of the squared shares, 0 for none. The answer's ``value`` leaves it out, its ``bound`` does not.
        tell : callable, optional
            As in `solve`.

        Returns
        -------
        (ArcAnswer, Search) or None
            None where the time limit came before any answer. The program stays as the answer left it, for whoever
            goes on with it.
        """
        if self.best is None:
            return None
        search = Search(
            self.oracle.state, self.best, rows_of(self.problem.rules, self._held), Total(), (), False, None, None,
            tell or self.tell, self.rng, self.clock, lambda: None, cap, beta,
        )  # fmt: skip
        for rule, keys in zip(search.rules, self._known_rows, strict=True):
            if keys.size:
                search.linear.add_rule_rows(rule, keys)
        answer = search.run()
        if answer is not None and answer.found and answer.proven:
            n_submissions, n_reviewers = self.problem.shape
            answer = search.completed(n_submissions * n_reviewers <= DENSE_PAIRS)
        return None if answer is None or not answer.found else (answer, search)
