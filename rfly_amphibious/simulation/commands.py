# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands of a vehicle: its mode, rotors and chassis. SI units, simulation time."""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.ackermann import virtual_steering, wheel_angles
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_array, finite_number
from rfly_common.errors import CommandError

if TYPE_CHECKING:
    from rfly_amphibious.dynamics.model import Controls


COMMAND_TIMEOUT = 0.2
"""Simulation time after which a command that is not renewed is dropped, s."""


RotorQuantity = Literal["speed", "torque"]
"""Quantity by which controllers command the rotors."""


LATEST = 2.0**31 - 1.0
"""End of the times that ROS's stamps can hold, s."""


SAME_ANGLE = 1e-9
"""Difference between a wheel's angle and that of the linkage that is rounding, rad."""


class Mode(enum.Enum):
    """Mode of the controllers."""

    DISARMED = "DISARMED"
    DRIVE = "DRIVE"
    TAKEOFF = "TAKEOFF"
    FLIGHT = "FLIGHT"
    LAND = "LAND"
    SPOOL_DOWN = "SPOOL_DOWN"
    ABORT = "ABORT"
    ROLLING_TAKEOFF = "ROLLING_TAKEOFF"
    ROLLING_LAND = "ROLLING_LAND"
    ROLL_OUT = "ROLL_OUT"


@dataclasses.dataclass(frozen=True)
class RotorCommand:
    """Speeds (rad/s, ≥ 0) or, with `torques`, motor torques (N m), one per rotor."""

    time: float
    """Time of the sensor sample that it answers, s."""

    value: Floats
    """Speeds, rad/s, or torques, N m, (rotors,)."""

    torques: bool = False
    """True if the values are torques."""

    def check(self, params: VehicleParameters) -> None:
        """Raise CommandError if the command does not fit the vehicle."""
        value = np.asarray(self.value, float)
        if value.shape != (params.rotors,):
            raise CommandError(
                f"{value.size} values, expected one for each of the {params.rotors} rotors"
            )
        _check_time(self.time)
        finite_array("value", value, error=CommandError)
        if not self.torques and min(value.tolist()) < 0.0:
            raise CommandError(f"speed {value.min():g} rad/s, expected 0 or more")


@dataclasses.dataclass(frozen=True)
class WheelCommand:
    """Steering, motors and brakes.

    Wheels: front left, front right, rear left, rear right, middle left, middle right.
    """

    time: float
    """Time of the sensor sample that it answers, s."""

    steering_angle: float = 0.0
    """Angle of the virtual wheel in the middle of the axle, rad, positive to the left."""

    drive_torque: Floats = dataclasses.field(default_factory=lambda: np.zeros(4))
    """Signed drive torques, (wheels,), N m."""

    brake_torque: Floats = dataclasses.field(default_factory=lambda: np.zeros(4))
    """Brake torques, (wheels,), N m, ≥ 0; they act against the spin."""

    wheel_steering: Floats | None = None
    """Steering angle of each wheel, (wheels,), rad, positive = left; None: by `steering_angle`.

    It takes precedence over that one, and is 0 for wheels that are not steered.
    """

    @classmethod
    def braked(cls, params: VehicleParameters, time: float, torque: float) -> WheelCommand:
        """Return a command without steering and drive, with all brakes at a torque (N m)."""
        wheels = len(params.wheels)
        return cls(time, 0.0, np.zeros(wheels), np.full(wheels, torque))

    def check(self, params: VehicleParameters) -> None:
        """Raise CommandError if the command does not fit the vehicle."""
        for name in ("drive_torque", "brake_torque"):
            value = np.asarray(getattr(self, name), float)
            wheels = params.wheels
            if value.shape != (len(wheels),):
                raise CommandError(
                    f"{name}: {value.size} values, expected one for each of {', '.join(wheels)}"
                )
            finite_array(name, value, error=CommandError)

        _check_time(self.time)
        finite_number("steering_angle", self.steering_angle, "rad", error=CommandError)
        if self.wheel_steering is not None:
            self._check_wheel_steering(params)

        brakes = np.asarray(self.brake_torque, float)
        if min(brakes.tolist()) < 0.0:
            raise CommandError(
                f"brake_torque: {brakes.tolist()}, expected 0 or more: it acts against the spin"
            )

    def _check_wheel_steering(self, params: VehicleParameters) -> None:
        """Raise CommandError if the angles of the wheels do not fit the vehicle."""
        angles = finite_array(
            "wheel_steering", self.wheel_steering, (len(params.wheels),), error=CommandError
        )
        turned = [
            wheel
            for wheel, angle, sign in zip(params.wheels, angles, params.steering_sign, strict=True)
            if angle and not sign
        ]
        if turned:
            raise CommandError(f"wheel_steering: {', '.join(turned)} cannot be steered")

    def steering(self, params: VehicleParameters) -> tuple[float, ArrayLike]:
        """Return the angle of the virtual wheel, and those of the wheels beyond it, (wheels,), rad.

        Angles of the wheels are limited as the vehicle's joints are.
        """
        angles = self.wheel_steering
        if angles is None or params.steered == "none":
            return self.steering_angle, 0.0
        if np.abs(angles - wheel_angles(params, self.steering_angle)).max() < SAME_ANGLE:
            return self.steering_angle, 0.0

        most = params.max_steering
        limit = np.abs([wheel_angles(params, side) for side in (-most, most)]).max(axis=0)
        limited = np.clip(angles, -limit, limit)
        virtual = float(np.clip(virtual_steering(params, limited), -most, most))
        return virtual, limited - wheel_angles(params, virtual)


def _check_time(time: float) -> None:
    """Raise CommandError for a time that a stamp cannot hold."""
    if not 0.0 <= time < LATEST:
        raise CommandError(f"time {time:g} s, expected 0 or more, and below {LATEST:.0f}")


def controls_of(
    params: VehicleParameters, rotors: RotorCommand | None, wheels: WheelCommand | None
) -> Controls:
    """Return both as the model takes them; None: rotors at 0; no steering, drive or brake."""
    # simulations have the model anyway, controllers need none
    from rfly_amphibious.dynamics.model import Controls

    fields: dict[str, ArrayLike] = {}
    if rotors is not None:
        fields["rotor_torque" if rotors.torques else "rotor_speed"] = rotors.value

    if wheels is None:
        return Controls(**fields)
    steering, trim = wheels.steering(params)
    return Controls(
        **fields,
        steering=steering,
        steering_trim=trim,
        drive_torque=wheels.drive_torque,
        brake_torque=wheels.brake_torque,
    )
