"""What holds for every test: no network beyond this machine, and the same text scorer whatever is installed."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from typing import Any

import pytest


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes do not name a test: a zip holds the time it was made, and workers must agree on the names."""
    return argname if isinstance(val, bytes) else None


def is_here(address: Any) -> bool:
    """Whether an address is on this machine."""
    if not isinstance(address, tuple):
        return True  # the path of a local socket
    host = address[0] or "localhost"
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_literal(host: Any) -> bool:
    """Whether a host is an IP address, not a name."""
    try:
        ipaddress.ip_address(_text(host))
    except ValueError:
        return False
    return True


def _text(host: Any) -> str:
    return host.decode() if isinstance(host, bytes) else str(host)


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Connections to other machines fail at once, and so does asking for their addresses."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            real = getattr(socket.socket, name)

            def guarded(self: socket.socket, address: Any, real: Any = real) -> Any:
                if not is_here(address):
                    raise PermissionError(f"a test tried to reach {address}")
                return real(self, address)

            patch.setattr(socket.socket, name, guarded)
        look_up = socket.getaddrinfo

        def guarded_look_up(host: Any, *rest: Any, **named: Any) -> Any:
            # a written-out address is looked up nowhere; servers resolve what they listen on this way
            if host is not None and not is_literal(host) and not is_here((_text(host), 0)):
                raise PermissionError(f"a test tried to look up {host}")
            return look_up(host, *rest, **named)

        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        yield


@pytest.fixture
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket at all, local ones included."""

    def refuse(*args: Any, **named: Any) -> None:
        raise PermissionError("a test tried to open a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="session", autouse=True)
def lexical_unless_asked() -> Iterator[None]:
    """The scorer "auto" is lexical in tests, with and without the extra: they show the same on every machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("matching.scores.text.has_packaged_weights", lambda: False)
        yield
