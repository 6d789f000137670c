# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Links to one peer at a time that never wait: UDP, a TCP server, and a raw serial line.

One thread reads, accepts and sends what could not be sent immediately. A `Handler` interprets the
bytes in that thread.

The peer is the last sender of valid data. Another sender is ignored (UDP) or closed immediately
(TCP) until the peer has sent nothing valid for `PEER_SILENCE_S`, three heartbeats; then it takes
the peer's place. So a half-open connection blocks no controller, and a second controller does not
push out the first.
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import os
import re
import selectors
import socket
import termios
import threading
import time
import tty
from collections import deque
from typing import Any

from rfly_common.errors import ConfigError, LinkError
from rfly_common.sockets.socket_thread import ReadBudget, SocketThread
from rfly_common.sockets.udp_sockets import bound_socket, checked_port, ipv4, socket_problem

BAUDS = tuple(sorted(int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d*", name)))
"""Rates that the system knows, bit/s."""


class SerialPort:
    """Open serial line, with the methods of a socket that links use.

    Reading and writing raise BlockingIOError if nothing has come or can go, OSError if the line is
    gone.
    """

    def __init__(self, device: str, baud: int) -> None:
        """Open a device, such as /dev/ttyUSB0.

        Raise ConfigError for an unknown rate, LinkError with the reason for a line that cannot be
        opened.
        """
        if baud not in BAUDS:
            raise ConfigError(f"baud: {baud}, expected one of {', '.join(map(str, BAUDS))}")
        self.device = device
        try:
            self._fd = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError as error:
            denied = isinstance(error, PermissionError)
            hint = "; may this user open it? (group dialout)" if denied else ""
            raise LinkError(f"serial line {device}: {error.strerror}{hint}") from error

        try:
            fcntl.ioctl(self._fd, termios.TIOCEXCL)
            tty.setraw(self._fd)
            attributes = termios.tcgetattr(self._fd)
            attributes[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
            attributes[4] = attributes[5] = getattr(termios, f"B{baud}")
            termios.tcsetattr(self._fd, termios.TCSANOW, attributes)
        except (OSError, termios.error) as error:
            self.close()
            raise LinkError(f"{device} is no serial line: {error.args[-1]}") from error

    def fileno(self) -> int:
        """Return the file descriptor, -1 after closing."""
        return self._fd

    def recv(self, size: int) -> bytes:
        """Return the bytes that have come, at most `size`; b"": the other end is gone."""
        return os.read(self._fd, size)

    def send(self, data: bytes) -> int:
        """Send bytes; return how many went."""
        return os.write(self._fd, data)

    def close(self) -> None:
        """Close the line; a second call does nothing."""
        fd = self._fd
        self._fd = -1
        if fd >= 0:
            os.close(fd)


PEER_SILENCE_S = 3.0
"""Silence after which another sender may take the peer's place, s."""

MAX_WAITING = 64
"""Frames that wait for a slow reader; of more the oldest go."""

MAX_RATE_BYTES = 4_000_000
"""Bytes read per second in the long run, enough for some 10,000 frames."""

_BURST_BYTES = 1_000_000
"""Bytes that may be read at once after a quiet time."""

_COST_BYTES = 64
"""Cost of a read in addition to its bytes."""

_CHUNK_BYTES = 65_536
"""Largest piece that is read at once."""

_SEND_BUFFER_BYTES = 65_536
"""Size of the system's buffer of a connection."""

_TICK_S = 0.25
"""Longest time between two ticks, s."""

_LINGER_S = 0.3
"""Time that a closing serial line has for waiting frames, s."""

_REOPEN_S = 1.0
"""Time between two attempts to open a lost serial line, s."""

RIVAL_SHOWN_S = 5.0
"""Time for which an ignored sender is reported after its last datagram, s."""
COUNTERS = ("stranger", "refused_peers", "replaced_peers", "send_dropped", "socket_errors")
"""Counters of a transport.

- stranger: datagrams of another sender while there is a peer, or of a host that is not allowed
- refused_peers: connections closed because there is a peer
- replaced_peers: silent peers that had to go
- send_dropped: frames for a reader that is too slow, or for none
- socket_errors: failed reads and writes, resets by the peer included
"""


class Handler:
    """Receiver of a transport's events, in the transport's thread; this base ignores them."""

    def opened(self, peer: str) -> None:
        """Take note that all data comes from this peer now."""

    def closed(self) -> None:
        """Take note that the peer has gone."""

    def parse(self, data: bytes) -> list[Any]:
        """Return the items in a datagram or in the next piece of a stream.

        Invalid data is counted and left out.
        """
        return []

    def take(self, items: list[Any]) -> bool:
        """Take the parsed items; return whether one of them was a sign of life."""
        return False

    def tick(self) -> None:
        """Do periodic work, at least four times a second."""


class Transport(abc.ABC):
    """Base of all transports: the thread and its end."""

    def __init__(self, bind: str, port: int, handler: Handler) -> None:
        self.bind = ipv4(bind, "bind")
        self.requested_port = checked_port(port, "port", low=0)
        self.port = self.requested_port
        """Port; the real one while it is open."""

        self.counters = dict.fromkeys(COUNTERS, 0)
        self.peer = ""
        """Address of the peer, host:port; "" while there is none."""

        self._handler = handler
        self._thread: SocketThread | None = None
        self._budget = ReadBudget(MAX_RATE_BYTES, _BURST_BYTES, per_read=_COST_BYTES, per_byte=1.0)
        self._heard_at = 0.0

    @property
    def rival(self) -> str:
        """Address of another sender, heard in the last RIVAL_SHOWN_S; "" if there is none."""
        return ""

    def start(self) -> None:
        """Open the port. Raise LinkError with the reason if that fails."""
        self._thread = SocketThread(
            f"rfly_link_{self.requested_port}",
            largest=_CHUNK_BYTES,
            budget=self._budget,
            tick=self._tick,
            tick_s=_TICK_S,
        )
        try:
            self._open(self._thread)
        except LinkError:
            self._thread.close()
            self._thread = None
            raise
        self._thread.start()

    def close(self) -> None:
        """Close everything immediately."""
        if self._thread is None:
            return
        self._thread.stop()
        self._hang_up()
        self._thread.close()
        self._thread = None

    @abc.abstractmethod
    def send(self, data: bytes) -> None:
        """Send one frame to the peer without waiting. Any thread may call it."""

    @property
    def silence_s(self) -> float:
        """Time since the peer's last sign of life, s; infinite without a peer."""
        return time.monotonic() - self._heard_at if self.peer else float("inf")

    def _bound(self, kind: socket.SocketKind, share: bool = False) -> socket.socket:
        """Return a bound socket. Raise LinkError if the port is not available."""
        try:
            sock = bound_socket(self.bind, self.requested_port, kind, share=share)
        except OSError as error:
            name = "TCP" if kind is socket.SOCK_STREAM else "UDP"
            where = f"{name} port {self.bind}:{self.requested_port}"
            raise LinkError(f"{where}: {socket_problem(error)}") from error

        self.port = sock.getsockname()[1]
        return sock

    @abc.abstractmethod
    def _open(self, thread: SocketThread) -> None:
        """Open the port or line, which the thread serves from now on. Raise LinkError."""

    def _tick(self, now_s: float) -> None:
        """Do periodic work, in the thread, at least four times a second."""
        self._handler.tick()

    def _hang_up(self) -> None:
        self.peer = ""


class UdpTransport(Transport):
    """UDP link: sends to one address; takes datagrams of its host only.

    With `controller_port` 0 it sends to the address from which the peer sends.
    """

    def __init__(
        self, bind: str, port: int, controller_host: str, controller_port: int, handler: Handler
    ) -> None:
        super().__init__(bind, port, handler)
        self._host = ipv4(controller_host, "controller_host")
        self._to = checked_port(controller_port, "controller_port", low=0)
        self._target: tuple[str, int] | None = (self._host, self._to) if self._to else None
        self._from: tuple[str, int] | None = None
        self._rival = ("", 0.0)
        """Last sender that was ignored, host:port, and the time, s."""

    @property
    def rival(self) -> str:
        """Address of another sender, heard in the last RIVAL_SHOWN_S; "" if there is none."""
        address, heard_at = self._rival
        return address if time.monotonic() - heard_at < RIVAL_SHOWN_S else ""

    def send(self, data: bytes) -> None:
        if self._target is None:
            self.counters["send_dropped"] += 1
            return
        try:
            self._socket.sendto(data, self._target)
        except BlockingIOError:
            self.counters["send_dropped"] += 1
        except OSError:
            self.counters["socket_errors"] += 1

    def _open(self, thread: SocketThread) -> None:
        self._socket = self._bound(socket.SOCK_DGRAM)
        thread.receive(self._socket, self._datagram)

    def _datagram(self, data: bytes, sender: tuple[str, int]) -> None:
        """Take a datagram, if its sender is the peer or may become it."""
        silent = self.silence_s > PEER_SILENCE_S
        if sender[0] != self._host or (sender != self._from and not silent):
            self.counters["stranger"] += 1
            self._rival = (f"{sender[0]}:{sender[1]}", time.monotonic())
            return

        items = self._handler.parse(data)
        if not items:
            return

        # another peer
        if silent:
            if self._from is not None and sender != self._from:
                self.counters["replaced_peers"] += 1
            self._from = sender
            self.peer = f"{sender[0]}:{sender[1]}"
            if not self._to:
                self._target = sender
            self._heard_at = time.monotonic()
            self._handler.opened(self.peer)

        if self._handler.take(items):
            self._heard_at = time.monotonic()


class StreamTransport(Transport):
    """Base of links with one connection, which carries a stream of bytes."""

    def __init__(
        self, bind: str, port: int, handler: Handler, most_waiting: int = MAX_WAITING
    ) -> None:
        super().__init__(bind, port, handler)
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._connection: socket.socket | SerialPort | None = None
        self._waiting: deque[bytes] = deque()

        self._begun = b""
        """Rest of a frame whose beginning the peer has."""

    def send(self, data: bytes) -> None:
        with self._lock:
            if self._connection is None:
                self.counters["send_dropped"] += 1
                return

            # the oldest frame makes room
            if len(self._waiting) >= self._most_waiting:
                self._waiting.popleft()
                self.counters["send_dropped"] += 1
            self._waiting.append(data)

            if len(self._waiting) > 1 or self._begun:
                return  # the thread is sending already
            self._flush()
            self._wait_to_write()

    def _use(self, _sock: Any, events: int) -> None:
        """Read a connection that is readable, or write one that is writable and was waited for."""
        connection = self._connection
        if connection is None:
            return

        if events & selectors.EVENT_WRITE:
            with self._lock:
                self._flush()
                self._wait_to_write()

        if events & selectors.EVENT_READ:
            self._read(connection)

    def _read(self, sock: socket.socket | SerialPort) -> None:
        """Read once from the connection."""
        try:
            data = sock.recv(_CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.counters["socket_errors"] += 1
            self._drop()
            return
        if not data:
            self._drop()
            return

        self._budget.spend(len(data))
        if items := self._handler.parse(data):
            self._take(items)

    def _take(self, items: list[Any]) -> None:
        if self._handler.take(items):
            self._heard_at = time.monotonic()

    def _flush(self) -> None:
        """Send, holding the lock, as much as the system takes now."""
        connection = self._connection
        if connection is None:
            return
        try:
            while self._begun or self._waiting:
                data = self._begun or self._waiting.popleft()
                self._begun = data
                self._begun = data[connection.send(data) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:  # reading will show what became of the connection
            self.counters["socket_errors"] += 1
            self._waiting.clear()
            self._begun = b""

    def _wait_to_write(self) -> None:
        """Let the thread send, holding the lock, what the system could not take yet."""
        events = selectors.EVENT_READ
        if self._waiting or self._begun:
            events |= selectors.EVENT_WRITE
        if self._thread is not None and self._connection is not None:
            self._thread.watch(self._connection, events)

    def _drop(self) -> None:
        """Close the connection, and forget what waits for it."""
        with self._lock:
            connection = self._connection
            self._connection = None
            self._waiting.clear()
            self._begun = b""

        if connection is not None:
            if self._thread is not None:
                self._thread.remove(connection)
            connection.close()
            self.peer = ""
            self._handler.closed()

    def _hang_up(self) -> None:
        self._drop()


class TcpTransport(StreamTransport):
    """TCP server of one connection."""

    def _open(self, thread: SocketThread) -> None:
        server = self._bound(socket.SOCK_STREAM, share=True)
        server.listen(4)
        thread.add(server, self._accept)

    def _accept(self, server: socket.socket, _events: int) -> None:
        """Accept a connection, unless there is a peer that is not silent."""
        try:
            connection, address = server.accept()
        except OSError:
            self.counters["socket_errors"] += 1
            return

        # one peer at a time
        if self._connection is not None:
            if self.silence_s <= PEER_SILENCE_S:
                self.counters["refused_peers"] += 1
                connection.close()
                return
            self.counters["replaced_peers"] += 1
            self._drop()

        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        # frames for a slow reader wait here, where they are counted and replaced by newer ones
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

        self._heard_at = time.monotonic()
        self.peer = f"{address[0]}:{address[1]}"
        self._handler.opened(self.peer)
        assert self._thread is not None
        with self._lock:
            self._thread.add(connection, self._use)
            self._connection = connection


class SerialTransport(StreamTransport):
    """One serial line; if it is pulled out, it is opened again as soon as it is back.

    A peer that speaks again after `PEER_SILENCE_S` counts as a new one: a board that restarts
    leaves the line as it is.
    """

    def __init__(
        self, device: str, baud: int, handler: Handler, most_waiting: int = MAX_WAITING
    ) -> None:
        """Set the line up.

        `most_waiting`: frames that wait; of more the oldest go. 1: the newest replaces the waiting
        one.
        """
        super().__init__("127.0.0.1", 0, handler, most_waiting)
        self._device = device
        self._baud = baud
        self._tried_at = -_REOPEN_S

    def close(self) -> None:
        """Close everything, waiting at most `_LINGER_S` for frames to go."""
        until = time.monotonic() + _LINGER_S
        while (self._waiting or self._begun) and time.monotonic() < until:
            time.sleep(0.005)
        super().close()

    def _take(self, items: list[Any]) -> None:
        if self.silence_s > PEER_SILENCE_S:
            self._connected()
        super()._take(items)

    def _open(self, thread: SocketThread) -> None:
        line = SerialPort(self._device, self._baud)
        thread.add(line, self._use)
        self._connection = line
        self._connected()

    def _tick(self, now_s: float) -> None:
        super()._tick(now_s)
        if self._connection is not None or now_s - self._tried_at < _REOPEN_S:
            return

        # the line may not be back yet
        self._tried_at = now_s
        assert self._thread is not None
        with contextlib.suppress(LinkError), self._lock:
            self._open(self._thread)

    def _connected(self) -> None:
        """Take note of a peer at the line."""
        self._heard_at = time.monotonic()
        self.peer = self._device
        self._handler.opened(self.peer)
