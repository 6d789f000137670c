# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Setpoint: what a guide orders, on the ground and in the air."""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np

from rfly_amphibious.simulation.commands import Mode
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

_REQUESTS = {
    Mode.DRIVE: "arm",
    Mode.TAKEOFF: "takeoff",
    Mode.LAND: "land",
    Mode.ROLLING_TAKEOFF: "rolling_takeoff",
    Mode.ROLLING_LAND: "rolling_land",
}
"""Words of cmd/mode for the modes of setpoints."""


class Axle(enum.Enum):
    """Axle of a vehicle that the rotors lift."""

    FRONT = "front"
    REAR = "rear"


class Assist(NamedTuple):
    """What the rotors do while a vehicle drives: they lift an axle, or lower it."""

    pitch: float
    """Pitch to turn to, rad, positive nose up."""

    thrust: float
    """Thrust, as a share of the weight."""

    lifted: Axle
    """Axle whose wheels hang."""

    def torques(self, torques: Floats, params: VehicleParameters) -> Floats:
        """Return the torques of motors or brakes, (wheels,), of the wheels that stand.

        Each of them takes over that of one that hangs.
        """
        stands = params.hub_position[:, 0] > params.center_x
        if self.lifted is Axle.FRONT:
            stands = ~stands
        return np.where(stands, torques * (len(stands) / max(int(stands.sum()), 1)), 0.0)


class Setpoint(NamedTuple):
    """Order of a guide: a mode to request, speed and steering on the ground, a target in the air.

    It holds from its time until the next one.
    """

    time: float
    """Time from which it holds, s."""

    mode: Mode | None = None
    """Mode to request."""

    speed: float = 0.0
    """Speed to drive, m/s."""

    steering: float = 0.0
    """Steering angle, rad."""

    target: tuple[float, float, float] | None = None
    """Place to fly to, world axes, m."""

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Velocity of the target, m/s."""

    yaw: float | None = None
    """Heading to turn to in flight and above the landing place, rad; None: keep the heading."""

    assist: Assist | None = None
    """What the rotors do while it drives; None: nothing."""

    @property
    def request(self) -> str:
        """Word of cmd/mode for the mode to request; "" for none."""
        return "" if self.mode is None else _REQUESTS[self.mode]
