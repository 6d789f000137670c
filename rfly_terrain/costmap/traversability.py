# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Traversability costs from slope, roughness, steps, water and objects, on square cells.

The disc of a cell is the cells within half a wheelbase of its centre. Slope is the tilt of the
least-squares plane through the disc, roughness the RMS of the heights about that plane, step the
largest difference in height of two cells of the disc that share an edge. The plane and its
residuals follow from five sums over the disc, which OpenCV's filters compute for all cells at once.
They run on tiles from which mean and mean slope have been subtracted: squares of heights of
thousands of metres would lose the millimetres.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_common.config.checks import finite_number
from rfly_common.errors import ConfigError
from rfly_common.files import MAX_CELLS
from rfly_common.kernels.parallel import in_chunks
from rfly_terrain.height_map.grid import Grid, snap
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.occupancy.cells import near_cells
from rfly_terrain.world.solids import Solids

if TYPE_CHECKING:
    from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap

# costs: 0 easy … WORST_FREE hard, and two more
UNKNOWN = -1
LETHAL = 100
WORST_FREE = 99

LEAST_MAX_STEP = 0.3
"""Default limit of steps on gentle limits of slope, m."""
LEAST_MAX_ROUGHNESS = 0.2
"""Default limit of roughness on gentle limits of slope, m."""
_ROUGHNESS_OF_RISE = 0.1
"""Default limit of roughness over the rise of the steepest slope."""
_TILE = 512
"""Side of a tile, cells: small enough for the caches, and for a mean that removes most of the size
of the heights.
"""


def cell_heights(
    terrain: HeightMap, grid: Grid, rows: slice, columns: slice
) -> tuple[Floats, Bools, Bools]:
    """Return bilinear heights of rows x columns, and which rows and which columns are on the map.

    The slices may reach beyond the grid. Off the map a height is that of the map's edge.
    """
    x, y = grid.centres(np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop))
    r, to_next_r, on_x = _between(x, terrain.origin_x, terrain.step_x, terrain.rows)
    c, to_next_c, on_y = _between(y, terrain.origin_y, terrain.step_y, terrain.columns)
    # the samples around these cells
    first_r = int(r.min())
    first_c = int(c.min())
    end_r = int(r.max()) + 2
    end_c = int(c.max()) + 2
    part = terrain.heights[first_r:end_r, first_c:end_c].T.astype(np.float64)
    r = r - first_r
    c = c - first_c

    # along y, then along x
    along_y = part[c]
    if to_next_c.any():
        next_c = part[np.minimum(c + 1, len(part) - 1)]
        along_y = along_y * (1.0 - to_next_c[:, None]) + next_c * to_next_c[:, None]
    heights = along_y[:, r]
    if to_next_r.any():
        next_r = along_y[:, np.minimum(r + 1, part.shape[1] - 1)]
        heights = heights * (1.0 - to_next_r) + next_r * to_next_r

    return np.ascontiguousarray(heights), on_y, on_x


def _between(places: Floats, origin: float, step: float, count: int) -> tuple[Ints, Floats, Bools]:
    """Return where places along an axis lie between the samples.

    They are the sample before each place, the fraction of the way to the next one, and whether the
    place is on the map.
    """
    u = snap((places - origin) / step)
    on_map = (u >= 0) & (u <= count - 1)
    u = np.clip(u, 0, count - 1)
    sample = np.floor(u).astype(np.int64)
    return sample, u - sample, on_map


def grown(cells: Bools, radius: float) -> Bools | None:
    """Return the cells whose centre is at most `radius` (in cells) from that of a set one.

    Returns None if nothing changes.
    """
    square = int(np.floor(radius * radius + 1e-6))  # squares of distances are whole numbers
    if square < 1 or not cells.any():
        return None
    return near_cells(cells, math.sqrt(square + 0.5))


def worst_of_blocks(cost: NDArray[np.int8], factor: int) -> NDArray[np.int8]:
    """Return the largest cost of factor x factor cells.

    It is −1 if one of them is unknown and none is 100.
    """
    rows, columns = (n // factor for n in cost.shape)
    blocks = cost.reshape(rows, factor, columns, factor)
    worst = blocks.max(axis=(1, 3))
    least = blocks.min(axis=(1, 3))
    return np.where((least < 0) & (worst < 100), np.int8(-1), worst)


@dataclass(frozen=True)
class TraversabilityLimits:
    """Limits of a vehicle; infinity is no limit.

    Raises ConfigError (a ValueError) with the field and its range.
    """

    max_slope_deg: float = 25.0
    """Slope, degrees, above 0, at most 90."""
    max_roughness: float | None = None
    """Roughness, m; None: 0.2, or a tenth of the rise of the steepest slope over the disc's radius,
    whichever is larger.
    """
    max_step: float | None = None
    """Step, m; None: 0.3, or the rise of the steepest slope from one cell to the next, whichever is
    larger.

    On cells of some metres a step cannot be distinguished from a slope: 0.3 m would forbid slopes
    of 1° on cells of 20 m.
    """
    water_level: float | None = None
    """Altitude, m, z up, below which ground is under water; None: no water."""
    vehicle_radius: float = 1.0
    """Distance, m, between the centres of a cell that can be entered and a forbidden one."""
    half_wheelbase: float = 0.7
    """Radius of the disc, m; the disc is at least one cell wide."""

    def __post_init__(self) -> None:
        limits = {
            "max_slope_deg": self.max_slope_deg,
            "max_roughness": self.max_roughness,
            "max_step": self.max_step,
        }
        for name, value in limits.items():
            if value is not None and not value > 0:
                raise ConfigError(f"{name}: {value}, expected a number above 0")

        if self.max_slope_deg > 90 and not math.isinf(self.max_slope_deg):
            raise ConfigError(f"max_slope_deg: {self.max_slope_deg}, expected degrees up to 90")

        for name, value in (
            ("vehicle_radius", self.vehicle_radius),
            ("half_wheelbase", self.half_wheelbase),
        ):
            finite_number(name, value, "m", at_least=0.0)

        if self.water_level is not None:
            finite_number("water_level", self.water_level, "m")

    def step_limit(self, cell: float) -> float:
        """Return the limit of steps, m, on cells of that side, m."""
        if self.max_step is not None:
            return self.max_step
        return max(LEAST_MAX_STEP, cell * self._rise)

    def roughness_limit(self, cell: float) -> float:
        """Return the limit of roughness, m, on cells of that side, m."""
        if self.max_roughness is not None:
            return self.max_roughness
        rise = max(cell, self.half_wheelbase) * self._rise
        return max(LEAST_MAX_ROUGHNESS, _ROUGHNESS_OF_RISE * rise)

    @property
    def _rise(self) -> float:
        """Rise of the steepest slope, m a metre."""
        return math.tan(math.radians(self.max_slope_deg)) if self.max_slope_deg < 90 else math.inf


@dataclass(frozen=True, eq=False)
class TraversabilityGrid:
    """Costs of the cells of a map, in the order of nav_msgs/OccupancyGrid.

    Rows run along y north, columns along x east, row 0 in the south.
    """

    cost: NDArray[np.int8]
    """Costs, (rows, columns), read-only: 0 … 99 the larger the harder, 100 forbidden, −1 unknown.
    """
    resolution: float
    """Side of a cell, m."""
    origin: tuple[float, float]
    """South-west corner of cell 0, 0, x east, y north, m."""
    share_free: float = field(init=False)
    """Share of the cells that can be entered, with a cost of 0 … 99."""
    share_lethal: float = field(init=False)
    """Share of the cells that are forbidden."""
    share_unknown: float = field(init=False)
    """Share of the cells that are unknown."""

    def __post_init__(self) -> None:
        self.cost.flags.writeable = False
        unknown = int(np.count_nonzero(self.cost < 0))
        lethal = int(np.count_nonzero(self.cost == LETHAL))
        object.__setattr__(self, "share_free", (self.cost.size - unknown - lethal) / self.cost.size)
        object.__setattr__(self, "share_lethal", lethal / self.cost.size)
        object.__setattr__(self, "share_unknown", unknown / self.cost.size)

    def occupancy_map(self, threshold: float = LETHAL, unknown: bool = True) -> BinaryOccupancyMap:
        """Return a map whose occupied cells are those with a cost of at least the threshold.

        It lies in the same place. Cells of cost −1 become `unknown`.
        """
        from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap

        cells = np.where(self.cost < 0, unknown, self.cost >= threshold)[::-1]
        return BinaryOccupancyMap.from_matrix(
            cells, 1.0 / self.resolution, local_origin_in_world=self.origin
        )

    def save(self, path: str | os.PathLike[str], image_format: str = "png") -> None:
        """Write all costs as map_server's files (mode "raw"): a yaml and an image, png or pgm."""
        from rfly_terrain.occupancy.files import save_costs

        save_costs(path, self.cost[::-1], self.resolution, self.origin, image_format)


def traversability(
    terrain: HeightMap,
    limits: TraversabilityLimits | None = None,
    objects: Solids | None = None,
    resolution: float | None = None,
    *,
    clearance: float = 0.0,
    stop: Callable[[], bool] | None = None,
) -> TraversabilityGrid:
    """Return the costs of driving over a map, for the limits of a vehicle.

    cost = round(99 · max(value / limit)) of slope, roughness and step. 100: at or above a limit,
    ground below `water_level`, or any part of the cell under an object. −1: the disc leaves the
    map. Then all cells nearer than the vehicle's radius to a cell of 100 become 100, unknown ones
    too. So does each cell with any part within `clearance` (m) of an object: a vehicle that stays
    on free cells keeps this distance from every object.

    `resolution` (m): side of the square cells, by default the smaller step of the map. Cell 0, 0
    has its centre on the map's south-westernmost sample; the last centres are the last ones on the
    map. Heights between the samples are bilinear. If cells are larger than the map's, the costs are
    computed on finer ones, an odd number to a side, and a cell takes the worst of those within it.
    So nothing that is narrower than a cell gets lost, as long as there are at most MAX_CELLS finer
    ones.

    `stop` is called now and then, from several threads; if it returns True, InterruptedError is
    raised.

    Raises ConfigError for a resolution that is not above 0, is larger than the map, or makes more
    than MAX_CELLS cells.
    """
    limits = limits or TraversabilityLimits()
    grid, factor = cells_of_map(terrain, resolution)
    fine = grid.finer(factor)

    cost = np.empty((fine.rows, fine.columns), np.int8)
    reach = disc_reach(limits.half_wheelbase / fine.step_x)
    tiles = [
        (row, column)
        for row in range(0, fine.rows, _TILE)
        for column in range(0, fine.columns, _TILE)
    ]

    def work(first: int, last: int) -> None:
        """Fill in some tiles; raise InterruptedError if `stop` returns True."""
        for row, column in tiles[first:last]:
            if stop is not None and stop():
                raise InterruptedError("the computation of a map's costs was stopped")
            _fill_tile(terrain, limits, fine, reach, row, column, cost)

    in_chunks(work, len(tiles), 1)
    if objects:
        _forbid_under(objects, 0.0, fine, cost)
    lethal = grown(cost == LETHAL, limits.vehicle_radius / fine.step_x)
    if lethal is not None:
        cost[lethal] = LETHAL
    if objects and clearance > 0.0:
        _forbid_under(objects, clearance, fine, cost)

    if factor > 1:
        cost = worst_of_blocks(cost, factor)
    return TraversabilityGrid(cost, grid.step_x, (grid.x_corner, grid.y_corner))


def _forbid_under(objects: Solids, clearance: float, grid: Grid, cost: NDArray[np.int8]) -> None:
    """Make the cells with any part within `clearance` (m) of an object LETHAL."""
    row, column, _ = objects.outlines.grown(clearance).cells_under(grid)
    cost[row, column] = LETHAL


def cells_of_map(terrain: HeightMap, resolution: float | None) -> tuple[Grid, int]:
    """Return the cells of a map, and the number of finer cells along a side of each.

    A cell's cost is computed from the finer ones.
    """
    native = min(abs(terrain.step_x), abs(terrain.step_y))
    side = native if resolution is None else float(resolution)
    finite_number("resolution", side, "m", above=0.0)

    x_min, x_max, y_min, y_max = terrain.bounds
    shorter = min(x_max - x_min, y_max - y_min)
    if side > shorter * (1 + 1e-6):
        raise ConfigError(
            f"resolution: {side:g} m, expected at most {shorter:g} m, the shorter side of the map"
        )
    columns = math.floor(snap((x_max - x_min) / side)) + 1
    rows = math.floor(snap((y_max - y_min) / side)) + 1
    if rows * columns > MAX_CELLS:
        raise ConfigError(
            f"resolution: {side:g} m makes {rows * columns:,} cells, expected at most {MAX_CELLS:,}"
        )

    # finer cells, as many as the limit allows
    factor = max(1, math.ceil(snap(side / native)))
    factor = _odd(factor, math.isqrt(MAX_CELLS // (rows * columns)))
    return Grid(rows, columns, side, side, x_min - side / 2, y_min - side / 2), factor


def _odd(wanted: int, most: int) -> int:
    """Return the smallest odd number from `wanted` upwards, or the largest one up to `most`."""
    odd = wanted + 1 - wanted % 2
    return odd if odd <= most else most - 1 + most % 2


def _fill_tile(
    terrain: HeightMap,
    limits: TraversabilityLimits,
    grid: Grid,
    reach: int,
    row: int,
    column: int,
    cost: NDArray[np.int8],
) -> None:
    """Fill in the costs of a tile, without objects and growth.

    They depend on the heights of the tile and on those of the discs beyond its edges.
    """
    rows = slice(row, min(row + _TILE, grid.rows))
    columns = slice(column, min(column + _TILE, grid.columns))
    if 2 * reach >= min(grid.rows, grid.columns):  # the disc leaves the map wherever it is
        heights, _, _ = cell_heights(terrain, grid, rows, columns)
        result = np.full(heights.shape, UNKNOWN, np.int8)
    else:
        wide_rows = slice(rows.start - reach, rows.stop + reach)
        wide_columns = slice(columns.start - reach, columns.stop + reach)
        wide, known_rows, known_columns = cell_heights(terrain, grid, wide_rows, wide_columns)
        disc = disc_of(limits.half_wheelbase / grid.step_x)
        inner = slice(reach, -reach), slice(reach, -reach)
        heights = wide[inner]
        worst = _worst_ratio(wide, disc, grid.step_x, limits)[inner]
        scaled = np.rint(WORST_FREE * np.minimum(worst, 1.0))
        result = np.where(worst >= 1.0, LETHAL, scaled).astype(np.int8)
        result[leaves_map(known_rows, reach)] = UNKNOWN
        result[:, leaves_map(known_columns, reach)] = UNKNOWN

    if limits.water_level is not None:
        result[heights < limits.water_level] = LETHAL
    cost[rows, columns] = result


def leaves_map(known: Bools, reach: int) -> Bools:
    """Return which of the inner places have an unknown one within reach."""
    missing = np.convolve(~known, np.ones(2 * reach + 1, int), "valid")
    return missing > 0


def disc_reach(radius: float) -> int:
    """Return the distance from the middle of a disc of that radius (in cells) to its rim.

    It is in cells, at least 1.
    """
    return max(1, math.floor(radius + 1e-9))


def disc_of(radius: float) -> Bools:
    """Return the disc of a radius in cells, at least 1: (2 reach + 1, 2 reach + 1).

    It is True for the cells whose centres lie within it.
    """
    reach = disc_reach(radius)
    offset = np.arange(-reach, reach + 1)
    return offset[:, None] ** 2 + offset**2 <= max(radius, 1.0) ** 2 + 1e-6


class GroundPlane(NamedTuple):
    """Least-squares plane through the disc around each cell.

    The values on the rim of the disc's reach have no meaning.
    """

    rise_x: Floats
    """Rise towards east, m per m."""
    rise_y: Floats
    """Rise towards north, m per m."""
    roughness: Floats
    """RMS of the heights about the plane, m."""


def ground_plane(heights: Floats, disc: Bools, side: float) -> GroundPlane:
    """Return the plane around each of the cells (rows, columns) of `side` m, rows along y north."""
    level, tilt_x, tilt_y = _mean_plane(heights)
    z = heights - level

    offset = np.arange(disc.shape[0]) - disc.shape[0] // 2
    weights = disc.astype(np.float64)
    count = float(weights.sum())
    spread = float((weights * offset**2).sum())  # Σ x² = Σ y² over the disc; Σ x = Σ y = Σ x y = 0

    rise_x = _sums(z, weights * offset) / spread
    rise_y = _sums(z, weights * offset[:, None]) / spread
    mean = _sums(z, weights) / count
    squares = (
        _sums(z * z, weights) / count
        - mean * mean
        - (rise_x * rise_x + rise_y * rise_y) * (spread / count)
    )
    roughness = np.sqrt(np.maximum(squares, 0.0))
    return GroundPlane((rise_x + tilt_x) / side, (rise_y + tilt_y) / side, roughness)


def _worst_ratio(heights: Floats, disc: Bools, side: float, limits: TraversabilityLimits) -> Floats:
    """Return max(value / limit) of slope, roughness and step of each cell.

    The values on the rim of the disc's reach have no meaning.
    """
    plane = ground_plane(heights, disc, side)
    slope = np.degrees(
        np.arctan(np.sqrt(plane.rise_x * plane.rise_x + plane.rise_y * plane.rise_y))
    )
    worst = np.maximum(slope / limits.max_slope_deg, plane.roughness / limits.roughness_limit(side))
    return np.maximum(worst, _steps(heights, disc) / limits.step_limit(side))


def _mean_plane(heights: Floats) -> tuple[Floats, float, float]:
    """Return the heights of a plane through the tile, and its rises.

    The rises are from column to column, and from row to row.
    """
    y, x = (np.arange(n) - (n - 1) / 2 for n in heights.shape)
    mean = float(heights.mean())
    rise_x = float(((heights.mean(axis=0) - mean) @ x) / (x @ x))
    rise_y = float(((heights.mean(axis=1) - mean) @ y) / (y @ y))
    return mean + rise_x * x + (rise_y * y)[:, None], rise_x, rise_y


def _sums(values: Floats, weights: Floats) -> Floats:
    """Return Σ weights · values around each cell."""
    return np.asarray(cv2.filter2D(values, cv2.CV_64F, weights, borderType=cv2.BORDER_REPLICATE))


def _steps(heights: Floats, disc: Bools) -> Floats:
    """Return the largest |difference| of two cells within the disc that share an edge."""
    largest = np.zeros(heights.shape)
    for here, following in ((np.s_[:-1], np.s_[1:]), (np.s_[:, :-1], np.s_[:, 1:])):
        # to the next cell along the axis
        step = np.zeros(heights.shape)
        pairs = np.zeros(disc.shape, np.uint8)
        np.abs(heights[following] - heights[here], out=step[here])
        pairs[here] = disc[here] & disc[following]
        np.maximum(largest, cv2.dilate(step, pairs), out=largest)
    return largest
