# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Motion of a vehicle, from its poses alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.arrays import Floats

SMOOTHING_S = 0.1
"""Time constant of velocity and rates, s."""
LONGEST_GAP_S = 1.0
"""Longest gap, s, over which the motion is known; after it velocity and rates restart at 0."""


class PoseTracker:
    """Velocity and turn rates of one vehicle.

    NED metres, body axes forward-right-down, radians, seconds.
    """

    def __init__(self) -> None:
        self.known = False
        self.time = math.nan
        """Time of the last pose, s."""
        self.position: Floats = np.zeros(3)
        """NED, m."""
        self.euler: Floats = np.zeros(3)
        """Roll, pitch, yaw, rad."""
        self.velocity: Floats = np.zeros(3)
        """NED, m/s."""
        self.rates: Floats = np.zeros(3)
        """Turn rates about the body's axes, rad/s."""

    def take(self, time: float, position: Any, euler: Any) -> None:
        """Take a pose (3,) (3,); of two with the same time the second counts."""
        new_position = np.asarray(position, float)
        new_euler = np.asarray(euler, float)
        dt = time - self.time if self.known else math.nan

        if not 0.0 <= dt <= LONGEST_GAP_S:
            self.velocity = np.zeros(3)
            self.rates = np.zeros(3)
        elif dt > 0.0:
            share = dt / (dt + SMOOTHING_S)
            turns = [math.remainder(a, 2.0 * math.pi) for a in (new_euler - self.euler).tolist()]
            velocity = (new_position - self.position) / dt
            rates = _body_rates(new_euler, np.array(turns) / dt)
            self.velocity = self.velocity + share * (velocity - self.velocity)
            self.rates = self.rates + share * (rates - self.rates)

        self.known = True
        self.time = time
        self.position = new_position
        self.euler = new_euler


def _body_rates(euler: Floats, rates: Floats) -> Floats:
    """Return the turn rates for the rates of roll, pitch and yaw.

    Beard & McLain, Small Unmanned Aircraft, 2012, equation 3.3 inverted.
    """
    roll, pitch, _ = euler.tolist()
    roll_rate, pitch_rate, yaw_rate = rates.tolist()
    return np.array(
        [
            roll_rate - yaw_rate * math.sin(pitch),
            pitch_rate * math.cos(roll) + yaw_rate * math.sin(roll) * math.cos(pitch),
            -pitch_rate * math.sin(roll) + yaw_rate * math.cos(roll) * math.cos(pitch),
        ]
    )
