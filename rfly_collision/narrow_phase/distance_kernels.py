"""Compiled kernels: exact signed distance of two boxes, or of two spheres or capsules.

Boxes are apart along the normal of a face of either or along the cross product of an edge of each,
and nowhere else need one look, since these are the normals of all faces of their Minkowski
difference (separating axes). Lines: the least distance (C. Ericson, "Real-Time Collision
Detection", 2005, section 5.1.9).

All give (separation, nx, ny, nz), the normal from b to a in world axes: a separation <= 0 is the
depth with a turned sign, one above 0 a lower bound of the distance, which holds along this axis,
too, as long as it does not turn. Poses are (4, 3): the rotation matrix body -> world and, in the
last row, the position. Shapes are rows of the table.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.kernels.jit import inner_kernel, pasted_kernel

Axis = tuple[float, float, float, float]

FAR = 1e300
EDGE_HANDICAP = 1e-7
"""m: two edges have to be better by this much than two faces; parallel ones else win by rounding"""
PARALLEL = 1e-10
"""squared sine of the angle between edges below which they have no cross product"""
SAME_POINT = 1e-12
"""m: cores nearer than this have no direction between them"""


@inner_kernel
def to_world(pose: Any, points: Any, row: int) -> tuple[float, float, float]:
    """One point of the body."""
    x = points[row, 0]
    y = points[row, 1]
    z = points[row, 2]
    return (
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z + pose[3, 0],
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z + pose[3, 1],
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z + pose[3, 2],
    )


@inner_kernel
def boxes(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool) -> Axis:
    """Two boxes, by their 15 axes. `best`: not the first axis that parts them but the best."""
    ax, ay, az = to_world(pose_a, table.centre, a)
    bx, by, bz = to_world(pose_b, table.centre, b)
    dx = bx - ax
    dy = by - ay
    dz = bz - az
    ha = (table.half[a, 0], table.half[a, 1], table.half[a, 2])
    hb = (table.half[b, 0], table.half[b, 1], table.half[b, 2])
    largest = -FAR
    nx = 0.0
    ny = 0.0
    nz = 1.0
    for i in range(3):
        x = pose_a[0, i]
        y = pose_a[1, i]
        z = pose_a[2, i]
        along = dx * x + dy * y + dz * z
        apart = abs(along) - table.half[a, i] - reach_along(hb, pose_b, x, y, z)
        if apart > largest:
            turn = -1.0 if along > 0.0 else 1.0
            largest = apart
            nx = turn * x
            ny = turn * y
            nz = turn * z
    if largest > 0.0 and not best:
        return largest, nx, ny, nz
    for j in range(3):
        x = pose_b[0, j]
        y = pose_b[1, j]
        z = pose_b[2, j]
        along = dx * x + dy * y + dz * z
        apart = abs(along) - table.half[b, j] - reach_along(ha, pose_a, x, y, z)
        if apart > largest:
            turn = -1.0 if along > 0.0 else 1.0
            largest = apart
            nx = turn * x
            ny = turn * y
            nz = turn * z
    if largest > 0.0 and not best:
        return largest, nx, ny, nz
    largest += EDGE_HANDICAP
    by_edges = False
    for i in range(3):
        ex = pose_a[0, i]
        ey = pose_a[1, i]
        ez = pose_a[2, i]
        for j in range(3):
            fx = pose_b[0, j]
            fy = pose_b[1, j]
            fz = pose_b[2, j]
            x = ey * fz - ez * fy
            y = ez * fx - ex * fz
            z = ex * fy - ey * fx
            square = x * x + y * y + z * z
            if square < PARALLEL:
                continue
            along = dx * x + dy * y + dz * z
            reach = reach_along(ha, pose_a, x, y, z) + reach_along(hb, pose_b, x, y, z)
            norm = math.sqrt(square)
            if abs(along) - reach > largest * norm:
                largest = (abs(along) - reach) / norm
                by_edges = True
                turn = -1.0 / norm if along > 0.0 else 1.0 / norm
                nx = turn * x
                ny = turn * y
                nz = turn * z
                if largest > 0.0 and not best:
                    return largest, nx, ny, nz
    return largest if by_edges else largest - EDGE_HANDICAP, nx, ny, nz


@pasted_kernel
def reach_along(half: tuple[float, float, float], pose: Any, x: float, y: float, z: float) -> float:
    """m that a box of these half sides reaches from its centre along an axis (x, y, z) of length 1."""
    return (
        half[0] * abs(x * pose[0, 0] + y * pose[1, 0] + z * pose[2, 0])
        + half[1] * abs(x * pose[0, 1] + y * pose[1, 1] + z * pose[2, 1])
        + half[2] * abs(x * pose[0, 2] + y * pose[1, 2] + z * pose[2, 2])
    )


@inner_kernel
def nearest_of_lines(p: Any, q: Any) -> tuple[float, float]:
    """Where the segments p and q (each (2, 3); both ends may be the same) are nearest: a share 0 …
    1 of each.
    """
    ux = p[1, 0] - p[0, 0]
    uy = p[1, 1] - p[0, 1]
    uz = p[1, 2] - p[0, 2]
    vx = q[1, 0] - q[0, 0]
    vy = q[1, 1] - q[0, 1]
    vz = q[1, 2] - q[0, 2]
    wx = p[0, 0] - q[0, 0]
    wy = p[0, 1] - q[0, 1]
    wz = p[0, 2] - q[0, 2]
    uu = ux * ux + uy * uy + uz * uz
    vv = vx * vx + vy * vy + vz * vz
    uv = ux * vx + uy * vy + uz * vz
    uw = ux * wx + uy * wy + uz * wz
    vw = vx * wx + vy * wy + vz * wz
    if uu <= 0.0:
        return 0.0, min(max(vw / vv, 0.0), 1.0) if vv > 0.0 else 0.0
    if vv <= 0.0:
        return min(max(-uw / uu, 0.0), 1.0), 0.0
    square = uu * vv - uv * uv
    s = min(max((uv * vw - uw * vv) / square, 0.0), 1.0) if square > PARALLEL * uu * vv else 0.0
    t = (uv * s + vw) / vv
    if t < 0.0:
        return min(max(-uw / uu, 0.0), 1.0), 0.0
    if t > 1.0:
        return min(max((uv - uw) / uu, 0.0), 1.0), 1.0
    return s, t


@inner_kernel
def rounds(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any) -> Axis:
    """Two shapes of points or lines with radii."""
    p = line_of(table, a, pose_a)
    q = line_of(table, b, pose_b)
    s, t = nearest_of_lines(p, q)
    x = p[0, 0] + s * (p[1, 0] - p[0, 0]) - q[0, 0] - t * (q[1, 0] - q[0, 0])
    y = p[0, 1] + s * (p[1, 1] - p[0, 1]) - q[0, 1] - t * (q[1, 1] - q[0, 1])
    z = p[0, 2] + s * (p[1, 2] - p[0, 2]) - q[0, 2] - t * (q[1, 2] - q[0, 2])
    distance = math.sqrt(x * x + y * y + z * z)
    radii = table.radius[a] + table.radius[b]
    if distance > SAME_POINT:
        return distance - radii, x / distance, y / distance, z / distance
    # the cores cross: what is at right angles to both lines parts them soonest
    ux = p[1, 0] - p[0, 0]
    uy = p[1, 1] - p[0, 1]
    uz = p[1, 2] - p[0, 2]
    vx = q[1, 0] - q[0, 0]
    vy = q[1, 1] - q[0, 1]
    vz = q[1, 2] - q[0, 2]
    x = uy * vz - uz * vy
    y = uz * vx - ux * vz
    z = ux * vy - uy * vx
    if x * x + y * y + z * z <= PARALLEL * (ux * ux + uy * uy + uz * uz) * (
        vx * vx + vy * vy + vz * vz
    ):
        if ux * ux + uy * uy + uz * uz <= 0.0:
            ux = vx
            uy = vy
            uz = vz
        # at right angles to the one line that there is, upwards where that is possible
        x = -ux * uz
        y = -uy * uz
        z = ux * ux + uy * uy
        if z <= 0.0:
            x, y, z = (1.0, 0.0, 0.0) if uz != 0.0 else (0.0, 0.0, 1.0)
    norm = math.sqrt(x * x + y * y + z * z)
    return -radii, x / norm, y / norm, z / norm


@inner_kernel
def line_of(table: ShapeTable, shape: int, pose: Any) -> Any:
    """(2, 3) ends of the core of a sphere (twice the middle) or capsule."""
    line = np.empty((2, 3))
    first = table.first[shape, 0]
    last = table.first[shape + 1, 0] - 1
    line[0, 0], line[0, 1], line[0, 2] = to_world(pose, table.vertices, first)
    line[1, 0], line[1, 1], line[1, 2] = to_world(pose, table.vertices, last)
    return line
