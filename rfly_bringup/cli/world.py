# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly world`: worlds, the objects on a map: make, import, count and draw them."""

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import printable
from rfly_common.errors import ConfigError, TerrainFileNotFound

if TYPE_CHECKING:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.world import World

DEFAULT_MAP = "RollingHills"
"""Map of new worlds by default; its ground is as fine as the objects on it."""

world_app = typer.Typer(
    help="Worlds: the objects on a map, for physics, sensors, planners and the window alike.\n\n"
    "WORLD is a world file, or the name of one that comes with this package.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

WorldArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORLD",
        help="a world file, or the name of a shipped one",
        autocompletion=options.COMPLETIONS["world"],
    ),
]
WorldOption = Annotated[
    options.MaybeText,
    options.optional(
        "what stands on the map", metavar="WORLD", autocompletion=options.COMPLETIONS["world"]
    ),
]
MapOfWorld = Annotated[
    options.MaybeText,
    options.optional(
        "name or path of the map (default: the world's)", "--map", "-m", metavar="MAP"
    ),
]
OutPicture = Annotated[
    options.MaybeText,
    options.optional("draw it too: .png, .pdf, .svg …", metavar="PICTURE"),
]


class WorldKind(str, Enum):
    """Kinds of worlds."""

    forest = "forest"
    village = "village"
    pillars = "pillars"


@world_app.command()
def make(
    kind: Annotated[WorldKind, typer.Argument(metavar="NAME", help="forest, village or pillars")],
    seed: Annotated[
        int,
        typer.Option(min=0, max=2**31 - 1, help="each seed makes a different world of the kind"),
    ] = 1,
    map_name: Annotated[
        str, typer.Option("--map", "-m", metavar="MAP", help="name or path of the map")
    ] = DEFAULT_MAP,
    region: options.RegionOption = options.NO_QUADRUPLE,
    density: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1e6,
            help="trees, pillars or houses per hectare; 0: the kind's own",
        ),
    ] = 0.0,
    out: Annotated[
        options.MaybeText,
        options.file_option("default: NAME.yaml", "--out", "--output", "-o"),
    ] = None,
    picture: OutPicture = None,
    overwrite: options.Overwrite = False,
    search_path: options.SearchPath = None,
) -> None:
    """Make a populated world on a map: the same seed makes the same file.

    By default the world fills 200 m x 200 m around the middle of the map (see --region). The middle
    of its area stays free.

    Examples:

        rfly world make forest --seed 7 --out my_forest.yaml

        rfly world make village --region -1200 -900 -600 -300 --picture village.png
    """
    from rfly_terrain.world.populate import Area, make_world
    from rfly_terrain.world.world_file import write_world

    target = Path(out or f"{kind.value}.yaml")
    _check_targets(target, picture, overwrite)
    terrain = options.load_map(map_name, search_path)

    corners = options.given(region, "--region")
    with options.status(f"making {target}"):
        where = None if corners is None else Area(*corners)
        world = make_world(kind.value, terrain, seed, area=where, density=density)

    write_world(world, target)
    print(f"{target}  {len(world.objects)} objects on {terrain.name}")
    _draw(world, picture)


@world_app.command(name="import")
def import_(
    source: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="OpenStreetMap: .osm, .osm.gz, .osm.bz2, .osm.pbf"),
    ],
    map_name: Annotated[
        str,
        typer.Option("--map", "-m", metavar="MAP", help="name or path of the map below it"),
    ],
    out: Annotated[
        options.MaybeText,
        options.file_option("default: the source's name.yaml", "--out", "--output", "-o"),
    ] = None,
    region: options.RegionOption = options.NO_QUADRUPLE,
    height: Annotated[
        float, typer.Option(help="height of buildings without a height or levels, m")
    ] = 6.0,
    geo_origin: options.GeoOrigin = options.NO_TRIPLE,
    picture: OutPicture = None,
    overwrite: options.Overwrite = False,
    search_path: options.SearchPath = None,
) -> None:
    """Make a world of the buildings on OpenStreetMap.

    Footprints (ways and multipolygons, with or without courtyards) and parts of buildings become
    prisms. Their height is the tag height, or 3 m for each of building:levels and roof:levels.
    Their place comes from the map's geodetic origin, or from --geo-origin. What is not imported is
    counted.

    Examples:

        rfly world import city.osm --map ./map/MyTerrain --picture city.png
    """
    from rfly_terrain.world.osm import import_osm
    from rfly_terrain.world.populate import Area
    from rfly_terrain.world.world_file import write_world

    target = Path(out or f"{source.stem.removesuffix('.osm')}.yaml")
    _check_targets(target, picture, overwrite)
    terrain = options.load_map(map_name, search_path)

    corners = options.given(region, "--region")
    origin = options.given(geo_origin, "--geo-origin")
    where = None if corners is None else Area(*corners)
    with options.status(f"making {target}"):
        found = import_osm(source, terrain, geo_origin=origin, area=where, default_height=height)

    write_world(found.world, target)
    print(f"{target}  {len(found.world.objects)} buildings on {terrain.name}")
    for why, count in found.left_out.items():
        print(f"left out: {count} {why}")
    if found.not_understood:
        print(
            f"tags not understood: {len(found.not_understood)}, "
            f"the first of {printable(found.not_understood[0])}"
        )
    if found.default_heights:
        print(f"without a height, taken as {height:g} m: {found.default_heights}")
    for kind, count in found.others.items():
        print(f"not imported: {count} {kind}")
    _draw(found.world, picture)


@world_app.command()
def info(
    name: WorldArgument,
    search_path: options.SearchPath = None,
) -> None:
    """Show the map of a world, its objects by class, what moves, and what stands off the map.

    Examples:

        rfly world info village
    """
    from rfly_terrain.world.models import CLASSES
    from rfly_terrain.world.world_file import load_world

    world = load_world(name)
    terrain = _map_of(world, search_path) if world.map else None
    not_found = " (not found here)" if world.map and terrain is None else ""
    print(printable(f"map      {world.map or 'any'}{not_found}"))
    print(
        f"objects  {len(world.objects)}, of {sum(len(o.model.parts) for o in world.objects)} "
        "convex parts"
    )
    for class_id, count in sorted(Counter(o.model.class_id for o in world.objects).items()):
        print(f"{CLASSES[class_id]:<10} {count}")

    if world.moving:
        classes = Counter(CLASSES[body.model.class_id] for body in world.moving)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(classes.items()))
        print(f"moving   {len(world.moving)}: {counts}")

    if terrain is not None and (off_map := world.off_map(terrain)):
        first = world.objects[off_map[0]]
        x_min, x_max, y_min, y_max = terrain.bounds
        print(
            f"off map    {len(off_map)}, the first at x {first.x:g}, y {first.y:g}; the map spans "
            f"x {x_min:g} … {x_max:g}, y {y_min:g} … {y_max:g} m"
        )


def _map_of(world: "World", search_path: list[str] | None) -> "HeightMap | None":
    """Return the map that a world names; None if it is not here."""
    folders = [*(search_path or ()), *filter(None, [world.folder])]
    try:
        return options.load_map(world.map, folders)
    except TerrainFileNotFound:
        return None


@world_app.command()
def plot(
    name: WorldArgument,
    out: Annotated[
        str,
        typer.Option("--out", "--output", "-o", metavar="PICTURE", help=".png, .pdf, .svg …"),
    ],
    map_name: MapOfWorld = None,
    overwrite: options.Overwrite = False,
    search_path: options.SearchPath = None,
) -> None:
    """Draw a world from above.

    Examples:

        rfly world plot forest --out forest.png
    """
    options.check_new_picture(out, overwrite)
    _draw(world_on_map(name, map_name, search_path), out)


def read_world(name: str | None, search_path: list[str] | None) -> "tuple[World, list[str]]":
    """Return a world (without a name an empty one) and the folders to search for its map."""
    from rfly_terrain.world.world import World
    from rfly_terrain.world.world_file import load_world

    world = World() if name is None else load_world(name)
    return world, [*(search_path or ()), *filter(None, [world.folder])]


def world_on_map(
    name: str | None,
    map_name: str | None,
    search_path: list[str] | None,
    default: str = "",
) -> "World":
    """Return a world on its own map, the given one, or the default. Raise ConfigError."""
    world, folders = read_world(name, search_path)
    chosen = world.map or default if map_name is None else map_name
    if not chosen and map_name is None:
        raise ConfigError(f"world {name!r}: it is made for no map; choose one with --map")
    return world.on(options.load_map(chosen, folders))


def _check_targets(target: Path, picture: str | None, overwrite: bool) -> None:
    """Raise an error if a world or its picture could not be written."""
    options.check_target(target, overwrite, *options.YAML)
    options.check_new_picture(picture, overwrite)


def _draw(world: "World", out: str | None) -> None:
    """Draw a world, unless `out` is None."""
    if out is None:
        return
    from rfly_terrain.plots.overlays import write_world_picture

    with options.status(f"drawing {out}"):
        write_world_picture(world, Path(out))
    print(out)
