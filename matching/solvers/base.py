"""What a solver takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.objectives import Measure
from matching.types import FloatArray, IntArray, PairArray

__all__ = ["Progress", "Proof", "Solution", "Solver", "Status", "frozen"]

Kind = TypeVar("Kind", bound=np.generic)


class Status(StrEnum):
    """How a solve ended. Each is a different fact; none stands in for another."""

    OPTIMAL = "optimal"
    """A full plan, proven best within `Solution.gap`."""
    FEASIBLE_AT_LIMIT = "feasible_at_limit"
    """The time limit came first; a full plan with the gap stated."""
    LIMIT_WITHOUT_PLAN = "limit_without_plan"
    """The time limit came before any plan; there are no pairs."""
    INFEASIBLE = "infeasible"
    """No full plan exists, proven; `pairs` is the fullest and among those the best."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One report from a running solve.

    Attributes
    ----------
    phase : str
        "scores", "candidates", "flow", "prices", "sweep", "fairness", "rules", "rounding", "ties", "audit" or
        "report".
    fraction : float
        Rough share of the whole done, [0, 1].
    value, bound, gap : float or None
        Best so far, where known.
    """

    phase: str
    fraction: float
    value: float | None = None
    bound: float | None = None
    gap: float | None = None


ProgressCallback = Callable[[Progress], None]
"""Called between steps. It may raise to stop the run; the exception passes through unchanged."""


@dataclass(frozen=True, eq=False)
class Proof:
    """What proves one wish of a stack; the audit recomputes `bound` from it and from the problem alone.

    With ``Y = weights + sum of k * z`` over `multipliers`, weak duality gives, for every lawful plan and every
    lawful randomisation of plans, ``sum of Y_p U_p + terms <= B``, where B comes from the prices; then

        bound = measure.conjugate(weights) + sum of k * (g.conjugate(z) - c) + B  [+ beta * sum of anchor**2]

    in units of the measure, which `equivalent` of the audit turns into those of `value` (welfare is stated as its
    equally distributed equivalent).

    leximin has one proof for each level: on the least sum among those not settled yet, with floors for those that are.
    evenness minimises the sum of squared loads l. For `reviewer_terms` q, l**2 >= q l - max over whole k >= 0 of
    (q k - k**2), and every pair of a reviewer costs q in B, so with weights of 0

        -bound = sum of max over whole k >= 0 of (q k - k**2) + sum of k * (g.conjugate(z) - c) + B

    Attributes
    ----------
    wish : mapping
        The objective with its options, as `matching.objectives.parse_objective` takes it.
    value, bound, gap : float
        In the natural unit of the objective: sums of scores for total, maximin, leximin, threshold, randomised,
        perturbed and robust; the equally distributed equivalent for welfare; largest excess of envy for envy;
        squares of loads for evenness. A higher value is better except for envy and evenness, where bound is a lower
        one. ``gap = |bound - value|``, 0 below rounding.
    measure : Measure
        The function f whose maximum is bounded.
    constraints : tuple of (Measure, float)
        g and c of each earlier wish that had to hold: ``g(U) >= c``.
    weights : ndarray of shape (n_submissions,), float64
        y of f itself, not negative.
    multipliers : tuple of (float, ndarray)
        (k, z) for each of `constraints`: k >= 0, z of shape (n_submissions,).
    submission_prices, reviewer_prices : ndarray, float64
        u and w, in units of the weighted score.
    rule_prices : tuple
        For each rule of the problem what `matching.constraints.linearised.rule_terms` takes; empty for no rules.
    penalty : float
        Price of a missing review where the plan is not full; 0 otherwise.
    cap : None, float, ndarray or scipy.sparse array
        Highest share of a pair, as in the wish; None for 1.
    anchor : scipy.sparse array of shape (n_submissions, n_reviewers) or None
        perturbed: the point at which the squares were linearised; robust: the direction h, of norm at most 1.
    reviewer_terms : ndarray of shape (n_reviewers,) or None
        evenness: what one more review by each person costs.
    whole : bool
        welfare by itself, and total, threshold and levels under earlier wishes of those kinds, without rules: the
        bound takes for each submission its best whole set of people at these prices
        (`matching.constraints.whole.whole_bound`) instead of its best shares of people. It speaks of plans, not of
        lotteries over them.
    height : float or None
        A level with `whole`: the least sum that no plan reaches, since whole sets of people that do would cost more
        than all loads together pay at these prices. It is the bound.
    """

    wish: Mapping[str, Any]
    value: float
    bound: float
    gap: float
    measure: Measure
    constraints: tuple[tuple[Measure, float], ...]
    weights: FloatArray
    multipliers: tuple[tuple[float, FloatArray], ...]
    submission_prices: FloatArray
    reviewer_prices: FloatArray
    rule_prices: tuple[Any, ...] = ()
    penalty: float = 0.0
    cap: Any = None
    anchor: sparse.csr_array | None = None
    reviewer_terms: FloatArray | None = None
    whole: bool = False
    height: float | None = None

    @property
    def row_weights(self) -> FloatArray:
        """Y, the weight of each submission's sum in the bounded total."""
        out = np.array(self.weights, dtype=np.float64)
        for k, z in self.multipliers:
            out += k * z
        return out


@dataclass(frozen=True, eq=False)
class Solution:
    """Pairs with their proof.

    Attributes
    ----------
    status : Status
        A string; see Status.
    pairs : ndarray of shape (n, 2), int64
        (submission row, reviewer column), in row order.
    value : float
        Of the first objective, in its natural unit (see Proof). For "total" the sum of the original float scores over
        `pairs`; for the randomised ones the expected value, of which `pairs` is one draw.
    bound : float
        No lawful plan that fills as many reviews has a better value.
    gap : float
        ``max(0, bound - value)``, set to 0 where it is below the rounding of float64 sums,
        1e-9 * max(1, |value|).
    submission_prices : ndarray of shape (n_submissions,), float64
        u: what one more review for a submission is worth, in units of score; any sign.
    reviewer_prices : ndarray of shape (n_reviewers,), float64
        w: what one more review by a reviewer is worth; below 0 only where load_min binds.
    unfilled : ndarray of shape (n_submissions,), int64
        Reviews missing per submission; all 0 for a full plan.
    below_min : ndarray of shape (n_reviewers,), int64
        Reviews missing to load_min per reviewer; all 0 unless infeasible.
    penalty : float
        Price of one missing review in the certificate of an infeasible problem, in units of score; 0 if full.
    rounds : int
        Flow solves until no pair of the whole matrix could improve the plan.
    build_seconds, solve_seconds : float
        Wall time before the first flow, and from there on.
    stages : dict of str to float
        Seconds a stage: candidates, flow, prices, sweeps, ties, audit.
    meta : dict
        Facts for the record: solver, version, resolution of scores, arcs.
    proofs : tuple of Proof
        One for each wish of the stack, in order; empty for "total" without rules, whose proof are the prices above.
    probabilities : scipy.sparse.csr_array of shape (n_submissions, n_reviewers) or None
        Probability of each pair, for randomised and perturbed; `pairs` was drawn with exactly these.
    mixture : tuple of (float, ndarray of shape (n, 2), int64)
        Where the problem has rules: the plans that `probabilities` are a lottery over, each with its chance (above 0,
        1 in all). Every one keeps the rules, and `pairs` is one of them. Empty where pairs are drawn one by one.
    rule_shortfall : tuple
        For each rule of the problem the units by which a priced rule, or any rule of an infeasible problem, is
        missed: scipy.sparse of shape (n_a, n_b) for GroupBound, ndarray of shape (n_k,) for the others; positive
        above an upper bound, negative below a lower one. Empty without rules.
    """

    status: Status
    pairs: PairArray
    value: float
    bound: float
    gap: float
    submission_prices: FloatArray
    reviewer_prices: FloatArray
    unfilled: IntArray
    below_min: IntArray
    penalty: float = 0.0
    rounds: int = 0
    build_seconds: float = 0.0
    solve_seconds: float = 0.0
    stages: dict[str, float] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    proofs: tuple[Proof, ...] = ()
    probabilities: sparse.csr_array | None = None
    mixture: tuple[tuple[float, PairArray], ...] = ()
    rule_shortfall: tuple[Any, ...] = ()


class Solver(Protocol):
    """A way to solve an AssignmentProblem for one objective."""

    def solve(
        self,
        problem: AssignmentProblem,
        *,
        rng: int = 0,
        time_limit: float | None = None,
        progress: ProgressCallback | None = None,
    ) -> Solution:
        """Solve it. `rng` seeds every choice among equals; `time_limit` is in seconds of wall time."""
        ...


def frozen(array: NDArray[Kind]) -> NDArray[Kind]:
    """The array, read-only from here on."""
    array.setflags(write=False)
    return array
