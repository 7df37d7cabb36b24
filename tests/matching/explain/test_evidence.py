"""Evidence adds up, stands in the texts, and says how sure it is."""

import json

import numpy as np
import pytest

import matching
from matching import Params, Publication, Reviewer, Submission, Venue
from matching.explain.evidence import EvidenceFinder, confidence_of
from matching.profiles.resolve import resolve_venue
from matching.profiles.text import clean_text, reviewer_documents, submission_text
from matching.scores.affinity import affinity_of
from matching.scores.textscores import TextScores

pytestmark = pytest.mark.usefixtures("no_sockets")

FILLER = (
    Reviewer("f1", publications=(Publication("f", "Protein folding by molecular dynamics"),)),
    Reviewer("f2", publications=(Publication("g", "Parsing with lexicalised grammars"),)),
    Reviewer("f3", publications=(Publication("h", "Auctions with many bidders"),)),
)


def finder(venue, params=None):
    resolved = resolve_venue(venue, params)
    return resolved, EvidenceFinder(resolved, affinity_of(resolved, params or Params()))


def evidence_of(venue, submission, reviewer, params=None):
    resolved, found = finder(venue, params)
    return found.of_pair(resolved.submission_index.position(submission), resolved.reviewer_index.position(reviewer))


def written(publication):
    return clean_text(publication.title, publication.abstract).lower()


@pytest.fixture(scope="module")
def fixture():
    return finder(matching.load_fixture("icml2026"))


def test_parts_and_shares_add_up_and_terms_stand_in_both_texts(fixture):
    """For a pair in seven of the whole fixture, those in conflict included."""
    resolved, found = fixture
    passages = 0
    for at in range(0, resolved.shape[0] * resolved.shape[1], 7):
        row, col = divmod(at, resolved.shape[1])
        evidence = found.of_pair(row, col)
        assert sum(part.contribution for part in evidence.parts) == pytest.approx(evidence.affinity, abs=1e-9)
        assert all(part.contribution == part.weight * part.used for part in evidence.parts)
        if not reviewer_documents(resolved.reviewers[col]):
            assert not evidence.publications and evidence.confidence == "thin"
            continue
        assert sum(entry.share for entry in evidence.publications) == pytest.approx(1.0, abs=1e-9)
        assert all(entry.share >= 0 for entry in evidence.publications)
        shares = [entry.share for entry in evidence.publications]
        assert shares == sorted(shares, reverse=True)
        ours = submission_text(resolved.submissions[row]).lower()
        texts = {work.id: written(work) for work in resolved.reviewers[col].publications}
        for entry in evidence.publications:
            theirs = texts[entry.id] if entry.id else " ; ".join(resolved.reviewers[col].keywords).lower()
            assert all(term in ours and term in theirs for term in (*entry.terms, *entry.passages))
            passages += len(entry.passages)
        assert set(evidence.terms) <= {term for entry in evidence.publications for term in entry.terms}
        json.dumps(evidence.to_dict(), allow_nan=False)
    assert passages > 20


def test_the_publication_on_the_topic_carries_the_score():
    """One of three is on the topic; its share is the largest, it fits by itself, and without it little is left."""
    author = Reviewer(
        "r1",
        publications=(
            Publication(
                "on", "Graph kernels for molecules", "Kernels that compare graphs of molecules by walks.", 2021
            ),
            Publication("off", "Wheat yields under drought", "Field trials of wheat."),
            Publication("away", "A history of lighthouses", "Lamps, lenses and keepers."),
        ),
    )
    venue = Venue(
        (author, *FILLER), (Submission("p1", "Kernels on graphs of molecules"), Submission("p2", "Auction design"))
    )
    evidence = evidence_of(venue, "p1", "r1")
    first, *rest = evidence.publications
    assert first.id == "on" and first.year == 2021 and first.share > 0.4 > max(entry.share for entry in rest)
    assert first.fit > max(entry.fit for entry in rest) and first.without < min(entry.without for entry in rest)
    assert {"graphs", "kernels", "molecules"} <= set(first.terms) and "graphs of molecules" in first.passages
    assert evidence.documents == 3 and evidence.words == 8 + 6 + 5


def test_the_standard_error_is_the_jackknife_of_the_text_affinity():
    """sqrt((n - 1) / n * sum of squares) over the affinities with one publication left out."""
    _, found = finder(matching.load_fixture("icml2026"))
    evidence = found.of_pair(3, 4)
    left = np.array([entry.without for entry in evidence.publications])
    spread = np.sqrt((left.size - 1) / left.size * ((left - left.mean()) ** 2).sum())
    assert evidence.standard_error == pytest.approx(spread, abs=1e-12)
    text = next(part for part in evidence.parts if part.signal == "text")
    assert left.min() - 1e-6 <= text.value <= left.max() + 1e-6


def test_what_is_left_out_is_left_out_by_the_formula_of_the_score():
    """Leaving a publication out changes the score as weight 0 does, up to the venue's own word statistics."""
    resolved, _ = finder(matching.load_fixture("icml2026"))
    scores = TextScores.fit(resolved.submissions, resolved.reviewers)
    found = EvidenceFinder(resolved, affinity_of(resolved, Params()))
    for row, col in ((0, 0), (10, 20), (30, 41)):
        entries = found.of_pair(row, col).publications
        assert len(entries) == len(scores.documents_of(col))
        best = entries[0]
        fewer = [
            Reviewer(person.id, publications=tuple(work for work in person.publications if work.id != best.id))
            if at == col
            else person
            for at, person in enumerate(resolved.reviewers)
        ]
        again = TextScores.fit(resolved.submissions, fewer).values(np.array([row]), np.array([col]))[0]
        assert best.without == pytest.approx(again, abs=0.02)


def test_one_publication_has_no_standard_error_and_keywords_are_named_as_such():
    """None is said in words, not shown as 0."""
    venue = Venue(
        (
            Reviewer("one", publications=(Publication("x", "Graph kernels"),)),
            Reviewer("words", keywords=("graph kernels", "C")),
            Reviewer("none"),
            *FILLER,
        ),
        (Submission("p1", "Graph kernels in C"), Submission("p2", "Soft robots")),
    )
    one = evidence_of(venue, "p1", "one")
    assert one.standard_error is None and one.confidence == "thin" and "too few" in one.confidence_words
    assert one.publications[0].share == pytest.approx(1.0, abs=1e-9) and one.publications[0].without is None
    words = evidence_of(venue, "p1", "words")
    assert words.publications[0].id == "" and "keywords only" in words.confidence_words
    assert set(words.terms) == {"graph", "kernels", "c"}
    none = evidence_of(venue, "p1", "none")
    assert none.publications == () and "no text" in none.confidence_words and none.affinity is not None


def test_texts_that_are_not_used_are_no_evidence():
    """With weight 0 nothing is computed, and nothing is claimed."""
    venue = Venue(FILLER, (Submission("p1", "Protein folding"),))
    evidence = evidence_of(venue, "p1", "f1", Params(weights={"text": 0.0}))
    assert evidence.publications == () and "not used" in evidence.confidence_words
    assert sum(part.contribution for part in evidence.parts) == evidence.affinity == 0.0


def test_unknown_pairs_that_may_not_be_used_have_no_affinity():
    """NaN never leaves the engine."""
    venue = Venue((Reviewer("none"), *FILLER), (Submission("p1", "Protein folding"),))
    evidence = evidence_of(venue, "p1", "none", Params(allow_unknown=False))
    assert evidence.affinity is None
    json.dumps(evidence.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("documents", "words", "error", "label"),
    [
        (0, 0, None, "thin"),
        (1, 5000, None, "thin"),
        (2, 5000, 0.01, "thin"),
        (8, 99, 0.01, "thin"),
        (3, 100, 0.01, "fair"),
        (5, 300, 0.11, "fair"),
        (5, 300, 0.1, "good"),
    ],
)
def test_confidence_follows_its_documented_thresholds(documents, words, error, label):
    """Two publications, a hundred words, five publications, a standard error of a tenth."""
    assert confidence_of(documents, words, error)[0] == label


def test_versions_of_one_work_are_one_piece_of_evidence():
    """B27: a preprint and its final version carry one share."""
    works = (
        Publication("pre", "Graph kernels", "", 2019),
        Publication("final", "Graph Kernels.", "Kernels on graphs.", 2021),
    )
    venue = Venue(
        (Reviewer("r1", publications=(*works, Publication("b", "Wheat"))), *FILLER),
        (Submission("p1", "Graph kernels"),),
    )
    evidence = evidence_of(venue, "p1", "r1")
    assert [entry.id for entry in evidence.publications] == ["final", "b"]


def test_the_order_of_a_profile_changes_no_evidence():
    """A profile is a set of works."""
    works = tuple(
        Publication(str(at), f"Graph kernels {word}") for at, word in enumerate(("one", "molecule", "walk", "path"))
    )
    one, other = (
        evidence_of(
            Venue((Reviewer("r1", publications=order), *FILLER), (Submission("p1", "Walk kernels on a graph"),)),
            "p1",
            "r1",
        )
        for order in (works, works[::-1])
    )
    assert one.to_dict() == other.to_dict()


def test_a_submission_without_text_is_not_blamed_on_the_reviewer():
    """Somebody with publications has evidence; it is the other side that says nothing."""
    venue = Venue(
        (Reviewer("a", publications=(Publication("x", "Graph kernels"),)), Reviewer("b"), *FILLER),
        (Submission("p1"), Submission("p2", "Kernels on graphs"), Submission("p3", "Auction design")),
    )
    assert evidence_of(venue, "p1", "a").confidence_words == "the submission has no text to compare"
    assert evidence_of(venue, "p2", "b").confidence_words == "no text speaks for this reviewer"
