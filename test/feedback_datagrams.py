# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""One complete datagram of each packet that RflySim3D or CopterSim sends, as hex.

They are spelled from the wire table. Every field has a value of its own. The floats can be checked
by eye: 1.0 is 3f800000, 2.0 40000000, 3.0 40400000, 4.0 40800000, 8.0 41000000, 16.0 41800000, 0.5
3f000000 as float, 1.5 is 3ff8000000000000 as double; little-endian turns them round.
"""

from __future__ import annotations

from types import MappingProxyType

ANSWER = "d3029649"  # 1234567891 = 0x499602d3
REPORT = "d9029649"  # 1234567897 = 0x499602d9

CRASH = (
    "d2029649"  # 1234567890 = 0x499602d2
    "05000000"  # copterID 5
    "fdffffff"  # targetID -3
)  # fmt: skip

SIL = (
    REPORT
    + "07000000"  # copterID 7
    # inSILInts
    + "01000000" "02000000" "03000000" "04000000" "05000000" "06000000" "09000000" "ffffffff"
    + "0000803f" "00000040" "00004040" "00008040" "0000a040"  # inSILFloats 1, 2, 3, 4, 5
    + "0000c040" "0000e040" "00000041" "00001041" "00002041"  # 6, 7, 8, 9, 10
    + "00003041" "00004041" "00005041" "00006041" "00007041"  # 11, 12, 13, 14, 15
    + "00008041" "00008841" "00009041" "00009841" "0000a0c1"  # 16, 17, 18, 19, -20
)  # fmt: skip

VEHICLE_CRASH = (
    REPORT
    + "e9030000"  # copterID 1001
    + "97000000"  # vehicleType 151
    + "feffffff"  # CrashType -2: the ground
    + "0000000000002940"  # runnedTime 12.5
    + "0000803f" "000000c0" "00004040"  # VelE 1, -2, 3
    + "00008040" "0000a040" "0000c0c0"  # PosE 4, 5, -6
    + "0000e040" "00000041" "000010c1"  # CrashPos 7, 8, -9
    + "00002041" "00003041" "000040c1"  # targetPos 10, 11, -12
    + "0000003f" "0000803e" "000000be"  # AngEuler 0.5, 0.25, -0.125
    + "00007042" "0000f042" "00003443" "00007043"  # MotorRPMS 60, 120, 180, 240
    + "00009643" "0000b443" "0000d243" "0000f043"  # 300, 360, 420, 480
    # ray 13, 14, 15, 16, 17, 18
    + "00005041" "00006041" "00007041" "00008041" "00008841" "00009041"
    + "426f64656e" + "00" * 15  # CrashedName "Boden", 5 bytes of 20
)  # fmt: skip

_CAMERA_HEAD = (
    ANSWER
    + "0b000000"  # SeqID 11
    + "02000000"  # TypeID 2
    + "e0010000"  # DataHeight 480
    + "80020000"  # DataWidth 640
    + "0000b442"  # CameraFOV 90
    + "0000803f" "00000040" "000040c0"  # PosUE 1, 2, -3
    + "0000003f" "0000803e" "000000be"  # angEuler 0.5, 0.25, -0.125
)  # fmt: skip
_QUATERNION = "00008040" "0000a040" "0000c040" "0000e040"  # angQuat 4, 5, 6, 7  # fmt: skip
CAMERA_OLD = _CAMERA_HEAD + "000000000000f83f"  # timestamp 1.5
CAMERA = _CAMERA_HEAD + _QUATERNION + "0000000000000440"  # timestamp 2.5

_VEHICLE_HEAD = (
    ANSWER
    + "0c000000"  # copterID 12, or seqID 12 of an object
    + "00001041" "00002041" "000030c1"  # PosUE 9, 10, -11
    + "0000403f" "000040bf" "0000c0be"  # angEuler 0.75, -0.75, -0.375
)  # fmt: skip
_BOX = (
    "00004041" "00005041" "000060c1"  # boxOrigin 12, 13, -14
    "00007041" "00008041" "00008841"  # boxExtent 15, 16, 17
)  # fmt: skip
VEHICLE_OLD = _VEHICLE_HEAD + _BOX + "0000000000000c40"  # timestamp 3.5
VEHICLE = _VEHICLE_HEAD + _QUATERNION + _BOX + "0000000000001240"  # timestamp 4.5

_NAME = "5a69656c5fc3a4" + "00" * 25  # "Ziel_ä", 7 bytes of 32
OBJECT_OLD = _VEHICLE_HEAD + _BOX + "0000000000001640" + _NAME  # timestamp 5.5
OBJECT = _VEHICLE_HEAD + _QUATERNION + _BOX + "0000000000001a40" + _NAME  # timestamp 6.5

GIMBAL = (
    "3a30"  # checksum 12346 = 0x303a
    "0200"  # SeqID 2
    "0f000080"  # bitmask 0x8000000f
    # TypeID 3, TargetCopter 4, MountType 5, 640, 480, DataCheckFreq 30
    "0300" "0400" "0500" "8002" "e001" "1e00"
    "0600" "0700" "0800" "0900" "0a00" "0b00" "0c00" "ffff"  # SendProtocol 6 … 12, 65535
    "0000b442"  # CameraFOV 90
    "0000803f" "00000040" "000040c0"  # SensorPosXYZ 1, 2, -3
    "00008040"  # EularOrQuat 4
    "0000003f" "0000803e" "000000be"  # SensorAngEular 0.5, 0.25, -0.125
    "0000a040" "0000c040" "0000e040" "00000041"  # SensorAngQuat 5, 6, 7, 8
    # otherParams 9 … 16
    "00001041" "00002041" "00003041" "00004041" "00005041" "00006041" "00007041" "00008041"
    # 17 … 23, -24
    "00008841" "00009041" "00009841" "0000a041" "0000a841" "0000b041" "0000b841" "0000c0c1"
)  # fmt: skip

_CAMERA_VALUES = {
    "SeqID": 11,
    "TypeID": 2,
    "DataHeight": 480,
    "DataWidth": 640,
    "CameraFOV": 90.0,
    "PosUE": (1.0, 2.0, -3.0),
    "angEuler": (0.5, 0.25, -0.125),
}
_BODY_VALUES = {
    "PosUE": (9.0, 10.0, -11.0),
    "angEuler": (0.75, -0.75, -0.375),
    "boxOrigin": (12.0, 13.0, -14.0),
    "boxExtent": (15.0, 16.0, 17.0),
}
_QUAT_VALUES = {"angQuat": (4.0, 5.0, 6.0, 7.0)}

DATAGRAMS = MappingProxyType(
    {
        "CopterSimCrash": (CRASH, 12, {"checksum": 1234567890, "copterID": 5, "targetID": -3}),
        "PX4SILIntFloat": (
            SIL,
            120,
            {
                "checksum": 1234567897,
                "copterID": 7,
                "inSILInts": (1, 2, 3, 4, 5, 6, 9, -1),
                "inSILFloats": (*map(float, range(1, 20)), -20.0),
            },
        ),
        "reqVeCrashData": (
            VEHICLE_CRASH,
            160,
            {
                "checksum": 1234567897,
                "copterID": 1001,
                "vehicleType": 151,
                "CrashType": -2,
                "runnedTime": 12.5,
                "VelE": (1.0, -2.0, 3.0),
                "PosE": (4.0, 5.0, -6.0),
                "CrashPos": (7.0, 8.0, -9.0),
                "targetPos": (10.0, 11.0, -12.0),
                "AngEuler": (0.5, 0.25, -0.125),
                "MotorRPMS": (60.0, 120.0, 180.0, 240.0, 300.0, 360.0, 420.0, 480.0),
                "ray": (13.0, 14.0, 15.0, 16.0, 17.0, 18.0),
                "CrashedName": "Boden",
            },
        ),
        "CameraData (old)": (
            CAMERA_OLD,
            56,
            {"checksum": 1234567891, **_CAMERA_VALUES, "timestamp": 1.5},
        ),
        "CameraData": (
            CAMERA,
            72,
            {"checksum": 1234567891, **_CAMERA_VALUES, **_QUAT_VALUES, "timestamp": 2.5},
        ),
        "CoptReqData (old)": (
            VEHICLE_OLD,
            64,
            {
                "checksum": 1234567891,
                "copterID": 12,
                **_BODY_VALUES,
                "timestamp": 3.5,
            },
        ),
        "CoptReqData": (
            VEHICLE,
            80,
            {
                "checksum": 1234567891,
                "copterID": 12,
                **_BODY_VALUES,
                **_QUAT_VALUES,
                "timestamp": 4.5,
            },
        ),
        "ObjReqData (old)": (
            OBJECT_OLD,
            96,
            {
                "checksum": 1234567891,
                "seqID": 12,
                **_BODY_VALUES,
                "timestamp": 5.5,
                "name": "Ziel_ä",
            },
        ),
        "ObjReqData": (
            OBJECT,
            112,
            {
                "checksum": 1234567891,
                "seqID": 12,
                **_BODY_VALUES,
                **_QUAT_VALUES,
                "timestamp": 6.5,
                "name": "Ziel_ä",
            },
        ),
        "VisionSensorReqNew": (
            GIMBAL,
            148,
            {
                "checksum": 12346,
                "SeqID": 2,
                "bitmask": 0x8000000F,
                "TypeID": 3,
                "TargetCopter": 4,
                "TargetMountType": 5,
                "DataWidth": 640,
                "DataHeight": 480,
                "DataCheckFreq": 30,
                "SendProtocol": (6, 7, 8, 9, 10, 11, 12, 65535),
                "CameraFOV": 90.0,
                "SensorPosXYZ": (1.0, 2.0, -3.0),
                "EularOrQuat": 4.0,
                "SensorAngEular": (0.5, 0.25, -0.125),
                "SensorAngQuat": (5.0, 6.0, 7.0, 8.0),
                "otherParams": (*map(float, range(9, 24)), -24.0),
            },
        ),
    }
)
"""Wire name -> (hex, bytes, the values that the hex spells)."""
