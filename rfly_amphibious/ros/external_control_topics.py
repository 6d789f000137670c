"""Actuator commands of a controller outside, and its session.

Part of link_node, mavlink_hil_node and ardupilot_json_node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.controller_session import ControllerSession
from rfly_amphibious.links.mavlink_hil import ControlMapping
from rfly_amphibious.ros.amphibious_msgs import rotor_command_to_msg, wheel_command_to_msg
from rfly_amphibious.ros.node_parameters import ControlMappingParameters, Supplies
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError, LinkError
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import COMMANDS

CHECK_PERIOD_S = 0.1


class ExternalControl:
    """Publishes `cmd/rotors` and `cmd/wheels`; `on_received()` runs in the node's thread after each `wake`."""

    def __init__(
        self, node: Node, params: VehicleParameters, on_received: Callable[[], None], supplies: Supplies = "both"
    ) -> None:
        self._node, self._params, self._on_received = node, params, on_received
        left_out: dict[str, tuple[type, ...]] = {"both": (), "rotors": (WheelCommand,), "chassis": (RotorCommand,)}
        self._left_out = left_out[supplies]
        self._rotors = publisher(node, RotorCommandMsg, "cmd/rotors", COMMANDS)
        self._wheels = publisher(node, WheelCommandMsg, "cmd/wheels", COMMANDS)

    def start(self, session: ControllerSession[Any], who: str, address: str, check: Callable[[], None]) -> str:
        """Start the session and call `check()` every CHECK_PERIOD_S; where it listens. `address`: transport and host,
        or a serial line.

        Raises ConfigError.
        """
        try:
            session.start()
        except LinkError as error:
            where = "parameter device" if address.startswith("serial ") else "parameters bind and port"
            raise ConfigError(f"{where}: {error}") from error
        where = f"{address}:{session.port}" if session.port else address
        self._node.get_logger().info(f"listening for {who} on {where}")
        self._node.create_timer(CHECK_PERIOD_S, check, clock=Clock(clock_type=ClockType.STEADY_TIME))
        return where

    def wake(self) -> None:
        """In the session's thread: something was received."""
        executor = self._node.executor
        if executor is not None:  # before the node spins, and when it ends
            executor.create_task(self._on_received)

    def publish(self, command: RotorCommand | WheelCommand) -> None:
        """A command to the vehicle, unless it is of a kind that the controller does not supply."""
        if isinstance(command, self._left_out):
            return
        if isinstance(command, RotorCommand):
            self._rotors.publish(rotor_command_to_msg(command))
        else:
            self._wheels.publish(wheel_command_to_msg(command))

    def rest(self, stamp_ns: int) -> tuple[RotorCommand, WheelCommand]:
        """Rotors at rest and wheels braked: what acts while nobody controls."""
        now = stamp_ns * 1e-9
        brakes = WheelCommand.braked(self._params, now, self._params.max_brake_torque)
        return RotorCommand(now, np.zeros(self._params.rotors)), brakes


def declare_mapping(node: Node, params: VehicleParameters) -> ControlMapping:
    """The parameters that say which of an autopilot's outputs an actuator takes."""
    defaults = {"rotor_controls": list(ControlMapping.default(params.rotors).rotors)}
    given = declare_parameters(node, ControlMappingParameters, defaults=defaults)
    mapping = ControlMapping(given.rotor_controls, given.steering_control, given.drive_control, given.brake_control)
    try:
        mapping.check(params)
    except ConfigError as error:
        raise ConfigError(f"parameters of controls: {error}") from None
    return mapping
