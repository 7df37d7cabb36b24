"""The guard against network use would prove nothing if it did not bite."""

from __future__ import annotations

import socket
import urllib.request
from urllib.error import URLError

import pytest


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80), ("example.org", 80)])
def test_other_machines_cannot_be_reached(address: tuple[str, int]) -> None:
    """Plans are made on machines without a network, too."""
    with socket.socket() as probe, pytest.raises(PermissionError, match="tried to reach"):
        probe.connect(address)


def test_names_of_other_machines_are_not_looked_up() -> None:
    """A name server is a machine elsewhere as well."""
    with pytest.raises(PermissionError, match="tried to look up"):
        socket.getaddrinfo("example.org", 443)
    with pytest.raises(URLError, match="tried to look up"):
        urllib.request.urlopen("http://example.org/")


def test_this_machine_can_be_reached() -> None:
    """The service is tested over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())


def test_without_sockets_there_are_none(no_sockets: None) -> None:
    """For tests of what must not even try."""
    with pytest.raises(PermissionError):
        socket.socket()
