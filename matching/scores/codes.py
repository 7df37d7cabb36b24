"""Affinities of a large venue as 16-bit codes in a file that is mapped into memory."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matching.errors import StorageError

__all__ = ["STEP", "UNKNOWN", "CodeFile", "decoded", "encoded"]

log = logging.getLogger(__name__)

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
    StorageError
        ``storage-error``: the folder does not exist, is closed or has too little room; nothing is left behind.

    Notes
    -----
    Rows are written through the file and not through the map, so filling it takes no memory of the process: what was
    written is the system's to keep or to drop.
    """

    def __init__(self, shape: tuple[int, int], folder: Path | None = None) -> None:
        self.shape, self._folder = shape, folder
        try:
            handle, name = tempfile.mkstemp(prefix="revmatch-", suffix=".u16", dir=folder)
        except OSError as error:
            raise self._no_room(error) from error
        self.path = Path(name)
        self._remove = weakref.finalize(self, _close, handle, name)
        self._handle = handle
        try:
            _reserve(handle, self.bytes)  # no room is said now and not by a crash later
            self.codes: Codes = np.memmap(name, dtype=np.uint16, mode="r", shape=shape)
        except OSError as error:
            self._remove()
            raise self._no_room(error) from error

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return 2 * self.shape[0] * self.shape[1]

    def _no_room(self, error: OSError) -> StorageError:
        # the path is the operator's to know; the message may reach whoever asked for a plan
        log.error("no file of %d bytes in %s: %s", self.bytes, self._folder or "the temporary folder", error)
        where = "the temporary folder (TMPDIR)" if self._folder is None else f"the folder {self._folder.name}"
        return StorageError(
            f"affinities of {self.shape[0]} submissions x {self.shape[1]} reviewers take {self.bytes / 1e6:.0f} MB in "
            f"{where}: {error.strerror or error}",
            bytes=self.bytes,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes of this machine: the file stays this object's, they read it while it is there."""
        return _shared, (self.shape, self.path)

    def discard(self) -> None:
        """Remove the file now; nobody may be writing or read afterwards."""
        self._remove()

    def write(self, row: int, codes: Codes) -> None:
        """One row. Threads may write different rows at the same time. Raises StorageError as making the file does."""
        data = memoryview(np.ascontiguousarray(codes).tobytes())
        at = 2 * row * self.shape[1]
        while data.nbytes:
            try:
                done = os.pwrite(self._handle, data, at)
            except OSError as error:  # other threads may be writing: the file goes with its last user
                raise self._no_room(error) from error
            data, at = data[done:], at + done


class _Shared(CodeFile):
    """The file of another process, for reading."""

    def __init__(self, shape: tuple[int, int], path: Path) -> None:
        self.shape, self.path = shape, path
        self.codes = np.memmap(path, dtype=np.uint16, mode="r", shape=shape)

    def discard(self) -> None:
        """It is not this process's to remove."""


def _shared(shape: tuple[int, int], path: Path) -> CodeFile:
    return _Shared(shape, path)


def _reserve(handle: int, size: int) -> None:
    """Make a file of a size whose room is promised, where the file system can promise any."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                raise
    os.truncate(handle, size)


def _close(handle: int, name: str) -> None:
    os.close(handle)
    Path(name).unlink(missing_ok=True)
