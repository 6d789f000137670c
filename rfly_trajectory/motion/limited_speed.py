# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion along a path as fast as limits allow: a vehicle slows down for its bends.

The speed at each place is bounded by the bend there. Of all speeds below this bound, the fastest
one gains speed with the whole acceleration or loses it with the whole deceleration wherever it is
below it: one pass along the path and one back find it (Bobrow, Dubowsky and Gibson, Time-optimal
control of robotic manipulators along specified paths, 1985, in the form for one mass).

With a jerk, the place is averaged over a span of time τ = acceleration / jerk, so that the
acceleration changes at (a(t) - a(t - τ)) / τ (Biagiotti and Melchiorri, Trajectory Planning for
Automatic Machines and Robots, 2008, section 4.6). A ramp becomes the S-curve. For this the speed
first keeps the bounds of all places within the span, and each highest speed is held for τ.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats, Ints
from rfly_common.errors import ConfigError
from rfly_trajectory.kernels.tables import POLYNOMIAL
from rfly_trajectory.motion.speed_profile import AtEnd, Schedule, SpeedProfile, schedule
from rfly_trajectory.paths.path import Path, altitudes, join_profiles

STEP = 0.25
"""Distance between places at which the speed is found, m, on paths that are neither short nor long.
"""
FEWEST_STEPS = 100
MOST_STEPS = 4000
"""Smallest and largest number of such steps of a path."""
MOST_FIRST_LAPS = 1000
"""Largest number of laps on which a vehicle still gains speed."""
_TOO_MANY_LAPS = f"it would gain speed for more than {MOST_FIRST_LAPS} laps"
SHORTEST_SPAN = 1e-3
"""Shortest span of an average, s: over shorter ones the places would be lost in rounding."""
NEXT_LENGTH = 1.05
"""Ratio of the lengths over which a highest speed may be held."""
SAMPLES = 4
"""Samples of the bend in each step, beside the joints of the path; the tightest one counts."""
SAMPLED = 1e-3
"""Share of the squared speed that is left for bends between samples."""


class BendLimits(NamedTuple):
    """Limits that a vehicle must not exceed."""

    lateral_acceleration: float
    """m/s²."""
    acceleration: float
    """Gain and loss of speed, m/s²."""
    max_speed: float = math.inf
    """Over ground, m/s."""
    climb_speed: float = math.inf
    """Up or down on a path with altitudes, m/s."""


class _Steps(NamedTuple):
    """A part of a path in steps of equal length."""

    s: Floats
    """Arc length of the steps' ends, (n + 1,), m."""
    square: Floats
    """Bound of the squared speed at these places, (n + 1,), m²/s²."""
    acceleration: Floats
    """Bound of the acceleration along the path in each step, (n,), m/s²."""


@functools.lru_cache(maxsize=16)  # copies with a delay move alike
def limited_schedule(
    path: Path,
    profile: SpeedProfile,
    at_end: AtEnd,
    phase: float,
    limits: BendLimits,
    offsets: tuple[tuple[float, float], ...] = ((0.0, 0.0),),
) -> Schedule:
    """Return the motion of `speed_profile.schedule` with the speed that the limits leave.

    It starts from standstill. `offsets`: the members of a formation, m ahead and left; all of them
    keep the limits. Raise ConfigError for what `schedule` refuses.
    """
    plain = schedule(path.length, path.closed, profile, at_end, phase)
    if profile.cruise == 0.0:
        return plain

    begin = plain.pieces[0][1]

    def steps(start: float, end: float) -> _Steps:
        return _bounded(path, start, end, profile.cruise, limits, offsets)

    up = min(profile.acceleration or math.inf, limits.acceleration)
    down = min(profile.deceleration or up, limits.acceleration)
    jerk = profile.jerk
    if jerk is None:
        return _Motion(up, down, 0.0).schedule(path, at_end, begin, steps)

    # what a straight path of this length allows to reach
    profile = dataclasses.replace(profile, acceleration=up, deceleration=down)
    straight = schedule(path.length, path.closed, profile, at_end, phase)
    most = max(abs(acceleration) for _, _, _, acceleration, _ in straight.pieces)
    span = max(most / jerk, SHORTEST_SPAN)
    motion = _Motion(min(up, most), min(down, most), span)
    return motion.schedule(path, at_end, begin, steps)


def _bounded(
    path: Path,
    begin: float,
    end: float,
    cruise: float,
    limits: BendLimits,
    offsets: Sequence[tuple[float, float]],
) -> _Steps:
    """Return the bound of the squared speed from one arc length to another.

    A member that is l to the left of a bend of curvature κ drives 1 - κ l metres for each metre of
    the path, on a bend of curvature κ / (1 - κ l). It gains speed where κ changes, too: at the
    speed v along the path by -κ' l v². Half of the acceleration is left for that, at most.
    """
    if begin == end:
        return _Steps(np.array([begin, end]), np.zeros(2), np.array([limits.acceleration]))
    count = min(max(math.ceil((end - begin) / STEP), FEWEST_STEPS), MOST_STEPS)
    least = np.full(count, cruise**2)
    stretch = np.ones(count)
    change = np.zeros(count)
    for ahead, left in set(offsets):
        s = _samples(path, begin, end, count, ahead)
        at = s + ahead
        points = path.at(at)
        curvature = points.curvature
        rate = points.curvature_rate
        if not path.closed:  # it goes straight on before the path and behind it
            is_beyond = (at < 0.0) | (at > path.length)
            curvature = np.where(is_beyond, 0.0, curvature)
            rate = np.where(is_beyond, 0.0, rate)

        own = 1.0 - curvature * left
        sideways = np.maximum(np.abs(curvature) * own, 1e-12)
        square = np.minimum(limits.lateral_acceleration / sideways, (limits.max_speed / own) ** 2)
        if path.altitude is not None:
            slope = altitudes(join_profiles([path]), np.zeros(at.size, np.int64), at)[:, 1]
            square = np.minimum(square, (limits.climb_speed / np.maximum(abs(slope), 1e-9)) ** 2)

        position = (s - begin) / (end - begin) * count
        for side in (-1e-6, 1e-6):  # the end of a step counts for both
            step = np.clip(np.floor(position + side), 0, count - 1).astype(np.int64)
            np.minimum.at(least, step, square)
            np.maximum.at(stretch, step, own)
            np.maximum.at(change, step, np.abs(rate * left))

    least = np.minimum(least, 0.5 * limits.acceleration / np.maximum(change, 1e-12))
    # polynomials, and members beside the path, may bend a little more between the samples
    is_smooth = POLYNOMIAL in path.kind or path.altitude is not None
    if is_smooth or any(left for _, left in offsets):
        least *= 1.0 - SAMPLED
    acceleration = (limits.acceleration - least * change) / stretch
    # at the end of each step the least of both steps beside it
    ends = np.minimum(np.append(least, least[-1]), np.append(least[0], least))
    return _Steps(np.linspace(begin, end, count + 1), ends, acceleration)


def _samples(path: Path, begin: float, end: float, count: int, ahead: float) -> Floats:
    """Return arc lengths at which a member's bend is sampled: in each step, next to each joint."""
    joints = path.start - ahead
    if path.closed:
        joints = begin + np.mod(joints - begin, path.length)
    beside = 1e-9 * path.length
    s = np.concatenate(
        [np.linspace(begin, end, SAMPLES * count + 1), joints - beside, joints + beside]
    )
    return np.clip(s, begin, end)


def _gaining(bound: Floats, gains: Floats) -> Floats:
    """Return the largest values below a bound, (n + 1,), that gain no more than gains, (n,).

    A value is the least of all bounds before it, each with what is gained since.
    """
    gained = np.append(0.0, np.cumsum(gains))
    return np.minimum.accumulate(bound - gained) + gained


def _gains(acceleration: float, steps: _Steps) -> Floats:
    """Return by how much the squared speed may change in each step, (n,), m²/s²."""
    step = float(abs(steps.s[1] - steps.s[0]))
    return 2.0 * step * np.minimum(acceleration, steps.acceleration)


def _least_near(values: Floats, reach: Ints) -> Floats:
    """Return the least of the values, (n,), that are no farther than a reach, (n,), from each."""
    n = len(values)
    # rows: the least of 1, 2, 4, … values from each on
    least = [values]
    while 2 ** len(least) <= n:
        half = 2 ** (len(least) - 1)
        ahead = np.append(least[-1][half:], np.full(half, math.inf))
        least.append(np.minimum(least[-1], ahead))
    table = np.stack(least)

    places = np.arange(n)
    first = np.maximum(places - reach, 0)
    last = np.minimum(places + reach, n - 1)
    row = np.frexp(last - first + 1.0)[1] - 1
    return np.minimum(table[row, first], table[row, last + 1 - 2**row])


def _durations(s: Floats, squares: Floats) -> Floats:
    """Return the times, (n,), s, from place to place, (n + 1,), with these squared speeds."""
    speed = np.sqrt(squares)
    return 2.0 * np.abs(np.diff(s)) / (speed[1:] + speed[:-1])


def _held(speed: Floats, step: float, span: float) -> Floats:
    """Return the largest speeds at places, m/s, where each peak is held for a span, s.

    A speed that is held over k steps of the path, m, may be k steps in the span.
    """
    from scipy.ndimage import grey_opening

    held = np.full_like(speed, speed.min())
    count = 1
    while True:
        # with room at both ends, as the opening cuts what rises there
        padded = np.pad(speed, count, mode="edge")
        flat = grey_opening(padded, size=count + 1, mode="nearest")[count:-count]
        held = np.maximum(held, np.minimum(flat, count * step / span))
        if flat.max() * span <= count * step:
            return held
        count = math.ceil(count * NEXT_LENGTH)


class _Drive(NamedTuple):
    """A motion in pieces of constant acceleration."""

    time: Floats
    """Begin of each piece, and the end, (n + 1,), s."""
    s: Floats
    """Arc length then, (n + 1,), m."""
    speed: Floats
    """Speed along the path then, (n + 1,), m/s."""
    acceleration: Floats
    """Acceleration from then on, (n + 1,), m/s²; 0 from the end on."""

    @classmethod
    def between(cls, s: Floats, squares: Floats, least_change: float) -> _Drive:
        """Return the motion between places, (n + 1,), with these squared speeds.

        Pieces whose accelerations differ by less than `least_change`, m/s², are one piece.
        """
        step = np.diff(s)
        speed = np.copysign(np.sqrt(squares), step[0])
        acceleration = np.append(np.diff(squares) / (2.0 * step), 0.0)
        time = np.append(0.0, np.cumsum(_durations(s, squares)))
        is_kept = np.append(True, np.abs(np.diff(acceleration)) > least_change)
        is_kept[-1] = True
        return cls(time[is_kept], s[is_kept], speed[is_kept], acceleration[is_kept])

    def averaged(self, span: float) -> list[tuple[float, float, float, float, float]]:
        """Return the motion whose place is the average over the last span of time, s.

        Pieces are as in `Schedule`, and the last one is the end. The motion stands before its
        begin, and goes on at its last speed.
        """
        if span == 0.0:
            return [(*row, 0.0) for row in zip(*(array.tolist() for array in self), strict=True)]
        times = np.unique(np.concatenate([self.time, self.time + span]))
        times = times[np.append(True, np.diff(times) > 1e-9 * span)]
        moved = (self._at(times)[:3] - self._at(times - span)[:3]) / span
        # accelerations are constant between the times
        middle = times + 0.5 * np.append(np.diff(times), span)
        change = self._at(middle)[3] - self._at(middle - span)[3]
        rows = (array.tolist() for array in (times, *moved, change / span))
        return list(zip(*rows, strict=True))

    def _at(self, time: Floats) -> Floats:
        """Return the integral of the place over time, m s, place, speed and acceleration, (4, k).

        The integral counts from the begin.
        """
        lasts = np.diff(self.time)
        areas = lasts * (
            self.s[:-1] + lasts * (0.5 * self.speed[:-1] + lasts * (self.acceleration[:-1] / 6.0))
        )
        area = np.append(0.0, np.cumsum(areas))

        piece = np.maximum(np.searchsorted(self.time, time, "right") - 1, 0)
        t = time - self.time[piece]
        s = self.s[piece]
        speed = self.speed[piece]
        acceleration = np.where(t < 0.0, 0.0, self.acceleration[piece])
        return np.stack(
            [
                area[piece] + t * (s + t * (0.5 * speed + t * (acceleration / 6.0))),
                s + t * (speed + t * (0.5 * acceleration)),
                speed + t * acceleration,
                acceleration,
            ]
        )


class _Motion:
    """Builder of a motion, whose place is averaged over a span of time."""

    def __init__(self, up: float, down: float, span: float) -> None:
        self._up = up
        self._down = down
        self._span = span
        self._pieces: list[tuple[float, float, float, float, float]] = []
        self._time = 0.0

    def schedule(
        self, path: Path, at_end: AtEnd, begin: float, steps: Callable[[float, float], _Steps]
    ) -> Schedule:
        """Return the motion from an arc length, m; `steps` gives the part between two of them."""
        if at_end == "repeat":
            return self._laps(steps(begin, begin + path.length))

        if at_end == "stop":
            end = begin + path.length if path.closed else path.length
            self._trip(steps(begin, end))
            self._pieces.append((self._time, end, 0.0, 0.0, 0.0))
            return Schedule(self._pieces, 0.0, math.inf)

        # out once, then there and back
        self._trip(steps(begin, path.length))
        loop_start = self._time
        whole = steps(0.0, path.length)
        self._trip(_Steps(*(array[::-1] for array in whole)))
        self._trip(whole)
        return Schedule(self._pieces, loop_start, self._time - loop_start)

    def _trip(self, steps: _Steps) -> None:
        """Add a trip from rest to rest."""
        if steps.s[0] == steps.s[-1]:
            return
        near = self._near(steps)
        near.square[[0, -1]] = 0.0
        squares = self._held(near, self._fastest(near))
        drive = _Drive.between(steps.s, squares, 1e-9 * self._down)
        pieces = drive.averaged(self._span)
        self._pieces += [(self._time + t, s, v, a, j) for t, s, v, a, j in pieces[:-1]]
        self._time += pieces[-1][0]

    def _laps(self, lap: _Steps) -> Schedule:
        """Return laps from rest until they are all alike, and one of these, which repeats."""
        n = len(lap.s) - 1
        length = float(lap.s[-1] - lap.s[0])

        # the lap that repeats has its like before and behind it
        near = self._near(
            _Steps(
                lap.s,
                np.concatenate([lap.square[:-1], lap.square[:-1], lap.square]),
                np.tile(lap.acceleration, 3),
            )
        )
        fastest = self._fastest(near)
        quickest_lap = float(_durations(lap.s, fastest[n : 2 * n + 1]).sum())
        if self._span > MOST_FIRST_LAPS * quickest_lap:
            raise ConfigError(_TOO_MANY_LAPS, key="keep_limits")
        steady = self._held(near, fastest)[n : 2 * n + 1]
        steady[-1] = steady[0]
        period = float(_durations(lap.s, steady).sum())

        # laps on which the speed is still gained
        gains = _gains(self._up, _Steps(lap.s, steady, near.acceleration[n : 2 * n]))
        gained = np.append(0.0, np.cumsum(gains))
        first = [np.minimum(steady, gained)]
        while first[-1][-1] < steady[0] * (1.0 - 1e-9):
            if len(first) == MOST_FIRST_LAPS:
                raise ConfigError(_TOO_MANY_LAPS, key="keep_limits")
            first.append(np.minimum(steady, first[-1][-1] + gained))
        if self._span:  # in which the last highest speed is held
            first.append(steady)
        square = np.append(np.concatenate([each[:-1] for each in first]), steady[-1])
        square = self._held(lap, square)

        # the lap that repeats, and what averages need behind it
        laps = len(first) + 1 + math.ceil(self._span / period)
        square = np.concatenate([square, *[steady[1:]] * (laps - len(first))])
        s = np.linspace(lap.s[0], lap.s[0] + laps * length, laps * n + 1)
        drive = _Drive.between(s, square, 1e-9 * self._down)
        begin = slice(len(first) * n + 1)
        loop_start = float(_durations(s[begin], square[begin]).sum()) + self._span
        pieces = [each for each in drive.averaged(self._span) if each[0] < loop_start + period]
        return Schedule(pieces, loop_start, period)

    def _near(self, steps: _Steps) -> _Steps:
        """Return steps bounded by all places that the average at a place may come from."""
        step = float(abs(steps.s[1] - steps.s[0]))
        speed = np.sqrt(self._fastest(steps))
        strongest = max(self._up, self._down)
        reach = self._span * (0.5 * speed + strongest * self._span / 3.0)
        nodes = np.minimum(np.ceil(reach / step), len(speed)).astype(np.int64)
        return steps._replace(
            square=_least_near(steps.square, nodes),
            acceleration=_least_near(steps.acceleration, np.maximum(nodes[1:], nodes[:-1])),
        )

    def _held(self, steps: _Steps, squares: Floats) -> Floats:
        """Return the largest squared speeds where each peak is held for the span."""
        if self._span == 0.0:
            return squares
        return _held(np.sqrt(squares), float(abs(steps.s[1] - steps.s[0])), self._span) ** 2

    def _fastest(self, steps: _Steps) -> Floats:
        """Return the largest squared speeds below the bounds."""
        forward = _gaining(steps.square, _gains(self._up, steps))
        back = _gaining(forward[::-1], _gains(self._down, steps)[::-1])
        return np.maximum(back[::-1], 0.0)
