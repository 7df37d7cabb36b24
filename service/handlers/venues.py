"""Venues: create, read, change, delete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import structlog
from sqlalchemy import Connection, Row

from matching.errors import Issue
from service.errors import NotFoundError, StateConflictError
from service.handlers.common import (
    Page,
    Record,
    check_id,
    check_version,
    merge,
    page_of,
    page_start,
    raise_changed,
    raise_issues,
    timestamp,
)
from service.store import plans, records
from service.translate import VENUE_DEFAULTS, dumps
from service.wiring import Services

__all__ = ["create_venue", "delete_venue", "get_venue", "list_venues", "update_venue"]

log = structlog.get_logger(__name__)


def create_venue(services: Services, data: Mapping[str, Any], dry_run: bool = False) -> Record:
    """Store a venue.

    Parameters
    ----------
    data : mapping
        id, and any of name, demand, load_max, load_min (reviews), domain_aliases, free_mail.

    Returns
    -------
    dict
        The stored venue with "created_at" and "etag".

    Raises
    ------
    StateConflictError
        ``state-conflict``: the id is taken.
    InvalidVenueError
        ``invalid-venue``: load_min above load_max.
    """
    record = merge(VENUE_DEFAULTS, data)
    _check(record)

    def work(connection: Connection) -> Record:
        if _exists(connection, record["id"]):
            raise StateConflictError(f"there is a venue {record['id']!r} already", id=record["id"])
        records.insert_venue(connection, record["id"], dumps(record))
        return _show(records.find_venue(connection, record["id"]))

    shown = services.store.write(work, dry_run)
    log.info("venue_created", venue=record["id"], dry_run=dry_run)
    return shown


def list_venues(services: Services, cursor: str | None = None, limit: int | None = None) -> Page:
    """Venues in the order of their creation, and the cursor of the next page or None.

    Raises
    ------
    InputError
        ``invalid-input``: a bad cursor or limit.
    """
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        rows = records.page_of_venues(connection, after, size + 1)
    return page_of(rows, size, _show, lambda row: [row.key])


def get_venue(services: Services, venue: str) -> Record:
    """One venue with "counts" of its records by kind, and "etag". Raises NotFoundError."""
    with services.store.read() as connection:
        row = records.find_venue(connection, venue)
        return {**_show(row), "counts": records.count_venue(connection, row.key)}


def update_venue(
    services: Services, venue: str, data: Mapping[str, Any], if_match: str | None, dry_run: bool = False
) -> Record:
    """Change the given keys and keep the others.

    Parameters
    ----------
    if_match : str or None
        The ``If-Match`` header as sent.

    Raises
    ------
    NotFoundError, PreconditionRequiredError, PreconditionFailedError
    InvalidVenueError
        ``invalid-venue``: another id, or load_min above load_max.
    """
    check_id(data, venue, "venue")

    def work(connection: Connection) -> Record:
        row = records.find_venue(connection, venue)
        check_version(if_match, row.version, f"venue {venue!r}", required=True)
        record = merge(json.loads(row.record), data)
        _check(record)
        if not records.change_venue(connection, row, dumps(record)):
            raise_changed(f"venue {venue!r}")
        return _show(records.find_venue(connection, venue))

    shown = services.store.write(work, dry_run)
    log.info("venue_changed", venue=venue, dry_run=dry_run)
    return shown


def delete_venue(services: Services, venue: str, if_match: str | None = None, dry_run: bool = False) -> None:
    """Delete a venue with all its records and plans.

    Raises
    ------
    NotFoundError, PreconditionFailedError
    StateConflictError
        ``state-conflict``: a plan is queued or running.
    """

    def work(connection: Connection) -> None:
        row = records.find_venue(connection, venue)
        check_version(if_match, row.version, f"venue {venue!r}", required=False)
        if running := plans.open_plans(connection, row.key):
            raise StateConflictError(f"plan {running[0]} is queued or running; cancel it first", plans=list(running))
        records.remove_venue(connection, row.key)

    services.store.write(work, dry_run)
    log.info("venue_deleted", venue=venue, dry_run=dry_run)


def _exists(connection: Connection, venue: str) -> bool:
    try:
        records.find_venue(connection, venue)
    except NotFoundError:
        return False
    return True


def _check(record: Mapping[str, Any]) -> None:
    if record["load_min"] > record["load_max"]:
        reason = f"load_min {record['load_min']} is above load_max {record['load_max']}"
        raise_issues([Issue(reason, "contradiction", "load_min", value=record["load_min"], source="venue")])


def _show(row: Row[Any]) -> Record:
    return {**json.loads(row.record), "created_at": timestamp(row.created_at), "etag": str(row.version)}
