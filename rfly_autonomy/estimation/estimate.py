# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Estimate: the vehicle's pose and motion as an estimator gives them to the controllers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix

_PLACES = np.ix_((0, 1, 2, 6, 7, 8), (0, 1, 2, 6, 7, 8))
"""Rows and columns of position and attitude in an estimate's covariance."""


class Estimate(NamedTuple):
    """Pose and motion of base_link, the sprung centre of mass. World axes ENU, body axes FLU."""

    time: float
    """Simulation time, s."""
    position: Floats
    """Position in the world, m, (3,)."""
    orientation: Floats
    """Quaternion x y z w, body -> world, (4,)."""
    velocity: Floats
    """Velocity in the world, m/s, (3,)."""
    rates: Floats
    """Rates in body axes, rad/s, (3,)."""
    covariance: Floats | None = None
    """Covariance of position (m), velocity (m/s) and attitude error (rad, world axes), (9, 9).

    None if it is unknown.
    """

    def odometry_covariances(self, rates: Floats) -> tuple[Floats, Floats]:
        """Return the covariances (36,) of pose and twist of a nav_msgs/Odometry.

        `rates` (3, 3): covariance of the rates, body axes, (rad/s)². Both are 0 without one of the
        estimate: unknown.
        """
        pose = np.zeros((6, 6))
        twist = np.zeros((6, 6))
        if self.covariance is not None:
            rotation = rotation_matrix(self.orientation)
            pose = self.covariance[_PLACES]
            twist[:3, :3] = rotation.T @ self.covariance[3:6, 3:6] @ rotation
            twist[3:, 3:] = rates
        return pose.ravel(), twist.ravel()


class EstimatedMotion(NamedTuple):
    """Pose and motion of the sprung centre of mass, with the attitude as a matrix."""

    position: Floats
    """Position in the world, m, (3,)."""
    velocity: Floats
    """Velocity in the world, m/s, (3,)."""
    rotation: Floats
    """Rotation body -> world, (3, 3)."""
    rates: Floats
    """Rates in body axes, rad/s, (3,)."""
