# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layers of the ground on the cells of a traversability grid.

They are elevation, slope, roughness, traversability and normals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.errors import ConfigError
from rfly_common.kernels.parallel import in_chunks
from rfly_terrain.costmap import traversability
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.height_map.height_map import HeightMap

Layer = NDArray[np.float32]
Indices = Ints

LAYERS = ("elevation", "slope", "roughness", "traversability", "normal_x", "normal_y", "normal_z")
"""Layers that `ground_layers` can make."""
_OF_THE_PLANE = frozenset(LAYERS) - {"elevation", "traversability"}
"""Layers of the least-squares plane around a cell."""
_CELLS_AT_ONCE = 512
"""Side of the windows in which planes are fitted, cells."""
_ON_BORDER = 1e-6
"""Overlap below which a region does not include a cell, cells."""


@dataclass(frozen=True, eq=False)
class GridLayers:
    """Layers of one size: row along y north, column along x east, row 0 in the south."""

    layers: dict[str, Layer]
    """Layers by name, (rows, columns), float32; NaN where unknown."""
    resolution: float
    """Side of a cell, m."""
    origin: tuple[float, float]
    """South-west corner of cell 0, 0, x east, y north, m."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns of each layer."""
        rows, columns = next(iter(self.layers.values())).shape
        return rows, columns


def ground_layers(
    terrain: HeightMap,
    costs: traversability.TraversabilityGrid,
    limits: traversability.TraversabilityLimits | None = None,
    *,
    region: tuple[float, float, float, float] | None = None,
    names: Sequence[str] = LAYERS,
    max_cells: int | None = None,
) -> GridLayers | None:
    """Return the layers of the cells that a region touches, or None if it touches none.

    elevation (m, z up): the bilinear ground at a cell's centre. slope (rad), roughness (m) and
    normal_x, _y, _z: of the least-squares plane through the disc of `limits.half_wheelbase` around
    it, as in `traversability`; NaN where the disc leaves the map. traversability: 1 − cost / 100 of
    `costs`: 1 easy … 0.01, 0 forbidden, NaN unknown.

    `costs` are those of `terrain` for the `limits`; their cells are those of the layers. `region`:
    x_min, x_max, y_min, y_max (m, ENU); None: all of the map. If there are more than `max_cells`
    cells, larger ones replace them, an odd number of cells to a side. Their traversability is the
    worst of the cells that they cover, the other layers hold the values at their centres.

    Raises ConfigError for an unknown name, for no name, and for a region that is not finite.
    """
    unknown = [name for name in names if name not in LAYERS]
    if unknown or not names:
        raise ConfigError(
            f"layers: {', '.join(unknown) or 'none'}, expected some of {', '.join(LAYERS)}"
        )
    limits = limits or traversability.TraversabilityLimits()

    window = _window(costs, region)
    if window is None:
        return None
    factor = _growth(window, max_cells)

    rows, columns = (_centres(cells, factor) for cells in window)
    side = costs.resolution
    x = costs.origin[0] + (columns + 0.5) * side
    y = costs.origin[1] + (rows + 0.5) * side

    layers: dict[str, Layer] = {}
    if "elevation" in names:
        layers["elevation"] = terrain.altitude(x[None, :], y[:, None]).astype(np.float32)
    if "traversability" in names:
        layers["traversability"] = _traversability(costs, window, (len(rows), len(columns)), factor)
    if _OF_THE_PLANE & set(names):
        layers |= _plane_layers(terrain, side, limits.half_wheelbase, rows, columns)

    half = 0.5 * side * factor
    return GridLayers(
        {name: layers[name] for name in names},
        side * factor,
        (float(x[0]) - half, float(y[0]) - half),
    )


def _window(
    costs: traversability.TraversabilityGrid, region: tuple[float, float, float, float] | None
) -> tuple[slice, slice] | None:
    """Return rows and columns of the cells that a region touches; None if there are none."""
    if region is None:
        return slice(0, costs.cost.shape[0]), slice(0, costs.cost.shape[1])
    if not np.isfinite(region).all():
        raise ConfigError(f"region: {list(region)}, expected finite x_min, x_max, y_min, y_max (m)")

    window = []
    for low, high, corner, count in (
        (*region[2:], costs.origin[1], costs.cost.shape[0]),
        (*region[:2], costs.origin[0], costs.cost.shape[1]),
    ):
        first = (low - corner) / costs.resolution + _ON_BORDER
        last = (high - corner) / costs.resolution - _ON_BORDER
        first_cell = math.floor(max(first, 0.0))
        last_cell = math.floor(min(max(last, -1.0), count - 1.0))
        window.append(slice(first_cell, last_cell + 1))
    rows, columns = window
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return None
    return rows, columns


def _growth(window: tuple[slice, slice], max_cells: int | None) -> int:
    """Return the smallest odd factor to enlarge cells with so that at most `max_cells` remain."""
    if max_cells is None:
        return 1
    factor = 1
    while math.prod(len(_centres(cells, factor)) for cells in window) > max(max_cells, 1):
        factor += 2
    return factor


def _centres(cells: slice, factor: int) -> Indices:
    """Return the middle ones of each `factor` cells; at least one."""
    return np.arange(min(cells.start + factor // 2, cells.stop - 1), cells.stop, factor)


def _traversability(
    costs: traversability.TraversabilityGrid,
    window: tuple[slice, slice],
    shape: tuple[int, int],
    factor: int,
) -> Layer:
    """Return 1 − cost / 100 of a window; of each `factor` x `factor` cells the worst one."""
    cost = costs.cost[window]
    if factor > 1:
        # whole blocks: the edge repeated, or cut off
        size = shape[0] * factor, shape[1] * factor
        missing = [(0, max(n - m, 0)) for n, m in zip(size, cost.shape, strict=True)]
        whole = np.pad(cost, missing, mode="edge")[: size[0], : size[1]]
        cost = traversability.worst_of_blocks(whole, factor)
    share = cost.astype(np.float32) / np.float32(traversability.LETHAL)
    return np.where(cost < 0, np.float32(np.nan), np.float32(1.0) - share)


def _plane_layers(
    terrain: HeightMap, side: float, half_wheelbase: float, rows: Indices, columns: Indices
) -> dict[str, Layer]:
    """Return slope, roughness and normals of cells of the map's grid.

    The cells are `side` m wide, by rows and columns.
    """
    grid, factor = traversability.cells_of_map(terrain, side)
    fine = grid.finer(factor)
    reach = traversability.disc_reach(half_wheelbase / fine.step_x)
    plane = np.full((3, len(rows), len(columns)), np.nan)
    if 2 * reach < min(fine.rows, fine.columns):  # else the disc leaves the map wherever it is
        disc = traversability.disc_of(half_wheelbase / fine.step_x)
        fine_rows = rows * factor + factor // 2
        fine_columns = columns * factor + factor // 2
        row_spacing = int(np.diff(fine_rows).max(initial=1))
        column_spacing = int(np.diff(fine_columns).max(initial=1))
        at_once = max(1, _CELLS_AT_ONCE // max(row_spacing, column_spacing))
        tiles = [
            (r, c) for r in range(0, len(rows), at_once) for c in range(0, len(columns), at_once)
        ]

        def work(first: int, last: int) -> None:
            """Fit the planes of some tiles."""
            for r, c in tiles[first:last]:
                part = slice(r, r + at_once), slice(c, c + at_once)
                plane[(slice(None), *part)] = _planes(
                    terrain, fine, disc, fine_rows[part[0]], fine_columns[part[1]]
                )

        in_chunks(work, len(tiles), 1)

    # the plane's normal
    rise_x, rise_y, roughness = plane
    rise = np.hypot(rise_x, rise_y)
    up = 1.0 / np.hypot(rise, 1.0)
    layers = {"slope": np.arctan(rise), "roughness": roughness}
    layers |= {"normal_x": -rise_x * up, "normal_y": -rise_y * up, "normal_z": up}
    return {name: values.astype(np.float32) for name, values in layers.items()}


def _planes(terrain: HeightMap, grid: Grid, disc: Bools, rows: Indices, columns: Indices) -> Floats:
    """Return rise along x, rise along y, and roughness at some cells of a grid.

    Shape (3, rows, columns); NaN where the disc leaves the map.
    """
    reach = disc.shape[0] // 2
    first_row = int(rows[0]) - reach
    first_column = int(columns[0]) - reach
    heights, known_rows, known_columns = traversability.cell_heights(
        terrain,
        grid,
        slice(first_row, int(rows[-1]) + reach + 1),
        slice(first_column, int(columns[-1]) + reach + 1),
    )

    plane = np.stack(traversability.ground_plane(heights, disc, grid.step_x))
    result: Floats = plane[:, (rows - first_row)[:, None], (columns - first_column)[None, :]]

    result[:, traversability.leaves_map(known_rows, reach)[rows - rows[0]]] = np.nan
    result[:, :, traversability.leaves_map(known_columns, reach)[columns - columns[0]]] = np.nan
    return result
