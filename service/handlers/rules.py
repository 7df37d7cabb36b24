"""The rules of a venue: read, replace, delete as one list."""

from __future__ import annotations

import json
from typing import Any

import structlog
from sqlalchemy import Connection

from matching.errors import InvalidVenueError
from matching.rules import parse_rules
from service.handlers.common import Record, check_version, raise_changed
from service.store import records
from service.store.rules import NO_RULES, change_rules, find_rules
from service.translate import dumps
from service.wiring import Services

__all__ = ["delete_rules", "get_rules", "put_rules"]

log = structlog.get_logger(__name__)


def get_rules(services: Services, venue: str) -> Record:
    """{"rules": [...]} as given, and "etag"; an empty list where there are none. Raises NotFoundError."""
    with services.store.read() as connection:
        return _show(*find_rules(connection, records.find_venue(connection, venue).key))


def put_rules(services: Services, venue: str, rules: Any, if_match: str | None, dry_run: bool = False) -> Record:
    """Replace the whole list. The form is judged here; whom a rule means is looked up when a plan is made.

    Parameters
    ----------
    rules : list
        See `matching.rules.language`.
    if_match : str or None
        The ``If-Match`` header as sent; needed as soon as rules were stored once.

    Raises
    ------
    NotFoundError, PreconditionRequiredError, PreconditionFailedError
    InvalidVenueError
        ``invalid-venue``: every fault of form with its place, such as ``rules[2].at_least``.
    """
    parse_rules(rules, source="venue", error=InvalidVenueError)
    shown = _change(services, venue, dumps(rules), if_match, dry_run, required=True)
    log.info("rules_replaced", venue=venue, rules=len(rules), dry_run=dry_run)
    return shown


def delete_rules(services: Services, venue: str, if_match: str | None = None, dry_run: bool = False) -> None:
    """Delete all rules of a venue; it is no fault if there are none. Raises NotFoundError, PreconditionFailedError."""
    _change(services, venue, NO_RULES, if_match, dry_run, required=False)
    log.info("rules_deleted", venue=venue, dry_run=dry_run)


def _change(services: Services, venue: str, body: str, if_match: str | None, dry_run: bool, required: bool) -> Record:
    def work(connection: Connection) -> Record:
        key = records.find_venue(connection, venue).key
        version, stored = find_rules(connection, key)
        what = f"the rules of venue {venue!r}"
        check_version(if_match, version, what, required=required and version > 0)
        if body == stored == NO_RULES:
            return _show(version, stored)
        if not change_rules(connection, key, version, body):
            raise_changed(what)
        return _show(*find_rules(connection, key))

    return services.store.write(work, dry_run)


def _show(version: int, body: str) -> Record:
    return {"rules": json.loads(body), "etag": str(version)}
