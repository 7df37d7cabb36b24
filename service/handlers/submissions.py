"""Submissions: bulk add, read, replace, delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from matching.errors import Issue
from matching.profiles.records import check_submissions
from service.handlers import records
from service.handlers.common import Page, Record
from service.store.tables import submissions
from service.translate import submission_from, submission_record
from service.wiring import Services

__all__ = ["add_submissions", "delete_submission", "get_submission", "list_submissions", "put_submission"]


def _check(complete: Sequence[Record]) -> list[Issue]:
    good, issues = check_submissions(map(submission_from, complete))
    first: dict[str, int] = {}
    for row, submission in good:
        if first.setdefault(submission.id, row) != row:
            reason = (
                f"id {submission.id!r} is given twice, at rows {first[submission.id]} and {row}; an id names one record"
            )
            issues.append(Issue(reason, "duplicate-id", "id", row, submission.id, "submissions"))
    for row, record in enumerate(complete):
        for at, author in enumerate(record["authors"]):
            if not any((author.get(name) or "").strip() for name in ("id", "email", "name")):
                reason = "an author needs an id, an email or a name"
                issues.append(Issue(reason, "missing", f"authors.{at}", row, None, "submissions"))
    return issues


def _no_names(record: Record) -> str:
    return ""


def _check_stored(
    connection: Connection, venue_key: int, given: Sequence[tuple[int | None, Record]]
) -> tuple[list[Issue], list[Record]]:
    return [], []


KIND = records.Kind("submission", submissions, submission_record, _check, _no_names, _check_stored)


def add_submissions(
    services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool = False
) -> Record:
    """Store new submissions, all or none.

    Parameters
    ----------
    items : sequence of mapping
        Keys as the attributes of `Submission`; all but id may be absent.

    Returns
    -------
    dict
        {"created": n, "warnings": [{code, message, submissions, ...}]}

    Raises
    ------
    StateConflictError
        ``state-conflict``: ids that are stored already; every such row is named.
    InvalidVenueError
        ``invalid-venue``: every other fault, the same id twice with both rows.
    NotFoundError
    """
    return records.add(KIND, services, venue, items, dry_run)


def list_submissions(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Records in the order of their creation, each with "etag", and the next cursor or None. Raises NotFoundError."""
    return records.listed(KIND, services, venue, cursor, limit)


def get_submission(services: Services, venue: str, submission: str) -> Record:
    """One record with "etag". Raises NotFoundError."""
    return records.get(KIND, services, venue, submission)


def put_submission(
    services: Services,
    venue: str,
    submission: str,
    data: Mapping[str, Any],
    if_match: str | None,
    dry_run: bool = False,
) -> Record:
    """Replace one stored record; new ones come through `add_submissions`.

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
    return records.put(KIND, services, venue, submission, data, if_match, dry_run)


def delete_submission(
    services: Services, venue: str, submission: str, if_match: str | None = None, dry_run: bool = False
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
        ``state-conflict``: a lock holds a pair of it.
    """
    return records.delete(KIND, services, venue, submission, if_match, dry_run)
