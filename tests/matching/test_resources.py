"""A run with a sentence encoder: what it tells while it works and what it leaves on record."""

from dataclasses import replace

import pytest

import matching
from matching import Params, Resources, recommend
from matching.errors import InvalidParamsError, MissingExtraError
from tests.tiny_bert import write_model

TINY = matching.load_fixture("tiny")


def test_a_run_reports_its_encoding_and_records_its_model(tmp_path, no_sockets):
    """Encoding is the slow part of a first run, so the bar must move and the run must be stoppable while it lasts."""
    seen = []
    resources = Resources(write_model(tmp_path / "tiny"), tmp_path / "cache")
    plan = recommend(TINY, progress=seen.append, resources=resources)
    shares = [report.fraction for report in seen]
    assert shares == sorted(shares) and sum(report.phase == "scores" for report in seen) >= 3
    assert plan.status == "optimal" and plan.provenance["text"]["scorer"] == "hybrid"
    again = recommend(TINY, resources=resources)
    assert again.assignments == plan.assignments and again.provenance["text"] == plan.provenance["text"]

    def stop(report):
        if 0 < report.fraction < 0.2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recommend(TINY, progress=stop, resources=resources)


def test_without_text_no_model_is_opened(tmp_path, monkeypatch):
    """A venue that imports all its scores needs no encoder, present or not, and its plan names none."""
    monkeypatch.setattr("matching.vectors.model._packaged_folder", lambda: None)
    weightless = Params(scorer="hybrid", weights={"text": 0.0})
    assert recommend(TINY, weightless).provenance["text"] is None
    assert matching.readiness(TINY, replace(weightless, weights={}))["ready"]  # what it needs may be elsewhere
    with pytest.raises(MissingExtraError):
        recommend(TINY, replace(weightless, weights={}))


def test_what_no_run_can_use_is_refused_before_it_begins():
    """And all of it: texts would be scored for an hour first."""
    with pytest.raises(InvalidParamsError) as caught:
        Resources(executor="two processes", memory_limit="4 GB")
    assert [issue.field for issue in caught.value.issues] == ["memory_limit", "executor"]
    for limit in (-1, True, 1.5):
        with pytest.raises(InvalidParamsError, match="memory_limit"):
            Resources(memory_limit=limit)
