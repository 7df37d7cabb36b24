"""What the audit counts beyond loads: rules, lotteries, and what a stack may assume. Small enough for paper."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from matching.constraints.bounds import GroupBound, PairLimit, SharedReviewers
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Floors, Level, Total, parse_objective
from matching.plan.audit import audit
from matching.solvers.base import Proof, Solution, Status

SCORES = np.array([[0.9, 0.5, 0.4], [0.8, 0.7, 0.1]])


def problem_of(*rules, **rest):
    return AssignmentProblem.of(SCORES, demand=1, load_max=2, rules=rules, **rest)


def solution_of(problem, pairs, *, u, w=(0, 0, 0), rule_prices=(), shortfall=(), wish=None, measure=None, **rest):
    """A plan with one proof, its value taken from the pairs and its bound from `rest` or equal to it."""
    pairs = np.array(pairs, dtype=np.int64)
    value = rest.pop("value", float(SCORES[pairs[:, 0], pairs[:, 1]].sum()))
    bound = rest.pop("bound", value)
    weights = rest.pop("weights", np.ones(2))
    proof = Proof(
        wish or {"name": "total"}, value, bound, bound - value, measure or Total(), (), weights, (),
        np.array(u, dtype=float), np.array(w, dtype=float), tuple(rule_prices),
    )  # fmt: skip
    unfilled = problem.demand - np.bincount(pairs[:, 0], minlength=2)
    return Solution(
        rest.pop("status", Status.OPTIMAL), pairs, value, bound, bound - value, proof.submission_prices,
        proof.reviewer_prices, unfilled, np.zeros(3, dtype=np.int64), proofs=(proof,),
        rule_shortfall=tuple(shortfall), **rest,
    )  # fmt: skip


def said(problem, solution, wishes=None):
    return " / ".join(audit(problem, solution, wishes).faults)


def test_a_rule_that_binds_is_proven_by_its_price():
    """At most one of the two submissions for the first reviewer: 0.9 + 0.7, where 0.9 + 0.8 is out of reach."""
    rule = GroupBound.of("one each", np.ones((1, 2)), np.eye(3)[:1], upper=1.0)
    problem = problem_of(rule)
    price = sparse.csr_array([[0.1]])
    nothing = sparse.csr_array((1, 1))
    right = solution_of(
        problem, [[0, 0], [1, 1]], u=[0.8, 0.7], rule_prices=[price], shortfall=[nothing]
    )  # fmt: skip
    assert said(problem, right) == ""
    assert "exceeded" in said(problem, replace(right, pairs=np.array([[0, 0], [1, 0]])))
    free = replace(right.proofs[0], rule_prices=(nothing,))
    assert "weaker" in said(problem, replace(right, proofs=(free,)))
    stated = replace(right, rule_shortfall=(sparse.csr_array([[1.0]]),))
    assert "misstated" in said(problem, stated)


def test_a_priced_rule_costs_what_it_is_missed_by():
    """The same rule for 0.05 a unit: both take the first reviewer, and 0.05 is paid; a higher price proves too much."""
    rule = GroupBound.of("one each", np.ones((1, 2)), np.eye(3)[:1], upper=1.0, price=0.05)
    problem = problem_of(rule)
    one = sparse.csr_array([[1.0]])
    right = solution_of(
        problem, [[0, 0], [1, 0]], u=[0.85, 0.75], rule_prices=[sparse.csr_array([[0.05]])], shortfall=[one], value=1.65
    )
    assert said(problem, right) == ""
    assert "misstated" in said(problem, replace(right, rule_shortfall=()))
    dear = replace(right.proofs[0], rule_prices=(sparse.csr_array([[0.06]]),))
    assert "outside what missing it costs" in said(problem, replace(right, proofs=(dear,)))
    assert "recomputed from the plan" in said(
        problem, replace(right, value=1.7, bound=1.7, proofs=(replace(right.proofs[0], value=1.7, bound=1.7),))
    )


def test_shared_reviewers_and_listed_pairs_are_counted():
    """Two submissions with a reviewer in common, and two pairs of which one may be taken."""
    shared = problem_of(SharedReviewers("same", np.array([[0, 1]]), np.array([1])))
    apart = solution_of(shared, [[0, 0], [1, 1]], u=[0.9, 0.8], bound=1.7)
    assert "lacks 1" in said(shared, apart)
    together = solution_of(shared, [[0, 0], [1, 0]], u=[0.9, 0.8])
    assert said(shared, together) == ""
    limit = problem_of(PairLimit("not both", np.array([0, 0]), np.array([[0, 0], [1, 0]]), np.array([1])))
    assert "exceeded" in said(limit, solution_of(limit, [[0, 0], [1, 0]], u=[0.9, 0.8]))


def test_locks_excuse_only_what_they_force():
    """A hard bound of 0 broken by a lock: the plan is infeasible by one, and may not break it by two."""
    rule = GroupBound.of("nobody", np.ones((1, 2)), np.eye(3)[:1], upper=0.0)
    problem = problem_of(rule, locks=[(0, 0)])
    forced = solution_of(
        problem, [[0, 0], [1, 1]], u=[0, 0.7], rule_prices=[sparse.csr_array([[0.1]])],
        shortfall=[sparse.csr_array([[1.0]])], status=Status.INFEASIBLE, penalty=10.0,
    )  # fmt: skip
    forced = replace(forced, proofs=(replace(forced.proofs[0], penalty=10.0),))
    assert said(problem, forced) == ""
    twice = replace(forced, pairs=np.array([[0, 0], [1, 0]]), rule_shortfall=(sparse.csr_array([[2.0]]),))
    assert "that no lock forces" in said(problem, twice)


def test_only_rules_may_be_called_infeasible_by_a_search():
    """A problem without rules always has prices that prove it; words do not stand in for them."""
    rule = PairLimit("none", np.array([0]), np.array([[0, 0]]), np.array([1]))
    for problem, clean in ((problem_of(rule), True), (problem_of(), False)):
        solution = solution_of(
            problem, [[0, 0]], u=[0.9, 0.8], bound=1.7, status=Status.INFEASIBLE,
            meta={"proven_by": "enumeration by the integer solver"},
        )  # fmt: skip
        report = audit(problem, solution)
        assert report.clean == clean and bool(report.notes) == clean


def maximin_then_total():
    """Worst 0.7 at the most where nobody may have two: then the total above it."""
    problem = AssignmentProblem.of(SCORES, demand=1, load_max=1)
    pairs = np.array([[0, 0], [1, 1]])
    level = Level(np.ones(2, dtype=bool))
    first = Proof(
        {"name": "maximin"}, 0.7, 0.8, 0.8 - 0.7, level, (), np.array([0.0, 1.0]), (), np.array([0.0, 0.8]), np.zeros(3)
    )
    second = Proof(
        {"name": "total"}, 1.6, 1.6, 0.0, Total(), ((level, 0.7),), np.ones(2), ((0.0, np.array([0.0, 1.0])),),
        np.array([0.8, 0.7]), np.array([0.1, 0.0, 0.0]),
    )  # fmt: skip
    solution = Solution(
        Status.OPTIMAL, pairs, 0.7, 0.8, 0.8 - 0.7, second.submission_prices, second.reviewer_prices,
        np.zeros(2, dtype=np.int64), np.zeros(3, dtype=np.int64), proofs=(first, second),
    )  # fmt: skip
    return problem, solution, parse_objective(["maximin", "total"])


def with_second(solution, **changes):
    return replace(solution, proofs=(solution.proofs[0], replace(solution.proofs[1], **changes)))


def test_a_stack_may_assume_only_what_earlier_wishes_prove():
    """A constraint nobody asked for makes a bound of fewer plans look like one of all."""
    problem, solution, wishes = maximin_then_total()
    assert said(problem, solution, wishes) == ""
    idle = ((0.0, np.array([0.0, 1.0])),)
    assert "assumes" in said(problem, with_second(solution, constraints=((solution.proofs[0].measure, 0.75),)))
    invented = Floors(np.array([0.9, -np.inf]))
    assert "above what earlier wishes prove" in said(
        problem, with_second(solution, constraints=((invented, 0.0),), multipliers=idle)
    )
    alone = ((Level(np.array([True, False])), 0.9),)
    assert "stands for no earlier wish" in said(problem, with_second(solution, constraints=alone, multipliers=idle))
    assert "multiplier" in said(problem, with_second(solution, multipliers=((-1.0, np.array([0.0, 1.0])),)))


def test_proofs_answer_what_was_asked():
    """Another objective, another option, another measure: each is refused by name."""
    problem, solution, wishes = maximin_then_total()
    assert "was asked for" in said(problem, solution, parse_objective(["total", "maximin"]))
    assert "other options" in said(problem, solution, parse_objective([{"name": "maximin", "loss": 0.1}, "total"]))
    some = replace(solution.proofs[0], measure=Level(np.array([False, True])))
    assert "not the one maximin demands" in said(problem, replace(solution, proofs=(some, solution.proofs[1])))
    plain = replace(solution, proofs=(), value=1.6, bound=1.6, gap=0.0)
    assert said(problem, plain) == "" and "no proof of maximin" in said(problem, plain, wishes)


def lottery():
    """One submission for two of three equal reviewers, each with probability 2/3."""
    problem = AssignmentProblem.of([[0.6, 0.6, 0.6]], demand=2, load_max=1)
    third = 2.0 / 3.0
    proof = Proof(
        {"name": "randomised", "cap": 0.7}, 1.2, 1.2, 0.0, Total(), (), np.ones(1), (), np.array([0.6]), np.zeros(3)
    )
    return problem, Solution(
        Status.OPTIMAL, np.array([[0, 0], [0, 2]]), 1.2, 1.2, 0.0, proof.submission_prices, proof.reviewer_prices,
        np.zeros(1, dtype=np.int64), np.zeros(3, dtype=np.int64), proofs=(proof,),
        probabilities=sparse.csr_array([[third, third, third]]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shares", "word"),
    [
        ([[0.8, 0.6, 0.6]], "above their cap"),
        ([[0.6, 0.6, 0.6]], "do not add up to its demand"),
        ([[0.7, 0.7, 0.6 + 1e-6]], "do not add up to its demand"),
        ([[np.nan, 0.7, 0.7]], "does not lie between 0 and 1"),
        ([[1.4, 0.0, 0.6]], "does not lie between 0 and 1"),
        ([[0.0, 1.0, 1.0]], "of probability 0 was drawn"),
        ([[0.5, 1.0, 0.5]], "of probability 1 was not drawn"),
    ],
)
def test_probabilities_are_those_of_lawful_plans(shares, word):
    """Caps, demand, support: what the draw of a plan rests on."""
    problem, solution = lottery()
    assert said(problem, solution) == ""
    assert word in said(problem, replace(solution, probabilities=sparse.csr_array(shares)))


def test_the_expected_value_belongs_to_the_probabilities():
    """Not to the plan that happened to be drawn; and only lotteries have any."""
    problem, solution = lottery()
    uneven = AssignmentProblem.of([[0.9, 0.6, 0.3]], demand=2, load_max=1)
    assert "recomputed from the plan" not in said(uneven, solution)  # 0.9, 0.6 and 0.3 average to 0.6
    assert "recomputed from the plan" in said(AssignmentProblem.of([[0.9, 0.6, 0.6]], demand=2, load_max=1), solution)
    assert "nothing else" in said(problem, replace(solution, probabilities=None))
