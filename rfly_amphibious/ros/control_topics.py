"""Topics shared by flight_control_node and chassis_control_node: setpoints, estimates, sensor samples, ticks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import SimulationTick

from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.guidance.target_motion import TargetMotion
from rfly_amphibious.ros.amphibious_msgs import is_unknown, odometry_to_estimate, time_of
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import CommandError, ConfigError, RflyError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS, STATE_IN, STATE_OUT, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns
from rfly_terrain.ros.plan_msgs import pose_to_plan_pose

GAINS = {
    "attitude_frequency": "of the attitude loop in roll and pitch, rad/s",
    "attitude_damping": "of the attitude loop, 1: critical",
    "position_gain": "m/s for each metre beside the place, 1/s",
    "velocity_gain": "m/s² for each m/s beside the velocity, 1/s",
    "max_tilt": "rad",
}
REFUSED_SHOWN_S = 5.0


def declare_vehicle(node: Node, gains: Sequence[str] = (), default: str = "scale") -> VehicleParameters:
    """The parameter `vehicle`, and one for each of these gains."""
    params = VehicleParameters.load(
        declare(node, "vehicle", default, "parameters: full, scale, scale_quad or a YAML file") or default
    )
    chosen: dict[str, Any] = {
        name: declare(node, name, float(getattr(params, name)), GAINS[name], low=1e-3, high=100.0) for name in gains
    }
    try:
        return params.replace(**chosen)
    except ConfigError as error:
        raise ConfigError(f"parameters {', '.join(gains)}: {error}") from None


class MotionCommands:
    """`cmd_vel` and `cmd/pose`, decoded; what can't be used is refused, counted and told."""

    def __init__(
        self,
        node: Node,
        diagnostics: Diagnostics,
        vehicle: str,
        *,
        velocity: Callable[[tuple[float, float, float], float], None],
        pose: Callable[[tuple[float, float, float], Any, float | None], None],
    ) -> None:
        """`velocity` is told forward, left, up (m/s) and yaw rate; `pose` position, velocity (3,), world, and yaw."""
        self._node, self._diagnostics = node, diagnostics
        self._velocity, self._pose = velocity, pose
        stamped = declare(node, "stamped_cmd_vel", True, "cmd_vel is a TwistStamped; false: a Twist")
        self._bases = ("", "base_link", f"{vehicle}/base_link")
        self._frames = Frames(node, listen=False)
        self._motion = TargetMotion()
        self.refused = ""
        """what was refused last"""
        if stamped:
            subscription(node, TwistStamped, "cmd_vel", self._take_stamped, COMMANDS)
        else:
            subscription(node, Twist, "cmd_vel", self._take_twist, COMMANDS)
        subscription(node, PoseStamped, "cmd/pose", self._take_pose, COMMANDS)

    def refuse(self, topic: str, why: object) -> None:
        """Count and tell it."""
        self.refused = " ".join(f"{topic} refused: {why}".split())
        self._diagnostics.count(f"refused_{topic.replace('/', '_')}")
        self._node.get_logger().warning(self.refused, throttle_duration_sec=1.0)

    def _take_stamped(self, message: TwistStamped) -> None:
        frame = message.header.frame_id
        if frame not in self._bases:
            self.refuse(
                "cmd_vel", f"header.frame_id is {frame!r}, expected {self._bases[-1]}: it is in the body's axes"
            )
            return
        self._take_twist(message.twist)

    def _take_twist(self, message: Twist) -> None:
        linear = message.linear
        try:
            self._velocity((linear.x, linear.y, linear.z), message.angular.z)
        except CommandError as error:
            self.refuse("cmd_vel", error)

    def _take_pose(self, message: PoseStamped) -> None:
        frame_id = message.header.frame_id or "map"
        try:
            if self._frames.axes(frame_id) is None:
                self._frames.listen()
            frame = self._frames.resolve(frame_id, stamp_to_ns(message.header.stamp))
            wanted = pose_to_plan_pose(message.pose, frame, "pose")
            place = (wanted.x, wanted.y, wanted.z or 0.0)
            time = time_of(message) or self._node.get_clock().now().nanoseconds * 1e-9
            self._pose(place, self._motion.update(np.array(place), time), wanted.heading)
        except RflyError as error:
            self.refuse("cmd/pose", error)


class Estimates:
    """`odometry/filtered`: the newest estimate, and for lock-step when it has come to a tick."""

    def __init__(
        self, node: Node, diagnostics: Diagnostics, lock_step: bool, heard: Callable[[int], None] | None = None
    ) -> None:
        self._node, self._diagnostics, self._heard = node, diagnostics, heard
        self.newest: Estimate | None = None
        subscription(node, Odometry, "odometry/filtered", self._take, sensor_qos(True) if lock_step else STATE_IN)

    def _take(self, message: Odometry) -> None:
        try:
            if not is_unknown(message):
                self.newest = odometry_to_estimate(message)
        except RflyError as error:
            self._diagnostics.count("refused_odometry")
            self._node.get_logger().warning(f"odometry/filtered: {error}", throttle_duration_sec=5.0)
        if self._heard is not None:
            self._heard(stamp_to_ns(message.header.stamp))


class Ticks:
    """Lock-step: one answer to each tick, once its samples and the estimate are there; the same answer again for a
    tick that is told again.

    The first tick of a simulation that begins anew says so before any sample does.
    """

    def __init__(
        self,
        node: Node,
        watched: Sequence[int],
        compute: Callable[[int, float], None],
        again: Callable[[], None],
        anew: Callable[[], None],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        """`compute(stamp_ns, dt)` makes and sends the answer, `again()` sends the last one once more, `anew()` forgets
        all because the time went back, `begun()` is told that a tick has come which is to be answered.
        """
        self._compute, self._again, self._anew, self._begun = compute, again, anew, begun
        self._last_ns: int | None = None
        self._told_ns = -1
        self.gate = TickGate(watched, self._open, answers=True)
        subscription(node, SimulationTick, "simulation_tick", self._take, STATE_OUT)

    def _take(self, message: SimulationTick) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp)
        if stamp_ns < self._told_ns:
            self._last_ns = None
            self._anew()
        if stamp_ns != self._told_ns:
            self._begun()
        self._told_ns = stamp_ns
        self.gate.tick(stamp_ns, message.count)

    def unanswered(self) -> None:
        """No answer could be made to the last tick: it is tried again when the tick is told again."""
        self._last_ns = None

    def _open(self, stamp_ns: int) -> None:
        last = self._last_ns
        if stamp_ns == last:
            self._again()
            return
        self._last_ns = stamp_ns
        self._compute(stamp_ns, 0.0 if last is None else max(stamp_ns - last, 0) * 1e-9)
