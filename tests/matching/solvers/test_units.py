"""Scores far from 1: the same plans and the same proofs, counted in another unit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import matching
from matching.constraints.problem import AssignmentProblem
from matching.objectives import Wish, parse_objective
from matching.plan.audit import audit
from matching.scores.base import VectorScores
from matching.solvers.choose import solve
from matching.solvers.tradeoff import tradeoff
from matching.solvers.units import unit_of

SCORES = np.array([[0.5, 0.25, 0.75, 0.125], [0.875, 0.5, 0.375, 0.625], [0.25, 0.5, 0.125, 1.0]])
OBJECTIVES = [
    "total", "welfare", {"name": "welfare", "alpha": 0}, {"name": "welfare", "alpha": 3}, "maximin", "leximin", "envy",
    {"name": "threshold", "t": 1.25}, "evenness", "randomised", {"name": "perturbed", "beta": 0.25, "cap": 0.75},
    {"name": "robust", "standard_error": 0.125}, [{"name": "maximin", "loss": 0.125}, "total", "evenness"],
    ["welfare", "maximin"], [{"name": "total", "loss": 0.25}, "leximin"], ["evenness", "total"],
]  # fmt: skip


def _in(objective, unit):
    """The objective with the options that are counted in scores in this unit."""
    if not isinstance(objective, dict):
        return objective
    return {key: value * unit if key in ("t", "beta", "standard_error") else value for key, value in objective.items()}


@pytest.mark.parametrize("exponent", [-60, -30, -12, 22, 27])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_another_unit_changes_numbers_and_no_plan(objective, exponent):
    """A power of two is exact, so values and bounds are the same to the last bits, and the audit holds."""
    unit = 2.0**exponent
    one = matching.assign(SCORES, demand=2, load_max=2, objective=objective)
    other = matching.assign(SCORES * unit, demand=2, load_max=2, objective=_in(objective, unit))
    assert other.pairs.tolist() == one.pairs.tolist() and other.status == one.status
    squares = objective == "evenness" or (isinstance(objective, list) and objective[0] == "evenness")
    stated = 1.0 if squares else unit
    assert [other.value, other.bound] == pytest.approx([one.value * stated, one.bound * stated], rel=1e-9, abs=0)
    assert len(other.proofs) == len(one.proofs)


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9])
def test_rules_hold_and_the_best_is_found_in_tiny_and_huge_units(unit):
    """Tolerances of the programs are absolute: at 1e-9 the worst plan was as good to them as the best."""
    rng = np.random.default_rng(4)
    for _ in range(4):
        scores = rng.random((3, 4)) * unit
        rule = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1}
        people = {"seniority": ["senior", "student", "senior", "student"]}
        found = matching.assign(scores, demand=2, load_max=2, rules=[rule], reviewer_attributes=people)
        pairs = [two for two in itertools.combinations(range(4), 2) if 0 in two or 2 in two]
        best = max(
            sum(scores[row, list(two)].sum() for row, two in enumerate(plan))
            for plan in itertools.product(pairs, repeat=3)
            if np.bincount(np.concatenate(plan)).max() <= 2
        )
        assert found.value == pytest.approx(best, rel=1e-9, abs=0)


def test_wishes_whose_slopes_lie_far_apart_end_in_a_plan():
    """Carrying prices of one scale over to one 2**60 away overflowed the integers and broke the tie-breaking."""
    scores = np.random.default_rng(0).random((4, 5)).round(2) * 1e9
    stack = [{"name": "threshold", "t": 1.2}, "maximin", "welfare"]
    assert matching.assign(scores, demand=2, load_max=2, objective=stack).status == "optimal"


def test_scores_of_any_form_are_counted_in_the_unit():
    """Dense, sparse and vectors; near 1 nothing is changed, and what is not finite is left to the checks."""
    for scores in (SCORES, sparse.csr_array(SCORES), SCORES.astype(np.float32), VectorScores(SCORES, np.eye(4))):
        problem = AssignmentProblem.of(scores, demand=1, load_max=1)
        assert unit_of(problem) == 1.0
    plain = matching.assign(SCORES, demand=2, load_max=2, objective="maximin")
    tiny = SCORES * 2.0**-30
    for scores in (tiny, sparse.csr_array(tiny), tiny.astype(np.float32), VectorScores(tiny, np.eye(4))):
        assert unit_of(AssignmentProblem.of(scores, demand=1, load_max=1)) == 2.0**-31  # most rows reach 0.875
        found = matching.assign(scores, demand=2, load_max=2, objective="maximin")
        assert found.value == pytest.approx(plain.value * 2.0**-30, rel=1e-9, abs=0)
        assert found.pairs.tolist() == plain.pairs.tolist()
    assert unit_of(AssignmentProblem.of(np.zeros((2, 2)), demand=1, load_max=1)) == 1.0


def test_the_trade_off_curve_is_the_same_in_another_unit():
    """It solves by itself, so it changes the unit by itself."""
    first, second = parse_objective("maximin")[0], Wish("total")
    one = tradeoff(AssignmentProblem.of(SCORES, demand=2, load_max=2), first, second, points=3)
    other = tradeoff(AssignmentProblem.of(SCORES * 2.0**-40, demand=2, load_max=2), first, second, points=3)
    assert [point.first.value * 2.0**-40 for point in one] == [point.first.value for point in other]
    assert [point.solution.pairs.tolist() for point in one] == [point.solution.pairs.tolist() for point in other]


FORMS = [
    "total", "maximin", "leximin", "welfare", "randomised", {"name": "threshold", "t": 1.25},
    {"name": "robust", "standard_error": 0.1}, {"name": "perturbed", "beta": 0.25, "cap": 0.75},
    ["maximin", "total", "evenness"],
]  # fmt: skip


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**-60, 2.0**25])
@pytest.mark.parametrize("objective", FORMS, ids=str)
def test_what_is_wrong_by_a_thousandth_is_found_out_in_any_unit(objective, unit):
    """A slack of 1e-9 in all units let anything pass at scores of 1e-12: other values, bounds, gaps and plans."""
    wishes = parse_objective(_in(objective, unit))
    problem = AssignmentProblem.of(SCORES * unit, demand=2, load_max=2)
    found = solve(problem, wishes)
    assert audit(problem, found, wishes).clean
    rest = found.proofs[1:]
    for name in ("value", "bound"):
        for factor in (0.999, 1.001):
            number = getattr(found, name) * factor
            gap = abs(number - (found.bound if name == "value" else found.value))
            proofs = (replace(found.proofs[0], **{name: number, "gap": gap}), *rest) if found.proofs else ()
            for wrong in ({name: number}, {name: number, "gap": gap}):
                if name == "bound" and "gap" in wrong and factor > 1:
                    continue  # a looser bound with the gap it leaves is true
                stated = proofs if "gap" in wrong else tuple(replace(p, gap=found.gap) for p in proofs[:1]) + rest
                assert not audit(problem, replace(found, proofs=stated, **wrong), wishes).clean, (name, factor, wrong)


@pytest.mark.parametrize("unit", [1.0, 2.0**-40])
@pytest.mark.parametrize("objective", ["total", "maximin", {"name": "threshold", "t": 1.25}], ids=str)
def test_a_worse_plan_with_its_own_value_is_not_called_the_best_in_any_unit(objective, unit):
    """Its value is true and its gap is not 0, however small both are."""
    wishes = parse_objective(_in(objective, unit))
    problem = AssignmentProblem.of(SCORES * unit, demand=1, load_max=1)
    best = solve(problem, wishes)
    worse = solve(AssignmentProblem.of(-SCORES * unit, demand=1, load_max=1), parse_objective("total"))
    sums = problem.scores.values(worse.pairs[:, 0], worse.pairs[:, 1])
    values = {"total": sums.sum(), "maximin": sums.min(), "threshold": np.minimum(sums, 1.25 * unit).sum()}
    claimed = {"value": float(values[wishes[0].name]), "bound": float(values[wishes[0].name]), "gap": 0.0}
    proofs = tuple(
        replace(proof, **(claimed if at == 0 else {"value": float(sums.sum()), "bound": float(sums.sum()), "gap": 0.0}))
        for at, proof in enumerate(best.proofs)
    )
    wrong = replace(best, pairs=worse.pairs, proofs=proofs, **claimed)
    assert not audit(problem, wrong, wishes).clean
