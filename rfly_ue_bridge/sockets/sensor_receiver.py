# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receiver of RflySim3D's sensor data: one thread for all ports.

The thread only reads and hands on, so that decoding a picture never delays the next datagram. A raw
picture comes as a burst of a megabyte, which the sockets' buffers must hold.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence

from rfly_common.errors import FeedbackError
from rfly_common.sockets.socket_thread import Address, SocketThread
from rfly_common.sockets.udp_sockets import (
    bound_socket,
    dropped_by_system,
    ipv4,
    socket_problem,
)

BUFFER_BYTES = 6_000_000
"""Buffer that each socket asks for; RflySim's SDK asks for as much."""
Handler = Callable[[bytes, float], None]
"""Function that takes a datagram and its arrival, s on the steady clock, in the reading thread."""


class SensorReceiver(SocketThread):
    """Receiver on several UDP ports, which reads from its creation until `close`.

    `handlers`: by port, called in the reading thread; they must not wait. `allow` and `tick` as for
    `SocketThread`. Raises ConfigError for an invalid address, FeedbackError for a port that cannot
    be opened.
    """

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        bind: str = "127.0.0.1",
        *,
        allow: Sequence[str] = (),
        tick: Callable[[float], None] | None = None,
    ) -> None:
        address = ipv4(bind, "bind")
        super().__init__("rfly-sensors", allow=allow, tick=tick)
        self._sockets: dict[int, socket.socket] = {}
        for port, handler in handlers.items():
            try:
                opened = bound_socket(address, port, buffer_bytes=BUFFER_BYTES)
            except OSError as error:
                self.close()
                reason = socket_problem(error)
                raise FeedbackError(error.errno, f"port {address}:{port}: {reason}") from error
            self._sockets[port] = opened
            self.receive(opened, _with_arrival(handler))
        self.start()

    @property
    def buffer_bytes(self) -> int:
        """Smallest buffer that the system has granted to a socket, bytes."""
        # Linux doubles the number, for its own use
        return min(
            (s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for s in self._sockets.values()),
            default=0,
        )

    def dropped_at(self, port: int) -> int:
        """Return the datagrams that a full buffer of a port has cost, where the system counts."""
        return dropped_by_system(self._sockets[port])


def _with_arrival(handler: Handler) -> Callable[[bytes, Address], None]:
    def take(datagram: bytes, _sender: Address) -> None:
        handler(datagram, time.monotonic())

    return take
