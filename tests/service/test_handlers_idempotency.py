"""One answer for one Idempotency-Key, also when a process dies in the middle."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from typing import Any

import pytest
from sqlalchemy import insert

from service import handlers
from service.errors import IdempotencyError, NotFoundError, StateConflictError
from service.process import Process, this_process
from service.store import Store
from service.store.tables import idempotency
from service.wiring import Services
from tests.service.running import inline
from tests.service.stand_ins import StandIn


@pytest.fixture
def services(store: Store) -> Services:
    """A venue `v` that can be planned."""
    return inline(store, StandIn())


def never(*_: Any) -> dict[str, Any]:
    raise AssertionError("nothing is to be done")


def answer(claim: Any) -> dict[str, Any]:
    return {"n": 1}


def test_one_key_gives_one_answer(services: Services) -> None:
    """A client that lost the answer asks again without starting a second plan."""
    assert handlers.once(services, "k", "a", answer, never) == ({"n": 1}, False)
    assert handlers.once(services, "k", "a", never, never) == ({"n": 1}, True)
    with pytest.raises(IdempotencyError):
        handlers.once(services, "k", "b", never, never)
    assert handlers.once(services, None, "a", answer, never) == ({"n": 1}, False)


def test_a_key_is_free_again_after_an_error_and_taken_while_the_first_request_runs(services: Services) -> None:
    """A refused upload may be mended and sent again with the same key."""

    def fail(claim: Any) -> dict[str, Any]:
        with pytest.raises(StateConflictError):
            handlers.once(services, "k", "a", never, never)
        raise NotFoundError("x")

    with pytest.raises(NotFoundError):
        handlers.once(services, "k", "a", fail, never)
    assert handlers.once(services, "k", "a", answer, never) == ({"n": 1}, False)


def crashed(services: Services, owner: str) -> None:
    """What a process leaves that dies while it holds a key."""
    row = {"key": "k", "fingerprint": "a", "created_at": time.time(), "owner": owner}
    services.store.write(lambda connection: connection.execute(insert(idempotency).values(**row)))


def test_a_key_held_by_a_process_that_is_gone_is_free_at_once(services: Services) -> None:
    """Nobody waits ten minutes for an answer that will never come; a process nobody took note of is gone as well."""
    zombie = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert zombie.stdout is not None and zombie.stdout.read() == b""  # it has ended, and is not waited for
    until = time.monotonic() + 30
    while not (gone := Process("web", socket.gethostname(), zombie.pid, "x").is_gone()) and time.monotonic() < until:
        time.sleep(0.01)
    assert gone or not sys.platform.startswith("linux")
    zombie.wait()
    zombie.stdout.close()
    crashed(services, f"web/{socket.gethostname()}/{zombie.pid}/x/y")
    assert handlers.once(services, "k", "a", answer, never) == ({"n": 1}, False)


@pytest.mark.parametrize(
    "owner", ["web/elsewhere/1/x/y", f"{this_process('web')}/y", ""], ids=["elsewhere", "here", "unnamed"]
)
def test_a_key_held_elsewhere_or_here_is_kept_for_a_while(services: Services, owner: str) -> None:
    """A process on another machine cannot be asked whether it lives."""
    crashed(services, owner)
    with pytest.raises(StateConflictError):
        handlers.once(services, "k", "a", never, never)


def test_a_plan_made_before_a_crash_is_what_its_key_means(services: Services) -> None:
    """The key and the plan are stored in one transaction, so there is never a second plan."""
    plans: list[str] = []

    def crash(claim: Any) -> dict[str, Any]:
        plans.append(handlers.create_plan(services, "v", {}, claim=claim)["id"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        handlers.once(services, "k", "a", crash, never)
    assert handlers.once(services, "k", "a", never, lambda plan: {"plan": plan}) == ({"plan": plans[0]}, True)
    assert len(handlers.list_plans(services, "v")[0]) == 1


def test_a_request_that_lost_its_key_makes_no_plan(services: Services) -> None:
    """It was given up for dead, and another one does its work."""
    with pytest.raises(StateConflictError, match="took over"):
        handlers.create_plan(services, "v", {}, claim=handlers.Claim("k", "web/x/1/y/z"))
    assert handlers.list_plans(services, "v")[0] == []
