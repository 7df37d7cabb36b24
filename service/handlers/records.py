"""What reviewers and submissions share: bulk add, pages, replacement, deletion."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Connection, Row, Table

from matching.errors import Issue
from service.errors import StateConflictError
from service.handlers.common import (
    Page,
    Record,
    check_id,
    check_version,
    page_of,
    page_start,
    raise_changed,
    raise_issues,
)
from service.store import records
from service.translate import dumps
from service.wiring import Services

__all__ = ["Kind", "add", "delete", "get", "listed", "put"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Kind:
    """How reviewers differ from submissions.

    Attributes
    ----------
    name : str
        "reviewer" or "submission".
    table : Table
    complete : callable
        Loaded dict -> record with every key.
    check : callable
        Records -> issues each record has by itself, ids given twice among them, rows counted from 0.
    names : callable
        Record -> text of its column ``names``.
    check_stored : callable
        (connection, venue key, [(row, record)]) -> (issues, warnings) beside what is stored.
    """

    name: str
    table: Table
    complete: Callable[[Mapping[str, Any]], Record]
    check: Callable[[Sequence[Record]], list[Issue]]
    names: Callable[[Record], str]
    check_stored: Callable[[Connection, int, Sequence[tuple[int | None, Record]]], tuple[list[Issue], list[Record]]]

    @property
    def plural(self) -> str:
        return self.name + "s"


def add(kind: Kind, services: Services, venue: str, items: Sequence[Mapping[str, Any]], dry_run: bool) -> Record:
    """Store new records, all or none."""
    complete = [kind.complete(item) for item in items]
    own = kind.check(complete)
    # everything costly happens before the transaction: others can write meanwhile
    rows = [(record["id"], kind.names(record), dumps(record)) for record in complete] if not own else []

    def work(connection: Connection) -> Record:
        key = records.find_venue(connection, venue).key
        stored = records.keys_of(connection, kind.table, key, list(dict.fromkeys(record["id"] for record in complete)))
        taken = [
            Issue(
                f"{kind.name} {record['id']!r} is stored already",
                "already-stored",
                "id",
                row,
                record["id"],
                kind.plural,
            )
            for row, record in enumerate(complete)
            if record["id"] in stored
        ]
        fresh = [(row, record) for row, record in enumerate(complete) if record["id"] not in stored]
        more, warnings = kind.check_stored(connection, key, fresh)
        if own or more:
            raise_issues([*own, *more, *taken])
        if taken:
            raise StateConflictError(issues=taken)
        records.add_records(connection, kind.table, key, rows)
        return {"created": len(rows), "warnings": warnings}

    answer = services.store.write(work, dry_run)
    log.info(f"{kind.plural}_added", venue=venue, created=answer["created"], dry_run=dry_run)
    return answer


def listed(kind: Kind, services: Services, venue: str, cursor: str | None, limit: int | None) -> Page:
    """One page of records in the order of their creation."""
    (after,), size = page_start(services, cursor, limit)
    with services.store.read() as connection:
        key = records.find_venue(connection, venue).key
        rows = records.page_of_records(connection, kind.table, key, after, size + 1)
    return page_of(rows, size, _show, lambda row: [row.key])


def get(kind: Kind, services: Services, venue: str, name: str) -> Record:
    """One record."""
    with services.store.read() as connection:
        return _show(records.find_record(connection, kind.table, records.find_venue(connection, venue).key, name))


def put(
    kind: Kind, services: Services, venue: str, name: str, data: Mapping[str, Any], if_match: str | None, dry_run: bool
) -> Record:
    """Replace one stored record."""
    check_id(data, name, kind.plural)
    record = kind.complete({**data, "id": name})
    own = [_alone(issue) for issue in kind.check([record])]
    text, names = dumps(record), kind.names(record) if not own else ""

    def work(connection: Connection) -> Record:
        key = records.find_venue(connection, venue).key
        row = records.find_record(connection, kind.table, key, name)
        check_version(if_match, row.version, f"{kind.name} {name!r}", required=True)
        more = kind.check_stored(connection, key, [(None, record)])[0] if names != row.names else []
        raise_issues([*own, *more])
        if not records.change_record(connection, kind.table, row, names, text):
            raise_changed(f"{kind.name} {name!r}")
        return _show(records.find_record(connection, kind.table, key, name))

    shown = services.store.write(work, dry_run)
    log.info(f"{kind.name}_replaced", venue=venue, dry_run=dry_run)
    return shown


def delete(
    kind: Kind,
    services: Services,
    venue: str,
    name: str,
    if_match: str | None,
    dry_run: bool,
    refuse: Callable[[Connection, int, str], None] | None = None,
) -> Record:
    """Delete one record and the facts about its pairs; `refuse` may raise a StateConflictError first."""

    def work(connection: Connection) -> Record:
        key = records.find_venue(connection, venue).key
        row = records.find_record(connection, kind.table, key, name)
        check_version(if_match, row.version, f"{kind.name} {name!r}", required=False)
        if refuse is not None:
            refuse(connection, key, name)
        removed = records.pairs_of_record(connection, kind.table, row.key)
        if n_locks := removed.pop("locks"):
            raise StateConflictError(
                f"{kind.name} {name!r} holds {n_locks} locked pairs; delete the locks first, or set active to false",
                locks=n_locks,
            )
        records.remove_record(connection, kind.table, row)
        return dict(removed)

    answer = services.store.write(work, dry_run)
    log.info(f"{kind.name}_deleted", venue=venue, dry_run=dry_run, **answer)
    return answer


def _alone(issue: Issue) -> Issue:
    """An issue of a record that did not come in a list."""
    return Issue(issue.reason, issue.code, issue.field, None, issue.value, issue.source, issue.severity)


def _show(row: Row[Any]) -> Record:
    return {**json.loads(row.record), "etag": str(row.version)}
