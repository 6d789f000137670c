"""Rays against convex bodies: the nearest hit of each ray, beside the ground's that is known already."""

from __future__ import annotations

import math
from typing import Any

from rfly_common.kernels.jit import inner_kernel, kernel

BINS = 512
"""sectors around the sensor, each with a list of the bodies that it holds"""


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


@kernel(nogil=True, error_model="numpy")
def sectors(x: Any, y: Any, out: Any) -> None:
    """`sector` of arrays (n,)."""
    for k in range(x.size):
        out[k] = sector(x[k], y[k])


@kernel(nogil=True, error_model="numpy")
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
def _slab_hit(
    planes: Any, begin: int, end: int, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, int]:
    """Where the ray enters the space behind all planes, and through which; -1.0 where it does not.

    0.0 and plane -1 from inside.
    """
    enter, leave, face = 0.0, math.inf, -1
    for k in range(begin, end):
        along = planes[k, 0] * dx + planes[k, 1] * dy + planes[k, 2] * dz
        outside = planes[k, 0] * ox + planes[k, 1] * oy + planes[k, 2] * oz - planes[k, 3]
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


@inner_kernel
def _sphere_hit(
    cx: float, cy: float, cz: float, radius: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> float:
    """Where the ray enters a sphere; 0.0 from inside, -1.0 where it does not."""
    x, y, z = ox - cx, oy - cy, oz - cz
    c = x * x + y * y + z * z - radius * radius
    if c <= 0.0:
        return 0.0
    b = x * dx + y * dy + z * dz
    root = b * b - c
    return -1.0 if b > 0.0 or root < 0.0 else c / (math.sqrt(root) - b)


@inner_kernel
def _tube_hit(
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    radius: float,
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
) -> float:
    """Where the ray enters the round side between two points; -1.0 where it does not, or through an end."""
    ux, uy, uz = bx - ax, by - ay, bz - az
    length = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / length, uy / length, uz / length
    x, y, z = ox - ax, oy - ay, oz - az
    o_along, d_along = x * ux + y * uy + z * uz, dx * ux + dy * uy + dz * uz
    px, py, pz = x - o_along * ux, y - o_along * uy, z - o_along * uz
    qx, qy, qz = dx - d_along * ux, dy - d_along * uy, dz - d_along * uz
    c = px * px + py * py + pz * pz - radius * radius
    if c <= 0.0:
        return 0.0 if 0.0 <= o_along <= length else -1.0
    a = qx * qx + qy * qy + qz * qz
    b = px * qx + py * qy + pz * qz
    root = b * b - a * c
    if b >= 0.0 or root < 0.0:
        return -1.0
    at = c / (math.sqrt(root) - b)
    return at if 0.0 <= o_along + at * d_along <= length else -1.0


@kernel(nogil=True, error_model="numpy")
def nearest_bodies(
    origins: Any,
    directions: Any,
    times: Any,
    now: float,
    max_range: float,
    begins: Any,
    members: Any,
    index: Any,
    near: Any,
    position: Any,
    rotation: Any,
    velocity: Any,
    middle: Any,
    reach: Any,
    shape: Any,
    first: Any,
    vertices: Any,
    planes: Any,
    radius: Any,
    ranges: Any,
    normals: Any,
    body: Any,
) -> None:
    """Rays (n, 3), unit directions, at times (n,) -> ranges, normals, body where a body is nearer than the ground.

    Sector k holds members[begins[k]:begins[k + 1]], by rising `near`: no ray reaches the body before that. Bodies:
    where each is at the time `now` (b, 3), its axes as columns (b, 3, 3), velocity, the middle (b, 3) and radius (b,)
    of a sphere around it, which row of `first` and `radius` its shape is (`ShapeTable`), and its `index` for `body`.
    """
    for n in range(ranges.size):
        dx, dy, dz = directions[n, 0], directions[n, 1], directions[n, 2]
        bin_ = sector(dx, dy)
        begin, end = begins[bin_], begins[bin_ + 1]
        if begin == end:
            continue
        best = min(ranges[n], max_range)
        since = times[n] - now
        for m in range(begin, end):
            k = members[m]
            if near[k] > best:
                break
            x = origins[n, 0] - velocity[k, 0] * since
            y = origins[n, 1] - velocity[k, 1] * since
            z = origins[n, 2] - velocity[k, 2] * since
            if _sphere_hit(middle[k, 0], middle[k, 1], middle[k, 2], reach[k], x, y, z, dx, dy, dz) < 0.0:
                continue
            x, y, z = x - position[k, 0], y - position[k, 1], z - position[k, 2]
            ox = rotation[k, 0, 0] * x + rotation[k, 1, 0] * y + rotation[k, 2, 0] * z
            oy = rotation[k, 0, 1] * x + rotation[k, 1, 1] * y + rotation[k, 2, 1] * z
            oz = rotation[k, 0, 2] * x + rotation[k, 1, 2] * y + rotation[k, 2, 2] * z
            ex = rotation[k, 0, 0] * dx + rotation[k, 1, 0] * dy + rotation[k, 2, 0] * dz
            ey = rotation[k, 0, 1] * dx + rotation[k, 1, 1] * dy + rotation[k, 2, 1] * dz
            ez = rotation[k, 0, 2] * dx + rotation[k, 1, 2] * dy + rotation[k, 2, 2] * dz
            s = shape[k]
            a = first[s, 0]
            size = radius[s]
            at, nx, ny, nz = -1.0, 0.0, 0.0, 0.0
            if size > 0.0:
                b = first[s + 1, 0] - 1
                ax, ay, az = vertices[a, 0], vertices[a, 1], vertices[a, 2]
                bx, by, bz = vertices[b, 0], vertices[b, 1], vertices[b, 2]
                at = _sphere_hit(ax, ay, az, size, ox, oy, oz, ex, ey, ez)
                if a != b:
                    other = _sphere_hit(bx, by, bz, size, ox, oy, oz, ex, ey, ez)
                    if other >= 0.0 and (at < 0.0 or other < at):
                        at = other
                    other = _tube_hit(ax, ay, az, bx, by, bz, size, ox, oy, oz, ex, ey, ez)
                    if other >= 0.0 and (at < 0.0 or other < at):
                        at = other
                if at >= 0.0:
                    # away from the nearest point of the core
                    px, py, pz = ox + at * ex, oy + at * ey, oz + at * ez
                    ux, uy, uz = bx - ax, by - ay, bz - az
                    square = ux * ux + uy * uy + uz * uz
                    share = 0.0
                    if square > 0.0:
                        share = ((px - ax) * ux + (py - ay) * uy + (pz - az) * uz) / square
                        share = min(max(share, 0.0), 1.0)
                    nx, ny, nz = px - ax - share * ux, py - ay - share * uy, pz - az - share * uz
                    length = max(math.sqrt(nx * nx + ny * ny + nz * nz), 1e-12)
                    nx, ny, nz = nx / length, ny / length, nz / length
            else:
                at, face = _slab_hit(planes, first[s, 1], first[s + 1, 1], ox, oy, oz, ex, ey, ez)
                if face >= 0:
                    nx, ny, nz = planes[face, 0], planes[face, 1], planes[face, 2]
                else:
                    nx, ny, nz = -ex, -ey, -ez
            if 0.0 <= at < best or (at == best and body[n] < 0 and at >= 0.0):
                best = at
                ranges[n] = at
                body[n] = index[k]
                for c in range(3):
                    normals[n, c] = rotation[k, c, 0] * nx + rotation[k, c, 1] * ny + rotation[k, c, 2] * nz
