# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nearest hits of rays with convex bodies and triangle meshes.

There are two levels of trees: one over all that neighbouring rays may meet, and one in the axes of
each piece of a mesh, however many bodies have it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_collision.shapes.shape import ShapeTable
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel, pasted_kernel
from rfly_common.kernels.record_vectors import row, set_row
from rfly_common.kernels.vectors import Vector, add, cross, dot, scaled, subtract, vector_at
from rfly_sensing.box_tree import DEPTH, BoxTree

FAR = 1e8
"""Distance beyond all that exists, m."""
EDGE = 1e-9
"""Share by which a triangle is larger for rays, so that none passes between two of them."""


class RayBatch(NamedTuple):
    """n rays, ENU."""

    origins: Floats
    """Origins, m, (n, 3)."""
    directions: Floats
    """Unit vectors, (n, 3)."""
    times: Floats
    """Times when each is sent, s, (n,)."""
    max_range: float
    """Length of the rays, m."""


class Hits(NamedTuple):
    """Hits of n rays."""

    ranges: Floats
    """Ranges, m, (n,); inf without a hit."""
    normals: Floats
    """Normals out of the surface, world axes, (n, 3); NaN without a hit."""
    body: Ints
    """Index of the body, GROUND or NOTHING, (n,)."""


class PlacedMeshes(NamedTuple):
    """p pieces of bodies in even motion, ENU, SI.

    A convex shape is one piece, a mesh of many triangles several.
    """

    time: float
    """Time at which the pieces are at these positions, s."""
    body: Ints
    """Body of each piece, as in `Hits.body`, rising, (p,)."""
    shape: Ints
    """Row of the `ShapeTable`, or -1 - m for piece m of the `MeshArrays`, (p,)."""
    position: Floats
    """Positions of the bodies' origins, (p, 3)."""
    rotation: Floats
    """Rotations body -> world, (p, 3, 3)."""
    velocity: Floats
    """Velocities, (p, 3)."""


class MeshArrays(NamedTuple):
    """The triangles of all pieces of meshes, and their trees one after the other."""

    root: Ints
    """Root node of each piece, (k,)."""
    boxes: Floats
    """Boxes of the nodes, as in `BoxTree`."""
    link: Ints
    """First child, or first triangle of a leaf, as in `BoxTree`."""
    held: Ints
    """Triangles of a leaf, as in `BoxTree`."""
    triangles: Floats
    """A corner, and from there to the two others; body axes, m, (t, 9)."""


class SceneRay(NamedTuple):
    """A ray in the axes that the caller chooses."""

    origin: Vector
    """Origin, m."""
    direction: Vector
    """Unit vector."""


@kernel
def reached(rays: RayBatch, ranges: Floats, low: Floats, high: Floats, out: Ints) -> int:
    """Find the boxes (p, 3) that overlap one around all rays up to their ranges -> out (p,).

    Returns how many there are.
    """
    origins, directions, _, max_range = rays
    lowest = np.full(3, math.inf)
    highest = np.full(3, -math.inf)
    for n in range(ranges.size):
        length = min(ranges[n], max_range, FAR)
        for c in range(3):
            begin = origins[n, c]
            end = origins[n, c] + length * directions[n, c]
            lowest[c] = min(lowest[c], begin, end)
            highest[c] = max(highest[c], begin, end)

    count = 0
    for k in range(out.size):
        apart = False
        for c in range(3):
            apart |= low[k, c] > highest[c] or high[k, c] < lowest[c]
        if not apart:
            out[count] = k
            count += 1
    return count


@inlined_kernel
def inverse(component: float) -> float:
    """Return the inverse of a direction's component; finite for 0, so that nothing becomes NaN."""
    return 1.0 / component if abs(component) > 1e-300 else 1e300


@inlined_kernel
def inverses(direction: Vector) -> Vector:
    """Return the inverses of a direction's components."""
    return inverse(direction[0]), inverse(direction[1]), inverse(direction[2])


@pasted_kernel
def box_entry(boxes: Floats, node: int, ray: SceneRay, per: Vector) -> float:
    """Return the distance at which a ray enters a box, 0.0 from inside; inf if it misses.

    `per`: the `inverses` of its direction.
    """
    x, y, z = ray.origin
    x0 = (boxes[node, 0] - x) * per[0]
    x1 = (boxes[node, 3] - x) * per[0]
    y0 = (boxes[node, 1] - y) * per[1]
    y1 = (boxes[node, 4] - y) * per[1]
    z0 = (boxes[node, 2] - z) * per[2]
    z1 = (boxes[node, 5] - z) * per[2]
    enter = max(min(x0, x1), min(y0, y1), min(z0, z1), 0.0)
    leave = min(max(x0, x1), max(y0, y1), max(z0, z1))
    return enter if enter <= leave else math.inf


@pasted_kernel
def push_children(
    boxes: Floats,
    child: int,
    ray: SceneRay,
    per: Vector,
    best: float,
    stack: Ints,
    near: Floats,
    top: int,
) -> int:
    """Push those of two neighbouring nodes that begin before `best`, the nearer on top.

    Returns the new top of the stack.
    """
    near_node = child
    far_node = child + 1
    near_entry = box_entry(boxes, child, ray, per)
    far_entry = box_entry(boxes, child + 1, ray, per)
    if far_entry < near_entry:
        near_node, far_node = far_node, near_node
        near_entry, far_entry = far_entry, near_entry
    if far_entry <= best and far_entry < math.inf:
        top += 1
        stack[top] = far_node
        near[top] = far_entry
    if near_entry <= best and near_entry < math.inf:
        top += 1
        stack[top] = near_node
        near[top] = near_entry
    return top


@pasted_kernel
def triangle_hit(triangles: Floats, k: int, ray: SceneRay) -> float:
    """Return the distance at which a ray meets a triangle, from either side; -1.0 if it misses.

    Moeller and Trumbore, Fast, Minimum Storage Ray/Triangle Intersection, 1997.
    """
    a = vector_at(triangles, k, 3)
    b = vector_at(triangles, k, 6)
    p = cross(ray.direction, b)
    determinant = dot(a, p)
    if determinant == 0.0:
        return -1.0

    # barycentric coordinates
    from_corner = subtract(ray.origin, vector_at(triangles, k, 0))
    u = dot(from_corner, p) / determinant
    if u < -EDGE or u > 1.0 + EDGE:
        return -1.0
    q = cross(from_corner, a)
    v = dot(ray.direction, q) / determinant
    if v < -EDGE or u + v > 1.0 + EDGE:
        return -1.0
    return dot(b, q) / determinant


@inner_kernel
def mesh_hit(
    meshes: MeshArrays, piece: int, ray: SceneRay, best: float, stack: Ints, near: Floats
) -> tuple[float, int]:
    """Return distance and triangle of a ray's first hit of a piece of a mesh up to `best`.

    -1.0, -1 if it misses. Uses the upper half of the stack.
    """
    root, boxes, link, held, triangles = meshes
    per = inverses(ray.direction)
    top = DEPTH
    face = -1
    stack[top] = root[piece]
    near[top] = box_entry(boxes, root[piece], ray, per)
    while top >= DEPTH:
        node = stack[top]
        enter = near[top]
        top -= 1
        if enter > best:
            continue
        if held[node] == 0:
            top = push_children(boxes, link[node], ray, per, best, stack, near, top)
            continue
        for k in range(link[node], link[node] + held[node]):
            distance = triangle_hit(triangles, k, ray)
            if 0.0 <= distance <= best:
                best = distance
                face = k
    return (best, face) if face >= 0 else (-1.0, -1)


@pasted_kernel
def triangle_normal(triangles: Floats, k: int, ray: SceneRay) -> Vector:
    """Return a triangle's unit normal on the side that the ray comes from."""
    x, y, z = cross(vector_at(triangles, k, 3), vector_at(triangles, k, 6))
    length = math.sqrt(x * x + y * y + z * z)
    if dot((x, y, z), ray.direction) > 0.0:
        length = -length
    return x / length, y / length, z / length


@inner_kernel
def slab_hit(planes: Floats, begin: int, end: int, ray: SceneRay) -> tuple[float, int]:
    """Return the distance at which a ray enters the space behind planes begin … end - 1, and which.

    0.0 and plane -1 from inside; -1.0, -1 if it misses.
    """
    enter = 0.0
    leave = math.inf
    face = -1
    for k in range(begin, end):
        normal = vector_at(planes, k, 0)
        along = dot(normal, ray.direction)
        outside = dot(normal, ray.origin) - planes[k, 3]
        if along < 0.0:
            distance = -outside / along
            if distance > enter:
                enter = distance
                face = k
        elif along > 0.0:
            leave = min(leave, -outside / along)
        elif outside > 0.0:
            return -1.0, -1
        if enter > leave:
            return -1.0, -1
    return enter, face


@inlined_kernel
def sphere_hit(centre: Vector, radius: float, ray: SceneRay) -> float:
    """Return the distance at which a ray enters a sphere; 0.0 from inside, -1.0 if it misses."""
    offset = subtract(ray.origin, centre)
    c = dot(offset, offset) - radius * radius
    if c <= 0.0:
        return 0.0
    b = dot(offset, ray.direction)
    root = b * b - c
    return -1.0 if b > 0.0 or root < 0.0 else c / (math.sqrt(root) - b)


@inlined_kernel
def across(vector: Vector, along: float, axis: Vector) -> Vector:
    """Return a vector less its component `along` a unit axis."""
    return vector[0] - along * axis[0], vector[1] - along * axis[1], vector[2] - along * axis[2]


@inlined_kernel
def tube_hit(a: Vector, b: Vector, radius: float, ray: SceneRay) -> float:
    """Return the distance at which a ray enters the round side between points a and b.

    0.0 from inside; -1.0 if it misses, or enters through an end.
    """
    x, y, z = subtract(b, a)
    length = math.sqrt(x * x + y * y + z * z)
    axis = (x / length, y / length, z / length)

    # in the plane across the axis
    offset = subtract(ray.origin, a)
    origin_along = dot(offset, axis)
    direction_along = dot(ray.direction, axis)
    p = across(offset, origin_along, axis)
    q = across(ray.direction, direction_along, axis)
    c2 = dot(p, p) - radius * radius
    if c2 <= 0.0:
        return 0.0 if 0.0 <= origin_along <= length else -1.0
    a2 = dot(q, q)
    b2 = dot(p, q)
    root = b2 * b2 - a2 * c2
    if b2 >= 0.0 or root < 0.0:
        return -1.0

    distance = c2 / (math.sqrt(root) - b2)
    return distance if 0.0 <= origin_along + distance * direction_along <= length else -1.0


@inlined_kernel
def nearer(first: float, second: float) -> float:
    """Return the nearer of two hits; below 0: no hit."""
    return second if second >= 0.0 and (first < 0.0 or second < first) else first


@inlined_kernel
def capsule_hit(a: Vector, b: Vector, radius: float, ray: SceneRay) -> float:
    """Return the distance at which a ray enters the capsule of the line from a to b.

    0.0 from inside, -1.0 if it misses.
    """
    distance = sphere_hit(a, radius, ray)
    if a != b:
        distance = nearer(distance, sphere_hit(b, radius, ray))
        distance = nearer(distance, tube_hit(a, b, radius, ray))
    return distance


@inlined_kernel
def capsule_normal(a: Vector, b: Vector, distance: float, ray: SceneRay) -> Vector:
    """Return the unit vector from the line from a to b to the point at a distance along the ray."""
    point = add(ray.origin, scaled(distance, ray.direction))
    line = subtract(b, a)
    offset = subtract(point, a)
    square = dot(line, line)
    share = 0.0
    if square > 0.0:
        share = min(max(dot(offset, line) / square, 0.0), 1.0)
    x, y, z = across(offset, share, line)
    length = max(math.sqrt(x * x + y * y + z * z), 1e-12)
    return x / length, y / length, z / length


@inlined_kernel
def into_body(rotation: Floats, k: int, vector: Vector) -> Vector:
    """Return a vector of the world in the axes of body k."""
    x, y, z = vector
    return (
        rotation[k, 0, 0] * x + rotation[k, 1, 0] * y + rotation[k, 2, 0] * z,
        rotation[k, 0, 1] * x + rotation[k, 1, 1] * y + rotation[k, 2, 1] * z,
        rotation[k, 0, 2] * x + rotation[k, 1, 2] * y + rotation[k, 2, 2] * z,
    )


@inlined_kernel
def convex_hit(
    first: Ints, vertices: Floats, planes: Floats, radius: Floats, s: int, ray: SceneRay
) -> tuple[float, Vector]:
    """Return distance and normal of a ray's first hit of a convex shape; -1.0 if it misses.

    From inside, the normal points against the ray.
    """
    x, y, z = ray.direction
    normal = (-x, -y, -z)
    if radius[s] > 0.0:
        a = vector_at(vertices, first[s, 0], 0)
        b = vector_at(vertices, first[s + 1, 0] - 1, 0)
        distance = capsule_hit(a, b, radius[s], ray)
        if distance >= 0.0:
            normal = capsule_normal(a, b, distance, ray)
    else:
        distance, face = slab_hit(planes, first[s, 1], first[s + 1, 1], ray)
        if face >= 0:
            normal = vector_at(planes, face, 0)
    return distance, normal


@inlined_kernel
def out_of_body(rotation: Floats, k: int, vector: Vector) -> Vector:
    """Return a vector in the axes of body k in those of the world."""
    x, y, z = vector
    return (
        rotation[k, 0, 0] * x + rotation[k, 0, 1] * y + rotation[k, 0, 2] * z,
        rotation[k, 1, 0] * x + rotation[k, 1, 1] * y + rotation[k, 1, 2] * z,
        rotation[k, 2, 0] * x + rotation[k, 2, 1] * y + rotation[k, 2, 2] * z,
    )


@inlined_kernel
def seen_from_body(
    ray: SceneRay, position: Floats, rotation: Floats, velocity: Floats, k: int, since: float
) -> SceneRay:
    """Return a ray of the world in the axes of body k, which has moved for `since` seconds."""
    moved = subtract(subtract(ray.origin, scaled(since, row(velocity, k))), row(position, k))
    return SceneRay(into_body(rotation, k, moved), into_body(rotation, k, ray.direction))


@kernel
def nearest_bodies(
    rays: RayBatch,
    placed: PlacedMeshes,
    tree: BoxTree,
    shapes: ShapeTable,
    meshes: MeshArrays,
    hits: Hits,
) -> None:
    """Put hits of bodies in the tree into `hits` if they are nearer than the hits there.

    Of bodies at the same distance the first counts.
    """
    # in a loop each look-up in a tuple would count references
    origins, directions, times, max_range = rays
    time, owner, shape, position, rotation, velocity = placed
    boxes, link, held, items = tree
    first = shapes.first
    vertices = shapes.vertices
    planes = shapes.planes
    radius = shapes.radius
    ranges, normals, body = hits
    stack = np.empty(2 * DEPTH, np.int64)
    near = np.empty(2 * DEPTH)

    for n in range(ranges.size):
        world_ray = SceneRay(vector_at(origins, n, 0), vector_at(directions, n, 0))
        per = inverses(world_ray.direction)
        best = min(ranges[n], max_range)
        since = times[n] - time

        # nodes of the tree, the nearer first
        top = 0
        stack[0] = 0
        near[0] = box_entry(boxes, 0, world_ray, per)
        while top >= 0:
            node = stack[top]
            enter = near[top]
            top -= 1
            if enter > best:
                continue
            if held[node] == 0:
                top = push_children(boxes, link[node], world_ray, per, best, stack, near, top)
                continue

            # pieces of a leaf, each met in its body's axes
            for m in range(link[node], link[node] + held[node]):
                k = items[m]
                ray = seen_from_body(world_ray, position, rotation, velocity, k, since)
                s = shape[k]
                if s >= 0:
                    distance, normal = convex_hit(first, vertices, planes, radius, s, ray)
                else:
                    distance, face = mesh_hit(meshes, -1 - s, ray, best, stack, near)
                    normal = ray.direction
                    if face >= 0:
                        normal = triangle_normal(meshes.triangles, face, ray)

                is_first = body[n] < 0 or owner[k] < body[n]
                if 0.0 <= distance < best or (distance == best and is_first):
                    best = distance
                    ranges[n] = distance
                    body[n] = owner[k]
                    set_row(normals, n, out_of_body(rotation, k, normal))
