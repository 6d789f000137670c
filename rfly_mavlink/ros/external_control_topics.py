# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Topics of an external controller: sensors as its Perception, its session, and its commands.

They are part of link_node, mavlink_hil_node and ardupilot_json_node.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import SimulationTick
from rfly_suite.msg import WheelCommand as WheelCommandMsg
from sensor_msgs.msg import NavSatFix

from rfly_amphibious.ros.command_msgs import rotor_command_to_msg, wheel_command_to_msg
from rfly_amphibious.ros.sensor_topics import (
    SENSOR_TOPICS,
    subscribe_sensors,
    subscribe_ticks,
)
from rfly_amphibious.sensors.sample_messages import SampleReader
from rfly_amphibious.sensors.samples import GpsSamples, SensorSamples
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.simulation.tick_gate import TickGate
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.ros.estimate_msgs import is_unknown, odometry_to_estimate
from rfly_common.errors import ConfigError, LinkError, SensorMessageError
from rfly_common.ros.diagnostics import Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer, subscription
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS, sensor_qos
from rfly_common.ros.stamps import stamp_to_ns
from rfly_mavlink.links.controller_session import ControllerSession
from rfly_mavlink.links.mavlink_hil import ControlMapping
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.ros.node_parameters import (
    ControlMappingParameters,
    PerceptionParameters,
    Supplies,
)

CHECK_PERIOD_S = 0.1
ODOMETRY = {"filtered": "odometry/global", "truth": "ground_truth/odom"}
HEARD = ("imu/data", "joint_states", "wheel_loads", "baro", "imu/mag")


class PerceptionTopics:
    """Subscriptions that fill a Perception, and call `on_state(stamp_ns, again)` for an answer.

    Without lock-step that is each imu/data. With the parameter `lock_step` it is each tick, once
    all of its messages have come, and `again` when the tick is repeated. `on_gps(samples, fix)` is
    called for each pair of gps/fix and gps/vel, in a tick before `on_state`; without it these
    topics are not subscribed to. `heard` names the other sensors' topics.
    """

    def __init__(
        self,
        node: Node,
        perception: Perception,
        diagnostics: Diagnostics,
        settings: PerceptionParameters,
        on_state: Callable[[int, bool], None],
        on_gps: Callable[[GpsSamples, NavSatFix], None] | None = None,
        heard: Sequence[str] = HEARD,
    ) -> None:
        self._node = node
        self._perception = perception
        self._diagnostics = diagnostics
        self.lock_step = settings.lock_step
        self._filtered = settings.odometry == "filtered"
        self.odometry = ODOMETRY[settings.odometry]
        source = "the estimate" if self._filtered else "the truth"
        node.get_logger().info(f"position, velocity and attitude are {source}, {self.odometry}")
        self._on_state = on_state
        self._on_gps = on_gps
        self._read = SampleReader(perception.params)
        self._fix = NavSatFix()
        self.stamp_ns = -1
        """Stamp of the present tick, or without lock-step of the newest imu/data; -1 before."""
        self._state_at = -math.inf

        topics = [*heard, *(("gps/fix", "gps/vel") if on_gps is not None else ())]
        watched = {SENSOR_TOPICS[topic].tick_index for topic in topics}
        watched |= set() if self._filtered else {SimulationTick.GROUND_TRUTH}
        answers = (self.odometry,) if self._filtered else ()
        self._gate = TickGate(watched, self._new_state, answers, reset=perception.reset)

        subscribe_sensors(node, topics, self._on_sensor, lock_step=self.lock_step)
        qos = sensor_qos(self.lock_step)
        subscription(node, Odometry, self.odometry, self._on_odometry, qos)
        if self.lock_step:
            subscribe_ticks(node, self._gate)

    @property
    def repeated(self) -> int:
        """Ticks that were repeated before all of their messages had come."""
        return self._gate.repeated

    @property
    def simulated(self) -> bool:
        """True if there was a tick or imu/data within the last second."""
        return time.monotonic() - self._state_at < 1.0

    def _on_sensor(self, topic: str, message: Any) -> None:
        kind, _, index, _ = SENSOR_TOPICS[topic]

        is_clock = kind == "imu" and not self.lock_step
        if is_clock:
            if stamp_to_ns(message.header.stamp) < self.stamp_ns:
                self._perception.reset()
        elif topic == "gps/fix":
            self._fix = message

        try:
            samples = self._read(topic, message)
            if samples is None:  # the other half has not come yet
                return
            if self._on_gps is not None and kind == "gps":
                self._on_gps(samples, self._fix)
            else:
                self._perception.sense(SensorSamples(**{kind: samples}))
        except SensorMessageError as error:
            self._diagnostics.refuse_message(topic, error)
        # an unusable message has come all the same: a tick does not wait for it
        if self.lock_step:
            self._gate.heard(index)
        elif is_clock:
            self._new_state(stamp_to_ns(message.header.stamp))

    def _on_odometry(self, message: Odometry) -> None:
        try:
            if not is_unknown(message):
                self._perception.pose = odometry_to_estimate(message)
        except SensorMessageError as error:
            self._diagnostics.refuse_message("odometry", error)
        if not self.lock_step:
            return
        if self._filtered:
            self._gate.answered(self.odometry, stamp_to_ns(message.header.stamp))
        else:
            self._gate.heard(SimulationTick.GROUND_TRUTH)

    def _new_state(self, stamp_ns: int) -> None:
        again = stamp_ns == self.stamp_ns
        self.stamp_ns = stamp_ns
        self._state_at = time.monotonic()
        self._on_state(stamp_ns, again)


class ExternalControl:
    """Publisher of `cmd/rotors` and `cmd/wheels`, and host of the controller's session.

    `on_received()` runs in the node's thread after each `wake`.
    """

    def __init__(
        self,
        node: Node,
        params: VehicleParameters,
        diagnostics: Diagnostics,
        on_received: Callable[[], None],
        supplies: Supplies = "both",
    ) -> None:
        self._node = node
        self._params = params
        self._diagnostics = diagnostics
        self._on_received = on_received

        left_out: dict[str, tuple[type, ...]] = {
            "both": (),
            "rotors": (WheelCommand,),
            "chassis": (RotorCommand,),
        }
        self._left_out = left_out[supplies]

        self._rotors = publisher(node, RotorCommandMsg, "cmd/rotors", COMMANDS)
        self._wheels = publisher(node, WheelCommandMsg, "cmd/wheels", COMMANDS)

    def start(self, session: ControllerSession[Any], who: str, check: Callable[[], None]) -> None:
        """Start the session and call `check()` every CHECK_PERIOD_S. Raise ConfigError.

        The hardware id of the diagnostics must be the wanted address, transport and host or a
        serial line; from then on it is where the session listens.
        """
        diagnostics = self._diagnostics
        try:
            session.start()
        except LinkError as error:
            serial = diagnostics.hardware_id.startswith("serial ")
            raise ConfigError(
                f"{'parameter device' if serial else 'parameters bind and port'}: {error}"
            ) from error

        if session.port:
            diagnostics.hardware_id += f":{session.port}"
        self._node.get_logger().info(f"listening for {who} on {diagnostics.hardware_id}")
        steady_timer(self._node, CHECK_PERIOD_S, check)

    def wake(self) -> None:
        """Schedule `on_received`; called in the session's thread."""
        executor = self._node.executor
        if executor is not None:  # None before the node spins, and when it ends
            executor.create_task(self._on_received)

    def publish(self, *commands: RotorCommand | WheelCommand) -> None:
        """Publish commands, except for kinds that the controller does not supply."""
        for command in commands:
            if isinstance(command, self._left_out):
                continue
            if isinstance(command, RotorCommand):
                self._rotors.publish(rotor_command_to_msg(command))
            else:
                self._wheels.publish(wheel_command_to_msg(command))

    def rest(self, stamp_ns: int) -> tuple[RotorCommand, WheelCommand]:
        """Return rotors at rest and braked wheels, for the time without a controller."""
        now = stamp_ns * 1e-9
        brakes = WheelCommand.braked(self._params, now, self._params.max_brake_torque)
        return RotorCommand(now, np.zeros(self._params.rotors)), brakes


def declare_mapping(node: Node, params: VehicleParameters) -> ControlMapping:
    """Return the mapping of an autopilot's outputs to actuators, from the node's parameters."""
    defaults = {"rotor_controls": list(ControlMapping.default(params.rotors).rotors)}
    settings = declare_parameters(node, ControlMappingParameters, defaults=defaults)

    mapping = ControlMapping(
        settings.rotor_controls,
        settings.steering_control,
        settings.drive_control,
        settings.brake_control,
    )

    try:
        mapping.check(params)
    except ConfigError as error:
        raise ConfigError(f"parameters of controls: {error}") from None
    return mapping
