"""Latest sample of each sensor, synchronised at one time, for controllers outside."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.links.frames import StateReport
from rfly_amphibious.sensors import samples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.frames import quat_conjugate, quat_rotate

PATIENCE_S = 0.1
"""of simulation time, from the first IMU sample, that the slower sensors are waited for"""
_TOLD_AS_FRESH = ("imu", "magnetometer", "barometer", "wind")


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
        self.wheel_rate = np.full(len(self.params.wheels), math.nan)
        self.steering = np.full(2, math.nan)
        self.rotor_speed = np.full(self.params.rotors, math.nan)
        self.wheel_load = np.full(len(self.params.wheels), math.nan)
        self.pressure = math.nan
        self.field = np.full(3, math.nan)
        self.height = math.nan
        self.wind = np.full(3, math.nan)
        self.fresh: set[str] = set()
        """of `_TOLD_AS_FRESH`: those that have come since somebody cleared it"""

    def sense(self, seen: samples.SensorSamples) -> None:
        """What the sensors say."""
        if seen.imu is not None:
            if self.imu is None:
                self._since = float(seen.imu.time[0])
            self.imu = seen.imu
        if seen.joints is not None:
            self.wheel_rate = seen.joints.wheel_rate[-1]
            self.steering = seen.joints.steering[-1, :2]
            self.rotor_speed = np.abs(
                seen.joints.rotor_rate[-1]
            )  # each turns its own way; commands know speeds only
        if seen.wheel_loads is not None:
            self.wheel_load = seen.wheel_loads.load[-1]
        if seen.barometer is not None:
            self.pressure = float(seen.barometer.pressure[-1])
        if seen.magnetometer is not None:
            self.field = seen.magnetometer.field[-1]
        if seen.height is not None:
            self.height = float(seen.height.distance[-1])
        if seen.wind is not None:
            self.wind = seen.wind.velocity[-1]
        self.fresh |= {kind for kind in _TOLD_AS_FRESH if getattr(seen, kind) is not None}

    @property
    def airspeed(self) -> float:
        """Along the body's x, as a Pitot tube there measures it, m/s; NaN where pose or wind are
        not known.
        """
        if self.pose is None:
            return math.nan
        return float(
            quat_rotate(quat_conjugate(self.pose.orientation), self.pose.velocity - self.wind)[0]
        )

    def ready(self, time: float) -> bool:
        """Whether a controller can begin: IMU and pose are there, and all others that come within
        `PATIENCE_S`.
        """
        if self.imu is None or self.pose is None:
            return False
        rest = (*self.wheel_rate, *self.wheel_load, self.pressure, *self.field)
        return time - self._since > PATIENCE_S or all(map(math.isfinite, rest))

    def report(self, time: float) -> StateReport:
        """Of frame type 1. What is not known is NaN, as of a sensor that the vehicle has not got."""
        imu = self.imu
        pose = self.pose
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
