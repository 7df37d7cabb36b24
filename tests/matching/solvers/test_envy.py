"""Envy up to one reviewer, against every plan of tiny problems and against plans one can check on paper."""

import csv

import numpy as np
import pytest

from matching.constraints.bounds import GroupBound
from matching.constraints.envy import envy_by_submission, envy_excess
from matching.constraints.problem import AssignmentProblem
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.base import Status
from matching.solvers.clock import Clock
from matching.solvers.envy import EnvySolver
from matching.solvers.oracle import Oracle
from matching.solvers.picking import picked_plan
from matching.solvers.pricing import PricingSolver
from matching.solvers.swaps import Desk
from tests.enumeration import envy_of, every_plan
from tests.shared import SHARED, needs_shared
from tests.strategies import random_problem

PLAIN = ("locks", "conflicts", "unknown", "minima", "negative")
RULED = ("locks", "conflicts", "minima", "group", "pairs", "shared", "priced")


def solve(problem, **options):
    solution = EnvySolver().solve(problem, **options)
    report = audit(problem, solution)
    assert report.clean, report.faults
    return solution


def contested(seed, n=40, m=34):
    """Good reviewers are good for all and everybody carries the same load: the best total leaves envy."""
    rng = np.random.default_rng(seed)
    scores = rng.random(m) ** 2 * rng.random((n, m)) ** 2 + 0.05 * rng.random((n, m))
    demand = rng.integers(1, 4, n)
    load = np.full(m, demand.sum() // m + 1)
    return AssignmentProblem.of(scores, demand=demand, load_max=load, load_min=load - 2)


def scores_table(problem):
    rows, cols = slice(0, problem.shape[0]), slice(0, problem.shape[1])
    table = np.full((problem.shape[0], problem.shape[1] + 1), -np.inf)
    table[:, :-1] = problem.scores.block(rows, cols)
    table[tuple(problem.barred.pairs().T)] = -np.inf
    table[np.isnan(table)] = -np.inf
    return table


def test_the_measure_is_the_definition_in_plans_of_every_kind():
    """Bars, unknown and negative scores, demands of 0 and uneven demands, from the scores pair by pair."""
    for seed in range(60):
        problem = random_problem(seed, PLAIN)
        plans = every_plan(problem)
        for taken in plans.taken[:: max(1, len(plans.taken) // 5)]:
            pairs = np.argwhere(taken)
            assert envy_excess(problem, pairs) == pytest.approx(envy_of(problem, plans.scores, taken), abs=1e-12)


def test_envy_is_stated_for_each_submission():
    """p0 has 0.2 and 0.1 and sees 1.0 and 0.8 at p1: without the best 0.8 are left, so it lacks (0.8 - 0.3) / 2."""
    problem = AssignmentProblem.of([[0.2, 0.1, 1.0, 0.8], [0.5, 0.5, 0.5, 0.5]], demand=2, load_max=1)
    envy = envy_by_submission(problem, np.array([[0, 0], [0, 1], [1, 2], [1, 3]]))
    assert envy == pytest.approx([0.25, 0.0])


def test_no_plan_of_a_tiny_problem_has_less_envy_and_none_as_calm_a_larger_total():
    """Locks, bars, unknown and negative scores, minima; problems without a full plan are said to have none."""
    envy, total = (parse_objective(name)[0] for name in ("envy", "total"))
    for seed in range(80):
        problem = random_problem(seed, PLAIN)
        plans, solution = every_plan(problem), solve(problem)
        assert (solution.status == Status.INFEASIBLE) == (plans.lacking > 0)
        if plans.lacking > 0:
            continue
        left = plans.worth(envy)
        assert solution.value == pytest.approx(-left.max(), abs=1e-9)
        calm = plans.worth(total)[left >= left.max() - 1e-9].max()
        assert solution.meta["total"] <= calm + 1e-9
        if solution.meta["method"] == "total":
            assert solution.meta["total"] == pytest.approx(calm)


def test_rules_hold_and_the_audit_agrees():
    """Hard and priced rules of all kinds; what priced ones cost comes off the total."""
    for seed in range(40):
        problem = random_problem(seed, RULED)
        solution = solve(problem)
        if solution.status == Status.INFEASIBLE:
            continue
        envy = parse_objective("envy")[0]
        assert solution.value == pytest.approx(-every_plan(problem).worth(envy).max(), abs=1e-9)


def test_under_a_rule_the_envious_reach_what_they_envied():
    """The best total under the rule leaves envy, so the program is asked for floors."""
    problem = contested(0, 12, 10)
    halves = np.kron(np.eye(2), np.ones(5))
    rule = GroupBound.of("not three of one half", np.eye(12), halves, upper=2)
    ruled = AssignmentProblem.of(
        problem.scores, demand=problem.demand, load_max=problem.load_max, load_min=problem.load_min, rules=[rule]
    )
    assert solve(ruled).value == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_envy_of_the_best_total_is_taken_away_at_a_small_loss(seed):
    """Uneven demands and loads that must be carried."""
    problem = contested(seed)
    best = PricingSolver().solve(problem)
    assert envy_excess(problem, best.pairs) > 0.01
    solution = solve(problem)
    assert (solution.status, solution.value, solution.gap) == (Status.OPTIMAL, 0.0, 0.0)
    assert 0.98 < solution.meta["share_of_total"] < 1.0
    assert solution.meta["total_bound"] == pytest.approx(best.value)


def test_exchanges_alone_take_envy_away_and_keep_the_books():
    """What the desk believes of sums, loads and envy is what its plan shows."""
    problem = contested(3)
    desk = Desk(problem, scores_table(problem), PricingSolver().solve(problem).pairs)
    before = envy_excess(problem, desk.pairs)
    desk.calm(Clock(None))
    assert before > 0.01 >= 0.0 == desk.worst == pytest.approx(envy_excess(problem, desk.pairs), abs=1e-12)
    total = problem.scores.values(*desk.pairs.T).sum()
    desk.raise_total(Clock(None), 5)
    pairs = desk.pairs
    assert problem.scores.values(*pairs.T).sum() >= total
    assert envy_excess(problem, pairs) <= 1e-9
    assert (np.bincount(pairs[:, 0], minlength=problem.shape[0]) == problem.demand).all()
    load = np.bincount(pairs[:, 1], minlength=problem.shape[1])
    assert (load == desk.load).all() and (load <= problem.load_max).all() and (load >= problem.load_min).all()


def test_b22_picking_in_turns_that_ends_in_a_corner_is_repaired():
    """p1 would pick r1 and leave nobody for p2; the full plan exists and is found, by the turns as by the solver."""
    problem = AssignmentProblem.of([[0.9, 0.5], [0.2, 0.0]], demand=1, load_max=1, conflicts=[[1, 1]])
    assert picked_plan(Oracle(problem), 0).tolist() == [[0, 1], [1, 0]]
    solution = solve(problem)
    assert solution.pairs.tolist() == [[0, 1], [1, 0]]
    assert solution.meta["total"] == pytest.approx(0.7)


def test_the_one_that_gains_most_picks_first_and_the_smallest_share_is_next():
    """p0 has one of two reviews locked, so p1 and p2 pick before it, p2 first; p0 takes what is left."""
    scores = [[0.0, 1.0, 0.9, 0.8], [0.0, 0.7, 0.6, 0.1], [0.0, 0.9, 0.2, 0.1]]
    problem = AssignmentProblem.of(scores, demand=[2, 1, 1], load_max=1, locks=[[0, 0]])
    assert picked_plan(Oracle(problem), 0).tolist() == [[0, 0], [0, 3], [1, 2], [2, 1]]


def test_the_same_seed_gives_the_same_plan_and_other_rows_the_same_value():
    """Permuted submissions and reviewers: nobody envies either, and hardly any total is lost."""
    problem = contested(1)
    first, again = solve(problem, rng=5), solve(problem, rng=5)
    assert (first.pairs == again.pairs).all()
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(problem.shape[0]), rng.permutation(problem.shape[1])
    moved = AssignmentProblem.of(
        scores_table(problem)[:, :-1][np.ix_(rows, cols)],
        demand=problem.demand[rows], load_max=problem.load_max[cols], load_min=problem.load_min[cols],
    )  # fmt: skip
    other = solve(moved, rng=5)
    assert other.value == first.value == 0.0
    assert other.meta["total"] == pytest.approx(first.meta["total"], rel=5e-3)


def test_a_limit_before_any_plan_is_not_called_infeasible():
    """No time at all."""
    solution = EnvySolver().solve(contested(0), time_limit=0.0)
    assert solution.status == Status.LIMIT_WITHOUT_PLAN
    assert not len(solution.pairs)


def test_a_limit_after_the_best_total_states_the_envy_left(monkeypatch):
    """The clock ends once the total is known: a full plan, its excess as the gap."""
    problem = contested(0)
    over = Clock.over.fget
    monkeypatch.setattr(Clock, "over", property(lambda clock: "envy" in clock.stages or over(clock)))
    solution = solve(problem)
    assert solution.status == Status.FEASIBLE_AT_LIMIT
    assert solution.gap == solution.value == pytest.approx(envy_excess(problem, solution.pairs))
    assert solution.value > 0.0


def test_envy_no_plan_avoids_is_stated_and_not_called_infeasible():
    """Locks give one submission all the good people; the only full plan has envy."""
    problem = AssignmentProblem.of([[0.1, 0.1, 1.0, 1.0]] * 2, demand=2, load_max=1, locks=[[0, 2], [0, 3]])
    solution = solve(problem)
    assert solution.status == Status.OPTIMAL
    assert solution.gap == solution.value == pytest.approx(0.4)


@needs_shared
@pytest.mark.parametrize("name", ["mockbids", "csconf1", "csconf2", "csconf3", "sigir2007", "midl"])
def test_the_share_of_the_total_is_at_least_that_of_fairsequence(name):
    """Published instances, without envy; midl with its least loads, which cost total to everybody."""
    with np.load(SHARED / "data" / "instances" / f"{name}.npz") as data:
        case = {key: data[key] for key in data}
    problem = AssignmentProblem.of(
        case["scores"].astype(float), demand=case["demand"], load_max=case["load_max"],
        load_min=case.get("load_min"), conflicts=case["conflict_idx"],
    )  # fmt: skip
    with (SHARED / "data" / "peers.csv").open(newline="") as table:
        shares = {
            (row["instance"], row["options"]): float(row["pct_of_max"])
            for row in csv.DictReader(table)
            if row["peer"] == "or_fairsequence"
        }
    solution = solve(problem)
    assert solution.value == 0.0
    assert 100 * solution.meta["share_of_total"] >= shares[name, "lb=1" if name == "midl" else ""] - 1e-3
