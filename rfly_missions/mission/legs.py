# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Driven and flown legs of a land-air mission or a planned path.

The vehicle flies between take-off and landing, and drives otherwise.
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
from rfly_missions.mission.mavlink_items import LAST_NAVIGATION
from rfly_terrain.height_map.height_map import HeightMap
from rfly_trajectory.paths.nav_path import sections

Place = tuple[float, float]
Point = tuple[float, float, float]

MIN_CLEARANCE = 1.0
"""Least height of the wheels above the ground on the way from point to point, m."""

SAME_PLACE = 0.5
"""Distance up to which two places count as one, m."""

DRIVE_SPEED = 3.0
"""Speed on the ground where neither a scenario nor a node sets one, m/s."""

FLY_SPEED = 4.0
"""Speed in the air where neither a scenario nor a node sets one, m/s."""

LEAST_ROLLING = 1.5
"""Least speed of rolling take-offs and landings, m/s."""

CHOSEN_LANDING = 3.0
"""Largest speed of a rolling landing by choice, m/s: its track grows with the speed."""

BACKWARD_SPEED = 1.5
"""Largest speed backwards, m/s."""


@dataclass(frozen=True)
class MissionStep:
    """One item of a mission; what is not given stays as it was."""

    mode: Literal["waypoint", "takeoff", "land"]
    place: Place | None = None
    """Place, x east, y north, m."""

    height: float | None = None
    """Height above the ground at the place, m."""

    altitude: float | None = None
    """Altitude of the wheels, z up, m."""

    speed: float | None = None
    """Speed on the way there, m/s."""

    rolling: bool = False
    """True if a take-off or landing is on rolling wheels."""

    thrust_assist: bool = False
    """Whether the rotors may help on a way there that is driven."""


@dataclass(frozen=True)
class DriveLeg:
    """Way-points on the ground, and the speed to each."""

    points: tuple[Place, ...]
    """Way-points, x east, y north, m."""

    speeds: tuple[float, ...]
    """Speed to each way-point, m/s."""

    backward: bool = False
    """True if the vehicle drives backwards."""

    thrust_assist: bool = False
    """True if the rotors may help where the wheels get no further."""


@dataclass(frozen=True)
class FlyLeg:
    """Flight up to the first point, on through the others, and down if it lands."""

    points: tuple[Point, ...]
    """Points of the wheels, x east, y north, z up, m."""

    speeds: tuple[float, ...]
    """Speed to each point, m/s."""

    lands: bool
    """True if the vehicle lands below the last point."""

    roll_off: float = 0.0
    """Speed on the ground of a rolling take-off, m/s; 0: straight up."""

    roll_out: float = 0.0
    """Speed on the ground of a rolling landing, m/s; 0: straight down."""

    by_choice: bool = False
    """True if it rolls only where that saves energy."""


Leg = DriveLeg | FlyLeg


class StepError(ConfigError):
    """Mission that cannot be carried out; `step` is the index of the wrong item."""

    def __init__(self, step: int, text: str) -> None:
        super().__init__(text)
        self.step = step


class _LegBuilder:
    """Legs of a mission, built step by step. Raise StepError for a step that is not possible."""

    def __init__(
        self,
        start: Place,
        terrain: HeightMap | None,
        drive_speed: float,
        fly_speed: float,
        may_roll: bool,
    ) -> None:
        self._may_roll = may_roll
        self._terrain = terrain
        self._drive_speed = drive_speed
        self._fly_speed = fly_speed
        self._here = start
        self._flying = False
        self._legs: list[Leg] = []
        self._driven: list[tuple[Place, float]] = []
        """Way-points of the present drive, with their speeds."""

        self._assisted = False
        """Whether the rotors may help on the present drive."""

        self._flown: list[tuple[Point, float]] = []
        """Points of the present flight, with their speeds."""

        self._rolls_off = False
        """True if the present flight began on rolling wheels."""

        self._rolling_step = 0
        """Index of the last item that is rolling."""

        self._roll_speed = drive_speed
        """Speed of the last drive, m/s."""

    def add(self, index: int, step: MissionStep) -> None:
        """Append step number `index`."""
        terrain = self._terrain
        place = self._here if step.place is None else step.place
        if terrain is not None and not terrain.inside(*place):
            x, y = place
            raise StepError(
                index, f"x {x:g}, y {y:g} lies off the map, which spans {terrain.bounds}"
            )

        if step.rolling:
            self._rolling_step = index

        altitude = step.altitude
        if step.height is not None:
            ground = 0.0 if terrain is None else float(terrain.altitude(*place))
            altitude = ground + step.height

        if step.mode == "takeoff":
            assert altitude is not None
            if self._flying and altitude <= self._flown[-1][0][2]:
                return  # there is nothing to climb, and a take-off does not descend
            self._rolls_off |= step.rolling and not self._flying
            self._take_off(index, place, altitude)
        elif step.mode == "land":
            self._land(index, place, step.rolling)
        elif self._flying:
            _, _, z = self._flown[-1][0]
            point = (*place, z if altitude is None else altitude)
            self._fly_to(index, point, step.speed or self._fly_speed)
        elif step.height is not None:
            raise StepError(
                index, "height_m: this way-point is driven to; expected a take-off before it"
            )
        else:
            if step.thrust_assist is not self._assisted:
                self._end_drive()
                self._assisted = step.thrust_assist
            self._roll_speed = step.speed or self._drive_speed
            self._driven.append((place, self._roll_speed))
        self._here = place

    def legs(self) -> tuple[Leg, ...]:
        """Return the legs, with the last one ended."""
        self._end_drive()
        self._end_flight(lands=False)
        return tuple(self._legs)

    def _take_off(self, index: int, place: Place, altitude: float) -> None:
        """Begin a flight, or climb on in one, from the present place."""
        self._end_drive()
        self._flying = True
        self._fly_to(index, (*self._here, altitude), self._fly_speed)
        if math.dist(place, self._here) > SAME_PLACE:
            self._fly_to(index, (*place, altitude), self._fly_speed)

    def _land(self, index: int, place: Place, rolling: bool) -> None:
        """End a flight at a place."""
        if not self._flying:
            raise StepError(index, "a landing on the ground; expected a take-off before it")
        if math.dist(place, self._here) > SAME_PLACE:
            _, _, z = self._flown[-1][0]
            self._fly_to(index, (*place, z), self._fly_speed)
        self._end_flight(lands=True, rolling=rolling)
        self._flying = False

    def _fly_to(self, index: int, point: Point, speed: float) -> None:
        """Append a point to the flight, if the way there is free."""
        before = self._flown[-1][0] if self._flown else (*self._here, point[2])
        _check_way(index, before, point, self._terrain)
        self._flown.append((point, speed))

    def _end_drive(self) -> None:
        """Append the leg of the present drive."""
        if self._driven:
            points, speeds = zip(*self._driven, strict=True)
            self._legs.append(DriveLeg(points, speeds, thrust_assist=self._assisted))
            self._driven.clear()

    def _end_flight(self, lands: bool, rolling: bool = False) -> None:
        """Append the leg of the present flight; `rolling`: whether it lands on rolling wheels."""
        if self._flown:
            points, speeds = zip(*self._flown, strict=True)
            chooses = self._may_roll
            roll_off = self._rolling_speed(speeds[:2]) if self._rolls_off or chooses else 0.0
            rolls_out = rolling or (chooses and lands)
            roll_out = self._rolling_speed(speeds[-1:]) if rolls_out else 0.0
            if chooses:
                roll_out = min(roll_out, CHOSEN_LANDING)
            self._legs.append(FlyLeg(points, speeds, lands, roll_off, roll_out, chooses))
            self._flown.clear()
            self._rolls_off = False

    def _rolling_speed(self, flown: Sequence[float]) -> float:
        """Return the speed of rolling before or after flying at speeds, m/s; 0: by choice, not."""
        speed = min(self._roll_speed, *flown)
        is_upright = all(
            math.dist(self._flown[0][0][:2], point[:2]) < SAME_PLACE for point, _ in self._flown
        )
        if self._may_roll:
            return 0.0 if is_upright or speed < LEAST_ROLLING else speed
        if is_upright:
            raise StepError(
                self._rolling_step, "rolling: there is no way to fly; expected a way-point"
            )
        if speed < LEAST_ROLLING:
            raise StepError(
                self._rolling_step,
                f"rolling: at {speed:g} m/s; expected speeds on the ground and in the air of "
                f"{LEAST_ROLLING:g} m/s at least",
            )
        return speed


def legs_of(
    steps: Sequence[MissionStep],
    start: Place,
    terrain: HeightMap | None,
    drive_speed: float,
    fly_speed: float,
    may_roll: bool = False,
) -> tuple[Leg, ...]:
    """Return the legs of a mission that begins at `start`.

    `may_roll`: whether take-offs and landings roll where that saves energy. Raise StepError, a
    ConfigError, for a step that is not possible.
    """
    builder = _LegBuilder(start, terrain, drive_speed, fly_speed, may_roll)
    for index, step in enumerate(steps):
        builder.add(index, step)
    return builder.legs()


def _check_way(index: int, a: Point, b: Point, terrain: HeightMap | None) -> None:
    """Raise StepError if the straight line from a to b comes too near to the ground."""
    count = 2
    if terrain is not None:
        cell = min(abs(terrain.step_x), abs(terrain.step_y))
        count += int(2.0 * math.dist(a[:2], b[:2]) / cell)
    line: Floats = np.linspace(a, b, count)
    heights = line[:, 2] - _ground_height(terrain, line)

    lowest = int(np.argmin(heights))
    if heights[lowest] < MIN_CLEARANCE:
        x, y, _ = line[lowest]
        raise StepError(
            index,
            f"the way there comes to {heights[lowest]:.1f} m above the ground at x {x:.1f}, "
            f"y {y:.1f}; expected {MIN_CLEARANCE:g} m at least",
        )


def steps_of_file(
    path: str, terrain: HeightMap | None, start: Place | None
) -> tuple[list[MissionStep], Place, list[str]]:
    """Return the steps of a .plan or .waypoints file, its home (x east, y north), and notes.

    The notes name what is not carried out. With a map, home lies at the place of the map's geodetic
    origin; without one at `start` or, without that, at 0, 0, and its altitude is that of the level
    ground. Raise ConfigError (MissionFileError) that names file and item.
    """
    origin = (terrain.geo_origin if terrain is not None else None) or DEFAULT_GEO_ORIGIN

    def above_sea(latitude: float, longitude: float) -> float:
        """Return the altitude of the map at a place, m above sea level."""
        assert terrain is not None
        north, east, _ = geodetic_to_ned((latitude, longitude, 0.0), origin).tolist()
        return origin[2] + float(terrain.altitude(east, north))

    # place the mission
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
            place = None if item.here else (east, north)
            steps.append(MissionStep("takeoff", place, altitude=0.0 - down))
        elif item.mode is MissionMode.WAYPOINT:
            steps.append(MissionStep("waypoint", (east, north), altitude=0.0 - down))
        elif item.mode is MissionMode.LAND:
            steps.append(MissionStep("land", (east, north)))
        elif item.mode is MissionMode.RTL:
            steps.append(MissionStep("land", home))
        else:
            if item.command <= LAST_NAVIGATION:
                what = f"MAVLink command {item.command}" if item.command else item.mode.name
                raise ConfigError(
                    f"{path}: item {index}: {what}; expected TAKEOFF, WAYPOINT, LAND or RTL"
                )
            notes.append(f"item {index}: MAVLink command {item.command} is not carried out")
    return steps, home, notes


ON_GROUND = 1.0
"""Height up to which a pose of a path counts as on the ground, as in the planner, m."""

DRAWN_STEP = 2.0
"""Distance between the points of a driven way, m."""

MOST_DRAWN = 20_000
"""Most points of a way, except two more per leg; a longer way has wider steps."""

FARTHEST = 1e7
"""Largest distance of a path from the map's origin, m."""


def way_of_legs(legs: Sequence[Leg], place: ArrayLike, terrain: HeightMap | None) -> Floats:
    """Return the way of the wheels from `place` (x, y), (n, 3), x east, y north, z up, m.

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
            end = np.asarray(point, float)
            if isinstance(leg, DriveLeg):
                count = max(2, math.ceil(math.dist(here, end) / step) + 1)
                way.append(_on_ground(np.linspace(here, end, count)[1:], terrain))
            else:
                way.append(end[None])
            here = end[:2]
        if isinstance(leg, FlyLeg) and leg.lands:
            way.append(_on_ground(here[None], terrain))
    return np.concatenate(way)


def _on_ground(places: Floats, terrain: HeightMap | None) -> Floats:
    """Return points on the ground (n, 3) at places (n, 2)."""
    return np.column_stack([places, _ground_height(terrain, places)])


def _ground_height(terrain: HeightMap | None, places: Floats) -> Floats:
    """Return the height of the ground at places (n, 2 or more), m; without a terrain 0."""
    if terrain is None:
        return np.zeros(len(places))
    return np.asarray(terrain.altitude(places[:, 0], places[:, 1]))


def legs_of_path(
    points: ArrayLike,
    terrain: HeightMap | None,
    drive_speed: float,
    fly_speed: float,
    place: ArrayLike | None = None,
    heading: Floats | None = None,
) -> tuple[Leg, ...]:
    """Return the legs of a path of points (n, 3), x east, y north, z up, m.

    A segment is driven if both its ends lie on the ground (without a terrain z = 0). A run of other
    segments is a flight, which takes off and lands straight up and down at its ends. A path that
    ends in the air ends hovering there. `place` (x, y): of the vehicle; the part of a driven way
    behind it is left out. `heading` (n,): of the poses, rad, None: unknown; where it is against a
    driven way, that is a leg of its own, driven backwards (`sections`). Raise PlanError for a path
    that cannot be followed.
    """
    way = np.asarray(points, float)

    # check the path
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

    if terrain is not None:
        outside = ~np.asarray(terrain.inside(way[:, 0], way[:, 1]))
        if outside.any():
            x, y = way[outside][0, :2]
            raise PlanError("outside", f"the path leads to x {x:.1f}, y {y:.1f}, off the map")

    # driven and flown runs
    low = way[:, 2] <= _ground_height(terrain, way) + ON_GROUND
    driven = low[1:] & low[:-1]
    legs: list[Leg] = []
    first = 0
    for drives, run in itertools.groupby(driven.tolist()):
        last = first + len(list(run))
        piece = way[first : last + 1]
        if drives:
            poses = None if heading is None else heading[first : last + 1]
            legs += _drives(piece, poses, drive_speed, legs, place)
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
    """Return the legs of a driven way (n, 3).

    If there are none before, they begin at `place`.
    """
    legs: list[Leg] = []
    for first, last, backward in sections(way, heading):
        xy = way[first : last + 1, :2]
        if legs:  # the vehicle stands at the cusp, or a little beyond it
            away = np.hypot(*(xy - xy[0]).T) > SAME_PLACE
            begin = max(int(np.argmax(away)) - 1, 0) if away.any() else len(xy) - 2
            xy = xy[begin:]
        elif place is not None and not before:
            xy = _ahead_of(xy, np.asarray(place, float))
        most = min(speed, BACKWARD_SPEED) if backward else speed
        points = tuple((x, y) for x, y in xy[1:].tolist())
        legs.append(DriveLeg(points, (most,) * len(points), backward))
    return legs


def _flight(piece: Floats, takes_off: bool, lands: bool, speed: float) -> FlyLeg:
    """Return the leg of a flown run (n, 3), without its ends on the ground."""
    begin = 1 if takes_off else 0
    end = len(piece) - 1 if lands else len(piece)
    high = piece[begin:end]
    if not len(high):
        x, y, z = piece[0].tolist()
        raise PlanError(
            "bad_path",
            f"the path leaves the ground at x {x:.1f}, y {y:.1f}, z {z:.1f} without a way up",
        )

    points: list[Point] = [(x, y, z) for x, y, z in high.tolist()]

    # straight up and down at the ends
    first_x, first_y, _ = piece[0].tolist()
    last_x, last_y, _ = piece[-1].tolist()
    if takes_off and math.dist((first_x, first_y), points[0][:2]) > SAME_PLACE:
        points.insert(0, (first_x, first_y, points[0][2]))
    if lands and math.dist((last_x, last_y), points[-1][:2]) > SAME_PLACE:
        points.append((last_x, last_y, points[-1][2]))
    return FlyLeg(tuple(points), (speed,) * len(points), lands)


def _ahead_of(way: Floats, place: Floats) -> Floats:
    """Return the way (n, 2) from the nearest point to a place, (k, 2)."""
    steps = np.diff(way, axis=0)
    squares = np.maximum((steps**2).sum(axis=1), 1e-12)
    share = np.clip(((place - way[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
    feet = way[:-1] + share[:, None] * steps
    nearest = int(np.argmin(((feet - place) ** 2).sum(axis=1)))
    return np.concatenate([feet[nearest : nearest + 1], way[nearest + 1 :]])
