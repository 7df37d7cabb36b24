"""The command `revmatch evaluate`: what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from matching.evaluation import LEVEL, Evaluation, evaluate
from matching.resources import Resources

__all__ = ["report"]


def report(
    dataset: Path, scorer: str | None, scores: Path | None, resources: Resources, as_json: bool
) -> tuple[str, list[str]]:
    """Evaluate and say what was found: text or one JSON object, and the notices as sentences.

    Raises
    ------
    InvalidFileError, InvalidParamsError, MissingExtraError
        See `matching.evaluation.evaluate`.
    """
    found = evaluate(dataset, scorer=scorer, scores=scores, resources=resources)
    text = json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False, indent=2) if as_json else _in_words(found)
    return text, [notice.message for notice in found.notices]


def _in_words(found: Evaluation) -> str:
    low, high = found.ci
    width = max(map(len, found.per_version))
    lines = [
        f"{found.scorer}: loss {found.loss:.4f}, {LEVEL:.0%} interval [{low:.3f}, {high:.3f}] (lower is better)",
        f"ordered right: easy pairs {_share(found.easy)}, hard pairs {_share(found.hard)}",
        *(f"  {version:<{width}}  {loss:.4f}" for version, loss in found.per_version.items()),
        f"{found.participants} participants, {found.pairs} pairs of different ratings, "
        f"{len(found.per_version)} versions, {found.seconds:.1f} s",
    ]
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "none there" if value is None else f"{value:.3f}"
