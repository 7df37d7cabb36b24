"""What is odd about a venue: profiles thin or stale, texts of one word or one phrase, people without address.

Everything but the fit is told before anything is scored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints.problem import AssignmentProblem
from matching.constraints.role_rows import RoleRows
from matching.explain.names import some
from matching.notices import Notice, in_words
from matching.profiles.identity import fold_address, is_address
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.text import Document, publication_year, reviewer_documents, submission_text, tokens
from matching.scores.operator import AffinityOperator
from matching.scores.textscores import TextScores

__all__ = ["Readings", "address_notices", "fit_notices", "profile_notices", "text_notices"]

THIN_PUBLICATIONS = 2  # up to here one publication more or less may turn a score
STALE_YEARS = 5  # between a reviewer's newest publication and the venue's newest
REPEATED_SHARE = 0.5  # of a text that is one word, or phrases that occurred before
REPEATED_WORDS = 20  # meaningful words below which a share says nothing: titles
REPEATED_SENTENCE = 3  # times; twice may be a title that opens its abstract
SENTENCE_WORDS = 4  # of a sentence whose repetition counts
POOR_FIT = 0.5
"""Text affinity below which nobody fits: one standard deviation above the venue's mean pair; experts have 0.7 to 1."""
FIT_PAIRS = 100  # known text pairs below which "one standard deviation above the mean" says nothing

_SENTENCE_END = re.compile(r"[.!?]\s|[\u3002\uff01\uff1f]|[.!?]$")
_PLAIN_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, eq=False)
class Readings:
    """The texts of a venue as the scorers see them, read once.

    Attributes
    ----------
    documents : tuple of tuple of Document, one a reviewer
    texts : tuple of str, one a submission
    """

    documents: tuple[tuple[Document, ...], ...]
    texts: tuple[str, ...]

    @property
    def readable_pairs(self) -> int:
        """Pairs of which both sides have words."""
        return sum(map(bool, self.texts)) * sum(map(bool, self.documents))

    @classmethod
    def of(cls, resolved: ResolvedVenue, affinity: AffinityOperator | None = None) -> Readings:
        """The texts of everybody who takes part; of a scored venue as its scorer read them, without reading again."""
        operators = () if affinity is None else (signal.operator for signal in affinity.signals)
        scores = next((operator for operator in operators if isinstance(operator, TextScores)), None)
        if scores is not None:
            return cls(
                tuple(tuple(scores.documents_of(col)) for col in range(scores.shape[1])), tuple(scores.submission_texts)
            )
        return cls(
            tuple(tuple(reviewer_documents(entry)) for entry in resolved.reviewers),
            tuple(submission_text(entry) for entry in resolved.submissions),
        )


def profile_notices(resolved: ResolvedVenue, readings: Readings) -> Iterator[Notice]:
    """``thin-profile``: one or two publications, or keywords alone. ``stale-profile``: nothing new for five years."""
    thin, years = [], {}
    for reviewer, documents in zip(resolved.reviewers, readings.documents):
        if 0 < len(documents) <= THIN_PUBLICATIONS:
            thin.append(reviewer.id)
        dated = [year for entry in reviewer.publications if (year := publication_year(entry)) is not None]
        if dated:
            years[reviewer.id] = max(dated)
    if thin:
        yield Notice(
            "thin-profile",
            f"{some(len(thin), 'reviewer')} with {THIN_PUBLICATIONS} publications or fewer, so their scores are "
            f"uncertain: {in_words(thin)}.",
            reviewers=tuple(thin),
            data={"count": len(thin), "publications": THIN_PUBLICATIONS},
        )
    newest = max(years.values(), default=0)
    stale = [name for name, year in years.items() if year < newest - STALE_YEARS]
    if stale:
        yield Notice(
            "stale-profile",
            f"{some(len(stale), 'reviewer')} published nothing after {newest - STALE_YEARS - 1}, more than "
            f"{STALE_YEARS} years before the newest publication of this venue ({newest}): "
            f"{in_words([f'{name} ({years[name]})' for name in stale])}.",
            reviewers=tuple(stale),
            data={"count": len(stale), "newest": newest, "years": {name: years[name] for name in stale}},
        )


def text_notices(resolved: ResolvedVenue, readings: Readings) -> Iterator[Notice]:
    """``one-word-text``, ``repetitive-text``; ``no-shared-word``: submissions none of whose words is in a profile."""
    words: dict[str, list[str]] = {"submissions": [], "reviewers": []}
    repeated: dict[str, list[str]] = {"submissions": [], "reviewers": []}
    for kind, name, texts in _texts(resolved, readings):
        if any(map(_is_one_word, texts)):
            words[kind].append(name)
        if any(map(_is_repetitive, texts)):
            repeated[kind].append(name)
    if any(words.values()):
        yield Notice(
            "one-word-text",
            f"texts of a single word say little: {_both(words, 'a publication')}.",
            tuple(words["submissions"]),
            tuple(words["reviewers"]),
        )
    if any(repeated.values()):
        yield Notice(
            "repetitive-text",
            "texts that repeat one word or one sentence over and over; repeats are damped in the score: "
            f"{_both(repeated, 'a publication')}.",
            tuple(repeated["submissions"]),
            tuple(repeated["reviewers"]),
        )
    alone = _without_shared_word(resolved, readings)
    if alone:
        yield Notice(
            "no-shared-word",
            f"{some(len(alone), 'submission')} {'share' if len(alone) > 1 else 'shares'} no word with any profile: "
            f"{in_words(alone)}.",
            tuple(alone),
        )


def address_notices(resolved: ResolvedVenue) -> Iterator[Notice]:
    """``no-address``: people without an e-mail address. ``unknown-author``: authors with neither id nor address."""
    people = [
        entry.id
        for entry in resolved.reviewers
        if not any(is_address(fold_address(text)) for text in (*entry.emails, entry.id, *entry.aliases))
    ]
    if people:
        yield Notice(
            "no-address",
            f"no e-mail address of {some(len(people), 'reviewer')}, so conflicts by address or domain are not found "
            f"for them: {in_words(people)}.",
            reviewers=tuple(people),
            data={"count": len(people)},
        )
    papers = [
        entry.id
        for entry in resolved.submissions
        if any(not author.id and not is_address(fold_address(author.email)) for author in entry.authors)
    ]
    if papers:
        yield Notice(
            "unknown-author",
            f"{some(len(papers), 'submission')} with an author of whom neither id nor address is given, so authorship "
            f"cannot be told for them: {in_words(papers)}.",
            tuple(papers),
            data={"count": len(papers)},
        )


def fit_notices(
    resolved: ResolvedVenue,
    affinity: AffinityOperator,
    problem: AssignmentProblem,
    best_assigned: Mapping[tuple[str, str], float | None],
) -> Iterator[Notice]:
    """``nobody-fits``: submissions for which the best eligible text affinity is below POOR_FIT, role by role.

    Nothing for venues with fewer than FIT_PAIRS known text pairs.

    Parameters
    ----------
    best_assigned : mapping of (submission id, role) to float or None
        Best text affinity among those assigned; a submission whose own reviewer fits needs no further look.
    """
    text = next((entry for entry in affinity.signals if entry.name == "text" and entry.weight > 0), None)
    if text is None or text.operator is None or text.known < FIT_PAIRS:
        return
    places = RoleRows.of(resolved)
    for at, role in enumerate(places.roles):
        people = places.columns(at)
        able = problem.load_max[people] > 0
        found: list[tuple[str, float]] = []
        for number, submission in enumerate(resolved.submissions):
            row = at * places.n_submissions + number
            assigned = best_assigned.get((submission.id, role))
            if (assigned is not None and assigned >= POOR_FIT) or not problem.demand[row]:
                continue
            line = np.array(text.operator.block(slice(number, number + 1), people)[0], dtype=np.float64)
            line[~able] = np.nan
            line[problem.barred.row(row) - people.start] = np.nan
            if not np.isnan(line).all() and (best := float(np.nanmax(line))) < POOR_FIT:
                found.append((submission.id, best))
        if found:
            names = [name for name, _ in found]
            whose = "reviewer" if len(places.roles) == 1 else role.replace("_", " ")
            yield Notice(
                "nobody-fits",
                f"no eligible {whose}'s texts fit {some(len(names), 'submission')} (text affinity below {POOR_FIT:g}): "
                f"{in_words([f'{name} (best {best:.2f})' for name, best in found])}.",
                tuple(names),
                data={"threshold": POOR_FIT, "best": dict(found)},
            )


def _texts(resolved: ResolvedVenue, readings: Readings) -> Iterator[tuple[str, str, Sequence[str]]]:
    """List, id and texts of every record; keywords are short by nature and not looked at."""
    for submission, text in zip(resolved.submissions, readings.texts):
        yield "submissions", submission.id, (text,) if text else ()
    for reviewer, documents in zip(resolved.reviewers, readings.documents):
        yield "reviewers", reviewer.id, [entry.text for entry in documents if entry.publication is not None]


def _is_one_word(text: str) -> bool:
    if text.count(" ") > 12 or len(text) > 200:
        return False  # hundreds of letters without a second word are no case to search for
    return len(set(tokens(text))) == 1


def _is_repetitive(text: str) -> bool:
    text = text.lower()
    sentences = _SENTENCE_END.split(text)
    if len(sentences) - len(set(sentences)) >= REPEATED_SENTENCE - 1:
        counts = Counter(part.strip() for part in sentences)
        if any(count >= REPEATED_SENTENCE and _is_sentence(part) for part, count in counts.items()):
            return True
    words = text.split()
    spaced = len(text) < 15 * len(words)
    if spaced and (len(words) < REPEATED_WORDS or len(set(words)) > len(words) / 2):
        return False  # counted without the cost of stemming
    stems = tokens(text)
    if len(stems) < REPEATED_WORDS:
        return False
    if Counter(stems).most_common(1)[0][1] > REPEATED_SHARE * len(stems):
        return True
    # of three words in a row, natural texts of any length repeat few; a phrase over and over repeats nearly all
    threes = list(zip(stems, stems[1:], stems[2:]))
    return len(set(threes)) < (1.0 - REPEATED_SHARE) * len(threes)


def _is_sentence(part: str) -> bool:
    return len(part.split()) >= SENTENCE_WORDS or (not part.isascii() and len(part) >= 2 * SENTENCE_WORDS)


def _without_shared_word(resolved: ResolvedVenue, readings: Readings) -> list[str]:
    """Submissions with words of which no profile has any; empty where no profile has words at all."""
    if not any(readings.documents):
        return []
    written: set[str] = set()
    for documents in readings.documents:
        for document in documents:
            written.update(_PLAIN_WORD.findall(document.text.lower()))
    # words as written settle nearly all submissions; stems are only made for those that are left
    left = [
        (submission.id, text)
        for submission, text in zip(resolved.submissions, readings.texts)
        if text and not any(word in written and tokens(word) for word in _PLAIN_WORD.findall(text.lower()))
    ]
    if not left:
        return []
    wanted = {name: set(tokens(text)) for name, text in left}
    stems: set[str] = set()
    for documents in readings.documents:
        for document in documents:
            stems.update(tokens(document.text))
    return [name for name, own in wanted.items() if not own & stems]


def _both(found: Mapping[str, list[str]], part: str) -> str:
    papers, people = found["submissions"], found["reviewers"]
    told = []
    if papers:
        told.append(f"{some(len(papers), 'submission')} ({in_words(papers)})")
    if people:
        told.append(f"{part} of {some(len(people), 'reviewer')} ({in_words(people)})")
    return ", and ".join(told)
