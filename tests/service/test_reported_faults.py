"""The reported faults over HTTP, from upload to plan; the same cases as on the engine, through the front door."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from flask.testing import FlaskClient

import matching
from matching.formats.records import reviewer_to_dict, submission_to_dict
from tests.service.api import fill, ok, pairs, run, score, venue


def people(*ids: str, **more: Any) -> list[dict[str, Any]]:
    return [{"id": name, **more} for name in ids]


def conflict(client: FlaskClient, base: str, *rows: tuple[str, str]) -> None:
    ok(client.post(f"{base}/conflicts", json={"conflicts": [{"submission": p, "reviewer": r} for p, r in rows]}))


def items(client: FlaskClient, address: str) -> list[dict[str, Any]]:
    return list(ok(client.get(address))["items"])


def test_b01_conflicts_hold_when_every_score_is_zero(client: FlaskClient) -> None:
    """No score, no weight and no objective lifts a conflict."""
    base = venue(client, demand=1, load_max=1)
    fill(client, base, people("r1", "r2"), people("p1", "p2"))
    score(client, base, {(p, r): 0.0 for p in ("p1", "p2") for r in ("r1", "r2")})
    conflict(client, base, ("p1", "r1"), ("p2", "r2"))
    assert pairs(client, run(client, base)["id"]) == {("p1", "r2"), ("p2", "r1")}


def test_b02_and_b04_authors_and_their_colleagues_are_kept_out(client: FlaskClient) -> None:
    """Found over a second address, whole domain labels and the alias table, with no declaration."""
    base = venue(client, demand=1, load_max=3, domain_aliases={"oldco.example": "newco.example"})
    reviewers = [
        {"id": "r1", "emails": ["a@x.example", "b@y.example"]},
        {"id": "r2", "emails": ["u@mail.cs.uni.example"]},
        {"id": "r3", "emails": ["u@oldco.example"]},
        {"id": "r4", "emails": ["u@notuni.example"]},
    ]
    authors = {"p1": "B@Y.example", "p2": "v@uni.example", "p3": "v@newco.example"}
    fill(client, base, reviewers, [{"id": name, "authors": [{"email": mail}]} for name, mail in authors.items()])
    score(client, base, {("p1", "r1"): 1.0, ("p2", "r2"): 1.0, ("p3", "r3"): 1.0, ("p2", "r4"): 0.5})
    chosen = pairs(client, run(client, base)["id"])
    assert not chosen & {("p1", "r1"), ("p2", "r2"), ("p3", "r3")} and ("p2", "r4") in chosen


def test_b05_free_mail_makes_no_colleagues(client: FlaskClient) -> None:
    """Only the very same address does."""
    base = venue(client, demand=1, load_max=2)
    authors = [
        {"id": "p1", "authors": [{"email": "bob@gmail.com"}]},
        {"id": "p2", "authors": [{"email": "ANN@gmail.com"}]},
    ]
    fill(client, base, [{"id": "r1", "emails": ["ann@gmail.com"]}, {"id": "r2"}], authors)
    score(client, base, {("p1", "r1"): 1.0, ("p2", "r1"): 1.0})
    assert pairs(client, run(client, base)["id"]) == {("p1", "r1"), ("p2", "r2")}


def test_b06_a_conflict_voids_a_bid_and_the_plan_says_so(client: FlaskClient) -> None:
    """The bid stays on record, is ignored and is listed."""
    base = venue(client, demand=1, load_max=1)
    fill(client, base, people("r1", "r2"), people("p1"))
    bids = [
        {"submission": "p1", "reviewer": "r1", "bid": "very_high"},
        {"submission": "p1", "reviewer": "r2", "bid": "very_low"},
    ]
    ok(client.post(f"{base}/bids", json={"bids": bids}))
    conflict(client, base, ("p1", "r1"))
    assert len(items(client, f"{base}/bids")) == 2
    ready = ok(client.get(f"{base}/readiness"))
    (ignored,) = [item for item in ready["items"] if item["code"] == "ignored-bid"]
    assert ignored["reviewers"] == ["r1"] and ignored["submissions"] == ["p1"]
    assert pairs(client, run(client, base, weights={"bids": 1})["id"]) == {("p1", "r2")}


def test_b14_a_minimum_is_hard_or_said_to_fail(client: FlaskClient) -> None:
    """One each; then six needed from three slots."""
    base = venue(client, demand=1, load_max=3)
    fill(client, base, people("r1", "r2", "r3", load_min=1), people("p1", "p2", "p3"))
    score(client, base, {(p, r): 0.9 if r == "r1" else 0.1 for p in ("p1", "p2", "p3") for r in ("r1", "r2", "r3")})
    plan = run(client, base)
    assert Counter(r for _, r in pairs(client, plan["id"])) == {"r1": 1, "r2": 1, "r3": 1}
    assert plan["value"] == pytest.approx(1.1)
    other = venue(client, "w", demand=1, load_max=3)
    fill(client, other, people("r1", "r2", "r3", load_min=2), people("p1", "p2", "p3"))
    plan = run(client, other)
    assert plan["state"] == "infeasible"
    diagnosis = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))["diagnosis"]
    assert sum(entry["missing"] for entry in diagnosis["load_min"]) == 3


def test_b16_an_emergency_round_adds_only_what_is_missing(client: FlaskClient) -> None:
    """Two reviews are held; one is added, by somebody else."""
    base = venue(client, demand=2, load_max=3)
    fill(client, base, people("r1", "r2", "r3", "r4"), [{"id": "p1", "demand": 0}, {"id": "p4", "demand": 3}])
    locks = [{"submission": "p4", "reviewer": name} for name in ("r1", "r2")]
    ok(client.post(f"{base}/locks", json={"locks": locks}))
    plan = run(client, base)
    chosen = items(client, f"/v1/plans/{plan['id']}/assignments")
    assert {item["submission"] for item in chosen} == {"p4"} and len(chosen) == 3
    assert {item["reviewer"] for item in chosen if item["locked"]} == {"r1", "r2"}


def test_b17_alternates_are_no_demand(client: FlaskClient) -> None:
    """Feasible; the other person is the only alternate, full; a conflicted one never is."""
    base = venue(client, demand=1, load_max=1)
    fill(client, base, people("r1", "r2", "r3"), people("p1", "p2"))
    score(client, base, {("p1", "r1"): 0.9, ("p2", "r2"): 0.9})
    conflict(client, base, ("p1", "r3"), ("p2", "r3"))
    plan = run(client, base, n_alternates=2)
    assert plan["state"] == "succeeded"
    told = items(client, f"/v1/plans/{plan['id']}/alternates")
    assert [(item["submission"], item["reviewer"], item["full"]) for item in told] == [
        ("p1", "r2", True),
        ("p2", "r1", True),
    ]


def test_b19_a_shortage_is_a_state_with_figures(client: FlaskClient) -> None:
    """Infeasible is not failed, and the numbers are a chair's."""
    base = venue(client, demand=2, load_max=1)
    fill(client, base, people("r1", "r2"), people("p1", "p2"))
    ready = ok(client.get(f"{base}/readiness"))
    assert ready["ready"] is False and any("short by 2" in item["message"] for item in ready["items"])
    plan = run(client, base)
    assert plan["state"] == "infeasible" and plan["summary"]["reviews_unfilled"] == 2
    capacity = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))["diagnosis"]["capacity"]
    assert (capacity["needed"], capacity["available"], capacity["shortfall"]) == (4, 2, 2)


def test_b20_the_one_impossible_submission_is_named(client: FlaskClient) -> None:
    """With both counts and the reason for each exclusion."""
    base = venue(client, demand=3, load_max=5)
    fill(client, base, people("r1", "r2", "r3"), people("p1", "p2", "p3", "p4"))
    conflict(client, base, ("p4", "r1"))
    diagnosis = ok(client.get(f"/v1/plans/{run(client, base)['id']}/diagnosis"))["diagnosis"]
    (entry,) = diagnosis["too_few_eligible"]
    assert (entry["submission"], entry["demand"], entry["eligible"]) == ("p4", 3, 2)
    assert entry["excluded"][0]["reviewer"] == "r1"


def test_b24_the_switch_for_unknown_pairs(client: FlaskClient) -> None:
    """Off: infeasible and the switch is named; on: one each; no scores at all: one each."""
    base = venue(client, demand=1, load_max=1)
    work = {"id": "x", "title": "graph kernels", "abstract": "kernels on graphs"}
    papers = [{"id": "p1", "title": "Kernels on graphs"}, {"id": "p2", "title": "Graph kernel machines"}]
    fill(client, base, [{"id": "r1"}, {"id": "r2", "publications": [work]}], papers)
    off = run(client, base, weights={}, allow_unknown=False)
    assert off["state"] == "infeasible"
    told = ok(client.get(f"/v1/plans/{off['id']}/diagnosis"))
    assert "allow_unknown" in " ".join(told["diagnosis"]["sentences"]) and len(told["unfilled"]) == 1
    assert run(client, base, weights={})["state"] == "succeeded"
    bare = venue(client, "bare", demand=1, load_max=1)
    fill(client, bare, people("r1", "r2"), people("p1", "p2"))
    plan = run(client, bare)
    assert set(Counter(r for _, r in pairs(client, plan["id"])).values()) == {1}


def test_b26_people_without_evidence_are_named_before_the_run(client: FlaskClient) -> None:
    """Keywords count as evidence; nobody is dropped."""
    base = venue(client, demand=4, load_max=1)
    work = {"id": "x", "title": "deep learning", "abstract": "theory"}
    reviewers = [{"id": "r1", "publications": [work]}, {"id": "r2", "keywords": ["deep learning"]}, *people("r3", "r4")]
    fill(client, base, reviewers, [{"id": "p1", "title": "Deep learning theory"}])
    ready = ok(client.get(f"{base}/readiness"))
    (item,) = [item for item in ready["items"] if item["code"] == "no-evidence"]
    assert item["reviewers"] == ["r3", "r4"] and ready["counts"]["reviewers_without_evidence"] == 2
    assert len(pairs(client, run(client, base, weights={})["id"])) == 4


def test_b27_versions_of_one_work_count_once(client: FlaskClient) -> None:
    """The preprint beside the paper does not tilt the profile."""
    base = venue(client, demand=2, load_max=1)
    a, b = ({"id": "a", "title": "Bandit ranking"}, {"id": "b", "title": "Sparse coding"})
    often = [a, a | {"id": "a2", "title": "BANDIT RANKING."}, a | {"id": "a3"}, b]
    fill(
        client,
        base,
        [{"id": "r1", "publications": [a, b]}, {"id": "r2", "publications": often}],
        [{"id": "p1", "title": "Bandits"}],
    )
    plan = run(client, base, weights={})
    values = [item["affinity"] for item in items(client, f"/v1/plans/{plan['id']}/assignments")]
    assert len(values) == 2 and values[0] == pytest.approx(values[1], abs=1e-9)


def test_b30_a_missing_pair_takes_the_tables_default_and_parts_add_up(client: FlaskClient) -> None:
    """What the solver used is what is stored and shown."""
    base = venue(client, demand=1, load_max=1)
    fill(client, base, people("r1", "r2"), people("p1"))
    rows = [{"submission": "p1", "reviewer": "r1", "score": 0.2}]
    ok(client.post(f"{base}/scores/hand", json={"scores": rows, "default": 0.5}))
    (item,) = items(client, f"/v1/plans/{run(client, base)['id']}/assignments")
    assert (item["reviewer"], item["affinity"]) == ("r2", 0.5)
    assert sum(part["contribution"] for part in item["parts"]) == pytest.approx(item["affinity"], abs=1e-9)


def test_b31_unused_bids_are_warned_about(client: FlaskClient) -> None:
    """Twenty bids and weight 0: said before the run."""
    base = venue(client, demand=1, load_max=5)
    fill(client, base, people(*(f"r{n}" for n in range(5))), people(*(f"p{n}" for n in range(4))))
    bids = [{"submission": f"p{p}", "reviewer": f"r{r}", "bid": "high"} for p in range(4) for r in range(5)]
    ok(client.post(f"{base}/bids", json={"bids": bids}))
    ready = ok(client.post(f"{base}/readiness", json={"weights": {"text": 1, "bids": 0}}))
    assert any("20 bids present, weight 0" in item["message"] for item in ready["items"])


def test_b34_and_b36_results_are_in_ids_even_and_repeatable(client: FlaskClient) -> None:
    """Ids whose order is not their rows'; equal scores give one each, the same each time."""
    base = venue(client, demand=1, load_max=3)
    fill(client, base, people("r3", "r1", "r20"), people("p10", "p2", "p1"))
    score(client, base, {("p10", "r3"): 1.0, ("p2", "r1"): 1.0, ("p1", "r20"): 1.0})
    assert pairs(client, run(client, base)["id"]) == {("p10", "r3"), ("p2", "r1"), ("p1", "r20")}
    flat = venue(client, "flat", demand=1, load_max=3)
    fill(client, flat, people("r1", "r2", "r3", "r4"), people("p1", "p2", "p3", "p4"))
    first, again = (pairs(client, run(client, flat, rng=7)["id"]) for _ in range(2))
    assert first == again and set(Counter(r for _, r in first).values()) == {1}


def test_b37_close_scores_stay_apart(client: FlaskClient) -> None:
    """0.5049 against 0.5001."""
    base = venue(client, demand=1, load_max=1)
    fill(client, base, people("r1", "r2"), people("p1", "p2"))
    score(client, base, {("p1", "r1"): 0.5049, ("p2", "r2"): 0.5049, ("p1", "r2"): 0.5001, ("p2", "r1"): 0.5001})
    plan = run(client, base)
    assert pairs(client, plan["id"]) == {("p1", "r1"), ("p2", "r2")} and plan["value"] == pytest.approx(
        1.0098, abs=1e-12
    )


def test_a_whole_venue_gives_the_same_plan_over_http_as_in_python(client: FlaskClient) -> None:
    """The fixture, uploaded record by record through the API's own schemas."""
    given = matching.load_fixture("icml2026")
    base = venue(client, demand=3, load_max=6, domain_aliases=dict(given.domain_aliases))
    fill(
        client,
        base,
        [reviewer_to_dict(entry) for entry in given.reviewers],
        [submission_to_dict(entry) for entry in given.submissions],
    )
    bids = [{"submission": bid.submission, "reviewer": bid.reviewer, "bid": bid.bid} for bid in given.bids]
    ok(client.post(f"{base}/bids", json={"bids": bids}))
    declared = [
        {"submission": entry.submission, "reviewer": entry.reviewer, "rule": entry.rule, "evidence": entry.evidence}
        for entry in given.conflicts
    ]
    ok(client.post(f"{base}/conflicts", json={"conflicts": declared}))
    plan = run(client, base, weights={})
    here = matching.recommend(given)
    assert pairs(client, plan["id"]) == {(pair.submission, pair.reviewer) for pair in here.assignments}
    assert plan["value"] == pytest.approx(here.value, abs=1e-5) and plan["gap"] == 0.0
