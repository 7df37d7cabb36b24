"""`revmatch bench`, as it is typed."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from matching.errors import AuditError
from service.cli import ENGINE_FAILED, INFEASIBLE, INPUT_ERROR, main
from service.commands import bench
from service.commands.bench import BenchParams, peak_mb, report, yardstick

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--submissions", 60, "--reviewers", 50, "--dim", 16)
KEYS = {
    "seconds", "stages", "yardstick_seconds", "ratio", "peak_mb", "rounds", "value", "bound", "gap", "audit", "status",
    "missing", "submissions", "reviewers", "dim", "demand", "load", "conflicts", "bids", "objective", "seed", "cores",
    "workers", "needed_mb", "parts",
}  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, ["bench", *map(str, arguments)], catch_exceptions=False)


def test_bench_prints_one_object_with_every_number_and_what_was_asked():
    """Arguments are echoed, so that a kept line says what it measured; stages not needed are 0."""
    done = run(*SMALL, "--demand", 2, "--load", 3, "--conflicts", 0.02, "--bids", 0.1, "--seed", 7, "--json")
    assert done.exit_code == 0 and done.stderr == ""
    found = json.loads(done.stdout)
    assert set(found) == KEYS
    asked = {
        "submissions": 60, "reviewers": 50, "dim": 16, "demand": 2, "load": 3, "conflicts": 0.02, "bids": 0.1,
        "seed": 7, "objective": "total",
    }  # fmt: skip
    assert {name: found[name] for name in asked} == asked
    assert (found["status"], found["audit"], found["gap"], found["missing"]) == ("optimal", "clean", 0.0, 0)
    assert found["bound"] == found["value"] > 0 and found["rounds"] >= 1
    assert {"vectors", "candidates", "flow", "prices", "sweeps", "ties", "audit"} <= set(found["stages"])
    assert found["ratio"] == pytest.approx(found["seconds"] / found["yardstick_seconds"])
    assert found["peak_mb"] is None or found["peak_mb"] > 10


def test_bench_refuses_what_cannot_fit_before_it_generates_anything(monkeypatch):
    """A chair on a laptop learns the numbers at once, not from a frozen machine."""
    monkeypatch.setenv("REVMATCH_MEMORY_LIMIT", "100000000")
    monkeypatch.setattr(bench, "generated_problem", lambda *_, **__: pytest.fail("something was generated"))
    refused = run("--submissions", 30_000, "--reviewers", 30_000)
    assert refused.exit_code == ENGINE_FAILED and "Traceback" not in refused.output
    assert "memory-limit" in refused.output and re.search(r"[0-9.]+ GB", refused.output)
    assert "100 MB are allowed" in " ".join(refused.output.split())


@pytest.mark.skipif(peak_mb() is None, reason="the system does not say how much memory a process has held")
def test_a_tenth_of_the_largest_venue_takes_no_more_memory_than_foreseen():
    """In a process of its own, whose peak is that of the run; the formula may not be far off either."""
    code = (
        "from service.commands.bench import BenchParams, report;"
        "print(report(BenchParams(3000, 3000, bids=0.003, conflicts=0.01), (), True)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    found = json.loads(done.stdout)
    assert found["peak_mb"] <= found["needed_mb"] <= 3 * found["peak_mb"]
    assert found["needed_mb"] == pytest.approx(sum(found["parts"].values()), abs=1.0)


def test_the_same_seed_gives_the_same_value_and_another_one_another():
    values = [json.loads(run(*SMALL, "--seed", seed, "--json").stdout)["value"] for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


def test_processes_find_the_same_plan():
    """Large enough for several strips of rows; what differs is the time."""
    size = ("--submissions", 1100, "--reviewers", 600, "--dim", 16, "--demand", 1)
    alone, two = (json.loads(run(*size, "--workers", count, "--json").stdout) for count in (0, 2))
    assert two["workers"] == 2 and two["status"] == "optimal"
    assert all(alone[name] == two[name] for name in ("value", "bound", "gap", "rounds"))


def test_more_processes_than_fit_are_refused_before_one_starts():
    """Each holds the vectors too; ten thousand of them would take the machine along."""
    done = run(*SMALL, "--workers", 10**6)
    assert done.exit_code == 4 and "workers" in done.stderr and "memory-limit" in done.stderr


def test_processes_that_do_not_start_are_told_as_such(monkeypatch):
    """Killed at once, as where memory is short."""
    monkeypatch.setattr("service.commands.bench.cores", lambda: 1)
    monkeypatch.setattr("service.commands.bench.ProcessPoolExecutor", lambda *_, **__: Refusing())
    done = run(*SMALL, "--workers", 1)
    assert done.exit_code == 4 and "did not start" in done.stderr


class Refusing(ThreadPoolExecutor):
    """Takes nothing."""

    def submit(self, fn, /, *args, **kwargs):
        raise OSError("no more processes")


def test_bench_tells_in_words():
    """What was generated, what was reached, what it took, and where the time went."""
    told = run(*SMALL)
    assert told.exit_code == 0
    assert "60 submissions x 50 reviewers, 16 dimensions" in told.stdout
    assert "total: optimal" in told.stdout and "audit clean" in told.stdout
    assert re.search(r"times one plain product over all pairs \([0-9.e-]+ s\)", told.stdout)
    assert all(f"  {stage}" in told.stdout for stage in ("vectors", "sweeps", "audit"))


@pytest.mark.parametrize(
    "objective",
    [
        ("maximin",), ("welfare",), ("evenness",), ("randomised",), ('{"name": "threshold", "t": 1}',),
        ("maximin", "total"),
    ],
)  # fmt: skip
def test_bench_takes_the_objectives_of_plan(objective):
    """Names, JSON where there are options, and stacks; each is audited for what was asked."""
    size = ("--submissions", 12, "--reviewers", 10, "--dim", 4)
    done = run(*size, *(word for name in objective for word in ("--objective", name)), "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["audit"] == "clean"
    typed = [json.loads(text) if text.startswith("{") else text for text in objective]
    assert found["objective"] == (typed[0] if len(typed) == 1 else typed)
    assert found["bound"] == pytest.approx(found["value"], rel=0.1) and found["gap"] >= 0


def test_a_venue_without_a_full_plan_is_measured_and_told_by_the_exit_status():
    done = run(*SMALL, "--load", 2, "--json")
    found = json.loads(done.stdout)
    assert done.exit_code == INFEASIBLE
    assert (found["status"], found["missing"], found["audit"]) == ("infeasible", 60 * 3 - 50 * 2, "clean")
    assert "80 reviews missing" in run(*SMALL, "--load", 2).stdout


def test_all_faults_are_told_together_with_the_way_to_give_an_option():
    done = run("--submissions", 0, "--conflicts", 1.5, "--bids", "nan", "--objective", "threshold", "--seed", -1)
    assert done.exit_code == INPUT_ERROR and done.stdout == ""
    told = " ".join(done.stderr.split())
    for word in ("submissions", "conflicts", "bids", "seed", "threshold needs t", '"threshold", "t": NUMBER'):
        assert word in told


@pytest.mark.parametrize(
    "arguments", [("--objective", "psychic"), ("--objective", "{"), ("--dim", "many"), ("--objective", "robust")]
)
def test_bad_options_are_told_without_a_traceback(arguments):
    done = run(*SMALL, *arguments)
    assert done.exit_code == INPUT_ERROR and done.stderr.strip() and "Traceback" not in done.output


def test_an_answer_that_fails_its_audit_is_no_measurement(monkeypatch):
    """A fast wrong answer must not look like a fast one."""

    def refuse(*_):
        raise AuditError("the bound does not hold", faults=["the bound does not hold"])

    monkeypatch.setattr(bench, "require_clean", refuse)
    done = run(*SMALL, "--json")
    assert done.exit_code == ENGINE_FAILED and done.stdout == "" and "bound does not hold" in done.stderr


def test_progress_rises_through_every_phase():
    """The same callback as a plan's, from generating to the last product."""
    seen = []
    report(BenchParams(submissions=30, reviewers=25, dim=4), (), True, seen.append)
    assert [entry.fraction for entry in seen] == sorted(entry.fraction for entry in seen)
    assert {"vectors", "yardstick", "flow", "sweep", "audit"} <= {entry.phase for entry in seen}
    assert seen[0].fraction >= 0.0 and seen[-1].fraction <= 1.0


def test_the_yardstick_is_at_least_one_product_and_never_nothing():
    """A ratio divides by it."""
    for shape in ((1, 1), (3, 2500), (2500, 3)):
        seconds = yardstick(shape, 4)
        assert 1 <= len(seconds) <= 5 and min(seconds) > 0


def test_memory_is_counted_in_millions_of_bytes():
    """A process that runs Python holds more than ten of them and less than a hundred thousand."""
    found = peak_mb()
    assert found is None or 10 < found < 100_000
