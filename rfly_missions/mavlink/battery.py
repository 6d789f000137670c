# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The battery of a vehicle, whose charge and voltage its telemetry reports.

Open-circuit voltage of a cell: straight lines through a lithium polymer's typical values, 3.3 V
empty, 3.7 V at 20 %, 4.2 V full. At the terminals V = V₀ - R I, and P = V I, so that I is the
smaller root of R I² - V₀ I + P = 0; power beyond V₀²/(4R) cannot be drawn. Current alone lowers the
charge: no temperature, ageing or self-discharge.
"""

from __future__ import annotations

import math

import numpy as np

from rfly_missions.mavlink.parameter_protocol import Tunables

_CHARGES = (0.0, 0.2, 1.0)
"""Charges at which the voltage of a cell is known."""
_CELL_VOLTAGES = (3.3, 3.7, 4.2)
"""Open-circuit voltages of a cell at these charges, V."""


class Battery:
    """The charge of one vehicle's battery, which `values` describe; it begins full."""

    def __init__(self, values: Tunables) -> None:
        self.values = values
        self.used_ah = 0.0
        """Charge used so far, Ah."""
        self.used_wh = 0.0
        """Energy used so far, Wh."""
        self.current = 0.0
        """Present current, A."""
        self.power = 0.0
        """Present power, W."""

    @property
    def capacity_ah(self) -> float:
        """Charge of the full battery, Ah."""
        return self.values.battery_capacity / 1000.0

    @property
    def charge(self) -> float:
        """Present charge, 0 … 1."""
        return min(max(1.0 - self.used_ah / self.capacity_ah, 0.0), 1.0)

    @property
    def open_circuit_voltage(self) -> float:
        """Voltage without a load, V."""
        return self.values.battery_cells * float(np.interp(self.charge, _CHARGES, _CELL_VOLTAGES))

    @property
    def voltage(self) -> float:
        """Voltage at the present current, V."""
        return self.open_circuit_voltage - self.values.battery_resistance * self.current

    def draw(self, power: float, dt: float) -> None:
        """Give `power` (W) for `dt` seconds; an empty battery gives nothing."""
        if self.charge <= 0.0:
            self.current = 0.0
            self.power = 0.0
            return

        v0 = self.open_circuit_voltage
        resistance = self.values.battery_resistance
        limit = v0 * v0 / (4.0 * resistance) if resistance > 0.0 else math.inf
        self.power = min(power, limit)
        root = math.sqrt(max(v0 * v0 - 4.0 * resistance * self.power, 0.0))
        self.current = 2.0 * self.power / (v0 + root)

        self.used_ah += self.current * dt / 3600.0
        self.used_wh += self.power * dt / 3600.0
