"""The curve between two objectives, through the library's own door."""

import numpy as np
import pytest

import matching

SCORES = np.random.default_rng(3).random((12, 10))
VENUE = {"demand": 3, "load_max": 5}


@pytest.mark.parametrize("second", ["maximin", {"name": "welfare", "alpha": 2.0}, "evenness"])
def test_the_curve_runs_from_the_best_of_the_one_to_the_best_of_the_other(second):
    """Its ends are what each objective alone reaches, and in between the first falls while the second does not."""
    curve = matching.tradeoff(SCORES, "total", second, points=5, **VENUE)
    best = matching.assign(SCORES, objective="total", **VENUE)
    assert curve[0].first.value == pytest.approx(best.value)
    assert [point.loss for point in curve] == sorted(point.loss for point in curve)
    for point in curve:
        assert point.first.value >= (1 - point.loss) * best.value - 1e-6
        total = SCORES[point.solution.pairs[:, 0], point.solution.pairs[:, 1]].sum()
        assert total == pytest.approx(point.first.value)
    far = matching.assign(SCORES, objective=second, **VENUE)
    sign = -1 if second == "evenness" else 1
    assert sign * curve[-1].second.value >= sign * far.value - far.gap - curve[-1].second.gap - 1e-6


def test_losses_may_be_named_and_bad_ones_are_refused():
    """A chair asks what one percent buys; a loss of one hundred percent is no wish."""
    one, two = matching.tradeoff(SCORES, "total", "maximin", losses=[0.0, 0.01], **VENUE)
    assert one.loss == 0.0 and two.second.value >= one.second.value - 1e-9
    for bad in ({"losses": [1.0]}, {"points": 1}, {"first": "envy"}, {"second": ["total", "maximin"]}):
        with pytest.raises(matching.MatchingError) as caught:
            matching.tradeoff(SCORES, **{**VENUE, **bad})
        assert caught.value.issues


def test_no_full_plan_gives_no_curve():
    """There is nothing to trade where the reviews cannot be placed at all."""
    assert matching.tradeoff(SCORES, demand=3, load_max=2) == []
