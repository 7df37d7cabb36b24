"""Demand and load limits as they hold: a record's own number, else the default, within the global limit.

0 is a number ("none at all"); only None means "not stated".
"""

from __future__ import annotations

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
from matching.types import IntArray

__all__ = ["Numbers", "effective_numbers"]


class Numbers(NamedTuple):
    """Reviews, int64: `demand` of shape (n_submissions,), `load_max` and `load_min` of shape (n_reviewers,)."""

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
    standard: dict[str, int | None] = {}
    sources: dict[str, str] = {}
    for name in ("demand", "load_max", "load_min"):
        option = getattr(params, name)
        sources[name] = "venue" if option is None else "params"
        number, issue = check_count(getattr(venue, name) if option is None else option, name, None, sources[name])
        if number is None and issue is None:
            issue = Issue("the venue must state a number of reviews", "missing", name, source="venue")
        if issue is not None:
            issues.append(issue)
        standard[name] = number
    # a default that is no number has its own issue; it stands in here so that the records are checked too
    need = standard["demand"] or 0
    most = np.iinfo(np.int64).max if standard["load_max"] is None else standard["load_max"]
    least = standard["load_min"] or 0
    if least > most:
        reason = f"load_min {least} is above the global load_max {most}"
        issues.append(Issue(reason, "contradiction", "load_min", None, least, sources["load_min"]))
    demand = [need if submission.demand is None else submission.demand for submission in submissions]
    load_max, load_min = [], []
    lowered, relieved = [], []
    for reviewer, group in zip(reviewers, accounts):
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
        load_max.append(high)
        load_min.append(low)
    if lowered:
        message = f"{len(lowered)} reviewers stated a load_max above the global limit of {most}; it is cut to {most}"
        notices.append(Notice("load-max-cut", message, (), tuple(lowered), {"load_max": most, "count": len(lowered)}))
    if relieved:
        message = f"the default load_min of {least} is above the load_max of {len(relieved)} reviewers; cut for them"
        notices.append(
            Notice("load-min-cut", message, (), tuple(relieved), {"load_min": least, "count": len(relieved)})
        )
    numbers = Numbers(*(np.array(values, dtype=np.int64) for values in (demand, load_max, load_min)))
    for array in numbers:
        array.setflags(write=False)
    return numbers, issues, notices


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
