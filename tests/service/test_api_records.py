"""Venues, reviewers and submissions over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.service.api import fill, ok, pairs, path, pointers, refused, run, score, venue

BAD_COUNTS: list[Any] = [2.5, 3.0, True, -1, "three", "3", [3], {"n": 3}, 2**31, 10**400]


@pytest.mark.parametrize("value", BAD_COUNTS)
@pytest.mark.parametrize("field", ["load_max", "load_min"])
def test_b43_a_load_that_is_no_count_is_refused(client: FlaskClient, field: str, value: Any) -> None:
    """B43: 2.34 must not become 2 nor true 1."""
    base = venue(client)
    problem = refused(client.post(f"{base}/reviewers", json={"id": "r1", field: value}), 422, "invalid-request")
    assert pointers(problem) == [f"#/{field}"]
    assert ok(client.get(f"{base}/reviewers"))["items"] == []


@pytest.mark.parametrize("value", BAD_COUNTS)
def test_b43_a_demand_that_is_no_count_is_refused(client: FlaskClient, value: Any) -> None:
    """B43: the same for submissions, venues and plans."""
    base = venue(client)
    problem = refused(client.post(f"{base}/submissions", json={"submissions": [{"id": "p1", "demand": value}]}), 422)
    assert pointers(problem) == ["#/submissions/0/demand"]
    refused(client.post("/v1/venues", json={"id": "w", "demand": value}), 422)
    refused(client.post(f"{base}/plans", json={"demand": value}), 422)


def test_every_fault_of_an_upload_is_told_at_once(client: FlaskClient) -> None:
    """B11: form and meaning in one answer, each at its place; nothing is stored."""
    base = venue(client)
    ok(client.post(f"{base}/reviewers", json={"id": "old"}), 201)
    rows: list[Any] = [
        {"id": "a", "load_max": 2.5, "emails": "not a list"},
        {"id": "b"},
        {"name": "without id"},
        {"id": "b", "load_max": 3},
        {"id": "old"},
        7,
        {"id": "c", "publications": [{"id": "x"}, {"id": "y", "year": "2020"}], "loadmax": 1},
    ]
    problem = refused(client.post(f"{base}/reviewers", json={"reviewers": rows}), 422)
    places = set(pointers(problem))
    assert places >= {
        "#/reviewers/0/load_max", "#/reviewers/0/emails", "#/reviewers/2/id", "#/reviewers/3/id", "#/reviewers/4/id",
        "#/reviewers/5", "#/reviewers/6/publications/1/year", "#/reviewers/6/loadmax",
    }  # fmt: skip
    twice = next(fault for fault in problem["errors"] if fault.get("pointer") == "#/reviewers/3/id")
    assert "1" in twice["detail"], "the other row is named as the sender counts it"
    assert [item["id"] for item in ok(client.get(f"{base}/reviewers"))["items"]] == ["old"]


def test_b09_the_same_id_twice_names_both_rows(client: FlaskClient) -> None:
    """B09: an id names one record."""
    base = venue(client)
    rows = [{"id": "r1", "load_max": 1}, {"id": "r2"}, {"id": "r1", "load_max": 2}]
    problem = refused(client.post(f"{base}/reviewers", json={"reviewers": rows}), 422)
    fault = next(fault for fault in problem["errors"] if fault["row"] == 2)
    assert fault["pointer"] == "#/reviewers/2/id"
    assert "0" in fault["detail"]
    assert ok(client.get(f"{base}/reviewers"))["items"] == []


def test_b09_one_address_on_two_accounts_is_a_warning(client: FlaskClient) -> None:
    """B09: a probable duplicate is told and stored."""
    base = venue(client)
    rows = [{"id": "r1", "emails": ["a@x.example"]}, {"id": "r2", "emails": ["A@X.example"]}]
    done = ok(client.post(f"{base}/reviewers", json={"reviewers": rows}), 201)
    assert done["created"] == 2
    assert any({"r1", "r2"} <= set(warning.get("reviewers", ())) for warning in done["warnings"])


def test_an_id_that_is_stored_already_is_409(client: FlaskClient) -> None:
    """A second upload of the same file must not double anything."""
    base = venue(client)
    rows = [{"id": "r1"}, {"id": "r2"}]
    ok(client.post(f"{base}/reviewers", json={"reviewers": rows}), 201)
    problem = refused(
        client.post(f"{base}/reviewers", json={"reviewers": [{"id": "r0"}, *rows]}), 409, "state-conflict"
    )
    assert set(pointers(problem)) == {"#/reviewers/1/id", "#/reviewers/2/id"}
    assert len(ok(client.get(f"{base}/reviewers"))["items"]) == 2
    refused(client.post("/v1/venues", json={"id": "v"}), 409, "state-conflict")


def test_b12_zero_null_and_absent_survive_a_round_trip(client: FlaskClient) -> None:
    """B12: 0 means none at all, null and absent mean the default."""
    base = venue(client)
    rows = [{"id": "zero", "load_max": 0}, {"id": "null", "load_max": None}, {"id": "absent"}]
    ok(client.post(f"{base}/reviewers", json={"reviewers": rows}), 201)
    assert [ok(client.get(f"{base}/reviewers/{row['id']}"))["load_max"] for row in rows] == [0, None, None]


def test_b12_a_load_of_zero_means_no_papers(client: FlaskClient) -> None:
    """B12: the people who said no get nothing, however well they fit."""
    base = venue(client, demand=1)
    reviewers = [{"id": "r1", "load_max": 0}, {"id": "r2", "load_max": 2}, {"id": "r3", "load_max": 2}]
    fill(client, base, reviewers, [{"id": "p1"}, {"id": "p2"}])
    score(client, base, {(p, r): s for p in ("p1", "p2") for r, s in (("r1", 0.9), ("r2", 0.3), ("r3", 0.2))})
    plan = run(client, base)
    assert plan["state"] == "succeeded"
    assert pairs(client, plan["id"]) == {("p1", "r2"), ("p2", "r2")}
    assert plan["value"] == pytest.approx(0.6)


def test_b12_all_loads_zero_is_infeasible_and_no_crash(client: FlaskClient) -> None:
    """B12: the same venue with nobody left ends as infeasible, with a diagnosis to read."""
    base = venue(client, demand=1)
    fill(client, base, [{"id": "r1", "load_max": 0}, {"id": "r2", "load_max": 0}], [{"id": "p1"}])
    plan = run(client, base)
    assert plan["state"] == "infeasible"
    assert ok(client.get(f"/v1/plans/{plan['id']}/diagnosis"))["diagnosis"]
    assert pairs(client, plan["id"]) == set()


def test_b13_the_smaller_of_personal_and_global_limit_holds(client: FlaskClient) -> None:
    """B13: personal 6 under a global 4 is 4, personal 2 stays 2."""
    base = venue(client, demand=1, load_max=4)
    reviewers = [{"id": "r1", "load_max": 6}, {"id": "r2", "load_max": 2}]
    submissions = [{"id": f"p{i}"} for i in range(6)]
    fill(client, base, reviewers, submissions)
    score(client, base, {(f"p{i}", r): 0.5 for i in range(6) for r in ("r1", "r2")})
    plan = run(client, base)
    assert plan["state"] == "succeeded"
    loads = [r for _, r in pairs(client, plan["id"])]
    assert (loads.count("r1"), loads.count("r2")) == (4, 2)


@pytest.mark.parametrize("text", ["", "  \n", None])
def test_b25_missing_texts_are_stored_and_listed(client: FlaskClient, text: str | None) -> None:
    """B25: a submission without text is no reason to refuse the others."""
    base = venue(client, demand=1)
    reviewers = [
        {
            "id": "r1",
            "publications": [{"id": "a", "title": text, "abstract": text}, {"id": "b", "abstract": "graph theory"}],
        }
    ]
    fill(
        client,
        base,
        reviewers,
        [{"id": "p1", "title": text, "abstract": text}, {"id": "p2", "abstract": "graph theory"}],
    )
    stored = ok(client.get(f"{base}/submissions/p1"))["abstract"]
    assert isinstance(stored, str) and not stored.strip()
    ready = ok(client.get(f"{base}/readiness"))
    assert any("p1" in item["submissions"] for item in ready["items"])
    plan = ok(client.post(f"{base}/plans", json={}, headers={"Prefer": "wait=20"}), 201)
    assert plan["state"] == "succeeded"


def test_b25_an_empty_vocabulary_is_no_crash(client: FlaskClient) -> None:
    """B25: nothing but stop words or digits: everything unscored, the run ends."""
    base = venue(client, demand=1)
    fill(
        client,
        base,
        [{"id": "r1", "publications": [{"id": "a", "abstract": "the of and"}]}, {"id": "r2"}],
        [{"id": "p1", "abstract": "the of and"}, {"id": "p2", "abstract": "1 2"}],
    )
    plan = ok(client.post(f"{base}/plans", json={}, headers={"Prefer": "wait=20"}), 201)
    assert plan["state"] == "succeeded"
    ok(client.get(f"/v1/plans/{plan['id']}/assignments"))


ODD_IDS = [
    "~Ada_Quell1",
    "ada+x@uni.example",
    "a b",
    "p.1",
    "Zoë",
    "日本",
    "a%2Fb",
    "100%",
    "a?b#c",
    "...",
    "x" * 200,
    "a;b=c,d",
]


@pytest.mark.parametrize("name", ODD_IDS)
def test_ids_of_other_systems_name_records(client: FlaskClient, name: str) -> None:
    """Ids hold what other systems put into them, and stay reachable."""
    base = venue(client, name)
    assert base == path("venues", name)
    location = client.post(f"{base}/reviewers", json={"id": name, "name": "N"}).headers["Location"]
    assert ok(client.get(location))["id"] == name
    assert ok(client.get(f"{base}/reviewers/{quote(name, safe='')}"))["id"] == name


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", " a", "a ", "a\nb", "\x7f", "x" * 201, 3, None, ["a"]])
def test_ids_that_break_addresses_are_refused(client: FlaskClient, name: Any) -> None:
    """A record nobody could address afterwards is not stored."""
    base = venue(client)
    problem = refused(client.post(f"{base}/submissions", json={"submissions": [{"id": name}]}), 422)
    assert pointers(problem) == ["#/submissions/0/id"]


def test_one_record_or_many_are_added_by_the_same_route(client: FlaskClient) -> None:
    """A bare object is an upload of one, with its address in the answer."""
    base = venue(client)
    one = client.post(f"{base}/reviewers", json={"id": "r 1"})
    assert ok(one, 201)["created"] == 1
    assert one.headers["Location"] == "/v1/venues/v/reviewers/r%201"
    assert ok(client.get(one.headers["Location"]))["id"] == "r 1"
    refused(client.post(f"{base}/reviewers", json={"reviewers": []}), 422)
    refused(client.post(f"{base}/reviewers", json={"reviewers": {"id": "x"}}), 422)
    problem = refused(client.post(f"{base}/reviewers", json={"reviewers": [{"id": "x"}], "note": 1}), 422)
    assert pointers(problem) == ["#/note"]


def test_a_dry_run_checks_everything_and_stores_nothing(client: FlaskClient) -> None:
    """?dry_run=true answers as the real thing would."""
    base = venue(client)
    assert ok(client.post(f"{base}/reviewers?dry_run=true", json={"id": "r1"}), 201)["created"] == 1
    refused(client.post(f"{base}/reviewers?dry_run=true", json={"id": ""}), 422)
    assert ok(client.get(f"{base}/reviewers"))["items"] == []
    ok(client.post("/v1/venues?dry_run=true", json={"id": "w"}), 201)
    refused(client.get("/v1/venues/w"), 404, "not-found")


def test_a_list_comes_in_pages_without_gaps(make_app: Callable[..., Flask]) -> None:
    """Following next, or the Link header, visits everything once."""
    client = make_app(page_limit=10).test_client()
    base = venue(client)
    ok(client.post(f"{base}/reviewers", json={"reviewers": [{"id": f"r{i}"} for i in range(23)]}), 201)
    seen: list[str] = []
    address = f"{base}/reviewers?limit=10"
    for _ in range(5):
        response = client.get(address)
        page = ok(response)
        seen += [item["id"] for item in page["items"]]
        if page["next"] is None:
            assert "Link" not in response.headers
            break
        address, _, relation = response.headers["Link"].partition(">; ")
        assert relation == 'rel="next"'
        address = address.removeprefix("<")
    assert sorted(seen) == sorted(f"r{i}" for i in range(23))
    problem = refused(client.get(f"{base}/reviewers?limit=11"), 422)
    assert pointers(problem) == ["limit"]
    for bad in ("limit=0", "limit=-1", "limit=x", "limit=1.5", "cursor=nonsense", "cursor="):
        refused(client.get(f"{base}/reviewers?{bad}"), 422)


def test_a_record_is_replaced_only_by_who_has_seen_it(client: FlaskClient) -> None:
    """ETag and If-Match: no change is lost."""
    base = venue(client)
    ok(client.post(f"{base}/reviewers", json={"id": "r1", "name": "old"}), 201)
    address = f"{base}/reviewers/r1"
    first = client.get(address)
    tag = first.headers["ETag"]
    assert "etag" not in ok(first)
    unchanged = client.get(address, headers={"If-None-Match": tag})
    assert unchanged.status_code == 304 and unchanged.get_data() == b""
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200

    refused(client.put(address, json={"name": "new"}), 428, "precondition-required")
    refused(client.put(address, json={"name": "new"}, headers={"If-Match": '"other"'}), 412, "precondition-failed")
    replaced = client.put(address, json={"name": "new"}, headers={"If-Match": tag})
    assert ok(replaced)["name"] == "new"
    assert replaced.headers["ETag"] != tag
    refused(client.put(address, json={"name": "newer"}, headers={"If-Match": tag}), 412)
    ok(client.put(address, json={"id": "r1", "name": "newest"}, headers={"If-Match": "*"}))
    refused(client.put(address, json={"id": "r2"}, headers={"If-Match": "*"}), 422)
    refused(client.put(f"{base}/reviewers/nobody", json={}, headers={"If-Match": "*"}), 404, "not-found")

    refused(client.delete(address, headers={"If-Match": tag}), 412)
    ok(client.delete(address))
    refused(client.get(address), 404, "not-found")
    refused(client.delete(address), 404, "not-found")


def test_faults_of_a_single_record_point_into_it(client: FlaskClient) -> None:
    """No list, no row."""
    base = venue(client)
    ok(client.post(f"{base}/submissions", json={"id": "p1"}), 201)
    address = f"{base}/submissions/p1"
    problem = refused(
        client.put(address, json={"authors": [{"name": " "}], "demand": -1}, headers={"If-Match": "*"}), 422
    )
    assert set(pointers(problem)) == {"#/authors/0", "#/demand"}


def test_a_venue_is_changed_in_part(client: FlaskClient) -> None:
    """PATCH keeps what it does not name."""
    base = venue(client, demand=2, load_max=5, name="V")
    tag = client.get(base).headers["ETag"]
    refused(client.patch(base, json={"load_max": 4}), 428)
    changed = client.patch(base, json={"load_max": 4}, headers={"If-Match": tag})
    kept = ok(changed)
    assert (kept["demand"], kept["load_max"], kept["name"]) == (2, 4, "V")
    merge = {"Content-Type": "application/merge-patch+json", "If-Match": "*"}
    ok(client.patch(base, data='{"demand": 1}', headers=merge))
    refused(client.patch(base, json={"load_min": 9}, headers={"If-Match": "*"}), 422)
    deleted = client.delete(base)
    assert deleted.status_code == 204 and deleted.get_data() == b""
    refused(client.get(base), 404, "not-found")


def test_every_field_comes_back_as_it_was_sent(client: FlaskClient) -> None:
    """Nothing is dropped or renamed on the way."""
    base = venue(client)
    reviewer = {
        "id": "r1", "name": "Zoë", "emails": ["z@x.example"], "aliases": ["old"], "role": "reviewer",
        "publications": [{"id": "a", "title": "T", "abstract": "A", "year": 2020, "weight": 0.5}],
        "keywords": ["k"], "areas": ["x", "y"], "seniority": "senior", "country": "FR", "affiliations": ["U"],
        "load_min": 1, "load_max": 2, "same_person_as": None, "conflict_domains": ["u.example"], "active": False,
        "extra": {"n": [1, 2.5, None, {"deep": True}]},
    }  # fmt: skip
    submission = {
        "id": "p1", "title": "T", "abstract": "A",
        "authors": [{"name": "N", "email": "n@y.example", "affiliation": "", "id": None}],
        "areas": ["x"], "keywords": [], "track": "main", "demand": 0, "active": True, "extra": {},
    }  # fmt: skip
    fill(client, base, [reviewer], [submission])
    assert ok(client.get(f"{base}/reviewers/r1")) == reviewer
    assert ok(client.get(f"{base}/submissions/p1")) == submission


@pytest.mark.parametrize("tag", ['"1', '1"', "1", '"1",2', "", "W/1"])
def test_an_if_match_that_is_no_list_of_etags_is_refused(client: FlaskClient, tag: str) -> None:
    """A broken header must not be taken for the version it resembles."""
    base = venue(client)
    ok(client.post(f"{base}/reviewers", json={"id": "r1"}), 201)
    problem = refused(client.put(f"{base}/reviewers/r1", json={}, headers={"If-Match": tag}), 422, "invalid-input")
    assert problem["errors"][0]["parameter"] == "If-Match"


def test_an_if_match_may_name_several_versions(client: FlaskClient) -> None:
    """One of them has to be the stored one; a weak one never is."""
    base = venue(client)
    refused(client.patch(base, json={"demand": 1}, headers={"If-Match": 'W/"1"'}), 412)
    ok(client.patch(base, json={"demand": 1}, headers={"If-Match": '"7", "1"'}))


@pytest.mark.parametrize(
    ("aliases", "places"),
    [
        ({"": "x.example"}, {"#/domain_aliases/"}),
        ({" ": "x.example"}, {"#/domain_aliases/%20"}),
        ({"x.example": " "}, {"#/domain_aliases/x.example"}),
        ({"x.example": None}, {"#/domain_aliases/x.example"}),
        ({"x" * 254: "y.example"}, {f"#/domain_aliases/{'x' * 254}"}),
        ({"a.example": "A.Example"}, {"#/domain_aliases/a.example"}),
        (
            {"a.example": "b.example", "B.example": "a.example", "c.example": "a.example"},
            {"#/domain_aliases/a.example", "#/domain_aliases/B.example"},
        ),
    ],
)
def test_domain_aliases_are_domains_and_come_to_an_end(
    client: FlaskClient, aliases: dict[str, str | None], places: set[str]
) -> None:
    """Capitals and blanks do not hide a circle."""
    problem = refused(client.post("/v1/venues", json={"id": "v", "domain_aliases": aliases}), 422, "invalid-request")
    assert set(pointers(problem)) == places
    ok(
        client.post(
            "/v1/venues", json={"id": "v", "domain_aliases": {"a.example": "b.example", "b.example": "c.example"}}
        ),
        201,
    )
