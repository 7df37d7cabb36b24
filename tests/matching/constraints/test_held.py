"""Locks that no plan can keep: the pair, and the rules that lock or bar it, in every door."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matching
from matching.errors import InvalidParamsError, InvalidProblemError, InvalidVenueError
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Author, Submission
from matching.profiles.venue import Lock, Venue

HELD = {"rule": "lock", "name": "held", "submissions": {"id": "p0"}, "reviewers": {"id": "r0"}}
BARRED = {"rule": "bar", "name": "shut", "submissions": {"id": "p0"}, "reviewers": {"id": "r0"}}
TRACKS = {"rule": "same", "name": "tracks", "attribute": "track"}


def venue(**parts: Any) -> Venue:
    """Two submissions and three people; p0 and r0 are of different tracks."""
    people = tuple(Reviewer(f"r{at}", extra={"track": "x" if at else "y"}) for at in range(3))
    papers = tuple(Submission(f"p{at}", f"paper {at}", track="x") for at in range(2))
    return Venue(**{"reviewers": people, "submissions": papers, "demand": 1, "load_max": 2, **parts})


@pytest.mark.parametrize("bar", [BARRED, TRACKS], ids=lambda rule: rule["name"])
@pytest.mark.parametrize("locked_by_rule", [True, False])
def test_a_lock_on_a_pair_that_a_rule_of_the_run_bars_names_the_rule(bar: Any, locked_by_rule: bool) -> None:
    """At the place of the rule that locks; where a plain lock meets a rule, at that of the rule that bars."""
    rules = [bar, HELD] if locked_by_rule else [bar]
    locks = () if locked_by_rule else (Lock("p0", "r0"),)
    with pytest.raises(InvalidParamsError) as error:
        matching.recommend(venue(locks=locks), matching.Params(rules=rules, scorer="lexical"))
    (issue,) = error.value.issues
    assert (issue.code, issue.source, issue.field) == ("locked-conflict", "params", f"rules[{int(locked_by_rule)}]")
    assert issue.value == ["p0", "r0"] and f"rule {bar['name']}: " in issue.reason
    assert ("locked by rule held" in issue.reason) == locked_by_rule


def test_where_the_venue_is_at_fault_with_itself_the_place_is_in_its_list() -> None:
    """The run's own rules come first; without any the venue's are named, and a conflict by its evidence."""
    with pytest.raises(InvalidVenueError) as error:
        matching.readiness(venue(rules=(BARRED,), locks=(Lock("p0", "r0"),)))
    assert [(issue.source, issue.field) for issue in error.value.issues] == [("venue", "rules[0]")]
    with pytest.raises(InvalidParamsError) as error:
        matching.readiness(venue(rules=(BARRED,)), matching.Params(rules=[TRACKS, HELD]))
    assert [(issue.source, issue.field) for issue in error.value.issues] == [("params", "rules[1]")]
    assert "rule shut: " in str(error.value) and "rule tracks: " in str(error.value)
    written = (Submission("p0", "paper", authors=(Author("A", "r0@uni.example"),)), Submission("p1", "other"))
    mine = (Reviewer("r0", emails=("r0@uni.example",)), Reviewer("r1"))
    with pytest.raises(InvalidVenueError) as error:
        matching.readiness(venue(submissions=written, reviewers=mine, locks=(Lock("p0", "r0"),)))
    (issue,) = error.value.issues
    assert (issue.source, issue.field) == ("locks", None) and "which is reviewer r0" in issue.reason


def test_for_a_score_matrix_too() -> None:
    """By the ids of its attributes."""
    given = {
        "submission_attributes": {"id": ["p0", "p1"], "track": ["x", "x"]},
        "reviewer_attributes": {"id": ["r0", "r1", "r2"], "track": ["y", "x", "x"]},
    }
    scores = np.ones((2, 3))
    with pytest.raises(InvalidProblemError) as error:
        matching.assign(scores, demand=1, load_max=2, rules=[TRACKS], locks=[(0, 0)], **given)
    assert error.value.issues[0].field == "rules[0]" and "rule tracks: " in str(error.value)
    with pytest.raises(InvalidProblemError) as error:
        matching.assign(scores, demand=1, load_max=2, rules=[HELD], conflicts=[(0, 0)], **given)
    assert error.value.issues[0].field == "rules[0]" and "locked by rule held" in str(error.value)
    many = {**HELD, "reviewers": {"id": ["r0", "r1"]}}
    with pytest.raises(InvalidProblemError) as error:
        matching.assign(scores, demand=1, load_max=2, rules=[many], **given)
    (issue,) = error.value.issues
    assert (issue.code, issue.field, issue.value) == ("too-many-locks", "rules[0].submissions", "p0")
