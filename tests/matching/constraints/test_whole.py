"""The bound over whole people against enumeration: above every plan, below what weak duality says."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints import whole
from matching.constraints.ideal import welfare_of
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import whole_bound
from tests.enumeration import every_plan
from tests.strategies import ruled_problems

PLAIN = ("locks", "conflicts", "unknown", "minima", "negative")


@settings(max_examples=200, deadline=None)
@given(ruled_problems(kinds=PLAIN, largest=4), st.sampled_from([0.5, 1.0, 8.0]), st.integers(0, 10**6))
def test_any_prices_bound_every_plan(problem, alpha, seed):
    """Random prices of both signs and random tangents prove something true, however weak."""
    plans = every_plan(problem)
    welfare = welfare_of(problem, alpha)
    if plans.lacking or not welfare.among.any():
        return
    rng = np.random.default_rng(seed)
    weights = welfare.weights(np.where(welfare.among, welfare.unit * rng.uniform(0.2, 2.0, problem.shape[0]), 0.0))
    prices = rng.normal(size=problem.shape[1]) * rng.choice([0.0, 0.1, 1.0])
    best = max(welfare.value(sums) for sums in plans.sums)
    assert best <= whole_bound(problem, welfare, weights, prices) + 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_set_of_each_submission_is_found(seed):
    """One reviewer price vector, sets of three out of nine: the searches equal going through all sets."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((5, 9)) ** 2, 1 + seed % 3)
    problem = AssignmentProblem.of(scores, demand=3, load_max=5)
    welfare = welfare_of(problem, 1.0 + seed % 2)
    prices = np.round(rng.random(9), 1)
    weights = welfare.weights(rng.uniform(0.3, 2.0, 5))
    each = [
        max(
            float(welfare.parts(np.array([scores[row, list(people)].sum()]))[0]) - prices[list(people)].sum()
            for people in itertools.combinations(range(9), 3)
        )
        for row in range(5)
    ]
    assert whole_bound(problem, welfare, weights, prices) == pytest.approx(sum(each) + 5 * prices.sum())


def test_a_search_cut_short_still_bounds(monkeypatch):
    """With one step a search, or none at all, the bound is weaker and stays above the exact one."""
    rng = np.random.default_rng(3)
    problem = AssignmentProblem.of(np.round(rng.random((6, 12)) ** 4, 2), demand=3, load_max=4)
    welfare = welfare_of(problem, 1.0)
    weights, prices = welfare.weights(np.full(6, 0.5)), rng.random(12) * 0.3
    exact = whole_bound(problem, welfare, weights, prices)
    bounds = []
    for name, steps in (("STEPS_EACH", 3), ("STEPS", 0)):
        monkeypatch.setattr(whole, name, steps)
        bounds.append(whole_bound(problem, welfare, weights, prices))
    assert exact <= bounds[0] <= bounds[1]
    assert bounds[1] > exact


def test_weights_that_prove_nothing_say_so():
    """A weight of 0, or one steeper than the curve ever is, has no tangent."""
    problem = AssignmentProblem.of(np.full((2, 3), 0.5), demand=1, load_max=1)
    welfare = welfare_of(problem, 1.0)
    for bad in (0.0, 1e9):
        assert whole_bound(problem, welfare, np.array([1.0, bad]), np.zeros(3)) == np.inf
