"""`revmatch explain` and `revmatch readiness`, as they are typed."""

import json

import pytest
from click.testing import CliRunner

from matching.formats import fixture_path
from service.cli import INFEASIBLE, INPUT_ERROR, main


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    out = tmp_path_factory.mktemp("plan") / "plan.json"
    assert run("plan", fixture_path("icml2026"), "--out", out, "--quiet").exit_code == 0
    return out


def test_explain_tells_evidence_rank_and_reasons_in_words(plan):
    """What a chair needs to answer "why her, and why not him"."""
    done = run("explain", fixture_path("icml2026"), "--plan", plan, "000-10", "r12")
    assert done.exit_code == 0, done.output
    told = " ".join(done.output.split())
    assert "3 of 3 reviews assigned" in told and "rank 1 of 37 eligible" in told
    assert "what carries the text part" in told and "in both texts: " in told and "confidence fair" in told
    assert "r12 (Camille Rochambert): conflict (affiliation: " in told and "Mistral Bay College" in told
    assert "Note: " not in told
    assert max(map(len, done.output.splitlines())) <= 110


def test_explain_as_json_is_strict_and_adds_up(plan):
    """For programs: parts to the affinity, shares to one."""
    done = run("explain", fixture_path("icml2026"), "--plan", plan, "000-10", "--json")
    found = json.loads(done.output, parse_constant=pytest.fail)
    assert [pair["standing"]["reason"] for pair in found["pairs"]] == ["assigned"] * 3
    for pair in found["pairs"]:
        evidence = pair["evidence"]
        assert sum(part["contribution"] for part in evidence["parts"]) == pytest.approx(evidence["affinity"], abs=1e-9)
        assert sum(entry["share"] for entry in evidence["publications"]) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    "arguments",
    [
        ("{folder}", "--plan", "{plan}", "no-such"),
        ("{folder}", "--plan", "{plan}", "000-10", "nobody"),
        ("{folder}", "--plan", "{folder}/papers.jsonl", "000-10"),
        ("{folder}", "000-10"),
        ("{plan}", "--plan", "{plan}", "000-10"),
    ],
)
def test_explain_refuses_what_is_not_there_in_one_message(plan, arguments):
    """Exit status 2, no traceback."""
    done = run("explain", *(argument.format(folder=fixture_path("icml2026"), plan=plan) for argument in arguments))
    assert done.exit_code == INPUT_ERROR and done.output.strip() and "Traceback" not in done.output


def test_readiness_is_told_before_a_run_in_words_and_as_json():
    """Exit status 0 where a full plan is possible by count, 3 where it is not."""
    done = run("readiness", fixture_path("icml2026"))
    assert done.exit_code == 0 and "57 submissions need 171 reviews" in done.output
    assert "r43, r45" in done.output and "may be one person" in done.output
    short = run("readiness", fixture_path("icml2026"), "--demand", "9", "--json")
    found = json.loads(short.output, parse_constant=pytest.fail)
    assert short.exit_code == INFEASIBLE and found["ready"] is False
    assert "too-little-load" in [item["code"] for item in found["items"]]
    assert run("readiness", fixture_path("icml2026") / "papers.jsonl").exit_code == INPUT_ERROR
