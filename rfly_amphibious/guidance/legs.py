"""Driven and flown legs of a land-air mission or a planned path: flown between take-off and
landing, else driven.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError, PlanError
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, geodetic_to_ned
from rfly_missions.mission.files import Mission, read_mission
from rfly_missions.mission.items import MissionMode
from rfly_missions.mission.mavlink_items import LAST_NAVIGATION, mavlink_command
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.paths.nav_path import sections

Place = tuple[float, float]
Point = tuple[float, float, float]

MIN_CLEARANCE = 1.0
"""m of the wheels above the ground, at least, on the way from point to point"""
SAME_PLACE = 0.5
"""m"""
BACKWARD_SPEED = 1.5
"""m/s of what is driven backwards, at most"""


@dataclass(frozen=True)
class MissionStep:
    """One item: `place` x east, y north; above the ground there by `height`, or with the wheels at
    `altitude` (z up).

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
    backward: bool = False
    """whether it drives backwards"""


@dataclass(frozen=True)
class FlyLeg:
    """From where it stands up to the first point, on through the others, and down again where it
    `lands`.
    """

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
    """The legs of a mission that begins at `start`. Raises StepError, a ConfigError, for what can't
    be done.
    """
    legs: list[Leg] = []
    driven: list[tuple[Place, float]] = []
    flown: list[tuple[Point, float]] = []
    here = start
    flying = False

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
            raise StepError(
                index,
                f"x {place[0]:g}, y {place[1]:g} lies off the map, which spans {terrain.bounds}",
            )
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
            fly_to(
                index,
                (*place, flown[-1][0][2] if above is None else above),
                step.speed or fly_speed,
            )
        elif step.height is not None:
            raise StepError(
                index, "height_m: this way-point is driven to; expected a take-off before it"
            )
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
    """Steps of a .plan or .waypoints file, where its home lies (x east, y north), and what of it is
    not carried out.

    With a map, home lies where the map's geodetic origin says; without one at `start` or, without
    that, at 0, 0, and its altitude is that of the level ground. Raises ConfigError
    (MissionFileError) that names file and item.
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
                raise ConfigError(
                    f"{path}: item {index}: {what}; expected TAKEOFF, WAYPOINT, LAND or RTL"
                )
            notes.append(f"item {index}: MAVLink command {command} is not carried out")
    return steps, home, notes


ON_GROUND = 1.0
"""m above the ground, up to which a pose of a path counts as on it, as the planner has it"""
DRAWN_STEP = 2.0
"""m between the points of a way that is driven"""
MOST_DRAWN = 20_000
"""of these points, but for two more a leg; they lie farther apart on a longer way"""
FARTHEST = 1e7
"""m from the map's origin"""


def way_of_legs(legs: Sequence[Leg], place: ArrayLike, terrain: HeightMap | None) -> Floats:
    """(n, 3) points x east, y north, z up, m, of the wheels on the whole way from `place` x, y.

    Driven ways follow the ground, without a terrain z = 0; flights rise and land straight up and
    down.
    """
    here = np.asarray(place, float)
    corners = np.array([here, *(point[:2] for leg in legs for point in leg.points)])
    length = float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum())
    step = max(DRAWN_STEP, length / MOST_DRAWN)
    way = [_on_ground(here[None], terrain)]
    for leg in legs:
        for point in leg.points:
            there = np.asarray(point, float)
            if isinstance(leg, DriveLeg):
                count = max(2, math.ceil(math.dist(here, there) / step) + 1)
                way.append(_on_ground(np.linspace(here, there, count)[1:], terrain))
            else:
                way.append(there[None])
            here = there[:2]
        if isinstance(leg, FlyLeg) and leg.lands:
            way.append(_on_ground(here[None], terrain))
    return np.concatenate(way)


def _on_ground(places: Floats, terrain: HeightMap | None) -> Floats:
    z = np.zeros(len(places)) if terrain is None else terrain.altitude(places[:, 0], places[:, 1])
    return np.column_stack([places, z])


def legs_of_path(
    points: ArrayLike,
    terrain: HeightMap | None,
    drive_speed: float,
    fly_speed: float,
    place: ArrayLike | None = None,
    heading: Floats | None = None,
) -> tuple[Leg, ...]:
    """The legs of a path of points (n, 3) x east, y north, z up, m; without a terrain the ground is
    z = 0.

    A segment is driven where both its ends lie on the ground; a run of others is a flight that
    takes off and lands straight up and down at its ends. A path that ends in the air ends hovering
    there. `place` x, y: where the vehicle is; what of a way that begins on the ground lies behind
    it is left out. `heading` (n,) rad of the poses, None: not known; where they look against a
    driven way it is a leg of its own, driven backwards (`sections`). Raises PlanError for a path
    that can't be followed.
    """
    way = np.asarray(points, float)
    if way.ndim != 2 or way.shape[1:] != (3,) or len(way) < 2:
        raise PlanError(
            "bad_path", f"a path of shape {way.shape}, expected two points x, y, z or more"
        )
    if not np.isfinite(way).all():
        raise PlanError("not_finite", "a point of the path is not finite")
    if np.abs(way).max() > FARTHEST:
        raise PlanError(
            "bad_path",
            f"the path leads farther than {FARTHEST / 1e3:,.0f} km from the map's origin",
        )
    if terrain is None:
        ground = np.zeros(len(way))
    else:
        outside = ~np.asarray(terrain.inside(way[:, 0], way[:, 1]))
        if outside.any():
            x, y = way[outside][0, :2]
            raise PlanError("outside", f"the path leads to x {x:.1f}, y {y:.1f}, off the map")
        ground = np.asarray(terrain.altitude(way[:, 0], way[:, 1]))
    low = way[:, 2] <= ground + ON_GROUND
    driven = low[1:] & low[:-1]
    legs: list[Leg] = []
    first = 0
    for drives, run in itertools.groupby(driven.tolist()):
        last = first + len(list(run))
        piece = way[first : last + 1]
        if drives:
            legs += _drives(
                piece,
                None if heading is None else heading[first : last + 1],
                drive_speed,
                legs,
                place,
            )
        else:
            legs.append(_flight(piece, bool(low[first]), bool(low[last]), fly_speed))
        first = last
    return tuple(legs)


def _drives(
    way: Floats,
    heading: Floats | None,
    speed: float,
    before: Sequence[Leg],
    place: ArrayLike | None,
) -> list[Leg]:
    """Legs of a driven way (n, 3), the first ones of a path from `place` where there are none
    before.
    """
    legs: list[Leg] = []
    for first, last, backward in sections(way, heading):
        xy = way[first : last + 1, :2]
        if legs:  # it stands at the cusp, or a little beyond it
            away = np.hypot(*(xy - xy[0]).T) > SAME_PLACE
            xy = xy[max(int(np.argmax(away)) - 1, 0) if away.any() else len(xy) - 2 :]
        elif place is not None and not before:
            xy = _ahead_of(xy, np.asarray(place, float))
        most = min(speed, BACKWARD_SPEED) if backward else speed
        legs.append(
            DriveLeg(tuple((x, y) for x, y in xy[1:].tolist()), (most,) * (len(xy) - 1), backward)
        )
    return legs


def _flight(piece: Floats, takes_off: bool, lands: bool, speed: float) -> FlyLeg:
    high = piece[1 if takes_off else 0 : len(piece) - 1 if lands else len(piece)]
    if not len(high):
        x, y, z = piece[0].tolist()
        raise PlanError(
            "bad_path",
            f"the path leaves the ground at x {x:.1f}, y {y:.1f}, z {z:.1f} without a way up",
        )
    points: list[Point] = [(x, y, z) for x, y, z in high.tolist()]
    if takes_off and math.dist(piece[0, :2], points[0][:2]) > SAME_PLACE:
        points.insert(0, (float(piece[0, 0]), float(piece[0, 1]), points[0][2]))
    if lands and math.dist(piece[-1, :2], points[-1][:2]) > SAME_PLACE:
        points.append((float(piece[-1, 0]), float(piece[-1, 1]), points[-1][2]))
    return FlyLeg(tuple(points), (speed,) * len(points), lands)


def _ahead_of(way: Floats, place: Floats) -> Floats:
    """(k, 2) from the foot of the place on the way (n, 2) on."""
    steps = np.diff(way, axis=0)
    squares = np.maximum((steps**2).sum(axis=1), 1e-12)
    share = np.clip(((place - way[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
    feet = way[:-1] + share[:, None] * steps
    nearest = int(np.argmin(((feet - place) ** 2).sum(axis=1)))
    return np.concatenate([feet[nearest : nearest + 1], way[nearest + 1 :]])
