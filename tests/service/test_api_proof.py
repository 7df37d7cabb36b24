"""The certificate: with the affinities at hand, a few lines recompute the bound."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.service.api import fill, ok, run, score, venue

SCORES = {
    ("p1", "r1"): 0.75, ("p1", "r2"): 0.25, ("p1", "r3"): 0.5,
    ("p2", "r1"): 0.5, ("p2", "r2"): 0.125, ("p2", "r3"): 0.625,
    ("p3", "r1"): 0.875, ("p3", "r2"): 0.375, ("p3", "r3"): 0.25,
}  # fmt: skip
BARRED = {("p3", "r1")}


def bound(certificate: dict[str, Any], locked: set[tuple[str, str]]) -> float:
    """The formula in the answer, written down."""
    demand = {entry["id"]: entry for entry in certificate["submissions"] if entry["demand"]}
    loads = {entry["id"]: entry for entry in certificate["reviewers"] if entry["load_max"]}
    total = sum(entry["demand"] * entry["price"] for entry in demand.values())
    for entry in loads.values():
        total += entry["load_max"] * max(entry["price"], 0) - entry["load_min"] * max(-entry["price"], 0)
    for pair, affinity in SCORES.items():
        if pair not in BARRED | locked and pair[0] in demand and pair[1] in loads:
            total += max(0.0, affinity - demand[pair[0]]["price"] - loads[pair[1]]["price"])
    return float(total + certificate["penalty"] * certificate["missing"] + certificate["locked_affinity"])


@pytest.mark.parametrize(
    ("options", "locked"),
    [
        ({}, set()),
        ({"demand": 2, "load_max": 2}, set()),
        ({"load_min": 1}, set()),
        ({"load_max": 2, "load_min": 1}, {("p2", "r2")}),
        ({"demand": 2}, {("p1", "r2"), ("p2", "r1")}),
        ({"demand": 3, "load_max": 1}, set()),
    ],
)
def test_the_bound_is_recomputed_from_the_answer_alone(
    client: FlaskClient, options: dict[str, Any], locked: set[tuple[str, str]]
) -> None:
    """Also with locks, minimal loads, and where no full plan exists."""
    base = venue(client, demand=1, load_max=2)
    fill(client, base, [{"id": name} for name in ("r1", "r2", "r3")], [{"id": name} for name in ("p1", "p2", "p3")])
    score(client, base, SCORES)
    ok(client.post(f"{base}/conflicts", json={"conflicts": [{"submission": p, "reviewer": r} for p, r in BARRED]}))
    locks = [{"submission": p, "reviewer": r} for p, r in sorted(locked)]
    plan = run(client, base, **options, locks=locks)
    proof = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))
    certificate = proof["certificate"]
    assert bound(certificate, locked) == pytest.approx(proof["bound"], abs=1e-9)
    assert proof["gap"] == pytest.approx(proof["bound"] - proof["value"], abs=1e-9)
    assert certificate["locked_affinity"] == pytest.approx(sum(SCORES[pair] for pair in locked))
    assert (certificate["missing"] > 0) == (plan["state"] == "infeasible")
    assert "bound = " in certificate["formula"] and certificate["audited"] is True
    assert {entry["id"]: entry["price"] for entry in certificate["reviewers"]} == certificate["reviewer_prices"]


def test_plan_certificate_and_library_show_one_hash(client: FlaskClient) -> None:
    """Equal input, equal hash; null before there is a result, whatever limit the server adds."""
    base = venue(client, demand=1)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])
    score(client, base, {("p1", "r1"): 0.5})
    first, second = run(client, base), run(client, base, time_limit=5)
    assert len(first["input_hash"]) == 64 and first["input_hash"] == second["input_hash"]
    assert run(client, base, rng=1)["input_hash"] != first["input_hash"]
    proof = ok(client.get(f"/v1/plans/{first['id']}/certificate"))
    assert proof["input_hash"] == proof["provenance"]["input_hash"] == first["input_hash"]
    assert proof["venue_hash"] == first["venue_hash"] != first["input_hash"]
    assert proof["provenance"]["params"] == first["params"]
