# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cascaded position controller: position and velocity errors to a specific thrust.

docs/model, section 10.1. World axes ENU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_laws import specific_thrust
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

MAX_SPEED = 4.0
"""Largest speed that the position error may demand, by axis, m/s."""

INTEGRAL_SHARE = 0.25
"""Gain of the integral of the velocity error, in addition to the velocity gain, 1/s."""


class PositionController:
    """Controller: proportional for the position, proportional and integral for the velocity."""

    def __init__(self, params: VehicleParameters) -> None:
        self.set_gains(params)
        self.integral = np.zeros(3)
        """Integral of the velocity error, (3,), m/s²."""

        self.max_speed = MAX_SPEED
        """Largest speed that the position error may demand, by axis, m/s."""

        self.softness = 1.0
        """Share of the level gains that a slow attitude loop allows."""

    def set_gains(self, params: VehicleParameters) -> None:
        """Use the gains of these parameters; the integral stays."""
        self._max_tilt = params.max_tilt
        self.position_gain = params.position_gain
        """Gain of the position error, 1/s."""

        self.velocity_gain = params.velocity_gain
        """Gain of the velocity error, 1/s."""

    def reset(self) -> None:
        """Forget the integral."""
        self.integral = np.zeros(3)

    @property
    def steady_tilt(self) -> float:
        """Tilt that holds the vehicle in its place against what it has learned, as wind, rad."""
        east, north, up = self.integral.tolist()
        return math.atan2(math.hypot(east, north), GRAVITY + up)

    def acceleration(
        self,
        position_error: ArrayLike,
        velocity: ArrayLike,
        velocity_ahead: ArrayLike,
        dt: float,
        frozen: bool = False,
        max_tilt: float | None = None,
    ) -> Floats:
        """Return the wanted specific thrust, (3,), world, m/s²; `frozen` keeps the integral."""
        share = np.array((self.softness, self.softness, 1.0))
        way = self.position_gain * share * np.asarray(position_error, float)
        wanted = np.clip(way, -self.max_speed, self.max_speed)
        ahead = np.asarray(velocity_ahead, float)
        if self.max_speed < MAX_SPEED:
            ahead = np.clip(ahead, -self.max_speed, self.max_speed)
        error = share * (wanted + ahead - np.asarray(velocity, float))

        most = self._max_tilt if max_tilt is None else max_tilt
        gain = self.velocity_gain
        free, is_limited = specific_thrust(error.tolist(), self.integral.tolist(), gain, most)
        if not is_limited and not frozen:
            self.integral = self.integral + dt * INTEGRAL_SHARE * gain * error
        return np.array(free)
