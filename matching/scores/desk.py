"""What a worker process does for a sweep: it keeps large parts, lays the sweep out and answers for parcels of strips.

Its other end is `matching.scores.fan`.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from matching.vectors.threads import one_blas_thread

__all__ = ["KEPT", "Missing", "Raised", "answered"]

KEPT = 4  # large values a worker process keeps, and its home the bytes of; those of a sweep are one or two


@dataclass(frozen=True)
class Missing:
    """What a worker answers that lacks large parts."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Raised:
    """What a worker answers where a strip raised: a fault of the strip and not of the worker."""

    error: Exception


class _Desk:
    """What a worker process keeps between parcels."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._large: OrderedDict[str, Any] = OrderedDict()
        self._begun: tuple[str, Callable[[slice], Any]] | None = None

    def answer_of(
        self, token: str, packed: bytes, names: Sequence[str], large: dict[str, bytes]
    ) -> Callable[[slice], Any] | Missing:
        """What answers for the strips of a sweep; the large parts it lacks, where it lacks some."""
        with self._lock:
            if self._begun is not None and self._begun[0] == token:
                return self._begun[1]
            self._begun = None
            for name in names:
                if name not in self._large and name in large:
                    self._large[name] = pickle.loads(large[name])
            missing = tuple(name for name in names if name not in self._large)
            if missing:
                return Missing(missing)
            for name in names:
                self._large.move_to_end(name)
            kept = self._large

            class Unpacker(pickle.Unpickler):
                def persistent_load(self, name: str) -> Any:
                    return kept[name]

            answer: Callable[[slice], Any] = Unpacker(io.BytesIO(packed)).load().begin()
            while len(self._large) > max(KEPT, len(names)):
                self._large.popitem(last=False)
            self._begun = token, answer
            return answer


_DESK = _Desk()


def answered(
    token: str, packed: bytes, names: tuple[str, ...], large: dict[str, bytes], parcel: list[slice]
) -> list[Any] | Missing | Raised:
    """A parcel of strips, in a worker. What keeps it from beginning is raised: its home may still be able to."""
    with one_blas_thread():
        answer = _DESK.answer_of(token, packed, names, large)
        if isinstance(answer, Missing):
            return answer
        try:
            return [answer(part) for part in parcel]
        except MemoryError:  # no fault of the strip: elsewhere there may be room
            raise
        except Exception as error:
            return Raised(pickle.loads(pickle.dumps(error)))  # what cannot travel is raised here, and again at home


def _forked() -> None:
    global _DESK
    _DESK = _Desk()  # another thread may have held the lock of the one before


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
