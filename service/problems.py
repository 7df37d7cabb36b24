"""Every error as one shape: RFC 9457 problem details, with a code, the request's id, and one entry a fault."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import structlog
from flask import Flask, Response, request
from marshmallow import Schema, fields
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound
from werkzeug.routing import RoutingException

from matching.errors import Issue, MatchingError
from service.edge.errors import PlacedIssue, Step, steps, summary
from service.kinds import PROBLEMS
from service.requestid import request_id

__all__ = ["MEDIA_TYPE", "ProblemSchema", "document", "install", "problem", "problem_of"]

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 1000  # entries in one answer; the number of the others is told
MOST_SHOWN = 120  # characters of an offending value that are repeated back
RETRY_AFTER = "5"  # seconds; a locked database is free again well before
TOP_LEVEL = frozenset({"params", "venue", "body"})  # sources whose fields are the fields of the body itself

log = structlog.get_logger(__name__)


HTTP_CODES = {
    400: "bad-request", 401: "unauthorized", 403: "forbidden", 404: "not-found", 405: "method-not-allowed",
    413: "body-too-large", 415: "unsupported-media-type",
}  # fmt: skip


class FaultSchema(Schema):
    """One fault and its place."""

    pointer = fields.String(
        metadata={"description": "JSON pointer into the body, as a fragment: `#/reviewers/3/load_max`."}
    )
    line = fields.Integer(metadata={"description": "Line of a CSV body, from 1."})
    parameter = fields.String(metadata={"description": "Parameter of the query string, header, or part of the path."})
    row = fields.Integer(metadata={"description": "Position in the uploaded list, from 0."})
    field = fields.String(metadata={"description": "Field or column at fault."})
    value = fields.Raw(metadata={"description": "What was sent, cut where long."})
    detail = fields.String(required=True, metadata={"description": "What is wrong and what would be right."})
    code = fields.String(required=True, metadata={"description": "Stable code of the fault."})


class ProblemSchema(Schema):
    """Problem details (RFC 9457)."""

    type = fields.String(
        required=True, metadata={"description": "Relative address that explains the code.", "format": "uri-reference"}
    )
    title = fields.String(required=True)
    status = fields.Integer(required=True, metadata={"minimum": 400, "maximum": 599})
    detail = fields.String(required=True, metadata={"description": "What happened this time."})
    instance = fields.String(required=True, metadata={"description": "Path of the request.", "format": "uri-reference"})
    code = fields.String(required=True, metadata={"description": "Stable code, the last part of `type`."})
    request_id = fields.String(
        required=True, metadata={"description": "As in the X-Request-ID header and in the server's log."}
    )
    errors = fields.List(
        fields.Nested(FaultSchema), required=True, metadata={"description": "Every fault found; may be empty."}
    )
    more_errors = fields.Integer(
        metadata={"description": f"Faults beyond the first {MOST_ERRORS}, where there are any."}
    )


def problem(
    code: str,
    detail: str,
    *,
    status: int | None = None,
    issues: Sequence[Issue] = (),
    headers: Iterable[tuple[str, str]] = (),
) -> Response:
    """The answer for one problem.

    Parameters
    ----------
    code : str
        A key of PROBLEMS.
    detail : str
        What happened this time.
    status : int, optional
        Replaces the kind's usual status.
    issues : sequence of Issue
        Become `errors`; beyond MOST_ERRORS they are only counted.
    headers : iterable of pairs
    """
    body = document(code, detail, quote(request.path, safe="/~@:$,;+="), request_id(), status=status)
    body["errors"] = [entry(issue) for issue in issues[:MOST_ERRORS]]
    if len(issues) > MOST_ERRORS:
        body["more_errors"] = len(issues) - MOST_ERRORS
    text = json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    # a lone surrogate in a repeated value cannot be UTF-8
    response = Response(text.encode("utf-8", "replace") + b"\n", body["status"], mimetype=MEDIA_TYPE)
    response.headers.extend(list(headers))
    return response


def document(code: str, detail: str, instance: str, name: str, *, status: int | None = None) -> dict[str, Any]:
    """The members of a problem without faults in detail; `name` is the id of the request."""
    kind = PROBLEMS[code]
    return {
        "type": f"/v1/problems/{code}",
        "title": kind.title,
        "status": status or kind.status,
        "detail": detail,
        "instance": instance,
        "code": code,
        "request_id": name,
        "errors": [],
    }


def entry(issue: Issue) -> dict[str, Any]:
    """One issue as one entry of `errors`."""
    shown: dict[str, Any] = {}
    path = _path(issue)
    if issue.source in ("query", "header", "path"):
        shown["parameter"] = issue.field or ""
    elif issue.source is not None and issue.source.endswith(".csv"):
        if issue.row is not None:
            shown["line"] = issue.row
    else:
        shown["pointer"] = "#" + "".join(f"/{_escaped(step)}" for step in path)
        if issue.row is not None:
            shown["row"] = issue.row
    if issue.field is not None:
        shown["field"] = issue.field
    if issue.value is not None:
        shown["value"] = _short(issue.value)
    return {**shown, "detail": issue.reason, "code": issue.code}


def _path(issue: Issue) -> tuple[Step, ...]:
    if isinstance(issue, PlacedIssue):
        return issue.path or ()
    if issue.source is None or issue.source in TOP_LEVEL:
        return steps(issue.field)
    return (issue.source, *(() if issue.row is None else (issue.row,)), *steps(issue.field))


def _escaped(step: Step) -> str:
    """A step as part of a JSON pointer in a URI fragment (RFC 6901, sections 3 and 6)."""
    return quote(str(step).replace("~", "~0").replace("/", "~1"), safe="~!$&'()*+,;=:@-._")


def _short(value: Any) -> Any:
    """A value as it may be repeated back: whole where short, cut where long, described where nested."""
    if isinstance(value, (bool, float)):
        return value if value == value and value not in (float("inf"), float("-inf")) else str(value)
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, Mapping):
        return f"an object with {len(value)} members"
    if isinstance(value, (list, tuple)):
        if len(value) <= 20 and all(isinstance(item, (str, int)) for item in value):
            return [_short(item) for item in value]
        return f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 10_000:
        return "a very large number"
    text = str(value)
    return text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "…"


def problem_of(error: MatchingError) -> Response:
    """The problem an error of the engine or the service becomes."""
    kind = next(PROBLEMS[code] for cls in type(error).__mro__ if (code := getattr(cls, "code", "")) in PROBLEMS)
    if kind.status >= 500 and kind.status != 503:
        log.error("request_failed", code=error.code, request_id=request_id(), route=_route(), exc_info=error)
        # what contradicts what is for the log: it may name people
        return problem(kind.code, "The service failed; its log says more under this request_id.")
    headers = [("Retry-After", RETRY_AFTER)] if kind.status == 503 else []
    issues = getattr(error, "issues", ())
    in_file = any((issue.source or "").endswith(".csv") for issue in issues)
    detail = summary(issues) if in_file else error.detail
    return problem(kind.code, _cut(detail) or kind.title, issues=issues, headers=headers)


def _cut(detail: str) -> str:
    return detail if len(detail) <= 2000 else detail[:2000] + "…"


def _http_problem(error: HTTPException) -> Response:
    """The problem a refusal of werkzeug or Flask becomes."""
    if isinstance(error, RoutingException) or error.code is None or error.code < 400:
        return error.get_response()  # type: ignore[return-value]
    if error.code >= 500:
        return _unexpected(error)
    headers = [
        (name, value) for name, value in error.get_headers() if name.lower() not in ("content-type", "content-length")
    ]
    detail = _cut(error.description or error.name)
    code = HTTP_CODES.get(error.code, "bad-request")
    if isinstance(error, NotFound) and request.routing_exception is error:
        code, detail = "unknown-route", "no route has this path"
    elif isinstance(error, MethodNotAllowed):
        detail = f"{request.method} is not known here; {', '.join(sorted(error.valid_methods or ()))} are"
    elif error.code == 413:
        _drain()
        limit = request.max_content_length
        detail = f"at most {limit} bytes are taken" if limit else "the body is too large"
    return problem(code, detail, status=error.code, headers=headers)


def _drain() -> None:
    """Read the rest of a refused body, within reason: many clients only read an answer once they have sent theirs."""
    stream = request.environ["wsgi.input"]
    ended = bool(request.environ.get("wsgi.input_terminated"))
    left = request.content_length if request.content_length is not None else (1 << 62 if ended else 0)
    left = min(left, 2 * (request.max_content_length or 0))
    try:
        while left > 0 and (block := stream.read(min(left, 1 << 16))):
            left -= len(block)
    except Exception:
        return  # whatever the connection does now, the answer is ready


def _unexpected(error: Exception) -> Response:
    log.error("request_failed", code="internal-error", request_id=request_id(), route=_route(), exc_info=error)
    return problem("internal-error", "The service failed; its log says more under this request_id.")


def _route() -> str:
    """The route's pattern, never the path: ids in a path may be addresses of people."""
    return str(request.url_rule) if request.url_rule is not None else "none"


def install(app: Flask) -> None:
    """Register the handlers of every error."""
    app.register_error_handler(MatchingError, problem_of)
    app.register_error_handler(HTTPException, _http_problem)
    app.register_error_handler(Exception, _unexpected)
