# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion of the body, and the heights of its points above the ground."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.body_points import first_corner, first_rotor
from rfly_amphibious.dynamics.environment import density_ratio, heights_above_ground
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.record_vectors import quaternion, vector
from rfly_common.kernels.vectors import (
    Matrix,
    Vector,
    add,
    rotated,
    rotated_back,
    rotation_matrix,
    scaled,
    subtract,
)


class BodyMotion(NamedTuple):
    """Attitude and velocities of the body; vectors in body axes (FLU)."""

    rotation: Matrix
    """R, body -> world."""
    velocity: Vector
    """Rᵀv, m/s."""
    air_velocity: Vector
    """v_a, m/s. Eq. 4.2."""
    rates: Vector
    """ω, rad/s."""
    gravity: Vector
    """g_B, m/s²."""
    density_ratio: float
    """k_ρ. Eq. 3.4."""


@inlined_kernel
def body_motion(x: Any, wind: Vector, p: Any) -> BodyMotion:
    """Return the motion in a state, in a wind in world axes, m/s. Eq. 1.1, 3.4, 4.2."""
    qw, qx, qy, qz = quaternion(x.quaternion)
    rotation = rotation_matrix(qx, qy, qz, qw)
    velocity = vector(x.velocity)
    up = (rotation[6], rotation[7], rotation[8])
    return BodyMotion(
        rotation,
        rotated_back(rotation, velocity),
        rotated_back(rotation, subtract(velocity, wind)),
        vector(x.rates),
        scaled(-p.gravity, up),
        density_ratio(p, x.position[2]) if p.standard_atmosphere else 1.0,
    )


@inlined_kernel
def place_points(x: Any, rotation: Matrix, p: Any, ground: Any, points: Any) -> Any:
    """Fill and return `points`: hubs, corners of the body box and rotor hubs. Eq. 3.1, 5.2."""
    position = vector(x.position)
    count = first_rotor(p) + p.rotors
    for k in range(count):
        point = (p.point_x[k], p.point_y[k], p.point_z[k])
        place = add(position, rotated(rotation, point))
        points.x[k] = place[0]
        points.y[k] = place[1]
        points.height[k] = place[2]
    for i in range(p.wheels):
        travel = x.strut[i]
        points.x[i] += rotation[2] * travel
        points.y[i] += rotation[5] * travel
        points.height[i] += rotation[8] * travel

    # look up the corners only where they may touch
    hub_z = points.height[0]
    heights_above_ground(ground, points, 0, first_corner(p))
    if any_lane(corners_may_touch(x, hub_z, p, ground, points)):
        heights_above_ground(ground, points, first_corner(p), count)
    else:
        for k in range(first_corner(p), first_rotor(p)):
            points.height[k] = np.inf
        heights_above_ground(ground, points, first_rotor(p), count)

    clearance = np.inf
    off_map = 0.0
    for i in range(p.wheels):
        clearance = min(clearance, points.height[i] - p.wheel_radius)
        off_x = (points.x[i] < ground.x_min) | (points.x[i] > ground.x_max)
        off_y = (points.y[i] < ground.y_min) | (points.y[i] > ground.y_max)
        off_map += where(off_x | off_y, 1.0, 0.0)
    points.clearance = clearance
    points.wheels_off_map = off_map
    return points


@inlined_kernel
def corners_may_touch(x: Any, hub_z: float, p: Any, ground: Any, points: Any) -> Any:
    """Return False only if the steepest ground of the map could not rise to a corner.

    The ground rises from below the first hub, whose z is `hub_z`. The heights of the corners are
    still those above z = 0.
    """
    lowest = points.height[first_corner(p)]
    for k in range(first_corner(p) + 1, first_rotor(p)):
        lowest = min(lowest, points.height[k])
    gap = lowest - hub_z + points.height[0]
    reach = p.corner_reach + abs(x.strut[0])
    upright = ground.least_normal_z * ground.least_normal_z
    return gap * abs(gap) * upright <= reach * reach * (1.0 - upright)
