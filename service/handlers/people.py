"""Who a name in an upload means: ids, aliases and addresses of stored reviewers, ids of stored submissions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from sqlalchemy import Connection, select

from matching.errors import Issue
from matching.profiles.identity import fold_id, is_address
from matching.profiles.people import People, join_people
from matching.profiles.reviewer import Reviewer
from service.store import records
from service.store.tables import reviewers, submissions, venues
from service.translate import reviewer_from_names

__all__ = ["ReviewerNames", "SubmissionNames", "check_against_stored"]

FEW = 2_000  # names looked up one by one before all names of the venue are read


MOST_KEPT = 4  # venues whose names stay in memory, some 20 MB for 10,000 reviewers

_KEPT: dict[str, tuple[dict[str, int], People]] = {}
"""Token of a venue's names -> (id -> key, people): half a second of work that every bid by address would repeat."""


class ReviewerNames:
    """Keys of the stored reviewers that names mean.

    Ids are looked up in the database; all other names of the venue are read only when some name is no id.
    """

    def __init__(self, connection: Connection, venue_key: int, names: Iterable[str]) -> None:
        self._connection, self._venue_key = connection, venue_key
        wanted = list(dict.fromkeys(names))
        self._people: People | None = None
        self._keys: dict[str, int] = {}
        if len(wanted) <= FEW:
            self._keys = records.keys_of(connection, reviewers, venue_key, wanted)
        else:
            self._read()
        self._found: dict[str, tuple[int, ...]] = {}
        for name in wanted:
            key = self._keys.get(name)
            self._found[name] = (key,) if key is not None else self._other(name)

    def get(self, name: str) -> tuple[int, ...]:
        """Keys of the reviewers a name means: one, none, or all people who share an address."""
        return self._found[name]

    @property
    def all_ids(self) -> bool:
        """Whether every name is the id of a stored reviewer."""
        return self._found.keys() <= self._keys.keys()

    def is_id(self, name: str) -> bool:
        """Whether a name is the very id of a stored reviewer."""
        return name in self._keys

    def describe(self, keys: Sequence[int]) -> str:
        """Ids of reviewers found by a shared address, for a message."""
        known = {key: name for name, key in self._keys.items()}
        return ", ".join(known[key] for key in keys)

    def _read(self) -> None:
        # the token comes first: names that change after it is read are read again next time
        token = self._connection.scalar(select(venues.c.people).where(venues.c.key == self._venue_key)) or ""
        kept = _KEPT.get(token)
        if kept is None:
            rows = records.names_of(self._connection, reviewers, self._venue_key)
            people, _ = join_people([(at, reviewer_from_names(row.id, row.names)) for at, row in enumerate(rows)])
            kept = {row.id: row.key for row in rows}, people
            while len(_KEPT) >= MOST_KEPT:
                _KEPT.pop(next(iter(_KEPT)), None)
            _KEPT[token] = kept
        self._keys, self._people = kept

    def _other(self, name: str) -> tuple[int, ...]:
        if self._people is None:
            self._read()
        assert self._people is not None
        return tuple(self._keys[self._people.accounts[at].id] for at in self._people.find(name))


class SubmissionNames:
    """Keys of the stored submissions that names mean: exactly, or apart from capitals and outer blanks."""

    def __init__(self, connection: Connection, venue_key: int, names: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(names))
        if len(wanted) <= FEW:
            exact = records.keys_of(connection, submissions, venue_key, wanted)
        else:
            exact = {row.id: row.key for row in records.names_of(connection, submissions, venue_key)}
        self._found = {name: key for name in wanted if (key := exact.get(name)) is not None}
        self._ids = set(self._found)
        rest = [name for name in wanted if name not in self._found]
        if not rest:
            return
        folded: dict[str, list[int]] = {}
        for row in records.names_of(connection, submissions, venue_key):
            folded.setdefault(fold_id(row.id), []).append(row.key)
        for name in rest:
            # two ids that differ in capitals alone are two submissions, and such a name means neither
            if len(holders := folded.get(fold_id(name), [])) == 1:
                self._found[name] = holders[0]

    def get(self, name: str) -> int | None:
        """Key of the submission, None for a name nobody has."""
        return self._found.get(name)

    @property
    def all_ids(self) -> bool:
        """Whether every name is the id of a stored submission."""
        return len(self._ids) == len(self._found)

    def is_id(self, name: str) -> bool:
        """Whether a name is the very id of a stored submission."""
        return name in self._ids


STORED_ROW = re.compile(r" \(row -\d+\)")
GIVEN_ROW = re.compile(r"\(row (\d+)\)")


def check_against_stored(
    stored: Sequence[Any], given: Sequence[tuple[int | None, Reviewer]]
) -> tuple[list[Issue], list[dict[str, Any]]]:
    """Faults and probable duplicates among stored and given reviewers that concern a given one.

    Parameters
    ----------
    stored : sequence of rows (key, id, names)
        Without those that `given` replaces.
    given : sequence of (row or None, Reviewer)
        Cleaned records with their position in the upload; None for a record that came alone.

    Returns
    -------
    issues : list of Issue
    warnings : list of dict
    """
    # stored records take negative rows, so that an issue tells which kind it speaks of
    known = [(-1 - at, reviewer_from_names(row.id, row.names)) for at, row in enumerate(stored)]
    people, found = join_people([*known, *((row or 0, reviewer) for row, reviewer in given)])
    single = len(given) == 1 and given[0][0] is None
    issues = []
    for issue in found:
        if issue.field == "id":
            continue  # an id given twice within the upload, told already
        row, reason = issue.row, STORED_ROW.sub(" (stored already)", issue.reason)
        if row is not None and row < 0:
            other = GIVEN_ROW.search(issue.reason)
            row = int(other[1]) if other else None
        if single:
            row, reason = None, GIVEN_ROW.sub("", reason).replace("  ", " ")
        issues.append(replace(issue, row=row, reason=reason))
    fresh = {reviewer.id for _, reviewer in given}
    return issues, _probable_duplicates(people, fresh)


def _probable_duplicates(people: People, fresh: set[str]) -> list[dict[str, Any]]:
    warnings: dict[tuple[str, str], Mapping[str, Any]] = {}
    for name, holders in sorted(people.folded.items()):
        if len(holders) < 2 or not is_address(name):
            continue
        ids = sorted(people.accounts[at].id for at in holders)
        for one, other in combinations(ids, 2):
            if one in fresh or other in fresh:
                warnings.setdefault(
                    (one, other),
                    {
                        "code": "probable-duplicate",
                        "message": f"{one} and {other} have the same address and may be one person; "
                        "link them by same_person_as if they are",
                        "reviewers": [one, other],
                        "submissions": [],
                        "severity": "warning",
                        "data": {},
                    },
                )
    return [dict(warning) for warning in warnings.values()]
