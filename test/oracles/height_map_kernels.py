# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Oracle of `rfly_terrain.height_map.altitude_kernels`: look-ups, whole arrays at a time.

The conventions are those that `altitude_kernels.py` states.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rfly_common.arrays import Floats
from rfly_terrain.height_map.ground import GroundGrid

_BLOCK = 16_384


def _blocks(count: int) -> Iterator[slice]:
    for start in range(0, count, _BLOCK):
        yield slice(start, min(start + _BLOCK, count))


class _Cells:
    """Cells and fractions of a block of points."""

    def __init__(self, ground: GroundGrid, x: Floats, y: Floats) -> None:
        g = ground
        rows = ground.rows
        columns = ground.columns
        x = x.astype(np.float64)
        y = y.astype(np.float64)
        self.finite = bool(np.isfinite(x).all() and np.isfinite(y).all())

        with np.errstate(invalid="ignore", over="ignore"):
            u = (x - g.origin_x) / g.step_x
            v = (y - g.origin_y) / g.step_y
            self.on_x = (u >= -g.slack_u) & (u <= rows - 1 + g.slack_u)
            self.on_y = (v >= -g.slack_v) & (v <= columns - 1 + g.slack_v)

        u = _clamp(u, rows - 1)
        v = _clamp(v, columns - 1)
        self.ground = ground
        self.i = np.minimum(u.astype(np.intp), rows - 2)
        self.j = np.minimum(v.astype(np.intp), columns - 2)
        self.a = u - self.i
        self.b = v - self.j

    def corners(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Corner heights z00, z01, z10, z11 in float64."""
        flat = self.ground.heights
        columns = self.ground.columns
        first = self.i * columns + self.j
        z00, z01, z10, z11 = (
            flat[first + shift].astype(np.float64) for shift in (0, 1, columns, columns + 1)
        )
        return z00, z01, z10, z11

    def interpolate(self, f00: Floats, f01: Floats, f10: Floats, f11: Floats) -> Floats:
        a = self.a
        b = self.b
        return (f00 * (1.0 - b) + f01 * b) * (1.0 - a) + (f10 * (1.0 - b) + f11 * b) * a

    def slopes(self, f00: Floats, f01: Floats, f10: Floats, f11: Floats) -> tuple[Floats, Floats]:
        """Derivatives of `interpolate` along u and along v."""
        a = self.a
        b = self.b
        return (f10 - f00) * (1.0 - b) + (f11 - f01) * b, (f01 - f00) * (1.0 - a) + (f11 - f10) * a

    def vertex_gradients(self) -> list[tuple[Floats, Floats]]:
        """(dz/dx, dz/dy) at the four vertices: central differences, one-sided at the border."""
        return [
            self._vertex_gradient(self.i + di, self.j + dj)
            for di, dj in (
                (0, 0),
                (0, 1),
                (1, 0),
                (1, 1),
            )
        ]

    def _vertex_gradient(self, i: Floats, j: Floats) -> tuple[Floats, Floats]:
        g = self.ground
        z = self.ground.heights
        rows = g.rows
        columns = g.columns
        i_low = np.maximum(i - 1, 0)
        i_high = np.minimum(i + 1, rows - 1)
        j_low = np.maximum(j - 1, 0)
        j_high = np.minimum(j + 1, columns - 1)
        east = z[i_high * columns + j].astype(np.float64)
        west = z[i_low * columns + j]
        north = z[i * columns + j_high].astype(np.float64)
        south = z[i * columns + j_low]

        return (east - west) / ((i_high - i_low) * g.step_x), (north - south) / (
            (j_high - j_low) * g.step_y
        )

    def gradient(self, smooth: bool) -> tuple[Floats, Floats]:
        if smooth:
            vertices = self.vertex_gradients()
            along_x, along_y = (
                self.interpolate(*(vertex[axis] for vertex in vertices)) for axis in (0, 1)
            )
        else:
            along_u, along_v = self.slopes(*self.corners())
            along_x = along_u / self.ground.step_x
            along_y = along_v / self.ground.step_y
        return np.where(self.on_x, along_x, 0.0), np.where(self.on_y, along_y, 0.0)


def _clamp(u: Floats, last: int) -> Floats:
    u = np.where(u > 0.0, u, 0.0)  # a NaN too becomes 0: it must not become an index
    return np.where(u < last, u, float(last))


def altitudes(ground: GroundGrid, x: Floats, y: Floats, out: Floats) -> bool:
    """Bilinear heights at n points -> out (n,) float64."""
    finite = True
    for block in _blocks(x.size):
        cells = _Cells(ground, x[block], y[block])
        out[block] = cells.interpolate(*cells.corners())
        finite &= cells.finite
    return finite


def insides(ground: GroundGrid, x: Floats, y: Floats, out: Floats) -> bool:
    """Write whether n points lie on the map, edges included -> out (n,) bool."""
    finite = True
    for block in _blocks(x.size):
        cells = _Cells(ground, x[block], y[block])
        out[block] = cells.on_x & cells.on_y
        finite &= cells.finite
    return finite


def gradients(ground: GroundGrid, x: Floats, y: Floats, smooth: bool, out: Floats) -> bool:
    """(dz/dx, dz/dy) at n points -> out (n, 2), exact or smooth."""
    finite = True
    for block in _blocks(x.size):
        cells = _Cells(ground, x[block], y[block])
        out[block, 0], out[block, 1] = cells.gradient(smooth)
        finite &= cells.finite
    return finite


def queries(
    ground: GroundGrid,
    x: Floats,
    y: Floats,
    smooth: bool,
    altitude: Floats,
    normal: Floats,
    inside: Floats,
) -> bool:
    """Write altitude (n,), normal (n, 3) ENU and inside (n,) bool of n points."""
    finite = True
    for block in _blocks(x.size):
        cells = _Cells(ground, x[block], y[block])
        along_x, along_y = cells.gradient(smooth)
        norm = np.sqrt(along_x * along_x + along_y * along_y + 1.0)
        altitude[block] = cells.interpolate(*cells.corners())
        normal[block, 0] = (0.0 - along_x) / norm
        normal[block, 1] = (0.0 - along_y) / norm
        normal[block, 2] = 1.0 / norm
        inside[block] = cells.on_x & cells.on_y
        finite &= cells.finite

    return finite


def gradient_rates(
    ground: GroundGrid, x: Floats, y: Floats, vx: Floats, vy: Floats, out: Floats
) -> bool:
    """Write d/dt of the smooth gradient at n points that move with (vx, vy) -> out (n, 2), 1/s."""
    finite = True
    for block in _blocks(x.size):
        cells = _Cells(ground, x[block], y[block])
        speed_x = vx[block].astype(np.float64)
        speed_y = vy[block].astype(np.float64)
        finite &= cells.finite and bool(np.isfinite(speed_x).all() and np.isfinite(speed_y).all())
        u_rate = np.where(cells.on_x, speed_x / ground.step_x, 0.0)
        v_rate = np.where(cells.on_y, speed_y / ground.step_y, 0.0)
        vertices = cells.vertex_gradients()
        for axis, on_map in ((0, cells.on_x), (1, cells.on_y)):
            along_u, along_v = cells.slopes(*(vertex[axis] for vertex in vertices))
            with np.errstate(
                invalid="ignore", over="ignore"
            ):  # what is not finite is reported, not computed
                out[block, axis] = np.where(on_map, along_u * u_rate + along_v * v_rate, 0.0)

    return finite


def surfaces(ground: GroundGrid, x: Floats, y: Floats, vx: Floats, vy: Floats, out: Floats) -> bool:
    """Write altitude, gradient, smooth gradient and its rate of moving points -> out (7, n).

    The n points move with (vx, vy).
    """
    altitudes(ground, x, y, out[0])
    gradients(ground, x, y, False, out[1:3].T)
    gradients(ground, x, y, True, out[3:5].T)
    return gradient_rates(ground, x, y, vx, vy, out[5:7].T)


def cloud(
    heights: Floats,
    x_of_row: Floats,
    y_of_column: Floats,
    first_row: int,
    first_column: int,
    stride: int,
    ned: bool,
    out: Floats,
) -> None:
    """Points -> out (n, m, 3) float32; row r of out is row first_row + r·stride.

    ENU, or (ned) x north, y east, z down.
    """
    rows, columns = out.shape[:2]
    z = heights[
        first_row : first_row + rows * stride : stride,
        first_column : first_column + columns * stride : stride,
    ]

    if ned:
        out[..., 0] = y_of_column
        out[..., 1] = x_of_row[:, None]
        np.subtract(np.float32(0.0), z, out=out[..., 2])  # 0 - z: no negative zeros in the cloud
    else:
        out[..., 0] = x_of_row[:, None]
        out[..., 1] = y_of_column
        out[..., 2] = z
