# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: the least distance between a point or line and the ground below it.

The ground is the bilinear surface. Each cell that can be near enough is searched. First the four
lines around it, exactly. Then the cell itself by damped Newton steps within its bounds, in three
unknowns at once: both coordinates of the cell and the one of the line. They start from the best of
the four lines and from straight below. The squared distance has at most two hollows in a cell, one
towards each side.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from rfly_collision.narrow_phase.distance_kernels import (
    SAME_POINT,
    Line,
    nearest_of_lines,
    vector_between,
)
from rfly_collision.narrow_phase.ground_kernels import (
    ZERO,
    Cell,
    TerrainArrays,
    cell_at,
    cell_index,
    grid_range,
    height_in,
)
from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.vectors import Vector, add, dot, scaled, subtract
from rfly_terrain.height_map.ground import GroundGrid

ITERATIONS = 40
"""Most Newton steps."""

CONVERGED = 1e-13
"""Relative gain of the squared distance below which the search ends."""

MOST_DAMPING = 1e9
"""Damping at which no step downwards is left."""

SINGULAR = 1e-12
"""Share of a pivot below which the damped Hessian is not positive definite."""


class NearestOnGround(NamedTuple):
    """The nearest points of a line and of the ground."""

    distance: float
    """Distance, m."""
    on_line: Vector
    """Point of the line, ENU, m."""
    on_ground: Vector
    """Point of the ground, ENU, m."""


class CellBounds(NamedTuple):
    """Range of a and b in a cell; the cells beyond the map reach past 0 … 1."""

    a0: float
    """Least a."""
    a1: float
    """Greatest a."""
    b0: float
    """Least b."""
    b1: float
    """Greatest b."""


class Hessian(NamedTuple):
    """Second derivatives of half the squared distance by a, b and s."""

    aa: float
    """By a twice."""
    bb: float
    """By b twice."""
    ss: float
    """By s twice."""
    ab: float
    """By a and b."""
    a_s: float
    """By a and s."""
    bs: float
    """By b and s."""


@inner_kernel
def distance_to_ground(terrain: TerrainArrays, line: Line, limit: float) -> NearestOnGround:
    """Return the nearest points of a line above the ground and of the ground, ENU.

    The distance is `limit` if there is no ground nearer than that, and the points are 0.
    """
    ground = terrain.ground
    low_x = min(line[0][0], line[1][0])
    high_x = max(line[0][0], line[1][0])
    low_y = min(line[0][1], line[1][1])
    high_y = max(line[0][1], line[1][1])
    low_z = min(line[0][2], line[1][2])
    high_z = max(line[0][2], line[1][2])
    last_i = ground.rows - 1
    last_j = ground.columns - 1
    u0, u1 = grid_range(low_x - limit, high_x + limit, ground.origin_x, ground.step_x)
    v0, v1 = grid_range(low_y - limit, high_y + limit, ground.origin_y, ground.step_y)
    if terrain.void and (u1 < 0.0 or v1 < 0.0 or u0 > last_i or v0 > last_j):
        return NearestOnGround(limit, ZERO, ZERO)

    least = limit * limit
    on_line = ZERO
    on_ground = ZERO
    i_first = cell_index(u0, ground.rows, terrain.void)
    i_last = cell_index(u1, ground.rows, terrain.void)
    j_first = cell_index(v0, ground.columns, terrain.void)
    j_last = cell_index(v1, ground.columns, terrain.void)
    for i in range(i_first, i_last + 1):
        a0 = 0.0 if i >= 0 else min(u0 - i, 0.0)
        a1 = 1.0 if i < last_i else max(u1 - i, 1.0)
        gap_x = gap_to_cells(low_x, high_x, ground.origin_x, ground.step_x, i + a0, i + a1)
        if gap_x * gap_x >= least:
            continue

        for j in range(j_first, j_last + 1):
            b0 = 0.0 if j >= 0 else min(v0 - j, 0.0)
            b1 = 1.0 if j < last_j else max(v1 - j, 1.0)
            gap_y = gap_to_cells(low_y, high_y, ground.origin_y, ground.step_y, j + b0, j + b1)
            if gap_x * gap_x + gap_y * gap_y >= least:
                continue

            cell = cell_at(ground, i, j)
            gap_z = gap_to_heights(cell, low_z, high_z)
            if gap_x * gap_x + gap_y * gap_y + gap_z * gap_z >= least:
                continue

            square, place = nearest_to_cell(ground, line, cell, CellBounds(a0, a1, b0, b1), least)
            if square < least:
                least = square
                on_line = add(line[0], scaled(place[2], subtract(line[1], line[0])))
                on_ground = point_of_cell(ground, cell, place[0], place[1])

    return NearestOnGround(math.sqrt(least), on_line, on_ground)


@inlined_kernel
def gap_to_cells(
    low: float, high: float, origin: float, step: float, first: float, last: float
) -> float:
    """Return the gap between a range of x or y and a range of rows or columns, m; 0 if none."""
    begin = origin + first * step
    end = origin + last * step
    return max(min(begin, end) - high, low - max(begin, end), 0.0)


@inlined_kernel
def gap_to_heights(cell: Cell, low: float, high: float) -> float:
    """Return the gap between a range of heights and those of a cell, m; 0 if none."""
    z00 = cell.height
    z10 = z00 + cell.slope_u
    z01 = z00 + cell.slope_v
    z11 = z10 + cell.slope_v + cell.twist
    return max(low - max(z00, z01, z10, z11), min(z00, z01, z10, z11) - high, 0.0)


@inlined_kernel
def point_of_cell(ground: GroundGrid, cell: Cell, a: float, b: float) -> Vector:
    """Return the point of the ground at a, b of a cell, ENU, m."""
    return (
        ground.origin_x + (cell.i + a) * ground.step_x,
        ground.origin_y + (cell.j + b) * ground.step_y,
        height_in(cell, a, b),
    )


@inner_kernel
def nearest_to_cell(
    ground: GroundGrid, line: Line, cell: Cell, bounds: CellBounds, least: float
) -> tuple[float, Vector]:
    """Return the least squared distance of a line from a cell, or `least`, and a, b, s there.

    s is the share of the line.
    """
    best = nearest_on_border(ground, line, cell, bounds)
    place = best

    # from the best of the border, and from below both ends and the middle of the line
    for attempt in range(4):
        start = best
        if attempt > 0:
            if attempt > 1 and line[0] == line[1]:
                break
            s = 0.5 * (attempt - 1)
            x = line[0][0] + s * (line[1][0] - line[0][0])
            y = line[0][1] + s * (line[1][1] - line[0][1])
            a = (x - ground.origin_x) / ground.step_x - cell.i
            b = (y - ground.origin_y) / ground.step_y - cell.j
            start = (min(max(a, bounds.a0), bounds.a1), min(max(b, bounds.b0), bounds.b1), s)

        square, found = nearest_in_cell(ground, line, cell, bounds, start)
        if square < least:
            least = square
            place = found
    return least, place


@inner_kernel
def nearest_on_border(ground: GroundGrid, line: Line, cell: Cell, bounds: CellBounds) -> Vector:
    """Return a, b and the line's share s of the nearest points of a line and a cell's border."""
    least = math.inf
    nearest = ZERO
    for side in range(4):
        (begin_a, begin_b), (end_a, end_b) = side_of_cell(bounds, side)
        border = (
            point_of_cell(ground, cell, begin_a, begin_b),
            point_of_cell(ground, cell, end_a, end_b),
        )

        s, r = nearest_of_lines(line, border)
        offset = vector_between(line, s, border, r)
        square = dot(offset, offset)
        if square < least:
            least = square
            nearest = (begin_a + r * (end_a - begin_a), begin_b + r * (end_b - begin_b), s)
    return nearest


@inlined_kernel
def side_of_cell(bounds: CellBounds, side: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return a, b of both ends of one of the four sides of a cell."""
    if side == 0:
        return (bounds.a0, bounds.b0), (bounds.a1, bounds.b0)
    if side == 1:
        return (bounds.a0, bounds.b1), (bounds.a1, bounds.b1)
    if side == 2:
        return (bounds.a0, bounds.b0), (bounds.a0, bounds.b1)
    return (bounds.a1, bounds.b0), (bounds.a1, bounds.b1)


@inner_kernel
def nearest_in_cell(
    ground: GroundGrid, line: Line, cell: Cell, bounds: CellBounds, start: Vector
) -> tuple[float, Vector]:
    """Return the least squared distance near a start (a, b, s), and a, b, s there."""
    direction = subtract(line[1], line[0])
    corner = (
        ground.origin_x + cell.i * ground.step_x - line[0][0],
        ground.origin_y + cell.j * ground.step_y - line[0][1],
        cell.height - line[0][2],
    )
    place = start
    offset = offset_at(ground, cell, corner, direction, place)
    square = dot(offset, offset)
    damping = 1e-9

    for _ in range(ITERATIONS):
        gradient, hessian = derivatives(ground, cell, direction, place, offset)
        gradient, hessian = held_at_bounds(gradient, hessian, bounds, direction, place)

        # more damping until a step leads downwards
        gained = False
        while damping < MOST_DAMPING:
            solvable, step = damped_step(gradient, hessian, damping)
            if solvable:
                a, b, s = add(place, step)
                trial = (
                    min(max(a, bounds.a0), bounds.a1),
                    min(max(b, bounds.b0), bounds.b1),
                    min(max(s, 0.0), 1.0),
                )
                offset = offset_at(ground, cell, corner, direction, trial)
                trial_square = dot(offset, offset)
                if trial_square < square:
                    gained = square - trial_square > CONVERGED * square
                    place = trial
                    square = trial_square
                    damping = max(0.1 * damping, 1e-12)
                    break
            damping = max(10.0 * damping, 1e-6)

        if not gained:
            break

    return max(square, SAME_POINT * SAME_POINT), place


@inlined_kernel
def offset_at(
    ground: GroundGrid, cell: Cell, corner: Vector, direction: Vector, place: Vector
) -> Vector:
    """Return the vector from a share s of the line to a, b of the cell.

    `corner`: the cell's first corner from the line's begin.
    """
    a, b, s = place
    return (
        corner[0] + a * ground.step_x - s * direction[0],
        corner[1] + b * ground.step_y - s * direction[1],
        corner[2] + cell.slope_u * a + cell.slope_v * b + cell.twist * a * b - s * direction[2],
    )


@inlined_kernel
def derivatives(
    ground: GroundGrid, cell: Cell, direction: Vector, place: Vector, offset: Vector
) -> tuple[Vector, Hessian]:
    """Return the gradient of half the squared distance by a, b, s, and its second derivatives."""
    rise_a = cell.slope_u + cell.twist * place[1]
    rise_b = cell.slope_v + cell.twist * place[0]

    gradient = (
        ground.step_x * offset[0] + rise_a * offset[2],
        ground.step_y * offset[1] + rise_b * offset[2],
        -dot(direction, offset),
    )

    hessian = Hessian(
        ground.step_x * ground.step_x + rise_a * rise_a,
        ground.step_y * ground.step_y + rise_b * rise_b,
        dot(direction, direction),
        rise_a * rise_b + cell.twist * offset[2],
        -(ground.step_x * direction[0] + rise_a * direction[2]),
        -(ground.step_y * direction[1] + rise_b * direction[2]),
    )
    return gradient, hessian


@inlined_kernel
def held_at_bounds(
    gradient: Vector, hessian: Hessian, bounds: CellBounds, direction: Vector, place: Vector
) -> tuple[Vector, Hessian]:
    """Return the derivatives without the unknowns that stand at a bound and would leave it."""
    a, b, s = place
    by_a, by_b, by_s = gradient
    aa, bb, ss, ab, a_s, bs = hessian

    if (a <= bounds.a0 and by_a > 0.0) or (a >= bounds.a1 and by_a < 0.0):
        by_a = 0.0
        ab = 0.0
        a_s = 0.0

    if (b <= bounds.b0 and by_b > 0.0) or (b >= bounds.b1 and by_b < 0.0):
        by_b = 0.0
        ab = 0.0
        bs = 0.0

    is_point = dot(direction, direction) <= 0.0
    if is_point or (s <= 0.0 and by_s > 0.0) or (s >= 1.0 and by_s < 0.0):
        by_s = 0.0
        a_s = 0.0
        bs = 0.0
        ss = max(ss, 1.0)

    return (by_a, by_b, by_s), Hessian(aa, bb, ss, ab, a_s, bs)


@inlined_kernel
def damped_step(gradient: Vector, hessian: Hessian, damping: float) -> tuple[bool, Vector]:
    """Return the damped Newton step by L·D·Lᵀ, and whether the matrix is positive definite.

    Where it is not there is no step downwards.
    """
    d0 = hessian.aa * (1.0 + damping)
    d1 = hessian.bb * (1.0 + damping)
    d2 = hessian.ss * (1.0 + damping)

    # factors
    l1 = hessian.ab / d0
    l2 = hessian.a_s / d0
    e1 = d1 - l1 * hessian.ab
    if e1 <= SINGULAR * d1:
        return False, ZERO
    m = hessian.bs - l1 * hessian.a_s
    l3 = m / e1
    e2 = d2 - l2 * hessian.a_s - l3 * m
    if e2 <= SINGULAR * d2:
        return False, ZERO

    # forwards and backwards
    y1 = -gradient[1] + l1 * gradient[0]
    y2 = -gradient[2] + l2 * gradient[0]
    y2 -= l3 * y1
    step_s = y2 / e2
    step_b = y1 / e1 - l3 * step_s
    step_a = -gradient[0] / d0 - l1 * step_b - l2 * step_s
    return True, (step_a, step_b, step_s)
