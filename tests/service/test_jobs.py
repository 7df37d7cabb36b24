"""Plans from queued to their end: what a run writes, and how it is stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog

from matching.errors import InvalidVenueError, Issue
from matching.resources import Resources
from matching.solvers.base import Progress, Status
from service import handlers, worker
from service.config import Settings
from service.errors import StateConflictError
from service.store import Store
from service.store.plans import claim_plan
from service.wiring import build
from tests.service.running import inline, start, state, wait_for
from tests.service.stand_ins import Calling, StandIn, plan_of


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
        def recommend(
            self, venue: Any, params: Any, *, progress: Any = None, resources: Any = None, explain: Any = None
        ) -> Any:
            return super().recommend(venue, params)

    plans: list[str] = []
    services = inline(store, Silent(lambda: handlers.cancel_plan(services, plans[0]) and None), paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert state(services, plans[0]) == "cancelled"


def test_evidence_comes_with_the_plan_and_on_request(store: Store) -> None:
    """On either database: those assigned at once, anybody else when somebody asks."""
    services = inline(store, None)
    plan = start(services, demand=1, load_max=2)
    (assigned, *rest), _ = handlers.plan_explanations(services, plan, "p1")
    assert assigned["assigned"] and assigned["evidence_state"] == "given"
    assert [item["evidence_state"] for item in rest] == ["on-request"]
    other = rest[0]["reviewer"]
    (asked,), _ = handlers.plan_explanations(services, plan, "p1", other)
    assert asked["evidence_state"] == "given" and asked["standing"]["reviewer"] == other
    assert handlers.plan_explanations(services, plan, "p1", other)[0] == [asked]


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
        def recommend(
            self, venue: Any, params: Any, *, progress: Any = None, resources: Any = None, explain: Any = None
        ) -> Any:
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


def test_progress_is_whole_only_when_there_is_a_result_to_read(store: Store) -> None:
    """The engine is done before its plan is stored."""
    seen: list[float] = []
    plans: list[str] = []

    class Done(StandIn):
        def recommend(
            self, venue: Any, params: Any, *, progress: Any = None, resources: Any = None, explain: Any = None
        ) -> Any:
            progress(Progress("report", 1.0))
            wait_for(lambda: handlers.get_plan(services, plans[0])["phase"] == "report")
            seen.append(handlers.get_plan(services, plans[0])["progress"])
            return plan_of(venue)

    services = inline(store, Done(), paused=True)
    plans.append(start(services))
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert seen == [0.99]
    assert handlers.get_plan(services, plans[0])["progress"] == 1.0


def test_the_encoder_s_folders_are_those_of_the_worker_s_own_environment(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files lie is for the operator of that machine to say; no request can name a folder."""
    seen: list[Any] = []

    class Noting(StandIn):
        def recommend(
            self, venue: Any, params: Any, *, progress: Any = None, resources: Any = None, explain: Any = None
        ) -> Any:
            seen.append(resources)
            return super().recommend(venue, params, progress=progress)

    services = inline(store, Noting())
    monkeypatch.delenv("REVMATCH_ENCODER_MODEL", raising=False)
    monkeypatch.setenv("REVMATCH_ENCODER_CACHE", "/vectors")
    start(services)
    assert seen == [Resources(None, Path("/vectors"))]


def test_a_local_worker_gets_the_folders_of_the_settings(tmp_path: Path) -> None:
    """It is started by this process and has no settings of its own."""
    settings = Settings(data_dir=tmp_path, encoder_model=Path("/model"))
    services = build(settings, StandIn())
    try:
        assert services.jobs._cluster._folders == {"REVMATCH_ENCODER_MODEL": "/model"}  # type: ignore[attr-defined]
    finally:
        services.close()


def test_later_uploads_do_not_change_a_queued_plan(store: Store) -> None:
    """A plan is made from the venue as it was when it was asked for, and says so by a hash."""
    engine = StandIn()
    services = inline(store, engine, paused=True)
    first = handlers.create_plan(services, "v", {})
    handlers.add_reviewers(services, "v", [{"id": "r3"}])
    second = handlers.create_plan(services, "v", {})
    services.jobs.run_waiting()  # type: ignore[attr-defined]
    assert [len(venue.reviewers) for venue, _ in engine.asked] == [2, 3]
    assert first["venue_hash"] != second["venue_hash"]
    handlers.delete_reviewer(services, "v", "r3")
    assert handlers.create_plan(services, "v", {})["venue_hash"] == first["venue_hash"]


def test_a_plan_shows_the_hash_and_the_options_of_its_run(store: Store) -> None:
    """One hash for one input, wherever it is read; the server's own limit is no option anybody asked for."""
    services = inline(store, StandIn(), paused=True)
    plan = handlers.create_plan(services, "v", {"rng": 3})
    assert plan["input_hash"] is None
    assert worker.run_plan(plan["id"], store.url, StandIn(), time_limit=9.0) == "succeeded"
    done, certificate = handlers.get_plan(services, plan["id"]), handlers.plan_certificate(services, plan["id"])
    assert done["input_hash"] == certificate["input_hash"] == certificate["provenance"]["input_hash"] == "0" * 64
    assert done["venue_hash"] == certificate["venue_hash"] == plan["venue_hash"]
    assert done["params"] == certificate["provenance"]["params"]
    assert (done["params"]["time_limit"], certificate["provenance"]["server_time_limit"]) == (None, 9.0)


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
