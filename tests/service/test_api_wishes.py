"""Objectives and rules over HTTP: the words of the library, every fault at its place, results with their proof."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from matching import Params
from matching.errors import InvalidParamsError
from service.handlers.precheck import MOST_RECORDS
from tests.service.api import fill, ok, pairs, pointers, refused, run, score, venue

PEOPLE: list[dict[str, Any]] = [
    {"id": "r1", "seniority": "senior", "affiliations": ["A"]},
    {"id": "r2", "seniority": "senior", "affiliations": ["B"]},
    {"id": "r3", "seniority": "student", "affiliations": ["A"]},
    {"id": "r4", "seniority": "student", "affiliations": ["C"], "extra": {"joined": "2025-01-01"}},
]
PAPERS = [{"id": f"p{n}", "title": f"Paper {n}"} for n in range(1, 5)]
AFFINITY = {(f"p{p}", f"r{r}"): ((7 * p + 3 * r * r) % 11) / 11 for p in range(1, 5) for r in range(1, 5)}
SENIOR = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1, "name": "a senior"}
ONE_EACH = {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1}


@pytest.fixture
def base(client: FlaskClient) -> str:
    """Four papers with two reviews each, four people who take two each."""
    made = venue(client, demand=2, load_max=2)
    fill(client, made, PEOPLE, PAPERS)
    score(client, made, AFFINITY)
    return made


OBJECTIVES = [
    "total",
    "maximin",
    {"name": "welfare", "alpha": 2},
    "leximin",
    {"name": "threshold", "t": 0.8},
    "envy",
    "evenness",
    {"name": "randomised", "cap": 0.7},
    {"name": "randomised", "cap": {"default": 0.8, "reviewers": {"r1": 0.6}, "pairs": [["p1", "r2", 0.5]]}},
    {"name": "perturbed", "beta": 0.5, "cap": 0.9},
    {"name": "robust", "standard_error": {"default": 0.1, "reviewers": {"r1": 0.3}}, "radius": 0.5},
    [{"name": "maximin", "loss": 0.1}, "total"],
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda given: json.dumps(given))
def test_every_objective_is_planned_with_value_bound_and_gap(client: FlaskClient, base: str, objective: Any) -> None:
    """An entry for each objective of the stack, in the words it was asked by, and a certificate that holds them."""
    plan = run(client, base, objective=objective)
    assert plan["state"] == "succeeded", plan["problem"]
    stack = objective if isinstance(objective, list) else [objective]
    asked = [{"name": one} if isinstance(one, str) else one for one in stack]
    assert plan["params"]["objective"] == objective
    reached = plan["objectives"][: len(asked)]  # behind them may stand what decides among equals
    assert [entry["name"] for entry in reached] == [entry["name"] for entry in asked]
    for entry, given in zip(reached, asked, strict=True):
        assert entry.keys() >= {"name", "value", "bound", "gap", *given}
        assert entry["gap"] == pytest.approx(abs(entry["bound"] - entry["value"]), abs=1e-6)
    assert plan["value"] == pytest.approx(plan["objectives"][0]["value"])
    proof = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]
    assert proof["audited"] and "bound = " in proof["formula"]
    assert len(proof["proofs"]) == (0 if objective == "total" else len(plan["objectives"]))
    assert len(pairs(client, plan["id"])) == 8


def test_a_randomised_plan_shows_the_probabilities_it_was_drawn_from(client: FlaskClient, base: str) -> None:
    """In pages, beside each assignment, and in the CSV; every pair drawn has one, and none is above the cap."""
    plan = run(client, base, objective={"name": "randomised", "cap": 0.7})
    address = f"/v1/plans/{plan['id']}"
    items = ok(client.get(f"{address}/probabilities?limit=1000"))["items"]
    chance = {(item["submission"], item["reviewer"]): item["probability"] for item in items}
    assert sum(chance.values()) == pytest.approx(8.0) and max(chance.values()) <= 0.7 + 1e-9
    assert list(chance) == sorted(chance)
    for item in ok(client.get(f"{address}/assignments"))["items"]:
        assert item["probability"] == chance[item["submission"], item["reviewer"]]
    table = list(csv.DictReader(io.StringIO(client.get(f"{address}/assignments?format=csv").get_data(as_text=True))))
    assert {(row["submission"], row["reviewer"]) for row in table} <= chance.keys()
    assert all(0 < float(row["probability"]) <= 0.7 + 1e-9 for row in table)
    one = ok(client.get(f"{address}/probabilities?submission=p1&limit=1"))
    assert [item["submission"] for item in one["items"]] == ["p1"] and one["next"]


def test_other_plans_have_no_probabilities(client: FlaskClient, base: str) -> None:
    """An empty list, null, and no column, rather than ones."""
    plan = run(client, base)
    assert ok(client.get(f"/v1/plans/{plan['id']}/probabilities")) == {"items": [], "next": None}
    assert {item["probability"] for item in ok(client.get(f"/v1/plans/{plan['id']}/assignments"))["items"]} == {None}
    assert "probability" not in client.get(f"/v1/plans/{plan['id']}/assignments?format=csv").get_data(as_text=True)
    refused(client.get("/v1/plans/nope/probabilities"), 404)


@pytest.mark.parametrize("name", ["randomised", "perturbed", "robust"])
def test_chance_and_rules_go_together(client: FlaskClient, base: str, name: str) -> None:
    """A senior on each paper in the plan that was drawn, and in every other that might have been."""
    options = {"standard_error": 0.1} if name == "robust" else {"cap": 0.8}
    plan = run(client, base, objective={"name": name, **options}, rules=[SENIOR])
    assert plan["state"] == "succeeded", plan["problem"]
    seniors = {person["id"] for person in PEOPLE if person["seniority"] == "senior"}
    chosen = pairs(client, plan["id"])
    assert all(any((paper["id"], person) in chosen for person in seniors) for paper in PAPERS)
    (proof,) = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]["proofs"]
    for drawn in proof.get("lottery", {"plans": []})["plans"]:
        found = [proof["lottery"]["pairs"][place] for place in drawn["pairs"]]
        assert all(any([paper["id"], person] in found for person in seniors) for paper in PAPERS)


def test_rules_of_the_venue_and_of_the_plan_hold_together(client: FlaskClient, base: str) -> None:
    """The venue's say who, the plan's say more; both are in the plan that comes out."""
    ok(client.put(f"{base}/rules", json={"rules": [SENIOR]}))
    plan = run(client, base, rules=[ONE_EACH])
    assert plan["state"] == "succeeded"
    of = {person["id"]: person for person in PEOPLE}
    chosen = pairs(client, plan["id"])
    for paper in PAPERS:
        people = [of[person] for name, person in chosen if name == paper["id"]]
        assert "senior" in {person["seniority"] for person in people}
        assert len({person["affiliations"][0] for person in people}) == 2
    assert ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))["rule_shortfalls"] == []


def test_a_rule_with_a_price_may_be_missed_and_the_plan_says_where(client: FlaskClient, base: str) -> None:
    """Four seniors' reviews for eight wanted; each that is missed costs its price."""
    rule = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 2, "price": 0.01}
    plan = run(
        client,
        base,
        load_max=2,
        rules=[
            {**rule, "name": "two seniors"},
            {"rule": "bar", "submissions": {"id": "p1"}, "reviewers": {"id": "r1"}},
        ],
    )
    assert plan["state"] == "succeeded"
    missed = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))["rule_shortfalls"]
    assert missed and all(entry["rule"] == "two seniors" and entry["below"] > 0 for entry in missed)
    assert sum(entry["cost"] for entry in missed) == pytest.approx(0.01 * sum(entry["below"] for entry in missed))
    proof = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]["proofs"]
    assert proof and proof[0]["bound"] == pytest.approx(plan["bound"])


def test_b18_seniors_by_submission_and_tracks_before_scores(client: FlaskClient) -> None:
    """B18: a senior on each paper, and nobody from outside its track, however high score and bid are."""
    made = venue(client, demand=2)
    people = [{"id": "s1", "load_max": 2}, *({"id": name, "load_max": 1} for name in ("s2", "j1", "j2", "j3", "r9"))]
    for person in people:
        person["seniority"] = "senior" if str(person["id"]).startswith("s") else "junior"
        person["extra"] = {"track": "B" if person["id"] == "r9" else "A"}
    fill(client, made, people, [{"id": f"p{n}", "track": "A"} for n in (1, 2, 3)])
    score(
        client, made, {(f"p{n}", person["id"]): 0.1 * n for n in (1, 2, 3) for person in people} | {("p1", "r9"): 9.0}
    )
    ok(client.post(f"{made}/bids", json={"bids": [{"submission": "p1", "reviewer": "r9", "bid": "very_high"}]}))
    ok(client.put(f"{made}/rules", json={"rules": [SENIOR, {"rule": "same", "attribute": "track"}]}))
    plan = run(client, made)
    assert plan["state"] == "succeeded"
    chosen = pairs(client, plan["id"])
    assert {person for _, person in chosen} == {"s1", "s2", "j1", "j2", "j3"}
    for n in (1, 2, 3):
        assert sorted(person[0] for paper, person in chosen if paper == f"p{n}") == ["j", "s"]
    why = ok(client.get(f"/v1/plans/{plan['id']}/explanations?submission=p1&reviewer=r9"))["items"]
    assert "track" in json.dumps(why) and not why[0]["assigned"]
    assert ok(client.get(f"/v1/plans/{plan['id']}/explanations?submission=p1"))["items"]


def test_b56_a_rule_forbids_two_people_to_review_each_other(client: FlaskClient) -> None:
    """B56: without it their bids pair them up."""
    made = venue(client, demand=1, load_max=1)
    people = [{"id": f"r{n}", "emails": [f"r{n}@x{n}.example"]} for n in (1, 2, 3, 4)]
    authors = [{"name": "R2", "email": "r2@x2.example"}], [{"name": "R1", "email": "r1@x1.example"}]
    fill(client, made, people, [{"id": "p1", "authors": authors[0]}, {"id": "p2", "authors": authors[1]}])
    wanted = [("p1", "r1"), ("p2", "r2")]
    ok(client.post(f"{made}/bids", json={"bids": [{"submission": p, "reviewer": r, "bid": "high"} for p, r in wanted]}))
    options = {"weights": {"text": 0, "areas": 0, "bids": 1}}
    assert pairs(client, run(client, made, **options)["id"]) == set(wanted)
    rule = {"rule": "no_cycles", "length": 2, "among": "bids"}
    assert len(pairs(client, run(client, made, **options, rules=[rule])["id"]) & set(wanted)) == 1


def test_b58_a_cap_on_probabilities_keeps_a_share_of_the_best_total_and_impossible_ones_end(
    client: FlaskClient,
) -> None:
    """B58: half and half for two people; two reviews from three people at most half each are infeasible, no hang."""
    made = venue(client, demand=1, load_max=1)
    fill(client, made, [{"id": f"r{n}"} for n in (1, 2, 3, 4)], [{"id": "p1"}])
    score(client, made, {("p1", "r1"): 0.9, ("p1", "r2"): 0.8, ("p1", "r3"): 0.1, ("p1", "r4"): 0.1})
    plan = run(client, made, objective={"name": "randomised", "cap": 0.5}, rng=5)
    assert plan["value"] == pytest.approx(0.85) and plan["params"]["rng"] == 5
    items = ok(client.get(f"/v1/plans/{plan['id']}/probabilities"))["items"]
    assert {item["reviewer"]: round(item["probability"], 9) for item in items} == {"r1": 0.5, "r2": 0.5}
    assert run(client, made, objective={"name": "randomised", "cap": 1})["value"] == run(client, made)["value"]
    cap = {"default": 0.5, "reviewers": {"r4": 0}}
    short = run(client, made, demand=2, objective={"name": "randomised", "cap": cap})
    assert short["state"] == "infeasible"


def test_b18_a_rule_that_cannot_be_met_names_itself_in_the_diagnosis(client: FlaskClient, base: str) -> None:
    """B18: hard rules are never dropped in silence; the plan is infeasible and the sentences say which rule."""
    rules = [
        {**SENIOR, "at_least": 2},
        {**ONE_EACH, "name": "one of each"},
        {"rule": "bar", "name": "not r2", "submissions": {"id": "p1"}, "reviewers": {"id": "r2"}},
    ]
    plan = run(client, base, rules=rules)
    assert plan["state"] == "infeasible"
    found = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))
    assert found["rule_shortfalls"] or found["unfilled"]
    assert "senior" in json.dumps(found["diagnosis"]) or "not r2" in json.dumps(found["diagnosis"])


FAULTY: list[tuple[dict[str, Any], list[str]]] = [
    ({"objective": "best"}, ["#/objective"]),
    ({"objective": 3}, ["#/objective"]),
    ({"objective": None}, ["#/objective"]),
    ({"objective": []}, ["#/objective"]),
    ({"objective": {"alpha": 1}}, ["#/objective"]),
    ({"objective": {"name": "welfare", "alpha": -1}}, ["#/objective/alpha"]),
    ({"objective": {"name": "welfare", "alpha": 10**400}}, ["#/objective/alpha"]),
    ({"objective": {"name": "welfare", "alpha": "1"}}, ["#/objective/alpha"]),
    ({"objective": [{"name": "welfare", "alpha": 99}, "total"]}, ["#/objective/0/alpha"]),
    ({"objective": ["total", "maximin", "total"]}, ["#/objective/2"]),
    ({"objective": ["total", "envy"]}, ["#/objective/1"]),
    ({"objective": ["total", {"name": "randomised"}]}, ["#/objective/1"]),
    ({"objective": {"name": "threshold"}}, ["#/objective/t"]),
    ({"objective": {"name": "total", "beta": 1, "loss": 1}}, ["#/objective/beta", "#/objective/loss"]),
    ({"objective": {"name": "randomised", "cap": 0}}, ["#/objective/cap"]),
    ({"objective": {"name": "randomised", "cap": "0.5"}}, ["#/objective/cap"]),
    ({"objective": {"name": "randomised", "cap": [[0.5], [0.5, 0.5]]}}, ["#/objective/cap"]),
    ({"objective": {"name": "randomised", "cap": [0.5, 0.5, 0.5, 0.5]}}, ["#/objective/cap"]),
    ({"objective": {"name": "randomised", "cap": {"reviewers": {"r9": 0.5}}}}, ["#/objective/cap/reviewers"]),
    ({"objective": {"name": "randomised", "cap": {"pairs": [["p9", "r1", 0.5]]}}}, ["#/objective/cap/pairs/0"]),
    ({"rules": {}}, ["#/rules"]),
    ({"rules": None}, ["#/rules"]),
    ({"rules": ["senior"]}, ["#/rules/0"]),
    ({"rules": [SENIOR, {"rule": "seniors"}]}, ["#/rules/1/rule"]),
    ({"rules": [SENIOR, SENIOR, {**SENIOR, "at_least": -1}]}, ["#/rules/2/at_least"]),
    ({"rules": [{**SENIOR, "at_most": 1, "least": 2}]}, ["#/rules/0/least"]),
    ({"rules": [{**SENIOR, "reviewers": {"extra.a.b": {"at_least": []}}}]}, ["#/rules/0/reviewers/extra.a.b/at_least"]),
    ({"rules": [{**SENIOR, "price": 10**400}]}, ["#/rules/0/price"]),
    ({"rules": [{**SENIOR, "reviewers": {"seniorty": "senior"}}]}, ["#/rules/0/reviewers/seniorty"]),
    ({"rules": [SENIOR, {**SENIOR, "reviewers": {"extra.joind": "x"}}]}, ["#/rules/1/reviewers/extra.joind"]),
    ({"rules": [{**SENIOR, "reviewers": {"seniority": "captain"}}]}, ["#/rules/0/reviewers"]),
    ({"rules": [{"rule": "lock", "submissions": {"id": "p1"}, "reviewers": {"id": "r9"}}]}, ["#/rules/0/reviewers/id"]),
    (
        {"demand": True, "rules": [{**SENIOR, "at_least": 1.5}], "objective": "x"},
        ["#/demand", "#/objective", "#/rules/0/at_least"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "places"), FAULTY, ids=lambda given: json.dumps(given)[:60])
def test_every_fault_is_a_422_at_its_place_and_nothing_is_stored(
    client: FlaskClient, base: str, options: dict[str, Any], places: list[str]
) -> None:
    """Refused when asked for, not when planned."""
    problem = refused(client.post(f"{base}/plans", json=options), 422)
    assert sorted(set(map(str, pointers(problem)))) == sorted(places)
    assert ok(client.get(f"{base}/plans"))["items"] == []


@pytest.mark.parametrize("options", [{"objective": {"name": "welfare", "alpha": -1}}, {"rules": [{"rule": "seniors"}]}])
def test_faults_have_the_codes_and_words_of_the_library(client: FlaskClient, base: str, options: Any) -> None:
    """One reader for both doors."""
    with pytest.raises(InvalidParamsError) as caught:
        Params.from_mapping(options)
    told = refused(client.post(f"{base}/plans", json=options), 422)["errors"]
    assert [(entry["code"], entry["detail"]) for entry in told] == [
        (issue.code, issue.reason) for issue in caught.value.issues
    ]


def test_a_fault_of_the_venues_own_rules_is_told_by_readiness_and_by_the_plan(client: FlaskClient, base: str) -> None:
    """Their form is checked when they are stored; what they mean depends on the records of the day."""
    ok(client.put(f"{base}/rules", json={"rules": [{**SENIOR, "reviewers": {"seniorty": "senior"}}]}))
    found = ok(client.get(f"{base}/readiness"))
    assert not found["ready"]
    assert [item["code"] for item in found["items"] if item["severity"] == "error"] == ["unknown-attribute"]
    plan = run(client, base)
    assert plan["state"] == "failed" and "seniorty" in plan["problem"]["detail"]
    assert plan["problem"]["code"] == "invalid-venue"


def test_readiness_takes_the_rules_of_a_run(client: FlaskClient, base: str) -> None:
    """Same options as a plan."""
    found = ok(client.post(f"{base}/readiness", json={"rules": [{**SENIOR, "reviewers": {"seniority": "captain"}}]}))
    assert not found["ready"] and "rule-matches-nobody" in {item["code"] for item in found["items"]}
    refused(client.post(f"{base}/readiness", json={"rules": [{}]}), 422)


def test_the_rules_of_a_venue_are_one_document_with_a_version(client: FlaskClient, base: str) -> None:
    """Read, replaced under If-Match, deleted; no version ever comes back."""
    address = f"{base}/rules"
    first = client.get(address)
    assert ok(first) == {"rules": []} and first.headers["ETag"] == '"0"'
    stored = client.put(address, json={"rules": [SENIOR]})
    assert ok(stored) == {"rules": [SENIOR]} and stored.headers["ETag"] == '"1"'
    assert client.get(address, headers={"If-None-Match": '"1"'}).status_code == 304
    refused(client.put(address, json={"rules": []}), 428)
    refused(client.put(address, json={"rules": []}, headers={"If-Match": '"0"'}), 412)
    changed = client.put(address, json={"rules": [ONE_EACH]}, headers={"If-Match": '"1"'})
    assert ok(changed) == {"rules": [ONE_EACH]} and changed.headers["ETag"] == '"2"'
    refused(client.delete(address, headers={"If-Match": '"1"'}), 412)
    assert client.delete(f"{address}?dry_run=true").status_code == 204
    assert ok(client.get(address)) == {"rules": [ONE_EACH]}
    assert client.delete(address).status_code == client.delete(address).status_code == 204
    gone = client.get(address)
    assert ok(gone) == {"rules": []} and gone.headers["ETag"] == '"3"'
    refused(client.get("/v1/venues/nope/rules"), 404)
    refused(client.put("/v1/venues/nope/rules", json={"rules": []}), 404)


def test_faulty_rules_of_a_venue_are_refused_whole(client: FlaskClient, base: str) -> None:
    """B58: the faults of all rules at once, each at its place, and the list stays as it was."""
    address = f"{base}/rules"
    problem = refused(client.put(address, json={"rules": [SENIOR, {"rule": "bar"}, {**SENIOR, "at_least": "1"}]}), 422)
    assert sorted(map(str, pointers(problem))) == ["#/rules/1", "#/rules/2/at_least"]
    refused(client.put(address, json={}), 422)
    refused(client.put(address, json={"rules": [], "more": 1}), 422)
    assert ok(client.get(address)) == {"rules": []}


def test_rules_are_part_of_what_a_plan_is_made_from(client: FlaskClient, base: str) -> None:
    """Both hashes change with them and come back without them; a plan keeps the rules it was made by."""
    before = run(client, base)
    ok(client.put(f"{base}/rules", json={"rules": [SENIOR]}))
    ruled = run(client, base)
    assert ruled["venue_hash"] != before["venue_hash"] and ruled["input_hash"] != before["input_hash"]
    assert client.delete(f"{base}/rules").status_code == 204
    after = run(client, base)
    assert (after["venue_hash"], after["input_hash"]) == (before["venue_hash"], before["input_hash"])
    assert ok(client.get(f"/v1/plans/{ruled['id']}/certificate"))["certificate"]["proofs"]


def test_rules_go_with_their_venue(client: FlaskClient, base: str) -> None:
    """A venue made anew under the same id begins without any."""
    ok(client.put(f"{base}/rules", json={"rules": [SENIOR]}))
    assert client.delete(base).status_code == 204
    venue(client)
    assert ok(client.get(f"{base}/rules")) == {"rules": []}


def test_names_of_large_venues_are_left_to_the_run() -> None:
    """Looking up rules must not hold up a request for long."""
    assert MOST_RECORDS <= 10_000


HUGE = 10**400  # valid JSON, and no float64
NO_R1 = {"rule": "bar", "name": "no r1", "submissions": {"id": "p2"}, "reviewers": {"id": "r1"}}
HELD = {"rule": "lock", "submissions": {"id": "p2"}, "reviewers": {"id": "r1"}}


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"rules": [{"rule": "bar", "_schema": 3}]}, ["#/rules/0"]),
        ({"rules": [{**SENIOR, "at_least": None, "_schema": {"_schema": 1}}]}, ["#/rules/0"]),
        ({"objective": {"name": "total", "_schema": 1, "loss": 2}}, ["#/objective", "#/objective/loss"]),
        ({"objective": {"name": "total", "loss": False}}, ["#/objective/loss"]),
        ({"objective": {"name": "robust", "standard_error": 1e308}}, ["#/objective/standard_error"]),
        ({"rules": [{**SENIOR, "reviewers": {"seniority": HUGE}}]}, ["#/rules/0/reviewers/seniority"]),
        ({"rules": [{"rule": "bar", "submissions": {"id": HUGE}}]}, ["#/rules/0/submissions/id"]),
        ({"rules": [{**ONE_EACH, "groups": {"g": [HUGE]}}]}, ["#/rules/0/groups/g/0"]),
    ],
)
def test_b58_odd_members_and_numbers_are_422_at_their_place(
    client: FlaskClient, base: str, options: dict[str, Any], places: list[str]
) -> None:
    """B58: each of these was a 500 or taken for something else, for a plan's rules as for a venue's."""
    problem = refused(client.post(f"{base}/plans", json=options), 422)
    assert sorted(set(map(str, pointers(problem)))) == places
    refused(client.post(f"{base}/readiness", json=options), 422)
    if "rules" in options:
        refused(client.put(f"{base}/rules", json=options), 422)
        assert ok(client.get(f"{base}/rules")) == {"rules": []}
    assert ok(client.get(f"{base}/plans"))["items"] == []


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"rules": [NO_R1, HELD]}, "#/rules/1"),
        ({"rules": [NO_R1], "locks": [{"submission": "p1", "reviewer": "r1"}, {"submission": "p2", "reviewer": "r1"}]},
         "#/rules/0"),
    ],
)  # fmt: skip
def test_a_lock_on_a_pair_that_a_rule_bars_is_refused_when_asked_for_and_names_the_rule(
    client: FlaskClient, base: str, options: dict[str, Any], place: str
) -> None:
    """It was a plan that ended as failed, with words that left out which rule."""
    problem = refused(client.post(f"{base}/plans", json=options), 422, "invalid-params")
    assert pointers(problem) == [place]
    told = problem["errors"][0]
    assert told["code"] == "locked-conflict" and told["value"] == ["p2", "r1"] and "rule no r1" in told["detail"]
    assert ok(client.get(f"{base}/plans"))["items"] == []


def test_locks_of_a_request_are_refused_where_a_rule_of_the_venue_bars_them(client: FlaskClient, base: str) -> None:
    """The request is what can be changed; what the venue holds against itself is told by readiness and the run."""
    ok(client.put(f"{base}/rules", json={"rules": [NO_R1]}))
    locks = [{"submission": "p1", "reviewer": "r1"}, {"submission": "p2", "reviewer": "r1"}]
    problem = refused(client.post(f"{base}/plans", json={"locks": locks}), 422, "invalid-venue")
    assert pointers(problem) == ["#/locks/1"] and "no r1" in problem["detail"]
    held = refused(client.post(f"{base}/plans", json={"rules": [HELD]}), 422, "invalid-params")
    assert pointers(held) == ["#/rules/0"]
    ok(client.post(f"{base}/locks", json={"locks": locks[1:]}))
    plan = run(client, base)
    assert plan["state"] == "failed" and "no r1" in plan["problem"]["detail"]
    assert plan["problem"]["errors"][0]["submissions"] == ["p2"]
    assert plan["problem"]["errors"][0]["reviewers"] == ["r1"]


@pytest.mark.parametrize(
    ("rule", "place", "who"),
    [
        ({**HELD, "reviewers": {"id": ["r1", "r2", "r3"]}}, "#/rules/0/submissions", "p2"),
        ({**HELD, "submissions": {"id": ["p1", "p2", "p3"]}}, "#/rules/0/reviewers", "r1"),
    ],
)
def test_more_locks_by_a_rule_than_demand_or_load_allow_are_refused_when_asked_for(
    client: FlaskClient, base: str, rule: dict[str, Any], place: str, who: str
) -> None:
    """As for locks of the request itself."""
    problem = refused(client.post(f"{base}/plans", json={"rules": [rule]}), 422, "invalid-params")
    assert pointers(problem) == [place]
    told = problem["errors"][0]
    assert told["code"] == "too-many-locks" and told["value"] == who and "rule lock" in told["detail"]
