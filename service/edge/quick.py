"""Rows of texts and numbers judged without marshmallow, which takes ten times as long for half a million scores.

Only a yes is decided here: where anything looks odd, the schema judges the upload again and finds the words for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from marshmallow import Schema

from service.schemas.fields import Length, OneOf, Real, Reference, Text

__all__ = ["quick_reader"]

Rows = list[Any]
EXACT = 2**53  # whole numbers below it are floats without loss


def quick_reader(schema: Schema) -> Callable[[Rows], Rows | None] | None:
    """A reader that gives what ``schema.load`` would give, or None where that might raise.

    Parameters
    ----------
    schema : Schema
        With ``many``; None is returned for one whose fields are more than texts and unbounded numbers.
    """
    texts: list[tuple[str, bool, int, float, frozenset[str] | None]] = []
    numbers: list[tuple[str, bool]] = []
    for name, field in schema.load_fields.items():
        if type(field) in (Text, Reference) and all(type(check) in (Length, OneOf) for check in field.validators):
            least, most, choices = 0, math.inf, None
            for check in field.validators:
                if isinstance(check, Length):
                    least, most = int(check.min or 0), math.inf if check.max is None else float(check.max)
                elif isinstance(check, OneOf):
                    choices = frozenset(check.choices)
            texts.append((name, field.required, least, most, choices))
        elif type(field) is Real and not field.validators and field.above is None:
            numbers.append((name, field.required))
        else:
            return None
    known = len(texts) + len(numbers)

    def read(rows: Rows) -> Rows | None:
        loaded: Rows = []
        for row in rows:
            if type(row) is not dict or len(row) > known:
                return None
            found = 0
            for name, required, least, most, choices in texts:
                if name in row:
                    value = row[name]
                    if type(value) is not str or not least <= len(value) <= most:
                        return None
                    if choices is not None and value not in choices:
                        return None
                    found += 1
                elif required:
                    return None
            for name, required in numbers:
                if name in row:
                    value = row[name]
                    if type(value) is int and abs(value) < EXACT:
                        row = {**row, name: float(value)}
                    elif type(value) is not float or not math.isfinite(value):
                        return None
                    found += 1
                elif required:
                    return None
            if found != len(row):
                return None
            loaded.append(row)
        return loaded

    return read
