"""Runs in a process of their own: the same plan, and an end to everything that hangs."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import matching
from matching import Params, Resources, watched
from matching.engine import input_hash
from matching.errors import InvalidParamsError, InvalidVenueError, SolverError
from matching.solvers.base import Status
from matching.watched import recommend_within
from tests.hanging import AUDIT, CRASH, DIE, HANG, REFUSE, Hanging, is_gone

ROOT = Path(__file__).resolve().parents[2]
ENGINE = Hanging()


@pytest.fixture(scope="module")
def venue():
    return matching.load_fixture("tiny")


def wait_for(condition, seconds=60.0):
    """The limit only keeps a broken build from hanging."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "this never came true"
        time.sleep(0.05)


def test_the_plan_is_that_of_this_process(venue):
    """Nothing but the place of the run differs, and progress is told here."""
    params = Params(time_limit=600.0, objective=["maximin", "total"], scorer="lexical")
    reports = []
    there = recommend_within(venue, params, progress=reports.append)
    here = matching.recommend(venue, params)
    assert replace(there, provenance={}) == replace(here, provenance={})
    assert there.provenance["input_hash"] == here.provenance["input_hash"]
    assert reports[0].phase == "scores" and reports[-1].fraction == 1.0


def test_b40_native_code_that_never_comes_back_ends_soon_after_the_limit(venue):
    """It holds the interpreter's lock, so nothing in its own process could stop it."""
    reports = []
    params = Params(time_limit=0.2, rng=HANG)
    plan = recommend_within(venue, params, progress=reports.append, grace=0.3, engine=ENGINE)
    assert plan.status == Status.LIMIT_WITHOUT_PLAN and plan.assignments == () and plan.bound == float("inf")
    assert set(plan.unfilled) == {paper.id for paper in venue.submissions}
    assert not plan.certificate.audited and plan.diagnosis == {}
    assert [notice.code for notice in plan.notices][-1] == "stopped-from-outside"
    assert plan.provenance["input_hash"] == input_hash(venue, params)
    assert is_gone(int(reports[0].value))


def test_a_plan_that_was_found_is_not_thrown_away_while_it_is_audited(venue):
    """The limit has passed, but all that takes time is done."""
    assert recommend_within(venue, Params(time_limit=1e-3, rng=AUDIT), grace=0.1, engine=ENGINE) == Status.OPTIMAL


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_b47_what_progress_raises_ends_the_run_at_once(venue, error):
    """Without waiting for a step to end; Ctrl-C comes the same way."""
    seen, stop = [], error("enough")

    def progress(report):
        seen.append(report)
        raise stop

    with pytest.raises(error) as told:
        recommend_within(venue, Params(rng=HANG), progress=progress, engine=ENGINE)
    assert told.value is stop and len(seen) == 1 and is_gone(int(seen[0].value))


def test_a_run_that_dies_is_told_as_what_it_is(venue):
    """Killed for memory, say: no plan, and no claim that there is none."""
    with pytest.raises(SolverError, match="died"):
        recommend_within(venue, Params(rng=DIE), engine=ENGINE)


def test_a_process_that_does_not_start_is_no_reason_to_wait_for_ever(venue, monkeypatch):
    """Nor one to say that the limit was the reason."""
    monkeypatch.setattr(watched, "STARTING", 0.0)
    with pytest.raises(SolverError, match="did not start"):
        recommend_within(venue, Params(time_limit=5.0), engine=ENGINE)


def test_errors_come_back_as_they_were(venue):
    """With every fault they list; a fault of the engine brings its traceback along."""
    with pytest.raises(InvalidVenueError) as refused:
        recommend_within(venue, Params(rng=REFUSE), engine=ENGINE)
    assert [(issue.field, issue.row, issue.value) for issue in refused.value.issues] == [("x", 1, 3)]
    with pytest.raises(KeyError) as crashed:
        recommend_within(venue, Params(rng=CRASH), engine=ENGINE)
    assert "Traceback" in crashed.value.__notes__[0]


def test_the_run_ends_with_the_process_that_asked_for_it(venue, tmp_path):
    """Who was killed cannot stop anything, and nobody waits for the plan any more."""
    note = tmp_path / "process"
    script = (
        "import matching\nfrom matching.watched import recommend_within\nfrom tests.hanging import LONG, Hanging\n"
        f"def tell(report): open({str(note)!r}, 'w').write(str(int(report.value)))\n"
        "recommend_within(matching.load_fixture('tiny'), matching.Params(rng=LONG), progress=tell, engine=Hanging())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # no `if __name__ == "__main__"` is needed: the caller's script is not run a second time
    asking = subprocess.Popen([sys.executable, "-c", script], env=environment)
    try:
        wait_for(lambda: note.exists() and note.read_text())
    finally:
        asking.send_signal(signal.SIGKILL)
        asking.wait()
    wait_for(lambda: is_gone(int(note.read_text())))


def test_an_executor_cannot_go_along(venue):
    """It stays in this process, so it is refused by name and not by what fails when it is packed."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(InvalidParamsError, match="executor"):
        recommend_within(venue, Params(), resources=Resources(executor=pool))
