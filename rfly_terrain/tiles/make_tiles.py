# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tiles from elevation models: a mosaic, resampled like an import, file by file in processes.

Each file is written under another name and then renamed, and the manifest last. A conversion that
was stopped goes on with the files that lack. CONVERSION in the folder names what was converted, and
which numbers of the sources stand for no height.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError, TerrainError, TerrainFormatError
from rfly_common.files import MAX_CELLS, StrPath, read_regular, sole_writer, write_text, write_whole
from rfly_common.geodesy import geo_point
from rfly_common.threads.processes import in_parallel
from rfly_terrain.files.gaps import fill_gaps
from rfly_terrain.files.raster_file import open_raster, rasterio_module
from rfly_terrain.files.raster_layout import (
    STRIP_COLUMNS,
    RasterLayout,
    Resampling,
    TargetGrid,
    check_arguments,
    check_grid,
)
from rfly_terrain.height_map.grid import Grid
from rfly_terrain.tiles.mosaic import MosaicOptions
from rfly_terrain.tiles.sources import Sources
from rfly_terrain.tiles.tile_files import (
    MANIFEST,
    MAX_SAMPLES,
    MAX_SIDE,
    TILE_NAMES,
    TileGrid,
    manifest_text,
    tile_data,
    tile_name,
)

CONVERSION = "conversion.json"
"""Name of the record of a conversion that is not done."""
SIDE = 2048
"""Samples a side of a file: 16 MB of heights."""
MARGIN = 2 * STRIP_COLUMNS
"""Samples around a file in which the rim of a hole is looked for at first."""
MAX_WINDOW = MAX_CELLS // 4
"""Samples within which a hole must have its rim."""


@dataclass(frozen=True)
class TileOptions:
    """Options of making tiles; those that `import_dem` has too are explained there."""

    sources: MosaicOptions = field(default_factory=MosaicOptions)
    resolution: float | None = None
    center: tuple[float, float] | None = None
    size: tuple[float, float] | None = None
    origin_altitude: float = 0.0
    resampling: Resampling = "bilinear"
    side: int = SIDE


@dataclass(frozen=True)
class TilePlan:
    """Places of the samples of tiles in their sources."""

    sources: Sources
    layout: RasterLayout
    target: TargetGrid
    grid: TileGrid
    folder: Path
    resampling: Resampling
    fills_gaps: bool

    @property
    def files(self) -> list[tuple[int, int]]:
        """Number from the west and from the south of each file."""
        rows, columns = (-(-n // self.grid.side) for n in (self.grid.rows, self.grid.columns))
        return [(i, j) for i in range(rows) for j in range(columns)]

    def heights(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return elevations, m, NaN without data, row 0 in the north.

        rows and columns are those of the terrain, eastwards and northwards.
        """
        whole = self.target.grid
        north = whole.rows - columns.stop
        x, y = whole.positions(rows.start, north)
        part = Grid(len(columns), len(rows), whole.step_x, whole.step_y, x, y)
        return self.sources.part(self.layout, self.target, north, rows.start, part, self.resampling)

    def filled(self, rows: range, columns: range) -> NDArray[np.float32]:
        """Return elevations without gaps, which are filled as in the whole map.

        A hole is filled from its rim alone: the window grows until it holds the rims of all holes
        that reach into these samples. Raises TerrainFormatError for gaps that are not to be filled.
        """
        from scipy.ndimage import label

        heights = self.heights(rows, columns)
        missing = int(np.count_nonzero(np.isnan(heights)))
        if not missing:
            return heights
        if not self.fills_gaps:
            raise TerrainFormatError(
                f"{self.layout.path}: {missing:,} of the {heights.size:,} cells from "
                f"{rows.start}, {columns.start} hold no data; the same command goes on with "
                "--fill-nodata, which interpolates them, or anew with --outside M, the height of "
                "cells that no file has"
            )

        margin = MARGIN
        while True:
            wide = range(max(rows.start - margin, 0), min(rows.stop + margin, self.grid.rows))
            high = range(
                max(columns.start - margin, 0), min(columns.stop + margin, self.grid.columns)
            )
            if len(wide) * len(high) > MAX_WINDOW:
                raise TerrainFormatError(
                    f"{self.layout.path}: a hole about the cells from {rows.start}, "
                    f"{columns.start} is too large to be interpolated; --outside M sets cells that "
                    "no file has"
                )
            heights = self.heights(wide, high)
            here = np.s_[
                high.stop - columns.stop : high.stop - columns.start,
                rows.start - wide.start : rows.stop - wide.start,
            ]
            holes, _ = label(np.isnan(heights))
            own = np.setdiff1d(holes[here], 0)
            open_sides = [
                side
                for side, is_open in (
                    (holes[0], high.stop < self.grid.columns),
                    (holes[-1], high.start > 0),
                    (holes[:, 0], wide.start > 0),
                    (holes[:, -1], wide.stop < self.grid.rows),
                )
                if is_open
            ]
            if not np.isin(own, np.concatenate(open_sides or [own[:0]])).any():
                break
            margin *= 4

        # the other holes of the window need no heights here
        heights[(holes > 0) & ~np.isin(holes, own)] = 0.0
        if np.isnan(heights).all():
            raise TerrainFormatError(f"{self.layout.path}: no cell has data where the map would be")
        fill_gaps(heights)
        return heights[here]

    def write(self, i: int, j: int) -> tuple[float, float]:
        """Write a file unless it is there, and return its lowest and highest elevation, m."""
        path = self.folder / tile_name(i, j)
        found = _range_in(path)
        if found is not None:
            return found

        side = self.grid.side
        rows = range(i * side, min((i + 1) * side, self.grid.rows))
        columns = range(j * side, min((j + 1) * side, self.grid.columns))
        heights = self.filled(rows, columns)
        low, high = float(heights.min()), float(heights.max())

        whole = self.target.grid
        x, y = whole.positions(rows.start, whole.rows - columns.stop)
        corner = rasterio_module().transform.from_origin(x, y, whole.step_x, -whole.step_y)
        tags = {"z_min": repr(low), "z_max": repr(high)}
        write_whole(path, tile_data(heights, self.target.crs, corner, tags))
        return low, high

    def find_voids(self, number: int) -> list[float] | None:
        """Return the heights of a source that stand for none."""
        mosaic, own_number, _ = self.sources.files[number]
        return mosaic.find_voids(own_number)[1]


def make_tiles(
    sources: Sequence[StrPath],
    folder: StrPath,
    options: TileOptions,
    *,
    fill_nodata: bool = False,
    overwrite: bool = False,
    jobs: int | None = None,
    dask: Any = None,
    progress: Callable[[float], None] = lambda share: None,
) -> TileGrid:
    """Write a folder of tiles from elevation models; return its grid.

    Where two have a height, the first one counts.

    `jobs`: processes, by default one per core. `dask`: a cluster in place of them, as `on_dask`
    takes it, whose workers see the same files. A conversion of the same sources and options that
    was stopped is continued. Raises FileExistsError if the folder holds another one or another
    process writes there, TerrainFileNotFound, TerrainFormatError (a source), ConfigError (an
    argument).
    """
    check_arguments(options.resolution, options.size, options.center)
    if options.side % STRIP_COLUMNS or not STRIP_COLUMNS <= options.side <= MAX_SIDE:
        raise ConfigError(
            f"side {options.side}: expected a multiple of {STRIP_COLUMNS} up to {MAX_SIDE:,}"
        )
    if not sources:
        raise ConfigError("no sources: name the files of an elevation model")
    place = Path(folder).absolute()
    plan = _planned(Sources(sources, options.sources), place, options, fill_nodata)
    tiles = place / "tiles"
    for _, _, path in plan.sources.files:
        if path.resolve().is_relative_to(tiles.resolve()):
            raise ConfigError(f"{path}: lies among the tiles to be written")

    tiles.mkdir(parents=True, exist_ok=True)
    with sole_writer(tiles, waits=False):
        return _converted(plan, options, overwrite, jobs, dask, progress)


def _converted(
    plan: TilePlan,
    options: TileOptions,
    overwrite: bool,
    jobs: int | None,
    dask: Any,
    progress: Callable[[float], None],
) -> TileGrid:
    """Write the tiles that lack, and then the manifest; return its grid."""
    record = plan.folder / CONVERSION
    digest = _digest(plan, options)
    voids = _begin(plan.folder, digest, overwrite)

    # numbers that stand for no height, and then the tiles
    files = plan.sources.files
    surveyed = len(files) if voids is None and options.sources.nodata != "none" else 0
    total = surveyed + len(plan.files)
    done = itertools.count(1)

    def report(_task: int, _result: Any) -> None:
        progress(next(done) / total)

    if surveyed:
        sources = [(number,) for number in range(surveyed)]
        voids = in_parallel(TilePlan.find_voids, sources, report, plan, jobs=jobs, dask=dask)
        _write_record(record, digest, voids)
    if voids is not None:
        for (mosaic, number, _), found in zip(files, voids, strict=True):
            mosaic.files[number] = replace(mosaic.files[number], voids=found)
    ranges = in_parallel(TilePlan.write, plan.files, report, plan, jobs=jobs, dask=dask)

    low, high = zip(*ranges, strict=True)
    grid = replace(plan.grid, z_min=min(low), z_max=max(high))
    write_text(plan.folder / MANIFEST, manifest_text(grid))
    record.unlink()
    return grid


def _planned(sources: Sources, folder: Path, options: TileOptions, fills_gaps: bool) -> TilePlan:
    """Return where the tiles lie."""
    layout = sources.layout(options.resolution, options.size)
    center = options.center
    latitude, longitude = layout.center() if center is None else center
    longitude -= 360.0 * round(longitude / 360.0)
    target = layout.target(layout.own_cells(center), latitude, longitude)
    check_grid(target.grid, sources.name, MAX_SAMPLES)

    geo_origin = geo_point((latitude, longitude, options.origin_altitude), "origin")
    grid = TileGrid.of_raster(target.grid, target.origin, geo_origin, (0.0, 0.0), options.side)
    return TilePlan(sources, layout, target, grid, folder, options.resampling, fills_gaps)


def _begin(folder: Path, digest: str, overwrite: bool) -> list[Any] | None:
    """Prepare the folder, or find the conversion there; return the voids that it has found."""
    record = folder / CONVERSION
    if overwrite:
        for file in (folder / MANIFEST, record, *(folder / "tiles").glob(TILE_NAMES)):
            file.unlink(missing_ok=True)
    if (folder / MANIFEST).exists():
        raise FileExistsError(f"{folder} holds tiles; choose another name or add --overwrite")

    for part in (folder / "tiles").glob(".*.part"):  # of a conversion that was killed
        part.unlink()
    found = None
    with suppress(OSError, ValueError):
        found = json.loads(read_regular(record, 1 << 28))
    if isinstance(found, dict) and found.get("digest") == digest:
        return found.get("voids")
    if record.exists() or any((folder / "tiles").glob(TILE_NAMES)):
        raise FileExistsError(
            f"{folder} holds a part of other tiles; choose another name or add --overwrite"
        )
    _write_record(record, digest, None)
    return None


def _write_record(record: Path, digest: str, voids: list[Any] | None) -> None:
    """Write CONVERSION."""
    write_text(record, json.dumps({"digest": digest, "voids": voids}) + "\n")


def _digest(plan: TilePlan, options: TileOptions) -> str:
    """Return the digest of a conversion: of its sources, their sizes and times, and options."""
    facts = [repr(options), repr(plan.grid)]
    for _, _, path in plan.sources.files:
        status = os.stat(path)
        facts.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _range_in(path: Path) -> tuple[float, float] | None:
    """Return the lowest and highest elevation of a file that is done; None for any other."""
    try:
        with open_raster(path) as dataset:
            tags = dataset.tags()
        return float(tags["z_min"]), float(tags["z_max"])
    except (TerrainError, KeyError, ValueError):
        return None
