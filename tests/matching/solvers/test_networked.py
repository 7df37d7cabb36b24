"""Rules as nodes of the network against enumeration, the programs, and a dense sum of their prices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit
from matching.constraints.families import families_of
from matching.constraints.linearised import Linearised
from matching.constraints.problem import AssignmentProblem
from matching.errors import SolverError
from matching.generated import generated_problem
from matching.objectives import parse_objective
from matching.pairs import PairSet
from matching.plan.audit import audit
from matching.scores.base import DenseScores, VectorScores
from matching.solvers import choose, networked
from matching.solvers.base import Status
from matching.solvers.milp import RuleSolver
from matching.solvers.networked import NetworkSolver
from matching.solvers.pricing import PricingSolver
from tests.enumeration import every_plan
from tests.strategies import random_problem

TOTAL = parse_objective("total")
KINDS = ("locks", "conflicts", "unknown", "minima", "negative", "priced")
STARTS = ({"candidates": 1, "dense_pairs": 0}, {"candidates": 3, "dense_pairs": 0}, {})


def random_classes(rng, n):
    """A partition, one class, one within another, everybody, or each alone."""
    form = rng.integers(5)
    if form == 0:
        return np.eye(3)[rng.integers(0, 3, n)].T
    if form == 1:
        return (rng.random((1, n)) < 0.4).astype(float)
    if form == 2:
        outer = rng.random(n) < 0.6
        return np.stack([outer, outer & (rng.random(n) < 0.5)]).astype(float)
    return np.ones((1, n)) if form == 3 else np.eye(n)


def random_rules(rng, shape, priced, most=2):
    """Up to `most` rules a side that count single lines; of a side all speak of the same nested classes."""
    rules = []
    for axis in (0, 1):
        base = random_classes(rng, shape[1 - axis])
        for _ in range(rng.integers(0, most + 1)):
            mine = np.eye(shape[axis])[rng.permutation(shape[axis])[: rng.integers(1, shape[axis] + 1)]]
            other = base[rng.permutation(len(base))[: rng.integers(1, len(base) + 1)]]
            left, right = (mine, other) if axis == 0 else (other, mine)
            size = (len(left), len(right)) if rng.random() < 0.5 else (1, 1)
            lower = (rng.random(size) < rng.choice([0.0, 0.2, 0.6])).astype(float)
            upper = lower + rng.integers(0, 3, size) if rng.random() < 0.7 else np.full(size, float(NO_UPPER))
            price = float(rng.choice([0.05, 0.3, 1.0, 4.0])) if priced and rng.random() < 0.6 else None
            rules.append(GroupBound.of(f"rule {len(rules)}", left, right, lower=lower, upper=upper, price=price))
    return tuple(rules)


@st.composite
def network_problems(draw, size=None, enumerated=True):
    """A problem whose rules all count single lines."""
    seed, kinds = draw(st.integers(0, 2**32 - 1)), draw(st.frozensets(st.sampled_from(KINDS)))
    rng = np.random.default_rng(seed)
    shape = None if size is None else tuple(int(rng.integers(*size)) for _ in range(2))
    problem = random_problem(seed, sorted(kinds), shape, enumerated=enumerated)
    note(f"seed {seed}, kinds {sorted(kinds)}, shape {problem.shape}")
    return replace(problem, rules=random_rules(rng, problem.shape, "priced" in kinds))


def lacking(problem, solution):
    units = sum(
        float(abs(table).sum())
        for rule, table in zip(problem.rules, solution.rule_shortfall, strict=True)
        if rule.price is None
    )
    return float(solution.unfilled.sum() + solution.below_min.sum()) + units


def solved(problem, **options):
    """The solution with a clean audit and no gap; None where the programs must do it."""
    found = NetworkSolver(**options).solve(problem)
    if found is not None:
        report = audit(problem, found)
        assert report.clean, report.faults
        assert found.gap == report.gap == 0.0
        assert found.meta["solver"] == "flow+pricing"
    return found


@settings(max_examples=250, deadline=None)
@given(network_problems(), st.sampled_from(STARTS))
def test_the_network_agrees_with_enumeration_also_in_saying_infeasible(problem, start):
    """Both sides, nested and disjoint classes, prices, locks, minima, bars, unknown and negative scores, ties."""
    found = solved(problem, **start)
    if found is None:
        return
    plans = every_plan(problem)
    assert lacking(problem, found) == pytest.approx(plans.lacking, abs=1e-6)
    assert (found.status == Status.INFEASIBLE) == (plans.lacking > 1e-9)
    assert found.value == pytest.approx((plans.sums.sum(axis=1) - plans.cost).max(), abs=1e-7)


@settings(max_examples=40, deadline=None)
@given(network_problems(size=(6, 16), enumerated=False), st.sampled_from(STARTS))
def test_the_network_agrees_with_the_programs_at_mid_size(problem, start):
    """Where there are too many plans to count, both give the same value and lack the same."""
    found = solved(problem, **start)
    if found is None:
        return
    other = RuleSolver().solve(problem)
    assert found.status == other.status
    assert found.value == pytest.approx(other.value, abs=1e-7)
    assert lacking(problem, found) == pytest.approx(lacking(problem, other), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(network_problems())
def test_full_problems_are_never_left_to_the_programs(problem):
    """Falling back is for other rules and for what lacks something or is exceeded by locks."""
    if families_of(problem.rules) is not None and every_plan(problem).lacking == 0:
        assert solved(problem) is not None


def table(labels, n_classes):
    return np.eye(n_classes)[labels].T


def large_rules(n, rng, names):
    senior, institution, track = rng.random(n) < 0.4, rng.integers(0, n // 5, n), rng.integers(0, 5, n)
    student = ~senior & (rng.random(n) < 0.3)
    each = sparse.eye_array(n, format="csr")
    rules = {
        "senior": GroupBound.of("at least one senior", each, senior[None].astype(float), lower=1),
        "student": GroupBound.of("at most one student", each, student[None].astype(float), upper=1),
        "institution": GroupBound.of("one per institution", each, table(institution, n // 5), upper=1),
        "track": GroupBound.of("at most two of a track", table(track, 5), each, upper=2),
        "wish": GroupBound.of("rather two seniors", each, senior[None].astype(float), lower=2, price=0.3),
        "variety": GroupBound.of("rather one of a track", table(track, 5), each, upper=1, price=0.05),
        "tracks": GroupBound.of("somebody of every track", table(track, 5), each[: n // 20], lower=1, upper=3),
    }
    return tuple(rules[name] for name in names)


@pytest.mark.parametrize(
    "names",
    [("senior",), ("institution",), ("senior", "student"), ("track",), ("senior", "student", "track"),
     ("institution", "track"), ("tracks", "senior"), ("senior", "wish", "variety"), ("variety", "track", "student")],
)  # fmt: skip
@pytest.mark.parametrize("load", [3, 4])
def test_large_venues_get_what_the_programs_get(names, load):
    """Vectors, bids and bars, few first candidates: cells and pairs are found on the way."""
    n = 120
    problem = generated_problem(n, n, dim=16, load_max=load, rng=load)
    problem = replace(problem, rules=large_rules(n, np.random.default_rng(7), names))
    found, other = solved(problem, candidates=2, dense_pairs=0), RuleSolver().solve(problem)
    assert found is not None and found.status == other.status
    assert found.value == pytest.approx(other.value, abs=1e-6)
    assert lacking(problem, found) == pytest.approx(lacking(problem, other), abs=1e-6)


def test_only_broken_bounds_get_nodes():
    """Bounds of every submission and every institution are thousands; the plan without them breaks few."""
    n = 300
    problem = generated_problem(n, n, dim=32)
    problem = replace(problem, rules=large_rules(n, np.random.default_rng(1), ["institution"]))
    found = solved(problem)
    assert found is not None and 0 < found.meta["rule_nodes"] < n / 4
    assert found.value < PricingSolver().solve(replace(problem, rules=())).value


def test_rules_that_nothing_breaks_cost_nothing():
    """Then the plan is that of the same venue without them, to the pair."""
    problem = generated_problem(60, 60, dim=16)
    free = PricingSolver().solve(problem, rng=3)
    each = np.eye(60)
    rule = GroupBound.of("everybody at most three times", each, np.ones((1, 60)), upper=3)
    found = NetworkSolver().solve(replace(problem, rules=(rule,)), rng=3)
    assert found is not None and found.meta["rule_nodes"] == 0
    assert np.array_equal(found.pairs, free.pairs)


def bound(left, right, **options):
    return GroupBound.of("rule", left, right, **options)


FORMS = {
    "a class for each submission": (bound(np.eye(4), [[1, 1, 0, 0]], lower=1), True),
    "a partition for each submission": (bound(np.eye(4), [[1, 1, 0, 0], [0, 0, 1, 1]], upper=1), True),
    "some submissions": (bound(np.eye(4)[1:3], [[1, 1, 0, 0], [1, 0, 0, 0]], upper=1), True),
    "tracks for each reviewer": (bound([[1, 1, 0, 0], [0, 0, 1, 1]], np.eye(4), upper=1), True),
    "overlapping classes": (bound(np.eye(4), [[1, 1, 0, 0], [0, 1, 1, 0]], upper=1), False),
    "weights": (bound(2 * np.eye(4), [[1, 1, 0, 0]], upper=2), False),
    "a price": (bound(np.eye(4), [[1, 1, 0, 0]], lower=1, price=0.5), True),
    "halves": (bound(np.eye(4), [[1, 1, 0, 0]], upper=1.5), False),
    "classes on both sides": (bound([[1, 1, 0, 0]], [[1, 1, 0, 0]], upper=1), False),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_network_holds_is_told_from_what_it_does_not(form):
    """And the chair gets the same kind of answer either way."""
    rule, holds = FORMS[form]
    scores = np.arange(16.0).reshape(4, 4) % 7
    problem = AssignmentProblem.of(scores, demand=2, load_max=3, rules=[rule])
    assert (families_of(problem.rules) is not None) == holds
    found = choose.solve(problem, parse_objective("total"))
    assert found.meta["solver"] == ("flow+pricing" if holds else "highs")
    assert found.value == pytest.approx(RuleSolver().solve(problem).value)
    assert audit(problem, found, parse_objective("total")).clean


def test_classes_that_overlap_on_different_lines_are_a_network():
    """Seniority counts for the first submissions and the institution for the others: no line has both."""
    first = bound(np.eye(4)[:2], [[1, 1, 0, 0]], lower=1)
    second = bound(np.eye(4)[2:], [[0, 1, 1, 0], [1, 0, 0, 1]], upper=1)
    problem = AssignmentProblem.of(np.arange(16.0).reshape(4, 4) % 5, demand=2, load_max=3, rules=[first, second])
    assert families_of(problem.rules) is not None and solved(problem) is not None
    both = replace(problem, rules=(bound(np.eye(4), [[1, 1, 0, 0]], lower=1), second))
    assert families_of(both.rules) is None


def test_other_kinds_of_rules_are_none_of_a_network():
    """One rule of another kind sends all to the programs."""
    limit = PairLimit("pairs", np.array([0, 0]), np.array([[0, 0], [1, 1]]), np.array([1]), None, ("a",))
    problem = AssignmentProblem.of(np.eye(3), demand=1, load_max=2, rules=[bound(np.eye(3), np.ones((1, 3))), limit])
    assert families_of(problem.rules) is None


def test_locks_that_exceed_a_bound_are_left_to_the_programs():
    """What locks force counts as missing there; the network has no flow below nothing."""
    rule = bound(np.eye(3), [[1, 1, 0]], upper=1)
    problem = AssignmentProblem.of(np.ones((3, 3)), demand=2, load_max=3, locks=[(0, 0), (0, 1)], rules=[rule])
    assert NetworkSolver().solve(problem) is None
    found = choose.solve(problem, parse_objective("total"))
    assert found.meta["solver"] == "highs" and audit(problem, found).clean


def test_rules_that_contradict_each_other_are_left_to_the_programs():
    """A class that needs somebody and may have nobody: two prices on one node, which a node does not have."""
    rules = [bound(np.eye(2), [[1, 1, 0]], lower=1), bound(np.eye(2), [[1, 1, 0]], upper=0)]
    problem = AssignmentProblem.of(np.ones((2, 3)), demand=2, load_max=2, rules=rules)
    found = choose.solve(problem, parse_objective("total"))
    assert found.status == Status.INFEASIBLE and audit(problem, found).clean


def test_a_solver_that_gives_no_answer_is_followed_by_the_programs(monkeypatch):
    """The answer must not depend on which of the two could find it."""

    def refuse(*_):
        raise SolverError("no answer")

    monkeypatch.setattr(networked.Layered, "flow", refuse)
    problem = AssignmentProblem.of(np.eye(3), demand=1, load_max=1, rules=[bound(np.eye(3), [[0, 1, 1]], lower=1)])
    assert choose.solve(problem, parse_objective("total")).meta["solver"] == "highs"


def test_the_limit_before_any_plan_says_so():
    """And is not taken for infeasible."""
    problem = replace(generated_problem(30, 30, dim=8), rules=large_rules(30, np.random.default_rng(0), ["senior"]))
    assert choose.solve(problem, parse_objective("total"), time_limit=0.0).status == Status.LIMIT_WITHOUT_PLAN


def test_a_limit_after_a_plan_states_the_gap(monkeypatch):
    """A full plan that keeps every rule is handed out with what its prices prove."""
    n = 80
    problem = replace(generated_problem(n, n, dim=8), rules=large_rules(n, np.random.default_rng(0), ["institution"]))
    original = networked._Run._price_in

    def late(run, *rest):
        run.clock.limit = 0.0
        return original(run, *rest)

    monkeypatch.setattr(networked._Run, "_price_in", late)
    monkeypatch.setattr(networked, "FREE_ROUNDS", 1)
    found = NetworkSolver(candidates=5, dense_pairs=0).solve(problem)
    assert found is not None and found.status == Status.FEASIBLE_AT_LIMIT
    assert audit(problem, found).clean
    assert found.bound >= RuleSolver().solve(problem).value - 1e-9


def test_progress_rises_and_may_stop_the_run():
    """A cancelled run ends between two steps with the exception of whoever cancelled it."""
    problem = replace(generated_problem(60, 60, dim=8), rules=large_rules(60, np.random.default_rng(0), ["senior"]))
    seen = []
    NetworkSolver(dense_pairs=0).solve(problem, progress=seen.append)
    assert [one.fraction for one in seen] == sorted(one.fraction for one in seen) and seen[-1].fraction == 1.0

    class Stopped(Exception):
        pass

    def stop(entry):
        if entry.phase == "sweep":
            raise Stopped

    with pytest.raises(Stopped):
        NetworkSolver(dense_pairs=0).solve(problem, progress=stop)


def test_plans_that_tie_are_even_and_keep_rules_without_nodes():
    """Where all scores are equal the loads must differ by one at most, and one per institution must hold in it."""
    n = 40
    institution = np.arange(n) % 4
    rule = bound(np.eye(n), table(institution, 4), upper=1)
    senior = bound(np.eye(n), (np.arange(n) < 20)[None].astype(float), lower=1)
    problem = AssignmentProblem.of(np.ones((n, n)), demand=3, load_max=9, rules=[rule, senior])
    # the classes cross, so each rule by itself
    for one in (rule, senior):
        alone = replace(problem, rules=(one,))
        found = solved(alone)
        load = np.bincount(found.pairs[:, 1], minlength=n)
        assert load.max() - load.min() <= 1
        assert np.array_equal(found.pairs, NetworkSolver().solve(alone).pairs)
        assert not np.array_equal(found.pairs, NetworkSolver().solve(alone, rng=1).pairs)


def test_a_sweep_with_prices_of_classes_finds_what_a_dense_sum_finds():
    """Few classes go through a product, many through lists; both in single precision with an honest tolerance."""
    rng = np.random.default_rng(3)
    n, m = 150, 130
    scores = VectorScores(rng.standard_normal((n, 8)) / 3, rng.standard_normal((m, 8)) / 3)
    few = bound(np.eye(n), table(rng.integers(0, 3, m), 3), upper=1)
    many = bound(np.eye(n), table(rng.integers(0, 60, m), 60), upper=1)
    tracks = bound(table(rng.integers(0, 5, n), 5), np.eye(m), upper=1)
    groups = [
        (rule, sparse.random_array(rule.shape, density=0.3, rng=rng) - sparse.random_array(rule.shape, rng=rng))
        for rule in (few, many, tracks)
    ]
    dense = scores.values(*np.indices((n, m)).reshape(2, -1)).reshape(n, m)
    for rule, price in groups:
        dense = dense - rule.submissions.toarray().T @ price.toarray() @ rule.reviewers.toarray()
    linear = Linearised(scores, groups=groups)
    assert np.abs(linear.block(slice(0, n), slice(0, m)) - dense).max() < 1e-5
    u, w = rng.random(n) * 0.2, rng.random(m) * 0.2
    pairs, excess, complete = linear.exceeding(u, w, 0.0)
    over = dense - u[:, None] - w[None, :]
    assert complete and {tuple(pair) for pair in pairs.tolist()} == {tuple(p) for p in np.argwhere(over > 0).tolist()}
    assert excess == pytest.approx(over[tuple(pairs.T)])


def test_nobody_and_nothing_are_no_special_cases():
    """Empty pools, empty classes and no demand end as they do without a network."""
    for shape, demand in (((0, 3), []), ((2, 0), [1, 0]), ((2, 3), [0, 0])):
        rule = bound(np.eye(shape[0]), np.zeros((1, shape[1])), lower=1)
        problem = AssignmentProblem.of(DenseScores(np.zeros(shape)), demand=demand, load_max=1, rules=[rule])
        found, other = choose.solve(problem, parse_objective("total")), RuleSolver().solve(problem)
        assert found.status == other.status and lacking(problem, found) == lacking(problem, other)
        assert audit(problem, found).clean


@pytest.mark.parametrize("price", [0.1, 0.6, 5.0])
def test_a_bound_at_a_price_is_missed_where_that_pays(price):
    """A senior who is worth 0.5 less than the best is taken where the rule is dearer, and the cost is in the value."""
    scores = np.array([[1.0, 0.5], [0.2, 0.4]])
    rule = bound(np.eye(2)[:1], [[0, 1]], lower=1, price=price)
    problem = AssignmentProblem.of(scores, demand=[1, 0], load_max=1, rules=[rule])
    found = solved(problem)
    assert found.value == pytest.approx(max(1.0 - price, 0.5))
    assert found.rule_shortfall[0].toarray().tolist() == [[-1.0 if price < 0.5 else 0.0]]


def test_locks_may_exceed_a_bound_at_a_price():
    """Every further pair of the class costs as much again; the network pays from the first."""
    rule = bound(np.eye(2), [[1, 1, 1, 0]], upper=1, price=0.5)
    scores = np.array([[0.0, 0.0, 0.9, 0.6], [0.1, 0.2, 0.3, 0.4]])
    problem = AssignmentProblem.of(scores, demand=[3, 1], load_max=2, locks=[(0, 0), (0, 1)], rules=[rule])
    found = solved(problem)
    assert found.value == pytest.approx(0.6 + 0.4 - 0.5)
    assert found.value == pytest.approx(RuleSolver().solve(problem).value)


def test_many_plans_that_tie_do_not_lay_out_bounds_one_by_one():
    """With three levels of scores each flow breaks other bounds than the last; those it might break come along."""
    n = 200
    rng = np.random.default_rng(0)
    scores = rng.choice([0.0, 0.5, 1.0], (n, n), p=[0.8, 0.15, 0.05])
    institution = bound(np.eye(n), table(rng.integers(0, 20, n), 20), upper=1)
    track = bound(table(rng.integers(0, 8, n), 8), np.eye(n), upper=1, price=0.1)
    problem = AssignmentProblem.of(scores, demand=3, load_max=4, rules=[institution, track])
    found = solved(problem, dense_pairs=0)
    assert found.rounds <= 12


def test_a_bound_that_is_none_is_never_priced():
    """Refined prices left 8e-14 on classes with a lower bound alone; times "no upper bound" that was a gap of 2e-4."""
    for seed in range(60, 130):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 8)), int(rng.integers(3, 7))
        scores = np.round(rng.random((n, m)), 3)
        senior = (rng.random((1, m)) < 0.5).astype(float)
        rule = GroupBound.of("senior", sparse.eye_array(n), senior, lower=1)
        problem = AssignmentProblem.of(scores, demand=2, load_max=3, rules=[rule])
        found = choose.solve(problem, TOTAL)
        assert audit(problem, found, TOTAL).clean and found.gap == 0.0
        assert all(table.data.max(initial=0.0) <= 0.0 for proof in found.proofs for table in proof.rule_prices)


@pytest.mark.parametrize("price", [1e-10, 1e-9, 1e-8, 1e-7])
def test_a_tiny_price_is_never_exceeded(price):
    """A price of a class beyond that of its rule proves nothing, were it by rounding alone."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rule = GroupBound.of("few", sparse.eye_array(5), random_classes(rng, 5), upper=0, price=price)
        problem = AssignmentProblem.of(rng.random((5, 5)), demand=1, load_max=2, rules=[rule])
        found = choose.solve(problem, TOTAL)
        assert audit(problem, found, TOTAL).clean and found.gap == 0.0
        assert all(abs(table.data).max(initial=0.0) <= price for table in found.proofs[0].rule_prices)


@pytest.mark.parametrize("price", [1e3, 1e5, 1e7])
def test_prices_far_above_the_scores_are_left_to_the_programs(price):
    """The flow's integers would have too few digits left for the scores."""
    labels = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    rules = [
        GroupBound.of("two", sparse.eye_array(2), labels, lower=2),
        GroupBound.of("one", np.array([[1.0, 0.0]]), labels[[0]], lower=1, price=price),
    ]
    problem = AssignmentProblem.of(np.array([[2.5, 2.4], [0.4, 1.6]]), demand=1, load_max=4, rules=rules)
    assert NetworkSolver().solve(problem) is None
    found = choose.solve(problem, TOTAL)
    assert found.status == Status.INFEASIBLE and audit(problem, found, TOTAL).clean


def test_b33_unwanted_papers_are_shared_under_rules_too():
    """A rule that binds nothing must not put both on one person."""
    scores = np.array([[1, 1], [1, 1], [-1, -1], [-1, -1.0]])
    rule = GroupBound.of("two", np.ones((1, 4)), sparse.eye_array(2), upper=2)
    unwanted = [(2, 0), (2, 1), (3, 0), (3, 1)]
    for rng in range(20):
        problem = AssignmentProblem.of(scores, demand=1, load_max=2, rules=[rule], unwanted=unwanted)
        rows, cols = choose.solve(problem, TOTAL, rng=rng).pairs.T
        assert sorted(cols[rows > 1].tolist()) == [0, 1]
    some = np.random.default_rng(0)
    unwanted = np.argwhere(some.random((12, 12)) < 0.5)
    rule = GroupBound.of("four", np.ones((1, 12)), sparse.eye_array(12), upper=4)
    problem = AssignmentProblem.of(np.zeros((12, 12)), demand=2, load_max=4, rules=[rule], unwanted=unwanted)
    pairs = choose.solve(problem, TOTAL).pairs
    assert not PairSet(unwanted, (12, 12)).contains(pairs[:, 0], pairs[:, 1]).any()
    assert np.bincount(pairs[:, 1]).tolist() == [2] * 12


@pytest.mark.parametrize("price", [1.0, 300.0, 1e3, 1e4, 1e5, 1e6])
def test_a_price_like_a_law_does_not_hide_that_reviews_are_missing(price):
    """Somebody will write 1000000 for "nearly hard"; the proof of what is missing must stand above that."""
    rules = [
        GroupBound.of("two", sparse.eye_array(1), np.ones((1, 5)), lower=2, price=price),
        GroupBound.of("one", sparse.eye_array(1), np.ones((1, 5)), upper=1),
    ]
    scores = np.array([[0.8, 0.6, 0.1, 0.1, 0.7]])
    problem = AssignmentProblem.of(scores, demand=2, load_max=[0, 1, 0, 0, 1], rules=rules)
    found = choose.solve(problem, TOTAL)
    report = audit(problem, found, TOTAL)
    assert report.clean, report.faults
    assert found.status == Status.INFEASIBLE and found.unfilled.tolist() == [1]
    assert found.value == pytest.approx(0.7 - price, abs=1e-6)
