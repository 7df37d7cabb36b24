"""Imported score tables, one signal each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from sqlalchemy import Connection, Row

from matching.errors import InvalidScoresError, Issue
from matching.params import DEFAULT_WEIGHTS
from service.errors import NotFoundError
from service.handlers.common import Page, Record, page_of, page_start
from service.handlers.uploads import read_upload
from service.store import pairs
from service.store.records import find_venue
from service.store.tables import scores
from service.wiring import Services

__all__ = ["delete_scores", "list_scores", "list_signals", "put_scores"]

log = structlog.get_logger(__name__)


def put_scores(
    services: Services,
    venue: str,
    signal: str,
    items: Sequence[Mapping[str, Any]],
    default: float | None = None,
    dry_run: bool = False,
    lenient: bool = False,
) -> Record:
    """Store scores of a signal; one for a pair that has a score already replaces it.

    Parameters
    ----------
    signal : str
        Name of the table; not "text", "areas" or "bids".
    items : sequence of mapping
        submission, reviewer (id, alias or address), score (finite, no unit).
    default : float or None
        Value of pairs without a score. None keeps the stored one; of a new signal it leaves such pairs unknown.
    lenient : bool
        Store the good rows and return the others as "rejected".

    Returns
    -------
    dict
        {"signal", "created": n, "updated": n, "rejected": [...], "warnings": [...]}

    Raises
    ------
    InvalidScoresError
        ``invalid-scores``: a reserved name, scores that are not finite, names that nobody has, one pair with two
        scores; every row is listed and nothing is stored.
    NotFoundError
    """
    if signal.strip().casefold() in (*DEFAULT_WEIGHTS, ""):
        reason = f"{signal!r} is a signal of the engine itself; choose another name"
        raise InvalidScoresError(issues=[Issue(reason, "reserved-name", "signal", value=signal, source="scores")])
    if default is not None and not math.isfinite(default):
        reason = "default must be a finite number or absent"
        raise InvalidScoresError(issues=[Issue(reason, "not-finite", "default", value=str(default), source="scores")])
    faults = [
        Issue(
            "a score is a finite number; leave the pair out where there is none",
            "not-finite",
            "score",
            row,
            str(item["score"]),
            "scores",
        )
        for row, item in enumerate(items)
        if not math.isfinite(item["score"])
    ]

    def work(connection: Connection) -> Record:
        key = find_venue(connection, venue).key
        upload = read_upload(connection, key, items, "scores", ("score",), faults)
        if upload.issues and not lenient:
            raise InvalidScoresError(issues=upload.issues)
        signal_key = pairs.ensure_signal(connection, key, signal, default)
        created, updated = pairs.upsert_pairs(connection, scores, signal_key, ("score",), upload.rows)
        counts = {"signal": signal, "created": created, "updated": updated}
        return {**counts, "rejected": upload.rejected, "warnings": upload.warnings}

    answer = services.store.write(work, dry_run)
    log.info(
        "scores_stored",
        venue=venue,
        signal=signal,
        created=answer["created"],
        updated=answer["updated"],
        dry_run=dry_run,
    )
    return answer


def list_signals(services: Services, venue: str) -> list[Record]:
    """Signals of the venue by name: [{"signal", "default", "scores": n}]. Raises NotFoundError."""
    with services.store.read() as connection:
        rows = pairs.signals_of(connection, find_venue(connection, venue).key)
    return [{"signal": row.name, "default": row.default_value, "scores": row.n_scores} for row in rows]


def list_scores(
    services: Services, venue: str, signal: str, cursor: str | None = None, limit: int | None = None
) -> Page:
    """Stored scores of one signal with resolved ids, "given" as for bids. Raises NotFoundError."""
    (submission, reviewer), size = page_start(services, cursor, limit, 2)
    with services.store.read() as connection:
        row = _find(connection, venue, signal)
        rows = pairs.page_of_pairs(connection, scores, row.key, (submission, reviewer), size + 1)

    def show(row: Row[Any]) -> Record:
        given = None if row.given is None else json.loads(row.given)
        return {"submission": row.submission, "reviewer": row.reviewer, "score": row.score, "given": given}

    return page_of(rows, size, show, lambda row: [row.submission_key, row.reviewer_key])


def delete_scores(services: Services, venue: str, signal: str, dry_run: bool = False) -> Record:
    """Delete a signal with its scores: {"deleted": n}. Raises NotFoundError."""

    def work(connection: Connection) -> Record:
        key = _find(connection, venue, signal).key
        n_scores = pairs.count_pairs(connection, scores, key)
        pairs.remove_signal(connection, key)
        return {"deleted": n_scores}

    answer = services.store.write(work, dry_run)
    log.info("scores_deleted", venue=venue, signal=signal, dry_run=dry_run, **answer)
    return answer


def _find(connection: Connection, venue: str, signal: str) -> Row[Any]:
    row = pairs.find_signal(connection, find_venue(connection, venue).key, signal)
    if row is None:
        raise NotFoundError(f"there is no signal {signal!r} in this venue", kind="signal", id=signal)
    return row
