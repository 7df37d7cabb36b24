"""The process behind `revmatch serve`: API, store and worker on a laptop, in one command."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from dataclasses import replace
from types import FrameType
from typing import NoReturn

import structlog
import waitress

from matching.errors import Issue
from service.app import create_app
from service.config import Settings
from service.errors import SettingsError
from service.wiring import build

__all__ = ["run"]

THREADS = 8  # requests handled at once; plans are computed elsewhere, so a request is short


def run(host: str | None = None, port: int | None = None, database_url: str | None = None) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    host, port, database_url : optional
        Replace what the environment says.

    Raises
    ------
    SettingsError (``invalid-settings``)
        Settings that cannot work or are not safe: no token on an address beyond loopback, a port in use.
    """
    settings = Settings.from_environment()
    settings = replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        database_url=settings.database_url if database_url is None else database_url,
    )
    settings.check()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO), logger_factory=_to_stderr)
    listener = _listen(settings)
    services = build(settings)
    try:
        app = create_app(settings, services)
        server = waitress.create_server(
            app,
            sockets=[listener],
            threads=THREADS,
            max_request_body_size=settings.max_body_bytes + 1,  # the app answers 413 itself, as a problem document
            ident=None,
        )
        signal.signal(signal.SIGTERM, _stop)
        address = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{address}:{listener.getsockname()[1]}"
        print(f"revmatch listens on {url} and describes its API at {url}/v1/docs. Ctrl-C stops it.", flush=True)
        try:
            server.run()
        except (KeyboardInterrupt, SystemExit):
            print("stopping", flush=True)
        finally:
            server.close()
    finally:
        services.close()


def _listen(settings: Settings) -> socket.socket:
    """The listening socket, opened before anything else so that a taken port is told at once."""
    try:
        kind, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(kind, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        issue = Issue(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}", "cannot-listen"
        )
        raise SettingsError(issues=[issue]) from error
    return listener


def _stop(signum: int, frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def _to_stderr(*args: object) -> structlog.PrintLogger:
    return structlog.PrintLogger(sys.stderr)
