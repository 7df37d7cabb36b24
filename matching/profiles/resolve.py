"""A venue with every reference turned into a row or column number.

`resolve_venue` joins the accounts of one person, applies defaults and limits, and lists what takes no part. It
either returns a venue that the rest of the engine can trust or raises one error with every fault found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from matching.errors import InvalidVenueError, Issue
from matching.index import IdIndex
from matching.notices import Notice, in_words
from matching.params import Params
from matching.profiles.cast import Cast, cast_of
from matching.profiles.identity import fold_name, is_address
from matching.profiles.loads import effective_numbers
from matching.profiles.people import People, join_people
from matching.profiles.records import check_reviewers, check_submissions
from matching.profiles.references import References
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.tables import ResolvedBids, ResolvedScores, resolve_bids, resolve_scores
from matching.profiles.venue import DeclaredConflict, Venue
from matching.roles import RoleWish
from matching.roles import in_words as in_words_of
from matching.rules import parse_rules
from matching.types import IntArray, PairArray

__all__ = ["ResolvedBids", "ResolvedScores", "ResolvedVenue", "resolve_venue"]


@dataclass(frozen=True, eq=False)
class ResolvedVenue:
    """What a run is made from; rows are submissions, columns are people.

    Attributes
    ----------
    venue : Venue
        As it was handed in.
    reviewers : tuple of Reviewer
        One for each person in the pool, by role and then by id; accounts of one person in one role are merged, and
        somebody with two of the plan's roles has a column for each.
    submissions : tuple of Submission
        The active ones, sorted by id.
    reviewer_index : IdIndex
        Ids, aliases, ids of merged accounts and folded addresses that belong to one person alone -> column.
    submission_index : IdIndex
        Ids and their folded forms where those are unambiguous -> row.
    accounts : tuple of tuple of str
        For each column the ids of all accounts of the person, the column's own first.
    bids : ResolvedBids
    declared : tuple of (int, int, DeclaredConflict)
        Row, column and the conflict as declared, sorted.
    scores : tuple of ResolvedScores
        Sorted by name.
    locks : ndarray of shape (n, 2), int64
        Row and column of each locked pair, sorted.
    demand : ndarray of shape (n_submissions,), int64
        People wanted, of all roles together: the submission's own numbers, else the defaults.
    load_max : ndarray of shape (n_reviewers,), int64
        The smaller of personal and global limit, in reviews.
    load_min : ndarray of shape (n_reviewers,), int64
        The personal number, else the default cut to load_max. Never above load_max.
    notices : tuple of Notice
    people : People
        All accounts, also those that take no part.
    columns : ndarray of shape (n_people,), int64
        First column of each person of `people`, -1 for those that take no part.
    roles : tuple of RoleWish
        Roles that take part, in order.
    role_demand : ndarray of shape (n_roles, n_submissions), int64
        People of each role wanted.
    role_columns : ndarray of shape (n_roles + 1,), int64
        Columns of role k are those from ``role_columns[k]`` up to ``role_columns[k + 1]``.
    person_columns : tuple of tuple of int
        All columns of each person of `people`, one for each of the plan's roles the person has.
    """

    venue: Venue
    reviewers: tuple[Reviewer, ...]
    submissions: tuple[Submission, ...]
    reviewer_index: IdIndex
    submission_index: IdIndex
    accounts: tuple[tuple[str, ...], ...]
    bids: ResolvedBids
    declared: tuple[tuple[int, int, DeclaredConflict], ...]
    scores: tuple[ResolvedScores, ...]
    locks: PairArray
    demand: IntArray
    load_max: IntArray
    load_min: IntArray
    notices: tuple[Notice, ...]
    people: People
    columns: IntArray
    roles: tuple[RoleWish, ...]
    role_demand: IntArray
    role_columns: IntArray
    person_columns: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_submissions, n_reviewers)``."""
        return len(self.submissions), len(self.reviewers)

    def columns_of(self, name: str) -> tuple[int, ...]:
        """Columns of all people to whom an id, alias or address may belong, ascending."""
        found = {col for at in self.people.everyone(name) for col in self.person_columns[self.people.person[at]]}
        return tuple(sorted(found))

    def role_of(self, col: int) -> int:
        """Place among `roles` of the role a column stands for."""
        return int(np.searchsorted(self.role_columns, col, side="right")) - 1

    @property
    def in_two_roles(self) -> tuple[tuple[int, ...], ...]:
        """Columns of each person who takes part in several roles."""
        return tuple(columns for columns in self.person_columns if len(columns) > 1)

    @cached_property
    def other_columns(self) -> Mapping[int, tuple[int, ...]]:
        """Column -> the same person's other columns, for those who have any."""
        return {
            col: tuple(other for other in columns if other != col) for columns in self.in_two_roles for col in columns
        }


def resolve_venue(venue: Venue, params: Params | None = None) -> ResolvedVenue:
    """Check a venue as a whole and resolve its references.

    Parameters
    ----------
    venue : Venue
    params : Params
        `demand`, `load_max` and `load_min` replace the venue's defaults where set. Default ``Params()``.

    Raises
    ------
    InvalidVenueError
        ``invalid-venue``, with an issue for every fault of every list: blank or repeated ids, wrong types,
        numbers out of range, contradictory rows, conflicts and locks that name nobody.

    Notes
    -----
    The order of records never matters. Bids and scores that name nobody are notices (``unresolved-reference``,
    with rows), references to records out of the run too (``inactive-reference``). Time and memory grow with the
    number of records alone.
    """
    params = Params() if params is None else params
    issues = _venue_issues(venue)
    reviewer_records, found = check_reviewers(_listed(venue.reviewers))
    issues += found
    submission_records, found = check_submissions(_listed(venue.submissions))
    issues += found
    people, found = join_people(reviewer_records)
    issues += found
    all_submissions, found = _unique(submission_records)
    issues += found

    cast = cast_of(people, [wish.name for wish in params.role_wishes])
    reviewers, accounts = cast.reviewers, cast.accounts
    submissions = tuple(submission for submission in all_submissions if submission.active)
    rows = {submission.id: row for row, submission in enumerate(submissions)}

    # pairs are first resolved to people, then spread over the columns of those who have several
    references = References(
        [(submission, rows.get(submission.id, -1)) for submission in all_submissions], people, cast.slots, cast.own
    )
    bids = cast.spread_bids(resolve_bids(_listed(venue.bids), references))
    scores = tuple(map(cast.spread_scores, resolve_scores(_listed(venue.scores), references)))
    declared = tuple(
        (row, col, record)
        for row, slot, record in references.declared(_listed(venue.conflicts))
        for col in cast.columns_of_slot[slot]
    )
    locks = references.locks(_listed(venue.locks))
    issues += references.issues

    numbers, found, limits = effective_numbers(venue, params, submissions, reviewers, accounts, people)
    issues += [issue for issue in found if _place(issue) not in {_place(known) for known in issues}]
    notices = [*_who_takes_part(people, cast), *_probable_duplicates(people, cast, reviewers)]
    if issues:
        raise InvalidVenueError(issues=issues)
    notices += limits + references.notices
    reviewer_index = IdIndex((reviewer.id for reviewer in reviewers), _reviewer_names(people, cast))
    submission_index = IdIndex(
        rows,
        {
            other: all_submissions[at].id
            for other, at in references.submission_names.items()
            if all_submissions[at].id in rows
        },
    )
    wanted = numbers.demand[0] if len(numbers.demand) == 1 else numbers.demand.sum(axis=0)
    wanted.setflags(write=False)
    return ResolvedVenue(
        venue,
        reviewers,
        submissions,
        reviewer_index,
        submission_index,
        accounts,
        bids,
        tuple(sorted(declared, key=lambda entry: entry[:2])),
        scores,
        locks,
        wanted,
        numbers.load_max,
        numbers.load_min,
        tuple(notices),
        people,
        cast.first,
        params.role_wishes,
        numbers.demand,
        cast.edges,
        cast.columns,
    )


LISTS = ("reviewers", "submissions", "bids", "conflicts", "scores", "locks", "free_mail", "rules")


def _place(issue: Issue) -> tuple[str, str | None, int | None, str | None]:
    return issue.code, issue.field, issue.row, issue.source


def _listed(value: Any) -> tuple[Any, ...]:
    """The list itself; nothing where it is none, which `_venue_issues` has reported."""
    return value if isinstance(value, tuple) else ()


def _venue_issues(venue: Venue) -> list[Issue]:
    issues = [
        Issue(f"{name} must be a list", "wrong-type", name, value=repr(getattr(venue, name))[:80], source="venue")
        for name in LISTS
        if not isinstance(getattr(venue, name), tuple)
    ]
    issues += [
        Issue("must be a domain", "wrong-type", "free_mail", row, repr(domain), "free_mail")
        for row, domain in enumerate(_listed(venue.free_mail))
        if not isinstance(domain, str)
    ]
    try:
        parse_rules(_listed(venue.rules), source="venue", error=InvalidVenueError)
    except InvalidVenueError as error:
        issues += error.issues
    if not isinstance(venue.domain_aliases, Mapping):
        issues.append(Issue("must map domains to domains", "wrong-type", "domain_aliases", source="venue"))
    else:
        issues += [
            Issue(
                "must map domains to domains",
                "wrong-type",
                "domain_aliases",
                value=f"{name!r}: {other!r}",
                source="venue",
            )
            for name, other in venue.domain_aliases.items()
            if not isinstance(name, str) or not isinstance(other, str)
        ]
    return issues


def _unique(records: list[tuple[int, Submission]]) -> tuple[list[Submission], list[Issue]]:
    """Submissions sorted by id; an id given twice is an issue that names both rows."""
    issues = []
    kept: dict[str, tuple[int, Submission]] = {}
    for row, submission in records:
        first = kept.setdefault(submission.id.strip(), (row, submission))
        if first[0] != row:
            issues.append(
                Issue(
                    f"id {submission.id!r} is given twice, at rows {first[0]} and {row}; an id names one record",
                    "duplicate-id",
                    "id",
                    row,
                    submission.id,
                    "submissions",
                )
            )
    return sorted((submission for _, submission in kept.values()), key=lambda submission: submission.id), issues


def _reviewer_names(people: People, cast: Cast) -> dict[str, str]:
    """Every name that belongs to one column alone -> its id."""
    names: dict[str, str] = {}

    def add(name: str, at: int) -> None:
        if (column := int(cast.own[at])) >= 0:
            names[name] = cast.reviewers[column].id

    for name, at in people.exact.items():
        add(name, at)
    for name, holders in people.folded.items():
        taking = [at for at in holders if cast.columns[people.person[at]]]
        if len(taking) == 1 and name not in people.exact and len(cast.columns[people.person[taking[0]]]) == 1:
            add(name, taking[0])
    return names


def _who_takes_part(people: People, cast: Cast) -> Iterator[Notice]:
    for role in ("emergency", "area_chair", "reviewer"):
        names = tuple(account.id for account in people.accounts if account.active and account.role == role)
        if names and role not in cast.roles:
            part = f"a plan of {' and '.join(map(in_words_of, cast.roles))}"
            yield Notice(
                "role-left-out",
                f"{len(names)} {in_words_of(role)} take no part in {part}",
                reviewers=names,
                data={"role": role, "count": len(names)},
            )
    for group in cast.accounts:
        if len(group) > 1:
            yield Notice(
                "merged-accounts",
                f"accounts {in_words(group)} are one person, shown as {group[0]} with one load limit",
                reviewers=group,
            )
    for columns in cast.columns:
        if len(columns) > 1:
            group = tuple(cast.reviewers[column].id for column in columns)
            yield Notice(
                "several-roles",
                f"accounts {in_words(group)} are one person with a role each, so that a submission gets one of them "
                "at most",
                reviewers=group,
            )


def _probable_duplicates(people: People, cast: Cast, reviewers: tuple[Reviewer, ...]) -> Iterator[Notice]:
    """People of the pool who share an address, or a full name and the title of a publication; one notice a group."""
    reasons: dict[tuple[int, ...], str] = {}
    for name, holders in sorted(people.folded.items()):
        if len(holders) > 1 and is_address(name):
            same = sorted({int(cast.first[people.person[at]]) for at in holders} - {-1})
            reasons.setdefault(tuple(same), f"all have the address {name}")
    namesakes: dict[str, list[int]] = defaultdict(list)
    for column, reviewer in enumerate(reviewers):
        if (name := fold_name(reviewer.name)) and column not in cast.further:
            namesakes[name].append(column)
    for same in namesakes.values():
        titles: dict[str, list[int]] = defaultdict(list)
        for column in same if len(same) > 1 else ():
            for title in {fold_name(work.title) for work in reviewers[column].publications} - {""}:
                titles[title].append(column)
        for title, group in sorted(titles.items()):
            shown = reviewers[group[0]].name
            reasons.setdefault(tuple(group), f"all are named {shown!r} and have the publication {title!r}")
    for columns_of, reason in sorted(reasons.items()):
        if len(columns_of) > 1:
            names = tuple(reviewers[column].id for column in columns_of)
            yield Notice(
                "probable-duplicate",
                f"{in_words(names)} may be one person: {reason}; if so, link them by same_person_as",
                reviewers=names,
            )
