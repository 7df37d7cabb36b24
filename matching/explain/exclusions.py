"""Who cannot be assigned where, and why: the facts on record, without scoring a text.

A pair that is ruled out by nothing here is lawful; whether it stands in a plan is then a question of loads and
affinity, which the plan answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.constraints.conflicts import ConflictReason, Conflicts
from matching.constraints.role_rows import RoleRows
from matching.params import Params
from matching.profiles.identity import fold_id
from matching.profiles.people import is_pool_member
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.text import reviewer_documents, submission_text
from matching.roles import in_words
from matching.scores.affinity import build_affinity, signals_of
from matching.types import IntArray

__all__ = ["Exclusion", "Exclusions", "Party"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Why a pair, a submission or a person is ruled out.

    Attributes
    ----------
    code : str
        The first of these that holds: "inactive-submission", "no-demand", "inactive", "role", "no-load",
        "conflict", "unknown-affinity".
    reasons : tuple of str
        One sentence for each thing that rules it out.
    conflicts : tuple of ConflictReason
        Rule, evidence and source of each conflict of the pair.
    """

    code: str
    reasons: tuple[str, ...]
    conflicts: tuple[ConflictReason, ...] = ()


@dataclass(frozen=True, slots=True)
class Party:
    """A submission or a person that a name means.

    Attributes
    ----------
    id : str
        The id under which a plan shows it.
    at : int
        Row or column; -1 for one that takes no part.
    note : str
        What the name is to the person where it is not the id: another account, an alias or an address; else "".
    number : int
        For a person its number among `ResolvedVenue.people`; else -1.
    """

    id: str
    at: int
    note: str = ""
    number: int = -1


class Exclusions:
    """Everything that rules out pairs of one venue under one set of options.

    Parameters
    ----------
    resolved : ResolvedVenue
    conflicts : Conflicts
        Of the same venue and options.
    params : Params
    """

    def __init__(self, resolved: ResolvedVenue, conflicts: Conflicts, params: Params) -> None:
        self._resolved, self._conflicts = resolved, conflicts
        self._inactive = {entry.id: fold_id(entry.id) for entry in resolved.venue.submissions if not entry.active}
        signals = signals_of(resolved, params)
        counted = {signal["name"] for signal in signals if signal["weight"] > 0}
        self._reads_text = "text" in counted
        self._others = (
            build_affinity(
                resolved.shape,
                areas=([entry.areas for entry in resolved.submissions], [entry.areas for entry in resolved.reviewers]),
                bids=(resolved.bids.rows, resolved.bids.cols, resolved.bids.values),
                scores=[(table.name, table.rows, table.cols, table.values, table.default) for table in resolved.scores],
                weights=params.weights,
                defaults=params.defaults,
            )
            if counted and not params.allow_unknown
            else None
        )
        self._readable: NDArray[np.bool_] | None = None

    @property
    def demand(self) -> dict[str, int]:
        """Reviews each submission needs beside its locked ones, by the names of the problem's rows."""
        rows = RoleRows.of(self._resolved)
        held = np.bincount(rows.pairs(self._resolved.locks)[:, 0], minlength=rows.shape[0])
        left = np.maximum(self._resolved.role_demand.ravel() - held, 0).tolist()
        return dict(zip(rows.names([entry.id for entry in self._resolved.submissions]), left, strict=True))

    @property
    def loads(self) -> dict[str, tuple[int, int]]:
        """Most and fewest reviews of each person beside the locked ones."""
        held = np.bincount(self._resolved.locks[:, 1], minlength=self._resolved.shape[1])
        most = np.maximum(self._resolved.load_max - held, 0).tolist()
        least = np.maximum(self._resolved.load_min - held, 0).tolist()
        return {entry.id: numbers for entry, numbers in zip(self._resolved.reviewers, zip(most, least))}

    def load_max(self, column: int) -> int:
        """Most reviews of a person, locked ones included."""
        return int(self._resolved.load_max[column])

    def other_accounts(self, column: int) -> tuple[str, ...]:
        """Ids of a person in the plan's other roles."""
        return tuple(self._resolved.reviewers[other].id for other in self._resolved.other_columns.get(column, ()))

    def submission(self, name: str) -> Party | None:
        """The submission a name means, exactly or apart from capitals; None for nobody's name."""
        row = self._resolved.submission_index.get(name)
        row = self._resolved.submission_index.get(fold_id(name)) if row is None else row
        if row is not None:
            return Party(self._resolved.submissions[row].id, row)
        if name in self._inactive:
            return Party(name, -1)
        same = [other for other, folded in self._inactive.items() if folded == fold_id(name)]
        return Party(same[0], -1) if len(same) == 1 else None

    def people(self, name: str) -> list[Party]:
        """The people an id, alias or address means: none, one, or all who share the address."""
        people = self._resolved.people
        found = {}
        for account in people.find(name):
            person = people.person[account]
            own_columns = [
                col
                for col in self._resolved.person_columns[person]
                if people.accounts[account].id in self._resolved.accounts[col]
            ]
            # somebody with two roles is meant in the one whose account is named
            party = self._column(own_columns[0]) if own_columns else self._party(person)
            note = ""
            if name != party.id:
                own = people.accounts[account].id
                if own == name:
                    note = f"{name} and {party.id} are accounts of one person, who stands in the plan as {party.id}"
                else:
                    note = f"{name} is another name of {party.id}"
            found[person] = Party(party.id, party.at, note, person)
        return [found[person] for person in sorted(found)]

    def of_submission(self, submission: Party) -> Exclusion | None:
        """Why a submission gets no reviews at all."""
        if submission.at < 0:
            return Exclusion("inactive-submission", (f"{submission.id} is not active, so it takes no part",))
        if not self._resolved.demand[submission.at]:
            return Exclusion("no-demand", (f"{submission.id} needs no reviews: its demand is 0",))
        return None

    def of_person(self, person: Party) -> Exclusion | None:
        """Why a person gets no reviews at all."""
        if person.at < 0:
            people = self._resolved.people
            accounts = [people.accounts[at] for at in people.members[person.number]]
            reasons = tuple(
                f"{entry.id} is not active, so it takes no part"
                if not entry.active
                else f"{entry.id} has the role {entry.role}; only {self._taking_part}"
                for entry in accounts
                if not is_pool_member(entry, [wish.name for wish in self._resolved.roles])
            )
            return Exclusion("role" if any(entry.active for entry in accounts) else "inactive", reasons)
        if not self._resolved.load_max[person.at]:
            return Exclusion("no-load", (f"the load_max of {person.id} is 0",))
        return None

    @property
    def _taking_part(self) -> str:
        names = " and ".join(in_words(wish.name) for wish in self._resolved.roles)
        return f"{names} take part in a plan of {names}"

    def of_pair(self, submission: Party, person: Party) -> Exclusion | None:
        """Everything that rules a pair out; None for a lawful pair."""
        found = [entry for entry in (self.of_submission(submission), self.of_person(person)) if entry is not None]
        if submission.at >= 0 and person.at >= 0:
            role = self._resolved.role_of(person.at)
            if not self._resolved.role_demand[role, submission.at] and not found:
                what = in_words(self._resolved.roles[role].name)
                found.append(Exclusion("no-demand", (f"{submission.id} needs no {what}: its demand for them is 0",)))
            conflicts = self._conflicts.reasons(submission.at, person.at)
            if conflicts:
                words = tuple(f"conflict ({reason.rule}): {reason.evidence or reason.rule}" for reason in conflicts)
                found.append(Exclusion("conflict", words, conflicts))
            elif self._unknown(submission.at, np.array([person.at])).any():
                words = ("nothing is known about the affinity of this pair, and allow_unknown is off",)
                found.append(Exclusion("unknown-affinity", words))
        if not found:
            return None
        reasons = tuple(reason for entry in found for reason in entry.reasons)
        return Exclusion(found[0].code, reasons, found[-1].conflicts)

    def excluded(self, submission: Party) -> Iterator[tuple[Party, Exclusion]]:
        """Everybody who cannot review a submission, by id, those out of the run included."""
        if submission.at < 0:
            return
        everyone = np.arange(self._resolved.shape[1])
        out = self._unknown(submission.at, everyone) | (self._resolved.load_max == 0)
        out[self._conflicts.pairs.row(submission.at)] = True
        if self._resolved.demand[submission.at]:
            idle = np.flatnonzero(self._resolved.role_demand[:, submission.at] == 0)
            for role in idle.tolist():
                out[self._resolved.role_columns[role] : self._resolved.role_columns[role + 1]] = True
        parties = [self._column(col) for col in np.flatnonzero(out).tolist()]
        parties += [self._party(person) for person in np.flatnonzero(self._resolved.columns < 0).tolist()]
        for party in sorted(parties, key=lambda entry: entry.id):
            if (found := self.of_pair(submission, party)) is not None:
                yield party, found

    def excluded_from(self, person: Party) -> Iterator[tuple[Party, Exclusion]]:
        """Every submission that a person who takes part cannot review because of the pair itself, by id."""
        if person.at < 0:
            return
        pairs = self._conflicts.pairs
        rows = pairs.rows()[pairs.indices == person.at]
        if self._others is not None:
            unknown = [row for row in range(self._resolved.shape[0]) if self._unknown(row, np.array([person.at])).any()]
            rows = np.union1d(rows, np.array(unknown, dtype=np.int64))
        for row in rows.tolist():
            party = Party(self._resolved.submissions[row].id, row)
            if (found := self.of_pair(party, person)) is not None:
                yield party, found

    def _column(self, column: int) -> Party:
        name = self._resolved.reviewers[column].id
        people = self._resolved.people
        return Party(name, column, number=people.person[people.exact[name]])

    def _party(self, person: int) -> Party:
        column = int(self._resolved.columns[person])
        people = self._resolved.people
        head = people.accounts[people.members[person][0]].id
        return Party(self._resolved.reviewers[column].id if column >= 0 else head, column, number=person)

    def _unknown(self, row: int, columns: IntArray) -> NDArray[np.bool_]:
        """Whether nothing says anything about the pairs of a row, and that matters."""
        if self._others is None:
            return np.zeros(columns.size, dtype=bool)
        unknown = self._others.unknown(np.full(columns.size, row), columns)
        if self._reads_text and submission_text(self._resolved.submissions[row]):
            unknown &= ~self._has_documents()[columns]
        return unknown

    def _has_documents(self) -> NDArray[np.bool_]:
        if self._readable is None:
            people = self._resolved.reviewers
            self._readable = np.array([bool(reviewer_documents(entry)) for entry in people], dtype=bool)
        return self._readable
