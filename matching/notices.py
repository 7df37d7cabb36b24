"""Facts a chair should see before or after a run; never a reason to stop by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Notice"]


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
