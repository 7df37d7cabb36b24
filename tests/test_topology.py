"""The processes of docker-compose.yml, started here without containers: scheduler, worker and API find each other.

The commands, the environment and the health checks are the file's own; only names and places that exist in
containers alone are replaced.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from matching.formats.fixtures import fixture_path
from tests.container_files import ROOT, compose

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="gunicorn runs on Unix only, as the containers do"),
]

TOKEN = "kept-in-a-file-0123456789"
START_SECONDS = 120  # on a machine that is busy with other tests
PLAN_A = {
    ("p1", "r3"),
    ("p1", "r4"),
    ("p2", "r1"),
    ("p2", "r4"),
    ("p3", "r1"),
    ("p3", "r2"),
    ("p4", "r2"),
    ("p4", "r3"),
}
"""The best plan of fixtures/tiny by its hand-made scores; its README derives it on paper."""


class Process:
    """One service of the file, as a process of this machine."""

    def __init__(self, name: str, folder: Path, here: Callable[[str], str], environment: dict[str, str]) -> None:
        self.name, self.folder, self._environment = name, folder, environment
        self._log = folder / f"{name}.log"
        service = compose()["services"][name]
        program, *arguments = service["command"]
        self._check = [sys.executable, *(here(word) for word in service["healthcheck"]["test"][2:])]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [Path(sysconfig.get_path("scripts")) / program, *(here(word) for word in arguments)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def said(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_until_healthy(self) -> None:
        """Ask as compose asks."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            assert self._process.poll() is None, f"{self.name} ended: {self.said()}"
            check = subprocess.run(self._check, env=self._environment, cwd=self.folder, capture_output=True, timeout=60)
            if check.returncode == 0:
                return
            time.sleep(0.2)
        pytest.fail(f"{self.name} did not become healthy: {self.said()}")

    def stop(self) -> bool:
        """End it as compose does, and whether asking was enough."""
        self._process.terminate()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=30)
            return False
        return True


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on, held together while they are chosen so that no two are the same."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of an empty database: PostgreSQL where one is named, with the password by file; else SQLite."""
    url = os.environ.get("REVMATCH_TEST_POSTGRES_URL")
    if not url:
        yield {"REVMATCH_DATABASE_URL": f"sqlite:///{tmp_path / 'topology.db'}"}
        return
    psycopg = pytest.importorskip("psycopg")
    parts = urllib.parse.urlsplit(url.replace("+psycopg", ""))
    name = f"revmatch_topology_{uuid.uuid4().hex}"
    address = parts.netloc
    settings = {}
    if parts.password:
        (tmp_path / "db_password").write_text(f"{urllib.parse.unquote(parts.password)}\n", encoding="utf-8")
        settings["REVMATCH_DATABASE_PASSWORD_FILE"] = str(tmp_path / "db_password")
        address = f"{parts.username}@{parts.netloc.rpartition('@')[2]}"
    with psycopg.connect(parts.geturl(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield {"REVMATCH_DATABASE_URL": parts._replace(netloc=address, path=f"/{name}").geturl(), **settings}
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def processes(tmp_path: Path, database: dict[str, str]) -> Iterator[tuple[str, dict[str, Process]]]:
    """Address of the API, and the processes behind it, healthy."""
    (tmp_path / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    (tmp_path / "scratch").mkdir()
    ports = dict(zip(("8786", "8787", "8788", "8300"), free_ports(4), strict=True))

    def here(word: str) -> str:
        word = word.replace("//scheduler:", "//127.0.0.1:").replace("0.0.0.0", "127.0.0.1")
        word = word.replace("/var/lib/revmatch", str(tmp_path / "scratch")).replace("/run/secrets", str(tmp_path))
        for inside, outside in ports.items():
            word = word.replace(inside, str(outside))
        return word

    def environment(name: str) -> dict[str, str]:
        said = compose()["services"][name].get("environment", {})
        given = {key: str(value) if key == "REVMATCH_HOST" else here(str(value)) for key, value in said.items()}
        if "REVMATCH_DATABASE_URL" in given:
            del given["REVMATCH_DATABASE_URL"], given["REVMATCH_DATABASE_PASSWORD_FILE"]
            given.update(database)
        clean = {key: os.environ[key] for key in ("PATH", "LANG", "SYSTEMROOT") if key in os.environ}
        return {**clean, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **given}

    running: dict[str, Process] = {}
    try:
        running["scheduler"] = Process("scheduler", tmp_path, here, environment("scheduler"))
        running["scheduler"].wait_until_healthy()
        for name in ("worker", "api"):
            running[name] = Process(name, tmp_path, here, environment(name))
        for name in ("worker", "api"):
            running[name].wait_until_healthy()
        yield f"http://127.0.0.1:{ports['8300']}", running
    finally:
        for name in ("api", "worker", "scheduler"):
            if name in running:
                running[name].stop()


def ask(url: str, body: object = None, token: str | None = TOKEN, **headers: str) -> tuple[int, Any]:
    """Status and JSON of one request; a body makes it a POST."""
    request = urllib.request.Request(url, headers={"Content-Type": "application/json", **headers})
    if body is not None:
        request.data = json.dumps(body).encode()
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def upload_tiny(venue: str) -> None:
    """fixtures/tiny as a submission system would send it."""
    folder = fixture_path("tiny")

    def lines(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines() if line.strip()]

    reviewers = {reviewer["id"]: {**reviewer, "publications": []} for reviewer in lines("reviewers.jsonl")}
    for publication in lines("publications.jsonl"):
        reviewers[publication.pop("reviewer")]["publications"].append(publication)
    header, *rows = (folder / "scores" / "hand.csv").read_text(encoding="utf-8").split()
    assert header == "paper,reviewer,score"
    scores = [dict(zip(("submission", "reviewer"), row.split(",")), score=float(row.split(",")[2])) for row in rows]
    for part, body, status in (
        ("reviewers", {"reviewers": list(reviewers.values())}, 201),
        ("submissions", {"submissions": lines("papers.jsonl")}, 201),
        ("conflicts", {"conflicts": [{"submission": "p4", "reviewer": "r1", "rule": "declared"}]}, 200),
        ("scores/hand", {"scores": scores}, 200),
    ):
        assert ask(f"{venue}/{part}", body)[0] == status


def test_the_services_of_the_compose_file_make_a_plan_together(processes: tuple[str, dict[str, Process]]) -> None:
    """Profiles go in over HTTP with the token, a worker elsewhere computes, and the plan is the one found on paper."""
    api, running = processes
    for token in (None, "wrong"):
        status, problem = ask(f"{api}/v1/venues", token=token)
        assert (status, problem["status"]) == (401, 401)
        assert ask(f"{api}/v1/venues", {"id": "tiny"}, token=token)[0] == 401
    assert ask(f"{api}/healthz", token=None)[0] == 200

    assert ask(f"{api}/v1/venues", {"id": "tiny", "demand": 2, "load_max": 2})[0] == 201
    upload_tiny(f"{api}/v1/venues/tiny")
    weights = {"hand": 1.0, "text": 0.0, "areas": 0.0, "bids": 0.0}
    status, plan = ask(f"{api}/v1/venues/tiny/plans", {"weights": weights}, Prefer="wait=30")
    until = time.monotonic() + START_SECONDS
    while plan["state"] in ("queued", "running") and time.monotonic() < until:
        time.sleep(0.2)
        status, plan = ask(f"{api}/v1/plans/{plan['id']}")
    logs = "\n".join(process.said() for process in running.values())
    assert plan["state"] == "succeeded", f"{plan}\n{logs}"
    assert plan["value"] == pytest.approx(4.2, abs=1e-9)
    assert plan["gap"] == pytest.approx(0.0, abs=1e-9)
    pairs = ask(f"{api}/v1/plans/{plan['id']}/assignments")[1]["items"]
    assert {(pair["submission"], pair["reviewer"]) for pair in pairs} == PLAN_A
    assert ask(f"{api}/v1/plans/{plan['id']}/assignments", token=None)[0] == 401
    assert ask(f"{api}/readyz", token=None) == (200, {"status": "ok", "database": "ok", "worker": "ok"})

    assert TOKEN not in logs
    assert {name: running[name].stop() for name in ("api", "worker", "scheduler")} == dict.fromkeys(running, True)


def test_the_api_refuses_to_start_without_a_token(tmp_path: Path) -> None:
    """Beyond loopback nobody may be let in unasked, and a database must not even be made."""
    service = compose()["services"]["api"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "REVMATCH_HOST": service["environment"]["REVMATCH_HOST"],
        "REVMATCH_DATABASE_URL": f"sqlite:///{tmp_path / 'none.db'}",
    }
    program, *arguments = service["command"]
    done = subprocess.run(
        [
            Path(sysconfig.get_path("scripts")) / program,
            *(word.replace("0.0.0.0:8300", f"127.0.0.1:{free_ports(1)[0]}") for word in arguments),
        ],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
    )
    assert done.returncode != 0
    assert "REVMATCH_TOKEN" in done.stderr
    assert not (tmp_path / "none.db").exists()
