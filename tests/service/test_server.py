"""The server of `revmatch serve` on a real socket: what it refuses by itself, and how many may wait."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waitress import wasyncore

from service import server
from service.app import create_app
from service.config import Settings
from service.jobs import InlineJobs
from service.resources.plans import MOST_WAITING
from service.store import Store
from service.wiring import Services
from tests.service.running import services_with, wait_for
from tests.service.stand_ins import StandIn

LIMIT = 2000  # bytes
PATIENCE = 30  # seconds; only keeps a broken build from hanging


class Served:
    """An application behind waitress, its address, and the jobs behind it."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(database_url="sqlite:///a.db", data_dir=folder, max_body_bytes=LIMIT)
        store = Store(settings.database_url, settings.data_dir)
        store.upgrade()
        self.jobs = InlineJobs(store, StandIn(), paused=True)
        services_with(store, self.jobs)
        self.services = Services(settings, store, self.jobs, StandIn())
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        self._server = server.make_server(create_app(services=self.services), listener, settings)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        # inside its loop: sockets closed under a loop that waits for them are errors there
        self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._server._map))
        self._thread.join(PATIENCE)
        self._server.task_dispatcher.shutdown()
        self.services.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, json.loads(answer.read())
        connection.close()
        return found

    def send(self, data: bytes) -> tuple[int, dict[str, str], Any]:
        """The same for bytes as they are."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as raw:
            raw.sendall(data)
            received = b""
            with contextlib.suppress(ConnectionResetError):  # it hangs up on what it did not read, after its answer
                while part := raw.recv(1 << 16):
                    received += part
        head, _, body = received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        return int(status.split()[1]), headers, json.loads(body)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.close()


def is_problem(found: tuple[int, dict[str, str], Any], status: int, code: str) -> None:
    assert found[0] == status
    assert found[1]["content-type"] == "application/problem+json"
    assert found[2]["code"] == code and found[2]["status"] == status and found[2]["type"].endswith(code)
    assert found[2]["request_id"] == found[1]["x-request-id"]
    assert {"title", "detail", "instance", "errors"} <= found[2].keys() and found[2]["detail"]


HEAD = b"POST /v1/venues HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("length", [LIMIT + 1, LIMIT + 2, 3 * LIMIT, 1 << 30])
def test_a_body_over_the_limit_is_a_problem_document(served: Served, length: int) -> None:
    """The server's own limit lies far above, and what it refuses by itself has the same shape."""
    body = b'{"id":"x"}'.ljust(min(length, 3 * LIMIT))
    is_problem(served.send(HEAD + b"Content-Length: %d\r\n\r\n" % length + body), 413, "body-too-large")


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_body_in_chunks_is_measured_without_its_framing(served: Served, size: int) -> None:
    """In chunks of one byte the wire carries six times the body."""
    head = HEAD.replace(b"/v1/venues", b"/v1/venues?dry_run=true") + b"Transfer-Encoding: chunked\r\n\r\n"
    body = b'{"id":"x"}'.ljust(LIMIT)
    assert served.send(head + chunked(body, size))[0] == 201
    is_problem(served.send(head + chunked(body + b" ", size)), 413, "body-too-large")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (HEAD + b"Content-Length: abc\r\n\r\n{}", 400),
        (HEAD + b"Content-Length: -1\r\n\r\n{}", 400),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400),
        (HEAD + b"Transfer-Encoding: gzip\r\n\r\n{}", 501),
        (b"\x16\x03\x01 hello\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 262_200 + b"\r\n\r\n", 431),
    ],
)
def test_what_the_server_refuses_by_itself_is_a_problem_document(served: Served, data: bytes, status: int) -> None:
    """No application ever sees these."""
    is_problem(served.send(data), status, "bad-request")


def test_an_error_beyond_the_application_is_a_problem_document(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the last handler failed."""

    def fail(*_: Any) -> None:
        raise RuntimeError("zora@x.example")

    monkeypatch.setattr(served._server, "application", fail)
    found = served.ask("GET", "/healthz")
    is_problem(found, 500, "internal-error")
    assert "zora" not in str(found)


def test_few_requests_may_wait_and_the_others_are_answered_at_once(served: Served) -> None:
    """Thirty clients that wait for plans must not take the threads of everybody else."""
    answers: list[tuple[int, dict[str, str], Any]] = []

    def wait() -> None:
        answers.append(served.ask("POST", "/v1/venues/v/plans", b"{}", Prefer="wait=30"))

    threads = [threading.Thread(target=wait) for _ in range(30)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(answers) == 30 - MOST_WAITING)
    assert served.ask("GET", "/healthz")[0] == 200
    assert len(answers) == 30 - MOST_WAITING  # those who may wait still do
    assert {(answer[0], answer[2]["state"], "preference-applied" in answer[1]) for answer in answers} == {
        (202, "queued", False)
    }
    served.jobs.run_waiting()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(answer[0] for answer in answers) == [201] * MOST_WAITING + [202] * (30 - MOST_WAITING)
