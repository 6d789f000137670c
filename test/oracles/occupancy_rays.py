# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Oracle of `rfly_terrain.occupancy.cell_ray_kernels`: rays over an occupancy grid.

The conventions are those that `ray_kernels.py` states. Touched cells are made for all slabs of all
segments at once; hits are looked for slab by slab, all segments together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_terrain.occupancy.cell_grid import SNAP
from rfly_terrain.occupancy.cell_ray_kernels import LEVEL

Array = NDArray[Any]

_SLABS_AT_ONCE = 500_000


class _Oriented:
    """Segments along their longer axis a: each attribute an (n,) array, see
    `ray_kernels._oriented`.
    """

    def __init__(self, segments: Array, rows: int, columns: int) -> None:
        u0, v0, u1, v1 = segments.T
        self.along_u = np.abs(u1 - u0) >= np.abs(v1 - v0)
        self.a0, self.b0 = np.where(self.along_u, u0, v0), np.where(self.along_u, v0, u0)
        self.a1, self.b1 = np.where(self.along_u, u1, v1), np.where(self.along_u, v1, u1)
        self.size_a = np.where(self.along_u, columns, rows)
        self.size_b = np.where(self.along_u, rows, columns)

        with np.errstate(invalid="ignore", divide="ignore"):
            self.slope = np.where(
                self.a1 != self.a0, (self.b1 - self.b0) / (self.a1 - self.a0), 0.0
            )
            inverse = np.where(
                self.b1 != self.b0, np.abs((self.a1 - self.a0) / (self.b1 - self.b0)), 0.0
            )
            self.inverse = np.where(inverse < LEVEL, inverse, 0.0)

        end_is_nearer = np.abs(self.a1) + np.abs(self.b1) < np.abs(self.a0) + np.abs(self.b0)
        self.base_a, self.base_b = np.where(end_is_nearer, (self.a1, self.b1), (self.a0, self.b0))
        low = np.minimum(self.a0, self.a1)
        high = np.maximum(self.a0, self.a1)
        first = np.ceil(np.clip(low - SNAP, 0.0, self.size_a + 2.0)).astype(np.int64) - 1
        last = np.floor(np.clip(high + SNAP, -2.0, self.size_a + 1.0)).astype(np.int64)
        self.first_slab, self.last_slab = np.maximum(first, 0), np.minimum(last, self.size_a - 1)

    def take(self, which: Array) -> _Oriented:
        taken = object.__new__(_Oriented)
        taken.__dict__ = {name: values[which] for name, values in self.__dict__.items()}
        return taken

    def cells(self, slab: Array) -> tuple[Array, Array]:
        """Return the first and last touched cell of one slab, at most one beyond the grid."""
        left = np.maximum(np.minimum(self.a0, self.a1), slab - SNAP)
        right = np.minimum(np.maximum(self.a0, self.a1), slab + 1.0 + SNAP)
        b_low = np.minimum(self.b0, self.b1)
        b_high = np.maximum(self.b0, self.b1)
        at_left = np.clip(self.base_b + (left - self.base_a) * self.slope, b_low, b_high)
        at_right = np.clip(self.base_b + (right - self.base_a) * self.slope, b_low, b_high)
        low = np.minimum(at_left, at_right)
        high = np.maximum(at_left, at_right)
        first = np.ceil(np.clip(low - SNAP, 0.0, self.size_b + 1.0)).astype(np.int64) - 1
        last = np.floor(np.clip(high + SNAP, -1.0, self.size_b)).astype(np.int64)
        return first, last

    def progress(self, slab: Array, cell: Array) -> Array:
        """Return the first touched place of each segment along a, in cells from the start."""
        forward = self.a1 >= self.a0
        enters = np.where(forward, slab - self.a0, self.a0 - (slab + 1.0))
        leaves = np.where(forward, slab + 1.0 - self.a0, self.a0 - slab)
        leaves = np.minimum(leaves, np.abs(self.a1 - self.a0))
        to_cell = np.where(
            self.b1 >= self.b0,
            cell - self.b0,
            self.b0 - (cell + 1.0),
        )
        return np.maximum(np.minimum(np.maximum(enters, to_cell * self.inverse), leaves), 0.0)


def _expand(first: Array, last: Array) -> tuple[Array, Array]:
    """Return all whole numbers first … last of n pairs in a row: (the pair's index, the number)."""
    counts = np.maximum(last - first + 1, 0)
    owner = np.repeat(np.arange(counts.size), counts)
    starts = np.cumsum(counts) - counts
    return owner, first[owner] + (np.arange(owner.size) - starts[owner])


def _touched(lines: _Oriented) -> tuple[Array, _Oriented, Array, Array]:
    """Return (segment, line, slab, cell) of every touched cell, by segments, slabs rising."""
    segment, slab = _expand(lines.first_slab, lines.last_slab)
    of_slab = lines.take(segment)
    first, last = of_slab.cells(slab)
    owner, cell = _expand(np.maximum(first, 0), np.minimum(last, of_slab.size_b - 1))
    return segment[owner], of_slab.take(owner), slab[owner], cell


def _batches(segments: Array, rows: int, columns: int) -> Any:
    """Yield (start, stop) of runs of segments.

    Each run has a bounded number of slabs, so that temporaries stay small.
    """
    at_once = max(_SLABS_AT_ONCE // (max(rows, columns) + 1), 1)
    for start in range(0, len(segments), at_once):
        yield start, min(start + at_once, len(segments))


def count_touched(segments: Array, rows: int, columns: int, counts: Array, plain: Array) -> None:
    """Write the number of cells of the grid that each segment touches -> counts (n,) int64.

    `plain` serves the kernels only.
    """
    for start, stop in _batches(segments, rows, columns):
        segment, _, _, _ = _touched(_Oriented(segments[start:stop], rows, columns))
        counts[start:stop] = np.bincount(segment, minlength=stop - start)


def fill_touched(
    segments: Array,
    rows: int,
    columns: int,
    offsets: Array,
    plain: Array,
    cells: Array,
    is_end: Array,
) -> None:
    """Write the touched cells in the order in which each segment first meets them.

    -> cells (k, 2) int32 row, column; is_end (k,).
    """
    for start, stop in _batches(segments, rows, columns):
        segment, line, slab, cell = _touched(_Oriented(segments[start:stop], rows, columns))
        row, column = _matrix_index(line.along_u, slab, cell, rows)

        # cells met together share a number
        progress = line.progress(slab, cell)
        by_progress = np.lexsort((progress, segment))
        steps = np.diff(progress[by_progress], prepend=0.0) > SNAP
        tie = np.empty(segment.size, np.int64)
        tie[by_progress] = np.cumsum(steps)
        order = np.lexsort((column, row, tie, segment))
        row = row[order]
        column = column[order]
        (end_u, end_v) = segments[start + segment[order], 2:].T
        made = slice(offsets[start], offsets[stop])
        cells[made, 0] = row
        cells[made, 1] = column
        above = rows - 1 - row
        is_end[made] = (
            (column <= end_u) & (end_u <= column + 1) & (above <= end_v) & (end_v <= above + 1)
        )


def free_touched(segments: Array, occupied: Array) -> None:
    """Sets every touched cell of occupied (rows, columns) bool to False."""
    rows, columns = occupied.shape
    for start, stop in _batches(segments, rows, columns):
        _, line, slab, cell = _touched(_Oriented(segments[start:stop], rows, columns))
        occupied[_matrix_index(line.along_u, slab, cell, rows)] = False


def _matrix_index(along_u: Array, slab: Array, cell: Array, rows: int) -> tuple[Array, Array]:
    return np.where(along_u, rows - 1 - cell, rows - 1 - slab), np.where(along_u, slab, cell)


def first_hits(segments: Array, clearance: Array, distances: Array, hits: Array) -> None:
    """Write where each segment first meets a cell with clearance 0.

    -> hits (n, 2) u, v, and distances (n,), both in cells.
    """
    rows, columns = clearance.shape
    distances[:] = np.inf
    hits[:] = np.nan
    line = _Oriented(segments, rows, columns)
    slab = np.where(line.a1 >= line.a0, line.first_slab, line.last_slab)
    which = np.flatnonzero(line.last_slab >= line.first_slab)
    line = line.take(which)
    slab = slab[which]
    while which.size:
        forward = line.a1 >= line.a0
        middle = line.base_b + (slab + 0.5 - line.base_a) * line.slope
        on_grid = (middle >= 0.0) & (middle < line.size_b)
        row, column = _matrix_index(
            line.along_u, slab, np.where(on_grid, middle, 0.0).astype(np.int64), rows
        )
        # the touched cells of slab + k lie at most k + 1 cells from the one in the middle of this
        # slab
        leap = np.where(on_grid, clearance[row, column].astype(np.int64) - 1, 0)
        ended = np.zeros(which.size, bool)
        near = np.flatnonzero(leap <= 0)
        if near.size:
            leap[near] = 1
            ended[near] = _look_at_slab(
                line.take(near), slab[near], which[near], clearance, distances, hits
            )
        slab = slab + np.where(forward, leap, -leap)
        goes_on = ~ended & np.where(forward, slab <= line.last_slab, slab >= line.first_slab)
        which = which[goes_on]
        slab = slab[goes_on]
        line = line.take(goes_on)


def _look_at_slab(
    line: _Oriented, slab: Array, which: Array, clearance: Array, distances: Array, hits: Array
) -> Array:
    """Store what each segment hits in one slab.

    Return True for those that hit something or have left the grid.
    """
    first, last = line.cells(slab)
    nearest = np.full(which.size, np.inf)
    nearest_cell = np.zeros(which.size, np.int64)

    for offset in range(4):  # a slope of 1 at most touches no more cells of one slab
        cell = first + offset
        on_grid = (cell >= 0) & (cell <= np.minimum(last, line.size_b - 1))
        row, column = _matrix_index(line.along_u, slab, np.where(on_grid, cell, 0), len(clearance))
        blocked = on_grid & (clearance[row, column] == 0)
        progress = np.where(blocked, line.progress(slab, cell), np.inf)
        nearest_cell = np.where(progress < nearest, cell, nearest_cell)
        nearest = np.minimum(progress, nearest)

    hit = nearest < np.inf
    if hit.any():
        _store_hits(
            line.take(hit), slab[hit], nearest[hit], nearest_cell[hit], which[hit], distances, hits
        )

    rises = (line.slope > 0.0) == (line.a1 >= line.a0)

    return hit | np.where(rises, first >= line.size_b, last < 0)


def _store_hits(
    line: _Oriented,
    slab: Array,
    progress: Array,
    cell: Array,
    which: Array,
    distances: Array,
    hits: Array,
) -> None:
    a = np.clip(
        np.where(line.a1 >= line.a0, line.a0 + progress, line.a0 - progress), slab, slab + 1.0
    )
    b = np.clip(line.b0 + (a - line.a0) * line.slope, cell, cell + 1.0)
    a, b = np.where(progress == 0.0, (line.a0, line.b0), (a, b))
    distances[which] = progress * np.sqrt(1.0 + line.slope * line.slope)
    hits[which] = np.where(line.along_u, (a, b), (b, a)).T
