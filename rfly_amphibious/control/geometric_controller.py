"""Flight control law: position, velocity and yaw setpoints to rotor speeds. docs/model, section 10.1.

Geometric attitude control after T. Lee, M. Leok and N. H. McClamroch (2010). World axes ENU, body axes FLU, SI.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_amphibious.control.mixer import Mixer
from rfly_amphibious.vehicle.parameters import GRAVITY, VehicleParameters

Floats = NDArray[np.float64]

MAX_SPEED = 4.0
"""m/s, that the position error may ask for, by axis"""
INTEGRAL_SHARE = 0.25
"""1/s: gain of the integral of the velocity error beside the velocity gain"""
MIN_VERTICAL = 0.3
"""of gravity: least upward acceleration asked of the rotors, so that their direction stays defined"""
YAW_FREQUENCY_SHARE = 0.4


class GeometricController:
    """Holds the integral of the velocity error; everything else follows from what `wrench` is told.

    `attitude_frequency` (rad/s) other than the parameters' is for loops with delay: (τ_m + delay) · frequency ≤ 0.45.
    """

    def __init__(self, params: VehicleParameters, attitude_frequency: float | None = None) -> None:
        self.params, self.mixer = params, Mixer(params)
        self.position_gain = np.full(3, params.position_gain)
        self.velocity_gain = np.full(3, params.velocity_gain)
        """(3,) 1/s, by axis of the world"""
        frequency = params.attitude_frequency if attitude_frequency is None else attitude_frequency
        self._frequency = frequency * np.array((1.0, 1.0, YAW_FREQUENCY_SHARE))
        self._inertia = params.total_inertia
        self.reset()

    def reset(self) -> None:
        """Forgets the integral."""
        self._integral = np.zeros(3)

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
        p = self.params
        wanted = np.clip(self.position_gain * np.asarray(position_error, float), -MAX_SPEED, MAX_SPEED)
        error = wanted + np.asarray(velocity_ahead, float) - np.asarray(velocity, float)
        free = self.velocity_gain * error + self._integral
        free[2] = max(free[2] + GRAVITY, MIN_VERTICAL * GRAVITY)
        most = free[2] * math.tan(p.max_tilt if max_tilt is None else max_tilt)
        level = math.hypot(free[0], free[1])
        if level > most:
            free[:2] *= most / level
        elif not frozen:
            self._integral = self._integral + dt * INTEGRAL_SHARE * self.velocity_gain * error
        return free

    def wrench(
        self, acceleration: ArrayLike, yaw: float, rotation: Floats, rates: ArrayLike, yaw_rate: float = 0.0
    ) -> Floats:
        """(4,) thrust and moments that turn the body (rotation (3, 3), rates (3,)) to the acceleration and yaw.

        `yaw_rate` (rad/s): with which the yaw goes on turning.
        """
        a = np.asarray(acceleration, float)
        up = a / np.linalg.norm(a)
        left = _cross(up, (math.cos(yaw), math.sin(yaw), 0.0))
        left /= np.linalg.norm(left)
        return self.moments(
            np.array((_cross(left, up), left, up)).T,
            rotation,
            rates,
            self.params.mass * float(a @ rotation[:, 2]),
            yaw_rate,
        )

    def moments(
        self, wanted: Floats, rotation: Floats, rates: ArrayLike, thrust: float, yaw_rate: float = 0.0
    ) -> Floats:
        """(4,) the thrust, and moments that turn the body to the attitude `wanted` (3, 3).

        `yaw_rate` (rad/s): with which it turns about the world's z.
        """
        error = wanted.T @ rotation - rotation.T @ wanted
        error_vector = 0.5 * np.array((error[2, 1], error[0, 2], error[1, 0]))
        error_rates = np.asarray(rates, float)
        if yaw_rate:
            error_rates = error_rates - yaw_rate * rotation[2]
        turn = -(self._frequency**2) * error_vector
        turn -= 2.0 * self.params.attitude_damping * self._frequency * error_rates
        return np.array((thrust, *(self._inertia @ turn)))


def _cross(a: ArrayLike, b: ArrayLike) -> Floats:
    """Of two (3,): NumPy's own takes ten times as long."""
    (x, y, z), (i, j, k) = np.asarray(a).tolist(), np.asarray(b).tolist()
    return np.array((y * k - z * j, z * i - x * k, x * j - y * i))
