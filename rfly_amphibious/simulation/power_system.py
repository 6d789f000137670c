# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Battery and motors of a vehicle: power drawn, and commands that the voltage allows.

Eq. 4.19–4.21.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from rfly_amphibious.dynamics.model import Controls, Outputs
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

    def power(self, x: Floats, outputs: Outputs) -> float:
        """Return the power that the motors and the avionics ask for, W. Eq. 4.21."""
        p = self.params
        spin = x[self._columns["wheel_speed"]] - x[state_layout.RATES + 1]
        wheels = x[self._columns["drive_torque"]] * spin
        driving = float(np.maximum(wheels, 0.0).sum()) / p.drive_efficiency
        braking = float(np.minimum(wheels, 0.0).sum()) * p.regeneration
        flying = max(float(outputs.rotor_power), 0.0) / p.rotor_efficiency
        return flying + driving + braking + p.avionics_power

    def draw(self, x: Floats, outputs: Outputs, dt: float) -> None:
        """Draw what a state has needed for dt seconds."""
        power = self.power(x, outputs)
        if self.battery is not None:
            self.battery.draw(power, dt)
            power = self.battery.power
            self.lowest_voltage = min(self.lowest_voltage, self.battery.voltage)
        self.energy += power * dt

    def limited(self, controls: Controls) -> Controls:
        """Return the commands as far as the voltage allows them. Eq. 4.20."""
        battery = self.battery
        if battery is None:
            return controls
        share = battery.voltage / (NOMINAL_CELL_VOLTAGE * battery.pack.cells)
        if battery.charge <= 0.0:
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
