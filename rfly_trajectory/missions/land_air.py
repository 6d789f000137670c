"""Kinematic land-air vehicle: a car on the ground, a multirotor in the air. NED metres, radians, seconds."""

from __future__ import annotations

import numpy as np

from rfly_trajectory.missions.ground import Ground
from rfly_trajectory.missions.ground_vehicle import GroundVehicle, GroundVehicleLimits
from rfly_trajectory.missions.items import MissionItem, MissionMode
from rfly_trajectory.missions.multirotor import Multirotor, MultirotorLimits, Vector

STANDS_STILL = 0.3
"""m/s, slow enough to take off"""
TOUCHED = 0.02
"""m above the ground"""
IN_THE_AIR = 1.0
"""m from the take-off's target: FLIGHT"""
OVER_THE_PLACE = 1.0
"""m beside the touchdown point: the landing may begin"""


def mode_request(item: MissionItem, mode: str, position: Vector, driven: bool) -> str:
    """What to ask a land-air vehicle for: arm, takeoff, land, or "" for nothing.

    `item` as it is flown; the vehicle is at `position` [NED, m] in `mode`; `driven`: the way leads over the ground.
    """
    if item.mode in (MissionMode.HOLD, MissionMode.ARMED):
        return ""
    if item.mode is MissionMode.LAND or (item.mode is MissionMode.RTL and not driven):
        beside = float(np.hypot(*(np.array(position[:2]) - item.position[:2])))
        return "land" if mode in ("TAKEOFF", "FLIGHT") and beside <= OVER_THE_PLACE else ""
    if mode == "DISARMED":
        return "arm"
    return "takeoff" if mode == "DRIVE" and not driven else ""


class LandAir:
    """Drives until a TAKEOFF, flies until it has landed. `mode` is DRIVE, TAKEOFF, FLIGHT or LAND.

    What is to be driven and begins in the air is landed first; what is to be flown and begins on the ground lifts off.
    """

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
        self._air = Multirotor(position, yaw, limits=limits, ground=ground)
        self._road = GroundVehicle(position, yaw, limits=road_limits, ground=ground)
        self.mode: str | None = "FLIGHT" if airborne else "DRIVE"
        self._driven = not airborne
        self._begun = (MissionItem(MissionMode.HOLD, np.array(position)),) * 2

    @property
    def _now(self) -> Multirotor | GroundVehicle:
        return self._road if self.mode == "DRIVE" else self._air

    @property
    def ground(self) -> Ground:
        """What it drives and flies over."""
        return self._air.ground

    @ground.setter
    def ground(self, ground: Ground) -> None:
        self._air.ground = self._road.ground = ground

    @property
    def position(self) -> Vector:
        """NED, m."""
        return self._now.position

    @property
    def lead(self) -> float:
        """m that it may be ahead of a vehicle which follows it."""
        return self._now.lead

    @property
    def velocity(self) -> Vector:
        """NED m/s."""
        return self._now.velocity

    @property
    def euler(self) -> Vector:
        """Roll, pitch, yaw of the body (FRD) in NED."""
        return self._now.euler

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z, heading."""
        return self._now.pose

    def flown(self, item: MissionItem) -> MissionItem:
        """As the car or the multirotor can."""
        return (self._road if self._driven else self._air).flown(item)

    def change_speed(self, kind: int, value: float) -> bool:
        """See Follower; a ground speed counts for the vehicle as it is now."""
        return self._now.change_speed(kind, value)

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """`driven`: on the road, where the item leaves a choice."""
        self._driven = driven
        self._now.begin(item, previous, driven)
        self._begun = item, previous

    def step(self, item: MissionItem, previous: MissionItem, home: Vector, dt: float) -> None:
        """See Follower."""
        if self.mode == "DRIVE":
            self._on_the_road(item, previous, home, dt)
        else:
            self._in_the_air(item, previous, home, dt)

    def _on_the_road(self, item: MissionItem, previous: MissionItem, home: Vector, dt: float) -> None:
        wants_up = item.mode is MissionMode.TAKEOFF or (
            not self._driven and item.mode in (MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.CUSTOM)
        )
        if not wants_up:
            self._road.step(item, previous, home, dt)
            return
        if self._road.speed > STANDS_STILL:
            self._road.step(MissionItem(MissionMode.HOLD, np.array(self.position)), previous, home, dt)
            return
        self._air.position, self._air.velocity = self._road.position, (0.0, 0.0, 0.0)
        self._air.euler = self._road.euler
        self.mode = "TAKEOFF" if item.mode is MissionMode.TAKEOFF else "FLIGHT"
        self._air.begin(item, previous)
        self._air.step(item, previous, home, dt)

    def _in_the_air(self, item: MissionItem, previous: MissionItem, home: Vector, dt: float) -> None:
        lands = item.mode in (MissionMode.LAND, MissionMode.RTL)
        if self._driven and item.mode in (MissionMode.WAYPOINT, MissionMode.ORBIT, MissionMode.CUSTOM):
            below = self.ground.down(*self.position[:2])
            here = np.array([*self.position[:2], below if np.isfinite(below) else max(home[2], self.position[2])])
            item, lands = MissionItem(MissionMode.LAND, here), True
        self._air.step(item, previous, home, dt)
        if lands:
            self.mode = "LAND" if item.mode is MissionMode.LAND else "FLIGHT"
            place = home[2] if item.mode is MissionMode.RTL else float(item.position[2])
            floor = min(self.ground.down(*self.position[:2]), place)
            down = abs(self._air.velocity[2]) < 0.1 and self.position[2] >= floor - TOUCHED
            if down:
                self._drive_on()
        elif self.mode != "FLIGHT" and (
            item.mode is not MissionMode.TAKEOFF
            or float(np.linalg.norm(np.array(self.position) - item.position)) <= IN_THE_AIR
        ):
            self.mode = "FLIGHT"

    def _drive_on(self) -> None:
        self._road.place(self._air.position, self._air.euler[2])
        self.mode = "DRIVE"
        self._road.begin(*self._begun)
