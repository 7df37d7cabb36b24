"""One answer for one Idempotency-Key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from sqlalchemy import Connection, delete, insert, select, update

from service.errors import IdempotencyError, StateConflictError
from service.handlers.common import Record
from service.store.tables import idempotency
from service.translate import dumps
from service.wiring import Services

__all__ = ["once"]

KEEP_SECONDS = 24 * 3600.0  # how long a key is remembered
RUNNING_SECONDS = 600.0  # a first request without an answer after this long died with its process


def once(services: Services, key: str | None, fingerprint: str, action: Callable[[], Record]) -> tuple[Record, bool]:
    """Run `action` at most once for a key.

    Parameters
    ----------
    key : str or None
        The ``Idempotency-Key`` header; None just runs `action`.
    fingerprint : str
        Identifies the request: a hash of method, path and body.
    action : callable
        Makes the answer, a JSON-ready dict. If it raises, the key is free again.

    Returns
    -------
    answer : dict
    replayed : bool
        True where the answer is that of an earlier request.

    Raises
    ------
    IdempotencyError
        ``idempotency-mismatch``: the key belongs to another request.
    StateConflictError
        ``state-conflict``: the first request with this key still runs.
    """
    if key is None:
        return action(), False
    answer = services.store.write(lambda connection: _claim(connection, key, fingerprint))
    if answer is not None:
        kept: Record = json.loads(answer)
        return kept, True
    try:
        made = action()
    except BaseException:
        services.store.write(lambda connection: connection.execute(delete(idempotency).where(idempotency.c.key == key)))
        raise
    text = dumps(made)
    services.store.write(
        lambda connection: connection.execute(update(idempotency).where(idempotency.c.key == key).values(answer=text))
    )
    return made, False


def _claim(connection: Connection, key: str, fingerprint: str) -> str | None:
    """The kept answer, or None after the key was taken for a first request."""
    now = time.time()
    connection.execute(delete(idempotency).where(idempotency.c.created_at < now - KEEP_SECONDS))
    row = connection.execute(select(idempotency).where(idempotency.c.key == key)).first()
    if row is not None and row.fingerprint != fingerprint:
        raise IdempotencyError("this Idempotency-Key was used for another request; choose a new one")
    if row is not None and row.answer is not None:
        return str(row.answer)
    if row is not None:
        if row.created_at > now - RUNNING_SECONDS:
            raise StateConflictError("the first request with this Idempotency-Key still runs; ask again in a moment")
        connection.execute(delete(idempotency).where(idempotency.c.key == key))
    connection.execute(insert(idempotency).values(key=key, fingerprint=fingerprint, answer=None, created_at=now))
    return None
