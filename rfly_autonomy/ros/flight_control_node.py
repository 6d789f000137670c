# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""flight_control_node: a thin shell around the flight controller, and owner of the mode.

It uses sensors and estimates, never the truth, and answers each imu/data with a cmd/rotors of the
same stamp.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rfly_suite.msg import AttitudeTarget, RotorCommand, VehicleMode
from std_msgs.msg import Bool, String

from rfly_amphibious.ros.command_msgs import rotor_command_to_msg
from rfly_amphibious.ros.declared_vehicle import declare_vehicle_name
from rfly_amphibious.sensors.sample_messages import frame_of, time_of
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.attitude_controller import load_attitude_law
from rfly_autonomy.control.flight_controller import WORDS, FlightController
from rfly_autonomy.control.modes import LANDING
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.ros.control_topics import ControlLoop, MotionCommands
from rfly_autonomy.ros.node_parameters import (
    DELAY,
    ControlParameters,
    FlightControlParameters,
    GainParameters,
    TrustParameters,
)
from rfly_common.errors import CommandError, ConfigError
from rfly_common.frames import rotation_matrix
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics, Row
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.node_parameters import parameters_of
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, LATCHED
from rfly_common.ros.stamps import ns_to_stamp


def declare_gains(node: Node, params: VehicleParameters) -> VehicleParameters:
    """Return the vehicle with the gains that the node's parameters set."""
    names = [each.name for each in parameters_of(GainParameters)]
    gains = declare_parameters(
        node, GainParameters, defaults={name: getattr(params, name) for name in names}
    )
    try:
        return params.replace(**asdict(gains))
    except ConfigError as error:
        raise ConfigError(f"parameters {', '.join(names)}: {error}") from None


def follow_gains(
    node: Node, params: VehicleParameters, changed: Callable[[VehicleParameters], None]
) -> None:
    """Call `changed` with the new vehicle when a parameter of `declare_gains` is set.

    Gains that no vehicle can have are refused.
    """
    newest = params
    names = {parameter.name for parameter in parameters_of(GainParameters)}

    def new_gains(parameters: Sequence[Parameter]) -> dict[str, Any]:
        gains = {
            parameter.name: parameter.value for parameter in parameters if parameter.name in names
        }
        return {name: value for name, value in gains.items() if value != getattr(newest, name)}

    def check(parameters: Sequence[Parameter]) -> SetParametersResult:
        # only changed gains cost a check of the whole vehicle
        try:
            if gains := new_gains(parameters):
                newest.replace(**gains)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def apply(parameters: Sequence[Parameter]) -> None:
        nonlocal newest
        if gains := new_gains(parameters):
            newest = newest.replace(**gains)
            changed(newest)

    node.add_on_set_parameters_callback(check)
    node.add_post_set_parameters_callback(apply)


MODE_PERIOD_S = 0.5

EARLY_S = 1.0
"""Time for which a request waits for the first estimate, s: others may know it a moment before."""

IN_THE_AIR = tuple(mode for mode in Mode if mode not in (Mode.DISARMED, Mode.DRIVE))


class FlightControlTopics:
    """Topics that run a flight controller.

    `changed()` is called when its mode changes, and when a command is refused.
    """

    def __init__(
        self,
        node: Node,
        flight: FlightController,
        diagnostics: Diagnostics,
        changed: Callable[[], None],
        params: VehicleParameters,
        *,
        vehicle: str,
        lock_step: bool,
        guided: bool = False,
    ) -> None:
        self._node = node
        self._flight = flight
        self._diagnostics = diagnostics
        self._changed = changed
        self._base = frame_of(vehicle, "base_link")
        self._mode: Mode | None = None
        self._mode_message = VehicleMode()
        self._early = ""
        """Request that came before the first estimate; empty: none."""

        self._early_at = -math.inf
        """Time at which it came, s."""

        self._is_told = False
        """True while a node is there that says whether the wheels get power."""

        self._modes = publisher(node, VehicleMode, "mode", LATCHED)
        self.loop = ControlLoop(
            node,
            diagnostics,
            flight,
            self._step,
            publisher(node, RotorCommand, "cmd/rotors", COMMANDS),
            params,
            sensors=("imu/data", "joint_states", "height_above_ground", "wheel_loads"),
            lock_step=lock_step,
            guided_by=("cmd/pose", "cmd/mode", "cmd/assist", "cmd/wrench") if guided else (),
            reset_text="the time went back: disarmed, all is forgotten",
            after_reset=self._on_reset,
        )

        self._commands = MotionCommands(
            node,
            diagnostics,
            vehicle,
            velocity=flight.set_velocity,
            pose=flight.set_target,
            loop=self.loop,
        )
        self.loop.subscribe(String, "cmd/mode", self._on_cmd_mode)
        self.loop.subscribe(WrenchStamped, "cmd/wrench", self._on_cmd_wrench)
        self._commands.subscribe_assist(flight.set_assist)
        subscription(node, Bool, "failsafe", self._on_failsafe, LATCHED)
        self._no_powers = subscription(node, String, "no_power", self._on_no_power, LATCHED)

        self._timer = steady_timer(node, MODE_PERIOD_S, self._repeat_mode)
        self._begin_mode()

        subscription(node, AttitudeTarget, "cmd/attitude", self._on_cmd_attitude, COMMANDS)
        follow_gains(node, params, flight.set_gains)
        frequency = flight.attitude_frequency_of(params)
        node.get_logger().info(
            f"{vehicle}: vehicle {params.name!r}, attitude loop at {frequency:.2f} rad/s"
        )

    def _step(self, estimate: Estimate | None, dt: float) -> RotorCommand:
        command = rotor_command_to_msg(self._flight.step(estimate, dt))
        if self._flight.is_ready:
            self._decide_early()
        self._publish_change()  # before the command, so that its receiver knows the mode by then
        return command

    def _on_cmd_mode(self, message: String) -> None:
        """Decide on a request; the newest one before the first estimate waits for it."""
        word = message.data
        if word not in WORDS or self._flight.is_ready:
            self._request(word)
        elif word != self._early:  # repeated, it goes on waiting
            self._decide_early()
            self._early = word
            self._early_at = time.monotonic()

    def _request(self, word: str) -> None:
        try:
            why_not = self._flight.request(word)
        except CommandError as error:
            why_not = str(error)

        if why_not:
            counter = "refused_modes" if word in WORDS else "unknown_modes"
            text = f"cmd/mode {word!r} refused: {why_not}"
            self._diagnostics.refuse(counter, text, subject=word)

        self._publish_change()
        self._changed()

    def _on_cmd_attitude(self, message: AttitudeTarget) -> None:
        q = message.orientation
        quaternion = np.array((q.x, q.y, q.z, q.w))
        try:
            if message.header.frame_id not in ("", "map"):
                raise CommandError(f"header.frame_id is {message.header.frame_id!r}, expected map")
            if not 0.99 < np.linalg.norm(quaternion) < 1.01:
                raise CommandError(
                    f"orientation is {quaternion.tolist()}, expected a unit quaternion"
                )
            self._flight.set_attitude(rotation_matrix(quaternion), message.thrust)
        except CommandError as error:
            self._diagnostics.refuse_message("cmd/attitude", error)

    def _on_cmd_wrench(self, message: WrenchStamped) -> None:
        force = message.wrench.force
        torque = message.wrench.torque
        try:
            if message.header.frame_id not in ("", self._base):
                raise CommandError(
                    f"header.frame_id is {message.header.frame_id!r}, expected {self._base}"
                )
            if force.x or force.y:
                raise CommandError(
                    f"force is ({force.x:g}, {force.y:g}, {force.z:g}), expected only z: the "
                    "rotors push along that"
                )
            time = time_of(message) or None
            self._flight.set_wrench((force.z, torque.x, torque.y, torque.z), time)
        except CommandError as error:
            self._diagnostics.refuse_message("cmd/wrench", error)

    def _on_failsafe(self, message: Bool) -> None:
        self._flight.failsafe(message.data)
        self._publish_change()
        self._changed()

    def _on_no_power(self, message: String) -> None:
        self._flight.no_power = message.data

    def _publish_change(self) -> None:
        mode = self._flight.mode
        if mode is not self._mode:
            reason = self._flight.reason
            self._node.get_logger().info(f"{mode.value}: {reason}" if reason else mode.value)
            self._begin_mode()
            self._changed()

    def _begin_mode(self) -> None:
        """Publish a new mode, stamped with the sample that it began with."""
        self._mode = self._flight.mode
        self._mode_message = VehicleMode(mode=self._mode.value)
        self._mode_message.header.stamp = ns_to_stamp(self.loop.stamp_ns)
        self._modes.publish(self._mode_message)

    def _on_reset(self) -> None:
        """Refuse a request that waits since before the time went back, and publish the mode."""
        self._decide_early()
        self._publish_change()

    def _decide_early(self) -> None:
        """Decide on the request that came before the first estimate, if there is one."""
        word = self._early
        self._early = ""
        if word:
            self._request(word)

    def _repeat_mode(self) -> None:
        self._modes.publish(self._mode_message)
        if time.monotonic() - self._early_at > EARLY_S:
            self._decide_early()

        # a node that was there and has died can't take back what it said
        is_there = self._node.count_publishers(self._no_powers.topic_name) > 0
        if self._is_told and not is_there:
            self._flight.no_power = ""
        self._is_told = is_there

    def values(self) -> dict[str, Any]:
        """Values for diagnostics, in addition to the text."""
        flight = self._flight
        values = {"mode": flight.mode.value, "reason": flight.reason, "answers": self.loop.answers}
        if flight.mode in (*LANDING, Mode.ABORT):
            values["touch_down"] = flight.logic.touch_down.text()
        if not flight.flight_modes.axle_lift.stands:
            values["thrust_assist"] = flight.flight_modes.axle_lift.text
        if flight.failed_rotors:
            values["failed_rotors"] = self._failed_rotors
        return values

    @property
    def _failed_rotors(self) -> str:
        return ", ".join(str(rotor + 1) for rotor in self._flight.failed_rotors)

    def rows(self) -> list[Row]:
        """Rows of the diagnostics."""
        flight = self._flight
        missing = self._flight.missing
        unknown = WARN if flight.mode in IN_THE_AIR else STALE
        return [
            (flight.mode is Mode.ABORT, ERROR, f"aborted: {flight.reason}"),
            (missing, unknown, f"not known: {', '.join(missing)}"),
            (flight.trust.level, WARN, f"the estimate is {flight.trust.text}"),
            (flight.failed_rotors, WARN, f"rotor {self._failed_rotors} failed"),
            (flight.warnings, WARN, "; ".join(flight.warnings.values())),
            (self._commands.loss, WARN, self._commands.loss),
            (True, OK, flight.mode.value),
        ]


class FlightControlNode(Node):
    """Node that publishes `mode` and `cmd/rotors` from commands, samples and estimates."""

    def __init__(self) -> None:
        super().__init__("flight_control_node")
        name = declare_vehicle_name(self)
        control = declare_parameters(self, ControlParameters)
        params = declare_gains(self, VehicleParameters.load(control.vehicle or "scale"))
        delay = {"delay": 0.0 if control.lock_step else DELAY}
        settings = declare_parameters(self, FlightControlParameters, defaults=delay)

        flight = FlightController(
            params,
            SensorParameters.for_vehicle(params.name, settings.sensors),
            delay=settings.delay,
            command_timeout=settings.command_timeout,
            trust_limits=declare_parameters(self, TrustParameters).limits,
            attitude_law=load_attitude_law(settings.attitude_law),
            rotor_command=settings.rotor_command,
        )

        self._diagnostics = Diagnostics(self, "flight", name, self._update_diagnostics)
        self._topics = FlightControlTopics(
            self,
            flight,
            self._diagnostics,
            self._update_diagnostics,
            params,
            vehicle=name,
            lock_step=control.lock_step,
            guided=control.guided,
        )
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        self._diagnostics.set_first(self._topics.rows(), **self._topics.values())
