"""Text affinity: how well each reviewer's documents fit each submission, in [0, 1].

The comparisons of a vectoriser are pooled to reviewers, standardised, added, standardised again and mapped
to [0, 1] by an increasing function, so the order of the sum is the order of the affinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.errors import InvalidParamsError, Issue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.text import Document, publication_year, reviewer_documents, submission_text
from matching.scores.pooling import pool_lse, pool_top
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, TextModel, Vectorizer, transposed
from matching.vectors.lexical import LexicalVectorizer

__all__ = ["SCORERS", "ReviewerTexts", "named_scorer", "reviewer_texts", "text_affinity"]

SCORERS: dict[str, type[Vectorizer]] = {"lexical": LexicalVectorizer}
"""Names of the text scorers that are installed."""

BLOCK_SIMILARITIES = 1 << 21  # submission x document numbers a block: 16 MB in float64, a few of them at a time
LIKELY = 1.0  # standardised score that becomes an affinity of one half
SPREAD = 1.25  # standardised score from one half to three quarters; expert pairs lie at 3 to 12
CONSTANT = 1e-6  # spread relative to the largest value below which a comparison says nothing


@dataclass(frozen=True, eq=False)
class ReviewerTexts:
    """The documents of all reviewers, one reviewer after the other.

    Attributes
    ----------
    documents : tuple of Document, length n_documents
        Within a reviewer sorted by text, so the order of a profile changes nothing.
    weights : ndarray of shape (n_documents,), float64
        Document weight times recency, [0, inf), at least one above 0 for each reviewer; only ratios within
        a reviewer matter.
    indptr : ndarray of shape (n_reviewers + 1,), int64
        Documents of reviewer j: ``indptr[j]:indptr[j + 1]``.
    """

    documents: tuple[Document, ...]
    weights: FloatArray
    indptr: IntArray

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether a reviewer has any document, bool of shape (n_reviewers,)."""
        return np.diff(self.indptr) > 0


def named_scorer(name: str) -> Vectorizer:
    """The text scorer of that name; an unknown one raises InvalidParamsError and lists the known."""
    if name not in SCORERS:
        reason = f"there is no text scorer {name!r}; known: {', '.join(sorted(SCORERS))}"
        raise InvalidParamsError(issues=[Issue(reason, "unknown-scorer", "scorer", value=name, source="params")])
    return SCORERS[name]()


def reviewer_texts(
    reviewers: Sequence[Reviewer], half_life: float | None = None, this_year: int | None = None
) -> ReviewerTexts:
    """Documents and weights of reviewers.

    Parameters
    ----------
    reviewers : sequence of Reviewer
    half_life : float or None
        Years after which a publication counts half, (0, inf); None lets all count alike.
    this_year : int or None
        Last year to believe; None for the calendar's.

    Notes
    -----
    Recency is ``0.5 ** (age / half_life)``. Only ratios within a reviewer matter, so age is counted from the
    reviewer's newest publication, which keeps the weights of an old profile from vanishing. A missing or
    impossible year is neutral: the mean recency of the reviewer's dated publications, 1 if there are none.
    """
    documents: list[Document] = []
    weights: list[float] = []
    indptr = np.zeros(len(reviewers) + 1, dtype=np.int64)
    for column, reviewer in enumerate(reviewers):
        own = sorted(reviewer_documents(reviewer, this_year), key=lambda document: (document.text, document.weight))
        documents.extend(own)
        weights.extend(_recency(own, half_life, this_year))
        indptr[column + 1] = len(documents)
    return ReviewerTexts(tuple(documents), np.asarray(weights, dtype=np.float64), indptr)


def _recency(documents: Sequence[Document], half_life: float | None, this_year: int | None) -> list[float]:
    if half_life is None:
        return [document.weight for document in documents]
    years = [
        None if document.publication is None else publication_year(document.publication, this_year)
        for document in documents
    ]
    dated = [year for year in years if year is not None]
    newest = max(dated, default=0)
    neutral = sum(0.5 ** ((newest - year) / half_life) for year in dated) / len(dated) if dated else 1.0
    return [
        document.weight * (neutral if year is None else 0.5 ** ((newest - year) / half_life))
        for document, year in zip(documents, years, strict=True)
    ]


def text_affinity(
    submissions: Sequence[Submission],
    reviewers: Sequence[Reviewer],
    *,
    vectorizer: Vectorizer | None = None,
    half_life: float | None = None,
    this_year: int | None = None,
) -> NDArray[np.float32]:
    """Text affinity of every pair.

    Parameters
    ----------
    submissions, reviewers : sequence of Submission, of Reviewer
    vectorizer : Vectorizer or None
        None for the lexical one.
    half_life, this_year
        See `reviewer_texts`.

    Returns
    -------
    ndarray of shape (n_submissions, n_reviewers), float32
        Range [0, 1], no unit, higher is better. NaN where the submission or the reviewer has no text, or
        none in which the vectoriser finds anything.

    Notes
    -----
    With R_k the pooled similarities of comparison k, less its share of each submission's mean over the
    reviewers, and z(R) = (R - mean) / sd over all known pairs: ``z = z(sum of z(R_k))`` and
    ``affinity = 1/2 + arctan((z - 1) / 1.25) / pi``. An average pair gets 0.29, one that stands out by two,
    four, eight or sixteen standard deviations 0.71, 0.87, 0.94 or 0.97: experts lie far out, and a logistic
    curve would make them equal. Where nothing tells pairs apart, all known ones get 0.5.

    Time is linear in submissions x documents. Memory: 8 bytes a pair while it runs, 4 bytes a pair after.
    """
    texts = reviewer_texts(reviewers, half_life, this_year)
    wanted = [submission_text(submission) for submission in submissions]
    model = (vectorizer or LexicalVectorizer()).fit([document.text for document in texts.documents], wanted)
    rows = np.flatnonzero(model.known_submissions)
    usable = _known_only(texts, model)
    columns = np.flatnonzero(np.diff(usable.indptr) > 0)
    affinity = np.full((len(submissions), len(reviewers)), np.nan, dtype=np.float32)
    if not rows.size or not columns.size or not model.comparisons:
        return affinity
    scores = _standardised(model, rows, usable.members, usable.weights, _compact(usable.indptr))
    if scores.shape == affinity.shape:
        return scores
    affinity[np.ix_(rows, columns)] = scores
    return affinity


@dataclass(frozen=True, eq=False)
class _Usable:
    members: IntArray
    weights: FloatArray
    indptr: IntArray


def _known_only(texts: ReviewerTexts, model: TextModel) -> _Usable:
    """Documents in which something was found, still sorted by reviewer."""
    members = np.flatnonzero(model.known_documents)
    counts = np.concatenate([[0], np.cumsum(model.known_documents)])
    return _Usable(members, texts.weights[members], counts[texts.indptr].astype(np.int64))


def _compact(indptr: IntArray) -> IntArray:
    """The segments that are not empty."""
    return np.concatenate([indptr[:1], indptr[1:][np.diff(indptr) > 0]])


def _standardised(
    model: TextModel, rows: IntArray, members: IntArray, weights: FloatArray, indptr: IntArray
) -> NDArray[np.float32]:
    total = np.zeros((rows.size, indptr.size - 1), dtype=np.float32)
    part = np.empty_like(total)
    for comparison in model.comparisons:
        _pool(comparison, rows, members, weights, indptr, part)
        _standardise(part)
        total += part
    if not _standardise(total):
        total[:] = 0.5
        return total
    total -= np.float32(LIKELY)
    total /= np.float32(SPREAD)
    np.arctan(total, out=total)
    total /= np.float32(np.pi)
    total += np.float32(0.5)
    return total


def _pool(
    comparison: Comparison,
    rows: IntArray,
    members: IntArray,
    weights: FloatArray,
    indptr: IntArray,
    out: NDArray[np.float32],
) -> None:
    """Pooled and centred similarities of known submissions and known documents, into `out`."""
    left, right, offset = comparison.submissions[rows], comparison.documents[members], comparison.offset
    offset = None if offset is None else offset[members]
    if comparison.pooling == "mean":
        # the mean of inner products is the inner product with the mean: one vector a reviewer is enough
        owners = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        shares = weights / np.bincount(owners, weights=weights)[owners]
        mean = sparse.csr_array((shares, np.arange(members.size), indptr), shape=(indptr.size - 1, members.size))
        right = mean @ right
        offset = None if offset is None else mean @ offset
    pooled = Comparison(comparison.name, left, right, offset)
    right_transposed = transposed(right)
    step = max(1, BLOCK_SIMILARITIES // right.shape[0])
    for start in range(0, rows.size, step):
        block = slice(start, min(start + step, rows.size))
        similarities = pooled.block(block, right_transposed)
        if comparison.pooling == "lse":
            similarities = pool_lse(similarities, indptr, weights, comparison.amount)
        elif comparison.pooling == "top":
            similarities = pool_top(similarities, indptr, weights, comparison.amount)
        if comparison.centre:
            similarities -= comparison.centre * similarities.mean(axis=1, keepdims=True)
        out[block] = similarities


def _standardise(matrix: NDArray[np.float32]) -> bool:
    """Mean 0 and standard deviation 1 in place; all 0, and False, where all entries are equal."""
    mean = matrix.mean(dtype=np.float64)
    reach = max(abs(float(matrix.min())), abs(float(matrix.max())))
    matrix -= np.float32(mean)
    deviation = float(np.sqrt(np.mean(matrix * matrix, dtype=np.float64)))
    if deviation <= CONSTANT * reach:
        matrix[:] = 0.0
        return False
    matrix /= np.float32(deviation)
    return True
