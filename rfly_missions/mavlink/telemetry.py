"""Telemetry of a vehicle: the messages that ground stations get, at which rates, and a battery to
report.

Open-circuit voltage of a cell: straight lines through a lithium polymer's typical values, 3.3 V
empty, 3.7 V at 20 %, 4.2 V full. At the terminals V = V₀ - R I, and P = V I, so that I is the
smaller root of R I² - V₀ I + P = 0; power beyond V₀²/(4R) cannot be drawn. Current alone lowers the
charge: no temperature, ageing or self-discharge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rfly_common.geodesy import ned_to_geodetic
from rfly_missions.mavlink.flight import SILENCE_S, FlightLogic
from rfly_missions.mavlink.flight_modes import FlightMode
from rfly_missions.mavlink.gimbal_protocol import GimbalManager
from rfly_missions.mavlink.parameter_protocol import Tunables
from rfly_missions.mavlink.wire import load_dialect

LEAST_INTERVAL_S = 0.01
LONGEST_INTERVAL_S = 2000.0
"""the longest that MESSAGE_INTERVAL can tell is 2147 s"""
_DEG_E7 = 1e7
_MM = 1e3
_CM = 1e2
_UNKNOWN_U16 = 65535

RATES_HZ = {
    "HEARTBEAT": 1.0,
    "SYS_STATUS": 1.0,
    "EXTENDED_SYS_STATE": 2.0,
    "ATTITUDE": 20.0,
    "GLOBAL_POSITION_INT": 10.0,
    "LOCAL_POSITION_NED": 10.0,
    "VFR_HUD": 5.0,
    "GPS_RAW_INT": 2.0,
    "BATTERY_STATUS": 1.0,
    "HOME_POSITION": 1.0,
    "MISSION_CURRENT": 1.0,
    "GPS_GLOBAL_ORIGIN": 0.0,
    "AUTOPILOT_VERSION": 0.0,
    "GIMBAL_MANAGER_STATUS": 5.0,
    "GIMBAL_DEVICE_ATTITUDE_STATUS": 10.0,
    "GIMBAL_MANAGER_INFORMATION": 0.0,
    "GIMBAL_DEVICE_INFORMATION": 0.0,
}
"""how often without being asked; 0: only when it is asked for"""


_CHARGES = (0.0, 0.2, 1.0)
_CELL_VOLTAGES = (3.3, 3.7, 4.2)


class Battery:
    """The charge of one vehicle's battery, which `values` describe; begins full."""

    def __init__(self, values: Tunables) -> None:
        self.values = values
        self.used_ah = self.used_wh = self.current = self.power = 0.0
        """used so far; A and W of now"""

    @property
    def capacity_ah(self) -> float:
        """Full."""
        return self.values.battery_capacity / 1000.0

    @property
    def charge(self) -> float:
        """0 … 1."""
        return min(max(1.0 - self.used_ah / self.capacity_ah, 0.0), 1.0)

    @property
    def open_circuit_voltage(self) -> float:
        """V, without a load."""
        return self.values.battery_cells * float(np.interp(self.charge, _CHARGES, _CELL_VOLTAGES))

    @property
    def voltage(self) -> float:
        """V, at the current of now."""
        return self.open_circuit_voltage - self.values.battery_resistance * self.current

    def draw(self, power: float, dt: float) -> None:
        """Give `power` (W) for `dt` seconds; an empty battery gives nothing."""
        v0 = self.open_circuit_voltage
        resistance = self.values.battery_resistance
        if self.charge <= 0.0:
            self.current = self.power = 0.0
            return
        most = v0 * v0 / (4.0 * resistance) if resistance > 0.0 else math.inf
        self.power = min(power, most)
        root = math.sqrt(max(v0 * v0 - 4.0 * resistance * self.power, 0.0))
        self.current = 2.0 * self.power / (v0 + root)
        self.used_ah += self.current * dt / 3600.0
        self.used_wh += self.power * dt / 3600.0


class Telemetry:
    """Makes each message by its name; None where what it tells is not known."""

    def __init__(
        self,
        uav_type: str,
        system_id: int,
        flight: FlightLogic,
        battery: Battery,
        gimbal: GimbalManager,
    ) -> None:
        d = self._d = load_dialect()
        self._flight = flight
        self._battery = battery
        self._system_id = system_id
        self.gimbal = gimbal
        self._type = {
            "multirotor": d.MAV_TYPE_QUADROTOR,
            "fixed-wing": d.MAV_TYPE_FIXED_WING,
            "ground": d.MAV_TYPE_GROUND_ROVER,
            "land-air": d.MAV_TYPE_HEXAROTOR,
        }[uav_type]
        self._intervals = {name: 1.0 / rate if rate else 0.0 for name, rate in RATES_HZ.items()}
        self._sent_at = dict.fromkeys(self._intervals, -math.inf)
        self._names = {getattr(d, f"MAVLINK_MSG_ID_{name}"): name for name in self._intervals}
        self._make: dict[str, Callable[[int], Any]] = dict(gimbal.messages)
        self._make |= {
            name: getattr(self, f"_{name.lower()}")
            for name in self._intervals
            if name not in self._make
        }

    # --- rates

    def find(self, message_id: float) -> str | None:
        """The name of a message of ours by its number."""
        name = self._names.get(int(message_id)) if math.isfinite(message_id) else None
        return None if name in self.gimbal.messages and not self.gimbal.exists else name

    def set_interval(self, name: str, interval_us: float) -> None:
        """As MAV_CMD_SET_MESSAGE_INTERVAL has it: -1 never, 0 as without being asked."""
        default = 1.0 / RATES_HZ[name] if RATES_HZ[name] else 0.0
        asked = min(max(interval_us * 1e-6, LEAST_INTERVAL_S), LONGEST_INTERVAL_S)
        self._intervals[name] = (
            0.0 if interval_us < 0.0 else default if interval_us == 0.0 else asked
        )

    def interval_us(self, name: str) -> int:
        """As MESSAGE_INTERVAL tells it: -1 for what is not sent."""
        return round(self._intervals[name] * 1e6) or -1

    def due(self, now: float) -> list[str]:
        """What is to be sent now; a second of wall time that has passed is not made up for."""
        names = [
            name
            for name, interval in self._intervals.items()
            if interval and now - self._sent_at[name] >= interval - 1e-6
        ]
        for name in names:
            late = now - self._sent_at[name] > 2.0 * self._intervals[name]
            self._sent_at[name] = now if late else self._sent_at[name] + self._intervals[name]
        return names

    def message(self, name: str) -> Any:
        """Of now, or None."""
        if name in self.gimbal.messages and not self.gimbal.exists:
            return None
        return self._make[name](self._milliseconds())

    def _milliseconds(self) -> int:
        time = self._flight.pose.time
        return int(time * 1e3) % 2**32 if math.isfinite(time) and time > 0.0 else 0

    # --- state

    def _heartbeat(self, _: int) -> Any:
        d = self._d
        flight = self._flight
        mode = flight.shown_mode
        flags = d.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED | d.MAV_MODE_FLAG_STABILIZE_ENABLED
        flags |= d.MAV_MODE_FLAG_GUIDED_ENABLED
        flags |= 0 if mode is FlightMode.OFFBOARD else d.MAV_MODE_FLAG_AUTO_ENABLED
        flags |= d.MAV_MODE_FLAG_SAFETY_ARMED if flight.armed else 0
        state = d.MAV_STATE_ACTIVE if flight.armed else d.MAV_STATE_STANDBY
        if flight.preflight_error() and not flight.armed:
            state = d.MAV_STATE_BOOT
        return d.MAVLink_heartbeat_message(
            self._type, d.MAV_AUTOPILOT_PX4, flags, mode.custom_mode, state, 3
        )

    def _sys_status(self, _: int) -> Any:
        d = self._d
        battery = self._battery
        sensors = (
            d.MAV_SYS_STATUS_SENSOR_3D_GYRO
            | d.MAV_SYS_STATUS_SENSOR_3D_ACCEL
            | d.MAV_SYS_STATUS_SENSOR_3D_MAG
        )
        sensors |= (
            d.MAV_SYS_STATUS_SENSOR_GPS
            | d.MAV_SYS_STATUS_SENSOR_ABSOLUTE_PRESSURE
            | d.MAV_SYS_STATUS_AHRS
        )
        sensors |= d.MAV_SYS_STATUS_SENSOR_BATTERY | d.MAV_SYS_STATUS_PREARM_CHECK
        healthy = (
            d.MAV_SYS_STATUS_SENSOR_BATTERY
            if self._known() and self._flight.preflight_error()
            else sensors
        )
        healthy = healthy if self._known() else d.MAV_SYS_STATUS_SENSOR_BATTERY
        voltage = _u16(battery.voltage * 1e3)
        current = _i16(battery.current * _CM)
        return d.MAVLink_sys_status_message(
            sensors,
            sensors,
            healthy,
            0,
            voltage,
            current,
            round(battery.charge * 100.0),
            0,
            0,
            0,
            0,
            0,
            0,
        )

    def _extended_sys_state(self, _: int) -> Any:
        d = self._d
        flight = self._flight
        landed = d.MAV_LANDED_STATE_IN_AIR if flight.in_air else d.MAV_LANDED_STATE_ON_GROUND
        if flight.in_air and flight.shown_mode is FlightMode.TAKEOFF:
            landed = d.MAV_LANDED_STATE_TAKEOFF
        elif flight.in_air and flight.shown_mode is FlightMode.LAND:
            landed = d.MAV_LANDED_STATE_LANDING
        return d.MAVLink_extended_sys_state_message(
            d.MAV_VTOL_STATE_UNDEFINED,
            landed if flight.pose.known else d.MAV_LANDED_STATE_UNDEFINED,
        )

    def _battery_status(self, _: int) -> Any:
        d = self._d
        battery = self._battery
        cells = max(1, round(battery.values.battery_cells))
        voltages = [_u16(battery.voltage / cells * 1e3)] * min(cells, 10) + [_UNKNOWN_U16] * max(
            0, 10 - cells
        )
        more = [_u16(battery.voltage / cells * 1e3)] * min(max(0, cells - 10), 4)
        low = battery.charge < battery.values.battery_low
        return d.MAVLink_battery_status_message(
            0,
            d.MAV_BATTERY_FUNCTION_ALL,
            d.MAV_BATTERY_TYPE_LIPO,
            32767,  # no temperature
            voltages,
            _i16(battery.current * _CM),
            _i32(battery.used_ah * 1e3),
            _i32(battery.used_wh * 36.0),
            round(battery.charge * 100.0),
            0,
            d.MAV_BATTERY_CHARGE_STATE_LOW if low else d.MAV_BATTERY_CHARGE_STATE_OK,
            (more + [0] * 4)[:4],
        )

    def _autopilot_version(self, _: int) -> Any:
        d = self._d
        capable = d.MAV_PROTOCOL_CAPABILITY_MISSION_INT | d.MAV_PROTOCOL_CAPABILITY_COMMAND_INT
        capable |= (
            d.MAV_PROTOCOL_CAPABILITY_MAVLINK2 | d.MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
        )
        capable |= d.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_LOCAL_NED
        capable |= d.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_GLOBAL_INT
        capable |= (
            d.MAV_PROTOCOL_CAPABILITY_SET_ATTITUDE_TARGET if self._flight.takes_attitudes else 0
        )
        nothing = [0] * 8
        return d.MAVLink_autopilot_version_message(
            capable, 0, 0, 0, 0, nothing, nothing, nothing, 0, 0, self._system_id
        )

    # --- motion

    def _known(self) -> bool:
        return self._flight.pose.known and self._flight.situation.silence < SILENCE_S

    def _geodetic(self) -> tuple[float, float, float] | None:
        origin = self._flight.situation.origin
        if origin is None or not self._known():
            return None
        latitude, longitude, altitude = ned_to_geodetic(self._flight.pose.position, origin).tolist()
        return latitude, longitude, altitude

    def _attitude(self, ms: int) -> Any:
        pose = self._flight.pose
        if not self._known():
            return None
        return self._d.MAVLink_attitude_message(ms, *pose.euler.tolist(), *_singles(pose.rates))

    def _local_position_ned(self, ms: int) -> Any:
        pose = self._flight.pose
        if not self._known():
            return None
        return self._d.MAVLink_local_position_ned_message(
            ms, *_singles(pose.position), *_singles(pose.velocity)
        )

    def _global_position_int(self, ms: int) -> Any:
        here = self._geodetic()
        pose = self._flight.pose
        if here is None:
            return None
        latitude, longitude, altitude = here
        home = self._flight.home
        above = (home[2] if home is not None else float(pose.position[2])) - float(pose.position[2])
        heading = round(math.degrees(float(pose.euler[2])) % 360.0 * 100.0) % 36000
        return self._d.MAVLink_global_position_int_message(
            ms,
            *(
                _i32(latitude * _DEG_E7),
                _i32(longitude * _DEG_E7),
                _i32(altitude * _MM),
                _i32(above * _MM),
            ),
            *(_i16(v * _CM) for v in pose.velocity.tolist()),
            heading,
        )

    def _gps_raw_int(self, ms: int) -> Any:
        d = self._d
        here = self._geodetic()
        pose = self._flight.pose
        if here is None:
            unknown = [_UNKNOWN_U16] * 4
            return d.MAVLink_gps_raw_int_message(
                ms * 1000, d.GPS_FIX_TYPE_NO_FIX, 0, 0, 0, *unknown, 0
            )
        north, east, _ = np.nan_to_num(pose.velocity).tolist()  # of poses far apart it is none
        course = round(math.degrees(math.atan2(east, north)) % 360.0 * 100.0) % 36000
        return d.MAVLink_gps_raw_int_message(
            ms * 1000,
            d.GPS_FIX_TYPE_3D_FIX,
            *(_i32(here[0] * _DEG_E7), _i32(here[1] * _DEG_E7), _i32(here[2] * _MM)),
            *(100, 100, _u16(math.hypot(north, east) * _CM), course, 10),
        )

    def _vfr_hud(self, _: int) -> Any:
        pose = self._flight.pose
        if not self._known():
            return None
        north, east, down = _singles(pose.velocity)
        origin = self._flight.situation.origin
        height = (origin[2] if origin is not None else 0.0) - float(pose.position[2])
        heading = round(math.degrees(float(pose.euler[2]))) % 360
        throttle = 50 if self._flight.in_air else 0
        speed, height = _singles((math.hypot(north, east), height))
        return self._d.MAVLink_vfr_hud_message(speed, speed, heading, throttle, height, 0.0 - down)

    def _home_position(self, ms: int) -> Any:
        flight = self._flight
        there = flight.home_geodetic()
        if there is None or not all(map(math.isfinite, there)):
            return None
        place = _singles(flight.home or flight.place)
        return self._d.MAVLink_home_position_message(
            *(_i32(there[0] * _DEG_E7), _i32(there[1] * _DEG_E7), _i32(there[2] * _MM)),
            *place,
            (1.0, 0.0, 0.0, 0.0),
            *(0.0, 0.0, 0.0),
            ms * 1000,
        )

    def _gps_global_origin(self, ms: int) -> Any:
        origin = self._flight.situation.origin
        if origin is None:
            return None
        return self._d.MAVLink_gps_global_origin_message(
            *(_i32(origin[0] * _DEG_E7), _i32(origin[1] * _DEG_E7), _i32(origin[2] * _MM)),
            ms * 1000,
        )

    def _mission_current(self, _: int) -> Any:
        d = self._d
        flight = self._flight
        state = d.MISSION_STATE_NOT_STARTED
        if not flight.mission.rows:
            state = d.MISSION_STATE_NO_MISSION
        elif flight.mission.finished:
            state = d.MISSION_STATE_COMPLETE
        elif flight.holding:
            state = d.MISSION_STATE_PAUSED
        elif flight.flying and flight.mode is FlightMode.MISSION:
            state = d.MISSION_STATE_ACTIVE
        in_mission = 1 if flight.shown_mode is FlightMode.MISSION else 2
        return d.MAVLink_mission_current_message(
            flight.mission.seq, len(flight.mission.rows), state, in_mission
        )


def _singles(values: Any) -> list[float]:
    """As far as 32 bits go."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.asarray(values, float), -most, most).tolist()


def _within(value: float, low: int, high: int) -> int:
    return round(min(max(low, value), high))  # the least for NaN


def _i16(value: float) -> int:
    return _within(value, -32767, 32767)


def _u16(value: float) -> int:
    return _within(value, 0, 65534)


def _i32(value: float) -> int:
    return _within(value, -(2**31) + 1, 2**31 - 1)
