# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mosaic: many raster files on one grid, read as one raster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.config.checks import finite_number
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

OFF_GRID = 0.01
"""Largest distance between the cells of two files that count as the same grid, cells."""


@dataclass(frozen=True)
class MosaicOptions:
    """What a user says about the files; see `import_dem`."""

    band: int | None = None
    crs: str | None = None
    unit: str | None = None
    nodata: Nodata = None
    outside: float | None = None
    """Height of cells that no file has, m; None: no data."""


@dataclass(frozen=True)
class _File:
    """A file, and the cells of the mosaic that it has."""

    path: Path
    row: int
    column: int
    rows: int
    columns: int
    band: int
    scale: HeightScale
    voids: list[float] | None = None
    """Heights that stand for none, m; see `GapSearch.voids`."""


class Mosaic(RasterHeights):
    """Heights of files that lie on one grid, as of one raster; where two overlap, the first counts.

    It can be pickled, and opens each file when it reads from it.
    """

    def __init__(self, paths: Sequence[StrPath], options: MosaicOptions) -> None:
        """Read the headers of the files.

        Raises TerrainFileNotFound, TerrainFormatError, and ConfigError for files that do not fit
        together.
        """
        if options.outside is not None:
            finite_number("outside", options.outside, "m")
        self.options = options
        self.nodata = options.nodata
        self.voids = None
        self.files: list[_File] = []
        for path in paths:
            self._add(Path(path).absolute())

        # the corner in the north-west
        row = min(file.row for file in self.files)
        column = min(file.column for file in self.files)
        affine = self.transform
        c, f = self.world(column, row)
        self.files = [
            replace(file, row=file.row - row, column=file.column - column) for file in self.files
        ]
        self.rows = max(file.row + file.rows for file in self.files)
        self.columns = max(file.column + file.columns for file in self.files)

        # degrees: the middle between -180 and 180
        if self.turn:
            c -= self.turn * round((c + affine.a * self.columns / 2) / self.turn)
        self.goes_round = bool(self.turn) and self.columns >= round(self.turn / affine.a)
        self.transform = type(affine)(affine.a, 0.0, c, 0.0, affine.e, f)

    def _add(self, path: Path) -> None:
        """Add a file; the first one sets the grid."""
        given = self.options
        with open_raster(path) as dataset:
            crs = coordinate_system(dataset, given.crs, path)
            band = band_of_heights(dataset, given.band, path)
            scale = height_scale(dataset, band, crs, given.unit, path)
            raster = RasterHeights(dataset, band, crs, scale, None)

        if not raster.is_upright:
            raise ConfigError(f"{path}: its rows are askew; warp it with gdalwarp first")
        if not self.files:
            self.crs = crs
            self.transform = raster.transform
            self.turn = raster.turn
            self.is_upright = True

        own = raster.transform
        grid = self.transform
        if crs != self.crs or not np.allclose((own.a, own.e), (grid.a, grid.e), rtol=1e-6, atol=0):
            raise ConfigError(
                f"{path}: cells of {own.a:.9g} x {-own.e:.9g} in {crs.to_string()}, expected "
                f"{grid.a:.9g} x {-grid.e:.9g} in {self.crs.to_string()} as in "
                f"{self.files[0].path.name}; make tiles of each kind on their own"
            )
        x = own.c - grid.c
        if self.turn:
            x -= self.turn * round(x / self.turn)
        column = x / grid.a
        row = (own.f - grid.f) / grid.e
        if max(abs(column - round(column)), abs(row - round(row))) > OFF_GRID:
            raise ConfigError(
                f"{path}: its cells lie between those of {self.files[0].path.name}; warp one of "
                "them with gdalwarp -tap first"
            )
        size = (raster.rows, raster.columns)
        self.files.append(_File(path, round(row), round(column), *size, band, scale))

    def find_voids(self, number: int) -> tuple[Gaps, list[float] | None]:
        """Return the cells of a file without a height, and the numbers that stand for none."""
        file = self.files[number]
        with open_raster(file.path) as dataset:
            raster = self._raster(dataset, file)
            search = raster.gap_search(file.path)
            for rows, columns in raster.pieces(range(file.rows), range(file.columns)):
                search.add(raster.read(rows, columns))
        return search.result(), search.voids

    def set_voids(self, voids: Sequence[list[float] | None]) -> None:
        """Note what `find_voids` has found, file by file."""
        self.files = [
            replace(file, voids=found) for file, found in zip(self.files, voids, strict=True)
        ]

    def _raster(self, dataset: Any, file: _File) -> RasterHeights:
        """Return the reader of an open file."""
        raster = RasterHeights(dataset, file.band, self.crs, file.scale, self.nodata)
        raster.voids = file.voids
        return raster

    def _read(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return the heights of cells, NaN where no file has one."""
        heights = np.full((len(rows), len(columns)), np.nan, np.float32)
        is_covered = np.zeros(heights.shape, bool)
        for file in self.files:
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
