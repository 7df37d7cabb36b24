"""Generated venues: the same for the same arguments, as asked for, and refused in full where they cannot be."""

import numpy as np
import pytest

from matching.errors import InvalidParamsError
from matching.generated import BID_WEIGHT, generated_problem
from matching.scores.base import VectorScores


def whole(problem):
    rows, cols = (part.ravel() for part in np.indices(problem.shape))
    return problem.scores.values(rows, cols).reshape(problem.shape)


def test_equal_arguments_give_the_equal_venue_and_another_seed_another_one():
    """A measurement that nobody can repeat is none."""
    first, again, other = (generated_problem(60, 50, dim=8, rng=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(whole(first), whole(again))
    np.testing.assert_array_equal(first.barred.pairs(), again.barred.pairs())
    assert not np.array_equal(whole(first), whole(other))
    assert not np.array_equal(first.barred.pairs(), other.barred.pairs())


def test_shares_of_conflicts_and_bids_are_as_asked():
    """Drawn at random, so within five standard deviations; nobody has all of them."""
    problem = generated_problem(300, 400, dim=4, conflicts=0.05, bids=0.02)
    pairs = 300 * 400
    for found, share in ((len(problem.barred), 0.05), (problem.scores.known_counts()["bids"], 0.02)):
        assert abs(found - share * pairs) < 5 * (share * (1 - share) * pairs) ** 0.5
    assert problem.barred.count_by_reviewer().max() < 40 and problem.barred.count_by_submission().max() < 50


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_may_be_nothing_and_everything(share):
    problem = generated_problem(12, 9, dim=4, conflicts=share, bids=share)
    assert len(problem.barred) == 12 * 9 * share
    assert isinstance(problem.scores, VectorScores) == (share == 0.0)


def test_affinity_is_a_cosine_and_a_weighted_bid():
    """Texts alone lie in [-1, 1]; a bid moves its pair by a tenth at most and the others not at all."""
    plain = whole(generated_problem(40, 30, dim=16, conflicts=0.0, bids=0.0))
    assert np.abs(plain).max() <= 1.0 + 1e-6
    moved = whole(generated_problem(40, 30, dim=16, conflicts=0.0, bids=0.1)) - plain
    steps = np.unique(np.round(moved / BID_WEIGHT, 5))
    assert set(steps.tolist()) == {-1.0, -0.5, 0.0, 0.5, 1.0}


def test_demand_and_load_are_those_of_every_line():
    problem = generated_problem(5, 6, dim=1, demand=2, load_max=3)
    assert problem.demand.tolist() == [2] * 5 and problem.load_max.tolist() == [3] * 6


def test_every_number_out_of_range_is_listed():
    with pytest.raises(InvalidParamsError) as caught:
        generated_problem(0, -1, dim=0, demand=-1, load_max=-2, conflicts=1.1, bids=float("nan"), rng=-1)
    assert [issue.field for issue in caught.value.issues] == [
        "submissions", "reviewers", "dim", "demand", "load", "seed", "conflicts", "bids",
    ]  # fmt: skip
