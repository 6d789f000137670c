# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly up amphibious` as a user runs it: processes, real DDS, and a vehicle that sets out by
itself.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess

import numpy as np
import pytest
from marks import exhaustively
from node_harness import PATIENCE, Rfly, run_rfly

from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER
from rfly_bringup.runner import up

pytestmark = pytest.mark.ros

RADIUS = 0.11
"""Radius of the wheels, m."""


def up_amphibious(*words: str) -> Rfly:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return Rfly("up", "amphibious", *words, **streams)


@pytest.mark.slow
@pytest.mark.parametrize("flies", [False, exhaustively(True)])
def test_a_vehicle_sets_out_by_itself_and_the_bridge_shows_it(
    domain_id, rflysim_ports, tmp_path, flies
) -> None:
    from diagnostic_msgs.msg import DiagnosticArray
    from nav_msgs.msg import Odometry
    from node_harness import Peer, diagnostic
    from rfly_suite.msg import VehicleMode, VehicleStateArray

    from rfly_common.ros.qos import FLEET_IN, LATCHED, SENSORS, STATE_OUT
    from rfly_common.ros.stamps import stamp_to_ns

    scenario = tmp_path / "hop.yaml"
    scenario.write_text(
        "version: 1\nvehicle: scale\nend: {when: mission_done, time_s: 90}\nmission: {items: "
        "[{mode: waypoint, position_m: [2, 0]}, {mode: takeoff, height_m: 2}]}\n",
        encoding="utf-8",
    )
    in_lock_step = ("--lock-step", "--real-time-factor", "0")  # for a machine of any speed
    process = up_amphibious("--scenario", str(scenario), "--seed", "2", *in_lock_step)
    peer = Peer(domain_id)
    try:
        truth = peer.receive(Odometry, "/amphibious_1/ground_truth/odom", SENSORS)
        mode = peer.receive(VehicleMode, "/amphibious_1/mode", LATCHED)
        shown = peer.receive(VehicleStateArray, "/vehicle_states", FLEET_IN)
        said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)

        def wheels_roll_as_shown() -> bool:
            """Return whether only the wheels turn, as fast as the vehicle drives then."""
            if not truth or not shown or len(shown[-1].motor_speed) == 0:
                return False
            times = [stamp_to_ns(message.header.stamp) for message in truth]
            forward = [message.twist.twist.linear.x for message in truth]
            wheel = np.interp(stamp_to_ns(shown[-1].header.stamp), times, forward) / RADIUS
            rotors, wheels = np.split(np.array(shown[-1].motor_speed), [6])
            rolls = wheels[:2] == pytest.approx([wheel, wheel], rel=0.3)
            return bool(wheel > 1.0 and rolls and max(rotors) < 0.1 * wheel)

        # the waypoint lies 2 m to the east
        peer.spin_until(wheels_roll_as_shown)
        peer.spin_until(lambda: truth[-1].pose.pose.position.x > 0.5)
        assert abs(truth[-1].pose.pose.position.y) < 1.5
        assert list(shown[-1].id) == [601]
        peer.spin_until(lambda: diagnostic(said, "bridge"))
        assert int(diagnostic(said, "bridge")[2]["fleet_vehicles"]) == 1

        last = "FLIGHT" if flies else "DRIVE"
        peer.spin_until(lambda: mode and mode[-1].mode == last)
        if flies:
            peer.spin_until(lambda: truth[-1].pose.pose.position.z > 0.5)
            assert "DRIVE" in [message.mode for message in mode]

        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        assert "Traceback" not in output
        for node in MOTION_CONTROLLER:
            assert re.search(rf"amphibious_1/rfly_nodes +\| .*\[amphibious_1\.{node}\]", output)
    finally:
        peer.close()
        if process.poll() is None:
            process.kill()
            process.wait()


class ClimbingAutopilot:
    """An autopilot like PX4 that answers each HIL_SENSOR with the same rotor speeds."""

    def __init__(self, port: int) -> None:
        from pymavlink.dialects.v20 import common

        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.settimeout(PATIENCE)
        self._mav = common.MAVLink(None, 1, 1)
        self.heights: list[float] = []
        self.kinds: set[str] = set()

    def answer(self, time_usec: int) -> None:
        """Command all rotors at their largest speed, armed and in lock-step."""
        controls = [1.0] * 4 + [0.0] * 12
        message = self._mav.hil_actuator_controls_encode(time_usec, controls, 128, 1)
        self._socket.sendall(message.pack(self._mav))

    def climb(self, height: float) -> None:
        """Fly until the vehicle is this much higher than at first, m."""
        self.answer(0)
        while not self.heights or self.heights[-1] < self.heights[0] + height:
            for message in self._mav.parse_buffer(self._socket.recv(4096)) or []:
                self.kinds.add(message.get_type())
                if message.get_type() == "HIL_STATE_QUATERNION":
                    self.heights.append(message.alt / 1000.0)
                elif message.get_type() == "HIL_SENSOR":
                    self.answer(message.time_usec)

    def close(self) -> None:
        self._socket.close()


@pytest.mark.slow
@pytest.mark.needs("pymavlink")
@pytest.mark.usefixtures("rflysim_ports")
def test_an_autopilot_like_px4_flies_by_one_option(domain_id) -> None:
    words = ["--scenario", "hop", "--autopilot", "px4", "--real-time-factor", "0"]
    process = up_amphibious(*words)
    autopilot = None
    try:
        lines: list[str] = []
        while not lines or "listening for an autopilot on tcp 127.0.0.1:4560" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], "".join(lines)
        start = "    (set -a; . ./amphibious_1.px4; exec build/px4_sitl_default/bin/px4 -i 0)\n"
        assert start in lines
        assert not any("state_estimator_node" in line for line in lines)

        # thrust twice the weight: 2 m in 0.7 s of simulated time
        autopilot = ClimbingAutopilot(4560)
        autopilot.climb(2.0)
        told = {"HEARTBEAT", "HIL_GPS", "HIL_SENSOR", "HIL_STATE_QUATERNION"}
        assert told <= autopilot.kinds

        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        assert "Traceback" not in output
    finally:
        if autopilot is not None:
            autopilot.close()
        if process.poll() is None:
            process.kill()
            process.wait()


def test_mistakes_are_one_line() -> None:
    run = run_rfly("up", "amphibious", "--count", "many")
    assert (run.returncode, run.stderr) == (
        2,
        "rfly: count: 'many', expected a whole number from 1 to 20\n",
    )
    run = run_rfly("up", "--map", "JacksboroFault", "amphibious")
    assert run.returncode == 2
    assert "--map: expected after 'amphibious'" in run.stderr


@pytest.mark.parametrize(
    ("start", "compiled"),
    [
        (lambda: up.up_amphibious({}), {"amphibious_sim_node", "state_estimator_node"}),
        (lambda: up.up({"single_process": "true"}), {"terrain_node", "trajectory_node"}),
    ],
)
def test_kernels_are_compiled_before_nodes_start_by_whatever_name_they_have(
    monkeypatch, start, compiled
) -> None:
    """Nodes with a cold cache don't compile by themselves.

    Each would compile the same as the others at the same time, and without any message.
    """
    asked: set[str] = set()

    class CompiledError(Exception):
        pass

    def compile_only(executables, avoidance):
        asked.update(executables)
        raise CompiledError

    monkeypatch.setattr(up, "compile_for_nodes", compile_only)
    monkeypatch.setattr(up.Supervisor, "start", lambda _: pytest.fail("it has started nodes"))
    with pytest.raises(CompiledError):
        start()
    assert compiled <= asked
