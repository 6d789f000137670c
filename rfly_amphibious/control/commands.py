"""Actuator commands: one for the rotors, one for the chassis. SI units, simulation time."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.errors import CommandError

if TYPE_CHECKING:
    from rfly_amphibious.dynamics.model import Controls

LATEST = 2.0**31 - 1.0
"""s: what ROS's stamps can hold ends there"""


@dataclasses.dataclass(frozen=True)
class RotorCommand:
    """Speeds (rad/s, ≥ 0) or, with `torques`, motor torques (N m), one a rotor."""

    time: float
    """s, of the sensor sample that it answers"""
    value: Floats
    torques: bool = False

    def check(self, params: VehicleParameters) -> None:
        """Raises CommandError that says what does not fit the vehicle."""
        value = np.asarray(self.value, float)
        if value.shape != (params.rotors,):
            raise CommandError(
                f"{value.size} values, expected one for each of the {params.rotors} rotors"
            )
        _check_time(self.time)
        finite_array("value", value, error=CommandError)
        if not self.torques and (value < 0.0).any():
            raise CommandError(f"speed {value.min():g} rad/s, expected 0 or more")


@dataclasses.dataclass(frozen=True)
class WheelCommand:
    """Steering, motors and brakes; wheels front left, front right, rear left, rear right, middle
    left, middle right.
    """

    time: float
    """s, of the sensor sample that it answers"""
    steering_angle: float = 0.0
    """rad, of the virtual wheel in the middle of the axle, positive = left"""
    drive_torque: Floats = dataclasses.field(default_factory=lambda: np.zeros(4))
    """(wheels,) N m, signed"""
    brake_torque: Floats = dataclasses.field(default_factory=lambda: np.zeros(4))
    """(wheels,) N m, ≥ 0: acts against the spin"""

    @classmethod
    def braked(cls, params: VehicleParameters, time: float, torque: float) -> WheelCommand:
        """Straight on, without drive, all brakes at a torque (N m)."""
        wheels = len(params.wheels)
        return cls(time, 0.0, np.zeros(wheels), np.full(wheels, torque))

    def check(self, params: VehicleParameters) -> None:
        """Raises CommandError that says what does not fit the vehicle."""
        for name in ("drive_torque", "brake_torque"):
            value = np.asarray(getattr(self, name), float)
            if value.shape != (len(params.wheels),):
                raise CommandError(
                    f"{name}: {value.size} values, expected one for each of {', '.join(params.wheels)}"
                )
            finite_array(name, value, error=CommandError)
        _check_time(self.time)
        finite_number("steering_angle", self.steering_angle, "rad", error=CommandError)
        brakes = np.asarray(self.brake_torque, float)
        if (brakes < 0.0).any():
            raise CommandError(
                f"brake_torque: {brakes.tolist()}, expected 0 or more: it acts against the spin"
            )


def _check_time(time: float) -> None:
    if not 0.0 <= time < LATEST:
        raise CommandError(f"time {time:g} s, expected 0 or more, and below {LATEST:.0f}")


def controls_of(rotors: RotorCommand | None, wheels: WheelCommand | None) -> Controls:
    """Both as the model takes them; None: rotors at 0; no steering, drive or brake."""
    from rfly_amphibious.dynamics.model import (
        Controls,
    )  # simulations have the model anyway, controllers need none

    found = {}
    if rotors is not None:
        found["rotor_torque" if rotors.torques else "rotor_speed"] = rotors.value
    if wheels is None:
        return Controls(**found)
    return Controls(
        **found,
        steering=wheels.steering_angle,
        drive_torque=wheels.drive_torque,
        brake_torque=wheels.brake_torque,
    )


class Setpoint(NamedTuple):
    """From `time` on (s): a mode to be requested, the speed to drive, the steering, the place to
    fly to.
    """

    time: float
    mode: Mode | None = None
    speed: float = 0.0
    steering: float = 0.0
    target: tuple[float, float, float] | None = None
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m/s, with which the target moves on"""
    yaw: float | None = None
    """rad, to turn to in flight and above the place of the landing; None: as it is"""
