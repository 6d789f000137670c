# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands to a vehicle's rotors and wheels <-> messages. See docs/model, section 11."""

from __future__ import annotations

import numpy as np
from rfly_suite.msg import RotorCommand as RotorCommandMsg
from rfly_suite.msg import WheelCommand as WheelCommandMsg

from rfly_amphibious.sensors.sample_messages import stamped, time_since
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle import state_layout
from rfly_common.errors import CommandError


def rotor_command_to_msg(command: RotorCommand) -> RotorCommandMsg:
    """Return the message for cmd/rotors."""
    mode = RotorCommandMsg.TORQUE if command.torques else RotorCommandMsg.SPEED
    return stamped(
        RotorCommandMsg(mode=mode, value=np.asarray(command.value).tolist()),
        command.time,
        "",
    )


def msg_to_rotor_command(message: RotorCommandMsg, now: float, epoch_ns: int = 0) -> RotorCommand:
    """Return the command of cmd/rotors; without a stamp it is from `now` (s since the epoch).

    Raise CommandError for an unknown mode.
    """
    if message.mode not in (RotorCommandMsg.SPEED, RotorCommandMsg.TORQUE):
        raise CommandError(f"mode {message.mode}, expected 0 (speeds, rad/s) or 1 (torques, N m)")
    return RotorCommand(
        time_since(message, epoch_ns, now),
        np.array(message.value),
        message.mode == RotorCommandMsg.TORQUE,
    )


def wheel_command_to_msg(command: WheelCommand) -> WheelCommandMsg:
    """Return the message for cmd/wheels."""
    message = WheelCommandMsg(
        steering_angle=float(command.steering_angle),
        drive_torque=np.asarray(command.drive_torque, float).tolist(),
        brake_torque=np.asarray(command.brake_torque, float).tolist(),
    )
    if command.wheel_steering is not None:
        message.wheel_steering_angle = np.asarray(command.wheel_steering, float).tolist()
    return stamped(message, command.time, "")


def msg_to_wheel_command(
    message: WheelCommandMsg,
    now: float,
    wheels: int = state_layout.OUTER_WHEELS,
    epoch_ns: int = 0,
) -> WheelCommand:
    """Return the command of cmd/wheels; without a stamp it is from `now` (s since the epoch).

    Without numbers it is 0 for each of the `wheels`.
    """
    drive, brake = (
        np.array(torque or [0.0] * wheels)
        for torque in (list(message.drive_torque), list(message.brake_torque))
    )
    time = time_since(message, epoch_ns, now)
    angles = np.array(message.wheel_steering_angle) if message.wheel_steering_angle else None
    return WheelCommand(time, message.steering_angle, drive, brake, angles)
