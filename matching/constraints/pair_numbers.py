"""One number for each pair without a matrix of them: a default, numbers for reviewers, numbers for single pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from matching.errors import InvalidParamsError, Issue
from matching.index import IdIndex
from matching.types import FloatArray, IntArray

__all__ = ["PairNumbers"]


@dataclass(frozen=True, eq=False)
class PairNumbers:
    """A function of pairs.

    Attributes
    ----------
    shape : tuple of int
    by_reviewer : ndarray of shape (n_reviewers,), float64
    single : scipy.sparse.csr_array of shape `shape`, float64
        Stored entries stand instead of the reviewer's number; a stored 0 is 0.
    dense : ndarray of shape `shape` or None
        Stands instead of both.
    """

    shape: tuple[int, int]
    by_reviewer: FloatArray
    single: sparse.csr_array
    dense: FloatArray | None = None

    @classmethod
    def of(cls, value: Any, shape: tuple[int, int], missing: float, name: str) -> PairNumbers:
        """From one number, one for each reviewer, or an array or scipy.sparse array of shape `shape`.

        Parameters
        ----------
        missing : float
            Number of the entries a sparse array does not store.

        Raises
        ------
        InvalidParamsError
            Another shape.
        """
        if isinstance(value, PairNumbers):
            return value
        nothing = sparse.csr_array(shape)
        if sparse.issparse(value):
            table = sparse.csr_array(value, dtype=np.float64)
            if table.shape != shape:
                raise _wrong_shape(name, table.shape, shape)
            return cls(shape, np.full(shape[1], missing), table)
        array = np.asarray(value, dtype=np.float64)
        if array.shape == shape and array.ndim == 2:
            return cls(shape, np.full(shape[1], missing), nothing, array)
        if array.ndim == 0 or array.shape == (shape[1],):
            return cls(shape, np.array(np.broadcast_to(array, (shape[1],))), nothing)
        raise _wrong_shape(name, array.shape, shape)

    @classmethod
    def by_id(
        cls, value: Mapping[str, Any], submissions: IdIndex, reviewers: IdIndex, missing: float, name: str
    ) -> PairNumbers:
        """From ``{"default": x, "reviewers": {id: x}, "pairs": [[submission, reviewer, x], ...]}``.

        Raises
        ------
        InvalidParamsError
            Ids nobody has and pairs named twice, all of them.
        """
        shape = (len(submissions), len(reviewers))
        people = np.full(shape[1], float(value.get("default", missing)))
        issues: list[Issue] = []

        def place(index: IdIndex, who: str, where: str) -> int | None:
            at = index.get(who)
            if at is None:
                issues.append(Issue(f"no record has the id {who!r}", "unknown-id", where, value=who, source="params"))
            return at

        for who, number in value.get("reviewers", {}).items():
            at = place(reviewers, who, f"{name}.reviewers")
            if at is not None:
                people[at] = number
        found: dict[tuple[int, int], float] = {}
        for row, (what, who, number) in enumerate(value.get("pairs", ())):
            left, right = (
                place(submissions, what, f"{name}.pairs[{row}]"),
                place(reviewers, who, f"{name}.pairs[{row}]"),
            )
            if left is None or right is None:
                continue
            if found.setdefault((left, right), number) != number:
                issues.append(
                    Issue(f"{what} and {who} are given two numbers", "duplicate", f"{name}.pairs[{row}]",
                          value=number, source="params")
                )  # fmt: skip
        if issues:
            raise InvalidParamsError(issues=issues)
        where = np.array(list(found), dtype=np.int64).reshape(-1, 2)
        data = np.array(list(found.values()), dtype=np.float64)
        return cls(shape, people, sparse.csr_array((data, (where[:, 0], where[:, 1])), shape=shape))

    def times(self, factors: FloatArray) -> PairNumbers:
        """Those of each reviewer times a factor, float64 of shape (n_reviewers,)."""
        if (factors == 1.0).all():
            return self
        table = self.single.copy()
        table.data = table.data * factors[table.indices]
        dense = None if self.dense is None else self.dense * factors
        return PairNumbers(self.shape, self.by_reviewer * factors, table, dense)

    def __call__(self, rows: IntArray, cols: IntArray) -> FloatArray:
        """The numbers of the pairs (rows[i], cols[i]), float64 of shape (n,)."""
        if self.dense is not None:
            return np.asarray(self.dense[rows, cols])
        out = self.by_reviewer[cols]
        if self.single.nnz and len(rows):
            # the positions of stored entries, so that a stored 0 counts
            place = sparse.csr_array(
                (np.arange(1, self.single.nnz + 1), self.single.indices, self.single.indptr), shape=self.shape
            )
            at = np.asarray(place[rows, cols]).ravel()
            out[at > 0] = self.single.data[at[at > 0] - 1]
        return out

    def block(self, rows: slice, cols: slice) -> FloatArray:
        """The numbers of a block, float64; a read-only view where all rows are alike."""
        if self.dense is not None:
            return np.asarray(self.dense[rows, cols], dtype=np.float64)
        height = len(range(*rows.indices(self.shape[0])))
        own = self.by_reviewer[cols]
        out = np.broadcast_to(own, (height, own.size))
        if self.single.nnz:
            part = sparse.coo_array(self.single[rows][:, cols])
            if part.nnz:  # stored zeros too
                out = np.array(out)
                out[part.coords] = part.data
        return out

    @property
    def by_column(self) -> bool:
        """Whether they depend on the reviewer alone."""
        return self.dense is None and not self.single.nnz

    @property
    def alike(self) -> bool:
        """Whether all are known to be the same."""
        return self.by_column and bool((self.by_reviewer == self.by_reviewer[:1]).all())

    @property
    def least(self) -> float:
        """The smallest number of any pair, as far as the parts show it."""
        if self.dense is not None:
            return float(self.dense.min(initial=np.inf))
        return min(float(self.by_reviewer.min(initial=np.inf)), float(self.single.data.min(initial=np.inf)))


def _wrong_shape(name: str, got: tuple[int, ...], shape: tuple[int, int]) -> InvalidParamsError:
    reason = f"must be one number, have shape ({shape[1]},) or {shape}; got shape {got}"
    return InvalidParamsError(issues=[Issue(reason, "wrong-shape", name, source="params")])
