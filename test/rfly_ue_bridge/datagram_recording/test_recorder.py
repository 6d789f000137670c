# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recording from real sockets on loopback."""

from __future__ import annotations

import io
import select
import socket
import struct
import sys
import time

import pytest
from node_harness import PATIENCE

from rfly_common.errors import ConfigError
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter, RecordingReader
from rfly_ue_bridge.datagram_recording.recorder import Recorder

SO_TIMESTAMPNS = 35


@pytest.fixture
def sender():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        yield opened


def free_ports(count):
    """Return consecutive ports that were free a moment ago."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as first:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]

        sockets = []
        try:
            for offset in range(count):
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].bind(("127.0.0.1", port + offset))
            return list(range(port, port + count))
        except OSError:
            continue
        finally:
            for opened in sockets:
                opened.close()


def poll_until(recorder, writer, count):
    deadline = time.monotonic() + PATIENCE
    while recorder.datagrams < count:
        assert time.monotonic() < deadline, f"{recorder.datagrams} of {count} datagrams"
        recorder.poll(writer, 0.05)


def recorded(path):
    with RecordingReader(path) as reader:
        return list(reader)


@pytest.fixture
def kernel_stamps():
    """Wait until Linux stamps arrivals.

    It begins some time after the first socket has requested it (a worker does it), and goes on
    while one socket does. Until then the stamp is the time of the reading.
    """
    if sys.platform != "linux":
        yield
        return

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        probe.bind(("127.0.0.1", 0))
        for _ in range(500):
            probe.sendto(b"", probe.getsockname())
            assert select.select([probe], [], [], PATIENCE)[0]

            time.sleep(0.01)  # between arrival and reading; not in a kernel's stamp
            (_, _, stamp), *_ = probe.recvmsg(1, 64)[1]
            seconds, nanoseconds = struct.unpack("qq", stamp)
            if time.time_ns() - (seconds * 10**9 + nanoseconds) > 9_000_000:
                break

        yield


def test_datagrams_are_written_with_ports_and_arrival_time(tmp_path, sender, kernel_stamps):
    """The time is that of the arrival, though the recorder looks later; bytes are as sent."""
    path = tmp_path / "a.pcap"
    ports = free_ports(2)
    payloads = [b"", b"\x00", b"RflySim3D" * 400, bytes(65507)]

    with path.open("wb") as file, Recorder("127.0.0.1", ports) as recorder:
        writer = PcapWriter(file)
        assert recorder.ports == ports

        before = time.time_ns()
        for payload in payloads:
            sender.sendto(payload, ("127.0.0.1", ports[1]))
        sender.sendto(b"first port", ("127.0.0.1", ports[0]))
        assert select.select([recorder._sockets[0].socket], [], [], PATIENCE)[0]

        arrived = time.time_ns()
        time.sleep(0.05)  # where the time is the kernel's, this wait is not in it
        poll_until(recorder, writer, 5)

        assert recorder.payload_bytes == sum(map(len, payloads)) + 10
        assert recorder.dropped == 0

    found = recorded(path)
    assert sorted(datagram.destination[1] for datagram in found) == [ports[0], *[ports[1]] * 4]
    assert [
        datagram.payload for datagram in found if datagram.destination[1] == ports[1]
    ] == payloads
    assert {datagram.source for datagram in found} == {sender.getsockname()}
    assert {datagram.destination[0] for datagram in found} == {"127.0.0.1"}

    if sys.platform == "linux":
        (last,) = (datagram for datagram in found if datagram.payload == b"first port")
        tick = 10_000_000  # to which clocks of user and kernel side agree
        assert before - tick <= last.time_ns <= arrived + tick


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells the destination under Linux")
def test_bound_to_all_addresses_it_knows_the_one_that_was_meant(tmp_path, sender):
    path = tmp_path / "a.pcap"
    (port,) = free_ports(1)
    with path.open("wb") as file, Recorder("0.0.0.0", [port]) as recorder:
        writer = PcapWriter(file)
        sender.sendto(b"x", ("127.0.0.1", port))
        poll_until(recorder, writer, 1)
    assert recorded(path)[0].destination == ("127.0.0.1", port)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel counts drops under Linux")
def test_what_the_system_dropped_is_counted(sender):
    """A buffer made tiny overflows; what was dropped and what was taken make up what was sent."""
    (port,) = free_ports(1)
    with Recorder("127.0.0.1", [port]) as recorder:
        writer = PcapWriter(io.BytesIO())
        recorder._sockets[0].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4608)
        for _ in range(200):
            sender.sendto(bytes(1000), ("127.0.0.1", port))
        while recorder.poll(writer, 0.05):
            pass
        sender.sendto(b"the one that tells", ("127.0.0.1", port))
        while recorder.poll(writer, 0.05):
            pass
        assert 0 < recorder.datagrams < 201
        assert recorder.datagrams + recorder.dropped == 201


def test_a_limit_is_kept_to_the_datagram(tmp_path, sender):
    path = tmp_path / "a.pcap"
    (port,) = free_ports(1)
    with path.open("wb") as file, Recorder("127.0.0.1", [port]) as recorder:
        writer = PcapWriter(file)
        for number in range(10):
            sender.sendto(bytes([number]), ("127.0.0.1", port))
        taken = 0
        while taken < 7:
            taken += recorder.poll(writer, 0.05, 7 - taken)
        assert recorder.poll(writer, 0.0, 0) == 0
    assert [datagram.payload for datagram in recorded(path)] == [
        bytes([number]) for number in range(7)
    ]


def test_everything_is_passed_on_with_the_window_kept(sender):
    """Datagrams to the second port go to the second port of the other host."""
    ports = free_ports(2)
    others = free_ports(2)

    windows = []
    for port in others:
        windows.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        windows[-1].bind(("127.0.0.1", port))
        windows[-1].settimeout(PATIENCE)

    try:
        with Recorder("127.0.0.1", ports, forward_to=("127.0.0.1", others[0])) as recorder:
            writer = PcapWriter(io.BytesIO())
            sender.sendto(b"one", ("127.0.0.1", ports[1]))
            sender.sendto(b"zero", ("127.0.0.1", ports[0]))
            poll_until(recorder, writer, 2)

            assert windows[0].recv(100) == b"zero"
            assert windows[1].recv(100) == b"one"
            assert recorder.forward.sent == 2
    finally:
        for window in windows:
            window.close()


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
def test_passing_on_to_itself_is_refused(bind):
    ports = free_ports(3)
    with pytest.raises(
        ConfigError, match=f"port {ports[2]} at 127.0.0.1 is where the recording listens"
    ):
        Recorder(bind, ports, forward_to=("127.0.0.1", ports[2]))


def test_a_taken_port_is_named_and_the_others_are_given_back(sender):
    ports = free_ports(2)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", ports[1]))
        with pytest.raises(ConfigError, match=f"port {ports[1]} at 127.0.0.1 is taken"):
            Recorder("127.0.0.1", ports)
    Recorder("127.0.0.1", ports).close()


def test_the_file_can_be_read_while_it_grows(tmp_path, sender):
    """Received datagrams are on the disk soon.

    They stay there, whatever happens to the process then.
    """
    path = tmp_path / "a.pcap"
    (port,) = free_ports(1)
    with path.open("wb") as file, Recorder("127.0.0.1", [port]) as recorder:
        writer = PcapWriter(file)
        sender.sendto(b"here", ("127.0.0.1", port))
        poll_until(recorder, writer, 1)
        deadline = time.monotonic() + PATIENCE
        while path.stat().st_size < 24 + 16 + 32:
            assert time.monotonic() < deadline
            recorder.poll(writer, 0.05)
        assert struct.unpack("<I", path.read_bytes()[:4])[0] == 0xA1B23C4D
        assert recorded(path)[0].payload == b"here"
