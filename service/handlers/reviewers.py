"""Reviewers: bulk add, read, replace, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from matching.errors import Issue
from matching.profiles.people import join_people
from matching.profiles.records import check_reviewers
from service.errors import StateConflictError
from service.handlers import records
from service.handlers.common import Page, Record
from service.handlers.people import check_against_stored
from service.store.records import names_of
from service.store.tables import reviewers
from service.translate import reviewer_from, reviewer_from_names, reviewer_names, reviewer_record
from service.wiring import Services

__all__ = ["add_reviewers", "delete_reviewer", "get_reviewer", "list_reviewers", "put_reviewer"]


def _check(complete: Sequence[Record]) -> list[Issue]:
    good, issues = check_reviewers(map(reviewer_from, complete))
    _, more = join_people(good)
    # aliases and links may mean reviewers who are stored, and are judged beside those
    issues += [issue for issue in more if issue.field == "id"]
    return issues


def _check_stored(
    connection: Connection, venue_key: int, given: Sequence[tuple[int | None, Record]]
) -> tuple[list[Issue], list[Record]]:
    replaced = {record["id"] for _, record in given}
    stored = [row for row in names_of(connection, reviewers, venue_key) if row.id not in replaced]
    light = [(row, reviewer_from_names(record["id"], reviewer_names(record))) for row, record in given]
    return check_against_stored(stored, light)


KIND = records.Kind("reviewer", reviewers, reviewer_record, _check, reviewer_names, _check_stored)


def add_reviewers(services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool = False) -> Record:
    """Store new reviewers, all or none.

    Parameters
    ----------
    items : sequence of mapping
        Keys as the attributes of `Reviewer`; all but id may be absent.

    Returns
    -------
    dict
        {"created": n, "warnings": [{code, message, reviewers, ...}]}

    Raises
    ------
    StateConflictError
        ``state-conflict``: ids that are stored already; every such row is named.
    InvalidVenueError
        ``invalid-venue``: every other fault, the same id twice with both rows.
    NotFoundError
    """
    return records.add(KIND, services, venue, items, dry_run)


def list_reviewers(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Records in the order of their creation, each with "etag", and the next cursor or None. Raises NotFoundError."""
    return records.listed(KIND, services, venue, cursor, limit)


def get_reviewer(services: Services, venue: str, reviewer: str) -> Record:
    """One record with "etag". Raises NotFoundError."""
    return records.get(KIND, services, venue, reviewer)


def put_reviewer(
    services: Services, venue: str, reviewer: str, data: Mapping[str, Any], if_match: str | None, dry_run: bool = False
) -> Record:
    """Replace one stored record; new ones come through `add_reviewers`.

    Parameters
    ----------
    data : mapping
        The whole record; an "id" in it must be the stored one.
    if_match : str or None
        The ``If-Match`` header as sent.

    Raises
    ------
    NotFoundError, PreconditionRequiredError, PreconditionFailedError, InvalidVenueError
    """
    return records.put(KIND, services, venue, reviewer, data, if_match, dry_run)


def delete_reviewer(
    services: Services, venue: str, reviewer: str, if_match: str | None = None, dry_run: bool = False
) -> Record:
    """Delete one record and what is known about its pairs.

    Returns
    -------
    dict
        {"bids": n, "conflicts": n, "scores": n} removed with it.

    Raises
    ------
    NotFoundError, PreconditionFailedError
    StateConflictError
        ``state-conflict``: a lock holds a pair of it, or another account is linked to it by same_person_as.
    """
    return records.delete(KIND, services, venue, reviewer, if_match, dry_run, refuse=_refuse_linked)


def _refuse_linked(connection: Connection, venue_key: int, name: str) -> None:
    """Others whose `same_person_as` names this reviewer would be left with a link to nobody."""
    rows = names_of(connection, reviewers, venue_key)
    others = [reviewer_from_names(row.id, row.names) for row in rows]
    if linked := [other.id for other in others if other.same_person_as == name and other.id != name]:
        raise StateConflictError(
            f"reviewer {linked[0]!r} is linked to {name!r} by same_person_as; change that, or set active to false",
            reviewers=linked,
        )
