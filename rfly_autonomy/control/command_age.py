# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Age of the commands that the rotors obey, by their encoders.

Theory of operation. A link that delays commands, or loses some, lets all rotors turn as they should
have turned some time ago, while a rotor at fault differs from the others. So the rotors obey
commands of the age by which the speeds of most of them change as expected: a bias of the encoders
changes nothing. Only commands that change show it, by encoders that do, too: those that stand still
while commands change would seem to obey older and older ones. So the age stays until one explains
what they show. Rotors that answer commands of changing ages turn between the speeds that belong to
these. So does a steering by its angle.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from rfly_common.arrays import Floats
from rfly_common.config.checks import all_finite

AGE_STEP = 0.01
"""Step of the ages that are told apart, s: one period of the encoders."""

MOST_AGE = 0.2
"""Largest age, s: the vehicle drops older commands."""

AGE_TIME = 0.2
"""Time over which deviations are averaged, s."""

CHANGE_TIME = 0.3
"""Time in which deviations have to change to show an age, s: those of a bias are steady."""

BETTER = 0.6
"""Share of the deviation by the present age up to which that by another one is better."""

UNEXPLAINED = 0.8
"""Share of the measured changes above which the deviation by an age does not explain them."""

LEAST_SHARE = 0.002
"""Deviation that shows anything, as a share of the usual speed."""

LOOK_TIME = 0.02
"""Time between two looks at the deviations, s: two periods of the encoders."""

ROOM = 512
"""Commands for which there is room at first."""

SPREAD = 0.03
"""Commands are at most this much older than most of those that rotors obey, s."""


class CommandAge:
    """Age of the commands that rotors obey, and the speeds that they have by such commands."""

    def __init__(self, rotors: int, usual: float) -> None:
        """`usual`: usual speed of the rotors, by which changes are judged, rad/s."""
        self._ages = np.linspace(0.0, MOST_AGE, round(MOST_AGE / AGE_STEP) + 1)
        self._least = LEAST_SHARE * usual
        self._rotors = rotors
        self.reset()

    def reset(self) -> None:
        """Forget all commands."""
        self.age = 0.0
        """Age of the commands that the rotors obey, s."""

        self._clock = 0.0
        self._measured_at = 0.0
        """Time of the last measured speeds, s."""

        self._times = np.zeros(ROOM)
        self._speeds = np.zeros((ROOM, self._rotors))
        """Speeds by prompt commands, (room, rotors), rad/s, at these times, s."""

        self._count = 1
        """Number of those that are known."""

        self._past: deque[tuple[float, Floats]] = deque()
        """Deviations from the speeds by commands of each age, and from rest, with times.

        Each (ages + 1, rotors), rad/s.
        """

        self._latest = np.full(self._rotors, math.nan)
        """Last measured speeds, (rotors,), rad/s."""

        self._deviations = np.zeros(len(self._ages) + 1)
        """Averaged changes of those by which most rotors deviate, (ages + 1,), rad/s."""

    def go_on(self, speeds: Floats, dt: float) -> Floats:
        """Take in speeds by prompt commands, (rotors,), rad/s, dt seconds later.

        Return those by commands of the present age.
        """
        self._clock += dt
        if self._count == len(self._times):
            self._make_room()
        self._times[self._count] = self._clock
        self._speeds[self._count] = speeds
        self._count += 1
        return speeds if self.age == 0.0 else self.speeds(0.0)

    def _make_room(self) -> None:
        """Forget the oldest speeds; if there are few such, make more room."""
        begin = int(np.searchsorted(self._times, self._clock - 3.0 * MOST_AGE))
        times = self._times[begin:]
        speeds = self._speeds[begin:]
        self._count = len(times)
        room = max(ROOM, 2 * self._count)
        self._times = np.concatenate((times, np.zeros(room - self._count)))
        self._speeds = np.concatenate((speeds, np.zeros((room - self._count, self._rotors))))

    def speeds(self, ahead: float) -> Floats:
        """Return the speeds by commands of the present age, (rotors,), rad/s.

        `ahead`: of the last speeds taken in, s; negative for an earlier time.
        """
        return self._speeds[self._row(self.age, ahead)]

    def possible(self, ahead: float) -> Floats:
        """Return the speeds by commands that are as old or newer, or a bit older, (k, rotors)."""
        if self.age == 0.0:
            return self.speeds(ahead)[None]
        oldest = min(self.age + SPREAD, MOST_AGE)
        return self._speeds[self._row(oldest, ahead) : self._row(0.0, ahead) + 1]

    def measure(self, speeds: Floats, ahead: float, may_grow: bool = True) -> None:
        """Learn the age from measured speeds, (rotors,), rad/s.

        `may_grow`: False while a fault of rotors or encoders may look like a greater age.
        """
        time = self._clock + ahead
        is_new = self._clock < MOST_AGE + CHANGE_TIME
        repeats = np.array_equal(speeds, self._latest)
        self._latest = speeds
        if is_new or repeats or not all_finite(speeds):
            return
        if time < self._measured_at:  # encoders whose clock was ahead
            self._measured_at = time
            self._past.clear()
        period = min(time - self._measured_at, AGE_TIME)
        if period < LOOK_TIME - 1e-9:
            return
        self._measured_at = time

        # changes of the deviations by each age
        due = np.zeros((len(self._ages) + 1, self._rotors))
        due[:-1] = self._speeds[self._rows(self._ages, ahead)]
        self._past.append((time, speeds - due))
        while self._past[0][0] < time - CHANGE_TIME - 1e-9:
            self._past.popleft()
        changes = np.abs(self._past[-1][1] - self._past[0][1])
        median = np.sort(changes, axis=1)[:, (self._rotors - 1) // 2]
        self._deviations -= math.expm1(-period / AGE_TIME) * (median - self._deviations)

        # the best age, if it is much better and explains what changes
        best = int(np.argmin(self._deviations[:-1]))
        present = float(self._deviations[round(self.age / AGE_STEP)])
        most = min(BETTER * present, UNEXPLAINED * float(self._deviations[-1]))
        age = float(self._ages[best])
        is_better = present > self._least and self._deviations[best] < most
        if is_better and (may_grow or age < self.age):
            self.age = age

    def _row(self, age: float, ahead: float) -> int:
        """Return the place of the speeds by commands of an age, s."""
        then = self._clock + ahead - age + 1e-9
        return max(int(self._times[: self._count].searchsorted(then)) - 1, 0)

    def _rows(self, ages: Floats, ahead: float) -> NDArray[np.intp]:
        """Return the places of the speeds by commands of ages, (k,), s."""
        then = self._clock + ahead - ages + 1e-9
        return np.maximum(self._times[: self._count].searchsorted(then) - 1, 0)
