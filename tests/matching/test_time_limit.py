"""A time limit is one for the whole run: texts that are still being scored when it comes end it, too."""

import json
import tempfile

import pytest

import matching.engine as engine
import matching.solved as solved
from matching import Bid, Params, Publication, Resources, Reviewer, Submission, Venue, recommend
from matching.formats.plans import read_plan_json, write_plan_json
from matching.solvers.base import Status
from matching.vectors.bert import BertEncoder
from tests.tiny_bert import WORDS, write_model

pytestmark = pytest.mark.usefixtures("no_sockets")

PEOPLE = tuple(
    Reviewer(f"r{at}", publications=(Publication("x", f"{WORDS[at % 14]} {WORDS[at * 5 % 14]} number{at}"),))
    for at in range(60)
)
PAPERS = tuple(Submission(f"p{at}", f"{WORDS[at * 3 % 14]} {WORDS[at % 14]} paper{at}") for at in range(40))
VENUE = Venue(PEOPLE, PAPERS, bids=(Bid("p1", "r1", "high"),), demand=2, load_max=3)


@pytest.fixture
def folder(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("model") / "tiny")


class Clock:
    """Seconds that pass only when somebody is told of progress."""

    def __init__(self, monkeypatch, step=1.0):
        self.now, self.step = 0.0, step
        monkeypatch.setattr(engine, "perf_counter", lambda: self.now)

    def __call__(self, report):
        self.now += self.step


def last_seconds(monkeypatch, scorer, resources):
    """How many reports there are until everything is scored."""
    clock = Clock(monkeypatch)
    reports = []
    recommend(VENUE, Params(scorer=scorer), progress=lambda report: (clock(report), reports.append(report)),
              resources=resources)  # fmt: skip
    return [report.phase for report in reports].count("scores")


@pytest.mark.parametrize("scorer", ["lexical", "encoder", "hybrid"])
@pytest.mark.parametrize("pairs", ["matrix", "file"])
def test_the_limit_ends_scoring_between_any_two_batches(monkeypatch, folder, tmp_path, scorer, pairs):
    """Whenever it comes, the end is "limit_without_plan": no pairs, no claims, no file left, and a reason in words."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("matching.scores.filling.ROWS", 8)
    monkeypatch.setattr("matching.scores.filling.KEPT_PAIRS", 100)
    monkeypatch.setattr("matching.vectors.neighbours.ROWS", 16)
    if pairs == "file":
        monkeypatch.setattr("matching.scores.filling.MATRIX_PAIRS", 0)
    resources = Resources(encoder_model=folder)
    whole = last_seconds(monkeypatch, scorer, resources)
    assert whole > (8 if scorer == "lexical" else 12)
    for limit in (0.5, 1.5, whole * 0.4, whole * 0.7, whole - 2.5):
        clock = Clock(monkeypatch)
        plan = recommend(VENUE, Params(scorer=scorer, time_limit=limit), progress=clock, resources=resources)
        assert plan.status == Status.LIMIT_WITHOUT_PLAN and plan.assignments == () and plan.alternates == ()
        assert plan.unfilled == {f"p{at}": 2 for at in range(40)}
        assert not plan.certificate.audited and plan.bound == float("inf") and plan.diagnosis == {}
        codes = [notice.code for notice in plan.notices]
        assert "limit-while-scoring" in codes and "unused-signal" not in codes and "nobody-fits" not in codes
        assert {signal["name"]: signal["weight"] for signal in plan.report["signals"]} == {"text": 1.0, "bids": 0.25}
        assert plan.provenance["text"]["scorer"] == scorer and plan.provenance["params"]["time_limit"] == limit
        assert not list(tmp_path.iterdir())
        json.loads(write_plan_json(plan), parse_constant=pytest.fail)
        assert read_plan_json(write_plan_json(plan)).status == plan.status


def test_what_was_encoded_before_the_limit_is_kept(monkeypatch, folder, tmp_path):
    """A second run of the same length gets further, and in the end through."""
    monkeypatch.setattr("matching.vectors.encoder.STEP", 4)
    resources = Resources(encoder_model=folder, encoder_cache=tmp_path)
    encoded = []
    real = BertEncoder.encode
    monkeypatch.setattr(BertEncoder, "encode", lambda self, pieces: encoded.append(1) or real(self, pieces))
    counts = []
    for _ in range(2):
        encoded.clear()
        plan = recommend(VENUE, Params(scorer="encoder", time_limit=9.5), progress=Clock(monkeypatch),
                         resources=resources)  # fmt: skip
        assert plan.status == Status.LIMIT_WITHOUT_PLAN
        counts.append(len(encoded))
    encoded.clear()
    assert recommend(VENUE, Params(scorer="encoder"), resources=resources).status == Status.OPTIMAL
    assert all(counts) and encoded
    texts = {paper.title for paper in PAPERS} | {person.publications[0].title for person in PEOPLE}
    assert sum(counts) + len(encoded) == len(texts)


def test_the_solver_gets_what_scoring_left_of_the_time(monkeypatch):
    """Not the whole limit once more."""
    seen = []
    real = solved.solve

    def solve(problem, wishes, **options):
        if options.get("progress") is not None:  # not one that checks a claim afterwards
            seen.append(options["time_limit"])
        return real(problem, wishes, **options)

    monkeypatch.setattr(solved, "solve", solve)
    whole = last_seconds(monkeypatch, "lexical", None)
    recommend(VENUE, Params(scorer="lexical", time_limit=whole + 100.0), progress=Clock(monkeypatch))
    assert seen[0] is None and seen[1] == pytest.approx(100.0, abs=1.5)


def test_a_limit_that_is_not_reached_changes_nothing(monkeypatch):
    """The same plan to the last digit, and its own limit in the record."""
    free, limited = (recommend(VENUE, Params(scorer="lexical", time_limit=limit)) for limit in (None, 1e6))
    assert free.assignments == limited.assignments and free.value == limited.value
    assert limited.provenance["params"]["time_limit"] == 1e6


@pytest.mark.parametrize("scorer", ["lexical", "encoder", "hybrid"])
def test_progress_of_scoring_never_goes_back(folder, scorer):
    """A hybrid tells of its words as well as of its meanings."""
    shares = []
    recommend(VENUE, Params(scorer=scorer), progress=lambda report: shares.append(report.fraction),
              resources=Resources(encoder_model=folder))  # fmt: skip
    assert shares == sorted(shares)
