"""Vectors of texts kept in a folder between runs: written once, never changed, safe with several processes."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["VectorCache"]

log = logging.getLogger(__name__)

KEY = 32  # bytes of a key, a SHA-256
_MAGIC = b"revmatch vectors 1\n"
_HEADER = 64  # bytes before the first key: magic, then the length of a vector and the number of vectors
TOLERANCE = 1e-3  # of a vector's length from 1; anything else was not written by us


class VectorCache:
    """Unit vectors by key.

    Parameters
    ----------
    folder : Path
        Made if missing. Its files are only ever added: each holds some keys and their vectors and gets its name when
        it is complete, so a run that is killed leaves whole files or none, and processes need no lock. Two that
        compute the same vector both write it, which does no harm.
    dimensions : int or None
        Length of a vector; None takes any.
    """

    def __init__(self, folder: Path, dimensions: int | None = None) -> None:
        self._folder, self._dimensions = folder, dimensions

    def fetch(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        """The vectors that are there, by key. A damaged file or vector counts as not there."""
        wanted = set(keys)
        found: dict[bytes, NDArray[np.float32]] = {}
        for path in sorted(self._folder.glob("*.vec")):
            if len(found) == len(wanted):
                break
            try:
                self._read(path, wanted, found)
            except (OSError, ValueError) as error:
                log.warning("vectors in %s are not used: %s", path.name, error)
        return found

    def _read(self, path: Path, wanted: set[bytes], found: dict[bytes, NDArray[np.float32]]) -> None:
        data = np.memmap(path, dtype=np.uint8, mode="r")
        head = data[:_HEADER].tobytes()
        width, count = np.frombuffer(head.ljust(_HEADER)[-16:], dtype="<i8").tolist()
        if not head.startswith(_MAGIC) or min(width, count) < 1 or data.size != _HEADER + count * (KEY + 4 * width):
            raise ValueError("not a file of vectors, or cut short")
        if self._dimensions not in (None, width):
            raise ValueError(f"vectors of length {width}")
        split = _HEADER + count * KEY
        names = data[_HEADER:split].tobytes()
        rows = [at for at in range(count) if (key := names[at * KEY : (at + 1) * KEY]) in wanted and key not in found]
        if not rows:
            return
        vectors = data[split:].view("<f4").reshape(count, width)[rows].astype(np.float32)
        whole = np.abs(np.linalg.norm(vectors, axis=1) - 1.0) <= TOLERANCE  # False for NaN, too
        for at, vector, usable in zip(rows, vectors, whole):
            if usable:
                found[names[at * KEY : (at + 1) * KEY]] = vector

    def add(self, keys: Sequence[bytes], vectors: NDArray[np.float32]) -> None:
        """Keep vectors, float32 of shape (len(keys), dimensions). Failing to is logged: they can be computed again."""
        if not len(keys):
            return
        sizes = np.asarray([vectors.shape[1], len(keys)], dtype="<i8").tobytes()
        name = None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".part")
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC.ljust(_HEADER - len(sizes), b"\0") + sizes + b"".join(keys))
                file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._folder / f"{uuid.uuid4().hex}.vec")
            name = None
        except OSError as error:
            log.warning("%d vectors are not kept: %s", len(keys), error)
        finally:
            if name is not None:
                with contextlib.suppress(OSError):
                    os.unlink(name)
