# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion along a path as fast as limits allow: a vehicle slows down for its bends.

The speed at each place is bounded by the bend there. Of all speeds below this bound, the fastest
one gains speed with the whole acceleration or loses it with the whole deceleration wherever it is
below it: one pass along the path and one back find it (Bobrow, Dubowsky and Gibson, Time-optimal
control of robotic manipulators along specified paths, 1985, in the form for one mass).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError
from rfly_trajectory.kernels.tables import POLYNOMIAL
from rfly_trajectory.motion.speed_profile import AtEnd, Schedule, SpeedProfile, schedule
from rfly_trajectory.paths.path import Path, altitudes, join_profiles

STEP = 0.25
"""Distance between places at which the speed is found, m, unless that needs more than MOST_STEPS.
"""
MOST_STEPS = 4000
"""Largest number of such steps of a path."""
MOST_FIRST_LAPS = 1000
"""Largest number of laps on which a vehicle still gains speed."""
SAMPLES = 4
"""Samples of the bend in each step, beside the joints of the path; the tightest one counts."""
SAMPLED = 1e-3
"""Share of the squared speed that is left for bends between samples."""


class BendLimits(NamedTuple):
    """What a vehicle must not exceed."""

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

    It starts from standstill. `offsets`: the members of a formation, m ahead and left, all of which
    keep the limits. Raise ConfigError for a profile with a jerk, and for what `schedule` refuses.
    """
    plain = schedule(path.length, path.closed, profile, at_end, phase)
    if profile.cruise == 0.0:
        return plain
    if profile.jerk is not None:
        raise ConfigError("keeps no jerk: expected speed without it", key="keep_limits")

    begin = plain.pieces[0][1]
    motion = _Motion(profile, limits)

    def steps(start: float, end: float) -> _Steps:
        return _bounded(path, start, end, profile.cruise, limits, offsets)

    if at_end == "repeat":
        loop_start = motion.laps(steps(begin, begin + path.length))
        return Schedule(motion.pieces, loop_start, motion.time - loop_start)

    if at_end == "stop":
        end = begin + path.length if path.closed else path.length
        motion.trip(steps(begin, end))
        motion.pieces.append((motion.time, end, 0.0, 0.0, 0.0))
        return Schedule(motion.pieces, 0.0, math.inf)

    # out once, then there and back
    motion.trip(steps(begin, path.length))
    loop_start = motion.time
    whole = steps(0.0, path.length)
    motion.trip(_Steps(*(array[::-1] for array in whole)))
    motion.trip(whole)
    return Schedule(motion.pieces, loop_start, motion.time - loop_start)


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
    count = min(max(math.ceil((end - begin) / STEP), 2), MOST_STEPS)
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
    """Return arc lengths at which a member's bend is sampled: in each step, beside each joint."""
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


class _Motion:
    """Pieces of constant acceleration in order of time."""

    def __init__(self, profile: SpeedProfile, limits: BendLimits) -> None:
        self._up = profile.acceleration or math.inf
        self._down = profile.deceleration or self._up
        self._most = limits.acceleration
        self.pieces: list[tuple[float, float, float, float, float]] = []
        """As in `Schedule`."""
        self.time = 0.0
        """End of the last piece, s."""

    def trip(self, steps: _Steps) -> None:
        """Add a trip from rest to rest."""
        if steps.s[0] == steps.s[-1]:
            return
        bound = steps.square.copy()
        bound[[0, -1]] = 0.0
        self._drive(steps.s, self._fastest(bound, steps))

    def laps(self, lap: _Steps) -> float:
        """Add laps from rest until they are all alike, and one of these; return its begin, s."""
        n = len(lap.s) - 1
        length = float(lap.s[-1] - lap.s[0])

        # the lap that repeats has its like before and behind it
        three = _Steps(
            lap.s,
            np.concatenate([lap.square[:-1], lap.square[:-1], lap.square]),
            np.tile(lap.acceleration, 3),
        )
        steady = self._fastest(three.square, three)[n : 2 * n + 1]
        steady[-1] = steady[0]

        # laps on which the speed is still gained
        gained = np.append(0.0, np.cumsum(_gains(self._up, lap)))
        square = 0.0
        for number in range(MOST_FIRST_LAPS):
            if square >= steady[0] * (1.0 - 1e-9):
                loop_start = self.time
                self._drive(lap.s + number * length, steady)
                return loop_start
            squares = np.minimum(steady, square + gained)
            self._drive(lap.s + number * length, squares)
            square = float(squares[-1])
        raise ConfigError(
            f"it would gain speed for more than {MOST_FIRST_LAPS} laps", key="keep_limits"
        )

    def _fastest(self, bound: Floats, steps: _Steps) -> Floats:
        """Return the largest squared speeds below a bound."""
        forward = _gaining(bound, _gains(self._up, steps))
        back = _gaining(forward[::-1], _gains(self._down, steps)[::-1])
        return np.maximum(back[::-1], 0.0)

    def _drive(self, s: Floats, squares: Floats) -> None:
        """Add pieces between places with these squared speeds; alike ones are one piece."""
        step = float(s[1] - s[0])
        sign = math.copysign(1.0, step)
        speed = np.sqrt(squares)
        acceleration = np.diff(squares) / (2.0 * abs(step))
        duration = 2.0 * abs(step) / (speed[1:] + speed[:-1])
        begin = self.time + np.append(0.0, np.cumsum(duration))

        changes = np.abs(np.diff(acceleration)) > 1e-9 * self._most
        first = np.flatnonzero(np.append(True, changes))
        rows = zip(
            begin[first].tolist(),
            s[first].tolist(),
            (sign * speed[first]).tolist(),
            (sign * acceleration[first]).tolist(),
            strict=True,
        )
        self.pieces += [(*row, 0.0) for row in rows]
        self.time = float(begin[-1])
