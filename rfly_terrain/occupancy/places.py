# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Cells that a query names, by points, by a block, or all; and the rays of an observation.

Maps of free and occupied cells and of probabilities share them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats
from rfly_terrain.height_map.grid import snap
from rfly_terrain.occupancy.cell_grid import (
    SNAP,
    Block,
    block_at,
    block_size,
    check_frame,
    pair,
    points,
)
from rfly_terrain.occupancy.map_frames import MapFrames
from rfly_terrain.occupancy.scan import Scan, directions, pose_of, scan_of


class Places(NamedTuple):
    """Cells of a matrix, and where their values are in the answer to a query."""

    cells: Any
    """Index into the matrix."""
    within: Any
    """Index into the answer, of the same cells in the same order."""
    inside: Bools
    """True where the answer's places are on the map, in its shape."""

    def read(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the places, 0 off the map."""
        values = np.zeros(self.inside.shape, matrix.dtype)
        values[self.within] = matrix[self.cells]
        return values

    def write(self, matrix: NDArray[Any], values: NDArray[Any]) -> None:
        """Write the values of the places; those off the map are left out, later ones win."""
        matrix[self.cells] = values[self.within]


def places_of(
    frames: MapFrames, where: ArrayLike | None, size: ArrayLike | None, frame: str
) -> Places:
    """Return the cells at points (n, 2), of a block with a corner and a size, or all cells."""
    check_frame(frame)
    if where is None:
        if size is not None:
            raise ValueError("size: needs the block's corner before it")
        everything = (slice(None), slice(None))
        return Places(everything, everything, np.ones(frames.grid_size, bool))
    if size is not None:
        grid = frames._grid(frame)
        shape = block_size(grid, size, frame == "grid")
        corner = frames._corner(where, frame)
        return block_places(frames, block_at(grid, corner, *shape, frame == "grid"))
    ij, inside = frames._find(where, frame)
    return Places((ij[:, 0], ij[:, 1]), inside, inside)


def places_to_write(
    frames: MapFrames, where: ArrayLike, values: NDArray[Any], frame: str
) -> tuple[Places, NDArray[Any]]:
    """Return the cells for values and one value for each place.

    There may be one value, one per point, (n,) or (n, 1), or a matrix with one location, which is a
    block.
    """
    check_frame(frame)
    if values.ndim == 2 and np.shape(where) in ((2,), (1, 2)):
        rows, columns = values.shape
        corner = frames._corner(where, frame)
        block = block_at(frames._grid(frame), corner, rows, columns, frame == "grid")
        return block_places(frames, block), values

    places = places_of(frames, where, None, frame)
    count = places.inside.size
    if values.size == 1:
        values = np.full(count, values.reshape(-1)[0])
    elif values.shape not in ((count,), (count, 1)):
        raise ValueError(
            f"values: {values.shape} for {count} points, expected one or one per point"
        )
    return places, values.reshape(-1)


def block_places(frames: MapFrames, block: Block) -> Places:
    """Return the cells of a block."""
    in_grid, in_block = block.overlap(frames._grid("world"))
    inside = np.zeros((block.rows, block.columns), bool)
    inside[in_block] = True
    return Places(in_grid, in_block, inside)


def window_shift(frames: MapFrames, value: ArrayLike, move_type: str) -> Floats:
    """Return the shift, in whole cells (right, up), to a place or ("relative") by a distance, m."""
    if move_type not in ("absolute", "relative"):
        raise ValueError(f"move_type: {move_type!r}, expected 'absolute' or 'relative'")
    wanted = np.array(pair(value, "value")) * frames.resolution
    if move_type == "relative":
        return np.trunc(snap(wanted, SNAP))
    origin = _origin(frames)
    offset = origin - np.floor(origin)
    return np.rint(np.trunc(snap(wanted - offset, SNAP)) + offset - origin)


def shift_window(frames: MapFrames, shift: Floats) -> None:
    """Move the frames by whole cells (right, up)."""
    frames.local_origin_in_world = (_origin(frames) + shift) / frames.resolution


def _origin(frames: MapFrames) -> Floats:
    """Return the local origin, in cells."""
    return snap(frames.local_origin_in_world * frames.resolution, SNAP)


class ObservedRays(NamedTuple):
    """Rays of an observation, in cell coordinates."""

    start: Floats
    """Where they begin, (1, 2)."""
    ends: Floats
    """Where they end, (n, 2)."""
    is_hit: Bools
    """True where a ray ends at an obstacle, (n,)."""


def observed_rays(
    frames: MapFrames, start: ArrayLike, rays: Any, angles: Any, max_range: Any
) -> ObservedRays:
    """Return the rays of `insert_ray`'s arguments: endpoints, or ranges or a scan and a pose."""
    grid = frames._grid("world")
    if isinstance(rays, Scan) or angles is not None or max_range is not None:
        place, theta = pose_of(start)
        scan = scan_of(rays, angles, max_range)
        reach = float(rays_reach(frames, grid.cell_coordinates(place))[0]) / frames.resolution
        ends = place + np.minimum(scan.lengths, reach)[:, None] * directions(theta, scan.angles)
        is_hit = scan.is_hit & (scan.lengths <= reach)
    else:
        place = points([pair(start, "start")], "start")
        ends = points(rays, "endpoints")
        is_hit = np.ones(len(ends), bool)
    return ObservedRays(grid.cell_coordinates(place), grid.cell_coordinates(ends), is_hit)


def rays_reach(frames: MapFrames, start_uv: Floats) -> Floats:
    """Return the lengths, (n,) cells, beyond which rays are off the map, with some to spare."""
    rows, columns = frames.grid_size
    u, v = np.abs(start_uv).T
    return u + v + (columns + rows + 2.0)
