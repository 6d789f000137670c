# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: polyhedra against points, lines and polyhedra.

They are exact and finite: nothing iterates. Like boxes, two polyhedra are separated along the
normal of a face of either or the cross product of an edge of each. The Gauss map shows which pairs
of edges make a face of the Minkowski difference (D. Gregorius, "The Separating Axis Test between
Convex Polyhedra", Game Developers Conference 2013). Points and lines: the same if they overlap,
else the least distance to triangles and edges (C. Ericson, "Real-Time Collision Detection", 2005,
5.1.5 and 5.1.9).

Results and conventions are those of `distance_kernels`.
"""

from __future__ import annotations

import math
from typing import Any

from rfly_collision.narrow_phase.distance_kernels import (
    EDGE_HANDICAP,
    FAR,
    PARALLEL,
    SAME_POINT,
    UP,
    Axis,
    Line,
    body_axis,
    core_line,
    nearest_of_lines,
    to_body,
    vector_between,
)
from rfly_collision.shapes.shape import TOUCHING, ShapeTable
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, pasted_kernel
from rfly_common.kernels.vectors import (
    Matrix,
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
    set_vector,
    subtract,
    vector_at,
)

NEAR = 1e-4
"""Margin beyond the radius, m, within which the exact distance is computed.

The bound by axes does not do there: it may be 0 although the distance is not.
"""


@inner_kernel
def round_and_polyhedron(table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any) -> Axis:
    """Return the axis between a sphere or capsule a and a box or hull b."""
    core = core_line(table, a, pose_a)
    line = (to_body(pose_b, core[0]), to_body(pose_b, core[1]))
    radius = table.radius[a]
    separation, normal = line_in_polyhedron(table, b, line)

    if 0.0 < separation <= radius + NEAR:
        distance, direction = line_from_polyhedron(table, b, line)
        if distance > SAME_POINT:
            separation = distance
            normal = direction

    return separation - radius, rotated(matrix_at(pose_b), normal)


@inner_kernel
def line_in_polyhedron(table: ShapeTable, b: int, line: Line) -> Axis:
    """Return the best axis between a line and a polyhedron, both in body axes."""
    direction = subtract(line[1], line[0])
    separation = -FAR
    normal = UP
    planes = table.planes
    for f in range(table.first[b, 1], table.first[b + 1, 1]):
        face = vector_at(planes, f, 0)
        along = dot(face, line[0]) - planes[f, 3]
        along += min(dot(face, direction), 0.0)
        if along > separation:
            separation = along
            normal = face

    square = dot(direction, direction)
    if square <= 0.0:
        return separation, normal

    handicap = EDGE_HANDICAP
    for e in range(table.first[b, 2], table.first[b + 1, 2]):
        left = vector_at(planes, table.edges[e, 2], 0)
        right = vector_at(planes, table.edges[e, 3], 0)
        left_along = dot(left, direction)
        right_along = dot(right, direction)
        if left_along * right_along >= 0.0:
            continue

        # between the normals of its faces: the edge's normal at right angles to the line
        across = add(scaled(abs(right_along), left), scaled(abs(left_along), right))
        length = norm(across)
        if length * length < PARALLEL * square:
            continue

        vertex = vector_at(table.vertices, table.edges[e, 0], 0)
        along = dot(across, subtract(line[0], vertex)) / length
        if along > separation + handicap:
            separation = along
            normal = divided(across, length)
            handicap = 0.0

    return separation, normal


@inner_kernel
def line_from_polyhedron(table: ShapeTable, b: int, line: Line) -> Axis:
    """Return the distance of a line from a polyhedron that it does not meet, and its direction.

    All in body axes.
    """
    least = FAR
    nearest = UP
    is_point = line[0] == line[1]

    # the ends of the line and the faces
    for triangle in range(table.first[b, 3], table.first[b + 1, 3]):
        for end in range(1 if is_point else 2):
            offset = from_triangle(table, triangle, line[end])
            square = dot(offset, offset)
            if square < least:
                least = square
                nearest = offset

    # the line and the edges
    if not is_point:
        for e in range(table.first[b, 2], table.first[b + 1, 2]):
            edge = (
                vector_at(table.vertices, table.edges[e, 0], 0),
                vector_at(table.vertices, table.edges[e, 1], 0),
            )
            s, t = nearest_of_lines(line, edge)
            offset = vector_between(line, s, edge, t)
            square = dot(offset, offset)
            if square < least:
                least = square
                nearest = offset

    distance = math.sqrt(least)
    if distance > SAME_POINT:
        nearest = divided(nearest, distance)
    return distance, nearest


@inner_kernel
def from_triangle(table: ShapeTable, triangle: int, point: Vector) -> Vector:
    """Return the vector from the nearest point of a triangle to a point, body axes."""
    corner = vector_at(table.vertices, table.triangles[triangle, 0], 0)
    b = subtract(vector_at(table.vertices, table.triangles[triangle, 1], 0), corner)
    c = subtract(vector_at(table.vertices, table.triangles[triangle, 2], 0), corner)
    p = subtract(point, corner)
    r, s = nearest_in_triangle(b, c, p)
    return subtract(subtract(p, scaled(r, b)), scaled(s, c))


@inner_kernel
def nearest_in_triangle(b: Vector, c: Vector, p: Vector) -> tuple[float, float]:
    """Return r and s of the point r·b + s·c of the triangle 0, b, c that is nearest to p.

    The regions around a triangle are tested in turn (Ericson, 5.1.5): three corners, three sides
    and the inside. d1 … d6 and va, vb, vc are his names.
    """
    d1 = dot(b, p)
    d2 = dot(c, p)
    bb = dot(b, b)
    cc = dot(c, c)
    bc = dot(b, c)
    d3 = d1 - bb
    d4 = d2 - bc
    d5 = d1 - bc
    d6 = d2 - cc
    va = d3 * d6 - d5 * d4
    vb = d5 * d2 - d1 * d6
    vc = d1 * d4 - d3 * d2

    # the corner 0, the corner b, the side between them
    if d1 <= 0.0 and d2 <= 0.0:
        return 0.0, 0.0
    if d3 >= 0.0 and d4 <= d3:
        return 1.0, 0.0
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        return d1 / (d1 - d3), 0.0

    # the corner c, and the sides that end there
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 1.0
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        return 0.0, d2 / (d2 - d6)
    if va <= 0.0 and d4 - d3 >= 0.0 and d5 - d6 >= 0.0:
        s = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 1.0 - s, s

    # the inside
    return vb / (va + vb + vc), vc / (va + vb + vc)


@inner_kernel
def polyhedra(
    table: ShapeTable, a: int, b: int, pose_a: Any, pose_b: Any, best: bool, vertices_a: Any
) -> Axis:
    """Return the axis between two boxes or hulls.

    `best`: the best axis; otherwise the first one along which they are more than TOUCHING apart.
    `vertices_a`: scratch, (most vertices, 3).
    """
    # all of a in the axes of b
    rotation = relative_rotation(pose_a, pose_b)
    shift = to_body(pose_b, vector_at(pose_a, 3, 0))
    count_a = table.first[a + 1, 0] - table.first[a, 0]
    for k in range(count_a):
        vertex = vector_at(table.vertices, table.first[a, 0] + k, 0)
        set_vector(vertices_a, k, 0, add(rotated(rotation, vertex), shift))

    # faces of b
    faces_b = (table.first[b, 1], table.first[b + 1, 1])
    separation, normal = best_face(table.planes, faces_b, vertices_a, count_a, best)

    # faces of a
    if best or separation <= TOUCHING:
        faces_a = (table.first[a, 1], table.first[a + 1, 1])
        rows_b = (table.first[b, 0], table.first[b + 1, 0])
        along, face = best_turned_face(
            table.planes, faces_a, rotation, shift, table.vertices, rows_b, best
        )
        if along > separation:
            separation = along
            normal = scaled(-1.0, face)

    # pairs of edges
    if best or separation <= TOUCHING:
        axis = (separation, normal)
        separation, normal = best_edges(table, a, b, rotation, vertices_a, best, axis)

    return separation, rotated(matrix_at(pose_b), normal)


@inlined_kernel
def relative_rotation(pose_a: Any, pose_b: Any) -> Matrix:
    """Return the rotation matrix from the axes of a to those of b."""
    to_b = matrix_at(pose_b)
    x = rotated_back(to_b, body_axis(pose_a, 0))
    y = rotated_back(to_b, body_axis(pose_a, 1))
    z = rotated_back(to_b, body_axis(pose_a, 2))
    return x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]


@pasted_kernel
def best_face(planes: Any, faces: tuple[int, int], points: Any, count: int, best: bool) -> Axis:
    """Return the best axis along a face normal to the first `count` points.

    `faces`: first and end row of `planes`, which hold the normal and offset of each face in the
    axes of the points. Unless `best`, the search ends with the first axis that separates.
    """
    separation = -FAR
    normal = UP
    for f in range(faces[0], faces[1]):
        face = vector_at(planes, f, 0)
        along = FAR
        for k in range(count):
            along = min(along, dot(face, vector_at(points, k, 0)))
        along -= planes[f, 3]

        if along > separation:
            separation = along
            normal = face
            if separation > TOUCHING and not best:
                break
    return separation, normal


@pasted_kernel
def best_turned_face(
    planes: Any,
    faces: tuple[int, int],
    rotation: Matrix,
    shift: Vector,
    points: Any,
    rows: tuple[int, int],
    best: bool,
) -> Axis:
    """Return what `best_face` does, for the faces of a body that is turned and shifted.

    `rows`: first and end row of the points.
    """
    separation = -FAR
    normal = UP
    for f in range(faces[0], faces[1]):
        face = rotated(rotation, vector_at(planes, f, 0))
        along = FAR
        for v in range(rows[0], rows[1]):
            along = min(along, dot(face, vector_at(points, v, 0)))
        along -= planes[f, 3] + face[0] * shift[0] + face[1] * shift[1] + face[2] * shift[2]

        if along > separation:
            separation = along
            normal = face
            if separation > TOUCHING and not best:
                break
    return separation, normal


@inner_kernel
def best_edges(
    table: ShapeTable,
    a: int,
    b: int,
    rotation: Matrix,
    vertices_a: Any,
    best: bool,
    axis: Axis,
) -> Axis:
    """Return the best of `axis` and the cross products of an edge of a and one of b.

    All is in the axes of b, into which `rotation` turns a; `vertices_a` are its vertices there.
    Only pairs that make a face of the Minkowski difference count.
    """
    separation, normal = axis
    handicap = EDGE_HANDICAP
    for e in range(table.first[a, 2], table.first[a + 1, 2]):
        left_a = rotated(rotation, vector_at(table.planes, table.edges[e, 2], 0))
        right_a = rotated(rotation, vector_at(table.planes, table.edges[e, 3], 0))
        across_a = rotated(rotation, vector_at(table.across, e, 0))
        vertex_a = vector_at(vertices_a, table.edges[e, 0] - table.first[a, 0], 0)

        for g in range(table.first[b, 2], table.first[b + 1, 2]):
            left_b = vector_at(table.planes, table.edges[g, 2], 0)
            right_b = vector_at(table.planes, table.edges[g, 3], 0)
            across_b = vector_at(table.across, g, 0)
            if not arcs_cross(left_a, right_a, across_a, left_b, right_b, across_b):
                continue

            candidate = cross(across_a, across_b)
            square = dot(candidate, candidate)
            if square < PARALLEL * dot(across_a, across_a) * dot(across_b, across_b):
                continue

            # out of a, so towards b
            length = math.sqrt(square)
            if dot(candidate, add(left_a, right_a)) < 0.0:
                length = -length

            vertex_b = vector_at(table.vertices, table.edges[g, 0], 0)
            along = dot(candidate, subtract(vertex_b, vertex_a)) / length
            if along > separation + handicap:
                separation = along
                normal = divided(candidate, -length)
                handicap = 0.0
                if separation > TOUCHING and not best:
                    return separation, normal

    return separation, normal


@inlined_kernel
def arcs_cross(
    left_a: Vector,
    right_a: Vector,
    across_a: Vector,
    left_b: Vector,
    right_b: Vector,
    across_b: Vector,
) -> bool:
    """Return whether two edges make a face of the Minkowski difference.

    On the Gauss map the arc between the normals left and right of one edge has to cross the arc
    between the reversed normals of the other. `across`: the cross product of the normals.
    """
    left_side = -dot(left_b, across_a)
    right_side = -dot(right_b, across_a)
    if left_side * right_side >= 0.0:
        return False

    first_side = dot(left_a, across_b)
    second_side = dot(right_a, across_b)
    return first_side * second_side < 0.0 and left_side * second_side > 0.0
