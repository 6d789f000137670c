"""Compiled look-ups in a height map: altitude, gradient and its rate, normal, inside, point cloud.

What all of them share:
- `ground`: a `ground.GroundGrid`; rows u and columns v are clamped each on its own (`bilinear`).
- x, y: one-dimensional; results go to the last arguments. Kernels that return a bool return False
where an x or y was
  NaN or infinite (its result is without meaning); the caller then looks which one.
- No fastmath, which drops the checks for NaN. All release the GIL.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.jit import kernel
from rfly_terrain.height_map.bilinear import (
    cell_at,
    clamp,
    corners,
    gradient,
    heights_around,
    interpolate,
    slopes,
    unit_normal,
    vertex_gradients,
)
from rfly_terrain.height_map.ground import GroundGrid

BLOCK = 256
"""points between the loops of `altitudes`: their cells, fractions and corners stay in the
first-level cache
"""
SMALL_BLOCK = 64
"""the same for `surfaces`, which keeps more of each point"""


@kernel
def altitudes(ground: GroundGrid, x: Any, y: Any, out: Any) -> bool:
    """Bilinear heights at n points -> out (n,) float64. Formula: terrain-format.md, "Altitude at
    (x, y)".

    In blocks of three loops: cells and fractions, then the corners, then the interpolation. The
    first and the last become vector instructions, and the cache misses of the middle one overlap
    best in a loop that does nothing else (measured: 9 instead of 13 ns a random point on one core;
    prefetching, huge pages and 64-bit pairs gained nothing). Unsigned offsets spare a test for
    negative ones.
    """
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    flat = ground.heights
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    last_i = np.int32(ground.rows - 2)
    last_j = np.int32(ground.columns - 2)
    width = np.int32(ground.columns)
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    first = np.empty(BLOCK, np.int32)
    fraction_u = np.empty(BLOCK)
    fraction_v = np.empty(BLOCK)
    z00 = np.empty(BLOCK, np.float32)
    z01 = np.empty(BLOCK, np.float32)
    z10 = np.empty(BLOCK, np.float32)
    z11 = np.empty(BLOCK, np.float32)
    bad = 0
    for start in range(0, x.size, BLOCK):
        count = min(BLOCK, x.size - start)
        for n in range(count):
            x_n = np.float64(x[start + n])
            y_n = np.float64(y[start + n])
            bad |= (not (abs(x_n) < np.inf)) | (not (abs(y_n) < np.inf))
            u = clamp((x_n - origin_x) / step_x, last_u)
            v = clamp((y_n - origin_y) / step_y, last_v)
            i = min(np.int32(u), last_i)
            j = min(np.int32(v), last_j)
            fraction_u[n] = u - np.float64(i)
            fraction_v[n] = v - np.float64(j)
            first[n] = np.int32(i * width + j)
        for n in range(count):
            k = np.uint64(np.uint32(first[n]))
            z00[n] = flat[k]
            z01[n] = flat[k + right]
            z10[n] = flat[k + below]
            z11[n] = flat[k + below + right]
        for n in range(count):
            out[start + n] = interpolate(
                z00[n], z01[n], z10[n], z11[n], fraction_u[n], fraction_v[n]
            )
    return bad == 0


@kernel
def insides(ground: GroundGrid, x: Any, y: Any, out: Any) -> bool:
    """Whether n points lie on the map, edges included -> out (n,) bool."""
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        _, _, _, _, on_x, on_y = cell_at(ground, x[n], y[n])
        out[n] = on_x & on_y
    return finite


@kernel
def gradients(ground: GroundGrid, x: Any, y: Any, smooth: bool, out: Any) -> bool:
    """(dz/dx, dz/dy) at n points -> out (n, 2): of the bilinear surface, or (smooth) of the
    vertices, interpolated.

    0 along an axis on which the point lies outside. On the border of two cells the exact gradient
    is that of the higher index.
    """
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        _, along_x, along_y, _, _ = gradient(ground, x[n], y[n], smooth)
        out[n, 0] = along_x
        out[n, 1] = along_y
    return finite


@kernel
def queries(
    ground: GroundGrid, x: Any, y: Any, smooth: bool, altitude: Any, normal: Any, inside: Any
) -> bool:
    """Height, unit normal (ENU, z > 0) and inside of n points -> altitude (n,), normal (n, 3),
    inside (n,) bool.
    """
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        z, along_x, along_y, on_x, on_y = gradient(ground, x[n], y[n], smooth)
        altitude[n] = z
        normal[n, 0], normal[n, 1], normal[n, 2] = unit_normal(along_x, along_y)
        inside[n] = on_x & on_y
    return finite


@kernel
def gradient_rates(ground: GroundGrid, x: Any, y: Any, vx: Any, vy: Any, out: Any) -> bool:
    """d/dt of the smooth gradient at n points that move with (vx, vy) -> out (n, 2), 1/s.

    0 along an axis that is clamped.
    """
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        finite &= abs(vx[n]) < np.inf
        finite &= abs(vy[n]) < np.inf
        i, j, a, b, on_x, on_y = cell_at(ground, x[n], y[n])
        u_rate = vx[n] / ground.step_x if on_x else 0.0
        v_rate = vy[n] / ground.step_y if on_y else 0.0
        x_slopes, y_slopes = vertex_gradients(
            ground, i, j, corners(ground, i, j), heights_around(ground, i, j)
        )
        along_u, along_v = slopes(x_slopes[0], x_slopes[1], x_slopes[2], x_slopes[3], a, b)
        rate_x = along_u * u_rate + along_v * v_rate
        along_u, along_v = slopes(y_slopes[0], y_slopes[1], y_slopes[2], y_slopes[3], a, b)
        rate_y = along_u * u_rate + along_v * v_rate
        out[n, 0] = rate_x if on_x else 0.0
        out[n, 1] = rate_y if on_y else 0.0
    return finite


CORNER, TO_WEST, TO_EAST, TO_SOUTH, TO_NORTH = range(5)
"""rows of `at`, which the loops of `surfaces` hand on: the cell's first corner in the flat heights,
and how far its neighbours are from the corners
"""
Z00, Z01, Z10, Z11 = range(4)
"""rows of `w`: heights of the cell's corners"""
WEST_0, WEST_1, EAST_0, EAST_1, SOUTH_0, SOUTH_1, NORTH_0, NORTH_1 = range(4, 12)
"""heights of the corners' neighbours: along x before 00 and 01, after 10 and 11; along y before 00
and 10, after 01 and
11. At the map's edge they are the corners themselves.
"""
SHARE_U, SHARE_V, SPAN_WEST, SPAN_EAST, SPAN_SOUTH, SPAN_NORTH = range(12, 18)
"""where in the cell a point lies; distances of neighbours on the two sides of a corner, m"""
RATE_U, RATE_V, ON_X, ON_Y, RESULTS = range(18, 23)
"""rates of the cell coordinates, 1/s; whether they are on the map; the first of seven rows of
results
"""


@kernel
def surfaces(ground: GroundGrid, x: Any, y: Any, vx: Any, vy: Any, out: Any) -> bool:
    """Altitude, gradient, smooth gradient and its rate at n points that move with (vx, vy) -> out
    (7, n), in one pass.

    The same numbers as `altitudes`, `gradients` and `gradient_rates`, in blocks and loops as
    `altitudes`. What the loops hand on lies in one array, since only then the compiler sees that
    nothing overlaps, and the last loop becomes vector instructions (a third of the time, measured).
    """
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    flat = ground.heights
    slack_u = ground.slack_u
    slack_v = ground.slack_v
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    last_i = np.int32(ground.rows - 2)
    last_j = np.int32(ground.columns - 2)
    width = np.int32(ground.columns)
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    none = np.int32(0)
    one = np.int32(1)
    at = np.empty((5, SMALL_BLOCK), np.int32)
    w = np.empty((29, SMALL_BLOCK))
    bad = 0
    for start in range(0, x.size, SMALL_BLOCK):
        count = min(SMALL_BLOCK, x.size - start)
        for n in range(count):
            x_n = x[start + n]
            y_n = y[start + n]
            bad |= (not (abs(x_n) < np.inf)) | (not (abs(y_n) < np.inf))
            raw_u = (x_n - origin_x) / step_x
            raw_v = (y_n - origin_y) / step_y
            on_x = (raw_u >= -slack_u) & (raw_u <= last_u + slack_u)
            on_y = (raw_v >= -slack_v) & (raw_v <= last_v + slack_v)
            u = clamp(raw_u, last_u)
            v = clamp(raw_v, last_v)
            i = min(np.int32(u), last_i)
            j = min(np.int32(v), last_j)
            at[CORNER, n] = np.int32(i * width + j)
            at[TO_WEST, n] = width if i > 0 else none
            at[TO_EAST, n] = width if i < last_i else none
            at[TO_SOUTH, n] = one if j > 0 else none
            at[TO_NORTH, n] = one if j < last_j else none
            w[SHARE_U, n] = u - np.float64(i)
            w[SHARE_V, n] = v - np.float64(j)
            w[SPAN_WEST, n] = step_x * (2.0 if i > 0 else 1.0)
            w[SPAN_EAST, n] = step_x * (2.0 if i < last_i else 1.0)
            w[SPAN_SOUTH, n] = step_y * (2.0 if j > 0 else 1.0)
            w[SPAN_NORTH, n] = step_y * (2.0 if j < last_j else 1.0)
            w[ON_X, n] = 1.0 if on_x else 0.0
            w[ON_Y, n] = 1.0 if on_y else 0.0
        for n in range(count):
            vx_n = vx[start + n]
            vy_n = vy[start + n]
            bad |= (not (abs(vx_n) < np.inf)) | (not (abs(vy_n) < np.inf))
            w[RATE_U, n] = vx_n / step_x if w[ON_X, n] > 0.0 else 0.0
            w[RATE_V, n] = vy_n / step_y if w[ON_Y, n] > 0.0 else 0.0
        for n in range(count):
            k = np.uint64(np.uint32(at[CORNER, n]))
            west = np.uint64(np.uint32(at[TO_WEST, n]))
            east = np.uint64(np.uint32(at[TO_EAST, n]))
            south = np.uint64(np.uint32(at[TO_SOUTH, n]))
            north = np.uint64(np.uint32(at[TO_NORTH, n]))
            w[Z00, n] = flat[k]
            w[Z01, n] = flat[k + right]
            w[Z10, n] = flat[k + below]
            w[Z11, n] = flat[k + below + right]
            w[WEST_0, n] = flat[k - west]
            w[WEST_1, n] = flat[k - west + right]
            w[EAST_0, n] = flat[k + below + east]
            w[EAST_1, n] = flat[k + below + east + right]
            w[SOUTH_0, n] = flat[k - south]
            w[SOUTH_1, n] = flat[k + below - south]
            w[NORTH_0, n] = flat[k + right + north]
            w[NORTH_1, n] = flat[k + below + right + north]
        for n in range(count):
            z00 = w[Z00, n]
            z01 = w[Z01, n]
            z10 = w[Z10, n]
            z11 = w[Z11, n]
            a = w[SHARE_U, n]
            b = w[SHARE_V, n]
            u_rate = w[RATE_U, n]
            v_rate = w[RATE_V, n]
            on_x = w[ON_X, n] > 0.0
            on_y = w[ON_Y, n] > 0.0
            x00 = (z10 - w[WEST_0, n]) / w[SPAN_WEST, n]
            x01 = (z11 - w[WEST_1, n]) / w[SPAN_WEST, n]
            x10 = (w[EAST_0, n] - z00) / w[SPAN_EAST, n]
            x11 = (w[EAST_1, n] - z01) / w[SPAN_EAST, n]
            y00 = (z01 - w[SOUTH_0, n]) / w[SPAN_SOUTH, n]
            y10 = (z11 - w[SOUTH_1, n]) / w[SPAN_SOUTH, n]
            y01 = (w[NORTH_0, n] - z00) / w[SPAN_NORTH, n]
            y11 = (w[NORTH_1, n] - z10) / w[SPAN_NORTH, n]
            along_u, along_v = slopes(z00, z01, z10, z11, a, b)
            x_along_u, x_along_v = slopes(x00, x01, x10, x11, a, b)
            y_along_u, y_along_v = slopes(y00, y01, y10, y11, a, b)
            w[RESULTS, n] = interpolate(z00, z01, z10, z11, a, b)
            w[RESULTS + 1, n] = along_u / step_x if on_x else 0.0
            w[RESULTS + 2, n] = along_v / step_y if on_y else 0.0
            w[RESULTS + 3, n] = interpolate(x00, x01, x10, x11, a, b) if on_x else 0.0
            w[RESULTS + 4, n] = interpolate(y00, y01, y10, y11, a, b) if on_y else 0.0
            w[RESULTS + 5, n] = x_along_u * u_rate + x_along_v * v_rate if on_x else 0.0
            w[RESULTS + 6, n] = y_along_u * u_rate + y_along_v * v_rate if on_y else 0.0
        for row in range(7):
            for n in range(count):
                out[row, start + n] = w[RESULTS + row, n]
    return bad == 0


@kernel
def cloud(
    heights: Any,
    x_of_row: Any,
    y_of_column: Any,
    first_row: int,
    first_column: int,
    stride: int,
    ned: bool,
    out: Any,
) -> None:
    """Points -> out (n, m, 3) float32; row r of out is row first_row + r·stride.

    ENU, or (ned) x north, y east, z down.
    """
    columns = out.shape[1]
    for r in range(out.shape[0]):
        x = x_of_row[r]
        line = out[r].reshape(-1)
        row = heights[first_row + r * stride, first_column:]
        z = row[:columns] if stride == 1 else np.ascontiguousarray(row[::stride][:columns])
        # unsigned indices into contiguous lines: only so do the loops become SIMD
        if ned:
            for c in range(columns):
                k = np.uint64(c)
                line[np.uint64(3) * k] = y_of_column[k]
                line[np.uint64(3) * k + np.uint64(1)] = x
                line[np.uint64(3) * k + np.uint64(2)] = (
                    np.float32(0.0) - z[k]
                )  # 0 - z: no negative zeros in the cloud
        else:
            for c in range(columns):
                k = np.uint64(c)
                line[np.uint64(3) * k] = x
                line[np.uint64(3) * k + np.uint64(1)] = y_of_column[k]
                line[np.uint64(3) * k + np.uint64(2)] = z[k]
