"""A plan found from an earlier one is the plan that would have been found without it, and moves little."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidProblemError
from matching.objectives import parse_objective
from matching.pairs import PairSet
from matching.plan.audit import audit
from matching.scores.base import DenseScores, VectorScores
from matching.solvers import balance as balancing
from matching.solvers.base import Status
from matching.solvers.choose import solve
from matching.solvers.listed import Listed, best_of, margin_for
from matching.solvers.pricing import PricingSolver
from matching.solvers.repair import RepairOracle
from matching.solvers.start import START, Start, changes_of
from tests.changes import STALE, carried, changed

TOTAL = parse_objective("total")


def vectors(n_submissions=120, n_reviewers=110, seed=0, **rest):
    """A venue of vectors, large enough for prices to matter and solved from listed pairs alone."""
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((n_submissions, 8)), rng.standard_normal((n_reviewers, 8))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    given = {"demand": 3, "load_max": 4, "conflicts": np.argwhere(rng.random((n_submissions, n_reviewers)) < 0.02)}
    return AssignmentProblem.of(VectorScores(left, right), **{**given, **rest})


def without_reviewer(problem, col):
    """The problem when somebody has left."""
    stays = np.delete(np.arange(problem.shape[1]), col)
    pairs = problem.barred.pairs()
    pairs = pairs[pairs[:, 1] != col] - np.array([0, 1]) * (pairs[pairs[:, 1] != col][:, 1:] > col)
    scores = VectorScores(problem.scores._left, problem.scores._right[stays])
    return AssignmentProblem.of(scores, demand=problem.demand, load_max=problem.load_max[stays], conflicts=pairs), stays


@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(STALE), st.booleans())
def test_whatever_changed_and_however_stale_the_start_the_plan_is_as_good_as_from_scratch(seed, stale, priced):
    """People and submissions come and go, scores, loads, bars and locks change: same value, clean audit, same again."""
    before, after, rows, cols = changed(seed)
    start = carried(PricingSolver().solve(before), after.shape, rows, cols, stale, seed)
    solver = PricingSolver(candidates=2, dense_pairs=0 if priced else 10**6)
    cold, warm = solver.solve(after), solver.solve(after, start=start)
    report = audit(after, warm)
    assert report.clean, report.faults
    assert warm.status == cold.status
    assert warm.value == pytest.approx(cold.value, rel=1e-9, abs=1e-12)
    assert warm.unfilled.sum() + warm.below_min.sum() == cold.unfilled.sum() + cold.below_min.sum()
    if warm.status == Status.OPTIMAL:
        kept = [changes_of(start, found.pairs, after.shape).kept for found in (warm, cold)]
        assert kept[0] >= kept[1], "among equal plans the one that keeps more was there"
    assert solver.solve(after, start=start).pairs.tolist() == warm.pairs.tolist()


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_a_start_is_carried_into_the_unit_of_the_scores(unit):
    """Scores far from 1 are solved in another unit, and the prices of the start must follow them there."""
    rng = np.random.default_rng(3)
    case = {"demand": 2, "load_max": 3}
    problem = AssignmentProblem.of(DenseScores(rng.random((30, 25)) * unit), **case)
    first = solve(problem, TOTAL)
    again = solve(problem, TOTAL, start=Start.of(first, problem.shape))
    assert again.meta[START]["used"] and again.pairs.tolist() == first.pairs.tolist()
    assert again.rounds == 1


def test_nothing_changed_nothing_moves():
    """Not even where every plan is as good as every other: evenness gives way to what is there."""
    problem = AssignmentProblem.of(np.zeros((12, 9)), demand=2, load_max=4)
    odd = np.array([(row, (row // 2 + part) % 9) for row in range(12) for part in (0, 1)])
    start = Start.of(Start(odd, np.zeros(12), np.zeros(9)), problem.shape)
    assert solve(problem, TOTAL, start=start).meta[START]["kept"] == 24
    assert solve(problem, TOTAL).pairs.tolist() != PairSet(odd, problem.shape).pairs().tolist()


def test_somebody_leaves_a_venue_of_vectors_and_one_sweep_finds_the_new_plan(monkeypatch):
    """The list of pairs near the old prices answers all later questions; hardly a pair moves."""
    problem = vectors()
    first = PricingSolver(candidates=4, dense_pairs=0).solve(problem)
    leaver = int(np.argmax(first.reviewer_prices))
    after, stays = without_reviewer(problem, leaver)
    start = carried(first, after.shape, np.arange(120), stays)
    oracles = []
    init = RepairOracle.__init__
    monkeypatch.setattr(RepairOracle, "__init__", lambda self, *a, **k: (oracles.append(self), init(self, *a, **k))[1])
    found = PricingSolver(dense_pairs=0).solve(after, start=start)
    cold = PricingSolver(dense_pairs=0).solve(after)
    assert found.status == "optimal" and found.value == pytest.approx(cold.value, abs=1e-9)
    assert audit(after, found).clean
    assert found.meta[START] == {"used": True, "reason": ""} and oracles[0].sweeps == 1
    assert changes_of(start, found.pairs, after.shape).kept >= 330


def test_a_start_that_is_worth_nothing_is_given_up_and_says_so():
    """Prices that let every pair pass, or that nobody has, cost one look and no more."""
    problem = vectors(200, 180)
    cold = PricingSolver(candidates=4, dense_pairs=0).solve(problem)
    nothing = np.empty((0, 2), dtype=np.int64)
    for price, words in ((np.nan, "no prices"), (-50.0, "do not fit")):
        start = Start.of(Start(nothing, np.full(200, price), np.full(180, price)), problem.shape)
        found = solve_small(problem, start)
        assert not found.meta[START]["used"] and words in found.meta[START]["reason"]
        assert found.value == pytest.approx(cold.value, abs=1e-9) and found.gap == 0.0


def test_too_much_out_of_place_is_left_to_a_flow_from_scratch(monkeypatch):
    """Many searches one after the other take longer than one flow; the plan is the same."""
    problem = vectors()
    first = PricingSolver(candidates=4, dense_pairs=0).solve(problem)
    monkeypatch.setattr(balancing, "MOST_UNITS", 3)
    start = Start.of(replace(first, pairs=first.pairs[50:]), problem.shape)
    found = PricingSolver(candidates=4, dense_pairs=0).solve(problem, start=start)
    assert "from scratch" in found.meta[START]["reason"]
    assert found.value == pytest.approx(first.value, abs=1e-9) and audit(problem, found).clean


def solve_small(problem, start):
    """With few candidates and no pair active from the beginning."""
    return PricingSolver(candidates=4, dense_pairs=0).solve(problem, start=start)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_listed_pairs_answer_as_a_sweep_over_all_pairs_does(seed):
    """Prices rise and fall, a little and a lot; what lies above them is always found."""
    rng = np.random.default_rng(seed)
    scores = DenseScores(np.where(rng.random((60, 50)) < 0.05, np.nan, rng.random((60, 50))))
    skip = PairSet(np.argwhere(rng.random((60, 50)) < 0.05), (60, 50))
    u, w = np.full(60, 0.6) + 0.1 * rng.random(60), 0.3 * rng.random(50)
    listed = Listed(scores, skip, u, w, margin_for(scores, u, w, np.ones(60, dtype=bool)))
    for _ in range(4):
        move = rng.random(60) < rng.choice([0.03, 0.5])
        u = u - move * rng.normal(0.02, 0.1, 60)
        w = w - (rng.random(50) < 0.03) * rng.normal(0.02, 0.1, 50)
        pairs, excess = listed.above(u, w)
        expected, size, _ = scores.exceeding(u, w, 0.0, None, skip)
        assert sorted(map(tuple, pairs.tolist())) == sorted(map(tuple, expected.tolist()))
        assert excess.sum() == pytest.approx(size.sum())


def test_the_best_of_a_line_leaves_out_what_is_barred_or_unknown():
    """A new line is priced by pairs it may have."""
    scores = DenseScores(np.array([[0.9, np.nan, 0.5, 0.4]]))
    pairs, best = best_of(scores, PairSet([(0, 0)], (1, 4)), np.array([0]), np.zeros(4), 0, 1)
    assert pairs.tolist() == [[0, 2]] and best.tolist() == [0.5]
    pairs, best = best_of(scores, PairSet([(0, 0)], (1, 4)), np.array([0]), np.zeros(1), 1, 5)
    assert pairs.tolist() == [] and best.tolist() == [-np.inf]


def test_all_faults_of_a_start_are_named_together():
    """Its shape is the caller's to get right; what is in it is not."""
    problem = vectors(6, 6)
    with pytest.raises(InvalidProblemError) as caught:
        Start.of(Start(np.array([(0, 9)]), np.zeros(5), np.array(["a"] * 6)), problem.shape)
    assert len(caught.value.issues) == 3
    with pytest.raises(InvalidProblemError, match="must be a"):
        Start.of([(0, 1)], problem.shape)


def test_a_start_by_id_leaves_out_who_is_gone_and_knows_no_price_of_who_is_new():
    """Prices that are no numbers count as unknown too."""
    start = Start.by_id(
        [("p1", "a"), ("p2", "gone"), ("p0", "b")], {"p1": 0.5, "p2": "high"}, {"a": True, "b": float("inf")},
        ["p2", "p1"], ["b", "a", "new"],
    )  # fmt: skip
    assert start.pairs.tolist() == [[1, 1]]
    assert np.isnan(start.submission_prices).tolist() == [True, False]
    assert np.isnan(start.reviewer_prices).all()


def test_the_hash_of_a_start_knows_pairs_and_prices_and_not_their_order():
    """It stands in the record of the plan."""
    pairs, u, w = np.array([(0, 1), (1, 0)]), np.array([0.1, np.nan]), np.zeros(2)
    one = Start.of(Start(pairs, u, w), (2, 2)).digest()
    assert one == Start.of(Start(pairs[::-1], u, w), (2, 2)).digest()
    assert one != Start.of(Start(pairs[:1], u, w), (2, 2)).digest()
    assert one != Start.of(Start(pairs, u + 1, w), (2, 2)).digest()
