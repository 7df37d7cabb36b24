"""The certificate: with the affinities at hand, a few lines recompute the bound."""

from __future__ import annotations

import itertools
import math
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


def _weighted(proof: dict[str, Any], certificate: dict[str, Any]) -> float:
    """B of one proof, written down from the formula in the answer; without locks and missing reviews."""
    row, u, w = dict(proof["weights"]), proof["submission_prices"], proof["reviewer_prices"]
    wish, anchor = proof["objective"], {(p, r): number for p, r, number in proof.get("anchor", ())}
    term = 0.0
    if anchor:
        term = 2.0 * wish["beta"] if wish["name"] == "perturbed" else wish["radius"] * wish["standard_error"]
    for entry in proof["constraints"]:
        for name, z in entry["weights"].items():
            row[name] = row.get(name, 0.0) + entry["multiplier"] * z
    total = sum(entry["demand"] * u[entry["id"]] for entry in certificate["submissions"])
    total += _paid_by_people(certificate, w)
    if wish["name"] == "perturbed":
        total += wish["beta"] * sum(number**2 for number in anchor.values())
    if wish["name"] == "robust":
        assert sum(number**2 for number in anchor.values()) <= 1.0 + 1e-9
    for (p, r), s in LAWFUL.items():
        if r not in w:
            continue
        worth = row.get(p, 0.0) * s - term * anchor.get((p, r), 0.0) - _paid_by_rules(proof, p, r)
        total += wish.get("cap", 1.0) * max(0.0, worth - u[p] - w[r])
    paid = sum(rule["price"] * rule.get("at_most", rule.get("at_least")) for rule in proof["rule_prices"])
    return float(total + paid)


def _paid_by_rules(proof: dict[str, Any], submission: str, reviewer: str) -> float:
    """Prices of the one rule used here, which counts seniors on each submission."""
    if reviewer not in SENIORS:
        return 0.0
    return float(sum(rule["price"] for rule in proof["rule_prices"] if rule["submissions"] == submission))


def _paid_by_people(certificate: dict[str, Any], w: dict[str, float]) -> float:
    people = certificate["reviewers"]
    return float(
        sum(one["load_max"] * max(w[one["id"]], 0) - one["load_min"] * max(-w[one["id"]], 0) for one in people)
    )


def _conjugate(measure: str, numbers: dict[str, Any], weights: dict[str, float]) -> float:
    inside = [name for name in NAMES if name not in numbers.get("without", ())]
    if measure == "floors":
        return -sum(weight * numbers["floors"][name] for name, weight in weights.items())
    if measure == "shortfall":
        return float(sum((1.0 - weights.get(name, 0.0)) * numbers["t"] for name in inside))
    if measure == "level":
        assert sum(weights.values()) == pytest.approx(1.0, abs=1e-9)
    if measure in ("level", "total"):
        return 0.0
    assert measure == "welfare" and numbers["alpha"] == 1.0
    return sum(-math.log(weights[name] * numbers["unit"]) - 1.0 for name in inside)


def _best_sets(proof: dict[str, Any], certificate: dict[str, Any]) -> float:
    """Each submission's best pair of people at the prices of the reviewers."""
    w = proof["reviewer_prices"]
    total = _paid_by_people(certificate, w)
    for name in NAMES:
        people = [r for p, r in LAWFUL if p == name and r in w]
        total += max(
            _worth(proof, name, LAWFUL[name, a] + LAWFUL[name, b]) - w[a] - w[b]
            for a, b in itertools.combinations(people, 2)
        )
    earlier = [entry for entry in proof["constraints"] if entry["measure"] in ("total", "shortfall")]
    return float(total - sum(entry["multiplier"] * entry["at_least"] for entry in earlier))


def _worth(proof: dict[str, Any], name: str, reached: float) -> float:
    """What a sum is worth to the measure and the constraints of a proof; -inf where a set is left out."""
    if proof["measure"] == "welfare":
        return math.log(reached / proof["numbers"]["unit"])
    out = 0.0
    for entry in ({**proof, "multiplier": 1.0, "at_least": proof.get("height")}, *proof["constraints"]):
        measure, numbers = entry["measure"], entry["numbers"]
        if measure == "total":
            out += entry["multiplier"] * reached
        elif measure == "shortfall":
            out += entry["multiplier"] * min(reached, numbers["t"])
        elif name not in numbers.get("without", ()):
            floor = numbers["floors"].get(name, -math.inf) if measure == "floors" else 0.0
            if reached < floor + entry["at_least"] - 1e-12:
                return -math.inf
    return out


NAMES = ("p1", "p2", "p3", "p4")
PEOPLE = ("r1", "r2", "r3", "r4", "r5")
LAWFUL = {(p, r): (7 * i * i + 5 * i + 11 * j * j + 3 * i * j) % 16 / 16 + 0.0625
          for i, p in enumerate(NAMES, 1) for j, r in enumerate(PEOPLE, 1)}  # fmt: skip


@pytest.mark.parametrize(
    ("objective", "people", "whole"),
    [
        ("welfare", 5, False), (["maximin", "total"], 5, False), ("leximin", 5, False), ("leximin", 4, False),
        ({"name": "threshold", "t": 1.2}, 5, False), ({"name": "threshold", "t": 1.5}, 4, True),
        (["maximin", "total"], 4, True), ([{"name": "maximin", "loss": 0.2}, "total"], 5, False),
        (["total", "maximin"], 5, False),
        ({"name": "randomised", "cap": 0.6}, 5, False), ({"name": "perturbed", "beta": 0.4, "cap": 0.7}, 5, False),
        ({"name": "robust", "standard_error": 0.2, "radius": 1.5}, 5, False),
    ],
)  # fmt: skip
def test_bounds_of_other_objectives_are_recomputed_from_the_answer_alone(
    client: FlaskClient, objective: Any, people: int, whole: bool
) -> None:
    """With affinities at hand a reader needs neither the library nor the venue's records."""
    base = venue(client, demand=2, load_max=2)
    fill(client, base, [{"id": name} for name in PEOPLE[:people]], [{"id": name} for name in NAMES])
    score(client, base, {(p, r): value for (p, r), value in LAWFUL.items() if r in PEOPLE[:people]})
    plan = run(client, base, objective=objective)
    certificate = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]
    assert certificate["proofs"]
    assert any(proof["whole"] for proof in certificate["proofs"]) == whole
    for proof in certificate["proofs"]:
        if proof["whole"]:
            found = _best_sets(proof, certificate)
            if proof["measure"] == "level":
                assert found < 0.0
                found = proof["height"]
        else:
            found = _conjugate(proof["measure"], proof["numbers"], proof["weights"]) + _weighted(proof, certificate)
            for entry in proof["constraints"]:
                least = _conjugate(entry["measure"], entry["numbers"], entry["weights"]) - entry["at_least"]
                found += entry["multiplier"] * least
        if proof["measure"] == "welfare":
            found = proof["numbers"]["unit"] * math.exp(found / len(NAMES))
        assert found == pytest.approx(proof["bound"], rel=1e-7)


SENIORS = ("r2", "r4")
SENIOR_ON_EACH = {"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 1}


@pytest.mark.parametrize(
    "objective",
    [
        {"name": "randomised", "cap": 0.6}, {"name": "perturbed", "beta": 0.4, "cap": 0.7},
        {"name": "robust", "standard_error": 0.2, "radius": 1.5},
    ],
)  # fmt: skip
def test_a_lottery_under_rules_is_recomputed_from_the_answer_alone(client: FlaskClient, objective: Any) -> None:
    """The bound from prices of rules and anchor, the probabilities from the plans that are drawn from."""
    base = venue(client, demand=2, load_max=2)
    people = [{"id": name, "seniority": "senior" if name in SENIORS else "student"} for name in PEOPLE]
    fill(client, base, people, [{"id": name} for name in NAMES])
    score(client, base, LAWFUL)
    plan = run(client, base, objective=objective, rules=[SENIOR_ON_EACH])
    certificate = ok(client.get(f"/v1/plans/{plan['id']}/certificate"))["certificate"]
    (proof,) = certificate["proofs"]
    assert _weighted(proof, certificate) == pytest.approx(proof["bound"], rel=1e-6)
    assert proof["rule_prices"] and "lottery" in certificate["formula"]
    assert ("lottery" in proof) == (objective["name"] != "robust")
    if "lottery" not in proof:
        return
    chances: dict[tuple[str, str], float] = {}
    for drawn in proof["lottery"]["plans"]:
        pairs = [tuple(proof["lottery"]["pairs"][place]) for place in drawn["pairs"]]
        assert all(any((name, senior) in pairs for senior in SENIORS) for name in NAMES)
        for pair in pairs:
            chances[pair] = chances.get(pair, 0.0) + drawn["chance"]
    listed = ok(client.get(f"/v1/plans/{plan['id']}/probabilities?limit=100"))["items"]
    assert chances == pytest.approx({(one["submission"], one["reviewer"]): one["probability"] for one in listed})
    value = sum(chance * LAWFUL[pair] for pair, chance in chances.items())
    if objective["name"] == "perturbed":
        value -= objective["beta"] * sum(chance**2 for chance in chances.values())
    assert value == pytest.approx(proof["value"]) and proof["gap"] <= 1e-5 * value
