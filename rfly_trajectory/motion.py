"""Progress along a path in time: speed profiles, delays, and what happens at the end.

Everything becomes a row of pieces of constant acceleration for each vehicle (`Departures`), of which the last ones may
repeat for ever; one call evaluates all vehicles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_trajectory import backend

AtEnd = Literal["repeat", "ping_pong", "stop"]

Floats = NDArray[np.float64]


class Departures(NamedTuple):
    """The motion of n vehicles, one after the other. Plain arrays: what the kernels read."""

    first: NDArray[np.int64]
    """(n + 1,) index of a vehicle's first piece"""
    start: Floats
    """(p,) time since the vehicle's departure at which a piece begins, s"""
    law: Floats
    """(p, 3) arc length [m], speed [m/s] and acceleration [m/s²] at the piece's start; speed < 0 drives backwards"""
    delay: Floats
    """(n,) departure, s"""
    loop_start: Floats
    """(n,) time since departure from which the motion repeats, s"""
    loop_period: Floats
    """(n,) s; inf: it does not repeat"""


@dataclass(frozen=True)
class SpeedProfile:
    """How fast a leg is driven.

    Without accelerations the cruising speed is there at once. With them, the profile is a trapezoid: a leg starts from
    standstill, accelerates, cruises and, where it ends, brakes to standstill; a leg too short for the cruising speed
    gets the highest speed that it allows.
    """

    cruise: float
    """m/s, ≥ 0"""
    acceleration: float | None = None
    """m/s², > 0"""
    deceleration: float | None = None
    """m/s², > 0; as `acceleration` where it is not given"""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cruise) and self.cruise >= 0.0):
            raise ConfigError(f"cruise: {self.cruise!r} m/s, must be finite and at least 0")
        if self.acceleration is None and self.deceleration is not None:
            raise ConfigError("deceleration: needs an acceleration beside it")
        for name in ("acceleration", "deceleration"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0.0):
                raise ConfigError(f"{name}: {value!r} m/s², must be finite and above 0")


class Schedule(NamedTuple):
    """The motion of one vehicle after its departure: pieces (start time, s, speed, acceleration) and what repeats."""

    pieces: list[tuple[float, float, float, float]]
    loop_start: float
    loop_period: float


def schedule(length: float, closed: bool, profile: SpeedProfile, at_end: AtEnd, phase: float = 0.0) -> Schedule:
    """The motion along a path of the given length [m] that begins at arc length `phase` [m].

    - repeat: round and round; closed paths only, since there is no way back to the start of an open one.
    - ping_pong: to the path's end, back to its start, and so on. On the way back vehicles drive backwards, with the
      heading of the way out.
    - stop: once to the end of an open path, or one whole lap of a closed one, then standstill.

    Raises ConfigError for a phase outside an open path and for `repeat` on one.
    """
    if at_end not in ("repeat", "ping_pong", "stop"):
        raise ConfigError(f"at_end: {at_end!r} is not one of repeat, ping_pong, stop")
    if at_end == "repeat" and not closed:
        raise ConfigError("at_end: repeat needs a closed path; an open one takes ping_pong or stop")
    if closed and at_end != "ping_pong":
        phase = math.fmod(phase, length) if phase >= 0.0 else length - math.fmod(-phase, length)
    elif not 0.0 <= phase <= length:
        raise ConfigError(f"phase: {phase:.10g} m is not on the path, which is {length:.10g} m long")
    if profile.cruise == 0.0:
        return Schedule([(0.0, phase, 0.0, 0.0)], 0.0, math.inf)
    legs = _Legs(profile)
    if at_end == "repeat":
        legs.go_on(phase)
        return Schedule(legs.pieces, 0.0, math.inf)
    if at_end == "stop":
        legs.go(phase, phase + length if closed else length)
        legs.rest(phase + length if closed else length)
        return Schedule(legs.pieces, 0.0, math.inf)
    legs.go(phase, length)
    loop_start = legs.time
    legs.go(length, 0.0)
    legs.go(0.0, length)
    return Schedule(legs.pieces, loop_start, legs.time - loop_start)


class _Legs:
    """Pieces in order of time."""

    def __init__(self, profile: SpeedProfile) -> None:
        self.pieces: list[tuple[float, float, float, float]] = []
        self.time = 0.0
        self._cruise = profile.cruise
        self._up = profile.acceleration
        self._down = profile.acceleration if profile.deceleration is None else profile.deceleration

    def go(self, begin: float, end: float) -> None:
        """From `begin` to `end`, at rest at both where the profile has accelerations."""
        way, sign = abs(end - begin), math.copysign(1.0, end - begin)
        if way == 0.0:
            return
        if self._up is None or self._down is None:
            self._add(begin, sign * self._cruise, 0.0, way / self._cruise)
            return
        up, down = self._up, self._down
        peak = min(self._cruise, math.sqrt(2.0 * way * up * down / (up + down)))
        up_way, down_way = peak * peak / (2.0 * up), peak * peak / (2.0 * down)
        self._add(begin, 0.0, sign * up, peak / up)
        self._add(begin + sign * up_way, sign * peak, 0.0, max(0.0, way - up_way - down_way) / peak)
        self._add(end - sign * down_way, sign * peak, -sign * down, peak / down)

    def go_on(self, begin: float) -> None:
        """From `begin` on for ever."""
        if self._up is None:
            self._add(begin, self._cruise, 0.0, math.inf)
            return
        self._add(begin, 0.0, self._up, self._cruise / self._up)
        self._add(begin + self._cruise**2 / (2.0 * self._up), self._cruise, 0.0, math.inf)

    def rest(self, place: float) -> None:
        self._add(place, 0.0, 0.0, math.inf)

    def _add(self, s: float, speed: float, acceleration: float, duration: float) -> None:
        if duration > 0.0:
            self.pieces.append((self.time, s, speed, acceleration))
            self.time += duration


def join_schedules(schedules: Sequence[Schedule], delays: Sequence[float]) -> Departures:
    """The table of several vehicles' motions, in their order; delays in seconds."""
    counts = np.array([len(each.pieces) for each in schedules], np.int64)
    rows = np.array([piece for each in schedules for piece in each.pieces], np.float64).reshape(-1, 4)
    return Departures(
        first=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        start=np.ascontiguousarray(rows[:, 0]),
        law=np.ascontiguousarray(rows[:, 1:]),
        delay=np.array(delays, np.float64),
        loop_start=np.array([each.loop_start for each in schedules]),
        loop_period=np.array([each.loop_period for each in schedules]),
    )


def progress(departures: Departures, vehicle: NDArray[np.int64], time: Floats) -> Floats:
    """(k, 3) arc length s [m], rate of s [m/s] and acceleration [m/s²] of the vehicles (k,) at the times (k,) [s].

    Before its departure a vehicle stands at the start of its motion. A closed path's s grows beyond its length.
    """
    rows: Floats = backend.functions().progress(departures, vehicle, time)
    return rows
