"""Every vector moved toward the mean of its nearest ones in an archive, in blocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from matching.types import IntArray

__all__ = ["moved", "nearest", "smoothed"]

Single = NDArray[np.float32]

ROWS, COLUMNS = 256, 16384  # of a block of cosines: 16 MB


def smoothed(
    vectors: Single,
    archive: IntArray,
    twins: IntArray,
    count: int = 10,
    share: float = 0.5,
    threads: int = 1,
    tick: Callable[[], None] | None = None,
) -> Single:
    """Unit vectors of ``x + share * weighted mean of the nearest archive vectors``, weights their cosines.

    Parameters
    ----------
    vectors : ndarray of shape (n, dim), float32
        Unit vectors. Not modified.
    archive : ndarray of shape (m,), int64
        Rows of `vectors` that may be neighbours.
    twins : ndarray of shape (n,), int64
        Position in `archive` of the same work, which is no neighbour of its own; -1 if it is not there.
    count : int
        Neighbours, [0, inf).
    share : float
        [0, inf).
    threads : int
        Blocks worked on at the same time, [1, inf). Changes no vector as long as products are not split themselves
        (`matching.vectors.threads.one_blas_thread`).
    tick : callable or None
        Called after each block of 256 vectors; what it raises stops the work.

    Returns
    -------
    ndarray of shape (n, dim), float32

    Notes
    -----
    Neighbours of a cosine of 0 or less count nothing. Time grows with n * m * dim, memory beyond the result with
    a block of cosines for each thread.
    """
    return moved(vectors, vectors[archive], twins, count, share, threads, tick)


def moved(
    vectors: Single,
    pool: Single,
    twins: IntArray,
    count: int = 10,
    share: float = 0.5,
    threads: int = 1,
    tick: Callable[[], None] | None = None,
) -> Single:
    """The same where the archive's vectors are given: `pool`, of shape (m, dim), float32."""
    if not count or not share or not len(pool):
        return vectors
    out = np.empty_like(vectors)

    def move(start: int) -> None:
        block = slice(start, min(start + ROWS, len(vectors)))
        columns, cosines = nearest(vectors[block], pool, count, twins[block])
        weights = np.maximum(cosines.astype(np.float64), 0.0)
        totals = weights.sum(axis=1, keepdims=True)
        weights /= np.where(totals > 0, totals, 1.0)
        longer = vectors[block] + share * np.einsum("ij,ijk->ik", weights, pool[columns])
        lengths = np.linalg.norm(longer, axis=1, keepdims=True)
        out[block] = longer / np.where(lengths > 0, lengths, 1.0)

    with ThreadPoolExecutor(threads) as executor:
        blocks = [executor.submit(move, start) for start in range(0, len(vectors), ROWS)]
        try:
            for block in blocks:
                block.result()
                if tick is not None:
                    tick()
        finally:
            for block in blocks:
                block.cancel()  # those that have not begun when a tick raises
    return out


def nearest(queries: Single, pool: Single, count: int, skip: IntArray) -> tuple[IntArray, Single]:
    """The `count` rows of `pool` with the highest inner products, best first, the earlier row among equals.

    Parameters
    ----------
    queries, pool : ndarray of shape (n, dim) and (m, dim), float32
    count : int
        [1, inf).
    skip : ndarray of shape (n,), int64
        A row of `pool` that does not count for a query, -1 for none.

    Returns
    -------
    columns : ndarray of shape (n, min(count, m)), int64
    products : ndarray of shape (n, min(count, m)), float32
        -inf where there is no further row.
    """
    count = min(count, len(pool))
    rows = np.arange(len(queries))
    columns = np.zeros((len(queries), count), dtype=np.int64)
    products = np.full((len(queries), count), -np.inf, dtype=np.float32)
    for start in range(0, len(pool), COLUMNS):
        part = queries @ pool[start : start + COLUMNS].T
        inside = (skip >= start) & (skip < start + part.shape[1])
        part[rows[inside], skip[inside] - start] = -np.inf
        # what does not reach the last place so far, or the last of the first block, is out: very few are left
        first = not start and part.shape[1] > count
        bar = np.partition(part, -count, axis=1)[:, -count] if first else products[:, -1]
        here, there = np.nonzero(part >= bar[:, None])
        owners = np.concatenate([np.repeat(rows, count), here])
        places = np.concatenate([columns.ravel(), there + start])
        values = np.concatenate([products.ravel(), part[here, there]])
        order = np.lexsort((places, -values, owners))
        firsts = np.searchsorted(owners[order], rows)
        chosen = order[(firsts[:, None] + np.arange(count)).ravel()].reshape(len(rows), count)
        columns, products = places[chosen], values[chosen]
    return columns, products
