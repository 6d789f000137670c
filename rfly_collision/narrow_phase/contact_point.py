"""Compiled kernels: the middle of the contact of two convex shapes along a known normal.

The corners of each that lie foremost along the normal (all of a face that lies flat, an edge, or
one) are projected along it and clipped against each other; the centroid of what is left is the
middle, half-way between both surfaces. Of bodies deep within each other that may lie beside one of
them; then the nearest point of both is taken.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_collision.narrow_phase.distance_kernels import PARALLEL, to_world
from rfly_collision.narrow_phase.polyhedron_kernels import from_triangle, to_body
from rfly_collision.shapes.shape_table import BOX, HULL, ShapeTable
from rfly_common.kernels.jit import inner_kernel

FLATNESS = 1e-3
"""of a shape's extent: how far behind the foremost corner others still count, so that what lies
flat lies flat
"""
PROJECTIONS = 60
"""steps on the way to a point of both bodies"""
SMALL = 1e-5
"""m: nearer than that is in it"""


@inner_kernel
def contact_point(
    table: ShapeTable,
    a: int,
    b: int,
    pose_a: Any,
    pose_b: Any,
    normal: tuple[float, float, float],
    polygons: Any,
) -> tuple[float, float, float]:
    """The middle, ENU; the normal points from b to a. `polygons`: scratch, (4, 2·most vertices + 8,
    2).
    """
    nx, ny, nz = normal
    if abs(nx) < 0.7:
        ux = 0.0
        uy = nz
        uz = -ny
    else:
        ux = -nz
        uy = 0.0
        uz = nx
    norm = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux = ux / norm
    uy = uy / norm
    uz = uz / norm
    vx = ny * uz - nz * uy
    vy = nz * ux - nx * uz
    vz = nx * uy - ny * ux
    axes = ((ux, uy, uz), (vx, vy, vz))
    count_a, front_a = foremost(table, a, pose_a, (-nx, -ny, -nz), axes, polygons[0])
    count_b, front_b = foremost(table, b, pose_b, (nx, ny, nz), axes, polygons[1])
    if count_a <= count_b:
        p, q = shared_middle(polygons[0], count_a, polygons[1], count_b, polygons[2], polygons[3])
    else:
        p, q = shared_middle(polygons[1], count_b, polygons[0], count_a, polygons[2], polygons[3])
    r = 0.5 * (front_b - front_a)
    x = p * ux + q * vx + r * nx
    y = p * uy + q * vy + r * ny
    z = p * uz + q * vz + r * nz
    # deep within each other the foremost corner may lie beside the other body: on to a point of
    # both
    for _ in range(PROJECTIONS):
        ax, ay, az = into(table, a, pose_a, x, y, z)
        bx, by, bz = into(table, b, pose_b, x, y, z)
        ax = ax - x
        ay = ay - y
        az = az - z
        bx = bx - x
        by = by - y
        bz = bz - z
        out_a = ax * ax + ay * ay + az * az
        out_b = bx * bx + by * by + bz * bz
        if max(out_a, out_b) < SMALL * SMALL:
            break
        # the whole way into one, half of it where it lies outside of both
        share = 0.5 if min(out_a, out_b) > SMALL * SMALL else 1.0
        x = x + share * (ax + bx)
        y = y + share * (ay + by)
        z = z + share * (az + bz)
    return x, y, z


@inner_kernel
def into(
    table: ShapeTable, shape: int, pose: Any, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """The nearest point of a body."""
    px, py, pz = to_body(pose, x, y, z)
    if table.kind[shape] == BOX:
        dx = px - table.centre[shape, 0]
        dy = py - table.centre[shape, 1]
        dz = pz - table.centre[shape, 2]
        h0 = table.half[shape, 0]
        h1 = table.half[shape, 1]
        h2 = table.half[shape, 2]
        dx = dx - min(max(dx, -h0), h0)
        dy = dy - min(max(dy, -h1), h1)
        dz = dz - min(max(dz, -h2), h2)
    elif table.kind[shape] == HULL:
        outside = -1.0
        for f in range(table.first[shape, 1], table.first[shape + 1, 1]):
            along = (
                table.planes[f, 0] * px
                + table.planes[f, 1] * py
                + table.planes[f, 2] * pz
                - table.planes[f, 3]
            )
            outside = max(outside, along)
        if outside <= 0.0:
            return x, y, z
        least = 1e300
        dx = 0.0
        dy = 0.0
        dz = 0.0
        for t in range(table.first[shape, 3], table.first[shape + 1, 3]):
            tx, ty, tz = from_triangle(table, t, px, py, pz)
            if tx * tx + ty * ty + tz * tz < least:
                least = tx * tx + ty * ty + tz * tz
                dx = tx
                dy = ty
                dz = tz
    else:
        first = table.first[shape, 0]
        last = table.first[shape + 1, 0] - 1
        v = table.vertices
        ux = v[last, 0] - v[first, 0]
        uy = v[last, 1] - v[first, 1]
        uz = v[last, 2] - v[first, 2]
        dx = px - v[first, 0]
        dy = py - v[first, 1]
        dz = pz - v[first, 2]
        length = ux * ux + uy * uy + uz * uz
        share = min(max((dx * ux + dy * uy + dz * uz) / length, 0.0), 1.0) if length > 0.0 else 0.0
        dx = dx - share * ux
        dy = dy - share * uy
        dz = dz - share * uz
        distance = math.sqrt(dx * dx + dy * dy + dz * dz)
        if distance <= table.radius[shape]:
            return x, y, z
        out = 1.0 - table.radius[shape] / distance
        dx = out * dx
        dy = out * dy
        dz = out * dz
    return (
        x - (pose[0, 0] * dx + pose[0, 1] * dy + pose[0, 2] * dz),
        y - (pose[1, 0] * dx + pose[1, 1] * dy + pose[1, 2] * dz),
        z - (pose[2, 0] * dx + pose[2, 1] * dy + pose[2, 2] * dz),
    )


@inner_kernel
def foremost(
    table: ShapeTable,
    shape: int,
    pose: Any,
    towards: tuple[float, float, float],
    axes: Any,
    out: Any,
) -> tuple[int, float]:
    """The corners that lie foremost, along two axes -> out, in the order of a turn; their number,
    and how far.
    """
    first = table.first[shape, 0]
    end = table.first[shape + 1, 0]
    front = -1e300
    for row in range(first, end):
        x, y, z = to_world(pose, table.vertices, row)
        front = max(front, towards[0] * x + towards[1] * y + towards[2] * z)
    limit = front - FLATNESS * table.extent[shape]
    count = 0
    mean_p = 0.0
    mean_q = 0.0
    for row in range(first, end):
        x, y, z = to_world(pose, table.vertices, row)
        if towards[0] * x + towards[1] * y + towards[2] * z >= limit:
            p = axes[0][0] * x + axes[0][1] * y + axes[0][2] * z
            q = axes[1][0] * x + axes[1][1] * y + axes[1][2] * z
            out[count, 0] = p
            out[count, 1] = q
            mean_p = mean_p + p
            mean_q = mean_q + q
            count += 1
    if count > 2:
        mean_p = mean_p / count
        mean_q = mean_q / count
        for i in range(1, count):
            p = out[i, 0]
            q = out[i, 1]
            angle = math.atan2(q - mean_q, p - mean_p)
            k = i - 1
            while k >= 0 and math.atan2(out[k, 1] - mean_q, out[k, 0] - mean_p) > angle:
                out[k + 1, 0], out[k + 1, 1] = out[k, 0], out[k, 1]
                k -= 1
            out[k + 1, 0] = p
            out[k + 1, 1] = q
    return count, front + table.radius[shape]


@inner_kernel
def shared_middle(few: Any, f: int, many: Any, m: int, one: Any, other: Any) -> tuple[float, float]:
    """The middle of what two points, lines or convex polygons share. f <= m corners; `one`,
    `other`: scratch.
    """
    if f == 1:
        return (
            (few[0, 0], few[0, 1])
            if m > 1
            else (0.5 * (few[0, 0] + many[0, 0]), 0.5 * (few[0, 1] + many[0, 1]))
        )
    if m == 2:
        return middle_of_lines(few, many)
    count = f
    for i in range(f):
        one[i, 0] = few[i, 0]
        one[i, 1] = few[i, 1]
    for i in range(m):
        # what lies left of this side (Sutherland and Hodgman)
        p = many[i, 0]
        q = many[i, 1]
        dp = many[(i + 1) % m, 0] - p
        dq = many[(i + 1) % m, 1] - q
        kept = 0
        for k in range(count):
            n = (k + 1) % count
            here = dp * (one[k, 1] - q) - dq * (one[k, 0] - p)
            there = dp * (one[n, 1] - q) - dq * (one[n, 0] - p)
            if here >= 0.0:
                other[kept, 0] = one[k, 0]
                other[kept, 1] = one[k, 1]
                kept += 1
            if (here >= 0.0) != (there >= 0.0):
                share = here / (here - there)
                other[kept, 0] = one[k, 0] + share * (one[n, 0] - one[k, 0])
                other[kept, 1] = one[k, 1] + share * (one[n, 1] - one[k, 1])
                kept += 1
        if kept == 0:
            break
        one, other, count = other, one, kept
    # the middle of the box around it for lines, where corners come twice
    area = 0.0
    sum_p = 0.0
    sum_q = 0.0
    low_p = one[0, 0]
    high_p = one[0, 0]
    low_q = one[0, 1]
    high_q = one[0, 1]
    for k in range(count):
        n = (k + 1) % count
        ap = one[k, 0] - one[0, 0]
        aq = one[k, 1] - one[0, 1]
        bp = one[n, 0] - one[0, 0]
        bq = one[n, 1] - one[0, 1]
        twice = ap * bq - aq * bp
        area += twice
        sum_p += twice * (ap + bp)
        sum_q += twice * (aq + bq)
        low_p = min(low_p, one[k, 0])
        high_p = max(high_p, one[k, 0])
        low_q = min(low_q, one[k, 1])
        high_q = max(high_q, one[k, 1])
    size = (high_p - low_p) * (high_p - low_p) + (high_q - low_q) * (high_q - low_q)
    if f == 2 or area <= PARALLEL * size:
        return 0.5 * (low_p + high_p), 0.5 * (low_q + high_q)
    return one[0, 0] + sum_p / (3.0 * area), one[0, 1] + sum_q / (3.0 * area)


@inner_kernel
def middle_of_lines(one: Any, other: Any) -> tuple[float, float]:
    """Where two lines in the plane cross, or the middle of what parallel ones share."""
    up = one[1, 0] - one[0, 0]
    uq = one[1, 1] - one[0, 1]
    vp = other[1, 0] - other[0, 0]
    vq = other[1, 1] - other[0, 1]
    wp = other[0, 0] - one[0, 0]
    wq = other[0, 1] - one[0, 1]
    uu = up * up + uq * uq
    cross = up * vq - uq * vp
    if uu <= 0.0:
        return one[0, 0], one[0, 1]
    if cross * cross > PARALLEL * uu * (vp * vp + vq * vq):
        share = min(max((wp * vq - wq * vp) / cross, 0.0), 1.0)
        return one[0, 0] + share * up, one[0, 1] + share * uq
    begin = (wp * up + wq * uq) / uu
    end = begin + (vp * up + vq * uq) / uu
    share = 0.5 * (min(max(min(begin, end), 0.0), 1.0) + min(max(begin, end, 0.0), 1.0))
    return one[0, 0] + share * up, one[0, 1] + share * uq
