"""What a vectoriser makes of texts: comparisons, each an inner product of submissions and documents.

A document is one text that speaks for a reviewer (a publication). Every way of comparing texts used here
has the form ``submission . document + offset of the document``: a cosine, a language model's log ratio, the
embedding of a sentence encoder. So one class holds them all, and everything after it (pooling documents to
reviewers, standardising, adding up) is written once, in `matching.scores.text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.types import FloatArray

__all__ = ["Comparison", "Encoded", "Group", "Space", "TextModel", "Vectorizer", "transposed"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """One way in which every submission compares with every document.

    Attributes
    ----------
    name : str
    submissions : ndarray or csr_array of shape (n_submissions, dim), float32 or float64
    documents : ndarray or csr_array of shape (n_documents, dim), float32 or float64
    offset : ndarray of shape (n_documents,), float64, or None
        Added to every similarity with the document.
    pooling : {"mean", "lse", "top"}
        How the similarities with one reviewer's documents become one number; see `matching.scores.pooling`.
    amount : float
        Temperature of "lse", number of documents of "top", unused for "mean".
    centre : float
        Share of a submission's mean over all reviewers that is subtracted, [0, 1].
    """

    name: str
    submissions: Any
    documents: Any
    offset: FloatArray | None = None
    pooling: Literal["mean", "lse", "top"] = "mean"
    amount: float = 0.0
    centre: float = 0.0

    def block(self, rows: slice, documents: Any = None) -> FloatArray:
        """Similarities of a block of submissions with all documents, float64 of shape (n_rows, n_documents).

        Parameters
        ----------
        rows : slice
        documents : csc_array or ndarray of shape (dim, n_documents), optional
            ``self.documents`` transposed, for callers that work through many blocks.
        """
        right = transposed(self.documents) if documents is None else documents
        product = self.submissions[rows] @ right
        dense: FloatArray = (product.toarray() if sparse.issparse(product) else np.asarray(product)).astype(np.float64)
        if self.offset is not None:
            dense += self.offset
        return dense


def transposed(vectors: Any) -> Any:
    """The transpose in the form in which products by blocks are fast."""
    return sparse.csr_array(vectors.T) if sparse.issparse(vectors) else vectors.T


@dataclass(frozen=True, eq=False)
class Encoded:
    """Texts as a group's comparisons see them.

    Attributes
    ----------
    vectors : tuple of ndarray or csr_array of shape (n_texts, dim), one for each comparison
    offsets : tuple of ndarray of shape (n_texts,), float64, or None, one for each comparison
        All None for submissions.
    known : ndarray of bool, shape (n_texts,)
        False for a text in which nothing is found to go by.
    """

    vectors: tuple[Any, ...]
    offsets: tuple[FloatArray | None, ...]
    known: NDArray[np.bool_]


class Space(Protocol):
    """What was learnt from a venue's texts, for texts that come later. It learns nothing from them."""

    def documents(self, texts: Sequence[str]) -> Encoded:
        """Clean texts as documents."""
        ...

    def submissions(self, texts: Sequence[str]) -> Encoded:
        """Clean texts as submissions."""
        ...


@dataclass(frozen=True, eq=False)
class Group:
    """Comparisons that make one score: their standardised scores are added, and the sum is standardised.

    Attributes
    ----------
    name : str
    comparisons : tuple of Comparison
        Empty if nothing can be compared.
    known_submissions, known_documents : ndarray of bool, shape (n_submissions,) and (n_documents,)
        False for a text in which these comparisons find nothing to go by; of its pairs they say nothing, which is
        not 0 similarity.
    weight : float
        Of the group's standardised score beside other groups', (0, inf).
    space : Space or None
        For texts that come later; None if the vectoriser has to be fitted again.
    """

    name: str
    comparisons: tuple[Comparison, ...]
    known_submissions: NDArray[np.bool_]
    known_documents: NDArray[np.bool_]
    weight: float = 1.0
    space: Space | None = None


@dataclass(frozen=True, eq=False)
class TextModel:
    """Submissions and documents of one venue, ready to compare.

    Attributes
    ----------
    groups : tuple of Group
        At least one. Their standardised scores are added, each times its weight. A pair that a group says nothing
        of gets that group's mean; one that no group says anything of is unscored.
    """

    groups: tuple[Group, ...]

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of all groups."""
        return tuple(comparison for group in self.groups for comparison in group.comparisons)

    @property
    def known_submissions(self) -> NDArray[np.bool_]:
        """Whether some group finds something in a submission, bool of shape (n_submissions,)."""
        known: NDArray[np.bool_] = np.logical_or.reduce([group.known_submissions for group in self.groups])
        return known

    @property
    def known_documents(self) -> NDArray[np.bool_]:
        """Whether some group finds something in a document, bool of shape (n_documents,)."""
        known: NDArray[np.bool_] = np.logical_or.reduce([group.known_documents for group in self.groups])
        return known


class Vectorizer(Protocol):
    """A way to compare texts."""

    def fit(self, documents: Sequence[str], submissions: Sequence[str]) -> TextModel:
        """Learn from all texts of a venue (word weights and the like) and return how they compare.

        Parameters
        ----------
        documents, submissions : sequence of str
            Clean texts (`matching.profiles.text.clean_text`), "" where missing. Repeats are common:
            co-authors share publications. The order of either must change no similarity by more than 1e-12.

        Returns
        -------
        TextModel
            Rows in the order given. Never NaN, no exception for empty texts or an empty vocabulary.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """What a result depends on beside the texts, for the record: ``scorer``, and settings and weights if any.

        Strict JSON: text, numbers, mappings of them.
        """
        ...
