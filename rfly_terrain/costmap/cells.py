"""Square cells over a map, south-west first: heights, inflation, blocks of cells."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.height_map.grid import Grid, snap
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.cells import near_cells


def cell_heights(terrain: HeightMap, grid: Grid, rows: slice, columns: slice) -> tuple[Floats, Bools, Bools]:
    """(heights of rows x columns, bilinear; which rows lie on the map, which columns do).

    The slices may reach beyond the grid; off the map a height is that of the map's edge.
    """
    x, y = grid.centres(np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop))
    r, to_next_r, on_x = _between(x, terrain.origin_x, terrain.step_x, terrain.rows)
    c, to_next_c, on_y = _between(y, terrain.origin_y, terrain.step_y, terrain.columns)
    first_r, first_c = int(r.min()), int(c.min())
    part = terrain.heights[first_r : int(r.max()) + 2, first_c : int(c.max()) + 2].T.astype(np.float64)
    r, c = r - first_r, c - first_c
    along_y = part[c]
    if to_next_c.any():
        along_y = along_y * (1.0 - to_next_c[:, None]) + part[np.minimum(c + 1, len(part) - 1)] * to_next_c[:, None]
    heights = along_y[:, r]
    if to_next_r.any():
        beyond = along_y[:, np.minimum(r + 1, part.shape[1] - 1)]
        heights = heights * (1.0 - to_next_r) + beyond * to_next_r
    return np.ascontiguousarray(heights), on_y, on_x


def _between(place: Floats, origin: float, step: float, count: int) -> tuple[Ints, Floats, Bools]:
    """(sample before each place, fraction of the way to the next one, which places lie on the map)."""
    u = snap((place - origin) / step)
    on_map = (u >= 0) & (u <= count - 1)
    u = np.clip(u, 0, count - 1)
    before = np.floor(u).astype(np.int64)
    return before, u - before, on_map


def grown(cells: Bools, radius: float) -> Bools | None:
    """Cells whose centre is at most `radius` (in cells) away from that of a set one; None where nothing changes."""
    square = int(np.floor(radius * radius + 1e-6))  # squares of distances are whole numbers
    if square < 1 or not cells.any():
        return None
    return near_cells(cells, math.sqrt(square + 0.5))


def worst_of_blocks(cost: NDArray[np.int8], factor: int) -> NDArray[np.int8]:
    """The largest cost of factor x factor cells; −1 where one of them is unknown and none is 100."""
    rows, columns = (n // factor for n in cost.shape)
    blocks = cost.reshape(rows, factor, columns, factor)
    worst, least = blocks.max(axis=(1, 3)), blocks.min(axis=(1, 3))
    return np.where((least < 0) & (worst < 100), np.int8(-1), worst)
