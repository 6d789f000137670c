# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""File transfer: pymavlink's own client as a peer, packets by the specification, hostile paths."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from mavlink_station import OTHER_STATION, STATION, Station, of_type
from node_harness import PATIENCE
from optional_parts import late_module

from rfly_mavlink.stations.file_transfer import (
    MOST_SESSIONS,
    MOST_SESSIONS_EACH,
    SESSION_S,
    file_crc,
)
from rfly_mavlink.stations.log_protocol import LogFolder

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")
mavftp = late_module("pymavlink.mavftp")

YEAR_2020 = 1_577_836_800
TERMINATE = 1
RESET = 2
LIST = 3
OPEN = 4
READ = 5
REMOVE = 8
CRC = 14
BURST = 15
ACK = 128
NAK = 129
FAIL_ERRNO = 2
INVALID_SIZE = 3
INVALID_SESSION = 4
NO_SESSIONS = 5
EOF = 6
UNKNOWN = 7
PROTECTED = 9
NOT_FOUND = 10
"""Numbers of mavlink.io/en/services/ftp.html."""
CLIENT = Path(__file__).parents[2] / "mavsdk_files_client.py"
SECOND = bytes((7 * k) % 251 for k in range(1000))


class Reply(NamedTuple):
    seq: int
    session: int
    opcode: int
    request: int
    burst_complete: int
    offset: int
    data: bytes


@pytest.fixture
def folder(tmp_path):
    """Two logs, a link that leads out, and a file that is no log."""
    (tmp_path / "first.mcap").write_bytes(b"123456789")
    (tmp_path / "second.mcap").write_bytes(SECOND)
    (tmp_path / "notes.txt").write_text("none")
    (tmp_path / "away.mcap").symlink_to("/etc/hostname")
    for age, name in enumerate(("first", "second")):
        os.utime(tmp_path / f"{name}.mcap", (YEAR_2020 + age, YEAR_2020 + age))
    return tmp_path


@pytest.fixture
def station(folder):
    return Station(logs=LogFolder(folder))


def request(
    opcode, data=b"", seq=1, session=0, size=None, offset=0, target=1
):  # the message of a request
    size = len(data) if size is None else size
    payload = struct.pack("<HBBBBBBI", seq, session, opcode, size, 0, 0, 0, offset) + data
    return common.MAVLink_file_transfer_protocol_message(0, target, 1, payload.ljust(251, b"\0"))


def replies(messages):
    """Return the replies among messages."""
    found = []
    for message in of_type("FILE_TRANSFER_PROTOCOL", messages):
        assert (message.target_system, message.target_component) == (245, 190)
        payload = bytes(message.payload)
        seq, session, opcode, size, asked, complete, _, offset = struct.unpack_from(
            "<HBBBBBBI", payload
        )
        data = payload[12 : 12 + size]
        found.append(Reply(seq, session, opcode, asked, complete, offset, data))
    return found


def ask(station, opcode, data=b"", address=STATION, **fields):
    """Send a request; return its one reply."""
    (reply,) = replies(station.send(request(opcode, data, **fields), address))
    assert reply.request == opcode
    return reply


class Master:
    """A connection as pymavlink's MAVFTP uses it: time passes while it waits."""

    source_system = 245
    source_component = 190

    def __init__(self, station):
        self.mav = self
        self._station = station
        self._seen = len(station.heard)

    def file_transfer_protocol_send(self, network, system, component, payload):
        self._station.send(
            common.MAVLink_file_transfer_protocol_message(network, system, component, payload)
        )

    def recv_match(self, type, timeout=0.0, **_):
        for _ in range(2):
            while self._seen < len(self._station.heard):
                self._seen += 1
                if self._station.heard[self._seen - 1].get_type() in type:
                    return self._station.heard[self._seen - 1]
            self._station.run(0.05)
        return None


def test_pymavlinks_client_lists_downloads_and_compares(station, tmp_path):
    client = mavftp.MAVFTP(Master(station), 1, 1)
    root = client.cmd_list(["/"])
    assert {(e.name, e.is_dir) for e in root.directory_listing} == {
        ("metadata", True),
        ("logs", True),
    }
    logs = client.cmd_list(["/logs"])
    assert [(e.name, e.size_b) for e in logs.directory_listing] == [
        ("first.mcap", 9),
        ("second.mcap", 1000),
    ]

    copy = tmp_path / "copy"
    client.cmd_get(["/logs/second.mcap", str(copy)])
    assert client.process_ftp_reply("OpenFileRO", timeout=5.0).error_code == 0
    assert copy.read_bytes() == SECOND

    client.cmd_get(["@PARAM/param.pck", str(copy)])  # as MAVProxy asks for parameters first
    assert client.process_ftp_reply("OpenFileRO", timeout=5.0).error_code == NOT_FOUND


@pytest.mark.slow
@pytest.mark.needs("mavsdk")
def test_mavsdk_lists_downloads_compares_and_reads_the_metadata(folder, tmp_path):
    (folder / "run.mcap").write_bytes(SECOND * 20)
    for name in ("False", "True"):
        (tmp_path / name).mkdir()

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(CLIENT), str(port), "1", str(tmp_path)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        serve(Station(logs=LogFolder(folder)), port, lambda: client.poll() is not None)
    finally:
        client.kill()
        output = client.communicate()[0]
    assert client.returncode == 0, output
    seen = json.loads(next(line for line in output.splitlines() if line.startswith("{")))

    assert seen["folders"] == ["logs", "metadata"]
    assert seen["logs"] == ["first.mcap", "run.mcap", "second.mcap"]
    for name in ("False", "True"):  # without and with bursts
        assert (tmp_path / name / "run.mcap").read_bytes() == SECOND * 20
    assert seen["same"] is True
    assert "PROTECTED" in seen["removed"].upper()
    assert "MIS_TAKEOFF_ALT" in [each["name"] for each in seen["metadata"]["parameters"]]
    assert seen["version"] == [1, 16, 0]


def serve(station, port, is_over):
    """Be the vehicle of a station at a port until it is over, in real time."""
    endpoint = station.endpoint
    endpoint._targets = (("127.0.0.1", port),)
    deadline = time.monotonic() + PATIENCE
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", 0))
        link.settimeout(0.01)
        while not is_over():
            assert time.monotonic() < deadline
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                data, sender = link.recvfrom(2048)
                endpoint.receive(data, sender, time.monotonic())
            endpoint.tick(time.monotonic(), time.monotonic())
            for address, data in endpoint.datagrams():
                link.sendto(data, address)


def test_a_file_is_opened_read_to_its_end_and_closed(station):
    """Each reply has the next sequence number, and names the request."""
    opened = ask(station, OPEN, b"/logs/second.mcap", seq=65535)
    assert (opened.seq, opened.opcode) == (0, ACK)
    assert opened.data == struct.pack("<I", 1000)

    part = ask(station, READ, seq=2, session=opened.session, size=100, offset=950)
    assert (part.seq, part.offset, part.data) == (3, 950, SECOND[950:])
    end = ask(station, READ, seq=4, session=opened.session, size=100, offset=1000)
    assert (end.opcode, end.data) == (NAK, bytes([EOF]))

    # nobody else reads it
    other = ask(station, READ, session=opened.session, size=9, address=OTHER_STATION)
    assert (other.opcode, other.data) == (NAK, bytes([INVALID_SESSION]))

    assert ask(station, TERMINATE, seq=6, session=opened.session).opcode == ACK
    closed = ask(station, READ, seq=8, session=opened.session, size=100)
    assert closed.data == bytes([INVALID_SESSION])


def test_a_request_that_comes_again_gets_the_same_reply(station):
    """The reply was lost: the file is not opened twice. A new sequence number is a new request."""
    once = ask(station, OPEN, b"/logs/first.mcap", seq=7)
    assert ask(station, OPEN, b"/logs/first.mcap", seq=7) == once
    assert ask(station, OPEN, b"/logs/first.mcap", seq=8).session != once.session


def test_a_burst_brings_the_rest_of_a_file_and_ends_with_eof(station):
    opened = ask(station, OPEN, b"/logs/second.mcap")
    station.heard.clear()
    station.send(request(BURST, seq=10, session=opened.session, size=80, offset=200))
    station.run(0.1)

    *parts, end = replies(station.heard)
    assert [part.offset for part in parts] == list(range(200, 1000, 80))
    assert [part.seq for part in parts] == list(range(11, 21))
    assert b"".join(part.data for part in parts) == SECOND[200:]
    assert (end.seq, end.opcode, end.request, end.data) == (21, NAK, BURST, bytes([EOF]))


def test_checksums_by_the_bits_of_the_polynomial(station, folder):
    """0x2DFD2D88 is the CRC of 123456789 with the reversed polynomial 0xEDB88320 that begins at 0.

    A long file takes several parts.
    """

    def by_bits(data):
        crc = 0
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        return crc

    assert by_bits(b"123456789") == 0x2DFD2D88
    assert file_crc(SECOND[500:], file_crc(SECOND[:500])) == by_bits(SECOND)

    (folder / "long.mcap").write_bytes(SECOND * 3000)
    for name, expected in (("first", 0x2DFD2D88), ("long", file_crc(SECOND * 3000))):
        station.heard.clear()
        station.send(request(CRC, f"logs/{name}.mcap".encode(), seq=3))
        station.send(request(CRC, f"logs/{name}.mcap".encode(), seq=3))  # impatient
        station.run(0.3)
        (reply,) = replies(station.heard)
        assert (reply.seq, reply.opcode, reply.data) == (4, ACK, struct.pack("<I", expected))


def test_a_long_folder_is_listed_in_parts(tmp_path):
    names = [f"{k:02d}{'x' * 50}.mcap" for k in range(20)]
    for age, name in enumerate(names):
        (tmp_path / name).write_bytes(b"1")
        os.utime(tmp_path / name, (YEAR_2020 + age, YEAR_2020 + age))
    (tmp_path / f"{'y' * 240}.mcap").write_bytes(b"1")  # too long for a message
    station = Station(logs=LogFolder(tmp_path))

    lines = []
    while (reply := ask(station, LIST, b"/logs", seq=len(lines), offset=len(lines))).opcode == ACK:
        assert reply.data.endswith(b"\0")
        lines += reply.data[:-1].split(b"\0")
    assert reply.data == bytes([EOF])
    assert lines == [b"F%s\t1" % name.encode() for name in names] + [b"S"]

    nothing = ask(Station(), LIST, b"/logs")
    assert (nothing.opcode, nothing.data) == (NAK, bytes([EOF]))


HOSTILE = [
    b"/etc/passwd",
    b"/logs/../logs/first.mcap",
    b"/logs/../../etc/passwd",
    b"../first.mcap",
    b"/logs/..",
    b"/logs/.",
    b"/logs",
    b"/",
    b"",
    b"/logs/away.mcap",
    b"/logs/notes.txt",
    b"/logs/first.mcap\0.txt",
    b"/logs/first.mcap/x",
    b"/logs/\xff\xfe.mcap",
    b"/logs/" + b"a" * 230,
    b"@SYS/threads.txt",
    b"C:\\logs\\first.mcap",
]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("opcode", [OPEN, CRC, REMOVE])
def test_a_path_that_leads_elsewhere_names_nothing(station, folder, opcode, path):
    before = sorted(folder.iterdir())
    reply = ask(station, opcode, path)
    assert (reply.opcode, reply.data) == (NAK, bytes([NOT_FOUND]))
    assert sorted(folder.iterdir()) == before


def test_a_log_that_becomes_a_link_is_not_followed(station, folder):
    assert ask(station, LIST, b"/logs").opcode == ACK
    (folder / "first.mcap").unlink()
    (folder / "first.mcap").symlink_to("/etc/hostname")
    assert ask(station, OPEN, b"/logs/first.mcap", seq=3).data == bytes([NOT_FOUND])


def test_what_is_refused_says_why(station):
    for opcode in (6, 7, 9, 10, 11, 12, 13):  # create, write, folders, open to write, truncate …
        reply = ask(station, opcode, b"/logs/new.mcap", seq=opcode)
        assert (reply.opcode, reply.data) == (NAK, bytes([PROTECTED]))
    for opcode in (16, 77, 255):
        assert ask(station, opcode, seq=opcode).data == bytes([UNKNOWN])

    assert ask(station, OPEN, b"/logs/first.mcap", size=240).data == bytes([INVALID_SIZE])
    assert ask(station, BURST, session=3, seq=9).data == bytes([INVALID_SESSION])
    assert ask(station, 0, seq=10).opcode == ACK
    for opcode in (ACK, NAK):  # answers of others
        assert station.send(request(opcode)) == []


def test_a_station_proposes_the_number_of_its_session(station):
    """MAVProxy does so and drops replies with another number; the protocol leaves it open."""
    first = ask(station, OPEN, b"/logs/first.mcap", seq=1, session=158)
    assert (first.opcode, first.session) == (ACK, 158)
    again = ask(station, OPEN, b"/logs/first.mcap", seq=2, session=158)
    assert (again.opcode, again.session) == (ACK, 0)

    # two stations may propose the same one
    other = ask(station, OPEN, b"/logs/first.mcap", OTHER_STATION, seq=3, session=158)
    assert (other.opcode, other.session) == (ACK, 158)
    assert ask(station, 1, seq=4, session=158).opcode == ACK  # terminated
    assert ask(station, READ, seq=5, session=158).data == bytes([INVALID_SESSION])
    assert ask(station, READ, b"", OTHER_STATION, seq=6, session=158).opcode == ACK


def test_sessions_are_limited_belong_to_their_station_and_end(station):
    def opened(address, count):
        replied = [ask(station, OPEN, b"/logs/first.mcap", address, seq=k) for k in range(count)]
        return [reply.data for reply in replied if reply.opcode == NAK]

    assert opened(STATION, MOST_SESSIONS_EACH) == []
    assert opened(STATION, MOST_SESSIONS_EACH + 1)[-1:] == [bytes([NO_SESSIONS])]

    # the other station's are left alone
    assert opened(OTHER_STATION, 1) == []
    assert ask(station, RESET, seq=50).opcode == ACK
    assert ask(station, READ, b"", OTHER_STATION, seq=51, session=0).opcode == ACK
    assert opened(STATION, MOST_SESSIONS_EACH) == []

    # nobody reads them any more
    for _ in range(round(SESSION_S) + 2):
        station.send(common.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3))
        station.run(1.0, dt=0.5)
    assert opened(STATION, MOST_SESSIONS_EACH) == []
    assert MOST_SESSIONS > 2 * MOST_SESSIONS_EACH


def test_a_log_is_removed_only_where_stations_may_erase(folder):
    assert ask(Station(logs=LogFolder(folder)), REMOVE, b"/logs/first.mcap").data == bytes(
        [PROTECTED]
    )

    station = Station(logs=LogFolder(folder, may_erase=True))
    assert station.command(400, 1.0) == "ACCEPTED"
    assert ask(station, REMOVE, b"/logs/first.mcap").data == bytes([PROTECTED])  # armed
    assert station.command(400, 0.0) == "ACCEPTED"

    os.utime(folder / "second.mcap")  # it is being written
    station.run(1.5)
    assert ask(station, REMOVE, b"/logs/second.mcap", seq=2).data == bytes([PROTECTED])
    assert ask(station, REMOVE, b"/metadata/general.json", seq=3).data == bytes([PROTECTED])
    assert ask(station, REMOVE, b"/logs/first.mcap", seq=4).opcode == ACK
    assert not (folder / "first.mcap").exists()
    assert ask(station, REMOVE, b"/logs/first.mcap", seq=5).data == bytes([NOT_FOUND])


def test_a_log_that_is_being_written_ends_where_it_did_when_it_was_opened(station, folder):
    opened = ask(station, OPEN, b"/logs/first.mcap")
    (folder / "first.mcap").write_bytes(b"123456789 and more")
    assert ask(station, READ, seq=2, session=opened.session, size=50).data == b"123456789"
    end = ask(station, READ, seq=3, session=opened.session, size=50, offset=9)
    assert end.data == bytes([EOF])
