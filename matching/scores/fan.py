"""Where a sweep over all pairs is computed: threads of this process, or any `concurrent.futures.Executor`.

A sweep is cut into strips of rows (or of columns). What is found in a strip is a pure function of the sweep and the
strip, every product is computed by one thread, and answers are put together in the order of the strips. So a sweep has
the same result, to the last bit, whoever computes it and however many there are.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from matching.errors import InvalidParamsError
from matching.resources import executor_issues
from matching.scores.desk import KEPT, Missing, Raised, answered
from matching.vectors.threads import cores, one_blas_thread

__all__ = ["HEIGHT", "WIDTH", "Sweep", "strips", "sweeping", "swept", "tiles"]

HEIGHT = 512  # lines of a strip
WIDTH = 2048  # of the other side, looked at together: 4 MB in float32, about a core's share of fast memory
TASKS_A_WORKER = 4  # strips are sent together, in this many parcels for each worker: some workers are slower
ASSUMED_WORKERS = 4  # of an executor that does not say how many it has
PATIENCE = 30.0  # seconds without any answer from an executor after which its strips are computed here as well

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
    another one itself; so are all of scores that cannot be pickled, and those of an executor that answers nothing for
    half a minute. What a strip raises is raised here.

    Raises
    ------
    InvalidParamsError
        ``wrong-type``: it takes no work.
    """
    if executor is None:
        yield
        return
    abroad = _abroad(executor)
    if abroad is not _ABROAD.get():
        abroad.look_again()
    before = _ABROAD.set(abroad)
    try:
        yield
    finally:
        _ABROAD.reset(before)


def _abroad(executor: Executor) -> _Abroad:
    if issues := executor_issues(executor):
        raise InvalidParamsError(issues=issues)
    try:
        return _KNOWN.setdefault(executor, _Abroad(executor))
    except TypeError:  # it has no hash, so nothing is known of it from one plan to the next
        return _Abroad(executor)


@dataclass
class _Large:
    """A large part, held on to so that no other takes its id, and where a cluster keeps it for its workers."""

    name: str
    value: Any
    packed: bytes
    sent: bool = False
    place: Any = None
    checked: bool = True

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
        self._lock = Lock()  # several threads may plan with one executor
        self._silent = False  # whether the last sweep got no answer at all
        # Dask's executor knows its client, which can keep values in the cluster; executors as such cannot
        client = getattr(executor, "_client", None)
        self._client: Any = client if hasattr(client, "scatter") and hasattr(client, "nthreads") else None

    def look_again(self) -> None:
        """From one plan to the next an operator may have changed: what was sent of it is compared before it is used."""
        with self._lock:
            for value in self._sent_values.values():
                value.checked = False

    def swept(self, sweep: Sweep[Found], parts: Sequence[slice]) -> list[Found] | None:
        """The answers, or None where the executor is of no use for these scores."""
        executor = self._executor()
        if executor is None:
            return None
        if isinstance(executor, ThreadPoolExecutor):
            return _by_threads(executor, sweep, parts)
        workers = self._workers(executor)
        if not workers:
            log.info("the executor has no workers; the sweep stays in this process")
            return None
        try:
            large = {value.name: value for value in map(self._large, sweep.large)}
            packed = _packed(sweep, list(large))
        except Exception as error:  # pickling fails in as many ways as there are classes
            log.info("these scores cannot be sent to other processes (%s); the sweep stays in this one", error)
            return None
        call = partial(answered, uuid4().hex, packed, tuple(large))
        parcels = _parcels(parts, workers * TASKS_A_WORKER)
        fresh = [name for name, value in large.items() if not value.sent]
        takes = True

        def submitted(wanted: Iterable[str], parcel: list[slice]) -> Future[Any] | None:
            """A parcel on its way, with some large parts; None where the executor takes no more."""
            nonlocal takes
            try:
                if takes:
                    return executor.submit(call, {name: large[name].parcelled(self._client) for name in wanted}, parcel)
            except Exception as error:  # broken, shut down, or no room: whatever it is, the strips can be done here
                log.info("the executor takes no strips: %r", error)
                takes = False
            return None

        # a parcel for each worker takes along what is new; a worker that got none of these says what it lacks
        running = [submitted(fresh if place < workers else [], parcel) for place, parcel in enumerate(parcels)]
        for value in large.values():
            value.sent = True
        wait = _Wait(running, submitted, list(large), 0.0 if self._silent else PATIENCE)
        answers: list[list[Found] | None] = []
        try:
            for place, parcel in enumerate(parcels):
                answer = wait.answer(place, parcel)
                answers.append(list(_here(sweep, parcel)) if isinstance(answer, _Silence) else answer)
        finally:
            for future in wait.running:
                if future is not None:
                    future.cancel()
        self._silent = not wait.heard
        if self._silent:
            log.warning("the executor answered nothing; all strips are computed in this process")
        lost = [part for parcel, answer in zip(parcels, answers, strict=True) if answer is None for part in parcel]
        if lost and not self._silent:
            log.warning("%d of %d strips are computed in this process: their workers are gone", len(lost), len(parts))
        redone = _here(sweep, lost) if lost else iter(())
        out: list[Found] = []
        for parcel, answer in zip(parcels, answers, strict=True):
            out += [next(redone) for _ in parcel] if answer is None else answer
        return out

    def _large(self, value: Any) -> _Large:
        """A large part and what is sent of it; only the last few are kept."""
        with self._lock:
            known = self._sent_values.get(id(value))
            if known is None or not known.checked:
                packed = pickle.dumps(value, protocol=5)
                if known is None or known.packed != packed:
                    known = self._sent_values[id(value)] = _Large(uuid4().hex, value, packed)
                known.checked = True
            self._sent_values.move_to_end(id(value))
            while len(self._sent_values) > KEPT:
                self._sent_values.popitem(last=False)
            return known

    def _workers(self, executor: Executor) -> int:
        """Strips the executor computes at the same time, where it says so."""
        if self._client is None:
            told = getattr(executor, "_max_workers", None)
            return told if isinstance(told, int) and told > 0 else ASSUMED_WORKERS
        try:
            return int(sum(self._client.nthreads().values()))
        except Exception as error:
            log.info("the cluster does not answer: %r", error)
            return 0


def _by_threads(executor: ThreadPoolExecutor, sweep: Sweep[Found], parts: Sequence[slice]) -> list[Found] | None:
    """The answers of a pool of threads. What none of them has begun is done by this one, which may be one of them."""
    running: list[Future[Found]] = []
    with one_blas_thread():
        answer = sweep.begin()
        try:
            for part in parts:
                running.append(executor.submit(answer, part))
            return [
                answer(part) if future.cancel() else future.result()
                for part, future in zip(parts, running, strict=True)
            ]
        except RuntimeError as error:
            if len(running) == len(parts) and not isinstance(error, BrokenExecutor):  # a strip's own
                raise
            log.info("the pool takes no strips: %r", error)
            return None
        finally:
            for future in running:
                future.cancel()


@dataclass(frozen=True)
class _Silence:
    """In the place of an answer: nothing has come for too long."""


class _Wait:
    """What comes of parcels, each sent a second time if its worker is gone."""

    def __init__(
        self,
        running: list[Future[Any] | None],
        submitted: Callable[[Iterable[str], list[slice]], Future[Any] | None],
        names: Sequence[str],
        patience: float,
    ) -> None:
        self.running, self.heard = running, False
        self._submitted, self._names, self._patience = submitted, names, patience
        self._last = monotonic()

    def answer(self, place: int, parcel: list[slice]) -> Any:
        """What was found, None where the worker is gone for good, _Silence where nobody says anything any more."""
        again, wanted = True, set[str]()
        while (future := self.running[place]) is not None:
            try:
                found = future.result(timeout=max(0.0, self._last + self._patience - monotonic()))
            except (Exception, CancelledError) as error:
                if isinstance(error, TimeoutError) and not future.done():
                    return _Silence()
                log.info("a parcel of strips is lost: %r", error)
                self.running[place] = self._submitted(self._names, parcel) if again else None
                again = False
                continue
            self._last, self._patience, self.heard = monotonic(), PATIENCE, True
            if isinstance(found, Raised):
                raise found.error
            if not isinstance(found, Missing):
                return found
            if wanted.issuperset(found.names):  # it was sent what it says it lacks
                return None
            wanted.update(found.names)  # all of it, since another worker may lack what the last one had
            self.running[place] = self._submitted(sorted(wanted), parcel)
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


_KNOWN: WeakKeyDictionary[Executor, _Abroad] = WeakKeyDictionary()
_ABROAD: ContextVar[_Abroad | None] = ContextVar("executor of sweeps", default=None)


def _forked() -> None:
    """A process forked during a sweep has a copy of its executor, and nobody who works for it."""
    _ABROAD.set(None)
    _KNOWN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
