"""What runs inside a worker process: one plan, from its snapshot to its rows."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from matching.errors import MatchingError
from matching.params import Params
from matching.resources import Resources
from matching.solvers.base import Progress, Status
from service import evidence, logs
from service.config import Settings, resource_settings
from service.engine import Engine, engine_or_default
from service.errors import NotFoundError, UnavailableError
from service.store import Store
from service.store.plans import claim_plan, end_plan, find_plan, report_progress, store_result
from service.store.snapshot import load_snapshot
from service.translate import dumps, plan_to_rows, problem_of, venue_from_snapshot

__all__ = ["WORKER_DIED", "Cancelled", "run_plan"]

log = structlog.get_logger(__name__)

HEARTBEAT_SECONDS = 2.0  # between signs of life while the engine is silent
REPORT_SECONDS = 0.25  # shortest time between two progress writes; one at every step would load the database

ALMOST = 0.99  # progress of a plan that is computed and not stored; 1.0 is a result one can read

PAUSES = (1.0, 5.0, 15.0)  # seconds before each further try to store a result

WORKER_DIED = {
    "code": "worker-died",
    "title": "The worker process died",
    "detail": "the worker process died before the plan was done; start a new plan to try again",
    "errors": [],
}

STATE_OF_STATUS = {
    Status.OPTIMAL: "succeeded",
    Status.FEASIBLE_AT_LIMIT: "succeeded",
    Status.LIMIT_WITHOUT_PLAN: "timed_out",
    Status.INFEASIBLE: "infeasible",
}
"""How the engine ended -> state of the plan."""


class Cancelled(Exception):
    """Raised through the engine's progress callback to stop a run."""


class _Reporter:
    """Writes progress and heartbeats of one run, and learns from the same round trip whether to stop."""

    def __init__(self, store: Store, plan_id: str, claim: str) -> None:
        self._store, self._plan_id, self._claim = store, plan_id, claim
        self._lock = threading.Lock()
        self._facts: dict[str, Any] = {}
        self._news = threading.Event()
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"heartbeat-{plan_id}", daemon=True)

    def __enter__(self) -> _Reporter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._news.set()
        self._thread.join()

    def __call__(self, report: Progress) -> None:
        """The engine's callback: notes the report, raises Cancelled when asked to stop."""
        facts = {
            "phase": report.phase,
            "progress": min(max(float(report.fraction), 0.0), ALMOST),
            "value": report.value,
            "bound": report.bound,
            "gap": report.gap,
        }
        with self._lock:
            # a report that does not know the value leaves the last one that did
            self._facts.update({name: fact for name, fact in facts.items() if fact is not None})
        # the heartbeat thread writes: an upload that holds the database must not make the engine wait
        self._news.set()
        self.raise_if_cancelled()

    def raise_if_cancelled(self) -> None:
        if self._stop.is_set():
            raise Cancelled

    def _write(self) -> None:
        with self._lock:
            facts, self._facts = self._facts, {}
        try:
            _, stop = self._store.write(
                lambda connection: report_progress(connection, self._plan_id, self._claim, facts)
            )
        except (UnavailableError, SQLAlchemyError):
            return  # one sign of life lost does no harm; the next one comes soon
        if stop:
            self._stop.set()

    def _beat(self) -> None:
        while not self._ended.is_set():
            self._news.wait(HEARTBEAT_SECONDS)
            self._news.clear()
            self._write()
            self._ended.wait(REPORT_SECONDS)


def run_plan(
    plan_id: str, database_url: str | None = None, engine: Engine | None = None, time_limit: float | None = None
) -> str:
    """Compute one plan and store it; returns the state the plan is in afterwards.

    Nothing escapes: whatever goes wrong ends the plan with a problem. Results are written in one transaction and
    only while the plan is still this run's, so a cancelled plan never turns successful.

    Parameters
    ----------
    database_url : str or None
        None reads this process's own settings: addresses with passwords then never travel through a scheduler.
    engine : Engine or None
        None for `matching.engine`.
    time_limit : float or None
        Seconds the engine may take where the plan's own parameters allow more.
    """
    logs.configure()
    store = None
    try:
        if database_url is None:
            settings = Settings.from_environment()
            store = Store(settings.database_url, settings.data_dir)
        else:
            store = Store(database_url)
        return _run(store, plan_id, engine, time_limit)
    except Exception as error:
        # Dask would log what it is handed, words and arguments included; whoever watches the plan sees it left no end
        log.error("plan_lost", plan=plan_id, exc_info=error)
        return "lost"
    finally:
        if store is not None:
            store.close()


def _run(store: Store, plan_id: str, engine: Engine | None, time_limit: float | None) -> str:
    claim = uuid.uuid4().hex
    worker = _where()
    if not store.write(lambda connection: claim_plan(connection, plan_id, claim, worker)):
        return _not_claimed(store, plan_id)
    log.info("plan_started", plan=plan_id)
    state, problem, result, snapshot = "failed", None, None, None
    reasoners: list[Any] = []
    evidence.forget()
    try:
        with _Reporter(store, plan_id, claim) as report:
            with store.read() as connection:
                row = find_plan(connection, plan_id)
                snapshot = load_snapshot(connection, row.venue_hash)
            # checked when the plan was asked for; a plan that has ended keeps its pairs
            begun = {} if row.start is None else {"start": evidence.load_plan(store, row.start)}
            report.raise_if_cancelled()
            asked = params = Params.from_mapping(json.loads(row.params))
            if time_limit is not None and (params.time_limit is None or params.time_limit > time_limit):
                params = replace(params, time_limit=time_limit)
            # of this process: what lies where is for the operator of the worker's machine to say
            resources = Resources(**resource_settings())
            plan = engine_or_default(engine).recommend(
                venue_from_snapshot(snapshot), params, progress=report, resources=resources, explain=reasoners.append,
                **begun,
            )  # fmt: skip
            report.raise_if_cancelled()
        # what was asked for, as the plan's own row has it; the server's limit stands beside it
        origin = {**plan.provenance, "params": asked.to_dict(), "server_time_limit": time_limit}
        if row.start is not None:
            origin["start"] = {**origin.get("start", {}), "plan": row.start}
        state, result = STATE_OF_STATUS[plan.status], plan_to_rows(replace(plan, provenance=origin))
        if state == "timed_out":
            problem = _limit_problem(params.time_limit)
        elif state == "infeasible":
            hard = [entry["rule"] for entry in plan.rule_shortfalls if entry.get("cost") is None]
            problem = _infeasible_problem(plan.unfilled, hard)
    except Cancelled:
        state = "cancelled"
    except MatchingError as error:
        problem = problem_of(error, snapshot)
        log.info("plan_refused", plan=plan_id, code=error.code)
    except Exception as error:  # whatever the engine does, the plan must end
        problem = problem_of(error)
        log.exception("plan_crashed", plan=plan_id)

    def finish(connection: Connection) -> str:
        text = None if problem is None else dumps(problem)
        if result is None:
            return state if end_plan(connection, plan_id, state, text, claim=claim, before=("running",)) else ""
        columns, assignment_rows, alternate_rows, documents = result
        columns = {**columns, "phase": "done", "progress": 1.0}
        # whoever asked for a stop is never told "succeeded" afterwards, even if the plan was as good as done
        if end_plan(
            connection, plan_id, state, text, claim=claim, before=("running",), columns=columns, unless_cancelled=True
        ):
            store_result(connection, row.key, assignment_rows, alternate_rows, documents)
            return state
        return "cancelled" if end_plan(connection, plan_id, "cancelled", claim=claim, before=("running",)) else ""

    ended = _insist(lambda: store.write(finish))
    if ended:
        log.info("plan_ended", plan=plan_id, state=ended)
        if result is not None and ended == state and reasoners:
            # after the plan has ended: nobody waits for it longer because of this
            evidence.keep(store, plan_id, reasoners[0])
            if state != "timed_out" and len(result[1]) <= evidence.MOST_PAIRS:
                evidence.tell_all(store, plan_id, row.key, reasoners[0])
        return ended
    return _state_of(store, plan_id)


def _where() -> str:
    """Dask's address of this worker, by which it can be restarted; host and process outside of Dask."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        try:
            return str(get_worker().address)
        except ValueError:
            pass
    return f"{socket.gethostname()}:{os.getpid()}"


def _insist(write: Callable[[], str]) -> str:
    """Try to store a result several times: it may have taken an hour to compute."""
    for pause in PAUSES:
        try:
            return write()
        except UnavailableError:
            log.warning("result_delayed", pause=pause)
            time.sleep(pause)
    return write()


def _not_claimed(store: Store, plan_id: str) -> str:
    """A plan that was cancelled while it waited; or one whose worker died, which a scheduler hands out again."""
    if _state_of(store, plan_id) == "running":
        store.write(lambda connection: end_plan(connection, plan_id, "failed", dumps(WORKER_DIED), before=("running",)))
        log.warning("plan_handed_out_twice", plan=plan_id)
    return _state_of(store, plan_id)


def _state_of(store: Store, plan_id: str) -> str:
    try:
        with store.read() as connection:
            return str(find_plan(connection, plan_id).state)
    except NotFoundError:
        return "gone"


def _limit_problem(time_limit: float | None) -> dict[str, Any]:
    return {
        "code": "time-limit",
        "title": "The time limit came first",
        "detail": f"no plan was found within the time limit of {time_limit:g} seconds"
        if time_limit is not None
        else "no plan was found within the time limit",
        "errors": [],
    }


def _infeasible_problem(unfilled: Any, rules: list[str]) -> dict[str, Any]:
    missing = sum(unfilled.values())
    full = f"{missing} reviews on {len(unfilled)} submissions cannot be filled"
    bounds = f"rules ({', '.join(dict.fromkeys(rules))})" if rules else "bounds on loads"
    why = full if missing else f"the {bounds} cannot all be kept"
    return {
        "code": "infeasible",
        "title": "No full plan exists",
        "detail": f"{why}; the fullest plan is kept and the diagnosis says why",
        "errors": [],
    }
