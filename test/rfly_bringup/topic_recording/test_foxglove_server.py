# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The server for Foxglove against clients that stall, come in crowds, or are foreign pages."""

from __future__ import annotations

import gc
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from marks import exhaustively
from node_harness import PATIENCE, wait_until

pytestmark = pytest.mark.needs("websockets")

PUBLISHER = Path(__file__).with_name("foxglove_publisher.py")
PROTOCOL = ["foxglove.sdk.v1"]
TOPICS = ["/ground", "/costs", "/image", "/pose"]
LATCHED_BYTES = 20_000_000
MOST_MB = 50.0


class Publisher:
    """The process of foxglove_publisher, and its memory."""

    def __init__(self, folder):
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(PUBLISHER), str(os.getpid())],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address = self.process.stdout.readline().strip()
        self.port = int(self.address.rpartition(":")[2])

    def memory_mb(self, field="VmRSS"):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+)", status)[1]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def publisher(tmp_path):
    with Publisher(tmp_path) as publisher:
        yield publisher


@pytest.fixture(scope="module")
def patient_publisher(tmp_path_factory):
    """One process for all clients that ask one thing and go."""
    with Publisher(tmp_path_factory.mktemp("publisher")) as publisher:
        yield publisher


def frame(request):
    """A client's text frame, masked with zeros."""
    data = json.dumps(request).encode().ljust(126)
    return struct.pack(">BBH4x", 0x81, 0xFE, len(data)) + data


SUBSCRIBE = frame(
    {"op": "subscribe", "subscriptions": [{"id": n, "channelId": n} for n in range(4)]}
)
UNSUBSCRIBE = frame({"op": "unsubscribe", "subscriptionIds": [0, 1, 2, 3]})
PING = b"\x89\xfd\0\0\0\0" + bytes(125)


def hello(port, origin=""):
    header = f"Origin: {origin}\r\n" if origin else ""
    return (
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        f"Sec-WebSocket-Protocol: foxglove.sdk.v1\r\n{header}\r\n"
    ).encode()


def deaf_client(port):
    """A client with small buffers that subscribes to everything and reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(PATIENCE)
    client.connect(("127.0.0.1", port))
    client.sendall(hello(port) + SUBSCRIBE)
    return client


class Reading:
    """A client that reads all it gets, in a thread."""

    def __init__(self, address):
        from websockets.sync.client import connect

        self.socket = connect(address, subprotocols=PROTOCOL, max_size=None)
        self.channels = {}
        self.messages = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            for data in self.socket:
                if isinstance(data, str):
                    offers = json.loads(data).get("channels", ())
                    self.channels.update((each["topic"], each["id"]) for each in offers)
                else:
                    number = struct.unpack_from("<xI", data)[0]
                    self.messages.append((time.monotonic(), number, len(data) - 13))
        self.ended.set()

    def ask(self, operation, key, values):
        self.socket.send(json.dumps({"op": operation, key: values}))

    def subscribe(self, *topics):
        wait_until(lambda: set(topics) <= set(self.channels))
        numbers = [self.channels[topic] for topic in topics]
        self.ask("subscribe", "subscriptions", [{"id": n, "channelId": n} for n in numbers])

    def count(self, topic):
        return sum(number == self.channels[topic] for _, number, _ in tuple(self.messages))

    def close(self):
        self.socket.close()
        self.thread.join()


def everything(publisher):
    """A client that has everything."""
    client = Reading(publisher.address)
    client.subscribe(*TOPICS)
    wait_until(lambda: all(client.count(topic) for topic in TOPICS))
    return client


def crowd(publisher, size, seconds, disturb=lambda client: None):
    """MB above one client, while so many stalled ones are there, and what the good one gets."""
    good = everything(publisher)
    time.sleep(1.0)
    before = publisher.memory_mb()
    got = good.count("/pose")
    with ExitStack() as clients:
        deaf = []
        for _ in range(size):
            with suppress(OSError):
                deaf.append(clients.enter_context(deaf_client(publisher.port)))
        most = 0.0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for client in deaf:
                with suppress(OSError):
                    disturb(client)
            time.sleep(0.05)
            most = max(most, publisher.memory_mb() - before)
    wait_until(lambda: good.count("/pose") > got + 10 * seconds)
    good.close()
    return most


@pytest.mark.parametrize(("size", "seconds"), [(40, 3.0), exhaustively(200, 20.0)])
def test_a_crowd_that_stops_reading_needs_no_memory(publisher, size, seconds):
    most = crowd(publisher, size, seconds)
    print(f"{most:.0f} MB more")
    assert most < MOST_MB
    assert "refused: 32 clients" in publisher.log.read_text()


@pytest.mark.parametrize(("size", "seconds"), [(20, 3.0), exhaustively(200, 20.0)])
@pytest.mark.parametrize(
    "request_again",
    [pytest.param(UNSUBSCRIBE + SUBSCRIBE, id="subscribe"), exhaustively(PING * 50, id="ping")],
)
def test_a_crowd_that_asks_and_never_reads_needs_no_memory(publisher, request_again, size, seconds):
    def disturb(client):
        client.settimeout(0.01)
        client.sendall(request_again)

    most = crowd(publisher, size, seconds, disturb)
    print(f"{most:.0f} MB more")
    assert most < MOST_MB


def test_clients_that_each_hold_another_image_are_cut(publisher):
    """Twenty images of 1 MB are more than the queue's 16 MB and what may be held besides."""
    with ExitStack() as clients:
        good = everything(publisher)
        before = publisher.memory_mb()
        for _ in range(30):
            client = clients.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", publisher.port))
            image = {"op": "subscribe", "subscriptions": [{"id": 2, "channelId": 2}]}
            client.sendall(hello(publisher.port) + frame(image))
            time.sleep(0.1)
        wait_until(lambda: "cut off: took nothing for 10 s" in publisher.log.read_text())
        assert publisher.memory_mb() - before < MOST_MB
        assert not good.ended.is_set()
        good.close()


def test_a_stalled_client_is_cut_after_ten_seconds(publisher):
    start = time.monotonic()
    with deaf_client(publisher.port):
        wait_until(lambda: "cut off: took nothing for 10 s" in publisher.log.read_text())
        assert time.monotonic() - start > 9.9


def test_a_latched_message_goes_to_the_new_client_only(publisher):
    first = everything(publisher)
    for _ in range(3):
        late = everything(publisher)
        assert late.count("/ground") == late.count("/costs") == 1
        late.close()
    assert first.count("/ground") == first.count("/costs") == 1

    # again for who asks again
    ground = first.channels["/ground"]
    first.ask("unsubscribe", "subscriptionIds", [ground])
    first.subscribe("/ground")
    wait_until(lambda: first.count("/ground") == 2)
    sizes = {size for _, number, size in first.messages if number == ground}
    assert sizes == {LATCHED_BYTES}
    first.close()


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("", 101),
        ("file://", 101),
        ("https://app.foxglove.dev", 101),
        ("http://localhost:8080", 101),
        ("http://127.0.0.1:3000", 101),
        ("https://example.com", 403),
        ("https://app.foxglove.dev.example.com", 403),
        ("http://app.foxglove.dev", 403),
        ("null", 403),
        ("http://localhost.example.com", 403),
    ],
)
def test_foreign_pages_are_refused(patient_publisher, origin, status):
    with socket.create_connection(("127.0.0.1", patient_publisher.port), PATIENCE) as client:
        client.sendall(hello(patient_publisher.port, origin))
        assert client.recv(12) == f"HTTP/1.1 {status}".encode()


def test_a_refused_client_with_a_broken_frame_leaves_nothing_in_the_log(patient_publisher):
    """The frame comes with the request that is refused, and has bits that are reserved."""
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", patient_publisher.port), PATIENCE) as client:
            client.sendall(hello(patient_publisher.port, "https://example.com") + b"\xf1\x80abcd")
            while client.recv(1000):
                pass
    assert "error" not in patient_publisher.log.read_text().lower()


def test_a_foreign_name_for_this_machine_is_refused(patient_publisher):
    request = hello(patient_publisher.port, "http://rebound.example:8765")
    with socket.create_connection(("127.0.0.1", patient_publisher.port), PATIENCE) as client:
        client.sendall(request.replace(b"Host: 127.0.0.1:", b"Host: rebound.example:"))
        assert client.recv(12) == b"HTTP/1.1 403"


@pytest.mark.parametrize(
    ("request_text", "answer"),
    [
        ("[[[]]]", "unknown operation"),
        ("{", "no JSON"),
        ("[" * 60_000, "no JSON"),
        ('{"op": "subscribe", "subscriptions": 3}', "subscriptions: expected a list"),
        ('{"op": "subscribe", "subscriptions": [null]}', "expected objects with id and channelId"),
        ('{"op": "subscribe", "subscriptions": [{"id": -1, "channelId": 0}]}', "expected a number"),
        (
            '{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 1e9}]}',
            "expected a number",
        ),
        (
            '{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": 77}]}',
            "1 channels are unk",
        ),
        ('{"op": "unsubscribe", "subscriptionIds": ["a"]}', "expected a number"),
        ('{"op": "advertise", "channels": []}', "only subscribe and unsubscribe"),
        (b"\1\2\3", "clients cannot publish"),
    ],
)
def test_an_odd_request_is_answered_with_a_sentence(patient_publisher, request_text, answer):
    from websockets.sync.client import connect

    with connect(patient_publisher.address, subprotocols=PROTOCOL) as client:
        client.send(request_text)
        while True:
            message = json.loads(client.recv(timeout=PATIENCE))
            if message["op"] == "status":
                break
        assert message["level"] == 2
        assert answer in message["message"]


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_a_port_that_is_taken_is_named_and_nothing_stays_open():
    from rfly_bringup.topic_recording.foxglove_server import FoxgloveServer
    from rfly_common.errors import ConfigError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigError, match=f"127.0.0.1:{port}: no server for Foxglove can run here"
        ):
            FoxgloveServer("127.0.0.1", port)
    gc.collect()


def test_a_slow_reader_misses_the_oldest_and_gets_the_newest_latched():
    from rfly_bringup.topic_recording.foxglove_backlog import (
        MAX_QUEUED_BYTES,
        Backlog,
        BacklogReader,
    )

    backlog = Backlog()
    backlog.latch(0, 1)
    reader = BacklogReader(backlog.end)
    reader.subscribe(0, 7)
    reader.subscribe(1, 8)
    backlog.append(0, b"old", 0)
    backlog.append(0, b"new", 1)
    size = MAX_QUEUED_BYTES // 4
    for number in range(6):
        backlog.append(1, bytes([number]) * size, number)

    taken = []
    while (message := reader.take(backlog)) is not None:
        taken.append(message)
    assert [message.data[:3] for message in taken] == [
        b"new",
        *(bytes([n]) * 3 for n in (2, 3, 4, 5)),
    ]
    assert reader.missed == 4


def test_it_ends_though_clients_do_not_read():
    from rfly_bringup.topic_recording.foxglove_server import FoxgloveServer
    from rfly_common.untrusted_files.mcap_reader import Topic

    server = FoxgloveServer("127.0.0.1", 0)
    channel = server.add_topic(Topic("/ground", "std_msgs/msg/String", "string data", True))
    server.write(channel, bytes(LATCHED_BYTES), 1)
    port = int(server.address.rpartition(":")[2])
    with ExitStack() as clients:
        for _ in range(5):
            clients.enter_context(deaf_client(port))
        wait_until(lambda: server.wants(channel))
        time.sleep(0.3)
        server.close()
