"""create_app: settings in, WSGI application out."""

from __future__ import annotations

import time

import structlog
from flask import Flask, Response, g, redirect, request

from service import auth, logs, openapi, problems, wiring
from service.config import Settings
from service.edge.services import EXTENSION
from service.requestid import HEADER, request_id
from service.resources import BLUEPRINTS
from service.wiring import Services

__all__ = ["create_app"]

log = structlog.get_logger(__name__)

SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers of every answer that does not set its own."""


def create_app(settings: Settings | None = None, services: Services | None = None) -> Flask:
    """The application.

    Parameters
    ----------
    settings : Settings, optional
        Default: the environment.
    services : Services, optional
        Stand-ins; default: what `wiring.build` makes of the settings.

    Raises
    ------
    SettingsError (``invalid-settings``)
        Settings that cannot work or are not safe.
    """
    logs.configure()
    if services is None:
        settings = Settings.from_environment() if settings is None else settings
        settings.check()
        services = wiring.build(settings)
    app = Flask(__name__, static_folder=None)
    app.url_map.merge_slashes = False  # a doubled slash is another address, not a reason to redirect a POST
    app.config["MAX_CONTENT_LENGTH"] = services.settings.max_body_bytes
    app.extensions[EXTENSION] = services
    app.before_request(_begin)
    auth.install(app)
    problems.install(app)
    openapi.install(app, BLUEPRINTS)
    app.add_url_rule("/", "root", _root)
    app.after_request(_end)
    return app


def _root() -> Response:
    return redirect("/v1/docs", 302)  # type: ignore[return-value]


def _begin() -> None:
    g.began = time.perf_counter()
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id())


def _end(response: Response) -> Response:
    """Headers of every answer, and one line in the log without anything personal: the route, never the path."""
    response.headers[HEADER] = request_id()
    for name, value in SECURITY.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")  # profiles must not stay in a shared cache
    log.info(
        "request",
        method=request.method,
        route=str(request.url_rule) if request.url_rule is not None else "none",
        status=response.status_code,
        milliseconds=round(1000 * (time.perf_counter() - g.get("began", time.perf_counter())), 1),
    )
    return response
