"""What speaks for a pair: parts that add up, publications that carry them, shared words, and how sure it all is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from matching.explain.pair import Explainer
from matching.explain.passages import shared_passages
from matching.plan.plan import ScorePart, plain
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.text import Document, submission_text, tokens
from matching.scores.operator import AffinityOperator
from matching.scores.shares import document_shares, pooled_similarity
from matching.scores.textscores import TextScores
from matching.types import FloatArray, IntArray

__all__ = ["Evidence", "EvidenceFinder", "PublicationEvidence", "confidence_of", "parts_of", "parts_of_pairs"]

THIN_PUBLICATIONS = 2  # up to here a profile is thin, whatever it says
THIN_WORDS = 100  # meaningful words below which it is thin as well: less than one abstract
GOOD_PUBLICATIONS = 5
GOOD_ERROR = 0.1  # standard error of the text affinity up to which it is well founded
RESTS_ON_ONE = 0.2  # standard error from which one publication makes the score, and the sentence says so
TERMS_SHOWN = 10  # shared words of a pair; each of its publications shows five at most
PUBLICATIONS_READ = 10  # of a pair, by share, in which shared words and passages are looked for


@dataclass(frozen=True, slots=True)
class PublicationEvidence:
    """One publication's part in the text affinity of a pair.

    Attributes
    ----------
    id : str
        "" for the reviewer's keywords, which speak where there are no publications.
    title : str
    year : int or None
        As stated.
    share : float
        Part of the text affinity this publication carries, [0, 1]; over a reviewer's publications the shares sum
        to 1. Within each comparison of the text scorer it is the weight with which the publication's similarity
        enters the pool, over the comparisons their mean by weight.
    fit : float or None
        Text affinity if this publication were the reviewer's only one, [0, 1]; None where nothing is known.
    without : float or None
        Text affinity without it, [0, 1]; None where nothing is left.
    terms : tuple of str
        Words that stand in the submission and in this publication, rarest first, lower case.
    passages : tuple of str
        Longer sequences that stand in both, lower case.
    """

    id: str
    title: str
    year: int | None
    share: float
    fit: float | None
    without: float | None
    terms: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything a pair's affinity rests on.

    Attributes
    ----------
    affinity : float or None
        Sum of the parts' contributions; None for a pair of unknown affinity that may not be used.
    parts : tuple of ScorePart
        Text, areas, bids, imported tables; their contributions add up to the affinity.
    publications : tuple of PublicationEvidence
        By falling share.
    terms : tuple of str
        Words shared with any of them, those of the weightiest publications first.
    documents : int
        Publications used.
    words : int
        Meaningful words in them.
    standard_error : float or None
        Of the text affinity, from leaving out one publication at a time; None with fewer than two.
    confidence : str
        "thin", "fair" or "good"; see `confidence_of`.
    confidence_words : str
        Why, in one sentence.
    """

    affinity: float | None
    parts: tuple[ScorePart, ...]
    publications: tuple[PublicationEvidence, ...]
    terms: tuple[str, ...]
    documents: int
    words: int
    standard_error: float | None
    confidence: str
    confidence_words: str

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, strings and numbers: strict JSON."""
        return cast(dict[str, Any], plain(asdict(self)))


def confidence_of(documents: int, words: int, standard_error: float | None) -> tuple[str, str]:
    """How far a text affinity can be trusted, as a label and a sentence.

    "thin": up to 2 publications, or fewer than 100 meaningful words in all. "good": at least 5 publications and a
    standard error of at most 0.1. "fair": everything between.

    Parameters
    ----------
    documents, words : int
    standard_error : float or None
        In units of text affinity.
    """
    if not documents:
        return "thin", "no text speaks for this reviewer"
    amount = f"{documents} publication{'s' if documents > 1 else ''}, {words} words"
    if standard_error is None:
        return "thin", f"{amount}: too few publications to say how far the fit would change with another"
    spread = f"standard error {standard_error:.2f}"
    if documents <= THIN_PUBLICATIONS or words < THIN_WORDS:
        return "thin", f"{amount}; {spread}"
    if documents >= GOOD_PUBLICATIONS and standard_error <= GOOD_ERROR:
        return "good", f"{amount}; {spread}"
    return "fair", f"{amount}; {spread}"


class EvidenceFinder:
    """Evidence for pairs of one venue.

    Parameters
    ----------
    resolved : ResolvedVenue
    affinity : AffinityOperator
        Of this venue. Publications are told where its text signal is a `TextScores`.
    """

    def __init__(self, resolved: ResolvedVenue, affinity: AffinityOperator) -> None:
        self._resolved, self._affinity = resolved, affinity
        self._explainer = Explainer(resolved)
        operators = [signal.operator for signal in affinity.signals if signal.name == "text" and signal.weight > 0]
        self._text = operators[0] if operators and isinstance(operators[0], TextScores) else None

    def of_pair(self, row: int, col: int) -> Evidence:
        """The evidence for one pair.

        Cost: the similarities of the reviewer's publications, and one formula for each publication left out.
        """
        at = np.array([row]), np.array([col])
        value = float(self._affinity.values(*at)[0])
        documents = () if self._text is None else tuple(self._text.documents_of(col))
        publications, error, used = self._publications(row, col, documents)
        words = sum(len(tokens(document.text)) for document in used)
        label, sentence = confidence_of(len(used), words, error)
        if self._text is None:
            label, sentence = "thin", "texts are not used in this score"
        elif not used and documents:
            mute = not self._text.submission_texts[row]
            sentence = "the submission has no text to compare" if mute else "the two texts hold nothing to compare"
        elif used and used[0].publication is None:
            sentence = f"keywords only, {words} words: no publication speaks for this reviewer"
        elif error is not None and error >= RESTS_ON_ONE:
            lowest = min(entry.without for entry in publications if entry.without is not None)
            sentence += f"; without the publication that speaks most for it the fit would be {lowest:.2f}"
        terms = dict.fromkeys(term for publication in publications for term in publication.terms)
        return Evidence(
            None if math.isnan(value) else value,
            parts_of(self._affinity, row, col),
            publications,
            tuple(terms)[:TERMS_SHOWN],
            len(used),
            words,
            error,
            label,
            sentence,
        )

    def _publications(
        self, row: int, col: int, documents: Sequence[Document]
    ) -> tuple[tuple[PublicationEvidence, ...], float | None, list[Document]]:
        """The publications of a reviewer for a submission, the standard error, and the documents that were used."""
        if self._text is None or not documents:
            return (), None, []
        compared = self._text.similarities(row, col)
        known = np.array([~np.isnan(similarities) for _, _, similarities, _ in compared]).reshape(-1, len(documents))
        used: list[int] = np.flatnonzero(known.any(axis=0)).tolist()
        if not used:
            return (), None, []
        shares = _shares(compared, len(documents))
        everyone = np.arange(len(documents))
        fits = [self._fit(row, compared, everyone == at) for at in used]
        rest = [self._fit(row, compared, everyone != at) for at in used] if len(used) > 1 else [None]
        text = submission_text(self._resolved.submissions[row])
        ranked = sorted(range(len(used)), key=lambda at: (-shares[used[at]], documents[used[at]].text))
        found = []
        for rank, at in enumerate(ranked):
            document = documents[used[at]]
            read = rank < PUBLICATIONS_READ
            found.append(
                PublicationEvidence(
                    document.publication.id if document.publication else "",
                    (document.publication.title.strip() or "(no title)") if document.publication else "(keywords)",
                    document.publication.year if document.publication else None,
                    float(shares[used[at]]),
                    fits[at],
                    rest[at],
                    self._explainer.terms_with(row, document.text) if read else (),
                    shared_passages(text, document.text) if read else (),
                )
            )
        return tuple(found), _standard_error(rest), [documents[at] for at in used]

    def _fit(self, row: int, compared: Sequence[Any], keep: NDArray[np.bool_]) -> float | None:
        assert self._text is not None, "callers have looked"
        pooled = [pooled_similarity(comparison, values, weights, keep) for _, comparison, values, weights in compared]
        fit = self._text.affinity_of_pooled(pooled, row)
        return None if math.isnan(fit) else float(fit)


def parts_of(affinity: AffinityOperator, row: int, col: int) -> tuple[ScorePart, ...]:
    """What each signal adds to a pair, in the order in which the affinity is summed."""
    return parts_of_pairs(affinity, np.array([row]), np.array([col]))[0]


def parts_of_pairs(affinity: AffinityOperator, rows: IntArray, cols: IntArray) -> list[tuple[ScorePart, ...]]:
    """`parts_of` for many pairs (rows[i], cols[i]) at once."""
    columns = [(signal, measured.tolist(), used.tolist()) for signal, measured, used in affinity.parts(rows, cols)]
    return [
        tuple(
            ScorePart(
                signal.name,
                None if math.isnan(measured[at]) else measured[at],
                used[at],
                signal.weight,
                signal.weight * used[at],
            )
            for signal, measured, used in columns
        )
        for at in range(len(rows))
    ]


def _shares(compared: Sequence[Any], n_documents: int) -> FloatArray:
    """Mean over the comparisons of each document's share, by the weights of the groups that know the pair."""
    total, weight = np.zeros(n_documents), 0.0
    for group, comparison, similarities, weights in compared:
        if np.isnan(similarities).all():
            continue
        # the comparisons of a group count alike and together as much as its weight
        counts = group.weight / len(group.comparisons)
        total += counts * document_shares(comparison, similarities, weights)
        weight += counts
    return total / weight if weight else total


def _standard_error(rest: Sequence[float | None]) -> float | None:
    """Jackknife: sqrt((n - 1) / n * sum of squared differences from the mean) of the values with one left out.

    References
    ----------
    Efron and Stein, "The jackknife estimate of variance", Annals of Statistics 9(3), 1981.
    """
    values = np.array([value for value in rest if value is not None])
    if values.size < 2:
        return None
    return float(np.sqrt((values.size - 1) / values.size * np.sum((values - values.mean()) ** 2)))
