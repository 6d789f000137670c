# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Latest sample of each sensor, synchronised at one time, for external controllers."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.sensors import samples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.frames import quat_conjugate, quat_rotate
from rfly_mavlink.links.link_frames import StateReport

PATIENCE_S = 0.1
"""Simulation time to wait for the slower sensors, from the first IMU sample, s."""

_WATCHED = ("imu", "magnetometer", "barometer", "wind")
"""Sensors whose new samples `Perception.fresh` names."""


class Perception:
    """Newest samples of all sensors."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self.reset()

    def reset(self) -> None:
        """Return to the initial state, before the first sample."""
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
        """Sensors with a new sample since the set was last cleared."""

    def sense(self, seen: samples.SensorSamples) -> None:
        """Take samples; of several in one piece the last counts."""
        if seen.imu is not None:
            if self.imu is None:
                self._since = float(seen.imu.time[0])
            self.imu = seen.imu
        if seen.joints is not None:
            self.wheel_rate = seen.joints.wheel_rate[-1]
            self.steering = seen.joints.steering[-1, :2]
            # each rotor turns its own way; commands know only speeds
            self.rotor_speed = np.abs(seen.joints.rotor_rate[-1])
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
        self.fresh |= {kind for kind in _WATCHED if getattr(seen, kind) is not None}

    @property
    def airspeed(self) -> float:
        """Airspeed along the body's x axis, as a Pitot tube measures it, m/s.

        NaN: pose or wind is unknown.
        """
        if self.pose is None:
            return math.nan
        relative = self.pose.velocity - self.wind
        return float(quat_rotate(quat_conjugate(self.pose.orientation), relative)[0])

    def ready(self, time: float) -> bool:
        """Return whether a controller can begin.

        IMU and pose have to be known, and all other sensors that send within `PATIENCE_S`.
        """
        if self.imu is None or self.pose is None:
            return False
        rest = (*self.wheel_rate, *self.wheel_load, self.pressure, *self.field)
        return time - self._since > PATIENCE_S or all(map(math.isfinite, rest))

    def report(self, time: float) -> StateReport:
        """Return the report of frame type 1; NaN for unknown values."""
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
