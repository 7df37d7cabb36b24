"""Somebody whom a rule keeps off a submission is told which rule, and at what price."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from matching import Author, Reviewer, Submission, explanation, recommend
from matching.constraints.linearised import Linearised, rule_terms
from matching.explain.ruled import Rules
from matching.formats.plans import read_plan_json, write_plan_json
from matching.pairs import PairSet
from matching.plan.record import proofs_of
from matching.prepared import prepare, problem_of, wishes_by_id
from matching.scores.affinity import affinity_of
from matching.solved import solve_audited
from tests.venues import HAND, given, papers

SENIOR = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1, "name": "a senior"}
JUNIOR = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "junior"}, "at_most": 1, "name": "one junior"}
SCHOOL = {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1, "name": "one of a school"}
RING = {"rule": "no_cycles", "length": 2, "name": "no rings"}
SHARED = {"rule": "share_reviewers", "each": "track", "at_least": 1, "name": "in common"}


def crowd(junior, senior, **options):
    """Juniors j1, j2, ... and seniors s1, ..., all of one school each by the first letter."""
    return tuple(
        Reviewer(f"{level[0]}{at}", seniority=level, affiliations=(f"school {level[0]}",), **options)
        for level, count in (("junior", junior), ("senior", senior))
        for at in range(1, count + 1)
    )


def standing(venue, params, submission, reviewer):
    """Of one person, by the plan as it is stored and read again; the numbers of its proof must add up."""
    plan = read_plan_json(write_plan_json(recommend(venue, params)))
    found = explanation(venue, params, plan, submission, reviewer)
    json.dumps(found.to_dict(), allow_nan=False)
    for entry in found.candidates:
        if entry.price is not None:
            left = entry.price.affinity - sum(rule.price for rule in entry.price.rules)
            assert entry.price.holds == (left <= entry.price.submission_price + entry.price.reviewer_price + 1e-6)
    return plan, found.pairs[-1].standing


def test_a_hard_lower_bound_is_the_reason_for_those_outside_its_class():
    """j1 fits better than the senior there has to be; the price lies on the senior's pair, so that is said, too."""
    venue = given(crowd(1, 1), papers(p1=1), {"j1-p1": 0.9, "s1-p1": 0.2})
    plan, found = standing(venue, replace(HAND, rules=[SENIOR]), "p1", "j1")
    assert plan.provenance["solver"]["solver"] == "flow+pricing" and found.reason == "rule"
    assert 'instead of s1 rule "a senior" would not hold (p1 and' in found.words and "at least 1" in found.words
    assert 'rule "a senior" adds 0.700 to s1' in found.words and found.rules == ("a senior",)
    assert "elsewhere" not in found.words.split(";")[0]


@pytest.mark.parametrize("program", [False, True])
def test_a_hard_upper_bound_names_itself_and_its_price(program):
    """j2 is second best, but one of the school is enough; a load weight sends the same rule to the programs."""
    venue = given(crowd(2, 2), papers(p1=2), {"j1-p1": 0.9, "j2-p1": 0.8, "s1-p1": 0.3, "s2-p1": 0.1})
    more = [{"rule": "load_weight", "submissions": {"id": "p1"}, "weight": 0.5}] if program else []
    plan, found = standing(venue, replace(HAND, rules=[JUNIOR, *more]), "p1", "j2")
    assert ("rule_nodes" in plan.provenance["solver"]) != program
    assert found.reason == "rule" and found.rules == ("one junior",)
    (paid,) = found.price.rules
    assert paid.rule == "one junior" and "at most 1" in paid.where and paid.price >= 0.5 - 1e-6
    assert f'- {paid.price:.3f} (rule "one junior", p1 and' in found.words and "would not hold" in found.words


def test_priced_rules_are_told_by_their_prices_alone():
    """No bound is hard, so none would be broken; what decides is what the rules cost."""
    venue = given(crowd(2, 1), papers(p1=2), {"j1-p1": 0.9, "j2-p1": 0.6, "s1-p1": 0.5})
    _, found = standing(venue, replace(HAND, rules=[{**JUNIOR, "price": 0.25}]), "p1", "j2")
    assert found.reason == "rule"
    assert found.words.startswith('rule "one junior" makes the difference; affinity 0.600 - ')
    _, found = standing(venue, replace(HAND, rules=[{**SENIOR, "price": 0.25}]), "p1", "j2")
    assert found.reason == "rule" and not found.price.rules and found.rules == ("a senior",)
    assert 'rule "a senior" makes the difference' in found.words and 'rule "a senior" adds 0.' in found.words


def test_equals_between_whom_a_rule_decides_are_no_tie():
    """The seed has nothing to say where only one of two equals is a senior."""
    venue = given(crowd(1, 1), papers(p1=1), {"j1-p1": 0.5, "s1-p1": 0.5})
    _, found = standing(venue, replace(HAND, rules=[SENIOR]), "p1", "j1")
    assert found.reason == "rule" and "a senior" in found.words
    _, found = standing(venue, replace(HAND, rules=[{**JUNIOR, "at_most": 0, "price": 0.1}]), "p1", "j1")
    assert found.reason == "rule" and 'rule "one junior" (p1 and' in found.words and "cost 0.100 more" in found.words


def test_a_place_left_free_because_of_a_rule_says_so():
    """One junior a submission, and there are only juniors: the second place stays empty, for that reason."""
    venue = given(crowd(3, 0), papers(p1=2), {"j1-p1": 0.9, "j2-p1": 0.8})
    plan, found = standing(venue, replace(HAND, rules=[JUNIOR]), "p1", "j2")
    assert plan.status == "infeasible" and found.reason == "rule" and "in a free place" in found.words


def test_other_objectives_tell_of_hard_rules_without_prices():
    """Prices for the worst served say nothing about single affinities; that the bound would break is plain."""
    venue = given(crowd(2, 2), papers(p1=2), {"j1-p1": 0.9, "j2-p1": 0.8, "s1-p1": 0.3, "s2-p1": 0.1})
    _, found = standing(venue, replace(HAND, rules=[JUNIOR], objective="maximin"), "p1", "j2")
    assert found.reason == "rule" and found.price is None and found.rules == ("one junior",)
    priced = {**JUNIOR, "price": 2.0}
    _, found = standing(venue, replace(HAND, rules=[priced], objective="maximin"), "p1", "j2")
    assert found.reason == "rule" and "would cost 2.000 more" in found.words and found.rules == ("one junior",)


@pytest.mark.parametrize("price", [None, 0.3])
def test_rings_are_told(price):
    """r1 and r2 wrote p2 and p1 and fit each other's best: one of the two reviews is not given."""
    venue = given(
        (Reviewer("r1"), Reviewer("r2"), Reviewer("r3"), Reviewer("r4")),
        (Submission("p1", demand=1, authors=(Author("R2", id="r2"),)),
         Submission("p2", demand=1, authors=(Author("R1", id="r1"),))),
        {"r1-p1": 0.9, "r2-p2": 0.8, "r3-p1": 0.6, "r4-p2": 0.6},
    )  # fmt: skip
    rule = RING if price is None else {**RING, "price": price}
    plan, found = standing(venue, replace(HAND, rules=[rule]), "p2", "r2")
    assert found.reason == "rule" and found.rules == ("no rings",)
    assert ('rule "no rings" would not hold' in found.words) == (price is None)
    assert plan.report["mutual_reviews"] == []


@pytest.mark.parametrize("price", [None, 0.5])
def test_shared_reviewers_are_told(price):
    """p1 and p2 of one track share somebody, so the best for p2 is not the one on it."""
    venue = given(
        (Reviewer("r1"), Reviewer("r2")),
        (Submission("p1", demand=1, track="a"), Submission("p2", demand=1, track="a")),
        {"r1-p1": 0.9, "r1-p2": 0.4, "r2-p1": 0.1, "r2-p2": 0.6},
        load_max=2,
    )
    rule = SHARED if price is None else {**SHARED, "price": price}
    _, found = standing(venue, replace(HAND, rules=[rule]), "p2", "r2")
    assert found.reason == "rule" and found.rules == ("in common",)
    assert ('rule "in common" would not hold' in found.words) == (price is None)


def test_a_full_load_stays_the_reason_and_the_numbers_still_add_up():
    """j1 has one review to give and gives it where it is worth more; the price of the school is among the numbers."""
    people = tuple(replace(entry, load_max=1) for entry in crowd(2, 2))
    venue = given(people, papers(p1=1, p2=1), {"j1-p1": 0.9, "j1-p2": 0.8, "s1-p2": 0.4, "s2-p1": 0.3, "j2-p2": 0.5})
    _, found = standing(venue, replace(HAND, rules=[SCHOOL, {**JUNIOR, "at_most": 1}]), "p2", "j1")
    assert found.reason == "full" and found.price.holds and "1 of 1 reviews, on p1" in found.words


def test_the_words_stay_as_they_were_where_no_rule_matters():
    """A rule that never binds is not mentioned."""
    reviewers = (Reviewer("r1", load_max=2, seniority="junior"), Reviewer("r2", load_max=1, load_min=1))
    venue = given(reviewers, papers(p1=1, p2=1), {"r1-p1": 0.6, "r1-p2": 0.9, "r2-p1": 0.5, "r2-p2": 0.1})
    _, found = standing(venue, replace(HAND, rules=[JUNIOR]), "p1", "r1")
    assert found.reason == "elsewhere" and "rule" not in found.words and found.rules == ()
    assert "is not above" in found.words


RULES = {
    "group": [JUNIOR, {**SENIOR, "price": 0.2}],
    "school": [SCHOOL],
    "ring": [RING, {**JUNIOR, "price": 0.1}],
    "shared": [SHARED],
    "all": [{**SENIOR, "price": 0.3}, {**RING, "price": 0.2}, {**SHARED, "price": 0.4}],
    "weights": [{"rule": "load_weight", "submissions": {"track": "a"}, "weight": 0.5}, JUNIOR],
}


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_prices_read_from_a_stored_proof_are_those_the_audit_puts_on_pairs(kind, seed):
    """Pair by pair, over the whole table: what the record says is what `Linearised` takes off."""
    draw = np.random.default_rng(seed)
    people = crowd(4, 3, load_max=3)
    names = [entry.id for entry in people]
    works = tuple(
        Submission(f"p{at}", demand=2, track="ab"[at % 2], authors=(Author("A", id=str(draw.choice(names))),))
        for at in range(4)
    )
    scores = {f"{who}-p{at}": float(draw.random()) for who in names for at in range(4)}
    venue = given(people, works, scores)
    params = replace(HAND, rules=RULES[kind], affiliation_conflicts=False)
    resolved, conflicts, bounds = prepare(venue, params)
    problem = problem_of(resolved, conflicts, bounds, affinity_of(resolved, params))
    solution, _ = solve_audited(problem, wishes_by_id(params.wishes, resolved), params, None, None, None)
    ids = [entry.id for entry in resolved.submissions], [entry.id for entry in resolved.reviewers]
    record = json.loads(json.dumps(proofs_of(problem, solution, *ids)))
    groups, terms, _ = rule_terms(problem.rules, solution.proofs[0].rule_prices, problem.shape)
    rules = Rules(problem, solution.pairs, record[0], ids[1])
    assert rules.priced
    rows, cols = (line.ravel() for line in np.indices(problem.shape))
    plain = np.nan_to_num(problem.scores.values(rows, cols))
    taken = plain - Linearised(problem.scores, None, terms, groups).linear(rows, cols, plain)
    told = [sum(entry.price for entry in rules.prices(row, col)) for row, col in zip(rows.tolist(), cols.tolist())]
    assert told == pytest.approx(taken.tolist(), abs=1e-9)


@pytest.mark.parametrize("kind", RULES)
def test_a_swap_is_said_to_break_a_hard_bound_exactly_where_it_does(kind):
    """Counts are taken anew for every single swap of a plan."""
    draw = np.random.default_rng(7)
    people = crowd(4, 3, load_max=3)
    works = tuple(
        Submission(f"p{at}", demand=2, track="ab"[at % 2], authors=(Author("A", id=f"j{at + 1}"),)) for at in range(4)
    )
    scores = {f"{one.id}-p{at}": float(draw.random()) for one in people for at in range(4)}
    hard = [{key: value for key, value in rule.items() if key != "price"} for rule in RULES[kind]]
    venue, params = given(people, works, scores), replace(HAND, rules=hard, affiliation_conflicts=False)
    resolved, conflicts, bounds = prepare(venue, params)
    problem = problem_of(resolved, conflicts, bounds, affinity_of(resolved, params))
    solution, _ = solve_audited(problem, wishes_by_id(params.wishes, resolved), params, None, None, None)
    rules = Rules(problem, solution.pairs, None, [entry.id for entry in resolved.reviewers])
    on = {tuple(pair) for pair in solution.pairs.tolist()}
    assert lawful(problem, on)
    for row, out in sorted(on):
        for col in range(problem.shape[1]):
            if (row, col) not in on:
                found = rules.broken(row, col, out, False)
                assert (found is None) == lawful(problem, (on - {(row, out)}) | {(row, col)})


def lawful(problem, pairs):
    taken = PairSet(sorted(pairs), problem.shape).table().astype(float)
    for rule in problem.rules:
        count = rule.counts(taken)
        count = count.toarray() if hasattr(count, "toarray") else count
        low = getattr(rule, "lower", getattr(rule, "least", 0))
        high = getattr(rule, "upper", np.inf)
        if (count < np.asarray(low) - 1e-9).any() or (count > np.asarray(high) + 1e-9).any():
            return False
    return True


def test_the_terminal_shows_the_rule():
    """`revmatch explain` prints the same sentence and counts the reason."""
    from service.commands.explain import in_words

    venue = given(crowd(1, 1), papers(p1=1), {"j1-p1": 0.9, "s1-p1": 0.2})
    params = replace(HAND, rules=[SENIOR])
    told = in_words(explanation(venue, params, recommend(venue, params), "p1"))
    assert "better placed and not chosen: 1 (1 rule)" in told and 'rule "a senior" would not hold' in told
