"""When a running plan should have ended by itself: the server's limit and the one it was given."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any

from sqlalchemy import Row

from service.store import Store
from service.store.plans import LOADING, find_plan

__all__ = ["FINISHING", "Limits"]

FOUND = ("audit", "report")  # phases in which the engine has a plan and no solver is at work any more
FINISHING = 60.0  # seconds that a plan's own limit leaves for these phases


class Limits:
    """Says which running plans to stop from outside; the engine's own check acts only between steps.

    Parameters
    ----------
    store : Store
    time_limit : float
        Seconds of the server, counted from the start of a plan whatever it is at.
    grace : float
        Seconds beyond a limit after which a plan counts as hanging.
    starting : float
        Seconds a worker may take to load a plan and its libraries. A plan's own limit counts from the engine's first
        report, and from here where there is none.
    """

    def __init__(self, store: Store, time_limit: float, grace: float, starting: float) -> None:
        self._store, self._time_limit, self._grace, self._starting = store, time_limit, grace, starting
        self._own: dict[str, float | None] = {}  # plan -> the limit it was given
        self._reporting: dict[str, float] = {}  # plan -> when the engine was first seen at work on it

    def keep(self, open_ids: Set[str]) -> None:
        """Forget all other plans."""
        self._own = {plan_id: limit for plan_id, limit in self._own.items() if plan_id in open_ids}
        self._reporting = {plan_id: since for plan_id, since in self._reporting.items() if plan_id in open_ids}

    def overdue(self, row: Row[Any], now: float) -> dict[str, Any] | None:
        """The problem of a plan that has to be stopped, None while it may go on.

        Parameters
        ----------
        row : Row
            Of `service.store.plans.all_open_plans`, running.
        now : float
            Seconds since the epoch.
        """
        if now > row.started_at + self._time_limit + self._grace:
            return _problem(self._time_limit, "the limit of this server (REVMATCH_PLAN_TIME_LIMIT)")
        own = self._limit_of(row.id)
        if own is None:
            return None
        if row.phase in (None, LOADING):
            since = row.started_at + self._starting
        else:
            since = self._reporting.setdefault(row.id, now)
        until = since + own + self._grace + (FINISHING if row.phase in FOUND else 0.0)
        return _problem(own, "the limit it was given") if now > until else None

    def _limit_of(self, plan_id: str) -> float | None:
        if plan_id not in self._own:
            with self._store.read() as connection:
                limit = json.loads(find_plan(connection, plan_id).params).get("time_limit")
            self._own[plan_id] = None if limit is None else float(limit)
        return self._own[plan_id]


def _problem(seconds: float, whose: str) -> dict[str, Any]:
    return {
        "code": "time-limit",
        "title": "The time limit came first",
        "detail": f"the plan was stopped from outside after {seconds:g} seconds, {whose}",
        "errors": [],
    }
