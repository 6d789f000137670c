# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Neighbours of vehicles by a hashed grid of square cells, for `avoidance_kernels`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.kernels.jit import inner_kernel


class CellGrid(NamedTuple):
    """Points by the cells in which they are."""

    cell: float
    """Side of a cell, m."""
    first: Ints
    """Place of each bucket's first point in `order`; the last one is their number."""
    order: Ints
    """Points bucket by bucket, each with rising numbers."""


@inner_kernel
def bucket_of(column: int, row: int, buckets: int) -> int:
    """Return the bucket of a cell; `buckets` is a power of two."""
    return ((column * 73856093) ^ (row * 19349663)) & (buckets - 1)


@inner_kernel
def grid_of(points: Floats, cell: float) -> CellGrid:
    """Return a grid of n points, (n, 2 and more), m."""
    n = len(points)
    buckets = 1
    while buckets < 2 * n:
        buckets *= 2

    # counting sort, which keeps the order of numbers
    bucket = np.empty(n, np.int64)
    first = np.zeros(buckets + 1, np.int64)
    for i in range(n):
        column = math.floor(points[i, 0] / cell)
        row = math.floor(points[i, 1] / cell)
        bucket[i] = bucket_of(column, row, buckets)
        first[bucket[i] + 1] += 1
    for b in range(buckets):
        first[b + 1] += first[b]

    order = np.empty(n, np.int64)
    place = first.copy()
    for i in range(n):
        order[place[bucket[i]]] = i
        place[bucket[i]] += 1
    return CellGrid(cell, first, order)


@inner_kernel
def points_around(grid: CellGrid, points: Floats, x: float, y: float, out: Ints) -> int:
    """Write the points in the cell of a place and the eight around it -> out; return their number.

    These are all within the side of a cell, and some more.
    """
    buckets = len(grid.first) - 1
    column = math.floor(x / grid.cell)
    row = math.floor(y / grid.cell)
    count = 0
    for i in range(column - 1, column + 2):
        for j in range(row - 1, row + 2):
            bucket = bucket_of(i, j, buckets)
            for place in range(grid.first[bucket], grid.first[bucket + 1]):
                point = grid.order[place]
                # cells share buckets
                if (
                    math.floor(points[point, 0] / grid.cell) == i
                    and math.floor(points[point, 1] / grid.cell) == j
                ):
                    out[count] = point
                    count += 1
    return count
