"""The JSON files of a model folder: read without trust, and their settings taken by type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matching.errors import InvalidFileError

__all__ = ["flag", "read_json", "read_object", "why_unreadable"]


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises
    ------
    InvalidFileError
        ``invalid-file``: not there, not readable, not JSON, or nested too deep. The folder is never named: messages
        reach people who do not know the machine.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidFileError(f"{_name(path)} of the model folder cannot be read: {why_unreadable(error)}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; raises as `read_json`, and where it holds something else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InvalidFileError(f"{_name(path)} of the model folder is not a JSON object")
    return content


def why_unreadable(error: BaseException) -> str:
    """The reason in an exception's words, without the path the system adds."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return str(error.strerror if isinstance(error, OSError) and error.strerror else error)


def flag(settings: Mapping[str, Any], name: str, default: bool | None, file: str) -> bool | None:
    """A setting that is true or false; the default where it is missing, or null and the default is None.

    Raises
    ------
    InvalidFileError
        ``invalid-file``: something else. The text "false" would count as true.
    """
    value = settings.get(name, default)
    if isinstance(value, bool) or value is default:
        return value
    raise InvalidFileError(f"{file}: {name} must be true or false, not {value!r}")


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if path.parent.name == "1_Pooling" else path.name
