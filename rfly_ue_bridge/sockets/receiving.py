# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""What receivers of datagrams share: whose datagrams are read, and what the system drops."""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence

from rfly_common.errors import ConfigError

# socket(7); Python's socket module does not name it
_SO_MEMINFO = 55
_SK_MEMINFO = struct.Struct("=9I")


class AllowList:
    """IPv4 addresses and networks, such as 192.168.1.0/24; an empty list allows every sender.

    False if it is empty. Raises ConfigError for a text that is neither address nor network.
    """

    def __init__(self, entries: Sequence[str]) -> None:
        self._networks = [_network(text) for text in entries]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def allows(self, sender: str) -> bool:
        """Return whether datagrams from an IPv4 address are read."""
        if not self._networks:
            return True
        number = int.from_bytes(socket.inet_aton(sender), "big")
        return any(number & mask == network for network, mask in self._networks)


def _network(text: str) -> tuple[int, int]:
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError as error:
        raise ConfigError(
            f"allow: {text!r} is neither an IPv4 address nor a network "
            f"such as 192.168.1.0/24 ({error})"
        ) from error
    return int(network.network_address), int(network.netmask)


def dropped_by_system(sock: socket.socket) -> int:
    """Return the datagrams for which the socket's buffer had no room.

    0 if the system does not count them.
    """
    if sys.platform != "linux":
        return 0
    try:
        meminfo = sock.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, _SK_MEMINFO.size)
        return int(_SK_MEMINFO.unpack(meminfo)[8])
    except (OSError, struct.error):  # an old kernel, or closed meanwhile
        return 0
