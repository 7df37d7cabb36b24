"""Generated venues for measuring: seeded, of any size, with topics, conflicts and bids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.constraints.problem import AssignmentProblem
from matching.errors import InvalidParamsError, Issue
from matching.pairs import PairSet
from matching.scores.base import ScoreOperator, SparseScores, VectorScores
from matching.scores.operator import AffinityOperator, Signal
from matching.types import IntArray

__all__ = ["generated_problem", "refused"]

SPREAD = 1.2  # length of a text's own part beside its topic's: texts of a topic then have a cosine of about 0.4
SECOND = 0.5  # share of a second topic in each text
BID_WEIGHT = 0.1  # of a bid beside a cosine


def generated_problem(
    n_submissions: int,
    n_reviewers: int,
    *,
    dim: int = 256,
    demand: int = 3,
    load_max: int = 4,
    conflicts: float = 0.01,
    bids: float = 0.003,
    rng: int = 0,
) -> AssignmentProblem:
    """A venue whose texts mix two of about sqrt(n) topics; affinity is their cosine plus a weighted bid.

    Parameters
    ----------
    n_submissions, n_reviewers : int
        At least 1.
    dim : int
        Dimensions of the vectors, at least 1.
    demand, load_max : int
        Reviews each submission needs and most reviews of each reviewer, at least 0.
    conflicts, bids : float
        Shares of all pairs that are barred and that carry a bid in {-1, -0.5, 0.5, 1}, [0, 1]; drawn at random and
        apart, so a barred pair may carry a bid.
    rng : int
        Seed, at least 0; equal arguments give the equal venue.

    Returns
    -------
    AssignmentProblem
        Its scores are `VectorScores`, or with bids an `AffinityOperator` of the signals "text" and "bids"; no
        matrix. Unit float32 vectors, so cosines lie in [-1, 1].

    Raises
    ------
    InvalidParamsError
        A number outside its range, all of them.

    Notes
    -----
    Memory: 4 bytes a coordinate of the vectors, 4 a barred pair about 24 a bid; while pairs are drawn, 16 bytes each.
    """
    issues = refused(n_submissions, n_reviewers, dim, demand, load_max, conflicts, bids, rng)
    if issues:
        raise InvalidParamsError(issues=issues)
    random = np.random.default_rng(rng)
    n_topics = max(2, round(max(n_submissions, n_reviewers) ** 0.5))
    topics = random.standard_normal((n_topics, dim), dtype=np.float32)
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    popularity = 1.0 / np.arange(2, n_topics + 2)
    popularity /= popularity.sum()
    left = _texts(n_submissions, topics, popularity, random)
    right = _texts(n_reviewers, topics, popularity, random)
    shape = (n_submissions, n_reviewers)
    scores: ScoreOperator = VectorScores(left, right)
    wished = _some_pairs(shape, bids, random)
    if len(wished):
        value = random.choice(np.array([-1.0, -0.5, 0.5, 1.0]), size=len(wished), p=(0.2, 0.1, 0.3, 0.4))
        table = sparse.csr_array((value, (wished.rows(), wished.indices)), shape=shape)
        signals = (
            Signal("text", 1.0, scores, known=n_submissions * n_reviewers),
            Signal("bids", BID_WEIGHT, SparseScores(table, np.nan), default=0.0, known=len(wished)),
        )
        scores = AffinityOperator(shape, signals)
    barred = _some_pairs(shape, conflicts, random)
    return AssignmentProblem.of(scores, demand=demand, load_max=load_max, conflicts=barred)


def refused(
    n_submissions: int, n_reviewers: int, dim: int, demand: int, load_max: int, conflicts: float, bids: float, rng: int
) -> list[Issue]:
    """Every argument of `generated_problem` that is outside its range; empty where there is none."""
    counts = (
        ("submissions", n_submissions, 1), ("reviewers", n_reviewers, 1), ("dim", dim, 1), ("demand", demand, 0),
        ("load", load_max, 0), ("seed", rng, 0),
    )  # fmt: skip
    issues = [
        Issue(f"must be at least {least}, got {value}", "out-of-range", name, value=value, source="params")
        for name, value, least in counts
        if value < least
    ]
    issues += [
        Issue(f"must be a share between 0 and 1, got {value}", "out-of-range", name, value=value, source="params")
        for name, value in (("conflicts", conflicts), ("bids", bids))
        if not 0.0 <= value <= 1.0
    ]
    return issues


def _texts(
    count: int, topics: NDArray[np.float32], popularity: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float32]:
    """Unit vectors, each the sum of a topic, half of a second one and a part of its own."""
    first, second = random.choice(len(topics), size=(2, count), p=popularity)
    out = random.standard_normal((count, topics.shape[1]), dtype=np.float32)
    out *= np.float32(SPREAD / np.sqrt(topics.shape[1]))
    out += topics[first]
    out += np.float32(SECOND) * topics[second]
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    return out


def _some_pairs(shape: tuple[int, int], share: float, random: np.random.Generator) -> PairSet:
    """About `share` of all pairs, each as likely, row by row so that no large array of keys is sorted."""
    counts: IntArray = random.binomial(shape[1], share, size=shape[0])
    cols = [np.sort(random.choice(shape[1], size=count, replace=False)) for count in counts.tolist()]
    return PairSet.of_rows(cols, shape)
