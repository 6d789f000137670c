# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""File transfer: pymavlink's own client as a peer, packets by the specification, hostile paths."""

from __future__ import annotations

import contextlib
import json
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

from rfly_mavlink.stations.file_transfer import MOST_SESSIONS, PACKETS_A_BURST, file_crc

pytestmark = pytest.mark.needs("pymavlink")

common = late_module("pymavlink.dialects.v20.common")
mavftp = late_module("pymavlink.mavftp")

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
INVALID_SIZE = 3
INVALID_SESSION = 4
EOF = 6
UNKNOWN = 7
PROTECTED = 9
NOT_FOUND = 10
"""Numbers of mavlink.io/en/services/ftp.html."""
CLIENT = Path(__file__).parents[2] / "mavsdk_files_client.py"
GENERAL = b"/metadata/general.json"
PARAMETERS = b"/metadata/parameters.json"


class Reply(NamedTuple):
    seq: int
    session: int
    opcode: int
    request: int
    burst_complete: int
    offset: int
    data: bytes


@pytest.fixture
def station():
    return Station()


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


def download(station, path=PARAMETERS):
    """Read a file by the longest parts; return it."""
    size = struct.unpack("<I", ask(station, OPEN, path).data)[0]
    content = b""
    while part := ask(station, READ, size=239, offset=len(content)):
        if part.opcode == NAK:
            break
        content += part.data
    assert len(content) == size
    return content


def test_pymavlinks_client_lists_and_downloads(station, tmp_path):
    client = mavftp.MAVFTP(Master(station), 1, 1)
    root = client.cmd_list(["/"])
    assert [(e.name, e.is_dir) for e in root.directory_listing] == [("metadata", True)]
    files = client.cmd_list(["/metadata"])
    assert {e.name: e.size_b for e in files.directory_listing} == {
        "general.json": len(download(station, GENERAL)),
        "parameters.json": len(download(station)),
    }

    copy = tmp_path / "copy"
    client.cmd_get(["/metadata/parameters.json", str(copy)])
    assert client.process_ftp_reply("OpenFileRO", timeout=5.0).error_code == 0
    assert copy.read_bytes() == download(station)
    parameters = json.loads(copy.read_bytes())["parameters"]
    assert "MIS_TAKEOFF_ALT" in [each["name"] for each in parameters]

    client.cmd_get(["@PARAM/param.pck", str(copy)])  # as MAVProxy asks for parameters first
    assert client.process_ftp_reply("OpenFileRO", timeout=5.0).error_code == NOT_FOUND


@pytest.mark.slow
@pytest.mark.needs("mavsdk")
def test_mavsdk_lists_downloads_compares_and_reads_the_metadata(tmp_path):
    for name in ("False", "True"):
        (tmp_path / name).mkdir()

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(CLIENT), str(port), "1", str(tmp_path)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        serve(Station(), port, lambda: client.poll() is not None)
    finally:
        client.kill()
        output = client.communicate()[0]
    assert client.returncode == 0, output
    seen = json.loads(next(line for line in output.splitlines() if line.startswith("{")))

    assert seen["folders"] == ["metadata"]
    assert seen["files"] == ["general.json", "parameters.json"]
    for name in ("False", "True"):  # without and with bursts
        assert (tmp_path / name / "parameters.json").read_bytes() == download(Station())
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
    content = download(station)
    size = len(content)
    opened = ask(station, OPEN, PARAMETERS, seq=65535)
    assert (opened.seq, opened.opcode) == (0, ACK)
    assert opened.data == struct.pack("<I", size)

    part = ask(station, READ, seq=2, session=opened.session, size=100, offset=size - 50)
    assert (part.seq, part.offset, part.data) == (3, size - 50, content[-50:])
    end = ask(station, READ, seq=4, session=opened.session, size=100, offset=size)
    assert (end.opcode, end.data) == (NAK, bytes([EOF]))

    # nobody else reads it
    other = ask(station, READ, session=opened.session, size=9, address=OTHER_STATION)
    assert (other.opcode, other.data) == (NAK, bytes([INVALID_SESSION]))

    assert ask(station, TERMINATE, seq=6, session=opened.session).opcode == ACK
    closed = ask(station, READ, seq=8, session=opened.session, size=100)
    assert closed.data == bytes([INVALID_SESSION])


@pytest.mark.parametrize(
    ("opcode", "data"), [(OPEN, GENERAL), (READ, b""), (CRC, GENERAL), (TERMINATE, b"")]
)
def test_a_request_that_comes_again_gets_the_same_reply(station, opcode, data):
    """The reply was lost."""
    ask(station, OPEN, GENERAL, session=7)
    once = ask(station, opcode, data, seq=7, session=7)
    assert once.opcode == ACK
    assert ask(station, opcode, data, seq=7, session=7) == once


def test_a_burst_brings_the_rest_of_a_file_and_ends_with_eof(station):
    content = download(station, GENERAL)
    opened = ask(station, OPEN, GENERAL)
    *parts, end = replies(
        station.send(request(BURST, seq=10, session=opened.session, size=80, offset=100))
    )

    starts = list(range(100, len(content), 80))
    assert [part.offset for part in parts] == starts
    assert [part.seq for part in parts] == list(range(11, 11 + len(starts)))
    assert b"".join(part.data for part in parts) == content[100:]
    assert not any(part.burst_complete for part in parts)
    assert (end.seq, end.opcode, end.request) == (11 + len(starts), NAK, BURST)
    assert (end.data, end.burst_complete) == (bytes([EOF]), 1)


def test_a_long_burst_stops_and_is_asked_for_again(station):
    """The field burst_complete of the last packet says so (mavlink.io/en/services/ftp.html)."""
    content = download(station)
    opened = ask(station, OPEN, PARAMETERS)
    got = b""
    bursts = 0
    while len(got) < len(content):
        asked = request(BURST, session=opened.session, size=60, offset=len(got))
        parts = [reply for reply in replies(station.send(asked)) if reply.opcode == ACK]
        assert len(parts) <= PACKETS_A_BURST
        got += b"".join(part.data for part in parts)
        bursts += 1
        is_last = len(got) == len(content)
        assert [part.burst_complete for part in parts] == [0] * (len(parts) - 1) + [not is_last]
    assert got == content
    assert bursts == -(-len(content) // (60 * PACKETS_A_BURST))


def test_checksums_by_the_bits_of_the_polynomial(station):
    """0x2DFD2D88 is the CRC of 123456789 with the reversed polynomial 0xEDB88320, begun at 0."""

    def by_bits(data):
        crc = 0
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        return crc

    assert by_bits(b"123456789") == file_crc(b"123456789") == 0x2DFD2D88
    reply = ask(station, CRC, PARAMETERS, seq=3)
    expected = struct.pack("<I", by_bits(download(station)))
    assert (reply.seq, reply.opcode, reply.data) == (4, ACK, expected)


def test_a_folder_is_listed_from_any_entry(station):
    sizes = {name: len(download(station, f"/metadata/{name}".encode())) for name in FILES}
    lines = [f"F{name}\t{size}".encode() for name, size in sizes.items()]
    for offset in (0, 1):
        reply = ask(station, LIST, b"/metadata", seq=offset, offset=offset)
        expected = b"".join(line + b"\0" for line in lines[offset:])
        assert (reply.opcode, reply.data) == (ACK, expected)
    assert ask(station, LIST, b"/metadata", seq=2, offset=2).data == bytes([EOF])


FILES = ("general.json", "parameters.json")
HOSTILE = [
    b"/etc/passwd",
    b"/metadata/../metadata/general.json",
    b"/metadata/../../etc/passwd",
    b"../general.json",
    b"/metadata/..",
    b"/metadata/.",
    b"/metadata",
    b"/",
    b"",
    b"/metadata/general.json\0.txt",
    b"/metadata/general.json/x",
    b"/metadata/\xff\xfe.json",
    b"/metadata/" + b"a" * 229,
    b"/logs/run.mcap",
    b"@SYS/threads.txt",
    b"C:\\metadata\\general.json",
]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("opcode", [OPEN, CRC])
def test_a_path_that_leads_elsewhere_names_nothing(station, opcode, path):
    reply = ask(station, opcode, path)
    assert (reply.opcode, reply.data) == (NAK, bytes([NOT_FOUND]))


def test_what_is_refused_says_why(station):
    # create, write, remove, folders, open to write, truncate …
    for opcode in (6, 7, REMOVE, 9, 10, 11, 12, 13):
        reply = ask(station, opcode, GENERAL, seq=opcode)
        assert (reply.opcode, reply.data) == (NAK, bytes([PROTECTED]))
    for opcode in (16, 77, 255):
        assert ask(station, opcode, seq=opcode).data == bytes([UNKNOWN])

    assert ask(station, LIST, b"/logs").data == bytes([NOT_FOUND])
    assert ask(station, OPEN, GENERAL, size=240).data == bytes([INVALID_SIZE])
    assert ask(station, BURST, session=3, seq=9).data == bytes([INVALID_SESSION])
    assert ask(station, 0, seq=10).opcode == ACK
    for opcode in (ACK, NAK):  # answers of others
        assert station.send(request(opcode)) == []


def test_a_station_proposes_the_number_of_its_session(station):
    """MAVProxy does so and drops replies with another number; the protocol leaves it open."""
    first = ask(station, OPEN, GENERAL, seq=1, session=158)
    assert (first.opcode, first.session) == (ACK, 158)

    # two stations may propose the same one
    other = ask(station, OPEN, GENERAL, OTHER_STATION, seq=3, session=158)
    assert (other.opcode, other.session) == (ACK, 158)
    assert ask(station, TERMINATE, seq=4, session=158).opcode == ACK
    assert ask(station, READ, seq=5, session=158).data == bytes([INVALID_SESSION])
    assert ask(station, READ, b"", OTHER_STATION, seq=6, session=158).opcode == ACK


def test_a_station_has_one_open_file(station):
    ask(station, OPEN, GENERAL, session=1)
    ask(station, OPEN, PARAMETERS, session=2)
    assert ask(station, READ, session=1).data == bytes([INVALID_SESSION])
    assert ask(station, READ, session=2).opcode == ACK

    ask(station, OPEN, GENERAL, OTHER_STATION)
    assert ask(station, RESET).opcode == ACK
    assert ask(station, READ, session=2).data == bytes([INVALID_SESSION])
    assert ask(station, READ, b"", OTHER_STATION).opcode == ACK


def test_many_open_files_close_the_oldest(station):
    """A station that pretends to be many takes no more memory than its share."""
    ask(station, OPEN, GENERAL, OTHER_STATION)
    for component in range(MOST_SESSIONS):
        station.packer.srcComponent = component + 1
        station.send(request(OPEN, GENERAL))
    station.packer.srcComponent = 190
    assert ask(station, READ, b"", OTHER_STATION).data == bytes([INVALID_SESSION])


def test_a_silent_station_leaves_no_open_file(station):
    ask(station, OPEN, GENERAL)
    station.run(16.0)
    assert ask(station, READ).data == bytes([INVALID_SESSION])
