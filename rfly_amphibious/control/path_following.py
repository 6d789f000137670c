"""Path following: pure pursuit on the ground (docs/model, section 10.2), a moving target in the
air.

Speeds fall before corners and ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.control.speed_controller import (
    SPEED_GAIN,
    curvature_to_steering,
    max_virtual_steering,
    steering_lever,
    understeer_gradient,
)
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

BRAKING = 0.8
SIDEWAYS = 2.0
"""m/s², before ends and corners, and in bends"""
SLOWEST = 0.3
"""m/s, until it is there"""
SPEED_LAG = 1.0 / SPEED_GAIN
"""s, by which a driven vehicle follows the speed that is wanted"""
PREVIEW_TIME = 0.8
SHORTEST_PREVIEW = 2.0
LONGEST_PREVIEW = 10.0
"""s of way; wheelbases: how far ahead the point lies that is steered to"""
FLIGHT_ACCELERATION = 0.8
CORNER_STEP = 1.0
"""m/s: change of velocity at a corner of the flight"""
CLIMBING = 2.0
SINKING = 1.5
LEFT_BEHIND = 5.0
"""m, at which the target waits for the vehicle"""
THERE = 0.7
AT_REST = 0.4
"""m, m/s at the end of a flight"""


class _Polyline:
    """A polyline: vertices (k, d) without repetitions, unit directions and lengths of its segments."""

    def __init__(self, points: Sequence[ArrayLike], speeds: Sequence[float]) -> None:
        kept = [np.asarray(points[0], float)]
        self.speeds = []
        for point, speed in zip(points[1:], speeds, strict=True):
            if np.linalg.norm(np.asarray(point, float) - kept[-1]) > 1e-3:
                kept.append(np.asarray(point, float))
                self.speeds.append(speed)
        self.vertices = np.array(kept)
        steps = np.diff(self.vertices, axis=0)
        self.lengths = np.linalg.norm(steps, axis=1)
        self.directions = steps / self.lengths[:, None]
        self.segment = 0
        self.last = len(self.lengths) - 1

    def turn(self, vertex: int) -> float:
        """rad between the segments that meet there."""
        cosine = float(self.directions[vertex - 1] @ self.directions[vertex])
        return math.acos(min(1.0, max(-1.0, cosine)))

    def slow_down(
        self, corners: list[float], before: Callable[[float, float], float]
    ) -> list[float]:
        """Speeds at the ends of the segments: those of `corners` (the last is 0), and low enough
        for what follows; `before(speed, left)` is the speed from which a vehicle slows down to one
        within so many metres.
        """
        for k in range(len(corners) - 2, -1, -1):
            corners[k] = min(corners[k], before(corners[k + 1], float(self.lengths[k + 1])))
        return corners


class DrivePathFollower:
    """Pure pursuit from where it stands through waypoints (x, y) to a stand at the last one,
    forwards or backwards.

    The axle that does not steer moves along the vehicle both ways: backwards it is the same pursuit
    by a vehicle that looks the other way, with the steering to the other side.
    """

    def __init__(
        self,
        start: ArrayLike,
        points: Sequence[ArrayLike],
        speeds: Sequence[float],
        params: VehicleParameters,
        backward: bool = False,
    ) -> None:
        self._sign = -1.0 if backward else 1.0
        self._path = path = _Polyline([start, *points], speeds)
        self._params = params
        self._lever = steering_lever(params)
        self._gradient = understeer_gradient(params)
        self._center = params.turn_x if params.steered in ("front", "rear") else 0.0
        self.stopping = path.last < 0
        """whether it is at the end and only has to stand still"""
        nearest = SHORTEST_PREVIEW * params.wheelbase
        corners = [
            math.sqrt(SIDEWAYS * nearest / max(math.tan(min(path.turn(k), 3.0) / 2.0), 1e-3))
            for k in range(1, path.last + 1)
        ]
        self._corners = path.slow_down([*corners, 0.0], _slowing)

    def missed_by(self, place: Floats) -> float:
        """m from the last waypoint."""
        return float(np.linalg.norm(place[:2] - self._path.vertices[-1]))

    def command(self, place: Floats, heading: float, speed: float) -> tuple[float, float]:
        """(speed m/s, steering rad) for a vehicle at place (2,), with its heading (rad) and speed,
        < 0 backwards.
        """
        if self.stopping:
            return 0.0, 0.0
        path = self._path
        p = self._params
        sign = self._sign
        speed *= sign
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
        preview = min(
            max(PREVIEW_TIME * speed, SHORTEST_PREVIEW * p.wheelbase), LONGEST_PREVIEW * p.wheelbase
        )
        cosine = sign * math.cos(heading)
        sine = sign * math.sin(heading)
        to = (
            self._ahead(max(along, 0.0) + preview)
            - place
            - sign * self._center * np.array((cosine, sine))
        )
        forward = cosine * to[0] + sine * to[1]
        left_of = cosine * to[1] - sine * to[0]
        distance = math.hypot(forward, left_of)
        if forward > 0.0:
            curvature = 2.0 * left_of / distance**2
            steering = curvature_to_steering(p, curvature, speed, self._gradient)
        else:  # behind: as sharp a turn as can be
            steering = math.copysign(max_virtual_steering(p), left_of)
            curvature = math.tan(steering) / self._lever
        most = min(
            _slowing(self._corners[k], max(left, 0.0)),
            path.speeds[k],
            math.sqrt(SIDEWAYS / max(abs(curvature), 1e-6)),
        )
        return sign * max(most, SLOWEST), sign * steering

    def _ahead(self, distance: float) -> Floats:
        """The point so far along the path from the present segment's beginning; straight on beyond
        the end.
        """
        path = self._path
        k = self._path.segment
        while k < path.last and distance > path.lengths[k]:
            distance -= float(path.lengths[k])
            k += 1
        return path.vertices[k] + distance * path.directions[k]


def _slowing(final: float, left: float) -> float:
    """m/s from which a vehicle that follows with SPEED_LAG comes down to `final` within `left`
    metres.
    """
    distance = left + final * SPEED_LAG + final**2 / (2.0 * BRAKING)
    return BRAKING * (math.sqrt(SPEED_LAG**2 + 2.0 * distance / BRAKING) - SPEED_LAG)


class FlightPathFollower:
    """A target that moves from a place through points (x, y, z) and stops at the last one."""

    def __init__(
        self, start: ArrayLike, speed: float, points: Sequence[ArrayLike], speeds: Sequence[float]
    ) -> None:
        self._path = path = _Polyline([start, *points], speeds)
        self._at = 0.0
        self._speed = speed
        self._limits = []
        for direction, wanted in zip(path.directions, path.speeds, strict=True):
            upright = CLIMBING if direction[2] > 0.0 else SINKING
            self._limits.append(min(wanted, upright / max(abs(float(direction[2])), 1e-9)))
        corners = [
            CORNER_STEP / max(2.0 * math.sin(path.turn(k) / 2.0), 1e-3)
            for k in range(1, path.last + 1)
        ]
        self._corners = path.slow_down([*corners, 0.0], self._most)

    def advance(self, place: Floats, dt: float) -> tuple[Floats, Floats]:
        """Target (3,) and its velocity (3,), dt later, for a vehicle at place (3,)."""
        path = self._path
        if path.last < 0:
            return path.vertices[0], np.zeros(3)
        k = path.segment
        target = path.vertices[k] + self._at * path.directions[k]
        if math.dist(target, place) > LEFT_BEHIND:
            self._speed = max(0.0, self._speed - FLIGHT_ACCELERATION * dt)
        else:
            left = float(path.lengths[k]) - self._at
            most = min(self._limits[k], self._most(self._corners[k], left))
            self._speed = min(most, self._speed + FLIGHT_ACCELERATION * dt)
        self._at += self._speed * dt
        while self._at >= path.lengths[k] - 1e-3:
            if k == path.last:
                self._at = float(path.lengths[k])
                self._speed = 0.0
                break
            self._at -= float(path.lengths[k])
            path.segment = k = k + 1
        return path.vertices[k] + self._at * path.directions[k], self._speed * path.directions[k]

    @staticmethod
    def _most(final: float, left: float) -> float:
        """m/s from which the target comes down to `final` within `left` metres."""
        return math.sqrt(final**2 + 2.0 * FLIGHT_ACCELERATION * left)

    def course(self) -> float | None:
        """rad, of the present segment; None where it is short or leads up or down."""
        path = self._path
        if path.last < 0:
            return None
        x, y, _ = path.directions[path.segment] * path.lengths[path.segment]
        return math.atan2(y, x) if math.hypot(x, y) > 3.0 else None

    @property
    def at_end(self) -> bool:
        """Whether the target is."""
        path = self._path
        return path.last < 0 or (path.segment == path.last and self._at >= float(path.lengths[-1]))

    def missed_by(self, place: Floats) -> float:
        """m from the end."""
        return math.dist(place, self._path.vertices[-1])

    def arrived(self, place: Floats, velocity: Floats) -> bool:
        """Whether target and vehicle are at the end and the vehicle hardly moves."""
        return (
            self.at_end
            and float(np.linalg.norm(velocity)) < AT_REST
            and self.missed_by(place) < THERE
        )


SMOOTHING = 0.2
"""s, of the velocity that is read off the poses"""
KEEPING_UP = 0.6
"""1/s: m/s for each metre by which it is farther behind than a preview"""
AT_TARGET = 0.1
STANDS = 0.05
"""m, m/s: beside a pose that stands"""
AWAY = 0.5
"""m, that a pose has to move before a vehicle that has come to it starts again"""


class PoseFollower:
    """The newest pose, with its velocity: given, or derived from the last poses."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._center = params.turn_x if params.steered in ("front", "rear") else 0.0
        self._place = np.zeros(2)
        self._velocity = np.zeros(2)
        self._time = math.nan
        self._arrived = False

    def set_pose(self, place: Floats, velocity: Floats | None, time: float) -> None:
        """Place (2,) m and velocity (2,) m/s, or None, at a time."""
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
        """(speed m/s, curvature 1/m) for a vehicle at place (2,), with its heading (rad) and speed,
        at a time.
        """
        p = self._params
        lead_speed = math.hypot(*self._velocity.tolist())
        target = self._place + self._velocity * min(max(now - self._time, 0.0), SMOOTHING)
        to_x, to_y = (target - place).tolist()
        distance = math.hypot(to_x, to_y)
        c = math.cos(heading)
        s = math.sin(heading)
        ahead = c * to_x + s * to_y
        near = abs(ahead) < AT_TARGET or (ahead < 0.0 and distance < SHORTEST_PREVIEW * p.wheelbase)
        if lead_speed < STANDS and near and distance < SHORTEST_PREVIEW * p.wheelbase:
            self._arrived = True
        elif lead_speed > STANDS or distance > SHORTEST_PREVIEW * p.wheelbase + AWAY:
            self._arrived = False
        if self._arrived:
            return 0.0, 0.0
        preview = min(
            max(PREVIEW_TIME * speed, SHORTEST_PREVIEW * p.wheelbase), LONGEST_PREVIEW * p.wheelbase
        )
        point = target
        if distance < preview and lead_speed > STANDS:  # it goes on that way
            point = target + self._velocity * ((preview - distance) / lead_speed)
        px, py = (point - place - self._center * np.array((c, s))).tolist()
        forward = c * px + s * py
        left = c * py - s * px
        if forward > 0.0:
            reach = max(math.hypot(forward, left), SHORTEST_PREVIEW * p.wheelbase)
            curvature = 2.0 * left / reach**2
        else:  # behind: as sharp a turn as can be
            curvature = math.copysign(math.tan(max_virtual_steering(p)) / steering_lever(p), left)
        going = max(0.0, float(self._velocity @ (c, s)))
        behind = max(ahead if forward > 0.0 else distance, 0.0)
        braking = BRAKING * (math.sqrt(SPEED_LAG**2 + 2.0 * behind / BRAKING) - SPEED_LAG)
        wanted = going + min(KEEPING_UP * (behind - PREVIEW_TIME * lead_speed), braking)
        wanted = min(wanted, math.sqrt(SIDEWAYS / max(abs(curvature), 1e-6)))
        return (
            max(wanted, SLOWEST if lead_speed < STANDS else 0.0) if behind > 0.0 else 0.0
        ), curvature
