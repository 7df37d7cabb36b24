"""What texts mean and which words they share, together: each is right where the other is blind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matching.vectors.base import TextModel, Vectorizer
from matching.vectors.lexical import LexicalVectorizer

__all__ = ["MEANING", "HybridVectorizer"]

MEANING = 0.7  # weight of the encoder; flat from 0.6 to 0.8


class HybridVectorizer:
    """``share * z(encoder) + (1 - share) * z(lexical)``.

    Parameters
    ----------
    encoder : Vectorizer
    lexical : Vectorizer or None
        None for `LexicalVectorizer`.
    share : float
        Weight of the encoder, (0, 1).
    """

    def __init__(self, encoder: Vectorizer, lexical: Vectorizer | None = None, *, share: float = MEANING) -> None:
        self._encoder, self._lexical, self._share = encoder, lexical or LexicalVectorizer(), share

    def fit(self, documents: Sequence[str], submissions: Sequence[str]) -> TextModel:
        """See `Vectorizer.fit`; raises as the encoder does."""
        meaning = self._encoder.fit(documents, submissions)  # first, since it is the one that may fail
        words = self._lexical.fit(documents, submissions)
        return TextModel(
            tuple(
                replace(group, weight=group.weight * weight)
                for model, weight in ((words, 1.0 - self._share), (meaning, self._share))
                for group in model.groups
            )
        )

    def describe(self) -> Mapping[str, Any]:
        """See `Vectorizer.describe`."""
        of_encoder = dict(self._encoder.describe())
        settings = {**of_encoder.get("settings", {}), "encoder_share": self._share}
        return {**of_encoder, "scorer": "hybrid", "settings": settings}
