"""Very large problems leave the flow's integers steps above 1e-7; the plan and its proof must not show it.

A low limit for costs gives small problems the steps of large ones.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matching
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverRangeError
from matching.plan.audit import audit
from matching.solvers import flow
from matching.solvers.flow import Scale
from matching.solvers.oracle import Oracle
from matching.solvers.prices import Prices
from matching.solvers.pricing import PricingSolver
from matching.solvers.start import Start

TOTAL = matching.objectives.parse_objective("total")


def near_ties(seed, n, apart=3e-6, load=2):
    """Scores that mostly differ by less than a few coarse steps, and no reviews to spare."""
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random((n, n)) < 0.95, 0.5 + apart * rng.random((n, n)), rng.random((n, n)))
    return AssignmentProblem.of(scores, demand=2, load_max=load)


def coarse(monkeypatch, n):
    """Steps of about a millionth of the scores for n submissions, as few as the scale allows."""
    monkeypatch.setattr(flow, "COST_LIMIT", int(2.2e6 * 4 * (n + 2) * max(2 * n + 2, 2 * n)))


@pytest.mark.parametrize("dense", [0, 10**9], ids=["priced", "dense"])
@pytest.mark.parametrize("load", [2, 1], ids=["full", "missing"])
def test_coarse_steps_change_neither_the_plan_nor_its_proof(monkeypatch, dense, load):
    """100,000 a side with 300,000 reviews have steps of 1e-7; there thousands of pairs exceeded their prices."""
    problem = near_ties(60, 60, load=load)
    fine = PricingSolver(dense_pairs=dense, candidates=4).solve(problem)
    coarse(monkeypatch, 60)
    found = PricingSolver(dense_pairs=dense, candidates=4).solve(problem)
    report = audit(problem, found, TOTAL)
    assert report.clean, report.faults
    assert found.gap == 0.0 and found.status == fine.status
    assert found.value == pytest.approx(fine.value, abs=1e-9)
    assert found.meta["resolution"] < 1e-10


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3]), st.booleans())
def test_any_coarse_problem_has_the_value_of_the_fine_one(seed, load, dense):
    """Ties among coarse steps are open to the solver, so many seeds are tried."""
    problem = near_ties(seed, 12, load=load)
    pairs = 10**9 if dense else 0
    fine = PricingSolver(dense_pairs=pairs, candidates=2).solve(problem)
    with pytest.MonkeyPatch.context() as patch:
        coarse(patch, 12)
        found = PricingSolver(dense_pairs=pairs, candidates=2).solve(problem)
    assert audit(problem, found, TOTAL).clean
    assert found.value == pytest.approx(fine.value, abs=1e-9) and found.gap == 0.0


def test_calls_after_a_finer_one_begin_with_the_usual_steps(monkeypatch):
    """Weights of another objective need whole costs, which fit the solver only at the coarse scale."""
    coarse(monkeypatch, 40)
    problem = near_ties(1, 40)
    one = Oracle(problem, candidates=4, dense_pairs=0)
    first = one.best()
    assert one.state.scale.bits > 0
    weights = np.linspace(1.0, 2.0, 40)
    weighted, again = one.best(weights), one.best()
    assert weighted is not None and weighted.proven
    alone = Oracle(problem, candidates=4, dense_pairs=0).best(weights)
    assert weighted.value == pytest.approx(alone.value, abs=1e-4)
    assert again.value == pytest.approx(first.value, abs=1e-9)
    taken, _ = one.corner(weights)
    assert one.state.scale.bits == 0 and taken.size == 80


def test_where_finer_steps_do_not_fit_the_gap_says_how_far_the_coarse_answer_may_be_off(monkeypatch):
    """Nothing is called optimal that was not shown to be."""
    coarse(monkeypatch, 60)
    problem = near_ties(60, 60)
    whole = Oracle.flowing

    def refusing(self, last):
        if self.state.scale.bits:
            raise SolverRangeError("too large")
        return whole(self, last)

    monkeypatch.setattr(Oracle, "flowing", refusing)
    found = PricingSolver(dense_pairs=0, candidates=4).solve(problem)
    assert audit(problem, found, TOTAL).clean
    assert found.status == "feasible_at_limit"
    assert 0.0 < found.gap < 120 * 2e-6 and found.meta["resolution"] > 1e-7


def test_a_repaired_plan_of_a_coarse_problem_is_proven_too(monkeypatch):
    """Shortest paths count in the same integers."""
    coarse(monkeypatch, 60)
    problem = near_ties(60, 60)
    solver = PricingSolver(dense_pairs=0, candidates=4)
    before = solver.solve(problem)
    fewer = AssignmentProblem.of(problem.scores, demand=np.r_[np.full(59, 2), 0], load_max=2)
    found = solver.solve(fewer, start=Start.of(before, fewer.shape))
    cold = solver.solve(fewer)
    assert audit(fewer, found, TOTAL).clean and found.gap == 0.0
    assert found.value == pytest.approx(cold.value, abs=1e-9)


def test_digits_come_and_go_without_a_trace():
    """Prices of the fine scale are those of the coarse one rounded, to half a step."""
    scale = Scale.fit(0.0, 1.0, (100_000, 100_000), 300_000)
    assert 1.0 / scale.factor > 1e-8 and scale.spare >= 12
    finer = scale.finer(scale.spare)
    assert finer.finer(-scale.spare) == scale and finer.penalty < 2**58
    assert finer.factor / scale.factor == 2.0**scale.spare
    prices = Prices(np.array([5, -7, 0]), np.array([1, 2]))
    back = prices.shifted(9).shifted(-9)
    assert back.u.tolist() == [5, -7, 0] and back.w.tolist() == [1, 2]
    assert Prices(np.array([255, 256, -256, -257]), np.array([0])).shifted(-9).u.tolist() == [0, 1, 0, -1]


def test_ties_do_not_take_what_rounding_has_taken_already():
    """Twice the slack of sums is a gap."""
    one = Oracle(near_ties(1, 12)).best()
    slack = 1e-9 * abs(one.value)
    for gap, loss, spared in (
        (0.0, 0.9, True),
        (0.0, 1.1, False),
        (0.6, 0.3, True),
        (0.6, 0.5, False),
        (5.0, 0.9, True),
    ):
        assert replace(one, bound=one.value + gap * slack).spares(loss * slack) == spared
