"""Wheel odometry: dead reckoning on the plane from encoders."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError


class PlanarMotion(NamedTuple):
    """Of base_link, in the frame in which the odometry began: there it was at 0, 0, heading along x."""

    x: float
    y: float
    yaw: float
    """rad, not wrapped"""
    speed_x: float
    """m/s, forward"""
    speed_y: float
    """m/s, to the left"""
    yaw_rate: float
    """rad/s"""


class WheelOdometry:
    """Forward motion and turn that fit the turns of all wheels best, where no wheel slips, on level ground.

    The vehicle turns about a point abreast of its unsteered axle, or of its middle where both axles are steered or
    none. It knows nothing of slipping wheels, nor of wheels in the air: see `wheel_loads` for those.
    """

    def __init__(self, params: VehicleParameters, wheel_angle: Floats | None = None) -> None:
        """`wheel_angle` (4,): where the wheels are at the beginning, rad; else the first update tells."""
        front, rear = params.front_axle, -params.rear_axle
        self._turn_x = {"front": rear, "rear": front}.get(params.steered, 0.5 * (front + rear))
        hubs = params.hub_position
        self._across = hubs[:, 1].tolist()
        self._along = (hubs[:, 0] - self._turn_x).tolist()
        self._radius = params.rolling_radius.tolist()
        self._angle = None if wheel_angle is None else [float(angle) for angle in wheel_angle]
        self._motion = PlanarMotion(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def motion(self) -> PlanarMotion:
        """After the last update."""
        return self._motion

    def update(self, wheel_angle: Floats, steering: Floats, period: float) -> PlanarMotion:
        """With angles (4,) of wheels and steering (rad) `period` seconds after those before."""
        angle, steered = wheel_angle.tolist(), steering.tolist()
        last = self._angle if self._angle is not None else angle
        self._angle = angle
        a00 = a01 = a11 = b0 = b1 = 0.0
        for i in range(4):
            cosine, sine = math.cos(steered[i]), math.sin(steered[i])
            turn = sine * self._along[i] - cosine * self._across[i]
            rolled = self._radius[i] * (angle[i] - last[i])
            a00, a01, a11 = a00 + cosine * cosine, a01 + cosine * turn, a11 + turn * turn
            b0, b1 = b0 + cosine * rolled, b1 + turn * rolled
        determinant = a00 * a11 - a01 * a01
        forward = (a11 * b0 - a01 * b1) / determinant
        turned = (a00 * b1 - a01 * b0) / determinant
        left = -self._turn_x * turned
        # the chord of an arc
        half = 0.5 * turned
        share = math.sin(half) / half if abs(half) > 1e-9 else 1.0
        x, y, yaw, *_ = self._motion
        c, s = share * math.cos(yaw + half), share * math.sin(yaw + half)
        self._motion = PlanarMotion(
            x + c * forward - s * left,
            y + s * forward + c * left,
            yaw + turned,
            forward / period,
            left / period,
            turned / period,
        )
        return self._motion

    def save(self) -> list[float]:
        """All that the next update depends on."""
        return [*self._motion, *(self._angle or ())]

    def restore(self, saved: list[float]) -> None:
        """Goes on from `save`. Raises ConfigError where it is none."""
        numbers = np.array(saved, np.float64)
        if numbers.shape not in ((6,), (10,)) or not np.isfinite(numbers).all():
            raise ConfigError("no saved state of wheel odometry: expected six or ten finite numbers")
        values = numbers.tolist()
        self._motion, self._angle = PlanarMotion(*values[:6]), values[6:] or None
