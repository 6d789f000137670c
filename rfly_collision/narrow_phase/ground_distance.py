"""Compiled kernels: the least distance between a point or line above the ground and the bilinear
surface.

In each cell that can be near enough: first the four lines around it, exactly, then the cell by
damped Newton steps within its bounds, from the best of the lines and from straight below, for the
two coordinates of the cell and the one of the line at once. The square of the distance has no more
than two hollows in a cell, one towards each side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.distance_kernels import SAME_POINT, nearest_of_lines
from rfly_collision.narrow_phase.ground_kernels import TerrainArrays, cell_index, polynomial
from rfly_common.kernels.jit import inner_kernel
from rfly_terrain.height_map.ground import GroundGrid

Quadruple = tuple[float, float, float, float]

ITERATIONS = 40
CONVERGED = 1e-13
"""of the squares that are minimised: a gain smaller than that ends the search"""


@inner_kernel
def distance_to_ground(terrain: TerrainArrays, line: Any, limit: float, nearest: Any) -> float:
    """From a line (2, 3) above the ground, whose ends may be one point: m, `limit` where it is not
    nearer than that.

    -> nearest (2, 3): the point of the line, the point of the ground. ENU.
    """
    ground = terrain.ground
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    rows = ground.rows
    columns = ground.columns
    low_x = min(line[0, 0], line[1, 0])
    high_x = max(line[0, 0], line[1, 0])
    low_y = min(line[0, 1], line[1, 1])
    high_y = max(line[0, 1], line[1, 1])
    low_z = min(line[0, 2], line[1, 2])
    high_z = max(line[0, 2], line[1, 2])
    u0 = (low_x - limit - origin_x) / step_x
    u1 = (high_x + limit - origin_x) / step_x
    v0 = (low_y - limit - origin_y) / step_y
    v1 = (high_y + limit - origin_y) / step_y
    u0, u1, v0, v1 = min(u0, u1), max(u0, u1), min(v0, v1), max(v0, v1)
    if terrain.void and (u1 < 0.0 or v1 < 0.0 or u0 > rows - 1 or v0 > columns - 1):
        return limit
    one_point = line[0, 0] == line[1, 0] and line[0, 1] == line[1, 1] and line[0, 2] == line[1, 2]
    best = limit * limit
    border = np.empty((2, 3))
    at = np.empty(3)
    start = np.empty(3)
    for i in range(cell_index(u0, rows, terrain.void), cell_index(u1, rows, terrain.void) + 1):
        a0 = 0.0 if i >= 0 else min(u0 - i, 0.0)
        a1 = 1.0 if i < rows - 1 else max(u1 - i, 1.0)
        x0 = origin_x + (i + a0) * step_x
        x1 = origin_x + (i + a1) * step_x
        gap_x = max(min(x0, x1) - high_x, low_x - max(x0, x1), 0.0)
        if gap_x * gap_x >= best:
            continue
        for j in range(
            cell_index(v0, columns, terrain.void), cell_index(v1, columns, terrain.void) + 1
        ):
            b0 = 0.0 if j >= 0 else min(v0 - j, 0.0)
            b1 = 1.0 if j < columns - 1 else max(v1 - j, 1.0)
            y0 = origin_y + (j + b0) * step_y
            y1 = origin_y + (j + b1) * step_y
            gap_y = max(min(y0, y1) - high_y, low_y - max(y0, y1), 0.0)
            if gap_x * gap_x + gap_y * gap_y >= best:
                continue
            z00, along_u, along_v, twist = polynomial(ground, i, j)
            z10 = z00 + along_u
            z01 = z00 + along_v
            z11 = z10 + along_v + twist
            top = max(z00, z01, z10, z11)
            bottom = min(z00, z01, z10, z11)
            gap_z = max(low_z - top, bottom - high_z, 0.0)
            if gap_x * gap_x + gap_y * gap_y + gap_z * gap_z >= best:
                continue
            nearest_on_border(
                ground, line, i, j, (z00, along_u, along_v, twist), (a0, a1, b0, b1), border, start
            )
            for attempt in range(4):
                # from the best of the border, and from below the ends and the middle of the line
                if attempt > 0:
                    if attempt > 1 and one_point:
                        break
                    start[2] = 0.5 * (attempt - 1)
                    x = line[0, 0] + start[2] * (line[1, 0] - line[0, 0])
                    y = line[0, 1] + start[2] * (line[1, 1] - line[0, 1])
                    start[0] = min(max((x - origin_x) / step_x - i, a0), a1)
                    start[1] = min(max((y - origin_y) / step_y - j, b0), b1)
                square = nearest_in_cell(
                    terrain, line, i, j, (z00, along_u, along_v, twist), (a0, a1, b0, b1), start, at
                )
                if square < best:
                    best = square
                    for k in range(3):
                        nearest[0, k] = line[0, k] + at[2] * (line[1, k] - line[0, k])
                    nearest[1, 0] = origin_x + (i + at[0]) * step_x
                    nearest[1, 1] = origin_y + (j + at[1]) * step_y
                    nearest[1, 2] = z00 + along_u * at[0] + along_v * at[1] + twist * at[0] * at[1]
    return math.sqrt(best)


@inner_kernel
def nearest_on_border(
    ground: GroundGrid,
    line: Any,
    i: int,
    j: int,
    cell: Quadruple,
    bounds: Quadruple,
    border: Any,
    start: Any,
) -> None:
    """The nearest points of a line and of the border of cell i, j -> start: a, b there, and the
    share of the line.

    `cell`: its `polynomial`; `bounds`: least and greatest a, least and greatest b. `border` (2, 3):
    work space.
    """
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    z00, along_u, along_v, twist = cell
    a0, a1, b0, b1 = bounds
    least = math.inf
    for side in range(4):
        for end in range(2):
            a = (a0 if end == 0 else a1) if side < 2 else (a0 if side == 2 else a1)
            b = (b0 if side == 0 else b1) if side < 2 else (b0 if end == 0 else b1)
            border[end, 0] = origin_x + (i + a) * step_x
            border[end, 1] = origin_y + (j + b) * step_y
            border[end, 2] = z00 + along_u * a + along_v * b + twist * a * b
        s, r = nearest_of_lines(line, border)
        square = 0.0
        for k in range(3):
            apart = line[0, k] + s * (line[1, k] - line[0, k]) - border[0, k]
            apart -= r * (border[1, k] - border[0, k])
            square += apart * apart
        if square < least:
            least = square
            start[0] = a0 + r * (a1 - a0) if side < 2 else (a0 if side == 2 else a1)
            start[1] = (b0 if side == 0 else b1) if side < 2 else b0 + r * (b1 - b0)
            start[2] = s


@inner_kernel
def nearest_in_cell(
    terrain: TerrainArrays,
    line: Any,
    i: int,
    j: int,
    cell: Quadruple,
    bounds: Quadruple,
    start: Any,
    at: Any,
) -> float:
    """The least square of the distance near `start`: a, b of the cell, s of the line -> at (3,)."""
    ground = terrain.ground
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    z00, along_u, along_v, twist = cell
    cx = line[1, 0] - line[0, 0]
    cy = line[1, 1] - line[0, 1]
    cz = line[1, 2] - line[0, 2]
    cc = cx * cx + cy * cy + cz * cz
    x0 = origin_x + i * step_x - line[0, 0]
    y0 = origin_y + j * step_y - line[0, 1]
    z0 = z00 - line[0, 2]
    a = start[0]
    b = start[1]
    s = start[2]
    x = x0 + a * step_x - s * cx
    y = y0 + b * step_y - s * cy
    z = z0 + along_u * a + along_v * b + twist * a * b - s * cz
    square = x * x + y * y + z * z
    damping = 1e-9
    for _ in range(ITERATIONS):
        pz = along_u + twist * b
        qz = along_v + twist * a
        g0 = step_x * x + pz * z
        g1 = step_y * y + qz * z
        g2 = -(cx * x + cy * y + cz * z)
        h00 = step_x * step_x + pz * pz
        h11 = step_y * step_y + qz * qz
        h22 = cc
        h01 = pz * qz + twist * z
        h02 = -(step_x * cx + pz * cz)
        h12 = -(step_y * cy + qz * cz)
        # what stands at a bound and would leave it stays
        if (a <= bounds[0] and g0 > 0.0) or (a >= bounds[1] and g0 < 0.0):
            g0 = 0.0
            h01 = 0.0
            h02 = 0.0
        if (b <= bounds[2] and g1 > 0.0) or (b >= bounds[3] and g1 < 0.0):
            g1 = 0.0
            h01 = 0.0
            h12 = 0.0
        if cc <= 0.0 or (s <= 0.0 and g2 > 0.0) or (s >= 1.0 and g2 < 0.0):
            g2 = 0.0
            h02 = 0.0
            h12 = 0.0
            h22 = max(h22, 1.0)
        gained = False
        while damping < 1e9:
            d0 = h00 * (1.0 + damping)
            d1 = h11 * (1.0 + damping)
            d2 = h22 * (1.0 + damping)
            # solved by L·D·L'; where that is not positive it is no step downwards
            l1 = h01 / d0
            l2 = h02 / d0
            e1 = d1 - l1 * h01
            m = h12 - l1 * h02
            if e1 > 1e-12 * d1:
                l3 = m / e1
                e2 = d2 - l2 * h02 - l3 * m
                if e2 > 1e-12 * d2:
                    y1 = -g1 + l1 * g0
                    y2 = -g2 + l2 * g0
                    y2 -= l3 * y1
                    step_s = y2 / e2
                    step_b = y1 / e1 - l3 * step_s
                    step_a = -g0 / d0 - l1 * step_b - l2 * step_s
                    na = min(max(a + step_a, bounds[0]), bounds[1])
                    nb = min(max(b + step_b, bounds[2]), bounds[3])
                    ns = min(max(s + step_s, 0.0), 1.0)
                    x = x0 + na * step_x - ns * cx
                    y = y0 + nb * step_y - ns * cy
                    z = z0 + along_u * na + along_v * nb + twist * na * nb - ns * cz
                    if x * x + y * y + z * z < square:
                        gained = square - (x * x + y * y + z * z) > CONVERGED * square
                        a = na
                        b = nb
                        s = ns
                        square = x * x + y * y + z * z
                        damping = max(0.1 * damping, 1e-12)
                        break
            damping = max(10.0 * damping, 1e-6)
        if not gained:
            break
    at[0] = a
    at[1] = b
    at[2] = s
    return max(square, SAME_POINT * SAME_POINT)
