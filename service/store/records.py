"""Venues, reviewers and submissions as rows; every function runs inside the caller's transaction."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, delete, func, insert, select, update

from service.errors import NotFoundError
from service.store.tables import (
    bids,
    conflicts,
    locks,
    plan_inputs,
    plans,
    reviewers,
    scores,
    signals,
    submissions,
    venues,
)

__all__ = [
    "add_records",
    "change_record",
    "change_venue",
    "count_venue",
    "find_record",
    "find_venue",
    "ids_of_pairs",
    "insert_venue",
    "keys_of",
    "names_of",
    "page_of_records",
    "page_of_venues",
    "pairs_of_record",
    "remove_record",
    "remove_venue",
    "texts_by_key",
    "texts_of",
]

CHUNK = 500  # rows a statement: bounds the memory of one round trip
ID_CHUNK = 900  # ids in one IN list; SQLite of old builds takes 999 variables


def insert_venue(connection: Connection, venue: str, record: str) -> None:
    """Store a new venue, version 1."""
    connection.execute(
        insert(venues).values(id=venue, record=record, version=1, people=_token(), created_at=time.time())
    )


def find_venue(connection: Connection, venue: str) -> Row[Any]:
    """The row of a venue. Raises NotFoundError."""
    row = connection.execute(select(venues).where(venues.c.id == venue)).first()
    if row is None:
        raise NotFoundError(f"there is no venue {venue!r}", kind="venue", id=venue)
    return row


def page_of_venues(connection: Connection, after: int, limit: int) -> Sequence[Row[Any]]:
    """Venues whose key is above `after`, at most `limit`, in order."""
    return connection.execute(select(venues).where(venues.c.key > after).order_by(venues.c.key).limit(limit)).all()


def change_venue(connection: Connection, row: Row[Any], record: str) -> bool:
    """Replace the record and count its version up; False where somebody else did so since `row` was read."""
    condition = (venues.c.key == row.key) & (venues.c.version == row.version)
    return (
        connection.execute(update(venues).where(condition).values(record=record, version=row.version + 1)).rowcount == 1
    )


def remove_venue(connection: Connection, key: int) -> None:
    """Delete a venue; the foreign keys take its records, facts and plans along, and its snapshots go too."""
    connection.execute(delete(venues).where(venues.c.key == key))
    connection.execute(delete(plan_inputs).where(plan_inputs.c.hash.not_in(select(plans.c.venue_hash))))


def count_venue(connection: Connection, key: int) -> dict[str, int]:
    """Rows of each kind that hang on a venue."""
    counts = {}
    for table in (reviewers, submissions, bids, conflicts, locks, signals, plans):
        counts[table.name] = (
            connection.scalar(select(func.count()).select_from(table).where(table.c.venue_key == key)) or 0
        )
    return counts


def keys_of(connection: Connection, table: Table, venue_key: int, ids: Sequence[str]) -> dict[str, int]:
    """Id -> key of those of `ids` that are stored."""
    found: dict[str, int] = {}
    for start in range(0, len(ids), ID_CHUNK):
        part = ids[start : start + ID_CHUNK]
        query = select(table.c.id, table.c.key).where(table.c.venue_key == venue_key, table.c.id.in_(part))
        found.update((name, key) for name, key in connection.execute(query))
    return found


def names_of(connection: Connection, table: Table, venue_key: int) -> Sequence[Row[Any]]:
    """(key, id, names) of every record of a venue, in order of insertion; names as stored."""
    columns: Select[Any] = select(table.c.key, table.c.id, table.c.names)
    query = columns.where(table.c.venue_key == venue_key).order_by(table.c.key)
    return connection.execute(query).all()


def texts_of(connection: Connection, table: Table, venue_key: int) -> Iterator[str]:
    """The stored JSON of every record of a venue, read as it is asked for."""
    query = select(table.c.record).where(table.c.venue_key == venue_key).order_by(table.c.key)
    with connection.execution_options(yield_per=CHUNK).scalars(query) as found:
        yield from found


def texts_by_key(connection: Connection, table: Table, keys: Sequence[int]) -> dict[int, str]:
    """Key -> stored JSON of some records."""
    found: dict[int, str] = {}
    for start in range(0, len(keys), ID_CHUNK):
        query = select(table.c.key, table.c.record).where(table.c.key.in_(keys[start : start + ID_CHUNK]))
        found.update((key, text) for key, text in connection.execute(query))
    return found


def ids_of_pairs(connection: Connection, rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, str]]:
    """(submission id, reviewer id) of rows that begin with the keys of both."""
    names: list[dict[int, str]] = [{}, {}]
    for column, table in enumerate((submissions, reviewers)):
        wanted = sorted({row[column] for row in rows})
        for start in range(0, len(wanted), ID_CHUNK):
            query = select(table.c.key, table.c.id).where(table.c.key.in_(wanted[start : start + ID_CHUNK]))
            names[column].update((key, name) for key, name in connection.execute(query))
    return [(names[0][row[0]], names[1][row[1]]) for row in rows]


def _token() -> str:
    return uuid.uuid4().hex


def _rename(connection: Connection, table: Table, venue_key: int) -> None:
    """Whoever keeps the names of the venue's reviewers in memory must read them again."""
    if table is reviewers:
        connection.execute(update(venues).where(venues.c.key == venue_key).values(people=_token()))


def add_records(connection: Connection, table: Table, venue_key: int, rows: Iterable[tuple[str, str, str]]) -> None:
    """Store (id, names, record) rows, version 1."""
    _rename(connection, table, venue_key)
    batch: list[dict[str, Any]] = []
    for name, names, record in rows:
        batch.append({"venue_key": venue_key, "id": name, "names": names, "record": record, "version": 1})
        if len(batch) == CHUNK:
            connection.execute(insert(table), batch)
            batch = []
    if batch:
        connection.execute(insert(table), batch)


def find_record(connection: Connection, table: Table, venue_key: int, name: str) -> Row[Any]:
    """The row of one reviewer or submission. Raises NotFoundError."""
    row = connection.execute(select(table).where(table.c.venue_key == venue_key, table.c.id == name)).first()
    if row is None:
        kind = table.name.removesuffix("s")
        raise NotFoundError(f"there is no {kind} {name!r} in this venue", kind=kind, id=name)
    return row


def page_of_records(connection: Connection, table: Table, venue_key: int, after: int, limit: int) -> Sequence[Row[Any]]:
    """Records whose key is above `after`, at most `limit`, in order."""
    query = select(table).where(table.c.venue_key == venue_key, table.c.key > after).order_by(table.c.key).limit(limit)
    return connection.execute(query).all()


def change_record(connection: Connection, table: Table, row: Row[Any], names: str, record: str) -> bool:
    """Replace a record and count its version up; False where somebody else did so since `row` was read."""
    if names != row.names:
        _rename(connection, table, row.venue_key)
    condition = (table.c.key == row.key) & (table.c.version == row.version)
    values = {"names": names, "record": record, "version": row.version + 1}
    return connection.execute(update(table).where(condition).values(**values)).rowcount == 1


def pairs_of_record(connection: Connection, table: Table, key: int) -> dict[str, int]:
    """How many facts about pairs name a record, by kind."""
    column = f"{table.name.removesuffix('s')}_key"
    return {
        pairs.name: connection.scalar(select(func.count()).select_from(pairs).where(pairs.c[column] == key)) or 0
        for pairs in (bids, conflicts, locks, scores)
    }


def remove_record(connection: Connection, table: Table, row: Row[Any]) -> None:
    """Delete a record; the foreign keys take its facts along."""
    _rename(connection, table, row.venue_key)
    connection.execute(delete(table).where(table.c.key == row.key))
