"""`rfly mission preflight`: what stands against a mission before it is flown.

No `from __future__ import annotations` here: typer 0.9 (Ubuntu 24.04) cannot read annotations that are still text.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli.mission import (
    FileArgument,
    LoiterOption,
    MapOption,
    OriginOption,
    RadiusOption,
    UavOption,
    UavType,
    mission_app,
    over_map,
    read,
)
from rfly_bringup.cli.options import NO_TRIPLE, MaybeText, Overwrite, SearchPath, check_target, finite
from rfly_common.errors import ConfigError

if TYPE_CHECKING:
    from rfly_common.geodesy import GeoPoint
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_trajectory.missions.clearance import Boxes
    from rfly_trajectory.missions.files import Mission
    from rfly_trajectory.missions.preflight import Report


def _number(text: str, minimum: float = 0.0) -> Any:
    return typer.Option(min=minimum, callback=finite, help=text)


@mission_app.command()
def preflight(
    file: FileArgument,
    map: MapOption = None,
    search_path: SearchPath = None,
    geo_origin: OriginOption = NO_TRIPLE,
    objects: Annotated[
        MaybeText,
        typer.Option(metavar="FILE", help="placed objects to keep away from, a list as `rfly objects` reads"),
    ] = None,
    uav_type: UavOption = UavType.multirotor,
    clearance: Annotated[float, _number("m over the ground and from objects, on all of the way")] = 10.0,
    antenna_height: Annotated[float, _number("m of home's radio antenna above the ground")] = 2.0,
    battery: Annotated[float, _number("Wh of the full battery; 0: not checked")] = 0.0,
    power: Annotated[float, _number("W that the flight takes on average")] = 0.0,
    reserve: Annotated[
        float, typer.Option(min=0.0, max=99.0, callback=finite, help="% of the battery to be left")
    ] = 20.0,
    default_radius: RadiusOption = 2.0,
    loiter_radius: LoiterOption = 25.0,
    repair: Annotated[
        MaybeText, typer.Option(metavar="TARGET", help="write the mission with items raised: .plan or .waypoints")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Check the way of a mission: ground and objects below it, radio, battery, the way home; exit code 1 for problems.

    The way is what the items say, straight from one to the next; the ground is the map's, bilinear. Every problem names
    item and place. Without --battery and --power no energy is checked.

    Examples:

        rfly mission preflight survey.plan --map JacksboroFault --geo-origin 47.397742 8.545594 488

        rfly mission preflight survey.plan --map JacksboroFault --battery 90 --power 250 --repair safe.plan
    """
    from rfly_trajectory.missions.files import write_mission
    from rfly_trajectory.missions.mission_checks import check_fence, check_items, check_returns
    from rfly_trajectory.missions.preflight import Demands, repaired
    from rfly_trajectory.missions.preflight import preflight as check_way

    if map is None:
        raise ConfigError("--map: missing, the ground is that of a map")
    if repair is not None:
        check_target(Path(repair), overwrite)
    if bool(battery) != bool(power):
        raise ConfigError("--battery and --power: expected both or neither")
    mission, terrain, origin = read(file, map, search_path, geo_origin, default_radius, loiter_radius)
    assert terrain is not None
    above_map, home = over_map(mission, terrain, origin)
    check_items(mission.items, mission.numbers, ground_vehicle=False)
    given: dict[str, Any] = {
        "numbers": mission.numbers,
        "boxes": _boxes(objects, terrain),
        "demands": Demands(clearance, antenna_height, battery, power, reserve / 100.0),
        "fixed_wing": uav_type is UavType.fixed_wing,
        "loiter_radius": loiter_radius,
    }
    if repair is None:
        report = check_way(above_map.items, home, terrain, **given)
    else:
        items, report = repaired(above_map.items, home, terrain, **given)
        raised = sum(a != b for a, b in zip(items, above_map.items, strict=True))
        fixed = replace(above_map, items=items).moved([-value for value in home])
        for text in write_mission(Path(repair), fixed, uav_type=uav_type.value, loiter_radius=loiter_radius):
            print(f"note: {text}")
        print(f"{repair}: {raised} items raised")
    check_returns(mission.rally, mission.fence)
    check_fence(mission.items, mission.fence, (0.0, 0.0, 0.0))
    _print_report(report, above_map, origin)
    raise typer.Exit(1 if report.problems else 0)


def _boxes(name: str | None, terrain: "HeightMap") -> "Boxes | None":
    """The boxes of placed objects, as they stand on the terrain."""
    if name is None:
        return None
    import numpy as np

    from rfly_common.frames import enu_to_ned, yaw_ned_to_enu
    from rfly_trajectory.missions.clearance import Boxes
    from rfly_ue_bridge.objects.placement import place
    from rfly_ue_bridge.objects.placement_file import load_placements

    placed = place(load_placements(name), terrain)
    half = placed.box_half_extent
    middle = np.asarray(enu_to_ned(placed.box_origin), np.float64).reshape(-1, 3)
    names = tuple(f"object {o.id} (type {o.vehicle_type})" for o in placed.objects)
    return Boxes(
        middle[:, :2], half[:, :2], np.asarray(yaw_ned_to_enu(placed.yaw), np.float64), middle[:, 2] - half[:, 2], names
    )


def _print_report(report: "Report", mission: "Mission", origin: "GeoPoint") -> None:
    from rfly_common.geodesy import ned_to_geodetic

    for problem in report.problems:
        latitude, longitude, altitude = ned_to_geodetic(problem.place, origin).tolist()
        print(
            f"item {problem.item} ({mission.items[problem.item].mode.name}): {problem.kind}: {problem.text}, "
            f"at {latitude:.6f}, {longitude:.6f}, {altitude:.1f} m above sea"
        )
    minutes, seconds = divmod(round(report.seconds), 60)
    energy = f", {report.energy_wh:.1f} Wh" if report.energy_wh else ""
    print(f"way             {report.length:.0f} m, about {minutes} min {seconds:02d} s{energy}")
    print(f"lowest          {report.lowest:.1f} m over the ground")
    print(f"return height   {report.return_height:.1f} m above home clears all between the way and home")
    print(f"problems        {len(report.problems)}")
