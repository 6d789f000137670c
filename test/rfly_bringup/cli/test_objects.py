# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly objects`: datagrams to a real socket, XML files on the disk, and a running bridge."""

from __future__ import annotations

import json
import math
import os
import re
import socket
import struct
import sys
from contextlib import ExitStack

import pytest
from node_harness import PATIENCE

from rfly_bringup.cli.main import main
from rfly_terrain.height_map.height_map import HeightMap

NED_OF_EXPERIMENT_2 = [
    (43.943, 1.620, -11.465),
    (72.946, -4.388, -11.465),
    (115.915, 5.510, -10.448),
]


@pytest.fixture
def rfly(monkeypatch, capsys, tmp_path):
    """Runs the command in an empty folder; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rfly", "objects", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code or 0, out, err

    return run


@pytest.fixture
def window():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.settimeout(PATIENCE)
        yield opened


def at(window):
    return "--port", window.getsockname()[1], "--window", 0


def time_packet(vehicle_id, vehicle_type, position, yaw=0.0):
    fields = (vehicle_id, vehicle_type, 0, 0, 0, *[0.0] * 13, yaw, *position, -1.0)
    return struct.pack("<6i14f4d", 1234567891, *fields)


def test_place_on_the_terrain_with_its_offset(rfly, window):
    code, out, err = rfly("place", 151, 120, -35.5, "--offset", 0.75, *at(window))
    ground = HeightMap.load("JacksboroFault").altitude(120.0, -35.5)
    assert (code, err) == (0, "")
    assert window.recv(4096) == time_packet(
        1001, 151, (-35.5, 120.0, -(ground + 0.75)), math.pi / 2
    )
    assert f"1001: type 151 at east 120.000 north -35.500 up {ground + 0.75:.3f}" in out
    assert f"sent 1 object to 127.0.0.1:{window.getsockname()[1]}" in out


def test_experiment_2_from_the_shipped_list(rfly, window):
    code, out, _ = rfly("place", "--file", "grasslands_targets", *at(window))
    types = (200150, 100150, 151)
    expected = [time_packet(1001 + k, types[k], p) for k, p in enumerate(NED_OF_EXPERIMENT_2)]
    assert [window.recv(4096) for _ in range(3)] == expected
    assert (code, "sent 3 objects" in out) == (0, True)


def test_experiment_3_with_and_without_a_height(rfly, window):
    person = ("place", 30, "--frame", "map_ned", "--yaw-deg", 180, *at(window))
    assert rfly(*person, -16.479, 1.45, "--id", 100, "--z", -177.181)[0] == 0
    assert window.recv(4096) == time_packet(100, 30, (-16.479, 1.45, -177.181), math.pi)
    assert rfly(*person, -17.479, 1.45, "--id", 101, "--ground")[0] == 0
    assert window.recv(4096) == struct.pack(
        "<3i7f", 1234567891, 101, 30, 0, -17.479, 1.45, 0, 0, 0, math.pi
    )


def test_all_three_windows_unless_one_is_asked_for(rfly):
    with ExitStack() as stack:
        while True:
            windows = [
                stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                for _ in range(3)
            ]
            windows[0].bind(("127.0.0.1", 0))
            port = windows[0].getsockname()[1]
            try:
                windows[1].bind(("127.0.0.1", port + 1))
                windows[2].bind(("127.0.0.1", port + 2))
                break
            except OSError:
                continue
        assert rfly("place", 3, 0, 0, "--z", 1, "--port", port)[0] == 0
        for opened in windows:
            opened.settimeout(PATIENCE)
            assert opened.recv(4096) == time_packet(1001, 3, (0.0, 0.0, -1.0), math.pi / 2)


def test_many_from_a_csv(rfly, window, tmp_path):
    """A thousand: nothing is lost on the way, ids are chosen around those that are given."""
    window.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    rows = [f"{1003 if k == 5 else ''},3,{k},0,1" for k in range(1000)]
    (tmp_path / "many.csv").write_text("id,type,x,y,z\n" + "\n".join(rows) + "\n")
    code, out, _ = rfly("place", "-f", "many.csv", *at(window))
    assert (code, "and 980 more" in out, "sent 1000 objects" in out) == (0, True, True)
    got = [struct.unpack_from("<2i", window.recv(4096), 0)[1] for _ in range(1000)]
    assert got[:7] == [1001, 1002, 1004, 1005, 1006, 1003, 1007]
    assert len(set(got)) == 1000


def test_nothing_listens_and_off_the_map_are_told(rfly):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        free = opened.getsockname()[1]
    code, out, _ = rfly("place", 3, 99999, 0, "--port", free, "--window", 0)
    assert code == 0
    assert "off the map 'JacksboroFault': the altitude is that of its edge" in out
    assert f"nothing listens on {free}" in out


XML = """<?xml version="1.0" encoding="GB2312"?>\r
<vehicle><!-- 目标 -->\r
  <body><CenterHeightAboveGroundCm>12</CenterHeightAboveGroundCm></body>\r
</vehicle>\r
"""
POINTS = ("--click", 43.943, 1.620, -10.465, "--object", 43.943, 1.620, -11.465)


def test_fit_computes(rfly):
    code, out, err = rfly("fit", *POINTS)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "offset  1 m: the model's origin above the ground",
        "CenterHeightAboveGroundCm  100",
    ]


def test_fit_corrects_the_xml(rfly, tmp_path):
    path = tmp_path / "T.xml"
    path.write_bytes(XML.encode("gb2312"))
    code, out, _ = rfly("fit", *POINTS, "--xml", "T.xml", "--dry-run")
    assert code == 0
    assert "-  <body><CenterHeightAboveGroundCm>12</CenterHeightAboveGroundCm></body>" in out
    assert "+  <body><CenterHeightAboveGroundCm>100</CenterHeightAboveGroundCm></body>" in out
    assert os.listdir(tmp_path) == ["T.xml"]
    code, out, _ = rfly("fit", *POINTS, "--xml", "T.xml")
    assert (code, "12 corrected to 100; the old file is" in out) == (0, True)
    assert path.read_bytes() == XML.replace(">12<", ">100<").encode("gb2312")
    assert (tmp_path / "T.xml.bak").read_bytes() == XML.encode("gb2312")
    assert "says 100 already" in rfly("fit", *POINTS, "--xml", "T.xml")[1]


def test_fit_warns_of_a_click_point_far_beside(rfly):
    code, _, err = rfly("fit", "--click", 3, 4, -8, "--object", 0, 0, -8.5)
    assert (code, "5.00 m to the side" in err) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("place",), "give TYPE X Y, or --file LIST"),
        (("place", 3, 1), "give TYPE X Y"),
        (("place", 3, 1, "nan"), "'nan': expected a finite number"),
        (("place", 3, 1, 2, "--file", "grasslands_targets"), "not both"),
        (("place", 3, 1, 2, "--offset", "nan"), "offset: nan"),
        (("place", 3, 1, 2, "--z", "1", "--offset", "1"), "give one of them"),
        (("place", 3, 1, 2, "--yaw-deg", "inf"), "yaw: inf"),
        (("place", 3, 1, 2, "--map", "Nowhere"), "map 'Nowhere' not found"),
        (("place", 3, 1, 2, "--host", "no.such.host.invalid"), "no.such.host.invalid"),
        (("place", 3, 1, 2, "--port", 65535), "expected 1 window or more"),
        (
            ("place", 3, 1, 2, "--bridge", "--map", "JacksboroFault"),
            "that of terrain_map",
        ),
        (("place", "--file", "none.yaml"), "no such file"),
        (
            ("place", "--file", "grasslands_targets", "--frame", "map"),
            "grasslands_targets.yaml:5: frame",
        ),
        (("fit", "--click", 1, 2, 3), "--object"),
        (("fit", "--click", 1, 2, "nan", "--object", 1, 2, 3), "click_point_ned"),
        (("fit", *POINTS, "--dry-run"), "--xml"),
        (("fit", *POINTS, "--xml", "none.xml"), "none.xml"),
        (("remove",), "ID"),
        (("move", 1, "far", 2), "'far'"),
    ],
)
def test_a_mistake_is_one_line(rfly, arguments, told):
    code, out, err = rfly(*arguments)
    assert (code, err.count("\n"), told in err) == (2, 1, True), err
    assert err.startswith("rfly: ")
    assert "sent" not in out


@pytest.mark.ros
def test_without_a_bridge_the_missing_service_is_named(rfly, domain_id, monkeypatch):
    from rfly_bringup.ros import command_client

    monkeypatch.setattr(command_client, "TIMEOUT_S", 0.2)
    code, out, err = rfly("list", "--namespace", "north")
    assert (code, out) == (2, "")
    assert "no ue_bridge_node offers /north/list_objects" in err


@pytest.mark.ros
def test_with_a_running_bridge(rfly, domain_id, tmp_path):
    """Place, list, move and remove objects by the services of a bridge on the demo map."""
    from node_harness import NodeProcess

    terrain = HeightMap.load("JacksboroFault")
    (tmp_path / "list.csv").write_text("id,type,x,y,offset\n,151,10,20,0.5\n30,3,11,20,\n")
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as window,
        NodeProcess("terrain_node", domain_id),
    ):
        window.bind(("127.0.0.1", 0))
        window.settimeout(PATIENCE)
        port = str(window.getsockname()[1])
        with NodeProcess("ue_bridge_node", domain_id, {"port": port, "feedback_port": "0"}):
            for _ in range(20):  # until the terrain has arrived
                code, out, err = rfly("place", "--file", "list.csv", "--bridge")
                if "terrain_map" not in err and "does not answer" not in err:
                    break
            assert (code, err) == (0, "")
            z = terrain.altitude(10.0, 20.0) + 0.5
            assert out.splitlines()[0] == f"1001: type 151 at 10.000 20.000 {z:.3f}"
            assert window.recv(4096) == time_packet(1001, 151, (20.0, 10.0, -z), math.pi / 2)
            _, out, _ = rfly("list", "--json")
            rows = [json.loads(line) for line in out.splitlines()]
            assert [(row["id"], row["type"]) for row in rows] == [(30, 3), (1001, 151)]
            assert rows[1]["position"] == pytest.approx([10.0, 20.0, z])
            code, out, _ = rfly("move", 1001, -15, -25.5, "--yaw-deg", 90)
            assert (
                code,
                f"now at -15.000 -25.500 {terrain.altitude(-15.0, -25.5) + 0.5:.3f} (map)" in out,
            ) == (
                0,
                True,
            )
            code, _, err = rfly("place", 3, 0, 0, "--id", 30, "--bridge")
            assert (code, "id 30 is a placed object already" in err) == (2, True)
            code, _, err = rfly("place", 3, 0, 0, "--z", 5, "--bridge")
            assert (code, "a z of its own" in err) == (2, True)
            assert rfly("remove", 30, 1001)[1] == "30: removed\n1001: removed\n"
            assert "0 objects, frame map" in rfly("list")[1]
            code, _, err = rfly("remove", 30)
            assert (code, bool(re.match(r"rfly: id 30: no such object", err))) == (
                2,
                True,
            )
