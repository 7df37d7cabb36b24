"""What a chair reads where no full plan exists: minimal sets, clashing rules and repairs, through the front door."""

from dataclasses import replace

import numpy as np
import pytest

import matching
from matching import Author, Params, Reviewer, Submission, Venue, recommend
from tests.venues import given, papers, people


def bottleneck():
    """p1..p3 need two each of r1 and r2 alone, who take two each; p4 is no part of it."""
    return given(
        people(r1=2, r2=2, r3=6, r4=6), papers(p1=2, p2=2, p3=2, p4=2),
        conflicts=[f"{r}-{p}" for p in ("p1", "p2", "p3") for r in ("r3", "r4")],
    )  # fmt: skip


def test_the_smallest_unserved_set_is_told_with_its_arithmetic():
    """The ids, what they need, who can give what, and that none of them is in it without need."""
    found = recommend(bottleneck()).diagnosis
    (entry,) = found["unserved"]
    assert entry["submissions"] == ["p1", "p2", "p3"] and entry["minimal"]
    assert entry["reviewers"] == ["r1", "r2"] and entry["gives"] == [2, 2]
    assert entry["sentence"].startswith(
        "These 3 submissions (p1, p2, p3) need 6 reviews; the 2 people open to them can give them 4."
    )
    assert entry["sentence"] in found["sentences"] and found["bottleneck"] == entry


def test_repairs_come_with_their_exact_effect_and_keep_it_when_they_are_made():
    """What the diagnosis promises is what a run of the repaired venue shows."""
    venue = bottleneck()
    found = recommend(venue).diagnosis
    told = {(entry["kind"], tuple(entry.get("reviewers", ()))): entry for entry in found["repairs"]}
    both = told["load_max", ("r1", "r2")]
    assert (both["filled"], both["missing"], both["changes"]) == (2, 0, 2)
    one = told["load_max", ("r1",)]
    assert (one["filled"], one["missing"]) == (1, 1)
    recruit = told["recruit", ()]
    assert recruit["submissions"] == ["p1", "p2", "p3"] and (recruit["filled"], recruit["missing"]) == (2, 0)
    assert "2 more reviewers free of conflict with p1, p2, p3 who take 1 review each" in recruit["sentence"]
    for loads, left in (({"r1": 3, "r2": 3}, 0), ({"r1": 3, "r2": 2}, 1)):
        repaired = replace(venue, reviewers=people(**loads, r3=6, r4=6))
        assert sum(recommend(repaired).unfilled.values()) == left
    assert not any(entry["kind"] == "conflict" for entry in found["repairs"])  # declared by somebody: not a guess


def test_only_conflicts_by_affiliation_are_offered_for_a_second_look():
    """Authorship and declared conflicts are facts; a shared institution may be stale."""
    venue = Venue(
        (Reviewer("r1", load_max=1, affiliations=("Somewhere University",)), Reviewer("r2", load_max=1)),
        (Submission("p1", demand=1, authors=(Author(id="r2"), Author(name="A", affiliation="Somewhere University"))),),
    )
    found = recommend(venue).diagnosis
    offered = [entry for entry in found["repairs"] if entry["kind"] == "conflict"]
    assert [(entry["submissions"], entry["reviewers"]) for entry in offered] == [(["p1"], ["r1"])]
    assert "Somewhere University" in offered[0]["sentence"] and "nothing is missing then" in offered[0]["sentence"]


def test_recruiting_names_the_areas_of_the_unserved():
    """Whom to invite: people who know these areas."""
    venue = Venue(
        (Reviewer("r1", load_max=1),),
        (Submission("p1", demand=1, areas=("logic", "graphs")), Submission("p2", demand=1, areas=("logic",))),
    )
    (entry,) = [entry for entry in recommend(venue).diagnosis["repairs"] if entry["kind"] == "recruit"]
    assert entry["areas"] == ["logic", "graphs"] and "areas logic, graphs" in entry["sentence"]


def test_load_minima_nobody_can_fill_come_down_to_the_people_and_the_submissions_left_to_them():
    """r1 and r2 must have two each, of two submissions of which each needs one."""
    venue = given(
        (Reviewer("r1", load_max=2, load_min=2), Reviewer("r2", load_max=2, load_min=2), Reviewer("r3", load_max=5)),
        papers(p1=1, p2=1, p3=2), conflicts=["r1-p3", "r2-p3", "r1-p2"],
    )  # fmt: skip
    found = recommend(venue).diagnosis
    (entry, *_) = found["unmet_minima"]
    assert entry["needed"] > entry["capacity"] and entry["minimal"] and entry["sentence"] in found["sentences"]
    assert any(repair["kind"] == "load_min" for repair in found["repairs"])


def test_rules_that_clash_are_named_in_words_with_what_relaxing_them_does():
    """One senior of load 1 for two submissions that must each have a senior: not a word about loads or conflicts."""
    venue = Venue(
        (
            Reviewer("r1", load_max=1, extra={"seniority": "senior"}),
            Reviewer("r2", load_max=2, extra={"seniority": "junior"}),
            Reviewer("r3", load_max=2, extra={"seniority": "junior"}),
        ),
        papers(p1=1, p2=1),
    )
    rules = ({"rule": "reviewers_per_submission", "name": "a senior each", "reviewers": {"extra.seniority": "senior"},
              "at_least": 1},)  # fmt: skip
    assert recommend(venue).status == "optimal"
    found = recommend(venue, Params(rules=rules)).diagnosis
    clash = found["rules_clash"]
    assert clash["irreducible"] and {entry["rule"] for entry in clash["rules"]} == {"a senior each"}
    assert [entry["submissions"] for entry in clash["rules"]] == ["p1", "p2"]
    assert clash["sentence"] in found["sentences"]
    assert found["unserved"] == [] and found["load_min"] == []
    relaxed = [entry for entry in found["repairs"] if entry["kind"] == "rule"]
    assert relaxed and relaxed[0]["rule"] == "a senior each" and relaxed[0]["missing"] == 0
    others = {entry["kind"]: entry for entry in found["repairs"] if entry["kind"] != "rule"}
    assert others["load_max"]["reviewers"] == ["r1"] and others["load_max"]["missing"] == 0
    assert "1 more reviewer for the rule" in others["recruit"]["sentence"] and others["recruit"]["missing"] == 0


def test_what_is_told_is_plain_and_the_same_whatever_the_order_of_records():
    """A diagnosis is written as strict JSON; permuting the venue changes nothing in it."""
    venue = bottleneck()
    turned = replace(venue, reviewers=venue.reviewers[::-1], submissions=venue.submissions[::-1])
    assert recommend(venue).to_dict()["diagnosis"] == recommend(turned).to_dict()["diagnosis"]


def test_a_full_plan_tells_whose_next_review_is_worth_most():
    """r1 fits both and takes one; the price is what the second would gain, and it is checked."""
    venue = given(people(r1=1, r2=2), papers(p1=1, p2=1), {"r1-p1": 0.9, "r1-p2": 0.8, "r2-p1": 0.1, "r2-p2": 0.3})
    plan = recommend(venue, Params(weights={"hand": 1.0}))
    (entry,) = plan.report["shadow_prices"]["people"]
    assert entry["reviewer"] == "r1" and plan.diagnosis == {}
    assert entry["gain"] == pytest.approx(0.5) and entry["price"] >= entry["gain"] - 1e-9
    doubled = replace(venue, reviewers=people(r1=2, r2=2))
    assert recommend(doubled, Params(weights={"hand": 1.0})).value - plan.value == pytest.approx(entry["gain"])


def test_a_diagnosis_of_a_matrix_alone_needs_no_solver_to_count():
    """`diagnose` without a way to solve again says all but clashes and repairs."""
    from matching.explain.diagnosis import diagnose
    from matching.explain.names import Names

    solution = matching.assign(np.ones((2, 1)), demand=1, load_max=1)
    problem = matching.constraints.problem.AssignmentProblem.of(np.ones((2, 1)), demand=1, load_max=1)
    found = diagnose(problem, solution, Names(["p0", "p1"], ["r0"], lambda row, col: []))
    assert found["repairs"] == [] and found["rules_clash"] is None and len(found["unserved"]) == 1
