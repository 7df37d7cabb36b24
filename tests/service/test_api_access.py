"""Who may ask, and what every answer carries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from service.app import create_app
from service.config import Settings
from service.edge.services import EXTENSION
from service.errors import SettingsError
from tests.service.api import ok, refused, venue

OPEN = [
    "/healthz",
    "/readyz",
    "/v1/openapi.json",
    "/v1/docs",
    "/v1/docs/style.css",
    "/v1/problems",
    "/v1/problems/not-found",
]
TOKEN = "s3cret-tökén"


@pytest.fixture
def guarded(make_app: Callable[..., Flask]) -> FlaskClient:
    """A program that talks to a server with a token."""
    return make_app(token=TOKEN).test_client()


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic czNjcmV0",
        f"Token {TOKEN}",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN} x",
    ],
)
def test_without_the_token_everything_is_401(guarded: FlaskClient, header: str | None) -> None:
    """Also routes that do not exist: an outsider learns nothing."""
    headers = {} if header is None else {"Authorization": header.encode().decode("latin-1")}
    for address in ("/v1/venues", "/v1/plans/x", "/v1/nothing"):
        response = guarded.get(address, headers=headers)
        refused(response, 401, "unauthorized")
        assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_with_the_token_it_answers_whatever_name_it_is_called_by(guarded: FlaskClient) -> None:
    """Behind a proxy the Host is the public one."""
    headers = {"Authorization": f"bearer {TOKEN}".encode().decode("latin-1"), "Host": "match.example"}
    ok(guarded.get("/v1/venues", headers=headers))


@pytest.mark.parametrize("address", OPEN)
def test_health_and_description_need_no_token(guarded: FlaskClient, address: str) -> None:
    """Load balancers and readers have none."""
    assert guarded.get(address).status_code == 200


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8300", "127.0.0.1", "127.0.0.1:8300", "[::1]:8300", "127.1.2.3", "LOCALHOST."]
)
def test_without_a_token_this_machine_may_ask(client: FlaskClient, host: str) -> None:
    """By any of its loopback names."""
    ok(client.get("/v1/venues", headers={"Host": host}))


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "0.0.0.0", "x@"]
)
def test_a_foreign_host_name_is_refused(client: FlaskClient, host: str) -> None:
    """DNS rebinding: another site's name that points at 127.0.0.1."""
    refused(client.get("/v1/venues", headers={"Host": host}), 403, "forbidden")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9999", "https://localhost"])
def test_a_page_of_another_origin_is_refused(client: FlaskClient, origin: str) -> None:
    """Cross-site request forgery: the user's own browser is the sender."""
    refused(client.post("/v1/venues", json={"id": "v"}, headers={"Origin": origin}), 403, "forbidden")
    refused(client.delete("/v1/venues/v", headers={"Origin": origin}), 403, "forbidden")


def test_pages_of_the_same_origin_may_ask(client: FlaskClient) -> None:
    """Our own."""
    ok(
        client.post(
            "/v1/venues", json={"id": "v"}, headers={"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        ),
        201,
    )
    refused(client.get("/v1/venues", headers={"Sec-Fetch-Site": "cross-site"}), 403)


def test_another_machine_is_refused_without_a_token(client: FlaskClient) -> None:
    """However it found the way."""
    refused(client.get("/v1/venues", environ_overrides={"REMOTE_ADDR": "192.0.2.7"}), 403, "forbidden")
    ok(client.get("/v1/venues", environ_overrides={"REMOTE_ADDR": "::ffff:127.0.0.1"}))


def test_an_open_server_without_token_does_not_start() -> None:
    """The fault names the variable to set."""
    with pytest.raises(SettingsError, match="REVMATCH_TOKEN"):
        create_app(Settings(host="0.0.0.0"))


def test_every_answer_carries_the_headers(client: FlaskClient) -> None:
    """Successes and problems alike: nothing cached, nothing sniffed, nothing framed."""
    venue(client)
    for response in (
        client.get("/v1/venues"),
        client.get("/v1/nothing"),
        client.get("/healthz"),
        client.post("/v1/venues"),
    ):
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Frame-Options"] == "DENY"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Referrer-Policy"] == "no-referrer"


def test_the_request_id_is_kept_or_made(client: FlaskClient) -> None:
    """One id in answer, problem and log; nothing that could forge a log line."""
    response = client.get("/v1/nothing", headers={"X-Request-ID": "abc-1.2_3"})
    assert refused(response, 404)["request_id"] == "abc-1.2_3"
    for forged in ("a b", "x" * 65, 'x"}', ""):
        made = client.get("/healthz", headers={"X-Request-ID": forged}).headers["X-Request-ID"]
        assert made != forged and len(made) == 32
    assert client.get("/healthz").headers["X-Request-ID"] != client.get("/healthz").headers["X-Request-ID"]


def test_logs_name_the_route_and_nobody(client: FlaskClient, capsys: pytest.CaptureFixture[str]) -> None:
    """An id in a path may be somebody's address."""
    base = venue(client)
    ok(client.post(f"{base}/reviewers", json={"id": "ada@uni.example", "name": "Ada Quell"}), 201)
    client.get(f"{base}/reviewers/ada@uni.example")
    client.get(f"{base}/reviewers/bob@uni.example")
    written = "".join(capsys.readouterr())
    assert "ada@" not in written and "bob@" not in written and "Quell" not in written


def test_health_is_told_apart_from_readiness(app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that lives without its worker must not be killed, only left out."""
    assert ok(client.get("/healthz")) == {"status": "ok"}
    assert ok(client.get("/readyz"))["status"] == "ok"
    monkeypatch.setattr(app.extensions[EXTENSION].jobs, "alive", lambda: False)
    state = ok(client.get("/readyz"), 503)
    assert (state["status"], state["worker"], state["database"]) == ("degraded", "down", "ok")
    assert ok(client.get("/healthz")) == {"status": "ok"}


def test_head_and_options_are_sane(client: FlaskClient) -> None:
    """HEAD is GET without a body; OPTIONS lists the methods."""
    venue(client)
    head = client.head("/v1/venues")
    assert head.status_code == 200 and head.get_data() == b"" and head.mimetype == "application/json"
    options = client.options("/v1/venues")
    assert options.status_code == 200 and "POST" in options.headers["Allow"]


def test_the_root_leads_to_the_page(client: FlaskClient) -> None:
    """Somebody who opens the server in a browser finds something to read."""
    response = client.get("/")
    assert response.status_code == 302 and response.headers["Location"] == "/v1/docs"
