# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly drive` in a terminal of the test's own, and teleop_node, as a vehicle hears them."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios

import pytest
from node_harness import Rfly, run_rfly

pytestmark = pytest.mark.ros


class Terminal:
    """A program in a pseudo-terminal, 160 columns wide."""

    def __init__(self, *words, **environment):
        self.keyboard, self.screen = pty.openpty()
        self.before = termios.tcgetattr(self.screen)
        self.process = Rfly(
            *words,
            stdin=self.screen,
            stdout=self.screen,
            stderr=self.screen,
            env={**os.environ, "COLUMNS": "160", **environment},
        )
        self.output = ""

    def read(self):
        while select.select([self.keyboard], [], [], 0.0)[0]:
            self.output += os.read(self.keyboard, 65536).decode()
        return self.output

    def type(self, keys):
        os.write(self.keyboard, keys)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.keyboard)
        os.close(self.screen)


class Vehicle:
    """The topics that a vehicle's nodes publish and subscribe to."""

    def __init__(self, peer, namespace, stamped=True):
        from geometry_msgs.msg import Twist, TwistStamped
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import VehicleMode
        from sensor_msgs.msg import Range
        from std_msgs.msg import String

        from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS, STATE_OUT

        self.peer = peer
        self.velocities = peer.receive(
            TwistStamped if stamped else Twist, f"{namespace}/cmd_vel", COMMANDS
        )
        self.requests = peer.receive(String, f"{namespace}/cmd/mode", COMMANDS)
        self._mode = peer.node.create_publisher(VehicleMode, f"{namespace}/mode", LATCHED)
        self._odometry = peer.node.create_publisher(
            Odometry, f"{namespace}/odometry/filtered", STATE_OUT
        )
        self._height = peer.node.create_publisher(
            Range, f"{namespace}/height_above_ground", SENSORS
        )

    def tell(self, mode, speed=0.0, height=0.0):
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import VehicleMode
        from sensor_msgs.msg import Range

        self._mode.publish(VehicleMode(mode=mode))
        odometry = Odometry()
        odometry.twist.twist.linear.x = speed
        self._odometry.publish(odometry)
        self._height.publish(Range(range=height))

    def twist(self):
        last = self.velocities[-1]
        last = getattr(last, "twist", last)
        return last.linear.x, last.linear.y, last.linear.z, last.angular.z


@pytest.fixture
def terminal(domain_id):
    made = Terminal("drive", "car_1", "--drive-speed", "4", ROS_DOMAIN_ID=str(domain_id))
    yield made
    made.close()


def test_keys_drive_and_fly_a_vehicle(terminal, peer):
    """0.1 of 4 m/s a press of W; T asks for the take-off; in the air W is 0.1 of 3 m/s; at the end
    it stops.
    """
    vehicle = Vehicle(peer, "car_1")

    def until(ready):
        return peer.spin_until(lambda: terminal.read() is not None and ready())

    until(lambda: vehicle.velocities)
    until(lambda: "no mode received yet" in terminal.output)
    vehicle.tell("DRIVE", 1.25, 0.11)
    until(
        lambda: re.search(
            r"DRIVE \| speed 1\.25 m/s \| height 0\.11 m \| wanted \+0\.0 ahead", terminal.output
        )
    )
    terminal.type(b"ww\x1b[A")
    until(lambda: vehicle.twist() == pytest.approx((1.2, 0, 0, 0)))
    assert vehicle.velocities[-1].header.frame_id == "car_1/base_link"
    terminal.type(b"a")
    until(lambda: vehicle.twist() == pytest.approx((1.2, 0, 0, 1.2 * 0.1 * 0.6)))
    terminal.type(b"t")
    until(lambda: [m.data for m in vehicle.requests] == ["takeoff"])
    until(lambda: "DRIVE (takeoff?)" in terminal.output)
    vehicle.tell("TAKEOFF", 0.0, 0.3)
    until(lambda: vehicle.twist() == (0, 0, 0, 0))
    vehicle.tell("FLIGHT", 0.0, 3.0)
    until(lambda: "FLIGHT |" in terminal.output)
    terminal.type(b"wqrr")
    until(lambda: vehicle.twist() == pytest.approx((0.3, 0.3, 0.2, 0)))
    terminal.type(b"\x03")
    peer.spin_until(lambda: terminal.process.poll() is not None)
    assert terminal.process.returncode == 0
    until(lambda: vehicle.twist() == (0, 0, 0, 0))
    assert "the vehicle is flying: without commands it hovers, then lands" in terminal.read()
    assert "Traceback" not in terminal.output
    assert termios.tcgetattr(terminal.screen) == terminal.before, "keys are seen again"


def test_without_a_terminal_it_says_so():
    run = run_rfly("drive", stdin=subprocess.DEVNULL)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("rfly: stdin is no terminal")


def test_a_joystick_drives_by_way_of_the_node(domain_id, peer):
    from diagnostic_msgs.msg import DiagnosticArray
    from node_harness import NodeProcess, diagnostic
    from sensor_msgs.msg import Joy

    from rfly_common.ros.qos import STATE_OUT

    parameters = {
        "drive_speed": "5",
        "axis_forward": "1",
        "dead_zone": "0.0",
        "stamped_cmd_vel": "false",
    }
    with NodeProcess("teleop_node", domain_id, parameters, "-r", "__ns:=/car_2") as node:
        vehicle = Vehicle(peer, "car_2", stamped=False)
        said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        sticks = peer.publisher(Joy, "car_2/joy", STATE_OUT)
        peer.spin_until(
            lambda: (diagnostic(said, "joystick") or ("", ""))[1].startswith("no joy has come yet")
        )
        vehicle.tell("DRIVE")
        axes = [0.5, 0.5, 0.0, 0.0, 0.0]
        free = [0] * 8
        held = [0, 0, 0, 0, 0, 1, 0, 0]

        def push(buttons, ready):
            """Publish the stick again and again, as joy_node does."""

            def pushed():
                sticks.publish(Joy(axes=axes, buttons=buttons))
                peer.spin_for(0.03)
                return ready()

            peer.spin_until(pushed)

        peer.spin_until(lambda: peer.node.count_subscribers("/car_2/mode"))
        push(free, lambda: (diagnostic(said, "joystick") or ("", ""))[1] == "running")
        assert not vehicle.velocities
        push(held, lambda: vehicle.velocities and vehicle.twist()[0] == 2.5)
        assert vehicle.twist() == pytest.approx((2.5, 0, 0, 2.5 * 0.5 * 0.6))
        push([0, 0, 0, 1, 0, 1, 0, 0], lambda: vehicle.requests)
        assert [m.data for m in vehicle.requests] == ["takeoff"]
        push(free, lambda: vehicle.twist() == (0, 0, 0, 0))
        assert node.stop() == 0
