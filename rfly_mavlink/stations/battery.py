# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The battery of a vehicle, whose charge and voltage its telemetry reports."""

from __future__ import annotations

from rfly_common.energy import battery
from rfly_mavlink.stations.parameter_protocol import Tunables


class TunablePack:
    """The properties of a battery among the parameters that a ground station may change."""

    charge_rate = 0.0

    def __init__(self, values: Tunables) -> None:
        self._values = values

    @property
    def cells(self) -> float:
        """Number of cells in series."""
        return self._values.battery_cells

    @property
    def capacity_ah(self) -> float:
        """Charge of the full battery, Ah."""
        return self._values.battery_capacity / 1000.0

    @property
    def resistance(self) -> float:
        """Resistance of all cells, Ω."""
        return self._values.battery_resistance


class TunableBattery(battery.Battery):
    """The charge of one vehicle's battery, which `values` describe; it begins full."""

    def __init__(self, values: Tunables) -> None:
        super().__init__(TunablePack(values))
        self.values = values

    @property
    def capacity_ah(self) -> float:
        """Charge of the full battery, Ah."""
        return self.pack.capacity_ah
