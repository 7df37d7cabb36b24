"""Plans from queued to their end: what a run writes, and what happens when it is stopped, dies or is forgotten."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from matching.errors import InvalidVenueError, Issue
from matching.solvers.base import Status
from service import cluster, handlers, worker
from service.config import Settings
from service.errors import StateConflictError
from service.jobs import DaskJobs, InlineJobs, Jobs
from service.store import Store
from service.store.plans import adopt_plan, claim_plan
from service.wiring import Services, build
from tests.service.stand_ins import ByName, Calling, StandIn


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


def test_a_plan_comes_back_whole(store: Store) -> None:
    """Everything the engine found can be read afterwards."""
    services = inline(store, StandIn())
    plan = handlers.create_plan(services, "v", {"rng": 7})
    assert (plan["state"], plan["params"]["rng"]) == ("queued", 7)
    done = handlers.get_plan(services, plan["id"])
    assert (done["state"], done["status"], done["progress"]) == ("succeeded", "optimal", 1.0)
    assert (done["value"], done["bound"], done["gap"], done["problem"]) == (1.0, 1.0, 0.0, None)
    assert done["summary"] == {"reviews_assigned": 2, "assignments": 2, "unfilled": 0}
    assert done["versions"] == {"numpy": "2"}
    assert done["started_at"] <= done["heartbeat_at"] <= done["ended_at"]
    assert done["etag"] != plan["etag"]


@pytest.mark.parametrize(
    ("status", "expected", "code"),
    [
        (Status.OPTIMAL, "succeeded", None),
        (Status.FEASIBLE_AT_LIMIT, "succeeded", None),
        (Status.LIMIT_WITHOUT_PLAN, "timed_out", "time-limit"),
        (Status.INFEASIBLE, "infeasible", "infeasible"),
    ],
)
def test_b40_each_way_a_solve_ends_is_a_state_of_its_own(
    store: Store, status: Status, expected: str, code: str | None
) -> None:
    """A time limit is not "infeasible", and neither is an error."""
    services = inline(store, StandIn(status))
    plan = handlers.get_plan(services, start(services))
    assert (plan["state"], plan["status"]) == (expected, status.value)
    assert (plan["problem"] or {}).get("code") == code


def test_b19_an_infeasible_plan_keeps_its_fullest_plan_and_its_diagnosis(store: Store) -> None:
    """The chair needs both to decide what to change."""
    services = inline(store, StandIn(Status.INFEASIBLE))
    plan = start(services)
    assert len(handlers.plan_assignments(services, plan)[0]) == 2
    assert handlers.plan_diagnosis(services, plan)["diagnosis"] == {"shortfall": 1}
    assert handlers.plan_diagnosis(services, plan)["unfilled"] == {"p1": 1}


def test_faulty_input_found_by_the_engine_fails_the_plan_and_names_the_records(store: Store) -> None:
    """Rows inside a snapshot mean nothing outside, so the entries say which record they speak of."""
    issue = Issue("load_min 3 is above load_max 2", "contradiction", "load_min", 1, 3, "reviewers")
    services = inline(store, StandIn(error=InvalidVenueError(issues=[issue])))
    plan = handlers.get_plan(services, start(services))
    assert (plan["state"], plan["problem"]["code"]) == ("failed", "invalid-venue")
    assert plan["problem"]["errors"][0]["reviewers"] == ["r2"]
    with pytest.raises(StateConflictError):
        handlers.plan_assignments(services, plan["id"])


def test_a_crash_of_the_engine_fails_the_plan_without_telling_what_it_read(store: Store) -> None:
    """The text of a foreign error may hold names; the plan still ends."""
    services = inline(store, StandIn(error=RuntimeError("Zora Quill")))
    plan = handlers.get_plan(services, start(services))
    assert (plan["state"], plan["problem"]["code"]) == ("failed", "internal-error")
    assert "Zora" not in str(plan["problem"])


def test_b47_a_queued_plan_is_cancelled_at_once(store: Store) -> None:
    """It never starts, also when the worker comes to it later."""
    engine = StandIn()
    services = inline(store, engine, paused=True)
    plan = start(services)
    assert handlers.cancel_plan(services, plan)["state"] == "cancelled"
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert state(services, plan) == "cancelled"
    assert engine.asked == []


def test_b47_a_running_plan_stops_at_its_next_step_and_stores_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled plan never turns successful."""
    plans: list[str] = []
    engine = Calling(lambda: handlers.cancel_plan(services, plans[0]) and None)
    services = inline(store, engine, paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert state(services, plans[0]) == "cancelled"
    with pytest.raises(StateConflictError):
        handlers.plan_assignments(services, plans[0])
    assert handlers.cancel_plan(services, plans[0])["state"] == "cancelled"  # asking again does no harm


def test_b47_a_stop_asked_for_after_the_last_step_still_counts(store: Store) -> None:
    """Whoever got 202 for a cancel is not shown "succeeded" a moment later."""

    class Silent(Calling):
        def recommend(self, venue: Any, params: Any, *, progress: Any = None) -> Any:
            return super().recommend(venue, params)

    plans: list[str] = []
    services = inline(store, Silent(lambda: handlers.cancel_plan(services, plans[0]) and None), paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert state(services, plans[0]) == "cancelled"


def test_a_plan_that_has_ended_cannot_be_cancelled(store: Store) -> None:
    """Its result stays."""
    services = inline(store, StandIn())
    plan = start(services)
    with pytest.raises(StateConflictError):
        handlers.cancel_plan(services, plan)
    assert state(services, plan) == "succeeded"


def test_progress_can_be_read_while_a_plan_runs(store: Store) -> None:
    """A chair sees phase, fraction, value and bound, and that the run is alive."""
    seen: list[dict[str, Any]] = []
    plans: list[str] = []

    class Reporting(StandIn):
        def recommend(self, venue: Any, params: Any, *, progress: Any = None) -> Any:
            result = super().recommend(venue, params, progress=progress)
            wait_for(lambda: handlers.get_plan(services, plans[0])["phase"] == "flow")
            seen.append(handlers.get_plan(services, plans[0]))
            return result

    services = inline(store, Reporting(), paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert {name: seen[0][name] for name in ("state", "phase", "progress", "value", "bound", "gap")} == {
        "state": "running", "phase": "flow", "progress": 0.5, "value": 1.0, "bound": 2.0, "gap": 1.0,
    }  # fmt: skip


def test_later_uploads_do_not_change_a_queued_plan(store: Store) -> None:
    """A plan is made from the venue as it was when it was asked for, and says so by a hash."""
    engine = StandIn()
    services = inline(store, engine, paused=True)
    first = handlers.create_plan(services, "v", {})
    handlers.add_reviewers(services, "v", [{"id": "r3"}])
    second = handlers.create_plan(services, "v", {})
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert [len(venue.reviewers) for venue, _ in engine.asked] == [2, 3]
    assert first["input_hash"] != second["input_hash"]
    handlers.delete_reviewer(services, "v", "r3")
    assert handlers.create_plan(services, "v", {})["input_hash"] == first["input_hash"]


def test_a_run_handed_out_twice_means_its_first_worker_died(store: Store) -> None:
    """Some schedulers run a task again when its worker is gone; a plan is not rerun in silence."""
    services = inline(store, StandIn(), paused=True)
    plan = start(services)
    store.write(lambda connection: claim_plan(connection, plan, "first", "w"))
    assert worker.run_plan(plan, store.url, StandIn()) == "failed"
    assert handlers.get_plan(services, plan)["problem"]["code"] == "worker-died"


def test_a_result_of_a_run_that_was_given_up_is_not_stored(store: Store) -> None:
    """Exactly one end of a plan wins."""
    plans: list[str] = []

    def give_up() -> None:
        from service.store.plans import end_plan

        store.write(lambda connection: end_plan(connection, plans[0], "timed_out"))

    services = inline(store, Calling(give_up), paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert state(services, plans[0]) == "timed_out"


def test_logs_hold_ids_and_no_personal_data(store: Store) -> None:
    """Logs are kept longer and read by more people than profiles are."""
    with structlog.testing.capture_logs() as entries:
        services = inline(store, StandIn())
        plan = start(services)
    assert {"plan_queued", "plan_started", "plan_ended"} <= {entry["event"] for entry in entries}
    assert any(entry.get("plan") == plan for entry in entries)
    assert "zora" not in str(entries).lower()


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
    jobs = DaskJobs(store, engine=ByName(), time_limit=2.0, grace=0.5, interval=0.05)
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
    plan = start(dask, scorer="long")
    wait_for(lambda: state(dask, plan) == "running")
    handlers.cancel_plan(dask, plan)
    wait_for(ended(dask, plan))
    assert state(dask, plan) == "cancelled"


def test_b48_a_worker_killed_by_signal_is_noticed_and_the_next_plan_runs(dask: Services) -> None:
    """A crash below Python leaves no exception, only a process that is gone."""
    plans = [start(dask, scorer="die"), start(dask)]
    wait_for(ended(dask, *plans))
    assert [state(dask, plan) for plan in plans] == ["failed", "succeeded"]
    assert handlers.get_plan(dask, plans[0])["problem"]["code"] == "worker-died"
    assert handlers.health(dask)["status"] == "ok"


def test_b40_a_native_call_that_never_returns_is_stopped_from_outside(dask: Services) -> None:
    """It holds the interpreter's lock, so nothing inside its process can stop it."""
    plans = [start(dask, scorer="hang"), start(dask)]
    wait_for(ended(dask, *plans))
    assert [state(dask, plan) for plan in plans] == ["timed_out", "succeeded"]
    assert handlers.get_plan(dask, plans[0])["problem"]["code"] == "time-limit"


def test_build_gives_services_on_a_fresh_database(tmp_path: Any) -> None:
    """The one place where real things are chosen."""
    services = build(Settings(database_url="sqlite:///a.db", data_dir=tmp_path))
    assert handlers.health(services)["status"] == "ok"
    services.close()
    assert not services.jobs.alive()
