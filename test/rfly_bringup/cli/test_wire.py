# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly send` and `rfly listen` against real sockets, as processes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import threading
from contextlib import suppress

import pytest
from command_line import mistake
from node_harness import PATIENCE, Rfly, run_rfly

from rfly_bringup.cli.wire_monitor import packet_filter
from rfly_ue_bridge.codec.to_rflysim3d import decode

MAP_COMMAND = bytes.fromhex(
    "d2029649" + "52666c794368616e67654d617062794e616d652047726173736c616e6473"
) + bytes(22)
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


@pytest.fixture
def window():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(PATIENCE)
        yield opened


def port_of(opened):
    return opened.getsockname()[1]


def test_send_to_one_window(window):
    done = run_rfly(
        "send",
        "RflyChangeMapbyName Grasslands",
        "--port",
        str(port_of(window) - 1),
        "--window",
        "1",
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert window.recv(4096) == MAP_COMMAND
    assert (
        f"sent 56 bytes to 127.0.0.1:{port_of(window)}: RflyChangeMapbyName Grasslands"
        in done.stdout
    )


def test_send_joins_words_and_reaches_three_windows(window):
    """A command without --window goes to three consecutive ports, as the SDK sends it."""
    done = run_rfly("send", "t.MaxFPS", "30", "--port", str(port_of(window) - 2))
    assert window.recv(4096) == struct.pack("<i52s", 1234567890, b"t.MaxFPS 30")
    assert f":{port_of(window) - 2}-{port_of(window)}" in done.stdout


def test_send_a_script_waits_after_a_map_change(window, tmp_path):
    script = tmp_path / "scene.txt"
    script.write_text("# the map\nRflyChangeMapbyName Grasslands\n\n  t.MaxFPS 30  \nslomo 2\n")
    done = run_rfly("send", "--file", script, "--port", str(port_of(window)), "--window", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 3

    assert window.recv(4096) == MAP_COMMAND
    assert window.recv(4096) == struct.pack("<i52s", 1234567890, b"t.MaxFPS 30")
    assert window.recv(4096) == struct.pack("<i52s", 1234567890, b"slomo 2")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("t.MaxFPS 30\n" + "x" * 250 + "\n", "line 2: the command has 250 bytes"),
        ("# nothing\n", "no command, expected one on each line"),
    ],
)
def test_a_script_is_checked_before_its_first_command_is_sent(window, tmp_path, text, named):
    script = tmp_path / "scene.txt"
    script.write_text(text)
    done = run_rfly("send", "--file", script, "--port", str(port_of(window)), "--window", "0")
    assert (done.returncode, named in done.stderr) == (2, True)
    window.setblocking(False)
    with pytest.raises(BlockingIOError):
        window.recv(4096)


@pytest.mark.parametrize("kind", ["pipe", "endless", "folder", "large", "binary"])
def test_a_script_is_a_regular_file_of_text(tmp_path, kind):
    """A pipe without a writer does not make it wait, /dev/zero is not read without end."""
    script = tmp_path / "scene.txt"
    if kind == "pipe":
        os.mkfifo(script)
    elif kind == "endless":
        script.symlink_to("/dev/zero")
    elif kind == "folder":
        script.mkdir()
    elif kind == "large":
        with script.open("wb") as file:
            file.truncate(1 << 40)
    else:
        script.write_bytes(b"\xff\xfe")
    done = run_rfly("send", "--file", script)

    assert done.returncode == 2
    assert done.stderr.startswith(f"rfly: {script}: cannot be read as text: ")
    assert done.stderr.count("\n") == 1


def test_the_dissector_is_written_into_no_pipe(tmp_path):
    pipe = tmp_path / "a.lua"
    os.mkfifo(pipe)
    done = run_rfly("dissector", "--out", pipe, "--overwrite")
    assert (done.returncode, "expected a regular file" in done.stderr) == (2, True)


def test_send_says_where_nothing_listens():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        free = port_of(opened)
    done = run_rfly("send", "RflyClearCapture", "--port", str(free), "--window", "0")
    assert done.returncode == 0
    assert f"nothing listens on {free}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        pytest.param(["send", "x" * 250], "at most 249", id="too-long"),
        pytest.param(["send", ""], "empty", id="empty"),
        pytest.param(["send"], "expected either a command or --file SCRIPT", id="nothing"),
        pytest.param(
            ["send", "--file", "/no/such.txt"],
            "cannot be read as text: No such file or directory\n",
            id="file",
        ),
        pytest.param(["send", "x" * 92, "--lan"], "at most 91", id="too-long-for-lan"),
        pytest.param(["send", "x", "--host", "no such host"], "no such host", id="host"),
        pytest.param(
            ["send", "x", "--port", "65000", "--window", "600"],
            "65600",
            id="window-beyond-the-last-port",
        ),
        pytest.param(["listen", "--bind", "192.0.2.1"], "192.0.2.1", id="foreign-address"),
        pytest.param(["listen", "--bind", "not an address"], "not an address", id="no-address"),
        pytest.param(
            ["listen", "--port", "65535", "--all-windows"], "65536", id="port-beyond-the-last"
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(monkeypatch, capsys, arguments, named):
    assert named in mistake(arguments, monkeypatch, capsys)


def test_listen_names_a_port_that_is_taken(window):
    done = run_rfly("listen", "--port", str(port_of(window)))
    assert done.returncode == 2
    assert re.fullmatch(rf"rfly: port {port_of(window)} at 127\.0\.0\.1 is taken.*\n", done.stderr)


class Listening:
    """`rfly listen` on a free port, its lines read as they come."""

    def __init__(self, *arguments, terminal=False):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        ours, its = pty.openpty() if terminal else (None, subprocess.PIPE)
        self.process = Rfly(
            *("listen", "--port", self.port, *arguments),
            stdout=its,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "300"},
        )
        if terminal:
            os.close(its)
            self.process.stdout = os.fdopen(ours, errors="replace")
        self.timer = threading.Timer(30, self.process.kill)
        self.timer.start()
        self.first = self.process.stdout.readline()

    def send(self, *datagrams, offset=0):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
            for datagram in datagrams:
                opened.sendto(datagram, ("127.0.0.1", self.port + offset))

    def rest(self):
        text = ""
        with suppress(OSError):  # a terminal's other side has gone
            for line in self.process.stdout:
                text += line
        return self.process.wait(PATIENCE), text

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def test_listen_tells_datagrams_and_counts_unknown_ones():
    """Positions in metres NED, angles in degrees; what is no packet is shown as hex and counted."""
    ids = struct.pack("<100H", 11, 12, 13, 14, *[0] * 96)
    fleet = (
        struct.pack("<i", 1234567891)
        + ids
        + bytes(200 + 1200 + 1200)
        + struct.pack("<300H", *[100] * 300)
        + bytes(400)
    )
    with Listening("--count", "5") as listening:
        assert f"127.0.0.1:{listening.port}" in listening.first
        listening.send(POSE, MAP_COMMAND, b"\xde\xad\xbe\xef", bytes(112), fleet)
        code, text = listening.rest()
    assert code == 0

    lines = text.splitlines()
    assert (
        "id 7 type 3  N 1.500 E -2.500 D -3.500 m  roll 0.00 pitch 28.65 yaw 85.94°  5.00 m/s"
        in lines[0]
    )
    assert "Ue4CMD0  'RflyChangeMapbyName Grasslands'" in lines[1]
    assert "unknown (length)  4 bytes: de ad be ef" in lines[2]
    assert "unknown (checksum)  112 bytes: 00 00" in lines[3]
    assert "Multi3DData100New on the ground  4 vehicles: id 11" in lines[4]
    assert "and 1 more" in lines[4]
    assert lines[5].startswith("5 datagrams in ")

    for part in ("SOut2SimulatorSimpleTime 1", "unknown (length) 1", "vehicles 7, 11, 12, 13, 14"):
        assert part in lines[5]


def test_listen_tells_labels_attachments_actions_and_fleets_with_motors():
    label = struct.pack("<6i2f120s", 1234567899, 9, 0, 255, 128, 0, 1.0, 30.0, "größer".encode())
    gone = struct.pack("<6i2f120s", 1234567899, 0, -1, 0, 0, 0, -1.0, 30.0, b"")
    attach = struct.pack("<i75i", 1234567892, 5, *[0] * 24, 6, *[0] * 24, 2, *[0] * 24)
    action = struct.pack("<2id16d", 1234567894, 8, 1.5, 0.5, *[0] * 15)
    full = struct.pack(
        "<4i24f7d", 123456789, 21, 3, 0, *[0] * 24, -1.0, 1.0, 2.0, -3.0, 0.0, 0.0, 0.0
    )
    fleet = struct.pack(
        "<i40H120f60H160f",
        1234567890,
        31,
        *[0] * 19,
        3,
        *[0] * 19,
        *[0] * 120,
        *[100] * 60,
        *[0] * 160,
    )
    with Listening("--count", "6") as listening:
        listening.send(label, gone, attach, action, full, fleet)
        _, text = listening.rest()
    lines = text.splitlines()

    assert "CopterMsg  id 9, the id line for 1 s: 'größer'  size 30 RGB 255 128 0" in lines[0]
    assert "CopterMsg  all ids: all lines gone" in lines[1]
    assert "VehicleAttatch25  5 to 6 (position and yaw)" in lines[2]
    assert "Ue4ExtMsg  id 8 at 1.500 s: 0.5 0 0" in lines[3]
    assert "SOut2Simulator  id 21 type 3  N 1.000 E 2.000 D -3.000 m" in lines[4]
    assert "Multi3DData2New  1 vehicles: id 31 type 3" in lines[5]


def test_a_packet_without_words_of_its_own_is_told_field_by_field():
    from rfly_bringup.cli.packet_texts import packet_text
    from rfly_ue_bridge.codec.packets import Field, PacketType

    fields = (
        Field("checksum", "i"),
        Field("copterID", "i"),
        Field("windNE", "2f"),
        Field("rain", "f"),
    )
    packet = PacketType("Weather", 20, (55,), fields).make(
        copterID=7, windNE=(3.0, -1.5), rain=0.25
    )
    assert packet_text(packet) == "Weather  copterID 7  windNE [3.0, -1.5]  rain 0.25"


def test_listen_prints_json_with_every_field():
    broken = struct.pack(
        "<3i7f", 1234567890, 9, 30, 100.0, 1.0, 2.0, float("nan"), 0.0, 0.0, float("inf")
    )
    with Listening("--json", "--count", "3") as listening:
        listening.send(POSE, broken, b"\x01")
        code, text = listening.rest()
    assert code == 0

    pose, simple, unknown = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    assert pose["packet"] == "SOut2SimulatorSimpleTime"
    assert pose["port"] == listening.port
    assert (pose["PosE"], pose["VelE"], pose["runnedTime"]) == (
        [1.5, -2.5, -3.5],
        [3.0, 4.0, 0.0],
        -1.0,
    )
    assert (simple["MotorRPMSMean"], simple["PosE"], simple["AngEuler"]) == (
        100.0,
        [1.0, 2.0, "nan"],
        [0.0, 0.0, "inf"],
    )
    assert (unknown["packet"], unknown["reason"], unknown["hex"]) == (None, "length", "01")


def pose_of(vehicle_id, vehicle_type, north):
    """A pose with another id, type and place."""
    words = list(struct.unpack("<6i14f4d", POSE))
    words[1:3] = vehicle_id, vehicle_type
    words[-4] = north
    return struct.pack("<6i14f4d", *words)


def test_listen_hears_three_windows():
    with Listening("--all-windows", "--count", "2") as listening:
        listening.send(POSE, offset=2)
        listening.send(POSE, offset=1)
        code, text = listening.rest()
    assert code == 0
    assert {int(line.split()[0]) for line in text.splitlines()[:2]} == {
        listening.port + 1,
        listening.port + 2,
    }


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (("--id", "8"), [8]),
        (("--type", "3"), [7]),
        (("--id", "7", "--id", "9"), [7, 9]),
        (("--id", "7", "--id", "8", "--type", "50"), [8]),
        (("--packet", "ue4cmd0"), [None]),
        ((), [7, 8, None, None, 9]),
    ],
)
def test_listen_shows_only_the_chosen_vehicles_and_packets(options, shown):
    """It ends after the datagrams that the options choose, of five that are sent."""
    sent = (pose_of(7, 3, 1.0), pose_of(8, 50, 2.0), MAP_COMMAND, b"\x01", pose_of(9, 50, 3.0))
    with Listening("--json", *options, "--count", str(len(shown))) as listening:
        listening.send(*sent)
        code, text = listening.rest()
    assert code == 0
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert [row.get("copterID") for row in rows] == shown
    assert text.splitlines()[-1].startswith(f"{len(shown)} datagrams in ")


def test_a_packet_of_several_vehicles_is_chosen_by_one_of_them():
    """The id must have the type: a filter for id 11 of type 4 does not admit 11 of type 3."""
    types = struct.pack("<100H", 3, 4, *[0] * 98)
    ids = struct.pack("<100H", 11, 12, *[0] * 98)
    rest = bytes(1200 + 1200) + struct.pack("<300H", *[100] * 300) + bytes(400)
    packet = decode(struct.pack("<i", 1234567891) + ids + types + rest)
    for ids_chosen, types_chosen, admitted in (
        ([12], [], True),
        ([13], [], False),
        ([12], [4], True),
        ([11], [4], False),
        ([], [3], True),
    ):
        assert packet_filter(ids_chosen, types_chosen, []).admits(packet) is admitted
    assert not packet_filter([11], [], []).admits(None)
    assert packet_filter([], [], []).admits(None)


def test_listen_summary_shows_the_latest_of_each():
    """The table has a row for each vehicle, with the last place, and counts other datagrams."""
    with Listening("--summary", "--count", "6") as listening:
        listening.send(pose_of(7, 3, 1.0), pose_of(9, 50, 3.0), pose_of(7, 3, 12.25))
        listening.send(MAP_COMMAND, b"\x01", MAP_COMMAND)
        code, text = listening.rest()
    assert code == 0
    rows = {words[0]: words for words in map(str.split, text.splitlines()) if words}
    assert rows["7"][:2] == ["7", "3"]
    assert rows["7"][3:6] == ["12.25", "-2.50", "-3.50"]
    assert rows["9"][:2] == ["9", "50"]
    assert rows["Ue4CMD0"][1] == "2"
    assert "unknown (length)  1" in text
    assert "6 datagrams in " in text


def test_listen_shows_a_table_on_a_terminal():
    """A pseudo-terminal gets the table, unless --each asks for lines."""
    for options, expected in ((), "a second"), (("--each",), "id 7 type 3  N 1.500"):
        with Listening(*options, "--count", "1", terminal=True) as listening:
            listening.send(POSE)
            _, text = listening.rest()
        assert expected in text


def test_control_characters_of_a_datagram_do_not_reach_the_terminal():
    with Listening("--count", "1") as listening:
        listening.send(struct.pack("<i52s", 1234567890, b"[red]\x1b[2J"))
        _, text = listening.rest()
    assert "\x1b[2J" not in text
    assert "'[red]\\x1b[2J'" in text


def test_ctrl_c_ends_listening_with_the_account():
    with Listening() as listening:
        listening.send(POSE)
        assert "id 7" in listening.process.stdout.readline()
        listening.process.send_signal(signal.SIGINT)
        code, text = listening.rest()
    assert code == 0
    assert "1 datagrams" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("command", ["send", "listen"])
def test_help_has_examples(command):
    done = run_rfly(command, "--help")
    assert done.returncode == 0
    assert f"rfly {command}" in done.stdout
    assert "Examples" in done.stdout
