"""Where a sweep over all pairs is computed: threads of this process, or any `concurrent.futures.Executor`.

A sweep is cut into strips of rows (or of columns). What is found in a strip is a pure function of the sweep and the
strip, every product is computed by one thread, and answers are put together in the order of the strips. So a sweep has
the same result, to the last bit, whoever computes it and however many there are.
"""

from __future__ import annotations

import io
import logging
import pickle
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Lock
from typing import Any, Generic, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from matching.vectors.threads import cores, one_blas_thread

__all__ = ["HEIGHT", "WIDTH", "Sweep", "strips", "sweeping", "swept", "tiles"]

HEIGHT = 512  # lines of a strip
WIDTH = 2048  # of the other side, looked at together: 4 MB in float32, about a core's share of fast memory
TASKS_A_WORKER = 4  # strips are sent together, in this many parcels for each worker: some workers are slower
ASSUMED_WORKERS = 4  # of an executor that does not say how many it has
KEPT = 4  # large values a worker process keeps; those of a sweep are one or two

log = logging.getLogger(__name__)
Found = TypeVar("Found")


def strips(n_lines: int) -> list[slice]:
    """Lines in groups of HEIGHT."""
    return [slice(first, min(first + HEIGHT, n_lines)) for first in range(0, n_lines, HEIGHT)]


def tiles(n_other: int) -> list[slice]:
    """The other side of a strip in groups of WIDTH."""
    return [slice(first, min(first + WIDTH, n_other)) for first in range(0, n_other, WIDTH)]


class Sweep(ABC, Generic[Found]):
    """What is looked for in every strip. Picklable where it is to reach other processes."""

    @property
    def large(self) -> tuple[Any, ...]:
        """Parts that stay the same from sweep to sweep; a worker process is sent them once."""
        return ()

    @abstractmethod
    def begin(self) -> Callable[[slice], Found]:
        """What answers for one strip, laid out once in each process; several threads call it at the same time."""


def swept(sweep: Sweep[Found], parts: Sequence[slice]) -> Iterator[Found]:
    """The answers for some strips, in their order."""
    abroad = _ABROAD.get()
    found = None if abroad is None or len(parts) < 2 else abroad.swept(sweep, parts)
    return iter(found) if found is not None else _here(sweep, parts)


def _here(sweep: Sweep[Found], parts: Sequence[slice]) -> Iterator[Found]:
    """As many threads as there are cores."""
    with one_blas_thread():
        answer, count = sweep.begin(), min(cores(), len(parts))
        if count <= 1:
            yield from map(answer, parts)
            return
        with ThreadPoolExecutor(count, thread_name_prefix="sweep") as pool:
            yield from pool.map(answer, parts)


@contextmanager
def sweeping(executor: Executor | None) -> Iterator[None]:
    """Sweeps of this thread inside are computed by `executor`; None leaves things as they are.

    Parameters
    ----------
    executor : Executor or None
        Threads, processes or a cluster, such as `concurrent.futures.ProcessPoolExecutor` or what
        ``distributed.Client.get_executor()`` gives. It is not shut down.

    Notes
    -----
    A worker is sent the scores once, and then prices for each sweep. What it keeps of them it gives up for others
    that come later. Strips of a worker that dies are computed in this process, unless the executor gives them to
    another one itself; so are all of scores that cannot be pickled. What a strip raises is raised here.
    """
    if executor is None:
        yield
        return
    before = _ABROAD.set(_KNOWN.setdefault(executor, _Abroad(executor)))
    try:
        yield
    finally:
        _ABROAD.reset(before)


@dataclass(frozen=True)
class _Missing:
    """What a worker answers that lacks large parts."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class _Raised:
    """What a worker answers where a strip raised: a fault of the strip and not of the worker."""

    error: Exception


@dataclass
class _Large:
    """A large part, held on to so that no other takes its id, and where a cluster keeps it for its workers."""

    name: str
    value: Any
    packed: bytes
    sent: bool = False
    place: Any = None

    def parcelled(self, client: Any) -> Any:
        """What is put into a parcel: the bytes, or for a cluster their place, from where each worker fetches them."""
        if client is None:
            return self.packed
        if self.place is None or self.place.status != "finished":  # the worker that had them may be gone
            self.place = client.scatter(self.packed, hash=False)
        return self.place


class _Abroad:
    """Sweeps by way of an executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = ref(executor)  # this lives as long as the executor
        self._sent_values: OrderedDict[int, _Large] = OrderedDict()
        # Dask's executor knows its client, which can keep values in the cluster; executors as such cannot
        client = getattr(executor, "_client", None)
        self._client: Any = client if hasattr(client, "scatter") and hasattr(client, "nthreads") else None

    def swept(self, sweep: Sweep[Found], parts: Sequence[slice]) -> list[Found] | None:
        """The answers, or None where the executor is of no use for these scores."""
        executor = self._executor()
        if executor is None:
            return None
        if isinstance(executor, ThreadPoolExecutor):
            with one_blas_thread():
                return list(executor.map(sweep.begin(), parts))
        try:
            large = {value.name: value for value in map(self._large, sweep.large)}
            packed = _packed(sweep, list(large))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            log.info("these scores cannot be sent to other processes (%s); the sweep stays in this one", error)
            return None
        call = partial(_answered, uuid4().hex, packed, tuple(large))
        workers = self._workers(executor)
        parcels = _parcels(parts, workers * TASKS_A_WORKER)
        fresh = [name for name, value in large.items() if not value.sent]

        def submitted(wanted: Sequence[str], parcel: list[slice]) -> Future[Any] | None:
            """A parcel on its way, with some large parts; None where the executor takes no more."""
            try:
                return executor.submit(call, {name: large[name].parcelled(self._client) for name in wanted}, parcel)
            except RuntimeError:  # broken, or shut down
                return None

        # a parcel for each worker takes along what is new; a worker that got none of these says what it lacks
        running = [submitted(fresh if place < workers else [], parcel) for place, parcel in enumerate(parcels)]
        for value in large.values():
            value.sent = True
        try:
            answers = [
                _waited(future, submitted, parcel, list(large)) for parcel, future in zip(parcels, running, strict=True)
            ]
        except BaseException:
            for future in running:
                if future is not None:
                    future.cancel()
            raise
        lost = [part for parcel, answer in zip(parcels, answers, strict=True) if answer is None for part in parcel]
        if lost:
            log.warning("%d of %d strips are computed in this process: their workers are gone", len(lost), len(parts))
        redone = _here(sweep, lost) if lost else iter(())
        out: list[Found] = []
        for parcel, answer in zip(parcels, answers, strict=True):
            out += [next(redone) for _ in parcel] if answer is None else answer
        return out

    def _large(self, value: Any) -> _Large:
        """A large part and what is sent of it; only the last few are kept."""
        known = self._sent_values.get(id(value))
        if known is None:
            known = self._sent_values[id(value)] = _Large(uuid4().hex, value, pickle.dumps(value, protocol=5))
        self._sent_values.move_to_end(id(value))
        while len(self._sent_values) > KEPT:
            self._sent_values.popitem(last=False)
        return known

    def _workers(self, executor: Executor) -> int:
        """Strips the executor computes at the same time, where it says so."""
        if self._client is not None:
            return max(1, int(sum(self._client.nthreads().values())))
        return int(getattr(executor, "_max_workers", None) or ASSUMED_WORKERS)


def _waited(
    future: Future[Any] | None,
    submitted: Callable[[Sequence[str], list[slice]], Future[Any] | None],
    parcel: list[slice],
    names: Sequence[str],
) -> Any:
    """What came of a parcel, sent a second time if its worker is gone; None where that helps nothing."""
    again = True
    while future is not None:
        try:
            found = future.result()
        except (Exception, CancelledError) as error:
            log.info("a parcel of strips is lost: %r", error)
            future, again = submitted(names, parcel) if again else None, False
            continue
        if isinstance(found, _Raised):
            raise found.error
        if not isinstance(found, _Missing):
            return found
        future = submitted(found.names, parcel)
    return None


def _parcels(parts: Sequence[slice], most: int) -> list[list[slice]]:
    """Neighbouring strips together, in at most so many parcels of about the same size."""
    cuts = [len(parts) * at // min(most, len(parts)) for at in range(min(most, len(parts)) + 1)]
    return [list(parts[first:last]) for first, last in pairwise(cuts)]


def _packed(sweep: Sweep[Any], names: Sequence[str]) -> bytes:
    """A sweep with the names of its large parts in their place."""
    place = {id(value): name for name, value in zip(names, sweep.large, strict=True)}

    class Packer(pickle.Pickler):
        def persistent_id(self, value: Any) -> str | None:
            return place.get(id(value))

    out = io.BytesIO()
    Packer(out, protocol=5).dump(sweep)
    return out.getvalue()


class _Desk:
    """What a worker process keeps between parcels."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._large: OrderedDict[str, Any] = OrderedDict()
        self._begun: tuple[str, Callable[[slice], Any]] | None = None

    def answer_of(
        self, token: str, packed: bytes, names: Sequence[str], large: dict[str, bytes]
    ) -> Callable[[slice], Any] | _Missing:
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
                return _Missing(missing)
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


def _answered(
    token: str, packed: bytes, names: tuple[str, ...], large: dict[str, bytes], parcel: list[slice]
) -> list[Any] | _Missing | _Raised:
    """A parcel of strips, in a worker. What keeps it from beginning is raised: its home may still be able to."""
    with one_blas_thread():
        answer = _DESK.answer_of(token, packed, names, large)
        if isinstance(answer, _Missing):
            return answer
        try:
            return [answer(part) for part in parcel]
        except Exception as error:
            return _Raised(pickle.loads(pickle.dumps(error)))  # what cannot travel is raised here, and again at home


_KNOWN: WeakKeyDictionary[Executor, _Abroad] = WeakKeyDictionary()
_ABROAD: ContextVar[_Abroad | None] = ContextVar("executor of sweeps", default=None)
