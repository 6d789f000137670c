# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Speed profiles: progress along a path over time, delays, and end behaviour.

Every profile becomes a row of pieces of constant jerk for each vehicle (`Departures`). The last
pieces may repeat forever. One call evaluates all vehicles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_trajectory.kernels.tables import Departures

AtEnd = Literal["repeat", "ping_pong", "stop"]


@dataclass(frozen=True)
class SpeedProfile:
    """Speed along a leg.

    Without accelerations the cruising speed is reached at once. With them, the profile is a
    trapezoid: a leg starts from standstill, accelerates, cruises and, if it ends, brakes to
    standstill. A leg too short for the cruising speed gets the highest speed that it allows. With a
    jerk as well the profile is an S-curve of up to seven pieces: the acceleration is continuous and
    0 at both ends of a leg, and stays below its limit if the change of speed is too small to reach
    it (Biagiotti and Melchiorri, Trajectory Planning for Automatic Machines and Robots, 2008,
    section 3.4).
    """

    cruise: float
    """Cruising speed, m/s, ≥ 0."""
    acceleration: float | None = None
    """Acceleration, m/s², > 0."""
    deceleration: float | None = None
    """Deceleration, m/s², > 0; None: as `acceleration`."""
    jerk: float | None = None
    """Rate of acceleration and deceleration, m/s³, > 0."""

    def __post_init__(self) -> None:
        finite_number("cruise", self.cruise, "m/s", at_least=0.0)
        for name in ("deceleration", "jerk"):
            if self.acceleration is None and getattr(self, name) is not None:
                raise ConfigError("needs an acceleration too", key=name)

        for name, unit in (
            ("acceleration", "m/s²"),
            ("deceleration", "m/s²"),
            ("jerk", "m/s³"),
        ):
            value = getattr(self, name)
            if value is not None:
                finite_number(name, value, unit, above=0.0)


class Schedule(NamedTuple):
    """Motion of one vehicle after its departure.

    Pieces are (start time, s, speed, acceleration, jerk). From `loop_start` on they repeat with
    `loop_period`, both in s; an infinite period: no repetition.
    """

    pieces: list[tuple[float, float, float, float, float]]
    loop_start: float
    loop_period: float


def schedule(
    length: float,
    closed: bool,
    profile: SpeedProfile,
    at_end: AtEnd,
    phase: float = 0.0,
) -> Schedule:
    """Return the motion along a path of the given length, m, beginning at arc length `phase`, m.

    - repeat: lap after lap; closed paths only, since an open one has no way back to its start.
    - ping_pong: to the path's end, back to its start, and so on. Vehicles drive backwards on the
      way back, with the heading of the way out.
    - stop: once to the end of an open path, or one whole lap of a closed one, then standstill.

    Raises ConfigError for a phase outside an open path and for `repeat` on one.
    """
    check_choice("at_end", at_end, ("repeat", "ping_pong", "stop"))
    if at_end == "repeat" and not closed:
        raise ConfigError(
            "repeat needs a closed path; an open one takes ping_pong or stop", key="at_end"
        )

    # start of the motion
    if closed and at_end != "ping_pong":
        phase = math.fmod(phase, length) if phase >= 0.0 else length - math.fmod(-phase, length)
    elif not 0.0 <= phase <= length:
        raise ConfigError(
            f"{phase:.10g} m is not on the path, which is {length:.10g} m long", key="phase"
        )

    # standstill and endless laps
    if profile.cruise == 0.0:
        return Schedule([(0.0, phase, 0.0, 0.0, 0.0)], 0.0, math.inf)

    builder = _ScheduleBuilder(profile)
    if at_end == "repeat":
        builder.cruise_on(phase)
        return Schedule(builder.pieces, 0.0, math.inf)

    # a single trip
    if at_end == "stop":
        builder.move(phase, phase + length if closed else length)
        builder.stay(phase + length if closed else length)
        return Schedule(builder.pieces, 0.0, math.inf)

    # out once, then there and back
    builder.move(phase, length)
    loop_start = builder.time
    builder.move(length, 0.0)
    builder.move(0.0, length)
    return Schedule(builder.pieces, loop_start, builder.time - loop_start)


class _RampState(NamedTuple):
    """Motion at the border of two pieces of a ramp."""

    distance: float
    speed: float
    acceleration: float


class _Ramp:
    """Acceleration from standstill to a speed; braking is a ramp seen backwards in time."""

    def __init__(self, speed: float, limit: float, jerk: float | None) -> None:
        """Compute the pieces for a highest acceleration `limit`, m/s².

        Without a jerk, m/s³, that acceleration is reached at once.
        """
        self.pieces: list[tuple[float, _RampState, _RampState, float]] = []
        """Pieces as (duration, state at the begin, state at the end, jerk)."""
        if jerk is None:
            self.distance = speed * speed / (2.0 * limit)
            self.pieces.append(
                (
                    speed / limit,
                    _RampState(0.0, 0.0, limit),
                    _RampState(self.distance, speed, limit),
                    0.0,
                )
            )
            return

        # jerk up, constant acceleration, jerk down
        self.distance = _ramp_distance(speed, limit, jerk)
        peak_acceleration = min(limit, math.sqrt(speed * jerk))
        jerk_time = peak_acceleration / jerk
        hold_time = (
            max(0.0, speed / peak_acceleration - jerk_time) if peak_acceleration == limit else 0.0
        )
        speed_in_jerk = 0.5 * peak_acceleration * jerk_time
        distance_in_jerk = peak_acceleration * jerk_time * jerk_time / 6.0
        first = _RampState(distance_in_jerk, speed_in_jerk, peak_acceleration)
        second = _RampState(
            self.distance - speed * jerk_time + distance_in_jerk,
            speed - speed_in_jerk,
            peak_acceleration,
        )
        self.pieces = [
            (jerk_time, _RampState(0.0, 0.0, 0.0), first, jerk),
            (hold_time, first, second, 0.0),
            (jerk_time, second, _RampState(self.distance, speed, 0.0), -jerk),
        ]


def _ramp_distance(speed: float, limit: float, jerk: float) -> float:
    """Return the distance, m, from standstill to a speed.

    By symmetry it is half the speed times the time that the ramp takes.
    """
    if speed * jerk >= limit * limit:
        return 0.5 * speed * (speed / limit + limit / jerk)
    return speed * math.sqrt(speed / jerk)


def _peak_speed(distance: float, up: float, down: float, jerk: float | None) -> float:
    """Return the speed, m/s, at which a distance, m, just suffices to accelerate and brake."""
    if jerk is None:
        return math.sqrt(2.0 * distance * up * down / (up + down))
    lower = min(up, down)
    higher = max(up, down)

    def ramps(speed: float) -> float:
        return _ramp_distance(speed, up, jerk) + _ramp_distance(speed, down, jerk)

    # neither limit is reached: 2 v √(v/j) = distance
    if distance <= ramps(lower * lower / jerk):
        return float(np.cbrt(0.25 * distance * distance * jerk))

    # both limits are reached: a quadratic equation
    if distance >= ramps(higher * higher / jerk):
        square = 0.5 / up + 0.5 / down
        linear = (up + down) / (2.0 * jerk)
        return 2.0 * distance / (linear + math.sqrt(linear * linear + 4.0 * square * distance))

    # only the lower limit is reached: of fourth degree in √v, increasing and convex, so Newton's
    # steps from above end at the root
    root_speed = (2.0 * lower * distance) ** 0.25
    while True:
        value = (
            root_speed**4 / (2.0 * lower)
            + root_speed**2 * lower / (2.0 * jerk)
            + root_speed**3 / math.sqrt(jerk)
            - distance
        )
        next_root = root_speed - value / (
            2.0 * root_speed**3 / lower
            + root_speed * lower / jerk
            + 3.0 * root_speed**2 / math.sqrt(jerk)
        )
        if not next_root < root_speed:
            return root_speed * root_speed
        root_speed = next_root


class _ScheduleBuilder:
    """Builder of a schedule: adds pieces in order of time."""

    def __init__(self, profile: SpeedProfile) -> None:
        self.pieces: list[tuple[float, float, float, float, float]] = []
        self.time = 0.0
        self._cruise = profile.cruise
        self._up = profile.acceleration
        self._down = profile.acceleration if profile.deceleration is None else profile.deceleration
        self._jerk = profile.jerk

    def move(self, begin: float, end: float) -> None:
        """Add the motion from `begin` to `end`, with rest at both if accelerations are limited."""
        distance = abs(end - begin)
        sign = math.copysign(1.0, end - begin)
        if distance == 0.0:
            return

        # at the cruising speed at once
        if self._up is None or self._down is None:
            self._add(distance / self._cruise, begin, sign * self._cruise)
            return

        # up to the peak, along it, and down
        peak = min(self._cruise, _peak_speed(distance, self._up, self._down, self._jerk))
        up = _Ramp(peak, self._up, self._jerk)
        down = _Ramp(peak, self._down, self._jerk)
        for duration, at, _, jerk in up.pieces:
            self._add(
                duration,
                begin + sign * at.distance,
                sign * at.speed,
                sign * at.acceleration,
                sign * jerk,
            )
        self._add(
            max(0.0, distance - up.distance - down.distance) / peak,
            begin + sign * up.distance,
            sign * peak,
        )
        for duration, _, at, jerk in reversed(down.pieces):
            self._add(
                duration,
                end - sign * at.distance,
                sign * at.speed,
                -sign * at.acceleration,
                sign * jerk,
            )

    def cruise_on(self, begin: float) -> None:
        """Add the motion from `begin` that never ends."""
        distance = 0.0
        if self._up is not None:
            ramp = _Ramp(self._cruise, self._up, self._jerk)
            for duration, at, _, jerk in ramp.pieces:
                self._add(duration, begin + at.distance, at.speed, at.acceleration, jerk)
            distance = ramp.distance
        self._add(math.inf, begin + distance, self._cruise)

    def stay(self, s: float) -> None:
        """Add a standstill at arc length s that never ends."""
        self._add(math.inf, s, 0.0)

    def _add(
        self,
        duration: float,
        s: float,
        speed: float,
        acceleration: float = 0.0,
        jerk: float = 0.0,
    ) -> None:
        if duration > 0.0:
            self.pieces.append((self.time, s, speed, acceleration, jerk))
            self.time += duration


def join_schedules(schedules: Sequence[Schedule], delays: Sequence[float]) -> Departures:
    """Return the table of several vehicles' motions, in their order; delays in s."""
    counts = np.array([len(each.pieces) for each in schedules], np.int64)
    rows = np.array([piece for each in schedules for piece in each.pieces], np.float64).reshape(
        -1, 5
    )
    return Departures(
        first=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        start=np.ascontiguousarray(rows[:, 0]),
        law=np.ascontiguousarray(rows[:, 1:]),
        delay=np.array(delays, np.float64),
        loop_start=np.array([each.loop_start for each in schedules]),
        loop_period=np.array([each.loop_period for each in schedules]),
    )


def progress(departures: Departures, vehicle: Ints, time: Floats) -> Floats:
    """Return the progress (k, 4) of the vehicles (k,) at the times (k,), s.

    Columns are arc length s, m, its rate, m/s, acceleration, m/s², and jerk, m/s³. A vehicle stands
    at the start of its motion before its departure. A closed path's s grows beyond its length.
    """
    from rfly_trajectory.kernels import motion_kernels

    return motion_kernels.progress(departures, vehicle, time)
