"""Pursuit of a moving pose by a driven vehicle, after an estimate of the pose's velocity."""

from __future__ import annotations

import math

import numpy as np

from rfly_amphibious.control.path_following import (
    BRAKING,
    LONGEST_PREVIEW,
    PREVIEW_TIME,
    SHORTEST_PREVIEW,
    SIDEWAYS,
    SLOWEST,
    SPEED_LAG,
)
from rfly_amphibious.control.speed_controller import max_virtual_steering, steering_lever
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

SMOOTHING = 0.2
"""s, of the velocity that is read off the poses"""
KEEPING_UP = 0.6
"""1/s: m/s for each metre by which it is farther behind than a preview"""
THERE, STANDS = 0.1, 0.05
"""m, m/s: beside a pose that stands"""
AWAY = 0.5
"""m, that a pose has to move before a vehicle that has come to it starts again"""


class PoseFollower:
    """The newest pose, with its velocity: given, or derived from the last poses."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._center = {"front": -params.rear_axle, "rear": params.front_axle}.get(params.steered, 0.0)
        self._place, self._velocity, self._time = np.zeros(2), np.zeros(2), math.nan
        self._arrived = False

    def set_pose(self, place: Floats, velocity: Floats | None, time: float) -> None:
        """Place (2,) m and velocity (2,) m/s, or None, at a time."""
        if velocity is not None:
            self._velocity = velocity
        elif not math.isnan(self._time) and time > self._time:
            dt = time - self._time
            moved = (place - self._place) / dt
            self._velocity = self._velocity + (1.0 - math.exp(-dt / SMOOTHING)) * (moved - self._velocity)
        elif time == self._time:
            return
        self._place, self._time = place, time

    def command(self, place: Floats, heading: float, speed: float, now: float) -> tuple[float, float]:
        """(speed m/s, curvature 1/m) for a vehicle at place (2,), with its heading (rad) and speed, at a time."""
        p = self._params
        lead_speed = math.hypot(*self._velocity.tolist())
        target = self._place + self._velocity * min(max(now - self._time, 0.0), SMOOTHING)
        to_x, to_y = (target - place).tolist()
        distance = math.hypot(to_x, to_y)
        c, s = math.cos(heading), math.sin(heading)
        ahead = c * to_x + s * to_y
        near = abs(ahead) < THERE or (ahead < 0.0 and distance < SHORTEST_PREVIEW * p.wheelbase)
        if lead_speed < STANDS and near and distance < SHORTEST_PREVIEW * p.wheelbase:
            self._arrived = True
        elif lead_speed > STANDS or distance > SHORTEST_PREVIEW * p.wheelbase + AWAY:
            self._arrived = False
        if self._arrived:
            return 0.0, 0.0
        preview = min(max(PREVIEW_TIME * speed, SHORTEST_PREVIEW * p.wheelbase), LONGEST_PREVIEW * p.wheelbase)
        point = target
        if distance < preview and lead_speed > STANDS:  # it goes on that way
            point = target + self._velocity * ((preview - distance) / lead_speed)
        px, py = (point - place - self._center * np.array((c, s))).tolist()
        forward, left = c * px + s * py, c * py - s * px
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
        return (max(wanted, SLOWEST if lead_speed < STANDS else 0.0) if behind > 0.0 else 0.0), curvature
