"""Rules about who wrote what with whom, against graphs walked by hand."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints import rings
from matching.constraints.rules import compile_rules, parse_rules
from matching.constraints.venue_attributes import attributes_of_venue
from matching.errors import InvalidParamsError
from matching.pairs import PairSet
from matching.profiles.resolve import resolve_venue
from matching.profiles.reviewer import Publication, Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Bid, Venue
from tests.matching.constraints.test_rules import M, N, compiled, holds, plans, table, words

writers = st.lists(
    st.lists(st.sampled_from(["0", "1", "2", "3", "4", "x"]), max_size=3, unique=True), min_size=N, max_size=N
)
works = st.lists(st.lists(st.sampled_from("abcd"), max_size=2, unique=True), min_size=M, max_size=M)


@settings(max_examples=40, deadline=None)
@given(writers, st.sampled_from([2, 3, 4]), st.lists(plans, min_size=8, max_size=8))
def test_no_ring_up_to_the_length_closes(authors: list[list[str]], length: int, tried: list[np.ndarray]) -> None:
    """Every ring of distinct people, each of whom reviews a submission of the next, is looked for by permutation."""
    own = np.array([[str(col) in names for col in range(M)] for names in authors])
    made = compile_rules(parse_rules([{"rule": "no_cycles", "length": length}]), table({"author": authors}))
    for plan in tried:
        lawful = plan & ~own
        reviews = np.array([[bool((lawful[:, a] & own[:, b]).any()) for b in range(M)] for a in range(M)])
        closed = any(
            all(reviews[ring[at], ring[(at + 1) % size]] for at in range(size))
            for size in range(2, length + 1)
            for ring in permutations(range(M), size)
        )
        assert holds(made, lawful) == (not closed)


@settings(max_examples=40, deadline=None)
@given(writers, works, st.sampled_from([2, 3]), st.lists(plans, min_size=8, max_size=8))
def test_coreviewers_keep_their_distance(
    authors: list[list[str]], published: list[list[str]], least: int, tried: list[np.ndarray]
) -> None:
    """Shortest paths in the graph of co-authors, people outside the pool included."""
    names = [*map(str, range(M)), "x"]
    near = {
        (a, b)
        for a, b in permutations(names, 2)
        if any({a, b} <= set(group) for group in authors)
        or (a != "x" and b != "x" and set(published[int(a)]) & set(published[int(b)]))
    }
    close = {
        (a, b)
        for a, b in combinations(range(M), 2)
        if (str(a), str(b)) in near or (least == 3 and any((str(a), c) in near and (c, str(b)) in near for c in names))
    }
    attributes = table({"author": authors}, {"publication": published})
    made = compiled({"rule": "coreviewer_distance", "at_least": least}, attributes)
    for plan in tried:
        apart = not any((plan[:, a] & plan[:, b]).any() for a, b in close)
        assert holds(made, plan) == apart


def test_b56_two_who_would_review_each_other_may_not_both() -> None:
    """Rings among bids are all that a large venue can look at; conflicts take pairs out of rings."""
    venue = Venue(
        reviewers=tuple(Reviewer(name) for name in ("r1", "r2", "r3", "r4")),
        submissions=(Submission("p1", authors=(Author(id="r2"),)), Submission("p2", authors=(Author(id="r1"),))),
        bids=(Bid("p1", "r1", "very_high"), Bid("p2", "r2", "high")),
        demand=1,
    )
    attributes = attributes_of_venue(resolve_venue(venue))
    for among in ("all", "bids"):
        limit = compiled({"rule": "no_cycles", "length": 2, "among": among}, attributes).bounds[0]
        assert sorted(limit.pairs.tolist()) == [[0, 0], [1, 1]]
        assert limit.upper.tolist() == [1] and limit.labels == ("r2, r1",)
    rules = parse_rules([{"rule": "no_cycles", "length": 2}])
    assert not compile_rules(rules, attributes, barred=PairSet([[0, 0]], (2, 4))).bounds
    with pytest.raises(InvalidParamsError) as error:
        compiled({"rule": "no_cycles", "length": 2, "among": "bids"}, table({"author": [["1"], ["0"], [], []]}))
    assert words(error) == [("rules[0].among", "rule-matches-nobody")]


def test_publications_withdrawn_submissions_and_retired_people_make_coauthors() -> None:
    """Two who wrote with the same retired person are at distance two."""
    venue = Venue(
        reviewers=(
            Reviewer("a", publications=(Publication("w1"),)), Reviewer("b", emails=("b@x.example",)),
            Reviewer("c"), Reviewer("d"), Reviewer("old", active=False, publications=(Publication("w1"),)),
        ),
        submissions=(
            Submission("p"), Submission("q", active=False, authors=(Author(email="B@x.example"), Author(id="old"))),
            Submission("r", authors=(Author(id="c"), Author(id="z"))),
            Submission("s", authors=(Author(id="z"), Author(id="d"))),
        ),
    )  # fmt: skip
    attributes = attributes_of_venue(resolve_venue(venue))
    near = compiled({"rule": "coreviewer_distance", "at_least": 2}, attributes)
    assert not near.bounds and [notice.code for notice in near.notices] == ["rule-without-effect"]
    far = compiled({"rule": "coreviewer_distance", "at_least": 3, "submissions": {"id": "p"}}, attributes).bounds[0]
    assert far.reviewer_labels == ("a, b", "c, d") and far.submission_labels == ("p",) and (far.upper == 1).all()


def test_sets_within_others_are_left_out() -> None:
    """One constraint for a paper of three says all that its pairs say."""
    attributes = table(reviewers={"publication": [["a"], ["a", "b"], ["a", "b"], [], []]})
    assert compiled({"rule": "coreviewer_distance", "at_least": 2}, attributes).bounds[0].shape == (N, 1)


def test_rings_beyond_counting_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chair learns what to do instead of waiting."""
    monkeypatch.setattr(rings, "MOST_LIMITS", 5)
    attributes = table({"author": [["0"], ["1"], ["2"], ["3"]]})
    with pytest.raises(InvalidParamsError, match="bids only"):
        compiled({"rule": "no_cycles", "length": 2}, attributes)
    with pytest.raises(InvalidParamsError, match="smaller classes"):
        compiled({"rule": "share_reviewers", "at_least": 1}, attributes)
    monkeypatch.setattr(rings, "MOST_WATCHED", 5)
    with pytest.raises(InvalidParamsError, match="too many rings"):
        compiled({"rule": "no_cycles", "length": 2}, attributes)
