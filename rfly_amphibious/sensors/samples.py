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
    """In the IMU's own axes; its attitude is that of imu_link in the world."""

    time: Floats
    specific_force: Floats
    """(k, 3) m/s²: (0, 0, 9.80665) at rest"""
    rates: Floats
    """(k, 3) rad/s"""
    orientation: Floats
    """(k, 4)"""


class GpsSamples(NamedTuple):
    """Of the antenna; delivered later than measured."""

    time: Floats
    geodetic: Floats
    """(k, 3) latitude deg, longitude deg, altitude m"""
    velocity: Floats
    """(k, 3) m/s, ENU"""


class MagnetometerSamples(NamedTuple):
    """In the IMU's axes."""

    time: Floats
    field: Floats
    """(k, 3) T"""


class BarometerSamples(NamedTuple):
    """Static pressure."""

    time: Floats
    pressure: Floats
    """(k,) Pa"""


class JointSamples(NamedTuple):
    """Wheels and struts: front left, front right, rear left, rear right; of six also middle left,
    middle right.
    """

    time: Floats
    wheel_angle: Floats
    """(k, wheels) rad since the beginning, relative to the body, not wrapped; positive rolls
    forward
    """
    wheel_rate: Floats
    """(k, wheels) rad/s: from the counts of one period, where the encoder counts"""
    steering: Floats
    """(k, wheels) rad, positive = left"""
    strut: Floats
    """(k, wheels) m from the static place, positive = compressed"""
    strut_rate: Floats
    """(k, wheels) m/s"""
    rotor_angle: Floats
    """(k, rotors) rad since the beginning, counter-clockwise seen from above"""
    rotor_rate: Floats
    """(k, rotors) rad/s, counter-clockwise seen from above"""

    def columns(self, steered: Bools, steering_rate: float) -> tuple[Floats, Floats]:
        """Positions and rates (k, joints) in the order of `joint_names`; nobody measures how fast
        the steering turns: `steering_rate` stands for it. `steered` (wheels,): which wheels are.
        """
        steering = self.steering[:, steered]
        return (
            np.concatenate([self.wheel_angle, steering, self.strut, self.rotor_angle], axis=1),
            np.concatenate(
                [
                    self.wheel_rate,
                    np.full_like(steering, steering_rate),
                    self.strut_rate,
                    self.rotor_rate,
                ],
                axis=1,
            ),
        )


class OdometrySamples(NamedTuple):
    """Pose of base_link, and its twist in its own axes."""

    time: Floats
    position: Floats
    """(k, 3) m"""
    orientation: Floats
    """(k, 4)"""
    velocity: Floats
    """(k, 3) m/s, body"""
    rates: Floats
    """(k, 3) rad/s, body"""


class HeightSamples(NamedTuple):
    """Straight down from the sensor to the ground."""

    time: Floats
    distance: Floats
    """(k,) m; -inf nearer and inf farther than the sensor sees (REP 117)"""


class WheelLoadSamples(NamedTuple):
    """In the order of the vehicle's wheels."""

    time: Floats
    load: Floats
    """(k, wheels) N"""


class WindSamples(NamedTuple):
    """At the vehicle, gusts included."""

    time: Floats
    velocity: Floats
    """(k, 3) m/s, ENU"""


@dataclasses.dataclass(frozen=True)
class SensorSamples:
    """What became available in one tick; None: nothing."""

    imu: ImuSamples | None = None
    gps: GpsSamples | None = None
    magnetometer: MagnetometerSamples | None = None
    barometer: BarometerSamples | None = None
    joints: JointSamples | None = None
    wheel_odometry: OdometrySamples | None = None
    """planar, from where it began"""
    height: HeightSamples | None = None
    wheel_loads: WheelLoadSamples | None = None
    wind: WindSamples | None = None
    ground_truth: OdometrySamples | None = None


def joint_names(params: VehicleParameters) -> list[str]:
    """Of a vehicle's joint states: wheels, steered wheels, struts, rotors."""
    steered = [
        wheel for wheel, sign in zip(params.wheels, params.steering_sign, strict=True) if sign
    ]
    kinds = (("wheel", params.wheels), ("steer", steered), ("strut", params.wheels))
    names = [f"{kind}_{wheel}" for kind, wheels in kinds for wheel in wheels]
    return names + [f"rotor_{j + 1}" for j in range(params.rotors)]
