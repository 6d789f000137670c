"""Skid steering: left and right torques in place of steered wheels. Eq. 10.13."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.vehicle.parameters import WHEELS, VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

SKID_TIME, SKID_INTEGRAL = 0.015, 2.0
"""s, 1/s: of the loop that holds the wheels of one side faster than those of the other"""
SKID_YAW_GAIN = 0.3
"""1/s, of the integral of the yaw rate's error"""
SCRUB_SHARE = 0.8
"""of the torque against which all tyres slide, that is fed forward"""


class SkidSteer:
    """Turns a chassis by its motors: the wheels of one side run faster than those of the other.

    Turning on the spot all tyres slide; with the same friction along and aside the moments of both balance where the
    wheels roll as if the track were (b² + L²)/b, by the direction of sliding. In wide bends they slide less, and an
    integral of the yaw rate's error makes up for it.
    """

    def __init__(self, params: VehicleParameters) -> None:
        p = self._params = params
        driven = np.array([wheel in p.driven for wheel in WHEELS], float)
        self._driven, self._sides = driven, np.array((-1.0, 1.0, -1.0, 1.0))
        self._radius = radius = float(p.rolling_radius.mean())
        self._lever = (p.track**2 + p.wheelbase**2) / p.track / (2.0 * radius)
        load = p.mass * GRAVITY / 4.0
        self._scrub = SCRUB_SHARE * p.friction_y * load * radius * p.wheelbase / math.hypot(p.track, p.wheelbase)
        self._gain = p.wheel_inertia / SKID_TIME
        self.reset()

    def reset(self) -> None:
        """Forgets the integrals."""
        self._torque = self._rate = 0.0

    def torques(self, wanted: float, yaw_rate: float, speed: float, wheel_rate: Floats, dt: float) -> Floats:
        """(4,) N m on top of what drives, for the yaw rate wanted; yaw rate, speed and spins (4,) of now."""
        if wanted == 0.0:
            self._rate = 0.0
        else:
            most = abs(wanted)
            self._rate = min(max(self._rate + dt * SKID_YAW_GAIN * (wanted - yaw_rate), -most), most)
        due = speed / self._radius + self._lever * (wanted + self._rate) * self._sides
        errors = due - wheel_rate
        most = self._params.max_drive_torque
        change = dt * SKID_INTEGRAL * self._gain * float(errors @ self._sides) / 4.0
        self._torque = min(max(self._torque + change, -most), most)
        torques = self._gain * errors + (self._scrub * math.tanh(2.0 * wanted) + self._torque) * self._sides
        return np.clip(torques, -most, most) * self._driven
