"""Strict JSON: no NaN or infinity, no repeated key, and a line number on every fault."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from matching.formats.decode import decode, line_of, split_lines
from matching.formats.faults import Faults

__all__ = ["dump_json", "dump_jsonl", "parse_json", "read_jsonl"]

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN|-?\d[\d.eE+-]*|[{}\[\],:]')
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_FAILED = object()


def parse_json(data: bytes, faults: Faults) -> Any:
    """Value of a JSON document; None where it has faults, which are then in `faults`."""
    value = _parse(decode(data, faults.source), faults, 1)
    return None if value is _FAILED else value


def read_jsonl(data: bytes, faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank; lines at fault go to `faults`."""
    for number, line in enumerate(split_lines(decode(data, faults.source)), start=1):
        if not line.strip():
            continue
        value = _parse(line, faults, number)
        if isinstance(value, dict):
            yield number, value
        elif value is not _FAILED:
            faults.add("must be one JSON object a line", "not-an-object", row=number)


def _parse(text: str, faults: Faults, first: int) -> Any:
    """One document whose first line has the number `first`; _FAILED where it has faults."""
    suspicious = False

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal suspicious
        value = dict(items)
        suspicious |= len(value) != len(items)
        return value

    def constant(_: str) -> None:
        nonlocal suspicious
        suspicious = True

    def number(token: str) -> float:
        nonlocal suspicious
        value = float(token)
        suspicious |= math.isinf(value)
        return value

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant, parse_float=number)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        faults.add(f"not JSON: {error.msg}", "not-json", row=first + line_of(text, error.pos) - 1)
        return _FAILED
    except UnicodeEncodeError:
        faults.add("holds half of a surrogate pair, which is no character", "not-unicode", row=first)
        return _FAILED
    except RecursionError:
        faults.add("is nested too deeply", "not-json", row=first)
        return _FAILED
    except ValueError:
        faults.add("holds a number with too many digits", "not-json", row=first)
        return _FAILED
    if suspicious:
        _name_faults(text, faults, first)
        return _FAILED
    return value


def _name_faults(text: str, faults: Faults, first: int) -> None:
    """Walk the tokens of a document the parser accepted and list repeated keys and numbers that are not finite."""
    keys: list[set[str] | None] = []  # for each open bracket: the keys so far, None in a list
    expects_key = False
    for match in TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            keys.append(set() if token == "{" else None)
            expects_key = token == "{"
        elif token in "}]":
            keys.pop()
            expects_key = False
        elif token == ",":
            expects_key = keys[-1] is not None
        elif token == ":":
            expects_key = False
        elif token[0] == '"':
            seen = keys[-1] if keys and expects_key else None
            if seen is not None:
                name = json.loads(token)
                if name in seen:
                    row = first + line_of(text, match.start()) - 1
                    faults.add(f"key {name!r} is given twice in one object", "repeated-key", name, row)
                seen.add(name)
        elif token.lstrip("-") in ("Infinity", "NaN") or math.isinf(float(token)):
            row = first + line_of(text, match.start()) - 1
            faults.add(f"{token} is not a finite number", "not-finite", row=row, value=token)


def dump_json(value: Any) -> bytes:
    """Strict JSON with sorted keys, indented by two, one line end at the end."""
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=2) + "\n").encode("utf-8")


def dump_jsonl(records: list[dict[str, Any]]) -> bytes:
    """One strict JSON object a line, keys in the order given."""
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records]
    return "".join(lines).encode("utf-8")
