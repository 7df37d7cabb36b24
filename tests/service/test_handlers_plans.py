"""Use cases of plans below HTTP: what is asked for, and what can be read afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from matching.errors import InputError, InvalidParamsError, InvalidVenueError, Issue
from service import handlers
from service.config import Settings
from service.errors import (
    NotFoundError,
    NotReadyError,
    StateConflictError,
)
from service.handlers.plans import COUNTS
from service.jobs import InlineJobs
from service.store import Store
from service.wiring import Services
from tests.service.stand_ins import StandIn


@pytest.fixture
def services(store: Store) -> Services:
    """A venue `v` and an engine that always finds a plan."""
    engine = StandIn()
    made = Services(Settings(), store, InlineJobs(store, engine), engine)
    handlers.create_venue(made, {"id": "v", "demand": 1})
    return made


def fill(services: Services) -> None:
    handlers.add_reviewers(services, "v", [{"id": "r1"}, {"id": "r2"}, {"id": "r3"}])
    handlers.add_submissions(services, "v", [{"id": "p1"}, {"id": "p2"}])


def test_a_plan_needs_somebody_and_something(services: Services) -> None:
    """Said at once, not by a job that fails."""
    with pytest.raises(NotReadyError, match="no active submissions and no active reviewers"):
        handlers.create_plan(services, "v", {})
    assert handlers.list_plans(services, "v") == ([], None)


def test_faulty_options_are_refused_before_a_plan_is_queued(services: Services) -> None:
    """A weight for a signal that was never uploaded is a typing error."""
    fill(services)
    with pytest.raises(InvalidParamsError, match="objective"):
        handlers.create_plan(services, "v", {"objective": "best"})
    with pytest.raises(InvalidParamsError, match="no signal 'tmps'"):
        handlers.create_plan(services, "v", {"weights": {"tmps": 1.0}})
    with pytest.raises(InvalidVenueError) as caught:
        handlers.create_plan(services, "v", {}, [{"submission": "p1", "reviewer": "ghost"}])
    assert (caught.value.issues[0].row, caught.value.issues[0].source) == (0, "locks")
    assert handlers.list_plans(services, "v") == ([], None)


def test_locks_of_one_plan_join_those_of_the_venue(services: Services) -> None:
    """And leave no trace in the venue."""
    fill(services)
    handlers.put_locks(services, "v", [{"submission": "p1", "reviewer": "r1"}])
    handlers.create_plan(
        services, "v", {}, [{"submission": "p1", "reviewer": "r1"}, {"submission": " P2", "reviewer": "r2"}]
    )
    venue, _ = services.engine.asked[0]  # type: ignore[union-attr]
    assert [(lock.submission, lock.reviewer) for lock in venue.locks] == [("p1", "r1"), ("p2", "r2")]
    assert len(handlers.list_locks(services, "v")[0]) == 1


def test_results_come_by_page_and_by_side(services: Services) -> None:
    """Chairs look at one submission, reviewers at their own list."""
    fill(services)
    plan = handlers.create_plan(services, "v", {})["id"]
    first, cursor = handlers.plan_assignments(services, plan, limit=1)
    second, end = handlers.plan_assignments(services, plan, cursor=cursor, limit=1)
    assert [entry["submission"] for entry in first + second] == ["p1", "p2"]
    assert end is None
    assert first[0] == {
        "submission": "p1", "reviewer": "r1", "affinity": 0.5, "locked": False, "reasons": ["near"],
        "probability": None,
        "parts": [{"signal": "text", "value": 0.5, "used": 0.5, "weight": 1.0, "contribution": 0.5}],
    }  # fmt: skip
    assert len(handlers.plan_assignments(services, plan, reviewer="r1")[0]) == 2
    assert handlers.plan_assignments(services, plan, submission="p2", reviewer="r2") == ([], None)
    assert [entry["rank"] for entry in handlers.plan_alternates(services, plan, "p1")[0]] == [1]
    certificate = handlers.plan_certificate(services, plan)
    assert certificate["certificate"]["submission_prices"] == {"p1": 0.5, "p2": 0.5}
    assert certificate["bound"] == 1.0
    assert handlers.plan_diagnosis(services, plan)["diagnosis"] == {}


def test_a_pair_is_explained_whether_assigned_or_not(services: Services) -> None:
    """ "Why not this person?" is asked as often as "why this one?"."""
    fill(services)
    plan = handlers.create_plan(services, "v", {})["id"]

    def explain(**names: Any) -> Any:
        return handlers.plan_explanations(services, plan, **names)[0]

    assert [(entry["reviewer"], entry["code"]) for entry in explain(submission="p1")] == [
        ("r1", "assigned"), ("r2", "alternate"),
    ]  # fmt: skip
    assert len(explain(reviewer="r1")) == 2
    assert explain(reviewer="r3") == []
    alternate = explain(submission="p1", reviewer="r2")[0]
    assert (alternate["assigned"], alternate["alternate"]["rank"], alternate["affinity"]) == (False, 1, 0.25)
    assert alternate["reasons"] == [
        "alternate number 1; lawful; its affinity 0.25 is below the lowest assigned here, 0.5"
    ]
    lower = explain(submission="p1", reviewer="r3")[0]
    assert (lower["alternate"], lower["reasons"]) == (None, ["lawful; ranks below the alternates listed"])
    with pytest.raises(NotFoundError):
        explain(submission="p1", reviewer="ghost")
    with pytest.raises(InputError):
        explain()


def test_results_of_a_plan_that_has_none_are_a_conflict_of_state(services: Services) -> None:
    """409 says "not now", 404 would say "never"."""
    fill(services)
    services.jobs.paused = True  # type: ignore[attr-defined]
    plan = handlers.create_plan(services, "v", {})["id"]
    for read in (handlers.plan_assignments, handlers.plan_alternates, handlers.plan_diagnosis):
        with pytest.raises(StateConflictError, match="queued"):
            read(services, plan)
        with pytest.raises(NotFoundError):
            read(services, "nobody")


def test_readiness_shows_what_the_engine_finds(services: Services) -> None:
    """Notices keep their words and get a severity."""
    fill(services)
    answer = handlers.readiness(services, "v", {"rng": 1})
    assert answer["ready"] is True
    assert tuple(answer["counts"]) == COUNTS
    assert (answer["counts"]["reviewers"], answer["counts"]["bids"]) == (3, None)
    assert answer["items"] == [
        {
            "code": "no-text", "message": "p1 has no text", "submissions": ["p1"], "reviewers": [], "data": {},
            "severity": "warning",
        }
    ]  # fmt: skip


def test_faults_of_stored_records_are_items_of_readiness(store: Store) -> None:
    """A chair asks what is wrong and gets a list, not an error."""
    issue = Issue("load_min 3 is above load_max 2", "contradiction", "load_min", 0, 3, "reviewers")
    engine = StandIn(error=InvalidVenueError(issues=[issue]))
    services = Services(Settings(), store, InlineJobs(store), engine)
    handlers.create_venue(services, {"id": "v"})
    fill(services)
    answer = handlers.readiness(services, "v")
    assert answer["ready"] is False
    assert [(item["severity"], item["reviewers"]) for item in answer["items"]] == [("error", ["r1"])]
    assert answer["items"][0]["message"] == "r1: load_min 3 is above load_max 2"
    assert tuple(answer["counts"]) == COUNTS and answer["counts"]["reviewers"] == 3
