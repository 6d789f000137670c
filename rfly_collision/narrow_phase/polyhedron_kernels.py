"""Compiled kernels: polyhedra against points, lines and polyhedra. Exact and finite: nothing
iterates.

Two polyhedra are apart along the normal of a face of either or the cross product of an edge of
each, as boxes are; which pairs of edges make a face of the Minkowski difference tells the Gauss map
(D. Gregorius, "The Separating Axis Test between Convex Polyhedra", Game Developers Conference
2013). Points and lines: the same where they overlap, else the least distance to triangles and edges
(C. Ericson, "Real-Time Collision Detection", 2005, 5.1.5 and 5.1.9).

Results and conventions as in `distance_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.distance_kernels import (
    EDGE_HANDICAP,
    FAR,
    PARALLEL,
    SAME_POINT,
    Axis,
    line_of,
    nearest_of_lines,
)
from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.kernels.jit import inner_kernel, pasted_kernel

NEAR = 1e-4
"""m beyond the radius: nearer than that the bound by axes does not do, since it may be 0 where the
distance is not
"""


@inner_kernel
def to_body(pose: Any, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A point of the world in the body's axes."""
    x = x - pose[3, 0]
    y = y - pose[3, 1]
    z = z - pose[3, 2]
    return (
        pose[0, 0] * x + pose[1, 0] * y + pose[2, 0] * z,
        pose[0, 1] * x + pose[1, 1] * y + pose[2, 1] * z,
        pose[0, 2] * x + pose[1, 2] * y + pose[2, 2] * z,
    )


@inner_kernel
def turned(pose: Any, s: float, x: float, y: float, z: float) -> Axis:
    """The axis (s, x, y, z), given in the body's axes, in those of the world."""
    return (
        s,
        pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z,
        pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z,
        pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z,
    )


@inner_kernel
def round_and_polyhedron(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any) -> Axis:
    """A sphere or capsule a and a box or hull b."""
    line = line_of(table, a, pose_a)
    for end in range(2):
        line[end, 0], line[end, 1], line[end, 2] = to_body(
            pose_b, line[end, 0], line[end, 1], line[end, 2]
        )
    radius = table.radius[a]
    s, x, y, z = line_in_polyhedron(table, b, line)
    if s <= 0.0 or s > radius + NEAR:
        return turned(pose_b, s - radius, x, y, z)
    distance, nx, ny, nz = line_from_polyhedron(table, b, line)
    if distance > SAME_POINT:
        s = distance
        x = nx
        y = ny
        z = nz
    return turned(pose_b, s - radius, x, y, z)


@inner_kernel
def line_in_polyhedron(table: ShapeTable, b: int, line: Any) -> Axis:
    """The best axis, in body axes, between a line's ends (2, 3), in body axes, and a polyhedron."""
    ux = line[1, 0] - line[0, 0]
    uy = line[1, 1] - line[0, 1]
    uz = line[1, 2] - line[0, 2]
    s = -FAR
    nx = 0.0
    ny = 0.0
    nz = 1.0
    planes = table.planes
    for f in range(table.first[b, 1], table.first[b + 1, 1]):
        along = (
            planes[f, 0] * line[0, 0]
            + planes[f, 1] * line[0, 1]
            + planes[f, 2] * line[0, 2]
            - planes[f, 3]
        )
        along += min(planes[f, 0] * ux + planes[f, 1] * uy + planes[f, 2] * uz, 0.0)
        if along > s:
            s = along
            nx = planes[f, 0]
            ny = planes[f, 1]
            nz = planes[f, 2]
    length = ux * ux + uy * uy + uz * uz
    if length <= 0.0:
        return s, nx, ny, nz
    handicap = EDGE_HANDICAP
    for e in range(table.first[b, 2], table.first[b + 1, 2]):
        left = table.edges[e, 2]
        right = table.edges[e, 3]
        side = planes[left, 0] * ux + planes[left, 1] * uy + planes[left, 2] * uz
        other = planes[right, 0] * ux + planes[right, 1] * uy + planes[right, 2] * uz
        if side * other >= 0.0:
            continue
        # the normal at this edge that is at right angles to the line: between those of its faces
        x = abs(other) * planes[left, 0] + abs(side) * planes[right, 0]
        y = abs(other) * planes[left, 1] + abs(side) * planes[right, 1]
        z = abs(other) * planes[left, 2] + abs(side) * planes[right, 2]
        norm = math.sqrt(x * x + y * y + z * z)
        if norm * norm < PARALLEL * length:
            continue
        v = table.edges[e, 0]
        along = (
            x * (line[0, 0] - table.vertices[v, 0])
            + y * (line[0, 1] - table.vertices[v, 1])
            + z * (line[0, 2] - table.vertices[v, 2])
        ) / norm
        if along > s + handicap:
            s = along
            nx = x / norm
            ny = y / norm
            nz = z / norm
            handicap = 0.0
    return s, nx, ny, nz


@inner_kernel
def line_from_polyhedron(table: ShapeTable, b: int, line: Any) -> Axis:
    """The distance of a line (2, 3) from a polyhedron that it does not meet, and its direction.
    Body axes.
    """
    least = FAR
    nx = 0.0
    ny = 0.0
    nz = 1.0
    one_point = line[0, 0] == line[1, 0] and line[0, 1] == line[1, 1] and line[0, 2] == line[1, 2]
    for t in range(table.first[b, 3], table.first[b + 1, 3]):
        for end in range(1 if one_point else 2):
            x, y, z = from_triangle(table, t, line[end, 0], line[end, 1], line[end, 2])
            square = x * x + y * y + z * z
            if square < least:
                least = square
                nx = x
                ny = y
                nz = z
    if not one_point:
        edge = np.empty((2, 3))
        for e in range(table.first[b, 2], table.first[b + 1, 2]):
            for end in range(2):
                for k in range(3):
                    edge[end, k] = table.vertices[table.edges[e, end], k]
            s, r = nearest_of_lines(line, edge)
            x = (
                line[0, 0]
                + s * (line[1, 0] - line[0, 0])
                - edge[0, 0]
                - r * (edge[1, 0] - edge[0, 0])
            )
            y = (
                line[0, 1]
                + s * (line[1, 1] - line[0, 1])
                - edge[0, 1]
                - r * (edge[1, 1] - edge[0, 1])
            )
            z = (
                line[0, 2]
                + s * (line[1, 2] - line[0, 2])
                - edge[0, 2]
                - r * (edge[1, 2] - edge[0, 2])
            )
            square = x * x + y * y + z * z
            if square < least:
                least = square
                nx = x
                ny = y
                nz = z
    distance = math.sqrt(least)
    if distance > SAME_POINT:
        nx = nx / distance
        ny = ny / distance
        nz = nz / distance
    return distance, nx, ny, nz


@inner_kernel
def from_triangle(
    table: ShapeTable, t: int, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """The vector from the nearest point of a triangle to a point. Body axes."""
    i = table.triangles[t, 0]
    j = table.triangles[t, 1]
    k = table.triangles[t, 2]
    v = table.vertices
    bx = v[j, 0] - v[i, 0]
    by = v[j, 1] - v[i, 1]
    bz = v[j, 2] - v[i, 2]
    cx = v[k, 0] - v[i, 0]
    cy = v[k, 1] - v[i, 1]
    cz = v[k, 2] - v[i, 2]
    px = x - v[i, 0]
    py = y - v[i, 1]
    pz = z - v[i, 2]
    d1 = bx * px + by * py + bz * pz
    d2 = cx * px + cy * py + cz * pz
    bb = bx * bx + by * by + bz * bz
    cc = cx * cx + cy * cy + cz * cz
    bc = bx * cx + by * cy + bz * cz
    d3 = d1 - bb
    d4 = d2 - bc
    d5 = d1 - bc
    d6 = d2 - cc
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2
    if d1 <= 0.0 and d2 <= 0.0:
        r = 0.0
        s = 0.0
    elif d3 >= 0.0 and d4 <= d3:
        r = 1.0
        s = 0.0
    elif vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        r = d1 / (d1 - d3)
        s = 0.0
    elif d6 >= 0.0 and d5 <= d6:
        r = 0.0
        s = 1.0
    elif vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        r = 0.0
        s = d2 / (d2 - d6)
    elif va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        s = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        r = 1.0 - s
    else:
        r = vb / (va + vb + vc)
        s = vc / (va + vb + vc)
    return px - r * bx - s * cx, py - r * by - s * cy, pz - r * bz - s * cz


@inner_kernel
def polyhedra(
    table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool, work: Any
) -> Axis:
    """Two boxes or hulls. `best`: not the first axis that parts them but the best. `work`: scratch,
    (3·vertices, 3).
    """
    planes = table.planes
    vertices = table.vertices
    # all of a in the axes of b
    rotation = np.empty((3, 3))
    shift = to_body(pose_b, pose_a[3, 0], pose_a[3, 1], pose_a[3, 2])
    for i in range(3):
        for j in range(3):
            rotation[i, j] = (
                pose_b[0, i] * pose_a[0, j]
                + pose_b[1, i] * pose_a[1, j]
                + pose_b[2, i] * pose_a[2, j]
            )
    corners_a = table.first[a + 1, 0] - table.first[a, 0]
    for k in range(corners_a):
        v = table.first[a, 0] + k
        x, y, z = rotated(rotation, vertices[v, 0], vertices[v, 1], vertices[v, 2])
        work[k, 0] = x + shift[0]
        work[k, 1] = y + shift[1]
        work[k, 2] = z + shift[2]
    s, nx, ny, nz = best_face(
        planes, (table.first[b, 1], table.first[b + 1, 1]), work, corners_a, best
    )
    if best or s <= 0.0:
        faces = (table.first[a, 1], table.first[a + 1, 1])
        corners = (table.first[b, 0], table.first[b + 1, 0])
        along, x, y, z = best_turned_face(planes, faces, rotation, shift, vertices, corners, best)
        if along > s:
            s = along
            nx = -x
            ny = -y
            nz = -z
    if best or s <= 0.0:
        s, nx, ny, nz = best_of_edges(table, a, b, rotation, work, best, (s, nx, ny, nz))
    return turned(pose_b, s, nx, ny, nz)


@inner_kernel
def rotated(rotation: Any, x: float, y: float, z: float) -> tuple[float, float, float]:
    """A vector turned by a matrix (3, 3)."""
    return (
        rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z,
        rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z,
        rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z,
    )


@pasted_kernel
def best_face(planes: Any, faces: tuple[int, int], points: Any, count: int, best: bool) -> Axis:
    """The best axis along a normal of `faces` (first, end) to the first `count` points; or, not
    `best`, one that parts.

    `planes`: normal and offset of each face, in the axes of the points.
    """
    s = -FAR
    nx = 0.0
    ny = 0.0
    nz = 1.0
    for f in range(faces[0], faces[1]):
        x = planes[f, 0]
        y = planes[f, 1]
        z = planes[f, 2]
        along = FAR
        for k in range(count):
            along = min(along, x * points[k, 0] + y * points[k, 1] + z * points[k, 2])
        along -= planes[f, 3]
        if along > s:
            s = along
            nx = x
            ny = y
            nz = z
            if s > 0.0 and not best:
                break
    return s, nx, ny, nz


@pasted_kernel
def best_turned_face(
    planes: Any,
    faces: tuple[int, int],
    rotation: Any,
    shift: tuple[float, float, float],
    points: Any,
    corners: tuple[int, int],
    best: bool,
) -> Axis:
    """As `best_face` for faces of a body that is turned and shifted, and the points first … end of
    `corners`.
    """
    s = -FAR
    nx = 0.0
    ny = 0.0
    nz = 1.0
    for f in range(faces[0], faces[1]):
        x, y, z = rotated(rotation, planes[f, 0], planes[f, 1], planes[f, 2])
        along = FAR
        for v in range(corners[0], corners[1]):
            along = min(along, x * points[v, 0] + y * points[v, 1] + z * points[v, 2])
        along -= planes[f, 3] + x * shift[0] + y * shift[1] + z * shift[2]
        if along > s:
            s = along
            nx = x
            ny = y
            nz = z
            if s > 0.0 and not best:
                break
    return s, nx, ny, nz


@inner_kernel
def best_of_edges(
    table: ShapeTable, a: int, b: int, rotation: Any, points_a: Any, best: bool, axis: Axis
) -> Axis:
    """The best of `axis` and the cross products of an edge of a and one of b that make a face of
    the difference.

    All in the axes of b, into which `rotation` (3, 3) turns a; `points_a`: its vertices there.
    """
    s, nx, ny, nz = axis
    handicap = EDGE_HANDICAP
    normal = np.empty((2, 3))
    for e in range(table.first[a, 2], table.first[a + 1, 2]):
        for side in range(2):
            f = table.edges[e, 2 + side]
            normal[side, 0], normal[side, 1], normal[side, 2] = rotated(
                rotation, table.planes[f, 0], table.planes[f, 1], table.planes[f, 2]
            )
        ax, ay, az = rotated(rotation, table.across[e, 0], table.across[e, 1], table.across[e, 2])
        p = table.edges[e, 0] - table.first[a, 0]
        for g in range(table.first[b, 2], table.first[b + 1, 2]):
            left = table.edges[g, 2]
            right = table.edges[g, 3]
            # the arc between the normals at one edge has to cross that between the turned normals
            # at the other
            c = -(
                table.planes[left, 0] * ax + table.planes[left, 1] * ay + table.planes[left, 2] * az
            )
            d = -(
                table.planes[right, 0] * ax
                + table.planes[right, 1] * ay
                + table.planes[right, 2] * az
            )
            if c * d >= 0.0:
                continue
            bx = table.across[g, 0]
            by = table.across[g, 1]
            bz = table.across[g, 2]
            m = normal[0, 0] * bx + normal[0, 1] * by + normal[0, 2] * bz
            n = normal[1, 0] * bx + normal[1, 1] * by + normal[1, 2] * bz
            if m * n >= 0.0 or c * n <= 0.0:
                continue
            x = ay * bz - az * by
            y = az * bx - ax * bz
            z = ax * by - ay * bx
            square = x * x + y * y + z * z
            if square < PARALLEL * (ax * ax + ay * ay + az * az) * (bx * bx + by * by + bz * bz):
                continue
            norm = math.sqrt(square)
            # out of a, so towards b
            if (
                x * (normal[0, 0] + normal[1, 0])
                + y * (normal[0, 1] + normal[1, 1])
                + z * (normal[0, 2] + normal[1, 2])
                < 0.0
            ):
                norm = -norm
            q = table.edges[g, 0]
            along = (
                x * (table.vertices[q, 0] - points_a[p, 0])
                + y * (table.vertices[q, 1] - points_a[p, 1])
                + z * (table.vertices[q, 2] - points_a[p, 2])
            ) / norm
            if along > s + handicap:
                s = along
                nx = -x / norm
                ny = -y / norm
                nz = -z / norm
                handicap = 0.0
                if s > 0.0 and not best:
                    return s, nx, ny, nz
    return s, nx, ny, nz
