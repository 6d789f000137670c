# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Actions of the environments to learn in: numbers from -1 to 1 that become commands."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.vehicle.rotor_wrench import rotor_matrix
from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import check_choice
from rfly_common.physics import GRAVITY


class RotorAction(enum.IntEnum):
    """Kinds of actions that command the rotors."""

    OFF = 0
    """Not at all: they stand still."""
    WRENCH = 1
    """Thrust and moments."""
    ROTORS = 2
    """Speed of each rotor."""
    VELOCITY = 3
    """Velocity and yaw rate, by the flight controller's laws."""


class WheelAction(enum.IntEnum):
    """Kinds of actions that command the wheels."""

    BRAKED = 0
    """Not at all: the brakes hold."""
    TORQUES = 1
    """Steering, drive and brakes."""
    VELOCITY = 2
    """Speed and yaw rate, by the chassis controller's laws."""


class Kind(NamedTuple):
    """A kind of actions."""

    air: RotorAction
    """Way in which the rotors are commanded; these numbers come first."""
    wheels: WheelAction
    """Way in which the wheels are commanded."""


_AIR = {
    "wrench": RotorAction.WRENCH,
    "rotors": RotorAction.ROTORS,
    "velocity": RotorAction.VELOCITY,
}
_WHEELS = {"wheels": WheelAction.TORQUES, "drive": WheelAction.VELOCITY}

ACTIONS = {
    **{name: Kind(air, WheelAction.BRAKED) for name, air in _AIR.items()},
    **{name: Kind(RotorAction.OFF, wheels) for name, wheels in _WHEELS.items()},
    **{
        f"{name}+{other}": Kind(air, wheels)
        for other, wheels in _WHEELS.items()
        for name, air in _AIR.items()
    },
}
"""Kinds of actions by name."""

TILTING = 0.1
"""Largest moment about body x and y, relative to the weight on the rotors' longest arm."""
YAWING = 0.5
"""Largest moment about body z, relative to the sum of the rotors' torques in hover."""


class Commands(NamedTuple):
    """Constants with which a kernel turns actions into rows of commands."""

    air: int
    """A `RotorAction`."""
    wheels: int
    """A `WheelAction`."""
    mixing: Floats
    """Squares of the rotors' speeds for one N of thrust and one N m of each moment, (rotors, 4)."""
    weight: float
    """Weight, N: the thrust of an action of 0; -1 is none, 1 twice the weight."""
    moment: Floats
    """Moments of an action of 1, (3,), N m, body axes."""
    max_rotor_speed: float
    """Largest speed of a rotor, rad/s."""
    max_steering: float
    """Steering angle of an action of 1, rad."""
    max_drive: float
    """Drive torque of each wheel at an action of 1, N m; -1 drives backwards."""
    max_brake: float
    """Brake torque of each wheel at an action of 1, N m; 0 and less do not brake."""
    rotor_columns: Ints
    """Columns of the rotors in a row of commands, (rotors,)."""
    drive_columns: Ints
    """Columns of the drive torques, (wheels,)."""
    brake_columns: Ints
    """Columns of the brake torques, (wheels,)."""


def commands_of(kind: str, p: VehicleParameters) -> Commands:
    """Return the constants of a kind of actions. Raise ConfigError for another name."""
    check_choice("actions", kind, tuple(ACTIONS))
    air, wheels = ACTIONS[kind]
    weight = p.mass * GRAVITY
    tilting = TILTING * weight * max(p.rotor_arm)
    yawing = YAWING * p.rotors * p.torque_coefficient * p.hover_speed**2

    columns = state_layout.control_columns(p.rotors, len(p.wheels))
    every = np.arange(state_layout.controls_size(p.rotors, len(p.wheels)))
    return Commands(
        air=int(air),
        wheels=int(wheels),
        mixing=np.asarray(np.linalg.pinv(rotor_matrix(p)), np.float64),
        weight=weight,
        moment=np.array((tilting, tilting, yawing)),
        max_rotor_speed=p.max_rotor_speed,
        max_steering=p.max_steering,
        max_drive=p.max_drive_torque,
        max_brake=p.max_brake_torque,
        rotor_columns=every[columns["rotor"]],
        drive_columns=every[columns["drive_torque"]],
        brake_columns=every[columns["brake_torque"]],
    )


def wrench_of(commands: Commands, action: NDArray[np.floating]) -> Floats:
    """Return thrust, N, and moments, N m, (4,), of an action whose first four numbers are these."""
    thrust, *turn = np.clip(np.asarray(action[:4], np.float64), -1.0, 1.0)
    return np.array((commands.weight * (1.0 + thrust), *(commands.moment * turn)))


def action_names(kind: str, p: VehicleParameters) -> list[str]:
    """Return the name of each number of an action, in its order."""
    air, wheels = ACTIONS[kind]
    names = {
        RotorAction.OFF: [],
        RotorAction.WRENCH: ["thrust", "moment_x", "moment_y", "moment_z"],
        RotorAction.ROTORS: [f"rotor_{j + 1}" for j in range(p.rotors)],
        RotorAction.VELOCITY: ["forward", "left", "up", "turn"],
    }[air]
    names += {
        WheelAction.BRAKED: [],
        WheelAction.TORQUES: ["steering", "drive", "brake"],
        WheelAction.VELOCITY: ["speed", "yaw_rate"],
    }[wheels]
    return names
