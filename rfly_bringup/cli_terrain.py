"""`rfly terrain`: look at maps, ask them for altitudes, and carry them from and to other programs' files."""

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar

import typer

from rfly_common.errors import ConfigError

if TYPE_CHECKING:
    from rfly_terrain.height_map import HeightMap
    from rfly_terrain.map_files import RflySimMap

DEMO_MAP = "JacksboroFault"

terrain_app = typer.Typer(
    help="Maps of RflySim: what they hold, altitudes, clouds, pictures; made from and into other files.\n\n"
    "MAP is a name (looked for in ./map, the current folder, CopterSim's map folders and the maps that come with this "
    "package) or the path of a map's png or txt.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


# typer 0.9 (Ubuntu 24.04) reads Optional[...] but not `... | None`, and no annotations that are still text: this module
# has no `from __future__ import annotations`
MaybeFloat = Optional[float]  # noqa: UP045
MaybeText = Optional[str]  # noqa: UP045
MaybeTexts = Optional[list[str]]  # noqa: UP045
Pair = tuple[float, float]
Triple = tuple[float, float, float]
Quadruple = tuple[float, float, float, float]
# typer 0.9 cannot have None as the default of a tuple, so all NaN stands for an option that was not given
NO_PAIR: Pair = (math.nan,) * 2
NO_TRIPLE: Triple = (math.nan,) * 3
NO_QUADRUPLE: Quadruple = (math.nan,) * 4
Numbers = TypeVar("Numbers", Pair, Triple, Quadruple)


class Frame(str, Enum):
    """map: x east, y north, z up. map_ned: x north, y east, z down."""

    map = "map"
    map_ned = "map_ned"


class ThirdPixel(str, Enum):
    """How the third point of the txt becomes a pixel."""

    truncate = "truncate"
    round = "round"


class Resampling(str, Enum):
    """How new cells are worked out."""

    nearest = "nearest"
    bilinear = "bilinear"
    cubic = "cubic"
    cubic_spline = "cubic_spline"
    average = "average"


class FirstRow(str, Enum):
    """The edge that an array's first row is."""

    north = "north"
    south = "south"


MapArgument = Annotated[str, typer.Argument(metavar="MAP", help="name or path of the map")]
MapOption = Annotated[str, typer.Option("--map", "-m", metavar="MAP", help="name or path of the map")]
SearchPath = Annotated[
    MaybeTexts, typer.Option("--search-path", metavar="FOLDER", help="a folder to look in first; may be repeated")
]
ThirdPixelOption = Annotated[
    ThirdPixel,
    typer.Option(
        help="the third point's pixel: truncate as RflySim's Python tool, round as MATLAB's", show_choices=True
    ),
]
FrameOption = Annotated[Frame, typer.Option(help="map: x east, y north, z up; map_ned: x north, y east, z down")]
RegionOption = Annotated[
    Quadruple,
    typer.Option(metavar="X_MIN X_MAX Y_MIN Y_MAX", show_default=False, help="only this part (m, east and north)"),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace files that exist")]
GeoOrigin = Annotated[
    Triple,
    typer.Option(
        metavar="LAT LON ALT", show_default=False, help="latitude, longitude (degrees), altitude (m) of x = y = z = 0"
    ),
]


def _coordinate(text: str) -> float:
    if not _is_number(text) or not math.isfinite(float(text)):
        raise typer.BadParameter(f"{text!r}: expected a finite number of metres")
    return float(text)


@terrain_app.command()
def info(
    name: MapArgument = DEMO_MAP,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
) -> None:
    """Show what a map's two files say: size, extent, cells, heights, calibration.

    Examples:

        rfly terrain info

        rfly terrain info MountainTerrain --third-pixel round

        rfly terrain info ./map/MyTerrain.png --json
    """
    rfly_map = _read(name, search_path, third_pixel)
    facts = _facts(rfly_map)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=rfly_map.files.name, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    for key, value in _in_words(facts):
        table.add_row(key, value)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@terrain_app.command(context_settings={"ignore_unknown_options": True})  # so that -3.5 is a number
def query(
    x: Annotated[
        MaybeFloat, typer.Argument(metavar="X", parser=_coordinate, help="m; east in map, north in map_ned")
    ] = None,
    y: Annotated[
        MaybeFloat, typer.Argument(metavar="Y", parser=_coordinate, help="m; north in map, east in map_ned")
    ] = None,
    map_name: MapOption = DEMO_MAP,
    frame: FrameOption = Frame.map,
    normal: Annotated[bool, typer.Option("--normal", help="also the unit normal of the ground")] = False,
    points: Annotated[
        MaybeText, typer.Option("--points", metavar="FILE", help="a CSV of x,y instead of one point; - reads stdin")
    ] = None,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
) -> None:
    """Altitude of the ground at one point or at many; outside the map that of its edge, and `inside` says so.

    Many points come as lines of x,y (a heading is fine) and leave as CSV.

    Examples:

        rfly terrain query 120 -35.5

        rfly terrain query 10 -3.5 --frame map_ned --normal --map MountainTerrain

        rfly terrain query --points path.csv > altitudes.csv
    """
    if points is not None and x is None:
        return _query_many(map_name, search_path, third_pixel, frame, normal, points)
    if x is None or y is None or points is not None:
        raise typer.BadParameter("give one point, X and Y in metres, or --points FILE")
    terrain = _load(map_name, search_path, third_pixel)
    ask = terrain.query if frame is Frame.map else terrain.query_ned
    answer = ask(x, y, want_normals=normal)
    axes = "z up" if frame is Frame.map else "z down"
    print(f"altitude  {answer.altitude:.4f} m ({axes}, frame {frame.value})")
    print("inside    " + ("yes" if answer.inside else "no: the altitude is that of the map's edge"))
    if answer.normal is not None:
        print("normal    " + " ".join(f"{n:.6f}" for n in answer.normal))
    return None


@terrain_app.command()
def cloud(
    name: MapArgument = DEMO_MAP,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="file to write: .ply, .pcd, .npy or .xyz")],
    stride: Annotated[int, typer.Option(min=1, help="every n-th point of each axis")] = 1,
    region: RegionOption = NO_QUADRUPLE,
    frame: FrameOption = Frame.map,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
) -> None:
    """Write a map as a point cloud, for CloudCompare, Open3D, PCL and NumPy.

    Examples:

        rfly terrain cloud --out terrain.ply

        rfly terrain cloud MountainTerrain --out near.pcd --stride 2 --region -500 500 -500 500
    """
    from rfly_terrain.cloud_files import write_cloud

    part = _given(region, "--region")
    _check_target(out, overwrite)
    terrain = _load(name, search_path, third_pixel)
    try:
        points = (terrain.point_cloud if frame is Frame.map else terrain.point_cloud_ned)(stride, part)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with _status(f"writing {out}"):
        write_cloud(points, out)
    print(f"{out}: {points.shape[0]} x {points.shape[1]} points, frame {frame.value}")


@terrain_app.command()
def plot(
    name: MapArgument = DEMO_MAP,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="picture to write: .png, .pdf, .svg, .jpg …")],
    region: RegionOption = NO_QUADRUPLE,
    exaggeration: Annotated[
        MaybeFloat, typer.Option(min=0.01, max=1000.0, help="of the shading; by default chosen for contrast")
    ] = None,
    title: Annotated[MaybeText, typer.Option(help="by default the map's name")] = None,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
) -> None:
    """Draw a shaded relief with contours, axes in metres and a colour bar.

    Examples:

        rfly terrain plot JacksboroFault --out relief.png

        rfly terrain plot MountainTerrain --out start.pdf --region -200 200 -200 200
    """
    from rfly_terrain.relief import write_relief

    part = _given(region, "--region")
    _check_target(out, overwrite)
    terrain = _load(name, search_path, third_pixel)
    with _status(f"drawing {out}"):
        try:
            write_relief(terrain, out, region=part, vertical_exaggeration=exaggeration, title=title)
        except ConfigError:
            raise
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    print(out)


@terrain_app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(help="GeoTIFF or any other raster of GDAL, .npy or .npz")],
    out: Annotated[Path, typer.Option("--out", "-o", help="the new map: NAME makes NAME.png and NAME.txt")],
    resolution: Annotated[MaybeFloat, typer.Option(help="cell size, m; by default the raster's own")] = None,
    center: Annotated[
        Pair,
        typer.Option(
            metavar="LAT LON", show_default=False, help="place of x = y = 0 (degrees); by default the raster's middle"
        ),
    ] = NO_PAIR,
    size: Annotated[
        Pair, typer.Option(metavar="EAST NORTH", show_default=False, help="only this much around the center, m")
    ] = NO_PAIR,
    origin_altitude: Annotated[
        str,
        typer.Option(metavar="M|ground", help="elevation that becomes z = 0; ground: that of the ground at x = y = 0"),
    ] = "0",
    fill_nodata: Annotated[bool, typer.Option("--fill-nodata", help="interpolate cells without data")] = False,
    resampling: Annotated[Resampling, typer.Option(help="how new cells are worked out")] = Resampling.bilinear,
    band: Annotated[int, typer.Option(min=1, help="of the raster")] = 1,
    crs: Annotated[
        MaybeText, typer.Option(metavar="EPSG:N", help="what the raster's coordinates are, where it does not say")
    ] = None,
    local_grid: Annotated[
        bool, typer.Option("--local-grid", help="true north for a metric raster too: resample it")
    ] = False,
    cell_size: Annotated[
        Pair, typer.Option(metavar="EAST NORTH", show_default=False, help="of an array's cells, m")
    ] = NO_PAIR,
    key: Annotated[MaybeText, typer.Option(help="the array of an .npz")] = None,
    first_row: Annotated[FirstRow, typer.Option(help="the edge that an array's first row is")] = FirstRow.north,
    geo_origin: GeoOrigin = NO_TRIPLE,
    overwrite: Overwrite = False,
) -> None:
    """Make an RflySim map (png and txt) from an elevation model or an array.

    A raster in degrees is brought onto a local metric grid. Rasters need rasterio: pip install 'rfly_suite[geo]'.

    Examples:

        rfly terrain import dem.tif --out map/Alps --origin-altitude ground

        rfly terrain import dem.tif --out Valley --center 46.55 7.98 --size 5000 5000 --resolution 10

        rfly terrain import heights.npy --out Dunes --cell-size 2 2
    """
    from rfly_terrain.map_writer import write_height_map

    cell, place = _given(cell_size, "--cell-size"), _given(geo_origin, "--geo-origin")
    if source.suffix.lower() in (".npy", ".npz"):
        from rfly_terrain.array_files import import_array

        terrain = import_array(
            source, cell_size=cell, key=key, first_row=first_row.value, geo_origin=place, name=out.stem
        )
    else:
        from rfly_terrain.dem_import import import_dem

        if cell or key or place:
            raise typer.BadParameter(
                "--cell-size, --key and --geo-origin are for .npy and .npz; a raster has --resolution"
            )
        with _progress(f"reading {source.name}") as progress:
            terrain = import_dem(
                source,
                band=band,
                resolution=resolution,
                center=_given(center, "--center"),
                size=_given(size, "--size"),
                crs=crs,
                local_grid=local_grid,
                origin_altitude="ground" if origin_altitude == "ground" else _metres(origin_altitude),
                fill_nodata=fill_nodata,
                resampling=resampling.value,
                name=out.stem,
                progress=progress,
            )
    with _status(f"writing {out}"):
        files = write_height_map(terrain, out, overwrite=overwrite)
    x_min, x_max, y_min, y_max = terrain.bounds
    print(f"{files.png}\n{files.txt}")
    print(
        f"{terrain.rows} x {terrain.columns} cells (east x north) of {terrain.step_x:g} x {terrain.step_y:g} m, "
        f"x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g}, z {terrain.z_min:.2f} … {terrain.z_max:.2f} m, "
        f"heights to ±{(terrain.z_max - terrain.z_min) / 65_535 / 2:.2g} m"
    )


@terrain_app.command()
def export(
    name: MapArgument = DEMO_MAP,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="file to write: .tif, .npy or .npz")],
    geo_origin: GeoOrigin = NO_TRIPLE,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
) -> None:
    """Write a map's heights for other programs: GeoTIFF (GIS, other simulators), NumPy.

    A GeoTIFF holds elevations above sea level where the map (or --geo-origin) says where it lies. An .npy is a raster,
    row 0 in the north; an .npz holds heights_up[i, j] at x_east[i], y_north[j].

    Examples:

        rfly terrain export --out jacksboro.tif

        rfly terrain export MountainTerrain --out mountain.npz
    """
    from rfly_terrain.array_files import write_npy, write_npz

    _check_target(out, overwrite)
    terrain = _load(name, search_path, third_pixel)
    place = _given(geo_origin, "--geo-origin")
    if place is not None:
        terrain = _at_place(terrain, place)
    ending = out.suffix.lower()
    with _status(f"writing {out}"):
        if ending in (".tif", ".tiff"):
            from rfly_terrain.dem_export import write_geotiff

            write_geotiff(terrain, out)
        elif ending == ".npy":
            write_npy(terrain, out)
        elif ending == ".npz":
            write_npz(terrain, out)
        else:
            raise ConfigError(f"{out}: heights are written as .tif, .npy or .npz; `rfly terrain cloud` writes clouds")
    print(out)


def _read(name: str, search_path: list[str] | None, third_pixel: ThirdPixel) -> "RflySimMap":
    from rfly_terrain.map_files import find_map, read_map

    return read_map(find_map(name, search_path or ()), third_pixel.value)


def _load(name: str, search_path: list[str] | None, third_pixel: ThirdPixel) -> "HeightMap":
    from rfly_terrain.map_files import to_height_map

    return to_height_map(_read(name, search_path, third_pixel))


def _facts(rfly_map: "RflySimMap") -> dict[str, Any]:
    from rfly_terrain.map_files import read_header, to_height_map

    c, terrain = rfly_map.calibration, to_height_map(rfly_map)
    return {
        "png": str(rfly_map.files.png),
        "txt": str(rfly_map.files.txt),
        "pixels": read_header(rfly_map.files.png).colour_name,
        "rows": c.rows,
        "columns": c.columns,
        "bounds_enu_m": terrain.bounds,
        "cell_m": [abs(terrain.step_x), abs(terrain.step_y)],
        "z_up_m": [terrain.z_min, terrain.z_max],
        "z_scale_cm": c.z_scale_cm,
        "z_scale_from": c.z_scale_from,
        "third_pixel": [c.third_row, c.third_column],
        "pos_offset_cm": [c.pos_offset_x_cm, c.pos_offset_y_cm],
        "pos_scale_cm": [c.pos_scale_x_cm, c.pos_scale_y_cm],
        "gps": c.points.gps,
        "geo_origin": terrain.geo_origin,
        "sha256": terrain.sha256,
    }


def _in_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    x_min, x_max, y_min, y_max = facts["bounds_enu_m"]
    corner = facts["z_scale_from"]
    calibrated = (
        "third point and " + corner + " corner" if corner != "default" else "default: third point within 10 counts"
    )
    gps = "none"
    if facts["gps"] is not None:
        meaning = "read as latitude, longitude, altitude" if facts["geo_origin"] else "no latitude, longitude, altitude"
        gps = f"{', '.join(f'{value:.10g}' for value in facts['gps'])} ({meaning})"
    return [
        ("png", f"{facts['png']} ({facts['pixels']})"),
        ("txt", facts["txt"]),
        ("cells", f"{facts['rows']} rows (east) x {facts['columns']} columns (north)"),
        ("cell", f"{facts['cell_m'][0]:.6g} m east x {facts['cell_m'][1]:.6g} m north"),
        ("x east", f"{x_min:.8g} … {x_max:.8g} m  ({x_max - x_min:.6g} m)"),
        ("y north", f"{y_min:.8g} … {y_max:.8g} m  ({y_max - y_min:.6g} m)"),
        ("z up", f"{facts['z_up_m'][0]:.3f} … {facts['z_up_m'][1]:.3f} m"),
        ("z scale", f"{facts['z_scale_cm']:.6g} cm a count ({calibrated})"),
        ("third pixel", f"row {facts['third_pixel'][0]}, column {facts['third_pixel'][1]}"),
        ("GPS", gps),
        ("sha256", facts["sha256"]),
    ]


def _query_many(
    map_name: str, search_path: list[str] | None, third_pixel: ThirdPixel, frame: Frame, normal: bool, points: str
) -> None:
    import numpy as np

    xy = _read_points(points)
    terrain = _load(map_name, search_path, third_pixel)
    ask = terrain.query if frame is Frame.map else terrain.query_ned
    answer = ask(xy[:, 0], xy[:, 1], want_normals=normal)
    columns = [xy, answer.altitude[:, None], answer.inside[:, None]]
    header, formats = "x,y,altitude,inside", ["%.10g", "%.10g", "%.4f", "%d"]
    if answer.normal is not None:
        columns.append(answer.normal)
        header, formats = header + ",nx,ny,nz", formats + ["%.6f"] * 3
    np.savetxt(sys.stdout, np.hstack(columns), fmt=formats, delimiter=",", header=header, comments="")


def _read_points(source: str) -> Any:
    """(n, 2) float64 from lines of x,y; one heading and further columns are skipped."""
    import numpy as np

    where = "stdin" if source == "-" else source
    lines = (
        sys.stdin.read().splitlines() if source == "-" else Path(source).read_text(encoding="utf-8-sig").splitlines()
    )
    rows = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if rows and not _is_number(rows[0].replace(";", ",").replace(",", " ").split()[0]):
        rows = rows[1:]
    if not rows:
        raise ConfigError(f"{where}: no points, expected lines of x,y in metres")
    delimiter = "," if "," in rows[0] else ";" if ";" in rows[0] else None
    try:
        xy = np.loadtxt(rows, delimiter=delimiter, usecols=(0, 1), ndmin=2)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}; expected lines of x,y in metres") from None
    wrong = np.flatnonzero(~np.isfinite(xy).all(axis=1))
    if wrong.size:
        raise ConfigError(
            f"{where}: point {int(wrong[0]) + 1} is {rows[int(wrong[0])].strip()!r}, expected finite metres"
        )
    return xy


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _given(values: Numbers, option: str) -> Numbers | None:
    """The numbers of an option, None where it was not given."""
    if all(map(math.isnan, values)):
        return None
    if not all(map(math.isfinite, values)):
        raise typer.BadParameter(f"{option} {' '.join(map(str, values))}: expected finite numbers")
    return values


def _metres(text: str) -> float:
    if not _is_number(text):
        raise typer.BadParameter(f"--origin-altitude {text!r}: expected metres or the word ground")
    return float(text)


def _at_place(terrain: "HeightMap", geo_origin: tuple[float, float, float]) -> "HeightMap":
    from rfly_common.geodesy import geo_point
    from rfly_terrain.height_map import HeightMap

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


def _check_target(out: Path, overwrite: bool) -> None:
    if out.exists() and not overwrite:
        raise FileExistsError(f"{out} exists; choose another name or add --overwrite")


def _status(text: str) -> Any:
    """A spinner on stderr while something long runs; nothing where stderr is no terminal."""
    from rich.console import Console

    return Console(stderr=True).status(text)


@contextmanager
def _progress(text: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr that is given shares, 0 … 1."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda share: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda share: bar.update(task, completed=share)
