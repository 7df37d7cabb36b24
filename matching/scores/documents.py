"""Reviewers as weighted documents, one reviewer after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matching.profiles.reviewer import Reviewer
from matching.profiles.text import Document, publication_year, reviewer_documents
from matching.types import FloatArray, IntArray

__all__ = ["ReviewerTexts", "reviewer_texts"]

TICK_EVERY = 256  # reviewers, tens of milliseconds


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


def reviewer_texts(
    reviewers: Sequence[Reviewer],
    half_life: float | None = None,
    this_year: int | None = None,
    tick: Callable[[], None] | None = None,
) -> ReviewerTexts:
    """Documents and weights of reviewers.

    Parameters
    ----------
    reviewers : sequence of Reviewer
    half_life : float or None
        Years after which a publication counts half, (0, inf); None lets all count alike.
    this_year : int or None
        Last year to believe; None for the calendar's.
    tick : callable or None
        Called every few hundred reviewers; what it raises stops the work.

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
        if tick is not None and not column % TICK_EVERY:
            tick()
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
