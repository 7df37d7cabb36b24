"""The gate for JSON: bytes in, values that every later layer can hold out.

Python's reader takes NaN, Infinity, numbers that overflow, repeated names and halves of surrogate pairs; none of
them is interoperable JSON, and each has broken a matcher or a database somewhere. They stop here, each with its place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from service.edge.errors import InvalidJsonError, InvalidRequestError, PlacedIssue, Step

__all__ = ["read_json"]

SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")  # an escape that may be a NUL or half of a pair
UNFIT = re.compile("[\x00\ud800-\udfff]")
PLAIN_WORDS = "names and texts must not hold NUL characters or halves of surrogate pairs"


class _NotFinite:
    """Stands where the text had NaN, Infinity or a number beyond float64."""

    def __init__(self, text: str) -> None:
        self.text = text


class _Repeated(dict[str, Any]):
    """An object that gave a name twice."""

    names: tuple[str, ...] = ()


class _Reader:
    """One pass of the reader; `flawed` says whether a second look is needed."""

    def __init__(self) -> None:
        self.flawed = False

    def number(self, text: str) -> Any:
        value = float(text)
        if math.isfinite(value):
            return value
        return self.constant(text)

    def constant(self, text: str) -> _NotFinite:
        self.flawed = True
        return _NotFinite(text)

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) == len(pairs):
            return record
        self.flawed = True
        repeated = _Repeated(record)
        seen: set[str] = set()
        repeated.names = tuple(dict.fromkeys(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
        return repeated


def read_json(data: bytes) -> Any:
    """Parse a body strictly.

    Parameters
    ----------
    data : bytes
        UTF-8, with or without byte order mark.

    Raises
    ------
    InvalidJsonError (``invalid-json``)
        Empty, no UTF-8, no JSON, NaN, Infinity, a number beyond float64, a repeated name, nesting too deep.
    InvalidRequestError (``invalid-request``)
        A NUL character or half of a surrogate pair in a name or a text.
    """
    if not data.strip():
        raise InvalidJsonError("the body is empty; send a JSON object")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidJsonError(f"the body is not UTF-8: byte {error.start} (line {line})") from None
    reader = _Reader()
    try:
        value = json.loads(
            text, parse_float=reader.number, parse_constant=reader.constant, object_pairs_hook=reader.object
        )
    except json.JSONDecodeError as error:
        raise InvalidJsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise InvalidJsonError("lists and objects are nested too deep") from None
    except ValueError:  # an integer of more digits than Python converts
        raise InvalidJsonError("a number has too many digits") from None
    if reader.flawed:
        _refuse_flaws(value)
    if SUSPECT.search(data):
        _refuse_unfit_text(value)
    return value


def _refuse_flaws(value: Any) -> NoReturn:
    issues: list[PlacedIssue] = []
    for path, item in _walk(value):
        if isinstance(item, _NotFinite):
            words = f"is not a finite number{_pair(value, path)}"
            issues.append(PlacedIssue(words, "not-finite", _name(path), _row(path), item.text, path=path))
        elif isinstance(item, _Repeated):
            issues += [
                PlacedIssue(
                    "the name occurs twice in one object", "repeated-name", name, _row(path), path=(*path, name)
                )
                for name in item.names
            ]
    # a repeated name hides the earlier value, and with it what was wrong there
    raise InvalidJsonError("numbers must be finite and names unique" if not issues else None, issues)


def _refuse_unfit_text(value: Any) -> None:
    issues = []
    for path, item in _walk(value):
        texts = [item] if isinstance(item, str) else list(item) if isinstance(item, dict) else []
        if any(UNFIT.search(text) for text in texts):
            issues.append(PlacedIssue(PLAIN_WORDS, "unfit-text", _name(path), _row(path), None, path=path))
    if issues:
        raise InvalidRequestError(issues=issues)


def _walk(value: Any) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Every value below and including this one, in the order of the text; no recursion, so no depth limit."""
    stack: list[tuple[tuple[Step, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        yield path, item
        if isinstance(item, dict):
            stack += [((*path, key), inner) for key, inner in reversed(item.items())]
        elif isinstance(item, list):
            stack += [((*path, row), inner) for row, inner in reversed(list(enumerate(item)))]


def _pair(value: Any, path: tuple[Step, ...]) -> str:
    """The submission and reviewer of the object that holds a value, in words."""
    for step in path[:-1]:
        value = value[step]
    if isinstance(value, dict) and isinstance(value.get("submission"), str) and isinstance(value.get("reviewer"), str):
        return f" (submission {value['submission'][:80]!r}, reviewer {value['reviewer'][:80]!r})"
    return ""


def _name(path: tuple[Step, ...]) -> str | None:
    return next((step for step in reversed(path) if isinstance(step, str)), None)


def _row(path: tuple[Step, ...]) -> int | None:
    return next((step for step in path if isinstance(step, int)), None)
