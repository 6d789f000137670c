"""The ground and the air that the vehicle meets, as kernels. docs/model, section 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.atmosphere import (
    air_density,
    pressure_at_temperature,
    standard_temperature,
)
from rfly_common.kernels.jit import inlined_kernel, kernel
from rfly_common.kernels.lanes import flat, lanes_of, where
from rfly_terrain.height_map.bilinear import (
    clamp,
    heights_around,
    interpolate,
    on_map,
    unit_normal,
    vertex_gradients,
)


@kernel
def heights_above_ground(ground: Any, begin: int, end: int, scratch: Any) -> None:
    """Turns z in `point_height` into the height above the bilinear ground, m, as
    `HeightMap.altitude` has it. Eq. 3.1.

    Three loops, so that the first and the last become vector instructions; unsigned offsets spare a
    test for negatives.
    """
    last_row = ground.rows - 1.0
    last_column = ground.columns - 1.0
    columns = float(ground.columns)
    x = flat(scratch.point_x)
    y = flat(scratch.point_y)
    height = flat(scratch.point_height)
    row = flat(scratch.row)
    column = flat(scratch.column)
    cell = flat(scratch.cell)
    cell_row = flat(scratch.cell_row)
    cell_column = flat(scratch.cell_column)
    z00 = flat(scratch.height_00)
    z01 = flat(scratch.height_01)
    z10 = flat(scratch.height_10)
    z11 = flat(scratch.height_11)
    heights = ground.heights
    below = np.uint64(ground.columns)
    lanes = lanes_of(scratch)
    for k in range(begin * lanes, end * lanes):
        u = clamp((x[k] - ground.origin_x) / ground.step_x, last_row)
        v = clamp((y[k] - ground.origin_y) / ground.step_y, last_column)
        i = min(np.floor(u), last_row - 1.0)
        j = min(np.floor(v), last_column - 1.0)
        row[k] = u - i
        column[k] = v - j
        cell_row[k] = i
        cell_column[k] = j
        cell[k] = i * columns + j
    for k in range(begin * lanes, end * lanes):
        first = np.uint64(int(cell[k]))
        z00[k] = heights[first]
        z01[k] = heights[first + np.uint64(1)]
        z10[k] = heights[first + below]
        z11[k] = heights[first + below + np.uint64(1)]
    for k in range(begin * lanes, end * lanes):
        height[k] -= interpolate(z00[k], z01[k], z10[k], z11[k], row[k], column[k])


@inlined_kernel
def ground_normal(ground: Any, point: int, scratch: Any) -> tuple[float, float, float]:
    """The smooth unit normal, world, at a point whose height is known, as `HeightMap.normal` has
    it. Eq. 3.2.
    """
    lanes = lanes_of(scratch)
    around = flat(scratch.heights_around)
    i = flat(scratch.cell_row)
    j = flat(scratch.cell_column)
    for k in range(lanes):
        beside = heights_around(ground, int(i[point * lanes + k]), int(j[point * lanes + k]))
        for n in range(8):
            around[n * lanes + k] = beside[n]
    h = scratch.heights_around
    z = (
        scratch.height_00[point],
        scratch.height_01[point],
        scratch.height_10[point],
        scratch.height_11[point],
    )
    x, y = vertex_gradients(
        ground,
        scratch.cell_row[point],
        scratch.cell_column[point],
        z,
        (h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]),
    )
    a = scratch.row[point]
    b = scratch.column[point]
    u = (scratch.point_x[point] - ground.origin_x) / ground.step_x
    v = (scratch.point_y[point] - ground.origin_y) / ground.step_y
    on_x, on_y = on_map(ground, u, v)
    along_x = where(on_x, interpolate(x[0], x[1], x[2], x[3], a, b), 0.0)
    along_y = where(on_y, interpolate(y[0], y[1], y[2], y[3], a, b), 0.0)
    return unit_normal(along_x, along_y)


@kernel
def density_ratio(p: Any, z: float) -> float:
    """ρ/ρ₀ at height z of the map. Eq. 3.4."""
    temperature = standard_temperature(z + p.map_altitude)
    return air_density(pressure_at_temperature(temperature), temperature) / p.air_density
