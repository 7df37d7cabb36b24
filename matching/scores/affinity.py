"""From a resolved venue to its affinity: which signals there are, and what each weighs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matching.errors import InvalidParamsError, InvalidScoresError, InvalidVenueError, Issue
from matching.params import DEFAULT_WEIGHTS, Params
from matching.profiles.resolve import ResolvedVenue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.text import reviewer_documents, submission_text
from matching.scores.areas import AreaScores
from matching.scores.base import DenseScores, ScoreOperator, blocks
from matching.scores.bids import bid_scores, table_scores
from matching.scores.operator import AffinityOperator, Signal
from matching.scores.text import known_scorer, named_scorer
from matching.scores.textscores import TextScores
from matching.types import FloatArray, IntArray
from matching.vectors.base import Vectorizer

__all__ = ["BUILT_IN", "affinity_of", "build_affinity", "signals_of", "unscored_affinity"]

BUILT_IN = ("text", "areas", "bids")
"""Names of the built-in signals, in the order in which they are summed; imported tables follow by name."""

IMPORTED_WEIGHT = 1.0  # of a table that `weights` does not name

Triples = tuple[ArrayLike, ArrayLike, ArrayLike]
"""Submission rows, reviewer columns, values: equally long."""

Table = tuple[str, ArrayLike, ArrayLike, ArrayLike, float | None]
"""Name, submission rows, reviewer columns, values, default for pairs not listed."""


def build_affinity(
    shape: tuple[int, int],
    *,
    text: NDArray[np.floating] | TextScores | None = None,
    areas: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] | None = None,
    bids: Triples | None = None,
    scores: Iterable[Table] = (),
    weights: Mapping[str, float] = MappingProxyType({}),
    defaults: Mapping[str, float | None] = MappingProxyType({}),
    allow_unknown: bool = True,
    allow_zero: bool = True,
) -> AffinityOperator:
    """The affinity of a venue from plain arrays.

    Parameters
    ----------
    shape : tuple of int
        ``(n_submissions, n_reviewers)``.
    text : ndarray of shape (n_submissions, n_reviewers), float32 or float64, or TextScores, or None
        Text affinity, [0, 1], NaN where unknown; not copied. None if there are no texts.
    areas : tuple of two, or None
        Areas of each submission and of each reviewer, best first.
    bids : tuple of three arrays of shape (n,), or None
        Rows, columns, values.
    scores : iterable of (name, rows, cols, values, default)
        Imported tables. A default counts as a value: it makes the pairs that the table leaves out known.
    weights : mapping of str to float
        Signal -> weight; see `Params.weights`.
    defaults : mapping of str to float or None
        Signal -> value where it says nothing; see `Params.defaults`.
    allow_unknown, allow_zero : bool
        See `AffinityOperator`.

    Returns
    -------
    AffinityOperator
        Without the signals the venue has no data for.

    Raises
    ------
    InvalidVenueError
        ``invalid-venue``: an imported table has the name of a built-in signal or of another table.
    InvalidParamsError
        ``invalid-params``: `weights` or `defaults` name a signal the venue does not have.
    InvalidScoresError
        ``invalid-scores``: entries out of range, not finite or repeated.
    """
    signals = _signals(shape, text, areas, bids, scores, weights, defaults)
    return AffinityOperator(shape, signals, allow_unknown=allow_unknown, allow_zero=allow_zero)


def affinity_of(
    resolved: ResolvedVenue,
    params: Params,
    *,
    vectorizer: Vectorizer | None = None,
    progress: Callable[[float], None] | None = None,
) -> AffinityOperator:
    """The affinity of a resolved venue under `params`.

    Text is computed once and kept, 4 bytes a pair in memory or, in a large venue, 2 in a file (`TextScores`); not at
    all if its weight is 0. It is a signal if text came with some submission and with some reviewer, areas if some
    submission and some reviewer state any, bids and tables if they have entries.

    Parameters
    ----------
    vectorizer : Vectorizer, optional
        The text scorer; by default the one `params` names.
    progress : callable, optional
        See `TextScores.fit`.

    Raises
    ------
    InvalidVenueError, InvalidParamsError, InvalidScoresError
        See `build_affinity`; also InvalidParamsError for a text scorer that does not exist.
    MissingExtraError, InvalidFileError
        The text scorer's weights are missing or not usable.
    """
    scorer = vectorizer if vectorizer is not None else named_scorer(params.scorer)
    _check_names([table.name for table in resolved.scores], params.weights, params.defaults)  # before the slow part
    text: TextScores | int | None = None
    if not _has_texts(resolved):
        pass
    elif _weight("text", params.weights) > 0:
        text = TextScores.fit(
            resolved.submissions,
            resolved.reviewers,
            vectorizer=scorer,
            half_life=params.recency_half_life,
            progress=progress,
        )
    else:
        text = _readable_pairs(resolved)
    return AffinityOperator(
        (len(resolved.submissions), len(resolved.reviewers)),
        _signals_of(resolved, params, text),
        allow_unknown=params.allow_unknown,
        allow_zero=params.allow_zero,
    )


def signals_of(resolved: ResolvedVenue, params: Params, readable: int | None = None) -> list[dict[str, Any]]:
    """What a chair may know about the signals of a venue before anything is computed.

    Parameters
    ----------
    readable : int, optional
        Pairs of which both sides have words, for callers that have read the texts; otherwise they are read here.

    Returns
    -------
    list of dict
        As `AffinityOperator.summary`; the default of text is None unless `params` sets it, since the mean of
        the known pairs takes the text affinity to be computed.

    Raises
    ------
    InvalidVenueError, InvalidParamsError, InvalidScoresError
        See `affinity_of`.
    """
    known_scorer(params.scorer)  # what it needs may be on the machine that will run it, not on this one
    text = None
    if _has_texts(resolved):
        text = _readable_pairs(resolved) if readable is None else readable
    return [signal.summary() for signal in _signals_of(resolved, params, text)]


def unscored_affinity(resolved: ResolvedVenue, params: Params) -> AffinityOperator:
    """The affinity of a venue whose texts were not scored in time: as `affinity_of`, and text unknown for every pair.

    It is made at once, without reading a text; its summary says 0 pairs for text.
    """
    shape = len(resolved.submissions), len(resolved.reviewers)
    text = 0 if _has_texts(resolved) else None
    signals = [
        replace(signal, operator=_Unknown(shape)) if signal.operator is None and signal.weight > 0 else signal
        for signal in _signals_of(resolved, params, text)
    ]
    return AffinityOperator(shape, signals, allow_unknown=params.allow_unknown, allow_zero=params.allow_zero)


class _Unknown(ScoreOperator):
    """Nothing is known of any pair."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        return np.full((rows.stop - rows.start, cols.stop - cols.start), np.nan, dtype=np.float32)

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        return np.full(len(rows), np.nan)

    def bounds(self) -> tuple[float, float]:
        return 0.0, 0.0


def _signals_of(resolved: ResolvedVenue, params: Params, text: TextScores | int | None) -> list[Signal]:
    return _signals(
        (len(resolved.submissions), len(resolved.reviewers)),
        text,
        ([entry.areas for entry in resolved.submissions], [entry.areas for entry in resolved.reviewers]),
        (resolved.bids.rows, resolved.bids.cols, resolved.bids.values),
        [(table.name, table.rows, table.cols, table.values, table.default) for table in resolved.scores],
        params.weights,
        params.defaults,
    )


def _weight(name: str, weights: Mapping[str, float]) -> float:
    return float(weights.get(name, DEFAULT_WEIGHTS.get(name, IMPORTED_WEIGHT)))


def _signals(
    shape: tuple[int, int],
    text: NDArray[np.floating] | TextScores | int | None,
    areas: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]] | None,
    bids: Triples | None,
    scores: Iterable[Table],
    weights: Mapping[str, float],
    defaults: Mapping[str, float | None],
) -> list[Signal]:
    """The signals there are data for, in order. A number for text: the pairs known to a matrix not computed."""
    tables = sorted(scores, key=lambda table: table[0])
    _check_names([table[0] for table in tables], weights, defaults)
    signals = []

    def add(name: str, operator: ScoreOperator | None, default: float | None, known: int) -> None:
        imported = name not in BUILT_IN
        signals.append(Signal(name, _weight(name, weights), operator, defaults.get(name, default), imported, known))

    # where nothing is known of a pair it is taken for an average one: the default is the mean and not 0
    if isinstance(text, int):
        add("text", None, None, text)
    elif isinstance(text, TextScores):
        add("text", text, text.mean, text.known_pairs)
    elif text is not None:
        matrix = DenseScores(np.asarray(text))
        known, mean = _count_and_mean(matrix)
        add("text", matrix, mean, known)
    if areas is not None:
        overlap = AreaScores(*areas)
        if overlap.known:
            add("areas", overlap, 0.0, overlap.known)
    if bids is not None and np.size(bids[0]):
        stated = bid_scores(*bids, shape)
        add("bids", stated, 0.0, int(stated.matrix.nnz))  # no bid is a neutral bid
    for name, rows, cols, values, default in tables:
        table = table_scores(rows, cols, values, shape, name)
        if table.matrix.nnz or defaults.get(name, default) is not None:
            add(name, table, default, int(table.matrix.nnz))
    return signals


def _has_texts(resolved: ResolvedVenue) -> bool:
    """Whether text came with some submission and with some reviewer."""
    sides = (resolved.submissions, resolved.reviewers)
    return all(any(_supplied(entry) for entry in side) for side in sides)


def _readable_pairs(resolved: ResolvedVenue) -> int:
    """Pairs of which both sides have words."""
    submissions = sum(bool(submission_text(entry)) for entry in resolved.submissions)
    return submissions * sum(bool(reviewer_documents(entry)) for entry in resolved.reviewers)


def _supplied(record: Submission | Reviewer) -> bool:
    """Whether any text came with a record, readable or not: "the of and" is data that says nothing."""
    texts = list(record.keywords)
    if isinstance(record, Submission):
        texts += [record.title, record.abstract]
    else:
        texts += [text for entry in record.publications if entry.weight > 0 for text in (entry.title, entry.abstract)]
    return any(text and not text.isspace() for text in texts)


def _count_and_mean(scores: DenseScores) -> tuple[int, float | None]:
    """Known entries and their mean, None if there are none; float64 sums, one block at a time."""
    count, total = 0, 0.0
    for rows, cols in blocks(scores.shape):
        part = scores.block(rows, cols)
        if np.isinf(part).any():
            raise InvalidScoresError("text scores must be finite, or NaN where unknown")
        count += int(part.size - np.count_nonzero(np.isnan(part)))
        total += float(np.nansum(part, dtype=np.float64))
    return count, total / count if count else None


def _check_names(tables: Sequence[str], weights: Mapping[str, float], defaults: Mapping[str, float | None]) -> None:
    issues = [
        Issue(f"{name!r} is the name of a built-in signal; give the table another", "reserved-name", "name", value=name)
        for name in tables
        if name in BUILT_IN
    ]
    issues += [
        Issue(f"several tables are called {name!r}; a name is one signal", "duplicate-name", "name", value=name)
        for name in sorted({name for name in tables if tables.count(name) > 1})
    ]
    if issues:
        raise InvalidVenueError(issues=issues)
    known = (*BUILT_IN, *sorted(tables))
    issues = [
        Issue(
            f"the venue has no signal {name!r}; known: {', '.join(known)}",
            "unknown-signal",
            f"{field}.{name}",
            value=name,
            source="params",
        )
        for field, table in (("weights", weights), ("defaults", defaults))
        for name in table
        if name not in known
    ]
    if issues:
        raise InvalidParamsError(issues=issues)
