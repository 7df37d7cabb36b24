"""The process behind `revmatch serve`: API, store and worker on a laptop, in one command."""

from __future__ import annotations

import json
import signal
import socket
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import quote

import waitress
from waitress.channel import HTTPChannel
from waitress.task import ErrorTask

from matching.errors import Issue
from service import logs
from service.app import create_app
from service.config import Settings
from service.errors import SettingsError
from service.problems import MEDIA_TYPE, document
from service.requestid import HEADER, chosen_id
from service.wiring import build

__all__ = ["make_server", "run"]

THREADS = 16  # requests handled at once; plans are computed elsewhere, and few requests may wait for theirs
FRAMING = 8  # bytes on the wire for one byte of a body in chunks of one byte, and some
CODES = {400: "bad-request", 413: "body-too-large", 431: "bad-request", 501: "bad-request", 500: "internal-error"}
"""Status with which waitress refuses a request by itself -> our code."""


class _Refusal(ErrorTask):  # type: ignore[misc]
    """What waitress answers before any application sees the request, as a problem document like every other."""

    def execute(self) -> None:
        error, request = self.request.error, self.request
        code = CODES.get(error.code, "bad-request")
        name = chosen_id(request.headers.get("X_REQUEST_ID", ""))
        path = quote(str(getattr(request, "path", "") or "/"), safe="/~@:$,;+=%")
        ours = error.code == 500
        detail = "The service failed; its log says more." if ours else error.body or error.reason
        body = json.dumps(document(code, str(detail), path, name, status=error.code)).encode() + b"\n"
        self.status = f"{error.code} {error.reason}"
        self.response_headers += [("Content-Type", MEDIA_TYPE), (HEADER, name), ("Cache-Control", "no-store")]
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(HTTPChannel):  # type: ignore[misc]
    error_task_class = _Refusal


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
    logs.configure()
    listener = _listen(settings)
    services = build(settings)
    try:
        app = create_app(settings, services)
        server = make_server(app, listener, settings)
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


def make_server(app: Any, listener: socket.socket, settings: Settings) -> Any:
    """A waitress server on an open socket; `run()` serves until `close()`.

    The app judges the size of a body and says so in its own words; waitress counts what is on the wire, where a body
    in small chunks is several times as long, and refuses only what is far beyond that.
    """
    server = waitress.create_server(
        app,
        sockets=[listener],
        threads=THREADS,
        max_request_body_size=FRAMING * settings.max_body_bytes + (1 << 20),
        ident=None,
    )
    server.channel_class = _Channel
    return server


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
