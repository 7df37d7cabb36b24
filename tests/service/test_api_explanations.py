"""Why somebody is not there, over HTTP: every answer names a fact that can be looked up."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.service.api import fill, ok, refused, run, score, venue

TEXT = [{"id": "a", "title": "Graph kernels"}]


@pytest.fixture
def base(client: FlaskClient) -> str:
    """One person for each way not to be there, and three who may."""
    made = venue(client, demand=1, load_max=1)
    fill(
        client,
        made,
        [
            {"id": "ana", "emails": ["ana@uni.example"]},
            {"id": "bo", "emails": ["bo@x.example"], "aliases": ["Bo_Old"]},
            {"id": "bo2", "same_person_as": "bo"},
            {"id": "cy", "load_max": 0},
            {"id": "di", "active": False},
            {"id": "eve", "role": "area_chair"},
            {"id": "fay"},
            {"id": "gus"},
        ],
        [
            {"id": "p1", "authors": [{"name": "C. Doe", "email": "c@uni.example"}]},
            {"id": "p2"},
            {"id": "p3", "active": False},
            {"id": "p4", "demand": 0},
        ],
    )
    score(client, made, {("p1", "bo"): 0.9, ("p1", "fay"): 0.5, ("p2", "fay"): 0.5, ("p1", "gus"): 0.1})
    return made


def explain(client: FlaskClient, plan: dict[str, Any], query: str) -> list[dict[str, Any]]:
    items = ok(client.get(f"/v1/plans/{plan['id']}/explanations?{query}"))["items"]
    return list(items)


def test_a_submission_lists_who_is_there_who_could_be_and_who_cannot(client: FlaskClient, base: str) -> None:
    """In this order, each with a code and a sentence."""
    plan = run(client, base, n_alternates=1)
    items = explain(client, plan, "submission=p1")
    assert [(item["reviewer"], item["code"], item["assigned"]) for item in items] == [
        ("bo", "assigned", True),
        ("gus", "alternate", False),
        ("ana", "conflict", False),
        ("cy", "no-load", False),
        ("di", "inactive", False),
        ("eve", "role", False),
    ]
    words = {item["reviewer"]: "; ".join(item["reasons"]) for item in items}
    assert "share the domain uni.example" in words["ana"] and "affiliation" in words["ana"]
    assert items[2]["conflicts"][0]["rule"] == "affiliation"
    assert "load_max" in words["cy"] and "not active" in words["di"] and "area_chair" in words["eve"]
    assert words["gus"] == "alternate number 1; lawful; its affinity 0.1 is below the lowest assigned here, 0.9"


def test_the_list_comes_by_page(client: FlaskClient, base: str) -> None:
    """A large venue has many people who cannot review a submission."""
    plan = run(client, base)
    seen, address = [], f"/v1/plans/{plan['id']}/explanations?submission=p1&limit=2"
    page = ok(client.get(address))
    while True:
        seen += page["items"]
        assert len(page["items"]) <= 2
        if page["next"] is None:
            break
        page = ok(client.get(f"{address}&cursor={page['next']}"))
    assert seen == explain(client, plan, "submission=p1&limit=100")


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("submission=p1&reviewer=ana", "conflict", "uni.example"),
        ("submission=p1&reviewer=cy", "no-load", "load_max of cy is 0"),
        ("submission=p1&reviewer=di", "inactive", "di is not active"),
        ("submission=p1&reviewer=eve", "role", "area_chair"),
        ("submission=p1&reviewer=fay", "full", "the load of fay is full (1 of 1)"),
        ("submission=p3&reviewer=bo", "inactive-submission", "p3 is not active"),
        ("submission=p4&reviewer=bo", "no-demand", "demand is 0"),
        ("submission=P1&reviewer=bo", "assigned", "hand score 0.9"),
        ("submission=p1&reviewer=bo2", "assigned", "bo2 and bo are accounts of one person"),
        ("submission=p1&reviewer=Bo_Old", "assigned", "Bo_Old is another name of bo"),
        ("submission=p2&reviewer=bo@x.example", "full", "bo@x.example is another name of bo"),
        ("submission=p3", "inactive-submission", "p3 is not active"),
        ("reviewer=cy", "no-load", "load_max of cy is 0"),
        ("reviewer=di", "inactive", "di is not active"),
        ("reviewer=ana", "conflict", "uni.example"),
        ("reviewer=bo2", "assigned", "bo2 and bo"),
    ],
)
def test_a_pair_says_which_fact_decided(client: FlaskClient, base: str, query: str, code: str, words: str) -> None:
    """By any name of either side."""
    plan = run(client, base, n_alternates=0)
    item = explain(client, plan, query)[0]
    assert item["code"] == code and words in "; ".join(item["reasons"])
    assert item["assigned"] == (code == "assigned")
    assert "as a whole" not in str(item)


def test_a_lawful_pair_ranks_below_the_alternates_only_where_there_are_any(client: FlaskClient, base: str) -> None:
    """With none listed there is nothing to rank below."""
    query = "submission=p1&reviewer=gus"
    assert explain(client, run(client, base, n_alternates=0), query)[0]["code"] == "not-assigned"
    lock = [{"submission": "p2", "reviewer": "bo"}]
    plan = run(client, base, n_alternates=1, locks=lock, load_max=2)
    codes = {name: explain(client, plan, f"submission=p2&reviewer={name}")[0] for name in ("ana", "fay", "gus")}
    assert sorted(item["code"] for item in codes.values()) == ["alternate", "lower", "lower"]
    assert codes["gus"]["reasons"] == ["lawful; ranks below the alternates listed"]


def test_a_pair_of_equal_worth_is_not_called_worse(client: FlaskClient) -> None:
    """Ties go by loads and seed, and the words must not claim more."""
    made = venue(client, demand=1, load_max=1)
    fill(client, made, [{"id": "r1"}, {"id": "r2"}], [{"id": "p1"}])
    score(client, made, {("p1", "r1"): 0.5, ("p1", "r2"): 0.5})
    items = explain(client, run(client, made), "submission=p1")
    (reason,) = items[1]["reasons"]
    assert reason == (
        "alternate number 1; lawful; its affinity equals the lowest assigned here, and between equals even loads and "
        "the seed decide"
    )


def test_an_unknown_affinity_that_is_switched_off_is_named(client: FlaskClient, base: str) -> None:
    """It is neither a conflict nor a low rank."""
    plan = run(client, base, allow_unknown=False)
    codes = {item["reviewer"]: item["code"] for item in explain(client, plan, "submission=p2")}
    assert codes["gus"] == codes["bo"] == "unknown-affinity"
    assert [item["submission"] for item in explain(client, plan, "reviewer=gus") if item["code"] == "unknown-affinity"]


def test_an_address_of_two_people_is_answered_for_both(client: FlaskClient) -> None:
    """And nobody's name is 404."""
    made = venue(client, demand=1)
    people = [{"id": "r1", "emails": ["x@a.example"]}, {"id": "r2", "emails": ["x@a.example"]}]
    fill(client, made, people, [{"id": "p1"}])
    plan = run(client, made)
    items = explain(client, plan, "submission=p1&reviewer=X@a.example")
    assert [item["reviewer"] for item in items] == ["r1", "r2"]
    refused(client.get(f"/v1/plans/{plan['id']}/explanations?submission=p1&reviewer=ghost"), 404, "not-found")
    refused(client.get(f"/v1/plans/{plan['id']}/explanations?submission=ghost"), 404, "not-found")


def test_a_plan_explains_itself_by_the_venue_it_was_made_from(client: FlaskClient, base: str) -> None:
    """What is uploaded later changes no answer."""
    plan = run(client, base)
    before = explain(client, plan, "submission=p1")
    ok(client.post(f"{base}/conflicts", json={"conflicts": [{"submission": "p1", "reviewer": "bo"}]}))
    ok(client.delete(f"{base}/reviewers/cy"))
    assert explain(client, plan, "submission=p1") == before


def test_the_documentation_lists_every_code(client: FlaskClient) -> None:
    """Programs branch on them."""
    document = ok(client.get("/v1/openapi.json"))
    codes = document["components"]["schemas"]["Explanation"]["properties"]["code"]["enum"]
    assert {"conflict", "no-load", "inactive", "role", "unknown-affinity", "full", "lower"} <= set(codes)
