"""Signals about pairs, and the affinity they add up to, as operators that never need the whole matrix."""

from matching.scores.affinity import affinity_of, build_affinity, signals_of
from matching.scores.areas import AreaScores
from matching.scores.base import DenseScores, ScoreOperator, SparseScores, VectorScores, as_operator
from matching.scores.bids import bid_scores, table_scores
from matching.scores.operator import AffinityOperator, Signal
from matching.scores.text import text_affinity

__all__ = [
    "AffinityOperator",
    "AreaScores",
    "DenseScores",
    "ScoreOperator",
    "Signal",
    "SparseScores",
    "VectorScores",
    "affinity_of",
    "as_operator",
    "bid_scores",
    "build_affinity",
    "signals_of",
    "table_scores",
    "text_affinity",
]
