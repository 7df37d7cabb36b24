"""Texts compared by their words: three complementary ways, which together beat each of them.

Nothing is downloaded and nothing is trained beforehand: word weights come from the venue's own texts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, Encoded, Group, TextModel
from matching.vectors.counts import Counts, count_words, counted
from matching.vectors.threads import one_blas_thread

__all__ = ["LexicalVectorizer"]

log = logging.getLogger(__name__)

MU = 100.0  # words of smoothing in the language model: about the length of an abstract's content words
TOPICS = 400  # dimensions of the latent space; 400 and 800 score alike, 100 to 200 a little worse
TOPICS_OF_MANY = 200  # in a large venue: half the time, for 0.002 of the loss on the development half
MANY = 50_000  # texts above which a venue is large: fewer topics, and vectors are kept in single precision
TOPIC_SAMPLE = 10_000  # texts the latent space is learnt from at most, which bounds time and memory
TOPIC_WORDS = 20_000  # words it is learnt from at most, the most common ones, for the same reason
TEMPERATURE = 0.2  # of the soft maximum over a reviewer's documents, in the latent space and the language model
CENTRE = 0.5  # share of a submission's mean over the reviewers that is subtracted; the language model has its own zero
OUTSIDE = 1e-7  # length left of a unit vector, projected, below which rounding prevails
FEWEST_TOPICS = 2  # below it the latent space says no more than the words do
AT_ONCE = 1 << 13  # texts made into vectors at once, which bounds memory


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
        mu = 100) than under the venue's, a word; soft maximum over the documents.

    Parameters
    ----------
    progress : callable or None
        Called with the finished share, [0, 1], now and then; what it raises stops the run.

    Notes
    -----
    idf = ln((1 + n) / (1 + df)) + 1 over the distinct texts of the venue, documents and submissions together. Above
    50,000 of them there are 200 topics, and vectors are float32. Time is linear in the number of words plus one
    truncated decomposition; memory is three sparse matrices of documents x words. Neither the order of the texts nor
    the number of threads changes a bit of the result.

    Texts that come later are taken as the model stands: weights, topics and frequencies stay; a word nobody used
    before matches nothing, but counts in the length of the text that has it.

    References
    ----------
    Zhai and Lafferty, "A study of smoothing methods for language models applied to information retrieval",
    ACM TOIS 22(2), 2004. Deerwester et al., "Indexing by latent semantic analysis", JASIS 41(6), 1990.
    """

    def __init__(self, *, progress: Callable[[float], None] | None = None) -> None:
        self._progress = progress

    def fit(self, documents: Sequence[str], submissions: Sequence[str]) -> TextModel:
        """See `Vectorizer.fit`."""
        counts = count_words([*documents, *submissions], self._progress)
        of_documents, of_submissions = counts.rows_of(documents), counts.rows_of(submissions)
        known = np.diff(counts.matrix.indptr) > 0
        known_submissions, known_documents = known[of_submissions], known[of_documents]
        if not known_submissions.any() or not known_documents.any():
            log.info("no words to compare: %d texts, %d words", *counts.matrix.shape)
            return TextModel((Group("lexical", (), known_submissions, known_documents),))
        tick = None if self._progress is None else partial(self._progress, 1.0)
        with one_blas_thread():
            space = _learn(counts)
            own, theirs = counts.matrix[of_submissions], counts.matrix[of_documents]
            left = space.encoded(own, _lengths(own), False, tick)
            right = space.encoded(theirs, _lengths(theirs), True, tick)
        comparisons = []
        for name, ours, those, offset in zip(space.names, left.vectors, right.vectors, right.offsets):
            if name == "words":
                comparisons.append(Comparison(name, ours, those, offset, "mean", centre=CENTRE))
            else:
                centre = CENTRE if name == "topics" else 0.0
                comparisons.append(Comparison(name, ours, those, offset, "lse", TEMPERATURE, centre))
        if self._progress is not None:
            self._progress(1.0)
        return TextModel((Group("lexical", tuple(comparisons), known_submissions, known_documents, space=space),))

    def describe(self) -> Mapping[str, Any]:
        """See `Vectorizer.describe`."""
        return {"scorer": "lexical"}


@dataclass(frozen=True, eq=False)
class _LexicalSpace:
    """What the texts of a venue say about words.

    Attributes
    ----------
    columns : mapping of str to int
    idf, probability : ndarray of shape (n_words,), float64
        Weight of a word, and its share of all words.
    rare : float
        Weight of a word that no text has.
    common : ndarray of shape (n_common,), int64
        Words that the latent space knows.
    axes : ndarray of shape (n_common, n_topics), float64, or None
    dtype : dtype
        Of the vectors.
    """

    columns: Mapping[str, int]
    idf: FloatArray
    probability: FloatArray
    rare: float
    common: IntArray
    axes: FloatArray | None
    dtype: DTypeLike

    @property
    def names(self) -> tuple[str, ...]:
        """Of the comparisons, in order."""
        return ("words", "language") if self.axes is None else ("words", "topics", "language")

    def documents(self, texts: Sequence[str]) -> Encoded:
        """See `Space`."""
        with one_blas_thread():
            return self.encoded(*counted(texts, self.columns), True)

    def submissions(self, texts: Sequence[str]) -> Encoded:
        """See `Space`."""
        with one_blas_thread():
            return self.encoded(*counted(texts, self.columns), False)

    def encoded(
        self,
        counts: sparse.csr_array,
        lengths: FloatArray,
        as_documents: bool,
        tick: Callable[[], None] | None = None,
    ) -> Encoded:
        """Counts of words, and the number of all words, as vectors; a part of the texts at a time, to save memory."""
        words, language = (np.empty(counts.nnz, dtype=self.dtype) for _ in range(2))
        latent = None if self.axes is None else np.empty((counts.shape[0], self.axes.shape[1]), dtype=self.dtype)
        for start in range(0, counts.shape[0], AT_ONCE):
            if tick is not None:
                tick()
            texts = slice(start, min(start + AT_ONCE, counts.shape[0]))
            part, size = counts[texts], lengths[texts]
            stored = slice(counts.indptr[texts.start], counts.indptr[texts.stop])
            words[stored] = self._words(part, size)
            if as_documents:
                language[stored] = np.log1p(part.data / (MU * self.probability[part.indices]))
            else:
                language[stored] = part.data / _repeated(np.maximum(size, 1.0), part)
            if latent is not None and self.axes is not None:
                latent[texts] = self._topics(part, self.axes)
        vectors = {"words": _alike(counts, words), "topics": latent, "language": _alike(counts, language)}
        offset = np.log(MU / (lengths + MU)) if as_documents else None
        return Encoded(
            tuple(vectors[name] for name in self.names),
            tuple(offset if name == "language" else None for name in self.names),
            np.diff(counts.indptr) > 0,
        )

    def _words(self, counts: sparse.csr_array, lengths: FloatArray) -> FloatArray:
        data: FloatArray = np.sqrt(counts.data, dtype=np.float64) * self.idf[counts.indices]
        unknown = lengths - _lengths(counts)
        norms = np.sqrt(_row_sums(counts, data**2) + unknown * self.rare**2)
        data /= _repeated(np.where(norms > 0, norms, 1.0), counts)
        return data

    def _topics(self, counts: sparse.csr_array, axes: FloatArray) -> FloatArray:
        latent: FloatArray = np.asarray(_taken(_topic_vectors(counts, self.idf), self.common) @ axes)
        norms = np.linalg.norm(latent, axis=1)
        # what lies outside the latent space has no direction in it, only rounding errors
        latent[norms <= OUTSIDE] = 0.0
        latent /= np.where(norms > OUTSIDE, norms, 1.0)[:, None]
        return latent


def _alike(counts: sparse.csr_array, data: NDArray[np.floating]) -> sparse.csr_array:
    """Other numbers in the same places; the places are shared."""
    out = sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    out.has_canonical_format = True
    return out


def _learn(counts: Counts) -> _LexicalSpace:
    matrix = counts.matrix
    n_texts = int((np.diff(matrix.indptr) > 0).sum())
    frequency = np.bincount(matrix.indices, minlength=matrix.shape[1])
    idf = np.log((1.0 + n_texts) / (1.0 + frequency)) + 1.0
    occurrences = np.bincount(matrix.indices, weights=matrix.data, minlength=matrix.shape[1])
    many = n_texts > MANY
    common = np.arange(matrix.shape[1])
    if common.size > TOPIC_WORDS:  # the rarest go: in a large vocabulary most words are in one text only
        common = np.sort(np.argsort(-frequency, kind="stable")[:TOPIC_WORDS])
    return _LexicalSpace(
        counts.columns,
        idf,
        occurrences / occurrences.sum(),
        float(np.log((1.0 + n_texts) / 2.0) + 1.0),
        common,
        _axes(matrix, idf, common, TOPICS_OF_MANY if many else TOPICS),
        np.float32 if many else np.float64,
    )


def _axes(counts: sparse.csr_array, idf: FloatArray, common: IntArray, most: int) -> FloatArray | None:
    """Directions of the latent space, (n_common, n_topics); None where there would be too few of them."""
    from sklearn.utils.extmath import randomized_svd

    sample = np.flatnonzero(np.diff(counts.indptr))
    if sample.size > TOPIC_SAMPLE:  # rows are in random order
        sample = sample[np.linspace(0, sample.size - 1, TOPIC_SAMPLE).astype(np.int64)]
    part = _taken(_topic_vectors(counts[sample], idf), common)
    dimensions = min(most, part.shape[0] - 1, part.shape[1] - 1)
    if dimensions < FEWEST_TOPICS:
        return None
    _, _, axes = randomized_svd(part, n_components=dimensions, n_iter=4, random_state=0)
    return np.ascontiguousarray(axes.T)


def _topic_vectors(counts: sparse.csr_array, idf: FloatArray) -> sparse.csr_array:
    """(1 + ln tf) times idf, rows of unit length (empty rows stay empty)."""
    data = (1.0 + np.log(counts.data, dtype=np.float64)) * idf[counts.indices]
    norms = np.sqrt(_row_sums(counts, data**2))
    data /= _repeated(np.where(norms > 0, norms, 1.0), counts)
    return sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)


def _taken(matrix: sparse.csr_array, columns: IntArray) -> sparse.csr_array:
    return matrix if columns.size == matrix.shape[1] else matrix[:, columns]


def _lengths(counts: sparse.csr_array) -> FloatArray:
    return _row_sums(counts, counts.data)


def _repeated(of_rows: FloatArray, matrix: sparse.csr_array) -> FloatArray:
    return np.repeat(of_rows, np.diff(matrix.indptr))


def _row_sums(matrix: sparse.csr_array, data: NDArray[np.floating]) -> FloatArray:
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    sums: FloatArray = np.bincount(rows, weights=data, minlength=matrix.shape[0]).astype(np.float64, copy=False)
    return sums
