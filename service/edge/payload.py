"""The body of a request as bytes and as a JSON object: media type, size, strict JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import g, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from service.edge.errors import InvalidJsonError, PlacedIssue
from service.edge.jsontext import read_json

__all__ = ["media_type", "read_body", "read_object"]


def media_type(accepted: Sequence[str]) -> str:
    """ "json" or "csv" for the body's content type; raises 415 with what is accepted."""
    wanted = " or ".join(accepted)
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType("send the body without Content-Encoding")
    if not request.mimetype:
        raise UnsupportedMediaType(f"the request has no Content-Type; send {wanted}")
    if request.mimetype_params.get("charset", "utf-8").lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedMediaType("send the body as UTF-8")
    if request.mimetype == "application/json" or (
        request.mimetype.startswith("application/") and request.mimetype.endswith("+json")
    ):
        return "json"
    if request.mimetype == "text/csv" and "text/csv" in accepted:
        return "csv"
    raise UnsupportedMediaType(f"the body is {request.mimetype[:80]}; send {wanted}")


def read_body() -> bytes:
    """The body as sent, at most the server's limit; raises 413 beyond it.

    A body without an announced length is counted here: werkzeug's own limited stream ends such a body at the limit,
    and half an upload that happens to parse must never be stored.
    """
    if "body" not in g:
        most = request.max_content_length
        if request.content_length is None and most is not None and request.environ.get("wsgi.input_terminated"):
            parts, left = [], most + 1
            while left > 0 and (part := request.environ["wsgi.input"].read(left)):
                parts.append(part)
                left -= len(part)
            if left <= 0:
                raise RequestEntityTooLarge
            g.body = b"".join(parts)
        else:
            g.body = request.get_data()
    return bytes(g.body)


def read_object() -> dict[str, Any]:
    """The JSON body, which must be an object."""
    data = read_json(read_body())
    if not isinstance(data, dict):
        raise InvalidJsonError("the body must be a JSON object", [PlacedIssue("must be an object", "wrong-type")])
    return data
