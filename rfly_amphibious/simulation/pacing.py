"""Real-time pacing: ticks due by the wall clock, and the lag behind it."""

from __future__ import annotations

import math

MOST_BEHIND = 0.04
"""s of wall time that are caught up: a longer burst would leave controllers behind; what is beyond
is given up
"""


class Pacer:
    """Of ticks of `period` s that shall run at `factor` times real time; 0: as fast as possible."""

    def __init__(self, factor: float, period: float) -> None:
        self.factor = factor
        self.period = period
        self.overruns = 0
        """ticks that began more than a period too late"""
        self.lost = 0.0
        """s of wall time by which the simulation fell behind for good"""
        self._begin = 0.0
        self._done = 0

    def start(self, now: float) -> None:
        """From `now` (s) on."""
        self._begin = now
        self._done = 0

    def due(self, now: float, most: int = 1000) -> int:
        """Ticks that should have begun by now and have not, at most `most`."""
        if self.factor == 0.0:
            return most
        wall_period = self.period / self.factor
        behind = (now - self._begin) - self._done * wall_period
        if behind > MOST_BEHIND:
            surplus = behind - wall_period
            self.lost += surplus
            self.overruns += math.floor(surplus / wall_period)
            self._begin += surplus
            behind = wall_period
        return min(max(math.floor(behind / wall_period + 1e-9), 0), most)

    def ran(self, ticks: int) -> None:
        """So many of those that were due have run: all but the last of several were late."""
        self._done += ticks
        self.overruns += max(ticks - 1, 0) if self.factor else 0
