# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's parameter protocol, the vehicle's side: numbers with ranges, and fixed integers.

A value on the wire is the number's own bytes, as MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
says: an integer is no rounded float. A number may be set by any type of up to 32 bits.
https://mavlink.io/en/services/parameter.html
"""

from __future__ import annotations

import dataclasses
import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from rfly_common.energy.battery import BatteryPack
from rfly_common.errors import ConfigError
from rfly_mavlink.dialect.wire import Address, Send, load_dialect, payload_of, sender_of
from rfly_missions.followers.multirotor import RETURN_HEIGHT


class FixedParameter(NamedTuple):
    """A value of MAV_PARAM_TYPE_INT32, and its explanation."""

    value: int
    text: str


AIRFRAMES = {"fixed-wing": 2100, "ground": 50000}
"""PX4's generic airframe (plane, rover) by kind of vehicle."""
MULTIROTOR_AIRFRAMES = {6: 6001, 8: 8001}
"""PX4's generic airframe of hexarotors and octorotors, by the number of rotors."""
QUADROTOR_AIRFRAME = 4001
"""PX4's generic quadrotor, which stands for multirotors with other numbers of rotors."""
SIMULATED_IMU = 1_310_988
"""Device id of a simulated gyroscope and accelerometer in PX4: DRV_IMU_DEVTYPE_SIM, bus 1."""
SIMULATED_COMPASS = 197_388
"""Device id of a simulated magnetometer in PX4."""
_CALIBRATED = "id of the simulated {}, which needs no calibration"


def fixed_parameters(uav_type: str, system_id: int, rotors: int = 4) -> dict[str, FixedParameter]:
    """Return the parameters of a vehicle, by name."""
    airframe = f"PX4's generic airframe for a vehicle of the kind {uav_type}"
    parameters = {
        "SYS_AUTOSTART": FixedParameter(
            AIRFRAMES.get(uav_type, MULTIROTOR_AIRFRAMES.get(rotors, QUADROTOR_AIRFRAME)), airframe
        ),
        "MAV_SYS_ID": FixedParameter(system_id, "MAVLink system id"),
        "COM_RC_IN_MODE": FixedParameter(1, "1: there is no radio control"),
        "CAL_GYRO0_ID": FixedParameter(SIMULATED_IMU, _CALIBRATED.format("gyroscope")),
        "CAL_ACC0_ID": FixedParameter(SIMULATED_IMU, _CALIBRATED.format("accelerometer")),
        "CAL_MAG0_ID": FixedParameter(SIMULATED_COMPASS, _CALIBRATED.format("magnetometer")),
    }
    if uav_type == "fixed-wing":
        parameters["FW_ARSP_MODE"] = FixedParameter(1, "1: there is no airspeed sensor")
    return parameters


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
        "MIS_TAKEOFF_ALT", 10.0, "height of a take-off that gives none", 0.5, 1000.0, "m"
    )
    acceptance_radius: float = tunable(
        "NAV_ACC_RAD", 2.0, "acceptance radius of way-points that have none", 0.05, 200.0, "m"
    )
    loiter_radius: float = tunable(
        "NAV_LOITER_RAD", 25.0, "radius of orbits that have none", 1.0, 10_000.0, "m"
    )
    cruise_speed: float = tunable(
        "RFLY_CRUISE_SPD", 0.0, "speed over ground; 0: the vehicle's own", 0.0, 100.0, "m/s"
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
        "COM_DISARM_LAND", 2.0, "time from a landing to disarming", 0.1, 60.0, "s"
    )
    disarm_before_flight: float = tunable(
        "COM_DISARM_PRFLT",
        10.0,
        "time after which an armed vehicle that stays down disarms",
        1.0,
        3600.0,
        "s",
    )
    offboard_loss: float = tunable(
        "COM_OF_LOSS_T", 1.0, "time without set-points after which OFFBOARD ends", 0.1, 60.0, "s"
    )
    battery_capacity: float = tunable(
        "BAT1_CAPACITY", 5000.0, "charge of the full battery", 10.0, 1e6, "mAh"
    )
    battery_cells: float = tunable(
        "BAT1_N_CELLS", 4.0, "number of the battery's cells in series", 1.0, 24.0
    )
    battery_resistance: float = tunable(
        "BAT1_R_INTERNAL", 0.02, "internal resistance of the battery", 0.0, 1.0, "Ohm"
    )
    battery_low: float = tunable(
        "BAT_LOW_THR",
        0.15,
        "charge of the battery below which the vehicle warns; 1: full",
        0.05,
        0.5,
    )
    flying_power: float = tunable(
        "RFLY_POWER_FLY", 200.0, "additional power in the air", 0.0, 1e6, "W"
    )
    idle_power: float = tunable("RFLY_POWER_IDLE", 5.0, "power that is always drawn", 0.0, 1e5, "W")

    def battery_pack(self) -> BatteryPack:
        """Return the properties of the battery."""
        return BatteryPack(
            cells=self.battery_cells,
            capacity_ah=self.battery_capacity / 1000.0,
            resistance=self.battery_resistance,
            charge_rate=0.0,
        )


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


TYPE_UNSUPPORTED = 6
"""MAV_PARAM_ERROR_TYPE_UNSUPPORTED, which pymavlink's `common` lacks."""
_FORMATS = {1: "<B", 2: "<b", 3: "<H", 4: "<h", 5: "<I", 6: "<i", 9: "<f"}
"""Formats of `struct` by MAV_PARAM_TYPE; larger types do not fit into the message."""


def _no_controller(_name: str, _value: float, done: Callable[[str], None]) -> None:
    done("no controller answers")


@dataclasses.dataclass
class ControllerGains:
    """Gains last reported by the vehicle's controller, by parameter name; empty before that."""

    values: dict[str, float] = dataclasses.field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Least and largest value."""
    texts: dict[str, str] = dataclasses.field(default_factory=dict)
    """Explanations."""
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
        fixed: dict[str, FixedParameter],
        send: Send,
        report: Callable[[str], None],
    ) -> None:
        """Start; `report` receives the reasons of refusals."""
        self._d = load_dialect()
        self._values = values
        self._gains = gains
        self._fixed = fixed
        self._send = send
        self._report = report

    @property
    def _names(self) -> list[str]:
        return [*NAMES, *self._fixed, *self._gains.values]

    def handle(self, message: Any, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; values go to all stations, errors to `address`."""
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
            self._send_error(message, self._d.MAV_PARAM_ERROR_DOES_NOT_EXIST, address)
            return

        if kind == "PARAM_SET":
            self._set(name, message, address)
        else:
            self._send_value(name)

    def _set(self, name: str, message: Any, address: Address) -> None:
        """Set a value, or answer why not; the answer ends with the value in force."""
        value = _value_of(message)
        error = TYPE_UNSUPPORTED if value is None else self._problem(name, value)
        if value is None or error != self._d.MAV_PARAM_ERROR_NO_ERROR:
            self._send_error(message, error, address)
        elif name in self._gains.values:
            self._gains.ask(name, value, lambda why: self._on_answer(name, message, why, address))
            return
        elif name in _FIELDS:
            setattr(self._values, _FIELDS[name].name, value)
        self._send_value(name)

    def _on_answer(self, name: str, message: Any, why: str, address: Address) -> None:
        if why:
            self._report(f"{name} refused: {why}")
            self._send_error(message, self._d.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE, address)
        if name in self._gains.values:
            self._send_value(name)

    def _problem(self, name: str, value: float) -> int:
        """Return a MAV_PARAM_ERROR: why a value cannot be taken."""
        d = self._d
        nothing = int(d.MAV_PARAM_ERROR_NO_ERROR)
        if name in self._fixed:
            is_same = value == self._fixed[name].value
            return nothing if is_same else int(d.MAV_PARAM_ERROR_READ_ONLY)

        low, high = range_of(name) if name in _FIELDS else self._gains.ranges[name]
        if not low <= value <= high:
            self._report(f"{name} refused: expected {low:g} to {high:g}")
            return int(d.MAV_PARAM_ERROR_VALUE_OUT_OF_RANGE)
        return nothing

    def _send_value(self, name: str) -> None:
        d = self._d
        kind = d.MAV_PARAM_TYPE_REAL32
        if name in self._fixed:
            kind = d.MAV_PARAM_TYPE_INT32
            (value,) = struct.unpack("<f", struct.pack("<i", self._fixed[name].value))
        elif name in _FIELDS:
            value = getattr(self._values, _FIELDS[name].name)
        else:
            value = self._gains.values[name]
        names = self._names
        self._send(
            d.MAVLink_param_value_message(name.encode(), value, kind, len(names), names.index(name))
        )

    def _send_error(self, message: Any, error: int, address: Address) -> None:
        fields = (
            _text(message.param_id).encode(),
            getattr(message, "param_index", -1),
            error,
        )
        self._send(self._d.MAVLink_param_error_message(*sender_of(message), *fields), address)


def _value_of(message: Any) -> float | None:
    """Return the number in a PARAM_SET, by its type; None for a type that does not fit."""
    kind = _FORMATS.get(message.param_type)
    if kind is None:
        return None
    (value,) = struct.unpack_from(kind, payload_of(message, 4))
    return float(value)


def _text(param_id: Any) -> str:
    """Return a parameter's name as text, without letters beyond ASCII."""
    text = param_id.decode("ascii", "ignore") if isinstance(param_id, bytes) else str(param_id)
    return text.rstrip("\0").encode("ascii", "ignore").decode("ascii")[:16]
