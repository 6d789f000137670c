"""Take-over of a path by a moving vehicle of a fleet, from its present position and speed."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.motion.speed_profile import (
    Schedule,
    SpeedProfile,
    join_schedules,
    progress,
    schedule,
)
from rfly_trajectory.paths.nav_path import MAX_COORDINATE, sections
from rfly_trajectory.paths.path import Path
from rfly_trajectory.paths.waypoints import MovingPose, path_through, reversed_path, transition_to

MAX_POSES = 10_000
LATERAL_ACCELERATION = {"ground": 3.0, "multirotor": 4.0, "fixed_wing": 6.0}
"""m/s² in corners of vehicles whose limits say nothing of it"""
MIN_RADIUS = 0.5
"""m"""
BLEND_TIME = 2.0
"""s, about, in which an aircraft begins to climb or sink to the path's heights"""
DEFAULT_ACCELERATION = 2.0
"""m/s², where a speed profile has none"""
STANDSTILL_SPEED = 1e-9
"""m/s that count as standing"""

_Piece = tuple[float, float, float, float, float]
"""time, arc length, speed, acceleration, jerk; as in `motion.Schedule`"""


def schedule_to_end(length: float, speed: float, profile: SpeedProfile) -> Schedule:
    """From arc length 0, which is passed at `speed` ≥ 0 [m/s], to a stop at `length` [m].

    It is the profile's own motion from rest to rest, entered on the way at that speed;
    DEFAULT_ACCELERATION where the profile has none. A vehicle above its cruising speed brakes to
    that first, and one that can't stop in time brakes as hard as it takes.
    """
    if profile.acceleration is None:
        profile = dataclasses.replace(profile, acceleration=DEFAULT_ACCELERATION)
    brake = deceleration(profile)
    if speed > profile.cruise:
        distance = (speed**2 - profile.cruise**2) / (2.0 * brake)
        time = (speed - profile.cruise) / brake
        if distance >= length:
            return stop(0.0, speed, 0.5 * speed**2 / length)
        rest = schedule_to_end(length - distance, profile.cruise, profile)
        later = [(time + t, distance + s, v, a, j) for t, s, v, a, j in rest.pieces]
        return Schedule([(0.0, 0.0, speed, -brake, 0.0), *later] if time else later, 0.0, math.inf)
    if speed <= STANDSTILL_SPEED:
        return schedule(length, False, profile, "stop")
    jerk = profile.jerk or math.inf
    run_up = (
        profile.cruise**2 / brake + profile.cruise * brake / jerk
    )  # about; the way to the speed follows from it
    for _ in range(100):
        pieces = schedule(length + run_up, False, profile, "stop").pieces
        number, entry = _entry(pieces, speed)
        if number < 0:
            break
        if abs(entry[1] - run_up) <= 1e-12 * (length + run_up):
            return _schedule_from(entry, pieces[number + 1 :], length)
        run_up = entry[1]
    return stop(0.0, speed, 0.5 * speed**2 / length)


def stop(s: float, speed: float, brake: float) -> Schedule:
    """To standstill from arc length s [m], which is passed at `speed` [m/s], < 0 backwards; `brake`
    in m/s².
    """
    if abs(speed) <= STANDSTILL_SPEED:
        return Schedule([(0.0, s, 0.0, 0.0, 0.0)], 0.0, math.inf)
    distance = 0.5 * speed * abs(speed) / brake
    braking = (0.0, s, speed, -math.copysign(brake, speed), 0.0)
    return Schedule([braking, (abs(speed) / brake, s + distance, 0.0, 0.0, 0.0)], 0.0, math.inf)


def deceleration(profile: SpeedProfile) -> float:
    """m/s² with which a vehicle of this profile brakes."""
    return profile.deceleration or profile.acceleration or DEFAULT_ACCELERATION


def _entry(pieces: list[_Piece], speed: float) -> tuple[int, _Piece]:
    """Where a motion from rest first has a speed, while it accelerates or as soon as it cruises:
    number of the piece (-1: nowhere), and the motion then.
    """
    for i, ((time, s, v, a, j), after) in enumerate(itertools.pairwise(pieces)):
        if a < 0.0:
            break
        gain = speed - v
        if gain <= 1e-12 * speed:
            return i, (time, s, v, a, j)
        root = math.sqrt(max(0.0, a * a + 2.0 * j * gain))
        run = 2.0 * gain / (a + root) if a + root > 0.0 else math.inf
        if time + run < after[0]:
            return i, (
                time + run,
                s + run * (v + run * (a / 2.0 + run * j / 6.0)),
                speed,
                a + run * j,
                j,
            )
    return -1, pieces[0]


def _schedule_from(entry: _Piece, pieces: list[_Piece], length: float) -> Schedule:
    """The motion from an entry and on the pieces after it, in time and arc length since then."""
    time, distance, speed, a, j = entry
    later = [(max(t - time, 0.0), s - distance, v, b, k) for t, s, v, b, k in pieces]
    later[-1] = (later[-1][0], length, 0.0, 0.0, 0.0)
    return Schedule([(0.0, 0.0, speed, a, j), *later], 0.0, math.inf)


class TakeOver(NamedTuple):
    """What becomes of a vehicle."""

    vehicle: Vehicle
    stop_time: float
    """fleet time from which it stands still, s"""


def corner_radius(vehicle: Vehicle) -> float:
    """m: the turning radius of its limits, else what its lateral acceleration allows at its
    cruising speed.
    """
    limits = vehicle.limits
    if limits.turn_radius is not None:
        return max(limits.turn_radius, MIN_RADIUS)
    lateral = limits.lateral_acceleration or LATERAL_ACCELERATION[vehicle.kind]
    return max(vehicle.profile.cruise**2 / lateral, MIN_RADIUS)


class Reference(NamedTuple):
    """A path to `follow`, from its start to its end."""

    path: Path
    backward: bool = False
    """whether the vehicle drives it backwards"""


def reference_paths(
    vehicle: Vehicle, points: Floats, heading: Floats | None = None
) -> tuple[Reference, ...]:
    """The path through points (k, 3), ENU m, for a vehicle to `follow`; their heights are for
    aircraft.

    It is one path, unless the headings (k,) [rad] tell that a ground vehicle drives some of its
    `sections` backwards. Raises ConfigError where they are none that it can follow.
    """
    if not 2 <= len(points) <= MAX_POSES:
        raise ConfigError(
            f"poses: {len(points)} of them, expected 2 to {MAX_POSES}, or none to stop"
        )
    if not np.isfinite(points).all():
        raise ConfigError(
            f"poses[{int(np.argmin(np.isfinite(points).all(axis=1)))}]: its position is not finite"
        )
    if np.abs(points).max() > MAX_COORDINATE:
        first = int(np.argmax((np.abs(points) > MAX_COORDINATE).any(axis=1)))
        raise ConfigError(
            f"poses[{first}]: its position lies more than {MAX_COORDINATE:g} m from the origin"
        )
    if vehicle.profile.cruise == 0.0:
        raise ConfigError("the speed of this vehicle is 0 in its fleet file")
    radius = corner_radius(vehicle)
    if vehicle.kind != "ground":
        return (Reference(path_through(points, radius)),)
    points, found = points[:, :2], sections(points, heading)
    if heading is None or not any(section.backward for section in found):
        return (Reference(path_through(points, radius)),)
    paths = []
    for first, last, backward in found:
        begin, end = (heading[[first, last]] + (math.pi if backward else 0.0)).tolist()
        paths.append(
            Reference(path_through(points[first : last + 1], radius, (begin, end)), backward)
        )
    return tuple(paths)


def follow(fleet: Fleet, index: int, time: float, reference: Reference) -> TakeOver | None:
    """The vehicle with this index from fleet time `time` [s] on, on one of its `reference_paths`.

    It goes on from its place with its heading and speed, gets onto the path (`transition_to`),
    follows it with its own speed profile and stops at its end. None for a vehicle that moves the
    other way: it has to stop first. Raises ConfigError where the path is too far away.
    """
    vehicle = fleet.vehicles[index]
    now = fleet.sample_vehicles(np.array([index]), np.array([time]))
    (x, y, tx, ty), speed = now.points[0, :4].tolist(), float(now.progress[0, 1])
    sign = -1.0 if reference.backward else 1.0
    if sign * speed < -STANDSTILL_SPEED:
        return None
    pose = MovingPose(
        x, y, math.atan2(sign * ty, sign * tx), float(now.position[0, 2]), float(now.slope[0])
    )
    path = transition_to(
        reference.path, pose, corner_radius(vehicle), BLEND_TIME * vehicle.profile.cruise
    )
    if path is None:
        return brake_to_stop(fleet, index, time)
    timing = schedule_to_end(path.length, max(sign * speed, 0.0), vehicle.profile)
    if reference.backward:
        length = path.length
        path = reversed_path(path)
        pieces = [(t, length - s, -v, -a, -j) for t, s, v, a, j in timing.pieces]
        timing = timing._replace(pieces=pieces)
    height = {} if path.altitude is None else {"height": 0.0, "absolute": False}
    return _take_over(
        vehicle, time, timing, path=path, phase=0.0, shift=(0.0, 0.0), offset=(0.0, 0.0), **height
    )


def brake_to_stop(fleet: Fleet, index: int, time: float) -> TakeOver:
    """The vehicle with this index, which brakes on its own path from fleet time `time` [s] on and
    stays there.
    """
    vehicle = fleet.vehicles[index]
    table = join_schedules([vehicle.schedule], [vehicle.delay])
    s, speed = progress(table, np.zeros(1, np.int64), np.array([time]))[0, :2].tolist()
    brake = deceleration(vehicle.profile)
    if not vehicle.path.closed and abs(speed) > STANDSTILL_SPEED:
        left = max(vehicle.path.length - s if speed > 0.0 else s, 1e-6)
        brake = max(brake, 0.5 * speed**2 / left)
    return _take_over(vehicle, time, stop(s, speed, brake))


def _take_over(vehicle: Vehicle, time: float, timing: Schedule, **changes: Any) -> TakeOver:
    changed = dataclasses.replace(
        vehicle, at_end="stop", delay=max(time, 0.0), timing=timing, **changes
    )
    return TakeOver(changed, changed.delay + changed.schedule.pieces[-1][0])


def replace_vehicles(fleet: Fleet, changed: Mapping[int, Vehicle]) -> Fleet:
    """The fleet with other vehicles at these indices."""
    return fleet.of([changed.get(i, vehicle) for i, vehicle in enumerate(fleet.vehicles)])
