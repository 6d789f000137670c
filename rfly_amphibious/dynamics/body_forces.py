# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Forces on the body itself: weight, drag, and contacts of its box and rotor hubs."""

from __future__ import annotations

import math
from typing import Any

from rfly_amphibious.dynamics.body_motion import BodyMotion
from rfly_amphibious.dynamics.environment import ground_normal
from rfly_amphibious.vehicle.state_layout import FIRST_CORNER, FIRST_ROTOR, POINTS
from rfly_common.kernels.jit import inlined_kernel
from rfly_common.kernels.lanes import any_lane, first_vector, plain, where
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    dot,
    only_where,
    rotated_back,
    scaled,
)

SLIDING_SPEED = 0.1
"""Sliding speed, m/s, well above which the body's friction is full. Eq. 6.4."""


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
