# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Receiver of RflySim3D's feedback on UDP 20006: unicast, and multicast 224.0.0.10 on request.

One thread reads and recognises datagrams (length and checksum, a dictionary look-up) and puts them
into a bounded queue; the thread that takes them decodes them. When more arrives than `MAX_RATE` the
reading thread pauses, and the system drops what its own buffer cannot hold. A flood therefore
neither grows the memory nor starves the rest of the process.

Unicast and multicast have a socket each. The one for unicast is bound to `bind` and gets nothing
else, even where another program of this machine has joined the group. The one for the group is
bound to the group's address, so that multicast does not need `bind` to be 0.0.0.0. (Windows cannot
bind to a group: there one socket does both.)
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import cast

from rfly_common.errors import ConfigError, FeedbackError, PacketError
from rfly_common.files import Closing
from rfly_common.threads.loop_thread import LoopThread
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, MULTICAST_GROUP
from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.packets import Packet, PacketType
from rfly_ue_bridge.sockets.receiving import AllowList, dropped_by_system
from rfly_ue_bridge.sockets.udp_sender import ipv4

QUEUE_SIZE = 4096
"""Largest number of waiting packets."""
MAX_RATE = 16_000
"""Datagrams a second that are read in the long run."""
_BURST = 4096
"""Datagrams that may come at once, as at the start of a fleet, before `MAX_RATE` counts."""
_BATCH = 64
"""Datagrams between two looks at the clock."""
_PAUSE_S = 0.004
_AFTER_ERROR_S = 0.1
_RECEIVE_BUFFER_BYTES = 1 << 20

_IP_MULTICAST_ALL = 49  # ip(7); Python's socket module does not name it

_LINUX = sys.platform == "linux"
_WINDOWS = sys.platform == "win32"

_EXPLAINED = {
    errno.EADDRINUSE: "another program holds it",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}
_HEADS = {t.size: (t.checksum_struct.pack(t.checksums[0]), t) for t in FROM_RFLYSIM3D}
_LARGEST = max(_HEADS)

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

        self._allow = AllowList(allow)
        if not 0 <= port <= 65535:
            raise ConfigError(f"port: {port}, expected 0 to 65535")
        if queue_size < 1:
            raise ConfigError(f"queue_size: {queue_size}, expected 1 or more")
        self._requested_port = port
        self._share_port = share_port
        self._queue_size = queue_size
        self._wake = wake

        self._queue: deque[tuple[PacketType, bytes]] = deque()
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(COUNTERS, 0)
        self._dropped_before = 0
        self._unicast: socket.socket | None = None
        self._group: socket.socket | None = None
        self._thread: LoopThread | None = None
        # a longer datagram is cut, to a length that no packet has
        self._buffer = memoryview(bytearray(_LARGEST + 1))
        self._stop = threading.Event()
        self._nudge: tuple[socket.socket, socket.socket] | None = None
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
        dropped = sum(map(dropped_by_system, self._sockets()))
        counts["system_dropped"] = self._dropped_before + dropped
        return counts

    def start(self) -> None:
        """Open the port and start to read; do nothing if it is open.

        FeedbackError if the port cannot be opened.
        """
        if self._thread is not None:
            return
        self._unicast = self._open_unicast()
        self.port = self._unicast.getsockname()[1]
        self.join()

        self._nudge = socket.socketpair()
        self._stop.clear()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._nudge[0], selectors.EVENT_READ)
        self._budget = float(_BURST)
        self._budget_at_s = time.monotonic()
        self._thread = LoopThread(self._read, "rfly_feedback")
        self._thread.start()

    def close(self) -> None:
        """Stop reading and close the port, at once.

        Queued packets can still be taken. `start` opens the port again.
        """
        thread = self._thread
        nudge = self._nudge
        if thread is None or nudge is None:
            return

        self._stop.set()
        nudge[1].send(b"x")
        thread.join()

        self._selector.close()
        self._dropped_before += sum(map(dropped_by_system, self._sockets()))
        for sock in (*self._sockets(), *nudge):
            sock.close()
        self._unicast = self._group = self._nudge = self._thread = None
        self.port = self._requested_port

    def join(self) -> str:
        """Join the multicast group if it is configured and not joined; return "" or the error."""
        if not self._interface or self._unicast is None or (self._group is not None):
            return self.multicast_error
        sock = self._unicast if _WINDOWS else socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if sock is not self._unicast:
                # every member of the group gets a copy
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                _prepare(sock)
                sock.bind((MULTICAST_GROUP, self.port))
            membership = socket.inet_aton(MULTICAST_GROUP) + socket.inet_aton(self._interface)
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        except OSError as error:
            if sock is not self._unicast:
                sock.close()
            self.multicast_error = (
                f"{MULTICAST_GROUP} on {self._interface}: {error.strerror or error}"
            )
            return self.multicast_error

        self._group = sock
        self.multicast_error = ""
        if self._nudge is not None:
            self._nudge[1].send(b"j")  # the reading thread has one more socket to wait for
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

    def _open_unicast(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if self._share_port:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            elif _WINDOWS:
                sock.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE"), 1)  # noqa: B009 - Windows only

            _prepare(sock)
            sock.bind((self._bind, self._requested_port))
        except OSError as error:
            sock.close()
            reason = _EXPLAINED.get(error.errno or 0, error.strerror or error)
            raise FeedbackError(
                error.errno, f"feedback port {self._bind}:{self._requested_port}: {reason}"
            ) from error

        return sock

    def _sockets(self) -> list[socket.socket]:
        unicast = self._unicast
        group = self._group
        sockets = [unicast, None if group is unicast else group]
        return [sock for sock in sockets if sock is not None]

    # --- the reading thread

    def _read(self) -> bool:
        """Wait for datagrams and queue them; return False at the end."""
        if self._stop.is_set():
            return False
        assert self._nudge is not None
        selector = self._selector

        # sockets opened since
        for sock in self._sockets():
            if sock not in selector.get_map():
                selector.register(sock, selectors.EVENT_READ)

        ready = selector.select()
        now_s = time.monotonic()
        self._budget = min(_BURST, self._budget + (now_s - self._budget_at_s) * MAX_RATE)
        self._budget_at_s = now_s

        failed = False
        for key, _ in ready:
            if key.fileobj is self._nudge[0]:
                self._nudge[0].recv(64)
                continue
            count, batch_failed = self._read_batch(cast(socket.socket, key.fileobj), self._buffer)
            self._budget -= count
            failed |= batch_failed

        if failed or self._budget < 0:
            self._stop.wait(_AFTER_ERROR_S if failed else _PAUSE_S)
        return True

    def _read_batch(self, sock: socket.socket, buffer: memoryview) -> tuple[int, bool]:
        """Read at most `_BATCH` datagrams; return their number, and whether reading failed."""
        counts = self._counts
        batch = list[tuple[PacketType, bytes]]()
        count = 0
        failed = False
        receive = sock.recv_into
        heads = _HEADS
        allow = self._allow
        no_head = (b"", None)

        for _ in range(_BATCH):
            try:
                if allow:
                    size, sender = sock.recvfrom_into(buffer)
                else:
                    size = receive(buffer)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                if error.errno in (errno.EMSGSIZE, 10040):  # Windows, for a longer datagram
                    count += 1
                    counts["unknown_length"] += 1
                    continue
                counts["socket_errors"] += 1
                failed = True
                break

            count += 1
            if allow and not allow.allows(sender[0]):
                counts["not_allowed"] += 1
                continue
            head, packet_type = heads.get(size, no_head)
            if packet_type is None:
                counts["unknown_length"] += 1
            elif buffer[: len(head)] != head:
                counts["wrong_checksum"] += 1
            else:
                batch.append((packet_type, bytes(buffer[:size])))

        counts["received"] += count
        if batch:
            self._put(batch)
        return count, failed

    def _put(self, batch: list[tuple[PacketType, bytes]]) -> None:
        with self._lock:
            self._queue.extend(batch)
            too_many = len(self._queue) - self._queue_size
            for _ in range(too_many):
                self._queue.popleft()

        if too_many > 0:
            self._counts["overflow"] += too_many
        if self._wake is not None:
            self._wake()


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    with contextlib.suppress(OSError):  # a smaller buffer loses more, but works
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    if _LINUX:
        # else it would also get what is sent to groups that other programs have joined
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
