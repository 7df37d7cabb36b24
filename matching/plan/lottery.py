"""A lottery over plans, checked: probabilities that lawful plans can have, and a plan it can have drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.objectives import OPTIONS
from matching.pairs import PairSet
from matching.plan.claims import option, pair_numbers
from matching.plan.facts import Missed, entries, missed_by
from matching.plan.mixture import Mixture, check_mixture
from matching.solvers.base import Solution, Status
from matching.types import FloatArray

__all__ = ["Lottery", "check_lottery"]

ABOVE = 1e-12  # a probability may pass its cap by the rounding of one float
SUMS = 1e-9  # relative rounding of a row's or column's sum of probabilities


@dataclass(frozen=True, eq=False)
class Lottery:
    """Probabilities in numbers.

    Attributes
    ----------
    shares : scipy.sparse.csr_array of shape (n_submissions, n_reviewers)
        The probabilities.
    sums : ndarray of shape (n_submissions,), float64
        Expected sums.
    unfilled, short : ndarray of shape (n_submissions,) and (n_reviewers,), float64
        What demand and load_min miss in expectation.
    missed : tuple of Missed
        What the shares miss of each rule.
    mixture : Mixture or None
        Of the plans the lottery is over; None where pairs are drawn one by one.
    """

    shares: sparse.csr_array
    sums: FloatArray
    unfilled: FloatArray
    short: FloatArray
    missed: tuple[Missed, ...]
    mixture: Mixture | None

    @property
    def lacking(self) -> float:
        """Reviews, and units of hard rules, missed in expectation."""
        if self.mixture is not None:
            return self.mixture.lacking
        return float(self.unfilled.sum() + self.short.sum())


def check_lottery(problem: AssignmentProblem, solution: Solution) -> tuple[list[str], Lottery | None]:
    """Faults of the solution's probabilities, and what they come to; None where they are no probabilities."""
    given = solution.probabilities
    if given is None or not sparse.issparse(given) or given.shape != problem.shape or given.dtype.kind != "f":
        return ["probabilities are no sparse matrix of floats of the problem's shape"], None
    shares = sparse.csr_array(given, copy=True)
    shares.sum_duplicates()
    if not np.isfinite(shares.data).all() or (shares.data < 0).any() or (shares.data > 1 + ABOVE).any():
        return ["a probability does not lie between 0 and 1"], None
    table = sparse.coo_array(shares)
    rows, cols = (np.asarray(line, dtype=np.int64) for line in table.coords)
    faults: list[str] = []
    held = problem.locked
    locked = PairSet(held, problem.shape).contains(rows, cols)
    score = problem.scores.values(rows, cols)
    used = table.data > 0
    if problem.barred.contains(rows[used], cols[used]).any():
        faults.append("a barred pair has a probability")
    if np.isnan(score[used & ~locked]).any():
        faults.append("a pair of unknown affinity has a probability")
    if (np.abs(entries(shares, held[:, 0], held[:, 1]) - 1.0) > ABOVE).any():
        faults.append("a locked pair is not certain")
    for proof in solution.proofs:
        if "cap" in OPTIONS.get(proof.wish.get("name", ""), {}):
            cap = pair_numbers(option(proof, "cap"), problem.shape, "cap")(rows, cols)
            above = (table.data > cap + ABOVE) & ~locked
            if above.any():
                faults.append(f"{int(above.sum())} probabilities lie above their cap")
    pairs = solution.pairs
    drawn = entries(shares, pairs[:, 0], pairs[:, 1])
    if not (drawn > 0).all():
        faults.append("a pair of probability 0 was drawn")
    sure = table.data >= 1.0 - ABOVE
    if not PairSet(pairs, problem.shape).contains(rows[sure], cols[sure]).all():
        faults.append("a pair of probability 1 was not drawn")
    sums = np.bincount(rows, weights=np.nan_to_num(score) * table.data, minlength=problem.shape[0])
    more, unfilled, short = _loads(problem, solution, shares)
    plans, mixture = check_mixture(problem, solution, shares)
    locks = sparse.csr_array((np.ones(len(held)), (held[:, 0], held[:, 1])), shape=problem.shape)
    missed = tuple(missed_by(rule, shares, locks) for rule in problem.rules)
    expected: FloatArray = np.asarray(sums, dtype=np.float64)
    return [*faults, *more, *plans], Lottery(shares, expected, unfilled, short, missed, mixture)


def _loads(
    problem: AssignmentProblem, solution: Solution, shares: sparse.csr_array
) -> tuple[list[str], FloatArray, FloatArray]:
    """Whether rows and columns add up, and what they miss; nothing may be missed in expectation by a full plan."""
    faults = []
    received = np.asarray(shares.sum(axis=1)).ravel()
    carried = np.asarray(shares.sum(axis=0)).ravel()
    unfilled, short = problem.demand - received, np.maximum(problem.load_min - carried, 0.0)
    unfilled[np.abs(unfilled) <= SUMS * np.maximum(1.0, problem.demand)] = 0.0
    short[short <= SUMS * np.maximum(1.0, problem.load_min)] = 0.0
    infeasible = solution.status == Status.INFEASIBLE
    if (unfilled < 0).any() or (not infeasible and unfilled.any()):
        faults.append("the probabilities of a submission do not add up to its demand")
    above = carried > problem.load_max + SUMS * np.maximum(1.0, problem.load_max)
    if above.any() or (not infeasible and short.any()):
        faults.append("the probabilities of a reviewer do not add up to a lawful load")
    return faults, unfilled, short
