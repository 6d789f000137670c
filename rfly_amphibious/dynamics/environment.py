"""The ground and the air that the vehicle meets, compiled where numba is. docs/model, section 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.atmosphere import air_density, pressure_at_temperature, standard_temperature
from rfly_common.kernels.jit import kernel
from rfly_terrain.height_map.bilinear import clamp, gradient, interpolate, unit_normal


@kernel
def heights_above_ground(ground: Any, count: int, scratch: Any) -> None:
    """Turns z in `point_height` into the height above the bilinear ground, m, as `HeightMap.altitude` has it. Eq. 3.1.

    Three loops, so that the first and the last become vector instructions; unsigned offsets spare a test for negatives.
    """
    last_row, last_column = ground.rows - 1.0, ground.columns - 1.0
    heights, columns = ground.heights, ground.columns
    for k in range(count):
        scratch.row[k] = clamp((scratch.point_x[k] - ground.origin_x) / ground.step_x, last_row)
        scratch.column[k] = clamp((scratch.point_y[k] - ground.origin_y) / ground.step_y, last_column)
    below = np.uint64(columns)
    for k in range(count):
        u, v = scratch.row[k], scratch.column[k]
        i, j = min(int(u), ground.rows - 2), min(int(v), columns - 2)
        first = np.uint64(i * columns + j)
        scratch.row[k], scratch.column[k] = u - i, v - j
        scratch.height_00[k], scratch.height_01[k] = heights[first], heights[first + np.uint64(1)]
        scratch.height_10[k], scratch.height_11[k] = heights[first + below], heights[first + below + np.uint64(1)]
    for k in range(count):
        z00, z01, z10, z11 = scratch.height_00[k], scratch.height_01[k], scratch.height_10[k], scratch.height_11[k]
        scratch.point_height[k] -= interpolate(z00, z01, z10, z11, scratch.row[k], scratch.column[k])


@kernel
def ground_normal(ground: Any, x: float, y: float) -> tuple[float, float, float]:
    """The smooth unit normal, world, as `HeightMap.normal` has it. Eq. 3.2."""
    _, along_x, along_y, _, _ = gradient(ground, x, y, True)
    return unit_normal(along_x, along_y)


@kernel
def density_ratio(p: Any, z: float) -> float:
    """ρ/ρ₀ at height z of the map. Eq. 3.4."""
    temperature = standard_temperature(z + p.map_altitude)
    return air_density(pressure_at_temperature(temperature), temperature) / p.air_density
