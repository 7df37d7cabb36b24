"""Programs on the active pairs against enumeration, a plain model of every pair, and a dense sum of their proof."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit, SharedReviewers
from matching.constraints.linearised import rule_terms
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Shortfall, Total, Welfare, parse_objective
from matching.plan.audit import audit
from matching.scores.base import DenseScores, VectorScores
from matching.solvers import choose
from matching.solvers.base import Status
from matching.solvers.clock import Clock
from matching.solvers.milp import ArcProgram, RuleSolver, Weighted, shared
from matching.solvers.milp.linear import ArcLinear
from matching.solvers.milp.model import IntegerAnswer
from matching.solvers.pricing import PricingSolver
from tests.enumeration import every_plan
from tests.oracles import by_ruled_program
from tests.shared import SHARED, needs_shared
from tests.strategies import KINDS, random_problem, ruled_problems

START = ({"candidates": 1, "dense_pairs": 0}, {"dense_pairs": 10**6})  # few pairs first, or all of them


def solve(problem, **options):
    solution = RuleSolver(**options).solve(problem)
    report = audit(problem, solution)
    assert report.clean, report.faults
    return solution


def lacking(problem, solution):
    """Reviews, load minima and units of hard rules that a solution says it lacks."""
    units = sum(
        float(np.abs(missed.data if sparse.issparse(missed) else missed).sum())
        for rule, missed in zip(problem.rules, solution.rule_shortfall, strict=True)
        if rule.price is None
    )
    return float(solution.unfilled.sum() + solution.below_min.sum()) + units


def dense_bound(problem, answer):
    """What an answer's numbers prove, summed over the whole matrix; for plans that lack nothing."""
    pull = np.array(answer.weights)
    level = answer.measure.conjugate(answer.weights)
    for (g, c), (k, z) in zip(answer.constraints, answer.multipliers, strict=True):
        pull += k * z
        level += k * (g.conjugate(z) - c) if k else 0.0
    scores = np.array(problem.scores.block(slice(0, problem.shape[0]), slice(0, problem.shape[1])), dtype=float)
    groups, terms, paid = rule_terms(problem.rules, answer.rule_prices, problem.shape)
    linear = pull[:, None] * scores + terms.toarray()
    for bound, price in groups:
        linear -= bound.submissions.toarray().T @ price.toarray() @ bound.reviewers.toarray()
    held = np.zeros(problem.shape, dtype=bool)
    held[tuple(problem.locked.T)] = True
    barred = problem.barred.pairs()
    demand = problem.demand - held.sum(axis=1)
    load_max, load_min = problem.load_max - held.sum(axis=0), np.maximum(problem.load_min - held.sum(axis=0), 0)
    excess = np.nan_to_num(np.maximum(linear - answer.u[:, None] - answer.w[None, :], 0.0))
    excess[held | (demand == 0)[:, None] | (load_max == 0)[None, :]] = 0.0
    excess[tuple(barred.T)] = 0.0
    known = np.where(np.isnan(scores), linear_of_unknown(linear, terms, groups), linear)
    return (
        level + known[held].sum() + demand @ np.where(demand > 0, answer.u, 0.0)
        + load_max @ np.where(load_max > 0, np.maximum(answer.w, 0.0), 0.0) - load_min @ np.maximum(-answer.w, 0.0)
        + paid + excess.sum()
    )  # fmt: skip


def linear_of_unknown(linear, terms, groups):
    """A locked pair of unknown score counts 0 and still pays its rules."""
    out = terms.toarray()
    for bound, price in groups:
        out = out - bound.submissions.toarray().T @ price.toarray() @ bound.reviewers.toarray()
    return out


def full_problem(seed, size=(4, 4), kinds=KINDS):
    """The first problem from `seed` on that every plan of which need not lack anything."""
    while True:
        problem = random_problem(seed, kinds, size)
        plans = every_plan(problem)
        if plans.lacking == 0 and problem.demand.any():
            return problem, plans
        seed += 1000


@settings(max_examples=150, deadline=None)
@given(ruled_problems(), st.sampled_from(START))
def test_the_total_under_any_rules_agrees_with_enumeration_also_in_saying_infeasible(problem, start):
    """Group bounds, pair limits, shared reviewers, prices, weights, locks, unknown pairs, in every combination."""
    solution = solve(problem, **start)
    plans = every_plan(problem)
    assert lacking(problem, solution) == pytest.approx(plans.lacking, abs=1e-6)
    assert (solution.status == Status.INFEASIBLE) == (plans.lacking > 1e-9)
    assert solution.value == pytest.approx((plans.sums.sum(axis=1) - plans.cost).max(), abs=1e-7)
    assert solution.bound >= solution.value


@pytest.mark.parametrize("seed", range(8))
def test_the_total_under_rules_agrees_with_a_plain_model_of_every_pair_at_mid_size(seed):
    """Eighteen by twelve: too many plans to list, so HiGHS on the textbook model says what is best."""
    problem = random_problem(seed, KINDS, (18, 12), enumerated=False)
    missing, value = by_ruled_program(problem)
    for start in START:
        solution = solve(problem, **start)
        assert lacking(problem, solution) == pytest.approx(missing, abs=1e-6)
        assert solution.value == pytest.approx(value, abs=1e-5)


MEASURES = {
    "total": lambda wanting, sums: Total(),
    "level": lambda wanting, sums: Level(wanting),
    "floors": lambda wanting, sums: Floors(np.where(wanting, 0.5 * sums, -np.inf)),
    "shortfall": lambda wanting, sums: Shortfall(float(np.median(sums)), wanting),
    "weighted": lambda wanting, sums: Weighted(np.linspace(0.0, 2.0, sums.size)),
}


EARLIER = (None, "total", "level", "floors", "shortfall")


@pytest.mark.parametrize(
    ("name", "earlier"), [(name, earlier) for name in sorted(MEASURES) for earlier in EARLIER if name != earlier]
)
def test_every_measure_with_every_earlier_wish_is_exact_and_proves_itself(name, earlier):
    """Plans equal enumeration, shares are no worse, and the numbers recomputed densely bound both."""
    for seed in range(4):
        problem, plans = full_problem(17 * seed)
        wanting, sums = problem.demand > 0, plans.sums
        middle = sums[len(sums) // 2]
        measure = MEASURES[name](wanting, middle)
        constraints, keep = [], np.ones(len(sums), dtype=bool)
        if earlier is not None:
            g = MEASURES[earlier](wanting, middle)
            reached = np.array([g.value(row) for row in sums])
            least = np.quantile(reached, 0.9, method="lower") - 1e-9
            constraints, keep = [(g, float(least))], reached >= least
        best = max(measure.value(row) - cost for row, cost in zip(sums[keep], plans.cost[keep], strict=True))
        program = ArcProgram(problem, **START[seed % 2])
        shares = program.solve(measure, constraints, integral=False)
        plan = program.solve(measure, constraints, integral=True)
        assert shares.kept and plan.kept and shares.proven and plan.proven
        assert plan.value == pytest.approx(best, abs=1e-7)
        assert shares.value >= best - 1e-7
        assert shares.bound == pytest.approx(shares.value, abs=1e-6)
        for answer in (shares, plan):
            assert dense_bound(problem, answer) == pytest.approx(answer.bound, abs=1e-7)
            assert answer.bound >= best - 1e-7


@settings(max_examples=60, deadline=None)
@given(ruled_problems(kinds=("group", "pairs", "unknown", "conflicts", "weights")), st.integers(0, 2**31))
def test_any_numbers_a_program_returns_bound_every_plan(problem, seed):
    """The bound is recomputed from scratch, so it must hold for all plans, whatever was asked."""
    plans = every_plan(problem)
    if plans.lacking > 0 or not problem.demand.any():
        return
    rng = np.random.default_rng(seed)
    names = sorted(MEASURES)
    measure = MEASURES[names[rng.integers(len(names))]](problem.demand > 0, plans.sums[0])
    answer = ArcProgram(problem, candidates=1, dense_pairs=0).solve(measure, integral=False)
    assert answer.bound >= max(measure.value(row) for row in plans.sums) - 1e-7


def test_wishes_no_plan_can_keep_are_said_to_be_out_of_reach():
    """Out of reach for shares, and, in the second case, only for plans; neither is "infeasible"."""
    problem = AssignmentProblem.of([[1.0, 0.0], [1.0, 0.0]], demand=1, load_max=1)
    wanting = np.array([True, True])
    beyond = ArcProgram(problem).solve(Total(), [(Level(wanting), 0.9)], integral=True)
    assert not beyond.found and not beyond.kept and beyond.proven and beyond.meta["proven_by"] == "prices"
    halves = [(Level(wanting), 0.5)]
    assert ArcProgram(problem).solve(Total(), halves, integral=False).value == pytest.approx(1.0)
    whole = ArcProgram(problem).solve(Total(), halves, integral=True)
    assert not whole.found and whole.proven and whole.meta["proven_by"] != "prices"


def test_welfare_is_kept_as_an_earlier_wish_and_as_a_measure():
    """Tangents are added until the curve itself is met."""
    problem, plans = full_problem(5, kinds=("group",))
    measure = Welfare(1.0, 0.01, problem.demand > 0)
    each = np.array([measure.value(row) for row in plans.sums])
    answer = ArcProgram(problem).solve(measure, integral=True)
    assert answer.value == pytest.approx(each.max(), abs=1e-6)
    assert answer.bound >= each.max() - 1e-9
    least = float(np.quantile(each, 0.8, method="lower"))
    total = ArcProgram(problem).solve(Total(), [(measure, least)], integral=True)
    assert measure.value(total.sums) >= least - 1e-9 * max(1.0, abs(least))
    assert total.value == pytest.approx(plans.sums[each >= least].sum(axis=1).max(), abs=1e-7)


def test_a_group_bound_is_kept_and_paid_for_as_one_can_check_on_paper():
    """Two seniors (0, 1) and two juniors (2, 3): at least one senior each costs the worst swap, 0.9 for 0.2."""
    scores = [[0.5, 0.2, 0.9, 0.8], [0.5, 0.1, 0.9, 0.8]]
    senior = GroupBound.of("one senior", np.eye(2), [[1, 1, 0, 0]], lower=1)
    free = solve(AssignmentProblem.of(scores, demand=2, load_max=[1, 2, 2, 2]))
    assert free.value == pytest.approx(3.4)
    held = solve(AssignmentProblem.of(scores, demand=2, load_max=[1, 2, 2, 2], rules=[senior]))
    assert held.value == pytest.approx(0.5 + 0.2 + 0.9 + 0.9)
    assert held.gap == 0.0
    assert held.proofs[0].rule_prices[0].toarray().min() < 0.0


def test_load_weights_let_short_submissions_count_half():
    """One person of load 1.5 takes one long and one short submission, not two long ones."""
    weight = GroupBound.of("load", [[1.0, 0.5, 1.0]], np.eye(2), upper=1.5)
    problem = AssignmentProblem.of([[1.0, 0.1], [1.0, 0.1], [1.0, 0.1]], demand=1, load_max=3, rules=[weight])
    solution = solve(problem)
    assert np.bincount(solution.pairs[:, 1], minlength=2).tolist() in ([1, 2], [2, 1])
    assert solution.value == pytest.approx(2.1)


def test_a_pair_limit_forbids_both_reviews_of_a_cycle():
    """Each of two authors fits the other's submission best; only one of the two may review the other."""
    cycle = PairLimit("no cycle", np.array([0, 0]), np.array([[0, 1], [1, 0]]), np.array([1]))
    problem = AssignmentProblem.of(
        [[0.0, 1.0, 0.4], [1.0, 0.0, 0.3]], demand=1, load_max=1, conflicts=[(0, 0), (1, 1)], rules=[cycle]
    )
    solution = solve(problem)
    assert solution.value == pytest.approx(1.4)
    assert solution.pairs.tolist() == [[0, 2], [1, 0]]


def test_submissions_share_the_reviewers_a_rule_asks_for():
    """Apart they would take different people; together they take the one both can stand."""
    scores = [[1.0, 0.0, 0.7], [0.0, 1.0, 0.6]]
    rule = SharedReviewers("pair", np.array([[0, 1]]), np.array([1]))
    problem = AssignmentProblem.of(scores, demand=1, load_max=2, rules=[rule])
    solution = solve(problem)
    assert solution.pairs.tolist() == [[0, 2], [1, 2]]
    assert solution.value == pytest.approx(1.3)
    none = AssignmentProblem.of(scores, demand=1, load_max=1, rules=[rule])
    assert solve(none).status == Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(12))
def test_people_who_might_be_shared_are_priced_in_like_pairs(seed, monkeypatch):
    """With nobody linked from the start, prices alone must find who is worth sharing."""
    kinds = ("shared", *KINDS[seed % 4 :: 4])
    problem = random_problem(seed, kinds, (5, 7), enumerated=False)
    missing, value = by_ruled_program(problem)
    monkeypatch.setattr(shared, "FIRST_LINKS", seed % 2)
    solution = solve(problem, candidates=1, dense_pairs=0)
    assert lacking(problem, solution) == pytest.approx(missing, abs=1e-6)
    assert solution.value == pytest.approx(value, abs=1e-6)


def test_a_priced_rule_is_broken_exactly_where_that_is_cheaper():
    """Keeping it costs 0.4 of score: a price of 0.3 is paid, one of 0.5 is not; the value is net of it."""
    scores = [[1.0, 0.6]]
    for price, value, shortfall in ((0.3, 0.7, 1.0), (0.5, 0.6, 0.0)):
        rule = GroupBound.of("not the first", [[1.0]], [[1.0, 0.0]], upper=0, price=price)
        solution = solve(AssignmentProblem.of(scores, demand=1, load_max=1, rules=[rule]))
        assert solution.status == Status.OPTIMAL
        assert solution.value == pytest.approx(value)
        assert solution.rule_shortfall[0].toarray().sum() == shortfall


def test_locks_that_break_a_hard_rule_make_the_problem_infeasible_and_keep_the_rest_lawful():
    """Locked pairs stay; the rule says how far it is passed, and nothing else passes it."""
    rule = GroupBound.of("one junior", np.eye(2), [[1, 1, 0]], upper=1)
    problem = AssignmentProblem.of(np.full((2, 3), 0.5), demand=2, load_max=2, locks=[(0, 0), (0, 1)], rules=[rule])
    solution = solve(problem)
    assert solution.status == Status.INFEASIBLE
    assert solution.rule_shortfall[0].toarray().tolist() == [[1.0], [0.0]]
    assert len(solution.pairs) == 4


def test_what_only_whole_plans_cannot_do_is_said_to_be_found_by_enumeration():
    """Three pairs of which any two exclude each other: halves of each fill the demand, whole ones do not."""
    which = np.repeat(np.arange(3), 2)
    pairs = np.array([[0, 0], [1, 1], [1, 1], [2, 2], [0, 0], [2, 2]])
    rule = PairLimit("one of two", which, pairs, np.ones(3, dtype=np.int64))
    free = GroupBound.of("one and a half", [[1.0, 1.0, 1.0]], [[1.0, 1.0, 1.0, 0.0]], lower=1.5)
    conflicts = [(p, r) for p in range(3) for r in range(3) if p != r]
    problem = AssignmentProblem.of(np.full((3, 4), 0.5), demand=1, load_max=3, conflicts=conflicts, rules=[rule, free])
    solution = solve(problem)
    assert solution.status == Status.INFEASIBLE
    assert solution.meta["proven_by"] == "enumeration by the integer solver"
    assert solution.rule_shortfall[1].toarray().sum() == pytest.approx(-0.5)


def test_without_rules_it_is_the_flow_s_plan_value_also_on_vectors():
    """The two ways to the total agree where both can go, float32 blocks included."""
    rng = np.random.default_rng(3)
    scores = VectorScores(rng.random((60, 8)), rng.random((50, 8)), scale=0.2)
    problem = AssignmentProblem.of(scores, demand=3, load_max=5)
    mine, flow = solve(problem, candidates=2, dense_pairs=0), PricingSolver().solve(problem)
    assert mine.status == flow.status == Status.OPTIMAL
    assert mine.value == pytest.approx(flow.value, abs=1e-9)
    assert mine.gap == 0.0


def test_unknown_pairs_and_submissions_without_demand_take_no_part():
    """NaN is never assigned, a locked unknown pair counts 0, and a row of demand 0 stays empty."""
    scores = np.array([[np.nan, 0.4], [0.9, np.nan], [1.0, 1.0]])
    rule = GroupBound.of("any", np.eye(3), [[1.0, 1.0]], upper=1)
    problem = AssignmentProblem.of(DenseScores(scores), demand=[1, 1, 0], load_max=2, locks=[(1, 1)], rules=[rule])
    solution = solve(problem)
    assert solution.pairs.tolist() == [[0, 1], [1, 1]]
    assert solution.value == pytest.approx(0.4)
    nothing = AssignmentProblem.of(
        np.ones((2, 2)), demand=0, load_max=1, rules=[GroupBound.of("x", np.eye(2), np.eye(2), upper=1)]
    )
    assert len(solve(nothing).pairs) == 0


def test_a_start_is_not_handed_back_where_a_better_plan_was_found():
    """HiGHS 1.16 reports the best value and returns the start where presolve alone finds it; here that would cost 4."""
    kinds = ("locks", "pairs", "priced", "second-group", "unknown", "weights")
    problem = random_problem(5, kinds, (5, 5))
    plans = every_plan(problem)
    assert solve(problem).value == pytest.approx((plans.sums.sum(axis=1) - plans.cost).max(), abs=1e-9)


def test_a_time_limit_that_is_over_gives_no_plan_and_no_claim():
    """Before the first flow there is nothing to say, and least of all "infeasible"."""
    problem, _ = full_problem(1)
    solution = RuleSolver().solve(problem, time_limit=0.0)
    assert solution.status == Status.LIMIT_WITHOUT_PLAN
    assert len(solution.pairs) == 0
    assert audit(problem, solution).clean
    assert ArcProgram(problem, clock=Clock(0.0)).solve(Total(), integral=True) is None


def test_a_search_cut_short_falls_back_on_a_plan_at_hand_with_its_gap(monkeypatch):
    """The integer solver finds nothing in time: a lawful start is handed out, and the bound still comes from prices."""
    problem = random_problem(10, KINDS, (4, 4))
    plans = every_plan(problem)
    start, wish = np.argwhere(plans.taken[0]), [(Floors(plans.sums[0]), 0.0)]
    program = ArcProgram(problem)
    shares = program.solve(Total(), wish, integral=False)
    assert (np.abs(shares.share - 0.5) < 0.49).any()  # or there would be no integer search to cut short
    monkeypatch.setattr(ArcLinear, "integral", lambda *args: IntegerAnswer(None, -np.inf, False))
    plan = program.solve(Total(), wish, integral=True, start=start)
    assert plan.found and plan.kept and not plan.proven
    assert plan.value == pytest.approx(plans.sums[0].sum() - plans.cost[0])
    assert plan.bound == pytest.approx(shares.bound, abs=1e-7)


def test_an_exception_of_the_caller_s_progress_ends_the_search_and_passes_through():
    """Cancelling works between steps and inside the integer solver."""
    problem = random_problem(2, KINDS, (18, 12), enumerated=False)

    class Stop(Exception):
        pass

    def stop(phase, value, bound):
        raise Stop

    with pytest.raises(Stop):
        ArcProgram(problem).solve(Level(problem.demand > 0), integral=True, tell=stop)


def test_the_same_input_gives_the_same_plan_and_nothing_is_printed(capfd):
    """One thread, a fixed seed, and no banner of the solver."""
    problem = random_problem(11, KINDS, (12, 10), enumerated=False)
    first, second = RuleSolver().solve(problem, rng=4), RuleSolver().solve(problem, rng=4)
    assert first.pairs.tolist() == second.pairs.tolist()
    assert first.bound == second.bound
    assert capfd.readouterr().out == ""


def test_many_classes_cost_only_the_rows_that_bind():
    """Four hundred institutions times eighty submissions are 32,000 constraints; a few hundred become rows."""
    rng = np.random.default_rng(0)
    where = np.arange(800) // 2
    classes = sparse.csr_array((np.ones(800), (where, np.arange(800))), shape=(400, 800))
    rule = GroupBound.of("institution", sparse.eye_array(80), classes, upper=1)
    assert rule.lower.strides == (0, 0)
    scores = rng.random((80, 800))
    scores[:, 1::2] = scores[:, ::2]  # colleagues fit alike, so the rule binds often
    problem = AssignmentProblem.of(scores, demand=3, load_max=1, rules=[rule])
    solution = solve(problem)
    assert solution.status == Status.OPTIMAL
    assert solution.gap <= 1e-3 * solution.value
    assert solution.meta["rows"] < 4000


def test_an_upper_bound_that_is_none_never_becomes_a_row():
    """NO_UPPER with a lower bound of 0 says nothing."""
    rule = GroupBound.of("nothing", np.eye(2), np.eye(2), upper=NO_UPPER)
    problem = AssignmentProblem.of(np.ones((2, 2)), demand=1, load_max=1, rules=[rule])
    assert solve(problem).meta["rows"] == 2 + 2 + 1


@needs_shared
@pytest.mark.parametrize("name", ["csconf1", "gold_tpms", "da1"])
def test_real_instances_reach_the_recorded_total_and_the_recorded_worst_submission(name):
    """Total and the bound for the worst-off, both priced over all pairs from a few."""
    with np.load(SHARED / "data" / "instances" / f"{name}.npz") as data:
        problem = AssignmentProblem.of(
            data["scores"], demand=data["demand"], load_max=data["load_max"], load_min=data.get("load_min"),
            conflicts=data["conflict_idx"],
        )  # fmt: skip
    program = ArcProgram(problem)
    total = program.solve(Total(), integral=True)
    expected = json.loads((SHARED / "data" / "expected_totals.json").read_text())[name]
    assert total.value == pytest.approx(expected["total"], abs=1e-4)
    assert total.gap == 0.0
    worst = program.solve(Level(problem.demand > 0), integral=False)
    expected = json.loads((SHARED / "data" / "expected_maximin.json").read_text())[name]
    assert worst.value == pytest.approx(expected["worst"], abs=1e-4)
    assert worst.bound == pytest.approx(worst.value, abs=1e-7)


@pytest.mark.parametrize("objective", ["total", "maximin", "randomised"])
def test_a_rule_where_there_is_nobody_at_all_is_infeasible_with_a_proof(objective):
    """A role that nobody has, or a pool that is still empty: every review is missing, and so is what the rule asks."""
    rule = GroupBound.of("seniors", np.ones((1, 2)), np.ones((1, 0)), lower=2)
    problem = AssignmentProblem.of(np.zeros((2, 0)), demand=[0, 1], load_max=1, rules=[rule])
    wishes = parse_objective(objective)
    found = choose.solve(problem, wishes)
    assert found.status == Status.INFEASIBLE and found.unfilled.tolist() == [0, 1]
    report = audit(problem, found, wishes)
    assert report.clean, report.faults
