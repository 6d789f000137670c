"""The driving law: from a speed wanted to drive and brake torques. Section 10.2 of the model's description."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_amphibious.modes import Mode
from rfly_amphibious.parameters import AIR_DENSITY, GRAVITY, WHEELS, VehicleParameters

Floats = NDArray[np.float64]

SPEED_GAIN = 1.5
"""1/s"""
INTEGRAL_GAIN = 0.3
"""1/s²"""
INTEGRAL_BAND = 0.3
"""m/s: the integral is for the last error, not for the way there"""
HOLD_SPEED = 0.05
"""m/s, below which a vehicle that is to stand is held by its brakes"""
HOLD_SHARE = 0.3
"""of the largest brake torque"""
MAX_LATERAL = 0.6
"""of friction, that steering may use up"""


def brake_in(mode: Mode, params: VehicleParameters, wheels: float, down: bool) -> float:
    """N m at each wheel, in modes other than DRIVE: the chassis node's column of the table in section 9.

    `wheels`: with load, low-passed; `down`: whether the vehicle has touched the ground since an abort.
    """
    if mode in (Mode.DISARMED, Mode.SPOOL_DOWN):
        return HOLD_SHARE * params.max_brake_torque
    if (mode is Mode.TAKEOFF and wheels > 0.5) or (mode is Mode.ABORT and down):
        return params.max_brake_torque
    return 0.0


class ChassisController:
    """Holds the integral of the speed error."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self._driven = np.array([wheel in params.driven for wheel in WHEELS], float)
        self.reset()

    def reset(self) -> None:
        """Forgets the integral."""
        self._integral = 0.0

    def torques(self, wanted: float, speed: float, dt: float, grade: float = 0.0) -> tuple[Floats, Floats]:
        """Drive (4,) and brake (4,) torques, N m, for a speed wanted and the speed now, m/s.

        `grade`: angle of the way, rad, positive uphill.
        """
        p = self.params
        if wanted == 0.0 and abs(speed) < HOLD_SPEED:
            self._integral = 0.0
            return np.zeros(4), np.full(4, HOLD_SHARE * p.max_brake_torque)
        error = wanted - speed
        pull = p.effective_mass * (SPEED_GAIN * error + self._integral) + self.resistance(speed, grade)
        # the whole force as a driving one, or its excess over what the motors take back as a braking one
        direction = math.copysign(1.0, speed if abs(speed) > HOLD_SPEED else pull)
        most = p.max_drive_torque * self._driven.sum() / p.rolling_radius.mean()
        driving = min(max(pull, -most), most)
        drive = driving * p.rolling_radius * self._driven / max(self._driven.sum(), 1.0)
        rest = pull - driving
        brake = np.zeros(4)
        if rest * direction < 0.0:
            shift = p.center_height * abs(rest) / (p.mass * GRAVITY)
            front = min(max((p.rear_axle + shift) / p.wheelbase, 0.0), 1.0)
            shares = 0.5 * np.array((front, front, 1.0 - front, 1.0 - front))
            brake = np.minimum(shares * abs(rest) * p.rolling_radius, p.max_brake_torque)
        if rest == 0.0 and abs(error) < INTEGRAL_BAND:
            self._integral += dt * INTEGRAL_GAIN * error
        return drive, brake

    def resistance(self, speed: float, grade: float) -> float:
        """N, of rolling, air and slope at a speed."""
        p = self.params
        rolling = p.rolling_resistance * p.mass * GRAVITY * math.tanh(speed / p.rolling_speed)
        air = p.linear_drag[0] * speed + 0.5 * AIR_DENSITY * p.drag_area[0] * speed * abs(speed)
        return rolling + air + p.mass * GRAVITY * math.sin(grade)

    def steering_limit(self, speed: float) -> float:
        """rad, beyond which the turn would use up the friction."""
        p = self.params
        return min(p.max_steering, math.atan(p.wheelbase * MAX_LATERAL * p.friction_y * GRAVITY / max(speed**2, 0.1)))
