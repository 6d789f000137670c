# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Detection of a driving vehicle that is stuck: it is to drive on, and stays at its place."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rfly_common.arrays import Floats
from rfly_common.errors import ConfigError

WANTED_SHARE = 2.0
"""Wanted way from which on a vehicle has to leave its place, as a multiple of the distance.

A vehicle that is to stand, or to creep, is not stuck.
"""


@dataclass(frozen=True)
class StuckLimits:
    """Time and distance by which a vehicle counts as stuck."""

    time: float = 10.0
    """Time within which it has to leave its place, s; 0: it is never stuck."""

    distance: float = 1.0
    """Distance from its place that it has to reach, m.

    An estimated place wanders by some decimetres, though the vehicle stands.
    """

    def __post_init__(self) -> None:
        if not (math.isfinite(self.time) and self.time >= 0.0):
            raise ConfigError(f"stuck_time is {self.time} s, expected at least 0")
        if not (math.isfinite(self.distance) and self.distance > 0.0):
            raise ConfigError(f"stuck_distance is {self.distance} m, expected more than 0")


class StuckWatch:
    """Watch over a vehicle that drives: `text` is the reason if it is stuck, otherwise empty.

    The speed is no sign of it: wheels that spin mislead the estimate.
    """

    def __init__(self, limits: StuckLimits | None = None) -> None:
        self.limits = limits or StuckLimits()
        self.reset()

    def reset(self) -> None:
        """Forget the place."""
        self._place = np.full(2, math.inf)
        self._since = math.nan
        """Time at which the vehicle came to this place, s."""

        self._wanted = 0.0
        """Way that it was to drive since then, m."""

        self._time = math.nan
        self.text = ""

    def update(self, time: float, place: Floats, speed: float) -> str:
        """Return `text` at a time, s, by the place (2,), m, and the wanted speed, m/s."""
        limits = self.limits
        dt = time - self._time
        self._time = time
        self._wanted += abs(speed) * (dt if dt > 0.0 else 0.0)

        # at another place, or to stand
        if math.dist(place, self._place) > limits.distance or speed == 0.0:
            self._place = np.array(place)
            self._since = time
            self._wanted = 0.0

        is_long = limits.time > 0.0 and time - self._since >= limits.time
        self.text = ""
        if is_long and self._wanted >= WANTED_SHARE * limits.distance:
            self.text = (
                f"stuck: it was to drive {self._wanted:.0f} m and stayed within "
                f"{limits.distance:g} m for {time - self._since:.0f} s"
            )
        return self.text
