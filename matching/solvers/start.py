"""What a solve may start from: the pairs and prices of an earlier plan, checked and fitted to the problem of now."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matching.errors import InvalidProblemError, Issue
from matching.pairs import PairSet, check_pairs
from matching.solvers.base import Solution, frozen
from matching.types import FloatArray, PairArray

__all__ = ["START", "Changes", "Start", "changes_of"]

START = "start"  # key of a Solution's `meta` under which it says what became of its start


@dataclass(frozen=True, eq=False)
class Start:
    """An earlier plan in rows and columns of the problem of now. Build it with `Start.of` or `Start.by_id`.

    It says where to begin, never what is right: whatever stands in it, the plan found is as good as one found
    without it and its proof is made anew.

    Attributes
    ----------
    pairs : ndarray of shape (n, 2), int64
        Pairs of the earlier plan whose lines are still there; barred, repeated and too many ones do no harm.
    submission_prices : ndarray of shape (n_submissions,), float64
        u in units of score; NaN where nothing is known, as for a submission that came later.
    reviewer_prices : ndarray of shape (n_reviewers,), float64
        w, likewise.
    """

    pairs: PairArray
    submission_prices: FloatArray
    reviewer_prices: FloatArray

    @classmethod
    def of(cls, start: Start | Solution, shape: tuple[int, int]) -> Start:
        """Check a start against the shape of the problem.

        Raises
        ------
        InvalidProblemError
            Pairs outside the problem or prices of another shape, all of them listed.
        """
        if not isinstance(start, Start | Solution):
            reason = f"must be a matching.Start or matching.Solution, not {type(start).__name__}"
            raise InvalidProblemError(issues=[Issue(reason, "wrong-type", "start", source="start")])
        issues: list[Issue] = []
        prices = []
        for name, length in (("submission_prices", shape[0]), ("reviewer_prices", shape[1])):
            found = _numbers(getattr(start, name))
            if found is None or found.shape != (length,):
                of_shape = "no array of numbers" if found is None else f"shape {found.shape}"
                reason = f"must have shape ({length},), got {of_shape}; carry it over with Start.by_id or index maps"
                issues.append(Issue(reason, "wrong-shape", name, source="start"))
            else:
                prices.append(frozen(np.where(np.isfinite(found), found, np.nan)))
        pairs = np.empty((0, 2), dtype=np.int64)
        try:
            pairs = check_pairs(start.pairs, shape, "start")
        except InvalidProblemError as error:
            issues += error.issues or [Issue(error.detail, "wrong-shape", "pairs", source="start")]
        if issues:
            raise InvalidProblemError(issues=issues)
        return cls(frozen(pairs), *prices)

    @classmethod
    def by_id(
        cls,
        pairs: Sequence[tuple[str, str]],
        submission_prices: Mapping[str, Any],
        reviewer_prices: Mapping[str, Any],
        submissions: Sequence[str],
        reviewers: Sequence[str],
    ) -> Start:
        """Carry a plan in outside ids over to the lines of now; who is gone is left out, who is new has no price.

        Parameters
        ----------
        pairs : sequence of (submission id, reviewer id)
        submission_prices, reviewer_prices : mapping of id to number
            What is no finite number counts as unknown.
        submissions, reviewers : sequence of str
            Ids of the rows and columns of now, each once.
        """
        rows = {name: at for at, name in enumerate(submissions)}
        cols = {name: at for at, name in enumerate(reviewers)}
        kept = [(rows[row], cols[col]) for row, col in pairs if row in rows and col in cols]
        return cls(
            frozen(np.array(kept, dtype=np.int64).reshape(-1, 2)),
            frozen(np.array([_number(submission_prices.get(name)) for name in submissions], dtype=np.float64)),
            frozen(np.array([_number(reviewer_prices.get(name)) for name in reviewers], dtype=np.float64)),
        )

    def times(self, factor: float) -> Start:
        """The same start with prices in another unit of score."""
        if factor == 1.0:
            return self
        with np.errstate(over="ignore"):
            u, w = self.submission_prices * factor, self.reviewer_prices * factor
        return replace(
            self,
            submission_prices=frozen(np.where(np.isfinite(u), u, np.nan)),
            reviewer_prices=frozen(np.where(np.isfinite(w), w, np.nan)),
        )

    def digest(self) -> str:
        """SHA-256 over pairs and prices as 64 hexadecimal digits; the order of the pairs changes nothing."""
        found = hashlib.sha256()
        order = np.lexsort((self.pairs[:, 1], self.pairs[:, 0]))
        for part in (self.pairs[order], self.submission_prices, self.reviewer_prices):
            found.update(np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<")).tobytes() + b"\x1d")
        return found.hexdigest()


@dataclass(frozen=True, slots=True)
class Changes:
    """How a plan differs from the one it started from, in pairs.

    Attributes
    ----------
    kept : int
        In both.
    added, removed : ndarray of shape (n, 2), int64
        Only in the new plan, and only in the earlier one as far as its lines are still there.
    """

    kept: int
    added: PairArray
    removed: PairArray


def changes_of(start: Start, pairs: PairArray, shape: tuple[int, int]) -> Changes:
    """Compare a plan with its start."""
    before, after = PairSet(start.pairs, shape), PairSet(pairs, shape)
    old, new = before.pairs(), after.pairs()
    stays = before.contains(new[:, 0], new[:, 1])
    return Changes(int(stays.sum()), new[~stays], old[~after.contains(old[:, 0], old[:, 1])])


def _numbers(value: ArrayLike) -> FloatArray | None:
    try:
        found = np.asarray(value)
        return None if found.dtype.kind not in "iuf" else found.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return np.nan
    return float(value) if abs(value) < 1e300 else np.nan
