"""The flow under rules of network form as a Solution with its proof: prices of lines and rules, and what they bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from matching.constraints.linearised import Linearised, rule_terms
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Total
from matching.solvers.base import Proof, Solution, Status, frozen
from matching.solvers.cells import Cells
from matching.solvers.clock import Clock
from matching.solvers.layered import Laid, Marks
from matching.solvers.state import State, open_prices
from matching.solvers.stated import bound_and_gap, stated
from matching.types import FloatArray

__all__ = ["Priced", "RulePrices", "answer_of", "rule_prices"]


@dataclass(frozen=True, eq=False)
class RulePrices:
    """Prices of the problem's rules, in their order, and scores less these prices."""

    tables: tuple[sparse.csr_array, ...]
    scores: Linearised
    paid: float


@dataclass(frozen=True, eq=False)
class Priced:
    """An optimal flow and the prices that prove it.

    Attributes
    ----------
    laid : Laid
    marks : Marks
        In units of score, float64; lines without room are closed by a price above any score.
    rules : RulePrices
    excess : ndarray of shape (n,), float64
        By how much pairs exceed their prices.
    short : tuple of scipy.sparse.csr_array
        For each rule the units missing, as in `matching.solvers.base.Solution.rule_shortfall`.
    penalty : float
        Price of a missing review in units of score; 0 where nothing is missing.
    proven : bool
        Whether no pair of the whole matrix could improve it; False after a time limit.
    """

    laid: Laid
    marks: Marks
    rules: RulePrices
    excess: FloatArray
    short: tuple[sparse.csr_array, ...]
    penalty: float
    proven: bool


def rule_prices(problem: AssignmentProblem, cells: tuple[Cells, Cells], marks: Marks) -> RulePrices:
    """What the prices of cells say about rules."""
    tables: dict[int, sparse.csr_array] = {}
    for cell, price in zip(cells, marks.cells, strict=True):
        tables.update(zip(cell.family.places, cell.tables(price), strict=True))
    ordered = tuple(tables[place] for place in range(len(problem.rules)))
    groups, _, paid = rule_terms(problem.rules, ordered, problem.shape)
    return RulePrices(ordered, Linearised(problem.scores, groups=groups), paid)


def bound_of(state: State, best: Priced) -> float:
    """Upper bound on the total, less what priced rules cost, of every plan that lacks as little; from prices alone."""
    locked, marks, laid, penalty = state.problem.locked, best.marks, best.laid, best.penalty
    below = np.maximum(-marks.w, 0.0)
    # demand and what is missing of it are paid for line by line: apart, price and penalty are huge and cancel
    parts = (
        best.rules.scores.linear(locked[:, 0], locked[:, 1], state.held),
        np.where(state.supply > 0, (state.supply - laid.unfilled) * marks.u + laid.unfilled * (marks.u + penalty), 0.0),
        np.where(state.load_max > 0, state.load_max * np.maximum(marks.w, 0.0), 0.0),
        laid.below * (penalty - below) - (state.load_min - laid.below) * below,
        best.excess,
    )
    hard = [table for rule, table in zip(state.problem.rules, best.short, strict=True) if rule.price is None]
    elastic = penalty * sum(float(np.maximum(-table.data, 0.0).sum()) for table in hard)
    return float(sum(part.sum() for part in parts) + (best.rules.paid + elastic))


def answer_of(
    state: State, best: Priced, rounds: int, clock: Clock, build_seconds: float, meta: dict[str, object]
) -> Solution:
    """The plan with its proof."""
    problem, locked = state.problem, state.problem.locked
    taken = np.flatnonzero(best.laid.amount)
    pairs = np.concatenate([locked, np.column_stack([state.rows[taken], state.cols[taken]])])
    value = float(np.concatenate([state.held, state.plain[taken]]).sum()) - sum(
        rule.price * float(abs(table).sum())
        for rule, table in zip(problem.rules, best.short, strict=True)
        if rule.price is not None
    )
    bound, gap = bound_and_gap(value, bound_of(state, best))
    with clock.stage("prices"):
        plain, state.scores = state.scores, best.rules.scores
        try:
            u, w = open_prices(state, best.marks.u, best.marks.w)
        finally:
            state.scores = plain
    full = Status.OPTIMAL if best.proven else Status.FEASIBLE_AT_LIMIT
    status = Status.INFEASIBLE if best.laid.missing else full
    proof = Proof(
        wish={"name": "total"}, value=value, bound=bound, gap=gap, measure=Total(),
        constraints=(), weights=frozen(np.ones(problem.shape[0])), multipliers=(), submission_prices=frozen(u),
        reviewer_prices=frozen(w), rule_prices=best.rules.tables, penalty=best.penalty,
    )  # fmt: skip
    return stated(
        problem, status, pairs, (proof,), clock, build_seconds, rounds=rounds, meta=meta,
        unfilled=best.laid.unfilled, below_min=best.laid.below, rule_shortfall=best.short,
    )  # fmt: skip
