# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels: bodies and the ground over a step, contact and time of impact.

All below the bilinear surface is ground. What a contact is:

- Boxes and hulls: `depth` is that of their deepest point, the one farthest below the surface
  straight down, measured along the normal there. The normal is the surface's. On a ridge or a peak,
  which has many normals, it is the one that the body has there too: across ridge and edge, or that
  of the face (see `ground_kernels.normal_at`). On a plane this is the shortest way out. Where the
  ground is curved as much as the body it is that to first order.
- Spheres and capsules: radius less the distance of their core from the surface, along the line
  between both. With the core below the surface: radius plus the core's own depth, as above.
- If several points of a body are equally deep, the middle: a body that lies flat is touched in its
  middle.

In time: the ground rises towards a moving point no faster than (gradient · velocity - velocity_z).
So the body is free for as long as its height above the ground allows at the largest such rate of
the cells that it passes, and for distance / speed. The path is traversed in pieces about as long as
the body, each with its own cells. Pieces above the highest point of their cells are passed at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rfly_collision.narrow_phase.bodies import (
    PlacedShapes,
    SweptMotion,
    TerrainScratch,
    Touches,
)
from rfly_collision.narrow_phase.distance_kernels import SAME_POINT, UP, Line, core_line
from rfly_collision.narrow_phase.ground_distance import NearestOnGround, distance_to_ground
from rfly_collision.narrow_phase.ground_kernels import (
    ZERO,
    TerrainArrays,
    cell_at,
    cell_index,
    deepest,
    grid_range,
    height_in,
    highest,
    normal_at,
)
from rfly_collision.narrow_phase.pair_kernels import (
    ARRIVED,
    COARSE_STEPS,
    FINE_STEPS,
    NEVER,
    pose_before,
)
from rfly_collision.shapes.shape import ROUND, TOUCHING, ShapeTable
from rfly_common.kernels.jit import inner_kernel, kernel
from rfly_common.kernels.vectors import (
    Vector,
    add,
    divided,
    norm,
    scaled,
    set_vector,
    subtract,
    vector_at,
)

FLATNESS = 1e-3
"""Share of a shape's extent: corners no more than this less deep than the deepest lie flat, too."""

RIM_STEPS = 64
"""Steps in each piece of a path that is partly over the map and partly over the void.

They are 1/64 of the body's size.
"""

MOST_PIECES = 4096
"""Most pieces of the path of one step."""


class GroundTouch(NamedTuple):
    """A body and the ground at one pose."""

    depth: float
    """Depth along the normal, m; < 0: apart."""
    height: float
    """Height of the core above the ground, m."""
    point: Vector
    """Contact point, ENU, m."""
    normal: Vector
    """Unit normal out of the ground."""


class Rectangle(NamedTuple):
    """A rectangle along the axes, ENU, m."""

    low_x: float
    """Least x."""
    high_x: float
    """Greatest x."""
    low_y: float
    """Least y."""
    high_y: float
    """Greatest y."""


@inner_kernel
def touch(
    terrain: TerrainArrays, table: ShapeTable, shape: int, limit: float, scratch: TerrainScratch
) -> GroundTouch:
    """Return how a shape at the scratch's pose touches the ground.

    Spheres and capsules whose surface is `limit` or farther from the ground have the depth -limit.
    """
    pose = scratch.pose
    found = deepest(terrain, table, shape, pose, scratch.vertices)
    radius = table.radius[shape]

    if table.kind[shape] == ROUND and found.depth < 0.0:
        line = core_line(table, shape, pose)
        nearest = distance_to_ground(terrain, line, radius + limit)
        if nearest.distance >= radius + limit:
            return GroundTouch(-limit, -found.depth, ZERO, UP)
        point, normal = round_touch(terrain, table, shape, line, nearest)
        return GroundTouch(radius - nearest.distance, -found.depth, point, normal)

    if found.depth == -math.inf:
        return GroundTouch(-math.inf, math.inf, ZERO, UP)

    normal = normal_at(terrain, table, pose, found)
    depth = found.depth * normal[2] + radius
    ground = terrain.ground
    u, v, z = found.point
    point = (ground.origin_x + u * ground.step_x, ground.origin_y + v * ground.step_y, z)
    if table.kind[shape] != ROUND:
        least = depth - FLATNESS * table.extent[shape]
        count = table.first[shape + 1, 0] - table.first[shape, 0]
        point = middle_of_deep_corners(terrain, scratch.vertices, count, normal[2], least, point)

    # half-way between both surfaces
    point = add(point, scaled(0.5 * depth - radius, normal))
    return GroundTouch(depth, -found.depth, point, normal)


@inner_kernel
def middle_of_deep_corners(
    terrain: TerrainArrays, vertices: Any, count: int, slant: float, least: float, point: Vector
) -> Vector:
    """Return the mean of the vertices that lie at least `least` deep; `point` if fewer than two do.

    `vertices`: u, v, z. `slant`: the share of a depth straight down that counts along the normal.
    """
    ground = terrain.ground
    deep = 0
    total = ZERO
    for k in range(count):
        u, v, z = vector_at(vertices, k, 0)
        inside = 0.0 <= u <= ground.rows - 1 and 0.0 <= v <= ground.columns - 1
        if terrain.void and not inside:
            continue

        i = cell_index(u, ground.rows, terrain.void)
        j = cell_index(v, ground.columns, terrain.void)
        below = height_in(cell_at(ground, i, j), u - i, v - j) - z
        if below * slant >= least:
            x = ground.origin_x + u * ground.step_x
            y = ground.origin_y + v * ground.step_y
            total = add(total, (x, y, z))
            deep += 1

    if deep > 1:
        return divided(total, float(deep))
    return point


@inner_kernel
def round_touch(
    terrain: TerrainArrays,
    table: ShapeTable,
    shape: int,
    line: Line,
    nearest: NearestOnGround,
) -> tuple[Vector, Vector]:
    """Return point and normal of a sphere or capsule whose core, `line`, is above the ground.

    A capsule that lies along the ground is touched in its middle.
    """
    distance = nearest.distance
    normal = UP
    if distance > SAME_POINT:
        normal = divided(subtract(nearest.on_line, nearest.on_ground), distance)
    to_contact = scaled(0.5 * (distance + table.radius[shape]), normal)

    on_core = nearest.on_line
    if table.extent[shape] > 0.0 and lies_flat(terrain, table, shape, line, distance):
        on_core = scaled(0.5, add(line[0], line[1]))
    return subtract(on_core, to_contact), normal


@inner_kernel
def lies_flat(
    terrain: TerrainArrays, table: ShapeTable, shape: int, line: Line, distance: float
) -> bool:
    """Return whether both ends of a core are as near to the ground as its nearest point."""
    limit = distance + FLATNESS * table.extent[shape]
    for side in range(2):
        end = line[side]
        if distance_to_ground(terrain, (end, end), limit).distance >= limit:
            return False
    return True


@inner_kernel
def on_map(terrain: TerrainArrays, x: float, y: float) -> bool:
    """Return whether a point lies on the map."""
    ground = terrain.ground
    u = (x - ground.origin_x) / ground.step_x
    v = (y - ground.origin_y) / ground.step_y
    return bool(0.0 <= u <= ground.rows - 1 and 0.0 <= v <= ground.columns - 1)


@inner_kernel
def steepest_rise(
    terrain: TerrainArrays, area: Rectangle, vx: float, vy: float
) -> tuple[float, float]:
    """Return the largest gradient · velocity and the longest gradient of the cells in an area."""
    ground = terrain.ground
    u0, u1 = grid_range(area.low_x, area.high_x, ground.origin_x, ground.step_x)
    v0, v1 = grid_range(area.low_y, area.high_y, ground.origin_y, ground.step_y)
    i_first = cell_index(u0, ground.rows, terrain.void)
    i_last = cell_index(u1, ground.rows, terrain.void)
    j_first = cell_index(v0, ground.columns, terrain.void)
    j_last = cell_index(v1, ground.columns, terrain.void)

    largest = -math.inf
    longest = 0.0
    for i in range(i_first, i_last + 1):
        for j in range(j_first, j_last + 1):
            # the gradient is linear along each side of the cell
            cell = cell_at(ground, i, j)
            x0 = cell.slope_u / ground.step_x
            x1 = (cell.slope_u + cell.twist) / ground.step_x
            y0 = cell.slope_v / ground.step_y
            y1 = (cell.slope_v + cell.twist) / ground.step_y
            largest = max(largest, max(x0 * vx, x1 * vx) + max(y0 * vy, y1 * vy))
            steep_x = max(abs(x0), abs(x1))
            steep_y = max(abs(y0), abs(y1))
            longest = max(longest, steep_x * steep_x + steep_y * steep_y)
    return largest, math.sqrt(longest)


@inner_kernel
def speeds(table: ShapeTable, motion: SweptMotion, body: int) -> tuple[float, float]:
    """Return the highest speed of any point of a body, and the part that is rotation, m/s."""
    turning = norm(vector_at(motion.angular_velocity, body, 0))
    turning = turning * table.reach[motion.shape_index[body]]
    return norm(vector_at(motion.velocity, body, 0)) + turning, turning


@inner_kernel
def first_ground_touch(
    terrain: TerrainArrays,
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    body: int,
    scratch: TerrainScratch,
) -> tuple[float, GroundTouch]:
    """Return the seconds from the begin of the step until a body touches the ground, and the touch.

    NEVER if it does not.
    """
    shape = motion.shape_index[body]
    radius = table.radius[shape]
    around = table.reach[shape] + radius
    velocity = vector_at(motion.velocity, body, 0)
    position = vector_at(motion.position, body, 0)
    speed, _ = speeds(table, motion, body)
    latest = GroundTouch(-math.inf, math.inf, ZERO, UP)

    # in pieces of about the body's own size
    cell_size = max(abs(terrain.ground.step_x), abs(terrain.ground.step_y))
    size = max(2.0 * (table.extent[shape] + radius), 4.0 * cell_size)
    pieces = int(min(math.ceil(speed * dt / size), MOST_PIECES))
    for piece in range(pieces):
        begin = dt * piece / pieces
        end = dt * (piece + 1) / pieces

        # the body's origin at both ends, and everything around it
        first = subtract(position, scaled(dt - begin, velocity))
        last = subtract(position, scaled(dt - end, velocity))
        area = Rectangle(
            max(min(first[0], last[0]) - around, placed.low[body, 0]),
            min(max(first[0], last[0]) + around, placed.high[body, 0]),
            max(min(first[1], last[1]) - around, placed.low[body, 1]),
            min(max(first[1], last[1]) + around, placed.high[body, 1]),
        )
        ceiling = highest(terrain, area.low_x, area.high_x, area.low_y, area.high_y)
        if min(first[2], last[2]) - around > ceiling:
            continue

        time, latest = first_touch_in_piece(
            terrain, table, motion, placed, dt, body, begin, end, area, scratch
        )
        if time != NEVER:
            return time, latest
    return NEVER, latest


@inner_kernel
def first_touch_in_piece(
    terrain: TerrainArrays,
    table: ShapeTable,
    motion: SweptMotion,
    placed: PlacedShapes,
    dt: float,
    body: int,
    begin: float,
    end: float,
    area: Rectangle,
    scratch: TerrainScratch,
) -> tuple[float, GroundTouch]:
    """Return what `first_ground_touch` does, between two times of the step and within an area."""
    shape = motion.shape_index[body]
    radius = table.radius[shape]
    speed, turning = speeds(table, motion, body)
    cell_size = max(abs(terrain.ground.step_x), abs(terrain.ground.step_y))
    vx, vy, vz = vector_at(motion.velocity, body, 0)

    # beyond the rim of a map with a void nothing bounds how fast ground comes under the body
    over_map = on_map(terrain, area.low_x, area.low_y) and on_map(terrain, area.high_x, area.high_y)
    over_rim = terrain.void and not over_map
    gain, steepest = steepest_rise(terrain, area, vx, vy)
    tilt = math.sqrt(1.0 + steepest * steepest)
    rate = gain - vz + turning * tilt

    latest = GroundTouch(-math.inf, math.inf, ZERO, UP)
    time = begin
    steps = 0
    while time <= end:
        pose_before(motion, placed.rotation, body, dt - time, scratch.pose)
        limit = min(max(radius, 0.5 * cell_size), speed * (end - time)) + 2.0 * ARRIVED
        latest = touch(terrain, table, shape, limit, scratch)
        if latest.depth >= -(TOUCHING if time == 0.0 else ARRIVED):
            return time, latest

        # free by the distance, or by the height above the ground
        free = 0.0
        if table.kind[shape] == ROUND:
            free = -latest.depth / speed
        over = latest.height - radius * tilt
        if over > 0.0:
            free = max(free, over / rate if rate > 0.0 else math.inf)

        if over_rim:
            free = (end - begin) / RIM_STEPS
        steps += 1
        if steps > FINE_STEPS:
            free = max(free, (end - begin) / COARSE_STEPS)
        time += free
    return NEVER, latest


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
    """Test the bodies `chosen` (m,) against the ground and write the results to `touches`."""
    low = placed.low
    high = placed.high
    scratch = TerrainScratch(np.empty((table.most_vertices, 3)), np.empty((4, 3)))
    for m in range(chosen.size):
        body = chosen[m]
        touches.touching[m] = False
        ceiling = highest(terrain, low[body, 0], high[body, 0], low[body, 1], high[body, 1])
        if low[body, 2] > ceiling:
            continue

        # at the end of the step
        pose_before(motion, placed.rotation, body, 0.0, scratch.pose)
        contact = touch(terrain, table, motion.shape_index[body], 2.0 * ARRIVED, scratch)
        depth = contact.depth
        touches_at_end = depth >= -TOUCHING

        # on the way
        time = NEVER
        moves = dt > 0.0 and speeds(table, motion, body)[0] > 0.0
        if moves:
            time, impact = first_ground_touch(terrain, table, motion, placed, dt, body, scratch)
            if not touches_at_end:
                contact = impact
        if not touches_at_end and time > dt:
            continue

        touches.touching[m] = True
        set_vector(touches.points, m, 0, contact.point)
        set_vector(touches.normals, m, 0, contact.normal)
        touches.depths[m] = max(depth, 0.0) if touches_at_end else 0.0
        touches.times[m] = min(time, dt) if moves else 0.0
