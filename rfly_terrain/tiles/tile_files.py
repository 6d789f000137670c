# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Files of a terrain in tiles: a folder of GeoTIFFs with a manifest, or one GeoTIFF.

A file of the folder holds `side` x `side` samples, fewer in the last row and column, as elevations
in the order of rasters: row 0 in the north. No sample is in two files. Overviews, which are means
of samples, serve pictures only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.config.checks import finite_number
from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath, read_regular
from rfly_common.geodesy import GeoPoint, geo_point
from rfly_common.untrusted_files.reader_errors import reader_errors, terrain_file_errors
from rfly_terrain.files.dem_import import raster_grid
from rfly_terrain.files.gaps import HIGHEST, LOWEST, HeightScale
from rfly_terrain.files.raster_file import RasterHeights, open_raster, rasterio_module
from rfly_terrain.files.web_files import WebPlace
from rfly_terrain.height_map.grid import Grid

MANIFEST = "terrain.json"
"""Name of a folder's manifest, which is written last."""
TILE_NAMES = "east*_north*.tif"
"""Pattern of the names of files in a folder of tiles."""
FORMAT = "rfly_suite tiles 1"
BLOCK = 256
"""Samples a side of the blocks of a file, which are read one by one."""
MAX_MANIFEST_BYTES = 65_536
MAX_SIDE = 16_384
"""Samples a side of a file, at most."""
MAX_SAMPLES = 10**12
"""Samples of a terrain, at most: a million kilometres squared at 1 m."""


@dataclass(frozen=True)
class TileGrid:
    """Samples of a terrain in tiles, and where they lie: what a manifest holds."""

    rows: int
    columns: int
    origin_x: float
    """x_east of the first sample, m."""
    origin_y: float
    """y_north of the first sample, m."""
    step_x: float
    """Distance from one row to the next, east, m."""
    step_y: float
    """Distance from one column to the next, north, m."""
    geo_origin: GeoPoint | None
    """Latitude and longitude (degrees) and altitude (m) of x = y = z = 0."""
    z_min: float
    """No height is lower, m."""
    z_max: float
    """No height is higher, m."""
    side: int
    """Samples a side of a file."""

    def __post_init__(self) -> None:
        for key in ("origin_x", "origin_y", "z_min", "z_max"):
            finite_number(key, getattr(self, key), "m", error=ValueError)
        for key in ("step_x", "step_y"):
            finite_number(key, getattr(self, key), "m", above=0.0, error=ValueError)

        counts = (self.rows, self.columns, self.side)
        if not all(type(count) is int and count >= 2 for count in counts):
            raise ValueError(f"{counts} rows, columns and samples a side, expected at least 2")
        if self.rows * self.columns > MAX_SAMPLES:
            raise ValueError(f"{self.rows} x {self.columns} samples, expected {MAX_SAMPLES:,}")

    @classmethod
    def of_raster(
        cls,
        cells: Grid,
        origin: tuple[float, float],
        geo_origin: GeoPoint | None,
        heights: tuple[float, float],
        side: int,
    ) -> TileGrid:
        """Return the samples in the centres of a raster's cells, row 0 in the north.

        origin: x = y = 0 in the raster's coordinates. heights: the lowest and the highest, m.
        """
        x, y = cells.centres(cells.rows - 1, 0)
        place = (x - origin[0], y - origin[1], cells.step_x, -cells.step_y)
        return cls(cells.columns, cells.rows, *place, geo_origin, *heights, side)


@dataclass(frozen=True)
class TileFiles:
    """Reader of the samples."""

    path: Path | WebPlace
    """The folder, or the only file."""
    grid: TileGrid
    band: int
    scale: HeightScale
    is_folder: bool

    def file(self, i: int, j: int) -> Path | WebPlace:
        """Return the path of the file that is the i-th from the west, the j-th from the south."""
        return self.path / tile_name(i, j) if self.is_folder else self.path

    def read(self, rows: range, columns: range, stride: int = 1) -> NDArray[np.float32]:
        """Return heights, m, z up, (rows, columns), of samples that are all in one file.

        stride: return means of stride x stride samples, equal parts of those that were asked for.
        Raises TerrainFileNotFound, and TerrainFormatError for a damaged file or cells without data.
        """
        grid = self.grid
        i, row = divmod(rows.start, grid.side)
        j, column = divmod(columns.start, grid.side)
        path = self.file(i, j)
        high = min(grid.side, grid.columns - j * grid.side)
        wide = min(grid.side, grid.rows - i * grid.side)

        with open_raster(path) as dataset:
            raster = RasterHeights(dataset, self.band, dataset.crs, self.scale, None)
            if (raster.rows, raster.columns) != (high, wide):
                raise TerrainFormatError(
                    f"{path}: {raster.rows} x {raster.columns} cells, expected "
                    f"{high} x {wide}, as the manifest says"
                )
            north = raster.rows - column
            heights = raster.means(
                range(north - len(columns), north), range(row, row + len(rows)), stride
            )
            if not self.is_folder:
                raster.drop_undeclared(heights, path)

        missing = int(np.count_nonzero(~np.isfinite(heights)))
        if missing:
            raise TerrainFormatError(
                f"{path}: {missing:,} of {heights.size:,} cells that were read hold no data; "
                "fill them with `rfly terrain tile --fill-nodata`"
            )
        heights = np.ascontiguousarray(heights[::-1].T)
        if grid.geo_origin is not None:
            heights -= np.float32(grid.geo_origin[2])
        return heights


def tile_data(
    heights: NDArray[np.float32], crs: Any, transform: Any, tags: Mapping[str, str]
) -> bytes:
    """Return the content of a file, of elevations (m), row 0 in the north.

    It is made in memory, as GDAL closes a file without an error when the disk is full.
    """
    rasterio = rasterio_module()
    profile = {
        "driver": "GTiff",
        "width": heights.shape[1],
        "height": heights.shape[0],
        "count": 1,
        "dtype": "float32",
        "crs": crs,
        "transform": transform,
    }
    with rasterio.io.MemoryFile() as raw, rasterio.io.MemoryFile() as file:
        with raw.open(**profile) as dataset:
            dataset.write(heights, 1)
            dataset.update_tags(**tags)
        rasterio.shutil.copy(
            raw.name,
            file.name,
            driver="COG",
            blocksize=BLOCK,
            compress="deflate",
            predictor="yes",
            overview_resampling="average",
            num_threads=1,
        )
        return bytes(file.read())


def tile_name(i: int, j: int) -> str:
    """Return the name of a file in a folder of tiles: i from the west, j from the south."""
    return f"tiles/east{i:05d}_north{j:05d}.tif"


def open_files(path: StrPath) -> TileFiles:
    """Return the reader of a folder of tiles, or of a GeoTIFF whose cells are metres.

    Raises TerrainFileNotFound, TerrainFormatError, and ConfigError for a raster whose cells have to
    be resampled.
    """
    if isinstance(path, WebPlace):
        place: Path | WebPlace = path
        is_folder = not is_raster(path)
    else:
        place = Path(path).absolute()
        is_folder = (place / MANIFEST).exists() or place.is_dir()
    if is_folder:
        return TileFiles(place, _read_manifest(place / MANIFEST), 1, HeightScale(), is_folder=True)

    with open_raster(place) as dataset:
        own = raster_grid(dataset, place)
    geo_origin = None if own.place is None else (*own.place, 0.0)
    side = max(own.grid.rows, own.grid.columns)
    grid = TileGrid.of_raster(own.grid, own.origin, geo_origin, (LOWEST, HIGHEST), side)
    return TileFiles(place, grid, own.band, own.scale, is_folder=False)


def is_raster(path: Path | WebPlace) -> bool:
    """Return whether a name is that of a GeoTIFF."""
    return path.suffix.lower() in (".tif", ".tiff")


def _read_manifest(path: Path | WebPlace) -> TileGrid:
    """Return the content of a manifest."""
    with terrain_file_errors(path):
        if isinstance(path, WebPlace):
            data = path.read(MAX_MANIFEST_BYTES)
        else:
            data = read_regular(path, MAX_MANIFEST_BYTES)
    with reader_errors(lambda text: TerrainFormatError(f"{path}: no manifest of tiles: {text}")):
        facts = json.loads(data)
        if facts.pop("format", None) != FORMAT:
            raise ValueError(f"expected the format {FORMAT!r}")
        place = facts.pop("geo_origin")
        geo_origin = None if place is None else geo_point(place, f"{path}: geo_origin")
        return TileGrid(geo_origin=geo_origin, **facts)


def manifest_text(grid: TileGrid) -> str:
    """Return the content of the manifest of a grid."""
    facts: dict[str, Any] = {"format": FORMAT, **asdict(grid)}
    return json.dumps(facts, indent=1) + "\n"
