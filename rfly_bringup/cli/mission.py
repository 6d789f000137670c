# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly mission`: mission files without ROS.

Inspection, checks before flight, conversion and simulation.
"""

import math
import sys
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import printable
from rfly_common.errors import ConfigError
from rfly_common.files import write_text

if TYPE_CHECKING:
    from rfly_common.geodesy import GeoPoint
    from rfly_missions.execution.preflight import PreflightReport
    from rfly_missions.mission.clearance import Boxes
    from rfly_missions.mission.files import Mission
    from rfly_terrain.height_map.height_map import HeightMap

mission_app = typer.Typer(
    help="Missions from QGroundControl (.plan) and Mission Planner (.waypoints): check, convert, "
    "fly.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


SHOWN_ITEMS = 100
"""Most rows of `check` without --all; a terminal can still hold them."""


class UavType(str, Enum):
    """Kinds of vehicles that fly, or drive, a mission."""

    multirotor = "multirotor"
    fixed_wing = "fixed-wing"
    ground = "ground"
    land_air = "land-air"


class TooLow(str, Enum):
    """Choices for items that lie too low over the ground for the vehicle."""

    climb = "climb"
    refuse = "refuse"


UavOption = Annotated[UavType, typer.Option("--uav-type", help="kind of vehicle")]


@dataclass(frozen=True)
class MissionSource:
    """A mission file, and what is needed to read it."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="a .plan or .waypoints file")]
    map: Annotated[
        options.MaybeText,
        options.optional(
            "name or path of the map to fly over",
            "--map",
            "-m",
            autocompletion=options.COMPLETIONS["map"],
        ),
    ] = None
    search_path: options.SearchPath = None
    geo_origin: Annotated[
        options.Triple,
        typer.Option(
            "--geo-origin",
            metavar="LAT LON ALT",
            help="place of the map's origin: degrees, m above sea (default: the map's)",
            show_default=False,
        ),
    ] = options.NO_TRIPLE
    default_radius: Annotated[
        float,
        typer.Option(min=0.01, callback=options.finite, help="m, for waypoints without a radius"),
    ] = 2.0
    loiter_radius: Annotated[
        float,
        typer.Option(
            min=0.1,
            callback=options.finite,
            help="m, for orbits without a radius and for a fixed wing's hold",
        ),
    ] = 25.0

    def read(self) -> "tuple[Mission, HeightMap | None, options.Triple]":
        """Return the mission, the map below it, and the place of the map's origin."""
        from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geo_point
        from rfly_missions.mission.files import read_mission
        from rfly_missions.mission.mavlink_items import terrain_altitude

        terrain = None
        origin = DEFAULT_GEO_ORIGIN
        if self.map is not None:
            terrain = options.load_map(self.map, self.search_path)
            origin = terrain.geo_origin or DEFAULT_GEO_ORIGIN
        chosen_origin = options.given(self.geo_origin, "--geo-origin")
        if chosen_origin is not None:
            origin = geo_point(chosen_origin, "--geo-origin")

        mission = read_mission(
            self.file,
            default_radius=self.default_radius,
            loiter_radius=self.loiter_radius,
            terrain=None if terrain is None else terrain_altitude(terrain, origin),
        )
        return mission, terrain, origin


@mission_app.command()
@options.takes(MissionSource)
def check(
    *,
    all_items: Annotated[
        bool,
        typer.Option("--all", help=f"show every item, not only the first {SHOWN_ITEMS}"),
    ] = False,
    given: MissionSource,
) -> None:
    """Show the items of a mission file, and what in it is not flown.

    Examples:

        rfly mission check survey.plan

        rfly mission check terrain_following.waypoints --map JacksboroFault
    """
    from rfly_missions.execution.flown_items import items_off_map, off_map_notes
    from rfly_missions.mission.checks import (
        below_home,
        check_fence,
        check_items,
        check_returns,
    )

    mission, terrain, origin = given.read()
    latitude, longitude, altitude = mission.home
    print(
        f"{given.file}: {len(mission.items)} items about home {latitude:.7f}, {longitude:.7f}, "
        f"{altitude:g} m"
    )
    _print_items(mission, len(mission.items) if all_items else SHOWN_ITEMS)

    if mission.fence:
        print(f"fence of {len(mission.fence.areas)} areas")
    for north, east, down in mission.rally:
        print(f"rally point {north:.2f} north, {east:.2f} east, {0.0 - down:.2f} up")

    # what is not flown as written
    below = below_home(mission.items, 0.0) if terrain is None else ""
    notes = [*mission.lost, *_items_without_end(mission), *filter(None, [below])]
    if terrain is not None:
        notes += off_map_notes(items_off_map(mission.about(origin).items, terrain))
    for text in notes:
        print(printable(f"note: {text}"))

    check_items(mission.items, mission.numbers, ground_vehicle=False)
    check_returns(mission.rally, mission.fence)
    check_fence(mission.items, mission.fence, (0.0, 0.0, 0.0))


def _print_items(mission: "Mission", count: int) -> None:
    """Print the first `count` items as a table."""
    rows = [("item", "in file", "mode", "north m", "east m", "up m", "params")]
    for index, (item, number) in enumerate(
        zip(mission.items[:count], mission.numbers, strict=False)
    ):
        north, east, down = item.position.tolist()
        mode = f"{item.mode.name} (MAVLink {item.command})" if item.command else item.mode.name
        params = ", ".join(f"{value:g}" for value in item.params.tolist())
        rows.append(
            (
                str(index),
                str(number),
                mode,
                f"{north:.2f}",
                f"{east:.2f}",
                f"{0.0 - down:.2f}",
                params,
            )
        )

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print(
            " "
            + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        )
    if len(mission.items) > count:
        print(f" … and {len(mission.items) - count:,} more items; --all shows them")


@mission_app.command()
@options.takes(MissionSource)
def convert(
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="the file to write: .plan or .waypoints"),
    ],
    *,
    uav_type: UavOption = UavType.multirotor,
    overwrite: options.Overwrite = False,
    given: MissionSource,
) -> None:
    """Write a mission file in the other format, and list what that format cannot express.

    Examples:

        rfly mission convert survey.plan survey.waypoints

        rfly mission convert terrain_following.waypoints level.plan --map JacksboroFault
    """
    from rfly_missions.mission.files import write_mission

    options.check_target(target, overwrite)
    mission, _, _ = given.read()
    changed = write_mission(
        target, mission, uav_type=uav_type.value, loiter_radius=given.loiter_radius
    )

    for text in (*mission.lost, *changed):
        print(printable(f"note: {text}"))
    print(f"{target}: {len(mission.items)} items")


@mission_app.command()
@options.takes(MissionSource)
def fly(
    *,
    uav_type: UavOption = UavType.multirotor,
    min_height: Annotated[
        float, typer.Option(min=0.0, help="lowest height above the ground on the way, m")
    ] = 2.0,
    too_low: Annotated[
        TooLow,
        typer.Option(
            help="items too low over the ground for the vehicle: fly them higher, or refuse the "
            "mission"
        ),
    ] = TooLow.climb,
    limit: Annotated[
        float,
        typer.Option(min=1.0, help="give up after this time of flight, s"),
    ] = 3600.0,
    csv: Annotated[
        options.MaybeText,
        options.optional("write the track: time, x east, y north, z up, yaw"),
    ] = None,
    plot: Annotated[
        options.MaybePath,
        options.optional("picture of the track to write: .png, .pdf, .svg …"),
    ] = None,
    overwrite: options.Overwrite = False,
    given: MissionSource,
) -> None:
    """Fly a mission file with a simulated vehicle, as mission_node does, but faster.

    The vehicle starts on the ground at the mission's home. With a map, home lies where its geodetic
    origin says. The exit code is 1 if the mission does not end, also after a breach of its fence,
    from which the vehicle returns.

    Examples:

        rfly mission fly survey.plan

        rfly mission fly survey.plan --map JacksboroFault --geo-origin 47.397742 8.545594 488

        rfly mission fly survey.plan --uav-type fixed-wing --plot survey.png

        rfly mission fly survey.plan --map JacksboroFault --uav-type fixed-wing --too-low refuse
    """
    options.check_new_picture(plot, overwrite)
    options.check_target(csv, overwrite, *options.TABLE)
    mission, terrain, origin = given.read()

    for text in _items_without_end(mission):
        raise ConfigError(f"{given.file}: {text}, which `rfly mission fly` does not have")

    radius = given.loiter_radius
    flown = _fly(mission, terrain, origin, uav_type, min_height, too_low, radius, limit)
    for text in mission.lost:
        print(printable(f"note: {text}"), file=sys.stderr)

    # events and outcome
    for seconds, text in flown.events:
        print(f"{seconds:8.1f} s  {text}")
    lowest = ""
    if not math.isinf(flown.lowest):
        lowest = f", lowest {flown.lowest:.1f} m above the ground on the way"
    ending = "finished" if flown.finished else f"not finished{flown.problem}"
    print(f"{flown.seconds:8.1f} s  {ending}{lowest}")

    if csv is not None:
        _write_track(Path(csv), flown.track)
    if plot is not None:
        from rfly_bringup.cli.track_plots import draw_flight

        draw_flight(flown.track, terrain, plot, f"{given.file.name}: {ending}")
    for target in filter(None, (csv, plot)):
        print(target)
    raise typer.Exit(0 if flown.finished else 1)


class _SimulatedFlight:
    """Course and outcome of a simulated flight."""

    def __init__(self) -> None:
        self.events: list[tuple[float, str]] = []
        """Time, s, and text of what happened."""
        self.track: list[tuple[float, float, float, float, float]] = []
        """Time, s; x, y, z, ENU, m; yaw, ENU, rad."""
        self.lowest = math.inf
        """Lowest height above the ground on the way, m."""
        self.seconds = 0.0
        self.finished = False
        self.problem = ""

    def note(self, text: str) -> None:
        """Add an event of now."""
        self.events.append((self.seconds, text))


STEP_S = 0.05
"""Time step of simulated flights, s."""


def _fly(
    mission: "Mission",
    terrain: "HeightMap | None",
    origin: options.Triple,
    uav_type: UavType,
    min_height: float,
    too_low: TooLow,
    loiter_radius: float,
    limit: float,
) -> _SimulatedFlight:
    """Fly a mission until it ends, fails or has taken `limit` seconds."""
    from rfly_common.frames import vector_ned_to_enu, yaw_ned_to_enu
    from rfly_missions.execution.runner import MissionRunner
    from rfly_missions.followers.ground import Ground
    from rfly_missions.followers.vehicle_kinds import make_follower
    from rfly_missions.mission.items import MissionMode

    # home and start, NED
    ground = Ground(terrain, min_height)
    home = (0.0, 0.0, 0.0)
    if terrain is not None:
        mission, home = over_map(mission, terrain, origin)
    north, east, down = home
    highest_start = math.inf if terrain is not None else down
    start = (north, east, min(ground.down(north, east), highest_start))

    # vehicle and runner
    flight = _SimulatedFlight()
    follower = make_follower(uav_type.value, start, ground=ground, loiter_radius=loiter_radius)
    runner = MissionRunner(
        uav_type.value,
        follower=follower,
        loiter_radius=loiter_radius,
        too_low=too_low.value,
        log=flight.note,
    )
    runner.load(
        mission.items,
        start,
        fence=mission.fence,
        numbers=mission.numbers,
        hold_at_waypoints=True,
        rally=mission.rally,
    )

    switches = -1
    while flight.seconds < limit and not flight.finished:
        state = runner.step(STEP_S)
        flight.seconds += STEP_S
        position = vector_ned_to_enu(follower.position)
        mode = state.params.current.mode

        # the next item
        if runner.manager.state.switches != switches:
            switches = runner.manager.state.switches
            x, y, z = position
            flight.note(f"item {state.item_index}: {mode.name} from {x:.1f}, {y:.1f}, {z:.1f}")

        # height above the ground, once the vehicle has climbed to its minimum
        if mode in (MissionMode.WAYPOINT, MissionMode.ORBIT) and not state.driven:
            height = ground.down(*follower.position[:2]) - follower.position[2]
            if height >= min_height or math.isfinite(flight.lowest):
                flight.lowest = min(flight.lowest, height)

        yaw = float(yaw_ned_to_enu(follower.euler[2]))
        x, y, z = position
        flight.track.append((flight.seconds, x, y, z, yaw))
        if state.breach:
            home_text = ", returned" if state.returned else ""
            flight.problem = f": {state.breach} was breached{home_text}"
        flight.finished = state.finished and not state.breach
        if state.problem:
            flight.problem = f": {state.problem}"
        if state.problem or (state.breach and state.returned):
            break
    if not flight.finished and not flight.problem:
        flight.problem = f" within the --limit of {limit:g} s"
    return flight


def over_map(
    mission: "Mission", terrain: "HeightMap", origin: options.Triple
) -> "tuple[Mission, tuple[float, float, float]]":
    """Return the mission about the map's origin, and its home there, NED, m. Raise ConfigError."""
    from rfly_common.geodesy import geodetic_to_ned

    north, east, down = geodetic_to_ned(mission.home, origin).tolist()
    if not terrain.inside(east, north):
        distance_km = math.hypot(north, east) / 1000
        raise ConfigError(
            f"home {mission.home} lies off the map {terrain.name!r}, {distance_km:.1f} km from "
            "its origin; choose another map, give the place of this one with --geo-origin, or fly "
            "without a map"
        )
    return mission.about(origin), (north, east, down)


def _write_track(path: Path, track: list[tuple[float, float, float, float, float]]) -> None:
    """Write a track as CSV."""
    rows = [",".join(f"{value:.4f}" for value in row) for row in track]
    write_text(path, "\n".join(["time_s,x_east_m,y_north_m,z_up_m,yaw_enu_rad", *rows, ""]))


def _items_without_end(mission: "Mission") -> list[str]:
    """Return a line for each item that ends only when is_mode_done reports it."""
    from rfly_missions.mission.mavlink_items import is_carried_out

    return [
        f"item {mission.numbers[index]} (command {command}) is not carried out; it ends when "
        "is_mode_done says so"
        for index, command in mission.custom
        if not is_carried_out(command)
    ]


def _number(text: str, minimum: float = 0.0) -> Any:
    """Return an option that takes a finite number."""
    return typer.Option(min=minimum, callback=options.finite, help=text)


@mission_app.command()
@options.takes(MissionSource)
def preflight(
    *,
    objects: Annotated[
        options.MaybeText,
        options.file_option(
            "objects to keep away from: a list in the form of `rfly objects place --file`"
        ),
    ] = None,
    uav_type: UavOption = UavType.multirotor,
    clearance: Annotated[
        float, _number("m from the ground and from objects, on the whole way")
    ] = 10.0,
    antenna_height: Annotated[
        float, _number("height of home's radio antenna above the ground, m")
    ] = 2.0,
    battery: Annotated[float, _number("energy of the full battery, Wh; 0: not checked")] = 0.0,
    power: Annotated[float, _number("average power in flight, W")] = 0.0,
    min_height: Annotated[
        float, _number("height above the ground that the vehicle keeps (mission_node's), m")
    ] = 2.0,
    reserve: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=99.0,
            callback=options.finite,
            help="share of the battery that must remain, %",
        ),
    ] = 20.0,
    repair: Annotated[
        options.MaybeText,
        options.optional(
            "write the mission with items raised as needed: .plan or .waypoints", metavar="TARGET"
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    given: MissionSource,
) -> None:
    """Check a mission's way: ground, objects, radio, battery, the way home.

    The way is the straight lines between the items; the ground is the map's, bilinear. Every
    problem names item and place, and sets the exit code 1. The energy is checked only with
    --battery and --power. Items that lie too low for the vehicle are listed with the height at
    which it flies them. Items beyond the map, where the ground is unknown, are listed too.

    Examples:

        rfly mission preflight survey.plan --map JacksboroFault --geo-origin 47.397742 8.545594 488

        rfly mission preflight survey.plan -m JacksboroFault --battery 90 --power 250

        rfly mission preflight survey.plan -m JacksboroFault --repair safe.plan
    """
    from rfly_missions.execution.flown_items import off_map_notes
    from rfly_missions.execution.preflight import Demands, repaired
    from rfly_missions.execution.preflight import preflight as check_way
    from rfly_missions.mission.checks import check_fence, check_items, check_returns
    from rfly_missions.mission.files import write_mission

    if given.map is None:
        raise ConfigError("--map: missing; the check needs the ground of a map")
    options.check_target(repair, overwrite)
    if bool(battery) != bool(power):
        raise ConfigError("--battery and --power: expected both or neither")

    mission, terrain, origin = given.read()
    assert terrain is not None
    above_map, home = over_map(mission, terrain, origin)
    check_items(mission.items, mission.numbers, ground_vehicle=False)
    settings: dict[str, Any] = {
        "numbers": mission.numbers,
        "boxes": _boxes(objects, terrain),
        "demands": Demands(clearance, antenna_height, battery, power, reserve / 100.0),
        "fixed_wing": uav_type is UavType.fixed_wing,
        "loiter_radius": given.loiter_radius,
        "min_height": min_height,
    }

    if repair is None:
        report = check_way(above_map.items, home, terrain, **settings)
    else:
        items, report = repaired(above_map.items, home, terrain, **settings)
        raised = sum(a != b for a, b in zip(items, above_map.items, strict=True))
        fixed = replace(above_map, items=items).about(mission.home, origin)
        for text in write_mission(
            Path(repair), fixed, uav_type=uav_type.value, loiter_radius=given.loiter_radius
        ):
            print(f"note: {text}")
        print(f"{repair}: {raised} items raised")

    check_returns(mission.rally, mission.fence)
    check_fence(mission.items, mission.fence, (0.0, 0.0, 0.0))
    _print_report(report, above_map, origin)
    for text in off_map_notes(report.off_map):
        print(f"note: {text}")
    if uav_type in (UavType.multirotor, UavType.fixed_wing):
        _print_raised(report, origin)
    raise typer.Exit(1 if report.problems else 0)


def _boxes(name: str | None, terrain: "HeightMap") -> "Boxes | None":
    """Return the boxes of placed objects, where they stand on the terrain; None without a list."""
    if name is None:
        return None
    import numpy as np

    from rfly_common.frames import enu_to_ned, yaw_ned_to_enu
    from rfly_missions.mission.clearance import Boxes
    from rfly_ue_bridge.objects.placement import place
    from rfly_ue_bridge.objects.placement_file import load_placements

    placed = place(load_placements(name), terrain)
    half = placed.box_half_extent
    middle = np.asarray(enu_to_ned(placed.box_origin), np.float64).reshape(-1, 3)
    names = tuple(f"object {o.id} (type {o.vehicle_type})" for o in placed.objects)
    return Boxes(
        middle[:, :2],
        half[:, :2],
        np.asarray(yaw_ned_to_enu(placed.yaw), np.float64),
        middle[:, 2] - half[:, 2],
        names,
    )


def _print_report(report: "PreflightReport", mission: "Mission", origin: "GeoPoint") -> None:
    """Print the problems with their places, then the figures of the way."""
    from rfly_common.geodesy import ned_to_geodetic

    for problem in report.problems:
        latitude, longitude, altitude = ned_to_geodetic(problem.place, origin).tolist()
        print(
            f"item {problem.item} ({mission.items[problem.item].mode.name}): {problem.kind}: "
            f"{problem.text}, at {latitude:.6f}, {longitude:.6f}, {altitude:.1f} m above sea"
        )

    minutes, seconds = divmod(round(report.seconds), 60)
    energy = f", {report.energy_wh:.1f} Wh" if report.energy_wh else ""
    print(f"way             {report.length:.0f} m, about {minutes} min {seconds:02d} s{energy}")
    print(f"lowest          {report.lowest:.1f} m over the ground")
    print(
        f"return height   {report.return_height:.1f} m above home clears all between the way and "
        "home"
    )
    print(f"problems        {len(report.problems)}")


def _print_raised(report: "PreflightReport", origin: "GeoPoint") -> None:
    """Print the items that are flown higher than they say."""
    for item in report.raised:
        print(
            f"note: item {item.index} ({item.mode.name}) is flown at "
            f"{origin[2] + item.flown_height:.1f} m above sea, "
            f"{item.flown_height - item.height:.1f} m higher than it says: lower, the vehicle "
            "cannot keep its height above the ground"
        )
