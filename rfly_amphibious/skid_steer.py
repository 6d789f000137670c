"""Turning without steered wheels: section 5.1 of the model's description leaves it to left and right torques."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.parameters import GRAVITY, WHEELS, VehicleParameters

Floats = NDArray[np.float64]

SKID_TIME, SKID_INTEGRAL = 0.02, 5.0
"""s, 1/s: of the loop that holds the wheels of one side faster than those of the other"""
SKID_YAW_GAIN = 1.0
"""1/s, of the integral of the yaw rate's error"""


class SkidSteer:
    """Turns a chassis by its motors: the wheels of one side run faster than those of the other.

    Turning on the spot all tyres slide; with the same friction along and aside the moments of both balance where the
    wheels roll as if the track were (b² + L²)/b, by the direction of sliding. In wide bends they slide less, and an
    integral of the yaw rate's error makes up for it.
    """

    def __init__(self, params: VehicleParameters) -> None:
        p = self._params = params
        driven = np.array([wheel in p.driven for wheel in WHEELS], float)
        self._sides = np.array((-1.0, 1.0, -1.0, 1.0)) * driven
        self._lever = (p.track**2 + p.wheelbase**2) / p.track / (2.0 * float(p.rolling_radius.mean()))
        radius, load = float(p.rolling_radius.mean()), p.mass * GRAVITY / 4.0
        self._scrub = p.friction_y * load * radius * p.wheelbase / math.hypot(p.track, p.wheelbase)
        self._gain = p.wheel_inertia / SKID_TIME
        self.reset()

    def reset(self) -> None:
        """Forgets the integrals."""
        self._torque = self._rate = 0.0

    def torques(self, wanted: float, yaw_rate: float, wheel_rate: Floats, dt: float) -> Floats:
        """(4,) N m on top of what drives, for the yaw rate wanted and that of now, rad/s; wheels (4,) rad/s."""
        p = self._params
        if wanted == 0.0:
            self._rate = 0.0
        else:
            most = abs(wanted)
            self._rate = min(max(self._rate + dt * SKID_YAW_GAIN * (wanted - yaw_rate), -most), most)
        due = self._lever * (wanted + self._rate)
        error = due - float(wheel_rate[1] + wheel_rate[3] - wheel_rate[0] - wheel_rate[2]) / 4.0
        most = p.max_drive_torque
        self._torque = min(max(self._torque + dt * SKID_INTEGRAL * self._gain * error, -most), most)
        torque = self._scrub * math.tanh(2.0 * wanted) + self._gain * error + self._torque
        return min(max(torque, -most), most) * self._sides
