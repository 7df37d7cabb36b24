"""Questions about pairs of plans, from the request that asks to the worker that answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import structlog

from service.cluster import Cluster
from service.store.evidence import Question

__all__ = ["MOST_ASKED", "Questions"]

log = structlog.get_logger(__name__)

MOST_ASKED = 1_000  # questions of a process that wait for a worker


class Questions:
    """What waits and what is under way. Requests add from any thread; one monitor thread does the rest.

    Parameters
    ----------
    time_limit : float
        Seconds after which a worker that has not answered is killed.
    """

    def __init__(self, time_limit: float) -> None:
        self._time_limit = time_limit
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Question]] = {}
        self._under_way: dict[str, tuple[Any, float, frozenset[Question]]] = {}  # plan -> future, since when, of what

    @property
    def running(self) -> int:
        """Workers that are at questions."""
        return sum(not future.done() for future, _, _ in self._under_way.values())

    def add(self, plan_id: str, questions: Sequence[Question]) -> None:
        """Take in those that are neither waiting nor under way, as far as there is room."""
        with self._lock:
            waiting = self._waiting.get(plan_id, [])
            _, _, under_way = self._under_way.get(plan_id, (None, 0.0, frozenset()))
            new = [key for key in dict.fromkeys(questions) if key not in waiting and key not in under_way]
            new = new[: max(0, MOST_ASKED - sum(map(len, self._waiting.values())))]
            if new:
                self._waiting[plan_id] = waiting + new

    def next_plan(self) -> str | None:
        """A plan about which something is asked and nobody is at it."""
        with self._lock:
            return next((plan_id for plan_id in self._waiting if plan_id not in self._under_way), None)

    def hand_over(self, cluster: Cluster, plan_id: str) -> None:
        """Give a worker everything that is asked about a plan."""
        with self._lock:
            questions = self._waiting.pop(plan_id)
            future = cluster.ask(plan_id, questions)
            self._under_way[plan_id] = (future, time.monotonic(), frozenset(questions))

    def look(self, cluster: Cluster) -> None:
        """Let go of what is answered, and of a worker that never comes back from a question."""
        for plan_id, (future, since, _) in list(self._under_way.items()):
            late = not future.done() and time.monotonic() > since + self._time_limit
            if late:
                log.warning("evidence_given_up", plan=plan_id)
                cluster.kill_worker(cluster.worker_of(future))
            if future.done() or late:
                with self._lock:
                    del self._under_way[plan_id]
