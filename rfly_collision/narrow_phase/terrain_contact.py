"""Compiled kernels: bodies and the ground over a step, contact and time of impact.

All below the bilinear surface is ground. What a contact is:

- Boxes and hulls: `depth` is that of their deepest point, the one farthest below the surface
straight down, measured
  along the normal there. The normal is the surface's; on a ridge or a peak, where it has many, the
  one that the body has there too: across ridge and edge, or that of the face (see
  `ground_kernels.normal_at`). On a plane this is the least way out; where the ground is curved as
  much as the body it is that to first order.
- Spheres and capsules: radius less the distance of their core from the surface, along the line
between both; with the
  core below the surface radius plus the core's own depth, as above.
- Of several points of a body that are as deep, the middle: what lies flat is touched in its middle.

In time: the ground rises towards a moving point no faster than (gradient · velocity - velocity_z),
so the body is free for as long as its height above the ground allows at the largest such rate of
the cells that it passes, and for distance / speed. The path is traversed in pieces about as long as
the body, each with its own cells; pieces above the highest point of their cells are passed at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_collision.narrow_phase.arguments import PlacedShapes, SweptMotion, TerrainScratch, Touches
from rfly_collision.narrow_phase.distance_kernels import SAME_POINT, line_of
from rfly_collision.narrow_phase.ground_distance import distance_to_ground
from rfly_collision.narrow_phase.ground_kernels import (
    TerrainArrays,
    cell_index,
    deepest,
    highest,
    normal_at,
    polynomial,
)
from rfly_collision.narrow_phase.pair_kernels import ARRIVED, COARSE_STEPS, FINE_STEPS, pose_before
from rfly_collision.shapes.shape_table import ROUND, TOUCHING, ShapeTable
from rfly_common.kernels.jit import inner_kernel, kernel

FLATNESS = 1e-3
"""of a shape's extent: how much less deep than the deepest corners still count as lying flat"""
RIM_STEPS = 64
"""in each piece of the path of a body that is partly over the map and partly over the void: 1/64 of
its size
"""
MOST_PIECES = 4096
"""of the path of one step"""


@inner_kernel
def touch(
    terrain: TerrainArrays,
    table: ShapeTable,
    shape: int,
    limit: float,
    scratch: TerrainScratch,
    out: Any,
) -> tuple[float, float]:
    """(depth, height of the core above the ground) at the scratch's pose; -> out: point, normal.
    Depth < 0: apart.

    The distance of spheres and capsules is looked for up to `limit` beyond their surface.
    """
    work, found, nearest, pose = scratch
    below = deepest(terrain, table, shape, pose, work, found)
    if table.kind[shape] == ROUND and below < 0.0:
        radius = table.radius[shape]
        line = line_of(table, shape, pose)
        distance = distance_to_ground(terrain, line, radius + limit, nearest)
        if distance >= radius + limit:
            return -limit, -below
        middle(terrain, table, shape, line, distance, nearest, out)
        return radius - distance, -below
    if below == -math.inf:
        return -math.inf, math.inf
    out[3], out[4], out[5] = normal_at(terrain, table, pose, found)
    depth = below * out[5] + table.radius[shape]
    ground = terrain.ground
    x = ground.origin_x + found[0] * ground.step_x
    y = ground.origin_y + found[1] * ground.step_y
    z = found[2]
    if table.kind[shape] != ROUND:
        # the middle of all corners that lie as deep
        count = 0
        mean_x = 0.0
        mean_y = 0.0
        mean_z = 0.0
        least = depth - FLATNESS * table.extent[shape]
        for k in range(table.first[shape + 1, 0] - table.first[shape, 0]):
            if terrain.void and not (
                0.0 <= work[k, 0] <= ground.rows - 1 and 0.0 <= work[k, 1] <= ground.columns - 1
            ):
                continue
            i = cell_index(work[k, 0], ground.rows, terrain.void)
            j = cell_index(work[k, 1], ground.columns, terrain.void)
            z00, along_u, along_v, twist = polynomial(ground, i, j)
            a = work[k, 0] - i
            b = work[k, 1] - j
            if (z00 + along_u * a + along_v * b + twist * a * b - work[k, 2]) * out[5] >= least:
                count += 1
                mean_x += ground.origin_x + work[k, 0] * ground.step_x
                mean_y += ground.origin_y + work[k, 1] * ground.step_y
                mean_z += work[k, 2]
        if count > 1:
            x = mean_x / count
            y = mean_y / count
            z = mean_z / count
    back = 0.5 * depth - table.radius[shape]
    out[0], out[1], out[2] = x + back * out[3], y + back * out[4], z + back * out[5]
    return depth, -below


@inner_kernel
def middle(
    terrain: TerrainArrays,
    table: ShapeTable,
    shape: int,
    line: Any,
    distance: float,
    nearest: Any,
    out: Any,
) -> None:
    """Point and normal of a core above the ground -> out; of a line that lies along the ground in
    its middle.
    """
    radius = table.radius[shape]
    if distance > SAME_POINT:
        for k in range(3):
            out[3 + k] = (nearest[0, k] - nearest[1, k]) / distance
    else:
        out[3] = 0.0
        out[4] = 0.0
        out[5] = 1.0
    for k in range(3):
        out[k] = nearest[0, k] - 0.5 * (distance + radius) * out[3 + k]
    length = 2.0 * table.extent[shape]
    if length <= 0.0:
        return
    # as near at both ends: lying flat
    x = 0.5 * (line[0, 0] + line[1, 0])
    y = 0.5 * (line[0, 1] + line[1, 1])
    z = 0.5 * (line[0, 2] + line[1, 2])
    end = np.empty((2, 3))
    other = np.empty((2, 3))
    within = distance + FLATNESS * table.extent[shape]
    for side in range(2):
        for k in range(3):
            end[0, k] = line[side, k]
            end[1, k] = line[side, k]
        if distance_to_ground(terrain, end, within, other) >= within:
            return
    out[0] = x - 0.5 * (distance + radius) * out[3]
    out[1] = y - 0.5 * (distance + radius) * out[4]
    out[2] = z - 0.5 * (distance + radius) * out[5]


@inner_kernel
def on_map(terrain: TerrainArrays, x: float, y: float) -> bool:
    """Whether a point lies on the map."""
    ground = terrain.ground
    u = (x - ground.origin_x) / ground.step_x
    v = (y - ground.origin_y) / ground.step_y
    return bool(0.0 <= u <= ground.rows - 1 and 0.0 <= v <= ground.columns - 1)


@inner_kernel
def rise(
    terrain: TerrainArrays,
    low_x: float,
    high_x: float,
    low_y: float,
    high_y: float,
    vx: float,
    vy: float,
) -> tuple[float, float]:
    """(largest gradient · velocity, largest length of the gradient) of the cells in a rectangle."""
    ground = terrain.ground
    origin_x = ground.origin_x
    origin_y = ground.origin_y
    step_x = ground.step_x
    step_y = ground.step_y
    rows = ground.rows
    columns = ground.columns
    u0 = (low_x - origin_x) / step_x
    u1 = (high_x - origin_x) / step_x
    v0 = (low_y - origin_y) / step_y
    v1 = (high_y - origin_y) / step_y
    most = -math.inf
    steepest = 0.0
    for i in range(
        cell_index(min(u0, u1), rows, terrain.void), cell_index(max(u0, u1), rows, terrain.void) + 1
    ):
        for j in range(
            cell_index(min(v0, v1), columns, terrain.void),
            cell_index(max(v0, v1), columns, terrain.void) + 1,
        ):
            _, along_u, along_v, twist = polynomial(ground, i, j)
            x0 = along_u / step_x
            x1 = (along_u + twist) / step_x
            y0 = along_v / step_y
            y1 = (along_v + twist) / step_y
            most = max(most, max(x0 * vx, x1 * vx) + max(y0 * vy, y1 * vy))
            steep_x = max(abs(x0), abs(x1))
            steep_y = max(abs(y0), abs(y1))
            steepest = max(steepest, steep_x * steep_x + steep_y * steep_y)
    return most, math.sqrt(steepest)


@inner_kernel
def speeds(table: ShapeTable, motion: SweptMotion, body: int) -> tuple[float, float]:
    """The most that any point of a body moves, and the part of it that is by turning, m/s."""
    velocity = motion.velocity
    angular_velocity = motion.angular_velocity
    vx = velocity[body, 0]
    vy = velocity[body, 1]
    vz = velocity[body, 2]
    wx = angular_velocity[body, 0]
    wy = angular_velocity[body, 1]
    wz = angular_velocity[body, 2]
    turning = math.sqrt(wx * wx + wy * wy + wz * wz) * table.reach[motion.shape_index[body]]
    return math.sqrt(vx * vx + vy * vy + vz * vz) + turning, turning


@inner_kernel
def first_touch(
    terrain: TerrainArrays,
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    n: int,
    scratch: TerrainScratch,
    out: Any,
) -> float:
    """Seconds from the begin of the step until the moving body n touches the ground -> out: point,
    normal; else inf.
    """
    position = motion.position
    velocity = motion.velocity
    low = placed.low
    high = placed.high
    shape = motion.shape_index[n]
    radius = table.radius[shape]
    vx = velocity[n, 0]
    vy = velocity[n, 1]
    vz = velocity[n, 2]
    speed, turning = speeds(table, motion, n)
    cell = max(abs(terrain.ground.step_x), abs(terrain.ground.step_y))
    # in pieces of about the body's own size
    size = max(2.0 * (table.extent[shape] + radius), 4.0 * cell)
    pieces = int(min(math.ceil(speed * dt / size), MOST_PIECES))
    for piece in range(pieces):
        begin = dt * piece / pieces
        end = dt * (piece + 1) / pieces
        # where the body's origin is, and all that is around it
        around = table.reach[shape] + radius
        x0 = position[n, 0] - (dt - begin) * vx
        x1 = position[n, 0] - (dt - end) * vx
        y0 = position[n, 1] - (dt - begin) * vy
        y1 = position[n, 1] - (dt - end) * vy
        z0 = position[n, 2] - (dt - begin) * vz
        z1 = position[n, 2] - (dt - end) * vz
        low_x = max(min(x0, x1) - around, low[n, 0])
        high_x = min(max(x0, x1) + around, high[n, 0])
        low_y = max(min(y0, y1) - around, low[n, 1])
        high_y = min(max(y0, y1) + around, high[n, 1])
        if min(z0, z1) - around > highest(terrain, low_x, high_x, low_y, high_y):
            continue
        # beyond the rim of a map with a void nothing bounds how fast ground comes under the body
        rim = terrain.void and not (
            on_map(terrain, low_x, low_y) and on_map(terrain, high_x, high_y)
        )
        gain, steepest = rise(terrain, low_x, high_x, low_y, high_y, vx, vy)
        tilt = math.sqrt(1.0 + steepest * steepest)
        rate = gain - vz + turning * tilt
        when = begin
        steps = 0
        while when <= end:
            pose_before(motion, placed.rotation, n, dt - when, scratch.pose)
            limit = min(max(radius, 0.5 * cell), speed * (end - when)) + 2.0 * ARRIVED
            depth, height = touch(terrain, table, shape, limit, scratch, out)
            if depth >= -(TOUCHING if when == 0.0 else ARRIVED):
                return when
            free = -depth / speed if table.kind[shape] == ROUND else 0.0
            over = height - radius * tilt
            if over > 0.0:
                free = max(free, over / rate if rate > 0.0 else math.inf)
            if rim:
                free = (end - begin) / RIM_STEPS
            steps += 1
            if steps > FINE_STEPS:
                free = max(free, (end - begin) / COARSE_STEPS)
            when += free
    return math.inf


@kernel
def terrain_contacts(
    terrain: TerrainArrays,
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    chosen: Any,
    touches: Touches,
) -> None:
    """The bodies `chosen` (m,) -> touches."""
    touching, points, normals, depths, times = touches
    low = placed.low
    high = placed.high
    scratch = TerrainScratch(
        np.empty((table.most_vertices, 3)), np.zeros(9), np.empty((2, 3)), np.empty((4, 3))
    )
    at_end = np.zeros(6)
    at_impact = np.zeros(6)
    for m in range(chosen.size):
        n = chosen[m]
        touching[m] = False
        if low[n, 2] > highest(terrain, low[n, 0], high[n, 0], low[n, 1], high[n, 1]):
            continue
        pose_before(motion, placed.rotation, n, 0.0, scratch.pose)
        depth, _ = touch(terrain, table, motion.shape_index[n], 2.0 * ARRIVED, scratch, at_end)
        touches_at_end = depth >= -TOUCHING
        time = math.inf
        moves = dt > 0.0 and speeds(table, motion, n)[0] > 0.0
        if moves:
            time = first_touch(terrain, table, motion, placed, dt, n, scratch, at_impact)
        if not touches_at_end and time > dt:
            continue
        contact = at_end if touches_at_end else at_impact
        for k in range(3):
            points[m, k] = contact[k]
            normals[m, k] = contact[3 + k]
        touching[m] = True
        depths[m] = max(depth, 0.0) if touches_at_end else 0.0
        times[m] = min(time, dt) if moves else 0.0
