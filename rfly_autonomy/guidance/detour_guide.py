# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ways out for a vehicle that is stuck on a driven leg of a mission.

It goes back, and round the place on one side, then on the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.path_following import DrivePathFollower
from rfly_autonomy.control.stuck import StuckLimits, StuckWatch
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.route import Route
from rfly_common.arrays import Floats
from rfly_missions.mission.legs import BACKWARD_SPEED, DriveLeg, Leg
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


class DetourGuide:
    """Part of a mission guide that backs off and goes round the place where a vehicle is stuck."""

    def __init__(self, route: Route, limits: StuckLimits | None, most: int) -> None:
        """`most`: number of detours around one place before it gives up."""
        self._route = route
        self._most = most
        self._watch = StuckWatch(limits)
        self.begin()

    def begin(self) -> None:
        """Forget everything, because other legs begin."""
        self._watch.reset()
        self._away: DriveLeg | None = None
        """Leg on which the vehicle backs off from where it was stuck, if there was one."""

        self._forget_place()

    def leave(self, leg: Leg) -> None:
        """Forget the state of a leg that has ended."""
        self._watch.reset()
        if leg is not self._away:
            self._forget_place()

    def _forget_place(self) -> None:
        """Forget where the vehicle was stuck."""
        self._detours: Detours | None = None
        self._tried = 0

    @property
    def problem(self) -> str:
        """Reason why the vehicle gets no further, if it has given up."""
        return self._watch.text

    def wait(self) -> None:
        """Begin to watch anew: something else moves the vehicle on."""
        self._watch.reset()

    def update(
        self, leg: DriveLeg, now: Estimate, speed: float, follower: DrivePathFollower
    ) -> tuple[DriveLeg, ...] | None:
        """Return the legs that take the place of the present one; none of them: it ends here.

        None while the vehicle, which wants to drive at `speed`, m/s, gets on or has given up.
        """
        place = now.position[:2]
        if not self._watch.update(now.time, place, speed):
            return None

        text = self._watch.text
        if leg is self._away:
            self._route.note(now.time, f"does not get away from the place: {text}")
            return ()

        points, speeds = follower.rest()
        if self._detours is None and points:
            self._detours = Detours(
                place, points, speeds, leg.backward, self._route.params, self._route.terrain
            )
        if self._detours is None or not self._detours.left or self._tried >= self._most:
            self._route.note(now.time, f"gives up: {text}")
            return None

        self._tried += 1
        self._route.note(now.time, f"goes back and round the place: {text}")
        self._watch.reset()
        self._away, around = self._detours.next(place)
        return self._away, dataclasses.replace(around, thrust_assist=leg.thrust_assist)
