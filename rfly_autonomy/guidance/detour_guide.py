# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ways out for a vehicle that is stuck on a driven leg of a mission."""

from __future__ import annotations

import dataclasses

from rfly_autonomy.control.path_following import DrivePathFollower
from rfly_autonomy.control.stuck import StuckLimits, StuckWatch
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.detour import Detours
from rfly_autonomy.guidance.route import Route
from rfly_missions.mission.legs import DriveLeg, Leg


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
