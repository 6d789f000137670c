# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""UE4CtrlAPI's datagrams, byte by byte on real sockets.

RflySim3D's three windows have a loopback address of their own. The bytes were put together by hand
from the wire table; `F` and `D` are the IEEE 754 forms of small numbers.
"""

from __future__ import annotations

import inspect
import socket
import struct
import time

import numpy as np
import pytest
from node_harness import PATIENCE
from rflysim_windows import ID_100_TYPE_30, Windows, floats

from rfly_ue_bridge.sdk.ue4_ctrl_api import UE4CtrlAPI

BROADCAST = "127.255.255.255"
D = {
    0: "0000000000000000",
    1: "000000000000f03f",
    2: "0000000000000040",
    3: "0000000000000840",
    4: "0000000000001040",
    16: "0000000000003040",
    -1: "000000000000f0bf",
    -2: "00000000000000c0",
    1.5: "000000000000f83f",
    -2.5: "00000000000004c0",
    3.5: "0000000000000c40",
    12.5: "0000000000002940",
}


def doubles(*numbers):
    return "".join(D[number] for number in numbers)


ID_1_TYPE_3 = "0100000003000000"


CALLS = [
    pytest.param(
        "sendUE4Cmd",
        ("RflyChangeMapbyName Grasslands",),
        "d2029649" + b"RflyChangeMapbyName Grasslands".hex() + "00" * 22,
        id="Cmd",
    ),
    pytest.param(
        "sendUE4Cmd",
        (b"r.setres 720x405w",),
        "d2029649" + b"r.setres 720x405w".hex() + "00" * 35,
        id="b",
    ),
    pytest.param(
        "sendUE4Destroy",
        (1000,),
        "d2029649" + b"RflyDelVehicles 1000".hex() + "00" * 32,
        id="Destroy",
    ),
    pytest.param("sendUE4Cmd", ("x" * 249,), "d2029649" + "78" * 249 + "000000", id="long-Cmd"),
    pytest.param(
        "sendUE4Pos",
        (100, 30, 1000, [1.5, -2.5, 3.5], [0.5, 0.25, -0.125]),
        "d3029649"
        + ID_100_TYPE_30
        + "00000000" * 3
        + floats(*[1000] * 8, 0, 0, 0, 0.5, 0.25, -0.125)
        + doubles(1.5, -2.5, 3.5, -1),
        id="Pos",
    ),
    pytest.param(
        "sendUE4PosNew",
        (
            100,
            30,
            [1.5, -2.5, 3.5],
            [0.5, 0.25, -0.125],
            [9, 10, 11],
            [1, 2, 3, 4, 5, 6, 7, 8],
            12.5,
        ),
        "d3029649"
        + ID_100_TYPE_30
        + "00000000" * 3
        + floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.5, 0.25, -0.125)
        + doubles(1.5, -2.5, 3.5, 12.5),
        id="PosNew",
    ),
    pytest.param(
        "sendUE4Pos2Ground",
        (100, 30, 1000, [1, -2, 3], [0.5, 0.25, -0.125]),
        "d3029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125),
        id="Pos2Ground",
    ),
    pytest.param(
        "sendUE4PosScale",
        (
            100,
            30,
            1000,
            [1, -2, 3],
            [0.5, 0.25, -0.125],
            [4, 5, 6],
        ),
        "d2029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125, 4, 5, 6),
        id="PosScale",
    ),
    pytest.param(
        "sendUE4PosScale2Ground",
        (
            100,
            30,
            1000,
            [1, -2, 3],
            [0.5, 0.25, -0.125],
            [4, 5, 6],
        ),
        "d3029649" + ID_100_TYPE_30 + floats(1000, 1, -2, 3, 0.5, 0.25, -0.125, 4, 5, 6),
        id="PosScale2Ground",
    ),
    pytest.param(  # velocity before position in the call, after it in the packet
        "sendUE4PosSimple",
        (
            100,
            30,
            [1, 2, 3, 4, 5, 6, 7, 8],
            [9, 10, 11],
            [12, 13, 14],
            [0.5, 0.25, -0.125],
            12.5,
        ),
        "d2029649"
        + ID_100_TYPE_30
        + floats(1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 9, 10, 11, 0.5, 0.25, -0.125)
        + doubles(12.5),
        id="PosSimple",
    ),
    pytest.param(
        "sendUE4PosFull",
        (
            100,
            30,
            [1, 2, 3, 4, 5, 6, 7, 8],
            [9, 10, 11],
            [1.5, -2.5, 3.5],
            [14, 15, 16],
            [0.5, 0.25, -0.125],
        ),
        "15cd5b07"
        + ID_100_TYPE_30
        + "00000000"
        + floats(
            9, 10, 11, 0.5, 0.25, -0.125, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 14, 15, 16
        )
        + doubles(-1, 1.5, -2.5, 3.5, 0, 0, 0),
        id="PosFull",
    ),
    pytest.param(
        "sendUE4PosScale100",
        (
            [1, 65535],
            [3, 30],
            [1, 2, 3, 4, 5, 6],
            [0.5, 0.25, -0.125],
            [1000, 30],
            [100, 101, 65535],
        ),
        "d2029649"
        + "0100ffff"
        + "0000" * 98
        + "03001e00"
        + "0000" * 98
        + floats(1, 2, 3, 4, 5, 6, *[0] * 294)
        + floats(0.5, 0.25, -0.125, *[0] * 297)
        + "64006500ffff"
        + "0000" * 297
        + floats(1000, 30, *[0] * 98),
        id="PosScale100",
    ),
    pytest.param(
        "sendUE4PosScalePwm20",
        (
            [1, 65535],
            [3, 30],
            [1, 2, 3, 4, 5, 6],
            [0.5, 0.25, -0.125],
            [100, 101, 65535],
            [7, 8, 9, 10, 11],
            True,
        ),
        "d3029649"
        + "0100ffff"
        + "0000" * 18
        + "03001e00"
        + "0000" * 18
        + floats(1, 2, 3, 4, 5, 6, *[0] * 54)
        + floats(0.5, 0.25, -0.125, *[0] * 57)
        + "64006500ffff"
        + "0000" * 57
        + floats(7, 8, 9, 10, 11, *[0] * 155),
        id="PosScalePwm20",
    ),
    pytest.param(
        "sendUE4Attatch",
        ([1, 2, 1001], [100, 101], 3),
        "d4029649" + "01000000"
        "02000000"
        "e9030000" + "00000000" * 22 + "64000000"
        "65000000" + "00000000" * 23 + "03000000" + "00000000" * 24,
        id="Attatch",
    ),
    pytest.param(
        "sendUE4LabelID",
        (7, "größer", 16, [1, 2, 3]),
        "db029649"
        "07000000"
        "00000000"
        "01000000"
        "02000000"
        "03000000" + floats(1, 16) + "6772c3b6c39f6572" + "00" * 112,
        id="LabelID",
    ),
    pytest.param(
        "sendUE4LabelMsg",
        (7, "ab", 16, [-1, 256, 3], 2.5, 4),
        "db0296490700000004000000ffffffff0001000003000000" + floats(2.5, 16) + "6162" + "00" * 118,
        id="LabelMsg",
    ),
    pytest.param(
        "sendUE4SetStencilValueByCopterID",
        (5, 255),
        "d2029649" + b"RflySetStencilValueByCopterID 5 255".hex() + "00" * 17,
        id="stencil-id",
    ),
    pytest.param(
        "sendUE4SetStencilValueByActorName",
        ("Floor", 9),
        "d2029649" + b"RflySetStencilValueByActorName Floor 9 False".hex() + "00" * 8,
        id="stencil-actor",
    ),
    pytest.param(
        "sendUE4SetStencilValueByMeshComponentName",
        ("Ro.*", 9, True),
        "d2029649" + b"RflySetStencilValueByMeshComponentName Ro.* 9 True".hex() + "00" * 2,
        id="stencil-mesh",
    ),
]


@pytest.mark.parametrize(("call", "arguments", "expected"), CALLS)
def test_bytes_of_each_call_at_each_window(ue, windows, waits, call, arguments, expected):
    """Window -1 gets one datagram at each of three ports, another number one at its port.

    The calls return None.
    """
    method = getattr(ue, call)
    assert method(*arguments) is None
    assert [windows.take(k).hex() for k in range(3)] == [expected] * 3
    for k in range(3):
        assert method(*arguments, windowID=k) is None
        assert windows.take(k).hex() == expected
        assert windows.waiting() == [0, 0, 0]


def test_infrared_brightness_of_the_objects_of_the_callers_table(ue, windows, waits):
    """Brightness is by Planck's law from 8 to 14 µm.

    By scipy.integrate.quad it is 255 for the brightest, 197.6 and 149.7 for the others.
    """
    by_actor = b"RflySetStencilValueByActorName "
    by_mesh = b"RflySetStencilValueByMeshComponentName "

    with pytest.raises(ValueError, match=r"'Car' is not in radiation\.tempEmissivity"):
        ue.SetUE4RadianceValue("Car")

    ue.radiation.tempEmissivity = np.array(
        [
            ["Car", 310, 0.95, False],
            ["tree", 293, 0.952, True],
            ["Floor", 276, 0.96, True],
        ]
    )
    ue.SetUE4RadianceValue("tree", 1)
    assert windows.take(1)[4:].rstrip(b"\0") == by_actor + rb"[\w]*tree[\w]* 197 True"
    assert windows.waiting() == [0, 0, 0]

    ue.SetUE4RadianceValue__All(0)
    sent = [windows.take(0)[4:].rstrip(b"\0") for _ in range(3)]
    assert sent == [
        by_mesh + rb"[\w]*Car[\w]* 255 True",
        by_actor + rb"[\w]*tree[\w]* 197 True",
        by_actor + rb"[\w]*Floor[\w]* 149 True",
    ]

    ue.radiation.tempEmissivity = [["Car", -3.0, 0.95, False]]
    with pytest.raises(ValueError, match="expected temperatures above 0 K"):
        ue.SetUE4RadianceValue("Car")


DEFAULTS = [
    ("sendUE4Pos", (), "d3029649" + ID_1_TYPE_3 + "00" * 12 + "00" * 56 + doubles(0, 0, 0, -1)),
    ("sendUE4PosNew", (), "d3029649" + ID_1_TYPE_3 + "00" * 12 + "00" * 56 + doubles(0, 0, 0, -1)),
    ("sendUE4Pos2Ground", (), "d3029649" + ID_1_TYPE_3 + "00" * 28),
    ("sendUE4PosScale", (), "d2029649" + ID_1_TYPE_3 + "00" * 28 + floats(1, 1, 1)),
    ("sendUE4PosScale2Ground", (), "d3029649" + ID_1_TYPE_3 + "00" * 28 + floats(1, 1, 1)),
    ("sendUE4PosSimple", (1, 3, 0, 0, 0, 0), "d2029649" + ID_1_TYPE_3 + "00" * 68 + doubles(-1)),
    (
        "sendUE4PosFull",
        (1, 3),
        "15cd5b07" + ID_1_TYPE_3 + "00" * 100 + doubles(-1, 0, 0, 0, 0, 0, 0),
    ),
    (
        "sendUE4LabelID",
        (),
        "db029649" + "00" * 8 + "ff000000" + "00" * 8 + floats(1, 30) + "00" * 120,
    ),
    (
        "sendUE4LabelMsg",
        (),
        "db02964900000000ffffffffff000000" + "00" * 8 + floats(0, 30) + "00" * 120,
    ),
]


@pytest.mark.parametrize(
    ("call", "arguments", "expected"), DEFAULTS, ids=[row[0] for row in DEFAULTS]
)
def test_defaults(ue, windows, call, arguments, expected):
    getattr(ue, call)(*arguments)
    assert [windows.take(k).hex() for k in range(3)] == [expected] * 3


SIGNATURES = {
    "sendUE4Cmd": "cmd windowID=-1",
    "sendUE4CmdNet": "cmd",
    "sendUE4Pos": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosNew": (
        "copterID=1 vehicleType=3 PosE=[0,0,0] AngEuler=[0,0,0] VelE=[0,0,0] "
        "PWMs=[0,0,0,0,0,0,0,0] runnedTime=-1 windowID=-1"
    ),
    "sendUE4Pos2Ground": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosScale": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] "
        "Scale=[1,1,1] windowID=-1"
    ),
    "sendUE4PosScale2Ground": (
        "copterID=1 vehicleType=3 MotorRPMSMean=0 PosE=[0,0,0] AngEuler=[0,0,0] "
        "Scale=[1,1,1] windowID=-1"
    ),
    "sendUE4PosSimple": "copterID vehicleType PWMs VelE PosE AngEuler runnedTime=-1 windowID=-1",
    "sendUE4PosFull": (
        "copterID vehicleType MotorRPMS=[0,0,0,0,0,0,0,0] VelE=[0,0,0] PosE=[0,0,0] "
        "RateB=[0,0,0] AngEuler=[0,0,0] windowID=-1"
    ),
    "sendUE4PosScale100": (
        "copterID vehicleType PosE AngEuler MotorRPMSMean Scale isFitGround=False windowID=-1"
    ),
    "sendUE4PosScalePwm20": (
        "copterID vehicleType PosE AngEuler Scale PWMs isFitGround=False windowID=-1"
    ),
    "sendUE4ExtAct": "copterID=1 ActExt=[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0] windowID=-1",
    "sendUE4Attatch": "CopterIDs AttatchIDs AttatchTypes windowID=-1",
    "sendUE4LabelID": "CopterID=0 Txt='' fontSize=30 RGB=[255,0,0] windowID=-1",
    "sendUE4LabelMsg": (
        "CopterID=0 Txt='' fontSize=30 RGB=[255,0,0] dispTime=0 dispFlag=-1 windowID=-1"
    ),
    "reqCamCoptObj": "type_id=1 objName=1 windowID=0 type=None",
    "reqCam": "SeqIDList=[0] windowID=0",
    "reqCopt": "CopterIDList=[0] windowID=0",
    "reqObj": "ObjNameList=[''] windowID=0",
    "sendUE4SetStencilValueByCopterID": "CopterID StencilValue windowID=-1",
    "sendUE4SetStencilValueByActorName": "Actorname StencilValue is_name_regex=False windowID=-1",
    "sendUE4SetStencilValueByMeshComponentName": (
        "Meshname StencilValue is_name_regex=False windowID=-1"
    ),
    "initUE4MsgRec": "",
    "endUE4MsgRec": "",
    "getUE4Pos": "CopterID=1",
    "getUE4Data": "CopterID=1",
    "getCamCoptObj": "type_id=1 objName=1 type=None",
    "waitForMapLoaded": "mapName='' timeout=inf",
    "circle_traj": "t center radius period",
}


@pytest.mark.parametrize("call", SIGNATURES)
def test_names_order_and_defaults_are_the_sdks(ue, call):
    shown = [
        p.name if p.default is p.empty else f"{p.name}={p.default!r}".replace(" ", "")
        for p in inspect.signature(getattr(ue, call)).parameters.values()
    ]
    assert " ".join(shown) == SIGNATURES[call]


def test_action_bears_the_time_since_the_object_was_made(ue, windows):
    before = time.time()
    ue.sendUE4ExtAct(5, [1, 2, 3], 1)
    datagram = windows.take(1)
    assert datagram[:8].hex() == "d602964905000000"
    seconds = struct.unpack("<d", datagram[8:16])[0]
    assert before - ue.startTime <= seconds <= time.time() - ue.startTime
    assert datagram[16:].hex() == doubles(1, 2, 3, *[0] * 13)


def test_command_to_the_lan_goes_to_the_group_alone(windows, ue, rflysim_ports):
    """Multicast kept on the loopback interface; the object's own address plays no part."""
    group = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    group.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    group.bind(("224.0.0.10", 20009))
    loopback = socket.inet_aton("127.0.0.1")
    group.setsockopt(
        socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.10") + loopback
    )
    group.settimeout(PATIENCE)
    ue.udp_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
    assert ue.sendUE4CmdNet("x" * 91) is None
    assert group.recv(65536).hex() == "d9029649" + "78" * 91 + "00"
    assert windows.waiting() == [0, 0, 0]
    group.close()


def test_broadcast_address_of_the_caller_is_allowed(rflysim_ports):
    windows = Windows(BROADCAST)
    try:
        UE4CtrlAPI(BROADCAST).sendUE4Pos2Ground(windowID=2)
        assert windows.take(2).hex() == DEFAULTS[2][2]
    finally:
        windows.close()


def test_a_window_beyond_the_third_is_its_port(ue, rflysim_host):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind((rflysim_host, 20010 + 1234))
        sink.settimeout(PATIENCE)
        ue.sendUE4Pos2Ground(windowID=1234)
        assert len(sink.recv(100)) == 40


def test_a_circle_begins_ahead_and_turns_to_the_right(ue):
    """A turn of 10 s about (1, 2): after a quarter 3 m along +y, which is east of NED's x."""
    points = [ue.circle_traj(t, (1, 2), 3, 10) for t in (0.0, 2.5, 5.0, 10.0)]
    np.testing.assert_allclose(points, [[4, 2], [1, 5], [-2, 2], [4, 2]], atol=1e-12)
    assert points[0] + [-2] == [4.0, 2.0, -2]
