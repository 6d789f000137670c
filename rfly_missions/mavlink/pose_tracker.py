"""How a vehicle moves and turns, from its poses alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rfly_common.arrays import Floats

SMOOTHING_S = 0.1
"""time constant of velocity and rates"""
LONGEST_GAP_S = 1.0
"""after a longer gap the motion in between is unknown: velocity and rates restart at 0"""


class PoseTracker:
    """Velocity and turn rates from poses alone: NED metres, body axes forward-right-down, radians,
    seconds.
    """

    def __init__(self) -> None:
        self.known = False
        self.time = math.nan
        """s, of the last pose"""
        self.position: Floats = np.zeros(3)
        self.euler: Floats = np.zeros(3)
        """roll, pitch, yaw"""
        self.velocity: Floats = np.zeros(3)
        self.rates: Floats = np.zeros(3)
        """about the body's axes, rad/s"""

    def take(self, time: float, position: Any, euler: Any) -> None:
        """A pose (3,) (3,); of two with the same time the second counts."""
        place = np.asarray(position, float)
        turned = np.asarray(euler, float)
        dt = time - self.time if self.known else math.nan
        if not 0.0 <= dt <= LONGEST_GAP_S:
            self.velocity = np.zeros(3)
            self.rates = np.zeros(3)
        elif dt > 0.0:
            share = dt / (dt + SMOOTHING_S)
            by_angle = (
                np.array([math.remainder(a, 2.0 * math.pi) for a in (turned - self.euler).tolist()])
                / dt
            )
            self.velocity = self.velocity + share * ((place - self.position) / dt - self.velocity)
            self.rates = self.rates + share * (_body_rates(turned, by_angle) - self.rates)
        self.known = True
        self.time = time
        self.position = place
        self.euler = turned


def _body_rates(euler: Floats, change: Floats) -> Floats:
    """Of the changes of roll, pitch and yaw (Beard & McLain, Small Unmanned Aircraft, 2012,
    equation 3.3 inverted).
    """
    roll, pitch, _ = euler.tolist()
    by_roll, by_pitch, by_yaw = change.tolist()
    return np.array(
        [
            by_roll - by_yaw * math.sin(pitch),
            by_pitch * math.cos(roll) + by_yaw * math.sin(roll) * math.cos(pitch),
            -by_pitch * math.sin(roll) + by_yaw * math.cos(roll) * math.cos(pitch),
        ]
    )
