"""Plans as files."""

import codecs
import csv
import io
import json
from dataclasses import replace

import pytest

from matching.errors import InvalidFileError
from matching.formats.plans import (
    read_plan_json,
    write_openreview_alternates,
    write_openreview_assignments,
    write_openreview_manifest,
    write_plan_csv,
    write_plan_json,
    write_probabilities_csv,
)
from matching.formats.table import read_locks
from matching.notices import Notice
from matching.plan.plan import Alternate, Assignment, AssignmentPlan, Certificate, ScorePart
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.venue import Lock, Venue
from matching.solvers.base import Status

PLAN = AssignmentPlan(
    status=Status.INFEASIBLE,
    assignments=(
        Assignment("p1", "r2", 0.75, (ScorePart("text", 0.5, 0.5, 1.0, 0.5), ScorePart("bids", 1.0, 1.0, 0.25, 0.25))),
        Assignment("p1", "-r1", 0.1, (ScorePart("text", None, 0.1, 1.0, 0.1),), True, ("held before", "=1+1")),
    ),
    alternates=(Alternate("p1", "r3", 1, 0.2, 1, False), Alternate("p1", "r4", 2, 0.3, 0, True)),
    value=0.85,
    bound=0.85,
    gap=0.0,
    unfilled={"p2": 1},
    certificate=Certificate({"p1": 0.1, "p2": 1.0}, {"r2": 0.0}, 1.0, 1, True),
    report={"loads": {"r2": 1}},
    diagnosis={"short": 1},
    notices=(Notice("x", "y", ("p1",), ("r2",), {"n": 1}),),
    provenance={"seed": 0},
)


def test_b41_a_plan_is_strict_json_and_reads_back_equal() -> None:
    """Equal plans give equal bytes, whoever parses them."""
    data = write_plan_json(PLAN)
    json.loads(data, parse_constant=pytest.fail)
    assert read_plan_json(data) == PLAN
    assert write_plan_json(read_plan_json(data)) == data


FULL = replace(
    PLAN,
    assignments=(Assignment("p1", "r2", 0.75, probability=0.5), Assignment("p2", "r1", 0.25, probability=1.0)),
    certificate=replace(PLAN.certificate, proofs=({"objective": {"name": "total"}, "weights": {"p1": 1.0}},)),
    objectives=({"name": "randomised", "cap": 0.5, "value": 0.85, "bound": 0.85, "gap": 0.0},),
    probabilities=(("p1", "r2", 0.5), ("p1", "r3", 0.5), ("p2", "r1", 1.0)),
    rule_shortfalls=({"rule": "seniors", "submissions": "p1", "reviewers": "all", "below": 1.0, "cost": None},),
)


def test_objectives_probabilities_and_shortfalls_read_back_equal() -> None:
    """Tuples are tuples again, so that equal plans are equal."""
    data = write_plan_json(FULL)
    assert read_plan_json(data) == FULL
    assert write_plan_json(read_plan_json(data)) == data


def test_a_plan_file_from_before_there_were_objectives_is_read() -> None:
    """What it lacks is empty."""
    record = json.loads(write_plan_json(PLAN))
    for name in ("objectives", "probabilities", "rule_shortfalls"):
        del record[name]
    del record["certificate"]["proofs"]
    for entry in record["assignments"]:
        del entry["probability"]
    assert read_plan_json(json.dumps(record).encode()) == PLAN


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'["p1","r3",0.5]', b'["p1","r3",1.5]'),
        (b'["p1","r3",0.5]', b'["p1","r3"]'),
        (b'["p1","r3",0.5]', b'"p1 r3 0.5"'),
        (b'"probability":0.5', b'"probability":"half"'),
        (b'"proofs":[{', b'"proofs":[7,{'),
        (b'"rule_shortfalls":[', b'"rule_shortfalls":[null,'),
    ],
)
def test_faulty_probabilities_proofs_and_shortfalls_are_refused(old: bytes, new: bytes) -> None:
    """A plan file is anybody's."""
    data = json.dumps(json.loads(write_plan_json(FULL)), separators=(",", ":")).encode()
    assert old in data
    with pytest.raises(InvalidFileError):
        read_plan_json(data.replace(old, new))


def test_probabilities_are_a_column_and_a_table_of_their_own() -> None:
    """Only for plans that were drawn."""
    rows = list(csv.DictReader(io.StringIO(write_plan_csv(FULL).decode())))
    assert [row["probability"] for row in rows] == ["0.5", "1.0"]
    assert b"probability" not in write_plan_csv(PLAN)
    lines = write_probabilities_csv(FULL).decode().split()
    assert lines == ["submission,reviewer,probability,drawn", "p1,r2,0.5,true", "p1,r3,0.5,false", "p2,r1,1.0,true"]
    assert write_probabilities_csv(PLAN).decode().split() == lines[:1]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"schema": "revmatch-plan/1"}',
        b'{"schema": "other/2"}',
        b"\xff",
        b'{"schema": NaN}',
        write_plan_json(PLAN).replace(b'"infeasible"', b'"perhaps"'),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes) -> None:
    """With our own error."""
    with pytest.raises(InvalidFileError):
        read_plan_json(data)


def test_a_plan_as_a_table_is_sorted_and_holds_its_parts() -> None:
    """And serves as a list of locks for the next round."""
    data = write_plan_csv(PLAN)
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert [(row["reviewer"], row["affinity"], row["locked"]) for row in rows] == [
        ("r2", "0.75", "false"),
        ("-r1", "0.1", "true"),
    ]
    assert [(row["contribution_text"], row["contribution_bids"]) for row in rows] == [("0.5", "0.25"), ("0.1", "")]
    assert set(read_locks(data).records) == {Lock("p1", "r2"), Lock("p1", "-r1")}


def test_b45_a_plan_for_spreadsheets_keeps_accents_and_runs_no_formula() -> None:
    """A mark tells the program that it is UTF-8."""
    venue = Venue((Reviewer("r2", "Zoë"),), (Submission("p1", "@title"),))
    data = write_plan_csv(PLAN, venue=venue, for_spreadsheets=True)
    assert data.startswith(codecs.BOM_UTF8) and data.count(b"\r\n") == 3
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row["reviewer_name"] for row in rows] == ["Zoë", ""]
    assert {row["submission_title"] for row in rows} == {"'@title"}
    assert rows[1]["reviewer"] == "'-r1" and rows[1]["reasons"] == "held before; =1+1"


def test_openreview_files_have_the_keys_the_matcher_writes() -> None:
    """Papers without reviewers are absent from the one file and present in the other."""
    assignments = json.loads(write_openreview_assignments(PLAN))
    assert assignments == {"p1": [{"aggregate_score": 0.1, "user": "-r1"}, {"aggregate_score": 0.75, "user": "r2"}]}
    alternates = json.loads(write_openreview_alternates(PLAN))
    assert alternates == {
        "p1": [{"aggregate_score": 0.3, "user": "r4"}, {"aggregate_score": 0.2, "user": "r3"}],
        "p2": [],
    }
    manifest = json.loads(write_openreview_manifest(PLAN))
    assert manifest["value"] == 0.85 and manifest["unfilled"] == {"p2": 1}


def _paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value of a plan whose kind is fixed; what `report`, `diagnosis` and `data` hold is free."""
    out = [path] if path else []
    if path and path[-1] in ("report", "diagnosis", "data", "seed", "n"):
        return out
    if isinstance(value, dict):
        out += [found for key, inner in value.items() for found in _paths(inner, (*path, key))]
    elif isinstance(value, list):
        out += [found for at, inner in enumerate(value) for found in _paths(inner, (*path, at))]
    return out


WRITTEN = json.loads(write_plan_json(PLAN))


@pytest.mark.parametrize("path", [path for path in _paths(WRITTEN) if path[-1] != "seed"], ids=str)
def test_a_field_of_another_kind_is_named(path: tuple[str | int, ...]) -> None:
    """Never an exception of Python's own, at whatever depth the file was edited."""
    holder = record = json.loads(json.dumps(WRITTEN))
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = {"x": []} if isinstance(holder[path[-1]], list) else [[[]]]
    with pytest.raises(InvalidFileError) as caught:
        read_plan_json(json.dumps(record).encode())
    assert any((issue.field or "").startswith(str(path[0])) for issue in caught.value.issues)


def test_every_fault_of_a_plan_is_told_together() -> None:
    """Whoever edits a plan by hand mends it in one go."""
    record = json.loads(write_plan_json(PLAN))
    record["assignments"][0]["affinity"] = None
    record["certificate"]["penalty"] = "1"
    del record["notices"][0]["code"]
    record["notices"][0]["colour"] = "red"
    with pytest.raises(InvalidFileError) as caught:
        read_plan_json(json.dumps(record).encode())
    assert {issue.field for issue in caught.value.issues} == {
        "assignments.0.affinity", "certificate.penalty", "notices.0.code", "notices.0.colour"
    }  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("params", 3), ("params", []), ("text", "lexical"), ("text", [1])])
def test_a_record_of_options_that_is_none_is_refused(name: str, value: object) -> None:
    """They are read again when a plan is explained."""
    record = json.loads(write_plan_json(PLAN))
    record["provenance"][name] = value
    with pytest.raises(InvalidFileError, match=f"provenance.{name}"):
        read_plan_json(json.dumps(record).encode())


def test_a_plan_that_ended_without_a_bound_reads_back() -> None:
    """At the time limit the bound is infinite, which strict JSON says as null."""
    plan = replace(PLAN, status=Status.LIMIT_WITHOUT_PLAN, bound=float("inf"), gap=float("inf"))
    data = write_plan_json(plan)
    assert read_plan_json(data) == plan and write_plan_json(read_plan_json(data)) == data
