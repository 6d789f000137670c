# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Bilinear look-ups for kernels; `scalar` has them for plain floats.

`ground` is a `ground.GroundGrid`. Row u and column v are clamped each on its own, and a NaN becomes
0, since it must not become an index. a and b are their fractions within cell i, j. No fastmath,
which drops the checks for NaN. Unsigned indices spare a test for negative ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.lanes import where

Corners = tuple[float, float, float, float]
"""Numbers at the corners 00, 01, 10, 11 of a cell."""

Around = tuple[float, float, float, float, float, float, float, float]
"""Heights of the neighbours of a cell's corners, as `heights_around` returns them."""


@inner_kernel
def clamp(u: float, last: float) -> float:
    """Return u, limited to 0 … last."""
    u = u if u > 0.0 else 0.0
    return u if u < last else last


@inlined_kernel
def on_map(ground: Any, u: Any, v: Any) -> tuple[Any, Any]:
    """Return whether row u is on the map, and whether column v is."""
    on_x = (u >= -ground.slack_u) & (u <= ground.rows - 1 + ground.slack_u)
    return on_x, (v >= -ground.slack_v) & (v <= ground.columns - 1 + ground.slack_v)


@inner_kernel
def cell_at(ground: Any, x: float, y: float) -> tuple[int, int, float, float, bool, bool]:
    """Return (i, j, a, b, x is on the map, y is on the map) of a point."""
    u = (x - ground.origin_x) / ground.step_x
    v = (y - ground.origin_y) / ground.step_y
    on_x, on_y = on_map(ground, u, v)
    u = clamp(u, ground.rows - 1.0)
    v = clamp(v, ground.columns - 1.0)
    i = min(int(u), ground.rows - 2)
    j = min(int(v), ground.columns - 2)
    return i, j, u - i, v - j, on_x, on_y


@inner_kernel
def corners(ground: Any, i: int, j: int) -> tuple[float, float, float, float]:
    """Return the heights z00, z01, z10, z11 at the corners of cell i, j."""
    k = np.uint64(i * ground.columns + j)
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    z00 = np.float64(ground.heights[k])
    z01 = np.float64(ground.heights[k + right])
    z10 = np.float64(ground.heights[k + below])
    z11 = np.float64(ground.heights[k + below + right])
    return z00, z01, z10, z11


@inner_kernel
def interpolate(f00: float, f01: float, f10: float, f11: float, a: float, b: float) -> float:
    """Return the bilinear mean of the values at a cell's corners."""
    return (f00 * (1.0 - b) + f01 * b) * (1.0 - a) + (f10 * (1.0 - b) + f11 * b) * a


@inner_kernel
def slopes(
    f00: float, f01: float, f10: float, f11: float, a: float, b: float
) -> tuple[float, float]:
    """Return the derivatives of `interpolate` by a and by b."""
    return (f10 - f00) * (1.0 - b) + (f11 - f01) * b, (f01 - f00) * (1.0 - a) + (f11 - f10) * a


@inner_kernel
def altitude(ground: Any, x: float, y: float) -> float:
    """Return the height, m, as `HeightMap.altitude`: outside the map that of its edge."""
    i, j, a, b, _, _ = cell_at(ground, x, y)
    z00, z01, z10, z11 = corners(ground, i, j)
    return interpolate(z00, z01, z10, z11, a, b)


@inner_kernel
def heights_around(ground: Any, i: int, j: int) -> Around:
    """Return the heights of the samples next to cell i, j; at the border those of the cell itself.

    Two each at lower x, higher x, lower y and higher y.
    """
    heights = ground.heights
    columns = ground.columns
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    low = np.uint64((i - 1 if i > 0 else i) * columns + j)
    high = np.uint64((i + 2 if i < ground.rows - 2 else i + 1) * columns + j)
    south = np.uint64(i * columns + (j - 1 if j > 0 else j))
    north = np.uint64(i * columns + (j + 2 if j < columns - 2 else j + 1))
    return (
        np.float64(heights[low]),
        np.float64(heights[low + right]),
        np.float64(heights[high]),
        np.float64(heights[high + right]),
        np.float64(heights[south]),
        np.float64(heights[south + below]),
        np.float64(heights[north]),
        np.float64(heights[north + below]),
    )


@inlined_kernel
def vertex_gradients(
    ground: Any, i: Any, j: Any, z: Corners, around: Around
) -> tuple[Corners, Corners]:
    """Return dz/dx at the corners of cell i, j, and dz/dy there.

    They are central differences, one-sided at the border. `z` are the heights of the corners,
    `around` the `heights_around` them.
    """
    z00, z01, z10, z11 = z
    low_x0, low_x1, high_x0, high_x1, low_y0, low_y1, high_y0, high_y1 = around
    per_x = 1.0 / ground.step_x
    per_y = 1.0 / ground.step_y
    below = where(i > 0, 0.5 * per_x, per_x)
    above = where(i < ground.rows - 2, 0.5 * per_x, per_x)
    south = where(j > 0, 0.5 * per_y, per_y)
    north = where(j < ground.columns - 2, 0.5 * per_y, per_y)

    along_x = (
        (z10 - low_x0) * below,
        (z11 - low_x1) * below,
        (high_x0 - z00) * above,
        (high_x1 - z01) * above,
    )
    along_y = (
        (z01 - low_y0) * south,
        (high_y0 - z00) * north,
        (z11 - low_y1) * south,
        (high_y1 - z10) * north,
    )
    return along_x, along_y


@inlined_kernel
def gradient(
    ground: Any, px: float, py: float, smooth: bool
) -> tuple[float, float, float, bool, bool]:
    """Return (z, dz/dx, dz/dy, x is on the map, y is on the map).

    The derivatives are those of the surface or, `smooth`, of the samples, interpolated. Along an
    axis on which the point lies outside the derivative is 0.
    """
    i, j, a, b, on_x, on_y = cell_at(ground, px, py)
    z00, z01, z10, z11 = corners(ground, i, j)
    if smooth:
        x, y = vertex_gradients(ground, i, j, (z00, z01, z10, z11), heights_around(ground, i, j))
        along_x = interpolate(x[0], x[1], x[2], x[3], a, b)
        along_y = interpolate(y[0], y[1], y[2], y[3], a, b)
    else:
        along_u, along_v = slopes(z00, z01, z10, z11, a, b)
        along_x = along_u / ground.step_x
        along_y = along_v / ground.step_y

    z = interpolate(z00, z01, z10, z11, a, b)
    return z, along_x if on_x else 0.0, along_y if on_y else 0.0, on_x, on_y


@inner_kernel
def unit_normal(along_x: float, along_y: float) -> tuple[float, float, float]:
    """Return the unit normal out of ground with this gradient."""
    # 0 - g: no negative zeros on level ground
    up = 1.0 / math.sqrt(along_x * along_x + along_y * along_y + 1.0)
    return (0.0 - along_x) * up, (0.0 - along_y) * up, up
