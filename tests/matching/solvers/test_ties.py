"""Equal scores: even loads, equal plans from equal input, no influence on the value."""

import numpy as np
import pytest

import matching


def loads(solution, n_reviewers):
    return np.bincount(solution.pairs[:, 1], minlength=n_reviewers)


@pytest.mark.parametrize(
    ("n_submissions", "n_reviewers", "demand", "most"), [(4, 4, 1, 3), (7, 5, 2, 5), (40, 30, 3, 9)]
)
def test_equal_scores_give_loads_that_differ_by_at_most_one(n_submissions, n_reviewers, demand, most):
    """The first people in the list are not filled to the brim (B34)."""
    solution = matching.assign(np.full((n_submissions, n_reviewers), 0.5), demand=demand, load_max=most)
    assert np.ptp(loads(solution, n_reviewers)) <= 1


def test_equal_scores_at_a_size_that_needs_pricing_are_spread_too():
    """With 700 x 700 the solver starts from candidates; ties must not send everyone to the same few."""
    solution = matching.assign(np.full((700, 700), 0.5, dtype=np.float32), demand=3, load_max=6)
    assert solution.status == "optimal" and solution.gap == 0.0
    assert np.ptp(loads(solution, 700)) <= 1


def test_the_same_seed_gives_the_same_plan_and_another_seed_the_same_value():
    """A seed chooses among equals and nothing else."""
    scores = np.round(np.random.default_rng(1).random((30, 20)), 1)
    first, again = (matching.assign(scores, demand=2, load_max=4, rng=5) for _ in range(2))
    assert np.array_equal(first.pairs, again.pairs)
    others = [matching.assign(scores, demand=2, load_max=4, rng=seed) for seed in range(6)]
    assert {round(other.value, 9) for other in others} == {round(first.value, 9)}
    assert len({other.pairs.tobytes() for other in others}) > 1


def test_evenness_respects_minima_maxima_and_locks():
    """Ties are resolved on the optimal face, inside every bound."""
    solution = matching.assign(
        np.full((5, 3), 0.5), demand=1, load_max=[1, 3, 3], load_min=[1, 0, 0], locks=[(0, 1), (1, 1)]
    )
    assert sorted(loads(solution, 3).tolist()) == [1, 2, 2]
    assert loads(solution, 3)[0] == 1


def test_evenness_never_costs_value():
    """A reviewer who is strictly better keeps the load even if others are idle."""
    scores = np.full((4, 4), 0.5)
    scores[:, 0] = 0.6
    solution = matching.assign(scores, demand=1, load_max=3)
    assert loads(solution, 4)[0] == 3
    assert solution.value == pytest.approx(3 * 0.6 + 0.5)
