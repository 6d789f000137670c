"""Compiled kernels: pairs of bodies over a step, contact and time of impact.

Conservative advancement: along the best separating axis, which does not turn, two bodies get nearer
by their relative velocity along it and by what their turning can add; nothing can touch before. So
the time goes on by separation / approach, and where they do not approach they never touch in this
step. Nothing tunnels, however fast it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.arguments import PlacedShapes, SweptMotion, Touches
from rfly_collision.narrow_phase.contact_point import contact_point
from rfly_collision.narrow_phase.distance_kernels import Axis, boxes, rounds
from rfly_collision.narrow_phase.polyhedron_kernels import polyhedra, round_and_polyhedron
from rfly_collision.shapes.shape_table import BOX, ROUND, TOUCHING, ShapeTable
from rfly_common.kernels.jit import inner_kernel, kernel

ARRIVED = 1e-6
"""m: the separation at which the search for the time of impact ends"""
FINE_STEPS = 64
COARSE_STEPS = 1024
"""after so many steps by the bound alone, for bodies that glide past each other, one is at least dt
/ COARSE_STEPS
"""
NEVER = math.inf


@inner_kernel
def separation(
    table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool, work: Any
) -> Axis:
    """Of the shapes a and b at two poses, as in `distance_kernels`. `best`: not any axis that parts
    them but the best.

    `work`: scratch, (most vertices, 3).
    """
    if table.kind[a] == BOX and table.kind[b] == BOX:
        return boxes(table, a, b, pose_a, pose_b, best)
    if table.kind[a] == ROUND:
        if table.kind[b] == ROUND:
            return rounds(table, a, b, pose_a, pose_b)
        return round_and_polyhedron(table, a, b, pose_a, pose_b)
    if table.kind[b] == ROUND:
        s, x, y, z = round_and_polyhedron(table, b, a, pose_b, pose_a)
        return s, -x, -y, -z
    return polyhedra(table, a, b, pose_a, pose_b, best, work)


@inner_kernel
def pose_before(motion: SweptMotion, rotation: Any, body: int, before: float, pose: Any) -> None:
    """The pose of a body some seconds before the end of the step -> pose (4, 3)."""
    position = motion.position
    velocity = motion.velocity
    angular_velocity = motion.angular_velocity
    for i in range(3):
        pose[3, i] = position[body, i] - before * velocity[body, i]
        for j in range(3):
            pose[i, j] = rotation[body, i, j]
    wx = angular_velocity[body, 0]
    wy = angular_velocity[body, 1]
    wz = angular_velocity[body, 2]
    rate = math.sqrt(wx * wx + wy * wy + wz * wz)
    if rate * before == 0.0:
        return
    # turned back about the body's own axis (Rodrigues)
    x = wx / rate
    y = wy / rate
    z = wz / rate
    sine = math.sin(-rate * before)
    cosine = math.cos(rate * before)
    rest = 1.0 - cosine
    for i in range(3):
        p = pose[i, 0]
        q = pose[i, 1]
        r = pose[i, 2]
        along = rest * (p * x + q * y + r * z)
        pose[i, 0] = cosine * p + sine * (q * z - r * y) + along * x
        pose[i, 1] = cosine * q + sine * (r * x - p * z) + along * y
        pose[i, 2] = cosine * r + sine * (p * y - q * x) + along * z


@kernel
def pair_contacts(
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    pairs: Any,
    touches: Touches,
) -> None:
    """Pairs (m, 2) of bodies -> touches."""
    shape_index = motion.shape_index
    velocity = motion.velocity
    angular_velocity = motion.angular_velocity
    rotation = placed.rotation
    touching, points, normals, depths, times = touches
    work = np.empty((table.most_vertices, 3))
    polygons = np.empty((4, 2 * table.most_vertices + 8, 2))
    pose_a = np.empty((4, 3))
    pose_b = np.empty((4, 3))
    for m in range(pairs.shape[0]):
        a = pairs[m, 0]
        b = pairs[m, 1]
        shape_a = shape_index[a]
        shape_b = shape_index[b]
        pose_before(motion, rotation, a, 0.0, pose_a)
        pose_before(motion, rotation, b, 0.0, pose_b)
        s, x, y, z = separation(table, shape_a, shape_b, pose_a, pose_b, False, work)
        touching[m] = s <= TOUCHING
        time = 0.0
        if dt > 0.0:
            turn_a = 0.0
            turn_b = 0.0
            dx = 0.0
            dy = 0.0
            dz = 0.0
            for k in range(3):
                turn_a += angular_velocity[a, k] * angular_velocity[a, k]
                turn_b += angular_velocity[b, k] * angular_velocity[b, k]
            dx = velocity[b, 0] - velocity[a, 0]
            dy = velocity[b, 1] - velocity[a, 1]
            dz = velocity[b, 2] - velocity[a, 2]
            by_turning = (
                math.sqrt(turn_a) * table.reach[shape_a] + math.sqrt(turn_b) * table.reach[shape_b]
            )
            if not touching[m] and s > (by_turning - dx * x - dy * y - dz * z) * dt:
                continue  # this axis has parted them all the time
            # found at the end of the step or not: when did they first touch
            when = 0.0
            steps = 0
            cx = x
            cy = y
            cz = z
            time = NEVER
            while True:
                pose_before(motion, rotation, a, dt - when, pose_a)
                pose_before(motion, rotation, b, dt - when, pose_b)
                gap, cx, cy, cz = separation(table, shape_a, shape_b, pose_a, pose_b, True, work)
                if gap <= (TOUCHING if when == 0.0 else ARRIVED):
                    time = when
                    break
                approach = by_turning + dx * cx + dy * cy + dz * cz
                if approach <= 0.0:
                    break
                steps += 1
                step = gap / approach
                if steps > FINE_STEPS:
                    step = max(step, dt / COARSE_STEPS)
                when += step
                if when > dt:
                    break
            if touching[m]:
                time = min(time, dt)
                pose_before(motion, rotation, a, 0.0, pose_a)
                pose_before(motion, rotation, b, 0.0, pose_b)
            elif time <= dt:
                touching[m] = True
                s = 0.0
                x = cx
                y = cy
                z = cz
        if touching[m]:
            points[m, 0], points[m, 1], points[m, 2] = contact_point(
                table, shape_a, shape_b, pose_a, pose_b, (x, y, z), polygons
            )
            normals[m, 0] = x
            normals[m, 1] = y
            normals[m, 2] = z
            depths[m] = max(-s, 0.0)
            times[m] = time
