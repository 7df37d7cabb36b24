"""Texts as vectors that can be compared; `lexical` needs nothing but the venue's own texts."""

from matching.vectors.base import Comparison, Group, TextModel, Vectorizer
from matching.vectors.encoder import EncoderVectorizer
from matching.vectors.hybrid import HybridVectorizer
from matching.vectors.lexical import LexicalVectorizer

__all__ = [
    "Comparison",
    "EncoderVectorizer",
    "Group",
    "HybridVectorizer",
    "LexicalVectorizer",
    "TextModel",
    "Vectorizer",
]
