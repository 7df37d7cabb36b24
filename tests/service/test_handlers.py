"""Use cases below HTTP: venues, reviewers, submissions, pages, versions."""

from __future__ import annotations

import pytest

from matching.errors import InputError, InvalidVenueError
from service import handlers
from service.config import Settings
from service.errors import (
    NotFoundError,
    PreconditionFailedError,
    PreconditionRequiredError,
    StateConflictError,
)
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


def test_a_venue_comes_back_with_its_defaults(services: Services) -> None:
    """What was not sent is shown as what will be used."""
    venue = handlers.get_venue(services, "v")
    assert {name: venue[name] for name in ("id", "demand", "load_max", "load_min", "free_mail")} == {
        "id": "v", "demand": 1, "load_max": 6, "load_min": 0, "free_mail": [],
    }  # fmt: skip
    assert venue["counts"]["reviewers"] == 0
    with pytest.raises(StateConflictError):
        handlers.create_venue(services, {"id": "v"})
    with pytest.raises(NotFoundError):
        handlers.get_venue(services, "w")


def test_a_venue_is_changed_in_part_and_only_by_who_has_seen_it(services: Services) -> None:
    """Two chairs that edit at once do not overwrite each other in silence."""
    with pytest.raises(PreconditionRequiredError):
        handlers.update_venue(services, "v", {"demand": 2}, None)
    changed = handlers.update_venue(services, "v", {"demand": 2, "load_max": 4}, '"1"')
    assert (changed["demand"], changed["load_max"], changed["etag"]) == (2, 4, "2")
    with pytest.raises(PreconditionFailedError):
        handlers.update_venue(services, "v", {"demand": 3}, '"1"')
    with pytest.raises(PreconditionFailedError):
        handlers.update_venue(services, "v", {"demand": 3}, 'W/"2"')
    assert handlers.update_venue(services, "v", {"demand": 3}, '"9", "2"')["demand"] == 3
    assert handlers.update_venue(services, "v", {"name": "N"}, "*")["demand"] == 3
    with pytest.raises(InvalidVenueError, match="cannot be changed"):
        handlers.update_venue(services, "v", {"id": "w"}, "*")
    with pytest.raises(InvalidVenueError, match="load_min 9 is above load_max 4"):
        handlers.update_venue(services, "v", {"load_min": 9}, "*")


def test_deleting_a_venue_takes_everything_along(services: Services) -> None:
    """Also its snapshots, which hold profiles."""
    fill(services)
    plan = handlers.create_plan(services, "v", {})
    handlers.put_bids(services, "v", [{"submission": "p1", "reviewer": "r1", "bid": "high"}])
    handlers.delete_venue(services, "v")
    with pytest.raises(NotFoundError):
        handlers.get_plan(services, plan["id"])
    with services.store.read() as connection:
        for table in ("reviewers", "bids", "plans", "assignments", "plan_documents", "plan_inputs"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


def test_a_venue_with_an_open_plan_stays(services: Services) -> None:
    """Its run would write into nothing."""
    fill(services)
    services.jobs.paused = True  # type: ignore[attr-defined]
    handlers.create_plan(services, "v", {})
    with pytest.raises(StateConflictError, match="cancel it first"):
        handlers.delete_venue(services, "v")


def test_pages_follow_each_other_without_gap_or_repeat(services: Services) -> None:
    """Also when somebody adds records between two pages."""
    handlers.add_reviewers(services, "v", [{"id": f"r{number}"} for number in range(7)])
    seen: list[str] = []
    cursor: str | None = None
    while True:
        items, cursor = handlers.list_reviewers(services, "v", cursor, 3)
        seen += [item["id"] for item in items]
        if len(seen) == 3:
            handlers.delete_reviewer(services, "v", "r0")
            handlers.add_reviewers(services, "v", [{"id": "new"}])
        if cursor is None:
            break
    assert seen == [f"r{number}" for number in range(7)] + ["new"]


def test_a_page_is_never_longer_than_the_setting(store: Store) -> None:
    """A limit of a million must not build a page of a million."""
    services = Services(Settings(page_limit=2), store, InlineJobs(store))
    for number in range(3):
        handlers.create_venue(services, {"id": str(number)})
    items, cursor = handlers.list_venues(services, None, 1_000_000)
    assert [item["id"] for item in items] == ["0", "1"]
    assert [item["id"] for item in handlers.list_venues(services, cursor)[0]] == ["2"]


@pytest.mark.parametrize("cursor", ["", "x", "!!", "WzEsMl0", "W10", "bnVsbA", "WyJhIl0", "WzFlOTldICAg", "é"])
def test_a_foreign_cursor_is_refused(services: Services, cursor: str) -> None:
    """It must not end in a page of something else, nor in a server error."""
    with pytest.raises(InputError, match="cursor"):
        handlers.list_venues(services, cursor)


def test_a_limit_below_one_is_refused(services: Services) -> None:
    """A page of nothing would never end."""
    with pytest.raises(InputError, match="limit"):
        handlers.list_venues(services, None, 0)


def test_b12_zero_and_null_survive_a_round_trip(services: Services) -> None:
    """0 means no reviews at all, null means the venue's default."""
    handlers.add_reviewers(
        services, "v", [{"id": "none", "load_max": 0}, {"id": "default", "load_max": None}, {"id": "absent"}]
    )
    assert [item["load_max"] for item in handlers.list_reviewers(services, "v")[0]] == [0, None, None]


def test_anything_else_that_came_with_a_record_comes_back(services: Services) -> None:
    """An export is lossless, also for half a surrogate pair and a zero byte."""
    extra = {"orcid": "0000", "odd": "\ud800 \x00 ü 语", "deep": {"a": [1, None]}}
    handlers.add_submissions(services, "v", [{"id": "p1", "extra": extra, "title": "Ü"}])
    stored = handlers.get_submission(services, "v", "p1")
    assert (stored["extra"], stored["title"]) == (extra, "Ü")


def test_b09_one_id_twice_in_an_upload_names_both_rows(services: Services) -> None:
    """And stores neither."""
    with pytest.raises(InvalidVenueError, match="rows 0 and 1"):
        handlers.add_reviewers(services, "v", [{"id": "r1", "load_max": 1}, {"id": "r1", "load_max": 2}])
    with pytest.raises(InvalidVenueError, match="rows 0 and 2"):
        handlers.add_submissions(services, "v", [{"id": "p1"}, {"id": "p2"}, {"id": "p1"}])
    assert handlers.get_venue(services, "v")["counts"]["reviewers"] == 0


def test_b09_a_shared_address_is_a_warning_until_the_accounts_are_linked(services: Services) -> None:
    """Against stored records and inside one upload."""
    handlers.add_reviewers(services, "v", [{"id": "r1", "emails": ["a@x.example"]}])
    answer = handlers.add_reviewers(services, "v", [{"id": "r2", "emails": ["A@X.example "]}])
    assert [(entry["code"], entry["reviewers"]) for entry in answer["warnings"]] == [
        ("probable-duplicate", ["r1", "r2"])
    ]
    linked = handlers.add_reviewers(services, "v", [{"id": "r3", "emails": ["a@x.example"], "same_person_as": "r1"}])
    assert all("r3" not in entry["reviewers"] for entry in linked["warnings"])


def test_ids_that_are_stored_already_are_all_named(services: Services) -> None:
    """A second POST of the same file changes nothing and says why."""
    handlers.add_reviewers(services, "v", [{"id": "r1"}, {"id": "r2"}])
    with pytest.raises(StateConflictError) as caught:
        handlers.add_reviewers(services, "v", [{"id": "r2"}, {"id": "r3"}, {"id": "r1"}])
    assert [(issue.row, issue.value) for issue in caught.value.issues] == [(0, "r2"), (2, "r1")]
    with pytest.raises(NotFoundError):
        handlers.get_reviewer(services, "v", "r3")


def test_b11_every_fault_of_an_upload_is_told_at_once(services: Services) -> None:
    """Faults of single records, of the upload, and against what is stored, in one answer."""
    handlers.add_reviewers(services, "v", [{"id": "r1", "aliases": ["old"]}])
    with pytest.raises(InvalidVenueError) as caught:
        handlers.add_reviewers(
            services, "v", [{"id": "a", "load_min": 3, "load_max": 2}, {"id": "b"}, {"id": "b"}, {"id": "r1"}]
        )
    assert {(issue.row, issue.code) for issue in caught.value.issues} == {
        (0, "contradiction"), (2, "duplicate-id"), (3, "already-stored"),
    }  # fmt: skip
    with pytest.raises(InvalidVenueError) as caught:
        handlers.add_reviewers(
            services, "v", [{"id": "c", "aliases": ["old"]}, {"id": "old"}, {"id": "d", "same_person_as": "ghost"}]
        )
    assert {issue.row for issue in caught.value.issues} == {0, 1, 2}
    assert all("row -" not in issue.reason for issue in caught.value.issues)
    assert handlers.get_venue(services, "v")["counts"]["reviewers"] == 1


def test_an_author_without_any_name_is_refused(services: Services) -> None:
    """Nothing could be found in conflict with it."""
    with pytest.raises(InvalidVenueError, match="an id, an email or a name"):
        handlers.add_submissions(services, "v", [{"id": "p1", "authors": [{"name": " ", "email": ""}]}])


def test_a_record_is_replaced_as_a_whole(services: Services) -> None:
    """What the new record does not say is back at its default."""
    handlers.add_reviewers(services, "v", [{"id": "r1", "load_max": 2, "areas": ["x"]}])
    etag = handlers.get_reviewer(services, "v", "r1")["etag"]
    with pytest.raises(PreconditionRequiredError):
        handlers.put_reviewer(services, "v", "r1", {"load_max": 3}, None)
    stored = handlers.put_reviewer(services, "v", "r1", {"load_max": 3}, f'"{etag}"')
    assert (stored["id"], stored["load_max"], stored["areas"]) == ("r1", 3, [])
    assert stored["etag"] != etag
    with pytest.raises(PreconditionFailedError):
        handlers.put_reviewer(services, "v", "r1", {}, f'"{etag}"')
    with pytest.raises(NotFoundError):
        handlers.put_reviewer(services, "v", "r2", {}, "*")
    with pytest.raises(InvalidVenueError, match="cannot be changed"):
        handlers.put_reviewer(services, "v", "r1", {"id": "r2"}, "*")


def test_a_replacement_is_checked_beside_the_other_records(services: Services) -> None:
    """An alias that names somebody else would send that person's bids astray."""
    handlers.add_reviewers(services, "v", [{"id": "r1"}, {"id": "r2"}])
    with pytest.raises(InvalidVenueError) as caught:
        handlers.put_reviewer(services, "v", "r1", {"aliases": ["r2"]}, "*")
    assert caught.value.issues[0].row is None
    with pytest.raises(InvalidVenueError, match="above load_max"):
        handlers.put_reviewer(services, "v", "r1", {"load_min": 2, "load_max": 1}, "*")


def test_a_deleted_record_takes_its_bids_along_and_says_how_many(services: Services) -> None:
    """Nothing goes in silence."""
    fill(services)
    handlers.put_bids(services, "v", [{"submission": "p1", "reviewer": "r1", "bid": "high"}])
    handlers.put_conflicts(services, "v", [{"submission": "p2", "reviewer": "r1"}])
    assert handlers.delete_reviewer(services, "v", "r1") == {"bids": 1, "conflicts": 1, "scores": 0}
    assert handlers.list_bids(services, "v") == ([], None)


def test_records_others_rest_on_are_not_deleted(services: Services) -> None:
    """A lock is a pair somebody holds; a link needs its other end."""
    fill(services)
    handlers.put_locks(services, "v", [{"submission": "p1", "reviewer": "r1"}])
    handlers.add_reviewers(services, "v", [{"id": "r4", "same_person_as": "r2"}])
    for delete, name in (
        (handlers.delete_reviewer, "r1"),
        (handlers.delete_submission, "p1"),
        (handlers.delete_reviewer, "r2"),
    ):
        with pytest.raises(StateConflictError):
            delete(services, "v", name)
    with pytest.raises(PreconditionFailedError):
        handlers.delete_reviewer(services, "v", "r3", '"7"')


def test_a_dry_run_answers_as_usual_and_stores_nothing(services: Services) -> None:
    """For every kind of write."""
    fill(services)
    before = handlers.get_venue(services, "v")
    assert handlers.add_reviewers(services, "v", [{"id": "r9"}], dry_run=True)["created"] == 1
    assert handlers.put_reviewer(services, "v", "r1", {"load_max": 1}, "*", dry_run=True)["load_max"] == 1
    pair = {"submission": "p1", "reviewer": "r1"}
    assert handlers.put_locks(services, "v", [pair], dry_run=True)["created"] == 1
    assert handlers.put_scores(services, "v", "tpms", [{**pair, "score": 1.0}], dry_run=True)["created"] == 1
    assert handlers.create_plan(services, "v", {}, dry_run=True)["state"] == "queued"
    handlers.delete_venue(services, "v", dry_run=True)
    assert handlers.get_venue(services, "v") == before
    assert handlers.get_reviewer(services, "v", "r1")["load_max"] is None
