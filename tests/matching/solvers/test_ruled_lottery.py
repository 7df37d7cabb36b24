"""Lotteries and worst cases under rules: against linear programs over every lawful plan, and on paper."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from matching import assign
from matching.constraints.bounds import GroupBound, PairLimit
from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError
from matching.objectives import Wish, parse_objective
from matching.plan.audit import audit
from matching.plan.record import proofs_of
from matching.scores.base import DenseScores
from matching.solvers.base import Status
from matching.solvers.choose import solve
from matching.solvers.perturbed import PerturbedSolver
from matching.solvers.randomised import RandomisedSolver
from matching.solvers.robust import RobustSolver
from matching.solvers.sampling import draw_plan
from tests.enumeration import every_plan
from tests.strategies import random_problem, ruled_problems

MOST_PLANS = 2_000
CAPS = (0.34, 0.5, 0.7, 1.0)
ALLOWED = [HealthCheck.filter_too_much, HealthCheck.too_slow]
SOME = settings(max_examples=40, deadline=None, suppress_health_check=ALLOWED)
FEW = settings(SOME, max_examples=20)


class Every:
    """The largest value of a lottery over all lawful plans, by a linear program with one column a plan."""

    def __init__(self, problem, cap):
        self.plans = every_plan(problem)
        self.taken = self.plans.taken.reshape(len(self.plans.taken), -1).T.astype(float)
        self.value = (np.nan_to_num(self.plans.scores) * self.plans.taken).sum(axis=(1, 2)) - self.plans.cost
        most = np.array(np.broadcast_to(cap, problem.shape), dtype=float)
        most[problem.locked[:, 0], problem.locked[:, 1]] = 1.0
        self.most = most.ravel()

    def best(self, beta=0.0):
        """(value reached, bound) over lotteries, the squares by tangents; None where none keeps the caps."""
        count, pairs = len(self.value), len(self.most)
        limits = [np.hstack([self.taken, np.zeros((pairs, pairs))])]
        right = [self.most]
        cost = np.concatenate([-self.value, np.full(pairs, beta)])
        one = np.concatenate([np.ones(count), np.zeros(pairs)])[None]
        reached = -np.inf
        for at in [np.full(pairs, a) for a in np.linspace(0.0, 1.0, 9)] if beta else []:
            limits.append(np.hstack([2 * at[:, None] * self.taken, -np.eye(pairs)]))
            right.append(at**2)
        for _ in range(60):
            answer = linprog(
                cost, np.vstack(limits), np.concatenate(right), one, np.ones(1), bounds=(0, None), method="highs"
            )
            if answer.status == 2:
                return None
            weights, chance = answer.x[:count], self.taken @ answer.x[:count]
            reached = max(reached, self.value @ weights - beta * chance @ chance)
            if -answer.fun - reached <= 1e-7:
                break
            limits.append(np.hstack([2 * chance[:, None] * self.taken, -np.eye(pairs)]))
            right.append(chance**2)
        return reached, -answer.fun


def check(problem, solution, cap):
    """What must be true of every lottery under rules: caps, chances, and each of its plans lawful."""
    report = audit(problem, solution)
    assert report.clean, report.faults
    shares = np.zeros(problem.shape)
    for chance, pairs in solution.mixture:
        shares[pairs[:, 0], pairs[:, 1]] += chance
    assert sum(chance for chance, _ in solution.mixture) == pytest.approx(1.0, abs=1e-12)
    assert np.abs(shares - solution.probabilities.toarray()).max(initial=0.0) <= 1e-12
    most = np.array(np.broadcast_to(cap, problem.shape), dtype=float)
    most[problem.locked[:, 0], problem.locked[:, 1]] = 1.0
    assert (shares <= most + 1e-12).all()
    assert any(np.array_equal(pairs, solution.pairs) for _, pairs in solution.mixture)


def lawful(plans, pairs):
    taken = np.zeros(plans.taken.shape[1:], dtype=bool)
    taken[pairs[:, 0], pairs[:, 1]] = True
    return bool((plans.taken == taken).all(axis=(1, 2)).any())


@SOME
@given(ruled_problems(largest=4), st.sampled_from(CAPS), st.integers(0, 2**20))
def test_no_lottery_over_lawful_plans_has_a_larger_expected_total(problem, cap, seed):
    """Every plan of small venues with any rules is enumerated; whether a lottery keeps the caps is found out too."""
    if not problem.rules:
        return
    if seed % 3 == 0:
        cap = np.round(np.random.default_rng(seed).uniform(0.2, 1.0, problem.shape), 2)
    truth = Every(problem, cap)
    if len(truth.value) > MOST_PLANS:
        return
    solution = RandomisedSolver(cap).solve(problem, rng=seed)
    if truth.plans.lacking:
        assert solution.status == Status.INFEASIBLE and not solution.mixture
        assert audit(problem, solution).clean
        return
    best = truth.best()
    check(problem, solution, cap)
    if best is None:
        assert solution.status == Status.INFEASIBLE
        return
    assert solution.status == Status.OPTIMAL and solution.meta["exact"]
    assert solution.value == pytest.approx(best[0], abs=1e-7)
    assert solution.bound >= best[0] - 1e-7 and solution.meta["lottery_bound"] >= best[0] - 1e-7
    assert all(lawful(truth.plans, pairs) for _, pairs in solution.mixture)


@FEW
@given(ruled_problems(largest=4), st.sampled_from(CAPS), st.sampled_from([0.01, 0.3, 5.0]))
def test_no_lottery_over_lawful_plans_is_better_spread(problem, cap, beta):
    """The same with squares: a lottery's value is concave in the chances, and tangents meet it from above."""
    if not problem.rules:
        return
    truth = Every(problem, cap)
    if len(truth.value) > MOST_PLANS // 20:
        return
    solution = PerturbedSolver(beta, cap).solve(problem)
    if truth.plans.lacking:
        assert solution.status == Status.INFEASIBLE and not solution.mixture
        return
    best = truth.best(beta)
    check(problem, solution, cap)
    if best is None:
        assert solution.status == Status.INFEASIBLE and solution.proofs[0].wish["name"] == "randomised"
        return
    near = 1e-5 * max(1.0, abs(best[0]))
    assert best[0] - near <= solution.value <= best[1] + near
    assert solution.bound >= best[0] - near


@FEW
@given(ruled_problems(largest=4), st.integers(0, 2**20), st.sampled_from([0.0, 0.5, 2.0, 8.0]))
def test_no_lawful_plan_has_a_better_worst_case(problem, seed, radius):
    """Rules change which plans there are, and the price of a missed one moves with the total."""
    errors = np.random.default_rng(seed).choice([0.0, 0.1, 0.3, 1.0], problem.shape)
    plans = every_plan(problem)
    solution = RobustSolver(errors, radius).solve(problem)
    report = audit(problem, solution)
    assert report.clean, report.faults
    if plans.lacking:
        assert solution.status == Status.INFEASIBLE
        return
    best = float(plans.worth(Wish("robust", {"standard_error": errors, "radius": radius})).max())
    assert solution.value == pytest.approx(best, abs=1e-7) and solution.bound >= best - 1e-7
    assert solution.meta["best_plan"] and lawful(plans, solution.pairs)


def seniors_and_institutions():
    """Two papers, two reviews each; one of the two seniors on each, no two people of one institution."""
    scores = np.array([[0.9, 0.8, 0.6, 0.5, 0.2], [0.7, 0.9, 0.4, 0.6, 0.3]])
    senior = np.array([[1.0, 1.0, 0.0, 0.0, 0.0]])
    institution = np.array([[1.0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 1]])
    rules = [
        GroupBound.of("seniors", np.eye(2), senior, lower=1),
        GroupBound.of("institutions", np.eye(2), institution, upper=1),
    ]
    return AssignmentProblem.of(scores, demand=2, load_max=2, rules=rules)


class TestOnPaper:
    def test_caps_seniors_and_institutions_hold_together(self):
        """What a chair asks for: nobody certain, yet a senior and two institutions on every paper, in every draw.

        Each senior is on each paper half of the time, so alone there: with the first one goes the fourth person or the
        fifth, with the second the third or the fifth. The fourth, the third and the fifth have at most a half too.
        """
        problem = seniors_and_institutions()
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.status == Status.OPTIMAL and solution.gap == 0.0
        assert solution.probabilities.toarray() == pytest.approx(
            np.array([[0.5, 0.5, 0.5, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5, 0.0]]), abs=1e-12
        )
        assert solution.value == pytest.approx(0.5 * (0.9 + 0.8 + 0.6 + 0.5 + 0.7 + 0.9 + 0.4 + 0.6))
        check(problem, solution, 0.5)

    def test_draws_keep_every_rule_and_come_as_often_as_published(self):
        """Pairs drawn one by one would break rules; plans drawn whole keep them, and every pair its probability."""
        problem = seniors_and_institutions()
        cap = np.array([0.55, 0.6, 0.45, 0.5, 0.35])
        solution = RandomisedSolver(cap).solve(problem)
        assert len(solution.mixture) > 2
        plans, many = every_plan(problem), 2000
        seen = np.zeros(problem.shape)
        for seed in range(many):
            pairs = draw_plan(solution.mixture, seed)
            if seed < 50:
                assert lawful(plans, pairs)
            seen[pairs[:, 0], pairs[:, 1]] += 1.0
        assert np.abs(seen / many - solution.probabilities.toarray()).max() < 0.05
        drawn = [RandomisedSolver(cap).solve(problem, rng=seed) for seed in range(8)]
        assert len({entry.pairs.tobytes() for entry in drawn}) > 1
        for entry in drawn:
            assert lawful(plans, entry.pairs) and entry.value == pytest.approx(solution.value, abs=1e-9)

    def test_what_a_missed_priced_rule_costs_is_taken_off_on_average(self):
        """The better of two people costs 0.02 by a rule; at a half each that is 0.01."""
        rule = GroupBound.of("not her", np.eye(1), np.array([[1.0, 0.0, 0.0]]), upper=0, price=0.02)
        problem = AssignmentProblem.of([[0.9, 0.8, 0.1]], demand=1, load_max=1, rules=[rule])
        solution = RandomisedSolver(0.5).solve(problem)
        assert solution.value == pytest.approx(0.84) and solution.gap == 0.0
        assert solution.meta["expected"] == pytest.approx(0.85)
        check(problem, solution, 0.5)

    def test_rules_and_caps_that_no_lottery_keeps_are_infeasible_by_their_prices(self):
        """Two seniors, one with a cap of a quarter, cannot be there in all draws; no rule is given up for it."""
        problem = seniors_and_institutions()
        cap = np.full(problem.shape, 0.6)
        cap[0, :2] = [0.6, 0.25]
        solution = RandomisedSolver(cap).solve(problem)
        assert solution.status == Status.INFEASIBLE and solution.penalty > 0
        assert solution.meta["proven_by"] == "prices" and solution.rule_shortfall
        check(problem, solution, cap)
        report = audit(problem, solution)
        assert report.missing_bound == pytest.approx(0.15, abs=1e-6)

    def test_what_shares_could_do_and_no_lottery_can_is_infeasible_by_enumeration(self):
        """At most one of any two papers may have her, and each has to half of the time: shares can, plans cannot."""
        pairs = np.array([[0, 0], [1, 0], [1, 0], [2, 0], [0, 0], [2, 0]])
        rule = PairLimit("one of two", np.array([0, 0, 1, 1, 2, 2]), pairs, np.ones(3, dtype=np.int64))
        problem = AssignmentProblem.of(np.ones((3, 2)), demand=1, load_max=3, rules=[rule])
        cap = np.array([[1.0, 0.5]] * 3)
        solution = RandomisedSolver(cap).solve(problem)
        assert solution.status == Status.INFEASIBLE
        assert solution.meta["proven_by"] == "enumeration by the integer solver"
        check(problem, solution, cap)
        assert audit(problem, solution).missing == pytest.approx(0.5, abs=1e-6) and audit(problem, solution).notes
        spread = PerturbedSolver(0.1, cap).solve(problem)
        assert spread.status == Status.INFEASIBLE and audit(problem, spread).clean

    def test_a_gap_between_shares_and_lotteries_is_stated(self):
        """The same three pairs, liked by all: shares promise a half of each, a lottery can give a third."""
        pairs = np.array([[0, 0], [1, 0], [1, 0], [2, 0], [0, 0], [2, 0]])
        rule = PairLimit("one of two", np.array([0, 0, 1, 1, 2, 2]), pairs, np.ones(3, dtype=np.int64))
        problem = AssignmentProblem.of([[1.0, 0.0]] * 3, demand=1, load_max=3, rules=[rule])
        solution = RandomisedSolver(1.0).solve(problem)
        assert solution.value == pytest.approx(1.0) and solution.bound == pytest.approx(1.5)
        assert solution.meta["lottery_bound"] == pytest.approx(1.0) and solution.meta["exact"]
        check(problem, solution, 1.0)

    def test_a_sure_person_is_preferred_where_rules_leave_a_choice(self):
        """robust under a rule that bars the surest pair of all."""
        rule = GroupBound.of("not him", np.eye(1), np.array([[0.0, 0.0, 1.0]]), upper=0)
        problem = AssignmentProblem.of([[0.8, 0.8, 0.8]], demand=1, load_max=1, rules=[rule])
        solution = RobustSolver(np.array([[0.3, 0.1, 0.0]]), 1.0).solve(problem)
        assert solution.pairs.tolist() == [[0, 1]] and solution.value == pytest.approx(0.7)
        assert audit(problem, solution).clean


def mid(seed, n, m):
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 4, (n, m))
    institutions = np.eye(8)[rng.integers(0, 8, m)].T
    senior = (rng.random(m) < 0.4).astype(float)[None]
    rules = [
        GroupBound.of("institutions", np.eye(n), institutions, upper=1),
        GroupBound.of("seniors", np.eye(n), senior, lower=1),
    ]
    return AssignmentProblem.of(scores, demand=3, load_max=int(np.ceil(4 * n / m)), rules=rules)


def test_larger_venues_reach_the_bound_of_shares():
    """Institutions and seniors cross, so no network holds both; yet there the shares come apart into plans."""
    problem = mid(0, 30, 24)
    solution = RandomisedSolver(0.5).solve(problem)
    assert solution.status == Status.OPTIMAL and solution.gap == 0.0
    check(problem, solution, 0.5)
    spread = PerturbedSolver(0.1, 0.5).solve(mid(1, 12, 10))
    assert spread.gap <= 1e-5 * spread.value
    check(mid(1, 12, 10), spread, 0.5)


def test_pairs_are_priced_in_where_few_are_looked_at_first():
    """Candidates change the time and not the value, also under caps that push probability down the lists."""
    problem = mid(2, 25, 20)
    usual = RandomisedSolver(0.4).solve(problem)
    few = RandomisedSolver(0.4, candidates=1, dense_pairs=0).solve(problem)
    assert few.value == pytest.approx(usual.value, rel=1e-9) and audit(problem, few).clean


def test_equal_input_gives_the_equal_answer_and_a_limit_or_an_error_ends_it():
    """A seed can be given to an outsider; a limit gives a plan or says that there is none; progress may stop it."""
    problem = mid(3, 20, 16)
    first, second = (RandomisedSolver(0.5).solve(problem, rng=7) for _ in range(2))
    assert np.array_equal(first.pairs, second.pairs) and first.value == second.value
    assert RandomisedSolver(0.5).solve(problem, time_limit=0.0).status == Status.LIMIT_WITHOUT_PLAN

    def stop(report):
        if report.phase == "rounding":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        RandomisedSolver(0.5).solve(problem, progress=stop)


def test_caps_rounded_down_are_named_as_such():
    """As without rules: three caps of 0.333333 are meant to be one review."""
    rule = GroupBound.of("all", np.eye(1), np.ones((1, 3)), lower=1)
    problem = AssignmentProblem.of([[0.9, 0.8, 0.1]], demand=1, load_max=1, rules=[rule])
    with pytest.raises(InvalidParamsError, match="round them up"):
        RandomisedSolver(0.333333).solve(problem)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_scores_of_any_unit_have_the_same_lottery(factor):
    """Solved in a unit near 1, prices of rules included."""
    problem = seniors_and_institutions()
    wishes = parse_objective({"name": "randomised", "cap": 0.5})
    scaled = AssignmentProblem.of(
        problem.scores.block(slice(0, 2), slice(0, 5)) * factor, demand=2, load_max=2, rules=problem.rules
    )
    one, other = solve(problem, wishes), solve(scaled, wishes)
    assert other.value == pytest.approx(one.value * factor)
    assert other.probabilities.toarray() == pytest.approx(one.probabilities.toarray(), abs=1e-9)
    assert audit(scaled, other, wishes).clean


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_bounds_told_beside_the_proofs_are_in_the_unit_of_the_scores(unit):
    """What the integer program proved is told to chairs, so it must not stay in the unit of the search."""
    pairs = np.array([[0, 0], [1, 0], [1, 0], [2, 0], [0, 0], [2, 0]])
    rule = PairLimit("one of two", np.array([0, 0, 1, 1, 2, 2]), pairs, np.ones(3, dtype=np.int64))
    problem = AssignmentProblem.of([[unit, 0.0]] * 3, demand=1, load_max=3, rules=[rule])
    lottery = solve(problem, parse_objective({"name": "randomised", "cap": 1.0}))
    assert lottery.meta["lottery_bound"] == pytest.approx(unit)
    plain = random_problem(41, ["group", "second-group", "shared", "pairs"], (3, 4))
    scores = plain.scores.block(slice(0, 3), slice(0, 4)) * unit
    total = solve(replace(plain, scores=DenseScores(scores)), parse_objective("total"))
    assert total.meta["integer_bound"] == pytest.approx(total.value)


class TestAudit:
    @pytest.fixture
    def solved(self):
        problem = seniors_and_institutions()
        return problem, RandomisedSolver(0.5).solve(problem)

    def faults(self, problem, solution):
        return " ".join(audit(problem, solution).faults)

    def test_an_unlawful_plan_of_the_lottery_is_found(self, solved):
        """Also one that is not the plan shown."""
        problem, solution = solved
        at = next(i for i, (_, pairs) in enumerate(solution.mixture) if not np.array_equal(pairs, solution.pairs))
        chance, pairs = solution.mixture[at]
        for column, words in ((np.array([2, 3]), "lacks 1"), (np.array([1, 3]), "exceeds rule institutions")):
            broken = pairs.copy()
            broken[broken[:, 0] == 0, 1] = column
            mixture = (*solution.mixture[:at], (chance, broken), *solution.mixture[at + 1 :])
            assert words in self.faults(problem, replace(solution, mixture=mixture))

    def test_chances_must_add_up_to_what_is_published(self, solved):
        """A lottery that favours a plan is no longer that of the probabilities."""
        problem, solution = solved
        (first, plan), (second, other), *rest = solution.mixture
        tilted = ((first + 0.1, plan), (second - 0.1, other), *rest)
        assert "not those of the lottery" in self.faults(problem, replace(solution, mixture=tilted))
        more = ((first + 0.1, plan), (second, other), *rest)
        assert "add up to" in self.faults(problem, replace(solution, mixture=more))
        none = ((0.0, plan), (second, other), *rest)
        assert "not above 0" in self.faults(problem, replace(solution, mixture=none))

    def test_a_lottery_under_rules_needs_its_plans(self, solved):
        """Probabilities alone do not say that plans with these keep the rules."""
        problem, solution = solved
        assert "without the plans" in self.faults(problem, replace(solution, mixture=()))
        shown = solution.mixture[0][1][:-1]
        assert "none of those" in self.faults(problem, replace(solution, pairs=shown))
        total = solve(problem, parse_objective("total"))
        assert "no lottery" in self.faults(problem, replace(total, mixture=solution.mixture))


def test_the_record_holds_what_a_reader_needs_to_check_the_lottery():
    """Chances and plans by places in a list of pairs: from them follow the probabilities."""
    problem = seniors_and_institutions()
    solution = RandomisedSolver(0.5).solve(problem)
    record = proofs_of(problem, solution, ["p1", "p2"], ["a", "b", "c", "d", "e"])[0]["lottery"]
    found = {}
    for plan in record["plans"]:
        for place in plan["pairs"]:
            pair = tuple(record["pairs"][place])
            found[pair] = found.get(pair, 0.0) + plan["chance"]
    table = solution.probabilities.toarray()
    assert found == pytest.approx({
        (p, r): table[i, j] for i, p in enumerate(["p1", "p2"]) for j, r in enumerate("abcde") if table[i, j] > 0
    })  # fmt: skip


def test_matrix_callers_give_rules_with_a_lottery():
    """The door that most use first."""
    rules = [{"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1}]
    found = assign(
        [[0.9, 0.8, 0.2, 0.1]], demand=2, load_max=1, rules=rules, objective={"name": "randomised", "cap": 0.6},
        reviewer_attributes={"seniority": ["junior", "junior", "senior", "senior"]},
    )  # fmt: skip
    assert found.probabilities.toarray().tolist() == [pytest.approx([0.6, 0.4, 0.6, 0.4])]
    assert found.gap == 0.0 and all(np.isin(pairs[:, 1], [2, 3]).any() for _, pairs in found.mixture)


def test_problems_met_in_a_wide_search_stay_solved():
    """Seeds at which shares and lotteries differ, or nearly do."""
    kinds = ["conflicts", "pairs", "priced", "second-group", "weights"]
    problem = random_problem(873, kinds, (2, 5))
    solution = RandomisedSolver(0.5).solve(problem)
    assert solution.status == Status.INFEASIBLE and audit(problem, solution).clean
