"""Facts a chair should see before or after a run; never a reason to stop by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Notice", "in_words"]

NAMES_IN_MESSAGE = 10


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing worth knowing.

    Attributes
    ----------
    code : str
        Stable, lower case with hyphens, for example ``"probable-duplicate"``.
    message : str
        One sentence with names and numbers in it.
    submissions, reviewers : tuple of str
        Outside ids it speaks of, in order; empty where it speaks of neither.
    data : mapping
        Numbers and rows for programs.
    """

    code: str
    message: str
    submissions: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def in_words(names: Sequence[str]) -> str:
    """Names for a message: the first few and how many more there are."""
    more = len(names) - NAMES_IN_MESSAGE
    return ", ".join(names[:NAMES_IN_MESSAGE]) + (f" and {more} more" if more > 0 else "")
