# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Each tutorial from its first command to its last.

The commands are typed like by a reader, with the files that the page shows.
"""

from __future__ import annotations

import functools
import os
import re
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from node_harness import PATIENCE, Rfly
from page_commands import ROOT, parse, shell_lines

from rfly_bringup.cli.main import main
from rfly_bringup.nodes.entry_points import MODULES
from rfly_missions import Mission, MissionItem, MissionMode, read_mission, write_mission
from rfly_terrain import HeightMap
from rfly_ue_bridge import RecordingReader, decode

WITH_NODES = {"up", "view", "record", "replay", "doctor"}
"""Commands that run with nodes in other tests below."""


def commands(name: str) -> list[list[str]]:
    """The words of all commands of a page."""
    return shell_lines(ROOT / "docs" / "tutorials" / f"{name}.md", r"(?:rfly|python|\.venv/\S+)")


def line_of(name: str, beginning: str) -> list[str]:
    """The page's command that begins so."""
    return next(words for words in commands(name) if " ".join(words).startswith(beginning))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of one's own with the project's examples."""
    return enter(tmp_path, monkeypatch)


def enter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (folder / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder in which a tutorial's commands without nodes have run, in their order."""

    @functools.cache
    def work_through(name: str) -> Path:
        with pytest.MonkeyPatch.context() as monkeypatch:
            folder = enter(tmp_path_factory.mktemp(name), monkeypatch)
            for words in commands(name):
                run_alone(words, monkeypatch)
        return folder

    return work_through


def run_alone(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command without nodes; for others read the options and find the executable."""
    if words[0] == "rfly" and (words[1] in WITH_NODES or words[1:3] == ["mission", "start"]):
        parse(words)
    elif words[0] == "rfly":
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code, words
    elif words[0] == "python" and "import rclpy" not in Path(words[1]).read_text(encoding="utf-8"):
        monkeypatch.setattr(sys, "argv", words[1:])
        runpy.run_path(words[1], run_name="__main__")
    elif words[0] != "python":
        assert Path(words[0]).name in MODULES


CODE_IN_A_PAGE = re.compile(
    r"^<!-- (examples/\S+) -->\n```(?:python|yaml)\n(.*?)^```$", re.S | re.M
)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "tutorials").glob("*.md")), ids=str)
def test_code_in_the_page_is_the_code_of_the_example(page):
    """Every block names its file and shows whole lines of it without a gap."""
    text = page.read_text(encoding="utf-8")
    blocks = CODE_IN_A_PAGE.findall(text)
    assert len(blocks) == len(re.findall(r"^```\S", text, re.MULTILINE)) > 0

    for file, code in blocks:
        example = (ROOT / file).read_text(encoding="utf-8")
        assert f"\n{code}" in f"\n{example}", f"{page.name}: not the code of {file}"


def test_the_controller_of_the_page_is_about_fifty_lines():
    page = (ROOT / "docs" / "tutorials" / "your-controller.md").read_text(encoding="utf-8")
    _, code = CODE_IN_A_PAGE.findall(page)[0]
    controller = code[code.index("class LandAirController") :]
    assert 45 <= len(controller.splitlines()) <= 60


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "your-terrain", marks=[pytest.mark.needs("matplotlib"), pytest.mark.exhaustive]
        ),
        "a-foreign-robot",
        pytest.param("a-mission", marks=pytest.mark.needs("matplotlib")),
        pytest.param("a-fleet", marks=pytest.mark.needs("matplotlib")),
        pytest.param("your-controller", marks=pytest.mark.needs("matplotlib")),
    ],
)
def test_commands_run_in_their_order(name, worked):
    """They leave the files that they name."""
    folder = worked(name)
    assert len(commands(name)) > 2
    for words in commands(name):
        if words[1] not in WITH_NODES:
            for file in (word for word in words if word.endswith((".png", ".csv", ".npy"))):
                assert (folder / file).stat().st_size > 5_000


def example(name: str) -> dict[str, Any]:
    """The names of an example that is not run as a program."""
    return runpy.run_path(str(ROOT / "examples" / "tutorials" / name))


def test_the_island_lies_as_its_formula_says(folder, monkeypatch):
    """The first row is north: the shore is nearest where sin 3a is -1 and cos 5a is 0 (a = 90
    degrees: 420 m), so a point 400 m north is 160 (1 - 400/420)^1.2 + 4 sin 1080° … = 4.15 m high,
    and its mirror image 400 m south (540 m to the shore) is 160 (1 - 400/540)^1.2 = 31.66 m. The
    crater's floor is 160 - 70 m.
    """
    for beginning in ("python examples/tutorials/make_island.py", "rfly terrain import"):
        run_alone(line_of("your-terrain", beginning), monkeypatch)
    island = HeightMap.load(folder / "Island")
    heights = island.altitude([0.0, 0.0, 0.0], [0.0, 400.0, -400.0])
    assert heights == pytest.approx([90.0, 4.15, 31.66], abs=0.01)


@pytest.mark.needs("matplotlib")
def test_the_mission_passes_its_items_and_lands_at_home(worked):
    track = np.loadtxt(worked("a-mission") / "track.csv", delimiter=",", skiprows=1)[:, 1:4]
    mission = read_mission(ROOT / "examples" / "tutorials" / "ridge.plan")
    for item in mission.items[1:]:
        north, east, down = item.position
        offset = track - (east, north, -down)
        if item.mode is MissionMode.ORBIT:
            on_circle = offset[np.abs(np.linalg.norm(offset, axis=1) - 120.0) < 3.0]
            sectors = np.floor(np.degrees(np.arctan2(on_circle[:, 1], on_circle[:, 0])) / 30.0)
            assert set(sectors) == set(range(-6, 6))  # all the way round
        else:
            assert np.linalg.norm(offset, axis=1).min() < 20.5  # the way-points' radius is 20 m

    assert track[-1] == pytest.approx(
        [0.0, 0.0, HeightMap.load("JacksboroFault").altitude(0.0, 0.0)], abs=0.5
    )


def test_a_faster_wedge_exceeds_the_limit_as_the_page_says(folder, monkeypatch, capsys):
    text = Path("examples/tutorials/wedge.yaml").read_text(encoding="utf-8")
    Path("fast.yaml").write_text(text.replace("cruise: 8.0", "cruise: 14.0", 1), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["rfly", "fleet", "check", "fast.yaml"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 1
    said = " ".join(capsys.readouterr().out.split())
    number = text.splitlines().index(next(row for row in text.splitlines() if "limits:" in row)) + 1
    assert re.search(
        rf"fast\.yaml:{number}\b.*it goes up to 15(\.0)? m/s, but has 1\d\.\d", said
    ), said


def test_the_controller_drives_flies_and_lands(folder):
    """The vehicle drives 8 m, then flies 8 m east and 4 m north of there and 3 m up.

    It stays level throughout and comes down slowly.
    """
    run_, controller = example("land_air_controller.py")["fly"]()
    position = run_.x[:, :3]
    velocity = run_.x[:, 3:6]
    height = position[:, 2] - position[0, 2]

    assert controller.phase == "stand"
    assert np.abs(height[position[:, 0] < 7.9]).max() < 0.03
    assert height.max() == pytest.approx(3.0, abs=0.2)
    assert position[-1, :2] == pytest.approx([16.0, 4.0], abs=0.3)
    assert np.abs(velocity[-1]).max() < 0.05
    assert velocity[height > 0.1, 2].min() > -1.2


class Program:
    """A command of a page as a process of its own, its output read as it comes."""

    def __init__(self, words: list[str], *more: str) -> None:
        options = [word.replace("$PWD", os.getcwd()) for word in (*words[1:], *more)]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        environment = {**os.environ, "COLUMNS": "200"}
        self.process: subprocess.Popen[bytes] = (
            Rfly(*options, env=environment, **streams)
            if words[0] == "rfly"
            else subprocess.Popen(
                [sys.executable, "-u", *options], start_new_session=True, env=environment, **streams
            )
        )
        self.output = ""

    def read_until(self, pattern: str) -> None:
        deadline = time.monotonic() + PATIENCE
        assert self.process.stdout is not None
        while not re.search(pattern, self.output):
            left = deadline - time.monotonic()
            readable = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            assert readable, f"no {pattern!r} within {PATIENCE} s:\n{self.output}"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, f"ended before {pattern!r}:\n{self.output}"
            self.output += data.decode()

    def end(self, number: int = 0) -> int:
        """Exit code, after a signal where one is given."""
        if number:
            self.process.send_signal(number)
        self.output += self.process.communicate(timeout=PATIENCE)[0].decode()
        return self.process.returncode

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def window(rflysim_host: str) -> Iterator[socket.socket]:
    """A substitute for RflySim3D at an address of this test alone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind((rflysim_host, 20010))
        opened.settimeout(PATIENCE)
        yield opened


@pytest.mark.ros
def test_the_foreign_robot_is_shown_where_it_drives(folder, domain_id, rflysim_host, window):
    """The robot is shown on its circle of 12 m around 300 m west, 50 m south of the map's origin.

    RflySim3D keeps it on the ground.
    """
    up = line_of("a-foreign-robot", "rfly up")
    robot = line_of("a-foreign-robot", "python")
    with (
        Program(up, "--host", rflysim_host, "--time-scale", "0") as nodes,
        Program(robot) as driver,
    ):
        shown: list[Any] = []
        deadline = time.monotonic() + PATIENCE
        while len(shown) < 10:
            assert time.monotonic() < deadline, nodes.output
            packet = decode(window.recv(65536))
            if "copterID" in packet.values and packet["copterID"] == 7:
                shown.append(packet)
        assert (driver.end(signal.SIGINT), nodes.end(signal.SIGINT)) == (0, 0), (
            driver.output + nodes.output
        )

    for packet in shown:
        north, east, _ = packet["PosE"]
        assert np.hypot(north + 50.0, east + 300.0) == pytest.approx(12.0, abs=0.01)
        assert (packet["vehicleType"], packet.keep_on_ground) == (50, True)
        heading = np.arctan2(
            north + 50.0, east + 300.0
        )  # of the radius, from east; the robot drives to its left
        assert np.cos(packet["AngEuler"][2] + heading) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.exhaustive
@pytest.mark.ros
def test_a_mission_is_cancelled_and_another_flown_to_its_end(folder, domain_id, rflysim_host):
    Path("missions").mkdir()
    origin = HeightMap.load("JacksboroFault").geo_origin
    hop = (MissionItem.takeoff((0.0, 0.0, -2.0)), MissionItem.land((0.0, 0.0, 0.0)))
    write_mission(Path("missions/hop.plan"), Mission(hop, origin))
    up = line_of("a-mission", "rfly up")
    up[up.index("--file-folders") + 1] = f"{folder}/examples/tutorials:{folder}/missions"
    client = line_of("a-mission", "python examples/tutorials/fly_mission.py")

    with Program(up, "--host", rflysim_host, "--time-scale", "0") as nodes:
        nodes.read_until(r"mission_node +\| ")
        with Program(line_of("a-mission", "rfly mission start")) as started:
            started.read_until("hawk: item 0 of 0 … 6")
            assert started.end(signal.SIGINT) == 1, started.output
        with Program(client) as ridge:
            ridge.read_until(r"item 0, \d+% ")
            assert ridge.end(signal.SIGINT) == 1, ridge.output
            assert "not done: " in ridge.output
        with Program([*client[:-1], f"{folder}/missions/hop.plan"]) as short:
            assert short.end() == 0, short.output
            assert "item 1, " in short.output
            assert "\ndone: " in short.output
        assert nodes.end(signal.SIGINT) == 0, nodes.output


@pytest.mark.slow
@pytest.mark.ros
def test_the_wedge_is_recorded_and_replayed(folder, domain_id, rflysim_host):
    """The recording holds all six vehicles in formation; its replay sends a window the same
    datagrams.
    """
    record = (
        shlex.join(line_of("a-fleet", "rfly record")).replace("--duration 20", "--count 60").split()
    )

    with Program(record, "--bind", rflysim_host) as recorder:
        recorder.read_until("20010")
        with Program(line_of("a-fleet", "rfly up"), "--host", rflysim_host) as nodes:
            assert recorder.end() == 0, recorder.output
            assert nodes.end(signal.SIGINT) == 0, nodes.output

    with RecordingReader("wedge.pcap") as recording:
        recorded = [datagram.payload for datagram in recording]
    ids = {
        int(each)
        for payload in recorded
        for each in np.atleast_1d(decode(payload)["copterID"])
        if each
    }

    assert ids == {501, 502, 503, 504, 505, 510}

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as window:
        window.bind((rflysim_host, 20010))
        window.settimeout(PATIENCE)
        with Program(
            line_of("a-fleet", "rfly replay"), "--host", rflysim_host, "--speed", "0"
        ) as replay:
            assert [window.recv(65536) for _ in recorded] == recorded
            assert replay.end() == 0, replay.output


@pytest.mark.exhaustive  # eight seconds of a core
@pytest.mark.slow
@pytest.mark.ros
def test_the_controllers_node_drives_and_takes_off_in_lock_step(folder, domain_id):
    from nav_msgs.msg import Odometry
    from node_harness import NodeProcess, Peer

    words = line_of("your-controller", ".venv/lib/rfly_suite/amphibious_sim_node")
    parameters = dict(word.split(":=") for word in words if ":=" in word) | {
        "real_time_factor": "0.0"
    }
    node = line_of("your-controller", "python examples/tutorials/land_air_node.py")
    with NodeProcess(Path(words[0]).name, domain_id, parameters) as simulator:
        peer = Peer(domain_id)
        try:
            truth = peer.receive(Odometry, "ground_truth/odom", 10)
            peer.spin_until(lambda: "stands on" in simulator.output)
            with Program(node) as controller:
                peer.spin_until(lambda: truth and truth[-1].pose.pose.position.z > 1.5)
                assert controller.end(signal.SIGINT) == 0, controller.output
        finally:
            peer.close()
        assert simulator.stop() == 0, simulator.output
    assert re.findall(r"\]: (\w+)", controller.output) == ["fly"]
    on_wheels = [m.pose.pose.position for m in truth if m.pose.pose.position.x < 7.5]
    assert max(position.z for position in on_wheels) - on_wheels[0].z < 0.03
    assert max(abs(position.y) for position in on_wheels) < 0.05


@pytest.mark.exhaustive
@pytest.mark.ros
def test_the_controllers_node_flies_by_estimates(folder, domain_id):
    from node_harness import NodeProcess, Peer

    page = "your-controller"
    level = {"lock_step": "true", "ground": "level", "real_time_factor": "0.0"}
    words = line_of(page, ".venv/lib/rfly_suite/state_estimator_node")
    node = next(words for words in commands(page) if words[-1].endswith("odometry/global"))
    with (
        NodeProcess("amphibious_sim_node", domain_id, level) as simulator,
        NodeProcess(Path(words[0]).name, domain_id, dict([words[-1].split(":=")])) as estimator,
    ):
        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: "stands on" in simulator.output)
            with Program(node) as controller:
                controller.read_until("stand")
                assert controller.end(signal.SIGINT) == 0, controller.output
        finally:
            peer.close()
        assert estimator.stop() == 0, estimator.output
        assert simulator.stop() == 0, simulator.output
    assert re.findall(r"\]: (\w+)", controller.output) == ["fly", "land", "stand"]
    assert "GPS refused" not in estimator.output


def test_every_example_is_shown_or_run_by_a_page():
    pages = (ROOT / "docs" / "tutorials").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    examples = {path.name for path in (ROOT / "examples" / "tutorials").iterdir() if path.is_file()}
    assert {name for name in examples if name not in text} == set()
