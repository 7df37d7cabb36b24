"""Any prices at all give a bound that holds: drawn at random, against every plan there is."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from matching.constraints.bounds import NO_UPPER, GroupBound, PairLimit
from matching.constraints.problem import AssignmentProblem
from matching.plan.duality import Duality, Prices
from matching.plan.facts import facts_of
from matching.plan.rule_prices import no_rule_prices, rule_price_faults
from matching.scores.base import VectorScores
from tests.enumeration import every_plan
from tests.strategies import random_problem, ruled_problems

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def drawn_prices(rng, problem, penalty):
    """Prices of every kind that the formula allows."""
    n_submissions, n_reviewers = problem.shape
    least = -penalty if penalty else -3.0
    rules = []
    for rule in problem.rules:
        most = 2.0 if rule.price is None else rule.price
        below = min(most, penalty) if penalty and rule.price is None else most
        if isinstance(rule, GroupBound):
            table = rng.uniform(-below, most, rule.shape) * (rng.random(rule.shape) < 0.5)
            table[(table > 0) & (rule.upper >= NO_UPPER)] = 0.0
            rules.append(sparse.csr_array(table))
        elif isinstance(rule, PairLimit):
            rules.append(rng.uniform(0, most, rule.shape))
        else:
            whole = rng.uniform(0, below, rule.shape[0])
            share = rng.uniform(0, 1, (rule.shape[0], n_reviewers)) * whole[:, None]
            rules.append(sparse.csr_array(np.column_stack([share, whole])))
    return Prices(
        np.maximum(rng.normal(0.5, 0.7, n_submissions), least), np.maximum(rng.normal(0, 0.5, n_reviewers), least),
        penalty, np.round(rng.uniform(0, 2, n_submissions), 2) if rng.random() < 0.7 else None, tuple(rules),
        sparse.csr_array(np.round(rng.normal(0, 0.3, problem.shape), 2)) if rng.random() < 0.5 else None,
        rng.normal(0, 0.3, n_reviewers) if rng.random() < 0.5 else None,
    )  # fmt: skip


@QUICK
@given(ruled_problems(), st.integers(0, 2**32 - 1))
def test_no_plan_beats_the_bound_of_any_prices(problem, seed):
    """Also among plans that miss as little as any, where prices may not lie below minus the penalty."""
    rng = np.random.default_rng(seed)
    plans = every_plan(problem)
    mine = plans.taken[rng.integers(len(plans.taken))]
    pairs = np.argwhere(mine)
    facts = facts_of(problem, pairs)
    prices = drawn_prices(rng, problem, float(rng.choice([0.5, 5.0, 100.0])) if plans.lacking else 0.0)
    assert not rule_price_faults(
        problem.rules, prices.rules, problem.shape[1], 1.0, prices.penalty if plans.lacking else None
    )
    duality = Duality(problem, facts, problem.demand - facts.received, facts.short)
    assert not (plans.lacking and duality.too_low(prices))
    weights = np.ones(problem.shape[0]) if prices.weights is None else prices.weights
    worth = weights[:, None] * np.nan_to_num(plans.scores)
    if prices.terms is not None:
        worth = worth + prices.terms.toarray()
    if prices.reviewer_terms is not None:
        worth = worth - prices.reviewer_terms
    best = (np.einsum("npr,pr->n", plans.taken, worth) - plans.cost).max()
    assert duality.bound(prices)[0] >= best - 1e-9
    if plans.lacking:
        assert duality.missing_bound(prices, plans.lacking) <= plans.lacking + 1e-9


@QUICK
@given(ruled_problems(("locks", "conflicts", "unknown", "minima")), st.integers(0, 2**32 - 1))
def test_caps_lower_the_bound_and_no_lottery_beats_it(problem, seed):
    """Every average of plans that respects the caps is a lottery; the bound holds for all of them."""
    rng = np.random.default_rng(seed)
    plans = every_plan(problem)
    if plans.lacking:
        return
    mix = rng.dirichlet(np.full(min(5, len(plans.taken)), 1.0))
    some = plans.taken[rng.permutation(len(plans.taken))[: mix.size]]
    shares = np.einsum("n,npr->pr", mix, some)
    facts = facts_of(problem, np.argwhere(some[0]))
    prices = drawn_prices(rng, problem, 0.0)
    capped = Prices(prices.u, prices.w, cap=lambda rows, cols: shares[rows, cols])
    duality = Duality(problem, facts, problem.demand - facts.received, facts.short)
    bound = duality.bound(capped)[0]
    assert bound >= (shares * np.nan_to_num(plans.scores)).sum() - 1e-9
    assert bound <= duality.bound(Prices(prices.u, prices.w))[0] + 1e-9


def test_single_precision_blocks_give_the_bound_of_exact_scores():
    """Vectors are multiplied in float32 and re-evaluated near the prices; with rule prices and weights too."""
    rng = np.random.default_rng(3)
    left, right = rng.standard_normal((30, 8)).astype(np.float32), rng.standard_normal((24, 8)).astype(np.float32)
    rule = GroupBound.of("few", np.eye(30), np.ones((1, 24)), upper=2.0)
    exact = left.astype(np.float64) @ right.T.astype(np.float64)
    bounds = []
    for scores in (VectorScores(left, right), exact):
        problem = AssignmentProblem.of(scores, demand=2, load_max=4, rules=[rule])
        nothing = np.empty((0, 2), dtype=np.int64)
        duality = Duality(problem, facts_of(problem, nothing), np.zeros(30, int), np.zeros(24, int))
        u, w = np.full(30, 1.0), np.linspace(-0.5, 1.5, 24)
        for weights, price in ((None, 0.0), (np.linspace(0, 3, 30), 0.0), (np.linspace(0, 3, 30), 0.4)):
            rules = (sparse.csr_array(np.full((30, 1), price)),)
            bounds.append(duality.bound(Prices(u, w, weights=weights, rules=rules))[0])
    assert bounds[:3] == pytest.approx(bounds[3:], rel=1e-9)


def test_prices_that_do_not_fit_a_rule_are_named():
    """Another shape, a wrong sign, a price above what missing the rule costs, a share above the whole."""
    problem = random_problem(0, ["group", "pairs", "shared", "priced"], size=(4, 4))
    rules = problem.rules
    good = no_rule_prices(rules, 4)
    assert not rule_price_faults(rules, good, 4, 1.0, None)
    assert rule_price_faults(rules, good[:-1], 4, 1.0, None)
    for at, rule in enumerate(rules):
        table = np.zeros(good[at].shape)
        for fault in ("shape", "nan", "sign", "dear"):
            bad = table.copy()
            if fault == "shape":
                bad = np.zeros((*bad.shape[:-1], bad.shape[-1] + 1))
            else:
                bad.flat[0] = {"nan": np.nan, "sign": -1e9, "dear": 1e9}[fault]
            if fault in ("sign", "dear") and isinstance(rule, GroupBound) and rule.price is None:
                continue
            if fault == "dear" and rule.price is None and isinstance(rule, PairLimit):
                continue
            given_prices = [*good]
            given_prices[at] = sparse.csr_array(bad) if bad.ndim == 2 else bad
            assert rule_price_faults(rules, given_prices, 4, 1.0, 10.0), (type(rule).__name__, fault)


def test_locks_that_exceed_a_bound_by_half_a_unit_are_not_rounded_up():
    """Plans lack whole reviews besides what the locks force, but that itself may be any number."""
    bounds = [GroupBound.of("few", [[1.0]], [[1.0, 1.0]], upper=upper) for upper in (0.5, 0.25)]
    problem = AssignmentProblem.of([[0.5, 0.5]], demand=1, load_max=1, locks=[(0, 0)], rules=bounds)
    plans = every_plan(problem)
    assert plans.lacking == 1.25
    duality = Duality(problem, facts_of(problem, np.argwhere(plans.taken[0])), np.zeros(1, int), np.zeros(2, int))
    prices = Prices(np.zeros(1), np.zeros(2), 5.0, rules=tuple(no_rule_prices(problem.rules, 2)))
    assert duality.missing_bound(prices, plans.lacking) == pytest.approx(plans.lacking)
