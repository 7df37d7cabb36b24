"""The text scorers by name, and text affinity as a matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidParamsError, Issue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.resources import Resources
from matching.scores.base import blocks
from matching.scores.documents import ReviewerTexts, reviewer_texts
from matching.scores.textscores import TextScores
from matching.vectors.base import Vectorizer
from matching.vectors.encoder import EncoderVectorizer
from matching.vectors.hybrid import HybridVectorizer
from matching.vectors.lexical import LexicalVectorizer
from matching.vectors.model import has_packaged_weights

__all__ = ["AUTO", "SCORERS", "ReviewerTexts", "known_scorer", "named_scorer", "reviewer_texts", "text_affinity"]

Share = Callable[[float], None]
"""Told the finished share of a scorer's slow part, [0, 1]."""


def _encoder(resources: Resources, progress: Share | None) -> EncoderVectorizer:
    return EncoderVectorizer(resources.encoder_model, resources.encoder_cache, progress=progress)


ENCODING = 0.95
"""Share of a hybrid's time that its encoder takes, roughly."""


def _part(progress: Share | None, low: float, high: float) -> Share | None:
    """What tells a share of the whole when it is told one of a part."""
    return None if progress is None else lambda share: progress(low + (high - low) * share)


SCORERS: Mapping[str, Callable[[Resources, Share | None], Vectorizer]] = {
    "lexical": lambda resources, progress: LexicalVectorizer(progress=progress),
    "encoder": _encoder,
    "hybrid": lambda resources, progress: HybridVectorizer(
        _encoder(resources, _part(progress, 0.0, ENCODING)), LexicalVectorizer(progress=_part(progress, ENCODING, 1.0))
    ),
}
"""Name of a text scorer -> what makes one."""

AUTO = "auto"
"""The name that stands for "hybrid" where an encoder is to be had, and for "lexical" elsewhere."""


def known_scorer(name: str, resources: Resources | None = None) -> str:
    """The name of the scorer that `name` stands for.

    Parameters
    ----------
    name : str
        A key of SCORERS, or AUTO.
    resources : Resources, optional
        With a model folder, AUTO is "hybrid" even where the extra is not installed.

    Raises
    ------
    InvalidParamsError
        ``invalid-params``: another name; the known ones are listed.
    """
    if name == AUTO:
        folder = None if resources is None else resources.encoder_model
        return "hybrid" if folder is not None or has_packaged_weights() else "lexical"
    if name not in SCORERS:
        reason = f"there is no text scorer {name!r}; known: {', '.join(sorted([AUTO, *SCORERS]))}"
        raise InvalidParamsError(issues=[Issue(reason, "unknown-scorer", "scorer", value=name, source="params")])
    return name


def named_scorer(name: str, resources: Resources | None = None, progress: Share | None = None) -> Vectorizer:
    """The text scorer of that name; raises as `known_scorer` does.

    Parameters
    ----------
    name, resources
        See `known_scorer`.
    progress : callable, optional
        Called now and then by scorers that take their time.
    """
    resources = resources or Resources()
    return SCORERS[known_scorer(name, resources)](resources, progress)


def text_affinity(
    submissions: Sequence[Submission],
    reviewers: Sequence[Reviewer],
    *,
    vectorizer: Vectorizer | None = None,
    half_life: float | None = None,
    this_year: int | None = None,
) -> NDArray[np.float32]:
    """Text affinity of every pair as a matrix, for venues where it fits into memory; see `TextScores` for all others.

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
    """
    scores = TextScores.fit(submissions, reviewers, vectorizer=vectorizer, half_life=half_life, this_year=this_year)
    affinity = np.empty(scores.shape, dtype=np.float32)
    for rows, cols in blocks(scores.shape):
        affinity[rows, cols] = scores.block(rows, cols)
    return affinity
