"""How many cores there are, and products that do not show how many were used."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits

__all__ = ["cores", "one_blas_thread"]


def cores() -> int:
    """Cores this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """Products inside are computed by the calling thread alone.

    A product that is split over threads is summed in another order, and its last digits change with their number.
    Work is spread by giving each thread its own product instead, which is also faster.
    """
    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits
