# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Watch over motors and brakes of the wheels, and over the power that they get.

Theory of operation. A tyre slips by its torque, 5 N m by some 4 % under a wheel's load, and wheels
with the same torque slip alike. A wheel that slips forwards while its torque is none, or brakes, is
driven without a command; one that slips backwards while its torque is none, or drives, drags. A
wheel that spins or slides by its own torque is no fault, whatever the ground. One that slips as
most do where it would be driven, or would drag, is sound again after a while.

A vehicle whose motors all get no power coasts: rolling, air and slope take just the speed that they
take by the model, whatever the motors' command. On soft ground it is so for a moment only:
there the motors push on until the speed is steady.
"""

from __future__ import annotations

import math
from statistics import median

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.speed_controller import ForceObserver
from rfly_common.arrays import Bools, Floats
from rfly_common.config.checks import all_finite
from rfly_common.physics import GRAVITY

SLIPS = 0.025
"""Slip away from that of most wheels that is a fault."""

SLIPS_TIME = 0.5
"""Time for which it has to last, s."""

SOUND_SLIP = 0.0125
"""Slip away from that of most wheels up to which a wheel at fault is sound again."""

SOUND_TIME = 2.0
"""Time for which it has to be sound, s: torques of its own hide a fault meanwhile."""

LITTLE_SHARE = 0.1
"""Torque as a share of the largest one below which a wheel slips little by it."""

FAST_ENOUGH = 0.7
"""Speed above which the slip is known well enough, m/s."""

TOLD_PULL = 0.3
"""Acceleration, m/s², that the motors are told at least, in addition to that which rolling takes,
before it is clear that they give none.
"""

POWER_GAIN = 5.0
"""Gain of the observer of the motors' force, 1/s."""

COASTING_SHARES = (-1.0, 0.5, 0.9)
"""Shares of the rolling resistance between which the motors' force is none: lowest, usual, highest.

They are in the direction in which the motors are told to push. A headwind adds to the first.
"""

NO_PULL_SHARE = 0.08
"""Share of the force that they are told up to which it is none, too, but for the highest."""

COASTING_TIME = 0.8
"""Time for which it has to be none, s."""

UNBRAKED_TIME = 0.4
"""The same of motors that are told to brake, s: no ground pushes a vehicle on."""


class WheelWatch:
    """Watch over the wheels: `faults` are texts by part, such as `drive_fl` and `brake_rr`."""

    def __init__(self, params: VehicleParameters) -> None:
        self._params = params
        self._coasts_for = 0.0
        """Time without a force of the motors, s."""

        self._told = 0.0
        """Force that they are told, N, low-passed as the observer is."""

        self._pull = ForceObserver(params.effective_mass, POWER_GAIN)
        """Observer of their force."""

        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self.faults: dict[str, str] = {}
        wheels = len(self._params.wheels)
        self._driven_for = np.zeros(wheels)
        self._dragged_for = np.zeros(wheels)
        self._forwards = True
        self._forget_sound()
        self.skip_power()

    def _forget_sound(self) -> None:
        """Begin anew to look for wheels that are sound again."""
        wheels = len(self._params.wheels)
        self._undriven_for = np.zeros(wheels)
        """Times for which wheels that a motor would drive have slipped as most, (wheels,), s."""

        self._undragged_for = np.zeros(wheels)
        """The same of wheels that a brake would hold."""

    def update(self, slip: Floats, torque: Floats, speed: float, dt: float) -> None:
        """Take in slips and commanded torques, N m, of wheels, (wheels,), dt seconds later.

        `speed`: of the vehicle, m/s.
        """
        middle = median(slip.tolist()) if all_finite(slip) else math.nan
        away = slip - middle
        little = LITTLE_SHARE * self._params.max_drive_torque
        fast = abs(speed) > FAST_ENOUGH

        forwards = speed > 0.0
        if forwards is not self._forwards:
            self._forwards = forwards
            self._forget_sound()

        # what drives a wheel shows without a torque forwards, and what holds it without one back
        shows_drive = fast & (torque < little)
        shows_drag = fast & (torque > -little)
        self._driven_for = _lasting(
            self._driven_for, shows_drive & (away > SLIPS) & (slip > 0.0), dt
        )
        self._dragged_for = _lasting(
            self._dragged_for, shows_drag & (away < -SLIPS) & (slip < 0.0), dt
        )
        self._undriven_for = _lasting(self._undriven_for, away < SOUND_SLIP, dt, where=shows_drive)
        self._undragged_for = _lasting(
            self._undragged_for, away > -SOUND_SLIP, dt, where=shows_drag
        )

        # motors push and brakes hold, whatever the direction
        driven = (self._driven_for, self._undriven_for)
        dragged = (self._dragged_for, self._undragged_for)
        pushed, held = (driven, dragged) if forwards else (dragged, driven)
        for wheel, name in enumerate(self._params.wheels):
            self._judge(wheel, f"drive_{name}", "pushes", pushed)
            self._judge(wheel, f"brake_{name}", "drags", held)

    def _judge(self, wheel: int, part: str, does: str, times: tuple[Floats, Floats]) -> None:
        """Name a wheel's part that is at fault; `times`: for which it and soundness have shown."""
        wrong_for, sound_for = times
        if wrong_for[wheel] >= SLIPS_TIME - 1e-9:
            kind, name = part.split("_", 1)
            self.faults[part] = f"the {kind} of wheel {name} {does} without a command"
        elif sound_for[wheel] >= SOUND_TIME - 1e-9:
            self.faults.pop(part, None)

    def watch_power(self, told: float, resistance: float, speed: float, dt: float) -> None:
        """Take in the commanded force of the motors and the resistance of the model, N.

        `speed`: of the vehicle, m/s. dt: since the last time, s. While something else brakes or
        drives the vehicle, call `skip_power` instead.
        """
        p = self._params
        self._told -= math.expm1(-POWER_GAIN * dt) * (told - self._told)
        self._pull.update(speed, -resistance, dt)

        rolling = p.rolling_resistance * GRAVITY
        told = abs(self._told)
        pull = math.copysign(1.0, self._told) * self._pull.force
        low, high, most = (share * p.effective_mass * rolling for share in COASTING_SHARES)
        coasts = low < pull < min(max(high, NO_PULL_SHARE * told), most)
        fast = abs(speed) > FAST_ENOUGH
        is_told = told > p.effective_mass * (rolling + TOLD_PULL)
        self._coasts_for = self._coasts_for + dt if is_told and coasts and fast else 0.0
        due = UNBRAKED_TIME if self._told * speed < 0.0 else COASTING_TIME
        if self._coasts_for >= due - 1e-9:
            self.faults["battery"] = "the battery gives the wheels' motors no power"

    def skip_power(self) -> None:
        """Begin to watch the power anew."""
        self._coasts_for = 0.0
        self._told = 0.0
        self._pull = ForceObserver(self._params.effective_mass, POWER_GAIN)


def _lasting(seconds: Floats, holds: Bools, dt: float, where: Bools | bool = True) -> Floats:
    """Return for how long conditions have held, s, dt seconds later; `where`: else they rest."""
    return np.where(where, np.where(holds, seconds + dt, 0.0), seconds)
