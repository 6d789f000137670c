"""Rays against convex bodies: the nearest hit of each ray, beside the ground's that is known already."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel

Vector = tuple[float, float, float]

BINS = 512
"""sectors around the sensor, each with a list of the bodies that it holds"""


class Rays(NamedTuple):
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


class Sectors(NamedTuple):
    """Which bodies may be seen in each sector around the sensor."""

    begins: Ints
    """(BINS + 1,) where each sector's list begins"""
    members: Ints
    """the lists: rows of `BodiesInRange`, by rising `near`"""


class BodiesInRange(NamedTuple):
    """b bodies in even motion. ENU, SI."""

    time: float
    """s at which they are there"""
    scene_index: Ints
    """(b,) what `Hits.body` calls them"""
    shape: Ints
    """(b,) row of the `ShapeTable`"""
    position: Floats
    """(b, 3) of the origins"""
    rotation: Floats
    """(b, 3, 3), columns are the body's axes"""
    velocity: Floats
    """(b, 3)"""
    middle: Floats
    """(b, 3) of a sphere around each"""
    reach: Floats
    """(b,) the sphere's radius"""
    near: Floats
    """(b,) m: no ray reaches the body before that"""


class Ray(NamedTuple):
    """Origin (m) and unit direction, in the axes that the caller chooses."""

    ox: float
    oy: float
    oz: float
    dx: float
    dy: float
    dz: float


@inner_kernel
def sector(x: float, y: float) -> int:
    """0 … BINS - 1: rises with the azimuth of (x, y), without a trigonometric function."""
    size = abs(x) + abs(y)
    if size == 0.0:
        return 0
    turn = y / size
    if x < 0.0:
        turn = 2.0 - turn
    elif y < 0.0:
        turn = 4.0 + turn
    return min(int(turn * (BINS / 4.0)), BINS - 1)


@kernel
def sectors(x: Any, y: Any, out: Any) -> None:
    """`sector` of arrays (n,)."""
    for k in range(x.size):
        out[k] = sector(x[k], y[k])


@kernel
def limits(origins: Any, times: Any, out: Any) -> None:
    """Lowest and highest x, y, z, time of rays -> out (2, 4)."""
    for c in range(3):
        out[0, c] = out[1, c] = origins[0, c]
    out[0, 3] = out[1, 3] = times[0]
    for n in range(times.size):
        for c in range(3):
            out[0, c], out[1, c] = min(out[0, c], origins[n, c]), max(out[1, c], origins[n, c])
        out[0, 3], out[1, 3] = min(out[0, 3], times[n]), max(out[1, 3], times[n])


@inner_kernel
def slab_hit(planes: Floats, begin: int, end: int, ray: Ray) -> tuple[float, int]:
    """Where the ray enters the space behind planes begin … end - 1, and through which; -1.0 where it does not.

    0.0 and plane -1 from inside.
    """
    enter, leave, face = 0.0, math.inf, -1
    for k in range(begin, end):
        along = planes[k, 0] * ray.dx + planes[k, 1] * ray.dy + planes[k, 2] * ray.dz
        outside = planes[k, 0] * ray.ox + planes[k, 1] * ray.oy + planes[k, 2] * ray.oz - planes[k, 3]
        if along < 0.0:
            at = -outside / along
            if at > enter:
                enter, face = at, k
        elif along > 0.0:
            leave = min(leave, -outside / along)
        elif outside > 0.0:
            return -1.0, -1
        if enter > leave:
            return -1.0, -1
    return enter, face


@inlined_kernel
def sphere_hit(centre: Vector, radius: float, ray: Ray) -> float:
    """Where the ray enters a sphere; 0.0 from inside, -1.0 where it does not."""
    x, y, z = ray.ox - centre[0], ray.oy - centre[1], ray.oz - centre[2]
    c = x * x + y * y + z * z - radius * radius
    if c <= 0.0:
        return 0.0
    b = x * ray.dx + y * ray.dy + z * ray.dz
    root = b * b - c
    return -1.0 if b > 0.0 or root < 0.0 else c / (math.sqrt(root) - b)


@inlined_kernel
def tube_hit(a: Vector, b: Vector, radius: float, ray: Ray) -> float:
    """Where the ray enters the round side between points a, b; -1.0 where it does not, or through an end."""
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    length = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / length, uy / length, uz / length
    x, y, z = ray.ox - a[0], ray.oy - a[1], ray.oz - a[2]
    o_along, d_along = x * ux + y * uy + z * uz, ray.dx * ux + ray.dy * uy + ray.dz * uz
    px, py, pz = x - o_along * ux, y - o_along * uy, z - o_along * uz
    qx, qy, qz = ray.dx - d_along * ux, ray.dy - d_along * uy, ray.dz - d_along * uz
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
def capsule_hit(a: Vector, b: Vector, radius: float, ray: Ray) -> float:
    """Where the ray enters what is within `radius` of the line from a to b; 0.0 from inside, -1.0 where it does not."""
    at = sphere_hit(a, radius, ray)
    if a != b:
        at = nearer(at, sphere_hit(b, radius, ray))
        at = nearer(at, tube_hit(a, b, radius, ray))
    return at


@inlined_kernel
def capsule_normal(a: Vector, b: Vector, at: float, ray: Ray) -> Vector:
    """Unit vector from the nearest point of the line from a to b to the point `at` (m) along the ray."""
    px, py, pz = ray.ox + at * ray.dx, ray.oy + at * ray.dy, ray.oz + at * ray.dz
    ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    square = ux * ux + uy * uy + uz * uz
    share = 0.0
    if square > 0.0:
        share = ((px - a[0]) * ux + (py - a[1]) * uy + (pz - a[2]) * uz) / square
        share = min(max(share, 0.0), 1.0)
    nx, ny, nz = px - a[0] - share * ux, py - a[1] - share * uy, pz - a[2] - share * uz
    length = max(math.sqrt(nx * nx + ny * ny + nz * nz), 1e-12)
    return nx / length, ny / length, nz / length


@kernel
def nearest_bodies(rays: Rays, sectors: Sectors, bodies: BodiesInRange, shapes: ShapeTable, hits: Hits) -> None:
    """Puts into `hits` where a body is nearer than what is there already."""
    # in a loop each look-up in a tuple would count references
    origins, directions, times, max_range = rays
    begins, members = sectors
    time, scene_index, shape, position, rotation, velocity, middle, reach, near = bodies
    first, vertices, planes, radius = shapes.first, shapes.vertices, shapes.planes, shapes.radius
    ranges, normals, body = hits
    for n in range(ranges.size):
        dx, dy, dz = directions[n, 0], directions[n, 1], directions[n, 2]
        bin_ = sector(dx, dy)
        begin, end = begins[bin_], begins[bin_ + 1]
        if begin == end:
            continue
        best = min(ranges[n], max_range)
        since = times[n] - time
        for m in range(begin, end):
            k = members[m]
            if near[k] > best:
                break
            x = origins[n, 0] - velocity[k, 0] * since
            y = origins[n, 1] - velocity[k, 1] * since
            z = origins[n, 2] - velocity[k, 2] * since
            around = middle[k, 0], middle[k, 1], middle[k, 2]
            if sphere_hit(around, reach[k], Ray(x, y, z, dx, dy, dz)) < 0.0:
                continue
            x, y, z = x - position[k, 0], y - position[k, 1], z - position[k, 2]
            ray = Ray(  # in the body's axes
                rotation[k, 0, 0] * x + rotation[k, 1, 0] * y + rotation[k, 2, 0] * z,
                rotation[k, 0, 1] * x + rotation[k, 1, 1] * y + rotation[k, 2, 1] * z,
                rotation[k, 0, 2] * x + rotation[k, 1, 2] * y + rotation[k, 2, 2] * z,
                rotation[k, 0, 0] * dx + rotation[k, 1, 0] * dy + rotation[k, 2, 0] * dz,
                rotation[k, 0, 1] * dx + rotation[k, 1, 1] * dy + rotation[k, 2, 1] * dz,
                rotation[k, 0, 2] * dx + rotation[k, 1, 2] * dy + rotation[k, 2, 2] * dz,
            )
            s = shape[k]
            nx, ny, nz = -ray.dx, -ray.dy, -ray.dz
            if radius[s] > 0.0:
                i, j = first[s, 0], first[s + 1, 0] - 1
                a = vertices[i, 0], vertices[i, 1], vertices[i, 2]
                b = vertices[j, 0], vertices[j, 1], vertices[j, 2]
                at = capsule_hit(a, b, radius[s], ray)
                if at >= 0.0:
                    nx, ny, nz = capsule_normal(a, b, at, ray)
            else:
                at, face = slab_hit(planes, first[s, 1], first[s + 1, 1], ray)
                if face >= 0:
                    nx, ny, nz = planes[face, 0], planes[face, 1], planes[face, 2]
            if 0.0 <= at < best or (at == best and body[n] < 0 and at >= 0.0):
                best = at
                ranges[n] = at
                body[n] = scene_index[k]
                for c in range(3):
                    normals[n, c] = rotation[k, c, 0] * nx + rotation[k, c, 1] * ny + rotation[k, c, 2] * nz
