"""One answer for one Idempotency-Key."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Row, delete, insert, select, update

from service.errors import IdempotencyError, StateConflictError
from service.handlers.common import Record
from service.process import Process, this_process
from service.store.tables import idempotency
from service.translate import dumps
from service.wiring import Services

__all__ = ["Claim", "bind_plan", "once"]

KEEP_SECONDS = 24 * 3600.0  # how long a key is remembered
RUNNING_SECONDS = 120.0  # a first request on another machine, without an answer after this long, died with its process


@dataclass(frozen=True, slots=True)
class Claim:
    """A key in the hands of one request; `owner` names its process and the request itself."""

    key: str
    owner: str


def once(
    services: Services,
    key: str | None,
    fingerprint: str,
    action: Callable[[Claim | None], Record],
    resume: Callable[[str], Record],
) -> tuple[Record, bool]:
    """Run `action` at most once for a key.

    Parameters
    ----------
    key : str or None
        The ``Idempotency-Key`` header; None just runs `action`.
    fingerprint : str
        Identifies the request: a hash of method, path and body.
    action : callable
        Makes the answer, a JSON-ready dict, from the claim. If it raises, the key is free again, unless it has made
        a plan by then.
    resume : callable
        Makes the answer for a plan that a former request with this key made before it came to its own answer.

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
        return action(None), False
    claim = Claim(key, f"{this_process('web')}/{uuid.uuid4().hex}")
    row = services.store.write(lambda connection: _claim(connection, claim, fingerprint))
    if row is not None and row.answer is not None:
        kept: Record = json.loads(row.answer)
        return kept, True
    if row is not None:
        return resume(row.plan), True
    mine = (idempotency.c.key == key) & (idempotency.c.owner == claim.owner)
    try:
        made = action(claim)
    except BaseException:
        free = delete(idempotency).where(mine, idempotency.c.plan.is_(None))
        services.store.write(lambda connection: connection.execute(free))
        raise
    text = dumps(made)
    services.store.write(lambda connection: connection.execute(update(idempotency).where(mine).values(answer=text)))
    return made, False


def bind_plan(connection: Connection, claim: Claim, plan: str) -> None:
    """Note which plan a request made, in the transaction that makes it: from then on the key means this plan.

    Raises
    ------
    StateConflictError
        ``state-conflict``: this request took so long that another one took over its key.
    """
    mine = (idempotency.c.key == claim.key) & (idempotency.c.owner == claim.owner)
    if connection.execute(update(idempotency).where(mine).values(plan=plan)).rowcount != 1:
        raise StateConflictError("another request took over this Idempotency-Key; ask again to see its plan")


def _claim(connection: Connection, claim: Claim, fingerprint: str) -> Row[tuple[str | None, ...]] | None:
    """The row of a former request that can be answered from, or None after the key was taken for a first one."""
    now = time.time()
    connection.execute(delete(idempotency).where(idempotency.c.created_at < now - KEEP_SECONDS))
    row = connection.execute(select(idempotency).where(idempotency.c.key == claim.key)).first()
    if row is not None and row.fingerprint != fingerprint:
        raise IdempotencyError("this Idempotency-Key was used for another request; choose a new one")
    if row is not None and (row.answer is not None or row.plan is not None):
        return row
    if row is not None:
        if row.created_at > now - RUNNING_SECONDS and not _is_gone(row.owner):
            raise StateConflictError("the first request with this Idempotency-Key still runs; ask again in a moment")
        connection.execute(delete(idempotency).where(idempotency.c.key == claim.key))
    connection.execute(
        insert(idempotency).values(
            key=claim.key, fingerprint=fingerprint, answer=None, created_at=now, owner=claim.owner, plan=None
        )
    )
    return None


def _is_gone(owner: str | None) -> bool:
    """Whether the process of a claim is gone for certain."""
    process = Process.parse((owner or "").rpartition("/")[0])
    return process is not None and process.is_gone()
