"""What every handler needs: types, pages, versions."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeAlias, TypeVar

from sqlalchemy import Row

from matching.errors import InputError, InvalidVenueError, Issue
from service.errors import PreconditionFailedError, PreconditionRequiredError
from service.wiring import Services

__all__ = [
    "Page",
    "Record",
    "check_id",
    "check_version",
    "cut_page",
    "merge",
    "page_of",
    "page_start",
    "raise_changed",
    "raise_issues",
    "timestamp",
]

Record: TypeAlias = dict[str, Any]
Page: TypeAlias = tuple[list[Record], str | None]

T = TypeVar("T")

TAG = re.compile(r'\*|(?:W/)?"[^"]*"')
"""An entity tag of If-Match (RFC 9110, section 8.8.3), or the word for any."""

PAGE_SIZE = 100  # records a page where the caller names no limit


def page_start(
    services: Services, cursor: str | None, limit: int | None, length: int = 1
) -> tuple[tuple[int, ...], int]:
    """Where a page starts and how long it may be.

    Parameters
    ----------
    cursor : str or None
        As returned with the page before; None for the first.
    limit : int or None
        Records wanted, [1, inf); cut to the setting `page_limit`.
    length : int
        Numbers in the cursor.

    Returns
    -------
    after : tuple of int
        Keys of the last record seen; -1 before the first.
    limit : int

    Raises
    ------
    InputError
        ``invalid-input``: a cursor that is not ours, or a limit below 1.
    """
    most = services.settings.page_limit
    if limit is not None and limit < 1:
        raise InputError(
            issues=[Issue("limit must be at least 1", "out-of-range", "limit", value=limit, source="query")]
        )
    size = min(PAGE_SIZE if limit is None else limit, most)
    if cursor is None:
        return (-1,) * length, size
    try:
        numbers = json.loads(base64.urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        numbers = None
    if (
        not isinstance(numbers, list)
        or len(numbers) != length
        or not all(type(number) is int and -1 <= number < 2**63 for number in numbers)
    ):
        reason = "must be the cursor that came with the page before"
        raise InputError(issues=[Issue(reason, "bad-cursor", "cursor", value=cursor, source="query")])
    return tuple(numbers), size


def page_of(
    rows: Sequence[Row[Any]], limit: int, show: Callable[[Row[Any]], Record], key: Callable[[Row[Any]], Sequence[int]]
) -> Page:
    """Up to `limit` of `rows` shown, and the cursor of the next page if `rows` holds one more than `limit`."""
    shown = [show(row) for row in rows[:limit]]
    return shown, None if len(rows) <= limit else _cursor(key(rows[limit - 1]))


def cut_page(items: Sequence[Record], after: int, limit: int) -> Page:
    """The items behind position `after`, at most `limit`, and the cursor of the next page if there are more."""
    end = after + 1 + limit
    return list(items[after + 1 : end]), None if len(items) <= end else _cursor([end - 1])


def _cursor(key: Sequence[int]) -> str:
    text = json.dumps(list(key), separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def check_version(if_match: str | None, version: int, what: str, required: bool) -> None:
    """Compare an ``If-Match`` header, as sent, with a stored version.

    Raises
    ------
    PreconditionRequiredError
        No header although one is required.
    PreconditionFailedError
        None of the versions it names is the stored one. Weak tags never match, as RFC 9110 says.
    InputError
        ``invalid-input``: no list of entity tags.
    """
    if if_match is None:
        if required:
            raise PreconditionRequiredError(f"send If-Match with the ETag of {what}, so that no other change is lost")
        return
    tags = [tag.strip() for tag in if_match.split(",")]
    if broken := [tag for tag in tags if not TAG.fullmatch(tag)]:
        reason = 'must be *, or ETags in quotation marks as they were read, such as "3"'
        raise InputError(issues=[Issue(reason, "bad-header", "If-Match", value=broken[0], source="header")])
    if "*" in tags or f'"{version}"' in tags:
        return
    raise PreconditionFailedError(f"{what} is at version {version} by now; read it again", version=version)


def raise_changed(what: str) -> NoReturn:
    """Somebody else was faster, in the same moment. Raises PreconditionFailedError."""
    raise PreconditionFailedError(f"{what} was changed by another request in the same moment; read it again")


def merge(defaults: Mapping[str, Any], data: Mapping[str, Any]) -> Record:
    """`data` over `defaults`."""
    return {**defaults, **data}


def check_id(data: Mapping[str, Any], name: str, source: str) -> None:
    """A record sent to the address of another one is refused. Raises InvalidVenueError."""
    if data.get("id", name) != name:
        reason = f"id {data['id']!r} is not the one in the address, {name!r}; an id cannot be changed"
        raise_issues([Issue(reason, "contradiction", "id", value=data["id"], source=source)])


def raise_issues(issues: Sequence[Issue]) -> None:
    """Raise InvalidVenueError if there is any issue."""
    if issues:
        raise InvalidVenueError(issues=issues)


def timestamp(seconds: float | None) -> str | None:
    """Seconds since 1970 as RFC 3339 in UTC, None for None."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
