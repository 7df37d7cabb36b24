"""Texts compared by their words: three complementary ways, which together beat each of them.

Nothing is downloaded and nothing is trained beforehand: word weights come from the venue's own texts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from matching.profiles.text import tokens
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, TextModel

__all__ = ["LexicalVectorizer"]

log = logging.getLogger(__name__)

MU = 100.0  # words of smoothing in the language model: about the length of an abstract's content words
BEST_DOCUMENTS = 5.0  # of a reviewer that count in the language model
TOPICS = 400  # dimensions of the latent space; 400 and 800 score alike, 200 worse
TOPIC_SAMPLE = 10_000  # texts the latent space is learnt from at most, which bounds time and memory
TOPIC_WORDS = 20_000  # words it is learnt from at most, the most common ones, for the same reason
TEMPERATURE = 0.2  # of the soft maximum over a reviewer's documents in the latent space
OUTSIDE = 1e-4  # length left of a unit vector, projected, below which rounding prevails (axes are float32)
FEWEST_TOPICS = 2  # below it the latent space says no more than the words do


class LexicalVectorizer:
    """Three ways of comparing, whose standardised scores are added.

    words
        Square root of the term frequency times idf, unit length, cosine, mean over the documents.
    topics
        (1 + ln tf) times idf, projected to at most 400 latent dimensions (truncated singular value
        decomposition, randomised with a fixed seed), unit length, cosine, soft maximum over the documents.
        Left out for fewer than three texts or words.
    language
        How much likelier the submission's words are under a document's smoothed language model (Dirichlet,
        mu = 100) than under the venue's, a word; mean of the five best documents.

    Notes
    -----
    idf = ln((1 + n) / (1 + df)) + 1 over the distinct texts of the venue, documents and submissions
    together. They are sorted first, so their order changes nothing. Time is linear in the number of words
    plus one truncated decomposition; memory is two to three sparse matrices of documents x words.

    References
    ----------
    Zhai and Lafferty, "A study of smoothing methods for language models applied to information retrieval",
    ACM TOIS 22(2), 2004. Deerwester et al., "Indexing by latent semantic analysis", JASIS 41(6), 1990.
    """

    def fit(self, documents: Sequence[str], submissions: Sequence[str]) -> TextModel:
        """See `Vectorizer.fit`."""
        # A text is its words, sorted: copies that differ in commas or capitals are one text.
        bags = {text: " ".join(sorted(tokens(text))) for text in {*documents, *submissions}}
        distinct = sorted(set(bags.values()))
        counts = _count(distinct)
        where = {bag: row for row, bag in enumerate(distinct)}
        of_documents = np.fromiter((where[bags[text]] for text in documents), np.int64, len(documents))
        of_submissions = np.fromiter((where[bags[text]] for text in submissions), np.int64, len(submissions))
        lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        known = lengths > 0
        known_submissions, known_documents = known[of_submissions], known[of_documents]
        if not known_submissions.any() or not known_documents.any():
            log.info("no words to compare: %d texts, %d words", len(distinct), counts.shape[1])
            return TextModel((), known_submissions, known_documents)
        comparisons = [_words(counts, of_submissions, of_documents)]
        topics = _topics(counts, known, of_submissions, of_documents)
        if topics is not None:
            comparisons.append(topics)
        comparisons.append(_language(counts, lengths, of_submissions, of_documents))
        return TextModel(tuple(comparisons), known_submissions, known_documents)


def _count(bags: Sequence[str]) -> sparse.csr_array:
    """Occurrences of space-separated words, float64 of shape (n_bags, n_words), words in sorted order."""
    columns: dict[str, int] = {}
    found: list[int] = []
    ends = [0]
    for bag in bags:
        found.extend(columns.setdefault(word, len(columns)) for word in bag.split())
        ends.append(len(found))
    rank = np.empty(len(columns), dtype=np.int64)
    rank[[columns[word] for word in sorted(columns)]] = np.arange(len(columns))
    indices = rank[np.asarray(found, dtype=np.int64)] if found else np.empty(0, dtype=np.int64)
    counts = sparse.csr_array(
        (np.ones(len(found)), indices, np.asarray(ends, dtype=np.int64)), shape=(len(bags), len(columns))
    )
    counts.sum_duplicates()  # sorts as well
    return counts


def _idf(counts: sparse.csr_array) -> FloatArray:
    n_texts = int((np.diff(counts.indptr) > 0).sum())
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    weights: FloatArray = np.log((1.0 + n_texts) / (1.0 + frequency)) + 1.0
    return weights


def _weighted(counts: sparse.csr_array, frequencies: FloatArray) -> sparse.csr_array:
    """`frequencies` in place of the counts, times idf, rows of unit length (empty rows stay empty)."""
    vectors = counts.copy()
    vectors.data = frequencies * _idf(counts)[counts.indices]
    norms = np.sqrt(_row_sums(vectors, vectors.data**2))
    vectors.data /= np.repeat(np.where(norms > 0, norms, 1.0), np.diff(vectors.indptr))
    return vectors


def _row_sums(matrix: sparse.csr_array, data: FloatArray) -> FloatArray:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    sums: FloatArray = np.bincount(rows, weights=data, minlength=matrix.shape[0]).astype(np.float64, copy=False)
    return sums


def _words(counts: sparse.csr_array, of_submissions: IntArray, of_documents: IntArray) -> Comparison:
    vectors = _weighted(counts, np.sqrt(counts.data))
    return Comparison("words", vectors[of_submissions], vectors[of_documents], pooling="mean", centre=0.5)


def _topics(
    counts: sparse.csr_array, known: Any, of_submissions: IntArray, of_documents: IntArray
) -> Comparison | None:
    from sklearn.utils.extmath import randomized_svd

    vectors = _weighted(counts, 1.0 + np.log(counts.data))
    sample = np.flatnonzero(known)
    if sample.size > TOPIC_SAMPLE:  # evenly through the sorted texts
        sample = sample[np.linspace(0, sample.size - 1, TOPIC_SAMPLE).astype(np.int64)]
    common = np.arange(counts.shape[1])
    if common.size > TOPIC_WORDS:  # the rarest go: in a large vocabulary most words are in one text only
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        common = np.sort(np.argsort(-frequency, kind="stable")[:TOPIC_WORDS])
        vectors = vectors[:, common]
    # single precision halves the time; the axes are only a choice of directions, all else stays double
    part = vectors[sample].astype(np.float32)
    dimensions = min(TOPICS, part.shape[0] - 1, part.shape[1] - 1)
    if dimensions < FEWEST_TOPICS:
        return None
    _, _, axes = randomized_svd(part, n_components=dimensions, n_iter=4, random_state=0)
    latent = np.asarray(vectors @ axes.T.astype(np.float64))
    norms = np.linalg.norm(latent, axis=1)
    # what lies outside the latent space has no direction in it, only rounding errors
    latent[norms <= OUTSIDE] = 0.0
    latent /= np.where(norms > OUTSIDE, norms, 1.0)[:, None]
    return Comparison(
        "topics", latent[of_submissions], latent[of_documents], pooling="lse", amount=TEMPERATURE, centre=0.5
    )


def _language(
    counts: sparse.csr_array, lengths: FloatArray, of_submissions: IntArray, of_documents: IntArray
) -> Comparison:
    probability = np.bincount(counts.indices, weights=counts.data, minlength=counts.shape[1]) / lengths.sum()
    gains = counts.copy()
    gains.data = np.log1p(counts.data / (MU * probability[counts.indices]))
    shares = counts.copy()
    shares.data = counts.data / np.repeat(np.where(lengths > 0, lengths, 1.0), np.diff(counts.indptr))
    return Comparison(
        "language",
        shares[of_submissions],
        gains[of_documents],
        offset=np.log(MU / (lengths[of_documents] + MU)),
        pooling="top",
        amount=BEST_DOCUMENTS,
    )
