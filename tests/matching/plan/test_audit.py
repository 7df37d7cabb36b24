"""The audit must refuse what is wrong: each test breaks one thing in a right solution."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from matching.constraints.problem import AssignmentProblem
from matching.errors import AuditError
from matching.plan.audit import audit, require_clean
from matching.scores.base import VectorScores
from matching.solvers.base import Status
from matching.solvers.pricing import PricingSolver


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(7)
    return AssignmentProblem.of(
        np.round(rng.random((8, 6)), 3),
        demand=2,
        load_max=3,
        load_min=1,
        conflicts=[(0, 1), (3, 2)],
        locks=[(1, 1)],
    )


@pytest.fixture(scope="module")
def solution(problem):
    return PricingSolver().solve(problem)


def changed(solution, row, col, to):
    pairs = solution.pairs.copy()
    at = np.flatnonzero((pairs[:, 0] == row) & (pairs[:, 1] == col))[0]
    pairs[at] = to
    return replace(solution, pairs=pairs)


def test_a_right_solution_is_clean(problem, solution):
    """And its numbers are recomputed, not copied."""
    report = audit(problem, solution)
    assert report.clean and report.faults == ()
    assert report.value == pytest.approx(solution.value, abs=1e-12)
    assert report.gap == 0.0 and report.improving_pairs == 0


def test_a_barred_pair_is_found(problem, solution):
    """Also when the claimed value is right for the wrong pairs."""
    row = 0
    col = int(solution.pairs[solution.pairs[:, 0] == row, 1][0])
    broken = changed(solution, row, col, (0, 1))
    faults = audit(problem, broken).faults
    assert any("barred" in fault for fault in faults)
    with pytest.raises(AuditError):
        require_clean(problem, broken)


def test_a_reviewer_twice_on_one_submission_is_found(problem, solution):
    """Loads and demand still add up, so only counting pairs shows it."""
    first, second = solution.pairs[solution.pairs[:, 0] == 2, 1]
    assert any("twice" in fault for fault in audit(problem, changed(solution, 2, int(first), (2, int(second)))).faults)


def test_a_missing_lock_is_found(problem, solution):
    """A locked pair swapped for another one of the same submission."""
    others = set(range(6)) - set(solution.pairs[solution.pairs[:, 0] == 1, 1].tolist())
    broken = changed(solution, 1, 1, (1, others.pop()))
    assert any("locked" in fault for fault in audit(problem, broken).faults)


def test_a_wrong_value_bound_or_demand_is_found(problem, solution):
    """Each stated number is compared with the recomputed one."""
    assert not audit(problem, replace(solution, value=solution.value + 0.01)).clean
    assert not audit(problem, replace(solution, bound=solution.bound - 0.01)).clean
    assert not audit(problem, replace(solution, pairs=solution.pairs[1:])).clean
    assert not audit(problem, replace(solution, status=Status.INFEASIBLE)).clean


def test_prices_that_prove_nothing_are_found(problem, solution):
    """Any prices give a true bound; wrong ones leave a gap the solution did not state."""
    report = audit(problem, replace(solution, submission_prices=solution.submission_prices + 0.1))
    assert report.gap > 0.1 and not report.clean
    report = audit(problem, replace(solution, reviewer_prices=solution.reviewer_prices * 0))
    assert report.improving_pairs > 0 and not report.clean


def test_a_worse_plan_cannot_pass_as_optimal():
    """Two reviewers swapped: lawful, stated value right, and still refused."""
    problem = AssignmentProblem.of([[0.9, 0.2], [0.5, 0.4]], demand=1, load_max=1)
    best = PricingSolver().solve(problem)
    worse = replace(best, pairs=np.array([[0, 1], [1, 0]]), value=0.7, bound=0.7)
    assert not audit(problem, worse).clean


def test_an_infeasible_claim_needs_its_own_proof():
    """A plan that merely leaves a review out cannot pass as the fullest."""
    problem = AssignmentProblem.of([[0.9, 0.2], [0.5, 0.4]], demand=1, load_max=1)
    best = PricingSolver().solve(problem)
    lazy = replace(
        best, status=Status.INFEASIBLE, pairs=np.array([[0, 0]]), value=0.9, bound=0.9,
        unfilled=np.array([0, 1]), penalty=100.0,
    )  # fmt: skip
    faults = audit(problem, lazy).faults
    assert any("prove only 0" in fault for fault in faults)


def test_rounding_of_float32_blocks_does_not_hide_an_improving_pair():
    """Scores of vectors come from float32 products; the audit re-evaluates what is near the prices exactly."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((40, 16)), rng.standard_normal((30, 16))
    problem = AssignmentProblem.of(VectorScores(left, right), demand=2, load_max=3)
    solution = PricingSolver(4, dense_pairs=0).solve(problem)
    assert audit(problem, solution).clean
    nudged = replace(solution, submission_prices=solution.submission_prices - 1e-5)
    assert audit(problem, nudged).improving_pairs > 0


def test_the_audit_loads_no_solver():
    """The proof would mean little if the code under suspicion checked itself."""
    code = "import sys, matching.plan.audit; assert not any(name.startswith('ortools') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_prove_nothing(problem, solution, bad):
    """Every comparison with NaN is false, so it has to be refused by name."""
    for name in ("submission_prices", "reviewer_prices"):
        prices = getattr(solution, name).copy()
        prices[0] = bad
        assert not audit(problem, replace(solution, **{name: prices})).clean
    for name in ("value", "bound", "gap"):
        assert not audit(problem, replace(solution, **{name: bad})).clean


def test_prices_below_minus_the_penalty_are_refused_for_an_infeasible_plan():
    """Weak duality with missing reviews needs prices no lower than that; else a worse plan passes."""
    problem = AssignmentProblem.of(
        [[0.9, 0.8, 0.1], [0.8, 0.7, 0.6], [0.1, 0.2, 0.3]], demand=[1, 1, 2], load_max=1, conflicts=[(2, 0), (2, 1)]
    )
    best = PricingSolver().solve(problem)
    assert best.status == Status.INFEASIBLE and audit(problem, best).clean
    low = best.submission_prices.copy()
    low[2] = -best.penalty - 0.7
    assert not audit(problem, replace(best, submission_prices=low)).clean


def test_the_stated_gap_is_checked_for_every_status(problem, solution):
    """A plan at the limit may have a gap, but not another one than its bound leaves."""
    loose = replace(solution, status=Status.FEASIBLE_AT_LIMIT, bound=solution.value + 1.0, gap=0.0)
    assert not audit(problem, loose).clean
    assert not audit(problem, replace(loose, bound=np.inf)).clean
    assert audit(problem, replace(loose, gap=1.0)).clean
