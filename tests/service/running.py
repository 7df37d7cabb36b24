"""Helpers for tests that run plans."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from service import handlers
from service.config import Settings
from service.jobs import InlineJobs, Jobs
from service.store import Store
from service.wiring import Services


def services_with(store: Store, jobs: Jobs) -> Services:
    """A venue with two reviewers and two submissions behind the given jobs."""
    services = Services(Settings(), store, jobs)
    handlers.create_venue(services, {"id": "v"})
    handlers.add_reviewers(
        services, "v", [{"id": "r1", "name": "Zora Quill", "emails": ["zora@x.example"]}, {"id": "r2"}]
    )
    handlers.add_submissions(services, "v", [{"id": "p1"}, {"id": "p2"}])
    return services


def inline(store: Store, engine: Any, paused: bool = False) -> Services:
    return services_with(store, InlineJobs(store, engine, paused))


def start(services: Services, **params: Any) -> str:
    return str(handlers.create_plan(services, "v", params)["id"])


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """The limit only keeps a broken build from hanging."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "this never came true"
        time.sleep(0.05)


def state(services: Services, plan: str) -> str:
    return str(handlers.get_plan(services, plan)["state"])


def ended(services: Services, *plans: str) -> Callable[[], bool]:
    return lambda: all(state(services, plan) not in ("queued", "running") for plan in plans)
