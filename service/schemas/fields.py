"""Strict fields: nothing is converted on the way in, and every fault carries a stable code beside its words.

``true``, ``2.5`` and ``"3"`` are not whole numbers; a list is a list and a text a text.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, fields, validate

__all__ = [
    "KEY_PATTERN",
    "Between",
    "Coded",
    "Flag",
    "Key",
    "Length",
    "ListOf",
    "Loose",
    "Map",
    "NestedRecord",
    "OneOf",
    "QueryFlag",
    "QueryReal",
    "QueryWhole",
    "Real",
    "Reference",
    "Spoken",
    "Text",
    "Whole",
    "fault",
]

MOST_COUNT = 2**31 - 1  # reviews; no load or demand in the field comes near
DEPTH = 32  # levels of lists and objects inside `extra`

CODES = {"required": "required", "null": "null", "invalid": "wrong-type", "invalid_utf8": "wrong-type"}
"""marshmallow's key of a message -> our code."""


class Coded(str):
    """A message with its stable code."""

    code: str

    def __new__(cls, text: str, code: str) -> Coded:
        self = super().__new__(cls, text)
        self.code = code
        return self


def fault(text: str, code: str) -> ValidationError:
    """The exception marshmallow collects, with a code in it."""
    return ValidationError(Coded(text, code))


class Spoken(fields.Field[Any]):
    """Words and codes of our own for the messages marshmallow makes."""

    default_error_messages = {"required": "is missing", "null": "must not be null", "invalid": "has the wrong type"}

    def make_error(self, key: str, **kwargs: Any) -> ValidationError:
        words = str(super().make_error(key, **kwargs).messages[0])
        return fault(words, CODES.get(key, key))


class Length(validate.Length):
    """Characters of a text or entries of a list; documents itself as minLength or minItems."""

    def _format_error(self, value: Any, message: str) -> str:
        least, most = self.min or 0, self.max
        unit = "characters" if isinstance(value, str) else "entries"
        if most is None:
            words = f"must have at least {least} {unit}, has {len(value)}"
        else:
            words = f"must have {least} to {most} {unit}, has {len(value)}"
        return Coded(words, "too-long" if most is not None and len(value) > most else "too-short")


class Between(validate.Range):
    """A range of numbers; documents itself as minimum and maximum."""

    def _format_error(self, value: Any, message: str) -> str:
        if self.max is None:
            return Coded(f"must be at least {self.min}", "out-of-range")
        if self.min is None:
            return Coded(f"must be at most {self.max}", "out-of-range")
        return Coded(f"must be between {self.min} and {self.max}", "out-of-range")


class OneOf(validate.OneOf):
    """One of a list of words; documents itself as enum."""

    def _format_error(self, value: Any) -> str:
        return Coded(f"must be one of {', '.join(str(choice) for choice in self.choices)}", "unknown-choice")


class Text(Spoken, fields.String):
    """A string and nothing else. With `null_is_empty`, null means the same as "" (a missing title or abstract)."""

    default_error_messages = {"invalid": "must be a text"}

    def __init__(self, *, most: int | None = None, least: int = 0, null_is_empty: bool = False, **kwargs: Any) -> None:
        self.null_is_empty = null_is_empty
        if null_is_empty:
            kwargs["allow_none"] = True
        if most is not None or least:
            given = kwargs.pop("validate", ())
            given = list(given) if isinstance(given, (list, tuple)) else [given]
            kwargs["validate"] = [Length(least or None, most), *given]
        super().__init__(**kwargs)

    def deserialize(self, value: Any, attr: Any = None, data: Any = None, **kwargs: Any) -> Any:
        loaded = super().deserialize(value, attr, data, **kwargs)
        return "" if loaded is None and self.null_is_empty else loaded

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str):
            raise self.make_error("invalid")
        return value


KEY_PATTERN = r"^[^\s/\x00-\x1f\x7f-\x9f]([^/\x00-\x1f\x7f-\x9f]*[^\s/\x00-\x1f\x7f-\x9f])?$"
_KEY = re.compile(KEY_PATTERN)
KEY_WORDS = "an id has 1 to 200 characters, no control characters, no slash, and no blank at either end"


class Key(Text):
    """The id of a record: it also names the record in addresses, so a slash, "." and ".." are refused."""

    def __init__(self, **kwargs: Any) -> None:
        metadata = {"description": KEY_WORDS[0].upper() + KEY_WORDS[1:] + ".", "pattern": KEY_PATTERN}
        kwargs["metadata"] = {**metadata, **kwargs.get("metadata", {})}
        super().__init__(most=200, least=1, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if not 1 <= len(text) <= 200:
            return text  # the length validator says so
        if "/" in text:
            raise fault("must not hold a slash: it would break the address of the record", "bad-id")
        if text in (".", ".."):
            raise fault('must not be "." or "..": clients take these out of an address', "bad-id")
        if not _KEY.match(text) or any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text):
            raise fault(KEY_WORDS, "bad-id")
        return text


class Reference(Text):
    """A reviewer (id, alias or address) or a submission that a pair speaks of."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(most=1000, least=1, **kwargs)


class Whole(Spoken, fields.Integer):
    """A whole number: no fraction, no boolean, no text."""

    default_error_messages = {"invalid": "must be a whole number, without quotes or fraction"}

    def __init__(self, *, least: int | None = 0, most: int | None = MOST_COUNT, **kwargs: Any) -> None:
        super().__init__(strict=True, validate=[Between(least, most)], **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        if type(value) is not int:
            raise self.make_error("invalid")
        return value


class Real(Spoken, fields.Float):
    """A finite number: no boolean, no text, no NaN."""

    default_error_messages = {"invalid": "must be a finite number, without quotes"}

    def __init__(
        self, *, least: float | None = None, most: float | None = None, above: float | None = None, **kwargs: Any
    ):
        checks: list[Any] = [] if least is None and most is None else [Between(least, most)]
        self.above = above
        if above is not None:
            kwargs["metadata"] = {"exclusiveMinimum": above, **kwargs.get("metadata", {})}
        super().__init__(validate=checks, **kwargs)

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        if type(value) is int:
            if abs(value) > 2**1000:
                raise self.make_error("invalid")
            value = float(value)
        if type(value) is not float or not math.isfinite(value):
            raise self.make_error("invalid")
        if self.above is not None and value <= self.above:
            raise fault(f"must be above {self.above:g}", "out-of-range")
        return value


class Flag(Spoken, fields.Boolean):
    """true or false, nothing that merely looks like it."""

    default_error_messages = {"invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if type(value) is not bool:
            raise self.make_error("invalid")
        return value


class ListOf(Spoken, fields.List[Any]):
    """A JSON array."""

    default_error_messages = {"invalid": "must be a list"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> list[Any]:
        if type(value) is not list:
            raise self.make_error("invalid")
        loaded: list[Any] = super()._deserialize(value, attr, data, **kwargs)
        return loaded


class NestedRecord(Spoken, fields.Nested):
    """One object inside another."""

    default_error_messages = {"invalid": "must be an object", "type": "must be an object"}


class Map(Spoken, fields.Dict):
    """A JSON object with free names; `values`, where given, judges each value."""

    default_error_messages = {"invalid": "must be an object"}

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise self.make_error("invalid")
        if self.value_field is None:
            return dict(value)
        loaded: dict[str, Any] = {}
        faults: dict[str, Any] = {}
        for name, item in value.items():
            try:
                loaded[name] = self.value_field.deserialize(item)
            except ValidationError as error:
                faults[name] = error.messages
        if faults:
            raise ValidationError(faults)
        return loaded


class Loose(Map):
    """Anything else that came with a record, any JSON, at most `DEPTH` levels deep."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> dict[str, Any]:
        loaded = super()._deserialize(value, attr, data, **kwargs)
        level: list[Any] = [loaded]
        for _ in range(DEPTH):
            level = [
                item
                for holder in level
                for item in (holder.values() if isinstance(holder, dict) else holder)
                if isinstance(item, (dict, list))
            ]
            if not level:
                return loaded
        raise fault(f"must not be nested more than {DEPTH} levels deep", "too-deep")


class QueryWhole(Whole):
    """A whole number in a query string."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> int:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]{1,18}", value):
            raise self.make_error("invalid")
        return int(value)


class QueryReal(Real):
    """A finite number in a query string."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> float:
        if not isinstance(value, str) or not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", value):
            raise self.make_error("invalid")
        return super()._deserialize(float(value), attr, data, **kwargs)


class QueryFlag(Flag):
    """true or false in a query string."""

    def _deserialize(self, value: Any, attr: Any, data: Any, **kwargs: Any) -> bool:
        if value not in ("true", "false"):
            raise self.make_error("invalid")
        return bool(value == "true")
