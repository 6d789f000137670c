# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled look-ups in a height map: altitude, gradient and its rate, normal, inside, point cloud.

Rules that all kernels share:
- `ground` is a `ground.GroundGrid`; rows u and columns v are clamped each on its own (`bilinear`).
- x and y are one-dimensional, and results go to the last arguments.
- A kernel that returns a bool returns False where a coordinate was NaN or infinite. The result of
  that point has no meaning, and the caller then finds the coordinate.
- No fastmath, which drops the checks for NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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


class Cells(NamedTuple):
    """Cells of a block of points: their first corners, and the steps from there to the neighbours.

    Indices into the flat heights, (SMALL_BLOCK,), int32.
    """

    corner: Any
    """Index of corner 00."""
    to_west: Any
    """Step back from corners 00 and 01 to the row before; 0 on the map's edge."""
    to_east: Any
    """Step from corners 10 and 11 to the row after; 0 on the map's edge."""
    to_south: Any
    """Step back from corners 00 and 10 to the column before; 0 on the map's edge."""
    to_north: Any
    """Step from corners 01 and 11 to the column after; 0 on the map's edge."""


class Positions(NamedTuple):
    """Positions of a block of points in their cells, (SMALL_BLOCK,)."""

    share_u: Any
    """Fraction of the cell along x, 0 … 1."""
    share_v: Any
    """Fraction of the cell along y, 0 … 1."""
    rate_u: Any
    """Rate of the row, 1/s; 0 off the map."""
    rate_v: Any
    """Rate of the column, 1/s; 0 off the map."""
    on_x: Any
    """1 if x is on the map, else 0."""
    on_y: Any
    """1 if y is on the map, else 0."""


class Heights(NamedTuple):
    """Heights of the cells' corners and of the corners' neighbours, (SMALL_BLOCK,), m.

    On the map's edge, where a corner has no neighbour, they are those of the corner itself.
    """

    z00: Any
    z01: Any
    z10: Any
    z11: Any
    west_0: Any
    """Height before corner 00 along x."""
    west_1: Any
    """Height before corner 01 along x."""
    east_0: Any
    """Height after corner 10 along x."""
    east_1: Any
    """Height after corner 11 along x."""
    south_0: Any
    """Height before corner 00 along y."""
    south_1: Any
    """Height before corner 10 along y."""
    north_0: Any
    """Height after corner 01 along y."""
    north_1: Any
    """Height after corner 11 along y."""


class Surfaces(NamedTuple):
    """Results of `surfaces` for a block of points, (SMALL_BLOCK,)."""

    altitude: Any
    gradient_x: Any
    gradient_y: Any
    smooth_x: Any
    smooth_y: Any
    smooth_rate_x: Any
    smooth_rate_y: Any


@kernel
def surfaces(ground: GroundGrid, x: Any, y: Any, vx: Any, vy: Any, out: Any) -> bool:
    """Write altitude, gradient, smooth gradient and its rate at n moving points -> out (7, n).

    They are the numbers of `altitudes`, `gradients` and `gradient_rates`, in blocks as in
    `altitudes`.
    """
    cells = new_cells()
    positions, heights, results = new_block()
    finite = True
    for start in range(0, x.size, SMALL_BLOCK):
        count = min(SMALL_BLOCK, x.size - start)
        finite &= locate(ground, x, y, start, count, cells, positions)
        finite &= find_rates(ground, vx, vy, start, count, positions)
        read_heights(ground, count, cells, heights)
        find_surfaces(ground, count, cells, positions, heights, results)
        write_surfaces(start, count, results, out)
    return finite


@inlined_kernel
def new_cells() -> Cells:
    """Return space for the cells of a block of points."""
    rows = np.empty((5, SMALL_BLOCK), np.int32)
    return Cells(
        corner=rows[0],
        to_west=rows[1],
        to_east=rows[2],
        to_south=rows[3],
        to_north=rows[4],
    )


@inlined_kernel
def new_block() -> tuple[Positions, Heights, Surfaces]:
    """Return space for the numbers of a block of points.

    They are rows of one array. Only then does the compiler see that nothing overlaps and make the
    loop of `find_surfaces` vector instructions, which takes a third of the time.
    """
    rows = np.empty((25, SMALL_BLOCK))
    positions = Positions(
        share_u=rows[0],
        share_v=rows[1],
        rate_u=rows[2],
        rate_v=rows[3],
        on_x=rows[4],
        on_y=rows[5],
    )
    heights = Heights(
        z00=rows[6],
        z01=rows[7],
        z10=rows[8],
        z11=rows[9],
        west_0=rows[10],
        west_1=rows[11],
        east_0=rows[12],
        east_1=rows[13],
        south_0=rows[14],
        south_1=rows[15],
        north_0=rows[16],
        north_1=rows[17],
    )
    results = Surfaces(
        altitude=rows[18],
        gradient_x=rows[19],
        gradient_y=rows[20],
        smooth_x=rows[21],
        smooth_y=rows[22],
        smooth_rate_x=rows[23],
        smooth_rate_y=rows[24],
    )
    return positions, heights, results


@inlined_kernel
def locate(
    ground: GroundGrid,
    x: Any,
    y: Any,
    start: int,
    count: int,
    cells: Cells,
    positions: Positions,
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
        positions.on_x[n] = 1.0 if on_x else 0.0
        positions.on_y[n] = 1.0 if on_y else 0.0

        # the cell
        u = clamp(raw_u, last_u)
        v = clamp(raw_v, last_v)
        i = min(np.int32(u), last_i)
        j = min(np.int32(v), last_j)
        cells.corner[n] = np.int32(i * width + j)
        positions.share_u[n] = u - np.float64(i)
        positions.share_v[n] = v - np.float64(j)

        # its neighbours
        cells.to_west[n] = width if i > 0 else none
        cells.to_east[n] = width if i < last_i else none
        cells.to_south[n] = one if j > 0 else none
        cells.to_north[n] = one if j < last_j else none
    return bad == 0


@inlined_kernel
def find_rates(
    ground: GroundGrid, vx: Any, vy: Any, start: int, count: int, positions: Positions
) -> bool:
    """Compute the rates of the cell coordinates of a block of points."""
    step_x = ground.step_x
    step_y = ground.step_y
    bad = 0
    for n in range(count):
        vx_n = vx[start + n]
        vy_n = vy[start + n]
        bad |= (not (abs(vx_n) < np.inf)) | (not (abs(vy_n) < np.inf))
        positions.rate_u[n] = vx_n / step_x if positions.on_x[n] > 0.0 else 0.0
        positions.rate_v[n] = vy_n / step_y if positions.on_y[n] > 0.0 else 0.0
    return bad == 0


@inlined_kernel
def read_heights(ground: GroundGrid, count: int, cells: Cells, heights: Heights) -> None:
    """Read the heights of the cells' corners and of the corners' neighbours."""
    flat = ground.heights
    right = np.uint64(1)
    below = np.uint64(ground.columns)
    for n in range(count):
        # unsigned indices spare a test for negative ones
        k = np.uint64(np.uint32(cells.corner[n]))
        west = np.uint64(np.uint32(cells.to_west[n]))
        east = np.uint64(np.uint32(cells.to_east[n]))
        south = np.uint64(np.uint32(cells.to_south[n]))
        north = np.uint64(np.uint32(cells.to_north[n]))

        heights.z00[n] = flat[k]
        heights.z01[n] = flat[k + right]
        heights.z10[n] = flat[k + below]
        heights.z11[n] = flat[k + below + right]
        heights.west_0[n] = flat[k - west]
        heights.west_1[n] = flat[k - west + right]
        heights.east_0[n] = flat[k + below + east]
        heights.east_1[n] = flat[k + below + east + right]
        heights.south_0[n] = flat[k - south]
        heights.south_1[n] = flat[k + below - south]
        heights.north_0[n] = flat[k + right + north]
        heights.north_1[n] = flat[k + below + right + north]


@inlined_kernel
def find_surfaces(
    ground: GroundGrid,
    count: int,
    cells: Cells,
    positions: Positions,
    heights: Heights,
    results: Surfaces,
) -> None:
    """Compute the results of a block of points."""
    step_x = ground.step_x
    step_y = ground.step_y
    for n in range(count):
        z00 = heights.z00[n]
        z01 = heights.z01[n]
        z10 = heights.z10[n]
        z11 = heights.z11[n]
        a = positions.share_u[n]
        b = positions.share_v[n]
        u_rate = positions.rate_u[n]
        v_rate = positions.rate_v[n]
        on_x = positions.on_x[n] > 0.0
        on_y = positions.on_y[n] > 0.0

        # the bilinear surface
        along_u, along_v = slopes(z00, z01, z10, z11, a, b)
        results.altitude[n] = interpolate(z00, z01, z10, z11, a, b)
        results.gradient_x[n] = along_u / step_x if on_x else 0.0
        results.gradient_y[n] = along_v / step_y if on_y else 0.0

        # dz/dx at the corners by central differences, between them bilinear
        west_span = step_x * (2.0 if cells.to_west[n] > 0 else 1.0)
        east_span = step_x * (2.0 if cells.to_east[n] > 0 else 1.0)
        x00 = (z10 - heights.west_0[n]) / west_span
        x01 = (z11 - heights.west_1[n]) / west_span
        x10 = (heights.east_0[n] - z00) / east_span
        x11 = (heights.east_1[n] - z01) / east_span
        along_u, along_v = slopes(x00, x01, x10, x11, a, b)
        results.smooth_x[n] = interpolate(x00, x01, x10, x11, a, b) if on_x else 0.0
        results.smooth_rate_x[n] = along_u * u_rate + along_v * v_rate if on_x else 0.0

        # dz/dy in the same way
        south_span = step_y * (2.0 if cells.to_south[n] > 0 else 1.0)
        north_span = step_y * (2.0 if cells.to_north[n] > 0 else 1.0)
        y00 = (z01 - heights.south_0[n]) / south_span
        y10 = (z11 - heights.south_1[n]) / south_span
        y01 = (heights.north_0[n] - z00) / north_span
        y11 = (heights.north_1[n] - z10) / north_span
        along_u, along_v = slopes(y00, y01, y10, y11, a, b)
        results.smooth_y[n] = interpolate(y00, y01, y10, y11, a, b) if on_y else 0.0
        results.smooth_rate_y[n] = along_u * u_rate + along_v * v_rate if on_y else 0.0


@inlined_kernel
def write_surfaces(start: int, count: int, results: Surfaces, out: Any) -> None:
    """Write the results of a block of points -> out (7, n)."""
    for n in range(count):
        out[0, start + n] = results.altitude[n]
        out[1, start + n] = results.gradient_x[n]
        out[2, start + n] = results.gradient_y[n]
        out[3, start + n] = results.smooth_x[n]
        out[4, start + n] = results.smooth_y[n]
        out[5, start + n] = results.smooth_rate_x[n]
        out[6, start + n] = results.smooth_rate_y[n]


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
