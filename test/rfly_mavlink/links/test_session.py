# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The link with real sockets, against correct and incorrect peers."""

from __future__ import annotations

import itertools
import math
import os
import pty
import select
import socket
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from node_harness import PATIENCE, wait_until

from rfly_amphibious import VehicleParameters
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_common.errors import ConfigError, LinkError
from rfly_mavlink.links import transport
from rfly_mavlink.links.link_frames import StateReport
from rfly_mavlink.links.servo_output import OneWay
from rfly_mavlink.links.session import LinkSession, LockStep
from rfly_mavlink.links.transport import SerialPort, SerialTransport, TcpTransport, UdpTransport

SCALE = VehicleParameters.load("scale")


def frame(kind, sequence, time_s, payload, flags=0):
    """Return a frame by the test's own header."""
    body = struct.pack("<4sBBHQd", b"LAV1", kind, flags, len(payload), sequence, time_s) + payload
    return body + struct.pack("<I", zlib.crc32(body))


def heartbeat(sequence, status=3):
    return frame(5, sequence, 0.0, struct.pack("<I", status))


def rotors(sequence, time_s, *values, count=None):
    return frame(
        3, sequence, time_s, struct.pack(f"<BB6x{len(values)}d", 0, count or len(values), *values)
    )


SIX = (100.0, 101.0, 102.0, 103.0, 104.0, 105.0)


def wheels(sequence, time_s, *values):
    return frame(
        4, sequence, time_s, struct.pack("<9d", *(values or (0.1, 1, 2, 3, 4, 0, 0, 0, 0)))
    )


def state(time_s):
    return StateReport(time_s, *map(np.ones, (3, 3, 4, 3, 3, 4, 2, 4, 6)), 1e5, np.ones(3))


class UdpPeer:
    """Controller of the test."""

    def __init__(self, to_port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(PATIENCE)
        self.port = self.socket.getsockname()[1]
        self.to = ("127.0.0.1", to_port)

    def send(self, data):
        self.socket.sendto(data, self.to)

    def receive(self):
        return self.socket.recv(2048)

    def close(self):
        self.socket.close()


class TcpPeer:
    """Controller of the test, over TCP."""

    def __init__(self, to_port):
        self.socket = socket.create_connection(("127.0.0.1", to_port), PATIENCE)
        self.rest = b""

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        while len(self.rest) < 8 or len(self.rest) < 28 + struct.unpack_from("<H", self.rest, 6)[0]:
            data = self.socket.recv(4096)
            if not data:
                return b""
            self.rest += data
        size = 28 + struct.unpack_from("<H", self.rest, 6)[0]
        whole = self.rest[:size]
        self.rest = self.rest[size:]
        return whole

    def close(self):
        self.socket.close()


@pytest.fixture(params=["udp", "tcp"])
def linked(request):
    """Return a session and a peer that talks to it."""
    if request.param == "udp":
        session = LinkSession(
            SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "127.0.0.1", 0, handler)
        )
    else:
        session = LinkSession(SCALE, lambda handler: TcpTransport("127.0.0.1", 0, handler))
    with session:
        peer = (UdpPeer if request.param == "udp" else TcpPeer)(session.port)
        yield session, peer
        peer.close()


def kind_of(data):
    return data[4]


def next_of_kind(peer, kind):
    while (data := peer.receive()) and kind_of(data) != kind:
        pass
    return data


def test_commands_reach_the_platform_and_its_state_the_controller(linked):
    session, peer = linked
    peer.send(heartbeat(0))
    wait_until(lambda: session.supplies == 3)

    session.send(state(0.5), lock_step=True)
    data = next_of_kind(peer, 1)
    assert len(data) == 24 + 36 * 8 + 4
    assert data[5] == 1
    assert struct.unpack_from("<d", data, 16)[0] == 0.5

    peer.send(rotors(1, 0.5, *SIX))
    peer.send(wheels(2, 0.5))
    commands = []
    wait_until(lambda: (commands.extend(session.commands()), len(commands) == 2)[1])
    assert isinstance(commands[0], RotorCommand)
    assert commands[0].value.tolist() == list(SIX)
    assert isinstance(commands[1], WheelCommand)
    assert commands[1].drive_torque.tolist() == [1, 2, 3, 4]

    assert 0.0 < session.age < 5.0
    assert session.gap < 5.0
    assert session.peer.startswith("127.0.0.1:")


def test_the_newest_of_each_type_wins():
    """Frames overtake each other by UDP."""
    session = LinkSession(
        SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "127.0.0.1", 0, handler)
    )

    def takes(data):
        return session.take(session.parse(data))

    assert [takes(rotors(k, 0.0, *SIX)) for k in (0, 2, 1, 2, 3)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert takes(wheels(1, 0.0))


def test_the_platform_beats_once_a_second(linked):
    _, peer = linked
    start = time.monotonic()
    peer.send(heartbeat(0))
    assert next_of_kind(peer, 5)[24:28] == bytes(4)
    assert next_of_kind(peer, 5)
    assert time.monotonic() - start > 0.7


def test_only_what_is_announced_fits_and_is_newer_is_taken(linked):
    session, peer = linked
    peer.send(rotors(0, 0.0, *SIX))  # before any heartbeat
    peer.send(heartbeat(1, status=1))
    peer.send(wheels(2, 0.0))  # not announced
    peer.send(rotors(3, 0.0, 1.0, 2.0))  # two of six
    peer.send(rotors(4, 0.0, *SIX[:5], math.nan))
    peer.send(rotors(5, 0.0, *SIX[:5], -1.0))
    peer.send(rotors(5, 0.0, *SIX))  # again
    peer.send(rotors(4, 0.0, *SIX))  # older
    peer.send(frame(2, 6, 0.0, bytes(64)))  # GPS is ours to send
    peer.send(heartbeat(7, status=3))
    peer.send(wheels(8, 0.0, 0.1, 0, 0, 0, 0, -1.0, 0, 0, 0))  # a brake that drives
    peer.send(rotors(9, 0.25, *SIX))

    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert [command.time for command in commands] == [0.25]

    counters = session.counters
    wanted = {"received": 12, "not_supplied": 2, "refused": 4, "older": 2, "direction": 1}
    assert {key: counters[key] for key in wanted} == wanted
    assert "brake_torque" in session.last_refused


def test_times_that_no_stamp_can_hold_are_refused(linked):
    session, peer = linked
    peer.send(heartbeat(0, status=3))
    peer.send(rotors(1, -1.0, *SIX))
    peer.send(wheels(2, 2.0**31, 0.1, *[0.0] * 8))
    peer.send(rotors(3, 1e300, *SIX))
    peer.send(rotors(4, 0.5, *SIX))
    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert [command.time for command in commands] == [0.5]
    assert session.counters["refused"] == 3
    assert "time 1e+300 s" in session.last_refused


def test_garbage_is_counted_and_changes_nothing(linked):
    session, peer = linked
    peer.send(heartbeat(0))
    wait_until(lambda: session.supplies == 3)
    broken = bytearray(rotors(1, 0.0, *SIX))
    broken[40] ^= 1
    for data in (b"hello", bytes(broken), b"\xff" * 1000):
        peer.send(data)
    peer.send(rotors(2, 0.75, *SIX))
    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert commands[0].time == 0.75
    assert session.counters["crc"] == 1
    # a stream has one gap less: what follows the broken frame cannot be told from it
    assert session.counters["magic"] == (1 if isinstance(peer, TcpPeer) else 2)


def test_another_is_not_listened_to_while_there_is_a_peer(linked):
    session, peer = linked
    peer.send(heartbeat(0))
    wait_until(lambda: session.supplies == 3)

    other = type(peer)(session.port)
    if isinstance(peer, TcpPeer):
        assert other.receive() == b""
        assert session.counters["refused_peers"] == 1
    else:
        other.send(rotors(50, 9.0, *SIX))
        wait_until(lambda: session.counters["stranger"] == 1)
    other.close()

    peer.send(rotors(1, 0.5, *SIX))
    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert [command.time for command in commands] == [0.5]


def test_a_silent_peer_gives_way_to_a_new_one(linked, monkeypatch):
    """A half-open connection, left by a pulled cable, would never end by itself."""
    monkeypatch.setattr(transport, "PEER_SILENCE_S", 0.3)
    session, peer = linked
    peer.send(heartbeat(100))
    wait_until(lambda: session.supplies == 3)
    wait_until(lambda: session._transport.silence_s > 0.3)

    other = type(peer)(session.port)
    other.send(heartbeat(0, status=1))
    other.send(rotors(1, 0.5, *SIX))

    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert session.supplies == 1
    assert session.counters["replaced_peers"] == 1

    session.send(state(0.75))
    assert next_of_kind(other, 1)
    if isinstance(peer, TcpPeer):
        while peer.receive():
            pass
    other.close()


def test_a_controller_that_was_silent_may_count_from_0_again(linked, monkeypatch):
    session, peer = linked
    if isinstance(peer, TcpPeer):
        peer.send(heartbeat(100))
        wait_until(lambda: session.supplies == 3)
        peer.close()
        wait_until(lambda: not session.peer)
        again = TcpPeer(session.port)
    else:
        monkeypatch.setattr(transport, "PEER_SILENCE_S", 0.2)
        peer.send(heartbeat(100))
        wait_until(lambda: session.supplies == 3)
        wait_until(lambda: session._transport.silence_s > 0.2)
        again = peer

    again.send(heartbeat(0))
    again.send(rotors(1, 0.5, *SIX))
    commands = []
    wait_until(lambda: (commands.extend(session.commands()), commands)[1])
    assert session.counters["older"] == 0


def test_a_vehicle_on_six_wheels_is_refused():
    """A frame holds the numbers of four wheels."""
    six = VehicleParameters.load("scale_six")
    with pytest.raises(
        ConfigError,
        match=r"'scale_six': 6 wheels, .* room for 4; expected .* chassis.middle_axle_m",
    ):
        LinkSession(six, lambda handler: TcpTransport("127.0.0.1", 0, handler))


def test_one_that_disconnects_supplies_nothing_and_may_come_back():
    with LinkSession(SCALE, lambda handler: TcpTransport("127.0.0.1", 0, handler)) as session:
        for _ in range(3):
            peer = TcpPeer(session.port)
            peer.send(heartbeat(0) + rotors(1, 1.0, *SIX)[:30])  # in the middle of a frame
            wait_until(lambda: session.supplies == 3)
            peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.close()  # a reset, no polite end
            wait_until(lambda: session.supplies == 0)
        session.send(state(1.0))
        assert session.counters["send_dropped"] == 1


def test_a_reader_that_does_not_read_blocks_nobody():
    """A slow reader loses the oldest frames, never a part of one."""
    with LinkSession(SCALE, lambda handler: TcpTransport("127.0.0.1", 0, handler)) as session:
        peer = TcpPeer(session.port)
        peer.send(heartbeat(0))
        wait_until(lambda: session.supplies == 3)

        count = 0  # a sender that waits for the reader would wait for ever
        while session.counters["send_dropped"] < 500:
            count += 1
            session.send(state(count / 250))
            assert count < 100_000

        assert len(session._transport._waiting) <= transport.MAX_WAITING

        # the frames that arrive are whole, and in order
        times = []
        while not times or times[-1] != count / 250:
            data = peer.receive()
            assert zlib.crc32(data[:-4]) == struct.unpack("<I", data[-4:])[0]
            if kind_of(data) == 1:
                times.append(struct.unpack_from("<d", data, 16)[0])
        assert all(a < b for a, b in itertools.pairwise(times))
        assert len(times) < count - 250  # heartbeats and the like are among the 500, too
        peer.close()


def test_a_flood_is_read_no_faster_than_the_limit(monkeypatch):
    monkeypatch.setattr(transport, "MAX_RATE_BYTES", 20_000)
    monkeypatch.setattr(transport, "_BURST_BYTES", 20_000)
    session = LinkSession(
        SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "127.0.0.1", 0, handler)
    )

    session._transport._budget.left = 20_000.0
    with session:
        peer = UdpPeer(session.port)
        peer.send(heartbeat(0))
        wait_until(lambda: session.supplies == 3)

        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            peer.send(b"x" * 900)
        assert session.counters["magic"] < 1000
        peer.close()


def test_datagrams_of_other_hosts_are_not_taken():
    session = LinkSession(
        SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "127.0.0.1", 0, handler)
    )
    with session, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
        foreign.bind(("127.0.0.2", 0))
        foreign.sendto(heartbeat(0), ("127.0.0.1", session.port))
        wait_until(lambda: session.counters["stranger"] == 1)
        assert session.peer == ""


def test_to_a_configured_port_frames_go_before_anything_has_come():
    """A box on the bench may send from any port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(PATIENCE)
        to = listening.getsockname()[1]
        with LinkSession(
            SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "127.0.0.1", to, handler)
        ) as session:
            session.send(state(0.25))
            kinds = {kind_of(listening.recv(2048)) for _ in range(2)}
            assert kinds == {1, 5}

            peer = UdpPeer(session.port)
            peer.send(heartbeat(0))
            wait_until(lambda: session.supplies == 3)
            peer.close()


def test_a_port_that_is_taken_is_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        session = LinkSession(
            SCALE, lambda handler: UdpTransport("127.0.0.1", port, "127.0.0.1", 0, handler)
        )
        with pytest.raises(LinkError, match=f"UDP port 127.0.0.1:{port}: another program holds it"):
            session.start()
    with pytest.raises(ConfigError, match="controller_host: 'localhost' is no IPv4"):
        LinkSession(SCALE, lambda handler: UdpTransport("127.0.0.1", 0, "localhost", 0, handler))
    with pytest.raises(ConfigError, match="port: 70000"):
        LinkSession(SCALE, lambda handler: TcpTransport("127.0.0.1", 70000, handler))


def test_lock_step_takes_each_answer_of_its_tick_once(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    step = LockStep()
    rotor = RotorCommand(0.004, np.zeros(6))
    wheel = WheelCommand(0.004)

    assert not step.takes(rotor)
    assert step.overdue_s(3) == 0.0

    step.ask(0.004)
    assert not step.takes(WheelCommand(0.0))
    assert step.takes(rotor)
    assert not step.takes(rotor)

    clock[0] += 1.5
    assert step.overdue_s(3) == 1.5
    assert step.overdue_s(1) == 0.0
    assert step.overdue_s(0) == 1.5

    step.ask(0.004)  # asked again: answers stay answered
    assert not step.takes(rotor)
    assert not step.complete(3)
    assert step.takes(wheel)
    assert step.complete(3)
    assert step.overdue_s(3) == 0.0
    assert not step.complete(0)
    assert step.other_time == 4

    step.ask(0.008)
    assert step.overdue_s(3) == 0.0
    assert not step.complete(1)


# --- a serial line: a pseudo-terminal


class SerialPeer(TcpPeer):
    """Controller at the other end of the line `path`."""

    def __init__(self, path):
        self.fd, line = pty.openpty()
        path.unlink(missing_ok=True)
        path.symlink_to(os.ttyname(line))
        self.socket = self
        self.rest = b""
        self.line = line

    def sendall(self, data):
        assert os.write(self.fd, data) == len(data)

    def recv(self, size):
        return os.read(self.fd, size)

    def close(self):
        os.close(self.line)
        os.close(self.fd)


def session_on(path):
    return LinkSession(SCALE, lambda handler: SerialTransport(str(path), 115_200, handler))


def test_commands_and_states_pass_in_full(tmp_path):
    """All bytes pass: no byte is a line's end, an interrupt or an echo."""
    peer = SerialPeer(tmp_path / "tty")
    with session_on(tmp_path / "tty") as session:
        peer.send(heartbeat(0))
        wait_until(lambda: session.supplies == 3)
        assert session.peer == str(tmp_path / "tty")

        for k in range(256):
            session.send(state(k / 256))
        times = []
        while not times or times[-1] != 255 / 256:
            times.append(struct.unpack_from("<d", next_of_kind(peer, 1), 16)[0])
        assert len(times) == 256 - session.counters["send_dropped"]

        peer.send(rotors(13, 0.5, 3.0, 4.0, 10.0, 13.0, 17.0, 19.0))
        (command,) = wait_until(session.commands)
        assert command.value.tolist() == [3.0, 4.0, 10.0, 13.0, 17.0, 19.0]
        assert session.counters["crc"] == session.counters["magic"] == 0
    peer.close()


def test_a_line_that_was_pulled_out_is_opened_again(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "_REOPEN_S", 0.05)
    path = tmp_path / "tty"
    peer = SerialPeer(path)
    with session_on(path) as session:
        peer.send(heartbeat(0))
        wait_until(lambda: session.supplies == 3)

        # pulled out
        path.unlink()
        peer.close()
        wait_until(lambda: session.supplies == 0)
        session.send(state(1.0))
        assert session.counters["send_dropped"] >= 1

        # plugged in again
        peer = SerialPeer(path)
        wait_until(lambda: session.peer)
        peer.send(heartbeat(0) + rotors(1, 0.25, *SIX))
        (command,) = wait_until(session.commands)
        assert command.time == 0.25
    peer.close()


def test_a_board_that_starts_again_is_heard_though_its_line_stays(tmp_path, monkeypatch):
    """The sequence numbers of a board that restarts begin at 0 again."""
    monkeypatch.setattr(transport, "PEER_SILENCE_S", 0.2)
    peer = SerialPeer(tmp_path / "tty")
    with session_on(tmp_path / "tty") as session:
        peer.send(heartbeat(1000) + rotors(1001, 0.25, *SIX))
        wait_until(session.commands)
        heard = wait_until(
            lambda: peer.send(heartbeat(0) + rotors(1, 0.5, *SIX)) or session.commands()
        )
        assert heard[0].time == 0.5
    peer.close()


def test_the_newest_frame_leaves_last_however_long_the_line_was_blocked(tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "_LINGER_S", PATIENCE)
    peer = SerialPeer(tmp_path / "tty")
    line = SerialTransport(str(tmp_path / "tty"), 115_200, OneWay(), most_waiting=1)
    line.start()

    sent = 0
    while line.counters["send_dropped"] < 200:  # until the system's buffer is full, and far beyond
        line.send(b"%09d " % sent)
        sent += 1

    line.send(b"all off   ")
    closing = threading.Thread(target=line.close)
    closing.start()
    heard = b""
    while not heard.endswith(b"all off   ") and select.select([peer.fd], [], [], PATIENCE)[0]:
        heard += peer.recv(4096)
    closing.join(PATIENCE)

    frames = [int(heard[k : k + 10]) for k in range(0, len(heard) - 10, 10)]
    assert heard.endswith(b"all off   ")
    assert frames == list(range(len(frames)))  # whole, and none from beyond the full buffer
    assert len(frames) <= sent - 200
    peer.close()


def test_what_is_no_line_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LinkError, match=r"serial line .*/none: No such file or directory"):
        SerialPort(str(tmp_path / "none"), 115_200)
    with pytest.raises(LinkError, match=r"/file is no serial line: Inappropriate ioctl"):
        SerialPort(str(tmp_path / "file"), 115_200)
    with pytest.raises(ConfigError, match=r"baud: 115201, expected one of 50, .*115200"):
        SerialPort(str(tmp_path / "none"), 115_201)
