"""Bounds over whole sets under earlier wishes against enumeration: above every plan that keeps them, never below."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.grid import grid_of
from matching.constraints.problem import AssignmentProblem
from matching.constraints.whole import ruled_out, whole_bound
from matching.constraints.worth import worth_of
from matching.objectives import Floors, Level, Shortfall, Total, Welfare
from tests.enumeration import every_plan
from tests.strategies import ruled_problems

PLAIN = ("locks", "conflicts", "unknown", "minima", "negative")


def drawn(problem, seed):
    """Plans, random prices of both signs and random tangents; None where there is no full plan."""
    plans = every_plan(problem)
    if plans.lacking or not (problem.demand > 0).any():
        return None
    rng = np.random.default_rng(seed)
    w = rng.normal(size=problem.shape[1]) * rng.choice([0.0, 0.1, 1.0])
    return plans, rng, w, rng.exponential(1.0, problem.shape[0])


@settings(max_examples=150, deadline=None)
@given(ruled_problems(kinds=PLAIN, largest=4), st.sampled_from(["total", "shortfall", "both"]), st.integers(0, 10**6))
def test_any_prices_bound_every_plan_that_keeps_the_earlier_wishes(problem, kind, seed):
    """Floors leave sets out, an earlier threshold enters by its multiplier, tangents may be any that fit."""
    given_ = drawn(problem, seed)
    if given_ is None:
        return
    plans, rng, w, weights = given_
    sums = plans.sums
    wanting = problem.demand > 0
    t = float(np.median(sums[:, wanting]))
    short = Shortfall(t, wanting)
    floors = np.where(wanting & (rng.random(wanting.size) < 0.5), sums[rng.integers(len(sums))], -np.inf)
    constraints = [(Floors(floors), 0.0)] if rng.random() < 0.7 else []
    if kind == "both":
        values = np.array([short.value(one) for one in sums])
        constraints.append((short, float(rng.choice(values))))
    measure = short if kind == "shortfall" else Total()
    kept = [one for one in sums if all(g.value(one) >= least - 1e-9 for g, least in constraints)]
    if not kept:
        return
    k = float(rng.choice([0.0, 0.5, 3.0]))
    found = worth_of(problem, measure, constraints, [k] * len(constraints), grid=grid_of(problem))
    assert found is not None
    worth, charge = found
    best = max(measure.value(one) for one in kept)
    bound = whole_bound(problem, worth, worth.fitting(weights), w) + charge
    assert best <= bound + 1e-9 * max(1.0, abs(best))


@settings(max_examples=150, deadline=None)
@given(ruled_problems(kinds=PLAIN, largest=4), st.integers(0, 10**6))
def test_a_height_some_plan_reaches_is_never_ruled_out(problem, seed):
    """The bound is 0 or more there, whatever the prices, the tangents and the floors of the others."""
    given_ = drawn(problem, seed)
    if given_ is None:
        return
    plans, rng, w, weights = given_
    wanting = problem.demand > 0
    among = wanting & (rng.random(wanting.size) < 0.7)
    among = among if among.any() else wanting
    one = plans.sums[rng.integers(len(plans.sums))]
    floors = np.where(wanting & ~among, one, -np.inf)
    constraints = [(Floors(floors), 0.0)]
    found = worth_of(problem, Level(among), constraints, [0.0], float(one[among].min()), grid=grid_of(problem))
    assert found is not None
    assert not ruled_out(problem, found[0], weights, w)


def test_a_height_two_cannot_share_is_ruled_out():
    """One good person with room for one: either submission reaches 1, both do not."""
    problem = AssignmentProblem.of([[1.0, 0.2], [1.0, 0.2]], demand=1, load_max=1)
    level = Level(np.array([True, True]))
    for height, expected in ((1.0, True), (0.200001, True), (0.2, False)):
        found = worth_of(problem, level, [], [], height, grid=grid_of(problem))
        assert ruled_out(problem, found[0], np.zeros(2), np.array([1.0, 0.0])) == expected


def test_other_shapes_have_no_worth():
    """Two thresholds, welfare in the way, a level without height or a total with one."""
    problem = AssignmentProblem.of([[1.0, 0.2], [1.0, 0.2]], demand=1, load_max=1)
    both = np.array([True, True])
    welfare = Welfare(1.0, 0.01, both)
    assert worth_of(problem, Shortfall(1.0, both), [(Shortfall(0.5, both), 0.1)], [1.0]) is None
    assert worth_of(problem, Total(), [(welfare, 0.1)], [1.0]) is None
    assert worth_of(problem, welfare, [(Total(), 0.1)], [0.0]) is None
    assert worth_of(problem, Level(both), [], []) is None
    assert worth_of(problem, Total(), [], [], 0.5) is None
    assert worth_of(problem, welfare, [], []) == (welfare, 0.0)


def test_tangents_lie_above_what_sums_are_worth():
    """The conjugate plus a line, for floors above and below t and slopes on both sides of the bend."""
    problem = AssignmentProblem.of(np.full((4, 3), 0.5), demand=1, load_max=2)
    everyone = np.full(4, True)
    floors = np.array([-np.inf, 0.2, 0.8, 0.5])
    worth, _ = worth_of(problem, Total(), [(Floors(floors), 0.0), (Shortfall(0.5, everyone), 1.0)], [0.0, 2.0])
    sums = np.linspace(-2.0, 3.0, 101)
    for slope in (1.0, 1.7, 3.0, 4.5):
        weights = worth.fitting(np.full(4, slope))
        level = worth.conjugate_parts(weights)
        for row in range(4):
            assert np.isfinite(level[row])
            values = worth.parts(sums, np.full(101, row))
            assert (values <= level[row] + weights[row] * sums + 1e-12).all()
            assert np.array_equal(values, worth.of(row)(sums))
            assert values.max() > -np.inf
    short = replace(worth, slope=0.0)
    assert np.isinf(short.conjugate_parts(np.full(4, 3.0)))[0]
    assert np.isinf(worth.conjugate_parts(np.full(4, 0.5))).all()


def test_tangents_lie_above_sums_that_count_as_being_at_their_floor():
    """A floor lifted to the grid has slack; sums within it are worth something, and no bound may leave them out."""
    problem = AssignmentProblem.of(np.full((2, 3), 0.5), demand=1, load_max=2)
    worth, _ = worth_of(problem, Total(), [(Floors(np.array([0.5, 0.2])), 0.0)], [0.0])
    worth = replace(worth, slack=np.array([0.01, 0.0]))
    sums = np.linspace(0.485, 0.6, 24)
    weights = worth.fitting(np.array([4.0, 4.0]))
    level = worth.conjugate_parts(weights)
    for row in range(2):
        assert (worth.parts(sums, np.full(24, row)) <= level[row] + weights[row] * sums + 1e-12).all()


@pytest.mark.parametrize(
    ("values", "step"), [([0.0, 0.25, 1.0], 0.25), ([0.3, 0.7, -0.2], 0.1), ([1.0, 2.0, 3.0], 1.0), ([0.5], 0.5)]
)
def test_scores_in_steps_are_seen(values, step):
    """Quarters, tenths and ratings; single precision does not hide them."""
    for kind in (np.float32, np.float64):
        problem = AssignmentProblem.of(np.resize(values, (5, 4)).astype(kind), demand=2, load_max=3)
        grid = grid_of(problem)
        assert grid is not None and grid.step == pytest.approx(step)
        assert grid.error < 1e-5 * step


def test_scores_without_steps_are_left_as_they_are():
    """Arbitrary numbers, a thousand levels, and nothing but zeros."""
    rng = np.random.default_rng(0)
    for scores in (
        rng.random((9, 8)),
        np.round(rng.random((60, 60)), 3),
        np.zeros((3, 3)),
        [[1.0, 0.61803], [0.1, 0.0]],
    ):
        assert grid_of(AssignmentProblem.of(scores, demand=1, load_max=30)) is None


@settings(max_examples=100, deadline=None)
@given(ruled_problems(kinds=PLAIN, largest=4), st.floats(-2.0, 2.0))
def test_lifted_floors_are_reached_by_the_same_sums(problem, floor):
    """No sum of any plan lies between a floor and what it is lifted to."""
    grid = grid_of(problem)
    if grid is None:
        return
    floors, slack = np.array([floor, -np.inf]), np.array([1e-9, 0.0])
    lifted, left = grid.lifted(floors, slack)
    assert lifted[0] >= floor and lifted[1] == -np.inf
    sums = every_plan(problem).sums.ravel()
    assert np.array_equal(sums >= floor - 1e-9, sums >= lifted[0] - left[0])
