# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""An attitude law of another package: tilt first, by the angle that is left.

The turn to the wanted attitude is split into the shortest turn of the thrust's direction and a turn
of the heading about it, after D. Brescianini and R. D'Andrea, "Tilt-prioritized quadrocopter
attitude control", IEEE Transactions on Control Systems Technology 28 (2020). Unlike the geometric
law it does not grow weak beyond 90°, and a wrong heading does not disturb the tilt.
"""

import math

import numpy as np


class TiltFirstLaw:
    """Proportional to the angles that are left, and damped by the rates."""

    def set_gains(self, frequency, damping):
        """Use these frequencies of roll, pitch and yaw, (3,), rad/s, and this damping ratio."""
        self._stiffness = frequency**2
        self._damping = 2.0 * damping * frequency

    def turn(self, wanted, rotation, rates):
        """Return the angular acceleration, (3,), body axes, rad/s²."""
        left = rotation.T @ wanted

        # shortest turn of the body's z axis to the wanted one
        x, y, z = left[:, 2].tolist()
        level = math.hypot(x, y)
        angle = math.atan2(level, z)
        axis = np.array((-y / level, x / level, 0.0)) if level > 1e-9 else np.array((1.0, 0.0, 0.0))

        # heading that is left after it
        forward = left[:, 0] @ turned(axis, angle)
        heading = math.atan2(forward[1], forward[0])

        error = angle * axis + np.array((0.0, 0.0, heading))
        return self._stiffness * error - self._damping * rates


def turned(axis, angle):
    """Return the rotation matrix about an axis, (3,), of unit length, by an angle, rad."""
    x, y, z = axis
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    return np.eye(3) + math.sin(angle) * cross + (1.0 - math.cos(angle)) * cross @ cross
