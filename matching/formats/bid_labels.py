"""Bid labels of other systems as ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["ACCEPTED_BIDS", "bid_label"]

ACCEPTED_BIDS: Mapping[str, tuple[str, ...]] = {
    "very_high": ("very high", "eager", "yes", "i want to review", "2", "+2"),
    "high": ("high", "willing", "maybe", "i can review", "1", "+1"),
    "neutral": ("neutral", "none", "no bid", "no response", "not entered", "0", ""),
    "low": ("low", "in a pinch", "-1"),
    "very_low": ("very low", "no", "not willing", "i cannot review", "-2"),
}
"""Our label -> what is read as it, compared without capitals; ``_`` and ``-`` between words count as blanks."""

_LABEL = {word: label for label, words in ACCEPTED_BIDS.items() for word in words}


def bid_label(value: Any) -> str | None:
    """Our label for a bid as given, a text or a whole number; None for one that nobody knows.

    Examples
    --------
    >>> bid_label("Very High"), bid_label("in a pinch"), bid_label(-2), bid_label("")
    ('very_high', 'low', 'very_low', 'neutral')
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    text = str(value).casefold().strip().replace("\N{MINUS SIGN}", "-")
    return _LABEL.get(re.sub(r"(?<=\w)[\s_-]+(?=\w)", " ", text))
