"""Exchanges and mixtures on their own: lawful, never worse, and the best there is where that can be counted."""

import itertools

import numpy as np
import pytest

from matching.objectives import Welfare
from matching.solvers.exchange import Arcs, gentle_gain, reassign
from matching.solvers.master import best_mixture


def venue(seed, n=12, m=9, demand=2):
    """Arcs of all pairs, a full plan found by dealing people out in turn, and its sums."""
    rng = np.random.default_rng(seed)
    rows, cols = (part.ravel() for part in np.indices((n, m)))
    load_max = np.full(m, -(-n * demand // m) + 1)
    arcs = Arcs((n, m), rows, cols, np.round(rng.random(n * m), 3), np.ones(m, dtype=np.int64), load_max)
    taken = np.zeros((n, m), dtype=bool)
    for at in range(n * demand):
        taken[at // demand, at % m] = True
    return arcs, taken.ravel(), rng


def sums_of(arcs, taken):
    return np.bincount(arcs.rows[taken], weights=arcs.score[taken], minlength=arcs.shape[0])


def log_gain(rows, before, after):
    return np.log(after) - np.log(before)


@pytest.mark.parametrize("seed", range(6))
def test_each_exchange_is_lawful_and_gains_what_it_says(seed):
    """Demand, loads and the stated gain hold over many rounds, and the loads' minima too."""
    arcs, taken, rng = venue(seed)
    for _ in range(20):
        sums = sums_of(arcs, taken)
        found = reassign(arcs, taken, sums, log_gain, rng)
        if found is None:
            continue
        after = sums_of(arcs, found[0])
        assert found[1] == pytest.approx(np.log(after).sum() - np.log(sums).sum())
        assert found[1] > 0
        taken = found[0]
        assert (np.bincount(arcs.rows[taken], minlength=12) == 2).all()
        load = np.bincount(arcs.cols[taken], minlength=9)
        assert (load >= arcs.load_min).all() and (load <= arcs.load_max).all()


@pytest.mark.parametrize("seed", range(4))
def test_with_one_review_each_an_exchange_is_the_best_plan(seed):
    """Everything is let go at once, so the geometric mean is maximised outright."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random((5, 5)), 2) + 0.01
    rows, cols = (part.ravel() for part in np.indices((5, 5)))
    arcs = Arcs((5, 5), rows, cols, score.ravel(), np.zeros(5, dtype=np.int64), np.ones(5, dtype=np.int64))
    taken = np.eye(5, dtype=bool).ravel()
    found = reassign(arcs, taken, sums_of(arcs, taken), log_gain, rng)
    best = max(np.log(score[range(5), list(order)]).sum() for order in itertools.permutations(range(5)))
    reached = np.log(sums_of(arcs, taken if found is None else found[0])).sum()
    assert reached == pytest.approx(best)


def test_a_gentle_exchange_takes_from_nobody():
    """Sums only rise."""
    arcs, taken, rng = venue(7)
    for _ in range(10):
        before = sums_of(arcs, taken)
        found = reassign(arcs, taken, before, gentle_gain, rng)
        if found is not None:
            taken = found[0]
            assert (sums_of(arcs, taken) >= before - 1e-12).all()


@pytest.mark.parametrize("alpha", [0.5, 1.0, 8.0, 64.0])
def test_the_best_mixture_beats_a_grid(alpha):
    """Three points, all mixtures in steps of a fiftieth."""
    points = np.array([[1.0, 0.2, 0.9], [0.3, 1.0, 0.4], [0.6, 0.5, 0.7]])
    welfare = Welfare(alpha, 0.01, np.ones(3, dtype=bool))
    mix = best_mixture(welfare, points, np.empty(0), 1e-8)
    assert mix.sum() == pytest.approx(1.0) and (mix >= 0).all()
    grid = [np.array([a, b, 50 - a - b]) / 50 @ points for a in range(51) for b in range(51 - a)]
    best = max(welfare.equivalent(welfare.value(sums)) for sums in grid)
    assert welfare.equivalent(welfare.value(mix @ points)) >= best * (1 - 1e-6)


def test_equal_points_are_no_trouble():
    """A singular matrix in Newton's step: any shares will do."""
    points = np.tile(np.array([0.5, 0.7]), (4, 1))
    mix = best_mixture(Welfare(1.0, 0.01, np.ones(2, dtype=bool)), points, np.array([0.5, 0.5]), 1e-7)
    assert mix.sum() == pytest.approx(1.0)
