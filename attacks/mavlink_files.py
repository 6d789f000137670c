# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink peers at mavlink_node's file transfer, time synchronization and ping.

They ask for files outside, hold sessions, start bursts and checksums, repeat themselves, and answer
questions that were not asked. A sensible station downloads metadata meanwhile.
"""

from __future__ import annotations

import random
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from attacks.peers import PATIENCE_S, judged, listening_port, node_at_work
from attacks.running import Running, free_port
from attacks.table import Result

TRIES = 20_000
SHORT_TRIES = 600
BETWEEN = 100
"""Hostile messages between two downloads of the sensible station."""
HOSTILE_STATIONS = 8
"""Addresses of hostile stations; with the sensible one fewer than the node serves."""
MOST_FILES = 30
"""Open files of the node beyond those of its start."""
ANSWERED_S = 0.2
"""Time after which no replies to earlier messages come, s."""
RETRY_S = 0.5
"""Time after which the sensible station repeats a request, s."""
CHUNK = 239
GENERAL = b"/metadata/general.json"
SECRET = b"a secret outside of the log folder"
NAMES: tuple[bytes, ...] = (
    b"",
    b".",
    b"..",
    b"logs",
    b"metadata",
    b"run.mcap",
    b"away.mcap",
    b"secret",
)
NAMES += (b"general.json", b"etc", b"passwd", b"a" * 100, b"\0", b"\xff\xfe", b"%2e%2e", b"@PARAM")
OPEN = 4
READ = 5
TERMINATE = 1
ACK = 128


def hostile_payload(rng: random.Random, folder: Path) -> bytes:
    """Return a request of file transfer with any operation, session, offset and path."""
    path = rng.choice((b"/", b"//", b"\\", b"")).join(rng.choices(NAMES, k=rng.randrange(1, 6)))
    if rng.random() < 0.2:
        path = rng.choice((bytes(folder), bytes(folder.parent / "secret.txt"), rng.randbytes(239)))
    elif rng.random() < 0.3:
        path = rng.choice((b"/logs/run.mcap", GENERAL))

    opcode = rng.randrange(17) if rng.random() < 0.95 else rng.randrange(256)
    size = min(len(path), 255) if rng.random() < 0.9 else rng.randrange(256)
    offset = rng.choice((0, 1, 239, 4_999, 2**31, 2**32 - 1, rng.randrange(10_000)))
    header = struct.pack(
        "<HBBBBBBI",
        rng.choice((0, 1, 65535)),
        rng.choice((0, 1, 2, 15, 255)),
        opcode,
        size,
        rng.randrange(256),
        rng.randrange(256),
        rng.randrange(256),
        offset,
    )
    return (header + path)[:251].ljust(251, b"\0")


class Station:
    """A ground station at an address of its own; it may pretend to be any system."""

    def __init__(self, port: int, system: int = 245) -> None:
        from rfly_mavlink.dialect.wire import Reader, Writer, load_dialect

        self.dialect = load_dialect()
        self._reader = Reader()
        self._writer = Writer(system, component_id=190)
        self._seq = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(("127.0.0.1", port))
        self._socket.settimeout(0.05)

    def send(self, message: Any) -> None:
        with suppress(ConnectionRefusedError):
            self._socket.send(self._writer.write(message))

    def send_file_request(self, payload: bytes) -> None:
        self.send(self.dialect.MAVLink_file_transfer_protocol_message(0, 1, 1, payload))

    def heard(self, seconds: float) -> Iterator[Any]:
        """Yield the messages that arrive in this time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(TimeoutError, ConnectionRefusedError):
                yield from self._reader.read(self._socket.recv(4096))

    def close(self) -> None:
        self._socket.close()

    def ask(self, opcode: int, data: bytes, session: int = 0, offset: int = 0) -> tuple[int, bytes]:
        """Send a request until its reply comes; return its session and data."""
        self._seq += 1
        size = len(data) or CHUNK
        header = struct.pack("<HBBBBBBI", self._seq, session, opcode, size, 0, 0, 0, offset)
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self.send_file_request((header + data).ljust(251, b"\0"))
            for message in self.heard(RETRY_S):
                if message.get_type() != "FILE_TRANSFER_PROTOCOL":
                    continue
                payload = bytes(message.payload)
                seq, session, reply, length = struct.unpack_from("<HBBB", payload)
                if seq == self._seq + 1:
                    return session, payload[12 : 12 + length] if reply == ACK else b""
        raise TimeoutError(f"no reply to operation {opcode}")

    def download(self, path: bytes) -> bytes:
        """Return a file."""
        session, _ = self.ask(OPEN, path)
        content = b""
        while part := self.ask(READ, b"", session, len(content))[1]:
            content += part
        self.ask(TERMINATE, b"", session)
        return content


def hostile_message(rng: random.Random, dialect: Any, folder: Path) -> tuple[Any, int]:
    """Return a message for the node, and the number of answers about time that it may get."""
    from rfly_mavlink.dialect.wire import newer_message

    odd = (0, 1, -1, 2**63 - 1, -(2**63), rng.randrange(2**40))
    target = rng.choice((0, 1, 255)), rng.choice((0, 1, 255))
    match rng.randrange(10):
        case 0:
            tc1 = rng.choice(odd)
            message = newer_message("TIMESYNC", tc1, rng.choice(odd), *target)
            return message, int(tc1 == 0 and 255 not in target)
        case 1:
            number = rng.randrange(2**32)
            return dialect.MAVLink_ping_message(number, number, *target), int(target == (0, 0))
        case _:
            payload = hostile_payload(rng, folder)
            return dialect.MAVLink_file_transfer_protocol_message(0, 1, 1, payload), 0


def check_replies(stations: list[Station], questions: int) -> tuple[list[str], int]:
    """Return what is wrong with the replies that hostile stations got to their last messages.

    And return the number of questions about time whose answers may still come, from a busy machine.
    """
    failures = []
    times = 0
    for station in stations:
        for message in station.heard(ANSWERED_S / len(stations)):
            if message.get_type() == "FILE_TRANSFER_PROTOCOL":
                if SECRET in bytes(message.payload):
                    failures.append("a file outside was sent")
            elif message.get_type() in ("TIMESYNC", "PING"):
                times += 1
    if times > questions:
        failures.append(f"{times} answers about time to {questions} questions")
    return failures, max(0, questions - times)


def open_files(running: Running) -> int:
    """Return the number of files that the node has open."""
    return max(process.num_fds() for process in running.processes().values())


def file_transfers(rng: random.Random, tries: int) -> Result:
    """Ask as several hostile stations, among downloads of a sensible one."""
    with tempfile.TemporaryDirectory(prefix="attack_") as base:
        folder = Path(base) / "logs"
        folder.mkdir()
        (folder / "run.mcap").write_bytes(bytes(5_000))
        (Path(base) / "secret.txt").write_bytes(SECRET)
        (folder / "away.mcap").symlink_to(Path(base) / "secret.txt")
        before = sorted(Path(base).rglob("*"))

        parameters = {
            "vehicles": ["uav"],
            "port": 0,
            "targets": [f"127.0.0.1:{free_port()}"],
            "log_folder": folder,
        }
        with node_at_work("mavlink_node", parameters, traffic=False) as (running, pulse):
            port = listening_port(running, "udp")
            sensible = Station(port)
            hostile = [Station(port, rng.choice((0, 1, 255))) for _ in range(HOSTILE_STATIONS)]
            failures = []
            metadata = sensible.download(GENERAL)
            if not metadata:
                failures.append("the metadata is not served at first")
            at_start = open_files(running)

            questions = 0
            for _ in range(0, tries, BETWEEN):
                for _ in range(BETWEEN):
                    station = rng.choice(hostile)
                    message, answers = hostile_message(rng, station.dialect, folder)
                    station.send(message)
                    questions += answers
                wrong, questions = check_replies(hostile, questions)
                failures += wrong
                try:
                    if sensible.download(GENERAL) != metadata:
                        failures.append("the metadata that was downloaded is other")
                except TimeoutError as error:
                    failures.append(str(error))
                if open_files(running) > at_start + MOST_FILES:
                    failures.append(f"{open_files(running)} files are open, {at_start} at first")

            for each in (sensible, *hostile):
                each.close()
            if sorted(Path(base).rglob("*")) != before:
                failures.append("files came or went")
            return judged("file transfers", tries, running, pulse.longest_stall(), failures)


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"file transfers": file_transfers}
