"""Compiled look-ups in a height map: altitude, gradient and its rate, normal, inside, point cloud.

Rules that all kernels share:
- `ground` is a `ground.GroundGrid`; rows u and columns v are clamped each on its own (`bilinear`).
- x and y are one-dimensional, and results go to the last arguments.
- A kernel that returns a bool returns False where a coordinate was NaN or infinite. The result of
  that point has no meaning, and the caller then finds the coordinate.
- No fastmath, which drops the checks for NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rfly_common.kernels.jit import inlined_kernel, kernel
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
"""Points between the loops of `altitudes`; what they hand on fits into the first-level cache."""

SMALL_BLOCK = 64
"""Points between the loops of `surfaces`, which keeps more of each point."""


@kernel
def altitudes(ground: GroundGrid, x: Any, y: Any, out: Any) -> bool:
    """Write the bilinear heights at n points -> out (n,) float64.

    Formula: terrain-format.md, "Altitude at (x, y)". Each block goes through three loops: cells and
    fractions, then the corners, then the interpolation. The first and the last become vector
    instructions, and the cache misses of the middle one overlap best in a loop that does nothing
    else. Measured: 9 instead of 13 ns a random point on one core. Prefetching, huge pages and
    64-bit pairs gained nothing. Unsigned offsets spare a test for negative ones.
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

    # what the loops hand on
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

        # cells and fractions
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

        # corners
        for n in range(count):
            k = np.uint64(np.uint32(first[n]))
            z00[n] = flat[k]
            z01[n] = flat[k + right]
            z10[n] = flat[k + below]
            z11[n] = flat[k + below + right]

        # interpolation
        for n in range(count):
            out[start + n] = interpolate(
                z00[n], z01[n], z10[n], z11[n], fraction_u[n], fraction_v[n]
            )
    return bad == 0


@kernel
def insides(ground: GroundGrid, x: Any, y: Any, out: Any) -> bool:
    """Write whether n points lie on the map, edges included -> out (n,) bool."""
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        _, _, _, _, on_x, on_y = cell_at(ground, x[n], y[n])
        out[n] = on_x & on_y
    return finite


@kernel
def gradients(ground: GroundGrid, x: Any, y: Any, smooth: bool, out: Any) -> bool:
    """Write (dz/dx, dz/dy) at n points -> out (n, 2).

    The gradient is that of the bilinear surface or, `smooth`, of the vertices, interpolated. It is
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
    """Write height, unit normal (ENU, z > 0) and inside of n points.

    -> altitude (n,), normal (n, 3), inside (n,) bool.
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
    """Write d/dt of the smooth gradient at n points that move with (vx, vy) -> out (n, 2), 1/s.

    The rate is 0 along an axis that is clamped.
    """
    finite = True
    for n in range(x.size):
        finite &= abs(x[n]) < np.inf
        finite &= abs(y[n]) < np.inf
        finite &= abs(vx[n]) < np.inf
        finite &= abs(vy[n]) < np.inf

        # gradients at the corners, and how the point moves between them
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


# rows of `cells`, which the loops of `surfaces` hand on: the cell's first corner in the flat
# heights, and how far from the corners their neighbours are in each direction
CORNER = 0
TO_WEST = 1
TO_EAST = 2
TO_SOUTH = 3
TO_NORTH = 4
CELL_ROWS = 5

# rows of `work`: heights of the cell's corners
Z00 = 0
Z01 = 1
Z10 = 2
Z11 = 3
# heights of the corners' neighbours: along x before 00 and 01 and after 10 and 11, along y before
# 00 and 10 and after 01 and 11; at the map's edge they are the corners themselves
WEST_0 = 4
WEST_1 = 5
EAST_0 = 6
EAST_1 = 7
SOUTH_0 = 8
SOUTH_1 = 9
NORTH_0 = 10
NORTH_1 = 11
# where in the cell a point lies, and distances of the neighbours on the two sides of a corner, m
SHARE_U = 12
SHARE_V = 13
SPAN_WEST = 14
SPAN_EAST = 15
SPAN_SOUTH = 16
SPAN_NORTH = 17
# rates of the cell coordinates, 1/s, and 1 where they are on the map, else 0
RATE_U = 18
RATE_V = 19
ON_X = 20
ON_Y = 21
# results, in the order of `surfaces`
ALTITUDE = 22
GRADIENT_X = 23
GRADIENT_Y = 24
SMOOTH_X = 25
SMOOTH_Y = 26
SMOOTH_RATE_X = 27
SMOOTH_RATE_Y = 28
WORK_ROWS = 29


@kernel
def surfaces(ground: GroundGrid, x: Any, y: Any, vx: Any, vy: Any, out: Any) -> bool:
    """Write altitude, gradient, smooth gradient and its rate at n moving points -> out (7, n).

    They are the numbers of `altitudes`, `gradients` and `gradient_rates`, in blocks as in
    `altitudes`. All that the loops hand on lies in one array. Only then does the compiler see that
    nothing overlaps and make the last loop vector instructions, which takes a third of the time.
    """
    cells = np.empty((CELL_ROWS, SMALL_BLOCK), np.int32)
    work = np.empty((WORK_ROWS, SMALL_BLOCK))
    finite = True
    for start in range(0, x.size, SMALL_BLOCK):
        count = min(SMALL_BLOCK, x.size - start)
        finite &= locate(ground, x, y, start, count, cells, work)
        finite &= find_rates(ground, vx, vy, start, count, work)
        read_heights(ground, count, cells, work)
        find_surface(ground, count, work)
        for row in range(7):
            for n in range(count):
                out[row, start + n] = work[ALTITUDE + row, n]
    return finite


@inlined_kernel
def locate(
    ground: GroundGrid, x: Any, y: Any, start: int, count: int, cells: Any, work: Any
) -> bool:
    """Find the cells of a block of points, and where in them the points lie."""
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    slack_u = ground.slack_u
    slack_v = ground.slack_v
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    last_i = np.int32(ground.rows - 2)
    last_j = np.int32(ground.columns - 2)
    width = np.int32(ground.columns)
    none = np.int32(0)
    one = np.int32(1)

    bad = 0
    for n in range(count):
        x_n = x[start + n]
        y_n = y[start + n]
        bad |= (not (abs(x_n) < np.inf)) | (not (abs(y_n) < np.inf))
        raw_u = (x_n - origin_x) / step_x
        raw_v = (y_n - origin_y) / step_y
        on_x = (raw_u >= -slack_u) & (raw_u <= last_u + slack_u)
        on_y = (raw_v >= -slack_v) & (raw_v <= last_v + slack_v)
        work[ON_X, n] = 1.0 if on_x else 0.0
        work[ON_Y, n] = 1.0 if on_y else 0.0

        # the cell
        u = clamp(raw_u, last_u)
        v = clamp(raw_v, last_v)
        i = min(np.int32(u), last_i)
        j = min(np.int32(v), last_j)
        cells[CORNER, n] = np.int32(i * width + j)
        work[SHARE_U, n] = u - np.float64(i)
        work[SHARE_V, n] = v - np.float64(j)

        # its neighbours
        cells[TO_WEST, n] = width if i > 0 else none
        cells[TO_EAST, n] = width if i < last_i else none
        cells[TO_SOUTH, n] = one if j > 0 else none
        cells[TO_NORTH, n] = one if j < last_j else none
        work[SPAN_WEST, n] = step_x * (2.0 if i > 0 else 1.0)
        work[SPAN_EAST, n] = step_x * (2.0 if i < last_i else 1.0)
        work[SPAN_SOUTH, n] = step_y * (2.0 if j > 0 else 1.0)
        work[SPAN_NORTH, n] = step_y * (2.0 if j < last_j else 1.0)
    return bad == 0


@inlined_kernel
def find_rates(ground: GroundGrid, vx: Any, vy: Any, start: int, count: int, work: Any) -> bool:
    """Compute the rates of the cell coordinates of a block of points."""
    step_x = ground.step_x
    step_y = ground.step_y
    bad = 0
    for n in range(count):
        vx_n = vx[start + n]
        vy_n = vy[start + n]
        bad |= (not (abs(vx_n) < np.inf)) | (not (abs(vy_n) < np.inf))
        work[RATE_U, n] = vx_n / step_x if work[ON_X, n] > 0.0 else 0.0
        work[RATE_V, n] = vy_n / step_y if work[ON_Y, n] > 0.0 else 0.0
    return bad == 0


@inlined_kernel
def read_heights(ground: GroundGrid, count: int, cells: Any, work: Any) -> None:
    """Read the heights of the cells' corners and of the corners' neighbours."""
    heights = ground.heights
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    for n in range(count):
        k = np.uint64(np.uint32(cells[CORNER, n]))
        west = np.uint64(np.uint32(cells[TO_WEST, n]))
        east = np.uint64(np.uint32(cells[TO_EAST, n]))
        south = np.uint64(np.uint32(cells[TO_SOUTH, n]))
        north = np.uint64(np.uint32(cells[TO_NORTH, n]))
        work[Z00, n] = heights[k]
        work[Z01, n] = heights[k + right]
        work[Z10, n] = heights[k + below]
        work[Z11, n] = heights[k + below + right]
        work[WEST_0, n] = heights[k - west]
        work[WEST_1, n] = heights[k - west + right]
        work[EAST_0, n] = heights[k + below + east]
        work[EAST_1, n] = heights[k + below + east + right]
        work[SOUTH_0, n] = heights[k - south]
        work[SOUTH_1, n] = heights[k + below - south]
        work[NORTH_0, n] = heights[k + right + north]
        work[NORTH_1, n] = heights[k + below + right + north]


@inlined_kernel
def find_surface(ground: GroundGrid, count: int, work: Any) -> None:
    """Compute the results of a block of points."""
    step_x = ground.step_x
    step_y = ground.step_y
    for n in range(count):
        z00 = work[Z00, n]
        z01 = work[Z01, n]
        z10 = work[Z10, n]
        z11 = work[Z11, n]
        a = work[SHARE_U, n]
        b = work[SHARE_V, n]
        u_rate = work[RATE_U, n]
        v_rate = work[RATE_V, n]
        on_x = work[ON_X, n] > 0.0
        on_y = work[ON_Y, n] > 0.0

        # the bilinear surface
        along_u, along_v = slopes(z00, z01, z10, z11, a, b)
        work[ALTITUDE, n] = interpolate(z00, z01, z10, z11, a, b)
        work[GRADIENT_X, n] = along_u / step_x if on_x else 0.0
        work[GRADIENT_Y, n] = along_v / step_y if on_y else 0.0

        # dz/dx at the corners by central differences, between them bilinear
        x00 = (z10 - work[WEST_0, n]) / work[SPAN_WEST, n]
        x01 = (z11 - work[WEST_1, n]) / work[SPAN_WEST, n]
        x10 = (work[EAST_0, n] - z00) / work[SPAN_EAST, n]
        x11 = (work[EAST_1, n] - z01) / work[SPAN_EAST, n]
        along_u, along_v = slopes(x00, x01, x10, x11, a, b)
        work[SMOOTH_X, n] = interpolate(x00, x01, x10, x11, a, b) if on_x else 0.0
        work[SMOOTH_RATE_X, n] = along_u * u_rate + along_v * v_rate if on_x else 0.0

        # dz/dy in the same way
        y00 = (z01 - work[SOUTH_0, n]) / work[SPAN_SOUTH, n]
        y10 = (z11 - work[SOUTH_1, n]) / work[SPAN_SOUTH, n]
        y01 = (work[NORTH_0, n] - z00) / work[SPAN_NORTH, n]
        y11 = (work[NORTH_1, n] - z10) / work[SPAN_NORTH, n]
        along_u, along_v = slopes(y00, y01, y10, y11, a, b)
        work[SMOOTH_Y, n] = interpolate(y00, y01, y10, y11, a, b) if on_y else 0.0
        work[SMOOTH_RATE_Y, n] = along_u * u_rate + along_v * v_rate if on_y else 0.0


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
    """Write points -> out (n, m, 3) float32; row r of out is row first_row + r·stride.

    Points are ENU or, `ned`, x north, y east, z down.
    """
    columns = out.shape[1]
    for r in range(out.shape[0]):
        x = x_of_row[r]
        line = out[r].reshape(-1)
        row = heights[first_row + r * stride, first_column:]
        z = row[:columns] if stride == 1 else np.ascontiguousarray(row[::stride][:columns])

        # unsigned indices into contiguous lines, without which the loops are not SIMD
        if ned:
            for c in range(columns):
                k = np.uint64(c)
                line[np.uint64(3) * k] = y_of_column[k]
                line[np.uint64(3) * k + np.uint64(1)] = x
                # 0 - z: no negative zeros in the cloud
                line[np.uint64(3) * k + np.uint64(2)] = np.float32(0.0) - z[k]
        else:
            for c in range(columns):
                k = np.uint64(c)
                line[np.uint64(3) * k] = x
                line[np.uint64(3) * k + np.uint64(1)] = y_of_column[k]
                line[np.uint64(3) * k + np.uint64(2)] = z[k]
