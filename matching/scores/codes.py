"""Affinities of a large venue as 16-bit codes in a file that is mapped into memory."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["STEP", "UNKNOWN", "CodeFile", "decoded", "encoded"]

Codes = NDArray[np.uint16]

UNKNOWN = 65535  # the code of NaN
STEP = 1.0 / (UNKNOWN - 1)  # between two codes; all of [0, 1] is covered


def encoded(affinity: NDArray[np.floating]) -> Codes:
    """The nearest code of each affinity in [0, 1] or NaN."""
    scaled = affinity * affinity.dtype.type(UNKNOWN - 1)
    np.rint(scaled, out=scaled)
    missing = np.isnan(scaled)
    if missing.any():
        scaled[missing] = UNKNOWN
    return scaled.astype(np.uint16)


def decoded(codes: Codes) -> NDArray[np.float32]:
    """What the codes stand for, within half a STEP of what was encoded; a fresh array."""
    out = codes.astype(np.float32)
    out[codes == UNKNOWN] = np.nan
    out *= np.float32(STEP)
    return out


class CodeFile:
    """A matrix of codes in a file of its own, which is removed with the last reference to it.

    Parameters
    ----------
    shape : tuple of int
    folder : Path or None
        Where the file is made, 2 bytes an entry; it has to exist. None for the system's temporary folder.

    Raises
    ------
    OSError
        The folder does not exist or has too little room; nothing is left behind.

    Notes
    -----
    Rows are written through the file and not through the map, so filling it takes no memory of the process: what was
    written is the system's to keep or to drop.
    """

    def __init__(self, shape: tuple[int, int], folder: Path | None = None) -> None:
        self.shape = shape
        handle, name = tempfile.mkstemp(prefix="revmatch-", suffix=".u16", dir=folder)
        self.path = Path(name)
        self._remove = weakref.finalize(self, _close, handle, name)
        self._handle = handle
        try:
            size = 2 * shape[0] * shape[1]
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, size)  # no room is said now and not by a crash later
            else:
                os.truncate(handle, size)
            self.codes: Codes = np.memmap(name, dtype=np.uint16, mode="r", shape=shape)
        except OSError:
            self._remove()
            raise

    def write(self, row: int, codes: Codes) -> None:
        """One row. Threads may write different rows at the same time."""
        data = memoryview(np.ascontiguousarray(codes).tobytes())
        at = 2 * row * self.shape[1]
        while data.nbytes:
            done = os.pwrite(self._handle, data, at)
            data, at = data[done:], at + done


def _close(handle: int, name: str) -> None:
    os.close(handle)
    Path(name).unlink(missing_ok=True)
