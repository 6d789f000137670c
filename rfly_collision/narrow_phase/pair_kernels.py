# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: pairs of bodies over a step, contact and time of impact.

Conservative advancement: along the best separating axis, which does not turn, two bodies approach
by their relative velocity along it and by what their rotation can add. They cannot touch before
separation / approach has passed, so the time advances by it. If they do not approach they never
touch in this step. Bodies never tunnel, however fast they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.bodies import PairScratch, PlacedShapes, SweptMotion, Touches
from rfly_collision.narrow_phase.contact_point import contact_point
from rfly_collision.narrow_phase.distance_kernels import UP, Axis, boxes, rounds
from rfly_collision.narrow_phase.polyhedron_kernels import polyhedra, round_and_polyhedron
from rfly_collision.shapes.shape import BOX, ROUND, TOUCHING, ShapeTable
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    divided,
    dot,
    norm,
    scaled,
    set_vector,
    subtract,
    vector_at,
)

ARRIVED = 1e-6
"""Separation at which the search for the time of impact ends, m."""

FINE_STEPS = 64
"""Steps by the bound alone.

Bodies that glide past each other may need many; from then on each step is at least
dt / COARSE_STEPS.
"""

COARSE_STEPS = 1024
"""Parts of dt that a step has at least after FINE_STEPS."""

NEVER = math.inf


@inlined_kernel
def separation(
    table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool, vertices: Any
) -> Axis:
    """Return the axis between the shapes a and b at two poses; see `distance_kernels`.

    `best`: the best axis; otherwise any axis that separates them does. `vertices`: scratch, (most
    vertices, 3).
    """
    if table.kind[a] == BOX and table.kind[b] == BOX:
        return boxes(table, a, b, pose_a, pose_b, best)
    if table.kind[a] == ROUND:
        if table.kind[b] == ROUND:
            return rounds(table, a, b, pose_a, pose_b)
        return round_and_polyhedron(table, a, b, pose_a, pose_b)
    if table.kind[b] == ROUND:
        apart, normal = round_and_polyhedron(table, b, a, pose_b, pose_a)
        return apart, scaled(-1.0, normal)
    return polyhedra(table, a, b, pose_a, pose_b, best, vertices)


@inlined_kernel
def pose_before(motion: SweptMotion, rotation: Any, body: int, before: float, pose: Any) -> None:
    """Write the pose of a body some seconds before the end of the step to `pose` (4, 3)."""
    velocity = vector_at(motion.velocity, body, 0)
    position = vector_at(motion.position, body, 0)
    set_vector(pose, 3, 0, subtract(position, scaled(before, velocity)))
    for i in range(3):
        for j in range(3):
            pose[i, j] = rotation[body, i, j]

    turning = vector_at(motion.angular_velocity, body, 0)
    rate = norm(turning)
    if rate * before == 0.0:
        return

    # turned back about the body's own axis (Rodrigues)
    axis = divided(turning, rate)
    sine = math.sin(-rate * before)
    cosine = math.cos(rate * before)
    for i in range(3):
        row = vector_at(pose, i, 0)
        along = (1.0 - cosine) * dot(row, axis)
        turned = add(scaled(cosine, row), scaled(sine, cross(row, axis)))
        set_vector(pose, i, 0, add(turned, scaled(along, axis)))


@inlined_kernel
def set_poses(
    motion: SweptMotion, rotation: Any, a: int, b: int, before: float, scratch: PairScratch
) -> None:
    """Write the poses of two bodies some seconds before the end of the step to the scratch."""
    pose_before(motion, rotation, a, before, scratch.pose_a)
    pose_before(motion, rotation, b, before, scratch.pose_b)


@inlined_kernel
def fastest_approach(
    table: ShapeTable, motion: SweptMotion, a: int, b: int
) -> tuple[Vector, float]:
    """Return the velocity of b relative to a, and the most that rotation adds to it, m/s."""
    velocity = subtract(vector_at(motion.velocity, b, 0), vector_at(motion.velocity, a, 0))
    turning_a = norm(vector_at(motion.angular_velocity, a, 0))
    turning_b = norm(vector_at(motion.angular_velocity, b, 0))
    by_turning = (
        turning_a * table.reach[motion.shape_index[a]]
        + turning_b * table.reach[motion.shape_index[b]]
    )
    return velocity, by_turning


@inlined_kernel
def first_touch(
    table: ShapeTable,
    motion: SweptMotion,
    rotation: Any,
    a: int,
    b: int,
    dt: float,
    scratch: PairScratch,
) -> tuple[float, Vector]:
    """Return the seconds from the step's begin to the first touch of two bodies, and its normal.

    The time is NEVER, or more than dt, if they do not touch. The scratch keeps the poses of that
    moment.
    """
    shape_a = motion.shape_index[a]
    shape_b = motion.shape_index[b]
    velocity, by_turning = fastest_approach(table, motion, a, b)
    time = 0.0
    steps = 0
    normal = UP
    while time <= dt:
        set_poses(motion, rotation, a, b, dt - time, scratch)
        gap, normal = separation(
            table, shape_a, shape_b, scratch.pose_a, scratch.pose_b, True, scratch.vertices
        )
        if gap <= (TOUCHING if time == 0.0 else ARRIVED):
            return time, normal

        approach = by_turning + dot(velocity, normal)
        if approach <= 0.0:
            break

        step = gap / approach
        steps += 1
        if steps > FINE_STEPS:
            step = max(step, dt / COARSE_STEPS)
        time += step
    return NEVER, normal


@kernel
def pair_contacts(
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    pairs: Any,
    touches: Touches,
) -> None:
    """Test pairs (m, 2) of bodies and write the results to `touches`."""
    rotation = placed.rotation
    scratch = PairScratch(
        np.empty((4, 3)),
        np.empty((4, 3)),
        np.empty((table.most_vertices, 3)),
        np.empty((4, 2 * table.most_vertices + 8, 2)),
    )
    for m in range(pairs.shape[0]):
        a = pairs[m, 0]
        b = pairs[m, 1]
        shape_a = motion.shape_index[a]
        shape_b = motion.shape_index[b]

        # at the end of the step
        set_poses(motion, rotation, a, b, 0.0, scratch)
        apart, normal = separation(
            table, shape_a, shape_b, scratch.pose_a, scratch.pose_b, False, scratch.vertices
        )
        touches_at_end = apart <= TOUCHING
        touches.touching[m] = touches_at_end
        time = 0.0

        # on the way
        if dt > 0.0:
            velocity, by_turning = fastest_approach(table, motion, a, b)
            if not touches_at_end and apart > (by_turning - dot(velocity, normal)) * dt:
                continue  # this axis has separated them all the time

            time, normal_on_the_way = first_touch(table, motion, rotation, a, b, dt, scratch)
            if touches_at_end:
                time = min(time, dt)
                set_poses(motion, rotation, a, b, 0.0, scratch)
            elif time <= dt:
                touches.touching[m] = True
                apart = ARRIVED
                normal = normal_on_the_way

        if touches.touching[m]:
            point = contact_point(
                table,
                shape_a,
                shape_b,
                scratch.pose_a,
                scratch.pose_b,
                (apart, normal),
                scratch.polygons,
            )
            set_vector(touches.points, m, 0, point)
            set_vector(touches.normals, m, 0, normal)
            touches.depths[m] = max(-apart, 0.0)
            touches.times[m] = time
