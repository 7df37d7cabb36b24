"""Texts as counts of words, read one at a time: no list of words is kept."""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from matching.profiles.text import tokens
from matching.types import IntArray

__all__ = ["Counts", "count_words", "counted"]

REPORT_EVERY = 4096  # texts between two reports of progress: a fifth of a second


@dataclass(frozen=True, eq=False)
class Counts:
    """Occurrences of words in distinct texts.

    Attributes
    ----------
    matrix : csr_array of shape (n_distinct, n_words), float32
        Canonical. Texts with equal counts are one row: copies that differ in commas or capitals are one text.
    columns : mapping of str to int
        Word -> column; columns are in alphabetical order.
    rows : mapping of str to int
        Text -> row.
    """

    matrix: sparse.csr_array
    columns: Mapping[str, int]
    rows: Mapping[str, int]

    def rows_of(self, texts: Sequence[str]) -> IntArray:
        """The row of each text, int64 of shape (n,)."""
        return np.fromiter((self.rows[text] for text in texts), np.int64, len(texts))


def count_words(texts: Iterable[str], progress: Callable[[float], None] | None = None) -> Counts:
    """Words of texts, repeats of a text counted once.

    Parameters
    ----------
    texts : iterable of str
        As `clean_text` returns them.
    progress : callable or None
        Told the finished share, [0, 1].

    Notes
    -----
    Rows stand in the order of a hash of their words and columns in that of the alphabet: neither depends on the
    order of the texts, and rows picked at even distances are a fair sample. Memory: 8 bytes an entry of the result,
    and 4 bytes a word read while it runs.
    """
    distinct = list(dict.fromkeys(texts))
    seen: defaultdict[str, int] = defaultdict(count().__next__)
    indices, indptr = _read(distinct, seen.__getitem__, progress)
    words = sorted(seen)
    rank = np.empty(len(words), dtype=np.int32)
    rank[np.fromiter((seen[word] for word in words), np.int64, len(words))] = np.arange(len(words), dtype=np.int32)
    matrix = _matrix(rank[indices] if words else indices, indptr, len(words))
    keys = _keys(matrix, words)
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(fresh) - 1
    return Counts(
        matrix[order[fresh]],
        {word: column for column, word in enumerate(words)},
        dict(zip(distinct, place.tolist())),
    )


def counted(texts: Sequence[str], columns: Mapping[str, int]) -> tuple[sparse.csr_array, NDArray[np.float64]]:
    """Counts of known words and the number of all words, known or not, of texts that come later.

    Returns
    -------
    matrix : csr_array of shape (n_texts, n_words), float32
    lengths : ndarray of shape (n_texts,), float64
    """
    found = array("i")
    ends, lengths = [0], []
    for text in texts:
        words = tokens(text)
        lengths.append(len(words))
        found.extend(columns[word] for word in words if word in columns)
        ends.append(len(found))
    matrix = _matrix(np.array(found, dtype=np.int32), np.asarray(ends, dtype=np.int64), len(columns))
    return matrix, np.asarray(lengths, dtype=np.float64)


def _read(
    texts: Sequence[str], number: Callable[[str], int], progress: Callable[[float], None] | None
) -> tuple[NDArray[np.int32], IntArray]:
    found = array("i")
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    for at, text in enumerate(texts):
        if progress is not None and not at % REPORT_EVERY:
            progress(at / len(texts))
        found.extend(map(number, tokens(text)))
        ends[at + 1] = len(found)
    return np.frombuffer(found, dtype=np.int32) if len(found) else np.empty(0, dtype=np.int32), ends


def _matrix(indices: NDArray[np.int32], indptr: IntArray, n_words: int) -> sparse.csr_array:
    matrix = sparse.csr_array(
        (np.ones(indices.size, dtype=np.float32), indices, indptr), shape=(indptr.size - 1, n_words)
    )
    matrix.sum_duplicates()  # sorts as well
    if matrix.nnz < 2**31:
        matrix.indptr = matrix.indptr.astype(np.int32)
        matrix.indices = matrix.indices.astype(np.int32, copy=False)
    return matrix


def _keys(matrix: sparse.csr_array, words: Sequence[str]) -> NDArray[np.uint64]:
    """128 bits for each row, the same for equal rows only: sums, modulo 2**64, of counts times hashes of the words."""
    digests = b"".join(
        hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest() for word in words
    )
    hashes = np.frombuffer(digests, dtype="<u8").reshape(len(words), 2)
    keys = np.zeros((matrix.shape[0], 2), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(matrix.indptr))
    if filled.size:
        counts = matrix.data.astype(np.uint64)
        for half in range(2):
            keys[filled, half] = np.add.reduceat(counts * hashes[matrix.indices, half], matrix.indptr[filled])
    return keys
