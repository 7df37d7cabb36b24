"""Whatever is asked for, by the one door, on random tiny problems of every kind, against all plans there are."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.base import Status
from matching.solvers.choose import solve
from tests.enumeration import every_plan
from tests.oracles import by_ruled_program
from tests.strategies import KINDS, random_problem, ruled_problems

EXACT = 1e-9
HARD = tuple(kind for kind in KINDS if kind != "priced")
STACKS = (
    "maximin",
    "leximin",
    {"name": "threshold", "t": 0.8},
    "evenness",
    ["maximin", "total"],
    ["leximin", "total"],
    ["maximin", "total", "evenness"],
    ["total", "maximin"],
    ["total", "leximin"],
    [{"name": "total", "loss": 0.1}, "maximin"],
    [{"name": "maximin", "loss": 0.2}, "total"],
    [{"name": "threshold", "t": 0.6}, "total", "evenness"],
)
"""Solved to the end on tiny problems: the values are the best there are."""

CONCAVE = (
    {"name": "welfare", "alpha": 0.0},
    {"name": "welfare", "alpha": 0.5},
    {"name": "welfare", "alpha": 1.0},
    {"name": "welfare", "alpha": 3.0},
    {"name": "robust", "standard_error": 0.2, "radius": 1.0},
    "envy",
)
"""Between the best there is and the stated bound, which may leave a gap."""


def words(objective):
    entries = objective if isinstance(objective, list) else [objective]
    return ", ".join(entry if isinstance(entry, str) else "-".join(map(str, entry.values())) for entry in entries)


def quick(count):
    return settings(
        max_examples=count, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
    )


def checked(problem, objective):
    """The solution, its wishes and all plans, once the audit has found it clean and as full as any plan."""
    wishes = parse_objective(objective)
    solution = solve(problem, wishes)
    report = audit(problem, solution, wishes)
    assert report.clean, report.faults
    plans = every_plan(problem)
    assert report.missing == pytest.approx(plans.lacking, abs=EXACT)
    assert (solution.status == Status.INFEASIBLE) == (plans.lacking > 0)
    return solution, wishes, plans


def chosen(problem, solution, plans):
    """The solution as one of the plans."""
    taken = np.zeros(problem.shape, dtype=bool)
    taken[solution.pairs[:, 0], solution.pairs[:, 1]] = True
    same = (plans.taken == taken).all(axis=(1, 2))
    assert same.any(), "not among the lawful plans that lack least"
    return plans.only(same)


@quick(500)
@given(ruled_problems())
def test_the_total_equals_the_best_of_all_plans_under_any_combination_of_rules(problem):
    """Values, what is missing, and the plan itself being lawful, for hundreds of venues with every mix of rules."""
    solution, wishes, plans = checked(problem, "total")
    best = plans.best(wishes)[0]
    assert solution.value == pytest.approx(best, abs=EXACT)
    assert solution.bound >= best - EXACT
    assert chosen(problem, solution, plans).worth(wishes[0])[0] == pytest.approx(best, abs=EXACT)


@pytest.mark.parametrize("objective", STACKS, ids=words)
@quick(60)
@given(problem=ruled_problems(HARD, largest=4))
def test_a_stack_reaches_the_best_value_of_every_wish(objective, problem):
    """One after the other, each within what the ones before it leave; infeasible ones fall back to the total."""
    solution, wishes, plans = checked(problem, objective)
    mine = chosen(problem, solution, plans)
    if plans.lacking or not (problem.demand > 0).any():
        return
    assert len({proof.wish["name"] for proof in solution.proofs}) >= len(wishes)
    left = plans
    for wish in wishes:
        worth, reached = left.worth(wish), mine.worth(wish)[0]
        if wish.name == "evenness" and problem.rules:  # searched for, not solved to the end; the bound must still hold
            assert -solution.proofs[-1].bound >= worth.max() - EXACT
            continue
        if wish is wishes[-1] or wish.loss == 0.0:
            assert _worth_of(left, mine, wish) == pytest.approx(float(worth.max()), abs=EXACT), wish.name
        assert reached >= worth.max() - wish.loss * abs(worth.max()) - EXACT or wish.name == "leximin"
        left = left.only(worth >= worth.max() - wish.loss * abs(worth.max()) - EXACT)


def _worth_of(plans, mine, wish):
    """Worth of the plan on the scale of all plans; ranks of leximin only mean something among them."""
    same = (plans.taken == mine.taken[0]).all(axis=(1, 2))
    assert same.any(), f"a wish before {wish.name} was given up"
    return float(plans.worth(wish)[same][0])


@pytest.mark.parametrize("objective", CONCAVE, ids=words)
@quick(80)
@given(problem=ruled_problems(largest=4))
def test_value_best_and_bound_are_in_order(objective, problem):
    """The plan is no better than the best, and the bound no lower."""
    solution, wishes, plans = checked(problem, objective)
    chosen(problem, solution, plans)
    if plans.lacking or not (problem.demand > 0).any():
        return
    sign = -1.0 if wishes[0].name == "envy" else 1.0
    best = float(plans.worth(wishes[0]).max())
    slack = EXACT * max(1.0, abs(best))
    assert sign * solution.value <= best + slack
    assert sign * solution.bound >= best - slack
    assert solution.gap == pytest.approx(abs(solution.bound - solution.value), abs=slack)


@pytest.mark.parametrize("cap", [0.3, 0.5, 0.75, 1.0])
@quick(40)
@given(problem=ruled_problems(("locks", "conflicts", "unknown", "minima", "negative")))
def test_randomised_plans_reach_the_best_expected_total(cap, problem):
    """The linear program with the cap as an upper bound says how far one can get, also in saying infeasible."""
    wishes = parse_objective({"name": "randomised", "cap": cap})
    solution = solve(problem, wishes)
    report = audit(problem, solution, wishes)
    assert report.clean, report.faults
    missing, value = by_ruled_program(problem, "randomised", cap)
    assert (solution.status == Status.INFEASIBLE) == (missing > 1e-6)
    if missing <= 1e-6:
        assert solution.value == pytest.approx(value, abs=1e-5)
        assert (solution.probabilities.toarray() <= np.where(_locked(problem), 1.0, cap) + 1e-12).all()


def _locked(problem):
    out = np.zeros(problem.shape, dtype=bool)
    out[problem.locked[:, 0], problem.locked[:, 1]] = True
    return out


@quick(30)
@given(problem=ruled_problems(("locks", "conflicts", "minima")), beta=st.sampled_from([0.0, 0.1, 1.0]))
def test_perturbed_plans_are_no_worse_than_their_bound_allows(problem, beta):
    """With beta 0 they are the randomised ones; otherwise the gap is small."""
    wishes = parse_objective({"name": "perturbed", "beta": beta, "cap": 0.8})
    solution = solve(problem, wishes)
    report = audit(problem, solution, wishes)
    assert report.clean, report.faults
    if solution.status == Status.OPTIMAL:
        assert solution.gap <= 1e-4 * max(1.0, abs(solution.value))
        if beta == 0.0:
            assert solution.value == pytest.approx(by_ruled_program(problem, "randomised", 0.8)[1], abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("objective", ["total", "maximin"])
def test_a_plain_program_at_mid_size_says_the_same(objective, seed):
    """Fourteen by eleven, where enumeration is out of reach, with rules of every kind at once."""
    rng = np.random.default_rng(seed)
    every = ("conflicts", "group", "second-group", "pairs", "shared", *(["priced"] if objective == "total" else []))
    kinds = [kind for kind in every if rng.random() < 0.6]
    problem = random_problem(seed, kinds, size=(14, 11), enumerated=False)
    solution = solve(problem, parse_objective(objective))
    report = audit(problem, solution)
    assert report.clean, report.faults
    missing, value = by_ruled_program(problem, objective if report.missing == 0 else "total")
    assert report.missing == pytest.approx(missing, abs=1e-6)
    assert solution.value == pytest.approx(value, abs=1e-5)
