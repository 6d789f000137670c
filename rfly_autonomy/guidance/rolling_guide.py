# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rolling take-offs and landings along the legs of a mission.

Theory of operation. A vehicle drives on through the place of its take-off (`extended`, `run_up`),
lifts off (`roll_off`) and flies on from there (`fit`). At the end of its flight it glides (`glide`)
and rolls until it stands (`roll_down`). What is against it turns the plan into a usual take-off
or landing. docs/model, section 9.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.control.flight_modes import ROLLING_CLIMB
from rfly_autonomy.control.path_following import DrivePathFollower
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.rolling import (
    FAST_ENOUGH,
    LATE,
    WAITING,
    RollingPlan,
    rolling_plan,
    run_length,
    stopping_distance,
)
from rfly_autonomy.guidance.route import Route
from rfly_common.arrays import Floats
from rfly_common.frames import rotation_matrix
from rfly_missions.mission.legs import DriveLeg, FlyLeg, Leg, Place

_LOW = 0.15
"""Height below which a rolling take-off has not lifted off, m."""


class RollingGuide:
    """Part of a mission guide that takes off and lands on rolling wheels."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.begin()

    def begin(self) -> None:
        """Forget everything, because other legs begin."""
        self._plan: RollingPlan | None = None
        """Tracks of the flown leg that is next or present; None before they are planned."""

        self._wheels: DrivePathFollower | None = None
        """Way on the ground before or after the present flight."""

    def leave(self, leg: Leg) -> None:
        """Forget the state of a leg that has ended."""
        self._wheels = None
        if isinstance(leg, FlyLeg):
            self._plan = None

    @property
    def is_planned(self) -> bool:
        """True if the tracks of the next or present flight are planned."""
        return self._plan is not None

    @property
    def takes_off(self) -> bool:
        """True if the next or present flight takes off rolling."""
        return self._plan is not None and self._plan.take_off is not None

    @property
    def lands(self) -> bool:
        """True if the present flight lands rolling."""
        return self._plan is not None and self._plan.landing is not None

    def rolls(self, stands: bool) -> bool:
        """Return whether the vehicle still rolls before or after a flight."""
        return self._wheels is not None and not (self._wheels.stopping and stands)

    def _plan_for(self, index: int, now: Estimate, standing: bool) -> RollingPlan:
        """Return the tracks of the flown leg of an index; log why it does not roll."""
        if self._plan is None:
            route = self._route
            leg = route.legs[index]
            assert isinstance(leg, FlyLeg)
            following = route.legs[index + 1 : index + 2]
            drives = following and isinstance(following[0], DriveLeg)
            onward = following[0].points[0][:2] if drives else None
            self._plan = rolling_plan(
                leg, onward, route.params, route.terrain, standing, route.solids
            )
            for note in self._plan.notes:
                route.note(now.time, note)
        return self._plan

    # --- take-off

    def extended(
        self, points: tuple[Place, ...], speeds: tuple[float, ...], now: Estimate
    ) -> tuple[tuple[Place, ...], tuple[float, ...]]:
        """Return the way-points of the present drive and their speeds, m/s, with the run-up.

        They stay as they are if no flight follows that takes off rolling.
        """
        if isinstance(self._route.following, FlyLeg):
            track = self._plan_for(self._route.index + 1, now, standing=False).take_off
            if track is not None:
                end = track.at(run_length(track.speed, standing=False))
                return (*points, end), (*speeds, track.speed)
        return points, speeds

    def run_up(self, now: Estimate, stands: bool) -> Setpoint | None:
        """Return the setpoint on the way to a rolling take-off; None: it is from a stand."""
        begins = self._plan is None
        track = self._plan_for(self._route.index, now, stands).take_off
        if track is None:
            return None

        if self._wheels is None:
            end = track.at(run_length(track.speed, standing=begins))
            self._drive_to(now, end, track.speed)
        elif self._wheels.stopping:
            self._take_off_standing(now, "it did not come to speed on its track")
            return None

        speed, steering, forward = self._follow(now)
        on_course = track.is_on_course(rotation_matrix(now.orientation))
        room = self._left(now) > stopping_distance(track.speed)
        ready = forward > FAST_ENOUGH * track.speed and on_course and room
        mode = Mode.ROLLING_TAKEOFF if ready else None
        return Setpoint(now.time, mode, speed=speed, steering=steering)

    def roll_off(self, now: Estimate, height: float) -> Setpoint:
        """Return the setpoint of a rolling take-off, of wheels at a height above the ground, m."""
        assert self._plan is not None
        track = self._plan.take_off
        if track is None or self._wheels is None:
            return Setpoint(now.time, Mode.LAND)

        _, steering, _ = self._follow(now)
        if self._left(now) < stopping_distance(track.speed) and height < _LOW:
            self._take_off_standing(now, "it did not lift off on its track")
            return Setpoint(now.time, Mode.LAND)
        return track.setpoint(now, speed=track.speed, steering=steering)

    def fit(
        self, points: Sequence[Floats], speeds: Sequence[float], now: Estimate
    ) -> tuple[list[Floats], list[float], float, float]:
        """Return the points and speeds of the present flight between its rolling parts.

        With them come its speeds at the begin and at the end, m/s. The points are changed.
        """
        plan = self._plan_for(self._route.index, now, standing=True)
        self._wheels = None
        points = list(points)
        speeds = list(speeds)
        speed = max(0.0, float(now.velocity[2]))

        if plan.landing is not None:
            points[-1][:2] = plan.landing.at(-plan.glide)
        if plan.take_off is None:
            # straight up from where it really stands
            points[0][:2] = now.position[:2]
        else:
            track = plan.take_off
            rise = max(0.0, float(points[0][2] - now.position[2]))
            top = track.along(now.position) + rise * track.speed / ROLLING_CLIMB
            points[0][:2] = track.at(top)
            speed = float(np.linalg.norm(now.velocity))
            if track.along(points[1]) <= top:  # it climbs until there
                del points[0], speeds[0]
        end_speed = 0.0 if plan.landing is None else plan.landing.speed
        return points, speeds, speed, end_speed

    def _take_off_standing(self, now: Estimate, why: str) -> None:
        """Take off from a stand instead, where the vehicle comes to it."""
        if self.takes_off:
            assert self._plan is not None
            self._plan = dataclasses.replace(self._plan, take_off=None)
            self._route.note(now.time, f"no rolling take-off: {why}")

    # --- landing

    def glide(self, now: Estimate) -> Setpoint | None:
        """Return the setpoint at the end of the flight; None if it lands straight down."""
        assert self._plan is not None
        track = self._plan.landing
        assert track is not None
        if track.along(now.position) > track.speed * WAITING - self._plan.glide:
            self._land_straight(now, "it did not get on course and to speed")
            return None
        on_course = track.is_on_course(rotation_matrix(now.orientation))
        return track.setpoint(now, Mode.ROLLING_LAND if on_course else None)

    def roll_down(self, now: Estimate, mode: Mode, has_flown: bool) -> Setpoint:
        """Return the setpoint of a rolling landing, from its glide until the vehicle stands."""
        assert self._plan is not None
        track = self._plan.landing
        if mode is Mode.ROLL_OUT and not has_flown:
            self._take_off_standing(now, "it was too slow to lift off")
            return Setpoint(now.time)
        if track is None:
            return Setpoint(now.time, Mode.LAND)

        if mode is Mode.ROLLING_LAND:
            wanted = None
            if track.along(now.position) > track.speed * LATE:
                self._land_straight(now, "the ground does not come")
                wanted = Mode.LAND
            return track.setpoint(now, wanted)

        if self._wheels is None:
            forward = max(float(now.velocity[:2] @ track.direction), 0.0)
            end = track.at(track.along(now.position) + stopping_distance(forward))
            self._drive_to(now, end, track.speed)
        speed, steering, _ = self._follow(now)
        return track.setpoint(now, speed=speed, steering=steering)

    def _land_straight(self, now: Estimate, why: str) -> None:
        """Land straight down instead."""
        assert self._plan is not None
        self._plan = dataclasses.replace(self._plan, landing=None)
        self._route.note(now.time, f"no rolling landing: {why}")

    # --- on the wheels

    def _drive_to(self, now: Estimate, end: Place, speed: float) -> None:
        """Begin to drive to the end of a track at a speed, m/s."""
        start = now.position[:2]
        self._wheels = DrivePathFollower(start, [end], [speed], self._route.params)

    def _left(self, now: Estimate) -> float:
        """Return the distance to the end of the track, m."""
        assert self._wheels is not None
        return self._wheels.missed_by(now.position)

    def _follow(self, now: Estimate) -> tuple[float, float, float]:
        """Return speed, m/s, and steering, rad, along the track, and the present speed, m/s."""
        assert self._wheels is not None
        rotation = rotation_matrix(now.orientation)
        forward = float(rotation[:, 0] @ now.velocity)
        heading = math.atan2(rotation[1, 0], rotation[0, 0])
        speed, steering = self._wheels.command(now.position[:2], heading, forward)
        return speed, steering, forward
