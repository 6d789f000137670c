# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Path following: pure pursuit on the ground, a moving target in the air.

The speed falls before corners and ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.drive_laws import SPEED_GAIN
from rfly_autonomy.control.speed_controller import max_virtual_steering, steering_lever
from rfly_autonomy.control.steady_turn import steady_turn
from rfly_common.arrays import Floats

BRAKING = 0.8
"""Deceleration before ends and corners, m/s²."""

SIDEWAYS = 2.0
"""Acceleration to the side in bends, m/s²."""

SLOWEST = 0.3
"""Least speed until the vehicle has arrived, m/s."""

SPEED_LAG = 1.0 / SPEED_GAIN
"""Lag of a driven vehicle behind the wanted speed, s."""

PREVIEW_TIME = 0.8
"""Time to the point that the vehicle steers to, s."""

SHORTEST_PREVIEW = 2.0
"""Least distance of that point, in wheelbases."""

LONGEST_PREVIEW = 10.0
"""Largest distance of that point, in wheelbases."""

FLIGHT_ACCELERATION = 0.8
"""Acceleration of the target in the air, m/s²."""

CORNER_STEP = 1.0
"""Change of velocity at a corner of the flight, m/s."""

CLIMBING = 2.0
"""Largest speed upwards, m/s."""

SINKING = 1.5
"""Largest speed downwards, m/s."""

RISEN = 1.0
"""Height at which a flight along its path begins, m."""

ARRIVING = 0.5
"""Time from the end of a flight's path until the descent is under way, s."""

LEFT_BEHIND = 5.0
"""Distance at which the target waits for the vehicle, m."""

THERE = 0.7
"""Distance from the end of a flight below which the vehicle has arrived, m."""

AT_REST = 0.4
"""Speed at the end of a flight below which the vehicle has arrived, m/s."""


class _Polyline:
    """Polyline without repeated vertices, and the speed wanted on each segment."""

    def __init__(self, points: Sequence[ArrayLike], speeds: Sequence[float]) -> None:
        vertices = [np.asarray(points[0], float)]
        self.speeds = []
        """Wanted speeds of the segments, m/s."""

        for point, speed in zip(points[1:], speeds, strict=True):
            if np.linalg.norm(np.asarray(point, float) - vertices[-1]) > 1e-3:
                vertices.append(np.asarray(point, float))
                self.speeds.append(speed)

        self.vertices = np.array(vertices)
        """Vertices, (k, d), m."""

        steps = np.diff(self.vertices, axis=0)
        self.lengths = np.linalg.norm(steps, axis=1)
        """Lengths of the segments, (k - 1,), m."""

        self.directions = steps / self.lengths[:, None]
        """Unit directions of the segments, (k - 1, d)."""

        self.segment = 0
        """Index of the present segment."""

        self.last = len(self.lengths) - 1
        """Index of the last segment; -1 if there is none."""

    def turn(self, vertex: int) -> float:
        """Return the angle between the segments that meet at a vertex, rad."""
        cosine = float(self.directions[vertex - 1] @ self.directions[vertex])
        return math.acos(min(1.0, max(-1.0, cosine)))

    def slow_down(
        self, corners: list[float], before: Callable[[float, float], float]
    ) -> list[float]:
        """Return the speeds at the ends of the segments.

        They are those of `corners`, lowered for what follows. The last corner is 0. `before(speed,
        left)` returns the speed from which a vehicle slows down to `speed` within `left` metres.
        """
        for k in range(len(corners) - 2, -1, -1):
            corners[k] = min(corners[k], before(corners[k + 1], float(self.lengths[k + 1])))
        return corners


class DrivePathFollower:
    """Pure pursuit through waypoints (x, y) to a stand at the last one, forwards or backwards.

    The axle that does not steer moves along the vehicle both ways. Backwards it is the same pursuit
    by a vehicle that looks the other way, with the steering to the other side. First waypoints that
    a vehicle has just passed, as after a landing a little beyond them, are left out.
    """

    def __init__(
        self,
        start: ArrayLike,
        points: Sequence[ArrayLike],
        speeds: Sequence[float],
        params: VehicleParameters,
        backward: bool = False,
    ) -> None:
        nearest = SHORTEST_PREVIEW * params.wheelbase
        passed = _passed(np.asarray(start, float), np.asarray(points, float), nearest)

        self._sign = -1.0 if backward else 1.0
        self._path = _Polyline([start, *points[passed:]], speeds[passed:])
        self._params = params
        self._turn = steady_turn(params)
        self._center = _unsteered_axle(params)

        path = self._path
        self.stopping = path.last < 0
        """True if the vehicle is at the end and only has to stand still."""

        corners = [
            math.sqrt(SIDEWAYS * nearest / max(math.tan(min(path.turn(k), 3.0) / 2.0), 1e-3))
            for k in range(1, path.last + 1)
        ]
        self._corners = path.slow_down([*corners, 0.0], _slowing)

    def rest(self) -> tuple[list[Floats], list[float]]:
        """Return the way-points ahead, (2,) each, m, and the speed to each, m/s."""
        path = self._path
        return list(path.vertices[path.segment + 1 :]), list(path.speeds[path.segment :])

    @property
    def on_last_segment(self) -> bool:
        """True on the way from the last but one waypoint."""
        return self._path.segment == self._path.last

    def missed_by(self, place: Floats) -> float:
        """Return the distance from the last waypoint, m."""
        return float(np.linalg.norm(place[:2] - self._path.vertices[-1]))

    def command(self, place: Floats, heading: float, speed: float) -> tuple[float, float]:
        """Return speed (m/s) and steering (rad) for a vehicle at `place`, (2,).

        `heading`: rad; `speed`: m/s, below 0 backwards.
        """
        if self.stopping:
            return 0.0, 0.0

        path = self._path
        p = self._params
        sign = self._sign
        speed *= sign

        # the present segment
        while True:
            k = path.segment
            along = float((place - path.vertices[k]) @ path.directions[k])
            left = float(path.lengths[k]) - along
            if k == path.last or left > 0.0:
                break
            path.segment += 1

        if k == path.last and left < max(speed, 0.0) * SPEED_LAG and speed < 2.0 * SLOWEST:
            self.stopping = True
            return 0.0, 0.0

        # the point to steer to, in axes of the vehicle
        cosine = sign * math.cos(heading)
        sine = sign * math.sin(heading)
        point = self._point_at(max(along, 0.0) + _preview_distance(p, speed))
        to = point - place - sign * self._center * np.array((cosine, sine))
        forward = cosine * to[0] + sine * to[1]
        left_of = cosine * to[1] - sine * to[0]
        distance = math.hypot(forward, left_of)

        if forward > 0.0:
            curvature = 2.0 * left_of / distance**2
            steering = self._turn.steering(curvature, speed)
        else:  # the point lies behind: turn as sharply as possible
            steering = math.copysign(max_virtual_steering(p), left_of)
            curvature = math.tan(steering) / self._turn.lever

        most = min(
            _slowing(self._corners[k], max(left, 0.0)),
            path.speeds[k],
            math.sqrt(SIDEWAYS / max(abs(curvature), 1e-6)),
        )
        return sign * max(most, SLOWEST), sign * steering

    def _point_at(self, distance: float) -> Floats:
        """Return the point at a distance (m) along the path from the present segment's begin.

        Beyond the end it lies straight on.
        """
        path = self._path
        k = self._path.segment
        while k < path.last and distance > path.lengths[k]:
            distance -= float(path.lengths[k])
            k += 1
        return path.vertices[k] + distance * path.directions[k]


def _passed(start: Floats, points: Floats, nearest: float) -> int:
    """Return how many of the first waypoints (n, 2) a vehicle at `start` (2,) has just passed.

    They are nearer than `nearest`, and it is beside the way from them to the next one: to turn back
    to a point within its turning circle, a vehicle would circle about it for ever.
    """
    back = start - points[:-1]
    beyond = np.einsum("ij,ij->i", back, np.diff(points, axis=0)) > 0.0
    passed = beyond & (np.linalg.norm(back, axis=1) < nearest)
    return int(np.argmin(np.append(passed, False)))


def _slowing(final: float, left: float) -> float:
    """Return the speed from which a driven vehicle comes down to `final` within `left`, m.

    The vehicle follows with SPEED_LAG.
    """
    distance = left + final * SPEED_LAG + final**2 / (2.0 * BRAKING)
    return BRAKING * (math.sqrt(SPEED_LAG**2 + 2.0 * distance / BRAKING) - SPEED_LAG)


class FlightPathFollower:
    """Target that moves from a place through points (x, y, z) and stops at the last one.

    It begins with a `speed`, and comes to the last point with an `end_speed`, m/s.
    """

    def __init__(
        self,
        start: ArrayLike,
        speed: float,
        points: Sequence[ArrayLike],
        speeds: Sequence[float],
        end_speed: float = 0.0,
    ) -> None:
        path = _Polyline([start, *points], speeds)
        self._path = path
        self._along = 0.0
        """Way along the present segment, m."""

        self._speed = speed
        self._limits = []
        for direction, wanted in zip(path.directions, path.speeds, strict=True):
            upright = CLIMBING if direction[2] > 0.0 else SINKING
            self._limits.append(min(wanted, upright / max(abs(float(direction[2])), 1e-9)))

        corners = [
            CORNER_STEP / max(2.0 * math.sin(path.turn(k) / 2.0), 1e-3)
            for k in range(1, path.last + 1)
        ]
        self._corners = path.slow_down([*corners, end_speed], self._most)

    def advance(
        self, place: Floats, dt: float, max_speed: float = math.inf
    ) -> tuple[Floats, Floats]:
        """Return target and velocity, (3,) each, dt later, for a vehicle at `place`, (3,).

        The target is no faster than `max_speed`, m/s.
        """
        path = self._path
        if path.last < 0:
            return path.vertices[0], np.zeros(3)

        # slow down before corners, and wait for the vehicle
        k = path.segment
        target = path.vertices[k] + self._along * path.directions[k]
        if math.dist(target, place) > LEFT_BEHIND:
            self._speed = max(0.0, self._speed - FLIGHT_ACCELERATION * dt)
        else:
            left = float(path.lengths[k]) - self._along
            most = min(self._limits[k], self._most(self._corners[k], left))
            self._speed = min(most, max_speed, self._speed + FLIGHT_ACCELERATION * dt)

        # move on
        self._along += self._speed * dt
        while self._along >= path.lengths[k] - 1e-3:
            if k == path.last:
                self._along = float(path.lengths[k])
                self._speed = 0.0
                break
            self._along -= float(path.lengths[k])
            path.segment = k = k + 1

        return path.vertices[k] + self._along * path.directions[k], self._speed * path.directions[k]

    @staticmethod
    def _most(final: float, left: float) -> float:
        """Return the speed, m/s, from which the target comes down to `final` within a way, m."""
        return math.sqrt(final**2 + 2.0 * FLIGHT_ACCELERATION * left)

    def course(self) -> float | None:
        """Return the course of the present segment, rad; None if it is short or steep."""
        path = self._path
        if path.last < 0:
            return None
        x, y, _ = path.directions[path.segment] * path.lengths[path.segment]
        return math.atan2(y, x) if math.hypot(x, y) > 3.0 else None

    @property
    def at_end(self) -> bool:
        """True if the target is at the end."""
        path = self._path
        return path.last < 0 or (
            path.segment == path.last and self._along >= float(path.lengths[-1])
        )

    def time_left(self) -> float:
        """Return the time to the end at the speeds of the segments, s."""
        k = self._path.segment
        lengths = self._path.lengths[k:].tolist()
        if lengths:
            lengths[0] -= self._along
        return sum(way / limit for way, limit in zip(lengths, self._limits[k:], strict=True))

    def missed_by(self, place: Floats) -> float:
        """Return the distance from the end, m."""
        return math.dist(place, self._path.vertices[-1])

    def arrived(self, place: Floats, velocity: Floats) -> bool:
        """Return whether the target is at the end, and the vehicle there and hardly moving."""
        return (
            self.at_end
            and float(np.linalg.norm(velocity)) < AT_REST
            and self.missed_by(place) < THERE
        )


SMOOTHING = 0.2
"""Time constant of the velocity that is derived from the poses, s."""

KEEPING_UP = 0.6
"""Speed for each metre of distance beyond a preview, 1/s."""

AT_TARGET = 0.1
"""Distance of a standing pose at which the vehicle has arrived, m."""

STANDS = 0.05
"""Speed below which a pose stands, m/s."""

AWAY = 0.5
"""Distance that a pose moves away before a vehicle that has arrived starts again, m."""


class PoseFollower:
    """Follower of the newest pose, with its own velocity or one derived from the last poses."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._center = _unsteered_axle(params)

        self._place = np.zeros(2)
        self._velocity = np.zeros(2)
        self._time = math.nan
        self._arrived = False

    def set_pose(self, place: Floats, velocity: Floats | None, time: float) -> None:
        """Take a pose: place (2,), m, velocity (2,), m/s, or None, and time, s."""
        if velocity is not None:
            self._velocity = velocity
        elif not math.isnan(self._time) and time > self._time:
            dt = time - self._time
            moved = (place - self._place) / dt
            self._velocity = self._velocity + (1.0 - math.exp(-dt / SMOOTHING)) * (
                moved - self._velocity
            )
        elif time == self._time:
            return
        self._place = place
        self._time = time

    def command(
        self, place: Floats, heading: float, speed: float, now: float
    ) -> tuple[float, float]:
        """Return speed (m/s) and curvature (1/m) for a vehicle at `place`, (2,).

        `heading`: rad; `speed`: m/s; `now`: s.
        """
        p = self._params
        nearest = SHORTEST_PREVIEW * p.wheelbase

        # where the pose is now, in axes of the vehicle
        lead_speed = math.hypot(*self._velocity.tolist())
        target = self._place + self._velocity * min(max(now - self._time, 0.0), SMOOTHING)
        to_x, to_y = (target - place).tolist()
        distance = math.hypot(to_x, to_y)
        cosine = math.cos(heading)
        sine = math.sin(heading)
        ahead = cosine * to_x + sine * to_y

        # stand next to a pose that stands
        near = abs(ahead) < AT_TARGET or (ahead < 0.0 and distance < nearest)
        if lead_speed < STANDS and near and distance < nearest:
            self._arrived = True
        elif lead_speed > STANDS or distance > nearest + AWAY:
            self._arrived = False
        if self._arrived:
            return 0.0, 0.0

        # the point to steer to: beyond a pose that is near and moves on
        preview = _preview_distance(p, speed)
        point = target
        if distance < preview and lead_speed > STANDS:
            point = target + self._velocity * ((preview - distance) / lead_speed)
        px, py = (point - place - self._center * np.array((cosine, sine))).tolist()
        forward = cosine * px + sine * py
        left = cosine * py - sine * px

        if forward > 0.0:
            reach = max(math.hypot(forward, left), nearest)
            curvature = 2.0 * left / reach**2
        else:  # the point lies behind: turn as sharply as possible
            curvature = math.copysign(math.tan(max_virtual_steering(p)) / steering_lever(p), left)

        behind = max(ahead if forward > 0.0 else distance, 0.0)
        if behind == 0.0:
            return 0.0, curvature

        # keep up, and slow down before a pose that stands
        going = max(0.0, float(self._velocity @ (cosine, sine)))
        closing = KEEPING_UP * (behind - PREVIEW_TIME * lead_speed)
        wanted = going + min(closing, _slowing(0.0, behind))
        wanted = min(wanted, math.sqrt(SIDEWAYS / max(abs(curvature), 1e-6)))
        return max(wanted, SLOWEST if lead_speed < STANDS else 0.0), curvature


def _preview_distance(p: VehicleParameters, speed: float) -> float:
    """Return the distance of the point to steer to, m, at a speed."""
    nearest = SHORTEST_PREVIEW * p.wheelbase
    return min(max(PREVIEW_TIME * speed, nearest), LONGEST_PREVIEW * p.wheelbase)


def _unsteered_axle(p: VehicleParameters) -> float:
    """Return the place of the axle that does not steer, m ahead of the body's origin."""
    return p.turn_x if p.steered in ("front", "rear") else 0.0
