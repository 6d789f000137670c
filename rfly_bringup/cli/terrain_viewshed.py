# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly terrain viewshed`: what is in sight, or within the coverage of an antenna."""

import json
import math
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.terrain_profile import LatLonOption, positions
from rfly_bringup.terminal import progress_bar


class Waves(str, Enum):
    """What follows the line, and how far the Earth falls away below it."""

    radio = "radio"
    light = "light"
    straight = "straight"


def viewshed(
    x: Annotated[
        float,
        typer.Argument(metavar="X", parser=options.metres, help="x east, m, or latitude"),
    ],
    y: Annotated[
        float,
        typer.Argument(metavar="Y", parser=options.metres, help="y north, m, or longitude"),
    ],
    name: options.MapArgument = options.DEMO_MAP,
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
        options.optional(
            "picture to write; by default MAP-viewshed.png, replaced where it exists", "--out", "-o"
        ),
    ] = None,
    save: Annotated[
        options.MaybePath,
        options.optional("GeoTIFF to write: 1 in sight, 0 out of sight", metavar="FILE.tif"),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    map_name: options.AlsoMapOption = None,
    search_path: options.SearchPath = None,
    third_pixel: options.ThirdPixelOption = options.ThirdPixel.truncate,
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
    from rfly_terrain.plots.viewshed import write_viewshed

    name = options.chosen_map(name, map_name)
    options.check_new_picture(out, overwrite)
    if save is not None:
        if save.suffix.lower() not in (".tif", ".tiff"):
            raise typer.BadParameter(f"--save {save}: expected a name that ends in .tif")
        options.check_target(save, overwrite)

    # the eye
    terrain = options.load_map(name, search_path, third_pixel)
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

    picture = out or Path(f"{terrain.name}-viewshed.png")
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
