# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Look-ups at a single point, on plain Python floats: a numba kernel's call costs as much."""

from __future__ import annotations

import math
from collections.abc import Callable
from struct import Struct

from rfly_terrain.height_map.ground import GroundGrid

Altitude = Callable[[float, float], float]
"""Bilinear height (m) at x, y (m); NaN where x or y is not finite."""


def altitude_of(ground: GroundGrid) -> Altitude:
    """Return the look-up of single altitudes.

    A NumPy array hands out its elements slowly, each as a NumPy scalar with slow arithmetic. One
    call of `struct` reads the four corners of a cell from the array's memory as Python floats.
    """
    rows = ground.rows
    columns = ground.columns
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    last_u = float(rows - 1)
    last_v = float(columns - 1)
    row_bytes = 4 * columns

    # both rows of a cell: two floats, a gap of the rest of the row, two floats
    corners = Struct(f"2f{4 * (columns - 2)}x2f").unpack_from
    memory = memoryview(ground.heights.data).cast("B")

    def altitude(x: float, y: float) -> float:
        u = (x - origin_x) / step_x
        v = (y - origin_y) / step_y
        if 0.0 <= u < last_u and 0.0 <= v < last_v:
            i = int(u)
            j = int(v)
        elif math.isfinite(x) and math.isfinite(y):
            u, i = _clamped(u, rows)
            v, j = _clamped(v, columns)
        else:
            return math.nan

        z00, z01, z10, z11 = corners(memory, i * row_bytes + 4 * j)
        a = u - i
        b = v - j
        c = 1.0 - b
        return (z00 * c + z01 * b) * (1.0 - a) + (z10 * c + z11 * b) * a

    return altitude


def _clamped(u: float, count: int) -> tuple[float, int]:
    """Return u within 0 … count - 1, and its cell; the last node belongs to the last cell."""
    u = min(max(u, 0.0), count - 1.0)
    return u, min(int(u), count - 2)


def surface_at(ground: GroundGrid, x: float, y: float) -> tuple[float, float, float, bool, bool]:
    """Return (z, dz/dx, dz/dy, x is on the map, y is on the map) of the bilinear surface."""
    rows = ground.rows
    columns = ground.columns
    step_x = ground.step_x
    step_y = ground.step_y

    # the cell, and where in it the point lies
    raw_u = (x - ground.origin_x) / step_x
    raw_v = (y - ground.origin_y) / step_y
    on_x = -ground.slack_u <= raw_u <= rows - 1 + ground.slack_u
    on_y = -ground.slack_v <= raw_v <= columns - 1 + ground.slack_v
    u, i = _clamped(raw_u, rows)
    v, j = _clamped(raw_v, columns)
    a = u - i
    b = v - j

    height = ground.heights.item
    first = i * columns + j
    z00 = height(first)
    z01 = height(first + 1)
    z10 = height(first + columns)
    z11 = height(first + columns + 1)
    z = (z00 * (1.0 - b) + z01 * b) * (1.0 - a) + (z10 * (1.0 - b) + z11 * b) * a
    along_x = ((z10 - z00) * (1.0 - b) + (z11 - z01) * b) / step_x if on_x else 0.0
    along_y = ((z01 - z00) * (1.0 - a) + (z11 - z10) * a) / step_y if on_y else 0.0
    return z, along_x, along_y, on_x, on_y
