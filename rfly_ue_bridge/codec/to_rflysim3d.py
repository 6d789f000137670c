# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packets to RflySim3D, and the table that recognises them.

| packets | for |
| --- | --- |
| Ue4CMD0, Ue4CMD, Ue4CMDNet | console commands |
| SOut2Simulator… | the state of one vehicle; the first one creates it |
| Multi3DData… | the states of 100 vehicles, or of 20 with 8 motors each |
| Ue4ExtMsg, VehicleAttatch25, CopterMsg | blueprint actions, attachments, labels |
| VisionSensorReq… | a camera or lidar of RflySim3D's that is to send, or to move |

They go to UDP 20010 + window, but Ue4CMDNet, which goes to the multicast group 224.0.0.10:20009.
"""

from __future__ import annotations

from types import MappingProxyType

from rfly_ue_bridge.codec.packets import Field, Packet, PacketTable, PacketType

CHECKSUM = 1234567890
CHECKSUM_GROUND = 1234567891
"""Checksum that asks RflySim3D to keep the vehicle on the ground, in packets that allow both."""
CHECKSUM_TIME = 1234567891
"""Checksum of the current SOut2SimulatorSimpleTime.

It is CHECKSUM_GROUND's number, but says nothing about the ground here.
"""
CHECKSUM_FULL = 123456789
"""Checksum of SOut2Simulator; one digit less than the others."""
CHECKSUM_ATTACH = 1234567892
CHECKSUM_ACTION = 1234567894
CHECKSUM_LAN = 1234567897
CHECKSUM_LABEL = 1234567899

CHECKSUM_CAMERA = 12345
CHECKSUM_CAMERA_NEW = 12346
"""Checksum of a newer window's requests, and of a gimbal's answer."""

MOTORS = 8
ATTACHMENTS = 25

_CHECKSUM = Field("checksum", "i")
_ID = Field("copterID", "i")
_TYPE = Field("vehicleType", "i")
_RPM_MEAN = Field("MotorRPMSMean", "f", "rpm")
_RPM = Field("MotorRPMS", "8f", "rpm")
_POSITION = Field("PosE", "3f", "m, NED")
_POSITION_DOUBLE = Field("PosE", "3d", "m, NED")
_VELOCITY = Field("VelE", "3f", "m/s, NED")
_EULER = Field("AngEuler", "3f", "rad: roll, pitch, yaw of FRD in NED")
_TIME = Field("runnedTime", "d", "s; -1 = none")
_BOTH = (CHECKSUM, CHECKSUM_GROUND)

UE4_CMD0 = PacketType("Ue4CMD0", 56, (CHECKSUM,), (_CHECKSUM, Field("text", "52s")))
UE4_CMD = PacketType("Ue4CMD", 256, (CHECKSUM,), (_CHECKSUM, Field("text", "252s")))
UE4_CMD_NET = PacketType("Ue4CMDNet", 96, (CHECKSUM_LAN,), (_CHECKSUM, Field("text", "92s")))

SOUT2_SIMULATOR_SIMPLE = PacketType(
    "SOut2SimulatorSimple", 40, _BOTH, (_CHECKSUM, _ID, _TYPE, _RPM_MEAN, _POSITION, _EULER)
)  # fmt: skip

SOUT2_SIMULATOR_SIMPLE1 = PacketType(
    "SOut2SimulatorSimple1",
    52,
    _BOTH,
    (_CHECKSUM, _ID, _TYPE, _RPM_MEAN, _POSITION, _EULER, Field("Scale", "3f")),
)

SOUT2_SIMULATOR_SIMPLE_TIME_OLD = PacketType(
    "SOut2SimulatorSimpleTime (old)", 88, (CHECKSUM,),
    (_CHECKSUM, _ID, _TYPE, Field("PWMs", "8f", "rpm"), _POSITION, _VELOCITY, _EULER, _TIME),
)  # fmt: skip

SOUT2_SIMULATOR_SIMPLE_TIME = PacketType(
    "SOut2SimulatorSimpleTime", 112, (CHECKSUM_TIME,),
    (
        _CHECKSUM, _ID, _TYPE,
        Field("PosGpsInt", "3i", "1e-7 deg, 1e-7 deg, mm: latitude, longitude, altitude; 0 = none"),
        _RPM, _VELOCITY, _EULER, _POSITION_DOUBLE, _TIME,
    ),
)  # fmt: skip

SOUT2_SIMULATOR_SIMPLE_TIME_VEHICLE_API = PacketType(
    "SOut2SimulatorSimpleTime (VehicleApi)", 104, (CHECKSUM,),
    (
        _CHECKSUM, _ID, _TYPE, Field("PWMs", "8f", "rpm"), _VELOCITY, _EULER,
        _POSITION_DOUBLE, _TIME,
    ),
    MappingProxyType({"AngEuler": 4}),
)  # fmt: skip
"""Packet of RflySim's VehicleApi.py, whose C structure aligns the doubles."""

SOUT2_SIMULATOR = PacketType(
    "SOut2Simulator", 168, (CHECKSUM_FULL,),
    (
        _CHECKSUM, _ID, _TYPE,
        Field("reserved", "i", "0"),
        _VELOCITY, _EULER,
        Field("AngQuatern", "4f", "w x y z of FRD in NED; 0 = none"),
        _RPM,
        Field("AccB", "3f", "m/s^2, FRD"),
        Field("RateB", "3f", "rad/s, FRD"),
        _TIME, _POSITION_DOUBLE,
        Field("PosGPS", "3d", "deg, deg, m: longitude, latitude, altitude; 0 = none"),
    ),
)  # fmt: skip


def _fleet_packet(name: str, size: int, n: int, motors: Field) -> PacketType:
    fields = (
        Field("copterID", f"{n}H", "0 = slot unused"),
        Field("vehicleType", f"{n}H"),
        Field("PosE", f"{3 * n}f", "m, NED: x y z of vehicle 1, then 2, …"),
        Field("AngEuler", f"{3 * n}f", "rad: roll, pitch, yaw of vehicle 1, then 2, …"),
        Field("Scale", f"{3 * n}H", "1/100"),
    )
    return PacketType(name, size, _BOTH, (_CHECKSUM, *fields, motors))


HIT = Field("tg", "i", "id of the vehicle that was hit; below 0: none")
SOUT2_SIMULATOR_FRAME = PacketType(
    "SOut2Simulator (old)", 200, (152,),
    (
        HIT,
        Field("len", "i", "152"),
        _ID,
        Field("vehicleType", "i"),
        Field("runnedTime", "d", "s"),
        Field("VelE", "3f", "m/s, NED"),
        Field("PosE", "3f", "m, NED"),
        Field("AngEuler", "3f", "rad: roll, pitch, yaw of FRD in NED"),
        Field("AngQuatern", "4f", "w x y z of FRD in NED"),
        Field("MotorRPMS", "8f", "rpm"),
        Field("AccB", "3f", "m/s^2, FRD"),
        Field("RateB", "3f", "rad/s, FRD"),
        Field("PosGPS", "3d", "deg, deg, m; the order is not settled"),
        Field("unused", "40B"),
    ),
    MappingProxyType({"RateB": 4}),
    mark="len",
)  # fmt: skip
"""Older form, whose C structure aligns the doubles: of sendUE4PosFull of old SDKs (with tg 2), and
the truth of an old CopterSim.
"""

MULTI3D_DATA_100_NEW = _fleet_packet(
    "Multi3DData100New", 3804, 100, Field("MotorRPMSMean", "100f", "rpm")
)
MULTI3D_DATA_2_NEW = _fleet_packet(
    "Multi3DData2New", 1324, 20, Field("PWMs", "160f", "rpm: the 8 motors of vehicle 1, then 2, …")
)

UE4_EXT_MSG = PacketType(
    "Ue4ExtMsg",
    144,
    (CHECKSUM_ACTION,),
    (
        _CHECKSUM,
        _ID,
        Field("runnedTime", "d", "s since the sender began"),
        Field("ExtToUE4", "16d"),
    ),
)
"""Numbers for the blueprint of a vehicle, which alone knows their meaning."""
UE4_EXT_MSG_OLD = PacketType(
    "Ue4ExtMsg (old)",
    80,
    (CHECKSUM_ACTION,),
    (*UE4_EXT_MSG.fields[:-1], Field("ExtToUE4", "16f")),
)
"""Form of SDKs before about 2023."""

# values of AttatchTypes
ATTACH_NONE = 0
"""The vehicle is not attached."""
ATTACH_POSITION = 1
"""The position is relative to the other vehicle."""
ATTACH_POSITION_YAW = 2
"""Position and yaw are relative."""
ATTACH_ATTITUDE = 3
"""Position and the whole attitude are relative."""

VEHICLE_ATTATCH_25 = PacketType(
    "VehicleAttatch25", 304, (CHECKSUM_ATTACH,),
    (
        _CHECKSUM,
        Field("CopterIDs", "25i", "who is attached; 0 = slot unused"),
        Field("AttatchIDs", "25i", "to whom"),
        Field("AttatchTypes", "25i", "0 normal, 1 relative position, 2 and yaw, 3 and attitude"),
    ),
)  # fmt: skip

COPTER_MSG = PacketType(
    "CopterMsg", 152, (CHECKSUM_LABEL,),
    (
        _CHECKSUM,
        Field("copterID", "i", "0 and below = all"),
        Field("dispFlag", "i", "the line: 0 the id line, 1 to 5 that one, below 0 a further one"),
        Field("RGB", "3i", "0 to 255"),
        Field("dispTime", "f", "s; 0 = for ever, below 0 = gone at once"),
        Field("fontSize", "f"),
        Field("text", "120s"),
    ),
)  # fmt: skip
"""A label at a vehicle. dispFlag and dispTime below 0 together clear all lines."""

_SENSOR_HEAD = (Field("checksum", "H"), Field("SeqID", "H"))
_SENSOR = (
    Field("TypeID", "H", "kind of sensor"),
    Field("TargetCopter", "H", "the vehicle that bears it"),
    Field("TargetMountType", "H"),
    Field("DataWidth", "H", "pixels"),
    Field("DataHeight", "H", "pixels"),
    Field("DataCheckFreq", "H", "Hz"),
    Field("SendProtocol", "8H", "way of sending, IP address in four numbers, port, …"),
    Field("CameraFOV", "f", "deg, horizontal"),
    Field("SensorPosXYZ", "3f", "m: forward, right, down of the vehicle; NED of the map"),
)
_SENSOR_EULER = Field("SensorAngEular", "3f", "deg: roll, pitch, yaw; positive pitch looks up")
_SENSOR_ANGLES = (
    Field("EularOrQuat", "f", "above 0.5: the quaternion counts"),
    _SENSOR_EULER,
    Field("SensorAngQuat", "4f", "w x y z"),
    Field("otherParams", "16f"),
)
VISION_SENSOR_REQ_OLD = PacketType(
    "VisionSensorReq (old)", 92, (CHECKSUM_CAMERA,),
    (*_SENSOR_HEAD, *_SENSOR, _SENSOR_EULER, Field("otherParams", "8f")),
)  # fmt: skip
VISION_SENSOR_REQ = PacketType(
    "VisionSensorReq", 144, (CHECKSUM_CAMERA,), (*_SENSOR_HEAD, *_SENSOR, *_SENSOR_ANGLES)
)  # fmt: skip
VISION_SENSOR_REQ_GIMBAL = PacketType(
    "VisionSensorReq (gimbal)", 148, (CHECKSUM_CAMERA,),
    (*_SENSOR_HEAD, Field("bitmask", "I", "what changes"), *_SENSOR, *_SENSOR_ANGLES),
)  # fmt: skip
"""Request for a gimbal's camera.

The three requests are packed as in RflySim's VisionCaptureApi.py; a public copy is in
github.com/EchoXuK/rFlySimapi.
"""
VISION_SENSOR_REQ_NEW = PacketType(
    "VisionSensorReqNew", 148, (CHECKSUM_CAMERA_NEW,), VISION_SENSOR_REQ_GIMBAL.fields
)
"""Request of newer windows, by RflySim's manual; also what a gimbal answers on UDP 20006."""

TO_RFLYSIM3D = PacketTable(
    (
        UE4_CMD0,
        UE4_CMD,
        UE4_CMD_NET,
        SOUT2_SIMULATOR_SIMPLE,
        SOUT2_SIMULATOR_SIMPLE1,
        SOUT2_SIMULATOR_SIMPLE_TIME_OLD,
        SOUT2_SIMULATOR_SIMPLE_TIME,
        SOUT2_SIMULATOR_SIMPLE_TIME_VEHICLE_API,
        SOUT2_SIMULATOR,
        SOUT2_SIMULATOR_FRAME,
        MULTI3D_DATA_100_NEW,
        MULTI3D_DATA_2_NEW,
        UE4_EXT_MSG,
        UE4_EXT_MSG_OLD,
        VEHICLE_ATTATCH_25,
        COPTER_MSG,
        VISION_SENSOR_REQ_OLD,
        VISION_SENSOR_REQ,
        VISION_SENSOR_REQ_GIMBAL,
        VISION_SENSOR_REQ_NEW,
    )
)
"""Every packet that a host sends to RflySim3D."""


def decode(datagram: bytes | bytearray | memoryview, table: PacketTable = TO_RFLYSIM3D) -> Packet:
    """Return the packet in a datagram, as `table.decode`.

    Any bytes give a Packet or raise PacketError.
    """
    return table.decode(datagram)
