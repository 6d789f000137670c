# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly record` and `rfly replay` as processes, over real sockets."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from command_line import mistake
from node_harness import PATIENCE, Rfly, run_rfly, wait_until

POSE = struct.pack(
    "<6i14f4d",
    1234567891,
    7,
    3,
    *[0] * 3,
    *[0.0] * 8,
    3.0,
    4.0,
    0.0,
    0.0,
    0.5,
    1.5,
    1.5,
    -2.5,
    -3.5,
    -1.0,
)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


class Recording:
    """`rfly record` on free ports, waited for until it listens."""

    def __init__(self, out, *arguments, windows=1):
        self.port = free_port()
        self.process = Rfly(
            *("record", out, "--port", self.port, "--windows", windows, *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "COLUMNS": "300"},
        )
        self.timer = threading.Timer(PATIENCE, self.process.kill)
        self.timer.start()
        self.first = self.process.stderr.readline().decode()

    def send(self, *datagrams, offset=0, gap_s=0.0):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            for datagram in datagrams:
                opened.sendto(datagram, ("127.0.0.1", self.port + offset))
                if gap_s:
                    time.sleep(gap_s)

    def rest(self):
        out, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out, errors.decode()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.timer.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def windows():
    """Three consecutive ports that receive."""
    while True:
        opened = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        try:
            opened[0].bind(("127.0.0.1", 0))
            first = opened[0].getsockname()[1]
            for offset in (1, 2):
                opened[offset].bind(("127.0.0.1", first + offset))
            break
        except OSError:
            for one in opened:
                one.close()
    for one in opened:
        one.settimeout(PATIENCE)
    yield opened
    for one in opened:
        one.close()


def test_recorded_and_replayed(tmp_path, windows):
    """Same bytes, same windows, same order, gaps kept: a replay takes at least as long."""
    from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

    out = tmp_path / "flight.pcap"
    with Recording(out, "--count", "7", windows=3) as recording:
        assert f"127.0.0.1:{recording.port + 2}" in recording.first
        recording.send(*[bytes([n]) + POSE[1:] for n in range(5)], offset=1, gap_s=0.03)
        recording.send(b"window 2", offset=2)
        recording.send(b"last")
        code, _, told = recording.rest()
    assert code == 0
    assert "7 datagrams" in told
    first = windows[0].getsockname()[1]
    ports = f"{recording.port}-{recording.port + 2}"
    arrivals = []

    def receive():
        for _ in range(5):
            arrivals.append(windows[1].recv(4096))

    thread = threading.Thread(target=receive)
    thread.start()
    done = run_rfly("replay", str(out), "--ports", ports, "--port", str(first))
    thread.join(PATIENCE)
    assert done.returncode == 0, done.stderr
    assert arrivals == [bytes([n]) + POSE[1:] for n in range(5)]
    assert windows[2].recv(100) == b"window 2"
    assert windows[0].recv(100) == b"last"
    sent = f"sent 7 datagrams, {5 * 112 + 12} bytes to 127.0.0.1:{first}-{first + 2} in "
    took_s = float(re.search(re.escape(sent) + r"([\d.]+) s", done.stdout)[1])
    with RecordingReader(out) as reader:
        times_ns = [datagram.time_ns for datagram in reader]
    assert took_s >= 1e-9 * (times_ns[-1] - times_ns[0]) - 0.001
    assert times_ns[-1] - times_ns[0] > 0.1e9
    assert re.search(r"late by \d+ µs \(median\), \d+ µs \(99 %\)", done.stdout)


def test_by_default_a_replay_goes_to_the_same_ports(tmp_path, windows):
    """A replay goes to this machine whatever address it names, several times and faster."""
    out = tmp_path / "flight.pcap"
    port = windows[0].getsockname()[1]
    write(out, [(0, port, b"a"), (2_000_000_000, port, b"b")])
    started = time.monotonic()
    done = run_rfly("replay", str(out), "--ports", str(port), "--speed", "20", "--loop", "2")
    assert done.returncode == 0, done.stderr
    assert [windows[0].recv(10) for _ in range(4)] == [b"a", b"b", b"a", b"b"]
    assert time.monotonic() - started >= 0.22
    assert "sent 4 datagrams" in done.stdout


def write(path, datagrams):
    from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
    from rfly_ue_bridge.datagram_recording.pcap import PcapWriter

    with path.open("wb") as file:
        writer = PcapWriter(file)
        for time_ns, port, payload in datagrams:
            writer.write(
                RecordedDatagram(10**18 + time_ns, ("192.0.2.7", 9), ("192.0.2.8", port), payload)
            )


def test_a_window_still_sees_what_is_recorded(tmp_path, windows):
    out = tmp_path / "flight.pcap"
    with Recording(
        out,
        "--count",
        "2",
        "--forward",
        f"127.0.0.1:{windows[0].getsockname()[1]}",
        windows=2,
    ) as recording:
        recording.send(b"one", offset=1)
        recording.send(POSE)
        assert (windows[0].recv(200), windows[1].recv(200)) == (POSE, b"one")
        code, _, told = recording.rest()

    assert code == 0
    assert "passed on: 2" in told


def test_ctrl_c_ends_a_recording_with_the_account(tmp_path):
    out = tmp_path / "flight.pcap"
    with Recording(out) as recording:
        recording.send(POSE)
        wait_until(lambda: out.stat().st_size >= 24 + 16 + 28 + 112)
        recording.process.send_signal(signal.SIGINT)
        code, _, told = recording.rest()
    assert code == 0
    assert "1 datagrams, 180 bytes" in told
    assert "Traceback" not in told


def test_a_recording_may_go_to_a_pipe():
    """Standard output carries the recording alone, so that Wireshark can read it."""
    with Recording("-", "--count", "1") as recording:
        recording.send(POSE)
        code, out, _ = recording.rest()
    assert code == 0
    assert out[:4] == bytes.fromhex("4d3cb2a1")
    assert out[24 + 16 + 28 :] == POSE


def test_limits_of_time_and_size(tmp_path):
    assert (
        run_rfly(
            "record",
            str(tmp_path / "a.pcap"),
            "--port",
            str(free_port()),
            "--duration",
            "0.2",
        ).returncode
        == 0
    )

    with Recording(tmp_path / "b.pcap", "--max-size", "0.2") as recording:
        recording.send(*[bytes(50_000)] * 20, gap_s=0.005)
        code, _, _ = recording.rest()
    assert code == 0
    assert 100_000 < (tmp_path / "b.pcap").stat().st_size <= 200_000


def test_a_truncated_recording_is_replayed_as_far_as_it_is_whole(tmp_path, windows):
    out = tmp_path / "flight.pcap"
    port = windows[0].getsockname()[1]
    write(out, [(0, port, b"whole"), (1, port, b"cut")])
    out.write_bytes(out.read_bytes()[:-1])
    done = run_rfly("replay", str(out), "--ports", str(port))
    assert done.returncode == 0
    assert windows[0].recv(10) == b"whole"
    assert "sent 1 datagrams" in done.stdout
    assert re.search(
        r"ends at byte 119, within the record that begins at byte 73; what comes before",
        done.stderr,
    )


def test_a_full_disk_ends_a_recording_and_names_its_file(tmp_path, monkeypatch):
    """A file of 4096 bytes holds a header of 24, and records of 16 + 28 + 60.

    Byte code would be cut at the limit too, for all later processes.
    """
    resource = pytest.importorskip("resource")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    out = tmp_path / "flight.pcap"
    with Recording(out) as recording:
        resource.prlimit(recording.process.pid, resource.RLIMIT_FSIZE, (4096, 4096))
        while recording.process.poll() is None:
            recording.send(bytes(60), gap_s=0.001)
        code, _, errors = recording.rest()

    assert code == 2
    assert errors.splitlines()[-1] == (
        f"rfly: {out}: File too large: the recording has ended; what it holds can be replayed"
    )
    done = run_rfly("replay", str(out), "--port", str(free_port()), "--ports", str(recording.port))
    assert f"sent {(4096 - 24) // (16 + 28 + 60)} datagrams" in done.stdout


def test_what_was_left_out_is_told(tmp_path, windows):
    out = tmp_path / "flight.pcap"
    port = windows[0].getsockname()[1]
    write(out, [(0, port, b"x"), (1, 53, b"dns"), (2, 53, b"dns")])
    done = run_rfly("replay", str(out), "--ports", str(port))
    assert "left out, to other ports: 53 (2)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(["replay", "no such.pcap"], "no such.pcap: No such file", id="missing"),
        pytest.param(["replay", sys.executable], "neither a pcap nor a pcapng", id="no-recording"),
        pytest.param(
            ["replay", "DNS"],
            r"no datagram to port 20010 to 20073; it holds some to 53 (1)",
            id="other-ports",
        ),
        pytest.param(
            ["replay", "DNS", "--ports", "20012-20010"],
            "expected 1 port or more",
            id="ports-backwards",
        ),
        pytest.param(["replay", "DNS", "--ports", "a"], "FIRST-LAST", id="ports-no-number"),
        pytest.param(
            ["replay", "DNS", "--ports", "53", "--host", "no such host"],
            "no such host",
            id="host",
        ),
        pytest.param(
            ["record", "DNS"], "exists; choose another name or add --overwrite", id="exists"
        ),
        pytest.param(["record", "new", "--forward", "host:99999"], "HOST:PORT", id="forward"),
        pytest.param(
            ["record", "new", "--forward", "127.0.0.1"],
            "where the recording listens",
            id="loop",
        ),
        pytest.param(
            ["record", "new", "--port", "65535", "--windows", "2"],
            "65536",
            id="port-beyond-the-last",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, arguments, named):
    write(tmp_path / "dns.pcap", [(0, 53, b"x")])
    port = (
        ["--port", str(free_port())]
        if arguments[0] == "record" and "--port" not in arguments
        else []
    )
    names = {"DNS": str(tmp_path / "dns.pcap"), "new": str(tmp_path / "new.pcap")}
    words = [names.get(argument, argument) for argument in arguments] + port
    assert named in mistake(words, monkeypatch, capsys)
    assert (tmp_path / "dns.pcap").stat().st_size == 24 + 16 + 29
    assert not (tmp_path / "new.pcap").exists()


@pytest.mark.parametrize("command", ["record", "replay"])
def test_help_has_examples(command):
    done = run_rfly(command, "--help")
    assert done.returncode == 0
    assert f"rfly {command}" in done.stdout
    assert "Examples" in done.stdout


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name
)
def test_whatever_ends_it_all_that_has_arrived_is_in_the_file(tmp_path, number):
    """SIGTERM and SIGHUP lose nothing from buffers, as they once did: 17 of 500."""
    out = tmp_path / "a.pcap"
    with Recording(out) as recording:
        recording.send(*[POSE] * 500)
        recording.process.send_signal(number)
        code, _, errors = recording.rest()
    assert code == 0, errors
    assert "500 datagrams" in errors
    assert out.stat().st_size == 24 + 500 * (16 + 20 + 8 + len(POSE))
