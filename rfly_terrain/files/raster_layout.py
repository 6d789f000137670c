# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layout of a map on a raster: which cells it keeps, or where its own cells lie in the raster.

A raster in metres keeps its own cells, bit by bit, if all are within MAX_SHIFT of a cell of where
x east and y north have them, or on request; rows from the south or columns from the east are only
turned round. All others (degrees, feet, rotated, UTM far from its meridian, Web Mercator, polar
stereographic) are warped onto a local metric grid: the transverse Mercator projection of
`geodetic_to_ned` about the map's origin, so x is east and y is north.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath
from rfly_terrain.files.gaps import Gaps
from rfly_terrain.files.raster_file import (
    WGS84,
    RasterHeights,
    rasterio_module,
)
from rfly_terrain.height_map.grid import Grid, snap

if TYPE_CHECKING:
    from rasterio.crs import CRS

Progress = Callable[[float], None]
"""Function that is called with the share done, 0 … 1."""
Resampling = Literal["nearest", "bilinear", "cubic", "cubic_spline", "average"]
_Pair = tuple[float, float]

MIN_CELL = 0.01
"""Smallest side of a cell, m. Degrees in a file that says metres are smaller."""
MAX_SHIFT = 0.5
"""Largest distance of a kept cell from its true place, in sides of a cell."""
MAX_CELLS_READ = 10 * MAX_CELLS
"""Cells of a raster that are read for a map, at most: a minute or two."""
_TILE_CELLS = 1 << 20
"""Cells of a raster that are read at once, about, to be warped."""
STRIP_COLUMNS = 32
"""Columns of the map that are warped at once."""
MAX_REACH = 1_500_000.0
"""Farthest edge of a flat map from its middle, m: lengths grow by 3 % there."""
KERNEL = 3
"""Half the width of the widest kernel of resampling, cells, and one for roundings."""
_SIDE = np.linspace(-1.0, 1.0, 33)
_INSIDE = np.reshape(np.meshgrid(_SIDE, _SIDE), (2, -1))
"""Points of a rectangle from -1, -1 to 1, 1."""
_RIM = np.concatenate(
    [
        [_SIDE, np.full(33, -1.0)],
        [np.full(33, 1.0), _SIDE],
        [-_SIDE, np.full(33, 1.0)],
        [np.full(33, -1.0), -_SIDE],
    ],
    axis=1,
)
"""Points of its sides, in order."""


@dataclass(frozen=True)
class ProjectionAxes:
    """Directions and scale of a raster's own coordinates at the map's origin."""

    north_turn: float
    """Angle from true north to the raster's north, rad, clockwise positive."""
    scale: float
    """Length in the raster's coordinates of a metre on the ground."""
    shear: float
    """Largest difference in scale and direction (rad) between the axis east and that north."""


@dataclass(frozen=True)
class TargetGrid:
    """Grid of the map: a sample in the centre of each cell of a grid, row 0 in the north."""

    crs: CRS
    grid: Grid
    origin: _Pair
    """The map's x = y = 0 in that system."""
    place: _Pair | None
    """Latitude and longitude of that; None: the map names no place."""
    own_cells: tuple[int, int] | None = None
    """Row and column of the raster that become the first ones if its cells are kept; None: they are
    resampled.
    """


@dataclass(frozen=True)
class OwnCells:
    """A raster's own cells as those of a map."""

    target: TargetGrid
    largest_shift: float
    """Distance, m, between a cell and where x east and y north say that it is, at most."""
    is_shifted: bool
    """True if that is more than MAX_SHIFT of a cell."""


def local_crs(latitude: float, longitude: float) -> CRS:
    """Return the metric, north-up coordinate system around a place.

    It is a transverse Mercator projection on WGS 84 with scale 1 at the origin.
    """
    rasterio = rasterio_module()
    return rasterio.crs.CRS.from_string(
        f"+proj=tmerc +lat_0={latitude:.12g} +lon_0={longitude:.12g} +k=1 +x_0=0 +y_0=0 "
        "+datum=WGS84 +units=m +no_defs"
    )


def check_arguments(resolution: float | None, size: _Pair | None, center: _Pair | None) -> None:
    """Raise ConfigError for an argument out of its range."""
    if resolution is not None and not (math.isfinite(resolution) and resolution > 0):
        raise ConfigError(f"resolution {resolution}: expected a cell size above 0 m")
    if size is not None and not all(math.isfinite(s) and s > 0 for s in size):
        raise ConfigError(f"size {size[0]} x {size[1]}: expected two lengths above 0 m")
    if center is not None and not (abs(center[0]) < 90 and abs(center[1]) <= 360):
        raise ConfigError(
            f"center {center[0]}, {center[1]}: expected latitude within ±90°, "
            "longitude within ±360°"
        )


def check_grid(grid: Grid, path: StrPath, most: int) -> None:
    """Raise ConfigError for a map of too few or too many cells, or of too small ones."""
    cells = (
        f"{path}: {grid.columns:,} x {grid.rows:,} cells of {grid.step_x:g} x {-grid.step_y:g} m"
    )
    if min(grid.rows, grid.columns) < 2 or grid.rows * grid.columns > most:
        raise ConfigError(
            f"{cells}, expected 2 x 2 to {most:,}; choose another --resolution or --size"
            + (", or make a larger map with `rfly terrain tile`" if most == MAX_CELLS else "")
        )
    if min(grid.step_x, -grid.step_y) < MIN_CELL:
        raise TerrainFormatError(
            f"{path}: cells of {grid.step_x:.3g} x {-grid.step_y:.3g} m, expected at least "
            f"{MIN_CELL:g}; if its numbers are degrees, say so with --crs EPSG:4326"
        )


@dataclass(frozen=True)
class RasterLayout:
    """A raster, the requested part of it, and where the map's cells lie in it."""

    path: StrPath
    raster: RasterHeights
    resolution: float | None
    size: _Pair | None

    def _world(self, columns: Any, rows: Any, target: CRS) -> Floats:
        """Return x and y in a coordinate system, (2, n), at the raster's (column, row)."""
        x, y = np.broadcast_arrays(*map(np.atleast_1d, self.raster.world(columns, rows)))
        if self.raster.turn:
            # a cell about a pole reaches beyond it
            pole = self.raster.turn / 4
            beyond = pole + abs(self.raster.transform.e)
            y = np.where(np.abs(y) < beyond, np.clip(y, -pole, pole), y)
        return np.array(rasterio_module().warp.transform(self.raster.crs, target, x, y))

    def _middle(self) -> _Pair:
        """Return (column, row) of the raster's middle."""
        return self.raster.columns / 2, self.raster.rows / 2

    def center(self) -> _Pair:
        """Return latitude and longitude of the raster's middle."""
        x, y = self.raster.world(*self._middle())
        (longitude,), (latitude,) = self._world(*self._middle(), WGS84)
        if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0):
            raise TerrainFormatError(
                f"{self.path}: its middle, {x:g}, {y:g}, is no place on the Earth in "
                f"{self.raster.crs.to_string()}"
            )
        return float(latitude), float(longitude)

    def axes_at(self, latitude: float, longitude: float) -> ProjectionAxes | None:
        """Return the axes of the raster's coordinates at a place; None for degrees."""
        if not self.raster.crs.is_projected:
            return None
        (x, east_x, north_x), (y, east_y, north_y) = rasterio_module().warp.transform(
            local_crs(latitude, longitude), self.raster.crs, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
        )
        east = complex(east_x - x, east_y - y)
        north = complex(north_y - y, x - north_x)
        if not (cmath.isfinite(east) and cmath.isfinite(north) and east and north):
            return None
        return ProjectionAxes(cmath.phase(north), abs(north), abs(cmath.log(east / north)))

    def own_cells(self, center: _Pair | None, *, is_asked: bool = False) -> OwnCells | None:
        """Return the raster's own cells, or those within `size`, as a map about its center.

        Return None if they can't be cells of a map. Raise ConfigError for that if `is_asked`.
        """
        raster = self.raster
        affine = raster.transform
        latitude, longitude = self.center() if center is None else center
        axes = self.axes_at(latitude, longitude)
        is_own_size = self.resolution is None or all(
            math.isclose(step, self.resolution) for step in (affine.a, -affine.e)
        )
        is_metric = axes is not None and raster.crs.units_factor[1] == 1.0
        can_keep = raster.is_upright and is_metric and is_own_size
        if is_asked and not can_keep:
            raise ConfigError(
                f"{self.path}: its cells are not in metres, have another size than --resolution, "
                "or its rows are turned; they can only be resampled, without --keep-cells"
            )
        if not can_keep:
            return None

        # the cells within the size
        origin = raster.world(*self._middle())
        if center is not None:
            xs, ys = rasterio_module().warp.transform(WGS84, raster.crs, [longitude], [latitude])
            origin = (xs[0], ys[0])
        if not np.isfinite(origin).all():
            return None
        columns = range(raster.columns)
        rows = range(raster.rows)
        if self.size is not None:
            (column,), (row,) = raster.cells([origin[0]], [origin[1]], origin[0])
            columns = _cells_within(column, self.size[0] / affine.a, raster.columns)
            rows = _cells_within(row, -self.size[1] / affine.e, raster.rows)
        corner = raster.world(columns[0], rows[0])
        grid = Grid(len(rows), len(columns), affine.a, affine.e, *corner)

        # where x east and y north say that they are
        x, y = _points(grid, _RIM)
        local = local_crs(latitude, longitude)
        true = rasterio_module().warp.transform(raster.crs, local, x, y)
        shifts = np.hypot(x - origin[0] - true[0], y - origin[1] - true[1])
        largest = float(shifts.max())
        is_shifted = not largest <= MAX_SHIFT * min(affine.a, -affine.e)

        # on other axes the part is another one
        if self.size is not None and (is_asked or not is_shifted):
            self._check_size(raster.crs, origin)
        place = None if is_shifted else (latitude, longitude)
        target = TargetGrid(raster.crs, grid, origin, place, (rows[0], columns[0]))
        return OwnCells(target, largest, is_shifted)

    def target(
        self, own: OwnCells | None, latitude: float, longitude: float, *, is_asked: bool = False
    ) -> TargetGrid:
        """Return the map's cells about a place: the raster's own ones if they may stay."""
        if own is not None and (is_asked or not own.is_shifted):
            return own.target
        return self.local_grid(latitude, longitude)

    def local_grid(self, latitude: float, longitude: float) -> TargetGrid:
        """Return a grid about a place in its own projection, with a cell centre there."""
        local = local_crs(latitude, longitude)
        if self.size is not None:
            self._check_size(local, (0.0, 0.0))
            half_x, half_y = self.size[0] / 2, self.size[1] / 2
            middle_x = middle_y = 0.0
        else:
            (middle_x,), (middle_y,) = self._world(*self._middle(), local)
            away = math.hypot(middle_x, middle_y)
            if not away < MAX_REACH:
                raise ConfigError(
                    f"{self.path}: its middle is {away / 1000:,.0f} km from the center "
                    f"{latitude:g}, {longitude:g}; choose a --center (latitude, longitude) nearby"
                )
            half_x, half_y = self._largest_rectangle(local, middle_x, middle_y)

        # cells on each side of the one in the middle
        step = self.resolution or float(f"{self.cell_side():.4g}")
        west = math.floor(snap((half_x - middle_x) / step))
        east = math.floor(snap((half_x + middle_x) / step))
        south = math.floor(snap((half_y - middle_y) / step))
        north = math.floor(snap((half_y + middle_y) / step))
        corner = (-(west + 0.5) * step, (north + 0.5) * step)
        rows = max(0, south + north + 1)
        columns = max(0, west + east + 1)
        grid = Grid(rows, columns, step, -step, *corner)
        return TargetGrid(local, grid, (0.0, 0.0), (latitude, longitude))

    def edge(self, target: CRS) -> Floats:
        """Return points of the line through the outermost cell centres, (2, n), in a system."""
        columns = np.linspace(0.5, self.raster.columns - 0.5, min(self.raster.columns, 4096))
        rows = np.linspace(0.5, self.raster.rows - 0.5, min(self.raster.rows, 4096))
        return np.concatenate(
            [self._world(column, rows, target) for column in (columns[0], columns[-1])]
            + [self._world(columns, row, target) for row in (rows[0], rows[-1])],
            axis=1,
        )

    def cell_side(self) -> float:
        """Return the side of a square with the area of the raster's cell in its middle, m."""
        column, row = self._middle()
        x, y = self._world(
            column + np.array([0.0, 1.0, 0.0]),
            row + np.array([0.0, 0.0, 1.0]),
            local_crs(*self.center()),
        )
        side = math.sqrt(abs((x[1] - x[0]) * (y[2] - y[0]) - (x[2] - x[0]) * (y[1] - y[0])))
        if not (math.isfinite(side) and side > 0.0):
            raise TerrainFormatError(f"{self.path}: its cells have no area on the Earth")
        return side

    def _largest_rectangle(self, local: CRS, x: float, y: float) -> _Pair:
        """Return the half sides of the largest upright rectangle about the raster's middle, m.

        It reaches to the outermost cell centres. Each point of the raster's edge must lie beyond it
        in x or in y: for each half width the nearest edge within it gives the half height.
        """
        raster = self.raster
        away = np.abs(self.edge(local) - [[x], [y]])
        if raster.goes_round or not (np.isfinite(away).all() and away.max() < MAX_REACH):
            raise TerrainFormatError(
                f"{self.path}: reaches too far round the Earth for one flat map; choose a part "
                "with --center and --size"
            )

        away = away[:, np.argsort(away[0])]
        half_x = away[0, 1:]
        half_y = np.minimum.accumulate(away[1])[:-1]
        best = int(np.argmax(half_x * half_y))
        half = np.array([half_x[best], half_y[best]])
        while not self._holds(local, (x, y), half) and half.min() > 0:
            half = half - self.cell_side() / 8  # between two points of the edge
        return float(half[0]), float(half[1])

    def _holds(self, target: CRS, middle: _Pair, half: Any) -> bool:
        """Return whether a rectangle lies within the raster's outermost cell centres."""
        rim = np.array(middle)[:, None] + _RIM * np.reshape(half, (2, 1))
        columns, rows = self.cells_at(target, rim, middle)
        spare = 1e-6 * max(self.raster.rows, self.raster.columns)
        inside = (rows >= 0.5 - spare) & (rows <= self.raster.rows - 0.5 + spare)
        if not self.raster.goes_round:
            inside &= (columns >= 0.5 - spare) & (columns <= self.raster.columns - 0.5 + spare)
        return bool(inside.all())

    def _check_size(self, target: CRS, origin: _Pair) -> None:
        """Raise ConfigError if a part of `size` about the center is not within the raster."""
        half = np.array(self.size) / 2
        if self._holds(target, origin, half):
            return
        low, high = 0.0, 1.0
        while high - low > 1e-4:
            share = (low + high) / 2
            low, high = (share, high) if self._holds(target, origin, half * share) else (low, share)
        fits = f"{2 * low * half[0]:.1f} x {2 * low * half[1]:.1f} m fit"
        raise ConfigError(
            f"{self.path}: a part of {2 * half[0]:g} x {2 * half[1]:g} m reaches beyond the "
            f"raster; about this center {fits if low else 'nothing fits'}; choose another "
            "--center or --size"
        )

    def cells_at(self, target: CRS, points: Floats, middle: _Pair) -> tuple[Floats, Floats]:
        """Return the raster's (column, row) at x and y, (2, n), near a place of the same system."""
        x, y = np.concatenate([points, np.reshape(middle, (2, 1))], axis=1)
        own_x, own_y = map(
            np.array, rasterio_module().warp.transform(target, self.raster.crs, x, y)
        )
        # the middle, on the raster's side of a turn
        turn = self.raster.turn
        near = own_x[-1]
        if turn:
            raster_x, _ = self.raster.world(*self._middle())
            near = near - turn * np.round((near - raster_x) / turn)
        return self.raster.cells(own_x[:-1], own_y[:-1], near)

    def _part_under(self, target: TargetGrid, grid: Grid, margin: float) -> tuple[range, range]:
        """Return the rows and columns of the raster under a part of the map's grid."""
        if target.own_cells is not None:
            row, column = target.own_cells
            return range(row, row + grid.rows), range(column, column + grid.columns)

        return self.cells_under(target.crs, target.origin, grid, margin)

    def cells_under(
        self, target: CRS, near: _Pair, grid: Grid, margin: float
    ) -> tuple[range, range]:
        """Return the rows and columns under a grid of a system, near a place of the same system."""
        columns, rows = self.cells_at(target, _points(grid, _INSIDE), near)
        columns_under = _range_around(columns, self.raster.columns, margin)
        if self.raster.goes_round:
            columns_under = _range_around(columns, None, margin)
        return _range_around(rows, self.raster.rows, margin), columns_under

    def find_gaps(self, target: TargetGrid, progress: Progress) -> Gaps:
        """Return the cells without a height under the map; the raster then knows what is none."""
        raster = self.raster
        rows, columns = self._part_under(target, target.grid, 1)
        cells = len(rows) * len(columns)
        if cells > MAX_CELLS_READ:
            raise ConfigError(
                f"{self.path}: {cells:,} of its cells lie under the map, expected at most "
                f"{MAX_CELLS_READ:,}; choose a --size, or make larger cells first, such as with "
                "gdal_translate -tr 10 10 -r average"
            )

        search = raster.gap_search(self.path)
        outline = np.transpose(self.cells_at(target.crs, _points(target.grid, _RIM), target.origin))
        done = 0
        for piece_rows, piece_columns in raster.pieces(rows, columns):
            heights = raster.read(piece_rows, piece_columns)
            beside = 0
            if target.own_cells is None:
                outside = rasterio_module().features.geometry_mask(
                    [{"type": "Polygon", "coordinates": [outline.tolist()]}],
                    heights.shape,
                    type(raster.transform).translation(piece_columns.start, piece_rows.start),
                )
                heights[outside] = np.nan
                beside = int(np.count_nonzero(outside))
            search.add(heights, beside)
            done += heights.size
            progress(done / cells)

        raster.voids = search.voids
        return search.result()

    def read(
        self, target: TargetGrid, resampling: Resampling, progress: Progress
    ) -> NDArray[np.float32]:
        """Return heights, m, (columns, rows), NaN without data.

        The first index runs east and the second north, a height map's order.
        """
        whole = target.grid
        finer = self.finer(target)
        heights = np.empty((whole.columns, whole.rows), np.float32)
        for row, column, grid in _tiles(whole, finer**2):
            tile = self.part(target, row, column, grid, resampling)
            north = whole.rows - row
            heights[column : column + grid.columns, north - grid.rows : north] = tile[::-1].T
            progress((row * whole.columns + (column + grid.columns) * grid.rows) / heights.size)
        return heights

    def finer(self, target: TargetGrid) -> float:
        """Return the side of the raster's cells in those of the map, 1 at most."""
        if target.own_cells is not None:
            return 1.0
        return min(1.0, self.cell_side() / target.grid.step_x)

    def part(
        self, target: TargetGrid, row: int, column: int, grid: Grid, resampling: Resampling
    ) -> NDArray[np.float32]:
        """Return heights of the part of the map that begins at a cell, m, rows from the north.

        The same cells have the same heights in each part that begins at a multiple of
        STRIP_COLUMNS.
        """
        if target.own_cells is None:
            return self._warped(target, grid, resampling, self.finer(target))
        first_row, first_column = target.own_cells
        return self.raster.read(
            range(first_row + row, first_row + row + grid.rows),
            range(first_column + column, first_column + column + grid.columns),
        )

    def _warped(
        self, target: TargetGrid, grid: Grid, resampling: Resampling, finer: float
    ) -> NDArray[np.float32]:
        """Return heights of a part of the map, m, (rows, columns) from the north."""
        rows, columns = self._part_under(target, grid, KERNEL / finer)
        if not (rows and columns):
            return np.full((grid.rows, grid.columns), np.nan, np.float32)
        heights = self.raster.read(rows, columns)
        return self.warp(heights, rows, columns, target.crs, grid, resampling, finer)

    def warp(
        self,
        heights: NDArray[np.float32],
        rows: range,
        columns: range,
        target: CRS,
        grid: Grid,
        resampling: Resampling,
        finer: float,
    ) -> NDArray[np.float32]:
        """Return heights of the raster's rows and columns on a grid of a system, NaN without data.

        GDAL computes the ends and the middle of a row, and interpolates between them if that is
        within an eighth of a cell: rows of a strip are short, so that it is far less.
        """
        rasterio = rasterio_module()
        raster = self.raster
        tile = np.full((grid.rows, grid.columns), np.nan, np.float32)
        for first in range(0, grid.columns, STRIP_COLUMNS):
            strip = tile[:, first : first + STRIP_COLUMNS].copy()
            x, y = grid.positions(first, 0)
            rasterio.warp.reproject(
                heights,
                strip,
                src_transform=raster.transform_from(columns.start, rows.start),
                src_crs=raster.crs,
                src_nodata=np.nan,
                dst_transform=type(raster.transform)(grid.step_x, 0.0, x, 0.0, grid.step_y, y),
                dst_crs=target,
                dst_nodata=np.nan,
                resampling=rasterio.enums.Resampling[resampling],
                # GDAL would take a turned raster for a finer one, and smooth it
                XSCALE=finer,
                YSCALE=finer,
            )
            tile[:, first : first + STRIP_COLUMNS] = strip
        return tile

    def share(self, target: TargetGrid) -> float:
        """Return the share of the raster's area that the map covers; 1 for a requested part."""
        if self.size is not None or target.own_cells is not None:
            return 1.0
        grid = target.grid
        area = self.raster.rows * self.raster.columns * self.cell_side() ** 2
        return min(1.0, grid.rows * grid.columns * grid.step_x**2 / area)


def _points(grid: Grid, sides: Floats) -> Floats:
    """Return points of a grid, (2, n): -1 … 1 from its western and southern side to the others."""
    u = (sides[0] + 1.0) / 2.0 * grid.columns
    v = (1.0 - sides[1]) / 2.0 * grid.rows
    return np.array(grid.positions(u, v))


def _tiles(grid: Grid, finer: float) -> Iterator[tuple[int, int, Grid]]:
    """Yield parts of a grid that need a bounded number of the raster's cells, from the north.

    Each has its first row and column. finer: the map's cells for each cell of the raster.
    """
    # whole strips, so that no height depends on the size of the parts
    strips = max(1, math.isqrt(int(_TILE_CELLS * finer)) // STRIP_COLUMNS)
    side = strips * STRIP_COLUMNS
    for row in range(0, grid.rows, side):
        for column in range(0, grid.columns, side):
            x, y = grid.positions(column, row)
            size = (min(side, grid.rows - row), min(side, grid.columns - column))
            yield row, column, Grid(*size, grid.step_x, grid.step_y, x, y)


def _range_around(positions: Floats, count: int | None, margin: float) -> range:
    """Return the indices of cells that positions lie in or next to, of 0 … count - 1 if given."""
    finite = positions[np.isfinite(positions)]
    if not finite.size:
        return range(0)
    first = math.floor(finite.min() - margin)
    last = math.ceil(finite.max() + margin)
    if count is None:
        return range(first, last)
    first = min(max(first, 0), count)
    return range(first, min(max(last, first), count))


def _cells_within(middle: float, count: float, most: int) -> range:
    """Return the indices of the cell centres at most count/2 cells from a place, of 0 … most - 1.

    There are at least two, if `most` allows it.
    """
    low = max(math.ceil(snap(middle - count / 2 - 0.5)), 0)
    high = max(math.floor(snap(middle + count / 2 - 0.5)), low + 1)
    return range(max(min(low, most - 2), 0), max(min(high + 1, most), 2))
