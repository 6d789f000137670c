# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Setpoint: what a guide orders, on the ground and in the air."""

from __future__ import annotations

from typing import NamedTuple

from rfly_amphibious.simulation.commands import Mode
from rfly_autonomy.control.axle_lift import Assist

_REQUESTS = {
    Mode.DRIVE: "arm",
    Mode.TAKEOFF: "takeoff",
    Mode.LAND: "land",
    Mode.ROLLING_TAKEOFF: "rolling_takeoff",
    Mode.ROLLING_LAND: "rolling_land",
}
"""Words of cmd/mode for the modes of setpoints."""


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
