# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion of the body, and the forces on it: weight, drag, contacts of its box and rotor hubs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_amphibious.dynamics.environment import density_ratio, ground_normal, heights_above_ground
from rfly_amphibious.vehicle.state_layout import CORNERS, FIRST_CORNER, FIRST_ROTOR, POINTS
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, first_vector, plain, vectors, where
from rfly_common.kernels.record_vectors import quaternion, vector
from rfly_common.kernels.vectors import (
    Matrix,
    Vector,
    add,
    cross,
    dot,
    only_where,
    rotated,
    rotated_back,
    rotation_matrix,
    scaled,
    subtract,
)

SLIDING_SPEED = 0.1
"""Sliding speed, m/s, well above which the body's friction is full. Eq. 6.4."""


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
    # no expression in the `return`: Python 3.12 and newer return from each of its branches, and
    # numba then finds two types in a batch
    air = 1.0
    if p.standard_atmosphere:
        air = density_ratio(p, x.position[2])
    return BodyMotion(
        rotation,
        rotated_back(rotation, velocity),
        rotated_back(rotation, subtract(velocity, wind)),
        vector(x.rates),
        scaled(-p.gravity, up),
        air,
    )


@inlined_kernel
def place_points(x: Any, rotation: Matrix, p: Any, ground: Any, points: Any) -> Any:
    """Fill and return `points`: hubs, corners of the body box and rotor hubs. Eq. 3.1, 5.2."""
    position = vector(x.position)
    place_group(points, 0, p.wheels, p, x.strut, position, rotation)
    place_group(points, FIRST_ROTOR, p.rotors, p, None, position, rotation)
    place_group(points, FIRST_CORNER, CORNERS, p, None, position, rotation)

    # look up the corners only where they may touch
    each = plain(points)
    hub_z = each.height[0]
    heights_above_ground(ground, points, 0, p.wheels)
    heights_above_ground(ground, points, FIRST_ROTOR, p.rotors)
    if any_lane(corners_may_touch(plain(x), hub_z, p, ground, each)):
        heights_above_ground(ground, points, FIRST_CORNER, CORNERS)
    else:
        first = first_vector(points, FIRST_CORNER)
        for k in range(first, first + vectors(points, CORNERS)):
            points.height[k] = np.inf

    clearance = np.inf
    for i in range(p.wheels):
        clearance = min(clearance, each.height[i] - p.wheel_radius)
    points.clearance = clearance
    off_map = 0.0
    for i in range(p.wheels):
        off_x = (each.x[i] < ground.x_min) | (each.x[i] > ground.x_max)
        off_y = (each.y[i] < ground.y_min) | (each.y[i] > ground.y_max)
        off_map += where(off_x | off_y, 1.0, 0.0)
    points.wheels_off_map = off_map
    return points


@inlined_kernel
def place_group(
    points: Any, begin: int, count: int, p: Any, struts: Any, position: Vector, rotation: Matrix
) -> None:
    """Set the places of some points; their heights are those above z = 0 until they are looked up.

    `struts`: travels by which hubs are higher in the body, or None.
    """
    first = first_vector(points, begin)
    for k in range(first, first + vectors(points, count)):
        z = p.point_z[k]
        if struts is not None:
            z += struts[k]
        place = add(position, rotated(rotation, (p.point_x[k], p.point_y[k], z)))
        points.x[k] = place[0]
        points.y[k] = place[1]
        points.height[k] = place[2]


@inlined_kernel
def corners_may_touch(x: Any, hub_z: float, p: Any, ground: Any, points: Any) -> Any:
    """Return False only if the steepest ground of the map could not rise to a corner.

    The ground rises from below the first hub, whose z is `hub_z`. The heights of the corners are
    still those above z = 0.
    """
    lowest = points.height[FIRST_CORNER]
    for k in range(FIRST_CORNER + 1, POINTS):
        lowest = min(lowest, points.height[k])
    gap = lowest - hub_z + points.height[0]
    reach = p.corner_reach + abs(x.strut[0])
    upright = ground.least_normal_z * ground.least_normal_z
    return gap * abs(gap) * upright <= reach * reach * (1.0 - upright)


@inlined_kernel
def contact_force(
    point: Vector, depth: float, normal: Vector, motion: BodyMotion, p: Any
) -> Vector:
    """Return F_c, N, body axes, on a point `depth` m below the ground's plane. Eq. 6.4."""
    velocity = add(motion.velocity, cross(motion.rates, point))
    approach = dot(velocity, normal)
    push = max(0.0, p.body_stiffness * depth - p.body_damping * approach)

    # Coulomb friction, softened at low speed
    sliding = add(velocity, scaled(-approach, normal))
    speed = math.sqrt(dot(sliding, sliding))
    friction = p.body_friction * push * math.tanh(speed / SLIDING_SPEED) / max(speed, 1e-12)
    return add(scaled(push, normal), scaled(-friction, sliding))


@inlined_kernel
def body_contact_forces(
    motion: BodyMotion, p: Any, ground: Any, points: Any, solids: Any, outputs: Any
) -> tuple[Vector, Vector]:
    """Return (force, moment) of all contact points on the body, N and N m, body axes.

    Eq. 6.4, 7.2.
    """
    force = (0.0, 0.0, 0.0)
    moment = (0.0, 0.0, 0.0)
    each = plain(points)
    body = plain(p)
    points_down = 0.0
    # no early return: it would cost counting the references of the ground's arrays
    for k in range(FIRST_ROTOR, POINTS if some_below(points) else FIRST_ROTOR):
        if FIRST_ROTOR + p.rotors <= k < FIRST_CORNER:
            continue
        down = each.height[k] < 0.0
        if not any_lane(down):
            continue
        points_down += where(down, 1.0, 0.0)

        point = (body.point_x[k], body.point_y[k], body.point_z[k])
        world_normal = ground_normal(ground, each, k)
        normal = rotated_back(motion.rotation, world_normal)
        depth = -each.height[k] * world_normal[2]
        pressed = only_where(down, contact_force(point, depth, normal, motion, p))
        force = add(force, pressed)
        moment = add(moment, cross(point, pressed))
    outputs.body_points_down = points_down + solids.hull_contacts
    return force, moment


@inlined_kernel
def some_below(points: Any) -> bool:
    """Return False only if all corners and rotor hubs are above the ground."""
    first = first_vector(points, FIRST_ROTOR)
    below = points.height[first] < 0.0
    for k in range(first + 1, first_vector(points, POINTS)):
        below |= points.height[k] < 0.0
    return any_lane(below)


@inlined_kernel
def weight_and_drag(motion: BodyMotion, p: Any) -> tuple[Vector, Vector]:
    """Return (force, moment) on the sprung body, N and N m, body axes.

    These are the first terms of Eq. 7.1 and 7.2.
    """
    gravity = motion.gravity
    air = motion.air_velocity
    rates = motion.rates
    quadratic = motion.density_ratio * math.sqrt(dot(air, air))
    force = (
        p.mass_sprung * gravity[0] - (p.linear_drag[0] + quadratic * p.drag_area[0]) * air[0],
        p.mass_sprung * gravity[1] - (p.linear_drag[1] + quadratic * p.drag_area[1]) * air[1],
        p.mass_sprung * gravity[2] - (p.linear_drag[2] + quadratic * p.drag_area[2]) * air[2],
    )
    moment = (
        -p.rotational_drag[0] * rates[0],
        -p.rotational_drag[1] * rates[1],
        -p.rotational_drag[2] * rates[2],
    )
    return force, moment
