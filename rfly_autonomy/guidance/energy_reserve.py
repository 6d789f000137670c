# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Charge of the battery that a landing, or the way home, takes. docs/model, section 10.7."""

from __future__ import annotations

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
