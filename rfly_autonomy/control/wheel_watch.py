# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over motors and brakes of the wheels, by the slips of the wheels that roll.

Theory of operation. A tyre slips by its torque, 5 N m by some 4 % under a wheel's load, and wheels
with the same torque slip alike. A wheel that slips forwards while its torque is none, or brakes, is
driven without a command; one that slips backwards while its torque is none, or drives, drags. A
wheel that spins or slides by its own torque is no fault, whatever the ground.
"""

from __future__ import annotations

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats

SLIPS = 0.025
"""Slip away from that of most wheels that is a fault."""

SLIPS_TIME = 0.5
"""Time for which it has to last, s."""

LITTLE_SHARE = 0.1
"""Torque as a share of the largest one below which a wheel slips little by it."""

FAST_ENOUGH = 0.7
"""Speed above which the slip is known well enough, m/s."""


class WheelWatch:
    """Watch over the wheels: `faults` are texts by part, such as `drive_fl` and `brake_rr`."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self.faults: dict[str, str] = {}
        self._driven_for = np.zeros(len(self._params.wheels))
        self._dragged_for = np.zeros(len(self._params.wheels))

    def update(self, slip: Floats, torque: Floats, speed: float, dt: float) -> None:
        """Take in slips and commanded torques, N m, of wheels, (wheels,), dt seconds later.

        `speed`: of the vehicle, m/s. A fault stays until a reset.
        """
        away = slip - np.median(slip)
        little = LITTLE_SHARE * self._params.max_drive_torque
        fast = abs(speed) > FAST_ENOUGH
        driven = fast & (away > SLIPS) & (slip > 0.0) & (torque < little)
        dragged = fast & (away < -SLIPS) & (slip < 0.0) & (torque > -little)
        self._driven_for = np.where(driven, self._driven_for + dt, 0.0)
        self._dragged_for = np.where(dragged, self._dragged_for + dt, 0.0)

        # motors push and brakes hold, whatever the direction
        forwards = speed > 0.0
        pushed = self._driven_for if forwards else self._dragged_for
        held = self._dragged_for if forwards else self._driven_for
        for wheel, name in enumerate(self._params.wheels):
            if pushed[wheel] >= SLIPS_TIME - 1e-9:
                self.faults[f"drive_{name}"] = f"the drive of wheel {name} pushes without a command"
            if held[wheel] >= SLIPS_TIME - 1e-9:
                self.faults[f"brake_{name}"] = f"the brake of wheel {name} drags without a command"
