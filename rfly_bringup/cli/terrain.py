# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain`: inspection, altitude queries, import and export of maps."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.terrain_files import export, import_, tile
from rfly_bringup.cli.terrain_sight import LatLonOption, positions, profile, viewshed
from rfly_bringup.terminal import printable
from rfly_common.errors import ConfigError
from rfly_common.files import StrPath

if TYPE_CHECKING:
    from rfly_terrain.height_map.terrain import Terrain, TerrainQuery
    from rfly_terrain.map_files.png_txt import RflySimMap


@options.takes(options.MapSource)
def traversable(
    *,
    max_slope: Annotated[
        float,
        typer.Option(metavar="DEGREES", help="steepest slope for the vehicle"),
    ] = 25.0,
    max_roughness: Annotated[
        options.MaybeFloat,
        options.optional(
            "largest RMS of the ground about a plane; by default from slope and cells",
            metavar="M",
        ),
    ] = None,
    max_step: Annotated[
        options.MaybeFloat,
        options.optional(
            "largest step between two cells; by default from slope and cells",
            metavar="M",
        ),
    ] = None,
    water_level: Annotated[
        options.MaybeFloat,
        options.optional("ground below it (z up) is under water", metavar="M"),
    ] = None,
    vehicle_radius: Annotated[
        float, typer.Option(metavar="M", help="forbidden cells grow by this radius")
    ] = 1.0,
    half_wheelbase: Annotated[
        float,
        typer.Option(metavar="M", help="radius within which slope, roughness and steps count"),
    ] = 0.7,
    resolution: Annotated[
        options.MaybeFloat,
        options.optional("side of the cells; by default the smaller step of the map", metavar="M"),
    ] = None,
    out: Annotated[
        options.MaybePath,
        options.optional(
            "picture to write; by default MAP-traversable.png",
            "--out",
            "-o",
        ),
    ] = None,
    save: Annotated[
        options.MaybePath,
        options.optional(
            "also write the costs for map_server: a yaml, and its image in the same folder",
            metavar="FILE.yaml",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    given: options.MapSource,
) -> None:
    """Show where a ground vehicle can drive: the share of the map, and a picture.

    The picture shows the costs over the relief. A cell is forbidden at or above a limit, below the
    water, and within the vehicle's radius of such a cell. At the map's edge the disc around a cell
    leaves the map, so these cells are unknown.

    Examples:

        rfly terrain traversable --max-slope 25

        rfly terrain traversable MountainTerrain --max-slope 15 --vehicle-radius 2 --out slopes.pdf

        rfly terrain traversable --water-level 20 --save costs.yaml
    """
    from rfly_terrain.costmap.traversability import TraversabilityLimits, traversability
    from rfly_terrain.occupancy.files import image_beside
    from rfly_terrain.plots.overlays import write_traversability

    limits = TraversabilityLimits(
        max_slope, max_roughness, max_step, water_level, vehicle_radius, half_wheelbase
    )
    options.check_new_picture(out, overwrite)
    if save is not None:
        if save.suffix.lower() not in options.YAML:
            raise typer.BadParameter(f"--save {save}: expected a name that ends in .yaml")
        options.check_target(save, overwrite)
        options.check_target(image_beside(save, "png"), overwrite)

    terrain = given.load()
    picture = out or Path(f"{terrain.name}-traversable.png")
    options.check_new_picture(picture, overwrite)
    if save is not None and image_beside(save, "png").resolve() == picture.resolve():
        raise typer.BadParameter(f"--save {save}: its image would be {picture}, as --out is")
    grid = traversability(terrain, limits, resolution=resolution)
    with options.status(f"drawing {picture}"):
        write_traversability(terrain, grid, picture)
    if save is not None:
        grid.save(save)

    if as_json:
        facts = {
            "map": terrain.name,
            "share_free": grid.share_free,
            "share_forbidden": grid.share_lethal,
            "share_unknown": grid.share_unknown,
            "rows": grid.cost.shape[0],
            "columns": grid.cost.shape[1],
            "resolution_m": grid.resolution,
            "origin_m": list(grid.origin),
            "picture": str(picture),
        }
        print(json.dumps(facts, indent=2))
        return

    rows, columns = grid.cost.shape
    print(
        f"{terrain.name}: {grid.share_free:.1%} traversable, {grid.share_lethal:.1%} forbidden, "
        f"{grid.share_unknown:.1%} unknown ({columns} x {rows} cells of {grid.resolution:g} m, "
        "east x north)"
    )
    print(picture)
    if save is not None:
        print(save)


terrain_app = typer.Typer(
    help="Maps of RflySim: facts, altitudes, clouds, pictures; import and export.\n\n"
    "MAP is the path of a map's png or txt, or a name, which is searched in ./map, the current "
    "folder, CopterSim's map folders and the maps of this package.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@terrain_app.command()
@options.takes(options.MapSource)
def info(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    given: options.MapSource,
) -> None:
    """Show the facts of a map: size, extent, cells, heights, calibration.

    Examples:

        rfly terrain info

        rfly terrain info MountainTerrain --third-pixel round

        rfly terrain info ./map/MyTerrain.png --json
    """
    from rfly_terrain.map_files.search import map_name
    from rfly_terrain.tiles.open_terrain import find_tiles

    tiles = find_tiles(given.map, given.search_path or ())
    if tiles is None:
        facts = _facts(given.read())
        rows = _facts_text(facts)
        title = Path(facts["txt"]).stem
    else:
        facts = _tiles_facts(tiles)
        rows = [(key, str(value)) for key, value in facts.items()]
        title = map_name(tiles)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    for key, value in rows:
        table.add_row(key, value)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


@terrain_app.command(context_settings={"ignore_unknown_options": True})  # -3.5 is a number
@options.takes(options.MapSource)
def query(
    x: options.MaybeX = None,
    y: options.MaybeY = None,
    *,
    frame: options.FrameOption = options.MapFrame.map,
    latlon: LatLonOption = False,
    normal: Annotated[
        bool, typer.Option("--normal", help="also the unit normal of the ground")
    ] = False,
    points: Annotated[
        options.MaybeText,
        options.file_option("a CSV of x,y instead of one point; - reads stdin"),
    ] = None,
    given: options.MapSource,
) -> None:
    """Print the altitude of the ground at one point or at many.

    A point outside the map gets the altitude of the map's edge, and `inside` says no. Many points
    are lines with columns and are answered as CSV. A heading names the columns (x and y, east and
    north, lat and lon); without one the first two count. With --latlon the altitude counts as that
    of the map's origin does, usually from sea level.

    Examples:

        rfly terrain query 120 -35.5

        rfly terrain query 120 -35.5 MountainTerrain

        rfly terrain query 10 -3.5 --frame map_ned --normal --map MountainTerrain

        rfly terrain query --points path.csv > altitudes.csv

        rfly terrain query 46.5474 7.9836 --latlon --map Alps
    """
    if latlon and frame is not options.MapFrame.map:
        raise typer.BadParameter("--latlon and --frame exclude each other")
    if points is not None and x is None:
        return _query_many(given, frame, latlon, normal, points)
    if x is None or y is None or points is not None:
        raise typer.BadParameter("give one point, X and Y in metres, or --points FILE")

    terrain = given.open()
    answer = _ground_at(terrain, x, y, frame, latlon, normal)
    reference = "z up" if frame is options.MapFrame.map else "z down"
    where = "above the map's datum" if latlon else f"{reference}, frame {frame.value}"

    print(f"altitude  {answer.altitude:.4f} m ({where})")
    print("inside    " + ("yes" if answer.inside else "no: the altitude is that of the map's edge"))
    if answer.normal is not None:
        print("normal    " + " ".join(f"{n:.6f}" for n in answer.normal))
    return None


@terrain_app.command()
@options.takes(options.MapSource)
def cloud(
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="file to write: .ply, .pcd, .npy or .xyz"),
    ],
    stride: Annotated[int, typer.Option(min=1, help="every n-th point of each axis")] = 1,
    region: options.RegionOption = options.NO_QUADRUPLE,
    frame: options.FrameOption = options.MapFrame.map,
    overwrite: options.Overwrite = False,
    given: options.MapSource,
) -> None:
    """Write a map as a point cloud, for CloudCompare, Open3D, PCL and NumPy.

    Examples:

        rfly terrain cloud --out terrain.ply

        rfly terrain cloud MountainTerrain --out near.pcd --stride 2 --region -500 500 -500 500
    """
    from rfly_terrain.files.points import write_cloud

    part = options.given(region, "--region")
    options.check_target(out, overwrite)
    terrain = given.open()
    make_points = terrain.point_cloud if frame is options.MapFrame.map else terrain.point_cloud_ned
    try:
        points = make_points(stride, part)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    with options.status(f"writing {out}"):
        write_cloud(points, out)
    print(f"{out}: {points.shape[0]} x {points.shape[1]} points, frame {frame.value}")


@terrain_app.command()
@options.takes(options.MapSource)
def plot(
    *,
    out: options.PictureOption,
    region: options.RegionOption = options.NO_QUADRUPLE,
    exaggeration: Annotated[
        options.MaybeFloat,
        options.optional("of the shading; by default chosen for contrast", min=0.01, max=1000.0),
    ] = None,
    title: Annotated[options.MaybeText, options.optional("by default the map's name")] = None,
    imagery: options.ImageryOption = None,
    overwrite: options.Overwrite = False,
    given: options.MapSource,
) -> None:
    """Draw a shaded relief with contours, axes in metres and a colour bar.

    Examples:

        rfly terrain plot JacksboroFault --out relief.png

        rfly terrain plot MountainTerrain --out start.pdf --region -200 200 -200 200

        rfly terrain plot Alps --out photo.png --imagery orthophoto.tif
    """
    from rfly_terrain.plots.relief import write_relief

    part = options.given(region, "--region")
    options.check_target(out, overwrite)
    terrain = given.load()
    shown = options.open_imagery(imagery, terrain)
    with options.status(f"drawing {out}"):
        try:
            write_relief(
                terrain,
                out,
                region=part,
                vertical_exaggeration=exaggeration,
                title=title,
                imagery=shown,
            )
        except ConfigError:
            raise
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    print(out)


terrain_app.command(context_settings={"ignore_unknown_options": True})(profile)
terrain_app.command("import")(import_)
terrain_app.command()(tile)
terrain_app.command()(export)
terrain_app.command()(traversable)
terrain_app.command(context_settings={"ignore_unknown_options": True})(viewshed)


def _facts(rfly_map: "RflySimMap") -> dict[str, Any]:
    """Return what `rfly terrain info` shows, for programs."""
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.map_files.png_txt import read_header

    calibration = rfly_map.calibration
    terrain = HeightMap.of_map(rfly_map)
    return {
        "png": str(rfly_map.files.png),
        "txt": str(rfly_map.files.txt),
        "pixels": read_header(rfly_map.files.png).colour_name,
        "rows": calibration.rows,
        "columns": calibration.columns,
        "bounds_enu_m": terrain.bounds,
        "cell_m": [abs(terrain.step_x), abs(terrain.step_y)],
        "z_up_m": [terrain.z_min, terrain.z_max],
        "z_scale_cm": calibration.z_scale_cm,
        "z_scale_from": calibration.z_scale_from,
        "third_pixel": [calibration.third_row, calibration.third_column],
        "pos_offset_cm": [calibration.pos_offset_x_cm, calibration.pos_offset_y_cm],
        "pos_scale_cm": [calibration.pos_scale_x_cm, calibration.pos_scale_y_cm],
        "gps": calibration.points.gps,
        "geo_origin": terrain.geo_origin,
        "sha256": terrain.sha256,
    }


def _tiles_facts(path: StrPath) -> dict[str, Any]:
    """Return what `rfly terrain info` shows of a map in tiles."""
    from rfly_terrain.tiles.tiled_height_map import TiledHeightMap

    terrain = TiledHeightMap.open(path)
    return {
        "tiles": str(path),
        "rows": terrain.rows,
        "columns": terrain.columns,
        "bounds_enu_m": terrain.bounds,
        "cell_m": [terrain.step_x, terrain.step_y],
        "z_up_m": [terrain.z_min, terrain.z_max],
        "geo_origin": terrain.geo_origin,
    }


def _facts_text(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows of the table of `rfly terrain info`."""
    x_min, x_max, y_min, y_max = facts["bounds_enu_m"]
    corner = facts["z_scale_from"]
    calibrated = (
        "third point and " + corner + " corner"
        if corner != "default"
        else "default: third point within 10 counts"
    )

    gps = "none"
    if facts["gps"] is not None:
        meaning = (
            "read as latitude, longitude, altitude"
            if facts["geo_origin"]
            else "no latitude, longitude, altitude"
        )
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
        (
            "third pixel",
            f"row {facts['third_pixel'][0]}, column {facts['third_pixel'][1]}",
        ),
        ("GPS", gps),
        ("sha256", facts["sha256"]),
    ]


def _ground_at(
    terrain: "Terrain", x: Any, y: Any, frame: options.MapFrame, latlon: bool, normal: bool
) -> "TerrainQuery":
    """Return the ground at positions of a frame, or at latitudes and longitudes."""
    from rfly_terrain.height_map.places import place_origin

    if latlon:
        east, north = positions(terrain, x, y)
        answer = terrain.query(east, north, want_normals=normal)
        return answer._replace(altitude=place_origin(terrain)[2] + answer.altitude)
    query_altitude = terrain.query if frame is options.MapFrame.map else terrain.query_ned
    return query_altitude(x, y, want_normals=normal)


def _query_many(
    source: options.MapSource, frame: options.MapFrame, latlon: bool, normal: bool, points: str
) -> None:
    """Print the altitudes of many points as CSV."""
    import numpy as np

    from rfly_terrain.files.points import Columns, read_points

    table = read_points(sys.stdin if points == "-" else Path(points), geodetic=latlon)
    is_geodetic = table.columns is Columns.LATITUDE_LONGITUDE
    if is_geodetic != latlon and table.columns is not Columns.FIRST_TWO:
        expected = "without --latlon x and y in metres" if is_geodetic else "--latlon lat and lon"
        raise ConfigError(f"{points}: the heading names {table.columns.value}, expected {expected}")
    for note in table.notes:
        print(printable(f"note: {note}"), file=sys.stderr)

    # in map_ned x is north
    xy = table.points
    if table.columns is Columns.EAST_NORTH and frame is options.MapFrame.map_ned:
        xy = xy[:, ::-1]
    terrain = source.open()
    answer = _ground_at(terrain, xy[:, 0], xy[:, 1], frame, latlon, normal)
    columns = [xy, answer.altitude[:, None], answer.inside[:, None]]
    header = "latitude,longitude,altitude,inside" if latlon else "x,y,altitude,inside"

    formats = ["%.10g", "%.10g", "%.4f", "%d"]
    if answer.normal is not None:
        columns.append(answer.normal)
        header = header + ",nx,ny,nz"
        formats = formats + ["%.6f"] * 3

    np.savetxt(
        sys.stdout,
        np.hstack(columns),
        fmt=formats,
        delimiter=",",
        header=header,
        comments="",
    )
