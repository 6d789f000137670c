# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands to the motors of a real vehicle: voltage, duty cycle and pulse width. SI units.

First-order DC motor: current = torque / K_t + no-load current, voltage = resistance · current + K_t
· speed, where the torque constant K_t (N m/A) is also the back-EMF constant (V s/rad). M. Drela,
First-order DC electric motor model, MIT Aero & Astro 2007, equations 1-3. A brushless motor with
its controller acts alike.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np

from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.declared import file_schema, number, values_of
from rfly_common.config.documents import shipped_names
from rfly_common.config.parameter_files import checked_document, read_parameters

PULSE_LOW = 1000.0
"""Pulse width of off, or of full backwards or right, µs."""

PULSE_MIDDLE = 1500.0
"""Pulse width of rest for an output with two directions, µs."""

PULSE_HIGH = 2000.0
"""Pulse width of full, µs."""

SECTIONS = {
    "battery": "that feeds all motors",
    "rotor": "motor of each rotor, on its shaft",
    "wheel": "motor of each driven wheel, on its axle",
}


@dataclasses.dataclass(frozen=True)
class MotorParameters:
    """Constants of a vehicle's motors.

    Each field declares its key in the file, its meaning and its range.
    """

    battery_voltage: float = number("battery.voltage_v", "nominal", above=0.0)
    rotor_torque_constant: float = number("rotor.torque_constant_nmpa", "K_t", above=0.0)
    rotor_resistance: float = number(
        "rotor.resistance_ohm", "of winding and controller", at_least=0.0
    )
    rotor_no_load_current: float = number(
        "rotor.no_load_current_a", "that friction takes", at_least=0.0
    )
    wheel_torque_constant: float = number("wheel.torque_constant_nmpa", "K_t", above=0.0)
    wheel_resistance: float = number(
        "wheel.resistance_ohm", "of winding and controller", at_least=0.0
    )
    wheel_no_load_current: float = number(
        "wheel.no_load_current_a", "that friction takes", at_least=0.0
    )

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the files."""
        return file_schema("Motors of a land-air vehicle", cls, SECTIONS)

    @classmethod
    def load(cls, name_or_path: str | os.PathLike[str]) -> MotorParameters:
        """Load a shipped set (`shipped_motor_sets()`) or a YAML file.

        Raise ConfigError that names file, line and key.
        """
        data, file, _name = read_parameters("motors", "rfly_autonomy", "motors", name_or_path)
        document = checked_document(data, file, cls.schema(), "version, battery, rotor")
        return cls(**values_of(cls, document.value))


def shipped_motor_sets() -> list[str]:
    """Return the names of the shipped sets."""
    return shipped_names("rfly_autonomy", "motors")


@dataclasses.dataclass(frozen=True)
class MotorOutput:
    """Output to the motors: rotors in their order, then wheels in theirs."""

    voltage: Floats
    """Voltages, (rotors + wheels,), V, signed for wheels."""

    duty: Floats
    """Duty cycles after the limit, (rotors + wheels,), as shares of the battery's voltage.

    0 … 1 for rotors, -1 … 1 for wheels.
    """

    pulse: Floats
    """Pulse widths, (rotors + wheels + 2,), µs.

    The motors' first, then steering (2000: full left) and brake (2000: full).
    """

    limited: int
    """Number of motors with a demand beyond the limit."""


@dataclasses.dataclass(frozen=True)
class MotorModel:
    """Model that turns commands into outputs; `max_duty`: limit of each motor's duty cycle."""

    vehicle: VehicleParameters
    motors: MotorParameters
    max_duty: float = 1.0

    @property
    def rest(self) -> MotorOutput:
        """Output with everything off, wheels straight, brakes on."""
        return self.output(
            None, WheelCommand.braked(self.vehicle, 0.0, self.vehicle.max_brake_torque)
        )

    def output(
        self,
        rotors: RotorCommand | None,
        wheels: WheelCommand | None,
        rotor_speed: Floats | None = None,
        wheel_speed: Floats | None = None,
    ) -> MotorOutput:
        """Return the output for commands that fit the vehicle (`check`); None: off.

        `rotor_speed`: measured, (rotors,), rad/s; used for rotors commanded by torque.
        `wheel_speed`: measured, (wheels,), rad/s. Without a measurement the speed counts as 0.
        """
        p = self.vehicle
        m = self.motors

        rotor_voltage = self._rotor_voltage(rotors, rotor_speed)
        wheel_voltage = self._wheel_voltage(wheels, wheel_speed)
        wanted = np.concatenate([rotor_voltage, wheel_voltage])
        duty = np.clip(wanted / m.battery_voltage, -self.max_duty, self.max_duty)

        # steering and brake
        steering = 0.0
        brake = 0.0
        if wheels is not None:
            steering, _ = wheels.steering(p)
            brake = float(np.max(wheels.brake_torque))
        left = np.clip(steering / p.max_steering, -1.0, 1.0) if p.max_steering else 0.0
        pressed = min(brake / p.max_brake_torque, 1.0) if p.max_brake_torque else 0.0

        half_range = PULSE_HIGH - PULSE_MIDDLE
        full_range = PULSE_HIGH - PULSE_LOW
        pulse = np.concatenate(
            [
                PULSE_LOW + full_range * duty[: p.rotors],
                PULSE_MIDDLE + half_range * duty[p.rotors :],
                [PULSE_MIDDLE + half_range * left, PULSE_LOW + full_range * pressed],
            ]
        )

        limit = self.max_duty * m.battery_voltage * (1.0 + 1e-12)
        limited = int(np.count_nonzero(np.abs(wanted) > limit))
        return MotorOutput(duty * m.battery_voltage, duty, pulse, limited)

    def _rotor_voltage(self, rotors: RotorCommand | None, measured: Floats | None) -> Floats:
        """Return the voltages of the rotors' motors, (rotors,), V."""
        p = self.vehicle
        m = self.motors
        torque = np.zeros(p.rotors)
        speed = np.zeros(p.rotors)
        if rotors is not None and rotors.torques:
            torque = np.clip(rotors.value, 0.0, p.max_rotor_torque)
            speed = speed if measured is None else np.abs(measured)
        elif rotors is not None:
            # docs/model Eq. 4.8: steady, far from ground and other rotors
            speed = np.clip(rotors.value, 0.0, p.max_rotor_speed)
            torque = p.torque_coefficient * speed**2

        # no torque is no voltage: its own speed must not keep a rotor turning
        voltage = _voltage(
            torque, speed, m.rotor_torque_constant, m.rotor_resistance, m.rotor_no_load_current
        )
        return np.where(torque > 0.0, voltage, 0.0)

    def _wheel_voltage(self, wheels: WheelCommand | None, measured: Floats | None) -> Floats:
        """Return the voltages of the wheels' motors, (wheels,), V."""
        p = self.vehicle
        m = self.motors
        most = p.max_drive_torque
        zero = np.zeros(len(p.wheels))
        drive = zero if wheels is None else np.clip(wheels.drive_torque, -most, most)
        speed = zero if measured is None else measured

        driven = (p.is_driven > 0.0) & (drive != 0.0)
        voltage = _voltage(
            drive, speed, m.wheel_torque_constant, m.wheel_resistance, m.wheel_no_load_current
        )
        return np.where(driven, voltage, 0.0)


def _voltage(
    torque: Floats, speed: Floats, constant: float, resistance: float, no_load: float
) -> Floats:
    """Return the voltages, V; friction acts against the spin, at rest against the torque."""
    friction = no_load * np.sign(np.where(speed != 0.0, speed, torque))
    return resistance * (torque / constant + friction) + constant * speed
