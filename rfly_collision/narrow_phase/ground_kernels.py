# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: the ground as cells, and the deepest point of a core beneath it.

The result is exact, because the surface is bilinear. Rows u = (x - origin_x) / step_x and columns v
are an affine map of x and y, so straight lines stay straight and planes stay planes. In one cell
the height is bilinear. So along a straight edge of a body the depth straight down is quadratic, and
its largest value has a closed form. Beneath a flat face the depth is largest on the face's edges or
at a sample of the map, since a bilinear function has neither hills nor hollows. So two things are
tested: each edge from grid line to grid line, and each sample beneath a face. Nothing is stepped.

Where the map's edge is extended there is a further row of cells on each side. These are endless,
and their height does not change outwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.distance_kernels import PARALLEL, to_world
from rfly_collision.shapes.shape import ShapeTable
from rfly_common.arrays import Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel
from rfly_common.kernels.vectors import (
    Vector,
    add,
    cross,
    divided,
    dot,
    matrix_at,
    norm,
    rotated,
    scaled,
    set_vector,
    subtract,
    vector_at,
)
from rfly_terrain.height_map.bilinear import unit_normal
from rfly_terrain.height_map.ground import GroundGrid

# where the deepest point lies
IN_CELL = 0
"""Within a cell."""
ON_ROW = 1
"""On the grid line of a row."""
ON_COLUMN = 2
"""On the grid line of a column."""
UNDER_FACE = 3
"""At a sample of the map beneath a face."""

NO_FACE = -1

LEVEL = 1e-12
"""Vertical part of a face's normal below which the face is upright."""

ZERO = (0.0, 0.0, 0.0)


class TerrainArrays(NamedTuple):
    """A height map with its pyramid of highest points (`rfly_terrain.height_map.ray_pyramid`)."""

    ground: GroundGrid
    """Grid of heights."""
    void: bool
    """True if there is no ground beyond the map's edge; otherwise the edge is extended."""
    maxima: NDArray[np.float32]
    """Highest points of blocks, level after level, m."""
    levels: Ints
    """Begin of each level in `maxima`, and its columns, (levels, 2)."""
    bits: int
    """The smallest blocks are 2^bits cells wide."""


class Cell(NamedTuple):
    """A cell of the ground.

    z = height + slope_u·a + slope_v·b + twist·a·b at a = u - i, b = v - j.
    """

    i: int
    """Row."""
    j: int
    """Column."""
    height: float
    """Height of the first corner, m."""
    slope_u: float
    """Rise along the rows at b = 0, m."""
    slope_v: float
    """Rise along the columns at a = 0, m."""
    twist: float
    """Change of either slope over the cell, m."""


class DeepestPoint(NamedTuple):
    """The deepest point of a core beneath the ground."""

    depth: float
    """Depth straight down, m; < 0 above the ground; -inf for a core that is not over it."""
    point: Vector
    """u, v, z of the point."""
    where: int
    """IN_CELL, ON_ROW, ON_COLUMN or UNDER_FACE."""
    i: int
    """Row of the cell, or of the sample."""
    j: int
    """Column of the cell, or of the sample."""
    face: int
    """Row of the face in the table, or NO_FACE."""
    along: Vector
    """Direction of the edge in u, v, z."""


@inner_kernel
def cell_index(position: float, samples: int, void: bool) -> int:
    """Return the cell of a row or column number.

    Unless void, -1 and samples - 1 are the endless cells beyond the map.
    """
    if void:
        return int(min(max(math.floor(min(max(position, 0.0), 1e9)), 0), samples - 2))
    return math.floor(min(max(position, -1.0), samples - 1.0))


@inner_kernel
def cell_at(ground: GroundGrid, i: int, j: int) -> Cell:
    """Return the cell of row i and column j."""
    heights = ground.heights
    near = max(i, 0) * ground.columns
    far = min(i + 1, ground.rows - 1) * ground.columns
    left = max(j, 0)
    right = min(j + 1, ground.columns - 1)
    z00 = float(heights[np.uint64(near + left)])
    z01 = float(heights[np.uint64(near + right)])
    z10 = float(heights[np.uint64(far + left)])
    z11 = float(heights[np.uint64(far + right)])
    return Cell(i, j, z00, z10 - z00, z01 - z00, z11 - z10 - z01 + z00)


@inlined_kernel
def height_in(cell: Cell, a: float, b: float) -> float:
    """Return the height of the ground at a, b of a cell, m."""
    return cell.height + cell.slope_u * a + cell.slope_v * b + cell.twist * a * b


@inlined_kernel
def grid_range(low: float, high: float, origin: float, step: float) -> tuple[float, float]:
    """Return the least and greatest row number of a range of x, or column number of one of y.

    Rows count downwards in x where the step is negative.
    """
    first = (low - origin) / step
    last = (high - origin) / step
    return min(first, last), max(first, last)


@inner_kernel
def highest(
    terrain: TerrainArrays, low_x: float, high_x: float, low_y: float, high_y: float
) -> float:
    """Return an upper bound of the ground's height in a rectangle, m; -inf if it has no ground."""
    ground = terrain.ground
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    u0, u1 = grid_range(low_x, high_x, ground.origin_x, ground.step_x)
    v0, v1 = grid_range(low_y, high_y, ground.origin_y, ground.step_y)
    if terrain.void and (u1 < 0.0 or v1 < 0.0 or u0 > last_u or v0 > last_v):
        return -math.inf

    # a point on a grid line belongs to the cells on both sides
    i0 = int(min(max(math.ceil(max(u0, 0.0)) - 1, 0), last_u - 1))
    i1 = int(min(max(u1, 0.0), last_u - 1))
    j0 = int(min(max(math.ceil(max(v0, 0.0)) - 1, 0), last_v - 1))
    j1 = int(min(max(v1, 0.0), last_v - 1))

    # the finest level with at most four blocks a side
    level = 0
    shift = terrain.bits
    while (
        level < terrain.levels.shape[0] - 1
        and max((i1 >> shift) - (i0 >> shift), (j1 >> shift) - (j0 >> shift)) > 3
    ):
        level += 1
        shift += 1

    z = -math.inf
    begin = terrain.levels[level, 0]
    columns = terrain.levels[level, 1]
    for i in range(i0 >> shift, (i1 >> shift) + 1):
        for j in range(j0 >> shift, (j1 >> shift) + 1):
            z = max(z, float(terrain.maxima[begin + i * columns + j]))
    return z


@inner_kernel
def deepest(
    terrain: TerrainArrays, table: ShapeTable, shape: int, pose: Any, vertices: Any
) -> DeepestPoint:
    """Return the deepest point of a core beneath the ground.

    `vertices` (most vertices, 3) receives u, v, z of the core's vertices.
    """
    ground = terrain.ground
    first = table.first[shape]
    end = table.first[shape + 1]
    low_u = math.inf
    high_u = -math.inf
    low_v = math.inf
    high_v = -math.inf
    for row in range(first[0], end[0]):
        x, y, z = to_world(pose, vector_at(table.vertices, row, 0))
        u = (x - ground.origin_x) / ground.step_x
        v = (y - ground.origin_y) / ground.step_y
        set_vector(vertices, row - first[0], 0, (u, v, z))
        low_u = min(low_u, u)
        high_u = max(high_u, u)
        low_v = min(low_v, v)
        high_v = max(high_v, v)

    # a point, or the edges that are not on the upper side
    best = DeepestPoint(-math.inf, ZERO, IN_CELL, 0, 0, NO_FACE, ZERO)
    if end[0] - first[0] == 1:
        point = vector_at(vertices, 0, 0)
        return deepest_on_edge(terrain, point, point, best)
    for e in range(first[2], end[2]):
        left = table.edges[e, 2]
        right = table.edges[e, 3]
        if left >= 0 and looks_up(table, pose, left) and looks_up(table, pose, right):
            continue
        edge_begin = vector_at(vertices, table.edges[e, 0] - first[0], 0)
        edge_end = vector_at(vertices, table.edges[e, 1] - first[0], 0)
        best = deepest_on_edge(terrain, edge_begin, edge_end, best)

    # samples of the map beneath the faces
    if end[1] == first[1]:
        return best
    i0 = max(math.ceil(max(low_u, 0.0)), 0)
    i1 = int(min(math.floor(min(high_u, 1e9)), ground.rows - 1))
    j0 = max(math.ceil(max(low_v, 0.0)), 0)
    j1 = int(min(math.floor(min(high_v, 1e9)), ground.columns - 1))
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            x = ground.origin_x + i * ground.step_x - pose[3, 0]
            y = ground.origin_y + j * ground.step_y - pose[3, 1]
            z, face = underside(table, shape, pose, x, y)
            if face == NO_FACE:
                continue
            depth = float(ground.heights[np.uint64(i * ground.columns + j)]) - z - pose[3, 2]
            if depth > best.depth:
                point = (float(i), float(j), z + pose[3, 2])
                best = DeepestPoint(depth, point, UNDER_FACE, i, j, face, ZERO)
    return best


@inner_kernel
def underside(table: ShapeTable, shape: int, pose: Any, x: float, y: float) -> tuple[float, int]:
    """Return the height of a polyhedron's lower side at (x, y), and the face there.

    x, y and the height are relative to the body's position, world axes. NO_FACE: not beneath it.
    """
    lower = -math.inf
    upper = math.inf
    face = NO_FACE
    for f in range(table.first[shape, 1], table.first[shape + 1, 1]):
        nx, ny, nz = rotated(matrix_at(pose), vector_at(table.planes, f, 0))
        rest = table.planes[f, 3] - nx * x - ny * y
        if nz < -LEVEL:
            if rest / nz > lower:
                lower = rest / nz
                face = f
        elif nz > LEVEL:
            upper = min(upper, rest / nz)
        elif rest < 0.0:
            return 0.0, NO_FACE

    if lower > upper:
        return 0.0, NO_FACE
    return lower, face


@inner_kernel
def looks_up(table: ShapeTable, pose: Any, face: int) -> bool:
    """Return whether the normal of a face points upwards."""
    return bool(dot(vector_at(pose, 2, 0), vector_at(table.planes, face, 0)) > 0.0)


@inner_kernel
def deepest_on_edge(
    terrain: TerrainArrays, begin: Vector, end: Vector, best: DeepestPoint
) -> DeepestPoint:
    """Return the deepest point straight down along an edge (u, v, z), or `best` if that is deeper.

    The edge is followed from cell to cell.
    """
    ground = terrain.ground
    along = subtract(end, begin)
    share = 0.0
    share_end = 1.0
    if terrain.void:
        share, share_end = shares_over_map(ground, begin, along)
        if share > share_end:
            return best

    lowest = 0 if terrain.void else -1
    last_i = ground.rows - (2 if terrain.void else 1)
    last_j = ground.columns - (2 if terrain.void else 1)
    i = cell_index(begin[0] + share * along[0], ground.rows, terrain.void)
    j = cell_index(begin[1] + share * along[1], ground.columns, terrain.void)
    entry = IN_CELL
    if share != 0.0:
        entry = nearer_line(begin, along, share)

    while True:
        to_row = share_of_next_line(begin[0], along[0], i, lowest, last_i)
        to_column = share_of_next_line(begin[1], along[1], j, lowest, last_j)
        leave = max(min(to_row, to_column, share_end), share)
        exit_line = IN_CELL
        if leave < 1.0:
            exit_line = nearer_line(begin, along, leave)

        # depth along the edge: depth + rate·t + curve·t²
        cell = cell_at(ground, i, j)
        a = begin[0] + share * along[0] - i
        b = begin[1] + share * along[1] - j
        depth = height_in(cell, a, b) - begin[2] - share * along[2]
        rate = cell.slope_u * along[0] + cell.slope_v * along[1]
        rate = rate + cell.twist * (a * along[1] + b * along[0]) - along[2]
        curve = cell.twist * along[0] * along[1]
        span = leave - share

        # at both ends and at the summit between them
        best = deeper(best, depth, begin, along, share, entry, i, j)
        depth_at_end = depth + (rate + curve * span) * span
        best = deeper(best, depth_at_end, begin, along, leave, exit_line, i, j)
        if curve < 0.0 and 0.0 < rate < -2.0 * curve * span:
            summit = depth - rate * rate / (4.0 * curve)
            share_of_summit = share - rate / (2.0 * curve)
            best = deeper(best, summit, begin, along, share_of_summit, IN_CELL, i, j)

        if leave >= share_end:
            return best

        # the next cell
        share = leave
        entry = exit_line
        if to_row <= to_column:
            i += 1 if along[0] > 0.0 else -1
        else:
            j += 1 if along[1] > 0.0 else -1


@inner_kernel
def shares_over_map(ground: GroundGrid, begin: Vector, along: Vector) -> tuple[float, float]:
    """Return the first and the last share of an edge that is over the map; first > last if none."""
    first = 0.0
    last = 1.0
    for axis in range(2):
        samples = ground.rows if axis == 0 else ground.columns
        position = begin[axis]
        rate = along[axis]
        if rate != 0.0:
            at_first_line = -position / rate
            at_last_line = (samples - 1.0 - position) / rate
            first = max(first, min(at_first_line, at_last_line))
            last = min(last, max(at_first_line, at_last_line))
        elif position < 0.0 or position > samples - 1.0:
            return 1.0, 0.0
    return first, last


@inlined_kernel
def share_of_next_line(position: float, rate: float, index: int, lowest: int, last: int) -> float:
    """Return the share of an edge at which it leaves a row or column of cells, or inf."""
    if rate > 0.0 and index < last:
        return (index + 1 - position) / rate
    if rate < 0.0 and index > lowest:
        return (index - position) / rate
    return math.inf


@inner_kernel
def nearer_line(begin: Vector, along: Vector, share: float) -> int:
    """Return whether a point of an edge on a line of the grid is ON_ROW or ON_COLUMN."""
    u = begin[0] + share * along[0]
    v = begin[1] + share * along[1]
    if abs(u - math.floor(u + 0.5)) <= abs(v - math.floor(v + 0.5)):
        return ON_ROW
    return ON_COLUMN


@inlined_kernel
def deeper(
    best: DeepestPoint,
    depth: float,
    begin: Vector,
    along: Vector,
    share: float,
    where: int,
    i: int,
    j: int,
) -> DeepestPoint:
    """Return the point at a share of an edge if its depth exceeds that of `best`, else `best`."""
    if depth <= best.depth:
        return best
    point = add(begin, scaled(share, along))
    return DeepestPoint(depth, point, where, i, j, NO_FACE, along)


@inner_kernel
def normal_at(
    terrain: TerrainArrays, table: ShapeTable, pose: Any, deepest_point: DeepestPoint
) -> Vector:
    """Return the unit normal out of the ground at the point that `deepest` found.

    Within a cell it is the normal of the surface. A ridge has many normals; the result is the one
    that the body has there as well: at right angles to the edge that crosses the ridge, or that of
    the face on a peak.
    """
    ground = terrain.ground
    if deepest_point.where == UNDER_FACE:
        face = vector_at(table.planes, deepest_point.face, 0)
        return subtract(ZERO, rotated(matrix_at(pose), face))

    cell = cell_at(ground, deepest_point.i, deepest_point.j)
    slope_u = cell.slope_u + cell.twist * (deepest_point.point[1] - cell.j)
    slope_v = cell.slope_v + cell.twist * (deepest_point.point[0] - cell.i)

    if deepest_point.where != IN_CELL:
        along = deepest_point.along
        edge = (along[0] * ground.step_x, along[1] * ground.step_y, along[2])
        if deepest_point.where == ON_ROW:
            grid_line = (0.0, ground.step_y, slope_v)
        else:
            grid_line = (ground.step_x, 0.0, slope_u)
        normal = cross(edge, grid_line)
        if normal[2] * normal[2] > PARALLEL * dot(edge, edge) * dot(grid_line, grid_line):
            return divided(normal, norm(normal) * (1.0 if normal[2] > 0.0 else -1.0))

    return unit_normal(slope_u / ground.step_x, slope_v / ground.step_y)
