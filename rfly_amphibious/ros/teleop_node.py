"""teleop_node: teleoperation by sensor_msgs/Joy. A thin shell around JoyPilot."""

from __future__ import annotations

import dataclasses
import time

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import String

from rfly_amphibious.control.teleop import JoyPilot, JoystickLayout, TeleopLimits
from rfly_amphibious.ros.teleop_msgs import velocity_to_twist
from rfly_common.ros.diagnostics import OK, STALE, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS, LATCHED, SENSORS
from rfly_common.ros.run_loop import run

SILENCE_S = 2.0
_LIMITS = {
    "drive_speed": "fastest drive, m/s",
    "curvature": "sharpest bend that is driven, 1/m",
    "fly_speed": "fastest flight, m/s",
    "climb_speed": "fastest climb and descent, m/s",
    "yaw_rate": "fastest turn in flight, rad/s",
}
_WHAT = {
    "axis_forward": "axis that drives and flies forward",
    "axis_turn": "axis that steers and turns to the left",
    "axis_left": "axis that flies to the left",
    "axis_up": "axis that climbs",
    "button_enable": "button that is held while the axes count; -1: they always do",
    "button_arm": "button that arms",
    "button_disarm": "button that disarms",
    "button_takeoff": "button that takes off",
    "button_land": "button that lands",
    "button_abort": "button that aborts the flight",
}


class TeleopNode(Node):
    """Answers each message of `joy` with `cmd_vel`, while the enabling button is held, and `cmd/mode`."""

    def __init__(self) -> None:
        super().__init__("teleop_node")
        stamped = declare(self, "stamped_cmd_vel", True, "cmd_vel is a TwistStamped; false: a Twist")
        self._frame: str = declare(
            self, "vehicle_name", self.get_namespace().strip("/") or "amphibious", "prefix of the vehicle's frames"
        )
        defaults = dataclasses.asdict(TeleopLimits())
        limits = TeleopLimits(
            **{name: declare(self, name, defaults[name], text, low=0.001, high=100.0) for name, text in _LIMITS.items()}
        )
        layout = dataclasses.asdict(JoystickLayout())
        numbers = {name: declare(self, name, layout[name], text, low=-1, high=99) for name, text in _WHAT.items()}
        dead_zone = declare(
            self, "dead_zone", layout["dead_zone"], "of the axes, within which they count as 0", low=0.0, high=0.9
        )
        self._pilot = JoyPilot(limits, JoystickLayout(**numbers, dead_zone=dead_zone))
        self._stamped = stamped
        self._heard_at: float | None = None
        self._commanding = False
        self._diagnostics = Diagnostics(self, "joystick", "", self._say)
        self._velocity = publisher(self, TwistStamped if stamped else Twist, "cmd_vel", COMMANDS)
        self._requests = publisher(self, String, "cmd/mode", COMMANDS)
        subscription(self, String, "mode", self._take_mode, LATCHED)
        subscription(self, Joy, "joy", self._take_joy, SENSORS)
        self._say()

    def _take_mode(self, message: String) -> None:
        self._pilot.mode = message.data

    def _take_joy(self, message: Joy) -> None:
        self._heard_at = time.monotonic()
        velocity, words = self._pilot.update(message.axes, message.buttons)
        for word in words:
            self._requests.publish(String(data=word))
        self._commanding = velocity is not None
        if velocity is not None:
            now = self.get_clock().now().to_msg()
            self._velocity.publish(velocity_to_twist(velocity, self._stamped, now, self._frame))

    def _say(self) -> None:
        values = {"mode": self._pilot.mode, "commanding": self._commanding}
        if self._heard_at is None:
            self._diagnostics.set(STALE, "no joy has come yet: is joy_node running?", **values)
        elif time.monotonic() - self._heard_at > SILENCE_S:
            self._diagnostics.set(STALE, f"no joy for {time.monotonic() - self._heard_at:.0f} s", **values)
        else:
            self._diagnostics.set(OK, "running", **values)


def main() -> None:
    """Entry point of the executable `teleop_node`."""
    run(TeleopNode)
