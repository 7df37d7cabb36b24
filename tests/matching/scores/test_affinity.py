"""From a resolved venue to its affinity: which signals there are, their weights, and wrong names."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pytest

from matching.errors import InvalidParamsError, InvalidVenueError
from matching.params import Params
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Submission
from matching.scores import affinity_of, build_affinity, signals_of

PAPERS = (
    Submission("p1", "Graph kernels", "Comparing molecules.", areas=("graphs",)),
    Submission("p2", "Auction theory", "Revenue.", areas=("games",)),
)
PEOPLE = (
    Reviewer("r1", publications=(Publication("a", "Molecular graphs", "Kernels."),), areas=("graphs",)),
    Reviewer("r2", publications=(Publication("b", "Auctions", "Mechanisms and revenue."),)),
    Reviewer("r3"),
)


def triples(rows=(), cols=(), values=()):
    return {
        "rows": np.array(rows, dtype=np.int64),
        "cols": np.array(cols, dtype=np.int64),
        "values": np.array(values, dtype=np.float64),
    }


@dataclass(frozen=True)
class Resolved:
    """The part of a resolved venue that affinity is made from."""

    submissions: tuple[Submission, ...] = PAPERS
    reviewers: tuple[Reviewer, ...] = PEOPLE
    bids: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(**triples()))
    scores: tuple[SimpleNamespace, ...] = ()


def table(name, default=None, **entries):
    return SimpleNamespace(name=name, default=default, **triples(**entries))


def exact(affinity):
    rows, cols = (part.ravel() for part in np.indices(affinity.shape))
    return affinity.values(rows, cols).reshape(affinity.shape)


def test_experts_lead_and_the_unknown_get_the_mean():
    affinity = affinity_of(Resolved(), Params())
    value = exact(affinity)
    assert value[0, 0] > value[0, 1] and value[1, 1] > value[1, 0]
    (text, measured, used), *_ = affinity.parts(np.array([0]), np.array([2]))
    assert np.isnan(measured[0]) and used[0] == text.default
    known = [affinity.parts(np.array([row]), np.array([col]))[0][1][0] for row in (0, 1) for col in (0, 1)]
    assert text.default == pytest.approx(np.mean(known))
    assert affinity.known_counts() == {"text": 4, "areas": 2}


def test_signals_come_in_order_and_only_if_there_is_data():
    bids = SimpleNamespace(**triples([0], [0], [1.0]))
    scores = (table("zeta", rows=[0], cols=[0], values=[0.3]), table("alpha", 0.1), table("empty"))
    affinity = affinity_of(Resolved(bids=bids, scores=scores), Params())
    assert [signal.name for signal in affinity.signals] == ["text", "areas", "bids", "alpha", "zeta"]
    assert [signal.weight for signal in affinity.signals] == [1.0, 0.1, 0.25, 1.0, 1.0]
    bare = Resolved(reviewers=(Reviewer("r1"),))
    assert affinity_of(bare, Params()).signals == ()


def test_the_record_is_there_before_anything_is_computed(monkeypatch):
    """Readiness must not wait for the text affinity."""
    monkeypatch.setattr("matching.scores.affinity.TextScores.fit", None)
    record = signals_of(Resolved(), Params(weights={"areas": 0.0}))
    assert record == [
        {"name": "text", "weight": 1.0, "pairs": 4, "default": None, "unit": "pairs"},
        {"name": "areas", "weight": 0.0, "pairs": 2, "default": 0.0, "unit": "pairs"},
    ]


def test_b31_text_of_weight_zero_is_counted_and_not_computed(monkeypatch):
    monkeypatch.setattr("matching.scores.affinity.TextScores.fit", None)
    affinity = affinity_of(Resolved(), Params(weights={"text": 0.0}))
    assert affinity.known_counts()["text"] == 4
    (text, measured, used), *_ = affinity.parts(np.array([0]), np.array([0]))
    assert text.name == "text" and np.isnan(measured[0]) and used[0] == 0.0


def test_b25_texts_that_say_nothing_leave_all_pairs_unknown_and_not_impossible():
    """Stop words are data that says nothing: the signal is there, with no pair."""
    papers = (Submission("p1", "the of and"), Submission("p2", "", "1 2"))
    people = (Reviewer("r1", publications=(Publication("a", "and the"),)),)
    resolved = Resolved(papers, people)
    assert exact(affinity_of(resolved, Params())).tolist() == [[0.0], [0.0]]
    assert np.isnan(exact(affinity_of(resolved, Params(allow_unknown=False)))).all()
    assert signals_of(resolved, Params())[0]["pairs"] == 0


def test_b24_the_switch_decides_about_people_without_evidence():
    strict = exact(affinity_of(Resolved(), Params(allow_unknown=False)))
    assert np.isnan(strict[:, 2]).all() and np.isfinite(strict[:, :2]).all()
    assert np.isfinite(exact(affinity_of(Resolved(), Params()))).all()


def test_b26_coverage_counts_people_with_any_evidence():
    """6 with publications, 2 with keywords only, 2 with nothing: 8 of 10 are scored."""
    people = tuple(
        Reviewer(
            f"r{at}",
            publications=(Publication("a", "Graph kernels"),) if at < 6 else (),
            keywords=("auction theory",) if at in (6, 7) else (),
        )
        for at in range(10)
    )
    resolved = Resolved(reviewers=people)
    assert signals_of(resolved, Params())[0]["pairs"] == 8 * len(PAPERS)
    assert affinity_of(resolved, Params()).known_counts()["text"] == 8 * len(PAPERS)


def test_a_wrong_name_in_weights_or_defaults_lists_the_known_ones():
    resolved = Resolved(scores=(table("tpms", rows=[0], cols=[0], values=[0.3]),))
    for options in ({"weights": {"affinity": 1.0}}, {"defaults": {"affinity": 1.0}}):
        for ask in (affinity_of, signals_of):
            with pytest.raises(InvalidParamsError, match="known: text, areas, bids, tpms"):
                ask(resolved, Params(**options))
    affinity_of(resolved, Params(weights={"bids": 1.0, "tpms": 0.5}))  # bids: a built-in name without data is fine


@pytest.mark.parametrize("name", ["text", "areas", "bids"])
def test_tables_may_not_take_the_names_of_built_in_signals(name):
    with pytest.raises(InvalidVenueError, match="built-in"):
        build_affinity((1, 1), scores=[(name, [0], [0], [0.1], None)])


def test_two_tables_of_one_name_are_refused():
    with pytest.raises(InvalidVenueError, match="several tables"):
        build_affinity((1, 1), scores=[("x", [0], [0], [0.1], None), ("x", [0], [0], [0.2], None)])


def test_an_unknown_scorer_is_an_error_of_the_params():
    with pytest.raises(InvalidParamsError, match="lexical"):
        affinity_of(Resolved(), Params(scorer="oracle"))


def test_recency_reaches_the_text():
    old = Publication("o", "Graph kernels", "Comparing molecules.", 2001)
    new = Publication("n", "Auction theory", "Revenue.", 2020)
    resolved = Resolved(reviewers=(Reviewer("r1", publications=(old, new)), *PEOPLE[:2]))
    plain, recent = (exact(affinity_of(resolved, Params(recency_half_life=half))) for half in (None, 2.0))
    assert recent[0, 0] < plain[0, 0] and recent[0, 0] < recent[1, 0]


def test_scoring_tells_how_far_it_is_and_can_be_stopped():
    """A run is cancelled by what its progress raises, during scoring too."""
    told = []
    affinity_of(Resolved(), Params(), progress=told.append)
    assert told == sorted(told) and told[0] == 0.0 and told[-1] == 1.0

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        affinity_of(Resolved(), Params(), progress=stop)
