# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensor samples: arrays with a first axis of samples, each with its own time. SI units.

`time` (k,) is the simulation time of the measurement, s. World axes are ENU, body axes FLU,
quaternions x y z w.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Bools, Floats


class ImuSamples(NamedTuple):
    """Samples in the IMU's own axes. The attitude is that of imu_link in the world."""

    time: Floats
    specific_force: Floats
    """Specific force, m/s², (k, 3): (0, 0, 9.80665) at rest."""
    rates: Floats
    """Rates, rad/s, (k, 3)."""
    orientation: Floats
    """Attitudes, (k, 4)."""


class GpsSamples(NamedTuple):
    """Samples of the antenna, delivered later than measured."""

    time: Floats
    geodetic: Floats
    """Latitude deg, longitude deg, altitude m, (k, 3)."""
    velocity: Floats
    """Velocity, m/s, ENU, (k, 3); NaN if it was not measured."""


class MagnetometerSamples(NamedTuple):
    """Samples of the magnetic field in the IMU's axes."""

    time: Floats
    field: Floats
    """Magnetic field, T, (k, 3)."""


class BarometerSamples(NamedTuple):
    """Samples of static pressure."""

    time: Floats
    pressure: Floats
    """Pressure, Pa, (k,)."""


class JointSamples(NamedTuple):
    """Samples of all joints.

    Wheels and struts: front left, front right, rear left, rear right; with six also middle left,
    middle right.
    """

    time: Floats
    wheel_angle: Floats
    """Angles since the beginning, relative to the body, not wrapped, rad, (k, wheels).

    Positive rolls forward.
    """
    wheel_rate: Floats
    """Rates, rad/s, (k, wheels). If the encoder counts, they are from the counts of one period."""
    steering: Floats
    """Steering angles, rad, positive = left, (k, wheels)."""
    strut: Floats
    """Travel from the static position, m, positive = compressed, (k, wheels)."""
    strut_rate: Floats
    """Rates of the struts, m/s, (k, wheels)."""
    rotor_angle: Floats
    """Angles since the beginning, counter-clockwise seen from above, rad, (k, rotors)."""
    rotor_rate: Floats
    """Rates, counter-clockwise seen from above, rad/s, (k, rotors)."""

    def columns(self, steered: Bools, steering_rate: float) -> tuple[Floats, Floats]:
        """Return positions and rates (k, joints) in the order of `joint_names`.

        No sensor measures the steering's rate, so `steering_rate` stands for it. `steered`
        (wheels,): which wheels are steered.
        """
        steering = self.steering[:, steered]
        steering_rates = np.full_like(steering, steering_rate)
        positions = [self.wheel_angle, steering, self.strut, self.rotor_angle]
        rates = [self.wheel_rate, steering_rates, self.strut_rate, self.rotor_rate]
        return np.concatenate(positions, axis=1), np.concatenate(rates, axis=1)


class OdometrySamples(NamedTuple):
    """Samples of the pose of base_link, and of its twist in its own axes."""

    time: Floats
    position: Floats
    """Position, m, (k, 3)."""
    orientation: Floats
    """Attitude, (k, 4)."""
    velocity: Floats
    """Velocity, m/s, body, (k, 3)."""
    rates: Floats
    """Rates, rad/s, body, (k, 3)."""


class HeightSamples(NamedTuple):
    """Samples of the distance straight down from the sensor to the ground."""

    time: Floats
    distance: Floats
    """Distance, m, (k,): -inf nearer and inf farther than the sensor sees (REP 117)."""


class WheelLoadSamples(NamedTuple):
    """Samples of the wheels' loads, in the order of the vehicle's wheels."""

    time: Floats
    load: Floats
    """Load, N, (k, wheels)."""


class WindSamples(NamedTuple):
    """Samples of the wind at the vehicle, gusts included."""

    time: Floats
    velocity: Floats
    """Velocity, m/s, ENU, (k, 3)."""


@dataclasses.dataclass(frozen=True)
class SensorSamples:
    """Samples that became available in one tick; None: no samples."""

    imu: ImuSamples | None = None
    gps: GpsSamples | None = None
    magnetometer: MagnetometerSamples | None = None
    barometer: BarometerSamples | None = None
    joints: JointSamples | None = None
    wheel_odometry: OdometrySamples | None = None
    """Planar, from where it began."""
    height: HeightSamples | None = None
    wheel_loads: WheelLoadSamples | None = None
    wind: WindSamples | None = None
    ground_truth: OdometrySamples | None = None


def joint_names(params: VehicleParameters) -> list[str]:
    """Return the names of a vehicle's joints: wheels, steered wheels, struts, rotors."""
    steered = [
        wheel for wheel, sign in zip(params.wheels, params.steering_sign, strict=True) if sign
    ]
    kinds = (("wheel", params.wheels), ("steer", steered), ("strut", params.wheels))
    names = [f"{kind}_{wheel}_joint" for kind, wheels in kinds for wheel in wheels]
    return names + [f"rotor_{j + 1}_joint" for j in range(params.rotors)]
