"""Motion of the body, and the heights of its points above the ground."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.environment import density_ratio, heights_above_ground
from rfly_amphibious.dynamics.wheel_columns import state_of
from rfly_amphibious.dynamics.wheels import first_corner, first_rotor, wheel_count
from rfly_amphibious.vehicle import state_layout as at
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, where
from rfly_common.kernels.vectors import Matrix, Vector, rotated_back, rotation_matrix


class BodyMotion(NamedTuple):
    """Attitude and velocities of the body; vectors in body axes (FLU)."""

    rotation: Matrix
    """R, body -> world"""
    velocity: Vector
    """Rᵀv, m/s"""
    air_velocity: Vector
    """v_a, m/s. Eq. 4.2"""
    rates: Vector
    """ω, rad/s"""
    gravity: Vector
    """g_B, m/s²"""
    density_ratio: float
    """k_ρ. Eq. 3.4"""


@inlined_kernel
def body_motion(x: Any, wind: Any, p: Any) -> BodyMotion:
    """The motion in a state, with wind (3,), world. Eq. 1.1, 3.4, 4.2."""
    qw = x[at.QUATERNION]
    qx = x[at.QUATERNION + 1]
    qy = x[at.QUATERNION + 2]
    qz = x[at.QUATERNION + 3]
    rotation = rotation_matrix(qx, qy, qz, qw)
    vx = x[at.VELOCITY]
    vy = x[at.VELOCITY + 1]
    vz = x[at.VELOCITY + 2]
    return BodyMotion(
        rotation,
        rotated_back(rotation, (vx, vy, vz)),
        rotated_back(rotation, (vx - wind[0], vy - wind[1], vz - wind[2])),
        (x[at.RATES], x[at.RATES + 1], x[at.RATES + 2]),
        (-p.gravity * rotation[6], -p.gravity * rotation[7], -p.gravity * rotation[8]),
        density_ratio(p, x[at.POSITION + 2]) if p.standard_atmosphere else 1.0,
    )


@inlined_kernel
def place_points(x: Any, rotation: Matrix, p: Any, ground: Any, scratch: Any) -> None:
    """Hubs, corners of the body box and rotor hubs in the world, and their heights above the
    ground. Eq. 3.1, 5.2.
    """
    r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation
    px = x[at.POSITION]
    py = x[at.POSITION + 1]
    pz = x[at.POSITION + 2]
    count = first_rotor(p) + p.rotors
    for k in range(count):
        hx = p.point_x[k]
        hy = p.point_y[k]
        hz = p.point_z[k]
        scratch.point_x[k] = px + r00 * hx + r01 * hy + r02 * hz
        scratch.point_y[k] = py + r10 * hx + r11 * hy + r12 * hz
        scratch.point_height[k] = pz + r20 * hx + r21 * hy + r22 * hz
    for i in range(wheel_count(p)):
        strut = x[state_of(at.STRUT, i, p.rotors)]
        scratch.point_x[i] += r02 * strut
        scratch.point_y[i] += r12 * strut
        scratch.point_height[i] += r22 * strut
    hub_z = scratch.point_height[0]
    heights_above_ground(ground, 0, first_corner(p), scratch)
    if any_lane(corners_may_touch(x, hub_z, p, ground, scratch)):
        heights_above_ground(ground, first_corner(p), count, scratch)
    else:
        for k in range(first_corner(p), first_rotor(p)):
            scratch.point_height[k] = np.inf
        heights_above_ground(ground, first_rotor(p), count, scratch)
    clearance = np.inf
    off_map = 0.0
    for i in range(wheel_count(p)):
        clearance = min(clearance, scratch.point_height[i] - p.wheel_radius)
        off_x = (scratch.point_x[i] < ground.x_min) | (scratch.point_x[i] > ground.x_max)
        off_y = (scratch.point_y[i] < ground.y_min) | (scratch.point_y[i] > ground.y_max)
        off_map += where(off_x | off_y, 1.0, 0.0)
    scratch.clearance = clearance
    scratch.wheels_off_map = off_map


@inlined_kernel
def corners_may_touch(x: Any, hub_z: float, p: Any, ground: Any, scratch: Any) -> Any:
    """False only where the steepest ground of the map could not rise from below the first hub, at
    `hub_z`, to a corner.

    The heights of the corners are still those above z = 0.
    """
    lowest = scratch.point_height[first_corner(p)]
    for k in range(first_corner(p) + 1, first_rotor(p)):
        lowest = min(lowest, scratch.point_height[k])
    gap = lowest - hub_z + scratch.point_height[0]
    reach = p.corner_reach + abs(x[at.STRUT])
    upright = ground.least_normal_z * ground.least_normal_z
    return gap * abs(gap) * upright <= reach * reach * (1.0 - upright)
