# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground and the air that the vehicle meets. docs/model, section 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.atmosphere import (
    air_density,
    pressure_at_temperature,
    standard_temperature,
)
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import first_vector, lookup, rows_of, vectors, where
from rfly_common.kernels.vectors import Vector
from rfly_terrain.height_map.bilinear import (
    Around,
    interpolate,
    on_map,
    unit_normal,
    vertex_gradients,
)

EDGE_NUMBERS = 6
"""Numbers of an edge in `GroundFriction.edges`."""


@inlined_kernel
def heights_above_ground(ground: Any, points: Any, begin: int, count: int) -> None:
    """Turn z of `count` points, in `points.height`, into the height above the ground, m. Eq. 3.1.

    The result is that of `HeightMap.altitude`. `begin` is a multiple of PARTS.
    """
    last_row = ground.rows - 1.0
    last_column = ground.columns - 1.0
    per_step_x = 1.0 / ground.step_x
    per_step_y = 1.0 / ground.step_y
    columns = ground.columns
    heights = ground.heights
    x = points.x
    y = points.y
    height = points.height
    row = points.row
    column = points.column
    z00 = points.height_00
    z01 = points.height_01
    z10 = points.height_10
    z11 = points.height_11

    first = first_vector(points, begin)
    for k in range(first, first + vectors(points, count)):
        # cell and fractions of it
        u = within((x[k] - ground.origin_x) * per_step_x, last_row)
        v = within((y[k] - ground.origin_y) * per_step_y, last_column)
        i = min(np.floor(u), last_row - 1.0)
        j = min(np.floor(v), last_column - 1.0)
        row[k] = u - i
        column[k] = v - j
        points.cell_row[k] = i
        points.cell_column[k] = j

        # its corners
        cell = i * float(columns) + j
        z00[k] = lookup(heights, cell, 0)
        z01[k] = lookup(heights, cell, 1)
        z10[k] = lookup(heights, cell, columns)
        z11[k] = lookup(heights, cell, columns + 1)
        height[k] -= interpolate(z00[k], z01[k], z10[k], z11[k], row[k], column[k])


@inlined_kernel
def within(u: float, last: float) -> float:
    """Return u clamped to 0 … last; 0 for NaN, which must not become an index."""
    u = where(u > 0.0, u, 0.0)
    return where(u < last, u, last)


@inlined_kernel
def ground_normal(ground: Any, points: Any, k: int) -> Vector:
    """Return the smooth unit normal of the ground at a point, world axes. Eq. 3.2.

    The point has been looked up by `heights_above_ground`. The result is that of
    `HeightMap.normal`.
    """
    slope_x, slope_y = ground_slopes(ground, points, k)
    return unit_normal(slope_x, slope_y)


@inlined_kernel
def ground_slopes(ground: Any, points: Any, k: int) -> tuple[float, float]:
    """Return the smooth (dz/dx, dz/dy) at a point that has been looked up; 0 off the map."""
    i = points.cell_row[k]
    j = points.cell_column[k]
    corners = (points.height_00[k], points.height_01[k], points.height_10[k], points.height_11[k])
    x, y = vertex_gradients(ground, i, j, corners, heights_beside(ground, i, j))

    a = points.row[k]
    b = points.column[k]
    u = (points.x[k] - ground.origin_x) * (1.0 / ground.step_x)
    v = (points.y[k] - ground.origin_y) * (1.0 / ground.step_y)
    on_x, on_y = on_map(ground, u, v)
    slope_x = where(on_x, interpolate(x[0], x[1], x[2], x[3], a, b), 0.0)
    slope_y = where(on_y, interpolate(y[0], y[1], y[2], y[3], a, b), 0.0)
    return slope_x, slope_y


@inlined_kernel
def ground_friction(ground: Any, points: Any, k: int) -> float:
    """Return λ, the factor on the friction of tyres at a point that has been looked up. Eq. 3.9."""
    factor = ground.friction
    if rows_of(ground.layer) > 0:
        i = points.cell_row[k] + np.floor(points.row[k] + 0.5)
        j = points.cell_column[k] + np.floor(points.column[k] + 0.5)
        factor = lookup(ground.layer, i * float(ground.columns) + j, 0)

    # an area holds a point if an odd number of its edges lie east of it
    odd = 0.0
    edges = ground.edges
    for e in range(rows_of(edges)):
        row = float(EDGE_NUMBERS * e)
        begin = lookup(edges, row, 0)
        beside = (points.y[k] >= begin) & (points.y[k] < lookup(edges, row, 1))
        crossing = lookup(edges, row, 2) + lookup(edges, row, 3) * (points.y[k] - begin)
        odd = where(beside & (points.x[k] < crossing), 1.0 - odd, odd)
        if lookup(edges, row, 5) > 0.0:
            factor = where(odd > 0.0, lookup(edges, row, 4), factor)
            odd = 0.0
    return factor


@inlined_kernel
def heights_beside(ground: Any, i: float, j: float) -> Around:
    """Return what `bilinear.heights_around` returns, for a cell as it is in `points`."""
    heights = ground.heights
    columns = float(ground.columns)
    low = max(i - 1.0, 0.0) * columns + j
    high = min(i + 2.0, ground.rows - 1.0) * columns + j
    south = i * columns + max(j - 1.0, 0.0)
    north = i * columns + min(j + 2.0, columns - 1.0)
    return (
        lookup(heights, low, 0),
        lookup(heights, low, 1),
        lookup(heights, high, 0),
        lookup(heights, high, 1),
        lookup(heights, south, 0),
        lookup(heights, south, ground.columns),
        lookup(heights, north, 0),
        lookup(heights, north, ground.columns),
    )


@kernel
def density_ratio(p: Any, z: float) -> float:
    """Return ρ/ρ₀ at height z of the map. Eq. 3.4."""
    temperature = standard_temperature(z + p.map_altitude)
    return air_density(pressure_at_temperature(temperature), temperature) / p.air_density
