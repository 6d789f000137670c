# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Detours of a vehicle that is stuck: back, and round the place on one side, then on the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_missions.mission.legs import BACKWARD_SPEED, DriveLeg
from rfly_terrain.height_map.height_map import HeightMap

AHEAD = 5.0
"""Distance beyond the place to which it stays aside, in wheelbases."""

ASIDE = (4.0, 6.0)
"""Distances to the side of the first and the second detour, in wheelbases.

The vehicle backs off as far, to have room for its bend.
"""

MOST_DETOURS = len(ASIDE)
"""Number of detours around one place."""


class Detours:
    """Ways round a place at which a vehicle was stuck on its way to further way-points."""

    def __init__(
        self,
        place: Floats,
        rest: Sequence[Floats],
        speeds: Sequence[float],
        backward: bool,
        params: VehicleParameters,
        terrain: HeightMap | None,
    ) -> None:
        """Plan them around `place`, (2,), m, for the way-points `rest` with `speeds`."""
        self._length = params.wheelbase
        self._backward = backward
        direction = np.asarray(rest[0], float) - place
        direction /= max(float(np.linalg.norm(direction)), 1e-9)
        left = np.array((-direction[1], direction[0]))

        # way-points beside the place count as passed
        along = [float((point - place) @ direction) for point in rest]
        most = AHEAD * self._length
        first = next((k for k, far in enumerate(along) if far > most), len(rest) - 1)
        self._points = [tuple(map(float, point)) for point in rest[first:]]
        self._speeds = tuple(speeds[first:])
        ahead = min(most, max(along[first], 0.0))

        def way(side: float, aside: float) -> Floats:
            """Return the corners of the way around the place, (2, 2), m."""
            beside = place + side * aside * self._length * left
            return np.array((beside, beside + ahead * direction))

        def climb(side: float) -> float:
            """Return the largest height of the ground there above the place, m; inf off the map."""
            if terrain is None:
                return 0.0
            begin, end = way(side, ASIDE[0])
            x, y = np.linspace(begin, end, 9).T
            if not np.all(terrain.inside(x, y)):
                return math.inf
            heights = np.asarray(terrain.altitude(x, y)) - terrain.altitude(*place.tolist())
            return float(np.abs(heights).max())

        sides = sorted((1.0, -1.0), key=climb)
        self._direction = direction
        self._ways = [
            (aside * self._length, way(side, aside))
            for side, aside in zip(sides, ASIDE, strict=True)
            if math.isfinite(climb(side))
        ]

    @property
    def left(self) -> int:
        """Number of detours that were not tried."""
        return len(self._ways)

    def next(self, place: Floats) -> tuple[DriveLeg, DriveLeg]:
        """Return the legs of the next detour, of a vehicle at `place` (2,), m.

        It backs off, then goes round the place where it was stuck first, and on to the way-points.
        """
        back, way = self._ways.pop(0)
        x, y = (place - back * self._direction).tolist()
        corners = [tuple(corner) for corner in way.tolist()]
        speed = min(self._speeds[0], BACKWARD_SPEED)
        away = DriveLeg(((x, y),), (speed,), not self._backward)
        points = (*corners, *self._points)
        speeds = (self._speeds[0],) * len(corners) + self._speeds
        return away, DriveLeg(points, speeds, self._backward)
