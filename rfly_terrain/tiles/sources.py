# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Elevation models on any grids as one: sizes of cells, origins and projections may differ.

Theory of operation. Files on the same grid are one `Mosaic`. Each mosaic is warped onto the map on
its own; where two have a height, that of the file that was named first counts. Cells that a mosaic
lacks, in its holes and beyond its edge, get the heights of the others before it is warped. So the
ground changes within a cell from one to the next, without a step, and a hole in one is filled by
another. What the others have there is filled in the same way once more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.errors import TerrainFormatError
from rfly_common.files import StrPath
from rfly_terrain.files.raster_file import RasterHeights
from rfly_terrain.files.raster_layout import (
    KERNEL,
    STRIP_COLUMNS,
    RasterLayout,
    Resampling,
    TargetGrid,
)
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.tiles.mosaic import Mosaic, MosaicOptions, SourceFile

if TYPE_CHECKING:
    from rasterio.crs import CRS

FILLS = 2
"""Times that the rims of mosaics are filled by the others: by each other, and by what fills."""
COVERAGE = 257
"""Points a side at which the part is looked for that all mosaics cover together."""

ROUNDED = 1e-6
"""Rounding of places, cells."""


class Sources:
    """Heights of files on any grids; it can be pickled."""

    def __init__(self, paths: Sequence[StrPath], options: MosaicOptions) -> None:
        """Read the headers of the files.

        Raises TerrainFileNotFound, TerrainFormatError, and ConfigError for one that needs advice.
        """
        if options.outside is not None:
            finite_number("outside", options.outside, "m")
        grids: list[list[SourceFile]] = []
        for path in paths:
            file = SourceFile.open(path, options)
            files = next((f for f in grids if file.cells_from(f[0]) is not None), None)
            if files is None:
                grids.append([file])
            else:
                files.append(file)

        self.name = str(grids[0][0].path)
        if len(paths) > 1:
            self.name += f" and {len(paths) - 1} more"
        self._outside = options.outside
        if len(grids) > 1:  # what no file has is no part of a mosaic then
            options = replace(options, outside=None)
        self.mosaics: list[Mosaic] = []
        self._layouts: list[RasterLayout] = []
        near = 0.0
        for files in grids:
            self.mosaics.append(Mosaic(files, options, near))
            self._layouts.append(RasterLayout(files[0].path, self.mosaics[-1], None, None))
            near = self._layouts[0].center()[1] / 360.0
        self._sides = [layout.cell_side() for layout in self._layouts]

    @property
    def files(self) -> list[tuple[Mosaic, int, Path]]:
        """Mosaic, number in it and path of each file."""
        return [
            (mosaic, number, file.path)
            for mosaic in self.mosaics
            for number, file in enumerate(mosaic.files)
        ]

    def layout(self, resolution: float | None, size: tuple[float, float] | None) -> RasterLayout:
        """Return where a map lies: by default in the largest rectangle that has files everywhere.

        The cells are those of the finest files, if `resolution` does not say otherwise.
        """
        raster: RasterHeights = self.mosaics[0]
        if len(self.mosaics) > 1:
            resolution = resolution or float(f"{min(self._sides):.4g}")
            raster = self._frame(is_whole=size is not None or self._outside is not None)
        return RasterLayout(self.name, raster, resolution, size)

    def part(
        self,
        layout: RasterLayout,
        target: TargetGrid,
        row: int,
        column: int,
        grid: Grid,
        resampling: Resampling,
    ) -> NDArray[np.float32]:
        """Return heights of a map's part that begins at a cell, as `RasterLayout.part` does."""
        if len(self.mosaics) == 1:
            return layout.part(target, row, column, grid, resampling)
        part = _Part(target.crs, target.origin, grid, target.grid.step_x)
        return self._joined(part, resampling, FILLS, None)

    def _joined(
        self, part: _Part, resampling: Resampling, fills: int, left_out: int | None
    ) -> NDArray[np.float32]:
        """Return heights of the first mosaic that has one, (rows, columns), else NaN.

        fills: times that what they lack is filled. left_out: a mosaic that does not count.
        """
        heights = np.full((part.grid.rows, part.grid.columns), np.nan, np.float32)
        for number in range(len(self.mosaics)):
            missing = np.isnan(heights)
            if number != left_out and missing.any():
                np.copyto(heights, self._warped(number, part, resampling, fills), where=missing)

        missing = np.isnan(heights)
        if self._outside is not None and missing.any():
            rows, columns = np.nonzero(missing)
            x, y = part.grid.centres(rows, columns)
            is_outside = self._count(part.crs, part.near, np.array([x, y])) == 0
            heights[rows[is_outside], columns[is_outside]] = self._outside
        return heights

    def _warped(
        self, number: int, part: _Part, resampling: Resampling, fills: int
    ) -> NDArray[np.float32]:
        """Return heights of a mosaic, whose rim the others fill; NaN where it has none."""
        layout = self._layouts[number]
        mosaic = self.mosaics[number]
        finer = min(1.0, self._sides[number] / part.side)
        margin = KERNEL / finer
        under = layout.cells_under(part.crs, part.near, part.grid, margin)
        rows, columns = (_in_strips(cells, math.ceil(margin)) for cells in under)
        heights = _with_rim(mosaic, rows, columns) if all(under) else np.full((1, 1), np.nan)
        missing = np.isnan(heights)
        if missing.all():
            return np.full((part.grid.rows, part.grid.columns), np.nan, np.float32)

        own = layout.warp(heights, rows, columns, part.crs, part.grid, resampling, finer)
        if not (missing.any() and fills):
            return own
        x, y = mosaic.world(columns.start, rows.start)
        affine = mosaic.transform
        around = Grid(len(rows), len(columns), affine.a, affine.e, x, y)
        middle = mosaic.world(mosaic.columns / 2, mosaic.rows / 2)
        window = _Part(mosaic.crs, middle, around, self._sides[number])
        others = self._joined(window, resampling, fills - 1, number)
        np.copyto(heights, others, where=missing)
        filled = layout.warp(heights, rows, columns, part.crs, part.grid, resampling, finer)
        return np.where(np.isnan(own), own, filled)

    def _count(
        self, crs: CRS, near: tuple[float, float], points: Floats, spare: float = 0.0
    ) -> NDArray[np.int64]:
        """Return how many files have the points of a system, (2, n).

        spare: cells that they reach farther.
        """
        count = np.zeros(points.shape[1], int)
        for mosaic, layout in zip(self.mosaics, self._layouts, strict=True):
            count += mosaic.count(*layout.cells_at(crs, points, near), spare)
        return count

    def _frame(self, is_whole: bool) -> RasterHeights:
        """Return a rectangle of the first mosaic's system: about all files, or on files only."""
        first = self.mosaics[0]
        near = first.world(first.columns / 2, first.rows / 2)
        edges = np.concatenate([layout.edge(first.crs) for layout in self._layouts], axis=1)
        if first.turn:
            edges[0] -= first.turn * np.round((edges[0] - near[0]) / first.turn)
        if not np.isfinite(edges).all():
            raise TerrainFormatError(
                f"{self.name}: too far apart for one flat map; make several of them"
            )
        west, south = edges.min(axis=1).tolist()
        east, north = edges.max(axis=1).tolist()

        if not is_whole:
            x = np.linspace(west, east, COVERAGE)
            y = np.linspace(north, south, COVERAGE)
            points = np.reshape(np.meshgrid(x, y), (2, -1))
            # between centres of cells: of one file, or of two that meet
            covered = self._count(first.crs, near, points, -0.5 + ROUNDED) > 0
            covered |= self._count(first.crs, near, points, 0.5) > 1
            top, bottom, left, right = _largest_rectangle(covered.reshape(COVERAGE, COVERAGE))
            west, east, north, south = x[left], x[right], y[top], y[bottom]
        return _Frame(first, west, east, south, north)


class _Part(NamedTuple):
    """Cells to be computed."""

    crs: CRS
    near: tuple[float, float]
    """A place of this system, on whose side of a turn the cells lie."""
    grid: Grid
    side: float
    """Side of a cell, m."""


class _Frame(RasterHeights):
    """Rectangle of cells without heights, whose outermost centres are its edges."""

    def __init__(
        self, like: RasterHeights, west: float, east: float, south: float, north: float
    ) -> None:
        self.crs = like.crs
        self.turn = like.turn
        self.is_upright = True
        affine = like.transform
        self.columns = max(2, round((east - west) / affine.a) + 1)
        self.rows = max(2, round((south - north) / affine.e) + 1)
        wide = (east - west) / (self.columns - 1)
        high = (south - north) / (self.rows - 1)
        self.transform = type(affine)(wide, 0.0, west - wide / 2, 0.0, high, north - high / 2)
        self.goes_round = bool(self.turn) and self.columns * wide >= self.turn


def _in_strips(cells: range, margin: int) -> range:
    """Return cells and a margin, in whole strips, so that parts agree about what fills them."""
    first = (cells.start - margin) // STRIP_COLUMNS
    end = -((-cells.stop - margin) // STRIP_COLUMNS)
    return range(first * STRIP_COLUMNS, end * STRIP_COLUMNS)


def _with_rim(raster: RasterHeights, rows: range, columns: range) -> NDArray[np.float32]:
    """Return heights of cells, NaN beyond the raster."""
    heights = np.full((len(rows), len(columns)), np.nan, np.float32)
    own_rows = range(max(rows.start, 0), min(rows.stop, raster.rows))
    own_columns = range(max(columns.start, 0), min(columns.stop, raster.columns))
    if raster.goes_round:
        own_columns = columns
    heights[
        own_rows.start - rows.start : own_rows.stop - rows.start,
        own_columns.start - columns.start : own_columns.stop - columns.start,
    ] = raster.read(own_rows, own_columns)
    return heights


def _largest_rectangle(is_covered: NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return first and last row, first and last column of the largest rectangle that is covered."""
    heights = np.zeros(is_covered.shape[1] + 1, int)
    best = (0, 0, 0, 0, 0)
    for row, covered in enumerate(is_covered):
        # rectangles that end at this row, by the columns' heights
        heights[:-1] = np.where(covered, heights[:-1] + 1, 0)
        lower: list[tuple[int, int]] = []
        for column, height in enumerate(heights.tolist()):
            start = column
            while lower and lower[-1][1] >= height:
                start, high = lower.pop()
                area = high * (column - start)
                best = max(best, (area, row - high + 1, row, start, column - 1))
            lower.append((start, height))
    return best[1:]
