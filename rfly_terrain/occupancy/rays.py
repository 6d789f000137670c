# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rays over a grid of cells, in cell coordinates: traversed cells, first occupied hit.

Arrays of rays go to compiled kernels on all cores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.kernels.parallel import in_chunks

_RAYS_IN_CHUNK = 256
"""Rays that a thread takes at once."""

_LARGEST_CLEARANCE = 255
"""Largest number of a uint8."""


def segments_between(start_uv: Floats, end_uv: Floats) -> Floats:
    """Return (n, 4) u0, v0, u1, v1 of starts and ends that broadcast to (n, 2)."""
    starts, ends = np.broadcast_arrays(start_uv, end_uv)
    return np.ascontiguousarray(np.hstack((starts, ends)), np.float64)


def segments_along(start_uv: Floats, lengths: Floats, ways: Floats) -> Floats:
    """Return segments (m · n, 4) of starts (m, 2), lengths (m,) and unit vectors (m, n, 2)."""
    segments = np.empty((*ways.shape[:2], 4))
    segments[..., :2] = start_uv[:, None]
    np.multiply(ways, lengths[:, None, None], out=segments[..., 2:])
    segments[..., 2:] += start_uv[:, None]
    return segments.reshape(-1, 4)


def touched_cells(
    segments: Floats, rows: int, columns: int
) -> tuple[NDArray[np.int32], Ints, Bools]:
    """Return the cells whose closed square meets a segment, corners and edges included.

    They are (k, 2) row, column; (n + 1,) offsets; (k,) whether the segment ends in the cell, its
    border included. The cells of segment n lie from offsets[n] to offsets[n + 1], in the order in
    which it first meets them.
    """
    from rfly_terrain.occupancy import cell_ray_kernels as ray_kernels

    offsets = np.zeros(len(segments) + 1, np.int64)
    plain = np.zeros(len(segments), bool)

    def count(start: int, stop: int) -> None:
        ray_kernels.count_touched(
            segments[start:stop], rows, columns, offsets[start + 1 : stop + 1], plain[start:stop]
        )

    in_chunks(count, len(segments), _RAYS_IN_CHUNK)
    np.cumsum(offsets, out=offsets)

    # zeros, as memory that is not written to costs nothing, and few cells are ends
    cells = np.empty((int(offsets[-1]), 2), np.int32)
    is_end = np.zeros(int(offsets[-1]), bool)

    def fill(start: int, stop: int) -> None:
        part = slice(start, stop)
        ray_kernels.fill_touched(
            segments[part], rows, columns, offsets[start : stop + 1], plain[part], cells, is_end
        )

    in_chunks(fill, len(segments), _RAYS_IN_CHUNK)
    return cells, offsets, is_end


def free_touched(segments: Floats, occupied: Bools) -> None:
    """Set every cell that a segment touches to False, in place."""
    from rfly_terrain.occupancy import cell_ray_kernels as ray_kernels

    # chunks may write the same cell at once: all write the same value
    in_chunks(
        lambda start, stop: ray_kernels.free_touched(segments[start:stop], occupied),
        len(segments),
        _RAYS_IN_CHUNK,
    )


def first_hits(segments: Floats, clearance: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Return distances (n,), cells, inf for a miss, and hits (n, 2), u, v, NaN for a miss.

    A hit is the first point on a closed occupied cell.
    """
    from rfly_terrain.occupancy import cell_ray_kernels as ray_kernels

    distances = np.empty(len(segments))
    hits = np.empty((len(segments), 2))

    def work(start: int, stop: int) -> None:
        ray_kernels.first_hits(
            segments[start:stop], clearance, distances[start:stop], hits[start:stop]
        )

    in_chunks(work, len(segments), _RAYS_IN_CHUNK)
    return distances, hits


def end_cells(end_uv: Floats, rows: int, columns: int) -> Any:
    """Return the cells whose closed square holds an end: (k,) which end, (k,) row, (k,) column.

    Each end has one, two or four.
    """
    u, v = end_uv.T
    inside = np.flatnonzero((u >= 0) & (u <= columns) & (v >= 0) & (v <= rows))
    u = u[inside]
    v = v[inside]

    # both cells of an end on an edge, along each axis
    columns_at = np.stack((np.ceil(u) - 1, np.floor(u)), axis=1).astype(np.int64)
    above_at = np.stack((np.ceil(v) - 1, np.floor(v)), axis=1).astype(np.int64)

    which = np.repeat(inside, 4)
    column = np.repeat(columns_at, 2, axis=1).ravel()
    above = np.tile(above_at, 2).ravel()
    on_grid = (column >= 0) & (column < columns) & (above >= 0) & (above < rows)
    return which[on_grid], rows - 1 - above[on_grid], column[on_grid]


def clearance_of(occupied: Bools) -> NDArray[np.uint8]:
    """Return each cell's distance to the nearest occupied one.

    It counts rows or columns, whichever are more.
    """
    import cv2

    if not occupied.any():
        return np.full(occupied.shape, _LARGEST_CLEARANCE, np.uint8)
    free = np.logical_not(occupied).view(np.uint8)
    distance = cv2.distanceTransform(free, cv2.DIST_C, 3)
    return np.minimum(distance, _LARGEST_CLEARANCE, out=distance).astype(np.uint8)


def occupancy_as_clearance(occupied: Bools) -> NDArray[np.uint8]:
    """Return a clearance that allows no leaps: 0 where occupied, 1 where free; quick to make."""
    return np.logical_not(occupied).view(np.uint8)
