"""MAVLink HIL with one autopilot: simulated sensors to it, its actuator controls to commands, the
session with it.

MAVLink 2, dialect `common`. World axes NED, body axes FRD, as MAVLink has them; times are whole
microseconds.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.control.commands import RotorCommand, WheelCommand
from rfly_amphibious.links.controller_session import HEARTBEAT_EVERY_S, ControllerSession
from rfly_amphibious.links.perception import Perception
from rfly_amphibious.links.transport import Handler, Transport
from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_enu_flu_to_ned_frd
from rfly_common.geodesy import GeoPoint, ned_to_geodetic
from rfly_common.physics import GRAVITY, pressure_altitude, standard_density, standard_temperature
from rfly_missions.mavlink.wire import load_dialect

PORT = 4560
FIRST_WORD_S = 1.0
"""of wall time after it has connected, in which an autopilot may say that it wants to be waited for
from the start
"""
_MOST_KEPT = 1 << 16
COUNTERS = ("received", "controls", "bad_data", "overflow")
"""received: whole messages · controls: of them HIL_ACTUATOR_CONTROLS · bad_data: places that hold
no message · overflow: the oldest of a full queue
"""
CONTROLS = 16
ACCELEROMETER = 0x7
GYROSCOPE = 0x38
MAGNETOMETER = 0x1C0
ABSOLUTE_PRESSURE = 0x200
DIFFERENTIAL_PRESSURE = 0x400
PRESSURE_ALTITUDE = 0x800
TEMPERATURE = 0x1000
RESET = 0x80000000
"""bits of HIL_SENSOR.fields_updated"""
FIX_3D = 3
SATELLITES = 10
UNKNOWN_ACCURACY = 65535
"""as many satellites as PX4's own simulation has (SIM_GPS_USED): it counts them before it trusts a
fix
"""
SYSTEM_ID = 1
COMPONENT_ID = 51

_HEARTBEAT_VERSION = 3
_GAUSS_PER_TESLA = 1e4
_CM = 1e2
_MM = 1e3
_DEG_E7 = 1e7


@dataclasses.dataclass(frozen=True)
class ControlMapping:
    """Which of the 16 controls an actuator takes; -1: none, it rests."""

    rotors: Sequence[int]
    """one a rotor, 0 … 1 of its largest speed"""
    steering: int = 8
    """-1 … 1 of the largest angle, positive = left"""
    drive: int = 9
    """-1 … 1 of the largest torque of each driven wheel"""
    brake: int = 10
    """0 … 1 of the largest torque of each wheel"""

    @classmethod
    def default(cls, rotors: int) -> ControlMapping:
        """The first for the rotors, then 8, 9, 10."""
        return cls(tuple(range(rotors)))

    def check(self, params: VehicleParameters) -> None:
        """Raises ConfigError that says what does not fit the vehicle."""
        if len(self.rotors) != params.rotors:
            raise ConfigError(
                f"rotor_controls: {len(self.rotors)} given, expected one for each of {params.rotors}"
            )
        used = [*self.rotors, self.steering, self.drive, self.brake]
        for control in used:
            if not -1 <= control < CONTROLS:
                raise ConfigError(
                    f"control {control}: expected 0 to {CONTROLS - 1}, or -1 for none"
                )
            if control >= 0 and used.count(control) > 1:
                raise ConfigError(f"control {control}: two actuators cannot share it")

    def rotor_command(
        self, time: float, controls: Sequence[float], params: VehicleParameters
    ) -> RotorCommand:
        """Of HIL_ACTUATOR_CONTROLS.controls; NaN counts as 0, as autopilots send it for what is
        off.
        """
        shares = np.array([_control(controls, k, 0.0) for k in self.rotors])
        return RotorCommand(time, shares * params.max_rotor_speed)

    def wheel_command(
        self, time: float, controls: Sequence[float], params: VehicleParameters
    ) -> WheelCommand:
        """As `rotor_command`."""
        drive = _control(controls, self.drive, -1.0) * params.max_drive_torque
        return WheelCommand(
            time,
            _control(controls, self.steering, -1.0) * params.max_steering,
            np.full(len(params.wheels), drive),
            np.full(
                len(params.wheels), _control(controls, self.brake, 0.0) * params.max_brake_torque
            ),
        )


def _control(controls: Sequence[float], index: int, low: float) -> float:
    value = controls[index] if index >= 0 else 0.0
    return 0.0 if math.isnan(value) else min(max(float(value), low), 1.0)


class HilMessages:
    """Makes the messages of a simulator; `geo_origin` is that of the world's origin."""

    def __init__(self, geo_origin: GeoPoint) -> None:
        self._dialect = load_dialect()
        self.geo_origin = geo_origin

    def heartbeat(self) -> Any:
        """HEARTBEAT of something that is no autopilot."""
        d = self._dialect
        return d.MAVLink_heartbeat_message(
            d.MAV_TYPE_GENERIC,
            d.MAV_AUTOPILOT_INVALID,
            0,
            0,
            d.MAV_STATE_ACTIVE,
            _HEARTBEAT_VERSION,
        )

    def sensors(self, time_usec: int, seen: Perception, reset: bool = False) -> Any:
        """HIL_SENSOR; fields_updated tells of what is in `seen.fresh`. What was never measured is
        0.

        Pressure altitude and temperature are those of the standard atmosphere at the pressure,
        differential pressure is that of the airspeed, negative from behind.
        """
        assert seen.imu is not None
        force = flu_to_frd(seen.imu.specific_force[-1])
        rates = flu_to_frd(seen.imu.rates[-1])
        field = np.nan_to_num(flu_to_frd(seen.field) * _GAUSS_PER_TESLA)
        updated = RESET if reset else 0
        if "imu" in seen.fresh:
            updated |= ACCELEROMETER | GYROSCOPE
        if "magnetometer" in seen.fresh:
            updated |= MAGNETOMETER
        if "barometer" in seen.fresh:
            updated |= ABSOLUTE_PRESSURE | PRESSURE_ALTITUDE | TEMPERATURE
        hectopascal = altitude = celsius = 0.0
        if math.isfinite(seen.pressure) and seen.pressure > 0.0:
            hectopascal = seen.pressure / 100.0
            altitude = pressure_altitude(seen.pressure)
            celsius = standard_temperature(altitude) - 273.15
        differential = 0.0
        speed = seen.airspeed
        if math.isfinite(speed):
            differential = (
                0.005 * float(standard_density(altitude)) * speed * abs(speed)
            )  # of ρ/2 V², in hPa
            updated |= DIFFERENTIAL_PRESSURE if "wind" in seen.fresh else 0
        return self._dialect.MAVLink_hil_sensor_message(
            time_usec,
            *_singles((*force, *rates, *field, hectopascal, differential, altitude, celsius)),
            updated,
        )

    def gps(self, time_usec: int, given: GpsSamples, horizontal: float, vertical: float) -> Any:
        """HIL_GPS of the last sample; accuracies in m, 1 σ, NaN: not known."""
        latitude, longitude, altitude = given.geodetic[-1].tolist()
        north, east, down = enu_to_ned(given.velocity[-1]).tolist()
        course = math.degrees(math.atan2(east, north)) % 360.0
        return self._dialect.MAVLink_hil_gps_message(
            time_usec,
            FIX_3D,
            _long(latitude * _DEG_E7),
            _long(longitude * _DEG_E7),
            _long(altitude * _MM),
            _accuracy(horizontal),
            _accuracy(vertical),
            _within(math.hypot(north, east) * _CM, 0, 65534),
            _short(north * _CM),
            _short(east * _CM),
            _short(down * _CM),
            _within(course * 100.0, 0, 36000) % 36000,
            SATELLITES,
        )

    def state(self, time_usec: int, seen: Perception) -> Any:
        """HIL_STATE_QUATERNION of the pose; specific force from the IMU in mG; airspeeds 0, nobody
        measures them.
        """
        pose = seen.pose
        imu = seen.imu
        assert pose is not None
        assert imu is not None
        qx, qy, qz, qw = quat_enu_flu_to_ned_frd(pose.orientation).tolist()
        latitude, longitude, altitude = ned_to_geodetic(
            enu_to_ned(pose.position), self.geo_origin
        ).tolist()
        force = flu_to_frd(imu.specific_force[-1]) / GRAVITY * 1000.0
        return self._dialect.MAVLink_hil_state_quaternion_message(
            time_usec,
            (qw, qx, qy, qz),
            *_singles(flu_to_frd(pose.rates)),
            _long(latitude * _DEG_E7),
            _long(longitude * _DEG_E7),
            _long(altitude * _MM),
            *(_short(v) for v in (enu_to_ned(pose.velocity) * _CM).tolist()),
            0,
            0,
            *(_short(a) for a in force.tolist()),
        )


def accuracies(position_covariance: ArrayLike) -> tuple[float, float]:
    """(horizontal, vertical) m, 1 σ, of a 3 x 3 covariance, ENU, in nine numbers; NaN where it is
    not finite.
    """
    covariance = np.asarray(position_covariance, float).ravel()
    level = float(np.max(covariance[[0, 4]]))
    upright = float(covariance[8])
    return _root(level), _root(upright)


def _root(variance: float) -> float:
    return math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan


def _accuracy(metres: float) -> int:
    return (
        _within(metres * _CM, 0, UNKNOWN_ACCURACY - 1)
        if math.isfinite(metres)
        else UNKNOWN_ACCURACY
    )


def _singles(values: ArrayLike) -> list[float]:
    """As far as 32 bits go."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.asarray(values, float), -most, most).tolist()


def _within(value: float, low: int, high: int) -> int:
    return round(min(max(value, low), high))


def _short(value: float) -> int:
    return _within(value, -32768, 32767)


def _long(value: float) -> int:
    return _within(value, -(2**31), 2**31 - 1)


class ActuatorControls(NamedTuple):
    """HIL_ACTUATOR_CONTROLS."""

    time_usec: int
    controls: tuple[float, ...]
    """(16,)"""


class HilSession(ControllerSession[ActuatorControls]):
    """Sends messages, takes HIL_ACTUATOR_CONTROLS. `connect` makes a TcpTransport or a
    SerialTransport: an autopilot connects by TCP, as PX4's simulation does, or is at the end of a
    serial line.
    """

    def __init__(
        self,
        messages: HilMessages,
        connect: Callable[[Handler], Transport],
        wake: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(connect, wake, COUNTERS)
        self._dialect = load_dialect()
        self._messages = messages
        self._parser = self._new_parser()
        self._packer = self._dialect.MAVLink(None, SYSTEM_ID, COMPONENT_ID)
        self._lock = threading.Lock()
        self._opened_at = float("-inf")
        self._spoke = False
        self.up = False
        """whether the autopilot that is connected has sent controls: from then on it is waited for
        """
        self.connections = 0

    @property
    def booting(self) -> bool:
        """Whether the autopilot is connected, and does not control yet: it gets its sensors without
        being waited for.

        In its first second, until it has said anything, it may still turn out to control from the
        start.
        """
        if not self.peer or self.up:
            return False
        return self._spoke or time.monotonic() - self._opened_at > FIRST_WORD_S

    def send(self, *messages: Any) -> None:
        """To the autopilot, if there is one. Never waits."""
        if not self._transport.peer:
            return
        with self._lock:
            for message in messages:
                self._transport.send(bytes(message.pack(self._packer)))
                self._packer.seq = (self._packer.seq + 1) % 256

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """An autopilot has connected."""
        self._parser = self._new_parser()
        self.up = False
        self._spoke = False
        self._opened_at = time.monotonic()
        self._commanded_at = float("-inf")
        self._heartbeat_at = -HEARTBEAT_EVERY_S
        self._queue.clear()
        self.connections += 1

    def closed(self) -> None:
        """It has gone."""
        self.up = False

    def parse(self, data: bytes) -> list[Any]:
        """The messages of a piece of the stream."""
        parser = self._parser
        found = parser.parse_buffer(data) or []
        if (
            parser.buf_index > _MOST_KEPT
        ):  # it lets go of what it has read only where nothing is left over
            del parser.buf[: parser.buf_index]
            parser.buf_index = 0
        whole = [message for message in found if message.get_type() != "BAD_DATA"]
        self._counts["bad_data"] += len(found) - len(whole)
        self._counts["received"] += len(whole)
        return whole

    def take(self, items: list[Any]) -> bool:
        """Whatever it says is a sign of life."""
        controls = False
        for message in items:
            if message.get_type() != "HIL_ACTUATOR_CONTROLS":
                continue
            self._queue_command(ActuatorControls(message.time_usec, tuple(message.controls)))
            self._counts["controls"] += 1
            self.up = controls = True
        first = not self._spoke
        self._spoke = True
        if controls or first:
            self._wake_up()
        return True

    def _send_heartbeat(self) -> None:
        self.send(self._messages.heartbeat())

    def _new_parser(self) -> Any:
        parser = self._dialect.MAVLink(None)
        parser.robust_parsing = True
        return parser
