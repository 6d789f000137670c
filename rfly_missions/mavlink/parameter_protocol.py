# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's parameter protocol, the vehicle's side: numbers with ranges, all MAV_PARAM_TYPE_REAL32.

https://mavlink.io/en/services/parameter.html
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from typing import Any

from rfly_common.errors import ConfigError
from rfly_missions.followers.multirotor import RETURN_HEIGHT
from rfly_missions.mavlink.wire import load_dialect, sender_of


def tunable(name: str, default: float, text: str, low: float, high: float, unit: str = "") -> Any:
    """Return a field of `Tunables`; `name` is MAVLink's, of at most 16 letters."""
    return dataclasses.field(
        default=default,
        metadata={"name": name, "text": text, "low": low, "high": high, "unit": unit},
    )


@dataclasses.dataclass
class Tunables:
    """Parameters of a vehicle that ground stations may change; names are PX4's if it has them."""

    takeoff_altitude: float = tunable(
        "MIS_TAKEOFF_ALT", 10.0, "height of a take-off without one", 0.5, 1000.0, "m"
    )
    acceptance_radius: float = tunable(
        "NAV_ACC_RAD", 2.0, "of way-points that have none", 0.05, 200.0, "m"
    )
    loiter_radius: float = tunable(
        "NAV_LOITER_RAD", 25.0, "of orbits that have none", 1.0, 10_000.0, "m"
    )
    cruise_speed: float = tunable(
        "RFLY_CRUISE_SPD", 0.0, "over ground; 0: the vehicle's own", 0.0, 100.0, "m/s"
    )
    return_altitude: float = tunable(
        "RTL_RETURN_ALT",
        RETURN_HEIGHT,
        "height to which a return climbs",
        RETURN_HEIGHT,
        1000.0,
        "m",
    )
    disarm_after_landing: float = tunable(
        "COM_DISARM_LAND", 2.0, "disarms this long after landing", 0.1, 60.0, "s"
    )
    disarm_before_flight: float = tunable(
        "COM_DISARM_PRFLT", 10.0, "disarms where it stays down", 1.0, 3600.0, "s"
    )
    offboard_loss: float = tunable(
        "COM_OF_LOSS_T", 1.0, "without set-points OFFBOARD ends after it", 0.1, 60.0, "s"
    )
    battery_capacity: float = tunable(
        "BAT1_CAPACITY", 5000.0, "of the full battery", 10.0, 1e6, "mAh"
    )
    battery_cells: float = tunable("BAT1_N_CELLS", 4.0, "in series", 1.0, 24.0)
    battery_resistance: float = tunable("BAT1_R_INTERNAL", 0.02, "of all cells", 0.0, 1.0, "Ohm")
    battery_low: float = tunable("BAT_LOW_THR", 0.15, "charge below which it warns", 0.05, 0.5)
    flying_power: float = tunable("RFLY_POWER_FLY", 200.0, "drawn in the air", 0.0, 1e6, "W")
    idle_power: float = tunable("RFLY_POWER_IDLE", 5.0, "drawn always", 0.0, 1e5, "W")


_FIELDS = {field.metadata["name"]: field for field in dataclasses.fields(Tunables)}
NAMES = tuple(_FIELDS)
GAIN_NAMES = {
    "RFLY_ATT_FREQ": "attitude_frequency",
    "RFLY_ATT_DAMPING": "attitude_damping",
    "RFLY_POS_GAIN": "position_gain",
    "RFLY_VEL_GAIN": "velocity_gain",
    "RFLY_TILT_MAX": "max_tilt",
}
"""Names of a controller's gains: those in MAVLink, and those in its node."""


def _no_controller(_name: str, _value: float, done: Callable[[str], None]) -> None:
    done("no controller answers")


@dataclasses.dataclass
class ControllerGains:
    """Gains last reported by the vehicle's controller, by parameter name; empty before that."""

    values: dict[str, float] = dataclasses.field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Least and largest value."""
    ask: Callable[[str, float, Callable[[str], None]], None] = _no_controller
    """Request of a gain; its callback receives the reason of a refusal, or "" once it is set."""

    def forget(self) -> None:
        """Forget the gains: the controller is gone."""
        self.values.clear()
        self.ranges.clear()


def range_of(name: str) -> tuple[float, float]:
    """Return the least and the largest value of a parameter."""
    metadata = _FIELDS[name].metadata
    return metadata["low"], metadata["high"]


def set_values(values: Tunables, assignments: Iterable[str]) -> None:
    """Set values from texts such as MIS_TAKEOFF_ALT=20; raise ConfigError for a wrong one."""
    for text in assignments:
        name, _, number = text.partition("=")
        if name not in _FIELDS:
            raise ConfigError(f"{text!r}: expected NAME=value, NAME one of {', '.join(NAMES)}")
        low, high = range_of(name)
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ConfigError(f"{text!r}: expected {low:g} to {high:g}")
        setattr(values, _FIELDS[name].name, value)


class ParameterProtocol:
    """Answers to the messages of `HANDLED`."""

    HANDLED = frozenset({"PARAM_REQUEST_LIST", "PARAM_REQUEST_READ", "PARAM_SET"})

    def __init__(
        self,
        values: Tunables,
        gains: ControllerGains,
        send: Callable[[Any], None],
        report: Callable[[str], None],
    ) -> None:
        """Start; `report` receives the reasons of refusals."""
        self._d = load_dialect()
        self._values = values
        self._gains = gains
        self._send = send
        self._report = report

    @property
    def _names(self) -> list[str]:
        return [*NAMES, *self._gains.values]

    def handle(self, message: Any) -> None:
        """Take one of HANDLED, for this vehicle."""
        kind = message.get_type()
        if kind == "PARAM_REQUEST_LIST":
            for name in self._names:
                self._send_value(name)
            return

        names = self._names
        name = _text(message.param_id)
        index = message.param_index if kind == "PARAM_REQUEST_READ" else -1
        if 0 <= index < len(names):
            name = names[index]
        elif index >= len(names) or name not in names:
            self._send_error(message, "MAV_PARAM_ERROR_DOES_NOT_EXIST")
            return

        if kind == "PARAM_SET" and not self._fits(name, message):
            self._send_error(message, "MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE")
        elif kind == "PARAM_SET" and name not in _FIELDS:
            value = float(message.param_value)
            self._gains.ask(name, value, lambda why: self._on_answer(name, message, why))
            return
        elif kind == "PARAM_SET":
            setattr(self._values, _FIELDS[name].name, float(message.param_value))
        self._send_value(name)

    def _on_answer(self, name: str, message: Any, why: str) -> None:
        if why:
            self._report(f"{name} refused: {why}")
            self._send_error(message, "MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE")
        if name in self._gains.values:
            self._send_value(name)

    def _fits(self, name: str, message: Any) -> bool:
        """Return whether a value can be taken; a type other than REAL32 is refused."""
        low, high = range_of(name) if name in _FIELDS else self._gains.ranges[name]
        value = float(message.param_value)
        of_type = message.param_type == self._d.MAV_PARAM_TYPE_REAL32

        if not (of_type and math.isfinite(value) and low <= value <= high):
            self._report(f"{name} refused: expected {low:g} to {high:g} as REAL32")
            return False
        return True

    def _send_value(self, name: str) -> None:
        if name in _FIELDS:
            value = getattr(self._values, _FIELDS[name].name)
        else:
            value = self._gains.values[name]
        d = self._d
        names = self._names
        self._send(
            d.MAVLink_param_value_message(
                name.encode(), value, d.MAV_PARAM_TYPE_REAL32, len(names), names.index(name)
            )
        )

    def _send_error(self, message: Any, error: str) -> None:
        fields = (
            _text(message.param_id).encode(),
            getattr(message, "param_index", -1),
            getattr(self._d, error),
        )
        self._send(self._d.MAVLink_param_error_message(*sender_of(message), *fields))


def _text(param_id: Any) -> str:
    """Return a parameter's name as text, without letters beyond ASCII."""
    text = param_id.decode("ascii", "ignore") if isinstance(param_id, bytes) else str(param_id)
    return text.rstrip("\0").encode("ascii", "ignore").decode("ascii")[:16]
