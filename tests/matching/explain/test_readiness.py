"""What is odd about a venue is said before a run, in the readiness answer, and again in the plan."""

import pytest

import matching
from matching import Author, Publication, Reviewer, Submission, Venue, readiness, recommend
from matching.explain import readiness as readings
from matching.formats import FIXTURES
from matching.profiles import text as profile_text
from matching.scores import affinity
from tests.venues import given, papers, people


def works(name, *texts, year=None):
    return tuple(Publication(f"{name}-{at}", text, year=year) for at, text in enumerate(texts))


def notice(found, code):
    """The one notice of a code, None without."""
    items = found["items"] if isinstance(found, dict) else found.notices
    same = [item for item in items if item.code == code]
    assert len(same) <= 1
    return same[0] if same else None


def both(venue):
    return readiness(venue), recommend(venue)


def test_thin_and_stale_profiles_are_named():
    """One publication more would turn their scores; or the work is from another time."""
    venue = Venue(
        (
            Reviewer("thin", publications=works("a", "graph kernels", "graph colouring", year=2023)),
            Reviewer("words", keywords=("graphs",)),
            Reviewer("old", publications=works("b", "graphs one", "graphs two", "graphs three", year=2017)),
            Reviewer("edge", publications=works("c", "trees one", "trees two", "trees three", year=2018)),
            Reviewer("undated", publications=works("d", "paths one", "paths two", "paths three")),
            Reviewer("nobody"),
        ),
        (Submission("p1", "Kernels on graphs", demand=1),),
    )
    for found in both(venue):
        assert notice(found, "thin-profile").reviewers == ("thin", "words")
        assert notice(found, "stale-profile").reviewers == ("old",)
        assert "old (2017)" in notice(found, "stale-profile").message


def test_one_word_and_repetitive_texts_are_flagged():
    """Whether by mistake or to win a reviewer."""
    plain = "we study how graphs can be compared by counting their walks and paths in linear time on large data sets"
    venue = Venue(
        (
            Reviewer("stuffed", publications=works("a", "graph " * 30 + plain)),
            Reviewer("again", publications=works("b", "We are experts in deep learning. " * 3)),
            Reviewer("fine", publications=works("c", plain, "Graphs", "Graph theory")),
            Reviewer("cjk", publications=works("d", "深度" * 40)),
            Reviewer("phrase", publications=works("e", plain + " deep graph learning" * 30)),
        ),
        (
            Submission("p1", "Graphs", demand=1),
            Submission("p2", "Graph graph. Graphs!", demand=1),
            Submission("p3", "Deep learning", plain, demand=1),
            Submission("p4", "Comparing graphs", "Comparing graphs. " + plain, demand=1),
        ),
        load_max=4,
    )
    for found in both(venue):
        assert notice(found, "one-word-text").submissions == ("p1", "p2")
        assert notice(found, "one-word-text").reviewers == ("fine",)
        assert notice(found, "repetitive-text").reviewers == ("again", "cjk", "phrase", "stuffed")
        assert notice(found, "repetitive-text").submissions == ()


def test_submissions_that_share_no_word_with_any_profile_are_named():
    """Known before a score is computed; forms of one word are one word."""
    venue = Venue(
        (Reviewer("r1", publications=works("a", "Kernels on graphs")),),
        (
            Submission("p1", "graph kernel", demand=1),
            Submission("p2", "Protein folding", demand=1),
            Submission("p3", demand=1),
            Submission("p4", "the of and on", demand=1),
            Submission("p5", "蛋白质", demand=1),
        ),
    )
    assert notice(readiness(venue), "no-shared-word").submissions == ("p2", "p5")


def test_unknown_addresses_are_named():
    """Without an address, conflicts by domain and by authorship cannot be found."""
    venue = Venue(
        (Reviewer("r1"), Reviewer("r2", emails=("n/a",)), Reviewer("r3", emails=("a@x.example",)),
         Reviewer("d@y.example")),
        (
            Submission("p1", "graphs", authors=(Author("Ann"), Author(email="b@x.example")), demand=1),
            Submission("p2", "trees", authors=(Author("Bo", id="bo"),), demand=1),
        ),
    )  # fmt: skip
    for found in both(venue):
        assert notice(found, "no-address").reviewers == ("r1", "r2")
        assert notice(found, "unknown-author").submissions == ("p1",)


def test_submissions_nobody_fits_are_named_in_the_plan():
    """One of a dozen is from another field; the only expert of another is in conflict."""
    topics = [
        "graph",
        "kernel",
        "bandit",
        "parser",
        "robot",
        "vision",
        "speech",
        "proof",
        "lattice",
        "privacy",
        "market",
        "quantum",
    ]
    reviewers = tuple(
        Reviewer(f"r{at}", publications=works(f"r{at}", *(f"{topic} {how}" for how in ("fast", "deep", "new methods"))))
        for at, topic in enumerate(topics)
    )  # fmt: skip
    submissions = (
        *(Submission(f"p{at}", f"deep {topic} methods", demand=1) for at, topic in enumerate(topics)),
        Submission("alien", "Sourdough bread baking", demand=1),
    )
    venue = Venue(reviewers, submissions, load_max=2)
    assert notice(recommend(venue), "nobody-fits").submissions == ("alien",)
    barred = Venue(reviewers, submissions, load_max=2, conflicts=(matching.DeclaredConflict("p3", "r3"),))
    found = notice(recommend(barred), "nobody-fits")
    assert found.submissions == ("alien", "p3") and set(found.data["best"]) == {"alien", "p3"}
    assert notice(recommend(venue, matching.Params(weights={"text": 0.0})), "nobody-fits") is None


def test_venues_without_texts_are_not_told_about_texts():
    """A class that assigns at random needs no advice on publications."""
    found = readiness(given(people(r1=1), papers(p1=1), {"r1-p1": 0.5}))
    assert {item.code for item in found["items"]} <= {"no-address", "no-evidence"}


@pytest.mark.parametrize("name", FIXTURES)
def test_the_fixtures_are_in_order(name):
    """Nothing there repeats itself or fits nobody."""
    codes = {item.code for item in recommend(matching.load_fixture(name)).notices}
    assert not codes & {"repetitive-text", "one-word-text", "no-shared-word", "nobody-fits", "stale-profile"}


@pytest.mark.parametrize("weights", [{}, {"text": 0.0}])
def test_readiness_reads_each_text_once(monkeypatch, weights):
    """Reading is nearly all of its time, and a chair waits for it in a browser."""
    venue = matching.load_fixture("icml2026")
    read = []
    real = profile_text.reviewer_documents

    def counted(entry, *more):
        read.append(entry.id)
        return real(entry, *more)

    for module in (readings, affinity):
        monkeypatch.setattr(module, "reviewer_documents", counted)
    matching.readiness(venue, matching.Params(weights=weights))
    assert sorted(read) == sorted(entry.id for entry in venue.reviewers)
