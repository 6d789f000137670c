# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charge that a landing or the way home takes, and a watch over the battery's gauge by it.

The charge: docs/model, section 10.7.

Theory of operation. A gauge has failed that shows nothing, that leaps by more than any flight can
take, or that rests while the flight takes several of its steps. Its steps are learned: those of
many gauges are one per cent. On the ground nothing is judged.
"""

from __future__ import annotations

import enum
import math

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.control.flight_modes import FAST_DESCENT, SLOW_BELOW, SLOW_DESCENT
from rfly_common.energy.battery import EMPTY_VOLTAGE

MARGIN = 1.25
"""Charge that is kept for a flight, as a multiple of that which it takes in calm air."""

LEFT = 0.05
"""Charge that is left after it, below which the voltage breaks down."""

S_PER_H = 3600.0


def charge_per_second(p: VehicleParameters) -> float:
    """Return the charge that a second of hovering takes, 1/s; 0 without a battery. Eq. 10.22.

    The voltage is that of an empty battery under load, so it is rather too much.
    """
    if p.battery_capacity <= 0.0:
        return 0.0
    shafts = p.rotors * p.torque_coefficient * p.hover_speed**3
    power = shafts / p.rotor_efficiency + p.avionics_power
    empty = p.battery_cells * EMPTY_VOLTAGE
    voltage = empty - p.battery_resistance * power / empty
    return power / (voltage * p.battery_capacity * S_PER_H)


def charge_of_flight(p: VehicleParameters, seconds: float, height: float) -> float:
    """Return the charge, 0 … 1, with which a flight can begin that ends by a landing. Eq. 10.23.

    `seconds`: of flight until the landing; `height`: at which it begins, m.
    """
    slow = min(max(height, 0.0), SLOW_BELOW)
    landing = slow / SLOW_DESCENT + max(height - SLOW_BELOW, 0.0) / FAST_DESCENT
    needed = LEFT + MARGIN * (seconds + landing) * charge_per_second(p)
    return max(p.battery_reserve, needed)


LEAP = 0.03
"""Change of the charge beyond what a flight can take that is a leap."""

MOST_POWER = 5.0
"""Largest power as a multiple of that in hover."""

LEAST_POWER = 0.3
"""Least power of a flight as a multiple of that in hover."""

RESTING_STEPS = 3.0
"""Steps of the gauge that a flight has to take until a gauge that rests has failed."""

LEAST_REST = 0.0005
"""Charge that it has to take at least."""


class GaugeFault(enum.Enum):
    """What is wrong with a gauge, in words."""

    NONE = ""
    SILENT = "the battery gauge shows nothing"
    LEAPS = "the battery gauge leaps"
    RESTS = "the battery gauge rests in flight"


class GaugeWatch:
    """Watch over a battery's gauge."""

    def __init__(self, params: VehicleParameters) -> None:
        self._rate = charge_per_second(params)
        self._time = math.nan
        self._charge = math.nan
        self._step = 0.0
        """Largest step so far that was no leap."""

        self._taken = 0.0
        """Charge that the flight has taken at least since the last step."""

        self.fault = GaugeFault.NONE
        """What is wrong with it. A leap counts until the landing."""

    def update(self, time: float, charge: float, flies: bool) -> None:
        """Take in the charge shown at a time, s; NaN: none."""
        seconds = max(time - self._time, 0.0) if self._time <= time else 0.0
        self._time = time
        if math.isnan(charge):
            self.fault = GaugeFault.SILENT
            return

        step = abs(charge - self._charge)
        self._charge = charge
        if self.fault is GaugeFault.SILENT:
            self.fault = GaugeFault.NONE
        if not flies:
            self.fault = GaugeFault.NONE
            self._taken = 0.0
        elif step > LEAP + MOST_POWER * self._rate * seconds:
            self.fault = GaugeFault.LEAPS
        elif self.fault is not GaugeFault.LEAPS:
            self._watch_rest(step, seconds)

    def _watch_rest(self, step: float, seconds: float) -> None:
        """Judge a gauge after a step, which may be 0, in some seconds of flight."""
        if step > 0.0:
            self._step = max(self._step, step)
            self._taken = 0.0
            self.fault = GaugeFault.NONE
            return
        self._taken += LEAST_POWER * self._rate * seconds
        if self._step and self._taken > max(RESTING_STEPS * self._step, LEAST_REST):
            self.fault = GaugeFault.RESTS
