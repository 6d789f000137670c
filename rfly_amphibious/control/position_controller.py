"""Cascaded position controller: position and velocity errors to a specific thrust. docs/model,
section 10.1.

World axes ENU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.physics import GRAVITY

MAX_SPEED = 4.0
"""m/s, that the position error may ask for, by axis"""
INTEGRAL_SHARE = 0.25
"""1/s: gain of the integral of the velocity error beside the velocity gain"""
MIN_VERTICAL = 0.3
"""of gravity: least upward acceleration asked of the rotors, so that their direction stays defined
"""


class PositionController:
    """Proportional for the position, proportional and integral for the velocity.

    `level_gains`: of position and velocity across the ground, 1/s; None: the parameters'.
    """

    def __init__(
        self, params: VehicleParameters, level_gains: tuple[float, float] | None = None
    ) -> None:
        self.set_gains(params, level_gains or (params.position_gain, params.velocity_gain))
        self.integral = np.zeros(3)
        """(3,) m/s², of the velocity error"""

    def set_gains(self, params: VehicleParameters, level_gains: tuple[float, float]) -> None:
        """From now on these; the integral stays."""
        position, velocity = level_gains
        self._max_tilt = params.max_tilt
        self.position_gain = np.array((position, position, params.position_gain))
        self.velocity_gain = np.array((velocity, velocity, params.velocity_gain))
        """(3,) 1/s, by axis of the world"""

    def reset(self) -> None:
        """Forgets the integral."""
        self.integral = np.zeros(3)

    def acceleration(
        self,
        position_error: ArrayLike,
        velocity: ArrayLike,
        velocity_ahead: ArrayLike,
        dt: float,
        frozen: bool = False,
        max_tilt: float | None = None,
    ) -> Floats:
        """(3,) specific thrust wanted, world axes, m/s². `frozen`: the integral stays as it is."""
        wanted = np.clip(
            self.position_gain * np.asarray(position_error, float), -MAX_SPEED, MAX_SPEED
        )
        error = wanted + np.asarray(velocity_ahead, float) - np.asarray(velocity, float)
        free = self.velocity_gain * error + self.integral
        free[2] = max(free[2] + GRAVITY, MIN_VERTICAL * GRAVITY)
        most = free[2] * math.tan(self._max_tilt if max_tilt is None else max_tilt)
        level = math.hypot(free[0], free[1])
        if level > most:
            free[:2] *= most / level
        elif not frozen:
            self.integral = self.integral + dt * INTEGRAL_SHARE * self.velocity_gain * error
        return free
