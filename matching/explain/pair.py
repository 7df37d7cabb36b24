"""Why this reviewer for this submission, in words a chair reads and can check.

Every sentence states something that is on record: words that stand in both texts, the nearest publication,
areas both name, a bid, an imported score. The numbers behind them are the pair's score parts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from matching.plan.plan import ScorePart
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.text import reviewer_documents, submission_text, tokens

__all__ = ["Explainer"]

TERMS_SHOWN = 5  # shared words named in a reason
COMMON_SHARE = 0.5  # a word in more than this share of the submissions tells nothing about a pair
_WORD = re.compile(r"\w[\w'-]*\w|\w")


class Explainer:
    """Reasons for pairs of one venue. Texts are read once each and kept.

    Parameters
    ----------
    resolved : ResolvedVenue
    """

    def __init__(self, resolved: ResolvedVenue) -> None:
        self._resolved = resolved
        self._submission_words = lru_cache(maxsize=4096)(self._words_of_submission)
        self._documents = lru_cache(maxsize=4096)(self._documents_of)
        self._spread: Counter[str] | None = None

    def shared_terms(self, row: int, col: int, limit: int = TERMS_SHOWN) -> tuple[str, ...]:
        """Words of the submission whose stems also occur in the reviewer's nearest document, rarest first.

        Each is spelled as in the submission; a form of it stands in the document.
        """
        return self._nearest(row, col)[1][:limit]

    def nearest_publication(self, row: int, col: int) -> str | None:
        """Title of the publication that shares most with the submission; None if none shares a word."""
        return self._nearest(row, col)[0]

    def reasons(self, row: int, col: int, parts: Sequence[ScorePart], locked: bool = False) -> tuple[str, ...]:
        """The sentences for one pair, most telling first."""
        submission, reviewer = self._resolved.submissions[row], self._resolved.reviewers[col]
        out = []
        if locked:
            out.append("held before this run and kept")
        by_name: Mapping[str, ScorePart] = {part.signal: part for part in parts}
        text = by_name.get("text")
        if text is not None and text.weight > 0:
            if text.value is None:
                out.append(f"no text evidence; the venue's stand-in {text.used:.2f} was used")
            else:
                title, terms = self._nearest(row, col)
                if terms:
                    out.append("shared terms: " + ", ".join(terms[:TERMS_SHOWN]))
                if title:
                    out.append(f"nearest publication: {title}")
        common = _common(submission.areas, reviewer.areas)
        areas = by_name.get("areas")
        if common and areas is not None and areas.weight > 0:
            out.append("shared areas: " + ", ".join(common))
        bid = by_name.get("bids")
        if bid is not None and bid.value is not None and bid.weight > 0:
            word = "positive" if bid.value > 0 else "negative" if bid.value < 0 else "neutral"
            out.append(f"{word} bid ({bid.value:+g})")
        for part in parts:
            if part.signal not in ("text", "areas", "bids") and part.weight > 0:
                stated = f"{part.value:.3g}" if part.value is not None else f"missing, {part.used:.3g} used"
                out.append(f"{part.signal} score {stated}")
        return tuple(out) or ("no evidence either way; chosen within loads and conflicts",)

    def _nearest(self, row: int, col: int) -> tuple[str | None, tuple[str, ...]]:
        words = self._submission_words(row)
        spread = self._counts()
        common = COMMON_SHARE * len(self._resolved.submissions)
        best: tuple[float, str | None, tuple[str, ...]] = (0.0, None, ())
        for title, stems in self._documents(col):
            both = [stem for stem in words if stem in stems]
            weight = sum(1.0 / (1 + spread[stem]) for stem in both)
            if weight > best[0]:
                rare = sorted((spread[stem], words[stem].casefold(), words[stem]) for stem in both)
                told = tuple(word for count, _, word in rare if count <= max(common, 1.0))
                best = (weight, title, told)
        return best[1], best[2]

    def _counts(self) -> Counter[str]:
        """In how many submissions each stem occurs."""
        if self._spread is None:
            self._spread = Counter(
                stem for text in self._resolved.submissions for stem in set(tokens(submission_text(text)))
            )
        return self._spread

    def _words_of_submission(self, row: int) -> dict[str, str]:
        """Stem -> the word as it stands in the submission, first occurrence."""
        found: dict[str, str] = {}
        for word in _WORD.findall(submission_text(self._resolved.submissions[row])):
            for stem in tokens(word):
                found.setdefault(stem, word)
        return found

    def _documents_of(self, col: int) -> list[tuple[str | None, frozenset[str]]]:
        """(title, stems) of each document of a reviewer; no title for keywords."""
        found: list[tuple[str | None, frozenset[str]]] = []
        for document in reviewer_documents(self._resolved.reviewers[col]):
            title = document.publication.title.strip() if document.publication else ""
            found.append((title or None, frozenset(tokens(document.text))))
        return found


def _common(left: Sequence[str], right: Sequence[str]) -> list[str]:
    theirs = {area.strip().casefold() for area in right}
    return [area.strip() for area in left if area.strip().casefold() in theirs]
