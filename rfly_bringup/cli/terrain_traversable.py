"""`rfly terrain traversable`: traversability of a map as numbers, plot and map_server files.

No `from __future__ import annotations`: see cli_terrain_options.py.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from rfly_bringup.cli.options import (
    DEMO_MAP,
    AlsoMapOption,
    MapArgument,
    MaybeFloat,
    MaybePath,
    Overwrite,
    SearchPath,
    ThirdPixel,
    ThirdPixelOption,
    check_target,
    chosen_map,
    load_map,
    status,
)


def traversable(
    name: MapArgument = DEMO_MAP,
    *,
    max_slope: Annotated[float, typer.Option(metavar="DEGREES", help="steepest slope that the vehicle drives")] = 25.0,
    max_roughness: Annotated[
        MaybeFloat,
        typer.Option(metavar="M", help="largest RMS of the ground about a plane; by default from slope and cells"),
    ] = None,
    max_step: Annotated[
        MaybeFloat, typer.Option(metavar="M", help="largest step between two cells; by default from slope and cells")
    ] = None,
    water_level: Annotated[MaybeFloat, typer.Option(metavar="M", help="ground below it (z up) is under water")] = None,
    vehicle_radius: Annotated[float, typer.Option(metavar="M", help="forbidden cells are grown by it")] = 1.0,
    half_wheelbase: Annotated[
        float, typer.Option(metavar="M", help="radius within which slope, roughness and steps count")
    ] = 0.7,
    resolution: Annotated[
        MaybeFloat, typer.Option(metavar="M", help="side of the cells; by default the smaller step of the map")
    ] = None,
    out: Annotated[
        MaybePath,
        typer.Option("--out", "-o", help="picture to write; by default MAP-traversable.png, replaced where it exists"),
    ] = None,
    save: Annotated[
        MaybePath,
        typer.Option(metavar="FILE.yaml", help="also write the costs for map_server: a yaml, and its image beside it"),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    map_name: AlsoMapOption = None,
    search_path: SearchPath = None,
    third_pixel: ThirdPixelOption = ThirdPixel.truncate,
) -> None:
    """Show where a ground vehicle can drive: the share of the map, and a picture of the costs over the relief.

    Cells are forbidden at or above a limit, below the water, and nearer to such a cell than the vehicle's radius; the
    disc around cells at the map's edge leaves it, so they are unknown.

    Examples:

        rfly terrain traversable --max-slope 25

        rfly terrain traversable MountainTerrain --max-slope 15 --vehicle-radius 2 --out slopes.pdf

        rfly terrain traversable --water-level 20 --save costs.yaml
    """
    name = chosen_map(name, map_name)
    from rfly_terrain.costmap.traversability import TraversabilityLimits, traversability
    from rfly_terrain.plots.relief import check_picture_format
    from rfly_terrain.plots.traversability import write_traversability

    limits = TraversabilityLimits(max_slope, max_roughness, max_step, water_level, vehicle_radius, half_wheelbase)
    if out is not None:
        check_target(out, overwrite)
        check_picture_format(out)
    if save is not None:
        if save.suffix not in (".yaml", ".yml"):
            raise typer.BadParameter(f"--save {save}: expected a name that ends in .yaml")
        check_target(save, overwrite)
        check_target(save.with_suffix(".png"), overwrite)
    terrain = load_map(name, search_path, third_pixel)
    grid = traversability(terrain, limits, resolution=resolution)
    picture = out or Path(f"{terrain.name}-traversable.png")
    with status(f"drawing {picture}"):
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
    print(f"{terrain.name}: {grid.share_free:.1%} traversable, {grid.share_lethal:.1%} forbidden,", end=" ")
    print(f"{grid.share_unknown:.1%} unknown ({columns} x {rows} cells of {grid.resolution:g} m, east x north)")
    print(picture)
    if save is not None:
        print(save)
