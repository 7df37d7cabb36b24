"""Two people who review each other's submissions are reported, whether or not a rule forbids it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matching import Author, Params, Reviewer, Submission, recommend
from tests.venues import HAND, given, pairs_of

BIDS = Params(weights={"bids": 1.0})


def wrote(name, *ids, emails=()):
    authors = tuple(Author(f"A {one}", id=one) for one in ids) + tuple(Author("B", email=one) for one in emails)
    return Submission(name, demand=1, authors=authors)


def mutual(plan):
    """What the report lists; the notice is there exactly where it lists something, and names the same."""
    found = plan.report["mutual_reviews"]
    notices = [notice for notice in plan.notices if notice.code == "mutual-reviews"]
    assert len(notices) == bool(found)
    for notice in notices:
        assert notice.data["pairs"] == found
        assert set(notice.submissions) == {one["submission"] for entry in found for one in entry["reviews"]}
        assert all(name in notice.message for entry in found for name in entry["reviewers"])
    on = pairs_of(plan)
    assert all((one["reviewer"], one["submission"]) in on for entry in found for one in entry["reviews"])
    return found


def four(bids=None):
    people = tuple(Reviewer(f"r{n}", load_max=1) for n in (1, 2, 3, 4))
    return given(people, (wrote("p1", "r2"), wrote("p2", "r1")), bids=bids or {"r1-p1": "high", "r2-p2": "high"})


def test_b56_two_who_review_each_other_are_reported():
    """The case as reported: each bids only on the other's paper; with the ban on at most one of the two is left."""
    plan = recommend(four(), BIDS)
    assert mutual(plan) == [
        {
            "reviewers": ["r1", "r2"],
            "reviews": [{"submission": "p1", "reviewer": "r1"}, {"submission": "p2", "reviewer": "r2"}],
        }
    ]
    (notice,) = [notice for notice in plan.notices if notice.code == "mutual-reviews"]
    assert notice.message.startswith("1 pair of people reviews each other's submissions: r1 and r2 (p1, p2).")
    banned = recommend(four(), replace(BIDS, rules=[{"rule": "no_cycles", "length": 2}]))
    assert mutual(banned) == [] and len(pairs_of(banned) & {("r1", "p1"), ("r2", "p2")}) == 1


def test_b56_one_way_and_larger_rings_are_no_pairs():
    """r1 reviews r2, r2 reviews r3, r3 reviews r1: nobody reviews each other."""
    people = tuple(Reviewer(f"r{n}", load_max=1) for n in (1, 2, 3))
    works = (wrote("p1", "r1"), wrote("p2", "r2"), wrote("p3", "r3"))
    assert mutual(recommend(given(people, works, {"r1-p2": 0.9, "r2-p3": 0.9, "r3-p1": 0.9}), HAND)) == []
    assert mutual(recommend(four({"r1-p1": "high", "r3-p2": "high"}), BIDS)) == []


def test_b56_accounts_addresses_and_aliases_are_one_person():
    """Authors named by a second account, an address or an alias are who they are everywhere else."""
    people = (
        Reviewer("r1", load_max=2, emails=("one@a.example",), aliases=("uno",)),
        Reviewer("r1b", load_max=2, same_person_as="r1", emails=("other@b.example",)),
        Reviewer("r2", load_max=2),
        Reviewer("r3", load_max=2, aliases=("drei",)),
    )
    works = (
        wrote("p1", "r2"),
        wrote("p2", emails=("OTHER@b.example",)),
        wrote("p3", "uno"),
        wrote("p4", "drei", "outsider"),
    )
    scores = {"r1-p1": 0.9, "r2-p2": 0.8, "r3-p3": 0.7, "r1-p4": 0.6}
    found = mutual(recommend(given(people, works, scores), HAND))
    assert [entry["reviewers"] for entry in found] == [["r1", "r2"], ["r1", "r3"]]
    assert [one["submission"] for one in found[1]["reviews"]] == ["p4", "p3"]


def test_b56_several_authors_and_papers_are_all_listed():
    """Co-authors make several pairs; a pair with two papers is one entry that lists both."""
    people = tuple(Reviewer(name, load_max=2) for name in ("a", "b", "c"))
    works = (wrote("p1", "b", "c"), wrote("p2", "a"), wrote("p3", "a"))
    plan = recommend(given(people, works, {"a-p1": 0.9, "b-p2": 0.9, "b-p3": 0.8, "c-p2": 0.1}), HAND)
    (found,) = mutual(plan)
    assert found["reviewers"] == ["a", "b"]
    assert [(one["submission"], one["reviewer"]) for one in found["reviews"]] == [("p1", "a"), ("p2", "b"), ("p3", "b")]


def test_b56_roles_count_and_are_said():
    """r1 handles p1 as area chair by another account, and its author r2 reviews the paper of r1."""
    people = (
        Reviewer("r1"), Reviewer("c1", role="area_chair", same_person_as="r1"), Reviewer("r2"), Reviewer("r3"),
        Reviewer("c3", role="area_chair"),
    )  # fmt: skip
    works = (wrote("p1", "r2"), wrote("p2", "r1"))
    venue = given(people, works, {"c1-p1": 0.9, "r2-p2": 0.9, "r3-p1": 0.8, "c3-p2": 0.5}, load_max=1)
    (found,) = mutual(recommend(venue, replace(HAND, roles={"reviewer": {"demand": 1}, "area_chair": {"demand": 1}})))
    assert found["reviews"] in (
        [{"submission": "p1", "reviewer": "c1", "role": "area_chair"},
         {"submission": "p2", "reviewer": "r2", "role": "reviewer"}],
        [{"submission": "p2", "reviewer": "r2", "role": "reviewer"},
         {"submission": "p1", "reviewer": "c1", "role": "area_chair"}],
    )  # fmt: skip
    assert sorted(found["reviewers"]) == ["r1", "r2"]


@pytest.mark.parametrize("limit", [None, 1e-9])
def test_the_list_is_there_in_every_report(limit):
    """Programs read it without asking whether it is there."""
    assert isinstance(recommend(four(), replace(BIDS, time_limit=limit)).report["mutual_reviews"], list)
