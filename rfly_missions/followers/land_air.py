# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinematic land-air vehicle: a car on the ground, a multirotor in the air.

NED metres, radians, seconds.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_missions.followers.ground import Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle, GroundVehicleLimits
from rfly_missions.followers.multirotor import Multirotor, MultirotorLimits
from rfly_missions.mission.items import MissionItem, MissionMode, Ned

MAX_TAKEOFF_SPEED = 0.3
"""Speed, m/s, that is slow enough to take off."""
TOUCHDOWN_HEIGHT = 0.02
"""Height above ground, m, at which the vehicle has landed."""
TAKEOFF_TOLERANCE = 1.0
"""Distance from the take-off's target, m, at which FLIGHT begins."""
LANDING_RADIUS = 1.0
"""Horizontal distance from the touchdown point, m, within which a landing may begin."""
DISARMED = "DISARMED"
"""Mode of a vehicle that obeys no commands."""
REQUEST_AGAIN = 1.0
"""Time after which a mode that does not come is requested again, s."""


def mode_request(item: MissionItem, mode: str, position: Ned, driven: bool) -> str:
    """Return the request to a land-air vehicle: arm, takeoff, land, or "" for none.

    `item`: as it is flown; `mode` and `position` (NED, m): the vehicle's; `driven`: the vehicle is
    to go there on wheels.
    """
    if item.mode in (MissionMode.HOLD, MissionMode.ARMED):
        return ""
    if item.mode is MissionMode.LAND or (item.mode is MissionMode.RTL and not driven):
        distance = float(np.hypot(*(np.array(position[:2]) - item.position[:2])))
        return "land" if mode in ("TAKEOFF", "FLIGHT") and distance <= LANDING_RADIUS else ""

    if mode == DISARMED:
        return "arm"
    return "takeoff" if mode == "DRIVE" and not driven else ""


class ModeRequests:
    """Requests of modes, repeated every REQUEST_AGAIN until the vehicle takes the mode."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the last request, as for a new mission or when the time went back."""
        self._word = ""
        self._again_at = -math.inf

    def is_due(self, word: str, time: float) -> bool:
        """Return whether to request the mode that is needed at a time, s; "" for none."""
        due = bool(word) and (word != self._word or time >= self._again_at)
        if due:
            self._again_at = time + REQUEST_AGAIN
        self._word = word
        return due


class LandAir:
    """A vehicle that drives until a TAKEOFF and flies until it has landed.

    `mode` is DRIVE, TAKEOFF, FLIGHT or LAND. In the air it lands before an item that is to be
    driven; on the ground it takes off before an item that is to be flown.
    """

    problem = ""

    def __init__(
        self,
        position: Ned = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
        *,
        limits: MultirotorLimits | None = None,
        road_limits: GroundVehicleLimits | None = None,
        ground: Ground | None = None,
        airborne: bool = False,
    ) -> None:
        self._multirotor = Multirotor(position, yaw, limits=limits, ground=ground)
        self._car = GroundVehicle(position, yaw, limits=road_limits, ground=ground)
        self.mode: str | None = "FLIGHT" if airborne else "DRIVE"
        self._driven = not airborne

    @property
    def _active(self) -> Multirotor | GroundVehicle:
        """The car or the multirotor, by the mode."""
        return self._car if self.mode == "DRIVE" else self._multirotor

    @property
    def ground(self) -> Ground:
        """The ground below."""
        return self._multirotor.ground

    @ground.setter
    def ground(self, ground: Ground) -> None:
        self._multirotor.ground = self._car.ground = ground

    @property
    def position(self) -> Ned:
        """NED, m."""
        return self._active.position

    @property
    def lead(self) -> float:
        """Largest distance ahead of a vehicle that follows it, m."""
        return self._active.lead

    @property
    def velocity(self) -> Ned:
        """NED, m/s."""
        return self._active.velocity

    @property
    def euler(self) -> Ned:
        """Roll, pitch, yaw of the body (FRD in NED), rad."""
        return self._active.euler

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z, heading."""
        return self._active.pose

    def flown(self, item: MissionItem) -> MissionItem:
        """Return the item as the car or the multirotor can carry it out."""
        return (self._car if self._driven else self._multirotor).flown(item)

    def change_speed(self, kind: int, value: float) -> bool:
        """Change a speed (see Follower); a ground speed counts for the active vehicle alone."""
        return self._active.change_speed(kind, value)

    def look_at(self, target: Ned | None) -> bool:
        """Turn the nose to a place in the air (see Follower); a car heads where it goes."""
        return self._multirotor.look_at(target)

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """Begin another item; `driven` decides where the item leaves a choice."""
        self._driven = driven
        self._active.begin(item, previous, driven)

    def step(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Move for dt seconds."""
        if self.mode == "DRIVE":
            self._step_on_ground(item, previous, home, dt)
        else:
            self._step_in_air(item, previous, home, dt)

    def _step_on_ground(
        self, item: MissionItem, previous: MissionItem, home: Ned, dt: float
    ) -> None:
        """Drive; or stop and leave the ground, if the item is to be flown."""
        wants_up = item.mode is MissionMode.TAKEOFF or (
            not self._driven
            and item.mode in (MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.CUSTOM)
        )
        if not wants_up:
            self._car.step(item, previous, home, dt)
            return

        # stop first
        if self._car.speed > MAX_TAKEOFF_SPEED:
            self._car.step(
                MissionItem(MissionMode.HOLD, np.array(self.position)), previous, home, dt
            )
            return

        # leave the ground
        self._multirotor.position = self._car.position
        self._multirotor.velocity = (0.0, 0.0, 0.0)
        self._multirotor.euler = self._car.euler
        self.mode = "TAKEOFF" if item.mode is MissionMode.TAKEOFF else "FLIGHT"
        self._multirotor.begin(item, previous)
        self._multirotor.step(item, previous, home, dt)

    def _step_in_air(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Fly; and become a car at touchdown."""
        lands = item.mode in (MissionMode.LAND, MissionMode.RTL)
        flown = item

        # an item to be driven: land first, right here
        ways = (MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.CUSTOM)
        if self._driven and item.mode in ways:
            down = self.ground.down(*self.position[:2])
            if not np.isfinite(down):
                down = max(home[2], self.position[2])
            flown = MissionItem(MissionMode.LAND, np.array([*self.position[:2], down]))
            lands = True

        # one step, and the mode after it
        self._multirotor.step(flown, previous, home, dt)
        if lands:
            self.mode = "LAND" if flown.mode is MissionMode.LAND else "FLIGHT"
            if self._has_touched_down(flown, home):
                self._car.set_pose(self._multirotor.position, self._multirotor.euler[2])
                self._car.begin(item, previous)
                self.mode = "DRIVE"
        elif self.mode != "FLIGHT" and (
            item.mode is not MissionMode.TAKEOFF
            or float(np.linalg.norm(np.array(self.position) - item.position)) <= TAKEOFF_TOLERANCE
        ):
            self.mode = "FLIGHT"

    def _has_touched_down(self, flown: MissionItem, home: Ned) -> bool:
        """Return whether the vehicle rests on the ground, or on the landing's height."""
        down = home[2] if flown.mode is MissionMode.RTL else float(flown.position[2])
        floor = min(self.ground.down(*self.position[:2]), down)
        rests = abs(self._multirotor.velocity[2]) < 0.1
        return rests and self.position[2] >= floor - TOUCHDOWN_HEIGHT
