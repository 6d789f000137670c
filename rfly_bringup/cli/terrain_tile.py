# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain tile`: terrain larger than memory, from many elevation models."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.terrain_files import Resampling, void
from rfly_bringup.terminal import progress_bar


@dataclass(frozen=True)
class TileArguments:
    """Arguments and options of `rfly terrain tile`."""

    sources: Annotated[
        list[Path],
        typer.Argument(help="GeoTIFF, .asc, DTED, SRTM .hgt or USGS DEM files, on any grids"),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the new map")]
    resolution: options.ResolutionOption = None
    center: options.CenterOption = options.NO_PAIR
    size: options.SizeOption = options.NO_PAIR
    origin_altitude: Annotated[
        float, typer.Option(metavar="M", help="elevation that becomes z = 0")
    ] = 0.0
    unit: options.UnitOption = None
    nodata: options.NodataOption = None
    fill_nodata: options.FillNodata = False
    outside: Annotated[
        options.MaybeFloat,
        options.optional("height of cells that no file has, such as 0 for the sea", metavar="M"),
    ] = None
    resampling: Annotated[Resampling, typer.Option(help="how new cells are computed")] = (
        Resampling.bilinear
    )
    band: options.BandOption = None
    crs: options.CrsOption = None
    side: Annotated[
        int, typer.Option(metavar="SAMPLES", help="samples a side of a file, a multiple of 32")
    ] = 2048
    jobs: Annotated[
        options.MaybeInt, options.optional("processes (default: one per core)", min=1)
    ] = None
    dask: options.DaskOption = None
    overwrite: options.Overwrite = False


@options.takes(TileArguments)
def tile(given: TileArguments) -> None:
    """Make a map of any size, in tiles, from elevation models.

    They are resampled as by `rfly terrain import`. Where two have a height, the source that is
    named first counts; it fills its holes from the others. Only tiles that are needed are in memory
    later. The same command continues a conversion that was stopped. Needs the extra `geo`.

    Examples:

        rfly terrain tile N46E00*.hgt --out Alps --fill-nodata

        rfly terrain tile dem/*.tif --out Coast --outside 0 --resolution 10 --jobs 4

        rfly terrain tile /data/*.tif --out /data/Coast --dask tcp://10.0.0.5:8786
    """
    options.check_cluster(given.jobs, given.dask)
    from rfly_terrain.tiles.make_tiles import TileOptions, make_tiles
    from rfly_terrain.tiles.mosaic import MosaicOptions

    sources = MosaicOptions(given.band, given.crs, given.unit, void(given.nodata), given.outside)
    how = TileOptions(
        sources,
        resolution=given.resolution,
        center=options.given(given.center, "--center"),
        size=options.given(given.size, "--size"),
        origin_altitude=given.origin_altitude,
        resampling=given.resampling.value,
        side=given.side,
    )
    with progress_bar(f"writing {given.out}", says=True) as progress:
        grid = make_tiles(
            given.sources,
            given.out,
            how,
            fill_nodata=given.fill_nodata,
            overwrite=given.overwrite,
            jobs=given.jobs,
            dask=given.dask,
            progress=progress,
        )
    print(given.out)
    print(
        f"{grid.rows:,} x {grid.columns:,} cells (east x north) of {grid.step_x:g} x "
        f"{grid.step_y:g} m, {(grid.rows - 1) * grid.step_x / 1000:.6g} x "
        f"{(grid.columns - 1) * grid.step_y / 1000:.6g} km, elevations {grid.z_min:.2f} … "
        f"{grid.z_max:.2f} m"
    )
