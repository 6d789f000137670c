"""Compiled kernels: the ground as cells, and the deepest point of a core beneath it. Exact: the
surface is bilinear.

Rows u = (x - origin_x) / step_x and columns v are an affine map of x and y: straight lines and
planes stay such. In one cell the height is bilinear, so along a straight edge of a body the depth
straight down is a quadratic, whose largest value is at hand; and beneath a flat face it has no
largest value but on the face's edges or at a sample of the map, since a bilinear function has
neither hill nor hollow. So what is looked at is: each edge from grid line to grid line, and each
sample beneath a face. Nothing is stepped.

The map's edge extended is a further row of cells on each side, endless, in which the height does
not change outwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.distance_kernels import PARALLEL, to_world
from rfly_collision.shapes.shape_table import ShapeTable
from rfly_common.arrays import Ints
from rfly_common.kernels.jit import inner_kernel
from rfly_terrain.height_map.bilinear import unit_normal
from rfly_terrain.height_map.ground import GroundGrid

Vector = tuple[float, float, float]

IN_CELL = 0
ON_ROW = 1
ON_COLUMN = 2
UNDER_FACE = 3
"""where the deepest point lies: within a cell, on the grid line of a row or a column, at a sample
beneath a face
"""


class TerrainArrays(NamedTuple):
    """A height map with the pyramid of its highest points (`rfly_terrain.height_map.ray_pyramid`)."""

    ground: GroundGrid
    void: bool
    """whether there is nothing beyond the map's edge, where the edge goes on else"""
    maxima: NDArray[np.float32]
    """the highest points of blocks, level after level"""
    levels: Ints
    """(levels, 2) where each begins, and its columns"""
    bits: int
    """2^bits cells are a side of the smallest blocks"""


@inner_kernel
def cell_index(position: float, samples: int, void: bool) -> int:
    """The cell of a row or column number: -1 and samples - 1 are the endless ones beyond the map,
    where there are.
    """
    if void:
        return int(min(max(math.floor(min(max(position, 0.0), 1e9)), 0), samples - 2))
    return math.floor(min(max(position, -1.0), samples - 1.0))


@inner_kernel
def polynomial(ground: GroundGrid, i: int, j: int) -> tuple[float, float, float, float]:
    """(z00, A, B, K) of a cell: the height is z00 + A·a + B·b + K·a·b at a = u - i, b = v - j."""
    heights = ground.heights
    near = max(i, 0) * ground.columns
    far = min(i + 1, ground.rows - 1) * ground.columns
    left = max(j, 0)
    right = min(j + 1, ground.columns - 1)
    z00 = float(heights[np.uint64(near + left)])
    z01 = float(heights[np.uint64(near + right)])
    z10 = float(heights[np.uint64(far + left)])
    z11 = float(heights[np.uint64(far + right)])
    return z00, z10 - z00, z01 - z00, z11 - z10 - z01 + z00


@inner_kernel
def highest(
    terrain: TerrainArrays, low_x: float, high_x: float, low_y: float, high_y: float
) -> float:
    """No lower than the highest point of the ground in a rectangle, -inf where there is none: off a
    map with a void.
    """
    ground = terrain.ground
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    last_u = ground.rows - 1.0
    last_v = ground.columns - 1.0
    u0 = (low_x - origin_x) / step_x
    u1 = (high_x - origin_x) / step_x
    v0 = (low_y - origin_y) / step_y
    v1 = (high_y - origin_y) / step_y
    u0, u1, v0, v1 = min(u0, u1), max(u0, u1), min(v0, v1), max(v0, v1)
    if terrain.void and (u1 < 0.0 or v1 < 0.0 or u0 > last_u or v0 > last_v):
        return -math.inf
    # a point on a grid line belongs to the cells on both sides
    i0 = int(min(max(math.ceil(max(u0, 0.0)) - 1, 0), last_u - 1))
    i1 = int(min(max(u1, 0.0), last_u - 1))
    j0 = int(min(max(math.ceil(max(v0, 0.0)) - 1, 0), last_v - 1))
    j1 = int(min(max(v1, 0.0), last_v - 1))
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
    wide = terrain.levels[level, 1]
    for i in range(i0 >> shift, (i1 >> shift) + 1):
        for j in range(j0 >> shift, (j1 >> shift) + 1):
            z = max(z, float(terrain.maxima[begin + i * wide + j]))
    return z


@inner_kernel
def deepest(
    terrain: TerrainArrays, table: ShapeTable, shape: int, pose: Any, work: Any, found: Any
) -> float:
    """How far the deepest point of a core lies beneath the ground, straight down, < 0 above it;
    -inf: not over it.

    -> found: u, v, z of the point; where it lies; its cell i, j (or face); the direction of its
    edge in u, v, z. `work`: (… , 3), u, v, z of the core's vertices.
    """
    ground = terrain.ground
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    first = table.first[shape]
    end = table.first[shape + 1]
    low_u = math.inf
    high_u = -math.inf
    low_v = math.inf
    high_v = -math.inf
    for row in range(first[0], end[0]):
        x, y, z = to_world(pose, table.vertices, row)
        u = (x - origin_x) / step_x
        v = (y - origin_y) / step_y
        k = row - first[0]
        work[k, 0] = u
        work[k, 1] = v
        work[k, 2] = z
        low_u = min(low_u, u)
        high_u = max(high_u, u)
        low_v = min(low_v, v)
        high_v = max(high_v, v)
    depth = -math.inf
    if end[0] - first[0] == 1:
        return along_edge(terrain, work, 0, 0, depth, found)
    for e in range(first[2], end[2]):
        left = table.edges[e, 2]
        right = table.edges[e, 3]
        if left >= 0 and looks_up(table, pose, left) and looks_up(table, pose, right):
            continue
        depth = along_edge(
            terrain,
            work,
            table.edges[e, 0] - first[0],
            table.edges[e, 1] - first[0],
            depth,
            found,
        )
    if end[1] == first[1]:
        return depth
    rows = ground.rows
    columns = ground.columns
    for i in range(
        max(math.ceil(max(low_u, 0.0)), 0),
        int(min(math.floor(min(high_u, 1e9)), rows - 1)) + 1,
    ):
        for j in range(
            max(math.ceil(max(low_v, 0.0)), 0),
            int(min(math.floor(min(high_v, 1e9)), columns - 1)) + 1,
        ):
            x = origin_x + i * step_x - pose[3, 0]
            y = origin_y + j * step_y - pose[3, 1]
            lower = -math.inf
            upper = math.inf
            face = -1
            for f in range(first[1], end[1]):
                p = table.planes[f, 0]
                q = table.planes[f, 1]
                r = table.planes[f, 2]
                nx = pose[0, 0] * p + pose[0, 1] * q + pose[0, 2] * r
                ny = pose[1, 0] * p + pose[1, 1] * q + pose[1, 2] * r
                nz = pose[2, 0] * p + pose[2, 1] * q + pose[2, 2] * r
                rest = table.planes[f, 3] - nx * x - ny * y
                if nz < -1e-12:
                    if rest / nz > lower:
                        lower = rest / nz
                        face = f
                elif nz > 1e-12:
                    upper = min(upper, rest / nz)
                elif rest < 0.0:
                    upper = -math.inf
            if face < 0 or lower > upper:
                continue
            at = float(ground.heights[np.uint64(i * columns + j)]) - lower - pose[3, 2]
            if at > depth:
                depth = at
                found[0] = i
                found[1] = j
                found[2] = lower + pose[3, 2]
                found[3] = UNDER_FACE
                found[4] = face
    return depth


@inner_kernel
def looks_up(table: ShapeTable, pose: Any, face: int) -> bool:
    """Whether the normal of a face points upwards."""
    x = table.planes[face, 0]
    y = table.planes[face, 1]
    z = table.planes[face, 2]
    return bool(pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z > 0.0)


@inner_kernel
def along_edge(
    terrain: TerrainArrays, work: Any, p: int, q: int, depth: float, found: Any
) -> float:
    """The largest depth straight down along an edge, or `depth` if that is larger; -> found as in
    `deepest`.
    """
    ground = terrain.ground
    begin = u0, v0, z0 = work[p, 0], work[p, 1], work[p, 2]
    along = du, dv, dz = work[q, 0] - u0, work[q, 1] - v0, work[q, 2] - z0
    t = 0.0
    t_end = 1.0
    if terrain.void:
        # only what is over the map
        for axis in range(2):
            at, rate, last = (
                (u0, du, ground.rows - 1.0) if axis == 0 else (v0, dv, ground.columns - 1.0)
            )
            if rate == 0.0:
                if at < 0.0 or at > last:
                    return depth
            else:
                near = -at / rate
                far = (last - at) / rate
                t = max(t, min(near, far))
                t_end = min(t_end, max(near, far))
        if t > t_end:
            return depth
    lowest = -1 if not terrain.void else 0
    last_i = ground.rows - (2 if terrain.void else 1)
    last_j = ground.columns - (2 if terrain.void else 1)
    i = cell_index(u0 + t * du, ground.rows, terrain.void)
    j = cell_index(v0 + t * dv, ground.columns, terrain.void)
    came = IN_CELL if t == 0.0 else nearer_line(u0 + t * du, v0 + t * dv)
    while True:
        t_u = math.inf
        t_v = math.inf
        if du > 0.0 and i < last_i:
            t_u = (i + 1 - u0) / du
        elif du < 0.0 and i > lowest:
            t_u = (i - u0) / du
        if dv > 0.0 and j < last_j:
            t_v = (j + 1 - v0) / dv
        elif dv < 0.0 and j > lowest:
            t_v = (j - v0) / dv
        leave = max(min(t_u, t_v, t_end), t)
        goes = IN_CELL if leave >= 1.0 else nearer_line(u0 + leave * du, v0 + leave * dv)
        z00, along_u, along_v, twist = polynomial(ground, i, j)
        a = u0 + t * du - i
        b = v0 + t * dv - j
        c = z00 + along_u * a + along_v * b + twist * a * b - z0 - t * dz
        m = along_u * du + along_v * dv + twist * (a * dv + b * du) - dz
        curve = twist * du * dv
        span = leave - t
        if c > depth:
            depth = c
            keep(found, begin, along, t, came, i, j)
        at_end = c + (m + curve * span) * span
        if at_end > depth:
            depth = at_end
            keep(found, begin, along, leave, goes, i, j)
        if curve < 0.0 and 0.0 < m < -2.0 * curve * span:
            top = c - m * m / (4.0 * curve)
            if top > depth:
                depth = top
                keep(found, begin, along, t - m / (2.0 * curve), IN_CELL, i, j)
        if leave >= t_end:
            return depth
        t = leave
        came = goes
        if t_u <= t_v:
            i += 1 if du > 0.0 else -1
        else:
            j += 1 if dv > 0.0 else -1


@inner_kernel
def nearer_line(u: float, v: float) -> int:
    """ON_ROW or ON_COLUMN for a point on a line of the grid."""
    return ON_ROW if abs(u - math.floor(u + 0.5)) <= abs(v - math.floor(v + 0.5)) else ON_COLUMN


@inner_kernel
def keep(found: Any, begin: Vector, along: Vector, t: float, where: int, i: int, j: int) -> None:
    """Writes the point begin + t · along (u, v, z) of an edge down."""
    for k in range(3):
        found[k] = begin[k] + t * along[k]
        found[6 + k] = along[k]
    found[3] = where
    found[4] = i
    found[5] = j


@inner_kernel
def normal_at(terrain: TerrainArrays, table: ShapeTable, pose: Any, found: Any) -> Vector:
    """The unit normal out of the ground at the point that `deepest` found.

    Within a cell it is the surface's. On a ridge, which has many, the one that the body has there
    as well: at right angles to the edge that crosses it, or that of the face on a peak.
    """
    ground = terrain.ground
    where = int(found[3])
    if where == UNDER_FACE:
        face = int(found[4])
        x = table.planes[face, 0]
        y = table.planes[face, 1]
        z = table.planes[face, 2]
        return (
            0.0 - (pose[0, 0] * x + pose[0, 1] * y + pose[0, 2] * z),
            0.0 - (pose[1, 0] * x + pose[1, 1] * y + pose[1, 2] * z),
            0.0 - (pose[2, 0] * x + pose[2, 1] * y + pose[2, 2] * z),
        )
    i = int(found[4])
    j = int(found[5])
    _, along_u, along_v, twist = polynomial(ground, i, j)
    slope_u = along_u + twist * (found[1] - j)
    slope_v = along_v + twist * (found[0] - i)
    if where != IN_CELL:
        ex = found[6] * ground.step_x
        ey = found[7] * ground.step_y
        ez = found[8]
        # the grid line's own direction
        lx, ly, lz = (
            (0.0, ground.step_y, slope_v) if where == ON_ROW else (ground.step_x, 0.0, slope_u)
        )
        nx = ey * lz - ez * ly
        ny = ez * lx - ex * lz
        nz = ex * ly - ey * lx
        if nz * nz > PARALLEL * (ex * ex + ey * ey + ez * ez) * (lx * lx + ly * ly + lz * lz):
            norm = math.sqrt(nx * nx + ny * ny + nz * nz) * (1.0 if nz > 0.0 else -1.0)
            return nx / norm, ny / norm, nz / norm
    return unit_normal(slope_u / ground.step_x, slope_v / ground.step_y)
