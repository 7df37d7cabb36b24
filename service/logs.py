"""What a process writes to its log: events with ids, never what a request or a profile said.

An exception's text and the variables of its frames may hold names, addresses and titles. An error is therefore
logged as its class and the places it passed, whoever logs it: this service, the server it runs in, or a library.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any

import structlog

from service.errors import SettingsError

__all__ = ["PlainFormatter", "configure"]

Event = MutableMapping[str, Any]

MOST_FRAMES = 25  # of one exception, the innermost ones; a recursion has thousands
FOREIGN = ("distributed", "distributed.worker", "distributed.scheduler", "gunicorn.error", "waitress")
"""Loggers of the processes we run in; the first three and gunicorn's bring handlers of their own."""

_configured = False


def configure() -> None:
    """Set up the log of this process, once; further calls change nothing.

    One event a line on standard error: JSON, or coloured text where that is a terminal.
    """
    global _configured
    if _configured:
        return
    _configured = True
    structlog.configure(
        processors=[*_steps(), _renderer()],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=_to_stderr,
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    if not root.handlers:
        own = logging.StreamHandler()
        own.setLevel(logging.WARNING)  # Dask sets its own loggers to tell more
        own.setFormatter(PlainFormatter())
        root.addHandler(own)
    for name in FOREIGN:
        for handler in logging.getLogger(name).handlers:
            handler.setFormatter(PlainFormatter())


class PlainFormatter(logging.Formatter):
    """Records of libraries in the form of our own events.

    The words of a record that carries an exception are left out: libraries put paths and arguments into them.
    """

    def format(self, record: logging.LogRecord) -> str:
        event: Event = {"event": record.name, "level": record.levelname.lower()}
        if record.exc_info and record.exc_info[1] is not None:
            event["exc_info"] = record.exc_info[1]
        elif record.levelno >= logging.ERROR and not record.name.startswith("gunicorn"):
            event["at"] = f"{record.module}:{record.lineno}"  # dask writes a task's arguments and error into its words
        else:
            event["message"] = record.getMessage()
        for step in (structlog.processors.TimeStamper(fmt="iso", utc=True), _errors_plain, _renderer()):
            event = step(None, "", event)
        return str(event)


def _steps() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _errors_plain,
    ]


def _renderer() -> Any:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer()
    return structlog.processors.JSONRenderer(default=lambda value: type(value).__name__)


def _errors_plain(logger: Any, method: str, event: Event) -> Event:
    """`exc_info` as `errors`: for each exception of the chain its class, code and frames, the outermost first."""
    given = event.pop("exc_info", None)
    error = sys.exc_info()[1] if given is True else given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["errors"] = [_described(one) for one in _chain(error)]
    return event


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        hidden = error.__cause__ is None and error.__suppress_context__
        error = None if hidden else error.__cause__ or error.__context__


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    found: dict[str, Any] = {"class": f"{kind.__module__}.{kind.__qualname__}"}
    if isinstance(code := getattr(error, "code", None), str):
        found["code"] = code
    if isinstance(error, SettingsError):
        found["detail"] = error.detail  # written for whoever starts the process, and about nobody else
    return {**found, "frames": _frames(error.__traceback__)}


def _frames(trace: TracebackType | None) -> list[str]:
    frames = [
        f"{'/'.join(Path(frame.f_code.co_filename).parts[-3:])}:{line} {frame.f_code.co_name}"
        for frame, line in traceback.walk_tb(trace)
    ]
    return frames[-MOST_FRAMES:]


def _to_stderr(*args: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)
