"""Where a search starts when the venue is too large to order its lines."""

import numpy as np
import pytest

from matching.constraints.problem import AssignmentProblem
from matching.generated import generated_problem
from matching.pairs import PairSet
from matching.plan.audit import audit, require_clean
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores import candidates
from matching.scores.base import VectorScores
from matching.scores.candidates import top_by_threshold
from matching.scores.operator import AffinityOperator, Signal
from matching.scores.textscores import TextScores
from matching.solvers.oracle import Oracle
from matching.solvers.pricing import PricingSolver

K = 6


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """So that a venue of some hundred lines is a large one."""
    monkeypatch.setattr(candidates, "SAMPLE", 64)


def exact(scores):
    rows, cols = (part.ravel() for part in np.indices(scores.shape))
    return scores.values(rows, cols).reshape(scores.shape)


def test_candidates_are_lawful_and_about_k_a_line():
    """Bids included; each pair once, in order, and no more than k beyond what the other side brings."""
    problem = generated_problem(400, 300, dim=24, conflicts=0.1, bids=0.05)
    scores = problem.scores
    pairs = top_by_threshold(scores, K, problem.barred, np.random.default_rng(0))
    assert not problem.barred.contains(*pairs.T).any()
    assert np.array_equal(pairs, np.unique(pairs, axis=0))
    assert len(pairs) <= K * sum(scores.shape)
    value = exact(scores)
    value[problem.barred.rows(), problem.barred.indices] = -np.inf
    chosen = np.zeros(scores.shape, dtype=bool)
    chosen[tuple(pairs.T)] = True
    for picked, lines in ((chosen, value), (chosen.T, value.T)):
        assert K / 2 < picked.sum(axis=1).mean() < 4 * K
        best = np.argsort(-lines, axis=1)[:, :2]
        # read off 64 lines a threshold is rough; off 4096, as it is meant, next to none of these are missed
        assert np.take_along_axis(picked, best, axis=1).mean() > 0.7


def test_no_line_is_flooded_by_what_its_sample_did_not_show():
    """The sample of every submission holds the poor half of the reviewers only, so the good half exceeds it whole."""
    rng = np.random.default_rng(0)
    left = np.abs(rng.normal(size=(200, 3)))
    right = np.concatenate([np.full((150, 3), 0.1), np.ones((150, 3))]) + rng.random((300, 3)) / 100
    scores = VectorScores(left, right)

    class First:
        def choice(self, most, size, replace):
            return np.arange(size)

    pairs = top_by_threshold(scores, K, PairSet(None, scores.shape), First())
    assert len(pairs) <= K * sum(scores.shape)


def test_small_venues_order_their_lines_instead():
    rng = np.random.default_rng(0)
    scores = VectorScores(rng.normal(size=(100, 4)), rng.normal(size=(500, 4)))
    barred = PairSet(None, scores.shape)
    ours = top_by_threshold(scores, K, barred, np.random.default_rng(5))
    np.testing.assert_array_equal(ours, scores.top_pairs(K, barred, np.random.default_rng(5)))


def test_nothing_is_lost_where_all_pairs_tie():
    """No pair exceeds a threshold that all of them have; the search must still find the plan."""
    scores = VectorScores(np.ones((150, 2)), np.ones((140, 2)))
    problem = AssignmentProblem.of(scores, demand=2, load_max=3)
    pairs = top_by_threshold(scores, K, problem.barred, np.random.default_rng(0))
    assert pairs.shape[1] == 2
    solution = PricingSolver(K, dense_pairs=0).solve(problem)
    assert solution.status == "optimal" and solution.value == pytest.approx(600.0)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_does_not_depend_on_how_the_search_starts(seed, monkeypatch):
    """By thresholds, by order, and from all pairs."""
    problem = generated_problem(200, 180, dim=12, conflicts=0.05, bids=0.02, rng=seed)
    by_threshold = PricingSolver(4, dense_pairs=0).solve(problem)
    monkeypatch.setattr(candidates, "SAMPLE", 4096)
    by_order = PricingSolver(4, dense_pairs=0).solve(problem)
    whole = PricingSolver().solve(problem)
    assert by_threshold.value == pytest.approx(whole.value, abs=1e-6)
    assert by_order.value == pytest.approx(whole.value, abs=1e-6)
    assert audit(problem, by_threshold).clean and audit(problem, by_order).clean


def test_prices_of_a_sample_choose_candidates_for_everybody():
    """Half as many as were asked for, lawful, and nearly all pairs of the best plan are among them.

    A sample of 64 lines is rough; at ten thousand a side 4,096 of them find 98 % where scores alone find 78 %.
    """
    problem = generated_problem(400, 320, dim=24)
    best = PricingSolver().solve(problem)
    state = Oracle(problem, candidates=2 * K, dense_pairs=0).state
    opened = PairSet(np.column_stack([state.rows, state.cols]), problem.shape)
    assert len(opened) <= K * sum(problem.shape)
    assert not problem.barred.contains(state.rows, state.cols).any()
    assert opened.contains(*best.pairs.T).mean() > 0.85


def test_a_sample_too_tight_to_be_served_still_opens():
    """Its missing reviews have the price of many scores, and say nothing about anybody else."""
    problem = generated_problem(400, 300, dim=24, demand=3, load_max=4)
    solution = PricingSolver(dense_pairs=0).solve(problem)
    assert solution.value == pytest.approx(PricingSolver().solve(problem).value, abs=1e-9)
    assert audit(problem, solution).clean


def test_text_affinities_in_a_file_begin_with_the_prices_of_a_sample_as_well(monkeypatch):
    """Also where somebody has no text and some pairs tie: the plan is as good as from every pair."""
    monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    rng = np.random.default_rng(5)
    words = [f"w{at}ism" for at in range(60)]

    def text(at):
        return "" if at % 40 == 7 else " ".join(rng.choice(words, 12))

    papers = [Submission(f"p{at}", title=text(at)) for at in range(150)]
    people = [Reviewer(f"r{at}", publications=(Publication(f"q{at}", text(at)),)) for at in range(140)]
    scores = TextScores.fit(papers, people)
    for allow_unknown in (True, False):
        affinity = AffinityOperator(
            scores.shape, [Signal("text", 1.0, scores, default=scores.mean)], allow_unknown=allow_unknown
        )
        assert affinity.graded is allow_unknown
        problem = AssignmentProblem.of(affinity, demand=[0 if at % 40 == 7 else 2 for at in range(150)], load_max=3)
        found = PricingSolver(candidates=4, dense_pairs=0).solve(problem)
        plain = PricingSolver(dense_pairs=10**6).solve(problem)
        assert found.status == plain.status == "optimal" and found.gap == 0.0
        assert found.value == pytest.approx(plain.value, abs=1e-9) and require_clean(problem, found).clean
