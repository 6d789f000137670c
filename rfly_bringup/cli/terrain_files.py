# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain import`, `tile` and `export`: maps from and to other file formats."""

from dataclasses import dataclass, replace
from enum import Enum
from math import degrees
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.world import read_world
from rfly_bringup.terminal import progress_bar
from rfly_common.errors import ConfigError

if TYPE_CHECKING:
    from rfly_terrain.files.dem_import import ImportFacts
    from rfly_terrain.files.gaps import Gaps
    from rfly_terrain.height_map.height_map import HeightMap


class Resampling(str, Enum):
    """Methods of computing new cells."""

    nearest = "nearest"
    bilinear = "bilinear"
    cubic = "cubic"
    cubic_spline = "cubic_spline"
    average = "average"


class FirstRow(str, Enum):
    """Edge of the map that an array's first row lies on."""

    north = "north"
    south = "south"


_FOR_RASTERS = (
    "resolution",
    "center",
    "size",
    "origin_altitude",
    "resampling",
    "band",
    "crs",
    "keep_cells",
)
_MOSTLY = 0.9
"""Share of a raster's area below which an import tells how much of it the map covers."""
_FOR_ARRAYS = ("cell_size", "key", "first_row", "geo_origin")


@dataclass(frozen=True, kw_only=True)
class RasterOptions:
    """Options of making a map from elevation models, whole or in tiles."""

    resolution: options.ResolutionOption = None
    center: options.CenterOption = options.NO_PAIR
    size: options.SizeOption = options.NO_PAIR
    unit: options.UnitOption = None
    nodata: options.NodataOption = None
    fill_nodata: options.FillNodata = False
    resampling: Annotated[Resampling, typer.Option(help="how new cells are computed")] = (
        Resampling.bilinear
    )
    band: options.BandOption = None
    crs: options.CrsOption = None
    overwrite: options.Overwrite = False


@dataclass(frozen=True, kw_only=True)
class ImportOptions(RasterOptions):
    """Arguments and options of `rfly terrain import`."""

    source: Annotated[
        Path,
        typer.Argument(help="GeoTIFF, .asc, DTED, SRTM .hgt, USGS DEM, .npy or .npz"),
    ]
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="the new map: NAME makes NAME.png and NAME.txt"),
    ]
    origin_altitude: Annotated[
        str,
        typer.Option(
            metavar="M|ground",
            help="elevation that becomes z = 0; ground: that of the ground at x = y = 0",
        ),
    ] = "0"
    keep_cells: Annotated[
        bool,
        typer.Option(
            "--keep-cells",
            help="keep a metric raster's cells though its scale or north is not true; the map then "
            "names no latitude and longitude",
        ),
    ] = False
    cell_size: Annotated[
        options.Pair,
        typer.Option(metavar="EAST NORTH", show_default=False, help="size of an array's cells, m"),
    ] = options.NO_PAIR
    key: Annotated[options.MaybeText, options.optional("name of the array in an .npz")] = None
    first_row: Annotated[
        FirstRow, typer.Option(help="edge of the map that an array's first row lies on")
    ] = FirstRow.north
    geo_origin: options.GeoOrigin = options.NO_TRIPLE


@options.takes(ImportOptions)
def import_(ctx: typer.Context, given: ImportOptions) -> None:
    """Make an RflySim map (png and txt) from an elevation model or an array.

    A raster in degrees, or whose projection is not true to scale and north at the origin, is
    resampled onto a local grid in metres, whose y is true north. Rasters need the extra `geo`.

    Examples:

        rfly terrain import dem.tif --out map/Alps --origin-altitude ground

        rfly terrain import dem.tif --out Valley --center 46.55 7.98 --size 5000 5000

        rfly terrain import heights.npy --out Dunes --cell-size 2 2
    """
    from rfly_terrain.files.writer import new_files, write_height_map

    ending = given.source.suffix.lower()
    if ending == ".png" or (ending == ".txt" and given.source.with_suffix(".png").exists()):
        raise ConfigError(
            f"{given.source}: no elevation model; a png with a txt of the same name is a map "
            "already, which `rfly terrain info` shows"
        )
    is_array = ending in (".npy", ".npz")
    if is_array:
        options.refuse_options(ctx, "for an array", _FOR_RASTERS)
    else:
        options.refuse_options(ctx, "for a raster, which takes --resolution,", _FOR_ARRAYS)
    new_files(given.out, given.overwrite)  # before a long import

    gaps: list[Gaps] = []
    facts: list[ImportFacts] = []
    terrain = _imported_array(given, gaps) if is_array else _imported_raster(given, facts)
    with options.status(f"writing {given.out}"):
        files = write_height_map(terrain, given.out, overwrite=given.overwrite)
    x_min, x_max, y_min, y_max = terrain.bounds
    print(f"{files.png}\n{files.txt}")
    for each in facts:
        _print_import(each)
    for found in [*gaps, *(each.gaps for each in facts)]:
        _print_gaps(found)
    step = (terrain.z_max - terrain.z_min) / 65_535
    print(
        f"{terrain.rows} x {terrain.columns} cells (east x north) of {terrain.step_x:g} x "
        f"{terrain.step_y:g} m, x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g}, "
        f"z {terrain.z_min:.2f} … {terrain.z_max:.2f} m, heights to ±{step / 2:.2g} m"
    )


def _imported_array(given: ImportOptions, gaps: "list[Gaps]") -> "HeightMap":
    """Return the map of an array; `gaps` gets what it lacked."""
    from rfly_terrain.files.arrays import import_array
    from rfly_terrain.files.raster_file import metres_per_unit
    from rfly_terrain.map_files.search import map_name

    return import_array(
        given.source,
        cell_size=options.given(given.cell_size, "--cell-size"),
        key=given.key,
        first_row=given.first_row.value,
        geo_origin=options.given(given.geo_origin, "--geo-origin"),
        metres=metres_per_unit(given.unit) if given.unit else 1.0,
        nodata=void(given.nodata),
        fill_nodata=given.fill_nodata,
        name=map_name(given.out),
        on_read=gaps.append,
    )


def _imported_raster(given: ImportOptions, facts: "list[ImportFacts]") -> "HeightMap":
    """Return the map of an elevation model; `facts` gets what was done to it."""
    from rfly_terrain.files.dem_import import import_dem
    from rfly_terrain.map_files.search import map_name

    altitude: float | Literal["ground"] = "ground"
    if given.origin_altitude != "ground":
        altitude = _number(given.origin_altitude, "--origin-altitude", "ground")
    with progress_bar(f"reading {given.source.name}", says=True) as progress:
        return import_dem(
            given.source,
            band=given.band,
            resolution=given.resolution,
            center=options.given(given.center, "--center"),
            size=options.given(given.size, "--size"),
            crs=given.crs,
            keep_cells=given.keep_cells,
            unit=given.unit,
            nodata=void(given.nodata),
            origin_altitude=altitude,
            fill_nodata=given.fill_nodata,
            resampling=given.resampling.value,
            name=map_name(given.out),
            progress=progress,
            on_read=facts.append,
        )


def void(nodata: str | None) -> float | Literal["none"] | None:
    """Return the number of --nodata that stands for no height."""
    if nodata is None:
        return None
    return "none" if nodata == "none" else _number(nodata, "--nodata", "none")


def _print_gaps(gaps: "Gaps") -> None:
    """Print which cells were filled, and which heights may be none."""
    from rfly_terrain.files.gaps import plain

    if gaps.missing:
        numbers = ", ".join(map(plain, gaps.voids))
        written = f", as {numbers} stands for none" if numbers else ""
        print(f"{gaps.missing:,} of {gaps.cells:,} cells held no data and were filled{written}")

    for number, cells in gaps.doubtful.items():
        print(
            f"{plain(number)} counts as a height (cells: {cells:,}), though far from all heights "
            f"around it; if it stands for none, say --nodata {plain(number)}"
        )


def _print_import(facts: "ImportFacts") -> None:
    """Print what an import did to a raster's scale, north, place and heights."""
    band, bands = facts.band
    if bands > 1:
        print(f"heights from band {band} of {bands}")
    if facts.metres < 0:
        print("the file holds depths; they became heights below 0")
    if abs(facts.metres) != 1.0:
        print(f"heights in units of {abs(facts.metres):.7g} m became metres")
    if facts.unknown_unit_in:
        print(
            f"lengths are in {facts.unknown_unit_in}, and nothing names the unit of the heights: "
            "read as metres; if they are feet, say --unit ft or --unit us-ft"
        )
    if facts.unshifted_datum:
        print(
            f"the datum {facts.unshifted_datum} was taken as WGS 84, as no shift between them is "
            "known at this place: latitudes and longitudes can be 100 m off; name the survey's "
            'shift with --crs "+proj=… +towgs84=DX,DY,DZ"'
        )
    if facts.share < _MOSTLY:
        print(
            "the raster is turned; the map is the largest upright rectangle within it, "
            f"{facts.share:.0%} of its area"
        )

    axes = facts.axes
    if axes is not None and (facts.is_resampled or facts.is_shifted):
        turn = f"{degrees(axes.north_turn):+.2f}°"
        print(
            f"the raster's north is {turn} from true north, its lengths are {axes.scale:.4f} of "
            f"those on the ground{_shift_text(facts)}: "
            + (
                "resampled with true north and metres"
                if facts.is_resampled
                else "kept, so the map names no latitude and longitude"
            )
        )
    print(
        f"heights are above {facts.vertical_datum}, as the file says"
        if facts.vertical_datum
        else "the file does not say what its heights are above; most models count from sea level"
    )


def _shift_text(facts: "ImportFacts") -> str:
    """Return how far the raster's own cells are from their true places, if that is too far."""
    return f", its cells up to {facts.largest_shift:.3g} m off" if facts.is_shifted else ""


@options.takes(options.MapSource)
def export(
    ctx: typer.Context,
    *,
    out: Annotated[
        options.MaybePath,
        options.optional("file to write: .tif, .npy or .npz", "--out", "-o"),
    ] = None,
    sdf: Annotated[
        options.MaybePath,
        options.optional("folder to write a world of Gazebo (gz sim) into", metavar="FOLDER"),
    ] = None,
    sdf_samples: Annotated[
        options.MaybeInt,
        options.optional(
            "samples of Gazebo's height map on a side, 2ⁿ + 1: 129 … 8193; by default as many as "
            "the map has"
        ),
    ] = None,
    world: Annotated[
        options.MaybeText,
        options.optional(
            "with --sdf: what stands on the map (map: by default the world's)",
            metavar="WORLD",
        ),
    ] = None,
    geo_origin: options.GeoOrigin = options.NO_TRIPLE,
    overwrite: options.Overwrite = False,
    given: options.MapSource,
) -> None:
    """Write a map's heights for other programs: GeoTIFF (GIS, other simulators), NumPy, Gazebo.

    A GeoTIFF holds elevations above sea level if the map (or --geo-origin) gives its place. An .npy
    is a raster, row 0 in the north; an .npz holds heights_up[i, j] at x_east[i], y_north[j]. A
    folder for Gazebo holds world.sdf and the same ground as a model.

    Examples:

        rfly terrain export --out jacksboro.tif

        rfly terrain export MountainTerrain --out mountain.npz

        rfly terrain export MountainTerrain --sdf mountain

        rfly terrain export --sdf village --world village
    """
    if out is None and sdf is None:
        raise typer.BadParameter("give --out FILE, --sdf FOLDER or both")
    if sdf_samples is not None and sdf is None:
        raise typer.BadParameter("--sdf-samples is for --sdf FOLDER")
    if world is not None and sdf is None:
        raise typer.BadParameter("--world is for --sdf FOLDER")

    options.check_target(out, overwrite)

    # the map, placed on the earth
    placed, folders = read_world(world, given.search_path)
    is_chosen = given.map_name is not None or options.on_command_line(ctx, "name")
    if placed.map and not is_chosen:
        given = replace(given, name=placed.map, search_path=folders)
    terrain = given.load()
    origin = options.given(geo_origin, "--geo-origin")
    if origin is not None:
        terrain = _at_place(terrain, origin)

    if out is not None:
        _write_heights(terrain, out)
        print(out)

    if sdf is not None:
        from rfly_terrain.exports.sdf import write_gazebo_world

        with options.status(f"writing {sdf}"):
            files = write_gazebo_world(
                terrain,
                sdf,
                side=sdf_samples,
                world=placed if world else None,
                overwrite=overwrite,
            )
        print(files.world)
        print(f"{files.side} x {files.side} samples, at most {files.error:.2g} m off the map's own")


def _write_heights(terrain: "HeightMap", out: Path) -> None:
    """Write heights in the format of the file's ending. Raise ConfigError for another one."""
    from rfly_terrain.files.arrays import write_npy, write_npz

    ending = out.suffix.lower()
    with options.status(f"writing {out}"):
        if ending in (".tif", ".tiff"):
            from rfly_terrain.exports.geotiff import write_geotiff

            write_geotiff(terrain, out)
        elif ending == ".npy":
            write_npy(terrain, out)
        elif ending == ".npz":
            write_npz(terrain, out)
        else:
            raise ConfigError(
                f"{out}: heights are written as .tif, .npy or .npz; `rfly terrain cloud` writes "
                "clouds"
            )


def _number(text: str, flag: str, word: str) -> float:
    """Return the number of an option that also takes a word. Raise BadParameter."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{flag} {text!r}: expected a number or the word {word}") from None


def _at_place(terrain: "HeightMap", geo_origin: tuple[float, float, float]) -> "HeightMap":
    """Return the heights with another geodetic origin."""
    from rfly_common.geodesy import geo_point
    from rfly_terrain.height_map.height_map import HeightMap

    return HeightMap(
        terrain.heights,
        origin_x=terrain.origin_x,
        origin_y=terrain.origin_y,
        step_x=terrain.step_x,
        step_y=terrain.step_y,
        name=terrain.name,
        geo_origin=geo_point(geo_origin, "--geo-origin"),
        files=terrain.files,
    )


@dataclass(frozen=True, kw_only=True)
class TileArguments(RasterOptions):
    """Arguments and options of `rfly terrain tile`."""

    sources: Annotated[
        list[Path],
        typer.Argument(help="GeoTIFF, .asc, DTED, SRTM .hgt or USGS DEM files, on any grids"),
    ]
    out: Annotated[Path, typer.Option("--out", "-o", help="the folder of the new map")]
    origin_altitude: Annotated[
        float, typer.Option(metavar="M", help="elevation that becomes z = 0")
    ] = 0.0
    outside: Annotated[
        options.MaybeFloat,
        options.optional("height of cells that no file has, such as 0 for the sea", metavar="M"),
    ] = None
    side: Annotated[
        int, typer.Option(metavar="SAMPLES", help="samples a side of a file, a multiple of 32")
    ] = 2048
    jobs: Annotated[
        options.MaybeInt, options.optional("processes (default: one per core)", min=1)
    ] = None
    dask: options.DaskOption = None


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
