"""The exact solver against enumeration, an integer program and its own audit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import matching
from matching.constraints.problem import AssignmentProblem
from matching.plan.audit import audit
from matching.scores.base import DenseScores, VectorScores
from matching.solvers import oracle, state
from matching.solvers.base import Status
from matching.solvers.pricing import PricingSolver
from tests.oracles import by_enumeration, by_integer_program
from tests.shared import SHARED, needs_shared
from tests.strategies import problems


def solve(case, **options):
    scores, rest = case["scores"], {key: value for key, value in case.items() if key != "scores"}
    problem = AssignmentProblem.of(scores, **rest)
    solution = PricingSolver(**options).solve(problem)
    report = audit(problem, solution)
    assert report.clean, report.faults
    return solution


@settings(max_examples=300, deadline=None)
@given(problems(), st.booleans())
def test_the_solver_agrees_with_enumeration_also_in_saying_infeasible(case, priced):
    """Every combination of bounds, bars, locks and ties, from all pairs and from one candidate a side."""
    solution = solve(case, candidates=1, dense_pairs=0 if priced else 10**6)
    missing, value = by_enumeration(**case)
    assert int(solution.unfilled.sum() + solution.below_min.sum()) == missing
    assert (solution.status == Status.INFEASIBLE) == (missing > 0)
    assert solution.value == pytest.approx(value, abs=1e-9)
    assert solution.gap == 0.0


@pytest.mark.parametrize("seed", range(12))
def test_the_solver_agrees_with_an_integer_program_at_mid_size(seed):
    """Thirty by twenty with conflicts and minima, where enumeration is out of reach."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random((30, 20)), seed % 4 + 1)
    case = {
        "scores": scores,
        "demand": rng.integers(0, 4, 30),
        "load_max": rng.integers(1, 6, 20),
        "load_min": rng.integers(0, 2, 20),
        "conflicts": np.argwhere(rng.random((30, 20)) < 0.2),
    }
    missing, value = by_integer_program(**case)
    for dense in (0, 10**6):
        solution = solve(case, candidates=2, dense_pairs=dense)
        assert int(solution.unfilled.sum() + solution.below_min.sum()) == missing
        assert solution.value == pytest.approx(value, abs=1e-7)


@needs_shared
@pytest.mark.parametrize("name", sorted(path.stem for path in (SHARED / "data" / "instances").glob("*.npz")))
def test_real_instances_reach_the_recorded_totals_with_gap_0(name):
    """The eleven real instances; the totals were found by other solvers."""
    expected = json.loads((SHARED / "data" / "expected_totals.json").read_text())[name]
    with np.load(SHARED / "data" / "instances" / f"{name}.npz") as data:
        solution = matching.assign(
            data["scores"],
            demand=data["demand"],
            load_max=data["load_max"],
            load_min=data.get("load_min"),
            conflicts=data["conflict_idx"],
        )
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(expected["total"], abs=1e-4)
    assert solution.gap == 0.0
    assert len(solution.pairs) == expected["assigned"]


def topic_vectors(n, seed, dim=32, topics=40):
    """Unit vectors around a few topics, as texts of one conference are."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((topics, dim))
    vectors = rng.dirichlet(np.full(topics, 0.05), n) @ centres + 0.5 * rng.standard_normal((n, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def test_pricing_from_few_candidates_finds_the_optimum_over_all_pairs():
    """Vectors without a matrix, 16 candidates a side: equal to the solve that sees every pair."""
    left, right = topic_vectors(300, 1), topic_vectors(260, 2)
    operator = VectorScores(left, right)
    problem = AssignmentProblem.of(operator, demand=3, load_max=4)
    priced = PricingSolver(16, dense_pairs=0).solve(problem)
    exact = left.astype(np.float64) @ right.T.astype(np.float64)
    whole = matching.assign(exact, demand=3, load_max=4)
    assert priced.value == pytest.approx(whole.value, abs=1e-6)
    assert priced.meta["active_pairs"] < exact.size / 4
    report = audit(problem, priced)
    assert report.clean and report.improving_pairs == 0


def test_every_form_of_scores_gives_the_same_plan_value():
    """Dense float32 and float64, sparse with missing zeros, and an operator."""
    rng = np.random.default_rng(3)
    matrix = np.where(rng.random((12, 9)) < 0.6, np.round(rng.random((12, 9)), 2), 0.0)
    values = {
        matching.assign(form, demand=2, load_max=4).value
        for form in (matrix, matrix.tolist(), sparse.csr_array(matrix), sparse.coo_matrix(matrix), DenseScores(matrix))
    }
    assert max(values) - min(values) < 1e-12
    assert matching.assign(matrix.astype(np.float32), demand=2, load_max=4).value == pytest.approx(
        values.pop(), abs=1e-5
    )


@settings(max_examples=60, deadline=None)
@given(problems(with_locks=False), st.integers(0, 3))
def test_a_higher_load_max_never_lowers_the_optimum(case, which):
    """More room is never worse: fewer missing, or as few and at least the value."""
    before = solve(case)
    col = which % len(case["load_max"])
    case = case | {"load_max": [most + (at == col) for at, most in enumerate(case["load_max"])]}
    after = solve(case)
    missing = [int(found.unfilled.sum() + found.below_min.sum()) for found in (before, after)]
    assert missing[1] <= missing[0]
    if missing[0] == missing[1]:
        assert after.value >= before.value - 1e-9


def test_an_operator_may_leave_pairs_unknown_and_they_are_never_used():
    """NaN from an operator is a fact of its own: not 0, not barred by a conflict, and not assignable."""
    scores = np.array([[np.nan, 0.1], [np.nan, 0.9]])
    solution = matching.assign(DenseScores(scores), demand=1, load_max=1)
    assert solution.status == "infeasible"
    assert solution.pairs.tolist() == [[1, 1]]


def test_empty_and_degenerate_sizes_are_solved():
    """No submissions, no reviewers, nothing wanted: an optimal empty plan; wanting from nobody: infeasible."""
    assert matching.assign(np.empty((0, 3)), demand=np.empty(0, int), load_max=1).status == "optimal"
    assert matching.assign(np.empty((0, 0)), demand=0, load_max=1).pairs.shape == (0, 2)
    assert matching.assign(np.ones((2, 2)), demand=0, load_max=1).pairs.shape == (0, 2)
    lonely = matching.assign(np.empty((2, 0)), demand=1, load_max=np.empty(0, int))
    assert lonely.status == "infeasible" and lonely.unfilled.tolist() == [1, 1]


def test_huge_and_tiny_scores_keep_their_order():
    """Scores are scaled to integers; neither 1e12 nor 1e-12 as a unit may lose the optimum."""
    base = np.array([[0.9, 0.5], [0.8, 0.1]])
    for unit in (1e-12, 1.0, 1e12):
        solution = matching.assign(base * unit, demand=1, load_max=1)
        assert sorted(map(tuple, solution.pairs.tolist())) == [(0, 1), (1, 0)]
        assert solution.value == pytest.approx(1.3 * unit, rel=1e-9)


@pytest.mark.parametrize("limit", [1e-9, 1e-6])
def test_a_limit_that_comes_before_any_plan_is_said_as_such(limit):
    """Not infeasible, not optimal, no pairs."""
    solution = matching.assign(np.random.default_rng(0).random((60, 40)), demand=2, load_max=6, time_limit=limit)
    assert solution.status == "limit_without_plan"
    assert len(solution.pairs) == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"demand": -1}, "invalid-problem"),
        ({"demand": 1.5}, "invalid-problem"),
        ({"demand": [1]}, "invalid-problem"),
        ({"load_max": "six"}, "invalid-problem"),
        ({"load_max": [1, True]}, "invalid-problem"),
        ({"load_min": 3, "load_max": 2}, "invalid-problem"),
        ({"conflicts": [(0, 5)]}, "invalid-problem"),
        ({"conflicts": [0, 1, 2]}, "invalid-problem"),
        ({"conflicts": [(0.5, 1.0)]}, "invalid-problem"),
        ({"conflicts": [(0, 1)], "locks": [(0, 1)]}, "invalid-problem"),
        ({"locks": [(0, 0), (0, 1)]}, "invalid-problem"),
        ({"objective": "happiness"}, "invalid-params"),
        ({"objective": []}, "invalid-params"),
        ({"time_limit": 0}, "invalid-params"),
        ({"time_limit": float("nan")}, "invalid-params"),
        ({"rng": -1}, "invalid-params"),
        ({"rng": "seed"}, "invalid-params"),
        ({"scores": [[0.1, "x"], [0.2, 0.3]]}, "invalid-scores"),
        ({"scores": [[0.1], [0.2, 0.3]]}, "invalid-scores"),
        ({"scores": [0.1, 0.2]}, "invalid-scores"),
        ({"scores": [[0.1, float("inf")], [0.2, 0.3]]}, "invalid-scores"),
        ({"scores": [[1j, 0.1], [0.2, 0.3]]}, "invalid-scores"),
        ({"scores": None}, "invalid-scores"),
    ],
)
def test_bad_input_is_refused_with_a_stable_code(arguments, code):
    """Never a crash from numpy, never a silent cast."""
    call = {"scores": [[0.1, 0.2], [0.3, 0.4]], "demand": 1, "load_max": 2} | arguments
    with pytest.raises(matching.MatchingError) as caught:
        matching.assign(call.pop("scores"), **call)
    assert caught.value.code == code


@pytest.mark.parametrize("n", [120, 700])
def test_conflicts_among_the_best_pairs_do_not_hide_the_pairs_behind_them(n):
    """Each submission's best 59 people are barred; a cut of what a sweep returns must not be full of them."""
    place = np.arange(n)
    near = np.abs(place[:, None] - place) < 30
    scores = -np.abs(place[:, None] - place) / n + 1e-3 * np.random.default_rng(0).random((n, n))
    problem = AssignmentProblem.of(scores, demand=3, load_max=3, conflicts=np.argwhere(near))
    solution = PricingSolver(dense_pairs=0).solve(problem)
    report = audit(problem, solution)
    assert solution.status == "optimal" and solution.gap == 0.0 and report.clean, report.faults
    barred = np.where(near, -10.0, scores)
    assert solution.value == pytest.approx(matching.assign(barred, demand=3, load_max=3).value, abs=1e-7)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_pricing_is_exact_with_many_conflicts_and_more_demand_than_a_round_adds(seed, candidates):
    """Mid-size problems in which most pairs are barred or demand exceeds what a sweep returns for a row."""
    rng = np.random.default_rng(seed)
    n_submissions, n_reviewers = rng.integers(5, 40, 2)
    scores = np.round(rng.random((n_submissions, n_reviewers)), rng.integers(1, 5))
    problem = AssignmentProblem.of(
        scores,
        demand=rng.integers(0, 30, n_submissions) if rng.random() < 0.3 else rng.integers(0, 4, n_submissions),
        load_max=rng.integers(0, n_submissions, n_reviewers),
        conflicts=np.argwhere(rng.random(scores.shape) < rng.choice([0.0, 0.5, 0.9])),
    )
    priced = PricingSolver(candidates, dense_pairs=0).solve(problem)
    whole = PricingSolver(dense_pairs=10**6).solve(problem)
    assert audit(problem, priced).clean
    assert priced.status == whole.status
    assert priced.unfilled.sum() == whole.unfilled.sum()
    assert priced.value == pytest.approx(whole.value, abs=1e-7)


class Sleepless(VectorScores):
    """Scores that take their time, so that a limit can fall at any step."""

    def __init__(self, left, right, clock):
        super().__init__(left, right)
        self.clock = clock

    def block(self, rows, cols):
        self.clock.now += 1.0
        return super().block(rows, cols)


@pytest.mark.parametrize("limit", [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 8.5, 12.5])
def test_a_limit_at_any_step_ends_in_a_stated_way(limit, monkeypatch):
    """Between rounds too: a plan with its gap or no plan, and the audit agrees; never a crash."""

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr("matching.solvers.clock.time", clock)
    left = topic_vectors(200, 1, topics=5)
    scores = Sleepless(left, topic_vectors(150, 2, topics=5), clock)
    problem = AssignmentProblem.of(scores, demand=3, load_max=4)
    solution = PricingSolver(3, dense_pairs=0).solve(problem, time_limit=limit)
    report = audit(problem, solution)
    assert report.clean, report.faults
    assert solution.status in ("optimal", "feasible_at_limit", "limit_without_plan")
    if solution.status == "feasible_at_limit":
        assert solution.gap > 0 and np.isfinite(solution.bound) and len(solution.pairs) == 600


def test_demand_beyond_everything_is_infeasible_and_still_proven():
    """A slip of the keyboard asks for a hundred million reviews; nothing may overflow or cancel."""
    for demand in (10**4, 10**7, 10**8, 2**31 - 1):
        solution = matching.assign([[0.9, 0.2], [0.5, 0.4]], demand=demand, load_max=1)
        assert solution.status == "infeasible" and solution.gap == 0.0
        assert solution.unfilled.tolist() == [demand - 1, demand - 1] or solution.unfilled.sum() == 2 * demand - 2


@pytest.mark.parametrize(
    "scores",
    [
        [[1e308, -1e308], [0, 0]],
        DenseScores(np.array([[np.inf, 0.0], [0.0, 0.0]])),
        np.ma.masked_array([[0.5, 0.2], [0.1, 0.9]], mask=[[True, False], [False, False]]),
        np.array([[0.5, 0.2], [0.1, 0.9]], dtype=object),
    ],
)
def test_scores_that_cannot_be_represented_are_refused_in_our_words(scores):
    """Too far apart, infinite inside an operator, masked, or not numbers."""
    with pytest.raises(matching.MatchingError):
        matching.assign(scores, demand=1, load_max=1)


def test_tiny_scores_are_only_another_unit():
    """1e-200 is a number like any other."""
    solution = matching.assign(np.array([[9e-201, 5e-201], [8e-201, 1e-201]]), demand=1, load_max=1)
    assert sorted(map(tuple, solution.pairs.tolist())) == [(0, 1), (1, 0)]


def test_sets_of_pairs_are_pairs_and_booleans_are_not():
    """`{(0, 1)}` is how people write conflicts in Python; True is no row number."""
    scores = [[0.9, 0.5], [0.8, 0.1]]
    assert (0, 0) not in set(
        map(tuple, matching.assign(scores, demand=1, load_max=1, conflicts={(0, 0)}).pairs.tolist())
    )
    assert matching.assign(scores, demand=1, load_max=1, conflicts=set()).status == "optimal"
    for bad in ([(True, 0)], [(0, 1, 2)], "ab", 5):
        with pytest.raises(matching.MatchingError):
            matching.assign(scores, demand=1, load_max=1, conflicts=bad)


def test_numpy_scalars_are_numbers():
    """Options come out of arrays as often as out of keyboards."""
    solution = matching.assign(
        np.eye(3), demand=np.int64(1), load_max=np.int32(2), rng=np.int64(3), time_limit=np.float32(60)
    )
    assert solution.status == "optimal"
    assert matching.Params(rng=np.int64(3), n_alternates=np.int32(1), time_limit=np.float64(2)).rng == 3


@settings(max_examples=150, deadline=None)
@given(problems(largest=6), st.integers(1, 2))
def test_pairs_that_are_dropped_and_priced_in_again_change_no_optimum(case, candidates):
    """From one candidate a side, a pair a line kept: what is forgotten too early is found again by the sweep."""
    scores, rest = case["scores"], {key: value for key, value in case.items() if key != "scores"}
    problem = AssignmentProblem.of(scores, **rest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "DROP_FROM", 1)
        priced = PricingSolver(candidates, dense_pairs=1).solve(problem)
        report = audit(problem, priced)
    whole = PricingSolver().solve(problem)
    assert report.clean, report.faults
    assert priced.status == whole.status and priced.gap == whole.gap == 0.0
    assert priced.value == pytest.approx(whole.value, abs=1e-9)
    assert priced.unfilled.sum() + priced.below_min.sum() == whole.unfilled.sum() + whole.below_min.sum()


def test_dropping_happens_and_the_optimum_over_vectors_stays():
    """The same at a size where many pairs come and go, with the number of pairs that are left."""
    problem = AssignmentProblem.of(VectorScores(topic_vectors(220, 3), topic_vectors(200, 4)), demand=3, load_max=4)
    kept = PricingSolver(4, dense_pairs=0).solve(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "DROP_FROM", 2)
        patch.setattr(oracle, "LAST_DROP", 3)
        dropped = PricingSolver(4, dense_pairs=0).solve(problem)
    assert dropped.value == pytest.approx(kept.value, abs=1e-6)
    assert dropped.meta["active_pairs"] < kept.meta["active_pairs"]
    assert audit(problem, dropped).clean


def test_what_is_missing_is_proven_also_where_a_first_flow_found_out_late(monkeypatch):
    """Load minima that cannot be met, seen only after the search began with a small price for missing reviews."""
    monkeypatch.setattr(state, "DROP_FROM", 1)
    problem = AssignmentProblem.of(
        np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0]]), demand=[1, 0], load_max=[0, 1, 2], load_min=[0, 0, 2]
    )
    found = PricingSolver(1, dense_pairs=1).solve(problem)
    report = audit(problem, found)
    assert report.clean, report.faults
    assert found.status == "infeasible" and found.below_min.tolist() == [0, 0, 1]
