# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A battery: open-circuit voltage over charge, and an internal resistance.

Open-circuit voltage of a cell: straight lines through a lithium polymer's typical values, 3.3 V
empty, 3.7 V at 20 %, 4.2 V full. At the terminals V = V₀ - R I, and P = V I, so that I is the
smaller root of R I² - V₀ I + P = 0; power beyond V₀²/(4R) cannot be drawn. Current alone changes
the charge: no temperature, ageing or self-discharge.
"""

from __future__ import annotations

import dataclasses
import math

BEND = 0.2
"""Charge at which the two straight lines of a cell's voltage meet."""
EMPTY_VOLTAGE = 3.3
"""Open-circuit voltage of an empty cell, V."""
BEND_VOLTAGE = 3.7
"""Open-circuit voltage of a cell at the bend, V."""
FULL_VOLTAGE = 4.2
"""Open-circuit voltage of a full cell, V."""
NOMINAL_CELL_VOLTAGE = 3.7
"""Voltage of a cell for which motors are stated, V."""


@dataclasses.dataclass(frozen=True)
class BatteryPack:
    """The properties of a battery."""

    cells: float
    """Number of cells in series."""
    capacity_ah: float
    """Charge of the full battery, Ah."""
    resistance: float
    """Resistance of all cells, Ω."""
    charge_rate: float
    """Largest current that charges it, over capacity, 1/h; 0: it is not charged."""


class Battery:
    """The charge of a battery with the properties of `pack`; it begins full."""

    def __init__(self, pack: BatteryPack) -> None:
        self.pack = pack
        self.used_ah = 0.0
        """Charge used so far, less what has charged it, Ah."""
        self.used_wh = 0.0
        """Energy given at the terminals so far, less what has charged it, Wh."""
        self.current = 0.0
        """Present current, A; negative while it is charged."""
        self.power = 0.0
        """Present power at the terminals, W; negative while it is charged."""

    @property
    def charge(self) -> float:
        """Present charge, 0 … 1."""
        return min(max(1.0 - self.used_ah / self.pack.capacity_ah, 0.0), 1.0)

    @property
    def open_circuit_voltage(self) -> float:
        """Voltage without a load, V."""
        charge = self.charge
        if charge < BEND:
            voltage = (BEND_VOLTAGE - EMPTY_VOLTAGE) / BEND * charge + EMPTY_VOLTAGE
        else:
            voltage = (FULL_VOLTAGE - BEND_VOLTAGE) / (1.0 - BEND) * (charge - BEND) + BEND_VOLTAGE
        return self.pack.cells * voltage

    @property
    def voltage(self) -> float:
        """Voltage at the present current, V."""
        return self.open_circuit_voltage - self.pack.resistance * self.current

    def draw(self, power: float, dt: float) -> None:
        """Give `power` (W) for `dt` seconds, or take it if it is negative.

        An empty battery gives nothing. A full one takes nothing, and others no more current than
        their charge rate allows.
        """
        if (power > 0.0 and self.charge <= 0.0) or (power < 0.0 and self.charge >= 1.0):
            power = 0.0

        v0 = self.open_circuit_voltage
        resistance = self.pack.resistance
        limit = v0 * v0 / (4.0 * resistance) if resistance > 0.0 else math.inf
        self.power = min(power, limit)
        root = math.sqrt(max(v0 * v0 - 4.0 * resistance * self.power, 0.0))
        self.current = 2.0 * self.power / (v0 + root)

        most = self.pack.charge_rate * self.pack.capacity_ah
        if self.current < -most:
            self.current = 0.0 - most
            self.power = self.current * self.voltage
        self.used_ah += self.current * dt / 3600.0
        self.used_wh += self.power * dt / 3600.0
