# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: exact signed distance of two boxes, or of two spheres or capsules.

Two boxes are separated along the normal of a face of either, or along the cross product of an edge
of each. No other axis is needed: these are the normals of all faces of their Minkowski difference
(separating axes). Spheres and capsules take the least distance of two line segments (C. Ericson,
"Real-Time Collision Detection", 2005, section 5.1.9).

All return an `Axis`: the separation and the unit normal from b to a, world axes. A separation <= 0
is the negative depth. One above 0 is a lower bound of the distance, and it holds along this axis as
long as the axis does not turn. Poses are (4, 3): the rotation matrix body -> world and, in the last
row, the position. Shapes are rows of the table.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_collision.shapes.shape import TOUCHING, ShapeTable
from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    divided,
    dot,
    matrix_at,
    norm,
    rotated,
    rotated_back,
    scaled,
    subtract,
    vector_at,
)

Axis = tuple[float, Vector]
"""Separation, m, and unit normal from b to a."""

Line = tuple[Vector, Vector]
"""Ends of a line segment, which may be the same point."""

Axes = tuple[Vector, Vector, Vector]
"""Directions of a body's axes x, y, z in world axes."""

UP = (0.0, 0.0, 1.0)

FAR = 1e300
"""Larger than any separation, m."""

EDGE_HANDICAP = 1e-7
"""Lead, m, that two edges need over two faces. Without it parallel edges would win by rounding."""

PARALLEL = 1e-10
"""Squared sine of the angle between two edges below which they have no cross product."""

SAME_POINT = 1e-12
"""Distance of two cores, m, below which there is no direction between them."""


@inlined_kernel
def to_world(pose: Any, point: Vector) -> Vector:
    """Return a point of the body in world axes."""
    return add(rotated(matrix_at(pose), point), vector_at(pose, 3, 0))


@inlined_kernel
def to_body(pose: Any, point: Vector) -> Vector:
    """Return a point of the world in body axes."""
    return rotated_back(matrix_at(pose), subtract(point, vector_at(pose, 3, 0)))


@inlined_kernel
def body_axis(pose: Any, k: int) -> Vector:
    """Return the direction of the body's axis k in world axes."""
    return pose[0, k], pose[1, k], pose[2, k]


@inner_kernel
def boxes(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool) -> Axis:
    """Return the axis between two boxes, out of 15.

    `best`: the best axis; otherwise the first one along which they are more than TOUCHING apart.
    """
    centre_a = to_world(pose_a, vector_at(table.centre, a, 0))
    centre_b = to_world(pose_b, vector_at(table.centre, b, 0))
    offset = subtract(centre_b, centre_a)
    half_a = vector_at(table.half, a, 0)
    half_b = vector_at(table.half, b, 0)
    axes_a = (body_axis(pose_a, 0), body_axis(pose_a, 1), body_axis(pose_a, 2))
    axes_b = (body_axis(pose_b, 0), body_axis(pose_b, 1), body_axis(pose_b, 2))

    axis = (-FAR, UP)
    for k in range(3):
        axis = better_face(axis, offset, body_axis(pose_a, k), table.half[a, k], half_b, axes_b)
    if axis[0] > TOUCHING and not best:
        return axis

    for k in range(3):
        axis = better_face(axis, offset, body_axis(pose_b, k), table.half[b, k], half_a, axes_a)
    if axis[0] > TOUCHING and not best:
        return axis

    separation, normal = axis
    handicap = EDGE_HANDICAP
    for i in range(3):
        edge_a = body_axis(pose_a, i)
        for j in range(3):
            across = cross(edge_a, body_axis(pose_b, j))
            square = dot(across, across)
            if square < PARALLEL:
                continue

            length = math.sqrt(square)
            along = dot(offset, across)
            reach = reach_along(half_a, axes_a, across) + reach_along(half_b, axes_b, across)
            apart = abs(along) - reach
            if apart > (separation + handicap) * length:
                separation = apart / length
                normal = scaled((-1.0 if along > 0.0 else 1.0) / length, across)
                handicap = 0.0
                if separation > TOUCHING and not best:
                    return separation, normal

    return separation, normal


@inlined_kernel
def better_face(
    axis: Axis, offset: Vector, face: Vector, half: float, other_half: Vector, other_axes: Axes
) -> Axis:
    """Return the better of `axis` and a face normal of a box that is `half` m from its centre.

    `offset`: from the centre of a to that of b. The other box is given by half sides and axes.
    """
    along = dot(offset, face)
    apart = abs(along) - half - reach_along(other_half, other_axes, face)
    if apart > axis[0]:
        return apart, scaled(-1.0 if along > 0.0 else 1.0, face)
    return axis


@inlined_kernel
def reach_along(half: Vector, axes: Axes, axis: Vector) -> float:
    """Return how far a box reaches from its centre along an axis, in units of the axis' length."""
    return (
        half[0] * abs(dot(axis, axes[0]))
        + half[1] * abs(dot(axis, axes[1]))
        + half[2] * abs(dot(axis, axes[2]))
    )


@inlined_kernel
def clamped_share(part: float, whole: float) -> float:
    """Return part / whole, limited to 0 … 1; 0 if the whole is not positive."""
    if whole <= 0.0:
        return 0.0
    return min(max(part / whole, 0.0), 1.0)


@inner_kernel
def nearest_of_lines(p: Line, q: Line) -> tuple[float, float]:
    """Return where two lines are nearest to each other: a share 0 … 1 of each."""
    u = subtract(p[1], p[0])
    v = subtract(q[1], q[0])
    w = subtract(p[0], q[0])
    uu = dot(u, u)
    vv = dot(v, v)
    uv = dot(u, v)
    uw = dot(u, w)
    vw = dot(v, w)

    # one of them is a point
    if uu <= 0.0:
        return 0.0, clamped_share(vw, vv)
    if vv <= 0.0:
        return clamped_share(-uw, uu), 0.0

    # parallel lines: from the begin of p
    square = uu * vv - uv * uv
    s = 0.0
    if square > PARALLEL * uu * vv:
        s = clamped_share(uv * vw - uw * vv, square)

    # an end of q is nearest
    t = (uv * s + vw) / vv
    if t < 0.0:
        return clamped_share(-uw, uu), 0.0
    if t > 1.0:
        return clamped_share(uv - uw, uu), 1.0

    return s, t


@inlined_kernel
def vector_between(p: Line, s: float, q: Line, t: float) -> Vector:
    """Return the vector from a share t of the line q to a share s of the line p."""
    on_p = add(p[0], scaled(s, subtract(p[1], p[0])))
    return subtract(subtract(on_p, q[0]), scaled(t, subtract(q[1], q[0])))


@inner_kernel
def rounds(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any) -> Axis:
    """Return the axis between two shapes that are points or lines with radii."""
    line_a = core_line(table, a, pose_a)
    line_b = core_line(table, b, pose_b)
    s, t = nearest_of_lines(line_a, line_b)
    offset = vector_between(line_a, s, line_b, t)
    distance = norm(offset)
    radii = table.radius[a] + table.radius[b]

    if distance > SAME_POINT:
        return distance - radii, divided(offset, distance)

    # the cores cross: the shortest way out is at right angles to both lines
    return -radii, normal_of_lines(subtract(line_a[1], line_a[0]), subtract(line_b[1], line_b[0]))


@inner_kernel
def normal_of_lines(u: Vector, v: Vector) -> Vector:
    """Return a unit vector at right angles to two directions, of which either may be 0."""
    normal = cross(u, v)
    uu = dot(u, u)
    if dot(normal, normal) <= PARALLEL * uu * dot(v, v):
        normal = upward_normal(u if uu > 0.0 else v)
    return divided(normal, norm(normal))


@inner_kernel
def upward_normal(direction: Vector) -> Vector:
    """Return a vector at right angles to a direction, as steep as possible; up if there is none."""
    x, y, z = direction
    flat = x * x + y * y
    if flat > 0.0:
        return -x * z, -y * z, flat
    if z != 0.0:
        return 1.0, 0.0, 0.0
    return UP


@inner_kernel
def core_line(table: ShapeTable, shape: int, pose: Any) -> Line:
    """Return the core of a sphere (its centre twice) or capsule, world axes."""
    first = table.first[shape, 0]
    last = table.first[shape + 1, 0] - 1
    return (
        to_world(pose, vector_at(table.vertices, first, 0)),
        to_world(pose, vector_at(table.vertices, last, 0)),
    )
