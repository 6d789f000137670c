# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The scripts of the eight experiments, as processes against UDP sockets in RflySim3D's place."""

from __future__ import annotations

import itertools
import math
import os
import random
import runpy
import signal
import socket
import struct
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.fleet.fleet_file import load_fleet

EXAMPLES = Path(__file__).parents[2] / "examples"
TIME = struct.Struct("<6i14f4d")


def start(script, *options, cwd):
    command = [sys.executable, str(EXAMPLES / script), *map(str, options)]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Windows:
    """The three windows of RflySim3D, on a loopback address of this test alone."""

    def __init__(self, stack):
        for _ in range(100):
            self.host = (
                f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            )
            try:
                self.sockets = [stack.enter_context(_bound(self.host, 20010 + k)) for k in range(3)]
                return
            except OSError:
                continue
        raise AssertionError("ports 20010 to 20012 are taken on every address of this machine")

    def received(self):
        """Datagrams of each window."""
        return [_drain(opened) for opened in self.sockets]


def _bound(host, port):
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    try:
        opened.bind((host, port))
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened


def _drain(opened):
    found = []
    while True:
        try:
            found.append(opened.recv(65536))
        except BlockingIOError:
            return found


@pytest.fixture
def windows():
    with ExitStack() as stack:
        yield Windows(stack)


@pytest.fixture(scope="module")
def terrain():
    return HeightMap.load("MountainTerrain")


def test_ctrl_c_ends_a_drive_without_a_trace(windows, tmp_path):
    command = [sys.executable, EXAMPLES / "experiment_5_one_vehicle.py", "--host", windows.host]
    windows.sockets[0].settimeout(120.0)
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as script:
        windows.sockets[0].recv(65536)
        script.send_signal(signal.SIGINT)
        _, printed = script.communicate(timeout=120)
    assert (script.returncode, "Traceback" in printed) == (0, False)


@pytest.fixture(scope="module")
def ice():
    return HeightMap.load("MountainTerrain_Ice")


def command(text):
    return struct.pack("<i52s", 1234567890, text.encode())


def still(vehicle_id, vehicle_type, position, yaw=0.0):
    return TIME.pack(
        1234567891, vehicle_id, vehicle_type, 0, 0, 0, *[0.0] * 13, yaw, *position, -1.0
    )


def test_there_is_a_script_for_each_experiment():
    expected = [f"experiment_{k}" for k in range(1, 9)]
    assert [path.name[:12] for path in sorted(EXAMPLES.glob("experiment_*.py"))] == expected


def test_1_offset(windows, tmp_path):
    terrain = HeightMap.load("JacksboroFault")
    xml = (
        "<vehicle><body><CenterHeightAboveGroundCm>12</CenterHeightAboveGroundCm></body></vehicle>"
    )
    (tmp_path / "Target.xml").write_text(xml)
    out = start(
        "experiment_1_offset.py", "--host", windows.host, "--xml", "Target.xml", cwd=tmp_path
    )

    assert "offset 1 m, CenterHeightAboveGroundCm 100" in out
    assert (tmp_path / "Target.xml").read_text() == xml.replace(">12<", ">100<")

    unlifted = still(1001, 200150, (43.943, 1.620, terrain.altitude_ned(43.943, 1.620)))
    got = windows.received()
    assert [one[0] for one in got] == [unlifted] * 3

    head = got[0][1][:80]
    tail = struct.unpack("<4d", got[0][1][80:])
    assert head == still(1002, 200150, (0, 0, 0))[:80]
    assert tail == pytest.approx(
        (43.943, 6.620, terrain.altitude_ned(43.943, 6.620) - 1.0, -1.0), abs=1e-9
    )
    assert [len(one) for one in got] == [2, 2, 2]


def test_2_targets(windows, tmp_path):
    """The map command to window 0 only, the targets to all three."""
    start("experiment_2_targets.py", "--host", windows.host, cwd=tmp_path)
    targets = [
        still(1001, 200150, (43.943, 1.620, -11.465)),
        still(1002, 100150, (72.946, -4.388, -11.465)),
        still(1003, 151, (115.915, 5.510, -10.448)),
    ]
    assert windows.received() == [
        [command("RflyChangeMapbyName Grasslands"), *targets],
        targets,
        targets,
    ]


def test_3_person(windows, tmp_path):
    start("experiment_3_person.py", "--host", windows.host, cwd=tmp_path)
    expected = [
        command("RflyChangeMapbyName MountainTerrain"),
        still(100, 30, (-16.479, 1.45, -177.181), math.pi),
        struct.pack("<3i7f", 1234567891, 101, 30, 0, -17.479, 1.45, 0, 0, 0, math.pi),
    ]
    assert windows.received() == [expected] * 3


def test_4_commands(windows, terrain, tmp_path):
    """The camera is 20 m above the ground, with numbers as MATLAB writes them.

    MATLAB's calls reach port 20010 only.
    """
    options = ("--host", windows.host, "--steps", 3, "--pause", 0)
    out = start("experiment_4_commands.py", *options, cwd=tmp_path)
    assert os.listdir(tmp_path) == ["MapHeightData.mat"]

    first, *rest = windows.received()
    assert rest == [[], []]
    assert first[0] == command("RflyChangeMapbyName MountainTerrain")

    for datagram, north in zip(first[1:], (0.0, 5.0, 10.0), strict=True):
        text = datagram[4:].rstrip(b"\0").decode()
        assert datagram == command(text)
        name, *numbers = text.split()
        z = terrain.altitude_ned(north, 0.0) - 20
        expected = (
            "RflyCameraPosAng",
            f"{north:g}",
            "0",
            ["0", "-30", "0"],
        )
        assert (name, numbers[0], numbers[1], numbers[3:]) == expected
        assert numbers[2] == f"{float(numbers[2]):.7g}"
        assert float(numbers[2]) == pytest.approx(z, abs=1e-2)

    assert f"z = {terrain.altitude_ned(10.0, -3.5):.3f} m" in out


STEP = 0.75
"""Fleet time between two datagrams of a vehicle, s."""
TICKS = 12


def driven(script, scene, tmp_path):
    """(ids in order, vehicle types, {id: (ticks, 24) fields}) of a fleet's first nine seconds.

    The scene comes first.
    """
    with _bound("127.0.0.1", 0) as window:
        port = window.getsockname()[1]
        start(
            script,
            "--port",
            port,
            "--duration",
            0.6,
            "--rate",
            20,
            "--time-scale",
            15,
            cwd=tmp_path,
        )
        first, *datagrams = _drain(window)

    assert first == command(f"RflyChangeMapbyName {scene}")
    assert {len(d) for d in datagrams} == {112}

    fields = [TIME.unpack(d) for d in datagrams]
    assert {(f[0], *f[3:14], f[23]) for f in fields} == {
        (1234567891, *[0] * 11, -1.0)
    }  # no GPS, no motors, no time

    ids = list(dict.fromkeys(f[1] for f in fields))
    assert [f[1] for f in fields] == ids * TICKS

    rows = defaultdict(list)
    for f in fields:
        rows[f[1]].append(f)

    return ids, [fields[k][2] for k in range(len(ids))], {i: np.array(rows[i]) for i in ids}


def position(rows):
    return rows[:, 20:23]


def velocity(rows):
    return rows[:, 14:17]


def assert_on_ground(rows, terrain):
    """The model's middle and its four wheels touch the terrain, and it heads where it goes.

    Wheels stand on creases between cells of 16 m.
    """
    for (roll, pitch, yaw), (x, y, z), (vx, vy, _) in zip(
        rows[:, 17:20], position(rows), velocity(rows), strict=True
    ):
        assert z == pytest.approx(terrain.altitude_ned(x, y), abs=1e-6)

        cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (math.cos, math.sin))
        forward = np.array([cp * cy, cp * sy, -sp])
        right = np.array([sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, sr * cp])

        for ahead, aside in itertools.product((-1.3, 1.3), (-0.8, 0.8)):
            wheel = np.array([x, y, z]) + ahead * forward + aside * right
            assert wheel[2] == pytest.approx(terrain.altitude_ned(wheel[0], wheel[1]), abs=0.15)

        if math.hypot(vx, vy) > 0.1:
            assert math.remainder(yaw - math.atan2(vy, vx), 2 * math.pi) == pytest.approx(
                0.0, abs=1e-4
            )


def test_5_one_vehicle(terrain, tmp_path):
    ids, types, rows = driven("experiment_5_one_vehicle.py", "MountainTerrain", tmp_path)
    assert (ids, types) == ([501], [50])
    assert_on_ground(rows[501], terrain)
    speed = np.hypot(*velocity(rows[501])[:, :2].T)
    expected = np.minimum(2.0 * STEP * np.arange(TICKS), 12.0)
    np.testing.assert_allclose(speed, expected, atol=1e-3)
    assert np.ptp(rows[501][:, 18]) > 0.02  # the pitch follows the slope


def test_6_several_of_one_type(terrain, tmp_path):
    """Copies that start 3 s, four datagrams, after each other: the same drive, later."""
    ids, types, rows = driven("experiment_6_same_type.py", "MountainTerrain", tmp_path)
    expected = ([601, 602, 603, 604], [50] * 4)
    assert (ids, types) == expected

    for k, car in enumerate(ids):
        assert_on_ground(rows[car], terrain)
        wait = 4 * k
        assert not velocity(rows[car])[: wait + 1].any()
        np.testing.assert_allclose(
            position(rows[car])[wait:], position(rows[601])[: TICKS - wait], atol=1e-6
        )
        np.testing.assert_allclose(
            position(rows[car])[:wait], position(rows[601])[[0] * wait], atol=1e-9
        )

    assert np.linalg.norm(position(rows[601])[-1] - position(rows[604])[-1]) > 30


def test_7_several_of_different_types(terrain, tmp_path):
    ids, types, rows = driven("experiment_7_different_types.py", "MountainTerrain", tmp_path)
    assert (ids, types) == ([701, 702, 703], [50, 51, 100050])
    for car in ids:
        assert_on_ground(rows[car], terrain)
    lead = position(rows[701])[:, :2]
    np.testing.assert_allclose(position(rows[702])[4:, :2], lead[:-4], atol=1e-6)
    expected = lead[:-8] + np.array([0.0, 10.0])
    np.testing.assert_allclose(position(rows[703])[8:, :2], expected, atol=1e-6)  # 10 m east


SCENES = [
    (5, "MountainTerrain"),
    (6, "MountainTerrain"),
    (7, "MountainTerrain"),
    (8, "MountainTerrain_Ice"),
]


@pytest.mark.parametrize(("number", "scene"), SCENES)
def test_the_shipped_fleet_fits_its_scene(number, scene, monkeypatch, capsys):
    from rfly_bringup.cli.main import main

    words = ["rfly", "fleet", "check", f"experiment_{number}", "--map", scene]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as end:
        main()
    assert (end.value.code or 0, "nothing is wrong" in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize(("number", "scene"), SCENES)
def test_the_shipped_fleet_of_the_same_name_drives_the_same(number, scene, monkeypatch):
    """The script's fleet, taken where it would be sent."""
    terrain = HeightMap.load(scene)
    (script,) = EXAMPLES.glob(f"experiment_{number}_*.py")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    module = runpy.run_path(str(script))
    scripted = []
    module["main"].__globals__["drive"] = lambda fleet, _scene, _text: scripted.append(fleet)
    module["main"]()
    one = scripted[0].on_terrain(terrain)
    shipped = load_fleet(f"experiment_{number}").on_terrain(terrain)

    assert [vehicle.name for vehicle in shipped.vehicles] == [
        vehicle.name for vehicle in one.vehicles
    ]

    times = np.linspace(0.0, 150.0, 40)
    np.testing.assert_allclose(
        shipped.sample_times(times).position, one.sample_times(times).position, atol=1e-9
    )

    states = one.sample(0.0), shipped.sample(0.0)
    expected = states[1].id.tolist()
    assert states[0].id.tolist() == expected
    expected = states[1].vehicle_type.tolist()
    assert states[0].vehicle_type.tolist() == expected


def test_8_ring(ice, tmp_path):
    """The vehicles drive at 8 m/s on a radius of 60 m, each 45 degrees behind the one before.

    They turn counter-clockwise seen from above. The ice is level, at z = 0.
    """
    ids, types, rows = driven("experiment_8_ring.py", "MountainTerrain_Ice", tmp_path)
    assert (ids, types) == (list(range(801, 809)), [50] * 8)
    time = STEP * np.arange(TICKS)
    for k, car in enumerate(ids):
        assert_on_ground(rows[car], ice)
        np.testing.assert_allclose(position(rows[car])[:, 2], 0.0, atol=0.01)
        north, east = position(rows[car])[:, :2].T
        np.testing.assert_allclose(np.hypot(north, east), 60.0, atol=1e-6)
        angle = np.unwrap(np.arctan2(north, east))
        expected = 8.0 / 60.0 * time - math.radians(45) * k
        np.testing.assert_allclose(np.sin(angle - expected), 0.0, atol=1e-6)
        np.testing.assert_allclose(np.cos(angle - expected), 1.0, atol=1e-6)
