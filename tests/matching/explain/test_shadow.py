"""Shadow prices: never below what one more review or person gains, and the gain is that of a new best plan."""

import numpy as np
import pytest

from matching.explain.changes import more_load, more_people
from matching.explain.names import Names
from matching.explain.resolves import Resolves
from matching.explain.shadow import shadow_prices
from matching.objectives import parse_objective
from matching.solvers.base import Status
from matching.solvers.choose import solve
from tests.enumeration import every_plan
from tests.strategies import random_problem

KINDS = ("locks", "conflicts", "unknown", "minima", "group", "pairs", "shared", "priced", "negative")
AREAS = ["graphs", "Graphs ", "logic"]


def resolves(seconds=None):
    return Resolves(lambda problem, wish, limit: solve(problem, (wish,), time_limit=limit), seconds)


def names_of(problem):
    n = problem.shape[1]
    return Names(
        [f"p{row}" for row in range(problem.shape[0])], [f"r{col}" for col in range(n)], lambda row, col: [],
        reviewer_areas=[[AREAS[col % 3]] for col in range(n)],
    )  # fmt: skip


def best(problem, wish):
    plans = every_plan(problem)
    return float(plans.worth(wish).max())


@pytest.mark.parametrize("objective", ["total", "maximin", {"name": "threshold", "t": 1.0}])
def test_no_gain_is_above_its_price_and_each_is_that_of_every_plan_gone_through(objective):
    """People and areas, with and without rules; people who are not named have no price."""
    (wish,) = parse_objective(objective)
    told = 0
    for seed in range(40):
        problem = random_problem(seed, KINDS[: seed % (len(KINDS) + 1)], size=(3, 3))
        solution = solve(problem, (wish,))
        found = shadow_prices(problem, solution, wish, names_of(problem), resolves())
        if solution.status != Status.OPTIMAL:
            assert found == {}
            continue
        assert found["objective"] == wish.name and found["note"] is None
        now = best(problem, wish)
        slack = found["gap"] + 1e-7
        people = {entry["reviewer"]: entry for entry in found["people"]}
        for col in range(problem.shape[1]):
            gain = best(more_load(problem, [col]), wish) - now
            entry = people.get(f"r{col}")
            assert gain <= (entry["price"] if entry else 0.0) + slack
            if entry:
                assert entry["gain"] == pytest.approx(gain, abs=slack)
                told += 1
        scores = problem.scores.block(slice(0, 3), slice(0, 3))
        for entry in found["areas"]:
            cols = [col for col in range(3) if " ".join(AREAS[col].split()).lower() == entry["area"].lower()]
            assert entry["reviewers"] == len(cols)
            known = ~np.isnan(scores[:, cols])
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = np.where(known, scores[:, cols], 0).sum(axis=1) / known.sum(axis=1)
            gain = best(more_people(problem, mean[:, None]), wish) - now
            assert gain <= entry["price"] + slack and entry["gain"] == pytest.approx(gain, abs=slack)
            told += 1
    assert told > 5


def test_other_objectives_are_told_the_prices_of_the_total():
    """Welfare has no unit of affinity; what is said is said of the total, by name."""
    problem = random_problem(3, (), size=(4, 4))
    (wish,) = parse_objective({"name": "welfare", "alpha": 1.0})
    solution = solve(problem, (wish,))
    found = shadow_prices(problem, solution, wish, names_of(problem), resolves())
    total = parse_objective("total")[0]
    assert found == shadow_prices(problem, solve(problem, (total,)), total, names_of(problem), resolves())
    assert found["objective"] == "total"


def test_without_time_prices_stand_unchecked_and_it_is_said():
    """A run at its time limit does not go on solving."""
    problem = random_problem(1, (), size=(4, 4))
    (wish,) = parse_objective("total")
    found = shadow_prices(problem, solve(problem, (wish,)), wish, names_of(problem), resolves(seconds=0.0))
    told = [*found["people"], *found["areas"]]
    assert told and all(entry["gain"] is None for entry in told)
    assert found["note"].startswith(f"0 of {len(told)} prices were checked") and "time" in found["note"]
