# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Real-time pacing: ticks due by the wall clock, and the lag behind it."""

from __future__ import annotations

import math

MOST_BEHIND = 0.04
"""Largest delay that is made up for, s of wall time.

A longer burst of ticks would leave controllers behind, so the simulation gives up the rest.
"""


class Pacer:
    """Pacer of ticks of `period` s at `factor` times real time; 0: as fast as possible."""

    def __init__(self, factor: float, period: float) -> None:
        self.factor = factor
        self.period = period
        self.overruns = 0
        """Number of ticks that began more than a period too late."""
        self.lost = 0.0
        """Wall time by which the simulation fell behind, s."""
        self.hurry = 0.0
        """Share by which it runs faster at present, to catch up with a clock."""
        self._seen = 0.0
        self._begin = 0.0
        self._done = 0

    def start(self, now: float) -> None:
        """Start to count at the wall time `now` (s)."""
        self._begin = now
        self._seen = now
        self._done = 0

    def due(self, now: float, most: int = 1000) -> int:
        """Return how many ticks should have begun by now and have not, at most `most`."""
        if self.factor == 0.0:
            return most
        wall_period = self.period / self.factor
        self._begin -= self.hurry * (now - self._seen)
        self._seen = now
        behind = (now - self._begin) - self._done * wall_period

        # give up a long delay
        if behind > MOST_BEHIND:
            surplus = behind - wall_period
            self.lost += surplus
            self.overruns += math.floor(surplus / wall_period)
            self._begin += surplus
            behind = wall_period

        return min(max(math.floor(behind / wall_period + 1e-9), 0), most)

    def ran(self, ticks: int) -> None:
        """Count ticks that have run; all but the last one of several were late."""
        self._done += ticks
        if self.factor:
            self.overruns += max(ticks - 1, 0)
