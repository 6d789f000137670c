# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

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
"""Sideways acceleration in corners, m/s², of vehicles whose limits don't give one."""
MIN_RADIUS = 0.5
"""Smallest radius of a corner, m."""
BLEND_TIME = 2.0
"""Approximate time in which an aircraft begins to climb or sink to the path's heights, s."""
DEFAULT_ACCELERATION = 2.0
"""Acceleration, m/s², if a speed profile has none."""
STANDSTILL_SPEED = 1e-9
"""Speed that counts as standing, m/s."""

_Piece = tuple[float, float, float, float, float]
"""Time, arc length, speed, acceleration, jerk; as in `motion.Schedule`."""


def schedule_to_end(length: float, speed: float, profile: SpeedProfile) -> Schedule:
    """Return the motion from arc length 0, passed at `speed` ≥ 0, m/s, to a stop at `length`, m.

    It is the profile's own motion from rest to rest, entered at that speed; the acceleration is
    DEFAULT_ACCELERATION if the profile has none. A vehicle above its cruising speed first brakes to
    it. A vehicle that can't stop in time brakes as hard as it takes.
    """
    if profile.acceleration is None:
        profile = dataclasses.replace(profile, acceleration=DEFAULT_ACCELERATION)
    brake = deceleration(profile)

    # too fast: brake to the cruising speed first
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

    # the run-up that reaches the speed at the path's start, by iteration from a rough guess
    jerk = profile.jerk or math.inf
    run_up = profile.cruise**2 / brake + profile.cruise * brake / jerk
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
    """Return the motion to a standstill from arc length s, m, passed at `speed`, m/s.

    A negative speed is backwards; `brake` is in m/s².
    """
    if abs(speed) <= STANDSTILL_SPEED:
        return Schedule([(0.0, s, 0.0, 0.0, 0.0)], 0.0, math.inf)
    distance = 0.5 * speed * abs(speed) / brake
    braking = (0.0, s, speed, -math.copysign(brake, speed), 0.0)
    return Schedule([braking, (abs(speed) / brake, s + distance, 0.0, 0.0, 0.0)], 0.0, math.inf)


def deceleration(profile: SpeedProfile) -> float:
    """Return the deceleration, m/s², with which a vehicle of this profile brakes."""
    return profile.deceleration or profile.acceleration or DEFAULT_ACCELERATION


def _entry(pieces: list[_Piece], speed: float) -> tuple[int, _Piece]:
    """Return the first piece in which a motion from rest has a speed, and the motion then.

    The motion accelerates or begins to cruise there. The piece's number is -1 if there is none.
    """
    for i, ((time, s, v, a, j), after) in enumerate(itertools.pairwise(pieces)):
        if a < 0.0:
            break
        gain = speed - v
        if gain <= 1e-12 * speed:
            return i, (time, s, v, a, j)

        # time until the speed is reached
        root = math.sqrt(max(0.0, a * a + 2.0 * j * gain))
        delay = 2.0 * gain / (a + root) if a + root > 0.0 else math.inf
        if time + delay < after[0]:
            distance = delay * (v + delay * (a / 2.0 + delay * j / 6.0))
            return i, (time + delay, s + distance, speed, a + delay * j, j)
    return -1, pieces[0]


def _schedule_from(entry: _Piece, pieces: list[_Piece], length: float) -> Schedule:
    """Return the motion from an entry and along the pieces after it.

    Time and arc length count from the entry.
    """
    time, distance, speed, a, j = entry
    later = [(max(t - time, 0.0), s - distance, v, b, k) for t, s, v, b, k in pieces]
    later[-1] = (later[-1][0], length, 0.0, 0.0, 0.0)
    return Schedule([(0.0, 0.0, speed, a, j), *later], 0.0, math.inf)


class TakeOver(NamedTuple):
    """A vehicle on its new path."""

    vehicle: Vehicle
    stop_time: float
    """Fleet time from which it stands still, s."""


def corner_radius(vehicle: Vehicle) -> float:
    """Return the radius of a vehicle's corners, m.

    It is the turning radius of its limits, or what its lateral acceleration allows at its cruising
    speed.
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
    """True if the vehicle drives it backwards."""


def reference_paths(
    vehicle: Vehicle, points: Floats, heading: Floats | None = None
) -> tuple[Reference, ...]:
    """Return the path through points (k, 3), ENU, m, for a vehicle to `follow`.

    Heights count for aircraft only. The result is one path, unless the headings (k,), rad, make a
    ground vehicle drive some of its `sections` backwards. Raises ConfigError for points that it
    can't follow.
    """
    if not 2 <= len(points) <= MAX_POSES:
        raise ConfigError(f"poses: got {len(points)}, expected 2 to {MAX_POSES}, or none to stop")
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        raise ConfigError(f"poses[{int(np.argmin(finite))}]: its position is not finite")
    too_far = (np.abs(points) > MAX_COORDINATE).any(axis=1)
    if too_far.any():
        raise ConfigError(
            f"poses[{int(np.argmax(too_far))}]: its position lies more than "
            f"{MAX_COORDINATE:g} m from the origin"
        )
    if vehicle.profile.cruise == 0.0:
        raise ConfigError("the speed of this vehicle is 0 in its fleet file")

    # one path, or one for each change between forward and backward
    radius = corner_radius(vehicle)
    if vehicle.kind != "ground":
        return (Reference(path_through(points, radius)),)
    points = points[:, :2]
    parts = sections(points, heading)
    if heading is None or not any(part.backward for part in parts):
        return (Reference(path_through(points, radius)),)
    references = []
    for first, last, backward in parts:
        begin, end = (heading[[first, last]] + (math.pi if backward else 0.0)).tolist()
        path = path_through(points[first : last + 1], radius, (begin, end))
        references.append(Reference(path, backward))
    return tuple(references)


def follow(fleet: Fleet, index: int, time: float, reference: Reference) -> TakeOver | None:
    """Return the vehicle with this index on one of its `reference_paths` from fleet time `time`, s.

    It continues from its position with its heading and speed, joins the path (`transition_to`),
    follows it with its own speed profile and stops at its end. None for a vehicle that moves the
    other way: it has to stop first. Raises ConfigError for a path that is too far away, or that
    begins and ends off the map.
    """
    _check_on_map(fleet, reference)
    vehicle = fleet.vehicles[index]
    now = fleet.sample_vehicles(np.array([index]), np.array([time]))
    x, y, tangent_x, tangent_y = now.points[0, :4].tolist()
    speed = float(now.progress[0, 1])
    sign = -1.0 if reference.backward else 1.0
    if sign * speed < -STANDSTILL_SPEED:
        return None

    # the way onto the path
    heading = math.atan2(sign * tangent_y, sign * tangent_x)
    pose = MovingPose(x, y, heading, float(now.position[0, 2]), float(now.slope[0]))
    blend_distance = BLEND_TIME * vehicle.profile.cruise
    path = transition_to(reference.path, pose, corner_radius(vehicle), blend_distance)
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


def _check_on_map(fleet: Fleet, reference: Reference) -> None:
    """Raise ConfigError for a path of another place, such as one of degrees."""
    terrain = fleet.terrain
    if terrain is None:
        return
    ends = reference.path.at([0.0, reference.path.length]).position
    if not np.any(terrain.inside(ends[:, 0], ends[:, 1])):
        raise ConfigError(
            f"poses: the path begins and ends off the map, at x {ends[0, 0]:g}, y {ends[0, 1]:g}; "
            f"the map spans {terrain.bounds}"
        )


def brake_to_stop(fleet: Fleet, index: int, time: float) -> TakeOver:
    """Return the vehicle with this index braking on its own path from fleet time `time`, s.

    It stays where it comes to a stop.
    """
    vehicle = fleet.vehicles[index]
    table = join_schedules([vehicle.schedule], [vehicle.delay])
    s, speed = progress(table, np.zeros(1, np.int64), np.array([time]))[0, :2].tolist()

    # an open path may be too short for the usual braking
    brake = deceleration(vehicle.profile)
    if not vehicle.path.closed and abs(speed) > STANDSTILL_SPEED:
        left = max(vehicle.path.length - s if speed > 0.0 else s, 1e-6)
        brake = max(brake, 0.5 * speed**2 / left)
    return _take_over(vehicle, time, stop(s, speed, brake))


def _take_over(vehicle: Vehicle, time: float, timing: Schedule, **changes: Any) -> TakeOver:
    """Return the vehicle with its new motion, and when it stands."""
    vehicle_then = dataclasses.replace(
        vehicle, at_end="stop", delay=max(time, 0.0), timing=timing, **changes
    )
    return TakeOver(vehicle_then, vehicle_then.delay + vehicle_then.schedule.pieces[-1][0])


def replace_vehicles(fleet: Fleet, changed: Mapping[int, Vehicle]) -> Fleet:
    """Return the fleet with other vehicles at these indices."""
    return fleet.of([changed.get(i, vehicle) for i, vehicle in enumerate(fleet.vehicles)])
