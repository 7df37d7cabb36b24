"""Bids, conflicts, locks and scores over HTTP, as JSON and as CSV."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.service.api import fill, ok, pairs, pointers, refused, run, score, venue

REVIEWERS = [
    {"id": "r1", "name": "Doe, Z.", "emails": ["R1@x.example"], "aliases": ["old-r1"]},
    {"id": "r2", "emails": ["zoe@y.example"]},
    {"id": "Zoë"},
]
SUBMISSIONS = [{"id": "p1"}, {"id": "p2"}, {"id": "p,3"}]


@pytest.fixture
def base(client: FlaskClient) -> str:
    """A venue with people and papers."""
    made = venue(client, demand=1)
    fill(client, made, REVIEWERS, SUBMISSIONS)
    return made


def send_csv(client: FlaskClient, address: str, text: str | bytes) -> TestResponse:
    """POST a CSV body."""
    data = text.encode() if isinstance(text, str) else text
    return client.post(address, data=data, content_type="text/csv")


def stored(client: FlaskClient, address: str, *fields: str) -> set[tuple[Any, ...]]:
    """Stored pairs as tuples."""
    return {tuple(item[field] for field in fields) for item in ok(client.get(address))["items"]}


def test_b11_every_unknown_reference_is_named_and_nothing_is_stored(client: FlaskClient, base: str) -> None:
    """B11: an unknown reviewer, an unknown paper and a record without reviewer: one 422 listing all three."""
    rows = [
        {"submission": "p1", "reviewer": "r99"},
        {"submission": "p99", "reviewer": "r1"},
        {"submission": "p1"},
        {"submission": "p1", "reviewer": "r2"},
    ]
    problem = refused(client.post(f"{base}/conflicts", json={"conflicts": rows}), 422)
    assert pointers(problem) == ["#/conflicts/0/reviewer", "#/conflicts/1/submission", "#/conflicts/2/reviewer"]
    assert [fault.get("value") for fault in problem["errors"]] == ["r99", "p99", None]
    assert [fault["row"] for fault in problem["errors"]] == [0, 1, 2]
    assert all(fault["field"] in ("reviewer", "submission") for fault in problem["errors"])
    assert ok(client.get(f"{base}/conflicts"))["items"] == []


def test_b11_a_faulty_csv_names_the_lines_of_the_file(client: FlaskClient, base: str) -> None:
    """B11: line numbers as an editor shows them, blank lines and line breaks in cells included."""
    text = 'submission,reviewer,rule,evidence\r\np1,r1,personal,"two\r\nlines"\r\n\r\np1,ghost,,\r\np99,r2,,\r\n'
    problem = refused(send_csv(client, f"{base}/conflicts", text), 422)
    assert [(fault["line"], fault["field"], fault["value"]) for fault in problem["errors"]] == [
        (5, "reviewer", "ghost"),
        (6, "submission", "p99"),
    ]
    assert "line 5" in problem["detail"] and "row" not in problem["detail"]
    assert ok(client.get(f"{base}/conflicts"))["items"] == []


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_b11_a_lenient_upload_stores_the_good_rows_and_returns_the_others(
    client: FlaskClient, base: str, kind: str
) -> None:
    """B11: opt-in; each row comes back with field, value and reason."""
    if kind == "json":
        rows = [
            {"submission": "p1", "reviewer": "r1", "bid": "high"},
            {"submission": "p1", "reviewer": "ghost", "bid": "low"},
            {"submission": "p2", "reviewer": "r1", "bid": "perhaps"},
            {"submission": "p2", "reviewer": "r2", "bid": "low"},
        ]
        done = ok(client.post(f"{base}/bids?on_error=skip", json={"bids": rows}))
        places = [1, 2]
    else:
        text = "paper,email,preference\np1,r1,high\n\np1,ghost,low\np2,r1,perhaps\np2,r2,low\n"
        done = ok(send_csv(client, f"{base}/bids?on_error=skip", text))
        places = [4, 5]
    assert done["created"] == 2
    assert [entry["row"] for entry in done["rejected"]] == places
    assert [entry["field"] for entry in done["rejected"]] == ["reviewer", "bid"]
    assert [entry["value"] for entry in done["rejected"]] == ["ghost", "perhaps"]
    assert all(entry["reason"] for entry in done["rejected"])
    assert stored(client, f"{base}/bids", "submission", "reviewer") == {("p1", "r1"), ("p2", "r2")}


@pytest.mark.parametrize("route", ["conflicts", "locks"])
def test_b11_conflicts_and_locks_are_never_stored_in_part(client: FlaskClient, base: str, route: str) -> None:
    """B11: dropping one would lose a hard rule."""
    rows = [{"submission": "p1", "reviewer": "r1"}]
    problem = refused(client.post(f"{base}/{route}?on_error=skip", json={route: rows}), 422)
    assert pointers(problem) == ["on_error"]


def test_b08_aliases_and_addresses_mean_one_person(client: FlaskClient, base: str) -> None:
    """B08: trimmed, case-folded, "Name <addr>", ids from before a merge; what was written is kept."""
    rows = [
        {"submission": "p1", "reviewer": "old-r1", "bid": "high"},
        {"submission": "p2", "reviewer": " R1@X.EXAMPLE ", "bid": "low"},
        {"submission": "p,3", "reviewer": "Zoe <ZOE@y.example>", "bid": "very_high"},
    ]
    assert ok(client.post(f"{base}/bids", json={"bids": rows}))["created"] == 3
    expected = {("p1", "r1"), ("p2", "r1"), ("p,3", "r2")}
    assert stored(client, f"{base}/bids", "submission", "reviewer") == expected
    given = {item["submission"]: item.get("given") for item in ok(client.get(f"{base}/bids"))["items"]}
    assert "old-r1" in str(given["p1"])
    problem = refused(
        client.post(f"{base}/bids", json={"bids": [{"submission": "p1", "reviewer": "ghost", "bid": "low"}]}), 422
    )
    assert problem["errors"][0]["value"] == "ghost" and problem["errors"][0]["row"] == 0


def test_b08_a_bid_by_an_old_id_counts(client: FlaskClient, base: str) -> None:
    """B08: the plan sees the bid of the merged account."""
    ok(client.post(f"{base}/bids", json={"bids": [{"submission": "p1", "reviewer": "old-r1", "bid": "very_high"}]}))
    plan = run(client, base, weights={"text": 0, "areas": 0, "bids": 1})
    assert ("p1", "r1") in pairs(client, plan["id"])


def test_b13_rows_that_contradict_each_other_name_both(client: FlaskClient, base: str) -> None:
    """B13: the same pair with two values is refused, not overwritten."""
    rows = [
        {"submission": "p1", "reviewer": "r1", "score": 0.3},
        {"submission": "p2", "reviewer": "r1", "score": 0.3},
        {"submission": "p1", "reviewer": "old-r1", "score": 0.5},
    ]
    problem = refused(client.post(f"{base}/scores/hand", json={"scores": rows}), 422)
    text = " ".join(fault["detail"] for fault in problem["errors"])
    assert {fault["row"] for fault in problem["errors"]} <= {0, 2} and "0" in text and "2" in text
    text = "paper,reviewer,score\n\np1,r1,0.3\np2,r1,0.3\np1,old-r1,0.5\n"
    problem = refused(send_csv(client, f"{base}/scores/hand", text), 422)
    assert "lines 3 and 5" in " ".join(fault["detail"] for fault in problem["errors"])
    refused(client.get(f"{base}/scores/hand"), 404, "not-found")


def test_pairs_sent_again_are_replaced(client: FlaskClient, base: str) -> None:
    """The last upload counts, and says how many it changed."""
    score(client, base, {("p1", "r1"): 0.5, ("p2", "r1"): 0.25})
    rows = [{"submission": "p1", "reviewer": "r1", "score": 1}, {"submission": "p1", "reviewer": "r2", "score": 0}]
    done = ok(client.post(f"{base}/scores/hand", json={"scores": rows, "default": 0.125}))
    assert (done["created"], done["updated"]) == (1, 1)
    expected = {("p1", "r1", 1.0), ("p2", "r1", 0.25), ("p1", "r2", 0.0)}
    assert stored(client, f"{base}/scores/hand", "submission", "reviewer", "score") == expected
    assert ok(client.get(f"{base}/scores"))["items"] == [{"signal": "hand", "default": 0.125, "scores": 3}]
    assert ok(client.delete(f"{base}/scores/hand"))["deleted"] == 3
    assert ok(client.get(f"{base}/scores"))["items"] == []


@pytest.mark.parametrize("name", ["text", "areas", "bids", " x", "."])
def test_names_of_built_in_signals_are_taken(client: FlaskClient, base: str, name: str) -> None:
    """An imported table must not hide what the engine computes."""
    body = {"scores": [{"submission": "p1", "reviewer": "r1", "score": 1}]}
    refused(client.post(f"{base}/scores/{name.replace(' ', '%20')}", json=body), 422)


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5], 10**400])
def test_b43_a_score_that_is_no_number_is_refused(client: FlaskClient, base: str, value: Any) -> None:
    """B43: no permissive casting of scores either."""
    rows = [{"submission": "p1", "reviewer": "r1", "score": 1}, {"submission": "p1", "reviewer": "r2", "score": value}]
    problem = refused(client.post(f"{base}/scores/hand", json={"scores": rows}), 422)
    assert pointers(problem) == ["#/scores/1/score"]


@pytest.mark.parametrize("cell", ["nan", "NaN", "inf", "-Infinity", "1e999", "", "0,5", "high", "1_0"])
def test_b41_a_csv_cell_that_is_no_finite_number_is_422_with_its_line(
    client: FlaskClient, base: str, cell: str
) -> None:
    """B41: "nan" in a cell never reaches the solver."""
    text = f'paper,reviewer,score\np1,r1,0.5\np1,r2,"{cell}"\n'
    problem = refused(send_csv(client, f"{base}/scores/hand", text), 422, "invalid-file")
    assert [(fault["line"], fault["field"]) for fault in problem["errors"]] == [(3, "score")]


PLAIN = 'submission,reviewer,score\np1,r1,0.5\n"p,3",Zoë,0.25\n'
SAME = {
    "synonyms": 'Paper ID,Reviewer_Email,Affinity\np1,r1,0.5\n"p,3",Zoë,0.25\n'.encode(),
    "other order": 'reviewer_id,score,paper_id\nr1,0.5,p1\nZoë,0.25,"p,3"\n'.encode(),
    "bom and crlf": b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode() + b"\r\n\r\n",
    "semicolons": "submission;reviewer;score\np1;r1;0.5\np,3;Zoë;0.25\n".encode(),
    "extra columns": 'note,submission,reviewer,score\n"a, b",p1,r1,0.5\n,"p,3",Zoë,0.25\n'.encode(),
}


@pytest.mark.parametrize("name", SAME)
def test_b44_b45_dialects_of_one_file_mean_the_same(client: FlaskClient, base: str, name: str) -> None:
    """B44, B45: read by header name; mark, line ends, quotes and accents change nothing."""
    ok(send_csv(client, f"{base}/scores/plain", PLAIN))
    done = ok(send_csv(client, f"{base}/scores/other", SAME[name]))
    assert done["created"] == 2
    fields = ("submission", "reviewer", "score")
    assert stored(client, f"{base}/scores/other", *fields) == stored(client, f"{base}/scores/plain", *fields)
    assert stored(client, f"{base}/scores/plain", *fields) == {("p1", "r1", 0.5), ("p,3", "Zoë", 0.25)}
    if name == "extra columns":
        assert "note" in str(done["warnings"])


def test_b44_swapped_columns_are_named_and_nothing_is_stored(client: FlaskClient, base: str) -> None:
    """B44: chairs sometimes forget to swap by hand."""
    problem = refused(send_csv(client, f"{base}/scores/hand", "paper,reviewer,score\nr1,p1,0.5\nr2,p2,0.25\n"), 422)
    assert problem["errors"][0]["code"] == "columns-swapped"
    assert "look swapped" in problem["detail"]
    problem = refused(
        send_csv(client, f"{base}/scores/hand?on_error=skip", "paper,reviewer,score\nr1,p1,0.5\nr2,p2,1\n"), 422
    )
    assert problem["errors"][0]["code"] == "columns-swapped"
    assert ok(client.get(f"{base}/scores"))["items"] == []


def test_b44_a_missing_column_lists_what_was_found(client: FlaskClient, base: str) -> None:
    """B44: the sender sees what the file has."""
    problem = refused(
        send_csv(client, f"{base}/scores/hand", "paper,reviewer,remark\np1,r1,fine\n"), 422, "invalid-file"
    )
    assert "score" in problem["detail"] and "'remark'" in problem["detail"]


def test_b44_a_file_without_header_is_read_only_when_declared(client: FlaskClient, base: str) -> None:
    """B44: the first row must be neither lost nor taken for data by guesswork."""
    text = "p1,r1,0.5\np2,r2,0.25\n"
    refused(send_csv(client, f"{base}/scores/hand", text), 422, "invalid-file")
    done = ok(send_csv(client, f"{base}/scores/hand?columns=submission,reviewer,score", text))
    assert done["created"] == 2
    refused(send_csv(client, f"{base}/scores/hand?columns=submission,reviewer", text), 422)


def test_b45_another_encoding_is_refused_with_its_line(client: FlaskClient, base: str) -> None:
    """B45: rubbish names are worse than a refusal."""
    problem = refused(send_csv(client, f"{base}/scores/hand", PLAIN.encode("latin-1")), 422, "invalid-file")
    assert problem["errors"][0]["line"] == 3


def test_csv_with_nul_or_nothing_is_refused(client: FlaskClient, base: str) -> None:
    """Files no database holds, and files without rows."""
    refused(send_csv(client, f"{base}/scores/hand", b"submission,reviewer,score\np1,r\x001,1\n"), 422, "invalid-file")
    for text in ("", "\n\n", "submission,reviewer,score\n"):
        refused(send_csv(client, f"{base}/scores/hand", text), 422, "invalid-file")


@pytest.mark.parametrize(
    ("cell", "label"),
    [("very high", "very_high"), ("2", "very_high"), ("maybe", "high"), ("0", "neutral"), ("no", "very_low")],
)
def test_bids_of_other_systems_become_ours(client: FlaskClient, base: str, cell: str, label: str) -> None:
    """Labels and numbers are mapped by a documented table."""
    ok(send_csv(client, f"{base}/bids", f"paper,reviewer,bid\np1,r1,{cell}\n"))
    assert stored(client, f"{base}/bids", "bid") == {(label,)}


def test_conflicts_and_locks_read_csv(client: FlaskClient, base: str) -> None:
    """All four kinds of pairs do."""
    ok(send_csv(client, f"{base}/conflicts", "paper,reviewer,reason\np1,r1,personal\n"))
    ok(send_csv(client, f"{base}/locks", "paper,reviewer\np2,r2\n"))
    assert stored(client, f"{base}/conflicts", "submission", "reviewer", "rule") == {("p1", "r1", "personal")}
    assert stored(client, f"{base}/locks", "submission", "reviewer") == {("p2", "r2")}
    plan = run(client, base)
    found = pairs(client, plan["id"])
    assert ("p2", "r2") in found and ("p1", "r1") not in found


def test_default_of_a_csv_table_comes_in_the_query(client: FlaskClient, base: str) -> None:
    """A CSV body has no place for it."""
    ok(send_csv(client, f"{base}/scores/hand?default=0.5", PLAIN))
    assert ok(client.get(f"{base}/scores"))["items"][0]["default"] == 0.5
    body = {"scores": [{"submission": "p1", "reviewer": "r1", "score": 1}]}
    refused(client.post(f"{base}/scores/hand?default=0.5", json=body), 422)
    refused(send_csv(client, f"{base}/scores/hand?default=nan", PLAIN), 422)


def test_lists_of_pairs_can_be_emptied(client: FlaskClient, base: str) -> None:
    """DELETE says how many went; a dry run removes nothing."""
    ok(client.post(f"{base}/bids", json={"bids": [{"submission": "p1", "reviewer": "r1", "bid": "low"}]}))
    assert ok(client.delete(f"{base}/bids?dry_run=true"))["deleted"] == 1
    assert ok(client.delete(f"{base}/bids"))["deleted"] == 1
    assert ok(client.delete(f"{base}/bids"))["deleted"] == 0
    for route in ("conflicts", "locks"):
        assert ok(client.delete(f"{base}/{route}"))["deleted"] == 0


def test_two_reasons_for_one_conflict_are_both_kept(client: FlaskClient, base: str) -> None:
    """They do not contradict each other: the pair is barred twice over."""
    rows = [
        {"submission": "p1", "reviewer": "r1", "rule": "advisor", "evidence": "thesis"},
        {"submission": "p1", "reviewer": "r1", "rule": "collaborator", "evidence": "joint grant"},
        {"submission": "p1", "reviewer": "r1", "rule": "advisor", "evidence": "thesis"},
    ]
    ok(client.post(f"{base}/conflicts", json={"conflicts": rows}))
    (stored,) = ok(client.get(f"{base}/conflicts"))["items"]
    assert (stored["rule"], stored["evidence"]) == ("advisor; collaborator", "thesis; joint grant")


@pytest.mark.parametrize("name", ["text", "Bids", "AREAS"])
def test_a_signal_of_the_engine_cannot_be_uploaded_in_capitals(client: FlaskClient, name: str) -> None:
    """Two signals that a reader cannot tell apart are one too many."""
    base = venue(client)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])
    row = {"submission": "p1", "reviewer": "r1", "score": 1}
    problem = refused(client.post(f"{base}/scores/{name}", json={"scores": [row]}), 422, "invalid-scores")
    assert problem["errors"][0]["code"] == "reserved-name"


def test_the_name_of_a_signal_is_judged_in_words(client: FlaskClient) -> None:
    """And its place is the address."""
    row = {"submission": "p1", "reviewer": "r1", "score": 1}
    problem = refused(
        client.post(f"{venue(client)}/scores/{'x' * 300}", json={"scores": [row]}), 422, "invalid-request"
    )
    assert problem["errors"][0]["parameter"] == "signal" and "has 300" in problem["errors"][0]["detail"]
    assert "[" not in problem["detail"]


def test_csv_with_a_stated_delimiter_and_an_endless_cell(client: FlaskClient) -> None:
    """As spreadsheet programs write it; and a cell beyond the reader's limit is called that."""
    base = venue(client)
    fill(client, base, [{"id": "r1"}], [{"id": "p1"}])
    data = b"sep=;\r\npaper;reviewer;bid\r\np1;r1;high\r\n"
    assert ok(client.post(f"{base}/bids", data=data, content_type="text/csv"))["created"] == 1
    data = b"paper,reviewer,bid\np1,r1," + b"x" * 200_000
    problem = refused(client.post(f"{base}/bids", data=data, content_type="text/csv"), 422, "invalid-file")
    assert (problem["errors"][0]["line"], problem["errors"][0]["code"]) == (2, "too-long")
