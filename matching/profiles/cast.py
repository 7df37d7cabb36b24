"""Who takes part in a plan, and as what: a column for each person and role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matching.profiles.people import People, is_pool_member, merge_accounts
from matching.profiles.references import SEVERAL
from matching.profiles.reviewer import Reviewer
from matching.profiles.tables import ResolvedBids, ResolvedScores
from matching.types import IntArray

__all__ = ["Cast", "cast_of"]


@dataclass(frozen=True, eq=False)
class Cast:
    """The columns of a plan, ordered by role and then by id.

    Attributes
    ----------
    roles : tuple of str
    reviewers : tuple of Reviewer
        One for each column.
    accounts : tuple of tuple of str
        For each column the ids of accounts that are one person in it, the column's own first: of somebody with one
        role all, of somebody with several those of the role.
    edges : ndarray of shape (n_roles + 1,), int64
        Columns of role k are those from ``edges[k]`` up to ``edges[k + 1]``.
    columns : tuple of tuple of int
        For each person the columns, in order; empty for those that take no part.
    first : ndarray of shape (n_people,), int64
        The first of them, -1 for none.
    slots : ndarray of shape (n_people,), int64
        People who take part, numbered in the order of their first columns; -1 for the others.
    own : ndarray of shape (n_accounts,), int64
        Column an account stands for: of its own role, else of the person's only one; -1 for none, SEVERAL where the
        person has several and the account's role is none of them.
    """

    roles: tuple[str, ...]
    reviewers: tuple[Reviewer, ...]
    accounts: tuple[tuple[str, ...], ...]
    edges: IntArray
    columns: tuple[tuple[int, ...], ...]
    first: IntArray
    slots: IntArray
    own: IntArray

    @property
    def columns_of_slot(self) -> tuple[tuple[int, ...], ...]:
        """For each person who takes part, by slot, all columns."""
        return tuple(sorted((columns for columns in self.columns if columns), key=lambda columns: columns[0]))

    @property
    def further(self) -> frozenset[int]:
        """Columns of people who have another one before it."""
        return frozenset(col for columns in self.columns for col in columns[1:])

    def spread_bids(self, bids: ResolvedBids) -> ResolvedBids:
        """Bids by slot as bids by column: a wish is a person's, whatever the role."""
        if not self.further:
            return bids
        rows, cols, at = self._spread(bids.rows, bids.cols)
        return replace(bids, rows=rows, cols=cols, values=_fixed(bids.values[at]),
                       labels=tuple(bids.labels[one] for one in at.tolist()))  # fmt: skip

    def spread_scores(self, table: ResolvedScores) -> ResolvedScores:
        """Scores by slot as scores by column."""
        if not self.further:
            return table
        rows, cols, at = self._spread(table.rows, table.cols)
        return replace(table, rows=rows, cols=cols, values=_fixed(table.values[at]))

    def _spread(self, rows: IntArray, slots: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Rows and columns in pair order, and the entry each comes from."""
        held = self.columns_of_slot
        count = np.array([len(columns) for columns in held], dtype=np.int64)
        start = np.concatenate([[0], np.cumsum(count)])
        flat = np.array([col for columns in held for col in columns], dtype=np.int64)
        times = count[slots]
        at = np.repeat(np.arange(rows.size), times)
        nth = np.arange(at.size) - np.repeat(np.cumsum(times) - times, times)
        cols = flat[start[slots[at]] + nth]
        order = np.lexsort((cols, rows[at]))
        return _fixed(rows[at][order]), _fixed(cols[order]), at[order]


def cast_of(people: People, roles: Sequence[str]) -> Cast:
    """Columns for the people who have one of these roles."""
    found: list[tuple[int, str, int, list[int]]] = []
    several = set()
    for person, members in enumerate(people.members):
        of_role = [[at for at in members if is_pool_member(people.accounts[at], (role,))] for role in roles]
        found += [(place, people.accounts[own[0]].id, person, own) for place, own in enumerate(of_role) if own]
        if sum(map(bool, of_role)) > 1:
            several.add(person)
    found.sort(key=lambda entry: entry[:2])
    columns: list[list[int]] = [[] for _ in people.members]
    own = np.full(len(people.accounts), -1, dtype=np.int64)
    reviewers, accounts = [], []
    for col, (_, name, person, taking) in enumerate(found):
        members = people.members[person]
        columns[person].append(col)
        reviewers.append(
            merge_accounts([people.accounts[at] for at in taking], [people.accounts[at] for at in members])
        )
        beside = taking if person in several else members
        accounts.append((name, *sorted(people.accounts[at].id for at in beside if people.accounts[at].id != name)))
        own[list(beside)] = col
    for person in several:
        rest = [at for at in people.members[person] if own[at] < 0]
        own[rest] = SEVERAL
    first = np.array([held[0] if held else -1 for held in columns], dtype=np.int64)
    slots = np.full(first.size, -1, dtype=np.int64)
    taking_part = np.flatnonzero(first >= 0)
    slots[taking_part[np.argsort(first[taking_part], kind="stable")]] = np.arange(taking_part.size)
    counts = np.bincount([entry[0] for entry in found], minlength=len(roles)) if found else np.zeros(len(roles))
    edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Cast(
        tuple(roles), tuple(reviewers), tuple(accounts), _fixed(edges), tuple(map(tuple, columns)), _fixed(first),
        _fixed(slots), _fixed(own),
    )  # fmt: skip


def _fixed(array: Any) -> Any:
    array.setflags(write=False)
    return array
