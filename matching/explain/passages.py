"""Word sequences that stand in two texts, as they stand there."""

from __future__ import annotations

import re
from collections import defaultdict

from matching.profiles.text import tokens

__all__ = ["shared_passages"]

FEWEST_WORDS = 3  # in a row that agree, before stop words go; in scripts without spaces, characters
FEWEST_MEANINGFUL = 2  # words of a passage that are no stop words, so that "it is shown that" is none
PLACES_TRIED = 16  # where a sequence of three recurs in the second text; bounds the work on a repeated phrase

# Pieces: characters of scripts without spaces, other words, and each sign between them.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff"
)
_PIECE = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


def shared_passages(text: str, other: str, limit: int = 3) -> tuple[str, ...]:
    """The longest sequences of words that stand in both texts, lower case, without stop words at their ends.

    Parameters
    ----------
    text, other : str
        As `clean_text` returns them: one line, single blanks.
    limit : int
        Most passages; they do not overlap in `text`.

    Returns
    -------
    tuple of str
        Each a part of ``text.lower()`` and of ``other.lower()``; longest first, then in the order of `text`. Three
        words or signs in a row agree at least, and two words carry meaning.

    Notes
    -----
    Time and memory are linear in both texts but for long common passages.
    """
    text, other = text.lower(), other.lower()
    ours = [(found.start(), found.end()) for found in _PIECE.finditer(text)]
    theirs = [(found.start(), found.end()) for found in _PIECE.finditer(other)]
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for at in range(len(theirs) - FEWEST_WORDS + 1):
        known = places[_start(other, theirs, at)]
        if len(known) < PLACES_TRIED:
            known.append(at)
    found: list[tuple[int, int, str]] = []
    at, last = 0, len(ours) - FEWEST_WORDS
    while at <= last:
        starts = places.get(_start(text, ours, at), ())
        longest = max((_reach(text, ours, at, other, theirs, to) for to in starts), default=0)
        if longest < FEWEST_WORDS:
            at += 1
            continue
        passage = _within_meaning(text, ours[at : at + longest])
        # checked and not only built: blanks of another kind between the words would make it a different string
        if passage in text and passage in other and len(tokens(passage)) >= FEWEST_MEANINGFUL:
            found.append((-len(passage), at, passage))
        at += longest
    return tuple(dict.fromkeys(passage for _, _, passage in sorted(found)))[:limit]


def _within_meaning(text: str, pieces: list[tuple[int, int]]) -> str:
    """The sequence without signs and stop words at its ends."""
    meaning = [bool(tokens(text[low:high])) for low, high in pieces]
    if not any(meaning):
        return ""
    first, last = meaning.index(True), len(meaning) - 1 - meaning[::-1].index(True)
    return text[pieces[first][0] : pieces[last][1]]


def _start(text: str, pieces: list[tuple[int, int]], at: int) -> tuple[str, ...]:
    return tuple(text[low:high] for low, high in pieces[at : at + FEWEST_WORDS])


def _reach(text: str, ours: list[tuple[int, int]], at: int, other: str, theirs: list[tuple[int, int]], to: int) -> int:
    """How many pieces from here on are the same in both texts."""
    count = 0
    while at + count < len(ours) and to + count < len(theirs):
        (low, high), (start, end) = ours[at + count], theirs[to + count]
        if text[low:high] != other[start:end]:
            break
        count += 1
    return count
