# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS topics to Foxglove, live by WebSocket: messages as they come, with their definitions.

The server speaks the protocol itself: foxglove-sdk 0.30 gives each client a copy of every message,
counts messages where bytes matter, sends a latched message to all clients when one subscribes, and
sees no web page's origin. It needs websockets, the extra `foxglove`.
"""

from __future__ import annotations

import asyncio
import http
import logging
import threading
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from rfly_bringup.topic_recording.foxglove_backlog import Backlog, BacklogReader, QueuedMessage
from rfly_bringup.topic_recording.foxglove_protocol import (
    MAX_REQUEST_BYTES,
    SUBPROTOCOLS,
    Subscribe,
    advertisement,
    error_status,
    message_fragments,
    read_request,
    server_info,
)
from rfly_common.errors import ConfigError
from rfly_common.sockets.web_sockets import (
    NoHandshakeErrors,
    OpenConnections,
    is_loopback,
    is_own_page,
)
from rfly_common.untrusted_files.mcap_reader import Topic

MAX_CLIENTS = 32
MAX_UNSENT_BYTES = 4 << 20
"""Bytes that wait in the sockets of all clients together."""
MAX_HELD_BYTES = 16 << 20
"""Bytes of messages that have left the queue, but are on their way to slow clients."""
_TURNED_AWAY = {
    "slow": "too slow for all messages: the oldest are left out",
    "stalled": "cut off: took nothing for 10 s, or held too much memory",
    "refused": f"refused: {MAX_CLIENTS} clients, or twice as many connections, are open",
    "foreign": "refused: from a foreign web page",
}
"""Texts of what happens to clients, by the connections' counters."""
APP_ORIGINS = ("file://", "https://app.foxglove.dev")
"""Origins of Foxglove: its installed app, and its web app."""

_FRAGMENT_BYTES = 65_536
_ADVERTISED_AT_ONCE = 16
"""Channels in one advertisement."""
_STATIC_TRANSFORMS = "/tf_static"
_MAX_STATIC_TRANSFORMS = 100
"""Messages of /tf_static to keep, as each node publishes its own; other topics keep the last."""
_CLOSE_S = 0.5
"""Time in which clients may answer the end of the server, s."""


class FoxgloveServer:
    """`Sink` that Foxglove connects to; it wants only topics that a client shows.

    Messages may be written from any thread. Sockets belong to a thread of the server's own.

    Raise ConfigError for an address that is not free.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._channels: list[Topic] = []
        self._lock = threading.Lock()
        """Guards the backlog, and with it the readers' positions."""
        self._backlog = Backlog()
        self._clients: set[_Client] = set()
        self._wanted: Counter[int] = Counter()
        """Number of subscriptions by channel."""
        self._connections = OpenConnections(MAX_UNSENT_BYTES)
        self._wake_is_due = False
        self._session = str(time.time_ns())
        self.messages = 0

        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        started = Future[int]()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._run(started),), name="foxglove"
        )
        self._thread.daemon = True
        self._thread.start()
        try:
            found_port = started.result()
        except OSError as error:
            self._thread.join()
            self._loop.close()
            raise ConfigError(
                f"{host}:{port}: no server for Foxglove can run here: {error.strerror}"
            ) from error

        self.address = f"ws://{f'[{host}]' if ':' in host else host}:{found_port}"

    @property
    def topics(self) -> int:
        """Number of topics."""
        return len(self._channels)

    def add_topic(self, topic: Topic) -> int:
        """Offer a topic to Foxglove, and return its channel."""
        channel = len(self._channels)
        if topic.latched:
            depth = _MAX_STATIC_TRANSFORMS if topic.name == _STATIC_TRANSFORMS else 1
            with self._lock:
                self._backlog.latch(channel, depth)
        self._channels.append(topic)
        self._wake()
        return channel

    def wants(self, channel: int) -> bool:
        """Return whether a client shows the topic."""
        return self._wanted[channel] > 0

    def write(self, channel: int, data: bytes, time_ns: int) -> None:
        """Send a message to all clients that show the topic."""
        with self._lock:
            self._backlog.append(channel, data, time_ns)
        self.messages += 1
        self._wake()

    def turned_away(self) -> Counter[str]:
        """Return the numbers of clients that were not served as they wished, by what happened."""
        counters = self._connections.counters
        return Counter({text: counters[reason] for reason, text in _TURNED_AWAY.items()})

    def close(self) -> None:
        """End the server."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def _wake(self) -> None:
        """Have every client look for news; further calls until then add nothing."""
        if not self._wake_is_due:
            self._wake_is_due = True
            self._loop.call_soon_threadsafe(self._on_wake)

    def _on_wake(self) -> None:
        self._wake_is_due = False
        self._cut_holders()
        for client in self._clients:
            client.news.set()

    def _cut_holders(self) -> None:
        """Cut the slowest clients while messages that only they hold have too many bytes."""
        with self._lock:
            held = {
                client.sending
                for client in self._clients
                if client.sending is not None and not self._backlog.holds(client.sending)
            }

        slowest_first = sorted(held, key=lambda message: message.number)
        excess = sum(len(message.data) for message in held) - MAX_HELD_BYTES
        # the last one stays: a single slow client may take its time, however large the message
        for message in slowest_first[:-1]:
            if excess <= 0:
                break
            excess -= len(message.data)
            for client in self._clients:
                if client.sending is message:
                    client.connection.cut("stalled")

    async def _run(self, started: Future[int]) -> None:
        logging.getLogger("websockets.server").addFilter(NoHandshakeErrors())
        try:
            server: Server = await serve(
                self._serve,
                self._host,
                self._port,
                create_connection=self._connections.connection,  # type: ignore[arg-type]
                process_request=self._process_request,
                subprotocols=SUBPROTOCOLS,  # type: ignore[arg-type]
                compression=None,
                max_size=MAX_REQUEST_BYTES,
                close_timeout=_CLOSE_S,
                server_header=None,
            )
        except OSError as error:
            started.set_exception(error)
            return

        started.set_result(server.sockets[0].getsockname()[1])
        await self._ended.wait()
        # a client that does not read takes no farewell either
        for connection in tuple(self._connections.open):
            if connection.paused:
                connection.transport.abort()
        server.close()
        await server.wait_closed()

    def _process_request(self, connection: Any, request: Request) -> Response | None:
        """Return a refusal, or None to go on."""
        host = request.headers.get("Host", "")
        if not _is_allowed(host, request.headers.get("Origin"), is_loopback(self._host)):
            self._connections.counters["foreign"] += 1
            return _refusal(http.HTTPStatus.FORBIDDEN, b"this web page may not read here\n")
        if self._connections.serving() >= MAX_CLIENTS:
            self._connections.counters["refused"] += 1
            return _refusal(http.HTTPStatus.SERVICE_UNAVAILABLE, b"too many clients\n")
        connection.serving = True
        return None

    async def _serve(self, connection: Any) -> None:
        """Serve one client until it goes."""
        client = _Client(connection, self._backlog.end)
        self._clients.add(client)
        sending = asyncio.create_task(self._send(client))
        try:
            async for text in connection:
                if problem := self._answer(client, text):
                    await connection.send(error_status(problem))
        except ConnectionClosed:
            pass
        finally:
            self._clients.discard(client)
            self._wanted.subtract(dict.fromkeys(client.reader.subscriptions, 1))
            sending.cancel()
            with suppress(asyncio.CancelledError, ConnectionClosed):
                await sending

    def _answer(self, client: _Client, text: str | bytes) -> str:
        """Carry out a request; return what is wrong with it, or nothing."""
        try:
            request = read_request(text)
        except ValueError as error:
            return str(error)

        if not isinstance(request, Subscribe):
            with self._lock:
                ended = client.reader.unsubscribe(request.subscriptions)
            self._wanted.subtract(dict.fromkeys(ended, 1))
            return ""

        known = {
            channel: number
            for channel, number in request.channels.items()
            if channel < len(self._channels) and channel not in client.reader.subscriptions
        }
        with self._lock:
            for channel, number in known.items():
                client.reader.subscribe(channel, number)
        self._wanted.update(known.keys())
        client.news.set()
        refused = len(request.channels) - len(known)
        return f"{refused} channels are unknown, or subscribed to already" if refused else ""

    async def _send(self, client: _Client) -> None:
        """Send a client all that is for it, one message at a time."""
        connection = client.connection
        await connection.send(server_info("rfly", self._session))
        while True:
            client.news.clear()
            while client.advertised < len(self._channels):
                start = client.advertised
                numbers = range(start, min(start + _ADVERTISED_AT_ONCE, len(self._channels)))
                client.advertised = numbers.stop
                await connection.send(advertisement([(n, self._channels[n]) for n in numbers]))

            with self._lock:
                message = client.reader.take(self._backlog)
            if client.reader.missed and not client.is_slow:
                client.is_slow = True
                self._connections.counters["slow"] += 1
            if message is None:
                await client.news.wait()
                continue

            client.sending = message
            subscription = client.reader.subscriptions[message.channel]
            await connection.send(
                message_fragments(subscription, message.data, message.time_ns, _FRAGMENT_BYTES)
            )
            client.sending = None
            await asyncio.sleep(0)


class _Client:
    """One client, in the server's thread."""

    def __init__(self, connection: Any, position: int) -> None:
        self.connection = connection
        self.reader = BacklogReader(position)
        self.news = asyncio.Event()
        """Set if there may be something to send."""
        self.advertised = 0
        """Number of channels that it has been offered."""
        self.sending: QueuedMessage | None = None
        self.is_slow = False
        """True once it has missed a message."""


def _is_allowed(host: str, origin: str | None, loopback: bool) -> bool:
    """Return whether a request comes from Foxglove, from this machine's own pages, or from no page.

    A page of this machine, such as a free fork of Foxglove, has a server with another port.
    """
    if origin in APP_ORIGINS:
        origin = None
    elif origin is not None:
        try:
            name = urlsplit(origin).hostname or ""
            _ = urlsplit(origin).port  # ValueError for one that is no number
            own_name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name and (name == own_name or (loopback and is_loopback(name))):
            origin = None
    return is_own_page(host, origin, loopback)


def _refusal(status: http.HTTPStatus, text: bytes) -> Response:
    return Response(status, status.phrase.upper(), Headers(), text)
