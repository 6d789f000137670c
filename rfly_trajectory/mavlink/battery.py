"""A simple battery: its charge, and the voltage and current at a power.

Open-circuit voltage of a cell: straight lines through a lithium polymer's typical values, 3.3 V empty, 3.7 V at 20 %,
4.2 V full. At the terminals V = V₀ - R I, and P = V I, so that I is the smaller root of R I² - V₀ I + P = 0; what is
asked for beyond V₀²/(4R) is not given. The charge falls by the current alone: no temperature, ageing or self-discharge.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

_CHARGES, _CELL_VOLTAGES = (0.0, 0.2, 1.0), (3.3, 3.7, 4.2)


@dataclass(frozen=True)
class BatteryModel:
    """What a battery is made of."""

    capacity_ah: float
    cells: float
    internal_resistance: float
    """Ω, of all cells"""


class Battery:
    """The charge of one vehicle's battery; begins full."""

    def __init__(self, model: BatteryModel) -> None:
        self.model = model
        self.used_ah = self.used_wh = self.current = self.power = 0.0
        """used so far; A and W of now"""

    @property
    def charge(self) -> float:
        """0 … 1."""
        return min(max(1.0 - self.used_ah / self.model.capacity_ah, 0.0), 1.0)

    @property
    def open_circuit_voltage(self) -> float:
        """V, without a load."""
        return self.model.cells * float(np.interp(self.charge, _CHARGES, _CELL_VOLTAGES))

    @property
    def voltage(self) -> float:
        """V, at the current of now."""
        return self.open_circuit_voltage - self.model.internal_resistance * self.current

    def draw(self, power: float, dt: float) -> None:
        """Give `power` (W) for `dt` seconds; an empty battery gives nothing."""
        v0, resistance = self.open_circuit_voltage, self.model.internal_resistance
        if self.charge <= 0.0:
            self.current = self.power = 0.0
            return
        most = v0 * v0 / (4.0 * resistance) if resistance > 0.0 else math.inf
        self.power = min(power, most)
        root = math.sqrt(max(v0 * v0 - 4.0 * resistance * self.power, 0.0))
        self.current = 2.0 * self.power / (v0 + root)
        self.used_ah += self.current * dt / 3600.0
        self.used_wh += self.power * dt / 3600.0
