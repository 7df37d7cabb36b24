"""The curve between two objectives, through the library's own door."""

from dataclasses import replace

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


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e7])
@pytest.mark.parametrize("first", ["total", {"name": "threshold", "t": 1.5}, {"name": "welfare", "alpha": 1.0}])
@pytest.mark.parametrize("second", ["maximin", "evenness"])
def test_each_point_is_audited_for_the_wishes_it_claims_in_any_unit(first, second, unit):
    """The loss a point allows stands in its proof; restored from another unit it was the loss of the question."""
    first = {**first, "t": 1.5 * unit} if isinstance(first, dict) and "t" in first else first
    curve = matching.tradeoff(SCORES * unit, first, second, points=4, **VENUE)
    name = first if isinstance(first, str) else first["name"]
    for point in curve[:-1]:
        assert [wish.name for wish in point.wishes] == [name, second]
        assert point.wishes[0].loss == point.loss == point.solution.proofs[0].wish.get("loss", 0.0)
    if len(curve) > 1:
        assert [wish.name for wish in curve[-1].wishes] == [second, name]
        assert len({point.loss for point in curve}) == len(curve)


def test_a_curve_between_other_objectives_is_found_out(monkeypatch):
    """An audit that takes each proof's word for what was asked would let it pass."""
    honest = matching.tradeoff(SCORES, "total", "maximin", losses=[0.1], **VENUE)[0]
    for loss, second in ((0.2, "maximin"), (0.1, "evenness")):
        other = matching.tradeoff(SCORES, "total", second, losses=[loss], **VENUE)[0]
        claimed = [replace(other, wishes=honest.wishes)]
        monkeypatch.setattr("matching.matrices.trade", lambda *_, claimed=claimed, **__: claimed)
        with pytest.raises(matching.errors.AuditError):
            matching.tradeoff(SCORES, "total", "maximin", losses=[0.1], **VENUE)
        monkeypatch.undo()


def test_losses_of_the_two_objectives_themselves_are_not_looked_at():
    """The curve is between the best of each."""
    plain = matching.tradeoff(SCORES, "total", "maximin", points=3, **VENUE)
    lossy = matching.tradeoff(
        SCORES, {"name": "total", "loss": 0.3}, {"name": "maximin", "loss": 0.3}, points=3, **VENUE
    )
    assert [point.loss for point in plain] == [point.loss for point in lossy]
    assert [point.second.value for point in plain] == [point.second.value for point in lossy]


@pytest.mark.parametrize("points", [1, 0, -3, 1001, 10**400, True, 2.0, "2", None, [3], float("nan")])
def test_points_that_are_no_count_are_named(points):
    """Whatever was handed in, the answer is one of our own errors."""
    with pytest.raises(matching.errors.InvalidParamsError) as caught:
        matching.tradeoff(SCORES, points=points, **VENUE)
    assert [issue.field for issue in caught.value.issues] == ["points"]


@pytest.mark.parametrize("loss", [1, -0.1, 10**400, "0", None, [0.1], float("nan"), 1j])
def test_losses_that_are_no_shares_are_named(loss):
    """Likewise."""
    with pytest.raises(matching.errors.InvalidParamsError) as caught:
        matching.tradeoff(SCORES, losses=[0.1, loss], **VENUE)
    assert [issue.field for issue in caught.value.issues] == ["losses"]


@pytest.mark.parametrize("losses", [0.1, "0.1", None.__class__, (loss for loss in (0.1, 0.2)), {0.1: 1}, [[0.1]]])
def test_losses_that_are_no_list_are_named(losses):
    """A generator would be used up by looking at it."""
    with pytest.raises(matching.errors.InvalidParamsError) as caught:
        matching.tradeoff(SCORES, losses=losses, **VENUE)
    assert [issue.field for issue in caught.value.issues] == ["losses"]


def test_numbers_of_numpy_are_numbers():
    """Counts and shares often come out of an array."""
    one = matching.tradeoff(SCORES, points=np.int64(2), **VENUE)
    assert len(one) == len(matching.tradeoff(SCORES, points=2, **VENUE))
    two = matching.tradeoff(SCORES, losses=np.array([0.0, 0.1]), **VENUE)
    assert [point.loss for point in two] == [
        point.loss for point in matching.tradeoff(SCORES, losses=[0, 0.1], **VENUE)
    ]


@pytest.mark.parametrize("name", ["demand", "load_max", "load_min"])
def test_ragged_counts_are_named(name):
    """numpy's own words about sequences help nobody."""
    given = {"demand": 1, "load_max": 2, name: [[1, 2], 1]}
    with pytest.raises(matching.errors.InvalidProblemError) as caught:
        matching.assign(SCORES, **given)
    assert [(issue.code, issue.field) for issue in caught.value.issues] == [("not-integer", name)]
