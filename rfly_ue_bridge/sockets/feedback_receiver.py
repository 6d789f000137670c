# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receiver of RflySim3D's feedback on UDP 20006: unicast, and multicast 224.0.0.10 on request.

One thread reads and recognises datagrams (length and checksum, a dictionary look-up) and puts them
into a bounded queue; the thread that takes them decodes them. When more arrives than `MAX_RATE` the
reading thread pauses (`SocketThread`).

Unicast and multicast have a socket each. The one for unicast is bound to `bind` and gets nothing
else, even where another program of this machine has joined the group. The one for the group is
bound to the group's address, so that multicast does not need `bind` to be 0.0.0.0. (Windows cannot
bind to a group: there one socket does both.)
"""

from __future__ import annotations

import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Container, Sequence

from rfly_common.errors import ConfigError, FeedbackError, PacketError
from rfly_common.files import Closing
from rfly_common.sockets.socket_thread import Address, ReadBudget, SocketThread
from rfly_common.sockets.udp_sockets import (
    AllowList,
    bound_socket,
    checked_port,
    group_socket,
    ipv4,
    join_group,
    socket_problem,
)
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, MULTICAST_GROUP
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.packets import Packet, PacketType

QUEUE_SIZE = 4096
"""Largest number of waiting packets."""
MAX_RATE = 16_000
"""Datagrams a second that are read in the long run."""
_BURST = 4096
"""Datagrams that may come at once, as at the start of a fleet, before `MAX_RATE` counts."""
_RECEIVE_BUFFER_BYTES = 1 << 20
_HEADS = {t.size: (t.checksum_struct.pack(t.checksums[0]), t) for t in FROM_RFLYSIM3D}
_NO_HEAD = (b"", None)
_LARGEST = max(_HEADS) + 1
"""A longer datagram is cut, to a length that no packet has."""

COUNTERS = (
    "received",
    "unknown_length",
    "wrong_checksum",
    "text",
    "not_allowed",
    "not_wanted",
    "overflow",
    "system_dropped",
    "socket_errors",
)
"""Names of the counters.

- received: all datagrams that were read
- unknown_length, wrong_checksum: datagrams that are no packet
- text: a name that is not UTF-8
- not_allowed: the sender is not on the list
- not_wanted: left out by `take`
- overflow: the oldest packets of a full queue
- system_dropped: datagrams for a full socket buffer, where the system reports them (Linux)
- socket_errors: failed reads
"""


class FeedbackReceiver(Closing):
    """Receiver that reads in a thread from `start` to `close`; `take` returns the packets.

    - bind: IPv4 address of this machine for unicast, 0.0.0.0 for all.
    - port: 0 lets the system choose; `port` has its choice.
    - multicast_interface: IPv4 address of the interface on which the group is joined; "" = not at
      all. A failed join leaves unicast working: `multicast_error` says why, `join` tries again.
    - allow: addresses or networks (`192.168.1.0/24`) whose datagrams are read; empty = all.
    - queue_size: packets that wait at most. A full queue drops the *oldest*, as a newer state is
      worth more.
    - wake: called in the reading thread after something was queued; it must not close the receiver.
    - share_port: set SO_REUSEADDR for unicast, as RflySim's SDK does. Several programs may then
      hold the same port, but a unicast datagram still reaches only one of them: the newest. False:
      only this receiver may hold the port. Multicast reaches all programs in either case.

    Raises ConfigError for an invalid address.
    """

    def __init__(
        self,
        bind: str = "127.0.0.1",
        port: int = FEEDBACK_PORT,
        *,
        multicast_interface: str = "",
        allow: Sequence[str] = (),
        queue_size: int = QUEUE_SIZE,
        wake: Callable[[], None] | None = None,
        share_port: bool = True,
    ) -> None:
        self._bind = ipv4(bind, "bind")
        self._interface = (
            ipv4(multicast_interface, "multicast_interface") if multicast_interface else ""
        )

        AllowList(allow)  # raises ConfigError now, not at the start
        self._allow = allow
        if queue_size < 1:
            raise ConfigError(f"queue_size: {queue_size}, expected 1 or more")
        self._requested_port = checked_port(port, "port", low=0)
        self._share_port = share_port
        self._queue_size = queue_size
        self._wake = wake

        self._queue: deque[tuple[PacketType, bytes]] = deque()
        self._lock = threading.Lock()
        self._batch: list[tuple[PacketType, bytes]] = []
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._unicast: socket.socket | None = None
        self._is_joined = False
        self._thread: SocketThread | None = None
        self.port = port
        """Bound port while it listens."""
        self.multicast_error = ""
        """Reason why the group could not be joined; "" if it was, or was not to be joined."""

    def __enter__(self) -> FeedbackReceiver:
        self.start()
        return self

    @property
    def listening(self) -> bool:
        """True while the port is open and its thread reads it."""
        return self._thread is not None

    @property
    def counters(self) -> dict[str, int]:
        """Counts of datagrams since the receiver was made, by `COUNTERS`; a copy."""
        counts = dict(self._counts)
        if self._thread is not None:
            _add_counts(counts, self._thread)
        return counts

    def start(self) -> None:
        """Open the port and start to read; do nothing if it is open.

        FeedbackError if the port cannot be opened.
        """
        if self._thread is not None:
            return
        try:
            self._unicast = bound_socket(
                self._bind,
                self._requested_port,
                buffer_bytes=_RECEIVE_BUFFER_BYTES,
                share=self._share_port,
            )
        except OSError as error:
            where = f"feedback port {self._bind}:{self._requested_port}"
            raise FeedbackError(error.errno, f"{where}: {socket_problem(error)}") from error

        self.port = self._unicast.getsockname()[1]
        self._thread = SocketThread(
            "rfly_feedback",
            allow=self._allow,
            largest=_LARGEST,
            budget=ReadBudget(MAX_RATE, _BURST),
        )
        self._thread.receive(self._unicast, self._recognise, self._put)
        self.join()
        self._thread.start()

    def close(self) -> None:
        """Stop reading and close the port, at once.

        Queued packets can still be taken. `start` opens the port again.
        """
        if self._thread is None:
            return
        self._thread.close()
        _add_counts(self._counts, self._thread)
        self._unicast = self._thread = None
        self._is_joined = False
        self.port = self._requested_port

    def join(self) -> str:
        """Join the multicast group if it is configured and not joined; return "" or the error."""
        if not self._interface or self._unicast is None or self._thread is None or self._is_joined:
            return self.multicast_error
        try:
            if sys.platform == "win32":
                join_group(self._unicast, MULTICAST_GROUP, self._interface)
            else:
                group = group_socket(
                    MULTICAST_GROUP, self.port, self._interface, _RECEIVE_BUFFER_BYTES
                )
                self._thread.receive(group, self._recognise, self._put)
        except OSError as error:
            self.multicast_error = (
                f"{MULTICAST_GROUP} on {self._interface}: {error.strerror or error}"
            )
            return self.multicast_error

        self._is_joined = True
        self.multicast_error = ""
        return ""

    def take(self, limit: int | None = None, only: Container[str] | None = None) -> list[Packet]:
        """Return the waiting packets, oldest first, at most `limit` of them.

        It never waits; one thread at a time. Packets whose wire name is not in `only` are dropped
        undecoded and counted.
        """
        with self._lock:
            queue = self._queue
            if limit is None or limit >= len(queue):
                waiting = list(queue)
                queue.clear()
            else:
                waiting = [queue.popleft() for _ in range(limit)]

        packets = []
        for packet_type, datagram in waiting:
            if only is not None and packet_type.name not in only:
                self._counts["not_wanted"] += 1
                continue
            try:
                packets.append(packet_type.read(datagram))
            except PacketError as error:
                self._counts[error.reason] = self._counts.get(error.reason, 0) + 1
        return packets

    def __len__(self) -> int:
        """Return the number of packets that wait."""
        return len(self._queue)

    # --- the reading thread

    def _recognise(self, datagram: bytes, _sender: Address) -> None:
        """Add a datagram to the batch, if it is a packet."""
        head, packet_type = _HEADS.get(len(datagram), _NO_HEAD)
        if packet_type is None:
            self._counts["unknown_length"] += 1
        elif datagram.startswith(head):
            self._batch.append((packet_type, datagram))
        else:
            self._counts["wrong_checksum"] += 1

    def _put(self) -> None:
        """Queue the batch."""
        if not self._batch:
            return
        with self._lock:
            self._queue.extend(self._batch)
            too_many = len(self._queue) - self._queue_size
            for _ in range(too_many):
                self._queue.popleft()

        self._batch.clear()
        if too_many > 0:
            self._counts["overflow"] += too_many
        if self._wake is not None:
            self._wake()


def _add_counts(counts: dict[str, int], thread: SocketThread) -> None:
    """Add what a thread has counted."""
    counts["received"] += thread.received + thread.too_long
    counts["unknown_length"] += thread.too_long
    counts["not_allowed"] += thread.not_allowed
    counts["system_dropped"] += thread.dropped
    counts["socket_errors"] += thread.read_errors
