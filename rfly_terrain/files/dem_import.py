# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Import of digital elevation models: GeoTIFF and four other formats of heights.

GDAL reads them through rasterio. A north-up raster in metres keeps its own cells, bit by bit, if
its projection is true to scale and north around the origin, or on request. Any other (degrees,
feet, rotated, UTM off its meridian, Web Mercator, polar stereographic) is resampled onto a local
metric grid: the transverse Mercator projection of `geodetic_to_ned` about the map's origin, so x is
east and y is north.

rasterio is optional, the extra `geo`. GDAL has some 150 formats; some of them are texts that name
other files or addresses. Here it may use the formats of DRIVERS and read one file.
"""

from __future__ import annotations

import cmath
import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, open_regular
from rfly_common.geodesy import geo_point
from rfly_common.imports import require
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.gaps import fill_gaps, void_values
from rfly_terrain.height_map.grid import Grid, snap
from rfly_terrain.height_map.height_map import HeightMap

if TYPE_CHECKING:
    from rasterio.crs import CRS
    from rasterio.io import DatasetReader

Progress = Callable[[float], None]
"""Function that is called with the share done, 0 … 1."""
Resampling = Literal["nearest", "bilinear", "cubic", "cubic_spline", "average"]
_Pair = tuple[float, float]

DRIVERS = ("GTiff", "AAIGrid", "DTED", "SRTMHGT", "USGSDEM")
"""GDAL formats that are read: each is one file of heights."""
MAX_BLOCK_BYTES = 256 << 20
"""Size of the piece that GDAL unpacks at once, at most; a raster declares it."""
MAX_BANDS = 1000
_ALONE: dict[str, Any] = {
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_TIFF_INTERNAL_MASK": "YES",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": "{none}",
    "GDAL_HTTP_TIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "GDAL_CACHEMAX": 256 << 20,
}
"""GDAL options: no files next to the raster (masks, overviews, world files, .aux.xml), no network,
a bounded cache.
"""

_WGS84 = "EPSG:4326"
_METRES_PER_UNIT = {
    **dict.fromkeys(("", "m", "metre", "meter", "metres", "meters"), 1.0),
    **dict.fromkeys(("ft", "foot", "feet"), 0.3048),
    **dict.fromkeys(
        ("us-ft", "us survey foot", "us survey feet", "us_survey_foot", "ftus"), 1200 / 3937
    ),
    **dict.fromkeys(("cm", "centimetre", "centimeter"), 0.01),
}
MIN_CELL = 0.01
"""Smallest side of a cell, m. Degrees in a file that says metres are smaller."""
MAX_SCALE_ERROR = 0.001
"""Largest share by which lengths in a raster's own projection may differ from metres."""
MAX_CONVERGENCE = math.radians(0.05)
"""Largest angle between a raster's own axes and east and north, rad."""
_ROWS_AT_ONCE = 256
_MOSTLY = 0.8
"""Share of the extent that must lie within the edges for a resampled raster to be cut to a
rectangle without empty corners.
"""


@dataclass(frozen=True)
class ProjectionAxes:
    """Directions and scale of a raster's own coordinates at the map's origin."""

    north_turn: float
    """Angle from true north to the raster's north, rad, clockwise positive."""
    scale: float
    """Length in the raster's coordinates of a metre on the ground."""
    shear: float
    """Largest difference in scale and direction (rad) between the axis east and that north."""

    @property
    def is_true(self) -> bool:
        """Return whether the coordinates are metres east and north, to within the limits."""
        return (
            abs(self.scale - 1.0) <= MAX_SCALE_ERROR
            and abs(self.north_turn) <= MAX_CONVERGENCE
            and self.shear <= MAX_CONVERGENCE
        )


@dataclass(frozen=True)
class ImportFacts:
    """What was done to a raster's cells, for whoever has asked for the import."""

    axes: ProjectionAxes | None
    """The raster's own axes; None for one in degrees, and where they are not defined."""
    is_resampled: bool
    """False if the cells are the raster's own."""
    largest_error: float
    """Distance, m, between the map's farthest corner and its true place; 0 if resampled."""
    filled_cells: int
    """Number of cells without data that were filled."""
    void: float | None
    """Number that the file does not declare, but that stands for no height; None: there is none."""
    vertical_datum: str
    """What the heights are above, as the file says; "": it says nothing."""


@dataclass(frozen=True)
class _Target:
    """Layout of the map: a sample in the centre of each cell of a grid, row 0 in the north."""

    crs: CRS
    grid: Grid
    own_cells: tuple[int, int] | None = None
    """Row and column of the raster that become the first ones if its cells are kept; None: they are
    resampled.
    """


def import_dem(
    path: StrPath,
    *,
    band: int = 1,
    resolution: float | None = None,
    center: tuple[float, float] | None = None,
    size: tuple[float, float] | None = None,
    crs: str | None = None,
    keep_cells: bool = False,
    origin_altitude: float | Literal["ground"] = 0.0,
    fill_nodata: bool = False,
    resampling: Resampling = "bilinear",
    name: str | None = None,
    progress: Progress | None = None,
    on_read: Callable[[ImportFacts], None] | None = None,
) -> HeightMap:
    """Return a height map, ENU metres, from a band of a raster file.

    resolution: cell size, m; by default the raster's own. center: (latitude, longitude) in degrees
    of the map's origin, x = y = 0; by default the middle of the raster. size: (east, north) m of
    the part around the center; by default all that the raster covers. crs: coordinate system of the
    raster (such as EPSG:4326), if the file has none or a wrong one. keep_cells: keep the cells of a
    metric raster whose scale or north is not true; the map then names no place on the Earth, as
    every latitude computed from it would be wrong. origin_altitude: the elevation that becomes
    z = 0, m; "ground": that of the ground at x = y = 0. fill_nodata: fill cells without data like a
    membrane fixed at their rims; otherwise they are refused. resampling: for all cells that are not
    kept. on_read: called with what was done.

    Raises TerrainFileNotFound, TerrainFormatError (an unusable raster), ConfigError (an argument,
    or rasterio is not installed).
    """
    _check_arguments(resolution, size, center)
    with _open(path) as dataset:
        raster_crs = _crs(dataset, crs, path)
        raster = _Raster(dataset, raster_crs, resolution, size)
        if not 1 <= band <= dataset.count:
            raise ConfigError(f"{path}: band {band}, expected 1 … {dataset.count}")

        # the raster's own grid, or a new one
        latitude, longitude = center if center is not None else raster.center()
        axes = raster.axes_at(latitude, longitude)
        is_upright = dataset.transform.b == dataset.transform.d == 0
        is_true = axes is not None and axes.is_true
        if keep_cells and not (is_upright and axes is not None):
            raise ConfigError(
                f"{path}: its cells are not in metres, or its rows are turned; they can only be "
                "resampled, without --keep-cells"
            )
        if is_upright and (is_true or keep_cells):
            target, x_0, y_0 = raster.own_grid(center)
        else:
            target = raster.local_grid(latitude, longitude)
            x_0 = 0.0
            y_0 = 0.0

        grid = target.grid
        if min(grid.rows, grid.columns) < 2 or grid.rows * grid.columns > MAX_CELLS:
            raise ConfigError(
                f"{path}: {grid.columns:,} x {grid.rows:,} cells of {grid.step_x:g} x "
                f"{-grid.step_y:g} m, expected 2 x 2 to {MAX_CELLS:,}; choose another "
                "--resolution or --size"
            )
        if min(grid.step_x, -grid.step_y) < MIN_CELL:
            raise TerrainFormatError(
                f"{path}: cells of {grid.step_x:.3g} x {-grid.step_y:.3g} m, expected at least "
                f"{MIN_CELL:g}; if its numbers are degrees, say so with --crs EPSG:4326"
            )

        # heights
        void = raster.undeclared_void(band, target)
        heights = raster.read(band, target, resampling, void, progress)
        heights *= _metres_per_unit(dataset, band, path)
        keeps_own = target.crs == raster_crs
        error = raster.largest_error(grid, (x_0, y_0), (latitude, longitude)) if keeps_own else 0.0

    missing = _check_gaps(heights, fill_nodata, path, void)
    if missing:
        fill_gaps(heights)
    if on_read is not None:
        datum = _vertical_datum(raster_crs)
        on_read(ImportFacts(axes, not keeps_own, error, missing, void, datum))

    place = (latitude, longitude) if is_true or not keeps_own else None
    return _height_map(heights, grid, (x_0, y_0), place, origin_altitude, name or Path(path).stem)


def local_crs(latitude: float, longitude: float) -> CRS:
    """Return the metric, north-up coordinate system around a place.

    It is a transverse Mercator projection on WGS 84 with scale 1 at the origin.
    """
    rasterio = rasterio_module()
    return rasterio.crs.CRS.from_string(
        f"+proj=tmerc +lat_0={latitude:.12g} +lon_0={longitude:.12g} +k=1 +x_0=0 +y_0=0 "
        "+datum=WGS84 +units=m +no_defs"
    )


def rasterio_module() -> Any:
    """Return rasterio with its submodules. Raises ConfigError that says what to install."""
    rasterio = require("rasterio", "reading rasters")
    for name in ("crs", "vrt", "warp", "windows"):
        require(f"rasterio.{name}", "reading rasters")
    return rasterio


@contextmanager
def _open(path: StrPath) -> Iterator[DatasetReader]:
    """Yield a checked raster; raise TerrainFileNotFound or TerrainFormatError."""
    rasterio = rasterio_module()
    with terrain_file_errors(path):
        open_regular(path).close()
    file = os.path.abspath(path)  # a path, not another kind of name that GDAL knows

    with (
        rasterio.Env(**_ALONE),
        reader_errors(
            lambda text: TerrainFormatError(
                f"{path}: cannot be read as a raster ({', '.join(DRIVERS)}); "
                f"convert it with gdal_translate: {text}"
            )
        ),
        _open_alone(file) as dataset,
    ):
        _check_raster(dataset, path)
        yield dataset


def _open_alone(file: str) -> DatasetReader:
    """Open a file with the first of DRIVERS that accepts it.

    If none does, raise the error of the first one, GTiff's.
    """
    rasterio = rasterio_module()
    errors = []
    with warnings.catch_warnings():
        # _check_raster refuses a raster without a place
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        for driver in DRIVERS:
            try:
                return rasterio.open(file, driver=driver)
            except rasterio.errors.RasterioIOError as error:
                errors.append(error)
    raise errors[0]


def _check_raster(dataset: DatasetReader, path: StrPath) -> None:
    """Raise TerrainFormatError for a raster that GDAL opens but that is unusable here.

    This happens before any of it is unpacked.
    """
    if dataset.transform.is_identity:
        raise TerrainFormatError(
            f"{path}: does not say where its cells lie; give it its corners first, such as with "
            "gdal_translate -a_srs EPSG:32632 -a_ullr WEST NORTH EAST SOUTH"
        )

    numbers = [*dataset.transform[:6], *dataset.scales[:MAX_BANDS], *dataset.offsets[:MAX_BANDS]]
    usable = all(map(math.isfinite, numbers)) and dataset.transform.determinant != 0
    if dataset.count > MAX_BANDS or not usable:
        raise TerrainFormatError(
            f"{path}: {dataset.count} bands placed by {tuple(dataset.transform[:6])}: expected "
            f"1 to {MAX_BANDS} bands and cells with an area"
        )

    for (rows, columns), kind in zip(dataset.block_shapes, dataset.dtypes, strict=True):
        if kind.startswith(("complex", "cint")):
            raise TerrainFormatError(f"{path}: holds {kind} numbers, expected real ones")
        if rows * columns * np.dtype(kind).itemsize > MAX_BLOCK_BYTES:
            raise TerrainFormatError(
                f"{path}: packed in pieces of {rows:,} x {columns:,} cells, expected at most "
                f"{MAX_BLOCK_BYTES:,} bytes in one; pack it in tiles with gdal_translate "
                "-co TILED=YES"
            )


def _check_arguments(resolution: float | None, size: _Pair | None, center: _Pair | None) -> None:
    """Raise ConfigError for an argument out of its range."""
    if resolution is not None and not (math.isfinite(resolution) and resolution > 0):
        raise ConfigError(f"resolution {resolution}: expected a cell size above 0 m")
    if size is not None and not all(math.isfinite(s) and s > 0 for s in size):
        raise ConfigError(f"size {size[0]} x {size[1]}: expected two lengths above 0 m")
    if center is not None and not (abs(center[0]) < 90 and abs(center[1]) <= 180):
        raise ConfigError(
            f"center {center[0]}, {center[1]}: expected latitude within ±90°, "
            "longitude within ±180°"
        )


def _crs(dataset: DatasetReader, crs: str | None, path: StrPath) -> CRS:
    """Return the coordinate system of a raster, or the one given by the caller instead."""
    rasterio = rasterio_module()
    if crs is not None:
        if "://" in crs or os.path.exists(crs):  # GDAL would read or fetch it
            raise ConfigError(f"crs {crs!r}: expected such as EPSG:4326, no file and no address")
        with reader_errors(
            lambda text: ConfigError(f"crs {crs!r}: {text}, expected such as EPSG:4326")
        ):
            return rasterio.crs.CRS.from_user_input(crs)
    if dataset.crs is None or not (dataset.crs.is_projected or dataset.crs.is_geographic):
        raise TerrainFormatError(
            f"{path}: names no coordinate reference system; say which one it is, such as "
            "--crs EPSG:4326 (degrees) or --crs EPSG:32632 (UTM zone 32 north)"
        )
    return dataset.crs


@dataclass(frozen=True)
class _Raster:
    """A raster, and the requested part of it."""

    dataset: DatasetReader
    crs: CRS
    resolution: float | None
    size: _Pair | None

    def center(self) -> tuple[float, float]:
        """Return latitude and longitude of its middle."""
        x, y = self._world(self.dataset.width / 2, self.dataset.height / 2)
        (longitude,), (latitude,) = rasterio_module().warp.transform(self.crs, _WGS84, [x], [y])
        if not (abs(latitude) <= 90.0 and abs(longitude) <= 360.0):
            raise TerrainFormatError(
                f"{self.dataset.name}: its middle, {x:g}, {y:g}, is no place on the Earth in "
                f"{self.crs.to_string()}"
            )
        return latitude, longitude

    def axes_at(self, latitude: float, longitude: float) -> ProjectionAxes | None:
        """Return the axes of the raster's coordinates at a place; None for degrees."""
        if not self.crs.is_projected:
            return None
        (x, east_x, north_x), (y, east_y, north_y) = rasterio_module().warp.transform(
            local_crs(latitude, longitude), self.crs, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
        )
        east = complex(east_x - x, east_y - y)
        north = complex(north_y - y, x - north_x)
        if not (cmath.isfinite(east) and cmath.isfinite(north) and east and north):
            return None
        return ProjectionAxes(cmath.phase(north), abs(north), abs(cmath.log(east / north)))

    def largest_error(self, grid: Grid, origin: _Pair, place: _Pair) -> float:
        """Return how far a kept grid's corners are from where x east and y north say, m."""
        x, y = np.transpose(
            [grid.centres(r, c) for r in (0, grid.rows - 1) for c in (0, grid.columns - 1)]
        )
        true = rasterio_module().warp.transform(self.crs, local_crs(*place), x, y)
        errors = np.hypot(x - origin[0] - true[0], y - origin[1] - true[1])
        return float(errors.max())

    def undeclared_void(self, band: int, target: _Target) -> float | None:
        """Return the number in the part under the map that is no height, though none says so.

        Raises TerrainFormatError for several, or if the file declares another one too.
        """
        rows, columns = self._part_under(target)
        declared = self.dataset.nodatavals[band - 1]
        found: set[float] = set()
        for start in range(rows.start, rows.stop, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, rows.stop - start)
            window = rasterio_module().windows.Window(columns.start, start, len(columns), count)
            block = self.dataset.read(band, window=window, masked=True)
            found |= void_values(block.astype(np.float32).filled(np.nan))

        if not found:
            return None
        if len(found) > 1 or declared is not None:
            numbers = ", ".join(f"{number:g}" for number in sorted(found))
            raise TerrainFormatError(
                f"{self.dataset.name}: holds {numbers}, which are no heights; mark them as cells "
                "without data, such as with gdal_calc.py"
            )
        return found.pop()

    def _part_under(self, target: _Target) -> tuple[range, range]:
        """Return the rows and columns of the raster that the map needs."""
        grid = target.grid
        if target.own_cells is not None:
            row, column = target.own_cells
            return range(row, row + grid.rows), range(column, column + grid.columns)

        side = np.linspace(0.0, 1.0, 33)
        east, north = (each.ravel() for each in np.meshgrid(side, side))
        x = grid.x_corner + east * grid.columns * grid.step_x
        y = grid.y_corner + north * grid.rows * grid.step_y
        own_x, own_y = map(np.asarray, rasterio_module().warp.transform(target.crs, self.crs, x, y))
        inverse = ~self.dataset.transform
        columns = inverse.a * own_x + inverse.b * own_y + inverse.c
        rows = inverse.d * own_x + inverse.e * own_y + inverse.f
        return _range_around(rows, self.dataset.height), _range_around(columns, self.dataset.width)

    def _world(self, column: Any, row: Any) -> tuple[Any, Any]:
        """Return x, y in the raster's coordinates at pixel coordinates.

        0.5, 0.5 is the middle of the first cell.
        """
        transform = self.dataset.transform
        return (
            transform.a * column + transform.b * row + transform.c,
            transform.d * column + transform.e * row + transform.f,
        )

    def own_grid(self, center: _Pair | None) -> tuple[_Target, float, float]:
        """Return the grid in the raster's own projection, and the map's origin in it.

        Without a resolution the cells are kept.
        """
        transform = self.dataset.transform
        step_x = abs(transform.a)
        step_y = abs(transform.e)
        # extent and middle
        west, east = sorted((transform.c, transform.c + transform.a * self.dataset.width))
        south, north = sorted((transform.f, transform.f + transform.e * self.dataset.height))
        x_0 = (west + east) / 2
        y_0 = (south + north) / 2
        if center is not None:
            (x_0,), (y_0,) = rasterio_module().warp.transform(
                _WGS84, self.crs, [center[1]], [center[0]]
            )

        x_range = (west + step_x / 2, east - step_x / 2)
        y_range = (south + step_y / 2, north - step_y / 2)
        # a new grid, unless the cells have that resolution and run north-up
        resolution = self.resolution
        if (
            resolution is not None
            and math.isclose(step_x, resolution)
            and math.isclose(step_y, resolution)
        ):
            resolution = None
        if resolution is not None or transform.a < 0 or transform.e > 0:
            step = (resolution, resolution) if resolution is not None else (step_x, step_y)
            return self._new_grid(self.crs, x_range, y_range, step, (x_0, y_0)), x_0, y_0

        columns = range(self.dataset.width)
        rows = range(self.dataset.height)
        if self.size is not None:
            self._check_covered(x_range, y_range, self.size, (x_0, y_0))
            columns = _cells_within(x_range[0], step_x, x_0, self.size[0])
            rows = _cells_within(-y_range[1], step_y, -y_0, self.size[1])

        x_corner = west + columns[0] * step_x
        y_corner = north - rows[0] * step_y
        grid = Grid(len(rows), len(columns), step_x, -step_y, x_corner, y_corner)
        return _Target(self.crs, grid, (rows[0], columns[0])), x_0, y_0

    def local_grid(self, latitude: float, longitude: float) -> _Target:
        """Return the grid in a local projection, inside the raster's outermost cell centres."""
        local = local_crs(latitude, longitude)
        resolution = self.resolution
        if resolution is None:
            transform, _, _ = rasterio_module().warp.calculate_default_transform(
                self.crs, local, self.dataset.width, self.dataset.height, *self.dataset.bounds
            )
            resolution = float(f"{abs(transform.a):.4g}")

        # a rectangle inside the edges, and the one around them
        west, east, south, north = self._edges_in(local)
        x_range = (west[0].max(), east[0].min())
        y_range = (south[1].max(), north[1].min())
        edges = np.concatenate([west, east, south, north], axis=1)
        whole_x = (edges[0].min(), edges[0].max())
        whole_y = (edges[1].min(), edges[1].max())

        is_small = _length(x_range) < _MOSTLY * _length(whole_x) or _length(
            y_range
        ) < _MOSTLY * _length(whole_y)
        if self.size is not None or is_small:
            # for a requested part, and a raster so rotated that an upright rectangle inside it
            # would be small: cells that reach over its edges hold no data and are reported
            x_range = whole_x
            y_range = whole_y
        return self._new_grid(local, x_range, y_range, (resolution, resolution), (0.0, 0.0))

    def _edges_in(self, target: CRS) -> tuple[Floats, Floats, Floats, Floats]:
        """Return points along the western, eastern, southern and northern side of the raster.

        They run through its outermost cell centres: x and y in `target`, (2, n) for each side.
        """
        columns = np.linspace(0.5, self.dataset.width - 0.5, 65)
        rows = np.linspace(0.5, self.dataset.height - 0.5, 65)
        edges = []
        for column, row in (
            (columns[0], rows),
            (columns[-1], rows),
            (columns, rows[0]),
            (columns, rows[-1]),
        ):
            x, y = np.broadcast_arrays(*self._world(column, row))
            edges.append(np.array(rasterio_module().warp.transform(self.crs, target, x, y)))

        if not np.isfinite(edges).all():
            raise TerrainFormatError(
                f"{self.dataset.name}: reaches too far round the Earth for one flat map; cut it "
                "first, such as with gdalwarp"
            )

        west, east = sorted(edges[:2], key=lambda edge: float(edge[0].mean()))
        south, north = sorted(edges[2:], key=lambda edge: float(edge[1].mean()))
        return west, east, south, north

    def _new_grid(
        self, crs: CRS, x_range: _Pair, y_range: _Pair, step: _Pair, center: _Pair
    ) -> _Target:
        """Return cells of `step` with a cell centre in the middle.

        There are as many as fit into the ranges or into `size`.
        """
        if self.size is not None:
            self._check_covered(x_range, y_range, self.size, center)
            x_range = (center[0] - self.size[0] / 2, center[0] + self.size[0] / 2)
            y_range = (center[1] - self.size[1] / 2, center[1] + self.size[1] / 2)

        # cells on each side of the middle one
        west = math.floor(snap((center[0] - x_range[0]) / step[0]))
        east = math.floor(snap((x_range[1] - center[0]) / step[0]))
        south = math.floor(snap((center[1] - y_range[0]) / step[1]))
        north = math.floor(snap((y_range[1] - center[1]) / step[1]))

        x_corner = center[0] - (west + 0.5) * step[0]
        y_corner = center[1] + (north + 0.5) * step[1]
        grid = Grid(south + north + 1, west + east + 1, step[0], -step[1], x_corner, y_corner)
        return _Target(crs, grid)

    def _check_covered(self, x_range: _Pair, y_range: _Pair, size: _Pair, center: _Pair) -> None:
        """Raise ConfigError if a part of `size` about the center is not within the ranges."""
        for what, span, length, origin in zip(
            ("east", "north"), (x_range, y_range), size, center, strict=True
        ):
            low = span[0] - origin
            high = span[1] - origin
            half = length / 2
            if low > half * 1e-9 - half or high < half - half * 1e-9:
                raise ConfigError(
                    f"{self.dataset.name}: covers {low:.1f} … {high:.1f} m {what} of the center, "
                    f"but the size asks for {-half:g} … {half:g} m; choose another --center or "
                    "--size"
                )

    def read(
        self,
        band: int,
        target: _Target,
        resampling: str,
        void: float | None,
        progress: Progress | None,
    ) -> NDArray[np.float32]:
        """Return heights, (columns, rows) float32, NaN without data and for `void`.

        The first index runs east and the second north, a height map's order.
        """
        rasterio = rasterio_module()
        grid = target.grid
        dataset = self.dataset
        heights = np.empty((grid.columns, grid.rows), np.float32)
        source: Any = dataset
        first_row, first_column = target.own_cells or (0, 0)
        if target.own_cells is None:
            source = rasterio.vrt.WarpedVRT(
                dataset,
                src_crs=self.crs,
                crs=target.crs,
                transform=rasterio.transform.from_origin(
                    grid.x_corner, grid.y_corner, grid.step_x, -grid.step_y
                ),
                width=grid.columns,
                height=grid.rows,
                resampling=rasterio.enums.Resampling[resampling],
                src_nodata=dataset.nodatavals[band - 1] if void is None else void,
                nodata=math.nan,
                dtype="float32",
            )

        for start in range(0, grid.rows, _ROWS_AT_ONCE):
            count = min(_ROWS_AT_ONCE, grid.rows - start)
            window = rasterio.windows.Window(first_column, first_row + start, grid.columns, count)
            block = source.read(band, window=window, masked=True).astype(np.float32).filled(np.nan)
            if void is not None:
                block[block == np.float32(void)] = np.nan
            heights[:, grid.rows - start - count : grid.rows - start] = block[::-1].T
            if progress is not None:
                progress((start + count) / grid.rows)
        if source is not dataset:
            source.close()

        scale = dataset.scales[band - 1]
        offset = dataset.offsets[band - 1]
        if (scale, offset) != (1.0, 0.0):
            heights *= scale
            heights += offset
        return heights


def _range_around(positions: Floats, count: int) -> range:
    """Return the indices 0 … count - 1 of cells that positions lie in or next to."""
    finite = positions[np.isfinite(positions)]
    if not finite.size:
        return range(0)
    first = min(max(math.floor(finite.min()) - 2, 0), count)
    return range(first, min(max(math.ceil(finite.max()) + 2, first), count))


def _vertical_datum(crs: CRS) -> str:
    """Return the name of what a coordinate system counts heights from; "" if it does not say."""
    facts = crs.to_dict(projjson=True)
    if facts["type"] == "CompoundCRS":
        return str(facts["components"][-1]["name"])
    axes = facts.get("coordinate_system", {}).get("axis", ())
    return "the ellipsoid" if len(axes) == 3 else ""


def _cells_within(first: float, step: float, center: float, size: float) -> range:
    """Return the indices of the cell centres at most size/2 from the middle, at least two."""
    low = math.ceil(snap((center - size / 2 - first) / step))
    high = math.floor(snap((center + size / 2 - first) / step))
    return range(max(low, 0), max(high, low + 1) + 1)


def _metres_per_unit(dataset: DatasetReader, band: int, path: StrPath) -> float:
    """Return the unit of a band's heights, m; raise TerrainFormatError if it is unknown."""
    unit = (dataset.units[band - 1] or "").strip().lower()
    if unit not in _METRES_PER_UNIT:
        raise TerrainFormatError(f"{path}: band {band} is in {unit!r}, expected metres or feet")
    return _METRES_PER_UNIT[unit]


def _check_gaps(heights: NDArray[np.float32], fill: bool, path: StrPath, void: float | None) -> int:
    """Return the number of cells without data.

    Raises TerrainFormatError if no cell has any, or if gaps are not to be filled.
    """
    missing = heights.size - int(np.count_nonzero(np.isfinite(heights)))
    if missing == heights.size:
        raise TerrainFormatError(f"{path}: no cell has data where the map would be")
    if missing and not fill:
        written = "" if void is None else f" ({void:g} is written there)"
        raise TerrainFormatError(
            f"{path}: {missing:,} of {heights.size:,} cells hold no data{written}; interpolate "
            "them with --fill-nodata, or choose a part without gaps with --center and --size"
        )
    return missing


def _height_map(
    heights: NDArray[np.float32],
    grid: Grid,
    origin: tuple[float, float],
    place: tuple[float, float] | None,
    origin_altitude: float | Literal["ground"],
    name: str,
) -> HeightMap:
    """Return the map of heights, which become relative to the origin's altitude in place.

    `place`: latitude and longitude of the origin; None: the map names no place.
    """
    x_west, y_south = grid.centres(grid.rows - 1, 0)

    def build(geo_origin: tuple[float, float, float] | None) -> HeightMap:
        return HeightMap(
            heights,
            origin_x=x_west - origin[0],
            origin_y=y_south - origin[1],
            step_x=grid.step_x,
            step_y=-grid.step_y,
            name=name,
            geo_origin=geo_origin,
        )

    if origin_altitude == "ground":
        altitude = float(build(None).altitude(0.0, 0.0))
    else:
        altitude = geo_point((0.0, 0.0, origin_altitude), "origin_altitude")[2]
    heights -= np.float32(altitude)
    heights.flags.writeable = False  # so that it is shared, not copied
    return build(None if place is None else (*place, altitude))


def _length(span: _Pair) -> float:
    """Return the length of a range."""
    return span[1] - span[0]
