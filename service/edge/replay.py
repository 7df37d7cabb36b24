"""Idempotency-Key: the same request sent twice is done once and answered twice."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

from flask import Response, g, request

from service import handlers
from service.edge.answers import path_of, record
from service.edge.errors import InvalidRequestError, PlacedIssue
from service.edge.payload import read_body
from service.edge.services import services
from service.handlers import Claim

__all__ = ["KEPT", "claim", "replayable"]

HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,255}")
KEPT = ("Location", "ETag", "Retry-After", "Preference-Applied")
"""Headers that belong to the stored answer; the others describe the connection."""


def claim() -> Claim | None:
    """The Idempotency-Key of the current request as it is held; None where the request came without one."""
    held: Claim | None = g.get("claim")
    return held


def replayable(view: Callable[[], Response], dry_run: bool) -> Response:
    """Run a view once for its Idempotency-Key.

    Only answers of success are kept: a refused request changed nothing, and mending it may keep its key's purpose
    with a new key. A dry run is never kept.

    Raises
    ------
    InvalidRequestError
        The key is no printable ASCII of 1 to 255 characters.
    IdempotencyError, StateConflictError
        See `handlers.once`.
    """
    key = request.headers.get(HEADER)
    if key is None or dry_run:
        return view()
    if not KEY.fullmatch(key):
        words = "must have 1 to 255 printable ASCII characters, no blanks"
        raise InvalidRequestError(issues=[PlacedIssue(words, "bad-header", HEADER, None, None, "header", path=None)])

    def action(held: Claim | None) -> dict[str, Any]:
        g.claim = held
        return _kept(view())

    def resume(plan: str) -> dict[str, Any]:
        return _kept(record(handlers.get_plan(services(), plan), 202, path_of("plans", plan), Retry_After="1"))

    kept, replayed = handlers.once(services(), key, _fingerprint(), action, resume)
    response = Response(kept["body"], kept["status"], kept["headers"], mimetype="application/json")
    if replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return response


def _kept(response: Response) -> dict[str, Any]:
    sent = {name: response.headers[name] for name in KEPT if name in response.headers}
    return {"status": response.status_code, "headers": sent, "body": response.get_data(as_text=True)}


def _fingerprint() -> str:
    """Hash of everything that makes two requests the same."""
    parts = (request.method, request.path, request.query_string.decode("latin-1"), request.mimetype)
    digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape") + b"\n")
    digest.update(read_body())
    return digest.hexdigest()
