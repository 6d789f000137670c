# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Keyboard teleoperation node of `rfly drive`: keys to commands, a status line back."""

from __future__ import annotations

import math
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.duration import Duration
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rfly_suite.msg import VehicleMode
from sensor_msgs.msg import Range
from std_msgs.msg import String

from rfly_autonomy.control.axle_lift import AssistWords
from rfly_autonomy.control.teleop import HELP, KeyPilot, KeyReader, TeleopLimits
from rfly_autonomy.ros.teleop_node import velocity_to_twist
from rfly_bringup.ros.command_client import check_namespace, command_session
from rfly_common.errors import ConfigError
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS, STATE_IN
from rfly_common.startup import stop_by_signal

PERIOD_S = 0.05
"""Period of commands, s; a vehicle without commands for 0.5 s brakes, or hovers and lands."""
STALE_S = 1.0
"""Age from which speed and height are no longer shown, s."""
FINAL_COMMAND_S = 0.5
"""Longest wait for the last command's acknowledgement, s."""


class KeyboardTeleop(Node):
    """A node that shows a vehicle's state and commands it by keys."""

    def __init__(self, namespace: str, limits: TeleopLimits, stamped: bool) -> None:
        super().__init__("rfly_drive", namespace=namespace or None)
        self.pilot = KeyPilot(limits)
        self._reader = KeyReader()
        self._speed = math.nan
        self._height = math.nan
        self._heard_at = {"speed": -math.inf, "height": -math.inf}
        self._requested_mode = ""
        self._frame_id = self.get_namespace().strip("/")

        self._velocity = publisher(self, TwistStamped if stamped else Twist, "cmd_vel", COMMANDS)
        self._stamped = stamped
        self._request = publisher(self, String, "cmd/mode", COMMANDS)
        self._assist = publisher(self, String, "cmd/assist", COMMANDS)
        self._assist_words = AssistWords()

        subscription(self, VehicleMode, "mode", self._on_mode, LATCHED)
        subscription(self, Odometry, "odometry/filtered", self._on_odometry, STATE_IN)
        subscription(self, Range, "height_above_ground", self._on_height_above_ground, SENSORS)

    def _on_mode(self, message: VehicleMode) -> None:
        if message.mode != self.pilot.mode:
            self._requested_mode = ""
        self.pilot.set_mode(message.mode)

    def _on_odometry(self, message: Odometry) -> None:
        v = message.twist.twist.linear
        self._speed = math.sqrt(v.x**2 + v.y**2 + v.z**2)
        self._heard_at["speed"] = time.monotonic()

    def _on_height_above_ground(self, message: Range) -> None:
        self._height = message.range
        self._heard_at["height"] = time.monotonic()

    def press(self, data: bytes) -> None:
        """Handle bytes read from the terminal."""
        for key in self._reader.keys(data):
            word = self.pilot.press(key)
            if word:
                self._request.publish(String(data=word))
                self._requested_mode = word

    def stop(self) -> None:
        """Command rest, and wait until the command has arrived."""
        self.command(at_rest=True)
        self._velocity.wait_for_all_acked(Duration(seconds=FINAL_COMMAND_S))

    def command(self, at_rest: bool = False) -> None:
        """Publish the velocity of the keys, or zero, and what the rotors do on the ground."""
        if at_rest:
            self.pilot.press(" ")
        assist = self._assist_words.word(self.pilot.assist)
        if assist:
            self._assist.publish(String(data=assist))
        now = self.get_clock().now().to_msg()
        self._velocity.publish(
            velocity_to_twist(self.pilot.velocity, self._stamped, now, self._frame_id)
        )

    @property
    def status(self) -> str:
        """Status line: mode, commanded velocity, speed and height."""
        velocity = self.pilot.velocity
        now = time.monotonic()
        speed = f"{self._speed:.2f} m/s" if now - self._heard_at["speed"] < STALE_S else "–"
        height = f"{self._height:.2f} m" if now - self._heard_at["height"] < STALE_S else "–"
        mode = self.pilot.mode or "no mode received yet"
        lift = f" | {self.pilot.assist.value}" if self.pilot.assist is not None else ""
        asked = f" ({self._requested_mode}?)" if self._requested_mode else ""

        return (
            f"{mode}{asked} | speed {speed} | height {height} | "
            f"wanted {velocity.forward:+.1f} ahead "
            f"{velocity.left:+.1f} left {velocity.up:+.1f} up m/s, "
            f"{math.degrees(velocity.yaw_rate):+.0f}°/s{lift}"
        )


def drive(namespace: str, limits: TeleopLimits, stamped: bool) -> None:
    """Run until Ctrl-C, SIGTERM, SIGHUP, or the terminal's end.

    Raise ConfigError if stdin is no terminal, and for a namespace that is not valid.
    """
    if not sys.stdin.isatty():
        raise ConfigError(
            "stdin is no terminal: rfly drive reads keys; for a joystick use teleop_node"
        )
    check_namespace("VEHICLE", namespace)
    make_node = lambda: KeyboardTeleop(namespace, limits, stamped)  # noqa: E731
    with command_session(make_node, SingleThreadedExecutor) as (node, executor):
        print(f"{node.get_namespace()}:\n{HELP}")
        with _raw_keys(), stop_by_signal() as stopped:
            _loop(node, executor, stopped)
        node.stop()
        if node.pilot.mode in ("TAKEOFF", "FLIGHT", "ROLLING_TAKEOFF", "ROLLING_LAND"):
            print("the vehicle is flying: without commands it hovers, then lands")


def _loop(node: KeyboardTeleop, executor: Executor, stopped: Callable[[], bool]) -> None:
    """Read keys, publish commands and show the status line until `stopped` or Ctrl-C."""
    due = 0.0
    shown = ""
    while not stopped():
        ready, _, _ = select.select([sys.stdin], [], [], 0.01)
        if ready:
            data = os.read(sys.stdin.fileno(), 1024)
            if not data or b"\x03" in data or b"\x04" in data:
                break
            node.press(data)

        executor.spin_once(timeout_sec=0.0)

        if time.monotonic() >= due:
            due = time.monotonic() + PERIOD_S
            node.command()
            if node.status != shown:
                shown = node.status
                width = shutil.get_terminal_size().columns - 1
                print(f"\r\x1b[K{shown[:width]}", end="", flush=True)
    print()


@contextmanager
def _raw_keys() -> Iterator[None]:
    """Read keys one by one without echo, Ctrl-C among them; then restore the terminal."""
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        attributes = termios.tcgetattr(sys.stdin)
        attributes[3] &= ~termios.ISIG
        termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
