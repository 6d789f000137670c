"""Compiled kernels of planning on a grid.

- `weight`: (rows, columns) float32, row 0 in the south: what a metre costs in a cell, at least 1; 0
where none may be.
- `grid`: (origin_x, origin_y, resolution) of its south-west corner, m.
- A piece of a path: x, y, heading at its start, length (m, negative: backwards), curvature (1/m,
left positive).

A pose is looked at with a margin: every path point lies within STEP/2 cells of a sample, and every
sample needs all cells within MARGIN of it, so that no cell that the path crosses, be it by a
corner, is missed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.kernels import dubins
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel

STEP = 0.2
"""cells between two samples of a path"""
MARGIN = 0.11
"""cells around a sample that have to be free; above STEP / 2"""
BLOCKED = -1.0
"""cost of a piece that leaves the free cells"""

shortest_dubins = kernel(dubins.shortest_dubins)


class Steering(NamedTuple):
    """How a vehicle turns, and what driving backwards costs it."""

    radius: float
    """m, of turns"""
    backward_cost: float = math.inf
    """what a metre backwards counts, one ahead being 1; inf: it drives forwards only"""
    cusp_cost: float = 0.0
    """m, that a change between forwards and backwards counts"""


@kernel
def weight_at(weight: Any, grid: Any, x: float, y: float) -> float:
    """What a metre costs at a point, 0 where a cell within MARGIN is not free or not on the grid."""
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
    side = -1 if u - column < MARGIN else 1 if u - column > 1.0 - MARGIN else 0
    end = -1 if v - row < MARGIN else 1 if v - row > 1.0 - MARGIN else 0
    beside = column + side
    beyond = row + end
    if beside < 0 or beyond < 0 or beside >= columns or beyond >= rows:
        return 0.0
    if weight[row, beside] == 0.0 or weight[beyond, column] == 0.0 or weight[beyond, beside] == 0.0:
        return 0.0
    return here


@kernel
def piece_end(
    x: float, y: float, heading: float, length: float, curvature: float
) -> tuple[float, float, float]:
    """The pose at the end of a piece."""
    half = 0.5 * curvature * length
    chord = length if abs(half) < 1e-12 else length * math.sin(half) / half
    return (
        x + chord * math.cos(heading + half),
        y + chord * math.sin(heading + half),
        heading + 2.0 * half,
    )


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
    """∫ weight ds along a piece, by trapezia; BLOCKED where it leaves the free cells or costs more
    than `most`.
    """
    count = max(1, math.ceil(abs(length) / (STEP * grid[2])))
    ds = length / count
    half = 0.5 * curvature * ds
    chord = ds if abs(half) < 1e-12 else ds * math.sin(half) / half
    ahead_x = chord * math.cos(heading + half)
    ahead_y = chord * math.sin(heading + half)
    turn_c = math.cos(2.0 * half)
    turn_s = math.sin(2.0 * half)
    before = weight_at(weight, grid, x, y)
    if before == 0.0:
        return BLOCKED
    cost = 0.0
    step = abs(ds)
    for _ in range(count):
        x += ahead_x
        y += ahead_y
        ahead_x, ahead_y = turn_c * ahead_x - turn_s * ahead_y, turn_s * ahead_x + turn_c * ahead_y
        here = weight_at(weight, grid, x, y)
        if here == 0.0:
            return BLOCKED
        cost += 0.5 * (before + here) * step
        if cost > most:
            return BLOCKED
        before = here
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
    """Cost of the five pieces of a word (see `reeds_shepp`) from a pose; BLOCKED as in
    `piece_cost`.
    """
    cost = 0.0
    before = 0.0
    for k in range(5):
        if word[k] != 0.0:
            factor = 1.0 if word[k] > 0.0 else steering.backward_cost
            if before * word[k] < 0.0:
                cost += steering.cusp_cost
            before = word[k]
            curvature = word[5 + k] / steering.radius
            part = piece_cost(
                weight, grid, x, y, heading, word[k], curvature, (most - cost) / factor
            )
            if part == BLOCKED:
                return BLOCKED
            cost += factor * part
            x, y, heading = piece_end(x, y, heading, word[k], curvature)
    return cost


@kernel
def word_directions(word: Any) -> tuple[float, float]:
    """1 or -1, forwards or backwards, of the first and the last piece of a word; 0 where it has
    none.
    """
    first = 0.0
    last = 0.0
    for k in range(5):
        if word[k] != 0.0:
            last = math.copysign(1.0, word[k])
            first = last if first == 0.0 else first
    return first, last


@kernel
def shortest_to_point(
    x: float, y: float, heading: float, to_x: float, to_y: float, radius: float
) -> tuple[float, float, float, float, float, float]:
    """The shortest path to a point, with any heading there, as a Dubins word.

    Outside of both turning circles an arc and its tangent; inside of one it is reached by an arc of
    the other circle and one of the first (X.-N. Bui et al., Shortest path synthesis for Dubins
    non-holonomic robot, ICRA 1994).
    """
    dx = to_x - x
    dy = to_y - y
    c = math.cos(heading)
    s = math.sin(heading)
    ahead = c * dx + s * dy
    left = c * dy - s * dx
    turn = 1.0 if left >= 0.0 else -1.0
    left *= turn  # mirrored so that the point lies to the left
    square = ahead * ahead + (left - radius) * (left - radius)
    if square >= radius * radius * (1.0 - 1e-12):
        straight = math.sqrt(max(square - radius * radius, 0.0))
        # the tangent from the circle about (0, radius): the heading at which it is left
        angle = math.atan2(left - radius, ahead) + math.atan2(radius, straight)
        angle %= 2.0 * math.pi
        if 2.0 * math.pi - angle < 1e-9:
            angle = 0.0
        return radius * angle, straight, 0.0, turn, 0.0, 0.0
    # Inside of the left circle: first to the right about (0, -radius), then to the left about a
    # centre 2 radii from there and one from the point. That centre lies to either side of the line
    # to the point.
    far = math.sqrt(ahead * ahead + (left + radius) * (left + radius))
    at = math.acos(
        min(max((5.0 * radius * radius - far * far) / (4.0 * radius * radius), -1.0), 1.0)
    )
    side = math.acos(
        min(max((3.0 * radius * radius + far * far) / (4.0 * radius * far), -1.0), 1.0)
    )
    to_point = 0.5 * math.pi - math.atan2(left + radius, ahead)
    first = (to_point - side) % (2.0 * math.pi)
    second = at
    other = (to_point + side) % (2.0 * math.pi)
    after = 2.0 * math.pi - at
    if other + after < first + second:
        first = other
        second = after
    return radius * first, radius * second, 0.0, -turn, turn, 0.0


def cost_to_go(
    weight: NDArray[np.float32], goal: tuple[int, int], start: tuple[int, int], spare: float
) -> NDArray[np.float32]:
    """(rows, columns) float32: least cost in cells from each cell's centre to the goal's, inf where
    no way leads.

    `goal`, `start`: row, column. Steps lead to the 8 neighbours and, as a knight moves, to the 8
    cells beyond, over free cells only; paths of them are at most 2.8 % longer than straight ones.
    It ends where all cells are known that cost `spare` cells more than the start; those beyond get
    what they cost at least.
    """
    rows, columns = weight.shape
    padded = np.pad(
        weight, 2
    )  # cells that nobody may enter on every side save the question where the grid ends
    wide = columns + 4
    best = np.full(padded.size, np.inf, np.float32)
    if weight[goal] > 0.0:
        ring = math.ceil(2.3 * float(weight.max())) + 2
        places = [(row + 2) * wide + column + 2 for row, column in (goal, start)]
        around = np.array([1, 1 + wide, wide, wide - 1, -1, -1 - wide, -wide, 1 - wide])
        reached = spread(padded.reshape(-1), best, ring, places[0], places[1], spare, around)
        if reached >= 0:
            np.minimum(best, np.float32(reached), out=best)
    return np.ascontiguousarray(best.reshape(rows + 4, wide)[2:-2, 2:-2])


@kernel
def spread(w: Any, best: Any, ring: int, goal: int, start: int, spare: float, around: Any) -> int:
    """Fills `best` with the least costs of `cost_to_go` over padded, flat weights; -1 where all
    cells are known, else the cost that all further ones have at least.

    Dijkstra with a ring of buckets as wide as the cheapest step, 1 (R. Dial, Algorithm 360, CACM 12
    (1969)): within a bucket the order does not matter then. `around`: steps to the eight neighbours
    in order; a knight's move leads beyond neighbours k and k + 1. Unsigned indices spare a test for
    negative ones.
    """
    room = 1024
    cells = np.empty(ring * room, np.uint32)
    filled = np.zeros(ring, np.int64)
    known = np.zeros(w.size, np.bool_)
    near = np.empty(
        10, np.float32
    )  # the ring of neighbours, with the last before the first and the first again
    best[goal] = 0.0
    cells[0] = goal
    filled[0] = 1
    waiting = 1
    bucket = 0
    slot = 0
    fullest = 1
    while waiting > 0:
        if bucket > best[start] + spare:
            return bucket
        taken = 0
        while taken < filled[slot]:
            cell = np.int64(cells[slot * room + taken])
            taken += 1
            if known[cell]:
                continue  # a cheaper path had brought it here before
            known[cell] = True
            if fullest + 16 > room:
                cells = with_more_room(cells, filled, room)
                room = 2 * room
            cost = best[cell]
            here = w[cell]
            for k in range(8):
                near[k + 1] = w[np.uint64(cell + around[k])]
            near[0], near[9] = near[8], near[1]
            for k in range(8):
                side = near[k + 1]
                next_side = near[k + 2]
                diagonal = k & 1
                if side == 0.0:
                    continue
                to = np.uint64(cell + around[k])
                if not diagonal or (near[k] != 0.0 and next_side != 0.0):
                    new = cost + (np.float32(0.70710678) if diagonal else np.float32(0.5)) * (
                        here + side
                    )
                    if new < best[to]:
                        best[to] = new
                        fullest = max(
                            fullest, put(cells, filled, room, (slot + int(new) - bucket) % ring, to)
                        )
                        waiting += 1
                if next_side == 0.0:
                    continue
                to = np.uint64(cell + around[k] + around[(k + 1) & 7])
                if w[to] != 0.0:
                    new = cost + np.float32(0.55901699) * (here + side + next_side + w[to])
                    if new < best[to]:
                        best[to] = new
                        fullest = max(
                            fullest, put(cells, filled, room, (slot + int(new) - bucket) % ring, to)
                        )
                        waiting += 1
        waiting -= filled[slot]
        filled[slot] = 0
        bucket += 1
        slot = (slot + 1) % ring
    return -1


@inlined_kernel
def put(cells: Any, filled: Any, room: int, slot: int, cell: Any) -> int:
    """A cell into a bucket of `room` places; returns how many it holds then."""
    cells[slot * room + filled[slot]] = cell
    filled[slot] += 1
    return int(filled[slot])


@inner_kernel
def with_more_room(cells: Any, filled: Any, room: int) -> Any:
    """The same buckets with twice the places."""
    more = np.empty(2 * cells.size, np.uint32)
    for slot in range(filled.size):
        for place in range(filled[slot]):
            more[slot * 2 * room + place] = cells[slot * room + place]
    return more
