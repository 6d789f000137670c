"""Bilinear look-ups inside compiled kernels. `kernels_numpy` has them for arrays, `scalar` for plain floats.

`ground` is a `ground.Ground`. Row u and column v are clamped each on its own; a NaN becomes 0, since it must not become
an index. a and b are their fractions within cell i, j. No fastmath, which drops the checks for NaN. Unsigned
indices spare a test for negative ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.kernels.jit import inlined_kernel, inner_kernel


@inner_kernel
def clamp(u: float, last: float) -> float:
    """u within 0 … last."""
    u = u if u > 0.0 else 0.0
    return u if u < last else last


@inner_kernel
def cell_at(ground: Any, x: float, y: float) -> tuple[int, int, float, float, bool, bool]:
    """(i, j, a, b, x is on the map, y is on the map)."""
    u, v = (x - ground.origin_x) / ground.step_x, (y - ground.origin_y) / ground.step_y
    on_x = (u >= -ground.slack_u) & (u <= ground.rows - 1 + ground.slack_u)
    on_y = (v >= -ground.slack_v) & (v <= ground.columns - 1 + ground.slack_v)
    u, v = clamp(u, ground.rows - 1.0), clamp(v, ground.columns - 1.0)
    i, j = min(int(u), ground.rows - 2), min(int(v), ground.columns - 2)
    return i, j, u - i, v - j, on_x, on_y


@inner_kernel
def corners(ground: Any, i: int, j: int) -> tuple[float, float, float, float]:
    """Heights z00, z01, z10, z11 at the corners of cell i, j."""
    k, right, below = np.uint64(i * ground.columns + j), np.uint64(1), np.uint64(ground.columns)
    z00, z01 = np.float64(ground.heights[k]), np.float64(ground.heights[k + right])
    z10, z11 = np.float64(ground.heights[k + below]), np.float64(ground.heights[k + below + right])
    return z00, z01, z10, z11


@inner_kernel
def interpolate(f00: float, f01: float, f10: float, f11: float, a: float, b: float) -> float:
    """Between the values at a cell's corners."""
    return (f00 * (1.0 - b) + f01 * b) * (1.0 - a) + (f10 * (1.0 - b) + f11 * b) * a


@inner_kernel
def slopes(f00: float, f01: float, f10: float, f11: float, a: float, b: float) -> tuple[float, float]:
    """Derivatives of `interpolate` by a and by b."""
    return (f10 - f00) * (1.0 - b) + (f11 - f01) * b, (f01 - f00) * (1.0 - a) + (f11 - f10) * a


@inner_kernel
def altitude(ground: Any, x: float, y: float) -> float:
    """m, as `HeightMap.altitude`: outside the map that of its edge."""
    i, j, a, b, _, _ = cell_at(ground, x, y)
    z00, z01, z10, z11 = corners(ground, i, j)
    return interpolate(z00, z01, z10, z11, a, b)


@inner_kernel
def vertex_gradient(ground: Any, i: int, j: int) -> tuple[float, float]:
    """(dz/dx, dz/dy) at sample i, j: central differences, one-sided at the border."""
    heights, columns = ground.heights, ground.columns
    i_low, i_high = max(i - 1, 0), min(i + 1, ground.rows - 1)
    j_low, j_high = max(j - 1, 0), min(j + 1, columns - 1)
    east, west = np.float64(heights[np.uint64(i_high * columns + j)]), heights[np.uint64(i_low * columns + j)]
    north, south = np.float64(heights[np.uint64(i * columns + j_high)]), heights[np.uint64(i * columns + j_low)]
    return (east - west) / ((i_high - i_low) * ground.step_x), (north - south) / ((j_high - j_low) * ground.step_y)


@inner_kernel
def vertex_gradients(ground: Any, i: int, j: int) -> tuple[float, float, float, float, float, float, float, float]:
    """dz/dx at the corners 00, 01, 10, 11 of cell i, j, then dz/dy."""
    x00, y00 = vertex_gradient(ground, i, j)
    x01, y01 = vertex_gradient(ground, i, j + 1)
    x10, y10 = vertex_gradient(ground, i + 1, j)
    x11, y11 = vertex_gradient(ground, i + 1, j + 1)
    return x00, x01, x10, x11, y00, y01, y10, y11


@inlined_kernel
def gradient(ground: Any, x: float, y: float, smooth: bool) -> tuple[float, float, float, bool, bool]:
    """(z, dz/dx, dz/dy, x is on the map, y is on the map): of the surface, or of the samples, interpolated (`smooth`).

    Along an axis on which the point lies outside the derivative is 0.
    """
    i, j, a, b, on_x, on_y = cell_at(ground, x, y)
    z00, z01, z10, z11 = corners(ground, i, j)
    if smooth:
        x00, x01, x10, x11, y00, y01, y10, y11 = vertex_gradients(ground, i, j)
        along_x, along_y = interpolate(x00, x01, x10, x11, a, b), interpolate(y00, y01, y10, y11, a, b)
    else:
        along_u, along_v = slopes(z00, z01, z10, z11, a, b)
        along_x, along_y = along_u / ground.step_x, along_v / ground.step_y
    z = interpolate(z00, z01, z10, z11, a, b)
    return z, along_x if on_x else 0.0, along_y if on_y else 0.0, on_x, on_y


@inner_kernel
def unit_normal(along_x: float, along_y: float) -> tuple[float, float, float]:
    """Of a gradient, out of the ground; 0 - g: no negative zeros on level ground."""
    norm = math.sqrt(along_x * along_x + along_y * along_y + 1.0)
    return (0.0 - along_x) / norm, (0.0 - along_y) / norm, 1.0 / norm
