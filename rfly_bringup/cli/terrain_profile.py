# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain profile`: the ground along a line, and places given by latitude and longitude."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_common.errors import ConfigError
from rfly_common.files import open_whole

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


def profile(
    x1: Annotated[float, typer.Argument(metavar="X1", help="start: x east, m, or latitude")],
    y1: Annotated[float, typer.Argument(metavar="Y1", help="start: y north, m, or longitude")],
    x2: Annotated[float, typer.Argument(metavar="X2", help="end: x east, m, or latitude")],
    y2: Annotated[float, typer.Argument(metavar="Y2", help="end: y north, m, or longitude")],
    name: options.MapArgument = options.DEMO_MAP,
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
    map_name: options.AlsoMapOption = None,
    search_path: options.SearchPath = None,
    third_pixel: options.ThirdPixelOption = options.ThirdPixel.truncate,
) -> None:
    """Show the ground along a straight line: length, heights, climb, and a picture.

    Examples:

        rfly terrain profile -500 0 500 200 --out profile.png

        rfly terrain profile 46.55 7.97 46.54 8.01 --latlon --map Alps --save profile.csv
    """
    import numpy as np

    from rfly_terrain.plots.profile import write_profile

    for file in (out, save):
        if file is not None:
            options.check_target(file, overwrite)
    name = options.chosen_map(name, map_name)
    terrain = options.open_map(name, search_path, third_pixel)

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
