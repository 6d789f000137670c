"""Motion profile of a take-over: from a moving start along another path to its end, or to a stop."""

from __future__ import annotations

import dataclasses
import itertools
import math

from rfly_trajectory.motion.speed_profile import Schedule, SpeedProfile, schedule

DEFAULT_ACCELERATION = 2.0
"""m/s², where a speed profile has none"""
STANDSTILL_SPEED = 1e-9
"""m/s that count as standing"""

_Piece = tuple[float, float, float, float, float]
"""time, arc length, speed, acceleration, jerk; as in `motion.Schedule`"""


def schedule_to_end(length: float, speed: float, profile: SpeedProfile) -> Schedule:
    """From arc length 0, which is passed at `speed` ≥ 0 [m/s], to a stop at `length` [m].

    It is the profile's own motion from rest to rest, entered on the way at that speed; EASY_ACCELERATION where the
    profile has none. A vehicle above its cruising speed brakes to that first, and one that can't stop in time brakes
    as hard as it takes.
    """
    profile = _with_acceleration(profile)
    brake = deceleration(profile)
    if speed > profile.cruise:
        distance, time = (speed**2 - profile.cruise**2) / (2.0 * brake), (speed - profile.cruise) / brake
        if distance >= length:
            return stop(0.0, speed, 0.5 * speed**2 / length)
        rest = schedule_to_end(length - distance, profile.cruise, profile)
        later = [(time + t, distance + s, v, a, j) for t, s, v, a, j in rest.pieces]
        return Schedule([(0.0, 0.0, speed, -brake, 0.0), *later] if time else later, 0.0, math.inf)
    if speed <= STANDSTILL_SPEED:
        return schedule(length, False, profile, "stop")
    jerk = profile.jerk or math.inf
    run_up = profile.cruise**2 / brake + profile.cruise * brake / jerk  # about; the way to the speed follows from it
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
    """To standstill from arc length s [m], which is passed at `speed` [m/s], < 0 backwards; `brake` in m/s²."""
    if abs(speed) <= STANDSTILL_SPEED:
        return Schedule([(0.0, s, 0.0, 0.0, 0.0)], 0.0, math.inf)
    distance = 0.5 * speed * abs(speed) / brake
    braking = (0.0, s, speed, -math.copysign(brake, speed), 0.0)
    return Schedule([braking, (abs(speed) / brake, s + distance, 0.0, 0.0, 0.0)], 0.0, math.inf)


def deceleration(profile: SpeedProfile) -> float:
    """m/s² with which a vehicle of this profile brakes."""
    return profile.deceleration or profile.acceleration or DEFAULT_ACCELERATION


def _with_acceleration(profile: SpeedProfile) -> SpeedProfile:
    if profile.acceleration is not None:
        return profile
    return dataclasses.replace(profile, acceleration=DEFAULT_ACCELERATION)


def _entry(pieces: list[_Piece], speed: float) -> tuple[int, _Piece]:
    """Where a motion from rest first has a speed, while it accelerates or as soon as it cruises: number of the piece
    (-1: nowhere), and the motion then."""
    for i, ((time, s, v, a, j), after) in enumerate(itertools.pairwise(pieces)):
        if a < 0.0:
            break
        gain = speed - v
        if gain <= 1e-12 * speed:
            return i, (time, s, v, a, j)
        root = math.sqrt(max(0.0, a * a + 2.0 * j * gain))
        run = 2.0 * gain / (a + root) if a + root > 0.0 else math.inf
        if time + run < after[0]:
            return i, (time + run, s + run * (v + run * (a / 2.0 + run * j / 6.0)), speed, a + run * j, j)
    return -1, pieces[0]


def _schedule_from(entry: _Piece, pieces: list[_Piece], length: float) -> Schedule:
    """The motion from an entry and on the pieces after it, in time and arc length since then."""
    time, distance, speed, a, j = entry
    later = [(max(t - time, 0.0), s - distance, v, b, k) for t, s, v, b, k in pieces]
    later[-1] = (later[-1][0], length, 0.0, 0.0, 0.0)
    return Schedule([(0.0, 0.0, speed, a, j), *later], 0.0, math.inf)
