# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly plan`: a path over a map for a class of vehicles, without ROS."""

import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.world import WorldOption, world_on_map
from rfly_bringup.warm_up import compile_first
from rfly_common.errors import ConfigError

if TYPE_CHECKING:
    from rfly_terrain.planning.plan import PlanPose


class PlanMode(str, Enum):
    """Kinds of motion."""

    drive = "drive"
    fly = "fly"
    mixed = "mixed"


PlaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="X,Y[,HEADING[,Z]]",
        help="m east and north; degrees counter-clockwise from east; m up, for aircraft",
    ),
]


@dataclass(frozen=True)
class PlanOptions:
    """Arguments and options of `rfly plan`."""

    start: PlaceArgument
    goal: PlaceArgument
    map_name: Annotated[
        options.MaybeText,
        options.optional(
            f"name or path of the map (default: the world's, else {options.DEMO_MAP})",
            "--map",
            "-m",
            metavar="MAP",
        ),
    ] = None
    world: WorldOption = None
    vehicle_class: Annotated[
        str,
        typer.Option(
            "--vehicle-class",
            metavar="NAME",
            help="class of the vehicle; by default the first",
            show_default=False,
        ),
    ] = ""
    classes: Annotated[options.MaybeText, options.file_option("your own vehicle classes")] = None
    mode: Annotated[PlanMode, typer.Option(help="drive, fly, or both in one path")] = PlanMode.drive
    out: Annotated[
        options.MaybeText,
        options.optional(
            "draw it: .png, .pdf, .svg …", "--out", "--output", "-o", metavar="PICTURE"
        ),
    ] = None
    csv: Annotated[
        options.MaybeText,
        options.file_option("write the waypoints, in the form that `file:` in a fleet file reads"),
    ] = None
    water_level: Annotated[
        options.MaybeFloat, options.optional("m up: the path does not drive on lower ground")
    ] = None
    margin: Annotated[
        float,
        typer.Option(
            min=0.0, max=1e4, help="m between vehicle and objects, in addition to its radius"
        ),
    ] = 0.5
    resolution: Annotated[
        options.MaybeFloat,
        options.optional("side of the cells, m (default: the map's)", min=1e-3),
    ] = None
    overwrite: options.Overwrite = False
    search_path: options.SearchPath = None


@options.takes(PlanOptions)
def plan(given: PlanOptions) -> None:
    """Plan a path from A to B and print its length, energy, time and climb.

    Driven paths use ground that the class can drive on and respect its turning radius. Flown paths
    keep its height above the ground and its rate of climb. If there is no path, one line says why
    and the exit code is 2.

    Examples:

        rfly plan 100,50 -200,80

        rfly plan 2800,-1000,180 -2800,300 --vehicle-class rover --out plan.png --csv way.csv

        rfly plan 100,50 -2500,2300 --vehicle-class multirotor --mode fly

        rfly plan 100,50 -2500,2300 --vehicle-class land_air --mode mixed

        rfly plan 95,-95 -95,95 --world forest --vehicle-class rover --resolution 0.5
    """
    from rfly_terrain.planning.plan import MODES, write_plan
    from rfly_terrain.planning.planner import Planner
    from rfly_terrain.planning.vehicle_classes import load_vehicle_classes
    from rfly_terrain.planning.vehicle_classes import vehicle_class as find_class

    # check the arguments before the long work
    for name in (given.map_name, given.world):
        if name is not None and name.lower().endswith(".bt"):
            raise ConfigError(
                f"{name}: rfly plan reads no OctoMap; planner_node plans in the topic octomap, "
                "with space:=octomap"
            )
    a = _place("A", given.start)
    b = _place("B", given.goal)
    if given.water_level is not None and not math.isfinite(given.water_level):
        raise typer.BadParameter(
            f"--water-level {given.water_level}: expected a finite number of metres"
        )
    vehicle = find_class(load_vehicle_classes(given.classes), given.vehicle_class)
    options.check_new_picture(given.out, given.overwrite)
    options.check_target(given.csv, given.overwrite, *options.TABLE)

    # plan
    if given.mode is not PlanMode.fly:
        compile_first(["planner"])
    populated_map = world_on_map(given.world, given.map_name, given.search_path, options.DEMO_MAP)
    terrain = populated_map.terrain
    solids = populated_map.solids
    assert terrain is not None
    planner = Planner(
        terrain,
        solids,
        water_level=given.water_level,
        resolution=given.resolution,
        margin=given.margin,
    )
    with options.status("planning"):
        path = planner.plan(vehicle, a, b, MODES[given.mode.value])

    # results
    minutes, seconds = divmod(round(path.duration), 60)
    print(f"length   {path.length:.1f} m, {len(path.position)} poses")
    print(f"energy   {_joules(path.energy)}")
    print(f"time     {minutes} min {seconds:02d} s")
    print(f"climb    {path.climb:.1f} m, over {100 * path.share_climbed:.0f} % of the length")
    for note in path.notes:
        print(f"note     {note}")

    if given.csv is not None:
        write_plan(path, given.csv)
        print(given.csv)
    if given.out is not None:
        from rfly_bringup.cli.track_plots import draw_plan

        grid = (
            planner.grid(vehicle)
            if vehicle.drive is not None and given.mode is not PlanMode.fly
            else None
        )
        with options.status(f"drawing {given.out}"):
            title = f"{vehicle.name}, {given.mode.value}, over {terrain.name}"
            draw_plan(populated_map, path, Path(given.out), title, grid)
        print(given.out)


def _place(name: str, text: str) -> "PlanPose":
    """Return the pose that an argument describes. Raise BadParameter."""
    from rfly_terrain.planning.plan import PlanPose

    parts = text.split(",")
    expected = (
        f"{name} {text!r}: expected X,Y in metres, optionally a heading in degrees and Z in metres"
    )
    if not 2 <= len(parts) <= 4:
        raise typer.BadParameter(expected)

    try:
        numbers = [float(part) if part.strip() or i < 2 else None for i, part in enumerate(parts)]
    except ValueError:
        raise typer.BadParameter(expected) from None
    if not all(number is None or math.isfinite(number) for number in numbers):
        raise typer.BadParameter(expected)

    x, y, heading, z = [*numbers, None, None][:4]
    assert x is not None
    assert y is not None
    return PlanPose(x, y, None if heading is None else math.radians(heading), z)


def _joules(energy: float) -> str:
    """Return an energy as text, in the unit that suits its size, and in Wh from 1 kJ up."""
    for factor, unit in ((1e6, "MJ"), (1e3, "kJ")):
        if energy >= factor:
            return f"{energy / factor:.2f} {unit} ({energy / 3600:.1f} Wh)"
    return f"{energy:.1f} J"
