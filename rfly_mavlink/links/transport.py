# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Links to one peer at a time that never wait: UDP, a TCP server, and a serial line.

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
import errno
import ipaddress
import selectors
import socket
import threading
import time
from collections import deque
from typing import Any

from rfly_common.errors import ConfigError, LinkError
from rfly_common.threads.loop_thread import LoopThread
from rfly_mavlink.links.serial_port import SerialPort

PEER_SILENCE_S = 3.0
"""Silence after which another sender may take the peer's place, s."""

MAX_WAITING = 64
"""Frames that wait for a slow reader; of more the oldest go."""

MAX_RATE_BYTES = 4_000_000
"""Bytes read per second in the long run, enough for some 10,000 frames."""

_BURST_BYTES = 1_000_000
"""Bytes that may be read at once after a quiet time."""

_LONGEST_PAUSE_S = 0.1
"""Longest pause of reading, s."""

_COST_BYTES = 64
"""Cost of a read in addition to its bytes."""

_CHUNK_BYTES = 65_536
"""Largest piece that is read at once."""

_BATCH = 64
"""Datagrams that are read in one turn."""

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
        self._socket: Any  # a socket, or a serial line
        self._stop = threading.Event()
        self._thread: LoopThread | None = None
        self._heard_at = 0.0
        self._budget = float(_BURST_BYTES)
        self._budget_at = time.monotonic()

    @property
    def rival(self) -> str:
        """Address of another sender, heard in the last RIVAL_SHOWN_S; "" if there is none."""
        return ""

    def start(self) -> None:
        """Open the port. Raise LinkError with the reason if that fails."""
        self._open()
        self._near, self._far = socket.socketpair()
        self._near.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._near, selectors.EVENT_READ)
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._stop.clear()
        self._far.setblocking(False)
        self._thread = LoopThread(self._run, f"rfly_link_{self.port}")
        self._thread.start()

    def close(self) -> None:
        """Close everything immediately."""
        if self._thread is None:
            return
        self._stop.set()
        self._nudge()
        self._thread.join()
        self._thread = None
        self._selector.close()
        for sock in (self._socket, self._near, self._far):
            sock.close()

    @abc.abstractmethod
    def send(self, data: bytes) -> None:
        """Send one frame to the peer without waiting. Any thread may call it."""

    @property
    def silence_s(self) -> float:
        """Time since the peer's last sign of life, s; infinite without a peer."""
        return time.monotonic() - self._heard_at if self.peer else float("inf")

    def _bound(self, kind: socket.SocketKind, share: bool = False) -> socket.socket:
        """Return a bound socket. Raise LinkError if the port is not available."""
        sock = socket.socket(socket.AF_INET, kind)
        try:
            if share:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind((self.bind, self.requested_port))
        except OSError as error:
            sock.close()
            reasons = {
                errno.EADDRINUSE: "another program holds it",
                errno.EADDRNOTAVAIL: "not an address of this machine",
            }
            name = "TCP" if kind is socket.SOCK_STREAM else "UDP"
            reason = reasons.get(error.errno or 0, error.strerror or str(error))
            raise LinkError(f"{name} port {self.bind}:{self.requested_port}: {reason}") from error

        self.port = sock.getsockname()[1]
        return sock

    @abc.abstractmethod
    def _open(self) -> None:
        """Make the bound `_socket`."""

    @abc.abstractmethod
    def _ready(self, sock: Any, events: int) -> None:
        """Read a socket that is readable, or write one that is writable and was waited for."""

    def _nudge(self) -> None:
        """Wake the thread up."""
        with contextlib.suppress(BlockingIOError):
            self._far.send(b"n")

    def _run(self) -> bool:
        """Serve the sockets once; return False when the link is closed."""
        if self._stop.is_set():
            self._hang_up()
            return False
        for key, events in self._selector.select(_TICK_S):
            if key.fileobj is self._near:
                self._near.recv(4096)
                self._nudged()
            else:
                self._ready(key.fileobj, events)
        self._tick()
        self._spend(-_COST_BYTES)

        # a flood waits in the system's buffer, or is lost there
        if self._budget < 0.0:
            self._stop.wait(min(_LONGEST_PAUSE_S, -self._budget / MAX_RATE_BYTES))
        return True

    @abc.abstractmethod
    def _nudged(self) -> None:
        """Send what another thread could not send immediately."""

    def _tick(self) -> None:
        """Do periodic work, in the thread, at least four times a second."""
        self._handler.tick()

    def _hang_up(self) -> None:
        self.peer = ""

    def _spend(self, count: int) -> None:
        """Take bytes off the budget of reading, which grows with time."""
        now = time.monotonic()
        earned = (now - self._budget_at) * MAX_RATE_BYTES
        self._budget = min(float(_BURST_BYTES), self._budget + earned) - count - _COST_BYTES
        self._budget_at = now


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

    def _open(self) -> None:
        self._socket = self._bound(socket.SOCK_DGRAM)

    def _nudged(self) -> None:
        """Do nothing: a datagram that cannot go immediately is lost."""

    def _ready(self, sock: Any, events: int) -> None:
        for _ in range(_BATCH):
            try:
                data, sender = sock.recvfrom(_CHUNK_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.counters["socket_errors"] += 1
                return
            self._spend(len(data))
            self._datagram(data, sender)

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
            if not (self._waiting or self._begun):
                return
        self._nudge()

    def _use(self, events: int) -> None:
        """Read a connection that is readable, or write one that is writable and was waited for."""
        connection = self._connection
        if connection is None:
            return

        if events & selectors.EVENT_WRITE:
            with self._lock:
                self._flush()
                busy = bool(self._waiting or self._begun)
            if not busy:
                self._selector.modify(connection, selectors.EVENT_READ)

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

        self._spend(len(data))
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

    def _nudged(self) -> None:
        if self._connection is not None and (self._waiting or self._begun):
            self._selector.modify(self._connection, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _drop(self) -> None:
        """Close the connection, and forget what waits for it."""
        with self._lock:
            connection = self._connection
            self._connection = None
            self._waiting.clear()
            self._begun = b""

        if connection is not None:
            self._selector.unregister(connection)
            connection.close()
            self.peer = ""
            self._handler.closed()

    def _hang_up(self) -> None:
        self._drop()


class TcpTransport(StreamTransport):
    """TCP server of one connection."""

    def _open(self) -> None:
        self._socket = self._bound(socket.SOCK_STREAM, share=True)
        self._socket.listen(4)

    def _ready(self, sock: Any, events: int) -> None:
        if sock is self._socket:
            self._accept(sock)
        elif sock is self._connection:
            self._use(events)

    def _accept(self, server: socket.socket) -> None:
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
        self._selector.register(connection, selectors.EVENT_READ)
        self._handler.opened(self.peer)
        with self._lock:
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

    def _open(self) -> None:
        self._socket = self._connection = SerialPort(self._device, self._baud)
        self._connected()

    def _ready(self, sock: Any, events: int) -> None:
        self._use(events)

    def _tick(self) -> None:
        super()._tick()
        now = time.monotonic()
        if self._connection is not None or now - self._tried_at < _REOPEN_S:
            return

        # the line may not be back yet
        self._tried_at = now
        with contextlib.suppress(LinkError):
            line = SerialPort(self._device, self._baud)
            with self._lock:
                self._connection = line
                self._socket = line
            self._selector.register(line, selectors.EVENT_READ)
            self._connected()

    def _connected(self) -> None:
        """Take note of a peer at the line."""
        self._heard_at = time.monotonic()
        self.peer = self._device
        self._handler.opened(self.peer)


def ipv4(text: str, name: str) -> str:
    """Return a checked address. Raise ConfigError that begins with its name."""
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as error:
        raise ConfigError(f"{name}: {text!r} is no IPv4 address ({error})") from error


def checked_port(port: int, name: str, low: int = 1) -> int:
    """Return a checked port. Raise ConfigError that begins with its name."""
    if not low <= port <= 65535:
        raise ConfigError(f"{name}: {port}, expected {low} to 65535")
    return port
