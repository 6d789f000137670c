# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""chassis_control_node: a thin shell around the chassis controller.

It uses sensors and estimates, never the truth. Its motion command is the newest of cmd/ackermann,
cmd_vel and cmd/pose, or with the parameter `joint_commands` that of ros2_control alone. It answers
each joint_states with a cmd/wheels of the same stamp. Stamps of joint commands are not read, as
they are those of ros2_control's clock: such a command counts from its arrival.
"""

from __future__ import annotations

import math
import time
from typing import Any

from ackermann_msgs.msg import AckermannDriveStamped
from rclpy.node import Node
from rfly_suite.msg import RotorCommand, VehicleMode, WheelCommand
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String

from rfly_amphibious.ros.command_msgs import wheel_command_to_msg
from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.chassis_controller import ChassisController
from rfly_autonomy.control.joint_chassis import JointChassisController, JointCommandReader
from rfly_autonomy.control.modes import DRIVEN
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.estimation.trust import Trust
from rfly_autonomy.ros.control_topics import ControlLoop, MotionCommands
from rfly_autonomy.ros.node_parameters import (
    ChassisControlParameters,
    ControlParameters,
    StuckParameters,
    TrustParameters,
)
from rfly_common.errors import CommandError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED
from rfly_common.ros.stamps import stamp_to_ns


class JointCommandTopics:
    """Commands of wheels and steering go to the chassis, those of the gimbal to `gimbal/cmd`."""

    def __init__(
        self,
        node: Node,
        diagnostics: Diagnostics,
        chassis: JointChassisController,
        description: str,
    ) -> None:
        """Subscribe, and publish the description, a URDF, unless it is empty."""
        self._diagnostics = diagnostics
        self._chassis = chassis
        self._read = JointCommandReader(chassis.params)
        self._gimbal = publisher(node, Float64, "gimbal/cmd", COMMANDS)

        self._description = publisher(node, String, "robot_description", LATCHED)
        if description:
            self._description.publish(String(data=description))
        subscription(node, JointState, "joint_commands", self._on_joint_commands, COMMANDS)

    def _on_joint_commands(self, message: JointState) -> None:
        try:
            command = self._read(message.name, message.position, message.velocity, message.effort)
        except CommandError as error:
            self._diagnostics.refuse_message("joint_commands", error)
            return

        self._chassis.set_joints(command)
        if not math.isnan(command.camera):
            self._gimbal.publish(Float64(data=command.camera))


MODE_SILENCE_S = 1.0
"""Wall time without a mode after which the mode is unknown, s."""


_NOT_ARMED = "joint_commands turn its wheels, but it is not armed: send arm on cmd/mode"


class ChassisControlNode(Node):
    """Node that publishes `cmd/wheels` from mode, motion commands, samples and estimates."""

    def __init__(self) -> None:
        super().__init__("chassis_control_node")
        name = declare_vehicle_name(self)
        control = declare_parameters(self, ControlParameters)
        params = VehicleParameters.load(control.vehicle or "scale")
        settings = declare_parameters(self, ChassisControlParameters)

        self._lock_step = control.lock_step
        self._guided = control.lock_step and control.guided
        limits = declare_parameters(self, TrustParameters).limits
        controller = JointChassisController if settings.joint_commands else ChassisController
        self._chassis = controller(
            params,
            command_timeout=settings.command_timeout,
            trust_limits=limits,
            stuck_limits=declare_parameters(self, StuckParameters).limits,
        )
        self._diagnostics = Diagnostics(self, "chassis", name, self._update_diagnostics)
        self._mode: Mode | None = None
        self._received_mode: Mode | None = None
        self._mode_at = 0.0
        self._no_power: str | None = None
        """Last published text about the battery; None before the first."""

        self._no_powers = publisher(self, String, "no_power", LATCHED)

        self._loop = ControlLoop(
            self,
            self._diagnostics,
            self._chassis,
            self._step,
            publisher(self, WheelCommand, "cmd/wheels", COMMANDS),
            params,
            sensors=("joint_states", "wheel_loads"),
            lock_step=control.lock_step,
            guided_by=("cmd/ackermann", "cmd/pose", "cmd/assist") if control.guided else (),
            answers=("cmd/rotors",) if self._guided else (),
            reset_text="the time went back: all is forgotten",
            before_tick=(lambda: None) if self._guided else self._use_mode,
        )

        self._commands: MotionCommands | None = None
        if isinstance(self._chassis, JointChassisController):
            self._joints = JointCommandTopics(
                self, self._diagnostics, self._chassis, settings.robot_description
            )
        else:
            self._commands = self._subscribe_commands(name)
        subscription(self, VehicleMode, "mode", self._on_mode, LATCHED)
        if self._guided:
            subscription(self, RotorCommand, "cmd/rotors", self._on_cmd_rotors, COMMANDS)
        self._update_diagnostics()
        self.get_logger().info(f"{name}: vehicle {params.name!r}, steered wheels: {params.steered}")

    # --- commands and mode

    def _subscribe_commands(self, name: str) -> MotionCommands:
        commands = MotionCommands(
            self,
            self._diagnostics,
            name,
            velocity=lambda velocity, yaw_rate: self._chassis.set_twist(velocity[0], yaw_rate),
            pose=lambda position, velocity, _yaw: self._chassis.set_target(position, velocity),
            loop=self._loop,
        )
        self._loop.subscribe(AckermannDriveStamped, "cmd/ackermann", self._on_cmd_ackermann)
        commands.subscribe_assist(self._chassis.set_assist)
        return commands

    def _on_cmd_ackermann(self, message: AckermannDriveStamped) -> None:
        if self._commands is not None:
            self._commands.hear("cmd/ackermann", message)
        drive = message.drive
        try:
            self._chassis.set_speed(drive.speed, drive.steering_angle, None, drive.acceleration)
        except CommandError as error:
            self._diagnostics.refuse_message("cmd/ackermann", error)

    def _on_mode(self, message: VehicleMode) -> None:
        try:
            self._received_mode = Mode(message.mode)
        except ValueError:
            self._received_mode = None
            self._diagnostics.refuse_message(
                "mode", f"{message.mode!r}, expected one of {', '.join(m.value for m in Mode)}"
            )
        self._mode_at = time.monotonic()
        if not self._lock_step:
            self._use_mode()

    def _on_cmd_rotors(self, message: RotorCommand) -> None:
        """Go on with the tick: flight_control_node has published its mode."""
        self._use_mode()
        self._loop.answered("cmd/rotors", stamp_to_ns(message.header.stamp))

    def _use_mode(self) -> None:
        """Use the last mode; in lock-step this happens when a tick begins.

        flight_control_node publishes the mode while this node answers the tick, and the answer must
        not depend on which of them is faster. With guidance_node in the lock-step this node answers
        last, by the mode of the same tick.
        """
        self._mode = self._received_mode

    # --- answers

    @property
    def _present_mode(self) -> Mode | None:
        """Mode in use; None if it is too old. In lock-step it never is, as every node waits."""
        if self._lock_step or time.monotonic() - self._mode_at <= MODE_SILENCE_S:
            return self._mode
        return None

    @property
    def _is_ordered(self) -> bool:
        """Whether ros2_control orders its wheels to turn."""
        chassis = self._chassis
        return isinstance(chassis, JointChassisController) and chassis.is_ordered

    def _step(self, estimate: Estimate | None, dt: float) -> WheelCommand:
        command = self._chassis.step(estimate, self._present_mode, dt)
        self._publish_power()
        return wheel_command_to_msg(command)

    def _publish_power(self) -> None:
        """Say when motors get no power, or some again: flight_control_node takes off nowhere."""
        text = self._chassis.wheel_watch.no_power
        if text != self._no_power:
            self._no_power = text
            self._no_powers.publish(String(data=text))

    def _update_diagnostics(self) -> None:
        mode = self._present_mode
        values: dict[str, Any] = {
            "mode": "" if mode is None else mode.value,
            "answers": self._loop.answers,
        }

        trust = self._chassis.trust
        steering = self._chassis.steering_watch.text
        wheels = "; ".join(self._chassis.wheel_watch.faults.values())
        uncertain = mode is Mode.DRIVE and trust.level >= Trust.STOP
        lost = mode is Mode.DRIVE and self._chassis.command_lost
        loss = self._commands.loss if self._commands is not None and mode in DRIVEN else ""
        self._diagnostics.set_first(
            [
                (mode is None, STALE, "no node publishes the mode: the brakes are on"),
                (self._loop.estimate is None, STALE, "no odometry/global: the brakes are on"),
                (uncertain, WARN, f"the estimate is {trust.text}: it brakes"),
                (steering, ERROR, f"{steering}: it stops"),
                (wheels, WARN, wheels),
                (lost, WARN, "the motion command is lost: it brakes"),
                (loss, WARN, loss),
                (mode is Mode.DRIVE and self._chassis.stuck.text, WARN, self._chassis.stuck.text),
                (mode is Mode.DISARMED and self._is_ordered, WARN, _NOT_ARMED),
                (True, OK, values["mode"]),
            ],
            **values,
        )
