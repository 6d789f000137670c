# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain profile` and `viewshed`: the ground along a line, and what is in sight.

Both take places by latitude and longitude too.
"""

import json
import math
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import progress_bar
from rfly_common.errors import ConfigError
from rfly_common.files import open_whole
from rfly_common.imports import require

if TYPE_CHECKING:
    from rfly_terrain.height_map.terrain import Terrain

LatLonOption = Annotated[
    bool,
    typer.Option("--latlon", help="positions are latitude and longitude, degrees, not metres"),
]


def positions(terrain: "Terrain", latitude: Any, longitude: Any) -> tuple[Any, Any]:
    """Return x east and y north, m, of places; raise ConfigError for what is no place here."""
    from rfly_terrain.height_map.places import are_exchanged, place_origin

    try:
        position = terrain.position_of(latitude, longitude)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None

    if isinstance(latitude, float) and are_exchanged(
        terrain, latitude, longitude, place_origin(terrain)
    ):
        raise ConfigError(
            f"latitude {latitude:g}, longitude {longitude:g} is off the map, and on it with the "
            "two exchanged; latitude comes first"
        )
    return position


@options.takes(options.MapSource)
def profile(
    x1: Annotated[float, typer.Argument(metavar="X1", help="start: x east, m, or latitude")],
    y1: Annotated[float, typer.Argument(metavar="Y1", help="start: y north, m, or longitude")],
    x2: Annotated[float, typer.Argument(metavar="X2", help="end: x east, m, or latitude")],
    y2: Annotated[float, typer.Argument(metavar="Y2", help="end: y north, m, or longitude")],
    *,
    latlon: LatLonOption = False,
    count: Annotated[
        int, typer.Option("--points", "-n", min=2, max=1_000_000, help="points of the line")
    ] = 1000,
    out: Annotated[
        options.MaybePath,
        options.optional("picture to write: .png, .pdf, .svg …", "--out", "-o"),
    ] = None,
    save: Annotated[
        options.MaybePath, options.optional("CSV of distance,x,y,altitude,inside to write")
    ] = None,
    overwrite: options.Overwrite = False,
    given: options.MapSource,
) -> None:
    """Show the ground along a straight line: length, heights, climb, and a picture.

    Examples:

        rfly terrain profile -500 0 500 200 --out profile.png

        rfly terrain profile 46.55 7.97 46.54 8.01 --latlon --map Alps --save profile.csv
    """
    import numpy as np

    from rfly_terrain.plots.overlays import write_profile

    options.check_new_picture(out, overwrite)
    options.check_target(save, overwrite, *options.TABLE)
    terrain = given.open()

    # the line
    start: tuple[Any, Any] = (x1, y1)
    end: tuple[Any, Any] = (x2, y2)
    if latlon:
        start = positions(terrain, *start)
        end = positions(terrain, *end)
    try:
        line = terrain.profile(start, end, count)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    # what it shows
    low = float(line.altitude.min())
    high = float(line.altitude.max())
    print(f"length    {line.distance[-1]:.1f} m, {count} points")
    print(f"z up      {low:.2f} … {high:.2f} m")
    print(f"climb     {line.climb:.1f} m up, {line.descent:.1f} m down")
    print(f"steepest  {math.degrees(line.steepest):.1f}°")
    if not line.inside.all():
        share = 1.0 - line.inside.mean()
        print(f"off map   {share:.0%} of the line: the altitude there is that of the map's edge")

    if out is not None:
        title = f"{terrain.name}, from {x1:g}, {y1:g} to {x2:g}, {y2:g}"
        write_profile(line, out, title=title)
        print(out)
    if save is not None:
        _write_csv(save, np.column_stack(line))
        print(save)


def _write_csv(file: Path, columns: Any) -> None:
    """Write the points of a profile."""
    import numpy as np

    with open_whole(file) as out:
        np.savetxt(
            out,
            columns,
            fmt=["%.4f", "%.4f", "%.4f", "%.4f", "%d"],
            delimiter=",",
            header="distance,x,y,altitude,inside",
            comments="",
        )


class Waves(str, Enum):
    """What follows the line, and how far the Earth falls away below it."""

    radio = "radio"
    light = "light"
    straight = "straight"


@options.takes(options.MapSource)
def viewshed(
    x: Annotated[
        float,
        typer.Argument(metavar="X", parser=options.metres, help="x east, m, or latitude"),
    ],
    y: Annotated[
        float,
        typer.Argument(metavar="Y", parser=options.metres, help="y north, m, or longitude"),
    ],
    *,
    height: Annotated[
        float, typer.Option(metavar="M", min=0.0, help="height of the eye or antenna above ground")
    ] = 2.0,
    target_height: Annotated[
        float, typer.Option(metavar="M", min=0.0, help="height above ground of what is to be seen")
    ] = 0.0,
    max_range: Annotated[
        options.MaybeFloat, options.optional("longest line, over level ground", metavar="M")
    ] = None,
    waves: Annotated[
        Waves,
        typer.Option(help="radio and light bend over a round Earth", show_choices=True),
    ] = Waves.radio,
    latlon: LatLonOption = False,
    out: Annotated[
        options.MaybePath,
        options.optional("picture to write; by default MAP-viewshed.png", "--out", "-o"),
    ] = None,
    save: Annotated[
        options.MaybePath,
        options.optional("GeoTIFF to write: 1 in sight, 0 out of sight", metavar="FILE.tif"),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    given: options.MapSource,
) -> None:
    """Show what a place has in sight: the share of the map, and a picture.

    Each sample of the map is in sight if the ground leaves the line to it free. With --waves radio
    it is the coverage of an antenna, over an Earth of 4/3 of its radius, as in `rfly mission
    preflight`. Buildings and trees of a world do not count.

    Examples:

        rfly terrain viewshed 100 -250 --height 10 --target-height 2

        rfly terrain viewshed 100 -250 MountainTerrain --waves light --out seen.png

        rfly terrain viewshed 46.55 7.97 --latlon --map Alps --max-range 5000 --save seen.tif
    """
    from rfly_terrain.height_map.ray_cast import RADIO_EARTH_RADIUS, SIGHT_EARTH_RADIUS
    from rfly_terrain.height_map.viewshed import viewshed as seen_from
    from rfly_terrain.plots.overlays import write_viewshed

    options.check_new_picture(out, overwrite)
    if save is not None:
        if save.suffix.lower() not in (".tif", ".tiff"):
            raise typer.BadParameter(f"--save {save}: expected a name that ends in .tif")
        options.check_target(save, overwrite)
        require("rasterio", "--save")

    # the eye
    terrain = given.load()
    picture = out or Path(f"{terrain.name}-viewshed.png")
    options.check_new_picture(picture, overwrite)
    place: tuple[Any, Any] = positions(terrain, x, y) if latlon else (x, y)
    if not terrain.inside(*place):
        raise typer.BadParameter(f"{x:g}, {y:g} is off the map: see `rfly terrain info`")
    eye = (*place, terrain.altitude(*place) + height)
    radius = {
        Waves.radio: RADIO_EARTH_RADIUS,
        Waves.light: SIGHT_EARTH_RADIUS,
        Waves.straight: math.inf,
    }[waves]

    # what it sees
    try:
        with progress_bar("following lines of sight", says=True) as progress:
            seen = seen_from(
                terrain,
                eye,
                target_height=target_height,
                max_range=math.inf if max_range is None else max_range,
                earth_radius=radius,
                progress=progress,
            )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    share = float(seen.mean())
    area = float(seen.sum()) * abs(terrain.step_x * terrain.step_y)

    title = f"{terrain.name}: {share:.0%} in sight from {x:g}, {y:g}, {height:g} m above ground"
    with options.status(f"drawing {picture}"):
        write_viewshed(terrain, seen, place, picture, title=title)
    if save is not None:
        from rfly_terrain.exports.geotiff import write_viewshed_geotiff

        write_viewshed_geotiff(terrain, seen, save)

    if as_json:
        facts = {
            "map": terrain.name,
            "observer_m": [float(number) for number in eye],
            "share_in_sight": share,
            "area_in_sight_m2": area,
            "picture": str(picture),
        }
        print(json.dumps(facts, indent=2))
        return
    print(f"in sight  {share:.1%} of the map, {area / 1e6:.3g} km²")
    for file in filter(None, (picture, save)):
        print(file)
