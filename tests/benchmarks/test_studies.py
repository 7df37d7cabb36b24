"""The studies measure what they say: their arithmetic on small cases, and their copy of the scorer against ours."""

import numpy as np
import pytest

from matching.evaluation import judge
from matching.formats.ratings import open_rated
from matching.objectives import OBJECTIVES, parse_objective
from matching.scores.text import text_affinity
from tests.benchmarks.bench_growth import drawn, foretold, power
from tests.benchmarks.bench_objectives import LABELS, objective_of, recorded
from tests.benchmarks.bench_solve import case
from tests.benchmarks.choose_text import Study
from tests.benchmarks.gold import GOLD, Losses, load
from tests.benchmarks.thin_profiles import shrunk
from tests.shared import needs_shared


@needs_shared
def test_the_studied_point_is_what_the_product_does():
    """A study of other settings than the product's would choose nothing; also its loss is the command's loss."""
    (version,) = load(only=["d_20_7"])
    study = Study([version])
    affinity = text_affinity(version.submissions, version.reviewers).astype(float)
    ours = version.ahead(affinity)
    studied, measured = study.losses.loss(study.losses.wrong(study.ahead())), study.losses.wrong(ours)
    assert study.losses.loss(measured) == pytest.approx(
        studied, abs=0.015
    )  # the randomised decomposition moves one version by 0.006
    assert np.mean((ours > 0) == (study.ahead() > 0)) > 0.98
    row = {entry.id: at for at, entry in enumerate(version.submissions)}
    column = {entry.id.removeprefix("~"): at for at, entry in enumerate(version.reviewers)}
    ratings = open_rated(GOLD).ratings
    scores = {
        person: {paper: affinity[row[paper], column[person]] for paper in rated} for person, rated in ratings.items()
    }
    judged = judge(ratings, scores)
    assert study.losses.loss(measured) == pytest.approx(judged.loss, abs=1e-12)
    assert measured[0] == pytest.approx(judged.wrong)


class _Version:
    """Four people with one pair each, all of the same size."""

    person, difference, kind = np.arange(4), np.ones(4), np.zeros(4)


def test_cross_validation_scores_people_by_what_was_chosen_without_them():
    """Settings that each fit one person only: what is chosen never knows the person it is judged on."""
    losses = Losses([_Version()])
    memorised = np.stack([losses.wrong(np.where(np.arange(4) == person, 1.0, -1.0)) for person in range(4)])
    honest, _ = losses.cross_validated(memorised, folds=4)
    assert losses.loss(memorised).tolist() == [0.75] * 4 and honest == 1.0
    assert losses.change(memorised[0], memorised[0]) == (0.0, 0.0, 0.0)


def test_shrinkage_is_weighted_by_the_number_of_publications():
    """kappa 1: a reviewer of one publication moves half the way to the nearest other, one of three a quarter."""
    scores = np.array([[0.0, 1.0, 5.0]])
    near = np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    counts = np.array([1, 3, 1])
    assert shrunk(scores, scores, near, counts, (1.0, 1, "once")).tolist() == [[0.5, 0.75, 3.0]]
    assert shrunk(scores, scores, near, counts, (0.0, 0, "once")) is scores
    joint = shrunk(scores, scores, near, counts, (1.0, 1, "joint"))[0]
    # each lies between its own score and its neighbour's result: x0 = (0 + x1) / 2, x1 = (3 * 1 + x0) / 4
    assert joint[:2] == pytest.approx([3 / 7, 6 / 7])


@needs_shared
def test_objectives_stand_beside_runs_of_the_same_problem():
    """midl was recorded with load minima and without, randomised only without: the wrong row would flatter one side."""
    assert recorded("midl", "maximin, total")["worst"] == pytest.approx(0.633812)
    assert recorded("midl_without_load_min", "maximin, total")["worst"] == pytest.approx(0.944839)
    assert recorded("midl", "randomised") is None
    assert recorded("midl_without_load_min", "randomised")["expected"] == pytest.approx(171.051084)
    assert recorded("iclr2018_text", "maximin, total") is None
    assert "load_min" in case("midl") and "load_min" not in case("midl_without_load_min")


@needs_shared
def test_every_objective_of_the_engine_is_measured():
    """An objective added later must not be missing from the table unnoticed."""
    given = case("csconf1")
    wishes = [parse_objective(objective_of(label, given, 124.25)) for label in LABELS]
    assert {wish.name for stack in wishes for wish in stack} == set(OBJECTIVES)


def test_the_model_of_cost_is_the_arithmetic_it_says():
    """Pairs by the square and by cores, lines by the fitted power; the plot has one line for each of the four."""

    def record(side, of_pairs, of_lines):
        stages = {"candidates": of_pairs / 2, "sweeps": of_pairs / 4, "audit": of_pairs / 4, "flow": of_lines}
        return {
            "submissions": side, "stages": stages, "seconds": of_pairs + of_lines, "yardstick_seconds": 0.1, "cores": 2,
        }  # fmt: skip

    records = [record(1_000, 1.0, 1.0), record(10_000, 100.0, 10.0**1.3)]
    assert power(records) == pytest.approx(1.3)
    assert foretold(records[-1], 1.3, 100_000, 20) == pytest.approx((1_000.0, 10.0**2.6))
    picture = drawn(records)
    assert picture.count('stroke-width="2"') == 4 and "10,000" in picture
