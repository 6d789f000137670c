# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Robots on two wheels that follow velocities late, and their least distance, densely sampled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SUBSTEPS = 10


class Unicycles:
    """n discs that drive and turn; speeds follow their commands with a lag and limits."""

    def __init__(
        self, poses: Any, *, lag: float = 0.05, gain: float = 1.0, brake: float = 1.0
    ) -> None:
        self.pose = np.array(poses, float)
        """x, y, m, and yaw, rad, (n, 3)."""
        n = len(self.pose)
        self.speed = np.zeros(n)
        self.yaw_rate = np.zeros(n)
        self.least = math.inf
        """Least distance between two centres so far, m."""
        self._lag = lag
        self._gain = gain
        self._brake = brake

    def drive(self, speed: Any, yaw_rate: Any, seconds: float) -> None:
        """Go on with commands (n,), m/s, rad/s."""
        dt = seconds / SUBSTEPS
        for _ in range(SUBSTEPS):
            change = (np.asarray(speed, float) - self.speed) * min(dt / self._lag, 1.0)
            gains = change * np.sign(self.speed) >= 0.0
            most = np.where(gains, self._gain, self._brake) * dt
            self.speed += np.clip(change, -most, most)
            turned = (np.asarray(yaw_rate, float) - self.yaw_rate) * min(dt / self._lag, 1.0)
            self.yaw_rate += turned
            middle = self.pose[:, 2] + 0.5 * self.yaw_rate * dt
            self.pose[:, 0] += self.speed * np.cos(middle) * dt
            self.pose[:, 1] += self.speed * np.sin(middle) * dt
            self.pose[:, 2] += self.yaw_rate * dt
            self.note()

    def note(self, *more: Any) -> None:
        """Note the least distance between the robots, and places of others, (x, y)."""
        places = [*self.pose[:, :2], *map(np.asarray, more)]
        for number, one in enumerate(places[: len(self.pose)]):
            for other in places[number + 1 :]:
                self.least = min(self.least, float(np.hypot(*(one - other)[:2])))

    @property
    def velocity(self) -> Any:
        """Velocities, (n, 3), ENU, m/s."""
        yaw = self.pose[:, 2]
        level = [self.speed * np.cos(yaw), self.speed * np.sin(yaw), 0.0 * yaw]
        return np.stack(level, axis=-1)


def wish_to(pose: Any, goal: Any, cruise: float) -> tuple[float, float]:
    """Return the speed, m/s, and yaw rate, rad/s, of a robot that goes straight to a goal."""
    away = np.asarray(goal, float) - np.asarray(pose, float)[:2]
    distance = float(np.hypot(*away))
    if distance < 0.3:
        return 0.0, 0.0
    turn = math.remainder(math.atan2(away[1], away[0]) - float(pose[2]), 2.0 * math.pi)
    rate = min(max(2.0 * turn, -1.0), 1.0)
    return (min(cruise, distance) * max(math.cos(turn), 0.0) if abs(turn) < 1.0 else 0.0), rate
