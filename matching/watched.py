"""A run in a process of its own, ended from outside when its limit has passed.

A limit inside a process acts between steps: native code that never comes back, or a step that takes an hour, is out of
its reach. `recommend_within` gives the run a process and watches it. Whatever happens there, hanging and dying
included, the caller's process goes on.

The two speak in pickles, the request over the child's standard input, everything else over its standard output. They
come from this very module at the other end and from nowhere else. The child is a fresh interpreter, never a fork: locks
and thread pools of the caller do not come along, and the caller's main script is not run a second time.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from types import MappingProxyType
from typing import IO, Any

from matching.errors import InvalidParamsError, Issue, MatchingError, SolverError
from matching.notices import Notice
from matching.params import Params
from matching.plan.plan import AssignmentPlan
from matching.profiles.venue import Venue
from matching.resources import Resources
from matching.solvers.base import Progress, ProgressCallback

__all__ = ["FINISHING", "GRACE", "recommend_within", "serve"]

GRACE = 10.0  # seconds a run may take beyond its limit: the limit acts between steps, and a step takes its time
FINISHING = 60.0  # seconds to audit and hand over a plan that has been found; no solver is at work any more
LONGEST = 3600.0  # seconds of one wait; longer ones overflow on some machines
STARTING = 300.0  # seconds until the child has loaded its libraries; a guard against a broken machine, not a limit
FOUND = ("audit", "report")  # phases in which there is a plan

CHILD = "import sys; sys.path[:] = {path!r}; from matching.watched import serve; serve()"

Message = tuple[str, Any]
"""("ready", None), ("progress", Progress), ("plan", AssignmentPlan), ("error", exception), last ("gone", None)."""


def recommend_within(
    venue: Venue,
    params: Params,
    *,
    progress: ProgressCallback | None = None,
    resources: Resources | None = None,
    grace: float = GRACE,
    engine: Any = None,
    start: AssignmentPlan | None = None,
) -> AssignmentPlan:
    """`matching.recommend` in a process of its own, which is killed if it outlives its time limit.

    Parameters
    ----------
    venue : Venue
    params : Params
        Its `time_limit` counts from when the process has started and loaded its libraries; None for no limit.
    progress : callable, optional
        Called in this process with each Progress. What it raises ends the run at once and passes through, as do
        interrupts such as Ctrl-C, in whatever the run is caught.
    resources : Resources, optional
        As for `recommend`, without an executor.
    grace : float
        Seconds beyond the limit after which a run that does not end by itself is killed; one that has found a plan
        gets `FINISHING` seconds to audit and hand it over. Not negative.
    engine : object, optional
        Has a `recommend` and can be pickled; None for `matching.engine`.
    start : AssignmentPlan, optional
        As for `recommend`.

    Returns
    -------
    AssignmentPlan
        That of `recommend`. Of a run that was killed: status "limit_without_plan", no assignments, nothing proven, and
        a notice ``stopped-from-outside``.

    Raises
    ------
    SolverError
        The process died before it was done.
    MatchingError
        As `recommend`.
    """
    if resources is not None and resources.executor is not None:
        reason = "belongs to this process and cannot be handed to another one; plan with recommend, or without it"
        raise InvalidParamsError(issues=[Issue(reason, "wrong-type", "executor", source="resources")])
    further = {} if start is None else {"start": start}
    request = (venue, params, resources, progress is not None, engine, further)
    with _child(_packed(request)) as messages:
        started, limit = False, params.time_limit
        until = time.monotonic() + STARTING
        while True:
            try:
                kind, what = messages.get(timeout=max(0.0, min(until - time.monotonic(), LONGEST)))
            except queue.Empty:
                if time.monotonic() < until:
                    continue
                break
            if kind == "ready":
                started, until = True, math.inf if limit is None else time.monotonic() + limit + grace
            elif kind == "progress":
                if what.phase in FOUND:
                    until = max(until, time.monotonic() + FINISHING)
                if progress is not None:
                    progress(what)
            elif kind == "plan":
                return what  # type: ignore[no-any-return]
            elif kind == "error":
                raise what
            else:
                raise SolverError("the process of the run died before it was done", status="process-died")
    if limit is None or not started:
        raise SolverError("the process of the run did not start", status="process-silent")
    from matching.engine import unsolved  # here, as the watcher itself needs no solver

    return unsolved(venue, params, _stopped(limit, grace))


def _stopped(limit: float, grace: float) -> Notice:
    return Notice(
        "stopped-from-outside",
        f"the run went on {grace:g} seconds beyond its time limit of {limit:g} seconds and was stopped from outside: "
        "there is no plan.",
        data={"time_limit": limit, "grace": grace},
    )


@contextlib.contextmanager
def _child(request: bytes) -> Iterator[queue.SimpleQueue[Message]]:
    """A process at work on a request and what it says; dead at the end of the block, however that comes."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(path=[os.path.abspath(part) for part in sys.path])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=_talk, args=(process, request, messages), name="watched-run", daemon=True).start()
    try:
        yield messages
    finally:
        process.kill()
        process.wait()


def _talk(process: subprocess.Popen[bytes], request: bytes, messages: queue.SimpleQueue[Message]) -> None:
    """Hands the request over, then the messages on; ends with the process."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):  # all of them: it is gone, or was killed
        process.stdin.write(request)
        process.stdin.flush()  # left open: its end tells the child that nobody waits any more
        while True:
            messages.put(pickle.load(process.stdout))
    messages.put(("gone", None))
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()


# ---- in the child ---------------------------------------------------------------------------------------------


def serve() -> None:
    """One request from standard input, answered on standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes, and the other one decides
    source = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the answers
    try:
        venue, params, resources, wants_progress, engine, further = pickle.load(source)
        threading.Thread(target=_leave_with, args=(source,), daemon=True).start()
        if engine is None:
            import matching.engine as engine
        _send(answers, ("ready", None))

        def tell(report: Progress) -> None:
            if wants_progress or report.phase in FOUND:
                _send(answers, ("progress", report))

        message: Message = ("plan", engine.recommend(venue, params, progress=tell, resources=resources, **further))
    except BrokenPipeError:
        return
    except BaseException as error:
        if not isinstance(error, MatchingError):
            error.add_note(traceback.format_exc())  # a traceback cannot be pickled
        message = ("error", error)
    _send(answers, message)


def _leave_with(source: IO[bytes]) -> None:
    """Ends this process when the other one has gone: whoever asked was killed, and nobody waits."""
    source.read()
    os._exit(1)


def _send(answers: IO[bytes], message: Message) -> None:
    try:
        data = _packed(message)
    except Exception:
        kind, what = message
        if kind != "error":
            raise
        data = _packed((kind, SolverError(f"the run failed with {type(what).__name__}: {what}")))
    answers.write(data)
    answers.flush()


class _Pickler(pickle.Pickler):
    """Knows read-only mappings, which records and options hold and pickle does not."""

    def reducer_override(self, obj: Any) -> Any:
        return (_read_only, (dict(obj),)) if isinstance(obj, MappingProxyType) else NotImplemented


def _read_only(table: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(table)


def _packed(what: Any) -> bytes:
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(what)
    return stream.getvalue()
