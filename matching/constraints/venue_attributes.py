"""The attributes of a resolved venue, for rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from matching.constraints.attributes import Attributes, Links, Side, incidence
from matching.pairs import PairSet
from matching.profiles.identity import FREE_MAIL, Institutions, domain_of, fold_domain, fold_id, registrable_domain
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission

__all__ = ["attributes_of_venue"]

TRACKS = ("track", "tracks")  # where a reviewer's record may say it


def attributes_of_venue(resolved: ResolvedVenue) -> Attributes:
    """Attributes of the people and submissions of a venue, accounts of one person as one.

    Parameters
    ----------
    resolved : ResolvedVenue
        People and submissions out of the run are read too, so that a rule about them is told from a misspelt one.
    """
    people = _People(resolved)
    several = len(resolved.roles) > 1
    submissions = [*resolved.submissions, *(entry for entry in resolved.venue.submissions if not entry.active)]
    bids = resolved.bids
    wished = PairSet(np.column_stack([bids.rows, bids.cols])[bids.values > 0], resolved.shape, "bids")
    return Attributes(
        Side("submissions", [entry.id for entry in submissions], resolved.shape[0],
             _of_submissions(resolved, submissions, people)),
        Side("reviewers", [entry.id for entry in people.records], resolved.shape[1],
             _of_reviewers(resolved, people), {"email_domain": _domain}),
        resolved.demand, resolved.load_max, resolved.load_min, lambda: people.links(), wished,
        resolved.role_columns if several else None, resolved.role_demand if several else None,
    )  # fmt: skip


class _People:
    """One record for each column of the run, in order, then one for each person out of it."""

    def __init__(self, resolved: ResolvedVenue) -> None:
        self.resolved = resolved
        people = resolved.people
        idle = [person for person, column in enumerate(resolved.columns.tolist()) if column < 0]
        self.records: list[Reviewer] = [
            *resolved.reviewers,
            *(people.accounts[people.members[person][0]] for person in idle),
        ]
        person_of = {column: person for person, columns in enumerate(resolved.person_columns) for column in columns}
        self.persons = [*(person_of[column] for column in range(resolved.shape[1])), *idle]
        self.nodes: dict[int, list[int]] = {}
        for at, person in enumerate(self.persons):
            self.nodes.setdefault(person, []).append(at)

    def accounts(self, at: int) -> list[Reviewer]:
        """Every account of a record's person."""
        people = self.resolved.people
        return [people.accounts[account] for account in people.members[self.persons[at]]]

    def authors_of(self, submission: Submission) -> list[int]:
        """Records of the people whom the authors of a submission are, by id and address."""
        people = self.resolved.people
        names = [name for author in submission.authors for name in (author.id, author.email) if name]
        found = {node for name in names for at in people.everyone(name) for node in self.nodes[people.person[at]]}
        return sorted(found)

    def links(self) -> Links:
        """Authorship of the run's submissions, and co-authorship by publication ids and by all submissions."""
        resolved = self.resolved
        nodes: dict[str, int] = {}
        first = len(self.records)
        active = {entry.id: row for row, entry in enumerate(resolved.submissions)}
        rows, cols, work_rows, work_cols = [], [], [], []
        for work, submission in enumerate(resolved.venue.submissions):
            mine = set(self.authors_of(submission))
            for author in submission.authors:
                name = fold_id(author.id) or fold_id(author.email)
                if name and not resolved.people.everyone(name):
                    # authors outside the pool can be what two co-reviewers have in common
                    mine.add(first + nodes.setdefault(name, len(nodes)))
            work_rows += [work] * len(mine)
            work_cols += sorted(mine)
            if submission.id in active:
                rows += [active[submission.id]] * len(mine)
                cols += sorted(mine)
        works: dict[str, int] = {}
        start = len(resolved.venue.submissions)
        for at in range(first):
            for name in {item.id.strip() for account in self.accounts(at) for item in account.publications} - {""}:
                work_rows.append(start + works.setdefault(name, len(works)))
                work_cols.append(at)
        n_nodes = first + len(nodes)
        together = incidence(work_rows, work_cols, (start + len(works), n_nodes))
        shared = np.diff(together.indptr) > 1
        return Links(incidence(rows, cols, (resolved.shape[0], n_nodes)), sparse.csr_array(together[shared]))


def _of_reviewers(resolved: ResolvedVenue, people: _People) -> dict[str, Callable[[], Sequence[Any]]]:
    institutions = Institutions(resolved.venue.domain_aliases, FREE_MAIL | set(resolved.venue.free_mail))
    records = people.records
    domains_of = cache(institutions.keys)

    def names(at: int) -> list[str]:
        return [name for entry in people.accounts(at) for name in (entry.id, *entry.aliases, *entry.emails)]

    def domains(entry: Reviewer) -> list[str]:
        return sorted({key for text in entry.emails for key in domains_of(domain_of(text))})

    limits = {entry.id: most for entry, most in zip(resolved.reviewers, resolved.load_max.tolist())}
    return {
        "id": lambda: [[entry.id, *names(at)] for at, entry in enumerate(records)],
        "role": lambda: [entry.role for entry in records],
        "seniority": lambda: [entry.seniority for entry in records],
        "country": lambda: [entry.country for entry in records],
        "affiliation": lambda: [entry.affiliations for entry in records],
        "email_domain": lambda: [domains(entry) for entry in records],
        "area": lambda: [entry.areas for entry in records],
        "keyword": lambda: [entry.keywords for entry in records],
        "track": lambda: [
            next((entry.extra[name] for name in TRACKS if name in entry.extra), None) for entry in records
        ],
        "load_max": lambda: [limits.get(entry.id, entry.load_max) for entry in records],
        "publication": lambda: [[item.id for item in entry.publications] for entry in records],
        **_extras(records),
    }


def _of_submissions(
    resolved: ResolvedVenue, records: Sequence[Submission], people: _People
) -> dict[str, Callable[[], Sequence[Any]]]:
    wanted = resolved.role_demand[0].tolist()  # of reviewers, where they take part

    def authors(entry: Submission) -> list[Reviewer]:
        return [account for at in people.authors_of(entry) for account in people.accounts(at)]

    return {
        "id": lambda: [entry.id for entry in records],
        "track": lambda: [entry.track for entry in records],
        "area": lambda: [entry.areas for entry in records],
        "keyword": lambda: [entry.keywords for entry in records],
        "demand": lambda: [wanted[at] if at < len(wanted) else entry.demand for at, entry in enumerate(records)],
        "author": lambda: [
            [name for author in entry.authors for name in (author.id, author.email) if name]
            + [account.id for account in authors(entry)]
            for entry in records
        ],
        "author_affiliation": lambda: [
            [author.affiliation for author in entry.authors]
            + [name for account in authors(entry) for name in account.affiliations]
            for entry in records
        ],
        "author_country": lambda: [[account.country for account in authors(entry)] for entry in records],
        **_extras(records),
    }


def _extras(records: Sequence[Reviewer] | Sequence[Submission]) -> dict[str, Callable[[], Sequence[Any]]]:
    """``extra.<name>`` for every name that any record has."""
    names: Mapping[str, None] = dict.fromkeys(name for entry in records for name in entry.extra)

    def getter(name: str) -> Callable[[], Sequence[Any]]:
        return lambda: [entry.extra.get(name) for entry in records]

    return {f"extra.{name}": getter(name) for name in names}


def _domain(value: Any) -> str:
    domain = fold_domain(str(value))
    return registrable_domain(domain) or domain
