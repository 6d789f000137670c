# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors that fall silent in flight: all nodes of the loop, on the clock and in lock-step."""

from __future__ import annotations

import math
from contextlib import ExitStack

import pytest
from amphibious_cases import slower_imu

from rfly_bringup.nodes.entry_points import MOTION_CONTROLLER, SEVERAL

pytestmark = [pytest.mark.ros, pytest.mark.slow, pytest.mark.timeout(700)]

PATIENCE = 300.0
"""s for half a minute of simulated time, on a machine that may be busy."""

HOP = """version: 1
vehicle: scale
mission: {{items: [{{mode: takeoff, height_m: {height}}}, {{mode: land}}]}}
events: [{{time_s: {time_s}, sensor_off: {sensor}}}]
end: {{when: mission_done, time_s: 90}}
"""


class Loop:
    """The nodes of one vehicle that carries out a hop, and what they say of it."""

    def __init__(self, stack, domain_id, folder, sensor, lock_step, height=2, time_s=5.5):
        from nav_msgs.msg import Odometry
        from node_harness import NodeProcess, Peer
        from rfly_suite.msg import VehicleMode
        from std_msgs.msg import Bool, String

        from rfly_common.ros.qos import COMMANDS, LATCHED, sensor_qos

        scenario = folder / "hop.yaml"
        scenario.write_text(
            HOP.format(sensor=sensor, height=height, time_s=time_s), encoding="utf-8"
        )
        of_all = {
            "lock_step": str(lock_step).lower(),
            "sensors": slower_imu(folder),
            "scenario": str(scenario),
        }
        controller = {**of_all, "guided": str(lock_step).lower(), "autostart": "true"}
        simulation = {
            **of_all,
            "real_time_factor": "0.0" if lock_step else "0.5",
            # a busy machine is no reason for the fail-safe, nor for a flight by old commands
            "command_timeout": "0.2",
            "command_patience": "60.0",
        }
        self.peer = peer = Peer(domain_id)
        stack.callback(peer.close)
        self.truth = peer.receive(Odometry, "/duck/ground_truth/odom", sensor_qos(lock_step))
        self.modes = peer.receive(VehicleMode, "/duck/mode", LATCHED)
        self.failsafe = peer.receive(Bool, "/duck/failsafe", LATCHED)
        self.nodes = [
            stack.enter_context(
                NodeProcess(name, domain_id, parameters, "-r", "__ns:=/duck", nodes=inside)
            )
            for name, parameters, inside in (
                (SEVERAL, controller, MOTION_CONTROLLER),
                ("amphibious_sim_node", simulation, ()),
            )
        ]
        self.words = peer.publisher(String, "/duck/cmd/mode", COMMANDS)

    @property
    def words_of_mode(self):
        """The modes, without repetitions."""
        words = [message.mode for message in self.modes]
        return [word for k, word in enumerate(words) if k == 0 or words[k - 1] != word]

    @property
    def height(self):
        return self.truth[-1].pose.pose.position.z

    def touch_down(self):
        """Return the velocity, m/s, at the last time before the wheels touch the ground."""
        heights = [message.pose.pose.position.z for message in self.truth]
        last = max(k for k, height in enumerate(heights) if height > 0.25)
        return self.truth[last].twist.twist.linear

    def until(self, ready):
        try:
            self.peer.spin_until(ready, PATIENCE)
        except AssertionError:
            output = "\n".join(node.output for node in self.nodes)
            raise AssertionError(f"{self.words_of_mode}\n{output}") from None


@pytest.mark.exhaustive
@pytest.mark.parametrize("lock_step", [True, False])
def test_without_the_imu_the_flight_controller_brings_it_down(domain_id, tmp_path, lock_step):
    with ExitStack() as stack:
        loop = Loop(stack, domain_id, tmp_path, "imu", lock_step)
        loop.until(lambda: "ABORT" in loop.words_of_mode)
        loop.until(lambda: loop.height < 0.25)
        words = loop.words_of_mode
        assert words[0] != "ABORT"
        before = words[words.index("ABORT") - 1]  # those before may be missed
        # in real time, a busy machine's vehicle may still climb when the sensor falls silent
        assert before == "FLIGHT" or (before == "TAKEOFF" and not lock_step)
        assert not any(message.data for message in loop.failsafe)

        # encoders, magnetometer and GPS show estimator and flight law how it moves
        speed = loop.touch_down()
        assert -speed.z < 1.2
        assert math.hypot(speed.x, speed.y) < 1.0
        assert "ABORT: the IMU is silent" in loop.nodes[0].output


@pytest.mark.exhaustive
def test_it_lands_and_disarms_without_wheel_loads(domain_id, tmp_path):
    from std_msgs.msg import String

    with ExitStack() as stack:
        loop = Loop(stack, domain_id, tmp_path, "wheel_loads", True, height=1, time_s=4.0)
        loop.until(lambda: loop.words_of_mode[-2:] == ["SPOOL_DOWN", "DRIVE"])
        loop.words.publish(String(data="disarm"))
        loop.until(lambda: loop.words_of_mode[-1] == "DISARMED")
        assert not any(message.data for message in loop.failsafe)
