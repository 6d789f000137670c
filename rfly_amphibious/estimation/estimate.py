# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Estimate: the vehicle's pose and motion as an estimator gives them to the controllers."""

from __future__ import annotations

from typing import NamedTuple

from rfly_common.arrays import Floats


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
