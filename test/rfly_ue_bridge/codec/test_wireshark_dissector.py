# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Wireshark plugin: its table against offsets counted by hand, and the plugin itself in tshark."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys

import pytest
from node_harness import PATIENCE

from rfly_ue_bridge.codec.from_rflysim3d import FROM_RFLYSIM3D
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D
from rfly_ue_bridge.codec.wireshark_dissector import dissector
from rfly_ue_bridge.datagram_recording.datagrams import RecordedDatagram
from rfly_ue_bridge.datagram_recording.pcap import PcapWriter

PACKET = re.compile(
    r'\{ name = "(.+?)", size = (\d+), mark = (\d), checksums = \{ (.+?) \}, '
    r"fields = \{\n(.*?)\n  \} \},",
    re.DOTALL,
)
FIELD = re.compile(r'\{ "(\w+)", (\d+), (\d+), (\d+), "(\w)" \}')


def table():
    """Packet name -> (size, checksums, fields), as in the plugin.

    A field is (name, offset, bytes of one element, count).
    """
    return {
        name: (
            int(size),
            [int(c) for c in sums.split(", ")],
            [(f, *map(int, n)) for f, *n, _ in FIELD.findall(fields)],
        )
        for name, size, _mark, sums, fields in PACKET.findall(dissector())
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "SOut2SimulatorSimple",
            (
                40,
                [1234567890, 1234567891],
                [
                    ("checksum", 0, 4, 1),
                    ("copterID", 4, 4, 1),
                    ("vehicleType", 8, 4, 1),
                    ("MotorRPMSMean", 12, 4, 1),
                    ("PosE", 16, 4, 3),
                    ("AngEuler", 28, 4, 3),
                ],
            ),
        ),
        (
            "SOut2SimulatorSimpleTime",
            (
                112,
                [1234567891],
                [
                    ("checksum", 0, 4, 1),
                    ("copterID", 4, 4, 1),
                    ("vehicleType", 8, 4, 1),
                    ("PosGpsInt", 12, 4, 3),
                    ("MotorRPMS", 24, 4, 8),
                    ("VelE", 56, 4, 3),
                    ("AngEuler", 68, 4, 3),
                    ("PosE", 80, 8, 3),
                    ("runnedTime", 104, 8, 1),
                ],
            ),
        ),
        (
            "Multi3DData100New",
            (
                3804,
                [1234567890, 1234567891],
                [
                    ("checksum", 0, 4, 1),
                    ("copterID", 4, 2, 100),
                    ("vehicleType", 204, 2, 100),
                    ("PosE", 404, 4, 300),
                    ("AngEuler", 1604, 4, 300),
                    ("Scale", 2804, 2, 300),
                    ("MotorRPMSMean", 3404, 4, 100),
                ],
            ),
        ),
        (
            "CopterSimCrash",
            (
                12,
                [1234567890],
                [
                    ("checksum", 0, 4, 1),
                    ("copterID", 4, 4, 1),
                    ("targetID", 8, 4, 1),
                ],
            ),
        ),
        # four bytes of C alignment before PosE
        (
            "SOut2SimulatorSimpleTime (VehicleApi)",
            (
                104,
                [1234567890],
                [
                    ("checksum", 0, 4, 1),
                    ("copterID", 4, 4, 1),
                    ("vehicleType", 8, 4, 1),
                    ("PWMs", 12, 4, 8),
                    ("VelE", 44, 4, 3),
                    ("AngEuler", 56, 4, 3),
                    ("PosE", 72, 8, 3),
                    ("runnedTime", 96, 8, 1),
                ],
            ),
        ),
        ("Ue4CMD0", (56, [1234567890], [("checksum", 0, 4, 1), ("text", 4, 52, 1)])),
    ],
)
def test_offsets_counted_by_hand(name, expected):
    assert table()[name] == expected


def test_every_packet_is_there_without_gap_or_rest():
    packets = table()
    names = [packet_type.name for packet_type in (*TO_RFLYSIM3D, *FROM_RFLYSIM3D)]
    assert [name for name, *_ in PACKET.findall(dissector())] == names

    marks = {name: mark for name, _, mark, *_ in PACKET.findall(dissector()) if mark != "1"}
    assert marks == {"SOut2Simulator (old)": "2"}

    text = dissector()
    for packet_type in (*TO_RFLYSIM3D, *FROM_RFLYSIM3D):
        size, checksums, fields = packets[packet_type.name]
        assert (size, checksums) == (packet_type.size, list(packet_type.checksums))
        assert [name for name, *_ in fields] == [field.name for field in packet_type.fields]
        end = 0
        for name, offset, each, count in fields:
            assert offset == end
            assert len(re.findall(rf"^  {name} = ProtoField\.\w+\(", text, re.MULTILINE)) == 1
            end += each * count + packet_type.padding.get(name, 0)
        assert end == size


def test_rfly_prints_it():
    program = (
        "import sys; from rfly_bringup.cli.main import main; "
        "sys.argv = ['rfly', 'dissector']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, dissector(), "")


def test_rfly_writes_it_to_a_file(tmp_path):
    program = (
        "import sys; from rfly_bringup.cli.main import main; "
        "sys.argv = ['rfly', 'dissector', '--out', 'a.lua']; main()"
    )
    subprocess.run([sys.executable, "-c", program], timeout=PATIENCE, check=True, cwd=tmp_path)
    assert (tmp_path / "a.lua").read_text(encoding="utf-8") == dissector()


def fields_in_tshark(tmp_path, datagrams, *fields):
    """One row of field values for each (port, payload), from tshark with the plugin."""
    if shutil.which("tshark") is None:
        pytest.skip("the program tshark is not installed")

    plugin = tmp_path / "rflysim3d.lua"
    recording = tmp_path / "a.pcap"
    plugin.write_text(dissector(), encoding="utf-8")

    with recording.open("wb") as file:
        writer = PcapWriter(file)
        for number, (port, payload) in enumerate(datagrams):
            writer.write(
                RecordedDatagram(number, ("127.0.0.1", 50000), ("127.0.0.1", port), payload)
            )

    command = ["tshark", "-X", f"lua_script:{plugin}", "-r", str(recording), "-T", "fields"]
    for field in fields:
        command += ["-e", field if "." in field else f"rflysim.{field}"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert "lua" not in done.stderr.lower()
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_tshark_shows_the_values_of_the_bytes(tmp_path):
    head = (1234567891, 7, 3)
    gps = (11, 12, 13)
    motors = range(21, 29)
    velocity = (1.5, -2.5, 3.5)
    euler = (0.25, 0.5, 0.75)
    position = (10, 20, -30)
    values = (*head, *gps, *motors, *velocity, *euler, *position, -1)
    time_packet = struct.pack("<6i14f4d", *values)

    command = bytes.fromhex("d2029649") + b"RflyChangeMapbyName Grasslands".ljust(52, b"\0")
    crash = bytes.fromhex("d2029649 09000000 fdffffff")

    rows = fields_in_tshark(
        tmp_path,
        [(20010, time_packet), (20012, command), (20006, crash), (20011, b"\x01\x02\x03")],
        "packet", "copterID", "PosE", "VelE", "MotorRPMS", "text", "targetID", "unknown",
    )  # fmt: skip

    assert rows[0][:5] == [
        "SOut2SimulatorSimpleTime",
        "7",
        "10,20,-30",
        "1.5,-2.5,3.5",
        "21,22,23,24,25,26,27,28",
    ]
    assert (rows[1][0], rows[1][5]) == ("Ue4CMD0", "RflyChangeMapbyName Grasslands")
    assert (
        rows[2][0],
        rows[2][1],
        rows[2][6],
    ) == ("CopterSimCrash", "9", "-3")
    assert (rows[3][0], rows[3][7].replace(":", "")) == ("", "010203")


def test_tshark_tells_equal_lengths_of_both_directions_apart(tmp_path):
    """One checksum and 112 bytes are SOut2SimulatorSimpleTime one way and ObjReqData the other."""
    datagram = struct.pack("<i", 1234567891) + bytes(108)
    rows = fields_in_tshark(tmp_path, [(20010, datagram), (20006, datagram)], "packet")
    assert [row[0] for row in rows] == ["SOut2SimulatorSimpleTime", "ObjReqData"]


def test_tshark_shows_the_slots_of_a_fleet_in_use(tmp_path):
    ids = struct.pack("<100H", 11, 0, 40000, *[0] * 97)
    places = struct.pack("<300f", 1, 2, 3, 0, 0, 0, 7, 8, 9, *[0] * 291)
    fleet = struct.pack("<i", 1234567890) + ids + bytes(200) + places + bytes(1200 + 600 + 400)
    rows = fields_in_tshark(tmp_path, [(20010, fleet)], "copterID", "PosE", "_ws.col.Info")
    assert rows[0][:2] == ["11,40000", "1,2,3,7,8,9"]
    assert rows[0][2] == "Multi3DData100New 2 vehicles"


def test_tshark_takes_apart_what_a_capture_shows_as_one(tmp_path):
    pieces = [struct.pack("<3i7f", 1234567890, number, 3, *[0.0] * 7) for number in (4, 5, 6)]
    rows = fields_in_tshark(tmp_path, [(20010, b"".join(pieces))], "copterID", "_ws.col.Info")
    assert rows[0][0] == "4,5,6"
    assert rows[0][1].startswith("3 datagrams as one")
