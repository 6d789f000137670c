# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sources of datagrams: RflySim3D's UDP ports 20010 + k, a recording, or this program itself.

The UDP listener is one thread with a bounded queue.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator

from rfly_common.errors import ConfigError
from rfly_common.files import Closing
from rfly_common.sockets.socket_thread import Address, SocketThread
from rfly_common.sockets.udp_sockets import bound_socket, group_socket, ipv4
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


class Feed(Closing):
    """Source of datagrams that this program puts in: `take` returns those since the last call.

    `arrived` is set when there are some. Any thread may put and take.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        """Where the datagrams come from, for the user."""
        self.arrived = threading.Event()
        self.overflow = 0
        """Datagrams dropped because MAX_QUEUED_BYTES were waiting."""
        self._queue: list[bytes] = []
        self._queued_bytes = 0
        self._lock = threading.Lock()

    def put(self, datagram: bytes) -> None:
        """Queue a datagram if there is room."""
        with self._lock:
            has_room = self._queued_bytes < MAX_QUEUED_BYTES
            if has_room:
                self._queued_bytes += len(datagram) + _OVERHEAD
                self._queue.append(datagram)
            else:
                self.overflow += 1
        if has_room:
            self.arrived.set()

    def take(self) -> list[bytes]:
        """Return the datagrams that arrived since the last call, in their order."""
        with self._lock:
            self.arrived.clear()
            datagrams = self._queue
            self._queue = []
            self._queued_bytes = 0
        return datagrams

    def close(self) -> None:
        """End: nothing is open here."""


class Listener(Feed):
    """Listener on UDP: what arrives is put in. Requests for sensors are `SensorRequest`.

    It binds to `host` only, by default 127.0.0.1. With `lan_interface`, an IPv4 address of this
    machine, it also joins 224.0.0.10:20009 there, for commands to every RflySim3D of the network.
    Raises ConfigError, which names the address, where one cannot be bound.
    """

    def __init__(
        self, host: str = "127.0.0.1", port: int = WINDOW_PORT, lan_interface: str = ""
    ) -> None:
        super().__init__(f"UDP {host}:{port}")
        self._thread = SocketThread("rfly view: UDP", largest=_LARGEST)
        try:
            own = _bound(resolve(host), port)
            self._thread.receive(own, self._receive)
            if lan_interface:
                self._thread.receive(_joined(lan_interface), self._receive)
        except ConfigError:
            self._thread.close()
            raise
        self.port: int = own.getsockname()[1]
        self.name = f"UDP {host}:{self.port}"
        self._thread.start()

    def close(self) -> None:
        """Stop listening; it returns at once."""
        self._thread.close()

    def _receive(self, datagram: bytes, sender: Address) -> None:
        """Queue a datagram of the network."""
        if is_request(datagram):
            datagram = SensorRequest(datagram)
            datagram.source = sender[0]
        self.put(datagram)


def _bound(host: str, port: int) -> socket.socket:
    try:
        return bound_socket(host, port, buffer_bytes=_RECEIVE_BUFFER_BYTES)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        raise ConfigError(
            f"UDP {host}:{port} cannot be bound ({reason}): another RflySim3D, viewer or "
            "`rfly listen` may have it; choose another with --udp-port or --window"
        ) from error


def _joined(interface: str) -> socket.socket:
    group, port = LAN_GROUP
    option = f"--lan-interface {interface}"
    try:
        return group_socket(group, port, ipv4(interface, option))
    except OSError as error:
        raise ConfigError(f"{option}: cannot join {group}:{port} ({error.strerror})") from error


class Playback(Closing):
    """Source of recorded datagrams: `take` returns those whose time has come.

    `datagrams` are times, s, and contents. The first is due at the first call. `clock` returns
    seconds.
    """

    overflow = 0

    def __init__(
        self,
        name: str,
        datagrams: Iterable[tuple[float, bytes]],
        clock: Callable[[], float],
        speed: float = 1.0,
    ) -> None:
        self.name = name
        self.arrived = threading.Event()
        """Set until the end."""
        self.arrived.set()
        self._left: Iterator[tuple[float, bytes]] = iter(datagrams)
        self._next = next(self._left, None)
        self._clock = clock
        self._speed = speed
        self._first = self._next[0] if self._next else 0.0
        self._began: float | None = None

    def take(self) -> list[bytes]:
        """Return the datagrams since the last call, in their order."""
        now = self._clock()
        if self._began is None:
            self._began = now
        due = self._first + self._speed * (now - self._began)

        taken = []
        while self._next is not None and self._next[0] <= due:
            taken.append(self._next[1])
            self._next = next(self._left, None)
        if self._next is None:
            self.arrived.clear()
        return taken

    def close(self) -> None:
        """End: nothing is open here."""
