"""Word sequences that stand in two texts, as they stand there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from matching.profiles.text import tokens

__all__ = ["shared_passages"]

FEWEST_WORDS = 3  # in a row that agree, before stop words go; in scripts without spaces, characters
FEWEST_MEANINGFUL = 2  # words of a passage that are no stop words, so that "it is shown that" is none
PLACES_TRIED = 16  # where a sequence of three recurs in the second text; bounds the work on a repeated phrase
KEPT = 16  # texts whose pieces are kept: a submission is compared with every publication of its reviewers

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
    ours, theirs = _read(text), _read(other)
    places = theirs.places()
    found: list[tuple[int, int, str]] = []
    at, last = 0, len(ours.words) - FEWEST_WORDS
    while at <= last:
        starts = places.get(ours.words[at : at + FEWEST_WORDS], ())
        longest = max((_reach(ours.words, at, theirs.words, to) for to in starts), default=0)
        if longest < FEWEST_WORDS:
            at += 1
            continue
        passage = _within_meaning(ours.text, ours.spans[at : at + longest])
        # checked and not only built: blanks of another kind between the words would make it a different string
        if passage in ours.text and passage in theirs.text and len(tokens(passage)) >= FEWEST_MEANINGFUL:
            found.append((-len(passage), at, passage))
        at += longest
    return tuple(dict.fromkeys(passage for _, _, passage in sorted(found)))[:limit]


@dataclass(frozen=True, slots=True, eq=False)
class _Reading:
    """A text in lower case, where its pieces lie, and the pieces."""

    text: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[str, ...]

    def places(self) -> dict[tuple[str, ...], list[int]]:
        """Every sequence of three, and where it begins."""
        places: dict[tuple[str, ...], list[int]] = {}
        for at in range(len(self.words) - FEWEST_WORDS + 1):
            known = places.setdefault(self.words[at : at + FEWEST_WORDS], [])
            if len(known) < PLACES_TRIED:
                known.append(at)
        return places


@lru_cache(maxsize=KEPT)
def _read(text: str) -> _Reading:
    text = text.lower()
    found = [(piece.span(), piece[0]) for piece in _PIECE.finditer(text)]
    return _Reading(text, tuple(span for span, _ in found), tuple(word for _, word in found))


def _within_meaning(text: str, pieces: Sequence[tuple[int, int]]) -> str:
    """The sequence without signs and stop words at its ends."""
    meaning = [bool(tokens(text[low:high])) for low, high in pieces]
    if not any(meaning):
        return ""
    first, last = meaning.index(True), len(meaning) - 1 - meaning[::-1].index(True)
    return text[pieces[first][0] : pieces[last][1]]


def _reach(ours: tuple[str, ...], at: int, theirs: tuple[str, ...], to: int) -> int:
    """How many pieces from here on are the same in both texts."""
    count, most = 0, min(len(ours) - at, len(theirs) - to)
    while count < most and ours[at + count] == theirs[to + count]:
        count += 1
    return count
