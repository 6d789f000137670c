# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Packet declarations against datagrams written by hand, and the decoder against any bytes.

One complete datagram of each packet is spelled as hex from the wire table, every field with a value
of its own. The floats were chosen so that their IEEE 754 form can be checked by eye: 1.0 is
3f800000, 1.5 3fc00000, 2.0 40000000, 3.0 40400000 … as float, 1.0 is 3ff0000000000000 as double;
little-endian turns them round.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_common.errors import PacketError
from rfly_ue_bridge.codec.to_rflysim3d import TO_RFLYSIM3D, decode

CHECKSUM = "d2029649"  # 1234567890 = 0x499602d2
CHECKSUM_GROUND = "d3029649"  # 1234567891
CHECKSUM_LAN = "d9029649"  # 1234567897
CHECKSUM_FULL = "15cd5b07"  # 123456789 = 0x075bcd15
CHECKSUM_ATTACH = "d4029649"  # 1234567892
CHECKSUM_ACTION = "d6029649"  # 1234567894
CHECKSUM_LABEL = "db029649"  # 1234567899

COMMAND_SHORT = (
    CHECKSUM + "722e736574726573203732307834303577" + "00" * 35
)  # r.setres 720x405w, 17 bytes of 52

COMMAND_LONG = (
    CHECKSUM
    + "52666c7953686f775465787454696d6520"  # "RflyShowTextTime "
    + "41" * 40  # A
    + "2035"  # " 5": 59 bytes of 252
    + "00" * 193
)

COMMAND_LAN = (
    CHECKSUM_LAN + "52666c79436c65617243617074757265" + "00" * 76
)  # RflyClearCapture, 16 bytes of 92

_SIMPLE_BODY = (
    "64000000"  # copterID 100
    "d60d0300"  # vehicleType 200150 = 0x30dd6
    "00007a44"  # MotorRPMSMean 1000 = 0x447a0000
    "0000803f" "00000040" "000040c0"  # PosE 1, 2, -3
    "0000003f" "0000803e" "000000be"  # AngEuler 0.5, 0.25, -0.125
)  # fmt: skip

SIMPLE = CHECKSUM + _SIMPLE_BODY
SIMPLE_GROUND = CHECKSUM_GROUND + _SIMPLE_BODY
SIMPLE1 = CHECKSUM + _SIMPLE_BODY + "0000c03f" "00008040" "0000a040"  # Scale 1.5, 4, 5  # fmt: skip
SIMPLE1_GROUND = CHECKSUM_GROUND + _SIMPLE_BODY + "0000c03f" "00008040" "0000a040"  # fmt: skip

SIMPLE_TIME = (
    CHECKSUM_GROUND  # the same number; it says nothing about the ground in this packet
    + "e9030000"  # copterID 1001
    "97000000"  # vehicleType 151
    "15cd5b07" "eb32a4f8" "39300000"  # PosGpsInt 123456789, -123456789, 12345
    "0000803f" "00000040" "00004040" "00008040"  # MotorRPMS 1, 2, 3, 4
    "0000a040" "0000c040" "0000e040" "00000041"  # 5, 6, 7, 8
    "00001041" "000020c1" "00003041"  # VelE 9, -10, 11
    "0000003f" "000080be" "0000003e"  # AngEuler 0.5, -0.25, 0.125
    "000000000000f83f"  # PosE 1.5
    "00000000000004c0"  # -2.5
    "0000000000000c40"  # 3.5
    "0000000000002940"  # runnedTime 12.5
)  # fmt: skip

SIMPLE_TIME_OLD = (
    CHECKSUM
    + "07000000"  # copterID 7
    + "03000000"  # vehicleType 3
    "0000803f" "00000040" "00004040" "00008040"  # PWMs 1, 2, 3, 4
    "0000a040" "0000c040" "0000e040" "00000041"  # 5, 6, 7, 8
    "00001041" "000020c1" "00003041"  # PosE 9, -10, 11
    "00004041" "000050c1" "00006041"  # VelE 12, -13, 14
    "0000003f" "000080be" "0000003e"  # AngEuler 0.5, -0.25, 0.125
    "0000000000002940"  # runnedTime 12.5
)  # fmt: skip

FULL = (
    CHECKSUM_FULL
    + "ea030000"  # copterID 1002
    "36870100"  # vehicleType 100150 = 0x18736
    "4d000000"  # reserved 77
    "00001041" "000020c1" "00003041"  # VelE 9, -10, 11
    "0000003f" "000080be" "0000003e"  # AngEuler 0.5, -0.25, 0.125
    "0000403f" "000040bf" "0000203f" "0000603f"  # AngQuatern 0.75, -0.75, 0.625, 0.875
    "0000803f" "00000040" "00004040" "00008040"  # MotorRPMS 1, 2, 3, 4
    "0000a040" "0000c040" "0000e040" "00000041"  # 5, 6, 7, 8
    "00004041" "000050c1" "00006041"  # AccB 12, -13, 14
    "00007041" "00008041" "000088c1"  # RateB 15, 16, -17
    "0000000000002940"  # runnedTime 12.5
    "000000000000f83f"  # PosE 1.5
    "00000000000004c0"  # -2.5
    "0000000000000c40"  # 3.5
    "0000000000002140"  # PosGPS 8.5
    "0000000000a04740"  # 47.25 = 0x4047a00000000000
    "0000000000807e40"  # 488 = 0x407e800000000000
)  # fmt: skip

FULL_OLD = (
    "02000000" "98000000"  # tg 2, length 152
    "ea030000"  # copterID 1002
    "36870100"  # vehicleType 100150
    "0000000000002940"  # runnedTime 12.5
    "00001041" "000020c1" "00003041"  # VelE 9, -10, 11
    "0000c03f" "000020c0" "00006040"  # PosE 1.5, -2.5, 3.5
    "0000003f" "000080be" "0000003e"  # AngEuler 0.5, -0.25, 0.125
    "0000403f" "000040bf" "0000203f" "0000603f"  # AngQuatern 0.75, -0.75, 0.625, 0.875
    "0000803f" "00000040" "00004040" "00008040"  # MotorRPMS 1, 2, 3, 4
    "0000a040" "0000c040" "0000e040" "00000041"  # 5, 6, 7, 8
    "00004041" "000050c1" "00006041"  # AccB 12, -13, 14
    "00007041" "00008041" "000088c1"  # RateB 15, 16, -17
    "00000000"  # alignment of the doubles
    "0000000000002140"  # PosGPS 8.5
    "0000000000a04740"  # 47.25
    "0000000000807e40"  # 488
    + "00" * 40
)  # fmt: skip

ACTION = (
    CHECKSUM_ACTION
    + "05000000"  # copterID 5
    "0000000000002940"  # runnedTime 12.5
    # ExtToUE4 1, 2, 3, 4
    "000000000000f03f" "0000000000000040" "0000000000000840" "0000000000001040"
    "0000000000001440" "0000000000001840" "0000000000001c40" "0000000000002040"  # 5, 6, 7, 8
    "0000000000002240" "0000000000002440" "0000000000002640" "0000000000002840"  # 9, 10, 11, 12
    "0000000000002a40" "0000000000002c40" "0000000000002e40" "0000000000003040"  # 13, 14, 15, 16
)  # fmt: skip

ATTACHMENTS = (
    CHECKSUM_ATTACH
    # CopterIDs[25]: 1, 2, 1001, …, 25
    + "01000000" "02000000" "e9030000" + "00000000" * 21 + "19000000"
    # AttatchIDs[25]: 100, 101, 102, …, 65536
    + "64000000" "65000000" "66000000" + "00000000" * 21 + "00000100"
    # AttatchTypes[25]: 1, 2, 3, …, 2
    + "01000000" "02000000" "03000000" + "00000000" * 21 + "02000000"
)  # fmt: skip

LABEL = (
    CHECKSUM_LABEL
    + "eb030000"  # copterID 1003
    "ffffffff"  # dispFlag -1
    "ff000000" "80000000" "40000000"  # RGB 255, 128, 64
    "00002040"  # dispTime 2.5
    "0000f041"  # fontSize 30 = 0x41f00000
    "6772c3b6c39f6572"  # "größer", 8 bytes of 120
    + "00" * 112
)  # fmt: skip

_MULTI_BODY = (
    # copterID[100]: 1, 65535, then nothing but the last slot 300 = 0x12c
    "0100" "ffff" + "0000" * 97 + "2c01"
    # vehicleType[100]: 3, 30, …, 65534
    + "0300" "1e00" + "0000" * 97 + "feff"
    # PosE[300]: x y z of vehicle 1, of vehicle 2, …, of vehicle 100
    + "0000803f" "00000040" "00004040" "00008040" "0000a040" "0000c040"
    + "00000000" * 291
    + "0000e040" "00000041" "00001041"
    # AngEuler[300]
    + "0000003f" "000000bf" "0000803e" "000080be" "0000003e" "000000be"
    + "00000000" * 291
    + "0000403f" "000040bf" "0000c03f"
    # Scale[300] in 1/100: 1.00, 1.01, 1.02; 2.00, 2.01, 655.35; …; 0.01, 0.02, 0.03
    + "6400" "6500" "6600" "c800" "c900" "ffff" + "0000" * 291 + "0100" "0200" "0300"
    # MotorRPMSMean[100]: 10, 12, …, 1000
    + "00002041" "00004041" + "00000000" * 97 + "00007a44"
)  # fmt: skip

MULTI = CHECKSUM + _MULTI_BODY
MULTI_GROUND = CHECKSUM_GROUND + _MULTI_BODY

_MULTI20_BODY = (
    # copterID[20]: 1, 65535, then nothing but the last slot 300; vehicleType[20]: 3, 30, …, 65534
    "0100" "ffff" + "0000" * 17 + "2c01"
    + "0300" "1e00" + "0000" * 17 + "feff"
    # PosE[60] and AngEuler[60] of vehicles 1, 2 and 20
    + "0000803f" "00000040" "00004040" "00008040" "0000a040" "0000c040"
    + "00000000" * 51
    + "0000e040" "00000041" "00001041"
    + "0000003f" "000000bf" "0000803e" "000080be" "0000003e" "000000be"
    + "00000000" * 51
    + "0000403f" "000040bf" "0000c03f"
    # Scale[60] in 1/100
    + "6400" "6500" "6600" "c800" "c900" "ffff" + "0000" * 51 + "0100" "0200" "0300"
    # PWMs[160]: 10, 12, … 24 of vehicle 1, 26 first of vehicle 2, 1000 last of vehicle 20
    + "00002041" "00004041" "00006041" "00008041" "00009041" "0000a041" "0000b041" "0000c041"
    + "0000d041" + "00000000" * 150 + "00007a44"
)  # fmt: skip

MULTI20 = CHECKSUM + _MULTI20_BODY
MULTI20_GROUND = CHECKSUM_GROUND + _MULTI20_BODY


_SENSOR_HEAD = "39300200"  # checksum 12345 = 0x3039, SeqID 2
_SENSOR = (
    "1700" "0100" "0000"  # TypeID 23, TargetCopter 1, TargetMountType 0
    "8002" "e001" "1e00"  # DataWidth 640 = 0x280, DataHeight 480 = 0x1e0, DataCheckFreq 30
    # SendProtocol 1, 127, 0, 0, 1, 9999, 0, 0
    "0100" "7f00" "0000" "0000" "0100" "0f27" "0000" "0000"
    "0000b442"  # CameraFOV 90 = 0x42b40000
    "0000c03f" "000000bf" "0000803e"  # SensorPosXYZ 1.5, -0.5, 0.25
)  # fmt: skip
_SENSOR_EULER = "00000000" "0000b4c2" "00003443"  # 0, -90, 180  # fmt: skip
_SENSOR_ANGLES = (
    "0000803f" + _SENSOR_EULER  # EularOrQuat 1
    + "0000803f" "00000000" "0000003f" "000000bf"  # SensorAngQuat 1, 0, 0.5, -0.5
    + "0000803f" + "00000000" * 14 + "00008040"  # otherParams 1, 0, …, 4
)  # fmt: skip
CAMERA = _SENSOR_HEAD + _SENSOR + _SENSOR_ANGLES
CAMERA_OLD = _SENSOR_HEAD + _SENSOR + _SENSOR_EULER + "0000803f" + "00000000" * 6 + "00008040"
CAMERA_GIMBAL = _SENSOR_HEAD + "05000080" + _SENSOR + _SENSOR_ANGLES  # bitmask 0x80000005


def _with_gap(first: list, last: list, gap: int) -> tuple:  # what lies between the used slots is 0
    return tuple(first + [0] * gap + last)


_SIMPLE_VALUES = {
    "copterID": 100,
    "vehicleType": 200150,
    "MotorRPMSMean": 1000.0,
    "PosE": (1.0, 2.0, -3.0),
    "AngEuler": (0.5, 0.25, -0.125),
}

_MULTI_VALUES = {
    "copterID": _with_gap([1, 65535], [300], 97),
    "vehicleType": _with_gap([3, 30], [65534], 97),
    "PosE": _with_gap([1, 2, 3, 4, 5, 6], [7, 8, 9], 291),
    "AngEuler": _with_gap([0.5, -0.5, 0.25, -0.25, 0.125, -0.125], [0.75, -0.75, 1.5], 291),
    "Scale": _with_gap([100, 101, 102, 200, 201, 65535], [1, 2, 3], 291),
    "MotorRPMSMean": _with_gap([10, 12], [1000], 97),
}

_MULTI20_VALUES = {
    "copterID": _with_gap([1, 65535], [300], 17),
    "vehicleType": _with_gap([3, 30], [65534], 17),
    "PosE": _with_gap([1, 2, 3, 4, 5, 6], [7, 8, 9], 51),
    "AngEuler": _with_gap([0.5, -0.5, 0.25, -0.25, 0.125, -0.125], [0.75, -0.75, 1.5], 51),
    "Scale": _with_gap([100, 101, 102, 200, 201, 65535], [1, 2, 3], 51),
    "PWMs": _with_gap([10, 12, 14, 16, 18, 20, 22, 24, 26], [1000], 150),
}

_SENSOR_VALUES = {
    "checksum": 12345,
    "SeqID": 2,
    "TypeID": 23,
    "TargetCopter": 1,
    "TargetMountType": 0,
    "DataWidth": 640,
    "DataHeight": 480,
    "DataCheckFreq": 30,
    "SendProtocol": (1, 127, 0, 0, 1, 9999, 0, 0),
    "CameraFOV": 90.0,
    "SensorPosXYZ": (1.5, -0.5, 0.25),
    "SensorAngEular": (0.0, -90.0, 180.0),
}
_SENSOR_VALUES_NEW = {
    **_SENSOR_VALUES,
    "EularOrQuat": 1.0,
    "SensorAngQuat": (1.0, 0.0, 0.5, -0.5),
    "otherParams": _with_gap([1.0], [4.0], 14),
}

VEHICLE_API = (
    "d2029649 01000000 03000000"  # checksum 1234567890, id 1, type 3
    + "00007a44" * 4  # four motors at 1000
    + "00000000" * 4
    + "0000803f 00000000 00000000"  # VelE 1 0 0
    + "00000000 00000000 0000c03f"  # yaw 1.5
    + "00000000"  # C alignment
    + "0000000000002440 0000000000001440 00000000000004c0"  # PosE 10 5 -2.5
    + "0000000000002940"  # 12.5 s
)
ACTION_OLD = (
    "d6029649 01000000"  # checksum 1234567894, id 1
    + "0000000000000040"  # 2.0 s
    + "0000803f"  # 1.0 as a float
    + "00" * 60
)

WRITTEN_BY_HAND = [
    ("Ue4CMD0", COMMAND_SHORT, {"checksum": 1234567890, "text": "r.setres 720x405w"}),
    (
        "Ue4CMD",
        COMMAND_LONG,
        {"checksum": 1234567890, "text": "RflyShowTextTime " + "A" * 40 + " 5"},
    ),
    ("Ue4CMDNet", COMMAND_LAN, {"checksum": 1234567897, "text": "RflyClearCapture"}),
    ("SOut2SimulatorSimple", SIMPLE, {"checksum": 1234567890, **_SIMPLE_VALUES}),
    ("SOut2SimulatorSimple", SIMPLE_GROUND, {"checksum": 1234567891, **_SIMPLE_VALUES}),
    (
        "SOut2SimulatorSimple1",
        SIMPLE1,
        {"checksum": 1234567890, **_SIMPLE_VALUES, "Scale": (1.5, 4.0, 5.0)},
    ),
    (
        "SOut2SimulatorSimple1",
        SIMPLE1_GROUND,
        {"checksum": 1234567891, **_SIMPLE_VALUES, "Scale": (1.5, 4.0, 5.0)},
    ),
    (
        "SOut2SimulatorSimpleTime",
        SIMPLE_TIME,
        {
            "checksum": 1234567891,
            "copterID": 1001,
            "vehicleType": 151,
            "PosGpsInt": (123456789, -123456789, 12345),
            "MotorRPMS": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
            "VelE": (9.0, -10.0, 11.0),
            "AngEuler": (0.5, -0.25, 0.125),
            "PosE": (1.5, -2.5, 3.5),
            "runnedTime": 12.5,
        },
    ),
    (
        "SOut2SimulatorSimpleTime (old)",
        SIMPLE_TIME_OLD,
        {
            "checksum": 1234567890,
            "copterID": 7,
            "vehicleType": 3,
            "PWMs": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
            "PosE": (9.0, -10.0, 11.0),
            "VelE": (12.0, -13.0, 14.0),
            "AngEuler": (0.5, -0.25, 0.125),
            "runnedTime": 12.5,
        },
    ),
    (
        "SOut2Simulator (old)",
        FULL_OLD,
        {
            "tg": 2,
            "len": 152,
            "copterID": 1002,
            "vehicleType": 100150,
            "runnedTime": 12.5,
            "VelE": (9, -10, 11),
            "PosE": (1.5, -2.5, 3.5),
            "AngEuler": (0.5, -0.25, 0.125),
            "AngQuatern": (0.75, -0.75, 0.625, 0.875),
            "MotorRPMS": (1, 2, 3, 4, 5, 6, 7, 8),
            "AccB": (12, -13, 14),
            "RateB": (15, 16, -17),
            "PosGPS": (8.5, 47.25, 488),
            "unused": (0,) * 40,
        },
    ),
    (
        "SOut2Simulator",
        FULL,
        {
            "checksum": 123456789,
            "copterID": 1002,
            "vehicleType": 100150,
            "reserved": 77,
            "VelE": (9.0, -10.0, 11.0),
            "AngEuler": (0.5, -0.25, 0.125),
            "AngQuatern": (0.75, -0.75, 0.625, 0.875),
            "MotorRPMS": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
            "AccB": (12.0, -13.0, 14.0),
            "RateB": (15.0, 16.0, -17.0),
            "runnedTime": 12.5,
            "PosE": (1.5, -2.5, 3.5),
            "PosGPS": (8.5, 47.25, 488.0),
        },
    ),
    (
        "Ue4ExtMsg",
        ACTION,
        {
            "checksum": 1234567894,
            "copterID": 5,
            "runnedTime": 12.5,
            "ExtToUE4": (
                1.0,
                2.0,
                3.0,
                4.0,
                5.0,
                6.0,
                7.0,
                8.0,
                9.0,
                10.0,
                11.0,
                12.0,
                13.0,
                14.0,
                15.0,
                16.0,
            ),
        },
    ),
    (
        "Ue4ExtMsg (old)",
        ACTION_OLD,
        {
            "checksum": 1234567894,
            "copterID": 1,
            "runnedTime": 2.0,
            "ExtToUE4": (1.0, *[0.0] * 15),
        },
    ),
    (
        "SOut2SimulatorSimpleTime (VehicleApi)",
        VEHICLE_API,
        {
            "checksum": 1234567890,
            "copterID": 1,
            "vehicleType": 3,
            "PWMs": (*[1000.0] * 4, *[0.0] * 4),
            "VelE": (1.0, 0.0, 0.0),
            "AngEuler": (0.0, 0.0, 1.5),
            "PosE": (10.0, 5.0, -2.5),
            "runnedTime": 12.5,
        },
    ),
    (
        "VehicleAttatch25",
        ATTACHMENTS,
        {
            "checksum": 1234567892,
            "CopterIDs": _with_gap([1, 2, 1001], [25], 21),
            "AttatchIDs": _with_gap([100, 101, 102], [65536], 21),
            "AttatchTypes": _with_gap([1, 2, 3], [2], 21),
        },
    ),
    (
        "CopterMsg",
        LABEL,
        {
            "checksum": 1234567899,
            "copterID": 1003,
            "dispFlag": -1,
            "RGB": (255, 128, 64),
            "dispTime": 2.5,
            "fontSize": 30.0,
            "text": "größer",
        },
    ),
    (
        "VisionSensorReq (old)",
        CAMERA_OLD,
        {**_SENSOR_VALUES, "otherParams": _with_gap([1.0], [4.0], 6)},
    ),
    ("VisionSensorReq", CAMERA, _SENSOR_VALUES_NEW),
    ("VisionSensorReq (gimbal)", CAMERA_GIMBAL, {**_SENSOR_VALUES_NEW, "bitmask": 0x80000005}),
    (
        "VisionSensorReqNew",
        "3a30" + CAMERA_GIMBAL[4:],
        {**_SENSOR_VALUES_NEW, "checksum": 12346, "bitmask": 0x80000005},
    ),
    ("Multi3DData2New", MULTI20, {"checksum": 1234567890, **_MULTI20_VALUES}),
    ("Multi3DData2New", MULTI20_GROUND, {"checksum": 1234567891, **_MULTI20_VALUES}),
    ("Multi3DData100New", MULTI, {"checksum": 1234567890, **_MULTI_VALUES}),
    ("Multi3DData100New", MULTI_GROUND, {"checksum": 1234567891, **_MULTI_VALUES}),
]
"""Wire name, hex, values by field name."""

CASES = [pytest.param(*row, id=f"{row[0]}-{row[1][:2]}") for row in WRITTEN_BY_HAND]
BY_NAME = {packet_type.name: packet_type for packet_type in TO_RFLYSIM3D}

SIZES = {
    "Ue4CMD0": 56,
    "Ue4CMD": 256,
    "Ue4CMDNet": 96,
    "SOut2SimulatorSimple": 40,
    "SOut2SimulatorSimple1": 52,
    "SOut2SimulatorSimpleTime": 112,
    "SOut2SimulatorSimpleTime (old)": 88,
    "SOut2SimulatorSimpleTime (VehicleApi)": 104,
    "SOut2Simulator": 168,
    "SOut2Simulator (old)": 200,
    "Multi3DData100New": 3804,
    "Multi3DData2New": 1324,
    "Ue4ExtMsg": 144,
    "Ue4ExtMsg (old)": 80,
    "VehicleAttatch25": 304,
    "CopterMsg": 152,
    "VisionSensorReq (old)": 92,
    "VisionSensorReq": 144,
    "VisionSensorReq (gimbal)": 148,
    "VisionSensorReqNew": 148,
}


def test_sizes_of_the_wire_table():
    """Each packet has the documented size, as struct and as NumPy record."""
    assert {t.name: t.size for t in TO_RFLYSIM3D} == SIZES
    assert {t.name: t.struct.size for t in TO_RFLYSIM3D} == SIZES
    assert {t.name: t.dtype.itemsize for t in TO_RFLYSIM3D} == SIZES


@pytest.mark.parametrize(("name", "hex_bytes", "values"), CASES)
def test_packing_gives_the_bytes_written_by_hand(name, hex_bytes, values):
    assert BY_NAME[name].pack(values) == bytes.fromhex(hex_bytes)


@pytest.mark.parametrize(("name", "hex_bytes", "values"), CASES)
def test_unpacking_gives_the_values_written_by_hand(name, hex_bytes, values):
    packet = decode(bytes.fromhex(hex_bytes))
    assert packet.name == name
    assert dict(packet.values) == values
    assert packet.encode() == bytes.fromhex(hex_bytes)


@pytest.mark.parametrize(("name", "hex_bytes", "values"), CASES)
def test_numpy_record_reads_and_writes_the_same_bytes(name, hex_bytes, values):
    """The dtype comes from the same declaration and must mean the same bytes."""
    record = np.zeros(1, BY_NAME[name].dtype)
    for field, value in values.items():
        record[field] = value.encode() if isinstance(value, str) else value
    assert record.tobytes() == bytes.fromhex(hex_bytes)
    read = np.frombuffer(bytes.fromhex(hex_bytes), BY_NAME[name].dtype)[0]
    for field, value in values.items():
        if isinstance(value, str):
            assert read[field] == value.encode()
        else:
            np.testing.assert_array_equal(read[field], value)


def test_the_smallest_packet_of_vehicle_api():
    """Id 7, type 100 and zeros: 12 bytes and 92 zero bytes, of which four are alignment."""
    packet = decode(bytes.fromhex("d2029649 07000000 64000000" + "00" * 92))
    assert packet.name == "SOut2SimulatorSimpleTime (VehicleApi)"
    assert (packet["copterID"], packet["vehicleType"], packet["PosE"]) == (7, 100, (0, 0, 0))


def test_every_packet_has_a_datagram_written_by_hand():
    assert {row[0] for row in WRITTEN_BY_HAND} == set(SIZES)


@pytest.mark.parametrize(
    ("hex_bytes", "on_ground"),
    [
        pytest.param(SIMPLE, False, id="simple"),
        pytest.param(SIMPLE_GROUND, True, id="simple-ground"),
        pytest.param(SIMPLE1_GROUND, True, id="scale-ground"),
        pytest.param(MULTI_GROUND, True, id="multi-ground"),
        pytest.param(MULTI20_GROUND, True, id="multi20-ground"),
        pytest.param(MULTI20, False, id="multi20"),
        pytest.param(SIMPLE_TIME, False, id="1234567891-of-the-time-packet"),
    ],
)
def test_ground_variant_is_told_from_the_same_number_elsewhere(hex_bytes, on_ground):
    assert decode(bytes.fromhex(hex_bytes)).keep_on_ground is on_ground


@pytest.mark.parametrize(("name", "hex_bytes", "values"), CASES)
@pytest.mark.parametrize("change", [-1, 1])
def test_one_byte_less_or_more_is_refused_by_its_length(name, hex_bytes, values, change):
    datagram = bytes.fromhex(hex_bytes)
    with pytest.raises(PacketError) as caught:
        decode(datagram[:-1] if change < 0 else datagram + b"\0")
    assert caught.value.reason == "length"


@pytest.mark.parametrize(("name", "hex_bytes", "values"), CASES)
def test_another_checksum_is_refused(name, hex_bytes, values):
    datagram = bytearray.fromhex(hex_bytes)
    datagram[5 if name == "SOut2Simulator (old)" else 1] ^= 0x80
    with pytest.raises(PacketError) as caught:
        decode(datagram)
    assert caught.value.reason == "checksum"
    assert name in str(caught.value)


def test_the_sizes_own_checksum_is_wanted():
    """The length alone decides nothing.

    1234567891 is right for 112 bytes and wrong for a command of 56.
    """
    command = bytearray.fromhex(COMMAND_SHORT)
    command[0] = 0xD3
    with pytest.raises(PacketError, match="Ue4CMD0"):
        decode(command)


def test_text_that_is_not_utf8_is_refused():
    datagram = bytearray.fromhex(COMMAND_SHORT)
    datagram[4] = 0xFF
    with pytest.raises(PacketError) as caught:
        decode(datagram)
    assert caught.value.reason == "text"


def test_text_cut_inside_its_last_character_is_read_up_to_there():
    """RflySim's SDK cuts labels at byte 120; c3 alone is the first half of an umlaut."""
    datagram = bytearray.fromhex(LABEL)
    datagram[32:] = b"a" * 119 + b"\xc3"
    assert decode(datagram)["text"] == "a" * 119
    datagram[32:] = b"a" * 118 + b"\xc3\x00"  # cut before the field's end: no sender makes this
    with pytest.raises(PacketError, match=r"CopterMsg\.text"):
        decode(datagram)


def test_empty_and_huge_datagrams_are_refused():
    for datagram in (b"", b"\xd2", bytes(65507)):
        with pytest.raises(PacketError):
            decode(datagram)


def _decode_or_reason(datagram):
    try:
        return decode(datagram)
    except PacketError as error:
        return error.reason


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_raise_packet_error(datagram):
    outcome = _decode_or_reason(datagram)
    assert outcome in {"length", "checksum", "text"} or len(datagram) == outcome.type.size


@given(st.sampled_from(list(TO_RFLYSIM3D)), st.data())
def test_any_body_behind_a_right_checksum_decodes_or_raises_packet_error(packet_type, data):
    """A decoded packet packs to the same values again."""
    head = packet_type.checksum_struct.pack(packet_type.checksums[0])
    rest = packet_type.size - len(head)
    datagram = head + data.draw(st.binary(min_size=rest, max_size=rest))
    packet = _decode_or_reason(datagram)
    if packet == "text":
        return
    again = decode(packet.encode())
    assert again.type is packet_type
    for name, value in packet.values.items():
        np.testing.assert_array_equal(np.asarray(again[name]), np.asarray(value))


_numbers = {
    "B": st.integers(0, 2**8 - 1),
    "i": st.integers(-(2**31), 2**31 - 1),
    "H": st.integers(0, 2**16 - 1),
    "I": st.integers(0, 2**32 - 1),
    "f": st.floats(width=32, allow_nan=False),
    "d": st.floats(allow_nan=False),
}


@st.composite
def packets(draw):
    packet_type = draw(st.sampled_from(list(TO_RFLYSIM3D)))
    values = {packet_type.mark: draw(st.sampled_from(packet_type.checksums))}
    for field in packet_type.fields:
        if field.name == packet_type.mark:
            continue
        if field.is_text:
            letters = st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")
            values[field.name] = draw(st.text(letters, max_size=field.count // 4))
        elif field.count == 1:
            values[field.name] = draw(_numbers[field.code])
        else:  # a few drawn values, repeated over long fields
            few = draw(st.lists(_numbers[field.code], min_size=3, max_size=8))
            values[field.name] = tuple((few * field.count)[: field.count])
    return packet_type.make(**values)


@given(packets())
def test_round_trip(packet):
    assert decode(packet.encode()) == packet


def _simple(**changes):
    return {"checksum": 1234567890, **_SIMPLE_VALUES, **changes}


def test_floats_round_to_nearest_even_and_overflow_to_infinity():
    """Floats are packed as by the SDK.

    16777217 lies half-way between two floats, 1e39 is beyond the largest.
    """
    values = _simple(PosE=(16777217.0, 16777219.0, 1e39), MotorRPMSMean=-1e39)
    packet = decode(BY_NAME["SOut2SimulatorSimple"].pack(values))
    assert packet["PosE"] == (16777216.0, 16777220.0, float("inf"))
    assert packet["MotorRPMSMean"] == float("-inf")


def test_nan_is_packed_as_given():
    packet = decode(
        BY_NAME["SOut2SimulatorSimple"].pack(_simple(PosE=(float("nan"), 0.0, float("inf"))))
    )
    assert np.isnan(packet["PosE"][0])
    assert packet["PosE"][2] == float("inf")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        pytest.param({"copterID": 2**31}, "copterID", id="int32"),
        pytest.param({"checksum": 5}, "checksum 5", id="checksum"),
        pytest.param({"PosE": (1.0, 2.0)}, "PosE: 2 numbers", id="too-few"),
        pytest.param({"Wings": 2}, "Wings", id="unknown-field"),
    ],
)
def test_what_does_not_fit_is_named(changes, named):
    with pytest.raises(ValueError, match=named):
        BY_NAME["SOut2SimulatorSimple"].pack(_simple(**changes))


def test_uint16_of_the_fleet_packet():
    values = {
        "checksum": 1234567890,
        **_MULTI_VALUES,
        "vehicleType": (200150, *_MULTI_VALUES["vehicleType"][1:]),
    }
    with pytest.raises(
        ValueError, match=r"vehicleType: 200150 is out of range, allowed are 0 to 65535"
    ):
        BY_NAME["Multi3DData100New"].pack(values)


def test_text_too_long_for_its_field():
    with pytest.raises(ValueError, match="53 bytes of text, at most 52"):
        BY_NAME["Ue4CMD0"].make(text="x" * 53).encode()
