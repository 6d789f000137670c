"""The ground and the air that the vehicle meets, compiled where numba is. docs/model, section 3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.jit import kernel_or_plain as kernel


@kernel(nogil=True, error_model="numpy", inline="always")
def clamped(u: float, last: float) -> float:
    """u within 0 … last; a NaN becomes 0: it must not become an index."""
    u = u if u > 0.0 else 0.0
    return u if u < last else last


@kernel(nogil=True, error_model="numpy")
def heights_above_ground(ground: Any, count: int, scratch: Any) -> None:
    """Turns z in `point_height` into the height above the bilinear ground, m, as `HeightMap.altitude` has it. Eq. 3.1.

    Three loops, so that the first and the last become vector instructions; unsigned offsets spare a test for negatives.
    """
    last_row, last_column = ground.rows - 1.0, ground.columns - 1.0
    heights, columns = ground.heights, ground.columns
    for k in range(count):
        scratch.row[k] = clamped((scratch.point_x[k] - ground.origin_x) / ground.step_x, last_row)
        scratch.column[k] = clamped((scratch.point_y[k] - ground.origin_y) / ground.step_y, last_column)
    below = np.uint64(columns)
    for k in range(count):
        u, v = scratch.row[k], scratch.column[k]
        i, j = min(int(u), ground.rows - 2), min(int(v), columns - 2)
        first = np.uint64(i * columns + j)
        scratch.row[k], scratch.column[k] = u - i, v - j
        scratch.height_00[k], scratch.height_01[k] = heights[first], heights[first + np.uint64(1)]
        scratch.height_10[k], scratch.height_11[k] = heights[first + below], heights[first + below + np.uint64(1)]
    for k in range(count):
        a, b = scratch.row[k], scratch.column[k]
        near = scratch.height_00[k] * (1.0 - b) + scratch.height_01[k] * b
        far = scratch.height_10[k] * (1.0 - b) + scratch.height_11[k] * b
        scratch.point_height[k] -= near * (1.0 - a) + far * a


@kernel(nogil=True, error_model="numpy", inline="always")
def vertex_gradient(ground: Any, i: int, j: int) -> tuple[float, float]:
    """(dz/dx, dz/dy) at vertex i, j: central differences, one-sided at the border."""
    heights, columns = ground.heights, ground.columns
    i_low, i_high = max(i - 1, 0), min(i + 1, ground.rows - 1)
    j_low, j_high = max(j - 1, 0), min(j + 1, columns - 1)
    east, west = heights[np.uint64(i_high * columns + j)], heights[np.uint64(i_low * columns + j)]
    north, south = heights[np.uint64(i * columns + j_high)], heights[np.uint64(i * columns + j_low)]
    along_x = (np.float64(east) - np.float64(west)) / ((i_high - i_low) * ground.step_x)
    along_y = (np.float64(north) - np.float64(south)) / ((j_high - j_low) * ground.step_y)
    return along_x, along_y


@kernel(nogil=True, error_model="numpy")
def ground_normal(ground: Any, x: float, y: float) -> tuple[float, float, float]:
    """The smooth unit normal, world, as `HeightMap.normal` has it. Eq. 3.2."""
    raw_u, raw_v = (x - ground.origin_x) / ground.step_x, (y - ground.origin_y) / ground.step_y
    on_x = (raw_u >= -ground.slack_u) and (raw_u <= ground.rows - 1 + ground.slack_u)
    on_y = (raw_v >= -ground.slack_v) and (raw_v <= ground.columns - 1 + ground.slack_v)
    u, v = clamped(raw_u, ground.rows - 1.0), clamped(raw_v, ground.columns - 1.0)
    i, j = min(int(u), ground.rows - 2), min(int(v), ground.columns - 2)
    a, b = u - i, v - j
    x00, y00 = vertex_gradient(ground, i, j)
    x01, y01 = vertex_gradient(ground, i, j + 1)
    x10, y10 = vertex_gradient(ground, i + 1, j)
    x11, y11 = vertex_gradient(ground, i + 1, j + 1)
    along_x = (x00 * (1.0 - b) + x01 * b) * (1.0 - a) + (x10 * (1.0 - b) + x11 * b) * a if on_x else 0.0
    along_y = (y00 * (1.0 - b) + y01 * b) * (1.0 - a) + (y10 * (1.0 - b) + y11 * b) * a if on_y else 0.0
    norm = math.sqrt(along_x * along_x + along_y * along_y + 1.0)
    return (0.0 - along_x) / norm, (0.0 - along_y) / norm, 1.0 / norm


@kernel(nogil=True, error_model="numpy")
def density_ratio(p: Any, z: float) -> float:
    """ρ/ρ₀ at height z of the map. Eq. 3.4."""
    height = z + p.map_altitude
    temperature = 288.15 - 0.0065 * height
    pressure = 101325.0 * (temperature / 288.15) ** 5.25588
    return pressure / (287.053 * temperature) / p.air_density
