"""What can be known before a run is told before it: by the readiness answer, or by refusing the plan."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.handlers.plans import COUNTS
from tests.service.api import fill, ok, pointers, refused, venue


def ready(client: FlaskClient, base: str) -> dict[str, Any]:
    answer = ok(client.get(f"{base}/readiness"))
    assert tuple(answer["counts"]) == COUNTS
    return dict(answer)


def errors(answer: dict[str, Any]) -> set[str]:
    return {item["code"] for item in answer["items"] if item["severity"] == "error"}


def test_an_empty_venue_is_not_ready(client: FlaskClient) -> None:
    """And says what is missing."""
    answer = ready(client, venue(client))
    assert answer["ready"] is False
    assert errors(answer) == {"no-submissions", "no-reviewers"}


def test_a_venue_in_which_nobody_takes_part_is_not_ready(client: FlaskClient) -> None:
    """Neither is a plan of it queued."""
    base = venue(client, demand=1)
    fill(
        client,
        base,
        [{"id": "r1", "active": False}, {"id": "r2", "role": "area_chair"}],
        [{"id": "p1", "active": False}],
    )
    answer = ready(client, base)
    assert answer["ready"] is False and errors(answer) == {"no-submissions", "no-reviewers"}
    problem = refused(client.post(f"{base}/plans", json={}), 409, "not-ready")
    assert "no active submissions and no active reviewers" in problem["detail"]


def test_what_stops_a_full_plan_is_an_error_and_a_remark_is_none(client: FlaskClient) -> None:
    """A program asks for errors only."""
    base = venue(client, demand=2, load_max=1)
    fill(client, base, [{"id": "r1"}, {"id": "r2", "same_person_as": "r1"}], [{"id": "p1"}, {"id": "p2"}])
    answer = ready(client, base)
    assert answer["ready"] is False and errors(answer) == {"too-few-eligible", "too-little-load"}
    assert {item["severity"] for item in answer["items"] if item["code"] == "merged-accounts"} == {"info"}
    ok(client.post(f"{base}/reviewers", json={"reviewers": [{"id": f"x{at}", "load_max": 9} for at in range(5)]}), 201)
    assert errors(ready(client, base)) == set()
    answer = ok(client.post(f"{base}/readiness", json={"load_min": 1, "load_max": 1}))
    assert answer["ready"] is False and errors(answer) == {"load-min-too-high"}


def test_faults_of_stored_records_are_named_by_id(client: FlaskClient) -> None:
    """The position inside a stored venue means nothing to anybody."""
    base = venue(client, demand=1, load_max=6)
    fill(client, base, [{"id": "a"}, {"id": "mn", "load_min": 50}], [{"id": "p1"}])
    answer = ready(client, base)
    assert [(item["reviewers"], item["message"]) for item in answer["items"] if item["severity"] == "error"] == [
        (["mn"], "load_min 50 is above the global load_max 6 of reviewer 'mn'")
    ]
    plan = ok(client.post(f"{base}/plans", json={}), 202)
    problem = ok(client.get(f"/v1/plans/{plan['id']}"))["problem"]
    assert problem["detail"] == "load_min 50 is above the global load_max 6 of reviewer 'mn'"
    assert problem["errors"][0]["reviewers"] == ["mn"] and "row" not in str(problem["errors"][0]["reason"])


def test_locks_at_fault_name_their_records(client: FlaskClient) -> None:
    """A chair has to find them."""
    base = venue(client, demand=1, load_max=1)
    fill(
        client,
        base,
        [{"id": "r1", "emails": ["a@uni.example"]}, {"id": "r2"}],
        [{"id": "p1", "authors": [{"email": "b@uni.example"}]}, {"id": "p2"}, {"id": "p3"}],
    )
    ok(client.post(f"{base}/locks", json={"locks": [{"submission": "p1", "reviewer": "r1"}]}))
    item = ready(client, base)["items"][0]
    assert (item["code"], item["submissions"], item["reviewers"]) == ("locked-conflict", ["p1"], ["r1"])
    ok(client.delete(f"{base}/locks"))
    locks = [{"submission": name, "reviewer": "r2"} for name in ("p2", "p3")]
    ok(client.post(f"{base}/locks", json={"locks": locks}))
    item = ready(client, base)["items"][0]
    assert (item["code"], item["submissions"], item["reviewers"]) == ("too-many-locks", [], ["r2"])


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        ({"scorer": "nonsense"}, "invalid-params", "#/scorer"),
        ({"load_min": 3, "load_max": 2}, "invalid-params", "#/load_min"),
        ({"load_min": 3}, "invalid-params", "#/load_min"),
        ({"load_max": 0}, "invalid-params", "#/load_max"),
        ({"locks": [{"submission": "p1", "reviewer": "r1"}]}, "invalid-venue", "#/locks/0"),
        (
            {"locks": [{"submission": "p2", "reviewer": "r1"}, {"submission": "p2", "reviewer": "R2@x.example"}]},
            "invalid-venue",
            "#/locks/0/submission",
        ),
        (
            {"demand": 9, "locks": [{"submission": f"p{at}", "reviewer": "r2"} for at in (1, 2, 3)]},
            "invalid-venue",
            "#/locks/0/reviewer",
        ),
    ],
)
def test_a_plan_that_cannot_be_is_refused_at_once(
    client: FlaskClient, body: dict[str, Any], code: str, place: str
) -> None:
    """With the place in the body, and without a plan that fails later."""
    base = venue(client, demand=1, load_max=2, load_min=1)
    fill(client, base, [{"id": "r1"}, {"id": "r2", "emails": ["r2@x.example"]}], [{"id": f"p{at}"} for at in (1, 2, 3)])
    ok(client.post(f"{base}/conflicts", json={"conflicts": [{"submission": "p1", "reviewer": "r1"}]}))
    problem = refused(client.post(f"{base}/plans", json=body), 422, code)
    assert place in pointers(problem)
    assert ok(client.get(f"{base}/plans"))["items"] == []


def test_locks_of_the_venue_count_with_those_of_the_plan(client: FlaskClient) -> None:
    """Together they exceed what one reviewer takes; the same pair twice is one."""
    base = venue(client, demand=2, load_max=1)
    fill(client, base, [{"id": "r1"}, {"id": "r2"}], [{"id": "p1"}, {"id": "p2"}])
    ok(client.post(f"{base}/locks", json={"locks": [{"submission": "p1", "reviewer": "r1"}]}))
    lock = {"submission": "p2", "reviewer": "r1"}
    refused(client.post(f"{base}/plans", json={"locks": [lock]}), 422, "invalid-venue")
    ok(client.post(f"{base}/plans", json={"locks": [{"submission": "p1", "reviewer": "r1"}]}), 202)


def test_a_dry_run_of_a_plan_leads_nowhere(client: FlaskClient) -> None:
    """There is no plan at the address it would have had."""
    base = venue(client, demand=1)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])
    response = client.post(f"{base}/plans?dry_run=true", json={}, headers={"Prefer": "wait=5"})
    ok(response, 202)
    assert not set(response.headers.keys()) & {"Location", "Retry-After", "Preference-Applied"}
