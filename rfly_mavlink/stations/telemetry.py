# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Telemetry of a vehicle: the messages that ground stations get, and their rates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from rfly_common.energy.battery import Battery
from rfly_common.frames import euler_to_quat, quat_conjugate, quat_rotate
from rfly_common.geodesy import ned_to_geodetic
from rfly_mavlink.dialect.wire import load_dialect, message_number, newer_message
from rfly_mavlink.stations.file_transfer import (
    INTERFACE_VERSION,
    VERSION,
    ComponentMetadata,
    version_number,
)
from rfly_mavlink.stations.flight import FlightLogic
from rfly_mavlink.stations.flight_modes import (
    FlightMode,
    available_modes,
    current_mode,
    modes_monitor,
)
from rfly_mavlink.stations.gimbal_protocol import GimbalManager
from rfly_mavlink.stations.plan_rows import plan_id, with_ids
from rfly_mavlink.stations.remote_pilot import SILENCE_S
from rfly_mavlink.stations.terrain_protocol import report_message
from rfly_missions.mission.items import MissionMode
from rfly_missions.mission.mavlink_items import MAX_HEIGHT, MAX_RADIUS

LEAST_INTERVAL_S = 0.01
"""Shortest interval of a message, s."""
LONGEST_INTERVAL_S = 2000.0
"""Longest interval of a message, s; MESSAGE_INTERVAL can express 2147 s."""
_DEG_E7 = 1e7
"""Units of a latitude per degree."""
_MM = 1e3
"""Millimetres per metre."""
_CM = 1e2
"""Centimetres per metre."""
_UNKNOWN_ALTITUDE = -1e4
"""Height above ground, m, that is unknown: below -1000 by the message's definition."""
_UNKNOWN_U16 = 65535
"""Value of a number of 16 bits that is unknown."""

_CIRCLES = (MissionMode.ORBIT, MissionMode.HOLD)
"""Modes of circles: the hold of a fixed-wing aircraft has a radius too, that of others has none."""
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
    "TERRAIN_REPORT": 1.0,
    "FENCE_STATUS": 1.0,
    "ORBIT_EXECUTION_STATUS": 2.0,
    "SYSTEM_TIME": 1.0,
    "ALTITUDE": 2.0,
    "ATTITUDE_QUATERNION": 10.0,
    "ODOMETRY": 5.0,
    "CURRENT_MODE": 0.5,
    "GPS_GLOBAL_ORIGIN": 0.0,
    "AUTOPILOT_VERSION": 0.0,
    "PROTOCOL_VERSION": 0.0,
    "COMPONENT_METADATA": 0.0,
    "AVAILABLE_MODES": 0.0,
    "AVAILABLE_MODES_MONITOR": 0.0,
    "GIMBAL_MANAGER_STATUS": 5.0,
    "GIMBAL_DEVICE_ATTITUDE_STATUS": 10.0,
    "GIMBAL_MANAGER_INFORMATION": 0.0,
    "GIMBAL_DEVICE_INFORMATION": 0.0,
}
"""Rates of the messages that are sent without a request, Hz; 0: only on request."""
_OF_A_KNOWN_POSE = {
    "ATTITUDE",
    "LOCAL_POSITION_NED",
    "VFR_HUD",
    "ORBIT_EXECUTION_STATUS",
    "ALTITUDE",
    "ATTITUDE_QUATERNION",
    "ODOMETRY",
}
"""Messages that are not sent while the pose is unknown."""
MULTIROTOR_TYPES = {
    3: "TRICOPTER",
    4: "QUADROTOR",
    6: "HEXAROTOR",
    8: "OCTOROTOR",
    10: "DECAROTOR",
    12: "DODECAROTOR",
}
"""Names of MAV_TYPE by the number of rotors."""


class Telemetry:
    """Makes each message by its name; None if its values are unknown."""

    def __init__(
        self,
        uav_type: str,
        system_id: int,
        flight: FlightLogic,
        battery: Battery,
        gimbal: GimbalManager,
        metadata: ComponentMetadata,
        rotors: int = 4,
    ) -> None:
        d = self._d = load_dialect()
        self._uav_type = uav_type
        self._flight = flight
        self._battery = battery
        self._system_id = system_id
        self.gimbal = gimbal
        self._component_metadata = metadata.message

        self._type = {
            "fixed-wing": d.MAV_TYPE_FIXED_WING,
            "ground": d.MAV_TYPE_GROUND_ROVER,
        }.get(uav_type, multirotor_type(rotors))

        self._intervals = {name: 1.0 / rate if rate else 0.0 for name, rate in RATES_HZ.items()}
        self._sent_at = dict.fromkeys(self._intervals, -math.inf)
        self._names = {message_number(name): name for name in self._intervals}
        self._reported_mode = flight.shown_mode

        self._make: dict[str, Callable[[int], Any]] = dict(gimbal.messages)
        self._make["ORBIT_EXECUTION_STATUS"] = lambda ms: orbit_execution_status(flight, ms)
        self._make["AVAILABLE_MODES"] = lambda _: None  # `messages` answers requests
        self._make |= {
            name: getattr(self, f"_{name.lower()}")
            for name in self._intervals
            if name not in self._make
        }

    # --- rates

    def find(self, message_id: float) -> str | None:
        """Return the name of a message by its number; None for one that is not sent here."""
        name = self._names.get(int(message_id)) if math.isfinite(message_id) else None
        return None if name in self.gimbal.messages and not self.gimbal.exists else name

    def set_interval(self, name: str, interval_us: float) -> None:
        """Set the interval as MAV_CMD_SET_MESSAGE_INTERVAL does: -1 never, 0 the default."""
        default = 1.0 / RATES_HZ[name] if RATES_HZ[name] else 0.0
        if interval_us < 0.0:
            self._intervals[name] = 0.0
        elif interval_us == 0.0:
            self._intervals[name] = default
        else:
            seconds = max(interval_us * 1e-6, LEAST_INTERVAL_S)
            self._intervals[name] = min(seconds, LONGEST_INTERVAL_S)

    def interval_us(self, name: str) -> int:
        """Return the interval as in MESSAGE_INTERVAL: -1 for a message that is not sent."""
        return round(self._intervals[name] * 1e6) or -1

    def due(self, now: float) -> list[str]:
        """Return the messages that are due; time that has been missed is not made up for."""
        names = [
            name
            for name, interval in self._intervals.items()
            if interval and now - self._sent_at[name] >= interval - 1e-6
        ]

        # a change is reported at once
        if self._flight.shown_mode is not self._reported_mode:
            self._reported_mode = self._flight.shown_mode
            if "CURRENT_MODE" not in names and self._intervals["CURRENT_MODE"]:
                names.append("CURRENT_MODE")

        for name in names:
            late = now - self._sent_at[name] > 2.0 * self._intervals[name]
            self._sent_at[name] = now if late else self._sent_at[name] + self._intervals[name]

        return names

    def message(self, name: str) -> Any:
        """Return a message with the present values; None if they are unknown."""
        if name in self.gimbal.messages and not self.gimbal.exists:
            return None
        if name in _OF_A_KNOWN_POSE and not self._known():
            return None
        return self._make[name](_milliseconds(self._flight.pose.time))

    def messages(self, name: str, index: float) -> list[Any]:
        """Return the messages that answer a request; `index` chooses one of AVAILABLE_MODES."""
        if name == "AVAILABLE_MODES":
            return available_modes(self._uav_type, index if math.isfinite(index) else 0.0)
        message = self.message(name)
        return [] if message is None else [message]

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
        if flight.aborted:
            state = d.MAV_STATE_CRITICAL

        return d.MAVLink_heartbeat_message(
            self._type, d.MAV_AUTOPILOT_PX4, flags, mode.custom_mode, state, 3
        )

    def _sys_status(self, _: int) -> Any:
        d = self._d
        battery = self._battery
        battery_alone = d.MAV_SYS_STATUS_SENSOR_BATTERY
        sensors = (
            d.MAV_SYS_STATUS_SENSOR_3D_GYRO
            | d.MAV_SYS_STATUS_SENSOR_3D_ACCEL
            | d.MAV_SYS_STATUS_SENSOR_3D_MAG
            | d.MAV_SYS_STATUS_SENSOR_GPS
            | d.MAV_SYS_STATUS_SENSOR_ABSOLUTE_PRESSURE
            | d.MAV_SYS_STATUS_AHRS
            | d.MAV_SYS_STATUS_SENSOR_BATTERY
            | d.MAV_SYS_STATUS_PREARM_CHECK
        )
        can_fly = self._known() and not self._flight.preflight_error()
        healthy = sensors if can_fly else battery_alone

        # the fence; MAVProxy takes an unhealthy one that nobody uses for breached
        area = self._flight.area
        fence = d.MAV_SYS_STATUS_GEOFENCE
        enabled = sensors | fence if area.plan.fence else sensors
        healthy |= 0 if area.breach else fence

        voltage = _u16(battery.voltage * 1e3)
        current = _i16(battery.current * _CM)

        return d.MAVLink_sys_status_message(
            sensors | fence,
            enabled,
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
        reported = flight.situation.mode
        landed = d.MAV_LANDED_STATE_IN_AIR if flight.in_air else d.MAV_LANDED_STATE_ON_GROUND
        if flight.in_air and "TAKEOFF" in (reported, flight.shown_mode.name):
            landed = d.MAV_LANDED_STATE_TAKEOFF
        elif flight.in_air and "LAND" in (reported, flight.shown_mode.name):
            landed = d.MAV_LANDED_STATE_LANDING
        return d.MAVLink_extended_sys_state_message(
            d.MAV_VTOL_STATE_UNDEFINED,
            landed if flight.pose.known else d.MAV_LANDED_STATE_UNDEFINED,
        )

    def _battery_status(self, _: int) -> Any:
        d = self._d
        battery = self._battery
        cells = max(1, round(battery.pack.cells))
        voltage = _u16(battery.voltage / cells * 1e3)
        voltages = [voltage] * min(cells, 10) + [_UNKNOWN_U16] * max(0, 10 - cells)
        more_voltages = [voltage] * min(max(0, cells - 10), 4)
        is_low = battery.charge < self._flight.values.battery_low
        state = d.MAV_BATTERY_CHARGE_STATE_LOW if is_low else d.MAV_BATTERY_CHARGE_STATE_OK

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
            state,
            (more_voltages + [0] * 4)[:4],
        )

    def _autopilot_version(self, _: int) -> Any:
        d = self._d
        capabilities = (
            d.MAV_PROTOCOL_CAPABILITY_MISSION_INT
            | d.MAV_PROTOCOL_CAPABILITY_COMMAND_INT
            | d.MAV_PROTOCOL_CAPABILITY_MAVLINK2
            | d.MAV_PROTOCOL_CAPABILITY_FTP
            | d.MAV_PROTOCOL_CAPABILITY_PARAM_ENCODE_BYTEWISE
            | d.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_LOCAL_NED
            | d.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_GLOBAL_INT
            | d.MAV_PROTOCOL_CAPABILITY_TERRAIN
            | d.MAV_PROTOCOL_CAPABILITY_MISSION_FENCE
            | d.MAV_PROTOCOL_CAPABILITY_MISSION_RALLY
        )
        if self._flight.takes_attitudes:
            capabilities |= d.MAV_PROTOCOL_CAPABILITY_SET_ATTITUDE_TARGET

        nothing = [0] * 8
        own = version_number(VERSION)
        custom = [*reversed(VERSION), *nothing[3:]]  # as QGroundControl shows it
        return d.MAVLink_autopilot_version_message(
            capabilities,
            version_number(INTERFACE_VERSION),
            own,
            0,
            0,
            custom,
            nothing,
            nothing,
            0,
            0,
            self._system_id,
        )

    def _protocol_version(self, _: int) -> Any:
        unknown = bytes(8)
        return newer_message("PROTOCOL_VERSION", 200, 100, 200, unknown, unknown)

    def _system_time(self, ms: int) -> Any:
        return self._d.MAVLink_system_time_message(time.time_ns() // 1000, ms)

    # --- modes

    def _current_mode(self, _: int) -> Any:
        return current_mode(self._flight.shown_mode, self._flight.mode)

    def _available_modes_monitor(self, _: int) -> Any:
        return modes_monitor()

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
        return self._d.MAVLink_attitude_message(ms, *pose.euler.tolist(), *_singles(pose.rates))

    def _attitude_quaternion(self, ms: int) -> Any:
        pose = self._flight.pose
        x, y, z, w = euler_to_quat(pose.euler).tolist()
        no_offset = (0.0,) * 4
        return self._d.MAVLink_attitude_quaternion_message(
            ms, w, x, y, z, *_singles(pose.rates), no_offset
        )

    def _odometry(self, ms: int) -> Any:
        """Make position and attitude in the world, velocity and rates in the body's axes."""
        d = self._d
        pose = self._flight.pose
        attitude = euler_to_quat(pose.euler)
        velocity = quat_rotate(quat_conjugate(attitude), pose.velocity)
        x, y, z, w = attitude.tolist()
        unknown = (math.nan,) * 21
        return d.MAVLink_odometry_message(
            ms * 1000,
            d.MAV_FRAME_LOCAL_NED,
            d.MAV_FRAME_BODY_FRD,
            *_singles(pose.position),
            (w, x, y, z),
            *_singles(velocity),
            *_singles(pose.rates),
            unknown,
            unknown,
        )

    def _altitude(self, ms: int) -> Any:
        flight = self._flight
        down = float(flight.pose.position[2])
        origin = flight.situation.origin
        home_down = flight.home[2] if flight.home is not None else down
        above_sea = math.nan if origin is None else origin[2] - down
        above_ground = flight.situation.ground - down
        if math.isnan(above_ground):
            above_ground = _UNKNOWN_ALTITUDE
        altitudes = (0.0 - down, above_sea, 0.0 - down, home_down - down, above_ground)
        clearance = max(above_ground, -1.0)  # negative: unknown
        return self._d.MAVLink_altitude_message(ms * 1000, *_singles((*altitudes, clearance)))

    def _local_position_ned(self, ms: int) -> Any:
        pose = self._flight.pose
        return self._d.MAVLink_local_position_ned_message(
            ms, *_singles(pose.position), *_singles(pose.velocity)
        )

    def _global_position_int(self, ms: int) -> Any:
        here = self._geodetic()
        pose = self._flight.pose
        if here is None:
            return None

        latitude, longitude, altitude = here
        down = float(pose.position[2])
        home_down = self._flight.home[2] if self._flight.home is not None else down
        heading = round(math.degrees(float(pose.euler[2])) % 360.0 * 100.0) % 36000
        return self._d.MAVLink_global_position_int_message(
            ms,
            _i32(latitude * _DEG_E7),
            _i32(longitude * _DEG_E7),
            _i32(altitude * _MM),
            _i32((home_down - down) * _MM),
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

        # the velocity of poses far apart is NaN
        north, east, _ = np.nan_to_num(pose.velocity).tolist()
        course = round(math.degrees(math.atan2(east, north)) % 360.0 * 100.0) % 36000
        latitude, longitude, altitude = here
        return d.MAVLink_gps_raw_int_message(
            ms * 1000,
            d.GPS_FIX_TYPE_3D_FIX,
            _i32(latitude * _DEG_E7),
            _i32(longitude * _DEG_E7),
            _i32(altitude * _MM),
            100,
            100,
            _u16(math.hypot(north, east) * _CM),
            course,
            10,
        )

    def _vfr_hud(self, _: int) -> Any:
        pose = self._flight.pose
        north, east, down = _singles(pose.velocity)
        origin = self._flight.situation.origin
        height = (origin[2] if origin is not None else 0.0) - float(pose.position[2])
        heading = round(math.degrees(float(pose.euler[2]))) % 360
        throttle = 50 if self._flight.in_air else 0
        speed, height = _singles((math.hypot(north, east), height))
        return self._d.MAVLink_vfr_hud_message(speed, speed, heading, throttle, height, 0.0 - down)

    def _home_position(self, ms: int) -> Any:
        flight = self._flight
        home = flight.home_geodetic()
        if home is None or not all(map(math.isfinite, home)):
            return None

        latitude, longitude, altitude = home
        level = (1.0, 0.0, 0.0, 0.0)
        no_approach = (0.0, 0.0, 0.0)
        return self._d.MAVLink_home_position_message(
            _i32(latitude * _DEG_E7),
            _i32(longitude * _DEG_E7),
            _i32(altitude * _MM),
            *_singles(flight.home or flight.place),
            level,
            *no_approach,
            ms * 1000,
        )

    def _gps_global_origin(self, ms: int) -> Any:
        origin = self._flight.situation.origin
        if origin is None:
            return None
        latitude, longitude, altitude = origin
        return self._d.MAVLink_gps_global_origin_message(
            _i32(latitude * _DEG_E7), _i32(longitude * _DEG_E7), _i32(altitude * _MM), ms * 1000
        )

    def _terrain_report(self, _: int) -> Any:
        here = self._geodetic()
        if here is None:
            return None
        return self.terrain_report(_i32(here[0] * _DEG_E7), _i32(here[1] * _DEG_E7))

    def terrain_report(self, lat: int, lon: int) -> Any:
        """Return TERRAIN_REPORT for a place, 1e-7 degrees; None without a map."""
        here = self._geodetic()
        altitude = math.nan if here is None else here[2]
        return report_message(self._flight.situation.terrain, lat, lon, altitude)

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
        message = d.MAVLink_mission_current_message(
            flight.mission.seq, len(flight.mission.rows), state, in_mission
        )
        return with_ids(
            message,
            mission_id=flight.mission.id,
            fence_id=flight.area.fence_id,
            rally_points_id=plan_id(flight.area.rally_rows),
        )

    def _fence_status(self, _: int) -> Any:
        d = self._d
        area = self._flight.area
        if not area.plan.fence:
            return None
        milliseconds = _milliseconds(area.breached_at)
        kind = d.FENCE_BREACH_BOUNDARY if area.breach else d.FENCE_BREACH_NONE
        return d.MAVLink_fence_status_message(
            bool(area.breach), min(area.breaches, 65_535), kind, milliseconds, d.FENCE_MITIGATE_NONE
        )


def multirotor_type(rotors: int) -> int:
    """Return the MAV_TYPE of a vehicle with a number of rotors."""
    name = MULTIROTOR_TYPES.get(rotors, "GENERIC_MULTIROTOR")
    number: int = getattr(load_dialect(), f"MAV_TYPE_{name}")
    return number


def _milliseconds(seconds: float) -> int:
    """Return a time in the 32 bits of a message; 0 for one that is not known."""
    return int(seconds * 1e3) % 2**32 if math.isfinite(seconds) and seconds > 0.0 else 0


def _singles(values: Any) -> list[float]:
    """Return values clipped to the range of 32-bit floats."""
    most = float(np.finfo(np.float32).max)
    return np.clip(np.asarray(values, float), -most, most).tolist()


def _within(value: float, low: int, high: int) -> int:
    """Return a rounded number within limits; the least for NaN."""
    return round(min(max(low, value), high))


def _i16(value: float) -> int:
    return _within(value, -32767, 32767)


def _u16(value: float) -> int:
    return _within(value, 0, 65534)


def _i32(value: float) -> int:
    return _within(value, -(2**31) + 1, 2**31 - 1)


def orbit_execution_status(flight: FlightLogic, ms: int) -> Any:
    """Return the message about the present circle, its radius positive clockwise.

    None while the vehicle flies no circle, or is not armed.
    """
    item = flight.situation.item
    origin = flight.situation.origin
    if item is None or origin is None or not flight.armed:
        return None

    radius = float(item.params[0])
    if item.mode not in _CIRCLES or not radius > 0.0:
        return None

    # where the item leaves the direction free, the vehicle's motion around the centre shows it
    north, east, _ = (flight.pose.position - item.position).tolist()
    v_north, v_east, _ = flight.pose.velocity.tolist()
    turn = float(item.params[1]) or north * v_east - east * v_north

    latitude, longitude, altitude = ned_to_geodetic(item.position, origin).tolist()
    is_place = abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and abs(altitude) <= MAX_HEIGHT
    if not (is_place and radius <= MAX_RADIUS):
        return None

    d = load_dialect()
    return d.MAVLink_orbit_execution_status_message(
        ms * 1000,
        math.copysign(radius, turn),
        d.MAV_FRAME_GLOBAL,
        round(latitude * 1e7),
        round(longitude * 1e7),
        altitude,
    )
