"""Every number of every kind of proof, changed: the audit complains, or what is then stated is still true."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.errors import AuditError
from matching.objectives import parse_objective
from matching.plan.audit import audit
from matching.solvers.base import Status
from matching.solvers.choose import solve
from tests.enumeration import every_plan
from tests.mutants import mutants
from tests.oracles import by_ruled_program
from tests.strategies import ruled_problems

TOLERANCE = 1e-7
MOST_PLANS = 400  # measures are evaluated plan by plan here
OBJECTIVES = (
    "total",
    "maximin",
    "leximin",
    "evenness",
    "envy",
    {"name": "threshold", "t": 0.8},
    {"name": "welfare", "alpha": 1.0},
    {"name": "welfare", "alpha": 4.0},
    {"name": "robust", "standard_error": 0.2, "radius": 1.0},
    {"name": "randomised", "cap": 0.6},
    {"name": "perturbed", "beta": 0.3, "cap": 0.9},
    ["maximin", "total", "evenness"],
    [{"name": "total", "loss": 0.1}, "maximin"],
    [{"name": "threshold", "t": 0.6}, "total"],
    ["leximin", "total"],
    [{"name": "welfare", "alpha": 1.0, "loss": 0.02}, "total"],
)
OPEN_ENDED = ("maximin", "leximin", "threshold", "evenness")
LOTTERIES = ("randomised", "perturbed")


def best_under(plans, proof):
    """The best value any of the plans has that keeps what the proof assumes; None where none keeps it."""
    name = proof.wish["name"]
    kept = np.array([
        all(measure.value(sums) >= least - 1e-9 for measure, least in proof.constraints) for sums in plans.sums
    ])  # fmt: skip
    left = plans.only(kept)
    if not len(left.taken):
        return None
    if name in ("evenness", "envy", "robust"):
        return float(left.worth(parse_objective(dict(proof.wish))[0]).max())
    values = np.array([proof.measure.value(sums) for sums in left.sums])
    if name == "welfare":
        return proof.measure.equivalent(float(values.max()))
    return float((values - left.cost).max())


def assert_true(plans, problem, solution):
    """Everything a solution states, checked against all plans there are."""
    if solution.status == Status.LIMIT_WITHOUT_PLAN:
        return
    taken = np.zeros(problem.shape, dtype=bool)
    taken[solution.pairs[:, 0], solution.pairs[:, 1]] = True
    assert (plans.taken == taken).all(axis=(1, 2)).any(), "not one of the lawful plans that lack least"
    if not solution.proofs:
        total = parse_objective("total")[0]
        assert solution.bound >= plans.worth(total).max() - TOLERANCE
        mine = plans.only((plans.taken == taken).all(axis=(1, 2)))
        assert solution.value == pytest.approx(mine.worth(total)[0], abs=TOLERANCE)
        return
    for proof in solution.proofs:
        if proof.wish["name"] in LOTTERIES:
            assert_lottery_true(plans, problem, solution, proof)
            continue
        top = best_under(plans, proof)
        low = proof.wish["name"] in ("evenness", "envy")
        assert top is not None, "its own plan does not keep what the proof assumes"
        assert (-proof.bound if low else proof.bound) >= top - TOLERANCE * max(1.0, abs(top))


def assert_lottery_true(plans, problem, solution, proof):
    shares = solution.probabilities.toarray()
    if problem.rules:
        come_to, value = np.zeros(problem.shape), 0.0
        for chance, pairs in solution.mixture:
            taken = np.zeros(problem.shape, dtype=bool)
            taken[pairs[:, 0], pairs[:, 1]] = True
            same = (plans.taken == taken).all(axis=(1, 2))
            assert chance > 0 and same.any(), "a plan of the lottery is unlawful"
            come_to += chance * taken
            value += chance * plans.only(same).worth(parse_objective("total")[0])[0]
        assert sum(chance for chance, _ in solution.mixture) == pytest.approx(1.0)
        assert np.abs(come_to - shares).max() <= TOLERANCE
        if proof.wish["name"] == "randomised":
            assert proof.value == pytest.approx(value, abs=TOLERANCE)
    assert (shares >= 0).all() and np.allclose(shares.sum(axis=1), problem.demand)
    cap = np.full(problem.shape, proof.wish["cap"])
    cap[problem.locked[:, 0], problem.locked[:, 1]] = 1.0
    assert (shares <= cap + TOLERANCE).all()
    if proof.wish["name"] == "randomised":
        missing, top = by_ruled_program(problem, "randomised", proof.wish["cap"])
        assert missing < TOLERANCE and proof.bound >= top - 1e-5


def words(objective):
    entries = objective if isinstance(objective, list) else [objective]
    names = [entry if isinstance(entry, str) else "-".join(map(str, entry.values())) for entry in entries]
    return ", ".join(names)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=words)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(problem=ruled_problems(largest=4), seed=st.integers(0, 2**32 - 1))
def test_a_clean_audit_means_that_what_is_stated_is_true(objective, problem, seed):
    """An audit that accepts nonsense is worse than none: what passes with one number changed must still hold."""
    wishes = parse_objective(objective)
    if len(wishes) > 1 or wishes[0].name in OPEN_ENDED:  # what a priced rule costs is settled for the total alone
        problem = replace(problem, rules=tuple(rule for rule in problem.rules if rule.price is None))
    plans = every_plan(problem)
    if len(plans.taken) > MOST_PLANS or not (problem.demand > 0).any():
        return
    solution = solve(problem, wishes)
    report = audit(problem, solution, wishes)
    assert report.clean, report.faults
    if solution.status == Status.INFEASIBLE and plans.lacking == 0:
        return  # the caps alone forbid it: there are no plans to compare with
    assert_true(plans, problem, solution)
    for what, mutant in mutants(np.random.default_rng(seed), solution, 10):
        try:
            if audit(problem, mutant, wishes).clean:
                assert_true(plans, problem, mutant)
        except AuditError:
            continue
        except AssertionError as error:
            raise AssertionError(f"{what}: {error}") from error
