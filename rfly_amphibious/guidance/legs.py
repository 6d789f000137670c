"""Driven and flown legs of a land-air mission: on wheels before take-off and after landing, in the air between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geodetic_to_ned
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.missions.files import Mission, read_mission
from rfly_trajectory.missions.items import MissionMode
from rfly_trajectory.missions.mavlink import LAST_NAVIGATION, mavlink_command

Place = tuple[float, float]
Point = tuple[float, float, float]

MIN_CLEARANCE = 1.0
"""m of the wheels above the ground, at least, on the way from point to point"""
SAME_PLACE = 0.5
"""m"""


@dataclass(frozen=True)
class MissionStep:
    """One item: `place` x east, y north; above the ground there by `height`, or with the wheels at `altitude` (z up).

    What is not given stays as it was.
    """

    mode: Literal["waypoint", "takeoff", "land"]
    place: Place | None = None
    height: float | None = None
    altitude: float | None = None
    speed: float | None = None
    """m/s on the way there"""


@dataclass(frozen=True)
class DriveLeg:
    """Way-points on the ground, and the speed to each."""

    points: tuple[Place, ...]
    speeds: tuple[float, ...]


@dataclass(frozen=True)
class FlyLeg:
    """From where it stands up to the first point, on through the others, and down again where it `lands`."""

    points: tuple[Point, ...]
    """of the wheels: x east, y north, z up"""
    speeds: tuple[float, ...]
    lands: bool


Leg = DriveLeg | FlyLeg


class StepError(ConfigError):
    """A mission that cannot be carried out; `step` is the index of what is wrong in it."""

    def __init__(self, step: int, text: str) -> None:
        super().__init__(text)
        self.step = step


def legs_of(
    steps: Sequence[MissionStep],
    start: Place,
    terrain: HeightMap | None,
    drive_speed: float,
    fly_speed: float,
) -> tuple[Leg, ...]:
    """The legs of a mission that begins at `start`. Raises StepError, a ConfigError, for what can't be done."""
    legs: list[Leg] = []
    driven: list[tuple[Place, float]] = []
    flown: list[tuple[Point, float]] = []
    here, flying = start, False

    def ground(place: Place) -> float:
        return 0.0 if terrain is None else float(terrain.altitude(*place))

    def drive_them() -> None:
        if driven:
            legs.append(DriveLeg(tuple(p for p, _ in driven), tuple(v for _, v in driven)))
            driven.clear()

    def fly_to(index: int, point: Point, speed: float) -> None:
        _check_way(index, flown[-1][0] if flown else (*here, point[2]), point, terrain)
        flown.append((point, speed))

    for index, step in enumerate(steps):
        place = here if step.place is None else step.place
        if terrain is not None and not terrain.inside(*place):
            raise StepError(index, f"x {place[0]:g}, y {place[1]:g} lies off the map, which spans {terrain.bounds}")
        above = ground(place) + step.height if step.height is not None else step.altitude
        if step.mode == "takeoff":
            if flying:
                raise StepError(index, "a take-off in flight; expected a landing before it")
            drive_them()
            flying = True
            assert above is not None
            fly_to(index, (*here, above), fly_speed)
            if math.dist(place, here) > SAME_PLACE:
                fly_to(index, (*place, above), fly_speed)
        elif step.mode == "land":
            if not flying:
                raise StepError(index, "a landing on the ground; expected a take-off before it")
            if math.dist(place, here) > SAME_PLACE:
                fly_to(index, (*place, flown[-1][0][2]), fly_speed)
            legs.append(FlyLeg(tuple(p for p, _ in flown), tuple(v for _, v in flown), lands=True))
            flown.clear()
            flying = False
        elif flying:
            fly_to(index, (*place, flown[-1][0][2] if above is None else above), step.speed or fly_speed)
        elif step.height is not None:
            raise StepError(index, "height_m: this way-point is driven to; expected a take-off before it")
        else:
            driven.append((place, step.speed or drive_speed))
        here = place
    drive_them()
    if flown:
        legs.append(FlyLeg(tuple(p for p, _ in flown), tuple(v for _, v in flown), lands=False))
    return tuple(legs)


def _check_way(index: int, a: Point, b: Point, terrain: HeightMap | None) -> None:
    """Not into the ground on the straight line from a to b."""
    count = 2
    if terrain is not None:
        count += int(2.0 * math.dist(a[:2], b[:2]) / min(abs(terrain.step_x), abs(terrain.step_y)))
    line: Floats = np.linspace(a, b, count)
    heights = line[:, 2] - (0.0 if terrain is None else terrain.altitude(line[:, 0], line[:, 1]))
    lowest = int(np.argmin(heights))
    if heights[lowest] < MIN_CLEARANCE:
        x, y, _ = line[lowest]
        raise StepError(
            index,
            f"the way there comes to {heights[lowest]:.1f} m above the ground at x {x:.1f}, y {y:.1f}; "
            f"expected {MIN_CLEARANCE:g} m at least",
        )


def steps_of_file(
    path: str, terrain: HeightMap | None, start: Place | None
) -> tuple[list[MissionStep], Place, list[str]]:
    """Steps of a .plan or .waypoints file, where its home lies (x east, y north), and what of it is not carried out.

    With a map, home lies where the map's geodetic origin says; without one at `start` or, without that, at 0, 0, and
    its altitude is that of the level ground. Raises ConfigError (MissionFileError) that names file and item.
    """
    origin = (terrain.geo_origin if terrain is not None else None) or DEFAULT_GEO_ORIGIN

    def above_sea(latitude: float, longitude: float) -> float:
        assert terrain is not None
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), origin).tolist()
        return origin[2] + float(terrain.altitude(east, north))

    mission: Mission = read_mission(path, terrain=None if terrain is None else above_sea)
    if terrain is None:
        east, north = start or (0.0, 0.0)
        mission = mission.moved((north, east, 0.0))
    else:
        north, east, _ = geodetic_to_ned(mission.home, origin).tolist()
        mission = mission.about(origin)
    home = (east, north)
    steps: list[MissionStep] = []
    notes = list(mission.lost)
    if mission.fence:
        notes.append("geoFence: it is not watched")
    for index, item in enumerate(mission.items):
        north, east, down = item.position.tolist()
        if item.mode is MissionMode.TAKEOFF:
            steps.append(MissionStep("takeoff", (east, north), altitude=0.0 - down))
        elif item.mode is MissionMode.WAYPOINT:
            steps.append(MissionStep("waypoint", (east, north), altitude=0.0 - down))
        elif item.mode is MissionMode.LAND:
            steps.append(MissionStep("land", (east, north)))
        elif item.mode is MissionMode.RTL:
            steps.append(MissionStep("land", home))
        else:
            command = mavlink_command(item)
            if command is None or command <= LAST_NAVIGATION:
                what = item.mode.name if command is None else f"MAVLink command {command}"
                raise ConfigError(f"{path}: item {index}: {what}; expected TAKEOFF, WAYPOINT, LAND or RTL")
            notes.append(f"item {index}: MAVLink command {command} is not carried out")
    return steps, home, notes
