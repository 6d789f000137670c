# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Compiled broad phase: boxes around bodies over a step, and the pairs of boxes that overlap.

The boxes lie in a hashed grid of several levels. On level k cells are as wide as the largest box /
2^k. A box lies, by its middle, on the finest level whose cells are no smaller than the box. Two
boxes that overlap then lie in neighbouring cells of the coarser one's level, whatever their sizes
are (C. Ericson, "Real-Time Collision Detection", 2005, 7.2). Cells that follow each other along x
lie in buckets that follow each other, so that three are looked up at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_collision.narrow_phase.bodies import PlacedShapes, SweptMotion
from rfly_collision.shapes.shape import TOUCHING, ShapeTable
from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.jit import inlined_kernel, inner_kernel, kernel, pasted_kernel
from rfly_common.kernels.vectors import norm, rotation_matrix, set_matrix, vector_at

LEVELS = 16
"""Levels of the grid: the smallest cells are 2^15 times smaller than the largest, and hold all
smaller boxes.
"""

COORDINATE_BITS = 20
"""Bits of a cell's number along an axis.

Cells whose numbers differ above them may share a key, which costs time only.
"""


@kernel
def swept_boxes(table: ShapeTable, motion: SweptMotion, dt: float, placed: PlacedShapes) -> None:
    """Write rotation matrices at the end of the step, and boxes around the whole step -> placed.

    A turning point leaves the straight line between its ends by at most angle²/8 of its distance
    from the origin.
    """
    shape_index, position, orientation, velocity, angular_velocity = motion
    rotation, low, high = placed
    for n in range(position.shape[0]):
        # attitude at the end of the step
        x = orientation[n, 0]
        y = orientation[n, 1]
        z = orientation[n, 2]
        w = orientation[n, 3]
        set_matrix(rotation[n], rotation_matrix(x, y, z, w))

        # around the body at the end of the step: a box, or the points of another shape
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
                    along = (
                        p * table.vertices[v, 0]
                        + q * table.vertices[v, 1]
                        + r * table.vertices[v, 2]
                    )
                    least = min(least, along)
                    most = max(most, along)
                radius = table.radius[shape] + TOUCHING
                low[n, i] = position[n, i] + least - radius
                high[n, i] = position[n, i] + most + radius

        # around its motion in the step
        if dt > 0.0:
            angle = dt * norm(vector_at(angular_velocity, n, 0))
            # Two attitudes are no further apart than the angle turned, and never further than a
            # diameter.
            around = table.reach[shape] * min(angle, 2.0)
            for i in range(3):
                back = dt * velocity[n, i]
                low[n, i] = low[n, i] - max(back, 0.0) - around
                high[n, i] = high[n, i] - min(back, 0.0) + around


ROWS_AROUND = 9
"""Rows of cells, along x, that hold the neighbours of a cell: 3 along y times 3 along z."""

OWN_ROW = 4
"""Place among them of the cell's own row, the one in the middle."""

Box = tuple[float, float, float, float, float, float]
"""Lower corner and upper corner of a box, m."""

# columns of `Buckets.number`
BODY = 0
LEVEL = 1
COLUMN = 2
ROW = 3


class Buckets(NamedTuple):
    """Boxes in the buckets of the hashed grid; rank is the place in the order of buckets."""

    largest: float
    """Widest side of all boxes, m; cells of level k are largest / 2^k wide."""
    used: Bools
    """True for levels that hold a box, (LEVELS,)."""
    start: NDArray[np.int32]
    """Rank at which a bucket begins, (buckets + 1,); the number of buckets is a power of two."""
    box: Floats
    """Lower and upper corner by rank, (n, 6), m."""
    number: Ints
    """Body, level, number of the cell along x, and `row_key` of its row, by rank, (n, 4)."""


@kernel
def overlaps(
    low: Any, high: Any, static: Any, group: Any, ignored: Any, limits: Any, out: Any
) -> int:
    """Write the pairs a < b of overlapping boxes as a·n + b -> out; return their number.

    They come in no particular order. Two bodies of one `group` >= 0 do not count, nor two static
    ones, nor the sorted a·n + b in `ignored`. Where more pairs are found than fit, `out` holds the
    first ones, and the caller tries again with a longer array. `limits` are the largest numbers of
    pairs and of neighbours to look at. Beyond one of them the search ends and returns the first
    limit + 1.
    """
    n = low.shape[0]
    if n < 2:
        return 0

    largest, used, start, box, number = in_buckets(low, high)
    buckets = start.shape[0] - 1
    count = 0
    looked_at = 0
    for p in range(n):
        if count > limits[0] or looked_at > limits[1]:
            return int(limits[0]) + 1
        mine = (box[p, 0], box[p, 1], box[p, 2], box[p, 3], box[p, 4], box[p, 5])
        own_level = number[p, LEVEL]

        # rows of cells around the box, on its own level and on the coarser ones
        for level in range(own_level + 1):
            if not used[level]:
                continue
            x, y, z = cell_on_level(mine, level, largest)
            for neighbour in range(OWN_ROW if level == own_level else 0, ROWS_AROUND):
                row = row_key(y + neighbour // 3 - 1, z + neighbour % 3 - 1, level)
                own_row = level == own_level and neighbour == OWN_ROW
                first_x = x if own_row else x - 1
                begin = (row_hash(row) + first_x) & (buckets - 1)
                end = begin + x + 2 - first_x

                # ranks in these buckets, which may wrap around to the beginning of the array
                first = p + 1 if own_row else start[begin]
                last = start[min(end, buckets)]
                wrapped = start[end - buckets] if end > buckets else 0
                looked_at += last - first + wrapped
                for k in range(last - first + wrapped):
                    r = first + k if first + k < last else first + k - last
                    if apart(mine, box, r) or not is_in_cells(number, r, row, first_x, x + 1):
                        continue

                    # the pair
                    i = min(number[p, BODY], number[r, BODY])
                    j = max(number[p, BODY], number[r, BODY])
                    key = i * n + j
                    if are_filtered(static, group, i, j) or is_among(ignored, key):
                        continue
                    if count < out.size:
                        out[count] = key
                    count += 1
    return count


@inlined_kernel
def cell_on_level(box: Box, level: int, largest: float) -> tuple[int, int, int]:
    """Return the numbers of the cell of a level that holds the middle of a box."""
    x = cell_of(box[0], box[3], level, largest)
    y = cell_of(box[1], box[4], level, largest)
    z = cell_of(box[2], box[5], level, largest)
    return x, y, z


@pasted_kernel
def is_in_cells(number: Any, r: int, row: int, first_x: int, last_x: int) -> bool:
    """Return whether the box of rank r is in these cells of a row, not only in their buckets."""
    column = number[r, COLUMN]
    return bool(number[r, ROW] == row and first_x <= column and column <= last_x)


@pasted_kernel
def are_filtered(static: Any, group: Any, i: int, j: int) -> bool:
    """Return whether two bodies do not count: both static, or of one group >= 0."""
    both_static = static[i] and static[j]
    one_group = group[i] == group[j] and group[i] >= 0
    return bool(both_static or one_group)


@pasted_kernel
def is_among(keys: Any, key: int) -> bool:
    """Return whether the sorted `keys` contain the key."""
    place = np.searchsorted(keys, key) if keys.size > 0 else 0
    return bool(place < keys.size and keys[place] == key)


@kernel
def in_buckets(low: Any, high: Any) -> Buckets:
    """Return boxes (n, 3), sorted into buckets by counting."""
    n = low.shape[0]
    largest = 0.0
    for i in range(n):
        for k in range(3):
            largest = max(largest, high[i, k] - low[i, k])
    largest = max(largest * (1.0 + 1e-9), 1e-9)

    size = 1
    while size < 2 * n:
        size *= 2

    # the bucket of each box, and the number of boxes in each bucket
    bucket = np.empty(n, np.int32)
    number_of = np.empty((n, 3), np.int64)  # by body: level, column, row
    start = np.zeros(size + 1, np.int32)
    used = np.zeros(LEVELS, np.bool_)
    for i in range(n):
        widest = max(high[i, 0] - low[i, 0], high[i, 1] - low[i, 1], high[i, 2] - low[i, 2])
        level = level_of(widest / largest)
        used[level] = True
        x = cell_of(low[i, 0], high[i, 0], level, largest)
        y = cell_of(low[i, 1], high[i, 1], level, largest)
        z = cell_of(low[i, 2], high[i, 2], level, largest)
        row = row_key(y, z, level)
        number_of[i, 0] = level
        number_of[i, 1] = x
        number_of[i, 2] = row
        bucket[i] = (row_hash(row) + x) & (size - 1)
        start[bucket[i] + 1] += 1
    for k in range(size):
        start[k + 1] += start[k]

    # boxes bucket by bucket, all their numbers side by side
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
def apart(mine: Box, box: Any, r: int) -> bool:
    """Return whether a box does not overlap that of rank `r`."""
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
    """Return the finest level whose cells are no smaller than a box.

    `share` is its widest side, divided by the largest of all.
    """
    level = 0
    width = 0.5
    while level < LEVELS - 1 and share <= width:
        level += 1
        width *= 0.5
    return level


@pasted_kernel
def cell_of(low: float, high: float, level: int, largest: float) -> int:
    """Return the number, along an axis, of the cell that holds the middle of a box."""
    return math.floor(0.5 * (low + high) * ((1 << level) / largest))


@pasted_kernel
def row_key(iy: int, iz: int, level: int) -> int:
    """Return a number for a row of cells along x."""
    limit = (1 << COORDINATE_BITS) - 1
    return (((iy & limit) << COORDINATE_BITS) | (iz & limit)) * LEVELS + level


@pasted_kernel
def row_hash(row: int) -> int:
    """Return the place where the cells of a row begin."""
    return ((row * 0x2545F4914F6CDD1D) >> 24) & 0xFFFFFFFF
