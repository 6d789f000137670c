# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Connections of WebSocket servers: their number, peers that stop reading, and whose page asks."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections import Counter
from typing import Any
from urllib.parse import urlsplit

import websockets.exceptions
from websockets.asyncio.server import ServerConnection

MAX_CONNECTIONS = 64
"""Open connections; a page has one for its WebSocket, and up to six more while it loads."""
STALLED_S = 10.0
"""Time without a byte taken, while some wait, after which a connection is cut, s."""
_CHECK_S = 1.0
"""Time between two looks at a connection whose bytes wait, s."""

_PEERS_ERRORS = (OSError, EOFError, AssertionError, websockets.exceptions.WebSocketException)


class OpenConnections:
    """Connections of one server; `connection` is its `create_connection`."""

    def __init__(self, max_queued_bytes: int) -> None:
        self.open: set[LimitedConnection] = set()
        self.counters: Counter[str] = Counter()
        """Counts of refused and stalled connections."""
        self.max_queued_bytes = max_queued_bytes
        """Most bytes that wait to be sent, of all connections together."""

    def connection(self, *arguments: Any, **options: Any) -> LimitedConnection:
        """Return one more connection, for `websockets.asyncio.server.serve`."""
        return LimitedConnection(self, *arguments, **options)

    def serving(self) -> int:
        """Return the number of open WebSockets."""
        return sum(each.serving for each in self.open)

    def keep_within_limit(self) -> None:
        """Cut those that have taken nothing for longest, while too many bytes wait."""
        stalled = sorted(
            (each for each in self.open if each.paused), key=lambda each: each.taken_at
        )
        for each in stalled:
            waiting = sum(other.transport.get_write_buffer_size() for other in self.open)
            if waiting <= self.max_queued_bytes:
                return
            each.cut("stalled")


class LimitedConnection(ServerConnection):
    """Connection that is cut if there are too many, or if its peer stops reading."""

    def __init__(self, others: OpenConnections, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.others = others
        self._watch: asyncio.TimerHandle | None = None
        self.taken_at = 0.0
        """Time of the event loop at which its peer was last seen to take bytes, s."""
        self.serving = False
        """True once its WebSocket has begun."""

    def connection_made(self, transport: Any) -> None:
        """Count the connection; one too many is cut at once."""
        super().connection_made(transport)
        self.others.open.add(self)
        if len(self.others.open) > MAX_CONNECTIONS:
            self.cut("refused")

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection."""
        self.others.open.discard(self)
        self._stop_watching()
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and look at what waits: pings are answered also to who reads no answer."""
        super().data_received(data)
        if self.paused:
            self.others.keep_within_limit()

    def pause_writing(self) -> None:
        """Watch the connection, as more waits than the network takes at once."""
        super().pause_writing()
        self.taken_at = self.loop.time()
        self._watch_for_progress()
        self.others.keep_within_limit()

    def resume_writing(self) -> None:
        """Stop watching, as the peer has caught up."""
        self._stop_watching()
        super().resume_writing()

    def cut(self, reason: str) -> None:
        """End the connection without a farewell, and count the reason."""
        if not self.transport.is_closing():
            self.others.counters[reason] += 1
            self.transport.abort()

    def _watch_for_progress(self) -> None:
        waiting = self.transport.get_write_buffer_size()

        def check() -> None:
            nonlocal waiting
            now = self.loop.time()
            still_waiting = self.transport.get_write_buffer_size()
            if still_waiting < waiting:
                self.taken_at = now
            waiting = still_waiting
            if now - self.taken_at >= STALLED_S:
                self.cut("stalled")
            else:
                self._watch = self.loop.call_later(_CHECK_S, check)

        self._stop_watching()
        self._watch = self.loop.call_later(_CHECK_S, check)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


class NoHandshakeErrors(logging.Filter):
    """Filter of websockets' tracebacks.

    Errors of a peer that speaks another protocol or goes away are left out, others logged in one
    line. websockets 16.1 meets an assertion of its own if a peer is refused that has sent a broken
    frame already.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, _PEERS_ERRORS):
            return False
        if error is not None:
            record.msg = f"{record.getMessage()}: {type(error).__name__}: {error}"
            record.args = ()
            record.exc_info = record.exc_text = None
        return not record.getMessage().startswith(
            ("opening handshake failed", "connection rejected")
        )


def is_own_page(host: str, origin: str | None, loopback: bool) -> bool:
    """Return whether a request comes from the page of this server, or from no page (`origin` None).

    A server on loopback must also be asked by its own name: a foreign name that was made to lead
    here is refused.
    """
    try:
        if origin is not None and urlsplit(origin).netloc != host:
            return False
        return not loopback or is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:  # an address of IPv6 without its bracket
        return False


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
