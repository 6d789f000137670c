# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bound sockets: their addresses, their options, and whose datagrams are read."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import struct
import sys
from collections.abc import Sequence

from rfly_common.errors import ConfigError

# socket(7), ip(7); Python's socket module does not name them
_SO_MEMINFO = 55
_SK_MEMINFO = struct.Struct("=9I")
_IP_MULTICAST_ALL = 49

_PROBLEMS = {
    errno.EADDRINUSE: "another program holds it",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}


def ipv4(text: str, name: str) -> str:
    """Return the IPv4 address in a text. Raises ConfigError that begins with `name`."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as error:
        raise ConfigError(f"{name}: {text!r} is no IPv4 address ({error})") from error


def checked_port(port: int, name: str, low: int = 1) -> int:
    """Return a checked port. Raises ConfigError that begins with `name`."""
    if not low <= port <= 65535:
        raise ConfigError(f"{name}: {port}, expected {low} to 65535")
    return port


def socket_problem(error: OSError) -> str:
    """Return the reason for which a socket could not be bound."""
    return _PROBLEMS.get(error.errno or 0, error.strerror or str(error))


def bound_socket(
    address: str,
    port: int,
    kind: socket.SocketKind = socket.SOCK_DGRAM,
    *,
    buffer_bytes: int = 0,
    share: bool = False,
) -> socket.socket:
    """Return a bound socket that never waits. Raises OSError; `socket_problem` explains it.

    `buffer_bytes`: receive buffer that is asked for; 0 = the system's own. `share`: other sockets
    may have the same port (SO_REUSEADDR).
    """
    sock = socket.socket(socket.AF_INET, kind)
    try:
        if share:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        elif sys.platform == "win32":
            sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE"), 1)  # noqa: B009 - Windows only
        if buffer_bytes:
            with contextlib.suppress(OSError):  # a smaller buffer loses more, but works
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        if kind is socket.SOCK_DGRAM and sys.platform == "linux":
            # else it would also get what is sent to groups that other programs have joined
            sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        sock.setblocking(False)
        sock.bind((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def join_group(sock: socket.socket, group: str, interface: str) -> None:
    """Join a multicast group on the interface with this IPv4 address. Raises OSError."""
    membership = socket.inet_aton(group) + socket.inet_aton(interface)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)


def group_socket(group: str, port: int, interface: str, buffer_bytes: int = 0) -> socket.socket:
    """Return a socket that gets what is sent to a multicast group. Raises OSError.

    Except under Windows it gets nothing else.
    """
    address = "" if sys.platform == "win32" else group
    # every member of the group gets a copy
    sock = bound_socket(address, port, buffer_bytes=buffer_bytes, share=True)
    try:
        join_group(sock, group, interface)
    except OSError:
        sock.close()
        raise
    return sock


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
