"""Bids, conflicts and locks: what is said about one submission and one reviewer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import Connection, Row, Table

from matching.errors import InvalidVenueError, Issue
from matching.profiles.venue import BID_VALUES
from service.handlers.common import Page, Record, page_of, page_start
from service.handlers.uploads import read_upload
from service.store import pairs
from service.store.records import find_venue
from service.store.tables import bids, conflicts, locks
from service.wiring import Services

__all__ = [
    "delete_bids",
    "delete_conflicts",
    "delete_locks",
    "list_bids",
    "list_conflicts",
    "list_locks",
    "put_bids",
    "put_conflicts",
    "put_locks",
]

log = structlog.get_logger(__name__)

COLUMNS: Mapping[str, Sequence[str]] = {"bids": ("bid",), "conflicts": ("rule", "evidence", "source"), "locks": ()}
"""What each kind says of a pair."""

CONFLICT_DEFAULTS: Mapping[str, str] = {"rule": "declared", "evidence": "", "source": ""}


def put_bids(
    services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool = False, lenient: bool = False
) -> Record:
    """Store bids; one for a pair that has a bid already replaces it.

    Parameters
    ----------
    items : sequence of mapping
        submission, reviewer (id, alias or address), bid (a key of BID_VALUES).
    lenient : bool
        Store the good rows and return the others as "rejected".

    Returns
    -------
    dict
        {"created": n, "updated": n, "rejected": [{row, field, value, reason, code}], "warnings": [...]}

    Raises
    ------
    InvalidVenueError
        ``invalid-venue``: names that nobody has, one pair with two different bids; every row is listed and nothing
        is stored. Not in a lenient upload.
    NotFoundError
    """
    known = ", ".join(BID_VALUES)
    faults = [
        Issue(f"bid must be one of {known}", "unknown-bid", "bid", row, item["bid"], "bids")
        for row, item in enumerate(items)
        if item["bid"] not in BID_VALUES
    ]
    return _stored(services, venue, bids, items, dry_run, lenient, faults)


def list_bids(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Bids, with resolved ids, and "given" where the upload named a record otherwise. Raises NotFoundError."""
    return _listed(services, venue, bids, cursor, limit)


def delete_bids(services: Services, venue: str, dry_run: bool = False) -> Record:
    """Delete all bids of the venue: {"deleted": n}. Raises NotFoundError."""
    return _deleted(services, venue, bids, dry_run)


def put_conflicts(services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool = False) -> Record:
    """Store declared conflicts; all rows or none, since dropping one would lose a hard rule.

    An address that several people share bars all of them. Keys of an item: submission, reviewer, and rule, evidence,
    source, which may be absent. Answer and errors as in `put_bids`.
    """
    complete = [{**CONFLICT_DEFAULTS, **item} for item in items]
    return _stored(services, venue, conflicts, complete, dry_run)


def list_conflicts(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Declared conflicts, with resolved ids, and "given" as for bids. Raises NotFoundError."""
    return _listed(services, venue, conflicts, cursor, limit)


def delete_conflicts(services: Services, venue: str, dry_run: bool = False) -> Record:
    """Delete all conflicts of the venue: {"deleted": n}. Raises NotFoundError."""
    return _deleted(services, venue, conflicts, dry_run)


def put_locks(services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool = False) -> Record:
    """Store locks, pairs every later plan keeps; all or none. Items have submission and reviewer. As `put_bids`."""
    return _stored(services, venue, locks, items, dry_run)


def list_locks(services: Services, venue: str, cursor: str | None = None, limit: int | None = None) -> Page:
    """Locks, with resolved ids, and "given" where the upload named a record otherwise. Raises NotFoundError."""
    return _listed(services, venue, locks, cursor, limit)


def delete_locks(services: Services, venue: str, dry_run: bool = False) -> Record:
    """Delete all locks of the venue: {"deleted": n}. Raises NotFoundError."""
    return _deleted(services, venue, locks, dry_run)


def _stored(
    services: Services,
    venue: str,
    table: Table,
    items: Sequence[Mapping[str, Any]],
    dry_run: bool,
    lenient: bool = False,
    faults: Sequence[Issue] = (),
) -> Record:
    kind = table.name

    def work(connection: Connection) -> Record:
        key = find_venue(connection, venue).key
        upload = read_upload(connection, key, items, kind, COLUMNS[kind], faults, shared=table is conflicts)
        if upload.issues and not lenient:
            raise InvalidVenueError(issues=upload.issues)
        created, updated = pairs.upsert_pairs(connection, table, key, COLUMNS[kind], upload.rows)
        return {"created": created, "updated": updated, "rejected": upload.rejected, "warnings": upload.warnings}

    answer = services.store.write(work, dry_run)
    log.info(
        f"{kind}_stored", venue=venue, created=answer["created"], updated=answer["updated"],
        rejected=len(answer["rejected"]), dry_run=dry_run,
    )  # fmt: skip
    return answer


def _listed(services: Services, venue: str, table: Table, cursor: str | None, limit: int | None) -> Page:
    (submission, reviewer), size = page_start(services, cursor, limit, 2)
    with services.store.read() as connection:
        key = find_venue(connection, venue).key
        rows = pairs.page_of_pairs(connection, table, key, (submission, reviewer), size + 1)

    def show(row: Row[Any]) -> Record:
        shown = {"submission": row.submission, "reviewer": row.reviewer}
        shown.update((name, getattr(row, name)) for name in COLUMNS[table.name])
        return {**shown, "given": None if row.given is None else json.loads(row.given)}

    return page_of(rows, size, show, lambda row: [row.submission_key, row.reviewer_key])


def _deleted(services: Services, venue: str, table: Table, dry_run: bool) -> Record:
    answer = services.store.write(
        lambda connection: {"deleted": pairs.remove_pairs(connection, table, find_venue(connection, venue).key)},
        dry_run,
    )
    log.info(f"{table.name}_deleted", venue=venue, dry_run=dry_run, **answer)
    return answer
