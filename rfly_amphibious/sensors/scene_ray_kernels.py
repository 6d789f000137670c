"""Rays against convex bodies and triangle meshes: each ray's nearest hit, beside the ground's that
is known already.

Two levels of trees: one over what neighbouring rays may meet, and one in the axes of each piece of
a mesh, however many bodies have it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_amphibious.sensors.box_tree import DEPTH, BoxTree
from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel, pasted_kernel

Vector = tuple[float, float, float]

FAR = 1e8
"""m: farther away than anything is"""
EDGE = 1e-9
"""of a triangle's size by which it is larger for rays, so that none passes between two of them"""


class RayBatch(NamedTuple):
    """n rays, ENU."""

    origins: Floats
    """(n, 3) m"""
    directions: Floats
    """(n, 3) unit vectors"""
    times: Floats
    """(n,) s: when each is sent"""
    max_range: float
    """m"""


class Hits(NamedTuple):
    """Of n rays."""

    ranges: Floats
    """(n,) m; inf where nothing was met"""
    normals: Floats
    """(n, 3) out of what was met, world axes; NaN where nothing was"""
    body: Ints
    """(n,) index of the body, GROUND or NOTHING"""


class PlacedMeshes(NamedTuple):
    """p pieces of bodies in even motion: a convex shape is one, a mesh of many triangles several.
    ENU, SI.
    """

    time: float
    """s at which they are there"""
    body: Ints
    """(p,) which body each is of, as in `Hits.body`, rising"""
    shape: Ints
    """(p,) row of the `ShapeTable`; -1 - m: piece m of the `MeshArrays`"""
    position: Floats
    """(p, 3) of the bodies' origins"""
    rotation: Floats
    """(p, 3, 3), columns are the body's axes"""
    velocity: Floats
    """(p, 3)"""


class MeshArrays(NamedTuple):
    """The triangles of all pieces of meshes, and their trees one after the other."""

    root: Ints
    """(k,) node of each piece"""
    boxes: Floats
    link: Ints
    held: Ints
    """as in `BoxTree`; a leaf's items are triangles"""
    triangles: Floats
    """(t, 9) a corner, and from there to the two others; body axes, m"""


class SceneRay(NamedTuple):
    """Origin (m) and unit direction, in the axes that the caller chooses."""

    ox: float
    oy: float
    oz: float
    dx: float
    dy: float
    dz: float


@kernel
def reached(rays: RayBatch, ranges: Floats, low: Floats, high: Floats, out: Ints) -> int:
    """Which boxes (p, 3) overlap one around all rays, as far as they go -> out (p,); returns how
    many.
    """
    origins, directions, _, max_range = rays
    bounds = np.empty((2, 3))
    bounds[0] = math.inf
    bounds[1] = -math.inf
    for n in range(ranges.size):
        length = min(ranges[n], max_range, FAR)
        for c in range(3):
            begin = origins[n, c]
            end = origins[n, c] + length * directions[n, c]
            bounds[0, c], bounds[1, c] = (
                min(bounds[0, c], begin, end),
                max(bounds[1, c], begin, end),
            )
    count = 0
    for k in range(out.size):
        apart = False
        for c in range(3):
            apart |= low[k, c] > bounds[1, c] or high[k, c] < bounds[0, c]
        if not apart:
            out[count] = k
            count += 1
    return count


@inlined_kernel
def inverse(along: float) -> float:
    """Of a direction's part; finite where there is none, so that nothing becomes NaN."""
    return 1.0 / along if abs(along) > 1e-300 else 1e300


@pasted_kernel
def box_entry(boxes: Floats, node: int, ray: SceneRay, per: Vector) -> float:
    """Where the ray enters a box, 0.0 from inside; inf where it does not. `per`: inverses of its
    direction.
    """
    x0 = (boxes[node, 0] - ray.ox) * per[0]
    x1 = (boxes[node, 3] - ray.ox) * per[0]
    y0 = (boxes[node, 1] - ray.oy) * per[1]
    y1 = (boxes[node, 4] - ray.oy) * per[1]
    z0 = (boxes[node, 2] - ray.oz) * per[2]
    z1 = (boxes[node, 5] - ray.oz) * per[2]
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
    """Puts those of two neighbouring nodes on the stack that begin before `best`, the nearer on
    top; the new top.
    """
    a = box_entry(boxes, child, ray, per)
    b = box_entry(boxes, child + 1, ray, per)
    closer = child
    farther = child + 1
    low = a
    high = b
    if b < a:
        closer = child + 1
        farther = child
        low = b
        high = a
    if high <= best and high < math.inf:
        top += 1
        stack[top] = farther
        near[top] = high
    if low <= best and low < math.inf:
        top += 1
        stack[top] = closer
        near[top] = low
    return top


@pasted_kernel
def triangle_hit(triangles: Floats, k: int, ray: SceneRay) -> float:
    """Where the ray meets a triangle, from either side; -1.0 where it does not.

    Moeller and Trumbore, Fast, Minimum Storage Ray/Triangle Intersection, 1997.
    """
    ax = triangles[k, 3]
    ay = triangles[k, 4]
    az = triangles[k, 5]
    bx = triangles[k, 6]
    by = triangles[k, 7]
    bz = triangles[k, 8]
    px = ray.dy * bz - ray.dz * by
    py = ray.dz * bx - ray.dx * bz
    pz = ray.dx * by - ray.dy * bx
    det = ax * px + ay * py + az * pz
    if det == 0.0:
        return -1.0
    tx = ray.ox - triangles[k, 0]
    ty = ray.oy - triangles[k, 1]
    tz = ray.oz - triangles[k, 2]
    u = (tx * px + ty * py + tz * pz) / det
    if u < -EDGE or u > 1.0 + EDGE:
        return -1.0
    qx = ty * az - tz * ay
    qy = tz * ax - tx * az
    qz = tx * ay - ty * ax
    v = (ray.dx * qx + ray.dy * qy + ray.dz * qz) / det
    if v < -EDGE or u + v > 1.0 + EDGE:
        return -1.0
    return (bx * qx + by * qy + bz * qz) / det


@inner_kernel
def mesh_hit(
    meshes: MeshArrays, piece: int, ray: SceneRay, best: float, stack: Ints, near: Floats
) -> tuple[float, int]:
    """Where the ray first meets a piece of a mesh up to `best`, and which triangle; -1.0, -1 where
    it does not.

    Uses the upper half of the stack.
    """
    root, boxes, link, held, triangles = meshes
    per = inverse(ray.dx), inverse(ray.dy), inverse(ray.dz)
    top = DEPTH
    found = -1
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
            at = triangle_hit(triangles, k, ray)
            if 0.0 <= at <= best:
                best = at
                found = k
    return (best, found) if found >= 0 else (-1.0, -1)


@pasted_kernel
def triangle_normal(triangles: Floats, k: int, ray: SceneRay) -> Vector:
    """Unit vector on the side that the ray comes from."""
    ax = triangles[k, 3]
    ay = triangles[k, 4]
    az = triangles[k, 5]
    bx = triangles[k, 6]
    by = triangles[k, 7]
    bz = triangles[k, 8]
    x = ay * bz - az * by
    y = az * bx - ax * bz
    z = ax * by - ay * bx
    length = math.sqrt(x * x + y * y + z * z)
    if x * ray.dx + y * ray.dy + z * ray.dz > 0.0:
        length = -length
    return x / length, y / length, z / length


@inner_kernel
def slab_hit(planes: Floats, begin: int, end: int, ray: SceneRay) -> tuple[float, int]:
    """Where the ray enters the space behind planes begin … end - 1, and through which; -1.0 where
    it does not.

    0.0 and plane -1 from inside.
    """
    enter = 0.0
    leave = math.inf
    face = -1
    for k in range(begin, end):
        along = planes[k, 0] * ray.dx + planes[k, 1] * ray.dy + planes[k, 2] * ray.dz
        outside = (
            planes[k, 0] * ray.ox + planes[k, 1] * ray.oy + planes[k, 2] * ray.oz - planes[k, 3]
        )
        if along < 0.0:
            at = -outside / along
            if at > enter:
                enter = at
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
    """Where the ray enters a sphere; 0.0 from inside, -1.0 where it does not."""
    x = ray.ox - centre[0]
    y = ray.oy - centre[1]
    z = ray.oz - centre[2]
    c = x * x + y * y + z * z - radius * radius
    if c <= 0.0:
        return 0.0
    b = x * ray.dx + y * ray.dy + z * ray.dz
    root = b * b - c
    return -1.0 if b > 0.0 or root < 0.0 else c / (math.sqrt(root) - b)


@inlined_kernel
def tube_hit(a: Vector, b: Vector, radius: float, ray: SceneRay) -> float:
    """Where the ray enters the round side between points a, b; -1.0 where it does not, or through
    an end.
    """
    ux = b[0] - a[0]
    uy = b[1] - a[1]
    uz = b[2] - a[2]
    length = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux = ux / length
    uy = uy / length
    uz = uz / length
    x = ray.ox - a[0]
    y = ray.oy - a[1]
    z = ray.oz - a[2]
    o_along = x * ux + y * uy + z * uz
    d_along = ray.dx * ux + ray.dy * uy + ray.dz * uz
    px = x - o_along * ux
    py = y - o_along * uy
    pz = z - o_along * uz
    qx = ray.dx - d_along * ux
    qy = ray.dy - d_along * uy
    qz = ray.dz - d_along * uz
    c2 = px * px + py * py + pz * pz - radius * radius
    if c2 <= 0.0:
        return 0.0 if 0.0 <= o_along <= length else -1.0
    a2 = qx * qx + qy * qy + qz * qz
    b2 = px * qx + py * qy + pz * qz
    root = b2 * b2 - a2 * c2
    if b2 >= 0.0 or root < 0.0:
        return -1.0
    at = c2 / (math.sqrt(root) - b2)
    return at if 0.0 <= o_along + at * d_along <= length else -1.0


@inlined_kernel
def nearer(at: float, other: float) -> float:
    """The nearer of two hits; below 0: none."""
    return other if other >= 0.0 and (at < 0.0 or other < at) else at


@inlined_kernel
def capsule_hit(a: Vector, b: Vector, radius: float, ray: SceneRay) -> float:
    """Where the ray enters what is within `radius` of the line from a to b; 0.0 from inside, -1.0
    where it does not.
    """
    at = sphere_hit(a, radius, ray)
    if a != b:
        at = nearer(at, sphere_hit(b, radius, ray))
        at = nearer(at, tube_hit(a, b, radius, ray))
    return at


@inlined_kernel
def capsule_normal(a: Vector, b: Vector, at: float, ray: SceneRay) -> Vector:
    """Unit vector from the nearest point of the line from a to b to the point `at` (m) along the
    ray.
    """
    px = ray.ox + at * ray.dx
    py = ray.oy + at * ray.dy
    pz = ray.oz + at * ray.dz
    ux = b[0] - a[0]
    uy = b[1] - a[1]
    uz = b[2] - a[2]
    square = ux * ux + uy * uy + uz * uz
    share = 0.0
    if square > 0.0:
        share = ((px - a[0]) * ux + (py - a[1]) * uy + (pz - a[2]) * uz) / square
        share = min(max(share, 0.0), 1.0)
    nx = px - a[0] - share * ux
    ny = py - a[1] - share * uy
    nz = pz - a[2] - share * uz
    length = max(math.sqrt(nx * nx + ny * ny + nz * nz), 1e-12)
    return nx / length, ny / length, nz / length


@kernel
def nearest_bodies(
    rays: RayBatch,
    placed: PlacedMeshes,
    tree: BoxTree,
    shapes: ShapeTable,
    meshes: MeshArrays,
    hits: Hits,
) -> None:
    """Puts into `hits` where a body in the tree is nearer than what is there already; of bodies as
    near the first.
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
        dx = directions[n, 0]
        dy = directions[n, 1]
        dz = directions[n, 2]
        world_ray = SceneRay(origins[n, 0], origins[n, 1], origins[n, 2], dx, dy, dz)
        per = (inverse(dx), inverse(dy), inverse(dz))
        best = min(ranges[n], max_range)
        since = times[n] - time
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
            for m in range(link[node], link[node] + held[node]):
                k = items[m]
                x = origins[n, 0] - velocity[k, 0] * since - position[k, 0]
                y = origins[n, 1] - velocity[k, 1] * since - position[k, 1]
                z = origins[n, 2] - velocity[k, 2] * since - position[k, 2]
                ray = SceneRay(  # in the body's axes
                    rotation[k, 0, 0] * x + rotation[k, 1, 0] * y + rotation[k, 2, 0] * z,
                    rotation[k, 0, 1] * x + rotation[k, 1, 1] * y + rotation[k, 2, 1] * z,
                    rotation[k, 0, 2] * x + rotation[k, 1, 2] * y + rotation[k, 2, 2] * z,
                    rotation[k, 0, 0] * dx + rotation[k, 1, 0] * dy + rotation[k, 2, 0] * dz,
                    rotation[k, 0, 1] * dx + rotation[k, 1, 1] * dy + rotation[k, 2, 1] * dz,
                    rotation[k, 0, 2] * dx + rotation[k, 1, 2] * dy + rotation[k, 2, 2] * dz,
                )
                s = shape[k]
                nx = -ray.dx
                ny = -ray.dy
                nz = -ray.dz
                if s < 0:
                    at, face = mesh_hit(meshes, -1 - s, ray, best, stack, near)
                    if face >= 0:
                        nx, ny, nz = triangle_normal(meshes.triangles, face, ray)
                elif radius[s] > 0.0:
                    i = first[s, 0]
                    j = first[s + 1, 0] - 1
                    a = vertices[i, 0], vertices[i, 1], vertices[i, 2]
                    b = vertices[j, 0], vertices[j, 1], vertices[j, 2]
                    at = capsule_hit(a, b, radius[s], ray)
                    if at >= 0.0:
                        nx, ny, nz = capsule_normal(a, b, at, ray)
                else:
                    at, face = slab_hit(planes, first[s, 1], first[s + 1, 1], ray)
                    if face >= 0:
                        nx = planes[face, 0]
                        ny = planes[face, 1]
                        nz = planes[face, 2]
                if 0.0 <= at < best or (at == best and (body[n] < 0 or owner[k] < body[n])):
                    best = at
                    ranges[n] = at
                    body[n] = owner[k]
                    for c in range(3):
                        normals[n, c] = (
                            rotation[k, c, 0] * nx + rotation[k, c, 1] * ny + rotation[k, c, 2] * nz
                        )
