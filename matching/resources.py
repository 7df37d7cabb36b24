"""What the operator of a machine provides; a chair's options are in `matching.params`."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matching.errors import InvalidParamsError, Issue

__all__ = ["Resources", "executor_issues"]


@dataclass(frozen=True)
class Resources:
    """Folders, memory and workers a run may use.

    Attributes
    ----------
    encoder_model : Path or None
        Folder of a sentence encoder; see `matching.vectors.model.open_model`. None: the weights of the extra.
    encoder_cache : Path or None
        Folder in which vectors of texts are kept between runs; made if missing. None: they are not kept.
    memory_limit : int or None
        Bytes a run may take beside what the process holds when it begins, at least 0; a run that may need more is
        refused (`matching.memory`). None: what the machine, or the container, has free.
    executor : Executor or None
        Computes what is computed for all pairs; see `matching.scores.fan.sweeping`. None: a thread a core. Not for
        `recommend_within`, whose process cannot be handed one.

    Raises
    ------
    InvalidParamsError
        A memory limit that is no number of bytes, an executor that takes no work.
    """

    encoder_model: Path | None = None
    encoder_cache: Path | None = None
    memory_limit: int | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        issues: list[Issue] = []
        limit = self.memory_limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            reason = f"must be a whole number of bytes, at least 0, got {limit!r}"
            issues.append(Issue(reason, "out-of-range", "memory_limit", source="resources"))
        issues += executor_issues(self.executor)
        if issues:
            raise InvalidParamsError(issues=issues)


def executor_issues(executor: Any) -> list[Issue]:
    """What keeps it from being an executor; empty for None."""
    if executor is None or callable(getattr(executor, "submit", None)):
        return []
    reason = f"must be a concurrent.futures.Executor, not {type(executor).__name__}"
    return [Issue(reason, "wrong-type", "executor", source="resources")]
