# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One peer that reads nothing costs no other its connection."""

from __future__ import annotations

import asyncio
import socket

import pytest
from node_harness import PATIENCE
from optional_parts import late_module

pytestmark = pytest.mark.needs("websockets")

web_sockets = late_module("rfly_common.sockets.web_sockets")

PIECE = bytes(50_000)
HELLO = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_who_has_taken_nothing_for_longest_is_cut():
    """More waits than allowed because of one peer; the other one, which reads, gets all."""
    served = asyncio.run(asyncio.wait_for(serve_both(), PATIENCE))
    assert served == (40 * len(PIECE), {"stalled": 1})


async def serve_both():
    """Return the bytes that the reader has got, and the connections' counters."""
    from websockets.asyncio.client import connect
    from websockets.asyncio.server import serve
    from websockets.exceptions import ConnectionClosed

    # one peer alone leaves up to 350,000 bytes waiting, and any other one 50,000 more
    connections = web_sockets.OpenConnections(355_000)
    serving: asyncio.Queue = asyncio.Queue()

    async def send(connection):
        sending = connection.transport.get_extra_info("socket")
        sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        connection.transport.set_write_buffer_limits(high=300_000)
        serving.put_nowait(connection)
        try:
            for _ in range(40):
                await connection.send(PIECE)
        except ConnectionClosed:
            pass

    async with serve(
        send, "127.0.0.1", 0, create_connection=connections.connection, compression=None
    ) as server:
        port = server.sockets[0].getsockname()[1]
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.connect(("127.0.0.1", port))
            deaf.sendall(HELLO)
            stalled = await serving.get()
            while not stalled.paused:
                await asyncio.sleep(0.01)

            async with connect(f"ws://127.0.0.1:{port}", compression=None) as reader:
                reading = await serving.get()
                reading.transport.set_write_buffer_limits(high=0)
                got = sum([len(await reader.recv()) for _ in range(40)])
            return got, dict(connections.counters)
