"""The gate for request bodies: what is no strict JSON, too long, or of another type never reaches a handler."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.service.api import ok, pointers, refused, venue

JSON = "application/json"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"{", "line 1"),
        (b'{"id": "v",}', "line 1"),
        (b"null", "object"),
        (b"[]", "object"),
        (b'"x"', "object"),
        (b"3", "object"),
        (b'{"id": "\xff"}', "UTF-8"),
        ('{"id": "v"}'.encode("utf-16"), "UTF-8"),
        (b'{"id": "v", "demand": NaN}', "finite"),
        (b'{"id": "v", "demand": -Infinity}', "finite"),
        (b'{"id": "v", "demand": 1e999}', "finite"),
        (b'{"id": "v", "id": "w"}', "twice"),
        (b'{"id": "v", "demand": ' + b"9" * 5000 + b"}", "digits"),
        (b'{"id": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "deep"),
        (b'{"id": "a\tb"}', "line 1"),
    ],
)
def test_b43_a_body_that_is_no_strict_json_object_is_400(client: FlaskClient, body: bytes, words: str) -> None:
    """B41, B43: Python's reader takes NaN, overflow and repeated names; the gate does not."""
    problem = refused(client.post("/v1/venues", data=body, content_type=JSON), 400, "invalid-json")
    assert words in problem["detail"]
    assert ok(client.get("/v1/venues"))["items"] == []


def test_b41_nan_in_json_names_the_pair(client: FlaskClient) -> None:
    """B41: the sender learns which pair carried the NaN."""
    base = venue(client)
    row = '{"submission": "p%d", "reviewer": "r%d", "score": %s}'
    body = '{"scores": [' + row % (1, 1, "1") + ", " + row % (2, 9, "NaN") + "]}"
    problem = refused(client.post(f"{base}/scores/hand", data=body, content_type=JSON), 400, "invalid-json")
    assert pointers(problem) == ["#/scores/1/score"]
    assert "p2" in problem["detail"] and "r9" in problem["detail"]


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/csv"]
)
def test_b43_a_body_of_another_type_is_415(client: FlaskClient, kind: str | None) -> None:
    """B43: a wrong content type is told, not guessed around."""
    problem = refused(client.post("/v1/venues", data=b'{"id": "v"}', content_type=kind), 415, "unsupported-media-type")
    assert "application/json" in problem["detail"]


def test_other_charsets_and_encodings_are_415(client: FlaskClient) -> None:
    """Only UTF-8, and nothing packed."""
    refused(client.post("/v1/venues", data=b"{}", content_type="application/json; charset=latin-1"), 415)
    refused(client.post("/v1/venues", data=b"{}", content_type=JSON, headers={"Content-Encoding": "gzip"}), 415)


def test_json_with_a_byte_order_mark_is_read(client: FlaskClient) -> None:
    """Some editors put one before every file."""
    ok(client.post("/v1/venues", data=b'\xef\xbb\xbf{"id": "v"}', content_type="application/json; charset=utf-8"), 201)


def test_b43_a_body_one_byte_over_the_limit_is_413(make_app: Callable[..., Flask]) -> None:
    """B43: in JSON like every other error; the limit itself is still fine."""
    client = make_app(max_body_bytes=100).test_client()
    fitting = b'{"id": "v"}'.ljust(100)
    ok(client.post("/v1/venues", data=fitting, content_type=JSON), 201)
    problem = refused(client.post("/v1/venues", data=fitting + b" ", content_type=JSON), 413, "body-too-large")
    assert "100 bytes" in problem["detail"]


def test_a_chunked_body_over_the_limit_is_413(make_app: Callable[..., Flask]) -> None:
    """A body that does not announce its length is counted as it comes."""
    client = make_app(max_body_bytes=100).test_client()
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    stream = io.BytesIO(b'{"id": "v"}'.ljust(101))
    response = client.post("/v1/venues", input_stream=stream, content_type=JSON, environ_overrides=environ)
    refused(response, 413, "body-too-large")


@pytest.mark.parametrize("text", [r"a\u0000b", r"\ud800", r"\udc00x", r"\ud83d\ud83d"])
def test_text_no_database_can_hold_is_422(client: FlaskClient, text: str) -> None:
    """NUL and halves of surrogate pairs are legal JSON and break PostgreSQL and UTF-8."""
    base = venue(client)
    body = f'{{"reviewers": [{{"id": "r1"}}, {{"id": "r2", "name": "{text}"}}]}}'
    problem = refused(client.post(f"{base}/reviewers", data=body, content_type=JSON), 422, "invalid-request")
    assert pointers(problem) == ["#/reviewers/1/name"]
    body = f'{{"id": "r1", "extra": {{"{text}": 1}}}}'
    problem = refused(client.post(f"{base}/reviewers", data=body, content_type=JSON), 422, "invalid-request")
    assert pointers(problem) == ["#/extra"]


def test_whole_surrogate_pairs_and_escaped_backslashes_are_text(client: FlaskClient) -> None:
    """The look at escapes must not refuse an emoji or a backslash."""
    base = venue(client)
    body = r'{"id": "r1", "name": "\ud83d\ude00 C:\\u0000"}'
    ok(client.post(f"{base}/reviewers", data=body, content_type=JSON), 201)
    assert ok(client.get(f"{base}/reviewers/r1"))["name"] == "\U0001f600 C:\\u0000"


def test_nul_in_a_path_or_query_finds_nothing(client: FlaskClient) -> None:
    """Addresses reach the database too."""
    base = venue(client)
    refused(client.get(f"{base}/reviewers/a%00b"), 404, "not-found")
    refused(client.get("/v1/venues?cursor=%00"), 422, "invalid-request")


def test_extra_may_be_nested_but_not_without_end(client: FlaskClient) -> None:
    """Deep values break writers as well as readers."""
    base = venue(client)
    fine: object = 1
    for _ in range(30):
        fine = {"a": fine}
    ok(client.post(f"{base}/reviewers", json={"id": "r1", "extra": {"x": fine}}), 201)
    assert ok(client.get(f"{base}/reviewers/r1"))["extra"] == {"x": fine}
    problem = refused(client.post(f"{base}/reviewers", json={"id": "r2", "extra": {"x": [[fine]]}}), 422)
    assert problem["errors"][0]["code"] == "too-deep"


def test_unknown_query_parameters_are_refused(client: FlaskClient) -> None:
    """A misspelt dry_run must not store anything."""
    problem = refused(client.post("/v1/venues?dryrun=true", json={"id": "v"}), 422, "invalid-request")
    assert pointers(problem) == ["dryrun"]
    refused(client.post("/v1/venues?dry_run=1", json={"id": "v"}), 422)
    refused(client.post("/v1/venues?dry_run=false&dry_run=true", json={"id": "v"}), 422)
    assert ok(client.get("/v1/venues"))["items"] == []


def test_long_values_are_not_repeated_back_whole(client: FlaskClient) -> None:
    """An answer must not grow with a faulty upload."""
    problem = refused(client.post("/v1/venues", json={"id": "x" * 5000, "demand": "y" * 5000}), 422)
    assert all(len(str(fault.get("value", ""))) < 200 for fault in problem["errors"])


def test_errors_are_capped_and_counted(client: FlaskClient) -> None:
    """Thousands of faults make a report, not a flood."""
    base = venue(client)
    rows = [{"id": f"r{i}", "load_max": -1} for i in range(1500)]
    problem = refused(client.post(f"{base}/reviewers", json={"reviewers": rows}), 422)
    assert len(problem["errors"]) == 1000
    assert problem["more_errors"] == 500
