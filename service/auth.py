"""Who may ask: the bearer of the token, or, on a server without one, this machine and nobody else."""

from __future__ import annotations

import hmac
import ipaddress
from urllib.parse import urlsplit

from flask import Flask, request
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Forbidden, Unauthorized

from service.edge.services import services

__all__ = ["OPEN", "install"]

OPEN = frozenset({"health", "docs"})
"""Blueprints anybody may read: they hold nothing of a venue."""


def install(app: Flask) -> None:
    """Check every request before its view runs."""
    app.before_request(_check)


def _check() -> None:
    if request.blueprint in OPEN:
        return
    token = services().settings.token
    if token:
        _check_token(token)
    else:
        _check_local()


def _check_token(token: str) -> None:
    """Compare in constant time: the time to refuse must not tell how much of a guess was right."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not given.strip():
        raise Unauthorized("no bearer token was sent", www_authenticate=_challenge())
    sent = given.strip().encode("latin-1", "replace")  # as WSGI decoded the bytes of the header
    if not hmac.compare_digest(sent, token.encode("utf-8", "surrogateescape")):
        raise Unauthorized("the bearer token is not the right one", www_authenticate=_challenge("invalid_token"))


def _challenge(error: str | None = None) -> WWWAuthenticate:
    return WWWAuthenticate("bearer", {"realm": "revmatch", **({"error": error} if error else {})})


def _check_local() -> None:
    """Refuse other machines, and web pages that reach this one through the user's own browser.

    A page elsewhere can make a browser send requests to 127.0.0.1, or give its own name the address 127.0.0.1
    (DNS rebinding); the first shows in Origin, the second in Host.
    """
    if request.remote_addr and not _is_loopback(request.remote_addr):
        raise Forbidden("this server has no token and answers its own machine only")
    host = _hostname(f"//{request.headers.get('Host', '')}")
    if not _is_loopback(host):
        raise Forbidden("without a token the server must be addressed as localhost or 127.0.0.1")
    origin = request.headers.get("Origin")
    if origin is not None and origin.lower() != f"{request.scheme}://{request.headers.get('Host', '')}".lower():
        raise Forbidden("the request comes from a page of another origin")
    if request.headers.get("Sec-Fetch-Site", "none") in ("cross-site", "same-site"):
        raise Forbidden("the request comes from a page of another site")


def _hostname(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)
