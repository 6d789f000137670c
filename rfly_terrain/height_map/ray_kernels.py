# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled ray casting against a bilinear height map.

A ray is o + t·d with d of length 1, so that t is metres. In rows u and columns v it is a straight
line as well, and over one cell of the map the height of the ray above the ground is a quadratic in
t:

    S(a, b) = z00 + A·a + B·b + K·a·b,  a, b = u - i, v - j
    A = z10 - z00,  B = z01 - z00,  K = z11 - z10 - z01 + z00
    f(t) = z(t) - S = c + m·t + q·t²
    m = dz - A·du - B·dv - K·(a·dv + b·du),  q = -K·du·dv

The ray hits where f comes down to 0. A pyramid of maxima (`ray_pyramid.py`) chooses the cells to
look at: the ray goes from block to block of the largest size that it passes above, and down to
single cells where it may touch. The times at which a ray crosses the lines of the grid come from
one formula for blocks of all sizes and for cells, so that they share their borders without a gap.

`ground` is a `ground.GroundGrid`, `high` its highest height. No fastmath, which drops the checks
for NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Triple
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_terrain.height_map.bilinear import corners, unit_normal
from rfly_terrain.height_map.ground import GroundGrid
from rfly_terrain.height_map.ray_pyramid import BLOCK_BITS, Pyramid

NEVER = 1e300
"""Stand-in for 1 / 0: metres per row for a ray that does not move along that axis."""

PARALLEL = 1e-100
"""Rows or columns per metre below which a ray does not move along that axis of any map."""


class Rays(NamedTuple):
    """Any number of rays; an array of length 1 serves all of them."""

    origins: NDArray[Any]
    """Origins, (n or 1, 3), m."""

    directions: NDArray[Any]
    """Directions of any length but 0, (n or 1, 3)."""

    max_range: NDArray[Any]
    """Lengths, (n or 1,), m."""


class GroundRay(NamedTuple):
    """Part of a ray over the map and not above its highest point; t, m, begins with it."""

    begin: float
    """Distance from the ray's origin, m: far origins cost no precision."""
    end: float
    """Value of t at the end; below 0 where the ray never comes there."""
    u: float
    """Row at t = 0."""
    v: float
    """Column at t = 0."""
    z: float
    """Height at t = 0, m."""
    du: float
    """Rows per metre."""
    dv: float
    """Columns per metre."""
    dz: float
    """Metres of height per metre."""
    per_u: float
    """Metres per row, 1 / du, or ± NEVER."""
    per_v: float
    """Metres per column, likewise."""
    up_u: int
    """1 where the ray goes to higher rows, else 0."""
    up_v: int
    """1 where the ray goes to higher columns, else 0."""


@kernel
def cast(
    ground: GroundGrid,
    high: float,
    pyramid: Pyramid,
    start_level: int,
    rays: Rays,
    ranges: Any,
    normals: Any,
) -> bool:
    """Write ranges (n,), inf for a miss, and unit normals, NaN for a miss.

    Normals are written where `normals` is (n, 3) and not (0, 3). Returns False where a number is
    not finite, a direction is 0 or a max_range is NaN or negative; the caller then finds out which.
    """
    origins, directions, max_range = rays
    # out of the loop, in which each look-up would count the arrays' references
    heights = ground.heights
    maxima = pyramid.maxima
    levels = pyramid.levels
    o_stride = 1 if origins.shape[0] > 1 else 0
    d_stride = 1 if directions.shape[0] > 1 else 0
    r_stride = 1 if max_range.size > 1 else 0
    want_normals = normals.shape[0] > 0
    good = True
    for n in range(ranges.size):
        ranges[n] = np.inf
        if want_normals:
            normals[n, 0] = normals[n, 1] = normals[n, 2] = np.nan

        # the ray, with a direction of length 1
        o = n * o_stride
        d = n * d_stride
        limit = max_range[n * r_stride]
        x = np.float64(origins[o, 0])
        y = np.float64(origins[o, 1])
        z = np.float64(origins[o, 2])
        direction = unit_vector(
            np.float64(directions[d, 0]), np.float64(directions[d, 1]), np.float64(directions[d, 2])
        )
        finite = abs(x) < np.inf and abs(y) < np.inf and abs(z) < np.inf
        if not (finite and limit >= 0.0 and direction[0] == direction[0]):  # false for NaN
            good = False
            continue

        # from where it may meet the ground to the first hit
        ray = over_map(ground, high, (x, y, z), direction, limit)
        if ray.end < 0.0:
            continue
        step, t, i, j = first_hit(ground, heights, maxima, levels, start_level, ray)
        if step >= 0.0:
            ranges[n] = ray.begin + t + step
            if want_normals:
                normals[n, 0], normals[n, 1], normals[n, 2] = normal_at_hit(
                    ground, ray, step, t, i, j
                )
    return good


@inlined_kernel
def unit_vector(dx: float, dy: float, dz: float) -> tuple[float, float, float]:
    """Return a vector of length 1; NaN where a number is not finite or all are 0."""
    square = dx * dx + dy * dy + dz * dz
    if not (1e-200 < square < 1e200):  # it overflowed, or lost its precision
        largest = max(abs(dx), abs(dy), abs(dz))
        if not (0.0 < largest < np.inf) or square != square:
            return np.nan, np.nan, np.nan
        dx = dx / largest
        dy = dy / largest
        dz = dz / largest
        square = dx * dx + dy * dy + dz * dz
    norm = np.sqrt(square)
    return dx / norm, dy / norm, dz / norm


@inlined_kernel
def snapped(u: float, slack: float, last: float) -> float:
    """Return a row or column, moved to the edge where it seems to lie outside by rounding."""
    if u < 0.0 and u >= -slack:
        return 0.0
    return last if u > last and u <= last + slack else u


@inlined_kernel
def axis_span(u: float, du: float, last: float) -> tuple[float, float, float, float]:
    """Return (du, metres per row, begin, end) of the part over the map along this axis, m.

    Begin and end are swapped where there is none.
    """
    if abs(du) > PARALLEL:
        per = 1.0 / du
        near = (0.0 - u) * per
        far = (last - u) * per
        return (du, per, far, near) if du < 0.0 else (du, per, near, far)
    if u < 0.0 or u > last:
        return 0.0, NEVER, np.inf, -np.inf
    return 0.0, NEVER if u < last else -NEVER, -np.inf, np.inf


@inlined_kernel
def over_map(
    ground: GroundGrid, high: float, origin: Triple, direction: Triple, limit: float
) -> GroundRay:
    """Return the part of a ray, at most `limit` metres long, that may meet the ground."""
    x, y, z = origin
    dx, dy, dz = direction
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    u = snapped((x - ground.origin_x) / ground.step_x, ground.slack_u, last_u)
    v = snapped((y - ground.origin_y) / ground.step_y, ground.slack_v, last_v)
    du, per_u, near_u, far_u = axis_span(u, dx / ground.step_x, last_u)
    dv, per_v, near_v, far_v = axis_span(v, dy / ground.step_y, last_v)

    # over the map, below its highest point
    first = max(0.0, near_u, near_v)
    last = min(limit, far_u, far_v)
    from_above = False
    if z > high and dz < 0.0:
        down = (high - z) / dz
        from_above = down >= first
        first = max(first, down)
    if dz > 0.0:
        last = min(last, (high - z) / dz)
    if first > last or (z > high and dz >= 0.0):
        return GroundRay(0.0, -1.0, u, v, z, du, dv, dz, per_u, per_v, 0, 0)

    # the beginning of the part
    if first > 0.0:
        u = u + first * du
        v = v + first * dv
        z = high if from_above else z + first * dz
        u = min(max(u, 0.0), last_u)
        v = min(max(v, 0.0), last_v)

    # the end of the part
    up_u = 1 if per_u > 0.0 else 0
    up_v = 1 if per_v > 0.0 else 0
    # The same formula as for all grid lines: rounding cannot lead to a block beyond the map.
    edge_u = ((last_u if up_u else 0.0) - u) * per_u
    edge_v = ((last_v if up_v else 0.0) - v) * per_v
    return GroundRay(
        first, min(last - first, edge_u, edge_v), u, v, z, du, dv, dz, per_u, per_v, up_u, up_v
    )


@inlined_kernel
def first_hit(
    ground: GroundGrid, heights: Any, maxima: Any, levels: Any, start_level: int, ray: GroundRay
) -> tuple[float, float, int, int]:
    """Return (step, t, i, j) of the first hit of a ray.

    The ray enters cell i, j at t and meets its ground `step` metres later. `step` is below 0 where
    the ray meets no ground. The search goes from block to block of the pyramid, each as large as
    the ray passes above, and through the cells of the others.
    """
    # the cell of the beginning; on a line the one that the ray goes into
    i = min(int(ray.u), ground.rows - 2)
    j = min(int(ray.v), ground.columns - 2)
    if ray.up_u == 0 and i > 0 and np.float64(i) == ray.u:
        i -= 1
    if ray.up_v == 0 and j > 0 and np.float64(j) == ray.v:
        j -= 1

    # the block of the pyramid that holds the beginning
    step = -1.0
    t = 0.0
    top = levels.shape[0] - 1
    # a ray that ends where it begins, at the far edge, would go down into a quarter beyond it
    level = min(start_level, top) if ray.end > 0.0 else 0
    shift = BLOCK_BITS + level
    block_i = i >> shift
    block_j = j >> shift
    begin = levels[np.uint64(level), 0]
    wide = levels[np.uint64(level), 1]
    while True:
        t_u = (np.float64((block_i + ray.up_u) << shift) - ray.u) * ray.per_u
        t_v = (np.float64((block_j + ray.up_v) << shift) - ray.v) * ray.per_v
        leave = min(t_u, t_v, ray.end)
        lowest = ray.z + ray.dz * (leave if ray.dz < 0.0 else t)
        if lowest > maxima[np.uint64(begin + block_i * wide + block_j)]:
            if leave >= ray.end:
                break

            # above this block: on to the next
            t = leave
            next_i = block_i
            next_j = block_j
            if t_u <= t_v:
                next_i += 2 * ray.up_u - 1
            else:
                next_j += 2 * ray.up_v - 1
            if level < top and ((next_i ^ block_i) | (next_j ^ block_j)) > 1:
                # into another parent, which may be passed in one step
                level += 1
                shift += 1
                begin = levels[np.uint64(level), 0]
                wide = levels[np.uint64(level), 1]
                next_i >>= 1
                next_j >>= 1
            block_i = next_i
            block_j = next_j
        elif level > 0:
            # down to the quarter of the block where the ray is
            level -= 1
            shift -= 1
            begin = levels[np.uint64(level), 0]
            wide = levels[np.uint64(level), 1]
            middle_u = (np.float64((2 * block_i + 1) << shift) - ray.u) * ray.per_u
            middle_v = (np.float64((2 * block_j + 1) << shift) - ray.v) * ray.per_v
            block_i = 2 * block_i + (ray.up_u if t >= middle_u else 1 - ray.up_u)
            block_j = 2 * block_j + (ray.up_v if t >= middle_v else 1 - ray.up_v)
        else:
            step, t, i, j = hit_in_block(ground, heights, ray, t, block_i, block_j)
            if step >= 0.0 or t >= ray.end:
                break
            # no larger block next: near the ground the ray would have to go through it too
            block_i = i >> BLOCK_BITS
            block_j = j >> BLOCK_BITS
    return step, t, i, j


@inlined_kernel
def hit_in_block(
    ground: GroundGrid, heights: Any, ray: GroundRay, t: float, block_i: int, block_j: int
) -> tuple[float, float, int, int]:
    """Return what `first_hit` returns, cell by cell through a block that is entered at t.

    Without a hit t and i, j are where the ray leaves the block.
    """
    last_i = ground.rows - 2
    last_j = ground.columns - 2
    width = np.uint64(ground.columns)

    # the cell of the beginning
    i = min(
        max(int(ray.u + t * ray.du), block_i << BLOCK_BITS), (block_i + 1 << BLOCK_BITS) - 1, last_i
    )
    j = min(
        max(int(ray.v + t * ray.dv), block_j << BLOCK_BITS), (block_j + 1 << BLOCK_BITS) - 1, last_j
    )

    cell_u = (np.float64(i + ray.up_u) - ray.u) * ray.per_u
    cell_v = (np.float64(j + ray.up_v) - ray.v) * ray.per_v
    step = -1.0
    while True:
        leave = max(min(cell_u, cell_v, ray.end), t)
        k = np.uint64(i) * width + np.uint64(j)
        z00 = heights[k]
        z01 = heights[k + np.uint64(1)]
        z10 = heights[k + width]
        z11 = heights[k + width + np.uint64(1)]
        lowest = ray.z + ray.dz * (leave if ray.dz < 0.0 else t)
        if lowest <= max(z00, z01, z10, z11):
            corner = np.float64(z00), np.float64(z01), np.float64(z10), np.float64(z11)
            step = hit_in_cell(ray, t, leave, i, j, corner)
            if step >= 0.0:
                break

        # the next cell
        t = leave
        if t >= ray.end:
            break
        if cell_u <= cell_v:
            i += 2 * ray.up_u - 1
            if (i >> BLOCK_BITS) != block_i:
                break
            cell_u = (np.float64(i + ray.up_u) - ray.u) * ray.per_u
        else:
            j += 2 * ray.up_v - 1
            if (j >> BLOCK_BITS) != block_j:
                break
            cell_v = (np.float64(j + ray.up_v) - ray.v) * ray.per_v
    return step, t, i, j


@inlined_kernel
def hit_in_cell(
    ray: GroundRay,
    t: float,
    leave: float,
    i: int,
    j: int,
    corner: tuple[float, float, float, float],
) -> float:
    """Return the first root of f = c + m·t + q·t² in cell i, j, metres after t; below 0: none.

    The ray crosses the cell from t to `leave`.
    """
    # the surface at the beginning, and the height above it
    z00, z01, z10, z11 = corner
    a = ray.u + t * ray.du - i
    b = ray.v + t * ray.dv - j
    along_u = z10 - z00
    along_v = z01 - z00
    twist = (z11 - z10) - along_v
    slope_u = along_u + twist * b
    slope_v = along_v + twist * a
    c = ray.z + t * ray.dz - (z00 + along_u * a + slope_v * b)
    if c <= 0.0:
        return 0.0

    # the quadratic, and its first root
    span = leave - t
    m = ray.dz - slope_u * ray.du - slope_v * ray.dv
    q = -twist * ray.du * ray.dv
    step = -1.0
    below = c + (m + q * span) * span <= 0.0
    # above at both ends it may dip between them: then f is convex with its lowest point there
    if below or (q > 0.0 and m < 0.0 and -m < 2.0 * q * span):
        root = m * m - 4.0 * q * c
        if below or root >= 0.0:
            root = np.sqrt(max(root, 0.0))
            step = (2.0 * c) / (root - m) if m < 0.0 else (m + root) / (-2.0 * q)
            step = step if step < span else span
    return step


@inlined_kernel
def normal_at_hit(
    ground: GroundGrid, ray: GroundRay, step: float, t: float, i: int, j: int
) -> tuple[float, float, float]:
    """Return the unit normal of the surface in cell i, j, `step` metres after t."""
    z00, z01, z10, z11 = corners(ground, i, j)
    twist = (z11 - z10) - (z01 - z00)
    a = ray.u + t * ray.du - i + step * ray.du
    b = ray.v + t * ray.dv - j + step * ray.dv
    return unit_normal(
        ((z10 - z00) + twist * b) / ground.step_x, ((z01 - z00) + twist * a) / ground.step_y
    )
