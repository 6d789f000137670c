"""Local address for the feedback of an RflySim3D on another machine. Standard library only."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping

from rfly_ue_bridge.codec.addresses import WINDOW_PORT


def fill_feedback_addresses(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments; for a `host` elsewhere with `feedback_bind` and `feedback_multicast_interface`, unless given.

    Both become this machine's address in the host's network.
    """
    filled = dict(arguments)
    address = local_address_towards(arguments.get("host", ""))
    for name in ("feedback_bind", "feedback_multicast_interface"):
        if address and not filled.get(name):
            filled[name] = address
    return filled


def local_address_towards(host: str) -> str:
    """The IPv4 address from which this machine reaches a host, "" for itself or without a way there. Sends nothing."""
    try:
        destination = (
            str(socket.getaddrinfo(host, WINDOW_PORT, socket.AF_INET, socket.SOCK_DGRAM)[0][4][0]) if host else ""
        )
        if not destination or ipaddress.IPv4Address(destination).is_loopback:
            return ""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            sock.connect((destination, WINDOW_PORT))
            return str(sock.getsockname()[0])
    except (OSError, UnicodeError):
        return ""
