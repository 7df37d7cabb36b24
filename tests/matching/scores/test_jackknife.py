"""Standard errors of all pairs at once are those that the evidence of single pairs shows, and robust takes them."""

import numpy as np
import pytest

import matching
from matching import Params, Publication, Reviewer, Submission, Venue, recommend
from matching.errors import InvalidParamsError
from matching.explain.evidence import EvidenceFinder
from matching.profiles.resolve import resolve_venue
from matching.scores import jackknife
from matching.scores.affinity import affinity_of
from matching.scores.jackknife import affinity_errors, standard_errors

pytestmark = pytest.mark.usefixtures("no_sockets")


def affinity(venue, params=None):
    resolved = resolve_venue(venue, params)
    found = affinity_of(resolved, params or Params())
    return resolved, found, next(signal.operator for signal in found.signals if signal.name == "text")


@pytest.mark.parametrize("half_life", [None, 2.0])
def test_they_are_those_of_single_pairs(half_life, monkeypatch):
    """A pair in seven of the fixture, in blocks of a few reviewers, with old publications that hardly count too."""
    params = Params(recency_half_life=half_life)
    resolved, found, text = affinity(matching.load_fixture("icml2026"), params)
    monkeypatch.setattr(jackknife, "AT_ONCE", 20 * resolved.shape[0])
    errors = standard_errors(text)
    finder = EvidenceFinder(resolved, found)
    for at in range(0, resolved.shape[0] * resolved.shape[1], 7):
        row, col = divmod(at, resolved.shape[1])
        single = finder.of_pair(row, col).standard_error
        assert np.isnan(errors[row, col]) if single is None else errors[row, col] == pytest.approx(single, abs=1e-9)


def small():
    """r1 and r2 with publications, r3 with one, r4 with none."""
    works = [
        ("Graph kernels for molecules", "Wheat yields under drought", "A history of lighthouses"),
        ("Kernels on graphs", "Graphs of molecules and their kernels"),
        ("Auctions with many bidders",),
        (),
    ]
    people = [
        Reviewer(f"r{i}", publications=tuple(Publication(f"w{i}{j}", title) for j, title in enumerate(titles)))
        for i, titles in enumerate(works, 1)
    ]
    return Venue(
        tuple(people), (Submission("p1", "Kernels on graphs of molecules"), Submission("p2", "Auction design"))
    )


def test_pairs_without_errors_count_as_unsure_and_the_text_s_weight_is_in():
    """Little evidence is no certainty: otherwise robust would look for people nobody knows anything about."""
    _, found, text = affinity(small(), Params(weights={"text": 2.0}))
    errors, own = affinity_errors(found), standard_errors(text)
    known = ~np.isnan(own)
    assert known[:, :2].all() and not known[:, 2:].any()
    assert errors[known] == pytest.approx(2.0 * own[known])
    assert errors[~known] == pytest.approx(2.0 * np.quantile(own[known], 0.9))


def test_robust_takes_them_where_a_venue_s_plan_says_nothing():
    """The plan's proof holds the errors that a check by hand needs."""
    plan = recommend(small(), Params(demand=1, load_max=1, objective={"name": "robust", "radius": 1.0}))
    _, found, _ = affinity(small())
    errors = affinity_errors(found)
    taken = [(int(pair.submission[1]) - 1, int(pair.reviewer[1]) - 1) for pair in plan.assignments]
    total = sum(pair.affinity for pair in plan.assignments)
    assert plan.value == pytest.approx(total - np.sqrt(sum(errors[at] ** 2 for at in taken)))
    (proof,) = plan.certificate.proofs
    assert plan.certificate.audited and proof["objective"]["standard_error"] == "by pair"
    assert plan.provenance["params"]["objective"] == {"name": "robust", "radius": 1.0}
    listed = {(p, r): number for p, r, number in proof["standard_errors"]}
    assert listed.keys() == {(p, r) for p, r, _ in proof["anchor"]}
    for (p, r), number in listed.items():
        assert number == pytest.approx(errors[int(p[1]) - 1, int(r[1]) - 1])


def test_where_there_is_no_evidence_a_number_is_asked_for():
    """A matrix, a venue without texts, one in which nobody has two publications."""
    with pytest.raises(InvalidParamsError, match="needs standard_error"):
        matching.assign([[0.5, 0.2]], demand=1, load_max=1, objective="robust")
    for venue, params, words in (
        (small(), Params(weights={"text": 0.0, "bids": 1.0}, objective="robust"), "texts are not used"),
        (Venue(small().reviewers[2:], small().submissions), Params(objective="robust"), "nobody has two"),
    ):
        with pytest.raises(InvalidParamsError, match=words):
            recommend(venue, params)


def test_a_venue_with_too_many_texts_is_told_so(monkeypatch):
    """Before the work, which would take hours."""
    monkeypatch.setattr(jackknife, "MOST_COMPARED", 3)
    with pytest.raises(InvalidParamsError, match="too many texts"):
        recommend(small(), Params(objective="robust"))
