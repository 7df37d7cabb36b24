"""The command `revmatch readiness`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matching.formats.folder import read_folder
from matching.params import Params
from matching.plan.plan import plain
from matching.questions import readiness

__all__ = ["report"]


def report(folder: Path, params: Params, as_json: bool) -> tuple[str, bool]:
    """What is missing or odd before a run, as text or one JSON object, and whether a full plan can exist by count.

    Raises
    ------
    InvalidFileError, InvalidVenueError, InvalidParamsError
        The folder or the options cannot be used.
    """
    venue, notices = read_folder(folder)
    found = readiness(venue, params)
    items = [*found["items"], *notices]
    if as_json:
        record = {"ready": found["ready"], "counts": found["counts"], "items": [_plain(item) for item in items]}
        return json.dumps(record, ensure_ascii=False, allow_nan=False, indent=2), found["ready"]
    counts = found["counts"]
    lines = [
        f"{counts['submissions']} submissions need {counts['reviews_needed']} reviews; "
        f"{counts['reviewers']} reviewers can give {counts['reviews_available']}. "
        + ("Nothing stands against a full plan by count." if found["ready"] else "No full plan exists.")
    ]
    lines += [f"- {item.message}" for item in items]
    return "\n".join(lines), found["ready"]


def _plain(item: Any) -> Any:
    return plain({name: getattr(item, name) for name in ("code", "message", "submissions", "reviewers", "data")})
