"""The id of a request: taken from the caller or made here, the same in answer, problem and log."""

from __future__ import annotations

import re
import uuid

from flask import g, has_request_context, request

__all__ = ["HEADER", "chosen_id", "request_id"]

HEADER = "X-Request-ID"
FORM = re.compile(r"[A-Za-z0-9._-]{1,64}")  # nothing that could break a log line


def chosen_id(given: str) -> str:
    """The id a caller sent, where it has our form; else a new one."""
    return given if FORM.fullmatch(given) else uuid.uuid4().hex


def request_id() -> str:
    """Id of the current request; one that the caller sent in another form is replaced."""
    if not has_request_context():
        return "none"
    if "request_id" not in g:
        g.request_id = chosen_id(request.headers.get(HEADER, ""))
    return str(g.request_id)
