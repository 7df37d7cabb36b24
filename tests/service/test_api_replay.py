"""Idempotency-Key: a request that was sent twice is done once."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.edge.services import EXTENSION
from tests.service.api import fill, ok, refused, venue


def test_the_same_request_is_answered_twice_and_done_once(client: FlaskClient) -> None:
    """The second answer is the first one, headers included."""
    base = venue(client)
    key = {"Idempotency-Key": "upload-1"}
    first = client.post(f"{base}/reviewers", json={"id": "r1"}, headers=key)
    second = client.post(f"{base}/reviewers", json={"id": "r1"}, headers=key)
    assert ok(first, 201) == ok(second, 201)
    assert second.headers["Location"] == first.headers["Location"]
    assert second.headers["Idempotency-Replayed"] == "true" and "Idempotency-Replayed" not in first.headers
    assert second.headers["X-Request-ID"] != first.headers["X-Request-ID"]
    refused(client.post(f"{base}/reviewers", json={"id": "r1"}), 409)


def test_a_plan_is_started_once(client: FlaskClient) -> None:
    """A client that lost the answer must not double the work."""
    base = venue(client, demand=1)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])
    key = {"Idempotency-Key": "plan-1"}
    first = ok(client.post(f"{base}/plans", json={}, headers=key), 202)
    assert ok(client.post(f"{base}/plans", json={}, headers=key), 202)["id"] == first["id"]
    assert len(ok(client.get(f"{base}/plans"))["items"]) == 1


def test_a_plan_is_found_again_before_its_first_answer_was_sent(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died, or still waits for the plan: the key leads to it all the same."""
    base = venue(client, demand=1)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])

    def die(*_: object) -> None:
        raise ZeroDivisionError

    key = {"Idempotency-Key": "plan-1"}
    monkeypatch.setattr(app.extensions[EXTENSION].jobs, "submit", die)
    refused(client.post(f"{base}/plans", json={}, headers=key), 500)
    again = client.post(f"{base}/plans", json={}, headers=key)
    plan = ok(again, 202)
    assert again.headers["Location"] == f"/v1/plans/{plan['id']}"
    assert again.headers["Idempotency-Replayed"] == "true"
    assert [item["id"] for item in ok(client.get(f"{base}/plans"))["items"]] == [plan["id"]]


def test_another_request_under_the_same_key_is_422(client: FlaskClient) -> None:
    """Body, route and query all count."""
    base = venue(client)
    key = {"Idempotency-Key": "k"}
    ok(client.post(f"{base}/reviewers", json={"id": "r1"}, headers=key), 201)
    refused(client.post(f"{base}/reviewers", json={"id": "r2"}, headers=key), 422, "idempotency-mismatch")
    refused(client.post(f"{base}/submissions", json={"id": "r1"}, headers=key), 422, "idempotency-mismatch")


def test_a_refused_request_may_be_mended_under_its_key(client: FlaskClient) -> None:
    """It changed nothing, so there is nothing to repeat."""
    base = venue(client)
    key = {"Idempotency-Key": "k"}
    refused(client.post(f"{base}/reviewers", json={"id": ""}, headers=key), 422, "invalid-request")
    ok(client.post(f"{base}/reviewers", json={"id": "r1"}, headers=key), 201)
    refused(client.post(f"{base}/reviewers", json={"id": "r1"}, headers={"Idempotency-Key": "other"}), 409)
    ok(client.post(f"{base}/reviewers", json={"id": "r2"}, headers={"Idempotency-Key": "other"}), 201)


def test_a_dry_run_keeps_no_key(client: FlaskClient) -> None:
    """It did nothing that could be repeated."""
    base = venue(client)
    key = {"Idempotency-Key": "k"}
    ok(client.post(f"{base}/reviewers?dry_run=true", json={"id": "r1"}, headers=key), 201)
    ok(client.post(f"{base}/reviewers", json={"id": "r1"}, headers=key), 201)
    assert len(ok(client.get(f"{base}/reviewers"))["items"]) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_key_that_is_none_is_refused(client: FlaskClient, key: str) -> None:
    """Printable ASCII, 1 to 255 characters."""
    problem = refused(
        client.post("/v1/venues", json={"id": "v"}, headers={"Idempotency-Key": key}), 422, "invalid-request"
    )
    assert problem["errors"][0]["parameter"] == "Idempotency-Key"
