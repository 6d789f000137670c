# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Faults of a vehicle's parts: the part, what is wrong with it, and for how long."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rfly_amphibious.dynamics.model import Controls
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.arrays import Floats
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError

QUANTITIES = {
    "imu": ("specific_force", "rates"),
    "gps": ("position", "velocity"),
    "magnetometer": ("field",),
    "barometer": ("pressure",),
    "encoders": ("wheel_rate", "steering", "strut", "rotor_rate"),
    "height": ("distance",),
    "wheel_loads": ("load",),
    "wind": ("velocity",),
}
"""Quantities of each sensor that can be biased, noisy or wrong; the first is the default."""

BATTERY = "battery"
"""Part that gives the power."""

GAUGE = "battery_gauge"
"""Part that shows the battery's charge."""

LINK = "link"
"""Part that carries the commands of a guide to the controllers."""

BATTERY_QUANTITIES = {"partial": ("cells", "capacity"), "biased": ("resistance",)}
"""What is left of a battery, or too much in it, by kind of fault; the first is the default."""

_VECTORS = ("specific_force", "rates", "position", "velocity", "field")
"""Quantities with three components."""
_SCALARS = ("pressure", "distance")
"""Quantities with one component. Others have one for each wheel or rotor."""

MOST_FAULTS = 200
"""Most faults that a run has at once, so that requests cannot fill the memory."""

HOLD_TIME = 0.008
"""Time in which a stuck rotor under torque commands returns to its speed, s: two IMU periods."""


class FaultKind(enum.Enum):
    """What is wrong with a part."""

    OFF = "off"
    """A sensor delivers nothing; an actuator does nothing."""
    STUCK = "stuck"
    """A sensor repeats its last reading; an actuator obeys `value` in place of its command."""
    BIASED = "biased"
    """`value` is added to a reading, or to the steering angle."""
    NOISY = "noisy"
    """White noise of the standard deviation `value` is added to each reading."""
    SLOW = "slow"
    """A sensor delivers `value` readings per second."""
    DELAYED = "delayed"
    """A sensor, or the link, delivers `value` seconds late, with the time of the measurement."""
    INTERMITTENT = "intermittent"
    """A share `value` of the readings, or of the link's commands, is lost, by chance."""
    WRONG = "wrong"
    """A reading is `value`."""
    PARTIAL = "partial"
    """An actuator yields a share `value` of what is commanded; a rotor that share of thrust.

    Of a battery's cells in series, or of its capacity, that share is left.
    """


_SENSOR_KINDS = tuple(kind for kind in FaultKind if kind is not FaultKind.PARTIAL)
_MOTOR_KINDS = (FaultKind.OFF, FaultKind.STUCK, FaultKind.PARTIAL)
_KINDS_OF_PARTS = {
    "steering": (FaultKind.STUCK, FaultKind.BIASED, FaultKind.PARTIAL),
    BATTERY: (FaultKind.OFF, FaultKind.BIASED, FaultKind.PARTIAL),
    GAUGE: (FaultKind.OFF, FaultKind.STUCK, FaultKind.BIASED, FaultKind.WRONG),
    LINK: (FaultKind.OFF, FaultKind.DELAYED, FaultKind.INTERMITTENT),
}
"""Kinds of faults of parts that are neither sensors of the suite nor motors."""

LEAST_CELLS = 0.01
"""Least share of a battery's cells, or of its capacity, that can be left."""

_VALUE_LIMITS = {
    FaultKind.SLOW: ("Hz", 0.01, 1000.0),
    FaultKind.DELAYED: ("s", 0.001, 10.0),
    FaultKind.INTERMITTENT: ("", 0.0, 1.0),
    FaultKind.PARTIAL: ("", 0.0, 1.0),
    FaultKind.NOISY: ("", 0.0, None),
}
"""Unit, lowest and highest value of the kinds that have limits."""


def in_span(time: float, begin: float, duration: float | None) -> bool:
    """Return whether a time (s) is in the span from `begin` on; duration None: no end."""
    if time < begin:
        return False
    return duration is None or time < begin + duration


@dataclass(frozen=True)
class Fault:
    """A fault of one sensor or actuator, from a time on."""

    time: float
    """Time of the begin, s."""
    part: str
    """Name of a part in `parts_of`, such as a sensor, `rotor_1` … or `battery`."""
    kind: FaultKind
    value: tuple[float, ...] = ()
    """One number, or one for each component of the quantity, in SI units; see FaultKind."""
    quantity: str = ""
    """Quantity of a sensor in QUANTITIES, or in BATTERY_QUANTITIES; "" for the first one."""
    duration: float | None = None
    """Duration, s; None for the rest of the run."""

    def has_ended(self, time: float) -> bool:
        """Return whether the fault has ended by `time` (s)."""
        return self.duration is not None and time >= self.time + self.duration

    def acts(self, time: float) -> bool:
        """Return whether the fault acts at `time` (s)."""
        return in_span(time, self.time, self.duration)

    @property
    def is_of_sensor(self) -> bool:
        """True for a fault of a sensor, whose samples it changes."""
        return self.part in QUANTITIES

    @property
    def takes_sensors(self) -> bool:
        """True if it has an effect only in runs with sensors and controllers."""
        return self.is_of_sensor or self.part == LINK

    @property
    def reading(self) -> str:
        """Quantity that is biased, noisy, wrong or partial; "" if there is none."""
        return self.quantity or next(iter(self._quantities), "")

    @property
    def _quantities(self) -> tuple[str, ...]:
        """Quantities that a fault of this kind can concern."""
        if self.part == BATTERY:
            return BATTERY_QUANTITIES.get(self.kind.value, ())
        if self.is_of_sensor and self.kind in _OF_QUANTITY:
            return QUANTITIES[self.part]
        return ()

    def check(self, params: VehicleParameters) -> None:
        """Raise ConfigError, which names the field, for a fault that the vehicle cannot have."""
        check_choice("part", self.part, parts_of(params))
        check_choice("kind", self.kind.value, [kind.value for kind in kinds_of(self.part)])
        if self.quantity:
            self._check_quantity()

        needed = self._value_sizes(params)
        if len(self.value) not in needed:
            expected = " or ".join(map(str, needed))
            raise ConfigError(
                f"value: {len(self.value)} numbers, expected {expected} for {self.part} "
                f"{self.kind.value}"
            )

        unit, low, high = _VALUE_LIMITS.get(self.kind, ("", None, None))
        if self.kind is FaultKind.STUCK and self.part.startswith(("rotor", "brake")):
            low = 0.0
        elif self.part == BATTERY:
            low = LEAST_CELLS if self.kind is FaultKind.PARTIAL else 0.0
        elif self.part == GAUGE and self.kind is FaultKind.WRONG:
            low, high = 0.0, 1.0
        for number in self.value:
            finite_number("value", number, unit, at_least=low, at_most=high)

    def _check_quantity(self) -> None:
        """Raise ConfigError for a quantity that the part has not got, or that has no effect."""
        if not self._quantities:
            kinds = ", ".join(kind.value for kind in _OF_QUANTITY)
            raise ConfigError(
                f"quantity: expected with sensors that are {kinds} only, and with a battery that "
                "is partial or biased"
            )
        check_choice("quantity", self.quantity, self._quantities)

    def _value_sizes(self, params: VehicleParameters) -> tuple[int, ...]:
        """Return how many numbers `value` may have."""
        if self.kind is FaultKind.OFF:
            return (0,)
        if self.kind is FaultKind.STUCK and (self.is_of_sensor or self.part == GAUGE):
            return (0,)
        if self.kind not in _OF_QUANTITY or not self.is_of_sensor:
            return (1,)
        size = components(self.reading, params)
        return (1,) if size == 1 else (1, size)

    def __str__(self) -> str:
        """Return the fault in words, for logs."""
        quantity = f" ({self.reading})" if self.quantity else ""
        numbers = " ".join(f"{number:g}" for number in self.value)
        value = f": {numbers}" if numbers else ""
        span = "" if self.duration is None else f" for {self.duration:g} s"
        return f"{self.part} is {self.kind.value}{quantity}{value}{span}"


_OF_QUANTITY = (FaultKind.BIASED, FaultKind.NOISY, FaultKind.WRONG)
"""Kinds of a sensor's fault that concern one quantity."""


def components(quantity: str, params: VehicleParameters) -> int:
    """Return the number of components of a sensor's quantity."""
    if quantity in _VECTORS:
        return 3
    if quantity in _SCALARS:
        return 1
    return params.rotors if quantity == "rotor_rate" else len(params.wheels)


def parts_of(params: VehicleParameters) -> list[str]:
    """Return the names of a vehicle's parts that can have faults."""
    rotors = [f"rotor_{number + 1}" for number in range(params.rotors)]
    wheels = [f"{actuator}_{wheel}" for actuator in ("drive", "brake") for wheel in params.wheels]
    return [*QUANTITIES, *rotors, *wheels, *_KINDS_OF_PARTS]


def fault_kind(name: str) -> FaultKind:
    """Return the kind of this name. Raise ConfigError if there is none."""
    check_choice("kind", name, [kind.value for kind in FaultKind])
    return FaultKind(name)


def kinds_of(part: str) -> tuple[FaultKind, ...]:
    """Return the kinds of faults that a part can have."""
    if part in QUANTITIES:
        return _SENSOR_KINDS
    return _KINDS_OF_PARTS.get(part, _MOTOR_KINDS)


def faulty_controls(
    controls: Controls, faults: Iterable[Fault], params: VehicleParameters, rotor_speed: Floats
) -> Controls:
    """Return what the actuators obey in place of `controls`, under acting faults.

    A rotor's thrust and torque grow with the square of its speed, so a share s of the thrust is a
    share √s of the speed and s of the torque. `rotor_speed` (rotors,): present speeds, rad/s.
    """
    for fault in faults:
        if fault.is_of_sensor or fault.part in (BATTERY, GAUGE, LINK):
            continue
        if fault.part == "steering":
            controls = replace(controls, steering=_obeyed(fault, np.asarray(controls.steering)))
            continue

        actuator, name = fault.part.split("_")
        if actuator == "rotor":
            controls = _with_faulty_rotor(controls, fault, int(name) - 1, params, rotor_speed)
            continue
        field = f"{actuator}_torque"
        torques = np.zeros(len(params.wheels)) + getattr(controls, field)
        wheel = params.wheels.index(name)
        torques[wheel] = _obeyed(fault, torques[wheel])
        controls = replace(controls, **{field: torques})
    return controls


def _obeyed(fault: Fault, command: Any) -> Any:
    """Return what a drive, a brake or the steering obeys in place of its command."""
    if fault.kind is FaultKind.OFF:
        return 0.0 * command
    value = fault.value[0]
    if fault.kind is FaultKind.STUCK:
        return value + 0.0 * command
    return command + value if fault.kind is FaultKind.BIASED else value * command


def _with_faulty_rotor(
    controls: Controls, fault: Fault, rotor: int, params: VehicleParameters, rotor_speed: Floats
) -> Controls:
    """Return the controls with that of a faulty rotor (from 0) replaced."""
    field = "rotor_torque" if controls.torques else "rotor_speed"
    commands = getattr(controls, field)
    values = np.zeros(params.rotors) + (0.0 if commands is None else commands)

    if fault.kind is not FaultKind.STUCK:
        share = 0.0 if fault.kind is FaultKind.OFF else fault.value[0]
        values[rotor] *= share if controls.torques else math.sqrt(share)
    elif controls.torques:
        held = fault.value[0]
        missing = held - rotor_speed[rotor]
        drag = params.torque_coefficient * held**2
        values[rotor] = drag + params.rotor_inertia * missing / HOLD_TIME
    else:
        values[rotor] = fault.value[0]
    return replace(controls, **{field: values})
