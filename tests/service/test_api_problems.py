"""Every error of every route has one shape, one code, and a page that explains it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

import matching.errors
import service.edge.errors
import service.errors
from matching.errors import InputError, Issue, MatchingError
from service import handlers
from service.errors import StateConflictError
from service.kinds import PROBLEMS
from tests.service.api import ok, refused, venue

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
PARTS = {"venue": "v", "reviewer": "r", "submission": "p", "signal": "s", "plan": "x", "code": "not-found"}


def error_classes() -> list[type[MatchingError]]:
    """Every class of the three trees."""
    found = [
        item
        for module in (matching.errors, service.errors, service.edge.errors)
        for _, item in inspect.getmembers(module, inspect.isclass)
        if issubclass(item, MatchingError)
    ]
    return sorted(set(found), key=lambda item: item.__name__)


def routes(app: Flask) -> Iterator[tuple[str, set[str]]]:
    """Every address with its methods."""
    found: dict[str, set[str]] = {}
    for rule in app.url_map.iter_rules():
        found.setdefault(rule.rule, set()).update(rule.methods or ())
    for rule, methods in sorted(found.items()):
        address = rule
        for name, value in PARTS.items():
            address = address.replace(f"<{name}>", value)
        assert "<" not in address, rule
        yield address, methods


def test_every_error_class_has_a_documented_code() -> None:
    """A new class without words for its readers fails here."""
    codes = {item.code for item in error_classes()}
    assert codes <= PROBLEMS.keys()
    assert all(kind.title and kind.words.endswith(".") and 400 <= kind.status < 600 for kind in PROBLEMS.values())


def test_the_type_of_every_problem_leads_to_its_explanation(client: FlaskClient) -> None:
    """For programs as JSON, for people as a page."""
    listed = {item["code"] for item in ok(client.get("/v1/problems"))["items"]}
    assert listed == PROBLEMS.keys()
    for code, kind in PROBLEMS.items():
        assert ok(client.get(f"/v1/problems/{code}"))["title"] == kind.title
        page = client.get(f"/v1/problems/{code}", headers={"Accept": "text/html"})
        assert page.mimetype == "text/html" and code in page.get_data(as_text=True)
    refused(client.get("/v1/problems/none"), 404, "not-found")


def test_a_wrong_method_is_405_on_every_route(app: Flask, client: FlaskClient) -> None:
    """B43: in JSON, with Allow."""
    for address, methods in routes(app):
        for method in {*METHODS, "PROPFIND"} - methods:
            response = client.open(address, method=method)
            refused(response, 405, "method-not-allowed")
            assert set(response.headers["Allow"].split(", ")) == methods


@pytest.mark.parametrize(
    "address",
    ["/nothing", "/v1", "/v1/", "/v1/venues/", "/v1/venues//reviewers", "/v1/venues/v/reviewers/a/b", "/v2/venues"],
)
def test_an_unknown_route_is_404(client: FlaskClient, address: str) -> None:
    """B43: in JSON; never a redirect to a guess."""
    refused(client.get(address), 404, "unknown-route")


def test_a_venue_nobody_made_is_404_on_every_route(app: Flask, client: FlaskClient) -> None:
    """Reads of lists are no exception: an empty list would hide a misspelt id."""
    for address, methods in routes(app):
        if "/v/" in f"{address}/":
            for method in methods & {"GET", "DELETE"}:
                refused(client.open(address, method=method), 404, "not-found")


def test_a_body_no_route_can_read_is_refused_on_every_route(app: Flask, client: FlaskClient) -> None:
    """B43: no body ends in a server error or an HTML page, whatever the route."""
    venue(client)
    for address, methods in routes(app):
        for method in methods & {"POST", "PUT", "PATCH"}:
            for body in (b"", b"null", b"[]", b'"x"', b"{", b'{"a": NaN}'):
                refused(client.open(address, method=method, data=body, content_type="application/json"), 400)
            refused(client.open(address, method=method, data=b"x", content_type="text/plain"), 415)
            refused(client.open(address, method=method, data=b"{}"), 415)
            response = client.open(address, method=method, json={"surely unknown": 1}, headers={"If-Match": "*"})
            refused(response, 422, "invalid-request")


def test_every_error_class_is_answered_in_the_one_shape(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a handler raises."""
    for item in error_classes():
        listing = issubclass(item, (InputError, StateConflictError))
        issue = Issue("is wrong", "wrong", "load_max", 3, 2.5, "reviewers")
        error = item(issues=[issue]) if listing else item("told to the caller")

        def fail(*_: Any, error: MatchingError = error) -> None:
            raise error

        monkeypatch.setattr(handlers, "list_venues", fail)
        problem = refused(client.get("/v1/venues"), PROBLEMS[item.code].status, item.code)
        if problem["status"] in (500,):
            assert "told" not in problem["detail"]
        elif listing:
            assert problem["errors"] == [
                {
                    "pointer": "#/reviewers/3/load_max",
                    "row": 3,
                    "field": "load_max",
                    "value": 2.5,
                    "detail": "is wrong",
                    "code": "wrong",
                }
            ]
        else:
            assert problem["detail"] == "told to the caller"


@pytest.mark.parametrize(
    ("issue", "place"),
    [
        (Issue("x", "y", "weights.text", source="params"), {"pointer": "#/weights/text", "field": "weights.text"}),
        (
            Issue("x", "y", "publications[2].title", 1, None, "reviewers"),
            {"pointer": "#/reviewers/1/publications/2/title", "row": 1, "field": "publications[2].title"},
        ),
        (Issue("x", "y", "bid", 7, "z", "bids.csv"), {"line": 7, "field": "bid", "value": "z"}),
        (Issue("x", "y", "limit", source="query"), {"parameter": "limit", "field": "limit"}),
        (Issue("x", "y", "a/b~c é"), {"pointer": "#/a~1b~0c%20%C3%A9", "field": "a/b~c é"}),
        (Issue("x", "y"), {"pointer": "#"}),
    ],
)
def test_an_issue_becomes_a_place_in_the_body(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, issue: Issue, place: dict[str, Any]
) -> None:
    """JSON pointers for JSON, lines for CSV, names for parameters."""

    def fail(*_: Any) -> None:
        raise InputError(issues=[issue])

    monkeypatch.setattr(handlers, "list_venues", fail)
    problem = refused(client.get("/v1/venues"), 422)
    assert problem["errors"] == [{**place, "detail": "x", "code": "y"}]


def test_a_fault_of_ours_is_500_and_says_nothing_of_the_inside(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has its class and place, under the id the answer carries, and no words that may be personal."""

    def fail(*_: Any) -> None:
        raise ZeroDivisionError("secret inside")

    monkeypatch.setattr(handlers, "list_venues", fail)
    problem = refused(client.get("/v1/venues"), 500, "internal-error")
    assert "secret" not in str(problem)
    written = "".join(capsys.readouterr())
    assert problem["request_id"] in written and "ZeroDivisionError" in written and "secret" not in written


def test_a_busy_database_is_503_with_advice(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """B50: never 500."""

    def fail(*_: Any) -> None:
        raise service.errors.UnavailableError("the database is busy")

    monkeypatch.setattr(handlers, "list_venues", fail)
    response = client.get("/v1/venues")
    refused(response, 503, "unavailable")
    assert int(response.headers["Retry-After"]) > 0
