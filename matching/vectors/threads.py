"""How many cores there are, and products that do not show how many were used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["cores", "one_blas_thread"]


def cores() -> int:
    """Cores this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Products inside are computed by the calling thread alone.

    A product that is split over threads is summed in another order, and its last digits change with their number.
    Work is spread by giving each thread its own product instead, which is also faster.

    Notes
    -----
    The limit is one for the whole process. Threads may be inside at the same time: the first to enter sets it and the
    last to leave takes it back, in whatever order they leave.
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _Limit:
    """The limit of this process, and how many are inside."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._held: Any = None
        self._libraries: tuple[int, Any] = (0, None)

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._held is None:
                self._held = self._found().limit(limits=1, user_api="blas")

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._held.restore_original_limits()
                self._held = None

    def _found(self) -> Any:
        """The libraries that compute products; looked for again, in a millisecond, once more modules are loaded."""
        if self._libraries[0] != len(sys.modules):
            self._libraries = len(sys.modules), ThreadpoolController()
        return self._libraries[1]


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):  # another thread may hold the lock at that moment; the copy would never be free
    os.register_at_fork(after_in_child=_LIMIT.__init__)  # type: ignore[misc]
