"""Compiled broad phase: boxes around bodies over a step, and which of them overlap.

A hashed grid of several levels: on level k cells are as wide as the largest box / 2^k, and a box is
kept, by its middle, on the finest level whose cells are no smaller than the box. Two boxes that
overlap then lie in neighbouring cells of the coarser one's level, whatever their sizes are (C.
Ericson, "Real-Time Collision Detection", 2005, 7.2). Cells that follow each other along x lie in
buckets that follow each other, so that three are looked up at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.arguments import PlacedShapes, SweptMotion
from rfly_collision.shapes.shape_table import TOUCHING, ShapeTable
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import inner_kernel, kernel, pasted_kernel
from rfly_common.kernels.vectors import rotation_matrix

LEVELS = 16
"""2^15 between the largest and the smallest cells; what is smaller still is kept with those"""
COORDINATE_BITS = 20
"""of a cell's number along an axis; cells whose numbers differ above that may share a key, at the
cost of time only
"""


@kernel
def swept_boxes(table: ShapeTable, motion: SweptMotion, dt: float, placed: PlacedShapes) -> None:
    """Rotation matrices at the end of the step, and boxes around the whole step -> placed.

    A turning point leaves the straight line between its ends by at most angle²/8 of its distance
    from the origin.
    """
    shape_index, position, orientation, velocity, angular_velocity = motion
    rotation, low, high = placed
    for n in range(position.shape[0]):
        x = orientation[n, 0]
        y = orientation[n, 1]
        z = orientation[n, 2]
        w = orientation[n, 3]
        r00, r01, r02, r10, r11, r12, r20, r21, r22 = rotation_matrix(x, y, z, w)
        rotation[n, 0, 0] = r00
        rotation[n, 0, 1] = r01
        rotation[n, 0, 2] = r02
        rotation[n, 1, 0] = r10
        rotation[n, 1, 1] = r11
        rotation[n, 1, 2] = r12
        rotation[n, 2, 0] = r20
        rotation[n, 2, 1] = r21
        rotation[n, 2, 2] = r22
        shape = shape_index[n]
        if table.half[shape, 0] > 0.0:
            h0 = table.half[shape, 0]
            h1 = table.half[shape, 1]
            h2 = table.half[shape, 2]
            c0 = table.centre[shape, 0]
            c1 = table.centre[shape, 1]
            c2 = table.centre[shape, 2]
            for i in range(3):
                p = rotation[n, i, 0]
                q = rotation[n, i, 1]
                r = rotation[n, i, 2]
                middle = position[n, i] + p * c0 + q * c1 + r * c2
                reach = abs(p) * h0 + abs(q) * h1 + abs(r) * h2 + TOUCHING
                low[n, i] = middle - reach
                high[n, i] = middle + reach
        else:
            for i in range(3):
                p = rotation[n, i, 0]
                q = rotation[n, i, 1]
                r = rotation[n, i, 2]
                least = np.inf
                most = -np.inf
                for v in range(table.first[shape, 0], table.first[shape + 1, 0]):
                    at = (
                        p * table.vertices[v, 0]
                        + q * table.vertices[v, 1]
                        + r * table.vertices[v, 2]
                    )
                    least = min(least, at)
                    most = max(most, at)
                radius = table.radius[shape] + TOUCHING
                low[n, i] = position[n, i] + least - radius
                high[n, i] = position[n, i] + most + radius
        if dt > 0.0:
            wx = angular_velocity[n, 0]
            wy = angular_velocity[n, 1]
            wz = angular_velocity[n, 2]
            angle = dt * math.sqrt(wx * wx + wy * wy + wz * wz)
            # between any two attitudes of the step: no further than by a turn of the whole angle,
            # or right round
            around = table.reach[shape] * min(angle, 2.0)
            for i in range(3):
                back = dt * velocity[n, i]
                low[n, i] = low[n, i] - max(back, 0.0) - around
                high[n, i] = high[n, i] - min(back, 0.0) + around


BODY, LEVEL, COLUMN, ROW = range(4)
"""columns of `Buckets.number`"""


class Buckets(NamedTuple):
    """n boxes in the buckets of the hashed grid; their rank is their place in the order of the
    buckets.
    """

    largest: float
    """m: the widest side of all boxes; cells of level k are largest / 2^k wide"""
    used: Bools
    """(LEVELS,) which levels hold a box"""
    start: NDArray[np.int32]
    """(buckets + 1,) the rank at which a bucket begins; their number is a power of two"""
    box: Floats
    """(n, 6) m, by rank: the lower and the upper corner"""
    number: Ints
    """(n, 4) by rank: its body, its level, the number of its cell along x, `row_key` of its row"""


@kernel
def overlaps(
    low: Any, high: Any, static: Any, group: Any, ignored: Any, limits: Any, out: Any
) -> int:
    """Pairs a < b of overlapping boxes that count, as a·n + b in no order of use -> out; how many
    there are.

    `group`: bodies of one group >= 0 do not count, nor do two static ones, nor the sorted a·n + b
    in `ignored`. Where there are more than fit, `out` holds the first of them: the caller comes
    again with a longer one. `limits`: how many pairs are counted and how many neighbours looked at
    before it gives up, and says that it has found one pair more than the first.
    """
    n = low.shape[0]
    if n < 2:
        return 0
    largest, used, start, box, number = in_buckets(low, high)
    size = start.shape[0] - 1
    count = 0
    looked_at = 0
    for p in range(n):
        if count > limits[0] or looked_at > limits[1]:
            return int(limits[0]) + 1
        mine = (box[p, 0], box[p, 1], box[p, 2], box[p, 3], box[p, 4], box[p, 5])
        for at in range(number[p, LEVEL] + 1):
            if not used[at]:
                continue
            x = cell_of(mine[0], mine[3], at, largest)
            y = cell_of(mine[1], mine[4], at, largest)
            z = cell_of(mine[2], mine[5], at, largest)
            own = at == number[p, LEVEL]
            for dy in range(0 if own else -1, 2):
                for dz in range(0 if own and dy == 0 else -1, 2):
                    # of two on one level one looks at the other: from the row before, or from the
                    # place before
                    row = row_key(y + dy, z + dz, at)
                    here = own and dy == 0 and dz == 0
                    begin = (row_hash(row) + x - (0 if here else 1)) & (size - 1)
                    end = begin + (2 if here else 3)
                    for part in range(1 if end <= size else 2):
                        first = start[begin] if part == 0 else 0
                        last = start[min(end, size)] if part == 0 else start[end - size]
                        if here and part == 0:
                            first = p + 1
                        looked_at += last - first
                        for r in range(first, last):
                            if apart(mine, box, r):
                                continue
                            column = number[r, COLUMN]
                            if (
                                number[r, ROW] != row
                                or abs(column - x) > 1
                                or (here and column < x)
                            ):
                                continue  # of another row that has come to the same buckets
                            i = number[p, BODY]
                            j = number[r, BODY]
                            if (static[i] and static[j]) or (
                                group[i] == group[j] and group[i] >= 0
                            ):
                                continue
                            key = min(i, j) * n + max(i, j)
                            if is_among(ignored, key):
                                continue
                            if count < out.size:
                                out[count] = key
                            count += 1
    return count


@pasted_kernel
def is_among(keys: Any, key: int) -> bool:
    """Whether sorted `keys` hold it."""
    place = np.searchsorted(keys, key) if keys.size > 0 else 0
    return bool(place < keys.size and keys[place] == key)


@kernel
def in_buckets(low: Any, high: Any) -> Buckets:
    """Boxes (n, 3) sorted into buckets by counting."""
    n = low.shape[0]
    largest = 0.0
    for i in range(n):
        for k in range(3):
            largest = max(largest, high[i, k] - low[i, k])
    largest = max(largest * (1.0 + 1e-9), 1e-9)
    size = 1
    while size < 2 * n:
        size *= 2
    bucket = np.empty(n, np.int32)
    number_of = np.empty((n, 3), np.int64)  # by body: level, column, row
    start = np.zeros(size + 1, np.int32)
    used = np.zeros(LEVELS, np.bool_)
    for i in range(n):
        at = level_of(
            max(high[i, 0] - low[i, 0], high[i, 1] - low[i, 1], high[i, 2] - low[i, 2]) / largest
        )
        used[at] = True
        x = cell_of(low[i, 0], high[i, 0], at, largest)
        row = row_key(
            cell_of(low[i, 1], high[i, 1], at, largest),
            cell_of(low[i, 2], high[i, 2], at, largest),
            at,
        )
        number_of[i, 0] = at
        number_of[i, 1] = x
        number_of[i, 2] = row
        bucket[i] = (row_hash(row) + x) & (size - 1)
        start[bucket[i] + 1] += 1
    for k in range(size):
        start[k + 1] += start[k]
    # bodies bucket by bucket, and all that is asked of them beside each other
    place = start[:size].copy()
    box = np.empty((n, 6))
    number = np.empty((n, 4), np.int64)
    for i in range(n):
        p = place[bucket[i]]
        place[bucket[i]] += 1
        number[p, BODY] = i
        for k in range(3):
            box[p, k] = low[i, k]
            box[p, 3 + k] = high[i, k]
            number[p, 1 + k] = number_of[i, k]
    return Buckets(largest, used, start, box, number)


@pasted_kernel
def apart(mine: tuple[float, float, float, float, float, float], box: Any, r: int) -> bool:
    """Whether a box (lower corner, upper corner) does not overlap that of rank `r`."""
    return bool(
        mine[0] > box[r, 3]
        or box[r, 0] > mine[3]
        or mine[1] > box[r, 4]
        or box[r, 1] > mine[4]
        or mine[2] > box[r, 5]
        or box[r, 2] > mine[5]
    )


@inner_kernel
def level_of(share: float) -> int:
    """The finest level whose cells are no smaller than a box; `share`: its widest side / the
    largest of all.
    """
    level = 0
    width = 0.5
    while level < LEVELS - 1 and share <= width:
        level += 1
        width *= 0.5
    return level


@pasted_kernel
def cell_of(low: float, high: float, level: int, largest: float) -> int:
    """The number of the cell along an axis that holds the middle of a box."""
    return math.floor(0.5 * (low + high) * ((1 << level) / largest))


@pasted_kernel
def row_key(iy: int, iz: int, level: int) -> int:
    """A number for a row of cells along x."""
    limit = (1 << COORDINATE_BITS) - 1
    return (((iy & limit) << COORDINATE_BITS) | (iz & limit)) * LEVELS + level


@pasted_kernel
def row_hash(row: int) -> int:
    """Where the cells of a row begin."""
    return ((row * 0x2545F4914F6CDD1D) >> 24) & 0xFFFFFFFF
