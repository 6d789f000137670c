# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packets of CopterSim: states of its vehicles, its IMU, the start of its clock, and commands.

CopterSim sends the truth to UDP 30101 + 2 (CopterID - 1) of a host, and the autopilot's estimate to
20101 + 2 (CopterID - 1) in its UDP modes 0 (120 bytes) and 1 (52 bytes). Positions on the wire are
NED and body axes FRD; what the functions return is ENU and FLU.

Commands go to UDP 20100 + 2 (CopterID - 1): 24 bytes in mode 1 (UDP_Simple), 120 bytes in mode 0
(UDP_Full). In the other modes it reads MAVLink.

For RflySim3D's sensors it has the IMU; RflySim3D has only pictures and clouds. A request with port
and address starts it, as a sensor's does. All times are s of CopterSim's clock, which is 0 at its
start.

Source: manual of July 2025 and the SDK's structures, as far as they agree. No line of the SDK is
copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from rfly_common.errors import PacketError
from rfly_common.frames import (
    Numbers,
    pose_ned_euler_to_enu,
    quat_conjugate,
    quat_rotate,
    vector_ned_to_enu,
)
from rfly_common.geodesy import GeoPoint
from rfly_ue_bridge.codec.from_rflysim3d import COPTER_SIM_CRASH
from rfly_ue_bridge.codec.packets import Field, Packet, PacketTable, PacketType
from rfly_ue_bridge.codec.to_rflysim3d import (
    HIT,
    SOUT2_SIMULATOR,
    SOUT2_SIMULATOR_FRAME,
    SOUT2_SIMULATOR_SIMPLE_TIME,
)

IMU_REQUEST = PacketType(
    "SensorReqCopterSim", 36, (12345,),
    (
        Field("checksum", "H"),
        Field("sensorType", "H", "0 = IMU"),
        Field("updateFreq", "H", "Hz"),
        Field("port", "H"),
        Field("IP", "4B", "address to which the data go; 127.0.0.1 = the sender's"),
        Field("Params", "6f", "0"),
    ),
)  # fmt: skip
"""Request to UDP 30100 + 2 (CopterID - 1)."""

IMU_DATA = PacketType(
    "imuDataCopter", 40, (1234567898,),
    (
        Field("checksum", "i"),
        Field("seq", "i"),
        Field("timestmp", "d", "s of simulation"),
        Field("acc", "3f", "m/s^2, FRD; -9.81 down at rest (not confirmed)"),
        Field("rate", "3f", "rad/s, FRD"),
    ),
)  # fmt: skip

RFLY_TIME_STMP = PacketType(
    "RflyTimeStmp", 32, (123456789,),
    (
        Field("checksum", "i"),
        Field("copterID", "i"),
        Field("SysStartTime", "q", "ms since 1970"),
        Field("SysCurrentTime", "q", "ms since 1970"),
        Field("HeartCount", "q"),
    ),
)  # fmt: skip
"""Heart-beat of CopterSim on UDP 20005."""


def encode_imu_request(port: int, address: tuple[int, int, int, int], rate: int) -> bytes:
    """Return the request for a vehicle's IMU at a rate, Hz, to an IPv4 address and port."""
    return IMU_REQUEST.pack_flat(0, rate, port, *address, *(0.0,) * 6)


STATE = 1234567890
READY = 1234567891
"""Checksum of a short state that only says that the estimator has a 3-D position."""
COLLISION = 1234567892
"""Checksum of a short state that only names the vehicle that was hit."""

NEAR_DEG = 1.0
"""A vehicle is never farther than this from the origin of its map, deg."""

_CHECKSUM = Field("checksum", "i")
_ID = Field("copterID", "i")
_HOME = Field("gpsHome", "3i", "1e-7 deg, 1e-7 deg, mm: latitude, longitude, altitude")
_ESTIMATE = (
    Field("AngEular", "3f", "rad: roll, pitch, yaw of FRD in NED"),
    Field("localPos", "3f", "m, NED from the start point"),
    Field("localVel", "3f", "m/s, NED"),
)

UE4_CMD_GPS = PacketType(
    "Ue4CMDGPS", 32, (1234567890,),
    (_CHECKSUM, _ID, Field("origin", "3d", "deg, deg, m: latitude, longitude, altitude")),
)  # fmt: skip
"""Geodetic origin of the map."""

STATE_SHORT = PacketType(
    "outHILStateShort", 52, (STATE, READY, COLLISION), (_CHECKSUM, _HOME, *_ESTIMATE)
)  # fmt: skip
"""Estimate in UDP mode 1."""

STATE_FRAME = PacketType(
    "outHILStateData", 120, (112,),
    (
        HIT,
        Field("len", "i", "112"),
        Field("time", "I", "ms of CopterSim's clock (not confirmed)"),
        Field("copterID", "I"),
        Field("GpsPos", "3i", "1e-7 deg, 1e-7 deg, mm: latitude, longitude, altitude"),
        Field("GpsVel", "3i", "cm/s, NED"),
        _HOME,
        Field("relative_alt", "i", "mm"),
        Field("hdg", "i", "not settled: 1e-3 or 1e-2 deg"),
        Field("satellites", "i"),
        Field("fix_type", "i"),
        Field("reserved", "i"),
        *_ESTIMATE,
        Field("accuracy", "2f", "m: horizontal, vertical"),
        Field("ready", "f", "above 0.5: the estimator has a 3-D position"),
    ),
    mark="len",
)  # fmt: skip
"""Estimate in UDP mode 0."""

TRUTH = PacketTable(
    (
        SOUT2_SIMULATOR,
        SOUT2_SIMULATOR_SIMPLE_TIME,
        SOUT2_SIMULATOR_FRAME,
        UE4_CMD_GPS,
        COPTER_SIM_CRASH,
    )
)
"""Packets on UDP 30101 …"""

ESTIMATE = PacketTable((STATE_SHORT, STATE_FRAME))
"""Packets on UDP 20101 …"""


@dataclass(frozen=True)
class CopterMotion:
    """Pose and velocity of a vehicle."""

    position: Numbers
    """Position of the body's origin, ENU, m (3,)."""
    orientation: Numbers
    """Quaternion FLU -> ENU, x y z w."""
    velocity: Numbers
    """Velocity in the body's axes, FLU, m/s (3,)."""
    rates: Numbers | None
    """Angular velocity, FLU, rad/s (3,); None if the packet has none."""


def truth_motion(packet: Packet) -> CopterMotion:
    """Return the true motion, in the map. Raises PacketError `not_finite`."""
    rates = packet.values.get("RateB")
    return _motion(packet, "PosE", "AngEuler", "VelE", rates)


def estimated_motion(packet: Packet) -> CopterMotion:
    """Return the estimated motion, from the vehicle's start point. Raises PacketError `not_finite`.

    The packet must have one: `has_estimate`.
    """
    return _motion(packet, "localPos", "AngEular", "localVel", None)


def has_estimate(packet: Packet) -> bool:
    """Return whether a packet of `ESTIMATE` holds a state, and not only a signal."""
    return packet.type is STATE_FRAME or bool(packet["checksum"] == STATE)


def is_ready(packet: Packet) -> bool:
    """Return whether a packet of `ESTIMATE` says that the estimator has a 3-D position."""
    if packet.type is STATE_FRAME:
        return bool(packet["ready"] > 0.5)
    return bool(packet["checksum"] == READY)


def hit_vehicle(packet: Packet) -> int | None:
    """Return the id of the vehicle or object that a vehicle has hit; None if it has not."""
    if packet.type is COPTER_SIM_CRASH:
        target = packet["targetID"]
    elif packet.type is STATE_SHORT:
        target = packet["gpsHome"][1] if packet["checksum"] == COLLISION else -1
    else:
        target = packet.values.get("tg", -1)
    return target if target >= 0 else None


def home_of(packet: Packet) -> GeoPoint | None:
    """Return latitude deg, longitude deg, altitude m of the start point; None if it is unknown."""
    return _geo_point(packet["gpsHome"])


def origin_of(packet: Packet) -> GeoPoint | None:
    """Return latitude deg, longitude deg, altitude m of a `UE4_CMD_GPS`; None if it is no place."""
    return _checked(packet["origin"])


def place_of(packet: Packet, origin: GeoPoint | None) -> GeoPoint | None:
    """Return latitude deg, longitude deg, altitude m of a true state; None if they are unknown.

    The order of latitude and longitude in `PosGPS` is contradictory in RflySim's documents. The one
    within `NEAR_DEG` of the map's origin counts; otherwise the one that is no latitude, as it is
    above 90 deg. If neither decides, the place is unknown.
    """
    if "PosGpsInt" in packet.values:
        return _geo_point(packet["PosGpsInt"])
    first, second, altitude = packet["PosGPS"]
    if first == second == 0.0:
        return None
    latitude_first = (first, second, altitude)
    longitude_first = (second, first, altitude)

    if origin is not None:
        nearest = min((latitude_first, longitude_first), key=lambda p: _distance_deg(p, origin))
        if _distance_deg(nearest, origin) <= NEAR_DEG:
            return _checked(nearest)
    if abs(first) > 90.0 >= abs(second):
        return _checked(longitude_first)
    if abs(second) > 90.0 >= abs(first):
        return _checked(latitude_first)
    return None


def _distance_deg(place: GeoPoint, origin: GeoPoint) -> float:
    return max(abs(place[0] - origin[0]), abs(place[1] - origin[1]))


def _geo_point(numbers: Sequence[int]) -> GeoPoint | None:
    """Return the point of 1e-7 deg, 1e-7 deg, mm; None if they are not set."""
    latitude, longitude, altitude = numbers
    if latitude == longitude == 0:
        return None
    return _checked((latitude * 1e-7, longitude * 1e-7, altitude * 1e-3))


def _checked(place: Sequence[float]) -> GeoPoint | None:
    """Return a place of the Earth, None for numbers that are none."""
    latitude, longitude, altitude = place
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0 and math.isfinite(altitude)):
        return None
    return latitude, longitude, altitude


def _motion(
    packet: Packet, position: str, euler: str, velocity: str, rates_frd: Numbers | None
) -> CopterMotion:
    numbers = (*packet[position], *packet[euler], *packet[velocity], *(rates_frd or ()))
    if not all(map(math.isfinite, numbers)):
        raise PacketError("not_finite", f"{packet.name}: a number is NaN or infinite")

    place, quat = pose_ned_euler_to_enu(packet[position], packet[euler])
    along_axes = quat_rotate(quat_conjugate(quat), vector_ned_to_enu(packet[velocity])).tolist()
    rates = None
    if rates_frd is not None:
        forward, right, down = rates_frd
        rates = (forward, 0.0 - right, 0.0 - down)
    return CopterMotion(place, quat, tuple(along_axes), rates)


class ControlMode(IntEnum):
    """Meaning of a command's four numbers, RflySim's ctrlMode."""

    VELOCITY_NED = 0
    """North, east, down, m/s, and yaw rate, rad/s."""
    VELOCITY_BODY = 1
    """Forward, right, down, m/s, and yaw rate, rad/s."""
    POSITION_NED = 2
    """North, east, down of the start point, m, and yaw, rad."""
    ARM = 9
    """1 arms, 0 disarms; then three zeros."""


OFFBOARD_SHORT = PacketType(
    "inOffboardShortData", 24, (1234567890,),
    (
        Field("checksum", "i"),
        Field("ctrlMode", "i"),
        Field("controls", "4f", "by ctrlMode; NED or FRD"),
    ),
)  # fmt: skip
"""Command in UDP mode 1."""

OFFBOARD_FRAME = PacketType(
    "inHILCMDData", 120, (80,),
    (
        Field("tg", "i", "3"),
        Field("len", "i", "80"),
        Field("time", "I", "ms"),
        Field("copterID", "I"),
        Field("type_mask", "I", "what is ignored, as in MAVLink"),
        Field("frame", "I", "1 local NED, 8 body"),
        Field("controls", "16f", "position, velocity, acceleration (3 each), yaw, yaw rate, 0 …"),
        Field("unused", "32B"),
    ),
    mark="len",
)  # fmt: skip
"""Command in UDP mode 0."""

OFFBOARD = PacketTable((OFFBOARD_SHORT, OFFBOARD_FRAME))
"""Packets on UDP 20100 …"""

_TARGET = 3
_YAW = 9
_YAW_RATE = 10
_LOCAL_NED = 1
_BODY = 8
_ONLY_VELOCITY_AND_YAW_RATE = 0x7C7
_ONLY_POSITION_AND_YAW = 0xBF8


def encode_offboard(mode: int, controls: Sequence[float]) -> bytes:
    """Return the command of UDP mode 1; `controls` (4,) as in `ControlMode`."""
    return OFFBOARD_SHORT.pack({"checksum": 1234567890, "ctrlMode": mode, "controls": controls})


def encode_offboard_frame(
    mode: ControlMode, controls: Sequence[float], copter_id: int, time_ms: int
) -> bytes:
    """Return the command of UDP mode 0; `controls` (4,) as in `ControlMode`.

    `time_ms` counts from any start. ValueError for a mode that the packet cannot express.
    """
    numbers = [0.0] * 16
    if mode in (ControlMode.VELOCITY_NED, ControlMode.VELOCITY_BODY):
        numbers[3:6] = controls[:3]
        numbers[_YAW_RATE] = controls[3]
        mask = _ONLY_VELOCITY_AND_YAW_RATE
    elif mode == ControlMode.POSITION_NED:
        numbers[0:3] = controls[:3]
        numbers[_YAW] = controls[3]
        mask = _ONLY_POSITION_AND_YAW
    else:
        raise ValueError(f"{mode!r}: UDP mode 0 has no packet for it")

    frame = _BODY if mode == ControlMode.VELOCITY_BODY else _LOCAL_NED
    packet = OFFBOARD_FRAME.make(
        tg=_TARGET,
        time=time_ms,
        copterID=copter_id,
        type_mask=mask,
        frame=frame,
        controls=numbers,
        unused=bytes(32),
    )
    return packet.encode()
