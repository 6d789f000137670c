"""Kinematic land-air vehicle: a car on the ground, a multirotor in the air. NED metres, radians,
seconds.
"""

from __future__ import annotations

import numpy as np

from rfly_missions.followers.ground import Ground
from rfly_missions.followers.ground_vehicle import GroundVehicle, GroundVehicleLimits
from rfly_missions.followers.multirotor import Multirotor, MultirotorLimits, Vector
from rfly_missions.mission.items import MissionItem, MissionMode

MAX_TAKEOFF_SPEED = 0.3
"""m/s, slow enough to take off"""
TOUCHDOWN_HEIGHT = 0.02
"""m above the ground"""
TAKEOFF_TOLERANCE = 1.0
"""m from the take-off's target: FLIGHT"""
LANDING_RADIUS = 1.0
"""m from the touchdown point, seen from above, within which a landing may begin"""


def mode_request(item: MissionItem, mode: str, position: Vector, driven: bool) -> str:
    """What to ask a land-air vehicle for: arm, takeoff, land, or "" for nothing.

    `item` as it is flown; the vehicle is at `position` [NED, m] in `mode`; `driven`: it shall go
    there on wheels.
    """
    if item.mode in (MissionMode.HOLD, MissionMode.ARMED):
        return ""
    if item.mode is MissionMode.LAND or (item.mode is MissionMode.RTL and not driven):
        distance = float(np.hypot(*(np.array(position[:2]) - item.position[:2])))
        return "land" if mode in ("TAKEOFF", "FLIGHT") and distance <= LANDING_RADIUS else ""
    if mode == "DISARMED":
        return "arm"
    return "takeoff" if mode == "DRIVE" and not driven else ""


class LandAir:
    """Drives until a TAKEOFF, flies until it has landed. `mode` is DRIVE, TAKEOFF, FLIGHT or LAND.

    What is to be driven and begins in the air is landed first; what is to be flown and begins on
    the ground lifts off.
    """

    problem = ""

    def __init__(
        self,
        position: Vector = (0.0, 0.0, 0.0),
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
        return self._car if self.mode == "DRIVE" else self._multirotor

    @property
    def ground(self) -> Ground:
        """What it drives and flies over."""
        return self._multirotor.ground

    @ground.setter
    def ground(self, ground: Ground) -> None:
        self._multirotor.ground = self._car.ground = ground

    @property
    def position(self) -> Vector:
        """NED, m."""
        return self._active.position

    @property
    def lead(self) -> float:
        """m that it may be ahead of a vehicle which follows it."""
        return self._active.lead

    @property
    def velocity(self) -> Vector:
        """NED m/s."""
        return self._active.velocity

    @property
    def euler(self) -> Vector:
        """Roll, pitch, yaw of the body (FRD) in NED."""
        return self._active.euler

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z, heading."""
        return self._active.pose

    def flown(self, item: MissionItem) -> MissionItem:
        """As the car or the multirotor can."""
        return (self._car if self._driven else self._multirotor).flown(item)

    def change_speed(self, kind: int, value: float) -> bool:
        """See Follower; a ground speed counts for the vehicle as it is now."""
        return self._active.change_speed(kind, value)

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """`driven`: on the road, where the item leaves a choice."""
        self._driven = driven
        self._active.begin(item, previous, driven)

    def step(self, item: MissionItem, previous: MissionItem, home: Vector, dt: float) -> None:
        """See Follower."""
        if self.mode == "DRIVE":
            self._step_on_ground(item, previous, home, dt)
        else:
            self._step_in_air(item, previous, home, dt)

    def _step_on_ground(
        self, item: MissionItem, previous: MissionItem, home: Vector, dt: float
    ) -> None:
        wants_up = item.mode is MissionMode.TAKEOFF or (
            not self._driven
            and item.mode in (MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.CUSTOM)
        )
        if not wants_up:
            self._car.step(item, previous, home, dt)
            return
        if self._car.speed > MAX_TAKEOFF_SPEED:
            self._car.step(
                MissionItem(MissionMode.HOLD, np.array(self.position)), previous, home, dt
            )
            return
        self._multirotor.position = self._car.position
        self._multirotor.velocity = (0.0, 0.0, 0.0)
        self._multirotor.euler = self._car.euler
        self.mode = "TAKEOFF" if item.mode is MissionMode.TAKEOFF else "FLIGHT"
        self._multirotor.begin(item, previous)
        self._multirotor.step(item, previous, home, dt)

    def _step_in_air(
        self, item: MissionItem, previous: MissionItem, home: Vector, dt: float
    ) -> None:
        flown = item
        lands = item.mode in (MissionMode.LAND, MissionMode.RTL)
        if self._driven and item.mode in (
            MissionMode.WAYPOINT,
            MissionMode.ORBIT,
            MissionMode.CUSTOM,
        ):
            below = self.ground.down(*self.position[:2])
            here = np.array(
                [
                    *self.position[:2],
                    below if np.isfinite(below) else max(home[2], self.position[2]),
                ]
            )
            flown = MissionItem(MissionMode.LAND, here)
            lands = True
        self._multirotor.step(flown, previous, home, dt)
        if lands:
            self.mode = "LAND" if flown.mode is MissionMode.LAND else "FLIGHT"
            touchdown_down = home[2] if flown.mode is MissionMode.RTL else float(flown.position[2])
            floor = min(self.ground.down(*self.position[:2]), touchdown_down)
            if (
                abs(self._multirotor.velocity[2]) < 0.1
                and self.position[2] >= floor - TOUCHDOWN_HEIGHT
            ):
                self._car.set_pose(self._multirotor.position, self._multirotor.euler[2])
                self._car.begin(item, previous)
                self.mode = "DRIVE"
        elif self.mode != "FLIGHT" and (
            item.mode is not MissionMode.TAKEOFF
            or float(np.linalg.norm(np.array(self.position) - item.position)) <= TAKEOFF_TOLERANCE
        ):
            self.mode = "FLIGHT"
