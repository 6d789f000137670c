# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kinematic ground vehicle on a mission. NED metres, radians, seconds.

A kinematic bicycle without side slip: the heading is the course, and the steering sets a curvature
of the way (Snider, Automatic Steering Methods for Autonomous Automobile Path Tracking,
CMU-RI-TR-09-08, section 2.1). Height and attitude are those of `wheels.wheel_contact`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from rfly_common.frames import up_to_down
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import SteeredVehicle, check_limits, clip
from rfly_missions.mission.items import MissionItem, MissionMode, Ned
from rfly_trajectory.motion.attitude import wheel_contact

TURN_MARGIN = 1.1
"""Share of the tightest turn within which a target is driven away from first."""
PASS_SPEED = 1.0
"""Speed, m/s, at a way-point: slow enough to stop there, or to turn."""
ARRIVED = 0.4
"""Distance from home, m, at which the vehicle stops."""


@dataclass(frozen=True)
class GroundVehicleLimits:
    """Limits of a ground vehicle."""

    speed: float = 6.0
    """Cruise speed, m/s."""
    max_speed: float = 20.0
    """Highest speed that a mission may set, m/s."""
    acceleration: float = 2.0
    """Acceleration and braking, m/s²."""
    lateral_acceleration: float = 3.0
    """Acceleration towards the centre of a turn, m/s²."""
    turn_radius: float = 5.0
    """Radius of the tightest turn, m."""
    wheelbase: float = 2.6
    """Distance between the axles, m."""
    track: float = 1.6
    """Distance between the wheels of an axle, m."""


class GroundVehicle(SteeredVehicle):
    """A car that drives along lines between way-points, around circles and home, and stops to hold.

    It stands still for take-offs and landings.
    """

    def __init__(
        self,
        position: Ned = (0.0, 0.0, 0.0),
        yaw: float = 0.0,
        *,
        limits: GroundVehicleLimits | None = None,
        ground: Ground | None = None,
    ) -> None:
        self.limits = limits or GroundVehicleLimits()
        check_limits(self.limits)
        super().__init__(position, yaw, 0.0, ground)
        self._curvature = 0.0
        self._slope = (0.0, 0.0)
        self._cruise = self.limits.speed
        self._fit_to_ground(0.0)

    def set_pose(self, position: Ned, yaw: float) -> None:
        """Stand still at a position (NED, m) and a yaw (rad)."""
        self.position = position
        self._course = yaw
        self._speed = 0.0
        self._sink = 0.0
        self._fit_to_ground(0.0)

    @property
    def speed(self) -> float:
        """Present speed, m/s."""
        return self._speed

    @property
    def lead(self) -> float:
        """Largest distance ahead of a vehicle that follows it, m."""
        return 1.5 * self.limits.speed

    @property
    def euler(self) -> Ned:
        """Roll, pitch, yaw (FRD in NED), rad: rising ground raises the nose, or the left side."""
        ahead, left = self._slope
        return math.atan2(left, math.hypot(1.0, ahead)), math.atan(ahead), self._course

    def flown(self, item: MissionItem) -> MissionItem:
        """Return the item with a circle no tighter than the turning circle."""
        min_radius = TURN_MARGIN * self.limits.turn_radius
        if item.mode is MissionMode.ORBIT and item.params[0] < min_radius:
            return replace(item, params=np.array([min_radius, *item.params[1:]]))
        return item

    def change_speed(self, kind: int, value: float) -> bool:
        """Change the speed (see Follower), within max_speed; there is no climb.

        -1 changes nothing, -2 restores the default.
        """
        if kind not in (0, 1) or not (value > 0.0 or value in (-1.0, -2.0)):
            return False
        if value != -1.0:
            self._cruise = self.limits.speed if value == -2.0 else min(value, self.limits.max_speed)
        return True

    def begin(self, item: MissionItem, previous: MissionItem, driven: bool = True) -> None:
        """Choose the direction of a circle that leaves it free: the one that needs less turning."""
        free = self._free_turn(item.position)
        self._turn = (float(item.params[1]) or free) if item.mode is MissionMode.ORBIT else free

    def step(self, item: MissionItem, previous: MissionItem, home: Ned, dt: float) -> None:
        """Move for dt seconds."""
        target: Ned = tuple(item.position.tolist())
        if item.mode is MissionMode.ORBIT:
            self._around(target, float(item.params[0]), dt)
        elif item.mode is MissionMode.WAYPOINT:
            course = self._line_course(tuple(previous.position.tolist()), target)
            self._drive(course, self._speed_before(target, PASS_SPEED), dt)
        elif item.mode is MissionMode.RTL:
            distance = math.hypot(home[0] - self.position[0], home[1] - self.position[1])
            speed = self._speed_before(home, 0.0) if distance > ARRIVED else 0.0
            self._drive(self._course_to(home), speed, dt)
        elif item.mode is MissionMode.CUSTOM:
            self._drive(self._course_to(target), self._speed_before(target, PASS_SPEED), dt)
        else:
            self._drive(self._course, 0.0, dt)

    def _speed_before(self, target: Ned, passed_at: float) -> float:
        """Return the speed from which it can brake until a place, at 70 % of its braking."""
        distance = math.hypot(target[0] - self.position[0], target[1] - self.position[1])
        square = max(passed_at, 0.2) ** 2 + 1.4 * self.limits.acceleration * distance
        return min(self._cruise, math.sqrt(square))

    def _course_to(self, target: Ned) -> float:
        """Return the course to a place; near it also where it lies within the turning circle."""
        distance = math.hypot(target[0] - self.position[0], target[1] - self.position[1])
        margin = math.inf if distance <= 2.0 * ARRIVED else ARRIVED
        return self._course_to_point(target, TURN_MARGIN * self.limits.turn_radius, margin)

    def _line_course(self, start: Ned, end: Ned) -> float:
        """Return the course back to the line, or near its end the course to the end.

        The angle to the line falls with the distance from it.
        """
        north = end[0] - start[0]
        east = end[1] - start[1]
        length = math.hypot(north, east)
        to_north = self.position[0] - start[0]
        to_east = self.position[1] - start[1]
        reach = 2.0 * self.limits.turn_radius
        if length < 1.0 or (to_north * north + to_east * east) / length > length - reach:
            return self._course_to(end)
        return self._course_on_line(start, math.atan2(east, north), reach)

    def _around(self, center: Ned, radius: float, dt: float) -> None:
        """Drive around a place, as fast as the lateral acceleration allows."""
        radius = max(radius, TURN_MARGIN * self.limits.turn_radius)
        course, curvature = self._course_around(center, radius)
        speed = min(self._cruise, math.sqrt(0.7 * self.limits.lateral_acceleration * radius))
        self._drive(course, speed, dt, curvature)

    def _drive(self, course: float, speed: float, dt: float, curvature: float = 0.0) -> None:
        """Steer toward a course and change speed, both within limits.

        The vehicle slows down before a large turn.
        """
        limits = self.limits
        old = self._speed

        # steering
        error = math.remainder(course - self._course, 2 * math.pi)
        tightest = min(1.0 / limits.turn_radius, limits.lateral_acceleration / max(old * old, 1e-6))
        self._curvature = clip(curvature + 2.0 * error / limits.turn_radius, -tightest, tightest)

        # speed
        if abs(error) > 0.3:
            speed = min(speed, math.sqrt(0.7 * limits.lateral_acceleration * limits.turn_radius))
        change = limits.acceleration * dt
        self._speed += clip(speed - old, -change, change)

        # along the chord of the turn
        distance = 0.5 * (old + self._speed) * dt
        turn = self._curvature * distance
        self._advance(distance, self._course + 0.5 * turn)
        self._course = math.remainder(self._course + turn, 2 * math.pi)
        self._fit_to_ground(self._curvature)

    def _fit_to_ground(self, curvature: float) -> None:
        """Place the vehicle on the wheels that reach the ground, with no wheel below it."""
        terrain = self.ground.terrain
        if terrain is None:
            return
        east = np.array([self.position[1]])
        north = np.array([self.position[0]])
        ahead_east = math.sin(self._course)
        ahead_north = math.cos(self._course)

        # a positive curvature turns clockwise, that of a path in ENU counter-clockwise
        point = np.array([[east[0], north[0], ahead_east, ahead_north, -curvature, 0.0]])
        contact = wheel_contact(
            terrain,
            np.array([self.limits.wheelbase]),
            np.array([self.limits.track]),
            point,
            np.array([self._speed]),
            np.array([self._slope]),
            np.asarray(terrain.altitude(east, north), dtype=float),
            terrain.gradient(east, north),
        )
        self._slope = float(contact.slope[0, 0]), float(contact.slope[0, 1])
        self._sink = float(up_to_down(contact.climb_rate[0]))
        self.position = (self.position[0], self.position[1], float(up_to_down(contact.altitude[0])))
