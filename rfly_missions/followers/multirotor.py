# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinematic multirotor on a mission, and the base of all kinematic vehicles.

NED metres, radians, seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Protocol

from rfly_common.arrays import Floats
from rfly_common.config.checks import finite_number
from rfly_common.physics import GRAVITY
from rfly_missions.followers.ground import Ground
from rfly_missions.mission.items import MissionItem, MissionMode, Ned

CLEARANCE = 0.3
"""Height above the lowest height allowed, m, for the time in which a climb begins."""
STAYING = 1.0
"""Distance, m, within which a way-point begins where the vehicle is: the nose stays as it is."""
SAME_PLACE = 1e-3
"""Distance, m, below which an item lies where the one before has led to."""
RETURN_HEIGHT = 15.0
"""Least height of a return that has some way to go, m above home."""


class Follower(Protocol):
    """A vehicle that carries out one item at a time."""

    ground: Ground
    mode: str | None
    """DRIVE, TAKEOFF, FLIGHT or LAND of a land-air vehicle, None of any other."""
    problem: str
    """The reason why the current item can't be carried out; "" if it can."""

    @property
    def position(self) -> Ned:
        """NED, m."""

    @property
    def velocity(self) -> Ned:
        """NED, m/s."""

    @property
    def euler(self) -> Ned:
        """Roll, pitch, yaw of the body (FRD in NED), rad."""

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z and course angle, as the path manager takes them."""

    @property
    def lead(self) -> float:
        """Largest distance ahead of a vehicle that follows it, m."""

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """Begin another item; `driven`: on the road, for a vehicle that can do both."""

    def flown(self, item: MissionItem) -> MissionItem:
        """Return the item as this vehicle can carry it out."""

    def change_speed(self, kind: int, value: float) -> bool:
        """Change a speed as DO_CHANGE_SPEED does; return False for one that is not understood.

        Kind 0 air or 1 ground speed, 2 climb, 3 descent; m/s.
        """

    def look_at(self, target: Ned | None) -> bool:
        """Turn the nose to a place from now on (NED, m), None: along the way again.

        Return False for a vehicle that has to head where it goes.
        """

    def step(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Move for dt seconds."""


def check_limits(limits: object) -> None:
    """Raise ValueError for the first limit that is not positive and finite."""
    for field in fields(limits):  # type: ignore[arg-type]
        finite_number(field.name, getattr(limits, field.name), above=0.0, error=ValueError)


def clip(value: float, low: float, high: float) -> float:
    """Return `value` within its limits."""
    if value < low:
        return low
    return min(value, high)


class SteeredVehicle:
    """The common part of aircraft and cars: they move along their course and turn by steering."""

    mode: str | None = None
    problem = ""

    def __init__(self, position: Ned, yaw: float, speed: float, ground: Ground | None) -> None:
        self.position = position
        self.ground = ground or Ground()
        self._course = yaw
        self._speed = speed
        self._sink = 0.0
        self._turn = 1.0

    @property
    def velocity(self) -> Ned:
        """NED, m/s."""
        return (
            self._speed * math.cos(self._course),
            self._speed * math.sin(self._course),
            self._sink,
        )

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z, course."""
        return (*self.position, self._course)

    def look_at(self, target: Ned | None) -> bool:
        """Return False: it heads where it goes."""
        return False

    def _free_turn(self, center: Floats) -> float:
        """Return the direction of a circle around a place that needs less turning: 1 clockwise."""
        north = self.position[0] - float(center[0])
        east = self.position[1] - float(center[1])
        turn = north * math.sin(self._course) - east * math.cos(self._course)
        return -1.0 if turn < 0.0 else 1.0

    def _course_to_point(self, target: Ned, radius: float, margin: float = 0.0) -> float:
        """Return the course to a place, or straight on if it lies within a turning circle.

        `margin`: depth within the circle, m, that still counts as outside.
        """
        north = target[0] - self.position[0]
        east = target[1] - self.position[1]
        for side in (1.0, -1.0):
            center = -side * radius * math.sin(self._course), side * radius * math.cos(self._course)
            if math.hypot(north - center[0], east - center[1]) < radius - margin:
                return self._course
        return math.atan2(east, north)

    def _course_on_line(self, start: Ned, course: float, reach: float) -> float:
        """Return the course back to a line.

        Its angle to the line falls with the distance from it, and is 45° at `reach` metres.
        """
        north = self.position[0] - start[0]
        east = self.position[1] - start[1]
        return course - math.atan((math.cos(course) * east - math.sin(course) * north) / reach)

    def _course_around(self, center: Ned, radius: float) -> tuple[float, float]:
        """Return the course onto a circle and around it, and the curvature that holds it there.

        The curvature, 1/m, is 0 far from the circle.
        """
        north = self.position[0] - center[0]
        east = self.position[1] - center[1]
        distance = math.hypot(north, east)
        bearing = math.atan2(east, north) if distance > 1e-6 else self._course
        course = bearing + self._turn * (
            math.pi / 2 + math.atan(3.0 * (distance - radius) / radius)
        )
        is_near = abs(distance - radius) < 0.3 * radius
        return course, self._turn / max(distance, radius) if is_near else 0.0

    def _advance(self, distance: float, course: float) -> None:
        """Move a distance over the ground, m, at the present height."""
        north, east, down = self.position
        self.position = (
            north + distance * math.cos(course),
            east + distance * math.sin(course),
            down,
        )


@dataclass(frozen=True)
class MultirotorLimits:
    """Limits of a multirotor."""

    speed: float = 8.0
    """Cruise speed, m/s."""
    max_speed: float = 25.0
    """Highest speed that a mission may set, m/s."""
    climb: float = 4.0
    """Climb, m/s."""
    descent: float = 2.0
    """Descent, m/s."""
    acceleration: float = 4.0
    """Horizontal acceleration, m/s²."""
    vertical_acceleration: float = 3.0
    """Vertical acceleration, m/s²."""
    yaw_rate: float = 1.5
    """Yaw rate, rad/s."""


class Multirotor:
    """A multirotor that accelerates, climbs and turns within limits, and lands at a given place.

    It follows the straight line between way-points; before rising ground it slows down and climbs
    first.
    """

    mode: str | None = None
    problem = ""

    def __init__(
        self,
        position: Ned = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
        *,
        limits: MultirotorLimits | None = None,
        ground: Ground | None = None,
    ) -> None:
        self.limits = limits or MultirotorLimits()
        check_limits(self.limits)
        self.ground = ground or Ground()
        self.position = position
        self.velocity = (0.0, 0.0, 0.0)
        self.euler = (0.0, 0.0, yaw)
        self._speed = self.limits.speed
        self._climb = self.limits.climb
        self._descent = self.limits.descent
        self._turn = 1.0
        self._cruise_down = position[2]
        self._yaw = math.nan
        """Yaw that was requested for this place, rad; NaN: none."""
        self._kept_yaw = math.nan
        """Yaw with which it began to stay where it is, rad; NaN: it leaves."""
        self._target: Ned | None = None
        """Place to which the nose looks, NED, m."""

    @property
    def pose(self) -> tuple[float, float, float, float]:
        """x, y, z, heading."""
        return (*self.position, self.euler[2])

    @property
    def lead(self) -> float:
        """Largest distance ahead of a vehicle that follows it, m."""
        return 1.5 * self.limits.speed

    def flown(self, item: MissionItem) -> MissionItem:
        """Return the item: any can be flown as it is."""
        return item

    def change_speed(self, kind: int, value: float) -> bool:
        """Change a speed (see Follower), within max_speed.

        -1 changes nothing, -2 restores the default.
        """
        if kind not in (0, 1, 2, 3) or not (value > 0.0 or value in (-1.0, -2.0)):
            return False
        if value != -1.0:
            limits = self.limits
            default = (limits.speed, limits.speed, limits.climb, limits.descent)[kind]
            setpoint = default if value == -2.0 else min(value, limits.max_speed)

            if kind < 2:
                self._speed = setpoint
            elif kind == 2:
                self._climb = setpoint
            else:
                self._descent = setpoint
        return True

    def look_at(self, target: Ned | None) -> bool:
        """Turn the nose to a place from now on (NED, m), None: along the way again."""
        self._target = target
        return True

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = False) -> None:
        """Choose the direction of an orbit that leaves it free, and the height of a return.

        The yaw that was requested for a place counts until an item leads elsewhere.
        """
        north, east, down = self.position
        is_here = math.dist(item.position.tolist(), previous.position.tolist()) < SAME_PLACE
        if item.mode is not MissionMode.HOLD and not is_here:
            self._yaw = math.nan

        # braking, and the way back from beyond, do not turn a vehicle that is to stay
        stays = item.mode is MissionMode.HOLD
        if item.mode is MissionMode.WAYPOINT:
            stays = math.dist(self.position, item.position.tolist()) < STAYING
        self._kept_yaw = self.euler[2] if stays else math.nan

        if item.mode is MissionMode.ORBIT:
            to_north = north - float(item.position[0])
            to_east = east - float(item.position[1])
            turn = to_north * self.velocity[1] - to_east * self.velocity[0]
            self._turn = float(item.params[1]) or (-1.0 if turn < 0.0 else 1.0)

        self._cruise_down = down
        if item.mode is MissionMode.RTL:
            self._cruise_down = min(down, float(item.position[2]) - RETURN_HEIGHT)

    def step(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Move for dt seconds."""
        mode = item.mode
        target = tuple(item.position.tolist())
        yaw = math.nan

        if mode is MissionMode.ORBIT:
            setpoint = self._around(target, float(item.params[0]))
        elif mode in (MissionMode.LAND, MissionMode.RTL):
            setpoint = self._descend_at(home if mode is MissionMode.RTL else target)
        elif mode is MissionMode.TAKEOFF:
            setpoint = self._climb_to(target)
        elif mode is MissionMode.WAYPOINT:
            setpoint = self._along(tuple(previous.position.tolist()), target)
            if math.dist(self.position, target) <= 3.0 * max(float(item.params[1]), 1.0):
                yaw = float(item.params[0])
                if math.isnan(yaw):
                    yaw = self._yaw
                self._yaw = yaw
        else:
            setpoint = self._toward(target[0], target[1], target[2])
            yaw = self._yaw

        if math.isnan(yaw):
            yaw = self._kept_yaw
        if self._target is not None:
            yaw = math.atan2(self._target[1] - self.position[1], self._target[0] - self.position[0])
        self._move(setpoint, yaw, dt)

    def _toward(self, north: float, east: float, down: float, speed: float | None = None) -> Ned:
        """Return the velocity that goes to a point and stops there."""
        to_north = north - self.position[0]
        to_east = east - self.position[1]
        distance = math.hypot(to_north, to_east)
        speed = min(
            speed or self._speed,
            math.sqrt(1.4 * self.limits.acceleration * distance),
            1.5 * distance,
        )
        share = speed / distance if distance > 0.0 else 0.0
        return to_north * share, to_east * share, self._vertical(down)

    def _vertical(self, down: float) -> float:
        """Return the sink rate, m/s, that goes to a z and stops there."""
        error = down - self.position[2]
        speed = min(
            math.sqrt(1.4 * self.limits.vertical_acceleration * abs(error)), 1.5 * abs(error)
        )
        return clip(math.copysign(speed, error), -self._climb, self._descent)

    def _over_ground(self, setpoint: Ned) -> Ned:
        """Return a velocity that climbs before rising ground, and waits for the height.

        The ground is checked over the way that braking takes.
        """
        speed = math.hypot(setpoint[0], setpoint[1])
        if self.ground.terrain is None or speed < 1e-6:
            return setpoint

        # the way of the set-point, and that of the present velocity until it has turned
        allowed = math.inf
        for north, east, _ in (setpoint, self.velocity):
            speed = math.hypot(north, east)
            distance = speed * speed / (2.0 * self.limits.acceleration) + 2.0 * speed
            course = math.atan2(east, north)
            allowed = min(
                allowed,
                self.ground.clear_ahead(self.position[0], self.position[1], course, distance),
            )
        allowed -= CLEARANCE

        low = self.position[2] - allowed
        if low <= 0.0:
            return setpoint[0], setpoint[1], min(setpoint[2], max(0.0, self._vertical(allowed)))

        # too low: slow down, climb
        share = clip(1.0 - low / 2.0, 0.0, 1.0)
        return (
            setpoint[0] * share,
            setpoint[1] * share,
            min(setpoint[2], self._vertical(allowed - 0.5)),
        )

    def _along(self, start: Ned, end: Ned) -> Ned:
        """Return the velocity along a line, height included, or back to the line."""
        north = end[0] - start[0]
        east = end[1] - start[1]
        length = math.hypot(north, east)
        if length < 1e-6:
            return self._over_ground(self._toward(*end))
        north = north / length
        east = east / length

        # the place and the height ahead on the line
        done = (self.position[0] - start[0]) * north + (self.position[1] - start[1]) * east
        ahead = clip(done + 1.5 * self._speed, 0.0, length)
        down = start[2] + (end[2] - start[2]) * clip(done + 0.5 * self._speed, 0.0, length) / length

        # brake before the end
        remaining = math.hypot(end[0] - self.position[0], end[1] - self.position[1])
        target_velocity = self._toward(start[0] + ahead * north, start[1] + ahead * east, down)
        speed = math.hypot(target_velocity[0], target_velocity[1])
        brake = min(
            self._speed, math.sqrt(1.4 * self.limits.acceleration * remaining), 1.5 * remaining
        )
        share = brake / speed if speed > 0.0 else 0.0
        return self._over_ground(
            (target_velocity[0] * share, target_velocity[1] * share, target_velocity[2])
        )

    def _climb_to(self, target: Ned) -> Ned:
        """Return the velocity of a climb, straight up first."""
        if self.position[2] - target[2] > 1.0:
            return 0.0, 0.0, self._vertical(target[2])
        return self._over_ground(self._toward(*target))

    def _descend_at(self, point: Ned) -> Ned:
        """Return the velocity to a place at the present or the return's height, and then down."""
        distance = math.hypot(point[0] - self.position[0], point[1] - self.position[1])
        if distance > 0.6:
            if self.position[2] - self._cruise_down > 1.0 and distance > 2.0:
                return 0.0, 0.0, self._vertical(self._cruise_down)
            down = min(self._cruise_down, self.position[2] + 0.5)
            return self._over_ground(self._toward(point[0], point[1], down))

        # slowly at the end
        north, east, down = self._toward(*point)
        return north, east, min(down, 0.7) if point[2] - self.position[2] < 4.0 else down

    def _around(self, center: Ned, radius: float) -> Ned:
        """Return the velocity onto a circle and around it, as fast as the acceleration allows."""
        north = self.position[0] - center[0]
        east = self.position[1] - center[1]
        distance = math.hypot(north, east)
        speed = min(self._speed, math.sqrt(0.7 * self.limits.acceleration * max(radius, 0.1)))

        # unit vector from the centre; any direction in the centre itself
        if distance < 1e-6:
            north = 1.0
            east = 0.0
            distance = 1.0
        north = north / distance
        east = east / distance

        # back to the circle first, the rest of the speed along it
        inward = clip(distance - radius, -speed, speed)
        along = self._turn * math.sqrt(max(0.0, speed * speed - inward * inward))
        setpoint = (
            -inward * north - along * east,
            -inward * east + along * north,
            self._vertical(center[2]),
        )
        return self._over_ground(setpoint)

    def _move(self, setpoint: Ned, yaw: float, dt: float) -> None:
        """Move and turn for dt seconds; the velocity goes to the set-point within limits."""
        limits = self.limits
        old = self.velocity

        # the largest change of velocity
        by_north = setpoint[0] - old[0]
        by_east = setpoint[1] - old[1]
        change = math.hypot(by_north, by_east)
        share = min(1.0, limits.acceleration * dt / change) if change > 0.0 else 0.0
        by_down = clip(
            setpoint[2] - old[2],
            -limits.vertical_acceleration * dt,
            limits.vertical_acceleration * dt,
        )
        new = (old[0] + by_north * share, old[1] + by_east * share, old[2] + by_down)

        # trapezoidal rule
        north = self.position[0] + 0.5 * (old[0] + new[0]) * dt
        east = self.position[1] + 0.5 * (old[1] + new[1]) * dt
        down = self.position[2] + 0.5 * (old[2] + new[2]) * dt

        # no deeper than the ground
        floor = self.ground.down(north, east)
        if down >= floor:
            down = floor
            new = (new[0], new[1], min(0.0, new[2]))

        self.position = (north, east, down)
        self.velocity = new
        acceleration = ((new[0] - old[0]) / dt, (new[1] - old[1]) / dt, by_down / dt)
        self._turn_to(yaw, acceleration, dt)

    def _turn_to(self, yaw: float, acceleration: Ned, dt: float) -> None:
        """Turn to a yaw, NaN: along the way; roll and pitch follow from the acceleration."""
        now = self.euler[2]
        if math.isnan(yaw):
            speed = math.hypot(self.velocity[0], self.velocity[1])
            yaw = math.atan2(self.velocity[1], self.velocity[0]) if speed > 0.5 else now
        turn = clip(
            math.remainder(yaw - now, 2 * math.pi),
            -self.limits.yaw_rate * dt,
            self.limits.yaw_rate * dt,
        )
        now = math.remainder(now + turn, 2 * math.pi)

        # roll and pitch
        forward = math.cos(now) * acceleration[0] + math.sin(now) * acceleration[1]
        right = math.cos(now) * acceleration[1] - math.sin(now) * acceleration[0]
        lift = GRAVITY - acceleration[2]
        self.euler = (math.atan2(right, math.hypot(forward, lift)), math.atan2(-forward, lift), now)
