"""Plans over HTTP: start, wait, cancel, read."""

from __future__ import annotations

import csv
import io

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.edge.services import EXTENSION
from service.jobs import InlineJobs
from tests.service.api import fill, ok, pairs, pointers, refused, run, score, strict, venue


@pytest.fixture
def base(client: FlaskClient) -> str:
    """Two papers, two people, scores that make the diagonal best."""
    made = venue(client, demand=1, load_max=1)
    fill(client, made, [{"id": "=r1"}, {"id": "r2"}], [{"id": "p1"}, {"id": "p2"}])
    score(client, made, {("p1", "=r1"): 0.75, ("p2", "=r1"): 0.5, ("p1", "r2"): 0.25, ("p2", "r2"): 0.5})
    return made


def test_a_plan_is_accepted_then_read(client: FlaskClient, base: str) -> None:
    """202 with an address to watch; 200 from there on."""
    response = client.post(f"{base}/plans", json={})
    plan = ok(response, 202)
    assert response.headers["Location"] == f"/v1/plans/{plan['id']}"
    assert response.headers["Retry-After"]
    found = client.get(response.headers["Location"])
    assert ok(found)["state"] == "succeeded"
    assert client.get(response.headers["Location"], headers={"If-None-Match": found.headers["ETag"]}).status_code == 304
    assert [item["id"] for item in ok(client.get(f"{base}/plans"))["items"]] == [plan["id"]]


def test_prefer_wait_answers_a_small_plan_at_once(client: FlaskClient, base: str) -> None:
    """201 with the finished plan, and a word about the wait."""
    response = client.post(f"{base}/plans", json={}, headers={"Prefer": "respond-async, wait=20"})
    assert ok(response, 201)["state"] == "succeeded"
    assert response.headers["Preference-Applied"] == "wait=20"


def test_a_wait_that_is_too_short_answers_202(app: Flask, base: str) -> None:
    """A plan that goes on is handed over as it is."""
    jobs = app.extensions[EXTENSION].jobs
    assert isinstance(jobs, InlineJobs)
    jobs.paused = True
    response = app.test_client().post(f"{base}/plans", json={}, headers={"Prefer": "wait=1"})
    assert ok(response, 202)["state"] == "queued"


def test_a_queued_plan_is_cancelled_and_stays_so(app: Flask, base: str) -> None:
    """B47: a cancelled plan never becomes a successful one, and has nothing to show."""
    jobs = app.extensions[EXTENSION].jobs
    jobs.paused = True
    client = app.test_client()
    plan = ok(client.post(f"{base}/plans", json={}), 202)
    address = f"/v1/plans/{plan['id']}"
    refused(client.get(f"{address}/assignments"), 409)
    assert ok(client.delete(address), 202)["state"] == "cancelled"
    jobs.paused = False
    jobs.run_waiting()
    assert ok(client.get(address))["state"] == "cancelled"
    for part in ("assignments", "alternates", "certificate"):
        refused(client.get(f"{address}/{part}"), 409)


def test_a_finished_plan_cannot_be_cancelled(client: FlaskClient, base: str) -> None:
    """Its result stands."""
    plan = run(client, base)
    refused(client.delete(f"/v1/plans/{plan['id']}"), 409, "state-conflict")


def test_assignments_carry_parts_that_add_up(client: FlaskClient, base: str) -> None:
    """Strict JSON, and affinity is the sum of what is shown (B30, B41)."""
    plan = run(client, base)
    assert pairs(client, plan["id"]) == {("p1", "=r1"), ("p2", "r2")}
    for item in strict(client.get(f"/v1/plans/{plan['id']}/assignments"))["items"]:
        assert item["affinity"] == pytest.approx(sum(part["contribution"] for part in item["parts"]))
    only = ok(client.get(f"/v1/plans/{plan['id']}/assignments?reviewer=r2"))["items"]
    assert [item["submission"] for item in only] == ["p2"]


@pytest.mark.parametrize("query", ["", "?format=csv", "?format=csv-spreadsheet"])
def test_assignments_as_csv(client: FlaskClient, base: str, query: str) -> None:
    """B44, B45: for programs as it is, for spreadsheets with a mark and without formulas."""
    plan = run(client, base)
    headers = {} if query else {"Accept": "text/csv"}
    response = client.get(f"/v1/plans/{plan['id']}/assignments{query}", headers=headers)
    assert response.status_code == 200 and response.mimetype == "text/csv"
    assert "Accept" in response.headers["Vary"]
    sheet = query.endswith("spreadsheet")
    assert response.get_data().startswith(b"\xef\xbb\xbf") == sheet
    rows = list(csv.DictReader(io.StringIO(response.get_data().decode("utf-8-sig"))))
    assert {(row["submission"], row["reviewer"]) for row in rows} == {("p1", "'=r1" if sheet else "=r1"), ("p2", "r2")}
    assert float(rows[0]["affinity"]) == 0.75
    items = ok(client.get(f"/v1/plans/{plan['id']}/assignments"))["items"]
    assert [row["reasons"] for row in rows] == ["; ".join(item["reasons"]) for item in items]


def test_b44_our_own_csv_is_read_back(client: FlaskClient, base: str) -> None:
    """B44: an exported plan locks the next one."""
    plan = run(client, base)
    exported = client.get(f"/v1/plans/{plan['id']}/assignments?format=csv").get_data()
    done = ok(client.post(f"{base}/locks", data=exported, content_type="text/csv"))
    assert done["created"] == 2
    assert pairs(client, run(client, base)["id"]) == pairs(client, plan["id"])


def test_json_stays_the_default_for_browsers_and_programs(client: FlaskClient, base: str) -> None:
    """CSV only where it is asked for."""
    plan = run(client, base)
    for accept in (
        "*/*",
        "application/json",
        "text/html,application/xhtml+xml,*/*;q=0.8",
        "application/json, text/csv;q=0.5",
    ):
        response = client.get(f"/v1/plans/{plan['id']}/assignments", headers={"Accept": accept})
        assert response.mimetype == "application/json"


def test_alternates_explanations_and_certificate(client: FlaskClient, base: str) -> None:
    """Everything a plan promises can be read."""
    plan = run(client, base, n_alternates=2)
    address = f"/v1/plans/{plan['id']}"
    alternates = ok(client.get(f"{address}/alternates"))["items"]
    assert {(item["submission"], item["reviewer"], item["full"]) for item in alternates} == {
        ("p1", "r2", True),
        ("p2", "=r1", True),
    }
    assert ok(client.get(f"{address}/explanations?submission=p1"))["items"]
    refused(client.get(f"{address}/explanations"), 422)
    certificate = ok(client.get(f"{address}/certificate"))
    assert certificate["certificate"]["audited"] is True
    assert certificate["bound"] == pytest.approx(certificate["value"]) == pytest.approx(1.25)
    assert ok(client.get(f"{address}/diagnosis"))["diagnosis"] == {}


def test_an_infeasible_plan_keeps_its_fullest_assignments(client: FlaskClient, base: str) -> None:
    """B19: infeasible is a result with figures, not an error."""
    plan = run(client, base, demand=2)
    assert plan["state"] == "infeasible"
    assert len(pairs(client, plan["id"])) == 2
    diagnosis = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))
    assert diagnosis["diagnosis"] and sum(diagnosis["unfilled"].values()) == 2


def test_faulty_options_point_into_the_body(client: FlaskClient, base: str) -> None:
    """Form by the schema, meaning by the engine; both at their place, no plan queued."""
    body = {"weights": {"text": -1, "bids": 1}, "objective": "best", "time_limit": 0, "rng": 1.5, "colour": 1}
    problem = refused(client.post(f"{base}/plans", json=body), 422)
    assert set(pointers(problem)) == {"#/weights/text", "#/objective", "#/time_limit", "#/rng", "#/colour"}
    problem = refused(client.post(f"{base}/plans", json={"locks": [{"submission": "p1", "reviewer": "ghost"}]}), 422)
    assert pointers(problem) == ["#/locks/0/reviewer"]
    assert ok(client.get(f"{base}/plans"))["items"] == []


def test_readiness_takes_the_options_of_a_run(client: FlaskClient, base: str) -> None:
    """What the run would find, without the run."""
    assert ok(client.get(f"{base}/readiness"))["ready"] is True
    assert ok(client.post(f"{base}/readiness", json={"demand": 3}))["ready"] is False


def test_an_empty_venue_has_no_plan(client: FlaskClient) -> None:
    """Nothing to assign is told before the run."""
    refused(client.post(f"{venue(client)}/plans", json={}), 409, "not-ready")


def test_a_plan_of_nobody_is_404(client: FlaskClient) -> None:
    """Every part of it."""
    for part in ("", "/assignments", "/alternates", "/explanations?submission=p", "/diagnosis", "/certificate"):
        refused(client.get(f"/v1/plans/nothing{part}"), 404, "not-found")
    refused(client.delete("/v1/plans/nothing"), 404)
