"""Whole sets in the service of levels, thresholds and totals: proven where shares of people promise more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.problem import AssignmentProblem
from matching.constraints.worth import worth_of
from matching.objectives import Floors, Level, Shortfall, Total, parse_objective
from matching.plan.audit import audit
from matching.solvers import flowbench
from matching.solvers.clock import Clock
from matching.solvers.lexicographic import StackSolver
from matching.solvers.reach import SetReach
from matching.solvers.tangents import Tangents
from matching.solvers.units import in_unit, restored
from tests.enumeration import every_plan
from tests.matching.plan.test_proofs import assert_true
from tests.mutants import mutants
from tests.strategies import ruled_problems

PLAIN = ("locks", "conflicts", "unknown", "minima", "negative")
STACKS = (
    "leximin", {"name": "threshold", "t": 0.7}, ["maximin", "total"], ["maximin", {"name": "threshold", "t": 1.1}],
    [{"name": "total", "loss": 0.1}, {"name": "threshold", "t": 0.9}], [{"name": "leximin", "loss": 0.1}, "total"],
)  # fmt: skip


def quarters(seed, rows=12, cols=10):
    """Ratings in quarters, few of them high."""
    rng = np.random.default_rng(seed)
    scores = rng.choice([0.0, 0.25, 0.5, 1.0], p=[0.5, 0.25, 0.15, 0.1], size=(rows, cols))
    return AssignmentProblem.of(scores, demand=3, load_max=int(np.ceil(3 * rows / cols)))


@pytest.mark.parametrize("objective", STACKS, ids=str)
@settings(max_examples=25, deadline=None)
@given(problem=ruled_problems(kinds=PLAIN, largest=4), large=st.booleans())
def test_what_is_proven_is_true_for_every_plan(objective, problem, large):
    """The way of tiny problems and that of larger ones, on problems whose plans can all be counted."""
    plans = every_plan(problem)
    if plans.lacking or not (problem.demand > 0).any() or len(plans.taken) > 2000:
        return
    wishes = parse_objective(objective)
    with pytest.MonkeyPatch.context() as patch:
        if large:
            patch.setattr(flowbench, "EXACT_PAIRS", 0)
        solution = StackSolver().solve(problem, wishes)
    report = audit(problem, solution, None)
    assert report.clean, report.faults
    assert_true(plans, problem, solution)


@pytest.mark.parametrize("seed", range(6))
def test_levels_in_steps_are_proven(seed, monkeypatch):
    """Ratings in quarters: every level of leximin has gap 0 where shares of people would leave a step open."""
    monkeypatch.setattr(flowbench, "EXACT_PAIRS", 0)
    problem = quarters(seed)
    wishes = parse_objective("leximin")
    solution = StackSolver().solve(problem, wishes)
    report = audit(problem, solution)
    assert report.clean, report.faults
    assert max(proof.gap for proof in solution.proofs[:-1]) == 0.0
    assert solution.proofs[-1].gap <= 0.005 * solution.proofs[-1].bound


def test_a_false_height_is_found_out(monkeypatch):
    """Every number of a proof by whole sets, changed: the height, the floors, prices, tangents and the word itself."""
    monkeypatch.setattr(flowbench, "EXACT_PAIRS", 0)
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        problem = AssignmentProblem.of(rng.choice([0.0, 0.25, 1.0], size=(4, 5)), demand=2, load_max=2)
        plans = every_plan(problem)
        for objective in ("leximin", {"name": "threshold", "t": 1.1}):
            wishes = parse_objective(objective)
            solution = StackSolver().solve(problem, wishes)
            if not any(proof.whole for proof in solution.proofs):
                continue
            for what, mutant in mutants(rng, solution, 40):
                seen.add(what.split()[-1])
                if audit(problem, mutant).clean:
                    assert_true(plans, problem, mutant)
    assert {"height", "whole", "constraints", "reviewer_prices", "multipliers"} <= seen


def test_a_proof_by_whole_sets_survives_another_unit():
    """Heights are sums, so they are counted in the unit of the scores."""
    problem = AssignmentProblem.of([[1.0, 0.25], [1.0, 0.25]], demand=1, load_max=1)
    wishes = parse_objective("maximin")
    for unit in (2.0**-20, 1.0, 2.0**30):
        scaled, asked = in_unit(problem, wishes, 1.0 / unit)
        solution = restored(StackSolver().solve(problem, wishes), asked, unit)
        assert any(proof.height is not None for proof in solution.proofs)
        report = audit(scaled, solution)
        assert report.clean, report.faults


def test_loss_leaves_levels_to_shares_of_people():
    """A loss lowers the floors that a proof by sets takes as they are."""
    problem = quarters(1)
    solution = StackSolver().solve(problem, parse_objective([{"name": "leximin", "loss": 0.1}, "total"]))
    assert audit(problem, solution).clean
    assert all(proof.height is None for proof in solution.proofs)


def test_reach_finds_a_plan_or_rules_it_out():
    """No prices rule out the largest least sum by enumeration, and no plan is found above it."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        problem = AssignmentProblem.of(np.round(rng.random((4, 5)), 1), demand=2, load_max=2)
        top = every_plan(problem).sums.min(axis=1).max()
        level = Level(np.full(4, True))
        for height in (top, top + 1e-6, top + 0.3):
            worth, _ = worth_of(problem, level, [], [], height)
            found = SetReach(problem, Clock(None)).ask(worth, np.zeros(5), lambda: None)
            if height == top:
                assert found.w is None
                if found.pairs is not None:
                    rows, cols = found.pairs.T
                    assert np.bincount(rows, weights=problem.scores.values(rows, cols)).min() >= top - 1e-9
                    assert (np.bincount(cols, minlength=5) <= 2).all()
            else:
                assert found.pairs is None


@pytest.mark.parametrize("seed", range(5))
def test_tangents_are_the_best_there_are(seed):
    """No slope on a fine grid makes a lower bound for a submission."""
    rng = np.random.default_rng(seed)
    problem = AssignmentProblem.of(rng.random((4, 7)), demand=3, load_max=2)
    everyone, w = np.full(4, True), rng.random(7) * 0.4
    floors = np.array([-np.inf, 1.0, 1.4, 1.6])
    constraints = [(Floors(floors), 0.0), (Shortfall(1.5, everyone), 1.0)]
    scores = problem.scores.block(slice(0, 4), slice(0, 7))
    worth, _ = worth_of(problem, Total(), constraints, [0.0, 0.8])

    def bound(weights):
        best = np.sort(weights[:, None] * scores - w, axis=1)[:, -3:].sum(axis=1)
        return worth.conjugate_parts(weights) + best

    mine = bound(Tangents(problem).best(worth, w))
    for slope in np.linspace(1.0, 12.0, 300):
        assert (mine <= bound(worth.fitting(np.full(4, slope))) + 1e-4).all()
