# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foxglove's clients that misbehave, at `rfly view --foxglove`.

They subscribe to everything and stop reading, subscribe and unsubscribe without end, come from
foreign pages, and send spoilt or huge frames. The server may hold little more memory for all of
them than for one client, and serves a sensible one afterwards.
"""

from __future__ import annotations

import json
import random
import socket
import struct
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace

from attacks.peers import (
    CROWD,
    LASTS_S,
    PATIENCE_S,
    PagePulse,
    frame,
    handshake,
    judged,
    streams,
)
from attacks.running import Running, own_graph, rfly, wait_until
from attacks.table import Result
from attacks.traffic import Traffic
from rfly_bringup.topic_recording.foxglove_backlog import MAX_QUEUED_BYTES

TRIES = 500
SHORT_TRIES = 20
"""Clients in a short run, besides those that stop reading."""
PROTOCOL = "foxglove.sdk.v1"
STALLED = 200
"""Clients at once that subscribe to everything and stop reading."""
MOST_GROWTH_MB = 100.0
"""Largest growth of resident memory above one client, 10^6 bytes: 20 MB for messages on their way
to slow clients (MAX_HELD_BYTES, MAX_UNSENT_BYTES), and a quarter of a megabyte a connection.
"""
FULL_BACKLOG_BYTES = 2 * MAX_QUEUED_BYTES
"""Bytes of messages after which the server's memory for one client has its size."""
STALLED_S = 5.0
"""Time for which stalled clients are watched, s."""
CHANNELS = 200
ODD_REQUESTS: tuple[object, ...] = (
    {"op": "subscribe", "subscriptions": [{"id": -1, "channelId": 2**70}, None, "x"]},
    {"op": "subscribe", "subscriptions": [{"id": 1, "channelId": n} for n in range(1000)]},
    {"op": "unsubscribe", "subscriptionIds": [2**64, "a"]},
    {"op": "unsubscribe", "subscriptionIds": {}},
    {"op": "advertise", "channels": [{"id": 1, "topic": "/clock", "schemaName": "x" * 9000}]},
    {"op": "setParameters", "parameters": [{"name": "map_search_path", "value": "/"}]},
    {"op": "fetchAsset", "uri": "file:///etc/passwd", "requestId": 1},
    {"op": ["subscribe"]},
    [[[]]],
    "\ud800",
)


def odd_clients(rng: random.Random, host: str) -> list[bytes]:
    """Return what clients send: handshakes, and after them requests and frames of all kinds."""
    hello = handshake(host, PROTOCOL)
    frames = [frame(rng, json.dumps(request).encode(), 0x81) for request in ODD_REQUESTS]

    # spoilt texts and frames, other kinds of frames
    texts = (b"", b"{", b"[" * 60_000, b"\xff\xfe", rng.randbytes(300))
    frames += [frame(rng, text, kind) for text in texts for kind in (0x81, 0x82)]
    frames += [frame(rng, b"x" * 200, kind) for kind in (0x01, 0x83, 0x89, 0xF1)]

    # more than a request may have: declared, sent, and in pieces without an end
    frames += [
        struct.pack(">BBQ", 0x81, 0xFF, 2**62) + bytes(1000),
        frame(rng, b" " * 1_000_000, 0x81),
        frame(rng, b" ", 0x01) + frame(rng, b" " * 60_000, 0x00) * 20,
    ]

    away = json.dumps({"op": "unsubscribe", "subscriptionIds": list(range(CHANNELS))})
    storm = _subscribe(rng) + frame(rng, away.encode(), 0x81)
    foreign = handshake(host, PROTOCOL, "Origin: http://elsewhere.example")
    return [hello, *(hello + each for each in frames), hello + 200 * storm, foreign]


def _subscribe(rng: random.Random) -> bytes:
    """Return the request for all channels."""
    wanted = [{"id": n, "channelId": n} for n in range(CHANNELS)]
    return frame(rng, json.dumps({"op": "subscribe", "subscriptions": wanted}).encode(), 0x81)


def foxglove_clients(rng: random.Random, tries: int) -> Result:
    """Be a crowd of odd clients, then one of stalled ones, then a sensible one."""
    with (
        own_graph() as graph,
        Traffic(graph),
        Running(rfly("view", "--foxglove", "--port", "0"), graph) as running,
    ):
        running.wait_for("ws://127.0.0.1:")
        host = running.output.partition("ws://")[2].split(";")[0].strip()
        wait_until(lambda: received_bytes(host), "a message of a topic", PATIENCE_S)
        port = int(host.rpartition(":")[2])

        # the memory for one client
        received_bytes(host, FULL_BACKLOG_BYTES)
        base_mb = running.peak_mb or 0.0

        hello = handshake(host, PROTOCOL) + _subscribe(rng)
        failures = []
        with PagePulse(f"http://{host}") as pulse:
            for crowd, odd in ((CROWD, tries), (STALLED, 0)):
                with ExitStack() as stalled:
                    for _ in range(crowd):
                        _stall(stalled, port, hello)
                    streams(rng, odd, port, odd_clients(rng, host))
                    time.sleep(STALLED_S)
            if not received_bytes(host):
                failures.append("a client gets no message afterwards")
            if not _is_refused(host, "http://elsewhere.example"):
                failures.append("a foreign page is served")

        growth_mb = (running.peak_mb or 0.0) - base_mb
        if growth_mb > MOST_GROWTH_MB:
            failures.append(f"it grew by {growth_mb:.0f} MB above one client's {base_mb:.0f}")
        result = judged(
            "clients of rfly view --foxglove", tries, running, pulse.longest_stall(), failures
        )
        return replace(result, tried=tries + STALLED)


def _stall(stack: ExitStack, port: int, hello: bytes) -> None:
    """Open a client that subscribes and never reads."""
    peer = stack.enter_context(socket.socket())
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.settimeout(LASTS_S)
    with suppress(OSError):
        peer.connect(("127.0.0.1", port))
        peer.sendall(hello)


def _is_refused(host: str, origin: str) -> bool:
    """Return whether the server refuses pages of this origin."""
    address, _, port = host.rpartition(":")
    with socket.create_connection((address, int(port)), PATIENCE_S) as peer:
        peer.sendall(handshake(host, PROTOCOL, f"Origin: {origin}"))
        return b" 403 " in peer.recv(100)


def received_bytes(host: str, enough: int = 1) -> int:
    """Return the bytes of messages that a client has got once they are enough.

    The client subscribes to all topics. It gives up when nothing comes for PATIENCE_S.
    """
    from websockets.exceptions import InvalidHandshake
    from websockets.sync.client import connect

    received = 0
    with (
        suppress(OSError, InvalidHandshake),
        connect(f"ws://{host}", subprotocols=[PROTOCOL], max_size=None) as client,  # type: ignore[list-item]
    ):
        while received < enough:
            data = client.recv(timeout=PATIENCE_S)
            if isinstance(data, bytes):
                received += len(data)
                continue
            channels = json.loads(data).get("channels", ())
            wanted = [{"id": each["id"], "channelId": each["id"]} for each in channels]
            client.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
    return received


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"Foxglove": foxglove_clients}
