"""Why this reviewer for this submission, in words a chair reads and can check.

Every sentence states something that is on record: words that stand in both texts, the nearest publication,
areas both name, a bid, an imported score. The numbers behind them are the pair's score parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from matching.plan.plan import ScorePart
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.text import matched_forms, reviewer_documents, submission_text, tokens

__all__ = ["Explainer"]

TERMS_SHOWN = 5  # shared words named in a reason
COMMON_SHARE = 0.5  # a word in more than this share of the submissions tells nothing about a pair
SHORTEST_PART = 4  # letters of a word that may stand for its longer forms ("graph" for "graphs")

Forms = Mapping[str, tuple[str, ...]]
"""Form in which words match -> the words of a text that have it."""


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
        """Words that stand in the submission and in the reviewer's nearest document, rarest first, lower case.

        A word counts where it stands as itself in both, or where one text has a longer form of it.
        """
        return self._nearest(row, col)[1][:limit]

    def nearest_publication(self, row: int, col: int) -> str | None:
        """Title of the publication that shares most with the submission; None if none shares a word."""
        return self._nearest(row, col)[0]

    def terms_with(self, row: int, text: str, limit: int = TERMS_SHOWN) -> tuple[str, ...]:
        """Words that stand in the submission and in a text of somebody, rarest first, as for `shared_terms`."""
        return self._told(self._submission_words(row), matched_forms(text))[:limit]

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
                if not terms and not title:
                    out.append(f"text fit {text.value:.2f}, by related words only")
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
        # ties go to the title, so that the order of a profile changes nothing
        best: tuple[float, str, tuple[str, ...]] = (0.0, "", ())
        for title, theirs in self._documents(col):
            both = [stem for stem in words if stem in theirs]
            weight = sum(1.0 / (1 + spread[stem]) for stem in sorted(both))
            if weight > best[0] or (weight == best[0] and both and title < best[1]):
                best = (weight, title, self._told(words, theirs))
        return best[1] or None, best[2]

    def _told(self, words: Forms, theirs: Forms) -> tuple[str, ...]:
        """Words of both, rarest first, without those of most submissions."""
        spread = self._counts()
        common = max(1.0, COMMON_SHARE * len(self._resolved.submissions))
        rare = sorted((spread[stem], stem) for stem in words if stem in theirs and spread[stem] <= common)
        return tuple(dict.fromkeys(filter(None, (_shared_word(words[stem], theirs[stem]) for _, stem in rare))))

    def _counts(self) -> Counter[str]:
        """In how many submissions each stem occurs."""
        if self._spread is None:
            self._spread = Counter(
                stem for text in self._resolved.submissions for stem in set(tokens(submission_text(text)))
            )
        return self._spread

    def _words_of_submission(self, row: int) -> Forms:
        return matched_forms(submission_text(self._resolved.submissions[row]))

    def _documents_of(self, col: int) -> list[tuple[str, Forms]]:
        """(title, words) of each document of a reviewer; no title for keywords."""
        return [
            (document.publication.title.strip() if document.publication else "", matched_forms(document.text))
            for document in reviewer_documents(self._resolved.reviewers[col])
        ]


def _shared_word(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """A word that can be found in both texts, None where only the stems agree ("marine", "marinating")."""
    for word in ours:
        if word in theirs:
            return word
    for word in ours:
        for other in theirs:
            short, long = sorted((word, other), key=len)
            if len(short) >= SHORTEST_PART and long.startswith(short):
                return short
    return None


def _common(left: Sequence[str], right: Sequence[str]) -> list[str]:
    theirs = {area.strip().casefold() for area in right}
    return [area.strip() for area in left if area.strip().casefold() in theirs]
