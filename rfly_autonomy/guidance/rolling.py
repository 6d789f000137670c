# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tracks of rolling take-offs and landings, and what is against them. docs/model, Eq. 9.2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_modes import (
    CLIMB_SPEED,
    FAST_DESCENT,
    FLARE_BELOW,
    FLARE_SINK,
    RAMP_SHARE,
    RAMP_TIME,
    ROLLING_CLIMB,
    ROLLING_RAMP_TIME,
    ROLLING_SINK,
    SLOW_BELOW,
    SLOW_DESCENT,
)
from rfly_autonomy.control.path_following import (
    ARRIVING,
    BRAKING,
    CLIMBING,
    FLIGHT_ACCELERATION,
    RISEN,
    SPEED_LAG,
)
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate
from rfly_common.arrays import Floats
from rfly_missions.mission.legs import LEAST_ROLLING, FlyLeg, Place
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.planning.rolling_tracks import (
    CLEAR_SHARE,
    EARLY_TIME,
    rolls_at,
    slant_problem,
    track_problem,
)
from rfly_terrain.world.solids import Solids

SPEEDING_UP = 2.5 * SPEED_LAG
"""Time in which a standing vehicle comes to a rolling speed, s."""

ALIGNING = 1.0
"""Time in which a vehicle at speed comes on course, s."""

FAST_ENOUGH = 0.9
"""Share of the rolling speed from which the thrust rises."""

LIFT_OFF_TIME = ROLLING_RAMP_TIME + 0.7
"""Time from the rise of the thrust to the lift-off, s."""

WAITING = 1.0
"""Time by which a glide may begin late, s: the vehicle has to come on course first."""

LATE = 2.5
"""Time by which a touch-down may come late, s: the ground carries, or the height is wrong."""

MOST_ROUGHNESS = 0.5
"""Deviation of a track from its straight profile, as a share of the tyre's radius."""

OBJECT_STEP = 0.5
"""Distance of the places of a track where objects are looked for, m."""

ROUNDING = 1e-6
"""Length by which a way that was chosen for a track may be too short, m."""

OFF_COURSE = math.radians(8.0)
"""Largest angle between a vehicle and its track, rad."""


RAMP_HOVER = RAMP_SHARE**1.5 / 2.5
"""Energy of a second in which the thrust rises evenly, in seconds of hovering."""


def stopping_distance(speed: float) -> float:
    """Return the way in which the guidance slows down from a speed (m/s) to a stand, m."""
    return speed**2 / (2.0 * BRAKING) + speed * SPEED_LAG


@dataclass(frozen=True)
class Track:
    """Straight track on the ground."""

    start: tuple[float, float]
    """Place where it begins, m."""

    direction: tuple[float, float]
    """Unit vector along it."""

    speed: float
    """Speed of rolling, m/s."""

    @property
    def course(self) -> float:
        """Direction of the track, rad."""
        return math.atan2(self.direction[1], self.direction[0])

    @property
    def velocity(self) -> tuple[float, float, float]:
        """Velocity of rolling, m/s."""
        return self.speed * self.direction[0], self.speed * self.direction[1], 0.0

    def along(self, place: ArrayLike) -> float:
        """Return the way along the track to a place, m."""
        x, y = np.asarray(place, float)[:2]
        return float(
            (x - self.start[0]) * self.direction[0] + (y - self.start[1]) * self.direction[1]
        )

    def at(self, distance: float) -> tuple[float, float]:
        """Return the place at a distance along the track, m."""
        return (
            self.start[0] + distance * self.direction[0],
            self.start[1] + distance * self.direction[1],
        )

    def setpoint(
        self, now: Estimate, mode: Mode | None = None, speed: float = 0.0, steering: float = 0.0
    ) -> Setpoint:
        """Return the setpoint of a vehicle that flies along the track, and rolls at a speed."""
        x, y = self.at(self.along(now.position))
        z = float(now.position[2])
        return Setpoint(now.time, mode, speed, steering, (x, y, z), self.velocity, self.course)

    def is_on_course(self, rotation: Floats) -> bool:
        """Return whether a vehicle of this attitude, (3, 3), body -> world, points along it."""
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        return abs(math.remainder(heading - self.course, math.tau)) < OFF_COURSE


def track_between(a: ArrayLike, b: ArrayLike, speed: float) -> Track | None:
    """Return the track from a towards b, (2,) or more; None if they lie at one place."""
    start = np.asarray(a, float)[:2]
    way = np.asarray(b, float)[:2] - start
    length = float(np.linalg.norm(way))
    if length < 1e-3:
        return None
    x, y = (way / length).tolist()
    return Track((float(start[0]), float(start[1])), (x, y), speed)


def run_length(speed: float, standing: bool) -> float:
    """Return the way of a take-off that may have to stop on the ground, m."""
    begin = speed * (ALIGNING + SPEEDING_UP * standing)
    return begin + speed * LIFT_OFF_TIME + stopping_distance(speed)


def climb_length(speed: float, height: float) -> float:
    """Return the way from the rise of the thrust until the vehicle is at a height, m."""
    return speed * (LIFT_OFF_TIME + height / ROLLING_CLIMB)


def glide_length(speed: float, height: float) -> float:
    """Return the way of a rolling landing from a height to the ground, m."""
    high = max(height - FLARE_BELOW, 0.0)
    low = min(height, FLARE_BELOW)
    return speed * (high / ROLLING_SINK + low / FLARE_SINK)


def roll_out_length(speed: float) -> float:
    """Return the way of a roll-out, with that of a late touch-down, m."""
    return speed * LATE + stopping_distance(speed)


def hover_saved_off(speed: float, fly_speed: float, height: float) -> float:
    """Return how many seconds of hovering a rolling take-off saves.

    `speed`: of rolling, m/s; `fly_speed`: of the flight, m/s; `height`: of its begin, m. Eq. 9.3.
    """
    standing = RAMP_HOVER * RAMP_TIME + RISEN / CLIMB_SPEED
    standing += max(height - RISEN, 0.0) / CLIMBING + _lost(fly_speed, 0.0)
    rolling = RAMP_HOVER * ROLLING_RAMP_TIME + LIFT_OFF_TIME - ROLLING_RAMP_TIME
    rolling += height / ROLLING_CLIMB + _lost(fly_speed, speed)
    return standing - rolling


def hover_saved_down(speed: float, fly_speed: float, height: float) -> float:
    """Return how many seconds of hovering a rolling landing saves.

    `speed`: of rolling, m/s; `fly_speed`: of the flight, m/s; `height`: of its end, m. Eq. 9.3.
    """
    standing = _lost(fly_speed, 0.0) + ARRIVING + min(height, SLOW_BELOW) / SLOW_DESCENT
    standing += max(height - SLOW_BELOW, 0.0) / FAST_DESCENT
    return standing - _lost(fly_speed, speed) - glide_length(speed, height) / speed


def highest_take_off(speed: float, fly_speed: float) -> float:
    """Return the height, m, from which on a rolling take-off saves nothing.

    The arguments are those of `hover_saved_off`. Each metre of a climb above RISEN costs more.
    """
    if speed < LEAST_ROLLING:
        return 0.0
    dearer = 1.0 / ROLLING_CLIMB - 1.0 / CLIMBING
    return RISEN + hover_saved_off(speed, fly_speed, RISEN) / dearer


def highest_landing(speed: float, fly_speed: float) -> float:
    """Return the height, m, from which on a rolling landing saves nothing.

    The arguments are those of `hover_saved_down`. Each metre of a glide above SLOW_BELOW costs
    more.
    """
    if speed < LEAST_ROLLING:
        return 0.0
    dearer = 1.0 / ROLLING_SINK - 1.0 / FAST_DESCENT
    return SLOW_BELOW + hover_saved_down(speed, fly_speed, SLOW_BELOW) / dearer


def _lost(fly_speed: float, speed: float) -> float:
    """Return the time that a flight loses while it speeds up from a speed, or slows down, s."""
    return (fly_speed - speed) ** 2 / (2.0 * FLIGHT_ACCELERATION * fly_speed)


@dataclass(frozen=True)
class RollingPlan:
    """Tracks of a flown leg; without one it takes off or lands straight up or down."""

    take_off: Track | None = None
    """Track from the place of the take-off; None: from a stand."""

    landing: Track | None = None
    """Track from the place of the touch-down; None: straight down."""

    glide: float = 0.0
    """Way of the glide before the touch-down, m."""

    notes: tuple[str, ...] = ()
    """Why the vehicle does not roll, if the leg wants it to."""


def rolling_plan(
    leg: FlyLeg,
    onward: Place | None,
    params: VehicleParameters,
    terrain: HeightMap | None,
    standing: bool,
    solids: Solids | None = None,
) -> RollingPlan:
    """Return the tracks of a flown leg on which its vehicle can roll.

    `onward`: the place to drive to after the landing, m. `standing`: whether the vehicle begins
    from a stand. `solids`: known objects on the ground.
    """
    notes = []
    landing = rolling_landing(leg)
    glide = 0.0
    if leg.roll_out:
        glide = glide_length(leg.roll_out, _height(terrain, leg.points[-1]))
        height = _height(terrain, leg.points[-1])
        problem = _landing_problem(leg, landing, glide, onward, params, terrain, solids)
        highest = highest_landing(leg.roll_out, leg.speeds[-1])
        if leg.by_choice and not rolls_at(height, highest):
            problem = "it saves nothing"
        if problem:
            notes.append(f"no rolling landing: {problem}")
            landing = None
            glide = 0.0

    take_off = rolling_take_off(leg)
    if leg.roll_off:
        height = _height(terrain, leg.points[0])
        problem = _take_off_problem(leg, take_off, glide, params, terrain, standing, solids)
        highest = highest_take_off(leg.roll_off, leg.speeds[1])
        if leg.by_choice and not rolls_at(height, highest):
            problem = "it saves nothing"
        if problem:
            notes.append(f"no rolling take-off: {problem}")
            take_off = None
    return RollingPlan(take_off, landing, glide, tuple(notes))


def rolling_take_off(leg: FlyLeg) -> Track | None:
    """Return the track of a leg's rolling take-off, from its first point; None without one."""
    if not leg.roll_off or len(leg.points) < 2:
        return None
    return track_between(leg.points[0], leg.points[1], leg.roll_off)


def rolling_landing(leg: FlyLeg) -> Track | None:
    """Return the track of a leg's rolling landing, from its touch-down; None without one."""
    if not leg.roll_out or len(leg.points) < 2:
        return None
    track = track_between(leg.points[-2], leg.points[-1], leg.roll_out)
    if track is None:
        return None
    x, y, _ = leg.points[-1]
    return Track((x, y), track.direction, track.speed)


def _height(terrain: HeightMap | None, point: ArrayLike) -> float:
    """Return the height of a point, (3,), above the ground, m."""
    x, y, z = np.asarray(point, float).tolist()
    return z if terrain is None else z - float(terrain.altitude(x, y))


def _take_off_problem(
    leg: FlyLeg,
    track: Track | None,
    glide: float,
    params: VehicleParameters,
    terrain: HeightMap | None,
    standing: bool,
    solids: Solids | None,
) -> str:
    """Return what is against a leg's rolling take-off; "" if nothing is."""
    if track is None:
        return "it has no way-point to fly to"

    begin = track.speed * (ALIGNING + SPEEDING_UP * standing)
    height = _height(terrain, leg.points[0])
    top = begin + climb_length(track.speed, height)
    needed = top + (glide if len(leg.points) == 2 else 0.0)
    length = math.dist(leg.points[0][:2], leg.points[1][:2])
    if length < needed - ROUNDING:
        return f"its way of {length:.1f} m is too short, expected {needed:.1f} m"

    lift_off = begin + track.speed * LIFT_OFF_TIME
    end = run_length(track.speed, standing)
    return (
        _ground_problem(track, 0.0, end, params, terrain)
        or _air_problem(track, lift_off, top, height, terrain)
        or _object_problem(
            track, (0.0, max(end, top)), (lift_off, top), height, params, terrain, solids
        )
    )


def _landing_problem(
    leg: FlyLeg,
    track: Track | None,
    glide: float,
    onward: Place | None,
    params: VehicleParameters,
    terrain: HeightMap | None,
    solids: Solids | None,
) -> str:
    """Return what is against a leg's rolling landing; "" if nothing is."""
    if track is None:
        return "it has no way to glide along"

    length = math.dist(leg.points[-2][:2], leg.points[-1][:2])
    if length < glide - ROUNDING:
        return f"its way of {length:.1f} m is too short, expected {glide:.1f} m"

    needed = roll_out_length(track.speed)
    if onward is not None:
        room = track.along(onward)
        aside = math.dist(onward, track.at(room))
        if aside < room < needed:
            return f"its track of {room:.1f} m is too short, expected {needed:.1f} m"

    early = -track.speed * EARLY_TIME
    height = _height(terrain, leg.points[-1])
    return (
        _ground_problem(track, early, needed, params, terrain)
        or _air_problem(track, 0.0, -glide, height, terrain)
        or _object_problem(track, (-glide, needed), (0.0, -glide), height, params, terrain, solids)
    )


def _ground_problem(
    track: Track,
    first: float,
    last: float,
    params: VehicleParameters,
    terrain: HeightMap | None,
) -> str:
    """Return why no vehicle rolls from `first` to `last` (m along a track); "" if one can."""
    if terrain is None:
        return ""
    way = np.array([track.at(first), track.at(last)])
    most = MOST_ROUGHNESS * float(params.rolling_radius.min())
    return track_problem(
        terrain, way, width=params.track, wheelbase=params.wheelbase, most_roughness=most
    )


def _air_problem(
    track: Track, low: float, high: float, height: float, terrain: HeightMap | None
) -> str:
    """Return what is in the way of a climb or glide above a track; "" if nothing is.

    It is on the ground at `low` and `height` (m) above the ground of the track's start at `high`,
    both m along the track.
    """
    if terrain is None:
        return ""
    way = np.array([track.at(low), track.at(high)])
    return slant_problem(terrain, np.array(track.start), way, height)


def _object_problem(
    track: Track,
    span: tuple[float, float],
    slant: tuple[float, float],
    height: float,
    params: VehicleParameters,
    terrain: HeightMap | None,
    solids: Solids | None,
) -> str:
    """Return whether an object is in the way of a take-off or landing; "" if none is.

    `span`: begin and end of its way, m along the track. `slant`: places where its climb or glide is
    at the ground, and at `height` above the track's start, m. Objects may rise as high as ground.
    """
    if solids is None or not len(solids):
        return ""
    count = max(2, math.ceil((span[1] - span[0]) / OBJECT_STEP) + 1)
    along = np.linspace(*span, count)
    places = np.array(track.start) + along[:, None] * np.array(track.direction)
    risen = height * np.clip((along - slant[0]) / (slant[1] - slant[0]), 0.0, 1.0)

    ground = np.zeros(count)
    base = 0.0
    if terrain is not None:
        ground = np.asarray(terrain.altitude(places[:, 0], places[:, 1]))
        base = float(terrain.altitude(*track.start))
    highest = np.where(risen > 0.0, base + CLEAR_SHARE * risen, ground)
    highest = highest + MOST_ROUGHNESS * float(params.rolling_radius.min())

    outlines = solids.outlines
    place, which = outlines.near(places, params.reach)
    return "an object is in its way" if (outlines.top[which] > highest[place]).any() else ""
