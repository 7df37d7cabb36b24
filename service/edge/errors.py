"""Faults in the form of a request, with the place of each.

InputError
+-- InvalidRequestError     invalid-request    422   well-formed, but fields, types or ranges are wrong
+-- InvalidJsonError        invalid-json       400   the body is no strict JSON
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matching.errors import ISSUES_IN_MESSAGE, InputError, Issue

__all__ = ["InvalidJsonError", "InvalidRequestError", "PlacedIssue", "place", "steps", "summary", "unfold"]

Step = str | int

EXTRA = re.compile(r"^(rules\[\d+\]\.\w+)\.(extra\..+?)((?:\.(?:not|at_least|at_most))?(?:\[\d+\])?)$")
"""The place of a fault about an attribute of a rule whose name has a dot in it."""


class InvalidRequestError(InputError):
    """Well-formed, but fields, types or ranges are wrong."""

    code = "invalid-request"
    title = "The request is not valid"


class InvalidJsonError(InputError):
    """The body is not strict JSON."""

    code = "invalid-json"
    title = "The body is not valid JSON"


@dataclass(frozen=True, slots=True)
class PlacedIssue(Issue):
    """An Issue that knows its place in the JSON body.

    Attributes
    ----------
    path : tuple of str and int, or None
        Steps from the top of the body; None where the fault lies in the query string or a header.
    """

    path: tuple[Step, ...] | None = ()


def steps(field: str | None) -> tuple[Step, ...]:
    """``"publications[2].title"`` or ``"publications.2.title"`` as the steps of a pointer."""
    if not field:
        return ()
    if named := EXTRA.match(field):
        return (*steps(named[1]), named[2], *steps(named[3]))
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"[.\[\]]+", field) if part)


def summary(issues: Sequence[Issue]) -> str:
    """The first few issues as one sentence; rows of a file are lines to whoever sent it."""
    shown = [_worded(issue) for issue in issues[:ISSUES_IN_MESSAGE]]
    more = len(issues) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _worded(issue: Issue) -> str:
    if issue.row is None or issue.source is None or not issue.source.endswith(".csv"):
        return str(issue)
    where = f"{issue.source}, line {issue.row}" + (f", {issue.field}" if issue.field else "")
    return f"{where}: {issue.reason}"


def place(issue: Issue, prefix: tuple[Step, ...], field: tuple[Step, ...] | None = None) -> PlacedIssue:
    """The same issue at a place of the body."""
    return PlacedIssue(
        issue.reason,
        issue.code,
        issue.field,
        issue.row,
        issue.value,
        issue.source,
        issue.severity,
        prefix + (steps(issue.field) if field is None else field),
    )


def unfold(
    messages: Any,
    data: Any,
    path: tuple[Step, ...] = (),
    locate: Callable[[tuple[Step, ...]], Mapping[str, Any]] | None = None,
) -> Iterable[PlacedIssue]:
    """marshmallow's nested messages as a flat list, each with its path, value and code.

    Parameters
    ----------
    messages : dict, list or str
        `ValidationError.messages`.
    data : object
        What was loaded; the offending values are taken from it.
    path : tuple
        Steps to `data` from the top of the body.
    locate : callable, optional
        path -> further fields of the issue, for example its row.
    """
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            if key == "_schema":
                yield from unfold(inner, data, path, locate)
            else:
                yield from unfold(inner, _child(data, key), (*path, key), locate)
        return
    names = [str(step) for step in path if isinstance(step, str)]
    for message in messages if isinstance(messages, (list, tuple)) else [messages]:
        yield PlacedIssue(
            str(message),
            getattr(message, "code", "invalid"),
            field=names[-1] if names else None,
            value=None if isinstance(data, (dict, list)) else data,
            path=path,
            **(locate(path) if locate else {}),
        )


def _child(data: Any, key: Any) -> Any:
    if isinstance(data, Mapping):
        return data.get(key)
    if isinstance(data, (list, tuple)) and isinstance(key, int) and key < len(data):
        return data[key]
    return None
