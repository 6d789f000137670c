# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Requests for RflySim3D's cameras and lidars: a record, its datagrams, and their reader.

A request goes to UDP 20010 + window. RflySim3D does not acknowledge it: the first data are the
answer. The same request with other values and the same SeqID changes a sensor that runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from rfly_common.errors import ConfigError, PacketError
from rfly_common.frames import euler_to_quat, quat_to_euler
from rfly_ue_bridge.codec.addresses import SENSOR_PORT
from rfly_ue_bridge.codec.packets import PacketTable, PacketType
from rfly_ue_bridge.codec.to_rflysim3d import (
    VISION_SENSOR_REQ,
    VISION_SENSOR_REQ_GIMBAL,
    VISION_SENSOR_REQ_NEW,
    VISION_SENSOR_REQ_OLD,
)

PARAMETERS = 16
"""Numbers of otherParams."""
OLD_PARAMETERS = 8
"""Numbers of otherParams in the oldest layout."""
GIMBAL = 9
"""TypeID of the camera on a gimbal, which has a request of its own."""
UDP_COMPRESSED = 1
"""First number of SendProtocol: jpeg or png by UDP."""

SENSOR_REQUESTS = PacketTable(
    (VISION_SENSOR_REQ_OLD, VISION_SENSOR_REQ, VISION_SENSOR_REQ_GIMBAL, VISION_SENSOR_REQ_NEW)
)
"""Every form of a request, by length and checksum."""


class RequestLayout(Enum):
    """Layout of the requests, by its size in bytes."""

    OLD = 92
    """Old windows: 8 other parameters, no quaternion."""
    CURRENT = 144
    """Windows since 2023. A gimbal's request has 148 bytes."""
    NEW = 148
    """Newer windows, by RflySim's manual."""


class Mount(int, Enum):
    """Place where a sensor is mounted (TargetMountType)."""

    CENTER = 0
    """Geometric centre of the vehicle."""
    BOTTOM = 1
    """Middle of the vehicle's bottom."""
    MAP = 2
    """Fixed on the map."""
    LEVEL = 3
    """Carried by the vehicle, with the attitude of the earth."""
    SENSOR = 4
    """Another sensor."""


@dataclass(frozen=True)
class VisionSensor:
    """One sensor of RflySim3D and where its data go; the values are those of the wire."""

    seq_id: int
    """Number of the sensor in RflySim3D."""
    type_id: int
    """Kind of the sensor, see `sensor_types`."""
    target: int = 1
    """CopterID of its vehicle, or the SeqID of the sensor on which it is mounted."""
    mount: int = 0
    """Place where it is mounted, a `Mount`."""
    width: int = 640
    """Pixels; points of a ring or half petal for lidars."""
    height: int = 480
    """Pixels; rings or half petals for lidars."""
    rate: int = 30
    """Rate at which RflySim3D looks for a new frame, Hz."""
    way: int = UDP_COMPRESSED
    """Way of sending: 1 UDP compressed, 2 UDP raw, 3 UDP png."""
    address: tuple[int, int, int, int] = (127, 0, 0, 1)
    """IPv4 address to which the data go."""
    port: int = 0
    """UDP port to which the data go; 0 becomes 9999 + `seq_id`."""
    reserved: tuple[int, int] = (0, 0)
    fov_deg: float = 90.0
    """Horizontal angle of view, deg."""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Position, m: forward, right, down of the vehicle, or NED of the map."""
    euler_or_quat: float = 0.0
    """Above 0.5 the quaternion counts, else the Euler angles."""
    euler_deg: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Roll, pitch, yaw, deg; a positive pitch looks up."""
    quat_xyzw: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Attitude, FRD in the axes of the mount."""
    parameters: tuple[float, ...] = (0.0,) * PARAMETERS
    """Further numbers (otherParams), by the kind of sensor."""

    def __post_init__(self) -> None:
        if not self.port:
            object.__setattr__(self, "port", SENSOR_PORT + self.seq_id)
        filled = (*self.parameters, *(0.0,) * (PARAMETERS - len(self.parameters)))
        object.__setattr__(self, "parameters", filled)

    @property
    def attitude_xyzw(self) -> tuple[float, float, float, float]:
        """Attitude that counts: FRD in the axes of the mount."""
        if self.euler_or_quat > 0.5:
            quat = np.array(self.quat_xyzw)
            quat = quat / np.linalg.norm(quat)
        else:
            quat = euler_to_quat(np.radians(self.euler_deg))
        x, y, z, w = quat.tolist()
        return x, y, z, w


def encode_request(sensor: VisionSensor, layout: RequestLayout = RequestLayout.CURRENT) -> bytes:
    """Return the datagram that requests a sensor.

    Raises ConfigError for a value that does not fit its field, and in the old layout for other
    parameters beyond the eighth. There a quaternion is sent as Euler angles.
    """
    packet_type = _packet_type(sensor, layout)
    x, y, z, w = sensor.quat_xyzw
    values: dict[str, Any] = {
        "SeqID": sensor.seq_id,
        "TypeID": sensor.type_id,
        "TargetCopter": sensor.target,
        "TargetMountType": sensor.mount,
        "DataWidth": sensor.width,
        "DataHeight": sensor.height,
        "DataCheckFreq": sensor.rate,
        "SendProtocol": (sensor.way, *sensor.address, sensor.port, *sensor.reserved),
        "CameraFOV": sensor.fov_deg,
        "SensorPosXYZ": sensor.position,
        "EularOrQuat": sensor.euler_or_quat,
        "SensorAngEular": sensor.euler_deg,
        "SensorAngQuat": (w, x, y, z),
        "otherParams": sensor.parameters,
        "bitmask": 0,
    }

    if packet_type is VISION_SENSOR_REQ_OLD:
        if any(sensor.parameters[OLD_PARAMETERS:]):
            raise ConfigError(
                f"{len(sensor.parameters)} numbers, the layout of 92 bytes holds {OLD_PARAMETERS}",
                key="otherParams",
            )
        values["otherParams"] = sensor.parameters[:OLD_PARAMETERS]
        if sensor.euler_or_quat > 0.5:
            angles = quat_to_euler(np.array(sensor.attitude_xyzw))
            values["SensorAngEular"] = np.degrees(angles).tolist()

    fields = {field.name: values[field.name] for field in packet_type.fields[1:]}
    try:
        return packet_type.make(**fields).encode()
    except ValueError as error:
        raise ConfigError(f"sensor {sensor.seq_id}: {error}") from error


def _packet_type(sensor: VisionSensor, layout: RequestLayout) -> PacketType:
    """Return the packet of a sensor's request in a layout."""
    if layout is RequestLayout.OLD:
        return VISION_SENSOR_REQ_OLD
    if layout is RequestLayout.NEW:
        return VISION_SENSOR_REQ_NEW
    return VISION_SENSOR_REQ_GIMBAL if sensor.type_id == GIMBAL else VISION_SENSOR_REQ


_FIRST_BYTES = {
    (packet_type.size, packet_type.checksum_struct.pack(checksum))
    for packet_type in SENSOR_REQUESTS
    for checksum in packet_type.checksums
}


def is_request(datagram: bytes) -> bool:
    """Return whether a datagram has the length and checksum of a request."""
    return (len(datagram), datagram[:2]) in _FIRST_BYTES


def read_request(datagram: bytes) -> VisionSensor:
    """Return the sensor that a datagram of 92, 144 or 148 bytes requests.

    Port 0 becomes 9999 + SeqID. PacketError: `length`, `checksum`, or `value` of an address or a
    number that no request can have.
    """
    packet = SENSOR_REQUESTS.decode(datagram)
    way, a, b, c, d, port, *reserved = packet["SendProtocol"]
    numbers = (packet["CameraFOV"], *packet["SensorPosXYZ"], *packet["SensorAngEular"])
    if max(a, b, c, d) > 255 or not all(map(math.isfinite, (*numbers, *packet["otherParams"]))):
        raise PacketError("value", f"{packet.name}: an address or number that cannot be used")

    w, x, y, z = packet.values.get("SensorAngQuat", (0.0, 0.0, 0.0, 0.0))
    return VisionSensor(
        seq_id=packet["SeqID"],
        type_id=packet["TypeID"],
        target=packet["TargetCopter"],
        mount=packet["TargetMountType"],
        width=packet["DataWidth"],
        height=packet["DataHeight"],
        rate=packet["DataCheckFreq"],
        way=way,
        address=(a, b, c, d),
        port=port,
        reserved=(reserved[0], reserved[1]),
        fov_deg=packet["CameraFOV"],
        position=packet["SensorPosXYZ"],
        euler_or_quat=packet.values.get("EularOrQuat", 0.0),
        euler_deg=packet["SensorAngEular"],
        quat_xyzw=(x, y, z, w),
        parameters=packet["otherParams"],
    )
