"""Where the seconds of a run go, when it ends, and how far two sums may differ by rounding alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ROUNDING", "Clock", "slack_of"]

ROUNDING = 1e-9  # relative rounding of sums over a plan; gaps below it are 0


def slack_of(value: float) -> float:
    """Differences up to this are the rounding of float64 sums."""
    return ROUNDING * max(1.0, abs(value))


class Clock:
    """Seconds a stage and what is left of the limit."""

    def __init__(self, time_limit: float | None) -> None:
        self.start = time.perf_counter()
        self.limit = time_limit
        self.stages: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the seconds spent inside to the stage `name`."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - begin

    @property
    def seconds(self) -> float:
        """Since the clock was made."""
        return time.perf_counter() - self.start

    @property
    def over(self) -> bool:
        """Whether the limit has passed."""
        return self.limit is not None and self.seconds > self.limit

    @property
    def left(self) -> float | None:
        """Seconds to the limit, at least 0; None without one."""
        return None if self.limit is None else max(0.0, self.limit - self.seconds)
