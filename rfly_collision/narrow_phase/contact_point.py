# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: the middle of the contact of two convex shapes along a known normal.

The foremost vertices of each along the normal (a face that lies flat, an edge, or one vertex) are
projected along it and clipped against each other. The centroid of the rest is the middle, half-way
between both surfaces. If bodies are deep within each other it may lie outside one of them; then the
search goes on to a point of both.

Functions that take the table are inlined: it is a dozen arrays, which a call would copy.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_collision.narrow_phase.distance_kernels import (
    FAR,
    PARALLEL,
    Axis,
    clamped_share,
    to_body,
)
from rfly_collision.narrow_phase.polyhedron_kernels import from_triangle
from rfly_collision.shapes.shape import BOX, HULL, ShapeTable
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
    scaled,
    subtract,
    vector_at,
)

FLATNESS = 1e-3
"""Share of a shape's extent: vertices no farther than this behind the foremost one count, too.

So a shape that lies flat is found to lie flat.
"""

CUTS = 200
"""Most steps to a point of both bodies."""

RELAXATION = 1.95
"""Length of a step, as a share of the way to both half-spaces.

Steps that go beyond the bodies' surfaces end within them; exact ones only come near.
"""

INSIDE = 1e-10
"""Distance, m, below which a point counts as one of the body."""

ZERO = (0.0, 0.0, 0.0)

HalfSpace = tuple[Vector, float]
"""Unit normal into it, and distance of its plane from 0 along the normal, m."""

EVERYWHERE = (ZERO, 0.0)
"""The half-space of a body before its first cut."""


@inner_kernel
def contact_point(
    table: ShapeTable,
    a: int,
    b: int,
    pose_a: Any,
    pose_b: Any,
    axis: Axis,
    polygons: Any,
) -> Vector:
    """Return the middle of a contact along the axis between two bodies, ENU.

    It is in both bodies, or no farther from either than the gap between them. `polygons`: scratch,
    (4, 2·most vertices + 8, 2).
    """
    gap, normal = axis
    u, v = plane_axes(normal)
    count_a, front_a = foremost(table, a, pose_a, scaled(-1.0, normal), u, v, polygons[0])
    count_b, front_b = foremost(table, b, pose_b, normal, u, v, polygons[1])

    # the polygon with fewer corners is clipped by the other
    few = 0 if count_a <= count_b else 1
    p, q = shared_middle(
        polygons[few],
        min(count_a, count_b),
        polygons[1 - few],
        max(count_a, count_b),
        polygons[2],
        polygons[3],
    )
    r = 0.5 * (front_b - front_a)
    middle = add(add(scaled(p, u), scaled(q, v)), scaled(r, normal))

    return point_of_both(table, a, b, pose_a, pose_b, max(gap, 0.0) + INSIDE, middle)


@inlined_kernel
def plane_axes(normal: Vector) -> tuple[Vector, Vector]:
    """Return two unit vectors at right angles to a normal and to each other."""
    x, y, z = normal
    u = (0.0, z, -y) if abs(x) < 0.7 else (-z, 0.0, x)
    u = divided(u, norm(u))
    return u, cross(normal, u)


@inner_kernel
def point_of_both(
    table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, slack: float, point: Vector
) -> Vector:
    """Return a point of both bodies near `point`, by cuts.

    Deep within each other the foremost vertex of one may lie outside the other. The nearest point
    of a body and the way there make a half-space that holds the whole body. The point moves to the
    intersection of the latest half-space of each body.
    """
    half_space_a = EVERYWHERE
    half_space_b = EVERYWHERE
    for _ in range(CUTS):
        to_a = subtract(nearest_point(table, a, pose_a, point), point)
        to_b = subtract(nearest_point(table, b, pose_b, point), point)
        if max(dot(to_a, to_a), dot(to_b, to_b)) < slack * slack:
            break

        half_space_a = cut(half_space_a, point, to_a)
        half_space_b = cut(half_space_b, point, to_b)
        way = way_into(half_space_a, half_space_b, point)
        point = add(point, scaled(RELAXATION, way))
    return point


@inlined_kernel
def cut(half_space: HalfSpace, point: Vector, way: Vector) -> HalfSpace:
    """Return the half-space that begins at the end of the way from a point, if there is one."""
    distance = norm(way)
    if distance == 0.0:
        return half_space
    normal = divided(way, distance)
    return normal, dot(normal, point) + distance


@inlined_kernel
def way_into(a: HalfSpace, b: HalfSpace, point: Vector) -> Vector:
    """Return the way from a point to the nearest point of two half-spaces."""
    lack_a = a[1] - dot(a[0], point)
    lack_b = b[1] - dot(b[0], point)
    cosine = dot(a[0], b[0])
    square = 1.0 - cosine * cosine

    way_a = max(lack_a, 0.0)
    way_b = max(lack_b, 0.0)
    if lack_b <= cosine * way_a:
        way_b = 0.0
    elif lack_a <= cosine * way_b:
        way_a = 0.0
    elif square > PARALLEL:
        way_a = (lack_a - cosine * lack_b) / square
        way_b = (lack_b - cosine * lack_a) / square
    return add(scaled(way_a, a[0]), scaled(way_b, b[0]))


@inlined_kernel
def nearest_point(table: ShapeTable, shape: int, pose: Any, point: Vector) -> Vector:
    """Return the point of a body that is nearest to a point, which is itself if inside."""
    in_body = to_body(pose, point)
    if table.kind[shape] == BOX:
        outside = beyond_box(table, shape, in_body)
    elif table.kind[shape] == HULL:
        outside = beyond_hull(table, shape, in_body)
    else:
        outside = beyond_round(table, shape, in_body)
    if dot(outside, outside) == 0.0:
        return point
    return subtract(point, rotated(matrix_at(pose), outside))


@inner_kernel
def beyond_box(table: ShapeTable, shape: int, point: Vector) -> Vector:
    """Return the vector from the nearest point of a box to a point, body axes."""
    x, y, z = subtract(point, vector_at(table.centre, shape, 0))
    half_x, half_y, half_z = vector_at(table.half, shape, 0)
    return (
        x - min(max(x, -half_x), half_x),
        y - min(max(y, -half_y), half_y),
        z - min(max(z, -half_z), half_z),
    )


@inner_kernel
def beyond_hull(table: ShapeTable, shape: int, point: Vector) -> Vector:
    """Return the vector from the nearest point of a hull to a point, body axes."""
    outside = -1.0
    for f in range(table.first[shape, 1], table.first[shape + 1, 1]):
        outside = max(outside, dot(vector_at(table.planes, f, 0), point) - table.planes[f, 3])
    if outside <= 0.0:
        return ZERO

    least = FAR
    nearest = ZERO
    for t in range(table.first[shape, 3], table.first[shape + 1, 3]):
        offset = from_triangle(table, t, point)
        square = dot(offset, offset)
        if square < least:
            least = square
            nearest = offset
    return nearest


@inner_kernel
def beyond_round(table: ShapeTable, shape: int, point: Vector) -> Vector:
    """Return the vector from the nearest point of a sphere or capsule to a point, body axes."""
    begin = vector_at(table.vertices, table.first[shape, 0], 0)
    end = vector_at(table.vertices, table.first[shape + 1, 0] - 1, 0)
    direction = subtract(end, begin)
    offset = subtract(point, begin)
    share = clamped_share(dot(offset, direction), dot(direction, direction))
    offset = subtract(offset, scaled(share, direction))

    distance = norm(offset)
    radius = table.radius[shape]
    if distance <= radius:
        return ZERO
    return scaled(1.0 - radius / distance, offset)


@inlined_kernel
def foremost(
    table: ShapeTable, shape: int, pose: Any, towards: Vector, u: Vector, v: Vector, corners: Any
) -> tuple[int, float]:
    """Find the foremost vertices of a shape; return their number and how far the shape reaches.

    `corners` receives them along the axes u and v, in counter-clockwise order.
    """
    first = table.first[shape, 0]
    end = table.first[shape + 1, 0]
    rotation = matrix_at(pose)
    position = vector_at(pose, 3, 0)
    front = -FAR
    for row in range(first, end):
        vertex = add(rotated(rotation, vector_at(table.vertices, row, 0)), position)
        front = max(front, dot(towards, vertex))

    limit = front - FLATNESS * table.extent[shape]
    count = 0
    for row in range(first, end):
        vertex = add(rotated(rotation, vector_at(table.vertices, row, 0)), position)
        if dot(towards, vertex) >= limit:
            corners[count, 0] = dot(u, vertex)
            corners[count, 1] = dot(v, vertex)
            count += 1

    if count > 2:
        sort_by_angle(corners, count)
    return count, front + table.radius[shape]


@inner_kernel
def sort_by_angle(corners: Any, count: int) -> None:
    """Sort points of the plane counter-clockwise around their mean, in place, by insertion."""
    mean_p = 0.0
    mean_q = 0.0
    for k in range(count):
        mean_p += corners[k, 0]
        mean_q += corners[k, 1]
    mean_p /= count
    mean_q /= count

    for i in range(1, count):
        p = corners[i, 0]
        q = corners[i, 1]
        angle = math.atan2(q - mean_q, p - mean_p)
        k = i
        while k > 0 and math.atan2(corners[k - 1, 1] - mean_q, corners[k - 1, 0] - mean_p) > angle:
            corners[k, 0] = corners[k - 1, 0]
            corners[k, 1] = corners[k - 1, 1]
            k -= 1
        corners[k, 0] = p
        corners[k, 1] = q


@inner_kernel
def shared_middle(
    few: Any, few_count: int, many: Any, many_count: int, polygon: Any, spare: Any
) -> tuple[float, float]:
    """Return the middle of the intersection of two points, lines or convex polygons.

    few_count <= many_count; `polygon`, `spare`: scratch.
    """
    if many_count == 1:
        return 0.5 * (few[0, 0] + many[0, 0]), 0.5 * (few[0, 1] + many[0, 1])
    if few_count == 1:
        return few[0, 0], few[0, 1]
    if many_count == 2:
        return middle_of_lines(few, many)

    count = few_count
    for i in range(few_count):
        polygon[i, 0] = few[i, 0]
        polygon[i, 1] = few[i, 1]

    # side after side (Sutherland and Hodgman)
    for i in range(many_count):
        clipped = clip(polygon, count, many, i, (i + 1) % many_count, spare)
        if clipped == 0:
            break
        polygon, spare = spare, polygon
        count = clipped

    return middle_of_polygon(polygon, count, few_count == 2)


@inlined_kernel
def clip(polygon: Any, count: int, sides: Any, begin: int, end: int, clipped: Any) -> int:
    """Write the part of a polygon left of one side to `clipped`; return its number of corners."""
    p = sides[begin, 0]
    q = sides[begin, 1]
    side_p = sides[end, 0] - p
    side_q = sides[end, 1] - q
    corners = 0
    for k in range(count):
        following = (k + 1) % count
        left = side_p * (polygon[k, 1] - q) - side_q * (polygon[k, 0] - p)
        left_after = side_p * (polygon[following, 1] - q) - side_q * (polygon[following, 0] - p)

        if left >= 0.0:
            clipped[corners, 0] = polygon[k, 0]
            clipped[corners, 1] = polygon[k, 1]
            corners += 1

        # the polygon crosses the side
        if (left >= 0.0) != (left_after >= 0.0):
            share = left / (left - left_after)
            for axis in range(2):
                way = polygon[following, axis] - polygon[k, axis]
                clipped[corners, axis] = polygon[k, axis] + share * way
            corners += 1
    return corners


@inner_kernel
def middle_of_polygon(polygon: Any, count: int, is_line: bool) -> tuple[float, float]:
    """Return the centroid of a polygon, or the middle of the box around it if it has no area.

    A clipped line (`is_line`) holds its ends twice.
    """
    area = 0.0
    sum_p = 0.0
    sum_q = 0.0
    low_p = polygon[0, 0]
    high_p = polygon[0, 0]
    low_q = polygon[0, 1]
    high_q = polygon[0, 1]

    for k in range(count):
        # triangles with the first corner; areas are twice as large
        following = (k + 1) % count
        ap = polygon[k, 0] - polygon[0, 0]
        aq = polygon[k, 1] - polygon[0, 1]
        bp = polygon[following, 0] - polygon[0, 0]
        bq = polygon[following, 1] - polygon[0, 1]
        triangle = ap * bq - aq * bp
        area += triangle
        sum_p += triangle * (ap + bp)
        sum_q += triangle * (aq + bq)

        low_p = min(low_p, polygon[k, 0])
        high_p = max(high_p, polygon[k, 0])
        low_q = min(low_q, polygon[k, 1])
        high_q = max(high_q, polygon[k, 1])

    size = (high_p - low_p) * (high_p - low_p) + (high_q - low_q) * (high_q - low_q)
    if is_line or area <= PARALLEL * size:
        return 0.5 * (low_p + high_p), 0.5 * (low_q + high_q)
    return polygon[0, 0] + sum_p / (3.0 * area), polygon[0, 1] + sum_q / (3.0 * area)


@inner_kernel
def middle_of_lines(first: Any, second: Any) -> tuple[float, float]:
    """Return where two lines in the plane cross, or the middle of the part that they share."""
    up = first[1, 0] - first[0, 0]
    uq = first[1, 1] - first[0, 1]
    vp = second[1, 0] - second[0, 0]
    vq = second[1, 1] - second[0, 1]
    wp = second[0, 0] - first[0, 0]
    wq = second[0, 1] - first[0, 1]
    uu = up * up + uq * uq
    if uu <= 0.0:
        return first[0, 0], first[0, 1]

    turn = up * vq - uq * vp
    if turn * turn > PARALLEL * uu * (vp * vp + vq * vq):
        share = min(max((wp * vq - wq * vp) / turn, 0.0), 1.0)
        return first[0, 0] + share * up, first[0, 1] + share * uq

    # parallel
    begin = (wp * up + wq * uq) / uu
    end = begin + (vp * up + vq * uq) / uu
    low = min(max(min(begin, end), 0.0), 1.0)
    high = min(max(begin, end, 0.0), 1.0)
    share = 0.5 * (low + high)
    return first[0, 0] + share * up, first[0, 1] + share * uq
