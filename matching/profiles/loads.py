"""Demand and load limits as they hold, role by role: a record's own number, else the default, within the global limit.

0 is a number ("none at all"); only None means "not stated".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from matching.errors import Issue
from matching.notices import Notice
from matching.params import Params
from matching.profiles.people import People
from matching.profiles.records import check_count
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.venue import Venue
from matching.roles import REVIEWER, RoleWish, demand_field, in_words
from matching.types import IntArray

__all__ = ["Numbers", "effective_numbers"]


class Numbers(NamedTuple):
    """Reviews, int64: `demand` of shape (n_roles, n_submissions), `load_max` and `load_min` of shape (n_reviewers,)."""

    demand: IntArray
    load_max: IntArray
    load_min: IntArray


def effective_numbers(
    venue: Venue,
    params: Params,
    submissions: tuple[Submission, ...],
    reviewers: tuple[Reviewer, ...],
    accounts: tuple[tuple[str, ...], ...],
    people: People,
) -> tuple[Numbers, list[Issue], list[Notice]]:
    """Combine personal numbers, options and venue defaults.

    The effective load_max is the smaller of the personal and the global one. A personal load_min above it is an
    issue; a default load_min above a personal load_max is cut to it, with a notice.

    Parameters
    ----------
    submissions, reviewers
        Cleaned records of the run, in row and column order.
    accounts : tuple of tuple of str
        For each column the ids of the person's accounts.
    """
    issues: list[Issue] = []
    notices: list[Notice] = []
    demand: list[list[int]] = []
    load_max, load_min = [0] * len(reviewers), [0] * len(reviewers)
    for wish in params.role_wishes:
        standard, sources, found = _standard(venue, params, wish)
        issues += [issue for issue in found if issue not in issues]  # roles share the venue's load_max
        # a default that is no number has its own issue; it stands in here so that the records are checked too
        need = standard["demand"] or 0
        most = int(np.iinfo(np.int64).max) if standard["load_max"] is None else standard["load_max"]
        least = standard["load_min"] or 0
        if least > most:
            reason = f"load_min {least} is above the global load_max {most}"
            place = "load_min" if wish.name == REVIEWER else f"roles.{wish.name}.load_min"
            issues.append(Issue(reason, "contradiction", place, None, least, sources["load_min"]))
        own, found = _own_demand(venue, submissions, wish.name)
        issues += found
        demand.append([need if number is None else number for number in own])
        lowered, relieved = [], []
        for at, (reviewer, group) in enumerate(zip(reviewers, accounts)):
            if reviewer.role != wish.name:
                continue
            high = most if reviewer.load_max is None else min(reviewer.load_max, most)
            low = least if reviewer.load_min is None else reviewer.load_min
            if reviewer.load_max is not None and reviewer.load_max > most:
                lowered.append(reviewer.id)
            if low > high:
                if reviewer.load_min is not None:
                    issues.append(_too_low(reviewer, group, people, high))
                elif least <= most:
                    relieved.append(reviewer.id)
                low = high
            load_max[at], load_min[at] = high, low
        notices += _cuts(wish.name, lowered, relieved, most, least)
    numbers = Numbers(
        np.array(demand, dtype=np.int64).reshape(len(demand), len(submissions)),
        np.array(load_max, dtype=np.int64),
        np.array(load_min, dtype=np.int64),
    )
    for array in numbers:
        array.setflags(write=False)
    return numbers, issues, notices


def _standard(
    venue: Venue, params: Params, wish: RoleWish
) -> tuple[dict[str, int | None], dict[str, str], list[Issue]]:
    """What holds for a role where a record says nothing, where that comes from, and what is wrong with it."""
    issues = []
    standard: dict[str, int | None] = {}
    sources: dict[str, str] = {}
    for name, other in (("demand", 1), ("load_max", None), ("load_min", 0)):
        option = getattr(wish, name)
        if option is None:
            option = getattr(params, name) if wish.name == REVIEWER or other is None else other
        sources[name] = "venue" if option is None else "params"
        number, issue = check_count(getattr(venue, name) if option is None else option, name, None, sources[name])
        if number is None and issue is None:
            issue = Issue("the venue must state a number of reviews", "missing", name, source="venue")
        if issue is not None:
            issues.append(issue)
        standard[name] = number
    return standard, sources, issues


def _own_demand(venue: Venue, submissions: tuple[Submission, ...], role: str) -> tuple[list[int | None], list[Issue]]:
    """How many people of a role each submission says it needs, None where it says nothing."""
    if role == REVIEWER:
        return [submission.demand for submission in submissions], []
    name, own, issues = demand_field(role), [], []
    for submission in submissions:
        given = submission.extra.get(name)
        if isinstance(given, str) and given.strip().isascii() and given.strip().isdigit():
            given = int(given)  # extra columns of a table hold text
        number, issue = check_count(given if given != "" else None, name, None, "submissions")
        if issue is not None:
            ids = [str(getattr(entry, "id", "")).strip() for entry in venue.submissions]
            row = ids.index(submission.id) if submission.id in ids else None
            issues.append(replace(issue, field=f"extra.{name}", row=row))
        own.append(number)
    return own, issues


def _cuts(role: str, lowered: list[str], relieved: list[str], most: int, least: int) -> Iterator[Notice]:
    who = in_words(role)
    if lowered:
        message = f"{len(lowered)} {who} stated a load_max above the global limit of {most}; it is cut to {most}"
        yield Notice("load-max-cut", message, (), tuple(lowered), {"load_max": most, "count": len(lowered)})
    if relieved:
        message = f"the default load_min of {least} is above the load_max of {len(relieved)} {who}; cut for them"
        yield Notice("load-min-cut", message, (), tuple(relieved), {"load_min": least, "count": len(relieved)})


def _too_low(reviewer: Reviewer, group: tuple[str, ...], people: People, high: int) -> Issue:
    """The issue of a stated load_min that the limit does not allow; names every account of the person."""
    rows = [people.rows[people.exact[name]] for name in group]
    own = reviewer.load_max is not None and reviewer.load_max == high
    limit = f"load_max {high}" if own else f"the global load_max {high}"
    names = ", ".join(f"{name!r} (row {row})" for name, row in zip(group, rows))
    return Issue(
        f"load_min {reviewer.load_min} is above {limit} of reviewer {names}",
        "contradiction",
        "load_min",
        rows[0],
        reviewer.load_min,
        "reviewers",
    )
