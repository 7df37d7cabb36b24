"""Memory is foreseen by a formula, and a run that cannot fit is refused before it begins."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import matching.engine
from matching import Params, Publication, Reviewer, Submission, Venue, memory, readiness, recommend
from matching.errors import MemoryLimitError
from matching.foreseen import need_of_run
from matching.memory import OF_CLASSES, OF_PROGRAMS, Need, free_memory, need_of_solve, need_of_texts, require
from matching.prepared import prepare
from matching.resources import Resources
from matching.solvers.flowbench import SIZE_PAIRS

ROOT = Path(__file__).resolve().parents[2]
WORDS = "sparse graphs and their spectra seen through random walks on expanders"


def venue() -> Venue:
    people = [Reviewer(f"r{at}", publications=(Publication(f"p{at}", WORDS, f"{WORDS} {at}"),)) for at in range(4)]
    return Venue(people, [Submission(f"s{at}", WORDS, WORDS) for at in range(3)], demand=1, load_max=2)


def test_a_need_is_the_sum_of_its_parts_and_says_so():
    need = need_of_solve((30_000, 30_000), dim=256, barred=9_000_000, listed=2_700_000)
    assert need.total == sum(size for _, size in need.parts)
    assert need.and_(need).total == 2 * need.total
    assert all(f"{name} " in need.sentence for name, size in need.parts if size)
    assert need.summary()["needed_mb"] == pytest.approx(need.total / 1e6, abs=0.1)


@pytest.mark.parametrize(
    "larger",
    [
        {"dim": 512},
        {"barred": 10**6},
        {"listed": 10**6},
        {"candidates": 64},
        {"classes": True},
        {"programs": True},
        {"programs": True, "classes": True},
        {"objectives": ("total", "leximin")},
    ],
)
def test_more_of_anything_never_needs_less(larger):
    least = {"dim": 256, "barred": 10, "listed": 10}
    assert need_of_solve((5000, 4000), **{**least, **larger}).total > need_of_solve((5000, 4000), **least).total


def test_need_grows_with_lines_and_not_with_pairs():
    """Beyond the matrix sizes: the whole point of pricing. Ten times the lines, at most ten times the memory."""
    small, large = (need_of_solve((side, side), dim=256).total for side in (10_000, 100_000))
    assert large < 10 * small
    assert (
        need_of_texts("lexical", (100_000, 100_000), 0, 0).total == need_of_texts("lexical", (6_000, 6_000), 0, 0).total
    )


def test_what_does_not_fit_is_refused_with_every_number():
    need = Need((("vectors", 3 * 10**9), ("blocks", 5 * 10**8), ("words", 0)))
    require(need, need.total)
    with pytest.raises(
        MemoryLimitError, match=r"3\.5 GB \(vectors 3\.0 GB, blocks 500 MB\).* 2\.0 GB are allowed"
    ) as caught:
        require(need, 2 * 10**9)
    assert caught.value.code == "memory-limit"
    assert caught.value.data == {"needed": need.total, "room": 2 * 10**9, "parts": dict(need.parts)}


def test_a_limit_of_the_operator_goes_before_what_the_machine_says(monkeypatch):
    """Who knows better may allow more, and less."""
    monkeypatch.setattr(memory, "free_memory", lambda: 10)
    require(Need((("blocks", 100),)), 100)
    with pytest.raises(MemoryLimitError, match="are free"):
        require(Need((("blocks", 100),)))
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    require(Need((("blocks", 10**18),)))  # a system that does not say refuses nothing


def test_a_container_counts_by_its_own_limit(monkeypatch, tmp_path):
    """A machine of 64 GB with a container of 2 GB has 2 GB."""
    limit, use, parts = tmp_path / "max", tmp_path / "current", tmp_path / "stat"
    monkeypatch.setattr(memory, "CGROUPS", ((str(limit), str(use), str(parts), "inactive_file"),))
    monkeypatch.setattr(memory, "_available", lambda: [5000])
    assert free_memory() == 5000
    use.write_text("300\n")
    limit.write_text("max\n")
    assert free_memory() == 5000
    limit.write_text("1000\n")
    assert free_memory() == 700
    use.write_text("2000\n")
    assert free_memory() == 0


def test_files_that_were_read_do_not_fill_a_container(monkeypatch, tmp_path):
    """Copies of files that the system keeps are counted as used and given up as soon as somebody needs the room."""
    for name, text in (("max", "1000"), ("current", "990"), ("stat", "anon 100\ninactive_file 600\nactive_file 9\n")):
        (tmp_path / name).write_text(text)
    files = tuple(str(tmp_path / name) for name in ("max", "current", "stat"))
    monkeypatch.setattr(memory, "CGROUPS", ((*files, "inactive_file"),))
    monkeypatch.setattr(memory, "_available", list)
    assert free_memory() == 610
    (tmp_path / "stat").write_text("nothing of the kind")
    assert free_memory() == 10
    (tmp_path / "stat").unlink()
    assert free_memory() == 10


def test_recommend_refuses_before_it_reads_a_text(monkeypatch):
    monkeypatch.setattr(matching.engine, "affinity_of", lambda *_, **__: pytest.fail("texts were scored"))
    with pytest.raises(MemoryLimitError, match="REVMATCH_MEMORY_LIMIT"):
        recommend(venue(), Params(scorer="lexical"), resources=Resources(memory_limit=1000))


def test_readiness_says_what_a_run_will_take():
    """The number is the one by which a run is refused."""
    params = Params(scorer="lexical")
    said = readiness(venue(), params)["counts"]["memory_mb"]
    assert recommend(venue(), params, resources=Resources(memory_limit=said * 10**6)).status == "optimal"
    with pytest.raises(MemoryLimitError):
        recommend(venue(), params, resources=Resources(memory_limit=(said - 1) * 10**6))
    assert readiness(venue(), Params(scorer="lexical", weights={"text": 0}))["counts"]["memory_mb"] < said / 2


def test_fair_objectives_need_no_programs_where_these_are_not_asked():
    """At 30,000 a side programs would be counted with four gigabytes that nobody takes."""
    assert memory.AT_SIZE == SIZE_PAIRS
    (small, large), total = (
        [need_of_solve((side, 2000), ["leximin"]).total - need_of_solve((side, 2000)).total for side in (2000, 2001)],
        need_of_solve((2001, 2000), ["leximin"], programs=True).total - need_of_solve((2001, 2000)).total,
    )
    assert large < small / 5 and total > small


def test_rules_that_the_flow_holds_need_little():
    """Programs take 200 kB a line, which at 30,000 a side is more than most machines have."""

    def need(rules, objective="total"):
        resolved, conflicts, bounds = prepare(venue(), params := Params(rules=rules, objective=objective))
        return need_of_run(resolved, conflicts, bounds, params, "lexical").total

    counted = [{"rule": "reviewers_per_submission", "reviewers": {"load_max": {"at_least": 1}}, "at_least": 1}]
    weighted = [{"rule": "load_weight", "submissions": {"demand": 1}, "weight": 0.5}]
    lines = 4 + 3
    assert need(counted) - need([]) == OF_CLASSES * lines
    assert need(weighted) - need([]) == need([*counted, *weighted]) - need([]) == OF_PROGRAMS * lines
    assert need(counted, "maximin") - need([], "maximin") == OF_PROGRAMS * lines


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not say what a process held")
def test_texts_take_no_more_than_foreseen():
    """A generated venue in a process of its own, whose peak is measured from where the texts are there."""
    code = """
import json, re
from pathlib import Path
from matching.memory import need_of_texts
from matching.scores.textscores import TextScores
from tests.benchmarks.bench_text import venue
submissions, reviewers = venue(40)
whole = [*submissions, *(paper for person in reviewers for paper in person.publications)]
need = need_of_texts("lexical", (40, 40), sum(len(entry.title) + len(entry.abstract) for entry in whole), len(whole))
def read(what):
    return int(re.search(what + r":\\s+([0-9]+) kB", Path("/proc/self/status").read_text()).group(1)) * 1024
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
before = read("VmRSS")
TextScores.fit(submissions, reviewers)
print(json.dumps([read("VmHWM") - before, need.total]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    took, foreseen = json.loads(done.stdout)
    assert 0 < took <= foreseen
