"""Priced rules in stacks, beside every plan there is: no later wish takes what missed rules cost from an earlier."""

from dataclasses import replace

import numpy as np
import pytest

from matching.constraints.attributes import Attributes
from matching.constraints.problem import AssignmentProblem
from matching.constraints.rules import compile_rules, parse_rules
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.choose import solve
from tests.enumeration import every_plan, units

STACKS = [
    "total", "maximin", {"name": "threshold", "t": 0.8}, ["maximin", "total"],
    ["total", {"name": "threshold", "t": 0.8}],
    [{"name": "maximin", "loss": 0.2}, "total"], [{"name": "total", "loss": 0.1}, "maximin"],
    [{"name": "threshold", "t": 1.0, "loss": 0.1}, "total"], ["leximin", "total"],
]  # fmt: skip
KINDS = [
    {"rule": "reviewers_per_submission", "reviewers": {"seniority": "s"}, "at_least": 1},
    {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1},
    {"rule": "submissions_per_reviewer", "each": "track", "at_least": 1, "at_most": 1},
    {"rule": "reviews_in_all", "reviewers": {"seniority": "s"}, "at_least": 3, "at_most": 4},
    {"rule": "same", "attribute": "track", "missing": "barred"},
    {"rule": "coreviewer_distance", "at_least": 2},
    {"rule": "no_cycles", "length": 3},
    {"rule": "share_reviewers", "at_least": 1},
    {"rule": "no_shared_reviewers", "each": "track"},
]


def priced(seed):
    """A problem of at most 4 x 4 with two priced rules."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(2, 5, 2)
    scores = np.round(rng.random((n, m)), 2) - rng.choice([0, 0, 0.4])
    authors = [[str(at) for at in rng.choice(m, int(rng.integers(0, 2)), replace=False)] for _ in range(n)]
    conflicts = [(row, int(at)) for row, names in enumerate(authors) for at in names]
    submissions = {"track": list(rng.choice(["x", "y"], n)), "author": authors}
    submissions["track"][0], submissions["track"][-1] = "x", "y"
    people = {
        "seniority": ["s", *rng.choice(["s", "t"], m - 1)], "affiliation": list(rng.choice(["A", "B"], m)),
        "track": ["x", *rng.choice(["x", "y"], m - 1)],
        "publication": [[str(at) for at in rng.choice(3, int(rng.integers(0, 3)), replace=False)] for _ in range(m)],
    }  # fmt: skip
    numbers = {"demand": np.full(n, rng.integers(1, 3)), "load_max": np.full(m, rng.integers(1, 4))}
    numbers["load_min"] = np.zeros(m, dtype=np.int64)
    chosen = rng.choice(len(KINDS), 2, replace=False)
    rules = [{**KINDS[at], "price": float(rng.choice([0.05, 0.25, 1, 3]))} for at in chosen]
    for side in (submissions, people):
        for name, entries in side.items():
            side[name] = [str(entry) if isinstance(entry, str) else entry for entry in entries]
    made = compile_rules(
        parse_rules(rules), Attributes.of_columns(submissions=submissions, reviewers=people, **numbers)
    )
    return AssignmentProblem.of(scores, conflicts=conflicts or None, rules=made.bounds, **numbers)


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_the_first_wish_is_the_best_there_is_and_stays_so_within_its_loss(stack):
    """With prices taken off: the total after a maximin gave it away again, and losses ended in a refused proof."""
    wishes = parse_objective(stack)
    for seed in range(8):
        problem = priced(seed)
        found, plans = solve(problem, wishes), every_plan(problem)
        report = audit(problem, found, wishes)
        assert report.clean, (seed, report.faults)
        assert (found.status == "optimal") == (plans.lacking == 0), seed
        if plans.lacking:
            continue
        taken = np.zeros(problem.shape, dtype=bool)
        taken[found.pairs[:, 0], found.pairs[:, 1]] = True
        mine = plans.only((plans.taken == taken).all(axis=(1, 2)))
        for rule, missed in zip(problem.rules, found.rule_shortfall, strict=True):
            counted = sum(part.sum() for part in units(rule, taken[None]))
            assert np.abs(missed.toarray() if hasattr(missed, "toarray") else missed).sum() == pytest.approx(counted)
        if wishes[0].name == "leximin":
            continue  # its order counts prices level by level
        best, own = float(plans.worth(wishes[0]).max()), float(mine.worth(wishes[0])[0])
        assert own >= best - wishes[0].loss * abs(best) - 1e-7, seed
        assert found.proofs[0].value == pytest.approx(own) and found.proofs[0].bound >= own - 1e-9
        if len(wishes) > 1:
            kept = plans.only(plans.worth(wishes[0]) >= best - wishes[0].loss * abs(best) - 1e-9)
            assert found.proofs[1].bound >= kept.worth(wishes[1]).max() - 1e-7, seed


def test_a_constraint_that_the_plan_keeps_only_before_paying_is_found_out():
    """What a later wish leaves of an earlier one is its value, and that is stated after paying."""
    people = {"seniority": ["t", "s"]}
    rules = [{"rule": "reviewers_per_submission", "reviewers": {"seniority": "s"}, "at_least": 1, "price": 0.3}]
    attributes = Attributes.of_columns(
        demand=np.ones(2, dtype=int), load_max=np.full(2, 2), load_min=np.zeros(2, dtype=int), reviewers=people
    )
    problem = AssignmentProblem.of(
        [[1.0, 0.5], [1.0, 0.6]], demand=1, load_max=2, rules=compile_rules(parse_rules(rules), attributes).bounds
    )
    honest = solve(problem, parse_objective(["maximin", "total"]))
    assert honest.pairs.tolist() == [[0, 1], [1, 1]] and honest.value == pytest.approx(0.5)
    other = solve(problem, parse_objective("total"))  # sums of 1, less twice the price: 0.4 for the worst-served
    assert other.pairs.tolist() == [[0, 0], [1, 0]]
    gap = honest.bound - 0.4
    first = replace(honest.proofs[0], value=0.4, gap=gap)
    second = replace(honest.proofs[1], value=1.4, bound=max(1.4, honest.proofs[1].bound))
    second = replace(second, gap=second.bound - 1.4)
    wrong = replace(
        honest, pairs=other.pairs, rule_shortfall=other.rule_shortfall, value=0.4, gap=gap, proofs=(first, second)
    )
    (fault,) = audit(problem, wrong).faults
    assert fault.startswith("proof 1: the plan reaches -0.0999")  # 0.4 is 0.1 short of the floor of 0.5
