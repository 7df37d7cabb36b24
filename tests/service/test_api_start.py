"""Plans that begin from plans, over HTTP."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.edge.services import EXTENSION
from tests.service.api import fill, ok, pairs, pointers, refused, run, score, venue


@pytest.fixture
def base(client: FlaskClient) -> str:
    """Three papers and four people; everybody reads one, and the diagonal is best."""
    made = venue(client, demand=1, load_max=1)
    people, papers = [{"id": f"r{at}"} for at in range(4)], [{"id": f"p{at}"} for at in range(3)]
    fill(client, made, people, papers)
    score(client, made, {(f"p{p}", f"r{r}"): 0.9 - 0.2 * abs(p - r) for p in range(3) for r in range(4)})
    return made


def test_somebody_leaves_and_the_new_plan_begins_from_the_old_one(client: FlaskClient, base: str) -> None:
    """Only the freed review moves; the plan says where it began and what it kept."""
    first = run(client, base)
    assert first["start"] is None and "changes" not in first["summary"]
    address = f"{base}/reviewers/r2"
    etag = client.get(address).headers["ETag"]
    ok(client.delete(address, headers={"If-Match": etag}))
    second = run(client, base, start=first["id"])
    assert second["start"] == first["id"] and second["state"] == "succeeded"
    assert pairs(client, second["id"]) == {("p0", "r0"), ("p1", "r1"), ("p2", "r3")}
    assert second["summary"]["changes"] == {
        "kept": 2, "added": 1, "removed": 1, "gone": 1, "moved": 1, "submissions": 1,
    }  # fmt: skip
    record = ok(client.get(f"/v1/plans/{second['id']}/certificate"))["provenance"]["start"]
    assert record["plan"] == first["id"] and record["used"] is True and len(record["hash"]) == 64
    notices = ok(client.get(f"/v1/plans/{second['id']}/diagnosis"))["notices"]
    assert "started-from-plan" in [notice["code"] for notice in notices]


def test_a_plan_for_something_else_says_that_its_start_was_not_used(client: FlaskClient, base: str) -> None:
    """It is made as without one."""
    first = run(client, base)
    second = run(client, base, start=first["id"], objective="maximin")
    notices = ok(client.get(f"/v1/plans/{second['id']}/diagnosis"))["notices"]
    assert "start-not-used" in [notice["code"] for notice in notices]


def test_a_start_must_be_a_plan_of_this_venue_that_has_pairs(app: Flask, client: FlaskClient, base: str) -> None:
    """Each wrong one is refused by name, and null means none."""
    first = run(client, base)
    other = venue(client, "w", demand=1, load_max=1)
    fill(client, other, [{"id": "r1"}], [{"id": "p1"}])
    for where, start in ((base, "nowhere"), (other, first["id"])):
        problem = refused(client.post(f"{where}/plans", json={"start": start}), 422, "invalid-params")
        assert pointers(problem) == ["#/start"] and problem["errors"][0]["code"] == "unknown-plan"
    app.extensions[EXTENSION].jobs.paused = True
    waiting = ok(client.post(f"{base}/plans", json={"start": None}), 202)
    assert waiting["start"] is None
    problem = refused(client.post(f"{base}/plans", json={"start": waiting["id"]}), 422, "invalid-params")
    assert problem["errors"][0]["code"] == "plan-without-pairs" and "queued" in problem["detail"]
    for wrong in (7, "", ["x"], "x" * 101):
        refused(client.post(f"{base}/plans", json={"start": wrong}), 422)
