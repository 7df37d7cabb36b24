"""Text affinity of every pair as an operator: small venues as a matrix, large ones as 16-bit codes in a mapped file.

The comparisons of a vectoriser are pooled to reviewers, standardised, added by groups, standardised again and
mapped to [0, 1] by an increasing function, so the order of the sum is the order of the affinity.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matching.errors import InvalidParamsError, Issue
from matching.profiles.reviewer import Reviewer
from matching.profiles.submission import Submission
from matching.profiles.text import Document, submission_text
from matching.scores.base import ScoreOperator
from matching.scores.codes import STEP
from matching.scores.documents import ReviewerTexts, reviewer_texts
from matching.scores.filling import Filling, fits_a_matrix
from matching.scores.sides import ReviewerSide, SubmissionSide, pooled_pairs, similarities
from matching.scores.standard import GRID, Constants, combined
from matching.scores.stored import StoredAffinity
from matching.types import FloatArray, IntArray
from matching.vectors.base import Comparison, Encoded, Group, TextModel, Vectorizer
from matching.vectors.lexical import LexicalVectorizer
from matching.vectors.threads import cores, one_blas_thread

__all__ = ["TextScores"]

log = logging.getLogger(__name__)

Item = TypeVar("Item")


class TextScores(ScoreOperator):
    """Text affinity, [0, 1], NaN where the submission or the reviewer has no text to go by. Made by `fit`.

    Attributes
    ----------
    texts : ReviewerTexts
        The documents of all reviewers with their weights, in the order of the reviewers.
    submission_texts : tuple of str
    model : TextModel
        What the vectoriser made of the texts that were there when it was fitted.
    constants : Constants
        Mean and standard deviation of every comparison, every group and the total; fixed when fitted.
    known_pairs : int
        Pairs that are not NaN.
    mean : float or None
        Of the known pairs as they are stored.
    stages : mapping of str to float
        Seconds of "documents" (texts from records), "vectors" (the vectoriser), "layout" and "pairs".
    tolerance : float
        0 for a matrix. For codes half a step, 7.6e-6, and four times the largest rounding error of 4,096 pairs.

    Notes
    -----
    With R_k the pooled similarities of comparison k, less its share of each submission's mean over the reviewers, and
    z(R) = (R - mean) / sd: ``z_g = z(sum of z(R_k))`` for the comparisons of group g, ``z = z(sum of weight_g * z_g)``
    and ``affinity = 1/2 + arctan((z - 1) / 1.25) / pi``, rounded to multiples of 2**-20. Means and deviations are over
    all known pairs up to 8 million, and over those of at least 1,024 submissions beyond.

    Up to 25 million pairs everything is computed in double precision and kept as a float32 matrix, which is then the
    exact score. Beyond, a sweep in single precision fills a file with 16-bit codes, and `values` computes the exact
    score of single pairs from the vectors.

    Submissions and reviewers are worked through in the order of their texts, in blocks of a fixed size, each by one
    thread: neither their order nor the number of threads changes a bit.
    """

    def __init__(
        self,
        texts: ReviewerTexts,
        submission_texts: tuple[str, ...],
        model: TextModel,
        constants: Constants,
        sides: tuple[tuple[SubmissionSide, ...], tuple[ReviewerSide, ...]],
        stored: StoredAffinity,
        tolerance: float,
        settings: tuple[float | None, int | None],
        stages: Mapping[str, float],
    ) -> None:
        self.texts, self.submission_texts, self.model, self.constants = texts, submission_texts, model, constants
        self.shape = (len(submission_texts), texts.indptr.size - 1)
        self.tolerance = tolerance
        self._factors = constants.factors(model.groups)
        self._left, self._right = sides
        self._stored = stored
        self._settings = settings
        self.stages = MappingProxyType(dict(stages))

    @classmethod
    def fit(
        cls,
        submissions: Sequence[Submission],
        reviewers: Sequence[Reviewer],
        *,
        vectorizer: Vectorizer | None = None,
        half_life: float | None = None,
        this_year: int | None = None,
        folder: Path | None = None,
        executor: Executor | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> TextScores:
        """Learn from all texts of a venue and score every pair.

        Parameters
        ----------
        submissions, reviewers : sequence of Submission, of Reviewer
        vectorizer : Vectorizer or None
            None for the lexical one.
        half_life, this_year
            See `reviewer_texts`.
        folder : Path or None
            Where the file of a large venue goes, 2 bytes a pair; None for the system's temporary folder.
        executor : Executor or None
            Runs blocks at the same time; it has to share this process's memory, as threads do. None for as many
            threads as there are cores.
        progress : callable or None
            Called from this thread with the finished share: 0 while texts are read, one half to 1 after the
            vectoriser, which tells its own; every few hundred reviewers and every block. What it raises stops the
            work and passes through.

        Raises
        ------
        MissingExtraError, InvalidFileError
            The vectoriser's weights are missing or not usable.
        StorageError
            ``storage-error``: the folder is missing or has too little room.
        """
        tell = progress or (lambda share: None)
        clock, stages = perf_counter(), {}

        def finished(stage: str) -> None:
            nonlocal clock
            now = perf_counter()
            stages[stage], clock = now - clock, now

        shape = len(submissions), len(reviewers)
        stored = StoredAffinity(shape, fits_a_matrix(shape), folder)  # first, so that no room is said before the work
        try:
            texts = reviewer_texts(reviewers, half_life, this_year, lambda: tell(0.0))
            wanted = tuple(map(submission_text, submissions))
            tell(0.0)
            finished("documents")
            model = (vectorizer or LexicalVectorizer()).fit([document.text for document in texts.documents], wanted)
            finished("vectors")
            left, right = _sides(model, texts, len(wanted))
            with ExitStack() as stack:
                stack.enter_context(one_blas_thread())
                runner = executor or stack.enter_context(ThreadPoolExecutor(cores()))
                filling = Filling(
                    model, left, right, wanted, texts, stored, runner, lambda share: tell(0.5 + 0.5 * share)
                )
                finished("layout")
                constants, rounding = filling.run()
        except BaseException:
            stored.discard()  # an exception holds on to everything it passed through, for who knows how long
            raise
        finished("pairs")
        log.info("text affinity of %d x %d pairs: %s", *shape, stages)
        tolerance = 0.0 if stored.exact else STEP / 2 + 0.5 / GRID + rounding
        settings = (half_life, this_year)
        return cls(texts, wanted, model, constants, ((left,), (right,)), stored, tolerance, settings, stages)

    @property
    def known_pairs(self) -> int:
        return self._stored.known

    @property
    def mean(self) -> float | None:
        return self._stored.total / self._stored.known if self._stored.known else None

    @property
    def graded(self) -> bool:
        """True: texts of different words differ in affinity."""
        return True

    def bounds(self) -> tuple[float, float]:
        """See `ScoreOperator.bounds`; known without a sweep."""
        low, high = self._stored.low, self._stored.high
        return (low - self.tolerance, high + self.tolerance) if low <= high else (0.0, 0.0)

    def block(self, rows: slice, cols: slice) -> NDArray[np.floating]:
        """See `ScoreOperator.block`: float32, within `tolerance` of `values`."""
        return self._stored.block(rows, cols)

    def values(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """See `ScoreOperator.values`: multiples of 2**-20."""
        rows, cols = np.asarray(rows, dtype=np.int64), np.asarray(cols, dtype=np.int64)
        if self._stored.exact:
            return self._stored.matrix[rows, cols].astype(np.float64)
        return self._affinity(self._pooled(rows, cols), self._shifts(rows))

    def similarities(self, row: int, col: int) -> list[tuple[Group, Comparison, FloatArray, FloatArray]]:
        """How each document of a reviewer compares with a submission.

        Returns
        -------
        list of (group, comparison, similarities, weights)
            In the order in which they are summed; float64 of shape (n_documents,), one entry for each of
            `documents_of(col)`. A document in which a group finds nothing has NaN, and so have all if it finds
            nothing in the submission. Weights are those of `texts`.
        """
        left, row = _located(self._left, row, _rows_of)
        right, own = _located(self._right, col, _columns_of)
        offset = self.texts.indptr[col - own]
        part = slice(int(self.texts.indptr[col]), int(self.texts.indptr[col + 1]))
        local = slice(int(part.start - offset), int(part.stop - offset))
        weights = self.texts.weights[part]
        found = similarities(self.model.groups, left, right, row, local)
        return [(group, comparison, values, weights) for group, comparison, values in found]

    def affinity_of_pooled(self, pooled: Sequence[float], row: int) -> float:
        """The affinity that pooled similarities make, by the very formula of the scores.

        Parameters
        ----------
        pooled : sequence of float
            One for each entry of `similarities`, in that order, as `matching.scores.shares.pooled_similarity` makes
            it; NaN for a group that knows nothing of the pair.
        row : int
            The submission, whose mean over the reviewers is subtracted in part.

        Returns
        -------
        float
            A multiple of 2**-20; NaN if all is NaN. Equal to `values` where nothing was left out.
        """
        values = np.asarray(pooled, dtype=np.float64)[:, None]
        return float(self._affinity(values, self._shifts(np.array([row])))[0])

    def document_similarities(self, cols: slice) -> FloatArray:
        """`similarities` of every submission with every document of some reviewers.

        Returns
        -------
        ndarray of shape (n_comparisons, n_submissions, n_documents), float64
            Documents reviewer by reviewer; NaN where a group finds nothing. Only for reviewers and submissions that
            were there when the model was fitted.
        """
        right = self._right[0].alone(slice(int(self.texts.indptr[cols.start]), int(self.texts.indptr[cols.stop])))
        count = _columns_of(right)
        rows, documents = np.divmod(np.arange(self.shape[0] * count), max(1, count))
        found = pooled_pairs(self.model.groups, self._left[0], right, rows, documents)
        return found.reshape(len(found), self.shape[0], count)

    def affinities_of_pooled(self, pooled: FloatArray) -> FloatArray:
        """`affinity_of_pooled` for every submission.

        Parameters
        ----------
        pooled : ndarray of shape (n_comparisons, n_submissions, n), float64

        Returns
        -------
        ndarray of shape (n_submissions, n), float64
        """
        count = pooled.shape[2]
        rows = np.repeat(np.arange(self.shape[0]), count)
        flat = self._affinity(pooled.reshape(len(pooled), -1), self._shifts(rows))
        return flat.reshape(self.shape[0], count)

    def documents_of(self, col: int) -> Sequence[Document]:
        """The documents of a reviewer, sorted by text."""
        return self.texts.documents[self.texts.indptr[col] : self.texts.indptr[col + 1]]

    def with_reviewer(self, reviewer: Reviewer) -> TextScores:
        """One column more, by the words, weights, axes and constants there are; no other score changes.

        Raises
        ------
        InvalidParamsError
            ``invalid-params``: the vectoriser has to be fitted again.
        """
        added = reviewer_texts([reviewer], *self._settings)
        side = ReviewerSide.of(added, self._encoded([document.text for document in added.documents], True))
        rights = (*self._right[:1], self._right[1].joined(side) if len(self._right) > 1 else side)
        texts = ReviewerTexts(
            self.texts.documents + added.documents,
            np.concatenate([self.texts.weights, added.weights]),
            np.concatenate([self.texts.indptr, self.texts.indptr[-1:] + added.indptr[1:]]),
        )
        rows = np.arange(self.shape[0])
        cols = np.full(self.shape[0], self.shape[1])
        pooled = self._pooled(rows, cols, rights=rights)
        stored = self._stored.with_column(self._affinity(pooled, self._shifts(rows)))
        return self._extended(texts, self.submission_texts, (self._left, rights), stored)

    def with_submission(self, submission: Submission) -> TextScores:
        """One row more, likewise. Its mean is over the reviewers there were when the model was fitted."""
        text = submission_text(submission)
        found = self._encoded([text], False)
        side = SubmissionSide(
            tuple(vectors for entry in found for vectors in entry.vectors),
            tuple(entry.known for entry in found),
            np.zeros((len(self.model.comparisons), 1)),
        )
        cols = np.arange(self.shape[1])
        rows = np.full(self.shape[1], self.shape[0])
        lefts = (*self._left[:1], self._left[1].joined(side) if len(self._left) > 1 else side)
        pooled = self._pooled(rows, cols, lefts=lefts)
        fitted = pooled[:, : _columns_of(self._right[0])]  # not those added since, or the order of adding would matter
        for at, comparison in enumerate(self.model.comparisons):
            measured = fitted[at][~np.isnan(fitted[at])]
            if measured.size:
                lefts[-1].shifts[at, -1] = comparison.centre * measured.mean()
        stored = self._stored.with_row(self._affinity(pooled, lefts[-1].shifts[:, -1:]))
        return self._extended(self.texts, (*self.submission_texts, text), (lefts, self._right), stored)

    def _extended(
        self, texts: ReviewerTexts, wanted: tuple[str, ...], sides: Any, stored: StoredAffinity
    ) -> TextScores:
        tolerance = self.tolerance
        settings, stages = self._settings, self.stages
        return TextScores(texts, wanted, self.model, self.constants, sides, stored, tolerance, settings, stages)

    def _encoded(self, texts: Sequence[str], as_documents: bool) -> list[Encoded]:
        out = []
        for group in self.model.groups:
            if group.space is not None:
                out.append(group.space.documents(texts) if as_documents else group.space.submissions(texts))
            elif not group.comparisons:  # there was nothing to learn from
                out.append(Encoded((), (), np.zeros(len(texts), dtype=np.bool_)))
            else:
                reason = f"the scorer {group.name!r} takes in no texts one by one; fit it again with all of them"
                raise InvalidParamsError(issues=[Issue(reason, "not-incremental", "scorer", value=group.name)])
        return out

    def _shifts(self, rows: IntArray) -> FloatArray:
        shifts = self._left[0].shifts
        if len(self._left) == 1:
            return shifts[:, rows]
        return np.concatenate([side.shifts for side in self._left], axis=1)[:, rows]

    def _pooled(
        self,
        rows: IntArray,
        cols: IntArray,
        *,
        lefts: tuple[SubmissionSide, ...] | None = None,
        rights: tuple[ReviewerSide, ...] | None = None,
    ) -> FloatArray:
        """Pooled similarities of pairs, wherever their texts came in."""
        out = np.full((len(self.model.comparisons), len(rows)), np.nan)
        for left, own_rows, from_row in _among(lefts or self._left, rows, _rows_of):
            for right, own_cols, from_col in _among(rights or self._right, cols, _columns_of):
                here = own_rows & own_cols
                if here.any():
                    out[:, here] = pooled_pairs(
                        self.model.groups, left, right, rows[here] - from_row, cols[here] - from_col
                    )
        return out

    def _affinity(self, pooled: FloatArray, shifts: FloatArray) -> FloatArray:
        return combined(self.constants, self._factors, pooled, shifts)


def _sides(model: TextModel, texts: ReviewerTexts, n_submissions: int) -> tuple[SubmissionSide, ReviewerSide]:
    """What the model makes of the texts it was fitted on, laid out for comparing."""
    left = SubmissionSide(
        tuple(comparison.submissions for comparison in model.comparisons),
        tuple(group.known_submissions for group in model.groups),
        np.zeros((len(model.comparisons), n_submissions)),
    )
    as_encoded = [
        Encoded(
            tuple(comparison.documents for comparison in group.comparisons),
            tuple(comparison.offset for comparison in group.comparisons),
            group.known_documents,
        )
        for group in model.groups
    ]
    return left, ReviewerSide.of(texts, as_encoded)


def _rows_of(side: SubmissionSide) -> int:
    return int(side.shifts.shape[1])


def _columns_of(side: ReviewerSide) -> int:
    return int(side.indptr[0].size - 1)


def _located(sides: Sequence[Item], at: int, size: Callable[[Item], int]) -> tuple[Item, int]:
    """The side that holds a row or column, and its place there."""
    for side in sides[:-1]:
        if at < size(side):
            return side, at
        at -= size(side)
    return sides[-1], at


def _among(
    sides: Sequence[Item], at: IntArray, size: Callable[[Item], int]
) -> Iterator[tuple[Item, NDArray[np.bool_], int]]:
    start = 0
    for side in sides:
        stop = start + size(side)
        yield side, (at >= start) & (at < stop), start
        start = stop
