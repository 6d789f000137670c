# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ground stations as processes of their own: what they ask on connect, and what they then fly."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from node_harness import PATIENCE

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]

ANSWER_S = PATIENCE
"""Longest wait for a line of MAVProxy, s; its own time limits are shorter."""
GAVE_UP = "timed out"
TESTS = Path(__file__).parents[2]
MODES = {
    0x02040000: [8, ""],
    0x03040000: [0, "Hold"],
    0x04040000: [6, ""],
    0x05040000: [5, ""],
    0x06040000: [7, ""],
    0x00060000: [0, "Offboard"],
}
"""MAV_STANDARD_MODE and name by PX4's number: take-off, hold, mission, return, land, offboard."""
CAPABILITIES = {
    "PARAM_ENCODE_BYTEWISE",
    "MISSION_INT",
    "COMMAND_INT",
    "FTP",
    "MAVLINK2",
    "MISSION_FENCE",
    "MISSION_RALLY",
}
"""Services without which a station leaves out dialogs, or writes parameters wrongly."""


@pytest.fixture
def start(domain_id, peer):
    """Return a function that starts hawk's nodes, and returns the port that they send to."""
    from mavlink_fleet import level_world
    from node_harness import NodeProcess

    with ExitStack() as stack:
        stack.enter_context(level_world(peer))

        def begin():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            both = {"vehicles": "[hawk]", "use_sim_time": "true"}
            mavlink = {**both, "port": "0", "targets": f"['127.0.0.1:{port}']"}
            for name, parameters in (("mission_node", both), ("mavlink_node", mavlink)):
                stack.enter_context(NodeProcess(name, domain_id, parameters))
            return port

        yield begin


def run(peer, *command):
    """Return what a client has printed at its end as JSON; it has to end well."""
    client = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        peer.spin_until(lambda: client.poll() is not None)
    finally:
        client.kill()
        output = client.communicate()[0]
    assert client.returncode == 0, output
    return json.loads(next(line for line in output.splitlines() if line.startswith("{")))


@pytest.mark.slow
def test_a_station_that_connects_as_qgroundcontrol_is_answered_and_flies(start, peer):
    from pymavlink.dialects.v20 import common as d

    seen = run(peer, TESTS / "ground_station.py", start(), 1)

    # the start: no dialog would be shown, and no answer was missed
    assert seen["warnings"] == []
    promised = (getattr(d, f"MAV_PROTOCOL_CAPABILITY_{name}") for name in CAPABILITIES)
    assert all(seen["capabilities"] & bit for bit in promised)
    assert seen["protocol"] == 200
    assert {int(number): mode for number, mode in seen["modes"].items()} == MODES
    assert seen["number_modes"] == len(MODES)

    # the metadata describe exactly the parameters that are there
    assert all(len(set(crcs)) == 1 for crcs in seen["crcs"])
    assert seen["param_count"] == len(seen["parameters"])
    assert seen["described"].keys() == seen["parameters"].keys()
    for name, about in seen["described"].items():
        value = seen["parameters"][name]
        assert about["shortDesc"], name
        assert about.get("min", value) <= value <= about.get("max", value), name
        assert about["default"] == pytest.approx(value), name

    # missions, fences and rally points
    assert seen["plans"] == [0, 0, 0]
    assert seen["uploads"] == ["MAV_MISSION_ACCEPTED"] * 3
    assert seen["equal"] == [True] * 3

    # the flight
    accepted = "MAV_RESULT_ACCEPTED"
    assert [seen[each] for each in ("takeoff", "arm", "altitude", "land")] == [accepted] * 4
    assert seen["goto"] == 0
    assert seen["height"] == pytest.approx(25.0, abs=0.2)
    assert seen["landed"] == pytest.approx([30.0, 0.0], abs=0.5)
    severities = {severity for severity, _ in seen["texts"]}
    assert severities <= {d.MAV_SEVERITY_INFO}, seen["texts"]


class MavProxy:
    """MAVProxy as a user runs it: commands go in, and what it prints comes out."""

    def __init__(self, peer, port, folder):
        self._peer = peer
        self._lines = []
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "MAVProxy.mavproxy", f"--master=udpin:127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "TERM": "dumb"},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.append(line)

    @property
    def output(self):
        return "".join(self._lines)

    def until(self, text):
        """Wait for a text."""
        try:
            self._peer.spin_until(lambda: text in self.output, ANSWER_S)
        except AssertionError:
            raise AssertionError(self.output) from None

    def tell(self, command):
        """Give a command that is not answered."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def say(self, command, answer):
        """Give a command, and return what is printed up to its answer.

        It is given again where MAVProxy's own clock, which a busy machine beats, gives up.
        """
        before = len(self.output)
        told = 0

        def is_answered():
            nonlocal told
            if self.output[before:].count(GAVE_UP) >= told:
                self.tell(command)
                told += 1
            return answer in self.output[before:]

        try:
            self._peer.spin_until(is_answered, ANSWER_S)
        except AssertionError:
            raise AssertionError(f"{command}: no {answer!r} in {self.output[before:]}") from None
        return self.output[before:]

    def stop(self):
        self.process.kill()
        self.process.wait()


MISSION = """QGC WPL 110
0\t1\t3\t22\t0\t0\t0\t0\t47.0\t8.0\t8\t1
1\t0\t3\t16\t0\t2\t0\t0\t47.0002\t8.0\t8\t1
2\t0\t3\t16\t0\t2\t0\t0\t47.0002\t8.0002\t10\t1
3\t0\t3\t21\t0\t0\t0\t0\t47.0002\t8.0002\t0\t1
"""
"""Take-off, 22 m to the north, 15 m to the east, landing."""


def rows_of(text):
    """Return the rows of a file of way-points as numbers, without the marks of the current row."""
    rows = [[float(number) for number in line.split()] for line in text.splitlines()[1:]]
    return [[row[0], *row[2:]] for row in rows]


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.needs("MAVProxy")
def test_mavproxy_reads_writes_and_flies(start, peer, tmp_path):
    from geometry_msgs.msg import PoseStamped

    from rfly_common.ros.qos import STATE_IN

    poses = peer.receive(PoseStamped, "/hawk/pose", STATE_IN)
    proxy = MavProxy(peer, start(), tmp_path)
    try:
        # on connect
        proxy.until("Received ")

        # parameters by name, and files
        assert "10.0" in proxy.say("param show MIS_TAKEOFF_ALT", "MIS_TAKEOFF_ALT")
        proxy.tell("param set MIS_TAKEOFF_ALT 6")
        peer.spin_until(lambda: "6.0" in proxy.say("param show MIS_TAKEOFF_ALT", "MIS_TAKEOFF_ALT"))
        proxy.say("ftp list /", "metadata")
        proxy.say("ftp get /metadata/general.json", "Wrote ")
        general = tmp_path / "general.json"
        peer.spin_until(lambda: general.read_text().endswith("}"))  # it is flushed later
        assert json.loads(general.read_text())["vendorName"] == "rfly_suite"

        # the mission goes up and comes down
        (tmp_path / "up.txt").write_text(MISSION)
        proxy.say("wp load up.txt", "Sent all 4 waypoints")
        proxy.say("wp list", "Saved 4 waypoints")
        proxy.say("wp save down.txt", "Saved 4 waypoints")
        down = rows_of((tmp_path / "down.txt").read_text())
        assert [row[2] for row in down] == [22, 16, 16, 21]
        for got, wanted in zip(down, rows_of(MISSION), strict=True):
            assert got[7:10] == pytest.approx(wanted[7:10], abs=1e-5)

        # take off, fly the mission, land
        proxy.until("GPS lock")
        proxy.say("arm throttle", "ARMED")
        proxy.say("long DO_SET_MODE 1 4 2", "DO_SET_MODE: ACCEPTED")
        peer.spin_until(lambda: poses[-1].pose.position.z > 5.5)
        proxy.say("long MISSION_START 0 0", "MISSION_START: ACCEPTED")
        peer.spin_until(lambda: poses[-1].pose.position.y > 20.0)
        proxy.until("DISARMED")
        end = poses[-1].pose.position
        assert (end.x, end.y, end.z) == pytest.approx((15.21, 22.23, 0.0), abs=0.5)
        for refusal in ("UNSUPPORTED", "DENIED", "fence breach", "Traceback"):
            assert refusal not in proxy.output
    finally:
        proxy.stop()
