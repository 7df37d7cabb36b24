"""One decorator a view: what it takes, what it answers, and both in the API document."""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from flask import Response
from flask_smorest import Blueprint
from marshmallow import Schema
from werkzeug.exceptions import NotFound

from service.edge.body import JsonBody, Upload, read_query
from service.edge.replay import replayable
from service.schemas.common import Query
from service.schemas.fields import KEY_PATTERN

__all__ = ["CREATED_AT", "ETAG", "LINK", "found", "operation", "path_parameters"]

View = TypeVar("View", bound=Callable[..., Response])

ETAG = {"ETag": {"description": "Version of the record, for If-Match and If-None-Match.", "schema": {"type": "string"}}}
LINK = {"Link": {"description": '`<...>; rel="next"` where there is another page.', "schema": {"type": "string"}}}
CREATED_AT = {"Location": {"description": "Where the new record is.", "schema": {"type": "string"}}}

PATH_WORDS = {
    "venue": "Id of the venue.",
    "reviewer": "Id of the reviewer.",
    "submission": "Id of the submission.",
    "signal": "Name of the signal.",
    "plan": "Id of the plan, as given by the server.",
    "code": "Code of the problem.",
}
PATH_EXAMPLES = {
    "venue": "workshop-2026",
    "reviewer": "~Ada_Quell1",
    "submission": "p1",
    "signal": "hand",
    "plan": "00000000-0000-0000-0000-000000000000",
    "code": "not-found",
}
IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag the record had when it was read, or `*`. A change is refused when the record "
    "changed since.",
    "schema": {"type": "string"},
}
IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "description": "An ETag read before; 304 while the record is still the same.",
    "schema": {"type": "string"},
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Any name for this request. Sent again within 24 hours, the first answer is returned and nothing "
    "is done twice.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
LONGEST_ID = 1000  # characters of a path part; longer ones name nothing we ever stored


def path_parameters(*names: str) -> list[dict[str, Any]]:
    """Descriptions of the path parameters of a route."""
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_WORDS[name],
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": KEY_PATTERN},
            "example": PATH_EXAMPLES[name],
        }
        for name in names
    ]


def found(
    words: str,
    schema: Any = None,
    *,
    example: Any = None,
    headers: Mapping[str, Any] | None = None,
    csv: str | None = None,
) -> dict[str, Any]:
    """A success in the API document."""
    response: dict[str, Any] = {"description": words}
    if schema is not None:
        response["content"] = {"application/json": {"schema": schema}}
        if example is not None:
            response["content"]["application/json"]["example"] = example
    if csv is not None:
        response["content"]["text/csv"] = {"schema": {"type": "string"}, "example": csv}
    if headers:
        response["headers"] = dict(headers)
    return response


def operation(
    blueprint: Blueprint,
    operation_id: str,
    answers: Mapping[int, Mapping[str, Any]],
    *,
    problems: Sequence[int] = (),
    query: type[Schema] = Query,
    body: JsonBody | Upload | None = None,
    creates: bool = False,
    reads_version: bool = False,
    checks_version: bool = False,
    version_required: bool = False,
    parameters: Sequence[Mapping[str, Any]] = (),
    needs_token: bool = True,
) -> Callable[[View], View]:
    """Read the query string and the body, run the view, and document all of it.

    The view gets ``query=`` (a dict, only where `query` is given) and ``body=`` (only where `body` is given) besides
    its path parameters.

    Parameters
    ----------
    blueprint : Blueprint
    operation_id : str
        Stable name in the API document.
    answers : mapping of int to response
        Successes, made by `found`.
    problems : sequence of int
        Statuses of problems beyond those that follow from the other arguments.
    query : type of Schema
        Parameters of the query string; others are refused.
    body : JsonBody or Upload
    creates : bool
        Takes an Idempotency-Key.
    reads_version, checks_version, version_required : bool
        Answers If-None-Match; honours If-Match; insists on If-Match.
    parameters : sequence
        Further parameters for the document, for example headers.
    needs_token : bool
        False for what anybody may read.
    """
    query_loader = query()
    statuses = {422, 500, *problems}
    headers: list[Mapping[str, Any]] = list(parameters)
    if needs_token:
        statuses |= {401, 403, 503}
    if body is not None:
        statuses |= {400, 413, 415}
    if creates:
        statuses |= {409}
        headers.append(IDEMPOTENCY_KEY)
    if checks_version or version_required:
        statuses |= {412} | ({428} if version_required else set())
        headers.append(IF_MATCH)
    responses: dict[str, Any] = {str(status): dict(response) for status, response in answers.items()}
    if reads_version:
        responses["304"] = "NOT_MODIFIED"
        headers.append(IF_NONE_MATCH)
    responses |= {str(status): http.HTTPStatus(status).name for status in sorted(statuses)}
    document: dict[str, Any] = {"operationId": operation_id, "responses": responses}
    shown: list[Any] = [{"in": "query", "schema": query}] if query is not Query else []
    if shown or headers:
        document["parameters"] = [*shown, *map(dict, headers)]
    if body is not None:
        document["requestBody"] = body.document()
    if not needs_token:
        document["security"] = []

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapper(self: Any, **path: str) -> Response:
            if any(len(part) > LONGEST_ID or "\x00" in part for part in path.values()):
                raise NotFound("there is nothing with this id")
            values: dict[str, Any] = dict(path)
            asked = read_query(query_loader)
            if query is not Query:
                values["query"] = asked
            if body is not None:
                values["body"] = body.read(asked)
            if creates:
                return replayable(lambda: view(self, **values), bool(asked.get("dry_run")))
            return view(self, **values)

        return blueprint.doc(**document)(wrapper)  # type: ignore[no-any-return]

    return decorate
