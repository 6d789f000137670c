# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The ground and the air that the vehicle meets. docs/model, section 3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.atmosphere import (
    air_density,
    pressure_at_temperature,
    standard_temperature,
)
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import first_vector, lookup, rows_of, vectors, where
from rfly_common.kernels.record_vectors import set_vector, vector
from rfly_common.kernels.vectors import Vector, dot, subtract
from rfly_terrain.height_map.bilinear import (
    Around,
    altitude,
    interpolate,
    on_map,
    unit_normal,
    vertex_gradients,
)

EDGE_NUMBERS = 6
"""Numbers of an edge in `GroundFriction.edges`."""

# Dryden's turbulence below 1,000 ft: MIL-F-8785C (1980), sections 3.7.1.2 and 3.7.3.4. Eq. 3.6.
FOOT = 0.3048
"""Foot, m."""
LOWEST_TURBULENCE_FT = 10.0
"""Height below which lengths and strengths are those of this height."""
HIGHEST_TURBULENCE_FT = 1000.0
"""Height above which lengths and strengths are those of this height."""


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


@inlined_kernel
def next_turbulence(
    x: Any, memory: Any, mean: Vector, noise: Vector, wind_at_6_m: float, period: float, ground: Any
) -> None:
    """Replace the gust in `memory` by that of one period (s) later.

    u lies along the mean wind (east, where there is none), w upwards. The airspeed turns white
    noise in space into white noise in time; u has passed one lag since, v and w have passed
    (1 + √3 T s) / (1 + T s)², T = length / airspeed.
    """
    # lengths and strengths
    above_ground = x.position[2] - altitude(ground, x.position[0], x.position[1])
    h = min(max(above_ground / FOOT, LOWEST_TURBULENCE_FT), HIGHEST_TURBULENCE_FT)
    shape = 0.177 + 0.000823 * h
    sigma_w = 0.1 * wind_at_6_m
    sigma_u = sigma_w / shape**0.4
    length_u = h / shape**1.2 * FOOT
    length_w = h * FOOT

    # filters
    air_velocity = subtract(vector(x.velocity), mean)
    way = math.sqrt(dot(air_velocity, air_velocity)) * period
    filters = memory.turbulence
    u = lagged(filters[0], noise[0], way / length_u)
    filters[0] = u
    v = sigma_u * twice_lagged(filters, 1, noise[1], way / length_u)
    w = sigma_w * twice_lagged(filters, 3, noise[2], way / length_w)

    # along the mean wind
    speed = math.sqrt(mean[0] * mean[0] + mean[1] * mean[1])
    c = 1.0
    s = 0.0
    if speed > 0.0:
        c = mean[0] / speed
        s = mean[1] / speed
    set_vector(memory.gust, (c * sigma_u * u - s * v, s * sigma_u * u + c * v, w))


@inlined_kernel
def lagged(state: float, noise: float, share: float) -> float:
    """Return the next output, of variance 1, of a lag of white noise.

    `share`: time that has passed, relative to the lag's time constant.
    """
    keep = math.exp(-share)
    return keep * state + math.sqrt(1.0 - keep * keep) * noise


@inlined_kernel
def twice_lagged(filters: Any, k: int, noise: float, share: float) -> float:
    """Return the next output, of variance 1, of white noise through (1 + √3 T s) / (1 + T s)².

    The filter's states are in `filters`: after one lag at k, after two at k + 1.
    """
    keep = math.exp(-share)
    before = filters[k]
    filters[k] = lagged(before, noise, share)
    filters[k + 1] = keep * filters[k + 1] + (1.0 - keep) * 0.5 * (before + filters[k])
    root = math.sqrt(3.0)
    return (root * filters[k] + (1.0 - root) * filters[k + 1]) / math.sqrt(2.0)
