# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink HIL with one autopilot: simulated sensors out, actuator controls in, and the session.

MAVLink 2, dialect `common`. World axes NED, body axes FRD, as in MAVLink; times are whole
microseconds of `AutopilotClock`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_amphibious.sensors.samples import GpsSamples
from rfly_amphibious.simulation.commands import RotorCommand, WheelCommand
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.errors import ConfigError
from rfly_common.frames import enu_to_ned, flu_to_frd, quat_enu_flu_to_ned_frd
from rfly_common.geodesy import GeoPoint, ned_to_geodetic
from rfly_common.physics import GRAVITY, pressure_altitude, standard_density, standard_temperature
from rfly_mavlink.dialect.wire import StreamReader, Writer, load_dialect
from rfly_mavlink.links.controller_session import HEARTBEAT_EVERY_S, ControllerSession
from rfly_mavlink.links.perception import Perception
from rfly_mavlink.links.transport import Handler, Transport

PORT = 4560
"""Port to which an autopilot connects."""

FIRST_WORD_S = 1.0
"""Wall time after connecting in which an autopilot may begin to control, s."""

COUNTERS = ("received", "controls", "bad_data", "overflow")
"""Counters of a session.

- received: complete messages
- controls: HIL_ACTUATOR_CONTROLS among them
- bad_data: places in the stream that hold no message
- overflow: the oldest controls of a full queue
"""

CONTROLS = 16
"""Number of controls in HIL_ACTUATOR_CONTROLS."""

# bits of HIL_SENSOR.fields_updated
ACCELEROMETER = 0x7
GYROSCOPE = 0x38
MAGNETOMETER = 0x1C0
ABSOLUTE_PRESSURE = 0x200
DIFFERENTIAL_PRESSURE = 0x400
PRESSURE_ALTITUDE = 0x800
TEMPERATURE = 0x1000
RESET = 0x80000000

ARMED = 128
"""Bit of HIL_ACTUATOR_CONTROLS.mode, MAV_MODE_FLAG_SAFETY_ARMED."""

FIX_3D = 3
"""Type of a GPS fix with an altitude."""

SATELLITES = 10
"""Satellites, as in PX4's own simulation (SIM_GPS_USED): it counts them before it trusts a fix."""

UNKNOWN_ACCURACY = 65535
"""Accuracy of HIL_GPS that means unknown."""

SYSTEM_ID = 1
"""MAVLink system of the simulator, which is the autopilot's."""

COMPONENT_ID = 51
"""MAVLink component of the simulator."""

_HEARTBEAT_VERSION = 3
_GAUSS_PER_TESLA = 1e4
_CM = 1e2
_MM = 1e3
_DEG_E7 = 1e7


@dataclasses.dataclass(frozen=True)
class ControlMapping:
    """Control of each actuator among the 16; -1: none, the actuator rests."""

    rotors: Sequence[int]
    """One control per rotor, 0 … 1 of its largest speed."""

    steering: int = 8
    """Control of the steering, -1 … 1 of the largest angle, positive to the left."""

    drive: int = 9
    """Control of the motors, -1 … 1 of the largest torque of each driven wheel."""

    brake: int = 10
    """Control of the brakes, 0 … 1 of the largest torque of each wheel."""

    @classmethod
    def default(cls, rotors: int) -> ControlMapping:
        """Return the default: the first controls for the rotors, then 8, 9, 10."""
        return cls(tuple(range(rotors)))

    def check(self, params: VehicleParameters) -> None:
        """Raise ConfigError if the mapping does not fit the vehicle."""
        if len(self.rotors) != params.rotors:
            raise ConfigError(
                f"rotor_controls: {len(self.rotors)} given, "
                f"expected one for each of {params.rotors}"
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
        """Return the command for HIL_ACTUATOR_CONTROLS.controls.

        NaN counts as 0: autopilots send it for outputs that are off.
        """
        shares = np.array([_control(controls, k, 0.0) for k in self.rotors])
        return RotorCommand(time, shares * params.max_rotor_speed)

    def wheel_command(
        self,
        time: float,
        controls: Sequence[float],
        params: VehicleParameters,
        armed: bool = True,
    ) -> WheelCommand:
        """Return the command for HIL_ACTUATOR_CONTROLS.controls; NaN counts as 0.

        The wheels are braked if the autopilot is not armed, and if neither drive nor brake has an
        output: it is NaN, or the mapping has none. A vehicle on a slope then stays where it is.
        """
        has_outputs = self._is_on(controls, self.drive) or self._is_on(controls, self.brake)
        if not armed or not has_outputs:
            return WheelCommand.braked(params, time, params.max_brake_torque)

        wheels = len(params.wheels)
        steering = _control(controls, self.steering, -1.0) * params.max_steering
        drive = _control(controls, self.drive, -1.0) * params.max_drive_torque
        brake = _control(controls, self.brake, 0.0) * params.max_brake_torque
        return WheelCommand(time, steering, np.full(wheels, drive), np.full(wheels, brake))

    @staticmethod
    def _is_on(controls: Sequence[float], index: int) -> bool:
        """Return whether an output exists and is not off."""
        return index >= 0 and not math.isnan(controls[index])


def _control(controls: Sequence[float], index: int, low: float) -> float:
    """Return a control within its range, up to 1; 0 for none or NaN."""
    value = controls[index] if index >= 0 else 0.0
    return 0.0 if math.isnan(value) else min(max(float(value), low), 1.0)


class HilMessages:
    """Messages of a simulator; `geo_origin` is the geodetic position of the world's origin."""

    def __init__(self, geo_origin: GeoPoint) -> None:
        self._dialect = load_dialect()
        self.geo_origin = geo_origin

    def heartbeat(self) -> Any:
        """Return a HEARTBEAT of something that is no autopilot."""
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
        """Return HIL_SENSOR; unmeasured fields are 0.

        Its fields_updated marks the sensors in `seen.fresh`. Pressure altitude and temperature are
        those of the standard atmosphere at the pressure. The differential pressure is that of the
        airspeed, negative from behind.
        """
        assert seen.imu is not None
        force = flu_to_frd(seen.imu.specific_force[-1])
        rates = flu_to_frd(seen.imu.rates[-1])
        field = np.nan_to_num(flu_to_frd(seen.field) * _GAUSS_PER_TESLA)

        # sensors with new samples
        updated = RESET if reset else 0
        if "imu" in seen.fresh:
            updated |= ACCELEROMETER | GYROSCOPE
        if "magnetometer" in seen.fresh:
            updated |= MAGNETOMETER
        if "barometer" in seen.fresh:
            updated |= ABSOLUTE_PRESSURE | PRESSURE_ALTITUDE | TEMPERATURE

        # standard atmosphere
        hectopascal = altitude = celsius = 0.0
        if math.isfinite(seen.pressure) and seen.pressure > 0.0:
            hectopascal = seen.pressure / 100.0
            altitude = pressure_altitude(seen.pressure)
            celsius = standard_temperature(altitude) - 273.15

        # dynamic pressure ρ/2 V², hPa
        differential = 0.0
        speed = seen.airspeed
        if math.isfinite(speed):
            density = float(standard_density(altitude))
            differential = 0.005 * density * speed * abs(speed)
            updated |= DIFFERENTIAL_PRESSURE if "wind" in seen.fresh else 0

        return self._dialect.MAVLink_hil_sensor_message(
            time_usec,
            *_singles((*force, *rates, *field, hectopascal, differential, altitude, celsius)),
            updated,
        )

    def gps(self, time_usec: int, fixes: GpsSamples, horizontal: float, vertical: float) -> Any:
        """Return HIL_GPS of the last sample; accuracies in m, 1 σ, NaN: unknown."""
        latitude, longitude, altitude = fixes.geodetic[-1].tolist()
        north, east, down = enu_to_ned(fixes.velocity[-1]).tolist()
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
        """Return HIL_STATE_QUATERNION of the pose, with the IMU's specific force in mG.

        The airspeeds are 0, because nothing measures them.
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
    """Return horizontal and vertical accuracy, m, 1 σ, of a 3 x 3 position covariance, ENU.

    NaN: the covariance is not finite.
    """
    covariance = np.asarray(position_covariance, float).ravel()
    level = float(np.max(covariance[[0, 4]]))
    upright = float(covariance[8])
    return _root(level), _root(upright)


def _root(variance: float) -> float:
    """Return the standard deviation of a variance; NaN if it is not finite."""
    return math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan


def _accuracy(metres: float) -> int:
    """Return an accuracy as HIL_GPS has it, cm."""
    if not math.isfinite(metres):
        return UNKNOWN_ACCURACY
    return _within(metres * _CM, 0, UNKNOWN_ACCURACY - 1)


def _singles(values: ArrayLike) -> list[float]:
    """Return values limited to the range of 32-bit floats."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.asarray(values, float), -most, most).tolist()


def _within(value: float, low: int, high: int) -> int:
    """Return a value rounded and limited."""
    return round(min(max(value, low), high))


def _short(value: float) -> int:
    """Return a value as an int16."""
    return _within(value, -32768, 32767)


def _long(value: float) -> int:
    """Return a value as an int32."""
    return _within(value, -(2**31), 2**31 - 1)


class ActuatorControls(NamedTuple):
    """Content of HIL_ACTUATOR_CONTROLS."""

    time_usec: int
    """Time, µs."""

    controls: tuple[float, ...]
    """Controls, (16,)."""

    armed: bool
    """True if the autopilot is armed."""


class _AutopilotState(enum.Enum):
    """State of the connected autopilot."""

    SILENT = enum.auto()
    SPEAKING = enum.auto()
    CONTROLLING = enum.auto()


class HilSession(ControllerSession[ActuatorControls]):
    """Session with an autopilot: sends messages, takes HIL_ACTUATOR_CONTROLS.

    `connect` makes a TcpTransport or a SerialTransport: an autopilot connects by TCP, as PX4's
    simulation does, or is at the end of a serial line.
    """

    def __init__(
        self,
        messages: HilMessages,
        connect: Callable[[Handler], Transport],
        wake: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(connect, wake, COUNTERS)
        self._messages = messages
        self._reader = StreamReader()
        self._writer = Writer(SYSTEM_ID, component_id=COMPONENT_ID)
        self._lock = threading.Lock()
        self._opened_at = float("-inf")
        self._state = _AutopilotState.SILENT
        self.connections = 0
        """Number of connections up to now."""

    @property
    def up(self) -> bool:
        """True if the connected autopilot has sent controls: from then on it is waited for."""
        return self._state is _AutopilotState.CONTROLLING

    @property
    def booting(self) -> bool:
        """True if the autopilot is connected and does not control yet.

        It then gets its sensors without being waited for. A silent autopilot may still control from
        the start during its first second.
        """
        if not self.peer or self.up:
            return False
        waited = time.monotonic() - self._opened_at > FIRST_WORD_S
        return self._state is _AutopilotState.SPEAKING or waited

    def send(self, *messages: Any) -> None:
        """Send to the autopilot, if there is one, without waiting."""
        if not self._transport.peer:
            return
        with self._lock:
            for message in messages:
                self._transport.send(self._writer.write(message))

    # --- in the transport's thread

    def opened(self, peer: str) -> None:
        """Take note of a new connection."""
        self._reader.restart()
        self._state = _AutopilotState.SILENT
        self._opened_at = time.monotonic()
        self._commanded_at = float("-inf")
        self._heartbeat_at = -HEARTBEAT_EVERY_S
        self._queue.clear()
        self.connections += 1

    def closed(self) -> None:
        """Take note that the autopilot is gone."""
        self._state = _AutopilotState.SILENT

    def parse(self, data: bytes) -> list[Any]:
        """Return the messages that end in a piece of the stream."""
        messages = self._reader.read(data)
        self._counts["bad_data"] = self._reader.bad_data
        self._counts["received"] += len(messages)
        return messages

    def take(self, items: list[Any]) -> bool:
        """Take the messages; each of them is a sign of life."""
        controls = [message for message in items if message.get_type() == "HIL_ACTUATOR_CONTROLS"]
        for message in controls:
            armed = bool(message.mode & ARMED)
            self._queue_command(ActuatorControls(message.time_usec, tuple(message.controls), armed))
        self._counts["controls"] += len(controls)

        first = self._state is _AutopilotState.SILENT
        if controls:
            self._state = _AutopilotState.CONTROLLING
        elif first:
            self._state = _AutopilotState.SPEAKING
        if controls or first:
            self._wake_up()
        return True

    def _send_heartbeat(self) -> None:
        self.send(self._messages.heartbeat())


FIRST_STEP_USEC = 4000
"""Step after a reset if the autopilot has had one state only, µs: PX4 wants 250 Hz."""


class AutopilotClock:
    """Clock of one connected autopilot.

    PX4 in lock-step takes its clock from the simulator. If that goes back, its threads wait until
    the old time is reached again. After a reset of simulated time this clock therefore goes on
    with the next step.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with an autopilot that has just connected: it gets the simulation's time."""
        self._offset = 0
        self._last = -1
        self._step = FIRST_STEP_USEC

    def advance(self, stamp_ns: int) -> int:
        """Return the time of a new state, µs, which is later than that of the state before."""
        usec = max(stamp_ns, 0) // 1000 + self._offset
        if usec <= self._last:
            self._offset += self._last + self._step - usec
            usec = self._last + self._step
        elif self._last >= 0:
            self._step = usec - self._last
        self._last = usec
        return usec

    def of_sample(self, time_s: float) -> int:
        """Return the time of a sample since the last reset, µs."""
        return max(round(time_s * 1e6) + self._offset, 0)
