"""Several roles over HTTP: asked for, planned, stored, shown, explained and proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from service.cli import main
from tests.service.api import fill, ok, pointers, refused, run, score, venue

PEOPLE: list[dict[str, Any]] = [
    *({"id": f"r{n}", "affiliations": [f"S{n}"]} for n in range(1, 5)),
    {"id": "c1", "role": "area_chair", "affiliations": ["S1"], "load_max": 9},
    {"id": "c2", "role": "area_chair", "same_person_as": "r2", "affiliations": ["S2"]},
]
PAPERS: list[dict[str, Any]] = [
    {"id": "p1", "title": "Paper 1"}, {"id": "p2", "title": "Paper 2"},
    {"id": "p3", "title": "Paper 3", "extra": {"demand_area_chair": 0}},
]  # fmt: skip
AFFINITY = {
    (f"p{p}", name): ((7 * p + 3 * n * n) % 11 + 1) / 12
    for p in range(1, 4)
    for n, name in enumerate(["r1", "r2", "r3", "r4", "c1"])
}
ROLES = {"reviewer": {"demand": 2, "load_max": 3}, "area_chair": {"demand": 1, "load_max": 9, "weight": 2.0}}
APART = {"rule": "reviewers_per_submission", "each": "affiliation", "at_most": 1}


@pytest.fixture
def base(client: FlaskClient) -> str:
    made = venue(client, demand=3, load_max=3)
    fill(client, made, PEOPLE, PAPERS)
    score(client, made, AFFINITY)
    return made


def test_roles_go_from_the_request_to_every_answer(client: FlaskClient, base: str) -> None:
    """Assignments as JSON and CSV, alternates, options, report and explanations say who is what."""
    plan = run(client, base, roles=ROLES, rules=[APART])
    assert plan["state"] == "succeeded", plan["problem"]
    assert plan["params"]["roles"] == ROLES
    address = f"/v1/plans/{plan['id']}"
    items = ok(client.get(f"{address}/assignments"))["items"]
    assert [(item["submission"], item["role"]) for item in items] == [
        ("p1", "reviewer"), ("p1", "reviewer"), ("p1", "area_chair"), ("p2", "reviewer"), ("p2", "reviewer"),
        ("p2", "area_chair"), ("p3", "reviewer"), ("p3", "reviewer"),
    ]  # fmt: skip
    people = {"c1": "S1", "c2": "S2", **{f"r{n}": f"S{n}" for n in range(1, 5)}}
    for paper in ("p1", "p2", "p3"):
        schools = [people[item["reviewer"]] for item in items if item["submission"] == paper]
        assert len(set(schools)) == len(schools)
    text = client.get(f"{address}/assignments?format=csv").get_data(as_text=True)
    assert text.splitlines()[0] == "submission,reviewer,role,affinity,locked,reasons"
    spare = ok(client.get(f"{address}/alternates"))["items"]
    assert {(item["role"], item["reviewer"][0]) for item in spare} == {("reviewer", "r"), ("area_chair", "c")}
    told = ok(client.get(f"{address}/explanations?submission=p1"))["items"]
    chair = next(item for item in told if item.get("role") == "area_chair" and item["assigned"])
    assert chair["standing"]["role"] == "area_chair" and chair["eligible"] == 2
    idle = ok(client.get(f"{address}/explanations?submission=p3&reviewer=c1"))["items"]
    assert [item["code"] for item in idle] == ["no-demand"]


def test_the_bound_is_recomputed_from_the_answers(client: FlaskClient) -> None:
    """From the certificate, with rows named <id>/<role>, the role's weight, and locked pairs taken out."""
    base = venue(client, demand=3, load_max=3)
    fill(client, base, [entry for entry in PEOPLE if entry["id"] != "c2"], PAPERS)  # nobody with two roles: no rules
    score(client, base, AFFINITY)
    ok(client.post(f"{base}/locks", json={"locks": [{"submission": "p1", "reviewer": "c1"}]}))
    wanted = {
        "roles": ROLES,
        "affiliation_conflicts": False,
        "allow_unknown": False,
        "weights": {"areas": 0, "bids": 0},
    }
    plan = run(client, base, **wanted)
    assert plan["state"] == "succeeded", plan["problem"]
    found = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]
    assert "<id>/<role>" in found["formula"] and found["audited"] and not found["proofs"]
    rows = {entry["id"]: entry for entry in found["submissions"]}
    people = {entry["id"]: entry for entry in found["reviewers"]}
    assert set(rows) == {"p1", "p2", "p3", "p1/area_chair", "p2/area_chair", "p3/area_chair"}
    bound = found["locked_affinity"] + found["penalty"] * found["missing"]
    assert found["locked_affinity"] == pytest.approx(2.0 * AFFINITY["p1", "c1"])
    for entry in rows.values():
        bound += entry["demand"] * entry["price"] if entry["demand"] else 0.0
    for entry in people.values():
        bound += entry["load_max"] * max(entry["price"], 0.0) - entry["load_min"] * max(-entry["price"], 0.0)
    for (paper, who), affinity in AFFINITY.items():
        name, weight = (paper, 1.0) if who[0] == "r" else (f"{paper}/area_chair", 2.0)
        if rows[name]["demand"] and people[who]["load_max"] and (paper, who) != ("p1", "c1"):
            bound += max(0.0, weight * affinity - rows[name]["price"] - people[who]["price"])
    assert bound == pytest.approx(plan["bound"], abs=1e-6)


def test_plans_without_roles_say_nothing_of_them(client: FlaskClient, base: str) -> None:
    """Answers are what they were."""
    plan = run(client, base)
    assert "roles" not in plan["params"]
    items = ok(client.get(f"/v1/plans/{plan['id']}/assignments"))["items"]
    assert items and all("role" not in item for item in items)
    assert all("role" not in item for item in ok(client.get(f"/v1/plans/{plan['id']}/alternates"))["items"])
    assert b"role" not in client.get(f"/v1/plans/{plan['id']}/assignments?format=csv").data.splitlines()[0]


def test_faults_stand_at_their_place(client: FlaskClient, base: str) -> None:
    """Form at once, and what the venue contradicts as well."""
    wrong = {"boss": {}, "area_chair": {"demand": -1}, "reviewer": {"weight": "much"}}
    told = refused(client.post(f"{base}/plans", json={"roles": wrong}), 422)
    assert set(pointers(told)) == {"#/roles/boss", "#/roles/area_chair/demand", "#/roles/reviewer/weight"}
    rule = {"rule": "share_reviewers", "at_least": 1}
    told = refused(client.post(f"{base}/plans", json={"roles": ROLES, "rules": [rule]}), 422, "invalid-params")
    assert pointers(told) == ["#/rules/0/reviewers"]


def test_a_short_role_is_named_before_and_after_the_run(client: FlaskClient, base: str) -> None:
    """Readiness by count, the diagnosis with what would help."""
    wanted = {"roles": {"reviewer": {"demand": 2}, "area_chair": {"demand": 3}}}
    ready = ok(client.post(f"{base}/readiness", json=wanted))
    assert not ready["ready"]
    assert any("(area chairs) needs 3, has 2 eligible" in item["message"] for item in ready["items"])
    plan = run(client, base, **wanted)
    assert plan["state"] == "infeasible"
    diagnosis = ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))
    assert {entry["role"] for entry in diagnosis["diagnosis"]["unfilled"]} == {"area_chair"}
    assert set(diagnosis["unfilled"]) == {"p1", "p2"}


def test_a_venue_of_area_chairs_alone_is_ready_for_a_plan_of_them(client: FlaskClient) -> None:
    """Nobody is missing whom the plan does not need."""
    made = venue(client, "chairs", demand=1)
    fill(client, made, [{"id": "c1", "role": "area_chair"}], PAPERS[:2])
    assert run(client, made, roles={"area_chair": {}})["state"] == "succeeded"
    refused(client.post(f"{made}/plans", json={}), 409, "not-ready")


def test_the_command_takes_roles(tmp_path: Path) -> None:
    """--role for which and how many, the options file for the rest; the summary has a line for each."""
    folder = tmp_path / "venue"
    folder.mkdir()
    people = [{**entry, "name": entry["id"]} for entry in PEOPLE]
    (folder / "reviewers.jsonl").write_text("\n".join(map(json.dumps, people)), encoding="utf-8")
    papers = [{"id": entry["id"], "title": entry["title"], **entry.get("extra", {})} for entry in PAPERS]
    (folder / "papers.jsonl").write_text("\n".join(map(json.dumps, papers)), encoding="utf-8")
    options = tmp_path / "options.toml"
    options.write_text("[roles.area_chair]\nload_max = 9\n", encoding="utf-8")
    out = tmp_path / "plan.json"
    asked = ["plan", str(folder), "--out", str(out), "--params", str(options), "--scorer", "lexical"]
    done = CliRunner().invoke(main, [*asked, "--role", "reviewer=2", "--role", "area_chair"])
    assert done.exit_code == 0, done.output
    assert "area chairs: 2 of 2 places filled" in done.output
    kept = json.loads(out.read_text(encoding="utf-8"))
    assert kept["provenance"]["params"]["roles"] == {"area_chair": {"load_max": 9}, "reviewer": {"demand": 2}}
    shown = CliRunner().invoke(main, ["explain", str(folder), "--plan", str(out), "p1"])
    assert shown.exit_code == 0, shown.output
    assert "area chairs: 1 of 1 assigned" in shown.output and ", area chair" in shown.output
    assert CliRunner().invoke(main, ["plan", str(folder), "--role", "reviewer=many"]).exit_code == 2
