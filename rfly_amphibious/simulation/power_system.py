# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Battery and motors of a vehicle: power drawn, and commands that the voltage allows.

Eq. 4.19–4.21.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from rfly_amphibious.dynamics.model import Controls, Outputs
from rfly_amphibious.simulation.faults import BATTERY, GAUGE, Fault, FaultKind
from rfly_amphibious.vehicle import state_layout
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.energy.battery import NOMINAL_CELL_VOLTAGE, Battery, BatteryPack


class PowerSystem:
    """Power system of one vehicle. Without a battery it only counts the energy."""

    def __init__(self, params: VehicleParameters) -> None:
        self.params = params
        self.battery: Battery | None = None
        """Battery; None: the vehicle's file has none."""
        self.energy = 0.0
        """Energy drawn so far, J, less what has charged the battery."""
        self.lowest_voltage = 0.0
        """Lowest voltage so far, V; without a battery 0."""
        self._charge_held = 1.0
        """Charge when the gauge was last sound."""
        self._faults: list[Fault] = []
        """Faults of battery and gauge that act."""

        self._gives_power = True
        self._columns = state_layout.state_columns(params.rotors, len(params.wheels))
        if params.battery_capacity > 0.0:
            pack = BatteryPack(
                params.battery_cells,
                params.battery_capacity,
                params.battery_resistance,
                params.battery_charge_rate,
            )
            self.battery = Battery(pack)
            self.lowest_voltage = self.battery.voltage

    @property
    def charge(self) -> float:
        """Present charge, 0 … 1; without a battery 1."""
        return 1.0 if self.battery is None else self.battery.charge

    @property
    def charge_shown(self) -> float:
        """Charge that the gauge shows, 0 … 1; NaN while it is off."""
        shown = self.charge
        for fault in self._faults:
            if fault.part != GAUGE:
                continue
            if fault.kind is FaultKind.OFF:
                shown = math.nan
            elif fault.kind is FaultKind.STUCK:
                shown = self._charge_held
            elif fault.kind is FaultKind.WRONG:
                shown = fault.value[0]
            else:
                shown = min(max(shown + fault.value[0], 0.0), 1.0)
        return shown

    def suffer(self, faults: Iterable[Fault]) -> None:
        """Take in the faults that act now; those of other parts do not matter."""
        acting = [fault for fault in faults if fault.part in (BATTERY, GAUGE)]
        if not any(fault.part == GAUGE for fault in acting):
            self._charge_held = self.charge
        if acting == self._faults:
            return
        self._faults = acting
        if self.battery is not None:
            self._damage(self.battery, [fault for fault in acting if fault.part == BATTERY])

    def _damage(self, battery: Battery, faults: Iterable[Fault]) -> None:
        """Leave a battery what its faults leave."""
        left = {"cells": 1.0, "capacity": 1.0, "resistance": 0.0}
        self._gives_power = True
        for fault in faults:
            if fault.kind is FaultKind.OFF:
                self._gives_power = False
            elif fault.kind is FaultKind.BIASED:
                left["resistance"] += fault.value[0]
            else:
                left[fault.reading] *= fault.value[0]

        p = self.params
        pack = BatteryPack(
            p.battery_cells * left["cells"],
            p.battery_capacity * left["capacity"],
            p.battery_resistance + left["resistance"],
            p.battery_charge_rate,
        )
        # lost capacity takes its share of the charge with it
        battery.used_ah *= pack.capacity_ah / battery.pack.capacity_ah
        battery.pack = pack

    def power(self, x: Floats, outputs: Outputs) -> float:
        """Return the power that the motors and the avionics ask for, W. Eq. 4.21."""
        p = self.params
        spin = x[self._columns["wheel_speed"]] - x[state_layout.RATES + 1]
        wheels = x[self._columns["drive_torque"]] * spin
        driving = 0.0
        braking = 0.0
        for power in wheels.tolist():
            driving += max(power, 0.0)
            braking += min(power, 0.0)
        driving /= p.drive_efficiency
        braking *= p.regeneration
        flying = max(float(outputs.rotor_power), 0.0) / p.rotor_efficiency
        return flying + driving + braking + p.avionics_power

    def draw(self, x: Floats, outputs: Outputs, dt: float) -> None:
        """Draw what a state has needed for dt seconds."""
        power = self.power(x, outputs)
        if self.battery is not None:
            self.battery.draw(power if self._gives_power else 0.0, dt)
            power = self.battery.power
            self.lowest_voltage = min(self.lowest_voltage, self.battery.voltage)
        self.energy += power * dt

    def limited(self, controls: Controls) -> Controls:
        """Return the commands as far as the voltage allows them. Eq. 4.20."""
        battery = self.battery
        if battery is None:
            return controls
        share = battery.voltage / (NOMINAL_CELL_VOLTAGE * self.params.battery_cells)
        if battery.charge <= 0.0 or not self._gives_power:
            return Controls(
                steering=controls.steering,
                steering_trim=controls.steering_trim,
                brake_torque=controls.brake_torque,
            )
        if share >= 1.0:
            return controls
        if controls.rotor_torque is not None:
            most = share * self.params.max_rotor_torque
            torque = np.clip(np.asarray(controls.rotor_torque), -most, most)
            return dataclasses.replace(controls, rotor_torque=torque)
        if controls.rotor_speed is not None:
            most = share * self.params.max_rotor_speed
            return dataclasses.replace(
                controls, rotor_speed=np.minimum(np.asarray(controls.rotor_speed), most)
            )
        return controls
