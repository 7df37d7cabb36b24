"""Who watches a plan: runs that die, hang, or are left behind by their process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

from service import cluster, handlers
from service.config import Settings
from service.jobs import DaskJobs
from service.limits import Limits
from service.store import Store
from service.store.plans import adopt_plan, claim_plan
from service.wiring import Services, build
from tests.service.running import ended, inline, services_with, start, state, wait_for
from tests.service.stand_ins import DIE, HANG, LONG, BySeed, StandIn


def owner_of(pid: int, mode: str = "local", token: str = "gone") -> str:
    return f"{mode}/{socket.gethostname()}/{pid}/{token}"


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def abandoned(store: Store, owner: str, lease: float, running: bool) -> tuple[Services, str]:
    services = inline(store, StandIn(), paused=True)
    plan = start(services)
    store.write(lambda connection: adopt_plan(connection, plan, None, owner, time.time() + lease))
    if running:
        store.write(lambda connection: claim_plan(connection, plan, "c", "w"))
    return services, plan


@pytest.mark.parametrize("running", [False, True])
def test_b48_plans_of_a_process_that_is_gone_are_interrupted_at_start(store: Store, running: bool) -> None:
    """They neither stay "running" for ever nor start again by themselves."""
    services, plan = abandoned(store, owner_of(dead_pid()), 1000.0, running)
    jobs = DaskJobs(store)
    jobs.start()
    assert state(services, plan) == "interrupted"
    assert handlers.get_plan(services, plan)["problem"]["code"] == "interrupted"
    jobs.close()


def test_b48_a_container_restarted_with_the_same_process_number_knows_its_former_self(store: Store) -> None:
    """In a container every server is process 1."""
    services, plan = abandoned(store, owner_of(os.getpid()), 1000.0, running=True)
    jobs = DaskJobs(store)
    jobs.start()
    assert state(services, plan) == "interrupted"
    jobs.close()


def test_b48_plans_of_another_living_process_are_left_alone(store: Store) -> None:
    """Two web workers share a database; the younger must not interrupt what the older runs."""
    services, plan = abandoned(store, f"local/elsewhere/1/{'0' * 32}", 1000.0, running=True)
    jobs = DaskJobs(store, interval=0.05)
    other = DaskJobs(store, interval=0.05)
    jobs.start()
    other.start()
    mine = start(services)
    store.write(lambda connection: adopt_plan(connection, mine, None, other.owner, time.time() + 1000))
    jobs._look()
    assert (state(services, plan), state(services, mine)) == ("running", "queued")
    jobs.close()
    other.close()


def test_b48_plans_elsewhere_are_interrupted_when_their_lease_ran_out(store: Store) -> None:
    """The process may be on another machine, so its silence is all there is to judge by."""
    services, plan = abandoned(store, f"local/elsewhere/1/{'0' * 32}", -1.0, running=True)
    jobs = DaskJobs(store, interval=0.02, lease=0.2)
    jobs.start()
    wait_for(ended(services, plan))
    assert state(services, plan) == "interrupted"
    jobs.close()


def test_a_plan_that_still_runs_on_a_cluster_is_taken_over(store: Store) -> None:
    """The cluster outlives the web process that started the plan; the work is not thrown away."""
    services, plan = abandoned(store, f"cluster/{socket.gethostname()}/{dead_pid()}/x", 1000.0, running=True)
    jobs = DaskJobs(store, scheduler="tcp://127.0.0.1:9", lease=1000.0)
    jobs._look()
    assert state(services, plan) == "running"
    stale = DaskJobs(store, scheduler="tcp://127.0.0.1:9", stale=-1.0)
    store.write(lambda connection: adopt_plan(connection, plan, jobs.owner, stale.owner, time.time() + 1000))
    stale._look()
    assert state(services, plan) == "interrupted"
    jobs.close()
    stale.close()


def test_closing_interrupts_what_waits(store: Store) -> None:
    """A server that is stopped leaves no plan queued for ever."""
    jobs = DaskJobs(store, scheduler="tcp://127.0.0.1:9", interval=30.0)
    services = services_with(store, jobs)
    plan = start(services)
    jobs.close()
    assert state(services, plan) == "interrupted"


def test_an_unreachable_scheduler_is_told_by_the_health_check(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans wait; the operator sees why."""
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    jobs = DaskJobs(store, scheduler="tcp://127.0.0.1:9", interval=0.05)
    services = services_with(store, jobs)
    assert handlers.health(services)["status"] == "ok"
    plan = start(services)
    wait_for(lambda: not jobs.alive())
    assert handlers.health(services) == {"status": "degraded", "database": "ok", "worker": "down"}
    assert state(services, plan) == "queued"
    jobs.close()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A real worker process, shared by the tests below since it takes seconds to start."""
    settings = Settings(database_url="sqlite:///dask.db", data_dir=tmp_path_factory.mktemp("dask"))
    store = Store(settings.database_url, settings.data_dir)
    store.upgrade()
    jobs = DaskJobs(store, engine=BySeed(), time_limit=2.0, grace=0.5, interval=0.05)
    services = services_with(store, jobs)
    yield services
    services.close()


def test_b47_plans_run_in_another_process_one_after_the_other(dask: Services) -> None:
    """The request returns at once, and both plans end well."""
    plans = [start(dask), start(dask)]
    wait_for(ended(dask, *plans))
    assert [state(dask, plan) for plan in plans] == ["succeeded", "succeeded"]
    assert len(handlers.plan_assignments(dask, plans[1])[0]) == 2
    assert handlers.health(dask)["status"] == "ok"


def test_b47_a_running_plan_in_another_process_is_cancelled(dask: Services) -> None:
    """The stop reaches it through the database alone."""
    plan = start(dask, rng=LONG)
    wait_for(lambda: state(dask, plan) == "running")
    handlers.cancel_plan(dask, plan)
    wait_for(ended(dask, plan))
    assert state(dask, plan) == "cancelled"


def test_b48_a_worker_killed_by_signal_is_noticed_and_the_next_plan_runs(dask: Services) -> None:
    """A crash below Python leaves no exception, only a process that is gone."""
    plans = [start(dask, rng=DIE), start(dask)]
    wait_for(ended(dask, *plans))
    assert [state(dask, plan) for plan in plans] == ["failed", "succeeded"]
    assert handlers.get_plan(dask, plans[0])["problem"]["code"] == "worker-died"
    assert handlers.health(dask)["status"] == "ok"


def test_b40_a_native_call_that_never_returns_is_stopped_from_outside(dask: Services) -> None:
    """It holds the interpreter's lock, so nothing inside its process can stop it."""
    plans = [start(dask, rng=HANG), start(dask)]
    wait_for(ended(dask, *plans))
    assert [state(dask, plan) for plan in plans] == ["timed_out", "succeeded"]
    assert handlers.get_plan(dask, plans[0])["problem"]["code"] == "time-limit"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A server that allows an hour."""
    settings = Settings(database_url="sqlite:///patient.db", data_dir=tmp_path_factory.mktemp("patient"))
    store = Store(settings.database_url, settings.data_dir)
    store.upgrade()
    jobs = DaskJobs(store, engine=BySeed(), time_limit=3600.0, grace=0.3, starting=0.5, interval=0.05)
    services = services_with(store, jobs)
    yield services
    services.close()


def test_b40_a_plan_s_own_limit_is_kept_from_outside_and_the_server_answers_meanwhile(patient: Services) -> None:
    """A chair who asked for a second does not wait the hour that the server would allow."""
    plan = start(patient, rng=HANG, time_limit=1.0)
    wait_for(lambda: state(patient, plan) == "running")
    assert handlers.health(patient)["status"] == "ok"
    wait_for(ended(patient, plan))
    assert state(patient, plan) == "timed_out"
    assert "1 seconds" in handlers.get_plan(patient, plan)["problem"]["detail"]
    after = start(patient, time_limit=1.0)
    wait_for(ended(patient, after))
    assert state(patient, after) == "succeeded"


def test_b47_a_cancel_reaches_a_plan_that_hangs(patient: Services) -> None:
    """It asks nobody any more whether to stop, so its worker is killed."""
    plan = start(patient, rng=HANG)
    wait_for(lambda: state(patient, plan) == "running")
    handlers.cancel_plan(patient, plan)
    wait_for(ended(patient, plan))
    assert state(patient, plan) == "cancelled"


def row(**facts: Any) -> Any:
    return types.SimpleNamespace(**{"id": "one", "started_at": 100.0, "phase": "flow", **facts})


def test_a_plan_s_own_limit_counts_from_the_engine_s_first_report(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading libraries is no part of a run, and a plan that has been found is not lost while it is audited."""
    limits = Limits(store, time_limit=1000.0, grace=10.0, starting=60.0)
    monkeypatch.setattr(limits, "_limit_of", lambda plan_id: 5.0)
    assert limits.overdue(row(phase="loading"), 174.9) is None
    assert limits.overdue(row(phase="loading"), 175.1) is not None
    assert limits.overdue(row(), 150.0) is None  # first seen
    assert limits.overdue(row(), 164.9) is None
    assert limits.overdue(row(phase="audit"), 224.9) is None
    assert "5 seconds" in (limits.overdue(row(), 165.1) or {})["detail"]
    limits.keep(set())
    assert limits.overdue(row(), 200.0) is None
    assert "REVMATCH_PLAN_TIME_LIMIT" in (limits.overdue(row(phase="audit"), 1110.1) or {})["detail"]


def test_a_question_is_answered_in_the_worker_by_what_it_made_the_plan_with(tmp_path: Any) -> None:
    """The web process asks and reads; the pair was not among those stored with the plan."""
    services = build(Settings(database_url="sqlite:///asked.db", data_dir=tmp_path))
    services_with(services.store, services.jobs)
    plan = start(services, load_max=2, demand=1)
    wait_for(ended(services, plan))
    assert handlers.plan_explanations(services, plan, "p1")[0][0]["evidence_state"] == "given"
    (assigned,) = handlers.plan_assignments(services, plan, "p1")[0]
    other = {"r1": "r2", "r2": "r1"}[assigned["reviewer"]]

    def answer() -> Any:
        return handlers.plan_explanations(services, plan, "p1", other)[0][0]

    wait_for(lambda: bool(answer()["evidence_state"] == "given"))
    assert answer()["standing"]["reason"] in ("tie", "full", "elsewhere")
    services.close()


class Workers:
    """A cluster of one worker in words only; futures end when the test says so."""

    capacity = 1

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[str, str]]]] = []
        self.killed: list[str | None] = []
        self.over = False

    def start(self) -> None:
        pass

    def submit(self, plan_id: str) -> Any:
        raise AssertionError("no plan waits")

    def ask(self, plan_id: str, questions: list[tuple[str, str]]) -> Any:
        self.asked.append((plan_id, questions))
        return self

    def done(self) -> bool:
        return self.over

    def worker_of(self, future: Any) -> str | None:
        return "tcp://one"

    def kill_worker(self, address: str | None) -> None:
        self.killed.append(address)


def test_questions_wait_for_a_free_worker_and_are_asked_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chair who presses the button again does not make the queue longer."""
    jobs, workers = DaskJobs(store), Workers()
    monkeypatch.setattr(jobs, "start", lambda: None)
    monkeypatch.setattr(jobs, "_cluster", workers)
    for _ in range(3):
        jobs.explain("one", [("p1", "r1"), ("p1", "r1")])
        jobs._dispatch()
    jobs.explain("one", [("p2", "")])
    jobs.explain("two", [("p1", "")])
    jobs._dispatch()
    assert workers.asked == [("one", [("p1", "r1")])]
    workers.over = True
    jobs._look()
    workers.over = False
    jobs._dispatch()
    assert workers.asked[1:] == [("one", [("p2", "")])] and workers.killed == []


def test_a_question_that_never_ends_costs_its_worker_the_life(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise no plan would ever run again."""
    jobs, workers = DaskJobs(store, time_limit=0.001, grace=-1.0), Workers()
    monkeypatch.setattr(jobs, "start", lambda: None)
    monkeypatch.setattr(jobs, "_cluster", workers)
    jobs.explain("one", [("p1", "r1")])
    jobs._dispatch()
    jobs._look()
    assert workers.killed == ["tcp://one"]
    jobs.explain("one", [(f"p{at}", "") for at in range(5000)])
    jobs._dispatch()
    assert len(workers.asked[-1][1]) == 1000  # the rest is asked again by whoever still wants it


def test_build_gives_services_on_a_fresh_database(tmp_path: Any) -> None:
    """The one place where real things are chosen."""
    services = build(Settings(database_url="sqlite:///a.db", data_dir=tmp_path))
    assert handlers.health(services)["status"] == "ok"
    services.close()
    assert not services.jobs.alive()
