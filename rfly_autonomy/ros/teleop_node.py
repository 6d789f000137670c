# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""teleop_node: teleoperation by sensor_msgs/Joy, a thin shell around JoyPilot."""

from __future__ import annotations

import math
import time
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node
from rfly_suite.msg import VehicleMode
from sensor_msgs.msg import Joy
from std_msgs.msg import String

from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_autonomy.control.axle_lift import AssistWords
from rfly_autonomy.control.teleop import JoyPilot, JoystickLayout, TeleopLimits, Velocity
from rfly_autonomy.ros.node_parameters import MotionCommandParameters
from rfly_common.ros.diagnostics import OK, STALE, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS

SILENCE_S = 2.0
"""Time without joy after which diagnostics report it, s."""


def velocity_to_twist(velocity: Velocity, stamped: bool, stamp: Any, vehicle: str) -> Any:
    """Return a velocity as cmd_vel, in base_link's axes; `vehicle` is the frame prefix or ""."""
    twist = Twist()
    twist.linear.x, twist.linear.y, twist.linear.z = map(float, velocity[:3])
    twist.angular.z = float(velocity.yaw_rate)
    if not stamped:
        return twist
    message = TwistStamped(twist=twist)
    message.header.stamp = stamp
    message.header.frame_id = f"{vehicle}/base_link" if vehicle else "base_link"
    return message


class TeleopNode(Node):
    """Node that answers `joy` with `cmd/mode` and, while enabled, `cmd_vel` and `cmd/assist`."""

    def __init__(self) -> None:
        super().__init__("teleop_node")
        stamped = declare_parameters(self, MotionCommandParameters).stamped_cmd_vel
        self._stamped = stamped
        self._frame = declare_vehicle_name(self)
        limits = declare_parameters(self, TeleopLimits)
        self._pilot = JoyPilot(limits, declare_parameters(self, JoystickLayout))
        self._heard_at: float | None = None
        self._commanding = False

        self._diagnostics = Diagnostics(self, "joystick", "", self._update_diagnostics)
        self._velocity = publisher(self, TwistStamped if stamped else Twist, "cmd_vel", COMMANDS)
        self._requests = publisher(self, String, "cmd/mode", COMMANDS)
        self._assist = publisher(self, String, "cmd/assist", COMMANDS)
        self._assist_words = AssistWords()

        subscription(self, VehicleMode, "mode", self._on_mode, LATCHED)
        subscription(self, Joy, "joy", self._on_joy, SENSORS)
        self._update_diagnostics()
        self.get_logger().info("waiting for joy")

    def _on_mode(self, message: VehicleMode) -> None:
        self._pilot.mode = message.mode

    def _on_joy(self, message: Joy) -> None:
        self._heard_at = time.monotonic()
        velocity, words = self._pilot.update(message.axes, message.buttons)
        for word in words:
            self._requests.publish(String(data=word))
        assist = self._assist_words.word(self._pilot.assist)
        if assist:
            self._assist.publish(String(data=assist))
        self._commanding = velocity is not None
        if velocity is not None:
            now = self.get_clock().now().to_msg()
            self._velocity.publish(velocity_to_twist(velocity, self._stamped, now, self._frame))

    def _update_diagnostics(self) -> None:
        values: dict[str, Any] = {"mode": self._pilot.mode, "commanding": self._commanding}
        silence = math.inf if self._heard_at is None else time.monotonic() - self._heard_at
        self._diagnostics.set_first(
            [
                (self._heard_at is None, STALE, "no joy has come yet: is joy_node running?"),
                (silence > SILENCE_S, STALE, f"no joy for {silence:.0f} s"),
                (True, OK, "running"),
            ],
            **values,
        )
