"""The API document: title, security, and one component for each problem."""

from __future__ import annotations

import http
from typing import Any

from flask import Flask
from flask_smorest import Api

from service.kinds import KINDS
from service.problems import MEDIA_TYPE, ProblemSchema

__all__ = ["DESCRIPTION", "VERSION", "RevmatchApi"]

VERSION = "0.1.0"

DESCRIPTION = """\
Reviewer profiles and submissions go in; a plan with reasons and a proof comes out. Create a venue, add reviewers and \
submissions, say what is known about pairs (bids, conflicts, locks, scores), check readiness, start a plan, read it.

Bodies are strict: unknown fields, `true` for 1, `"3"` for 3 and NaN are refused, all faults at once, and nothing of a \
refused upload is stored. `?dry_run=true` checks a write without storing it.

Lists come in pages: follow `next`, or the `Link` header. Single records carry an `ETag`; a replacement must send it \
as `If-Match`. A POST may carry an `Idempotency-Key`, so that sending it twice does it once.

Errors are `application/problem+json` (RFC 9457) with a stable `code`; `type` leads to its explanation. A method that \
a route does not know is answered 405 with `Allow`. The largest body is 128 MiB unless the server says otherwise."""

SHOWN = (400, 401, 403, 404, 409, 412, 413, 415, 422, 428, 500, 503)
CHALLENGE = {"WWW-Authenticate": {"description": "Bearer.", "schema": {"type": "string"}}}
LATER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string"}}}


class RevmatchApi(Api):  # type: ignore[misc]
    """flask-smorest with our problems in place of its error component."""

    DEFAULT_ERROR_RESPONSE_NAME = None
    ERROR_SCHEMA = ProblemSchema

    def _register_responses(self) -> None:
        """One component a status; the codes it may carry are named in its description."""
        for status in SHOWN:
            codes = [kind for kind in KINDS if kind.status == status]
            words = ", ".join(f"`{kind.code}`" for kind in codes)
            response: dict[str, Any] = {
                "description": f"{codes[0].title}. Codes: {words}.",
                "content": {MEDIA_TYPE: {"schema": ProblemSchema, "example": _example(status)}},
            }
            if status in (401, 503):
                response["headers"] = CHALLENGE if status == 401 else LATER
            self.spec.components.response(http.HTTPStatus(status).name, response, lazy=True)
        self.spec.components.response(
            "NOT_MODIFIED", {"description": "It is still what If-None-Match names."}, lazy=True
        )

    def _register_error_handlers(self) -> None:
        """Errors are answered by `service.problems`."""


def _example(status: int) -> dict[str, Any]:
    kind = next(kind for kind in KINDS if kind.status == status)
    errors: list[dict[str, Any]] = []
    if status == 422:
        errors = [
            {
                "pointer": "#/reviewers/3/load_max",
                "row": 3,
                "field": "load_max",
                "value": 2.5,
                "detail": "must be a whole number, without quotes or fraction",
                "code": "wrong-type",
            }
        ]
    return {
        "type": f"/v1/problems/{kind.code}",
        "title": kind.title,
        "status": status,
        "detail": "reviewers, row 3, field load_max: must be a whole number" if errors else kind.words,
        "instance": "/v1/venues/workshop-2026/reviewers",
        "code": kind.code,
        "request_id": "4f1c0a5e9d2b4c6f8a7e3d1b0c9f8e7d",
        "errors": errors,
    }


def install(app: Flask, blueprints: Any) -> RevmatchApi:
    """Register the blueprints and keep the document's builder in the application."""
    api = RevmatchApi(
        app,
        spec_kwargs={
            "title": "revmatch",
            "version": VERSION,
            "openapi_version": "3.1.0",
            "info": {"description": DESCRIPTION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
            "servers": [{"url": "/"}],
            "security": [{"bearer": []}],
        },
    )
    api.spec.components.security_scheme(
        "bearer",
        {
            "type": "http",
            "scheme": "bearer",
            "description": "The token of the server; none on a loopback server without one.",
        },
    )
    for blueprint in blueprints:
        api.register_blueprint(blueprint)
    app.extensions["revmatch-api"] = api
    return api
