# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receiver of RflySim3D's sensor data: one thread for all ports.

The thread only reads and hands on, so that decoding a picture never delays the next datagram. A raw
picture comes as a burst of a megabyte, which the sockets' buffers must hold.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from rfly_common.errors import FeedbackError
from rfly_common.files import Closing
from rfly_common.threads.loop_thread import LoopThread
from rfly_ue_bridge.sockets.receiving import AllowList, dropped_by_system
from rfly_ue_bridge.sockets.udp_sender import ipv4

BUFFER_BYTES = 6_000_000
"""Buffer that each socket asks for; RflySim's SDK asks for as much."""
_LARGEST = 65_536
_BATCH = 64
"""Datagrams of one port that are read before the next port's turn."""
_TICK_S = 0.5

Handler = Callable[[bytes, float], None]
"""Function that takes a datagram and its arrival, s on the steady clock, in the reading thread."""


class SensorReceiver(Closing):
    """Receiver on several UDP ports, which reads from its creation until `close`.

    `handlers`: by port, called in the reading thread; they must not wait, and a datagram for which
    one raises is lost (`LoopThread`). `allow`: addresses or networks whose datagrams are read;
    empty = all. `tick`: called in the reading thread twice a second, with the time on the steady
    clock, whether or not something arrives. Raises ConfigError for an invalid address,
    FeedbackError for a port that cannot be opened.
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
        self._allow = AllowList(allow)
        self._tick = tick
        self._ticked_s = time.monotonic()
        self._sockets: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._nudged, self._nudge = socket.socketpair()
        self._selector.register(self._nudged, selectors.EVENT_READ, None)
        self.read_errors = 0
        """Failed reads."""
        self.not_allowed = 0
        """Datagrams of senders that are not on the list."""
        try:
            for port, handler in handlers.items():
                self._sockets[port] = _open(address, port)
                self._selector.register(self._sockets[port], selectors.EVENT_READ, handler)
        except FeedbackError:
            self._close_sockets()
            raise

        self._view = memoryview(bytearray(_LARGEST))
        self._thread = LoopThread(self._read, "rfly-sensors")
        self._thread.start()

    @property
    def buffer_bytes(self) -> int:
        """Smallest buffer that the system has granted to a socket, bytes."""
        # Linux doubles the number, for its own use
        return min(
            (s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) for s in self._sockets.values()),
            default=0,
        )

    def dropped(self, port: int) -> int:
        """Return the datagrams that a full buffer of a port has cost, where the system counts."""
        return dropped_by_system(self._sockets[port])

    def close(self) -> None:
        """Stop reading and close all ports, at once."""
        if self._thread.is_alive():
            self._nudge.send(b"x")
            self._thread.join()
        self._close_sockets()

    def _close_sockets(self) -> None:
        for opened in (*self._sockets.values(), self._nudged, self._nudge):
            opened.close()
        self._selector.close()

    def _read(self) -> bool:
        """Wait for datagrams and hand them on; return False at the end."""
        for key, _ in self._selector.select(None if self._tick is None else _TICK_S):
            if key.data is None:
                return False
            self._read_port(key.fileobj, key.data)  # type: ignore[arg-type]

        now_s = time.monotonic()
        if self._tick is not None and now_s - self._ticked_s >= _TICK_S:
            self._ticked_s = now_s
            self._tick(now_s)
        return True

    def _read_port(self, opened: socket.socket, handler: Handler) -> None:
        """Hand on what waits at a port."""
        for _ in range(_BATCH):
            try:
                size, sender = opened.recvfrom_into(self._view)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.read_errors += 1
                return
            if self._allow.allows(sender[0]):
                handler(bytes(self._view[:size]), time.monotonic())
            else:
                self.not_allowed += 1


def _open(address: str, port: int) -> socket.socket:
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        with contextlib.suppress(OSError):  # a smaller buffer loses more, but works
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        opened.bind((address, port))
    except OSError as error:
        opened.close()
        taken = error.errno == errno.EADDRINUSE
        reason = "another program holds it" if taken else error.strerror or str(error)
        raise FeedbackError(error.errno, f"port {address}:{port}: {reason}") from error
    opened.setblocking(False)
    return opened
