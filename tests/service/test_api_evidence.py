"""What an assigned pair rests on, over HTTP: numbers that add up, words that stand in both texts, and who else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

import matching
from matching.errors import MissingExtraError
from matching.profiles.text import clean_text
from service import evidence
from service.handlers import evidence as reading
from service.schemas.explanations import ExplanationPage
from service.store.snapshot import load_snapshot
from service.store.tables import plan_evidence
from service.translate import venue_from_snapshot
from tests.service.api import fill, ok, refused, run, score, venue

PEOPLE: list[dict[str, Any]] = [
    {"id": "ana", "name": "Ana Q.", "emails": ["ana@uni.example"], "load_max": 2, "publications": [
        {"id": "a1", "title": "Kernels on graphs", "abstract": "Random walks compare labelled graphs.", "year": 2021},
        {"id": "a2", "title": "Wheat yields under drought", "abstract": "Field trials over ten dry years."},
        {"id": "a3", "title": "Graph kernels at scale", "abstract": "Fast kernels for large labelled graphs."}]},
    {"id": "bo", "load_max": 1, "publications": [
        {"id": "b1", "title": "Kernels for molecules", "abstract": "Labelled graphs of atoms compared by kernels."},
        {"id": "b2", "title": "Graph drawing", "abstract": "Pictures of large graphs."}]},
    {"id": "cy", "load_max": 2, "publications": [
        {"id": "c1", "title": "Grasping with soft robots", "abstract": "Soft hands learn to grasp."}]},
    {"id": "di", "load_max": 2, "keywords": ["graphs", "robots"]},
    {"id": "eve", "load_max": 2},
    {"id": "fay", "active": False},
    {"id": "gus", "role": "area_chair"},
    {"id": "hal", "load_max": 0, "publications": [{"id": "h1", "title": "Walks on labelled graphs"}]},
]  # fmt: skip
PAPERS: list[dict[str, Any]] = [
    {"id": "p1", "title": "Scalable kernels for labelled graphs", "abstract": "Random walks on large graphs.",
     "authors": [{"name": "C. Doe", "email": "c@uni.example"}]},
    {"id": "p2", "title": "Learning to grasp", "abstract": "Soft hands of robots."},
    {"id": "p3", "title": "Graph kernels for molecules", "abstract": "Kernels compare labelled graphs of atoms."},
    {"id": "p4", "title": "Graphs", "demand": 0},
    {"id": "p5", "title": "Not any more", "active": False},
]  # fmt: skip
TEXT = {"weights": {"text": 1.0, "areas": 0.1, "bids": 0.25}, "scorer": "lexical", "n_alternates": 1}


@pytest.fixture
def base(client: FlaskClient) -> str:
    """Texts, a conflict by domain, bids, full and empty loads, and people who take no part."""
    made = venue(client, demand=2, load_max=2)
    fill(client, made, PEOPLE, PAPERS)
    ok(client.post(f"{made}/bids", json={"bids": [{"submission": "p3", "reviewer": "cy", "bid": "high"}]}))
    return made


def explain(client: FlaskClient, plan: dict[str, Any], query: str) -> list[dict[str, Any]]:
    return list(ok(client.get(f"/v1/plans/{plan['id']}/explanations?{query}"))["items"])


def snapshot_of(app: Flask, plan: dict[str, Any]) -> Any:
    with app.extensions["revmatch"].store.read() as connection:
        return load_snapshot(connection, plan["venue_hash"])


def texts(records: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["id"]: clean_text(f"{entry['title']}. {entry.get('abstract', '')}").lower() for entry in records}


def test_the_parts_the_shares_and_the_words_of_every_assigned_pair_check(client: FlaskClient, base: str) -> None:
    """To 1e-9, and each shared word and passage stands in both texts."""
    plan = run(client, base, **TEXT)
    written = texts(PAPERS) | texts([entry for who in PEOPLE for entry in who.get("publications", [])])
    seen = 0
    for paper in ("p1", "p2", "p3"):
        for item in explain(client, plan, f"submission={paper}"):
            if not item["assigned"]:
                continue
            seen += 1
            assert ExplanationPage().validate({"items": [item], "next": None}) == {}
            assert item["evidence_state"] == "given" and item["notes"] == []
            assert sum(part["contribution"] for part in item["parts"]) == pytest.approx(item["affinity"], abs=1e-9)
            publications = item["evidence"]["publications"]
            if publications:
                assert sum(entry["share"] for entry in publications) == pytest.approx(1.0, abs=1e-9)
            for entry in publications:
                if entry["id"]:
                    for words in (*entry["terms"], *entry["passages"]):
                        assert words in written[paper] and words in written[entry["id"]]
            assert item["standing"]["rank"] and item["standing"]["rank"] <= item["eligible"]
            assert any(f"rank {item['standing']['rank']} of {item['eligible']}" in words for words in item["summary"])
    assert seen == 6


@pytest.mark.parametrize("afresh", [False, True])
def test_over_http_and_in_python_the_explanation_is_the_same(
    client: FlaskClient, app: Flask, base: str, afresh: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pair that takes part, assigned or not; also when nothing was kept and the venue has to be read again."""
    if afresh:
        monkeypatch.setattr(evidence, "MOST_PAIRS", 0)
    plan = run(client, base, **TEXT)
    if afresh:
        evidence.forget()
    made_from, params = venue_from_snapshot(snapshot_of(app, plan)), matching.Params.from_mapping(plan["params"])
    ours = matching.recommend(made_from, params)
    for paper in ("p1", "p2", "p3", "p4"):
        for person in ("ana", "bo", "cy", "di", "eve", "hal"):
            told = matching.explanation(made_from, params, ours, paper, person).to_dict()
            wanted = next(pair for pair in told["pairs"] if pair["standing"]["reviewer"] == person)
            (item,) = explain(client, plan, f"submission={paper}&reviewer={person}")
            assert ExplanationPage().validate({"items": [item], "next": None}) == {}
            assert item["standing"] == wanted["standing"] and item["eligible"] == told["eligible"]
            assert item["evidence"] | {"affinity": item["affinity"], "parts": item["parts"]} == wanted["evidence"]
            assert item["better_placed"]["count"] == wanted["better"] == len(item["better_placed"]["people"])
            assert item["better_placed"]["by_reason"] == wanted["better_reasons"]
            value = item["affinity"]
            above = [entry for entry in told["candidates"] if value is not None and (entry["affinity"] or 0) > value]
            assert item["better_placed"]["people"] == [entry for entry in above if entry["reason"] != "assigned"]


def test_those_better_placed_are_listed_with_the_reason(client: FlaskClient) -> None:
    """A conflict, a full load, a limit of 0 and a low affinity, each in a sentence that names a fact."""
    made = venue(client, demand=1)
    people: list[dict[str, Any]] = [
        {"id": "ana", "emails": ["a@uni.example"]},
        {"id": "bo", "load_max": 1},
        {"id": "cy", "load_max": 0},
    ]
    fill(
        client,
        made,
        [*people, {"id": "di", "load_max": 1}, {"id": "eve", "load_max": 1}],
        [{"id": "p1", "authors": [{"name": "C. Doe", "email": "c@uni.example"}]}, {"id": "p2"}],
    )
    table = {("p1", "ana"): 0.9, ("p1", "bo"): 0.8, ("p2", "bo"): 0.9, ("p1", "cy"): 0.7, ("p1", "di"): 0.5}
    score(client, made, {**table, ("p2", "di"): 0.1, ("p1", "eve"): 0.2, ("p2", "eve"): 0.0, ("p2", "ana"): 0.0})
    plan = run(client, made)
    item = explain(client, plan, "submission=p1")[0]
    assert (item["reviewer"], item["standing"]["rank"], item["eligible"]) == ("di", 2, 3)
    assert item["better_placed"]["by_reason"] == {"conflict": 1, "full": 1, "no-load": 1}
    words = {entry["reviewer"]: entry["words"] for entry in item["better_placed"]["people"]}
    assert list(words) == ["ana", "bo", "cy"]
    assert "uni.example" in words["ana"] and "full: 1 of 1 reviews, on p2" in words["bo"] and "load_max" in words["cy"]
    assert "better placed and not chosen: 3" in "\n".join(item["summary"])
    price = item["better_placed"]["people"][1]["price"]
    assert price["holds"] and price["affinity"] <= price["submission_price"] + price["reviewer_price"] + 1e-6
    for person, reason in (("bo", "full"), ("ana", "conflict"), ("eve", "lower"), ("cy", "no-load")):
        (item,) = explain(client, plan, f"submission=p1&reviewer={person}")
        assert item["standing"]["reason"] == reason and item["evidence_state"] == "given"
        assert sum(part["contribution"] for part in item["parts"]) == pytest.approx(item["affinity"], abs=1e-9)


def test_people_and_papers_that_take_no_part_get_words_and_no_evidence(client: FlaskClient, base: str) -> None:
    """Never an error: the code and the sentence say what they are."""
    plan = run(client, base, **TEXT)
    for query, code in (
        ("submission=p1&reviewer=fay", "inactive"),
        ("submission=p1&reviewer=gus", "role"),
        ("submission=p5&reviewer=ana", "inactive-submission"),
        ("submission=p4&reviewer=fay", "no-demand"),
        ("submission=p5", "inactive-submission"),
        ("submission=p4", "no-demand"),
        ("reviewer=fay", "inactive"),
    ):
        (item, *_) = explain(client, plan, query)
        assert (item["code"], item["evidence_state"], item["evidence"]) == (code, "none", None)
        assert item["reasons"] and item["summary"] == []
    for query in ("submission=ghost", "submission=p1&reviewer=ghost", "reviewer=ghost"):
        refused(client.get(f"/v1/plans/{plan['id']}/explanations?{query}"), 404, "not-found")
    refused(client.get("/v1/plans/ghost/explanations?submission=p1"), 404, "not-found")
    refused(client.get(f"/v1/plans/{plan['id']}/explanations"), 422, "invalid-input")


def test_pairs_outside_the_plan_have_evidence_when_they_are_asked_for(client: FlaskClient, base: str) -> None:
    """A list says of everybody near the top where they stand, and where to ask for more."""
    plan = run(client, base, **TEXT)
    listed = {item["reviewer"]: item for item in explain(client, plan, "submission=p1")}
    assert listed["ana"]["code"] == "conflict" and listed["ana"]["evidence_state"] == "on-request"
    assert listed["ana"]["standing"]["reason"] == "conflict" and listed["fay"]["evidence_state"] == "none"
    (item,) = explain(client, plan, "submission=p1&reviewer=ana")
    assert item["evidence_state"] == "given" and item["evidence"]["publications"][0]["id"] in ("a1", "a3")
    of_person = explain(client, plan, "reviewer=cy")
    assert {item["evidence_state"] for item in of_person if item["assigned"]} == {"given"}


def test_a_name_of_an_account_finds_the_evidence_of_the_person(client: FlaskClient) -> None:
    """Aliases and addresses lead to the id under which the plan has the person."""
    made = venue(client, demand=1)
    person = {
        "id": "bo",
        "emails": ["bo@x.example"],
        "aliases": ["Old"],
        "publications": [{"id": "x", "title": "Graph kernels"}],
    }
    fill(client, made, [person, {"id": "cy", "load_max": 0}], [{"id": "p1", "title": "Kernels on graphs"}])
    plan = run(client, made, **TEXT)
    for name in ("bo", "Old", "BO@x.example"):
        (item,) = explain(client, plan, f"submission=P1&reviewer={name}")
        assert item["assigned"] and item["evidence"]["publications"][0]["title"] == "Graph kernels"


def test_evidence_is_of_the_venue_the_plan_was_made_from(client: FlaskClient, base: str) -> None:
    """What is uploaded later, and whoever is deleted, changes no number; also for a pair not asked about before."""
    plan, twin = run(client, base, **TEXT), run(client, base, **TEXT)
    query = "submission=p3&reviewer=eve"
    before = explain(client, plan, "submission=p3"), explain(client, plan, query)
    ok(client.post(f"{base}/bids", json={"bids": [{"submission": "p3", "reviewer": "eve", "bid": "very_high"}]}))
    ok(client.delete(f"{base}/reviewers/ana"))
    ok(client.delete(f"{base}/submissions/p1"))
    evidence.forget()
    assert (explain(client, plan, "submission=p3"), explain(client, plan, query)) == before
    assert (explain(client, twin, "submission=p3"), explain(client, twin, query)) == before


def test_what_is_stored_is_read_without_an_engine(
    client: FlaskClient, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web process scores nothing, and a question is worked out once."""
    plan = run(client, base, **TEXT)
    first = explain(client, plan, "submission=p2&reviewer=ana")
    evidence.forget()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("this is stored")

    monkeypatch.setattr("matching.engine.reasoner", refuse)
    assert explain(client, plan, "submission=p2&reviewer=ana") == first
    assert {item["evidence_state"] for item in explain(client, plan, "submission=p3") if item["assigned"]} == {"given"}


def test_a_worker_that_is_busy_is_no_reason_to_wait_for_long(
    client: FlaskClient, app: Flask, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer says so and when to ask again; the facts are there at once."""
    plan = run(client, base, **TEXT)
    jobs = app.extensions["revmatch"].jobs
    monkeypatch.setattr(reading, "WAIT_SECONDS", 0.1)
    jobs.paused = True
    response = client.get(f"/v1/plans/{plan['id']}/explanations?submission=p1&reviewer=ana")
    (item,) = ok(response)["items"]
    assert (item["code"], item["evidence_state"], item["evidence"]) == ("conflict", "waiting", None)
    assert response.headers["Retry-After"] == "5" and "ask again" in item["notes"][0]
    jobs.paused = False
    response = client.get(f"/v1/plans/{plan['id']}/explanations?submission=p1&reviewer=ana")
    assert ok(response)["items"][0]["evidence_state"] == "given" and "Retry-After" not in response.headers


@pytest.mark.parametrize("error", [MissingExtraError("no weights"), RuntimeError("Zora Quill")])
def test_what_cannot_be_worked_out_is_said_in_words_and_tried_again_later(
    client: FlaskClient, base: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """A worker without the model the plan was made with is no fault of whoever asks, and no 500."""
    plan = run(client, base, **TEXT)
    evidence.forget()

    def broken(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("matching.engine.reasoner", broken)
        (item,) = explain(client, plan, "submission=p1&reviewer=cy")
        assert item["evidence_state"] == "failed" and "could not be worked out" in item["notes"][0]
        assert "Zora" not in json.dumps(item)
    assert explain(client, plan, "submission=p1&reviewer=cy")[0]["evidence_state"] == "failed"  # not asked at once
    monkeypatch.setattr(reading, "AGAIN_SECONDS", -1.0)
    assert explain(client, plan, "submission=p1&reviewer=cy")[0]["evidence_state"] == "given"


def test_a_plan_that_cannot_be_full_is_explained_too(client: FlaskClient) -> None:
    """The fullest plan has pairs, and the submission that misses reviews says so."""
    made = venue(client, demand=2)
    fill(client, made, [{"id": "r1", "publications": [{"id": "x", "title": "Graph kernels"}], "load_max": 1}],
         [{"id": "p1", "title": "Kernels on graphs"}])  # fmt: skip
    plan = run(client, made, **TEXT)
    assert plan["state"] == "infeasible"
    item = explain(client, plan, "submission=p1")[0]
    assert item["assigned"] and item["evidence_state"] == "given"
    assert any("cannot be filled" in note for note in item["notes"])


def test_a_run_that_found_no_plan_still_says_where_people_stand(client: FlaskClient, base: str) -> None:
    """It has no pairs; the affinities are worked out when somebody asks."""
    plan = run(client, base, **TEXT, time_limit=1e-9)
    assert (plan["state"], plan["status"]) == ("timed_out", "limit_without_plan")
    (item,) = explain(client, plan, "submission=p2&reviewer=cy")
    assert item["evidence_state"] == "given" and item["standing"]["rank"] and item["evidence"]["publications"]


def test_somebody_kept_off_by_a_rule_is_told_which(client: FlaskClient) -> None:
    """The reason, the rule's name, its price and the sentence, for the pair and among those better placed."""
    made = venue(client, demand=2, load_max=2)
    people = [{"id": f"j{n}", "seniority": "junior"} for n in (1, 2)] + [{"id": "s1", "seniority": "senior"}]
    fill(client, made, people, [{"id": "p1"}])
    score(client, made, {("p1", "j1"): 0.9, ("p1", "j2"): 0.8, ("p1", "s1"): 0.3})
    rule = {
        "rule": "reviewers_per_submission",
        "reviewers": {"seniority": "junior"},
        "at_most": 1,
        "name": "one junior",
    }
    plan = run(client, made, rules=[rule])
    (item,) = explain(client, plan, "submission=p1&reviewer=j2")
    told = item["standing"]
    assert told["reason"] == "rule" and told["rules"] == ["one junior"]
    assert 'with them instead of s1 rule "one junior" would not hold (p1 and' in told["words"]
    price = told["price"]
    assert price["holds"] and [entry["rule"] for entry in price["rules"]] == ["one junior"]
    left = price["affinity"] - price["rules"][0]["price"]
    assert left <= price["submission_price"] + price["reviewer_price"] + 1e-6
    assert any("one junior" in words for words in item["summary"])
    better = next(one for one in explain(client, plan, "submission=p1") if one["reviewer"] == "s1")["better_placed"]
    assert better["by_reason"] == {"rule": 1} and better["people"][0]["words"] == told["words"]


def test_a_plan_without_texts_has_parts_and_standing(client: FlaskClient) -> None:
    """Imported scores are parts like any other; no publication is made up for them."""
    made = venue(client, demand=1)
    fill(
        client,
        made,
        [{"id": "r1", "publications": [{"id": "x", "title": "Graph kernels"}]}],
        [{"id": "p1", "title": "Graphs"}],
    )
    score(client, made, {("p1", "r1"): 0.4})
    item = explain(client, run(client, made), "submission=p1")[0]
    assert item["evidence"]["publications"] == [] and item["evidence"]["confidence"] == "thin"
    assert item["evidence"]["confidence_words"] == "texts are not used in this score"
    assert item["standing"]["rank"] == 1 and item["summary"][0].startswith("affinity 0.400 = ")
    assert item["summary"][2] == "nobody who is not chosen has a higher affinity"


def test_a_plan_of_many_pairs_is_explained_on_request(
    client: FlaskClient, app: Flask, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is stored unasked above a number of pairs; the first question brings it."""
    monkeypatch.setattr(evidence, "MOST_PAIRS", 5)
    plan = run(client, base, **TEXT)
    store = app.extensions["revmatch"].store
    with store.read() as connection:
        assert connection.execute(plan_evidence.select()).all() == []
    assert explain(client, plan, "submission=p1")[0]["evidence_state"] == "given"
    with store.read() as connection:
        assert [(row.submission, row.reviewer) for row in connection.execute(plan_evidence.select())] == [("p1", "")]


def test_evidence_goes_with_its_venue(client: FlaskClient, app: Flask, base: str) -> None:
    """It holds names and sentences of people; nothing may stay behind."""
    run(client, base, **TEXT)
    tag = client.get(base).headers["ETag"]
    ok(client.delete(base, headers={"If-Match": tag}), 204)
    with app.extensions["revmatch"].store.read() as connection:
        assert connection.execute(plan_evidence.select()).all() == []


def test_a_process_keeps_one_plan_in_memory(client: FlaskClient, base: str) -> None:
    """Vectors and affinities of a large venue are gigabytes."""
    plans = [run(client, base, **TEXT) for _ in range(3)]
    assert [key[1] for key in evidence._KEPT] == [plans[-1]["id"]]
    explain(client, plans[0], "submission=p1&reviewer=cy")
    assert [key[1] for key in evidence._KEPT] == [plans[0]["id"]]


def test_a_plan_ends_well_whatever_becomes_of_its_evidence(
    client: FlaskClient, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the plan that was waited for; what is missing is worked out when somebody asks."""

    def refuse(*_: Any) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(evidence, "store_findings", refuse)
        plan = run(client, base, **TEXT)
    assert plan["state"] == "succeeded"
    assert explain(client, plan, "submission=p1")[0]["evidence_state"] == "given"


def test_a_page_far_down_needs_no_second_look(client: FlaskClient, base: str) -> None:
    """Paging cuts first; each page brings the evidence of its own items."""
    plan = run(client, base, **TEXT)
    whole = explain(client, plan, "submission=p1")
    address, items = f"/v1/plans/{plan['id']}/explanations?submission=p1&limit=1", []
    page = ok(client.get(address))
    while True:
        items += page["items"]
        if page["next"] is None:
            break
        page = ok(client.get(f"{address}&cursor={page['next']}"))
    assert items == whole
