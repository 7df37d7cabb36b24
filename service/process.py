"""Which process a row of the database speaks of, and whether that process is gone."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LIVE", "Process", "this_process"]

_TOKEN = uuid.uuid4().hex

LIVE: set[str] = {_TOKEN}
"""Tokens in use within this process: its own, and one for each part that signs rows by itself."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process as written into a row, ``role/host/pid/token``."""

    role: str
    host: str
    pid: int
    token: str

    def __str__(self) -> str:
        return f"{self.role}/{self.host}/{self.pid}/{self.token}"

    @classmethod
    def parse(cls, text: str | None) -> Process | None:
        """The process a text names; None where it names none."""
        parts = (text or "").split("/")
        return cls(parts[0], parts[1], int(parts[2]), parts[3]) if len(parts) == 4 and parts[2].isdigit() else None

    def is_gone(self) -> bool:
        """Whether the process is gone for certain; one on another machine never is."""
        if self.host != socket.gethostname() or os.name != "posix":
            return False
        if self.pid == os.getpid():
            # in a container every process before this one had the same number, too
            return self.token not in LIVE
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return _is_zombie(self.pid)


def this_process(role: str, token: str = _TOKEN) -> Process:
    """The process that asks, by the number it has now: a server may have forked since this module was loaded."""
    return Process(role, socket.gethostname(), os.getpid(), token)


def _is_zombie(pid: int) -> bool:
    """Whether it ended and nobody took note yet; told by Linux only."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return told.rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
