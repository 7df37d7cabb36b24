"""A venue at one moment as compressed JSON, named by the hash of its content.

A plan is computed from its snapshot alone, so that later uploads cannot change what it was made from, and two
plans over the same inputs share one.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from service.errors import NotFoundError
from service.store.pairs import signals_of, values_of_pairs
from service.store.rules import NO_RULES, find_rules
from service.store.tables import PAIR_TABLES, plan_inputs, reviewers, scores, submissions, venues

__all__ = ["Snapshot", "keep_snapshot", "load_snapshot", "read_venue", "take_snapshot"]

COLUMNS: Mapping[str, Sequence[str]] = {
    "bids": ("bid",),
    "conflicts": ("rule", "evidence", "source"),
    "locks": (),
    "scores": ("score",),
}
"""Kind -> what of each row enters after submission and reviewer, in this order."""

LEVEL = 1  # zlib: 100 MB of profiles take about a second; higher levels gain a tenth and cost three times that


@dataclass(frozen=True, slots=True)
class Snapshot:
    """SHA-256 of the uncompressed text in hexadecimal, the compressed text, and the size uncompressed in bytes."""

    hash: str
    body: bytes
    size: int


def take_snapshot(connection: Connection, venue_key: int, more_locks: Iterable[tuple[str, str]] = ()) -> Snapshot:
    """The venue as the connection sees it, with `more_locks` added to its locks.

    Parameters
    ----------
    more_locks : iterable of (submission id, reviewer id)
        Locks that hold for one plan only.
    """
    digest, packer, packed, size = hashlib.sha256(), zlib.compressobj(LEVEL), bytearray(), 0
    for text in _parts(connection, venue_key, more_locks):
        data = text.encode()
        digest.update(data)
        packed += packer.compress(data)
        size += len(data)
    packed += packer.flush()
    return Snapshot(digest.hexdigest(), bytes(packed), size)


def read_venue(connection: Connection, venue_key: int) -> dict[str, Any]:
    """The same as a snapshot, parsed and not kept."""
    snapshot: dict[str, Any] = json.loads("".join(_parts(connection, venue_key, ())))
    return snapshot


def _parts(connection: Connection, venue_key: int, more_locks: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The snapshot's JSON text piece by piece; records go through as stored, unparsed."""
    yield '{"venue":' + (connection.scalar(select(venues.c.record).where(venues.c.key == venue_key)) or "{}")
    for table in (reviewers, submissions):
        yield f',"{table.name}":['
        # by code point on every database, so that equal content has an equal hash whatever the locale
        order = table.c.id.collate("C") if connection.dialect.name == "postgresql" else table.c.id
        query = select(table.c.record).where(table.c.venue_key == venue_key).order_by(order)
        between = ""
        for record in connection.scalars(query, execution_options={"yield_per": 500}):
            yield between + record
            between = ","
        yield "]"
    for kind, table in PAIR_TABLES.items():
        rows = values_of_pairs(connection, table, venue_key, COLUMNS[kind])
        if kind == "locks":
            rows = sorted({*rows, *more_locks})
        yield f',"{kind}":{_text(rows)}'
    yield ',"scores":['
    between = ""
    for signal in signals_of(connection, venue_key):
        yield between + f'{{"name":{_text(signal.name)},"default":{_text(signal.default_value)},"rows":'
        yield _text(values_of_pairs(connection, scores, signal.key, COLUMNS["scores"])) + "}"
        between = ","
    yield "]"
    _, rules = find_rules(connection, venue_key)
    if rules != NO_RULES:  # left out without any: then the hash is what it was before there were rules
        yield f',"rules":{rules}'
    yield "}"


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def keep_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    """Store a snapshot unless the same one is there."""
    known = connection.scalar(select(plan_inputs.c.hash).where(plan_inputs.c.hash == snapshot.hash))
    if known is None:
        connection.execute(plan_inputs.insert().values(hash=snapshot.hash, body=snapshot.body, size=snapshot.size))


def load_snapshot(connection: Connection, content_hash: str) -> dict[str, Any]:
    """A stored snapshot, parsed. Raises NotFoundError."""
    body = connection.scalar(select(plan_inputs.c.body).where(plan_inputs.c.hash == content_hash))
    if body is None:
        raise NotFoundError(f"the inputs {content_hash} are not stored", kind="inputs", id=content_hash)
    snapshot: dict[str, Any] = json.loads(zlib.decompress(body))
    return snapshot
