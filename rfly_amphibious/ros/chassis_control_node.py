"""chassis_control_node: a thin shell around the chassis controller.

It hears sensors and estimates, never the truth. Its motion command is the newest of cmd/ackermann, cmd_vel and
cmd/pose; it answers each joint_states with a cmd/wheels of the same stamp.
"""

from __future__ import annotations

import time
from typing import Any

from ackermann_msgs.msg import AckermannDriveStamped
from rclpy.node import Node
from rfly_suite.msg import SimulationTick, WheelCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rfly_amphibious.control.chassis_controller import COMMAND_TIMEOUT, ChassisController
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.ros.control_topics import Estimates, MotionCommands, Ticks, declare_vehicle
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_common.errors import CommandError, SensorMessageError
from rfly_common.ros.diagnostics import OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare
from rfly_common.ros.qos import COMMANDS, LATCHED, sensor_qos
from rfly_common.ros.run_loop import run
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns

MODE_SILENCE_S = 1.0
"""wall time, after which nobody tells the mode any more"""
LONGEST_STEP = 0.1


class ChassisControlNode(Node):
    """`cmd/wheels` out; mode, motion commands, samples and estimates in."""

    def __init__(self) -> None:
        super().__init__("chassis_control_node")
        self._name: str = declare(
            self, "vehicle_name", self.get_namespace().strip("/") or "amphibious", "prefix of the vehicle's frames"
        )
        self._lock_step: bool = declare(
            self, "lock_step", False, "answer each tick of the simulation, which waits for it"
        )
        params = declare_vehicle(self)
        timeout = declare(
            self,
            "command_timeout",
            COMMAND_TIMEOUT,
            "s of silence, after which a motion command is lost: it brakes",
            low=0.05,
            high=3600.0,
        )
        self._chassis = ChassisController(params, command_timeout=timeout)
        self._joints = convert.JointReader(params)
        self._diagnostics = Diagnostics(self, "chassis", self._name, self._say)
        self._mode: Mode | None = None
        self._told_mode: Mode | None = None
        self._mode_at = 0.0
        self._last_ns = -1
        self._answer: WheelCommand | None = None
        self._answered = 0
        self._wheels = publisher(self, WheelCommand, "cmd/wheels", COMMANDS)
        self._ticks: Ticks | None = None
        if self._lock_step:
            watched = (SimulationTick.JOINTS, SimulationTick.WHEEL_LOADS)
            self._ticks = Ticks(self, watched, self._compute, self._send, self._begin_anew, self._obey_mode)
        qos = sensor_qos(self._lock_step)
        subscription(self, JointState, "joint_states", self._take_joints, qos)
        subscription(self, Float64MultiArray, "wheel_loads", self._take_loads, qos)
        heard = None if self._ticks is None else self._ticks.gate.answered
        self._estimates = Estimates(self, self._diagnostics, self._lock_step, heard)
        self._commands = MotionCommands(
            self, self._diagnostics, self._name, velocity=self._take_velocity, pose=self._take_pose
        )
        subscription(self, AckermannDriveStamped, "cmd/ackermann", self._take_ackermann, COMMANDS)
        subscription(self, String, "mode", self._take_mode, LATCHED)
        self._say()
        self.get_logger().info(f"{self._name}: vehicle {params.name!r}, steered wheels: {params.steered}")

    # --- what is asked

    def _take_ackermann(self, message: AckermannDriveStamped) -> None:
        drive = message.drive
        try:
            self._chassis.set_speed(drive.speed, drive.steering_angle, None, drive.acceleration)
        except CommandError as error:
            self._commands.refuse("cmd/ackermann", error)

    def _take_velocity(self, velocity: tuple[float, float, float], yaw_rate: float) -> None:
        self._chassis.set_twist(velocity[0], yaw_rate)

    def _take_pose(self, position: tuple[float, float, float], velocity: Any, yaw: float | None) -> None:
        self._chassis.set_target(position, velocity)

    def _take_mode(self, message: String) -> None:
        try:
            self._told_mode = Mode(message.data)
        except ValueError:
            self._told_mode = None
            self._commands.refuse("mode", f"{message.data!r}, expected one of {', '.join(m.value for m in Mode)}")
        self._mode_at = time.monotonic()
        if self._ticks is None:
            self._obey_mode()

    def _obey_mode(self) -> None:
        """In lock-step where a tick begins: flight_control_node tells the mode while this node answers the tick, and
        what it answers must not depend on who is faster.
        """
        self._mode = self._told_mode

    # --- what is sensed

    def _take_joints(self, message: JointState) -> None:
        stamp_ns = stamp_to_ns(message.header.stamp)
        if stamp_ns < self._last_ns - round(convert.WENT_BACK_S * 1e9):
            self._begin_anew()
        last = self._last_ns
        self._last_ns = max(last, stamp_ns)
        try:
            self._chassis.sense(SensorSamples(joints=self._joints(message)))
        except SensorMessageError as error:
            self._refuse("joint_states", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.JOINTS)
        elif last < stamp_ns:
            self._compute(stamp_ns, 0.0 if last < 0 else min((stamp_ns - last) * 1e-9, LONGEST_STEP))

    def _take_loads(self, message: Float64MultiArray) -> None:
        try:
            self._chassis.sense(SensorSamples(wheel_loads=convert.wheel_load_samples(message, self._chassis.time)))
        except SensorMessageError as error:
            self._refuse("wheel_loads", error)
        if self._ticks is not None:
            self._ticks.gate.heard(SimulationTick.WHEEL_LOADS)

    def _refuse(self, topic: str, why: object) -> None:
        self._diagnostics.count(f"refused_{topic}")
        self.get_logger().warning(f"{topic} refused: {why}", throttle_duration_sec=5.0)

    def _begin_anew(self) -> None:
        self.get_logger().warning("the time went back: all is forgotten")
        self._diagnostics.count("clock_jumps_back")
        self._chassis.reset()
        self._estimates.newest = None
        self._last_ns = -1

    # --- what is answered

    @property
    def _mode_now(self) -> Mode | None:
        """None where nobody tells it any more; in lock-step everybody waits for whoever is slow."""
        return self._mode if self._lock_step or time.monotonic() - self._mode_at <= MODE_SILENCE_S else None

    def _compute(self, stamp_ns: int, dt: float) -> None:
        command = self._chassis.step(self._estimates.newest, self._mode_now, dt)
        self._answer = convert.wheel_command_to_msg(command)
        self._answer.header.stamp = ns_to_stamp(stamp_ns)
        self._answered += 1
        self._send()

    def _send(self) -> None:
        if self._answer is not None:
            self._wheels.publish(self._answer)

    def _say(self) -> None:
        mode, chassis = self._mode_now, self._chassis
        values = {"mode": "" if mode is None else mode.value, "answers": self._answered}
        if self._commands.refused:
            values["refused_last"] = self._commands.refused
        if mode is None:
            self._diagnostics.set(STALE, "nobody tells the mode: the brakes are on", **values)
        elif self._estimates.newest is None:
            self._diagnostics.set(STALE, "no odometry/filtered: the brakes are on", **values)
        elif mode is Mode.DRIVE and chassis.command_lost:
            self._diagnostics.set(WARN, "the motion command is lost: it brakes", **values)
        else:
            self._diagnostics.set(OK, mode.value, **values)


def main() -> None:
    """Entry point of the executable `chassis_control_node`."""
    run(ChassisControlNode, often=True)
