"""Latest sample of each sensor, synchronised at one time, for controllers outside."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.links.frames import StateReport
from rfly_amphibious.sensors import samples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.frames import quat_conjugate, quat_rotate

Floats = NDArray[np.float64]

PATIENCE_S = 0.1
"""of simulation time, from the first IMU sample, that the slower sensors are waited for"""


class Perception:
    """Takes samples as they come; of several in one piece the last counts."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self.reset()

    def reset(self) -> None:
        """To the initial state, as before the first sample."""
        self._since = math.nan
        self.imu: samples.ImuSamples | None = None
        self.pose: Estimate | None = None
        self.wheel_rate, self.steering = np.full(len(self.params.wheels), math.nan), np.full(2, math.nan)
        self.rotor_speed = np.full(self.params.rotors, math.nan)
        self.wheel_load = np.full(len(self.params.wheels), math.nan)
        self.pressure = math.nan
        self.field = np.full(3, math.nan)
        self.height = math.nan
        self.wind = np.full(3, math.nan)
        self.fresh: set[str] = set()
        """of imu, magnetometer, barometer, wind: those that have come since somebody cleared it"""

    def take_imu(self, given: samples.ImuSamples) -> None:
        """Of imu/data."""
        if self.imu is None:
            self._since = float(given.time[0])
        self.imu = given
        self.fresh.add("imu")

    def take_pose(self, given: Estimate) -> None:
        """Of odometry in the world."""
        self.pose = given

    def take_joints(self, given: samples.JointSamples) -> None:
        """Of joint_states."""
        self.wheel_rate, self.steering = given.wheel_rate[-1], given.steering[-1, :2]
        self.rotor_speed = np.abs(given.rotor_rate[-1])  # each turns its own way; commands know speeds only

    def take_wheel_loads(self, given: samples.WheelLoadSamples) -> None:
        """Of wheel_loads."""
        self.wheel_load = given.load[-1]

    def take_barometer(self, given: samples.BarometerSamples) -> None:
        """Of baro."""
        self.pressure = float(given.pressure[-1])
        self.fresh.add("barometer")

    def take_magnetometer(self, given: samples.MagnetometerSamples) -> None:
        """Of imu/mag."""
        self.field = given.field[-1]
        self.fresh.add("magnetometer")

    def take_height(self, given: samples.HeightSamples) -> None:
        """Of height_above_ground."""
        self.height = float(given.distance[-1])

    def take_wind(self, given: samples.WindSamples) -> None:
        """Of environment/wind."""
        self.wind = given.velocity[-1]
        self.fresh.add("wind")

    @property
    def airspeed(self) -> float:
        """Along the body's x, as a Pitot tube there measures it, m/s; NaN where pose or wind are not known."""
        if self.pose is None:
            return math.nan
        return float(quat_rotate(quat_conjugate(self.pose.orientation), self.pose.velocity - self.wind)[0])

    def ready(self, time: float) -> bool:
        """Whether a controller can begin: IMU and pose are there, and all others that come within `PATIENCE_S`."""
        if self.imu is None or self.pose is None:
            return False
        rest = (*self.wheel_rate, *self.wheel_load, self.pressure, *self.field)
        return time - self._since > PATIENCE_S or all(map(math.isfinite, rest))

    def report(self, time: float) -> StateReport:
        """Of frame type 1. What is not known is NaN, as of a sensor that the vehicle has not got."""
        imu, pose = self.imu, self.pose
        unknown = np.full(4, math.nan)
        return StateReport(
            time,
            unknown[:3] if imu is None else imu.specific_force[-1],
            unknown[:3] if imu is None else imu.rates[-1],
            unknown if pose is None else np.roll(pose.orientation, 1),
            unknown[:3] if pose is None else pose.position,
            unknown[:3] if pose is None else pose.velocity,
            self.wheel_rate,
            self.steering,
            self.wheel_load,
            self.rotor_speed,
            self.pressure,
            self.field,
        )
