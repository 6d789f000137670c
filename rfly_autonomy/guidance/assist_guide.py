# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Thrust assistance on the driven legs of a mission that allow it."""

from __future__ import annotations

from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.route import Route
from rfly_autonomy.guidance.thrust_assist import AssistStep, ThrustAssist
from rfly_missions.mission.legs import Leg


class AssistGuide:
    """Part of a mission guide that lets the rotors help where wheels get no further."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.begin()

    def begin(self) -> None:
        """Forget everything, because other legs begin."""
        self._gaits: ThrustAssist | None = None

    def leave(self, leg: Leg) -> None:
        """Forget the state of a leg that has ended."""
        self._gaits = None

    def step(self, now: Estimate, speed: float, dt: float) -> AssistStep:
        """Return what to do, dt seconds after the last time.

        `speed`: the wanted one, m/s.
        """
        if self._gaits is None:
            self._gaits = ThrustAssist(self._route.params)
        gait = self._gaits.gait
        step = self._gaits.update(now, speed, dt)
        if self._gaits.gait is not gait:
            self._route.note(now.time, f"thrust assist: {self._gaits.gait.value}")
        return step
