"""Uploads about pairs below HTTP: who is meant, what is refused, what is replaced."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from matching.errors import InvalidScoresError, InvalidVenueError
from service import handlers
from service.config import Settings
from service.errors import NotFoundError
from service.handlers import people
from service.jobs import InlineJobs
from service.store import Store
from service.wiring import Services
from tests.service.stand_ins import StandIn


@pytest.fixture
def services(store: Store) -> Services:
    """Three reviewers, of whom r2 and r3 share an address, and two submissions."""
    engine = StandIn()
    made = Services(Settings(), store, InlineJobs(store, engine), engine)
    handlers.create_venue(made, {"id": "v"})
    handlers.add_reviewers(
        made,
        "v",
        [
            {"id": "r1", "aliases": ["old-r1"], "emails": ["r1@x.example"]},
            {"id": "r2", "emails": ["lab@x.example"]},
            {"id": "r3", "emails": ["lab@x.example"]},
        ],
    )
    handlers.add_submissions(made, "v", [{"id": "p1"}, {"id": "p2"}])
    return made


def bid(submission: str, reviewer: str, value: str = "high") -> dict[str, Any]:
    return {"submission": submission, "reviewer": reviewer, "bid": value}


@pytest.mark.parametrize("name", ["old-r1", " R1@X.EXAMPLE ", "Ann <r1@x.example>", "R1"])
@pytest.mark.parametrize("few", [0, 2000])
def test_b08_every_name_of_a_reviewer_counts(
    services: Services, name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looked up one by one or all at once; the upload's own words are kept."""
    monkeypatch.setattr(people, "FEW", few)
    handlers.put_bids(services, "v", [bid("p1", name), bid(" P2 ", "r1")])
    assert handlers.list_bids(services, "v")[0] == [
        {**bid("p1", "r1"), "given": {"reviewer": name}},
        {**bid("p2", "r1"), "given": {"submission": " P2 "}},
    ]


@pytest.mark.parametrize("few", [0, 2000])
def test_b11_every_unknown_name_is_told_and_nothing_is_stored(
    services: Services, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer lists row, field, value and reason of all of them."""
    monkeypatch.setattr(people, "FEW", few)
    with pytest.raises(InvalidVenueError) as caught:
        handlers.put_conflicts(
            services,
            "v",
            [
                {"submission": "p1", "reviewer": "r1"},
                {"submission": "p99", "reviewer": "r99"},
                {"submission": "p1", "reviewer": ""},
            ],
        )
    found = [(issue.row, issue.field, issue.value, issue.source) for issue in caught.value.issues]
    assert found == [
        (1, "reviewer", "r99", "conflicts"), (1, "submission", "p99", "conflicts"), (2, "reviewer", "", "conflicts"),
    ]  # fmt: skip
    assert handlers.list_conflicts(services, "v") == ([], None)


def test_b11_a_lenient_upload_stores_the_good_rows_and_returns_the_others(services: Services) -> None:
    """Only where losing a row loses no rule."""
    answer = handlers.put_bids(
        services, "v", [bid("p1", "ghost"), bid("p1", "r1"), bid("p2", "r1", "best")], lenient=True
    )
    assert (answer["created"], answer["updated"]) == (1, 0)
    assert [(entry["row"], entry["field"], entry["value"]) for entry in answer["rejected"]] == [
        (0, "reviewer", "ghost"), (2, "bid", "best"),
    ]  # fmt: skip


def test_an_address_of_several_people_bars_all_of_them_and_bids_for_none(services: Services) -> None:
    """For a conflict one too many is the safe side; for anything else it would be a guess."""
    with pytest.raises(InvalidVenueError, match="r2, r3"):
        handlers.put_bids(services, "v", [bid("p1", "lab@x.example")])
    with pytest.raises(InvalidVenueError):
        handlers.put_locks(services, "v", [{"submission": "p1", "reviewer": "lab@x.example"}])
    answer = handlers.put_conflicts(services, "v", [{"submission": "p1", "reviewer": "lab@x.example"}])
    assert answer["created"] == 2
    assert [entry["reviewer"] for entry in handlers.list_conflicts(services, "v")[0]] == ["r2", "r3"]


def test_a_pair_stored_already_takes_the_new_value(services: Services) -> None:
    """An upload may be sent again after a correction."""
    handlers.put_bids(services, "v", [bid("p1", "r1", "low"), bid("p1", "r2")])
    answer = handlers.put_bids(services, "v", [bid("p1", "old-r1", "very_high"), bid("p2", "r2")])
    assert (answer["created"], answer["updated"]) == (1, 1)
    assert handlers.list_bids(services, "v")[0][0] == {**bid("p1", "r1", "very_high"), "given": {"reviewer": "old-r1"}}
    handlers.put_bids(services, "v", [bid("p1", "r1")])
    assert handlers.list_bids(services, "v")[0][0]["given"] is None


def test_b13_one_pair_with_two_values_names_both_rows(services: Services) -> None:
    """Also when the two rows call the reviewer by different names; nobody can say which one is meant."""
    rows = [bid("p1", "r1", "low"), bid("p2", "r1"), bid("p1", "old-r1", "high")]
    with pytest.raises(InvalidVenueError) as caught:
        handlers.put_bids(services, "v", rows)
    assert [issue.row for issue in caught.value.issues] == [0, 2]
    assert all("rows 0 and 2" in issue.reason for issue in caught.value.issues)
    answer = handlers.put_bids(services, "v", rows, lenient=True)
    assert (answer["created"], len(answer["rejected"])) == (1, 2)


def test_rows_that_repeat_each_other_count_once_with_a_warning(services: Services) -> None:
    """Exports often hold a row twice."""
    answer = handlers.put_bids(services, "v", [bid("p1", "r1"), bid("p1", "r1")])
    assert (answer["created"], answer["updated"]) == (1, 0)
    assert [entry["code"] for entry in answer["warnings"]] == ["repeated-rows"]


def test_conflicts_keep_their_words(services: Services) -> None:
    """The evidence is shown to the chair; what is absent has its documented default."""
    handlers.put_conflicts(services, "v", [{"submission": "p1", "reviewer": "r1", "evidence": "advisor 2019"}])
    assert handlers.list_conflicts(services, "v")[0] == [
        {
            "submission": "p1", "reviewer": "r1", "rule": "declared", "evidence": "advisor 2019", "source": "",
            "given": None,
        }
    ]  # fmt: skip
    assert handlers.delete_conflicts(services, "v") == {"deleted": 1}


def test_pages_of_pairs_follow_each_other(services: Services) -> None:
    """In one stable order, whatever the order of the upload."""
    pairs = [(paper, name) for paper in ("p2", "p1") for name in ("r3", "r1", "r2")]
    handlers.put_locks(services, "v", [{"submission": paper, "reviewer": name} for paper, name in pairs])
    seen: list[tuple[str, str]] = []
    cursor: str | None = None
    while True:
        items, cursor = handlers.list_locks(services, "v", cursor, 4)
        seen += [(item["submission"], item["reviewer"]) for item in items]
        if cursor is None:
            break
    assert seen == sorted(pairs)


def test_scores_are_kept_by_signal(services: Services) -> None:
    """Each with its own default, which a later upload without one does not undo."""
    row = {"submission": "p1", "reviewer": "r1@x.example", "score": 0.25}
    handlers.put_scores(services, "v", "tpms", [row], default=0.5)
    handlers.put_scores(services, "v", "acl", [{**row, "score": -1.5}])
    handlers.put_scores(services, "v", "tpms", [{**row, "submission": "p2"}])
    assert handlers.list_signals(services, "v") == [
        {"signal": "acl", "default": None, "scores": 1},
        {"signal": "tpms", "default": 0.5, "scores": 2},
    ]
    scores, _ = handlers.list_scores(services, "v", "tpms")
    assert [(entry["submission"], entry["reviewer"], entry["score"]) for entry in scores] == [
        ("p1", "r1", 0.25), ("p2", "r1", 0.25),
    ]  # fmt: skip
    assert handlers.delete_scores(services, "v", "tpms") == {"deleted": 2}
    for read in (handlers.list_scores, handlers.delete_scores):
        with pytest.raises(NotFoundError):
            read(services, "v", "tpms")


@pytest.mark.parametrize("name", ["text", "areas", "bids"])
def test_signals_of_the_engine_cannot_be_uploaded(services: Services, name: str) -> None:
    """Their values would be replaced or added in silence."""
    with pytest.raises(InvalidScoresError):
        handlers.put_scores(services, "v", name, [])


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_b41_a_score_that_is_not_finite_names_its_pair(services: Services, value: float) -> None:
    """It would pass every comparison and end in the solver."""
    rows = [
        {"submission": "p1", "reviewer": "r1", "score": 1.0},
        {"submission": "p2", "reviewer": "r1", "score": value},
    ]
    with pytest.raises(InvalidScoresError) as caught:
        handlers.put_scores(services, "v", "tpms", rows)
    assert [(issue.row, issue.field) for issue in caught.value.issues] == [(1, "score")]
    with pytest.raises(InvalidScoresError, match="default"):
        handlers.put_scores(services, "v", "tpms", rows[:1], default=value)
    assert handlers.list_signals(services, "v") == []


def test_everything_reaches_the_engine_in_ids(services: Services) -> None:
    """A plan is computed from resolved names."""
    handlers.put_bids(services, "v", [bid("p1", "old-r1")])
    handlers.put_conflicts(services, "v", [{"submission": "p2", "reviewer": "r1@x.example", "rule": "personal"}])
    handlers.put_scores(services, "v", "tpms", [{"submission": "P1", "reviewer": "r2", "score": 0.5}], default=0.1)
    handlers.create_plan(services, "v", {"weights": {"tpms": 2.0}})
    venue, params = services.engine.asked[0]  # type: ignore[union-attr]
    assert [(entry.submission, entry.reviewer, entry.bid) for entry in venue.bids] == [("p1", "r1", "high")]
    assert [(entry.submission, entry.reviewer, entry.rule) for entry in venue.conflicts] == [("p2", "r1", "personal")]
    table = venue.scores[0]
    assert (table.name, table.submissions, table.reviewers, table.values.tolist(), table.default) == (
        "tpms", ("p1",), ("r2",), [0.5], 0.1,
    )  # fmt: skip
    assert params.weights["tpms"] == 2.0


def test_b50_uploads_at_once_all_arrive(services: Services) -> None:
    """Twenty clients send bids; none is lost and none is told of a lock."""
    names = [f"r{number}" for number in range(10, 30)]
    handlers.add_reviewers(services, "v", [{"id": name} for name in names])
    failures: list[Exception] = []

    def send(name: str) -> Callable[[], None]:
        def run() -> None:
            try:
                handlers.put_bids(services, "v", [bid("p1", name), bid("p2", name, "low")])
            except Exception as error:
                failures.append(error)

        return run

    threads = [threading.Thread(target=send(name)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(handlers.list_bids(services, "v", None, 1000)[0]) == 40


def test_names_that_change_are_known_at_once(services: Services) -> None:
    """Names are kept in memory between uploads; a new alias or a reviewer who left must not be missed."""
    handlers.put_bids(services, "v", [bid("p1", "old-r1")])
    handlers.put_reviewer(services, "v", "r1", {"aliases": ["older-r1"]}, "*")
    handlers.put_bids(services, "v", [bid("p2", "older-r1")])
    with pytest.raises(InvalidVenueError):
        handlers.put_bids(services, "v", [bid("p2", "old-r1")])
    handlers.delete_reviewer(services, "v", "r1")
    handlers.add_reviewers(services, "v", [{"id": "r4", "aliases": ["old-r1"]}])
    handlers.put_bids(services, "v", [bid("p2", "old-r1")])
    with pytest.raises(InvalidVenueError):
        handlers.put_bids(services, "v", [bid("p2", "older-r1")])
    assert [entry["reviewer"] for entry in handlers.list_bids(services, "v")[0]] == ["r4"]
