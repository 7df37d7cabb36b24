"""Plans outside the request: hand over, watch, cancel, give up. States live in the database alone."""

from __future__ import annotations

import atexit
import threading
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import structlog
from sqlalchemy import Connection, Row
from sqlalchemy.exc import SQLAlchemyError

from service.cluster import Cluster
from service.engine import Engine
from service.errors import NotFoundError, UnavailableError
from service.evidence import answer_questions
from service.limits import Limits
from service.process import LIVE, Process, this_process
from service.questions import Questions
from service.store import Store
from service.store.evidence import Question
from service.store.plans import OPEN, adopt_plan, all_open_plans, end_plan, find_plan, renew_leases
from service.translate import dumps
from service.worker import WORKER_DIED, run_plan

__all__ = ["DaskJobs", "InlineJobs", "Jobs"]

log = structlog.get_logger(__name__)

INTERRUPTED = {
    "code": "interrupted",
    "title": "The plan was interrupted",
    "detail": "the service stopped before the plan was done; start a new plan to try again",
    "errors": [],
}
NO_RESULT = {
    "code": "no-result",
    "title": "The run left no result",
    "detail": "the worker could not store the plan; start a new plan to try again",
    "errors": [],
}


class Jobs(Protocol):
    """Runs plans somewhere."""

    def submit(self, plan_id: str) -> None:
        """Take over a queued plan; returns at once unless said otherwise."""
        ...

    def cancel(self, plan_id: str) -> None:
        """The plan's row asks to stop; see that it does."""
        ...

    def explain(self, plan_id: str, questions: Sequence[Question]) -> None:
        """Have evidence worked out and stored, see `service.evidence`; returns at once unless said otherwise.

        Questions may be dropped where too many wait; whoever finds no answer asks again.
        """
        ...

    def alive(self) -> bool:
        """Whether plans can run."""
        ...

    def close(self) -> None:
        """Stop; plans that run here are interrupted."""
        ...


class InlineJobs:
    """Runs each plan inside `submit`, in the calling thread: for tests and for commands that wait anyway.

    Parameters
    ----------
    store : Store
    engine : Engine or None
        None for `matching.engine`.
    paused : bool
        Keep plans queued until `run_waiting`.
    """

    def __init__(self, store: Store, engine: Engine | None = None, paused: bool = False) -> None:
        self._store, self._engine, self.paused = store, engine, paused
        self._waiting: deque[str] = deque()

    def submit(self, plan_id: str) -> None:
        self._waiting.append(plan_id)
        if not self.paused:
            self.run_waiting()

    def run_waiting(self) -> None:
        """Run every plan that waits, in order."""
        while self._waiting:
            run_plan(self._waiting.popleft(), self._store.url, self._engine)

    def cancel(self, plan_id: str) -> None:
        """Nothing to do: a plan reads its own row."""

    def explain(self, plan_id: str, questions: Sequence[Question]) -> None:
        """Answers before it returns; not at all while paused."""
        if not self.paused:
            answer_questions(plan_id, questions, self._store.url, self._engine)

    def alive(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing to stop."""


class DaskJobs:
    """Runs plans on Dask workers, watched by one thread of this process.

    Several web processes may share a database. Each plan has one owner, the process that took it over, which
    renews a lease on it; a plan is given up by others only when its owner is gone for certain or its lease ran out.

    Parameters
    ----------
    store : Store
    scheduler : str or None
        See `Cluster`.
    engine : Engine or None
        None for `matching.engine`.
    time_limit : float
        Seconds of wall time after which a plan is stopped.
    grace : float
        Seconds a plan may overrun a time limit, this one or its own, or go on after it was asked to stop, before its
        worker is killed.
    starting : float
        Seconds a worker may take to load a plan and its libraries; a plan's own limit counts from the engine's first
        report, and from here where there is none.
    interval : float
        Seconds between two looks.
    lease : float
        Seconds an owner may be silent.
    stale : float
        Seconds without heartbeat after which a plan nobody owns counts as dead. The solver may hold the interpreter's
        lock, so this is long.
    folders : mapping of str to Path or int
        See `Cluster`.
    """

    def __init__(
        self,
        store: Store,
        scheduler: str | None = None,
        engine: Engine | None = None,
        time_limit: float = 3600.0,
        grace: float = 10.0,
        starting: float = 60.0,
        interval: float = 0.5,
        lease: float = 30.0,
        stale: float = 120.0,
        folders: Mapping[str, Path | int] = MappingProxyType({}),
    ) -> None:
        self._store, self._limits = store, Limits(store, time_limit, grace, starting)
        self._grace, self._interval, self._lease, self._stale = grace, interval, lease, stale
        self._cluster = Cluster(store.url, scheduler, engine, time_limit, folders)
        self._mode = "local" if scheduler is None else "cluster"
        self._token = uuid.uuid4().hex
        self.owner = str(this_process(self._mode, self._token))
        LIVE.add(self._token)
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._futures: dict[str, Any] = {}
        self._questions = Questions(time_limit + grace)
        self._suspects: dict[str, float] = {}
        self._renewed = 0.0
        self._trouble = False
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Give up what a former process left behind, and begin to watch. The worker starts with the first plan."""
        if self._thread is not None:
            return
        self._look()
        self._thread = threading.Thread(target=self._watch, name="plan-monitor", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def submit(self, plan_id: str) -> None:
        with self._lock:
            self._waiting.append(plan_id)  # before the row says so: the monitor must find it in one of the two
        until = time.time() + self._lease
        self._store.write(lambda connection: adopt_plan(connection, plan_id, None, self.owner, until))
        self.start()
        self._wake.set()

    def cancel(self, plan_id: str) -> None:
        self._wake.set()

    def explain(self, plan_id: str, questions: Sequence[Question]) -> None:
        self._questions.add(plan_id, questions)
        self.start()
        self._wake.set()

    def alive(self) -> bool:
        if self._stopped.is_set() or self._trouble:
            return False
        return not self._cluster.is_started or self._cluster.is_healthy()

    def close(self) -> None:
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._wake.set()
        LIVE.discard(self._token)
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join(timeout=30)
        self._cluster.close()

        def leave(connection: Connection) -> None:
            for row in all_open_plans(connection):
                # a plan that runs on a cluster goes on; another process, or this one restarted, will watch it
                if row.owner == self.owner and (self._mode == "local" or row.state == "queued"):
                    end_plan(connection, row.id, "interrupted", dumps(INTERRUPTED))

        try:
            self._store.write(leave)
        except (UnavailableError, SQLAlchemyError):
            log.warning("plans_left_open")  # their lease runs out

    def _watch(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait(self._interval)
            self._wake.clear()
            if self._stopped.is_set():
                return
            try:
                self._look()
                self._dispatch()
                self._trouble = False
            except (UnavailableError, SQLAlchemyError):
                log.warning("monitor_without_database")
            except Exception as error:  # the monitor must survive whatever a cluster does
                self._trouble = True
                log.warning("monitor_failed", exc_info=error)

    def _look(self) -> None:
        """One round over every open plan."""
        with self._store.read() as connection:
            rows = all_open_plans(connection)
        now = time.time()
        open_ids = {row.id for row in rows}
        if any(row.owner == self.owner for row in rows) and now - self._renewed > self._lease / 4:
            self._store.write(lambda connection: renew_leases(connection, self.owner, now + self._lease))
            self._renewed = now
        for row in rows:
            if row.owner == self.owner:
                self._look_at_own(row, now)
            else:
                self._look_at_other(row, now)
        for plan_id, future in list(self._futures.items()):
            if plan_id not in open_ids and future.done():
                del self._futures[plan_id]
        self._questions.look(self._cluster)
        self._suspects = {plan_id: since for plan_id, since in self._suspects.items() if plan_id in open_ids}
        self._limits.keep(open_ids)

    def _look_at_own(self, row: Row[Any], now: float) -> None:
        future = self._futures.get(row.id)
        if row.state == "running" and (problem := self._limits.overdue(row, now)) is not None:
            self._give_up(row, "timed_out", problem, kill=True)
        elif row.state == "running" and row.cancel_requested_at and now > row.cancel_requested_at + self._grace:
            self._give_up(row, "cancelled", None, kill=True)
        elif future is not None and future.done():
            self._judge(row, future)
        elif future is None and row.id not in self._waiting:
            if row.state == "queued":  # it never started: the connection it was handed over through is gone
                with self._lock:
                    self._waiting.append(row.id)
            elif now > (row.heartbeat_at or 0.0) + self._stale:
                self._give_up(row, "interrupted", INTERRUPTED)

    def _judge(self, row: Row[Any], future: Any) -> None:
        """The run is over: either its row has ended meanwhile, or something is wrong."""
        # an exception of the run itself was caught and stored there; what arrives here is Dask's, or a lost database
        raised = type(future.exception(timeout=1)).__name__ if future.status == "error" else ""
        died = raised == "KilledWorker" or future.status in ("cancelled", "lost")
        self._give_up(row, "failed", WORKER_DIED if died else NO_RESULT)
        self._futures.pop(row.id, None)

    def _look_at_other(self, row: Row[Any], now: float) -> None:
        owner = Process.parse(row.owner)
        certain = owner is not None and owner.is_gone()
        if not certain:
            if (row.lease_until or 0.0) > now:
                self._suspects.pop(row.id, None)
                return
            # A machine that slept wakes up with every lease run out: its owner gets a moment to renew.
            since = self._suspects.setdefault(row.id, time.monotonic())
            if time.monotonic() - since < min(self._lease / 4, 5.0):
                return
        on_cluster = owner is not None and owner.role == "cluster"
        if row.state == "running" and on_cluster and now < (row.heartbeat_at or 0.0) + self._stale:
            if self._mode == "cluster":
                until = now + self._lease
                self._store.write(lambda connection: adopt_plan(connection, row.id, row.owner, self.owner, until))
            return
        self._give_up(row, "interrupted", INTERRUPTED)

    def _give_up(self, row: Row[Any], state: str, problem: Mapping[str, Any] | None, kill: bool = False) -> None:
        text = None if problem is None else dumps(problem)
        if self._store.write(lambda connection: end_plan(connection, row.id, state, text)):
            log.warning("plan_given_up", plan=row.id, state=state)
        if kill:
            self._cluster.kill_worker(row.worker)

    def _dispatch(self) -> None:
        """Hand over as many plans as there are workers.

        The rest waits here and not at a worker: if a worker dies, Dask counts everything it holds as dead with it.
        """
        while self._waiting:
            self._cluster.start()
            if not self._has_room():
                return
            plan_id = self._waiting[0]
            if self._is_queued(plan_id):
                self._futures[plan_id] = self._cluster.submit(plan_id)
            with self._lock:
                self._waiting.popleft()

        # questions come after plans: who asks for one more reason can wait, and a plan would wait for a whole venue
        while (asked := self._questions.next_plan()) is not None:
            self._cluster.start()
            if not self._has_room():
                return
            self._questions.hand_over(self._cluster, asked)

    def _has_room(self) -> bool:
        """Whether a worker is free."""
        plans = sum(not future.done() for future in self._futures.values())
        return plans + self._questions.running < self._cluster.capacity

    def _is_queued(self, plan_id: str) -> bool:
        try:
            with self._store.read() as connection:
                return bool(find_plan(connection, plan_id).state == OPEN[0])
        except NotFoundError:
            return False
