"""Texts alone find reviewers of the right area on the fixture, and the areas they are judged by stay unseen."""

from dataclasses import replace

import numpy as np
import pytest

import matching
from matching.constraints.conflicts import find_conflicts
from matching.profiles.resolve import resolve_venue
from matching.scores.text import text_affinity
from tests.benchmarks.area_shares import TOP, accepted, any_pair, chosen, measured, without_areas

FLOORS = {  # weight of bids -> least share of the first choices, of the plan
    0.25: (0.87, 0.89),  # measured 0.889, 0.912
    0.0: (0.85, 0.86),  # measured 0.871, 0.883
}


@pytest.fixture(scope="module")
def venue():
    return matching.load_fixture("icml2026")


def with_areas_moved(venue):
    """Everybody has the areas of the next in the list, submissions and reviewers alike."""

    def moved(records):
        return tuple(replace(one, areas=next_one.areas) for one, next_one in zip(records, (*records[1:], records[0])))

    return replace(venue, submissions=moved(venue.submissions), reviewers=moved(venue.reviewers))


def test_first_choices_and_plan_mostly_have_an_accepted_area(venue):
    """Three reviewers for each of 57 submissions; by chance fewer than one pair in four has an accepted area."""
    rows = {row["bids"]: row for row in measured(venue, ["lexical"])}
    assert rows.keys() == FLOORS.keys() and any_pair(venue) < 0.3
    for bids, (top, plan) in FLOORS.items():
        assert (rows[bids]["top_pairs"], rows[bids]["plan_pairs"]) == (171, 171)
        assert rows[bids]["top"] >= top and rows[bids]["plan"] >= plan


def test_other_areas_change_no_choice_and_no_affinity(venue):
    """What is judged by areas must not have seen them; moved areas are others, and seen ones do change the plan."""
    other = with_areas_moved(venue)
    assert chosen(venue, "lexical", 0.0) == chosen(other, "lexical", 0.0)
    assert accepted(venue) != accepted(other)
    seen = matching.Params(weights={"areas": 1.0}, scorer="lexical")
    plans = (matching.recommend(entry, seen).assignments for entry in (venue, other))
    first, second = ({(pair.submission, pair.reviewer) for pair in plan} for plan in plans)
    assert first != second


def test_no_field_that_is_scored_names_an_area(venue):
    """Keywords stand in for missing publications; a keyword that is an area's name would give it away."""
    names = {area.casefold() for entry in (*venue.submissions, *venue.reviewers) for area in entry.areas}
    keywords = {word.casefold() for entry in (*venue.submissions, *venue.reviewers) for word in entry.keywords}
    hidden = without_areas(venue)
    assert names and not names & keywords
    assert not any(entry.areas for entry in (*hidden.submissions, *hidden.reviewers))


def test_hidden_areas_and_areas_of_weight_0_give_one_plan(venue):
    """The demo leaves areas out by weight and prints the share this script measures."""
    params = matching.Params(weights={"areas": 0.0}, scorer="lexical")
    plan = {(pair.submission, pair.reviewer): pair.affinity for pair in matching.recommend(venue, params).assignments}
    _, found = chosen(venue, "lexical", 0.25)
    assert found == plan


def test_first_choices_are_the_best_who_may_review(venue):
    """Nobody left out fits better by text, but for those in conflict and those who take no reviews."""
    top, _ = chosen(venue, "lexical", 0.0)
    resolved = resolve_venue(venue, matching.Params())
    conflicts = find_conflicts(resolved, matching.Params()).pairs
    text = text_affinity(resolved.submissions, resolved.reviewers)
    text = np.where(np.isnan(text), np.nanmean(text), text)  # r44 has no text and counts as average
    for row, submission in enumerate(resolved.submissions):
        fits = {
            reviewer.id: text[row, col]
            for col, reviewer in enumerate(resolved.reviewers)
            if resolved.load_max[col] and not conflicts.contains([row], [col])[0]
        }
        first = sorted(fits, key=fits.__getitem__, reverse=True)[:TOP]
        assert sorted(who for name, who in top if name == submission.id) == sorted(first)
