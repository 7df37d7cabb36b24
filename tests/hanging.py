"""Engines for runs in a process of their own; what they do is the seed of the parameters."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from matching.errors import InvalidVenueError, Issue
from matching.solvers.base import Progress, Status

HANG, DIE, REFUSE, CRASH, AUDIT, LONG = range(2001, 2007)


class Hanging:
    """Says its process id first, as a value, and prints what must not get among the answers."""

    def recommend(self, venue, params, *, progress, resources=None):
        print("a library greets", flush=True)
        progress(Progress("flow", 0.1, value=float(os.getpid())))
        if params.rng == HANG:
            ctypes.PyDLL(None).sleep(600)  # native code that holds the interpreter's lock
        if params.rng == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if params.rng == REFUSE:
            raise InvalidVenueError(issues=[Issue("x is above y", "contradiction", "x", 1, 3, "reviewers")])
        if params.rng == CRASH:
            raise KeyError("a fault of the engine")
        if params.rng == AUDIT:
            progress(Progress("audit", 0.9))
            time.sleep(0.5)
        if params.rng == LONG:
            time.sleep(600)
        return Status.OPTIMAL


def is_gone(process: int) -> bool:
    """Whether a process has ended; one whose parent has not asked yet counts as ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
