"""Speed profiles: progress along a path over time, delays, and end behaviour.

Everything becomes a row of pieces of constant jerk for each vehicle (`Departures`), of which the
last ones may repeat for ever; one call evaluates all vehicles.
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
    """How fast a leg is driven.

    Without accelerations the cruising speed is there at once. With them, the profile is a
    trapezoid: a leg starts from standstill, accelerates, cruises and, where it ends, brakes to
    standstill; a leg too short for the cruising speed gets the highest speed that it allows. With a
    jerk as well it is an S-curve of up to seven pieces: the acceleration is continuous and 0 at
    both ends of a leg, and stays below its limit where the change of speed is too small for it
    (Biagiotti and Melchiorri, Trajectory Planning for Automatic Machines and Robots, 2008, section
    3.4).
    """

    cruise: float
    """m/s, ≥ 0"""
    acceleration: float | None = None
    """m/s², > 0"""
    deceleration: float | None = None
    """m/s², > 0; as `acceleration` where it is not given"""
    jerk: float | None = None
    """m/s³, > 0; how fast acceleration and deceleration grow and fall"""

    def __post_init__(self) -> None:
        finite_number("cruise", self.cruise, "m/s", at_least=0.0)
        for name in ("deceleration", "jerk"):
            if self.acceleration is None and getattr(self, name) is not None:
                raise ConfigError(f"{name}: needs an acceleration beside it")
        for name, unit in (("acceleration", "m/s²"), ("deceleration", "m/s²"), ("jerk", "m/s³")):
            value = getattr(self, name)
            if value is not None:
                finite_number(name, value, unit, above=0.0)


class Schedule(NamedTuple):
    """The motion of one vehicle after its departure: pieces (start time, s, speed, acceleration,
    jerk) and what repeats.
    """

    pieces: list[tuple[float, float, float, float, float]]
    loop_start: float
    loop_period: float


def schedule(
    length: float, closed: bool, profile: SpeedProfile, at_end: AtEnd, phase: float = 0.0
) -> Schedule:
    """The motion along a path of the given length [m] that begins at arc length `phase` [m].

    - repeat: round and round; closed paths only, since there is no way back to the start of an open
    one.
    - ping_pong: to the path's end, back to its start, and so on. On the way back vehicles drive
    backwards, with the
      heading of the way out.
    - stop: once to the end of an open path, or one whole lap of a closed one, then standstill.

    Raises ConfigError for a phase outside an open path and for `repeat` on one.
    """
    check_choice("at_end", at_end, ("repeat", "ping_pong", "stop"))
    if at_end == "repeat" and not closed:
        raise ConfigError("at_end: repeat needs a closed path; an open one takes ping_pong or stop")
    if closed and at_end != "ping_pong":
        phase = math.fmod(phase, length) if phase >= 0.0 else length - math.fmod(-phase, length)
    elif not 0.0 <= phase <= length:
        raise ConfigError(
            f"phase: {phase:.10g} m is not on the path, which is {length:.10g} m long"
        )
    if profile.cruise == 0.0:
        return Schedule([(0.0, phase, 0.0, 0.0, 0.0)], 0.0, math.inf)
    builder = _ScheduleBuilder(profile)
    if at_end == "repeat":
        builder.cruise_on(phase)
        return Schedule(builder.pieces, 0.0, math.inf)
    if at_end == "stop":
        builder.move(phase, phase + length if closed else length)
        builder.stay(phase + length if closed else length)
        return Schedule(builder.pieces, 0.0, math.inf)
    builder.move(phase, length)
    loop_start = builder.time
    builder.move(length, 0.0)
    builder.move(0.0, length)
    return Schedule(builder.pieces, loop_start, builder.time - loop_start)


class _RampState(NamedTuple):
    """How far a ramp is at a border of its pieces."""

    distance: float
    speed: float
    acceleration: float


class _Ramp:
    """From standstill up to a speed; brakes are ramps seen backwards in time."""

    def __init__(self, speed: float, limit: float, jerk: float | None) -> None:
        """`limit` is the highest acceleration; without a jerk it is there at once."""
        self.pieces: list[tuple[float, _RampState, _RampState, float]] = []
        """duration, moments at begin and end, jerk"""
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
        self.distance = _ramp_distance(speed, limit, jerk)
        top = min(limit, math.sqrt(speed * jerk))
        bend = top / jerk
        even = max(0.0, speed / top - bend) if top == limit else 0.0
        low = 0.5 * top * bend
        stay = top * bend * bend / 6.0
        first = _RampState(stay, low, top)
        second = _RampState(self.distance - speed * bend + stay, speed - low, top)
        self.pieces = [
            (bend, _RampState(0.0, 0.0, 0.0), first, jerk),
            (even, first, second, 0.0),
            (bend, second, _RampState(self.distance, speed, 0.0), -jerk),
        ]


def _ramp_distance(speed: float, limit: float, jerk: float) -> float:
    """Metres from standstill to a speed: by symmetry half the speed times the time that it takes."""
    if speed * jerk >= limit * limit:
        return 0.5 * speed * (speed / limit + limit / jerk)
    return speed * math.sqrt(speed / jerk)


def _peak_speed(distance: float, up: float, down: float, jerk: float | None) -> float:
    """The speed from which a way [m] is just enough to accelerate and brake, m/s."""
    if jerk is None:
        return math.sqrt(2.0 * distance * up * down / (up + down))
    lower = min(up, down)
    higher = max(up, down)

    def ramps(speed: float) -> float:
        return _ramp_distance(speed, up, jerk) + _ramp_distance(speed, down, jerk)

    if distance <= ramps(lower * lower / jerk):  # neither limit is reached: 2 v √(v/j) = way
        return float(np.cbrt(0.25 * distance * distance * jerk))
    if distance >= ramps(higher * higher / jerk):  # both are: a quadratic equation
        square = 0.5 / up + 0.5 / down
        linear = (up + down) / (2.0 * jerk)
        return 2.0 * distance / (linear + math.sqrt(linear * linear + 4.0 * square * distance))
    # Only the lower one is: of fourth degree in w = √v, increasing and convex, so Newton's steps
    # from above end at it.
    w = (2.0 * lower * distance) ** 0.25
    while True:
        value = (
            w**4 / (2.0 * lower) + w**2 * lower / (2.0 * jerk) + w**3 / math.sqrt(jerk) - distance
        )
        after = w - value / (2.0 * w**3 / lower + w * lower / jerk + 3.0 * w**2 / math.sqrt(jerk))
        if not after < w:
            return w * w
        w = after


class _ScheduleBuilder:
    """Pieces in order of time."""

    def __init__(self, profile: SpeedProfile) -> None:
        self.pieces: list[tuple[float, float, float, float, float]] = []
        self.time = 0.0
        self._cruise = profile.cruise
        self._up = profile.acceleration
        self._down = profile.acceleration if profile.deceleration is None else profile.deceleration
        self._jerk = profile.jerk

    def move(self, begin: float, end: float) -> None:
        """From `begin` to `end`, at rest at both where the profile has accelerations."""
        distance = abs(end - begin)
        sign = math.copysign(1.0, end - begin)
        if distance == 0.0:
            return
        if self._up is None or self._down is None:
            self._add(distance / self._cruise, begin, sign * self._cruise)
            return
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
        """From `begin` on for ever."""
        distance = 0.0
        if self._up is not None:
            ramp = _Ramp(self._cruise, self._up, self._jerk)
            for duration, at, _, jerk in ramp.pieces:
                self._add(duration, begin + at.distance, at.speed, at.acceleration, jerk)
            distance = ramp.distance
        self._add(math.inf, begin + distance, self._cruise)

    def stay(self, s: float) -> None:
        self._add(math.inf, s, 0.0)

    def _add(
        self, duration: float, s: float, speed: float, acceleration: float = 0.0, jerk: float = 0.0
    ) -> None:
        if duration > 0.0:
            self.pieces.append((self.time, s, speed, acceleration, jerk))
            self.time += duration


def join_schedules(schedules: Sequence[Schedule], delays: Sequence[float]) -> Departures:
    """The table of several vehicles' motions, in their order; delays in seconds."""
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
    """(k, 4) arc length s [m], rate of s [m/s], acceleration [m/s²] and jerk [m/s³] of the vehicles
    (k,) at the times (k,) [s].

    Before its departure a vehicle stands at the start of its motion. A closed path's s grows beyond
    its length.
    """
    from rfly_trajectory.kernels import motion_kernels

    return motion_kernels.progress(departures, vehicle, time)
