# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mosaic: many raster files on one grid, read as one raster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_common.files import StrPath
from rfly_terrain.files.dem_import import height_scale
from rfly_terrain.files.gaps import Gaps, HeightScale, Nodata
from rfly_terrain.files.raster_file import (
    RasterHeights,
    band_of_heights,
    coordinate_system,
    open_raster,
)

if TYPE_CHECKING:
    from rasterio import Affine
    from rasterio.crs import CRS

OFF_GRID = 0.01
"""Largest distance between the cells of two files that count as the same grid, cells."""


@dataclass(frozen=True)
class MosaicOptions:
    """Statements of a user about the files; see `import_dem`."""

    band: int | None = None
    crs: str | None = None
    unit: str | None = None
    nodata: Nodata = None
    outside: float | None = None
    """Height of cells that no file has, m; None: no data."""


@dataclass(frozen=True)
class SourceFile:
    """A file, its own grid, and the cells of its mosaic that it has."""

    path: Path
    crs: CRS
    transform: Affine
    turn: float
    """360 degrees in the file's unit; 0 for lengths."""
    rows: int
    columns: int
    band: int
    scale: HeightScale
    row: int = 0
    column: int = 0
    voids: list[float] | None = None
    """Heights that stand for none, m; see `GapSearch.voids`."""

    @classmethod
    def open(cls, name: StrPath, options: MosaicOptions) -> SourceFile:
        """Return what a file says. Raises ConfigError, TerrainFileNotFound, TerrainFormatError."""
        path = Path(name).absolute()
        with open_raster(path) as dataset:
            crs = coordinate_system(dataset, options.crs, path)
            band = band_of_heights(dataset, options.band, path)
            scale = height_scale(dataset, band, crs, options.unit, path)
            raster = RasterHeights(dataset, band, crs, scale, None)
        if not raster.is_upright:
            raise ConfigError(f"{path}: its rows are askew; warp it with gdalwarp first")
        size = (raster.rows, raster.columns)
        return cls(path, crs, raster.transform, raster.turn, *size, band, scale)

    def cells_from(self, first: SourceFile) -> tuple[float, float] | None:
        """Return the distance from another file's corner, (row, column); None: another grid."""
        own = self.transform
        grid = first.transform
        is_same = np.allclose((own.a, own.e), (grid.a, grid.e), rtol=1e-6, atol=0)
        if self.crs != first.crs or not is_same:
            return None
        x = own.c - grid.c
        if self.turn:
            x -= self.turn * round(x / self.turn)
        row, column = (own.f - grid.f) / grid.e, x / grid.a
        is_between = max(abs(column - round(column)), abs(row - round(row))) > OFF_GRID
        return None if is_between else (row, column)


class Mosaic(RasterHeights):
    """Heights of files that lie on one grid, as of one raster; where two overlap, the first counts.

    It can be pickled, and opens each file when it reads from it.
    """

    def __init__(self, files: Sequence[SourceFile], options: MosaicOptions, near: float) -> None:
        """Join files on the grid of the first one.

        near: longitude, turns, on whose side of a turn a mosaic in degrees lies.
        """
        first = files[0]
        self.options = options
        self.nodata = options.nodata
        self.voids = None
        self.crs = first.crs
        self.turn = first.turn
        self.is_upright = True
        self.goes_round = False

        # the corner in the north-west
        cells = [file.cells_from(first) or (0.0, 0.0) for file in files]
        row, column = (round(least) for least in np.min(cells, axis=0))
        affine = first.transform
        self.transform = affine
        c, f = self.world(column, row)
        self.files = [
            replace(file, row=round(v) - row, column=round(u) - column)
            for file, (v, u) in zip(files, cells, strict=True)
        ]
        self.rows = max(file.row + file.rows for file in self.files)
        self.columns = max(file.column + file.columns for file in self.files)

        if self.turn:
            c -= self.turn * round((c + affine.a * self.columns / 2) / self.turn - near)
            # files round the Earth: the first columns again are not columns of their own
            round_the_earth = round(self.turn / affine.a)
            self.goes_round = self.columns >= round_the_earth
            self.columns = min(self.columns, round_the_earth)
        self.transform = type(affine)(affine.a, 0.0, c, 0.0, affine.e, f)

    def count(self, columns: Any, rows: Any, spare: float) -> NDArray[np.int64]:
        """Return how many files have (column, row), if they reach some cells farther."""
        count = np.zeros(np.shape(columns), int)
        for file in self.files:
            u = np.abs(columns - file.column - file.columns / 2)
            v = np.abs(rows - file.row - file.rows / 2)
            count += (u <= file.columns / 2 + spare) & (v <= file.rows / 2 + spare)
        return count

    def find_voids(self, number: int) -> tuple[Gaps, list[float] | None]:
        """Return the cells of a file without a height, and the numbers that stand for none."""
        file = self.files[number]
        with open_raster(file.path) as dataset:
            raster = self._raster(dataset, file)
            search = raster.gap_search(file.path)
            for rows, columns in raster.pieces(range(file.rows), range(file.columns)):
                search.add(raster.read(rows, columns))
        return search.result(), search.voids

    def _raster(self, dataset: Any, file: SourceFile) -> RasterHeights:
        """Return the reader of an open file."""
        raster = RasterHeights(dataset, file.band, self.crs, file.scale, self.nodata)
        raster.voids = file.voids
        return raster

    def _read(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return the heights of cells, NaN where no file has one."""
        heights = np.full((len(rows), len(columns)), np.nan, np.float32)
        is_covered = np.zeros(heights.shape, bool)
        files = self.files
        if self.goes_round:  # the part of a file beyond the last column is at the first one
            files = files + [replace(file, column=file.column - self.columns) for file in files]
        for file in files:
            own_rows = range(max(rows.start, file.row), min(rows.stop, file.row + file.rows))
            own_columns = range(
                max(columns.start, file.column), min(columns.stop, file.column + file.columns)
            )
            if not (own_rows and own_columns):
                continue
            here = np.s_[
                own_rows.start - rows.start : own_rows.stop - rows.start,
                own_columns.start - columns.start : own_columns.stop - columns.start,
            ]
            with open_raster(file.path) as dataset:
                found = self._raster(dataset, file).read(
                    range(own_rows.start - file.row, own_rows.stop - file.row),
                    range(own_columns.start - file.column, own_columns.stop - file.column),
                )
            np.copyto(heights[here], found, where=np.isnan(heights[here]))
            is_covered[here] = True

        if self.options.outside is not None:
            heights[~is_covered] = self.options.outside
        return heights
