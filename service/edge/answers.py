"""Answers: strict JSON, single records with their ETag, pages with their Link, CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request

from matching.formats.delimited import write_table
from service.edge.errors import InvalidRequestError, PlacedIssue
from service.edge.services import services

__all__ = ["answer", "csv_answer", "every_page", "listing", "nothing", "page_size", "path_of", "record", "wants_csv"]

PAGE = 100  # entries a page where the request does not say


def answer(
    data: Any, status: int = 200, headers: Mapping[str, str] | None = None, media: str = "application/json"
) -> Response:
    """Strict JSON in UTF-8: a NaN that got this far is a fault of ours, never text that browsers cannot read."""
    body = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(body + b"\n", status, dict(headers or {}), mimetype=media)


def nothing() -> Response:
    """204: done, and there is nothing to say."""
    return Response(status=204)


def path_of(*parts: str) -> str:
    """A path under /v1 with each part escaped."""
    return "/v1/" + "/".join(quote(part, safe="~@:$,;+=") for part in parts)


def record(data: Mapping[str, Any], status: int = 200, location: str | None = None, **headers: str) -> Response:
    """One stored record; its "etag" goes into the header, and 304 answers an If-None-Match that names it."""
    body = dict(data)
    tag = body.pop("etag", None)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if location is not None:
        sent["Location"] = location
    if tag is not None:
        tag = str(tag).strip('"')
        sent["ETag"] = f'"{tag}"'
        wanted = request.if_none_match
        if request.method in ("GET", "HEAD") and (wanted.star_tag or wanted.contains_weak(tag)):
            return Response(status=304, headers={"ETag": sent["ETag"]})
    return answer(body, status, sent)


def page_size(query: Mapping[str, Any]) -> int:
    """Entries wanted on a page; raises InvalidRequestError beyond the server's limit."""
    most = services().settings.page_limit
    limit = int(query.get("limit", min(PAGE, most)))
    if limit > most:
        words = f"must be at most {most}, the page limit of this server"
        raise InvalidRequestError(issues=[PlacedIssue(words, "out-of-range", "limit", None, limit, "query", path=None)])
    return limit


def listing(items: Iterable[Mapping[str, Any]], following: str | None) -> Response:
    """One page: items without their ETags, the next cursor in the body and as a Link."""
    shown = [{key: value for key, value in item.items() if key != "etag"} for item in items]
    headers = {}
    if following is not None:
        again = {**{name: value for name, value in request.args.items() if name != "cursor"}, "cursor": following}
        headers["Link"] = f'<{quote(request.path, safe="/~@:$,;+=")}?{urlencode(again)}>; rel="next"'
    return answer({"items": shown, "next": following}, headers=headers)


def every_page(fetch: Callable[[str | None, int], tuple[list[dict[str, Any]], str | None]]) -> list[dict[str, Any]]:
    """All entries of a list, page by page."""
    limit = services().settings.page_limit
    items, cursor = fetch(None, limit)
    while cursor is not None:
        more, cursor = fetch(cursor, limit)
        items = [*items, *more]
    return items


def wants_csv(query: Mapping[str, Any]) -> bool:
    """Whether `format` or Accept asks for CSV."""
    if "format" in query:
        return bool(query["format"] != "json")
    best = request.accept_mimetypes.best_match(("application/json", "text/csv"))
    return best == "text/csv"


def csv_answer(header: Sequence[str], rows: Iterable[Sequence[Any]], name: str, for_spreadsheets: bool) -> Response:
    """A CSV file; `name` is what a browser saves it as."""
    response = Response(write_table(header, rows, for_spreadsheets=for_spreadsheets), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
