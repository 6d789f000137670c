# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UDP listener on RflySim3D's ports 20010 + k: one thread with a bounded queue."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from functools import partial

from rfly_common.errors import ConfigError
from rfly_common.files import Closing
from rfly_common.threads.loop_thread import LoopThread
from rfly_ue_bridge.codec.addresses import LAN_GROUP, WINDOW_PORT
from rfly_ue_bridge.codec.sensor_requests import is_request
from rfly_ue_bridge.sockets.udp_sender import resolve

MAX_QUEUED_BYTES = 32 << 20
"""Most bytes of datagrams that wait; a frame later there is room again."""
_RECEIVE_BUFFER_BYTES = 4 << 20
_OVERHEAD = 48
"""Memory that Python needs for each datagram, in addition to its bytes."""
_LARGEST = 4096
"""Longest datagram that is read; a longer one is cut to this length, which no packet has."""


class SensorRequest(bytes):
    """Datagram that requests a sensor, which is answered where it came from."""

    source: str
    """IPv4 address of its sender."""


class Listener(Closing):
    """Listener: `take` returns the datagrams since the last call.

    `arrived` is set when there are some. Requests for sensors are `SensorRequest`. It binds to
    `host` only, by default 127.0.0.1. With `lan_interface`, an IPv4 address of this machine, it
    also joins 224.0.0.10:20009 there, for commands to every RflySim3D of the network. Raises
    ConfigError, which names the address, where one cannot be bound.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = WINDOW_PORT, lan_interface: str = ""
    ) -> None:
        self.arrived = threading.Event()
        self.overflow = 0
        """Datagrams dropped because MAX_QUEUED_BYTES were waiting."""
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._lock = threading.Lock()
        self._closed = False

        self._sockets = [_bound(resolve(host), port)]
        self.port: int = self._sockets[0].getsockname()[1]
        self.name = f"UDP {host}:{self.port}"
        """Where the datagrams come from, for the user."""
        if lan_interface:
            self._sockets.append(_joined(lan_interface))

        self._threads = [
            LoopThread(partial(self._receive, opened), "rfly view: UDP") for opened in self._sockets
        ]
        for thread in self._threads:
            thread.start()

    def take(self) -> list[bytes]:
        """Return the datagrams that arrived since the last call, in their order."""
        with self._lock:
            self.arrived.clear()
            datagrams = self._queue
            self._queue = []
            self._queued_bytes = 0
        return datagrams

    def close(self) -> None:
        """Stop listening; it returns at once."""
        self._closed = True
        for thread in self._threads:
            thread.join()
        for opened in self._sockets:
            opened.close()

    def _receive(self, opened: socket.socket) -> bool:
        """Wait a moment for a datagram and queue it; return False at the end."""
        # an error: none for a while, an ICMP answer, or, on Windows, a longer datagram
        try:
            datagram, (source, _) = opened.recvfrom(_LARGEST)
        except OSError:
            return not self._closed
        if is_request(datagram):
            datagram = SensorRequest(datagram)
            datagram.source = source

        with self._lock:
            has_room = self._queued_bytes < MAX_QUEUED_BYTES
            if has_room:
                self._queued_bytes += len(datagram) + _OVERHEAD
                self._queue.append(datagram)
            else:
                self.overflow += 1
        if has_room:
            self.arrived.set()
        return not self._closed


def _bound(host: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    try:
        opened.bind((host, port))
    except (OSError, OverflowError) as error:
        opened.close()
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        raise ConfigError(
            f"UDP {host}:{port} cannot be bound ({reason}): another RflySim3D, viewer or "
            "`rfly listen` may have it; choose another with --udp-port or --window"
        ) from error
    opened.settimeout(0.2)
    return opened


def _joined(interface: str) -> socket.socket:
    group, port = LAN_GROUP
    try:
        member = struct.pack(
            "4s4s", socket.inet_aton(group), ipaddress.IPv4Address(interface).packed
        )
    except ValueError as error:
        raise ConfigError(
            f"--lan-interface {interface}: expected an IPv4 address of this machine"
        ) from error

    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((group if hasattr(socket, "SO_REUSEPORT") else "", port))
        opened.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"--lan-interface {interface}: cannot join {group}:{port} ({error.strerror})"
        ) from error
    opened.settimeout(0.2)
    return opened
