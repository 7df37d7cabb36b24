"""People whom a plan has review each other's submissions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matching.constraints.role_rows import RoleRows
from matching.notices import Notice, in_words
from matching.profiles.resolve import ResolvedVenue
from matching.types import PairArray

__all__ = ["mutual_notices", "mutual_reviews"]


def mutual_reviews(resolved: ResolvedVenue, pairs: PairArray) -> list[dict[str, Any]]:
    """Two people each of whom is on a submission of the other, in whatever roles.

    Parameters
    ----------
    pairs : ndarray of shape (n, 2), int64
        Rows and columns of the problem.

    Returns
    -------
    list of dict
        By ids: ``reviewers``, the two; ``reviews``, a list of {submission, reviewer} of the one on submissions of the
        other, those of the first before those of the second; of a plan of several roles also ``role``. Authors are
        known by id and address, as for conflicts and the rule ``no_cycles``; accounts of one person are one.
    """
    rows = RoleRows.of(resolved)
    people = resolved.people
    person_of = {col: person for person, columns in enumerate(resolved.person_columns) for col in columns}
    authors: dict[int, set[int]] = {}
    on: dict[tuple[int, int], set[tuple[int, int]]] = {}  # (who reviews, whose submission) -> (submission, column)
    for line, col in pairs.tolist():
        row = rows.place(line)[1]
        if row not in authors:
            found = resolved.submissions[row].authors
            names = {name for author in found for name in (author.id, author.email) if name}
            authors[row] = {people.person[at] for name in names for at in people.everyone(name)}
        for author in authors[row] - {person_of[col]}:
            on.setdefault((person_of[col], author), set()).add((row, col))
    out = []
    for first, second in on:
        if (second, first) in on:
            # each pair comes twice, once from either side
            ids = [resolved.reviewers[resolved.person_columns[person][0]].id for person in (first, second)]
            if ids[0] < ids[1]:
                reviews = [sorted(on[first, second]), sorted(on[second, first])]
                out.append(
                    {"reviewers": ids, "reviews": [entry for part in reviews for entry in _told(resolved, part)]}
                )
    return sorted(out, key=lambda entry: entry["reviewers"])


def _told(resolved: ResolvedVenue, places: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    several = len(resolved.roles) > 1
    told: list[dict[str, Any]] = []
    for row, col in places:
        person = resolved.reviewers[col]
        told.append(
            {"submission": resolved.submissions[row].id, "reviewer": person.id}
            | ({"role": person.role} if several else {})
        )
    return sorted(told, key=lambda entry: (entry["submission"], entry["reviewer"]))


def mutual_notices(found: Sequence[dict[str, Any]]) -> list[Notice]:
    """``mutual-reviews``: who they are; no notice where there are none."""
    if not found:
        return []
    whom = [f"{' and '.join(entry['reviewers'])} ({', '.join(_papers(entry))})" for entry in found]
    start = "1 pair of people reviews" if len(found) == 1 else f"{len(found)} pairs of people review"
    return [
        Notice(
            "mutual-reviews",
            f'{start} each other\'s submissions: {in_words(whom)}. The rule "no_cycles" keeps such pairs out.',
            tuple(sorted({name for entry in found for name in _papers(entry)})),
            tuple(sorted({one["reviewer"] for entry in found for one in entry["reviews"]})),
            {"pairs": [dict(entry) for entry in found]},
        )
    ]


def _papers(entry: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["submission"] for one in entry["reviews"]))
