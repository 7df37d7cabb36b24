"""What API tests share: a client that speaks JSON, and the one shape every error has."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from service.kinds import PROBLEMS
from service.problems import MEDIA_TYPE

REQUIRED = {"type", "title", "status", "detail", "instance", "code", "request_id", "errors"}


def strict(response: TestResponse) -> Any:
    """The body, parsed as browsers do: NaN and Infinity are errors."""

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    return json.loads(response.get_data(), parse_constant=refuse)


def ok(response: TestResponse, status: int = 200) -> Any:
    """The body of a success."""
    assert response.status_code == status, response.get_data(as_text=True)[:2000]
    return strict(response) if response.get_data() else None


def refused(response: TestResponse, status: int, code: str | None = None) -> dict[str, Any]:
    """The body of a problem, after checking its shape."""
    text = response.get_data(as_text=True)[:2000]
    assert response.status_code == status, text
    assert response.mimetype == MEDIA_TYPE, text
    body = strict(response)
    assert body.keys() >= REQUIRED, text
    assert body.keys() <= REQUIRED | {"more_errors"}, text
    assert body["status"] == status
    assert body["code"] in PROBLEMS
    assert body["type"] == f"/v1/problems/{body['code']}"
    assert body["request_id"] == response.headers["X-Request-ID"]
    assert body["title"] and body["detail"]
    for fault in body["errors"]:
        assert fault["detail"] and fault["code"]
        places = fault.keys() & {"pointer", "line", "parameter"}
        assert len(places) <= 1, fault
    if code is not None:
        assert body["code"] == code, text
    return dict(body)


def pointers(problem: dict[str, Any]) -> list[str | int | None]:
    """The place of every fault."""
    return [fault.get("pointer", fault.get("line", fault.get("parameter"))) for fault in problem["errors"]]


def path(*parts: str) -> str:
    """A path under /v1."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def venue(client: FlaskClient, venue_id: str = "v", **settings: Any) -> str:
    """A fresh venue; returns its path."""
    ok(client.post("/v1/venues", json={"id": venue_id, **settings}), 201)
    return path("venues", venue_id)


def fill(client: FlaskClient, base: str, reviewers: list[dict[str, Any]], submissions: list[dict[str, Any]]) -> None:
    """Records of a venue."""
    ok(client.post(f"{base}/reviewers", json={"reviewers": reviewers}), 201)
    ok(client.post(f"{base}/submissions", json={"submissions": submissions}), 201)


def score(client: FlaskClient, base: str, table: dict[tuple[str, str], float], signal: str = "hand") -> None:
    """Scores by (submission, reviewer)."""
    rows = [{"submission": p, "reviewer": r, "score": value} for (p, r), value in table.items()]
    ok(client.post(f"{base}/scores/{signal}", json={"scores": rows}))


def run(client: FlaskClient, base: str, **options: Any) -> dict[str, Any]:
    """A finished plan that goes by imported scores alone."""
    options = {"weights": {"text": 0, "areas": 0, "bids": 0}, **options}
    plan = ok(client.post(f"{base}/plans", json=options, headers={"Prefer": "wait=20"}), 201)
    return dict(plan)


def pairs(client: FlaskClient, plan: str) -> set[tuple[str, str]]:
    """Assigned (submission, reviewer) pairs of a plan."""
    items = ok(client.get(f"/v1/plans/{plan}/assignments?limit=1000"))["items"]
    return {(item["submission"], item["reviewer"]) for item in items}
