# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled kernels of planning on a grid.

- `weight`: (rows, columns) float32, row 0 in the south: what a metre costs in a cell, at least 1; 0
  where a vehicle may not be.
- `grid`: (origin_x, origin_y, resolution): south-west corner and side of a cell, m.
- A piece of a path: x, y, heading at its start, length (m, negative: backwards), curvature (1/m,
  left positive).

Paths are checked at samples, with a margin. Every path point lies within STEP / 2 cells of a
sample, and all cells within MARGIN of a sample must be free. No cell that the path crosses is
missed, not even one that it crosses at a corner.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.kernels import dubins
from rfly_common.kernels.interruptible import interruptible
from rfly_common.kernels.jit import callable_in_kernels, inlined_kernel, inner_kernel, kernel

STEP = 0.2
"""Distance between two samples of a path, cells."""
MARGIN = 0.11
"""Distance around a sample within which cells must be free, cells; above STEP / 2."""
BLOCKED = -1.0
"""Cost of a piece that leaves the free cells."""

_STRAIGHT_STEP = np.float32(0.5)
_DIAGONAL_STEP = np.float32(0.70710678)
_KNIGHT_STEP = np.float32(0.55901699)
"""Length of a step in cells, over the number of weights that it averages: 2, 2 and 4."""

for _part in (
    dubins.between,
    dubins.same_turns,
    dubins.opposite_turns,
    dubins.three_turns,
    dubins.shorter,
):
    callable_in_kernels(_part)
shortest_dubins = kernel(dubins.shortest_dubins)


class Steering(NamedTuple):
    """Turning radius of a vehicle, and costs of driving backwards."""

    radius: float
    """Turning radius, m."""
    backward_cost: float = math.inf
    """Cost of a metre backwards, in metres ahead; inf: the vehicle drives forwards only."""
    cusp_cost: float = 0.0
    """Cost of a change between forwards and backwards, m."""


@kernel
def weight_at(weight: Any, grid: Any, x: float, y: float) -> float:
    """Return the cost of a metre at a point.

    It is 0 if a cell within MARGIN is not free or off the grid.
    """
    rows, columns = weight.shape
    u = (x - grid[0]) / grid[2]
    v = (y - grid[1]) / grid[2]
    column = math.floor(u)
    row = math.floor(v)
    if column < 0 or row < 0 or column >= columns or row >= rows:
        return 0.0
    here = float(weight[row, column])
    if here == 0.0:
        return 0.0

    # the neighbours within MARGIN
    next_column = column + _nearby_side(u - column)
    next_row = row + _nearby_side(v - row)
    if next_column < 0 or next_row < 0 or next_column >= columns or next_row >= rows:
        return 0.0
    if weight[row, next_column] == 0.0 or weight[next_row, column] == 0.0:
        return 0.0
    if weight[next_row, next_column] == 0.0:
        return 0.0
    return here


@inlined_kernel
def _nearby_side(fraction: float) -> int:
    """Return the step to the neighbour within MARGIN of a place in a cell, 0 … 1; 0: none is."""
    if fraction < MARGIN:
        return -1
    if fraction > 1.0 - MARGIN:
        return 1
    return 0


@kernel
def piece_end(
    x: float, y: float, heading: float, length: float, curvature: float
) -> tuple[float, float, float]:
    """Return the pose at the end of a piece."""
    half = 0.5 * curvature * length
    chord = _chord(length, half)
    return (
        x + chord * math.cos(heading + half),
        y + chord * math.sin(heading + half),
        heading + 2.0 * half,
    )


@inlined_kernel
def _chord(length: float, half_turn: float) -> float:
    """Return the chord of an arc of that length, which turns by twice `half_turn`, rad."""
    return length if abs(half_turn) < 1e-12 else length * math.sin(half_turn) / half_turn


@kernel
def piece_cost(
    weight: Any,
    grid: Any,
    x: float,
    y: float,
    heading: float,
    length: float,
    curvature: float,
    most: float,
) -> float:
    """Return ∫ weight ds along a piece, by trapezia.

    Returns BLOCKED where the piece leaves the free cells or costs more than `most`.
    """
    # chords between samples, each turned against the one before
    count = max(1, math.ceil(abs(length) / (STEP * grid[2])))
    ds = length / count
    half = 0.5 * curvature * ds
    chord = _chord(ds, half)
    step_x = chord * math.cos(heading + half)
    step_y = chord * math.sin(heading + half)
    turn_c = math.cos(2.0 * half)
    turn_s = math.sin(2.0 * half)

    previous = weight_at(weight, grid, x, y)
    if previous == 0.0:
        return BLOCKED
    cost = 0.0
    step = abs(ds)
    for _ in range(count):
        x += step_x
        y += step_y
        step_x, step_y = turn_c * step_x - turn_s * step_y, turn_s * step_x + turn_c * step_y
        here = weight_at(weight, grid, x, y)
        if here == 0.0:
            return BLOCKED
        cost += 0.5 * (previous + here) * step
        if cost > most:
            return BLOCKED
        previous = here
    return cost


@kernel
def word_cost(
    weight: Any,
    grid: Any,
    x: float,
    y: float,
    heading: float,
    word: Any,
    steering: Steering,
    most: float,
) -> float:
    """Return the cost of the five pieces of a word (see `reeds_shepp`) from a pose.

    It is BLOCKED as in `piece_cost`.
    """
    cost = 0.0
    previous = 0.0
    for k in range(5):
        length = word[k]
        if length == 0.0:
            continue
        if previous * length < 0.0:
            cost += steering.cusp_cost
        previous = length
        factor = 1.0 if length > 0.0 else steering.backward_cost

        curvature = word[5 + k] / steering.radius
        part = piece_cost(weight, grid, x, y, heading, length, curvature, (most - cost) / factor)
        if part == BLOCKED:
            return BLOCKED
        cost += factor * part
        x, y, heading = piece_end(x, y, heading, length, curvature)
    return cost


@kernel
def word_directions(word: Any) -> tuple[float, float]:
    """Return the directions of the first and the last piece of a word.

    They are 1 forwards, -1 backwards, 0 where it has no pieces.
    """
    first = 0.0
    last = 0.0
    for k in range(5):
        if word[k] != 0.0:
            last = math.copysign(1.0, word[k])
            if first == 0.0:
                first = last
    return first, last


@kernel
def shortest_to_point(
    x: float, y: float, heading: float, to_x: float, to_y: float, radius: float
) -> tuple[float, float, float, float, float, float]:
    """Return the shortest path to a point, with any heading there, as a Dubins word.

    A point outside of both turning circles is reached by an arc and its tangent. A point inside of
    one is reached by an arc of the other circle and an arc back (X.-N. Bui et al., Shortest path
    synthesis for Dubins non-holonomic robot, ICRA 1994).
    """
    dx = to_x - x
    dy = to_y - y
    c = math.cos(heading)
    s = math.sin(heading)
    ahead = c * dx + s * dy
    left = c * dy - s * dx

    # mirrored so that the point lies to the left
    turn = 1.0 if left >= 0.0 else -1.0
    left *= turn

    square = ahead * ahead + (left - radius) * (left - radius)
    if square >= radius * radius * (1.0 - 1e-12):
        straight = math.sqrt(max(square - radius * radius, 0.0))
        return (
            radius * _tangent_heading(ahead, left, straight, radius),
            straight,
            0.0,
            turn,
            0.0,
            0.0,
        )
    first, second = _turns_into_circle(ahead, left, radius)
    return radius * first, radius * second, 0.0, -turn, turn, 0.0


@inlined_kernel
def _tangent_heading(ahead: float, left: float, straight: float, radius: float) -> float:
    """Return the heading, 0 … 2 π, at which a tangent to a point leaves the left circle.

    The point is `straight` (m) away along the tangent.
    """
    angle = math.atan2(left - radius, ahead) + math.atan2(radius, straight)
    angle %= 2.0 * math.pi
    return 0.0 if 2.0 * math.pi - angle < 1e-9 else angle


@inlined_kernel
def _turns_into_circle(ahead: float, left: float, radius: float) -> tuple[float, float]:
    """Return the turns, rad, to a point inside of the left circle.

    The first turn is to the right about (0, -radius), the second to the left. The centre of the
    second arc lies 2 radii from the first one and a radius from the point, on either side of the
    line to the point.
    """
    distance = math.sqrt(ahead * ahead + (left + radius) * (left + radius))
    cosine = (5.0 * radius * radius - distance * distance) / (4.0 * radius * radius)
    at_centre = math.acos(min(max(cosine, -1.0), 1.0))
    cosine = (3.0 * radius * radius + distance * distance) / (4.0 * radius * distance)
    aside = math.acos(min(max(cosine, -1.0), 1.0))
    to_point = 0.5 * math.pi - math.atan2(left + radius, ahead)

    near_first = (to_point - aside) % (2.0 * math.pi)
    far_first = (to_point + aside) % (2.0 * math.pi)
    far_second = 2.0 * math.pi - at_centre
    if far_first + far_second < near_first + at_centre:
        return far_first, far_second
    return near_first, at_centre


def cost_to_go(
    weight: NDArray[np.float32], goal: tuple[int, int], start: tuple[int, int], spare: float
) -> NDArray[np.float32]:
    """Return the least cost from each cell's centre to the goal's, (rows, columns), float32, cells.

    It is inf where no path leads. `goal`, `start`: row, column. Steps lead to the 8 neighbours and,
    as a knight moves, to the 8 cells beyond, over free cells only; paths of them are at most 2.8 %
    longer than straight ones. The computation ends when all cells are known that cost `spare` cells
    more than the start. The cells beyond get a lower bound.
    """
    rows, columns = weight.shape
    padded = np.pad(weight, 2)  # blocked cells all around: no step needs a check of the bounds
    width = columns + 4
    best = np.full(padded.size, np.inf, np.float32)
    if weight[goal] > 0.0:
        ring = math.ceil(2.3 * float(weight.max())) + 2
        goal_cell, start_cell = ((row + 2) * width + column + 2 for row, column in (goal, start))
        neighbours = np.array([1, 1 + width, width, width - 1, -1, -1 - width, -width, 1 - width])
        bound = interruptible(
            spread, padded.reshape(-1), best, ring, goal_cell, start_cell, spare, neighbours
        )
        if bound >= 0:
            np.minimum(best, np.float32(bound), out=best)
    return np.ascontiguousarray(best.reshape(rows + 4, width)[2:-2, 2:-2])


@kernel
def spread(
    weight: Any,
    best: Any,
    ring: int,
    goal: int,
    start: int,
    spare: float,
    neighbours: Any,
    stopped: Any,
) -> int:
    """Fill `best` with the least costs of `cost_to_go` over padded, flat weights.

    Returns -1 if all cells are known, else a lower bound of the cost of all further cells.

    Dijkstra with a ring of buckets as wide as the cheapest step, 1 (R. Dial, Algorithm 360, CACM 12
    (1969)): the order within a bucket does not matter. `neighbours`: steps to the eight neighbours,
    in order; a knight's move leads beyond neighbours k and k + 1. Unsigned indices save the check
    for negative ones. `stopped` (1,) ends the computation once it is True.
    """
    room = 1024
    cells = np.empty(ring * room, np.uint32)
    filled = np.zeros(ring, np.int64)
    known = np.zeros(weight.size, np.bool_)
    near = np.empty(10, np.float32)  # weights around a cell, the last and the first one twice

    best[goal] = 0.0
    cells[0] = goal
    filled[0] = 1
    waiting = 1
    bucket = 0
    slot = 0
    fullest = 1
    while waiting > 0 and not stopped[0]:
        if bucket > best[start] + spare:
            return bucket
        taken = 0
        while taken < filled[slot]:
            cell = np.int64(cells[slot * room + taken])
            taken += 1
            if known[cell]:
                continue  # entered more than once: the cheapest path came first
            known[cell] = True
            if fullest + 16 > room:
                cells = _with_more_room(cells, filled, room)
                room = 2 * room

            cost = best[cell]
            here = weight[cell]
            for k in range(8):
                near[k + 1] = weight[np.uint64(cell + neighbours[k])]
            near[0] = near[8]
            near[9] = near[1]
            for k in range(8):
                side = near[k + 1]
                next_side = near[k + 2]
                if side == 0.0:
                    continue

                # the neighbour; a diagonal passes the corners of two others
                diagonal = k & 1
                if not diagonal or (near[k] != 0.0 and next_side != 0.0):
                    step = _DIAGONAL_STEP if diagonal else _STRAIGHT_STEP
                    new = cost + step * (here + side)
                    to = np.uint64(cell + neighbours[k])
                    held = _lower(best, cells, filled, room, slot - bucket, to, new)
                    fullest = max(fullest, held)
                    waiting += held > 0

                # a knight's move, between this neighbour and the next one
                if next_side == 0.0:
                    continue
                to = np.uint64(cell + neighbours[k] + neighbours[(k + 1) & 7])
                if weight[to] != 0.0:
                    new = cost + _KNIGHT_STEP * (here + side + next_side + weight[to])
                    held = _lower(best, cells, filled, room, slot - bucket, to, new)
                    fullest = max(fullest, held)
                    waiting += held > 0
        waiting -= filled[slot]
        filled[slot] = 0
        bucket += 1
        slot = (slot + 1) % ring
    return -1


@inlined_kernel
def _lower(
    best: Any, cells: Any, filled: Any, room: int, first_slot: int, cell: Any, cost: Any
) -> int:
    """Lower the least cost of a cell and put it into its bucket of `room` places.

    Returns the number of cells that the bucket holds now; 0 if the cost is no lower. `first_slot`
    is the slot of cost 0.
    """
    if not cost < best[cell]:
        return 0
    best[cell] = cost
    slot = (first_slot + int(cost)) % filled.size
    cells[slot * room + filled[slot]] = cell
    filled[slot] += 1
    return int(filled[slot])


@inner_kernel
def _with_more_room(cells: Any, filled: Any, room: int) -> Any:
    """Return the same buckets with twice the places."""
    larger = np.empty(2 * cells.size, np.uint32)
    for slot in range(filled.size):
        for place in range(filled[slot]):
            larger[slot * 2 * room + place] = cells[slot * room + place]
    return larger
