"""The ground as layers on the cells of a traversability grid: elevation, slope, roughness,
traversability, normals.
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
_OF_THE_PLANE = frozenset(LAYERS) - {"elevation", "traversability"}
_CELLS_AT_ONCE = 512
"""on a side of the windows that planes are fitted in"""
_ON_BORDER = 1e-6
"""cells: a region that reaches so little into a cell does not take it"""


@dataclass(frozen=True, eq=False)
class GridLayers:
    """Layers of one size: row along y north, column along x east, row 0 in the south."""

    layers: dict[str, Layer]
    """(rows, columns) float32 by name; NaN where nothing is known"""
    resolution: float
    """m: side of a cell"""
    origin: tuple[float, float]
    """x east, y north (m) of the south-west corner of cell 0, 0"""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of each layer."""
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
    """Layers of the cells that a region touches, or None where it touches none.

    elevation (m, z up): the bilinear ground at a cell's centre. slope (rad), roughness (m) and
    normal_x, _y, _z: of the least-squares plane through the disc of `limits.half_wheelbase` around
    it, as `traversability` has it; NaN where the disc leaves the map. traversability: 1 − cost /
    100 of `costs`: 1 easy … 0.01, 0 forbidden, NaN unknown.

    `costs` are those of `terrain` for the `limits`, and say which cells there are. `region`: x_min,
    x_max, y_min, y_max (m, ENU); all of the map without one. More than `max_cells` become cells an
    odd number of times as large: traversability is then the worst of what a cell covers, the rest
    is what it is at its centre. Raises ConfigError for an unknown name, for no name, and for a
    region that is not finite.
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
    times = _times(window, max_cells)
    rows, columns = (_centres(cells, times) for cells in window)
    side = costs.resolution
    x = costs.origin[0] + (columns + 0.5) * side
    y = costs.origin[1] + (rows + 0.5) * side
    layers: dict[str, Layer] = {}
    if "elevation" in names:
        layers["elevation"] = terrain.altitude(x[None, :], y[:, None]).astype(np.float32)
    if "traversability" in names:
        layers["traversability"] = _traversability(costs, window, (len(rows), len(columns)), times)
    if _OF_THE_PLANE & set(names):
        layers |= _plane_layers(terrain, side, limits.half_wheelbase, rows, columns)
    half = 0.5 * side * times
    return GridLayers(
        {name: layers[name] for name in names},
        side * times,
        (float(x[0]) - half, float(y[0]) - half),
    )


def _window(
    costs: traversability.TraversabilityGrid, region: tuple[float, float, float, float] | None
) -> tuple[slice, slice] | None:
    """Rows and columns of the cells that a region touches."""
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
        window.append(
            slice(math.floor(max(first, 0.0)), math.floor(min(max(last, -1.0), count - 1.0)) + 1)
        )
    rows, columns = window
    return (rows, columns) if rows.start < rows.stop and columns.start < columns.stop else None


def _times(window: tuple[slice, slice], max_cells: int | None) -> int:
    """The least odd number by which cells must grow so that at most `max_cells` remain."""
    times = 1
    while max_cells is not None and math.prod(
        len(_centres(cells, times)) for cells in window
    ) > max(max_cells, 1):
        times += 2
    return times


def _centres(cells: slice, times: int) -> Indices:
    """The middle ones of each `times` cells; one at least."""
    return np.arange(min(cells.start + times // 2, cells.stop - 1), cells.stop, times)


def _traversability(
    costs: traversability.TraversabilityGrid,
    window: tuple[slice, slice],
    shape: tuple[int, int],
    times: int,
) -> Layer:
    cost = costs.cost[window]
    if times > 1:
        rows, columns = (
            max(count * times - there, 0) for count, there in zip(shape, cost.shape, strict=True)
        )
        whole = np.pad(cost, ((0, rows), (0, columns)), mode="edge")[
            : shape[0] * times, : shape[1] * times
        ]
        cost = traversability.worst_of_blocks(whole, times)
    return np.where(
        cost < 0,
        np.float32(np.nan),
        np.float32(1.0) - cost.astype(np.float32) / np.float32(traversability.LETHAL),
    )


def _plane_layers(
    terrain: HeightMap, side: float, half_wheelbase: float, rows: Indices, columns: Indices
) -> dict[str, Layer]:
    """Slope, roughness and normals of the cells whose rows and columns of the map's grid of `side`
    m these are.
    """
    grid, factor = traversability.cells_of_map(terrain, side)
    fine = grid.finer(factor)
    reach = traversability.disc_reach(half_wheelbase / fine.step_x)
    plane = np.full((3, len(rows), len(columns)), np.nan)
    if 2 * reach < min(fine.rows, fine.columns):  # else the disc leaves the map wherever it is
        disc = traversability.disc_of(half_wheelbase / fine.step_x)
        wanted_rows = rows * factor + factor // 2
        wanted_columns = columns * factor + factor // 2
        apart = int(
            max(np.diff(wanted_rows).max(initial=1), np.diff(wanted_columns).max(initial=1))
        )
        at_once = max(1, _CELLS_AT_ONCE // apart)
        tiles = [
            (r, c) for r in range(0, len(rows), at_once) for c in range(0, len(columns), at_once)
        ]

        def work(first: int, last: int) -> None:
            for r, c in tiles[first:last]:
                part = slice(r, r + at_once), slice(c, c + at_once)
                plane[(slice(None), *part)] = _planes(
                    terrain, fine, disc, wanted_rows[part[0]], wanted_columns[part[1]]
                )

        in_chunks(work, len(tiles), 1)
    rise_x, rise_y, roughness = plane
    rise = np.hypot(rise_x, rise_y)
    up = 1.0 / np.hypot(rise, 1.0)
    layers = {"slope": np.arctan(rise), "roughness": roughness}
    layers |= {"normal_x": -rise_x * up, "normal_y": -rise_y * up, "normal_z": up}
    return {name: values.astype(np.float32) for name, values in layers.items()}


def _planes(terrain: HeightMap, grid: Grid, disc: Bools, rows: Indices, columns: Indices) -> Floats:
    """(3, rows, columns) rise along x, along y, and roughness at some cells of a grid; NaN where
    the disc leaves.
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
