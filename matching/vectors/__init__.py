"""Texts as vectors that can be compared; `lexical` needs nothing but the venue's own texts."""

from matching.vectors.base import Comparison, TextModel, Vectorizer
from matching.vectors.lexical import LexicalVectorizer

__all__ = ["Comparison", "LexicalVectorizer", "TextModel", "Vectorizer"]
