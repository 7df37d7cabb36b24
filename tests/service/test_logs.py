"""Logs are kept longer and read by more people than profiles are: what goes wrong is told without what was read."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from service import handlers, logs
from service.errors import SettingsError
from service.store import Store
from tests.service.api import refused
from tests.service.running import inline, start, state
from tests.service.stand_ins import StandIn

SECRETS = ("zora@x.example", "Zora Quill", "A secret title")


def fail_over_a_profile(*_: Any, **__: Any) -> Any:
    """Like code that stumbles with a profile in its hands: in its variables and in its words."""
    profile = {"name": "Zora Quill", "emails": ["zora@x.example"], "title": "A secret title"}
    try:
        profile["A secret title"]
    except KeyError as error:
        raise RuntimeError(f"cannot use {profile}") from error


def lines(written: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.splitlines()]


def test_a_server_error_logs_class_and_frames_and_nothing_it_held(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither the variables of the frames nor the words of the error."""
    monkeypatch.setattr(handlers, "list_venues", fail_over_a_profile)
    problem = refused(client.get("/v1/venues"), 500, "internal-error")
    written = "".join(capfd.readouterr())
    assert not any(secret in written for secret in SECRETS)
    event = next(line for line in lines(written) if line["event"] == "request_failed")
    assert event["request_id"] == problem["request_id"] and event["timestamp"] and event["level"] == "error"
    assert [error["class"] for error in event["errors"]] == ["builtins.RuntimeError", "builtins.KeyError"]
    assert "fail_over_a_profile" in event["errors"][0]["frames"][-1]


def test_a_plan_that_crashes_in_its_worker_logs_nothing_of_the_venue(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    """The engine holds every profile of a venue when it fails."""
    engine = StandIn()
    engine.recommend = fail_over_a_profile  # type: ignore[method-assign]
    services = inline(store, engine)
    plan = start(services)
    assert state(services, plan) == "failed"
    written = "".join(capfd.readouterr())
    assert not any(secret in written for secret in SECRETS)
    assert any(line["event"] == "plan_crashed" and line["plan"] == plan for line in lines(written))


@pytest.mark.parametrize("name", ["waitress", "distributed.worker", "anything"])
def test_records_of_libraries_lose_their_words_with_an_exception(name: str) -> None:
    """Servers log the path, Dask the arguments and the error; ids of people stand in both."""
    formatter = logs.PlainFormatter()
    try:
        fail_over_a_profile()
    except RuntimeError:
        given = sys.exc_info()
    record = logging.LogRecord(name, logging.ERROR, "x.py", 1, "serving /v1/zora@x.example %s", ("Zora Quill",), given)
    written = formatter.format(record)
    assert not any(secret in written for secret in SECRETS)
    assert json.loads(written)["errors"][0]["class"] == "builtins.RuntimeError"
    record = logging.LogRecord(name, logging.ERROR, "x.py", 1, "Exception: zora@x.example", (), None)
    assert not any(secret in formatter.format(record) for secret in SECRETS)


def test_faulty_settings_are_spelled_out() -> None:
    """They are read by whoever starts the process, and speak of nobody else."""
    try:
        raise SettingsError("REVMATCH_PORT must be a number")
    except SettingsError:
        given = sys.exc_info()
    assert "REVMATCH_PORT" in logs.PlainFormatter().format(logging.LogRecord("x", 40, "x.py", 1, "x", (), given))


def test_errors_of_the_database_do_not_repeat_the_values(store: Store) -> None:
    """SQLAlchemy's messages hold the statement's values unless told otherwise."""
    with store.read() as connection, pytest.raises(SQLAlchemyError) as caught:
        connection.execute(text("SELECT nothing FROM nowhere WHERE x = :name"), {"name": "Zora Quill"})
    assert "Zora" not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        "import service.app, service.config; service.app.create_app(service.config.Settings(database_url=URL))",
        "from service.worker import run_plan; run_plan('x', URL)",
    ],
)
def test_every_process_sets_its_log_up_by_itself(tmp_path: Path, call: str) -> None:
    """gunicorn calls create_app and Dask calls run_plan; neither goes through `revmatch serve`."""
    code = f"URL = 'sqlite:///{tmp_path}/a.db'; {call}; import logging; logging.getLogger('x').error('a@x.example')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2]
    )
    assert done.returncode == 0, done.stderr
    assert lines(done.stderr) and "a@x.example" not in done.stderr
