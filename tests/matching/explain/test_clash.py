"""Rules that cannot hold together: a set that clashes, and no longer does without any one of its bounds."""

from dataclasses import replace

import numpy as np
import pytest

from matching.constraints.bounds import GroupBound, PairLimit, SharedReviewers
from matching.constraints.problem import AssignmentProblem
from matching.explain.clash import _only, clashing_rules
from matching.explain.names import Names
from matching.explain.repairs import cheapest_repairs
from matching.explain.resolves import Resolves
from matching.explain.unserved import short_minima, short_sets
from matching.solvers.choose import solve
from tests.enumeration import every_plan
from tests.strategies import random_problem

KINDS = ("locks", "conflicts", "minima", "group", "second-group", "pairs", "shared", "weights")


class BruteForce(Resolves):
    """Counts what is missing over every plan."""

    def __init__(self):
        super().__init__(None)

    def missing(self, problem):
        return round(every_plan(problem).lacking, 9)


def solver():
    return Resolves(lambda problem, wish, seconds: solve(problem, (wish,), time_limit=seconds))


def names_of(problem):
    return Names(
        [f"p{row}" for row in range(problem.shape[0])],
        [f"r{col}" for col in range(problem.shape[1])],
        lambda row, col: ["same institution"],
        lambda row, col: (row + col) % 2 == 0,
    )


def infeasible_problems(count, start=0):
    seed = start
    while count:
        problem = random_problem(seed, KINDS, size=(3, 4))
        seed += 1
        missing = every_plan(problem).lacking
        if missing:
            count -= 1
            yield problem, missing


@pytest.mark.parametrize("start", [0, 1000])
def test_the_bounds_named_clash_and_do_not_without_any_one_of_them(start):
    """By brute force over every plan, where demand, loads and conflicts alone would allow a full one."""
    none = np.empty((0, 2), dtype=np.int64)
    seen = 0
    for problem, _ in infeasible_problems(25, start):
        brute = BruteForce()
        clash = clashing_rules(problem, brute)
        alone = replace(problem, rules=(), load_min=np.zeros_like(problem.load_min))
        if clash is None:
            no_rules = replace(problem, rules=())
            assert every_plan(alone).lacking or every_plan(no_rules).lacking
            assert short_sets(problem, none) or short_minima(problem, none)
            continue
        assert not every_plan(alone).lacking and clash.irreducible
        bounds = [(at, key) for at, keys in clash.parts.items() for key in keys.tolist()]
        bounds += [(None, col) for col in clash.minima.tolist()]

        def lacking(kept, problem=problem):
            rules = tuple(
                _only(rule, np.array([key for at, key in kept if at == place], dtype=np.int64))
                for place, rule in enumerate(problem.rules)
            )
            least = np.zeros_like(problem.load_min)
            cols = [col for at, col in kept if at is None]
            least[cols] = problem.load_min[cols]
            return every_plan(replace(problem, rules=rules, load_min=least)).lacking

        assert lacking(bounds) > 0
        assert all(lacking([other for other in bounds if other != bound]) == 0 for bound in bounds)
        seen += 1
    assert seen > 5


def test_repairs_found_with_the_solvers_are_those_found_by_enumeration():
    """Each effect is exact: the same repairs, the same numbers, in the same order."""
    none = np.empty((0, 2), dtype=np.int64)
    kinds = set()
    for problem, missing in infeasible_problems(12, 50):
        short, minima = short_sets(problem, none), short_minima(problem, none)
        told = []
        for resolves in (BruteForce(), solver()):
            clash = None if short or minima else clashing_rules(problem, resolves)
            below = np.zeros(problem.shape[1], dtype=np.int64)
            told.append(cheapest_repairs(problem, missing, short, minima, clash, below, names_of(problem), resolves))
        assert told[0] == told[1]
        kinds |= {entry["kind"] for entry in told[0][0]}
        assert all(entry["filled"] == pytest.approx(missing - entry["missing"]) for entry in told[0][0])
    assert {"conflict", "recruit", "rule"} <= kinds


def test_a_clash_over_many_submissions_comes_down_to_those_it_fails_for():
    """Two seniors of load 2 for twelve submissions: any five of them are too many, and five are named."""
    senior = np.zeros((1, 8))
    senior[0, :2] = 1
    problem = AssignmentProblem.of(
        np.ones((12, 8)), demand=1, load_max=2,
        rules=[GroupBound.of("a senior each", np.eye(12), senior, lower=1,
                             submission_labels=[f"p{n}" for n in range(12)], reviewer_labels=["seniors"])],
    )  # fmt: skip
    clash = clashing_rules(problem, solver())
    told = clash.told(problem, names_of(problem))
    assert clash.irreducible and len(told["rules"]) == 5
    assert told["rules"][0].keys() == {"rule", "submissions", "reviewers", "at_least"}
    assert 'rule "a senior each" for p' in told["sentence"] and "Without any one of them" in told["sentence"]


def test_rules_that_are_kept_alone_but_not_together_are_both_named():
    """p0 and p1 share a reviewer, and nobody may have both: neither rule is at fault alone."""
    both = np.array([[row, col] for col in range(4) for row in (0, 1)])
    problem = AssignmentProblem.of(
        np.ones((3, 4)), demand=1, load_max=2,
        rules=[
            SharedReviewers("together", np.array([[0, 1]]), np.array([1]), labels=("p0 and p1",)),
            GroupBound.of("at most three in all", np.ones((1, 3)), np.ones((1, 4)), upper=3),
            PairLimit("not both", np.repeat(np.arange(4), 2), both,
                      np.ones(4, dtype=np.int64), labels=tuple(f"r{col}" for col in range(4))),
        ],
    )  # fmt: skip
    clash = clashing_rules(problem, solver())
    assert sorted(clash.parts) == [0, 2] and clash.irreducible
    assert [len(keys) for _, keys in sorted(clash.parts.items())] == [1, 4]


def test_a_clash_that_is_not_searched_to_its_end_says_so():
    """Where the solves run out what is left still clashes; only that each bound is needed stays open."""

    class Few(BruteForce):
        @staticmethod
        def count(problem, most, pairs_in_all=0):
            return 4

    senior = np.array([[1.0, 0, 0, 0]])
    problem = AssignmentProblem.of(
        np.ones((4, 4)), demand=1, load_max=2, rules=[GroupBound.of("senior", np.eye(4), senior, lower=1)]
    )
    clash = clashing_rules(problem, Few())
    assert not clash.irreducible and "Without any one" not in clash.told(problem, names_of(problem))["sentence"]
    kept = _only(problem.rules[0], clash.parts[0])
    assert every_plan(replace(problem, rules=(kept,))).lacking > 0
