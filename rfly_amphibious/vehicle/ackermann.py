# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Steering angles of a vehicle's wheels, and that of the virtual wheel in the middle. Eq. 5.1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats


def wheel_angles(params: VehicleParameters, steering: float) -> Floats:
    """Return the steering angle of each wheel, (wheels,), rad, by Ackermann's geometry. Eq. 5.1.

    `steering`: of the virtual wheel in the middle, rad, positive to the left.
    """
    p = params
    tangent = math.tan(steering)
    across = p.hub_position[:, 1] * tangent / p.steering_lever
    return np.arctan(p.steering_sign * tangent / (1.0 - across))


def virtual_steering(params: VehicleParameters, angles: Floats) -> float:
    """Return the angle of the virtual wheel, rad, NaN without any angle of a wheel. Eq. 5.1.

    `angles`: of the wheels, (wheels,), rad, of which those that are steered and finite count. They
    are averaged, as those of a linkage with one degree of freedom.
    """
    p = params
    counts = np.isfinite(angles) & (p.steering_sign != 0.0)
    if not counts.any():
        return math.nan
    own = np.tan(angles[counts])
    across = p.hub_position[counts, 1]
    virtual = virtual_tangent(p.steering_sign[counts], across, p.steering_lever, own)
    return float(np.arctan(virtual).mean())


def virtual_tangent(sign: Any, wheel_y: Any, lever: float, tangent: Any) -> Any:
    """Return the tangent of the virtual wheel's angle from that of a steered wheel. Eq. 5.1.

    `sign`: 1 for a wheel that turns with the virtual wheel, -1 against it. `wheel_y`: of the wheel
    to the left of the middle, m; `lever`: from the steered axle to the centre of the turn, m.
    """
    return tangent / (sign + wheel_y / lever * tangent)
